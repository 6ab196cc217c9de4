/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions; REREG_MR is in mr_rereg.c. The memory itself is src/pin's. */
#include "objects/common.h"
#include "pin/pin.h"

enum {
	PAGE_MASK = 4096 - 1,
	/* IB_ACCESS_SUPPORTED of Linux 6.1: LOCAL_WRITE to HUGETLB, and the bits that a device may ignore */
	ACCESS_SUPPORTED = IB_UVERBS_ACCESS_OPTIONAL_RANGE | 0xff,
};

struct mr_args {
	struct uvd_uobject *uobj;
	struct uvd_pd *pd;
	uint64_t start, length, hca_va;
	uint32_t pd_handle, access;
};

static int decode_reg(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);
	struct ib_uverbs_reg_mr cmd;
	int ret = uvd_core_in(req, &cmd, sizeof(cmd));

	if (ret)
		return ret;
	args->start = cmd.start;
	args->length = cmd.length;
	args->hca_va = cmd.hca_va;
	args->pd_handle = cmd.pd_handle;
	args->access = cmd.access_flags;
	return 0;
}

static int check_offset(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);

	return (args->start ^ args->hca_va) & PAGE_MASK ? uvd_bad(req, -EINVAL, "hca_va", args->hca_va) : 0;
}

static int new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_MR, &uvd_args(req, struct mr_args)->uobj);
}

/* ib_check_mr_access() */
int uvd_check_mr_access(struct uvd_req *req, uint32_t access)
{
	struct ibv_device_attr_ex attr = {};

	if (access & (IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return uvd_bad(req, -EINVAL, "access_flags", access);
	if (access & ~ACCESS_SUPPORTED)
		return uvd_bad(req, -EINVAL, "access_flags", access);
	if (access & IBV_ACCESS_ON_DEMAND &&
	    (uvd_ops(req)->query_device(&req->dev->ib, &attr) || !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT)))
		return uvd_bad(req, -EINVAL, "access_flags", access);
	return 0;
}

static int check_access(struct uvd_req *req)
{
	return uvd_check_mr_access(req, uvd_args(req, struct mr_args)->access);
}

static int find_pd(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);

	return uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->pd);
}

int uvd_req_pin(struct uvd_req *req, uint64_t start, uint64_t length, unsigned int access, struct uvd_umem *umem)
{
	struct uvd_engine *engine = req->dev->engine;
	int ret = uvd_pin(engine->mms, req->caller, engine->log, start, length, access, umem);

	if (ret == -ENOMEM && engine->settle) {
		engine->settle(engine);
		ret = uvd_pin(engine->mms, req->caller, engine->log, start, length, access, umem);
	}
	return ret ? uvd_bad(req, ret, "start", start) : 0;
}

static int reg_mr(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);
	struct uvd_mr *mr = uvd_zalloc(uvd_ops(req)->size_mr);
	int ret;

	if (!mr)
		return -ENOMEM;
	mr->pd = args->pd;
	mr->iova = args->hca_va;
	mr->length = args->length;
	mr->access = args->access;
	ret = uvd_req_pin(req, args->start, args->length, args->access, &mr->umem);
	if (ret)
		goto free;
	ret = uvd_ops(req)->reg_mr(mr);
	if (ret)
		goto unpin;
	atomic_fetch_add(&mr->pd->usecnt, 1);
	args->uobj->object = mr;
	uvd_req_made(req, args->uobj);
	return 0;
unpin:
	uvd_unpin(&mr->umem);
free:
	free(mr);
	return ret;
}

static int answer_reg(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct mr_args)->uobj;
	struct uvd_mr *mr = uobj->object;
	struct ib_uverbs_reg_mr_resp resp = { .mr_handle = uobj->id, .lkey = mr->lkey, .rkey = mr->rkey };

	return uvd_core_out(req, &resp, sizeof(resp));
}

static int dereg_mr(struct uvd_req *req)
{
	struct ib_uverbs_dereg_mr cmd;
	int ret = uvd_core_in(req, &cmd, sizeof(cmd));

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_MR, cmd.mr_handle, NULL);
}

static int destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_mr *mr = uobj->object;
	int ret = uobj->file->dev->ib.ops->dereg_mr(mr);

	if (ret)
		return ret;
	uvd_unpin(&mr->umem);
	atomic_fetch_sub(&mr->pd->usecnt, 1);
	free(mr);
	uobj->object = NULL;
	return 0;
}

static int query_mr(struct uvd_req *req)
{
	struct uvd_mr *mr = uvd_attr_uobj(req, UVERBS_ATTR_QUERY_MR_HANDLE)->object;
	int ret;

	ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->lkey, sizeof(mr->lkey));
	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->rkey, sizeof(mr->rkey));
	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->length, sizeof(mr->length));
	if (ret)
		return ret;
	ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->iova, sizeof(mr->iova));
	return ret == -ENOENT ? 0 : ret;
}

/*
 * The kernel keeps ADVISE_MR and REG_DMABUF_MR in the tree of every device: without the driver's operation they fail when
 * all attributes have been parsed.
 */
static int no_op(struct uvd_req *req)
{
	return -EOPNOTSUPP;
}

static const uvd_step reg_steps[] = { decode_reg, check_offset, new_handle, check_access,
				      find_pd,	  reg_mr,	answer_reg, NULL };
static const uvd_step dereg_steps[] = { dereg_mr, NULL };
static const uvd_step query_steps[] = { query_mr, NULL };
static const uvd_step no_op_steps[] = { no_op, NULL };

static const struct uvd_write_row writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_REG_MR, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_reg_mr),
		  sizeof(struct ib_uverbs_reg_mr_resp), reg_steps, UVD_OP(reg_mr)),
	UVD_WRITE(IB_USER_VERBS_CMD_REREG_MR, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_rereg_mr),
		  sizeof(struct ib_uverbs_rereg_mr_resp), uvd_rereg_mr_steps, UVD_OP(rereg_mr)),
	UVD_WRITE(IB_USER_VERBS_CMD_DEREG_MR, 0, sizeof(struct ib_uverbs_dereg_mr), 0, dereg_steps, UVD_OP(dereg_mr)),
};

static const struct uvd_attr_row destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_MR_HANDLE, UVERBS_OBJECT_MR, UVD_ACCESS_DESTROY, UVD_MANDATORY),
};

static const struct uvd_attr_row query_attrs[] = {
	UVD_IDR(UVERBS_ATTR_QUERY_MR_HANDLE, UVERBS_OBJECT_MR, UVD_ACCESS_READ, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, sizeof(uint64_t), 0),
};

static const struct uvd_attr_row advise_attrs[] = {
	UVD_IDR(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, UVERBS_OBJECT_PD, UVD_ACCESS_READ, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_ADVISE_MR_ADVICE, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_ADVISE_MR_FLAGS, UVD_MANDATORY),
	UVD_PTR_IN_MIN(UVERBS_ATTR_ADVISE_MR_SGE_LIST, sizeof(struct ib_uverbs_sge), UVD_MANDATORY | UVD_ALLOC_AND_COPY),
};

static const struct uvd_attr_row reg_dmabuf_attrs[] = {
	UVD_IDR(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UVERBS_OBJECT_MR, UVD_ACCESS_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, UVERBS_OBJECT_PD, UVD_ACCESS_READ, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(uint32_t), UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 0),
	UVD_PTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_method_row methods[] = {
	UVD_METHOD(UVERBS_METHOD_MR_DESTROY, destroy_attrs, NULL),
	UVD_METHOD(UVERBS_METHOD_QUERY_MR, query_attrs, query_steps),
	UVD_METHOD(UVERBS_METHOD_ADVISE_MR, advise_attrs, no_op_steps),
	UVD_METHOD(UVERBS_METHOD_REG_DMABUF_MR, reg_dmabuf_attrs, no_op_steps),
};

const struct uvd_object_row uvd_object_mr = {
	.name = "UVERBS_OBJECT_MR",
	.id = UVERBS_OBJECT_MR,
	.cls = UVD_CLASS_IDR,
	.destroy = destroy,
	UVD_ROWS(methods, methods),
	UVD_ROWS(writes, writes),
	.needs = { UVD_OP(dereg_mr) },
};
