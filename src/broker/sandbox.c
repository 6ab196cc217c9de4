/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each process gives up all capabilities but its own; the engine process gives up system calls and namespaces, too. */
#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <linux/fs.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/serve.h"

enum { BROKER = 1 << UVD_ROLE_BROKER, QUESTIONS = 1 << UVD_ROLE_QUESTIONS, LOAN = 1 << UVD_ROLE_LOAN };

static const struct {
	unsigned int cap, roles;
	const char *reason;
} privileges[] = {
	{ CAP_SYS_PTRACE, BROKER | QUESTIONS | LOAN, "clients' memory, and the threads that loans borrow" },
	{ CAP_DAC_OVERRIDE, BROKER | QUESTIONS | LOAN, "/proc/TID/mem and /proc/TID/fd belong to the client's user" },
	{ CAP_SYS_ADMIN, BROKER | LOAN, "PTRACE_O_SUSPEND_SECCOMP, for clients with a filter; the broker's overlay mount" },
	{ CAP_SETUID, BROKER, "a loan's process becomes the client's user" },
	{ CAP_SETGID, BROKER, "the same" },
	{ CAP_KILL, BROKER, "signals to the engine process, which is another user's, and to loans' processes" },
	{ CAP_CHOWN, BROKER, "the group of a node (--group)" },
	{ CAP_FOWNER, BROKER, "mode and name of a node where /dev belongs to another user" },
	{ CAP_MKNOD, BROKER, "a node where /dev is no devtmpfs" },
	{ CAP_SETPCAP, BROKER, "dropping capabilities from the children's bounding sets" },
};

bool uvd_role_take(enum uvd_role role)
{
	capng_clear(CAPNG_SELECT_ALL);
	for (unsigned int i = 0; i < sizeof(privileges) / sizeof(privileges[0]); i++)
		if (privileges[i].roles & 1u << role)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, privileges[i].cap);
	/* The bounding set needs CAP_SETPCAP, which whoever became another user has not got any more. */
	return !capng_apply(geteuid() ? CAPNG_SELECT_CAPS : CAPNG_SELECT_BOTH) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* ---- the engine process ------------------------------------------------------------------------------------------ */

/* The system calls that the engine process makes. */
static const char *const allowed[] = {
	/* channels, memory descriptors, event files, the control socket */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "poll", "ppoll", "fcntl", "dup", "pipe2",
	"eventfd2", "socketpair", "sendmsg", "recvmsg", "sendto", "recvfrom", "shutdown", "getsockopt", "setsockopt", "accept4",
	"fstat", "newfstatat", "statx", "fstatfs", "readlinkat", "timerfd_create", "timerfd_settime", "epoll_create1",
	"epoll_ctl", "epoll_wait", "epoll_pwait", "memfd_create", "ftruncate", "fallocate",
	/* memory, threads, time */
	"mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "clone", "clone3", "set_robust_list", "rseq", "futex",
	"sched_yield", "sched_getaffinity", "sched_setscheduler", "membarrier", "getrandom", "nanosleep", "clock_nanosleep",
	"clock_gettime", "clock_getres", "gettimeofday", "exit", "exit_group", "restart_syscall", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "gettid", "getpid", "getppid", "getuid", "geteuid",
	"getgid", "getegid", "uname", "sysinfo", "getrlimit",
	/* what anybody may ask of a process */
	"pidfd_open",
};

/* Calls that libraries try, and do without. */
static const char *const refused[] = {
	"open", "openat", "openat2", "access", "faccessat", "faccessat2", "stat", "lstat", "readlink", "kcmp", "socket",
	"process_vm_readv", "process_vm_writev", "statfs", "unlink", "getcwd", "ioctl",
};

static int add_rules(scmp_filter_ctx ctx)
{
	int err = 0, nr;

	for (unsigned int i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !err; i++) {
		nr = seccomp_syscall_resolve_name(allowed[i]);
		err = nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]) && !err; i++) {
		nr = seccomp_syscall_resolve_name(refused[i]);
		if (nr != __NR_SCMP_ERROR && nr != SCMP_SYS(ioctl))
			err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EACCES), nr, 0);
	}
	/* PROCMAP_QUERY alone; any other request fails. */
	err = err ?: seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffff, 'f' << 8 | 17));
	err = err ?: seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00, 'T' << 8));
	/* A limit is read and never set. */
	err = err ?: seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0));
	/* Its own threads are woken; of others only their being there is asked. */
	err = err ?: seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, getpid()));
	err = err ?: seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A2(SCMP_CMP_EQ, 0));
	return err ?: seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
}

static int load_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err;

	if (!ctx)
		return -ENOMEM;
	err = add_rules(ctx) ?: seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}

/* Namespaces with nothing in them: a read-only tmpfs is the root. */
static int enter_namespaces(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("uverbsd", "/dev", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=0,mode=0555") || chdir("/dev") ||
	    syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/") ||
	    mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	return 0;
}

static int enter_sandbox(uid_t uid, gid_t gid)
{
	const pid_t broker = getppid();
	int err = enter_namespaces();

	if (err)
		return err;
	capng_get_caps_process();
	capng_clear(CAPNG_SELECT_BOUNDS);
	if (capng_apply(CAPNG_SELECT_BOUNDS) || setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ||
	    !uvd_role_take(UVD_ROLE_ENGINE) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	/* It may have ended before the signal was asked for. */
	if (getppid() != broker)
		return -ESRCH;
	return load_filter();
}

int uvd_engine_sandbox(uid_t uid, gid_t gid, struct uvd_log *log)
{
	int err = enter_sandbox(uid, gid);

	if (err)
		uvd_logf(log, UVD_ERR, "cannot give up the engine process's privileges: %s", strerrorname_np(-err) ?: "?");
	return err;
}
