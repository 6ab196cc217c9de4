/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flows, counters objects and QPs of type RAW_PACKET: each request by its values, errors, absence and removal. */
#include <string.h>
#include "client.h"
#include "tests/suite.h"

enum { HDR = 8, PRIORITY = 3, MAX_FILTER = 40 };

static struct client a;
static struct uv_qp ud;

static void setup_with(bool has)
{
	client_init(NULL);
	h.config.hidden_caps = 0; /* --announce all */
	if (has) {
		fake.attr.orig_attr.device_cap_flags = IBV_DEVICE_MANAGED_FLOW_STEERING;
		fake.attr.raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING;
	} else {
		fake.result[FAKE_CREATE_COUNTERS] = EOPNOTSUPP;
	}
	client_start();
	h.call->caller.proc = &harness_root; /* for CAP_NET_RAW */
	client_open(&a, h.fd);
}

static int make_qp(uint8_t type, struct uv_qp *qp)
{
	struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);

	attr.type = type;
	return uv_create_qp(a.fd, UV_WRITE, &attr, qp);
}

static void setup(void)
{
	setup_with(true);
	ck_assert_int_eq(make_qp(IBV_QPT_UD, &ud), 0);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* A CREATE_FLOW command, to which add() appends specs. */
struct flow {
	struct ib_uverbs_create_flow cmd;
	uint8_t specs[256];
	size_t len; /* of the specs */
};

static struct flow new_flow(void)
{
	return (struct flow){ .cmd = { .qp_handle = ud.handle,
				       .flow_attr = { .port = 1,
						      .priority = PRIORITY,
						      .flags = IBV_FLOW_ATTR_FLAGS_EGRESS,
						      .type = IBV_FLOW_ATTR_NORMAL } } };
}

/* Adds a spec. body: what follows its header. */
static void add(struct flow *flow, uint32_t type, const void *body, uint16_t len)
{
	const struct {
		uint32_t type;
		uint16_t size, reserved;
	} hdr = { type, HDR + len, 0 };

	memcpy(flow->specs + flow->len, &hdr, HDR);
	memcpy(flow->specs + flow->len + HDR, body, len);
	flow->len += HDR + len;
	flow->cmd.flow_attr.size += HDR + len;
	flow->cmd.flow_attr.num_of_specs++;
}

static int create(const struct flow *flow, uint32_t *handle)
{
	struct ib_uverbs_create_flow_resp resp = {};
	const int ret = uv_cmd(a.fd, UV_WRITE,
			       &(struct uv_cmd){ UV_EX(CREATE_FLOW), flow, (sizeof(flow->cmd) + flow->len + 7) & ~7ul,
						 &resp, sizeof(resp) });

	*handle = resp.flow_handle;
	return ret;
}

static int destroy(uint32_t handle)
{
	const struct ib_uverbs_destroy_flow cmd = { .flow_handle = handle };

	return uv_cmd(a.fd, UV_WRITE, &(struct uv_cmd){ UV_EX(DESTROY_FLOW), &cmd, sizeof(cmd) });
}

static int create_counters(uint32_t *handle)
{
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	ret = uv_ioctl(a.fd, &tree);
	*handle = uv_attr_find(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE)->data;
	return ret;
}

static int destroy_counters(uint32_t handle)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, handle);
	return uv_ioctl(a.fd, &tree);
}

static int read_counters(uint32_t handle, uint64_t *values, size_t num)
{
	const uint32_t flags = IB_UVERBS_READ_COUNTERS_PREFER_CACHED;
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
	uv_attr_obj(&tree, UVERBS_ATTR_READ_COUNTERS_HANDLE, handle);
	uv_attr_out(&tree, UVERBS_ATTR_READ_COUNTERS_BUFF, values, num * sizeof(*values));
	uv_attr_in(&tree, UVERBS_ATTR_READ_COUNTERS_FLAGS, &flags, sizeof(flags));
	return uv_ioctl(a.fd, &tree);
}

/* A flow whose packets a counters object counts. */
static struct flow counted_flow(uint32_t counters)
{
	const uint32_t body[2] = { counters };
	struct flow flow = new_flow();

	add(&flow, IBV_FLOW_SPEC_ACTION_COUNT, body, sizeof(body));
	return flow;
}

/* ---- what the adapter gets --------------------------------------------------------------------------------------- */

static const struct ibv_flow_attr *got(void)
{
	return (const struct ibv_flow_attr *)fake.flow_request;
}

static const char *got_specs(void)
{
	return fake.flow_request + sizeof(struct ibv_flow_attr);
}

START_TEST(test_flow_has_every_attribute_of_the_clients)
{
	const struct flow flow = new_flow();
	uint32_t handle;

	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_uint_eq(got()->type, IBV_FLOW_ATTR_NORMAL);
	ck_assert_uint_eq(got()->size, sizeof(struct ibv_flow_attr));
	ck_assert_uint_eq(got()->priority, PRIORITY);
	ck_assert_uint_eq(got()->num_of_specs, 0);
	ck_assert_uint_eq(got()->port, 1);
	ck_assert_uint_eq(got()->flags, IBV_FLOW_ATTR_FLAGS_EGRESS);
	ck_assert_int_eq(destroy(handle), 0);
}
END_TEST

#define LAYER(client, adapter, spec) \
	{ \
		client, adapter, sizeof(struct spec), offsetof(struct spec, val), offsetof(struct spec, mask), \
			sizeof(((struct spec *)0)->val) \
	}

static const struct {
	uint32_t client, adapter;
	uint16_t size, val, mask, filter;
} layers[] = {
	LAYER(IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth),
	LAYER(IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext),
	LAYER(IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6),
	LAYER(IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp),
	LAYER(IBV_FLOW_SPEC_UDP, IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp),
	LAYER(IBV_FLOW_SPEC_ESP, IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp),
	LAYER(IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel),
	LAYER(IBV_FLOW_SPEC_GRE, IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre),
	LAYER(IBV_FLOW_SPEC_MPLS, IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls),
	LAYER(IBV_FLOW_SPEC_IPV4 | IBV_FLOW_SPEC_INNER, IBV_FLOW_SPEC_IPV4_EXT | IBV_FLOW_SPEC_INNER,
	      ibv_flow_spec_ipv4_ext),
};

/* Fills the filter and the mask with different bytes, as far as they are free. */
static void fill_body(uint32_t type, uint8_t body[2 * MAX_FILTER], uint16_t filter)
{
	for (unsigned int i = 0; i < 2 * filter; i++)
		body[i] = i + 1;
	/* The highest bits of a tunnel's id, and of a flow label, are zero; the last byte of IPv6 is reserved. */
	if (type == IBV_FLOW_SPEC_VXLAN_TUNNEL)
		body[0] = body[filter] = 0;
	if (type != IBV_FLOW_SPEC_IPV6)
		return;
	for (unsigned int half = 0; half < 2; half++) {
		uint8_t *at = body + half * filter;

		memset(at + offsetof(struct ibv_flow_ipv6_filter, flow_label), 0, 2);
		at[filter - 1] = 0;
	}
}

START_TEST(test_layer_has_every_byte_of_its_filter_and_its_mask)
{
	uint8_t body[2 * MAX_FILTER];
	struct ibv_flow_spec spec;
	struct flow flow = new_flow();
	uint32_t handle;

	fill_body(layers[_i].client, body, layers[_i].filter);
	add(&flow, layers[_i].client, body, 2 * layers[_i].filter);
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_uint_eq(got()->num_of_specs, 1);
	ck_assert_uint_eq(got()->size, sizeof(struct ibv_flow_attr) + layers[_i].size);
	memcpy(&spec, got_specs(), layers[_i].size);
	ck_assert_uint_eq(spec.hdr.type, layers[_i].adapter);
	ck_assert_uint_eq(spec.hdr.size, layers[_i].size);
	ck_assert_mem_eq((char *)&spec + layers[_i].val, body, layers[_i].filter);
	ck_assert_mem_eq((char *)&spec + layers[_i].mask, body + layers[_i].filter, layers[_i].filter);
}
END_TEST

START_TEST(test_specs_and_actions_follow_each_other_as_the_client_has_them)
{
	const uint32_t tag[2] = { 0x1234 }, nothing[1] = {};
	const uint8_t ports[8] = { 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff };
	struct ibv_flow_spec_action_tag got_tag;
	struct ibv_flow_spec_action_drop got_drop;
	struct ibv_flow_spec_tcp_udp got_udp;
	struct flow flow = new_flow();
	const char *at = got_specs();
	uint32_t handle;

	add(&flow, IBV_FLOW_SPEC_UDP, ports, sizeof(ports));
	add(&flow, IBV_FLOW_SPEC_ACTION_TAG, tag, sizeof(tag));
	add(&flow, IBV_FLOW_SPEC_ACTION_DROP, nothing, 0);
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_uint_eq(got()->num_of_specs, 3);
	memcpy(&got_udp, at, sizeof(got_udp));
	ck_assert_uint_eq(got_udp.type, IBV_FLOW_SPEC_UDP);
	memcpy(&got_tag, at + sizeof(got_udp), sizeof(got_tag));
	ck_assert_uint_eq(got_tag.type, IBV_FLOW_SPEC_ACTION_TAG);
	ck_assert_uint_eq(got_tag.size, sizeof(got_tag));
	ck_assert_uint_eq(got_tag.tag_id, 0x1234);
	memcpy(&got_drop, at + sizeof(got_udp) + sizeof(got_tag), sizeof(got_drop));
	ck_assert_uint_eq(got_drop.type, IBV_FLOW_SPEC_ACTION_DROP);
	ck_assert_uint_eq(got_drop.size, sizeof(got_drop));
}
END_TEST

START_TEST(test_counters_of_a_flow_are_the_adapters)
{
	uint64_t values[2] = {};
	uint32_t counters, handle;
	struct flow flow;

	ck_assert_int_eq(create_counters(&counters), 0);
	flow = counted_flow(counters);
	ck_assert_int_eq(create(&flow, &handle), 0);
	ck_assert_int_eq(read_counters(counters, values, 2), 0);
	ck_assert_uint_eq(values[0], 100);
	ck_assert_uint_eq(values[1], 200);
	ck_assert_uint_eq(fake.read_flags, IBV_READ_COUNTERS_ATTR_PREFER_CACHED);
	ck_assert_int_eq(read_counters(counters, values, 1), -EINVAL);
	fake.result[FAKE_READ_COUNTERS] = ENOSPC;
	ck_assert_int_eq(read_counters(counters, values, 2), -ENOSPC);
	ck_assert_int_eq(destroy_counters(counters), -EBUSY);
	ck_assert_int_eq(destroy(handle), 0);
	ck_assert_int_eq(destroy_counters(counters), 0);
}
END_TEST

START_TEST(test_raw_packet_qp_is_one_of_the_adapter)
{
	struct client c = a;

	ck_assert_int_eq(make_qp(IBV_QPT_RAW_PACKET, &c.qp), 0);
	ck_assert_uint_eq(fake.qp_request.qp_type, IBV_QPT_RAW_PACKET);
	ck_assert_uint_eq(fake.qp_request.comp_mask, IBV_QP_INIT_ATTR_PD);
	ck_assert_uint_eq(fake.qp_request.cap.max_recv_wr, 16);
	ck_assert_int_eq(uv_destroy_qp(a.fd, UV_WRITE, c.qp.handle, NULL), 0);
}
END_TEST

/* ---- errors, absence, removal ------------------------------------------------------------------------------------ */

START_TEST(test_what_the_adapter_refuses_has_its_errno_and_leaves_nothing)
{
	const struct flow flow = new_flow();
	const int objects = fake.objects;
	uint32_t handle;

	fake.result[FAKE_CREATE_FLOW] = ENOSPC;
	ck_assert_int_eq(create(&flow, &handle), -ENOSPC);
	fake.result[FAKE_CREATE_COUNTERS] = ENOSPC;
	ck_assert_int_eq(create_counters(&handle), -ENOSPC);
	fake.result[FAKE_CREATE_COUNTERS] = 0;
	fake.result[FAKE_ATTACH_COUNTERS] = ENOSPC;
	ck_assert_int_eq(create_counters(&handle), -ENOSPC);
	ck_assert_int_eq(fake.objects, objects);
}
END_TEST

START_TEST(test_what_the_adapter_does_not_destroy_stays)
{
	const struct flow flow = new_flow();
	uint32_t handle, counters;

	ck_assert_int_eq(create_counters(&counters), 0);
	ck_assert_int_eq(create(&flow, &handle), 0);
	fake.result[FAKE_DESTROY_FLOW] = fake.result[FAKE_DESTROY_COUNTERS] = EAGAIN;
	ck_assert_int_eq(destroy(handle), -EAGAIN);
	ck_assert_int_eq(destroy_counters(counters), -EAGAIN);
	fake.result[FAKE_DESTROY_FLOW] = fake.result[FAKE_DESTROY_COUNTERS] = 0;
	ck_assert_int_eq(destroy(handle), 0);
	ck_assert_int_eq(destroy_counters(counters), 0);
}
END_TEST

START_TEST(test_adapter_without_them_is_a_device_without_them)
{
	struct ib_uverbs_query_device_resp device;
	uint32_t handle;
	struct flow flow;
	struct uv_qp qp;

	client_teardown();
	setup_with(false);
	ck_assert_int_eq(make_qp(IBV_QPT_UD, &ud), 0);
	flow = new_flow();
	ck_assert_int_eq(create(&flow, &handle), -EOPNOTSUPP);
	ck_assert_int_eq(destroy(0), -EOPNOTSUPP);
	ck_assert_int_eq(create_counters(&handle), -EPROTONOSUPPORT);
	ck_assert_int_eq(make_qp(IBV_QPT_RAW_PACKET, &qp), -EOPNOTSUPP);
	ck_assert_int_eq(uv_query_device(a.fd, UV_WRITE, &device), 0);
	ck_assert_uint_eq(device.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0);
}
END_TEST

/* client_teardown() checks that nothing stays on the adapter: it destroys no counters that a flow uses. */
START_TEST(test_objects_of_a_client_that_ends_leave_in_their_order)
{
	uint32_t counters, handle;
	struct flow flow;

	ck_assert_int_eq(create_counters(&counters), 0);
	flow = counted_flow(counters);
	ck_assert_int_eq(create(&flow, &handle), 0);
	harness_close_file(&h);
	ck_assert_uint_eq(client_bytes(), 0);
}
END_TEST

START_TEST(test_dead_adapter_is_eio_and_everything_can_be_destroyed)
{
	const int fd = client_async_fd(&a);
	uint32_t counters, handle, none;
	uint64_t values[2];
	struct flow flow;

	ck_assert_int_eq(create_counters(&counters), 0);
	flow = counted_flow(counters);
	ck_assert_int_eq(create(&flow, &handle), 0);
	fake_device_fatal();
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_DEVICE_FATAL);
	ck_assert_int_eq(create(&flow, &none), -EIO);
	ck_assert_int_eq(create_counters(&none), -EIO);
	ck_assert_int_eq(read_counters(counters, values, 2), -EIO);
	ck_assert_int_eq(destroy(handle), 0);
	ck_assert_int_eq(destroy_counters(counters), 0);
	close(fd);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("flow");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_flow_has_every_attribute_of_the_clients);
	tcase_add_loop_test(t, test_layer_has_every_byte_of_its_filter_and_its_mask, 0, UV_ARRAY_SIZE(layers));
	tcase_add_test(t, test_specs_and_actions_follow_each_other_as_the_client_has_them);
	tcase_add_test(t, test_counters_of_a_flow_are_the_adapters);
	tcase_add_test(t, test_raw_packet_qp_is_one_of_the_adapter);
	tcase_add_test(t, test_what_the_adapter_refuses_has_its_errno_and_leaves_nothing);
	tcase_add_test(t, test_what_the_adapter_does_not_destroy_stays);
	tcase_add_test(t, test_adapter_without_them_is_a_device_without_them);
	tcase_add_test(t, test_objects_of_a_client_that_ends_leave_in_their_order);
	tcase_add_test(t, test_dead_adapter_is_eio_and_everything_can_be_destroyed);
	return run_suite("the verbs backend with a fake adapter: flows, counters, raw packets", t);
}
