/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `nomem`: what creates an object or allocates memory fails with ENOMEM, counted over all such operations. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

struct nomem {
	struct uvd_ibdev *dev;
	struct uvd_rule when;
};

static const struct uvd_plugin_option nomem_options[] = {
	{ "when", NULL, "@N|@N+|%P", "which creations fail: the N-th, from the N-th, P percent (default: all)" },
	{ "seed", "1", "N", "which creations a percentage chooses" },
	{},
};

static void nomem_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	uvd_rule_count_tell(&((const struct nomem *)data)->when.count, tell, arg);
}

static int nomem_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct nomem *f = uvd_zalloc(sizeof(*f));
	uint64_t seed = 1;
	int err = f ? uvd_plugin_number(values, "seed", 0, UINT64_MAX, &seed) : -ENOMEM;

	if (!err) {
		uvd_rule_all(&f->when, "when");
		err = uvd_rule_option(&f->when, values, "when", seed);
	}
	if (err) {
		free(f);
		return err;
	}
	f->dev = dev;
	uvd_filter_has_rules(values, nomem_tell_rules);
	*data = f;
	return 0;
}

static void nomem_exit(struct uvd_ibdev *dev, void *data)
{
	free(data);
}

static int nomem_here(struct nomem *f, const char *op)
{
	const uint64_t call = uvd_rule_applies(&f->when);

	if (!call)
		return 0;
	uvd_rule_count_done(&f->when.count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter nomem: %s, creation %llu: ENOMEM", f->dev->config.ibdev, op,
			(unsigned long long)call);
	return -ENOMEM;
}

/* One function for each operation; those that create nothing are left out of the struct below. */
#define NOMEM_FUNCTION_int(op, params, args) \
	static __attribute__((unused)) int nomem_##op(void *data, const struct uvd_next *next, UVD_FILTER_LIST params) \
	{ \
		return nomem_here(data, #op) ?: uvd_next_##op(next, UVD_FILTER_LIST args); \
	}
#define NOMEM_FUNCTION_void(op, params, args)
#define NOMEM_FUNCTION(ret, op, dev, params, args) NOMEM_FUNCTION_##ret(op, params, args)
UVD_FILTER_OPS(NOMEM_FUNCTION)

const struct uvd_filter uvd_filter_nomem = {
	.name = "nomem",
	.description = "creations fail with ENOMEM",
	.options = nomem_options,
	.init = nomem_init,
	.exit = nomem_exit,
	.alloc_context = nomem_alloc_context,
	.alloc_pd = nomem_alloc_pd,
	.reg_mr = nomem_reg_mr,
	.rereg_mr = nomem_rereg_mr,
	.alloc_xrcd = nomem_alloc_xrcd,
	.alloc_mw = nomem_alloc_mw,
	.create_ah = nomem_create_ah,
	.create_cq = nomem_create_cq,
	.resize_cq = nomem_resize_cq,
	.create_srq = nomem_create_srq,
	.create_wq = nomem_create_wq,
	.create_rwq_ind_table = nomem_create_rwq_ind_table,
	.create_qp = nomem_create_qp,
	.create_flow = nomem_create_flow,
	.attach_mcast = nomem_attach_mcast,
	.create_cq_umem = nomem_create_cq_umem,
	.alloc_dm = nomem_alloc_dm,
	.reg_dm_mr = nomem_reg_dm_mr,
	.reg_dmabuf_mr = nomem_reg_dmabuf_mr,
	.alloc_dmah = nomem_alloc_dmah,
	.create_counters = nomem_create_counters,
	.create_comp_cntr = nomem_create_comp_cntr,
};
