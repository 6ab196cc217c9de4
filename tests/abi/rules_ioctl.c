/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The framing of ioctl attribute trees. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "abi.h"

static struct uv_tree tree;
static uint32_t cqe;
static struct ib_uverbs_query_port_resp_ex port_resp;

/* A valid QUERY_PORT and a valid CQ_CREATE, which the tests then spoil. */
static void query_port_tree(void)
{
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_RESP, &port_resp, sizeof(port_resp));
	tree.hdr.length = sizeof(tree.hdr) + 2 * sizeof(struct ib_uverbs_attr);
}

static struct ib_uverbs_attr *create_cq_tree(uint16_t attr)
{
	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	return uv_attr_find(&tree, attr);
}

static int send_raw(int fd)
{
	return uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, &tree);
}

START_TEST(test_ioctl_01_other_command_is_enotty)
{
	int fd = open_context(NULL);

	query_port_tree();
	expect(uv_ioctl_raw(fd, _IOWR(RDMA_IOCTL_MAGIC, 2, struct ib_uverbs_ioctl_hdr), &tree), ENOTTY);
	expect(uv_ioctl_raw(fd, _IOR(RDMA_IOCTL_MAGIC, 1, struct ib_uverbs_ioctl_hdr), &tree), ENOTTY);
	expect(uv_ioctl_raw(fd, 0, &tree), ENOTTY);
}
END_TEST

/* Programs ask any file whether it is a terminal, and how much there is to read. */
START_TEST(test_ioctl_01_command_of_another_device_is_enotty_and_writes_nothing)
{
	static const unsigned int commands[] = { TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD };
	int fd = open_context(NULL);
	uint8_t before[128], bytes[128];

	memset(before, 0x5a, sizeof(before));
	memset(bytes, 0x5a, sizeof(bytes));
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(commands); i++) {
		if (commands[i] == FIONREAD && choice("ioctl-01-file"))
			continue;
		expect(uv_ioctl_raw(fd, commands[i], bytes), ENOTTY);
		expect(uv_ioctl_raw(fd, commands[i], NULL), ENOTTY);
		ck_assert_mem_eq(bytes, before, sizeof(bytes));
	}
	expect_choice("ioctl-01-file", uv_ioctl_raw(fd, FIONREAD, bytes), ENOTTY);
}
END_TEST

/* The kernel looks at no argument of an unknown command. */
START_TEST(test_ioctl_01_unknown_command_is_enotty_whatever_its_argument)
{
	static uint8_t large[_IOC_SIZEMASK];
	int fd = open_context(NULL);
	uint8_t bytes[64] = {};

	expect(uv_ioctl_raw(fd, _IOR('!', 1, bytes), NULL), ENOTTY);
	expect_choice("ioctl-01-copied", uv_ioctl_raw(fd, _IOW('!', 1, bytes), NULL), ENOTTY);
	expect_choice("ioctl-01-copied", uv_ioctl_raw(fd, _IOWR('!', 1, bytes), uv_guard(bytes, 63)), ENOTTY);
	expect(uv_ioctl_raw(fd, _IOWR('!', 1, bytes), uv_guard(bytes, 64)), ENOTTY);
	expect(uv_ioctl_raw(fd, _IOC(_IOC_READ | _IOC_WRITE, '!', 1, _IOC_SIZEMASK), large), ENOTTY);
}
END_TEST

START_TEST(test_ioctl_02_unreadable_header_is_efault)
{
	int fd = open_context(NULL);

	query_port_tree();
	expect(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, NULL), EFAULT);
	expect(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, uv_guard(&tree, 16)), EFAULT);
}
END_TEST

/* The attributes behind it lie in the next page: they get flags. */
START_TEST(test_ioctl_02_header_may_be_read_only)
{
	uint8_t *pages = uv_pages(8192, PROT_READ | PROT_WRITE), *header = pages + 4096 - sizeof(tree.hdr);
	int fd = open_context(NULL);

	query_port_tree();
	memcpy(header, &tree, tree.hdr.length);
	port_resp.legacy_resp.state = 0xa5;
	ck_assert(!mprotect(pages, 4096, PROT_READ));
	expect_ok(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, header));
	ck_assert_uint_ne(port_resp.legacy_resp.state, 0xa5);
	ck_assert_mem_eq(header, &tree.hdr, sizeof(tree.hdr));
}
END_TEST

START_TEST(test_ioctl_03_length_must_match_the_attributes)
{
	int fd = open_context(NULL);

	query_port_tree();
	expect_ok(send_raw(fd));
	tree.hdr.length++;
	expect(send_raw(fd), EINVAL);
	tree.hdr.length = 0;
	expect(send_raw(fd), EINVAL);
	tree.hdr.length = sizeof(tree.hdr);
	expect(send_raw(fd), EINVAL);
	query_port_tree();
	tree.hdr.num_attrs = 3;
	expect(send_raw(fd), EINVAL);
}
END_TEST

/* 254 attributes fit in a page, 255 do not. Unknown optional attributes are ignored. */
START_TEST(test_ioctl_03_tree_over_a_page_is_einval)
{
	int fd = open_context(NULL);

	query_port_tree();
	while (tree.hdr.num_attrs < 254)
		uv_attr(&tree, 0xf00, 0, 0)->flags = 0;
	expect_ok(uv_ioctl(fd, &tree));
	uv_attr(&tree, 0xf00, 0, 0)->flags = 0;
	expect(uv_ioctl(fd, &tree), EINVAL);
}
END_TEST

START_TEST(test_ioctl_04_reserved_of_the_header_is_eprotonosupport)
{
	int fd = open_context(NULL);

	query_port_tree();
	tree.hdr.reserved1 = 1;
	expect(send_raw(fd), EPROTONOSUPPORT);
	query_port_tree();
	tree.hdr.reserved2 = 1;
	expect(send_raw(fd), EPROTONOSUPPORT);
	tree.hdr.length++;
	expect(send_raw(fd), EINVAL); /* the length is checked first */
}
END_TEST

START_TEST(test_ioctl_05_other_driver_is_einval_before_the_method)
{
	int fd = open_context(NULL);

	query_port_tree();
	tree.hdr.driver_id++;
	expect(send_raw(fd), EINVAL);
	tree.hdr.method_id = 99;
	expect(send_raw(fd), EINVAL);
}
END_TEST

START_TEST(test_ioctl_06_unknown_object_or_method_is_eprotonosupport)
{
	static const uint16_t pairs[][2] = {
		{ 0, 99 },
		{ 99, 0 },
		{ UVERBS_OBJECT_COMP_CHANNEL, 0 },
		{ 0xffff, 0 },
		{ 0, 0xffff },
		{ 0x1000, 0 },
		{ 0, 0x1000 },
		{ UVERBS_OBJECT_PD, 1 },
		{ 0x2000, 3 },
		{ UVERBS_OBJECT_DEVICE, 0x8003 },
	};
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(pairs); i++) {
		query_port_tree();
		tree.hdr.object_id = pairs[i][0];
		tree.hdr.method_id = pairs[i][1];
		expect(send_raw(fd), EPROTONOSUPPORT);
	}
}
END_TEST

START_TEST(test_ioctl_08_unreadable_attributes_are_efault)
{
	int fd = open_context(NULL);

	query_port_tree();
	expect(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, uv_guard(&tree, sizeof(tree.hdr))), EFAULT);
	expect(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, uv_guard(&tree, sizeof(tree.hdr) + 24)), EFAULT);
}
END_TEST

START_TEST(test_ioctl_09_unknown_mandatory_attribute_is_eprotonosupport)
{
	static const uint16_t ids[] = { 2, 99, 0x1000, 0x1002, 0xffff };
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(ids); i++) {
		query_port_tree();
		uv_attr(&tree, ids[i], 0, 0);
		expect(uv_ioctl(fd, &tree), EPROTONOSUPPORT);
	}
}
END_TEST

START_TEST(test_ioctl_10_unknown_optional_attribute_is_skipped)
{
	int fd = open_context(NULL);

	query_port_tree();
	uv_attr(&tree, 99, 0xffff, UINT64_MAX)->flags = 0;
	uv_attr(&tree, 99, 0xffff, UINT64_MAX)->flags = 0xfffe;
	expect_ok(uv_ioctl(fd, &tree));
}
END_TEST

START_TEST(test_ioctl_11_duplicate_attribute_is_einval)
{
	int fd = open_context(NULL);

	query_port_tree();
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	expect(uv_ioctl(fd, &tree), EINVAL);
}
END_TEST

START_TEST(test_ioctl_12_missing_mandatory_attribute_is_einval)
{
	static const uint16_t ids[] = {
		UVERBS_ATTR_CREATE_CQ_HANDLE,	   UVERBS_ATTR_CREATE_CQ_CQE,	   UVERBS_ATTR_CREATE_CQ_USER_HANDLE,
		UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, UVERBS_ATTR_CREATE_CQ_RESP_CQE,
	};
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(ids); i++) {
		struct ib_uverbs_attr *attr = create_cq_tree(ids[i]);

		attr->attr_id = 0xf00; /* an id that no method has */
		attr->flags = 0;
		expect(uv_ioctl(fd, &tree), EINVAL);
		ck_assert_uint_eq(next_handle(fd), 0);
	}
}
END_TEST

/* The device allocates the handle and writes it to the tree before it notices that an attribute is missing. */
START_TEST(test_ioctl_12_missing_attribute_is_missed_after_the_others_took_effect)
{
	int fd = open_context(NULL);
	struct ib_uverbs_attr *attr;

	create_cq_tree(0)->data = 0x5a5a;
	attr = uv_attr_find(&tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR);
	attr->attr_id = 0xf00;
	attr->flags = 0;
	expect(uv_ioctl(fd, &tree), EINVAL);
	ck_assert_uint_eq(uv_attr_find(&tree, UVERBS_ATTR_CREATE_CQ_HANDLE)->data, 0);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

/* QP_CREATE's capabilities are a struct that later kernels may extend. */
START_TEST(test_ioctl_14_longer_struct_must_end_in_zeroes)
{
	struct {
		struct ib_uverbs_qp_cap cap;
		uint32_t tail[3];
	} in = { .cap = { 1, 1, 1, 1, 0 }, .tail = { 0, 0, 1 } };
	struct ib_uverbs_attr *attr;
	struct bed bed = make_bed();
	struct uv_qp_attr qp_attr = uv_qp_attr(bed.pd, bed.cq);
	struct uv_qp qp;

	uv_tree_create_qp(&tree, &qp_attr, &qp);
	attr = uv_attr_find(&tree, UVERBS_ATTR_CREATE_QP_CAP);
	attr->data = (uintptr_t)&in;
	attr->len = sizeof(in);
	expect(uv_ioctl(bed.fd, &tree), EOPNOTSUPP);
	in.tail[2] = 0;
	expect_ok(uv_ioctl(bed.fd, &tree));
}
END_TEST

START_TEST(test_ioctl_15_wrong_length_is_einval)
{
	static const struct {
		uint16_t attr, len;
	} bad[] = {
		{ UVERBS_ATTR_CREATE_CQ_CQE, 0 },	  { UVERBS_ATTR_CREATE_CQ_CQE, 3 },
		{ UVERBS_ATTR_CREATE_CQ_CQE, 5 },	  { UVERBS_ATTR_CREATE_CQ_CQE, 8 },
		{ UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 4 }, { UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 9 },
		{ UVERBS_ATTR_CREATE_CQ_RESP_CQE, 3 },	  { UVERBS_ATTR_CREATE_CQ_RESP_CQE, 8 },
	};
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(bad); i++) {
		create_cq_tree(bad[i].attr)->len = bad[i].len;
		expect(uv_ioctl(fd, &tree), EINVAL);
	}
	query_port_tree();
	uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_RESP)->len = sizeof(port_resp) - 1;
	expect(uv_ioctl(fd, &tree), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_ioctl_15_longer_output_struct_is_zeroed)
{
	uint8_t out[sizeof(port_resp) + 16];
	int fd = open_context(NULL);

	query_port_tree();
	memset(out, 0x5a, sizeof(out));
	uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_RESP)->data = (uintptr_t)out;
	uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_RESP)->len = sizeof(out) - 4;
	expect_ok(uv_ioctl(fd, &tree));
	for (size_t i = sizeof(port_resp); i < sizeof(out) - 4; i++)
		ck_assert_uint_eq(out[i], 0);
	ck_assert_uint_eq(out[sizeof(out) - 4], 0x5a);
}
END_TEST

START_TEST(test_ioctl_16_reserved_of_a_pointer_is_einval)
{
	static const uint16_t ids[] = { UVERBS_ATTR_CREATE_CQ_CQE, UVERBS_ATTR_CREATE_CQ_RESP_CQE };
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(ids); i++) {
		create_cq_tree(ids[i])->attr_data.reserved = 1;
		expect(uv_ioctl(fd, &tree), EINVAL);
	}
}
END_TEST

/* The call works only if the 4 bytes of CQE are inline and the 4 bytes of RESP_CQE are behind a pointer. */
START_TEST(test_ioctl_17_short_input_is_inline_and_output_never)
{
	int fd = open_context(NULL);

	cqe = 0;
	ck_assert_uint_eq(create_cq_tree(UVERBS_ATTR_CREATE_CQ_CQE)->data, uv_cq_default.cqe);
	expect_ok(uv_ioctl(fd, &tree));
	ck_assert_uint_ge(cqe, uv_cq_default.cqe);
	ck_assert_uint_eq(uv_attr_find(&tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE)->data, (uintptr_t)&cqe);
	create_cq_tree(UVERBS_ATTR_CREATE_CQ_RESP_CQE)->data = 64;
	expect(uv_ioctl(fd, &tree), EFAULT);
}
END_TEST

/* ADVISE_MR of a key without a region fails with the driver's errno, an unreadable list with EFAULT before that. */
START_TEST(test_ioctl_18_copied_input_faults_at_parsing)
{
	struct ib_uverbs_sge sge[2] = {};
	int fd = open_context(NULL);
	uint32_t pd, flags = 0;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);
	uv_attr_obj(&tree, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd);
	uv_attr_const(&tree, UVERBS_ATTR_ADVISE_MR_ADVICE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_FLAGS, &flags, sizeof(flags));
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, sizeof(sge));
	expect_choice("ioctl-18-advise", uv_ioctl(fd, &tree), EOPNOTSUPP);
	uv_attr_find(&tree, UVERBS_ATTR_ADVISE_MR_SGE_LIST)->data = (uintptr_t)uv_guard(NULL, 16);
	expect(uv_ioctl(fd, &tree), EFAULT);
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

START_TEST(test_ioctl_19_handle_with_reserved_or_length_is_einval)
{
	int fd = open_context(NULL);

	create_cq_tree(UVERBS_ATTR_CREATE_CQ_HANDLE)->attr_data.reserved = 1;
	expect(uv_ioctl(fd, &tree), EINVAL);
	create_cq_tree(UVERBS_ATTR_CREATE_CQ_HANDLE)->len = 4;
	expect(uv_ioctl(fd, &tree), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_ioctl_20_new_handle_is_told_even_if_the_call_fails)
{
	struct ib_uverbs_attr *attr;
	int fd = open_context(NULL);
	uint32_t pd;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	attr = create_cq_tree(UVERBS_ATTR_CREATE_CQ_HANDLE);
	attr->data = 0x5a5a5a5a5a5a5a5a;
	uv_attr_find(&tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)->data = 0xffffff;
	expect(uv_ioctl(fd, &tree), EINVAL);
	ck_assert_uint_eq(attr->data, 1);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

START_TEST(test_ioctl_20_new_handle_that_cannot_be_told_is_efault)
{
	int fd = open_context(NULL);
	void *page = uv_pages(4096, PROT_READ | PROT_WRITE);

	create_cq_tree(0);
	tree.hdr.length = sizeof(tree.hdr) + tree.hdr.num_attrs * sizeof(struct ib_uverbs_attr);
	memcpy(page, &tree, tree.hdr.length);
	mprotect(page, 4096, PROT_READ);
	expect(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, page), EFAULT);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_ioctl_23_output_is_flagged_and_other_flags_are_kept)
{
	int fd = open_context(NULL);
	struct ib_uverbs_attr *attr;

	query_port_tree();
	attr = uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_RESP);
	attr->flags = 0xfff1;
	expect_ok(send_raw(fd));
	ck_assert_uint_eq(attr->flags, 0xfff1 | UVERBS_ATTR_F_VALID_OUTPUT);
	ck_assert_uint_eq(uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM)->flags, UVERBS_ATTR_F_MANDATORY);
}
END_TEST

START_TEST(test_ioctl_23_output_that_cannot_be_flagged_is_efault)
{
	int fd = open_context(NULL);
	void *page = uv_pages(4096, PROT_READ | PROT_WRITE);

	query_port_tree();
	memcpy(page, &tree, tree.hdr.length);
	mprotect(page, 4096, PROT_READ);
	expect(uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, page), EFAULT);
}
END_TEST

START_TEST(test_ioctl_24_driver_output_is_flagged)
{
	struct ib_uverbs_attr *attr;
	int fd = open_context(NULL);
	uint8_t out[64];

	attr = create_cq_tree(UVERBS_ATTR_UHW_OUT);
	if (!attr)
		attr = uv_attr_out(&tree, UVERBS_ATTR_UHW_OUT, out, sizeof(out));
	expect_ok(uv_ioctl(fd, &tree));
	ck_assert_uint_eq(attr->flags & UVERBS_ATTR_F_VALID_OUTPUT, UVERBS_ATTR_F_VALID_OUTPUT);
}
END_TEST

START_TEST(test_ioctl_25_destroyed_object_is_gone_though_its_answer_faults)
{
	int fd = open_context(NULL);
	uint32_t cq;

	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	uv_tree_init(&tree, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_CQ_HANDLE, cq);
	uv_attr_out(&tree, UVERBS_ATTR_DESTROY_CQ_RESP, uv_guard(NULL, 4), 8);
	expect(uv_ioctl(fd, &tree), EFAULT);
	expect(uv_destroy_cq(fd, UV_METHOD, cq, NULL), ENOENT);
	ck_assert_uint_eq(next_handle(fd), cq);
}
END_TEST

START_TEST(test_ioctl_27_constant_outside_its_type_is_einval)
{
	int fd = open_context(NULL);

	query_port_tree();
	uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM)->data = 0x101;
	expect(send_raw(fd), EINVAL);
	uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM)->data = 1ull << 32 | 1;
	expect(send_raw(fd), EINVAL);
	uv_attr_find(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM)->data = UINT64_MAX;
	expect(send_raw(fd), EINVAL);
}
END_TEST

START_TEST(test_ioctl_27_flags_of_other_lengths_or_unknown_bits_are_einval)
{
	static const struct {
		uint16_t len;
		uint64_t flags;
		int err;
	} cases[] = {
		{ 4, 0, 0 },	  { 8, 0, 0 },	       { 5, 0, EINVAL },    { 7, 0, EINVAL },
		{ 3, 0, EINVAL }, { 4, 0x80, EINVAL }, { 8, 0x80, EINVAL }, { 8, 1ull << 32, EINVAL },
	};
	int fd = open_context(NULL);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(cases); i++) {
		create_cq_tree(0);
		uv_attr(&tree, UVERBS_ATTR_CREATE_CQ_FLAGS, cases[i].len, cases[i].flags);
		expect(uv_ioctl(fd, &tree), cases[i].err);
	}
}
END_TEST

/* INVOKE_WRITE of a command with core attributes of these lengths. -1: without the attribute. */
static int invoke(int fd, uint64_t command, int in_len, int out_len)
{
	static uint64_t in[8], out[8];

	memset(in, 0, sizeof(in));
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, command);
	if (in_len >= 0)
		uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, in, in_len);
	if (out_len >= 0)
		uv_attr_out(&tree, UVERBS_ATTR_CORE_OUT, out, out_len);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_ioctl_28_invoke_write_looks_the_command_up_as_write)
{
	int fd = open_context(NULL);

	expect(invoke(fd, 0x100 | IB_USER_VERBS_CMD_ALLOC_PD, 8, 4), EINVAL);
	expect(invoke(fd, 1 << 30, 8, 4), EINVAL);
	expect(invoke(fd, 200, 8, 4), EOPNOTSUPP);
	expect(invoke(fd, 6, 8, 4), EOPNOTSUPP);
	expect(invoke(fd, IB_USER_VERBS_CMD_FLAG_EXTENDED | 200, 8, 4), EOPNOTSUPP);
	expect(invoke(fd, 1ull << 32 | IB_USER_VERBS_CMD_ALLOC_PD, 8, 4), EINVAL);
}
END_TEST

START_TEST(test_ioctl_28_invoke_write_sizes)
{
	int fd = open_context(NULL);

	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, 0, 4), EINVAL);
	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, 3, 4), EINVAL);
	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, 4, 4), ENOSPC);
	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, -1, 4), ENOSPC);
	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, 8, 0), ENOSPC);
	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, 8, 3), ENOSPC);
	expect(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, 8, -1), ENOSPC);
	expect(invoke(fd, IB_USER_VERBS_CMD_GET_CONTEXT, -1, -1), ENOSPC); /* libibverbs' probe at open */
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

/* INFO_HANDLES. len 0: without the list; total NULL: without the total. */
static int info_handles(int fd, uint64_t object, uint32_t *list, uint16_t len, uint32_t *total)
{
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	uv_attr_const(&tree, UVERBS_ATTR_INFO_OBJECT_ID, object);
	if (total)
		uv_attr_out(&tree, UVERBS_ATTR_INFO_TOTAL_HANDLES, total, sizeof(*total));
	if (len)
		uv_attr_out(&tree, UVERBS_ATTR_INFO_HANDLES_LIST, list, len);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_ioctl_29_info_handles_lists_the_newest_first)
{
	uint32_t list[8], pd[3], cq, total;
	int fd = open_context(NULL);

	for (int i = 0; i < 3; i++)
		expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd[i]));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	expect_ok(info_handles(fd, UVERBS_OBJECT_PD, list, sizeof(list), &total));
	ck_assert_uint_eq(total, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(list[i], pd[2 - i]);
	expect_ok(info_handles(fd, UVERBS_OBJECT_PD, list, 8, &total)); /* room for two */
	ck_assert_uint_eq(total, 2);
	ck_assert_uint_eq(list[0], pd[2]);
	expect_ok(info_handles(fd, UVERBS_OBJECT_CQ, list, sizeof(list), &total));
	ck_assert_uint_eq(total, 1);
	ck_assert_uint_eq(list[0], cq);
	expect_ok(info_handles(fd, UVERBS_OBJECT_MR, list, sizeof(list), &total));
	ck_assert_uint_eq(total, 0);
}
END_TEST

START_TEST(test_ioctl_29_info_handles_errors)
{
	uint32_t list[8], total;
	int fd = open_context(NULL);

	expect(info_handles(fd, UVERBS_OBJECT_PD, list, 0, &total), EINVAL);
	expect(info_handles(fd, UVERBS_OBJECT_PD, list, 6, &total), EINVAL);
	expect(info_handles(fd, 99, list, sizeof(list), &total), ENOENT);
	expect(info_handles(fd, 0xffff, list, sizeof(list), &total), ENOMSG);
	expect(info_handles(fd, 0x10001, list, sizeof(list), &total), EINVAL);
	expect(info_handles(fd, UVERBS_OBJECT_PD, list, sizeof(list), NULL), ENOENT);
}
END_TEST

TCase *case_ioctl(void)
{
	TCase *tc = tcase_create("ioctl");

	tcase_add_test(tc, test_ioctl_01_other_command_is_enotty);
	tcase_add_test(tc, test_ioctl_01_command_of_another_device_is_enotty_and_writes_nothing);
	tcase_add_test(tc, test_ioctl_01_unknown_command_is_enotty_whatever_its_argument);
	tcase_add_test(tc, test_ioctl_02_unreadable_header_is_efault);
	tcase_add_test(tc, test_ioctl_02_header_may_be_read_only);
	tcase_add_test(tc, test_ioctl_03_length_must_match_the_attributes);
	tcase_add_test(tc, test_ioctl_03_tree_over_a_page_is_einval);
	tcase_add_test(tc, test_ioctl_04_reserved_of_the_header_is_eprotonosupport);
	tcase_add_test(tc, test_ioctl_05_other_driver_is_einval_before_the_method);
	tcase_add_test(tc, test_ioctl_06_unknown_object_or_method_is_eprotonosupport);
	tcase_add_test(tc, test_ioctl_08_unreadable_attributes_are_efault);
	tcase_add_test(tc, test_ioctl_09_unknown_mandatory_attribute_is_eprotonosupport);
	tcase_add_test(tc, test_ioctl_10_unknown_optional_attribute_is_skipped);
	tcase_add_test(tc, test_ioctl_11_duplicate_attribute_is_einval);
	tcase_add_test(tc, test_ioctl_12_missing_mandatory_attribute_is_einval);
	tcase_add_test(tc, test_ioctl_12_missing_attribute_is_missed_after_the_others_took_effect);
	tcase_add_test(tc, test_ioctl_14_longer_struct_must_end_in_zeroes);
	tcase_add_test(tc, test_ioctl_15_wrong_length_is_einval);
	tcase_add_test(tc, test_ioctl_15_longer_output_struct_is_zeroed);
	tcase_add_test(tc, test_ioctl_16_reserved_of_a_pointer_is_einval);
	tcase_add_test(tc, test_ioctl_17_short_input_is_inline_and_output_never);
	tcase_add_test(tc, test_ioctl_18_copied_input_faults_at_parsing);
	tcase_add_test(tc, test_ioctl_19_handle_with_reserved_or_length_is_einval);
	tcase_add_test(tc, test_ioctl_20_new_handle_is_told_even_if_the_call_fails);
	tcase_add_test(tc, test_ioctl_20_new_handle_that_cannot_be_told_is_efault);
	tcase_add_test(tc, test_ioctl_23_output_is_flagged_and_other_flags_are_kept);
	tcase_add_test(tc, test_ioctl_23_output_that_cannot_be_flagged_is_efault);
	tcase_add_test(tc, test_ioctl_24_driver_output_is_flagged);
	tcase_add_test(tc, test_ioctl_25_destroyed_object_is_gone_though_its_answer_faults);
	tcase_add_test(tc, test_ioctl_27_constant_outside_its_type_is_einval);
	tcase_add_test(tc, test_ioctl_27_flags_of_other_lengths_or_unknown_bits_are_einval);
	tcase_add_test(tc, test_ioctl_28_invoke_write_looks_the_command_up_as_write);
	tcase_add_test(tc, test_ioctl_28_invoke_write_sizes);
	tcase_add_test(tc, test_ioctl_29_info_handles_lists_the_newest_first);
	tcase_add_test(tc, test_ioctl_29_info_handles_errors);
	return tc;
}
