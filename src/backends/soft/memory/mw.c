/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows: a bind makes the key of a window stand for part of an MR. A type 1 window can be used by the peers of
 * all QPs of the PD, a type 2 (2B) window by the peer of the QP that bound it. The rules of binding are C10-71 to
 * C10-75 of IBTA, as the kernel's rxe implements them.
 */
#include <errno.h>
#include "backends/soft/memory/mr.h"

static struct soft_mr_table *table_of(const struct soft_mw *mw)
{
	return &mw->dev->mrs;
}

/* Caller holds the table's lock for writing. */
static void mw_unbind(struct soft_mw *mw)
{
	if (mw->mr) {
		mw->mr->num_mws--;
		soft_key_ended(table_of(mw), mw->mw.pd->context->account, mw->mw.rkey, true, mw->length);
	}
	mw->mr = NULL;
}

int soft_alloc_mw(struct uvd_mw *base, struct uvd_udata *udata)
{
	struct soft_device *dev = soft_device(base->pd->context->dev);
	struct soft_mr_table *table = &dev->mrs;
	struct soft_mw *mw = (struct soft_mw *)base;
	uint32_t index = 0;

	if (uvd_charge_bytes(base->pd->context->account, sizeof(struct soft_mr_slot)))
		return -ENOMEM;
	pthread_rwlock_wrlock(&table->lock);
	if (table->num_mws < (uint32_t)dev->ibdev->config.limits.max_mw)
		index = soft_index_take(table);
	if (index) {
		table->num_mws++;
		mw->dev = dev;
		mw->index = index;
		mw->serial = ++table->next_serial;
		base->rkey = index << SOFT_TAG_BITS | ++table->slots[index].tag;
		table->slots[index].mw = mw;
	}
	pthread_rwlock_unlock(&table->lock);
	if (!index)
		uvd_uncharge_bytes(base->pd->context->account, sizeof(struct soft_mr_slot));
	return index ? 0 : -ENOMEM;
}

int soft_dealloc_mw(struct uvd_mw *base)
{
	struct soft_mw *mw = (struct soft_mw *)base;
	struct soft_mr_table *table = table_of(mw);

	pthread_rwlock_wrlock(&table->lock);
	mw_unbind(mw);
	table->slots[mw->index].mw = NULL;
	/* The client chose the tag of the last bind. The next key of this slot must differ from that. */
	table->slots[mw->index].tag = base->rkey;
	soft_index_give(table, mw->index);
	table->num_mws--;
	pthread_rwlock_unlock(&table->lock);
	uvd_uncharge_bytes(base->pd->context->account, sizeof(struct soft_mr_slot));
	soft_ref_wait(&mw->ref);
	return 0;
}

bool soft_window_allows(const struct soft_mw *mw, const struct uvd_pd *pd, uint32_t qpn, uint32_t key, uint64_t addr,
			uint32_t length, unsigned int access)
{
	if (!mw->mr || mw->mw.rkey != key || mw->mw.pd != pd || (mw->access & access) != access)
		return false;
	if (mw->mw.type == IBV_MW_TYPE_2 && mw->qpn != qpn)
		return false;
	return addr >= mw->start && length <= mw->length && addr - mw->start <= mw->length - length;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* rxe accepts these access flags (RXE_ACCESS_SUPPORTED_MW). A window uses only the remote rights and ZERO_BASED. */
enum {
	WINDOW_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
			IBV_ACCESS_OPTIONAL_RANGE
};

static bool may_bind(const struct uvd_pd *pd, const struct soft_mw *mw, const struct soft_mr *mr,
		     const struct soft_bind *bind)
{
	const unsigned int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (mw->mw.pd != pd || bind->access & ~WINDOW_ACCESS)
		return false;
	/* A type 2 window must be invalidated before it is bound again, and a bind of length 0 does not unbind it. */
	if (mw->mw.type == IBV_MW_TYPE_2 ? mw->mr || !bind->length : bind->access & IBV_ACCESS_ZERO_BASED)
		return false;
	if (!bind->length)
		return true;
	if (!mr || mr->mr.pd != pd || !(mr->mr.access & IBV_ACCESS_MW_BIND) || mr->mr.access & IBV_ACCESS_ZERO_BASED)
		return false;
	if ((bind->access & writes) && !(mr->mr.access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return bind->addr >= mr->mr.iova && bind->length <= mr->mr.length &&
	       bind->addr - mr->mr.iova <= mr->mr.length - bind->length;
}

/* Returns the window that the bind names, or NULL. Caller holds the table's lock. */
static struct soft_mw *find_window(struct soft_mr_table *table, const struct soft_bind *bind)
{
	struct soft_mw *mw = bind->mw_index < table->room ? table->slots[bind->mw_index].mw : NULL;

	if (!mw || (bind->mw_serial ? mw->serial != bind->mw_serial : mw->mw.rkey != bind->mw_key))
		return NULL;
	return mw;
}

int soft_bind_mw(struct uvd_pd *pd, uint32_t qpn, const struct soft_bind *bind, uint32_t new_key)
{
	struct soft_mr_table *table = &soft_device(pd->context->dev)->mrs;
	struct soft_mw *mw;
	struct soft_mr *mr;
	int err = -EINVAL;

	pthread_rwlock_wrlock(&table->lock);
	mw = find_window(table, bind);
	mr = soft_find_mr(table, bind->mr_key);
	if (mw && may_bind(pd, mw, mr, bind)) {
		mw_unbind(mw);
		mw->mw.rkey = (mw->index << SOFT_TAG_BITS) | (new_key & ((1 << SOFT_TAG_BITS) - 1));
		if (bind->length) {
			mw->mr = mr;
			mr->num_mws++;
		}
		mw->start = bind->access & IBV_ACCESS_ZERO_BASED ? 0 : bind->addr;
		mw->mr_addr = bind->addr;
		mw->length = bind->length;
		mw->access = bind->access;
		mw->qpn = qpn;
		err = 0;
	}
	pthread_rwlock_unlock(&table->lock);
	return err;
}

int soft_invalidate_mw(struct uvd_pd *pd, uint32_t qpn, uint32_t key)
{
	struct soft_mr_table *table = &soft_device(pd->context->dev)->mrs;
	uint32_t index = key >> SOFT_TAG_BITS;
	struct soft_mw *mw = NULL;
	int err = -EINVAL;

	pthread_rwlock_wrlock(&table->lock);
	if (index < table->room)
		mw = table->slots[index].mw;
	/* Only windows: the MRs that can be invalidated are those of the kernel's own clients. */
	if (mw && mw->mw.type == IBV_MW_TYPE_2 && soft_window_allows(mw, pd, qpn, key, mw->start, 0, 0)) {
		mw_unbind(mw);
		err = 0;
	}
	pthread_rwlock_unlock(&table->lock);
	return err;
}
