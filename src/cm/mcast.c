/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* JOIN_MCAST, its older form JOIN_IP_MCAST, and LEAVE_MCAST. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "cm/command.h"

enum { MULTICAST_QPN = 0xffffff, KERNEL_ENOTSUPP = 524 };
enum { FIRST_MLID = 0xc001 /* after that of IPoIB's broadcast group */, LAST_MLID = 0xfffe };

/* ---- the group ----------------------------------------------------------------------------------------------------- */

/*
 * InfiniBand: the group's GID (cma_set_mgid()). An IP address has IPoIB's (RFC 4391, section 4): flags, scope, a signature, the P_Key, and 28
 * bits of an IPv4 address or 80 of an IPv6 address. The port space UDP has a signature of its own. Zeros: the subnet manager chooses.
 */
static void group_gid(const struct cm_id *id, const union cm_addr *addr, uint8_t gid[16])
{
	static const uint8_t assigned[] = { 0xff, 0x10, 0xa0, 0x1b };

	memset(gid, 0, 16);
	if (cm_addr_is_any(addr) || cm_addr_is_loopback(addr))
		return;
	cm_addr_gid(addr, gid);
	if (addr->family == UVD_AF_IB)
		return;
	if (addr->family == AF_INET6 && gid[0] == assigned[0] && (gid[1] & 0xf0) == assigned[1] &&
	    gid[2] == assigned[2] && gid[3] == assigned[3])
		return;
	gid[0] = 0xff;
	gid[1] = 0x12;
	gid[2] = addr->family == AF_INET ? 0x40 : 0x60;
	gid[3] = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	gid[4] = cm_id_pkey(id) >> 8;
	gid[5] = cm_id_pkey(id) & 0xff;
	if (addr->family == AF_INET6)
		return;
	memset(gid + 6, 0, 6);
	gid[12] &= 0x0f;
}

/* A GID that the subnet manager chooses, such as opensm does. */
static void group_choose_gid(struct uvd_cm *cm, uint8_t gid[16])
{
	const uint32_t n = htonl(++cm->groups_made);

	memcpy(gid, (const uint8_t[]){ 0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80 }, 6);
	memcpy(gid + 12, &n, sizeof(n));
}

/* NULL: there is no group with this LID. */
static struct cm_group *group_with_lid(struct uvd_cm *cm, uint16_t lid)
{
	struct cm_group *group;

	list_for_each_entry(group, &cm->groups, of_cm)
		if (group->lid == lid)
			return group;
	return NULL;
}

static struct cm_group *group_new(struct uvd_cm *cm, const uint8_t gid[16])
{
	struct cm_group *group;
	unsigned int lid = FIRST_MLID;

	while (lid <= LAST_MLID && group_with_lid(cm, lid))
		lid++;
	group = lid <= LAST_MLID ? calloc(1, sizeof(*group)) : NULL;
	if (!group)
		return NULL;
	memcpy(group->gid, gid, 16);
	group->lid = lid;
	list_add_tail(&group->of_cm, &cm->groups);
	return group;
}

/* In the place of the subnet manager: a port becomes a member. Returns NULL: there is no memory, or no LID. */
static struct cm_group *group_join(const struct cm_id *id, const union cm_addr *addr)
{
	struct cm_group *group;
	uint8_t gid[16];

	group_gid(id, addr, gid);
	if (!gid[0])
		group_choose_gid(id->cm, gid);
	list_for_each_entry(group, &id->cm->groups, of_cm)
		if (!memcmp(group->gid, gid, 16))
			goto out;
	group = group_new(id->cm, gid);
out:
	if (group)
		group->members++;
	return group;
}

static void group_leave(struct cm_group *group)
{
	if (!group || --group->members)
		return;
	list_del_init(&group->of_cm);
	free(group);
}

/* ib_init_ah_from_mcmember() */
static void group_ah(const struct cm_mcast *mcast, struct ib_uverbs_ah_attr *ah)
{
	const struct cm_id *id = mcast->id;

	if (mcast->group) {
		*ah = (struct ib_uverbs_ah_attr){
			.is_global = 1,
			.port_num = id->port,
			.dlid = mcast->group->lid,
			.static_rate = cm_port_rate(cm_id_port(id)),
		};
		memcpy(ah->grh.dgid, mcast->group->gid, 16);
		return;
	}
	cm_id_ah(id, ah);
	ah->is_global = 1;
	ah->grh.flow_label = 0;
	ah->grh.hop_limit = 64;
	cm_addr_gid(&mcast->addr, ah->grh.dgid);
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
	if (id->state != CM_ADDR_BOUND && id->state != CM_ADDR_RESOLVED)
		return cm_wrong_state(c, id);
	/* Without IPoIB there is no broadcast group, whose record a group begins with: ib_sa_get_mcmember_rec(). */
	if (cm_id_is_ib(id))
		return id->src.family == UVD_AF_IB ? cm_wrong(c, "the identifier's family", UVD_AF_IB, -EADDRNOTAVAIL)
						   : 0;
	if (cm_addr_is_any(addr))
		return cm_wrong(c, "addr", 0, -EINVAL);
	if (addr->family != AF_INET)
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
	if (m && cm_id_is_ib(id))
		m->group = group_join(id, addr);
	err = m && !m->group == !cm_id_is_ib(id) ? cm_number_new(&id->cm->mcasts, m, &m->number) : -ENOMEM;
	if (err) {
		uvd_account_uncharge(id->account, UVD_RES_CM_IDS, 1);
		if (m)
			group_leave(m->group);
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
	/* Without a source GID there is no address handle, which the kernel tells without a status (cma_make_mc_event()). */
	const bool lost = cm_addr_is_lost(mcast->id->cm, &mcast->id->src);
	struct cm_event *ev;

	if (!mcast->id->uid) /* which has no events: ucma_event_handler() */
		return;
	ev = cm_event_new(mcast->id, lost ? CM_EVENT_MULTICAST_ERROR : CM_EVENT_MULTICAST_JOIN, 0);
	if (!ev)
		return;
	ev->mcast = mcast;
	ev->resp.uid = mcast->uid;
	ev->resp.id = mcast->number;
	if (!lost) {
		ev->resp.param.ud.qp_num = MULTICAST_QPN;
		ev->resp.param.ud.qkey = mcast->id->qkey;
		group_ah(mcast, &ev->resp.param.ud.ah_attr);
	}
	cm_event_post(ev);
}

static int join(struct cm_cmd *c, uint32_t number, const void *from, size_t size, uint64_t uid, uint8_t flags)
{
	struct rdma_ucm_create_id_resp resp;
	struct cm_mcast *mcast = NULL;
	union cm_addr addr = {};
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, number, &id);

	memcpy(&addr, from, size);
	if (!err)
		err = may_join(c, id, &addr) ?: mcast_new(id, &addr, flags, &mcast);
	if (err)
		return err;
	if (!id->qkey)
		cm_id_default_qkey(id);
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
	group_leave(mcast->group);
	list_del_init(&mcast->of_file);
	cm_number_free(&id->cm->mcasts, mcast->number);
	uvd_account_uncharge(id->account, UVD_RES_CM_IDS, 1);
	free(mcast);
}

/* Finds the membership that the command names. Returns 0, -ENOENT, or -EINVAL: it is another file's. */
static int leave_find(struct cm_cmd *c, struct cm_mcast **mcast)
{
	const struct rdma_ucm_destroy_id *in = (const void *)c->in;

	*mcast = cm_number_find(&c->file->cm->mcasts, in->id);
	if (!*mcast || (*mcast)->hidden)
		return cm_wrong(c, "id", in->id, -ENOENT);
	return (*mcast)->id->file == c->file ? 0 : cm_wrong(c, "id", in->id, -EINVAL);
}

int cm_leave_mcast_find(struct cm_cmd *c, struct cm_id **id)
{
	struct cm_mcast *mcast;
	int err = leave_find(c, &mcast);

	if (!err)
		*id = mcast->id;
	return err;
}

int cm_leave_mcast(struct cm_cmd *c)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct cm_mcast *mcast;
	int err = leave_find(c, &mcast);

	if (err)
		return err;
	resp.events_reported = mcast->reported;
	cm_mcast_leave(mcast);
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}
