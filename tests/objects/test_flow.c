/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flows: what the backend gets of them, and the objects that they keep in use. tests/abi/rules_flow.c has the checks. */
#include "tests.h"

enum { HDR = 8 };

static uint32_t pd, cq;
static struct uv_qp qp;

static void begin(void)
{
	struct uv_qp_attr attr;

	h.call->caller.proc = &harness_root;
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	attr = uv_qp_attr(pd, cq);
	attr.type = IBV_QPT_UD;
	ck_assert_int_eq(uv_create_qp(h.fd, UV_WRITE, &attr, &qp), 0);
}

/* The next handle is still `next`, and no flow uses the QP. */
static void assert_no_leak(uint32_t next)
{
	uint32_t other;

	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &other), 0);
	ck_assert_uint_eq(other, next);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp.handle, NULL), 0);
}

/* ---- a command --------------------------------------------------------------------------------------------------- */

/* A CREATE_FLOW command. new_flow() makes a valid one without specs, to which add() appends. */
struct flow {
	struct ib_uverbs_create_flow cmd;
	uint8_t specs[256];
	size_t len; /* of the specs */
};

static struct flow new_flow(void)
{
	return (struct flow){ .cmd = { .qp_handle = qp.handle, .flow_attr = { .port = 1, .priority = 3 } } };
}

/* Adds a spec. body: what follows its header. */
static void add(struct flow *flow, uint32_t type, const void *body, uint16_t len)
{
	struct {
		uint32_t type;
		uint16_t size, reserved;
	} hdr = { type, HDR + len, 0 };

	memcpy(flow->specs + flow->len, &hdr, HDR);
	memcpy(flow->specs + flow->len + HDR, body, len);
	flow->len += HDR + len;
	flow->cmd.flow_attr.size += HDR + len;
	flow->cmd.flow_attr.num_of_specs++;
}

/* Adds an action with a body of 8 bytes. */
static void add_action(struct flow *flow, uint32_t type, uint32_t word)
{
	add(flow, type, (uint32_t[]){ word, 0 }, 8);
}

static int create(const struct flow *flow, uint32_t *handle)
{
	struct ib_uverbs_create_flow_resp resp = {};
	int ret = uv_cmd(
		h.fd, UV_WRITE_EX,
		&(struct uv_cmd){ UV_EX(CREATE_FLOW), flow, sizeof(flow->cmd) + flow->len, &resp, sizeof(resp) });

	if (handle)
		*handle = resp.flow_handle;
	return ret;
}

static int destroy(uint32_t handle)
{
	struct ib_uverbs_destroy_flow cmd = { .flow_handle = handle };

	return uv_cmd(h.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(DESTROY_FLOW), &cmd, sizeof(cmd) });
}

/* ---- the backend's view ------------------------------------------------------------------------------------------ */

static struct uvd_flow seen;
static struct uvd_flow_spec seen_specs[10];

static int see_flow(struct uvd_flow *flow, struct uvd_udata *udata)
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
	ck_assert_int_eq(destroy(handle), 0);
}

START_TEST(test_backend_gets_the_flow)
{
	struct flow flow;

	begin();
	flow = new_flow();
	flow.cmd.flow_attr.type = IBV_FLOW_ATTR_SNIFFER;
	flow.cmd.flow_attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;
	assert_taken(&flow);
	ck_assert_uint_eq(seen.type, IBV_FLOW_ATTR_SNIFFER);
	ck_assert_uint_eq(seen.flags, 6);
	ck_assert_uint_eq(seen.priority, 3);
	ck_assert_uint_eq(seen.port, 1);
	ck_assert_uint_eq(seen.num_specs, 0);
	ck_assert_ptr_nonnull(seen.qp);
	assert_no_leak(3);
}
END_TEST

static int refuse(struct uvd_flow *flow, struct uvd_udata *udata)
{
	return -EDOM;
}

START_TEST(test_flow_that_the_backend_refuses_leaves_nothing)
{
	struct flow flow;

	begin();
	flow = new_flow();
	flow.cmd.flow_attr.type = IBV_FLOW_ATTR_SNIFFER + 1;
	ck_assert_int_eq(create(&flow, NULL), -EINVAL); /* null's answer */
	flow = new_flow();
	h.ops.create_flow = refuse;
	ck_assert_int_eq(create(&flow, NULL), -EDOM);
	assert_no_leak(3);
}
END_TEST

static const struct layer {
	uint32_t type;
	size_t size; /* bytes of the filter that the core knows */
} layers[] = {
	{ IBV_FLOW_SPEC_ETH, 16 }, { IBV_FLOW_SPEC_IPV4, 12 }, { IBV_FLOW_SPEC_IPV6, 39 },
	{ IBV_FLOW_SPEC_TCP, 4 },  { IBV_FLOW_SPEC_UDP, 4 },   { IBV_FLOW_SPEC_ESP, 8 },
	{ IBV_FLOW_SPEC_GRE, 8 },  { IBV_FLOW_SPEC_MPLS, 4 },  { IBV_FLOW_SPEC_VXLAN_TUNNEL, 4 },
};

/*
 * Fills in valid values and masks. The first byte of a tunnel id must be 0. So must the upper 12 bits of IPv6's flow
 * label: it starts at byte 32, where 0xe0 + 32 wraps to 0.
 */
static void fill_filter(uint8_t *filter, uint32_t type, size_t half)
{
	uint8_t first = type == IBV_FLOW_SPEC_VXLAN_TUNNEL ? 0 : 0xe0;

	for (size_t i = 0; i < half; i++) {
		filter[i] = first + i;
		filter[half + i] = first + i;
	}
}

static void assert_seen(const uint8_t *filter, size_t half, size_t known)
{
	const uint8_t *val = (const uint8_t *)&seen_specs[0].val, *mask = (const uint8_t *)&seen_specs[0].mask;

	ck_assert_mem_eq(val, filter, known);
	ck_assert_mem_eq(mask, filter + half, known);
	for (size_t at = known; at < sizeof(union uvd_flow_filter); at++)
		ck_assert(val[at] == 0 && mask[at] == 0);
}

/* Filters shorter than a layer, as long, and longer: with a value that the core does not know, which no mask may have. */
START_TEST(test_backend_gets_every_layer_with_what_is_known_of_it)
{
	const struct layer *layer;
	uint8_t filter[80];
	struct flow flow;
	uint32_t type;
	size_t known;

	begin();
	for (layer = layers; layer < layers + UV_ARRAY_SIZE(layers); layer++) {
		for (size_t half = 4; half <= 40; half += 4) {
			known = half < layer->size ? half : layer->size;
			fill_filter(filter, layer->type, half);
			memset(filter + half + known, 0, half - known);
			flow = new_flow();
			type = layer->type;
			if (half == 4 && type != IBV_FLOW_SPEC_VXLAN_TUNNEL)
				type |= IBV_FLOW_SPEC_INNER;
			add(&flow, type, filter, 2 * half);
			assert_taken(&flow);
			ck_assert_uint_eq(seen.num_specs, 1);
			ck_assert_uint_eq(seen_specs[0].type, type);
			assert_seen(filter, half, known);
		}
	}
	assert_no_leak(3);
}
END_TEST

START_TEST(test_backend_gets_tag_and_drop)
{
	struct flow flow;

	begin();
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_TAG, 0x1234);
	add(&flow, IBV_FLOW_SPEC_ACTION_DROP, "", 0);
	assert_taken(&flow);
	ck_assert_uint_eq(seen.num_specs, 2);
	ck_assert_uint_eq(seen_specs[0].type, IBV_FLOW_SPEC_ACTION_TAG);
	ck_assert_uint_eq(seen_specs[0].tag_id, 0x1234);
	ck_assert_uint_eq(seen_specs[1].type, IBV_FLOW_SPEC_ACTION_DROP);
}
END_TEST

/* ---- actions and counters ---------------------------------------------------------------------------------------- */

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
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, handle);
	return uv_ioctl(h.fd, &tree);
}

START_TEST(test_flow_keeps_its_actions_in_use)
{
	struct uvd_flow_action *action;
	struct flow flow;
	uint32_t id, handle;

	begin();
	id = make_action(&action);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, id);
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, id);
	h.ops.create_flow = see_flow;
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_ptr_eq(seen_specs[1].action, action);
	ck_assert_int_eq(action->usecnt, 2);
	ck_assert_int_eq(destroy_action(id), -EBUSY);
	/* A second flow that is refused does not change usecnt. */
	h.ops.create_flow = refuse;
	ck_assert_int_eq(create(&flow, NULL), -EDOM);
	add_action(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 99);
	ck_assert_int_eq(create(&flow, NULL), -ENOENT);
	ck_assert_int_eq(action->usecnt, 2);
	ck_assert_int_eq(destroy(handle), 0);
	ck_assert_int_eq(destroy_action(id), 0);
	ck_assert_int_eq(destroy_action(id), -ENOENT);
	assert_no_leak(3);
}
END_TEST

START_TEST(test_backend_gets_the_counters)
{
	struct uv_tree tree;
	struct flow flow;
	uint32_t handle;

	begin();
	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	ck_assert_int_eq(uv_ioctl(h.fd, &tree), 0);
	flow = new_flow();
	add_action(&flow, IBV_FLOW_SPEC_ACTION_COUNT, tree.hdr.attrs[0].data);
	h.ops.create_flow = see_flow;
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_int_eq(seen_specs[0].counters->usecnt, 1);
	ck_assert_int_eq(destroy(handle), 0);
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

TEST_LIST(test_backend_gets_the_flow, test_flow_that_the_backend_refuses_leaves_nothing,
	  test_backend_gets_every_layer_with_what_is_known_of_it, test_backend_gets_tag_and_drop,
	  test_flow_keeps_its_actions_in_use, test_backend_gets_the_counters, test_close_ends_a_flow_before_its_qp)
