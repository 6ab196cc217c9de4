/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which operations of a backend the core calls without looking whether they are there: all others are in the `needs` of
 * a row, or a handler looks first.
 */
#include <errno.h>
#include <string.h>

#include "persona/persona.h"
#include "plugin/internal.h"

#define OP(op) #op, offsetof(struct uvd_backend, op)

static const struct {
	const char *name;
	size_t op;
	const char *if_name; /* NULL: it is always mandatory; else only if the backend has this other operation */
	size_t if_op;
} mandatory[] = {
	{ OP(query_device) },
	{ OP(query_port) },
	{ OP(query_gid) },
	{ OP(alloc_context) },
	{ OP(dealloc_context) },
	{ OP(read_counters), OP(create_counters) },
	{ OP(modify_comp_cntr), OP(create_comp_cntr) },
	{ OP(read_comp_cntr), OP(create_comp_cntr) },
};

/* The core allocates the objects of these operations, and its own struct is their beginning. */
static const struct {
	const char *name;
	size_t op, size, least;
} sizes[] = {
#define SIZE(op, object) \
	{ \
		OP(op), UVD_SIZE(object), sizeof(struct uvd_##object) \
	}
	SIZE(alloc_context, context),
	SIZE(alloc_pd, pd),
	SIZE(alloc_xrcd, xrcd),
	SIZE(reg_mr, mr),
	SIZE(alloc_mw, mw),
	SIZE(create_ah, ah),
	SIZE(create_cq, cq),
	SIZE(create_srq, srq),
	SIZE(create_qp, qp),
	SIZE(create_wq, wq),
	SIZE(create_flow, flow),
	SIZE(create_rwq_ind_table, rwq_ind_table),
	SIZE(alloc_dm, dm),
	SIZE(alloc_dmah, dmah),
	SIZE(create_counters, counters),
	SIZE(create_comp_cntr, comp_cntr),
};

static bool operation_is(const struct uvd_backend *backend, size_t op)
{
	return *(void *const *)((const char *)backend + op);
}

int uvd_plugin_backend_check(const char *what, const struct uvd_backend *backend, char error[UVD_PLUGIN_ERROR])
{
	/* A device's option has room for 15 bytes. */
	if (!backend->name || !uvd_plugin_name_ok(backend->name, "-_", 15))
		return uvd_plugin_error(error, -EINVAL, "%s: a backend has no valid name", what);
	for (unsigned int i = 0; i < UVD_COUNT(mandatory); i++) {
		if (operation_is(backend, mandatory[i].op) ||
		    (mandatory[i].if_name && !operation_is(backend, mandatory[i].if_op)))
			continue;
		return uvd_plugin_error(error, -EINVAL, "%s: backend '%s' has no %s", what, backend->name,
					mandatory[i].name);
	}
	for (unsigned int i = 0; i < UVD_COUNT(sizes); i++) {
		const size_t size = *(const size_t *)((const char *)backend + sizes[i].size);

		if (operation_is(backend, sizes[i].op) && (size < sizes[i].least || size > 1 << 20))
			return uvd_plugin_error(error, -EINVAL,
						"%s: backend '%s': %s has objects of %zu bytes, "
						"not from %zu to 1 MiB",
						what, backend->name, sizes[i].name, size, sizes[i].least);
	}
	return 0;
}

int uvd_plugin_persona_check(const char *what, const struct uvd_persona *persona, char error[UVD_PLUGIN_ERROR])
{
	const struct uvd_persona_queues *q = persona->queues;

	if (!persona->name || !uvd_plugin_name_ok(persona->name, "-_", 15))
		return uvd_plugin_error(error, -EINVAL, "%s: a persona has no valid name", what);
	if (!persona->ibdev_prefix || !uvd_plugin_name_ok(persona->ibdev_prefix, "-_", 31) || !persona->modalias ||
	    !persona->board_id || !persona->fw_ver || !persona->node_desc)
		return uvd_plugin_error(error, -EINVAL, "%s: persona '%s' lacks one of the strings that sysfs shows",
					what, persona->name);
	if (!persona->hw_counters)
		return uvd_plugin_error(error, -EINVAL, "%s: persona '%s' has no list of counters", what,
					persona->name);
	if (persona->link_layer != IBV_LINK_LAYER_INFINIBAND && persona->link_layer != IBV_LINK_LAYER_ETHERNET)
		return uvd_plugin_error(error, -EINVAL, "%s: persona '%s' has no link layer", what, persona->name);
	if (persona->queues_before)
		return uvd_plugin_error(error, -ENOEXEC,
					"%s: persona '%s' has mapped queues of an earlier uverbsd: rebuild it", what,
					persona->name);
	if (q && (!q->ops || !q->shape_sq || !q->shape_rq || !q->shape_cq || !q->cq_response || !q->qp_response ||
		  !q->srq_response || !q->srq_modify_place || !q->srq_modify_response))
		return uvd_plugin_error(error, -EINVAL, "%s: persona '%s' lacks a function for mapped queues", what,
					persona->name);
	return 0;
}
