/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memory of an adapter that has some, with --memory=bounce, and an adapter that has none. */
#include "client.h"
#include "tests/suite.h"

enum { DM_BYTES = 1024, OFFSET = 256, REGION_BYTES = 512, ALIGNMENT = 6 };

/* A region of device memory, and its keys. */
struct region {
	uint32_t handle, lkey, rkey;
};

static const uint32_t rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
static struct client a;
static uint32_t dm;

static void setup_with(uint64_t max_dm_size, enum uvd_memory memory)
{
	client_init(NULL);
	fake.attr.max_dm_size = max_dm_size;
	h.config.memory = memory;
	client_start();
}

static int alloc_dm(uint64_t length, uint32_t alignment, uint32_t *handle)
{
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment));
	ret = uv_ioctl(h.fd, &tree);
	*handle = uv_attr_find(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE)->data;
	return ret;
}

static int free_dm(uint32_t handle)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE);
	uv_attr_obj(&tree, UVERBS_ATTR_FREE_DM_HANDLE, handle);
	return uv_ioctl(h.fd, &tree);
}

static int reg_dm(uint32_t pd, uint64_t offset, uint64_t length, struct region *region)
{
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, sizeof(offset));
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_LENGTH, &length, sizeof(length));
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &rights, sizeof(rights));
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &region->lkey, sizeof(region->lkey));
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &region->rkey, sizeof(region->rkey));
	ret = uv_ioctl(h.fd, &tree);
	region->handle = uv_attr_find(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE)->data;
	return ret;
}

static void setup(void)
{
	setup_with(DM_BYTES, UVD_MEMORY_BOUNCE);
	client_open(&a, h.fd);
	ck_assert_int_eq(alloc_dm(DM_BYTES, ALIGNMENT, &dm), 0);
}

/* A client whose region is the one of device memory: the address in it is an offset. */
static struct client with_region(struct region region)
{
	struct client c = a;

	c.mr.lkey = region.lkey;
	c.mem = NULL;
	return c;
}

static void end_region(const struct region *region)
{
	ck_assert_int_eq(uv_dereg_mr(a.fd, UV_METHOD, region->handle), 0);
}

START_TEST(test_adapter_without_device_memory_is_a_device_without_it)
{
	struct region region;

	client_teardown();
	setup_with(0, UVD_MEMORY_BOUNCE);
	client_open(&a, h.fd);
	ck_assert_int_eq(alloc_dm(DM_BYTES, 0, &dm), -EPROTONOSUPPORT);
	ck_assert_int_eq(reg_dm(a.pd, 0, 1, &region), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(test_device_memory_is_asked_for_and_charged_as_the_client_says)
{
	const uint64_t before = client_bytes();
	const unsigned int rings = client_device()->rings;
	const int objects = fake.objects;
	uint32_t other;

	ck_assert_uint_eq(fake.dm_request.length, DM_BYTES);
	ck_assert_uint_eq(fake.dm_request.log_align_req, ALIGNMENT);
	ck_assert_uint_eq(fake.dm_request.comp_mask, 0);
	ck_assert_int_eq(alloc_dm(1 << 20, 0, &other), 0);
	ck_assert_uint_ge(client_bytes(), before + (1 << 20));
	ck_assert_uint_eq(client_device()->rings, rings + 1);
	ck_assert_int_eq(free_dm(other), 0);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
	ck_assert_int_eq(fake.objects, objects);
}
END_TEST

START_TEST(test_device_memory_that_the_adapter_refuses_has_its_errno_and_costs_nothing)
{
	const uint64_t before = client_bytes();
	const unsigned int rings = client_device()->rings;
	uint32_t other;

	fake.result[FAKE_ALLOC_DM] = ENOSPC;
	ck_assert_int_eq(alloc_dm(DM_BYTES, 0, &other), -ENOSPC);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
	fake.result[FAKE_FREE_DM] = EBUSY;
	ck_assert_int_eq(free_dm(dm), -EBUSY);
	ck_assert_uint_eq(client_bytes(), before);
	fake.result[FAKE_FREE_DM] = 0;
	ck_assert_int_eq(free_dm(dm), 0);
	ck_assert_uint_eq(client_device()->rings, rings - 1);
}
END_TEST

START_TEST(test_region_of_device_memory_is_the_adapters_own)
{
	struct region region;

	ck_assert_int_eq(reg_dm(a.pd, OFFSET, REGION_BYTES, &region), 0);
	ck_assert_uint_eq(fake.dm_region.offset, OFFSET);
	ck_assert_uint_eq(fake.dm_region.length, REGION_BYTES);
	ck_assert_uint_eq(fake.dm_region.access, rights);
	ck_assert_uint_eq(region.lkey, region.rkey);
	ck_assert_uint_lt(region.lkey, UINT32_C(1) << 16);
	ck_assert_int_eq(free_dm(dm), -EBUSY);
	end_region(&region);
	ck_assert_int_eq(free_dm(dm), 0);
}
END_TEST

START_TEST(test_region_that_the_adapter_refuses_has_its_errno_and_stays_if_it_does_not_end)
{
	const uint64_t before = client_bytes();
	struct region region;

	fake.result[FAKE_REG_DM_MR] = ENOSPC;
	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &region), -ENOSPC);
	ck_assert_uint_eq(client_bytes(), before);
	fake.result[FAKE_REG_DM_MR] = 0;
	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &region), 0);
	fake.result[FAKE_DEREG_MR] = EBUSY;
	ck_assert_int_eq(uv_dereg_mr(a.fd, UV_METHOD, region.handle), -EBUSY);
	fake.result[FAKE_DEREG_MR] = 0;
	end_region(&region);
	ck_assert_uint_eq(client_bytes(), before);
}
END_TEST

/* Nothing is copied: the adapter gets the client's own entry. */
START_TEST(test_requests_reach_device_memory_although_data_of_clients_is_copied)
{
	char text[] = "in device memory", out[sizeof(text)] = "";
	struct region region;
	struct client c;

	ck_assert_int_eq(reg_dm(a.pd, OFFSET, REGION_BYTES, &region), 0);
	c = with_region(region);
	ck_assert_int_eq(client_read(&c, 1, 8, sizeof(text), text), 0);
	client_expect(&c, 1);
	ck_assert_str_eq(fake.dm + OFFSET + 8, text);
	ck_assert_int_eq(client_write(&c, 2, 8, sizeof(text), out), 0);
	client_expect(&c, 2);
	ck_assert_str_eq(out, text);
	ck_assert_int_eq(client_recv(&c, 3, 64, sizeof(text)), 0);
	ck_assert_int_eq(client_send(&c, 4, 8, sizeof(text), IBV_SEND_SIGNALED), 0);
	client_expect(&c, 3);
	client_expect(&c, 4);
	ck_assert_str_eq(fake.dm + OFFSET + 64, text);
}
END_TEST

static int write_two(const struct client *c, struct ib_uverbs_sge first, struct ib_uverbs_sge second, void *remote)
{
	const struct ib_uverbs_send_wr wr = { .wr_id = 9,
					      .num_sge = 2,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = IBV_SEND_SIGNALED,
					      .wr.rdma.remote_addr = (uintptr_t)remote };
	const struct ib_uverbs_sge sges[] = { first, second };

	return uv_post_send(c->fd, UV_WRITE, c->qp.handle, &wr, 1, sges, 2, NULL);
}

/*
 * A key of the engine's buffers beside one of device memory would reach the buffers. So the engine takes such a request
 * for one that is copied, and knows neither key.
 */
START_TEST(test_request_with_other_keys_than_those_of_device_memory_is_refused_by_the_adapter)
{
	struct ib_uverbs_sge in_dm = { .length = 8 }, other = { .length = 8, .lkey = a.mr.lkey };
	char out[16] = "unchanged";
	struct ib_uverbs_wc wc;
	struct region region;

	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &region), 0);
	in_dm.lkey = region.lkey;
	other.addr = (uintptr_t)a.mem;
	ck_assert_int_eq(write_two(&a, in_dm, other, out), 0);
	ck_assert_int_eq(client_poll(&a, &wc), 1);
	ck_assert_uint_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_str_eq(out, "unchanged");
}
END_TEST

START_TEST(test_region_of_another_pd_is_not_reached)
{
	char text[] = "text";
	struct ib_uverbs_wc wc;
	struct region region;
	struct client c;
	uint32_t pd;

	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(reg_dm(pd, 0, REGION_BYTES, &region), 0);
	c = with_region(region);
	ck_assert_int_eq(client_write(&c, 1, 0, 4, text), 0);
	ck_assert_int_eq(client_poll(&c, &wc), 1);
	ck_assert_uint_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_str_eq(text, "text");
}
END_TEST

START_TEST(test_region_that_has_ended_is_not_reached)
{
	char text[] = "text";
	struct ib_uverbs_wc wc;
	struct region region, other;
	struct client c;

	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &region), 0);
	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &other), 0);
	end_region(&region);
	c = with_region(region);
	ck_assert_int_eq(client_write(&c, 1, 0, 4, text), 0);
	ck_assert_int_eq(client_poll(&c, &wc), 1);
	ck_assert_uint_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	end_region(&other);
}
END_TEST

START_TEST(test_device_memory_does_not_depend_on_memory)
{
	struct region region;

	client_teardown();
	setup_with(DM_BYTES, UVD_MEMORY_REFUSE);
	ck_assert_int_eq(uv_get_context(h.fd, UV_METHOD, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &a.pd), 0);
	ck_assert_int_eq(alloc_dm(DM_BYTES, 0, &dm), 0);
	ck_assert_int_eq(reg_dm(a.pd, 0, DM_BYTES, &region), 0);
}
END_TEST

/* client_teardown() checks that nothing stays on the adapter: it frees no memory that has regions. */
START_TEST(test_device_memory_of_a_client_that_ends_leaves_after_its_regions)
{
	struct region region;

	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &region), 0);
	harness_close_file(&h);
	ck_assert_uint_eq(client_bytes(), 0);
	ck_assert_uint_eq(client_device()->rings, 0);
}
END_TEST

START_TEST(test_dead_adapter_is_eio_and_device_memory_can_be_freed)
{
	const int fd = client_async_fd(&a);
	struct region region, none;
	uint32_t other;

	ck_assert_int_eq(reg_dm(a.pd, 0, REGION_BYTES, &region), 0);
	fake_device_fatal();
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_DEVICE_FATAL);
	ck_assert_int_eq(alloc_dm(DM_BYTES, 0, &other), -EIO);
	ck_assert_int_eq(reg_dm(a.pd, 0, 1, &none), -EIO);
	end_region(&region);
	ck_assert_int_eq(free_dm(dm), 0);
	close(fd);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("dm");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_adapter_without_device_memory_is_a_device_without_it);
	tcase_add_test(t, test_device_memory_is_asked_for_and_charged_as_the_client_says);
	tcase_add_test(t, test_device_memory_that_the_adapter_refuses_has_its_errno_and_costs_nothing);
	tcase_add_test(t, test_region_of_device_memory_is_the_adapters_own);
	tcase_add_test(t, test_region_that_the_adapter_refuses_has_its_errno_and_stays_if_it_does_not_end);
	tcase_add_test(t, test_requests_reach_device_memory_although_data_of_clients_is_copied);
	tcase_add_test(t, test_request_with_other_keys_than_those_of_device_memory_is_refused_by_the_adapter);
	tcase_add_test(t, test_region_of_another_pd_is_not_reached);
	tcase_add_test(t, test_region_that_has_ended_is_not_reached);
	tcase_add_test(t, test_device_memory_does_not_depend_on_memory);
	tcase_add_test(t, test_device_memory_of_a_client_that_ends_leaves_after_its_regions);
	tcase_add_test(t, test_dead_adapter_is_eio_and_device_memory_can_be_freed);
	return run_suite("the verbs backend with a fake adapter: device memory", t);
}
