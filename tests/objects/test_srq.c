/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: what the backend gets and answers, and the counters of events. tests/abi/rules_srq.c has the
 * checks.
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

static struct uv_srq_attr srq_attr(uint64_t user_handle)
{
	return (struct uv_srq_attr){ .user_handle = user_handle, .pd = pd, .max_wr = 10, .max_sge = 2 };
}

static uint32_t create_srq(uint64_t user_handle)
{
	struct uv_srq_attr attr = srq_attr(user_handle);
	struct uv_srq srq;

	ck_assert_int_eq(uv_create_srq(h.fd, UV_WRITE, &attr, &srq), 0);
	return srq.handle;
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

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static int round_up(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata)
{
	ck_assert_uint_eq(attr->attr.max_wr, 10);
	ck_assert_uint_eq(attr->attr.max_sge, 2);
	srq->attr.max_wr = 16;
	srq->attr.max_sge = 4;
	return 0;
}

static int refuse_create(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata)
{
	return -EDOM;
}

START_TEST(test_create_srq_by_every_front_answers_what_the_backend_made)
{
	static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };
	struct uv_srq_attr attr;
	struct uv_srq srq;

	begin();
	attr = srq_attr(1);
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(fronts); i++) {
		h.ops.create_srq = round_up;
		ck_assert_int_eq(uv_create_srq(h.fd, fronts[i], &attr, &srq), 0);
		ck_assert_uint_eq(srq.handle, 2);
		ck_assert_uint_eq(srq.max_wr, 16);
		ck_assert_uint_eq(srq.max_sge, 4);
		ck_assert_uint_eq(srq.srqn, 0);
		ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, srq.handle, NULL), 0);
		h.ops.create_srq = refuse_create;
		ck_assert_int_eq(uv_create_srq(h.fd, fronts[i], &attr, &srq), -EDOM);
	}
	assert_no_leak(2);
}
END_TEST

/* The null backend has SRQs with tag matching. */
START_TEST(test_srq_with_tags_keeps_its_cq_in_use)
{
	struct uv_srq_attr attr;
	struct uv_srq srq;

	begin();
	attr = srq_attr(1);
	attr.type = IB_UVERBS_SRQT_TM;
	attr.cq = cq;
	attr.tags = 4;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(i ? uv_create_srq(h.fd, UV_METHOD, &attr, &srq)
				   : uv_create_xsrq(h.fd, UV_WRITE, &attr, &srq),
				 0);
		ck_assert_uint_eq(srq.srqn, 0); /* only XRC SRQs have numbers */
		ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, cq, NULL), -EBUSY);
		ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, srq.handle, NULL), 0);
	}
	assert_no_leak(2);
}
END_TEST

/* ---- modify and query -------------------------------------------------------------------------------------------- */

static int see_modify(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata)
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
	uint32_t srq;

	begin();
	srq = create_srq(1);
	h.ops.modify_srq = see_modify;
	ck_assert_int_eq(uv_modify_srq(h.fd, UV_WRITE, srq, 0x80000003, 5, 3), 0);
	ck_assert_int_eq(uv_modify_srq(h.fd, UV_WRITE, srq, 0x80000003, 6, 3), -EDOM);
}
END_TEST

START_TEST(test_query_srq_answers_what_the_backend_says)
{
	struct ib_uverbs_query_srq_resp resp = { .reserved = 7 };
	uint32_t srq;

	begin();
	srq = create_srq(1);
	h.ops.query_srq = see_query;
	ck_assert_int_eq(uv_query_srq(h.fd, UV_WRITE, srq, &resp), 0);
	ck_assert_uint_eq(resp.max_wr, 11);
	ck_assert_uint_eq(resp.max_sge, 12);
	ck_assert_uint_eq(resp.srq_limit, 13);
	ck_assert_uint_eq(resp.reserved, 0);
	h.ops.query_srq = refuse_query;
	ck_assert_int_eq(uv_query_srq(h.fd, UV_WRITE, srq, &resp), -EDOM);
}
END_TEST

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

static struct uvd_srq *seen_srq;

static int see_srq(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	seen_srq = init->srq == qp->srq ? qp->srq : NULL;
	return uvd_backend_null.create_qp(qp, init, NULL);
}

static uint32_t create_qp(uint64_t user_handle, uint32_t srq)
{
	struct ib_uverbs_create_qp cmd = { .user_handle = user_handle,
					   .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 1,
					   .qp_type = IBV_QPT_RC,
					   .is_srq = 1,
					   .srq_handle = srq };
	struct ib_uverbs_create_qp_resp resp = {};

	ck_assert_int_eq(
		uv_cmd(h.fd, UV_WRITE,
		       &(struct uv_cmd){ IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp) }),
		0);
	return resp.qp_handle;
}

START_TEST(test_backend_gets_the_srq_of_a_qp)
{
	uint32_t srq, qp;

	begin();
	h.ops.create_qp = see_srq;
	srq = create_srq(1);
	qp = create_qp(1, srq);
	ck_assert_ptr_eq(seen_srq, backend_srq(srq));
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp, NULL), 0);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), -EBUSY); /* used by the SRQ */
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, srq, NULL), 0);
	assert_no_leak(2);
}
END_TEST

START_TEST(test_close_destroys_a_qp_and_its_srq)
{
	begin();
	create_qp(1, create_srq(1));
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

/* Posts n work requests with two entries each, packed as on the wire. */
static int post(uint32_t srq, unsigned int n, struct ib_uverbs_post_srq_recv_resp *resp)
{
	static struct list list;
	struct ib_uverbs_sge *sge = (void *)&list.wr[n];
	size_t len = sizeof(list.cmd) + n * (sizeof(list.wr[0]) + 2 * sizeof(list.sge[0]));

	list = (struct list){
		.cmd = { .srq_handle = srq, .wr_count = n, .sge_count = 2 * n, .wqe_size = sizeof(list.wr[0]) }
	};
	for (unsigned int i = 0; i < n; i++) {
		list.wr[i] = (struct ib_uverbs_recv_wr){ .wr_id = 100 + i, .num_sge = 2 };
		sge[2 * i] = (struct ib_uverbs_sge){ .addr = i };
		sge[2 * i + 1] = (struct ib_uverbs_sge){ .addr = 1000 + i, .length = i, .lkey = 7 };
	}
	return uv_cmd(h.fd, UV_WRITE,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_POST_SRQ_RECV, &list, len, resp, sizeof(*resp) });
}

START_TEST(test_post_srq_recv_hands_the_list_on)
{
	struct ib_uverbs_post_srq_recv_resp resp = { .bad_wr = 9 };
	uint32_t srq;

	begin();
	srq = create_srq(1);
	h.ops.post_srq_recv = see_post;
	ck_assert_int_eq(post(srq, MOST, &resp), 0);
	ck_assert_uint_eq(resp.bad_wr, 0);
	ck_assert_uint_eq(num_posted, MOST);
	for (unsigned int i = 0; i < MOST; i++) {
		ck_assert_uint_eq(posted[i].wr_id, 100 + i);
		ck_assert_int_eq(posted[i].num_sge, 2);
		ck_assert_uint_eq(posted_sge[i].addr, 1000 + i);
		ck_assert_uint_eq(posted_sge[i].lkey, 7);
	}
	refused_at = 2;
	ck_assert_int_eq(post(srq, 4, &resp), -ENOMEM);
	ck_assert_uint_eq(resp.bad_wr, 3);
	ck_assert_uint_eq(num_posted, 2);
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
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, first, &events), 0);
	ck_assert_uint_eq(events, 1);
	/* The destroy has dropped the unread event of the first SRQ. */
	ck_assert_int_eq(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.element, 0xbbbb);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_SRQ_ERR);
	ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, second, &events), 0);
	ck_assert_uint_eq(events, 1);
}
END_TEST

/* The QP and its SRQ have the same user_handle: only the event's type tells whose it is. */
START_TEST(test_last_wqe_is_the_qps_event_and_not_the_srqs)
{
	struct ib_uverbs_async_event_desc event;
	struct uvd_uobject *uobj;
	struct uvd_srq *srq;
	struct uvd_qp *qp;
	uint32_t handle, qp_handle, events;

	begin();
	handle = create_srq(0x5555);
	srq = backend_srq(handle);
	qp_handle = create_qp(0x5555, handle);
	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_qp, qp_handle, UVD_UOBJ_READ, &uobj), 0);
	qp = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	srq->event_handler(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	qp->event_handler(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp_handle, &events), 0);
	ck_assert_uint_eq(events, 0);
	ck_assert_int_eq(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, handle, &events), 0);
	ck_assert_uint_eq(events, 1);
}
END_TEST

START_TEST(test_srq_event_fd_and_destroy_by_method)
{
	struct ib_uverbs_async_event_desc event;
	uint32_t max_wr = 10, max_sge = 2, limit = 0, got[2], events;
	struct uv_tree tree;
	struct uvd_srq *srq;
	int fd;

	begin();
	ck_assert_int_eq(uv_alloc_async_fd(h.fd, &fd), 0);
	uv_tree_init(&tree, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, fd);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &(uint64_t){ 0xabcd }, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &max_wr, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &max_sge, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &got[0], 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &got[1], 4);
	ck_assert_int_eq(uv_ioctl(h.fd, &tree), 0);
	srq = backend_srq(tree.hdr.attrs[0].data);
	srq->event_handler(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.element, 0xabcd);
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_METHOD, tree.hdr.attrs[0].data, &events), 0);
	ck_assert_uint_eq(events, 1);
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
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, srq, NULL), -EBUSY);
	h.ops.destroy_srq = uvd_backend_null.destroy_srq;
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, srq, NULL), 0);
	ck_assert_int_eq(uv_destroy_srq(h.fd, UV_WRITE, srq, NULL), -ENOENT);
	assert_no_leak(2);
}
END_TEST

TEST_LIST(test_create_srq_by_every_front_answers_what_the_backend_made, test_srq_with_tags_keeps_its_cq_in_use,
	  test_modify_srq_hands_on_any_mask, test_query_srq_answers_what_the_backend_says,
	  test_backend_gets_the_srq_of_a_qp, test_close_destroys_a_qp_and_its_srq, test_post_srq_recv_hands_the_list_on,
	  test_cleanup_04_destroy_srq_counts_the_events_that_were_read, test_last_wqe_is_the_qps_event_and_not_the_srqs,
	  test_srq_event_fd_and_destroy_by_method, test_handle_09_an_srq_that_the_backend_keeps_stays)
