/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Types and functions that the daemon's files share. Only the main thread changes the structs, but for atomic members
 * that other threads set.
 */
#ifndef UVD_DAEMON_INTERNAL_H
#define UVD_DAEMON_INTERNAL_H

#include <ev.h>
#include <jansson.h>
#include <sys/un.h>
#include "broker/broker.h"
#include "core/core.h"
#include "fleet/fleet.h"
#include "options/options.h"

struct uvd_cm;
struct uvd_control;
struct uvd_cuse;
struct uvd_grants;

struct uvd_daemon;

enum { UVD_TICK_MS = 500 };

struct uvd_daemon_node {
	struct uvd_fleet_place place; /* after SERVES only open files need the device */
	struct uvd_daemon *daemon;
	struct uvd_cuse *cuse; /* NULL where EMPTY */
	unsigned int index; /* by which the privileged operations know the device */
	bool published; /* the main thread changes it under port_lock of the device, for threads of the backend */
	pthread_t remover; /* GOING */
	atomic_bool removed; /* set by that thread */
	atomic_bool lost; /* the session was ended from outside; set by a worker */
	unsigned long asker; /* GOING: the number for uvd_control_finish(); 0: nobody has asked */
};

/*
 * The answer to `status`. The main thread collects the numbers, in a time that does not depend on the number of
 * objects. Another thread then looks up the names of programs and formats the answer. One answer is made at a time, no
 * more than one in 50 ms, for all clients that have asked before it was begun.
 */
struct uvd_daemon_status {
	struct ev_timer pause; /* until the next may begin */
	struct ev_async on_done;
	double begun; /* ev_time() when the last one was begun */
	struct status_facts *facts; /* the thread uses them; NULL: there is no thread */
	pthread_t thread;
	unsigned long number,
		next; /* of the answer that is being made, and of the next one; 0: nobody has asked for it */
};

/* The connection manager and its node. cuse is NULL where there is none, because another rdma_cm exists. */
struct uvd_daemon_cm {
	struct uvd_cm *cm;
	struct uvd_cuse *cuse;
	atomic_bool lost; /* the session was ended from outside; set by a worker */
};

/* announce.c. Used by the process that was started: by the broker, if there is one. */
struct uvd_announce {
	const char *pid_file; /* empty: none */
	char notify[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* $NOTIFY_SOCKET; empty: none */
	bool ready; /* it has been announced */
	bool watched; /* systemd waits for signs of life */
};

/* netlink.c. Used by the same process. */
struct uvd_netlink {
	const char *path; /* of the alias; "": none is asked for */
	bool adapter; /* there is an adapter */
	bool answered; /* the kernel answers on the socket; logged */
	int class; /* /sys/class, below an overlay */
	unsigned long devices; /* uvd_sysfs_kernel_devices() */
	unsigned int checks;
};

struct uvd_daemon {
	const struct uvd_options *options;
	struct uvd_log *log;
	const struct uvd_machine_ops *machine;
	struct uvd_privilege *privilege;
	struct uvd_local_nodes local_nodes; /* used by uvd_machine_local */
	int listening; /* used by uvd_machine_broker: the control socket */
	struct ev_loop *loop;
	struct ev_signal on_term, on_int, on_hup;
	struct ev_timer tick;
	struct ev_async on_lost, on_removed;
	struct uvd_control *control;
	struct uvd_daemon_status status_answer;
	struct uvd_grants *grants;
	struct uvd_node_orphans orphans; /* found at the start */
	struct uvd_plugins *plugins; /* loaded before the engine was made, and not the engine's yet; or NULL */
	struct uvd_fleet_addresses addresses; /* that the fleet begins with */
	struct uvd_fleet_wire wire; /* likewise */
	struct uvd_fleet fleet;
	struct uvd_engine engine;
	bool have_engine, have_tree;
	struct uvd_announce announce; /* used by uvd_machine_local */
	struct uvd_netlink netlink; /* likewise */
	struct uvd_daemon_node nodes[UVD_MAX_DEVICES];
	struct uvd_cuse *queues; /* the files that clients map; NULL: no device needs them */
	_Atomic bool queues_lost;
	struct uvd_doorbells *doorbells; /* their reader; NULL: doorbells are calls */
	struct uvd_daemon_cm cm;
	bool stale
		[UVD_MAX_DEVICES]; /* used by uvd_machine_broker: the broker's configuration with this index is no more that of `options` */
	int status; /* the exit status */
	unsigned int restarts; /* how many engine processes were before this one */
};

/* ---- nodes.c ----------------------------------------------------------------------------------------------------- */

/* The daemon's devices. arg: struct uvd_daemon */
extern const struct uvd_fleet_ops uvd_daemon_fleet_ops;
static inline struct uvd_daemon_node *uvd_daemon_node_of(struct uvd_fleet_place *place)
{
	return container_of(place, struct uvd_daemon_node, place);
}

/* Frees the devices that were removed and that no client has open any more, or whose session was ended. */
void uvd_daemon_reap(struct uvd_daemon *d);
/*
 * Called by the loop when a session was ended from outside. Returns true if its device was still served. The session
 * of a removed device is only freed: an administrator ends it to get rid of the clients that still have the device
 * open.
 */
bool uvd_daemon_lost(struct uvd_daemon *d);
/* Ends all nodes, and closes all files. Drain the grants before. Returns false if some thread does not come back. */
bool uvd_daemon_stop_nodes(struct uvd_daemon *d);
/* Called by the loop when a remover has done its work. */
void uvd_daemon_removed(struct uvd_daemon *d);
/* Adds to an answer what the device lacks of its adapter, if anything, for want of a right of this process. */
void uvd_daemon_tell_absent(json_t *answer, const struct uvd_device *dev);

/* separate.c: as uvd_daemon_main(), in two processes. */
int uvd_daemon_separate(const struct uvd_options *options);
/* engine.c: runs in the program that the engine process has executed. Returns the exit status. */
int uvd_engine_main(const struct uvd_options *options, struct uvd_log *log);
/*
 * daemon.c: serves in an engine process. link: to the broker. control: the socket that listens. plugins: those of the options, which
 * it takes over. addresses, wire: sockets that were opened before the sandbox, or zeros.
 */
int uvd_daemon_serve(const struct uvd_options *options, struct uvd_link *link, int control, struct uvd_plugins *plugins,
		     const struct uvd_fleet_addresses *addresses, const struct uvd_fleet_wire *wire);
/* status.c: stores the name of a process's program, or "". daemon: the struct. On any thread; it uses only `privilege`. */
void uvd_daemon_program(void *daemon, pid_t pid, char *comm, size_t size);
void uvd_daemon_raise_nofile(void);
/* Can no other user replace what --control, --sysfs, --pid-file and --netlink-alias name? If one can, the log says where. */
bool uvd_daemon_paths_are_ours(const struct uvd_options *options, struct uvd_log *log);

/* ---- announce.c -------------------------------------------------------------------------------------------------- */

/* Takes over NOTIFY_SOCKET and the watchdog's variables from the environment. */
void uvd_announce_init(struct uvd_announce *a, const struct uvd_options *options);
/* Writes the pid file and tells systemd, once. 0 or a negative errno, logged. */
int uvd_announce_ready(struct uvd_announce *a, struct uvd_log *log);
void uvd_announce_end(struct uvd_announce *a);
/* Call it when the loop that serves has just run: a sign of life for systemd's watchdog, once the daemon is ready. */
void uvd_announce_alive(const struct uvd_announce *a);

/* ---- netlink.c ----------------------------------------------------------------------------------------------------- */

extern const char uvd_netlink_alias[]; /* contrib/modprobe.d/uverbsd.conf */
/*
 * Writes the alias if it is asked for and the machine has no adapter. The log says if the kernel answers on the socket. Returns 0 or a
 * negative errno, logged.
 */
int uvd_netlink_begin(struct uvd_netlink *n, const struct uvd_options *options, struct uvd_log *log);
/*
 * Call it a few times a second: an adapter can appear, and removes the alias. Returns true if devices of the kernel have come or
 * gone: an overlay has to be mounted anew.
 */
bool uvd_netlink_check(struct uvd_netlink *n, struct uvd_log *log);
/* Has this machine an RDMA adapter? Stores its name, or what the hardware is, for messages (sysfs/sysfs.h). */
bool uvd_netlink_has_adapter(char *what, size_t size);
/* Removes the alias. *n may be zeros: uvd_netlink_begin() was not called. */
void uvd_netlink_end(struct uvd_netlink *n);

/* ---- machine_local.c, machine_broker.c ----------------------------------------------------------------------------- */

/*
 * The changes that a daemon makes to its machine, besides nodes: the control socket's path, the sysfs directory, the announcement. A process
 * that has the privileges does it itself, an engine process asks the broker. Who starts the process chooses the table, once.
 * An int is 0 or a negative errno unless stated otherwise.
 */
struct uvd_machine_ops {
	const struct uvd_cuse_clients *clients; /* how nodes' clients are reached */
	/* Sets d->privilege and d->control, and prepares what is published. Returns false if it fails, and the log says why. */
	bool (*begin)(struct uvd_daemon *d);
	/* Called when every device is served and published. */
	int (*ready)(struct uvd_daemon *d);
	/* Called by the loop twice a second: it serves. */
	void (*tick)(struct uvd_daemon *d);
	/* Takes away all that is published. */
	void (*leave)(struct uvd_daemon *d);
	/* The last call: frees d->privilege. */
	void (*end)(struct uvd_daemon *d);
	/*
	 * Returns the index for n->index and make_node(); -EPERM, -EACCES: its User Capabilities, or its adapter, must be those
	 * of a configured device; or another negative errno.
	 */
	int (*add)(struct uvd_daemon *d, const struct uvd_device_config *config);
	/* Gives this process access to the adapter of a device with one. */
	int (*open_adapter)(struct uvd_daemon *d, unsigned int index);
	/* Caller holds port_lock of the device. */
	int (*publish)(struct uvd_daemon *d, const struct uvd_daemon_node *n);
	void (*unpublish)(struct uvd_daemon *d, const struct uvd_daemon_node *n);
	/* Mounts the overlay anew, as the published files have changed. */
	void (*refresh)(struct uvd_daemon *d);
	/* On any thread. config: of the device. */
	int (*set_port)(struct uvd_daemon *d, unsigned int index, const struct uvd_device_config *config,
			unsigned int port, bool up);
	int (*set_tables)(struct uvd_daemon *d, unsigned int index, const struct uvd_device_config *config,
			  unsigned int port);
	/* Also stores them in `shown` of n->place. */
	void (*set_counters)(struct uvd_daemon *d, struct uvd_daemon_node *n, unsigned int port,
			     const uint64_t *values);
	int (*add_ucap)(struct uvd_daemon *d, const char *name, dev_t rdev);
	void (*remove_ucap)(struct uvd_daemon *d, const char *name);
	int (*add_cm)(struct uvd_daemon *d, dev_t rdev);
	void (*remove_cm)(struct uvd_daemon *d);
	/* struct uvd_fleet_ops.read_again */
	int (*read_again)(struct uvd_daemon *d, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
			  char error[UVD_RELOAD_ERROR]);
	/* Begins to replace this process by another one. -EOPNOTSUPP: it cannot. */
	int (*restart)(struct uvd_daemon *d);
	/* Has the other process, and later ones, log up to this level. Returns 0 or a negative errno. */
	int (*log_level)(struct uvd_daemon *d, enum uvd_log_level level);
	/* The process that stands for the daemon: the one that was started. */
	pid_t (*pid)(void);
};
extern const struct uvd_machine_ops uvd_machine_local, uvd_machine_broker;

/* ---- slots.c ----------------------------------------------------------------------------------------------------- */

/* The slots (broker/wire.h) of an engine process, as the broker has them: only it can write to them. */
struct uvd_slots {
	int fd[UVD_WIRE_SLOTS];
};

/* Makes new ones, for the next engine process. Returns 0 or a negative errno, logged. The others are closed. */
int uvd_slots_renew(struct uvd_slots *slots, struct uvd_log *log);
void uvd_slots_close(struct uvd_slots *slots);
/*
 * Call it in a child of the broker: opens all slots for reading at their numbers, whatever is there. Returns false if it
 * fails.
 */
bool uvd_slots_place(const struct uvd_slots *slots);
/*
 * Answers UVD_WIRE_PLUGIN and UVD_WIRE_PLUGIN_OPTION: checks the file, has a child look at it, and copies it into the
 * slot. Returns 0, or a negative errno and the message.
 */
int uvd_slots_fill(struct uvd_slots *slots, const struct uvd_options *options, unsigned int slot, int64_t nth,
		   const char *name, char error[UVD_PLUGIN_ERROR]);

/* ---- reload.c ------------------------------------------------------------------------------------------------------ */

/*
 * Reads the file again. start: the options of the start, with which it compares those that cannot change. Returns the descriptor of a copy of the file, which the caller owns, and *next; or -1, and error says why.
 */
int uvd_reload_read(const struct uvd_options *start, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
		    char error[UVD_RELOAD_ERROR]);
/* The broker reads the file no more often than that. */
enum { UVD_RELOAD_MS = 50 };

/* The configurations that the broker has read. */
struct uvd_reload_conf {
	const struct uvd_options *start; /* the options of the start */
	const struct uvd_options *latest; /* whose devices and grants hold now: those, or those that were read again */
	struct uvd_options *owned; /* latest, if it was read again */
	uint64_t tried_ns; /* when that was tried last */
};

/*
 * Reads the file again, for an engine process. That asks for an administrator or after SIGHUP, which the broker cannot verify, so -EAGAIN:
 * the last time was a moment ago. Returns 0, and *fd is a memfd with what the engine process is to know; or a negative errno. *config: the
 * copy of the file that holds now, which the caller owns; or -1: nothing has changed.
 */
int uvd_reload_serve(struct uvd_reload_conf *c, int *config, int *fd);
void uvd_reload_fini(struct uvd_reload_conf *c);
/* Unpacks it. Returns as read_again(). Closes fd. */
int uvd_reload_unpack(int fd, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES], char error[UVD_RELOAD_ERROR]);

/* ---- ucaps.c ------------------------------------------------------------------------------------------------------- */

/* The broker's nodes of User Capabilities. */
struct uvd_ucap_nodes {
	struct uvd_ucap_own {
		struct uvd_node node; /* if made */
		bool made;
		struct uvd_ucap_grant grant; /* of the node, or of the last one; its name is empty: there was none */
	} list[64];
};

/* Gives the node its owner, group and mode. Returns 0 or a negative errno, logged. */
int uvd_ucap_permit(const struct uvd_node *node, const struct uvd_ucap_grant *grant, struct uvd_log *log);
/* Returns the node of this name, or NULL. */
struct uvd_ucap_own *uvd_ucap_find(struct uvd_ucap_nodes *nodes, const char *name);
/* Makes the node by make(), as uvd_node_make_ucap(), and publishes it. Returns its channel or a negative errno. */
int uvd_ucap_make(struct uvd_ucap_nodes *nodes, const char *name, const char *sysfs,
		  const struct uvd_ucap_grants *grants, const struct uvd_node_orphans *orphans,
		  int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log);
void uvd_ucap_end(struct uvd_ucap_own *u, const struct uvd_options *options);
/* The same for all, which the engine process may still serve. */
void uvd_ucaps_end(struct uvd_ucap_nodes *nodes, const struct uvd_options *options);
/* Remembers the owners and modes that the nodes have now. The kernel removes a node with the process that serves it. */
void uvd_ucaps_look(struct uvd_ucap_nodes *nodes);
/* The options have changed: those nodes whose grant differs get the new one. */
void uvd_ucaps_grant(struct uvd_ucap_nodes *nodes, const struct uvd_ucap_grants *before,
		     const struct uvd_ucap_grants *now, struct uvd_log *log);

/* ---- adapter.c: the broker's side of --backend verbs -------------------------------------------------------------- */

/* The nodes of adapters that an engine process has, by the device's index. */
struct uvd_adapters {
	struct uvd_adapter {
		char node[32]; /* uverbsN; empty: none */
		dev_t rdev;
	} list[UVD_MAX_DEVICES];
};

/*
 * Makes the node of the device's adapter in the engine process's /dev/infiniband, for its user alone. Returns 0 or a
 * negative errno, logged.
 */
int uvd_adapters_add(struct uvd_adapters *adapters, pid_t engine, unsigned int index,
		     const struct uvd_device_config *device, const struct uvd_options *options, struct uvd_log *log);
/* Unlinks the nodes whose adapters are gone: the engine process learns by that. */
void uvd_adapters_check(struct uvd_adapters *adapters, pid_t engine);
/*
 * Takes over what the engine process says that the adapter has: of this port, where the sizes of tables stay, or of all if
 * port is 0. The broker cannot verify it: clients would get false tables by calls, too. The caller has checked *now.
 * Returns 0 or -EINVAL.
 */
int uvd_adapter_take_tables(struct uvd_device_config *config, unsigned int port, const struct uvd_device_config *now);

/* The engine process's side: what its plug-ins are loaded by. */
struct uvd_slots_used;
struct uvd_slots_used *uvd_slots_used_new(struct uvd_link *link, const struct uvd_options *options);
void uvd_slots_used_free(struct uvd_slots_used *used);
extern const struct uvd_plugin_source uvd_slots_source; /* its arg is a struct uvd_slots_used */

/* ---- image.c ----------------------------------------------------------------------------------------------------- */

struct uvd_image {
	const struct uvd_options *options;
	int exe; /* O_PATH */
	int config; /* a copy of the file */
	int wires[UVD_MAX_WIRES]; /* sockets of options->wire, which each engine process gets */
	char path[PATH_MAX]; /* where the program is installed */
};

/* Call it at the start, while /proc/self/exe still has the name of the program. Returns false; the log says why. */
bool uvd_image_init(struct uvd_image *p, const struct uvd_options *options, struct uvd_log *log);
void uvd_image_fini(struct uvd_image *p);
/*
 * Copies the configuration file, for all engine processes until the next copy. path: "": none. Returns a memfd; or -1, also if it is no
 * regular file.
 */
int uvd_image_copy_config(const char *path);
/* The next engine process reads this copy, which is the image's from now on. */
void uvd_image_set_config(struct uvd_image *p, int config);
/* Makes the next engine process execute the program that is installed now. */
void uvd_image_update(struct uvd_image *p, struct uvd_log *log);
/* Becomes the engine process, or returns an exit status; then the log says why. */
int uvd_image_exec(const struct uvd_image *p, int sock, int control, const struct uvd_slots *slots,
		   struct uvd_log *log);
/* In a process with --internal-engine: has the broker started it? */
bool uvd_image_is_engine(struct uvd_log *log);

/* hooks.c: sets the functions that the core calls. Call it before the first device is made. */
void uvd_daemon_hook(struct uvd_daemon *d);

/* ---- cm.c -------------------------------------------------------------------------------------------------------- */

/* Makes and serves the connection manager's node. If it cannot, the log says why, and the daemon goes on without. */
void uvd_daemon_cm_start(struct uvd_daemon *d);
/* The main thread calls it twice a second. */
void uvd_daemon_cm_tick(struct uvd_daemon *d);
/* Ends the node and closes its files. Returns false if a worker does not come back. Call it before the engine ends. */
bool uvd_daemon_cm_stop(struct uvd_daemon *d);

/* ---- status.c ---------------------------------------------------------------------------------------------------- */

/* Call these when the loop has been made, and before it is destroyed. The second one waits for the thread. */
void uvd_daemon_status_init(struct uvd_daemon *d);
void uvd_daemon_status_fini(struct uvd_daemon *d);
/* Answers `status`, later: returns NULL. */
json_t *uvd_daemon_status(void *daemon);
/* Answers a command of the control socket: a uvd_control_fn. */
json_t *uvd_daemon_answer(void *daemon, const char *command, bool may_change);

#endif
