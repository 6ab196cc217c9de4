/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The opener of a file. The kernel compares pointers to credentials; we compare ids, process and address space from
 * outside. The result differs in two cases. After a set*id call to the ids that a process has already, the kernel sees
 * another opener and we do not. And we miss an exec, or a reuse of the opener's pid, while another process still shares
 * the address space that the opener left (the child of a vfork() opens the device and then execs).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/log.h>

#include "account/account.h"
#include "client/client.h"
#include "client/internal.h"
#include "util/util.h"

enum { OPENER_DESCRIPTORS = 2 };

/* May do more than its user can: a program that the user started, but may not look into (ptrace_may_access()). */
static bool opener_is_privileged(struct uvd_caller *c, const struct uvd_identity *id)
{
	if (id->uid != id->euid || id->uid != id->suid || id->uid != id->fsuid)
		return true;
	if (id->gid != id->egid || id->gid != id->sgid || id->gid != id->fsgid)
		return true;
	/* Capabilities in a namespace of the user's own are no more than the user has. */
	return id->uid && id->cap_prm && uvd_caller_in_our_user_ns(c);
}

int uvd_opener_take(struct uvd_opener *o, struct uvd_caller *c)
{
	struct uvd_identity id;
	int err;

	*o = (struct uvd_opener){ .fsuid = -1, .fsgid = -1, .mmfd = -1, .pidfd = -1 };
	if (!uvd_proc_tid(c))
		return 0;
	err = uvd_caller_identity(c, &id);
	if (err)
		return err;
	o->tgid = id.tgid;
	o->fsuid = id.fsuid;
	o->fsgid = id.fsgid;
	o->privileged = opener_is_privileged(c, &id);
	if (uvd_caller_is_self(c))
		return 0;
	err = uvd_account_charge(c->account, UVD_RES_DESCRIPTORS, OPENER_DESCRIPTORS);
	if (err)
		return err;
	o->account = uvd_account_ref(c->account);
	/* Use the thread's id: the first thread of a process may have exited, and then has no memory. */
	o->mmfd = uvd_fd_raise(uvd_mmfd_open(c, c->tid));
	o->refused = o->mmfd == -EPERM;
	if (o->mmfd < 0)
		o->mmfd = -1;
	o->pidfd = uvd_fd_raise(syscall(SYS_pidfd_open, id.tgid, 0));
	if (o->pidfd < 0)
		o->pidfd = -1;
	return 0;
}

void uvd_opener_log_refused(struct uvd_caller *c, struct uvd_log *log, const char *device)
{
	struct uvd_identity id;

	if (uvd_caller_identity(c, &id))
		return;
	uvd_log_of_user(
		log, c->log_user, UVD_WARN, "%s: open: EACCES: %s, pid %d, %s", device, id.comm, id.tgid,
		id.uid ? "has more rights than its user, and can be no client"
		       : "is root's: --root-clients `allow` admits what was executed without a change of rights, "
			 "`all` also setuid programs, and services that a security module confines");
}

void uvd_opener_drop(struct uvd_opener *o)
{
	if (o->mmfd >= 0)
		close(o->mmfd);
	if (o->pidfd >= 0)
		close(o->pidfd);
	uvd_account_uncharge(o->account, UVD_RES_DESCRIPTORS, OPENER_DESCRIPTORS);
	uvd_account_put(o->account);
	o->account = NULL;
	o->mmfd = o->pidfd = -1;
	o->tgid = 0;
}

static bool same_process(const struct uvd_opener *o, struct uvd_caller *c)
{
	if (c->tgid)
		return c->tgid == o->tgid;
	if (c->tid == o->tgid)
		return true;
	/* EPERM also means that the thread belongs to the process: the kernel checks that before the permission. */
	return o->tgid && c->tid && (!syscall(SYS_tgkill, o->tgid, c->tid, 0) || errno == EPERM) && uvd_caller_waits(c);
}

static bool process_gone(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

bool uvd_opener_is(const struct uvd_opener *o, struct uvd_caller *c, uid_t fsuid, gid_t fsgid)
{
	const uid_t any = -1;

	if (fsuid != any && o->fsuid != any && fsuid != o->fsuid)
		return false;
	if (fsgid != any && o->fsgid != any && fsgid != o->fsgid)
		return false;
	if (uvd_caller_is_self(c))
		return !c->tgid || c->tgid == o->tgid;
	if (!same_process(o, c))
		return false;
	if (o->mmfd >= 0)
		return uvd_mmfd_alive(o->mmfd);
	return o->pidfd < 0 || !process_gone(o->pidfd);
}
