/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address spaces and openers are told apart after fork, clone, exec and exit. */
#include <errno.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uverbsd/mm.h>

#include "child.h"

static uint64_t word = 1;

enum order { THREAD = 1, FORK, CLONE_MEMORY, EXEC, SETUID, FORGE };

static void *thread_says_tid(void *arg)
{
	tell(syscall(SYS_gettid));
	for (;;)
		pause();
	return NULL;
}

static pid_t fork_sleeper(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* Replaces the auxiliary vector of this process, which needs no capability. */
static int forge_auxv(uint64_t salt)
{
	uint64_t auxv[] = { 1000, salt, 0, 0 };
	struct prctl_mm_map map = { .auxv = (void *)auxv, .auxv_size = sizeof(auxv), .exe_fd = -1 };
	unsigned long page = (uintptr_t)&word & -4096ul;

	map.start_code = map.start_data = map.start_brk = page;
	map.end_code = map.end_data = map.brk = page + 8;
	map.start_stack = map.arg_start = map.arg_end = map.env_start = map.env_end = page;
	return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
}

static void client(void *arg)
{
	uint64_t salt = 0;
	pthread_t t;

	word = 2;
	tell(0);
	for (;;) {
		switch (listen_for_order()) {
		case THREAD:
			if (pthread_create(&t, NULL, thread_says_tid, NULL))
				_exit(1);
			break;
		case FORK:
			tell(fork_sleeper());
			break;
		case CLONE_MEMORY:
			tell(clone_vm_sleeper());
			break;
		case EXEC:
			exec_self();
			break;
		case SETUID:
			tell(setresuid(65534, 65534, 65534));
			break;
		case FORGE:
			tell(forge_auxv(++salt) ? errno : 0);
			break;
		}
	}
}

static struct child start_client(void)
{
	struct child child = child_start(client, NULL);

	child_says(&child);
	return child;
}

/* ordinary_user: this process, the engine, has no privileges either, as under uverbsctl run. */
static struct child start_client_as(bool ordinary_user)
{
	if (ordinary_user)
		drop_rights();
	return start_client();
}

static pid_t ask(struct child *child, enum order order)
{
	child_order(child, order);
	return child_says(child);
}

static struct uvd_mm *mm_of(struct uvd_mm_table *t, pid_t tid)
{
	struct uvd_caller c = caller_of(tid);

	return uvd_mm_get(t, &c);
}

#define AT(p) ((uint64_t)(uintptr_t)(p))

START_TEST(test_memory_outlives_the_call)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_mm *mm = mm_of(t, child.pid);
	uint64_t got = 0, put = 77;

	ck_assert_ptr_nonnull(mm);
	ck_assert(!uvd_mm_read(mm, &got, AT(&word), 8) && got == 2);
	ck_assert(!uvd_mm_write(mm, AT(&word), &put, 8));
	ck_assert(!uvd_mm_read(mm, &got, AT(&word), 8) && got == 77);
	ck_assert_uint_eq(word, 1);
	ck_assert_int_eq(uvd_mm_read(mm, &got, 8, 8), -EFAULT);
	ck_assert_int_eq(uvd_mm_read(mm, &got, 1ull << 63, 8), -EFAULT);
	uvd_mm_put(mm);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

static int waits; /* how many more times says() returns true */

static bool says(struct uvd_caller *c)
{
	return waits-- > 0;
}

static int open_locally(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return uvd_proc_local.open(&uvd_proc_local, tid, name, flags);
}

static struct uvd_mm *mm_by_number(struct uvd_mm_table *t, pid_t tid)
{
	static struct uvd_proc proc = { .open = open_locally, .bulk_by_number = true };
	struct uvd_caller c = caller_of(tid);

	c.proc = &proc;
	c.waits = says;
	return uvd_mm_get(t, &c);
}

/*
 * Copies of 4 KiB go through /proc/PID/mem, of 16 KiB and more through process_vm_readv() and process_vm_writev() by
 * pid. After the client has exited, large copies fail.
 */
START_TEST(test_memory_by_number_is_that_of_the_process_or_none)
{
	enum { MUCH = 64 << 10 };
	static char page[MUCH] __attribute__((aligned(4096))), got[MUCH];
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_mm *mm;

	waits = INT_MAX;
	mm = mm_by_number(t, child.pid);
	ck_assert_ptr_nonnull(mm);
	for (size_t len = 4096; len <= MUCH; len *= 4) {
		memset(got, len >> 12, len);
		ck_assert_int_eq(uvd_mm_write(mm, AT(page), got, len), 0);
		memset(got, 0, len);
		ck_assert_int_eq(uvd_mm_read(mm, got, AT(page), len), 0);
		ck_assert_int_eq(got[len - 1], (char)(len >> 12));
	}
	ck_assert_int_eq(page[0], 0); /* this process's own page */
	ck_assert_int_eq(uvd_mm_read(mm, got, 1ull << 63, MUCH), -EFAULT);
	child_end(&child);
	ck_assert_int_eq(uvd_mm_read(mm, got, AT(page), MUCH), -EFAULT);
	ck_assert_int_eq(uvd_mm_write(mm, AT(page), got, MUCH), -EFAULT);
	uvd_mm_put(mm);
	uvd_mm_table_free(t);
}
END_TEST

/* The tid of a caller that no longer waits may have been reused. */
START_TEST(test_number_of_a_caller_that_waits_no_more_is_not_taken)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct uvd_mm *mm = NULL;
	bool seen = false;
	struct child child = start_client();

	for (int n = 0; !mm; n++) {
		waits = n;
		mm = mm_by_number(t, child.pid);
		ck_assert(mm || errno == EINTR || errno == ESRCH);
		seen |= !mm && errno == ESRCH;
	}
	ck_assert(seen);
	uvd_mm_put(mm);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

static struct uvd_mm_table *other_table;
static struct uvd_mm *other_mm;
static pid_t other_pid;

/* While the descriptors for one client are opened, another thread adds another client; here this thread does. */
static int open_while_another_is_added(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	/* "mem" is opened after the look into the table; "stat" and others are opened before. */
	if (!other_mm && !strcmp(name, "mem"))
		other_mm = mm_of(other_table, other_pid);
	return open_locally(proc, tid, name, flags);
}

/* _i: the other thread adds the same client, which then has one entry. */
START_TEST(test_client_that_is_added_while_another_one_is_has_its_own_memory)
{
	struct uvd_proc proc = { .open = open_while_another_is_added };
	struct uvd_mm_table *t = other_table = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_mm *mm, *again;
	uint64_t got = 0;

	c.proc = &proc;
	other_pid = _i ? child.pid : getpid();
	mm = uvd_mm_get(t, &c);
	ck_assert_ptr_nonnull(mm);
	ck_assert_ptr_nonnull(other_mm);
	ck_assert_int_eq(mm == other_mm, _i);
	ck_assert(!uvd_mm_read(mm, &got, AT(&word), 8) && got == 2);
	again = mm_of(t, child.pid);
	ck_assert_ptr_eq(again, mm);
	uvd_mm_put(again);
	uvd_mm_put(mm);
	uvd_mm_put(other_mm);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_threads_share_the_account)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_mm *a = mm_of(t, ask(&child, THREAD)), *b = mm_of(t, child.pid);

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(a, b);
	ck_assert_uint_eq(uvd_mm_charge(a, 5), 5);
	ck_assert_uint_eq(uvd_mm_charge(b, 2), 7);
	ck_assert_uint_eq(uvd_mm_charge(b, -7), 0);
	uvd_mm_put(a);
	uvd_mm_put(b);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_forked_child_has_another_account)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client_as(_i & 1);
	struct uvd_mm *a = mm_of(t, child.pid), *b = mm_of(t, ask(&child, FORK));

	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_ne(a, b);
	uvd_mm_put(a);
	uvd_mm_put(b);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_clone_vm_relative_shares_the_account)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client_as(_i & 2);
	pid_t relative = ask(&child, CLONE_MEMORY);
	/* Either process may be the first to be seen. */
	struct uvd_mm *a = mm_of(t, _i & 1 ? relative : child.pid), *b = mm_of(t, _i & 1 ? child.pid : relative);
	struct uvd_mm *again = mm_of(t, relative);

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_eq(a, again);
	uvd_mm_put(a);
	uvd_mm_put(b);
	uvd_mm_put(again);
	uvd_mm_table_free(t);
	kill(relative, SIGKILL);
	child_end(&child);
}
END_TEST

static unsigned int times_asked;

static bool ask_here(struct uvd_proc *proc, pid_t tid, pid_t other)
{
	times_asked++;
	return !syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0);
}

/*
 * An engine process may not call kcmp() itself: the caller's struct uvd_proc answers instead. For a caller without one,
 * we call kcmp().
 */
START_TEST(test_relatives_are_told_by_the_callers_proc)
{
	struct uvd_proc elsewhere = { .open = uvd_proc_local.open, .same_memory = ask_here };
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	pid_t relative = ask(&child, CLONE_MEMORY);
	struct uvd_caller c = caller_of(child.pid), r = caller_of(relative);
	struct uvd_mm *a, *b;

	c.proc = NULL;
	r.proc = _i ? &elsewhere : NULL;
	a = uvd_mm_get(t, &c);
	b = uvd_mm_get(t, &r);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(a, b);
	ck_assert_int_eq(times_asked > 0, _i);
	uvd_mm_put(a);
	uvd_mm_put(b);
	uvd_mm_table_free(t);
	kill(relative, SIGKILL);
	child_end(&child);
}
END_TEST

static int open_of_namespace(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return uvd_proc_local.open(&uvd_proc_local, tid % UVD_PROC_NUMBERS, name, flags);
}

static bool memory_is_always_the_same(struct uvd_proc *proc, pid_t tid, pid_t other)
{
	return true;
}

/* An agent that opens the files of another pid namespace could name any process, and say that it shares this one's memory. */
START_TEST(test_processes_of_two_pid_namespaces_share_no_account)
{
	struct uvd_proc namespace = { .open = open_of_namespace,
				      .same_memory = memory_is_always_the_same,
				      .base = UVD_PROC_NUMBERS };
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	pid_t relative = ask(&child, CLONE_MEMORY);
	struct uvd_caller c = caller_of(relative);
	struct uvd_mm *a = mm_of(t, child.pid), *b, *again;

	c.proc = &namespace;
	c.tid += namespace.base;
	c.tgid = 0;
	b = uvd_mm_get(t, &c);
	again = uvd_mm_get(t, &c);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(b, again);
	uvd_mm_put(a);
	uvd_mm_put(b);
	uvd_mm_put(again);
	uvd_mm_table_free(t);
	kill(relative, SIGKILL);
	child_end(&child);
}
END_TEST

START_TEST(test_exec_leaves_the_account)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client_as(_i & 1);
	struct uvd_mm *before = mm_of(t, child.pid), *after;
	uint64_t got, at;

	ck_assert(uvd_mm_alive(before));
	child_order(&child, EXEC);
	at = child_says(&child);
	ck_assert(!uvd_mm_alive(before));
	ck_assert_int_eq(uvd_mm_read(before, &got, AT(&word), 8), -EFAULT);
	/* This address is valid in the new program. */
	ck_assert_int_eq(uvd_mm_read(before, &got, at, 8), -EFAULT);
	ck_assert_int_eq(uvd_mm_write(before, at, &word, 8), -EFAULT);
	after = mm_of(t, child.pid);
	ck_assert_ptr_nonnull(after);
	ck_assert_ptr_ne(before, after);
	ck_assert(!uvd_mm_read(after, &got, at, 8) && got == EXEC_WORD);
	uvd_mm_put(before);
	uvd_mm_put(after);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_exec_leaves_the_account_to_relatives)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client_as(_i & 1);
	pid_t relative = ask(&child, CLONE_MEMORY);
	struct uvd_mm *before = mm_of(t, child.pid), *theirs, *after;
	uint64_t got, at;

	child_order(&child, EXEC);
	at = child_says(&child);
	ck_assert(uvd_mm_alive(before));
	theirs = mm_of(t, relative);
	after = mm_of(t, child.pid);
	ck_assert_ptr_nonnull(after);
	ck_assert_ptr_ne(before, after);
	ck_assert(!uvd_mm_read(after, &got, at, 8) && got == EXEC_WORD);
	ck_assert(!uvd_mm_read(before, &got, AT(&word), 8) && got == 2);
	/*
	 * Only the process that called exec was known as a member. The relative may get a new account, but never that
	 * of the new program.
	 */
	ck_assert_ptr_nonnull(theirs);
	ck_assert_ptr_ne(theirs, after);
	kill(relative, SIGKILL);
	uvd_mm_put(before);
	uvd_mm_put(theirs);
	uvd_mm_put(after);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_exec_of_a_relative_leaves_the_account)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client_as(_i & 1);
	pid_t relative = ask(&child, CLONE_MEMORY);
	struct uvd_mm *a = mm_of(t, child.pid), *b = mm_of(t, relative), *after, *stays;

	ck_assert_ptr_eq(a, b);
	child_order(&child, EXEC);
	child_says(&child);
	after = mm_of(t, child.pid);
	stays = mm_of(t, relative);
	ck_assert_ptr_nonnull(after);
	ck_assert_ptr_ne(after, a);
	ck_assert_ptr_eq(stays, a);
	kill(relative, SIGKILL);
	uvd_mm_put(a);
	uvd_mm_put(b);
	uvd_mm_put(after);
	uvd_mm_put(stays);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_forged_print_does_not_make_accounts_without_end)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_mm *mm[20];
	unsigned int different = 0;

	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(ask(&child, FORGE), 0);
		mm[i] = mm_of(t, child.pid);
		ck_assert_ptr_nonnull(mm[i]);
		different++;
		for (int k = 0; k < i; k++)
			if (mm[k] == mm[i]) {
				different--;
				break;
			}
	}
	ck_assert_uint_le(different, 4);
	for (int i = 0; i < 20; i++)
		uvd_mm_put(mm[i]);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

/* The low numbers stay for libraries that call select(). */
START_TEST(test_descriptors_of_an_address_space_and_of_an_opener_have_high_numbers)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_caller c = caller_of(child.pid);
	const unsigned int low = low_fds();
	struct uvd_opener opener;
	struct uvd_mm *mm;

	ck_assert(!uvd_opener_take(&opener, &c));
	mm = mm_of(t, child.pid);
	ck_assert(!uvd_mm_watch(mm, &c));
	ck_assert_uint_eq(low_fds(), low);
	uvd_opener_drop(&opener);
	uvd_mm_put(mm);
	uvd_mm_table_free(t);
	child_end(&child);
}
END_TEST

START_TEST(test_recycled_pid_is_never_reached)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	struct uvd_mm *before = mm_of(t, child.pid), *after;
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_opener opener;
	uint64_t got;

	ck_assert(!uvd_opener_take(&opener, &c));
	c.tgid = 0;
	ck_assert(uvd_opener_is(&opener, &c, -1, -1));
	child_end(&child);
	ck_assert_int_eq(fork_with_pid(child.pid), child.pid);
	ck_assert(!uvd_mm_alive(before));
	ck_assert_int_eq(uvd_mm_read(before, &got, AT(&word), 8), -EFAULT);
	ck_assert_int_eq(uvd_mm_write(before, AT(&word), &got, 8), -EFAULT);
	after = mm_of(t, child.pid);
	ck_assert_ptr_nonnull(after);
	ck_assert_ptr_ne(before, after);
	ck_assert(!uvd_mm_read(after, &got, AT(&word), 8) && got == 1);
	ck_assert(!uvd_opener_is(&opener, &c, -1, -1));
	uvd_opener_drop(&opener);
	uvd_mm_put(before);
	uvd_mm_put(after);
	uvd_mm_table_free(t);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
}
END_TEST

static int open_all_but_memory(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	if (!strcmp(name, "mem") || !strcmp(name, "pagemap"))
		return -EACCES;
	return uvd_proc_local.open(&uvd_proc_local, tid, name, flags);
}

START_TEST(test_recycled_pid_is_another_opener_also_where_memory_cannot_be_opened)
{
	struct uvd_proc proc = { .open = open_all_but_memory };
	struct child child = start_client();
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_opener opener;

	c.proc = &proc;
	ck_assert(!uvd_opener_take(&opener, &c));
	c.tgid = 0;
	ck_assert(uvd_opener_is(&opener, &c, -1, -1));
	child_end(&child);
	ck_assert_int_eq(fork_with_pid(child.pid), child.pid);
	ck_assert(!uvd_opener_is(&opener, &c, -1, -1));
	uvd_opener_drop(&opener);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
}
END_TEST

START_TEST(test_recycled_pid_does_not_inherit_what_a_relative_keeps)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct child child = start_client();
	pid_t relative = ask(&child, CLONE_MEMORY);
	struct uvd_mm *before = mm_of(t, child.pid), *after;

	child_end(&child);
	usleep(30000); /* start times are in ticks of 10 ms */
	ck_assert_int_eq(fork_with_pid(child.pid), child.pid);
	ck_assert(uvd_mm_alive(before));
	after = mm_of(t, child.pid);
	ck_assert_ptr_nonnull(after);
	ck_assert_ptr_ne(before, after);
	uvd_mm_put(before);
	uvd_mm_put(after);
	uvd_mm_table_free(t);
	kill(relative, SIGKILL);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
}
END_TEST

START_TEST(test_account_of_a_pid_out_of_reach_is_efault)
{
	struct uvd_mm_table *t = uvd_mm_table_new();

	ck_assert_ptr_null(mm_of(t, 0));
	ck_assert_int_eq(errno, EFAULT);
	uvd_mm_table_free(t);
}
END_TEST

START_TEST(test_own_process_has_an_account)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	struct uvd_caller c = { .mem = &uvd_mem_self };
	struct uvd_mm *mm = uvd_mm_get(t, &c);
	uint64_t got;

	ck_assert_ptr_nonnull(mm);
	ck_assert(!uvd_mm_read(mm, &got, AT(&word), 8) && got == word);
	uvd_mm_table_free(t); /* the mm stays valid without its owner's table */
	uvd_mm_put(uvd_mm_ref(mm));
	uvd_mm_put(mm);
}
END_TEST

static void *get_and_put(void *t)
{
	for (int i = 0; i < 200; i++) {
		struct uvd_mm *mm = mm_of(t, getpid());

		uvd_mm_charge(mm, 1);
		uvd_mm_charge(mm, -1);
		uvd_mm_put(uvd_mm_ref(mm));
		uvd_mm_put(mm);
	}
	return NULL;
}

START_TEST(test_accounts_come_and_go_on_many_threads)
{
	struct uvd_mm_table *t = uvd_mm_table_new();
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		ck_assert(!pthread_create(&thread[i], NULL, get_and_put, t));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	uvd_mm_table_free(t);
}
END_TEST

/* ---- openers ----------------------------------------------------------------------------------------------------- */

static bool is_opener(const struct uvd_opener *o, pid_t tid, uid_t fsuid)
{
	struct uvd_caller c = caller_of(tid);

	return uvd_opener_is(o, &c, fsuid, -1);
}

static struct uvd_opener opener_of(pid_t tid)
{
	struct uvd_caller c = caller_of(tid);
	struct uvd_opener o;

	ck_assert(!uvd_opener_take(&o, &c));
	return o;
}

static int open_without_pagemap(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return strcmp(name, "pagemap") ? uvd_proc_local.open(&uvd_proc_local, tid, name, flags) : -ENOENT;
}

START_TEST(test_threads_are_the_opener)
{
	struct child child = start_client();
	struct uvd_opener o = opener_of(child.pid);

	ck_assert(is_opener(&o, child.pid, -1));
	ck_assert(is_opener(&o, ask(&child, THREAD), 0));
	ck_assert(!is_opener(&o, child.pid, 65534));
	uvd_opener_drop(&o);
	child_end(&child);
}
END_TEST

START_TEST(test_forked_child_is_another_opener)
{
	struct child child = start_client();
	struct uvd_opener o = opener_of(child.pid);

	ck_assert(!is_opener(&o, ask(&child, FORK), -1));
	ck_assert(is_opener(&o, child.pid, -1));
	uvd_opener_drop(&o);
	child_end(&child);
}
END_TEST

START_TEST(test_clone_vm_relative_is_another_opener)
{
	struct child child = start_client();
	struct uvd_opener o = opener_of(child.pid);
	pid_t relative = ask(&child, CLONE_MEMORY);

	ck_assert(!is_opener(&o, relative, -1));
	kill(relative, SIGKILL);
	uvd_opener_drop(&o);
	child_end(&child);
}
END_TEST

/* _i 0: with pagemap; 1: as on a kernel without it. */
START_TEST(test_exec_makes_another_opener)
{
	struct uvd_proc without = { .open = open_without_pagemap };
	struct child child = start_client();
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_opener o;

	if (_i)
		c.proc = &without;
	ck_assert(!uvd_opener_take(&o, &c));
	ck_assert(is_opener(&o, child.pid, -1));
	ask(&child, EXEC);
	ck_assert(!is_opener(&o, child.pid, -1));
	uvd_opener_drop(&o);
	child_end(&child);
}
END_TEST

START_TEST(test_setuid_makes_another_opener)
{
	struct child child = start_client();
	struct uvd_opener o = opener_of(child.pid);

	ck_assert_int_eq(ask(&child, SETUID), 0);
	ck_assert(!is_opener(&o, child.pid, 65534));
	uvd_opener_drop(&o);
	child_end(&child);
}
END_TEST

START_TEST(test_user_and_group_of_the_opener_are_not_taken_for_each_other)
{
	struct child child = start_client();
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_opener o;

	ck_assert_int_eq(ask(&child, SETUID), 0); /* the group stays */
	ck_assert(!uvd_opener_take(&o, &c));
	ck_assert(o.fsuid == 65534 && o.fsgid == getgid());
	ck_assert(uvd_opener_is(&o, &c, 65534, getgid()));
	ck_assert(!uvd_opener_is(&o, &c, getgid(), 65534));
	ck_assert(!uvd_opener_is(&o, &c, 65534, 65534));
	ck_assert(!uvd_opener_is(&o, &c, getgid(), getgid()));
	uvd_opener_drop(&o);
	child_end(&child);
}
END_TEST

START_TEST(test_own_process_is_its_opener)
{
	struct uvd_caller c = { .mem = &uvd_mem_self };
	struct uvd_opener o;

	ck_assert(!uvd_opener_take(&o, &c));
	ck_assert_int_eq(o.tgid, getpid());
	ck_assert(uvd_opener_is(&o, &c, -1, -1));
	c.tgid = getppid();
	ck_assert(!uvd_opener_is(&o, &c, -1, -1));
	uvd_opener_drop(&o);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("mm");
	TCase *t = tcase_create("mm");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_memory_outlives_the_call);
	tcase_add_test(t, test_memory_by_number_is_that_of_the_process_or_none);
	tcase_add_test(t, test_number_of_a_caller_that_waits_no_more_is_not_taken);
	tcase_add_loop_test(t, test_client_that_is_added_while_another_one_is_has_its_own_memory, 0, 2);
	tcase_add_test(t, test_threads_share_the_account);
	tcase_add_loop_test(t, test_forked_child_has_another_account, 0, 2);
	tcase_add_loop_test(t, test_clone_vm_relative_shares_the_account, 0, 4);
	tcase_add_loop_test(t, test_relatives_are_told_by_the_callers_proc, 0, 2);
	tcase_add_test(t, test_processes_of_two_pid_namespaces_share_no_account);
	tcase_add_loop_test(t, test_exec_leaves_the_account, 0, 2);
	tcase_add_loop_test(t, test_exec_leaves_the_account_to_relatives, 0, 2);
	tcase_add_loop_test(t, test_exec_of_a_relative_leaves_the_account, 0, 2);
	tcase_add_test(t, test_forged_print_does_not_make_accounts_without_end);
	tcase_add_test(t, test_descriptors_of_an_address_space_and_of_an_opener_have_high_numbers);
	tcase_add_test(t, test_recycled_pid_is_never_reached);
	tcase_add_test(t, test_recycled_pid_is_another_opener_also_where_memory_cannot_be_opened);
	tcase_add_test(t, test_recycled_pid_does_not_inherit_what_a_relative_keeps);
	tcase_add_test(t, test_account_of_a_pid_out_of_reach_is_efault);
	tcase_add_test(t, test_own_process_has_an_account);
	tcase_add_test(t, test_accounts_come_and_go_on_many_threads);
	tcase_add_test(t, test_threads_are_the_opener);
	tcase_add_test(t, test_forked_child_is_another_opener);
	tcase_add_test(t, test_clone_vm_relative_is_another_opener);
	tcase_add_loop_test(t, test_exec_makes_another_opener, 0, 2);
	tcase_add_test(t, test_setuid_makes_another_opener);
	tcase_add_test(t, test_user_and_group_of_the_opener_are_not_taken_for_each_other);
	tcase_add_test(t, test_own_process_is_its_opener);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
