/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups of a QP: ATTACH_MCAST and DETACH_MCAST. Their rows are in qp.c. */
#include "account/account.h"
#include "objects/internal.h"
#include "util/util.h"

/* Counts the attachments of one user to one group: a device has few places for QPs in each group. */
struct uvd_mcast_user {
	struct uvd_mcast_user *next; /* in its bucket of the device, under the device's mcast_lock */
	uid_t person;
	union ibv_gid gid;
	unsigned int num;
};

struct uvd_mcast {
	struct uvd_mcast *next;
	union ibv_gid gid;
	uint16_t lid;
	struct uvd_mcast_user *user; /* NULL: nobody is charged */
};

/* The last attachment of a user to a group can be any of them, so each is charged for the count, too. */
enum { MCAST_BYTES = sizeof(struct uvd_mcast) + sizeof(struct uvd_mcast_user) };

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

/* ---- shares: how many QPs of a user are in each group ------------------------------------------------------------ */

/* Returns the link that points to the count, or the NULL link at the end. Caller holds dev->mcast_lock. */
static struct uvd_mcast_user **mcast_user_find(struct uvd_device *dev, uid_t person, const union ibv_gid *gid)
{
	uint64_t hash = dev->mcast_seed ^ person;
	struct uvd_mcast_user **p;

	for (size_t i = 0; i < sizeof(gid->raw); i++)
		hash = (hash ^ gid->raw[i]) * UINT64_C(0x9e3779b97f4a7c15);
	for (p = &dev->mcast_users[(hash >> 32) % UVD_COUNT(dev->mcast_users)]; *p; p = &(*p)->next)
		if ((*p)->person == person && !memcmp(&(*p)->gid, gid, sizeof(*gid)))
			break;
	return p;
}

static struct uvd_mcast_user *mcast_user_new(uid_t person, const union ibv_gid *gid)
{
	struct uvd_mcast_user *user = uvd_zalloc(sizeof(*user));

	if (user) {
		user->person = person;
		user->gid = *gid;
	}
	return user;
}

/* Counts one attachment more. Returns 0, -ENOMEM, or the errno of the share or the quota, which *why names. */
static int mcast_user_add(struct uvd_file *file, struct uvd_mcast *entry, struct uvd_refusal *why)
{
	const uid_t person = uvd_account_person(file->account);
	struct uvd_mcast_user **p;
	int ret;

	if (!file->account)
		return 0;
	uvd_lock(&file->dev->mcast_lock);
	p = mcast_user_find(file->dev, person, &entry->gid);
	ret = uvd_account_check_why(file->account, UVD_RES_MEMBERS, *p ? (*p)->num : 0, 1, why);
	if (!ret && !*p)
		*p = mcast_user_new(person, &entry->gid);
	if (!ret && !*p)
		ret = -ENOMEM;
	if (!ret) {
		entry->user = *p;
		entry->user->num++;
	}
	uvd_unlock(&file->dev->mcast_lock);
	return ret;
}

static void mcast_user_drop(struct uvd_device *dev, struct uvd_mcast_user *user)
{
	struct uvd_mcast_user **p;

	if (!user)
		return;
	uvd_lock(&dev->mcast_lock);
	if (!--user->num) {
		p = mcast_user_find(dev, user->person, &user->gid);
		*p = user->next;
		free(user);
	}
	uvd_unlock(&dev->mcast_lock);
}

/* ---- attaching --------------------------------------------------------------------------------------------------- */

/* Attaches the entry, which is charged then. */
static int attach_charged(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_mcast *entry)
{
	const struct uvd_asker asker = { req->caller, req->name, false };
	struct uvd_refusal why = {};
	struct uvd_qp *qp = uobj->object;
	int ret;

	/*
	 * Others can join a group and keep it when the first member leaves. So each attachment counts as a group of its own: a
	 * user then has no more groups than attachments.
	 */
	ret = uvd_uobject_hold(uobj, &asker, UVD_RES_ATTACHMENTS, 1);
	if (ret)
		return ret;
	ret = mcast_user_add(req->file, entry, &why);
	if (ret) {
		uvd_file_over_quota(req->file, &asker, &why);
		goto release;
	}
	ret = uvd_ops(req)->attach_mcast(qp, &entry->gid, entry->lid);
	if (!ret) {
		atomic_fetch_add(&qp->usecnt, 1);
		return 0;
	}
	mcast_user_drop(req->dev, entry->user);
release:
	uvd_uobject_release_held(uobj, 1);
	return ret;
}

/* Attaching the same group again returns 0 without a check of the group (qp-15). Caller holds file->mcast_lock. */
static int attach_locked(struct uvd_req *req, struct uvd_uobject *uobj, const struct ib_uverbs_attach_mcast *cmd)
{
	struct uvd_mcast **p = mcast_find(uobj, cmd->gid, cmd->mlid), *entry;
	int ret;

	if (*p)
		return 0;
	ret = uvd_uobject_charge(uobj, MCAST_BYTES);
	if (ret)
		return ret;
	entry = uvd_zalloc(sizeof(*entry));
	if (!entry) {
		uvd_uobject_uncharge(uobj, MCAST_BYTES);
		return -ENOMEM;
	}
	memcpy(entry->gid.raw, cmd->gid, sizeof(entry->gid.raw));
	entry->lid = cmd->mlid;
	ret = mcast_valid(req->dev, uobj->object, &entry->gid, entry->lid) ? attach_charged(req, uobj, entry)
									   : uvd_bad(req, -EINVAL, "mlid", cmd->mlid);
	if (ret) {
		free(entry);
		uvd_uobject_uncharge(uobj, MCAST_BYTES);
		return ret;
	}
	*p = entry;
	return 0;
}

/*
 * Removes the entry even if the backend fails to detach: the QP's usecnt then stays raised, so the QP cannot be
 * destroyed until its file is closed, and the attachment stays charged until then. Unlike ib_detach_mcast(), this does not
 * check the group again: that could fail for a QP that has been bound to a port meanwhile. Caller holds file->mcast_lock,
 * or has the QP locked exclusively.
 */
static int detach_entry(struct uvd_device *dev, struct uvd_uobject *uobj, struct uvd_mcast **p)
{
	struct uvd_qp *qp = uobj->object;
	struct uvd_mcast *entry = *p;
	int ret = dev->ib.ops->detach_mcast(qp, &entry->gid, entry->lid);

	*p = entry->next;
	mcast_user_drop(dev, entry->user);
	if (!ret) {
		atomic_fetch_sub(&qp->usecnt, 1);
		uvd_uobject_release_held(uobj, 1);
	}
	free(entry);
	uvd_uobject_uncharge(uobj, MCAST_BYTES);
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
