/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine process's side of the broker. Thread safe. A question is asked on a socket of its own, as its answer can take as
 * long as the client likes.
 */
#ifndef UVD_BROKER_LINK_H
#define UVD_BROKER_LINK_H

#include <stdbool.h>
#include <sys/types.h>
#include "broker/wire.h"

struct uvd_link;

/* Takes the socket over. NULL: no memory. */
struct uvd_link *uvd_link_new(int sock);
void uvd_link_free(struct uvd_link *link);

/* To the broker itself. The result, or a negative errno. fd: NULL: there is none. Exits where the broker is gone. */
int uvd_link_node(struct uvd_link *link, unsigned int index, int *number, dev_t *rdev, int *fd);
/* The broker makes a place for a device that was not configured: its index, or a negative errno. */
int uvd_link_add(struct uvd_link *link, const struct uvd_device_config *device);
int uvd_link_ucap(struct uvd_link *link, const char *name, dev_t *rdev, int *fd);
int uvd_link_ucap_gone(struct uvd_link *link, const char *name);
int uvd_link_tell(struct uvd_link *link, enum uvd_wire_op op, unsigned int index);
int uvd_link_port(struct uvd_link *link, unsigned int index, unsigned int port, bool up);

/*
 * About a client's thread. 0 or more, or a negative errno: -ESRCH: it does not wait. Whoever asks waits for as long as the
 * broker's child does, which can be as long as the client likes: so the share that bounds the one bounds the other.
 */
int uvd_link_ask(struct uvd_link *link, const struct uvd_wire_request *r, int64_t values[2], struct uvd_wire_fds *out);

/* A loan: the socket, or a negative errno. Closing it ends the loan. */
int uvd_link_loan(struct uvd_link *link);
int uvd_link_loan_step(int loan, const struct uvd_wire_request *r, int fd, int64_t values[2], struct uvd_wire_fds *out);

#endif
