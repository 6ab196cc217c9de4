/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * User Capabilities, which the kernel has since 6.15 (drivers/infiniband/core/ucaps.c): nodes in /dev/infiniband. A
 * client that has one open proves that it may open it. GET_CONTEXT takes descriptors of such nodes, and the
 * context may use the features that they stand for.
 *
 * An engine knows the capabilities by name. Devices create and remove them, and the node exists while a device has the
 * capability. A name keeps its bit for the life of the engine, so a context never gets another capability in its place.
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

/* A node, and what fstat() says of a client's open of it. */
struct uvd_ucap_node {
	void *priv; /* the transport's */
	dev_t rdev; /* the number of the character device; 0: the node is another file, which dev and ino name */
	dev_t dev;
	ino_t ino;
};

/*
 * The transport's part: the nodes. Both are called without a lock, on any thread that creates or removes a capability.
 * The calls for one name come one after the other; those for different names can be concurrent.
 */
struct uvd_ucap_ops {
	/* Makes the node and fills in *node, which is zeroed. bit: the name's, forever. Returns 0 or a negative errno. */
	int (*create)(struct uvd_engine *engine, const char *name, unsigned int bit, struct uvd_ucap_node *node);
	void (*remove)(struct uvd_engine *engine, const struct uvd_ucap_node *node);
};

struct uvd_ucap {
	char name[UVD_UCAP_NAME];
	unsigned int refs; /* 0: the capability does not exist now; its name stays */
	bool busy; /* the transport is making or removing the node: other threads wait until it has. refs is 0 */
	struct uvd_ucap_node node; /* valid while refs is not 0 */
};

struct uvd_ucaps {
	const struct uvd_ucap_ops *ops; /* the transport's, set before the first device; NULL: there are no nodes */
	pthread_mutex_t lock; /* everything below, and the devices' ucap_refs */
	pthread_cond_t changed; /* an entry is no longer busy */
	struct uvd_ucap list[UVD_MAX_UCAPS]; /* index: the bit */
	unsigned int num;
};

void uvd_ucaps_init(struct uvd_ucaps *ucaps);
void uvd_ucaps_fini(struct uvd_ucaps *ucaps);

/*
 * ib_create_ucap(), ib_remove_ucap(): take and put a reference to the capability of that name. uvd_ucap_get() returns
 * its bit; -EINVAL: not a valid name; -ENOSPC: too many names; or the transport's errno for the node.
 */
int uvd_ucap_get(struct uvd_engine *engine, const char *name);
void uvd_ucap_put(struct uvd_engine *engine, unsigned int bit);

/*
 * ib_get_ucaps(): sets *mask to the capabilities whose nodes the caller has open as these descriptors. A number may
 * come twice. Returns 0; -EBADF: not open, or opened with O_PATH; -EINVAL: another file. The first bad descriptor
 * decides.
 */
int uvd_ucaps_of_fds(struct uvd_engine *engine, struct uvd_caller *c, const int32_t *fds, unsigned int num,
		     uint64_t *mask);

#endif
