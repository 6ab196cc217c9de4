/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two QPs whose path MTUs differ, and a path MTU that the port does not have. */
#include <errno.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
	memset(b->buf, 0x22, BUF_SIZE);
}

static void teardown(void)
{
	bed_close(&bed);
}

/* The ends have an MTU of 256 and 1024 bytes, in this order or the other. */
static void connect_of(enum ibv_qp_type type, bool reversed)
{
	bed.end[reversed].path_mtu = IBV_MTU_256;
	bed.end[!reversed].path_mtu = IBV_MTU_1024;
	bed_connect(&bed, type);
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t length;
	enum ibv_wc_status status;
} messages[] = {
	{ IBV_WR_SEND, 256, IBV_WC_SUCCESS },
	{ IBV_WR_RDMA_WRITE, 256, IBV_WC_SUCCESS },
	{ IBV_WR_RDMA_READ, 256, IBV_WC_SUCCESS },
	{ IBV_WR_SEND, 257, IBV_WC_REM_INV_REQ_ERR },
	{ IBV_WR_RDMA_WRITE, 257, IBV_WC_REM_INV_REQ_ERR },
	{ IBV_WR_RDMA_WRITE, 2000, IBV_WC_REM_INV_REQ_ERR },
	{ IBV_WR_RDMA_READ, 257, IBV_WC_LOC_LEN_ERR },
};
enum { MESSAGES = sizeof(messages) / sizeof(messages[0]) };

/* Packets do not tell the path MTU of their sender: those that are too long, or not full, contradict their opcodes. */
static void responder_has_told(unsigned int mtu)
{
	char text[128];

	expect_why(b, "path-mtu", "packets");
	if (bed_is_on_wire())
		snprintf(text, sizeof(text),
			 "packets of QP 0x%x contradict each other: opcode, length or order; the peer's",
			 a->qp->qp_num);
	else
		snprintf(text, sizeof(text), "packets of the path MTU %u came, and QP 0x%x has", mtu, b->qp->qp_num);
	ck_assert(was_told(b, text));
}

START_TEST(test_packets_of_another_mtu_are_an_invalid_request)
{
	enum ibv_wr_opcode opcode = messages[_i / 2].opcode;
	enum ibv_wc_status status = messages[_i / 2].status;

	connect_of(IBV_QPT_RC, _i % 2);
	ck_assert_int_eq(post_recv_at(b, 0xb, 4096, 4096), 0);
	send_small(a, b, opcode, messages[_i / 2].length);
	expect(a->scq, 0xa, status);
	ck_assert_int_eq(state_of(b), status == IBV_WC_REM_INV_REQ_ERR ? IBV_QPS_ERR : IBV_QPS_RTS);
	ck_assert_int_eq(b->buf[opcode == IBV_WR_SEND ? 4096 : 0], status || opcode == IBV_WR_RDMA_READ ? 0x22 : 0x11);
	ck_assert_int_eq(a->buf[0], !status && opcode == IBV_WR_RDMA_READ ? 0x22 : 0x11);
	if (status == IBV_WC_REM_INV_REQ_ERR)
		responder_has_told(_i % 2 ? 1024 : 256);
}
END_TEST

/* Requests that wait together are carried out together, up to the first that does not fit. */
START_TEST(test_packets_of_another_mtu_end_a_burst)
{
	enum { N = 6, BAD = 3 };
	struct ibv_sge sges[N];
	struct uvd_send_wr wrs[N];

	connect_of(IBV_QPT_RC, _i % 2);
	for (int i = 0; i < N; i++) {
		sges[i] = sge_at(a, i * 1024, i == BAD ? 300 : 200);
		wrs[i] = wr_to(b, _i < 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, &sges[i], 1);
		wrs[i].wr_id = i;
		wrs[i].next = i + 1 < N ? &wrs[i + 1] : NULL;
	}
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < BAD; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_int_gt(mm_bursts, 0);
	expect(a->scq, BAD, _i < 2 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR);
	expect(a->scq, BAD + 1, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_packets_of_another_mtu_are_dropped_by_uc)
{
	connect_of(IBV_QPT_UC, _i);
	send_small(a, b, IBV_WR_RDMA_WRITE, 257);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[0], 0x22);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	send_small(a, b, IBV_WR_RDMA_WRITE, 256);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wait_until(b->buf[255] == 0x11);
	responder_has_told(_i ? 1024 : 256);
}
END_TEST

START_TEST(test_path_mtu_above_the_ports_is_lowered)
{
	struct uvd_qp_init_attr init;
	struct ibv_qp_attr attr;

	a->side->dev.config.ports[0].active_mtu = IBV_MTU_512;
	a->path_mtu = IBV_MTU_4096;
	b->path_mtu = IBV_MTU_512;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.query_qp(a->qp, &attr, IBV_QP_PATH_MTU, &init), 0);
	ck_assert_int_eq(attr.path_mtu, IBV_MTU_512);
	send_small(a, b, IBV_WR_RDMA_WRITE, 4000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_path_mtu_above_the_ports_is_einval_on_the_wire)
{
	a->side->dev.config.ports[0].active_mtu = IBV_MTU_512;
	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_init(a), 0);
	a->path_mtu = IBV_MTU_1024;
	ck_assert_int_eq(to_rtr(a, b), bed_is_on_wire() ? -EINVAL : 0);
	if (!bed_is_on_wire())
		return;
	a->path_mtu = IBV_MTU_512;
	ck_assert_int_eq(to_rtr(a, b), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mtu");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_packets_of_another_mtu_are_an_invalid_request, 0, 2 * MESSAGES);
	add_local_loop_test(t, test_packets_of_another_mtu_end_a_burst, 0, 4, "bursts are those of the local network");
	tcase_add_loop_test(t, test_packets_of_another_mtu_are_dropped_by_uc, 0, 2);
	add_local_test(t, test_path_mtu_above_the_ports_is_lowered, "a peer on the wire would not know of it");
	tcase_add_test(t, test_path_mtu_above_the_ports_is_einval_on_the_wire);
	return run_suite("backends: soft, path MTUs", t);
}
