/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs: creation by every front, destruction, and events. */
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "tests.h"

static uint32_t pd, cq;
static struct ib_uverbs_create_qp_resp qp;

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
}

/* Also makes a QP of this type (handle 2). */
static void begin_qp(uint8_t type)
{
	begin();
	ck_assert_int_eq(harness_create_qp(&h, type, pd, cq, &qp), 0);
	ck_assert_uint_eq(qp.qp_handle, 2);
}

static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(harness_alloc_pd(&h, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_int_eq(harness_dealloc_pd(&h, next), 0);
}

static struct uvd_qp *backend_qp(void)
{
	struct uvd_uobject *uobj;
	struct uvd_qp *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, NULL, qp.qp_handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

static int destroy_qp(uint32_t handle, uint32_t *events)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp resp = {};
	int ret = WRITE(&h, DESTROY_QP, &cmd, &resp);

	*events = resp.events_reported;
	return ret;
}

/* Each test runs in its own process, so the other tests keep their capabilities. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};

	ck_assert_int_eq(syscall(SYS_capset, &header, none), 0);
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static void create_cmd(struct ib_uverbs_create_qp *cmd, uint8_t type)
{
	*cmd = (struct ib_uverbs_create_qp){
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = 1,
		.max_send_sge = 1,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.qp_type = type,
	};
}

static void create_ex_cmd(struct ib_uverbs_ex_create_qp *cmd, uint8_t type)
{
	*cmd = (struct ib_uverbs_ex_create_qp){
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = 1,
		.max_send_sge = 1,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.qp_type = type,
	};
}

struct created {
	struct ib_uverbs_qp_cap cap;
	uint32_t qpn;
	struct ib_uverbs_attr *handle;
};

/* Makes a tree without PD and CQs, which the test adds. */
static void create_tree(struct harness_tree *tree, uint64_t type, struct created *out)
{
	struct ib_uverbs_qp_cap cap = { 1, 1, 1, 1, 0 };
	static struct ib_uverbs_qp_cap kept;
	uint64_t user_handle = 0x5555;

	kept = cap;
	out->handle = tree_object(tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	tree_in(tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
	tree_in(tree, UVERBS_ATTR_CREATE_QP_CAP, &kept, sizeof(kept));
	tree_const(tree, UVERBS_ATTR_CREATE_QP_TYPE, type);
	tree_out(tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &out->cap, sizeof(out->cap));
	tree_out(tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &out->qpn, sizeof(out->qpn));
}

static void create_tree_full(struct harness_tree *tree, uint64_t type, struct created *out)
{
	memset(tree, 0, sizeof(*tree));
	create_tree(tree, type, out);
	tree_object(tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	tree_object(tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	tree_object(tree, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq);
}

static int create_ioctl(struct harness_tree *tree)
{
	return harness_ioctl(&h, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, tree);
}

START_TEST(test_create_qp_by_every_front)
{
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_ex_create_qp ex;
	struct ib_uverbs_ex_create_qp_resp ex_resp = {};
	struct harness_tree tree;
	struct created out = {};

	begin_qp(IBV_QPT_RC);
	ck_assert_uint_gt(qp.qpn, 1);
	ck_assert_uint_ge(qp.max_send_wr, 16);
	create_cmd(&cmd, IBV_QPT_UD);
	ck_assert_int_eq(INVOKE(&h, CREATE_QP, &cmd, &qp), 0);
	ck_assert_uint_eq(qp.qp_handle, 3);
	create_ex_cmd(&ex, IBV_QPT_UC);
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &ex, &ex_resp), 0);
	ck_assert_uint_eq(ex_resp.base.qp_handle, 4);
	ck_assert_uint_eq(ex_resp.response_length, sizeof(ex_resp));
	create_tree_full(&tree, IBV_QPT_RC, &out);
	ck_assert_int_eq(create_ioctl(&tree), 0);
	ck_assert_uint_eq(out.handle->data, 5);
	ck_assert_uint_gt(out.qpn, ex_resp.base.qpn);
	ck_assert_uint_ge(out.cap.max_recv_wr, 1);
}
END_TEST

START_TEST(test_create_qp_checks_in_the_kernels_order)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ib_uverbs_create_qp cmd;

	begin();
	/* qp-02: the type is checked before the handles */
	create_cmd(&cmd, 1);
	cmd.pd_handle = cmd.send_cq_handle = cmd.recv_cq_handle = 77;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	/* the receive CQ (if not the send CQ) is checked before the send CQ, and that before the PD */
	cmd.qp_type = IBV_QPT_RC;
	cmd.recv_cq_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd.recv_cq_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -ENOENT);
	cmd.send_cq_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd.send_cq_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -ENOENT);
	cmd.pd_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	/* qp-04: an XRC target whose pd_handle is not a domain's */
	cmd.qp_type = IBV_QPT_XRC_RECV;
	cmd.pd_handle = 77;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	assert_no_leak();
}
END_TEST

START_TEST(test_qp_01_raw_packet_needs_cap_net_raw)
{
	struct ib_uverbs_create_qp_resp resp;

	begin();
	if (uvd_caller_capable(&h.call->caller, CAP_NET_RAW))
		ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RAW_PACKET, 77, cq, &resp), -ENOENT);
	drop_capabilities();
	/* The capability is checked before the handles. */
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RAW_PACKET, 77, cq, &resp), -EPERM);
	assert_no_leak();
}
END_TEST

START_TEST(test_qp_06_and_qp_07_extended_create_refuses_unknown_bits)
{
	struct ib_uverbs_ex_create_qp_resp resp;
	struct ib_uverbs_ex_create_qp cmd;

	begin();
	create_ex_cmd(&cmd, 1);
	cmd.comp_mask = 2;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	create_ex_cmd(&cmd, IBV_QPT_RC);
	cmd.reserved = 1;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	/* the flags are checked after the look-ups */
	create_ex_cmd(&cmd, IBV_QPT_RC);
	cmd.create_flags = 1;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd.pd_handle = 77;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -ENOENT);
	create_ex_cmd(&cmd, IBV_QPT_RC);
	cmd.create_flags = 1u << 31;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	/* SOURCE_QPN needs CAP_NET_RAW */
	drop_capabilities();
	cmd.create_flags = 1 << 10;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EPERM);
	assert_no_leak();
}
END_TEST

START_TEST(test_create_qp_by_ioctl_wants_the_objects_of_its_type)
{
	struct harness_tree tree = {};
	struct created out;

	begin();
	create_tree(&tree, IBV_QPT_RC, &out);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT);
	memset(&tree, 0, sizeof(tree));
	create_tree(&tree, IBV_QPT_RC, &out);
	tree_object(&tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	tree_object(&tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT);
	/* An XRC target must have no CQ. The other two types are unknown. */
	create_tree_full(&tree, IBV_QPT_XRC_RECV, &out);
	ck_assert_int_eq(create_ioctl(&tree), -EINVAL);
	create_tree_full(&tree, 5, &out);
	ck_assert_int_eq(create_ioctl(&tree), -EINVAL);
	create_tree_full(&tree, (1ULL << 32) + IBV_QPT_RC, &out);
	ck_assert_int_eq(create_ioctl(&tree), -EINVAL);
	assert_no_leak();
}
END_TEST

static int see_init(struct uvd_qp *q, struct uvd_qp_init_attr *init)
{
	return init->create_flags ? -EXDEV : init->sq_sig_all ? -ENOSPC : -ENODEV;
}

START_TEST(test_qp_08_ioctl_flags)
{
	uint64_t bit;
	static const struct {
		uint8_t type;
		uint64_t flags;
		int err;
	} rows[] = {
		{ IBV_QPT_RC, 0, -ENODEV },
		{ IBV_QPT_RC, IB_UVERBS_QP_CREATE_SQ_SIG_ALL, -ENOSPC },
		{ IBV_QPT_RC, IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK, -EINVAL },
		{ IBV_QPT_UD, IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK, -EXDEV },
		{ IBV_QPT_UD, IB_UVERBS_QP_CREATE_SCATTER_FCS, -EINVAL },
		{ IBV_QPT_UD, IB_UVERBS_QP_CREATE_CVLAN_STRIPPING, -EINVAL },
		{ IBV_QPT_DRIVER, IB_UVERBS_QP_CREATE_CVLAN_STRIPPING, -EXDEV },
		{ IBV_QPT_UD, 1 << 10, -EINVAL },
	};
	struct harness_tree tree;
	struct created out;

	begin();
	h.ops.create_qp = see_init;
	for (size_t i = 0; i < UVD_COUNT(rows); i++) {
		bit = rows[i].flags;
		create_tree_full(&tree, rows[i].type, &out);
		tree_in(&tree, UVERBS_ATTR_CREATE_QP_FLAGS, &bit, sizeof(bit));
		ck_assert_int_eq(create_ioctl(&tree), rows[i].err);
	}
	assert_no_leak();
}
END_TEST

START_TEST(test_create_qp_that_the_backend_refuses_counts_no_user)
{
	struct ib_uverbs_destroy_cq destroy;
	struct ib_uverbs_destroy_cq_resp resp;

	begin();
	h.ops.create_qp = see_init;
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), -ENODEV);
	assert_no_leak();
	destroy.cq_handle = cq;
	destroy.reserved = 0;
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &destroy, &resp), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}
END_TEST

START_TEST(test_pd_and_cq_of_a_qp_are_ebusy)
{
	struct ib_uverbs_destroy_cq destroy;
	struct ib_uverbs_destroy_cq_resp resp;
	uint32_t events;

	begin_qp(IBV_QPT_RC);
	destroy.cq_handle = cq;
	destroy.reserved = 0;
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &destroy, &resp), -EBUSY);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
	ck_assert_int_eq(destroy_qp(qp.qp_handle, &events), 0);
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &destroy, &resp), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}
END_TEST

START_TEST(test_cleanup_04_destroy_qp_counts_the_events_that_were_read)
{
	struct ib_uverbs_get_context_resp context = {};
	struct ib_uverbs_async_event_desc event;
	struct harness_tree tree;
	struct created out;
	uint32_t events;

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	ck_assert_int_eq(harness_create_cq(&h, 0x9999, 64, -1, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	for (int i = 0; i < 3; i++)
		backend_qp()->event_handler(backend_qp(), IBV_EVENT_QP_FATAL + i);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(read(context.async_fd, &event, sizeof(event)), sizeof(event));
		ck_assert_uint_eq(event.element, 0x9999);
		ck_assert_uint_eq(event.event_type, IBV_EVENT_QP_FATAL + i);
	}
	ck_assert_int_eq(destroy_qp(qp.qp_handle, &events), 0);
	ck_assert_uint_eq(events, 2);
	ck_assert_int_lt(recv(context.async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);

	create_tree_full(&tree, IBV_QPT_RC, &out);
	ck_assert_int_eq(create_ioctl(&tree), 0);
	qp.qp_handle = out.handle->data;
	backend_qp()->event_handler(backend_qp(), IBV_EVENT_COMM_EST);
	ck_assert_int_eq(read(context.async_fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 0x5555);
	memset(&tree, 0, sizeof(tree));
	tree_object(&tree, UVERBS_ATTR_DESTROY_QP_HANDLE, qp.qp_handle);
	tree_out(&tree, UVERBS_ATTR_DESTROY_QP_RESP, &events, sizeof(events));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, &tree), 0);
	ck_assert_uint_eq(events, 1);
}
END_TEST

TEST_LIST(test_create_qp_by_every_front, test_create_qp_checks_in_the_kernels_order,
	  test_qp_01_raw_packet_needs_cap_net_raw, test_qp_06_and_qp_07_extended_create_refuses_unknown_bits,
	  test_create_qp_by_ioctl_wants_the_objects_of_its_type, test_qp_08_ioctl_flags,
	  test_create_qp_that_the_backend_refuses_counts_no_user, test_pd_and_cq_of_a_qp_are_ebusy,
	  test_cleanup_04_destroy_qp_counts_the_events_that_were_read)
