/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The caller: a thread of a client that waits in a call on the device. Its memory, identity and rights.
 *
 * A caller is only valid until the transport answers the call: after that its thread id and its memory may be anything.
 * What outlives the call (registered memory) goes through struct uvd_mm.
 */
#ifndef UVD_CLIENT_CALLER_H
#define UVD_CLIENT_CALLER_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "util/util.h"

struct uvd_account;
struct uvd_accounts;
struct uvd_caller;

/*
 * How files below /proc/TID are opened. Normally by ourselves; where Yama forbids that (an engine that serves trees which
 * are not its children), by the supervisor of that tree, which passes the fd on.
 */
struct uvd_proc {
	/*
	 * name: "mem", "maps", "status", "limits", "fd/7" (with O_PATH)... flags as for open(); O_CLOEXEC is added.
	 * An fd that the caller of this function owns, or a negative errno. Nothing is confirmed: see uvd_proc_open().
	 */
	int (*open)(struct uvd_proc *proc, pid_t tid, const char *name, int flags);
	/* kcmp(): does the caller's thread share its memory with the other process? NULL: we may ask ourselves. */
	bool (*same_memory)(struct uvd_proc *proc, pid_t tid, pid_t other);
	/*
	 * Clients have our user and no more rights: much of a registration's memory at once may go by process_vm_*, whose number we
	 * only know to have been the process's before and after.
	 */
	bool bulk_by_number;
	bool tells_owners; /* open("owners") gives an array of uid_t: the owners of the thread's user namespaces, below ours */
};

/* Opens /proc itself. */
extern struct uvd_proc uvd_proc_local;

/*
 * Remembers what this room asks of our own /proc and /sys, for a process that is about to lose sight of them. Call it while
 * there is one thread.
 */
void uvd_client_prepare(void);

/* One piece of a write to several places: see writev. */
struct uvd_write_vec {
	uint64_t addr; /* the client's */
	const void *src;
	size_t len;
};

enum { UVD_WRITEV_AT_ONCE = 32 }; /* pieces that uvd_mem_process writes with one system call */

struct uvd_mem_ops {
	/* Exactly len bytes or -EFAULT. Page protections are honoured. */
	int (*read)(struct uvd_caller *c, void *dst, uint64_t src, size_t len);
	int (*write)(struct uvd_caller *c, uint64_t dst, const void *src, size_t len);
	/* All pieces, in order, in one system call where there is one; else -EFAULT, and some may have been written. */
	int (*writev)(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n);
	/*
	 * At least `least` bytes, and of what follows as much as can be read now, up to `most`: to save a second call for what
	 * the client probably has there. How many, or -EFAULT. NULL: only what the client named is read.
	 */
	ssize_t (*read_ahead)(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most);
};

struct uvd_caller {
	const struct uvd_mem_ops *mem;
	struct uvd_proc *proc;
	pid_t tid; /* in our pid namespace; 0: the client is outside of it, and its memory is out of reach */
	pid_t tgid; /* 0: not looked up yet, see uvd_caller_tgid() */
	int memfd; /* /proc/TID/mem for uvd_mem_procfd and uvd_mem_held, else -1; the transport's */
	int mapsfd; /* /proc/TID/maps for uvd_mem_held */
	/*
	 * The transport's: does the call still wait for its answer at this moment? NULL: always (the client is this process, or
	 * is held). A call can be let go early, when its client has a signal or the channel is aborted; then its thread may run
	 * another program, and its number may be another thread's. So whatever has been learned by the number counts only if this
	 * says true *afterwards*; see uvd_caller_confirm().
	 */
	bool (*waits)(struct uvd_caller *c);
	/*
	 * The transport's: takes the right to answer, so that the call is not let go any more. False: it was, and must change
	 * nothing. NULL: nobody else answers.
	 */
	bool (*claim)(struct uvd_caller *c);
	struct uvd_account *account; /* who pays for descriptors that we keep of it beyond the call; NULL: nobody */
	atomic_bool let_go; /* the transport has let it go, so it ends with -EINTR at its next step */
};

static inline bool uvd_caller_waits(struct uvd_caller *c)
{
	return !c->waits || c->waits(c);
}

/* For what was asked of the thread by its number: returns ret, or -EINTR if the answer may be another thread's. */
static inline int uvd_caller_confirm(struct uvd_caller *c, int ret)
{
	return uvd_caller_waits(c) ? ret : -EINTR;
}

/* process_vm_readv() and _writev(): the ordinary way. A torn read is -EFAULT. */
extern const struct uvd_mem_ops uvd_mem_process;
/* pread() and pwrite() of c->memfd, with the mapping's permission looked up before a write (for --join under Yama 1). */
extern const struct uvd_mem_ops uvd_mem_procfd;
/* The same of a thread that is stopped in our hands, and the mappings by c->mapsfd: nothing is looked up by its number. */
extern const struct uvd_mem_ops uvd_mem_held;
/* Our own memory, without any check: benchmarks and tests whose client is this process. */
extern const struct uvd_mem_ops uvd_mem_self;

static inline int uvd_caller_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	uvd_might_fault();
	return len ? c->mem->read(c, dst, src, len) : 0;
}

static inline ssize_t uvd_caller_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	uvd_might_fault();
	if (c->mem->read_ahead)
		return c->mem->read_ahead(c, dst, src, least, most);
	return c->mem->read(c, dst, src, least) ? -EFAULT : (ssize_t)least;
}

static inline int uvd_caller_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	uvd_might_fault();
	return len ? c->mem->write(c, dst, src, len) : 0;
}

static inline int uvd_caller_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	uvd_might_fault();
	return n ? c->mem->writev(c, v, n) : 0;
}

/* The client is this process: nothing about it needs to be looked up. */
bool uvd_caller_is_self(const struct uvd_caller *c);
/* Can one byte be read there? 0 or -EFAULT. Never a SIGBUS, if the client is this process. */
int uvd_caller_peek(struct uvd_caller *c, uint64_t addr);
/* The same, whatever the page's protection. */
int uvd_caller_peek_forced(struct uvd_caller *c, uint64_t addr);

/* The process's id, from /proc/TID/status, kept in c. Negative errno: the thread is gone. */
pid_t uvd_caller_tgid(struct uvd_caller *c);

/* The caller's ids, capabilities and name, from /proc/TID/status: for checks and for log lines. */
struct uvd_identity {
	pid_t tgid;
	uid_t uid, euid, fsuid;
	gid_t gid, egid, fsgid;
	uint64_t cap_eff; /* effective capabilities */
	uint64_t vm_pin_pages; /* VmPin: what the real kernel has pinned for it, in pages */
	char comm[16];
};
int uvd_caller_identity(struct uvd_caller *c, struct uvd_identity *id);

/*
 * CAP_* of the calling thread in the initial user namespace: a capability that it has in a namespace of its own does not
 * count. (/proc/TID/ns/user compared with ours; where we are not in the initial one ourselves, with the namespace that
 * owns us: under run, root in the tree's namespace is what there is.)
 */
bool uvd_caller_capable(struct uvd_caller *c, int cap);
/* The same where the identity is known: uvd_caller_identity() of the same call, as only the caller itself can change it. */
bool uvd_caller_capable_as(struct uvd_caller *c, const struct uvd_identity *id, int cap);

/*
 * The users who pay for what the caller makes us hold: its real user id, and the owner of each user namespace above, up to
 * our own, as seen from ours. How many (1 to max), or a negative errno: then nobody can be charged, and the caller is to be
 * refused. -ENOSPC: more than max.
 */
int uvd_caller_users(struct uvd_caller *c, uid_t *uids, unsigned int max);
/* The account of these users, with a reference. NULL: *err says why; 0 where accounts is NULL. */
struct uvd_account *uvd_caller_account(struct uvd_caller *c, struct uvd_accounts *accounts, int *err);

/* RLIMIT_MEMLOCK, soft, of the caller's process in bytes (prlimit, or /proc/TID/limits); RLIM_INFINITY as such. */
int uvd_caller_memlock(struct uvd_caller *c, uint64_t *bytes);

/* fstat() of the caller's fd. -EBADF: not open. Never opens the file behind it (O_PATH). */
int uvd_caller_fstat(struct uvd_caller *c, int fd, struct stat *st);
/*
 * The same for what the kernel's fget() accepts: -EBADF also of an fd that was opened with O_PATH, and so without asking
 * for permission, and of one that changes while we look.
 */
int uvd_caller_fget(struct uvd_caller *c, int fd, struct stat *st);
/*
 * The same, and returns an O_PATH fd of the file, which the caller of this function closes: while it is open, (st_dev,
 * st_ino) is no other file's name.
 */
int uvd_caller_hold(struct uvd_caller *c, int fd, struct stat *st);

/* dma_buf_get(): -EBADF: not open; -EINVAL: no dma-buf. *size: its bytes. */
int uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size);
/* -EINVAL: no machine like this one has that CPU. -EPERM: it is not in the calling thread's affinity. */
int uvd_caller_may_run_on(struct uvd_caller *c, unsigned int cpu);
/*
 * Who opened a file, for ib_safe_file_access(): the kernel compares credential pointers, so a forked child, and the
 * process itself after exec or set*id, are somebody else. Taken at open, compared at every write().
 */
struct uvd_opener {
	pid_t tgid;
	uid_t fsuid;
	gid_t fsgid;
	int mmfd; /* bound to the opener's address space: uvd_mmfd_alive() tells an exec; -1 none */
	int pidfd; /* tells that the process itself is gone and tgid may be another's; -1 none */
	struct uvd_account *account; /* the opener's, which pays for both; a reference, or NULL */
};
/* Takes a reference to c->account. -EMFILE: that has too many descriptors. */
int uvd_opener_take(struct uvd_opener *o, struct uvd_caller *c);
void uvd_opener_drop(struct uvd_opener *o);
/*
 * fsuid, fsgid: of this call where the transport knows them (FUSE does), else -1 each. Cheap: no /proc file is opened.
 * (tgkill(tgid, tid, 0) tells whether the thread belongs to the process.)
 */
bool uvd_opener_is(const struct uvd_opener *o, struct uvd_caller *c, uid_t fsuid, gid_t fsgid);

#endif
