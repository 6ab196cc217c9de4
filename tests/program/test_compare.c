/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Numbers that two devices choose: whose they are, and until when. Both devices answer what the test says. */
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "../suite.h"

enum { WORDS = 4 };

/* The first words of the outputs of each call, in order: of attributes, one each; the new handle is the first. */
struct answer {
	uint32_t words[WORDS];
};
static const struct answer *answers;
static unsigned int num_calls;

static ssize_t fake_write(int fd, const void *bytes, size_t len)
{
	const struct ib_uverbs_cmd_hdr *hdr = bytes;
	const struct answer *a = &answers[num_calls++];
	const size_t room = hdr->out_words * 4 < sizeof(a->words) ? hdr->out_words * 4 : sizeof(a->words);
	uint64_t response;

	if (!room)
		return len; /* such a message can end before it has an address, and with its page */
	memcpy(&response, hdr + 1, sizeof(response));
	memcpy((void *)response, a->words, room);
	return len;
}

static int fake_ioctl(int fd, unsigned long cmd, uint64_t arg)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)arg;
	const struct answer *a = &answers[num_calls++];
	struct uvd_shape_method ref;
	unsigned int word = 0, n = 0;

	while (uvd_shape_method_at(n, &ref) && (ref.object != hdr->object_id || ref.method != hdr->method_id))
		n++;
	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		for (n = 0; n < ref.row->num_attrs; n++) {
			const struct uvd_attr_row *row = &ref.row->attrs[n];

			if (row->id != hdr->attrs[i].attr_id || word == WORDS)
				continue;
			if (row->access == UVD_UOBJ_NEW && row->type == UVD_ATTR_IDR)
				hdr->attrs[i].data = a->words[word++];
			else if (row->type == UVD_ATTR_PTR_OUT && !(row->flags & UVD_UDATA))
				memcpy((void *)hdr->attrs[i].data, &a->words[word++], sizeof(a->words[0]));
		}
	return 0;
}

static bool fake_has_fd(int fd)
{
	return false;
}

static const struct uvd_prog_node_ops fake_ops = { .write = fake_write, .ioctl = fake_ioctl, .has_fd = fake_has_fd };

static struct uvd_prog_run *kernel, *ours;
static struct uvd_prog_difference found;
static struct uvd_prog p;

static void run_with(struct uvd_prog_run *run, const struct answer *with)
{
	answers = with;
	num_calls = 0;
	uvd_prog_arena_clear();
	uvd_prog_run_reset(run, &p);
	ck_assert_msg(!uvd_prog_run_calls(run, &p, 99), "%s", run->trouble);
}

/* Runs the program on both devices, and compares. */
static void compare(const char *text, const struct answer *kernels, const struct answer *others)
{
	static const char row[] = "| numbers | * | qpn srqn lkey rkey cqe | * | * | | chosen by the driver |";
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct uvd_prog_list list = {};
	const char *why = "";

	memset(&p, 0, sizeof(p));
	ck_assert_msg(!uvd_prog_parse(&p, in, &why), "%s", why);
	fclose(in);
	ck_assert(uvd_prog_list_add(&list, row));
	run_with(kernel, kernels);
	run_with(ours, others);
	uvd_prog_compare(&list, &p, kernel, ours, &found);
	uvd_prog_list_free(&list);
}

#define SAME() ck_assert_msg(!found.found, "call %u: %s", found.call, found.item)
#define DIFFERS(number, name) \
	do { \
		ck_assert(found.found); \
		ck_assert_uint_eq(found.call, number); \
		ck_assert_str_eq(found.item, name); \
	} while (0)

#define CONTEXT \
	{ \
		{ \
			9 \
		} \
	}
#define TWO_REGIONS "write GET_CONTEXT\nmr1: write REG_MR\nmr2: write REG_MR\n"

START_TEST(test_each_device_chooses_its_own_keys)
{
	compare(TWO_REGIONS, (struct answer[]){ CONTEXT, { { 1, 10, 11 } }, { { 2, 20, 21 } } },
		(struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } } });
	SAME();
	compare(TWO_REGIONS, (struct answer[]){ CONTEXT, { { 1, 10, 11 } }, { { 2, 20, 21 } } },
		(struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 50, 61 } } });
	DIFFERS(2, "lkey");
}
END_TEST

/* The key is free for the next region once its own is destroyed, by whichever call, and not before. */
START_TEST(test_a_key_belongs_to_its_region_until_that_is_destroyed)
{
	static const struct answer kernels[] = { CONTEXT, { { 1, 10, 11 } }, { { 0 } }, { { 1, 20, 21 } } },
				   others[] = { CONTEXT, { { 1, 50, 51 } }, { { 0 } }, { { 1, 50, 51 } } };
	static const struct {
		const char *call;
		bool ends;
	} calls[] = {
		{ "write DEREG_MR mr_handle=mr1", true },
		{ "invoke DEREG_MR mr_handle=mr1", true },
		{ "method MR_DESTROY destroy_mr_handle=mr1", true },
		{ "write #13", true }, /* without a name: nobody knows what it has destroyed */
		{ "write DEREG_MR mr_handle=2", false },
		{ "write DEALLOC_PD pd_handle=3", false },
		{ "write MODIFY_QP qp_handle=1", false },
	};
	char text[256];

	for (unsigned int i = 0; i < UVD_COUNT(calls); i++) {
		snprintf(text, sizeof(text), "write GET_CONTEXT\nmr1: write REG_MR\n%s\nwrite REG_MR\n", calls[i].call);
		compare(text, kernels, others);
		ck_assert_msg(found.found == !calls[i].ends, "%s", calls[i].call);
	}
}
END_TEST

/* The region has other keys then, and the old ones are free. */
START_TEST(test_a_region_that_is_registered_anew_has_new_keys)
{
	static const char text[] = TWO_REGIONS "write REREG_MR pd_handle=2 mr_handle=mr1\nwrite REG_MR\n";

	static const struct answer kernels[] = {
		CONTEXT, { { 1, 10, 11 } }, { { 2, 20, 21 } }, { { 30, 31 } }, { { 3, 10, 11 } }
	};

	compare(text, kernels,
		(struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } }, { { 70, 71 } }, { { 3, 80, 81 } } });
	SAME();
	compare(text, kernels,
		(struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } }, { { 60, 71 } }, { { 3, 80, 81 } } });
	DIFFERS(3, "lkey");
	/* The new keys are the region's: no other one gets them. */
	compare(text, kernels,
		(struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } }, { { 70, 71 } }, { { 3, 80, 71 } } });
	DIFFERS(4, "rkey");
}
END_TEST

START_TEST(test_only_numbers_of_objects_are_bound)
{
	static const char text[] = "write GET_CONTEXT\nwrite CREATE_CQ\nwrite CREATE_CQ\n";
	static const struct answer kernels[] = { CONTEXT, { { 1, 10 } }, { { 2, 20 } } };

	/* A size is no number of an object, even if the list says that the drivers choose it: two CQs can have one. */
	compare(text, kernels, (struct answer[]){ CONTEXT, { { 1, 50 } }, { { 2, 50 } } });
	SAME();
}
END_TEST

/* A call that makes nothing answers the numbers that the object has. */
START_TEST(test_a_query_answers_the_keys_of_the_region)
{
	static const char text[] =
		TWO_REGIONS "method QUERY_MR query_mr_handle=mr1 query_mr_resp_lkey query_mr_resp_rkey\n";
	static const struct answer kernels[] = { CONTEXT, { { 1, 10, 11 } }, { { 2, 20, 21 } }, { { 10, 11 } } };

	compare(text, kernels, (struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } }, { { 50, 51 } } });
	SAME();
	compare(text, kernels, (struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } }, { { 50, 61 } } });
	DIFFERS(3, "rkey");
	compare(text, kernels, (struct answer[]){ CONTEXT, { { 1, 50, 51 } }, { { 2, 60, 61 } }, { { 99, 51 } } });
	DIFFERS(3, "lkey");
}
END_TEST

/* A query of an object that the comparison does not know binds no number: another object may get it. */
START_TEST(test_a_query_gives_no_number_to_an_object)
{
	static const char text[] =
		"write GET_CONTEXT\nmethod QUERY_MR query_mr_handle=5 query_mr_resp_lkey\nwrite REG_MR\n";

	compare(text, (struct answer[]){ CONTEXT, { { 30 } }, { { 1, 30, 31 } } },
		(struct answer[]){ CONTEXT, { { 70 } }, { { 1, 80, 81 } } });
	SAME();
}
END_TEST

#define WQ "method WQ_CREATE create_wq_handle create_wq_resp_wq_num\n"

/* Whether the list names them or not. */
START_TEST(test_numbers_are_bound_by_their_role)
{
	static const char text[] = "write GET_CONTEXT\n" WQ WQ;
	static const struct answer kernels[] = { CONTEXT, { { 1, 10 } }, { { 2, 20 } } };

	compare(text, kernels, (struct answer[]){ CONTEXT, { { 1, 50 } }, { { 2, 60 } } });
	SAME();
	compare(text, kernels, (struct answer[]){ CONTEXT, { { 1, 50 } }, { { 2, 50 } } });
	DIFFERS(2, "wqn");
}
END_TEST

/* One QP has the number, and each open of it a handle of its own. */
START_TEST(test_a_qp_that_is_opened_again_has_one_number)
{
	static const char text[] = "write GET_CONTEXT\nwrite CREATE_QP\nwrite OPEN_QP qpn=5\n";

	compare(text, (struct answer[]){ CONTEXT, { { 1, 5 } }, { { 2, 5 } } },
		(struct answer[]){ CONTEXT, { { 1, 17 } }, { { 2, 17 } } });
	SAME();
	compare(text, (struct answer[]){ CONTEXT, { { 1, 5 } }, { { 2, 5 } } },
		(struct answer[]){ CONTEXT, { { 1, 17 } }, { { 2, 18 } } });
	DIFFERS(2, "qpn");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("compare");

	kernel = uvd_prog_run_new_with(&fake_ops, "kernel", RDMA_DRIVER_HFI1);
	ours = uvd_prog_run_new_with(&fake_ops, "ours", RDMA_DRIVER_HFI1);
	if (!kernel || !ours || uvd_prog_arena_make())
		return 1;
	tcase_add_test(t, test_each_device_chooses_its_own_keys);
	tcase_add_test(t, test_a_key_belongs_to_its_region_until_that_is_destroyed);
	tcase_add_test(t, test_a_region_that_is_registered_anew_has_new_keys);
	tcase_add_test(t, test_only_numbers_of_objects_are_bound);
	tcase_add_test(t, test_a_query_answers_the_keys_of_the_region);
	tcase_add_test(t, test_a_query_gives_no_number_to_an_object);
	tcase_add_test(t, test_numbers_are_bound_by_their_role);
	tcase_add_test(t, test_a_qp_that_is_opened_again_has_one_number);
	return run_suite("program: comparison of numbers", t);
}
