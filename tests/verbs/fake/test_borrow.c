/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions that the client's thread registers with the adapter, on the engine's side. The adapter is played here: it answers the
 * ioctls of its context. tests/verbs has the whole way, on rxe.
 */
#include <check.h>
#include <errno.h>
#include <linux/capability.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backends/backends.h"
#include "backends/verbs/verbs.h"
#include "tests/suite.h"

enum {
	CMD_FD = 4711,
	PD_HANDLE = 3,
	HANDLE = 9,
	LKEY = 0x901,
	RKEY = 0x902,
	NEW_LKEY = 0xa01,
	NEW_RKEY = 0xa02,
	LENGTH = 8192,
	IOVA = 0x5000
};

/* The adapter's one region, and the driver. */
static struct {
	uint32_t handle;
	uint64_t length, iova;
	int driver, destroy; /* destroy: the errno of its destruction */
	unsigned int destroyed;
	uint32_t lkey, rkey;
	/* REREG_MR: its commands, and the errno of each; a change gives the region the keys NEW_LKEY and NEW_RKEY. */
	struct ib_uverbs_rereg_mr rereg[4];
	int rereg_errno[4];
	unsigned int rereg_num;
	uint64_t rereg_data; /* of the driver, with the last one */
} adapter;

int __wrap_ioctl(int fd, unsigned long request, struct ib_uverbs_ioctl_hdr *hdr);

static void answer(const struct ib_uverbs_attr *attr)
{
	if (attr->attr_id == UVERBS_ATTR_QUERY_MR_RESP_LKEY)
		*(uint32_t *)(uintptr_t)attr->data = adapter.lkey;
	if (attr->attr_id == UVERBS_ATTR_QUERY_MR_RESP_RKEY)
		*(uint32_t *)(uintptr_t)attr->data = adapter.rkey;
	if (attr->attr_id == UVERBS_ATTR_QUERY_MR_RESP_LENGTH)
		*(uint64_t *)(uintptr_t)attr->data = adapter.length;
	if (attr->attr_id == UVERBS_ATTR_QUERY_MR_RESP_IOVA)
		*(uint64_t *)(uintptr_t)attr->data = adapter.iova;
}

static int adapter_rereg(const struct ib_uverbs_ioctl_hdr *hdr)
{
	const struct ib_uverbs_rereg_mr *cmd = (const void *)(uintptr_t)hdr->attrs[1].data;
	const unsigned int n = adapter.rereg_num++;

	ck_assert_uint_eq(hdr->attrs[0].attr_id, UVERBS_ATTR_WRITE_CMD);
	ck_assert_uint_eq(hdr->attrs[0].data, IB_USER_VERBS_CMD_REREG_MR);
	ck_assert_uint_eq(hdr->attrs[1].attr_id, UVERBS_ATTR_CORE_IN);
	ck_assert_uint_eq(hdr->attrs[1].len, sizeof(*cmd));
	ck_assert_uint_eq(hdr->attrs[2].attr_id, UVERBS_ATTR_CORE_OUT);
	ck_assert_uint_eq(hdr->attrs[2].len, sizeof(struct ib_uverbs_rereg_mr_resp));
	ck_assert_uint_lt(n, 4);
	adapter.rereg[n] = *cmd;
	adapter.rereg_data = hdr->num_attrs > 3 ? hdr->attrs[3].len : 0;
	if (adapter.rereg_errno[n])
		return adapter.rereg_errno[n];
	if (!cmd->flags)
		return EINVAL;
	adapter.lkey = NEW_LKEY;
	adapter.rkey = NEW_RKEY;
	return 0;
}

static int adapter_call(const struct ib_uverbs_ioctl_hdr *hdr)
{
	if (hdr->driver_id != (uint32_t)adapter.driver)
		return EINVAL;
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_INVOKE_WRITE)
		return adapter_rereg(hdr);
	if (hdr->object_id != UVERBS_OBJECT_MR)
		return EPROTONOSUPPORT;
	if (hdr->attrs[0].data != adapter.handle)
		return ENOENT;
	if (hdr->method_id == UVERBS_METHOD_MR_DESTROY) {
		adapter.destroyed += !adapter.destroy;
		return adapter.destroy;
	}
	ck_assert_uint_eq(hdr->method_id, UVERBS_METHOD_QUERY_MR);
	for (unsigned int i = 1; i < hdr->num_attrs; i++)
		answer(&hdr->attrs[i]);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, struct ib_uverbs_ioctl_hdr *hdr)
{
	ck_assert_int_eq(fd, CMD_FD);
	ck_assert_uint_eq(request, RDMA_VERBS_IOCTL);
	errno = adapter_call(hdr);
	return errno ? -1 : 0;
}

static struct uvd_ibdev ibdev;
static struct hca_device device;
static struct ibv_context adapter_context = { .cmd_fd = CMD_FD };
static struct ibv_pd adapter_pd = { .handle = PD_HANDLE };
static struct hca_context context;
static struct hca_pd pd;
static struct hca_mr mr;

static void setup(void)
{
	memset(&adapter, 0, sizeof(adapter));
	adapter.driver = RDMA_DRIVER_RXE;
	adapter.handle = HANDLE;
	adapter.length = LENGTH;
	adapter.iova = IOVA;
	adapter.lkey = LKEY;
	adapter.rkey = RKEY;
	memset(&ibdev, 0, sizeof(ibdev));
	ibdev.config.memory = UVD_MEMORY_BORROW;
	ibdev.priv = &device;
	memset(&device, 0, sizeof(device));
	device.ibdev = &ibdev;
	device.adapter = &adapter_context;
	memset(&context, 0, sizeof(context));
	context.context.dev = &ibdev;
	context.adapter = &adapter_context;
	pd = (struct hca_pd){ .pd.context = &context.context, .adapter = &adapter_pd };
	mr = (struct hca_mr){ .mr = { .pd = &pd.pd,
				      .umem = { .mm = (void *)&context, .addr = 0x7000, .length = LENGTH },
				      .iova = IOVA,
				      .length = LENGTH,
				      .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE } };
	hca_borrow_probe(&device);
}

static void teardown(void)
{
	free(context.mrs);
}

/* The core's part: the result of the client's thread. */
static int end(bool executed, int64_t result)
{
	mr.registration.executed = executed;
	return mr.mr.registration->end(&mr.mr, result);
}

static const struct {
	int driver, found;
	enum uvd_memory memory;
} drivers[] = {
	{ RDMA_DRIVER_RXE, RDMA_DRIVER_RXE, UVD_MEMORY_BORROW },
	{ RDMA_DRIVER_MLX5, RDMA_DRIVER_MLX5, UVD_MEMORY_BORROW },
	{ RDMA_DRIVER_IRDMA, RDMA_DRIVER_IRDMA, UVD_MEMORY_BORROW },
	{ RDMA_DRIVER_BNXT_RE, RDMA_DRIVER_BNXT_RE, UVD_MEMORY_BORROW },
	{ RDMA_DRIVER_SIW, -1, UVD_MEMORY_BORROW }, /* its REG_MR answers with data of the driver */
	{ 1000, -1, UVD_MEMORY_BORROW },
	{ RDMA_DRIVER_RXE, RDMA_DRIVER_RXE, UVD_MEMORY_BOUNCE },
};

START_TEST(test_threads_are_borrowed_for_drivers_whose_registration_is_known)
{
	adapter.driver = drivers[_i].driver;
	ibdev.config.memory = drivers[_i].memory;
	hca_borrow_probe(&device);
	ck_assert_int_eq(device.driver_id, drivers[_i].found);
	ck_assert_int_eq(hca_borrows(&device), drivers[_i].found >= 0 && drivers[_i].memory == UVD_MEMORY_BORROW);
}
END_TEST

/* The backend says why it would not borrow threads for an adapter of this driver. */
static const char *obstacle(int driver)
{
	adapter.driver = driver;
	ibdev.config.memory = UVD_MEMORY_AUTO;
	hca_borrow_probe(&device);
	return hca_borrow_obstacle(&ibdev);
}

static void capabilities(struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3], bool set)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };

	ck_assert_int_eq(syscall(set ? SYS_capset : SYS_capget, &hdr, data), 0);
}

START_TEST(test_default_does_not_lend_a_context_of_mlx5_with_rights_of_the_daemon)
{
	const uint32_t rights[] = { 1u << CAP_NET_RAW, 1u << CAP_SYS_RAWIO };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {}, none;
	const char *why;

	capabilities(data, false);
	for (int i = 0; i < 2; i++) {
		none = data[0];
		data[0].effective = data[0].permitted & rights[i];
		capabilities(data, true);
		why = obstacle(RDMA_DRIVER_MLX5);
		ck_assert_int_eq(why && strstr(why, "CAP_NET_RAW"), data[0].effective != 0);
		ck_assert_ptr_null(obstacle(RDMA_DRIVER_RXE));
		data[0] = none;
	}
	data[0].effective &= ~(rights[0] | rights[1]);
	capabilities(data, true);
	ck_assert_ptr_null(obstacle(RDMA_DRIVER_MLX5));
}
END_TEST

START_TEST(test_default_does_not_lend_a_context_of_an_unknown_driver)
{
	ck_assert_ptr_nonnull(obstacle(RDMA_DRIVER_SIW));
	ck_assert(!hca_borrow_knows(&adapter_context));
	adapter.driver = RDMA_DRIVER_RXE;
	ck_assert(hca_borrow_knows(&adapter_context));
}
END_TEST

START_TEST(test_order_describes_the_region_to_the_adapter)
{
	const struct uvd_reg_order *order = &mr.registration.order;

	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_ptr_eq(mr.mr.registration, &mr.registration);
	ck_assert_uint_eq(order->start, 0x7000);
	ck_assert_uint_eq(order->length, LENGTH);
	ck_assert_uint_eq(order->iova, IOVA);
	ck_assert_uint_eq(order->access, mr.mr.access);
	ck_assert_uint_eq(order->pd_handle, PD_HANDLE);
	ck_assert_uint_eq(order->driver_id, RDMA_DRIVER_RXE);
	ck_assert_uint_eq(order->driver_data_len, 0);
	ck_assert_int_eq(mr.registration.fd, CMD_FD);
}
END_TEST

/* libibverbs' providers send this behind struct ib_uverbs_reg_mr. */
static const struct {
	int driver;
	uint32_t len;
	uint8_t data[UVD_REG_DRIVER_DATA];
} driver_data[] = {
	{ RDMA_DRIVER_RXE, 0, {} },
	{ RDMA_DRIVER_BNXT_RE, 0, {} },
	/* u16 reg_type, of which 0 is memory, u16 cq_pages, rq_pages, sq_pages */
	{ RDMA_DRIVER_IRDMA, 8, { 0, 0, 0, 0, 0, 0, 0, 0 } },
};

START_TEST(test_order_has_the_data_of_the_driver)
{
	const struct uvd_reg_order *order = &mr.registration.order;

	adapter.driver = driver_data[_i].driver;
	hca_borrow_probe(&device);
	memset(&mr.registration, 0xff, sizeof(mr.registration));
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_uint_eq(order->driver_data_len, driver_data[_i].len);
	ck_assert_mem_eq(order->driver_data, driver_data[_i].data, sizeof(order->driver_data));
}
END_TEST

START_TEST(test_region_has_the_adapters_keys_until_it_is_destroyed)
{
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(true, HANDLE), 0);
	ck_assert_uint_eq(mr.mr.lkey, LKEY);
	ck_assert_uint_eq(mr.mr.rkey, RKEY);
	adapter.destroy = EBUSY;
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), -EBUSY);
	adapter.destroy = 0;
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	ck_assert_uint_eq(adapter.destroyed, 1);
}
END_TEST

START_TEST(test_region_that_the_client_has_destroyed_itself_ends)
{
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(true, HANDLE), 0);
	adapter.handle = HANDLE + 1;
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	ck_assert_uint_eq(adapter.destroyed, 0);
}
END_TEST

static int port_is_gone(struct ibv_context *gone, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	return EIO;
}

static int window_is_gone(struct ibv_mw *window)
{
	return EIO;
}

/* The event that tells of the adapter's end can come later. */
START_TEST(test_region_and_window_of_an_adapter_that_is_gone_end)
{
	struct verbs_context gone = { .sz = sizeof(gone), .query_port = port_is_gone };
	struct ibv_mw window = { .context = &gone.context };
	struct hca_mw mw = { .mw.pd = &pd.pd, .adapter = &window };

	gone.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	gone.context.ops.dealloc_mw = window_is_gone;
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(true, HANDLE), 0);
	device.adapter = &gone.context;
	adapter.destroy = EIO;
	ck_assert_int_eq((_i ? hca_dereg_mr(&mr.mr) : uvd_backend_verbs.dealloc_mw(&mw.mw)), 0);
	ck_assert(device.dead);
}
END_TEST

static const struct {
	int64_t handle;
	uint64_t length, iova;
} lies[] = { { HANDLE + 1, LENGTH, IOVA }, { HANDLE, LENGTH + 1, IOVA }, { HANDLE, LENGTH, IOVA + 4096 } };

/* Whatever the client's memory says: a region with other bytes, or none, is not taken, and is not destroyed. */
START_TEST(test_handle_of_another_region_is_refused)
{
	adapter.length = lies[_i].length;
	adapter.iova = lies[_i].iova;
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(true, lies[_i].handle), -EFAULT);
	ck_assert_uint_eq(mr.mr.lkey, 0);
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	ck_assert_uint_eq(adapter.destroyed, 0);
}
END_TEST

START_TEST(test_errno_of_the_adapter_reaches_the_client)
{
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(true, -ENOMEM), -ENOMEM);
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	/* A client that does not wait any more gets nothing. */
	ck_assert_int_eq(end(false, -ESRCH), -ESRCH);
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	ck_assert_uint_eq(atomic_load(&context.bounced), 0);
}
END_TEST

START_TEST(test_data_of_a_thread_that_cannot_be_borrowed_is_copied)
{
	const struct ibv_sge borrowed = { IOVA, 8, LKEY }, none[2] = { borrowed, { IOVA, 8, 0 } };
	struct ibv_sge mixed[2] = { borrowed };

	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(false, -EPERM), -EOPNOTSUPP); /* it has remote access */
	mr.mr.access = IBV_ACCESS_LOCAL_WRITE;
	ck_assert_int_eq(end(false, -EPERM), 0);
	ck_assert_uint_ne(mr.mr.lkey, 0);
	mixed[1] = (struct ibv_sge){ IOVA, 8, mr.mr.lkey };
	ck_assert(hca_bounces(&context, &pd, mixed, 2));
	ck_assert(!hca_bounces(&context, &pd, mixed, 1));
	ck_assert(!hca_bounces(&context, &pd, none, 2));
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	ck_assert(!hca_bounces(&context, &pd, mixed, 2));
	ck_assert_uint_eq(adapter.destroyed, 0);
	device.driver_id = -1;
	ck_assert(hca_bounces(&context, &pd, none, 1));
}
END_TEST

/* ---- REREG_MR ---------------------------------------------------------------------------------------------------- */

enum { OTHER_PD = 5, ACCESS = IBV_REREG_MR_CHANGE_ACCESS, PD = IBV_REREG_MR_CHANGE_PD };

static struct ibv_pd other_adapter_pd = { .handle = OTHER_PD };
static struct hca_pd other_pd = { .pd.context = &context.context, .adapter = &other_adapter_pd };

/* The core asks for the other PD, and only local rights. */
static struct hca_mr changed(void)
{
	return (struct hca_mr){ .mr = { .pd = &other_pd.pd,
					.iova = mr.mr.iova,
					.length = mr.mr.length,
					.access = IBV_ACCESS_LOCAL_WRITE } };
}

static int rereg(int flags)
{
	struct hca_mr to = changed();

	return hca_rereg_mr(&mr.mr, flags, &to.mr, NULL);
}

static void borrowed(void)
{
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(end(true, HANDLE), 0);
}

static void assert_old_region(void)
{
	ck_assert_ptr_eq(mr.mr.pd, &pd.pd);
	ck_assert_uint_eq(mr.mr.access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ck_assert_uint_eq(mr.mr.lkey, LKEY);
}

static const struct {
	int err;
	bool has;
} probes[] = { { 0, true }, { EOPNOTSUPP, false }, { EPROTONOSUPPORT, false }, { EIO, false } };

START_TEST(test_adapter_has_rereg_if_it_knows_the_command)
{
	adapter.rereg_errno[0] = probes[_i].err;
	ck_assert_int_eq(hca_tries_rereg(&adapter_context), probes[_i].has);
	ck_assert_uint_eq(adapter.rereg[0].flags, 0);
	adapter.driver = -1; /* no ioctl */
	ck_assert(!hca_tries_rereg(&adapter_context));
	ck_assert_uint_eq(adapter.rereg_num, 1);
}
END_TEST

static const struct {
	int flags;
	unsigned int calls;
	uint32_t first, second;
} changes[] = { { ACCESS, 1, ACCESS, 0 }, { PD, 1, PD, 0 }, { ACCESS | PD, 2, ACCESS, PD }, { 0, 0, 0, 0 } };

/* The address and the length are those of no memory: a driver would find the engine's there. */
START_TEST(test_adapter_changes_a_borrowed_region)
{
	borrowed();
	ck_assert_int_eq(rereg(changes[_i].flags), UVD_REREG_CHANGED);
	ck_assert_uint_eq(adapter.rereg_num, changes[_i].calls);
	ck_assert_uint_eq(adapter.rereg[0].flags, changes[_i].first);
	ck_assert_uint_eq(adapter.rereg[1].flags, changes[_i].second);
	for (unsigned int i = 0; i < changes[_i].calls; i++) {
		ck_assert_uint_eq(adapter.rereg[i].mr_handle, HANDLE);
		ck_assert_uint_eq(adapter.rereg[i].start | adapter.rereg[i].length | adapter.rereg[i].hca_va, 0);
		if (adapter.rereg[i].flags & ACCESS)
			ck_assert_uint_eq(adapter.rereg[i].access_flags, IBV_ACCESS_LOCAL_WRITE);
		if (adapter.rereg[i].flags & PD)
			ck_assert_uint_eq(adapter.rereg[i].pd_handle, OTHER_PD);
	}
	ck_assert_ptr_eq(mr.mr.pd, &other_pd.pd);
	ck_assert_uint_eq(mr.mr.access, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_uint_eq(mr.mr.lkey, changes[_i].calls ? NEW_LKEY : LKEY);
	ck_assert_uint_eq(mr.mr.rkey, changes[_i].calls ? NEW_RKEY : RKEY);
	ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	ck_assert_uint_eq(adapter.destroyed, 1);
}
END_TEST

START_TEST(test_driver_gets_its_data_with_rereg)
{
	adapter.driver = RDMA_DRIVER_IRDMA;
	hca_borrow_probe(&device);
	borrowed();
	ck_assert_int_eq(rereg(ACCESS), UVD_REREG_CHANGED);
	ck_assert_uint_eq(adapter.rereg_data, 8);
}
END_TEST

START_TEST(test_region_stays_as_it_was_if_the_adapter_refuses)
{
	borrowed();
	adapter.rereg_errno[0] = EOPNOTSUPP;
	ck_assert_int_eq(rereg(ACCESS | PD), -EOPNOTSUPP);
	ck_assert_uint_eq(adapter.rereg_num, 1);
	assert_old_region();
}
END_TEST

START_TEST(test_region_gets_its_old_access_again_if_the_adapter_refuses_the_pd)
{
	borrowed();
	adapter.rereg_errno[1] = ENOMEM;
	ck_assert_int_eq(rereg(ACCESS | PD), -ENOMEM);
	ck_assert_uint_eq(adapter.rereg_num, 3);
	ck_assert_uint_eq(adapter.rereg[2].flags, ACCESS);
	ck_assert_uint_eq(adapter.rereg[2].access_flags, mr.mr.access);
	assert_old_region();
}
END_TEST

START_TEST(test_only_the_client_could_give_a_borrowed_region_other_memory)
{
	borrowed();
	ck_assert_int_eq(rereg(IBV_REREG_MR_CHANGE_TRANSLATION | PD), -EOPNOTSUPP);
	ck_assert_uint_eq(adapter.rereg_num, 0);
	assert_old_region();
}
END_TEST

/* With its copy of the descriptor the client has put another region behind the handle, or none. */
START_TEST(test_rereg_takes_no_keys_of_another_region)
{
	borrowed();
	adapter.handle = lies[_i].handle == HANDLE ? HANDLE : HANDLE + 1;
	adapter.length = lies[_i].length;
	adapter.iova = lies[_i].iova;
	ck_assert_int_eq(rereg(ACCESS), -EFAULT);
	assert_old_region();
}
END_TEST

START_TEST(test_rereg_of_an_adapter_that_is_gone_is_eio)
{
	borrowed();
	atomic_store(&device.dead, true);
	ck_assert_int_eq(rereg(ACCESS), -EIO);
	ck_assert_uint_eq(adapter.rereg_num, 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("verbs borrow");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_threads_are_borrowed_for_drivers_whose_registration_is_known, 0,
			    sizeof(drivers) / sizeof(drivers[0]));
	tcase_add_test(t, test_default_does_not_lend_a_context_of_mlx5_with_rights_of_the_daemon);
	tcase_add_test(t, test_default_does_not_lend_a_context_of_an_unknown_driver);
	tcase_add_test(t, test_order_describes_the_region_to_the_adapter);
	tcase_add_loop_test(t, test_order_has_the_data_of_the_driver, 0, sizeof(driver_data) / sizeof(driver_data[0]));
	tcase_add_test(t, test_region_has_the_adapters_keys_until_it_is_destroyed);
	tcase_add_test(t, test_region_that_the_client_has_destroyed_itself_ends);
	tcase_add_loop_test(t, test_handle_of_another_region_is_refused, 0, sizeof(lies) / sizeof(lies[0]));
	tcase_add_test(t, test_errno_of_the_adapter_reaches_the_client);
	tcase_add_test(t, test_data_of_a_thread_that_cannot_be_borrowed_is_copied);
	tcase_add_loop_test(t, test_adapter_has_rereg_if_it_knows_the_command, 0, sizeof(probes) / sizeof(probes[0]));
	tcase_add_loop_test(t, test_adapter_changes_a_borrowed_region, 0, sizeof(changes) / sizeof(changes[0]));
	tcase_add_test(t, test_driver_gets_its_data_with_rereg);
	tcase_add_test(t, test_region_stays_as_it_was_if_the_adapter_refuses);
	tcase_add_test(t, test_region_gets_its_old_access_again_if_the_adapter_refuses_the_pd);
	tcase_add_test(t, test_only_the_client_could_give_a_borrowed_region_other_memory);
	tcase_add_loop_test(t, test_rereg_takes_no_keys_of_another_region, 0, sizeof(lies) / sizeof(lies[0]));
	tcase_add_test(t, test_rereg_of_an_adapter_that_is_gone_is_eio);
	tcase_add_loop_test(t, test_region_and_window_of_an_adapter_that_is_gone_end, 0, 2);
	return run_suite("backends: verbs, borrowed threads", t);
}
