/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine process's connection to the broker. Thread safe. Each question uses a socket of its own, because a
 * client can delay the answer for as long as it likes.
 */
#ifndef UVD_BROKER_LINK_H
#define UVD_BROKER_LINK_H

#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/log.h>
#include "broker/privilege.h"
#include "broker/wire.h"

struct uvd_link;

/* Takes ownership of sock. Returns NULL if there is no memory: then sock stays the caller's. */
struct uvd_link *uvd_link_new(int sock);
void uvd_link_free(struct uvd_link *link);
/* The privileged operations by the broker. The table goes with the link. */
struct uvd_privilege *uvd_link_privilege(struct uvd_link *link);
struct uvd_link *uvd_link_of(struct uvd_privilege *p);
/* link_ops.c. Internal to the room. */
extern const struct uvd_privilege_ops uvd_link_ops;

/*
 * Requests to the broker itself. Each returns 0 or a negative errno. *number: in, the number that the node must have, -1: any;
 * out, its number. *fd, if fd is not NULL: the node's channel, which the caller owns, or -1. If the broker is gone, or its answer breaks the protocol, they end this process.
 */
int uvd_link_node(struct uvd_link *link, unsigned int index, int *number, dev_t *rdev, int *fd);
/* Asks the broker for an index for a device that was not configured. Returns the index, or a negative errno. */
int uvd_link_add(struct uvd_link *link, const struct uvd_device_config *device);
/* Tells the broker what the device's adapter has: of this port, or of all if port is 0. */
int uvd_link_tables(struct uvd_link *link, unsigned int index, unsigned int port,
		    const struct uvd_device_config *device);
int uvd_link_ucap(struct uvd_link *link, const char *name, dev_t *rdev, int *fd);
int uvd_link_ucap_gone(struct uvd_link *link, const char *name);
/* The connection manager's node. UVD_WIRE_CM_GONE, by uvd_link_tell(), ends it. */
/* How many engine processes were before this one, and what it is to log? */
int uvd_link_life(struct uvd_link *link, unsigned int *before, enum uvd_log_level *level);
int uvd_link_cm(struct uvd_link *link, dev_t *rdev, bool *aside, int *fd);
/*
 * Asks the broker to copy a plug-in into a slot: the file `name` in the folder of plug-ins, or if name is NULL that of
 * the nth --plugin. Returns 0, or a negative errno, and then *why is a memfd with the reason, or -1.
 */
int uvd_link_plugin(struct uvd_link *link, unsigned int slot, unsigned int nth, const char *name, int *why);
/* uvd_peer_owners() by the broker, for an engine process. */
int uvd_link_peer_owners(struct uvd_link *link, pid_t pid, uid_t uid, uid_t *uids, unsigned int max);
/* Has the broker read its configuration again. */
int uvd_link_reload(struct uvd_link *link, int *fd);
/* As the operations of struct uvd_privilege_ops. */
int uvd_link_queues(struct uvd_link *link, int *fd);
int uvd_link_backing(struct uvd_link *link, int *number, int *memfd);
void uvd_link_backing_gone(struct uvd_link *link, int number);
int uvd_link_ears(struct uvd_link *link, int *inotify, int *bell);
int uvd_link_watch(struct uvd_link *link, int number);
int uvd_link_tell(struct uvd_link *link, enum uvd_wire_op op, unsigned int index);
int uvd_link_port(struct uvd_link *link, unsigned int index, unsigned int port, bool up);
int uvd_link_counters(struct uvd_link *link, unsigned int index, unsigned int port,
		      const uint64_t values[UVD_PORT_COUNTERS]);

/*
 * Asks a question about a client's thread. Returns 0 or more, or a negative errno; -ESRCH: the thread does not wait
 * in a call. The calling thread waits for as long as the broker's child does, which can be as long as the client
 * likes: so the limit on waiting calls also bounds the number of children.
 */
int uvd_link_ask(struct uvd_link *link, const struct uvd_wire_request *r, int64_t values[2], struct uvd_wire_fds *out);

/*
 * As uvd_sockets_in_use(), for all processes but this one. num: from 1 to UVD_WIRE_SOCKETS_MAX. *cpu_ns: the processor time that
 * the broker's child has used.
 */
int uvd_link_sockets(struct uvd_link *link, const uint64_t *inos, unsigned int num, bool *used, uint64_t *cpu_ns);

/*
 * Starts a loan of the thread. Returns its socket, which the caller owns, with the pid of its process in *child if that is not NULL, or a negative errno; -EAGAIN: the thread's users
 * have their share of loans, or no more are possible now. Closing the socket ends the loan. The other end is closed when the
 * broker has reaped the loan's process.
 */
int uvd_link_loan(struct uvd_link *link, pid_t tid, pid_t *child);
int uvd_link_loan_step(int loan, const struct uvd_wire_request *r, int fd, int64_t values[2], struct uvd_wire_fds *out);

#endif
