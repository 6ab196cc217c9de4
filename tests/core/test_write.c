/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * write() on toy commands: how often the client's memory is read and written, what a failure undoes, and the log.
 * tests/abi/rules_write.c has the checks of the headers.
 */
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uverbsd/log.h>

#include "bed.h"
#include "../suite.h"

#define EX IB_USER_VERBS_CMD_FLAG_EXTENDED

static uint64_t buf[1 << 18];

/* An extended command in buf; returns its length. */
static size_t ex(uint32_t command, uint16_t in_words, uint16_t prov_in, uint16_t out_words, uint16_t prov_out,
		 void *response)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)buf;
	struct ib_uverbs_ex_cmd_hdr *x = (void *)(buf + 1);

	memset(buf, 0, 24 + (in_words + prov_in) * 8);
	*hdr = (struct ib_uverbs_cmd_hdr){ .command = command | EX, .in_words = in_words, .out_words = out_words };
	*x = (struct ib_uverbs_ex_cmd_hdr){
		.response = (uintptr_t)response,
		.provider_in_words = prov_in,
		.provider_out_words = prov_out,
	};
	return 24 + (in_words + prov_in) * 8;
}

static long send(size_t len)
{
	return uvd_dispatch_write(&bed.call, buf, len);
}

static void plain(uint32_t command, uint16_t in_words, uint16_t out_words)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)buf;

	*hdr = (struct ib_uverbs_cmd_hdr){ .command = command, .in_words = in_words, .out_words = out_words };
}

/* User memory ends a page below 1 << 47. */
#define END 0x7ffffffff000

START_TEST(test_write_12_response_beyond_the_address_space_is_efault_before_the_command)
{
	static const struct {
		uint64_t response;
		uint16_t out_words, prov_out;
	} beyond[] = {
		{ END, 1, 0 },
		{ END - 8, 2, 0 },
		{ END - 8, 1, 1 },
		{ END - 65535 * 8, 65535, 1 },
		{ UINT64_MAX - 7, 1, 0 },
	};
	size_t len;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		len = ex(X_ECHO, 2, 0, beyond[i].out_words, beyond[i].prov_out, (void *)beyond[i].response);
		ck_assert_int_eq(send(len), -EFAULT);
	}
	ck_assert_int_eq(bed.ran, 0);
	/* A response may end exactly at END. The command runs, and only writing its response fails. */
	bed.hole = END - 16;
	bed.hole_len = 16;
	len = ex(X_ECHO, 2, 0, 2, 0, (void *)(END - 16));
	ck_assert_int_eq(send(len), -EFAULT);
	ck_assert_int_eq(bed.ran, 1);
}
END_TEST

START_TEST(test_extended_command_says_where_the_provider_data_begins_and_ends)
{
	uint64_t resp[5];

	ck_assert_int_eq(send(ex(X_ECHO, 2, 1, 2, 3, resp)), 24 + 3 * 8);
	ck_assert_uint_eq(bed.seen[0], 16);
	ck_assert_uint_eq(bed.seen[1], 8);
	ck_assert_uint_eq(bed.seen[2], 16);
	ck_assert_uint_eq(bed.seen[3], 24);
}
END_TEST

START_TEST(test_write_23_success_returns_the_length_and_one_write_answers)
{
	struct {
		uint32_t handle, arg, guard;
	} resp = { 1, 1, 1 };
	uint64_t cmd[2] = { (uintptr_t)&resp, 5 };

	ck_assert_int_eq(write_plain(W_NEW, cmd, 16, 8), 24);
	ck_assert_uint_eq(resp.handle, 0);
	ck_assert_uint_eq(resp.arg, 5);
	ck_assert_uint_eq(resp.guard, 1);
	ck_assert_int_eq(bed.writes, 1);
	ck_assert_int_eq(bed.reads, 0);
}
END_TEST

START_TEST(test_write_22_unwritable_response_aborts_what_was_made)
{
	uint64_t resp = 0, cmd[2] = { (uintptr_t)&resp, 5 };

	bed.hole = (uintptr_t)&resp;
	bed.hole_len = 8;
	ck_assert_int_eq(write_plain(W_NEW, cmd, 16, 8), -EFAULT);
	ck_assert_int_eq(bed.num_destroyed, 1);
	ck_assert_int_eq(bed.reasons[0], UVD_REMOVE_ABORT);
	bed.hole_len = 0;
	ck_assert_int_eq(write_plain(W_NEW, cmd, 16, 8), 24);
	ck_assert_uint_eq((uint32_t)resp, 0); /* the handle was free again */
}
END_TEST

START_TEST(test_handle_10_an_abort_that_the_backend_refuses_commits)
{
	uint64_t resp = 0, cmd[2] = { (uintptr_t)&resp, 5 };
	uint32_t handle[2] = { 0 };

	bed.refuse = 1;
	bed.hole = (uintptr_t)&resp;
	bed.hole_len = 8;
	ck_assert_int_eq(write_plain(W_NEW, cmd, 16, 8), -EFAULT);
	ck_assert_int_eq(bed.num_destroyed, 0);
	ck_assert_int_eq(write_plain(W_DESTROY, handle, 8, 0), 16);
	ck_assert_int_eq(bed.num_destroyed, 1);
}
END_TEST

START_TEST(test_what_was_answered_before_a_failure_reaches_the_client)
{
	uint32_t resp = 0;
	uint64_t cmd = (uintptr_t)&resp;

	ck_assert_int_eq(write_plain(W_SECOND_FAILS, &cmd, 8, 4), -ENOMEM);
	ck_assert_uint_eq(resp, 0x1234);
	bed.hole = (uintptr_t)&resp;
	bed.hole_len = 4;
	ck_assert_int_eq(write_plain(W_SECOND_FAILS, &cmd, 8, 4), -EFAULT);
}
END_TEST

START_TEST(test_provider_data_is_what_exceeds_the_structs)
{
	uint32_t resp[4] = { 0 };
	uint64_t cmd[4] = { (uintptr_t)resp, 0, 0xabcd, 0 };

	ck_assert_int_eq(write_plain(W_UDATA, cmd, 32, 12), 40);
	ck_assert_uint_eq(bed.seen[0], 16);
	ck_assert_uint_eq(bed.seen[1], 16);
	ck_assert_uint_eq(bed.seen[2], 4);
	ck_assert_uint_eq(bed.seen[3], 8);
	ck_assert_uint_eq(bed.seen[4], 0xabcd);
	ck_assert_uint_eq(resp[0], 0xaabbccdd);
	ck_assert_uint_eq(resp[1], 1);
	ck_assert_uint_eq(resp[2], 2);
	ck_assert_int_eq(bed.writes, 1); /* the response and the provider's part in one write */
	ck_assert_int_eq(write_plain(W_UDATA, cmd, 16, 4), 24);
	ck_assert_uint_eq(bed.seen[1], 0);
	ck_assert_uint_eq(bed.seen[3], 0);
	ck_assert_uint_eq(bed.seen[4], 0);
}
END_TEST

START_TEST(test_a_list_of_objects_has_no_end)
{
	uint32_t use[2] = { 0, 1000 };
	int64_t handle = toy_new();

	ck_assert_int_eq(handle, 0);
	ck_assert_int_eq(write_plain(W_USE, use, 8, 0), 16);
	ck_assert_int_eq(toy_destroy(0), 0); /* the command released all its locks */
}
END_TEST

/* rdma-core 18 and 19 pass a length of 16 for a DESTROY_CQ that is 24 bytes long. */
START_TEST(test_write_15_short_destroy_cq_is_completed_from_the_clients_memory)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_cq cmd;
	} w = { { W_DESTROY_CQ, 4, 2 }, { .response = (uintptr_t)buf, .cq_handle = 77 } };

	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)&w, 16), 16);
	ck_assert_uint_eq(bed.seen[0], 77);
	/* A copy that ends after 16 bytes does not contain the CQ's handle: the command must not destroy another CQ. */
	ck_assert_int_eq(uvd_dispatch_write(&bed.call, &w, 16), -ENOSPC);
	ck_assert_int_eq(bed.ran, 1);
}
END_TEST

START_TEST(test_a_command_in_the_clients_memory_is_read_once)
{
	size_t len = ex(X_ECHO, 2, 0, 0, 0, NULL);

	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len), len);
	ck_assert_int_eq(bed.reads, 1);
}
END_TEST

START_TEST(test_a_large_command_is_bounded_by_its_header)
{
	size_t len = ex(X_ECHO, 65535, 65535, 0, 0, NULL);

	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len), len);
	ck_assert_int_eq(bed.reads, 2); /* the header, then the rest */
	/* If the length contradicts the header, only the header is read. */
	bed.reads = 0;
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, 1UL << 40), -EINVAL);
	ck_assert_int_eq(bed.reads, 1);
}
END_TEST

START_TEST(test_write_03_07_unreadable_parts_are_efault_in_the_order_of_the_checks)
{
	size_t len = ex(X_ECHO, 4, 0, 0, 0, NULL);

	bed.hole = (uintptr_t)buf + 4;
	bed.hole_len = 1;
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len), -EFAULT);
	bed.hole = (uintptr_t)buf + 23;
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len), -EFAULT);
	bed.hole = (uintptr_t)buf + 30;
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len), -EFAULT);
	/* Sizes are checked before the command is read. */
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len + 8), -EINVAL);
	plain(W_DESTROY_CQ + 1, 0, 0);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)buf, len), -EOPNOTSUPP);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, 0, 8), -EFAULT);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, 0, 7), -EINVAL);
	ck_assert_int_eq(bed.ran, 0);
}
END_TEST

/* Runs call(), which must fail. Returns what it logs at levels up to `most`. */
static const char *logged(enum uvd_log_level most, long (*call)(void))
{
	static char said[1024];
	int fd = memfd_create("log", 0);
	ssize_t n;

	bed.engine.log = uvd_log_new(fd, "test", most);
	ck_assert_int_lt(call(), 0);
	uvd_log_free(bed.engine.log);
	bed.engine.log = NULL;
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = 0;
	close(fd);
	return said;
}

static long wrong_handle(void)
{
	uint32_t handle[2] = { 4711 };

	return write_plain(W_DESTROY, handle, 8, 0);
}

static long unknown_command(void)
{
	return write_plain(W_DESTROY_CQ + 1, NULL, 0, 0);
}

START_TEST(test_a_failed_command_is_one_line_with_command_field_value_and_pid)
{
	const char *said = logged(UVD_WARN, wrong_handle);
	char pid[32];

	snprintf(pid, sizeof(pid), "pid %d", getpid());
	ck_assert_ptr_nonnull(strchr(said, '\n'));
	ck_assert_ptr_null(strchr(strchr(said, '\n') + 1, '\n'));
	ck_assert_msg(strstr(said, "W_DESTROY") && strstr(said, "toy") && strstr(said, "4711") &&
			      strstr(said, ": ENOENT:") && strstr(said, pid),
		      "%s", said);
	/* An unknown command is logged only for debugging: clients use it to ask what a device supports. */
	ck_assert_str_eq(logged(UVD_WARN, unknown_command), "");
	ck_assert_str_ne(logged(UVD_DEBUG, unknown_command), "");
}
END_TEST

static long refused_twice(void)
{
	bed.fail = -EINVAL;
	ck_assert_int_eq(toy_new(), -EINVAL);
	return toy_new();
}

static long busy_twice(void)
{
	const uint32_t handle = toy_new();

	ck_assert_int_eq(toy_destroy(handle), -EBUSY);
	return toy_destroy(handle);
}

static long unsupported_twice(void)
{
	struct uv_tree t;
	long ret = 0;

	for (int n = 0; n < 2; n++) {
		tree_begin(&t, OBJ_TOY, M_USE);
		tree_attr(&t, A_ENUM, 5, 8)->attr_data.enum_data.elem_id = 200;
		ret = tree_send(&t);
	}
	ck_assert_int_eq(ret, -EOPNOTSUPP);
	return ret;
}

static void check_line_once(long (*call)(void), const char *words)
{
	const char *said = logged(UVD_INFO, call), *first = strstr(said, words);

	ck_assert_msg(first, "%s", said);
	ck_assert_ptr_null(strstr(first + 1, words));
	ck_assert_str_eq(logged(UVD_WARN, call), "");
}

/* Programs try what a device accepts: that is no warning, and no field is to blame for what the backend refuses. */
START_TEST(test_what_the_backend_refuses_is_told_once_for_a_process)
{
	check_line_once(refused_twice, "M_NEW: the device refuses this: EINVAL, pid ");
}
END_TEST

START_TEST(test_what_is_not_supported_is_told_once_for_a_process)
{
	check_line_once(unsupported_twice, "A_ENUM (200, 0xc8) is not supported: EOPNOTSUPP, pid ");
}
END_TEST

START_TEST(test_an_object_that_is_in_use_is_told_once_for_a_process)
{
	bed.refuse = 1000;
	check_line_once(busy_twice, ") is still in use: EBUSY, pid ");
}
END_TEST

/* ---- what a request is refused for: the last word counts, but the backend's, which says nothing ------------------ */

static const struct uvd_why broken = { &(const struct uvd_reason){ "broken", "the toy is broken", "mend it", "" } };

static int bad_after_reason(struct uvd_req *req)
{
	uvd_refuse(req, -EINVAL, &broken);
	return uvd_bad(req, -ERANGE, "wheel", 5);
}

static int reason_after_bad(struct uvd_req *req)
{
	uvd_bad(req, -ERANGE, "wheel", 5);
	return uvd_refuse(req, -EINVAL, &broken);
}

static int bad_after_refusal(struct uvd_req *req)
{
	uvd_refused(req, -EPERM);
	return uvd_bad(req, -ERANGE, "wheel", 5);
}

static int reason_after_refusal(struct uvd_req *req)
{
	uvd_refused(req, -EPERM);
	return uvd_refuse(req, -EINVAL, &broken);
}

static int refusal_after_bad(struct uvd_req *req)
{
	uvd_bad(req, -EINVAL, "wheel", 5);
	return uvd_refused(req, -ERANGE);
}

static int refusal_after_reason(struct uvd_req *req)
{
	uvd_refuse(req, -ERANGE, &broken);
	return uvd_refused(req, -EINVAL);
}

static long fails(void)
{
	return toy_new();
}

START_TEST(test_the_last_fault_that_a_request_names_is_told)
{
	static const struct {
		int (*fail)(struct uvd_req *req);
		const char *said;
	} refusals[] = {
		{ bad_after_reason, "M_NEW: ERANGE: wheel is wrong (5, 0x5), pid " },
		{ reason_after_bad, "M_NEW: EINVAL: the toy is broken; mend it, pid " },
		{ bad_after_refusal, "M_NEW: ERANGE: wheel is wrong (5, 0x5), pid " },
		{ reason_after_refusal, "M_NEW: EINVAL: the toy is broken; mend it, pid " },
		{ refusal_after_bad, "M_NEW: ERANGE: wheel is wrong (5, 0x5), pid " },
		{ refusal_after_reason, "M_NEW: EINVAL: the toy is broken; mend it, pid " },
	};

	for (size_t i = 0; i < UVD_COUNT(refusals); i++) {
		const char *said;

		bed.fail_by = refusals[i].fail;
		said = logged(UVD_WARN, fails);
		ck_assert_msg(strstr(said, refusals[i].said) && !strchr(strchr(said, '\n') + 1, '\n'), "%zu: %s", i,
			      said);
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, bed_setup, bed_teardown);
	tcase_add_test(tc, test_write_12_response_beyond_the_address_space_is_efault_before_the_command);
	tcase_add_test(tc, test_extended_command_says_where_the_provider_data_begins_and_ends);
	tcase_add_test(tc, test_write_23_success_returns_the_length_and_one_write_answers);
	tcase_add_test(tc, test_write_22_unwritable_response_aborts_what_was_made);
	tcase_add_test(tc, test_handle_10_an_abort_that_the_backend_refuses_commits);
	tcase_add_test(tc, test_what_was_answered_before_a_failure_reaches_the_client);
	tcase_add_test(tc, test_provider_data_is_what_exceeds_the_structs);
	tcase_add_test(tc, test_a_list_of_objects_has_no_end);
	tcase_add_test(tc, test_write_15_short_destroy_cq_is_completed_from_the_clients_memory);
	tcase_add_test(tc, test_a_command_in_the_clients_memory_is_read_once);
	tcase_add_test(tc, test_a_large_command_is_bounded_by_its_header);
	tcase_add_test(tc, test_write_03_07_unreadable_parts_are_efault_in_the_order_of_the_checks);
	tcase_add_test(tc, test_the_last_fault_that_a_request_names_is_told);
	tcase_add_test(tc, test_a_failed_command_is_one_line_with_command_field_value_and_pid);
	tcase_add_test(tc, test_what_the_backend_refuses_is_told_once_for_a_process);
	tcase_add_test(tc, test_what_is_not_supported_is_told_once_for_a_process);
	tcase_add_test(tc, test_an_object_that_is_in_use_is_told_once_for_a_process);
	return run_suite("write", tc);
}
