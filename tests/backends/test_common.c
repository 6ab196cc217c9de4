/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The QP state table, compared with its catalogue (qp_state_table.json); GID queries; the null backend. */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include "tests/backends/bed.h"
#include "../suite.h"

static int mask_of(json_t *transition, const char *type, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(json_object_get(transition, "by_type"), type), key));
}

/* Does the catalogue allow this mask for transition t? Applies the catalogue's own rule. */
static bool catalogue_says(json_t *t, const char *type, int cur, int mask)
{
	int required = mask_of(t, type, "required_mask"), optional = mask_of(t, type, "optional_mask");

	if ((mask & IBV_QP_CUR_STATE) && cur != IBV_QPS_RTR && cur != IBV_QPS_RTS && cur != IBV_QPS_SQD &&
	    cur != IBV_QPS_SQE)
		return false;
	return json_is_true(json_object_get(t, "valid")) && (mask & required) == required &&
	       !(mask & ~(required | optional | IBV_QP_STATE));
}

/* The reason names all that is missing, or else all that is too much. */
static void compare_reason(int required, int optional, int mask, struct uvd_why why)
{
	const uint64_t missing = required & ~mask, extra = mask & ~(required | optional | IBV_QP_STATE);

	if (!missing && !extra) {
		ck_assert_ptr_null(why.reason);
		return;
	}
	ck_assert_str_eq(why.reason->code, missing ? "modify-missing" : "modify-extra");
	ck_assert_uint_eq(why.values[2].number, missing ?: extra);
}

static void compare_cell(json_t *t, const char *type, int type_nr, int cur, int next)
{
	int required = mask_of(t, type, "required_mask"), optional = mask_of(t, type, "optional_mask");

	for (int bit = -1; bit < 27; bit++) {
		int b = bit < 0 ? 0 : 1 << bit;
		int masks[] = {
			b,
			required ^ b,
			(required | IBV_QP_STATE) ^ b,
			(required | optional) ^ b,
			(required | optional | IBV_QP_STATE) ^ b,
		};

		for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
			ck_assert_msg(uvd_modify_qp_is_ok(cur, next, type_nr, masks[i]) ==
					      catalogue_says(t, type, cur, masks[i]),
				      "%s %d -> %d mask 0x%x", type, cur, next, masks[i]);
			if (json_is_true(json_object_get(t, "valid")) && !(masks[i] & IBV_QP_CUR_STATE))
				compare_reason(required, optional, masks[i],
					       uvd_modify_qp_why(cur, next, type_nr, masks[i]));
		}
	}
}

START_TEST(test_qp_state_table_is_the_catalogue)
{
	json_t *root = json_load_file(getenv("QP_STATE_TABLE"), 0, NULL);
	json_t *states, *types, *t, *nr;
	const char *type;
	size_t i, cells = 0;

	ck_assert_ptr_nonnull(root);
	states = json_object_get(root, "states");
	types = json_object_get(root, "qp_types");
	json_array_foreach(json_object_get(root, "transitions"), i, t) {
		int cur = json_integer_value(json_object_get(states, json_string_value(json_object_get(t, "cur"))));
		int next = json_integer_value(json_object_get(states, json_string_value(json_object_get(t, "next"))));

		json_object_foreach(types, type, nr)
			compare_cell(t, type, json_integer_value(nr), cur, next);
		cells++;
	}
	ck_assert_uint_eq(cells, 49);
	json_decref(root);
}
END_TEST

START_TEST(test_qp_state_beyond_the_table_is_refused)
{
	ck_assert(!uvd_modify_qp_is_ok(7, IBV_QPS_RESET, IBV_QPT_RC, IBV_QP_STATE));
	ck_assert(!uvd_modify_qp_is_ok(IBV_QPS_RESET, 7, IBV_QPT_RC, IBV_QP_STATE));
	ck_assert(!uvd_modify_qp_is_ok(-1, -1, IBV_QPT_RC, IBV_QP_STATE));
	ck_assert(!uvd_modify_qp_is_ok(IBV_QPS_RESET, IBV_QPS_INIT, 200, IBV_QP_STATE | IBV_QP_PORT));
}
END_TEST

START_TEST(test_query_gid_tells_empty_slot_from_beyond_the_table)
{
	struct bed bed;
	struct ibv_gid_entry entry;

	bed_open(&bed, &uvd_backend_null, IBV_LINK_LAYER_INFINIBAND);
	ck_assert_int_eq(uvd_config_query_gid(&bed.side[0].dev, 1, 0, &entry), 0);
	ck_assert_int_eq(uvd_config_query_gid(&bed.side[0].dev, 1, 7, &entry), -ENODATA);
	ck_assert_int_eq(uvd_config_query_gid(&bed.side[0].dev, 1, 8, &entry), -EINVAL);
	bed_close(&bed);
}
END_TEST

START_TEST(test_null_signalled_send_completes_in_the_post)
{
	struct bed bed;
	struct end *a = &bed.end[0];
	struct ibv_wc wc;

	bed_open(&bed, &uvd_backend_null, IBV_LINK_LAYER_INFINIBAND);
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(send_wr(a, .wr_id = 7, .opcode = IBV_WR_SEND), 0);
	ck_assert_int_eq(poll_cq(a->scq, &wc), 0);
	ck_assert_int_eq(send_wr(a, .wr_id = 8, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(poll_cq(a->scq, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 8);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	bed_close(&bed);
}
END_TEST

START_TEST(test_null_qp_follows_the_state_table)
{
	struct bed bed;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	bed_open(&bed, &uvd_backend_null, IBV_LINK_LAYER_INFINIBAND);
	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_null.modify_qp(bed.end[0].qp, &attr, IBV_QP_STATE, NULL), -EINVAL);
	bed_close(&bed);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("all");

	tcase_add_test(t, test_qp_state_table_is_the_catalogue);
	tcase_add_test(t, test_qp_state_beyond_the_table_is_refused);
	tcase_add_test(t, test_query_gid_tells_empty_slot_from_beyond_the_table);
	tcase_add_test(t, test_null_signalled_send_completes_in_the_post);
	tcase_add_test(t, test_null_qp_follows_the_state_table);
	return run_suite("backends: common, null", t);
}
