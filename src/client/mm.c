/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address spaces that hold registered memory.
 *
 * Memory is accessed through a /proc/PID/mem fd, which stays bound to the address space that it was opened on. It reads
 * nothing after an exec or exit, and it never accesses a process that got the pid later.
 *
 * It is harder to find the struct uvd_mm of a caller, because userspace has no name for an mm. So each struct uvd_mm
 * lists the processes that were seen in it (pid and start time), and keeps a fingerprint (`print`) of the exec that
 * made it: a hash of the auxiliary vector, which has addresses that are random at each exec. A caller belongs to it if
 * the caller's fingerprint is the same, and the caller is one of these processes or shares memory with one of them
 * (kcmp()). The fingerprint alone cannot tell a forked child from its parent, and the process alone cannot show an
 * exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/mm.h>

#include "account/account.h"
#include "client/client.h"
#include "client/internal.h"
#include "client/maps.h"
#include "client/mm_internal.h"
#include "util/util.h"

/*
 * A process that is a member of this many live address spaces with other fingerprints belongs to one of them.
 * Otherwise it could forge its fingerprint (PR_SET_MM_MAP) again and again, to escape its charges and to cost us
 * descriptors each time. An honest process is a member of a second one only if it left the first by exec while another
 * process stayed there.
 */
#define SPACES_OF_A_PROCESS 4

struct member {
	struct member *next;
	uint64_t serial; /* unique in the table; a copy has the same one */
	pid_t tgid;
	uint64_t starttime;
};

struct uvd_mm_table {
	pthread_mutex_t lock; /* protects the list and all members; nothing that waits for a client is done under it */
	struct list_head mms; /* newest first */
	unsigned int refs; /* one for each mm, one for the owner */
	uint64_t added, serial; /* numbers of mms and members added so far */
};

struct uvd_mm_table *uvd_mm_table_new(void)
{
	struct uvd_mm_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	INIT_LIST_HEAD(&t->mms);
	t->refs = 1;
	return t;
}

/* Puts a reference, and unlocks t->lock. The last put frees the table. */
static void table_put_unlock(struct uvd_mm_table *t)
{
	bool last = !--t->refs;

	uvd_unlock(&t->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void uvd_mm_table_free(struct uvd_mm_table *t)
{
	uvd_lock(&t->lock);
	table_put_unlock(t);
}

/* ---- processes and fingerprints ---------------------------------------------------------------------------------- */

static uint64_t fnv1a(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t hash = 0xcbf29ce484222325ull;

	while (len--)
		hash = (hash ^ *p++) * 0x100000001b3ull;
	return hash;
}

static int take_print(struct uvd_caller *c, uint64_t *print)
{
	char auxv[1024];
	ssize_t n = uvd_proc_read(c, uvd_proc_tid(c), "auxv", auxv, sizeof(auxv));

	if (n < 0)
		return n == -ENOENT ? -ESRCH : n;
	*print = fnv1a(auxv, n);
	return 0;
}

/*
 * Reads field 22 of /proc/PID/stat. The name in field 2 may contain anything, so count from its end. Returns 0 or a
 * negative errno; -ESRCH: there is no such process. Other errors say nothing about the process.
 */
static int process_starttime(struct uvd_caller *c, pid_t tgid, uint64_t *starttime)
{
	char stat[1024], *p;
	ssize_t n = uvd_proc_read(c, tgid, "stat", stat, sizeof(stat));

	if (n < 0)
		return n == -ENOENT ? -ESRCH : n;
	p = strrchr(stat, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	if (!p)
		return -ESRCH;
	*starttime = strtoull(p, NULL, 10);
	return 0;
}

static bool shares_memory(struct uvd_caller *c, pid_t b)
{
	pid_t a = uvd_proc_tid(c);

	uvd_might_fault();
	if (c->proc && c->proc->same_memory)
		return c->proc->same_memory(c->proc, a, b);
	return !syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);
}

static bool has_process(const struct uvd_mm *mm, pid_t tgid, uint64_t starttime)
{
	for (const struct member *m = mm->members; m; m = m->next)
		if (m->tgid == tgid && m->starttime == starttime)
			return true;
	return false;
}

/* Caller holds t->lock. Returns 0 or -ENOMEM. */
static int mm_add_member(struct uvd_mm_table *t, struct uvd_mm *mm, pid_t tgid, uint64_t starttime)
{
	struct member *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = (struct member){ .next = mm->members, .serial = ++t->serial, .tgid = tgid, .starttime = starttime };
	mm->members = m;
	return 0;
}

static void free_members(struct member *m)
{
	while (m) {
		struct member *next = m->next;

		free(m);
		m = next;
	}
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* The caller whose address space the search looks for. */
struct wanted {
	struct uvd_caller *c;
	pid_t tgid;
	uint64_t starttime, print;
	pid_t base;
};

/*
 * An address space that may be the caller's, with a copy of its members. A question about a process can take as long as
 * a client likes (kcmp() waits for an exec, which waits for memory). So it is asked about the copy, without the table's
 * lock.
 */
struct candidate {
	struct uvd_mm *mm;
	bool seen; /* the caller's process is a member */
	struct member *members;
};

struct search {
	struct candidate *candidates; /* newest first; each holds a reference */
	unsigned int num;
	uint64_t added; /* the table's, when the candidates were collected */
};

/* Caller holds t->lock. Returns 0 or -ENOMEM; in both cases search_end() frees what *s holds. */
static int search_collect(struct uvd_mm_table *t, const struct wanted *w, struct search *s)
{
	struct uvd_mm *mm;
	unsigned int max = 0;

	*s = (struct search){ .added = t->added };
	list_for_each_entry(mm, &t->mms, of_table)
		max++;
	s->candidates = calloc(max + 1, sizeof(*s->candidates));
	if (!s->candidates)
		return -ENOMEM;
	list_for_each_entry(mm, &t->mms, of_table) {
		struct candidate *k = &s->candidates[s->num];
		bool seen = has_process(mm, w->tgid, w->starttime);

		/*
		 * Processes of different pid namespaces have no number for each other. And their files of /proc come from the
		 * agent of whoever joined, who must not keep a thread that serves others.
		 */
		if (mm->base != w->base || (!seen && mm->print != w->print))
			continue;
		*k = (struct candidate){ .mm = uvd_mm_ref(mm), .seen = seen };
		s->num++;
		for (const struct member *m = mm->members; m; m = m->next) {
			struct member *copy = malloc(sizeof(*copy));

			if (!copy)
				return -ENOMEM;
			*copy = *m;
			copy->next = k->members;
			k->members = copy;
		}
	}
	return 0;
}

/* Call it without the table's lock, as uvd_mm_put() takes it. */
static void search_end(struct search *s)
{
	for (unsigned int i = 0; i < s->num; i++) {
		free_members(s->candidates[i].members);
		uvd_mm_put(s->candidates[i].mm);
	}
	free(s->candidates);
}

static bool is_there(const struct member *m, struct uvd_caller *c)
{
	uint64_t starttime;

	return !process_starttime(c, m->tgid, &starttime) && starttime == m->starttime;
}

static bool has_relative(const struct candidate *k, struct uvd_caller *c)
{
	for (const struct member *m = k->members; m; m = m->next)
		if (shares_memory(c, m->tgid) && is_there(m, c))
			return uvd_caller_waits(c);
	return false;
}

/* Call it without the table's lock. Returns the caller's address space, or NULL: it is none of the candidates. */
static const struct candidate *search_choose(const struct search *s, const struct wanted *w)
{
	unsigned int spaces = 0;

	for (const struct candidate *k = s->candidates; k < s->candidates + s->num; k++)
		if (k->seen && uvd_mm_alive(k->mm) && (k->mm->print == w->print || ++spaces == SPACES_OF_A_PROCESS))
			return k;
	for (const struct candidate *k = s->candidates; k < s->candidates + s->num; k++)
		if (k->mm->print == w->print && uvd_mm_alive(k->mm) && has_relative(k, w->c))
			return k;
	return NULL;
}

/*
 * Call it without the table's lock. Clears the tgid of the copied members, except of those whose process is gone. The
 * caller's process exists, so its start time is known.
 */
static void keep_gone(const struct candidate *k, const struct wanted *w)
{
	for (struct member *m = k->members; m; m = m->next) {
		uint64_t starttime = w->starttime;
		int err = m->tgid == w->tgid ? 0 : process_starttime(w->c, m->tgid, &starttime);

		if (err ? err != -ESRCH : starttime == m->starttime)
			m->tgid = 0;
	}
}

/* Caller holds the table's lock. Frees the members that keep_gone() found gone, and adds the caller's process. */
static void join_members(const struct candidate *k, const struct wanted *w)
{
	for (const struct member *gone = k->members; gone; gone = gone->next)
		for (struct member **p = &k->mm->members; *p && gone->tgid;) {
			struct member *m = *p;

			if (m->serial != gone->serial) {
				p = &m->next;
				continue;
			}
			*p = m->next;
			free(m);
		}
	/* If this fails with -ENOMEM, kcmp() finds the process again next time. */
	if (!has_process(k->mm, w->tgid, w->starttime))
		(void)mm_add_member(k->mm->table, k->mm, w->tgid, w->starttime);
}

enum { MM_DESCRIPTORS = 3 /* memfd, mmfd, mapsfd; the pidfd counts extra */ };

static void mm_uncharge(struct uvd_account *account, unsigned int descriptors)
{
	uvd_account_uncharge(account, UVD_RES_BYTES, sizeof(struct uvd_mm));
	uvd_account_uncharge(account, UVD_RES_DESCRIPTORS, descriptors);
}

static int mm_charge(struct uvd_account *account, unsigned int descriptors)
{
	int ret = uvd_account_charge(account, UVD_RES_DESCRIPTORS, descriptors);

	if (ret)
		return ret;
	ret = uvd_account_charge(account, UVD_RES_BYTES, sizeof(struct uvd_mm));
	if (ret)
		uvd_account_uncharge(account, UVD_RES_DESCRIPTORS, descriptors);
	return ret;
}

/* The descriptors for the caller's address space; -1: none. */
struct fds {
	int mem, mm, pid;
};

static void fds_close(const struct fds *fds)
{
	if (fds->mem >= 0)
		close(fds->mem);
	if (fds->mm >= 0)
		close(fds->mm);
	if (fds->pid >= 0)
		close(fds->pid);
}

/*
 * Caller holds t->lock. Takes ownership of the descriptors; on failure returns NULL and sets *err, and does not take
 * them.
 */
static struct uvd_mm *mm_table_add(struct uvd_mm_table *t, const struct fds *fds, const struct wanted *w, int *err)
{
	const unsigned int descriptors = MM_DESCRIPTORS + (fds->pid >= 0);
	struct uvd_mm *mm;

	*err = mm_charge(w->c->account, descriptors);
	if (*err)
		return NULL;
	mm = calloc(1, sizeof(*mm));
	if (!mm || mm_add_member(t, mm, w->tgid, w->starttime)) {
		free(mm);
		mm_uncharge(w->c->account, descriptors);
		*err = -ENOMEM;
		return NULL;
	}
	mm->account = uvd_account_ref(w->c->account);
	mm->table = t;
	mm->memfd = uvd_fd_raise(fds->mem);
	mm->mmfd = uvd_fd_raise(fds->mm);
	mm->bulk_tgid = w->tgid;
	mm->pidfd = uvd_fd_raise(fds->pid);
	atomic_init(&mm->mapsfd, -1);
	pthread_mutex_init(&mm->maps_lock, NULL);
	pthread_mutex_init(&mm->views_lock, NULL);
	INIT_LIST_HEAD(&mm->views);
	mm->print = w->print;
	mm->base = w->base;
	atomic_init(&mm->refs, 1);
	list_add(&mm->of_table, &t->mms);
	t->refs++;
	t->added++;
	return mm;
}

/*
 * Opens the descriptors by thread id: the first thread of a process may have exited, and then has no memory. Each
 * descriptor is used only if the call still waits after the open: until then, the ids are the caller's. Returns 0 or a
 * negative errno. On failure too the caller closes what is open.
 */
static int fds_open(struct fds *fds, const struct wanted *w)
{
	struct uvd_caller *c = w->c;
	const pid_t tid = uvd_proc_tid(c);

	fds->mem = uvd_proc_open(c, tid, "mem", O_RDWR);
	if (fds->mem < 0)
		return fds->mem == -ENOENT ? -ESRCH : fds->mem;
	fds->mm = uvd_mmfd_open(c, tid);
	if (fds->mm < 0)
		return fds->mm;
	if (c->proc && c->proc->bulk_by_number)
		fds->pid = syscall(SYS_pidfd_open, w->tgid, 0);
	return !uvd_mmfd_alive(fds->mm) || (fds->pid >= 0 && !uvd_caller_waits(c)) ? -ESRCH : 0;
}

/*
 * Returns a reference to the caller's address space in the table, or adds it; NULL: *err has a negative errno. Opens
 * descriptors only to add it, and without the table's lock.
 */
static struct uvd_mm *find_or_add(struct uvd_mm_table *t, const struct wanted *w, int *err)
{
	struct fds fds = { -1, -1, -1 };
	const struct candidate *k = NULL;
	struct uvd_mm *mm = NULL;
	struct search s;
	bool again;

	do {
		uvd_lock(&t->lock);
		*err = search_collect(t, w, &s);
		uvd_unlock(&t->lock);
		if (!*err)
			k = search_choose(&s, w);
		if (k)
			keep_gone(k, w);
		else if (!*err && fds.mem < 0)
			*err = fds_open(&fds, w);
		uvd_lock(&t->lock);
		/* Another thread may have added the caller's address space meanwhile. */
		again = !*err && !k && t->added != s.added;
		if (k) {
			join_members(k, w);
			mm = uvd_mm_ref(k->mm);
		} else if (!*err && !again) {
			mm = mm_table_add(t, &fds, w, err);
			if (mm)
				fds = (struct fds){ -1, -1, -1 };
		}
		uvd_unlock(&t->lock);
		search_end(&s);
	} while (again);
	fds_close(&fds);
	return mm;
}

struct uvd_mm *uvd_mm_get(struct uvd_mm_table *t, struct uvd_caller *c)
{
	struct wanted w = { .c = c, .base = c->proc ? c->proc->base : 0 };
	struct uvd_mm *mm = NULL;
	int err;

	if (!uvd_proc_tid(c)) {
		errno = EFAULT;
		return NULL;
	}
	w.tgid = uvd_caller_tgid(c);
	err = w.tgid < 0 ? w.tgid : process_starttime(c, w.tgid, &w.starttime);
	if (!err)
		err = take_print(c, &w.print);
	if (!err)
		mm = find_or_add(t, &w, &err);
	errno = -err;
	return mm;
}

/* ---- life time --------------------------------------------------------------------------------------------------- */

struct uvd_mm *uvd_mm_ref(struct uvd_mm *mm)
{
	atomic_fetch_add_explicit(&mm->refs, 1, memory_order_relaxed);
	return mm;
}

static void mm_free(struct uvd_mm *mm)
{
	free_members(mm->members);
	close(mm->memfd);
	close(mm->mmfd);
	if (mm->pidfd >= 0)
		close(mm->pidfd);
	if (mm->mapsfd >= 0)
		close(mm->mapsfd);
	pthread_mutex_destroy(&mm->maps_lock);
	pthread_mutex_destroy(&mm->views_lock);
	mm_uncharge(mm->account, MM_DESCRIPTORS + (mm->pidfd >= 0));
	uvd_account_put(mm->account);
	free(mm);
}

void uvd_mm_put(struct uvd_mm *mm)
{
	struct uvd_mm_table *t = mm->table;

	/* Drop the count under the lock, so that uvd_mm_get() never finds an mm without a reference. */
	uvd_lock(&t->lock);
	if (atomic_fetch_sub(&mm->refs, 1) > 1) {
		uvd_unlock(&t->lock);
		return;
	}
	list_del_init(&mm->of_table);
	table_put_unlock(t);
	mm_free(mm);
}

bool uvd_mm_alive(struct uvd_mm *mm)
{
	return uvd_mmfd_alive(mm->mmfd);
}

uint64_t uvd_mm_charge(struct uvd_mm *mm, int64_t pages)
{
	return atomic_fetch_add(&mm->charged, (uint64_t)pages) + pages;
}

void uvd_mm_table_each(struct uvd_mm_table *t, void (*fn)(void *arg, pid_t tgid, uint64_t pages), void *arg)
{
	struct uvd_mm *mm;

	uvd_lock(&t->lock);
	list_for_each_entry(mm, &t->mms, of_table)
		if (mm->charged)
			fn(arg, mm->members ? mm->members->tgid : 0, mm->charged);
	uvd_unlock(&t->lock);
}
