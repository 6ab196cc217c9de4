/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memlock accounting and range checks, out of memory, and with a /proc whose contents no kernel should produce, or
 * which a process controls. The client is this process.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject.h"
#include "pin/pin.h"
#include "pin/internal.h"
#include "tests/client/child.h"

#define PAGE 4096ul
#define AT(p) ((uint64_t)(uintptr_t)(p))

enum { NOBODY = 0x3fffffff }; /* a thread id that no kernel gives */

static struct uvd_mm_table *mms;
static uint8_t memory[4 * PAGE] __attribute__((aligned(PAGE)));

static void setup(void)
{
	mms = uvd_mm_table_new();
}

static void add_pages(void *arg, pid_t tgid, uint64_t pages)
{
	*(uint64_t *)arg += pages;
}

static uint64_t charged(void)
{
	uint64_t pages = 0;

	uvd_mm_table_each(mms, add_pages, &pages);
	return pages;
}

static void teardown(void)
{
	ck_assert_uint_eq(charged(), 0);
	uvd_mm_table_free(mms);
	mms = NULL; /* else LeakSanitizer would not report what it points to as leaked */
}

/* ---- a fake /proc ------------------------------------------------------------------------------------------------ */

/*
 * One file of it is replaced: by the text, by another file, or else by the pipe. The others are the real ones; the
 * files of NOBODY are this process's.
 */
static const char *fake_name, *fake_text, *fake_path;
static int fake_pipe[2];
static int fake_after; /* so many opens get the real file first */

static int fake_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	int fd;

	if (!fake_name || strcmp(name, fake_name) || fake_after-- > 0)
		return uvd_proc_local.open(&uvd_proc_local, tid == NOBODY ? getpid() : tid, name, flags);
	if (fake_path) {
		fd = open(fake_path, flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (!fake_text)
		return dup(fake_pipe[0]);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, fake_text, strlen(fake_text), 0) < 0)
		return -EIO;
	return fd;
}

static struct uvd_proc fake = { .open = fake_open };

static struct uvd_caller caller(pid_t tid)
{
	return (struct uvd_caller){ .mem = &uvd_mem_process, .proc = &fault_proc, .tid = tid, .memfd = -1 };
}

static int pin(struct uvd_caller c, void *addr, uint64_t length, unsigned int access)
{
	struct uvd_umem umem;
	int err = uvd_pin(mms, &c, NULL, UVD_MEMLOCK_CLIENT, AT(addr), length, access, &umem);

	if (!err)
		uvd_unpin(&umem);
	return err;
}

/* ---- memory runs out --------------------------------------------------------------------------------------------- */

START_TEST(test_no_table)
{
	struct uvd_mm_table *t;

	fault_arm(FAULT_ALLOC, 1, false);
	t = uvd_mm_table_new();
	ck_assert(fault_disarm() && !t);
}
END_TEST

/* Processes related to this one. */
static pid_t relatives[3];

static struct uvd_mm *mm_of(pid_t relative)
{
	struct uvd_caller c = caller(relative);

	return uvd_mm_get(mms, &c);
}

/*
 * These allocations of a search must succeed: for its candidates, and for what is known of each. The next one, to
 * remember the new process, may fail.
 */
enum { ALLOCATIONS_OF_A_SEARCH = 3 };

static struct uvd_mm *mm_without_memory(pid_t relative)
{
	struct uvd_mm *mm;
	bool fired;

	for (unsigned int n = 1; n <= ALLOCATIONS_OF_A_SEARCH + 1; n++) {
		fault_arm(FAULT_ALLOC, n, true);
		mm = mm_of(relative);
		fired = fault_disarm();
		ck_assert(fired && !mm == (n <= ALLOCATIONS_OF_A_SEARCH));
		ck_assert(mm || errno == ENOMEM);
	}
	return mm;
}

/* All relatives share our address space. Returns its mm, for which two of them are known. */
static struct uvd_mm *space_of_two(void)
{
	struct uvd_mm *mm;

	for (int i = 0; i < 3; i++)
		relatives[i] = clone_vm_sleeper();
	mm = mm_of(relatives[0]);
	ck_assert_ptr_nonnull(mm);
	ck_assert_ptr_eq(mm_of(relatives[1]), mm);
	uvd_mm_put(mm);
	uvd_mm_charge(mm, 1);
	return mm;
}

static void end_relative(int i)
{
	if (!relatives[i])
		return;
	kill(relatives[i], SIGKILL);
	ck_assert_int_eq(waitpid(relatives[i], NULL, __WALL), relatives[i]);
	relatives[i] = 0;
}

static void end_space(struct uvd_mm *mm)
{
	for (int i = 0; i < 3; i++)
		end_relative(i);
	uvd_mm_charge(mm, -1);
	uvd_mm_put(mm);
}

static void note_process(void *arg, pid_t tgid, uint64_t pages)
{
	*(pid_t *)arg = tgid;
}

static pid_t known_process(void)
{
	pid_t tgid = -1;

	uvd_mm_table_each(mms, note_process, &tgid);
	return tgid;
}

START_TEST(test_a_relative_is_found_though_there_is_no_memory_to_remember_it)
{
	struct uvd_mm *mm = space_of_two();

	ck_assert_int_eq(known_process(), relatives[1]);
	ck_assert_ptr_eq(mm_without_memory(relatives[2]), mm);
	ck_assert_int_eq(known_process(), relatives[1]);
	uvd_mm_put(mm);
	end_space(mm);
}
END_TEST

START_TEST(test_those_that_are_gone_are_forgotten)
{
	struct uvd_mm *mm = space_of_two();

	end_relative(1);
	ck_assert_ptr_eq(mm_without_memory(relatives[2]), mm);
	ck_assert_int_eq(known_process(), relatives[0]);
	uvd_mm_put(mm);
	end_space(mm);
}
END_TEST

/* For lack of fds a process cannot be examined, but it has not exited: if forgotten, it would get a second account. */
START_TEST(test_those_that_cannot_be_looked_at_are_not_forgotten)
{
	struct uvd_mm *mm = space_of_two();
	unsigned int n = 0;
	struct uvd_mm *found;
	bool fired;

	do {
		fault_arm(FAULT_PROC, ++n, false);
		found = mm_of(relatives[2]);
		fired = fault_disarm();
		ck_assert(found == mm || (fired && !found && errno == PROC_ERRNO));
		if (found)
			uvd_mm_put(mm);
		ck_assert_ptr_eq(mm_of(relatives[0]), mm);
		uvd_mm_put(mm);
	} while (fired);
	end_space(mm);
}
END_TEST

/*
 * The known processes appear to exit during the last search: each search can open the "stat" of the new process, and
 * the last one also that of the first known process.
 */
START_TEST(test_account_of_which_no_process_is_known)
{
	struct uvd_mm *mm = space_of_two();

	fake_name = "stat";
	fake_path = "/nonexistent";
	fake_after = ALLOCATIONS_OF_A_SEARCH + 2;
	ck_assert_ptr_eq(mm_without_memory(relatives[2]), mm);
	ck_assert_int_eq(known_process(), 0);
	uvd_mm_put(mm);
	end_space(mm);
}
END_TEST

/* With a limit of 0 it depends on a capability whether memory may be registered at all. */
START_TEST(test_client_without_memlock_whose_rights_cannot_be_read)
{
	struct rlimit limit;

	ck_assert(!getrlimit(RLIMIT_MEMLOCK, &limit));
	limit.rlim_cur = 0;
	ck_assert(!setrlimit(RLIMIT_MEMLOCK, &limit));
	fake_name = "status";
	fake_path = "/nonexistent";
	ck_assert_int_eq(pin(caller(gettid()), memory, PAGE, 0), -ESRCH);
}
END_TEST

/* ---- range checks that fail -------------------------------------------------------------------------------------- */

/* A forked child: its address space looks like ours, but is another one. */
static pid_t stranger;
static int waits_until; /* waits() returns true until it has been called so often */

static bool waits(struct uvd_caller *c)
{
	if (--waits_until)
		return true;
	/* The client stops waiting, and meanwhile another address space becomes known. */
	ck_assert_ptr_nonnull(mm_of(stranger));
	return false;
}

START_TEST(test_search_of_a_call_that_is_let_go_finds_its_space_or_nothing)
{
	struct uvd_mm *mm = space_of_two(), *found, *other;
	unsigned int interrupted = 0;

	stranger = fork();
	if (!stranger)
		for (;;)
			pause();
	waits_until = 0;
	for (int n = 1; waits_until <= 0; n++) {
		struct uvd_caller c;

		/* A process that was found stays known: search for a new one. */
		end_relative(2);
		relatives[2] = clone_vm_sleeper();
		c = caller(relatives[2]);
		c.waits = waits;
		waits_until = n;
		found = uvd_mm_get(mms, &c);
		ck_assert(found ? found == mm : errno == EINTR);
		if (found)
			uvd_mm_put(found);
		else
			interrupted++;
		if (waits_until <= 0) {
			other = mm_of(stranger);
			uvd_mm_put(other);
			uvd_mm_put(other);
		}
	}
	ck_assert_uint_ge(interrupted, 3); /* at its memory, its start time, its fingerprint */
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	end_space(mm);
}
END_TEST

/* The known processes appear to have exited: their "stat" cannot be opened. */
START_TEST(test_relative_that_is_gone_is_no_relative)
{
	struct uvd_mm *mm = space_of_two(), *other;

	fake_name = "stat";
	fake_path = "/nonexistent";
	fake_after = 1; /* the new process's own "stat" is real */
	other = mm_of(relatives[2]);
	ck_assert(other && other != mm);
	uvd_mm_put(other);
	end_space(mm);
}
END_TEST

START_TEST(test_file_without_permission)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct uvd_caller c = caller(gettid());
	unsigned int n = 0;
	bool fired;
	void *p;
	int err;

	ck_assert(!ftruncate(fd, PAGE));
	p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE, fd, 0);
	do {
		fault_arm(FAULT_PROC, ++n, false);
		err = uvd_check_range(&c, AT(p), PAGE, false, NULL);
		fired = fault_disarm();
		ck_assert_int_eq(err, fired ? -EFAULT : 0);
	} while (fired);
	ck_assert_uint_gt(n, 2);
	munmap(p, PAGE);
	close(fd);
}
END_TEST

START_TEST(test_range_beyond_all_addresses)
{
	struct uvd_caller c = caller(gettid());

	ck_assert_int_eq(uvd_check_range(&c, -PAGE, PAGE, false, NULL), -EFAULT);
	ck_assert_int_eq(uvd_check_range(&c, -PAGE + 1, PAGE, false, NULL), -EFAULT);
	ck_assert_int_eq(uvd_check_range(&c, -PAGE, 1, false, NULL), -EFAULT);
}
END_TEST

START_TEST(test_umem_10_address_0_is_all_of_memory_only_with_all_of_its_length)
{
	struct uvd_caller c = caller(gettid());

	ck_assert_int_eq(pin(c, NULL, PAGE, IBV_ACCESS_ON_DEMAND), 0);
	ck_assert_int_eq(pin(c, NULL, UINT64_MAX, IBV_ACCESS_ON_DEMAND), 0);
	ck_assert_int_eq(pin(c, (void *)PAGE, UINT64_MAX, IBV_ACCESS_ON_DEMAND), -EOVERFLOW);
}
END_TEST

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

START_TEST(test_umem_02_no_limit_is_no_limit)
{
	fake_name = "limits";
	fake_text = "Max locked memory         unlimited            unlimited            bytes\n";
	ck_assert_int_eq(pin(caller(NOBODY), memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE), 0);
}
END_TEST

static const char *const stats[] = { "", "1 (x", "1 (x) S", "1 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18" };

START_TEST(test_process_without_a_start_is_gone)
{
	struct uvd_caller c = caller(gettid());

	fake_name = "stat";
	fake_text = stats[_i];
	ck_assert_ptr_null(uvd_mm_get(mms, &c));
	ck_assert_int_eq(errno, ESRCH);
}
END_TEST

START_TEST(test_process_whose_memory_is_gone_is_gone)
{
	struct uvd_caller c = caller(gettid());

	fake_name = "pagemap";
	fake_path = "/dev/null";
	ck_assert_ptr_null(uvd_mm_get(mms, &c));
	ck_assert_int_eq(errno, ESRCH);
	fake_name = "mem";
	fake_path = "/nonexistent";
	ck_assert_ptr_null(uvd_mm_get(mms, &c));
	/* The thread existed when its process was looked up (tgid), and exited then. */
	fault_proc_behind = &uvd_proc_local;
	c = caller(NOBODY);
	c.tgid = getpid();
	ck_assert_ptr_null(uvd_mm_get(mms, &c));
	ck_assert_int_eq(errno, ESRCH);
}
END_TEST

/* ---- current protection of mappings ------------------------------------------------------------------------------ */

static struct uvd_mm *watched(void)
{
	struct uvd_caller c = caller(gettid());
	struct uvd_mm *mm = uvd_mm_get(mms, &c);

	ck_assert_ptr_nonnull(mm);
	ck_assert_int_eq(uvd_mm_check(mm, AT(memory), PAGE, true), -EFAULT);
	ck_assert_int_eq(uvd_mm_watch(mm, &c), 0);
	/* A second region of the same mm watches again. */
	ck_assert_int_eq(uvd_mm_watch(mm, &c), 0);
	return mm;
}

static void check(struct uvd_mm *mm)
{
	ck_assert_int_eq(uvd_mm_check(mm, AT(memory), sizeof(memory), true), 0);
	ck_assert_int_eq(uvd_mm_check(mm, AT(uvd_pin), 1, false), 0);
	ck_assert_int_eq(uvd_mm_check(mm, AT(uvd_pin), 1, true), -EFAULT);
	ck_assert_int_eq(uvd_mm_check(mm, AT(memory), -AT(memory), false), -EFAULT);
	ck_assert_int_eq(uvd_mm_check(mm, AT(memory), UINT64_MAX, false), -EFAULT);
	/* The vvar pages just below the vDSO: readable, but the kernel's. */
	ck_assert_int_eq(uvd_mm_check(mm, getauxval(AT_SYSINFO_EHDR) - 4 * PAGE, 1, false), -EFAULT);
}

START_TEST(test_mappings_by_question_or_by_text)
{
	char text[1 << 16] = {};
	struct uvd_mm *mm;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	for (ssize_t n, len = 0; (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0; len += n)
		;
	close(fd);
	/* PROCMAP_QUERY fails on the fake file, so its text is read. */
	fake_name = _i ? "maps" : NULL;
	fake_text = text;
	mm = watched();
	check(mm);
	uvd_mm_put(mm);
}
END_TEST

START_TEST(test_mappings_that_cannot_be_read_again_allow_nothing)
{
	struct uvd_mm *mm;

	ck_assert(!pipe2(fake_pipe, O_CLOEXEC | O_NONBLOCK));
	fake_name = "maps";
	mm = watched();
	ck_assert_int_eq(uvd_mm_check(mm, AT(memory), PAGE, false), -EFAULT);
	uvd_mm_put(mm);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("faults: memlock");
	TCase *tc = tcase_create("all");

	fault_proc_behind = &fake;
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_no_table);
	tcase_add_test(tc, test_client_without_memlock_whose_rights_cannot_be_read);
	tcase_add_test(tc, test_a_relative_is_found_though_there_is_no_memory_to_remember_it);
	tcase_add_test(tc, test_those_that_are_gone_are_forgotten);
	tcase_add_test(tc, test_those_that_cannot_be_looked_at_are_not_forgotten);
	tcase_add_test(tc, test_account_of_which_no_process_is_known);
	tcase_add_test(tc, test_search_of_a_call_that_is_let_go_finds_its_space_or_nothing);
	tcase_add_test(tc, test_relative_that_is_gone_is_no_relative);
	tcase_add_test(tc, test_file_without_permission);
	tcase_add_test(tc, test_range_beyond_all_addresses);
	tcase_add_test(tc, test_umem_10_address_0_is_all_of_memory_only_with_all_of_its_length);
	tcase_add_test(tc, test_umem_02_no_limit_is_no_limit);
	tcase_add_loop_test(tc, test_process_without_a_start_is_gone, 0, sizeof(stats) / sizeof(stats[0]));
	tcase_add_test(tc, test_process_whose_memory_is_gone_is_gone);
	tcase_add_loop_test(tc, test_mappings_by_question_or_by_text, 0, 2);
	tcase_add_test(tc, test_mappings_that_cannot_be_read_again_allow_nothing);
	suite_add_tcase(s, tc);
	return run_client_tests(argc, argv, s);
}
