/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects and queries that few adapters have: counters, completion counters, DMA handles, dma-bufs, CQ moderation. */
#include <sched.h>
#include <uverbsd/abi.h>
#include <uverbsd/uapi_later.h>
#include "tests.h"

static uint32_t pd, cq;

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
}

/* Handle 2, after the PD's and the CQ's, is free again. */
static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(harness_alloc_pd(&h, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_int_eq(harness_dealloc_pd(&h, next), 0);
}

/* make() calls a method whose only attribute is a new handle, end() one whose only attribute is a handle to destroy. */
static int make(uint16_t object, uint16_t method, uint32_t *handle)
{
	struct uv_tree tree = {};
	int ret;

	uv_attr_obj(&tree, 0, 0);
	ret = harness_ioctl(&h, object, method, &tree);
	*handle = tree.hdr.attrs[0].data;
	return ret;
}

static int end(uint16_t object, uint16_t method, uint32_t handle)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, 0, handle);
	return harness_ioctl(&h, object, method, &tree);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static struct uvd_counters *made;
static int refuse;

static int make_counters(struct uvd_counters *counters)
{
	made = counters;
	return refuse;
}

static int count(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags)
{
	for (size_t i = 0; i < num; i++)
		values[i] = 100 * (i + 1) + flags;
	return refuse;
}

static int read_counters(uint32_t handle, void *values, uint16_t len, uint32_t flags)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_READ_COUNTERS_HANDLE, handle);
	uv_attr_out(&tree, UVERBS_ATTR_READ_COUNTERS_BUFF, values, len);
	if (flags)
		uv_attr_in(&tree, UVERBS_ATTR_READ_COUNTERS_FLAGS, &flags, sizeof(flags));
	return harness_ioctl(&h, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, &tree);
}

START_TEST(test_counters_01_read_before_a_flow_uses_them_is_einval)
{
	uint64_t values[4] = { 0, 0, 7, 7 };
	uint32_t handle;

	begin();
	h.ops.create_counters = make_counters;
	h.ops.read_counters = count;
	ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &handle), 0);
	ck_assert_int_eq(read_counters(handle, values, sizeof(values), 0), -EINVAL);
	atomic_fetch_add(&made->usecnt, 1); /* what a flow does */
	ck_assert_int_eq(read_counters(handle, values, 23, 0), 0);
	ck_assert_uint_eq(values[0], 100);
	ck_assert_uint_eq(values[1], 200);
	ck_assert_uint_eq(values[2], 7); /* 23 bytes have room for two values */
	ck_assert_int_eq(read_counters(handle, values, sizeof(values), IB_UVERBS_READ_COUNTERS_PREFER_CACHED), 0);
	ck_assert_uint_eq(values[3], 401);
	ck_assert_int_eq(read_counters(handle, values, sizeof(values), 2), -EINVAL);
	ck_assert_int_eq(read_counters(handle, NULL, 0, 0), 0);
	ck_assert_int_eq(read_counters(handle, BAD, 8, 0), -EFAULT);
	ck_assert_int_eq(end(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, handle), -EBUSY);
	refuse = -EDOM;
	ck_assert_int_eq(read_counters(handle, values, sizeof(values), 0), -EDOM);
	atomic_fetch_sub(&made->usecnt, 1);
	ck_assert_int_eq(end(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, handle), 0);
	ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &handle), -EDOM);
	assert_no_leak();
}
END_TEST

START_TEST(test_counters_without_their_functions)
{
	uint64_t value;
	uint32_t handle, other;

	begin();
	ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &handle), 0);
	h.ops.create_counters = NULL;
	h.ops.read_counters = NULL;
	ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &other), -EOPNOTSUPP);
	ck_assert_int_eq(read_counters(handle, &value, sizeof(value), 2), -EOPNOTSUPP);
}
END_TEST

static int bind_counters(uint32_t handle, uint32_t qp)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBSD_ATTR_COUNTERS_BIND_QP_HANDLE, handle);
	uv_attr_obj(&tree, UVERBSD_ATTR_COUNTERS_BIND_QP_QP_HANDLE, qp);
	return harness_ioctl(&h, UVERBS_OBJECT_COUNTERS, UVERBSD_METHOD_COUNTERS_BIND_QP, &tree);
}

static int refuse_bind(struct uvd_qp *qp, struct uvd_counters *counters)
{
	return -EDOM;
}

START_TEST(test_counters_are_read_while_a_qp_is_bound_to_them)
{
	struct ib_uverbs_destroy_qp_resp destroyed;
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_destroy_qp cmd;
	uint64_t values[2] = { 7, 7 };
	uint32_t handle;

	begin();
	ck_assert_int_eq(make(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &handle), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	h.ops.bind_counters = refuse_bind;
	ck_assert_int_eq(bind_counters(handle, qp.qp_handle), -EDOM);
	h.ops.bind_counters = uvd_backend_null.bind_counters;
	ck_assert_int_eq(bind_counters(handle, cq), -EINVAL);
	ck_assert_int_eq(bind_counters(handle, qp.qp_handle), 0);
	ck_assert_int_eq(bind_counters(handle, qp.qp_handle), -EBUSY);
	ck_assert_int_eq(read_counters(handle, values, sizeof(values), 0), 0);
	ck_assert_uint_eq(values[0] | values[1], 0);
	ck_assert_int_eq(end(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, handle), -EBUSY);
	cmd = (struct ib_uverbs_destroy_qp){ .qp_handle = qp.qp_handle };
	ck_assert_int_eq(WRITE(&h, DESTROY_QP, &cmd, &destroyed), 0);
	ck_assert_int_eq(read_counters(handle, values, sizeof(values), 0), -EINVAL);
	ck_assert_int_eq(end(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, handle), 0);
	assert_no_leak();
}
END_TEST

/* ---- completion counters ----------------------------------------------------------------------------------------- */

static int modify_cntr(uint32_t handle, uint64_t entry, uint64_t op, uint64_t value)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_MODIFY_COMP_CNTR_HANDLE, handle);
	uv_attr_const(&tree, UVERBS_ATTR_MODIFY_COMP_CNTR_ENTRY, entry);
	uv_attr_const(&tree, UVERBS_ATTR_MODIFY_COMP_CNTR_OP, op);
	uv_attr_in(&tree, UVERBS_ATTR_MODIFY_COMP_CNTR_VALUE, &value, sizeof(value));
	return harness_ioctl(&h, UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_MODIFY, &tree);
}

static int read_cntr(uint32_t handle, uint64_t entry, void *value)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_READ_COMP_CNTR_HANDLE, handle);
	uv_attr_const(&tree, UVERBS_ATTR_READ_COMP_CNTR_ENTRY, entry);
	uv_attr_out(&tree, UVERBS_ATTR_READ_COMP_CNTR_RESP_VALUE, value, sizeof(uint64_t));
	return harness_ioctl(&h, UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_READ, &tree);
}

static int attach_cntr(uint32_t qp, uint32_t handle, uint32_t mask)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_HANDLE, qp);
	uv_attr_obj(&tree, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_CNTR_HANDLE, handle);
	uv_attr_in(&tree, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_OP_MASK, &mask, sizeof(mask));
	return harness_ioctl(&h, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_ATTACH_COMP_CNTR, &tree);
}

static int make_cntr(uint32_t *handle)
{
	return make(UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_CREATE, handle);
}

static int end_cntr(uint32_t handle)
{
	return end(UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_DESTROY, handle);
}

START_TEST(test_comp_cntr_is_set_increased_and_read)
{
	uint64_t value = 1;
	uint32_t handle;

	begin();
	ck_assert_int_eq(make_cntr(&handle), 0);
	ck_assert_int_eq(read_cntr(handle, 0, &value), 0);
	ck_assert_uint_eq(value, 0);
	ck_assert_int_eq(modify_cntr(handle, 0, 0, 1ull << 40), 0);
	ck_assert_int_eq(modify_cntr(handle, 0, 1, 5), 0);
	ck_assert_int_eq(modify_cntr(handle, 1, 1, 9), 0);
	ck_assert_int_eq(read_cntr(handle, 0, &value), 0);
	ck_assert_uint_eq(value, (1ull << 40) + 5);
	ck_assert_int_eq(read_cntr(handle, 1, &value), 0);
	ck_assert_uint_eq(value, 9);
	ck_assert_int_eq(modify_cntr(handle, 2, 0, 0), -EINVAL);
	ck_assert_int_eq(modify_cntr(handle, 0, 2, 0), -EINVAL);
	ck_assert_int_eq(modify_cntr(handle, 1ull << 32, 0, 0), -EINVAL);
	ck_assert_int_eq(modify_cntr(handle, 0, 1ull << 32, 0), -EINVAL);
	ck_assert_int_eq(read_cntr(handle, 2, &value), -EINVAL);
	ck_assert_int_eq(read_cntr(handle, 1ull << 32, &value), -EINVAL);
	ck_assert_int_eq(read_cntr(handle, 0, BAD), -EFAULT);
	ck_assert_int_eq(read_cntr(cq, 0, &value), -EINVAL);
	ck_assert_int_eq(end_cntr(handle), 0);
	ck_assert_int_eq(read_cntr(handle, 0, &value), -ENOENT);
	assert_no_leak();
}
END_TEST

/* Each operation of a QP has at most one counter, which stays busy until the QP is destroyed. */
START_TEST(test_comp_cntr_is_attached_for_the_life_of_the_qp)
{
	struct ib_uverbs_destroy_qp_resp destroyed;
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_destroy_qp cmd;
	uint32_t handle, other;

	begin();
	ck_assert_int_eq(make_cntr(&handle), 0);
	ck_assert_int_eq(make_cntr(&other), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 0), -EINVAL);
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 0x40), -EINVAL);
	ck_assert_int_eq(attach_cntr(qp.qp_handle, qp.qp_handle, 1), -EINVAL);
	ck_assert_int_eq(attach_cntr(handle, handle, 1), -EINVAL);
	ck_assert_int_eq(attach_cntr(99, handle, 1), -ENOENT);
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 0x05), 0);
	ck_assert_int_eq(attach_cntr(qp.qp_handle, other, 0x3c), -EBUSY);
	ck_assert_int_eq(end_cntr(other), 0);
	ck_assert_int_eq(end_cntr(handle), -EBUSY);
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 0x3a), 0);
	cmd = (struct ib_uverbs_destroy_qp){ .qp_handle = qp.qp_handle };
	ck_assert_int_eq(WRITE(&h, DESTROY_QP, &cmd, &destroyed), 0);
	ck_assert_int_eq(end_cntr(handle), 0);
	assert_no_leak();
}
END_TEST

START_TEST(test_comp_cntr_goes_with_its_file_whatever_the_order)
{
	struct ib_uverbs_create_qp_resp qp;
	uint32_t handle;

	begin();
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	ck_assert_int_eq(make_cntr(&handle), 0); /* newer than the QP, so close tries to destroy it first */
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 1), 0);
	harness_close_file(&h);
}
END_TEST

static int refuse_cntr(struct uvd_comp_cntr *cntr)
{
	return -EDOM;
}

static int refuse_attach(struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask)
{
	return -EDOM;
}

START_TEST(test_comp_cntr_without_its_functions)
{
	struct ib_uverbs_create_qp_resp qp;
	uint32_t handle, other;
	uint64_t value;

	begin();
	ck_assert_int_eq(make_cntr(&handle), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	h.ops.qp_attach_comp_cntr = refuse_attach;
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 1), -EDOM);
	h.ops.qp_attach_comp_cntr = NULL;
	h.ops.modify_comp_cntr = NULL;
	h.ops.read_comp_cntr = NULL;
	ck_assert_int_eq(attach_cntr(qp.qp_handle, handle, 0), -EOPNOTSUPP);
	ck_assert_int_eq(modify_cntr(handle, 9, 9, 0), -EOPNOTSUPP);
	ck_assert_int_eq(read_cntr(handle, 9, &value), -EOPNOTSUPP);
	ck_assert_int_eq(make_cntr(&other), -EOPNOTSUPP);
	h.ops.qp_attach_comp_cntr = refuse_attach;
	h.ops.create_comp_cntr = refuse_cntr;
	ck_assert_int_eq(make_cntr(&other), -EDOM);
	h.ops.create_comp_cntr = NULL;
	ck_assert_int_eq(make_cntr(&other), -EOPNOTSUPP);
	ck_assert_int_eq(end_cntr(handle), 0);
}
END_TEST

START_TEST(test_comp_cntr_caps_are_optional_outputs)
{
	struct uv_tree tree = {}, none = {}, early = {};
	uint64_t max_value = 0;
	uint32_t ops = 0;

	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_COMP_CNTR_CAPS, &early), -EINVAL);
	begin();
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_COMP_CNTR_CAPS, &none), 0);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE, &max_value, sizeof(max_value));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS, &ops, sizeof(ops));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_COMP_CNTR_CAPS, &tree), 0);
	ck_assert_uint_eq(max_value, UINT64_MAX);
	ck_assert_uint_eq(ops, 0x3f);
	h.ops.query_comp_cntr_caps = NULL;
	none = (struct uv_tree){};
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_COMP_CNTR_CAPS, &none),
			 -EOPNOTSUPP);
}
END_TEST

/* ---- DMA handles ------------------------------------------------------------------------------------------------- */

static struct uvd_dmah seen;

static int see_dmah(struct uvd_dmah *dmah)
{
	seen = *dmah;
	return 0;
}

static int alloc_dmah(const uint32_t *cpu_id, int mem_type, const uint8_t *ph, uint32_t *handle)
{
	struct uv_tree tree = {};
	int ret;

	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DMAH_HANDLE, 0);
	if (cpu_id)
		uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DMAH_CPU_ID, cpu_id, sizeof(*cpu_id));
	if (mem_type >= 0)
		uv_attr(&tree, UVERBS_ATTR_ALLOC_DMAH_TPH_MEM_TYPE, 0, 0)->attr_data.enum_data.elem_id = mem_type;
	if (ph)
		uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DMAH_PH, ph, sizeof(*ph));
	ret = harness_ioctl(&h, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC, &tree);
	*handle = tree.hdr.attrs[0].data;
	return ret;
}

static unsigned int my_cpu(void)
{
	cpu_set_t mine;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &mine))
			return cpu;
	return 0;
}

START_TEST(test_backend_gets_cpu_and_hints_of_a_dma_handle)
{
	uint32_t handle, cpu = my_cpu();
	const uint8_t ph = 3;

	begin();
	h.ops.alloc_dmah = see_dmah;
	ck_assert_int_eq(alloc_dmah(NULL, -1, NULL, &handle), 0);
	ck_assert(!seen.has_cpu_id && !seen.has_mem_type && !seen.has_ph);
	ck_assert_int_eq(end(UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_FREE, handle), 0);
	ck_assert_int_eq(alloc_dmah(&cpu, 1, &ph, &handle), 0);
	ck_assert(seen.has_cpu_id && seen.has_mem_type && seen.has_ph);
	ck_assert_uint_eq(seen.cpu_id, cpu);
	ck_assert_uint_eq(seen.mem_type, 1);
	ck_assert_uint_eq(seen.ph, 3);
	ck_assert_int_eq(end(UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_FREE, handle), 0);
	assert_no_leak();
}
END_TEST

/* ---- dma-bufs of the device -------------------------------------------------------------------------------------- */

static int map_entry(struct uvd_context *context, uint64_t pgoff, uint64_t *length)
{
	*length = 4096;
	return pgoff == 5 ? 0 : -EINVAL;
}

START_TEST(test_dmabuf_of_what_is_not_mapped_is_einval)
{
	uint64_t pgoff = 5;
	struct uv_tree tree = {}, again;

	begin();
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DMABUF_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DMABUF_PGOFF, &pgoff, sizeof(pgoff));
	for (int i = 0; i < 2 * UVD_MAX_EVENT_FILES; i++) {
		again = tree;
		ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DMABUF, UVERBS_METHOD_DMABUF_ALLOC, &again), -EINVAL);
	}
	h.ops.pgoff_to_mmap_entry = map_entry;
	again = tree;
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DMABUF, UVERBS_METHOD_DMABUF_ALLOC, &again), -EOPNOTSUPP);
	assert_no_leak();
}
END_TEST

/* ---- completion queues ------------------------------------------------------------------------------------------- */

static int modify_cq(uint32_t handle)
{
	struct ib_uverbs_ex_modify_cq cmd = { .cq_handle = handle,
					      .attr_mask = 1,
					      .attr = { .cq_count = 7, .cq_period = 1000 } };

	return harness_write_ex(&h, IB_USER_VERBS_EX_CMD_MODIFY_CQ & 0xff, &cmd, sizeof(cmd), NULL, 0);
}

static uint16_t seen_count, seen_period;

static int see_moderation(struct uvd_cq *cq, uint16_t count, uint16_t period)
{
	seen_count = count;
	seen_period = period;
	return 0;
}

START_TEST(test_backend_gets_the_moderation_of_a_cq)
{
	begin();
	h.ops.modify_cq = see_moderation;
	ck_assert_int_eq(modify_cq(cq), 0);
	ck_assert_uint_eq(seen_count, 7);
	ck_assert_uint_eq(seen_period, 1000);
}
END_TEST

enum { VA = 1, LENGTH = 2, FD = 4, OFFSET = 8 };

static int create_cq_in(unsigned int what, uint64_t va, uint64_t length, int fd, uint32_t *handle)
{
	uint32_t cqe = 16, vector = 0, got;
	struct uv_tree tree = {};
	uint64_t zero = 0;
	int ret;

	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &zero, sizeof(zero));
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &got, sizeof(got));
	if (what & VA)
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_BUFFER_VA, &va, sizeof(va));
	if (what & LENGTH)
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH, &length, sizeof(length));
	if (what & FD)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_BUFFER_FD, fd);
	if (what & OFFSET)
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET, &zero, sizeof(zero));
	ret = harness_ioctl(&h, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, &tree);
	*handle = tree.hdr.attrs[0].data;
	return ret;
}

static uint64_t charge_sum;

static void add_charge(void *arg, pid_t tgid, uint64_t pages)
{
	charge_sum += pages;
}

static uint64_t charged(void)
{
	charge_sum = 0;
	uvd_mm_table_each(h.engine.mms, add_charge, NULL);
	return charge_sum;
}

static struct uvd_umem cq_umem;

static int refuse_cq(struct uvd_cq *cq, struct uvd_udata *udata)
{
	cq_umem = cq->umem;
	return -EDOM;
}

START_TEST(test_cq_in_a_buffer_of_the_clients)
{
	static uint8_t mem[3 * 4096] __attribute__((aligned(4096)));
	const uint64_t va = (uintptr_t)mem;
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq cmd = {};
	uint32_t handle;

	begin();
	ck_assert_int_eq(create_cq_in(VA | LENGTH, va, sizeof(mem), -1, &handle), 0);
	ck_assert_uint_eq(charged(), 3);
	cmd.cq_handle = handle;
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &cmd, &resp), 0);
	ck_assert_uint_eq(charged(), 0);
	ck_assert_int_eq(create_cq_in(VA, va, 0, -1, &handle), -ENOENT);
	ck_assert_int_eq(create_cq_in(VA | LENGTH | FD, va, 4096, 0, &handle), -EINVAL);
	ck_assert_int_eq(create_cq_in(VA | LENGTH | OFFSET, va, 4096, -1, &handle), -EINVAL);
	ck_assert_int_eq(create_cq_in(VA | LENGTH, 0x10, 4096, -1, &handle), -EFAULT);
	ck_assert_int_eq(create_cq_in(LENGTH, 0, 4096, -1, &handle), -EINVAL);
	ck_assert_int_eq(create_cq_in(OFFSET, 0, 0, -1, &handle), -EINVAL);
	ck_assert_int_eq(create_cq_in(FD | LENGTH, 0, 4096, 0, &handle), -ENOENT);
	ck_assert_int_eq(create_cq_in(FD | OFFSET, 0, 4096, 0, &handle), -ENOENT);
	ck_assert_int_eq(create_cq_in(FD | OFFSET | LENGTH, 0, 4096, 999, &handle), -EBADF);
	h.ops.create_cq_umem = refuse_cq;
	ck_assert_int_eq(create_cq_in(VA | LENGTH, va, 4096, -1, &handle), -EDOM);
	ck_assert_uint_eq(cq_umem.addr, va);
	ck_assert_uint_eq(charged(), 0);
	h.ops.create_cq_umem = NULL;
	ck_assert_int_eq(create_cq_in(VA | LENGTH, va, 4096, -1, &handle), -EINVAL);
	ck_assert_int_eq(create_cq_in(FD | OFFSET | LENGTH, 0, 4096, 999, &handle), -EINVAL);
	ck_assert_int_eq(create_cq_in(0, 0, 0, 0, &handle), 0);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

/* Sets let_go, as if the transport answered the call with EINTR, while the core opens the client's files in /proc. */
static int open_and_let_go(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	atomic_store(&h.call->caller.let_go, true);
	return uvd_proc_local.open(proc, tid, name, flags);
}

START_TEST(test_cq_whose_call_is_let_go_keeps_no_buffer)
{
	static uint8_t mem[4096] __attribute__((aligned(4096)));
	struct uvd_proc proc = uvd_proc_local;
	uint32_t handle;

	begin();
	proc.open = open_and_let_go;
	h.call->caller.proc = &proc;
	ck_assert_int_eq(create_cq_in(VA | LENGTH, (uintptr_t)mem, sizeof(mem), -1, &handle), -EINTR);
	ck_assert(atomic_exchange(&h.call->caller.let_go, false));
	h.call->caller.proc = &uvd_proc_local;
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

/* ---- the device -------------------------------------------------------------------------------------------------- */

static int query_speed(uint64_t port, uint64_t *speed)
{
	struct uv_tree tree = {};

	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM, port);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_SPEED_RESP, speed, sizeof(*speed));
	return harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT_SPEED, &tree);
}

START_TEST(test_query_port_speed_is_lanes_times_signalling_rate)
{
	struct uvd_port_config *port = &h.dev->ib.config.ports[0];
	uint64_t speed = 0;

	ck_assert_int_eq(query_speed(1, &speed), -EINVAL); /* no context */
	begin();
	port->active_width = 2; /* 4X */
	port->active_speed = 32; /* EDR */
	ck_assert_int_eq(query_speed(1, &speed), 0);
	ck_assert_uint_eq(speed, 1000);
	port->active_width = 8; /* 12X */
	port->active_speed = 1; /* SDR */
	ck_assert_int_eq(query_speed(1, &speed), 0);
	ck_assert_uint_eq(speed, 300);
	ck_assert_int_eq(query_speed(0, &speed), -EINVAL);
	ck_assert_int_eq(query_speed(h.config.num_ports + 1, &speed), -EINVAL);
	ck_assert_int_eq(query_speed(1ull << 32 | 1, &speed), -EINVAL);
	ck_assert_int_eq(query_speed(1, BAD), -EFAULT);
	h.ops.query_port_speed = NULL;
	ck_assert_int_eq(query_speed(99, &speed), -EOPNOTSUPP);
}
END_TEST

TEST_LIST(test_counters_01_read_before_a_flow_uses_them_is_einval, test_counters_without_their_functions,
	  test_counters_are_read_while_a_qp_is_bound_to_them, test_comp_cntr_is_set_increased_and_read,
	  test_comp_cntr_is_attached_for_the_life_of_the_qp, test_comp_cntr_goes_with_its_file_whatever_the_order,
	  test_comp_cntr_without_its_functions, test_comp_cntr_caps_are_optional_outputs,
	  test_backend_gets_cpu_and_hints_of_a_dma_handle, test_dmabuf_of_what_is_not_mapped_is_einval,
	  test_backend_gets_the_moderation_of_a_cq, test_cq_in_a_buffer_of_the_clients,
	  test_cq_whose_call_is_let_go_keeps_no_buffer, test_query_port_speed_is_lanes_times_signalling_rate)
