/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsd: RDMA device nodes served from userspace, for the whole machine. */
#include "daemon/daemon.h"
#include "options/options.h"
#include "util/util.h"
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct uvd_help_head help_head = {
	.synopses = (const char *const[]){ "uverbsd [OPTION...]", NULL },
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsd", "one device, rxe0 or (before Linux 6.9) hfi1_0, until it is interrupted" },
			{ "uverbsd --devices 2 --ports 2", "two of two ports each" },
			{ "uverbsd --separate no",
			  "one process with root's rights serves the clients, for a debugger" },
			{},
		},
};

int main(int argc, char **argv)
{
	struct uvd_options options;
	int status = uvd_fd_open_standard();

	if (status) {
		dprintf(STDERR_FILENO, "%s: /dev/null: %s: standard descriptors are closed, and cannot be opened\n",
			argv[0], uvd_errno_name(status));
		return 1;
	}
	if (argc == 2 && !strcmp(argv[1], "--internal-facts"))
		return uvd_daemon_facts();
	/* Every grant has a thread of its own. Without a limit glibc would give many a heap that it never frees. */
	mallopt(M_ARENA_MAX, 2);
	/* Each worker has a buffer for the longest request. Of most of them only the first page is used. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	status = uvd_options_parse(&options, UVD_PROGRAM_DAEMON, uvd_daemon_can_map, &help_head, argc, argv);
	if (status >= 0)
		return status;
	if (options.first_arg < argc) {
		dprintf(STDERR_FILENO, "%s: unexpected argument `%s`; try --help\n", argv[0], argv[options.first_arg]);
		uvd_options_free(&options);
		return 2;
	}
	status = uvd_daemon_main(&options);
	uvd_options_free(&options);
	return status;
}
