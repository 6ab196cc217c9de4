/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device: struct ib_uverbs_device. */
#ifndef UVD_CORE_DEVICE_H
#define UVD_CORE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include "core/engine.h"
#include "core/trees.h"
#include "filters/filters.h"
#include "util/util.h"

struct uvd_file;
struct uvd_persona;
struct uvd_quota;
struct uvd_tree;
struct uvd_mcast_user;
struct uvd_xrcd_domain;

/*
 * The number of calls in progress on a device's files, so that a removal can wait for them (the kernel has
 * disassociate_srcu). There are several counters, because the threads of many files would contend for a single one.
 */
enum { UVD_CALL_COUNTERS = 16 };

struct uvd_calls {
	atomic_uint num;
	uint8_t pad[64 - sizeof(atomic_uint)]; /* a cache line for each */
};

/* Counts the objects of one type that exist. Handles that a removal has left do not count. */
struct uvd_object_count {
	atomic_uint state; /* enum uvd_object_count_state */
	atomic_uint num;
	char name[64]; /* of the first such object; a copy, because a plug-in's row can go. Set once, before NAMED */
};
enum uvd_object_count_state { UVD_COUNT_UNUSED, UVD_COUNT_BEGUN, UVD_COUNT_NAMED };

enum { UVD_OBJECT_COUNTS = 64 /* index: the id's low 5 bits, and its namespace (common or driver) */ };

enum { UVD_MCAST_BUCKETS = 512 };

struct uvd_device {
	struct uvd_engine *engine;
	atomic_uint ref; /* its owner's, one for each open file, a look-up's under `run` */
	struct uvd_ibdev ib;
	const struct uvd_persona *persona;
	struct uvd_backend ops; /* the backend's, without those that the persona lacks */
	struct uvd_module *backend_module, *persona_module; /* references to the plug-ins that brought them */
	struct uvd_trees *trees; /* the current generation, for files that are opened; a reference. Under `lock` */
	struct list_head of_engine; /* in the engine's `devices`, under its plugins_lock */
	bool listed; /* there; see uvd_device_unlist() */
	uint8_t ucap_refs[UVD_MAX_UCAPS]; /* how often this device has created each; the engine's ucaps.lock */
	struct uvd_device_config config;
	void *owner; /* the transport's, for the engine's hooks; set before the device is served */
	pthread_mutex_t lock; /* files, num_files, files_opened, trees; orders `gone` and opens */
	pthread_mutex_t port_lock; /* one change of a port at a time; backend_closed; the tables of ports */
	struct list_head files; /* newest first */
	unsigned int num_files;
	pthread_mutex_t xrcd_lock; /* xrcds, num_xrcds: the shared XRC domains (xrcd.c) */
	struct uvd_xrcd_domain *xrcds;
	unsigned int num_xrcds;
	pthread_mutex_t mcast_lock; /* mcast_users: what users have of each multicast group (mcast.c) */
	struct uvd_mcast_user *mcast_users[UVD_MCAST_BUCKETS];
	uint64_t mcast_seed; /* of their hash, which clients do not know */
	unsigned int files_opened; /* ever */
	struct uvd_calls calls[UVD_CALL_COUNTERS];
	struct uvd_object_count object_counts[UVD_OBJECT_COUNTS];
	atomic_bool adapter_gone; /* the backend has reported DEVICE_FATAL: the transport removes the device soon */
	atomic_bool gone; /* removed: every call but a destroy fails with EIO. Set under `lock`. */
	struct uvd_allow *allow; /* the allow-lists, constant; NULL: none */
	struct uvd_quota *quota; /* what each user may hold, and its share; constant, a reference; NULL: any amount */
	_Atomic uint64_t over_quota; /* calls that the quota has refused */
	struct uvd_filters filters;
	pthread_mutex_t filters_lock; /* one change of the filters at a time; outside all locks of calls */
	bool filters_closed; /* under filters_lock */
	bool cm_filtered; /* counted in the engine's cm_filtered. Under filters_lock */
	/* Removals of devices of this name by filters; a user who adds a filter sets it to 0. Under filters_lock */
	uint64_t replugs;
	bool backend_closed; /* or not open yet. Under port_lock once other threads know the device */
};

/*
 * Creates a device and opens its backend. The caller owns the first reference. NULL: *err is a negative errno;
 * errors of the configuration and of the backend are in the log.
 */
struct uvd_device *uvd_device_new(struct uvd_engine *engine, const struct uvd_device_config *config, int *err);
/*
 * Returns the parse tree that a device with these features would have, for a context with all User
 * Capabilities. The caller frees it. NULL: *err is an error of uvd_persona_ops() or uvd_tree_new().
 */
struct uvd_tree *uvd_device_tree(const struct uvd_feature *const *features, const struct uvd_backend *ops,
				 const struct uvd_persona *persona, struct uvd_log *log, int *err);
struct uvd_device *uvd_device_get(struct uvd_device *dev);
/* Unless the device was removed, all of its files must be closed when the owner puts its reference. */
void uvd_device_put(struct uvd_device *dev);
/*
 * Unplugs the device under its open files (ib_uverbs_remove_one(), hotplug-01). From now on opens and calls fail with
 * EIO, except destroys. The function takes all links down and waits for the calls in progress. Then it destroys all
 * objects (newest first) and the context of each open file, oldest file first. Last, it closes the backend and
 * removes the device's User Capabilities. Each asynchronous event file reports IBV_EVENT_DEVICE_FATAL; completion
 * channels hang up. Files stay open, with their handles, until their clients close them, and each keeps its reference
 * to the device until then.
 *
 * Call it once for a device, on a thread that may block: it waits for calls, and these may wait for a client's memory.
 */
void uvd_device_remove(struct uvd_device *dev);
/* The first step of a removal alone: from now on opens and calls fail with EIO, except destroys. Waits for nothing. */
void uvd_device_set_gone(struct uvd_device *dev);
/*
 * Takes a port down or up, as an administrator would: first in what the transport publishes, then for queries and
 * for the backend, last with an event to all open files. Returns 0; 1 if the port is in that state already or the
 * device is gone, and nothing changes; -EINVAL: no such port; or an error of engine->publish_port().
 */
int uvd_device_set_port(struct uvd_device *dev, unsigned int port, bool up);
/*
 * The machine has lost this address, or has got it back (has): on Ethernet the GIDs that stand for it go or come, first in what the
 * transport publishes, then for the connection manager and for queries, last with IBV_EVENT_GID_CHANGE to all open files. Returns whether
 * anything has changed. One call at a time.
 */
bool uvd_device_set_ip(struct uvd_device *dev, const union ibv_gid *ip, bool has);
/*
 * Stores the counters of a port (from 1). Returns 0; -ENODEV: the backend is closed; -EOPNOTSUPP: it counts nothing. Takes
 * port_lock.
 */
int uvd_device_query_counters(struct uvd_device *dev, unsigned int port, uint64_t values[UVD_PORT_COUNTERS]);

/*
 * Creates the User Capability for the device, or counts one creation more if the device has created it already.
 * Returns its bit, an error of uvd_ucap_get(), or -EOVERFLOW after 255 creations. Creations that were not
 * removed end with the device.
 */
int uvd_device_create_ucap(struct uvd_device *dev, const char *name);
void uvd_device_remove_ucap(struct uvd_device *dev, const char *name);

/* Posts an event of the device or of a port to all asynchronous event files of all open files. */
void uvd_device_event(struct uvd_ibdev *ib, enum ibv_event_type type, uint8_t port);

#endif
