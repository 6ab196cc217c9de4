/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An engine without CAP_NET_RAW, as the engine process of uverbsd: the kernel would refuse it RAW_PACKET QPs and flows, so the device
 * has none, whatever the client may do.
 */
#include <sys/mman.h>
#include <uverbsd/log.h>
#include "backends/backends.h"
#include "client.h"
#include "tests/suite.h"
#include "wq_verbs.h"

#define LINE "hfi1_0: no RAW_PACKET QPs, flows, counters and work queues, although fake0 has some of them"

static int log_fd;
static struct uvd_log *log_file;

/* The adapter has all that an adapter can have, and the client has CAP_NET_RAW. */
static void setup(void)
{
	wq_init(true);
	h.config.hidden_caps = 0; /* --announce all */
	fake.attr.orig_attr.device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING | IBV_DEVICE_RAW_IP_CSUM;
	fake.attr.max_dm_size = 4096;
	fake.unprivileged = true;
	log_fd = memfd_create("log", MFD_CLOEXEC);
	h.engine.log = log_file = uvd_log_new(log_fd, "", UVD_INFO);
}

static void teardown(void)
{
	wq_teardown();
	uvd_log_free(log_file);
	close(log_fd);
}

/* Returns the number of times that the log has the line. */
static int log_lines(void)
{
	char text[4096];
	const ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);
	int lines = 0;

	ck_assert_int_ge(n, 0);
	text[n] = 0;
	for (const char *p = text; (p = strstr(p, LINE)); p++)
		lines++;
	return lines;
}

static int make_qp(uint8_t type, struct uv_qp *qp)
{
	struct uv_qp_attr attr = uv_qp_attr(wq_client.pd, wq_client.cq);

	attr.type = type;
	return uv_create_qp(wq_client.fd, UV_WRITE, &attr, qp);
}

static int make_raw_qp(void)
{
	struct uv_qp qp;

	return make_qp(IBV_QPT_RAW_PACKET, &qp);
}

static int make_flow(void)
{
	struct ib_uverbs_create_flow cmd = { .flow_attr.port = 1 };
	struct ib_uverbs_create_flow_resp resp;
	struct uv_qp qp;

	ck_assert_int_eq(make_qp(IBV_QPT_UD, &qp), 0);
	cmd.qp_handle = qp.handle;
	return uv_cmd(wq_client.fd, UV_WRITE_EX,
		      &(struct uv_cmd){ UV_EX(CREATE_FLOW), &cmd, sizeof(cmd), &resp, sizeof(resp) });
}

static int make_counters(void)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	return uv_ioctl(wq_client.fd, &tree);
}

static struct ib_uverbs_ex_query_device_resp device(void)
{
	const struct ib_uverbs_ex_query_device cmd = {};
	struct ib_uverbs_ex_query_device_resp resp = {};

	ck_assert_int_eq(uv_cmd(wq_client.fd, UV_WRITE_EX,
				&(struct uv_cmd){ UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &resp, sizeof(resp) }),
			 0);
	return resp;
}

START_TEST(test_device_has_nothing_of_raw_packets_and_says_so_once)
{
	struct ib_uverbs_ex_query_device_resp d;
	struct wq wq;

	wq_start();
	d = device();
	ck_assert_uint_eq(d.base.device_cap_flags, IBV_DEVICE_XRC);
	ck_assert_uint_eq(d.base.max_raw_ethy_qp, 0);
	ck_assert_uint_eq(d.raw_packet_caps, 0);
	ck_assert_uint_eq(d.max_wq_type_rq, 0);
	ck_assert_uint_eq(d.rss_caps.max_rwq_indirection_tables, 0);
	ck_assert_int_eq(make_raw_qp(), -EOPNOTSUPP);
	ck_assert_int_eq(make_flow(), -EOPNOTSUPP);
	ck_assert_int_eq(make_counters(), -EPROTONOSUPPORT);
	ck_assert_int_eq(create_wq(&wq), -EOPNOTSUPP);
	ck_assert_int_eq(log_lines(), 1);
	ck_assert_str_eq(uvd_verbs_absent(&h.dev->ib), "RAW_PACKET QPs, flows, counters and work queues");
}
END_TEST

START_TEST(test_what_needs_no_capability_stays)
{
	wq_start();
	ck_assert_uint_eq(device().max_dm_size, 4096);
	ck_assert_ptr_nonnull(h.dev->ops.alloc_xrcd);
	ck_assert_ptr_nonnull(h.dev->ops.alloc_dm);
}
END_TEST

START_TEST(test_client_without_the_capability_gets_eperm_as_ever)
{
	wq_start();
	h.call->caller.proc = &harness_nobody;
	ck_assert_int_eq(make_raw_qp(), -EPERM);
}
END_TEST

START_TEST(test_engine_with_the_capability_offers_all_and_says_nothing)
{
	fake.unprivileged = false;
	wq_start();
	ck_assert_uint_eq(device().base.device_cap_flags,
			  IBV_DEVICE_XRC | IBV_DEVICE_MANAGED_FLOW_STEERING | IBV_DEVICE_RAW_IP_CSUM);
	ck_assert_int_eq(make_raw_qp(), 0);
	ck_assert_int_eq(make_flow(), 0);
	ck_assert_int_eq(make_counters(), 0);
	ck_assert_int_eq(log_lines(), 0);
	ck_assert_ptr_null(uvd_verbs_absent(&h.dev->ib));
}
END_TEST

START_TEST(test_adapter_without_raw_packets_is_no_reason_to_say_so)
{
	memset(&fake.attr, 0, sizeof(fake.attr));
	fake.result[FAKE_CREATE_COUNTERS] = EOPNOTSUPP;
	wq_start();
	ck_assert_int_eq(log_lines(), 0);
	ck_assert_ptr_null(uvd_verbs_absent(&h.dev->ib));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("net raw");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_device_has_nothing_of_raw_packets_and_says_so_once);
	tcase_add_test(t, test_what_needs_no_capability_stays);
	tcase_add_test(t, test_client_without_the_capability_gets_eperm_as_ever);
	tcase_add_test(t, test_engine_with_the_capability_offers_all_and_says_nothing);
	tcase_add_test(t, test_adapter_without_raw_packets_is_no_reason_to_say_so);
	return run_suite("the verbs backend with a fake adapter: an engine without CAP_NET_RAW", t);
}
