/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * REREG_MR: another translation, other rights, another PD. The backend changes the region, or makes a new one, which then
 * takes the place of the old one behind the same handle (handle-12). Its row is in mr.c.
 */
#include "objects/internal.h"
#include "pin/pin.h"

enum {
	PAGE_MASK = 4096 - 1,
	TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION,
	PD = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
	/* What the memory itself is taken for: it cannot be had without looking at the memory again. */
	KIND = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
};

struct rereg_args {
	struct ib_uverbs_rereg_mr cmd;
	struct uvd_uobject *uobj; /* locked exclusively */
	struct uvd_pd *pd;
};

static int decode(struct uvd_req *req)
{
	struct ib_uverbs_rereg_mr *cmd = &uvd_args(req, struct rereg_args)->cmd;
	int ret = uvd_core_in(req, cmd, sizeof(*cmd));

	if (ret)
		return ret;
	if (!cmd->flags)
		return uvd_bad(req, -EINVAL, "flags", 0);
	if (cmd->flags & ~(TRANSLATION | PD | ACCESS))
		return uvd_bad(req, -EOPNOTSUPP, "flags", cmd->flags);
	if (cmd->flags & TRANSLATION && (cmd->start ^ cmd->hca_va) & PAGE_MASK)
		return uvd_bad(req, -EINVAL, "hca_va", cmd->hca_va);
	return 0;
}

static int find_mr(struct uvd_req *req)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	struct uvd_mr *mr;
	int ret = uvd_req_get(req, UVERBS_OBJECT_MR, args->cmd.mr_handle, UVD_ACCESS_WRITE, &args->uobj);

	if (ret)
		return ret;
	mr = args->uobj->object;
	args->pd = mr->pd;
	return mr->dm ? uvd_bad(req, -EINVAL, "mr_handle", args->cmd.mr_handle) : 0;
}

static int check_access(struct uvd_req *req)
{
	const struct ib_uverbs_rereg_mr *cmd = &uvd_args(req, struct rereg_args)->cmd;

	return cmd->flags & ACCESS ? uvd_check_mr_access(req, cmd->access_flags) : 0;
}

static int find_pd(struct uvd_req *req)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	struct uvd_pd *old = args->pd;
	int ret;

	if (!(args->cmd.flags & PD))
		return 0;
	ret = uvd_req_object(req, UVERBS_OBJECT_PD, args->cmd.pd_handle, &args->pd);
	if (!ret && args->pd == old)
		args->cmd.flags &= ~PD;
	return ret;
}

/* All of what the region is to be. With another translation its memory is charged beside the old one, as by the kernel. */
static int describe(struct uvd_req *req, const struct uvd_mr *mr, struct uvd_mr *to)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	const struct ib_uverbs_rereg_mr *cmd = &args->cmd;

	/* As mlx5: not what was registered from a dma-buf, or with a DMA handle, which the command cannot name. */
	if (!mr->umem.mm || mr->dmah)
		return uvd_bad(req, -EOPNOTSUPP, "mr_handle", cmd->mr_handle);
	to->pd = args->pd;
	to->access = cmd->flags & ACCESS ? cmd->access_flags : mr->access;
	if (cmd->flags & TRANSLATION) {
		to->iova = cmd->hca_va;
		to->length = cmd->length;
		return uvd_req_pin(req, cmd->start, cmd->length, to->access, &to->umem);
	}
	to->iova = mr->iova;
	to->length = mr->length;
	if ((to->access ^ mr->access) & KIND)
		return uvd_bad(req, -EOPNOTSUPP, "access_flags", to->access);
	/* ib_umem_check_rereg() of later kernels: pages that were pinned for reading stay so (mr-05). */
	if (uvd_access_writable(to->access) && !mr->umem.writable)
		return uvd_bad(req, -EACCES, "access_flags", to->access);
	return 0;
}

/* The backend's part. UVD_REREG_*, or a negative errno: then nothing is left of `to`. */
static int change(struct uvd_req *req, struct uvd_mr *mr, struct uvd_mr *to)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	struct uvd_pd *old_pd = mr->pd;
	int ret = describe(req, mr, to);

	if (ret)
		return ret;
	ret = uvd_ops(req)->rereg_mr(mr, args->cmd.flags, to);
	if (ret == UVD_REREG_NEW) {
		atomic_fetch_add(&to->pd->usecnt, 1);
		return ret;
	}
	uvd_unpin(&to->umem);
	if (ret < 0)
		return uvd_bad(req, ret, "flags", args->cmd.flags);
	atomic_fetch_add(&args->pd->usecnt, 1);
	atomic_fetch_sub(&old_pd->usecnt, 1);
	return ret;
}

static int rereg_mr(struct uvd_req *req)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	struct uvd_uobject *uobj = args->uobj, *fresh;
	struct uvd_mr *to;
	int ret;

	/* What the old region gets if there is a new one. */
	ret = uvd_uobject_begin(req->file, uobj->row, &fresh);
	if (ret)
		return ret;
	to = uvd_zalloc(uvd_ops(req)->size_mr);
	ret = to ? change(req, uobj->object, to) : -ENOMEM;
	if (ret == UVD_REREG_NEW) {
		fresh->object = to;
		uvd_uobject_swap(uobj, fresh);
		/* One that the backend keeps gets the new number, until the file is closed. */
		uvd_uobject_abort(fresh, true);
		return 0;
	}
	uvd_uobject_abort(fresh, false);
	free(to);
	return ret < 0 ? ret : 0;
}

static int answer(struct uvd_req *req)
{
	const struct uvd_mr *mr = uvd_args(req, struct rereg_args)->uobj->object;
	struct ib_uverbs_rereg_mr_resp resp = { .lkey = mr->lkey, .rkey = mr->rkey };

	return uvd_core_out(req, &resp, sizeof(resp));
}

const uvd_step uvd_rereg_mr_steps[] = { decode, find_mr, check_access, find_pd, rereg_mr, answer, NULL };
