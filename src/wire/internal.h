/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A socket, and addresses as the kernel has them: socket.c and batch.c share these. */
#ifndef UVD_WIRE_INTERNAL_H
#define UVD_WIRE_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "wire/socket.h"

struct uvd_socket {
	int fd;
	struct uvd_socket_address address; /* as bound: no field is 0 for a default */
	bool is_ipv4;
	atomic_bool segments; /* the kernel cuts messages into datagrams */
	uvd_socket_tap_fn *tap; /* NULL: none */
	void *tap_user;
	pthread_mutex_t tap_lock; /* held while datagrams are sent and the tap is told of them */
};

union socket_name {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Stores an address as the kernel wants it. scope: for link-local addresses of IPv6. Returns its length. */
socklen_t socket_name_of(union socket_name *name, const union ibv_gid *gid, uint16_t port, uint32_t scope);
/* Stores the GID of an address that the kernel has told: zeros if it is neither IPv4 nor IPv6. */
void socket_name_gid(const union socket_name *name, union ibv_gid *gid);
/* In both families the port has the same place. */
uint16_t socket_name_port(const union socket_name *name);

#endif
