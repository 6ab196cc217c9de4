/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The CUSE transport: one /dev/infiniband/uverbsN, served by threads of its own that read the node's channel and answer
 * each call where they are. No thread waits for a client.
 */
#ifndef UVD_CUSE_DEV_H
#define UVD_CUSE_DEV_H

#include <stdbool.h>
#include <sys/types.h>
#include "client/client.h"
#include "core/core.h"

struct uvd_cuse;
struct uvd_cuse_ucap;
struct uvd_grants;
struct uvd_link;
struct uvd_log;
struct uvd_node_orphans;

struct uvd_cuse_config {
	int number; /* N of uverbsN; -1: the lowest that is free */
	unsigned int mode; /* of the node */
	gid_t group; /* -1: leave it */
	unsigned int workers; /* threads at the start; more come while calls wait for clients */
	const struct uvd_node_orphans *orphans; /* whose names may be taken over */
	struct uvd_link *link; /* the broker, which makes node and channel; NULL: this process does */
	unsigned int index; /* of the device, as the broker knows it */
	struct uvd_grants *grants;
	struct uvd_log *log;
	/* The channel ended without uvd_cuse_stop(), as somebody wrote to `abort` in sysfs. On a thread of the node's. */
	void (*lost)(void *arg);
	void *arg;
};

/*
 * Makes the node and makes sure that it is ours. Opens wait until uvd_cuse_start(). NULL: *err is negative and the log says
 * why; -EEXIST: the number is taken.
 */
struct uvd_cuse *uvd_cuse_new(const struct uvd_cuse_config *config, int *err);
int uvd_cuse_number(const struct uvd_cuse *c);
dev_t uvd_cuse_rdev(const struct uvd_cuse *c);
const char *uvd_cuse_path(const struct uvd_cuse *c);
/* Serves `dev`, which stays the caller's. 0 or a negative errno. */
int uvd_cuse_start(struct uvd_cuse *c, struct uvd_device *dev);
/* To be called about twice a second: ends calls that wait for the memory of a client with a signal, and threads without work. */
void uvd_cuse_tick(struct uvd_cuse *c);
/*
 * The device is going: its name goes at once. The session stays until its last file is closed (uvd_cuse_count() tells), as
 * whoever has it open is to read EIO, and not that the session has ended: then uvd_cuse_stop().
 */
void uvd_cuse_unplug(struct uvd_cuse *c);
/*
 * Answers what has been read, then removes the node: clients in a call get ECONNABORTED, and ENOTCONN from then on. Closes
 * all files. All grants have been drained. false: a thread does not come back; then nothing of c may be freed.
 */
bool uvd_cuse_stop(struct uvd_cuse *c);
void uvd_cuse_free(struct uvd_cuse *c);

struct uvd_cuse_counters {
	unsigned long requests;
	unsigned int workers, files;
};
void uvd_cuse_count(struct uvd_cuse *c, struct uvd_cuse_counters *counters);
/* Every open file. With c's lock: call nothing of c in fn. */
void uvd_cuse_each_file(struct uvd_cuse *c, void (*fn)(void *arg, const struct uvd_opener *opener, struct uvd_file *file),
			void *arg);

/* ---- grants, for all nodes (grant.h) ----------------------------------------------------------------------------- */

struct uvd_grant_counters {
	unsigned long granted, fell_back, gone, late, killed;
	unsigned int under_way;
};

/* link: NULL: this process borrows threads itself. enabled: false where no client may be traced: every start is refused. NULL: no memory. */
struct uvd_grants *uvd_grants_new(bool enabled, struct uvd_link *link, struct uvd_log *log);
/* None is under way. */
void uvd_grants_free(struct uvd_grants *g);
/* Refuses new grants and waits, at most so long, for those under way. false: some still are. */
bool uvd_grants_drain(struct uvd_grants *g, unsigned int milliseconds);
void uvd_grants_count(struct uvd_grants *g, struct uvd_grant_counters *counters);

/* ---- the node of a User Capability, which can be opened, and that is all ------------------------------------------- */

/* The node, mode 0600 and root's, with a thread that serves it. NULL: *err is negative, and the log says why. */
struct uvd_cuse_ucap *uvd_cuse_ucap_new(const char *name, const struct uvd_node_orphans *orphans, struct uvd_link *link,
					struct uvd_log *log, int *err);
dev_t uvd_cuse_ucap_rdev(const struct uvd_cuse_ucap *u);
/* The node goes. Who has it open keeps a file that stands for nothing. */
void uvd_cuse_ucap_free(struct uvd_cuse_ucap *u);

#endif
