/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions: which memory can be registered, and how it is charged to RLIMIT_MEMLOCK. */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "abi.h"

enum { PAGE = 4096, MW_BIND = IBV_ACCESS_MW_BIND, RW = IBV_ACCESS_LOCAL_WRITE };
enum {
	REREG_TRANS = IBV_REREG_MR_CHANGE_TRANSLATION,
	REREG_PD = IBV_REREG_MR_CHANGE_PD,
	REREG_ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
};

static void *memory(void)
{
	return uv_pages(64 * PAGE, PROT_READ | PROT_WRITE);
}

/* Returns an open file with a context and a PD. */
static int with_pd(uint32_t *pd)
{
	int fd = open_context(NULL);

	expect_ok(uv_alloc_pd(fd, UV_WRITE, pd));
	return fd;
}

START_TEST(test_umem_01_wrapping_range_is_einval)
{
	uint32_t pd;
	int fd = with_pd(&pd);

	expect(uv_reg_mr_at(fd, _i, pd, UINT64_MAX - 0xfff, 0x2000, UINT64_MAX - 0xfff, RW, NULL), EINVAL);
	expect(uv_reg_mr_at(fd, _i, pd, PAGE, UINT64_MAX, PAGE, RW, NULL), EINVAL);
	/* Address plus length fits in 64 bits; rounded up to a page it does not. */
	expect(uv_reg_mr_at(fd, _i, pd, UINT64_MAX - 0xfff, 0xff0, UINT64_MAX - 0xfff, RW, NULL), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

struct asked {
	void *addr;
	size_t len;
	unsigned int access;
};

static int register_one(void *arg)
{
	struct asked *a = arg;
	uint32_t pd;
	int fd = with_pd(&pd);

	return uv_reg_mr(fd, UV_WRITE, pd, a->addr, a->len, a->access, NULL);
}

START_TEST(test_umem_02_no_memlock_at_all_is_eperm)
{
	struct asked a = { memory(), PAGE, RW };

	target();
	expect(uv_as_nobody(0, register_one, &a), EPERM);
	expect_ok(uv_as_nobody(PAGE, register_one, &a));
}
END_TEST

START_TEST(test_umem_04_no_pages_is_einval)
{
	uint8_t *mem = memory();
	uint32_t pd;
	int fd = with_pd(&pd);

	expect(uv_reg_mr(fd, _i, pd, mem, 0, RW, NULL), EINVAL);
	expect_ok(uv_reg_mr(fd, _i, pd, mem + 8, 0, RW, NULL)); /* an empty range within a page counts as one page */
}
END_TEST

START_TEST(test_umem_04_more_pages_than_an_int_is_einval)
{
	uint32_t pd;
	int fd = with_pd(&pd);

	expect(uv_reg_mr_at(fd, _i, pd, PAGE, 1ull << 45, PAGE, RW, NULL), EINVAL);
}
END_TEST

static int fill_the_limit(void *arg)
{
	uint8_t *mem = arg;
	struct uv_mr mr[4];
	uint32_t pd;
	int fd = with_pd(&pd);

	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem, 4 * PAGE, RW, &mr[0]));
	expect_ok(uv_reg_mr(fd, UV_INVOKE, pd, mem, 2 * PAGE, 0, &mr[1])); /* the same pages count again */
	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem + PAGE - 1, 2, RW, &mr[2])); /* two bytes on two pages: 8 */
	expect(uv_reg_mr(fd, UV_WRITE, pd, mem, 1, RW, &mr[3]), ENOMEM);
	expect(uv_reg_mr(fd, UV_INVOKE, pd, mem, 1, RW, &mr[3]), ENOMEM);
	expect_ok(uv_dereg_mr(fd, UV_METHOD, mr[2].handle));
	expect(uv_reg_mr(fd, UV_WRITE, pd, mem, 2 * PAGE + 1, RW, &mr[3]), ENOMEM);
	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem, 2 * PAGE, RW, &mr[3])); /* what was refused was not charged */
	return 0;
}

START_TEST(test_umem_05_pages_are_counted_against_memlock)
{
	target();
	expect_ok(uv_as_nobody(8 * PAGE, fill_the_limit, memory()));
	expect_ok(uv_as_nobody(8 * PAGE + PAGE - 1, fill_the_limit, memory())); /* the limit is rounded down to pages */
}
END_TEST

static int two_files(void *arg)
{
	uint32_t pd[2];
	int fd[2] = { with_pd(&pd[0]), with_pd(&pd[1]) };

	expect_ok(uv_reg_mr(fd[0], UV_WRITE, pd[0], arg, 4 * PAGE, RW, NULL));
	return uv_reg_mr(fd[1], UV_WRITE, pd[1], arg, 5 * PAGE, RW, NULL);
}

START_TEST(test_umem_05_the_account_is_the_process_and_not_the_open_file)
{
	target();
	expect(uv_as_nobody(8 * PAGE, two_files, memory()), ENOMEM);
}
END_TEST

START_TEST(test_umem_05_cap_ipc_lock_has_no_limit)
{
	struct asked a = { memory(), 32 * PAGE, RW };
	struct rlimit before, few;
	uint32_t pd;
	int fd = with_pd(&pd);

	if (geteuid())
		SKIP("only root has CAP_IPC_LOCK");
	ck_assert(!getrlimit(RLIMIT_MEMLOCK, &before));
	few = (struct rlimit){ .rlim_cur = 8 * PAGE, .rlim_max = before.rlim_max };
	ck_assert(!setrlimit(RLIMIT_MEMLOCK, &few));
	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, a.addr, a.len, a.access, NULL));
	ck_assert(!setrlimit(RLIMIT_MEMLOCK, &before));
}
END_TEST

struct shared_file {
	int fd;
	uint32_t pd, mr;
	void *mem;
};

static int child_registers(void *arg)
{
	struct shared_file *f = arg;

	return uv_reg_mr(f->fd, UV_INVOKE, f->pd, f->mem, 8 * PAGE, RW, NULL);
}

static int child_deregisters(void *arg)
{
	struct shared_file *f = arg;

	return uv_dereg_mr(f->fd, UV_INVOKE, f->mr);
}

static int parent_of_umem_06(void *mem)
{
	struct shared_file f = { .mem = mem };
	struct uv_mr mr;

	f.fd = with_pd(&f.pd);
	expect_ok(uv_reg_mr(f.fd, UV_WRITE, f.pd, mem, 8 * PAGE, RW, &mr));
	f.mr = mr.handle;
	expect(uv_reg_mr(f.fd, UV_WRITE, f.pd, mem, PAGE, RW, &mr), ENOMEM);
	expect_ok(uv_in_child(child_registers, &f)); /* another mm, another account */
	expect(uv_reg_mr(f.fd, UV_WRITE, f.pd, mem, PAGE, RW, &mr), ENOMEM);
	expect_ok(uv_in_child(child_deregisters, &f)); /* credits us, not the child */
	return uv_reg_mr(f.fd, UV_WRITE, f.pd, mem, 8 * PAGE, RW, &mr);
}

START_TEST(test_umem_06_the_charge_is_the_registering_mm_s_whoever_deregisters)
{
	target();
	expect_ok(uv_as_nobody(8 * PAGE, parent_of_umem_06, memory()));
}
END_TEST

static int fault_then_fill(void *arg)
{
	uint8_t *hole = uv_pages(8 * PAGE, PROT_READ | PROT_WRITE);
	uint32_t pd;
	int fd = with_pd(&pd);

	munmap(hole + 4 * PAGE, PAGE);
	expect(uv_reg_mr(fd, UV_WRITE, pd, hole, 8 * PAGE, RW, NULL), EFAULT);
	expect(uv_reg_mr_at(fd, UV_WRITE, pd, PAGE, PAGE, PAGE, RW, NULL), EFAULT);
	return uv_reg_mr(fd, UV_WRITE, pd, arg, 8 * PAGE, RW, NULL);
}

START_TEST(test_umem_07_unmapped_memory_is_efault_and_not_charged)
{
	target();
	expect_ok(uv_as_nobody(8 * PAGE, fault_then_fill, memory()));
}
END_TEST

START_TEST(test_umem_08_read_only_mapping_takes_read_only_access)
{
	void *mem = uv_pages(PAGE, PROT_READ);
	uint32_t pd;
	int fd = with_pd(&pd);

	expect_ok(uv_reg_mr(fd, _i, pd, mem, PAGE, 0, NULL));
	expect_ok(uv_reg_mr(fd, _i, pd, mem, PAGE, IBV_ACCESS_REMOTE_READ, NULL));
	expect(uv_reg_mr(fd, _i, pd, mem, PAGE, RW, NULL), EFAULT);
}
END_TEST

START_TEST(test_umem_09_window_binding_counts_as_writing)
{
	void *mem = uv_pages(PAGE, PROT_READ);
	uint32_t pd;
	int fd = with_pd(&pd);

	expect(uv_reg_mr(fd, _i, pd, mem, PAGE, MW_BIND, NULL), EFAULT);
	expect_ok(uv_reg_mr(fd, _i, pd, memory(), PAGE, MW_BIND, NULL));
}
END_TEST

START_TEST(test_mr_01_offset_in_the_page_must_match)
{
	uint8_t *mem = memory();
	uint32_t pd;
	int fd = with_pd(&pd);

	expect(uv_reg_mr_at(fd, _i, pd, (uintptr_t)mem, PAGE, 8, RW, NULL), EINVAL);
	expect(uv_reg_mr_at(fd, _i, pd + 77, (uintptr_t)mem, PAGE, 8, RW, NULL), EINVAL); /* before the PD */
	expect_ok(uv_reg_mr_at(fd, _i, pd, (uintptr_t)mem + 8, PAGE, 8, RW, NULL));
	expect_ok(uv_reg_mr_at(fd, _i, pd, (uintptr_t)mem, PAGE, 0, RW, NULL));
}
END_TEST

START_TEST(test_mr_02_access_flags)
{
	static const unsigned int bad[] = {
		IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		1 << 10,
		1 << 19,
		1 << 30,
		1u << 31,
	};
	static const unsigned int good[] = {
		0,
		IBV_ACCESS_REMOTE_READ,
		RW | IBV_ACCESS_REMOTE_WRITE,
		RW | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_RELAXED_ORDERING,
		IB_UVERBS_ACCESS_OPTIONAL_RANGE | RW, /* bits 20 to 29, which drivers may ignore */
	};
	void *mem = memory();
	uint32_t pd;
	int fd = with_pd(&pd);

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(bad); i++)
		expect(uv_reg_mr(fd, _i, pd, mem, PAGE, bad[i], NULL), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 1);
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(good); i++)
		expect_ok(uv_reg_mr(fd, _i, pd, mem, PAGE, good[i], NULL));
}
END_TEST

/* Each call has two errors. The errno shows which one is checked first. */
START_TEST(test_reg_mr_checks_in_the_kernels_order)
{
	uint8_t *mem = memory();
	const uint64_t at = (uintptr_t)mem;
	uint32_t pd, cq;
	int fd = with_pd(&pd);

	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	expect(uv_reg_mr_at(fd, _i, 77, at, PAGE, at + 1, RW, NULL), EINVAL);
	expect(uv_reg_mr(fd, _i, 77, mem, PAGE, IBV_ACCESS_REMOTE_WRITE, NULL), EINVAL);
	expect(uv_reg_mr(fd, _i, 77, mem, UINT64_MAX, RW, NULL), ENOENT);
	expect(uv_reg_mr(fd, _i, cq, mem, PAGE, RW, NULL), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 2);
}
END_TEST

/* EINVAL as in Linux 6.1, which we follow. Later kernels return EOPNOTSUPP. */
START_TEST(test_mr_03_on_demand_without_the_device_is_einval)
{
	uint32_t pd;
	int fd = with_pd(&pd);

	expect_choice("mr-03-on-demand", uv_reg_mr(fd, _i, pd, memory(), PAGE, IBV_ACCESS_ON_DEMAND | RW, NULL),
		      EINVAL);
}
END_TEST

static int rereg(int fd, enum uv_front front, struct ib_uverbs_rereg_mr cmd, struct ib_uverbs_rereg_mr_resp *resp)
{
	struct ib_uverbs_rereg_mr_resp unused;

	return uv_cmd(fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), resp ? resp : &unused,
					sizeof(*resp) });
}

/* A change to 2 pages at addr, with local write access. */
static struct ib_uverbs_rereg_mr rereg_cmd(uint32_t mr, uint32_t pd, uint32_t flags, const void *addr)
{
	return (struct ib_uverbs_rereg_mr){ .mr_handle = mr,
					    .flags = flags,
					    .start = (uintptr_t)addr,
					    .length = 2 * PAGE,
					    .hca_va = (uintptr_t)addr,
					    .pd_handle = pd,
					    .access_flags = RW };
}

START_TEST(test_mr_04_rereg)
{
	struct ib_uverbs_rereg_mr cmd;
	uint8_t *mem = memory();
	uint32_t pd, cq;
	int fd = with_pd(&pd);
	struct uv_mr mr;

	if (choice("no-rereg")) {
		expect(rereg(fd, _i, rereg_cmd(0, pd, 1, mem), NULL), EOPNOTSUPP);
		return;
	}
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem, PAGE, RW, &mr));
	/* The command's own fields are checked before any look-up. */
	expect(rereg(fd, _i, rereg_cmd(99, 98, 0, mem), NULL), EINVAL);
	expect(rereg(fd, _i, rereg_cmd(99, 98, 8, mem), NULL), EOPNOTSUPP);
	cmd = rereg_cmd(99, 98, REREG_TRANS | 8, mem);
	cmd.hca_va++;
	expect(rereg(fd, _i, cmd, NULL), EOPNOTSUPP);
	cmd.flags = REREG_TRANS;
	expect(rereg(fd, _i, cmd, NULL), EINVAL);
	/* Then come, in this order, the region, the access flags and the PD. */
	cmd = rereg_cmd(99, 98, REREG_ACCESS | REREG_PD, mem);
	cmd.access_flags = IBV_ACCESS_REMOTE_WRITE;
	expect(rereg(fd, _i, cmd, NULL), ENOENT);
	cmd.mr_handle = pd;
	expect(rereg(fd, _i, cmd, NULL), EINVAL);
	cmd.mr_handle = mr.handle;
	expect(rereg(fd, _i, cmd, NULL), EINVAL);
	cmd.access_flags = RW;
	expect(rereg(fd, _i, cmd, NULL), ENOENT);
	cmd.pd_handle = cq;
	expect(rereg(fd, _i, cmd, NULL), EINVAL);
	cmd.pd_handle = pd; /* the PD that it has: no change */
	expect_ok(rereg(fd, _i, cmd, NULL));
	ck_assert_uint_eq(next_handle(fd), 3);
}
END_TEST

/* A rule of Linux 6.12. In 6.1 each driver with REREG_MR decides whether it pins the memory anew or refuses. */
START_TEST(test_mr_05_rereg_for_writing_of_memory_taken_for_reading_is_eacces)
{
	struct ib_uverbs_rereg_mr cmd;
	uint8_t *mem = memory();
	uint32_t pd;
	int fd = with_pd(&pd);
	struct uv_mr mr;

	if (choice("no-rereg"))
		SKIP("the device has no REREG_MR");
	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem, PAGE, 0, &mr));
	expect(rereg(fd, _i, rereg_cmd(mr.handle, pd, REREG_ACCESS, mem), NULL), EACCES);
	cmd = rereg_cmd(mr.handle, pd, REREG_ACCESS, mem);
	cmd.access_flags = MW_BIND;
	expect(rereg(fd, _i, cmd, NULL), EACCES);
	cmd.access_flags = IBV_ACCESS_REMOTE_READ;
	expect_ok(rereg(fd, _i, cmd, NULL));
	expect_ok(rereg(fd, _i, rereg_cmd(mr.handle, pd, REREG_ACCESS | REREG_TRANS, mem), NULL));
	expect_ok(rereg(fd, _i, rereg_cmd(mr.handle, pd, REREG_ACCESS, mem), NULL));
}
END_TEST

/* With a new translation the driver makes a new MR: it has new keys, but keeps the old handle. */
START_TEST(test_handle_12_rereg_keeps_the_number)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	uint8_t *mem = memory();
	uint32_t pd;
	int fd = with_pd(&pd);
	struct uv_mr mr;

	if (choice("no-rereg"))
		SKIP("the device has no REREG_MR");
	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem, PAGE, RW, &mr));
	expect_ok(rereg(fd, _i, rereg_cmd(mr.handle, pd, REREG_TRANS, mem + 4 * PAGE), &resp));
	ck_assert_uint_ne(resp.lkey, mr.lkey);
	ck_assert_uint_eq(next_handle(fd), 2);
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect_ok(uv_dereg_mr(fd, UV_WRITE, mr.handle));
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

/*
 * REREG_MR charges the new pages before it credits the old ones. Within 4 pages a region of 2 can be moved any number
 * of times, but with 1 more page registered it no longer can.
 */
static int rereg_within_4_pages(void *arg)
{
	uint8_t *mem = arg;
	uint32_t pd;
	int fd = with_pd(&pd), ret = 0;
	struct uv_mr mr;

	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, mem, 2 * PAGE, RW, &mr));
	for (int i = 1; i < 8 && !ret; i++)
		ret = rereg(fd, UV_WRITE, rereg_cmd(mr.handle, pd, REREG_TRANS, mem + i * PAGE), NULL);
	if (ret)
		return ret;
	ret = uv_reg_mr(fd, UV_WRITE, pd, mem, PAGE, RW, NULL);
	return ret ? ret : rereg(fd, UV_WRITE, rereg_cmd(mr.handle, pd, REREG_TRANS, mem), NULL);
}

START_TEST(test_umem_05_rereg_is_charged_beside_what_it_replaces)
{
	target();
	if (!choice("no-rereg"))
		expect(uv_as_nobody(4 * PAGE, rereg_within_4_pages, memory()), ENOMEM);
}
END_TEST

START_TEST(test_mr_06_dmabuf_without_the_driver_is_eopnotsupp)
{
	uint64_t zero = 0;
	struct uv_tree tree;
	uint32_t pd, lkey, rkey;
	int fd = with_pd(&pd);

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &zero, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &zero, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &zero, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DMABUF_MR_FD, &zero, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &lkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &rkey, 4);
	expect(uv_ioctl(fd, &tree), EOPNOTSUPP);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

static int advise(int fd, uint32_t pd, uint64_t advice, uint32_t flags, const void *list, uint16_t len)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);
	uv_attr_obj(&tree, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd);
	uv_attr_const(&tree, UVERBS_ATTR_ADVISE_MR_ADVICE, advice);
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_FLAGS, &flags, sizeof(flags));
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_SGE_LIST, list, len);
	return uv_ioctl(fd, &tree);
}

/* If the driver has no advise_mr, every call is EOPNOTSUPP, whatever its arguments. */
START_TEST(test_mr_08_advise)
{
	struct ib_uverbs_sge sge[2] = {};
	uint32_t pd;
	int fd = with_pd(&pd);

	expect_choice("mr-08", advise(fd, pd, 0, 0x80, sge, sizeof(sge)), EOPNOTSUPP);
	expect_choice("mr-08", advise(fd, pd, 0, 0, sge, 24), EOPNOTSUPP);
	expect_choice("mr-08", advise(fd, pd, 1ull << 32, 0, sge, sizeof(sge)), EOPNOTSUPP);
	expect(advise(fd, pd, 99, 0, sge, sizeof(sge)), EOPNOTSUPP); /* the driver's errno for unknown advice */
}
END_TEST

START_TEST(test_mr_09_query_mr_with_and_without_iova)
{
	uint8_t *mem = memory();
	struct uv_mr mr;
	struct uv_tree tree;
	uint64_t length = 0, iova = 0;
	uint32_t pd, lkey = 0, rkey = 0;
	int fd = with_pd(&pd);

	expect_ok(uv_reg_mr_at(fd, UV_WRITE, pd, (uintptr_t)mem + 24, 5000, 0x7000018, RW, &mr));
	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	uv_attr_obj(&tree, UVERBS_ATTR_QUERY_MR_HANDLE, mr.handle);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, 4);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, 8);
	expect_ok(uv_ioctl(fd, &tree));
	ck_assert_uint_eq(lkey, mr.lkey);
	ck_assert_uint_eq(rkey, mr.rkey);
	ck_assert_uint_eq(length, 5000);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, 8);
	expect_ok(uv_ioctl(fd, &tree));
	ck_assert_uint_eq(iova, 0x7000018);
}
END_TEST

START_TEST(test_mr_keeps_its_pd_busy)
{
	struct uv_mr mr;
	uint32_t pd;
	int fd = with_pd(&pd);

	expect_ok(uv_reg_mr(fd, UV_WRITE, pd, memory(), PAGE, RW, &mr));
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect_ok(uv_dereg_mr(fd, UV_METHOD, mr.handle));
	expect_ok(uv_dealloc_pd(fd, UV_METHOD, pd));
}
END_TEST

TCase *case_mr(void)
{
	TCase *tc = tcase_create("mr");

	tcase_add_loop_test(tc, test_umem_01_wrapping_range_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_umem_02_no_memlock_at_all_is_eperm);
	tcase_add_loop_test(tc, test_umem_04_no_pages_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_umem_04_more_pages_than_an_int_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_umem_05_pages_are_counted_against_memlock);
	tcase_add_test(tc, test_umem_05_the_account_is_the_process_and_not_the_open_file);
	tcase_add_test(tc, test_umem_05_cap_ipc_lock_has_no_limit);
	add_test_unless("fork", tc, test_umem_06_the_charge_is_the_registering_mm_s_whoever_deregisters);
	tcase_add_test(tc, test_umem_07_unmapped_memory_is_efault_and_not_charged);
	tcase_add_loop_test(tc, test_umem_08_read_only_mapping_takes_read_only_access, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_umem_09_window_binding_counts_as_writing, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_mr_01_offset_in_the_page_must_match, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_mr_02_access_flags, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_reg_mr_checks_in_the_kernels_order, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_mr_03_on_demand_without_the_device_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_mr_04_rereg, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_mr_05_rereg_for_writing_of_memory_taken_for_reading_is_eacces, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_handle_12_rereg_keeps_the_number, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_umem_05_rereg_is_charged_beside_what_it_replaces);
	tcase_add_test(tc, test_mr_06_dmabuf_without_the_driver_is_eopnotsupp);
	tcase_add_test(tc, test_mr_08_advise);
	tcase_add_test(tc, test_mr_09_query_mr_with_and_without_iova);
	tcase_add_test(tc, test_mr_keeps_its_pd_busy);
	return tc;
}
