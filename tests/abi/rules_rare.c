/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects and methods of few drivers. rxe and rdmavt have none of them and Linux 6.1 has only some, so a run against
 * the kernel only shows that they are absent. The standard is docs/abi-rules.md, which was derived from the kernel's
 * source.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "abi.h"
#include <uverbsd/uapi_later.h>

enum { PAGE = 4096, LW = IBV_ACCESS_LOCAL_WRITE, ZERO = IBV_ACCESS_ZERO_BASED };

/* Called without attributes, a method that exists is EINVAL: it has mandatory ones. */
static bool has_method(int fd, uint16_t object, uint16_t method)
{
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, object, method);
	ret = uv_ioctl(fd, &tree);
	ck_assert_msg(ret == -EINVAL || ret == -EPROTONOSUPPORT, "method %u of object %u: %s", method, object,
		      answer(ret));
	return ret == -EINVAL;
}

/* The same for a method that all our devices must have. */
static bool has_ours(int fd, uint16_t object, uint16_t method)
{
	bool has = has_method(fd, object, method);

	ck_assert_msg(has || !(target()->where & ON_OURS), "method %u of object %u is not there", method, object);
	return has;
}

static int with_pd(uint32_t *pd)
{
	int fd = open_context(NULL);

	expect_ok(uv_alloc_pd(fd, UV_WRITE, pd));
	return fd;
}

/* A method whose only attribute is a handle, to be created or destroyed. */
static int handle_method(int fd, uint16_t object, uint16_t method, uint32_t *handle)
{
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, object, method);
	uv_attr_obj(&tree, 0, *handle);
	ret = uv_ioctl(fd, &tree);
	*handle = uv_attr_find(&tree, 0)->data;
	return ret;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

START_TEST(test_counters_01_read_of_counters_that_nothing_uses_is_einval)
{
	int fd = open_context(NULL);
	uint32_t handle = 77;
	uint64_t values[2];
	struct uv_tree tree;

	if (!has_ours(fd, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE))
		SKIP("the device has no method COUNTERS_CREATE");
	expect_ok(handle_method(fd, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &handle));
	ck_assert_uint_eq(handle, 0);
	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
	uv_attr_obj(&tree, UVERBS_ATTR_READ_COUNTERS_HANDLE, handle);
	uv_attr_out(&tree, UVERBS_ATTR_READ_COUNTERS_BUFF, values, sizeof(values));
	expect(uv_ioctl(fd, &tree), EINVAL);
	expect_ok(handle_method(fd, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, &handle));
	expect(uv_ioctl(fd, &tree), ENOENT);
}
END_TEST

/* ---- device memory ----------------------------------------------------------------------------------------------- */

static int alloc_dm(int fd, uint64_t length, uint32_t *handle)
{
	uint32_t alignment = 0;
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment));
	ret = uv_ioctl(fd, &tree);
	*handle = uv_attr_find(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE)->data;
	return ret;
}

static int reg_dm(int fd, uint32_t pd, uint32_t dm, uint64_t offset, uint64_t length, uint32_t access, uint32_t *mr)
{
	struct uv_tree tree;
	uint32_t key;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, sizeof(offset));
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_LENGTH, &length, sizeof(length));
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &access, sizeof(access));
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &key, sizeof(key));
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &key, sizeof(key));
	ret = uv_ioctl(fd, &tree);
	*mr = uv_attr_find(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE)->data;
	return ret;
}

START_TEST(test_mr_07_a_region_of_device_memory_is_zero_based_and_within)
{
	uint32_t pd, dm, mr;
	int fd = with_pd(&pd);

	if (!has_ours(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC)) {
		/* Then the method that registers device memory is absent, too. */
		ck_assert(!has_method(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG));
		return;
	}
	expect_ok(alloc_dm(fd, PAGE, &dm));
	expect(reg_dm(fd, pd, dm, 0, PAGE, LW, &mr), EINVAL);
	expect(reg_dm(fd, pd, dm, 0, PAGE + 1, ZERO, &mr), EINVAL);
	expect(reg_dm(fd, pd, dm, PAGE + 1, 0, ZERO, &mr), EINVAL);
	expect(reg_dm(fd, pd, dm, PAGE, 1, ZERO, &mr), EINVAL);
	expect(reg_dm(fd, pd, dm, UINT64_MAX, 2, ZERO, &mr), EINVAL);
	expect(reg_dm(fd, pd, pd, 0, PAGE, ZERO, &mr), EINVAL);
	expect(reg_dm(fd, pd, 9, 0, PAGE, ZERO, &mr), ENOENT);
	expect_ok(reg_dm(fd, pd, dm, 1, PAGE - 1, ZERO, &mr));
	expect(handle_method(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &dm), EBUSY);
	expect_ok(uv_dereg_mr(fd, UV_METHOD, mr));
	expect_ok(handle_method(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &dm));
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

/* ---- REG_MR ------------------------------------------------------------------------------------------------------ */

enum { ADDR = 1, FD = 2, FD_OFFSET = 4 };

static void reg_tree(struct uv_tree *tree, uint32_t pd, unsigned int with, void *mem, int64_t dmabuf)
{
	static uint32_t keys[2];
	uint64_t addr = (uintptr_t)mem, length = PAGE, zero = 0;
	uint32_t access = LW;

	uv_tree_init(tree, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_MR);
	uv_attr_obj(tree, UVERBS_ATTR_REG_MR_HANDLE, 0);
	uv_attr_obj(tree, UVERBS_ATTR_REG_MR_PD_HANDLE, pd);
	uv_attr_in(tree, UVERBS_ATTR_REG_MR_IOVA, &addr, 8);
	uv_attr_in(tree, UVERBS_ATTR_REG_MR_LENGTH, &length, 8);
	uv_attr_in(tree, UVERBS_ATTR_REG_MR_ACCESS_FLAGS, &access, 4);
	uv_attr_out(tree, UVERBS_ATTR_REG_MR_RESP_LKEY, &keys[0], 4);
	uv_attr_out(tree, UVERBS_ATTR_REG_MR_RESP_RKEY, &keys[1], 4);
	if (with & ADDR)
		uv_attr_in(tree, UVERBS_ATTR_REG_MR_ADDR, &addr, 8);
	if (with & FD)
		uv_attr_obj(tree, UVERBS_ATTR_REG_MR_FD, dmabuf);
	if (with & FD_OFFSET)
		uv_attr_in(tree, UVERBS_ATTR_REG_MR_FD_OFFSET, &zero, 8);
}

static int reg_mr(int fd, uint32_t pd, unsigned int with, void *mem, int dmabuf)
{
	struct uv_tree tree;

	reg_tree(&tree, pd, with, mem, dmabuf);
	return uv_ioctl(fd, &tree);
}

/* Does the driver take dma-bufs? A number that is not an fd is EBADF if it does, else EOPNOTSUPP. */
static bool takes_dmabufs(int fd, uint32_t pd, void *mem)
{
	int ret = reg_mr(fd, pd, FD | FD_OFFSET, mem, 999);

	ck_assert_msg(ret == -EBADF || ret == -EOPNOTSUPP, "%s", answer(ret));
	return ret == -EBADF;
}

START_TEST(test_mr_10_fd_and_address_exclude_each_other)
{
	void *mem = uv_pages(PAGE, PROT_READ | PROT_WRITE);
	struct uv_tree tree;
	uint32_t pd, handle;
	int fd = with_pd(&pd), with_fd;

	if (!has_ours(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_MR))
		SKIP("the device has no method REG_MR");
	with_fd = takes_dmabufs(fd, pd, mem) ? EINVAL : EOPNOTSUPP;
	expect(reg_mr(fd, pd, 0, mem, 0), EINVAL);
	expect(reg_mr(fd, pd, FD_OFFSET, mem, 0), EINVAL);
	expect(reg_mr(fd, pd, ADDR | FD_OFFSET, mem, 0), EINVAL);
	expect(reg_mr(fd, pd, FD, mem, 0), with_fd);
	expect(reg_mr(fd, pd, FD | ADDR, mem, 0), with_fd);
	expect(reg_mr(fd, pd, FD | ADDR | FD_OFFSET, mem, 0), with_fd);
	reg_tree(&tree, pd, ADDR, mem, 0);
	uv_attr_find(&tree, UVERBS_ATTR_REG_MR_IOVA)->data++;
	expect(uv_ioctl(fd, &tree), EINVAL);
	uv_attr_find(&tree, UVERBS_ATTR_REG_MR_IOVA)->data--;
	expect_ok(uv_ioctl(fd, &tree));
	handle = uv_attr_find(&tree, UVERBS_ATTR_REG_MR_HANDLE)->data;
	ck_assert_uint_eq(handle, 1);
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect_ok(uv_dereg_mr(fd, UV_WRITE, handle));
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

START_TEST(test_ioctl_21_a_raw_fd_is_an_int_without_length)
{
	void *mem = uv_pages(PAGE, PROT_READ | PROT_WRITE);
	const int64_t outside[] = { INT32_MAX + 1ll, INT32_MIN - 1ll, INT64_MAX, INT64_MIN, 1ll << 32 };
	struct uv_tree tree;
	uint32_t pd;
	int fd = with_pd(&pd), inside;

	if (!has_ours(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_MR))
		SKIP("the device has no method REG_MR");
	inside = takes_dmabufs(fd, pd, mem) ? EBADF : EOPNOTSUPP;
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(outside); i++) {
		reg_tree(&tree, pd, FD | FD_OFFSET, mem, outside[i]);
		expect(uv_ioctl(fd, &tree), EINVAL);
	}
	reg_tree(&tree, pd, FD | FD_OFFSET, mem, 999);
	uv_attr_find(&tree, UVERBS_ATTR_REG_MR_FD)->len = 4;
	expect(uv_ioctl(fd, &tree), EINVAL);
	uv_attr_find(&tree, UVERBS_ATTR_REG_MR_FD)->len = 0;
	uv_attr_find(&tree, UVERBS_ATTR_REG_MR_FD)->attr_data.reserved = 1;
	expect(uv_ioctl(fd, &tree), EINVAL);
	expect(reg_mr(fd, pd, FD | FD_OFFSET, mem, -1), inside);
	expect(reg_mr(fd, pd, FD | FD_OFFSET, mem, INT32_MIN), inside);
	expect(reg_mr(fd, pd, FD | FD_OFFSET, mem, INT32_MAX), inside);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

/* ---- on demand --------------------------------------------------------------------------------------------------- */

static int reg_on_demand(int fd, uint32_t pd, uint64_t addr, uint64_t length, uint32_t access)
{
	return uv_reg_mr_at(fd, UV_WRITE, pd, addr, length, addr, IBV_ACCESS_ON_DEMAND | access, NULL);
}

static int on_demand(void *arg)
{
	void *mem = uv_pages(16 * PAGE, PROT_NONE);
	uint32_t pd;
	int fd = with_pd(&pd);

	if (reg_on_demand(fd, pd, (uintptr_t)mem, 16 * PAGE, 0) == -EINVAL)
		/* mr-03: soft, which has no MODIFY_CQ, must take it. */
		return target()->where & ON_OURS && !has_ex(fd, UV_EX(MODIFY_CQ)) ? -ENODEV : 0;
	expect(reg_on_demand(fd, pd, UINT64_MAX - PAGE + 1, 2 * PAGE, 0), EOVERFLOW);
	expect(reg_on_demand(fd, pd, UINT64_MAX - PAGE + 1, PAGE - 1, 0), EOVERFLOW);
	expect(reg_on_demand(fd, pd, (uintptr_t)mem, 0, 0), EINVAL);
	expect(reg_on_demand(fd, pd, 0, UINT64_MAX, IBV_ACCESS_HUGETLB), EINVAL);
	expect_ok(reg_on_demand(fd, pd, 0, UINT64_MAX, 0));
	return 0;
}

/*
 * On-demand registration neither accesses nor charges the memory: the range may be inaccessible or unmapped, and larger
 * than RLIMIT_MEMLOCK, which may be 0.
 */
START_TEST(test_umem_10_on_demand)
{
	target();
	expect_ok(uv_as_nobody(PAGE, on_demand, NULL));
	expect_ok(uv_as_nobody(0, on_demand, NULL));
}
END_TEST

/* ---- REG_DMABUF_MR ----------------------------------------------------------------------------------------------- */

static int reg_dmabuf(int fd, uint32_t pd, uint64_t offset, uint64_t length, uint64_t iova, uint32_t access,
		      uint32_t dmabuf)
{
	struct uv_tree tree;
	uint32_t key;

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &offset, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &length, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &iova, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_FD, &dmabuf, 4);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, &access, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &key, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &key, 4);
	return uv_ioctl(fd, &tree);
}

/* No test machine has dma-bufs. The test covers the checks before the fd, and that other files are not dma-bufs. */
START_TEST(test_umem_11_what_is_no_dmabuf)
{
	int file = open("/dev/zero", O_RDWR);
	uint32_t pd;
	int fd = with_pd(&pd);

	if (reg_dmabuf(fd, pd, 0, PAGE, 0, LW, 999) == -EOPNOTSUPP) {
		/* mr-06: a driver without the function refuses every call, whatever its arguments. */
		expect(reg_dmabuf(fd, pd, 0, PAGE, 1, 1 << 30, file), EOPNOTSUPP);
		return;
	}
	expect(reg_dmabuf(fd, pd, 0, PAGE, 0, LW, 999), EBADF);
	expect(reg_dmabuf(fd, pd, 0, PAGE, 0, LW, file), EINVAL);
	expect(reg_dmabuf(fd, pd, 0, PAGE, 0, LW, fd), EINVAL);
	expect(reg_dmabuf(fd, pd, PAGE, UINT64_MAX, 0, LW, 999), EINVAL); /* the range wraps: checked before the fd */
	expect(reg_dmabuf(fd, pd, 1, PAGE, 0, LW, 999), EINVAL); /* mr-06 */
	expect(reg_dmabuf(fd, pd, 0, PAGE, 0, ZERO, 999), EINVAL);
	expect(reg_dmabuf(fd, pd, 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE, 999), EINVAL);
	close(file);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

/* ---- DMA handles ------------------------------------------------------------------------------------------------- */

static void dmah_tree(struct uv_tree *tree)
{
	uv_tree_init(tree, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC);
	uv_attr_obj(tree, UVERBS_ATTR_ALLOC_DMAH_HANDLE, 0);
}

static int alloc_dmah(int fd, const uint32_t *cpu, const uint8_t *ph)
{
	struct uv_tree tree;

	dmah_tree(&tree);
	if (cpu)
		uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DMAH_CPU_ID, cpu, sizeof(*cpu));
	if (ph)
		uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DMAH_PH, ph, sizeof(*ph));
	return uv_ioctl(fd, &tree);
}

START_TEST(test_dmah_01_the_cpu_must_be_the_callers_and_the_hint_two_bits)
{
	const uint32_t none = 1u << 20;
	int fd = open_context(NULL);
	uint32_t cpu = 0, other;
	cpu_set_t mine, one;

	if (!has_method(fd, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC))
		SKIP("the device has no method DMAH_ALLOC");
	for (unsigned int ph = 0; ph < 256; ph = ph ? ph * 2 : 1)
		expect(alloc_dmah(fd, NULL, &(uint8_t){ ph }), ph < 4 ? 0 : EINVAL);
	expect(alloc_dmah(fd, &none, &(uint8_t){ 4 }), EINVAL);
	expect(alloc_dmah(fd, &(uint32_t){ UINT32_MAX }, NULL), EINVAL);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
	while (!CPU_ISSET(cpu, &mine))
		cpu++;
	expect_ok(alloc_dmah(fd, &cpu, NULL));
	for (other = cpu + 1; other < CPU_SETSIZE && !CPU_ISSET(other, &mine); other++)
		;
	if (other == CPU_SETSIZE)
		SKIP("the machine has one CPU");
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	expect_ok(alloc_dmah(fd, &other, NULL));
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	expect(alloc_dmah(fd, &other, NULL), EPERM);
	expect_ok(alloc_dmah(fd, &cpu, NULL));
}
END_TEST

START_TEST(test_ioctl_13_an_element_of_an_enum)
{
	struct ib_uverbs_attr *type;
	int fd = open_context(NULL);
	struct uv_tree tree;

	if (!has_method(fd, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC))
		SKIP("the device has no method DMAH_ALLOC");
	dmah_tree(&tree);
	type = uv_attr(&tree, UVERBS_ATTR_ALLOC_DMAH_TPH_MEM_TYPE, 0, 0);
	type->attr_data.enum_data.elem_id = 2;
	expect(uv_ioctl(fd, &tree), EOPNOTSUPP);
	type->attr_data.enum_data.reserved = 1;
	expect(uv_ioctl(fd, &tree), EOPNOTSUPP);
	type->attr_data.enum_data.elem_id = 1;
	expect(uv_ioctl(fd, &tree), EINVAL);
	type->attr_data.enum_data.reserved = 0;
	type->len = 1;
	expect(uv_ioctl(fd, &tree), EINVAL);
	type->len = 0;
	expect_ok(uv_ioctl(fd, &tree));
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

/* ---- MODIFY_CQ --------------------------------------------------------------------------------------------------- */

static int modify_cq(int fd, enum uv_front front, uint32_t cq, uint32_t mask, uint32_t reserved)
{
	struct ib_uverbs_ex_modify_cq cmd = {
		.cq_handle = cq, .attr_mask = mask, .attr.cq_count = 1, .reserved = reserved
	};

	return uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(MODIFY_CQ), &cmd, sizeof(cmd) });
}

START_TEST(test_cq_03_modify_cq_knows_moderation_only)
{
	const enum uv_front front = _i ? UV_INVOKE_EX : UV_WRITE_EX;
	struct bed bed = make_bed();

	if (!has_ex(bed.fd, UV_EX(MODIFY_CQ))) {
		expect(modify_cq(bed.fd, _i ? UV_INVOKE : UV_WRITE, 99, 0, 0), EOPNOTSUPP);
		return;
	}
	expect(modify_cq(bed.fd, front, 99, 0, 0), EINVAL);
	expect(modify_cq(bed.fd, front, 99, 2, 1), EINVAL);
	expect(modify_cq(bed.fd, front, 99, 2, 0), EOPNOTSUPP);
	expect(modify_cq(bed.fd, front, 99, 3, 0), EOPNOTSUPP);
	expect(modify_cq(bed.fd, front, 99, 1, 0), ENOENT);
	expect(modify_cq(bed.fd, front, bed.pd, 1, 0), EINVAL);
	expect_ok(modify_cq(bed.fd, front, bed.cq, 1, 0));
}
END_TEST

TCase *case_rare(void)
{
	TCase *tc = tcase_create("rare");

	tcase_set_tags(tc, "null");
	tcase_add_test(tc, test_counters_01_read_of_counters_that_nothing_uses_is_einval);
	tcase_add_test(tc, test_mr_07_a_region_of_device_memory_is_zero_based_and_within);
	tcase_add_test(tc, test_mr_10_fd_and_address_exclude_each_other);
	tcase_add_test(tc, test_ioctl_21_a_raw_fd_is_an_int_without_length);
	tcase_add_test(tc, test_umem_10_on_demand);
	tcase_add_test(tc, test_umem_11_what_is_no_dmabuf);
	tcase_add_test(tc, test_dmah_01_the_cpu_must_be_the_callers_and_the_hint_two_bits);
	tcase_add_test(tc, test_ioctl_13_an_element_of_an_enum);
	tcase_add_loop_test(tc, test_cq_03_modify_cq_knows_moderation_only, 0, 2);
	return tc;
}
