/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues by every front, lists of POST_SRQ_RECV, QPs that use an SRQ, and the counters of events. */
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

static struct ib_uverbs_create_srq plain(uint64_t user_handle)
{
	return (struct ib_uverbs_create_srq){ .user_handle = user_handle, .pd_handle = pd, .max_wr = 10, .max_sge = 2 };
}

static uint32_t create_srq(uint64_t user_handle)
{
	struct ib_uverbs_create_srq cmd = plain(user_handle);
	struct ib_uverbs_create_srq_resp resp = {};

	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &cmd, &resp), 0);
	return resp.srq_handle;
}

static int destroy_srq(uint32_t handle, uint32_t *events)
{
	struct ib_uverbs_destroy_srq cmd = { .srq_handle = handle };
	struct ib_uverbs_destroy_srq_resp resp = { .events_reported = ~0u };
	int ret = WRITE(&h, DESTROY_SRQ, &cmd, &resp);

	if (events)
		*events = resp.events_reported;
	return ret;
}

static struct uvd_srq *backend_srq(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_srq *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_srq, handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

/* The CQ of the SRQ is busy. Destroys the SRQ. */
static void assert_destroys(uint32_t srq)
{
	struct ib_uverbs_destroy_srq cmd = { .srq_handle = srq };
	struct ib_uverbs_destroy_cq cq_cmd = { .cq_handle = cq };
	struct ib_uverbs_destroy_srq_resp resp;
	struct ib_uverbs_destroy_cq_resp cq_resp;

	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &cq_cmd, &cq_resp), -EBUSY);
	ck_assert_int_eq(WRITE(&h, DESTROY_SRQ, &cmd, &resp), 0);
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

struct created {
	uint32_t max_wr, max_sge;
};

static struct ib_uverbs_attr *create_tree(struct harness_tree *tree, uint64_t type, struct created *out)
{
	struct ib_uverbs_attr *handle = tree_object(tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	uint32_t max_wr = 10, max_sge = 2, limit = 0;
	uint64_t user_handle = 0xabcd;

	tree_object(tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
	tree_const(tree, UVERBS_ATTR_CREATE_SRQ_TYPE, type);
	tree_in(tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &user_handle, sizeof(user_handle));
	tree_in(tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &max_wr, sizeof(max_wr));
	tree_in(tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &max_sge, sizeof(max_sge));
	tree_in(tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, sizeof(limit));
	tree_out(tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &out->max_wr, sizeof(out->max_wr));
	tree_out(tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &out->max_sge, sizeof(out->max_sge));
	return handle;
}

static int create_ioctl(struct harness_tree *tree)
{
	return harness_ioctl(&h, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, tree);
}

static int round_up(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr)
{
	ck_assert_uint_eq(attr->attr.max_wr, 10);
	ck_assert_uint_eq(attr->attr.max_sge, 2);
	srq->attr.max_wr = 16;
	srq->attr.max_sge = 4;
	return 0;
}

START_TEST(test_create_srq_by_every_front_answers_what_the_backend_made)
{
	struct ib_uverbs_create_srq cmd;
	struct ib_uverbs_create_xsrq xcmd;
	struct ib_uverbs_create_srq_resp resp = { .srqn = 7 };
	struct harness_tree tree = {};
	struct ib_uverbs_attr *handle;
	struct created out = {};

	begin();
	h.ops.create_srq = round_up;
	cmd = plain(1);
	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.srq_handle, 2);
	ck_assert_uint_eq(resp.max_wr, 16);
	ck_assert_uint_eq(resp.max_sge, 4);
	ck_assert_uint_eq(resp.srqn, 0);
	ck_assert_int_eq(INVOKE(&h, CREATE_SRQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.srq_handle, 3);
	xcmd = (struct ib_uverbs_create_xsrq){ .pd_handle = pd,
					       .max_wr = 10,
					       .max_sge = 2,
					       .srq_type = IB_UVERBS_SRQT_BASIC,
					       .cq_handle = 99,
					       .xrcd_handle = 99 };
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &xcmd, &resp), 0);
	ck_assert_uint_eq(resp.srq_handle, 4);
	handle = create_tree(&tree, IB_UVERBS_SRQT_BASIC, &out);
	ck_assert_int_eq(create_ioctl(&tree), 0);
	ck_assert_uint_eq(handle->data, 5);
	ck_assert_uint_eq(out.max_wr, 16);
	ck_assert_uint_eq(out.max_sge, 4);
}
END_TEST

START_TEST(test_srq_01_types_by_write)
{
	struct ib_uverbs_create_xsrq cmd;
	struct ib_uverbs_create_srq_resp resp;

	begin();
	cmd = (struct ib_uverbs_create_xsrq){
		.pd_handle = 99, .max_wr = 10, .max_sge = 2, .cq_handle = 99, .srq_type = IB_UVERBS_SRQT_XRC
	};
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -EINVAL); /* handle 0 is no XRC domain */
	cmd.srq_type = IB_UVERBS_SRQT_TM;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -ENOENT); /* the CQ */
	cmd.cq_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -ENOENT); /* then the PD */
	cmd.pd_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -EINVAL);
	cmd.pd_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.srqn, 0); /* only XRC SRQs have numbers */
	assert_destroys(resp.srq_handle);
	cmd.srq_type = 17; /* unknown: the backend refuses it */
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -EOPNOTSUPP);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_srq_01_types_by_ioctl)
{
	struct harness_tree tree = {};
	struct created out;
	uint32_t tags = 4;

	begin();
	create_tree(&tree, 17, &out);
	ck_assert_int_eq(create_ioctl(&tree), -EINVAL);
	tree = (struct harness_tree){};
	create_tree(&tree, IB_UVERBS_SRQT_XRC, &out);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT); /* no CQ */
	tree_object(&tree, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, cq);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT); /* no domain */
	tree = (struct harness_tree){};
	create_tree(&tree, IB_UVERBS_SRQT_TM, &out);
	tree_object(&tree, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, cq);
	ck_assert_int_eq(create_ioctl(&tree), -ENOENT); /* no number of tags */
	tree_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, &tags, sizeof(tags));
	ck_assert_int_eq(create_ioctl(&tree), 0);
	assert_destroys(2);
	assert_no_leak(2);
}
END_TEST

static int refuse_create(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr)
{
	return -EDOM;
}

START_TEST(test_create_srq_that_fails_leaves_nothing)
{
	struct ib_uverbs_create_srq cmd;
	struct ib_uverbs_create_srq_resp resp;
	struct harness_tree tree = {};
	struct created out;

	begin();
	cmd = plain(1);
	cmd.pd_handle = 99;
	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &cmd, &resp), -ENOENT);
	cmd = plain(1);
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), BAD, sizeof(resp)),
			 -EFAULT);
	h.ops.create_srq = refuse_create;
	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &cmd, &resp), -EDOM);
	create_tree(&tree, IB_UVERBS_SRQT_BASIC, &out);
	ck_assert_int_eq(create_ioctl(&tree), -EDOM);
	assert_no_leak(2);
}
END_TEST

/* ---- modify and query -------------------------------------------------------------------------------------------- */

static int see_modify(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	return attr->max_wr == 5 && attr->srq_limit == 3 && mask == (int)0x80000003 ? 0 : -EDOM;
}

static int see_query(struct uvd_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr){ 11, 12, 13 };
	return 0;
}

static int refuse_query(struct uvd_srq *srq, struct ibv_srq_attr *attr)
{
	return -EDOM;
}

START_TEST(test_modify_srq_hands_on_any_mask)
{
	struct ib_uverbs_modify_srq cmd = { .attr_mask = 0x80000003, .max_wr = 5, .srq_limit = 3 };

	begin();
	cmd.srq_handle = create_srq(1);
	h.ops.modify_srq = see_modify;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &cmd), 0);
	cmd.max_wr = 6;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &cmd), -EDOM);
	cmd.srq_handle = cq;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &cmd), -EINVAL);
	cmd.srq_handle = 99;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &cmd), -ENOENT);
}
END_TEST

START_TEST(test_query_srq_answers_what_the_backend_says)
{
	struct ib_uverbs_query_srq cmd = {};
	struct ib_uverbs_query_srq_resp resp = { .reserved = 7 };

	begin();
	cmd.srq_handle = create_srq(1);
	h.ops.query_srq = see_query;
	ck_assert_int_eq(WRITE(&h, QUERY_SRQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.max_wr, 11);
	ck_assert_uint_eq(resp.max_sge, 12);
	ck_assert_uint_eq(resp.srq_limit, 13);
	ck_assert_uint_eq(resp.reserved, 0);
	h.ops.query_srq = refuse_query;
	ck_assert_int_eq(WRITE(&h, QUERY_SRQ, &cmd, &resp), -EDOM);
	cmd.srq_handle = 99;
	ck_assert_int_eq(WRITE(&h, QUERY_SRQ, &cmd, &resp), -ENOENT);
}
END_TEST

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

static struct uvd_srq *seen_srq;

static int see_srq(struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	seen_srq = init->srq == qp->srq ? qp->srq : NULL;
	return uvd_backend_null.create_qp(qp, init);
}

START_TEST(test_srq_of_a_qp_is_ebusy)
{
	struct ib_uverbs_destroy_qp destroy = {};
	struct ib_uverbs_destroy_qp_resp destroyed;
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_create_qp_resp resp;
	uint32_t srq, events;

	begin();
	h.ops.create_qp = see_srq;
	srq = create_srq(1);
	cmd = (struct ib_uverbs_create_qp){ .pd_handle = pd,
					    .send_cq_handle = cq,
					    .recv_cq_handle = cq,
					    .qp_type = IBV_QPT_RC,
					    .max_send_wr = 1,
					    .is_srq = 1,
					    .srq_handle = 99 };
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -ENOENT);
	cmd.srq_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd.srq_handle = srq;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), 0);
	ck_assert_ptr_eq(seen_srq, backend_srq(srq));
	ck_assert_int_eq(destroy_srq(srq, NULL), -EBUSY);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
	destroy.qp_handle = resp.qp_handle;
	ck_assert_int_eq(WRITE(&h, DESTROY_QP, &destroy, &destroyed), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY); /* used by the SRQ */
	ck_assert_int_eq(destroy_srq(srq, &events), 0);
	ck_assert_uint_eq(events, 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_close_destroys_a_qp_and_its_srq)
{
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_create_qp_resp resp;

	begin();
	cmd = (struct ib_uverbs_create_qp){ .pd_handle = pd,
					    .send_cq_handle = cq,
					    .recv_cq_handle = cq,
					    .qp_type = IBV_QPT_RC,
					    .is_srq = 1,
					    .srq_handle = create_srq(1) };
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), 0);
	create_srq(2);
	harness_close_file(&h);
}
END_TEST

/* ---- POST_SRQ_RECV ----------------------------------------------------------------------------------------------- */

enum { MOST = 40 }; /* more than the dispatcher keeps on its stack */

static struct uvd_recv_wr posted[MOST];
static struct ibv_sge posted_sge[MOST];
static unsigned int num_posted, refused_at = ~0u;

static int see_post(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	for (num_posted = 0; wr; wr = wr->next, num_posted++) {
		if (num_posted == refused_at) {
			*bad = wr;
			return -ENOMEM;
		}
		posted[num_posted] = *wr;
		if (wr->num_sge)
			posted_sge[num_posted] = wr->sg_list[wr->num_sge - 1];
	}
	return 0;
}

struct list {
	struct ib_uverbs_post_srq_recv cmd;
	struct ib_uverbs_recv_wr wr[MOST];
	struct ib_uverbs_sge sge[2 * MOST];
};

/* n work requests with two entries each, packed as on the wire. */
static size_t fill(struct list *list, uint32_t srq, unsigned int n)
{
	struct ib_uverbs_sge *sge = (void *)&list->wr[n];

	*list = (struct list){
		.cmd = { .srq_handle = srq, .wr_count = n, .sge_count = 2 * n, .wqe_size = sizeof(list->wr[0]) }
	};
	for (unsigned int i = 0; i < n; i++) {
		list->wr[i] = (struct ib_uverbs_recv_wr){ .wr_id = 100 + i, .num_sge = 2 };
		sge[2 * i] = (struct ib_uverbs_sge){ .addr = i };
		sge[2 * i + 1] = (struct ib_uverbs_sge){ .addr = 1000 + i, .length = i, .lkey = 7 };
	}
	return sizeof(list->cmd) + n * (sizeof(list->wr[0]) + 2 * sizeof(list->sge[0]));
}

static int post(struct list *list, size_t len, struct ib_uverbs_post_srq_recv_resp *resp)
{
	return harness_write(&h, IB_USER_VERBS_CMD_POST_SRQ_RECV, list, len, resp, sizeof(*resp));
}

START_TEST(test_post_srq_recv_hands_the_list_on)
{
	struct ib_uverbs_post_srq_recv_resp resp = { .bad_wr = 9 };
	struct list list;
	uint32_t srq;

	begin();
	srq = create_srq(1);
	h.ops.post_srq_recv = see_post;
	ck_assert_int_eq(post(&list, fill(&list, srq, MOST), &resp), 0);
	ck_assert_uint_eq(resp.bad_wr, 0);
	ck_assert_uint_eq(num_posted, MOST);
	for (unsigned int i = 0; i < MOST; i++) {
		ck_assert_uint_eq(posted[i].wr_id, 100 + i);
		ck_assert_int_eq(posted[i].num_sge, 2);
		ck_assert_uint_eq(posted_sge[i].addr, 1000 + i);
		ck_assert_uint_eq(posted_sge[i].lkey, 7);
	}
}
END_TEST

START_TEST(test_qp_16_post_srq_recv_tells_the_first_refused)
{
	struct ib_uverbs_post_srq_recv_resp resp = {};
	struct list list;
	uint32_t srq;

	begin();
	srq = create_srq(1);
	h.ops.post_srq_recv = see_post;
	refused_at = 2;
	ck_assert_int_eq(post(&list, fill(&list, srq, 4), &resp), -ENOMEM);
	ck_assert_uint_eq(resp.bad_wr, 3);
	ck_assert_uint_eq(num_posted, 2);
}
END_TEST

START_TEST(test_qp_16_post_srq_recv_checks_the_list_before_the_handle)
{
	struct ib_uverbs_post_srq_recv_resp resp = {};
	struct list list;
	size_t len;

	begin();
	len = fill(&list, 99, 2);
	list.cmd.wqe_size = sizeof(list.wr[0]) - 1;
	list.cmd.wr_count = 1000;
	ck_assert_int_eq(post(&list, len, &resp), -EINVAL);
	list.cmd.wqe_size = sizeof(list.wr[0]);
	ck_assert_int_eq(post(&list, len, &resp), -ENOSPC);
	len = fill(&list, 99, 2);
	list.cmd.sge_count = 5;
	ck_assert_int_eq(post(&list, len, &resp), -ENOSPC);
	list.cmd.sge_count = 3;
	ck_assert_int_eq(post(&list, len, &resp), -EOPNOTSUPP); /* a tail that is not zero */
	len = fill(&list, 99, 2);
	list.wr[1].num_sge = 3;
	ck_assert_int_eq(post(&list, len, &resp), -EINVAL);
	ck_assert_int_eq(post(&list, fill(&list, 99, 2), &resp), -ENOENT);
	ck_assert_int_eq(post(&list, fill(&list, cq, 2), &resp), -EINVAL); /* not an SRQ */
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_cleanup_04_destroy_srq_counts_the_events_that_were_read)
{
	struct ib_uverbs_async_event_desc event = {};
	struct uvd_srq *a, *b;
	uint32_t first, second, events;

	begin();
	first = create_srq(0xaaaa);
	second = create_srq(0xbbbb);
	a = backend_srq(first);
	b = backend_srq(second);
	a->event_handler(a, IBV_EVENT_SRQ_LIMIT_REACHED);
	b->event_handler(b, IBV_EVENT_SRQ_ERR);
	a->event_handler(a, IBV_EVENT_SRQ_ERR);
	ck_assert_int_eq(read(async_fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 0xaaaa);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_int_eq(destroy_srq(first, &events), 0);
	ck_assert_uint_eq(events, 1);
	/* The destroy has dropped the unread event of the first SRQ. */
	ck_assert_int_eq(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.element, 0xbbbb);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_SRQ_ERR);
	ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(destroy_srq(second, &events), 0);
	ck_assert_uint_eq(events, 1);
}
END_TEST

/* The QP and its SRQ have the same user_handle: only the event's type tells whose it is. */
START_TEST(test_last_wqe_is_the_qps_event_and_not_the_srqs)
{
	struct ib_uverbs_destroy_qp destroy = {};
	struct ib_uverbs_destroy_qp_resp destroyed;
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_create_qp_resp resp;
	struct uvd_uobject *uobj;
	struct uvd_srq *srq;
	struct uvd_qp *qp;
	uint32_t handle, events;

	begin();
	handle = create_srq(0x5555);
	srq = backend_srq(handle);
	cmd = (struct ib_uverbs_create_qp){ .user_handle = 0x5555,
					    .pd_handle = pd,
					    .send_cq_handle = cq,
					    .recv_cq_handle = cq,
					    .qp_type = IBV_QPT_RC,
					    .is_srq = 1,
					    .srq_handle = handle };
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), 0);
	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_qp, resp.qp_handle, UVD_UOBJ_READ, &uobj), 0);
	qp = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	srq->event_handler(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	qp->event_handler(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	destroy.qp_handle = resp.qp_handle;
	ck_assert_int_eq(WRITE(&h, DESTROY_QP, &destroy, &destroyed), 0);
	ck_assert_uint_eq(destroyed.events_reported, 0);
	ck_assert_int_eq(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(destroy_srq(handle, &events), 0);
	ck_assert_uint_eq(events, 1);
}
END_TEST

START_TEST(test_srq_event_fd_and_destroy_by_ioctl)
{
	struct ib_uverbs_destroy_srq_resp resp = { .events_reported = 9 };
	struct harness_tree alloc = {}, create = {}, tree = {};
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_attr *handle;
	struct uvd_srq *srq;
	struct created out;
	int fd;

	begin();
	tree_object(&alloc, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, &alloc), 0);
	fd = h.granted;
	handle = create_tree(&create, IB_UVERBS_SRQT_BASIC, &out);
	tree_object(&create, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, fd);
	ck_assert_int_eq(create_ioctl(&create), 0);
	srq = backend_srq(handle->data);
	srq->event_handler(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.element, 0xabcd);
	tree_object(&tree, UVERBS_ATTR_DESTROY_SRQ_HANDLE, handle->data);
	tree_out(&tree, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, &tree), 0);
	ck_assert_uint_eq(resp.events_reported, 1);
}
END_TEST

static int refuse_destroy(struct uvd_srq *srq)
{
	return -EBUSY;
}

START_TEST(test_handle_09_an_srq_that_the_backend_keeps_stays)
{
	uint32_t srq;

	begin();
	srq = create_srq(1);
	h.ops.destroy_srq = refuse_destroy;
	ck_assert_int_eq(destroy_srq(srq, NULL), -EBUSY);
	h.ops.destroy_srq = uvd_backend_null.destroy_srq;
	ck_assert_int_eq(destroy_srq(srq, NULL), 0);
	ck_assert_int_eq(destroy_srq(srq, NULL), -ENOENT);
	assert_no_leak(2);
}
END_TEST

TEST_LIST(test_create_srq_by_every_front_answers_what_the_backend_made, test_srq_01_types_by_write,
	  test_srq_01_types_by_ioctl, test_create_srq_that_fails_leaves_nothing, test_modify_srq_hands_on_any_mask,
	  test_query_srq_answers_what_the_backend_says, test_srq_of_a_qp_is_ebusy, test_close_destroys_a_qp_and_its_srq,
	  test_post_srq_recv_hands_the_list_on, test_qp_16_post_srq_recv_tells_the_first_refused,
	  test_qp_16_post_srq_recv_checks_the_list_before_the_handle,
	  test_cleanup_04_destroy_srq_counts_the_events_that_were_read, test_last_wqe_is_the_qps_event_and_not_the_srqs,
	  test_srq_event_fd_and_destroy_by_ioctl, test_handle_09_an_srq_that_the_backend_keeps_stays)
