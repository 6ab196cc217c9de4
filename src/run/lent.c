/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The places in the memory of notifications for calls that are answered later than others: those of loans, and parked ones. The
 * guardian finds them there if the engine dies. Only the engine knows which places are free.
 */
#include "run/internal.h"
#include "util/util.h"

void uvd_run_lent_init(struct uvd_run_lent *lent)
{
	pthread_mutex_init(&lent->lock, NULL);
	lent->num_free = lent->num_used = 0;
}

void uvd_run_lent_fini(struct uvd_run_lent *lent)
{
	pthread_mutex_destroy(&lent->lock);
}

_Atomic uint64_t *uvd_run_lent_take(struct uvd_run_tree *tree, uint64_t id)
{
	struct uvd_run_lent *lent = &tree->lent;
	int place = -1;

	uvd_lock(&lent->lock);
	if (lent->num_free)
		place = lent->free[--lent->num_free];
	else if (lent->num_used < UVD_RUN_MAX_LENT)
		place = (int)lent->num_used++;
	uvd_unlock(&lent->lock);
	if (place < 0)
		return NULL;
	atomic_store(&tree->notif->lent[place], id);
	return &tree->notif->lent[place];
}

void uvd_run_lent_give(struct uvd_run_tree *tree, _Atomic uint64_t *place)
{
	struct uvd_run_lent *lent = &tree->lent;

	atomic_store(place, 0);
	uvd_lock(&lent->lock);
	lent->free[lent->num_free++] = place - tree->notif->lent;
	uvd_unlock(&lent->lock);
}
