/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flows. rxe and the soft backend do not steer packets: there the tests only check that flows are absent. For the null
 * backend the standard is docs/abi-rules.md, which was derived from the kernel's source.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <unistd.h>
#include "abi.h"

enum { HDR = 8, INNER = IBV_FLOW_SPEC_INNER, MEMLOCK = 1 << 20 };

/* ---- a command --------------------------------------------------------------------------------------------------- */

/* A CREATE_FLOW command to which specs are added. */
struct flow {
	struct ib_uverbs_create_flow cmd;
	uint8_t specs[1024];
	size_t len; /* of the specs */
};

/* A valid flow without specs. */
static struct flow new_flow(const struct bed *bed)
{
	return (struct flow){ .cmd = { .qp_handle = bed->qp.handle, .flow_attr = { .port = 1 } } };
}

static void add_bytes(struct flow *flow, const void *bytes, size_t len)
{
	memcpy(flow->specs + flow->len, bytes, len);
	flow->len += len;
	flow->cmd.flow_attr.size += len;
}

/* Adds a spec whose header gives `size`, filled with zeros up to that size. */
static void add_spec(struct flow *flow, uint32_t type, uint16_t size, uint16_t reserved)
{
	struct {
		uint32_t type;
		uint16_t size, reserved;
	} hdr = { type, size, reserved };
	static const uint8_t zeros[256];

	add_bytes(flow, &hdr, HDR);
	if (size > HDR)
		add_bytes(flow, zeros, size - HDR);
	flow->cmd.flow_attr.num_of_specs++;
}

static struct flow one_spec(const struct bed *bed, uint32_t type, uint16_t size)
{
	struct flow flow = new_flow(bed);

	add_spec(&flow, type, size, 0);
	return flow;
}

static int create_len(const struct bed *bed, enum uv_front front, const struct flow *flow, size_t len, uint32_t *handle)
{
	struct ib_uverbs_create_flow_resp resp = { .comp_mask = 9 };
	int ret = uv_cmd(bed->fd, front, &(struct uv_cmd){ UV_EX(CREATE_FLOW), flow, len, &resp, sizeof(resp) });

	if (!ret)
		ck_assert_uint_eq(resp.comp_mask, 0);
	if (handle)
		*handle = resp.flow_handle;
	return ret;
}

static int create(const struct bed *bed, enum uv_front front, const struct flow *flow, uint32_t *handle)
{
	return create_len(bed, front, flow, (sizeof(flow->cmd) + flow->len + 7) & ~7ul, handle);
}

static int destroy(const struct bed *bed, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_destroy_flow cmd = { .flow_handle = handle };
	struct uv_tree tree;

	if (front != UV_METHOD)
		return uv_cmd(bed->fd, front, &(struct uv_cmd){ UV_EX(DESTROY_FLOW), &cmd, sizeof(cmd) });
	uv_tree_init(&tree, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_FLOW_HANDLE, handle);
	return uv_ioctl(bed->fd, &tree);
}

/* Tries to create the flow and expects err. If err is 0, destroys the flow again. */
static void expect_flow(const struct bed *bed, enum uv_front front, const struct flow *flow, int err)
{
	uint32_t handle;

	expect(create(bed, front, flow, &handle), err);
	if (!err)
		expect_ok(destroy(bed, front, handle));
}

static bool has_flows(int fd)
{
	if (has_ex(fd, UV_EX(CREATE_FLOW)))
		return true;
	expect_absent(fd, UV_EX(CREATE_FLOW), UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY);
	expect_absent(fd, UV_EX(DESTROY_FLOW), UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY);
	return false;
}

/*
 * Makes a PD, a CQ and a UD QP, which can be the target of flows: handles 0 to 2. Returns false if the driver has no
 * flows or this process may not create any.
 */
static bool make_flow_bed(struct bed *bed)
{
	struct uv_qp_attr attr;
	struct flow flow;
	int ret;

	*bed = (struct bed){ .fd = open_context(NULL) };
	if (!has_flows(bed->fd))
		return false;
	expect_ok(uv_alloc_pd(bed->fd, UV_WRITE, &bed->pd));
	expect_ok(uv_create_cq(bed->fd, UV_WRITE, &uv_cq_default, &bed->cq, NULL));
	attr = uv_qp_attr(bed->pd, bed->cq);
	attr.type = IBV_QPT_UD;
	expect_ok(uv_create_qp(bed->fd, UV_WRITE, &attr, &bed->qp));
	flow = new_flow(bed);
	flow.cmd.flow_attr.flags = 8;
	ret = create(bed, UV_WRITE, &flow, NULL);
	ck_assert_msg(ret == (geteuid() ? -EPERM : -EINVAL), "%s", answer(ret));
	return ret == -EINVAL;
}

/* ---- flow-01 ----------------------------------------------------------------------------------------------------- */

START_TEST(test_flow_keeps_its_qp_in_use)
{
	enum uv_front plain = _i == 2 ? UV_WRITE : _i;
	enum uv_front front = _i == 2 ? UV_METHOD : _i;
	struct bed bed;
	struct flow flow;
	uint32_t handle;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	flow = new_flow(&bed);
	expect_ok(create(&bed, plain, &flow, &handle));
	ck_assert_uint_eq(handle, 3);
	expect(uv_destroy_qp(bed.fd, UV_WRITE, bed.qp.handle, NULL), EBUSY);
	expect(destroy(&bed, front, bed.cq), EINVAL);
	expect_ok(destroy(&bed, front, handle));
	expect(destroy(&bed, front, handle), ENOENT);
	expect_ok(uv_destroy_qp(bed.fd, UV_WRITE, bed.qp.handle, NULL));
}
END_TEST

/* Each call has the error under test and all those that are checked later. The next call corrects one of them. */
START_TEST(test_flow_01_order_of_checks)
{
	struct ib_uverbs_flow_attr *attr;
	struct flow flow = {};
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	attr = &flow.cmd.flow_attr;
	flow.cmd = (struct ib_uverbs_create_flow){ .comp_mask = 1, .qp_handle = 99 };
	*attr = (struct ib_uverbs_flow_attr){ .size = 0xffff, .num_of_specs = 11, .reserved = { 0, 1 }, .flags = 8 };
	expect(create_len(&bed, _i, &flow, 16, NULL), ENOSPC);
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	flow.cmd.comp_mask = 0;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->flags = 2;
	attr->type = IBV_FLOW_ATTR_ALL_DEFAULT;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->type = IBV_FLOW_ATTR_MC_DEFAULT;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->type = IBV_FLOW_ATTR_NORMAL;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->num_of_specs = 10;
	attr->size = 881;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->size = 880;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->reserved[1] = 0;
	attr->reserved[0] = 1;
	expect(create_len(&bed, _i, &flow, 24, NULL), EINVAL);
	attr->reserved[0] = 0;
	expect(create_len(&bed, _i, &flow, 24, NULL), ENOSPC);
	flow.specs[880] = 1;
	expect(create_len(&bed, _i, &flow, 24 + 888, NULL), EOPNOTSUPP);
	flow.specs[880] = 0;
	expect(create_len(&bed, _i, &flow, 24 + 888, NULL), EINVAL);
	attr->port = 1;
	expect(create_len(&bed, _i, &flow, 24 + 888, NULL), ENOENT);
	flow.cmd.qp_handle = bed.cq;
	expect(create_len(&bed, _i, &flow, 24 + 888, NULL), EINVAL);
	flow.cmd.qp_handle = bed.qp.handle;
	expect(create_len(&bed, _i, &flow, 24 + 888, NULL), EINVAL); /* spec type 0 */
	ck_assert_uint_eq(next_handle(bed.fd), 3);
}
END_TEST

START_TEST(test_flow_01_each_check_alone)
{
	struct ib_uverbs_destroy_flow cmd = { .comp_mask = 1 };
	struct flow flow;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
#define EXPECT_FIELD(field, value, err) \
	do { \
		struct flow flow_ = new_flow(&bed); \
		flow_.cmd.field = value; \
		expect_flow(&bed, _i, &flow_, err); \
	} while (0)
	EXPECT_FIELD(comp_mask, 0, 0);
	EXPECT_FIELD(comp_mask, 1, EINVAL);
	EXPECT_FIELD(flow_attr.flags, 6, 0);
	EXPECT_FIELD(flow_attr.flags, 8, EINVAL);
	EXPECT_FIELD(flow_attr.flags, 1u << 31, EINVAL);
	EXPECT_FIELD(flow_attr.num_of_specs, 11, EINVAL);
	EXPECT_FIELD(flow_attr.num_of_specs, 1, EINVAL);
	EXPECT_FIELD(flow_attr.size, 1, EINVAL);
	EXPECT_FIELD(flow_attr.reserved[0], 1, EINVAL);
	EXPECT_FIELD(flow_attr.reserved[1], 1, EINVAL);
	EXPECT_FIELD(flow_attr.port, 0, EINVAL);
	EXPECT_FIELD(flow_attr.port, 255, EINVAL);
	EXPECT_FIELD(qp_handle, 99, ENOENT);
	EXPECT_FIELD(qp_handle, bed.cq, EINVAL);
	flow = new_flow(&bed);
	flow.cmd.flow_attr.num_of_specs = 1;
	flow.cmd.flow_attr.size = 89;
	expect(create_len(&bed, _i, &flow, sizeof(flow.cmd) + 96, NULL), EINVAL);
	/* Zeros after the specs are ignored. */
	flow = new_flow(&bed);
	expect_ok(create_len(&bed, _i, &flow, sizeof(flow.cmd) + 64, &cmd.flow_handle));
	expect(uv_cmd(bed.fd, _i, &(struct uv_cmd){ UV_EX(DESTROY_FLOW), &cmd, sizeof(cmd) }), EINVAL);
	expect_ok(destroy(&bed, _i, cmd.flow_handle));
}
END_TEST

/* The kernel reads an ioctl's input piece by piece: an error in an earlier piece wins over a fault in a later one. */
START_TEST(test_flow_01_error_before_unmapped_memory_wins)
{
	struct flow flow;
	struct bed bed;
	size_t len;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	flow = one_spec(&bed, IBV_FLOW_SPEC_ETH, HDR + 32);
	len = sizeof(flow.cmd) + flow.len;
	expect(create_len(&bed, UV_INVOKE, uv_guard(&flow, len - 8), len, NULL), EFAULT);
	expect(create_len(&bed, UV_INVOKE, uv_guard(&flow, len), len + 8, NULL), EOPNOTSUPP);
	expect_ok(create_len(&bed, UV_INVOKE, uv_guard(&flow, len), len, NULL));
	flow.cmd.comp_mask = 1;
	expect(create_len(&bed, UV_INVOKE, uv_guard(&flow, len - 8), len, NULL), EINVAL);
}
END_TEST

/* Runs as nobody. comp_mask is checked before CAP_NET_RAW, and CAP_NET_RAW before everything else. */
static int create_as_nobody(void *arg)
{
	struct bed bed = { .fd = open_context(NULL) };
	struct flow flow = new_flow(&bed);

	flow.cmd.flow_attr.flags = 8;
	flow.cmd.comp_mask = 1;
	if (create(&bed, *(enum uv_front *)arg, &flow, NULL) != -EINVAL)
		return -EPROTO;
	flow.cmd.comp_mask = 0;
	return create(&bed, *(enum uv_front *)arg, &flow, NULL);
}

START_TEST(test_flow_01_without_cap_net_raw_is_eperm)
{
	enum uv_front front = _i;

	if (has_flows(open_context(NULL)))
		expect(uv_as_nobody(MEMLOCK, create_as_nobody, &front), EPERM);
}
END_TEST

struct inherited {
	struct bed bed;
	uint32_t flow;
};

static int destroy_inherited(void *arg)
{
	struct inherited *i = arg;

	return destroy(&i->bed, UV_INVOKE, i->flow);
}

START_TEST(test_flow_01_destruction_needs_no_capability)
{
	struct inherited i;
	struct flow flow;

	if (!make_flow_bed(&i.bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	flow = new_flow(&i.bed);
	expect_ok(create(&i.bed, UV_WRITE, &flow, &i.flow));
	expect_ok(uv_as_nobody(MEMLOCK, destroy_inherited, &i));
}
END_TEST

/* Only CAP_NET_RAW in the initial user namespace counts. */
static int create_as_root_of_a_namespace(void *arg)
{
	if (unshare(CLONE_NEWUSER))
		return -EPERM;
	return create_as_nobody(arg);
}

START_TEST(test_flow_01_cap_net_raw_in_a_namespace_of_its_own_is_eperm)
{
	enum uv_front front = _i;

	if (has_flows(open_context(NULL)))
		expect(uv_as_nobody(MEMLOCK, create_as_root_of_a_namespace, &front), EPERM);
}
END_TEST

START_TEST(test_regression_11_flow_on_a_qp_that_is_neither_ud_nor_raw_is_einval)
{
	static const uint8_t types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_DRIVER, IBV_QPT_RAW_PACKET };
	struct uv_qp_attr attr;
	struct flow flow;
	struct uv_qp qp;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(types); i++) {
		attr = uv_qp_attr(bed.pd, bed.cq);
		attr.type = types[i];
		attr.cap.max_inline_data = 0;
		expect_ok(uv_create_qp(bed.fd, UV_WRITE, &attr, &qp));
		flow = new_flow(&bed);
		flow.cmd.qp_handle = qp.handle;
		expect_flow(&bed, _i, &flow, types[i] == IBV_QPT_RAW_PACKET ? 0 : EINVAL);
		expect_ok(uv_destroy_qp(bed.fd, UV_WRITE, qp.handle, NULL));
	}
}
END_TEST

/* ---- flow-02 ----------------------------------------------------------------------------------------------------- */

static const struct layer {
	uint32_t type;
	uint16_t known; /* bytes of the filter that the kernel knows */
} layers[] = {
	{ IBV_FLOW_SPEC_ETH, 16 }, { IBV_FLOW_SPEC_IPV4, 12 }, { IBV_FLOW_SPEC_IPV6, 39 },
	{ IBV_FLOW_SPEC_ESP, 8 },  { IBV_FLOW_SPEC_TCP, 4 },   { IBV_FLOW_SPEC_UDP, 4 },
	{ IBV_FLOW_SPEC_GRE, 8 },  { IBV_FLOW_SPEC_MPLS, 4 },  { IBV_FLOW_SPEC_VXLAN_TUNNEL, 4 },
};

/* The highest byte of a tunnel id or an IPv6 flow label, which have fewer bits than their fields. */
static bool is_limited(uint32_t type, uint16_t at)
{
	return type == IBV_FLOW_SPEC_VXLAN_TUNNEL ? at == 0 : type == IBV_FLOW_SPEC_IPV6 && at == 32;
}

/* Filters shorter than a layer's, as long, and longer. A value may be anywhere, a mask only in the known bytes. */
START_TEST(test_flow_02_layers_and_their_masks)
{
	struct flow flow;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(layers); i++) {
		for (uint16_t half = 4; half <= 40; half += 4) {
			for (uint16_t at = half - 4; at < half; at++) {
				flow = one_spec(&bed, layers[i].type, HDR + 2 * half);
				flow.specs[HDR + half + at] = !is_limited(layers[i].type, at);
				expect_flow(&bed, _i, &flow, at < layers[i].known ? 0 : EINVAL);
			}
			flow = one_spec(&bed, layers[i].type, HDR + 2 * half);
			flow.specs[HDR + half - 1] = 1;
			expect_flow(&bed, _i, &flow, 0);
		}
		flow = one_spec(&bed, INNER | layers[i].type, HDR + 8);
		expect_flow(&bed, _i, &flow, layers[i].type == IBV_FLOW_SPEC_VXLAN_TUNNEL ? EINVAL : 0);
	}
}
END_TEST

START_TEST(test_flow_02_sizes_of_filters)
{
	static const uint16_t bad[] = { 0, 1, 7, 8, 9, 10, 12, 14, 18, 20, 22, 28 }, good[] = { 16, 17, 24, 25, 40 };
	struct flow flow;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(bad); i++) {
		flow = one_spec(&bed, IBV_FLOW_SPEC_ETH, bad[i]);
		expect_flow(&bed, _i, &flow, EINVAL);
	}
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(good); i++) {
		flow = one_spec(&bed, IBV_FLOW_SPEC_ETH, good[i]);
		expect_flow(&bed, _i, &flow, 0);
	}
}
END_TEST

/* Expects err for a filter with the number at offset `at`, and again with the number in the mask instead. */
static void expect_number(const struct bed *bed, enum uv_front front, uint32_t type, uint16_t half, uint16_t at,
			  uint32_t number, int err)
{
	struct flow flow;

	number = htonl(number);
	for (int masked = 0; masked < 2; masked++) {
		flow = one_spec(bed, type, HDR + 2 * half);
		memcpy(flow.specs + HDR + (masked ? half : 0) + at, &number, sizeof(number));
		expect_flow(bed, front, &flow, err);
	}
}

START_TEST(test_flow_02_labels_and_tunnel_ids_have_their_bits)
{
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	expect_number(&bed, _i, IBV_FLOW_SPEC_IPV6, 40, 32, (1 << 20) - 1, 0);
	expect_number(&bed, _i, IBV_FLOW_SPEC_IPV6, 40, 32, 1 << 20, EINVAL);
	expect_number(&bed, _i, INNER | IBV_FLOW_SPEC_IPV6, 36, 32, 1 << 20, EINVAL);
	expect_number(&bed, _i, IBV_FLOW_SPEC_VXLAN_TUNNEL, 4, 0, (1 << 24) - 1, 0);
	expect_number(&bed, _i, IBV_FLOW_SPEC_VXLAN_TUNNEL, 4, 0, 1 << 24, EINVAL);
}
END_TEST

START_TEST(test_flow_02_sizes_of_actions)
{
	struct flow flow;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	for (uint16_t size = 0; size <= 24; size += 4) {
		flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_TAG, size);
		expect_flow(&bed, _i, &flow, size == 16 ? 0 : EINVAL);
		flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_DROP, size);
		expect_flow(&bed, _i, &flow, size == 8 ? 0 : EINVAL);
		/* With the right size the handle is looked up. Handle 0 is the PD: a wrong type. */
		flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_HANDLE, size);
		expect_flow(&bed, _i, &flow, size == 16 ? EINVAL : EOPNOTSUPP);
		flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_COUNT, size);
		expect_flow(&bed, _i, &flow, EINVAL);
	}
	flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_HANDLE, 16);
	flow.specs[HDR] = 99;
	expect_flow(&bed, _i, &flow, ENOENT);
}
END_TEST

START_TEST(test_flow_02_reserved_words_and_unknown_types_are_einval)
{
	static const uint32_t types[] = { 0,	 0x21,	0x22,  0x32,   0x42,   0x61,   0xff,
					  0x220, 0x320, 0xfff, 0x1004, 0x1100, 0x2020, 0x80000020 };
	struct flow flow;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(types); i++) {
		flow = one_spec(&bed, types[i], 16);
		expect_flow(&bed, _i, &flow, EINVAL);
	}
	flow = new_flow(&bed);
	add_spec(&flow, IBV_FLOW_SPEC_ETH, 40, 1);
	expect_flow(&bed, _i, &flow, EINVAL);
	flow = new_flow(&bed);
	add_spec(&flow, IBV_FLOW_SPEC_ACTION_DROP, 8, 1);
	expect_flow(&bed, _i, &flow, EINVAL);
	/* The reserved word is checked before the size, which would be EOPNOTSUPP. */
	flow = new_flow(&bed);
	add_spec(&flow, IBV_FLOW_SPEC_ACTION_HANDLE, 8, 1);
	expect_flow(&bed, _i, &flow, EINVAL);
}
END_TEST

START_TEST(test_flow_02_leftover_bytes_or_another_number_of_specs_is_einval)
{
	struct flow flow;
	struct bed bed;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	flow = new_flow(&bed);
	for (int i = 0; i < 10; i++)
		add_spec(&flow, IBV_FLOW_SPEC_IPV6, 88, 0);
	expect_flow(&bed, _i, &flow, 0);
	flow.cmd.flow_attr.num_of_specs = 9;
	expect_flow(&bed, _i, &flow, EINVAL);
	flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_DROP, 8);
	flow.cmd.flow_attr.num_of_specs = 2;
	expect_flow(&bed, _i, &flow, EINVAL);
	flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_DROP, 8);
	flow.cmd.flow_attr.size = 16;
	flow.len = 16;
	expect_flow(&bed, _i, &flow, EINVAL);
	/* A spec that ends beyond the list. */
	flow = one_spec(&bed, IBV_FLOW_SPEC_ETH, 40);
	flow.cmd.flow_attr.size = 32;
	expect_flow(&bed, _i, &flow, EINVAL);
	flow = one_spec(&bed, IBV_FLOW_SPEC_ETH, 40);
	flow.cmd.flow_attr.size = 4;
	flow.specs[4] = 0;
	flow.len = 8;
	expect_flow(&bed, _i, &flow, EINVAL);
	/* Its own size, which would be EOPNOTSUPP, is not looked at. */
	flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_HANDLE, 12);
	flow.cmd.flow_attr.size = 8;
	expect_flow(&bed, _i, &flow, EINVAL);
	/* A bad spec decides before the number of specs, which is wrong as well. */
	flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_HANDLE, 12);
	flow.cmd.flow_attr.num_of_specs = 2;
	expect_flow(&bed, _i, &flow, EOPNOTSUPP);
}
END_TEST

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static int read_counters(int fd, uint32_t counters)
{
	uint64_t values[2] = { 7, 7 };
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
	uv_attr_obj(&tree, UVERBS_ATTR_READ_COUNTERS_HANDLE, counters);
	uv_attr_out(&tree, UVERBS_ATTR_READ_COUNTERS_BUFF, values, sizeof(values));
	return uv_ioctl(fd, &tree);
}

static int destroy_counters(int fd, uint32_t counters)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, counters);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_counters_01_read_before_a_flow_uses_them_is_einval)
{
	struct uv_tree tree;
	struct flow flow;
	struct bed bed;
	uint32_t handle;

	if (!make_flow_bed(&bed))
		SKIP("the device has no flows, or the user no CAP_NET_RAW");
	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	expect_ok(uv_ioctl(bed.fd, &tree));
	ck_assert_uint_eq(uv_attr_find(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE)->data, 3);
	expect(read_counters(bed.fd, 3), EINVAL);
	flow = one_spec(&bed, IBV_FLOW_SPEC_ACTION_COUNT, 16);
	flow.specs[HDR] = 99;
	expect_flow(&bed, _i, &flow, ENOENT);
	flow.specs[HDR] = 3;
	expect_ok(create(&bed, _i, &flow, &handle));
	expect_ok(read_counters(bed.fd, 3));
	expect(destroy_counters(bed.fd, 3), EBUSY);
	expect_ok(destroy(&bed, _i, handle));
	expect(read_counters(bed.fd, 3), EINVAL);
	expect_ok(destroy_counters(bed.fd, 3));
}
END_TEST

TCase *case_flow(void)
{
	TCase *tc = tcase_create("flow");

	tcase_set_tags(tc, "null");
	tcase_add_loop_test(tc, test_flow_keeps_its_qp_in_use, 0, 3);
	tcase_add_loop_test(tc, test_flow_01_order_of_checks, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_01_each_check_alone, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_flow_01_error_before_unmapped_memory_wins);
	tcase_add_loop_test(tc, test_flow_01_without_cap_net_raw_is_eperm, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_flow_01_destruction_needs_no_capability);
	tcase_add_loop_test(tc, test_flow_01_cap_net_raw_in_a_namespace_of_its_own_is_eperm, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_regression_11_flow_on_a_qp_that_is_neither_ud_nor_raw_is_einval, 0,
			    UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_02_layers_and_their_masks, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_02_sizes_of_filters, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_02_labels_and_tunnel_ids_have_their_bits, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_02_sizes_of_actions, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_02_reserved_words_and_unknown_types_are_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_flow_02_leftover_bytes_or_another_number_of_specs_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_counters_01_read_before_a_flow_uses_them_is_einval, 0, UV_PLAIN_FRONTS);
	return tc;
}
