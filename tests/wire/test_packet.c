/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Headers: what is put is what is parsed, and what is no packet is refused by its name. */
#include <stdlib.h>
#include <string.h>

#include "packets.h"
#include "../suite.h"

enum { ROOM = UVD_IB_DATAGRAM_MAX + 64 };

static void expect_same(const struct uvd_packet *a, const struct uvd_packet *b)
{
	const char *name = uvd_opcode_info(b->opcode)->name;

#define SAME(field) \
	ck_assert_msg(a->field == b->field, "%s: " #field " is %#llx, not %#llx", name, (unsigned long long)a->field, \
		      (unsigned long long)b->field)
	SAME(opcode);
	SAME(pad);
	SAME(solicited);
	SAME(migrated);
	SAME(fecn);
	SAME(becn);
	SAME(ack_req);
	SAME(pkey);
	SAME(dest_qpn);
	SAME(psn);
	SAME(srqn);
	SAME(qkey);
	SAME(src_qpn);
	SAME(va);
	SAME(rkey);
	SAME(length);
	SAME(swap_add);
	SAME(compare);
	SAME(syndrome);
	SAME(msn);
	SAME(original);
	SAME(imm);
	SAME(invalidate_rkey);
	SAME(payload_len);
#undef SAME
}

/* Parses a copy that ends where the heap block ends, for AddressSanitizer. */
static enum uvd_packet_fault parse_exactly(struct uvd_packet *p, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ?: 1);
	enum uvd_packet_fault fault;

	if (len)
		memcpy(copy, bytes, len);
	fault = uvd_packet_parse(p, copy, len);
	if (!fault) {
		ck_assert(p->payload >= copy);
		ck_assert(p->payload + p->payload_len + p->pad + UVD_ICRC_BYTES == copy + len);
	}
	free(copy);
	return fault;
}

START_TEST(test_what_is_put_is_what_is_parsed)
{
	static uint8_t bytes[ROOM];

	for (unsigned int i = 0; i < NUM_OPCODES; i++) {
		const uint32_t most = payload_of(all_opcodes[i]);

		for (uint32_t payload = most < 4 ? most : most - 4; payload <= most; payload++) {
			const struct uvd_packet want = packet_of(all_opcodes[i], payload);
			const uint32_t len = datagram_of(&want, 0x12345678, bytes);
			struct uvd_packet got;

			ck_assert_uint_le(len, UVD_IB_DATAGRAM_MAX);
			ck_assert_int_eq(uvd_packet_parse(&got, bytes, len), UVD_PACKET_OK);
			expect_same(&got, &want);
			ck_assert_uint_eq(got.icrc, 0x12345678);
			for (uint32_t n = 0; n < payload; n++)
				ck_assert_uint_eq(got.payload[n], (uint8_t)(n + 1));
		}
	}
}
END_TEST

/* The bytes are rxe_hdr.h's, by hand. */
START_TEST(test_headers_are_where_the_specification_has_them)
{
	static const uint8_t write_only_imm[] = {
		0x0b, 0xb0, 0x81, 0x23, 0x80, 0xfe, 0xdc, 0xba, 0x80, 0xff, 0xff, 0xfb, /* BTH: SE, pad 3, FECN, A */
		0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0x91, 0x92, 0x93, 0x94,
		0x7f, 0xff, 0xff, 0x01, 0xe1, 0xe2, 0xe3, 0xe4,
	};
	static const uint8_t xrc_swap[] = {
		0xb3, 0x80, 0x81, 0x23, 0x80, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf3, /* BTH: SE, FECN */
		0x00, 0x31, 0x32, 0x33, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0x91, 0x92, 0x93, 0x94,
		0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8,
	};
	static const uint8_t ud_imm[] = {
		0x65, 0xb0, 0x81, 0x23, 0x40, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf5, /* BTH: SE, pad 3, BECN */
		0x80, 0x01, 0x02, 0x03, 0x00, 0x41, 0x42, 0x43, 0xe1, 0xe2, 0xe3, 0xe4,
	};
	static const uint8_t atomic_ack[] = {
		0x12, 0x40, 0x81, 0x23, 0x80, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf2,
		0x2e, 0xc1, 0xc2, 0xc3, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8,
	};
	static const uint8_t invalidate[] = {
		0x17, 0xb0, 0x81, 0x23, 0xc0, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf7, 0x81, 0x82, 0x83, 0x84,
	};
	static const uint8_t atomic_write[] = {
		0x1d, 0x80, 0x81, 0x23, 0x40, 0xfe, 0xdc, 0xba, 0x80, 0xff, 0xff, 0xfd, 0xf1, 0xf2,
		0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0x91, 0x92, 0x93, 0x94, 0x7f, 0xff, 0xff, 0x01,
	};
	static const uint8_t cnp[UVD_BTH_BYTES + UVD_CNP_BYTES] = {
		0x81, 0x80, 0x81, 0x23, 0x00, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf1,
	};
	/* Requests of XRC have its header, answers do not. */
	static const uint8_t xrc_middle[] = {
		0xa1, 0x80, 0x81, 0x23, 0x00, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf1, 0x00, 0x31, 0x32, 0x33,
	};
	static const uint8_t xrc_ack[] = {
		0xb1, 0x80, 0x81, 0x23, 0x00, 0xfe, 0xdc, 0xba, 0x00, 0xff, 0xff, 0xf1, 0x2e, 0xc1, 0xc2, 0xc3,
	};
	static const struct {
		uint8_t opcode;
		uint32_t payload;
		const uint8_t *bytes;
		size_t size;
	} rows[] = {
		{ UVD_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 13, write_only_imm, sizeof(write_only_imm) },
		{ UVD_XRC_COMPARE_SWAP, 0, xrc_swap, sizeof(xrc_swap) },
		{ UVD_UD_SEND_ONLY_WITH_IMMEDIATE, 13, ud_imm, sizeof(ud_imm) },
		{ UVD_RC_ATOMIC_ACKNOWLEDGE, 0, atomic_ack, sizeof(atomic_ack) },
		{ UVD_RC_SEND_ONLY_WITH_INVALIDATE, 13, invalidate, sizeof(invalidate) },
		{ UVD_RC_ATOMIC_WRITE, 8, atomic_write, sizeof(atomic_write) },
		{ UVD_CNP, 0, cnp, sizeof(cnp) },
		{ UVD_XRC_SEND_MIDDLE, 256, xrc_middle, sizeof(xrc_middle) },
		{ UVD_XRC_ACKNOWLEDGE, 0, xrc_ack, sizeof(xrc_ack) },
	};
	uint8_t got[UVD_IB_HEADERS_MAX];

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct uvd_packet p = packet_of(rows[i].opcode, rows[i].payload);

		ck_assert_uint_eq(uvd_packet_put_headers(&p, got), rows[i].size);
		ck_assert_mem_eq(got, rows[i].bytes, rows[i].size);
	}
}
END_TEST

START_TEST(test_numbers_of_24_bits_do_not_touch_their_neighbours)
{
	struct uvd_packet p = packet_of(UVD_XRC_SEND_ONLY, 0), got;
	uint8_t bytes[ROOM];
	uint32_t len;

	p.dest_qpn |= 0xff000000;
	p.psn |= 0xff000000;
	p.srqn |= 0xff000000;
	len = datagram_of(&p, 0, bytes);
	ck_assert_int_eq(uvd_packet_parse(&got, bytes, len), UVD_PACKET_OK);
	p = packet_of(UVD_XRC_SEND_ONLY, 0);
	expect_same(&got, &p);
	/* Reserved bits that a sender has set mean nothing. */
	bytes[4] |= 0x3f;
	bytes[8] |= 0x7f;
	bytes[12] |= 0xff;
	ck_assert_int_eq(uvd_packet_parse(&got, bytes, len), UVD_PACKET_OK);
	expect_same(&got, &p);
}
END_TEST

START_TEST(test_a_datagram_that_ends_in_its_headers_is_too_short)
{
	uint8_t bytes[ROOM];
	struct uvd_packet got;

	for (unsigned int i = 0; i < NUM_OPCODES; i++) {
		const struct uvd_packet p = packet_of(all_opcodes[i], 0);
		const uint32_t len = datagram_of(&p, 0, bytes);

		for (uint32_t n = 0; n < len; n += 4)
			ck_assert_int_eq(parse_exactly(&got, bytes, n), UVD_PACKET_TOO_SHORT);
		ck_assert_int_eq(parse_exactly(&got, bytes, len), UVD_PACKET_OK);
	}
	ck_assert_int_eq(parse_exactly(&got, bytes, 15), UVD_PACKET_TOO_SHORT);
}
END_TEST

START_TEST(test_a_length_that_is_no_multiple_of_4_is_refused)
{
	const struct uvd_packet p = packet_of(UVD_RC_SEND_ONLY, 13);
	uint8_t bytes[ROOM] = { 0 };
	const uint32_t len = datagram_of(&p, 0, bytes);
	struct uvd_packet got;

	for (uint32_t n = len + 1; n < len + 4; n++)
		ck_assert_int_eq(parse_exactly(&got, bytes, n), UVD_PACKET_BAD_LENGTH);
}
END_TEST

START_TEST(test_another_transport_version_is_refused)
{
	const struct uvd_packet p = packet_of(UVD_RC_SEND_ONLY, 13);
	uint8_t bytes[ROOM];
	const uint32_t len = datagram_of(&p, 0, bytes);
	struct uvd_packet got;

	for (int version = 1; version < 16; version++) {
		bytes[1] = (bytes[1] & 0xf0) | version;
		ck_assert_int_eq(parse_exactly(&got, bytes, len), UVD_PACKET_BAD_VERSION);
	}
}
END_TEST

START_TEST(test_opcodes_that_are_not_in_the_table_are_refused_and_not_put)
{
	uint8_t bytes[ROOM] = { 0 };
	struct uvd_packet got;

	for (int opcode = 0; opcode < 256; opcode++) {
		const bool known = memchr(all_opcodes, opcode, NUM_OPCODES);

		bytes[0] = opcode;
		got = (struct uvd_packet){ .opcode = opcode };
		ck_assert_int_eq(known, uvd_opcode_info(opcode)->name != NULL);
		ck_assert_int_eq(known, uvd_packet_put_headers(&got, bytes + 100) != 0);
		if (!known)
			ck_assert_int_eq(parse_exactly(&got, bytes, 96), UVD_PACKET_BAD_OPCODE);
	}
	ck_assert_uint_eq(NUM_OPCODES, 2 * 24 + 12 + 2 + 1);
}
END_TEST

START_TEST(test_more_pad_bytes_than_follow_the_headers_are_refused)
{
	for (unsigned int i = 0; i < NUM_OPCODES; i++) {
		const struct uvd_packet p = packet_of(all_opcodes[i], 0);
		uint8_t bytes[ROOM];
		const uint32_t len = datagram_of(&p, 0, bytes);
		struct uvd_packet got;

		for (int pad = 1; pad < 4; pad++) {
			bytes[1] = (bytes[1] & 0xcf) | pad << 4;
			ck_assert_int_eq(parse_exactly(&got, bytes, len), UVD_PACKET_BAD_PAD);
		}
	}
}
END_TEST

START_TEST(test_more_payload_than_the_largest_mtu_is_refused)
{
	static uint8_t bytes[ROOM];
	struct uvd_packet p = packet_of(UVD_RC_SEND_ONLY, UVD_IB_MTU_MAX), got;

	ck_assert_int_eq(parse_exactly(&got, bytes, datagram_of(&p, 0, bytes)), UVD_PACKET_OK);
	p.payload_len++;
	ck_assert_int_eq(parse_exactly(&got, bytes, datagram_of(&p, 0, bytes)), UVD_PACKET_TOO_LONG);
}
END_TEST

START_TEST(test_payload_where_the_opcode_has_none_is_refused)
{
	uint8_t bytes[ROOM];

	for (unsigned int i = 0; i < NUM_OPCODES; i++) {
		const struct uvd_packet p = packet_of(all_opcodes[i], 4);
		const bool has = uvd_opcode_info(p.opcode)->is & UVD_HAS_PAYLOAD;
		struct uvd_packet got;

		ck_assert_int_eq(parse_exactly(&got, bytes, datagram_of(&p, 0, bytes)),
				 has ? UVD_PACKET_OK : UVD_PACKET_HAS_PAYLOAD);
	}
}
END_TEST

START_TEST(test_each_fault_has_a_name)
{
	for (int i = 0; i < UVD_PACKET_FAULTS; i++)
		ck_assert_ptr_nonnull(uvd_packet_fault_name(i));
}
END_TEST

/* Fills so many bytes by a generator that is quick under a sanitizer (xorshift). */
static void fill_any(uint64_t *state, uint8_t *bytes, size_t len)
{
	for (size_t n = 0; n < len; n += sizeof(*state)) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		memcpy(bytes + n, state, sizeof(*state));
	}
}

START_TEST(test_random_bytes_never_lead_outside_of_the_datagram)
{
	const unsigned int rounds = suite_is_long() ? 1000000 : 30000;
	uint8_t bytes[128], again[UVD_IB_HEADERS_MAX];
	unsigned int parsed = 0;
	struct uvd_packet got;
	uint64_t any = 1;

	srandom(1);
	for (unsigned int i = 0; i < rounds; i++) {
		const size_t len = random() % 4 ? random() % 25 * 4 : random() % 100;

		fill_any(&any, bytes, len);
		if (len > 1 && random() % 2) {
			bytes[0] = all_opcodes[random() % NUM_OPCODES];
			bytes[1] &= 0xf0;
		}
		if (parse_exactly(&got, bytes, len))
			continue;
		parsed++;
		ck_assert_uint_eq(uvd_packet_put_headers(&got, again) + got.payload_len + got.pad + UVD_ICRC_BYTES,
				  len);
	}
	ck_assert_uint_gt(parsed, rounds / 100);
}
END_TEST

START_TEST(test_a_place_in_a_message_has_its_operation)
{
	static const struct {
		enum uvd_packet_message message;
		uint8_t first, middle, last, only;
	} rows[] = {
		{ UVD_MESSAGE_SEND, 0x00, 0x01, 0x02, 0x04 },
		{ UVD_MESSAGE_SEND_WITH_IMMEDIATE, 0x00, 0x01, 0x03, 0x05 },
		{ UVD_MESSAGE_SEND_WITH_INVALIDATE, 0x00, 0x01, 0x16, 0x17 },
		{ UVD_MESSAGE_WRITE, 0x06, 0x07, 0x08, 0x0a },
		{ UVD_MESSAGE_WRITE_WITH_IMMEDIATE, 0x06, 0x07, 0x09, 0x0b },
		{ UVD_MESSAGE_READ_RESPONSE, 0x0d, 0x0e, 0x0f, 0x10 },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_uint_eq(uvd_operation_of(rows[i].message, true, false), rows[i].first);
		ck_assert_uint_eq(uvd_operation_of(rows[i].message, false, false), rows[i].middle);
		ck_assert_uint_eq(uvd_operation_of(rows[i].message, false, true), rows[i].last);
		ck_assert_uint_eq(uvd_operation_of(rows[i].message, true, true), rows[i].only);
	}
	for (unsigned int i = 0; i < NUM_OPCODES; i++) {
		const uint32_t is = uvd_opcode_info(all_opcodes[i])->is;
		const char *name = uvd_opcode_info(all_opcodes[i])->name;

		/* The names of the specification say the same. */
		if (strstr(name, "FIRST") || strstr(name, "MIDDLE") || strstr(name, "LAST")) {
			ck_assert_int_eq(!strstr(name, "FIRST"), !(is & UVD_IS_FIRST));
			ck_assert_int_eq(!strstr(name, "LAST"), !(is & UVD_IS_LAST));
		} else {
			ck_assert_uint_eq(is & (UVD_IS_FIRST | UVD_IS_LAST), UVD_IS_FIRST | UVD_IS_LAST);
		}
		ck_assert_int_eq(!(is & UVD_IS_RESPONSE), !strstr(name, "RESPONSE") && !strstr(name, "ACKNOWLEDGE"));
		ck_assert_int_eq(!(is & UVD_IS_REQUEST), is & UVD_IS_RESPONSE || all_opcodes[i] == UVD_CNP);
	}
}
END_TEST

START_TEST(test_the_length_of_a_payload_follows_its_place_and_the_mtu)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload;
		bool fits;
	} rows[] = {
		{ UVD_RC_SEND_FIRST, 1024, true },
		{ UVD_RC_SEND_FIRST, 1020, false },
		{ UVD_RC_SEND_FIRST, 2048, false },
		{ UVD_UC_RDMA_WRITE_MIDDLE, 1024, true },
		{ UVD_UC_RDMA_WRITE_MIDDLE, 1023, false },
		{ UVD_RC_RDMA_READ_RESPONSE_MIDDLE, 1028, false },
		{ UVD_RC_SEND_LAST, 1, true },
		{ UVD_RC_SEND_LAST, 1024, true },
		{ UVD_RC_SEND_LAST, 0, false },
		{ UVD_RC_SEND_LAST, 1025, false },
		{ UVD_RC_RDMA_WRITE_ONLY, 0, true },
		{ UVD_RC_RDMA_WRITE_ONLY, 1024, true },
		{ UVD_UD_SEND_ONLY, 1025, false },
		{ UVD_RC_ATOMIC_WRITE, 8, true },
		{ UVD_RC_ATOMIC_WRITE, 4, false },
		{ UVD_RC_ACKNOWLEDGE, 0, true },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct uvd_packet p = packet_of(rows[i].opcode, rows[i].payload);

		ck_assert_msg(uvd_packet_fits_mtu(&p, 1024) == rows[i].fits, "row %u", i);
	}
}
END_TEST

START_TEST(test_numbers_are_compared_across_their_wrap)
{
	ck_assert_int_eq(uvd_psn_diff(5, 3), 2);
	ck_assert_int_eq(uvd_psn_diff(3, 5), -2);
	ck_assert_int_eq(uvd_psn_diff(1, 0xffffff), 2);
	ck_assert_int_eq(uvd_psn_diff(0xffffff, 1), -2);
	ck_assert_int_eq(uvd_psn_diff(0x7fffff, 0), 0x7fffff);
	ck_assert_int_eq(uvd_psn_diff(0x800000, 0), -0x800000);
	ck_assert_int_eq(uvd_psn_diff(0x1000003, 3), 0);
}
END_TEST

START_TEST(test_values_of_acknowledgements_are_numbers_of_credits)
{
	/* The table of the specification, 9.7.7.2.1. */
	static const uint32_t credits[] = { 0,	  1,	2,    3,    4,	  6,	 8,	12,    16,   24,   32,
					    48,	  64,	96,   128,  192,  256,	 384,	512,   768,  1024, 1536,
					    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768 };

	ck_assert_uint_eq(sizeof(credits) / sizeof(credits[0]), UVD_AETH_NO_CREDITS);
	for (uint8_t value = 0; value < UVD_AETH_NO_CREDITS; value++)
		ck_assert_uint_eq(uvd_aeth_credits(value), credits[value]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("packet");

	tcase_set_timeout(t, 600);
	tcase_add_test(t, test_what_is_put_is_what_is_parsed);
	tcase_add_test(t, test_headers_are_where_the_specification_has_them);
	tcase_add_test(t, test_numbers_of_24_bits_do_not_touch_their_neighbours);
	tcase_add_test(t, test_a_datagram_that_ends_in_its_headers_is_too_short);
	tcase_add_test(t, test_a_length_that_is_no_multiple_of_4_is_refused);
	tcase_add_test(t, test_another_transport_version_is_refused);
	tcase_add_test(t, test_opcodes_that_are_not_in_the_table_are_refused_and_not_put);
	tcase_add_test(t, test_more_pad_bytes_than_follow_the_headers_are_refused);
	tcase_add_test(t, test_more_payload_than_the_largest_mtu_is_refused);
	tcase_add_test(t, test_payload_where_the_opcode_has_none_is_refused);
	tcase_add_test(t, test_each_fault_has_a_name);
	tcase_add_test(t, test_random_bytes_never_lead_outside_of_the_datagram);
	tcase_add_test(t, test_a_place_in_a_message_has_its_operation);
	tcase_add_test(t, test_the_length_of_a_payload_follows_its_place_and_the_mtu);
	tcase_add_test(t, test_numbers_are_compared_across_their_wrap);
	tcase_add_test(t, test_values_of_acknowledgements_are_numbers_of_credits);
	return run_suite("wire packet", t);
}
