/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctl methods of memory regions, with the null backend, which has every function. */
#include <fcntl.h>
#include <sys/mman.h>
#include <uverbsd/registration.h>
#include <uverbsd/uapi_later.h>
#include "tests.h"

enum { PAGE = 4096, LW = IBV_ACCESS_LOCAL_WRITE };

static uint32_t pd, cq;
static uint8_t mem[8 * PAGE] __attribute__((aligned(PAGE)));

static uint64_t sum;

static void add_charge(void *arg, pid_t tgid, uint64_t pages)
{
	sum += pages;
}

static uint64_t charged(void)
{
	sum = 0;
	uvd_mm_table_each(h.engine.mms, add_charge, NULL);
	return sum;
}

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
}

/* Handle 2, after the PD's and the CQ's, is free again, no page is charged, and the PD is not in use. */
static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(harness_alloc_pd(&h, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_uint_eq(charged(), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}

static int destroy_mr(uint32_t mr)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_MR_HANDLE, mr);
	return harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, &tree);
}

/* A test has no real dma-buf: the fd FAKE_FD stands for one of FAKE_SIZE bytes. */
enum { FAKE_FD = 555, FAKE_SIZE = 4 * PAGE };

int __real_uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size);
int __wrap_uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size);

int __wrap_uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size)
{
	if (fd != FAKE_FD)
		return __real_uvd_caller_dmabuf(c, fd, size);
	*size = FAKE_SIZE;
	return 0;
}

/* ---- REG_MR ------------------------------------------------------------------------------------------------------ */

struct reg {
	uint64_t iova, addr, length, offset;
	uint32_t access;
	int64_t fd;
	bool has_addr, has_offset, has_fd, has_dmah;
	uint32_t dmah;
	uint32_t handle, lkey, rkey; /* the response */
	void *lkey_at; /* NULL: &lkey */
};

static struct reg of_memory(void)
{
	return (struct reg){
		.iova = 0x7000010, .addr = (uintptr_t)mem + 0x10, .length = 2 * PAGE, .access = LW, .has_addr = true
	};
}

static struct reg of_dmabuf(void)
{
	return (struct reg){ .iova = 0x7000000,
			     .length = 2 * PAGE,
			     .offset = PAGE,
			     .access = LW,
			     .fd = FAKE_FD,
			     .has_fd = true,
			     .has_offset = true };
}

static void reg_tree(struct uv_tree *tree, struct reg *r)
{
	*tree = (struct uv_tree){};
	uv_attr_obj(tree, UVERBS_ATTR_REG_MR_HANDLE, 0);
	uv_attr_obj(tree, UVERBS_ATTR_REG_MR_PD_HANDLE, pd);
	uv_attr_in(tree, UVERBS_ATTR_REG_MR_IOVA, &r->iova, 8);
	uv_attr_in(tree, UVERBS_ATTR_REG_MR_LENGTH, &r->length, 8);
	uv_attr_in(tree, UVERBS_ATTR_REG_MR_ACCESS_FLAGS, &r->access, 4);
	uv_attr_out(tree, UVERBS_ATTR_REG_MR_RESP_LKEY, r->lkey_at ? r->lkey_at : &r->lkey, 4);
	uv_attr_out(tree, UVERBS_ATTR_REG_MR_RESP_RKEY, &r->rkey, 4);
	if (r->has_addr)
		uv_attr_in(tree, UVERBS_ATTR_REG_MR_ADDR, &r->addr, 8);
	if (r->has_offset)
		uv_attr_in(tree, UVERBS_ATTR_REG_MR_FD_OFFSET, &r->offset, 8);
	if (r->has_fd)
		uv_attr_obj(tree, UVERBS_ATTR_REG_MR_FD, r->fd);
	if (r->has_dmah)
		uv_attr_obj(tree, UVERBS_ATTR_REG_MR_DMA_HANDLE, r->dmah);
}

static int reg_mr(struct reg *r)
{
	struct uv_tree tree;
	int ret;

	reg_tree(&tree, r);
	ret = harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_MR, &tree);
	r->handle = tree.hdr.attrs[0].data;
	return ret;
}

static int query_mr(uint32_t mr, uint32_t *lkey, uint64_t *length, uint64_t *iova)
{
	struct uv_tree tree = {};
	uint32_t rkey;

	uv_attr_obj(&tree, UVERBS_ATTR_QUERY_MR_HANDLE, mr);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LKEY, lkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length, 8);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_IOVA, iova, 8);
	return harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, &tree);
}

START_TEST(test_reg_mr_by_method_is_the_region_that_the_command_makes)
{
	struct reg r = of_memory();
	uint64_t length, iova;
	uint32_t lkey;

	begin();
	ck_assert_int_eq(reg_mr(&r), 0);
	ck_assert_uint_eq(r.handle, 2);
	ck_assert_uint_eq(charged(), 3);
	ck_assert_int_eq(query_mr(2, &lkey, &length, &iova), 0);
	ck_assert_uint_eq(lkey, r.lkey);
	ck_assert_uint_eq(length, 2 * PAGE);
	ck_assert_uint_eq(iova, 0x7000010);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
	ck_assert_int_eq(destroy_mr(2), 0);
	assert_no_leak();
}
END_TEST

/* Of the eight combinations two are valid: an address alone, and an fd with its offset. */
START_TEST(test_mr_10_fd_and_address_exclude_each_other)
{
	begin();
	for (unsigned int i = 0; i < 8; i++) {
		struct reg r = i & 1 ? of_dmabuf() : of_memory();

		r.has_fd = i & 1;
		r.has_addr = i & 2;
		r.has_offset = i & 4;
		ck_assert_msg(reg_mr(&r) == (i == 2 || i == 5 ? 0 : -EINVAL), "combination %u", i);
		ck_assert_int_eq(destroy_mr(r.handle), i == 2 || i == 5 ? 0 : -ENOENT);
	}
	assert_no_leak();
}
END_TEST

/* An MR of a dma-buf accepts fewer access flags. */
START_TEST(test_reg_mr_checks_the_access_flags)
{
	struct reg r = of_memory(), d = of_dmabuf();

	begin();
	r.access = d.access = LW | IBV_ACCESS_MW_BIND;
	ck_assert_int_eq(reg_mr(&d), -EINVAL);
	ck_assert_int_eq(reg_mr(&r), 0);
	ck_assert_int_eq(destroy_mr(r.handle), 0);
	r.access = d.access = IBV_ACCESS_REMOTE_WRITE;
	ck_assert_int_eq(reg_mr(&d), -EINVAL);
	ck_assert_int_eq(reg_mr(&r), -EINVAL);
	r.access = 1u << 30;
	ck_assert_int_eq(reg_mr(&r), -EINVAL);
	r.access = IBV_ACCESS_ON_DEMAND; /* this device does not have it */
	ck_assert_int_eq(reg_mr(&r), -EINVAL);
	d.access = LW | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
		   IBV_ACCESS_RELAXED_ORDERING;
	ck_assert_int_eq(reg_mr(&d), 0);
	ck_assert_int_eq(destroy_mr(d.handle), 0);
	assert_no_leak();
}
END_TEST

START_TEST(test_reg_mr_with_an_fd_needs_the_drivers_function_first)
{
	struct reg d = of_dmabuf();

	begin();
	h.ops.reg_dmabuf_mr = NULL;
	d.has_addr = true;
	ck_assert_int_eq(reg_mr(&d), -EOPNOTSUPP);
	assert_no_leak();
}
END_TEST

START_TEST(test_reg_mr_whose_answer_faults_leaves_no_region)
{
	struct reg r = of_memory(), d = of_dmabuf();

	begin();
	r.lkey_at = d.lkey_at = BAD;
	ck_assert_int_eq(reg_mr(&r), -EFAULT);
	ck_assert_int_eq(reg_mr(&d), -EFAULT);
	r = of_memory();
	r.addr = 0x10; /* not mapped */
	ck_assert_int_eq(reg_mr(&r), -EFAULT);
	assert_no_leak();
}
END_TEST

/* ---- DMA handles ------------------------------------------------------------------------------------------------- */

START_TEST(test_a_region_keeps_its_dma_handle_busy)
{
	struct reg r = of_memory(), d = of_dmabuf();
	struct uv_tree tree = {}, end;

	begin();
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DMAH_HANDLE, 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC, &tree), 0);
	r.has_dmah = d.has_dmah = true;
	r.dmah = d.dmah = tree.hdr.attrs[0].data;
	ck_assert_int_eq(reg_mr(&r), 0);
	ck_assert_int_eq(reg_mr(&d), 0);
	tree = (struct uv_tree){};
	uv_attr_obj(&tree, UVERBS_ATTR_FREE_DMA_HANDLE, r.dmah);
	end = tree;
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_FREE, &end), -EBUSY);
	ck_assert_int_eq(destroy_mr(r.handle), 0);
	end = tree;
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_FREE, &end), -EBUSY);
	ck_assert_int_eq(destroy_mr(d.handle), 0);
	end = tree;
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_FREE, &end), 0);
	r.dmah = cq;
	ck_assert_int_eq(reg_mr(&r), -EINVAL);
	r.dmah = 99;
	ck_assert_int_eq(reg_mr(&r), -ENOENT);
	assert_no_leak();
}
END_TEST

/* ---- REG_DMABUF_MR ----------------------------------------------------------------------------------------------- */

static int reg_dmabuf_mr(struct reg *r)
{
	struct uv_tree tree = {};
	uint32_t fd = r->fd;
	int ret;

	uv_attr_obj(&tree, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &r->offset, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &r->length, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &r->iova, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_FD, &fd, 4);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, &r->access, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, r->lkey_at ? r->lkey_at : &r->lkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &r->rkey, 4);
	ret = harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, &tree);
	r->handle = tree.hdr.attrs[0].data;
	return ret;
}

START_TEST(test_dmabuf_region_ends_where_its_buffer_does)
{
	struct reg d = of_dmabuf();

	begin();
	d.length = FAKE_SIZE - PAGE + 1;
	ck_assert_int_eq(reg_dmabuf_mr(&d), -EINVAL);
	d.length = 0;
	ck_assert_int_eq(reg_dmabuf_mr(&d), -EINVAL);
	d.length = FAKE_SIZE - PAGE;
	ck_assert_int_eq(reg_dmabuf_mr(&d), 0);
	ck_assert_uint_eq(charged(), 0);
	ck_assert_int_eq(destroy_mr(d.handle), 0);
	d.lkey_at = BAD;
	ck_assert_int_eq(reg_dmabuf_mr(&d), -EFAULT);
	assert_no_leak();
}
END_TEST

START_TEST(test_mr_06_the_drivers_function_comes_first)
{
	struct reg d = of_dmabuf();

	begin();
	d.fd = 999;
	d.access = 1 << 30;
	d.iova++;
	h.ops.reg_dmabuf_mr = NULL;
	ck_assert_int_eq(reg_dmabuf_mr(&d), -EOPNOTSUPP);
	h.ops.reg_dmabuf_mr = uvd_backend_null.reg_dmabuf_mr;
	d.iova--;
	ck_assert_int_eq(reg_dmabuf_mr(&d), -EINVAL);
	assert_no_leak();
}
END_TEST

static int refuse_mr(struct uvd_mr *mr, struct uvd_udata *udata)
{
	return mr->umem.mm ? -EDOM : -ENOSPC;
}

START_TEST(test_regions_that_the_backend_refuses_leave_nothing)
{
	struct reg r = of_memory(), d = of_dmabuf();

	begin();
	h.ops.reg_mr = h.ops.reg_dmabuf_mr = refuse_mr;
	ck_assert_int_eq(reg_mr(&r), -EDOM);
	ck_assert_int_eq(reg_mr(&d), -ENOSPC);
	ck_assert_int_eq(reg_dmabuf_mr(&d), -ENOSPC);
	assert_no_leak();
}
END_TEST

/* ---- DM_MR_REG --------------------------------------------------------------------------------------------------- */

static int alloc_dm(uint64_t length, uint32_t alignment, uint32_t *dm)
{
	struct uv_tree tree = {};
	int ret;

	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, 8);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, 4);
	ret = harness_ioctl(&h, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, &tree);
	*dm = tree.hdr.attrs[0].data;
	return ret;
}

static int free_dm(uint32_t dm)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_FREE_DM_HANDLE, dm);
	return harness_ioctl(&h, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &tree);
}

static int reg_dm(uint32_t dm, uint64_t offset, uint64_t length, uint32_t access, void *lkey_at, uint32_t *mr)
{
	struct uv_tree tree = {};
	uint32_t lkey, rkey;
	int ret;

	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_LENGTH, &length, 8);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &access, 4);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, lkey_at ? lkey_at : &lkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &rkey, 4);
	ret = harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, &tree);
	*mr = tree.hdr.attrs[0].data;
	return ret;
}

START_TEST(test_region_of_device_memory_starts_at_0)
{
	enum { ZERO = IBV_ACCESS_ZERO_BASED };
	uint64_t length, iova = 1;
	uint32_t dm, mr, lkey;

	begin();
	ck_assert_int_eq(alloc_dm(4096, 0, &dm), 0);
	ck_assert_int_eq(reg_dm(dm, 0, 4096, ZERO, BAD, &mr), -EFAULT);
	ck_assert_int_eq(reg_dm(dm, 96, 4000, ZERO | LW, NULL, &mr), 0);
	ck_assert_int_eq(query_mr(mr, &lkey, &length, &iova), 0);
	ck_assert_uint_eq(length, 4000);
	ck_assert_uint_eq(iova, 0);
	ck_assert_int_eq(destroy_mr(mr), 0);
	ck_assert_int_eq(free_dm(dm), 0);
	assert_no_leak();
}
END_TEST

START_TEST(test_device_memory_without_its_functions)
{
	uint32_t dm, mr;

	begin();
	ck_assert_int_eq(alloc_dm(4096, 0, &dm), 0);
	h.ops.reg_dm_mr = NULL;
	ck_assert_int_eq(reg_dm(dm, 5000, 1, 0, NULL, &mr), -EOPNOTSUPP);
	h.ops.reg_dm_mr = refuse_mr;
	ck_assert_int_eq(reg_dm(dm, 0, 1, IBV_ACCESS_ZERO_BASED, NULL, &mr), -ENOSPC);
	ck_assert_int_eq(free_dm(dm), 0);
	h.ops.alloc_dm = NULL;
	ck_assert_int_eq(alloc_dm(4096, 0, &dm), -EOPNOTSUPP);
	assert_no_leak();
}
END_TEST

static uint64_t dm_length;
static uint32_t dm_alignment;

static int see_dm(struct uvd_dm *dm)
{
	dm_length = dm->length;
	dm_alignment = dm->alignment;
	return dm->length == 7 ? -EDOM : 0;
}

START_TEST(test_alloc_dm_hands_length_and_alignment_to_the_backend)
{
	uint32_t dm;

	begin();
	h.ops.alloc_dm = see_dm;
	ck_assert_int_eq(alloc_dm(0x123456789, 6, &dm), 0);
	ck_assert_uint_eq(dm_length, 0x123456789);
	ck_assert_uint_eq(dm_alignment, 6);
	ck_assert_int_eq(free_dm(dm), 0);
	ck_assert_int_eq(alloc_dm(7, 0, &dm), -EDOM);
	assert_no_leak();
}
END_TEST

/* ---- ADVISE_MR --------------------------------------------------------------------------------------------------- */

static struct ibv_sge seen[2];
static unsigned int seen_num;

static int see_advice(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      const struct ibv_sge *sg_list, unsigned int num_sge)
{
	seen_num = num_sge;
	memcpy(seen, sg_list, num_sge * sizeof(*sg_list));
	return advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && flags == IBV_ADVISE_MR_FLAG_FLUSH ? 0 : -EDOM;
}

static int advise(uint64_t advice, uint32_t flags, const void *sge, uint16_t len)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd);
	uv_attr_const(&tree, UVERBS_ATTR_ADVISE_MR_ADVICE, advice);
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_FLAGS, &flags, sizeof(flags));
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, len);
	return harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, &tree);
}

START_TEST(test_mr_08_advise)
{
	struct ib_uverbs_sge sge[2] = { { .addr = 1, .length = 2, .lkey = 3 }, { .addr = 4, .length = 5, .lkey = 6 } };

	begin();
	ck_assert_int_eq(advise(3, 0, sge, sizeof(sge)), -EOPNOTSUPP); /* the null backend knows 0 to 2 */
	ck_assert_int_eq(advise(2, 0, sge, sizeof(sge)), 0);
	h.ops.advise_mr = see_advice;
	ck_assert_int_eq(advise(1, 1, sge, sizeof(sge)), 0);
	ck_assert_uint_eq(seen_num, 2);
	ck_assert_mem_eq(seen, sge, sizeof(sge));
	ck_assert_int_eq(advise(1, 2, sge, sizeof(sge)), -EINVAL);
	ck_assert_int_eq(advise(1, 1, sge, 24), -EINVAL);
	ck_assert_int_eq(advise(1, 1, sge, 15), -EINVAL);
	ck_assert_int_eq(advise(1ull << 32 | 1, 1, sge, sizeof(sge)), -EINVAL);
	ck_assert_int_eq(advise(1, 2, BAD, sizeof(sge)), -EFAULT);
	h.ops.advise_mr = NULL;
	ck_assert_int_eq(advise(99, 2, sge, 24), -EOPNOTSUPP);
	ck_assert_int_eq(advise(99, 2, BAD, 24), -EFAULT);
}
END_TEST

static int end_result;

static int end_registration(struct uvd_mr *mr, int64_t result)
{
	ck_assert_int_eq(result, -EOPNOTSUPP);
	return end_result;
}

static int begin_registration(struct uvd_mr *mr, struct uvd_udata *udata)
{
	static struct uvd_registration registration = { .end = end_registration };

	mr->registration = &registration;
	mr->lkey = 5;
	return 0;
}

START_TEST(test_method_borrows_no_thread_of_the_client)
{
	struct reg r = of_memory();

	begin();
	h.ops.reg_mr = begin_registration;
	ck_assert_int_eq(reg_mr(&r), 0);
	ck_assert_uint_eq(r.lkey, 5);
	ck_assert_int_eq(destroy_mr(r.handle), 0);
	end_result = -ENOMEM;
	ck_assert_int_eq(reg_mr(&r), -ENOMEM);
	assert_no_leak();
}
END_TEST

TEST_LIST(test_method_borrows_no_thread_of_the_client, test_reg_mr_by_method_is_the_region_that_the_command_makes,
	  test_mr_10_fd_and_address_exclude_each_other, test_reg_mr_checks_the_access_flags,
	  test_reg_mr_with_an_fd_needs_the_drivers_function_first, test_reg_mr_whose_answer_faults_leaves_no_region,
	  test_a_region_keeps_its_dma_handle_busy, test_dmabuf_region_ends_where_its_buffer_does,
	  test_mr_06_the_drivers_function_comes_first, test_regions_that_the_backend_refuses_leave_nothing,
	  test_region_of_device_memory_starts_at_0, test_device_memory_without_its_functions,
	  test_alloc_dm_hands_length_and_alignment_to_the_backend, test_mr_08_advise)
