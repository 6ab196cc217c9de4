/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Finds out which thread calls, and on which file. Numbers alone do not tell: threads open and close files, share file
 * tables or not, and exec, and thread ids are reused. So the engine opens /proc/TID/fdinfo/FD. The kernel binds this
 * file to the thread, not to the number TID, and each read tells what FD stands for at that moment.
 *
 * Such a read is a sixth of the cost of a verb, so the engine uses its result again within the same tick of the kernel,
 * until something may have changed it. A number in use changes its meaning only if it is closed, and the filter traps
 * all calls that close a number in the windows, so the engine knows of them before the kernel carries them out. The
 * engine need not know which threads share a file table: a close by any thread of the tree makes the result for that
 * number stale for all threads. Until that thread calls again the engine does not know whether the close is over, so it
 * reads fdinfo for every call on that number. A close that the filter does not see (by the i386 system calls of a
 * 64-bit program, or by an io_uring that a process outside the tree made) goes unnoticed until the next tick at most.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "run/internal.h"
#include "run/link.h"

/*
 * The kernel allocates thread ids in turn, so it reuses the id of a killed thread only after thousands of others, which
 * takes more than a tick. Within one tick of the kernel's clock two things hold: what is reached by the caller's id is
 * the caller's or nobody's, and a second call under that id is from the same thread. Neither holds for programs that
 * may choose thread ids. For these the engine checks the second one by reading a file of /proc that is short, and so
 * cheap (same_thread()). It relies on the first one all the same, as the caller would have to be killed, and its id be
 * given to another thread, within one call. (A program that gains such rights in a pid namespace of its own chooses ids
 * there; the ids that we see are still allocated in turn.)
 */
enum { ENOUGH_PIDS = 32768 };

/* The time of the last tick (every 1 to 10 ms), never 0. Reading it costs an eighth of reading the precise time. */
static uint64_t slot_tick(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec + 1;
}

static void change_over(struct uvd_run_tree *tree)
{
	for (int i = 0; i < UVD_RUN_CHANGES; i++)
		if (tree->tid && tree->changes[i].tid == tree->tid) {
			tree->changes[i].tid = 0;
			tree->num_changes--;
		}
}

void uvd_run_caller_waits(struct uvd_run_tree *tree)
{
	if (tree->num_changes)
		change_over(tree);
	tree->around.len = 0;
	tree->tick = slot_tick();
}

/* Does the caller still wait? If so, what we opened by its id is its own. */
static bool run_caller_valid(struct uvd_run_tree *tree)
{
	return uvd_run_valid(tree->listener, tree->notif->n.id);
}

static bool id_is_good(struct uvd_run_tree *tree)
{
	return (tree->many_pids && tree->tick == slot_tick()) || run_caller_valid(tree);
}

/* ---- memory and /proc, each checked to be the caller's own ------------------------------------------------------- */

struct uvd_run_tree *uvd_run_tree_of(struct uvd_caller *c)
{
	return container_of(c->proc, struct uvd_run_tree, proc);
}

/*
 * Reads a short piece, and the bytes around it in the same page into tree->around: the response of a short command is
 * most likely there. Returns 0 or a negative errno if they cannot be read.
 */
static int read_around(struct uvd_run_tree *tree, void *dst, uint64_t src, size_t len)
{
	struct uvd_run_around *around = &tree->around;
	const uint64_t page = src / UVD_CPU_PAGE_MIN * UVD_CPU_PAGE_MIN;
	const uint64_t start = src - page < UVD_RUN_AROUND ? page : src - UVD_RUN_AROUND;
	const uint64_t page_end = page + UVD_CPU_PAGE_MIN;
	const uint64_t end = page_end - (src + len) < UVD_RUN_AROUND ? page_end : src + len + UVD_RUN_AROUND;
	int err = tree->mem->read(&tree->call->caller, around->bytes, start, end - start);

	if (err)
		return err;
	around->start = start;
	around->len = end - start;
	memcpy(dst, around->bytes + (src - start), len);
	return 0;
}

/* Are these bytes in the caller's memory already, according to the last read_around()? */
static bool is_there_already(struct uvd_run_tree *tree, uint64_t dst, const void *src, size_t len)
{
	struct uvd_run_around *around = &tree->around;
	const bool same = dst >= around->start && len <= around->len && dst - around->start <= around->len - len &&
			  !memcmp(around->bytes + (dst - around->start), src, len);

	around->len = 0; /* this write may make it stale */
	return same;
}

/* Checks the id after the read: if the thread ended meanwhile, the bytes may be another process's. */
static int checked_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	struct uvd_run_tree *tree = uvd_run_tree_of(c);
	const bool has_room = len <= UVD_RUN_AROUND && src % UVD_CPU_PAGE_MIN <= UVD_CPU_PAGE_MIN - len;
	int err = has_room ? read_around(tree, dst, src, len) : tree->mem->read(c, dst, src, len);

	return err ? err : id_is_good(tree) ? 0 : -EFAULT;
}

static ssize_t checked_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	struct uvd_run_tree *tree = uvd_run_tree_of(c);
	ssize_t n = tree->mem->read_ahead(c, dst, src, least, most);

	return n < 0 || id_is_good(tree) ? n : -EFAULT;
}

/* Checks the id before the write: the caller sleeps until we answer, and only a fatal signal wakes it. */
static int checked_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	struct uvd_run_tree *tree = uvd_run_tree_of(c);

	tree->around.len = 0;
	return id_is_good(tree) ? tree->mem->write(c, dst, src, len) : -EFAULT;
}

static int checked_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	struct uvd_run_tree *tree = uvd_run_tree_of(c);

	if (n == 1 && is_there_already(tree, v->addr, v->src, v->len))
		return 0;
	tree->around.len = 0;
	return id_is_good(tree) ? tree->mem->writev(c, v, n) : -EFAULT;
}

static const struct uvd_mem_ops checked_ops = {
	.read = checked_read,
	.write = checked_write,
	.writev = checked_writev,
	.read_ahead = checked_read_ahead,
};

/* To open "mem" takes the right to attach, which Yama gives to ancestors; the same user may open the other files. */
static int checked_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	struct uvd_run_tree *tree = container_of(proc, struct uvd_run_tree, proc);
	int fd;

	if (tree->agent >= 0 && (tree->proc.base || !strcmp(name, "mem")))
		fd = uvd_run_agent_open(tree->agent, uvd_run_number(tree, tid), name, flags);
	else
		fd = uvd_proc_local.open(&uvd_proc_local, tid, name, flags);
	if (fd >= 0 && !id_is_good(tree)) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}

/* struct uvd_proc.same_memory, for numbers that mean nothing here. */
static bool slot_same_memory(struct uvd_proc *proc, pid_t a, pid_t b)
{
	struct uvd_run_tree *tree = container_of(proc, struct uvd_run_tree, proc);

	return uvd_run_agent_same_memory(tree->agent, uvd_run_number(tree, a), uvd_run_number(tree, b));
}

static bool slot_call_waits(struct uvd_caller *c)
{
	return run_caller_valid(uvd_run_tree_of(c));
}

static bool have_many_pids(void)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	int max = 0;

	if (!f)
		return false;
	if (fscanf(f, "%d", &max) != 1)
		max = 0;
	fclose(f);
	return max >= ENOUGH_PIDS;
}

pid_t uvd_run_base_new(struct uvd_run_engine *e)
{
	enum { BASES = INT_MAX / UVD_PROC_NUMBERS };
	const struct uvd_run_tree *t;

	for (int i = 0; i < BASES; i++) {
		e->last_base = e->last_base % BASES + 1;
		for (t = e->trees; t && t->proc.base != e->last_base * UVD_PROC_NUMBERS; t = t->next)
			;
		if (!t)
			return e->last_base * UVD_PROC_NUMBERS;
	}
	return 0;
}

void uvd_run_callers_init(struct uvd_run_tree *tree)
{
	/* Another pid namespace may have few numbers, or a program there the right to choose them. */
	tree->many_pids = !tree->proc.base && have_many_pids();
	tree->proc.open = checked_open;
	tree->proc.same_memory = tree->proc.base ? slot_same_memory : NULL;
	tree->proc.bulk_by_number = tree->agent < 0; /* Yama keeps process_vm_readv() from processes of another run */
	tree->mem = tree->agent >= 0 ? &uvd_mem_procfd : &uvd_mem_process;
}

struct uvd_caller uvd_run_caller_init(struct uvd_run_tree *tree)
{
	return (struct uvd_caller){
		.mem = &checked_ops,
		.proc = &tree->proc,
		.account = tree->account,
		.memfd = -1,
		.waits = slot_call_waits,
	};
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static void slot_drop(struct uvd_run_slot *s)
{
	if (!s->tid)
		return;
	if (s->fdinfo >= 0)
		close(s->fdinfo);
	if (s->life >= 0)
		close(s->life);
	if (s->memfd >= 0)
		close(s->memfd);
	if (s->mapsfd >= 0)
		close(s->mapsfd);
	s->tid = 0;
}

void uvd_run_callers_fini(struct uvd_run_tree *tree)
{
	for (int i = 0; i < UVD_RUN_SLOT_SETS; i++)
		for (int j = 0; j < UVD_RUN_SLOT_WAYS; j++)
			slot_drop(&tree->slots[i][j]);
}

static struct uvd_run_slot *slot_set(struct uvd_run_tree *tree, pid_t tid, int fd)
{
	return tree->slots[((unsigned int)tid * 7 + (unsigned int)fd) % UVD_RUN_SLOT_SETS];
}

static int slot_ids(struct uvd_run_tree *tree, struct uvd_run_slot *s)
{
	struct uvd_identity id;
	int err = uvd_caller_identity(&tree->call->caller, &id);

	if (err)
		return err;
	s->tgid = id.tgid;
	s->fsuid = id.fsuid;
	s->fsgid = id.fsgid;
	s->ids_stale = false;
	s->opener_of = 0;
	return 0;
}

/* Is there a thread of this number? */
static bool thread_exists(struct uvd_run_tree *tree, pid_t tid)
{
	int fd;

	if (!tree->proc.base)
		return !syscall(SYS_tkill, tid, 0) || errno != ESRCH;
	fd = tree->proc.open(&tree->proc, tid, "comm", O_PATH);
	if (fd >= 0)
		close(fd);
	return fd != -ENOENT;
}

/* If a thread has ended, its call is over, and no further call of it will tell us. Drops the call then. */
static bool change_drop_if_over(struct uvd_run_tree *tree, struct uvd_run_change *c)
{
	if (!c->ends_with_id || thread_exists(tree, c->tid))
		return false;
	c->tid = 0;
	tree->num_changes--;
	return true;
}

/* May a call that the kernel carries out at this moment close this fd? */
static bool may_change(struct uvd_run_tree *tree, int fd)
{
	bool it_may = tree->num_changes > UVD_RUN_CHANGES; /* the list has overflowed */

	for (int i = 0; tree->num_changes && i < UVD_RUN_CHANGES && !it_may; i++) {
		struct uvd_run_change *c = &tree->changes[i];

		if (c->tid && (c->fd < 0 || c->fd == fd))
			it_may = !change_drop_if_over(tree, c);
	}
	return it_may;
}

static struct uvd_run_slot *slot_new(struct uvd_run_tree *tree, pid_t tid, int fd)
{
	struct uvd_run_slot *set = slot_set(tree, tid, fd), *s = set;
	char name[32] = "comm"; /* for a slot without an fd: readable while the thread lives */

	for (int i = 1; i < UVD_RUN_SLOT_WAYS && s->tid; i++)
		if (!set[i].tid || (int)(set[i].used - s->used) < 0)
			s = &set[i];
	slot_drop(s);
	if (fd >= 0)
		snprintf(name, sizeof(name), "fdinfo/%d", fd);
	*s = (struct uvd_run_slot){ .tid = tid, .fd = fd, .life = -1, .memfd = -1, .mapsfd = -1 };
	s->once = tree->agent >= 0 && may_change(tree, -1);
	s->fdinfo = tree->proc.open(&tree->proc, tid, name, O_RDONLY);
	if (s->fdinfo >= 0 && tree->agent >= 0)
		s->memfd = tree->proc.open(&tree->proc, tid, "mem", O_RDWR);
	if (s->memfd >= 0)
		s->mapsfd = tree->proc.open(&tree->proc, tid, "maps", O_RDONLY);
	if (s->fdinfo >= 0 && (tree->agent < 0 || s->mapsfd >= 0) && !slot_ids(tree, s))
		return s;
	slot_drop(s);
	return NULL;
}

static bool ids_in_turn(const struct uvd_run_tree *tree)
{
	return tree->many_pids && !tree->chooses_ids;
}

/* In the tick s->asked: is the caller the thread of this slot? A read of s->life gives ESRCH once that has ended. */
static bool same_thread(struct uvd_run_tree *tree, struct uvd_run_slot *s)
{
	char text[16];

	return ids_in_turn(tree) || pread(s->life, text, sizeof(text), 0) > 0;
}

/*
 * Reads fdinfo, and remembers the result for this tick if we will see whatever changes it. Returns false if the fd is
 * closed or the thread has ended.
 */
static bool slot_ask(struct uvd_run_tree *tree, struct uvd_run_slot *s)
{
	/* Check before the read: a close may take effect after the read, and be over before a later check. */
	bool stays = !tree->many_ways && !may_change(tree, s->fd);

	s->asked = 0;
	if (uvd_run_inode_read(s->fdinfo, &s->inode))
		return false;
	for (int i = 0; i < UVD_RUN_WINDOWS; i++)
		if (stays && uvd_run_in_window(&tree->windows[i], s->fd))
			s->asked = tree->tick;
	if (!s->asked || ids_in_turn(tree))
		return true;
	if (s->life < 0)
		s->life = tree->proc.open(&tree->proc, s->tid, "oom_score_adj", O_RDONLY);
	if (s->life < 0)
		s->asked = 0;
	return true;
}

/* Is the slot still valid? If the thread has left an address space by exec, a read of its memfd returns 0. */
static bool slot_current(struct uvd_run_tree *tree, struct uvd_run_slot *s, struct uvd_run_inode *inode)
{
	char byte;

	if (s->memfd >= 0 && !pread(s->memfd, &byte, 1, 0))
		return false;
	if (s->fd < 0)
		return pread(s->fdinfo, &byte, 1, 0) == 1;
	if (tree->tick == s->asked ? !same_thread(tree, s) : !slot_ask(tree, s))
		return false;
	*inode = s->inode;
	return true;
}

static struct uvd_run_slot *slot_get(struct uvd_run_tree *tree, pid_t tid, int fd, struct uvd_run_inode *inode)
{
	struct uvd_run_slot *set = slot_set(tree, tid, fd), *s;

	for (s = set; s < set + UVD_RUN_SLOT_WAYS; s++) {
		if (s->tid != tid || s->fd != fd)
			continue;
		if (!s->once && slot_current(tree, s, inode))
			return s;
		slot_drop(s); /* the thread has ended, or the fd is closed */
	}
	s = slot_new(tree, tid, fd);
	return s && slot_current(tree, s, inode) ? s : NULL;
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

/* s: the caller's slot; NULL: none yet. */
static void set_caller(struct uvd_run_tree *tree, const struct uvd_run_slot *s)
{
	tree->call->caller.tid = tree->tid;
	tree->call->caller.tgid = s ? s->tgid : 0;
	tree->call->caller.memfd = s ? s->memfd : -1;
	tree->call->caller.mapsfd = s ? s->mapsfd : -1;
}

bool uvd_run_caller(struct uvd_run_tree *tree)
{
	struct uvd_run_slot *s;

	set_caller(tree, NULL);
	if (tree->agent < 0)
		return true;
	s = slot_get(tree, tree->tid, -1, NULL);
	if (s)
		set_caller(tree, s);
	return s;
}

struct uvd_run_slot *uvd_run_caller_fd(struct uvd_run_tree *tree, int fd, struct uvd_run_inode *inode)
{
	struct uvd_run_slot *s;

	set_caller(tree, NULL);
	s = fd < 0 ? NULL : slot_get(tree, tree->tid, fd, inode);
	if (!s || (s->ids_stale && slot_ids(tree, s)))
		return NULL;
	s->used = ++tree->clock;
	set_caller(tree, s);
	return s;
}

void uvd_run_slots_forget(struct uvd_run_tree *tree, int fd)
{
	for (int i = 0; i < UVD_RUN_SLOT_SETS; i++)
		for (int j = 0; j < UVD_RUN_SLOT_WAYS; j++)
			if (fd < 0 || tree->slots[i][j].fd == fd)
				tree->slots[i][j].asked = 0;
}

/* Returns a place for one more change, or NULL. */
static struct uvd_run_change *change_place(struct uvd_run_tree *tree)
{
	struct uvd_run_change *c, *end = tree->changes + UVD_RUN_CHANGES;

	for (c = tree->changes; c < end; c++)
		if (!c->tid)
			return c;
	for (c = tree->changes; c < end; c++)
		if (change_drop_if_over(tree, c))
			return c;
	return NULL;
}

static void change_add(struct uvd_run_tree *tree, int fd, bool ends_with_id)
{
	struct uvd_run_change *c = change_place(tree);

	if (!c) {
		tree->num_changes = INT_MAX / 2; /* too many to know when all are over */
		return;
	}
	*c = (struct uvd_run_change){ .tid = tree->tid, .fd = fd, .ends_with_id = ends_with_id };
	tree->num_changes++;
}

void uvd_run_caller_closes(struct uvd_run_tree *tree, int fd)
{
	uvd_run_slots_forget(tree, fd);
	change_add(tree, fd, true);
}

/* Is this the first thread of its process? */
static bool is_first_thread(struct uvd_run_tree *tree, pid_t tid)
{
	if (tree->proc.base)
		return uvd_run_caller(tree) && tid == tree->call->caller.tgid;
	return !syscall(SYS_tgkill, tid, tid, 0) || errno != ESRCH;
}

/*
 * A thread that was found to be in the opener's address space stays there until exec, so exec is trapped. Until the
 * thread that execs calls again we do not know whether its exec is over, so uvd_run_caller_opened() checks every
 * write(). An exec also closes files, which can be any. A process that exits when its exec has failed makes no further
 * call, so its end counts, too. The end of another thread than the first one does not: its exec goes on under the
 * process's id.
 */
void uvd_run_caller_exec(struct uvd_run_tree *tree)
{
	for (int i = 0; i < UVD_RUN_SLOT_SETS; i++)
		for (int j = 0; j < UVD_RUN_SLOT_WAYS; j++)
			tree->slots[i][j].opener_of = 0;
	uvd_run_slots_forget(tree, -1);
	change_add(tree, -1, is_first_thread(tree, tree->tid));
	/* The child of a vfork() leaves its parent's memory, which stays in use: no read of a slot's memfd would tell. */
	if (tree->agent >= 0)
		uvd_run_callers_fini(tree);
}

bool uvd_run_caller_opened(struct uvd_run_tree *tree, struct uvd_run_slot *s, const struct uvd_run_opener *o)
{
	if (s->opener_of == o->serial)
		return true;
	if (!uvd_opener_is(&o->who, &tree->call->caller, s->fsuid, s->fsgid))
		return false;
	if (!tree->num_changes)
		s->opener_of = o->serial;
	return true;
}

void uvd_run_caller_setid(struct uvd_run_tree *tree)
{
	for (int i = 0; i < UVD_RUN_SLOT_SETS; i++)
		for (int j = 0; j < UVD_RUN_SLOT_WAYS; j++)
			if (tree->slots[i][j].tid == tree->tid)
				tree->slots[i][j].ids_stale = true;
}
