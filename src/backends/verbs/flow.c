/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flows, which steer packets to a QP, and the counters objects that count them. The core has checked that the client has
 * CAP_NET_RAW, which the kernel asks of the engine. A request for a flow is a header, followed by the specs, each of the
 * size of its type.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "backends/verbs/verbs.h"

enum { MAX_SPECS = 10 };

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* Each counters object counts these, in these places: a client cannot choose them by the common ABI. */
static const struct ibv_counter_attach_attr counted[] = {
	{ .counter_desc = IBV_COUNTER_PACKETS, .index = 0 },
	{ .counter_desc = IBV_COUNTER_BYTES, .index = 1 },
};

bool hca_tries_counters(struct ibv_context *adapter)
{
	struct ibv_counters_init_attr attr = {};
	struct ibv_counters *counters = ibv_create_counters(adapter, &attr);

	return counters && !ibv_destroy_counters(counters);
}

int hca_create_counters(struct uvd_counters *base)
{
	struct hca_counters *counters = (struct hca_counters *)base;
	struct ibv_counters_init_attr init = {};
	int ret = 0;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	counters->adapter = ibv_create_counters(hca_context(base->context)->adapter, &init);
	if (!counters->adapter)
		return hca_errno();
	/* Without a flow: for all flows that will use the object. */
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]) && !ret; i++) {
		struct ibv_counter_attach_attr attr = counted[i];

		ret = hca_result(ibv_attach_counters_point_flow(counters->adapter, &attr, NULL));
	}
	if (ret)
		ibv_destroy_counters(counters->adapter);
	return ret;
}

int hca_destroy_counters(struct uvd_counters *base)
{
	return hca_destroyed(hca_device(base->context->dev),
			     ibv_destroy_counters(((struct hca_counters *)base)->adapter));
}

int hca_read_counters(struct uvd_counters *base, uint64_t *values, size_t num, uint32_t flags)
{
	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	return hca_result(ibv_read_counters(((struct hca_counters *)base)->adapter, values, num, flags));
}

/* ---- specs ------------------------------------------------------------------------------------------------------- */

/* A layer: its type for the client and for libibverbs, the bytes of the spec, and where its filter and its mask are. */
#define LAYER(client, adapter, spec) \
	{ \
		client, adapter, sizeof(struct spec), offsetof(struct spec, val), offsetof(struct spec, mask), \
			sizeof(((struct spec *)0)->val) \
	}

static const struct hca_layer {
	uint32_t client, adapter;
	uint16_t size, val, mask, filter;
} layers[] = {
	LAYER(IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth),
	/* The kernel's filter of IPv4 is the extended one of libibverbs. */
	LAYER(IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext),
	LAYER(IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6),
	LAYER(IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp),
	LAYER(IBV_FLOW_SPEC_UDP, IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp),
	LAYER(IBV_FLOW_SPEC_ESP, IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp),
	LAYER(IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel),
	LAYER(IBV_FLOW_SPEC_GRE, IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre),
	LAYER(IBV_FLOW_SPEC_MPLS, IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls),
};

/* Returns the adapter's size of the spec, or -EOPNOTSUPP. out is zeroed. */
static int flow_layer(const struct uvd_flow_spec *spec, struct ibv_flow_spec *out)
{
	const uint32_t inner = spec->type & IBV_FLOW_SPEC_INNER;
	const struct hca_layer *l;

	for (l = layers; l < layers + sizeof(layers) / sizeof(layers[0]); l++) {
		if (l->client != (spec->type & ~(uint32_t)IBV_FLOW_SPEC_INNER))
			continue;
		out->hdr.type = l->adapter | inner;
		out->hdr.size = l->size;
		memcpy((char *)out + l->val, &spec->val, l->filter);
		memcpy((char *)out + l->mask, &spec->mask, l->filter);
		return l->size;
	}
	return -EOPNOTSUPP;
}

/* The same of any spec. A flow action cannot be forwarded, as none exists: only methods of drivers make them. */
static int flow_spec(const struct uvd_flow_spec *spec, struct ibv_flow_spec *out)
{
	switch (spec->type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		out->flow_tag = (struct ibv_flow_spec_action_tag){ .type = spec->type,
								   .size = sizeof(out->flow_tag),
								   .tag_id = spec->tag_id };
		return sizeof(out->flow_tag);
	case IBV_FLOW_SPEC_ACTION_DROP:
		out->drop = (struct ibv_flow_spec_action_drop){ .type = spec->type, .size = sizeof(out->drop) };
		return sizeof(out->drop);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		out->flow_count = (struct ibv_flow_spec_counter_action){
			.type = spec->type,
			.size = sizeof(out->flow_count),
			.counters = ((struct hca_counters *)spec->counters)->adapter,
		};
		return sizeof(out->flow_count);
	default:
		return flow_layer(spec, out);
	}
}

/* ---- flows ------------------------------------------------------------------------------------------------------- */

/* The sizes of specs are multiples of 4, not of 8: each is built beside the request and copied. */
struct flow_request {
	struct ibv_flow_attr attr;
	char specs[MAX_SPECS * sizeof(struct ibv_flow_spec)];
};

static int flow_request(const struct uvd_flow *flow, struct flow_request *out)
{
	size_t len = 0;

	*out = (struct flow_request){ .attr = { .type = flow->type,
						.priority = flow->priority,
						.num_of_specs = flow->num_specs,
						.port = flow->port,
						.flags = flow->flags } };
	for (unsigned int i = 0; i < flow->num_specs; i++) {
		struct ibv_flow_spec spec = {};
		const int size = flow_spec(&flow->specs[i], &spec);

		if (size < 0)
			return size;
		memcpy(out->specs + len, &spec, size);
		len += size;
	}
	out->attr.size = sizeof(out->attr) + len;
	return 0;
}

int hca_create_flow(struct uvd_flow *base, struct uvd_udata *udata)
{
	struct hca_flow *flow = (struct hca_flow *)base;
	struct flow_request request;
	int ret = flow_request(base, &request);

	if (atomic_load(&hca_qp_device(base->qp)->dead))
		return -EIO;
	if (ret)
		return ret;
	flow->adapter = ibv_create_flow(((struct hca_qp *)base->qp)->adapter, &request.attr);
	return flow->adapter ? 0 : hca_errno();
}

int hca_destroy_flow(struct uvd_flow *base)
{
	return hca_destroyed(hca_qp_device(base->qp), ibv_destroy_flow(((struct hca_flow *)base)->adapter));
}
