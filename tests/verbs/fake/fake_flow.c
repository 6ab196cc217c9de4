/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's flows and counters objects. A counters object has the values 100 and 200. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "fake_internal.h"

struct fake_counters {
	struct ibv_counters counters;
	unsigned int flows;
	uint64_t values[2];
};

struct fake_flow {
	struct ibv_flow flow;
	struct fake_counters *counters;
};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static struct ibv_counters *fake_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	struct fake_counters *c = fake_new(FAKE_CREATE_COUNTERS, sizeof(*c));

	if (!c)
		return NULL;
	if (attr->comp_mask)
		abort();
	c->counters.context = context;
	return &c->counters;
}

static int fake_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
				struct ibv_flow *flow)
{
	struct fake_counters *c = (struct fake_counters *)counters;
	const int ret = fake_result(FAKE_ATTACH_COUNTERS);

	if (flow || attr->comp_mask || attr->index > 1)
		abort();
	if (!ret)
		c->values[attr->index] = attr->counter_desc == IBV_COUNTER_PACKETS ? 100 : 200;
	return ret;
}

static int fake_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t num, uint32_t flags)
{
	const int ret = fake_result(FAKE_READ_COUNTERS);

	if (ret)
		return ret;
	if (num < 2)
		return EINVAL;
	fake.read_flags = flags;
	memcpy(values, ((struct fake_counters *)counters)->values, sizeof(uint64_t[2]));
	return 0;
}

static int fake_destroy_counters(struct ibv_counters *counters)
{
	int ret = fake_result(FAKE_DESTROY_COUNTERS);

	if (!ret && ((struct fake_counters *)counters)->flows)
		ret = EBUSY;
	if (!ret)
		fake_free(counters);
	return ret;
}

/* ---- flows ------------------------------------------------------------------------------------------------------- */

/* Returns the counters object of the specs, or NULL. */
static struct fake_counters *flow_counters(const struct ibv_flow_attr *attr)
{
	const char *at = (const char *)(attr + 1);
	struct fake_counters *found = NULL;

	for (unsigned int i = 0; i < attr->num_of_specs; i++) {
		struct ibv_flow_spec spec;

		memcpy(&spec, at, sizeof(spec.hdr));
		memcpy(&spec, at, spec.hdr.size);
		if (spec.hdr.type == IBV_FLOW_SPEC_ACTION_COUNT)
			found = (struct fake_counters *)spec.flow_count.counters;
		at += spec.hdr.size;
	}
	if (at != (const char *)attr + attr->size)
		abort();
	return found;
}

static struct ibv_flow *fake_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct fake_flow *flow = fake_new(FAKE_CREATE_FLOW, sizeof(*flow));

	if (!flow)
		return NULL;
	if (attr->comp_mask || attr->size > sizeof(fake.flow_request))
		abort();
	memcpy(fake.flow_request, attr, attr->size);
	flow->flow.context = qp->context;
	flow->counters = flow_counters(attr);
	if (flow->counters)
		flow->counters->flows++;
	return &flow->flow;
}

static int fake_destroy_flow(struct ibv_flow *flow)
{
	struct fake_flow *f = (struct fake_flow *)flow;
	const int ret = fake_result(FAKE_DESTROY_FLOW);

	if (ret)
		return ret;
	if (f->counters)
		f->counters->flows--;
	fake_free(flow);
	return 0;
}

void fake_flow_ops(struct verbs_context *verbs)
{
	verbs->create_counters = fake_create_counters;
	verbs->attach_counters_point_flow = fake_attach_counters;
	verbs->read_counters = fake_read_counters;
	verbs->destroy_counters = fake_destroy_counters;
	verbs->ibv_create_flow = fake_create_flow;
	verbs->ibv_destroy_flow = fake_destroy_flow;
}
