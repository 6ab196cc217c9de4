/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the engine process share: its devices, and the process trees that it serves. */
#ifndef UVD_RUN_INTERNAL_H
#define UVD_RUN_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include "core/core.h"
#include "dispatch/dispatch.h"
#include "run/file.h"
#include "run/filter.h"
#include "run/notify.h"
#include "run/path.h"
#include "run/run.h"
#include "util/util.h"

#define UVD_RUN_CONTROL "control" /* the socket, in the run's folder */

/* uverbsN is the device number 231:192+N, as the kernel's first 32 are. */
enum { UVD_RUN_MAJOR = 231, UVD_RUN_MINOR = 192 };
/* Of User Capabilities, and their bits: a number of those that the kernel gives out by itself. */
enum { UVD_RUN_UCAP_MAJOR = 510 };

/* What is known of a thread's fd, so that a call on it needs no path look-up: slot.c. */
struct uvd_run_slot {
	pid_t tid; /* 0: unused */
	int fd; /* -1: the thread's memory is all that is wanted */
	int fdinfo; /* open, /proc/TID/fdinfo/FD */
	int life; /* open, a file of /proc/TID that tells in the cheapest way whether it is still that thread; -1: no need yet */
	struct uvd_run_inode inode; /* what fdinfo said */
	uint64_t asked; /* the tick in which that is believed without asking again; 0: none */
	int memfd; /* open, /proc/TID/mem, where memory is reached that way; else -1 */
	pid_t tgid;
	uid_t fsuid;
	gid_t fsgid;
	bool ids_stale; /* a call that may have changed the ids was seen */
	uint64_t opener_of; /* serial number of the file that this thread is known to have opened; 0: none */
	unsigned int used; /* when */
};

enum { UVD_RUN_SLOT_SETS = 64, UVD_RUN_SLOT_WAYS = 4, UVD_RUN_CHANGES = 32 };

/* Bytes of the caller's around the last short piece that was read for the call under way, so that what is there already is not written. */
enum { UVD_RUN_AROUND = 64 };
struct uvd_run_around {
	uint64_t start;
	size_t len; /* 0: nothing is known */
	uint8_t bytes[3 * UVD_RUN_AROUND];
};

/* A process tree under one filter, served by one thread. */
struct uvd_run_tree {
	struct uvd_run_tree *next;
	struct uvd_run_engine *engine;
	int listener;
	int link; /* to the guardian */
	int agent; /* to the guardian, to open what only an ancestor may; -1: we may ourselves */
	struct uvd_run_window windows[UVD_RUN_WINDOWS];
	union uvd_run_notif *notif; /* shared with the guardian: the call under way */
	struct uvd_proc proc;
	const struct uvd_mem_ops *mem;
	struct uvd_run_slot slots[UVD_RUN_SLOT_SETS][UVD_RUN_SLOT_WAYS];
	unsigned int clock; /* of slots */
	uint64_t tick; /* of the kernel, in which the call came in: within it the caller's id cannot be another's */
	bool many_pids, chooses_ids; /* how long an id stays one thread's: slot.c */
	struct uvd_run_change {
		pid_t tid; /* 0: unused */
		int fd; /* the number that it closes; -1: any, and perhaps it is an exec */
	} changes[UVD_RUN_CHANGES]; /* calls that were let pass, and may be under way */
	int num_changes;
	bool many_ways; /* files are closed in ways that we do not see */
	pid_t last; /* the thread that called last */
	bool sync, can_sync; /* SYNC_WAKE_UP is on; the kernel has it */
	uint64_t busy_poll_ns; /* for so long the next call is looked for before the thread sleeps */
	struct uvd_ucap_names granted; /* User Capabilities that it may open */
	struct uvd_account *account; /* of the user who runs it */
	pthread_mutex_t serving; /* the next */
	pthread_t thread;
	atomic_bool stop, stopped;
	struct uvd_call call;
	struct uvd_run_around around;
	struct uvd_run_file *file; /* that the work of the call is about, with a reference; NULL: there is none */
};

/* A device that there is, or was. */
struct uvd_run_device {
	struct uvd_device_config config;
	struct uvd_device *dev; /* with a reference; NULL: unplugged */
};

/* A User Capability's node. */
struct uvd_run_ucap {
	char name[UVD_UCAP_NAME]; /* "": there is none */
	unsigned int bit;
	int memfd; /* what is open of it is this file */
	struct stat st;
	struct uvd_run_inode inode;
};

struct uvd_run_engine {
	struct uvd_engine core;
	pthread_mutex_t devices_lock; /* both below; changed by the control's thread alone, once there is one */
	struct uvd_run_device devices[UVD_MAX_DEVICES];
	unsigned int num_devices;
	struct uvd_run_files files;
	pthread_mutex_t ucaps_lock;
	struct uvd_run_ucap ucaps[UVD_MAX_UCAPS]; /* by bit */
	char root[PATH_MAX]; /* our folder: sys/ and dev/ below it stand for those of the system */
	int rootfd;
	struct uvd_log *log;
	struct uvd_run_tree *trees;
};

/* ---- slot.c: callers --------------------------------------------------------------------------------------------- */

/* Sets tree up to reach its callers; tree->agent and ->link are set. */
void uvd_run_callers_init(struct uvd_run_tree *tree);
void uvd_run_callers_fini(struct uvd_run_tree *tree);
/* The thread that waits for the present answer, as tree->call.caller. False: its memory is out of reach. */
bool uvd_run_caller(struct uvd_run_tree *tree);
/*
 * The same, and which file its fd is. NULL: not open, or the thread is gone. The inode has been read for this call; the
 * slot is good until the next look-up.
 */
struct uvd_run_slot *uvd_run_caller_fd(struct uvd_run_tree *tree, int fd, struct uvd_run_inode *inode);
/* A call has just come in. */
void uvd_run_caller_waits(struct uvd_run_tree *tree);
/* May it write()? Only in the process that opened the file, with its ids, and not after exec. */
bool uvd_run_caller_opened(struct uvd_run_tree *tree, struct uvd_run_slot *s, const struct uvd_run_file *f);
/* The calling thread is about to exec. */
void uvd_run_caller_exec(struct uvd_run_tree *tree);
/* The calling thread is about to end what this fd stands for, in its own table of files; -1: any fd. */
void uvd_run_caller_closes(struct uvd_run_tree *tree, int fd);
/* What this fd of any thread stands for must be asked anew; -1: any fd. */
void uvd_run_slots_forget(struct uvd_run_tree *tree, int fd);
/* The calling thread may be about to change its ids. */
void uvd_run_caller_setid(struct uvd_run_tree *tree);
/* Is it still there, and what we opened for it really its own? */
bool uvd_run_caller_valid(struct uvd_run_tree *tree);

/* ---- what calls return: a result, a negative errno, UVD_RUN_CONTINUE or UVD_RUN_ANSWERED -------------------------- */

/* answer.c: calls by path, and fstat() of the device. */
long uvd_run_answer_path(struct uvd_run_tree *tree, const struct uvd_run_args *args);
long uvd_run_answer_fstat(struct uvd_run_tree *tree, const struct uvd_run_args *args, unsigned int number);

/* call.c: calls by fd, and the node's open(). */
long uvd_run_device_call(struct uvd_run_tree *tree, const struct uvd_run_args *args);
long uvd_run_device_open(struct uvd_run_tree *tree, struct uvd_device *dev, unsigned int flags);

/* devices.c */

void uvd_run_devices_init(struct uvd_run_engine *e);
void uvd_run_devices_fini(struct uvd_run_engine *e);
/*
 * Makes a device and publishes it, in a place of the table that is free or its own from before. 0 or a negative errno,
 * logged; then there is nothing of it.
 */
int uvd_run_device_add(struct uvd_run_engine *e, const struct uvd_device_config *config);
/* Unplugs it under those who have it open. When this returns all is done, and its tree entries and its node are gone. */
void uvd_run_device_remove(struct uvd_run_engine *e, struct uvd_run_device *d);
/* uverbsN, with a reference; NULL: unplugged, where *ours is true, or never one of ours. */
struct uvd_device *uvd_run_device_find(struct uvd_run_engine *e, unsigned int number, bool *ours);

/* Gives fd to the caller, in the windows and not below `least`, as the answer to its call; closes ours. flags: O_CLOEXEC. */
long uvd_run_answer_fd(struct uvd_run_tree *tree, int fd, unsigned int least, unsigned int flags);
/* What stat() says: of a node of this number with these permissions. */
void uvd_run_node_stat(dev_t rdev, unsigned int mode, ino_t ino, struct stat *st);
/* Every call by path on a node but open(). */
long uvd_run_answer_node(struct uvd_run_tree *tree, const struct uvd_run_args *args, struct stat *st);

/* ---- ucap.c: User Capabilities ----------------------------------------------------------------------------------- */

void uvd_run_ucaps_init(struct uvd_run_engine *e);
/* What the tree may open; says so where there is no such capability. */
void uvd_run_ucaps_grant(struct uvd_run_tree *tree, const struct uvd_ucap_names *granted);
/* Calls by path; CONTINUE: there is none of that name. */
long uvd_run_ucap_path(struct uvd_run_tree *tree, const struct uvd_run_args *args, const char *name);
/* Calls by fd; false: it is no open of such a node. */
bool uvd_run_ucap_call(struct uvd_run_tree *tree, const struct uvd_run_args *args, const struct uvd_run_inode *inode,
		       long *ret);

/* control.c: lets the tree change its device. NULL: it cannot; the rest works without. */
struct uvd_run_control *uvd_run_control_new(struct uvd_run_engine *e);
void uvd_run_control_free(struct uvd_run_control *control);

/* serve.c: starts the tree's thread; 0 or a negative errno. */
int uvd_run_serve(struct uvd_run_tree *tree);
/* The listener has hung up: ends the thread. */
void uvd_run_serve_end(struct uvd_run_tree *tree);

#endif
