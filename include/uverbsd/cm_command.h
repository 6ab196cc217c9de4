/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of /dev/infiniband/rdma_cm, as filters see them. One list makes the names that users give, the options of
 * the filters `error` and `delay`, and a check of the commands that the connection manager carries out.
 *
 * X(command as in RDMA_USER_CM_CMD_..., name, kind)
 *
 * kind: END: ends an object. EVENT: reports an event, and waits until there is one. CALL: any other.
 */
#ifndef UVERBSD_CM_COMMAND_H
#define UVERBSD_CM_COMMAND_H

/* clang-format off */
#define UVD_CM_COMMANDS(X) \
	X(CREATE_ID, create_id, CALL) \
	X(DESTROY_ID, destroy_id, END) \
	X(BIND_IP, bind_ip, CALL) \
	X(RESOLVE_IP, resolve_ip, CALL) \
	X(RESOLVE_ROUTE, resolve_route, CALL) \
	X(QUERY_ROUTE, query_route, CALL) \
	X(CONNECT, connect, CALL) \
	X(LISTEN, listen, CALL) \
	X(ACCEPT, accept, CALL) \
	X(REJECT, reject, CALL) \
	X(DISCONNECT, disconnect, CALL) \
	X(INIT_QP_ATTR, init_qp_attr, CALL) \
	X(GET_EVENT, get_event, EVENT) \
	X(SET_OPTION, set_option, CALL) \
	X(NOTIFY, notify, CALL) \
	X(JOIN_IP_MCAST, join_ip_mcast, CALL) \
	X(LEAVE_MCAST, leave_mcast, END) \
	X(MIGRATE_ID, migrate_id, CALL) \
	X(QUERY, query, CALL) \
	X(BIND, bind, CALL) \
	X(RESOLVE_ADDR, resolve_addr, CALL) \
	X(JOIN_MCAST, join_mcast, CALL)
/* clang-format on */

/* A command that succeeds has one of these outcomes in the place of its usual one. It ignores those that are not its own. */
enum uvd_cm_outcome {
	UVD_CM_USUAL,
	/*
	 * Of CONNECT: no message reaches the peer. The client gets the event REJECTED with `status`, a reason of InfiniBand
	 * 12.6.7.2; or UNREACHABLE with `status`, a negative errno. REJECTED of a datagram identifier is what it is for a real
	 * one: UNREACHABLE with the status of a refused service id request.
	 */
	UVD_CM_REJECTED,
	UVD_CM_UNREACHABLE,
	/* The client gets this event with `status`, a negative errno: of RESOLVE_ADDR and RESOLVE_IP, and of RESOLVE_ROUTE. */
	UVD_CM_ADDR_ERROR,
	UVD_CM_ROUTE_ERROR,
};

/* A command that is about to be carried out. The struct can grow at its end. */
struct uvd_cm_call {
	unsigned int number; /* RDMA_USER_CM_CMD_..., of rdma/rdma_user_cm.h */
	const char *name; /* "connect" */
	/* The filter may set these: */
	enum uvd_cm_outcome outcome;
	int status;
};

#endif
