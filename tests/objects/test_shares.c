/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shares of users (docs/limits.md): one process that is alone in its account can make as many objects of each type as
 * QUERY_DEVICE announces to it, and no more; then each of three other users still gets as many.
 */
#include <check.h>
#include <fcntl.h>
#include "../suite.h"
#include "encode.h"

enum { PAGE = 4096, DEVICE_HAS = 24, SHARE = DEVICE_HAS / 4, USERS = 4, ROOT = 0, USER = 1000 };

static struct harness h;
static struct uvd_account_limits limits;
static uint8_t mem[PAGE] __attribute__((aligned(PAGE)));

/* The client: its file, and what it makes objects with. */
static int fd;
static uint32_t pd, cq, qp;
static uid_t user;

/* ---- one object more ----------------------------------------------------------------------------------------------- */

static int make_pd(unsigned int n)
{
	return uv_alloc_pd(fd, UV_WRITE, &pd);
}

static int make_cq(unsigned int n)
{
	const struct uv_cq_attr attr = { .cqe = 1, .channel = -1 };

	return uv_create_cq(fd, UV_WRITE, &attr, &cq, NULL);
}

static int make_qp(unsigned int n)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);
	struct uv_qp made;
	int ret;

	attr.type = IBV_QPT_UD;
	attr.cap =
		(struct ib_uverbs_qp_cap){ .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 };
	ret = uv_create_qp(fd, UV_WRITE, &attr, &made);
	qp = made.handle;
	return ret;
}

static int make_srq(unsigned int n)
{
	struct uv_srq_attr attr = { .pd = pd, .max_wr = 1, .max_sge = 1 };
	struct uv_srq srq;

	return uv_create_srq(fd, UV_WRITE, &attr, &srq);
}

static int make_ah(unsigned int n)
{
	const struct ib_uverbs_ah_attr attr = { .port_num = 1, .dlid = 1 };
	uint32_t ah;

	return uv_create_ah(fd, UV_WRITE, pd, &attr, &ah);
}

static int make_mr(unsigned int n)
{
	struct uv_mr mr;

	return uv_reg_mr(fd, UV_WRITE, pd, mem, 1, IBV_ACCESS_LOCAL_WRITE, &mr);
}

static int make_mw(unsigned int n)
{
	uint32_t mw, rkey;

	return uv_alloc_mw(fd, UV_WRITE, pd, IBV_MW_TYPE_1, &mw, &rkey);
}

static int make_dm_byte(unsigned int n)
{
	struct uv_tree tree;
	uint64_t length = 1;
	uint32_t alignment = 0;

	uv_tree_init(&tree, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment));
	return uv_ioctl(fd, &tree);
}

static int bind_qp(void)
{
	const struct ib_uverbs_modify_qp init = {
		.qp_handle = qp,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 1,
	};

	return uv_modify_qp(fd, UV_WRITE, &init);
}

static int attach(uint32_t group)
{
	uint8_t gid[16] = { 0xff, 0x12, [10] = user >> 8, user, group >> 24, group >> 16, group >> 8, group };

	return uv_mcast(fd, UV_WRITE, true, qp, gid, 0xc001);
}

static int make_group(unsigned int n)
{
	int ret = n ? 0 : bind_qp();

	return ret ? ret : attach(n + 1);
}

/* All users are in group 0, by QPs of their own. The first QP that is too many for the share is a QP that is made already. */
static int join_group(unsigned int n)
{
	uint8_t gid[16] = { 0xff, 0x12 };
	int ret = make_qp(n);

	if (!ret)
		ret = bind_qp();
	return ret ? ret : uv_mcast(fd, UV_WRITE, true, qp, gid, 0xc001);
}

static int name_domain(unsigned int n)
{
	int file = memfd_create("domain", MFD_CLOEXEC), ret;
	uint32_t xrcd;

	ck_assert_int_ge(file, 0);
	ret = uv_open_xrcd(fd, UV_WRITE, file, O_CREAT, &xrcd);
	close(file);
	return ret;
}

/* ---- what is announced --------------------------------------------------------------------------------------------- */

/* All four commands announce the same; only the extended ones have device memory. */
static struct ib_uverbs_ex_query_device_resp ask(void)
{
	const struct ib_uverbs_ex_query_device cmd = {};
	struct ib_uverbs_ex_query_device_resp ex = {};
	struct ib_uverbs_query_device_resp plain;

	ck_assert_int_eq(
		uv_cmd(fd, UV_INVOKE_EX, &(struct uv_cmd){ UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &ex, sizeof(ex) }),
		0);
	for (enum uv_front front = UV_WRITE; front <= UV_INVOKE_EX; front++) {
		ck_assert_int_eq(uv_query_device(fd, front, &plain), 0);
		ck_assert_int_eq(memcmp(&plain, &ex.base, sizeof(plain)), 0);
	}
	return ex;
}

enum { NEEDS_PD = 1, NEEDS_CQ = 2, NEEDS_QP = 4 };

static const struct kind {
	const char *name;
	size_t at; /* in the response */
	int (*make)(unsigned int n);
	int beyond; /* errno of one more than the share */
	int full; /* of the device */
	unsigned int needs;
} kinds[] = {
#define KIND(name, m, ...) \
	{ \
		name, offsetof(struct ib_uverbs_ex_query_device_resp, m), __VA_ARGS__ \
	}
	KIND("PDs", base.max_pd, make_pd, EAGAIN, ENOMEM, 0),
	KIND("CQs", base.max_cq, make_cq, EAGAIN, ENOMEM, 0),
	KIND("QPs", base.max_qp, make_qp, EAGAIN, ENOMEM, NEEDS_PD | NEEDS_CQ),
	KIND("SRQs", base.max_srq, make_srq, EAGAIN, ENOMEM, NEEDS_PD),
	KIND("AHs", base.max_ah, make_ah, EAGAIN, ENOMEM, NEEDS_PD),
	KIND("groups", base.max_mcast_grp, make_group, ENOMEM, ENOMEM, NEEDS_PD | NEEDS_CQ | NEEDS_QP),
	KIND("attachments", base.max_total_mcast_qp_attach, make_group, ENOMEM, ENOMEM, NEEDS_PD | NEEDS_CQ | NEEDS_QP),
	KIND("MRs", base.max_mr, make_mr, EAGAIN, ENOMEM, NEEDS_PD),
	KIND("MWs", base.max_mw, make_mw, EAGAIN, ENOMEM, NEEDS_PD),
	KIND("members", base.max_mcast_qp_attach, join_group, ENOMEM, ENOMEM, NEEDS_PD | NEEDS_CQ),
	KIND("device memory", max_dm_size, make_dm_byte, ENOMEM, ENOMEM, 0),
#undef KIND
};

enum { CHEAP = 7 /* kinds of which the defaults are tried, too */ };

static uint32_t announced(const struct kind *kind)
{
	const struct ib_uverbs_ex_query_device_resp resp = ask();

	return *(const uint32_t *)((const char *)&resp + kind->at);
}

/* ---- clients ------------------------------------------------------------------------------------------------------- */

/* Another client: of this user, and as good as alone. Its file is closed with the harness. */
static void become(uid_t uid, unsigned int needs)
{
	struct uvd_account *mine = h.account;
	int async; /* stays open: an event file is an object, too */

	user = uid;
	h.account = uvd_account_get(h.engine.accounts, &uid, 1);
	ck_assert_ptr_nonnull(h.account);
	fd = uv_open();
	uvd_account_put(h.account);
	h.account = mine;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(uv_get_context(fd, UV_WRITE, &async, NULL), 0);
	ck_assert(!(needs & NEEDS_PD) || !make_pd(0));
	ck_assert(!(needs & NEEDS_CQ) || !make_cq(0));
	ck_assert(!(needs & NEEDS_QP) || !make_qp(0));
}

static void make_all(const struct kind *kind, unsigned int num)
{
	int ret;

	for (unsigned int n = 0; n < num; n++) {
		ret = kind->make(n);
		ck_assert_msg(!ret, "%s: user %u: number %u of %u: %s", kind->name, user, n + 1, num, strerror(-ret));
	}
}

static void begin_with_quota(const char *text)
{
	struct uvd_limits *has;

	harness_init_limited(&h, "soft", &limits);
	has = &h.config.limits;
	has->max_pd = has->max_cq = has->max_qp = has->max_srq = has->max_ah = DEVICE_HAS;
	has->max_mr = has->max_mw = has->max_mcast_grp = has->max_mcast_qp_attach = DEVICE_HAS;
	has->max_dm_size = DEVICE_HAS;
	ck_assert(!text || !uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_QUOTA, text));
	harness_start(&h, &uvd_mem_process);
}

static void begin(void)
{
	begin_with_quota(NULL);
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

START_TEST(test_each_of_four_users_can_make_what_is_announced_and_no_more)
{
	const struct kind *kind = &kinds[_i];
	int ret;

	begin();
	for (uid_t uid = USER; uid < USER + USERS; uid++) {
		become(uid, kind->needs);
		ck_assert_msg(announced(kind) == SHARE, "%s: %u announced", kind->name, announced(kind));
		make_all(kind, SHARE);
		ret = kind->make(SHARE);
		/* A QP more would be needed to join once more, and of QPs the share is as large. */
		if (kind->make == join_group)
			ck_assert_int_eq(ret, -EAGAIN);
		else
			ck_assert_msg(ret == -kind->beyond, "%s: %s", kind->name, strerror(-ret));
		/* It does not depend on what the client has by now. */
		ck_assert_uint_eq(announced(kind), SHARE);
	}
	harness_close(&h);
}
END_TEST

START_TEST(test_root_can_make_what_the_device_has)
{
	const struct kind *kind = &kinds[_i];
	int ret;

	begin();
	become(ROOT, kind->needs);
	ck_assert_uint_ge(announced(kind), DEVICE_HAS);
	make_all(kind, DEVICE_HAS);
	ret = kind->make(DEVICE_HAS);
	ck_assert_msg(ret == -kind->full, "%s: %s", kind->name, strerror(-ret));
	harness_close(&h);
}
END_TEST

START_TEST(test_only_user_of_an_engine_can_make_what_the_device_has)
{
	const struct kind *kind = &kinds[_i];

	limits.one_user = true;
	begin();
	become(USER, kind->needs);
	ck_assert_uint_ge(announced(kind), DEVICE_HAS);
	make_all(kind, DEVICE_HAS);
	ck_assert_int_eq(kind->make(DEVICE_HAS), -kind->full);
	harness_close(&h);
}
END_TEST

START_TEST(test_defaults_let_a_client_make_what_is_announced)
{
	const struct kind *kind = &kinds[_i];
	struct uvd_limits usual;

	harness_init_limited(&h, "soft", &limits);
	usual = h.config.limits;
	harness_start(&h, &uvd_mem_process);
	become(USER, kind->needs);
	ck_assert_uint_eq(ask().base.max_qp, usual.max_qp / 4);
	ck_assert_uint_eq(ask().base.max_mcast_grp, usual.max_mcast_grp / 4);
	/* Objects of all types are fewer than a quarter of these: an event file and a PD are objects, too. */
	ck_assert_uint_eq(ask().base.max_mr, uvd_limit_rows[UVD_RES_OBJECTS].value - 2);
	make_all(kind, announced(kind));
	ck_assert_int_eq(kind->make(announced(kind)), -kind->beyond);
	harness_close(&h);
}
END_TEST

static const struct {
	const char *quota;
	int res; /* -1: none */
	uint64_t max; /* of that resource, as --limit-NAME gives it */
	const char *kind;
	unsigned int least;
} least[] = {
	{ "qps:3", -1, 0, "QPs", 3 },
	{ "qps:20", -1, 0, "QPs", SHARE },
	{ "user:1000:qps:0", -1, 0, "QPs", 0 },
	{ "user:1001:qps:0", -1, 0, "QPs", SHARE },
	{ NULL, UVD_RES_OBJECT + UVERBS_OBJECT_QP, 20, "QPs", 20 },
	{ "qps:7", UVD_RES_OBJECT + UVERBS_OBJECT_QP, 20, "QPs", 7 },
	/* Beside its QPs a client has an event file, a PD and a CQ. */
	{ "objects:8", -1, 0, "QPs", 5 },
	{ "objects:2", -1, 0, "QPs", 0 },
	{ NULL, UVD_RES_OBJECTS, 5, "AHs", 3 },
	{ "attachments:2", -1, 0, "groups", 2 },
	{ NULL, UVD_RES_ATTACHMENTS, 9, "groups", 9 },
	{ "members:2", -1, 0, "members", 2 },
	{ NULL, UVD_RES_OBJECT + UVERBS_OBJECT_QP, 20, "members", SHARE },
	{ NULL, UVD_RES_MEMBERS, 4, "members", 4 },
	{ "device-memory:5", -1, 0, "device memory", 5 },
	{ NULL, UVD_RES_DM_BYTES, 10, "device memory", 10 },
};

static const struct kind *kind_find(const char *name)
{
	const struct kind *kind = kinds;

	while (strcmp(kind->name, name))
		kind++;
	return kind;
}

START_TEST(test_least_of_limit_share_and_quota_is_announced)
{
	const struct kind *kind = kind_find(least[_i].kind);

	if (least[_i].res >= 0)
		limits.max[least[_i].res] = least[_i].max;
	begin_with_quota(least[_i].quota);
	become(USER, least[_i].least ? kind->needs : 0);
	ck_assert_uint_eq(announced(kind), least[_i].least);
	if (least[_i].least) {
		make_all(kind, least[_i].least);
		ck_assert_int_eq(kind->make(least[_i].least), -kind->beyond);
	}
	harness_close(&h);
}
END_TEST

START_TEST(test_user_has_a_quarter_of_the_named_domains)
{
	const struct kind kind = { .name = "named domains", .make = name_domain };
	const unsigned int share = UVD_WHOLE_NAMED_XRCDS / 4;

	begin();
	for (uid_t uid = USER; uid < USER + USERS; uid++) {
		become(uid, 0);
		make_all(&kind, share);
		ck_assert_int_eq(name_domain(0), -ENOMEM);
	}
	/* The device is full, for root, too; a private domain has no name. */
	become(ROOT, 0);
	ck_assert_int_eq(name_domain(0), -ENOMEM);
	ck_assert_int_eq(uv_open_xrcd(fd, UV_WRITE, -1, 0, &pd), 0);
	harness_close(&h);
}
END_TEST

/* Otherwise a user could keep domains that others have to pay for. */
START_TEST(test_each_user_pays_for_the_named_domains_that_it_has_open)
{
	const enum uvd_resource res = UVD_RES_NAMED_XRCDS;
	int file = memfd_create("domain", MFD_CLOEXEC), first, second;
	uint32_t one, again, other;

	limits.max[res] = 1;
	begin();
	become(USER, 0);
	first = fd;
	ck_assert_int_eq(uv_open_xrcd(fd, UV_WRITE, file, O_CREAT, &one), 0);
	ck_assert_int_eq(uv_open_xrcd(fd, UV_WRITE, file, 0, &again), 0);
	ck_assert_int_eq(name_domain(0), -ENOMEM);
	become(USER + 1, 0);
	second = fd;
	ck_assert_int_eq(uv_open_xrcd(fd, UV_WRITE, file, 0, &other), 0);
	ck_assert_int_eq(name_domain(0), -ENOMEM);
	/* The creator leaves the domain to the other user, and may have another one. */
	ck_assert_int_eq(uv_close_xrcd(first, UV_WRITE, one), 0);
	fd = first;
	ck_assert_int_eq(name_domain(0), -ENOMEM);
	ck_assert_int_eq(uv_close_xrcd(first, UV_WRITE, again), 0);
	ck_assert_int_eq(name_domain(0), 0);
	fd = second;
	ck_assert_int_eq(name_domain(0), -ENOMEM);
	ck_assert_int_eq(uv_close_xrcd(second, UV_WRITE, other), 0);
	ck_assert_int_eq(name_domain(0), 0);
	close(file);
	harness_close(&h);
}
END_TEST

/* One user of a group takes nothing from another user's share. */
START_TEST(test_member_pays_for_itself_alone_and_as_long_as_it_is_one)
{
	const enum uvd_resource res = UVD_RES_ATTACHMENTS;
	uint8_t gid[16] = { 0xff, 0x12, [10] = USER >> 8, USER & 0xff, [15] = 2 };
	int first, second;
	uint32_t first_qp;

	limits.max[res] = 1;
	begin();
	become(USER, NEEDS_PD | NEEDS_CQ | NEEDS_QP);
	first = fd;
	first_qp = qp;
	ck_assert_int_eq(make_group(0), 0);
	gid[15] = 1;
	become(USER + 1, NEEDS_PD | NEEDS_CQ | NEEDS_QP);
	second = fd;
	ck_assert_int_eq(bind_qp(), 0);
	ck_assert_int_eq(uv_mcast(second, UV_WRITE, true, qp, gid, 0xc001), 0);
	ck_assert_int_eq(uv_mcast(first, UV_WRITE, false, first_qp, gid, 0xc001), 0);
	/* The group lives on by its second member. */
	fd = first;
	qp = first_qp;
	user = USER;
	ck_assert_int_eq(attach(7), 0);
	ck_assert_int_eq(attach(8), -ENOMEM);
	/* A QP that is attached is destroyed with its file. */
	ck_assert_int_eq(uv_close(first), 0);
	become(USER, NEEDS_PD | NEEDS_CQ | NEEDS_QP);
	ck_assert_int_eq(make_group(0), 0);
	harness_close(&h);
}
END_TEST

/* Each type of objects of the ABI is limited by the device or by itself. */
START_TEST(test_each_type_of_objects_has_a_limit)
{
	unsigned int n = 0;

	for (const struct uvd_plugin *const *plugin = uvd_object_plugins; *plugin; plugin++)
		for (const struct uvd_feature *const *f = (*plugin)->features; f && *f; f++)
			for (const struct uvd_object_row *const *o = (*f)->objects; *o; o++) {
				if ((*o)->cls == UVD_CLASS_NONE || (*o)->id >> UVERBS_ID_NS_SHIFT)
					continue;
				ck_assert_uint_lt((*o)->id, UVD_MAX_COUNTED_TYPES);
				ck_assert_msg(uvd_limit_rows[UVD_RES_OBJECT + (*o)->id].name, "%s", (*o)->name);
				n++;
			}
	ck_assert_uint_gt(n, 15);
}
END_TEST

static void setup(void)
{
	uvd_account_limits_init(&limits);
}

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 100);
	tcase_add_loop_test(tc, test_each_of_four_users_can_make_what_is_announced_and_no_more, 0, UVD_COUNT(kinds));
	tcase_add_loop_test(tc, test_root_can_make_what_the_device_has, 0, UVD_COUNT(kinds));
	tcase_add_loop_test(tc, test_only_user_of_an_engine_can_make_what_the_device_has, 0, UVD_COUNT(kinds));
	tcase_add_loop_test(tc, test_defaults_let_a_client_make_what_is_announced, 0, CHEAP);
	tcase_add_loop_test(tc, test_least_of_limit_share_and_quota_is_announced, 0, UVD_COUNT(least));
	tcase_add_test(tc, test_user_has_a_quarter_of_the_named_domains);
	tcase_add_test(tc, test_each_user_pays_for_the_named_domains_that_it_has_open);
	tcase_add_test(tc, test_member_pays_for_itself_alone_and_as_long_as_it_is_one);
	tcase_add_test(tc, test_each_type_of_objects_has_a_limit);
	return run_suite(__FILE__, tc);
}
