/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC target QPs: one QP of the backend, with any number of handles in the open files that have its domain open. */
#include "objects/xrc.h"
#include "util/util.h"

struct opener {
	struct uvd_uobject *uobj;
	struct opener *next;
};

struct uvd_xrc_target {
	struct uvd_qp *qp;
	struct uvd_account *account; /* the creator's, charged for the backend's memory; a reference, or NULL */
	struct uvd_xrc_target *next; /* in the domain's list */
	struct opener *openers;
};

struct open_args {
	struct uvd_uobject *uobj;
	struct uvd_xrcd_handle *handle;
	uint64_t user_handle;
	uint32_t pd_handle, qpn;
	uint8_t qp_type;
};

static struct uvd_xrcd_domain *domain_of(const struct uvd_qp *qp)
{
	return qp->xrcd->owner;
}

/* Reports the event to each handle with an event file. A handle from OPEN_QP has none (event-11). */
static void xrc_qp_event_handler(struct uvd_qp *qp, enum ibv_event_type type)
{
	struct uvd_xrc_target *target = qp->owner;

	uvd_lock(&domain_of(qp)->lock);
	for (struct opener *opener = target->openers; opener; opener = opener->next)
		uvd_object_event(opener->uobj, type);
	uvd_unlock(&domain_of(qp)->lock);
}

/* Caller holds the domain's lock, unless the target is not in the domain's list yet. */
static void add_opener(struct uvd_xrc_target *target, struct opener *opener)
{
	opener->next = target->openers;
	target->openers = opener;
}

static void link_target(struct uvd_xrcd_domain *domain, struct uvd_xrc_target *target)
{
	target->next = domain->targets;
	domain->targets = target;
}

static void unlink_target(struct uvd_xrcd_domain *domain, struct uvd_xrc_target *target)
{
	struct uvd_xrc_target **p = &domain->targets;

	while (*p != target)
		p = &(*p)->next;
	*p = target->next;
}

static void bind_handle(struct uvd_uobject *uobj, struct uvd_qp *qp, struct uvd_xrcd_handle *handle)
{
	uobj->object = qp;
	uobj->xrcd = handle;
	atomic_fetch_add(&handle->users, 1);
}

/* Charges each handle of a target as if it were the only one, since any of them may be the last to close. */
static int charge_handle(struct uvd_uobject *uobj)
{
	return uvd_uobject_charge(uobj, sizeof(struct uvd_xrc_target) + sizeof(struct opener));
}

int uvd_xrc_target_create(struct uvd_qp *qp, struct uvd_uobject *uobj, struct uvd_xrcd_handle *handle,
			  struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	const struct uvd_backend *ops = uobj->file->dev->ib.ops;
	struct uvd_xrc_target *target;
	struct opener *opener;
	struct uvd_xrcd_domain *domain;
	int ret = charge_handle(uobj);

	if (ret)
		return ret;
	target = uvd_zalloc(sizeof(*target));
	opener = uvd_zalloc(sizeof(*opener));
	ret = -ENOMEM;
	if (!target || !opener)
		goto free;
	target->qp = qp;
	opener->uobj = uobj;
	add_opener(target, opener);
	qp->xrcd = handle->xrcd;
	qp->event_handler = xrc_qp_event_handler;
	qp->owner = target;
	ret = ops->create_qp(qp, init, udata);
	if (ret)
		goto free;
	target->account = uvd_account_ref(qp->account);
	atomic_fetch_add(&qp->xrcd->usecnt, 1);
	bind_handle(uobj, qp, handle);
	domain = domain_of(qp);
	uvd_lock(&domain->lock);
	link_target(domain, target);
	uvd_unlock(&domain->lock);
	return 0;
free:
	free(opener);
	free(target);
	return ret;
}

/* Unlinks and returns the handle's opener. Sets *last if it was the only one: the target then is unlinked, too. */
static struct opener *take_opener(struct uvd_uobject *uobj, struct uvd_xrc_target *target, bool *last)
{
	struct uvd_xrcd_domain *domain = domain_of(target->qp);
	struct opener **p, *opener;

	uvd_lock(&domain->lock);
	for (p = &target->openers; (*p)->uobj != uobj;)
		p = &(*p)->next;
	opener = *p;
	*p = opener->next;
	*last = !target->openers;
	if (*last)
		unlink_target(domain, target);
	uvd_unlock(&domain->lock);
	return opener;
}

/*
 * Caller must not hold the domain's lock: destroy_qp() may wait for an event handler, which takes it. On error the
 * target and its opener are linked again.
 */
static int destroy_target(struct uvd_xrc_target *target, struct opener *opener, const struct uvd_backend *ops)
{
	struct uvd_xrcd_domain *domain = domain_of(target->qp);
	struct uvd_qp *qp = target->qp;
	int ret = ops->destroy_qp(qp);

	if (ret) {
		uvd_lock(&domain->lock);
		add_opener(target, opener);
		link_target(domain, target);
		uvd_unlock(&domain->lock);
		return ret;
	}
	atomic_fetch_sub(&qp->xrcd->usecnt, 1);
	free(qp);
	uvd_account_put(target->account);
	free(target);
	return 0;
}

int uvd_xrc_target_close(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_xrc_target *target = ((struct uvd_qp *)uobj->object)->owner;
	struct opener *opener;
	int ret = 0;
	bool last;

	opener = take_opener(uobj, target, &last);
	if (last)
		ret = destroy_target(target, opener, uobj->file->dev->ib.ops);
	if (ret && why != UVD_REMOVE_DRIVER_FAILURE)
		return ret;
	/* The backend refuses to destroy the QP: the handle goes, and the QP is leaked. */
	if (ret)
		take_opener(uobj, target, &last);
	free(opener);
	atomic_fetch_sub(&uobj->xrcd->users, 1);
	uobj->xrcd = NULL;
	uobj->object = NULL;
	uvd_uobject_release_events(uobj);
	return 0;
}

/* ---- OPEN_QP ----------------------------------------------------------------------------------------------------- */

static int xrc_qp_decode_open(struct uvd_req *req)
{
	struct open_args *args = uvd_args(req, struct open_args);
	struct ib_uverbs_open_qp cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->user_handle = cmd.user_handle;
	args->pd_handle = cmd.pd_handle;
	args->qpn = cmd.qpn;
	args->qp_type = cmd.qp_type;
	return 0;
}

static int xrc_qp_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_QP, &uvd_args(req, struct open_args)->uobj);
}

/* OPEN_QP has the handle of its XRC domain in pd_handle. */
static int xrc_qp_find_domain(struct uvd_req *req)
{
	struct open_args *args = uvd_args(req, struct open_args);

	return uvd_req_object(req, UVERBS_OBJECT_XRCD, args->pd_handle, &args->handle)
		       ? uvd_bad(req, -EINVAL, "pd_handle", args->pd_handle)
		       : 0;
}

static int open_qp(struct uvd_req *req)
{
	struct open_args *args = uvd_args(req, struct open_args);
	struct uvd_xrcd_domain *domain = args->handle->xrcd->owner;
	struct uvd_xrc_target *target;
	struct opener *opener;
	int ret;

	if (args->qp_type != IBV_QPT_XRC_RECV)
		return uvd_bad(req, -EINVAL, "qp_type", args->qp_type);
	ret = uvd_req_allow_qp_type(req, args->qp_type);
	if (ret)
		return ret;
	ret = charge_handle(args->uobj);
	if (ret)
		return ret;
	opener = uvd_zalloc(sizeof(*opener));
	if (!opener)
		return -ENOMEM;
	opener->uobj = args->uobj;
	args->uobj->user_handle = args->user_handle;
	uvd_lock(&domain->lock);
	for (target = domain->targets; target && target->qp->qp_num != args->qpn;)
		target = target->next;
	if (target)
		add_opener(target, opener);
	uvd_unlock(&domain->lock);
	if (!target) {
		free(opener);
		return uvd_bad(req, -EINVAL, "qpn", args->qpn);
	}
	bind_handle(args->uobj, target->qp, args->handle);
	args->uobj->made = true;
	return 0;
}

static int xrc_qp_answer_open(struct uvd_req *req)
{
	const struct open_args *args = uvd_args(req, struct open_args);
	struct ib_uverbs_create_qp_resp resp = { .qp_handle = args->uobj->id, .qpn = args->qpn };

	return uvd_core_out(req, &resp);
}

const uvd_step uvd_open_qp_steps[] = {
	xrc_qp_decode_open, xrc_qp_new_handle, xrc_qp_find_domain, open_qp, xrc_qp_answer_open, NULL,
};
