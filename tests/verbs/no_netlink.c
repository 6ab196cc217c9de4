/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * no_netlink PROGRAM [ARG...]: executes PROGRAM under a seccomp filter in which socket(AF_NETLINK, ..., NETLINK_RDMA) fails, so
 * that its libibverbs asks the published sysfs directory and not the kernel, which has an adapter too.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_RDMA, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { .len = sizeof(rows) / sizeof(rows[0]), .filter = rows };

	if (argc < 2) {
		fprintf(stderr, "usage: no_netlink PROGRAM [ARG...]\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("no filter");
		return 1;
	}
	setenv("SYSFS_PATH", "/run/uverbsd/sysfs", 0);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
