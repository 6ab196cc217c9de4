/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion counters, for the backends that make completions themselves. */
#ifndef UVD_COMP_CNTR_H
#define UVD_COMP_CNTR_H

#include <uverbsd/backend.h>

/* The backend's functions; there is nothing to take back. */
int uvd_comp_cntr_modify(struct uvd_comp_cntr *cntr, uint32_t entry, uint32_t op, uint64_t value);
int uvd_comp_cntr_read(struct uvd_comp_cntr *cntr, uint32_t entry, uint64_t *value);
int uvd_comp_cntr_attach(struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask);
/* As many counters as there may be CQs: they stand for such. */
int uvd_comp_cntr_caps(struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps);

/* An operation of this QP has completed. Any thread, any lock. */
static inline void uvd_comp_cntr_count(struct uvd_qp *qp, enum uvd_comp_cntr_op op, bool ok)
{
	struct uvd_comp_cntr *cntr = atomic_load_explicit(&qp->comp_cntr[op], memory_order_acquire);

	if (cntr)
		atomic_fetch_add_explicit(&cntr->values[!ok], 1, memory_order_relaxed);
}

#endif
