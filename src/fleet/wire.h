/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets of an engine on the wire (--wire), and what they can carry. Part of fleet.h. */
#ifndef UVD_FLEET_WIRE_H
#define UVD_FLEET_WIRE_H

#include <jansson.h>
#include "core/core.h"
#include "options/options.h"

struct uvd_fabric;

struct uvd_fleet_wire {
	struct uvd_wire_options options; /* the addresses; num 0: there is no wire */
	struct uvd_fleet_wire_socket {
		int fd; /* -1: the soft engine has it */
		uint32_t link_mtu; /* bytes of an IP packet on its interface */
		uint32_t rcvbuf; /* bytes of the receive buffer, as the kernel counts them */
	} sockets[UVD_MAX_WIRES];
	/* The ports' MTUs: the one that all interfaces carry, and the one that the receive buffers are large enough for, too. */
	enum ibv_mtu largest_mtu, mtu;
	struct uvd_fabric *fabric; /* of the soft engine that has the sockets, or NULL */
};

/* Opens a socket for each address. Returns 0 or a negative errno, logged: then none is open. */
int uvd_fleet_wire_open(const struct uvd_wire_options *options, int fds[UVD_MAX_WIRES], struct uvd_log *log);
/*
 * Takes the sockets over, and looks what they carry. Call it in the network namespace where they were opened. Returns 0 or a
 * negative errno, logged: then they stay the caller's.
 */
int uvd_fleet_wire_init(struct uvd_fleet_wire *w, const struct uvd_wire_options *options, const int *fds,
			struct uvd_log *log);
/* Both, in one process: its log has the reason of a failure, after which the process ends. */
int uvd_fleet_wire_start(struct uvd_fleet_wire *w, const struct uvd_wire_options *options, struct uvd_log *log);
/*
 * Gives the sockets to the soft engine of `plugins`, and QPs numbers that begin at a random one. Call it before the first device
 * is made. Returns 0 or a negative errno, logged.
 */
int uvd_fleet_wire_give(struct uvd_fleet_wire *w, struct uvd_plugins *plugins, struct uvd_log *log);
/* Closes the sockets that the soft engine does not have. */
void uvd_fleet_wire_close(struct uvd_fleet_wire *w);
/* Sets the active MTU of a device that is on the wire: the wire's, or the one that was configured, if it is carried. */
void uvd_fleet_wire_set_mtu(const struct uvd_fleet_wire *w, struct uvd_device_config *config, struct uvd_log *log);
/* Returns the part of the answer to `status` for the wire: an array, empty without a wire. */
json_t *uvd_fleet_wire_status(const struct uvd_fleet_wire *w);
/* Returns the largest active MTU for an interface and a receive buffer. */
enum ibv_mtu uvd_fleet_wire_mtu(uint32_t link_mtu, uint32_t rcvbuf, bool is_ipv4);

#endif
