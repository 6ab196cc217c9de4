/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of what each backend and each feature needs in a sandboxed process. docs/security-processes.md has a copy of it,
 * which tests/broker/test_sandbox.c compares with this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/kcmp.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <rdma/rdma_user_ioctl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "broker/sandbox.h"
#include "broker/wire.h"

enum {
	PROCMAP_QUERY_NR = 'f' << 8 | 17, /* of any size: later kernels extend the struct */
	TCGETS_NR = 0x5401,
	THREAD = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND,
	/* Flags of clone() that give a new thread no more than its parent has. */
	THREAD_MAY = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID |
		     CLONE_CHILD_CLEARTID | CLONE_DETACHED,
	MAKES_FILE = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY),
};

/* clang-format off */
#define ARG_IS(arg, value) 1, { { arg, SCMP_CMP_EQ, value, 0 } }
#define ARG_HAS_NO(arg, bits) 1, { { arg, SCMP_CMP_MASKED_EQ, bits, 0 } }
#define ARG_HAS(arg, mask, value) 1, { { arg, SCMP_CMP_MASKED_EQ, mask, value } }
#define UDP_SOCKET(family) 3, { { 0, SCMP_CMP_EQ, family, 0 }, { 1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM }, { 2, SCMP_CMP_EQ, 0, 0 } }
/* clang-format on */

/* Each process needs these: malloc, locks, the log, exit. */
static const struct uvd_sandbox_call process_calls[] = {
	/* memory, none of it executable */
	{ "mmap", "not PROT_EXEC", 0, false, ARG_HAS_NO(2, PROT_EXEC) },
	{ "mprotect", "not PROT_EXEC", 0, false, ARG_HAS_NO(2, PROT_EXEC) },
	{ "munmap" },
	{ "mremap" },
	{ "madvise" },
	{ "brk" },
	/* locks, time, random seeds of hash tables */
	{ "futex" },
	{ "sched_yield" },
	{ "clock_gettime" },
	{ "clock_nanosleep" },
	{ "nanosleep" }, /* ThreadSanitizer, in a thread of its own */
	{ "gettimeofday" },
	{ "getrandom" },
	/* descriptors that the process has; the log. close() is in other rows */
	{ "read" },
	{ "write" },
	{ "pread64" },
	/* its own PID (abort(), hash tables), its exit */
	{ "getpid" },
	{ "gettid" },
	{ "exit" },
	{ "exit_group" },
	{ "sigaltstack" }, /* sanitizers */
	{ "rt_sigreturn" },
	{ "restart_syscall" },
};

/* The engine process: threads, the event loop, and access to clients by descriptors that the broker passed. */
static const struct uvd_sandbox_call engine_calls[] = {
	/*
	 * threads only: no process, no namespace. clone3() has its flags in memory, which no filter reads; glibc
	 * falls back to clone().
	 */
	{ "clone", "threads", 0, false, ARG_HAS(0, ~(uint64_t)THREAD_MAY, THREAD) },
	{ "clone3", "fails", ENOSYS },
	{ "set_robust_list" },
	{ "rseq" },
	{ "rt_sigaction" },
	{ "rt_sigprocmask" },
	{ "sched_getaffinity" },
	{ "sysinfo" },
	{ "getppid" }, /* the engine's status shows the broker's PID */
	{ "prctl", "PR_SET_NAME", 0, false, ARG_IS(0, PR_SET_NAME) },
	{ "prlimit64", "its own, to read", 0, false, 2, { { 0, SCMP_CMP_EQ, 0, 0 }, { 2, SCMP_CMP_EQ, 0, 0 } } },
	{ "prlimit64", "fails for others", EPERM, false, 1, { { 0, SCMP_CMP_NE, 0, 0 } } },
	{ "tgkill", "its own threads", 0, true },
	{ "setpriority",
	  "of the calling thread",
	  0,
	  false,
	  2,
	  { { 0, SCMP_CMP_EQ, PRIO_PROCESS, 0 }, { 1, SCMP_CMP_EQ, 0, 0 } } },
	/* libev */
	{ "poll" },
	{ "eventfd2" },
	{ "fcntl", "F_GETFL", 0, false, ARG_IS(1, F_GETFL) },
	{ "fcntl", "F_SETFL", 0, false, ARG_IS(1, F_SETFL) },
	{ "fcntl", "F_SETFD", 0, false, ARG_IS(1, F_SETFD) },
	/* clients: their memory and their files below /proc, by descriptors */
	{ "pwrite64" },
	{ "lseek" },
	{ "fstat" },
	{ "newfstatat" },
	{ "statx" },
	{ "fstatfs" },
	{ "readlinkat" },
	{ "pidfd_open" },
	{ "tgkill", "no signal", 0, false, ARG_IS(2, 0) },
	{ "ioctl", "PROCMAP_QUERY", 0, false, ARG_HAS(1, 0xffff, PROCMAP_QUERY_NR) },
	/* libraries, and code for the daemon in one process, try these calls and cope with their failure */
	{ "ioctl", "TCGETS fails", ENOTTY, false, ARG_HAS(1, UINT32_MAX, TCGETS_NR) },
	{ "open", "fails", EACCES },
	{ "openat", "fails", EACCES },
	{ "openat2", "fails", EACCES },
	{ "access", "fails", EACCES },
	{ "faccessat", "fails", EACCES },
	{ "faccessat2", "fails", EACCES },
	{ "stat", "fails", EACCES },
	{ "lstat", "fails", EACCES },
	{ "readlink", "fails", EACCES },
	{ "statfs", "fails", EACCES },
	{ "unlink", "fails", EACCES },
	{ "getcwd", "fails", EACCES },
	{ "socket", "fails", EACCES },
	{ "kcmp", "fails", EACCES },
	{ "process_vm_readv", "fails", EACCES },
	{ "process_vm_writev", "fails", EACCES },
};

/*
 * Code of plug-ins is mapped from slots alone: memfds that only the broker can write to. For this rule the number of a
 * slot must always be that slot's file. The engine process can close none, dup2() and dup3() are in no row, and all
 * other calls that make a descriptor choose a free number. Code can never be mapped for writing too, nor become
 * writable and then code again (mprotect in `process`).
 */
static const struct uvd_sandbox_call plugin_calls[] = {
	{ "mmap",
	  "PROT_EXEC without PROT_WRITE, MAP_PRIVATE, of a slot",
	  0,
	  false,
	  3,
	  { { 2, SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC },
	    { 3, SCMP_CMP_MASKED_EQ, MAP_TYPE | MAP_ANONYMOUS, MAP_PRIVATE },
	    { 4, SCMP_CMP_MASKED_EQ, ~(uint64_t)(UVD_WIRE_SLOTS - 1), UVD_WIRE_FIRST_SLOT } } },
	{ "close", "no slot", .no_slot = true },
	/* The dynamic loader takes a slot's number for its own descriptor. */
	{ "close",
	  "of a slot does nothing",
	  UVD_SANDBOX_SKIP,
	  false,
	  1,
	  { { 0, SCMP_CMP_MASKED_EQ, ~(uint64_t)(UVD_WIRE_SLOTS - 1), UVD_WIRE_FIRST_SLOT } } },
	{ "close", "fails for -1", EBADF, false, 1, { { 0, SCMP_CMP_GT, UINT32_MAX, 0 } } },
};

/* Socket pairs: to the broker's children, and for event files. */
static const struct uvd_sandbox_call broker_calls[] = {
	{ "socketpair",
	  "AF_UNIX SOCK_SEQPACKET",
	  0,
	  false,
	  2,
	  { { 0, SCMP_CMP_EQ, AF_UNIX, 0 }, { 1, SCMP_CMP_EQ, SOCK_SEQPACKET | SOCK_CLOEXEC, 0 } } },
	{ "sendmsg" },
	{ "recvmsg" },
	{ "poll" },
	{ "fcntl", "F_DUPFD_CLOEXEC", 0, false, ARG_IS(1, F_DUPFD_CLOEXEC) },
	{ "sendto", "no address", 0, false, ARG_IS(4, 0) },
	{ "recvfrom", "no address", 0, false, ARG_IS(4, 0) },
	{ "shutdown" },
	{ "setsockopt",
	  "SO_SNDBUF",
	  0,
	  false,
	  2,
	  { { 1, SCMP_CMP_EQ, SOL_SOCKET, 0 }, { 2, SCMP_CMP_EQ, SO_SNDBUF, 0 } } },
	{ "setsockopt",
	  "SO_SNDBUFFORCE",
	  0,
	  false,
	  2,
	  { { 1, SCMP_CMP_EQ, SOL_SOCKET, 0 }, { 2, SCMP_CMP_EQ, SO_SNDBUFFORCE, 0 } } },
};

static const struct uvd_sandbox_call control_calls[] = {
	{ "accept4" },
	{ "sendto", "no address", 0, false, ARG_IS(4, 0) },
	{ "recvfrom", "no address", 0, false, ARG_IS(4, 0) },
	{ "getsockopt",
	  "SO_PEERCRED",
	  0,
	  false,
	  2,
	  { { 1, SCMP_CMP_EQ, SOL_SOCKET, 0 }, { 2, SCMP_CMP_EQ, SO_PEERCRED, 0 } } },
};

/* The read() of a channel is in `process`. libfuse asks for the owner of a session. */
static const struct uvd_sandbox_call cuse_calls[] = {
	{ "getuid" }, { "geteuid" }, { "getgid" }, { "getegid" }, { "writev" }, { "poll" },
};

/*
 * libibverbs, the providers and libnl, whose code is mapped before the sandbox is entered. Opens are safe by what the root
 * has: sysfs files that each user can read, and the nodes that the broker has made. No open begins at a descriptor: some
 * are those of folders of the host.
 */
static const struct uvd_sandbox_call verbs_calls[] = {
	{ "open" },
	{ "openat", "by a path from the root", 0, false, ARG_HAS(0, UINT32_MAX, (uint32_t)AT_FDCWD) },
	{ "openat", "fails at a descriptor", EACCES, false, ARG_HAS(0, 1u << 31, 0) },
	{ "getdents64" },
	{ "ioctl", "RDMA_VERBS_IOCTL", 0, false, ARG_HAS(1, UINT32_MAX, RDMA_VERBS_IOCTL) },
	{ "uname" },
	{ "capget" }, /* does it have rights that a driver would give to clients? */
	/* the thread that relays events, and its watch of the adapter's node */
	{ "epoll_create1" },
	{ "epoll_ctl" },
	{ "epoll_wait" },
	{ "epoll_pwait" },
	{ "inotify_init1" },
	{ "inotify_add_watch" },
	/* the adapters; routes, neighbours and names of network devices */
	{ "socket",
	  "NETLINK_RDMA",
	  0,
	  false,
	  2,
	  { { 0, SCMP_CMP_EQ, AF_NETLINK, 0 }, { 2, SCMP_CMP_EQ, NETLINK_RDMA, 0 } } },
	{ "socket",
	  "NETLINK_ROUTE",
	  0,
	  false,
	  2,
	  { { 0, SCMP_CMP_EQ, AF_NETLINK, 0 }, { 2, SCMP_CMP_EQ, NETLINK_ROUTE, 0 } } },
	{ "socket", "UDP", 0, false, UDP_SOCKET(AF_INET) },
	{ "socket", "UDP over IPv6", 0, false, UDP_SOCKET(AF_INET6) },
	{ "socket", "AF_UNIX fails", EACCES, false, ARG_IS(0, AF_UNIX) },
	{ "bind" },
	{ "getsockname" },
	{ "sendto" },
	{ "setsockopt",
	  "SO_RCVBUF",
	  0,
	  false,
	  2,
	  { { 1, SCMP_CMP_EQ, SOL_SOCKET, 0 }, { 2, SCMP_CMP_EQ, SO_RCVBUF, 0 } } },
	{ "setsockopt", "SOL_NETLINK", 0, false, ARG_IS(1, SOL_NETLINK) },
	{ "ioctl", "SIOCGIFNAME", 0, false, ARG_HAS(1, UINT32_MAX, SIOCGIFNAME) },
	{ "ioctl", "SIOCGIFINDEX", 0, false, ARG_HAS(1, UINT32_MAX, SIOCGIFINDEX) },
	{ "timerfd_create" },
	{ "timerfd_settime" },
	{ "select" },
	{ "pselect6" },
};

/*
 * The sockets that the broker has opened stay in its network namespace. The engine process can open no other one, and neither connect
 * them nor change their options.
 */
static const struct uvd_sandbox_call wire_calls[] = {
	{ "recvmmsg" },
	{ "sendmmsg" },
	{ "recvmsg" }, /* what ICMP has told: MSG_ERRQUEUE */
	{ "poll" },
	{ "ppoll" },
	{ "getsockname" },
	/* is it a UDP socket, of the broker's (IP_MTU_DISCOVER), and how large is its buffer? */
	{ "getsockopt", "SOL_SOCKET", 0, false, ARG_IS(1, SOL_SOCKET) },
	{ "getsockopt", "IPPROTO_IP", 0, false, ARG_IS(1, IPPROTO_IP) },
	{ "getsockopt", "IPPROTO_IPV6", 0, false, ARG_IS(1, IPPROTO_IPV6) },
};

/*
 * The child for questions opens files of threads below /proc, and answers. open() and openat() can open `mem` for
 * writing, but create no file. The flags of openat2() are in memory, which no filter reads.
 */
static const struct uvd_sandbox_call questions_calls[] = {
	{ "close" },
	{ "recvmsg" },
	{ "sendmsg" },
	{ "open", "creates nothing", 0, false, ARG_HAS_NO(1, MAKES_FILE) },
	{ "openat", "creates nothing", 0, false, ARG_HAS_NO(2, MAKES_FILE) },
	{ "openat2" },
	{ "faccessat" },
	{ "faccessat2" },
	{ "fstat" },
	{ "stat" },
	{ "newfstatat" },
	{ "statx" },
	{ "getdents64" },
	{ "readlinkat" },
	{ "kcmp", "KCMP_VM", 0, false, ARG_IS(2, KCMP_VM) },
	{ "ioctl", "NS_GET_OWNER_UID", 0, false, ARG_HAS(1, UINT32_MAX, NS_GET_OWNER_UID) },
	{ "ioctl", "NS_GET_PARENT", 0, false, ARG_HAS(1, UINT32_MAX, NS_GET_PARENT) },
	{ "memfd_create" },
};

/* A child that maps the code of a plug-in, to see what it declares. Calls in no row of it fail with EPERM. */
static const struct uvd_sandbox_call look_calls[] = {
	{ "close" },
	{ "mmap" },
	{ "mprotect" },
	{ "open", "for reading", 0, false, ARG_HAS_NO(1, O_ACCMODE | MAKES_FILE) },
	{ "openat", "for reading", 0, false, ARG_HAS_NO(2, O_ACCMODE | MAKES_FILE) },
	{ "fstat" },
	{ "stat" },
	{ "newfstatat" },
	{ "statx" },
	{ "access" },
	{ "readlink" },
	{ "readlinkat" },
	{ "lseek" },
	{ "getcwd" },
	{ "clone", "threads", 0, false, ARG_HAS(0, ~(uint64_t)THREAD_MAY, THREAD) },
	{ "clone3", "fails", ENOSYS },
	{ "set_robust_list" },
	{ "rseq" },
	{ "rt_sigaction" },
	{ "rt_sigprocmask" },
	{ "sched_getaffinity" },
	{ "sysinfo" },
	{ "uname" },
	{ "getuid" },
	{ "geteuid" },
	{ "getgid" },
	{ "getegid" },
	{ "getppid" },
	{ "prlimit64", "its own, to read", 0, false, 2, { { 0, SCMP_CMP_EQ, 0, 0 }, { 2, SCMP_CMP_EQ, 0, 0 } } },
};

/*
 * Files of queues: what clients write into their memory is given back, also where this process does not map it, and a reader sleeps until
 * there is something. A hole changes no file but one that the process can write anyway.
 */
static const struct uvd_sandbox_call queues_calls[] = {
	{ "fallocate", "makes holes", 0, false, ARG_IS(1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) },
	{ "inotify_rm_watch" },
	{ "ppoll" },
	{ "sched_getaffinity" },
	{ "sched_getattr" },
	{ "sched_setattr", "its own", 0, false, ARG_IS(0, 0) },
};

#define CALLS(table) sizeof(table) / sizeof(table[0]), table

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/*
 * A sanitizer's run-time library: reports with the names of functions, and the look for leaks, for which a process that shares
 * our memory traces all threads. No row of the product: it is not in rows[], and so not in the documents.
 */
static const struct uvd_sandbox_call sanitizer_calls[] = {
	/* reports */
	{ "open" },
	{ "openat" },
	{ "readlink" },
	{ "pipe" },
	{ "pipe2" },
	/* leaks */
	{ "clone", "shares the memory", 0, false, ARG_HAS(0, CLONE_VM | CLONE_UNTRACED, CLONE_VM | CLONE_UNTRACED) },
	{ "ptrace" },
	{ "wait4" },
	{ "kill" },
	{ "getdents" },
	{ "getdents64" },
	{ "prctl", "PR_GET_DUMPABLE", 0, false, ARG_IS(0, PR_GET_DUMPABLE) },
	{ "prctl", "PR_SET_DUMPABLE", 0, false, ARG_IS(0, PR_SET_DUMPABLE) },
	{ "prctl", "PR_SET_PTRACER", 0, false, ARG_IS(0, PR_SET_PTRACER) },
	{ "prctl", "PR_SET_PDEATHSIG", 0, false, ARG_IS(0, PR_SET_PDEATHSIG) },
};

static const struct uvd_sandbox_row sanitizer_row = { .name = "sanitizer",
						      .when = "of a sanitizer's build",
						      .num_calls = sizeof(sanitizer_calls) / sizeof(sanitizer_calls[0]),
						      .calls = sanitizer_calls,
						      .reports = true };
const char *const uvd_sandbox_sanitizer = "sanitizer";
#else
const char *const uvd_sandbox_sanitizer;
#endif

static const struct uvd_sandbox_row rows[] = {
	{ "process", "all", "the log", 0, CALLS(process_calls) },
	{ "engine", "the engine process", "`/proc/self/fd` (O_PATH)", 0, CALLS(engine_calls) },
	{ "plugin", "the engine process", "64 slots, which the broker fills from `--plugin-dir` and `--plugin`", 0,
	  CALLS(plugin_calls) },
	{ "broker", "the engine process", "the socket to the broker", 0, CALLS(broker_calls) },
	{ "control", "the engine process", "the control socket", 0, CALLS(control_calls) },
	{ "cuse", "the engine process", NULL, 0, CALLS(cuse_calls) },
	{ "queues", "the engine process", "nothing; the broker sends the channel of the file system, and memory", 0,
	  CALLS(queues_calls) },
	{ "null", "with devices of this backend", NULL, 0, 0, NULL },
	{ "soft", "with devices of this backend", NULL, 0, 0, NULL },
	{ "verbs", "with devices of this backend",
	  "the code of libibverbs and of all providers; the folders `/sys/class/infiniband`, `/sys/class/infiniband_verbs` and "
	  "`/sys/devices`, to read; the adapters' nodes, each when a device needs it",
	  CLONE_NEWNET, CALLS(verbs_calls), .adapters = true },
	{ "wire", "with `--wire`", "a UDP socket for each address", 0, CALLS(wire_calls) },
	{ "questions", "the child for questions", "its socket", 0, CALLS(questions_calls) },
	{ "look", "the child that looks at a plug-in", "a copy of the file, a pipe", 0, CALLS(look_calls) },
};

const struct uvd_sandbox_row *uvd_sandbox_row_at(unsigned int i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const struct uvd_sandbox_row *uvd_sandbox_row(const char *name)
{
	const struct uvd_sandbox_row *r;

	for (unsigned int i = 0; (r = uvd_sandbox_row_at(i)); i++)
		if (!strcmp(r->name, name))
			break;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	if (!r && !strcmp(name, sanitizer_row.name))
		r = &sanitizer_row;
#endif
	return r;
}

static void print_calls(FILE *f, const struct uvd_sandbox_row *r)
{
	for (unsigned int i = 0; i < r->num_calls; i++) {
		fprintf(f, "%s%s", i ? " " : "", r->calls[i].name);
		if (r->calls[i].only)
			fprintf(f, " (%s)", r->calls[i].only);
	}
	if (!r->num_calls)
		fprintf(f, "nothing more");
}

void uvd_sandbox_print(FILE *f)
{
	const struct uvd_sandbox_row *r;

	fprintf(f,
		"| row | process | opened before | namespaces kept | system calls |\n| --- | --- | --- | --- | --- |\n");
	for (unsigned int i = 0; (r = uvd_sandbox_row_at(i)); i++) {
		fprintf(f, "| `%s` | %s | %s | %s | ", r->name, r->when, r->opened ? r->opened : "",
			r->keeps & CLONE_NEWNET	  ? "network"
			: r->keeps & CLONE_NEWIPC ? "IPC"
						  : "");
		print_calls(f, r);
		fprintf(f, " |\n");
	}
}
