/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A recorder sees each call, costs the client no further access to its memory, and does not wait for its reader. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <uverbsd/queue.h>

#include "bed.h"
#include "../suite.h"

/* The calls of a complete trace. */
static json_t *complete(void)
{
	uint64_t lost;
	json_t *calls;
	bool ok;

	bed_end();
	calls = bed_calls(bed_trace(), &lost, &ok);
	ck_assert(ok);
	ck_assert_uint_eq(lost, 0);
	return calls;
}

static void teardown(void)
{
	if (bed.file)
		bed_close();
}

START_TEST(test_each_front_s_call_is_told_with_its_results)
{
	const enum uv_front front = _i;
	uint32_t pd, comp_vectors;
	struct uv_mr mr;
	static char memory[4096] __attribute__((aligned(4096)));
	int async_fd;
	json_t *calls, *call;

	bed_open("null");
	ck_assert_int_eq(uv_get_context(bed.fd, front, &async_fd, &comp_vectors), 0);
	ck_assert_int_eq(uv_alloc_pd(bed.fd, front, &pd), 0);
	ck_assert_int_eq(uv_reg_mr(bed.fd, front, pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	calls = complete();
	call = bed_find(calls, "ALLOC");
	ck_assert_ptr_nonnull(call);
	ck_assert_int_eq(bed_number(call, "out", "pd_handle"), pd);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(call, "handles"), "pd_handle")), "PD#0");
	ck_assert_str_eq(json_string_value(json_object_get(call, "front")),
			 front == UV_WRITE ? "write" : "invoke_write");
	call = bed_find(calls, "CMD_REG_MR");
	ck_assert_ptr_nonnull(call);
	ck_assert_int_eq(bed_number(call, "in", "length"), sizeof(memory));
	ck_assert_int_eq(bed_number(call, "in", "pd_handle"), pd);
	ck_assert_int_eq(bed_number(call, "out", "lkey"), mr.lkey);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(call, "in"), "access_flags")),
			 "LOCAL_WRITE");
	json_decref(calls);
	close(async_fd);
}
END_TEST

START_TEST(test_the_descriptor_that_a_grant_writes_is_in_the_trace)
{
	uint32_t comp_vectors;
	int async_fd;
	json_t *calls, *call;

	bed_open("null");
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	calls = complete();
	call = json_array_get(calls, 0);
	ck_assert_int_eq(bed_number(call, "out", "async_fd"), async_fd);
	json_decref(calls);
	close(async_fd);
}
END_TEST

/* As a transport does that gets the bytes of write() with the request, and so reads none. */
START_TEST(test_a_command_that_came_with_the_request_is_in_the_trace)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} msg = {
		.hdr = { .command = IB_USER_VERBS_CMD_ALLOC_PD,
			 .in_words = sizeof(msg) / 4,
			 .out_words = sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp },
	};
	uint32_t comp_vectors;
	int async_fd;
	json_t *calls, *call;

	bed_open("null");
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	ck_assert_int_eq(uvd_dispatch_write(bed.call, &msg, sizeof(msg)), sizeof(msg));
	calls = complete();
	call = bed_find(calls, "ALLOC");
	ck_assert_ptr_nonnull(call);
	ck_assert_str_eq(json_string_value(json_object_get(call, "front")), "write");
	ck_assert_int_eq(bed_number(call, "out", "pd_handle"), resp.pd_handle);
	json_decref(calls);
	close(async_fd);
}
END_TEST

START_TEST(test_a_failed_call_has_its_errno_and_its_request)
{
	uint32_t comp_vectors;
	int async_fd;
	json_t *calls, *call;

	bed_open("null");
	ck_assert_int_eq(uv_get_context(bed.fd, UV_INVOKE, &async_fd, &comp_vectors), 0);
	ck_assert_int_eq(uv_dealloc_pd(bed.fd, UV_INVOKE, 77), -ENOENT);
	calls = complete();
	call = json_array_get(calls, json_array_size(calls) - 1);
	ck_assert_str_eq(json_string_value(json_object_get(call, "errno")), "ENOENT");
	ck_assert_str_eq(json_string_value(json_object_get(call, "object")), "PD");
	json_decref(calls);
	close(async_fd);
}
END_TEST

/* ---- the client -------------------------------------------------------------------------------------------------- */

static unsigned int reads, writes;

static int count_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	reads++;
	return uvd_mem_process.read(c, dst, src, len);
}

static int count_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	writes++;
	return uvd_mem_process.write(c, dst, src, len);
}

static int count_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	writes++;
	return uvd_mem_process.writev(c, v, n);
}

static ssize_t count_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	reads++;
	return uvd_mem_process.read_ahead(c, dst, src, least, most);
}

static const struct uvd_mem_ops counting = {
	.read = count_read, .write = count_write, .writev = count_writev, .read_ahead = count_read_ahead
};

START_TEST(test_an_observed_call_reads_and_writes_the_client_s_memory_as_often_as_another)
{
	const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };
	struct uvd_recorder_config config = {};
	struct uvd_recorder *r;
	uint32_t comp_vectors, handle, cqe;
	int async_fd, err, fd = memfd_create("trace", MFD_CLOEXEC);
	unsigned int plain_reads, plain_writes;

	harness_open_with(&bed, "null", &counting);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	for (size_t i = 0; i < UV_ARRAY_SIZE(fronts); i++) {
		uv_create_cq(bed.fd, fronts[i], &uv_cq_default, &handle,
			     &cqe); /* the first one finds the driver's id */
		reads = writes = 0;
		uv_create_cq(bed.fd, fronts[i], &uv_cq_default, &handle, &cqe);
		plain_reads = reads;
		plain_writes = writes;
		r = uvd_recorder_new(&bed.engine, dup(fd), &config, &err);
		ck_assert_ptr_nonnull(r);
		reads = writes = 0;
		uv_create_cq(bed.fd, fronts[i], &uv_cq_default, &handle, &cqe);
		ck_assert_int_eq(uvd_recorder_free(r), 0);
		ck_assert_uint_eq(reads, plain_reads);
		ck_assert_uint_eq(writes, plain_writes);
		ck_assert_ptr_eq(bed.call->caller.mem, &counting);
	}
	close(async_fd);
	close(fd);
	harness_close(&bed);
}
END_TEST

/* ---- readers ----------------------------------------------------------------------------------------------------- */

enum { MANY = 3000 };

struct reading {
	int from, to;
};

static void *read_all(void *arg)
{
	const struct reading *reading = arg;
	char buf[4096];
	ssize_t n;

	while ((n = read(reading->from, buf, sizeof(buf))) > 0)
		ck_assert_int_eq(write(reading->to, buf, n), n);
	return NULL;
}

START_TEST(test_a_reader_that_does_not_read_loses_records_and_holds_up_no_client)
{
	const struct uvd_recorder_config config = { .ring = UVD_RECORDER_MIN_RING };
	struct reading reading = { .to = memfd_create("trace", MFD_CLOEXEC) };
	uint32_t comp_vectors, pd;
	struct uvd_recorder *r;
	int async_fd, err, ends[2];
	pthread_t thread;
	uint64_t lost;
	json_t *calls;
	bool ok;

	harness_open_with(&bed, "null", &uvd_mem_process);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	reading.from = ends[0];
	r = uvd_recorder_new(&bed.engine, ends[1], &config, &err);
	ck_assert_ptr_nonnull(r);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &reading), 0);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	pthread_join(thread, NULL);
	calls = bed_calls(reading.to, &lost, &ok);
	ck_assert(ok);
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_gt(json_array_size(calls), 0);
	ck_assert_uint_eq(json_array_size(calls) + lost, MANY);
	json_decref(calls);
	close(async_fd);
	close(ends[0]);
	close(reading.to);
	harness_close(&bed);
}
END_TEST

START_TEST(test_a_recorder_whose_reader_has_gone_observes_no_more)
{
	const struct uvd_recorder_config config = {};
	struct uvd_recorder *r;
	int err, ends[2];

	harness_open_with(&bed, "null", &uvd_mem_process);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	signal(SIGPIPE, SIG_IGN);
	r = uvd_recorder_new(&bed.engine, ends[1], &config, &err);
	ck_assert_ptr_nonnull(r);
	close(ends[0]);
	while (!uvd_recorder_ended(r))
		poll(NULL, 0, 1);
	ck_assert_uint_eq(atomic_load(&bed.engine.observers.watched), 0);
	ck_assert_int_eq(uvd_recorder_free(r), -EPIPE);
	harness_close(&bed);
}
END_TEST

START_TEST(test_a_long_access_is_not_whole_and_the_trace_says_so)
{
	static const char bytes[UVD_PIECE_MAX + 1];
	struct uvd_observation *ob;
	struct uvd_recorder *r;
	uint32_t comp_vectors;
	int async_fd, err, fd = memfd_create("trace", MFD_CLOEXEC);
	uint64_t lost;
	json_t *calls;
	bool ok;

	harness_open_with(&bed, "null", &uvd_mem_process);
	r = uvd_recorder_new(&bed.engine, dup(fd), &(struct uvd_recorder_config){}, &err);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	for (size_t len = UVD_PIECE_MAX; len <= sizeof(bytes); len++) {
		ob = uvd_observe_begin(&bed.file->watched, uvd_file_tree(bed.file), &bed.call->caller, false);
		uvd_observe_command(ob, bytes, len);
		uvd_observe_end(ob, NULL, 0);
	}
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	calls = bed_calls(fd, &lost, &ok);
	ck_assert(ok);
	ck_assert(!json_is_true(json_object_get(json_array_get(calls, 1), "cut")));
	ck_assert(json_is_true(json_object_get(json_array_get(calls, 2), "cut")));
	json_decref(calls);
	close(async_fd);
	close(fd);
	harness_close(&bed);
}
END_TEST

START_TEST(test_the_largest_call_fits_into_the_smallest_ring)
{
	const struct uvd_recorder_config config = { .ring = UVD_RECORDER_MIN_RING };
	static const char bytes[UVD_PIECE_MAX + 1];
	struct uvd_observation *ob;
	struct uvd_recorder *r;
	uint32_t comp_vectors;
	int async_fd, err, fd = memfd_create("trace", MFD_CLOEXEC);
	uint64_t lost;
	json_t *calls;
	bool ok;

	harness_open_with(&bed, "null", &uvd_mem_process);
	r = uvd_recorder_new(&bed.engine, dup(fd), &config, &err);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	ob = uvd_observe_begin(&bed.file->watched, uvd_file_tree(bed.file), &bed.call->caller, false);
	for (int i = 0; i < 2 * UVD_PIECES_MAX / UVD_PIECE_MAX; i++)
		uvd_observe_command(ob, bytes, sizeof(bytes));
	for (int i = 0; i < UVD_PIECE_MAX; i++)
		uvd_observe_command(ob, bytes, 1);
	uvd_observe_end(ob, NULL, 0);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	calls = bed_calls(fd, &lost, &ok);
	ck_assert(ok);
	ck_assert_uint_eq(lost, 0);
	ck_assert_uint_eq(json_array_size(calls), 2);
	ck_assert(json_is_true(json_object_get(json_array_get(calls, 1), "cut")));
	json_decref(calls);
	close(async_fd);
	close(fd);
	harness_close(&bed);
}
END_TEST

/* ---- whose calls ------------------------------------------------------------------------------------------------- */

static size_t calls_seen(const struct uvd_recorder_config *config)
{
	int err, fd = memfd_create("trace", MFD_CLOEXEC);
	struct uvd_recorder *r = uvd_recorder_new(&bed.engine, dup(fd), config, &err);
	uint64_t lost;
	json_t *calls;
	uint32_t pd;
	size_t num;
	bool ok;

	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	calls = bed_calls(fd, &lost, &ok);
	ck_assert(ok);
	num = json_array_size(calls);
	json_decref(calls);
	close(fd);
	return num;
}

START_TEST(test_a_recorder_of_one_process_or_one_user_sees_no_others)
{
	uid_t uid;
	uint32_t comp_vectors;
	int async_fd;

	harness_open_with(&bed, "null", &uvd_mem_process);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	uid = uvd_account_uid(bed.account);
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){}), 1);
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){ .pid = getpid() }), 1);
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){ .pid = getppid() }), 0);
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){ .one_user = true, .uid = uid }), 1);
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){ .one_user = true, .uid = uid + 1 }), 0);
	/* A set-user-ID program that the user started. */
	bed.file->watched.privileged = true;
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){ .one_user = true, .uid = uid }), 0);
	ck_assert_uint_eq(calls_seen(&(struct uvd_recorder_config){}), 1);
	close(async_fd);
	harness_close(&bed);
}
END_TEST

/* Returns how many entries of a mapped queue the recorder records, of one by the process and user of the open file. */
static size_t entries_seen(const struct uvd_recorder_config *config)
{
	const struct ib_uverbs_wc wc = { .wr_id = 1 };
	struct uvd_observed_entry entry = { .file = &bed.file->watched,
					    .tree = uvd_file_tree(bed.file),
					    .kind = UVD_QUEUE_CQ,
					    .bytes = (const uint8_t *)&wc,
					    .len = sizeof(wc) };
	int err, fd = memfd_create("trace", MFD_CLOEXEC);
	struct uvd_recorder *r = uvd_recorder_new(&bed.engine, dup(fd), config, &err);
	uint64_t lost;
	json_t *calls;
	size_t num;
	bool ok;

	ck_assert_ptr_nonnull(r);
	uvd_observe_entry(&entry);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	calls = bed_calls(fd, &lost, &ok);
	ck_assert(ok);
	num = json_array_size(calls);
	json_decref(calls);
	close(fd);
	return num;
}

START_TEST(test_a_recorder_of_one_process_or_one_user_sees_no_others_entries)
{
	uid_t uid;

	harness_open_with(&bed, "null", &uvd_mem_process);
	bed.file->watched.opened_by = getpid();
	uid = uvd_account_uid(bed.account);
	ck_assert_uint_eq(entries_seen(&(struct uvd_recorder_config){}), 1);
	ck_assert_uint_eq(entries_seen(&(struct uvd_recorder_config){ .pid = getpid() }), 1);
	ck_assert_uint_eq(entries_seen(&(struct uvd_recorder_config){ .pid = getppid() }), 0);
	ck_assert_uint_eq(entries_seen(&(struct uvd_recorder_config){ .one_user = true, .uid = uid }), 1);
	ck_assert_uint_eq(entries_seen(&(struct uvd_recorder_config){ .one_user = true, .uid = uid + 1 }), 0);
	harness_close(&bed);
}
END_TEST

START_TEST(test_there_are_only_so_many_recorders)
{
	const struct uvd_recorder_config config = {};
	struct uvd_recorder *all[UVD_MAX_OBSERVERS];
	int err, fd = memfd_create("trace", MFD_CLOEXEC);

	harness_open_with(&bed, "null", &uvd_mem_process);
	for (int i = 0; i < UVD_MAX_OBSERVERS; i++) {
		all[i] = uvd_recorder_new(&bed.engine, dup(fd), &config, &err);
		ck_assert_ptr_nonnull(all[i]);
	}
	ck_assert_ptr_null(uvd_recorder_new(&bed.engine, fd, &config, &err));
	ck_assert_int_eq(err, -EBUSY);
	for (int i = 0; i < UVD_MAX_OBSERVERS; i++)
		ck_assert_int_eq(uvd_recorder_free(all[i]), 0);
	close(fd);
	harness_close(&bed);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("recorder");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, test_each_front_s_call_is_told_with_its_results, UV_WRITE, UV_INVOKE + 1);
	tcase_add_test(t, test_the_descriptor_that_a_grant_writes_is_in_the_trace);
	tcase_add_test(t, test_a_command_that_came_with_the_request_is_in_the_trace);
	tcase_add_test(t, test_a_failed_call_has_its_errno_and_its_request);
	tcase_add_test(t, test_an_observed_call_reads_and_writes_the_client_s_memory_as_often_as_another);
	tcase_add_test(t, test_a_reader_that_does_not_read_loses_records_and_holds_up_no_client);
	tcase_add_test(t, test_a_recorder_whose_reader_has_gone_observes_no_more);
	tcase_add_test(t, test_a_long_access_is_not_whole_and_the_trace_says_so);
	tcase_add_test(t, test_the_largest_call_fits_into_the_smallest_ring);
	tcase_add_test(t, test_a_recorder_of_one_process_or_one_user_sees_no_others);
	tcase_add_test(t, test_a_recorder_of_one_process_or_one_user_sees_no_others_entries);
	tcase_add_test(t, test_there_are_only_so_many_recorders);
	return run_suite("trace recorder", t);
}
