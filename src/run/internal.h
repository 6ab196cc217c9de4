/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the source files of the engine process: its devices, and the process trees that it serves. */
#ifndef UVD_RUN_INTERNAL_H
#define UVD_RUN_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include "cm/cm.h"
#include "core/core.h"
#include "fleet/fleet.h"
#include "dispatch/dispatch.h"
#include "grant/grant.h"
#include "run/cm_file.h"
#include "run/file.h"
#include "run/filter.h"
#include "run/node.h"
#include "run/notify.h"
#include "run/path.h"
#include "run/run.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

#define UVD_RUN_CONTROL "control" /* the control socket, in the run's folder */

/* uverbsN has the device number 231:192+N, as the kernel's first 32 devices have. */
enum { UVD_RUN_MAJOR = 231, UVD_RUN_MINOR = 192 };
/* Major number of User Capability nodes, from the kernel's dynamic range; the minor number is the capability's bit. */
enum { UVD_RUN_UCAP_MAJOR = 510 };
/* Major number of rdma_cm, from the same range. In the kernel it is a misc device with a dynamic minor number. */
enum { UVD_RUN_CM_MAJOR = 509 };

/* The engine remembers one fd of one thread, so that a call on it needs no look-up by path: slot.c. */
struct uvd_run_slot {
	pid_t tid; /* 0: unused */
	int fd; /* -1: the slot only gives access to the thread's memory */
	int fdinfo; /* our fd of /proc/TID/fdinfo/FD; where fd is -1, of /proc/TID/comm */
	int life; /* our fd of /proc/TID/oom_score_adj: reads fail once the thread has ended; -1: not needed yet */
	struct uvd_run_inode inode; /* as last read from fdinfo */
	uint64_t asked; /* in this tick `inode` is used without reading fdinfo again; 0: never */
	int memfd; /* our fd of /proc/TID/mem, where memory is accessed through it; else -1 */
	int mapsfd; /* our fd of /proc/TID/maps, for writes to memfd; else -1 */
	bool once; /* an exec may have been under way when these were opened, so they are good for one call */
	pid_t tgid;
	uid_t fsuid;
	gid_t fsgid;
	bool ids_stale; /* the thread may have changed its ids: read them again */
	uint64_t opener_of; /* serial number of the file whose opener this thread is known to be; 0: none */
	unsigned int used; /* tree->clock at the last use */
};

enum { UVD_RUN_SLOT_SETS = 64, UVD_RUN_SLOT_WAYS = 4, UVD_RUN_CHANGES = 32 };

/*
 * The caller's memory around the last short piece that the current call has read. A write that would not change these
 * bytes is skipped.
 */
enum { UVD_RUN_AROUND = 64 };
struct uvd_run_around {
	uint64_t start;
	size_t len; /* 0: nothing is known */
	uint8_t bytes[3 * UVD_RUN_AROUND];
};

/* park.c: parked calls. Only the tree's thread uses what no lock protects. */
struct uvd_run_parking {
	struct list_head calls; /* all; that at which the last look was the longest time ago comes first */
	unsigned int num;
	uint64_t look_at; /* when to look for signals of their callers next; CLOCK_MONOTONIC, ns */
	int event; /* an eventfd: `ready` may have calls; -1: not made yet */
	pthread_mutex_t lock; /* protects `ready` */
	struct list_head ready; /* calls whose file has got an event */
};

#define UVD_RUN_PARK_LOOK_NS UINT64_C(20000000) /* between two looks, at least */

/* lent.c: which places of struct uvd_run_notif.lent are free. */
struct uvd_run_lent {
	pthread_mutex_t lock; /* protects all below */
	unsigned int num_used; /* places from this on have never been used */
	unsigned int num_free;
	uint16_t free[UVD_RUN_MAX_LENT]; /* places before that */
};

/* direct.c: processes whose doorbells are not answered. Only the tree's thread uses it. */
enum { UVD_RUN_ASKED = 256 };
struct uvd_run_direct {
	struct uvd_doorbells *doorbells; /* their reader; NULL: none yet */
	bool any; /* a process has asked */
	pid_t asked[UVD_RUN_ASKED]; /* for a socket of NETLINK_RDMA, lately; 0: unused */
	unsigned int next;
};

/* A process tree under one filter, served by one thread. */
struct uvd_run_tree {
	struct uvd_run_tree *next;
	struct uvd_run_engine *engine;
	int listener;
	int link; /* to the guardian */
	uint64_t since; /* when the guardian connected; CLOCK_MONOTONIC, ns */
	uint64_t ended; /* when its last process had ended; likewise; 0: it lives */
	int agent; /* to the guardian, which opens what we may not, or cannot (proc.base); -1: not needed */
	struct uvd_run_window windows[UVD_RUN_WINDOWS];
	struct uvd_run_notif *notif; /* shared with the guardian: the current call */
	pid_t tid; /* the current caller, with proc.base added; 0: the kernel does not tell us its number */
	struct uvd_proc proc;
	const struct uvd_mem_ops *mem;
	struct uvd_run_slot slots[UVD_RUN_SLOT_SETS][UVD_RUN_SLOT_WAYS];
	unsigned int clock; /* counts look-ups of slots */
	uint64_t tick; /* the kernel's tick in which the call arrived: the caller's id is not reused in it (slot.c) */
	unsigned int mounted; /* UVD_RUN_MOUNTED_* */
	struct uvd_run_inode slash; /* the root of programs that find the run's folder by its path */
	bool many_pids, chooses_ids; /* how soon a thread id can be reused: slot.c */
	struct uvd_run_change {
		pid_t tid; /* 0: unused */
		int fd; /* the fd that it closes; -1: any fd, or the call is an exec */
		bool ends_with_id; /* the call is over once no thread has this id */
	} changes[UVD_RUN_CHANGES]; /* calls that the kernel carries out, and may still be carrying out */
	int num_changes;
	bool many_ways; /* there are io_urings, which close files without a call that we see */
	pid_t last; /* the thread that called last */
	bool sync, can_sync; /* SYNC_WAKE_UP is on; the kernel supports it */
	uint64_t busy_poll_ns; /* how long the thread polls for the next call before it sleeps */
	struct uvd_ucap_names granted; /* User Capabilities that the tree may open */
	struct uvd_account *account; /* of the user who runs the tree; a reference */
	pthread_mutex_t serving; /* protects `thread` */
	pthread_t thread;
	atomic_bool stop, stopped;
	struct uvd_call *call; /* the current one; a loan takes it over, and leaves another one (loan.c) */
	unsigned int filters; /* seccomp filters that PROGRAM has at its start */
	struct uvd_run_lent lent;
	struct uvd_run_parking parking;
	struct uvd_run_cm_file *cm_other; /* cm.c: that the current command has named by an fd; a reference, or NULL */
	int cm_other_fd;
	atomic_uint lending; /* loans that have not answered their calls yet */
	struct uvd_run_around around;
	struct uvd_run_direct direct;
	struct uvd_run_file *file; /* the file of the call's work, with a reference; valid only with call.work.run */
};

/* A User Capability's node. */
struct uvd_run_ucap {
	char name[UVD_UCAP_NAME]; /* "": the entry is unused */
	unsigned int bit;
	int memfd; /* a client's fd of the node is an open of this file */
	struct uvd_run_inode inode;
};

struct uvd_run_engine {
	struct uvd_engine core;
	struct uvd_fleet fleet;
	struct uvd_fleet_place devices[UVD_MAX_DEVICES]; /* once the control's thread runs, it alone changes them */
	char wrong[64]; /* why the last device could not be made */
	/* Orders writes to the files of counters. Also held when a device is published or removed. Taken before the fleet's lock. */
	pthread_mutex_t counters_lock;
	struct uvd_run_files files;
	struct uvd_cm *cm;
	struct uvd_run_cm_files cm_files;
	struct uvd_privilege *privilege; /* to borrow callers' threads */
	struct uvd_grants *grants; /* loans of callers' threads */
	pthread_mutex_t ucaps_lock;
	struct uvd_run_ucap ucaps[UVD_MAX_UCAPS]; /* index: the bit */
	char root[PATH_MAX]; /* the run's folder: its sys/ and dev/ stand for the system's */
	int rootfd;
	pthread_mutex_t detached_lock; /* protects the next one */
	int detached; /* an fd of the detached mount; 0: not made yet; a negative errno: it cannot be made */
	struct uvd_run_inode slash; /* the engine's root */
	struct uvd_log *log;
	struct uvd_report *report; /* NULL: none */
	struct uvd_run_tree *trees;
	int last_base; /* the last tree of another pid namespace had UVD_PROC_NUMBERS times this as its base */
};

/* ---- slot.c: callers --------------------------------------------------------------------------------------------- */

/* Prepares the tree to access its callers. Call after tree->agent and tree->account are set. */
void uvd_run_callers_init(struct uvd_run_tree *tree);
/* Returns the caller for a new call of the tree. Call after uvd_run_callers_init(). */
struct uvd_caller uvd_run_caller_init(struct uvd_run_tree *tree);
void uvd_run_callers_fini(struct uvd_run_tree *tree);
/* Makes tree->call->caller the thread of the current call. Returns false if its memory cannot be reached. */
bool uvd_run_caller(struct uvd_run_tree *tree);
/*
 * The same, and looks up the caller's fd: *inode identifies its file as it is during this call. Returns NULL if the fd
 * is not open or the thread has ended. The slot is valid until the next look-up.
 */
struct uvd_run_slot *uvd_run_caller_fd(struct uvd_run_tree *tree, int fd, struct uvd_run_inode *inode);
/* Returns a base for a tree of another pid namespace (struct uvd_proc) that no other tree has, or 0: all are in use. */
pid_t uvd_run_base_new(struct uvd_run_engine *e);
/* Returns the number that the thread or process has in its guardian's pid namespace. */
static inline pid_t uvd_run_number(const struct uvd_run_tree *tree, pid_t id)
{
	return (unsigned int)id - (unsigned int)tree->proc.base;
}

/* Call for each notification that arrives, before any look-up for it. */
void uvd_run_caller_waits(struct uvd_run_tree *tree);
/* May the caller write() to a file? Only the process that opened it may, with the same fsuid and fsgid, before any exec. */
bool uvd_run_caller_opened(struct uvd_run_tree *tree, struct uvd_run_slot *s, const struct uvd_run_opener *o);
/* Returns the tree of a caller that uvd_run_caller_init() has made. */
struct uvd_run_tree *uvd_run_tree_of(struct uvd_caller *c);
/* The caller is about to exec. */
void uvd_run_caller_exec(struct uvd_run_tree *tree);
/* The caller is about to close or replace this fd in its own file table; -1: any fd. */
void uvd_run_caller_closes(struct uvd_run_tree *tree, int fd);
/* Makes the next look-up of this fd, of whichever thread, read fdinfo again; -1: of any fd. */
void uvd_run_slots_forget(struct uvd_run_tree *tree, int fd);
/* The caller may be about to change its ids. */
void uvd_run_caller_setid(struct uvd_run_tree *tree);

/* ---- what calls return: a result, a negative errno, UVD_RUN_CONTINUE or UVD_RUN_ANSWERED -------------------------- */

/* answer.c: calls by path. */
long uvd_run_answer_path(struct uvd_run_tree *tree, const struct uvd_run_args *args);

/* detached.c: opens the run's folder, and notes the engine's own root. Returns 0, or a negative errno. Pair them if it succeeds. */
int uvd_run_root_open(struct uvd_run_engine *e, const char *root);
void uvd_run_root_close(struct uvd_run_engine *e);
/* detached.c: stores which folder is the root of this process or thread. Returns 0, or a negative errno. */
int uvd_run_slash(pid_t tid, struct uvd_run_inode *slash);
/*
 * detached.c: returns an fd, which stays open, of the folder in which the caller finds what the run publishes, or a negative
 * errno: the kernel shall carry out the call. in_run: the caller has named the run's folder itself. The fd is that of the
 * run's folder, or of a mount that has nothing above it.
 */
int uvd_run_folder(struct uvd_run_tree *tree, bool in_run);

/* devices.c */

void uvd_run_devices_init(struct uvd_run_engine *e);
void uvd_run_devices_fini(struct uvd_run_engine *e);
/* Adds the devices of the options. Returns 0, or a negative errno, logged. */
int uvd_run_devices_add(struct uvd_run_engine *e, const struct uvd_run_options *o);
/* The run's devices. arg: struct uvd_run_engine */
extern const struct uvd_fleet_ops uvd_run_fleet_ops;
/* Returns uverbsN with a reference, or NULL: *ours is true if it is unplugged, false if this run never had it. */
struct uvd_device *uvd_run_device_find(struct uvd_run_engine *e, unsigned int number, bool *ours);

/*
 * counters.c: bring the files of the counters up to date: those of all devices, or those of the port that a path below
 * the run's folder names. Call the second one before a client opens the path.
 */
void uvd_run_show_counters(struct uvd_run_engine *e);
void uvd_run_show_counters_at(struct uvd_run_engine *e, const char *path);
/* struct uvd_fleet_ops.show_counters. Caller holds counters_lock. */
void uvd_run_show_port(void *arg, struct uvd_fleet_place *place, unsigned int port, const uint64_t *values);

/*
 * call.c: duplicates fd into the caller, at a free number in the windows and not below `least`, as the answer to its
 * call. Closes fd. Of flags only O_CLOEXEC counts. direct: its doorbells have a log. Returns UVD_RUN_ANSWERED or a negative errno.
 */
long uvd_run_answer_fd(struct uvd_run_tree *tree, int fd, unsigned int least, unsigned int flags, bool direct);
/* call.c: answers dup() or fcntl(F_DUPFD) of the caller's fd with a duplicate in the windows, if one is free there. */
long uvd_run_answer_dup(struct uvd_run_tree *tree, const struct uvd_run_args *args, bool direct);
/* How much of a writev() is done. All zero: nothing. */
struct uvd_run_pieces {
	uint64_t next; /* index of the next piece */
	long sum; /* of the results so far */
};

/*
 * call.c: carries a writev() out. Its file has write() and no write_iter() in the kernel: each piece is a command. piece() carries one
 * out; first: nothing is done yet. Returns the sum of the results, or that of the first piece that fails, with *done before it.
 */
long uvd_run_writev(struct uvd_run_tree *tree, const struct uvd_run_args *args, struct uvd_run_pieces *done,
		    long (*piece)(struct uvd_run_tree *tree, void *file, uint64_t buf, uint64_t size, bool first),
		    void *file);
/* answer.c: answers what asks about a node: stat(), fstat(), access() and so on. Its owner is root. */
long uvd_run_answer_node(struct uvd_run_tree *tree, const struct uvd_run_args *args, const struct uvd_run_node *node);

/* ---- lent.c: calls that are answered later ----------------------------------------------------------------------- */

void uvd_run_lent_init(struct uvd_run_lent *lent);
void uvd_run_lent_fini(struct uvd_run_lent *lent);
/* Stores the id of a notification where the guardian finds it. Returns the place, or NULL if all are taken. */
_Atomic uint64_t *uvd_run_lent_take(struct uvd_run_tree *tree, uint64_t id);
/* Call it after the answer. Any thread may. */
void uvd_run_lent_give(struct uvd_run_tree *tree, _Atomic uint64_t *place);

/* ---- loan.c: callers' threads that register memory with an adapter ----------------------------------------------- */

/* Returns a call for the tree, or NULL. uvd_run_call_free() frees it. */
struct uvd_call *uvd_run_call_new(struct uvd_run_tree *tree);
void uvd_run_call_free(struct uvd_call *call);
/*
 * The current call on the file f has asked for a registration by its caller's thread. Returns UVD_RUN_ANSWERED: a loan
 * has taken tree->call over, and will answer; or the final result of the call: the thread is not borrowed.
 */
long uvd_run_lend(struct uvd_run_tree *tree, struct uvd_run_file *f);

/* ---- cm.c: the connection manager -------------------------------------------------------------------------------- */

/* Makes the connection manager, and publishes its node. Returns 0 or a negative errno. */
int uvd_run_cm_init(struct uvd_run_engine *e);
/* Closes all files. Call it when no call is in progress. */
void uvd_run_cm_fini(struct uvd_run_engine *e);
/* Waits until the files that clients have closed, of all kinds, are gone with their charges; but for no longer than a second. */
void uvd_run_settle(struct uvd_run_engine *e);

/* ---- ucap.c: User Capabilities ----------------------------------------------------------------------------------- */

void uvd_run_ucaps_init(struct uvd_run_engine *e);
/* Sets the capabilities that the tree may open. Warns about each one that no device has created. */
void uvd_run_ucaps_grant(struct uvd_run_tree *tree, const struct uvd_ucap_names *granted);

/*
 * control.c: starts the control socket, by which the tree can change its devices. NULL on failure; the run works
 * without it.
 */
struct uvd_run_control *uvd_run_control_new(struct uvd_run_engine *e);
void uvd_run_control_free(struct uvd_run_control *control);

/* status.c: returns the answer to `status`. On the control's thread, which alone changes the devices. */
struct json_t;
struct json_t *uvd_run_status(void *engine);

/* control.c: stores the name of a process's program, or "" if it is not known. Ignores arg. */
void uvd_run_program_name(void *arg, pid_t pid, char *name, size_t size);

/* report.c: the current caller exits with this status. */
void uvd_run_report_exit(struct uvd_run_tree *tree, int status);

/* serve.c: answers a call that is not the current one. */
void uvd_run_answer_late(struct uvd_run_tree *tree, uint64_t id, long result);
/* ---- direct.c ---------------------------------------------------------------------------------------------------- */

/* The caller has asked for a socket of NETLINK_RDMA. */
void uvd_run_direct_asked(struct uvd_run_tree *tree);
/* The caller is about to exec. */
void uvd_run_direct_exec(struct uvd_run_tree *tree);
/* Returns the reader for a file that the caller opens, or NULL: its doorbells are calls. Call after uvd_run_caller(). */
struct uvd_doorbells *uvd_run_doorbells(struct uvd_run_tree *tree);
/* The caller sets its RLIMIT_FSIZE. Returns UVD_RUN_CONTINUE or -EPERM. */
long uvd_run_direct_limit(struct uvd_run_tree *tree, const struct uvd_run_args *args);

/* serve.c: starts the tree's thread. Returns 0 or a negative errno. */
int uvd_run_serve(struct uvd_run_tree *tree);
/* Tells that thread to end. Call when the listener has hung up. */
void uvd_run_serve_stop(struct uvd_run_tree *tree);
/*
 * Has it ended, and are the loans of its calls over? Call repeatedly, as it wakes the thread. A thread whose caller's memory
 * does not answer may never end.
 */
bool uvd_run_serve_ended(struct uvd_run_tree *tree);

#endif
