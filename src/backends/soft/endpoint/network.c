/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The networks between soft devices: finds QPs by number, and tells which port an address reaches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/endpoint/endpoint.h"

/* The number after it, 0xffffff, is the multicast QP. */
enum { LAST_QPN = (1 << SOFT_QPN_BITS) - 2 };

uint64_t soft_hash_seed(void)
{
	return (uint64_t)uvd_random(UINT32_MAX) << 32 | uvd_random(UINT32_MAX);
}

static struct soft_bucket *fabric_bucket_of(struct uvd_fabric *fabric, uint32_t qpn)
{
	return &fabric->buckets[soft_hash(fabric->seed, qpn, SOFT_QPN_HASH)];
}

/* Caller holds the bucket's lock. Returns the link that points to the QP, or NULL. */
static struct soft_qp **fabric_find_qp(struct soft_bucket *bucket, uint32_t qpn)
{
	for (struct soft_qp **p = &bucket->first; *p; p = &(*p)->next)
		if ((*p)->qp.qp_num == qpn)
			return p;
	return NULL;
}

static bool fabric_insert_qp(struct uvd_fabric *fabric, struct soft_qp *qp, uint32_t qpn)
{
	struct soft_bucket *bucket = fabric_bucket_of(fabric, qpn);
	bool is_free;

	pthread_mutex_lock(&bucket->lock);
	is_free = !fabric_find_qp(bucket, qpn);
	if (is_free) {
		qp->qp.qp_num = qpn;
		qp->next = bucket->first;
		bucket->first = qp;
	}
	pthread_mutex_unlock(&bucket->lock);
	return is_free;
}

/* Caller holds qpn_lock. */
static void fabric_note_user(struct uvd_fabric *fabric, const struct soft_qp *qp)
{
	const uid_t user = uvd_account_person(qp->qp.account);

	if (!fabric->has_first_user)
		fabric->first_user = user;
	fabric->has_first_user = true;
	if (user != fabric->first_user)
		atomic_store_explicit(&fabric->is_shared, true, memory_order_relaxed);
}

int soft_fabric_add_qp(struct uvd_fabric *fabric, struct soft_qp *qp)
{
	int err = -ENOMEM;

	/* Numbers ascend until they wrap: a late request must not reach a new QP that has reused its number. */
	pthread_mutex_lock(&fabric->qpn_lock);
	fabric_note_user(fabric, qp);
	for (uint32_t tries = SOFT_FIRST_QPN; err && tries <= LAST_QPN; tries++) {
		uint32_t qpn = fabric->next_qpn;

		fabric->next_qpn = qpn == LAST_QPN ? SOFT_FIRST_QPN : qpn + 1;
		if (fabric_insert_qp(fabric, qp, qpn))
			err = 0;
	}
	pthread_mutex_unlock(&fabric->qpn_lock);
	return err;
}

void soft_fabric_remove_qp(struct uvd_fabric *fabric, struct soft_qp *qp)
{
	struct soft_bucket *bucket = fabric_bucket_of(fabric, qp->qp.qp_num);
	struct soft_qp **p;

	pthread_mutex_lock(&bucket->lock);
	p = fabric_find_qp(bucket, qp->qp.qp_num);
	if (p && *p == qp)
		*p = qp->next;
	pthread_mutex_unlock(&bucket->lock);
}

struct soft_qp *soft_fabric_get_qp(struct uvd_fabric *fabric, uint32_t qpn)
{
	struct soft_bucket *bucket = fabric_bucket_of(fabric, qpn);
	struct soft_qp **p, *qp = NULL;

	pthread_mutex_lock(&bucket->lock);
	p = fabric_find_qp(bucket, qpn);
	if (p) {
		qp = *p;
		soft_ref_get(&qp->ref);
	}
	pthread_mutex_unlock(&bucket->lock);
	return qp;
}

bool soft_fabric_has_qp(struct uvd_fabric *fabric, uint32_t qpn)
{
	struct soft_bucket *bucket = fabric_bucket_of(fabric, qpn);
	bool has;

	pthread_mutex_lock(&bucket->lock);
	has = fabric_find_qp(bucket, qpn);
	pthread_mutex_unlock(&bucket->lock);
	return has;
}

/* Returns the QP with the least number that is not below qpn, with a reference, or NULL. */
static struct soft_qp *fabric_next_qp(struct soft_bucket *bucket, uint32_t qpn)
{
	struct soft_qp *least = NULL;

	pthread_mutex_lock(&bucket->lock);
	for (struct soft_qp *qp = bucket->first; qp; qp = qp->next)
		if (qp->qp.qp_num >= qpn && (!least || qp->qp.qp_num < least->qp.qp_num))
			least = qp;
	if (least)
		soft_ref_get(&least->ref);
	pthread_mutex_unlock(&bucket->lock);
	return least;
}

void soft_fabric_each_qp(struct uvd_fabric *fabric, void (*fn)(struct soft_qp *qp, void *user), void *user)
{
	struct soft_qp *qp;

	for (int i = 0; i < SOFT_QPN_BUCKETS; i++) {
		for (uint32_t qpn = 0; (qp = fabric_next_qp(&fabric->buckets[i], qpn));) {
			qpn = qp->qp.qp_num + 1;
			fn(qp, user);
			soft_ref_put(&qp->ref);
		}
	}
}

bool soft_port_has_gid(const struct uvd_port_config *port, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (uvd_config_has_gid(port, i) && !memcmp(&port->gids[i], gid, sizeof(*gid)))
			return true;
	return false;
}

bool soft_port_joined(const struct uvd_port_config *from, const struct uvd_port_config *to)
{
	/* InfiniBand and Ethernet are separate networks. */
	return !uvd_config_port_down(from) && !uvd_config_port_down(to) && from->link_layer == to->link_layer;
}

bool soft_port_reaches(const struct uvd_port_config *from, const struct ibv_ah_attr *ah,
		       const struct uvd_port_config *to)
{
	if (!soft_port_joined(from, to))
		return false;
	if (ah->is_global && !soft_port_has_gid(to, &ah->grh.dgid))
		return false;
	if (to->link_layer == IBV_LINK_LAYER_ETHERNET)
		return ah->is_global;
	return (ah->dlid & ~((1u << to->lmc) - 1)) == to->lid;
}

uint16_t soft_port_pkey(const struct uvd_port_config *port, uint16_t index)
{
	return index < port->num_pkeys ? port->pkeys[index] : 0;
}
