/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work queues, RWQ indirection tables, and QPs that are created with a table. */
#include <sys/mman.h>
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;
static int async_fd;

static void begin(void)
{
	struct ib_uverbs_get_context_resp context = {};

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	async_fd = context.async_fd;
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	ck_assert_int_eq(harness_create_cq(&h, 0x1111, 64, -1, &cq), 0);
}

/* The next handle is still `next`, and the PD and the CQ are not in use. */
static void assert_no_leak(uint32_t next)
{
	struct ib_uverbs_destroy_cq destroy = { .cq_handle = cq };
	struct ib_uverbs_destroy_cq_resp resp;
	uint32_t other;

	ck_assert_int_eq(harness_alloc_pd(&h, &other), 0);
	ck_assert_uint_eq(other, next);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &destroy, &resp), 0);
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

	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), 0);
	return resp.wq_handle;
}

static int destroy_wq(uint32_t handle, uint32_t *events)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .wq_handle = handle };
	struct ib_uverbs_ex_destroy_wq_resp resp = { .events_reported = ~0u };
	int ret = WRITE_EX(&h, DESTROY_WQ, &cmd, &resp);

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

struct created {
	uint32_t max_wr, max_sge, num;
};

static struct ib_uverbs_attr *create_tree(struct harness_tree *tree, uint64_t type, uint64_t flags, struct created *out)
{
	struct ib_uverbs_attr *handle = tree_object(tree, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	uint32_t max_wr = 10, max_sge = 2;
	uint64_t user_handle = 0xabcd;

	tree_object(tree, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, pd);
	tree_const(tree, UVERBS_ATTR_CREATE_WQ_TYPE, type);
	tree_in(tree, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, &user_handle, sizeof(user_handle));
	tree_in(tree, UVERBS_ATTR_CREATE_WQ_MAX_WR, &max_wr, sizeof(max_wr));
	tree_in(tree, UVERBS_ATTR_CREATE_WQ_MAX_SGE, &max_sge, sizeof(max_sge));
	tree_in(tree, UVERBS_ATTR_CREATE_WQ_FLAGS, &flags, sizeof(flags));
	tree_out(tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &out->max_wr, sizeof(out->max_wr));
	tree_out(tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &out->max_sge, sizeof(out->max_sge));
	return handle;
}

static int create_ioctl(struct harness_tree *tree)
{
	return harness_ioctl(&h, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, tree);
}

static int round_up(struct uvd_wq *wq, struct ibv_wq_init_attr *init)
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

START_TEST(test_create_wq_by_every_front_answers_what_the_backend_made)
{
	struct ib_uverbs_ex_create_wq cmd;
	struct ib_uverbs_ex_create_wq_resp resp = { .comp_mask = 9 };
	struct harness_tree tree = {};
	struct ib_uverbs_attr *handle;
	struct created out = {};

	begin();
	h.ops.create_wq = round_up;
	cmd = wq_cmd();
	cmd.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.comp_mask, 0);
	ck_assert_uint_eq(resp.response_length, sizeof(resp));
	ck_assert_uint_eq(resp.wq_handle, 2);
	ck_assert_uint_eq(resp.max_wr, 16);
	ck_assert_uint_eq(resp.max_sge, 4);
	ck_assert_uint_eq(resp.wqn, 0x77);
	ck_assert_int_eq(INVOKE_EX(&h, CREATE_WQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.wq_handle, 3);
	handle = create_tree(&tree, IBV_WQT_RQ, IBV_WQ_FLAGS_SCATTER_FCS, &out);
	tree_object(&tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, cq);
	tree_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &out.num, sizeof(out.num));
	ck_assert_int_eq(create_ioctl(&tree), 0);
	ck_assert_uint_eq(handle->data, 4);
	ck_assert_uint_eq(out.max_wr, 16);
	ck_assert_uint_eq(out.max_sge, 4);
	ck_assert_uint_eq(out.num, 0x77);
	for (uint32_t wq = 2; wq < 5; wq++) {
		ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
		ck_assert_int_eq(destroy_wq(wq, NULL), 0);
	}
	assert_no_leak(2);
}
END_TEST

START_TEST(test_create_wq_short_answer_says_how_long_it_is)
{
	struct ib_uverbs_ex_create_wq cmd;
	struct ib_uverbs_ex_create_wq_resp resp = { .max_sge = 77 };

	begin();
	cmd = wq_cmd();
	ck_assert_int_eq(harness_write_ex(&h, IB_USER_VERBS_EX_CMD_CREATE_WQ, &cmd, sizeof(cmd), &resp, 16), 0);
	ck_assert_uint_eq(resp.response_length, 16);
	ck_assert_uint_eq(resp.wq_handle, 2);
	ck_assert_uint_eq(resp.max_wr, 10);
	ck_assert_uint_eq(resp.max_sge, 77);
}
END_TEST

static int refuse(struct uvd_wq *wq, struct ibv_wq_init_attr *init)
{
	return -EDOM;
}

START_TEST(test_wq_01_what_create_wq_refuses_and_in_which_order)
{
	struct ib_uverbs_ex_create_wq cmd;
	struct ib_uverbs_ex_create_wq_resp resp = {};

	begin();
	cmd = wq_cmd();
	cmd.comp_mask = 1;
	cmd.pd_handle = 99;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -EOPNOTSUPP);
	cmd.comp_mask = 0;
	cmd.cq_handle = pd;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -ENOENT);
	cmd.pd_handle = pd;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -EINVAL);
	cmd.cq_handle = 99;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -ENOENT);
	cmd.cq_handle = cq;
	/* The reserved word is ignored. The backend checks the type and the flags. */
	cmd.reserved = 1;
	cmd.wq_type = 1;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -EINVAL);
	cmd.wq_type = IBV_WQT_RQ;
	cmd.create_flags = 1u << 31;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -EOPNOTSUPP);
	cmd.create_flags = 0;
	h.ops.create_wq = refuse;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_WQ, &cmd, &resp), -EDOM);
	h.ops = uvd_backend_null;
	ck_assert_int_eq(harness_write_ex(&h, IB_USER_VERBS_EX_CMD_CREATE_WQ, &cmd, sizeof(cmd), BAD, sizeof(resp)),
			 -EFAULT);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_wq_01_method_takes_known_flags_and_receive_queues_only)
{
	struct harness_tree tree = {};
	struct created out = {};

	begin();
	create_tree(&tree, IBV_WQT_RQ + 1, 0, &out);
	tree_object(&tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, cq);
	tree_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &out.num, sizeof(out.num));
	ck_assert_int_eq(create_ioctl(&tree), -EINVAL);
	tree = (struct harness_tree){};
	create_tree(&tree, IBV_WQT_RQ, IBV_WQ_FLAGS_RESERVED, &out);
	tree_object(&tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, cq);
	ck_assert_int_eq(create_ioctl(&tree), -EINVAL);
	/* The schema declares the CQ and RESP_WQ_NUM optional, but the method needs both. */
	tree = (struct harness_tree){};
	create_tree(&tree, IBV_WQT_RQ, 0, &out);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT);
	tree_object(&tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, cq);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT);
	assert_no_leak(2);
}
END_TEST

/* ---- MODIFY_WQ --------------------------------------------------------------------------------------------------- */

static int modify(uint32_t wq, uint32_t mask, uint32_t state, uint32_t cur)
{
	struct ib_uverbs_ex_modify_wq cmd = {
		.attr_mask = mask, .wq_handle = wq, .wq_state = state, .curr_wq_state = cur, .flags = 1, .flags_mask = 3
	};

	return WRITE_EX_IN(&h, MODIFY_WQ, &cmd);
}

static struct ibv_wq_attr seen;

static int see_modify(struct uvd_wq *wq, const struct ibv_wq_attr *attr)
{
	seen = *attr;
	return 0;
}

START_TEST(test_wq_02_modify_wq_checks_masks_and_states)
{
	enum { STATE = IBV_WQ_ATTR_STATE, CUR = IBV_WQ_ATTR_CURR_STATE, FLAGS = IBV_WQ_ATTR_FLAGS };
	uint32_t wq;

	begin();
	wq = create_wq();
	h.ops.modify_wq = see_modify;
	ck_assert_int_eq(modify(99, 0, 0, 0), -EINVAL);
	ck_assert_int_eq(modify(99, 8, 0, 0), -EINVAL);
	ck_assert_int_eq(modify(99, STATE, 9, 9), -ENOENT);
	ck_assert_int_eq(modify(pd, STATE, 9, 9), -EINVAL);
	ck_assert_int_eq(modify(wq, STATE, 3, 0), -EINVAL);
	ck_assert_int_eq(modify(wq, CUR, 0, 3), -EINVAL);
	ck_assert_int_eq(modify(wq, STATE | CUR, 3, 1), -EINVAL);
	ck_assert_int_eq(modify(wq, STATE | CUR, 1, 3), -EINVAL);
	ck_assert_uint_eq(seen.attr_mask, 0);
	/* Fields that the mask does not name are ignored. */
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
	/* A refused call must unlock the WQ; the kernel's leaks the lock (wq-02). */
	ck_assert_int_eq(modify(wq, STATE, 3, 0), -EINVAL);
	ck_assert_int_eq(destroy_wq(wq, NULL), 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_modify_wq_follows_the_states)
{
	enum { STATE = IBV_WQ_ATTR_STATE, CUR = IBV_WQ_ATTR_CURR_STATE };
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

/* ---- destruction, events ----------------------------------------------------------------------------------------- */

START_TEST(test_destroy_wq_refuses_a_comp_mask)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .comp_mask = 1 };
	struct ib_uverbs_ex_destroy_wq_resp resp = { .reserved = 7 };

	begin();
	cmd.wq_handle = create_wq();
	ck_assert_int_eq(WRITE_EX(&h, DESTROY_WQ, &cmd, &resp), -EOPNOTSUPP);
	cmd.comp_mask = 0;
	ck_assert_int_eq(WRITE_EX(&h, DESTROY_WQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.response_length, sizeof(resp));
	ck_assert_uint_eq(resp.events_reported, 0);
	ck_assert_uint_eq(resp.reserved, 0);
	ck_assert_int_eq(WRITE_EX(&h, DESTROY_WQ, &cmd, &resp), -ENOENT);
	assert_no_leak(2);
}
END_TEST

static int destroy_ioctl(uint32_t wq, uint32_t *events)
{
	struct harness_tree tree = {};

	tree_object(&tree, UVERBS_ATTR_DESTROY_WQ_HANDLE, wq);
	tree_out(&tree, UVERBS_ATTR_DESTROY_WQ_RESP, events, sizeof(*events));
	return harness_ioctl(&h, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, &tree);
}

START_TEST(test_cleanup_04_destroy_wq_reports_the_events_that_were_read)
{
	struct ib_uverbs_async_event_desc event;
	struct uvd_wq *wq;
	uint32_t handle, events = 9;

	begin();
	for (int by_ioctl = 0; by_ioctl < 2; by_ioctl++) {
		handle = create_wq();
		wq = backend_wq(handle);
		for (int i = 0; i < 3; i++)
			wq->event_handler(wq, IBV_EVENT_WQ_FATAL);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(read(async_fd, &event, sizeof(event)), sizeof(event));
			ck_assert_uint_eq(event.element, 0xabcd);
			ck_assert_uint_eq(event.event_type, IBV_EVENT_WQ_FATAL);
		}
		ck_assert_int_eq(by_ioctl ? destroy_ioctl(handle, &events) : destroy_wq(handle, &events), 0);
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
	uint32_t more[2];
};

/* len: bytes of the command that are passed. */
static int create_table(const struct table_cmd *cmd, size_t len, uint32_t *table)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = { .comp_mask = 9 };
	int ret = harness_write_ex(&h, IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, cmd, len, &resp, sizeof(resp));

	if (!ret) {
		ck_assert_uint_eq(resp.comp_mask, 0);
		ck_assert_uint_eq(resp.response_length, sizeof(resp));
		*table = resp.ind_tbl_handle;
	}
	return ret;
}

static int destroy_table(uint32_t table)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd = { .ind_tbl_handle = table };

	return WRITE_EX_IN(&h, DESTROY_RWQ_IND_TBL, &cmd);
}

static struct uvd_wq *tabled[4];

static int see_table(struct uvd_rwq_ind_table *table)
{
	ck_assert_uint_eq(table->log_ind_tbl_size, 2);
	ck_assert_ptr_nonnull(table->context);
	memcpy(tabled, table->ind_tbl, sizeof(tabled));
	table->ind_tbl_num = 5;
	return 0;
}

START_TEST(test_rwq_ind_tbl_holds_its_work_queues)
{
	struct table_cmd cmd = { .base.log_ind_tbl_size = 2 };
	struct harness_tree tree = {};
	uint32_t wq[2], table = 0;

	begin();
	wq[0] = create_wq();
	wq[1] = create_wq();
	for (int i = 0; i < 4; i++)
		cmd.handles[i] = wq[i / 3];
	h.ops.create_rwq_ind_table = see_table;
	ck_assert_int_eq(create_table(&cmd, sizeof(cmd.base) + 16, &table), 0);
	ck_assert_uint_eq(table, 4);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(tabled[i], backend_wq(wq[i / 3]));
	ck_assert_int_eq(destroy_wq(wq[0], NULL), -EBUSY);
	ck_assert_int_eq(destroy_wq(wq[1], NULL), -EBUSY);
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_table(table), -ENOENT);
	ck_assert_int_eq(destroy_table(wq[0]), -EINVAL);
	/* Zero words may follow the table. The ioctl method destroys a table as well. */
	ck_assert_int_eq(create_table(&cmd, sizeof(cmd), &table), 0);
	ck_assert_int_eq(destroy_wq(wq[0], NULL), -EBUSY);
	tree_object(&tree, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, table);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY, &tree), 0);
	ck_assert_int_eq(destroy_wq(wq[0], NULL), 0);
	ck_assert_int_eq(destroy_wq(wq[1], NULL), 0);
	assert_no_leak(2);
}
END_TEST

static int refuse_table(struct uvd_rwq_ind_table *table)
{
	return -EDOM;
}

START_TEST(test_wq_03_what_create_rwq_ind_tbl_refuses_and_in_which_order)
{
	struct table_cmd cmd = { .base = { .comp_mask = 1, .log_ind_tbl_size = 99 }, .more = { 0, 1 } };
	struct ib_uverbs_ex_destroy_rwq_ind_table destroy = { .comp_mask = 1 };
	uint32_t table;

	begin();
	cmd.handles[0] = cmd.handles[1] = create_wq();
	cmd.handles[2] = 99;
	cmd.handles[3] = pd;
	ck_assert_int_eq(create_table(&cmd, 0, &table), -ENOSPC);
	ck_assert_int_eq(create_table(&cmd, 8, &table), -EOPNOTSUPP);
	cmd.base.comp_mask = 0;
	ck_assert_int_eq(create_table(&cmd, 8, &table), -EINVAL);
	cmd.base.log_ind_tbl_size = 14;
	ck_assert_int_eq(create_table(&cmd, 8, &table), -EINVAL);
	cmd.base.log_ind_tbl_size = 13;
	ck_assert_int_eq(create_table(&cmd, 8, &table), -ENOSPC);
	cmd.base.log_ind_tbl_size = 2;
	ck_assert_int_eq(create_table(&cmd, 16, &table), -ENOSPC);
	ck_assert_int_eq(create_table(&cmd, sizeof(cmd), &table), -EOPNOTSUPP);
	ck_assert_int_eq(create_table(&cmd, 24, &table), -ENOENT);
	cmd.handles[2] = cmd.handles[0];
	ck_assert_int_eq(create_table(&cmd, 24, &table), -EINVAL);
	cmd.handles[3] = cmd.handles[0];
	h.ops.create_rwq_ind_table = refuse_table;
	ck_assert_int_eq(create_table(&cmd, 24, &table), -EDOM);
	h.ops = uvd_backend_null;
	ck_assert_int_eq(harness_write_ex(&h, IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, &cmd, 24, BAD, 16), -EFAULT);
	ck_assert_int_eq(WRITE_EX_IN(&h, DESTROY_RWQ_IND_TBL, &destroy), -EOPNOTSUPP);
	ck_assert_int_eq(destroy_wq(cmd.handles[0], NULL), 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_rwq_ind_tbl_may_have_8192_entries)
{
	struct {
		struct ib_uverbs_ex_create_rwq_ind_table base;
		uint32_t handles[8192];
	} *cmd = calloc(1, sizeof(*cmd));
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	uint32_t wq;

	begin();
	wq = create_wq();
	cmd->base.log_ind_tbl_size = 13;
	for (int i = 0; i < 8192; i++)
		cmd->handles[i] = wq;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_RWQ_IND_TBL, cmd, &resp), 0);
	ck_assert_int_eq(backend_wq(wq)->usecnt, 8192);
	ck_assert_int_eq(destroy_table(resp.ind_tbl_handle), 0);
	ck_assert_int_eq(INVOKE_EX(&h, CREATE_RWQ_IND_TBL, cmd, &resp), 0);
	ck_assert_int_eq(destroy_table(resp.ind_tbl_handle), 0);
	cmd->handles[8191] = 99;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_RWQ_IND_TBL, cmd, &resp), -ENOENT);
	ck_assert_int_eq(destroy_wq(wq, NULL), 0);
	assert_no_leak(2);
	free(cmd);
}
END_TEST

/* The kernel reads an ioctl's input piece by piece: an error in an earlier piece wins over a fault in a later one. */
START_TEST(test_rwq_ind_tbl_input_that_ends_at_unmapped_memory)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct table_cmd cmd = { .base.log_ind_tbl_size = 14 };
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp;
	uint32_t command = IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	uint8_t *memory = aligned_alloc(page, 2 * page), *at;

	begin();
	cmd.handles[0] = cmd.handles[1] = create_wq();
	ck_assert_int_eq(mprotect(memory + page, page, PROT_NONE), 0);
	/* Only the struct can be read. It is checked before the handles are read. */
	at = memcpy(memory + page - 8, &cmd, 8);
	ck_assert_int_eq(harness_invoke(&h, command, at, 16, &resp, sizeof(resp)), -EINVAL);
	((struct table_cmd *)at)->base.log_ind_tbl_size = 1;
	ck_assert_int_eq(harness_invoke(&h, command, at, 16, &resp, sizeof(resp)), -EFAULT);
	ck_assert_int_eq(harness_invoke(&h, command, at + 4, 16, &resp, sizeof(resp)), -EFAULT);
	/* The struct and the handles can be read, the tail cannot. */
	cmd.base.log_ind_tbl_size = 1;
	at = memcpy(memory + page - 16, &cmd, 16);
	ck_assert_int_eq(harness_invoke(&h, command, at, 24, &resp, sizeof(resp)), -EOPNOTSUPP);
	ck_assert_int_eq(harness_invoke(&h, command, at, 16, &resp, sizeof(resp)), 0);
	ck_assert_int_eq(mprotect(memory + page, page, PROT_READ | PROT_WRITE), 0);
	free(memory);
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

static struct ib_uverbs_ex_create_qp qp_cmd(uint32_t table)
{
	return (struct ib_uverbs_ex_create_qp){ .pd_handle = pd,
						.send_cq_handle = 99,
						.recv_cq_handle = 99,
						.qp_type = IBV_QPT_UD,
						.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
						.rwq_ind_tbl_handle = table };
}

static struct uvd_qp_init_attr made;

static int see_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	ck_assert_ptr_eq(qp->rwq_ind_tbl, init->rwq_ind_tbl);
	made = *init;
	return 0;
}

static int destroy_qp(uint32_t qp)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = qp };
	struct ib_uverbs_destroy_qp_resp resp;

	return WRITE(&h, DESTROY_QP, &cmd, &resp);
}

START_TEST(test_qp_with_a_table_keeps_it_in_use)
{
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct ib_uverbs_ex_create_qp cmd;
	uint32_t table;

	begin();
	table = make_table();
	h.ops.create_qp = see_qp;
	cmd = qp_cmd(table);
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), 0);
	ck_assert_ptr_nonnull(made.rwq_ind_tbl);
	ck_assert_ptr_null(made.recv_cq);
	ck_assert_ptr_null(made.send_cq);
	ck_assert_int_eq(destroy_table(table), -EBUSY);
	ck_assert_int_eq(destroy_qp(resp.base.qp_handle), 0);
	/* A QP that can send needs the send CQ. The handle of the receive CQ is ignored. */
	cmd.max_send_wr = 1;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -ENOENT);
	cmd.send_cq_handle = cq;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), 0);
	ck_assert_ptr_nonnull(made.send_cq);
	ck_assert_ptr_null(made.recv_cq);
	ck_assert_int_eq(destroy_qp(resp.base.qp_handle), 0);
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(2, NULL), 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_qp_03_table_with_receive_capabilities_or_srq_is_einval)
{
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct ib_uverbs_ex_create_qp cmd;

	begin();
	cmd = qp_cmd(make_table());
	cmd.max_recv_wr = 1;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd.rwq_ind_tbl_handle = 99;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -ENOENT);
	cmd = qp_cmd(3);
	cmd.max_recv_sge = 1;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd = qp_cmd(3);
	cmd.is_srq = 1;
	cmd.srq_handle = 99;
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd = qp_cmd(2);
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	ck_assert_int_eq(destroy_table(3), 0);
	ck_assert_int_eq(destroy_wq(2, NULL), 0);
	assert_no_leak(2);
}
END_TEST

static int create_qp_ioctl(uint32_t table, uint32_t max_send_wr, uint32_t max_recv_wr, bool send_cq, bool recv_cq,
			   uint64_t *handle)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = max_send_wr, .max_recv_wr = max_recv_wr };
	struct harness_tree tree = {};
	struct ib_uverbs_attr *attr = tree_object(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uint64_t user_handle = 1;
	uint32_t qpn;
	int ret;

	tree_object(&tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	tree_object(&tree, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, table);
	tree_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_UD);
	tree_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
	tree_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	tree_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	tree_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
	if (send_cq)
		tree_object(&tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	if (recv_cq)
		tree_object(&tree, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq);
	ret = harness_ioctl(&h, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, &tree);
	if (handle)
		*handle = attr->data;
	return ret;
}

START_TEST(test_qp_03_by_method)
{
	uint64_t qp = 0;
	uint32_t table;

	begin();
	table = make_table();
	h.ops.create_qp = see_qp;
	ck_assert_int_eq(create_qp_ioctl(99, 0, 0, false, false, NULL), -ENOENT);
	ck_assert_int_eq(create_qp_ioctl(table, 0, 1, false, false, NULL), -EINVAL);
	ck_assert_int_eq(create_qp_ioctl(table, 0, 0, false, true, NULL), -EINVAL);
	ck_assert_int_eq(create_qp_ioctl(table, 1, 0, false, false, NULL), -ENOENT);
	ck_assert_int_eq(create_qp_ioctl(table, 1, 0, true, false, &qp), 0);
	ck_assert_ptr_nonnull(made.send_cq);
	ck_assert_int_eq(destroy_table(table), -EBUSY);
	ck_assert_int_eq(destroy_qp(qp), 0);
	/* A QP that cannot send has no send CQ, even if the call names one. */
	ck_assert_int_eq(create_qp_ioctl(table, 0, 0, true, false, &qp), 0);
	ck_assert_ptr_null(made.send_cq);
	ck_assert_int_eq(destroy_qp(qp), 0);
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(2, NULL), 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_query_device_tells_of_work_queues_and_flows)
{
	struct ib_uverbs_ex_query_device cmd = {};
	struct ib_uverbs_ex_query_device_resp resp = {};

	begin();
	ck_assert_int_eq(WRITE_EX(&h, QUERY_DEVICE, &cmd, &resp), 0);
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
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct ib_uverbs_ex_create_qp cmd;

	begin();
	cmd = qp_cmd(make_table());
	ck_assert_int_eq(WRITE_EX(&h, CREATE_QP, &cmd, &resp), 0);
	create_wq();
	h.ops.destroy_wq = note_wq;
	h.ops.destroy_rwq_ind_table = note_table;
	h.ops.destroy_qp = note_qp;
	harness_close_file(&h);
	/* Newest first: the second work queue is not in the table. */
	ck_assert_str_eq(destroyed, "wqtw");
}
END_TEST

TEST_LIST(test_create_wq_by_every_front_answers_what_the_backend_made, test_create_wq_short_answer_says_how_long_it_is,
	  test_wq_01_what_create_wq_refuses_and_in_which_order,
	  test_wq_01_method_takes_known_flags_and_receive_queues_only, test_wq_02_modify_wq_checks_masks_and_states,
	  test_modify_wq_follows_the_states, test_destroy_wq_refuses_a_comp_mask,
	  test_cleanup_04_destroy_wq_reports_the_events_that_were_read, test_rwq_ind_tbl_holds_its_work_queues,
	  test_wq_03_what_create_rwq_ind_tbl_refuses_and_in_which_order, test_rwq_ind_tbl_may_have_8192_entries,
	  test_rwq_ind_tbl_input_that_ends_at_unmapped_memory, test_qp_with_a_table_keeps_it_in_use,
	  test_qp_03_table_with_receive_capabilities_or_srq_is_einval, test_qp_03_by_method,
	  test_query_device_tells_of_work_queues_and_flows, test_close_ends_qp_then_table_then_work_queue)
