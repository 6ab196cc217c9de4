/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast groups. Each port has its own, as in the kernel's rdmavt. A datagram goes to the groups with its address on
 * all ports of the network. Groups with the same GID are in the same bucket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/endpoint/endpoint.h"

struct member {
	struct member *next;
	struct soft_qp *qp;
	uint64_t nr; /* ascending in a group's list, never reused in its bucket */
};

struct soft_group {
	struct soft_group *next;
	struct soft_device *dev;
	uint8_t port;
	uint16_t lid;
	union ibv_gid gid;
	struct member *first, **end;
	unsigned int num_members;
};

/* A group exists until its last member leaves, so each member is charged for a whole group, and not its creator. */
enum { MEMBER_BYTES = sizeof(struct member) + sizeof(struct soft_group) };

void soft_mcast_init(struct uvd_fabric *fabric)
{
	for (int i = 0; i < SOFT_MCAST_BUCKETS; i++)
		pthread_rwlock_init(&fabric->mcast[i].lock, NULL);
}

void soft_mcast_destroy(struct uvd_fabric *fabric)
{
	for (int i = 0; i < SOFT_MCAST_BUCKETS; i++)
		pthread_rwlock_destroy(&fabric->mcast[i].lock);
}

static struct soft_mcast_bucket *mcast_bucket_of(struct uvd_fabric *fabric, const union ibv_gid *gid)
{
	const uint32_t half = soft_hash(fabric->seed, gid->global.subnet_prefix, 32);

	return &fabric->mcast[soft_hash(fabric->seed + half, gid->global.interface_id, SOFT_MCAST_HASH)];
}

static bool is_ethernet(const struct soft_group *group)
{
	return group->dev->ibdev->config.ports[group->port - 1].link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* ---- attaching --------------------------------------------------------------------------------------------------- */

static struct soft_group *mcast_find_group(struct soft_mcast_bucket *bucket, struct soft_device *dev, uint8_t port,
					   const union ibv_gid *gid)
{
	for (struct soft_group *group = bucket->first; group; group = group->next)
		if (group->dev == dev && group->port == port && !memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
}

/* Returns the link that points to the member, or NULL. */
static struct member **mcast_find_member(struct soft_group *group, struct soft_qp *qp)
{
	for (struct member **p = &group->first; *p; p = &(*p)->next)
		if ((*p)->qp == qp)
			return p;
	return NULL;
}

static struct soft_group *mcast_add_group(struct soft_mcast_bucket *bucket, struct soft_device *dev, uint8_t port,
					  const union ibv_gid *gid, uint16_t lid)
{
	struct soft_group *group;

	if (soft_count(&dev->num_mcast_groups, dev->ibdev->config.limits.max_mcast_grp))
		return NULL;
	group = calloc(1, sizeof(*group));
	if (!group) {
		dev->num_mcast_groups--;
		return NULL;
	}
	group->dev = dev;
	group->port = port;
	group->gid = *gid;
	group->lid = lid;
	group->end = &group->first;
	group->next = bucket->first;
	bucket->first = group;
	return group;
}

static void mcast_drop_group_if_empty(struct soft_mcast_bucket *bucket, struct soft_group *group)
{
	struct soft_group **p = &bucket->first;

	if (group->first)
		return;
	while (*p != group)
		p = &(*p)->next;
	*p = group->next;
	group->dev->num_mcast_groups--;
	free(group);
}

static int mcast_add_member(struct soft_mcast_bucket *bucket, struct soft_group *group, struct soft_qp *qp)
{
	struct member *m;

	if (group->num_members >= (unsigned int)group->dev->ibdev->config.limits.max_mcast_qp_attach)
		return -ENOMEM;
	if (uvd_charge_bytes(qp->qp.account, MEMBER_BYTES))
		return -ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m) {
		uvd_uncharge_bytes(qp->qp.account, MEMBER_BYTES);
		return -ENOMEM;
	}
	m->qp = qp;
	m->nr = ++bucket->next_nr;
	*group->end = m;
	group->end = &m->next;
	group->num_members++;
	qp->num_mcast++;
	return 0;
}

static void mcast_drop_member(struct soft_group *group, struct member **p)
{
	struct member *m = *p;

	*p = m->next;
	if (group->end == &m->next)
		group->end = p;
	group->num_members--;
	m->qp->num_mcast--;
	uvd_uncharge_bytes(m->qp->qp.account, MEMBER_BYTES);
	free(m);
}

int soft_attach_mcast(struct uvd_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	struct soft_qp *qp = soft_qp(base);
	struct soft_mcast_bucket *bucket = mcast_bucket_of(qp->dev->fabric, gid);
	struct soft_group *group;
	uint8_t port;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	port = qp->state == IBV_QPS_RESET ? 0 : qp->attr.port_num;
	pthread_mutex_unlock(&qp->lock);
	if (!port || qp->qp.qp_type != IBV_QPT_UD)
		return -EINVAL;

	pthread_rwlock_wrlock(&bucket->lock);
	group = mcast_find_group(bucket, qp->dev, port, gid);
	if (!group)
		group = mcast_add_group(bucket, qp->dev, port, gid, lid);
	if (!group) {
		err = -ENOMEM;
	} else if (group->lid != lid) {
		err = -EINVAL;
	} else if (!mcast_find_member(group, qp)) {
		err = mcast_add_member(bucket, group, qp);
		mcast_drop_group_if_empty(bucket, group);
	}
	pthread_rwlock_unlock(&bucket->lock);
	return err;
}

/* Detaches qp from one group; if gid is NULL, from all groups of the bucket. Returns how many groups it was in. */
static int mcast_detach(struct soft_mcast_bucket *bucket, struct soft_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct soft_group *group, *next;
	int n = 0;

	pthread_rwlock_wrlock(&bucket->lock);
	for (group = bucket->first; group; group = next) {
		struct member **p;

		next = group->next;
		if (group->dev != qp->dev || (gid && (group->lid != lid || memcmp(&group->gid, gid, sizeof(*gid)))))
			continue;
		/* Searched last: a group can have many members. */
		p = mcast_find_member(group, qp);
		if (!p)
			continue;
		mcast_drop_member(group, p);
		mcast_drop_group_if_empty(bucket, group);
		n++;
	}
	pthread_rwlock_unlock(&bucket->lock);
	return n;
}

int soft_detach_mcast(struct uvd_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	struct soft_qp *qp = soft_qp(base);

	return mcast_detach(mcast_bucket_of(qp->dev->fabric, gid), qp, gid, lid) ? 0 : -EINVAL;
}

void soft_mcast_forget(struct soft_qp *qp)
{
	for (int i = 0; i < SOFT_MCAST_BUCKETS && qp->num_mcast; i++)
		mcast_detach(&qp->dev->fabric->mcast[i], qp, NULL, 0);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

bool soft_is_multicast(const struct uvd_port_config *port, const struct ibv_ah_attr *ah)
{
	if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
		return ah->is_global && uvd_gid_is_multicast(&ah->grh.dgid);
	return ah->dlid >= SOFT_MULTICAST_LID && ah->dlid != 0xffff;
}

static bool is_addressed(const struct soft_group *group, const struct ibv_ah_attr *ah)
{
	/* Ethernet has no LIDs. */
	return !memcmp(&group->gid, &ah->grh.dgid, sizeof(group->gid)) &&
	       (is_ethernet(group) || group->lid == ah->dlid);
}

/* Returns the member with the least number above `after`, of all groups with this address, or NULL. */
static struct member *next_member(struct soft_mcast_bucket *bucket, const struct ibv_ah_attr *ah, uint64_t after)
{
	struct member *least = NULL;

	for (struct soft_group *group = bucket->first; group; group = group->next) {
		struct member *m = is_addressed(group, ah) ? group->first : NULL;

		while (m && m->nr <= after)
			m = m->next;
		if (m && (!least || m->nr < least->nr))
			least = m;
	}
	return least;
}

unsigned int soft_mcast_members(struct uvd_fabric *fabric, const struct ibv_ah_attr *ah, uint64_t *last, uint32_t *qpns,
				unsigned int max)
{
	struct soft_mcast_bucket *bucket = mcast_bucket_of(fabric, &ah->grh.dgid);
	struct member *m;
	unsigned int n;

	/* Every multicast packet has a GRH, and its DGID names the group. */
	if (!ah->is_global)
		return 0;
	pthread_rwlock_rdlock(&bucket->lock);
	for (n = 0; n < max && (m = next_member(bucket, ah, *last)); n++) {
		*last = m->nr;
		qpns[n] = m->qp->qp.qp_num;
	}
	pthread_rwlock_unlock(&bucket->lock);
	return n;
}
