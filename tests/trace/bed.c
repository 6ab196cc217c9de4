/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "bed.h"

#include "trace/reader.h"

struct harness bed;

static struct uvd_recorder *recorder;
static int trace_fd;

void bed_open(const char *backend)
{
	const struct uvd_recorder_config config = {};
	int err, copy;

	harness_open_with(&bed, backend, &uvd_mem_process);
	trace_fd = memfd_create("trace", MFD_CLOEXEC);
	copy = dup(trace_fd);
	recorder = uvd_recorder_new(&bed.engine, copy, &config, &err);
	ck_assert_msg(recorder, "%s", uvd_errno_name(err));
}

void bed_end(void)
{
	ck_assert_int_eq(uvd_recorder_free(recorder), 0);
	recorder = NULL;
}

void bed_close(void)
{
	if (recorder)
		bed_end();
	harness_close(&bed);
	close(trace_fd);
}

int bed_trace(void)
{
	return trace_fd;
}

static void add_call(json_t *calls, struct uvd_trace_reader *r, const struct uvd_trace_record *record, bool *ok)
{
	struct uvd_trace_decoded d;
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	bool decoded = true;

	if (record->kind == UVD_TRACE_ENTRY)
		uvd_trace_decode_entry(r, (const void *)record, &d);
	else
		decoded = uvd_trace_decode(r, (const void *)record, &d);
	if (decoded) {
		uvd_trace_print(to, &d);
		rewind(to);
		uvd_trace_print_json(to, &d);
	} else {
		*ok = false;
	}
	uvd_trace_decoded_free(&d);
	fclose(to);
	if (*text)
		json_array_append_new(calls, json_loads(text, JSON_DISABLE_EOF_CHECK, NULL));
	free(text);
}

json_t *bed_calls(int fd, uint64_t *lost, bool *ok)
{
	struct uvd_trace_reader r = { .what = "the test's trace", .from = fdopen(dup(fd), "r"), .explanations = true };
	FILE *nowhere = fopen("/dev/null", "w");
	const struct uvd_trace_record *record;
	json_t *calls = json_array();
	bool bad = false;

	rewind(r.from);
	*lost = 0;
	*ok = uvd_trace_open_reader(&r);
	while (*ok && (record = uvd_trace_next(&r, &bad))) {
		if (record->kind == UVD_TRACE_LOST)
			*lost += ((const struct uvd_trace_lost *)record)->num;
		if (record->kind == UVD_TRACE_CALL || record->kind == UVD_TRACE_ENTRY)
			add_call(calls, &r, record, ok);
		else if (record->kind == UVD_TRACE_WHY)
			uvd_trace_print_why(nowhere, &r, (const void *)record, true);
		else
			uvd_trace_print_other(nowhere, &r, record, false);
	}
	*ok = *ok && !bad;
	uvd_trace_close_reader(&r);
	fclose(r.from);
	fclose(nowhere);
	return calls;
}

json_t *bed_find(json_t *calls, const char *verb)
{
	json_t *call;
	size_t i;

	json_array_foreach(calls, i, call)
		if (!strcmp(json_string_value(json_object_get(call, "verb")), verb))
			return call;
	return NULL;
}

int64_t bed_number(json_t *call, const char *in, const char *name)
{
	json_t *value = json_object_get(json_object_get(call, in), name);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}
