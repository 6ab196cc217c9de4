/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks that the verbs of several objects share. */
#include "objects/internal.h"

int uvd_step_context(struct uvd_req *req)
{
	if (atomic_load(&req->dev->gone))
		return -EIO;
	if (!atomic_load(&req->file->context))
		return uvd_bad(req, -EINVAL, "context", 0);
	return 0;
}

int uvd_req_object(struct uvd_req *req, uint16_t object, uint32_t handle, void *out)
{
	struct uvd_uobject *uobj;
	int ret = uvd_req_get(req, object, handle, UVD_UOBJ_READ, &uobj);

	if (!ret)
		*(void **)out = uobj->object;
	return ret;
}

int uvd_check_range_of(struct uvd_req *req, const char *field, uint64_t value, uint64_t from, uint64_t to)
{
	if (value >= from && value <= to)
		return 0;
	return uvd_refuse(req, -EINVAL, &uvd_why(RANGE, { .word = field }, { value }, { from }, { to }));
}

bool uvd_req_is_filtered(struct uvd_req *req)
{
	struct uvd_filter_chain *chain = uvd_filters_get(&req->dev->filters);

	if (chain)
		uvd_filter_chain_put(chain);
	return chain;
}

int uvd_missing(struct uvd_req *req, int err, const char *attr)
{
	return uvd_refuse(req, err, &uvd_why(ATTR_MISSING, { .word = attr }));
}

int uvd_refused_range(struct uvd_req *req, int err, const char *field, uint64_t value, uint64_t from, uint64_t to)
{
	if (err != -EINVAL || req->has_why || req->bad_field || !uvd_check_range_of(req, field, value, from, to))
		uvd_refused(req, err);
	return err;
}

/* Does the port require a GRH? RoCE always does; for IB the backend says (RDMA_CORE_PORT_IB_GRH_REQUIRED). */
static bool grh_required(struct uvd_req *req, uint8_t port)
{
	struct ibv_port_attr attr = {};

	if (!uvd_port_is_ib(req->dev, port))
		return true;
	return !uvd_ops(req)->query_port(&req->dev->ib, port, &attr) && (attr.flags & IBV_QPF_GRH_REQUIRED);
}

int uvd_check_av(struct uvd_req *req, const char *av, const struct ibv_ah_attr *attr)
{
	struct ibv_gid_entry gid;
	int ret;

	ret = uvd_check_range_of(req, "port_num", attr->port_num, 1, req->dev->config.num_ports);
	if (ret)
		return ret;
	if (!attr->is_global)
		return grh_required(req, attr->port_num)
			       ? uvd_refuse(req, -EINVAL, &uvd_why(ADDRESS_GRH, { .word = av }, { attr->port_num }))
			       : 0;
	ret = uvd_ops(req)->query_gid(&req->dev->ib, attr->port_num, attr->grh.sgid_index, &gid);
	if (ret)
		return uvd_refuse(req, ret,
				  &uvd_why(ADDRESS_GID, { .word = av }, { attr->port_num }, { attr->grh.sgid_index }));
	return uvd_req_allow_gid(req, attr, &gid.gid);
}
