/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flows: the checks of CREATE_FLOW and their order, every kind of spec, and the objects that a flow keeps in use. */
#include <arpa/inet.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "tests.h"

enum { INNER = IBV_FLOW_SPEC_INNER, HDR = 8 };

static uint32_t pd, cq, qp;

static void begin(void)
{
	struct ib_uverbs_create_qp_resp resp = {};

	h.call->caller.proc = &harness_root;
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_UD, pd, cq, &resp), 0);
	qp = resp.qp_handle;
}

static int destroy_qp(uint32_t handle)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp resp;

	return WRITE(&h, DESTROY_QP, &cmd, &resp);
}

/* The next handle is still `next`, and no flow uses the QP. */
static void assert_no_leak(uint32_t next)
{
	uint32_t other;

	ck_assert_int_eq(harness_alloc_pd(&h, &other), 0);
	ck_assert_uint_eq(other, next);
	ck_assert_int_eq(destroy_qp(qp), 0);
}

/* ---- a command --------------------------------------------------------------------------------------------------- */

/* A CREATE_FLOW command. new_flow() makes a valid one without specs, and the add functions append to it. */
struct flow {
	struct ib_uverbs_create_flow cmd;
	uint8_t specs[1024];
	size_t len; /* bytes of specs, and of anything after them */
};

static struct flow new_flow(void)
{
	return (struct flow){ .cmd = { .qp_handle = qp, .flow_attr = { .port = 1, .priority = 3 } } };
}

static void add_bytes(struct flow *flow, const void *bytes, size_t len)
{
	memcpy(flow->specs + flow->len, bytes, len);
	flow->len += len;
	flow->cmd.flow_attr.size += len;
}

static void add_hdr(struct flow *flow, uint32_t type, uint16_t size, uint16_t reserved)
{
	struct {
		uint32_t type;
		uint16_t size, reserved;
	} hdr = { type, size, reserved };

	add_bytes(flow, &hdr, sizeof(hdr));
	flow->cmd.flow_attr.num_of_specs++;
}

/* Adds a layer with the values val, val + 1... and the masks mask, mask + 1... half: bytes of each. */
static void add_layer(struct flow *flow, uint32_t type, size_t half, uint8_t val, uint8_t mask)
{
	uint8_t filter[256];

	add_hdr(flow, type, HDR + 2 * half, 0);
	for (size_t i = 0; i < half; i++) {
		filter[i] = val + i;
		filter[half + i] = mask + i;
	}
	add_bytes(flow, filter, 2 * half);
}

/* Adds a layer with these values and a mask that is 0 except for the byte `masked` (none if negative). */
static void add_filter(struct flow *flow, uint32_t type, size_t half, const void *val, size_t len, int masked)
{
	uint8_t filter[256] = {};

	add_hdr(flow, type, HDR + 2 * half, 0);
	memcpy(filter, val, len);
	if (masked >= 0)
		filter[half + masked] = 0xff;
	add_bytes(flow, filter, 2 * half);
}

/* Adds an action of `size` bytes: the header, and if there is room `word` and zeros. */
static void add_action(struct flow *flow, uint32_t type, uint16_t size, uint32_t word)
{
	uint32_t words[8] = { word };

	add_hdr(flow, type, size, 0);
	add_bytes(flow, words, size - HDR);
}

static int create_len(const struct flow *flow, size_t len, uint32_t *handle)
{
	struct ib_uverbs_create_flow_resp resp = { .comp_mask = 9 };
	int ret = harness_write_ex(&h, IB_USER_VERBS_EX_CMD_CREATE_FLOW, flow, len, &resp, sizeof(resp));

	if (!ret)
		ck_assert_uint_eq(resp.comp_mask, 0);
	if (handle)
		*handle = resp.flow_handle;
	return ret;
}

static int create(const struct flow *flow, uint32_t *handle)
{
	return create_len(flow, sizeof(flow->cmd) + flow->len, handle);
}

static int destroy_flow(uint32_t handle)
{
	struct ib_uverbs_destroy_flow cmd = { .flow_handle = handle };

	return WRITE_EX_IN(&h, DESTROY_FLOW, &cmd);
}

/* ---- the backend's view ------------------------------------------------------------------------------------------ */

static struct uvd_flow seen;
static struct uvd_flow_spec seen_specs[10];

static int see_flow(struct uvd_flow *flow)
{
	seen = *flow;
	memset(seen_specs, 0, sizeof(seen_specs));
	if (flow->num_specs)
		memcpy(seen_specs, flow->specs, flow->num_specs * sizeof(*flow->specs));
	return 0;
}

/* Creates the flow and destroys it. seen and seen_specs keep what the backend got. */
static void assert_taken(const struct flow *flow)
{
	uint32_t handle = ~0u;

	h.ops.create_flow = see_flow;
	ck_assert_int_eq(create(flow, &handle), 0);
	ck_assert_int_eq(destroy_flow(handle), 0);
}

START_TEST(test_flow_without_specs_by_every_front)
{
	struct ib_uverbs_create_flow_resp resp = {};
	struct harness_tree tree = {};
	struct flow flow;
	uint32_t handle;

	begin();
	flow = new_flow();
	flow.cmd.flow_attr.type = IBV_FLOW_ATTR_SNIFFER;
	flow.cmd.flow_attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;
	h.ops.create_flow = see_flow;
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_uint_eq(handle, 3);
	ck_assert_uint_eq(seen.type, IBV_FLOW_ATTR_SNIFFER);
	ck_assert_uint_eq(seen.flags, 6);
	ck_assert_uint_eq(seen.priority, 3);
	ck_assert_uint_eq(seen.port, 1);
	ck_assert_uint_eq(seen.num_specs, 0);
	ck_assert_ptr_nonnull(seen.qp);
	ck_assert_int_eq(destroy_qp(qp), -EBUSY);
	ck_assert_int_eq(destroy_flow(handle), 0);
	ck_assert_int_eq(destroy_flow(handle), -ENOENT);
	ck_assert_int_eq(destroy_flow(qp), -EINVAL);
	ck_assert_int_eq(INVOKE_EX(&h, CREATE_FLOW, &flow.cmd, &resp), 0);
	ck_assert_uint_eq(resp.flow_handle, 3);
	tree_object(&tree, UVERBS_ATTR_DESTROY_FLOW_HANDLE, 3);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, &tree), 0);
	assert_no_leak(3);
}
END_TEST

static int refuse(struct uvd_flow *flow)
{
	return -EDOM;
}

/* The first call has every error. Each step repairs the error that is checked first, and the next one shows. */
START_TEST(test_flow_01_order_of_checks)
{
	struct ib_uverbs_flow_attr *attr;
	struct flow flow;

	begin();
	flow = new_flow();
	attr = &flow.cmd.flow_attr;
	flow.cmd.comp_mask = 1;
	attr->flags = 8;
	attr->num_of_specs = 11;
	attr->size = UINT16_MAX;
	attr->reserved[1] = 1;
	attr->port = 0;
	flow.cmd.qp_handle = 99;
	ck_assert_int_eq(create_len(&flow, 16, NULL), -ENOSPC);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow.cmd.comp_mask = 0;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	attr->flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	attr->type = IBV_FLOW_ATTR_ALL_DEFAULT;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	attr->type = IBV_FLOW_ATTR_MC_DEFAULT;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	attr->type = IBV_FLOW_ATTR_NORMAL;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	attr->num_of_specs = 10;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	attr->size = 10 * 88;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	attr->reserved[1] = 0;
	ck_assert_int_eq(create(&flow, NULL), -ENOSPC);
	/* All specs are there, and 16 or 8 bytes follow. */
	flow.specs[880 + 8] = 1;
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 880 + 16, NULL), -EOPNOTSUPP);
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 880 + 8, NULL), -EINVAL);
	attr->port = 1;
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 880, NULL), -ENOENT);
	flow.cmd.qp_handle = cq;
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 880, NULL), -EINVAL);
	flow.cmd.qp_handle = qp;
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 880, NULL), -EINVAL);
	flow = new_flow();
	h.ops.create_flow = refuse;
	ck_assert_int_eq(create(&flow, NULL), -EDOM);
	assert_no_leak(3);
}
END_TEST

/* Each error alone makes the call fail. test_flow_01_order_of_checks would not notice a missing check. */
START_TEST(test_flow_01_each_check_alone)
{
	struct ib_uverbs_destroy_flow destroy = { .comp_mask = 1 };
	struct flow flow;

	begin();
#define REFUSED(field, value, err) \
	flow = new_flow(); \
	flow.cmd.field = value; \
	ck_assert_int_eq(create(&flow, NULL), -(err))
	REFUSED(comp_mask, 1, EINVAL);
	REFUSED(flow_attr.flags, 8, EINVAL);
	REFUSED(flow_attr.flags, 1u << 31, EINVAL);
	REFUSED(flow_attr.num_of_specs, 11, EINVAL);
	REFUSED(flow_attr.num_of_specs, 1, EINVAL);
	REFUSED(flow_attr.size, 1, EINVAL);
	REFUSED(flow_attr.reserved[0], 1, EINVAL);
	REFUSED(flow_attr.reserved[1], 1, EINVAL);
	REFUSED(flow_attr.port, 0, EINVAL);
	REFUSED(flow_attr.port, 2, EINVAL);
	REFUSED(flow_attr.type, IBV_FLOW_ATTR_SNIFFER + 1, EINVAL);
	REFUSED(qp_handle, 99, ENOENT);
	REFUSED(qp_handle, pd, EINVAL);
	flow = new_flow();
	flow.cmd.flow_attr.num_of_specs = 1;
	flow.cmd.flow_attr.size = 89;
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 96, NULL), -EINVAL);
	/* Zeros after the specs are ignored. */
	flow = new_flow();
	ck_assert_int_eq(create_len(&flow, sizeof(flow.cmd) + 64, &destroy.flow_handle), 0);
	ck_assert_int_eq(WRITE_EX_IN(&h, DESTROY_FLOW, &destroy), -EINVAL);
	ck_assert_int_eq(destroy_flow(destroy.flow_handle), 0);
	flow = new_flow();
	ck_assert_int_eq(harness_write_ex(&h, IB_USER_VERBS_EX_CMD_CREATE_FLOW, &flow, sizeof(flow.cmd), BAD, 8),
			 -EFAULT);
	assert_no_leak(3);
}
END_TEST

START_TEST(test_regression_11_flow_on_a_qp_of_another_type_is_einval)
{
	static const uint8_t types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_DRIVER };
	struct ib_uverbs_create_qp_resp resp;
	struct flow flow;

	begin();
	for (size_t i = 0; i < sizeof(types); i++) {
		ck_assert_int_eq(harness_create_qp(&h, types[i], pd, cq, &resp), 0);
		flow = new_flow();
		flow.cmd.qp_handle = resp.qp_handle;
		ck_assert_int_eq(create(&flow, NULL), -EINVAL);
		ck_assert_int_eq(destroy_qp(resp.qp_handle), 0);
	}
	if (!harness_create_qp(&h, IBV_QPT_RAW_PACKET, pd, cq, &resp)) {
		flow = new_flow();
		flow.cmd.qp_handle = resp.qp_handle;
		assert_taken(&flow);
	}
}
END_TEST

/* Drops CAP_NET_RAW, and has the core read the real capabilities instead of harness_root's. */
static void drop_net_raw(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	ck_assert_int_eq(syscall(SYS_capget, &hdr, data), 0);
	data[0].effective &= ~(1u << CAP_NET_RAW);
	ck_assert_int_eq(syscall(SYS_capset, &hdr, data), 0);
	h.call->caller.proc = &uvd_proc_local;
}

START_TEST(test_flow_01_without_cap_net_raw_is_eperm_before_all_but_the_comp_mask)
{
	struct flow flow;
	uint32_t handle;

	begin();
	flow = new_flow();
	ck_assert_int_eq(create(&flow, &handle), 0);
	drop_net_raw();
	ck_assert_int_eq(create(&flow, NULL), -EPERM);
	flow.cmd.flow_attr.flags = 8;
	ck_assert_int_eq(create(&flow, NULL), -EPERM);
	flow.cmd.comp_mask = 1;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	/* Destruction needs no capability. */
	ck_assert_int_eq(destroy_flow(handle), 0);
}
END_TEST

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static const struct layer {
	uint32_t type;
	size_t size; /* bytes of the filter that the core knows */
} layers[] = {
	{ IBV_FLOW_SPEC_ETH, 16 }, { IBV_FLOW_SPEC_IPV4, 12 }, { IBV_FLOW_SPEC_IPV6, 39 },
	{ IBV_FLOW_SPEC_TCP, 4 },  { IBV_FLOW_SPEC_UDP, 4 },   { IBV_FLOW_SPEC_ESP, 8 },
	{ IBV_FLOW_SPEC_GRE, 8 },  { IBV_FLOW_SPEC_MPLS, 4 },  { IBV_FLOW_SPEC_VXLAN_TUNNEL, 4 },
};

enum { NUM_LAYERS = sizeof(layers) / sizeof(layers[0]) };

/*
 * Adds a layer with valid values. The first byte of a tunnel id must be 0. So must the upper 12 bits of IPv6's flow
 * label: it starts at byte 32, where 0xe0 + 32 wraps to 0.
 */
static void add_valid(struct flow *flow, uint32_t type, size_t half)
{
	add_layer(flow, type, half, type == IBV_FLOW_SPEC_VXLAN_TUNNEL ? 0 : 0xe0,
		  type == IBV_FLOW_SPEC_VXLAN_TUNNEL ? 0 : 0xe0);
}

static void assert_seen(unsigned int i, const struct flow *flow, size_t half, size_t known)
{
	const uint8_t *filter = flow->specs + HDR, *val = (const uint8_t *)&seen_specs[i].val,
		      *mask = (const uint8_t *)&seen_specs[i].mask;

	ck_assert_mem_eq(val, filter, known);
	ck_assert_mem_eq(mask, filter + half, known);
	for (size_t at = known; at < sizeof(union uvd_flow_filter); at++)
		ck_assert(val[at] == 0 && mask[at] == 0);
}

START_TEST(test_flow_02_every_layer_comes_to_the_backend_with_what_is_known_of_it)
{
	struct flow flow;
	uint32_t type;

	begin();
	for (int i = 0; i < NUM_LAYERS; i++) {
		for (int inner = 0; inner < 2; inner++) {
			type = layers[i].type | (inner ? INNER : 0);
			/* Filters up to the known size. IPv6's last byte is reserved: no mask may have it. */
			for (size_t half = 4; half <= 40; half += 4) {
				if (type == IBV_FLOW_SPEC_IPV6 || type == (INNER | IBV_FLOW_SPEC_IPV6)) {
					if (half == 40)
						continue;
				} else if (half > layers[i].size) {
					continue;
				}
				flow = new_flow();
				add_valid(&flow, type, half);
				/* A VXLAN tunnel cannot be inner. */
				if (type == (INNER | IBV_FLOW_SPEC_VXLAN_TUNNEL)) {
					ck_assert_int_eq(create(&flow, NULL), -EINVAL);
					continue;
				}
				assert_taken(&flow);
				ck_assert_uint_eq(seen.num_specs, 1);
				ck_assert_uint_eq(seen_specs[0].type, type);
				assert_seen(0, &flow, half, half < layers[i].size ? half : layers[i].size);
			}
		}
	}
	assert_no_leak(3);
}
END_TEST

START_TEST(test_flow_02_longer_filter_must_not_mask_what_is_not_known)
{
	static const uint8_t val[40] = { [39] = 7 };
	struct flow flow;
	size_t half;

	begin();
	for (int i = 0; i < NUM_LAYERS; i++) {
		half = (layers[i].size + 4) & ~3u;
		flow = new_flow();
		add_filter(&flow, layers[i].type, half, val, half, -1);
		assert_taken(&flow);
		for (size_t at = layers[i].size; at < half; at++) {
			flow = new_flow();
			add_filter(&flow, layers[i].type, half, val, half, at);
			ck_assert_int_eq(create(&flow, NULL), -EINVAL);
		}
	}
	assert_no_leak(3);
}
END_TEST

START_TEST(test_flow_02_filter_sizes)
{
	static const uint16_t sizes[] = { 0, 1, 7, 8, 9, 10, 12, 14, 18, 20, 22, 28 };
	uint8_t zeros[64] = {};
	struct flow flow;

	begin();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		flow = new_flow();
		add_hdr(&flow, IBV_FLOW_SPEC_ETH, sizes[i], 0);
		add_bytes(&flow, zeros, sizes[i] > HDR ? sizes[i] - HDR : 0);
		ck_assert_msg(create(&flow, NULL) == -EINVAL, "size %u", sizes[i]);
	}
	/* (9 bytes) / 2 makes two halves of 4 bytes: an odd byte is ignored. */
	flow = new_flow();
	add_hdr(&flow, IBV_FLOW_SPEC_ETH, HDR + 9, 0);
	add_bytes(&flow, zeros, 9);
	assert_taken(&flow);
	assert_no_leak(3);
}
END_TEST

START_TEST(test_flow_02_labels_and_tunnels_have_their_bits)
{
	struct ib_uverbs_flow_spec_ipv6 ipv6 = { .type = IBV_FLOW_SPEC_IPV6, .size = sizeof(ipv6) };
	struct ib_uverbs_flow_spec_tunnel vxlan = { .type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(vxlan) };
	struct flow flow;

	begin();
	for (int masked = 0; masked < 2; masked++) {
		for (int over = 0; over < 2; over++) {
			ipv6.val.flow_label = htonl(masked ? 0 : (1 << 20) - 1 + over);
			ipv6.mask.flow_label = htonl(masked ? (1 << 20) - 1 + over : 0);
			flow = new_flow();
			add_bytes(&flow, &ipv6, sizeof(ipv6));
			flow.cmd.flow_attr.num_of_specs = 1;
			ck_assert_int_eq(create(&flow, NULL), over ? -EINVAL : 0);
			vxlan.val.tunnel_id = htonl(masked ? 0 : (1 << 24) - 1 + over);
			vxlan.mask.tunnel_id = htonl(masked ? (1 << 24) - 1 + over : 0);
			flow = new_flow();
			add_bytes(&flow, &vxlan, sizeof(vxlan));
			flow.cmd.flow_attr.num_of_specs = 1;
			ck_assert_int_eq(create(&flow, NULL), over ? -EINVAL : 0);
		}
	}
}
END_TEST

START_TEST(test_flow_02_unknown_types_and_reserved_words_are_einval)
{
	static const uint32_t types[] = { 0,	 0x21,	 0x22,	 0x32,	 0x42,	    0x61, 0xff, 0x120 | 0x200,
					  0xfff, 0x1004, 0x1100, 0x2020, 0x80000020 };
	struct flow flow;

	begin();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		flow = new_flow();
		add_layer(&flow, types[i], 4, 0, 0);
		ck_assert_msg(create(&flow, NULL) == -EINVAL, "type %x", types[i]);
	}
	flow = new_flow();
	add_hdr(&flow, IBV_FLOW_SPEC_ACTION_DROP, HDR, 1);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow = new_flow();
	add_layer(&flow, IBV_FLOW_SPEC_ETH, 16, 0, 0);
	flow.specs[6] = 1;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	assert_no_leak(3);
}
END_TEST

START_TEST(test_flow_02_number_and_size_of_specs_must_agree)
{
	struct flow flow;

	begin();
	/* 10 of the longest specs are the maximum. */
	flow = new_flow();
	for (int i = 0; i < 10; i++)
		add_filter(&flow, IBV_FLOW_SPEC_IPV6, 40, "", 1, -1);
	assert_taken(&flow);
	ck_assert_uint_eq(seen.num_specs, 10);
	/* num_of_specs is one too small, then one too large. Then the last spec is cut off. */
	flow.cmd.flow_attr.num_of_specs = 9;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_DROP, HDR, 0);
	flow.cmd.flow_attr.num_of_specs = 2;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	add_filter(&flow, IBV_FLOW_SPEC_ETH, 16, "", 1, -1);
	flow.cmd.flow_attr.num_of_specs = 2;
	assert_taken(&flow);
	flow.cmd.flow_attr.size -= 8;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow.cmd.flow_attr.size = HDR + 4;
	memset(flow.specs + HDR + 4, 0, 4);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_DROP, HDR, 0);
	add_bytes(&flow, (uint64_t[1]){}, 8);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow = new_flow();
	for (int i = 0; i < 11; i++)
		add_action(&flow, IBV_FLOW_SPEC_ACTION_DROP, HDR, 0);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	/* The core does not parse a spec that ends beyond the list. */
	flow = new_flow();
	add_hdr(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 12, 0);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	/* A bad spec decides the errno before num_of_specs, which is wrong as well. */
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 12, 0);
	flow.cmd.flow_attr.num_of_specs = 2;
	ck_assert_int_eq(create(&flow, NULL), -EOPNOTSUPP);
	assert_no_leak(3);
}
END_TEST

/* ---- actions ----------------------------------------------------------------------------------------------------- */

/* Makes a flow action in the core: no command of the common ABI makes one. */
static uint32_t make_action(struct uvd_flow_action **action)
{
	struct uvd_uobject *uobj;

	ck_assert_int_eq(uvd_uobject_begin(h.file, &uvd_object_flow_action, &uobj), 0);
	*action = uobj->object = calloc(1, sizeof(**action));
	uvd_uobject_commit(uobj);
	return uobj->id;
}

static int destroy_action(uint32_t handle)
{
	struct harness_tree tree = {};

	tree_object(&tree, UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, handle);
	return harness_ioctl(&h, UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY, &tree);
}

START_TEST(test_flow_02_tag_and_drop)
{
	struct flow flow;

	begin();
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_TAG, 16, 0x1234);
	add_action(&flow, IBV_FLOW_SPEC_ACTION_DROP, HDR, 0);
	assert_taken(&flow);
	ck_assert_uint_eq(seen.num_specs, 2);
	ck_assert_uint_eq(seen_specs[0].type, IBV_FLOW_SPEC_ACTION_TAG);
	ck_assert_uint_eq(seen_specs[0].tag_id, 0x1234);
	ck_assert_uint_eq(seen_specs[1].type, IBV_FLOW_SPEC_ACTION_DROP);
	for (uint16_t size = HDR; size <= 24; size += 4) {
		flow = new_flow();
		add_action(&flow, IBV_FLOW_SPEC_ACTION_TAG, size, 0);
		ck_assert_int_eq(create(&flow, NULL), size == 16 ? 0 : -EINVAL);
		flow = new_flow();
		add_action(&flow, IBV_FLOW_SPEC_ACTION_DROP, size, 0);
		ck_assert_int_eq(create(&flow, NULL), size == 8 ? 0 : -EINVAL);
		flow = new_flow();
		add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, size, 99);
		ck_assert_int_eq(create(&flow, NULL), size == 16 ? -ENOENT : -EOPNOTSUPP);
	}
}
END_TEST

START_TEST(test_flow_keeps_its_actions_in_use)
{
	struct uvd_flow_action *action;
	struct flow flow;
	uint32_t id, handle;

	begin();
	id = make_action(&action);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 16, qp);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 16, id);
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 16, id);
	h.ops.create_flow = see_flow;
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_ptr_eq(seen_specs[1].action, action);
	ck_assert_int_eq(action->usecnt, 2);
	ck_assert_int_eq(destroy_action(id), -EBUSY);
	/* A second flow that is refused does not change usecnt. */
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 16, 99);
	ck_assert_int_eq(create(&flow, NULL), -ENOENT);
	h.ops.create_flow = refuse;
	flow.cmd.flow_attr.size -= 16;
	flow.cmd.flow_attr.num_of_specs--;
	flow.len -= 16;
	ck_assert_int_eq(create(&flow, NULL), -EDOM);
	ck_assert_int_eq(action->usecnt, 2);
	ck_assert_int_eq(destroy_flow(handle), 0);
	ck_assert_int_eq(destroy_action(id), 0);
	ck_assert_int_eq(destroy_action(id), -ENOENT);
	assert_no_leak(3);
}
END_TEST

START_TEST(test_flow_keeps_its_counters_in_use)
{
	struct harness_tree tree = {}, gone = {};
	struct ib_uverbs_attr *counters;
	struct flow flow;
	uint32_t handle;

	begin();
	counters = tree_object(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, &tree), 0);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_COUNT, 16, qp);
	ck_assert_int_eq(create(&flow, NULL), -EINVAL);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_COUNT, 16, 99);
	ck_assert_int_eq(create(&flow, NULL), -ENOENT);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_COUNT, 16, counters->data);
	h.ops.create_flow = see_flow;
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_int_eq(seen_specs[0].counters->usecnt, 1);
	tree_object(&gone, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, counters->data);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, &gone), -EBUSY);
	ck_assert_int_eq(destroy_flow(handle), 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, &gone), 0);
	assert_no_leak(3);
}
END_TEST

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static int refusals, qps_destroyed;

static int refuse_once(struct uvd_flow *flow)
{
	return refusals++ ? 0 : -EAGAIN;
}

static int (*null_destroy_qp)(struct uvd_qp *qp);

static int count_qp(struct uvd_qp *gone)
{
	ck_assert_int_eq(refusals, 2);
	qps_destroyed++;
	return null_destroy_qp(gone);
}

/* The backend refuses to destroy the flow at first. The QP must live until the flow is destroyed. */
START_TEST(test_close_ends_a_flow_before_its_qp)
{
	struct flow flow;

	begin();
	flow = new_flow();
	ck_assert_int_eq(create(&flow, NULL), 0);
	null_destroy_qp = h.ops.destroy_qp;
	h.ops.destroy_qp = count_qp;
	h.ops.destroy_flow = refuse_once;
	harness_close_file(&h);
	ck_assert_int_eq(qps_destroyed, 1);
}
END_TEST

/* The kernel reads an ioctl's input piece by piece: an error in an earlier piece wins over a fault in a later one. */
START_TEST(test_flow_input_that_ends_at_unmapped_memory)
{
	const uint32_t command = IB_USER_VERBS_EX_CMD_CREATE_FLOW | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	size_t page = sysconf(_SC_PAGESIZE), len;
	uint8_t *memory = aligned_alloc(page, 2 * page);
	struct ib_uverbs_create_flow_resp resp;
	struct flow flow;

	begin();
	ck_assert_int_eq(mprotect(memory + page, page, PROT_NONE), 0);
	flow = new_flow();
	add_layer(&flow, IBV_FLOW_SPEC_ETH, 16, 0, 0);
	len = sizeof(flow.cmd) + flow.len;
	memcpy(memory + page - len + 8, &flow, len - 8);
	ck_assert_int_eq(harness_invoke(&h, command, memory + page - len + 8, len, &resp, sizeof(resp)), -EFAULT);
	((struct ib_uverbs_create_flow *)(memory + page - len + 8))->comp_mask = 1;
	ck_assert_int_eq(harness_invoke(&h, command, memory + page - len + 8, len, &resp, sizeof(resp)), -EINVAL);
	memcpy(memory + page - len, &flow, len);
	ck_assert_int_eq(harness_invoke(&h, command, memory + page - len, len + 8, &resp, sizeof(resp)), -EOPNOTSUPP);
	ck_assert_int_eq(harness_invoke(&h, command, memory + page - len, len, &resp, sizeof(resp)), 0);
	ck_assert_int_eq(mprotect(memory + page, page, PROT_READ | PROT_WRITE), 0);
	free(memory);
}
END_TEST

TEST_LIST(test_flow_without_specs_by_every_front, test_flow_01_order_of_checks, test_flow_01_each_check_alone,
	  test_regression_11_flow_on_a_qp_of_another_type_is_einval,
	  test_flow_01_without_cap_net_raw_is_eperm_before_all_but_the_comp_mask,
	  test_flow_02_every_layer_comes_to_the_backend_with_what_is_known_of_it,
	  test_flow_02_longer_filter_must_not_mask_what_is_not_known, test_flow_02_filter_sizes,
	  test_flow_02_labels_and_tunnels_have_their_bits, test_flow_02_unknown_types_and_reserved_words_are_einval,
	  test_flow_02_number_and_size_of_specs_must_agree, test_flow_02_tag_and_drop,
	  test_flow_keeps_its_actions_in_use, test_flow_keeps_its_counters_in_use, test_close_ends_a_flow_before_its_qp,
	  test_flow_input_that_ends_at_unmapped_memory)
