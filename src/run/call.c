/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The nodes of devices, and the calls on them: open, write, ioctl; dup, of any node. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/client.h"
#include "run/internal.h"
#include "run/link.h"

/* ---- giving fds to the caller ------------------------------------------------------------------------------------ */

/* Returns a number in [from, end) that is free in the file table behind `dir`; -EMFILE: none. */
static int free_number(int dir, unsigned int from, unsigned int end)
{
	struct stat st;
	char name[16];

	for (unsigned int n = from; n < end; n++) {
		snprintf(name, sizeof(name), "%u", n);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
			return n;
	}
	return -EMFILE;
}

/*
 * Duplicates fd into the caller at a free number of the window, not below `least`, as the answer to its call. direct: in the part for
 * files with a log, else in the other one. Returns the number, or a negative errno: -EMFILE if the part is full or above the caller's
 * limit.
 *
 * ADDFD replaces a file that has the number by then, so another thread of the caller that takes the number at this
 * moment loses its file. For that the thread must name the number itself (dup2), or its process must have as many files
 * open as there are numbers below the window.
 */
static int add_in_window(struct uvd_run_tree *tree, int dir, const struct uvd_run_window *w, bool direct, int fd,
			 unsigned int least, unsigned int flags)
{
	const unsigned int from = w->base + (direct ? 0 : w->direct);
	int number = free_number(dir, from > least ? from : least, w->base + (direct ? w->direct : w->size));

	if (number < 0)
		return number;
	uvd_run_slots_forget(tree, number);
	return uvd_run_add_fd(tree->listener, tree->notif->n.id, fd, number, flags & O_CLOEXEC, true);
}

static int caller_fds(struct uvd_run_tree *tree)
{
	return tree->proc.open(&tree->proc, tree->call->caller.tid, "fd", O_PATH | O_DIRECTORY);
}

long uvd_run_answer_fd(struct uvd_run_tree *tree, int fd, unsigned int least, unsigned int flags, bool direct)
{
	int dir = caller_fds(tree), number = dir < 0 ? dir : -EMFILE;

	for (int i = 0; direct && i < UVD_RUN_WINDOWS && number == -EMFILE; i++)
		number = add_in_window(tree, dir, &tree->windows[i], true, fd, least, flags);
	for (int i = 0; i < UVD_RUN_WINDOWS && number == -EMFILE; i++)
		number = add_in_window(tree, dir, &tree->windows[i], false, fd, least, flags);
	if (dir >= 0)
		close(dir);
	close(fd);
	return number < 0 ? number : UVD_RUN_ANSWERED;
}

/* The call has created an event file: installs the client's end in the caller. Returns the final result of the call. */
static long run_call_grant(struct uvd_run_tree *tree)
{
	int fd, number;

	number = fd = uvd_event_file_open(tree->call->grant.file);
	if (fd >= 0) {
		number = uvd_run_add_fd(tree->listener, tree->notif->n.id, fd, -1, O_CLOEXEC, false);
		close(fd);
	}
	/*
	 * This writes the fd number to the response, whose memory was writable before the grant. If another thread of
	 * the caller has made it read-only since, the call fails and the caller keeps an fd that it does not know of,
	 * because we cannot close it. A read from that fd returns end of file.
	 */
	return uvd_call_granted(tree->call, number);
}

/* first: the command is the first of its call. A loan answers the whole call, so a later command is not worth one. */
static long run_call_finish(struct uvd_run_tree *tree, struct uvd_run_file *f, bool first, long result)
{
	if (tree->engine->report)
		uvd_report_take_stack(tree->engine->report, &tree->call->caller);
	if (!tree->call->grant.uobj)
		return result;
	if (!tree->call->grant.registration)
		return run_call_grant(tree);
	return first ? uvd_run_lend(tree, f) : uvd_call_granted(tree->call, -EPERM);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void device_node_set(struct uvd_run_node *node, unsigned int number, void *priv)
{
	node->rdev = makedev(UVD_RUN_MAJOR, UVD_RUN_MINOR + number);
	node->mode = 0666;
	node->ino = number + 1;
	node->priv = priv;
}

static long device_node_find(struct uvd_run_tree *tree, const char *name, struct uvd_run_node *node)
{
	struct uvd_device *dev;
	unsigned int number;
	bool ours;

	if (!uvd_run_device_name(name, &number))
		return UVD_RUN_CONTINUE;
	dev = uvd_run_device_find(tree->engine, number, &ours);
	if (!dev) /* the machine may have a device of that name: it must not replace one that was unplugged */
		return ours ? -ENOENT : UVD_RUN_CONTINUE;
	device_node_set(node, number, dev);
	return 0;
}

static void device_node_put(struct uvd_run_node *node)
{
	uvd_device_put(node->priv);
}

static long device_node_open(struct uvd_run_tree *tree, struct uvd_run_node *node, unsigned int flags)
{
	bool direct;
	int fd, err;

	uvd_run_cm_files_closed(&tree->engine->cm_files); /* they count against the same limits */
	err = uvd_run_file_open(&tree->engine->files, uvd_run_doorbells(tree), node->priv, &tree->call->caller, flags,
				&fd, &direct);
	return err ? err : uvd_run_answer_fd(tree, fd, 0, flags, direct);
}

static long device_command(struct uvd_run_tree *tree, void *file, uint64_t buf, uint64_t size, bool first)
{
	struct uvd_run_file *f = file;

	tree->call->file = f->file;
	tree->call->grant.uobj = NULL;
	return run_call_finish(tree, f, first, uvd_dispatch_write_from(tree->call, buf, size));
}

long uvd_run_writev(struct uvd_run_tree *tree, const struct uvd_run_args *args, struct uvd_run_pieces *done,
		    long (*piece)(struct uvd_run_tree *tree, void *file, uint64_t buf, uint64_t size, bool first),
		    void *file)
{
	struct iovec iov;
	long n;

	if (args->size > IOV_MAX)
		return -EINVAL;
	for (; done->next < args->size; done->next++) {
		if (uvd_caller_read(&tree->call->caller, &iov, args->buf + done->next * sizeof(iov), sizeof(iov)))
			return -EFAULT;
		if (!iov.iov_len)
			continue;
		n = piece(tree, file, (uintptr_t)iov.iov_base, iov.iov_len, !done->sum);
		if (n < 0)
			return n;
		done->sum += n;
		/*
		 * Ends the write short, as this command's work is done after the answer: the call keeps the work of one
		 * command, and a later command that destroys the QP would wait for it.
		 */
		if (tree->call->work.run)
			break;
	}
	return done->sum;
}

static long device_writev(struct uvd_run_tree *tree, struct uvd_run_file *f, const struct uvd_run_args *args)
{
	struct uvd_run_pieces done = {};
	long ret = uvd_run_writev(tree, args, &done, device_command, f);

	return ret < 0 && done.sum ? done.sum : ret;
}

/*
 * The kernel would give dup() and fcntl(F_DUPFD) a low number, where write() and fstat() are not trapped, so we put the
 * duplicate into the windows. It must be the same struct file, because we wait for the last close of that (file.c).
 */
long uvd_run_answer_dup(struct uvd_run_tree *tree, const struct uvd_run_args *args, bool direct)
{
	const pid_t tid = uvd_run_number(tree, tree->call->caller.tid),
		    tgid = uvd_run_number(tree, tree->call->caller.tgid);
	char name[32];
	int copy;
	long ret;

	snprintf(name, sizeof(name), "getfd/%d", args->fd);
	copy = tree->agent < 0 ? uvd_run_get_fd(tid, tgid, args->fd) : uvd_run_agent_open(tree->agent, tid, name, tgid);
	if (copy < 0)
		return UVD_RUN_CONTINUE; /* a duplicate without write() is better than none */
	ret = uvd_run_answer_fd(tree, copy, args->mode, args->flags, direct);
	return ret == -EMFILE && args->mode ? UVD_RUN_CONTINUE : ret; /* the least number may be above the windows */
}

static long device_node_write(struct uvd_run_tree *tree, struct uvd_run_node *node, struct uvd_run_slot *slot,
			      const struct uvd_run_args *args)
{
	struct uvd_run_file *f = node->priv;

	if (f->mode == O_RDONLY)
		return -EBADF;
	if (!uvd_run_caller_opened(tree, slot, &f->opener))
		return -EACCES;
	return args->op == UVD_RUN_WRITE ? device_command(tree, f, args->buf, args->size, true)
					 : device_writev(tree, f, args);
}

static long device_node_read(struct uvd_run_tree *tree, struct uvd_run_node *node)
{
	const struct uvd_run_file *f = node->priv;

	return f->mode == O_WRONLY ? -EBADF : -EINVAL; /* the kernel's file has no read() */
}

static long device_node_ioctl(struct uvd_run_tree *tree, struct uvd_run_node *node, const struct uvd_run_args *args)
{
	struct uvd_run_file *f = node->priv;

	tree->call->file = f->file;
	tree->call->grant.uobj = NULL;
	return run_call_finish(tree, f, true, uvd_dispatch_ioctl(tree->call, args->flags, args->buf));
}

static bool device_node_opened(struct uvd_run_tree *tree, const struct uvd_run_inode *inode, struct uvd_run_node *node)
{
	struct uvd_run_file *f = uvd_run_file_get(&tree->engine->files, inode);

	if (!f)
		return false;
	device_node_set(node, f->number, f);
	node->direct = f->log;
	if (f->log)
		uvd_doorbell_log_drain(f->log);
	return true;
}

/*
 * The call's work has a reference to an object of the file. If our put closed the file here, it would wait forever for
 * the work, which this thread has yet to do.
 */
static void device_node_release(struct uvd_run_tree *tree, struct uvd_run_node *node)
{
	if (tree->call->work.run)
		tree->file = node->priv;
	else
		uvd_run_file_put(node->priv);
}

const struct uvd_run_node_kind uvd_run_device_nodes = {
	.find = device_node_find,
	.put = device_node_put,
	.open = device_node_open,
	.opened = device_node_opened,
	.release = device_node_release,
	.write = device_node_write,
	.read = device_node_read,
	.ioctl = device_node_ioctl,
};
