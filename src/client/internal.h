/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions of proc.c and self.c for the files of this room only. */
#ifndef UVD_CLIENT_INTERNAL_H
#define UVD_CLIENT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stat;
struct uvd_caller;

/* Returns the thread to look up in /proc; 0: it is not in our pid namespace. */
pid_t uvd_proc_tid(const struct uvd_caller *c);
/*
 * Opens by c->proc->open(), or in our own /proc if c->proc is NULL. Returns an fd, which the caller of this function
 * owns, or a negative errno; -ESRCH: tid is 0; -EINTR: the call waits no more. A file that is bound to the address
 * space or file at its open (mem, maps, pagemap, fd/N) is sure to be the caller's. Data from a later read() of any
 * other file must be confirmed again.
 */
int uvd_proc_open(struct uvd_caller *c, pid_t tid, const char *name, int flags);
/*
 * Reads a small file, or as much as fits, terminates it with a 0, and confirms it. Returns its length, or a negative
 * errno.
 */
ssize_t uvd_proc_read(struct uvd_caller *c, pid_t tid, const char *name, void *buf, size_t size);
/* The same for "status", without the line of the groups: uvd_status_read(). */
ssize_t uvd_proc_read_status(struct uvd_caller *c, pid_t tid, char *buf, size_t size);
/*
 * fstat() of an O_PATH fd, limited to what the kernel has cached: type, mode, inode, device numbers, size. fstat()
 * itself would ask the file system, which may be a FUSE server of the client's that never answers. Returns 0 or a
 * negative errno.
 */
int uvd_path_stat(int path, struct stat *st);
/* These functions use what uvd_client_prepare() has cached, or else look now. */
bool uvd_self_user_ns(struct stat *st);
int uvd_self_fd_link(int fd, char *link, size_t size);
unsigned int uvd_num_cpu_ids(void);
/* Copy exactly len bytes through a /proc/PID/mem fd. Return 0 or -EFAULT. */
int uvd_memfd_read(int memfd, void *dst, unsigned long long src, size_t len);
int uvd_memfd_write(int memfd, unsigned long long dst, const void *src, size_t len);
/*
 * Returns an fd for uvd_mmfd_alive(), or a negative errno. The fd stays bound to the thread's present address space,
 * even after the thread's exec or exit.
 */
int uvd_mmfd_open(struct uvd_caller *c, pid_t tid);
/* Has the address space that this /proc/PID/pagemap or /proc/PID/mem fd is bound to any users left? */
bool uvd_mmfd_alive(int mmfd);

#endif
