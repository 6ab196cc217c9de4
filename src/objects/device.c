/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device object: GET_CONTEXT, QUERY_CONTEXT, and the rows of the queries in query.c and gid.c. */
#include <uverbsd/uapi_later.h>
#include "dispatch/dispatch.h"
#include "objects/internal.h"

/* Since 6.15: the distribution's headers may lack it. */
#define UVERBS_ATTR_GET_CONTEXT_FD_ARR 2

static int decode_get_context(struct uvd_req *req)
{
	struct ib_uverbs_get_context cmd;

	return uvd_core_in(req, &cmd);
}

struct get_context {
	uint64_t ucaps;
};

/*
 * Finds the User Capabilities whose nodes the client names by their file descriptors. Only the ioctl method can name
 * them. The kernel does this before the driver makes the context, too.
 */
static int enable_ucaps(struct uvd_req *req)
{
	const struct uvd_attr *attr = uvd_attr_get(req, UVERBS_ATTR_GET_CONTEXT_FD_ARR);
	int ret;

	if (!attr)
		return 0;
	if (atomic_load(&req->dev->gone))
		return -EIO;
	if (atomic_load(&req->file->context))
		return uvd_bad(req, -EINVAL, "context", 1);
	if (attr->len % sizeof(int32_t))
		return uvd_bad(req, -EINVAL, attr->row->name, attr->len);
	ret = uvd_ucaps_of_fds(req->dev->engine, req->caller, attr->copy ?: &attr->data, attr->len / sizeof(int32_t),
			       &uvd_args(req, struct get_context)->ucaps);
	return ret ? uvd_bad(req, ret, attr->row->name, attr->len) : 0;
}

static int make_context(struct uvd_req *req)
{
	const uint64_t ucaps = uvd_args(req, struct get_context)->ucaps;
	struct uvd_context *context;
	struct uvd_tree *tree;
	void **plugin_data;
	int ret;

	if (atomic_load(&req->dev->gone))
		return -EIO;
	ret = uvd_file_tree_for(req->file, ucaps, &tree);
	if (ret)
		return ret;
	context = uvd_zalloc(uvd_ops(req)->size_context);
	if (!context)
		return -ENOMEM;
	context->dev = &req->dev->ib;
	context->account = req->file->account;
	context->ucaps = ucaps;
	context->owner = req->file;
	ret = uvd_ops(req)->alloc_context(context, uvd_req_udata(req));
	if (ret) {
		free(context);
		return ret;
	}
	ret = uvd_trees_context_init(req->file->trees, context, &plugin_data);
	if (ret) {
		uvd_ops(req)->dealloc_context(context);
		free(context);
		return ret;
	}
	uvd_req_context(req, context, tree, plugin_data);
	return 0;
}

/*
 * Makes the open file's first asynchronous event file. Where the client cannot be granted an fd, it gets -2 and works
 * without events.
 */
static int new_async_file(struct uvd_req *req)
{
	struct uvd_uobject *uobj;
	int ret = uvd_req_new(req, UVERBS_OBJECT_ASYNC_EVENT, &uobj);

	if (ret)
		return ret;
	uobj->event_file = uvd_event_file_new(sizeof(struct ib_uverbs_async_event_desc), req->file->account, &ret);
	if (!uobj->event_file)
		return ret;
	uvd_req_grant(req, uobj, req->core_out.addr + offsetof(struct ib_uverbs_get_context_resp, async_fd), false,
		      true);
	return 0;
}

static int answer_get_context(struct uvd_req *req)
{
	struct ib_uverbs_get_context_resp resp = {
		.async_fd = -2,
		.num_comp_vectors = req->dev->config.num_comp_vectors,
	};

	return uvd_core_out(req, &resp);
}

/* ---- ioctl ------------------------------------------------------------------------------------------------------- */

/* Ignores -ENOENT: the client did not send this optional attribute. */
static int device_attr_optional(int ret)
{
	return ret == -ENOENT ? 0 : ret;
}

static int answer_get_context_ioctl(struct uvd_req *req)
{
	uint32_t num_comp = req->dev->config.num_comp_vectors;
	uint64_t core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	int ret;

	ret = device_attr_optional(uvd_attr_copy_to(req, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &num_comp));
	if (ret)
		return ret;
	return device_attr_optional(uvd_attr_copy_to(req, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &core_support));
}

/* Answers as GET_CONTEXT did, for a process that imports the context; only drivers with this operation support that. */
static int query_context(struct uvd_req *req)
{
	uint32_t num_comp = req->dev->config.num_comp_vectors;
	uint64_t core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	int ret;

	if (!uvd_ops(req)->query_context)
		return -EOPNOTSUPP;
	ret = device_attr_optional(uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, &num_comp));
	if (!ret)
		ret = device_attr_optional(
			uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, &core_support));
	return ret ? ret : uvd_ops(req)->query_context(atomic_load(&req->file->context));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step get_context_write_steps[] = {
	decode_get_context, make_context, new_async_file, answer_get_context, NULL,
};
static const uvd_step get_context_ioctl_steps[] = { answer_get_context_ioctl, enable_ucaps, make_context, NULL };
static const uvd_step query_context_steps[] = { uvd_step_context, query_context, NULL };
static const uvd_step invoke_write_steps[] = { uvd_step_invoke_write, NULL };
static const uvd_step info_handles_steps[] = { uvd_step_info_handles, NULL };

static const struct uvd_write_row device_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_GET_CONTEXT, UVD_WRITE_RESP | UVD_WRITE_UDATA | UVD_WRITE_NO_CONTEXT,
		  sizeof(struct ib_uverbs_get_context), sizeof(struct ib_uverbs_get_context_resp),
		  get_context_write_steps),
	UVD_WRITE(IB_USER_VERBS_CMD_QUERY_DEVICE, UVD_WRITE_RESP, sizeof(struct ib_uverbs_query_device),
		  sizeof(struct ib_uverbs_query_device_resp), uvd_query_device_steps),
	UVD_WRITE(IB_USER_VERBS_CMD_QUERY_PORT, UVD_WRITE_RESP, sizeof(struct ib_uverbs_query_port),
		  sizeof(struct ib_uverbs_query_port_resp), uvd_query_port_write_steps, UVD_OP(query_port)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, UVD_WRITE_EX | UVD_WRITE_UDATA,
		  sizeof(struct ib_uverbs_ex_query_device), sizeof(struct ib_uverbs_ex_query_device_resp),
		  uvd_query_device_ex_steps, UVD_OP(query_device)),
};

static const struct uvd_attr_row invoke_write_attrs[] = {
	UVD_PTR_IN_MIN(UVERBS_ATTR_CORE_IN, sizeof(uint32_t), 0),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_CORE_OUT, 0, 0),
	UVD_CONST_IN(UVERBS_ATTR_WRITE_CMD, UVD_MANDATORY),
	UVD_UHW(),
};

static const struct uvd_attr_row info_handles_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_INFO_OBJECT_ID, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_INFO_TOTAL_HANDLES, sizeof(uint32_t), 0),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_INFO_HANDLES_LIST, sizeof(uint32_t), 0),
};

static const struct uvd_attr_row query_port_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_QUERY_PORT_PORT_NUM, UVD_MANDATORY),
	UVD_PTR_OUT_STRUCT(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex),
			   sizeof(struct ib_uverbs_query_port_resp_ex), UVD_MANDATORY),
};

static const struct uvd_attr_row get_context_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, sizeof(uint32_t), 0),
	UVD_PTR_OUT(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, sizeof(uint64_t), 0),
	UVD_PTR_IN_MIN(UVERBS_ATTR_GET_CONTEXT_FD_ARR, sizeof(int32_t), UVD_ALLOC_AND_COPY),
	UVD_UHW(),
};

static const struct uvd_attr_row query_context_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, sizeof(uint32_t), 0),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, sizeof(uint64_t), 0),
};

static const struct uvd_attr_row query_port_speed_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_PORT_SPEED_RESP, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row query_gid_table_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row query_gid_entry_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, UVD_MANDATORY),
	UVD_PTR_OUT_STRUCT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(struct ib_uverbs_gid_entry),
			   sizeof(struct ib_uverbs_gid_entry), UVD_MANDATORY),
};

static const struct uvd_method_row device_methods[] = {
	UVD_METHOD(UVERBS_METHOD_INVOKE_WRITE, invoke_write_attrs, invoke_write_steps),
	UVD_METHOD(UVERBS_METHOD_INFO_HANDLES, info_handles_attrs, info_handles_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_PORT, query_port_attrs, uvd_query_port_ioctl_steps),
	UVD_METHOD(UVERBS_METHOD_GET_CONTEXT, get_context_attrs, get_context_ioctl_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_CONTEXT, query_context_attrs, query_context_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_GID_TABLE, query_gid_table_attrs, uvd_query_gid_table_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_GID_ENTRY, query_gid_entry_attrs, uvd_query_gid_entry_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_PORT_SPEED, query_port_speed_attrs, uvd_query_port_speed_steps),
};

const struct uvd_object_row uvd_object_device = {
	.name = "UVERBS_OBJECT_DEVICE",
	.id = UVERBS_OBJECT_DEVICE,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, device_methods),
	UVD_ROWS(writes, device_writes),
	.needs = { UVD_OP(alloc_context), UVD_OP(dealloc_context) },
};
