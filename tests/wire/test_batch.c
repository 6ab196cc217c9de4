/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams of one length are one message for the kernel, on both ways. */
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "ends.h"

enum { EQUAL = 40, EQUAL_BYTES = 1024 };

/* Packets of one message: all have the same length, but for the first and the last one. */
static void make_message(struct uvd_socket_out *out, const union ibv_gid *to, const uint8_t *payload)
{
	for (unsigned int i = 0; i < EQUAL; i++) {
		struct uvd_packet p = packet_of(i ? UVD_RC_RDMA_WRITE_MIDDLE : UVD_RC_RDMA_WRITE_FIRST, EQUAL_BYTES);

		p.psn = i;
		p.payload_len = i == EQUAL - 1 ? 7 : EQUAL_BYTES;
		out[i] = out_of(&p, to, payload + i);
	}
}

static void expect_message(struct uvd_socket *s, const struct uvd_socket_in *in, unsigned int i, const uint8_t *payload)
{
	const uint32_t len = i == EQUAL - 1 ? 7 : EQUAL_BYTES;
	struct uvd_packet p;
	uint16_t id;

	ck_assert_int_eq(uvd_packet_parse(&p, in->bytes, in->len), UVD_PACKET_OK);
	ck_assert_uint_eq(p.psn, i);
	ck_assert_uint_eq(p.payload_len, len);
	ck_assert(!memcmp(p.payload, payload + i, len));
	ck_assert(uvd_socket_icrc_fits(s, in, &p, &id));
	/* The first packet is longer than the others: the second one ends its message. */
	ck_assert_uint_eq(id, i < 2 ? i : i - 2);
}

/* More packets than one call returns, and than one QP's: each call returns the next ones. */
START_TEST(test_packets_that_the_kernel_joins_are_told_apart)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	struct uvd_socket_out out[EQUAL];
	const struct uvd_socket_in *in;
	uint8_t payload[EQUAL_BYTES + EQUAL];
	unsigned int seen = 0, calls = 0;

	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = i * 13 + i / 256;
	make_message(out, &uvd_socket_address(e.b)->gid, payload);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, EQUAL), EQUAL);
	wait_readable(e.b);
	for (bool rest = true; rest; calls++) {
		const int n = uvd_socket_receive(e.b, e.receiver, &in);

		ck_assert_int_gt(n, 0);
		for (int i = 0; i < n; i++)
			expect_message(e.b, &in[i], (seen + i) % EQUAL, payload);
		seen += n;
		rest = uvd_socket_receiver_has_rest(e.receiver);
		ck_assert(rest == (seen < 2 * EQUAL));
	}
	ck_assert_uint_eq(seen, 2 * EQUAL);
	ck_assert_uint_eq(calls, 2);
	ck_assert(!uvd_socket_receiver_was_full(e.receiver));
	ends_close(&e);
}
END_TEST

START_TEST(test_a_receiver_is_full_while_there_may_be_more)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	struct uvd_socket_out out[20];
	const struct uvd_socket_in *in;
	unsigned int seen = 0;

	make_many(out, 20, &uvd_socket_address(e.b)->gid, NULL);
	for (int i = 0; i < 20; i++) {
		out[i].num_iov = 0;
		ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out[i], 1), 1);
	}
	wait_readable(e.b);
	do
		seen += uvd_socket_receive(e.b, e.receiver, &in);
	while (uvd_socket_receiver_was_full(e.receiver));
	ck_assert_uint_eq(seen, 20);
	ends_close(&e);
}
END_TEST

/* A socket that does not join datagrams, as rxe's and a network's, gets each of them alone. */
START_TEST(test_a_message_of_many_packets_is_cut_up_for_a_receiver_that_joins_none)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	struct uvd_socket_in in = { .from = uvd_socket_address(e.a)->gid, .from_port = uvd_socket_address(e.a)->port };
	struct uvd_socket_out out[EQUAL];
	uint8_t payload[EQUAL_BYTES + EQUAL], bytes[UVD_IB_DATAGRAM_MAX];
	const int zero = 0;

	memset(payload, 0x5a, sizeof(payload));
	ck_assert_int_eq(setsockopt(uvd_socket_fd(e.b), SOL_UDP, UDP_GRO, &zero, sizeof(zero)), 0);
	make_message(out, &uvd_socket_address(e.b)->gid, payload);
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, EQUAL), EQUAL);
	for (int i = 0; i < EQUAL; i++) {
		const ssize_t n = recv(uvd_socket_fd(e.b), bytes, sizeof(bytes), 0);

		ck_assert_int_eq(out[i].err, 0);
		ck_assert_uint_eq(n, uvd_packet_bytes(out[i].head_len, i == EQUAL - 1 ? 7 : EQUAL_BYTES));
		in.bytes = bytes;
		in.len = n;
		expect_message(e.b, &in, i, payload);
	}
	ends_close(&e);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("batch");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_packets_that_the_kernel_joins_are_told_apart);
	tcase_add_test(t, test_a_receiver_is_full_while_there_may_be_more);
	tcase_add_test(t, test_a_message_of_many_packets_is_cut_up_for_a_receiver_that_joins_none);
	return run_suite("wire batch", t);
}
