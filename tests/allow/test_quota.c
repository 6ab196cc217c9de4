/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Quotas of devices (docs/limits.md), one case a row, and the devices and users that they are for. */
#include "refusals.h"

/* ---- what clients do; each returns 0 or a negative errno --------------------------------------------------------- */

static int get_context_with_events(enum uv_front front)
{
	int fd = -1, ret = uv_get_context(h.fd, front, &fd, NULL);

	if (fd >= 0)
		close(fd);
	return ret;
}

static int second_pd(enum uv_front front)
{
	ck_assert_int_eq(refusals_context(UV_METHOD), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	return uv_alloc_pd(h.fd, front, &pd);
}

static int pd_after_another_is_gone(enum uv_front front)
{
	ck_assert_int_eq(refusals_context(UV_METHOD), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
	return uv_alloc_pd(h.fd, front, &pd);
}

/* A second process of the same user, and the first one closes in the middle. */
static int pd_in_a_second_file(enum uv_front front)
{
	struct uvd_file *first = h.file;
	int fd, ret;

	ck_assert_int_eq(refusals_context(UV_METHOD), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	fd = uv_open();
	ck_assert_int_eq(uv_get_context(fd, UV_METHOD, NULL, NULL), 0);
	ret = uv_alloc_pd(fd, front, &pd);
	ck_assert_ptr_eq(h.file, first);
	harness_close_file(&h);
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &pd), 0);
	uv_close(fd);
	return ret;
}

static int create_cq(enum uv_front front)
{
	ck_assert_int_eq(refusals_context(UV_METHOD), 0);
	return uv_create_cq(h.fd, front, &uv_cq_default, &cq, NULL);
}

static int create_channel(enum uv_front front)
{
	int channel, ret;

	ck_assert_int_eq(refusals_context(UV_METHOD), 0);
	ret = uv_create_channel(h.fd, front, &channel);
	if (!ret)
		uv_close(channel);
	return ret;
}

static int create_qp(enum uv_front front)
{
	struct uv_qp_attr attr;
	struct uv_qp qp;

	ck_assert_int_eq(refusals_objects(), 0);
	attr = uv_qp_attr(pd, cq);
	return uv_create_qp(h.fd, front, &attr, &qp);
}

static int create_srq(enum uv_front front)
{
	struct uv_srq_attr attr;
	struct uv_srq srq;

	ck_assert_int_eq(refusals_objects(), 0);
	attr = uv_srq_attr(pd);
	return uv_create_srq(h.fd, front, &attr, &srq);
}

static int create_ah(enum uv_front front)
{
	struct ib_uverbs_ah_attr attr = { .port_num = 1, .dlid = 1 };
	uint32_t ah;

	ck_assert_int_eq(refusals_objects(), 0);
	return uv_create_ah(h.fd, front, pd, &attr, &ah);
}

static int reg(enum uv_front front, size_t offset, size_t length, unsigned int access, struct uv_mr *mr)
{
	return uv_reg_mr(h.fd, front, pd, mem + offset, length, access, mr);
}

static int reg_page(enum uv_front front)
{
	struct uv_mr mr;

	ck_assert_int_eq(refusals_objects(), 0);
	return reg(front, 0, PAGE, LW, &mr);
}

static uint64_t pages_charged(void)
{
	struct uvd_mm *mm = uvd_mm_get(h.engine.mms, &h.call->caller);
	uint64_t pages = uvd_mm_charge(mm, 0);

	uvd_mm_put(mm);
	return pages;
}

static int second_region(enum uv_front front)
{
	struct uv_mr mr;
	int ret;

	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &mr), 0);
	ret = reg(front, PAGE, PAGE, LW, &mr);
	ck_assert_uint_eq(pages_charged(), ret ? 1 : 2);
	return ret;
}

static int reg_two_bytes_of_two_pages(enum uv_front front)
{
	struct uv_mr mr;

	ck_assert_int_eq(refusals_objects(), 0);
	return reg(front, PAGE - 1, 2, LW, &mr);
}

static int region_after_another_is_gone(enum uv_front front)
{
	struct uv_mr mr;

	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &mr), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mr.handle), 0);
	return reg(front, 0, PAGE, LW, &mr);
}

static int reg_on_demand(enum uv_front front)
{
	struct uv_mr mr;

	ck_assert_int_eq(refusals_objects(), 0);
	return reg(front, 0, sizeof(mem), LW | IBV_ACCESS_ON_DEMAND, &mr);
}

/* A page that is not mapped is the kernel's EFAULT, whatever the quota. */
static int reg_nothing(enum uv_front front)
{
	struct uv_mr mr;

	ck_assert_int_eq(refusals_objects(), 0);
	return uv_reg_mr(h.fd, front, pd, (void *)PAGE, PAGE, LW, &mr);
}

static int rereg(enum uv_front front, uint32_t handle, size_t offset, size_t length)
{
	struct ib_uverbs_rereg_mr cmd = {
		.mr_handle = handle,
		.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
		.start = (uintptr_t)mem + offset,
		.length = length,
		.hca_va = (uintptr_t)mem + offset,
	};
	struct ib_uverbs_rereg_mr_resp resp;

	return uv_cmd(h.fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp) });
}

/* The old pages count until the new ones are registered. If that is refused the region stays, and nothing else is charged. */
static int rereg_to_two_pages(enum uv_front front)
{
	struct uv_mr mr, other;
	int ret;

	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &mr), 0);
	ret = rereg(front, mr.handle, PAGE, 2 * PAGE);
	if (!ret)
		return ret;
	ck_assert_int_eq(reg(UV_WRITE, PAGE, PAGE, LW, &other), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mr.handle), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &other), 0);
	return ret;
}

/* After it only the new pages count, and they are given back with the region. */
static int region_beside_a_changed_one(enum uv_front front)
{
	struct uv_mr mr, other;
	int ret;

	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &mr), 0);
	ck_assert_int_eq(rereg(UV_WRITE, mr.handle, PAGE, 2 * PAGE), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &other), 0);
	ret = reg(front, 0, PAGE, LW, &other);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mr.handle), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, 2 * PAGE, LW, &other), 0);
	return ret;
}

/* A backend may keep the region, and exchange its memory. */
static int soft_rereg_in_place(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	struct uvd_umem umem = mr->umem;

	mr->umem = to->umem;
	to->umem = umem;
	return UVD_REREG_CHANGED;
}

static int region_beside_one_changed_in_place(enum uv_front front)
{
	h.ops.rereg_mr = soft_rereg_in_place;
	return region_beside_a_changed_one(front);
}

static int rereg_needs_a_second_region(enum uv_front front)
{
	struct uv_mr mr;

	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, PAGE, LW, &mr), 0);
	return rereg(front, mr.handle, PAGE, PAGE);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static const struct refusal_case cases[] = {
	{ "one type",
	  { "quota pds:1" },
	  second_pd,
	  PLAIN,
	  EAGAIN,
	  "hfi1_0: ALLOC_PD: EAGAIN: user 1000 is refused by the quota `pds:1`: it holds 1 objects of type PD, and"
	  " asks for 1 more; to allow it, raise `quota = pds:1` in the device's section, or use --quota, pid %d\n" },
	{ "as many as the quota says", { "quota pds:2" }, second_pd, PLAIN, 0, NULL },
	{ "an object that is gone", { "quota pds:1" }, pd_after_another_is_gone, PLAIN, 0, NULL },
	{ "two files, and a close",
	  { "quota pds:1" },
	  pd_in_a_second_file,
	  PLAIN,
	  EAGAIN,
	  "`pds:1`: it holds 1 objects of type PD" },
	{ "none at all",
	  { "quota cqs:0" },
	  create_cq,
	  PLAIN | METHODS,
	  EAGAIN,
	  "CREATE_CQ: EAGAIN: user 1000 is refused by the quota `cqs:0`: it holds 0 " },
	{ "QPs", { "quota qps:0" }, create_qp, PLAIN | METHODS, EAGAIN, "CREATE_QP: EAGAIN: user 1000 is refused" },
	{ "SRQs", { "quota srqs:0" }, create_srq, PLAIN | METHODS, EAGAIN, "CREATE_SRQ: EAGAIN: user 1000" },
	{ "AHs", { "quota ahs:0" }, create_ah, PLAIN, EAGAIN, "CREATE_AH: EAGAIN: user 1000" },
	{ "event files",
	  { "quota channels:0" },
	  create_channel,
	  1 << UV_WRITE,
	  EMFILE,
	  "CREATE_COMP_CHANNEL: EMFILE: user 1000 is refused by the quota `channels:0`" },
	{ "contexts",
	  { "quota async-files:0" },
	  get_context_with_events,
	  1 << UV_WRITE,
	  EMFILE,
	  "GET_CONTEXT: EMFILE: user 1000" },
	{ "all types together",
	  { "quota objects:3" },
	  second_region,
	  PLAIN,
	  EAGAIN,
	  "REG_MR: EAGAIN: user 1000 is refused by the quota `objects:3`: it holds 3 objects of all types" },
	{ "another type", { "quota mrs:0,srqs:0" }, create_qp, PLAIN, 0, NULL },
	{ "regions", { "quota pds:1 mrs:1" }, second_region, PLAIN, EAGAIN, "`mrs:1`: it holds 1 objects of type MR" },
	{ "registered bytes",
	  { "quota registered:8191" },
	  second_region,
	  PLAIN,
	  ENOMEM,
	  "REG_MR: ENOMEM: user 1000 is refused by the quota `registered:8191`: it holds 4096 bytes of registered"
	  " memory, in whole pages, and asks for 4096 more; to allow it, raise `quota = registered:8191` in the device's"
	  " section, or use --quota, pid %d\n" },
	{ "registered bytes, as many as the quota says", { "quota registered:8192" }, second_region, PLAIN, 0, NULL },
	{ "whole pages", { "quota registered:8191" }, reg_two_bytes_of_two_pages, PLAIN, ENOMEM, "asks for 8192 more" },
	{ "a region that is gone", { "quota registered:4096" }, region_after_another_is_gone, PLAIN, 0, NULL },
	{ "on-demand memory is not pinned", { "quota registered:0" }, reg_on_demand, PLAIN, 0, NULL },
	{ "the kernel's checks come first",
	  { "quota registered:0" },
	  reg_nothing,
	  PLAIN,
	  EFAULT,
	  "are not all mapped" },
	{ "a larger region",
	  { "quota registered:8192" },
	  rereg_to_two_pages,
	  PLAIN,
	  ENOMEM,
	  "REREG_MR: ENOMEM: user 1000" },
	{ "beside a changed region",
	  { "quota registered:12288" },
	  region_beside_a_changed_one,
	  PLAIN,
	  ENOMEM,
	  "holds 12288" },
	{ "beside a region changed in place",
	  { "quota registered:12288" },
	  region_beside_one_changed_in_place,
	  PLAIN,
	  ENOMEM,
	  "holds 12288" },
	{ "REREG_MR holds two regions",
	  { "quota mrs:1" },
	  rereg_needs_a_second_region,
	  PLAIN,
	  EAGAIN,
	  "REREG_MR: EAGAIN: user 1000 is refused by the quota `mrs:1`" },
	{ "a user's own number",
	  { "quota qps:8", "quota user:1000:qps:0" },
	  create_qp,
	  PLAIN,
	  EAGAIN,
	  "is refused by the quota `user:1000:qps:0`: it holds 0 objects of type QP, and asks for 1 more; to allow it,"
	  " raise `quota = user:1000:qps:0`" },
	{ "a user may hold more", { "quota user:1000:qps:1", "quota qps:0" }, create_qp, PLAIN, 0, NULL },
	{ "a user may hold any number", { "quota user:1000:qps:unlimited", "quota qps:0" }, create_qp, PLAIN, 0, NULL },
	{ "a user's other resources",
	  { "quota user:1000:pds:9", "quota qps:0" },
	  create_qp,
	  PLAIN,
	  EAGAIN,
	  "the quota `qps:0`" },
	{ "another user's number", { "quota user:1001:qps:0" }, create_qp, PLAIN, 0, NULL },
	{ "a later text", { "quota qps:0", "quota qps:0x1" }, create_qp, PLAIN, 0, NULL },
	{ "beside an allow-list", { "verbs:all", "quota mrs:0" }, reg_page, PLAIN, EAGAIN, "by the quota `mrs:0`" },
};

START_TEST(test_quotas_decide_the_errno_and_the_log_line)
{
	refusals_run(&cases[_i]);
}
END_TEST

/* ---- users, devices ---------------------------------------------------------------------------------------------- */

static int pd_of(unsigned int number, const uid_t *uids, unsigned int num)
{
	struct uvd_account *mine = h.account;
	char node[64];
	int fd;

	snprintf(node, sizeof(node), "/dev/infiniband/uverbs%u", number);
	h.account = uvd_account_get(h.engine.accounts, uids, num);
	fd = uv_node_ops->open(node);
	uvd_account_put(h.account);
	h.account = mine;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(uv_get_context(fd, UV_METHOD, NULL, NULL), 0);
	return uv_alloc_pd(fd, UV_WRITE, &pd);
}

/* The user is the one of the allow-lists: the outermost one that is not root. */
START_TEST(test_user_has_one_quota_under_the_ids_of_its_user_namespaces)
{
	static const struct {
		uid_t uids[3];
		unsigned int num;
		int err;
	} clients[] = {
		{ { 1000 }, 1, 0 },
		{ { 100005, 1000 }, 2, -EAGAIN },
		{ { 0, 1000, 0 }, 3, -EAGAIN },
		{ { 1001, 0 }, 2, 0 },
		{ { 1001 }, 1, -EAGAIN },
		{ { 0 }, 1, 0 },
		{ { 0, 0 }, 2, -EAGAIN },
		{ { 100005 }, 1, 0 },
		{ { 7 }, 1, -EAGAIN },
	};
	static const char *const texts[] = { "quota pds:1", "quota user:7:pds:0", NULL };

	refusals_begin(texts);
	for (unsigned int i = 0; i < UVD_COUNT(clients); i++)
		ck_assert_msg(pd_of(0, clients[i].uids, clients[i].num) == clients[i].err, "client %u", i);
	ck_assert_uint_eq(uvd_device_refused(h.dev), 5);
	refusals_end();
}
END_TEST

START_TEST(test_quota_of_one_device_leaves_the_others_alone)
{
	static const char *const texts[] = { "quota pds:1", NULL };
	static const uid_t uids[] = { 1000 };
	unsigned int second;

	refusals_prepare(texts);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, "hfi1_1", UVD_TEXT_QUOTA, "pds:2"), 0);
	harness_start(&h, &uvd_mem_process);
	second = harness_add_device(&h);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(pd_of(0, uids, 1), i < 1 ? 0 : -EAGAIN);
		ck_assert_int_eq(pd_of(second, uids, 1), i < 2 ? 0 : -EAGAIN);
	}
	refusals_end();
}
END_TEST

/* A device of the same name has quotas of its own, while a client keeps the removed one open. */
START_TEST(test_removed_device_holds_nothing_of_its_successor)
{
	static const char *const texts[] = { "quota pds:0", NULL };
	static const uid_t uids[] = { 1000 };
	unsigned int number;

	refusals_prepare(texts);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, "hfi1_1", UVD_TEXT_QUOTA, "pds:1"), 0);
	harness_start(&h, &uvd_mem_process);
	number = harness_add_device(&h);
	ck_assert_int_eq(pd_of(number, uids, 1), 0);
	ck_assert_int_eq(pd_of(number, uids, 1), -EAGAIN);
	harness_remove_device(&h, number);
	ck_assert_uint_eq(harness_add_device(&h), number);
	ck_assert_int_eq(pd_of(number, uids, 1), 0);
	ck_assert_int_eq(pd_of(number, uids, 1), -EAGAIN);
	refusals_end();
}
END_TEST

/* `refused` of the status counts the refusals, whether the log shows them or not. */
START_TEST(test_refusals_count_at_every_log_level)
{
	static const char *const texts[] = { "quota pds:0", NULL };
	static const uid_t uids[] = { 1000 };
	char text[4096];

	refusals_begin(texts);
	refusals_log(_i);
	ck_assert_int_eq(pd_of(0, uids, 1), -EAGAIN);
	ck_assert_uint_eq(uvd_device_refused(h.dev), 1);
	ck_assert_int_eq(pd_of(0, uids, 1), -EAGAIN);
	ck_assert_uint_eq(uvd_device_refused(h.dev), 2);
	refusals_read_log(text, sizeof(text));
	ck_assert_msg(!!strstr(text, "is refused by the quota") == (_i >= UVD_WARN), "level %d: %s", _i, text);
	refusals_end();
}
END_TEST

/* Files that their clients have closed may not be torn down yet: the engine waits for them before it refuses. */
static void close_first_file(struct uvd_engine *engine)
{
	harness_close_file(&h);
}

START_TEST(test_quota_refuses_only_what_live_files_hold)
{
	static const char *const of_objects[] = { "quota mrs:1", NULL }, *const of_bytes[] = { "quota registered:8192",
											       NULL };
	struct uv_mr mr;
	uint32_t own;
	int fd;

	refusals_begin(_i ? of_objects : of_bytes);
	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(reg(UV_WRITE, 0, _i ? PAGE : 2 * PAGE, LW, &mr), 0);
	fd = uv_open();
	ck_assert_int_eq(uv_get_context(fd, UV_METHOD, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &own), 0);
	h.engine.settle = close_first_file;
	ck_assert_int_eq(uv_reg_mr(fd, UV_WRITE, own, mem, 2 * PAGE, LW, &mr), 0);
	ck_assert_ptr_null(h.file);
	h.engine.settle = NULL;
	ck_assert_int_eq(uv_reg_mr(fd, UV_WRITE, own, mem, PAGE, LW, &mr), _i ? -EAGAIN : -ENOMEM);
	ck_assert_uint_eq(uvd_device_refused(h.dev), 1);
	refusals_end();
}
END_TEST

enum { MOST_BYTES = 1 << 24 };

static uint64_t ballast;

static void close_first_file_and_fill_the_limit(struct uvd_engine *engine)
{
	harness_close_file(&h);
	ballast = MOST_BYTES - uvd_account_used(h.account, UVD_RES_BYTES);
	ck_assert_int_eq(uvd_charge_bytes(h.account, ballast), 0);
}

/* The quota has refused the first attempt, but not the second. */
START_TEST(test_limit_that_refuses_after_a_quota_is_no_refusal_of_the_device)
{
	struct uvd_account_limits limits;
	uint32_t own;
	int fd;

	harness_no_limits(&limits);
	limits.max[UVD_RES_BYTES] = MOST_BYTES;
	harness_init_limited(&h, BACKEND, &limits);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_QUOTA, "pds:1"), 0);
	harness_start(&h, &uvd_mem_process);
	ck_assert_int_eq(refusals_context(UV_METHOD), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	fd = uv_open();
	ck_assert_int_eq(uv_get_context(fd, UV_METHOD, NULL, NULL), 0);
	h.engine.settle = close_first_file_and_fill_the_limit;
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &own), -ENOMEM);
	h.engine.settle = NULL;
	ck_assert_uint_eq(uvd_device_refused(h.dev), 0);
	uvd_uncharge_bytes(h.account, ballast);
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &own), 0);
	harness_close(&h);
}
END_TEST

/* ---- devices that cannot have a quota ---------------------------------------------------------------------------- */

static const struct refusal_of_device bad[] = {
	{ { "quota qps:1" }, "quota: a client can get around it with --memory=borrow: use --memory=bounce", true },
	{ { "quota qps:x" }, "quota: `qps:x` contains `x`, which is neither a number nor `unlimited`" },
};

START_TEST(test_device_with_a_quota_that_cannot_be_enforced_does_not_begin)
{
	refusals_run_device(&bad[_i], create_qp);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, refusals_setup, NULL);
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, test_quotas_decide_the_errno_and_the_log_line, 0, UVD_COUNT(cases));
	tcase_add_test(tc, test_user_has_one_quota_under_the_ids_of_its_user_namespaces);
	tcase_add_test(tc, test_quota_of_one_device_leaves_the_others_alone);
	tcase_add_test(tc, test_removed_device_holds_nothing_of_its_successor);
	tcase_add_loop_test(tc, test_refusals_count_at_every_log_level, UVD_ERR, UVD_DEBUG + 1);
	tcase_add_loop_test(tc, test_quota_refuses_only_what_live_files_hold, 0, 2);
	tcase_add_test(tc, test_limit_that_refuses_after_a_quota_is_no_refusal_of_the_device);
	tcase_add_loop_test(tc, test_device_with_a_quota_that_cannot_be_enforced_does_not_begin, 0, UVD_COUNT(bad));
	return run_suite(__FILE__, tc);
}
