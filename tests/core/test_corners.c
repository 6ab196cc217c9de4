/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Unusual calls: odd lengths, odd numbers, too many of something. tests/faults tests resources that run out. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bed.h"
#include "client/client.h"
#include "../suite.h"

static uint64_t far_away[1024];

static void hole(void *addr, size_t len)
{
	bed.hole = (uintptr_t)addr;
	bed.hole_len = len;
}

/* Calls M_USE with one attribute. */
static long use(uint16_t id, uint64_t data, uint16_t len, uint16_t reserved)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_TOY, M_USE);
	tree_attr(&t, id, data, len)->attr_data.reserved = reserved;
	return tree_send(&t);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

struct toy_args {
	int number;
};

struct other_args {
	int number;
};

START_TEST(test_steps_share_their_arguments)
{
	uvd_args(&bed.call.req, struct toy_args)->number = 5;
	ck_assert_int_eq(uvd_args(&bed.call.req, struct toy_args)->number, 5);
}
END_TEST

START_TEST(test_step_that_takes_the_arguments_for_another_type_is_stopped)
{
	pid_t pid;
	int status;

#ifdef NDEBUG
	SKIP("a build with NDEBUG does not check it");
#endif
	uvd_args(&bed.call.req, struct toy_args)->number = 5;
	pid = fork();
	if (!pid) {
		uvd_args(&bed.call.req, struct other_args)->number = 6;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

/* ---- ioctl ------------------------------------------------------------------------------------------------------- */

START_TEST(test_ioctl_02_a_header_at_address_0_is_efault)
{
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, 0), -EFAULT);
}
END_TEST

START_TEST(test_ioctl_16_trailing_bytes_within_the_attribute_must_be_zero)
{
	ck_assert_int_eq(use(A_SHORT, 5, 4, 0), 0);
	ck_assert_int_eq(use(A_SHORT, 5, 8, 0), 0);
	ck_assert_int_eq(use(A_SHORT, 1ULL << 32 | 5, 8, 0), -EOPNOTSUPP);
	ck_assert_int_eq(use(A_SHORT, 1ULL << 63 | 5, 8, 0), -EOPNOTSUPP);
	ck_assert_int_eq(use(A_SHORT, 1ULL << 63 | 5, 7, 0), 0);
}
END_TEST

START_TEST(test_ioctl_21_raw_fd_has_no_length_and_is_an_int)
{
	ck_assert_int_eq(use(A_RAW, 7, 0, 0), 0);
	ck_assert_int_eq(use(A_RAW, -7, 0, 0), 0);
	ck_assert_int_eq(use(A_RAW, 7, 0, 1), -EINVAL);
	ck_assert_int_eq(use(A_RAW, 7, 4, 0), -EINVAL);
	ck_assert_int_eq(use(A_RAW, 1ULL << 31, 0, 0), -EINVAL);
	ck_assert_int_eq(use(A_RAW, INT_MIN - 1LL, 0, 0), -EINVAL);
}
END_TEST

START_TEST(test_ioctl_22_arrays_that_are_wrong_in_one_place)
{
	uint32_t ids[3] = { 99, toy_new(), toy_new() };

	ck_assert_int_eq(use(A_TOYS, ids[1], 4, 0), 0);
	ck_assert_int_eq(use(A_TOYS, ids[1], 4, 1), -EINVAL);
	ck_assert_int_eq(use(A_TOYS, (uintptr_t)ids, sizeof(ids), 0), -ENOENT);
	ids[0] = ids[1];
	ck_assert_int_eq(use(A_TOYS, (uintptr_t)ids, sizeof(ids), 0), 0);
	hole(ids, 4);
	ck_assert_int_eq(use(A_TOYS, (uintptr_t)ids, sizeof(ids), 0), -EFAULT);
	/* The failed calls left no toy locked. */
	ck_assert_int_eq(toy_destroy(ids[1]), 0);
	ck_assert_int_eq(toy_destroy(ids[2]), 0);
}
END_TEST

START_TEST(test_an_attribute_may_name_an_object_of_any_type)
{
	uint32_t toy = toy_new();

	ck_assert_int_eq(use(A_ANY, toy, 0, 0), 0);
	ck_assert_int_eq(use(A_ANY, toy + 1, 0, 0), -ENOENT);
	ck_assert_int_eq(use(A_ANY, -1, 0, 0), -EINVAL);
	ck_assert_int_eq(use(A_ANY, 1ULL << 32, 0, 0), -ENOENT);
}
END_TEST

/* Creates a channel. Returns the client's end, which the test must close. */
static int channel(void)
{
	uint32_t number = 0;
	uint64_t response = (uintptr_t)&number;
	int fd;

	ck_assert_int_eq(write_plain(W_CHANNEL, &response, 8, 4), 16);
	fd = uvd_event_file_open(bed.call.grant.file);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(uvd_call_granted(&bed.call, fd), 16);
	return fd;
}

START_TEST(test_handle_06_an_fd_is_an_int_and_only_for_shared_use)
{
	int fd = channel();

	ck_assert_int_eq(use(A_FD, fd, 0, 0), 0);
	ck_assert_int_eq(use(A_FD, 1ULL << 32 | fd, 0, 0), -EINVAL);
	ck_assert_int_eq(use(A_FD, -1, 0, 0), -EBADF);
	ck_assert_int_eq(use(A_WRITE_FD, fd, 0, 0), -EOPNOTSUPP);
	close(fd);
}
END_TEST

/* Calls M_UDATA with len bytes of provider data. Returns the last attribute's flags, or a negative errno. */
static long udata(const void *in, uint16_t len, bool out)
{
	uint64_t answer;
	struct uv_tree t;

	tree_begin(&t, OBJ_TOY, M_UDATA);
	if (len)
		tree_attr(&t, UVD_ATTR_UHW_IN, (uintptr_t)in, len);
	if (out)
		tree_attr(&t, A_OUT, (uintptr_t)&answer, sizeof(answer));
	return tree_send(&t) ?: t.hdr.attrs[t.hdr.num_attrs - 1].flags;
}

START_TEST(test_provider_data_behind_a_pointer_is_read_when_a_step_asks)
{
	uint64_t in[3] = { 11, 12, 13 };

	ck_assert_int_eq(udata(in, 24, false), UVERBS_ATTR_F_MANDATORY);
	ck_assert_uint_eq(bed.seen[0], 11);
	ck_assert_uint_eq(bed.seen[1], 12);
	ck_assert_uint_eq(bed.seen[7], 0);
	hole(in, 8);
	ck_assert_int_eq(udata(in, 24, false), -EFAULT);
}
END_TEST

START_TEST(test_provider_data_shorter_than_asked_is_filled_with_zeros_and_nothing_behind_it_changes)
{
	uint64_t in[2] = { 11, UINT64_MAX };

	bed.seen[1] = bed.seen[2] = bed.seen[3] = 99;
	ck_assert_int_eq(udata(in, 12, false), UVERBS_ATTR_F_MANDATORY);
	ck_assert_uint_eq(bed.seen[0], 11);
	ck_assert_uint_eq(bed.seen[1], UINT32_MAX);
	ck_assert_uint_eq(bed.seen[2], 99);
	ck_assert_uint_eq(bed.seen[3], 99);
}
END_TEST

START_TEST(test_memory_that_was_written_by_another_way_is_flagged)
{
	ck_assert_int_eq(udata(NULL, 0, true), UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	ck_assert_uint_ne(bed.seen[7], 0);
	ck_assert_uint_eq(bed.seen[6], 0);
}
END_TEST

static long many(struct uv_tree *t)
{
	tree_begin(t, OBJ_DEVICE, M_MANY);
	for (int i = 0; i < MANY_OUTS; i++)
		tree_attr(t, i, (uintptr_t)&far_away[2 * i], 8);
	return tree_send(t);
}

START_TEST(test_a_method_may_have_more_attributes_and_outputs_than_a_request_has_room_for)
{
	struct uv_tree t;

	memset(far_away, 0xff, sizeof(far_away));
	ck_assert_int_eq(many(&t), 0);
	for (int i = 0; i < MANY_OUTS; i++) {
		ck_assert_uint_eq(far_away[2 * i], i);
		ck_assert_uint_eq(far_away[2 * i + 1], UINT64_MAX);
		ck_assert_uint_eq(t.hdr.attrs[i].flags, UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	}
	hole(&far_away[4], 8);
	ck_assert_int_eq(many(&t), -EFAULT);
}
END_TEST

START_TEST(test_an_empty_output_is_flagged_and_nothing_is_written)
{
	struct uv_tree t;

	memset(far_away, 0xff, sizeof(far_away));
	bed.empty_outs = true;
	ck_assert_int_eq(many(&t), 0);
	for (int i = 0; i < MANY_OUTS; i++) {
		ck_assert_uint_eq(far_away[2 * i], UINT64_MAX);
		ck_assert_uint_eq(t.hdr.attrs[i].flags, UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	}
}
END_TEST

static long invoke(uint64_t command, void *out, uint16_t out_len)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_DEVICE, M_INVOKE_WRITE);
	tree_attr(&t, UVERBS_ATTR_WRITE_CMD, command, 8);
	if (out)
		tree_attr(&t, UVERBS_ATTR_CORE_OUT, (uintptr_t)out, out_len);
	return tree_send(&t);
}

START_TEST(test_invoke_write_without_input_is_all_zeros)
{
	uint64_t out[2] = { 1, 1 };

	ck_assert_int_eq(invoke(X_ECHO | IB_USER_VERBS_CMD_FLAG_EXTENDED, out, sizeof(out)), 0);
	ck_assert_uint_eq(out[0] | out[1], 0);
}
END_TEST

START_TEST(test_invoke_write_answers_however_long)
{
	memset(far_away, 0xff, sizeof(far_away));
	ck_assert_int_eq(invoke(X_ECHO | IB_USER_VERBS_CMD_FLAG_EXTENDED, far_away, 8000), 0);
	for (int i = 0; i < 1000; i++)
		ck_assert_uint_eq(far_away[i], 0);
	ck_assert_uint_eq(far_away[1000], UINT64_MAX);
}
END_TEST

START_TEST(test_invoke_write_of_a_number_with_more_than_32_bits_is_einval)
{
	ck_assert_int_eq(invoke(1ULL << 32 | W_NEW, NULL, 0), -EINVAL);
}
END_TEST

START_TEST(test_handles_that_cannot_be_written_are_efault)
{
	struct uv_tree t;

	toy_new();
	tree_begin(&t, OBJ_DEVICE, M_INFO_HANDLES);
	tree_attr(&t, UVERBS_ATTR_INFO_OBJECT_ID, OBJ_TOY, 8);
	tree_attr(&t, UVERBS_ATTR_INFO_HANDLES_LIST, 0, 4);
	ck_assert_int_eq(tree_send(&t), -EFAULT);
}
END_TEST

/* ---- write() ----------------------------------------------------------------------------------------------------- */

START_TEST(test_write_22_a_response_at_address_0_is_efault)
{
	uint64_t cmd[2] = { 0, 0 };

	ck_assert_int_eq(write_plain(W_NEW, cmd, sizeof(cmd), 8), -EFAULT);
	ck_assert_int_eq(bed.num_destroyed, 1);
}
END_TEST

START_TEST(test_output_at_an_offset)
{
	uint64_t cmd[2] = { 0, 4 };

	ck_assert_int_eq(write_plain(W_AT, cmd, sizeof(cmd), 0), -EFAULT);
	cmd[1] = 0;
	ck_assert_int_eq(write_plain(W_AT, cmd, sizeof(cmd), 0), 24);
	/* Output that exceeds the stage is written directly. */
	cmd[0] = (uintptr_t)far_away;
	cmd[1] = UVD_REQ_STAGE + 8;
	ck_assert_int_eq(write_plain(W_AT, cmd, sizeof(cmd), 0), 24);
	hole(far_away, 8);
	ck_assert_int_eq(write_plain(W_AT, cmd, sizeof(cmd), 0), -EFAULT);
	/* A command has no attributes, and an allocation of SIZE_MAX bytes fails. */
	ck_assert_uint_eq(bed.seen[0], 0);
	ck_assert_uint_eq(bed.seen[1], 0);
}
END_TEST

/* Writes one output in two pieces, at offset 16 and then at 0. fits: the stage has room for both. */
static long in_two_places(struct uv_tree *t, bool fits)
{
	uint64_t cmd[2] = { 0, fits ? W_AT_APART : W_AT_APART_LONG };

	memset(far_away, 0xff, sizeof(far_away));
	tree_begin(t, OBJ_DEVICE, M_INVOKE_WRITE);
	tree_attr(t, UVERBS_ATTR_WRITE_CMD, W_AT, 8);
	tree_attr(t, UVERBS_ATTR_CORE_IN, (uintptr_t)cmd, sizeof(cmd));
	tree_attr(t, UVERBS_ATTR_CORE_OUT, (uintptr_t)far_away, sizeof(far_away));
	return tree_send(t);
}

START_TEST(test_output_in_two_places_has_one_flag)
{
	const uint8_t *out = (uint8_t *)far_away;
	struct uv_tree t;

	ck_assert_int_eq(in_two_places(&t, _i), 0);
	ck_assert_uint_eq(t.hdr.attrs[2].flags, UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	ck_assert(out[0] == 0 && out[16] == 0);
	ck_assert(!_i || (out[3] == 0xff && out[20] == 0xff));
}
END_TEST

START_TEST(test_ioctl_23_output_whose_second_piece_faults_is_not_flagged)
{
	struct uv_tree t;

	hole(far_away, 3);
	ck_assert_int_eq(in_two_places(&t, _i), -EFAULT);
	ck_assert_uint_eq(t.hdr.attrs[2].flags, UVERBS_ATTR_F_MANDATORY);
	ck_assert_int_eq(((uint8_t *)far_away)[16], 0);
}
END_TEST

START_TEST(test_provider_data_of_a_method_that_fails_is_written_and_not_flagged)
{
	uint64_t in[3] = { 1, 2, 3 }, answer = UINT64_MAX;
	struct uv_tree t;

	tree_begin(&t, OBJ_TOY, M_UDATA);
	tree_attr(&t, UVD_ATTR_UHW_IN, (uintptr_t)in, sizeof(in));
	tree_attr(&t, UVD_ATTR_UHW_OUT, (uintptr_t)&answer, sizeof(answer));
	hole(in, 8);
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	ck_assert_uint_eq(t.hdr.attrs[1].flags, UVERBS_ATTR_F_MANDATORY);
	ck_assert_uint_eq(answer, 0);
}
END_TEST

static long echo(void *out, uint16_t out_words)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint64_t in[2];
	} msg = {
		.hdr = { .command = X_ECHO | IB_USER_VERBS_CMD_FLAG_EXTENDED, .in_words = 2, .out_words = out_words },
		.ex = { .response = (uintptr_t)out },
		.in = { 1, 2 },
	};

	return uvd_dispatch_write(&bed.call, &msg, sizeof(msg));
}

START_TEST(test_write_20_what_the_client_has_beyond_the_response_is_zeroed_however_long)
{
	memset(far_away, 0xff, sizeof(far_away));
	ck_assert_int_eq(echo(far_away, 1000), 40);
	ck_assert_uint_eq(far_away[1], 2);
	for (int i = 2; i < 1000; i++)
		ck_assert_uint_eq(far_away[i], 0);
	ck_assert_uint_eq(far_away[1000], UINT64_MAX);
	hole(far_away, 8);
	ck_assert_int_eq(echo(far_away, 1000), -EFAULT);
}
END_TEST

START_TEST(test_an_object_is_free_while_the_grant_of_another_is_pending)
{
	uint32_t number = 0, toy = toy_new();
	uint64_t cmd[2] = { (uintptr_t)&number, toy };
	int fd, err;

	ck_assert_int_eq(write_plain(W_HOLD, cmd, sizeof(cmd), 4), 24);
	uvd_uobject_put(toy_get(toy, UVD_UOBJ_WRITE, &err), UVD_UOBJ_WRITE);
	ck_assert_int_eq(err, 0);
	fd = uvd_event_file_open(bed.call.grant.file);
	ck_assert_int_eq(uvd_call_granted(&bed.call, fd), 24);
	ck_assert_int_eq(number, fd);
	close(fd);
}
END_TEST

START_TEST(test_a_client_or_a_system_without_room_for_fds_is_told_so)
{
	uint32_t number;
	uint64_t response = (uintptr_t)&number;

	ck_assert_int_eq(write_plain(W_CHANNEL, &response, 8, 4), 16);
	ck_assert_int_eq(uvd_call_granted(&bed.call, -EMFILE), -EMFILE);
	ck_assert_int_eq(write_plain(W_CHANNEL, &response, 8, 4), 16);
	ck_assert_int_eq(uvd_call_granted(&bed.call, -ENFILE), -ENFILE);
}
END_TEST

/* ---- commands that are read from the client ---------------------------------------------------------------------- */

START_TEST(test_large_command_with_a_hole_is_efault)
{
	static uint64_t msg[2048];
	struct ib_uverbs_cmd_hdr *hdr = (void *)msg;
	const size_t len = 24 + 1000 * 8;

	*hdr = (struct ib_uverbs_cmd_hdr){ .command = X_ECHO | IB_USER_VERBS_CMD_FLAG_EXTENDED, .in_words = 1000 };
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)msg, len), len);
	hole(&msg[4], 8);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)msg, len), -EFAULT);
	hole(&msg[1], 8);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)msg, len), -EFAULT);
	hole(msg, 8);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)msg, len), -EFAULT);
}
END_TEST

START_TEST(test_short_destroy_cq_whose_handle_cannot_be_read_is_efault)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint64_t rest[2];
	} msg = { .hdr = { .command = W_DESTROY_CQ, .in_words = 4, .out_words = 2 } };

	hole(&msg.rest[1], 8);
	ck_assert_int_eq(uvd_dispatch_write_from(&bed.call, (uintptr_t)&msg, 16), -EFAULT);
	ck_assert_int_eq(bed.ran, 0);
}
END_TEST

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static const struct uvd_object_row *row_of(uint16_t object)
{
	return uvd_tree_object(bed.trees.plain, object)->row;
}

START_TEST(test_what_has_no_objects_has_none)
{
	struct uvd_uobject *uobj;

	ck_assert_int_eq(uvd_uobject_begin(bed.call.file, row_of(OBJ_DEVICE), &uobj), -EINVAL);
	ck_assert_int_eq(uvd_uobject_get(bed.call.file, row_of(OBJ_CHANNEL), 0, UVD_UOBJ_READ, &uobj), -EINVAL);
}
END_TEST

START_TEST(test_nothing_begins_during_a_teardown)
{
	struct uvd_uobject *uobj;

	uvd_rwsem_write(&bed.call.file->destroy_lock);
	ck_assert_int_eq(uvd_uobject_begin(bed.call.file, row_of(OBJ_TOY), &uobj), -EIO);
	uvd_rwsem_write_done(&bed.call.file->destroy_lock);
}
END_TEST

/* Creates a channel, at an attempt that collects event files that their clients have closed: every 64th does. */
static void collect(void)
{
	bed.call.file->event_files_made = 63;
	close(channel());
}

START_TEST(test_an_event_file_in_use_is_not_collected)
{
	struct uvd_file *file = bed.call.file;
	struct uvd_uobject *uobj;
	int fd = channel();

	ck_assert_int_eq(uvd_uobject_get_fd(file, &bed.call.caller, row_of(OBJ_CHANNEL), fd, &uobj), 0);
	close(fd);
	collect();
	ck_assert_uint_eq(file->num_event_files, 2);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	collect();
	ck_assert_uint_eq(file->num_event_files, 1);
}
END_TEST

START_TEST(test_port_events_are_for_asynchronous_event_files_only)
{
	struct uvd_event_file *none = uvd_file_default_async(bed.call.file);
	int fd = channel();
	char event[64];

	ck_assert_ptr_null(none);
	uvd_device_event(&bed.dev.ib, IBV_EVENT_PORT_ERR, 1);
	ck_assert_int_lt(recv(fd, event, sizeof(event), MSG_DONTWAIT), 0);
	close(fd);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, bed_setup, bed_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_ioctl_02_a_header_at_address_0_is_efault);
	tcase_add_test(tc, test_ioctl_16_trailing_bytes_within_the_attribute_must_be_zero);
	tcase_add_test(tc, test_ioctl_21_raw_fd_has_no_length_and_is_an_int);
	tcase_add_test(tc, test_steps_share_their_arguments);
	tcase_add_test(tc, test_step_that_takes_the_arguments_for_another_type_is_stopped);
	tcase_add_test(tc, test_ioctl_22_arrays_that_are_wrong_in_one_place);
	tcase_add_test(tc, test_an_attribute_may_name_an_object_of_any_type);
	tcase_add_test(tc, test_handle_06_an_fd_is_an_int_and_only_for_shared_use);
	tcase_add_test(tc, test_provider_data_behind_a_pointer_is_read_when_a_step_asks);
	tcase_add_test(tc, test_provider_data_shorter_than_asked_is_filled_with_zeros_and_nothing_behind_it_changes);
	tcase_add_test(tc, test_memory_that_was_written_by_another_way_is_flagged);
	tcase_add_test(tc, test_a_method_may_have_more_attributes_and_outputs_than_a_request_has_room_for);
	tcase_add_test(tc, test_an_empty_output_is_flagged_and_nothing_is_written);
	tcase_add_test(tc, test_invoke_write_without_input_is_all_zeros);
	tcase_add_test(tc, test_invoke_write_answers_however_long);
	tcase_add_test(tc, test_invoke_write_of_a_number_with_more_than_32_bits_is_einval);
	tcase_add_test(tc, test_handles_that_cannot_be_written_are_efault);
	tcase_add_test(tc, test_write_22_a_response_at_address_0_is_efault);
	tcase_add_test(tc, test_output_at_an_offset);
	tcase_add_loop_test(tc, test_output_in_two_places_has_one_flag, 0, 2);
	tcase_add_loop_test(tc, test_ioctl_23_output_whose_second_piece_faults_is_not_flagged, 0, 2);
	tcase_add_test(tc, test_provider_data_of_a_method_that_fails_is_written_and_not_flagged);
	tcase_add_test(tc, test_write_20_what_the_client_has_beyond_the_response_is_zeroed_however_long);
	tcase_add_test(tc, test_an_object_is_free_while_the_grant_of_another_is_pending);
	tcase_add_test(tc, test_a_client_or_a_system_without_room_for_fds_is_told_so);
	tcase_add_test(tc, test_large_command_with_a_hole_is_efault);
	tcase_add_test(tc, test_short_destroy_cq_whose_handle_cannot_be_read_is_efault);
	tcase_add_test(tc, test_what_has_no_objects_has_none);
	tcase_add_test(tc, test_nothing_begins_during_a_teardown);
	tcase_add_test(tc, test_an_event_file_in_use_is_not_collected);
	tcase_add_test(tc, test_port_events_are_for_asynchronous_event_files_only);
	return run_suite("corners", tc);
}
