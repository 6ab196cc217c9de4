/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * POST_SEND, POST_RECV and POST_SRQ_RECV; their rows are in qp.c and srq.c. After the command's struct the client
 * sends wr_count work requests of wqe_size bytes each, then the scatter-gather entries of all of them. Lists of the
 * usual length need no allocation.
 */
#include "call/call.h"
#include "objects/internal.h"

enum {
	POST_ON_STACK = 32, /* work requests */
	INLINE_ON_STACK = 1024, /* bytes of inline data of a whole list */
};

/* The backend gets the client's entries unconverted, so the layouts must match. */
_Static_assert(sizeof(struct ib_uverbs_sge) == sizeof(struct ibv_sge), "scatter-gather entry");
_Static_assert(offsetof(struct ib_uverbs_sge, length) == offsetof(struct ibv_sge, length), "scatter-gather entry");
_Static_assert(offsetof(struct ib_uverbs_sge, lkey) == offsetof(struct ibv_sge, lkey), "scatter-gather entry");
_Static_assert(sizeof(struct ib_uverbs_post_send) == sizeof(struct ib_uverbs_post_recv), "struct of a post");
_Static_assert(sizeof(struct ib_uverbs_post_send) == sizeof(struct ib_uverbs_post_srq_recv), "struct of a post");

struct post {
	struct ib_uverbs_post_send cmd; /* POST_RECV has the same fields; POST_SRQ_RECV has srq_handle for qp_handle */
	const uint8_t *wqes; /* wr_count work requests of wqe_size bytes each */
	const struct ibv_sge *sges; /* sge_count entries */
	uint64_t sges_used;
};

/* ---- the lists in the client's command --------------------------------------------------------------------------- */

/* Consumes `size` bytes of the input. Returns where they begin, or NULL if fewer are left. */
static const uint8_t *post_take_bytes(const uint8_t **next, size_t *left, uint64_t size)
{
	const uint8_t *taken = *next;

	if (size > *left)
		return NULL;
	*next += size;
	*left -= size;
	return taken;
}

static bool post_is_zero(const uint8_t *buf, size_t len)
{
	while (len)
		if (buf[--len])
			return false;
	return true;
}

static int find_lists(struct uvd_req *req, struct post *post)
{
	const struct ib_uverbs_post_send *cmd = &post->cmd;
	const uint8_t *next = req->core_in.buf + sizeof(*cmd);
	size_t left = req->core_in.len - sizeof(*cmd), size = cmd->sge_count * sizeof(struct ibv_sge);
	const uint8_t *sges;
	struct ibv_sge *copy;

	/* The product of two 32-bit numbers needs 64 bits (regression-06). */
	post->wqes = post_take_bytes(&next, &left, (uint64_t)cmd->wqe_size * cmd->wr_count);
	if (!post->wqes)
		return uvd_bad(req, -ENOSPC, "wr_count", cmd->wr_count);
	sges = post_take_bytes(&next, &left, size);
	if (!sges)
		return uvd_bad(req, -ENOSPC, "sge_count", cmd->sge_count);
	if (!post_is_zero(next, left))
		return uvd_bad(req, -EOPNOTSUPP, "length", req->core_in.len);
	post->sges = (const struct ibv_sge *)sges;
	if ((uintptr_t)sges % _Alignof(struct ibv_sge) == 0)
		return 0;
	/* The entries are misaligned only if wqe_size is not a multiple of 8. */
	copy = uvd_req_alloc(req, size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, sges, size);
	post->sges = copy;
	return 0;
}

static int post_read_command(struct uvd_req *req, struct post *post)
{
	if (req->core_in.len < sizeof(post->cmd))
		return -ENOSPC;
	if (!req->core_in.buf)
		return -EFAULT;
	memcpy(&post->cmd, req->core_in.buf, sizeof(post->cmd));
	return 0;
}

/* Sets *sg_list to the next num_sge entries. Returns 0, or -EINVAL if the client sent fewer. */
static int take_sges(struct uvd_req *req, struct post *post, uint32_t num_sge, const struct ibv_sge **sg_list)
{
	if (post->sges_used + num_sge > post->cmd.sge_count)
		return uvd_bad(req, -EINVAL, "num_sge", num_sge);
	*sg_list = num_sge ? post->sges + post->sges_used : NULL;
	post->sges_used += num_sge;
	return 0;
}

/* The position of `bad` in the list, from 1. If it is not in the list: the length of the list. */
#define BAD_WR(first, bad) \
	({ \
		uint32_t _n = 0; \
		for (typeof(first) _w = first; _w; _w = _w->next) { \
			_n++; \
			if (_w == (bad)) \
				break; \
		} \
		_n; \
	})

/* Writes bad_wr to the client even if the post failed (qp-16). Returns the error of the write, or else `ret`. */
static int post_answer(struct uvd_req *req, int ret, uint32_t bad_wr)
{
	struct ib_uverbs_post_send_resp resp = { .bad_wr = bad_wr };
	int err = uvd_core_out(req, &resp);

	return err ? err : ret;
}

/*
 * A backend does not tell why it refuses a post, but its QP or SRQ does, and send_why(). The functions below return err. With filters
 * nobody knows whether a refusal is the backend's: what these do not show stays without a reason.
 */

static int refuse_full(struct uvd_req *req, int err, const char *queue, uint32_t entries)
{
	return err == -ENOMEM && !uvd_req_is_filtered(req)
		       ? uvd_refuse(req, err, &uvd_why(POST_FULL, { .word = queue }, { entries }))
		       : err;
}

static bool state_takes(enum ibv_qp_state state, enum ibv_qp_state first)
{
	return state >= first && state <= IBV_QPS_ERR;
}

static int refuse_sges(struct uvd_req *req, int err, int num_sge, uint32_t most)
{
	if (err == -EINVAL && num_sge > (int)most)
		uvd_check_range_of(req, "num_sge", num_sge, 0, most);
	return err;
}

/* Reads the QP's state and caps. Returns false if the backend cannot tell. */
static bool post_query(struct uvd_req *req, struct uvd_qp *qp, enum ibv_qp_state *state, struct ibv_qp_cap *cap)
{
	struct uvd_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};

	uvd_req_about(req, "QP", qp->qp_num);
	if (!uvd_ops(req)->query_qp || uvd_ops(req)->query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init))
		return false;
	*state = attr.qp_state;
	*cap = init.cap;
	return true;
}

static int refuse_wr(struct uvd_req *req, int err, struct uvd_qp *qp, const struct uvd_send_wr *bad)
{
	const struct uvd_backend *ops = uvd_ops(req);
	struct uvd_why why = { .reason = NULL };

	if (ops->send_why)
		ops->send_why(qp, bad, &why);
	else if (!uvd_req_is_filtered(req))
		why = uvd_why(SEND_REFUSED);
	if (why.reason)
		uvd_refuse(req, err, &why);
	return err;
}

/* bad: NULL if it is not known. */
static int refuse_send(struct uvd_req *req, int err, struct uvd_qp *qp, const struct uvd_send_wr *bad)
{
	enum ibv_qp_state state;
	struct ibv_qp_cap cap;

	if (!err || req->has_why || req->bad_field || !post_query(req, qp, &state, &cap))
		return err;
	if (err == -EINVAL && !state_takes(state, IBV_QPS_RTS))
		return uvd_refuse(req, err, &uvd_why(POST_STATE, { .word = "send" }, { state }, { IBV_QPS_RTS }));
	if (err == -EINVAL && bad)
		return refuse_wr(req, err, qp, bad);
	return refuse_full(req, err, "send", cap.max_send_wr);
}

static int refuse_recv(struct uvd_req *req, int err, struct uvd_qp *qp, const struct uvd_recv_wr *bad)
{
	enum ibv_qp_state state;
	struct ibv_qp_cap cap;

	if (!err || req->has_why || req->bad_field || !post_query(req, qp, &state, &cap))
		return err;
	if (err == -EINVAL && qp->srq)
		return uvd_refuse(req, err, &uvd_why(POST_HAS_SRQ, { 0 }));
	if (err == -EINVAL && !state_takes(state, IBV_QPS_INIT))
		return uvd_refuse(req, err, &uvd_why(POST_STATE, { .word = "receive" }, { state }, { IBV_QPS_INIT }));
	if (err == -EINVAL && (qp->rq || !qp->recv_cq))
		return uvd_refuse(req, err, &uvd_why(POST_NO_QUEUE, { .word = "the QP" }));
	if (bad && err == -EINVAL)
		return refuse_sges(req, err, bad->num_sge, cap.max_recv_sge);
	return refuse_full(req, err, "receive", cap.max_recv_wr);
}

static int refuse_srq_recv(struct uvd_req *req, int err, struct uvd_srq *srq, const struct uvd_recv_wr *bad)
{
	struct ibv_srq_attr attr = {};

	if (!err || req->has_why || req->bad_field || !uvd_ops(req)->query_srq || uvd_ops(req)->query_srq(srq, &attr))
		return err;
	if (err == -EINVAL && srq->queue)
		return uvd_refuse(req, err, &uvd_why(POST_NO_QUEUE, { .word = "the SRQ" }));
	if (bad && err == -EINVAL)
		return refuse_sges(req, err, bad->num_sge, attr.max_sge);
	return refuse_full(req, err, "shared receive", attr.max_wr);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

struct send_list {
	struct post post;
	struct uvd_send_wr *wrs;
	struct uvd_uobject **ahs; /* UD: each request's address handle, in shared use until the list is posted */
	uint32_t num_ahs;
	uint8_t *inline_data;
	size_t inline_left;
	struct uvd_send_wr wrs_on_stack[POST_ON_STACK];
	struct uvd_uobject *ahs_on_stack[POST_ON_STACK];
	uint8_t inline_on_stack[INLINE_ON_STACK];
};

static int alloc_send_list(struct uvd_req *req, struct send_list *list)
{
	uint32_t n = list->post.cmd.wr_count;

	list->num_ahs = 0;
	list->inline_data = list->inline_on_stack;
	list->inline_left = INLINE_ON_STACK;
	list->wrs = list->wrs_on_stack;
	list->ahs = list->ahs_on_stack;
	if (n <= POST_ON_STACK)
		return 0;
	list->wrs = uvd_req_alloc(req, n * sizeof(*list->wrs));
	list->ahs = uvd_req_alloc(req, n * sizeof(*list->ahs));
	return list->wrs && list->ahs ? 0 : -ENOMEM;
}

static uint8_t *inline_space(struct uvd_req *req, struct send_list *list, size_t len)
{
	uint8_t *space = list->inline_data;

	if (len > list->inline_left)
		return uvd_req_alloc(req, len);
	list->inline_data += len;
	list->inline_left -= len;
	return space;
}

/* Copies a request's inline data: the client may reuse its buffers as soon as the call returns. */
static int read_inline(struct uvd_req *req, struct send_list *list, struct uvd_send_wr *wr)
{
	uint64_t len = 0;
	uint8_t *to;
	int ret;

	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	ret = uvd_check_range_of(req, "inline data", len, 0, req->dev->config.limits.max_inline_data);
	if (ret)
		return ret;
	to = inline_space(req, list, len);
	if (!to)
		return -ENOMEM;
	wr->inline_data = to;
	wr->inline_len = len;
	for (int i = 0; i < wr->num_sge; i++) {
		ret = uvd_req_copy_from_user(req, to, wr->sg_list[i].addr, wr->sg_list[i].length);
		if (ret)
			return uvd_bad(req, ret, "inline data", wr->sg_list[i].addr);
		to += wr->sg_list[i].length;
	}
	return 0;
}

static int find_ah(struct uvd_req *req, struct send_list *list, const struct ib_uverbs_send_wr *wire,
		   const struct uvd_qp *qp, struct uvd_send_wr *wr)
{
	struct uvd_uobject *uobj;
	int ret = uvd_uobject_get(req->file, &uvd_object_ah, wire->wr.ud.ah, UVD_UOBJ_READ, &uobj);

	if (ret)
		return uvd_bad(req, ret, "ah", wire->wr.ud.ah);
	list->ahs[list->num_ahs++] = uobj;
	wr->ah = uobj->object;
	wr->remote_qpn = wire->wr.ud.remote_qpn;
	wr->remote_qkey = wire->wr.ud.remote_qkey;
	return uvd_req_allow_ah(req, qp, wr->ah);
}

/* Decodes the fields that depend on the opcode. */
static int post_decode_operation(struct uvd_req *req, struct send_list *list, const struct ib_uverbs_send_wr *wire,
				 const struct uvd_qp *qp, struct uvd_send_wr *wr)
{
	const bool is_send = wire->opcode == IBV_WR_SEND || wire->opcode == IBV_WR_SEND_WITH_IMM;

	if (!uvd_send_wr_take(wr, wire) || (qp->qp_type == IBV_QPT_UD && !is_send))
		return uvd_bad(req, -EINVAL, "opcode", wire->opcode);
	return qp->qp_type == IBV_QPT_UD ? find_ah(req, list, wire, qp, wr) : 0;
}

static int decode_send(struct uvd_req *req, struct send_list *list, uint32_t i, const struct uvd_qp *qp)
{
	struct uvd_send_wr *wr = &list->wrs[i];
	struct ib_uverbs_send_wr wire;
	int ret;

	memcpy(&wire, list->post.wqes + (size_t)i * list->post.cmd.wqe_size, sizeof(wire));
	*wr = (struct uvd_send_wr){
		.next = i + 1 < list->post.cmd.wr_count ? wr + 1 : NULL,
		.wr_id = wire.wr_id,
		.num_sge = wire.num_sge,
		.opcode = wire.opcode,
		.send_flags = wire.send_flags,
	};
	ret = take_sges(req, &list->post, wire.num_sge, &wr->sg_list);
	if (!ret)
		ret = post_decode_operation(req, list, &wire, qp, wr);
	return ret;
}

/* Copies the inline data of the list. Sets *num to the number of requests before the first fault, else to wr_count. */
static int read_all_inline(struct uvd_req *req, struct send_list *list, uint32_t *num)
{
	int ret;

	for (*num = 0; *num < list->post.cmd.wr_count; ++*num) {
		if (!(list->wrs[*num].send_flags & IBV_SEND_INLINE))
			continue;
		ret = read_inline(req, list, &list->wrs[*num]);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * POST_SEND on a mapped queue is a doorbell: the work requests are in the queue. Work requests in the command itself
 * are checked but not posted, as in rxe_post_send(). Whoever refuses it, a filter or the backend: the client then learns that
 * its post has failed, so its requests must not stay for the next doorbell.
 */
static int ring_doorbell(struct uvd_req *req, struct uvd_qp *qp, const struct uvd_send_wr *first,
			 const struct uvd_send_wr **bad)
{
	/* Filters that were added since the open do not see posts: a client whose doorbells nobody answers could not be told. */
	const struct uvd_backend *ops = req->file->logged ? &req->dev->ops : uvd_ops(req);
	int ret = ops->ring_doorbell(qp, &req->call->work);

	if (!ret)
		return 0;
	ops->drop_posts(qp);
	*bad = first;
	return ret;
}

static int post_list(struct uvd_req *req, struct uvd_qp *qp, const struct uvd_send_wr *first,
		     const struct uvd_send_wr **bad)
{
	/* An earlier command of the same writev() may have left work; the backend needs call->work empty. */
	uvd_call_work(req->call, NULL);
	return qp->sq ? ring_doorbell(req, qp, first, bad) : uvd_ops(req)->post_send(qp, first, bad, &req->call->work);
}

static int send_list(struct uvd_req *req, struct uvd_qp *qp, struct send_list *list)
{
	uint32_t num = list->post.cmd.wr_count;
	const struct uvd_send_wr *bad = NULL, *first = num ? list->wrs : NULL;
	int ret, fault;

	for (uint32_t i = 0; i < num; i++) {
		ret = decode_send(req, list, i, qp);
		if (ret)
			return ret;
	}
	fault = read_all_inline(req, list, &num);
	if (fault && num)
		list->wrs[num - 1].next = NULL;
	/* Post the requests before the fault. If there are none, an empty post lets the QP's state refuse first. */
	ret = num || fault || qp->sq ? post_list(req, qp, num ? first : NULL, &bad) : 0;
	if (ret)
		refuse_send(req, ret, qp, bad);
	if (fault && !bad)
		return post_answer(req, ret ? ret : fault, num + 1);
	return post_answer(req, ret, ret ? BAD_WR(first, bad) : 0);
}

static int post_send(struct uvd_req *req)
{
	struct send_list list;
	struct uvd_qp *qp;
	int ret;

	list.post.sges_used = 0;
	ret = post_read_command(req, &list.post);
	if (!ret)
		ret = find_lists(req, &list.post);
	if (ret)
		return ret;
	if (list.post.cmd.wqe_size < sizeof(struct ib_uverbs_send_wr))
		return uvd_bad(req, -EINVAL, "wqe_size", list.post.cmd.wqe_size);
	ret = uvd_req_object(req, UVERBS_OBJECT_QP, list.post.cmd.qp_handle, &qp);
	if (!ret)
		ret = alloc_send_list(req, &list);
	if (ret)
		return ret;
	ret = send_list(req, qp, &list);
	while (list.num_ahs)
		uvd_uobject_put(list.ahs[--list.num_ahs], UVD_UOBJ_READ);
	return ret;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static int decode_recv(struct uvd_req *req, struct post *post, uint32_t i, struct uvd_recv_wr *wr)
{
	struct ib_uverbs_recv_wr wire;

	memcpy(&wire, post->wqes + (size_t)i * post->cmd.wqe_size, sizeof(wire));
	*wr = (struct uvd_recv_wr){
		.next = i + 1 < post->cmd.wr_count ? wr + 1 : NULL,
		.wr_id = wire.wr_id,
		.num_sge = wire.num_sge,
	};
	return take_sges(req, post, wire.num_sge, &wr->sg_list);
}

struct recv_list {
	struct post post;
	struct uvd_recv_wr *wrs;
	struct uvd_recv_wr on_stack[POST_ON_STACK];
};

/* Unlike POST_SEND, this checks wqe_size first, and the callers look the QP or SRQ up last, as the kernel does. */
static int read_recv_list(struct uvd_req *req, struct recv_list *list)
{
	struct post *post = &list->post;
	int ret;

	post->sges_used = 0;
	ret = post_read_command(req, post);
	if (ret)
		return ret;
	if (post->cmd.wqe_size < sizeof(struct ib_uverbs_recv_wr))
		return uvd_bad(req, -EINVAL, "wqe_size", post->cmd.wqe_size);
	ret = find_lists(req, post);
	if (ret)
		return ret;
	list->wrs = list->on_stack;
	if (post->cmd.wr_count > POST_ON_STACK)
		list->wrs = uvd_req_alloc(req, post->cmd.wr_count * sizeof(*list->wrs));
	if (!list->wrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < post->cmd.wr_count; i++) {
		ret = decode_recv(req, post, i, &list->wrs[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static int answer_recv(struct uvd_req *req, const struct recv_list *list, int ret, const struct uvd_recv_wr *bad)
{
	return post_answer(req, ret, ret ? BAD_WR((const struct uvd_recv_wr *)list->wrs, bad) : 0);
}

static int post_recv(struct uvd_req *req)
{
	const struct uvd_recv_wr *bad = NULL;
	struct recv_list list;
	struct uvd_qp *qp;
	int ret = read_recv_list(req, &list);

	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_QP, list.post.cmd.qp_handle, &qp);
	if (ret)
		return ret;
	if (list.post.cmd.wr_count)
		ret = uvd_ops(req)->post_recv(qp, list.wrs, &bad);
	if (ret)
		refuse_recv(req, ret, qp, bad);
	return answer_recv(req, &list, ret, bad);
}

static int post_srq_recv(struct uvd_req *req)
{
	const struct uvd_recv_wr *bad = NULL;
	struct recv_list list;
	struct uvd_srq *srq;
	int ret = read_recv_list(req, &list);

	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_SRQ, list.post.cmd.qp_handle, &srq);
	if (ret)
		return ret;
	if (list.post.cmd.wr_count)
		ret = uvd_ops(req)->post_srq_recv(srq, list.wrs, &bad);
	if (ret)
		refuse_srq_recv(req, ret, srq, bad);
	return answer_recv(req, &list, ret, bad);
}

const uvd_step uvd_post_send_steps[] = { post_send, NULL };
const uvd_step uvd_post_recv_steps[] = { post_recv, NULL };
const uvd_step uvd_post_srq_recv_steps[] = { post_srq_recv, NULL };
