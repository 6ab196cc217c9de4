/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* QUERY_GID_TABLE and QUERY_GID_ENTRY. Their rows are in device.c. */
#include "objects/internal.h"

struct gid_args {
	uint64_t entry_size;
	uint64_t max_entries;
	uint32_t port_num, gid_index;
};

static int check_flags(struct uvd_req *req, uint16_t id)
{
	uint64_t flags;

	return uvd_attr_flags(req, id, 0, &flags);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int decode_table(struct uvd_req *req)
{
	struct gid_args *args = uvd_args(req, struct gid_args);
	const struct uvd_attr *entries;
	int ret;

	ret = check_flags(req, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, UINT64_MAX, &args->entry_size);
	if (ret)
		return ret;
	if (!args->entry_size)
		return uvd_bad(req, -EINVAL, "entry_size", 0);
	entries = uvd_attr_get(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	if (!entries)
		return -ENOENT;
	if (!entries->len || entries->len % args->entry_size)
		return uvd_bad(req, -EINVAL, "resp_entries", entries->len);
	args->max_entries = entries->len / args->entry_size;
	return 0;
}

/* Writes one entry to `to`, which is zeroed: cut, or zero-extended, to the client's entry size. */
static void put_entry(uint8_t *to, size_t entry_size, const struct ibv_gid_entry *gid)
{
	struct ib_uverbs_gid_entry entry = {
		.gid_index = gid->gid_index,
		.port_num = gid->port_num,
		.gid_type = gid->gid_type,
		.netdev_ifindex = gid->ndev_ifindex,
	};

	memcpy(&entry.gid, &gid->gid, sizeof(entry.gid));
	memcpy(to, &entry, entry_size < sizeof(entry) ? entry_size : sizeof(entry));
}

static int query_table(struct uvd_req *req)
{
	struct gid_args *args = uvd_args(req, struct gid_args);
	uint8_t *entries = uvd_req_alloc(req, args->max_entries * args->entry_size);
	struct ibv_gid_entry gid;
	unsigned int port, index;
	uint64_t num = 0;
	int ret;

	if (!entries)
		return -ENOMEM;
	for (port = 1; port <= req->dev->config.num_ports; port++) {
		for (index = 0;; index++) {
			ret = uvd_ops(req)->query_gid(&req->dev->ib, port, index, &gid);
			if (ret == -ENODATA)
				continue;
			if (ret)
				break; /* beyond the table */
			if (num == args->max_entries)
				return uvd_bad(req, -EINVAL, "max_entries", args->max_entries);
			put_entry(entries + num++ * args->entry_size, args->entry_size, &gid);
		}
	}
	ret = uvd_attr_copy_to_bytes(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries, num * args->entry_size);
	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &num);
	return ret;
}

/* ---- one entry --------------------------------------------------------------------------------------------------- */

static int decode_entry(struct uvd_req *req)
{
	struct gid_args *args = uvd_args(req, struct gid_args);
	uint64_t port, index;
	int ret;

	ret = check_flags(req, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, UINT32_MAX, &port);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, UINT32_MAX, &index);
	if (ret)
		return ret;
	args->port_num = port;
	args->gid_index = index;
	return 0;
}

static int query_entry(struct uvd_req *req)
{
	struct gid_args *args = uvd_args(req, struct gid_args);
	struct ib_uverbs_gid_entry entry = {};
	struct ibv_gid_entry gid;
	int ret;

	if (!uvd_port_valid(req->dev, args->port_num))
		return uvd_bad(req, -EINVAL, "port_num", args->port_num);
	ret = uvd_ops(req)->query_gid(&req->dev->ib, args->port_num, args->gid_index, &gid);
	if (ret)
		/* Do not log an empty slot: libibverbs meets them when it walks the table. */
		return ret == -ENODATA ? ret : uvd_bad(req, ret, "gid_index", args->gid_index);
	put_entry((uint8_t *)&entry, sizeof(entry), &gid);
	return uvd_attr_copy_to_or_zero(req, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry);
}

const uvd_step uvd_query_gid_table_steps[] = { decode_table, uvd_step_context, query_table, NULL };
const uvd_step uvd_query_gid_entry_steps[] = { decode_entry, uvd_step_context, query_entry, NULL };
