/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parses the specs of CREATE_FLOW. A spec is a header with its type and size, and then an action, or a layer's filter:
 * its values, then its masks, each half of the rest. A filter may be shorter than the one that we know, or longer if
 * its mask is zero beyond.
 */
#include <arpa/inet.h>
#include "objects/flow.h"

enum {
	HDR = sizeof(struct ib_uverbs_flow_spec_hdr),
	FILTER_ALIGN = 4,
	FLOW_LABEL_BITS = 20,
	TUNNEL_ID_BITS = 24,
};

/* The bytes of each filter that the kernel knows. The last byte of the IPv6 filter is reserved and not among them. */
static const struct filter_kind {
	uint16_t type;
	uint8_t size;
} filter_kinds[] = {
	{ IBV_FLOW_SPEC_ETH, sizeof(struct ib_uverbs_flow_eth_filter) },
	{ IBV_FLOW_SPEC_IPV4, sizeof(struct ib_uverbs_flow_ipv4_filter) },
	{ IBV_FLOW_SPEC_IPV6, offsetof(struct ib_uverbs_flow_ipv6_filter, reserved) },
	{ IBV_FLOW_SPEC_TCP, sizeof(struct ib_uverbs_flow_tcp_udp_filter) },
	{ IBV_FLOW_SPEC_UDP, sizeof(struct ib_uverbs_flow_tcp_udp_filter) },
	{ IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(struct ib_uverbs_flow_tunnel_filter) },
	{ IBV_FLOW_SPEC_ESP, sizeof(struct ib_uverbs_flow_spec_esp_filter) },
	{ IBV_FLOW_SPEC_GRE, sizeof(struct ib_uverbs_flow_gre_filter) },
	{ IBV_FLOW_SPEC_MPLS, sizeof(struct ib_uverbs_flow_mpls_filter) },
};

/* The backend gets the client's filters unconverted, so the layouts must agree. */
_Static_assert(sizeof(struct ib_uverbs_flow_eth_filter) == sizeof(struct ibv_flow_eth_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_ipv4_filter) == sizeof(struct ibv_flow_ipv4_ext_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_ipv6_filter) == sizeof(struct ibv_flow_ipv6_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_tcp_udp_filter) == sizeof(struct ibv_flow_tcp_udp_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_tunnel_filter) == sizeof(struct ibv_flow_tunnel_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_spec_esp_filter) == sizeof(struct ibv_flow_esp_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_gre_filter) == sizeof(struct ibv_flow_gre_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_mpls_filter) == sizeof(struct ibv_flow_mpls_filter), "filter");
_Static_assert(sizeof(struct ib_uverbs_flow_spec_ipv6) == UVD_FLOW_MAX_SPEC_SIZE, "longest spec");

/* The beginning of every spec. Specs are not aligned, so it is copied. */
struct spec_hdr {
	uint32_t type;
	uint16_t size, reserved;
};

_Static_assert(sizeof(struct spec_hdr) == HDR, "header of a spec");

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static const struct filter_kind *find_kind(uint32_t type)
{
	/* A tunnel cannot be inside another one. */
	if (type == (IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_VXLAN_TUNNEL))
		return NULL;
	for (size_t i = 0; i < UVD_COUNT(filter_kinds); i++)
		if (filter_kinds[i].type == (type & ~(uint32_t)IBV_FLOW_SPEC_INNER))
			return &filter_kinds[i];
	return NULL;
}

static bool flow_spec_is_zero(const uint8_t *buf, size_t len)
{
	while (len)
		if (buf[--len])
			return false;
	return true;
}

static bool flow_spec_fits(__be32 value, unsigned int bits)
{
	return ntohl(value) >> bits == 0;
}

static int check_layer(struct uvd_req *req, const struct uvd_flow_spec *spec)
{
	const union uvd_flow_filter *val = &spec->val, *mask = &spec->mask;

	switch (spec->type & ~(uint32_t)IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_IPV6:
		return flow_spec_fits(val->ipv6.flow_label, FLOW_LABEL_BITS) &&
				       flow_spec_fits(mask->ipv6.flow_label, FLOW_LABEL_BITS)
			       ? 0
			       : uvd_bad(req, -EINVAL, "flow_label", ntohl(val->ipv6.flow_label));
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
		return flow_spec_fits(val->tunnel.tunnel_id, TUNNEL_ID_BITS) &&
				       flow_spec_fits(mask->tunnel.tunnel_id, TUNNEL_ID_BITS)
			       ? 0
			       : uvd_bad(req, -EINVAL, "tunnel_id", ntohl(val->tunnel.tunnel_id));
	default:
		return 0;
	}
}

static int parse_layer(struct uvd_req *req, const struct spec_hdr *hdr, const uint8_t *buf, struct uvd_flow_spec *spec)
{
	const struct filter_kind *kind = find_kind(hdr->type);
	const uint8_t *val, *mask;
	size_t half, known;

	if (hdr->size < HDR)
		return uvd_bad(req, -EINVAL, "size of a flow spec", hdr->size);
	half = (hdr->size - HDR) / 2;
	if (!half || half % FILTER_ALIGN)
		return uvd_bad(req, -EINVAL, "size of a flow spec", hdr->size);
	if (!kind)
		return uvd_bad(req, -EINVAL, "type of a flow spec", hdr->type);
	val = buf + HDR;
	mask = val + half;
	known = half < kind->size ? half : kind->size;
	if (!flow_spec_is_zero(mask + known, half - known))
		return uvd_bad(req, -EINVAL, "mask of a flow spec", hdr->type);
	spec->type = hdr->type;
	memcpy(&spec->val, val, known);
	memcpy(&spec->mask, mask, known);
	return check_layer(req, spec);
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static int parse_tag(struct uvd_req *req, const struct spec_hdr *hdr, const uint8_t *buf, struct uvd_flow_spec *spec)
{
	struct ib_uverbs_flow_spec_action_tag tag;

	if (hdr->size != sizeof(tag))
		return uvd_bad(req, -EINVAL, "size of a flow spec", hdr->size);
	memcpy(&tag, buf, sizeof(tag));
	spec->tag_id = tag.tag_id;
	return 0;
}

static int parse_handle(struct uvd_req *req, const struct spec_hdr *hdr, const uint8_t *buf, struct uvd_flow_spec *spec)
{
	struct ib_uverbs_flow_spec_action_handle action;

	if (hdr->size != sizeof(action))
		return uvd_bad(req, -EOPNOTSUPP, "size of a flow spec", hdr->size);
	memcpy(&action, buf, sizeof(action));
	return uvd_req_object(req, UVERBS_OBJECT_FLOW_ACTION, action.handle, &spec->action);
}

static int parse_count(struct uvd_req *req, const struct spec_hdr *hdr, const uint8_t *buf, struct uvd_flow_spec *spec)
{
	struct ib_uverbs_flow_spec_action_count count;

	if (hdr->size != sizeof(count))
		return uvd_bad(req, -EINVAL, "size of a flow spec", hdr->size);
	memcpy(&count, buf, sizeof(count));
	return uvd_req_object(req, UVERBS_OBJECT_COUNTERS, count.handle, &spec->counters);
}

static int parse_action(struct uvd_req *req, const struct spec_hdr *hdr, const uint8_t *buf, struct uvd_flow_spec *spec)
{
	spec->type = hdr->type;
	switch (hdr->type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		return parse_tag(req, hdr, buf, spec);
	case IBV_FLOW_SPEC_ACTION_DROP:
		return hdr->size == HDR ? 0 : uvd_bad(req, -EINVAL, "size of a flow spec", hdr->size);
	case IBV_FLOW_SPEC_ACTION_HANDLE:
		return parse_handle(req, hdr, buf, spec);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return parse_count(req, hdr, buf, spec);
	default:
		return uvd_bad(req, -EINVAL, "type of a flow spec", hdr->type);
	}
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

int uvd_flow_parse_specs(struct uvd_req *req, const void *buf, size_t len, struct uvd_flow_spec *specs,
			 unsigned int num)
{
	const uint8_t *next = buf;
	struct spec_hdr hdr;
	unsigned int i;
	int ret;

	for (i = 0; i < num && len >= HDR; i++) {
		memcpy(&hdr, next, HDR);
		if (hdr.size > len)
			break;
		if (hdr.reserved)
			return uvd_bad(req, -EINVAL, "reserved word of a flow spec", hdr.reserved);
		ret = hdr.type >= IBV_FLOW_SPEC_ACTION_TAG ? parse_action(req, &hdr, next, &specs[i])
							   : parse_layer(req, &hdr, next, &specs[i]);
		if (ret)
			return ret;
		next += hdr.size;
		len -= hdr.size;
	}
	if (len || i != num)
		return uvd_bad(req, -EINVAL, "size of all flow specs", len);
	return 0;
}
