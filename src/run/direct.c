/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decides which processes ring doorbells without an answer (src/doorbell). The kernel carries out every write() of 32 bytes that such a
 * process makes on the device, so the process must not write other commands of that length. An old libibverbs does: before release 19 of
 * rdma-core all commands are write()s. Since release 22 libibverbs asks for devices by netlink first, and falls back to sysfs because it
 * gets no such socket here. So the commands of a process that asked for one are ioctl()s. Other programs open the device by
 * themselves, and may write any command.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
		direct->doorbells = uvd_doorbells_new(tree->engine->log, NULL);
	return direct->doorbells;
}

/* ---- RLIMIT_FSIZE ------------------------------------------------------------------------------------------------ */

/* Returns how many numbers the line of a status file has; *last: the last one. */
static unsigned int status_numbers(const char *text, const char *name, long *last)
{
	const char *p = strstr(text, name);
	unsigned int num = 0;
	char *end;

	for (p = p ? p + strlen(name) : ""; *p == '\t'; p = end, num++)
		*last = strtol(p, &end, 10);
	return num;
}

/*
 * Returns the thread that a prlimit() with this number is for, or 0: unknown. The number is one of the caller's pid namespace: if that is
 * not the tree's it means something here only if it is the caller's own.
 */
static pid_t limit_tid(struct uvd_run_tree *tree, int number)
{
	long process = 0, thread = 0;
	char text[4096];
	int fd;

	if (!number)
		return tree->tid;
	fd = tree->proc.open(&tree->proc, tree->tid, "status", O_RDONLY);
	if (fd < 0 || number < 0 || number >= UVD_PROC_NUMBERS || uvd_status_read(fd, text, sizeof(text)) <= 0)
		*text = 0;
	if (fd >= 0)
		close(fd);
	if (!*text)
		return 0;
	status_numbers(text, "\nNStgid:", &process);
	if (status_numbers(text, "\nNSpid:", &thread) <= 1)
		return number + tree->proc.base;
	return number == process || number == thread ? tree->tid : 0;
}

/* A process that is to be limited: one of its threads, and its number. */
struct limit_target {
	pid_t tid, tgid;
};

/*
 * Returns the file behind a descriptor of the process, with a reference, if a write() to that one may land in a log, else NULL. A child that
 * has inherited it and closes it by exec counts as one that has none: many set limits between fork() and exec. dir: /proc/TID/fd
 */
static struct uvd_run_file *limit_log(struct uvd_run_tree *tree, const struct limit_target *target, int dir,
				      const char *name)
{
	char path[sizeof("fdinfo/") + NAME_MAX];
	struct uvd_run_file *f = NULL;
	struct uvd_run_inode inode;
	unsigned int flags = 0;
	int info;

	/* EACCES: the process is of another user namespace. */
	if (!uvd_run_file_is_linked(dir, name) && errno != EACCES)
		return NULL;
	snprintf(path, sizeof(path), "fdinfo/%s", name);
	info = tree->proc.open(&tree->proc, target->tid, path, O_RDONLY);
	if (info < 0)
		return NULL;
	if (!uvd_run_inode_read(info, &inode) && !uvd_run_flags_read(info, &flags) && (flags & O_ACCMODE) != O_RDONLY)
		f = uvd_run_file_get(&tree->engine->files, &inode);
	close(info);
	if (!f || (f->log && (!(flags & O_CLOEXEC) || f->opener.who.tgid == target->tgid)))
		return f;
	uvd_run_file_put(f);
	return NULL;
}

/* Has the process a descriptor whose doorbells have a log? An opener may have closed its own, and others have inherited it. */
static bool limit_finds_log(struct uvd_run_tree *tree, const struct limit_target *target)
{
	int fd = tree->proc.open(&tree->proc, target->tid, "fd", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct uvd_run_file *f = NULL;
	const struct dirent *e;

	if (fd >= 0 && !dir)
		close(fd);
	while (dir && !f && (e = readdir(dir)))
		f = limit_log(tree, target, dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	if (f)
		uvd_run_file_put(f);
	return f;
}

/*
 * setrlimit(RLIMIT_FSIZE) for a process that has a log: the kernel would end it by SIGXFSZ at its next doorbell, as a log lies beyond
 * each finite limit.
 */
long uvd_run_direct_limit(struct uvd_run_tree *tree, const struct uvd_run_args *args)
{
	struct limit_target target;
	struct rlimit limit;

	if (!tree->engine->files.has_logs || !uvd_run_caller(tree) ||
	    uvd_caller_read(&tree->call->caller, &limit, args->buf, sizeof(limit)) || limit.rlim_cur == RLIM_INFINITY)
		return UVD_RUN_CONTINUE;
	target.tid = limit_tid(tree, args->fd);
	target.tgid = target.tid == tree->tid ? uvd_caller_tgid(&tree->call->caller) : target.tid;
	if (!target.tid || !limit_finds_log(tree, &target))
		return UVD_RUN_CONTINUE;
	uvd_log_of_user(
		tree->engine->log, tree->call->caller.log_user, UVD_WARN,
		"process %d: setrlimit(RLIMIT_FSIZE, %llu) is refused, as it has a device open whose doorbells are write()s "
		"beyond that: set the limit before the program opens the device, or use --doorbells calls",
		(int)target.tgid, (unsigned long long)limit.rlim_cur);
	return -EPERM;
}
