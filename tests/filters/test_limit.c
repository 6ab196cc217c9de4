/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `limit`. */
#include "bed.h"

static uint32_t pd;

static void setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_self);
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
}

static void teardown(void)
{
	harness_close(&h);
}

static int make_pd(uint32_t *handle)
{
	return uv_alloc_pd(h.fd, UV_WRITE, handle);
}

static int make_mr(size_t pages, uint32_t *handle)
{
	static uint8_t mem[8 * BED_PAGE] __attribute__((aligned(BED_PAGE)));
	struct uv_mr mr;
	int ret = uv_reg_mr(h.fd, UV_WRITE, pd, mem, pages * BED_PAGE, IBV_ACCESS_LOCAL_WRITE, &mr);

	*handle = mr.handle;
	return ret;
}

START_TEST(test_objects_beyond_the_limit_are_refused_until_one_goes)
{
	uint32_t one, two, three;

	bed_add("limit:pd=2,errno=EDQUOT");
	ck_assert_int_eq(make_pd(&one), 0);
	ck_assert_int_eq(make_pd(&two), 0);
	ck_assert_int_eq(make_pd(&three), -EDQUOT);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_pd(&three), 0);
	ck_assert_int_eq(make_pd(&one), -EDQUOT);
}
END_TEST

START_TEST(test_what_existed_before_does_not_count)
{
	uint32_t one, two;

	bed_add("limit:pd=1");
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
	ck_assert_int_eq(make_pd(&one), 0);
	ck_assert_int_eq(make_pd(&two), -ENOMEM);
}
END_TEST

START_TEST(test_registered_bytes_are_limited)
{
	uint32_t one, two;

	bed_add("limit:bytes=12K");
	ck_assert_int_eq(make_mr(2, &one), 0);
	ck_assert_int_eq(make_mr(2, &two), -ENOMEM);
	ck_assert_int_eq(make_mr(1, &two), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_mr(3, &one), -ENOMEM);
	ck_assert_int_eq(make_mr(2, &one), 0);
}
END_TEST

START_TEST(test_a_region_that_changes_counts_with_its_new_length)
{
	uint32_t one, two;

	bed_add("limit:bytes=16K");
	ck_assert_int_eq(make_mr(1, &one), 0);
	ck_assert_int_eq(bed_remake_mr(one, 5), -ENOMEM);
	ck_assert_int_eq(bed_remake_mr(one, 4), 0);
	ck_assert_int_eq(bed_remake_mr(one, 3), 0);
	ck_assert_int_eq(make_mr(2, &two), -ENOMEM);
	ck_assert_int_eq(make_mr(1, &two), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_mr(3, &one), 0);
	ck_assert_int_eq(make_mr(1, &two), -ENOMEM);
}
END_TEST

static int refuse_rereg(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	return -EIO;
}

START_TEST(test_a_region_that_could_not_change_counts_as_before)
{
	uint32_t one, two;

	bed_add("limit:bytes=16K");
	ck_assert_int_eq(make_mr(1, &one), 0);
	h.dev->ops.rereg_mr = refuse_rereg;
	ck_assert_int_eq(bed_remake_mr(one, 4), -EIO);
	ck_assert_int_eq(make_mr(4, &two), -ENOMEM);
	ck_assert_int_eq(make_mr(3, &two), 0);
}
END_TEST

/* Another thread of the user registers what the region gave up. */
static int register_and_refuse(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	static struct uvd_mr other;

	other = (struct uvd_mr){ .pd = mr->pd, .length = 3 * BED_PAGE };
	ck_assert_int_eq(h.dev->ib.ops->reg_mr(&other, NULL), 0);
	return -EIO;
}

START_TEST(test_a_region_that_could_not_shrink_counts_whole_again)
{
	uint32_t one, two;

	bed_add("limit:bytes=16K");
	ck_assert_int_eq(make_mr(3, &one), 0);
	h.dev->ops.rereg_mr = register_and_refuse;
	ck_assert_int_eq(bed_remake_mr(one, 1), -EIO);
	h.dev->ops.rereg_mr = uvd_backend_null.rereg_mr;
	/* Six pages count, so only less may follow. */
	ck_assert_int_eq(make_mr(1, &two), -ENOMEM);
	ck_assert_int_eq(bed_remake_mr(one, 4), -ENOMEM);
	ck_assert_int_eq(bed_remake_mr(one, 2), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_mr(2, &two), -ENOMEM);
	ck_assert_int_eq(make_mr(1, &two), 0);
}
END_TEST

static int refuse_end(struct uvd_pd *object)
{
	return -EIO;
}

START_TEST(test_an_object_that_cannot_end_counts)
{
	uint32_t one, two;

	bed_add("limit:pd=1");
	ck_assert_int_eq(make_pd(&one), 0);
	h.dev->ops.dealloc_pd = refuse_end;
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, one), -EIO);
	ck_assert_int_eq(make_pd(&two), -ENOMEM);
	h.dev->ops.dealloc_pd = uvd_backend_null.dealloc_pd;
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_pd(&two), 0);
}
END_TEST

/* ---- the kinds of objects ---------------------------------------------------------------------------------------- */

static int make_mw(uint32_t *handle)
{
	uint32_t rkey;

	return uv_alloc_mw(h.fd, UV_WRITE, pd, IBV_MW_TYPE_1, handle, &rkey);
}

static int end_mw(uint32_t handle)
{
	return uv_dealloc_mw(h.fd, UV_WRITE, handle);
}

static int make_region(uint32_t *handle)
{
	return make_mr(1, handle);
}

static int end_region(uint32_t handle)
{
	return uv_dereg_mr(h.fd, UV_WRITE, handle);
}

static int make_ah(uint32_t *handle)
{
	struct ib_uverbs_ah_attr attr = { .dlid = 1, .port_num = 1 };

	return uv_create_ah(h.fd, UV_WRITE, pd, &attr, handle);
}

static int end_ah(uint32_t handle)
{
	return uv_destroy_ah(h.fd, UV_WRITE, handle);
}

static int make_cq(uint32_t *handle)
{
	return uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, handle, NULL);
}

static int end_cq(uint32_t handle)
{
	return uv_destroy_cq(h.fd, UV_WRITE, handle, NULL);
}

static int make_srq(uint32_t *handle)
{
	struct uv_srq_attr attr = uv_srq_attr(pd);
	struct uv_srq srq;
	int ret = uv_create_srq(h.fd, UV_WRITE, &attr, &srq);

	*handle = srq.handle;
	return ret;
}

static int end_srq(uint32_t handle)
{
	return uv_destroy_srq(h.fd, UV_WRITE, handle, NULL);
}

static int make_qp(uint32_t *handle)
{
	static uint32_t cq;
	struct uv_qp_attr attr;
	struct uv_qp qp;
	int ret = cq ? 0 : make_cq(&cq);

	attr = uv_qp_attr(pd, cq);
	ret = ret ?: uv_create_qp(h.fd, UV_WRITE, &attr, &qp);
	*handle = qp.handle;
	return ret;
}

static int end_qp(uint32_t handle)
{
	return uv_destroy_qp(h.fd, UV_WRITE, handle, NULL);
}

static const struct {
	const char *filter;
	int (*make)(uint32_t *handle);
	int (*end)(uint32_t handle);
} kinds[] = {
	{ "limit:mr=1", make_region, end_region }, { "limit:mw=1", make_mw, end_mw },
	{ "limit:ah=1", make_ah, end_ah },	   { "limit:cq=1", make_cq, end_cq },
	{ "limit:srq=1", make_srq, end_srq },	   { "limit:qp=1", make_qp, end_qp },
};

START_TEST(test_each_kind_of_object_has_its_limit)
{
	uint32_t one, two;

	bed_add(kinds[_i].filter);
	ck_assert_int_eq(kinds[_i].make(&one), 0);
	ck_assert_int_eq(kinds[_i].make(&two), -ENOMEM);
	ck_assert_int_eq(kinds[_i].end(one), 0);
	ck_assert_int_eq(kinds[_i].make(&one), 0);
	ck_assert_int_eq(kinds[_i].make(&two), -ENOMEM);
}
END_TEST

START_TEST(test_other_ways_to_make_a_region_or_a_cq_count_too)
{
	struct uvd_context context = { .dev = &h.dev->ib, .account = h.account };
	struct uvd_pd parent = { .context = &context };
	struct uvd_mr mrs[3] = { { .pd = &parent, .length = 4 * BED_PAGE },
				 { .pd = &parent, .length = 2 * BED_PAGE },
				 { .pd = &parent, .length = BED_PAGE } };
	struct uvd_cq *cq = calloc(1, h.dev->ib.ops->size_cq);
	uint32_t handle;

	bed_add("limit:mr=2,bytes=4K,cq=1");
	/* The memory of the device is none that the user registers. */
	ck_assert_int_eq(h.dev->ib.ops->reg_dm_mr(&mrs[0], NULL), 0);
	ck_assert_int_eq(h.dev->ib.ops->reg_dmabuf_mr(&mrs[1], NULL), -ENOMEM);
	ck_assert_int_eq(h.dev->ib.ops->reg_dmabuf_mr(&mrs[2], NULL), 0);
	ck_assert_int_eq(h.dev->ib.ops->dereg_mr(&mrs[2]), 0);
	ck_assert_int_eq(make_mr(1, &handle), 0);
	ck_assert_int_eq(h.dev->ib.ops->reg_dm_mr(&mrs[1], NULL), -ENOMEM);
	cq->context = &context;
	cq->cqe = 1;
	ck_assert_int_eq(h.dev->ib.ops->create_cq_umem(cq, NULL), 0);
	ck_assert_int_eq(make_cq(&handle), -ENOMEM);
	ck_assert_int_eq(h.dev->ib.ops->destroy_cq(cq), 0);
	ck_assert_int_eq(make_cq(&handle), 0);
	free(cq);
}
END_TEST

/* Objects of adapters that steer packets, and of devices with memory and counters, as the core passes them. */
static struct uvd_context objects_context;
static struct uvd_pd objects_pd;
static struct uvd_qp objects_qp;
static struct uvd_wq wqs[2];
static struct uvd_rwq_ind_table tables[2];
static struct uvd_flow flows[2];
static struct uvd_dm dms[2];
static struct uvd_counters counters[2];

static int create_wq(int i)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };

	return h.dev->ib.ops->create_wq(&wqs[i], &init, NULL);
}

static int destroy_wq(int i)
{
	return h.dev->ib.ops->destroy_wq(&wqs[i]);
}

static int create_table(int i)
{
	return h.dev->ib.ops->create_rwq_ind_table(&tables[i], NULL);
}

static int destroy_table(int i)
{
	return h.dev->ib.ops->destroy_rwq_ind_table(&tables[i]);
}

static int create_flow(int i)
{
	return h.dev->ib.ops->create_flow(&flows[i], NULL);
}

static int destroy_flow(int i)
{
	return h.dev->ib.ops->destroy_flow(&flows[i]);
}

static int alloc_dm(int i)
{
	return h.dev->ib.ops->alloc_dm(&dms[i]);
}

static int dealloc_dm(int i)
{
	return h.dev->ib.ops->dealloc_dm(&dms[i]);
}

static int create_counters(int i)
{
	return h.dev->ib.ops->create_counters(&counters[i]);
}

static int destroy_counters(int i)
{
	return h.dev->ib.ops->destroy_counters(&counters[i]);
}

static const struct {
	const char *filter;
	int (*make)(int i);
	int (*end)(int i);
} other_kinds[] = {
	{ "limit:wq=1", create_wq, destroy_wq },
	{ "limit:rwq_ind_tbl=1", create_table, destroy_table },
	{ "limit:flow=1", create_flow, destroy_flow },
	{ "limit:dm=1", alloc_dm, dealloc_dm },
	{ "limit:counters=1", create_counters, destroy_counters },
};

START_TEST(test_objects_that_few_adapters_have_are_limited_too)
{
	objects_context = (struct uvd_context){ .dev = &h.dev->ib, .account = h.account };
	objects_pd = (struct uvd_pd){ .context = &objects_context };
	objects_qp = (struct uvd_qp){ .pd = &objects_pd, .account = h.account };
	for (int i = 0; i < 2; i++) {
		wqs[i] = (struct uvd_wq){ .pd = &objects_pd };
		tables[i] = (struct uvd_rwq_ind_table){ .context = &objects_context };
		flows[i] = (struct uvd_flow){ .qp = &objects_qp };
		dms[i] = (struct uvd_dm){ .context = &objects_context };
		counters[i] = (struct uvd_counters){ .context = &objects_context };
	}
	bed_add(other_kinds[_i].filter);
	ck_assert_int_eq(other_kinds[_i].make(0), 0);
	ck_assert_int_eq(other_kinds[_i].make(1), -ENOMEM);
	ck_assert_int_eq(other_kinds[_i].end(0), 0);
	ck_assert_int_eq(other_kinds[_i].make(1), 0);
	ck_assert_int_eq(other_kinds[_i].make(0), -ENOMEM);
}
END_TEST

START_TEST(test_a_limit_of_objects_limits_no_bytes)
{
	uint32_t handle;

	bed_add("limit:mr=1");
	ck_assert_int_eq(make_mr(8, &handle), 0);
}
END_TEST

static int refuse(struct uvd_pd *object, struct uvd_udata *udata)
{
	return -EIO;
}

START_TEST(test_a_creation_that_fails_below_does_not_count)
{
	struct uvd_device_config config = h.config;
	struct uvd_backend failing;
	struct uvd_filters filters;
	struct uvd_ibdev dev = h.dev->ib;
	struct uvd_context context = { .dev = &dev };
	struct uvd_pd object = { .context = &context };
	struct uvd_filter_instance *instance;
	int err;

	failing = uvd_backend_null;
	failing.alloc_pd = refuse;
	dev.config = config;
	dev.ops = &failing;
	uvd_filters_begin(&filters, &dev);
	instance = uvd_plugins_filter_begin(h.engine.plugins, "limit:pd=1", &dev, error, &err);
	ck_assert_ptr_nonnull(instance);
	ck_assert_int_eq(uvd_filters_change(&filters, &instance, 1), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(dev.ops->alloc_pd(&object, NULL), -EIO);
	failing.alloc_pd = uvd_backend_null.alloc_pd;
	ck_assert_int_eq(dev.ops->alloc_pd(&object, NULL), 0);
	ck_assert_int_eq(dev.ops->alloc_pd(&object, NULL), -ENOMEM);
	uvd_filters_clear(&filters);
	uvd_filters_end(&filters);
}
END_TEST

START_TEST(test_each_user_has_his_own_count)
{
	struct uvd_account *other = uvd_account_get(h.engine.accounts, &(uid_t){ 1001 }, 1);
	struct uvd_context mine = { .dev = &h.dev->ib, .account = h.account };
	struct uvd_context his = { .dev = &h.dev->ib, .account = other };
	struct uvd_pd pds[3] = { { .context = &mine }, { .context = &mine }, { .context = &his } };

	bed_add("limit:pd=1");
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[0], NULL), 0);
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[1], NULL), -ENOMEM);
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[2], NULL), 0);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_ids_of_a_user_namespace_count_as_its_owner)
{
	struct uvd_account *ids[] = { uvd_account_get(h.engine.accounts, (uid_t[]){ 100001, 1001 }, 2),
				      uvd_account_get(h.engine.accounts, (uid_t[]){ 100002, 1001 }, 2),
				      uvd_account_get(h.engine.accounts, (uid_t[]){ 1001 }, 1) };
	struct uvd_context contexts[3];
	struct uvd_pd pds[3];

	bed_add("limit:pd=1,uid=1001");
	for (int i = 0; i < 3; i++) {
		contexts[i] = (struct uvd_context){ .dev = &h.dev->ib, .account = ids[i] };
		pds[i] = (struct uvd_pd){ .context = &contexts[i] };
		ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[i], NULL), i ? -ENOMEM : 0);
		uvd_account_put(ids[i]);
	}
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = { "limit:pd=-1", "limit:pd=x", "limit:errno=ENO", "limit:bytes=1Q",
					     "limit:xrcd=1" };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter limit: "));
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_objects_beyond_the_limit_are_refused_until_one_goes);
	tcase_add_test(tc, test_what_existed_before_does_not_count);
	tcase_add_test(tc, test_registered_bytes_are_limited);
	tcase_add_test(tc, test_a_region_that_changes_counts_with_its_new_length);
	tcase_add_test(tc, test_a_region_that_could_not_change_counts_as_before);
	tcase_add_test(tc, test_a_region_that_could_not_shrink_counts_whole_again);
	tcase_add_test(tc, test_an_object_that_cannot_end_counts);
	tcase_add_loop_test(tc, test_each_kind_of_object_has_its_limit, 0, UV_ARRAY_SIZE(kinds));
	tcase_add_test(tc, test_other_ways_to_make_a_region_or_a_cq_count_too);
	tcase_add_loop_test(tc, test_objects_that_few_adapters_have_are_limited_too, 0, UV_ARRAY_SIZE(other_kinds));
	tcase_add_test(tc, test_a_limit_of_objects_limits_no_bytes);
	tcase_add_test(tc, test_a_creation_that_fails_below_does_not_count);
	tcase_add_test(tc, test_each_user_has_his_own_count);
	tcase_add_test(tc, test_ids_of_a_user_namespace_count_as_its_owner);
	tcase_add_test(tc, test_wrong_options_are_refused);
	return run_suite(__FILE__, tc);
}
