/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine: what all devices of one process share. */
#ifndef UVD_CORE_ENGINE_H
#define UVD_CORE_ENGINE_H

#include <stdbool.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include "core/ucap.h"

struct uvd_account_limits;
struct uvd_accounts;
struct uvd_device;
struct uvd_log;
struct uvd_mm_table;

/* State that all devices of one process share. No locks: set up before, torn down after everything else. */
struct uvd_engine {
	struct uvd_log *log;
	struct uvd_mm_table *mms;
	struct uvd_fabric *fabric;
	struct uvd_accounts *accounts; /* of its clients, or NULL: nobody is charged */
	/*
	 * The transport's, or NULL: returns when every file that its client has closed before this moment is closed here too.
	 * Called before a client is refused at its RLIMIT_MEMLOCK, from a call on a file that is open.
	 */
	void (*settle)(struct uvd_engine *engine);
	/*
	 * The transport's, or NULL: what it has published of the device says from now on that this port is up or down. Returns 0 or a
	 * negative errno: then it stays as it was. Called on the thread of a client's call, with the device's port_lock.
	 */
	int (*publish_port)(struct uvd_device *dev, unsigned int port, bool up);
	/* Features of every device of the engine, whatever it poses as, and features of plug-ins. Both end with NULL. */
	const struct uvd_feature *const *features;
	const struct uvd_feature *const *plugin_features; /* NULL: none */
	struct uvd_ucaps ucaps;
};

/*
 * features: see above; they and log stay the caller's. limits: of each user; NULL: nobody is charged. Returns 0 or a negative
 * errno. Sets malloc up for many small objects: in the whole process.
 */
int uvd_engine_init(struct uvd_engine *engine, const struct uvd_feature *const *features,
		    const struct uvd_account_limits *limits, struct uvd_log *log);
void uvd_engine_fini(struct uvd_engine *engine);

#endif
