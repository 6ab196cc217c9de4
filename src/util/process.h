/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Processes and users: process.c, sockets.c, user.c. Descriptors of this process. */
#ifndef UVD_UTIL_PROCESS_H
#define UVD_UTIL_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Does the process exist, and is its first thread not a zombie? A thread of a killed process can wait for a client's
 * memory for as long as the client likes. Meanwhile the first thread is a zombie: the process does nothing any more,
 * but keeps its descriptors. *start (or NULL): its start time in clock ticks since boot, which tells apart two
 * processes that had the same pid.
 */
bool uvd_process_lives(pid_t pid, unsigned long long *start);

struct uvd_process_stat {
	char state;
	pid_t parent;
	unsigned int flags; /* of the kernel's struct task_struct */
	unsigned long long start; /* clock ticks since boot */
};

/* Reads what /proc says of the process, or of its first thread. Returns false if there is none. */
bool uvd_process_stat(pid_t pid, struct uvd_process_stat *stat);

/*
 * Reads a status file of /proc, just opened, as a string. Leaves out the groups: with 64 Ki of them the text has 700 KB.
 * Cuts off what does not fit. Returns the length or a negative errno.
 */
ssize_t uvd_status_read(int fd, char *text, size_t size);

/*
 * sockets.c: tells for each of these inode numbers whether a process other than `except` has a socket with it open. Searches the
 * descriptors of all threads in /proc, once for all numbers, which is slow. Returns 0 or a negative errno: /proc cannot be read.
 */
int uvd_sockets_in_use(pid_t except, const uint64_t *inos, unsigned int num, bool *used);

/* Stores the id of the user of this name or number. Returns NULL, or what is wrong: "is no user", "is no user id". */
const char *uvd_user_parse(const char *word, uid_t *uid);

/*
 * For a descriptor that is kept for a client: gives it a number of FD_SETSIZE or more. Returns that, or fd if there is none. The
 * low numbers stay for libraries that call select(), whatever the clients have open.
 */
int uvd_fd_raise(int fd);
/*
 * Opens /dev/null as each of the descriptors 0, 1 and 2 that is closed: else a file that the program opens later gets that number,
 * and messages, or the closing of standard input, go to it. Call it before anything opens a file. Returns 0 or a negative errno.
 */
int uvd_fd_open_standard(void);

#endif
