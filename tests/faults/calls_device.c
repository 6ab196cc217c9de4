/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: the device, its context, its event files. */
#include <uverbsd/abi.h>
#include "faults.h"

static void get_context(struct call *c)
{
	CALL_IN(c, struct ib_uverbs_get_context, 0);
	CALL_OUT(c, struct ib_uverbs_get_context_resp);
}

static void get_context_ioctl(struct call *c)
{
	uv_attr_out(&c->tree, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &c->out[1], sizeof(uint64_t));
}

static void query_context(struct call *c)
{
	call_context(c);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, &c->out[1], sizeof(uint64_t));
}

static void query_device(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_query_device, 0);
	CALL_OUT(c, struct ib_uverbs_query_device_resp);
}

static void query_device_ex(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_ex_query_device, 0);
	CALL_OUT(c, struct ib_uverbs_ex_query_device_resp);
}

static void query_port(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_query_port, .port_num = 1);
	CALL_OUT(c, struct ib_uverbs_query_port_resp);
}

static void query_port_ioctl(struct call *c)
{
	call_context(c);
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_PORT_RESP, c->out, sizeof(struct ib_uverbs_query_port_resp_ex));
}

static void query_gid_table(struct call *c)
{
	call_context(c);
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, sizeof(struct ib_uverbs_gid_entry));
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, c->data,
		    4 * sizeof(struct ib_uverbs_gid_entry));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, c->out, sizeof(uint64_t));
}

static void query_gid_entry(struct call *c)
{
	call_context(c);
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1);
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 0);
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, c->data, sizeof(struct ib_uverbs_gid_entry));
}

static void info_handles(struct call *c)
{
	call_context(c);
	call_pd(c);
	uv_attr_const(&c->tree, UVERBS_ATTR_INFO_OBJECT_ID, UVERBS_OBJECT_PD);
	uv_attr_out(&c->tree, UVERBS_ATTR_INFO_TOTAL_HANDLES, c->out, sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_INFO_HANDLES_LIST, c->data, 16 * sizeof(uint32_t));
}

/* Every other command is sent by INVOKE_WRITE as well (test_calls.c). */
static void invoke_write(struct call *c)
{
	call_context(c);
	uv_attr_const(&c->tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_ALLOC_PD);
	uv_attr_in(&c->tree, UVERBS_ATTR_CORE_IN, c->data, sizeof(struct ib_uverbs_alloc_pd));
	uv_attr_out(&c->tree, UVERBS_ATTR_CORE_OUT, c->out, sizeof(struct ib_uverbs_alloc_pd_resp));
}

static void create_comp_channel(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_create_comp_channel, 0);
	CALL_OUT(c, struct ib_uverbs_create_comp_channel_resp);
}

static void async_event_alloc(struct call *c)
{
	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
}

static void tree_query(struct call *c)
{
	uint32_t first = 0, row_size = sizeof(struct uverbsd_tree_row);

	call_context(c);
	uv_attr_in(&c->tree, UVERBSD_ATTR_TREE_QUERY_FIRST, &first, sizeof(first));
	uv_attr_in(&c->tree, UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, &row_size, sizeof(row_size));
	uv_attr_out(&c->tree, UVERBSD_ATTR_TREE_QUERY_ROWS, c->data, sizeof(c->data));
	uv_attr_out(&c->tree, UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBSD_ATTR_TREE_QUERY_TOTAL, &c->out[1], sizeof(uint32_t));
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_CMD_GET_CONTEXT", get_context },
	{ "UVERBS_METHOD_GET_CONTEXT", get_context_ioctl },
	{ "UVERBS_METHOD_QUERY_CONTEXT", query_context, .only = "null" },
	{ "UVERBS_METHOD_QUERY_CONTEXT", query_context, .only = "soft", .result = -EOPNOTSUPP },
	{ "IB_USER_VERBS_CMD_QUERY_DEVICE", query_device },
	{ "IB_USER_VERBS_EX_CMD_QUERY_DEVICE", query_device_ex },
	{ "IB_USER_VERBS_CMD_QUERY_PORT", query_port },
	{ "UVERBS_METHOD_QUERY_PORT", query_port_ioctl },
	{ "UVERBS_METHOD_QUERY_GID_TABLE", query_gid_table, .tolerant = true },
	{ "UVERBS_METHOD_QUERY_GID_ENTRY", query_gid_entry },
	{ "UVERBS_METHOD_INFO_HANDLES", info_handles },
	{ "UVERBS_METHOD_INVOKE_WRITE", invoke_write },
	{ "UVERBSD_METHOD_TREE_QUERY", tree_query },
	{ "UVERBSD_METHOD_TREE_ROLES", tree_query },
	{ "IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL", create_comp_channel },
	{ "UVERBS_METHOD_ASYNC_EVENT_ALLOC", async_event_alloc },
};

CALL_GROUP(calls_device, entries);
