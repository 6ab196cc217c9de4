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

/* Does the port require a GRH? RoCE always does; for IB the backend says (RDMA_CORE_PORT_IB_GRH_REQUIRED). */
static bool grh_required(struct uvd_req *req, uint8_t port)
{
	struct ibv_port_attr attr = {};

	if (!uvd_port_is_ib(req->dev, port))
		return true;
	return !uvd_ops(req)->query_port(&req->dev->ib, port, &attr) && (attr.flags & IBV_QPF_GRH_REQUIRED);
}

int uvd_check_av(struct uvd_req *req, const struct ibv_ah_attr *attr)
{
	struct ibv_gid_entry gid;
	int ret;

	if (!uvd_port_valid(req->dev, attr->port_num))
		return uvd_bad(req, -EINVAL, "port_num", attr->port_num);
	if (!attr->is_global)
		return grh_required(req, attr->port_num) ? uvd_bad(req, -EINVAL, "is_global", 0) : 0;
	ret = uvd_ops(req)->query_gid(&req->dev->ib, attr->port_num, attr->grh.sgid_index, &gid);
	if (ret)
		return uvd_bad(req, ret, "sgid_index", attr->grh.sgid_index);
	return uvd_req_allow_gid(req, attr, &gid.gid);
}
