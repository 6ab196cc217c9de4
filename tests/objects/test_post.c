/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The request lists of POST_SEND and POST_RECV, as the backend gets them. tests/abi/rules_post.c has their checks. */
#include "tests.h"

static uint32_t pd, cq;
static struct ib_uverbs_create_qp_resp qp;

static void begin(uint8_t type)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, type, pd, cq, &qp), 0);
}

/* ---- the backend's view ------------------------------------------------------------------------------------------ */

enum { MAX = 100 };

static struct uvd_send_wr sent[MAX];
static struct ibv_sge sent_sge[MAX];
static char sent_inline[MAX][512];
static struct uvd_recv_wr received[MAX];
static unsigned int num_posted, refuse_at = ~0u;

static int see_send(struct uvd_qp *q, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
		    struct uvd_work *work)
{
	for (num_posted = 0; wr; wr = wr->next, num_posted++) {
		if (num_posted == refuse_at) {
			*bad = wr;
			return -ENOMEM;
		}
		sent[num_posted] = *wr;
		if (wr->num_sge)
			sent_sge[num_posted] = wr->sg_list[0];
		if (wr->inline_data)
			memcpy(sent_inline[num_posted], wr->inline_data, wr->inline_len);
	}
	return 0;
}

static int see_recv(struct uvd_qp *q, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	for (num_posted = 0; wr; wr = wr->next, num_posted++) {
		if (num_posted == refuse_at) {
			*bad = wr;
			return -ENOMEM;
		}
		received[num_posted] = *wr;
	}
	return 0;
}

static void begin_post(uint8_t type)
{
	begin(type);
	h.ops.post_send = see_send;
	h.ops.post_recv = see_recv;
	num_posted = 0;
	refuse_at = ~0u;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct list {
	struct ib_uverbs_post_send cmd;
	uint8_t bytes[16384];
	size_t len; /* used in bytes */
	struct ib_uverbs_post_send_resp resp;
};

static struct list l;

static void list_start(uint32_t wqe_size)
{
	memset(&l, 0, sizeof(l));
	l.cmd.qp_handle = qp.qp_handle;
	l.cmd.wqe_size = wqe_size;
	l.resp.bad_wr = 0xeeeeeeee;
}

static void *list_wqe(const void *wqe, size_t size)
{
	void *at = l.bytes + l.len;

	memcpy(at, wqe, size);
	l.len += l.cmd.wqe_size;
	l.cmd.wr_count++;
	return at;
}

static void list_sge(uint64_t addr, uint32_t length)
{
	struct ib_uverbs_sge sge = { .addr = addr, .length = length, .lkey = 0x77 };

	memcpy(l.bytes + l.len, &sge, sizeof(sge));
	l.len += sizeof(sge);
	l.cmd.sge_count++;
}

static int list_post(uint32_t command)
{
	/* write() counts in words of 4 bytes */
	size_t len = (sizeof(l.cmd) + l.len + 3) & ~(size_t)3;

	num_posted = 0;
	return harness_write(&h, command, &l, len, &l.resp, sizeof(l.resp));
}

static int list_send(void)
{
	return list_post(IB_USER_VERBS_CMD_POST_SEND);
}

static int list_recv(void)
{
	return list_post(IB_USER_VERBS_CMD_POST_RECV);
}

static void list_of_sends(unsigned int n, uint32_t wqe_size)
{
	list_start(wqe_size);
	for (unsigned int i = 0; i < n; i++) {
		struct ib_uverbs_send_wr wr = { .wr_id = i,
						.num_sge = 1,
						.opcode = IBV_WR_SEND_WITH_IMM,
						.send_flags = IBV_SEND_SIGNALED,
						.ex.imm_data = htobe32(i) };

		list_wqe(&wr, sizeof(wr));
	}
	for (unsigned int i = 0; i < n; i++)
		list_sge(0x1000 * i, i);
}

/* Short lists, lists longer than the stack buffer, and wqe_size values that leave requests unaligned. */
START_TEST(test_post_send_of_any_length_and_distance)
{
	static const unsigned int numbers[] = { 1, 32, 33, 100 }, sizes[] = { 56, 57, 60, 64, 100 };

	begin_post(IBV_QPT_RC);
	for (size_t i = 0; i < UVD_COUNT(numbers); i++) {
		for (size_t k = 0; k < UVD_COUNT(sizes); k++) {
			list_of_sends(numbers[i], sizes[k]);
			ck_assert_int_eq(list_send(), 0);
			ck_assert_uint_eq(l.resp.bad_wr, 0);
			ck_assert_uint_eq(num_posted, numbers[i]);
			for (unsigned int n = 0; n < num_posted; n++) {
				ck_assert_uint_eq(sent[n].wr_id, n);
				ck_assert_uint_eq(sent[n].imm_data, htobe32(n));
				ck_assert_uint_eq(sent_sge[n].addr, 0x1000 * n);
				ck_assert_uint_eq(sent_sge[n].length, n);
				ck_assert_uint_eq(sent_sge[n].lkey, 0x77);
			}
		}
	}
}
END_TEST

START_TEST(test_post_send_operations)
{
	struct ib_uverbs_send_wr rdma = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					  .ex.imm_data = 1,
					  .wr.rdma = { .remote_addr = 2, .rkey = 3 } };
	struct ib_uverbs_send_wr atomic = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
					    .wr.atomic = { .remote_addr = 4, .compare_add = 5, .swap = 6, .rkey = 7 } };
	struct ib_uverbs_send_wr inv = { .opcode = IBV_WR_SEND_WITH_INV, .ex.invalidate_rkey = 8 };

	begin_post(IBV_QPT_RC);
	list_start(sizeof(rdma));
	list_wqe(&rdma, sizeof(rdma));
	list_wqe(&atomic, sizeof(atomic));
	list_wqe(&inv, sizeof(inv));
	ck_assert_int_eq(list_send(), 0);
	ck_assert_uint_eq(num_posted, 3);
	ck_assert_uint_eq(sent[0].imm_data, 1);
	ck_assert_uint_eq(sent[0].remote_addr, 2);
	ck_assert_uint_eq(sent[0].rkey, 3);
	ck_assert_uint_eq(sent[1].remote_addr, 4);
	ck_assert_uint_eq(sent[1].compare_add, 5);
	ck_assert_uint_eq(sent[1].swap, 6);
	ck_assert_uint_eq(sent[1].rkey, 7);
	ck_assert_uint_eq(sent[2].invalidate_rkey, 8);
	ck_assert_ptr_null(sent[2].sg_list);
	rdma.opcode = IBV_WR_BIND_MW;
	list_start(sizeof(rdma));
	list_wqe(&rdma, sizeof(rdma));
	ck_assert_int_eq(list_send(), -EINVAL);
	ck_assert_uint_eq(l.resp.bad_wr, 0xeeeeeeee);
}
END_TEST

START_TEST(test_qp_16_bad_wr_is_written_when_the_post_fails)
{
	begin_post(IBV_QPT_RC);
	for (refuse_at = 0; refuse_at < 4; refuse_at++) {
		list_of_sends(4, 64);
		ck_assert_int_eq(list_send(), -ENOMEM);
		ck_assert_uint_eq(l.resp.bad_wr, refuse_at + 1);
		ck_assert_uint_eq(num_posted, refuse_at);
	}
}
END_TEST

START_TEST(test_post_of_nothing_is_nothing)
{
	begin_post(IBV_QPT_RC);
	list_start(64);
	ck_assert_int_eq(list_send(), 0);
	ck_assert_uint_eq(l.resp.bad_wr, 0);
	ck_assert_int_eq(list_recv(), 0);
}
END_TEST

static void inline_list(const char *a, uint32_t len_a, const char *b, uint32_t len_b)
{
	struct ib_uverbs_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 2, .send_flags = IBV_SEND_INLINE };

	list_start(sizeof(wr));
	list_wqe(&wr, sizeof(wr));
	list_sge((uintptr_t)a, len_a);
	list_sge((uintptr_t)b, len_b);
}

START_TEST(test_post_send_inline_data_is_read_at_once)
{
	uint32_t most = h.config.limits.max_inline_data;
	char a[600], b[] = "second";

	begin_post(IBV_QPT_RC);
	memset(a, 'a', sizeof(a));
	inline_list(a, 5, b, 6);
	ck_assert_int_eq(list_send(), 0);
	ck_assert_uint_eq(sent[0].inline_len, 11);
	ck_assert_mem_eq(sent_inline[0], "aaaaasecond", 11);
	ck_assert_uint_ge(sizeof(a), most);
	inline_list(a, most, b, 0);
	ck_assert_int_eq(list_send(), 0);
	inline_list(a, most, b, 1);
	ck_assert_int_eq(list_send(), -EINVAL);
	inline_list(a, ~0u, b, 1);
	ck_assert_int_eq(list_send(), -EINVAL);
	inline_list(a, 5, BAD, 1);
	ck_assert_int_eq(list_send(), -EFAULT);
	ck_assert_uint_eq(num_posted, 0);
}
END_TEST

START_TEST(test_post_send_long_list_of_inline_data)
{
	struct ib_uverbs_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_INLINE };
	static char data[50][100];

	begin_post(IBV_QPT_RC);
	list_start(sizeof(wr));
	for (int i = 0; i < 50; i++) {
		memset(data[i], 'A' + i, sizeof(data[i]));
		list_wqe(&wr, sizeof(wr));
	}
	for (int i = 0; i < 50; i++)
		list_sge((uintptr_t)data[i], sizeof(data[i]));
	ck_assert_int_eq(list_send(), 0);
	ck_assert_uint_eq(num_posted, 50);
	for (int i = 0; i < 50; i++)
		ck_assert_mem_eq(sent_inline[i], data[i], sizeof(data[i]));
}
END_TEST

START_TEST(test_post_send_ud)
{
	struct ib_uverbs_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM, .ex.imm_data = 9 };
	struct ib_uverbs_ah_attr attr = { .dlid = 0x1234, .port_num = 1 };
	uint32_t ah;

	begin_post(IBV_QPT_UD);
	ck_assert_int_eq(uv_create_ah(h.fd, UV_WRITE, pd, &attr, &ah), 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 5;
	wr.wr.ud.remote_qkey = 6;
	list_start(sizeof(wr));
	for (int i = 0; i < 60; i++)
		list_wqe(&wr, sizeof(wr));
	ck_assert_int_eq(list_send(), 0);
	ck_assert_uint_eq(num_posted, 60);
	ck_assert_uint_eq(sent[59].remote_qpn, 5);
	ck_assert_uint_eq(sent[59].remote_qkey, 6);
	ck_assert_uint_eq(sent[59].imm_data, 9);
	/* A bad address handle comes last: the core must put its references to the others, or DESTROY_AH fails. */
	wr.wr.ud.ah = 77;
	list_wqe(&wr, sizeof(wr));
	ck_assert_int_eq(list_send(), -ENOENT);
	wr.wr.ud.ah = pd;
	l.len -= sizeof(wr);
	l.cmd.wr_count--;
	list_wqe(&wr, sizeof(wr));
	ck_assert_int_eq(list_send(), -EINVAL);
	/* qp-16: a UD QP takes only SEND and SEND_WITH_IMM */
	list_start(sizeof(wr));
	wr.wr.ud.ah = ah;
	wr.opcode = IBV_WR_RDMA_WRITE;
	list_wqe(&wr, sizeof(wr));
	ck_assert_int_eq(list_send(), -EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	list_start(sizeof(wr));
	list_wqe(&wr, sizeof(wr));
	ck_assert_int_eq(list_send(), -EINVAL);
	ck_assert_int_eq(uv_destroy_ah(h.fd, UV_WRITE, ah), 0);
}
END_TEST

START_TEST(test_post_recv_of_any_length)
{
	static const unsigned int numbers[] = { 1, 32, 33, 100 };

	begin_post(IBV_QPT_RC);
	for (size_t i = 0; i < UVD_COUNT(numbers); i++) {
		list_start(sizeof(struct ib_uverbs_recv_wr));
		for (unsigned int k = 0; k < numbers[i]; k++) {
			struct ib_uverbs_recv_wr wr = { .wr_id = k, .num_sge = k % 2 };

			list_wqe(&wr, sizeof(wr));
		}
		for (unsigned int k = 0; k < numbers[i] / 2; k++)
			list_sge(0, 0);
		ck_assert_int_eq(list_recv(), 0);
		ck_assert_uint_eq(num_posted, numbers[i]);
		ck_assert_uint_eq(received[num_posted - 1].wr_id, num_posted - 1);
		ck_assert_ptr_null(received[num_posted - 1].next);
		refuse_at = numbers[i] - 1;
		ck_assert_int_eq(list_recv(), -ENOMEM);
		ck_assert_uint_eq(l.resp.bad_wr, numbers[i]);
		refuse_at = ~0u;
	}
}
END_TEST

TEST_LIST(test_post_send_of_any_length_and_distance, test_post_send_operations,
	  test_qp_16_bad_wr_is_written_when_the_post_fails, test_post_of_nothing_is_nothing,
	  test_post_send_inline_data_is_read_at_once, test_post_send_long_list_of_inline_data, test_post_send_ud,
	  test_post_recv_of_any_length)
