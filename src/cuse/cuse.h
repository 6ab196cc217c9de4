/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The CUSE transport: struct uvd_cuse is one node in /dev/infiniband. The node's own threads, its workers, read
 * the channel and carry out the calls. A worker may wait for its client's memory; another one always goes on reading
 * the channel.
 */
#ifndef UVD_CUSE_DEV_H
#define UVD_CUSE_DEV_H

#include <stdbool.h>
#include <sys/types.h>
#include "client/client.h"
#include "core/core.h"
#include "grant/grant.h"

struct uvd_cm;
struct uvd_cuse;
struct uvd_doorbells;
struct uvd_log;

/*
 * How a node's clients are reached: by this process, which opens their files and copies their memory, or with descriptors that the
 * broker gives it.
 */
struct uvd_cuse_clients;
extern const struct uvd_cuse_clients uvd_cuse_clients_local, uvd_cuse_clients_remote;

/*
 * The nodes of devices, those of User Capabilities, which can only be opened, and that of the connection manager (kind.h). Of the last kind is
 * no node: it is the file system whose files take the place of clients' descriptors (queues.h).
 */
struct uvd_cuse_kind;
extern const struct uvd_cuse_kind uvd_cuse_device_nodes, uvd_cuse_ucap_nodes, uvd_cuse_cm_nodes, uvd_cuse_queue_files;

struct uvd_cuse_config {
	const struct uvd_cuse_kind *kind;
	int number; /* N of a device's uverbsN; -1: the lowest that is free */
	const char *ucap; /* name of a User Capability; for uvd_cuse_new() alone */
	struct uvd_cm *cm; /* of the connection manager's node; must outlive it */
	struct uvd_cuse *queues; /* of a device whose persona maps queues: the file system; must outlive it */
	struct uvd_doorbells *
		doorbells; /* of the file system: the reader of clients' doorbells; must outlive it. NULL: they are calls */
	unsigned int workers; /* at the start; more are started while calls wait for clients */
	struct uvd_privilege *privilege; /* makes the node; must outlive it */
	unsigned int index; /* of the device, as make_node() knows it */
	const struct uvd_cuse_clients *clients; /* how the node's clients are reached */
	struct uvd_grants *grants;
	struct uvd_log *log;
	/* A worker calls it when the channel has ended without uvd_cuse_stop(): somebody wrote to `abort` in sysfs. */
	void (*lost)(void *arg);
	void *arg;
};

/*
 * Makes the node and verifies that it is ours. Opens of it wait until uvd_cuse_start(). Returns NULL with a negative
 * *err; -EEXIST: the number is taken.
 */
struct uvd_cuse *uvd_cuse_new(const struct uvd_cuse_config *config, int *err);
int uvd_cuse_number(const struct uvd_cuse *c);
dev_t uvd_cuse_rdev(const struct uvd_cuse *c);
const char *uvd_cuse_path(const struct uvd_cuse *c);
/*
 * Starts the workers, which serve `dev`; NULL: a node that stands for no device. The caller keeps owning it. Returns 0, or a negative errno, logged.
 */
int uvd_cuse_start(struct uvd_cuse *c, struct uvd_engine *engine, struct uvd_device *dev);
/*
 * The main thread calls it about twice a second. Lets go of calls that wait for the memory of a client with a signal,
 * ends idle workers, and frees those that have exited.
 */
void uvd_cuse_tick(struct uvd_cuse *c);
/*
 * The device is being removed: unlinks the node. The session must stay until its last file is closed (uvd_cuse_count()
 * tells): so clients that have the node open get EIO, and not the error of an ended session. Then call
 * uvd_cuse_stop().
 */
void uvd_cuse_unplug(struct uvd_cuse *c);
/*
 * Answers the requests that have been read, then removes the node and closes all files. Clients that are in a call get
 * ECONNABORTED; later calls fail with ENOTCONN. All grants of the node must have ended before. Returns false if a
 * worker does not come back; then nothing of c may be freed.
 */
bool uvd_cuse_stop(struct uvd_cuse *c);
void uvd_cuse_free(struct uvd_cuse *c);

struct uvd_cuse_counters {
	unsigned long requests;
	unsigned int workers, files;
	unsigned int mapped; /* of the files: open in the file system of queues, whose session outlives the node's */
};
void uvd_cuse_count(struct uvd_cuse *c, struct uvd_cuse_counters *counters);
/* Calls fn for every open file of a device, with c's lock held: fn must call nothing of c. */
void uvd_cuse_each_file(struct uvd_cuse *c,
			void (*fn)(void *arg, const struct uvd_opener *opener, struct uvd_file *file), void *arg);

#endif
