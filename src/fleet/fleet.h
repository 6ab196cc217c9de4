/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The devices of one engine that a transport serves: found by name, added, removed and added again by the control socket's
 * commands and by filters, and withdrawn when their adapter is gone. The transport makes and removes a device, and has a
 * place for each.
 *
 * Locking: functions run on the thread of the event loop, unless a comment says otherwise; before uvd_fleet_begin(), on the
 * thread that starts. Other threads may read a place's config and dev under the fleet's lock.
 */
#ifndef UVD_FLEET_H
#define UVD_FLEET_H

#include <ev.h>
#include <jansson.h>
#include <pthread.h>
#include "core/core.h"
#include "fleet/status.h"
#include "fleet/wire.h"
#include "options/options.h"
#include "sysfs/sysfs.h"

struct uvd_control;
struct uvd_control_meters;
struct uvd_control_plugins;
struct uvd_control_traces;
struct uvd_fleet;

enum uvd_place_state {
	UVD_PLACE_EMPTY, /* its device was removed and can be added again, or there was none */
	UVD_PLACE_SERVES,
	UVD_PLACE_GOING, /* the transport is removing the device */
	UVD_PLACE_DRAINS, /* the device was removed, and clients still have it open */
};

/* The transport has UVD_MAX_DEVICES of them, all zeros at first. */
struct uvd_fleet_place {
	struct uvd_fleet *fleet; /* set when a device has been made here */
	/* The transport changes it. EMPTY and SERVES are enough for one whose remove() waits for the end of the device. */
	enum uvd_place_state state;
	struct uvd_device_config config; /* as asked for; ibdev empty: none, or a later device has that name */
	struct uvd_device *dev; /* a reference; NULL where EMPTY */
	struct uvd_sysfs_counters shown; /* the values of counters that clients find */
	/* Not 0: a filter wants the device removed, and added so much later. Under the fleet's lock. */
	uint64_t replug_ns;
};

/* arg: that of uvd_fleet_init(). They run on the loop's thread, where no comment says otherwise. */
struct uvd_fleet_ops {
	struct uvd_fleet_place *(*place)(void *arg, unsigned int i); /* i < UVD_MAX_DEVICES */
	/*
	 * Makes a device in an empty place, calls uvd_fleet_enter() and publishes it. Returns NULL, or a text that says what
	 * failed, which is valid until the next call: then the place is empty again, or drains.
	 */
	const char *(*make)(void *arg, struct uvd_fleet_place *place, const struct uvd_device_config *config);
	/* Adds to the answer for who asked. NULL: nothing */
	void (*made)(void *arg, struct uvd_fleet_place *place, json_t *answer);
	/* Begins to remove the device of a place that serves, which then does not serve. Returns NULL, or what went wrong. */
	const char *(*remove)(void *arg, struct uvd_fleet_place *place);
	/* The same for somebody who asks: afterwards returns the answer. NULL: it comes later. */
	json_t *(*removed)(void *arg, struct uvd_fleet_place *place);
	bool (*number_taken)(void *arg, int number); /* can no new device have the number? */
	void (*settle)(void *arg); /* frees what removed devices need no more. NULL: there is nothing */
	/* Brings the files of the counters of this port up to date, which place->shown has. On the thread of uvd_fleet_show_counters(). */
	void (*show_counters)(void *arg, struct uvd_fleet_place *place, unsigned int port, const uint64_t *values);
	/*
	 * Reads the configuration again. Returns 0: next has its devices with their texts, and the caller frees it; ignored has the names of
	 * options that differ and stay as they are. Returns -1: error says why. NULL: there is none.
	 */
	int (*read_again)(void *arg, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
			  char error[UVD_RELOAD_ERROR]);
	/* The configuration has no more what it had of this device. NULL: nobody needs to know. */
	void (*forget)(void *arg, const char *ibdev);
	json_t *(*status)(void *arg); /* answers `status`, or NULL: later */
	/* Stores the name of a process's program, or "". On any thread; may block. */
	void (*program)(void *arg, pid_t pid, char *name, size_t size);
	/* Has other processes log up to this level, too. Returns 0 or a negative errno. NULL: there are none. */
	int (*log_level)(void *arg, enum uvd_log_level level);
};

/* A device that a filter has removed, and that comes back. */
struct uvd_fleet_back {
	struct ev_timer timer;
	char ibdev[IBV_SYSFS_NAME_MAX]; /* empty: unused */
};

/* The machine's addresses, as rtnetlink tells of them (addresses.c). */
struct uvd_fleet_addresses {
	int events, dump; /* sockets: news of changes, and all addresses; 0: there are none */
	struct ev_io on_event;
	/* The addresses of devices that the machine has had: only these can be lost. A device may have others, which stay. */
	union ibv_gid *seen;
	unsigned int num_seen;
};

/* A configuration that is read again (reload.c). */
struct uvd_fleet_reload {
	struct uvd_options *known; /* those devices that were configured last */
	bool owned; /* known is the fleet's */
	struct uvd_options *next; /* NULL: no reload is under way */
	bool adds[UVD_MAX_DEVICES]; /* of those, once the former ones are removed */
	json_t *answer;
	unsigned long asker; /* the number for uvd_control_finish(); 0: nobody has asked */
	unsigned int looks; /* since the removals have begun */
	struct ev_timer timer;
};

struct uvd_fleet {
	struct uvd_engine *engine;
	struct uvd_log *log;
	const struct uvd_fleet_ops *ops;
	void *arg;
	pthread_mutex_t lock; /* places' config, dev and replug_ns; the four below */
	bool had[UVD_NODE_NUMBERS]; /* a device has had the number */
	struct ev_loop *loop; /* NULL: filters' orders wait */
	bool ended; /* filters' orders are refused */
	bool ordered; /* a place has an order of a filter: replug_ns */
	struct ev_async on_replug;
	struct uvd_fleet_addresses addresses;
	struct uvd_fleet_wire wire; /* set before the first device is added */
	struct uvd_option_machine machine; /* likewise */
	struct ev_timer adapters; /* looks for devices whose adapter is gone; runs if a device has had an adapter */
	struct uvd_fleet_back backs[UVD_MAX_DEVICES];
	struct uvd_control *control;
	struct uvd_control_plugins *plugins;
	struct uvd_control_traces *traces;
	struct uvd_control_meters *meters;
	struct uvd_fleet_reload reload; /* `known` is set before the first device is added */
};

/*
 * Opens the sockets in this process's network namespace, for a process that can open none later. By default the fleet does that when a device
 * has addresses of the machine's. Returns 0 or a negative errno.
 */
int uvd_fleet_addresses_open(struct uvd_fleet_addresses *a);

/* The engine may be one that is not initialized yet. */
void uvd_fleet_init(struct uvd_fleet *f, struct uvd_engine *engine, struct uvd_log *log,
		    const struct uvd_fleet_ops *ops, void *arg);
/* From now on the fleet answers commands, and does what filters order. The loop and the control must outlive uvd_fleet_end(). */
void uvd_fleet_begin(struct uvd_fleet *f, struct ev_loop *loop, struct uvd_control *control);
/* There is no loop, or it has ended. Refuses orders, and ends traces and changes of plug-ins. May be called twice. */
void uvd_fleet_end(struct uvd_fleet *f);
void uvd_fleet_fini(struct uvd_fleet *f);

/* Makes a device. Returns its place; or NULL, and *wrong says what failed. */
struct uvd_fleet_place *uvd_fleet_add(struct uvd_fleet *f, const struct uvd_device_config *config, const char **wrong);
/*
 * For ops->make(): from now on the place has the device, which is not served yet and whose number is known. Takes over the
 * reference.
 */
void uvd_fleet_enter(struct uvd_fleet *f, struct uvd_fleet_place *place, const struct uvd_device_config *config,
		     struct uvd_device *dev);
/* Returns the place's device with the reference, and leaves it none. */
struct uvd_device *uvd_fleet_leave(struct uvd_fleet_place *place);
/*
 * Calls ops->show_counters() for this port, or with ibdev NULL for all ports of all devices that serve. Any thread, if no place
 * changes meanwhile.
 */
void uvd_fleet_show_counters(struct uvd_fleet *f, const char *ibdev, unsigned int port);
/* Returns device number i of those that serve, or NULL after the last one. No reference. A function for uvd_control_port(). */
struct uvd_device *uvd_fleet_device(void *fleet, unsigned int i);

/*
 * Reads the configuration again, and adds, replaces and removes the devices that it says. Returns the refusal, whose reference is the
 * caller's; or NULL: it has begun, and if it is asked for by a command the answer comes later.
 */
json_t *uvd_fleet_reload(struct uvd_fleet *f, bool asked);

/* A function for uvd_control_new(): answers all commands. fleet: a struct uvd_fleet that has begun. */
json_t *uvd_fleet_answer(void *fleet, const char *command, bool may_change);

/* struct uvd_engine.replug, on a filter's thread. The loop's thread removes the device. -ESHUTDOWN: nobody will do that. */
int uvd_fleet_replug(struct uvd_device *dev, uint64_t down_ns);

#endif
