/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UC and UD of the soft backend: messages that arrive, and messages that are lost unnoticed by the sender. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"
#include "wire/wire.h"
#include "../suite.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_ah *ah;

static void open_with(uint8_t link_layer)
{
	bed_open(&bed, &uvd_backend_soft, link_layer);
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i * 7 + i / 251;
	ah = calloc(1, uvd_backend_soft.size_ah);
	ah->pd = a->side->pd;
	ah->attr = bed_address_of(b);
	ah->attr.grh.dgid = b->side->dev.config.ports[0].gids[0];
	ah->attr.grh.hop_limit = 9;
	ck_assert_int_eq(uvd_backend_soft.create_ah(ah, NULL), 0);
}

static void setup(void)
{
	open_with(IBV_LINK_LAYER_INFINIBAND);
}

static void teardown(void)
{
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(ah), 0);
	free(ah);
	bed_close(&bed);
}

static int send_ud_by(enum ibv_wr_opcode opcode, uint32_t length, uint32_t qkey)
{
	struct ibv_sge sge = sge_at(a, 0, length);

	return send_wr(a, .wr_id = 0xa, .opcode = opcode, .imm_data = 5, .sg_list = &sge, .num_sge = 1,
		       .send_flags = IBV_SEND_SIGNALED, .ah = ah, .remote_qpn = b->qp->qp_num, .remote_qkey = qkey);
}

static int send_ud(uint32_t length, uint32_t qkey)
{
	return send_ud_by(IBV_WR_SEND_WITH_IMM, length, qkey);
}

static void expect_sent(enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(a->scq);

	ck_assert_uint_eq(wc.wr_id, 0xa);
	ck_assert_int_eq(wc.status, status);
}

static void expect_lost(void)
{
	struct ibv_wc wc;

	expect_sent(IBV_WC_SUCCESS);
	ck_assert_int_eq(poll_cq(b->rcq, &wc), 0);
	ck_assert_int_eq(state_of(a), IBV_QPS_RTS);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
}

START_TEST(test_ud_message_follows_40_bytes)
{
	struct ibv_wc wc;

	bed_connect(&bed, IBV_QPT_UD);
	memset(b->buf, 0x55, 40);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1040), 0);
	ck_assert_int_eq(send_ud(1000, 0x1234), 0);
	expect_sent(IBV_WC_SUCCESS);
	wc = wait_wc(b->rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 1040);
	ck_assert_uint_eq(wc.src_qp, a->qp->qp_num);
	ck_assert_uint_eq(wc.slid, 1);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(wc.imm_data, 5);
	ck_assert_int_eq(memcmp(b->buf + 40, a->buf, 1000), 0);
	ck_assert_int_eq(b->buf[0], 0x55);
}
END_TEST

START_TEST(test_ud_grh_names_both_gids)
{
	struct uvd_port_config *from = &a->side->dev.config.ports[0], *to = &b->side->dev.config.ports[0];
	struct ibv_grh *grh;
	struct ibv_wc wc;

	teardown();
	open_with(IBV_LINK_LAYER_ETHERNET);
	grh = (struct ibv_grh *)b->buf;
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 140), 0);
	ck_assert_int_eq(send_ud(100, 0x1234), 0);
	wc = wait_wc(b->rcq);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	ck_assert_uint_eq(wc.imm_data, 5);
	ck_assert_uint_eq(wc.byte_len, 140);
	ck_assert_uint_eq(wc.src_qp, a->qp->qp_num);
	ck_assert_uint_eq(wc.slid, 0); /* an Ethernet port has no LID */
	ck_assert_int_eq(memcmp(&grh->sgid, &from->gids[0], 16), 0);
	ck_assert_int_eq(memcmp(&grh->dgid, &to->gids[0], 16), 0);
	ck_assert_uint_eq(b->buf[0] >> 4, 6);
	ck_assert_uint_eq(grh->hop_limit, 9);
	ck_assert_int_eq(memcmp(b->buf + 40, a->buf, 100), 0);
}
END_TEST

/* payload: the message padded to 4 bytes, BTH (12 bytes), DETH (8), ImmDt (4, if there is one) and ICRC (4). */
static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t length, payload;
} payloads[] = {
	{ IBV_WR_SEND, 0, 24 },	   { IBV_WR_SEND, 98, 124 },	       { IBV_WR_SEND, 100, 124 },
	{ IBV_WR_SEND, 101, 128 }, { IBV_WR_SEND_WITH_IMM, 100, 128 },
};

/* On RoCE v2 the next header is UDP, whose 8 bytes count, too; on InfiniBand it is the IBA transport. */
START_TEST(test_ud_header_has_the_length_of_the_message)
{
	const bool ethernet = _i % 2;
	const int n = _i / 2;
	const struct ibv_grh *grh;

	teardown();
	open_with(ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND);
	ah->attr.is_global = true;
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 200), 0);
	ck_assert_int_eq(send_ud_by(payloads[n].opcode, payloads[n].length, 0x1234), 0);
	ck_assert(wait_wc(b->rcq).wc_flags & IBV_WC_GRH);
	grh = (struct ibv_grh *)b->buf;
	ck_assert_uint_eq(ntohs(grh->paylen), payloads[n].payload + (ethernet ? 8 : 0));
	ck_assert_uint_eq(grh->next_hdr, ethernet ? 17 : 0x1b);
}
END_TEST

/* The one's complement sum of all words, which is 0xffff if the checksum is right (RFC 1071). */
static uint16_t sum_of(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

START_TEST(test_ud_header_of_ipv4_gids_is_an_ipv4_header_in_the_last_20_bytes)
{
	static const uint8_t expected[10] = { 0x45, 0xb8, 0, 20 + 8 + 128, 0, 0, 0x40, 0, 9, 17 };
	static const uint8_t addresses[8] = { 192, 0, 2, 1, 192, 0, 2, 2 }, zeros[20];
	const uint8_t *header;
	union ibv_gid *gids[2];
	struct ibv_wc wc;

	teardown();
	open_with(IBV_LINK_LAYER_ETHERNET);
	header = (uint8_t *)b->buf + 20;
	for (int i = 0; i < 2; i++) {
		gids[i] = &bed.end[i].side->dev.config.ports[0].gids[0];
		memset(gids[i], 0, 10);
		memset(gids[i]->raw + 10, 0xff, 2);
		memcpy(gids[i]->raw + 12, addresses + 4 * i, 4);
	}
	ah->attr.grh.dgid = *gids[1];
	ah->attr.grh.traffic_class = 0xb8;
	bed_connect(&bed, IBV_QPT_UD);
	memset(b->buf, 0x55, 40);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 200), 0);
	ck_assert_int_eq(send_ud_by(IBV_WR_SEND_WITH_IMM, 100, 0x1234), 0);
	wc = expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert(wc.wc_flags & IBV_WC_GRH && wc.sl == 0xa);
	ck_assert_mem_eq(b->buf, zeros, 20);
	ck_assert_mem_eq(header, expected, 10);
	ck_assert_mem_eq(header + 12, addresses, 8);
	ck_assert_uint_eq(sum_of(header), 0xffff);
	ck_assert_mem_eq(b->buf + 40, a->buf, 100);
}
END_TEST

START_TEST(test_ud_header_of_an_ipv4_and_an_ipv6_gid_is_an_ipv6_header)
{
	union ibv_gid *from;

	teardown();
	open_with(IBV_LINK_LAYER_ETHERNET);
	from = &a->side->dev.config.ports[0].gids[0];
	memset(from, 0, sizeof(*from));
	memset(from->raw + 10, 0xff, 3);
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 200), 0);
	ck_assert_int_eq(send_ud(100, 0x1234), 0);
	ck_assert_uint_eq(expect(b->rcq, 0xb, IBV_WC_SUCCESS).sl, 9);
	ck_assert_uint_eq(b->buf[0], 0x60);
	ck_assert_mem_eq(b->buf + 8, from, 16);
	ck_assert_mem_eq(b->buf + 24, &ah->attr.grh.dgid, 16);
}
END_TEST

/* A connected QP's receive has no header in its buffer, whatever the packets had. */
START_TEST(test_completions_of_connected_qps_have_no_grh)
{
	struct ibv_sge sge;

	teardown();
	open_with(IBV_LINK_LAYER_ETHERNET);
	bed_connect(&bed, _i ? IBV_QPT_UC : IBV_QPT_RC);
	sge = sge_at(a, 0, 100);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	ck_assert_uint_eq(expect(b->rcq, 0xb, IBV_WC_SUCCESS).wc_flags, 0);
}
END_TEST

START_TEST(test_ud_wrong_qkey_is_lost)
{
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1000), 0);
	ck_assert_int_eq(send_ud(100, 0x9999), 0);
	expect_lost();
	expect_why(b, "datagram-qkey", "datagram-qkey");
	/* A Q_Key with the top bit set means the sender's own Q_Key. */
	ck_assert_int_eq(send_ud(100, 0x80000000), 0);
	ck_assert_int_eq(wait_wc(b->rcq).status, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_ud_without_receive_or_too_long_is_lost)
{
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(send_ud(100, 0x1234), 0);
	expect_lost();
	expect_why(b, "datagram-no-receive", "datagram-no-receive");
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 139), 0);
	ck_assert_int_eq(send_ud(100, 0x1234), 0);
	expect_lost();
	expect_why(b, "datagram-short", "datagram-short");
	/* The receive is still queued, and takes a message that fits. */
	ck_assert_int_eq(send_ud(99, 0x1234), 0);
	ck_assert_uint_eq(wait_wc(b->rcq).wr_id, 0xb);
}
END_TEST

START_TEST(test_ud_request_without_an_address_of_its_pd_is_einval)
{
	struct uvd_ah other = *ah;

	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND), -EINVAL);
	other.pd = b->side->pd;
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND, .ah = &other), -EINVAL);
}
END_TEST

static const enum ibv_wr_opcode not_of_datagrams[] = {
	IBV_WR_RDMA_WRITE,	   IBV_WR_RDMA_WRITE_WITH_IMM,	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV
};

START_TEST(test_ud_has_sends_only)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, not_of_datagrams[_i], &sge, 1);

	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	wr.ah = ah;
	wr.remote_qpn = b->qp->qp_num;
	wr.remote_qkey = 0x1234;
	expect_not_postable(a, &wr);
	expect_nothing(b->rcq);
}
END_TEST

START_TEST(test_ud_message_above_the_mtu_is_a_length_error_and_sqe)
{
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 5000), 0);
	ck_assert_int_eq(send_ud(4097, 0x1234), 0);
	expect_sent(IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_SQE);
	expect_nothing(b->rcq);
	ck_assert_int_eq(to_state(a, IBV_QPS_RTS), 0);
	ck_assert_int_eq(send_ud(4096, 0x1234), 0);
	expect_sent(IBV_WC_SUCCESS);
	ck_assert_uint_eq(expect(b->rcq, 0xb, IBV_WC_SUCCESS).byte_len, 4136);
}
END_TEST

START_TEST(test_ud_error_at_the_sender_is_sqe_and_rts_again)
{
	struct ibv_sge sge = sge_at(a, 0, 8);

	bed_connect(&bed, IBV_QPT_UD);
	sge.lkey ^= 1;
	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .ah = ah,
				 .remote_qpn = b->qp->qp_num, .remote_qkey = 0x1234),
			 0);
	expect_sent(IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_SQE);
	ck_assert_int_eq(send_ud(8, 0x1234), 0);
	expect_sent(IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(to_state(a, IBV_QPS_RTS), 0);
	ck_assert_int_eq(send_ud(8, 0x1234), 0);
	expect_sent(IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_uc_carries_sends_and_writes)
{
	struct ibv_sge sge = sge_at(a, 0, 100000);

	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100000), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	ck_assert_uint_eq(wait_wc(b->rcq).byte_len, 100000);
	ck_assert_int_eq(memcmp(a->buf, b->buf, 100000), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .remote_addr = (uintptr_t)b->buf + 100000, .rkey = b->mr->rkey),
			 0);
	wait_until(!memcmp(a->buf, b->buf + 100000, 100000));
}
END_TEST

/* Sends packets of an RDMA WRITE to b as its peer might, from a's address and another port. `told`: the length in the first header. */
static void send_uc_write(uint32_t told, const uint8_t *operations, unsigned int num)
{
	static const uint8_t payload[1024] = { [0 ... 1023] = 0x66 };
	const struct uvd_socket_address address = { .gid = a->side->dev.config.ports[0].gids[0], .port = 4790 };
	struct uvd_socket_out out = {
		.to = b->side->dev.config.ports[0].gids[0],
		.to_port = UVD_ROCE_PORT,
		.num_iov = 1,
		.iov = { { (void *)payload, sizeof(payload) } },
	};
	struct uvd_packet packet = {
		.pkey = 0xffff,
		.dest_qpn = b->qp->qp_num,
		.va = (uintptr_t)b->buf,
		.rkey = b->mr->rkey,
		.length = told,
		.payload_len = sizeof(payload),
	};
	struct uvd_socket_sender *sender = uvd_socket_sender_new();
	struct uvd_socket *socket;
	int err, fd = uvd_socket_open_fd(&address, NULL);

	ck_assert_int_ge(fd, 0);
	socket = uvd_socket_adopt(fd, &err);
	ck_assert_ptr_nonnull(socket);
	for (unsigned int i = 0; i < num; i++) {
		packet.psn = i;
		packet.opcode = UVD_TRANSPORT_UC | operations[i];
		out.head_len = uvd_packet_put_headers(&packet, out.head);
		ck_assert_uint_eq(uvd_socket_send(socket, sender, &out, 1), 1);
		ck_assert_int_eq(out.err, 0);
	}
	uvd_socket_sender_free(sender);
	uvd_socket_free(socket);
}

static const struct {
	uint32_t told;
	uint8_t operations[3];
	uint32_t written; /* bytes */
} uc_writes[] = {
	{ 3072, { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE, UVD_RDMA_WRITE_LAST }, 3072 },
	{ 1024, { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE, UVD_RDMA_WRITE_MIDDLE }, 0 },
	{ 0, { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE, UVD_RDMA_WRITE_MIDDLE }, 0 },
	{ 1024, { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE, UVD_RDMA_WRITE_LAST }, 0 },
	{ 4096, { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE, UVD_RDMA_WRITE_LAST }, 2048 },
};

/* The packets may come in several parts: a part that is within the length that was told is written. */
START_TEST(test_uc_write_goes_no_further_than_its_first_packet_told)
{
	struct ibv_sge sge = sge_at(a, 0, 1);
	uint32_t end = 0;

	bed_connect(&bed, IBV_QPT_UC);
	memset(b->buf, 0, 4096);
	ck_assert_int_eq(post_recv_at(b, 0xb, 8192, 1), 0);
	send_uc_write(uc_writes[_i].told, uc_writes[_i].operations, 3);
	/* The packet that comes next has been taken: so have those before it. */
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	wait_wc(b->rcq);
	while (end < 4096 && b->buf[end] == 0x66)
		end++;
	ck_assert_uint_le(end, uc_writes[_i].written);
	if (uc_writes[_i].told == uc_writes[_i].written)
		ck_assert_uint_eq(end, uc_writes[_i].written);
	for (; end < 4096; end++)
		ck_assert_int_eq(b->buf[end], 0);
}
END_TEST

static const enum ibv_wr_opcode not_of_uc[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						IBV_WR_ATOMIC_FETCH_AND_ADD };

START_TEST(test_uc_has_no_reads_and_no_atomics)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, not_of_uc[_i], &sge, 1);

	bed_connect(&bed, IBV_QPT_UC);
	expect_not_postable(a, &wr);
	ck_assert_int_eq(a->buf[1], 7); /* a READ would bring 0 */
}
END_TEST

START_TEST(test_uc_error_at_the_sender_is_sqe_and_rts_again)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	bed_connect(&bed, IBV_QPT_UC);
	sge.lkey ^= 1;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_sent(IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_SQE);
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect_sent(IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(to_state(a, IBV_QPS_RTS), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect_sent(IBV_WC_SUCCESS);
	wait_until(b->buf[1] == 7);
}
END_TEST

START_TEST(test_uc_loses_what_the_peer_cannot_take)
{
	struct ibv_sge sge = sge_at(a, 0, 100);

	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED),
			 0);
	expect_lost();
	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED, .remote_addr = (uintptr_t)b->buf,
				 .rkey = b->mr->rkey ^ 1),
			 0);
	expect_lost();
	ck_assert_int_eq(b->buf[1], 0);
}
END_TEST

static void b_fails(void)
{
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
}

/* The receive is flushed, although the data has been written. */
START_TEST(test_qp_that_fails_in_the_last_step_of_a_message_has_not_received_it)
{
	bed_connect(&bed, _i ? IBV_QPT_UC : IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1000), 0);
	mm_written = b_fails;
	if (_i)
		send_small(a, b, IBV_WR_SEND, 100);
	else
		ck_assert_int_eq(send_ud(100, 0x1234), 0);
	expect_sent(IBV_WC_SUCCESS);
	expect(b->rcq, 0xb, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(b->rcq);
}
END_TEST

static void *send_in_slow_memory(void *opcode)
{
	send_small(a, b, *(enum ibv_wr_opcode *)opcode, BUF_SIZE / 2);
	return NULL;
}

/* The sender stops at the last byte of its own memory: the chunks before it have arrived. _i: a WRITE or a SEND. */
START_TEST(test_uc_receiver_that_is_connected_anew_gets_nothing_of_the_old_message)
{
	enum { LENGTH = BUF_SIZE / 2 };
	enum ibv_wr_opcode opcode = _i ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
	pthread_t sender;

	bed_connect(&bed, IBV_QPT_UC);
	memset(a->buf, 0x11, LENGTH);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, BUF_SIZE), 0);
	mm_slow = (uintptr_t)a->buf + LENGTH - 1;
	mm_slow_len = 1;
	ck_assert_int_eq(pthread_create(&sender, NULL, send_in_slow_memory, &opcode), 0);
	while (!mm_slowed)
		usleep(100);
	wait_until(b->buf[0] == 0x11);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
	ck_assert_int_eq(to_init(b) | to_rtr(b, a), 0);
	ck_assert_int_eq(post_recv_at(b, 0xc, 0, BUF_SIZE), 0);
	mm_slow_len = 0;
	pthread_join(sender, NULL);
	expect_sent(IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[LENGTH - 1], 0);
	expect_nothing(b->rcq);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("dgram");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	if (!bed_is_on_wire()) /* nor has it InfiniBand's ports */
		add_own_queue_test(t, test_ud_message_follows_40_bytes,
				   "all ports of mapped queues are Ethernet, where each packet has a GRH");
	add_local_test(t, test_ud_grh_names_both_gids, "the GIDs on the wire are those of IPv4 addresses");
	if (!bed_is_on_wire())
		add_own_queue_loop_test(t, test_ud_header_has_the_length_of_the_message, 0,
					2 * sizeof(payloads) / sizeof(payloads[0]),
					"all ports of mapped queues are Ethernet");
	add_local_test(t, test_ud_header_of_ipv4_gids_is_an_ipv4_header_in_the_last_20_bytes,
		       "the addresses are those of no socket");
	add_local_test(t, test_ud_header_of_an_ipv4_and_an_ipv6_gid_is_an_ipv6_header,
		       "the addresses are those of no socket");
	tcase_add_loop_test(t, test_completions_of_connected_qps_have_no_grh, 0, 2);
	tcase_add_test(t, test_ud_wrong_qkey_is_lost);
	tcase_add_test(t, test_ud_without_receive_or_too_long_is_lost);
	add_own_queue_test(t, test_ud_request_without_an_address_of_its_pd_is_einval,
			   "a request in a mapped queue holds the address itself, and names no handle");
	tcase_add_loop_test(t, test_ud_has_sends_only, 0, sizeof(not_of_datagrams) / sizeof(not_of_datagrams[0]));
	tcase_add_test(t, test_ud_message_above_the_mtu_is_a_length_error_and_sqe);
	tcase_add_test(t, test_ud_error_at_the_sender_is_sqe_and_rts_again);
	tcase_add_test(t, test_uc_carries_sends_and_writes);
	if (bed_is_on_wire())
		tcase_add_loop_test(t, test_uc_write_goes_no_further_than_its_first_packet_told, 0,
				    sizeof(uc_writes) / sizeof(uc_writes[0]));
	tcase_add_loop_test(t, test_uc_has_no_reads_and_no_atomics, 0, sizeof(not_of_uc) / sizeof(not_of_uc[0]));
	tcase_add_test(t, test_uc_error_at_the_sender_is_sqe_and_rts_again);
	tcase_add_test(t, test_uc_loses_what_the_peer_cannot_take);
	tcase_add_loop_test(t, test_uc_receiver_that_is_connected_anew_gets_nothing_of_the_old_message, 0, 2);
	tcase_add_loop_test(t, test_qp_that_fails_in_the_last_step_of_a_message_has_not_received_it, 0, 2);
	return run_suite("backends: soft UC and UD", t);
}
