/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The framing of write() commands. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "abi.h"

#define ALLOC_PD IB_USER_VERBS_CMD_ALLOC_PD

static struct ib_uverbs_alloc_pd_resp pd_resp;
static struct ib_uverbs_ex_query_device_resp dev_resp;

/* A valid ALLOC_PD and a valid extended QUERY_DEVICE, which the tests then spoil. */
static void alloc_pd_msg(struct uv_msg *msg)
{
	struct ib_uverbs_alloc_pd cmd = { .response = (uintptr_t)&pd_resp };

	uv_msg_plain(msg, ALLOC_PD, &cmd, sizeof(cmd), sizeof(pd_resp));
}

static void query_device_msg(struct uv_msg *msg)
{
	struct ib_uverbs_ex_query_device cmd = {};

	uv_msg_ex(msg, UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &dev_resp, sizeof(dev_resp));
}

static struct uv_msg msg;

static int alloc_pd_here(void *fd)
{
	uint32_t handle;

	return uv_alloc_pd(*(int *)fd, UV_WRITE, &handle);
}

START_TEST(test_write_01_forked_child_is_eacces)
{
	int fd = open_context(NULL);

	expect(uv_in_child(alloc_pd_here, &fd), EACCES);
	expect_ok(alloc_pd_here(&fd));
}
END_TEST

START_TEST(test_write_01_after_exec_is_eacces)
{
	int fd = open_context(NULL);

	expect(uv_alloc_pd_after_exec(fd), EACCES);
}
END_TEST

START_TEST(test_write_01_another_thread_may_write)
{
	int fd = open_context(NULL);

	expect_ok(uv_in_thread(alloc_pd_here, &fd));
}
END_TEST

/* Runs in a child, because the change of ids cannot be undone. */
static int open_and_set_gid(void *gid)
{
	int fd = open_context(NULL);

	return setgid(*(gid_t *)gid) ? -EDOM : alloc_pd_here(&fd);
}

static int open_and_setresgid(void *gid)
{
	int fd = open_context(NULL);

	return setresgid(*(gid_t *)gid, -1, -1) ? -EDOM : alloc_pd_here(&fd);
}

START_TEST(test_write_01_after_setgid_is_eacces)
{
	gid_t nogroup = 65534;

	target();
	if (geteuid())
		SKIP("only root can change its ids");
	expect(uv_in_child(open_and_set_gid, &nogroup), EACCES);
	expect_choice("write-01-real-id", uv_in_child(open_and_setresgid, &nogroup), EACCES);
}
END_TEST

/* To the same id, setgid() still creates new credentials, but setresgid() does not. */
START_TEST(test_write_01_after_setgid_to_the_same)
{
	gid_t same = getgid();

	target();
	expect_choice("write-01-same-ids", uv_in_child(open_and_set_gid, &same), EACCES);
	expect_ok(uv_in_child(open_and_setresgid, &same));
}
END_TEST

static int query_port_by_method(void *fd)
{
	struct ib_uverbs_query_port_resp resp;

	return uv_query_port(*(int *)fd, UV_METHOD, 1, &resp);
}

static int alloc_pd_by_ioctl(void *fd)
{
	uint32_t handle;

	return uv_alloc_pd(*(int *)fd, UV_INVOKE, &handle);
}

START_TEST(test_write_01_ioctl_does_not_look_at_credentials)
{
	int fd = open_context(NULL);

	expect_ok(uv_in_child(query_port_by_method, &fd));
	expect_ok(uv_in_child(alloc_pd_by_ioctl, &fd));
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

START_TEST(test_write_02_less_than_a_header_is_einval)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	for (msg.len = 1; msg.len < 8; msg.len++)
		expect(uv_msg_send(fd, &msg), EINVAL);
}
END_TEST

START_TEST(test_write_02_nothing_at_all_is_einval)
{
	int fd = open_context(NULL);

	expect_choice("write-02-zero", uv_write(fd, &msg, 0), EINVAL);
}
END_TEST

START_TEST(test_write_03_unreadable_header_is_efault)
{
	int fd = open_context(NULL);

	expect(uv_write(fd, uv_guard(NULL, 0), 16), EFAULT);
	expect(uv_write(fd, NULL, 16), EFAULT);
}
END_TEST

START_TEST(test_write_03_half_readable_header_is_efault)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	expect_choice("write-03-half", uv_write(fd, uv_guard(msg.bytes, 4), 16), EFAULT);
}
END_TEST

START_TEST(test_write_04_unknown_bits_of_the_command_are_einval)
{
	int fd = open_context(NULL);

	for (int bit = 8; bit < 31; bit++) {
		alloc_pd_msg(&msg);
		msg.hdr.command |= 1u << bit;
		expect(uv_msg_send(fd, &msg), EINVAL);
	}
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_write_05_number_past_the_table_is_eopnotsupp_before_its_sizes)
{
	static const uint32_t numbers[] = { 64, 200, 255 };
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(numbers); i++) {
		alloc_pd_msg(&msg);
		msg.hdr.command = numbers[i];
		msg.hdr.in_words = 1000;
		expect(uv_msg_send(fd, &msg), EOPNOTSUPP);
		msg.hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		expect(uv_msg_send(fd, &msg), EOPNOTSUPP);
	}
}
END_TEST

START_TEST(test_write_06_extended_without_its_header_is_einval)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	msg.hdr.in_words = 0;
	for (msg.len = 8; msg.len < 24; msg.len++)
		expect(uv_msg_send(fd, &msg), EINVAL);
}
END_TEST

START_TEST(test_write_07_unreadable_extended_header_is_efault)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	expect_choice("write-07", uv_write(fd, uv_guard(msg.bytes, 8), msg.len), EFAULT);
}
END_TEST

START_TEST(test_write_08_extended_words_must_match_count)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	expect_ok(uv_msg_send(fd, &msg));
	msg.hdr.in_words++;
	expect(uv_msg_send(fd, &msg), EINVAL);
	msg.hdr.in_words -= 2;
	expect(uv_msg_send(fd, &msg), EINVAL);
	uv_msg_ex_hdr(&msg)->provider_in_words = 2;
	expect(uv_msg_send(fd, &msg), EINVAL);
	msg.hdr.in_words++;
	uv_msg_ex_hdr(&msg)->provider_in_words = 0;
	msg.len += 4;
	expect(uv_msg_send(fd, &msg), EINVAL);
}
END_TEST

/* The kernel does not enforce the minimum size of extended commands (write-09), so a shorter one must succeed. */
START_TEST(test_write_09_extended_command_has_no_minimum)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	msg.hdr.in_words = 0;
	msg.hdr.out_words = 1;
	msg.len = 24;
	expect_ok(uv_msg_send(fd, &msg));
}
END_TEST

START_TEST(test_write_10_extended_reserved_must_be_zero)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	uv_msg_ex_hdr(&msg)->cmd_hdr_reserved = 1;
	expect(uv_msg_send(fd, &msg), EINVAL);
}
END_TEST

START_TEST(test_write_11_response_without_room_is_einval)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	msg.hdr.out_words = 0;
	expect(uv_msg_send(fd, &msg), EINVAL);
}
END_TEST

/* The core checks the response pointer before it calls the handler, which would refuse this comp_mask with EINVAL. */
START_TEST(test_write_12_response_outside_user_space_is_efault_before_the_command)
{
	struct ib_uverbs_ex_query_device cmd = { .comp_mask = 1 };
	int fd = open_context(NULL);

	uv_msg_ex(&msg, UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &dev_resp, sizeof(dev_resp));
	expect(uv_msg_send(fd, &msg), EINVAL);
	uv_msg_ex_hdr(&msg)->response = 0xffff800000000000;
	expect(uv_msg_send(fd, &msg), EFAULT);
	uv_msg_ex_hdr(&msg)->response = UINT64_MAX - 7;
	expect(uv_msg_send(fd, &msg), EFAULT);
}
END_TEST

START_TEST(test_write_13_room_without_response_is_einval)
{
	int fd = open_context(NULL);

	query_device_msg(&msg);
	uv_msg_ex_hdr(&msg)->response = 0;
	expect(uv_msg_send(fd, &msg), EINVAL);
	msg.hdr.out_words = 0;
	uv_msg_ex_hdr(&msg)->provider_out_words = 1;
	expect(uv_msg_send(fd, &msg), EINVAL);
}
END_TEST

START_TEST(test_write_14_plain_in_words_must_match_count)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	msg.hdr.in_words++;
	expect(uv_msg_send(fd, &msg), EINVAL);
	msg.hdr.in_words -= 2;
	expect(uv_msg_send(fd, &msg), EINVAL);
	msg.hdr.in_words = 0;
	expect(uv_msg_send(fd, &msg), EINVAL);
	alloc_pd_msg(&msg);
	msg.len += 2;
	expect(uv_msg_send(fd, &msg), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_write_15_input_shorter_than_the_struct_is_enospc)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	msg.len = 12;
	msg.hdr.in_words = 3;
	expect(uv_msg_send(fd, &msg), ENOSPC);
	msg.len = 8;
	msg.hdr.in_words = 2;
	expect(uv_msg_send(fd, &msg), ENOSPC);
}
END_TEST

/* Old libibverbs passes 16 as the count of a command of 24 bytes: the handle lies beyond the count. */
START_TEST(test_write_15_destroy_cq_of_16_bytes_is_taken)
{
	struct ib_uverbs_destroy_cq_resp resp = { 7, 7 };
	struct ib_uverbs_destroy_cq cmd = { .response = (uintptr_t)&resp };
	int fd = open_context(NULL);
	uint32_t pd;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cmd.cq_handle, NULL));
	uv_msg_plain(&msg, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), sizeof(resp));
	msg.len = 16;
	msg.hdr.in_words = 4;
	expect_choice("write-15-destroy-cq", uv_msg_send(fd, &msg), 0);
	if (choice("write-15-destroy-cq"))
		return;
	expect(uv_destroy_cq(fd, UV_WRITE, cmd.cq_handle, NULL), ENOENT);
	ck_assert_uint_eq(resp.comp_events_reported, 0);
}
END_TEST

START_TEST(test_write_16_response_shorter_than_the_struct_is_enospc)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	msg.hdr.out_words = 0;
	expect(uv_msg_send(fd, &msg), ENOSPC);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_write_17_unreadable_response_pointer_is_efault)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	expect_choice("write-17", uv_write(fd, uv_guard(msg.bytes, 8), msg.len), EFAULT);
	expect_choice("write-17", uv_write(fd, uv_guard(msg.bytes, 12), msg.len), EFAULT);
}
END_TEST

START_TEST(test_write_18_number_without_command_is_eopnotsupp_after_the_plain_sizes)
{
	static const uint32_t numbers[] = { 6, 7, 15, IB_USER_VERBS_CMD_FLAG_EXTENDED | 2,
					    IB_USER_VERBS_CMD_FLAG_EXTENDED | 17 };
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(numbers); i++) {
		query_device_msg(&msg);
		msg.hdr.command = numbers[i];
		expect(uv_msg_send(fd, &msg), EINVAL);
		msg.hdr.in_words = msg.len / 4;
		expect(uv_msg_send(fd, &msg), EOPNOTSUPP);
		msg.len = 8;
		msg.hdr.in_words = 2;
		expect(uv_msg_send(fd, &msg), EOPNOTSUPP);
	}
}
END_TEST

/* DEALLOC_PD has no driver data, so the core checks the bytes behind the struct. */
START_TEST(test_write_19_longer_input_must_be_zero)
{
	struct {
		struct ib_uverbs_dealloc_pd cmd;
		uint32_t tail[3];
	} in = { .tail = { 0, 0, 1 } };
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_DEALLOC_PD, &in, sizeof(in) };
	int fd = open_context(NULL);

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &in.cmd.pd_handle));
	expect(uv_cmd(fd, _i, &cmd), EOPNOTSUPP);
	in.tail[2] = 0;
	expect_ok(uv_cmd(fd, _i, &cmd));
}
END_TEST

START_TEST(test_write_19_longer_extended_input_must_be_zero)
{
	struct {
		struct ib_uverbs_ex_query_device cmd;
		uint64_t tail[4];
	} in = { .tail = { 0, 0, 0, 1ull << 63 } };
	struct uv_cmd cmd = { UV_EX(QUERY_DEVICE), &in, sizeof(in), &dev_resp, sizeof(dev_resp) };
	int fd = open_context(NULL);

	expect(uv_cmd(fd, _i, &cmd), EOPNOTSUPP);
	in.tail[3] = 0;
	expect_ok(uv_cmd(fd, _i, &cmd));
}
END_TEST

/* The input ends with comp_mask. The fields behind it, flags and reserved, count as 0. */
START_TEST(test_write_20_shorter_extended_input_is_zero_extended)
{
	struct ib_uverbs_ex_create_cq in = { .cqe = 16, .comp_channel = -1, .flags = 0xdead, .reserved = 0xdead };
	struct ib_uverbs_ex_create_cq_resp resp = {};
	uint8_t uhw_out[64];
	int fd = open_context(NULL);
	struct uv_cmd cmd = { UV_EX(CREATE_CQ),
			      &in,
			      offsetof(struct ib_uverbs_ex_create_cq, flags),
			      &resp,
			      sizeof(resp),
			      NULL,
			      0,
			      uhw_out,
			      uv_room.create_cq };

	expect_ok(uv_cmd(fd, _i, &cmd));
	ck_assert_int_ge(resp.base.cqe, 16);
}
END_TEST

START_TEST(test_write_21_response_is_cut_to_the_room)
{
	struct {
		struct ib_uverbs_ex_query_device_resp resp;
	} out;
	struct ib_uverbs_ex_query_device in = {};
	struct uv_cmd cmd = { UV_EX(QUERY_DEVICE), &in, sizeof(in), &out, 16 };
	int fd = open_context(NULL);

	memset(&out, 0x5a, sizeof(out));
	expect_ok(uv_cmd(fd, _i, &cmd));
	ck_assert(memcmp((uint8_t *)&out, "\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a", 8)); /* fw_ver */
	for (size_t i = 16; i < sizeof(out); i++)
		ck_assert_uint_eq(((uint8_t *)&out)[i], 0x5a);
}
END_TEST

START_TEST(test_write_21_room_behind_the_response_is_zeroed)
{
	static uint8_t out[1024];
	struct ib_uverbs_query_device plain = {};
	struct ib_uverbs_ex_query_device ex = {};
	struct uv_cmd cmds[] = {
		{ IB_USER_VERBS_CMD_QUERY_DEVICE, &plain, sizeof(plain), out, 800 },
		{ UV_EX(QUERY_DEVICE), &ex, sizeof(ex), out, 800 },
	};
	int fd = open_context(NULL);

	for (unsigned int c = 0; c < UV_ARRAY_SIZE(cmds); c++) {
		memset(out, 0x5a, sizeof(out));
		expect_ok(uv_cmd(fd, _i, &cmds[c]));
		for (size_t i = sizeof(struct ib_uverbs_ex_query_device_resp) + 8; i < 800; i++)
			ck_assert_uint_eq(out[i], 0);
		for (size_t i = 800; i < sizeof(out); i++)
			ck_assert_uint_eq(out[i], 0x5a);
	}
}
END_TEST

START_TEST(test_write_21_unwritable_response_is_efault)
{
	struct ib_uverbs_query_device in = {};
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_QUERY_DEVICE, &in, sizeof(in), uv_pages(4096, PROT_READ), 176 };
	int fd = open_context(NULL);

	expect(uv_cmd(fd, _i, &cmd), EFAULT);
	cmd.out = uv_guard(NULL, 100);
	expect(uv_cmd(fd, _i, &cmd), EFAULT);
	cmd.out = (void *)8;
	expect(uv_cmd(fd, _i, &cmd), EFAULT);
}
END_TEST

/*
 * The response lies close to the command or far from it, in the same page or in another. A device may read more memory
 * than the command, and must still write the response over it.
 */
START_TEST(test_write_21_response_is_written_over_what_was_there)
{
	static const int places[] = { -8, -16, -64, -200, -2048, 24, 32, 96, 2000, 4096 };
	const uint8_t what = _i % 2 ? 0xff : 0;
	/* The command is in the middle of a page, or at its beginning. */
	uint8_t *at = (uint8_t *)uv_pages(4 * 4096, PROT_READ | PROT_WRITE) + 4096 + (_i < 2 ? 2100 : 0);
	struct ib_uverbs_destroy_cq cmd = {};
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct ib_uverbs_destroy_cq_resp *resp = (void *)(at + places[i]), none = {};

		memset(resp, what, sizeof(*resp));
		expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cmd.cq_handle, NULL));
		cmd.response = (uintptr_t)resp;
		uv_msg_plain(&msg, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), sizeof(*resp));
		memcpy(at, msg.bytes, msg.len);
		expect_ok(uv_write(fd, at, msg.len));
		ck_assert_msg(!memcmp(resp, &none, sizeof(none)), "response %d bytes from the command", places[i]);
	}
}
END_TEST

START_TEST(test_write_22_create_is_undone_when_its_response_faults)
{
	struct ib_uverbs_alloc_pd in = {};
	struct uv_cmd cmd = { ALLOC_PD, &in, sizeof(in), uv_guard(NULL, 0), sizeof(pd_resp) };
	int fd = open_context(NULL);

	expect(uv_cmd(fd, _i, &cmd), EFAULT);
	expect(uv_dealloc_pd(fd, UV_WRITE, 0), ENOENT);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_write_22_destroy_holds_when_its_response_faults)
{
	struct ib_uverbs_destroy_cq in = {};
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_DESTROY_CQ, &in, sizeof(in), uv_guard(NULL, 4), 8 };
	int fd = open_context(NULL);

	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &in.cq_handle, NULL));
	expect(uv_cmd(fd, _i, &cmd), EFAULT);
	expect(uv_destroy_cq(fd, _i, in.cq_handle, NULL), ENOENT);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_write_23_success_returns_the_whole_count)
{
	int fd = open_context(NULL);

	alloc_pd_msg(&msg);
	ck_assert_int_eq(uv_node_ops->write(fd, msg.bytes, msg.len), (ssize_t)msg.len);
	query_device_msg(&msg);
	ck_assert_int_eq(uv_node_ops->write(fd, msg.bytes, msg.len), (ssize_t)msg.len);
}
END_TEST

TCase *case_write(void)
{
	TCase *tc = tcase_create("write");

	tcase_add_test(tc, test_write_01_forked_child_is_eacces);
	add_test_unless("exec", tc, test_write_01_after_exec_is_eacces);
	tcase_add_test(tc, test_write_01_another_thread_may_write);
	tcase_add_test(tc, test_write_01_after_setgid_is_eacces);
	tcase_add_test(tc, test_write_01_after_setgid_to_the_same);
	add_test_unless("fork", tc, test_write_01_ioctl_does_not_look_at_credentials);
	tcase_add_test(tc, test_write_02_less_than_a_header_is_einval);
	tcase_add_test(tc, test_write_02_nothing_at_all_is_einval);
	tcase_add_test(tc, test_write_03_unreadable_header_is_efault);
	tcase_add_test(tc, test_write_03_half_readable_header_is_efault);
	tcase_add_test(tc, test_write_04_unknown_bits_of_the_command_are_einval);
	tcase_add_test(tc, test_write_05_number_past_the_table_is_eopnotsupp_before_its_sizes);
	tcase_add_test(tc, test_write_06_extended_without_its_header_is_einval);
	tcase_add_test(tc, test_write_07_unreadable_extended_header_is_efault);
	tcase_add_test(tc, test_write_08_extended_words_must_match_count);
	tcase_add_test(tc, test_write_09_extended_command_has_no_minimum);
	tcase_add_test(tc, test_write_10_extended_reserved_must_be_zero);
	tcase_add_test(tc, test_write_11_response_without_room_is_einval);
	tcase_add_test(tc, test_write_12_response_outside_user_space_is_efault_before_the_command);
	tcase_add_test(tc, test_write_13_room_without_response_is_einval);
	tcase_add_test(tc, test_write_14_plain_in_words_must_match_count);
	tcase_add_test(tc, test_write_15_input_shorter_than_the_struct_is_enospc);
	tcase_add_test(tc, test_write_15_destroy_cq_of_16_bytes_is_taken);
	tcase_add_test(tc, test_write_16_response_shorter_than_the_struct_is_enospc);
	tcase_add_test(tc, test_write_17_unreadable_response_pointer_is_efault);
	tcase_add_test(tc, test_write_18_number_without_command_is_eopnotsupp_after_the_plain_sizes);
	tcase_add_loop_test(tc, test_write_19_longer_input_must_be_zero, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_19_longer_extended_input_must_be_zero, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_20_shorter_extended_input_is_zero_extended, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_21_response_is_cut_to_the_room, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_21_room_behind_the_response_is_zeroed, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_21_unwritable_response_is_efault, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_21_response_is_written_over_what_was_there, 0, 4);
	tcase_add_loop_test(tc, test_write_22_create_is_undone_when_its_response_faults, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_write_22_destroy_holds_when_its_response_faults, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_write_23_success_returns_the_whole_count);
	return tc;
}
