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
struct uvd_plugins;

/*
 * State that all devices of one process share. It needs no lock, as it is set up before the first device and torn
 * down after the last; only `ucaps` changes meanwhile, under its own lock.
 */
struct uvd_engine {
	struct uvd_log *log;
	struct uvd_mm_table *mms;
	struct uvd_fabric *fabric;
	struct uvd_plugins *plugins;
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
	/* Features of every device of the engine, whatever its persona, and of plug-ins. Both end with NULL. */
	const struct uvd_feature *const *features;
	const struct uvd_feature *const *plugin_features; /* NULL: none */
	struct uvd_ucaps ucaps;
};

/*
 * features: see above; the caller keeps them and log valid. limits: of each user; NULL: nobody is charged. Returns 0 or
 * -ENOMEM. Also sets up malloc() for many small objects, in the whole process.
 */
int uvd_engine_init(struct uvd_engine *engine, const struct uvd_feature *const *features,
		    const struct uvd_account_limits *limits, struct uvd_log *log);
void uvd_engine_fini(struct uvd_engine *engine);

#endif
