/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The model of the handle table, on a device that gives the handles and results which the test wants. */
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "../suite.h"

static const struct answer {
	const char *command; /* of a program's call */
	uint32_t handle; /* the first word of its response */
	int err;
} * answers; /* ends with a command of NULL; each is used once */
static bool used[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `used`: calls are made at the same time */

/* The first unused answer for the command, which the fake device knows by number. */
static const struct answer *answer_find(uint32_t command)
{
	const struct answer *a = answers;

	pthread_mutex_lock(&lock);
	while (a->command && (used[a - answers] || uvd_shape_command(a->command)->number != (command & 0xff)))
		a++;
	if (a->command)
		used[a - answers] = true;
	pthread_mutex_unlock(&lock);
	return a->command ? a : NULL;
}

static ssize_t fake_write(int fd, const void *bytes, size_t len)
{
	const struct ib_uverbs_cmd_hdr *hdr = bytes;
	const struct answer *a = answer_find(hdr->command);
	uint64_t response;

	if (!a)
		return len;
	if (a->err) {
		errno = a->err;
		return -1;
	}
	memcpy(&response, hdr + 1, sizeof(response));
	memcpy((void *)response, &a->handle, sizeof(a->handle));
	return len;
}

static int fake_ioctl(int fd, unsigned long cmd, uint64_t arg)
{
	errno = ENOTTY;
	return -1;
}

static bool fake_has_fd(int fd)
{
	return false;
}

static int fake_close(int fd)
{
	return 0;
}

static const struct uvd_prog_node_ops fake_ops = {
	.write = fake_write,
	.ioctl = fake_ioctl,
	.has_fd = fake_has_fd,
	.close = fake_close,
};

static struct uvd_prog p;
static struct uvd_prog_run *run;
static struct uvd_prog_difference found;

/* Runs the program, whose calls have these answers, and asks the model. */
static void model_says(const char *text, const struct answer *with)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	const char *why = "";

	answers = with;
	memset(used, 0, sizeof(used));
	memset(&p, 0, sizeof(p));
	ck_assert_uint_eq(uvd_prog_parse(&p, in, &why), 0);
	fclose(in);
	uvd_prog_arena_clear();
	uvd_prog_run_reset(run, &p);
	ck_assert_int_eq(uvd_prog_run_calls(run, &p, 99), 0);
	uvd_prog_model_check(&p, run, &found);
}

START_TEST(test_a_handle_that_an_object_has_is_not_given_out_again)
{
	model_says("write GET_CONTEXT\npd1: write ALLOC_PD\npd2: write ALLOC_PD\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "ALLOC_PD", 7, 0 }, {} });
	ck_assert(found.found);
	ck_assert_uint_eq(found.call, 2);
	ck_assert_str_eq(found.item, "new handle");
}
END_TEST

START_TEST(test_two_calls_at_the_same_time_do_not_get_one_handle)
{
	model_says("write GET_CONTEXT\n& pd1: write ALLOC_PD\npd2: write ALLOC_PD\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "ALLOC_PD", 7, 0 }, {} });
	ck_assert(found.found);
	ck_assert_str_eq(found.item, "new handle");
}
END_TEST

/* The destroy may be first, although the program names it last. */
START_TEST(test_a_handle_is_free_for_the_call_that_is_made_beside_its_destruction)
{
	model_says("write GET_CONTEXT\npd1: write ALLOC_PD\n& pd2: write ALLOC_PD\nwrite DEALLOC_PD pd_handle=pd1\n"
		   "write DEALLOC_PD pd_handle=pd2\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "ALLOC_PD", 7, 0 }, {} });
	ck_assert(!found.found);
	/* The second PD is an object like others: it cannot fail to be destroyed. */
	model_says("write GET_CONTEXT\npd1: write ALLOC_PD\n& pd2: write ALLOC_PD\nwrite DEALLOC_PD pd_handle=pd1\n"
		   "write ALLOC_PD\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "ALLOC_PD", 7, 0 }, { "ALLOC_PD", 7, 0 }, {} });
	ck_assert(found.found);
	ck_assert_uint_eq(found.call, 4);
}
END_TEST

START_TEST(test_the_model_says_nothing_after_a_destruction_whose_object_a_call_beside_it_has_made)
{
	model_says("write GET_CONTEXT\n& pd1: write ALLOC_PD\nwrite DEALLOC_PD pd_handle=7\npd2: write ALLOC_PD\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "ALLOC_PD", 7, 0 }, {} });
	ck_assert(!found.found);
}
END_TEST

#define WITH_SRQ \
	"write GET_CONTEXT\npd1: write ALLOC_PD\ncq2: write CREATE_CQ\nsrq3: write CREATE_SRQ pd_handle=pd1\n" \
	"write CREATE_QP pd_handle=pd1 send_cq_handle=cq2 recv_cq_handle=cq2 srq_handle=srq3 is_srq="

START_TEST(test_an_srq_is_busy_while_a_qp_uses_it)
{
	model_says(WITH_SRQ "1\nwrite DESTROY_SRQ srq_handle=srq3\n", (struct answer[]){ { "ALLOC_PD", 1, 0 },
											 { "CREATE_CQ", 2, 0 },
											 { "CREATE_SRQ", 3, 0 },
											 { "CREATE_QP", 4, 0 },
											 { "DESTROY_SRQ", 0, EBUSY },
											 {} });
	ck_assert_msg(!found.found, "%s: %s", found.item, found.ours);
	model_says(WITH_SRQ "1\nwrite DESTROY_SRQ srq_handle=srq3\n", (struct answer[]){ { "ALLOC_PD", 1, 0 },
											 { "CREATE_CQ", 2, 0 },
											 { "CREATE_SRQ", 3, 0 },
											 { "CREATE_QP", 4, 0 },
											 {} });
	ck_assert(found.found);
	ck_assert_str_eq(found.kernel, "EBUSY");
}
END_TEST

START_TEST(test_an_srq_is_not_busy_for_a_qp_that_does_not_use_it)
{
	model_says(WITH_SRQ "0\nwrite DESTROY_SRQ srq_handle=srq3\n", (struct answer[]){ { "ALLOC_PD", 1, 0 },
											 { "CREATE_CQ", 2, 0 },
											 { "CREATE_SRQ", 3, 0 },
											 { "CREATE_QP", 4, 0 },
											 { "DESTROY_SRQ", 0, EBUSY },
											 {} });
	ck_assert(found.found);
	ck_assert_str_eq(found.kernel, "ok");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("model");

	run = uvd_prog_run_new_with(&fake_ops, "fake", RDMA_DRIVER_HFI1);
	if (!run || uvd_prog_arena_make())
		return 1;
	tcase_add_test(t, test_a_handle_that_an_object_has_is_not_given_out_again);
	tcase_add_test(t, test_two_calls_at_the_same_time_do_not_get_one_handle);
	tcase_add_test(t, test_a_handle_is_free_for_the_call_that_is_made_beside_its_destruction);
	tcase_add_test(t, test_the_model_says_nothing_after_a_destruction_whose_object_a_call_beside_it_has_made);
	tcase_add_test(t, test_an_srq_is_busy_while_a_qp_uses_it);
	tcase_add_test(t, test_an_srq_is_not_busy_for_a_qp_that_does_not_use_it);
	return run_suite("the model of the handle table", t);
}
