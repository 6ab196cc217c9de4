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
#include "util/util.h"

struct uvd_file;
struct uvd_persona;
struct uvd_tree;
struct uvd_xrcd_domain;

enum { UVD_MAX_FEATURES = 32 };

/* The features of a device, and the parse trees that it has beside the plain one (features.c). */
struct uvd_device_trees {
	const struct uvd_feature *features[UVD_MAX_FEATURES + 1]; /* all that it has; ends with NULL */
	pthread_mutex_t lock; /* the list */
	struct uvd_tree_variant *variants; /* one for each set of features that a context turned on */
};

/*
 * Calls that are under way on a device's files, so that a removal can wait for them: the kernel's disassociate_srcu. Spread
 * over several counters, as threads on many files would meet at one.
 */
enum { UVD_CALL_COUNTERS = 16 };

struct uvd_calls {
	atomic_uint num;
	uint8_t pad[64 - sizeof(atomic_uint)]; /* a cache line for each */
};

/* How many objects of one type there are, handles of a device that is gone excepted. */
struct uvd_object_count {
	const struct uvd_object_row *_Atomic row; /* NULL: never any */
	atomic_uint num;
};

enum { UVD_OBJECT_COUNTS = 64 /* by 5 bits of the id, and the namespace: the kernel's, or ours */ };

struct uvd_device {
	struct uvd_engine *engine;
	atomic_uint ref; /* its owner's, and one for each open file */
	struct uvd_ibdev ib;
	const struct uvd_persona *persona;
	struct uvd_backend ops; /* the backend's, as far as the persona has them */
	struct uvd_tree *tree; /* for contexts without User Capabilities, and before there is a context */
	struct uvd_device_trees trees; /* with them */
	uint8_t ucap_refs[UVD_MAX_UCAPS]; /* that it created, so many times; by the engine's ucaps.lock */
	struct uvd_device_config config;
	void *owner; /* the transport's, for the engine's hooks; set before the device is served */
	pthread_mutex_t lock; /* files */
	pthread_mutex_t port_lock; /* one change of a port after the other */
	struct list_head files; /* newest first */
	unsigned int num_files;
	pthread_mutex_t xrcd_lock; /* the domains that are known by a file (xrcd.c) */
	struct uvd_xrcd_domain *xrcds;
	unsigned int num_xrcds;
	unsigned int files_opened; /* ever */
	struct uvd_calls calls[UVD_CALL_COUNTERS];
	struct uvd_object_count object_counts[UVD_OBJECT_COUNTS];
	atomic_bool gone; /* removed: everything but DESTROY is EIO. Set with `lock` held. */
	bool backend_closed; /* or not open yet. port_lock, once others know of the device */
};

/* NULL: *err says why, and the log. */
struct uvd_device *uvd_device_new(struct uvd_engine *engine, const struct uvd_device_config *config, int *err);
/* Returns the parse tree that a device with these features would have. NULL: see uvd_tree_new(). */
struct uvd_tree *uvd_device_tree(const struct uvd_feature *const *features, const struct uvd_backend *ops,
				 const struct uvd_persona *persona, struct uvd_log *log, int *err);
struct uvd_device *uvd_device_get(struct uvd_device *dev);
void uvd_device_put(struct uvd_device *dev);
/* Puts the owner's reference. Where the device was not removed, all its files are closed. */
void uvd_device_free(struct uvd_device *dev);
/*
 * Unplugs the device under its open files (ib_uverbs_remove_one(), hotplug-01): from now on opens and commands fail with
 * EIO, destroys excepted; then calls that are under way are waited for, and every open file, oldest first, loses all its
 * objects (newest first) and its context; last the backend closes, and the device's User Capabilities go. Each
 * asynchronous event file tells IBV_EVENT_DEVICE_FATAL, completion channels end. Files stay open, with their handles, until
 * they are closed; the device's memory is freed after the last of them.
 *
 * Once for a device. Waits for calls that wait for a client's memory: for a thread that may.
 */
void uvd_device_remove(struct uvd_device *dev);
/*
 * Takes a port down or up, as an administrator would: for queries, for the backend, and last as an event for all open
 * files. 1: it was so already, and nothing happens. -EINVAL: no such port. Else as engine->publish_port().
 */
int uvd_device_set_port(struct uvd_device *dev, unsigned int port, bool up);

/*
 * What a context with these User Capabilities (bits of struct uvd_ucaps) accepts: made at the first question, and the
 * device's. *tree NULL: no more than any other. 0, -ENOMEM, or what uvd_tree_new() says.
 */
int uvd_device_tree_for(struct uvd_device *dev, uint64_t ucaps, struct uvd_tree **tree);
/*
 * Creates the User Capability for the device, or counts once more where it has done so; its bit, or as uvd_ucap_get().
 * What is not removed when the device goes is removed then.
 */
int uvd_device_create_ucap(struct uvd_device *dev, const char *name);
void uvd_device_remove_ucap(struct uvd_device *dev, const char *name);

/* An event of the device or of a port, to all asynchronous event files of all open files. */
void uvd_device_event(struct uvd_ibdev *ib, enum ibv_event_type type, uint8_t port);

#endif
