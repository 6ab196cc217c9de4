/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The plug-in `soft`, which is part of the daemon. Its data for an engine is the network of all soft devices. */
#ifndef UVD_SOFT_FABRIC_H
#define UVD_SOFT_FABRIC_H

#include <stdint.h>
#include <uverbsd/plugin.h>

struct uvd_capture;
struct uvd_fabric;

/* Brings the backend uvd_backend_soft. init() creates a fabric, exit() frees it. */
extern const struct uvd_plugin uvd_plugin_soft;

/*
 * Creates the network of the soft devices of one engine, InfiniBand and Ethernet. The log must outlive it. Returns NULL
 * if there is no memory.
 */
struct uvd_fabric *uvd_fabric_new(struct uvd_log *log);
/*
 * Sets how many of a user's threads may work at the same time, each for another QP. Threads that are held up in a
 * client's memory do not count. The default is 1. Call it before the first device is opened.
 */
void uvd_fabric_set_threads(struct uvd_fabric *fabric, unsigned int most);
/* QP numbers begin with this one, and not with 2. Call it before the first QP is made. */
void uvd_fabric_set_first_qpn(struct uvd_fabric *fabric, uint32_t qpn);
/* The same with a random number, so that engines hardly have the same ones. */
void uvd_fabric_set_random_qpn(struct uvd_fabric *fabric);
/*
 * Captures all traffic. Call it before uvd_fabric_add_wire(), and before the first QP is made. The capture must outlive the network; it may end before.
 */
void uvd_fabric_set_capture(struct uvd_fabric *fabric, struct uvd_capture *capture);
/*
 * Gives the network a socket on the wire, as uvd_socket_open_fd() has opened it: QPs then reach addresses beyond this engine. Takes over
 * the descriptor if it succeeds. Call it before the first device is opened, once for each address, 16 times at most. Returns 0 or a
 * negative errno.
 */
int uvd_fabric_add_wire(struct uvd_fabric *fabric, int fd);
/*
 * Why packets that arrive on the wire are dropped: stores how many of the i-th socket were, for reason number `reason`, from 0 on. Returns
 * the reason's name ("too short", "no such QP"), or NULL if there is none of that number.
 */
const char *uvd_fabric_wire_drops(const struct uvd_fabric *fabric, unsigned int i, unsigned int reason,
				  uint64_t *packets);
/*
 * Frees the network after its last device was closed. If a thread is still blocked in a client's memory, it is leaked.
 * NULL is allowed.
 */
void uvd_fabric_free(struct uvd_fabric *fabric);

#endif
