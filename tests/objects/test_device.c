/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Contexts, event files, and queries of the device: what tests/abi/rules_context.c cannot see. */
#include <sys/socket.h>

#include "tests.h"

START_TEST(test_get_context_gives_an_async_fd_and_the_vectors)
{
	struct ib_uverbs_get_context_resp resp = {};
	struct stat st;

	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	ck_assert_uint_eq(resp.num_comp_vectors, h.config.num_comp_vectors);
	ck_assert_int_eq(resp.async_fd, h.granted);
	ck_assert_int_eq(fstat(h.granted, &st), 0);
	ck_assert_ptr_nonnull(h.file->default_async);
}
END_TEST

START_TEST(test_get_context_without_granting_answers_minus_2)
{
	struct ib_uverbs_get_context_resp resp = {};
	uint32_t pd;

	h.refuse_grant = EPERM;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	ck_assert_int_eq((int)resp.async_fd, -2);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
}
END_TEST

START_TEST(test_get_context_with_no_fd_left_can_be_repeated)
{
	struct ib_uverbs_get_context_resp resp = {};

	h.refuse_grant = EMFILE;
	ck_assert_int_eq(harness_get_context(&h, &resp), -EMFILE);
	h.refuse_grant = 0;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
}
END_TEST

START_TEST(test_get_context_with_a_bad_pointer_leaves_no_context)
{
	struct ib_uverbs_get_context_resp resp = {};
	struct ib_uverbs_get_context cmd = {};

	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), BAD, sizeof(resp)),
			 -EFAULT);
	ck_assert_ptr_null(atomic_load(&h.file->context));
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
}
END_TEST

/* User memory ends a page below 1 << 47. A response that crosses the end is EFAULT although its start is mapped. */
START_TEST(test_response_that_ends_beyond_the_address_space_is_efault)
{
	char *const end = (char *)0x7ffffffff000;
	struct ib_uverbs_get_context_resp context;
	struct ib_uverbs_alloc_pd cmd = {};
	struct uv_tree tree = {};
	uint32_t pd;

	mmap(end - 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), end - 2, 4), -EFAULT);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	ck_assert_uint_eq(pd, 0);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_RESP, end - 8, sizeof(struct ib_uverbs_query_port_resp_ex));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, &tree), -EFAULT);
	ck_assert_uint_eq(tree.hdr.attrs[1].flags, UVERBS_ATTR_F_MANDATORY);
}
END_TEST

static int get_context_ioctl(uint32_t *vectors, uint64_t *support)
{
	struct uv_tree tree = {};

	if (vectors)
		uv_attr_out(&tree, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors, sizeof(*vectors));
	if (support)
		uv_attr_out(&tree, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support, sizeof(*support));
	return harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, &tree);
}

START_TEST(test_async_event_alloc_writes_the_fd_into_its_attribute)
{
	struct uv_tree tree = {};
	struct ib_uverbs_attr *attr = uv_attr_obj(&tree, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0x7777777777);

	ck_assert_int_eq(get_context_ioctl(NULL, NULL), 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, &tree), 0);
	ck_assert_int_ge(h.granted, 0);
	ck_assert_int_eq((int64_t)attr->data, h.granted);
	ck_assert_ptr_nonnull(h.file->default_async);
}
END_TEST

START_TEST(test_port_event_reaches_every_async_file)
{
	const uint16_t object = UVERBS_OBJECT_ASYNC_EVENT, method = UVERBS_METHOD_ASYNC_EVENT_ALLOC;
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_get_context_resp resp;
	int fd[3];

	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	fd[0] = h.granted;
	for (int i = 1; i < 3; i++) {
		struct uv_tree tree = {};

		uv_attr_obj(&tree, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
		ck_assert_int_eq(harness_ioctl(&h, object, method, &tree), 0);
		fd[i] = h.granted;
	}
	h.dev->ib.event_handler(&h.dev->ib, IBV_EVENT_PORT_ERR, 1);
	for (int i = 0; i < 3; i++) {
		memset(&event, 0, sizeof(event));
		ck_assert_int_eq(recv(fd[i], &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
		ck_assert_uint_eq(event.element, 1);
		ck_assert_uint_eq(event.event_type, IBV_EVENT_PORT_ERR);
	}
}
END_TEST

START_TEST(test_comp_channel_without_granting_is_eopnotsupp)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct ib_uverbs_create_comp_channel cmd = {};
	struct ib_uverbs_get_context_resp context;

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	h.refuse_grant = EPERM;
	ck_assert_int_eq(WRITE(&h, CREATE_COMP_CHANNEL, &cmd, &resp), -EOPNOTSUPP);
	h.refuse_grant = 0;
	ck_assert_int_eq(WRITE(&h, CREATE_COMP_CHANNEL, &cmd, &resp), 0);
	ck_assert_int_eq(resp.fd, h.granted);
}
END_TEST

START_TEST(test_event_09_close_hangs_up_the_channel)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct ib_uverbs_create_comp_channel cmd = {};
	struct ib_uverbs_get_context_resp context;
	char c[16];

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(WRITE(&h, CREATE_COMP_CHANNEL, &cmd, &resp), 0);
	harness_close_file(&h);
	ck_assert_int_eq(read(resp.fd, c, sizeof(c)), 0);
}
END_TEST

/* ---- queries ----------------------------------------------------------------------------------------------------- */

START_TEST(test_device_and_port_answer_the_configuration)
{
	struct ib_uverbs_query_device_resp dev;
	struct ib_uverbs_query_port_resp port;
	unsigned int a, b, c;

	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_query_device(h.fd, UV_WRITE, &dev), 0);
	ck_assert_uint_eq(dev.node_guid, h.config.node_guid);
	ck_assert_uint_eq(dev.phys_port_cnt, h.config.num_ports);
	ck_assert_uint_eq(dev.max_qp, h.config.limits.max_qp);
	ck_assert_int_eq(sscanf(h.config.fw_ver, "%u.%u.%u", &a, &b, &c), 3);
	ck_assert_uint_eq(dev.fw_ver, (uint64_t)a << 32 | b << 16 | c);
	ck_assert_int_eq(uv_query_port(h.fd, UV_WRITE, 1, &port), 0);
	ck_assert_uint_eq(port.lid, h.config.ports[0].lid);
	ck_assert_uint_eq(port.link_layer, h.config.ports[0].link_layer);
}
END_TEST

static int backend_query_port(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->flags = IBV_QPF_GRH_REQUIRED;
	attr->port_cap_flags = IBV_PORT_IP_BASED_GIDS | IBV_PORT_CM_SUP;
	attr->port_cap_flags2 = 0x1234;
	attr->max_msg_sz = 1;
	attr->bad_pkey_cntr = 2;
	attr->qkey_viol_cntr = 3;
	attr->gid_tbl_len = 4;
	attr->pkey_tbl_len = 5;
	attr->lid = 6;
	attr->sm_lid = 7;
	attr->state = 8;
	attr->max_mtu = 9;
	attr->active_mtu = 10;
	attr->lmc = 11;
	attr->max_vl_num = 12;
	attr->sm_sl = 13;
	attr->subnet_timeout = 14;
	attr->init_type_reply = 15;
	attr->active_width = 16;
	attr->active_speed = 17;
	attr->phys_state = 18;
	attr->link_layer = 19;
	return 0;
}

START_TEST(test_port_01_flags_and_attributes_reach_the_client)
{
	const struct ib_uverbs_query_port_resp expected = {
		.port_cap_flags = IB_UVERBS_PCF_IP_BASED_GIDS | IB_UVERBS_PCF_CM_SUP,
		.max_msg_sz = 1,
		.bad_pkey_cntr = 2,
		.qkey_viol_cntr = 3,
		.gid_tbl_len = 4,
		.pkey_tbl_len = 5,
		.lid = 6,
		.sm_lid = 7,
		.state = 8,
		.max_mtu = 9,
		.active_mtu = 10,
		.lmc = 11,
		.max_vl_num = 12,
		.sm_sl = 13,
		.subnet_timeout = 14,
		.init_type_reply = 15,
		.active_width = 16,
		.active_speed = 17,
		.phys_state = 18,
		.link_layer = 19,
		.flags = IB_UVERBS_QPF_GRH_REQUIRED,
	};
	struct ib_uverbs_query_port_resp_ex ex;
	struct uv_tree tree = {};

	h.ops.query_port = backend_query_port;
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_RESP, &ex, sizeof(ex));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, &tree), 0);
	ck_assert_mem_eq(&ex.legacy_resp, &expected, sizeof(expected));
	ck_assert_uint_eq(ex.port_cap_flags2, 0x1234);
}
END_TEST

/* ---- GIDs -------------------------------------------------------------------------------------------------------- */

/* A table of five entries, of which 0, 2 and 4 are valid. */
static int backend_query_gid(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry)
{
	if (index >= 5)
		return -EINVAL;
	if (index % 2)
		return -ENODATA;
	*entry = (struct ibv_gid_entry){ .gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2 };
	entry->gid.global.interface_id = index + 100;
	return 0;
}

START_TEST(test_empty_gids_are_not_in_the_table)
{
	struct ib_uverbs_gid_entry entries[4];

	h.ops.query_gid = backend_query_gid;
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	memset(entries, 0xee, sizeof(entries));
	ck_assert_int_eq(uv_query_gid_table(h.fd, entries, 4), 3);
	for (unsigned int i = 0; i < 3; i++) {
		ck_assert_uint_eq(entries[i].gid_index, 2 * i);
		ck_assert_uint_eq(entries[i].gid_type, IB_UVERBS_GID_TYPE_ROCE_V2);
	}
	ck_assert_uint_eq(((uint8_t *)&entries[3])[0], 0xee);
	ck_assert_int_eq(uv_query_gid_entry(h.fd, 1, 2, entries), 0);
	ck_assert_uint_eq(entries[0].gid_index, 2);
	ck_assert_int_eq(uv_query_gid_entry(h.fd, 1, 1, entries), -ENODATA);
	ck_assert_int_eq(uv_query_gid_entry(h.fd, 1, 5, entries), -EINVAL);
	ck_assert_int_eq(uv_query_gid_entry(h.fd, h.config.num_ports + 1, 2, entries), -EINVAL);
}
END_TEST

static struct uvd_context *queried;

static int see_query(struct uvd_context *context)
{
	queried = context;
	return 0;
}

static int query_context(uint32_t *num_comp, uint64_t *core_support)
{
	struct uv_tree tree = {};

	if (num_comp)
		uv_attr_out(&tree, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, num_comp, sizeof(*num_comp));
	if (core_support)
		uv_attr_out(&tree, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, core_support, sizeof(*core_support));
	return harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, &tree);
}

START_TEST(test_query_context_answers_what_get_context_did_and_asks_the_driver)
{
	struct ib_uverbs_get_context_resp context;
	uint64_t core_support = 0;
	uint32_t num_comp = 0;

	ck_assert_int_eq(query_context(NULL, NULL), -EINVAL);
	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	h.ops.query_context = see_query;
	ck_assert_int_eq(query_context(&num_comp, &core_support), 0);
	ck_assert_uint_eq(num_comp, context.num_comp_vectors);
	ck_assert_uint_eq(core_support, IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	ck_assert_ptr_eq(queried, h.file->context);
	ck_assert_int_eq(query_context(NULL, &core_support), 0);
	ck_assert_int_eq(query_context(BAD, NULL), -EFAULT);
	h.ops.query_context = NULL;
	ck_assert_int_eq(query_context(BAD, NULL), -EOPNOTSUPP);
}
END_TEST

TEST_LIST(test_get_context_gives_an_async_fd_and_the_vectors, test_get_context_without_granting_answers_minus_2,
	  test_get_context_with_no_fd_left_can_be_repeated, test_get_context_with_a_bad_pointer_leaves_no_context,
	  test_response_that_ends_beyond_the_address_space_is_efault,
	  test_async_event_alloc_writes_the_fd_into_its_attribute, test_port_event_reaches_every_async_file,
	  test_comp_channel_without_granting_is_eopnotsupp, test_event_09_close_hangs_up_the_channel,
	  test_device_and_port_answer_the_configuration, test_port_01_flags_and_attributes_reach_the_client,
	  test_empty_gids_are_not_in_the_table, test_query_context_answers_what_get_context_did_and_asks_the_driver)
