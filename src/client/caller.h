/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The caller: a thread of a client that waits in a call on the device. Its memory, identity and rights.
 *
 * A caller is valid only until the transport answers the call: after that, its thread id may be another thread's.
 * Memory that is needed for longer than the call (registered memory) is accessed through struct uvd_mm.
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
struct uvd_log;

/* Numbers of threads are below this: the kernel's PID_MAX_LIMIT. */
enum { UVD_PROC_NUMBERS = 1 << 22 };

/*
 * Opens files below /proc/TID. Normally the engine opens them itself. Where Yama forbids that (an engine serves a
 * process tree that is not below it), that tree's agent (run/agent.c) opens them and passes the fds; for an engine
 * process, the broker does.
 */
struct uvd_proc {
	/*
	 * name: "mem", "maps", "status", "limits", "fd/7" (with O_PATH) and others. flags: as for open(); O_CLOEXEC is
	 * added. Returns an fd, which the caller of this function owns, or a negative errno. Does not check that the
	 * call still waits: see uvd_proc_open().
	 */
	int (*open)(struct uvd_proc *proc, pid_t tid, const char *name, int flags);
	/* As kcmp(KCMP_VM): does thread tid share its memory with process other? NULL: we may call kcmp() ourselves. */
	bool (*same_memory)(struct uvd_proc *proc, pid_t tid, pid_t other);
	/*
	 * The clients run as our user and with no more rights, so large copies of registered memory may use
	 * process_vm_readv() and process_vm_writev(). These take a process id. We can only check before or after the
	 * copy that it was the process's.
	 */
	bool bulk_by_number;
	/*
	 * Added to the numbers of processes in a pid namespace other than ours, a multiple of UVD_PROC_NUMBERS: the kernel knows no
	 * process of such a number. 0: the numbers are ours.
	 */
	pid_t base;
	bool tells_owners; /* open("owners") gives an array of uid_t: see uvd_ns_owners() */
};

/* Opens /proc itself. */
extern struct uvd_proc uvd_proc_local;

/*
 * Caches what this room reads of our own /proc and /sys, for a process that is about to lose access to them. Call it
 * while there is one thread.
 */
void uvd_client_prepare(void);
/* The ports that the kernel gives to sockets which ask for any (ip_local_port_range). */
struct uvd_port_range {
	unsigned int first, last;
};
struct uvd_port_range uvd_local_ports(void);

/* One piece of a write to several places: see writev(). */
struct uvd_write_vec {
	uint64_t addr; /* the client's */
	const void *src;
	size_t len;
};

enum { UVD_WRITEV_AT_ONCE = 32 }; /* pieces that uvd_mem_process writes with one system call */

struct uvd_mem_ops {
	/*
	 * Copy exactly len bytes and return 0, or return -EFAULT. Writes respect page protections. So do reads of
	 * uvd_mem_process; /proc/TID/mem also reads pages without read permission.
	 */
	int (*read)(struct uvd_caller *c, void *dst, uint64_t src, size_t len);
	int (*write)(struct uvd_caller *c, uint64_t dst, const void *src, size_t len);
	/*
	 * Writes all pieces in order, with one system call where possible. Returns 0, or -EFAULT: then some pieces may
	 * have been written.
	 */
	int (*writev)(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n);
	/*
	 * Reads at least `least` bytes, and of those that follow as many as are readable, up to `most` in total. This
	 * saves a second call for what the client probably has there. Returns the number of bytes, or -EFAULT. NULL:
	 * only `least` bytes are read.
	 */
	ssize_t (*read_ahead)(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most);
	const struct uvd_mem_ops *over; /* these only pass on to those (core/observer.h); NULL: they do it themselves */
};

struct uvd_caller {
	const struct uvd_mem_ops *mem;
	struct uvd_proc *proc;
	pid_t tid; /* in our pid namespace; 0: the client is outside of it, and its memory is inaccessible */
	pid_t tgid; /* 0: not looked up yet, see uvd_caller_tgid() */
	int memfd; /* /proc/TID/mem for uvd_mem_procfd, else -1; the transport owns it */
	int mapsfd; /* /proc/TID/maps for uvd_mem_procfd */
	/*
	 * Set by the transport: does the call still wait for its answer? NULL: always, as where the client is this
	 * process. A call can end early, when its client has a signal or the channel is aborted. Its thread may then
	 * run another program, and tid may become another thread's. So what was learned through tid counts only if this
	 * function returns true *afterwards*; see uvd_caller_confirm().
	 */
	bool (*waits)(struct uvd_caller *c);
	/*
	 * Set by the transport: takes the right to answer, after which the call cannot end early. Returns false if the
	 * call has ended already: then it must change nothing. NULL: no other thread answers calls.
	 */
	bool (*claim)(struct uvd_caller *c);
	struct uvd_account *account; /* pays for descriptors that we keep after the call; NULL: no account does */
	uid_t log_user; /* the user to whom the call's log lines are attributed, see uvd_log_of_user() */
	bool is_explained; /* a rule of the device has refused this call, and said so */
	atomic_bool let_go; /* the transport answers the call with EINTR: it must fail with -EINTR at its next step */
};

static inline bool uvd_caller_waits(struct uvd_caller *c)
{
	return !c->waits || c->waits(c);
}

/* Call it after a question about c->tid. Returns ret, or -EINTR if the answer may be about another thread. */
static inline int uvd_caller_confirm(struct uvd_caller *c, int ret)
{
	return uvd_caller_waits(c) ? ret : -EINTR;
}

/* Uses process_vm_readv() and process_vm_writev(). A partial transfer fails with -EFAULT. */
extern const struct uvd_mem_ops uvd_mem_process;
/*
 * Uses pread() and pwrite() on c->memfd, and checks the mappings' protection in c->mapsfd before a write. Looks nothing up by the
 * thread's id. For a tree that has an agent (--join under Yama 1 or across pid namespaces), and for a thread that is stopped for a
 * loan.
 */
extern const struct uvd_mem_ops uvd_mem_procfd;
/* Accesses our own memory without any check, for benchmarks and tests whose client is this process. */
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
/* Can one byte be read there? Returns 0 or -EFAULT. Raises no SIGBUS, even if the client is this process. */
int uvd_caller_peek(struct uvd_caller *c, uint64_t addr);
/* The same, whatever the page's protection. */
int uvd_caller_peek_forced(struct uvd_caller *c, uint64_t addr);

/* Returns the process id, from /proc/TID/status, and keeps it in c; or a negative errno: -ESRCH, the thread is gone. */
pid_t uvd_caller_tgid(struct uvd_caller *c);

/* The caller's ids, capabilities and name, from /proc/TID/status: for checks and for log lines. */
struct uvd_identity {
	pid_t tgid;
	uid_t uid, euid, suid, fsuid;
	gid_t gid, egid, sgid, fsgid;
	uint64_t cap_eff, cap_prm; /* effective capabilities; permitted ones */
	uint64_t vm_pin_pages; /* VmPin: the pages that the kernel itself has pinned for it */
	char comm[16];
};
int uvd_caller_identity(struct uvd_caller *c, struct uvd_identity *id);

/*
 * Does the calling thread have this capability (CAP_*) in our own user namespace, normally the initial one? A
 * capability in another namespace does not count. (Compares /proc/TID/ns/user with ours. Where `run` itself is in a
 * child namespace, the capabilities of that one count.)
 */
bool uvd_caller_capable(struct uvd_caller *c, int cap);
/*
 * The same, for an identity from uvd_caller_identity() in the same call: only the thread itself can change its
 * capabilities.
 */
bool uvd_caller_capable_as(struct uvd_caller *c, const struct uvd_identity *id, int cap);
/* Is the calling thread in our own user namespace? Returns 1, 0, or a negative errno: that cannot be learned. */
int uvd_caller_in_our_user_ns(struct uvd_caller *c);

/*
 * Lists the users that pay for what we hold for the caller: its real user id, then the owner of its user namespace and
 * of each one above, up to our own, as ids of our namespace. Returns how many (1 to max), or a negative errno: nobody
 * can be charged then, so refuse the call. -ENOSPC: there are more than max.
 */
int uvd_caller_users(struct uvd_caller *c, uid_t *uids, unsigned int max);
/*
 * Returns a reference to the account of these users; or NULL and a negative errno in *err, which is 0 if accounts is
 * NULL.
 */
struct uvd_account *uvd_caller_account(struct uvd_caller *c, struct uvd_accounts *accounts, int *err);

/*
 * Reads the soft RLIMIT_MEMLOCK of the caller's process (prlimit(), else /proc/TID/limits). *bytes: in bytes, or
 * RLIM_INFINITY. Returns 0 or a negative errno.
 */
int uvd_caller_memlock(struct uvd_caller *c, uint64_t *bytes);
/* The same of RLIMIT_FSIZE. */
int uvd_caller_file_size(struct uvd_caller *c, uint64_t *bytes);

/*
 * fstat() of the caller's fd. Returns 0 or a negative errno; -EBADF: it is not open. Does not open the file (O_PATH).
 */
int uvd_caller_fstat(struct uvd_caller *c, int fd, struct stat *st);
/*
 * The same for what the kernel's fget() accepts. Also returns -EBADF if the fd was opened with O_PATH, which takes no
 * permission on the file, or if it changes while we look at it.
 */
int uvd_caller_fget(struct uvd_caller *c, int fd, struct stat *st);
/*
 * The same, but returns an O_PATH fd of the file, which the caller of this function closes. While it is open, no other
 * file can get the same (st_dev, st_ino).
 */
int uvd_caller_hold(struct uvd_caller *c, int fd, struct stat *st);

/*
 * As dma_buf_get(). *size: in bytes. Returns 0 or a negative errno; -EBADF: it is not open; -EINVAL: it is no dma-buf.
 */
int uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size);
/*
 * Returns 0 or a negative errno. -EINVAL: cpu is no possible CPU of this machine. -EPERM: it is not in the calling
 * thread's affinity.
 */
int uvd_caller_may_run_on(struct uvd_caller *c, unsigned int cpu);
/*
 * The opener of a file, for ib_safe_file_access(). The kernel compares credential pointers, so a forked child does not
 * match, nor does the process itself after exec or set*id. The transport takes it at open, and compares it at every
 * write().
 */
struct uvd_opener {
	pid_t tgid;
	uid_t fsuid;
	gid_t fsgid;
	bool privileged; /* has more rights than its user: set-user-ID, set-group-ID, capabilities in our namespace */
	bool refused; /* the broker does not open its memory, so it can be no client; mmfd is -1 */
	int mmfd; /* bound to the opener's address space: after an exec uvd_mmfd_alive() is false; -1: none */
	int pidfd; /* tells that the process has exited, so that tgid may be another's; -1: none */
	struct uvd_account *account; /* the opener's, which pays for both; a reference, or NULL */
};
/*
 * Fills *o in. Takes a reference to c->account. Returns 0 or a negative errno; -EMFILE: the account has too many
 * descriptors.
 */
int uvd_opener_take(struct uvd_opener *o, struct uvd_caller *c);
/* Logs which program was refused, and what admits it. device: its name. */
void uvd_opener_log_refused(struct uvd_caller *c, struct uvd_log *log, const char *device);
void uvd_opener_drop(struct uvd_opener *o);
/*
 * Is the caller the opener? fsuid, fsgid: of this call where the transport knows them (FUSE does), else -1 each. Cheap:
 * it opens no /proc file (tgkill(tgid, tid, 0) tells whether the thread belongs to the process).
 */
bool uvd_opener_is(const struct uvd_opener *o, struct uvd_caller *c, uid_t fsuid, gid_t fsgid);

#endif
