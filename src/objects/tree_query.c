/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UVERBSD_OBJECT_TREE, an extension of the kernel's ABI (include/uverbsd/abi.h): a client reads the parse tree. */
#include <uverbsd/abi.h>
#include "objects/internal.h"

struct tree_args {
	uint32_t first, row_size;
	uint32_t room; /* rows that the client's memory has room for */
	uint32_t num, total;
	uint8_t *rows; /* room * row_size bytes, zeroed */
};

static int decode_tree_query(struct uvd_req *req)
{
	struct tree_args *args = uvd_args(req, struct tree_args);
	int ret = uvd_attr_copy_from(req, UVERBSD_ATTR_TREE_QUERY_FIRST, &args->first);

	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, &args->row_size);
	if (ret)
		return ret;
	if (!args->row_size)
		return uvd_bad(req, -EINVAL, "row_size", args->row_size);
	args->room = uvd_attr_get(req, UVERBSD_ATTR_TREE_QUERY_ROWS)->len / args->row_size;
	return 0;
}

static int tree_query_add(struct tree_args *args, const void *row, size_t size)
{
	if (args->total++ >= args->first && args->num < args->room)
		memcpy(args->rows + args->num++ * args->row_size, row, args->row_size < size ? args->row_size : size);
	return 0;
}

static int tree_query_add_row(void *arg, const struct uverbsd_tree_row *row)
{
	return tree_query_add(arg, row, sizeof(*row));
}

static int tree_query_add_role(void *arg, const struct uverbsd_tree_role *row)
{
	return tree_query_add(arg, row, sizeof(*row));
}

static int fill_rows(struct uvd_req *req)
{
	struct tree_args *args = uvd_args(req, struct tree_args);

	args->rows = uvd_req_alloc(req, args->room * args->row_size);
	if (!args->rows)
		return -ENOMEM;
	return uvd_tree_describe(req->tree, tree_query_add_row, args);
}

static int fill_roles(struct uvd_req *req)
{
	struct tree_args *args = uvd_args(req, struct tree_args);

	args->rows = uvd_req_alloc(req, args->room * args->row_size);
	if (!args->rows)
		return -ENOMEM;
	return uvd_tree_describe_roles(req->tree, tree_query_add_role, args);
}

static int answer_tree_query(struct uvd_req *req)
{
	struct tree_args *args = uvd_args(req, struct tree_args);
	int ret = uvd_attr_copy_to_bytes(req, UVERBSD_ATTR_TREE_QUERY_ROWS, args->rows, args->num * args->row_size);

	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, &args->num);
	return ret ? ret : uvd_attr_copy_to(req, UVERBSD_ATTR_TREE_QUERY_TOTAL, &args->total);
}

static const uvd_step tree_query_steps[] = { decode_tree_query, fill_rows, answer_tree_query, NULL };
static const uvd_step tree_roles_steps[] = { decode_tree_query, fill_roles, answer_tree_query, NULL };

static const struct uvd_attr_row tree_query_attrs[] = {
	UVD_PTR_IN(UVERBSD_ATTR_TREE_QUERY_FIRST, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT_MIN(UVERBSD_ATTR_TREE_QUERY_ROWS, 0, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBSD_ATTR_TREE_QUERY_TOTAL, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_method_row tree_methods[] = {
	UVD_METHOD(UVERBSD_METHOD_TREE_QUERY, tree_query_attrs, tree_query_steps),
	UVD_METHOD(UVERBSD_METHOD_TREE_ROLES, tree_query_attrs, tree_roles_steps),
};

const struct uvd_object_row uvd_object_tree = {
	.name = "UVERBSD_OBJECT_TREE",
	.id = UVERBSD_OBJECT_TREE,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, tree_methods),
};
