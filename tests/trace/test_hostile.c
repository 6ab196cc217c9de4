/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Traces that are wrong: the reader refuses or survives them. Sanitizers see what it does meanwhile. */
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <uverbsd/queue.h>

#include "bed.h"
#include "trace/reader.h"
#include "../suite.h"

static uint8_t *trace;
static size_t trace_len;
static int work; /* a memfd: the changed trace */

/* Writes an entry of a mapped queue of each kind, and of one that there is not, at the end of the trace. */
static void add_entries(uint64_t file)
{
	struct {
		struct uvd_trace_entry entry;
		uint8_t bytes[256];
	} e = { .entry = { .record = { sizeof(e), UVD_TRACE_ENTRY },
			   .file = file,
			   .object = UVERBS_OBJECT_QP,
			   .bytes = 250 } };
	struct ib_uverbs_send_wr wr = { .num_sge = 2, .opcode = IB_UVERBS_WR_SEND };

	memcpy(e.bytes, &wr, sizeof(wr));
	for (e.entry.kind = UVD_QUEUE_SEND; e.entry.kind <= UVD_QUEUE_CQ + 1; e.entry.kind++)
		ck_assert_int_eq(write(bed_trace(), &e, sizeof(e)), sizeof(e));
}

/* Writes an explanation, whose JSON names a key of the record. */
static void add_why(uint64_t file)
{
	static const char text[] = "why\x1b[2J it", json[] = "{\"reason\":\"x\",\"kind\":\"call\",\"pid\":7}";
	struct {
		struct uvd_trace_why why;
		char bytes[64];
	} w = { .why = { .record = { sizeof(w), UVD_TRACE_WHY },
			 .file = file,
			 .text = sizeof(text) - 1,
			 .json = sizeof(json) - 1 } };

	memcpy(w.bytes, text, sizeof(text) - 1);
	memcpy(w.bytes + sizeof(text) - 1, json, sizeof(json) - 1);
	ck_assert_int_eq(write(bed_trace(), &w, sizeof(w)), sizeof(w));
}

static void setup(void)
{
	static char memory[4096] __attribute__((aligned(4096)));
	uint32_t comp_vectors, pd, cq, cqe;
	struct ib_uverbs_destroy_cq_resp resp;
	struct uv_mr mr;
	int async_fd, null = open("/dev/null", O_WRONLY);

	bed_open("null");
	ck_assert_int_eq(uv_get_context(bed.fd, UV_INVOKE, &async_fd, &comp_vectors), 0);
	for (int front = 0; front < UV_FRONTS; front++) {
		uv_alloc_pd(bed.fd, front, &pd);
		uv_reg_mr(bed.fd, front, pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE, &mr);
		uv_create_cq(bed.fd, front, &uv_cq_default, &cq, &cqe);
		uv_destroy_cq(bed.fd, front, cq, &resp);
	}
	close(async_fd);
	bed_end();
	trace_len = lseek(bed_trace(), 0, SEEK_END);
	add_why(bed.file->watched.number);
	add_entries(bed.file->watched.number);
	trace_len = lseek(bed_trace(), 0, SEEK_END);
	trace = malloc(trace_len);
	ck_assert_int_eq(pread(bed_trace(), trace, trace_len, 0), trace_len);
	work = memfd_create("changed", MFD_CLOEXEC);
	dup2(null, STDERR_FILENO); /* thousands of messages */
}

static void teardown(void)
{
	free(trace);
	close(work);
	bed_close();
}

/* Reads a trace of these bytes. Returns whether the reader had no complaint. */
static bool accepts(const uint8_t *bytes, size_t len)
{
	uint64_t lost;
	bool ok;

	ck_assert_int_eq(ftruncate(work, 0), 0);
	ck_assert_int_eq(pwrite(work, bytes, len, 0), len);
	json_decref(bed_calls(work, &lost, &ok));
	return ok;
}

START_TEST(test_the_trace_itself_is_accepted)
{
	ck_assert(accepts(trace, trace_len));
}
END_TEST

/* The file of these entries is open: its close was not recorded. */
START_TEST(test_entries_are_decoded_and_one_of_no_kind_is_survived)
{
	static const char *const verbs[] = { "send_wr", "recv_wr", "wc", "wc" };
	json_t *calls, *in, *entry;
	uint64_t lost;
	size_t num;
	bool ok;

	calls = bed_calls(bed_trace(), &lost, &ok);
	ck_assert(ok);
	num = json_array_size(calls);
	for (size_t i = 0; i < UV_ARRAY_SIZE(verbs); i++) {
		entry = json_array_get(calls, num - UV_ARRAY_SIZE(verbs) + i);
		ck_assert_str_eq(json_string_value(json_object_get(entry, "verb")), verbs[i]);
		ck_assert_str_eq(json_string_value(json_object_get(entry, "kind")), "entry");
		ck_assert_int_eq(bed_number(entry, "in", "qp_handle"), 0);
	}
	in = json_object_get(json_array_get(calls, num - UV_ARRAY_SIZE(verbs)), "in");
	ck_assert_uint_eq(json_object_size(json_object_get(json_object_get(in, "wr"), "sge")), 2);
	ck_assert_uint_eq(strlen(json_string_value(json_object_get(json_object_get(in, "wr"), "inline"))),
			  2 * (250 - sizeof(struct ib_uverbs_send_wr) - 2 * sizeof(struct ibv_sge)));
	json_decref(calls);
	*(uint32_t *)(trace + trace_len - 256 - 8) = 257; /* bytes of the last entry */
	ck_assert(!accepts(trace, trace_len));
}
END_TEST

/* Its text cannot move the terminal's cursor, and its JSON cannot pretend to be another record. */
START_TEST(test_an_explanation_is_printed_as_text_and_as_the_record_that_it_is)
{
	struct uvd_trace_reader r = { .what = "test", .from = fdopen(dup(bed_trace()), "r"), .explanations = true };
	const struct uvd_trace_record *record;
	char *text = NULL;
	bool bad = false;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	rewind(r.from);
	ck_assert(uvd_trace_open_reader(&r));
	while ((record = uvd_trace_next(&r, &bad)))
		if (record->kind == UVD_TRACE_WHY)
			for (int as_json = 0; as_json < 2; as_json++)
				uvd_trace_print_why(to, &r, (const void *)record, as_json);
	fclose(to);
	ck_assert_ptr_nonnull(strstr(text, " why: why?[2J it\n"));
	ck_assert_msg(strstr(text, "\"kind\":\"why\"") && strstr(text, "\"pid\":0"), "%s", text);
	free(text);
	uvd_trace_close_reader(&r);
	fclose(r.from);
}
END_TEST

START_TEST(test_a_wrong_header_is_refused)
{
	const size_t fields[] = { offsetof(struct uvd_trace_header, magic), offsetof(struct uvd_trace_header, order),
				  offsetof(struct uvd_trace_header, version) };

	for (size_t i = 0; i < UV_ARRAY_SIZE(fields); i++) {
		trace[fields[i]] += 1;
		ck_assert(!accepts(trace, trace_len));
		trace[fields[i]] -= 1;
	}
	for (uint32_t size = 0; size < offsetof(struct uverbsd_tree_row, owner); size += 4) {
		memcpy(trace + offsetof(struct uvd_trace_header, row_size), &size, sizeof(size));
		ck_assert(!accepts(trace, trace_len));
	}
}
END_TEST

START_TEST(test_a_trace_that_is_cut_off_ends_there)
{
	const size_t step = trace_len / (suite_is_long() ? 500 : 40) + 1;

	for (size_t len = 0; len < sizeof(struct uvd_trace_header); len++)
		ck_assert(!accepts(trace, len));
	for (size_t len = sizeof(struct uvd_trace_header); len < trace_len; len += step)
		accepts(trace, len);
	ck_assert(!accepts(trace, trace_len - 4));
}
END_TEST

static uint32_t word_at(size_t at)
{
	uint32_t value;

	memcpy(&value, trace + at, sizeof(value));
	return value;
}

/* Calls fn with the place of each record, or (without UVERBSD_LONG) of every eighth one: the calls are much alike. */
static void each_record(void (*fn)(size_t at))
{
	unsigned int n = 0;

	for (size_t at = sizeof(struct uvd_trace_header); at < trace_len; at += word_at(at))
		if (n++ % 8 == 0 || suite_is_long())
			fn(at);
}

static void change_words(size_t at)
{
	static const uint32_t values[] = { 0, 1, 7, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff };
	const uint32_t kind = word_at(at + 4);
	const size_t most = kind == UVD_TRACE_TREE    ? sizeof(struct uvd_trace_tree)
			    : kind == UVD_TRACE_CALL  ? 400
			    : kind == UVD_TRACE_ENTRY ? sizeof(struct uvd_trace_entry) + 128
			    : kind == UVD_TRACE_WHY   ? 1024
						      : 32;

	for (size_t in = 0; in < most && in < word_at(at); in += 4) {
		const uint32_t was = word_at(at + in);

		for (size_t i = 0; i < UV_ARRAY_SIZE(values); i++) {
			memcpy(trace + at + in, &values[i], sizeof(values[i]));
			accepts(trace, trace_len);
		}
		memcpy(trace + at + in, &was, sizeof(was));
	}
}

static void change_words_of_some(size_t at)
{
	static unsigned int nth[UVD_TRACE_WHY + 1];
	const uint32_t kind = word_at(at + 4);

	if (kind <= UVD_TRACE_WHY && nth[kind]++ < (suite_is_long() ? 4 : 1))
		change_words(at);
}

START_TEST(test_a_wrong_number_in_any_record_is_survived)
{
	each_record(change_words_of_some);
}
END_TEST

static void break_length(size_t at)
{
	const uint32_t was = word_at(at), wrong[] = { 0, 4, was + 1, 1u << 21 };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		memcpy(trace + at, &wrong[i], sizeof(wrong[i]));
		ck_assert(!accepts(trace, trace_len));
	}
	memcpy(trace + at, &was, sizeof(was));
}

START_TEST(test_a_wrong_length_of_a_record_is_refused)
{
	each_record(break_length);
}
END_TEST

START_TEST(test_any_changed_bytes_are_survived)
{
	uint32_t seed = 1;

	for (int round = 0; round < 400; round++) {
		uint8_t was[8];
		size_t at[8];

		for (int i = 0; i < 8; i++) {
			seed = seed * 1664525 + 1013904223;
			at[i] = sizeof(struct uvd_trace_header) +
				(seed >> 4) % (trace_len - sizeof(struct uvd_trace_header));
			was[i] = trace[at[i]];
			trace[at[i]] ^= seed >> 24;
		}
		accepts(trace, trace_len);
		for (int i = 8; i-- > 0;)
			trace[at[i]] = was[i];
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("hostile");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 280);
	tcase_add_test(t, test_the_trace_itself_is_accepted);
	tcase_add_test(t, test_entries_are_decoded_and_one_of_no_kind_is_survived);
	tcase_add_test(t, test_an_explanation_is_printed_as_text_and_as_the_record_that_it_is);
	tcase_add_test(t, test_a_wrong_header_is_refused);
	tcase_add_test(t, test_a_trace_that_is_cut_off_ends_there);
	tcase_add_test(t, test_a_wrong_number_in_any_record_is_survived);
	tcase_add_test(t, test_a_wrong_length_of_a_record_is_refused);
	tcase_add_test(t, test_any_changed_bytes_are_survived);
	return run_suite("trace hostile", t);
}
