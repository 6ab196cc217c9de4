/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine: what all devices of one process share. */
#ifndef UVD_CORE_ENGINE_H
#define UVD_CORE_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include "core/observer.h"
#include "core/ucap.h"
#include "explain/explain.h"
#include "plugin/plugin.h"
#include "util/util.h"

struct uvd_account_limits;
struct uvd_accounts;
struct uvd_device;
struct uvd_device_text;
struct uvd_log;
struct uvd_mm_table;
struct uvd_object_facts;
struct uvd_uobject;

/*
 * Somebody who keeps a list of an engine's devices. Each function is called with the engine's plugins_lock held. added: the device can be
 * used from now on, and is as its configuration says. removed: its objects are gone, and it can be freed.
 */
struct uvd_device_watch {
	void (*added)(struct uvd_device_watch *watch, struct uvd_device *dev);
	void (*removed)(struct uvd_device_watch *watch, const struct uvd_device *dev);
	/* The machine has lost addresses of the device, or has got them back: its configuration says which. */
	void (*addresses)(struct uvd_device_watch *watch, const struct uvd_device *dev);
};

/*
 * State that all devices of one process share. It needs no lock, as it is set up before the first device and torn
 * down after the last; only `ucaps`, `plugins`, `devices`, `filters`, `observers`, `files_opened` and `cm_filtered` change
 * meanwhile.
 */
struct uvd_engine {
	struct uvd_log *log;
	enum uvd_explain_form explain; /* the transport sets it before the first device is made */
	struct uvd_mm_table *mms;
	struct uvd_accounts *accounts; /* of the clients; NULL: nobody is charged */
	/*
	 * The transport's, or NULL: waits, for a second at most, until each file that its client has already closed
	 * is closed here too. Called from a call on an open file, before the client is refused at its RLIMIT_MEMLOCK
	 * or at a limit of its account.
	 */
	void (*settle)(struct uvd_engine *engine);
	/*
	 * The transport's, or NULL: publishes that this port is up or down. Returns 0, or a negative errno, and then
	 * nothing has changed. Called on the thread of a client's call or of the control socket, with the device's
	 * port_lock held.
	 */
	int (*publish_port)(struct uvd_device *dev, unsigned int port, bool up);
	/*
	 * The transport's, or NULL: publishes what dev->config now says of this port and its tables, if the device is
	 * published. Returns 0 or a negative errno. Called on a thread of the backend, or on that of uvd_device_set_ip(), with
	 * the device's port_lock held. Set it before the first device is made.
	 */
	int (*publish_tables)(struct uvd_device *dev, unsigned int port);
	/*
	 * The transport's, or NULL: orders the removal of the device, and that it is added again down_ns later (not 0).
	 * Returns at once. Returns 0, or -ENODEV: the transport does not know the device yet. Set it before the first
	 * device is made. Called on the thread of a filter, without locks.
	 */
	int (*replug)(struct uvd_device *dev, uint64_t down_ns);
	/*
	 * The transport's, or NULL: the core looks itself. As uvd_sockets_in_use() for the sockets that processes other than
	 * this one have open; *cpu_ns: the processor time that another process has used for that. It can take a second.
	 */
	int (*sockets_in_use)(struct uvd_engine *engine, const uint64_t *inos, unsigned int num, bool *used,
			      uint64_t *cpu_ns);
	/*
	 * The transport's: can it have a client's thread register memory with an adapter (uvd_req_register())? Set it before
	 * the first device is made.
	 */
	bool lends;
	/*
	 * The verbs', or NULL: sets what a status tells of an object, whose facts are 0 before. Called with the lock of its
	 * file, and with the object locked. Set it before the first file is opened.
	 */
	void (*take_facts)(const struct uvd_uobject *uobj, struct uvd_object_facts *facts);
	/* For each name, the number of times that the filter `flap` has replugged it. Under plugins_lock. */
	struct uvd_replugs {
		char ibdev[IBV_SYSFS_NAME_MAX]; /* empty: unused */
		uint64_t num;
	} replugs[UVD_MAX_DEVICES];
	const struct uvd_plugin *const *builtin; /* of uvd_engine_init() */
	struct uvd_plugins *plugins; /* has its own lock */
	/* One change of the plug-ins, or one creation of a device, at a time; `devices`. Outside dev->lock. */
	pthread_mutex_t plugins_lock;
	struct list_head devices; /* those that are not removed, oldest first */
	struct uvd_device_watch *watch; /* of `devices`, under plugins_lock, too; NULL: nobody */
	struct uvd_device_text *texts; /* that devices begin with; under plugins_lock */
	struct uvd_ucaps ucaps;
	struct uvd_observers observers; /* have their own lock */
	atomic_uint_fast64_t files_opened; /* ever, of all nodes */
	atomic_uint cm_filtered; /* devices with a filter that wraps cm_command */
};

/*
 * plugins: those in the daemon itself, beside what uvd_plugins_new() registers; ends with NULL; NULL: none. The caller
 * keeps them and log valid. limits: of each user; NULL: nobody is charged. Returns 0 or -ENOMEM; or -EINVAL or -EEXIST:
 * the plug-ins are wrong. Also sets up malloc() for many small objects, in the whole process.
 */
int uvd_engine_init(struct uvd_engine *engine, const struct uvd_plugin *const *plugins,
		    const struct uvd_account_limits *limits, struct uvd_log *log);
/*
 * Gives the engine this registry in the place of its own, and adds the plug-ins of uvd_engine_init(). The engine takes it
 * over, also on an error. For programs that need the names of backends and personas before they have an engine. Call it
 * before the first device. Returns 0, or an error of uvd_plugins_add_builtin().
 */
int uvd_engine_set_plugins(struct uvd_engine *engine, struct uvd_plugins *plugins);
void uvd_engine_fini(struct uvd_engine *engine);
/*
 * The transport counts here how often engine->replug() has removed the device of this name, before it adds it again; it
 * begins anew (forget, which returns what it was) when a user adds the device, and goes on (restore) if that fails.
 * uvd_ibdev_replugs() tells the next device of the name. Take plugins_lock.
 */
void uvd_engine_count_replug(struct uvd_engine *engine, const char *ibdev);
uint64_t uvd_engine_forget_replugs(struct uvd_engine *engine, const char *ibdev);
void uvd_engine_restore_replugs(struct uvd_engine *engine, const char *ibdev, uint64_t num);

#endif
