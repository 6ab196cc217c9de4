/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands: ucma_cmd_table[] of ucma.c, with the sizes that its functions check. The fields are in src/call. */
#include <stddef.h>
#include <uverbsd/abi.h>
#include <uverbsd/cm_command.h>
#include "cm/command.h"

#define STRUCT(type) .in = sizeof(struct rdma_ucm_##type)
/* A struct that has the number of its identifier. */
#define IN(type) STRUCT(type), .names_id = true, .id = offsetof(struct rdma_ucm_##type, id)
#define RESPONSE(type, longest, least) \
	.response = offsetof(struct rdma_ucm_##type, response), .out = sizeof(struct rdma_ucm_##longest), \
	.least_out = (least)
/* A command that filters do not know has no such number. */
#define NUMBER(command, name, kind) NUMBER_##command = RDMA_USER_CM_CMD_##command,
enum { UVD_CM_COMMANDS(NUMBER) };
#define ROW(of, command, ...) \
	[NUMBER_##command] = { .object = UVERBSD_OBJECT_CM_##of, .name = CM_PREFIX #command, __VA_ARGS__ }

static const struct cm_row rows[] = {
	ROW(ID, CREATE_ID, STRUCT(create_id), RESPONSE(create_id, create_id_resp, 4), .check = cm_create_id_check,
	    .act = cm_create_id, .done = cm_create_id_done, .undo = cm_create_id_undo),
	ROW(ID, DESTROY_ID, IN(destroy_id), RESPONSE(destroy_id, destroy_id_resp, 4), .act = cm_destroy_id),
	ROW(ID, BIND_IP, IN(bind_ip), .check = cm_bind_ip_check, .act = cm_bind_ip),
	ROW(ID, RESOLVE_IP, IN(resolve_ip), .check = cm_resolve_ip_check, .act = cm_resolve_ip),
	ROW(ID, RESOLVE_ROUTE, IN(resolve_route), .act = cm_resolve_route),
	ROW(ID, QUERY_ROUTE, IN(query),
	    RESPONSE(query, query_route_resp, offsetof(struct rdma_ucm_query_route_resp, ibdev_index)),
	    .act = cm_query_route),
	ROW(ID, CONNECT, IN(connect), .least_in = offsetof(struct rdma_ucm_connect, ece), .check = cm_connect_check,
	    .act = cm_connect),
	ROW(ID, LISTEN, IN(listen), .act = cm_listen),
	ROW(ID, ACCEPT, IN(accept), .least_in = offsetof(struct rdma_ucm_accept, ece), .act = cm_accept),
	ROW(ID, REJECT, IN(reject), .check = cm_reject_check, .act = cm_reject),
	ROW(ID, DISCONNECT, IN(disconnect), .act = cm_disconnect),
	ROW(ID, INIT_QP_ATTR, IN(init_qp_attr), .response = offsetof(struct rdma_ucm_init_qp_attr, response),
	    .out = sizeof(struct ib_uverbs_qp_attr), .least_out = sizeof(struct ib_uverbs_qp_attr),
	    .check = cm_init_qp_attr_check, .act = cm_init_qp_attr),
	/* The response as it was before it had ECE. */
	ROW(ID, GET_EVENT, STRUCT(get_event),
	    RESPONSE(get_event, event_resp, offsetof(struct rdma_ucm_event_resp, reserved)), .find = cm_get_event_find,
	    .filtered_last = true, .act = cm_get_event, .done = cm_get_event_done, .undo = cm_get_event_undo),
	ROW(ID, SET_OPTION, IN(set_option), .check = cm_set_option_check, .act = cm_set_option),
	ROW(ID, NOTIFY, IN(notify), .act = cm_notify),
	ROW(MCAST, JOIN_IP_MCAST, IN(join_ip_mcast), RESPONSE(join_ip_mcast, create_id_resp, 4),
	    .check = cm_join_ip_mcast_check, .act = cm_join_ip_mcast, .done = cm_join_done, .undo = cm_join_undo),
	ROW(MCAST, LEAVE_MCAST, STRUCT(destroy_id), RESPONSE(destroy_id, destroy_id_resp, 4),
	    .find = cm_leave_mcast_find, .act = cm_leave_mcast),
	ROW(ID, MIGRATE_ID, STRUCT(migrate_id), RESPONSE(migrate_id, migrate_resp, 0), .check = cm_migrate_id_check,
	    .find = cm_migrate_id_find, .act = cm_migrate_id),
	ROW(ID, QUERY, IN(query), .response = offsetof(struct rdma_ucm_query, response), .out = CM_MOST_OUT,
	    .act = cm_query),
	ROW(ID, BIND, IN(bind), .check = cm_bind_check, .act = cm_bind),
	ROW(ID, RESOLVE_ADDR, IN(resolve_addr), .check = cm_resolve_addr_check, .act = cm_resolve_addr),
	ROW(MCAST, JOIN_MCAST, IN(join_mcast), RESPONSE(join_mcast, create_id_resp, 4), .check = cm_join_mcast_check,
	    .act = cm_join_mcast, .done = cm_join_done, .undo = cm_join_undo),
};

const struct cm_row *cm_row(uint32_t number, bool *known)
{
	*known = number < sizeof(rows) / sizeof(rows[0]);
	return *known && rows[number].name ? &rows[number] : NULL;
}
