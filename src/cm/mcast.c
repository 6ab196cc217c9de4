/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* JOIN_MCAST, its older form JOIN_IP_MCAST, and LEAVE_MCAST. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "cm/command.h"

enum { MULTICAST_QPN = 0xffffff, FIRST_MLID = 0xc000, KERNEL_ENOTSUPP = 524 };

/* ---- the group ----------------------------------------------------------------------------------------------------- */

/* InfiniBand: the group that IPoIB has for an IPv4 address (RFC 4391, section 4), full membership, link-local. */
static void gid_of_ipoib(const union cm_addr *addr, uint8_t gid[16])
{
	static const uint8_t prefix[] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff };

	memset(gid, 0, 16);
	memcpy(gid, prefix, sizeof(prefix));
	memcpy(gid + 12, &addr->in.sin_addr, 4);
}

static void group_ah(const struct cm_id *id, const union cm_addr *addr, struct ib_uverbs_ah_attr *ah)
{
	cm_id_ah(id, ah);
	ah->is_global = 1;
	ah->grh.flow_label = 0;
	ah->grh.hop_limit = cm_id_is_ib(id) ? 0 : 64;
	if (cm_id_is_ib(id) && addr->family == AF_INET) {
		gid_of_ipoib(addr, ah->grh.dgid);
		ah->dlid = FIRST_MLID;
	} else {
		cm_addr_gid(addr, ah->grh.dgid);
	}
}

/* ---- JOIN ---------------------------------------------------------------------------------------------------------- */

int cm_join_mcast_check(struct cm_cmd *c)
{
	const struct rdma_ucm_join_mcast *in = (const void *)c->in;

	if (in->addr_size != cm_addr_size(in->addr.ss_family) || !in->addr_size)
		return cm_wrong(c, "addr_size", in->addr_size, -EINVAL);
	if (in->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return cm_wrong(c, "join_flags", in->join_flags, -EINVAL);
	return 0;
}

int cm_join_ip_mcast_check(struct cm_cmd *c)
{
	const struct rdma_ucm_join_ip_mcast *in = (const void *)c->in;
	const uint16_t family = in->addr.sin6_family;

	return family == AF_INET || family == AF_INET6 ? 0 : cm_wrong(c, "addr.sin6_family", family, -EINVAL);
}

/* rdma_join_multicast(): the errnos of a RoCE v2 port are those of cma_iboe_join_multicast(). */
static int may_join(struct cm_cmd *c, const struct cm_id *id, const union cm_addr *addr)
{
	if (id->qp_type != IBV_QPT_UD)
		return cm_wrong(c, "the identifier's type of QP", id->qp_type, -EINVAL);
	if (cm_addr_is_any(addr))
		return cm_wrong(c, "addr", 0, -EINVAL);
	if (id->state != CM_ADDR_BOUND && id->state != CM_ADDR_RESOLVED)
		return cm_wrong_state(c, id);
	if (!cm_id_is_ib(id) && addr->family == AF_INET6)
		return cm_wrong(c, "addr.sin6_family", addr->family, -KERNEL_ENOTSUPP);
	return 0;
}

static int mcast_new(struct cm_id *id, const union cm_addr *addr, uint8_t flags, struct cm_mcast **mcast)
{
	struct cm_mcast *m;
	int err = uvd_account_charge(id->account, UVD_RES_CM_IDS, 1);

	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	err = m ? cm_number_new(&id->cm->mcasts, m, &m->number) : -ENOMEM;
	if (err) {
		uvd_account_uncharge(id->account, UVD_RES_CM_IDS, 1);
		free(m);
		return err;
	}
	m->id = id;
	m->addr = *addr;
	m->join_flags = flags;
	m->serial = ++id->cm->last_serial;
	m->hidden = true;
	list_add_tail(&m->of_file, &id->file->mcasts);
	*mcast = m;
	return 0;
}

static void tell_joined(struct cm_mcast *mcast)
{
	struct cm_event *ev = cm_event_new(mcast->id, CM_EVENT_MULTICAST_JOIN, 0);

	if (!ev)
		return;
	ev->mcast = mcast;
	ev->resp.uid = mcast->uid;
	ev->resp.id = mcast->number;
	ev->resp.param.ud.qp_num = MULTICAST_QPN;
	ev->resp.param.ud.qkey = CM_UDP_QKEY;
	group_ah(mcast->id, &mcast->addr, &ev->resp.param.ud.ah_attr);
	cm_event_post(ev);
}

static int join(struct cm_cmd *c, uint32_t number, const void *from, size_t size, uint64_t uid, uint8_t flags)
{
	struct rdma_ucm_create_id_resp resp;
	struct cm_mcast *mcast;
	union cm_addr addr = {};
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, number, &id);

	memcpy(&addr, from, size);
	if (!err)
		err = may_join(c, id, &addr) ?: mcast_new(id, &addr, flags, &mcast);
	if (err)
		return err;
	mcast->uid = uid;
	c->made_serial = mcast->serial;
	resp.id = mcast->number;
	tell_joined(mcast);
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

int cm_join_mcast(struct cm_cmd *c)
{
	const struct rdma_ucm_join_mcast *in = (const void *)c->in;

	return join(c, in->id, &in->addr, in->addr_size, in->uid, in->join_flags);
}

int cm_join_ip_mcast(struct cm_cmd *c)
{
	const struct rdma_ucm_join_ip_mcast *in = (const void *)c->in;

	return join(c, in->id, &in->addr, cm_addr_size(in->addr.sin6_family), in->uid, RDMA_MC_JOIN_FLAG_FULLMEMBER);
}

/* Its identifier may have been destroyed while the response was written, and the membership with it. Then returns NULL. */
static struct cm_mcast *joined(struct cm_cmd *c)
{
	struct cm_mcast *mcast = cm_number_find(&c->file->cm->mcasts, *(const uint32_t *)c->out);

	return mcast && mcast->serial == c->made_serial ? mcast : NULL;
}

void cm_join_done(struct cm_cmd *c)
{
	struct cm_mcast *mcast = joined(c);

	if (mcast)
		mcast->hidden = false;
}

void cm_join_undo(struct cm_cmd *c)
{
	struct cm_mcast *mcast = joined(c);

	if (mcast)
		cm_mcast_leave(mcast);
}

/* ---- LEAVE --------------------------------------------------------------------------------------------------------- */

void cm_mcast_leave(struct cm_mcast *mcast)
{
	struct cm_id *id = mcast->id;

	cm_events_drop_mcast(mcast);
	list_del_init(&mcast->of_file);
	cm_number_free(&id->cm->mcasts, mcast->number);
	uvd_account_uncharge(id->account, UVD_RES_CM_IDS, 1);
	free(mcast);
}

int cm_leave_mcast(struct cm_cmd *c)
{
	const struct rdma_ucm_destroy_id *in = (const void *)c->in;
	struct cm_mcast *mcast = cm_number_find(&c->file->cm->mcasts, in->id);
	struct rdma_ucm_destroy_id_resp resp;

	if (!mcast || mcast->hidden)
		return cm_wrong(c, "id", in->id, -ENOENT);
	if (mcast->id->file != c->file)
		return cm_wrong(c, "id", in->id, -EINVAL);
	resp.events_reported = mcast->reported;
	cm_mcast_leave(mcast);
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}
