/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every trapped call costs the process tree two context switches, so the filter does not trap what it can recognise by
 * numbers alone: fstat() of fds outside the windows, opens that must create the file, and all writes outside the
 * windows.
 *
 * The engine only takes note of some trapped calls, and the kernel carries them out. First, calls that change
 * credentials, exec included, because write() is refused to credentials other than the opener's. Second, calls that
 * close or replace a number in the windows: close(), dup2() and dup3() onto it, close_range(), and io_uring, which can
 * close without a call. Until such a call the engine may remember which file the number stands for (slot.c).
 *
 * With a report, exit_group() is trapped for its status (src/report).
 *
 * The kernel also carries out dup2() and dup3(), because the program names the new number. On a duplicate outside the
 * windows ioctl() and mmap() work, but write() fails with EPERM, because the file is in append mode and cannot grow
 * (file.c). dup() and F_DUPFD are trapped so that the duplicate gets a number in the windows.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/schema.h>

#include "doorbell/doorbell.h"
#include "run/filter.h"

/* The windows leave the lower numbers, where a program has its first files, to other files. */
#define REFUSE SCMP_ACT_ERRNO(EPROTONOSUPPORT)

enum { LEAST = 3, WINDOW = 512, FAR_WINDOW = 8192, FAR_TOP = 65536, USUAL_LIMIT = 1024 };

/*
 * For programs that lower their limit to 256 or 64 after the filter is set. These windows are small because other files
 * of a program can have such numbers, and each of their calls is then trapped. They leave out the numbers that bash
 * gives to a script (255) and to process substitutions (63 and below).
 */
static const struct uvd_run_window low_windows[] = { { .base = 192, .size = 32 }, { .base = 32, .size = 16 } };

void uvd_run_windows(struct uvd_run_window *w, const struct rlimit *nofile, bool logs)
{
	rlim_t top = nofile->rlim_cur < USUAL_LIMIT ? nofile->rlim_cur : USUAL_LIMIT;

	w[0].size = WINDOW;
	while (w[0].size > 1 && (w[0].size > top / 2 || (top / w[0].size - 1) * w[0].size < LEAST))
		w[0].size /= 2;
	w[0].base = top >= 4 ? (top / w[0].size - 1) * w[0].size : 0;
	/* Only a program that raises its limit can have these numbers, and such a program has many files. */
	w[1] = (struct uvd_run_window){ .base = FAR_TOP - FAR_WINDOW, .size = FAR_WINDOW };
	if (nofile->rlim_max < FAR_TOP)
		w[1].size = 0;
	_Static_assert(UVD_COUNT(low_windows) == UVD_RUN_WINDOWS - 2, "two windows are made here");
	for (unsigned int i = 0; i < UVD_COUNT(low_windows); i++) {
		w[2 + i] = low_windows[i];
		if (w[2 + i].base + w[2 + i].size > w[0].base)
			w[2 + i].size = 0; /* the first window is that low itself */
	}
	for (int i = 0; i < UVD_RUN_WINDOWS; i++)
		w[i].direct = logs ? w[i].size / 2 : 0;
}

/* Adds a rule. A rule that exists and a call that the architecture lacks (aarch64 has no open()) are no errors. */
static int filter_trap(scmp_filter_ctx ctx, const char *name, unsigned int n, const struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name), err;

	if (nr < 0)
		return 0;
	err = seccomp_rule_add_exact_array(ctx, SCMP_ACT_NOTIFY, nr, n, args);
	return err == -EEXIST ? 0 : err;
}

static int trap_all(scmp_filter_ctx ctx)
{
	static const char *const names[] = {
		"openat2",    "stat",	  "lstat",     "access",      "faccessat",	"faccessat2", "readlink",
		"readlinkat", "getxattr", "lgetxattr", "listxattr",   "llistxattr", /* `ls -l` */
		"setuid",     "setgid",	  "setreuid",  "setregid",    "setresuid",	"setresgid",  "setfsuid",
		"setfsgid",   "execve",	  "execveat",  "close_range", "io_uring_setup", NULL,
	};
	int err = 0;

	for (const char *const *name = names; *name && !err; name++)
		err = filter_trap(ctx, *name, 0, NULL);
	return err;
}

/*
 * An open with O_CREAT and O_EXCL fails on files that exist, as ours do: it is not trapped, which spares mkstemp() and
 * the like.
 */
static int trap_open(scmp_filter_ctx ctx, const char *name, unsigned int flags_arg)
{
	struct scmp_arg_cmp old = SCMP_CMP64(flags_arg, SCMP_CMP_MASKED_EQ, O_CREAT, 0);
	struct scmp_arg_cmp any = SCMP_CMP64(flags_arg, SCMP_CMP_MASKED_EQ, O_CREAT | O_EXCL, O_CREAT);

	return filter_trap(ctx, name, 1, &old) ?: filter_trap(ctx, name, 1, &any);
}

/* With AT_EMPTY_PATH the call is fstat() in its usual form: trapped for fds in the windows and AT_FDCWD only. */
static int trap_stat_at(scmp_filter_ctx ctx, const char *name, unsigned int flags_arg, const struct uvd_run_window *w)
{
	struct scmp_arg_cmp by_path = SCMP_CMP64(flags_arg, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0);
	struct scmp_arg_cmp at_cwd[] = {
		SCMP_CMP64(flags_arg, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH),
		SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)AT_FDCWD),
	};
	int err = filter_trap(ctx, name, 1, &by_path) ?: filter_trap(ctx, name, 2, at_cwd);

	for (int i = 0; i < UVD_RUN_WINDOWS && !err; i++) {
		struct scmp_arg_cmp by_fd[] = {
			SCMP_CMP64(flags_arg, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH),
			SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, (uint32_t)-w[i].size, w[i].base),
		};

		if (w[i].size)
			err = filter_trap(ctx, name, 2, by_fd);
	}
	return err;
}

/* Traps name() if argument `arg` is an fd in a window and, unless cmd is NULL, the next argument is *cmd. */
static int trap_fd_arg(scmp_filter_ctx ctx, const char *name, unsigned int arg, const struct uvd_run_window *w,
		       const unsigned int *cmd)
{
	int err = 0;

	for (int i = 0; i < UVD_RUN_WINDOWS && !err; i++) {
		struct scmp_arg_cmp args[] = {
			SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, (uint32_t)-w[i].size, w[i].base),
			SCMP_CMP64(arg + 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, cmd ? *cmd : 0),
		};

		if (w[i].size)
			err = filter_trap(ctx, name, cmd ? 2 : 1, args);
	}
	return err;
}

static int trap_fd(scmp_filter_ctx ctx, const char *name, const struct uvd_run_window *w, const unsigned int *cmd)
{
	return trap_fd_arg(ctx, name, 0, w, cmd);
}

/* All write()s on the window's fds, but for doorbells on those that are for files with a log. */
static int trap_write(scmp_filter_ctx ctx, const struct uvd_run_window *w)
{
	const unsigned int top = w->direct ? w->size - w->direct : w->size; /* a power of two, like the size */
	struct scmp_arg_cmp any = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, (uint32_t)-top, w->base + w->direct);
	struct scmp_arg_cmp others[] = {
		SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, (uint32_t)-w->size, w->base),
		SCMP_CMP64(2, SCMP_CMP_NE, UVD_DOORBELL_BYTES),
	};
	int err = w->size ? filter_trap(ctx, "write", 1, &any) : 0;

	return err || !w->direct ? err : filter_trap(ctx, "write", 2, others);
}

static int trap_fds(scmp_filter_ctx ctx, const struct uvd_run_window *w)
{
	static const char *const names[] = { "writev", "read", "readv", "fstat", "dup", "close", NULL };
	unsigned int dupfd = F_DUPFD, cloexec = F_DUPFD_CLOEXEC;
	int err = 0;

	for (const char *const *name = names; *name && !err; name++)
		err = trap_fd(ctx, *name, w, NULL);
	for (int i = 0; i < UVD_RUN_WINDOWS && !err; i++)
		err = trap_write(ctx, &w[i]);
	return err ?: trap_fd(ctx, "fcntl", w, &dupfd) ?: trap_fd(ctx, "fcntl", w, &cloexec) ?:
	       trap_fd_arg(ctx, "dup2", 1, w, NULL) ?: trap_fd_arg(ctx, "dup3", 1, w, NULL);
}

static int trap_ioctl(scmp_filter_ctx ctx)
{
	struct scmp_arg_cmp request = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, RDMA_VERBS_IOCTL);

	return filter_trap(ctx, "ioctl", 1, &request);
}

/*
 * Refuses sockets of NETLINK_RDMA: libibverbs reads sysfs only if it cannot have one, and creating one loads the
 * kernel's RDMA modules, if there are any. The kernel looks at 32 bits of both arguments.
 */
static int refuse_netlink(scmp_filter_ctx ctx, uint32_t action)
{
	struct scmp_arg_cmp rdma[] = {
		SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_NETLINK),
		SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, UINT32_MAX, NETLINK_RDMA),
	};

	return seccomp_rule_add_exact_array(ctx, action, SCMP_SYS(socket), 2, rdma);
}

/* Limits of file sizes: a log lies beyond a finite one. */
static int trap_limits(scmp_filter_ctx ctx)
{
	struct scmp_arg_cmp own = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, RLIMIT_FSIZE);
	struct scmp_arg_cmp any[] = {
		SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, RLIMIT_FSIZE),
		SCMP_CMP64(2, SCMP_CMP_NE, 0),
	};

	return filter_trap(ctx, "setrlimit", 1, &own) ?: filter_trap(ctx, "prlimit64", 2, any);
}

static bool has_logs(const struct uvd_run_window *w)
{
	bool has = false;

	for (int i = 0; i < UVD_RUN_WINDOWS; i++)
		has |= w[i].direct;
	return has;
}

static int add_rules(scmp_filter_ctx ctx, const struct uvd_run_window *w, bool exits)
{
	/*
	 * Other architectures (i386, x32) have other numbers and structs: their calls pass, and see no device. With logs the engine
	 * refuses sockets, because it has to know which processes ask (direct.c).
	 */
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW) ?:
		  seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) ?:
		  trap_all(ctx) ?: trap_open(ctx, "open", 1) ?: trap_open(ctx, "openat", 2) ?:
		  trap_stat_at(ctx, "newfstatat", 3, w) ?: trap_stat_at(ctx, "statx", 2, w) ?: trap_fds(ctx, w) ?:
		  trap_ioctl(ctx) ?: refuse_netlink(ctx, has_logs(w) ? SCMP_ACT_NOTIFY : REFUSE);

	if (!err && has_logs(w))
		err = trap_limits(ctx);
	if (!err && exits)
		err = filter_trap(ctx, "exit_group", 0, NULL);
	return err;
}

/* Without no_new_privs if the kernel lets this process: it needs CAP_SYS_ADMIN in its user namespace. */
static int netlink_filter_load(scmp_filter_ctx ctx)
{
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_API_SYSRAWRC, 1) ?:
		  seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0) ?: seccomp_load(ctx);

	return err == -EACCES ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 1) ?: seccomp_load(ctx) : err;
}

int uvd_run_refuse_netlink(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!ctx)
		return -ENOMEM;
	err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW) ?:
	      refuse_netlink(ctx, REFUSE) ?: netlink_filter_load(ctx);
	seccomp_release(ctx);
	return err;
}

/* libseccomp compiles the filter, but cannot set the flags that we need, so it exports the filter and we install it. */
static int filter_export(scmp_filter_ctx ctx, struct sock_fprog *prog)
{
	int fd = memfd_create("uverbsd-filter", MFD_CLOEXEC), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	err = seccomp_export_bpf(ctx, fd);
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err) {
		prog->len = st.st_size / sizeof(*prog->filter);
		prog->filter = malloc(st.st_size);
		if (!prog->filter)
			err = -ENOMEM;
		else if (pread(fd, prog->filter, st.st_size, 0) != st.st_size)
			err = -EIO;
	}
	close(fd);
	return err;
}

int uvd_run_filter_make(const struct uvd_run_window *windows, bool exits, struct sock_fprog *prog)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!ctx)
		return -ENOMEM;
	err = add_rules(ctx, windows, exits) ?: filter_export(ctx, prog);
	seccomp_release(ctx);
	return err;
}

int uvd_run_filter_install(const struct sock_fprog *prog)
{
	/*
	 * WAIT_KILLABLE_RECV: once the engine has received a call, only a fatal signal interrupts it. Without this flag
	 * a call would be restarted after a signal handler, and a verb executed twice.
	 */
	unsigned int flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	int listener;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);
	return listener < 0 ? -errno : listener;
}
