/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * REREG_MR changes a region's translation, access or PD. The backend changes the region in place, or makes a new one,
 * which replaces the old one behind the same handle (handle-12). The row is in mr.c.
 */
#include <uverbsd/registration.h>
#include "objects/mr.h"
#include "pin/pin.h"

enum {
	TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION,
	PD = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
	/* Flags that decide how the memory is pinned: they cannot change without a new translation. */
	KIND = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
};

struct rereg_args {
	struct ib_uverbs_rereg_mr cmd;
	struct uvd_uobject *uobj; /* locked exclusively */
	struct uvd_pd *pd;
};

static int mr_rereg_decode(struct uvd_req *req)
{
	struct ib_uverbs_rereg_mr *cmd = &uvd_args(req, struct rereg_args)->cmd;
	int ret = uvd_core_in(req, cmd);

	if (ret)
		return ret;
	if (!cmd->flags)
		return uvd_bad(req, -EINVAL, "flags", 0);
	if (cmd->flags & ~(TRANSLATION | PD | ACCESS))
		return uvd_bad(req, -EOPNOTSUPP, "flags", cmd->flags);
	if (cmd->flags & TRANSLATION && offset_in_page(cmd->start) != offset_in_page(cmd->hca_va))
		return uvd_bad(req, -EINVAL, "hca_va", cmd->hca_va);
	return 0;
}

static int find_mr(struct uvd_req *req)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	struct uvd_mr *mr;
	int ret = uvd_req_get(req, UVERBS_OBJECT_MR, args->cmd.mr_handle, UVD_UOBJ_WRITE, &args->uobj);

	if (ret)
		return ret;
	mr = args->uobj->object;
	args->pd = mr->pd;
	if (atomic_load(&mr->usecnt))
		return uvd_bad(req, -EBUSY, "mr_handle", args->cmd.mr_handle);
	return mr->dm ? uvd_bad(req, -EINVAL, "mr_handle", args->cmd.mr_handle) : 0;
}

static int mr_rereg_check_access(struct uvd_req *req)
{
	const struct ib_uverbs_rereg_mr *cmd = &uvd_args(req, struct rereg_args)->cmd;

	return cmd->flags & ACCESS ? uvd_check_mr_access(req, cmd->access_flags) : 0;
}

static int mr_rereg_find_pd(struct uvd_req *req)
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

/*
 * Fills `to` with the complete new region. The memory of a new translation is pinned and charged in addition to the old
 * one, as in the kernel. Returns 0, or a negative errno: then nothing new is pinned.
 */
static int mr_rereg_describe(struct uvd_req *req, const struct uvd_mr *mr, struct uvd_mr *to, struct uvd_uobject *fresh)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	const struct ib_uverbs_rereg_mr *cmd = &args->cmd;

	/* As mlx5 does, refuse regions of a dma-buf or with a DMA handle: the command can name neither. */
	if (!mr->umem.mm || mr->dmah)
		return uvd_bad(req, -EOPNOTSUPP, "mr_handle", cmd->mr_handle);
	to->pd = args->pd;
	to->access = cmd->flags & ACCESS ? cmd->access_flags : mr->access;
	to->iova = cmd->flags & TRANSLATION ? cmd->hca_va : mr->iova;
	to->length = cmd->flags & TRANSLATION ? cmd->length : mr->length;
	/* If the kernel has pinned the region's memory for an adapter, the adapter's driver makes the checks. */
	if (mr->registration && mr->registration->executed)
		return 0;
	if (cmd->flags & TRANSLATION)
		return uvd_req_pin(req, fresh, cmd->start, cmd->length, to->access, &to->umem);
	if ((to->access ^ mr->access) & KIND)
		return uvd_bad(req, -EOPNOTSUPP, "access_flags", to->access);
	/* Pages that were pinned read-only stay so: ib_umem_check_rereg() of later kernels (mr-05). */
	if (uvd_mr_access_writable(to->access) && !mr->umem.writable)
		return uvd_bad(req, -EACCES, "access_flags", to->access);
	return 0;
}

/*
 * Describes the new region, and lets the backend change mr. Returns UVD_REREG_NEW: `to` is a region of its own, and a
 * user of its PD; UVD_REREG_CHANGED: mr has changed; or a negative errno: it has not. In the last two cases the caller
 * frees `to`, which pins nothing.
 */
static int mr_rereg_change(struct uvd_req *req, struct uvd_mr *mr, struct uvd_mr *to, struct uvd_uobject *fresh)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	struct uvd_pd *old_pd = mr->pd;
	int ret = mr_rereg_describe(req, mr, to, fresh);

	if (ret)
		return ret;
	ret = uvd_ops(req)->rereg_mr(mr, args->cmd.flags, to, uvd_req_udata(req));
	if (ret == UVD_REREG_NEW) {
		atomic_fetch_add(&to->pd->usecnt, 1);
		return ret;
	}
	uvd_unpin(&to->umem);
	if (ret < 0)
		return uvd_refused(req, ret);
	/* The backend has exchanged the memory of the two. */
	if (args->cmd.flags & TRANSLATION)
		uvd_uobject_swap_registered(args->uobj, fresh);
	atomic_fetch_add(&args->pd->usecnt, 1);
	atomic_fetch_sub(&old_pd->usecnt, 1);
	return ret;
}

static int rereg_mr(struct uvd_req *req)
{
	struct rereg_args *args = uvd_args(req, struct rereg_args);
	const struct uvd_asker asker = { req->caller, req->name, false };
	struct uvd_uobject *uobj = args->uobj, *fresh;
	struct uvd_mr *to;
	int ret;

	/* If the backend makes a new region, the old one moves to this uobject. */
	ret = uvd_uobject_begin_by(req->file, uobj->row, &asker, &fresh);
	if (ret)
		return ret;
	to = uvd_zalloc(uvd_ops(req)->size_mr);
	ret = to ? mr_rereg_change(req, uobj->object, to, fresh) : -ENOMEM;
	if (ret == UVD_REREG_NEW) {
		fresh->object = to;
		uvd_uobject_swap(uobj, fresh);
		/* An old region that the backend will not destroy keeps the new handle until the file is closed. */
		uvd_uobject_abort(fresh, true);
		return 0;
	}
	uvd_uobject_abort(fresh, false);
	free(to);
	uvd_uobject_update_facts(uobj);
	return ret < 0 ? ret : 0;
}

static int mr_rereg_answer(struct uvd_req *req)
{
	const struct uvd_mr *mr = uvd_args(req, struct rereg_args)->uobj->object;
	struct ib_uverbs_rereg_mr_resp resp = { .lkey = mr->lkey, .rkey = mr->rkey };

	return uvd_core_out(req, &resp);
}

const uvd_step uvd_rereg_mr_steps[] = {
	mr_rereg_decode, find_mr, mr_rereg_check_access, mr_rereg_find_pd, rereg_mr, mr_rereg_answer, NULL,
};
