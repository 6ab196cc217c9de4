/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests and completions as the ABI has them, and back. */
#include <string.h>

#include "../suite.h"
#include "call/call.h"

/* Each field has a value of its own. */
static const struct uvd_send_wr all = {
	.wr_id = 0x1122334455667788,
	.num_sge = 3,
	.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
	.imm_data = 0x01020304,
	.remote_addr = 0x1111222233334444,
	.rkey = 0x5555,
	.compare_add = 0x6666777788889999,
	.swap = 0xaaaabbbbccccdddd,
	.remote_qpn = 0x0f0f0f,
	.remote_qkey = 0x11111111,
};

/* ---- what POST_SEND carries for each operation ----------------------------------------------------------------------- */

enum { IMM = 1, REMOTE = 2, OPERANDS = 4 };

static const struct {
	enum ibv_wr_opcode opcode;
	unsigned int has;
} operations[] = {
	{ IBV_WR_SEND, 0 },
	{ IBV_WR_SEND_WITH_IMM, IMM },
	{ IBV_WR_SEND_WITH_INV, IMM }, /* the key is in the same place */
	{ IBV_WR_RDMA_WRITE, REMOTE },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, REMOTE | IMM },
	{ IBV_WR_RDMA_READ, REMOTE },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, REMOTE | OPERANDS },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, REMOTE | OPERANDS },
};

START_TEST(test_a_send_request_has_the_same_fields_after_both_conversions)
{
	struct uvd_send_wr wr = all, back = {}, expected = {};
	struct ib_uverbs_send_wr out;

	wr.opcode = operations[_i].opcode;
	uvd_send_wr_put(&out, &wr, false);
	ck_assert_uint_eq(out.wr_id, all.wr_id);
	ck_assert_uint_eq(out.num_sge, all.num_sge);
	ck_assert_uint_eq(out.send_flags, all.send_flags);
	ck_assert_uint_eq(out.opcode, operations[_i].opcode);
	ck_assert(uvd_send_wr_take(&back, &out));
	if (operations[_i].has & IMM)
		expected.imm_data = all.imm_data;
	if (operations[_i].has & REMOTE) {
		expected.remote_addr = all.remote_addr;
		expected.rkey = all.rkey;
	}
	if (operations[_i].has & OPERANDS) {
		expected.compare_add = all.compare_add;
		expected.swap = all.swap;
	}
	ck_assert_mem_eq(&back, &expected, sizeof(back));
}
END_TEST

START_TEST(test_a_datagram_has_its_peer)
{
	struct uvd_send_wr wr = all;
	struct ib_uverbs_send_wr out;

	wr.opcode = IBV_WR_SEND;
	uvd_send_wr_put(&out, &wr, true);
	ck_assert_uint_eq(out.wr.ud.remote_qpn, all.remote_qpn);
	ck_assert_uint_eq(out.wr.ud.remote_qkey, all.remote_qkey);
	ck_assert_uint_eq(out.wr.ud.ah, 0);
}
END_TEST

START_TEST(test_post_send_has_no_other_operations)
{
	static const uint32_t others[] = { IBV_WR_LOCAL_INV,	IBV_WR_BIND_MW, IBV_WR_TSO, IBV_WR_DRIVER1, 12, 13, 14,
					   IBV_WR_ATOMIC_WRITE, 1000,		UINT32_MAX };

	for (unsigned int i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct uvd_send_wr wr = {}, nothing = {};
		struct ib_uverbs_send_wr in;

		memset(&in, 0xff, sizeof(in));
		in.opcode = others[i];
		ck_assert(!uvd_send_wr_take(&wr, &in));
		ck_assert_mem_eq(&wr, &nothing, sizeof(wr));
	}
}
END_TEST

/* ---- completions ------------------------------------------------------------------------------------------------- */

START_TEST(test_a_completion_has_every_field_and_clear_reserved_ones)
{
	const struct ibv_wc wc = { .wr_id = 1,
				   .status = 2,
				   .opcode = 3,
				   .vendor_err = 4,
				   .byte_len = 5,
				   .imm_data = 6,
				   .qp_num = 7,
				   .src_qp = 8,
				   .wc_flags = IBV_WC_WITH_INV,
				   .pkey_index = 9,
				   .slid = 10,
				   .sl = 11,
				   .dlid_path_bits = 12 };
	struct ib_uverbs_wc out, expected = { .wr_id = 1,
					      .status = 2,
					      .opcode = 3,
					      .vendor_err = 4,
					      .byte_len = 5,
					      .ex.imm_data = 6,
					      .qp_num = 7,
					      .src_qp = 8,
					      .wc_flags = UVD_WC_WITH_INVALIDATE,
					      .pkey_index = 9,
					      .slid = 10,
					      .sl = 11,
					      .dlid_path_bits = 12 };

	memset(&out, 0xff, sizeof(out));
	uvd_wc_put(&out, &wc);
	ck_assert_mem_eq(&out, &expected, sizeof(out));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("work");

	tcase_add_loop_test(t, test_a_send_request_has_the_same_fields_after_both_conversions, 0,
			    sizeof(operations) / sizeof(*operations));
	tcase_add_test(t, test_a_datagram_has_its_peer);
	tcase_add_test(t, test_post_send_has_no_other_operations);
	tcase_add_test(t, test_a_completion_has_every_field_and_clear_reserved_ones);
	return run_suite("work requests and completions", t);
}
