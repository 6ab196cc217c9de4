/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands: ucma_cmd_table[] of ucma.c, with the sizes that its functions check. */
#include <stddef.h>
#include "cm/command.h"

#define IN(type) .in = sizeof(struct rdma_ucm_##type)
#define RESPONSE(type, least) .response = offsetof(struct rdma_ucm_##type, response), .least_out = (least)

static const struct cm_row rows[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { "CREATE_ID", IN(create_id), RESPONSE(create_id, 4),
					 .check = cm_create_id_check, .act = cm_create_id, .done = cm_create_id_done,
					 .undo = cm_create_id_undo },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { "DESTROY_ID", IN(destroy_id), RESPONSE(destroy_id, 4), .act = cm_destroy_id },
	[RDMA_USER_CM_CMD_BIND_IP] = { "BIND_IP", IN(bind_ip), .check = cm_bind_ip_check, .act = cm_bind_ip },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { "RESOLVE_IP", IN(resolve_ip), .check = cm_resolve_ip_check,
					  .act = cm_resolve_ip },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { "RESOLVE_ROUTE", IN(resolve_route), .act = cm_resolve_route },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { "QUERY_ROUTE", IN(query),
					   RESPONSE(query, offsetof(struct rdma_ucm_query_route_resp, ibdev_index)),
					   .act = cm_query_route },
	[RDMA_USER_CM_CMD_CONNECT] = { "CONNECT", IN(connect), .least_in = offsetof(struct rdma_ucm_connect, ece),
				       .check = cm_connect_check, .act = cm_connect },
	[RDMA_USER_CM_CMD_LISTEN] = { "LISTEN", IN(listen), .act = cm_listen },
	[RDMA_USER_CM_CMD_ACCEPT] = { "ACCEPT", IN(accept), .least_in = offsetof(struct rdma_ucm_accept, ece),
				      .act = cm_accept },
	[RDMA_USER_CM_CMD_REJECT] = { "REJECT", IN(reject), .check = cm_reject_check, .act = cm_reject },
	[RDMA_USER_CM_CMD_DISCONNECT] = { "DISCONNECT", IN(disconnect), .act = cm_disconnect },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { "INIT_QP_ATTR", IN(init_qp_attr),
					    RESPONSE(init_qp_attr, sizeof(struct ib_uverbs_qp_attr)),
					    .check = cm_init_qp_attr_check, .act = cm_init_qp_attr },
	/* The response as it was before it had ECE. */
	[RDMA_USER_CM_CMD_GET_EVENT] = { "GET_EVENT", IN(get_event),
					 RESPONSE(get_event, offsetof(struct rdma_ucm_event_resp, reserved)),
					 .act = cm_get_event, .done = cm_get_event_done, .undo = cm_get_event_undo },
	[RDMA_USER_CM_CMD_SET_OPTION] = { "SET_OPTION", IN(set_option), .check = cm_set_option_check,
					  .act = cm_set_option },
	[RDMA_USER_CM_CMD_NOTIFY] = { "NOTIFY", IN(notify), .act = cm_notify },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { "JOIN_IP_MCAST", IN(join_ip_mcast), RESPONSE(join_ip_mcast, 4),
					     .check = cm_join_ip_mcast_check, .act = cm_join_ip_mcast,
					     .done = cm_join_done, .undo = cm_join_undo },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { "LEAVE_MCAST", IN(destroy_id), RESPONSE(destroy_id, 4),
					   .act = cm_leave_mcast },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { "MIGRATE_ID", IN(migrate_id), RESPONSE(migrate_id, 0),
					  .check = cm_migrate_id_check, .act = cm_migrate_id },
	[RDMA_USER_CM_CMD_QUERY] = { "QUERY", IN(query), RESPONSE(query, 0), .act = cm_query },
	[RDMA_USER_CM_CMD_BIND] = { "BIND", IN(bind), .check = cm_bind_check, .act = cm_bind },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { "RESOLVE_ADDR", IN(resolve_addr), .check = cm_resolve_addr_check,
					    .act = cm_resolve_addr },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { "JOIN_MCAST", IN(join_mcast), RESPONSE(join_mcast, 4),
					  .check = cm_join_mcast_check, .act = cm_join_mcast, .done = cm_join_done,
					  .undo = cm_join_undo },
};

const struct cm_row *cm_row(uint32_t number, bool *known)
{
	*known = number < sizeof(rows) / sizeof(rows[0]);
	return *known && rows[number].name ? &rows[number] : NULL;
}
