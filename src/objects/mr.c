/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions: REG_MR and DEREG_MR. REREG_MR is in mr_rereg.c, the ioctl methods are in mr_methods.c. */
#include <uverbsd/registration.h>
#include "objects/mr.h"
#include "pin/pin.h"

struct mr_args {
	struct uvd_uobject *uobj;
	uint32_t pd_handle;
	struct uvd_mr_reg reg;
};

static int decode_reg(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);
	struct ib_uverbs_reg_mr cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->pd_handle = cmd.pd_handle;
	args->reg.start = cmd.start;
	args->reg.length = cmd.length;
	args->reg.iova = cmd.hca_va;
	args->reg.access = cmd.access_flags;
	return 0;
}

static int check_offset(struct uvd_req *req)
{
	const struct uvd_mr_reg *reg = &uvd_args(req, struct mr_args)->reg;

	if (offset_in_page(reg->start) != offset_in_page(reg->iova))
		return uvd_bad(req, -EINVAL, "hca_va", reg->iova);
	return 0;
}

static int mr_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_MR, &uvd_args(req, struct mr_args)->uobj);
}

int uvd_check_mr_access(struct uvd_req *req, uint32_t access)
{
	const uint32_t writes = access & (IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_device_attr_ex attr = {};

	if (writes && !(access & IBV_ACCESS_LOCAL_WRITE))
		return uvd_refuse(req, -EINVAL, &uvd_why(MR_LOCAL_WRITE, { writes }));
	if (access & ~UVD_MR_ACCESS_SUPPORTED)
		return uvd_refuse(req, -EINVAL, &uvd_why(MR_FLAGS, { access & ~UVD_MR_ACCESS_SUPPORTED }));
	if (access & IBV_ACCESS_ON_DEMAND &&
	    (uvd_ops(req)->query_device(&req->dev->ib, &attr, NULL) || !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT)))
		return uvd_refuse(req, -EINVAL, &uvd_why(MR_ON_DEMAND, { 0 }));
	return uvd_req_allow_access(req, "access_flags", access);
}

static int mr_check_access(struct uvd_req *req)
{
	return uvd_check_mr_access(req, uvd_args(req, struct mr_args)->reg.access);
}

static int mr_find_pd(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);

	return uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->reg.pd);
}

static int req_pin(struct uvd_req *req, uint64_t start, uint64_t length, unsigned int access, struct uvd_umem *umem)
{
	const uint64_t memlock = req->dev->ib.config.memlock;
	struct uvd_engine *engine = req->dev->engine;
	struct uvd_account *account = req->caller->account;
	struct uvd_why why;
	int ret;

	/* The file's account pays for the descriptors that uvd_pin() opens for a new address space. */
	req->caller->account = req->file->account;
	ret = uvd_pin(engine->mms, req->caller, &why, memlock, start, length, access, umem);
	if ((ret == -ENOMEM || ret == -EPERM) && engine->settle) {
		if (ret == -ENOMEM)
			engine->settle(engine);
		ret = uvd_pin(engine->mms, req->caller, &why, memlock, start, length, access, umem);
	}
	req->caller->account = account;
	if (ret && why.reason)
		return uvd_refuse(req, ret, &why);
	if (ret == -EFAULT)
		return uvd_refuse(req, ret,
				  &uvd_why(MR_MEMORY, { length }, { start },
					   { .word = uvd_mr_access_writable(access) ? ", and writable" : "" }));
	return ret == -EINVAL ? uvd_refuse(req, ret, &uvd_why(MR_LENGTH, { length }, { start })) : ret;
}

int uvd_req_pin(struct uvd_req *req, struct uvd_uobject *uobj, uint64_t start, uint64_t length, unsigned int access,
		struct uvd_umem *umem)
{
	const struct uvd_asker asker = { req->caller, req->name, false };
	int ret = req_pin(req, start, length, access, umem);

	if (ret)
		return ret;
	ret = uvd_uobject_charge_registered(uobj, &asker, umem->pages * sysconf(_SC_PAGESIZE));
	if (ret)
		uvd_unpin(umem);
	return ret;
}

void uvd_mr_made(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_mr *mr)
{
	atomic_fetch_add(&mr->pd->usecnt, 1);
	if (mr->dm)
		atomic_fetch_add(&mr->dm->usecnt, 1);
	if (mr->dmah)
		atomic_fetch_add(&mr->dmah->usecnt, 1);
	uvd_uobject_set_object(uobj, mr);
}

int uvd_reg_user_mr(struct uvd_req *req, struct uvd_uobject *uobj, const struct uvd_mr_reg *reg)
{
	struct uvd_mr *mr = uvd_zalloc(uvd_ops(req)->size_mr);
	int ret;

	if (!mr)
		return -ENOMEM;
	mr->pd = reg->pd;
	mr->dmah = reg->dmah;
	mr->iova = reg->iova;
	mr->length = reg->length;
	mr->access = reg->access;
	ret = uvd_req_pin(req, uobj, reg->start, reg->length, reg->access, &mr->umem);
	if (ret)
		goto free;
	ret = uvd_ops(req)->reg_mr(mr, uvd_req_udata(req));
	if (ret)
		goto unpin;
	uvd_mr_made(req, uobj, mr);
	return 0;
unpin:
	uvd_unpin(&mr->umem);
free:
	free(mr);
	return ret;
}

static struct ib_uverbs_reg_mr_resp reg_response(const struct uvd_uobject *uobj)
{
	const struct uvd_mr *mr = uobj->object;

	return (struct ib_uverbs_reg_mr_resp){ .mr_handle = uobj->id, .lkey = mr->lkey, .rkey = mr->rkey };
}

/* A thread of the client has made the registration, or could not: sets the response, with the keys. */
static int mr_end_registration(struct uvd_req *req, int64_t result)
{
	struct uvd_uobject *uobj = req->grant.uobj;
	struct uvd_mr *mr = uobj->object;
	int ret = mr->registration->end(mr, result);
	struct ib_uverbs_reg_mr_resp resp = reg_response(uobj);

	if (ret)
		return ret;
	if (mr->registration->executed)
		uvd_pin_by_kernel(&mr->umem);
	return uvd_core_out(req, &resp);
}

static int mr_reg(struct uvd_req *req)
{
	struct mr_args *args = uvd_args(req, struct mr_args);
	int ret = uvd_reg_user_mr(req, args->uobj, &args->reg);
	struct uvd_mr *mr = args->uobj->object;

	if (!ret && mr->registration)
		uvd_req_register(req, args->uobj, mr->registration, mr_end_registration);
	return ret;
}

static int answer_reg(struct uvd_req *req)
{
	struct ib_uverbs_reg_mr_resp resp = reg_response(uvd_args(req, struct mr_args)->uobj);

	/* A registration that fails at its end must leave the client's response, and the attribute's flag, untouched. */
	return req->has_grant ? 0 : uvd_core_out(req, &resp);
}

static int dereg_mr(struct uvd_req *req)
{
	struct ib_uverbs_dereg_mr cmd;
	int ret = uvd_core_in(req, &cmd);

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_MR, cmd.mr_handle, NULL);
}

static int mr_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_mr *mr = uobj->object;
	int ret = uvd_destroy_unused(uobj, mr, dereg_mr);

	if (ret)
		return ret;
	uvd_unpin(&mr->umem);
	atomic_fetch_sub(&mr->pd->usecnt, 1);
	if (mr->dm)
		atomic_fetch_sub(&mr->dm->usecnt, 1);
	if (mr->dmah)
		atomic_fetch_sub(&mr->dmah->usecnt, 1);
	return uvd_object_free(uobj);
}

static const uvd_step mr_reg_steps[] = {
	decode_reg, check_offset, mr_new_handle, mr_check_access, mr_find_pd, mr_reg, answer_reg, NULL,
};
static const uvd_step dereg_steps[] = { dereg_mr, NULL };

static const struct uvd_write_row mr_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_REG_MR, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_reg_mr),
		  sizeof(struct ib_uverbs_reg_mr_resp), mr_reg_steps, UVD_OP(reg_mr)),
	UVD_WRITE(IB_USER_VERBS_CMD_REREG_MR, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_rereg_mr),
		  sizeof(struct ib_uverbs_rereg_mr_resp), uvd_rereg_mr_steps, UVD_OP(rereg_mr)),
	UVD_WRITE(IB_USER_VERBS_CMD_DEREG_MR, 0, sizeof(struct ib_uverbs_dereg_mr), 0, dereg_steps, UVD_OP(dereg_mr)),
};

static const struct uvd_attr_row mr_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_MR_HANDLE, UVERBS_OBJECT_MR, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row mr_methods[] = {
	UVD_METHOD(UVERBS_METHOD_MR_DESTROY, mr_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_mr = {
	.name = "UVERBS_OBJECT_MR",
	.id = UVERBS_OBJECT_MR,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(mr),
	.destroy = mr_destroy_uobj,
	UVD_ROWS(methods, mr_methods),
	UVD_ROWS(writes, mr_writes),
	.needs = { UVD_OP(dereg_mr) },
};
