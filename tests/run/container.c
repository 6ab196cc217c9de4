// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * run_container PROGRAM [ARG...]: executes PROGRAM with what Docker leaves a process by default: its system calls (the default seccomp
 * profile of moby, read at 02e898b of moby/profiles) and, for root, its capabilities.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Calls of the profile's lists for capabilities that a container does not have, and calls that are in no list. */
static const char *const refused[] = {
	"unshare",
	"setns",
	"mount",
	"umount2",
	"mount_setattr",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"bpf",
	"perf_event_open",
	"kcmp",
	"pidfd_getfd",
	"process_madvise",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"keyctl",
	"add_key",
	"request_key",
	"syslog",
	"quotactl",
	"lookup_dcookie",
	"fanotify_init",
	"acct",
	"pivot_root",
	"swapon",
	"init_module",
	"finit_module",
	"delete_module",
	"reboot",
	"open_by_handle_at",
	"settimeofday",
	"clock_settime",
	"iopl",
	"ioperm",
	"vhangup",
	"set_mempolicy",
	"mbind",
	"get_mempolicy",
	"migrate_pages",
	"move_pages",
	"nfsservctl",
	"sysfs",
	"kexec_load",
	"ustat",
};

static const int capabilities[] = {
	CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FSETID,  CAP_FOWNER, CAP_MKNOD,      CAP_NET_RAW,	     CAP_SETGID,
	CAP_SETUID, CAP_SETFCAP,      CAP_SETPCAP, CAP_KILL,   CAP_SYS_CHROOT, CAP_NET_BIND_SERVICE, CAP_AUDIT_WRITE,
};

static int capabilities_drop(void)
{
	unsigned int kept;

	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		for (kept = 0; kept < sizeof(capabilities) / sizeof(*capabilities); kept++)
			if (capabilities[kept] == cap)
				break;
		if (kept == sizeof(capabilities) / sizeof(*capabilities) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) &&
		    errno != EPERM && errno != EINVAL)
			return -1;
	}
	return 0;
}

static int calls_refuse(void)
{
	const unsigned long namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
					 CLONE_NEWPID | CLONE_NEWNET;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int ret = ctx ? 0 : -ENOMEM;

	for (unsigned int i = 0; !ret && i < sizeof(refused) / sizeof(*refused); i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(refused[i]), 0);
	for (unsigned int bit = 0; !ret && bit < 32; bit++)
		if (namespaces & 1UL << bit)
			ret = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					       SCMP_A0(SCMP_CMP_MASKED_EQ, 1UL << bit, 1UL << bit));
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!ret)
		ret = seccomp_load(ctx);
	seccomp_release(ctx);
	return ret;
}

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2)
		return 2;
	ret = capabilities_drop() ? -errno : calls_refuse();
	if (ret) {
		fprintf(stderr, "run_container: %s\n", strerror(-ret));
		return 125;
	}
	execvp(argv[1], argv + 1);
	return 127;
}
