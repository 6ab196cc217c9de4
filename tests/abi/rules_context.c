/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Contexts, the queries of the device, its ports and GIDs, and address handles. */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "abi.h"

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

START_TEST(test_context_01_create_without_context_is_einval)
{
	struct uv_tree tree;
	uint32_t handle, cqe;
	int fd = uv_open(), channel;

	target();
	expect(uv_alloc_pd(fd, _i, &handle), EINVAL);
	expect(uv_create_channel(fd, _i, &channel), EINVAL);
	expect(uv_create_cq(fd, _i, &uv_cq_default, &handle, NULL), EINVAL);
	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	expect(uv_ioctl(fd, &tree), EINVAL);
	expect(uv_alloc_async_fd(fd, &channel), EINVAL);
}
END_TEST

START_TEST(test_context_01_query_without_context_is_einval)
{
	struct ib_uverbs_query_device_resp dev;
	struct ib_uverbs_query_port_resp port;
	struct ib_uverbs_gid_entry gid;
	int fd = uv_open();

	expect(uv_query_device(fd, _i, &dev), EINVAL);
	expect(uv_query_device(fd, _i == UV_WRITE ? UV_WRITE_EX : UV_INVOKE_EX, &dev), EINVAL);
	expect(uv_query_port(fd, _i, 1, &port), EINVAL);
	expect(uv_query_port(fd, UV_METHOD, 1, &port), EINVAL);
	expect(uv_query_gid_table(fd, &gid, 1), EINVAL);
	expect(uv_query_gid_entry(fd, 1, 0, &gid), EINVAL);
}
END_TEST

START_TEST(test_context_02_lookup_without_context_is_enoent)
{
	int fd = uv_open();

	expect(uv_dealloc_pd(fd, UV_WRITE, 0), ENOENT);
	expect(uv_dealloc_pd(fd, UV_INVOKE, 0), ENOENT);
	expect(uv_dealloc_pd(fd, UV_METHOD, 0), ENOENT);
	expect(uv_destroy_cq(fd, UV_WRITE, 0, NULL), ENOENT);
	expect(uv_destroy_cq(fd, UV_METHOD, 0, NULL), ENOENT);
}
END_TEST

static const enum uv_front context_fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };

/* The device writes the second call's response before it refuses the call. */
START_TEST(test_context_03_second_get_context_is_einval)
{
	enum uv_front first = context_fronts[_i / 3], second = context_fronts[_i % 3];
	uint32_t num_comp_vectors = 0xffff, before;
	int fd = uv_open(), async_fd;

	expect_ok(uv_get_context(fd, first, &async_fd, &before));
	ck_assert_uint_ge(before, 1);
	before = open_fds();
	expect(uv_get_context(fd, second, &async_fd, &num_comp_vectors), EINVAL);
	ck_assert_uint_ne(num_comp_vectors, 0xffff);
	ck_assert_uint_ge(num_comp_vectors, 1);
	ck_assert_uint_eq(open_fds(), before);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_context_06_get_context_by_method_makes_no_async_fd)
{
	int fd = uv_open(), async_fd;
	int before = open_fds();
	char event[16];

	expect_ok(uv_get_context(fd, UV_METHOD, NULL, NULL));
	ck_assert_int_eq(open_fds(), before);
	expect_ok(uv_alloc_async_fd(fd, &async_fd));
	expect_choice("context-06", open_fds() - before, -1);
	set_nonblock(async_fd);
	expect(read_event(async_fd, event, sizeof(event)), EAGAIN);
}
END_TEST

/* A CQ made before the first async event file has no file for its events. */
START_TEST(test_context_06_objects_made_before_the_async_file_lose_events)
{
	struct uv_cq_attr attr = { .user_handle = 0xc0ffee, .cqe = 1, .channel = -1, .event_fd = -1 };
	struct ib_uverbs_async_event_desc event;
	struct uv_qp_attr qp_attr;
	struct bed bed = { .fd = uv_open() };
	uint32_t cqe;

	target();
	expect_ok(uv_get_context(bed.fd, UV_METHOD, NULL, NULL));
	expect_ok(uv_alloc_pd(bed.fd, UV_INVOKE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, UV_INVOKE, &attr, &bed.cq, &cqe));
	expect_ok(uv_alloc_async_fd(bed.fd, &bed.async_fd));
	qp_attr = uv_qp_attr(bed.pd, bed.cq);
	expect_ok(uv_create_qp(bed.fd, UV_INVOKE, &qp_attr, &bed.qp));
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	flush_to_error(&bed, cqe + 2);
	set_nonblock(bed.async_fd);
	while (read_event(bed.async_fd, &event, sizeof(event)) > 0)
		ck_assert_uint_ne(event.event_type, IBV_EVENT_CQ_ERR);
}
END_TEST

static int mmap_page(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? -errno : 0;
}

START_TEST(test_context_08_mmap_without_context_is_einval)
{
	int fd = uv_open();

	target();
	expect_choice("context-08", mmap_page(fd), EINVAL);
}
END_TEST

START_TEST(test_device_answers_are_the_same_by_every_front)
{
	struct ib_uverbs_query_device_resp first = {}, resp;
	int fd = open_context(NULL);

	expect_ok(uv_query_device(fd, UV_WRITE, &first));
	ck_assert_uint_ge(first.phys_port_cnt, 1);
	ck_assert_uint_ne(first.node_guid, 0);
	for (enum uv_front front = UV_INVOKE; front < UV_METHOD; front++) {
		memset(&resp, 0x5a, sizeof(resp));
		expect_ok(uv_query_device(fd, front, &resp));
		ck_assert_mem_eq(&resp, &first, sizeof(resp));
	}
}
END_TEST

/* An old client has a shorter struct: it gets the beginning, and response_length tells how long that is. */
START_TEST(test_extended_query_of_the_device)
{
	const size_t room = offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps);
	struct ib_uverbs_ex_query_device in = { .comp_mask = 1 };
	struct ib_uverbs_ex_query_device_resp out;
	struct uv_cmd cmd = { UV_EX(QUERY_DEVICE), &in, sizeof(in), &out, sizeof(out) };
	const enum uv_front front = _i ? UV_INVOKE_EX : UV_WRITE_EX;
	int fd = open_context(NULL);

	expect(uv_cmd(fd, front, &cmd), EINVAL);
	in = (struct ib_uverbs_ex_query_device){ .reserved = 1 };
	expect(uv_cmd(fd, front, &cmd), EINVAL);
	in.reserved = 0;
	expect_ok(uv_cmd(fd, front, &cmd));
	ck_assert_uint_eq(out.comp_mask, 0);
	ck_assert_uint_eq(out.response_length, sizeof(out));
	cmd.out_len = room;
	expect_ok(uv_cmd(fd, front, &cmd));
	ck_assert_uint_eq(out.response_length, room);
}
END_TEST

START_TEST(test_port_answers_are_the_same_by_every_front)
{
	struct ib_uverbs_query_port_resp first, resp;
	int fd = open_context(NULL);

	memset(&first, 0, sizeof(first));
	expect_ok(uv_query_port(fd, UV_WRITE, 1, &first));
	ck_assert_uint_eq(first.state, IBV_PORT_ACTIVE);
	memset(&resp, 0, sizeof(resp));
	expect_ok(uv_query_port(fd, UV_INVOKE, 1, &resp));
	ck_assert_mem_eq(&resp, &first, sizeof(resp));
	expect_ok(uv_query_port(fd, UV_METHOD, 1, &resp));
	ck_assert_mem_eq(&resp, &first, sizeof(resp));
}
END_TEST

START_TEST(test_port_01_port_out_of_range_is_einval)
{
	static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };
	struct ib_uverbs_query_device_resp dev = {};
	struct ib_uverbs_query_port_resp resp;
	int fd = open_context(NULL);

	expect_ok(uv_query_device(fd, UV_WRITE, &dev));
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(fronts); i++) {
		expect(uv_query_port(fd, fronts[i], 0, &resp), EINVAL);
		expect(uv_query_port(fd, fronts[i], dev.phys_port_cnt + 1, &resp), EINVAL);
		expect(uv_query_port(fd, fronts[i], 255, &resp), EINVAL);
	}
	expect(uv_query_port(fd, UV_METHOD, 256 + 1, &resp), EINVAL);
}
END_TEST

START_TEST(test_port_01_grh_is_required_on_ethernet_only)
{
	struct ib_uverbs_query_port_resp resp = {};
	int fd = open_context(NULL);

	expect_ok(uv_query_port(fd, UV_WRITE, 1, &resp));
	ck_assert_int_eq(!!(resp.flags & IBV_QPF_GRH_REQUIRED), resp.link_layer == IBV_LINK_LAYER_ETHERNET);
}
END_TEST

/* The core sets the bit for drivers that ask for IP-based GIDs. Neither rxe nor hfi1 does. */
START_TEST(test_port_01_ip_based_gids_bit_is_clear)
{
	struct ib_uverbs_query_port_resp resp = {};
	int fd = open_context(NULL);

	expect_ok(uv_query_port(fd, UV_WRITE, 1, &resp));
	ck_assert_uint_eq(resp.port_cap_flags & (1 << 26), 0);
}
END_TEST

/* QUERY_GID_TABLE with an entry size, a buffer for the entries, and flags. Stores their number in *num. */
static int gid_table(int fd, uint64_t entry_size, void *entries, uint16_t len, uint64_t *num, uint32_t flags)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_size);
	uv_attr_in(&tree, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, &flags, sizeof(flags));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries, len);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, num, sizeof(*num));
	return uv_ioctl(fd, &tree);
}

START_TEST(test_gid_01_table_sizes_and_flags)
{
	struct ib_uverbs_gid_entry entries[64];
	int fd = open_context(NULL);
	uint64_t num;

	expect_ok(gid_table(fd, 32, entries, sizeof(entries), &num, 0));
	ck_assert_uint_ge(num, 1);
	expect(gid_table(fd, 32, entries, sizeof(entries), &num, 1), EINVAL);
	expect(gid_table(fd, 0, entries, sizeof(entries), &num, 0), EINVAL);
	expect(gid_table(fd, 32, entries, 63, &num, 0), EINVAL);
	expect(gid_table(fd, 32, entries, 0, &num, 0), EINVAL);
	if (num > 1)
		expect(gid_table(fd, 32, entries, 32, &num, 0), EINVAL);
	expect(gid_table(fd, 32, uv_guard(NULL, 8), 32 * 16, &num, 0), EFAULT);
}
END_TEST

START_TEST(test_gid_01_more_gids_than_slots_is_einval)
{
	struct ib_uverbs_gid_entry entries[64];
	int fd = open_context(NULL), num = uv_query_gid_table(fd, entries, 64);

	ck_assert_int_ge(num, 1);
	expect(uv_query_gid_table(fd, entries, num), -num);
	if (num > 1)
		expect(uv_query_gid_table(fd, entries, num - 1), EINVAL);
}
END_TEST

START_TEST(test_gid_01_shorter_entries_are_cut_and_longer_ones_zeroed)
{
	struct ib_uverbs_gid_entry real[64];
	uint8_t other[64 * 40];
	int fd = open_context(NULL);
	int num = uv_query_gid_table(fd, real, 64);
	uint64_t n;

	ck_assert_int_ge(num, 1);
	memset(other, 0x5a, sizeof(other));
	expect_ok(gid_table(fd, 16, other, 16 * 64, &n, 0));
	ck_assert_uint_eq(n, num);
	for (int i = 0; i < num; i++)
		ck_assert_mem_eq(other + 16 * i, &real[i], 16);
	memset(other, 0x5a, sizeof(other));
	expect_ok(gid_table(fd, 40, other, 40 * 64, &n, 0));
	for (int i = 0; i < num; i++) {
		ck_assert_mem_eq(other + 40 * i, &real[i], 32);
		ck_assert_mem_eq(other + 40 * i + 32, "\0\0\0\0\0\0\0", 8);
	}
}
END_TEST

START_TEST(test_gid_02_entry_errors)
{
	struct ib_uverbs_query_port_resp port = {};
	struct ib_uverbs_gid_entry gid;
	int fd = open_context(NULL);

	expect_ok(uv_query_port(fd, UV_WRITE, 1, &port));
	expect_ok(uv_query_gid_entry(fd, 1, 0, &gid));
	ck_assert_uint_eq(gid.port_num, 1);
	ck_assert_uint_eq(gid.gid_index, 0);
	expect(uv_query_gid_entry(fd, 0, 0, &gid), EINVAL);
	expect(uv_query_gid_entry(fd, 255, 0, &gid), EINVAL);
	expect(uv_query_gid_entry(fd, 1, port.gid_tbl_len, &gid), EINVAL);
	expect(uv_query_gid_entry(fd, 1, UINT32_MAX, &gid), EINVAL);
	expect(uv_query_gid_entry(fd, 1, port.gid_tbl_len - 1, &gid), ENODATA);
}
END_TEST

START_TEST(test_gid_02_entry_flags_are_einval)
{
	struct ib_uverbs_gid_entry gid;
	int fd = open_context(NULL);
	struct uv_tree tree;
	uint32_t flags = 1;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 0);
	uv_attr_in(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, &flags, sizeof(flags));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &gid, sizeof(gid));
	expect(uv_ioctl(fd, &tree), EINVAL);
}
END_TEST

START_TEST(test_ah_01_bad_port_is_einval_before_the_pd)
{
	struct ib_uverbs_ah_attr attr;
	int fd = open_context(NULL);
	uint32_t pd, ah;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	loopback_ah(fd, &attr);
	expect_ok(uv_create_ah(fd, _i, pd, &attr, &ah));
	expect_ok(uv_destroy_ah(fd, _i, ah));
	expect(uv_create_ah(fd, _i, pd + 77, &attr, &ah), ENOENT);
	attr.port_num = 77;
	expect(uv_create_ah(fd, _i, pd + 77, &attr, &ah), EINVAL);
	attr.port_num = 0;
	expect(uv_create_ah(fd, _i, pd, &attr, &ah), EINVAL);
}
END_TEST

START_TEST(test_ah_01_gid_index_as_in_an_address_vector)
{
	struct ib_uverbs_query_port_resp port = {};
	struct ib_uverbs_ah_attr attr;
	int fd = open_context(NULL);
	uint32_t pd, ah;

	expect_ok(uv_query_port(fd, UV_WRITE, 1, &port));
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	loopback_ah(fd, &attr);
	attr.is_global = 1;
	attr.grh.sgid_index = port.gid_tbl_len < 255 ? port.gid_tbl_len - 1 : 255;
	expect(uv_create_ah(fd, _i, pd, &attr, &ah), ENODATA);
	if (port.gid_tbl_len < 255) {
		attr.grh.sgid_index = port.gid_tbl_len;
		expect(uv_create_ah(fd, _i, pd, &attr, &ah), EINVAL);
	}
	attr.is_global = 0;
	expect_choice("ah-01-no-grh", uv_create_ah(fd, _i, pd, &attr, &ah), EINVAL);
}
END_TEST

START_TEST(test_ah_keeps_its_pd_busy)
{
	struct ib_uverbs_ah_attr attr;
	int fd = open_context(NULL);
	uint32_t pd, ah;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	loopback_ah(fd, &attr);
	expect_ok(uv_create_ah(fd, UV_WRITE, pd, &attr, &ah));
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect_ok(uv_destroy_ah(fd, UV_METHOD, ah));
	expect(uv_destroy_ah(fd, UV_METHOD, ah), ENOENT);
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

TCase *case_context(void)
{
	TCase *tc = tcase_create("context");

	tcase_add_loop_test(tc, test_context_01_create_without_context_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_context_01_query_without_context_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_context_02_lookup_without_context_is_enoent);
	tcase_add_loop_test(tc, test_context_03_second_get_context_is_einval, 0, 9);
	tcase_add_test(tc, test_context_06_get_context_by_method_makes_no_async_fd);
	tcase_add_test(tc, test_context_06_objects_made_before_the_async_file_lose_events);
	add_test_unless("transport", tc, test_context_08_mmap_without_context_is_einval);
	tcase_add_test(tc, test_device_answers_are_the_same_by_every_front);
	tcase_add_loop_test(tc, test_extended_query_of_the_device, 0, 2);
	tcase_add_test(tc, test_port_answers_are_the_same_by_every_front);
	tcase_add_test(tc, test_port_01_port_out_of_range_is_einval);
	tcase_add_test(tc, test_port_01_grh_is_required_on_ethernet_only);
	tcase_add_test(tc, test_port_01_ip_based_gids_bit_is_clear);
	tcase_add_test(tc, test_gid_01_table_sizes_and_flags);
	tcase_add_test(tc, test_gid_01_more_gids_than_slots_is_einval);
	tcase_add_test(tc, test_gid_01_shorter_entries_are_cut_and_longer_ones_zeroed);
	tcase_add_test(tc, test_gid_02_entry_errors);
	tcase_add_test(tc, test_gid_02_entry_flags_are_einval);
	tcase_add_loop_test(tc, test_ah_01_bad_port_is_einval_before_the_pd, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_ah_01_gid_index_as_in_an_address_vector, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_ah_keeps_its_pd_busy);
	return tc;
}
