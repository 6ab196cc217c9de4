/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* -e failed, -e probe and statuses: which calls of a trace they match, and which they mark. */
#include <errno.h>
#include "bed.h"
#include "trace/reader.h"
#include "../suite.h"

static uint32_t cq;
static struct uvd_backend ops;

static void filter_setup(void)
{
	uint32_t comp_vectors;
	int async_fd;

	bed_open("soft");
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	ck_assert_int_eq(uv_create_cq(bed.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	ops = *bed.dev->ib.ops;
	bed.dev->ib.ops = &ops;
}

/* Returns the terms that the latest call of the trace matches, of these, and "mark" if its JSON is marked as a probe. */
static const char *matches(void)
{
	static const char *const terms[] = { "failed", "probe", "RETRY_EXC_ERR", "SUCCESS", "ENODATA" };
	static char found[128];
	struct uvd_trace_reader r = { .what = "test" };
	const struct uvd_trace_record *record;
	bool bad = false;

	bed_end();
	r.from = fdopen(dup(bed_trace()), "r");
	rewind(r.from);
	ck_assert(uvd_trace_open_reader(&r));
	while ((record = uvd_trace_next(&r, &bad))) {
		struct uvd_trace_decoded d;
		json_t *o;

		if (record->kind != UVD_TRACE_CALL)
			continue;
		ck_assert(uvd_trace_decode(&r, (const void *)record, &d));
		found[0] = 0;
		for (size_t i = 0; i < UVD_COUNT(terms); i++)
			if (uvd_trace_passes(terms[i], &d))
				sprintf(found + strlen(found), "%s%s", *found ? " " : "", terms[i]);
		o = uvd_trace_json(&d);
		ck_assert_int_eq(json_is_true(json_object_get(o, "probe")), !!strstr(found, "probe"));
		json_decref(o);
		uvd_trace_decoded_free(&d);
	}
	ck_assert(!bad);
	uvd_trace_close_reader(&r);
	fclose(r.from);
	return found;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int unknown_command(void)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = IB_USER_VERBS_CMD_FLAG_EXTENDED | 0x7f };

	return uv_write(bed.fd, &hdr, sizeof(hdr));
}

static int unknown_method(void)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_PD, 99);
	return uv_ioctl(bed.fd, &tree);
}

/* libibverbs sends it at the open: no request. */
static int empty_invoke(void)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_QUERY_DEVICE);
	return uv_ioctl(bed.fd, &tree);
}

/* It has no room for the response. */
static int short_invoke(void)
{
	const struct ib_uverbs_create_cq cmd = { .cqe = 7 };
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_CREATE_CQ);
	uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	return uv_ioctl(bed.fd, &tree);
}

static int short_write(void)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = IB_USER_VERBS_CMD_QUERY_DEVICE, .in_words = sizeof(hdr) / 4 };

	return uv_write(bed.fd, &hdr, sizeof(hdr));
}

static int empty_gid(void)
{
	struct ib_uverbs_gid_entry entry;

	return uv_query_gid_entry(bed.fd, 1, 1, &entry);
}

static int port_without_data(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr)
{
	return -ENODATA;
}

static int other_enodata(void)
{
	struct ib_uverbs_query_port_resp resp;

	ops.query_port = port_without_data;
	return uv_query_port(bed.fd, UV_WRITE, 1, &resp);
}

static int unknown_attr_mask(void)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = 1 << 30 };

	return uv_modify_qp(bed.fd, UV_WRITE, &cmd);
}

static int wrong_pd(void)
{
	return uv_dealloc_pd(bed.fd, UV_WRITE, 4711);
}

static const struct {
	int (*call)(void);
	int err;
	const char *matches;
} cases[] = {
	{ unknown_method, EPROTONOSUPPORT, "probe" },
	{ unknown_command, EOPNOTSUPP, "probe" },
	{ empty_invoke, ENOSPC, "probe" },
	{ short_invoke, ENOSPC, "failed" },
	{ short_write, ENOSPC, "failed" },
	{ empty_gid, ENODATA, "probe ENODATA" },
	{ other_enodata, ENODATA, "failed ENODATA" },
	{ unknown_attr_mask, EOPNOTSUPP, "failed" },
	{ wrong_pd, ENOENT, "failed" },
};

START_TEST(test_a_probe_is_marked_and_is_no_failure)
{
	ck_assert_int_eq(cases[_i].call(), -cases[_i].err);
	ck_assert_str_eq(matches(), cases[_i].matches);
}
END_TEST

/* ---- completions ------------------------------------------------------------------------------------------------- */

static enum ibv_wc_status polled[2];

static int poll_two(struct uvd_cq *of, int n, struct ibv_wc *wc)
{
	for (int i = 0; i < 2; i++)
		wc[i] = (struct ibv_wc){ .wr_id = i, .status = polled[i] };
	return 2;
}

static const struct {
	enum ibv_wc_status statuses[2];
	const char *matches;
} polls[] = {
	{ { IBV_WC_SUCCESS, IBV_WC_SUCCESS }, "SUCCESS" },
	{ { IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR }, "failed RETRY_EXC_ERR SUCCESS" },
	{ { IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS }, "failed RETRY_EXC_ERR SUCCESS" },
	{ { IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR }, "failed" },
	{ { IBV_WC_SUCCESS, 4711 /* without a name */ }, "failed SUCCESS" },
};

START_TEST(test_a_call_that_tells_a_failed_completion_is_a_failure)
{
	struct ib_uverbs_wc wc[2];

	memcpy(polled, polls[_i].statuses, sizeof(polled));
	ops.poll_cq = poll_two;
	ck_assert_int_eq(uv_poll_cq(bed.fd, UV_WRITE, cq, 2, wc), 2);
	ck_assert_str_eq(matches(), polls[_i].matches);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("filter");

	tcase_add_checked_fixture(tc, filter_setup, bed_close);
	tcase_add_loop_test(tc, test_a_probe_is_marked_and_is_no_failure, 0, UVD_COUNT(cases));
	tcase_add_loop_test(tc, test_a_call_that_tells_a_failed_completion_is_a_failure, 0, UVD_COUNT(polls));
	return run_suite("filter", tc);
}
