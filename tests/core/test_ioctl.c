/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctl ABI on toy methods: headers, attributes, and when which output is written. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bed.h"
#include "../suite.h"

/* Page-aligned: an ioctl of the largest valid length lies within one page. */
static struct uv_tree t __attribute__((aligned(4096)));

static struct ib_uverbs_attr *use(uint16_t id, uint64_t data, uint16_t len)
{
	tree_begin(&t, OBJ_TOY, M_USE);
	return tree_attr(&t, id, data, len);
}

START_TEST(test_ioctl_01_another_command_is_enotty)
{
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, 0x1234, (uintptr_t)&t), -ENOTTY);
	ck_assert_int_eq(bed.reads, 0);
	bed.dev.config.write_abi = true;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -ENOTTY);
}
END_TEST

START_TEST(test_ioctl_02_to_06_header_rules_in_order)
{
	tree_begin(&t, OBJ_ABSENT, 0);
	t.hdr.driver_id = DRIVER + 1;
	t.hdr.reserved1 = 1;
	t.hdr.length = 23;
	bed.hole = (uintptr_t)&t;
	bed.hole_len = 1;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EFAULT);
	bed.hole_len = 0;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EINVAL);
	t.hdr.num_attrs = 255;
	t.hdr.length = 24 + 255 * 16; /* beyond a page */
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EINVAL);
	t.hdr.num_attrs = 0;
	t.hdr.length = 24;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EPROTONOSUPPORT);
	t.hdr.reserved1 = 0;
	t.hdr.reserved2 = 1;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EPROTONOSUPPORT);
	t.hdr.reserved2 = 0;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EINVAL);
	t.hdr.driver_id = DRIVER;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EPROTONOSUPPORT);
	t.hdr.object_id = OBJ_TOY;
	t.hdr.method_id = 77;
	ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)&t), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(test_ioctl_03_a_page_of_attributes_is_accepted)
{
	tree_begin(&t, OBJ_TOY, M_USE);
	for (unsigned int i = 0; i < 254; i++)
		tree_attr(&t, 0x800 + i, 0, 0)->flags = 0;
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_int_eq(bed.ran, 1);
}
END_TEST

START_TEST(test_ioctl_08_unreadable_attributes_are_efault_after_the_method)
{
	use(A_CONST, 1, 8);
	bed.hole = (uintptr_t)&t.hdr.attrs[0];
	bed.hole_len = 16;
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	t.hdr.method_id = 77;
	ck_assert_int_eq(tree_send(&t), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(test_ioctl_09_10_an_unknown_attribute_counts_only_if_mandatory)
{
	use(200, 0, 0);
	ck_assert_int_eq(tree_send(&t), -EPROTONOSUPPORT);
	t.hdr.attrs[0].flags = 0;
	ck_assert_int_eq(tree_send(&t), 0);
	t.hdr.attrs[0].attr_id = 0xf001;
	ck_assert_int_eq(tree_send(&t), 0);
}
END_TEST

START_TEST(test_ioctl_11_twice_the_same_is_einval)
{
	use(A_CONST, 1, 8);
	tree_attr(&t, A_CONST, 1, 8);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
}
END_TEST

START_TEST(test_ioctl_12_20_absent_mandatory_undoes_but_the_handle_was_written)
{
	toy_new();
	tree_begin(&t, OBJ_TOY, M_NEW);
	tree_attr(&t, A_TOY, 0x1111, 0);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	ck_assert_int_eq(t.hdr.attrs[0].data_s64, 1);
	ck_assert_int_eq(bed.ran, 2); /* the two steps of the first call only */
	ck_assert_int_eq(toy_new(), 1); /* the handle is free again */
}
END_TEST

START_TEST(test_ioctl_20_a_handle_that_cannot_be_written_aborts)
{
	tree_begin(&t, OBJ_TOY, M_NEW);
	tree_attr(&t, A_CONST, 0, 4);
	tree_attr(&t, A_TOY, 0, 0);
	/* Reads of the hole succeed, writes fail. */
	bed.mem.read = uvd_mem_self.read;
	bed.hole = (uintptr_t)&t.hdr.attrs[1].data;
	bed.hole_len = 8;
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	bed.hole_len = 0;
	ck_assert_int_eq(toy_new(), 0);
	ck_assert_int_eq(bed.num_destroyed, bed.ran / 2 - 1);
}
END_TEST

START_TEST(test_ioctl_13_enum_rules)
{
	struct ib_uverbs_attr *a = use(A_ENUM, 5, 8);

	a->attr_data.enum_data.elem_id = 1;
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[7], 1);
	a->attr_data.enum_data.elem_id = 0; /* requires a length of 4 */
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->attr_data.enum_data.elem_id = 3;
	a->attr_data.enum_data.reserved = 1;
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	a->attr_data.enum_data.elem_id = 1;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->attr_data.enum_data.reserved = 0;
	a->attr_data.enum_data.elem_id = 2; /* its type is PTR_OUT */
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_ioctl_14_15_16_sizes_and_trailing_zeros)
{
	uint64_t data[4] = { 1, 2, 0, 0 };
	struct ib_uverbs_attr *a = use(A_LONG, (uintptr_t)data, 32);

	ck_assert_int_eq(tree_send(&t), 0);
	data[3] = 1;
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	data[3] = 0;
	data[2] = 1; /* the first byte of the tail */
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	data[2] = 0;
	/* An unreadable tail counts as not zero. */
	bed.hole = (uintptr_t)&data[3];
	bed.hole_len = 1;
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	bed.hole_len = 0;
	a->len = 7;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 8;
	ck_assert_int_eq(tree_send(&t), 0);
	a->attr_data.reserved = 1;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	/* A_IN is not extensible: its length must match exactly. */
	a = use(A_IN, (uintptr_t)data, 24);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 16;
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[1], 1);
	ck_assert_uint_eq(bed.seen[2], 2);
}
END_TEST

START_TEST(test_ioctl_17_up_to_8_bytes_are_inline)
{
	use(A_LONG, 0x1234, 8);
	tree_attr(&t, A_COPY, 0x5678, 8);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[3], 0x5678);
	ck_assert_uint_eq(bed.seen[4], 0);
	ck_assert_int_eq(bed.reads, 2);
}
END_TEST

START_TEST(test_ioctl_18_alloc_and_copy_faults_while_parsing_and_reads_each_byte_once)
{
	uint64_t data[3] = { 1, 2, 0 };

	use(A_COPY, (uintptr_t)data, 24);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[3], 1);
	ck_assert_uint_eq(bed.seen[4], 2);
	ck_assert_int_eq(bed.reads, 4); /* header, attributes, tail, head */
	bed.hole = (uintptr_t)data;
	bed.hole_len = 1;
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	ck_assert_int_eq(bed.ran, 1);
	/* Without UVD_ALLOC_AND_COPY, the fault occurs when the step reads the attribute. */
	use(A_IN, (uintptr_t)data, 16);
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	ck_assert_int_eq(bed.ran, 2);
}
END_TEST

START_TEST(test_ioctl_19_and_handle_03_04_object_attributes)
{
	struct ib_uverbs_attr *a;

	toy_new();
	a = use(A_TOY, 0, 0);
	ck_assert_int_eq(tree_send(&t), 0);
	a->len = 8;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 0;
	a->attr_data.reserved = 1;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->attr_data.reserved = 0;
	a->data = 1;
	ck_assert_int_eq(tree_send(&t), -ENOENT);
	a->data = 1ULL << 32;
	ck_assert_int_eq(tree_send(&t), -ENOENT);
	a->data = -1ULL;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
}
END_TEST

START_TEST(test_one_object_as_two_attributes_is_ebusy_if_one_writes)
{
	toy_new();
	use(A_TOY, 0, 0);
	tree_attr(&t, A_WRITE_TOY, 0, 0);
	ck_assert_int_eq(tree_send(&t), -EBUSY);
	use(A_WRITE_TOY, 0, 0);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_int_eq(toy_destroy(0), 0);
}
END_TEST

START_TEST(test_ioctl_21_raw_fd_is_an_int)
{
	struct ib_uverbs_attr *a = use(A_RAW, -1ULL, 0);

	ck_assert_int_eq(tree_send(&t), 0);
	a->data = 1ULL << 31;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->data = 0;
	a->len = 4;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
}
END_TEST

START_TEST(test_ioctl_22_arrays_of_handles)
{
	uint32_t ids[101] = { 0 };
	struct ib_uverbs_attr *a;

	toy_new();
	toy_new();
	ids[1] = 1;
	a = use(A_TOYS, (uintptr_t)ids, 400);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[0], 100);
	a->len = 404;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 10;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 0;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 8;
	a->data = 1ULL << 32; /* inline: 0 and 1 */
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[0], 2);
	a->data = 2ULL << 32;
	ck_assert_int_eq(tree_send(&t), -ENOENT);
	ck_assert_int_eq(toy_destroy(0), 0); /* the failed call released the lock of the first toy */
}
END_TEST

START_TEST(test_ioctl_27_const_and_flags)
{
	struct ib_uverbs_attr *a = use(A_CONST, 101, 8);

	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 4;
	a->data = 1;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a = use(A_FLAGS, 7, 8);
	ck_assert_int_eq(tree_send(&t), 0);
	a->data = 8;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->data = 1ULL << 32 | 3;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	a->len = 4; /* only the low 4 bytes count */
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[6], 3);
	a->len = 6;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
}
END_TEST

START_TEST(test_ioctl_23_outputs_are_flagged_and_written_at_once)
{
	uint64_t out[3] = { 9, 9, 9 };
	struct ib_uverbs_attr *a;

	tree_begin(&t, OBJ_TOY, M_NEW);
	tree_attr(&t, A_TOY, 0x1111, 0);
	tree_attr(&t, A_CONST, 0, 4);
	a = tree_attr(&t, A_OUT, (uintptr_t)out, 24);
	a->flags |= 0x100;
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(out[0], 0x1122334455667788);
	ck_assert_uint_eq(out[1], 0x99);
	ck_assert_uint_eq(out[2], 0);
	ck_assert_uint_eq(a->flags, 0x100 | UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	ck_assert_uint_eq(t.hdr.attrs[0].flags, UVERBS_ATTR_F_MANDATORY);
	ck_assert_int_eq(t.hdr.attrs[0].data_s64, 0);
	ck_assert_int_eq(bed.writes, 1);
	/* Unlike input, output of up to 8 bytes is not inline: it goes to the pointer. */
	a->len = 4;
	a->data = (uintptr_t)&out[2];
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(out[2], 0x55667788);
}
END_TEST

START_TEST(test_ioctl_25_destroy_comes_before_the_response)
{
	uint64_t out;

	toy_new();
	tree_begin(&t, OBJ_TOY, M_DESTROY_ANSWER);
	tree_attr(&t, A_TOY, 0, 0);
	tree_attr(&t, A_OUT, (uintptr_t)&out, 8);
	bed.hole = (uintptr_t)&out;
	bed.hole_len = 8;
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	ck_assert_int_eq(bed.num_destroyed, 1);
	ck_assert_int_eq(toy_destroy(0), -ENOENT);
}
END_TEST

START_TEST(test_handle_09_a_refused_destroy_changes_nothing)
{
	bed.refuse = 1;
	toy_new();
	ck_assert_int_eq(toy_destroy(0), -EBUSY);
	use(A_WRITE_TOY, 0, 0);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_int_eq(toy_destroy(0), 0);
}
END_TEST

START_TEST(test_ioctl_26_a_step_cannot_say_eprotonosupport)
{
	tree_begin(&t, OBJ_TOY, M_BAD_PROTO);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
}
END_TEST

START_TEST(test_a_failing_step_aborts_what_was_made)
{
	bed.fail = -EXDEV;
	ck_assert_int_eq(toy_new(), -EXDEV);
	ck_assert_int_eq(bed.num_destroyed, 1);
	ck_assert_int_eq(bed.reasons[0], UVD_REMOVE_ABORT);
	bed.fail = 0;
	ck_assert_int_eq(toy_new(), 0);
}
END_TEST

/* Calls whose last byte is the last of a page must succeed although the next page is not readable. */
START_TEST(test_a_header_at_the_end_of_a_page_needs_nothing_behind_it)
{
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(pages + 4096, 4096, PROT_NONE);
	bed.call.caller.mem = &uvd_mem_process;
	tree_begin(&t, OBJ_TOY, M_USE);
	for (unsigned int n = 0; n < 20; n++) {
		size_t len = sizeof(t.hdr) + n * 16;

		if (n)
			tree_attr(&t, 0x800 + n, 0, 0)->flags = 0;
		t.hdr.length = len;
		memcpy(pages + 4096 - len, &t, len);
		ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)pages + 4096 - len), 0);
		/* One byte further, the call extends into the unreadable page. */
		memcpy(pages + 4097 - len, &t, len - 1);
		ck_assert_int_eq(uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)pages + 4097 - len),
				 -EFAULT);
	}
	munmap(pages, 8192);
}
END_TEST

START_TEST(test_a_usual_ioctl_is_read_once)
{
	bed_may_read_ahead();
	toy_new();
	ck_assert_int_eq(bed.reads, 1);
	ck_assert_int_eq(bed.writes, 1);
}
END_TEST

/* ---- INVOKE_WRITE, INFO_HANDLES ---------------------------------------------------------------------------------- */

static struct ib_uverbs_attr *invoke(uint32_t command, const void *in, uint16_t in_len, void *out, uint16_t out_len)
{
	tree_begin(&t, OBJ_DEVICE, M_INVOKE_WRITE);
	tree_attr(&t, UVERBS_ATTR_WRITE_CMD, command, 8);
	tree_attr(&t, UVERBS_ATTR_CORE_IN, (uintptr_t)in, in_len);
	return tree_attr(&t, UVERBS_ATTR_CORE_OUT, (uintptr_t)out, out_len);
}

/*
 * On libibverbs' stack the command's struct lies a little above the attributes, so one read gets both. A struct that
 * lies further away needs a read of its own.
 */
START_TEST(test_what_lies_near_the_header_is_read_with_it)
{
	uint64_t far[2] = { 0, 7 };
	uint32_t out[3];
	uint64_t *near = (uint64_t *)&t.hdr.attrs[16];

	bed_may_read_ahead();
	near[0] = 0;
	near[1] = 5;
	invoke(W_NEW, near, 16, out, 12);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(out[1], 5);
	ck_assert_int_eq(bed.reads, 1);
	invoke(W_NEW, far, 16, out, 12);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(out[1], 7);
	ck_assert_int_eq(bed.reads, 3);
	/* If only a part of the struct was read ahead, all of it is read again. */
	near = (uint64_t *)((uint8_t *)&t + UVD_REQ_AHEAD - 8);
	near[1] = 9;
	invoke(W_NEW, near, 16, out, 12);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(out[1], 9);
	ck_assert_int_eq(bed.reads, 5);
}
END_TEST

START_TEST(test_ioctl_28_invoke_write_runs_the_commands_row)
{
	uint64_t in[2] = { 0, 5 };
	uint32_t out[3] = { 9, 9, 9 };
	struct ib_uverbs_attr *a = invoke(W_NEW, in, 16, out, 12);

	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(out[0], 0);
	ck_assert_uint_eq(out[1], 5);
	ck_assert_uint_eq(out[2], 0);
	ck_assert_uint_eq(a->flags, UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	ck_assert_int_eq(toy_destroy(0), 0);
}
END_TEST

START_TEST(test_ioctl_28_invoke_write_errnos)
{
	uint64_t in[2] = { 0, 5 };
	uint32_t out[2];

	invoke(W_NEW | 0x100, in, 16, out, 8);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	invoke(W_DESTROY_CQ + 1, in, 16, out, 8);
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	invoke(10, in, 16, out, 8);
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	invoke(W_NEW, in, 12, out, 8);
	ck_assert_int_eq(tree_send(&t), -ENOSPC);
	invoke(W_NEW, in, 16, out, 4);
	ck_assert_int_eq(tree_send(&t), -ENOSPC);
	invoke(W_NEW, in, 2, out, 8);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	/* libibverbs sends this to find out whether the kernel has the ioctl ABI. */
	tree_begin(&t, OBJ_DEVICE, M_INVOKE_WRITE);
	tree_attr(&t, UVERBS_ATTR_WRITE_CMD, W_NEW, 8);
	ck_assert_int_eq(tree_send(&t), -ENOSPC);
	ck_assert_int_eq(bed.ran, 0);
}
END_TEST

START_TEST(test_invoke_write_input_faults_as_the_kernels_two_reads_would)
{
	uint64_t in[3] = { 0, 5, 0 };
	uint32_t out[2];

	invoke(W_NEW, in, 24, out, 8);
	bed.hole_len = 1;
	bed.hole = (uintptr_t)&in[1];
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	bed.hole = (uintptr_t)&in[2];
	ck_assert_int_eq(tree_send(&t), -EOPNOTSUPP);
	ck_assert_int_eq(bed.ran, 0);
}
END_TEST

START_TEST(test_ioctl_24_uhw_out_is_flagged_if_the_method_succeeds)
{
	uint64_t in[2] = { 0, 5 }, hw_in = 0x77;
	uint32_t out[2], hw_out[4] = { 0 };
	struct ib_uverbs_attr *a;

	invoke(W_UDATA, in, 16, out, 4);
	tree_attr(&t, UVD_ATTR_UHW_IN, hw_in, 8);
	a = tree_attr(&t, UVD_ATTR_UHW_OUT, (uintptr_t)hw_out, 16);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(bed.seen[4], 0x77);
	ck_assert_uint_eq(hw_out[1], 2);
	ck_assert_uint_eq(hw_out[2], 0);
	ck_assert_uint_eq(a->flags, UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	invoke(W_NEW, in, 12, out, 8);
	a = tree_attr(&t, UVD_ATTR_UHW_OUT, (uintptr_t)hw_out, 16);
	ck_assert_int_eq(tree_send(&t), -ENOSPC);
	ck_assert_uint_eq(a->flags, UVERBS_ATTR_F_MANDATORY);
}
END_TEST

START_TEST(test_ioctl_29_info_handles)
{
	uint32_t ids[8] = { 0 }, total = 9;

	for (int i = 0; i < 5; i++)
		toy_new();
	tree_begin(&t, OBJ_DEVICE, M_INFO_HANDLES);
	tree_attr(&t, UVERBS_ATTR_INFO_OBJECT_ID, OBJ_TOY, 8);
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	tree_attr(&t, UVERBS_ATTR_INFO_HANDLES_LIST, (uintptr_t)ids, 32);
	ck_assert_int_eq(tree_send(&t), -ENOENT);
	tree_attr(&t, UVERBS_ATTR_INFO_TOTAL_HANDLES, (uintptr_t)&total, 4);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(total, 5);
	ck_assert_uint_eq(ids[0], 4);
	ck_assert_uint_eq(ids[4], 0);
	t.hdr.attrs[1].len = 12;
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(total, 3); /* as many as the list has room for */
	t.hdr.attrs[1].len = 10;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
	t.hdr.attrs[1].len = 12;
	t.hdr.attrs[0].data = OBJ_ABSENT;
	ck_assert_int_eq(tree_send(&t), -ENOENT);
	t.hdr.attrs[0].data = 0xffff;
	ck_assert_int_eq(tree_send(&t), -ENOMSG);
	t.hdr.attrs[0].data = 0x10000;
	ck_assert_int_eq(tree_send(&t), -EINVAL);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, bed_setup, bed_teardown);
	tcase_add_test(tc, test_ioctl_01_another_command_is_enotty);
	tcase_add_test(tc, test_ioctl_02_to_06_header_rules_in_order);
	tcase_add_test(tc, test_ioctl_03_a_page_of_attributes_is_accepted);
	tcase_add_test(tc, test_ioctl_08_unreadable_attributes_are_efault_after_the_method);
	tcase_add_test(tc, test_ioctl_09_10_an_unknown_attribute_counts_only_if_mandatory);
	tcase_add_test(tc, test_ioctl_11_twice_the_same_is_einval);
	tcase_add_test(tc, test_ioctl_12_20_absent_mandatory_undoes_but_the_handle_was_written);
	tcase_add_test(tc, test_ioctl_20_a_handle_that_cannot_be_written_aborts);
	tcase_add_test(tc, test_ioctl_13_enum_rules);
	tcase_add_test(tc, test_ioctl_14_15_16_sizes_and_trailing_zeros);
	tcase_add_test(tc, test_ioctl_17_up_to_8_bytes_are_inline);
	tcase_add_test(tc, test_ioctl_18_alloc_and_copy_faults_while_parsing_and_reads_each_byte_once);
	tcase_add_test(tc, test_ioctl_19_and_handle_03_04_object_attributes);
	tcase_add_test(tc, test_one_object_as_two_attributes_is_ebusy_if_one_writes);
	tcase_add_test(tc, test_ioctl_21_raw_fd_is_an_int);
	tcase_add_test(tc, test_ioctl_22_arrays_of_handles);
	tcase_add_test(tc, test_ioctl_27_const_and_flags);
	tcase_add_test(tc, test_ioctl_23_outputs_are_flagged_and_written_at_once);
	tcase_add_test(tc, test_ioctl_25_destroy_comes_before_the_response);
	tcase_add_test(tc, test_handle_09_a_refused_destroy_changes_nothing);
	tcase_add_test(tc, test_ioctl_26_a_step_cannot_say_eprotonosupport);
	tcase_add_test(tc, test_a_failing_step_aborts_what_was_made);
	tcase_add_test(tc, test_a_header_at_the_end_of_a_page_needs_nothing_behind_it);
	tcase_add_test(tc, test_a_usual_ioctl_is_read_once);
	tcase_add_test(tc, test_what_lies_near_the_header_is_read_with_it);
	tcase_add_test(tc, test_ioctl_28_invoke_write_runs_the_commands_row);
	tcase_add_test(tc, test_ioctl_28_invoke_write_errnos);
	tcase_add_test(tc, test_invoke_write_input_faults_as_the_kernels_two_reads_would);
	tcase_add_test(tc, test_ioctl_24_uhw_out_is_flagged_if_the_method_succeeds);
	tcase_add_test(tc, test_ioctl_29_info_handles);
	return run_suite("ioctl", tc);
}
