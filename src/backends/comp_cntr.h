/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion counters, for the backends that generate completions themselves. */
#ifndef UVD_COMP_CNTR_H
#define UVD_COMP_CNTR_H

#include <uverbsd/backend.h>

/* Operations of struct uvd_backend. An attach changes nothing here, so there is nothing to undo. */
int uvd_comp_cntr_modify(struct uvd_comp_cntr *cntr, uint32_t entry, uint32_t op, uint64_t value);
int uvd_comp_cntr_read(struct uvd_comp_cntr *cntr, uint32_t entry, uint64_t *value);
int uvd_comp_cntr_attach(struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask);
/* Allows as many counters as CQs, because clients use them in place of CQs. */
int uvd_comp_cntr_caps(struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps);

/* Counts an operation of qp that has completed; ok: with success. Any thread may call it, under any lock. */
static inline void uvd_comp_cntr_count(struct uvd_qp *qp, enum uvd_comp_cntr_op op, bool ok)
{
	struct uvd_comp_cntr *cntr = atomic_load_explicit(&qp->comp_cntr[op], memory_order_acquire);

	if (cntr)
		atomic_fetch_add_explicit(&cntr->values[!ok], 1, memory_order_relaxed);
}

#endif
