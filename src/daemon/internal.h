/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the daemon share. All of it belongs to the main thread; the nodes' threads serve the clients. */
#ifndef UVD_DAEMON_INTERNAL_H
#define UVD_DAEMON_INTERNAL_H

#include <ev.h>
#include <jansson.h>
#include <sys/un.h>
#include "broker/broker.h"
#include "core/core.h"
#include "options/options.h"

struct uvd_control;
struct uvd_cuse;
struct uvd_grants;

struct uvd_daemon;

/* A device that there is, or was: NODE_GONE is one that can be plugged in again, or was never there. */
enum uvd_node_state { NODE_GONE, NODE_SERVES, NODE_GOING /* a thread unplugs it */, NODE_DRAINS /* files are open still */ };

struct uvd_daemon_node {
	struct uvd_daemon *daemon;
	enum uvd_node_state state;
	struct uvd_device_config config; /* as asked for; ibdev empty: somebody else has it now */
	struct uvd_cuse *cuse; /* NULL where GONE */
	struct uvd_device *dev; /* NULL where GONE; only while SERVES is it more than what files refer to */
	unsigned int index; /* by which the broker knows the device */
	bool published;
	pthread_t remover; /* GOING */
	atomic_bool removed; /* by that thread */
	atomic_bool lost; /* the session ended by itself; told by its threads */
	unsigned long asker; /* GOING: uvd_control_finish() */
};

/*
 * The answer to `status`. The main thread collects the numbers, which takes no longer the more objects there are, and a thread
 * looks for names of programs and writes the answer. One answer is made at a time, a few times a second, for all who have asked
 * before it was begun.
 */
struct uvd_daemon_status {
	struct ev_timer pause; /* until the next may begin */
	struct ev_async on_done;
	double begun; /* the last one: ev_time() */
	struct status_facts *facts; /* the thread has them; NULL: there is none */
	pthread_t thread;
	unsigned long number, next; /* of the answer that is being made, and of the next one; 0: nobody has asked for it */
};

/* announce.c. Of the process that was started: of the broker, where there is one. */
struct uvd_announce {
	const char *pid_file; /* empty: none */
	char notify[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* $NOTIFY_SOCKET; empty: none */
	bool ready; /* it has been announced */
};

struct uvd_daemon {
	const struct uvd_options *options;
	struct uvd_log *log;
	struct uvd_link *link; /* the broker; NULL: this process has the privileges itself */
	struct ev_loop *loop;
	struct ev_signal on_term, on_int, on_hup;
	struct ev_timer tick;
	struct ev_async on_lost, on_removed;
	struct uvd_control *control;
	struct uvd_daemon_status status_answer;
	struct uvd_grants *grants;
	struct uvd_node_orphans orphans; /* since the start */
	struct uvd_engine engine;
	bool have_engine, have_tree;
	struct uvd_announce announce; /* without a broker */
	struct uvd_daemon_node nodes[UVD_MAX_DEVICES];
	unsigned int num_nodes;
	int status; /* the exit status */
};

/* ---- nodes.c ----------------------------------------------------------------------------------------------------- */

/* Makes a device with its node, and publishes it. NULL, or what went wrong; the log knows more. */
const char *uvd_daemon_add(struct uvd_daemon *d, const struct uvd_device_config *config, struct uvd_daemon_node **out);
/* Ends what is there no more: devices that were removed and that nobody has open. */
void uvd_daemon_reap(struct uvd_daemon *d);
/* Unplugs the device and leaves the rest to others: on_removed comes, and the asker gets its answer. */
const char *uvd_daemon_remove(struct uvd_daemon *d, struct uvd_daemon_node *n);
/*
 * On the loop: a session was ended from outside. True: that of a device that there is. What was removed is not missed: that is
 * how an administrator gets rid of who still has it open.
 */
bool uvd_daemon_lost(struct uvd_daemon *d);
/* All nodes go, with all files. false: some thread does not come back. Grants have been drained. */
bool uvd_daemon_stop_nodes(struct uvd_daemon *d);
/* Of the control socket: `device`. NULL: another command. */
json_t *uvd_daemon_answer_device(struct uvd_daemon *d, const char *command, bool may_change);
/* On the loop: a remover has done its work. */
void uvd_daemon_removed(struct uvd_daemon *d);

/* separate.c: as uvd_daemon_main(), in two processes. */
int uvd_daemon_separate(const struct uvd_options *options);
/* daemon.c: serves in this process. link: the broker, or NULL; control: then a socket that listens. */
int uvd_daemon_serve(const struct uvd_options *options, struct uvd_link *link, int control);
void uvd_daemon_raise_nofile(void);
/* Can nobody but root put something else in the place of --control, --sysfs and --pid-file? Else the log says who. */
bool uvd_daemon_paths_are_ours(const struct uvd_options *options, struct uvd_log *log);

/* ---- announce.c -------------------------------------------------------------------------------------------------- */

/* Takes NOTIFY_SOCKET out of the environment. */
void uvd_announce_init(struct uvd_announce *a, const struct uvd_options *options);
/* Writes the pid file and tells systemd, once. 0 or a negative errno, logged. */
int uvd_announce_ready(struct uvd_announce *a, struct uvd_log *log);
void uvd_announce_end(struct uvd_announce *a);

/* ---- image.c ----------------------------------------------------------------------------------------------------- */

struct uvd_image {
	const struct uvd_options *options;
	int exe; /* O_PATH */
	int config; /* a copy of the file */
	char path[PATH_MAX]; /* where the program is installed */
};

/* At the start, while /proc/self/exe has the program's name. false: the log says why. */
bool uvd_image_init(struct uvd_image *p, const struct uvd_options *options, struct uvd_log *log);
void uvd_image_fini(struct uvd_image *p);
/* The next engine process executes what is installed by now. */
void uvd_image_update(struct uvd_image *p, struct uvd_log *log);
/* Becomes the engine process; or returns an exit status, and the log says why. */
int uvd_image_exec(const struct uvd_image *p, int sock, int control, struct uvd_log *log);
/* In a process with --internal-engine: has the broker started it? */
bool uvd_image_is_engine(struct uvd_log *log);

/* What the core shall tell us; before the first device (hooks.c). */
void uvd_daemon_hook(struct uvd_daemon *d);

/* ---- status.c ---------------------------------------------------------------------------------------------------- */

/* When the loop is there; and before it goes: waits for the thread. */
void uvd_daemon_status_init(struct uvd_daemon *d);
void uvd_daemon_status_fini(struct uvd_daemon *d);
/* The answer of the control socket. */
json_t *uvd_daemon_answer(void *daemon, const char *command, bool may_change);

#endif
