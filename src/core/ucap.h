/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * User Capabilities, as the kernel has them since 6.15 (drivers/infiniband/core/ucaps.c): a node in /dev/infiniband whose
 * only use is that somebody could open it. GET_CONTEXT takes descriptors of such nodes, and the context may do what they
 * stand for.
 *
 * An engine knows them by name; devices create and remove them, and the node is there while any device has one. A name
 * keeps its bit for the engine's life, so that a context that was given one never gets another.
 */
#ifndef UVD_UCAP_H
#define UVD_UCAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <uverbsd/config.h>

struct uvd_caller;
struct uvd_engine;

enum { UVD_MAX_UCAPS = 64 }; /* names in an engine's life */

/* How a transport shows them; called one at a time, on whichever thread makes or removes a device. */
struct uvd_ucap_ops {
	/* The node appears; *node is handed to the others. 0 or a negative errno, logged. bit: of the name, for ever. */
	int (*create)(struct uvd_engine *engine, const char *name, unsigned int bit, void **node);
	void (*remove)(struct uvd_engine *engine, void *node);
	/* Is a client's file (its fstat) an open of this node? */
	bool (*is)(void *node, const struct stat *st);
};

struct uvd_ucap {
	char name[UVD_UCAP_NAME];
	unsigned int refs; /* 0: there is no such capability now, only its name */
	void *node; /* the transport's */
};

struct uvd_ucaps {
	const struct uvd_ucap_ops *ops; /* the transport's, set before the first device; NULL: there are no nodes */
	pthread_mutex_t lock; /* all below, and the devices' ucap_refs */
	struct uvd_ucap list[UVD_MAX_UCAPS]; /* index: the bit */
	unsigned int num;
};

void uvd_ucaps_init(struct uvd_ucaps *ucaps);
void uvd_ucaps_fini(struct uvd_ucaps *ucaps);

/*
 * ib_create_ucap(), ib_remove_ucap(): one more user of that name, and one less. get() returns its bit; -EINVAL: no good name;
 * -ENOSPC: too many names; or what the transport says of its node.
 */
int uvd_ucap_get(struct uvd_engine *engine, const char *name);
void uvd_ucap_put(struct uvd_engine *engine, unsigned int bit);

/*
 * ib_get_ucaps(): the capabilities whose nodes the caller has open as these descriptors. A number may come twice. -EBADF:
 * not open, or opened with O_PATH; -EINVAL: another file; the first one that is wrong decides.
 */
int uvd_ucaps_of_fds(struct uvd_engine *engine, struct uvd_caller *c, const int32_t *fds, unsigned int num,
		     uint64_t *mask);

#endif
