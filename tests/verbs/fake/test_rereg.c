/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * REREG_MR of regions whose data is copied (--memory=bounce), and of devices whose adapter has no REREG_MR.
 * tests/backends/test_verbs_borrow.c has the regions of adapters.
 */
#include "client.h"
#include "tests/suite.h"

enum {
	BYTES = 64,
	FURTHER = 1024,
	IOVA = 0x10000,
	TRANS = IBV_REREG_MR_CHANGE_TRANSLATION,
	PD = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
};

static struct client a;
static char remote[CLIENT_BYTES];

static void setup(void)
{
	client_setup();
	client_open(&a, h.fd);
	memset(a.mem, 'a', CLIENT_BYTES);
	memset(remote, 'r', sizeof(remote));
}

/* With TRANS, the region begins `from` bytes further, and at `iova`. The keys are those of the response. */
static int rereg(uint32_t flags, uint32_t pd, unsigned int access, size_t from, uint64_t iova)
{
	const struct ib_uverbs_rereg_mr cmd = {
		.mr_handle = a.mr.handle,
		.flags = flags,
		.start = (uintptr_t)a.mem + from,
		.length = CLIENT_BYTES - from,
		.hca_va = iova,
		.pd_handle = pd,
		.access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp resp = {};
	const struct uv_cmd call = { .command = IB_USER_VERBS_CMD_REREG_MR,
				     .in = &cmd,
				     .in_len = sizeof(cmd),
				     .out = &resp,
				     .out_len = sizeof(resp) };
	const int ret = uv_cmd(a.fd, UV_WRITE, &call);

	if (!ret) {
		a.mr.lkey = resp.lkey;
		a.mr.rkey = resp.rkey;
	}
	return ret;
}

/* Reads BYTES of the peer to this address in the region. Returns the completion's status. */
static unsigned int status_of_read_to(uint64_t addr)
{
	struct client at = a;
	struct ib_uverbs_wc wc;

	at.mem = (char *)(uintptr_t)addr;
	ck_assert_int_eq(client_read(&at, 1, 0, BYTES, remote), 0);
	ck_assert_int_eq(client_poll(&a, &wc), 1);
	return wc.status;
}

START_TEST(test_access_changes)
{
	const struct uv_mr before = a.mr;

	ck_assert_int_eq(rereg(ACCESS, 0, 0, 0, 0), 0);
	ck_assert_uint_eq(a.mr.lkey, before.lkey);
	ck_assert_uint_eq(a.mr.rkey, before.rkey);
	ck_assert_uint_eq(status_of_read_to((uintptr_t)a.mem), IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(a.mem[0], 'a');
	client_reset(&a);
	client_connect(&a, a.qp.qpn);
	ck_assert_int_eq(rereg(ACCESS, 0, IBV_ACCESS_LOCAL_WRITE, 0, 0), 0);
	ck_assert_uint_eq(status_of_read_to((uintptr_t)a.mem), IBV_WC_SUCCESS);
	ck_assert_int_eq(a.mem[0], 'r');
}
END_TEST

START_TEST(test_pd_changes)
{
	uint32_t other;

	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &other), 0);
	ck_assert_int_eq(rereg(PD, other, 0, 0, 0), 0);
	ck_assert_uint_eq(status_of_read_to((uintptr_t)a.mem), IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(uv_dealloc_pd(a.fd, UV_WRITE, other), -EBUSY);
	client_reset(&a);
	client_connect(&a, a.qp.qpn);
	ck_assert_int_eq(rereg(PD, a.pd, 0, 0, 0), 0);
	ck_assert_uint_eq(status_of_read_to((uintptr_t)a.mem), IBV_WC_SUCCESS);
	ck_assert_int_eq(uv_dealloc_pd(a.fd, UV_WRITE, other), 0);
}
END_TEST

START_TEST(test_memory_changes)
{
	const struct uv_mr before = a.mr;

	ck_assert_int_eq(rereg(TRANS, 0, 0, FURTHER, IOVA + FURTHER), 0);
	ck_assert_uint_ne(a.mr.lkey, before.lkey);
	ck_assert_uint_eq(status_of_read_to(IOVA + FURTHER), IBV_WC_SUCCESS);
	ck_assert_int_eq(a.mem[0], 'a');
	ck_assert_int_eq(a.mem[FURTHER], 'r');
	ck_assert_uint_eq(status_of_read_to(IOVA), IBV_WC_LOC_PROT_ERR);
	client_reset(&a);
	client_connect(&a, a.qp.qpn);
	a.mr.lkey = before.lkey;
	ck_assert_uint_eq(status_of_read_to((uintptr_t)a.mem), IBV_WC_LOC_PROT_ERR);
}
END_TEST

/* As with REG_MR; the region stays as it was. */
START_TEST(test_rights_of_peers_are_refused)
{
	static const uint32_t flags[] = { ACCESS, ACCESS | PD, ACCESS | TRANS };
	const uint64_t bytes = client_bytes();
	uint32_t other;

	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &other), 0);
	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		ck_assert_int_eq(
			rereg(flags[i], other, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0, (uintptr_t)a.mem),
			-EOPNOTSUPP);
	ck_assert_int_eq(uv_dealloc_pd(a.fd, UV_WRITE, other), 0);
	ck_assert_uint_eq(client_bytes(), bytes);
	ck_assert_uint_eq(status_of_read_to((uintptr_t)a.mem), IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_range_that_wraps_is_refused)
{
	/* The region has CLIENT_BYTES, a page. */
	ck_assert_int_eq(rereg(TRANS, 0, 0, 0, UINT64_C(0) - 2 * CLIENT_BYTES), 0);
	ck_assert_int_eq(rereg(TRANS, 0, 0, 0, UINT64_C(0) - CLIENT_BYTES), -EINVAL);
}
END_TEST

static const struct {
	enum uvd_memory memory;
	int ret;
} devices[] = { { UVD_MEMORY_BOUNCE, -EINVAL }, { UVD_MEMORY_BORROW, -EOPNOTSUPP } };

/* The adapter has no ioctl. Its regions cannot change; the engine's own can, and need flags. */
START_TEST(test_adapter_without_rereg_is_a_device_without_it)
{
	client_teardown();
	client_init(NULL);
	h.config.memory = devices[_i].memory;
	client_start();
	client_open(&a, h.fd);
	ck_assert_int_eq(rereg(0, 0, 0, 0, 0), devices[_i].ret);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("verbs rereg");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_add_test(t, test_access_changes);
	tcase_add_test(t, test_pd_changes);
	tcase_add_test(t, test_memory_changes);
	tcase_add_test(t, test_rights_of_peers_are_refused);
	tcase_add_test(t, test_range_that_wraps_is_refused);
	tcase_add_loop_test(t, test_adapter_without_rereg_is_a_device_without_it, 0,
			    sizeof(devices) / sizeof(devices[0]));
	return run_suite("verbs backend: REREG_MR", t);
}
