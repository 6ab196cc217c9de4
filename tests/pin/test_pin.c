/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rules umem-01 to umem-10. With UVD_ORACLE=1 and an RDMA device, the table of ranges is first checked against the real
 * kernel by ibv_reg_mr(). Linux 6.1 with rxe agreed with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/client/child.h"
#include "client/client.h"
#include "explain/explain.h"
#include "pin/pin.h"
#include "pin/internal.h"

#define PAGE 4096ul
#define AT(p) ((uint64_t)(uintptr_t)(p))
#define RW (PROT_READ | PROT_WRITE)

/* ---- ranges that the kernel accepts ------------------------------------------------------------------------------ */

struct range {
	const char *what;
	uint64_t addr, length;
	int read, write; /* the result of a registration for reading, and for writing */
};

#define RANGES 32
static struct range ranges[RANGES];
static unsigned int num_ranges;

static void range(const char *what, void *p, uint64_t length, int read, int write)
{
	ck_assert(p != MAP_FAILED);
	ck_assert_uint_lt(num_ranges, RANGES);
	ranges[num_ranges++] = (struct range){ what, AT(p), length, read, write };
}

static void *map(int prot, int flags, int fd)
{
	return mmap(NULL, 4 * PAGE, prot, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
}

static void anonymous_ranges(void)
{
	char *p;

	range("private rw", map(RW, MAP_PRIVATE, -1), 4 * PAGE, 0, 0);
	range("private r", map(PROT_READ, MAP_PRIVATE, -1), 4 * PAGE, 0, -EFAULT);
	range("private none", map(PROT_NONE, MAP_PRIVATE, -1), 4 * PAGE, 0, -EFAULT);
	range("private w", map(PROT_WRITE, MAP_PRIVATE, -1), 4 * PAGE, 0, 0);
	range("shared rw", map(RW, MAP_SHARED, -1), 4 * PAGE, 0, 0);
	range("shared r", map(PROT_READ, MAP_SHARED, -1), 4 * PAGE, -EFAULT, -EFAULT);
	range("shared none", map(PROT_NONE, MAP_SHARED, -1), 4 * PAGE, -EFAULT, -EFAULT);
	p = map(RW, MAP_PRIVATE, -1);
	munmap(p + PAGE, PAGE);
	range("hole", p, 4 * PAGE, -EFAULT, -EFAULT);
	range("up to the hole", p, PAGE, 0, 0);
	range("one byte into the hole", p + 1, PAGE, -EFAULT, -EFAULT);
	range("no bytes of a page", p + 1, 0, 0, 0);
	range("no bytes of a hole", p + PAGE + 1, 0, -EFAULT, -EFAULT);
	p = map(RW, MAP_PRIVATE, -1);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	range("r in the middle of rw", p, 4 * PAGE, 0, -EFAULT);
	range("beyond the user's addresses", (void *)0xffff888000000000ul, PAGE, -EFAULT, -EFAULT);
	range("address 0", NULL, PAGE, -EFAULT, -EFAULT);
	range("far into nothing", p, 1ull << 40, -EFAULT, -EFAULT);
	range("beyond the last address", p, -AT(p) + PAGE, -EFAULT, -EFAULT);
}

static void file_ranges(void)
{
	char path[] = "/tmp/uvd-range-XXXXXX";
	int rw = mkstemp(path), ro = open(path, O_RDONLY | O_CLOEXEC), shm = memfd_create("shm", MFD_CLOEXEC);

	unlink(path);
	ck_assert(!ftruncate(rw, 2 * PAGE + 10) && !ftruncate(shm, 4 * PAGE));
	range("file private rw", map(RW, MAP_PRIVATE, rw), 3 * PAGE, 0, 0);
	range("file private rw, beyond its end", map(RW, MAP_PRIVATE, rw), 4 * PAGE, -EFAULT, -EFAULT);
	range("file private r", map(PROT_READ, MAP_PRIVATE, ro), 3 * PAGE, 0, -EFAULT);
	range("file private r, beyond its end", map(PROT_READ, MAP_PRIVATE, ro), 4 * PAGE, -EFAULT, -EFAULT);
	range("file private none", map(PROT_NONE, MAP_PRIVATE, ro), 3 * PAGE, 0, -EFAULT);
	range("file private none, beyond its end", map(PROT_NONE, MAP_PRIVATE, ro), 4 * PAGE, -EFAULT, -EFAULT);
	range("file shared rw", map(RW, MAP_SHARED, rw), 3 * PAGE, 0, 0);
	range("file shared rw, beyond its end", map(RW, MAP_SHARED, rw), 4 * PAGE, -EFAULT, -EFAULT);
	range("file shared r", map(PROT_READ, MAP_SHARED, ro), 3 * PAGE, -EFAULT, -EFAULT);
	range("memfd shared rw", map(RW, MAP_SHARED, shm), 4 * PAGE, 0, 0);
	range("memfd shared r", map(PROT_READ, MAP_SHARED, shm), 4 * PAGE, -EFAULT, -EFAULT);
	range("memfd private r", map(PROT_READ, MAP_PRIVATE, shm), 4 * PAGE, 0, -EFAULT);
	range("program text", (void *)(uintptr_t)uvd_pin, 16, 0, -EFAULT);
	range("vdso", (void *)getauxval(AT_SYSINFO_EHDR), PAGE, 0, -EFAULT);
	range("vvar", (void *)(getauxval(AT_SYSINFO_EHDR) - 4 * PAGE), PAGE, -EFAULT, -EFAULT);
}

static void idle(void *arg)
{
	tell(0);
	listen_for_order();
}

static void make_ranges(void)
{
	num_ranges = 0;
	anonymous_ranges();
	file_ranges();
}

/* _i: bit 0: 0 PROCMAP_QUERY, 1 the text of maps; bit 1: 0 another process, 1 this one. */
START_TEST(test_umem_08_range_passes_as_in_the_kernel)
{
	struct uvd_caller own = { .mem = &uvd_mem_self }, c;
	struct child child;

	make_ranges();
	child = child_start(idle, NULL);
	child_says(&child);
	c = _i & 2 ? own : caller_of(child.pid);
	for (unsigned int i = 0; i < num_ranges; i++)
		for (int write = 0; write < 2; write++) {
			const struct range *r = &ranges[i];
			int ret = uvd_check_range_by(&c, r->addr, r->length, write, !(_i & 1), NULL);

			ck_assert_msg(ret == (write ? r->write : r->read), "%s, %s: %d", r->what,
				      write ? "write" : "read", ret);
		}
	child_end(&child);
}
END_TEST

START_TEST(test_range_with_hole_is_efault_below_a_thousand_mappings)
{
	struct uvd_caller c = caller_of(getpid());
	char *p = mmap(NULL, 2000 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uvd_maps maps;
	struct uvd_mapping m;

	/* Every second page has another protection: 2000 mappings, so that the text does not fit into one read. */
	for (int i = 0; i < 2000; i += 2)
		ck_assert(!mprotect(p + i * PAGE, PAGE, PROT_READ));
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p), 2000 * PAGE, false, !_i, NULL), 0);
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p + PAGE), PAGE, true, !_i, NULL), 0);
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p + PAGE), 2 * PAGE, true, !_i, NULL), -EFAULT);
	ck_assert(!munmap(p + 1500 * PAGE, PAGE));
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p), 2000 * PAGE, false, !_i, NULL), -EFAULT);
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p), 1500 * PAGE, false, !_i, NULL), 0);
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p + 1501 * PAGE), 499 * PAGE, false, !_i, NULL), 0);
	ck_assert(!uvd_maps_open(&maps, &c, !_i));
	ck_assert(!uvd_maps_find(&maps, AT(p + 1500 * PAGE), &m));
	ck_assert_uint_eq(m.start, AT(p + 1501 * PAGE));
	uvd_maps_close(&maps);
}
END_TEST

START_TEST(test_file_with_a_very_long_name_is_an_ordinary_mapping)
{
	struct uvd_caller c = caller_of(getpid());
	char name[201], top[] = "/tmp/uvd-long-XXXXXX";
	void *p;
	int fd;

	/* maps escapes each newline of a name as four characters. */
	memset(name, '\n', 200);
	name[200] = 0;
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert(!chdir(top));
	for (int i = 0; i < 15; i++)
		ck_assert(!mkdir(name, 0700) && !chdir(name));
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert(fd >= 0 && !ftruncate(fd, 4 * PAGE));
	p = map(RW, MAP_SHARED, fd);
	ck_assert_int_eq(uvd_check_range_by(&c, AT(p), 4 * PAGE, true, !_i, NULL), 0);
	ck_assert_int_eq(uvd_check_range_by(&c, AT(&c), 8, true, !_i, NULL), 0);
	ck_assert(!unlink("file"));
	for (int i = 0; i < 15; i++)
		ck_assert(!chdir("..") && !rmdir(name));
	ck_assert(!chdir("/") && !rmdir(top));
}
END_TEST

static struct ibv_pd *oracle_pd(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	return context ? ibv_alloc_pd(context) : NULL;
}

START_TEST(test_table_of_ranges_is_the_kernels)
{
	struct ibv_pd *pd = oracle_pd();

	ck_assert_ptr_nonnull(pd);
	make_ranges();
	for (unsigned int i = 0; i < num_ranges; i++)
		for (int write = 0; write < 2; write++) {
			const struct range *r = &ranges[i];
			struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)r->addr, r->length,
						       write ? IBV_ACCESS_LOCAL_WRITE : 0);

			ck_assert_msg((mr ? 0 : -errno) == (write ? r->write : r->read), "%s, %s: %d", r->what,
				      write ? "write" : "read", mr ? 0 : -errno);
			if (mr)
				ibv_dereg_mr(mr);
		}
}
END_TEST

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

static struct uvd_mm_table *mms;
static struct uvd_why why;
static char *memory; /* 16 pages, in the child too */

static void limited(void *arg)
{
	struct rlimit limit = { *(rlim_t *)arg, *(rlim_t *)arg };

	prctl(PR_SET_NAME, "my-program");
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		_exit(1);
	drop_rights();
	tell(0);
	listen_for_order();
}

static int make_ring(void)
{
	struct io_uring_params params = { 0 };

	return syscall(SYS_io_uring_setup, 1, &params);
}

/* The kernel pins three of its pages, for an io_uring. */
static void limited_with_a_ring(void *arg)
{
	struct iovec pinned = { memory, 3 * PAGE };

	madvise(memory, 16 * PAGE, MADV_NOHUGEPAGE);
	if (syscall(SYS_io_uring_register, make_ring(), IORING_REGISTER_BUFFERS, &pinned, 1))
		_exit(2);
	limited(arg);
}

static void root_limited(void *arg)
{
	struct rlimit limit = { *(rlim_t *)arg, *(rlim_t *)arg };

	tell(setrlimit(RLIMIT_MEMLOCK, &limit));
	listen_for_order();
}

static struct child start_limited(void (*run)(void *), rlim_t limit)
{
	struct child child;

	mms = uvd_mm_table_new();
	memory = mmap(NULL, 16 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	child = child_start(run, &limit);
	ck_assert_uint_eq(child_says(&child), 0);
	return child;
}

static void finish(struct child *child)
{
	child_end(child);
	uvd_mm_table_free(mms);
	/* Else LeakSanitizer would not report what it points to as leaked. */
	mms = NULL;
}

static uint64_t memlock = UVD_MEMLOCK_CLIENT;

static int pin(pid_t tid, uint64_t addr, uint64_t length, unsigned int access, struct uvd_umem *umem)
{
	struct uvd_caller c = caller_of(tid);

	return uvd_pin(mms, &c, &why, memlock, addr, length, access, umem);
}

START_TEST(test_umem_01_wrapping_range_is_einval)
{
	struct child child = start_limited(limited, 0); /* the range is checked before the limit */
	struct uvd_umem umem;

	ck_assert_int_eq(pin(child.pid, -PAGE, 2 * PAGE, 0, &umem), -EINVAL);
	ck_assert_int_eq(pin(child.pid, -PAGE, PAGE - 1, 0, &umem), -EINVAL);
	finish(&child);
}
END_TEST

START_TEST(test_umem_02_memlock_zero_without_cap_is_eperm)
{
	struct child child = start_limited(limited, 0);
	struct uvd_umem umem;

	/* The limit is checked before the number of pages. */
	ck_assert_int_eq(pin(child.pid, AT(memory), 0, 0, &umem), -EPERM);
	ck_assert_str_eq(why.reason->code, "memlock");
	finish(&child);
}
END_TEST

START_TEST(test_device_without_a_limit_has_none_for_a_client_with_memlock_zero)
{
	struct child child = start_limited(limited, 0);
	struct uvd_umem umem;

	memlock = UVD_MEMLOCK_UNLIMITED;
	ck_assert_int_eq(pin(child.pid, AT(memory), 16 * PAGE, IBV_ACCESS_LOCAL_WRITE, &umem), 0);
	ck_assert_uint_eq(uvd_mm_charge(umem.mm, 0), 16);
	uvd_unpin(&umem);
	finish(&child);
}
END_TEST

START_TEST(test_devices_own_limit_replaces_the_clients)
{
	struct child child = start_limited(limited, 0);
	struct uvd_umem umem, more;
	char line[2048];

	memlock = 4 * PAGE + 1;
	ck_assert_int_eq(pin(child.pid, AT(memory), 4 * PAGE, IBV_ACCESS_LOCAL_WRITE, &umem), 0);
	ck_assert_int_eq(pin(child.pid, AT(memory), 1, IBV_ACCESS_LOCAL_WRITE, &more), -ENOMEM);
	uvd_why_text(line, sizeof(line), &why);
	ck_assert_ptr_nonnull(strstr(line, "16 KiB are in use, and the device's limit (--memlock) is 16 KiB; "));
	ck_assert_ptr_null(strstr(line, "ulimit"));
	uvd_unpin(&umem);
	finish(&child);
}
END_TEST

START_TEST(test_umem_02_memlock_zero_with_cap_passes)
{
	struct child child = start_limited(root_limited, 0);
	struct uvd_umem umem;

	ck_assert_int_eq(pin(child.pid, AT(memory), 16 * PAGE, IBV_ACCESS_LOCAL_WRITE, &umem), 0);
	uvd_unpin(&umem);
	finish(&child);
}
END_TEST

START_TEST(test_umem_10_on_demand_is_not_charged)
{
	const unsigned int odp = IBV_ACCESS_ON_DEMAND, huge = odp | IBV_ACCESS_HUGETLB;
	struct child child = start_limited(limited, 0);
	struct uvd_umem umem;

	/* It passes with any limit, and with any mappings. */
	ck_assert_int_eq(pin(child.pid, AT(memory), 1000 * PAGE, odp, &umem), 0);
	ck_assert_uint_eq(umem.pages, 0);
	ck_assert_uint_eq(uvd_mm_charge(umem.mm, 0), 0);
	uvd_unpin(&umem);
	ck_assert_int_eq(pin(child.pid, AT(memory), 1, odp, &umem), 0);
	uvd_unpin(&umem);
	ck_assert_int_eq(pin(child.pid, AT(memory), 0, odp, &umem), -EINVAL);
	ck_assert_int_eq(pin(child.pid, -PAGE, 2 * PAGE, odp, &umem), -EOVERFLOW);
	ck_assert_int_eq(pin(child.pid, -PAGE, PAGE - 1, odp, &umem), -EOVERFLOW);
	ck_assert_int_eq(pin(child.pid, AT(memory), UINT64_MAX, odp, &umem), -EOVERFLOW);
	ck_assert_int_eq(pin(child.pid, 0, UINT64_MAX, odp | IBV_ACCESS_LOCAL_WRITE, &umem), 0);
	ck_assert(umem.writable);
	uvd_unpin(&umem);
	ck_assert_int_eq(pin(child.pid, 0, UINT64_MAX, huge, &umem), -EINVAL);
	finish(&child);
}
END_TEST

/* The mapping at the time of the access counts, not that at the registration. */
START_TEST(test_umem_10_on_demand_is_checked_when_used)
{
	struct uvd_caller own = { .mem = &uvd_mem_self };
	struct uvd_mm_table *table = uvd_mm_table_new();
	char *p = map(RW, MAP_PRIVATE, -1);
	struct uvd_umem umem;

	ck_assert_int_eq(uvd_pin(table, &own, NULL, UVD_MEMLOCK_CLIENT, 0, UINT64_MAX, IBV_ACCESS_ON_DEMAND, &umem), 0);
	ck_assert_int_eq(uvd_mm_check(umem.mm, AT(p), 4 * PAGE, true), 0);
	mprotect(p + PAGE, PAGE, PROT_READ);
	ck_assert_int_eq(uvd_mm_check(umem.mm, AT(p), PAGE, true), 0);
	ck_assert_int_eq(uvd_mm_check(umem.mm, AT(p) + 1, PAGE, true), -EFAULT);
	ck_assert_int_eq(uvd_mm_check(umem.mm, AT(p) + 1, PAGE, false), 0);
	mprotect(p + PAGE, PAGE, PROT_NONE);
	ck_assert_int_eq(uvd_mm_check(umem.mm, AT(p) + 1, PAGE, false), -EFAULT);
	munmap(p, 4 * PAGE);
	ck_assert_int_eq(uvd_mm_check(umem.mm, AT(p), 1, false), -EFAULT);
	ck_assert_int_eq(uvd_mm_check(umem.mm, UINT64_MAX - 1, 4, false), -EFAULT);
	uvd_unpin(&umem);
	uvd_mm_table_free(table);
}
END_TEST

static int place_of(const struct uvd_umem *umem, const void *addr, struct uvd_mm_place *place)
{
	return uvd_mm_find(umem, AT(addr), place);
}

/*
 * The place of shared memory is its file and offset, in all mappings. That of private memory is its address, even in a
 * range that also has shared pages.
 */
START_TEST(test_the_place_of_shared_memory_is_the_same_in_all_mappings)
{
	const bool on_demand = _i;
	struct uvd_mm_table *table = uvd_mm_table_new();
	struct uvd_caller own = { .mem = &uvd_mem_self };
	struct uvd_mm_place one, other;
	struct uvd_umem umem, private;
	int fd = memfd_create("shared", MFD_CLOEXEC);
	char *p, *again, *alone = map(RW, MAP_PRIVATE, -1);

	ck_assert(fd >= 0 && !ftruncate(fd, 4 * PAGE));
	p = map(RW, MAP_SHARED, fd);
	again = map(RW, MAP_SHARED, fd);
	mmap(p + 2 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_int_eq(uvd_pin(table, &own, NULL, UVD_MEMLOCK_CLIENT, AT(alone), 4 * PAGE,
				 on_demand ? IBV_ACCESS_ON_DEMAND : 0, &private),
			 0);
	if (on_demand)
		ck_assert_int_eq(
			uvd_pin(table, &own, NULL, UVD_MEMLOCK_CLIENT, 0, UINT64_MAX, IBV_ACCESS_ON_DEMAND, &umem), 0);
	else
		ck_assert_int_eq(uvd_pin(table, &own, NULL, UVD_MEMLOCK_CLIENT, AT(p), 4 * PAGE, 0, &umem), 0);
	ck_assert(umem.shared);
	ck_assert_int_eq(private.shared, on_demand);
	ck_assert_int_eq(place_of(&umem, p + PAGE + 8, &one), 0);
	ck_assert_int_eq(place_of(&umem, again + PAGE + 8, &other), 0);
	ck_assert_mem_eq(&one, &other, sizeof(one));
	ck_assert_int_eq(place_of(&umem, again + PAGE + 16, &other), 0);
	ck_assert_mem_ne(&one, &other, sizeof(one));
	ck_assert_int_eq(place_of(&umem, p + 2 * PAGE + 8, &one), 0);
	ck_assert_int_eq(place_of(&umem, again + 2 * PAGE + 8, &other), 0);
	ck_assert_mem_ne(&one, &other, sizeof(one));
	ck_assert_int_eq(place_of(&private, alone + 8, &one), 0);
	ck_assert_uint_eq(one.offset, AT(alone) + 8);
	munmap(p, 4 * PAGE);
	ck_assert_int_eq(place_of(&umem, p + PAGE, &one), -EFAULT);
	munmap(again, 4 * PAGE);
	munmap(alone, 4 * PAGE);
	close(fd);
	uvd_unpin(&umem);
	uvd_unpin(&private);
	uvd_mm_table_free(table);
}
END_TEST

START_TEST(test_umem_04_no_pages_is_einval)
{
	struct child child = start_limited(limited, PAGE);
	struct uvd_umem umem;

	ck_assert_int_eq(pin(child.pid, AT(memory), 0, 0, &umem), -EINVAL);
	ck_assert_int_eq(pin(child.pid, AT(memory), (1ull << 32) * PAGE, 0, &umem), -EINVAL);
	ck_assert_int_eq(pin(child.pid, AT(memory), ((1ull << 32) - 1) * PAGE, 0, &umem),
			 -ENOMEM); /* the limit's errno */
	ck_assert_int_eq(pin(child.pid, AT(memory) + 1, 0, 0, &umem), 0);
	ck_assert_uint_eq(umem.pages, 1);
	uvd_unpin(&umem);
	finish(&child);
}
END_TEST

START_TEST(test_umem_05_every_registration_counts_and_the_limit_itself_passes)
{
	struct child child = start_limited(limited, 4 * PAGE + 100);
	struct uvd_umem a, b, c;

	ck_assert_int_eq(pin(child.pid, AT(memory), 2 * PAGE, 0, &a), 0);
	ck_assert_int_eq(pin(child.pid, AT(memory), 2 * PAGE, 0, &b), 0); /* the same pages again */
	ck_assert_int_eq(pin(child.pid, AT(memory), 1, 0, &c), -ENOMEM);
	uvd_unpin(&a);
	ck_assert_int_eq(pin(child.pid, AT(memory) + PAGE - 1, 2, 0, &a), 0); /* 2 bytes, 2 pages */
	ck_assert_uint_eq(a.pages, 2);
	ck_assert_int_eq(pin(child.pid, AT(memory), 1, 0, &c), -ENOMEM);
	uvd_unpin(&a);
	uvd_unpin(&b);
	ck_assert_int_eq(pin(child.pid, AT(memory), 4 * PAGE, 0, &a), 0);
	uvd_unpin(&a);
	finish(&child);
}
END_TEST

START_TEST(test_umem_05_what_the_kernel_has_pinned_counts)
{
	struct uvd_umem a, b;
	struct child child;
	int ring = make_ring();

	if (ring < 0 && (errno == ENOSYS || errno == EPERM))
		SKIP("the kernel has no io_uring, or forbids it");
	close(ring);
	child = start_limited(limited_with_a_ring, 5 * PAGE);
	ck_assert_int_eq(pin(child.pid, AT(memory), 3 * PAGE, 0, &a), -ENOMEM);
	ck_assert_int_eq(pin(child.pid, AT(memory), 2 * PAGE, 0, &a), 0);
	ck_assert_int_eq(pin(child.pid, AT(memory), 1, 0, &b), -ENOMEM);
	uvd_unpin(&a);
	finish(&child);
}
END_TEST

START_TEST(test_umem_05_cap_ipc_lock_passes_the_limit)
{
	struct child child = start_limited(root_limited, PAGE);
	struct uvd_umem umem;

	ck_assert_int_eq(pin(child.pid, AT(memory), 16 * PAGE, 0, &umem), 0);
	uvd_unpin(&umem);
	finish(&child);
}
END_TEST

START_TEST(test_umem_05_the_reason_says_what_to_do)
{
	struct child child = start_limited(limited, 8 * PAGE);
	struct uvd_umem a, b;
	char line[2048];

	ck_assert_int_eq(pin(child.pid, AT(memory), 5 * PAGE, 0, &a), 0);
	ck_assert_ptr_null(why.reason);
	ck_assert_int_eq(pin(child.pid, AT(memory), 4 * PAGE, 0, &b), -ENOMEM);
	uvd_why_text(line, sizeof(line), &why);
	ck_assert_ptr_nonnull(
		strstr(line, "16 KiB were asked for, 20 KiB are in use, and RLIMIT_MEMLOCK is 32 KiB; raise it: "));
	ck_assert_ptr_nonnull(strstr(line, "ulimit -l"));
	ck_assert_ptr_nonnull(strstr(line, "LimitMEMLOCK"));
	uvd_unpin(&a);
	finish(&child);
}
END_TEST

START_TEST(test_umem_06_credit_goes_to_who_was_charged)
{
	struct child a = start_limited(limited, 4 * PAGE), b;
	struct uvd_umem of_a, of_b;
	rlim_t limit = 4 * PAGE;

	b = child_start(limited, &limit);
	child_says(&b);
	ck_assert_int_eq(pin(a.pid, AT(memory), 4 * PAGE, 0, &of_a), 0);
	ck_assert_int_eq(pin(b.pid, AT(memory), 4 * PAGE, 0, &of_b), 0);
	uvd_unpin(&of_b);
	ck_assert_int_eq(pin(a.pid, AT(memory), 1, 0, &of_b), -ENOMEM);
	child_end(&b);
	uvd_unpin(&of_a);
	ck_assert_int_eq(pin(a.pid, AT(memory), 4 * PAGE, 0, &of_a), 0);
	uvd_unpin(&of_a);
	finish(&a);
}
END_TEST

START_TEST(test_umem_06_client_that_died_is_credited_without_harm)
{
	struct child child = start_limited(limited, 4 * PAGE);
	struct uvd_umem umem;

	ck_assert_int_eq(pin(child.pid, AT(memory), 4 * PAGE, 0, &umem), 0);
	finish(&child);
	uvd_unpin(&umem);
	uvd_unpin(&umem); /* a second time: does nothing */
}
END_TEST

START_TEST(test_umem_07_fault_leaves_no_charge)
{
	struct child child = start_limited(limited, 16 * PAGE);
	struct uvd_umem umem;

	munmap(memory, 16 * PAGE); /* ours, not the child's */
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(pin(child.pid, 0, 8 * PAGE, 0, &umem), -EFAULT);
	ck_assert_int_eq(pin(child.pid, AT(memory), 16 * PAGE, IBV_ACCESS_REMOTE_WRITE, &umem), 0);
	ck_assert(umem.writable);
	uvd_unpin(&umem);
	finish(&child);
}
END_TEST

START_TEST(test_umem_09_access_that_needs_a_writable_mapping)
{
	ck_assert(uvd_mr_access_writable(IBV_ACCESS_LOCAL_WRITE));
	ck_assert(uvd_mr_access_writable(IBV_ACCESS_REMOTE_WRITE));
	ck_assert(uvd_mr_access_writable(IBV_ACCESS_REMOTE_ATOMIC));
	ck_assert(uvd_mr_access_writable(IBV_ACCESS_MW_BIND));
	ck_assert(!uvd_mr_access_writable(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
					  IBV_ACCESS_RELAXED_ORDERING));
}
END_TEST

START_TEST(test_pin_of_a_caller_out_of_reach_is_an_error)
{
	struct uvd_umem umem;

	mms = uvd_mm_table_new();
	ck_assert_int_lt(pin(0, PAGE, PAGE, 0, &umem), 0);
	uvd_mm_table_free(mms);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("pin");
	TCase *t = tcase_create("pin");

	tcase_set_timeout(t, 60);
	if (getenv("UVD_ORACLE"))
		tcase_add_test(t, test_table_of_ranges_is_the_kernels);
	tcase_add_loop_test(t, test_umem_08_range_passes_as_in_the_kernel, 0, 4);
	tcase_add_loop_test(t, test_range_with_hole_is_efault_below_a_thousand_mappings, 0, 2);
	tcase_add_loop_test(t, test_file_with_a_very_long_name_is_an_ordinary_mapping, 0, 2);
	tcase_add_test(t, test_umem_01_wrapping_range_is_einval);
	tcase_add_test(t, test_umem_02_memlock_zero_without_cap_is_eperm);
	tcase_add_test(t, test_umem_02_memlock_zero_with_cap_passes);
	tcase_add_test(t, test_device_without_a_limit_has_none_for_a_client_with_memlock_zero);
	tcase_add_test(t, test_devices_own_limit_replaces_the_clients);
	tcase_add_test(t, test_umem_10_on_demand_is_not_charged);
	tcase_add_test(t, test_umem_10_on_demand_is_checked_when_used);
	tcase_add_loop_test(t, test_the_place_of_shared_memory_is_the_same_in_all_mappings, 0, 2);
	tcase_add_test(t, test_umem_04_no_pages_is_einval);
	tcase_add_test(t, test_umem_05_every_registration_counts_and_the_limit_itself_passes);
	tcase_add_test(t, test_umem_05_what_the_kernel_has_pinned_counts);
	tcase_add_test(t, test_umem_05_cap_ipc_lock_passes_the_limit);
	tcase_add_test(t, test_umem_05_the_reason_says_what_to_do);
	tcase_add_test(t, test_umem_06_credit_goes_to_who_was_charged);
	tcase_add_test(t, test_umem_06_client_that_died_is_credited_without_harm);
	tcase_add_test(t, test_umem_07_fault_leaves_no_charge);
	tcase_add_test(t, test_umem_09_access_that_needs_a_writable_mapping);
	tcase_add_test(t, test_pin_of_a_caller_out_of_reach_is_an_error);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
