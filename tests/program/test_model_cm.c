/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The model of rdma_cm's identifiers, on a node that gives the numbers and results which the test wants. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/program.h"
#include "../suite.h"

/* The fake device gives these answers to the calls, in their order. */
static const struct answer {
	int err;
	uint32_t number, event; /* of the response; of a GET_EVENT */
	size_t more; /* a byte so far behind the response is written, too */
} * answers;

static ssize_t fake_write(int fd, const void *bytes, size_t len)
{
	const struct answer *a = answers++;
	struct rdma_ucm_event_resp event = { .id = a->number, .event = a->event };
	const struct rdma_ucm_cmd_hdr *hdr = bytes;
	uint64_t response;

	if (a->err) {
		errno = a->err;
		return -1;
	}
	memcpy(&response, hdr + 1, sizeof(response));
	if (hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		memcpy((void *)response, &event, sizeof(event));
	else if (hdr->cmd == RDMA_USER_CM_CMD_CREATE_ID)
		memcpy((uint8_t *)(uintptr_t)((const uint64_t *)(hdr + 1))[1], &a->number, sizeof(a->number));
	if (a->more)
		((uint8_t *)(uintptr_t)((const uint64_t *)(hdr + 1))[1])[a->more] = 1;
	return len;
}

static bool fake_has_fd(int fd)
{
	return false;
}

static const struct uvd_prog_node_ops fake_ops = { .write = fake_write, .has_fd = fake_has_fd, .close = close };

static struct uvd_prog p;
static struct uvd_prog_difference found;
static char folder[] = "/tmp/uverbsd-model-XXXXXX", device[64];

static void model_says(const char *text, const struct answer *with)
{
	struct uvd_prog_run *run = uvd_prog_run_new_with(&fake_ops, device, 0);
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	const char *why = "";

	answers = with;
	memset(&p, 0, sizeof(p));
	ck_assert_uint_eq(uvd_prog_parse(&p, in, &why), 0);
	fclose(in);
	uvd_prog_arena_clear();
	uvd_prog_run_reset(run, &p);
	ck_assert_int_eq(uvd_prog_run_calls(run, &p, 99), 0);
	uvd_prog_model_check_cm(&p, run, &found);
	uvd_prog_run_free(run);
}

#define MODEL_SAYS(text, ...) model_says(text, (const struct answer[]){ __VA_ARGS__ })

START_TEST(test_new_identifier_does_not_have_the_number_of_another_one)
{
	MODEL_SAYS("cm CREATE_ID\ncm CREATE_ID\n", { 0, 3 }, { 0, 4 });
	ck_assert(!found.found);
	MODEL_SAYS("cm CREATE_ID\ncm CREATE_ID\n", { 0, 3 }, { 0, 3 });
	ck_assert(found.found && found.call == 1 && !strcmp(found.item, "handle"));
	/* A request makes one, and other events do not. */
	MODEL_SAYS("cm CREATE_ID\ncm GET_EVENT\n", { 0, 3 }, { 0, 3, 4 });
	ck_assert(found.found && found.call == 1);
	MODEL_SAYS("cm CREATE_ID\ncm GET_EVENT\n", { 0, 3 }, { 0, 3, 9 });
	ck_assert(!found.found);
}
END_TEST

START_TEST(test_identifier_that_exists_can_be_destroyed_once)
{
	MODEL_SAYS("a: cm CREATE_ID\ncm DESTROY_ID id=a\ncm DESTROY_ID id=a\n", { 0, 3 }, {}, { ENOENT });
	ck_assert(!found.found);
	MODEL_SAYS("a: cm CREATE_ID\ncm DESTROY_ID id=a\n", { 0, 3 }, { EBUSY });
	ck_assert(found.found && found.call == 1 && !strcmp(found.kernel, "ok"));
	MODEL_SAYS("a: cm CREATE_ID\ncm DESTROY_ID id=a\ncm DESTROY_ID id=a\n", { 0, 3 }, {}, { EINVAL });
	ck_assert(found.found && found.call == 2 && !strcmp(found.kernel, "ENOENT"));
	MODEL_SAYS("a: cm CREATE_ID\ncm DESTROY_ID id=a\ncm LISTEN id=a\n", { 0, 3 }, {}, {});
	ck_assert(found.found && found.call == 2 && !strcmp(found.kernel, "an error"));
}
END_TEST

START_TEST(test_model_ends_with_a_call_that_it_does_not_follow)
{
	MODEL_SAYS("a: cm CREATE_ID\ncm LISTEN id=a !command=1\ncm DESTROY_ID id=a\n", { 0, 3 }, {}, { ENOENT });
	ck_assert(!found.found);
	MODEL_SAYS("a: cm CREATE_ID\ncm LISTEN id=a !command=1\ncm DESTROY_ID id=a\n", { 0, 3 }, { EINVAL }, { EBUSY });
	ck_assert(found.found && found.call == 2);
}
END_TEST

START_TEST(test_byte_behind_a_response_is_found)
{
	MODEL_SAYS("cm CREATE_ID\n", { 0, 3, 0, 4 });
	ck_assert(found.found && !strcmp(found.item, "a byte that is no output"));
}
END_TEST

/* Returns false if that fails. */
static bool node_make(void)
{
	char path[80];
	int fd;

	if (!mkdtemp(folder) || uvd_prog_arena_make())
		return false;
	snprintf(device, sizeof(device), "%s/uverbs0", folder);
	snprintf(path, sizeof(path), "%s/rdma_cm", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	return fd >= 0 && !close(fd);
}

static void node_remove(void)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/rdma_cm", folder);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	TCase *t = tcase_create("model_cm");
	int ret;

	if (!node_make())
		return 1;
	tcase_add_test(t, test_new_identifier_does_not_have_the_number_of_another_one);
	tcase_add_test(t, test_identifier_that_exists_can_be_destroyed_once);
	tcase_add_test(t, test_model_ends_with_a_call_that_it_does_not_follow);
	tcase_add_test(t, test_byte_behind_a_response_is_found);
	ret = run_suite("the model of rdma_cm's identifiers", t);
	node_remove();
	return ret;
}
