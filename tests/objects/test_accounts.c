/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A file and its objects are charged to the account of its opener. teardown() aborts if a charge was not given back. */
#define BACKEND "soft"
#include "xrc.h"

/* Makes the device anew, with a limit of one resource for each account. */
static void limit(unsigned int res, uint64_t max)
{
	struct uvd_account_limits limits;

	harness_close(&h);
	harness_no_limits(&limits);
	limits.max[res] = max;
	harness_init_limited(&h, BACKEND, &limits);
	h.config.limits.max_xrcd = h.config.limits.max_counters = 2;
	harness_start(&h, &uvd_mem_process);
}

static uint64_t used(unsigned int res)
{
	return uvd_account_used(h.account, res);
}

/* The account's charges at one moment. */
struct held {
	uint64_t of[UVD_NUM_RES];
};

static struct held held(void)
{
	struct held now;

	for (int i = 0; i < UVD_NUM_RES; i++)
		now.of[i] = used(i);
	return now;
}

static void assert_held(struct held then)
{
	for (int i = 0; i < UVD_NUM_RES; i++)
		ck_assert_msg(used(i) == then.of[i], "resource %d: %llu, not %llu", i, (unsigned long long)used(i),
			      (unsigned long long)then.of[i]);
}

static int make(uint16_t object, uint16_t method)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, 0, 0);
	return harness_ioctl(&h, object, method, &tree);
}

static int make_channel(int32_t *fd)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	struct ib_uverbs_create_comp_channel cmd = {};
	int ret = WRITE(&h, CREATE_COMP_CHANNEL, &cmd, &resp);

	*fd = ret ? -1 : (int)resp.fd;
	return ret;
}

static int make_srq(uint32_t pd, uint32_t max_wr)
{
	struct ib_uverbs_create_srq cmd = { .pd_handle = pd, .max_wr = max_wr, .max_sge = 4 };
	struct ib_uverbs_create_srq_resp resp;

	return WRITE(&h, CREATE_SRQ, &cmd, &resp);
}

static int make_qp(uint32_t pd, uint32_t cq, uint32_t max_wr, uint32_t *qp)
{
	struct ib_uverbs_create_qp cmd = {
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.qp_type = IBV_QPT_RC,
		.max_send_wr = max_wr,
		.max_recv_wr = max_wr,
		.max_send_sge = 4,
		.max_recv_sge = 4,
	};
	struct ib_uverbs_create_qp_resp resp = { .qp_handle = ~0u };
	int ret = WRITE(&h, CREATE_QP, &cmd, &resp);

	*qp = resp.qp_handle;
	return ret;
}

static int resize_cq(uint32_t cq, uint32_t cqe)
{
	struct ib_uverbs_resize_cq cmd = { .cq_handle = cq, .cqe = cqe };
	struct ib_uverbs_resize_cq_resp resp;

	return WRITE(&h, RESIZE_CQ, &cmd, &resp);
}

static int alloc_dm(uint64_t length)
{
	struct uv_tree tree = {};
	uint32_t alignment = 0;

	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment));
	return harness_ioctl(&h, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, &tree);
}

/* ---- limits and their errno -------------------------------------------------------------------------------------- */

/* The log of the device, and of its accounts, has one line for it: that of the call. */
START_TEST(test_object_beyond_a_limit_is_explained_as_a_call)
{
	const int log_fd = memfd_create("log", MFD_CLOEXEC);
	char text[1024] = "", line[256];
	struct uvd_log *log;
	uint32_t pd, cq;

	limit(UVD_RES_OBJECT + UVERBS_OBJECT_PD, 2);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq) | harness_alloc_pd(&h, &pd), 0);
	log = h.engine.log = uvd_log_new(log_fd, "test", UVD_WARN);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EAGAIN);
	ck_assert_int_gt(pread(log_fd, text, sizeof(text) - 1, 0), 0);
	snprintf(
		line, sizeof(line),
		"ALLOC_PD: EAGAIN: user %u has 2 objects of type PD, and 1 more would exceed the limit of 2; raise it with "
		"--limit-pds, or `pds` of [limits], pid %d\n",
		uvd_account_person(h.account), getpid());
	ck_assert_msg(strstr(text, line) && !strchr(strchr(text, '\n') + 1, '\n'), "%s", text);
	teardown();
	uvd_log_free(log);
	close(log_fd);
	setup();
}
END_TEST

START_TEST(test_objects_beyond_a_limit_are_eagain)
{
	static const unsigned int limits[] = { UVD_RES_OBJECTS, UVD_RES_OBJECT + UVERBS_OBJECT_PD };
	uint32_t pd, more;

	for (int i = 0; i < 2; i++) {
		limit(limits[i], i ? 2 : 4); /* 4 objects: the async event file, a CQ and 2 PDs */
		ck_assert_int_eq(harness_begin(&h, &pd, &more), 0);
		ck_assert_int_eq(harness_alloc_pd(&h, &more), 0);
		ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EAGAIN);
		ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EAGAIN);
		ck_assert_int_eq(harness_dealloc_pd(&h, more), 0);
		ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
		ck_assert_uint_eq(pd, more); /* no handle was lost */
	}
}
END_TEST

START_TEST(test_files_beyond_the_limit_are_emfile_for_their_user_alone)
{
	const uid_t other_uid = 1001;
	struct uvd_account *other;
	struct uvd_file *second, *others;
	int err;

	limit(UVD_RES_FILES, 2);
	other = uvd_account_get(h.engine.accounts, &other_uid, 1);
	second = uvd_file_open(h.dev, h.account, &err);
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_null(uvd_file_open(h.dev, h.account, &err));
	ck_assert_int_eq(err, -EMFILE);
	others = uvd_file_open(h.dev, other, &err);
	ck_assert_ptr_nonnull(others);
	uvd_file_close(second);
	second = uvd_file_open(h.dev, h.account, &err);
	ck_assert_ptr_nonnull(second);
	uvd_file_close(second);
	uvd_file_close(others);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_file_without_bytes_left_is_enomem_and_counts_no_file)
{
	enum { ROOM = 64 << 10 };
	struct held before;
	uint64_t ballast;
	int err;

	limit(UVD_RES_BYTES, ROOM);
	ballast = ROOM - used(UVD_RES_BYTES);
	ck_assert_int_eq(uvd_charge_bytes(h.account, ballast), 0);
	before = held();
	ck_assert_ptr_null(uvd_file_open(h.dev, h.account, &err));
	ck_assert_int_eq(err, -ENOMEM);
	assert_held(before);
	uvd_uncharge_bytes(h.account, ballast);
}
END_TEST

static struct uvd_file *closed_late;

static void close_late(struct uvd_engine *engine)
{
	if (closed_late)
		uvd_file_close(closed_late);
	closed_late = NULL;
}

/*
 * Under `uverbsctl run` the engine sees a close() a little later. At a limit the core therefore calls settle(), which
 * waits for such files, before it refuses a new object.
 */
START_TEST(test_objects_of_a_file_that_is_closed_count_no_more)
{
	struct ib_uverbs_get_context_resp resp;
	struct uvd_file *second;
	uint32_t pd;

	limit(UVD_RES_OBJECT + UVERBS_OBJECT_PD, 1);
	h.engine.settle = close_late;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	second = second_file();
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	use(h.file);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EAGAIN);
	closed_late = second;
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
}
END_TEST

/*
 * settle() waits for a file that has the same domain open. To close the domain that file takes xrcd_lock, so OPEN_XRCD
 * must not hold the lock while it waits.
 */
START_TEST(test_open_of_a_domain_that_a_closed_file_had_at_the_limit)
{
	struct ib_uverbs_get_context_resp resp;
	int fd = memfd_create("domain", 0);
	uint32_t xrcd;

	limit(UVD_RES_OBJECT + UVERBS_OBJECT_XRCD, 1);
	h.engine.settle = close_late;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	for (int create = 0; create < 2; create++) {
		struct uvd_file *second = second_file();

		ck_assert_int_eq(open_xrcd(fd, O_CREAT, &xrcd), 0);
		use(h.file);
		closed_late = second;
		ck_assert_int_eq(open_xrcd(fd, create ? O_CREAT : 0, &xrcd), create ? 0 : -EAGAIN);
	}
	close(fd);
}
END_TEST

START_TEST(test_another_users_objects_are_not_counted)
{
	const uid_t other_uid = 1001;
	struct uvd_account *mine, *other;
	struct uvd_file *others;
	uint32_t pd, cq;

	limit(UVD_RES_OBJECT + UVERBS_OBJECT_PD, 1);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EAGAIN);
	mine = h.account;
	h.account = other = uvd_account_get(h.engine.accounts, &other_uid, 1);
	others = second_file();
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EAGAIN);
	h.account = mine;
	use(h.file);
	uvd_file_close(others);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_event_files_beyond_a_limit_are_emfile)
{
	static const unsigned int limits[] = { UVD_RES_EVENT_FILES, UVD_RES_OBJECT + UVERBS_OBJECT_COMP_CHANNEL,
					       UVD_RES_DESCRIPTORS };
	uint32_t pd, cq;
	int32_t fd, none;

	for (int i = 0; i < 3; i++) {
		limit(limits[i], (const int[]){ 2, 1, 5 }[i]);
		ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
		ck_assert_int_eq(make_channel(&fd), 0);
		ck_assert_int_eq(make_channel(&none), -EMFILE);
		close(fd);
	}
}
END_TEST

START_TEST(test_rings_are_charged_at_their_full_size_and_are_enomem_beyond_the_limit)
{
	const uint64_t room = 64 << 20;
	struct held before;
	uint64_t ballast;
	uint32_t pd, cq, qp;

	limit(UVD_RES_BYTES, room);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_cq(&h, 0, (1 << 20) - 1, -1, &cq), 0);
	ck_assert_uint_ge(used(UVD_RES_BYTES), ((1 << 20) - 1) * sizeof(struct ibv_wc));
	ballast = room - used(UVD_RES_BYTES) - (256 << 10);
	ck_assert_int_eq(uvd_charge_bytes(h.account, ballast), 0);
	before = held();
	ck_assert_int_eq(make_qp(pd, cq, 16384, &qp), -ENOMEM);
	ck_assert_int_eq(make_srq(pd, 16384), -ENOMEM);
	ck_assert_int_eq(harness_create_cq(&h, 0, 16384, -1, &cq), -ENOMEM);
	ck_assert_int_eq(alloc_dm(256 << 10), -ENOMEM);
	assert_held(before);
	ck_assert_int_eq(make_srq(pd, 16), 0);
	ck_assert_int_eq(alloc_dm(16), 0);
	uvd_uncharge_bytes(h.account, ballast);
}
END_TEST

START_TEST(test_a_resized_ring_is_charged_anew)
{
	const uint64_t entry = sizeof(struct ibv_wc);
	uint32_t pd, cq;
	uint64_t before;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_cq(&h, 0, 100, -1, &cq), 0);
	before = used(UVD_RES_BYTES);
	ck_assert_int_eq(resize_cq(cq, 1000), 0);
	ck_assert_uint_eq(used(UVD_RES_BYTES), before + 900 * entry);
	ck_assert_int_eq(resize_cq(cq, 0), -EINVAL);
	ck_assert_int_eq(resize_cq(cq, 10), 0);
	ck_assert_uint_eq(used(UVD_RES_BYTES), before - 90 * entry);
}
END_TEST

START_TEST(test_domains_and_counters_of_a_device_have_limits)
{
	uint32_t pd, cq, xrcd;

	limit(UVD_RES_CALLS, 1);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
		ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE), 0);
	}
	ck_assert_int_eq(open_xrcd(-1, 0, &cq), -ENOMEM);
	ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE), -ENOMEM);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
}
END_TEST

/* ---- charges are given back once --------------------------------------------------------------------------------- */

START_TEST(test_what_fails_is_charged_nothing)
{
	struct ib_uverbs_reg_mr_resp mr;
	uint32_t pd, cq, out;
	struct held before;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, &pd, 4, 0, &mr),
			 0); /* now the handle table's node and the address space are charged */
	before = held();
	ck_assert_int_eq(harness_create_cq(&h, 0, 0, -1, &out), -EINVAL);
	ck_assert_int_eq(make_qp(pd, cq, 1 << 20, &out), -EINVAL);
	ck_assert_int_eq(make_qp(999, cq, 16, &out), -ENOENT);
	ck_assert_int_eq(make_srq(pd, 0), -EINVAL);
	ck_assert_int_eq(harness_reg_mr(&h, pd, BAD, 4, 0, &mr), -EFAULT);
	ck_assert_int_eq(open_xrcd(999, 0, &out), -EBADF);
	ck_assert_int_eq(alloc_dm(0), -EINVAL);
	/* The PD is made, and destroyed again because the response cannot be written. */
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_ALLOC_PD, &(struct ib_uverbs_alloc_pd){}, 8, BAD, 4),
			 -EFAULT);
	assert_held(before);
}
END_TEST

static int group(unsigned int command, uint32_t qp, uint16_t mlid)
{
	struct ib_uverbs_attach_mcast cmd = { .gid = { 0xff, [15] = 1 }, .qp_handle = qp, .mlid = mlid };

	return harness_write(&h, command, &cmd, sizeof(cmd), NULL, 0);
}

START_TEST(test_a_group_is_charged_while_the_qp_is_in_it)
{
	struct ib_uverbs_modify_qp init = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};
	struct ib_uverbs_create_qp_resp qp;
	struct held before;
	uint32_t pd, cq;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_UD, pd, cq, &qp), 0);
	init.qp_handle = qp.qp_handle;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &init), 0);
	before = held();
	ck_assert_int_eq(group(IB_USER_VERBS_CMD_ATTACH_MCAST, qp.qp_handle, 0xbfff), -EINVAL);
	assert_held(before);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(group(IB_USER_VERBS_CMD_ATTACH_MCAST, qp.qp_handle, 0xc000), 0);
		ck_assert_uint_gt(used(UVD_RES_BYTES), before.of[UVD_RES_BYTES]);
		ck_assert_int_eq(group(IB_USER_VERBS_CMD_DETACH_MCAST, qp.qp_handle, 0xc000), 0);
		assert_held(before);
	}
	ck_assert_int_eq(group(IB_USER_VERBS_CMD_ATTACH_MCAST, qp.qp_handle, 0xc000), 0);
}
END_TEST

START_TEST(test_objects_of_a_removed_device_count_until_the_file_is_closed)
{
	uint32_t pd, cq;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	uvd_device_remove(h.dev);
	ck_assert_uint_eq(used(UVD_RES_OBJECT + UVERBS_OBJECT_PD), 1);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	ck_assert_uint_eq(used(UVD_RES_OBJECT + UVERBS_OBJECT_PD), 0);
	ck_assert_uint_eq(used(UVD_RES_OBJECT + UVERBS_OBJECT_CQ), 1);
	harness_close_file(&h);
	assert_held((struct held){});
}
END_TEST

static uint64_t bytes_of_other;

static void find_other(void *arg, uid_t uid, enum uvd_resource res, uint64_t num, uint64_t max)
{
	if (uid == *(const uid_t *)arg && res == UVD_RES_BYTES)
		bytes_of_other = num;
}

START_TEST(test_the_maker_of_a_target_pays_for_it_as_long_as_another_has_it_open)
{
	int fd = memfd_create("domain", 0);
	uid_t other_uid = 1001;
	struct uvd_account *mine = h.account, *maker = uvd_account_get(h.engine.accounts, &other_uid, 1);
	struct ib_uverbs_create_qp_resp target;
	struct ib_uverbs_get_context_resp context;
	struct uvd_file *makers;
	uint32_t xrcd, theirs, qp;

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &xrcd), 0);
	h.account = maker;
	makers = second_file();
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &theirs), 0);
	ck_assert_int_eq(create_target(theirs, &target), 0);
	h.account = mine;
	use(h.file);
	ck_assert_int_eq(open_target(xrcd, target.qpn, &qp), 0);
	ck_assert_uint_eq(used(UVD_RES_OBJECT + UVERBS_OBJECT_QP), 1);
	uvd_file_close(makers);
	uvd_account_put(maker);
	uvd_accounts_each(h.engine.accounts, find_other, &other_uid);
	ck_assert_uint_gt(bytes_of_other, 0);
	harness_close_file(&h);
	assert_held((struct held){});
	close(fd);
}
END_TEST

START_TEST(test_nodes_of_the_handle_table_are_charged)
{
	uint32_t pds[200], pd, cq;
	struct uvd_handles none = {};
	uint64_t before;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	before = used(UVD_RES_BYTES);
	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(harness_alloc_pd(&h, &pds[i]), 0);
	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(harness_dealloc_pd(&h, pds[i]), 0);
	/* The table keeps a root above the first node, and one spare node. */
	ck_assert_uint_ge(used(UVD_RES_BYTES), before + 2 * 64 * sizeof(void *));
	limit(UVD_RES_BYTES, 4096);
	none.account = h.account;
	before = 4096 - used(UVD_RES_BYTES);
	ck_assert_int_eq(uvd_charge_bytes(h.account, before), 0);
	ck_assert_int_eq(uvd_handles_alloc(&none, &pd), -ENOMEM);
	uvd_uncharge_bytes(h.account, before);
}
END_TEST

START_TEST(test_domain_of_a_file_costs_a_descriptor_and_is_not_made_at_the_limit)
{
	struct ib_uverbs_get_context_resp context;
	int fd = memfd_create("domain", 0);
	uint64_t rest;
	uint32_t xrcd;

	limit(UVD_RES_DESCRIPTORS, 5);
	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	rest = 5 - used(UVD_RES_DESCRIPTORS);
	ck_assert_int_eq(uvd_account_charge(h.account, UVD_RES_DESCRIPTORS, rest), 0);
	/* More often than the device has domains. */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(open_xrcd(fd, O_CREAT, &xrcd), -EMFILE);
	ck_assert_uint_eq(used(UVD_RES_DESCRIPTORS), 5);
	uvd_account_uncharge(h.account, UVD_RES_DESCRIPTORS, 1);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &xrcd), 0);
	ck_assert_uint_eq(used(UVD_RES_DESCRIPTORS), 5);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
	ck_assert_uint_eq(used(UVD_RES_DESCRIPTORS), 4);
	uvd_account_uncharge(h.account, UVD_RES_DESCRIPTORS, rest - 1);
	close(fd);
}
END_TEST

START_TEST(test_registered_memory_costs_the_opener_three_descriptors_once)
{
	struct ib_uverbs_reg_mr_resp mr;
	uint64_t before;
	uint32_t pd, cq;

	limit(UVD_RES_DESCRIPTORS, 5);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	before = used(UVD_RES_DESCRIPTORS);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(harness_reg_mr(&h, pd, &pd, 4, 0, &mr), 0);
	ck_assert_uint_eq(used(UVD_RES_DESCRIPTORS), before + 3);
	limit(UVD_RES_DESCRIPTORS, 4);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, &pd, 4, 0, &mr), -EMFILE);
	ck_assert_uint_eq(used(UVD_RES_DESCRIPTORS), before);
}
END_TEST

/* Raises the bytes left until REG_MR succeeds: whichever charge fails, the earlier ones are given back. */
START_TEST(test_registering_with_too_few_bytes_charges_nothing)
{
	const uint64_t room = 64 << 20;
	struct ib_uverbs_reg_mr_resp mr;
	struct held before;
	uint32_t pd, cq;
	uint64_t ballast;
	int ret = -1;

	limit(UVD_RES_BYTES, room);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	for (uint64_t left = 0; ret; left += 8) {
		before = held();
		ballast = room - left - used(UVD_RES_BYTES);
		ck_assert_int_eq(uvd_charge_bytes(h.account, ballast), 0);
		ret = harness_reg_mr(&h, pd, &pd, 4, 0, &mr);
		uvd_uncharge_bytes(h.account, ballast);
		if (!ret)
			break;
		ck_assert_int_eq(ret, -ENOMEM);
		assert_held(before);
		ck_assert_uint_lt(left, 4096);
	}
}
END_TEST

TEST_LIST(test_objects_beyond_a_limit_are_eagain, test_object_beyond_a_limit_is_explained_as_a_call,
	  test_files_beyond_the_limit_are_emfile_for_their_user_alone,
	  test_file_without_bytes_left_is_enomem_and_counts_no_file,
	  test_open_of_a_domain_that_a_closed_file_had_at_the_limit,
	  test_objects_of_a_file_that_is_closed_count_no_more, test_another_users_objects_are_not_counted,
	  test_event_files_beyond_a_limit_are_emfile,
	  test_rings_are_charged_at_their_full_size_and_are_enomem_beyond_the_limit,
	  test_a_resized_ring_is_charged_anew, test_domains_and_counters_of_a_device_have_limits,
	  test_what_fails_is_charged_nothing, test_a_group_is_charged_while_the_qp_is_in_it,
	  test_objects_of_a_removed_device_count_until_the_file_is_closed,
	  test_the_maker_of_a_target_pays_for_it_as_long_as_another_has_it_open,
	  test_nodes_of_the_handle_table_are_charged,
	  test_domain_of_a_file_costs_a_descriptor_and_is_not_made_at_the_limit,
	  test_registered_memory_costs_the_opener_three_descriptors_once,
	  test_registering_with_too_few_bytes_charges_nothing)
