/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The model of the handle table, on a device that gives the handles and results which the test wants. */
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/program.h"
#include "../suite.h"

static const struct answer {
	const char *command; /* of a program's call, or its method */
	uint32_t handle; /* the first word of its response, or the value of the attribute that is a new object */
	int err;
} * answers; /* ends with a command of NULL; each is used once */
static bool used[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `used`: calls are made at the same time */

/* The first unused answer for this call. */
static const struct answer *answer_find(const char *name)
{
	const struct answer *a = answers;

	pthread_mutex_lock(&lock);
	while (a->command && (used[a - answers] || strcmp(a->command, name)))
		a++;
	if (a->command)
		used[a - answers] = true;
	pthread_mutex_unlock(&lock);
	return a->command ? a : NULL;
}

static const char *command_name(uint32_t number)
{
	unsigned int i = 0;

	while (uvd_shape_command_at(i)->ex || uvd_shape_command_at(i)->number != number)
		i++;
	return uvd_shape_command_at(i)->name;
}

/* Of each response; 0: it is not written. */
static uint32_t second_word;

static ssize_t fake_write(int fd, const void *bytes, size_t len)
{
	const struct ib_uverbs_cmd_hdr *hdr = bytes;
	const struct answer *a = answer_find(command_name(hdr->command));
	uint64_t response;

	if (!a)
		return len;
	if (a->err) {
		errno = a->err;
		return -1;
	}
	memcpy(&response, hdr + 1, sizeof(response));
	memcpy((void *)response, &a->handle, sizeof(a->handle));
	if (second_word)
		memcpy((uint8_t *)response + 4, &second_word, sizeof(second_word));
	return len;
}

static const struct uvd_method_row *method_of(const struct ib_uverbs_ioctl_hdr *hdr)
{
	struct uvd_shape_method ref;
	unsigned int i = 0;

	while (uvd_shape_method_at(i, &ref) && (ref.object != hdr->object_id || ref.method != hdr->method_id))
		i++;
	return ref.row;
}

static int fake_ioctl(int fd, unsigned long cmd, uint64_t arg)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)arg;
	const struct uvd_method_row *row = method_of(hdr);
	const struct answer *a = row ? answer_find(uvd_shape_method_name(row)) : NULL;

	if (!a)
		return 0;
	if (a->err) {
		errno = a->err;
		return -1;
	}
	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		for (unsigned int n = 0; n < row->num_attrs; n++)
			if (row->attrs[n].id == hdr->attrs[i].attr_id && row->attrs[n].access == UVD_UOBJ_NEW)
				hdr->attrs[i].data = a->handle;
	return 0;
}

/* Channels have numbers from here. */
enum { FIRST_FD = 1000 };

static bool fake_has_fd(int fd)
{
	return fd >= FIRST_FD;
}

static int fake_close(int fd)
{
	const struct answer *a = answer_find("close");

	if (!a || !a->err)
		return 0;
	errno = a->err;
	return -1;
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

/* Checks the model's finding: the item and its expectation, or "" and "". */
#define SAYS(item_is, expects) \
	do { \
		ck_assert_str_eq(found.item, item_is); \
		ck_assert_str_eq(found.kernel, expects); \
	} while (0)

#define PD "write GET_CONTEXT\npd1: write ALLOC_PD\n"

START_TEST(test_a_pd_that_survives_its_method_is_found)
{
	/* The device keeps the PD: its second destruction, or a later use, has no error. */
	model_says(PD "method PD_DESTROY destroy_pd_handle=pd1\nmethod PD_DESTROY destroy_pd_handle=pd1\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, {} });
	SAYS("result for an object that does not exist", "ENOENT");
	model_says(PD "method PD_DESTROY destroy_pd_handle=pd1\nwrite REG_MR pd_handle=pd1\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, {} });
	SAYS("result with pd 7, which does not exist", "an error");
	model_says(PD "method PD_DESTROY destroy_pd_handle=pd1\nmethod PD_DESTROY destroy_pd_handle=pd1\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "PD_DESTROY", 0, 0 }, { "PD_DESTROY", 0, ENOENT }, {} });
	SAYS("", "");
}
END_TEST

START_TEST(test_an_object_that_dies_without_its_destruction_is_found_by_its_method)
{
	model_says(PD "mr2: write REG_MR pd_handle=pd1\nmethod MR_DESTROY destroy_mr_handle=mr2\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "REG_MR", 8, 0 }, { "MR_DESTROY", 0, ENOENT }, {} });
	SAYS("result for an object that nothing refers to", "ok");
	/* Also one whose method of creation is the only one that there is. */
	model_says(PD "c2: method COUNTERS_CREATE create_counters_handle\n"
		      "method COUNTERS_DESTROY destroy_counters_handle=c2\n",
		   (struct answer[]){
			   { "ALLOC_PD", 7, 0 }, { "COUNTERS_CREATE", 8, 0 }, { "COUNTERS_DESTROY", 0, EINVAL }, {} });
	SAYS("result for an object that nothing refers to", "ok");
}
END_TEST

START_TEST(test_a_method_destroys_no_object_that_others_refer_to)
{
	model_says(PD "mr2: write REG_MR pd_handle=pd1\nmethod PD_DESTROY destroy_pd_handle=pd1\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "REG_MR", 8, 0 }, {} });
	SAYS("result for an object that others refer to", "EBUSY");
	model_says(PD "method CQ_DESTROY destroy_cq_handle=pd1 destroy_cq_resp\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, {} });
	SAYS("result for an object of another type", "an error");
}
END_TEST

START_TEST(test_the_model_says_nothing_about_a_method_without_what_it_needs)
{
	static const char *const calls[] = { "method CQ_DESTROY destroy_cq_handle=7\n", "method PD_DESTROY\n",
					     "method PD_DESTROY destroy_pd_handle=7 destroy_pd_handle=7\n",
					     "method PD_DESTROY destroy_pd_handle=7:flags=2\n",
					     "method PD_DESTROY destroy_pd_handle=-1\n" };
	char text[256];

	for (unsigned int i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		snprintf(text, sizeof(text), "write GET_CONTEXT\n%s", calls[i]);
		model_says(text, (struct answer[]){ { "PD_DESTROY", 0, EINVAL }, { "CQ_DESTROY", 0, EINVAL }, {} });
		ck_assert_msg(!found.found, "%s: %s", calls[i], found.item);
	}
}
END_TEST

START_TEST(test_one_of_two_calls_at_the_same_time_destroys_an_object)
{
	model_says(PD "& write DEALLOC_PD pd_handle=pd1\nmethod PD_DESTROY destroy_pd_handle=pd1\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, {} });
	SAYS("result for an object that another call has destroyed", "an error");
	model_says(PD "& write DEALLOC_PD pd_handle=pd1\nmethod PD_DESTROY destroy_pd_handle=pd1\n",
		   (struct answer[]){ { "ALLOC_PD", 7, 0 }, { "DEALLOC_PD", 0, ENOENT }, {} });
	SAYS("", "");
}
END_TEST

START_TEST(test_a_command_that_is_too_short_must_fail_unless_the_drivers_part_makes_up_for_it)
{
	model_says("write GET_CONTEXT\ninvoke MODIFY_SRQ srq_handle=3 in=12\n", (struct answer[]){ {} });
	SAYS("result of a command that is too short", "an error");
	model_says("write GET_CONTEXT\nwrite DEALLOC_PD pd_handle=3 in=0\n", (struct answer[]){ {} });
	SAYS("result of a command that is too short", "an error");
	model_says("write GET_CONTEXT\nwrite MODIFY_SRQ srq_handle=3 in=12\n", (struct answer[]){ {} });
	SAYS("", "");
}
END_TEST

#define CHANNEL "write GET_CONTEXT\nch1: write CREATE_COMP_CHANNEL\n"

START_TEST(test_a_descriptor_is_closed_once)
{
	model_says(CHANNEL "close ch1\nclose ch1\n", (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, {} });
	SAYS("result for a descriptor that is not open", "an error");
	model_says(CHANNEL "& close ch1\nclose ch1\n", (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, {} });
	SAYS("result for a descriptor that is not open", "an error");
	model_says(CHANNEL "close ch1\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, { "close", 0, EIO }, {} });
	SAYS("result for a descriptor that is open", "ok");
	model_says(
		CHANNEL "close ch1\nclose ch1\nclose 0\n",
		(struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, { "close", 0, 0 }, { "close", 0, EBADF }, {} });
	SAYS("", "");
}
END_TEST

START_TEST(test_a_descriptor_that_is_open_is_not_given_out_again)
{
	model_says(CHANNEL "ch2: write CREATE_COMP_CHANNEL\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, { "CREATE_COMP_CHANNEL", 1000, 0 }, {} });
	SAYS("new descriptor", "one that is not open");
	model_says(CHANNEL "close ch1\nch2: write CREATE_COMP_CHANNEL\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, { "CREATE_COMP_CHANNEL", 1000, 0 }, {} });
	SAYS("", "");
}
END_TEST

START_TEST(test_the_device_is_closed_once)
{
	model_says("write GET_CONTEXT\nclose device\nclose device\n", (struct answer[]){ {} });
	SAYS("result for a device that another call has closed", "EBADF");
	model_says("write GET_CONTEXT\n& close device\nclose device\n", (struct answer[]){ {} });
	SAYS("result for a device that another call has closed", "EBADF");
	model_says("write GET_CONTEXT\nclose device\nclose device\n",
		   (struct answer[]){ { "close", 0, 0 }, { "close", 0, EBADF }, {} });
	SAYS("", "");
	model_says("write GET_CONTEXT\nclose device\n& ch1: write CREATE_COMP_CHANNEL\nclose device\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 0, EBADF }, {} });
	SAYS("result for a device that another call has closed", "EBADF");
	/* The channel may have had the number of the device when the second call closed it. */
	model_says("write GET_CONTEXT\n& close device\n& ch1: write CREATE_COMP_CHANNEL\nclose device\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 99, 0 }, {} });
	SAYS("", "");
}
END_TEST

/* Runs the program while channel 1000 is a pipe with `len` bytes; 0: no descriptor, so that a read fails with EBADF. */
static void model_says_of_events(const char *text, size_t len)
{
	static const char bytes[16];
	int ends[2];

	ck_assert(!pipe(ends) && write(ends[1], bytes, len) == (ssize_t)len);
	ck_assert_int_eq(dup2(ends[0], FIRST_FD), FIRST_FD);
	if (!len)
		close(FIRST_FD);
	model_says(text, (struct answer[]){ { "CREATE_COMP_CHANNEL", FIRST_FD, 0 }, {} });
	close(ends[0]);
	close(ends[1]);
	close(FIRST_FD);
}

START_TEST(test_an_event_comes_from_a_descriptor_that_is_open_and_has_its_size)
{
	model_says_of_events(CHANNEL "event ch1\n", 8);
	SAYS("", "");
	model_says_of_events(CHANNEL "event ch1\nevent ch1\n", 8); /* the second: EAGAIN */
	SAYS("", "");
	model_says_of_events(CHANNEL "event ch1\n", 16);
	SAYS("size of an event", "8 bytes of a channel, or 16");
	model_says_of_events(CHANNEL "event ch1\n", 0);
	SAYS("result for a descriptor that is open", "an event, or EAGAIN");
	model_says_of_events(CHANNEL "close ch1\nevent ch1\n", 8);
	SAYS("result for a descriptor that is not open", "EBADF");
	model_says_of_events(CHANNEL "close ch1\nevent ch1\n", 0);
	SAYS("", "");
}
END_TEST

/* The number of the device's descriptor, which model_says() gives. */
START_TEST(test_the_model_says_nothing_about_a_descriptor_that_got_the_number_of_the_closed_device)
{
	model_says("write GET_CONTEXT\n& ch1: write CREATE_COMP_CHANNEL\nclose device\nclose ch1\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 99, 0 }, {} });
	SAYS("", "");
}
END_TEST

START_TEST(test_reserved_bytes_of_a_response_hold_no_data)
{
	/* The second word of RESIZE_CQ's response is reserved. */
	static const char text[] = "write GET_CONTEXT\ncq1: write CREATE_CQ\nwrite RESIZE_CQ cq_handle=cq1\n";

	model_says(text, (struct answer[]){ { "CREATE_CQ", 1, 0 }, { "RESIZE_CQ", 31, 0 }, {} });
	SAYS("", "");
	second_word = 1;
	model_says(text, (struct answer[]){ { "CREATE_CQ", 1, 0 }, { "RESIZE_CQ", 31, 0 }, {} });
	second_word = 0;
	SAYS("a byte that is no output", "untouched, or 0");
}
END_TEST

/* The region may refer to the PD that the call beside it has made: it names the handle that the PD got. */
START_TEST(test_an_object_that_a_call_beside_its_creation_names_may_be_busy)
{
	static const char program[] =
		"write GET_CONTEXT\n& mr1: write REG_MR pd_handle=7\npd1: write ALLOC_PD\nwrite DEALLOC_PD pd_handle=pd1\n";

	model_says(program,
		   (struct answer[]){ { "REG_MR", 3, 0 }, { "ALLOC_PD", 7, 0 }, { "DEALLOC_PD", 0, EBUSY }, {} });
	SAYS("", "");
	model_says(program, (struct answer[]){ { "REG_MR", 3, 0 }, { "ALLOC_PD", 7, 0 }, {} });
	SAYS("", "");
	model_says(program,
		   (struct answer[]){ { "REG_MR", 0, ENOENT }, { "ALLOC_PD", 7, 0 }, { "DEALLOC_PD", 0, EBUSY }, {} });
	SAYS("result for an object that nothing refers to", "ok");
}
END_TEST

START_TEST(test_a_cq_with_a_channel_that_is_closed_is_found)
{
	model_says(CHANNEL "close ch1\nwrite CREATE_CQ comp_channel=ch1\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, { "CREATE_CQ", 3, 0 }, {} });
	SAYS("result with descriptor 1000, which is not open", "an error");
	model_says(CHANNEL "close ch1\nmethod CQ_CREATE create_cq_handle create_cq_comp_channel=ch1\n",
		   (struct answer[]){ { "CREATE_COMP_CHANNEL", 1000, 0 }, { "CQ_CREATE", 3, 0 }, {} });
	SAYS("result with descriptor 1000, which is not open", "an error");
	model_says(CHANNEL "write CREATE_CQ comp_channel=ch1\nwrite CREATE_CQ\n",
		   (struct answer[]){
			   { "CREATE_COMP_CHANNEL", 1000, 0 }, { "CREATE_CQ", 3, 0 }, { "CREATE_CQ", 4, 0 }, {} });
	SAYS("", "");
}
END_TEST

START_TEST(test_no_call_on_a_closed_device_succeeds)
{
	model_says("write GET_CONTEXT\nclose device\nwrite ALLOC_PD\n", (struct answer[]){ {} });
	SAYS("result on a device that is closed", "EBADF");
	model_says("write GET_CONTEXT\nclose device\n", (struct answer[]){ { "close", 0, EIO }, {} });
	SAYS("result for a descriptor that is open", "ok");
	/* A call beside the close can be before it. */
	model_says(
		"write GET_CONTEXT\n& pd1: write ALLOC_PD\nclose device\nwrite ALLOC_PD\nwrite DEALLOC_PD pd_handle=pd1\n",
		(struct answer[]){ { "ALLOC_PD", 1, 0 }, { "ALLOC_PD", 0, EBADF }, { "DEALLOC_PD", 0, EBADF }, {} });
	SAYS("", "");
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
	tcase_add_test(t, test_reserved_bytes_of_a_response_hold_no_data);
	tcase_add_test(t, test_an_object_that_a_call_beside_its_creation_names_may_be_busy);
	tcase_add_test(t, test_the_model_says_nothing_after_a_destruction_whose_object_a_call_beside_it_has_made);
	tcase_add_test(t, test_an_srq_is_busy_while_a_qp_uses_it);
	tcase_add_test(t, test_an_srq_is_not_busy_for_a_qp_that_does_not_use_it);
	tcase_add_test(t, test_a_pd_that_survives_its_method_is_found);
	tcase_add_test(t, test_an_object_that_dies_without_its_destruction_is_found_by_its_method);
	tcase_add_test(t, test_a_method_destroys_no_object_that_others_refer_to);
	tcase_add_test(t, test_the_model_says_nothing_about_a_method_without_what_it_needs);
	tcase_add_test(t, test_one_of_two_calls_at_the_same_time_destroys_an_object);
	tcase_add_test(t, test_a_command_that_is_too_short_must_fail_unless_the_drivers_part_makes_up_for_it);
	tcase_add_test(t, test_a_descriptor_is_closed_once);
	tcase_add_test(t, test_a_descriptor_that_is_open_is_not_given_out_again);
	tcase_add_test(t, test_the_model_says_nothing_about_a_descriptor_that_got_the_number_of_the_closed_device);
	tcase_add_test(t, test_a_cq_with_a_channel_that_is_closed_is_found);
	tcase_add_test(t, test_the_device_is_closed_once);
	tcase_add_test(t, test_an_event_comes_from_a_descriptor_that_is_open_and_has_its_size);
	tcase_add_test(t, test_no_call_on_a_closed_device_succeeds);
	return run_suite("the model of the handle table", t);
}
