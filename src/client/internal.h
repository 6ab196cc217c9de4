/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions of proc.c, about /proc, for the files of this room only. */
#ifndef UVD_CLIENT_INTERNAL_H
#define UVD_CLIENT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stat;
struct uvd_caller;

/* The thread to look up in /proc; 0: out of reach. */
pid_t uvd_proc_tid(const struct uvd_caller *c);
/*
 * c->proc->open(), or our own /proc if the caller has none. -ESRCH: tid is 0. -EINTR: the call waits no more. What is bound to
 * the address space or to the file when it is opened (mem, maps, pagemap, fd/N) is the caller's; what a later read() of
 * other files says must be confirmed once more.
 */
int uvd_proc_open(struct uvd_caller *c, pid_t tid, const char *name, int flags);
/* The whole of a small file, confirmed (or as much as fits), with a 0 behind it: its length, or a negative errno. */
ssize_t uvd_proc_read(struct uvd_caller *c, pid_t tid, const char *name, void *buf, size_t size);
/*
 * fstat() of an O_PATH fd, of what the kernel knows by itself: type, inode, device numbers, size. fstat() would ask the file's
 * file system, and that may be a server of the client's, which need not answer.
 */
int uvd_path_stat(int path, struct stat *st);
/* These functions answer with what uvd_client_prepare() has kept, or else look now. */
bool uvd_self_user_ns(struct stat *st);
int uvd_self_fd_link(int fd, char *link, size_t size);
unsigned int uvd_num_cpu_ids(void);
/* Exactly len bytes at addr through a /proc/PID/mem fd, or -EFAULT. */
int uvd_memfd_read(int memfd, void *dst, unsigned long long src, size_t len);
int uvd_memfd_write(int memfd, unsigned long long dst, const void *src, size_t len);
/*
 * An fd for uvd_mmfd_alive(), or a negative errno. The address space is the thread's of this moment, whatever becomes of
 * the thread.
 */
int uvd_mmfd_open(struct uvd_caller *c, pid_t tid);
/* Has the address space that a /proc/PID/pagemap or /proc/PID/mem fd was opened on any user left? */
bool uvd_mmfd_alive(int mmfd);

#endif
