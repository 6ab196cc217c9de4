/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft engine tells a capture requests and their answers, in the order of the wire. */
#include <endian.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "capture/capture.h"
#include "tests/backends/bed.h"

enum {
	SEND_ONLY = 0x04,
	WRITE_FIRST = 0x06,
	WRITE_MIDDLE,
	WRITE_LAST,
	WRITE_ONLY = 0x0a,
	READ_REQUEST = 0x0c,
	READ_RESPONSE_FIRST,
	READ_RESPONSE_MIDDLE,
	READ_RESPONSE_LAST,
	READ_RESPONSE_ONLY,
	ACK,
	ATOMIC_ACK,
	CMP_SWAP,
	ATOMIC_WRITE = 0x1d,
	UC = 0x20,
	UD_SEND_ONLY = 0x64,
	FILE_HEADER = 24,
	PACKET_HEADER = 16,
	BTH = 14 + 40 + 8, /* behind Ethernet, IPv6 and UDP */
	AFTER_BTH = BTH + 12,
	ICRC = 4,
	LARGE = 600 * 1000, /* several chunks of the mover */
};

struct packet {
	uint8_t opcode, syndrome; /* syndrome: of an acknowledgement */
	uint32_t psn, msn;
	const uint8_t *payload;
	uint32_t len;
};

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_capture *capture;
static uint8_t *file;
static off_t size;
static struct packet packets[2000];
static unsigned int num;
static int fd;

static void setup(void)
{
	int err;

	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i % 251;
	memset(b->buf, 0x22, BUF_SIZE);
	fd = memfd_create("capture", 0);
	capture = uvd_capture_new(dup(fd), 0, &err);
	ck_assert_ptr_nonnull(capture);
	uvd_fabric_set_capture(bed.fabric, capture);
}

static void teardown(void)
{
	bed_close(&bed);
	uvd_capture_free(capture);
	munmap(file, size);
	close(fd);
}

static uint32_t header_len(uint8_t opcode)
{
	switch (opcode < UD_SEND_ONLY ? opcode % UC : opcode) {
	case WRITE_FIRST:
	case WRITE_ONLY:
	case READ_REQUEST:
	case ATOMIC_WRITE:
		return 16;
	case READ_RESPONSE_FIRST:
	case READ_RESPONSE_LAST:
	case READ_RESPONSE_ONLY:
	case ACK:
		return 4;
	case ATOMIC_ACK:
		return 12;
	case CMP_SWAP:
		return 28;
	default:
		return 0;
	}
}

static uint32_t be32_of(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static struct packet packet_of(const uint8_t *bytes, uint32_t len)
{
	struct packet p = { .opcode = bytes[BTH], .psn = be32_of(bytes + BTH + 8) & 0xffffff };
	const uint32_t headers = AFTER_BTH + header_len(p.opcode), padding = bytes[BTH + 1] >> 4 & 3;

	if (p.opcode >= READ_RESPONSE_FIRST && p.opcode <= ATOMIC_ACK && p.opcode != READ_RESPONSE_MIDDLE) {
		p.syndrome = bytes[AFTER_BTH];
		p.msn = be32_of(bytes + AFTER_BTH) & 0xffffff;
	}
	p.payload = bytes + headers;
	p.len = len - headers - padding - ICRC;
	return p;
}

/* Ends the capture, and lists its packets. */
static void end_capture(void)
{
	struct uvd_capture_result result = uvd_capture_end(capture);
	uint32_t len;

	ck_assert_int_eq(result.err, 0);
	ck_assert_uint_eq(result.lost, 0);
	size = lseek(fd, 0, SEEK_END);
	file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	num = 0;
	for (off_t at = FILE_HEADER; at < size; at += PACKET_HEADER + len) {
		memcpy(&len, file + at + 8, sizeof(len));
		ck_assert_uint_lt(num, sizeof(packets) / sizeof(packets[0]));
		packets[num++] = packet_of(file + at + PACKET_HEADER, len);
	}
	ck_assert_uint_eq(num, result.packets);
}

static void ck_assert_opcodes(const uint8_t *opcodes, unsigned int n)
{
	ck_assert_uint_eq(num, n);
	for (unsigned int i = 0; i < n; i++)
		ck_assert_uint_eq(packets[i].opcode, opcodes[i]);
}
#define expect_packets(...) \
	ck_assert_opcodes((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

START_TEST(test_requests_that_wait_together_are_told_one_by_one)
{
	enum { N = 6 };
	struct ibv_sge sges[N];
	struct uvd_send_wr wrs[N];
	const int bursts = mm_bursts;

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < N; i++) {
		sges[i] = sge_at(a, i * 1000, 100);
		wrs[i] = wr_to(b, _i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sges[i], 1);
		wrs[i].next = i + 1 < N ? &wrs[i + 1] : NULL;
	}
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < N; i++)
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(mm_bursts, bursts);
	end_capture();
	ck_assert_uint_eq(num, 2 * N);
	for (int i = 0; i < N; i++) {
		const struct packet *request = &packets[2 * i], *answer = request + 1;

		ck_assert_uint_eq(request->opcode, _i ? READ_REQUEST : WRITE_ONLY);
		ck_assert_uint_eq(answer->opcode, _i ? READ_RESPONSE_ONLY : ACK);
		ck_assert_uint_eq(request->psn, (a->psn + i) & 0xffffff);
		ck_assert_uint_eq(answer->psn, request->psn);
		ck_assert_uint_eq(answer->syndrome, UVD_AETH_ACK);
		ck_assert_uint_eq(answer->msn, i + 1);
		if (!_i)
			ck_assert_mem_eq(request->payload, a->buf + i * 1000, 100);
	}
}
END_TEST

/* Checks n packets that have LARGE bytes, the first of which is packets[first]. */
static void check_large(unsigned int first, const char *bytes, uint8_t opcode)
{
	const unsigned int n = (LARGE - 1) / 1024 + 1;
	uint32_t at = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct packet *p = &packets[first + i];

		ck_assert_uint_eq(p->opcode, !i ? opcode : i == n - 1 ? opcode + 2 : opcode + 1);
		ck_assert_uint_eq(p->psn, (a->psn + i) & 0xffffff);
		ck_assert_mem_eq(p->payload, bytes + at, p->len);
		at += p->len;
	}
	ck_assert_uint_eq(at, LARGE);
}

START_TEST(test_a_message_of_several_chunks_is_told_whole)
{
	const bool is_read = _i % 2;
	struct end *from = is_read ? b : a;

	/* The memory has a view, with the same bytes. A capture needs them in the mover's buffer. */
	if (_i > 1) {
		from->mr->umem.shared = true;
		mm_views[0] = (struct fake_view){ (uintptr_t)from->buf, BUF_SIZE, from->buf };
	}
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, LARGE);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	mm_views[0] = (struct fake_view){ 0 };
	end_capture();
	ck_assert_uint_eq(num, (LARGE - 1) / 1024 + 2);
	ck_assert_uint_eq(packets[is_read ? 0 : num - 1].opcode, is_read ? READ_REQUEST : ACK);
	check_large(is_read, from->buf, is_read ? READ_RESPONSE_FIRST : WRITE_FIRST);
	ck_assert_uint_eq(packets[num - 1].psn, (a->psn + num - 2) & 0xffffff);
	ck_assert_uint_eq(packets[num - 1].msn, 1);
}
END_TEST

START_TEST(test_an_atomic_is_answered_with_the_old_value)
{
	struct ibv_sge sge = sge_at(a, 4096, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 1);
	const uint64_t old = UINT64_C(0x2222222222222222);

	wr.compare_add = old;
	wr.swap = 5;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	end_capture();
	expect_packets(CMP_SWAP, ATOMIC_ACK);
	ck_assert_mem_eq(packets[1].payload - 8, &old, 8);
	ck_assert_uint_eq(packets[1].msn, 1);
}
END_TEST

static const struct {
	enum ibv_wr_opcode opcode;
	uint8_t request;
} refused[] = {
	{ IBV_WR_RDMA_WRITE, WRITE_ONLY },
	{ IBV_WR_RDMA_READ, READ_REQUEST },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, CMP_SWAP },
};

START_TEST(test_a_request_with_a_wrong_key_gets_a_nak)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, refused[_i].opcode, &sge, 1);

	wr.rkey ^= 0xff;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	end_capture();
	expect_packets(refused[_i].request, ACK);
	ck_assert_uint_eq(packets[1].syndrome, UVD_AETH_ACCESS_ERROR);
	ck_assert_uint_eq(packets[1].msn, 0);
	ck_assert_uint_eq(packets[1].psn, packets[0].psn);
}
END_TEST

START_TEST(test_a_send_without_a_receive_gets_rnr_naks_until_there_is_one)
{
	struct ibv_wc wc;

	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 4096), 0);
	wc = expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 100);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	end_capture();
	ck_assert_uint_ge(num, 4);
	for (unsigned int i = 0; i < num; i++) {
		const uint8_t answer = i == num - 1 ? UVD_AETH_ACK : UVD_AETH_RNR | b->min_rnr_timer;

		ck_assert_uint_eq(packets[i].opcode, i % 2 ? ACK : SEND_ONLY);
		ck_assert_uint_eq(packets[i].psn, a->psn);
		if (i % 2)
			ck_assert_uint_eq(packets[i].syndrome, answer);
	}
}
END_TEST

START_TEST(test_unreliable_messages_are_told_without_answers)
{
	bed_connect(&bed, IBV_QPT_UC);
	send_small(a, b, IBV_WR_SEND, 3000); /* there is no receive: it is sent all the same */
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	end_capture();
	expect_packets(UC, UC + 1, UC + 2, UC + WRITE_ONLY);
	ck_assert_uint_eq(packets[3].psn, (a->psn + 3) & 0xffffff);
}
END_TEST

START_TEST(test_a_long_uc_message_is_told_whole)
{
	bed_connect(&bed, IBV_QPT_UC);
	send_small(a, b, IBV_WR_RDMA_WRITE, LARGE);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	end_capture();
	ck_assert_uint_eq(num, (LARGE - 1) / 1024 + 1);
	check_large(0, a->buf, UC + WRITE_FIRST);
}
END_TEST

START_TEST(test_a_raw_frame_is_told_as_it_is)
{
	struct uvd_capture_result result;

	bed_connect(&bed, IBV_QPT_RAW_PACKET);
	send_small(a, b, IBV_WR_SEND, 61);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	result = uvd_capture_end(capture);
	ck_assert_uint_eq(result.packets, 1);
	size = lseek(fd, 0, SEEK_END);
	ck_assert_int_eq(size, FILE_HEADER + PACKET_HEADER + 61);
	file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_mem_eq(file + FILE_HEADER + PACKET_HEADER, a->buf, 61);
}
END_TEST

START_TEST(test_a_datagram_is_told_if_its_port_is_up)
{
	struct ibv_sge sge = sge_at(a, 0, 100);
	struct uvd_ah ah = { .pd = a->side->pd, .attr = { .port_num = 1, .dlid = b->side->dev.config.ports[0].lid } };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, &sge, 1);

	bed_connect(&bed, IBV_QPT_UD);
	wr.ah = &ah;
	wr.remote_qpn = b->qp->qp_num;
	for (int down = 0; down < 2; down++) {
		__atomic_store_n(&a->side->dev.config.ports[0].down, down, __ATOMIC_RELAXED);
		ck_assert_int_eq(post_send_wr(a, &wr), 0);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	}
	end_capture();
	expect_packets(UD_SEND_ONLY);
	ck_assert_uint_eq(packets[0].psn, a->psn);
	ck_assert_mem_eq(packets[0].payload + 8, a->buf, 100);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("capture");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_requests_that_wait_together_are_told_one_by_one, 0, 2);
	tcase_add_loop_test(t, test_a_message_of_several_chunks_is_told_whole, 0, 4);
	tcase_add_test(t, test_an_atomic_is_answered_with_the_old_value);
	tcase_add_loop_test(t, test_a_request_with_a_wrong_key_gets_a_nak, 0, 3);
	tcase_add_test(t, test_a_send_without_a_receive_gets_rnr_naks_until_there_is_one);
	tcase_add_test(t, test_unreliable_messages_are_told_without_answers);
	tcase_add_test(t, test_a_long_uc_message_is_told_whole);
	tcase_add_test(t, test_a_raw_frame_is_told_as_it_is);
	tcase_add_test(t, test_a_datagram_is_told_if_its_port_is_up);
	return run_suite("soft backend: capture", t);
}
