/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sockets over loopback. What needs other MTUs or interfaces has a network namespace of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"

enum { MANY = 150, NO_CHECK6_TX = 101 };

/* Receives that many, and checks that they arrive in order with ICRCs whose identifications begin at 0 and count up. */
static void expect_many(struct ends *e, unsigned int num, const uint8_t *payload)
{
	const struct uvd_socket_in *in;
	unsigned int seen = 0;
	uint16_t last = 0;

	while (seen < num) {
		int n;

		wait_readable(e->b);
		n = uvd_socket_receive(e->b, e->receiver, &in);
		ck_assert_int_ge(n, 0);
		for (int i = 0; i < n; i++, seen++) {
			struct uvd_packet p;
			uint16_t id;

			ck_assert(!in[i].is_truncated);
			ck_assert_int_eq(uvd_packet_parse(&p, in[i].bytes, in[i].len), UVD_PACKET_OK);
			ck_assert_uint_eq(p.psn, seen);
			ck_assert_uint_eq(p.opcode, all_opcodes[seen % NUM_OPCODES]);
			ck_assert_uint_eq(p.payload_len, payload_of(p.opcode));
			ck_assert(!memcmp(p.payload, payload, p.payload_len));
			ck_assert(uvd_socket_icrc_fits(e->b, &in[i], &p, &id));
			ck_assert(!id || id == last + 1);
			last = id;
			ck_assert_mem_eq(&in[i].from, &uvd_socket_address(e->a)->gid, 16);
			ck_assert_uint_eq(in[i].from_port, uvd_socket_address(e->a)->port);
		}
	}
	ck_assert_int_eq(uvd_socket_receive(e->b, e->receiver, &in), 0);
}

static void exchange(const char *a, const char *b)
{
	struct ends e = ends_open(a, b, 0);
	static struct uvd_socket_out out[MANY];
	uint8_t payload[UVD_IB_MTU_MAX];

	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7 + i / 256;
	make_many(out, MANY, &uvd_socket_address(e.b)->gid, payload);
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, MANY), MANY);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(out[i].err, 0);
	expect_many(&e, MANY, payload);
	ends_close(&e);
}

static bool has_ipv6(void)
{
	struct uvd_socket *s = open_at("::1", 0, 0) ?: open_at("::1", 20000 + getpid() % 10000, 0);

	uvd_socket_free(s);
	return s;
}

START_TEST(test_packets_in_batches_arrive_in_order)
{
	exchange("::ffff:127.0.0.2", "::ffff:127.0.0.3");
}
END_TEST

START_TEST(test_packets_over_ipv6_arrive)
{
	struct ends e;
	static struct uvd_socket_out out[MANY];
	uint8_t payload[UVD_IB_MTU_MAX] = { 1, 2, 3 };

	if (!has_ipv6())
		SKIP("there is no ::1 here");
	/* One address is all that loopback has: the socket sends to itself. */
	e = ends_open("::1", "::ffff:127.0.0.3", 0);
	uvd_socket_free(e.b);
	e.b = e.a;
	make_many(out, MANY, &uvd_socket_address(e.b)->gid, payload);
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, MANY), MANY);
	expect_many(&e, MANY, payload);
	e.b = NULL;
	ends_close(&e);
}
END_TEST

/* As rxe and adapters send them. */
START_TEST(test_a_datagram_over_ipv6_without_udp_checksum_arrives)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const int one = 1, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const struct uvd_socket_in *in;
	struct ends e;

	if (!has_ipv6())
		SKIP("there is no ::1 here");
	e = ends_open("::1", "::ffff:127.0.0.3", 0);
	to.sin6_port = htons(uvd_socket_address(e.a)->port);
	ck_assert_int_eq(setsockopt(fd, IPPROTO_UDP, NO_CHECK6_TX, &one, sizeof(one)), 0);
	ck_assert_int_eq(sendto(fd, "0123456789abcdef", 16, 0, (void *)&to, sizeof(to)), 16);
	wait_readable(e.a);
	ck_assert_int_eq(uvd_socket_receive(e.a, e.receiver, &in), 1);
	ck_assert_uint_eq(in->len, 16);
	close(fd);
	ends_close(&e);
}
END_TEST

START_TEST(test_a_datagram_of_another_family_is_told_and_the_others_are_sent)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	struct uvd_socket_out out[4];

	make_many(out, 4, &uvd_socket_address(e.b)->gid, NULL);
	for (int i = 0; i < 4; i++)
		out[i].num_iov = 0;
	out[0].to = out[2].to = (union ibv_gid){ .raw = { 0xfd, 1 } };
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, 4), 4);
	ck_assert_int_eq(out[0].err, -EAFNOSUPPORT);
	ck_assert_int_eq(out[1].err, 0);
	ck_assert_int_eq(out[2].err, -EAFNOSUPPORT);
	ck_assert_int_eq(out[3].err, 0);
	ends_close(&e);
}
END_TEST

START_TEST(test_a_datagram_that_is_too_long_is_told_and_the_others_are_sent)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	uint8_t *payload = calloc(1, 66000);
	const struct uvd_socket_in *in;
	struct uvd_socket_out out[5];
	int n = 0;

	for (int i = 0; i < 5; i++) {
		const struct uvd_packet p = packet_of(UVD_RC_SEND_ONLY, i == 2 ? 66000 : 4);

		out[i] = out_of(&p, &uvd_socket_address(e.b)->gid, payload);
	}
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, 5), 5);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(out[i].err, i == 2 ? -EMSGSIZE : 0);
	for (; n < 4; n += uvd_socket_receive(e.b, e.receiver, &in))
		wait_readable(e.b);
	ck_assert_int_eq(n, 4);
	free(payload);
	ends_close(&e);
}
END_TEST

START_TEST(test_a_datagram_that_no_packet_can_be_is_told)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	uint8_t *payload = calloc(1, 5000);
	const struct uvd_packet p = packet_of(UVD_RC_SEND_ONLY, 5000);
	struct uvd_socket_out out = out_of(&p, &uvd_socket_address(e.b)->gid, payload);
	const struct uvd_socket_in *in;

	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
	wait_readable(e.b);
	ck_assert_int_eq(uvd_socket_receive(e.b, e.receiver, &in), 1);
	ck_assert(in->is_truncated);
	ck_assert_uint_eq(in->len, UVD_IB_DATAGRAM_MAX);
	free(payload);
	ends_close(&e);
}
END_TEST

static void wait_error(struct uvd_socket *s)
{
	struct pollfd p = { .fd = uvd_socket_fd(s) };

	ck_assert_int_eq(poll(&p, 1, 10000), 1);
	ck_assert(p.revents & POLLERR);
}

static void expect_unreachable(const char *from, const char *to, const char *nobody)
{
	struct ends e = ends_open(from, to, 0);
	struct uvd_socket_address there = address_of(nobody, 0);
	const struct uvd_packet p = packet_of(UVD_RC_RDMA_WRITE_ONLY, 4);
	struct uvd_socket_out out = out_of(&p, &there.gid, (const uint8_t *)"four");
	const struct uvd_socket_in *in;
	struct uvd_socket_error error;
	struct uvd_packet quoted;

	ck_assert_int_eq(uvd_socket_error(e.a, &error), 0);
	if (!strcmp(from, nobody))
		out.to_port = 9; /* discard */
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
	ck_assert_int_eq(out.err, 0);
	wait_error(e.a);
	/* Neither the next receive nor the next send, to somebody else, fails of it. */
	ck_assert_int_eq(uvd_socket_receive(e.a, e.receiver, &in), 0);
	ck_assert_int_eq(uvd_socket_error(e.a, &error), 1);
	ck_assert_int_eq(error.err, -ECONNREFUSED);
	ck_assert(!error.is_local);
	ck_assert_uint_eq(error.mtu, 0);
	ck_assert_mem_eq(&error.to, &there.gid, 16);
	ck_assert_uint_eq(error.to_port, out.to_port ?: uvd_socket_address(e.a)->port);
	ck_assert_mem_eq(&error.by, &there.gid, 16);
	/* The quote is what was sent, from its BTH on. */
	ck_assert_uint_eq(error.quote_len, uvd_packet_bytes(out.head_len, 4));
	ck_assert_int_eq(uvd_packet_parse(&quoted, error.quote, error.quote_len), UVD_PACKET_OK);
	ck_assert_uint_eq(quoted.psn, p.psn);
	ck_assert_int_eq(uvd_socket_error(e.a, &error), 0);
	/* Told to the next call, which is a send. */
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
	wait_error(e.a);
	out.to = uvd_socket_address(e.a)->gid;
	out.to_port = 0;
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
	ck_assert_int_eq(out.err, 0);
	wait_readable(e.a);
	/* Told to the next call, which is a receive: it returns what has arrived. */
	out.to = there.gid;
	out.to_port = strcmp(from, nobody) ? 0 : 9;
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
	ck_assert_int_eq(uvd_socket_receive(e.a, e.receiver, &in), 1);
	ends_close(&e);
}

START_TEST(test_an_unreachable_port_is_told_with_a_quote_and_ends_nothing)
{
	expect_unreachable("::ffff:127.0.0.2", "::ffff:127.0.0.3", "::ffff:127.0.0.9");
	if (!has_ipv6())
		SKIP("there is no ::1 here");
	expect_unreachable("::1", "::ffff:127.0.0.3", "::1");
}
END_TEST

/* ---- open -------------------------------------------------------------------------------------------------------- */

/* Tries to open the address, whose text and errno the log has with the remedy. */
static void expect_refused(const struct uvd_socket_address *a, int err, const char *address, const char *remedy)
{
	const int fd = memfd_create("log", MFD_CLOEXEC);
	struct uvd_log *log = uvd_log_new(fd, "test", UVD_INFO);
	char text[1000] = "";

	ck_assert_int_eq(uvd_socket_open_fd(a, log), err);
	ck_assert_int_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
	ck_assert_msg(strstr(text, address) && strstr(text, remedy) && strstr(text, strerrorname_np(-err)), "%s", text);
	ck_assert_ptr_eq(strchr(text, '\n'), strrchr(text, '\n'));
	uvd_log_free(log);
	close(fd);
}

START_TEST(test_an_address_that_cannot_be_had_is_refused_with_its_remedy)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	struct uvd_socket_address a = *uvd_socket_address(e.a);
	char port[32];

	snprintf(port, sizeof(port), "127.0.0.2 port %u", a.port);
	expect_refused(&a, -EADDRINUSE, port, "--join");
	expect_refused(&a, -EADDRINUSE, port, "rdma_rxe");
	a = address_of("::ffff:192.0.2.77", 0);
	expect_refused(&a, -EADDRNOTAVAIL, "192.0.2.77 port 4791", "not an address of this machine");
	a = address_of("::ffff:0.0.0.0", 0);
	expect_refused(&a, -EINVAL, "0.0.0.0", "not the address of one machine");
	a = address_of("::ffff:239.1.2.3", 0);
	expect_refused(&a, -EINVAL, "239.1.2.3", "not the address of one machine");
	a = address_of("::", 0);
	expect_refused(&a, -EINVAL, "::", "not the address of one machine");
	a = address_of("ff02::1", 0);
	expect_refused(&a, -EINVAL, "ff02::1", "not the address of one machine");
	a = address_of("fe80::1", 0);
	expect_refused(&a, -EINVAL, "fe80::1%0", "needs its interface");
	ends_close(&e);
}
END_TEST

START_TEST(test_only_a_socket_of_the_wire_is_adopted)
{
	const int fds[] = { socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_DGRAM, 0),
			    open("/dev/null", O_RDWR) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int err;

	/* A plain UDP socket would send identifications that the ICRC does not have. */
	ck_assert_int_eq(bind(fds[1], (void *)&to, sizeof(to)), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_null(uvd_socket_adopt(fds[i], &err));
		ck_assert_int_eq(err, -EINVAL);
		ck_assert_int_eq(close(fds[i]), 0);
	}
}
END_TEST

START_TEST(test_a_socket_neither_blocks_nor_outlives_exec)
{
	struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 0);
	const int fd = uvd_socket_fd(e.a);

	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	ends_close(&e);
}
END_TEST

START_TEST(test_a_receive_buffer_holds_as_many_packets_as_is_said)
{
	uint8_t payload[UVD_IB_MTU_MAX] = { 0 };

	for (uint32_t mtu = UVD_IB_MTU_MIN; mtu <= UVD_IB_MTU_MAX; mtu *= 2) {
		struct ends e = ends_open("::ffff:127.0.0.2", "::ffff:127.0.0.3", 65536);
		const uint32_t said = uvd_wire_packets(uvd_socket_rcvbuf(e.b), mtu);
		const struct uvd_packet p = packet_of(UVD_RC_SEND_MIDDLE, mtu);
		struct uvd_socket_out out = out_of(&p, &uvd_socket_address(e.b)->gid, payload);
		const struct uvd_socket_in *in;
		uint32_t held = 0;
		int n;

		ck_assert_uint_ge(said, 10);
		for (uint32_t i = 0; i < 4 * said; i++)
			ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
		while ((n = uvd_socket_receive(e.b, e.receiver, &in)) > 0)
			held += n;
		ck_assert_msg(held >= said && held <= 2 * said, "MTU %u: %u packets, said to be %u", mtu, held, said);
		ends_close(&e);
	}
	/* As seen with rxe. */
	ck_assert_uint_eq(uvd_wire_packets(2 * 212992, 4096), 50);
	ck_assert_uint_eq(uvd_wire_packets(2 * 212992, 1024), 184);
}
END_TEST

START_TEST(test_an_mtu_leaves_room_for_all_headers)
{
	static const struct {
		uint32_t link, ipv4, ipv6;
	} rows[] = {
		{ 65536, 4096, 4096 }, { 9000, 4096, 4096 }, { 4192, 4096, 4096 }, { 4191, 4096, 2048 },
		{ 4172, 4096, 2048 },  { 4171, 2048, 2048 }, { 1500, 1024, 1024 }, { 1280, 1024, 1024 },
		{ 576, 256, 256 },     { 352, 256, 256 },    { 351, 256, 0 },	   { 331, 0, 0 },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_uint_eq(uvd_wire_mtu(rows[i].link, true), rows[i].ipv4);
		ck_assert_uint_eq(uvd_wire_mtu(rows[i].link, false), rows[i].ipv6);
	}
}
END_TEST

/* ---- in a network namespace -------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert(fd >= 0 && write(fd, text, strlen(text)) > 0);
	close(fd);
}

/* An ordinary user becomes root of a user namespace. */
static bool enter_user_namespace(void)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	write_file("/proc/self/uid_map", map);
	return true;
}

/* Enters a namespace whose loopback has this MTU. Returns false if that is not permitted. */
static bool enter_namespace(int mtu)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd;

	if (unshare(CLONE_NEWNET) && !enter_user_namespace())
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(ioctl(fd, SIOCSIFMTU, &lo), 0);
	lo.ifr_flags = IFF_UP;
	ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return true;
}

START_TEST(test_a_packet_longer_than_the_interface_carries_is_told_with_the_mtu)
{
	uint8_t payload[2048] = { 0 };
	const struct uvd_packet p = packet_of(UVD_RC_SEND_MIDDLE, 2048);
	struct uvd_socket_error error;
	struct uvd_socket_out out;
	struct ends e;

	if (!enter_namespace(1500))
		SKIP("no network namespaces here");
	e = ends_open("::ffff:127.0.0.1", "::ffff:127.0.0.3", 0);
	out = out_of(&p, &uvd_socket_address(e.b)->gid, payload);
	ck_assert_int_eq(uvd_socket_link_mtu(e.a), 1500);
	ck_assert_int_eq(uvd_socket_route_mtu(e.a, &uvd_socket_address(e.b)->gid), 1500);
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, &out, 1), 1);
	ck_assert_int_eq(out.err, -EMSGSIZE);
	ck_assert_int_eq(uvd_socket_error(e.a, &error), 1);
	ck_assert_int_eq(error.err, -EMSGSIZE);
	ck_assert_uint_eq(error.mtu, 1500);
	ck_assert(error.is_local);
	ck_assert_mem_eq(&error.to, &uvd_socket_address(e.b)->gid, 16);
	ends_close(&e);
}
END_TEST

/* The kernel refuses a message whose datagrams are too long as a whole, with another errno. */
START_TEST(test_each_packet_of_a_message_is_told_that_it_is_too_long)
{
	static uint8_t payload[2048];
	struct uvd_socket_out out[6];
	const struct uvd_socket_in *in;
	struct ends e;

	if (!enter_namespace(1500))
		SKIP("no network namespaces here");
	e = ends_open("::ffff:127.0.0.1", "::ffff:127.0.0.3", 0);
	for (int i = 0; i < 6; i++) {
		const struct uvd_packet p = packet_of(UVD_RC_SEND_MIDDLE, i && i < 5 ? 2048 : 1024);

		out[i] = out_of(&p, &uvd_socket_address(e.b)->gid, payload);
	}
	ck_assert_uint_eq(uvd_socket_send(e.a, e.sender, out, 6), 6);
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(out[i].err, i && i < 5 ? -EMSGSIZE : 0);
	wait_readable(e.b);
	ck_assert_int_eq(uvd_socket_receive(e.b, e.receiver, &in), 2);
	ends_close(&e);
}
END_TEST

/* Nobody answers for the neighbour's address, so its packets wait in the kernel, and fill the socket's buffer. */
START_TEST(test_a_full_buffer_stops_the_batch_and_the_rest_can_be_sent_later)
{
	const struct uvd_packet p = packet_of(UVD_RC_SEND_MIDDLE, 1024);
	const struct uvd_socket_address there = address_of("::ffff:10.77.0.9", 0);
	static struct uvd_socket_out out[MANY];
	struct uvd_socket_sender *sender = uvd_socket_sender_new();
	uint8_t payload[1024] = { 0 };
	const int small = 16384;
	struct uvd_socket *s;
	unsigned int sent;

	if (!enter_namespace(1500))
		SKIP("no network namespaces here");
	if (system("exec 2>/dev/null; ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up && "
		   "ip address add 10.77.0.1/24 dev v0"))
		SKIP("no veth, or no ip");
	s = open_at("::ffff:10.77.0.1", 0, 0);
	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(setsockopt(uvd_socket_fd(s), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	for (int i = 0; i < MANY; i++)
		out[i] = out_of(&p, &there.gid, payload);
	out[0].to = (union ibv_gid){ .raw = { 0xfd, 1 } }; /* counts as handled, too */
	sent = uvd_socket_send(s, sender, out, MANY);
	ck_assert_uint_ge(sent, 2);
	ck_assert_uint_lt(sent, MANY);
	for (unsigned int i = 0; i < MANY; i++)
		ck_assert_int_eq(out[i].err, !i ? -EAFNOSUPPORT : i < sent ? 0 : 1); /* 1: not touched */
	ck_assert_uint_eq(uvd_socket_send(s, sender, out + sent, MANY - sent), 0);
	uvd_socket_free(s);
	uvd_socket_sender_free(sender);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("socket");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_packets_in_batches_arrive_in_order);
	tcase_add_test(t, test_packets_over_ipv6_arrive);
	tcase_add_test(t, test_a_datagram_over_ipv6_without_udp_checksum_arrives);
	tcase_add_test(t, test_a_datagram_of_another_family_is_told_and_the_others_are_sent);
	tcase_add_test(t, test_a_datagram_that_is_too_long_is_told_and_the_others_are_sent);
	tcase_add_test(t, test_a_datagram_that_no_packet_can_be_is_told);
	tcase_add_test(t, test_an_unreachable_port_is_told_with_a_quote_and_ends_nothing);
	tcase_add_test(t, test_an_address_that_cannot_be_had_is_refused_with_its_remedy);
	tcase_add_test(t, test_only_a_socket_of_the_wire_is_adopted);
	tcase_add_test(t, test_a_socket_neither_blocks_nor_outlives_exec);
	tcase_add_test(t, test_a_receive_buffer_holds_as_many_packets_as_is_said);
	tcase_add_test(t, test_an_mtu_leaves_room_for_all_headers);
	tcase_add_test(t, test_a_packet_longer_than_the_interface_carries_is_told_with_the_mtu);
	tcase_add_test(t, test_each_packet_of_a_message_is_told_that_it_is_too_long);
	tcase_add_test(t, test_a_full_buffer_stops_the_batch_and_the_rest_can_be_sent_later);
	return run_suite("wire socket", t);
}
