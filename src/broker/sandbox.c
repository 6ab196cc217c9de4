/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each process gives up all capabilities that its role does not need. The engine process and the children for
 * questions also give up system calls, and the engine process enters namespaces of its own.
 */
#include <cap-ng.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/loader.h"
#include "broker/sandbox.h"
#include "broker/serve.h"
#include "broker/wire.h"
#include "cpu/cpu.h"
#include "util/util.h"

enum { NOBODY = 65534, LOOK_CPU_S = 60 };
enum { BROKER = 1 << UVD_PROCESS_BROKER, QUESTIONS = 1 << UVD_PROCESS_QUESTIONS, LOAN = 1 << UVD_PROCESS_LOAN };

static const struct {
	unsigned int cap, roles;
	const char *reason;
} privileges[] = {
	{ CAP_SYS_PTRACE, BROKER | QUESTIONS | LOAN, "clients' memory, and the threads that loans borrow" },
	{ CAP_DAC_OVERRIDE, BROKER | QUESTIONS | LOAN, "/proc/TID/mem and /proc/TID/fd belong to the client's user" },
	{ CAP_SYS_ADMIN, BROKER | LOAN,
	  "PTRACE_O_SUSPEND_SECCOMP, for clients with a filter; the broker's overlay mount" },
	{ CAP_SETUID, BROKER, "a loan's process becomes the client's user" },
	{ CAP_SETGID, BROKER, "the same" },
	{ CAP_KILL, BROKER, "signals to the engine process, which is another user's, and to loans' processes" },
	{ CAP_CHOWN, BROKER, "the group of a node (--group)" },
	{ CAP_FOWNER, BROKER, "mode and name of a node where /dev belongs to another user" },
	{ CAP_MKNOD, BROKER, "a node where /dev is no devtmpfs" },
	{ CAP_SETPCAP, BROKER, "dropping capabilities from the children's bounding sets" },
};

/* ---- capabilities ------------------------------------------------------------------------------------------------ */

bool uvd_process_role_take(enum uvd_process_role role)
{
	capng_clear(CAPNG_SELECT_ALL);
	for (unsigned int i = 0; i < sizeof(privileges) / sizeof(privileges[0]); i++)
		if (privileges[i].roles & 1u << role)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET,
				     privileges[i].cap);
	/* Changing the bounding set needs CAP_SETPCAP, which a process that became another user has lost. */
	if (capng_apply(geteuid() ? CAPNG_SELECT_CAPS : CAPNG_SELECT_BOTH) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	/*
	 * The broker and its children for loans have no filter: the kernel refuses PTRACE_O_SUSPEND_SECCOMP to a process that has
	 * one, and a child inherits its parent's filter.
	 */
	return role != UVD_PROCESS_QUESTIONS ||
	       !uvd_sandbox_load((const char *const[]){ "process", "questions", NULL }, SCMP_ACT_KILL_PROCESS);
}

bool uvd_broker_may_run(struct uvd_log *log)
{
	char missing[256] = "";
	size_t len = 0;

	for (unsigned int i = 0; i < sizeof(privileges) / sizeof(privileges[0]); i++)
		if (privileges[i].roles & BROKER && !capng_have_capability(CAPNG_PERMITTED, privileges[i].cap))
			len += snprintf(missing + len, sizeof(missing) - len, " CAP_%s",
					capng_capability_to_name(privileges[i].cap));
	for (char *c = missing; *c; c++)
		*c = toupper(*c);
	if (len)
		uvd_logf(
			log, UVD_ERR,
			"two processes need capabilities that this one lacks:%s; start uverbsd as root, or as one process "
			"with --separate no",
			missing);
	return !len;
}

/* ---- the filter of system calls ---------------------------------------------------------------------------------- */

/*
 * Allows the call for all descriptors below the slots and beyond them. The kernel looks at 32 bits of a number: if the
 * filter allowed others in the upper half, it could be passed by. No rule can have two comparisons of one argument, so
 * each number beyond the slots is one that has a higher bit.
 */
static int add_call_without_slots(scmp_filter_ctx ctx, int nr)
{
	int ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1, SCMP_A0_64(SCMP_CMP_LT, UVD_WIRE_FIRST_SLOT));

	for (uint64_t bit = UVD_WIRE_FIRST_SLOT + UVD_WIRE_SLOTS; !ret && bit <= 1u << 31; bit <<= 1)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
				       SCMP_A0_64(SCMP_CMP_MASKED_EQ, ~(uint64_t)UINT32_MAX | bit, bit));
	return ret;
}

static uint32_t call_action(const struct uvd_sandbox_call *c)
{
	if (!c->err)
		return SCMP_ACT_ALLOW;
	return c->err == UVD_SANDBOX_SKIP ? SCMP_ACT_ERRNO(0) : SCMP_ACT_ERRNO(c->err);
}

static int add_call(scmp_filter_ctx ctx, const struct uvd_sandbox_call *c)
{
	const char *instead = uvd_cpu_call_instead(uvd_cpu, c->name);
	const int nr = seccomp_syscall_resolve_name(instead ? instead : c->name);
	struct scmp_arg_cmp cmp[4];
	unsigned int num = 0;
	int ret;

	/* The architecture does not have this call. */
	if (nr < 0)
		return 0;
	if (c->own)
		cmp[num++] = SCMP_A0_64(SCMP_CMP_EQ, getpid());
	for (unsigned int i = 0; i < c->num_cmp; i++)
		cmp[num++] = c->cmp[i];
	if (c->no_slot)
		return add_call_without_slots(ctx, nr);
	ret = seccomp_rule_add_array(ctx, call_action(c), nr, num, cmp);
	return ret == -EEXIST ? 0 : ret; /* another row has the same rule */
}

static bool row_allows(const struct uvd_sandbox_row *row, const char *call)
{
	for (unsigned int i = 0; row && i < row->num_calls; i++)
		if (!row->calls[i].err && !strcmp(row->calls[i].name, call))
			return true;
	return false;
}

/* Does the rule let all of a call fail, of which another row allows some? libseccomp would take one of the two. */
static bool call_is_overruled(const struct uvd_sandbox_call *c, const char *const *names)
{
	if (c->err <= 0 || c->num_cmp)
		return false;
	for (; *names; names++)
		if (row_allows(uvd_sandbox_row(*names), c->name))
			return true;
	return false;
}

static int sandbox_add_row(scmp_filter_ctx ctx, const struct uvd_sandbox_row *row, const char *const *all)
{
	int ret = row ? 0 : -EOPNOTSUPP;

	for (unsigned int i = 0; !ret && i < row->num_calls; i++)
		if (!call_is_overruled(&row->calls[i], all))
			ret = add_call(ctx, &row->calls[i]);
	return ret;
}

int uvd_sandbox_load(const char *const *names, uint32_t otherwise)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);
	int ret = ctx ? 0 : -ENOMEM;

	for (const char *const *name = names; !ret && *name; name++)
		ret = sandbox_add_row(ctx, uvd_sandbox_row(*name), names);
	if (!ret)
		ret = seccomp_load(ctx);
	seccomp_release(ctx);
	return ret;
}

/* ---- the engine process ------------------------------------------------------------------------------------------ */

/* The rows of every engine process; the backends' follow. */
static const char *const engine_rows[] = { "process", "engine", "plugin", "broker", "control", "cuse", "queues" };
enum { ENGINE_ROWS = sizeof(engine_rows) / sizeof(engine_rows[0]), MAX_ROWS = ENGINE_ROWS + UVD_SANDBOX_BACKENDS };

/* Stores the rows of an engine process with these backends in names, each once, then NULL. Returns 0 or -E2BIG. */
static int list_rows(const char *const *backends, const char *names[MAX_ROWS + 1])
{
	unsigned int num = ENGINE_ROWS, i;

	memcpy(names, engine_rows, sizeof(engine_rows));
	for (; *backends; backends++) {
		for (i = 0; i < num && strcmp(names[i], *backends) != 0; i++)
			;
		if (i == MAX_ROWS)
			return -E2BIG;
		names[i] = *backends;
		num = i == num ? num + 1 : num;
	}
	names[num] = NULL;
	return 0;
}

/* Makes the folder of a path below the working directory, and those above it. */
static bool root_make_folders(const char *path)
{
	char part[PATH_MAX];

	for (const char *end = path; (end = strchrnul(end, '/')); end++) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (mkdir(part, 0755) && errno != EEXIST)
			return false;
		if (!*end)
			break;
	}
	return true;
}

/* Shows a folder of the host below the working directory, to read. Without adapters the kernel does not have it. */
static bool root_show(const char *path)
{
	if (access(path, F_OK))
		return errno == ENOENT;
	return root_make_folders(path + 1) && !mount(path, path + 1, NULL, MS_BIND, NULL) &&
	       !mount(NULL, path + 1, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/*
 * Gives a process with adapters their files in the new root, which is the working directory. Only root can change the
 * folder of nodes: the broker does, when a device needs an adapter.
 */
static bool root_add_adapters(void)
{
	static const char *const shown[] = { "/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/devices" };

	for (unsigned int i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!root_show(shown[i]))
			return false;
	return root_make_folders("dev/infiniband") &&
	       !mount("uverbsd", "dev/infiniband", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=0,mode=0755");
}

/* Stores the folder that a sanitizer's reports go to, an absolute path. Returns false if they go to stderr. */
static bool reports_folder(char folder[PATH_MAX])
{
	static const char *const variables[] = { "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS" };
	const char *path = NULL, *end;

	for (unsigned int i = 0; i < sizeof(variables) / sizeof(variables[0]) && !path; i++)
		path = strstr(getenv(variables[i]) ?: "", "log_path=/");
	if (!path)
		return false;
	path += strlen("log_path=");
	end = path + strcspn(path, ": ");
	while (end > path && *end != '/')
		end--;
	snprintf(folder, PATH_MAX, "%.*s", (int)(end - path), path);
	return true;
}

/* Gives a process with a sanitizer what its run-time library opens. Of /proc it sees the processes of its own user. */
static bool root_add_reports(void)
{
	char folder[PATH_MAX];

	if (!root_make_folders("proc") || mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2"))
		return false;
	return !reports_folder(folder) ||
	       (root_make_folders(folder + 1) && !mount(folder, folder + 1, NULL, MS_BIND, NULL));
}

/*
 * Enters empty namespaces, except those that a row keeps. The new root is a read-only tmpfs, empty but for adapters and a
 * sanitizer's reports.
 */
static int enter_namespaces(const char *const *names)
{
	bool adapters = false, reports = false;
	int keeps = 0;

	for (; *names; names++) {
		const struct uvd_sandbox_row *row = uvd_sandbox_row(*names);

		keeps |= row ? row->keeps : 0;
		adapters = adapters || (row && row->adapters);
		reports = reports || (row && row->reports);
	}
	if (unshare(CLONE_NEWNS | ((CLONE_NEWNET | CLONE_NEWIPC) & ~keeps)) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("uverbsd", "/dev", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=0,mode=0555") || chdir("/dev") ||
	    (adapters && !root_add_adapters()) || (reports && !root_add_reports()) ||
	    syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/") ||
	    mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	return 0;
}

static int enter_sandbox(uid_t uid, gid_t gid, const char *const *backends)
{
	const pid_t broker = getppid();
	const char *names[MAX_ROWS + 1];
	int err = list_rows(backends, names);

	if (!err)
		err = enter_namespaces(names);
	if (err)
		return err;
	capng_get_caps_process();
	capng_clear(CAPNG_SELECT_BOUNDS);
	if (capng_apply(CAPNG_SELECT_BOUNDS) || setgroups(0, NULL) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid) || !uvd_process_role_take(UVD_PROCESS_ENGINE) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	/* The broker may have ended before PR_SET_PDEATHSIG was set. */
	if (getppid() != broker)
		return -ESRCH;
	err = uvd_loader_start(names);
	return err ? err : uvd_sandbox_load(names, SCMP_ACT_KILL_PROCESS);
}

int uvd_engine_sandbox(uid_t uid, gid_t gid, const char *const *backends, struct uvd_log *log)
{
	int err = enter_sandbox(uid, gid, backends);

	if (err)
		uvd_logf(log, UVD_ERR,
			 "cannot give up the engine process's privileges: %s; with --separate no uverbsd keeps them",
			 uvd_errno_name(err));
	return err;
}

/* ---- a process that looks at a plug-in --------------------------------------------------------------------------- */

/*
 * Becomes the user nobody. In a user namespace that has no such user, root is an unprivileged user outside: then giving
 * up the capabilities has to do. So it has for a root without the capability to become somebody else.
 */
static int look_become_nobody(void)
{
	const bool may = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID) &&
			 capng_have_capability(CAPNG_EFFECTIVE, CAP_SETGID);

	if (setgroups(0, NULL) && errno != EPERM)
		return -errno;
	if (setresgid(NOBODY, NOBODY, NOBODY) && errno != EINVAL && (may || errno != EPERM))
		return -errno;
	return setresuid(NOBODY, NOBODY, NOBODY) && errno != EINVAL && (may || errno != EPERM) ? -errno : 0;
}

/* A change of the user clears what PR_SET_PDEATHSIG sets. */
static int look_end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static int look_limit_time(void)
{
	struct rlimit cpu;

	if (getrlimit(RLIMIT_CPU, &cpu))
		return -errno;
	if (cpu.rlim_cur <= LOOK_CPU_S)
		return 0;
	cpu.rlim_cur = LOOK_CPU_S;
	return setrlimit(RLIMIT_CPU, &cpu) ? -errno : 0;
}

int uvd_look_sandbox(pid_t parent)
{
	static const char *const names[] = { "process", "look", NULL };
	int err = geteuid() ? 0 : look_become_nobody();

	err = err ?: look_end_with(parent) ?: look_limit_time();

	if (err)
		return err;
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_apply(CAPNG_SELECT_CAPS) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -EPERM;
	return uvd_sandbox_load(names, SCMP_ACT_ERRNO(EPERM));
}
