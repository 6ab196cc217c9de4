/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups of a QP: ATTACH_MCAST and DETACH_MCAST. Their rows are in qp.c. */
#include "objects/internal.h"

struct uvd_mcast {
	struct uvd_mcast *next;
	union ibv_gid gid;
	uint16_t lid;
};

enum { LID_MULTICAST_BASE = 0xc000, LID_PERMISSIVE = 0xffff };

/*
 * Is the QP on Ethernet, where a group needs no multicast LID? If it is bound to a port, that port decides; else one
 * Ethernet port of the device is enough.
 */
static bool on_ethernet(const struct uvd_device *dev, struct uvd_qp *qp)
{
	struct uvd_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};
	bool bound = dev->ib.ops->query_qp && !dev->ib.ops->query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT, &init) &&
		     attr.qp_state >= IBV_QPS_INIT && uvd_port_valid(dev, attr.port_num);

	if (bound)
		return !uvd_port_is_ib(dev, attr.port_num);
	for (unsigned int port = 1; port <= dev->config.num_ports; port++)
		if (!uvd_port_is_ib(dev, port))
			return true;
	return false;
}

static bool mcast_valid(const struct uvd_device *dev, struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!uvd_gid_is_multicast(gid) || qp->qp_type != IBV_QPT_UD)
		return false;
	return (lid >= LID_MULTICAST_BASE && lid != LID_PERMISSIVE) || on_ethernet(dev, qp);
}

/* Returns the link that points to the entry, or the NULL link at the list's end. Caller holds file->mcast_lock. */
static struct uvd_mcast **mcast_find(struct uvd_uobject *uobj, const uint8_t *gid, uint16_t lid)
{
	struct uvd_mcast **p = &uobj->mcast;

	while (*p && ((*p)->lid != lid || memcmp((*p)->gid.raw, gid, sizeof((*p)->gid.raw))))
		p = &(*p)->next;
	return p;
}

/* Attaching the same group again returns 0 without a check of the group (qp-15). Caller holds file->mcast_lock. */
static int attach_locked(struct uvd_req *req, struct uvd_uobject *uobj, const struct ib_uverbs_attach_mcast *cmd)
{
	struct uvd_mcast **p = mcast_find(uobj, cmd->gid, cmd->mlid), *entry;
	struct uvd_qp *qp = uobj->object;
	int ret;

	if (*p)
		return 0;
	ret = uvd_uobject_charge(uobj, sizeof(*entry));
	if (ret)
		return ret;
	entry = uvd_zalloc(sizeof(*entry));
	if (!entry) {
		uvd_uobject_uncharge(uobj, sizeof(*entry));
		return -ENOMEM;
	}
	memcpy(entry->gid.raw, cmd->gid, sizeof(entry->gid.raw));
	entry->lid = cmd->mlid;
	ret = mcast_valid(req->dev, qp, &entry->gid, entry->lid)
		      ? uvd_ops(req)->attach_mcast(qp, &entry->gid, entry->lid)
		      : uvd_bad(req, -EINVAL, "mlid", cmd->mlid);
	if (ret) {
		free(entry);
		uvd_uobject_uncharge(uobj, sizeof(*entry));
		return ret;
	}
	atomic_fetch_add(&qp->usecnt, 1);
	*p = entry;
	return 0;
}

/*
 * Removes the entry even if the backend fails to detach: the QP's usecnt then stays raised, so the QP cannot be
 * destroyed until its file is closed. Unlike ib_detach_mcast(), this does not check the group again: that could fail
 * for a QP that has been bound to a port meanwhile. Caller holds file->mcast_lock, or has the QP locked exclusively.
 */
static int detach_entry(const struct uvd_device *dev, struct uvd_uobject *uobj, struct uvd_mcast **p)
{
	struct uvd_qp *qp = uobj->object;
	struct uvd_mcast *entry = *p;
	int ret = dev->ib.ops->detach_mcast(qp, &entry->gid, entry->lid);

	*p = entry->next;
	if (!ret)
		atomic_fetch_sub(&qp->usecnt, 1);
	free(entry);
	uvd_uobject_uncharge(uobj, sizeof(*entry));
	return ret;
}

void uvd_qp_detach_all(struct uvd_uobject *uobj)
{
	while (uobj->mcast)
		detach_entry(uobj->file->dev, uobj, &uobj->mcast);
}

static int attach_mcast(struct uvd_req *req)
{
	struct ib_uverbs_attach_mcast cmd;
	struct uvd_uobject *uobj;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_get(req, UVERBS_OBJECT_QP, cmd.qp_handle, UVD_UOBJ_READ, &uobj);
	if (ret)
		return ret;
	pthread_mutex_lock(&req->file->mcast_lock);
	ret = attach_locked(req, uobj, &cmd);
	pthread_mutex_unlock(&req->file->mcast_lock);
	return ret;
}

static int detach_mcast(struct uvd_req *req)
{
	struct ib_uverbs_detach_mcast cmd;
	struct uvd_uobject *uobj;
	struct uvd_mcast **p;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_get(req, UVERBS_OBJECT_QP, cmd.qp_handle, UVD_UOBJ_READ, &uobj);
	if (ret)
		return ret;
	pthread_mutex_lock(&req->file->mcast_lock);
	p = mcast_find(uobj, cmd.gid, cmd.mlid);
	ret = *p ? detach_entry(req->dev, uobj, p) : uvd_bad(req, -EINVAL, "mlid", cmd.mlid);
	pthread_mutex_unlock(&req->file->mcast_lock);
	return ret;
}

const uvd_step uvd_attach_mcast_steps[] = { attach_mcast, NULL };
const uvd_step uvd_detach_mcast_steps[] = { detach_mcast, NULL };
