/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A meter counts each call once, under the name of its verb and in the bucket of its duration. */
#include <pthread.h>

#include "bed.h"
#include "../suite.h"

static int async_fd;

static void setup(void)
{
	uint32_t comp_vectors;

	harness_open_with(&bed, "null", &uvd_mem_process);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
}

static void teardown(void)
{
	close(async_fd);
	harness_close(&bed);
}

static struct uvd_meter *meter_begin(bool one_user, uid_t uid)
{
	int err;
	struct uvd_meter *m = uvd_meter_new(&bed.engine, one_user, uid, &err);

	ck_assert_msg(m, "%d", err);
	return m;
}

struct wanted {
	const char *name;
	unsigned int found;
	struct uvd_meter_counts counts;
	uint64_t in_buckets, all_calls;
};

static void look(void *arg, const struct uvd_meter_counts *counts)
{
	struct wanted *wanted = arg;

	wanted->all_calls += counts->calls;
	if (strcmp(counts->name, wanted->name))
		return;
	wanted->found++;
	wanted->counts = *counts;
	for (unsigned int i = 0; i < UVD_METER_BUCKETS; i++)
		wanted->in_buckets += counts->buckets[i];
}

/* Reads the meter's counts of this verb. */
static struct wanted counts_of(struct uvd_meter *m, const char *name)
{
	struct wanted wanted = { .name = name };

	uvd_meter_each(m, look, &wanted);
	return wanted;
}

START_TEST(test_each_call_counts_once_under_its_row_s_name_and_its_object_s)
{
	struct uvd_meter *m = meter_begin(false, 0);
	struct wanted w;
	uint32_t pd;

	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(uv_alloc_pd(bed.fd, i % 2 ? UV_WRITE : UV_INVOKE, &pd), 0);
	ck_assert_int_eq(uv_dealloc_pd(bed.fd, UV_WRITE, pd), 0);
	ck_assert_int_eq(uv_dealloc_pd(bed.fd, UV_WRITE, pd), -ENOENT);
	w = counts_of(m, "IB_USER_VERBS_CMD_ALLOC_PD");
	ck_assert_uint_eq(w.found, 1);
	ck_assert_str_eq(w.counts.object, "UVERBS_OBJECT_PD");
	ck_assert_str_eq(w.counts.device, "hfi1_0");
	ck_assert_uint_eq(w.counts.calls, 5);
	ck_assert_uint_eq(w.in_buckets, 5);
	ck_assert_uint_eq(w.counts.errors, 0);
	ck_assert_uint_ge(w.counts.total, w.counts.max);
	ck_assert_uint_le(w.counts.total, 5 * w.counts.max);
	w = counts_of(m, "IB_USER_VERBS_CMD_DEALLOC_PD");
	ck_assert_uint_eq(w.counts.calls, 2);
	ck_assert_uint_eq(w.counts.errors, 1);
	uvd_meter_free(m);
}
END_TEST

START_TEST(test_a_method_counts_under_its_object_and_a_command_that_is_none_is_uncounted)
{
	struct uvd_meter *m = meter_begin(false, 0);
	struct ib_uverbs_cmd_hdr none = { .command = 0x3f, .in_words = sizeof(none) / 4 };
	uint32_t cq, cqe;
	struct wanted w;

	ck_assert_int_eq(uv_create_cq(bed.fd, UV_METHOD, &uv_cq_default, &cq, &cqe), 0);
	w = counts_of(m, "UVERBS_METHOD_CQ_CREATE");
	ck_assert_uint_eq(w.found, 1);
	ck_assert_str_eq(w.counts.object, "UVERBS_OBJECT_CQ");
	w.counts.calls = uvd_meter_uncounted(m);
	ck_assert_int_eq(uvd_dispatch_write(bed.call, &none, sizeof(none)), -EOPNOTSUPP);
	ck_assert_uint_eq(uvd_meter_uncounted(m), w.counts.calls + 1);
	uvd_meter_free(m);
}
END_TEST

/* A call that only meters observe keeps its own operations on the client's memory, and has no pid. */
START_TEST(test_a_call_that_is_only_counted_accesses_its_client_as_usual)
{
	const struct uvd_mem_ops *usual = bed.call->caller.mem;
	struct uvd_meter *m = meter_begin(false, 0);
	struct uvd_observation *ob =
		uvd_observe_begin(&bed.file->watched, uvd_file_tree(bed.file), &bed.call->caller, false);

	ck_assert_ptr_nonnull(ob);
	ck_assert_ptr_eq(bed.call->caller.mem, usual);
	uvd_observe_command(ob, "x", 1);
	uvd_observe_end(ob, "VERB", 0);
	ck_assert_uint_eq(counts_of(m, "VERB").counts.calls, 1);
	uvd_meter_free(m);
	ck_assert_uint_eq(atomic_load(&bed.engine.observers.watched), 0);
}
END_TEST

START_TEST(test_a_recorder_that_comes_during_a_counted_call_does_not_see_it)
{
	const struct uvd_recorder_config config = {};
	int err, fd = memfd_create("trace", MFD_CLOEXEC);
	struct uvd_meter *m = meter_begin(false, 0);
	struct uvd_observation *ob =
		uvd_observe_begin(&bed.file->watched, uvd_file_tree(bed.file), &bed.call->caller, false);
	struct uvd_recorder *r = uvd_recorder_new(&bed.engine, dup(fd), &config, &err);
	uint64_t lost;
	json_t *calls;
	uint32_t pd;
	bool ok;

	ck_assert_ptr_nonnull(r);
	uvd_observe_end(ob, "VERB", 0);
	ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	calls = bed_calls(fd, &lost, &ok);
	ck_assert(ok);
	ck_assert_uint_eq(json_array_size(calls), 1);
	ck_assert_ptr_nonnull(bed_find(calls, "ALLOC"));
	ck_assert_uint_eq(counts_of(m, "IB_USER_VERBS_CMD_ALLOC_PD").counts.calls, 1);
	json_decref(calls);
	uvd_meter_free(m);
	close(fd);
}
END_TEST

START_TEST(test_a_meter_of_one_user_counts_no_other_s_calls)
{
	const uid_t uid = uvd_account_uid(bed.account);
	struct uvd_meter *all = meter_begin(false, 0), *mine = meter_begin(true, uid),
			 *other = meter_begin(true, uid + 1);
	uint32_t pd;

	ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_uint_eq(counts_of(all, "IB_USER_VERBS_CMD_ALLOC_PD").counts.calls, 1);
	ck_assert_uint_eq(counts_of(mine, "IB_USER_VERBS_CMD_ALLOC_PD").counts.calls, 1);
	ck_assert_uint_eq(counts_of(other, "IB_USER_VERBS_CMD_ALLOC_PD").all_calls, 0);
	ck_assert_uint_eq(uvd_meter_uncounted(other), 0);
	/* A set-user-ID program that the user started. */
	bed.file->watched.privileged = true;
	ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_uint_eq(counts_of(all, "IB_USER_VERBS_CMD_ALLOC_PD").counts.calls, 2);
	ck_assert_uint_eq(counts_of(mine, "IB_USER_VERBS_CMD_ALLOC_PD").counts.calls, 1);
	uvd_meter_free(all);
	uvd_meter_free(mine);
	uvd_meter_free(other);
}
END_TEST

START_TEST(test_meters_leave_recorders_their_places)
{
	const struct uvd_recorder_config config = {};
	int err, fd = memfd_create("trace", MFD_CLOEXEC);
	struct uvd_meter *all[UVD_MAX_COUNTERS];
	struct uvd_recorder *r;

	for (int i = 0; i < UVD_MAX_COUNTERS; i++)
		all[i] = meter_begin(false, 0);
	ck_assert_ptr_null(uvd_meter_new(&bed.engine, false, 0, &err));
	ck_assert_int_eq(err, -EBUSY);
	r = uvd_recorder_new(&bed.engine, fd, &config, &err);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	for (int i = 0; i < UVD_MAX_COUNTERS; i++)
		uvd_meter_free(all[i]);
}
END_TEST

/* ---- the histogram ----------------------------------------------------------------------------------------------- */

/* The bucket that counts such a call, as the observer is told of it. */
static unsigned int bucket_of(struct uvd_meter *m, uint64_t ns)
{
	struct uvd_observed call = {
		.file = &bed.file->watched, .tree = uvd_file_tree(bed.file), .verb = "VERB", .duration = ns
	};
	const struct wanted before = counts_of(m, "VERB");
	struct uvd_observer *o = bed.engine.observers.list[UVD_MAX_OBSERVERS];
	struct wanted after;

	o->call(o, &call);
	after = counts_of(m, "VERB");
	for (unsigned int i = 0; i < UVD_METER_BUCKETS; i++)
		if (after.counts.buckets[i] != before.counts.buckets[i])
			return i;
	ck_abort_msg("%llu ns are in no bucket", (unsigned long long)ns);
}

START_TEST(test_a_bucket_counts_what_is_above_the_last_one_s_limit_up_to_its_own)
{
	struct uvd_meter *m = meter_begin(false, 0);
	uint64_t lowest = 0;

	for (unsigned int i = 0; i < UVD_METER_BUCKETS - 1; i++) {
		const uint64_t highest = uvd_meter_highest(i);

		ck_assert_uint_ge(highest, lowest);
		ck_assert_uint_le(highest - lowest, highest / 8);
		ck_assert_uint_eq(bucket_of(m, lowest), i);
		ck_assert_uint_eq(bucket_of(m, highest), i);
		lowest = highest + 1;
	}
	ck_assert_uint_gt(lowest, 1000 * UINT64_C(1000000000)); /* 1,000 s */
	ck_assert_uint_eq(bucket_of(m, lowest), UVD_METER_BUCKETS - 1);
	ck_assert_uint_eq(bucket_of(m, UINT64_MAX), UVD_METER_BUCKETS - 1);
	ck_assert_uint_eq(counts_of(m, "VERB").counts.max, UINT64_MAX);
	uvd_meter_free(m);
}
END_TEST

START_TEST(test_more_verbs_than_a_meter_has_are_uncounted)
{
	struct uvd_meter *m = meter_begin(false, 0);
	struct uvd_observer *o = bed.engine.observers.list[UVD_MAX_OBSERVERS];
	struct uvd_observed call = { .file = &bed.file->watched, .tree = uvd_file_tree(bed.file) };
	char name[80];

	call.verb = name;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < UVD_METER_VERBS + 3; i++) {
			snprintf(name, sizeof(name), "VERB_%d%s", i,
				 i ? "" : "_WITH_A_NAME_THAT_IS_LONGER_THAN_WHAT_A_METER_KEEPS_OF_IT");
			o->call(o, &call);
		}
	}
	ck_assert_uint_eq(uvd_meter_uncounted(m), 6);
	ck_assert_uint_eq(counts_of(m, "VERB_1").counts.calls, 2);
	ck_assert_uint_eq(counts_of(m, "VERB_1").all_calls, 2 * UVD_METER_VERBS);
	uvd_meter_free(m);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 3, CALLS = 2000 };

static void *call_often(void *arg)
{
	struct uvd_call *call = arg;
	struct ib_uverbs_query_port_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_query_port cmd;
	} msg = { .hdr = { .command = IB_USER_VERBS_CMD_QUERY_PORT,
			   .in_words = sizeof(msg) / 4,
			   .out_words = sizeof(resp) / 4 },
		  .cmd = { .response = (uintptr_t)&resp, .port_num = 1 } };

	for (int i = 0; i < CALLS; i++)
		ck_assert_int_eq(uvd_dispatch_write(call, &msg, sizeof(msg)), sizeof(msg));
	return NULL;
}

START_TEST(test_counts_of_many_threads_add_up_while_they_are_read)
{
	static struct uvd_call calls[THREADS];
	struct uvd_meter *m = meter_begin(false, 0);
	pthread_t threads[THREADS];
	uint64_t last = 0;
	struct wanted w;

	for (int i = 0; i < THREADS; i++) {
		calls[i].file = bed.file;
		calls[i].caller = bed.call->caller;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &calls[i]), 0);
	}
	for (int i = 0; i < 50; i++) {
		w = counts_of(m, "IB_USER_VERBS_CMD_QUERY_PORT");
		ck_assert_uint_ge(w.counts.calls, last);
		last = w.counts.calls;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	w = counts_of(m, "IB_USER_VERBS_CMD_QUERY_PORT");
	ck_assert_uint_eq(w.counts.calls, THREADS * CALLS);
	uvd_meter_free(m);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("meter");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_each_call_counts_once_under_its_row_s_name_and_its_object_s);
	tcase_add_test(t, test_a_method_counts_under_its_object_and_a_command_that_is_none_is_uncounted);
	tcase_add_test(t, test_a_call_that_is_only_counted_accesses_its_client_as_usual);
	tcase_add_test(t, test_a_recorder_that_comes_during_a_counted_call_does_not_see_it);
	tcase_add_test(t, test_a_meter_of_one_user_counts_no_other_s_calls);
	tcase_add_test(t, test_meters_leave_recorders_their_places);
	tcase_add_test(t, test_a_bucket_counts_what_is_above_the_last_one_s_limit_up_to_its_own);
	tcase_add_test(t, test_more_verbs_than_a_meter_has_are_uncounted);
	tcase_add_test(t, test_counts_of_many_threads_add_up_while_they_are_read);
	return run_suite("trace meter", t);
}
