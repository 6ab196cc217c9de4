/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include "backends/comp_cntr.h"

enum { ENTRIES = 2, OP_SET = 0, OP_INC = 1 }; /* enum ib_uverbs_comp_cntr_entry, _modify_op */

int uvd_comp_cntr_modify(struct uvd_comp_cntr *cntr, uint32_t entry, uint32_t op, uint64_t value)
{
	if (entry >= ENTRIES || op > OP_INC)
		return -EINVAL;
	if (op == OP_SET)
		atomic_store(&cntr->values[entry], value);
	else
		atomic_fetch_add(&cntr->values[entry], value);
	return 0;
}

int uvd_comp_cntr_read(struct uvd_comp_cntr *cntr, uint32_t entry, uint64_t *value)
{
	if (entry >= ENTRIES)
		return -EINVAL;
	*value = atomic_load(&cntr->values[entry]);
	return 0;
}

int uvd_comp_cntr_attach(struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask)
{
	return 0;
}

int uvd_comp_cntr_caps(struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps)
{
	*caps = (struct uvd_comp_cntr_caps){
		.max_counters = dev->config.limits.max_cq,
		.max_value = UINT64_MAX,
		.supported_qp_attach_ops = (1 << UVD_COMP_CNTR_OPS) - 1,
	};
	return 0;
}
