/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queues, RWQ indirection tables, and QPs with a table: what the backend gets and answers, events, and the order of
 * destruction. tests/abi/rules_wq.c has the checks.
 */
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;
static int async_fd;

static void begin(void)
{
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, &async_fd, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

/* The next handle is still `next`, and the PD and the CQ are not in use. */
static void assert_no_leak(uint32_t next)
{
	uint32_t other;

	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &other), 0);
	ck_assert_uint_eq(other, next);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, cq, NULL), 0);
}

static int create_front(enum uv_front front, const struct ib_uverbs_ex_create_wq *cmd,
			struct ib_uverbs_ex_create_wq_resp *resp)
{
	return uv_cmd(h.fd, front, &(struct uv_cmd){ UV_EX(CREATE_WQ), cmd, sizeof(*cmd), resp, sizeof(*resp) });
}

static struct ib_uverbs_ex_create_wq wq_cmd(void)
{
	return (struct ib_uverbs_ex_create_wq){ .user_handle = 0xabcd,
						.wq_type = IBV_WQT_RQ,
						.pd_handle = pd,
						.cq_handle = cq,
						.max_wr = 10,
						.max_sge = 2 };
}

static uint32_t create_wq(void)
{
	struct ib_uverbs_ex_create_wq cmd = wq_cmd();
	struct ib_uverbs_ex_create_wq_resp resp = {};

	ck_assert_int_eq(create_front(UV_WRITE_EX, &cmd, &resp), 0);
	return resp.wq_handle;
}

static int destroy_wq(enum uv_front front, uint32_t handle, uint32_t *events)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .wq_handle = handle };
	struct ib_uverbs_ex_destroy_wq_resp resp = { .events_reported = ~0u };
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_init(&tree, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY);
		uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_WQ_HANDLE, handle);
		uv_attr_out(&tree, UVERBS_ATTR_DESTROY_WQ_RESP, &resp.events_reported, 4);
		ret = uv_ioctl(h.fd, &tree);
	} else {
		ret = uv_cmd(h.fd, front,
			     &(struct uv_cmd){ UV_EX(DESTROY_WQ), &cmd, sizeof(cmd), &resp, sizeof(resp) });
	}
	if (events)
		*events = resp.events_reported;
	return ret;
}

static struct uvd_wq *backend_wq(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_wq *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_wq, handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static int round_up(struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata)
{
	ck_assert_uint_eq(init->max_wr, 10);
	ck_assert_uint_eq(init->max_sge, 2);
	ck_assert_uint_eq(init->create_flags, IBV_WQ_FLAGS_SCATTER_FCS);
	ck_assert_ptr_nonnull(wq->pd);
	ck_assert_ptr_nonnull(wq->cq);
	init->max_wr = 16;
	init->max_sge = 4;
	wq->wq_num = 0x77;
	return 0;
}

static int create_method(const struct ib_uverbs_ex_create_wq *cmd, struct ib_uverbs_ex_create_wq_resp *resp)
{
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, cmd->pd_handle);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, cmd->cq_handle);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_WQ_TYPE, cmd->wq_type);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, &cmd->user_handle, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_MAX_WR, &cmd->max_wr, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_MAX_SGE, &cmd->max_sge, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_FLAGS, &cmd->create_flags, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &resp->max_wr, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &resp->max_sge, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &resp->wqn, 4);
	ret = uv_ioctl(h.fd, &tree);
	resp->wq_handle = tree.hdr.attrs[0].data;
	return ret;
}

START_TEST(test_create_wq_by_every_front_answers_what_the_backend_made)
{
	static const enum uv_front fronts[] = { UV_WRITE_EX, UV_INVOKE_EX, UV_METHOD };
	struct ib_uverbs_ex_create_wq_resp resp;
	struct ib_uverbs_ex_create_wq cmd;

	begin();
	h.ops.create_wq = round_up;
	cmd = wq_cmd();
	cmd.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(fronts); i++) {
		memset(&resp, 0, sizeof(resp));
		ck_assert_int_eq(
			fronts[i] == UV_METHOD ? create_method(&cmd, &resp) : create_front(fronts[i], &cmd, &resp), 0);
		ck_assert_uint_eq(resp.wq_handle, 2);
		ck_assert_uint_eq(resp.max_wr, 16);
		ck_assert_uint_eq(resp.max_sge, 4);
		ck_assert_uint_eq(resp.wqn, 0x77);
		ck_assert_int_eq(destroy_wq(UV_WRITE_EX, resp.wq_handle, NULL), 0);
	}
	assert_no_leak(2);
}
END_TEST

static int refuse(struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata)
{
	return -EDOM;
}

START_TEST(test_wq_that_the_backend_refuses_leaves_nothing)
{
	struct ib_uverbs_ex_create_wq_resp resp = {};
	struct ib_uverbs_ex_create_wq cmd;

	begin();
	cmd = wq_cmd();
	cmd.wq_type = 1;
	ck_assert_int_eq(create_front(UV_WRITE_EX, &cmd, &resp), -EINVAL); /* null's answer, as the next one */
	cmd.wq_type = IBV_WQT_RQ;
	cmd.create_flags = 1u << 31;
	ck_assert_int_eq(create_front(UV_WRITE_EX, &cmd, &resp), -EOPNOTSUPP);
	cmd.create_flags = 0;
	h.ops.create_wq = refuse;
	ck_assert_int_eq(create_front(UV_WRITE_EX, &cmd, &resp), -EDOM);
	assert_no_leak(2);
}
END_TEST

/* ---- MODIFY_WQ --------------------------------------------------------------------------------------------------- */

enum { STATE = IBV_WQ_ATTR_STATE, CUR = IBV_WQ_ATTR_CURR_STATE, FLAGS = IBV_WQ_ATTR_FLAGS };

static int modify(uint32_t wq, uint32_t mask, uint32_t state, uint32_t cur)
{
	struct ib_uverbs_ex_modify_wq cmd = {
		.attr_mask = mask, .wq_handle = wq, .wq_state = state, .curr_wq_state = cur, .flags = 1, .flags_mask = 3
	};

	return uv_cmd(h.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(MODIFY_WQ), &cmd, sizeof(cmd) });
}

static struct ibv_wq_attr seen;

static int see_modify(struct uvd_wq *wq, const struct ibv_wq_attr *attr, struct uvd_udata *udata)
{
	seen = *attr;
	return 0;
}

/* A field that the mask does not name has the queue's present value. */
START_TEST(test_backend_gets_what_the_mask_of_modify_wq_names)
{
	uint32_t wq;

	begin();
	wq = create_wq();
	h.ops.modify_wq = see_modify;
	ck_assert_int_eq(modify(wq, STATE | CUR, 1, 3), -EINVAL);
	ck_assert_uint_eq(seen.attr_mask, 0);
	ck_assert_int_eq(modify(wq, CUR, 9, IBV_WQS_RDY), 0);
	ck_assert_uint_eq(seen.curr_wq_state, IBV_WQS_RDY);
	ck_assert_uint_eq(seen.wq_state, IBV_WQS_RDY);
	ck_assert_uint_eq(seen.flags, 0);
	ck_assert_int_eq(modify(wq, STATE | FLAGS, IBV_WQS_RDY, 9), 0);
	ck_assert_uint_eq(seen.attr_mask, STATE | FLAGS);
	ck_assert_uint_eq(seen.curr_wq_state, IBV_WQS_RESET);
	ck_assert_uint_eq(seen.wq_state, IBV_WQS_RDY);
	ck_assert_uint_eq(seen.flags, 1);
	ck_assert_uint_eq(seen.flags_mask, 3);
}
END_TEST

START_TEST(test_modify_wq_follows_the_states)
{
	uint32_t wq;

	begin();
	wq = create_wq();
	ck_assert_int_eq(modify(wq, STATE, IBV_WQS_ERR, 0), -EINVAL);
	ck_assert_int_eq(modify(wq, STATE | CUR, IBV_WQS_ERR, IBV_WQS_RDY), -EINVAL);
	ck_assert_int_eq(modify(wq, STATE | CUR, IBV_WQS_RDY, IBV_WQS_RESET), 0);
	ck_assert_int_eq(modify(wq, STATE, IBV_WQS_ERR, 0), 0);
	ck_assert_int_eq(modify(wq, STATE, IBV_WQS_RDY, 0), -EINVAL);
	ck_assert_int_eq(modify(wq, STATE, IBV_WQS_RESET, 0), 0);
	ck_assert_int_eq(modify(wq, STATE, IBV_WQS_RDY, 0), 0);
	ck_assert_uint_eq(backend_wq(wq)->state, IBV_WQS_RDY);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_cleanup_04_destroy_wq_reports_the_events_that_were_read)
{
	static const enum uv_front fronts[] = { UV_WRITE_EX, UV_METHOD };
	struct ib_uverbs_async_event_desc event;
	struct uvd_wq *wq;
	uint32_t handle, events = 9;

	begin();
	for (unsigned int f = 0; f < UV_ARRAY_SIZE(fronts); f++) {
		handle = create_wq();
		wq = backend_wq(handle);
		for (int i = 0; i < 3; i++)
			wq->event_handler(wq, IBV_EVENT_WQ_FATAL);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(read(async_fd, &event, sizeof(event)), sizeof(event));
			ck_assert_uint_eq(event.element, 0xabcd);
			ck_assert_uint_eq(event.event_type, IBV_EVENT_WQ_FATAL);
		}
		ck_assert_int_eq(destroy_wq(fronts[f], handle, &events), 0);
		ck_assert_uint_eq(events, 2);
		/* The destroy has dropped the third event, which was not read. */
		ck_assert_int_eq(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), -1);
		ck_assert_int_eq(errno, EAGAIN);
	}
	assert_no_leak(2);
}
END_TEST

/* ---- tables ------------------------------------------------------------------------------------------------------ */

struct table_cmd {
	struct ib_uverbs_ex_create_rwq_ind_table base;
	uint32_t handles[4];
};

/* len: bytes of the command that are passed. */
static int create_table(const struct table_cmd *cmd, size_t len, uint32_t *table)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	int ret =
		uv_cmd(h.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(CREATE_RWQ_IND_TBL), cmd, len, &resp, sizeof(resp) });

	*table = resp.ind_tbl_handle;
	return ret;
}

static int destroy_table(uint32_t table)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd = { .ind_tbl_handle = table };

	return uv_cmd(h.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(DESTROY_RWQ_IND_TBL), &cmd, sizeof(cmd) });
}

static struct uvd_wq *tabled[4];

static int see_table(struct uvd_rwq_ind_table *table, struct uvd_udata *udata)
{
	ck_assert_uint_eq(table->log_ind_tbl_size, 2);
	ck_assert_ptr_nonnull(table->context);
	memcpy(tabled, table->ind_tbl, sizeof(tabled));
	table->ind_tbl_num = 5;
	return 0;
}

static int refuse_table(struct uvd_rwq_ind_table *table, struct uvd_udata *udata)
{
	return -EDOM;
}

START_TEST(test_backend_gets_the_queues_of_a_table)
{
	struct table_cmd cmd = { .base.log_ind_tbl_size = 2 };
	uint32_t wq[2], table = 0;

	begin();
	wq[0] = create_wq();
	wq[1] = create_wq();
	for (int i = 0; i < 4; i++)
		cmd.handles[i] = wq[i / 3];
	h.ops.create_rwq_ind_table = see_table;
	ck_assert_int_eq(create_table(&cmd, sizeof(cmd), &table), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(tabled[i], backend_wq(wq[i / 3]));
	ck_assert_int_eq(backend_wq(wq[0])->usecnt, 3);
	ck_assert_int_eq(destroy_table(table), 0);
	h.ops.create_rwq_ind_table = refuse_table;
	ck_assert_int_eq(create_table(&cmd, sizeof(cmd), &table), -EDOM);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(destroy_wq(UV_WRITE_EX, wq[i], NULL), 0);
	assert_no_leak(2);
}
END_TEST

/* ---- QPs with a table -------------------------------------------------------------------------------------------- */

static uint32_t make_table(void)
{
	struct table_cmd cmd = {};
	uint32_t table = 0;

	cmd.handles[0] = create_wq();
	ck_assert_int_eq(create_table(&cmd, 16, &table), 0);
	return table;
}

static int create_qp(uint32_t table, uint32_t max_send_wr, uint32_t *handle)
{
	struct ib_uverbs_ex_create_qp cmd = { .pd_handle = pd,
					      .send_cq_handle = max_send_wr ? cq : 99,
					      .recv_cq_handle = 99,
					      .max_send_wr = max_send_wr,
					      .qp_type = IBV_QPT_UD,
					      .comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
					      .rwq_ind_tbl_handle = table };
	struct ib_uverbs_ex_create_qp_resp resp = {};
	int ret =
		uv_cmd(h.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), &resp, sizeof(resp) });

	*handle = resp.base.qp_handle;
	return ret;
}

static int create_qp_method(uint32_t table, uint32_t max_send_wr, uint32_t *handle)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = max_send_wr };
	struct uv_tree tree;
	uint32_t qpn;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, table);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_UD);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &(uint64_t){ 1 }, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, 4);
	ret = uv_ioctl(h.fd, &tree);
	*handle = tree.hdr.attrs[0].data;
	return ret;
}

static struct uvd_qp_init_attr made;

static int see_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	ck_assert_ptr_eq(qp->rwq_ind_tbl, init->rwq_ind_tbl);
	made = *init;
	return 0;
}

/* A QP that cannot send has no send CQ, even if the method names one. */
START_TEST(test_backend_gets_a_qp_with_a_table_and_the_send_cq_if_it_sends)
{
	uint32_t table, qp;

	begin();
	table = make_table();
	h.ops.create_qp = see_qp;
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq((i / 2 ? create_qp_method : create_qp)(table, i % 2, &qp), 0);
		ck_assert_ptr_nonnull(made.rwq_ind_tbl);
		ck_assert_ptr_null(made.recv_cq);
		ck_assert_int_eq(made.send_cq != NULL, i % 2);
		ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp, NULL), 0);
	}
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(UV_WRITE_EX, 2, NULL), 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_query_device_tells_of_work_queues_and_flows)
{
	struct ib_uverbs_ex_query_device cmd = {};
	struct ib_uverbs_ex_query_device_resp resp = {};

	begin();
	ck_assert_int_eq(uv_cmd(h.fd, UV_WRITE_EX,
				&(struct uv_cmd){ UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &resp, sizeof(resp) }),
			 0);
	ck_assert(resp.base.device_cap_flags & IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING);
	ck_assert_uint_eq(resp.device_cap_flags_ex, resp.base.device_cap_flags);
	ck_assert_uint_eq(resp.rss_caps.supported_qpts, 1 << IBV_QPT_UD | 1 << IBV_QPT_RAW_PACKET);
	ck_assert_uint_eq(resp.rss_caps.max_rwq_indirection_table_size, 8192);
	ck_assert_uint_eq(resp.rss_caps.max_rwq_indirection_tables, h.config.limits.max_qp);
	ck_assert_uint_eq(resp.max_wq_type_rq, h.config.limits.max_qp);
}
END_TEST

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static char destroyed[8]; /* a letter for each object */

static int note_destroy(char letter)
{
	ck_assert_uint_lt(strlen(destroyed), sizeof(destroyed) - 1);
	destroyed[strlen(destroyed)] = letter;
	return 0;
}

static int note_wq(struct uvd_wq *wq)
{
	return note_destroy('w');
}

static int note_table(struct uvd_rwq_ind_table *table)
{
	return note_destroy('t');
}

static int note_qp(struct uvd_qp *qp)
{
	return note_destroy('q');
}

START_TEST(test_close_ends_qp_then_table_then_work_queue)
{
	uint32_t qp;

	begin();
	ck_assert_int_eq(create_qp(make_table(), 0, &qp), 0);
	create_wq();
	h.ops.destroy_wq = note_wq;
	h.ops.destroy_rwq_ind_table = note_table;
	h.ops.destroy_qp = note_qp;
	harness_close_file(&h);
	/* Newest first: the second work queue is not in the table. */
	ck_assert_str_eq(destroyed, "wqtw");
}
END_TEST

TEST_LIST(test_create_wq_by_every_front_answers_what_the_backend_made, test_wq_that_the_backend_refuses_leaves_nothing,
	  test_backend_gets_what_the_mask_of_modify_wq_names, test_modify_wq_follows_the_states,
	  test_cleanup_04_destroy_wq_reports_the_events_that_were_read, test_backend_gets_the_queues_of_a_table,
	  test_backend_gets_a_qp_with_a_table_and_the_send_cq_if_it_sends,
	  test_query_device_tells_of_work_queues_and_flows, test_close_ends_qp_then_table_then_work_queue)
