/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's list of its children. Each serves one socket of the engine process, and exits when that is closed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/waiting.h"
#include "broker/way.h"
#include "util/util.h"

enum { LOAN_MS = 10000 /* a loan takes milliseconds */, LOAN_MIB_MS = 20, LOAN_MAX_MS = 300000 };

static uint64_t children_now_ms(void)
{
	return uvd_now_ns() / 1000000;
}

/*
 * Closes all descriptors but the standard ones and these, which get the numbers from 3 on; -1: there is none. So the child has no
 * channel: a copy of one would keep the clients of a dead engine process waiting.
 */
static void keep_only(int *const keep[], unsigned int num)
{
	enum { ABOVE = 16 };
	int next = STDERR_FILENO + 1;

	for (unsigned int i = 0; i < num; i++)
		if (*keep[i] >= 0 && (*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, ABOVE)) < 0)
			_exit(1);
	for (unsigned int i = 0; i < num; i++) {
		if (*keep[i] < 0)
			continue;
		*keep[i] = dup3(*keep[i], next++, O_CLOEXEC);
		if (*keep[i] < 0)
			_exit(1);
	}
	close_range(next, ~0u, 0);
}

/* The page that a loan shares with the broker. NULL: no memory. */
static _Atomic uint32_t *registers_new(void)
{
	void *page = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* Call after the loan's fork(): later children must not inherit its page. Returns false if that fails. */
static bool registers_hide(_Atomic uint32_t *page)
{
	return !page || !madvise((void *)page, sizeof(*page), MADV_DONTFORK);
}

static void registers_free(_Atomic uint32_t *page)
{
	if (page)
		munmap((void *)page, sizeof(*page));
}

static void child_main(enum uvd_wire_kind kind, int sock, const struct uvd_borrower *borrower,
		       const struct uvd_child_files *given, _Atomic uint32_t *registers)
{
	struct uvd_child_files files = *given;
	struct uvd_ways *ways = files.ways;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* the terminal's is for the broker: this process ends with its socket */
	if (kind != UVD_WIRE_LOAN)
		files.queues = -1;
	keep_only((int *[]){ &sock, &ways->dir, &files.queues }, 3);
	ways->next = getpid(); /* unique among the loans: each process makes one name */
	if (kind == UVD_WIRE_QUESTIONS) {
		if (!uvd_process_role_take(UVD_PROCESS_QUESTIONS))
			_exit(1);
		uvd_questions_serve(sock, files.nodes);
	} else {
		uvd_loan_serve(sock, borrower, &files, registers);
		/* First all else: the last close may wait. */
		uvd_ways_close_all_but_held(ways);
	}
	_exit(0);
}

uint64_t uvd_loan_ms(uint32_t mib)
{
	return mib < (LOAN_MAX_MS - LOAN_MS) / LOAN_MIB_MS ? LOAN_MS + mib * LOAN_MIB_MS : LOAN_MAX_MS;
}

uint32_t uvd_loan_mib(uint64_t ms)
{
	return ms < LOAN_MAX_MS ? ms / LOAN_MIB_MS + 1 : LOAN_MAX_MS / LOAN_MIB_MS;
}

void uvd_children_init(struct uvd_children *children)
{
	const uint64_t mib = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;

	children->most_mib = mib < UINT32_MAX ? mib : UINT32_MAX;
}

/* The users' share of all loans, and of those whose child may hold a file of the client's. */
static const struct uvd_owners *loan_owners(const void *table, unsigned int i)
{
	const struct uvd_child *c = &((const struct uvd_children *)table)->list[i];

	return c->pid ? &c->owners : NULL;
}

static const struct uvd_owners *loan_owners_of_sender(const void *table, unsigned int i)
{
	const struct uvd_owners *owners = loan_owners(table, i);

	return owners && atomic_load(((const struct uvd_children *)table)->list[i].registers) & UVD_LOAN_PASSED
		       ? NULL
		       : owners;
}

static int loan_admit(const struct uvd_children *children, struct uvd_borrower *borrower)
{
	int err = uvd_owners_of(borrower->tid, &borrower->owners);

	if (err)
		return err;
	if (!uvd_owners_may_take(&borrower->owners, UVD_LOANS_OF_USER, UVD_LOANS_MAX, loan_owners, children) ||
	    !uvd_owners_may_take(&borrower->owners, UVD_WAY_SHARE, UVD_LOANS_MAX, loan_owners_of_sender, children))
		return -EAGAIN;
	return 0;
}

/* Returns a free entry; NULL: there is none, or `most` are in use that are not old. */
static struct uvd_child *children_find(struct uvd_child *list, unsigned int num, unsigned int most)
{
	struct uvd_child *found = NULL;

	for (struct uvd_child *c = list; c < list + num; c++) {
		if (!c->pid)
			found = found ?: c;
		else if (!c->old && !--most)
			return NULL;
	}
	return found;
}

int uvd_children_start(struct uvd_children *children, enum uvd_wire_kind kind, int sock, pid_t tid,
		       const struct uvd_child_files *files)
{
	struct uvd_borrower borrower = { .tid = tid };
	const bool is_loan = kind == UVD_WIRE_LOAN;
	struct uvd_child *c;
	_Atomic uint32_t *registers = NULL;
	int copy, err = 0;
	pid_t pid;

	if (kind == UVD_WIRE_CONTROL)
		return -EINVAL;
	c = is_loan ? children_find(children->list, UVD_LOANS_MAX, UVD_LOANS_MAX)
		    : children_find(children->list + UVD_LOANS_MAX, 2 * UVD_QUESTIONS_MAX, UVD_QUESTIONS_MAX);
	if (!c)
		return -EAGAIN;
	err = is_loan ? loan_admit(children, &borrower) : 0;
	if (err)
		return err;
	copy = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	if (is_loan)
		registers = registers_new();
	pid = is_loan && !registers ? -1 : fork();
	if (!pid)
		child_main(kind, sock, &borrower, files, registers);
	if (pid < 0) {
		err = -errno;
		registers_free(registers);
		close(copy);
		return err;
	}
	*c = (struct uvd_child){ .pid = pid,
				 .sock = copy,
				 .began = is_loan ? children_now_ms() : 0,
				 .owners = borrower.owners,
				 .registers = registers };
	if (!registers_hide(registers))
		kill(pid, SIGKILL);
	return pid;
}

void uvd_children_ended(struct uvd_children *children, pid_t pid)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++) {
		if (c->pid != pid)
			continue;
		close(c->sock);
		registers_free(c->registers);
		c->pid = 0;
	}
}

/* A client's thread that the loan has stopped dies with it (PTRACE_O_EXITKILL). One that was only seized goes on. */
static void loan_kill(struct uvd_child *c, bool over, struct uvd_log *log)
{
	if (over) {
		uvd_log_limited(log, UVD_WARN, "a file of user %u's does not answer: its loan's process cannot exit",
				c->owners.uid[0]);
	} else {
		uvd_log_limited(log, UVD_WARN, "a loan does not end: killing its process");
		/* If a file of the client's holds up its exit, too, the engine process must not wait for it. */
		shutdown(c->sock, SHUT_WR);
	}
	kill(c->pid, SIGKILL);
	c->began = 0;
}

void uvd_children_check(struct uvd_children *children, struct uvd_log *log)
{
	uint32_t left = children->most_mib, said, mib;

	for (unsigned int i = 0; i < UVD_LOANS_MAX; i++) {
		struct uvd_child *c = &children->list[i];

		if (!c->pid || !c->began)
			continue;
		said = atomic_load(c->registers);
		mib = said & UVD_LOAN_MIB;
		mib = mib < left ? mib : left;
		left -= mib;
		if (children_now_ms() < c->began + uvd_loan_ms(mib))
			continue;
		loan_kill(c, said & UVD_LOAN_OVER, log);
	}
}

void uvd_children_hang_up(struct uvd_children *children)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++) {
		if (!c->pid)
			continue;
		shutdown(c->sock, SHUT_RDWR);
		c->old = c >= children->list + UVD_LOANS_MAX;
	}
}

void uvd_children_close(struct uvd_children *children)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++)
		if (c->pid)
			close(c->sock);
}
