/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of the null backend. */
#ifndef UVD_NULL_H
#define UVD_NULL_H

#include <uverbsd/backend.h>

/* ---- rare.c: operations that few adapters have ------------------------------------------------------------------- */

int null_query_context(struct uvd_context *context);
int null_modify_cq(struct uvd_cq *cq, uint16_t count, uint16_t period);
int null_dm(struct uvd_dm *dm);
int null_advise_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
		   unsigned int num_sge);
int null_dmah(struct uvd_dmah *dmah);
int null_pgoff_to_mmap_entry(struct uvd_context *context, uint64_t pgoff, uint64_t *length);
int null_counters(struct uvd_counters *counters);
int null_read_counters(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);
int null_bind_counters(struct uvd_qp *qp, struct uvd_counters *counters);
int null_comp_cntr(struct uvd_comp_cntr *cntr);

#endif
