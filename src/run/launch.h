/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The processes of a run, and what they inherit from the launcher. */
#ifndef UVD_RUN_LAUNCH_H
#define UVD_RUN_LAUNCH_H

#include <signal.h>
#include "run/internal.h"
#include "run/link.h"

/*
 * The memfd of the current call. A process of the tree can open it through /proc, and a member of --join passes one of its
 * own: the seals keep them from making it shorter, which would end the engine by SIGBUS.
 */
#define UVD_RUN_NOTIF_NAME "uverbsd-notif"
#define UVD_RUN_NOTIF_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct uvd_run_launch {
	const struct uvd_run_options *options;
	char **argv;
	struct uvd_run_window windows[UVD_RUN_WINDOWS];
	struct sock_fprog filter;
	sigset_t mask; /* PROGRAM's signal mask */
	bool is_init; /* the launcher is process 1 of its pid namespace: when it exits the kernel kills the engine */
	int up; /* to the launcher */
	int notif_fd; /* a sealed memfd: the struct uvd_run_notif that guardian and engine share */
	struct uvd_run_notif *notif;
	int link; /* between guardian and engine: each has its end */
	int program, program_end; /* between guardian and PROGRAM */
	char root[PATH_MAX];
	/* --join */
	bool joined; /* the engine is another run's; link leads to it */
	int join_sock; /* where other runs connect, if we are the first; -1: no run can join */
	int join_lock;
	char join_path[108];
};

/* outputs.c: --trace and --pcap of the engine; report.c: --report. */
struct uvd_run_outputs {
	struct uvd_recorder *recorder; /* NULL: no --trace */
	struct uvd_capture *capture; /* NULL: no --pcap */
	const char *trace, *pcap; /* their paths */
	dev_t pcap_dev; /* the capture's file */
	ino_t pcap_ino;
	struct uvd_log *log;
	int report; /* the report's file */
	bool owns_report; /* it is not stderr */
};
/* path: NULL for none. Return 0, or a negative errno after a message. */
int uvd_run_record(struct uvd_run_outputs *o, struct uvd_run_engine *e, const char *path);
int uvd_run_capture(struct uvd_run_outputs *o, struct uvd_run_engine *e, const char *path);
/* Call when all files are closed, so that the trace has their ends. */
void uvd_run_record_end(struct uvd_run_outputs *o);
void uvd_run_capture_end(struct uvd_run_outputs *o);

/* Begins to observe, and sets e->report, if there are options for a report. Returns 0, or a negative errno after a message. */
int uvd_run_report_begin(struct uvd_run_outputs *o, struct uvd_run_engine *e, const struct uvd_run_options *options);
/*
 * Writes the report. Call it when all files are closed, before the engine ends. Returns whether it has findings, or could
 * not be written.
 */
bool uvd_run_report_finish(struct uvd_run_outputs *o, struct uvd_run_engine *e, enum uvd_report_format format);

/* The main functions of the processes; they do not return. */
void uvd_run_guardian_main(struct uvd_run_launch *l) __attribute__((noreturn));
void uvd_run_engine_main(struct uvd_run_launch *l) __attribute__((noreturn));
void uvd_run_program_main(struct uvd_run_launch *l) __attribute__((noreturn));

/* brake.c: has the kernel refuse further doorbells of the processes below this one. */
void uvd_run_brake(void);

/* check.c: does the system have what a run needs? Returns false after a message. */
bool uvd_run_check_system(void);

/*
 * Makes this process a background process: in a process group of its own, which the terminal's signals do not reach,
 * with the hard limits of open files, file sizes and processor time as its soft ones, without files except stderr and the `num` fds of `keep` (which may contain -1), and the subreaper of its descendants.
 * Call with SIGCHLD blocked. Returns a signalfd for SIGCHLD, or a negative errno.
 */
int uvd_run_background(const int *keep, unsigned int num);
/* Call when the launcher has ended: replaces stderr by /dev/null, so that we do not keep the file behind it open. */
void uvd_run_drop_stderr(void);
/* Converts a wait status to an exit status: 128 + N for signal N. */
int uvd_run_exit_status(int wait_status);
/* Tells the launcher PROGRAM's exit status. stays: other processes of the tree live on. up may be -1. */
void uvd_run_report(int up, int status, bool stays);

/*
 * join.c: connects to the engine of the name in options->join, or makes ours that engine. Returns 0, or -1 after a
 * message.
 */
int uvd_run_join(struct uvd_run_launch *l);
/*
 * mount.c: moves this process, which has one thread, into a mount namespace where the folder root is mounted on
 * /sys/class and, if that exists, on /dev/infiniband. Sets *mounted to what is: UVD_RUN_MOUNTED_*. Returns 0, or -1
 * after a message.
 */
int uvd_run_mount(const char *root, unsigned int *mounted);
/*
 * member.c: is this what a guardian sends once PROGRAM has its filter? If so, the fds are what they should be: calls on them
 * do not wait for another process, and the memory of notifications stays as long as it is mapped.
 */
bool uvd_run_listener_ok(const struct uvd_run_msg *msg, const int *fds);
/* Does Yama keep the engine from a process tree that another run started? */
bool uvd_run_needs_agent(void);
/* Call when no tree is left: stops listening for other runs. Returns false if a run is connecting. */
bool uvd_run_join_end(struct uvd_run_launch *l);
/* Returns the inode of our pid namespace, which no other one has while this process lives; 0: the kernel has none. */
uint64_t uvd_run_pid_ns(void);
/* The same of our network namespace. */
uint64_t uvd_run_net_ns(void);
/* join.c: can a run with these options join the engine that has sent READY? Returns false after a message. */
bool uvd_run_may_join(const struct uvd_run_options *options, const struct uvd_run_msg *ready);
/* Is the process that connected this socket outside of our pid namespace? The kernel reports calls of its processes with number 0. */
bool uvd_run_is_outside(int link);

#endif
