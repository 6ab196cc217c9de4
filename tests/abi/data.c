/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Data by commands alone: POST_SEND, POST_RECV, POLL_CQ. Only drivers without mapped queues support that. */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "abi.h"

enum { LEN = 10000, BUF = 16384 };

/* Two QPs of one open file, each the other's peer, in RTS. */
struct pair {
	int fd;
	uint32_t pd, cq[2];
	struct uv_qp qp[2];
	uint8_t *buf[2];
	struct uv_mr mr[2];
};

static struct pair make_pair(unsigned int cqe)
{
	struct uv_cq_attr cq = uv_cq_default;
	struct pair p;

	p.fd = open_context(NULL);
	cq.cqe = cqe;
	expect_ok(uv_alloc_pd(p.fd, UV_WRITE, &p.pd));
	for (int i = 0; i < 2; i++) {
		struct uv_qp_attr attr;

		expect_ok(uv_create_cq(p.fd, UV_WRITE, &cq, &p.cq[i], NULL));
		attr = uv_qp_attr(p.pd, p.cq[i]);
		attr.cap.max_inline_data = 0;
		expect_ok(uv_create_qp(p.fd, UV_WRITE, &attr, &p.qp[i]));
		p.buf[i] = uv_pages(BUF, PROT_READ | PROT_WRITE);
		expect_ok(uv_reg_mr(p.fd, UV_WRITE, p.pd, p.buf[i], BUF,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
				    &p.mr[i]));
		expect_ok(qp_to_init(p.fd, p.qp[i].handle));
	}
	for (int i = 0; i < 2; i++) {
		expect_ok(qp_to_rtr(p.fd, p.qp[i].handle, p.qp[!i].qpn));
		expect_ok(qp_to_rts(p.fd, p.qp[i].handle));
	}
	return p;
}

static struct ib_uverbs_sge sge(const struct pair *p, int side, size_t offset, uint32_t len)
{
	return (struct ib_uverbs_sge){ (uintptr_t)p->buf[side] + offset, len, p->mr[side].lkey };
}

static void fill(uint8_t *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = seed + i * 7 + (i >> 8);
}

static void post_recv(const struct pair *p, enum uv_front front, int side, uint64_t wr_id, uint32_t len)
{
	struct ib_uverbs_recv_wr wr = { .wr_id = wr_id, .num_sge = 1 };
	struct ib_uverbs_sge s = sge(p, side, 0, len);

	expect_ok(uv_post_recv(p->fd, front, p->qp[side].handle, &wr, 1, &s, 1, NULL));
}

/* Side 0 posts len bytes. The request names the peer's buffer and immediate data 0x1234, for opcodes that use them. */
static void post_send(const struct pair *p, enum uv_front front, uint32_t opcode, uint32_t len, uint32_t rkey)
{
	struct ib_uverbs_send_wr wr = {
		.wr_id = 0xabcdef0123456789, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ib_uverbs_sge s = sge(p, 0, 0, len);

	wr.ex.imm_data = 0x34120000;
	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1];
	wr.wr.rdma.rkey = rkey;
	expect_ok(uv_post_send(p->fd, front, p->qp[0].handle, &wr, 1, &s, 1, NULL));
}

static struct ib_uverbs_wc completion(const struct pair *p, enum uv_front front, int side)
{
	struct ib_uverbs_wc wc = {};
	int n;

	for (int i = 0; i < 5000; i++) {
		n = uv_poll_cq(p->fd, front, p->cq[side], 1, &wc);
		ck_assert_msg(n >= 0, "poll: %s", answer(n));
		if (n)
			return wc;
		usleep(1000);
	}
	ck_abort_msg("no completion on side %d", side);
	return wc;
}

static void expect_sent(const struct pair *p, enum uv_front front, uint32_t opcode)
{
	struct ib_uverbs_wc wc = completion(p, front, 0);

	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.opcode, opcode);
	ck_assert_uint_eq(wc.wr_id, 0xabcdef0123456789);
	ck_assert_uint_eq(wc.qp_num, p->qp[0].qpn);
	ck_assert_uint_eq(wc.reserved, 0);
}

START_TEST(test_data_send_arrives_in_the_receive)
{
	struct pair p = make_pair(16);
	struct ib_uverbs_wc wc;

	fill(p.buf[0], LEN, 3);
	post_recv(&p, _i, 1, 42, BUF);
	post_send(&p, _i, IBV_WR_SEND, LEN, 0);
	expect_sent(&p, _i, IBV_WC_SEND);
	wc = completion(&p, _i, 1);
	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wr_id, 42);
	ck_assert_uint_eq(wc.byte_len, LEN);
	ck_assert_uint_eq(wc.wc_flags, 0);
	ck_assert_uint_eq(wc.qp_num, p.qp[1].qpn);
	ck_assert_mem_eq(p.buf[0], p.buf[1], LEN);
	ck_assert_uint_eq(p.buf[1][LEN], 0);
}
END_TEST

START_TEST(test_data_send_with_immediate)
{
	struct pair p = make_pair(16);
	struct ib_uverbs_wc wc;

	fill(p.buf[0], 8, 3);
	post_recv(&p, _i, 1, 43, BUF);
	post_send(&p, _i, IBV_WR_SEND_WITH_IMM, 8, 0);
	expect_sent(&p, _i, IBV_WC_SEND);
	wc = completion(&p, _i, 1);
	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(wc.ex.imm_data, 0x34120000);
	ck_assert_mem_eq(p.buf[0], p.buf[1], 8);
}
END_TEST

START_TEST(test_data_rdma_write)
{
	struct ib_uverbs_wc wc;
	struct pair p = make_pair(16);

	fill(p.buf[0], LEN, 5);
	post_send(&p, _i, IBV_WR_RDMA_WRITE, LEN, p.mr[1].rkey);
	expect_sent(&p, _i, IBV_WC_RDMA_WRITE);
	ck_assert_mem_eq(p.buf[0], p.buf[1], LEN);
	ck_assert_int_eq(uv_poll_cq(p.fd, _i, p.cq[1], 1, &wc), 0); /* no completion at the peer */
}
END_TEST

START_TEST(test_data_rdma_write_with_immediate)
{
	struct pair p = make_pair(16);
	struct ib_uverbs_wc wc;

	fill(p.buf[0], LEN, 5);
	post_recv(&p, _i, 1, 44, 0);
	post_send(&p, _i, IBV_WR_RDMA_WRITE_WITH_IMM, LEN, p.mr[1].rkey);
	expect_sent(&p, _i, IBV_WC_RDMA_WRITE);
	wc = completion(&p, _i, 1);
	ck_assert_uint_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(wc.byte_len, LEN);
	ck_assert_uint_eq(wc.ex.imm_data, 0x34120000);
	ck_assert_mem_eq(p.buf[0], p.buf[1], LEN);
}
END_TEST

START_TEST(test_data_rdma_read)
{
	struct pair p = make_pair(16);

	fill(p.buf[1], LEN, 9);
	post_send(&p, _i, IBV_WR_RDMA_READ, LEN, p.mr[1].rkey);
	expect_sent(&p, _i, IBV_WC_RDMA_READ);
	ck_assert_mem_eq(p.buf[0], p.buf[1], LEN);
}
END_TEST

START_TEST(test_data_wrong_rkey_is_a_remote_access_error)
{
	struct pair p = make_pair(16);

	post_send(&p, _i, IBV_WR_RDMA_WRITE, LEN, p.mr[1].rkey ^ 0x100);
	ck_assert_uint_eq(completion(&p, _i, 0).status, IBV_WC_REM_ACCESS_ERR);
	post_recv(&p, _i, 0, 1, 8); /* the QP is in the error state: flushed */
	ck_assert_uint_eq(completion(&p, _i, 0).status, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_data_short_receive_is_an_invalid_request)
{
	struct pair p = make_pair(16);

	post_recv(&p, _i, 1, 1, 4);
	post_send(&p, _i, IBV_WR_SEND, LEN, 0);
	ck_assert_uint_eq(completion(&p, _i, 0).status, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(completion(&p, _i, 1).status, IBV_WC_LOC_LEN_ERR);
}
END_TEST

START_TEST(test_data_late_receive_is_waited_for)
{
	struct pair p = make_pair(16);
	struct ib_uverbs_wc wc;

	fill(p.buf[0], LEN, 3);
	post_send(&p, _i, IBV_WR_SEND, LEN, 0);
	usleep(50000);
	ck_assert_int_eq(uv_poll_cq(p.fd, _i, p.cq[0], 1, &wc), 0);
	post_recv(&p, _i, 1, 42, BUF);
	expect_sent(&p, _i, IBV_WC_SEND);
	ck_assert_uint_eq(completion(&p, _i, 1).status, IBV_WC_SUCCESS);
	ck_assert_mem_eq(p.buf[0], p.buf[1], LEN);
}
END_TEST

START_TEST(test_data_moving_to_error_flushes_receives_in_order)
{
	struct pair p = make_pair(16);
	struct ib_uverbs_wc wc[8];

	for (int i = 0; i < 5; i++)
		post_recv(&p, _i, 1, 100 + i, 8);
	expect_ok(qp_to_state(p.fd, p.qp[1].handle, IBV_QPS_ERR));
	ck_assert_int_eq(uv_poll_cq(p.fd, _i, p.cq[1], 8, wc), 5);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc[i].wr_id, 100 + i);
	}
}
END_TEST

/* POLL_CQ ignores the response length that the command gives: only the end of the memory limits the reply. */
START_TEST(test_cq_04_poll_writes_until_memory_ends)
{
	struct ib_uverbs_poll_cq in = { .ne = 8 };
	struct pair p = make_pair(16);
	uint8_t *out = uv_guard(NULL, 8 + 2 * 48 + 4);
	struct ib_uverbs_wc second;
	uint32_t count;
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_POLL_CQ, &in, sizeof(in), out, 8 };

	in.cq_handle = p.cq[1];
	for (int i = 0; i < 2; i++)
		post_recv(&p, _i, 1, 100 + i, 8);
	expect_ok(qp_to_state(p.fd, p.qp[1].handle, IBV_QPS_ERR));
	expect_ok(uv_cmd(p.fd, _i, &cmd));
	memcpy(&count, out, sizeof(count));
	memcpy(&second, out + 8 + sizeof(second), sizeof(second));
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(second.wr_id, 101);
	for (int i = 0; i < 3; i++)
		post_recv(&p, _i, 1, 200 + i, 8); /* flushed at once; the memory has no room for the third */
	expect(uv_cmd(p.fd, _i, &cmd), EFAULT);
}
END_TEST

/* The other RAW_PACKET QP on the port receives the frame. Without CAP_NET_RAW there is none (qp-01). */
START_TEST(test_raw_packet_frames)
{
	struct ib_uverbs_modify_qp modify = { .port_num = 1 };
	struct uv_cq_attr cq = uv_cq_default;
	struct ib_uverbs_wc wc;
	struct uv_qp_attr attr;
	struct pair p;

	p.fd = open_context(NULL);
	expect_ok(uv_alloc_pd(p.fd, UV_WRITE, &p.pd));
	for (int i = 0; i < 2; i++) {
		expect_ok(uv_create_cq(p.fd, UV_WRITE, &cq, &p.cq[i], NULL));
		attr = uv_qp_attr(p.pd, p.cq[i]);
		attr.type = IBV_QPT_RAW_PACKET;
		attr.cap.max_inline_data = 0;
		if (geteuid() && uv_create_qp(p.fd, _i, &attr, &p.qp[i]) == -EPERM)
			SKIP("only a user with CAP_NET_RAW has RAW_PACKET QPs");
		expect_ok(uv_create_qp(p.fd, _i, &attr, &p.qp[i]));
		p.buf[i] = uv_pages(BUF, PROT_READ | PROT_WRITE);
		expect_ok(uv_reg_mr(p.fd, UV_WRITE, p.pd, p.buf[i], BUF, IBV_ACCESS_LOCAL_WRITE, &p.mr[i]));
		for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
			modify.qp_handle = p.qp[i].handle;
			modify.qp_state = state;
			modify.attr_mask = IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0);
			expect_ok(uv_modify_qp(p.fd, UV_WRITE, &modify));
		}
	}
	fill(p.buf[0], 100, 1);
	post_recv(&p, UV_WRITE, 1, 77, 200);
	post_send(&p, UV_WRITE, IBV_WR_SEND, 100, 0);
	expect_sent(&p, UV_WRITE, IBV_WC_SEND);
	wc = completion(&p, UV_WRITE, 1);
	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 77);
	ck_assert_uint_eq(wc.byte_len, 100);
	ck_assert_int_eq(memcmp(p.buf[0], p.buf[1], 100), 0);
}
END_TEST

TCase *case_data(void)
{
	TCase *tc = tcase_create("data");

	/* The queues of other drivers are mapped memory: see "data" in target.c. */
	if (choice("data"))
		return tc;
	tcase_add_loop_test(tc, test_data_send_arrives_in_the_receive, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_send_with_immediate, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_rdma_write, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_rdma_write_with_immediate, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_rdma_read, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_wrong_rkey_is_a_remote_access_error, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_short_receive_is_an_invalid_request, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_late_receive_is_waited_for, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_data_moving_to_error_flushes_receives_in_order, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_cq_04_poll_writes_until_memory_ends, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_raw_packet_frames, 0, UV_FRONTS);
	return tc;
}
