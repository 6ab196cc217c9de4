/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decides which processes ring doorbells without an answer (src/doorbell). The kernel carries out every write() of 32 bytes that such a
 * process makes on the device, so the process must not write other commands of that length. An old libibverbs does: before release 19 of
 * rdma-core all commands are write()s. Since release 22 libibverbs asks for devices by netlink first, and falls back to sysfs because it
 * gets no such socket here. So the commands of a process that asked for one are ioctl()s. Other programs open the device by
 * themselves, and may write any command.
 */
#include <errno.h>
#include <sys/resource.h>

#include "run/internal.h"

static pid_t direct_caller(struct uvd_run_tree *tree)
{
	return uvd_run_caller(tree) ? uvd_caller_tgid(&tree->call->caller) : 0;
}

static pid_t *direct_find(struct uvd_run_direct *direct, pid_t tgid)
{
	for (unsigned int i = 0; i < UVD_RUN_ASKED; i++)
		if (direct->asked[i] == tgid)
			return &direct->asked[i];
	return NULL;
}

void uvd_run_direct_asked(struct uvd_run_tree *tree)
{
	struct uvd_run_direct *direct = &tree->direct;
	const pid_t tgid = direct_caller(tree);

	if (tgid > 0 && !direct_find(direct, tgid)) {
		direct->asked[direct->next] = tgid;
		direct->next = (direct->next + 1) % UVD_RUN_ASKED;
		direct->any = true;
	}
}

void uvd_run_direct_exec(struct uvd_run_tree *tree)
{
	const pid_t tgid = tree->direct.any ? direct_caller(tree) : 0;
	pid_t *place = tgid > 0 ? direct_find(&tree->direct, tgid) : NULL;

	if (place)
		*place = 0;
}

struct uvd_doorbells *uvd_run_doorbells(struct uvd_run_tree *tree)
{
	struct uvd_run_direct *direct = &tree->direct;
	const pid_t tgid = direct->any ? uvd_caller_tgid(&tree->call->caller) : 0;

	if (tgid <= 0 || !direct_find(direct, tgid))
		return NULL;
	if (!direct->doorbells)
		direct->doorbells = uvd_doorbells_new(tree->engine->log);
	return direct->doorbells;
}

/*
 * setrlimit(RLIMIT_FSIZE) of a process that has a log: the kernel would end it by SIGXFSZ at its next doorbell, as a log lies beyond
 * each finite limit.
 */
long uvd_run_direct_limit(struct uvd_run_tree *tree, const struct uvd_run_args *args)
{
	struct rlimit limit;
	pid_t tgid;

	/* Another process: its number is one of the caller's pid namespace. */
	if (args->fd || !tree->direct.any || !uvd_run_caller(tree) ||
	    uvd_caller_read(&tree->call->caller, &limit, args->buf, sizeof(limit)) || limit.rlim_cur == RLIM_INFINITY)
		return UVD_RUN_CONTINUE;
	tgid = uvd_caller_tgid(&tree->call->caller);
	if (tgid <= 0 || !uvd_run_files_has_log(&tree->engine->files, tgid))
		return UVD_RUN_CONTINUE;
	uvd_logf(
		tree->engine->log, UVD_WARN,
		"process %d: setrlimit(RLIMIT_FSIZE, %llu) is refused, as it has a device open whose doorbells are write()s "
		"beyond that: set the limit before the program opens the device, or use --doorbells calls",
		(int)tgid, (unsigned long long)limit.rlim_cur);
	return -EPERM;
}
