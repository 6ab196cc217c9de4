/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The status tells of each object its parent and two values (core/facts.h). This file knows them by type. */
#include "objects/xrc.h"

static void facts_of_pd(struct uvd_object_facts *facts, const struct uvd_pd *pd)
{
	facts->parent = pd;
	facts->parent_type = UVERBS_OBJECT_PD;
}

static void facts_of_mr(struct uvd_object_facts *facts, const struct uvd_mr *mr)
{
	facts_of_pd(facts, mr->pd);
	facts->values[0] = mr->length;
	facts->values[1] = mr->access;
}

static void facts_of_qp(struct uvd_object_facts *facts, const struct uvd_uobject *uobj, const struct uvd_qp *qp)
{
	facts_of_pd(facts, qp->pd);
	if (!qp->pd) { /* an XRC target */
		facts->parent = uobj->xrcd;
		facts->parent_type = UVERBS_OBJECT_XRCD;
	}
	facts->cqs[0] = qp->send_cq ? qp->send_cq->owner : NULL;
	facts->cqs[1] = qp->recv_cq && !qp->srq ? qp->recv_cq->owner : NULL;
	facts->values[0] = qp->qp_type;
	facts->values[1] = qp->qp_num;
}

static void facts_of_cq(struct uvd_object_facts *facts, const struct uvd_uobject *uobj, const struct uvd_cq *cq)
{
	facts->parent = uobj->channel;
	facts->parent_type = UVERBS_OBJECT_COMP_CHANNEL;
	facts->values[0] = atomic_load(&cq->cqe);
}

static void facts_of_flow(struct uvd_object_facts *facts, const struct uvd_flow *flow)
{
	facts->parent = flow->qp;
	facts->parent_type = UVERBS_OBJECT_QP;
}

void uvd_object_take_facts(const struct uvd_uobject *uobj, struct uvd_object_facts *facts)
{
	const void *object = uobj->object;

	facts->self = uobj->row->cls == UVD_CLASS_FD ? uobj->event_file : object;
	if (!object)
		return;
	switch (uobj->row->id) {
	case UVERBS_OBJECT_MR:
		return facts_of_mr(facts, object);
	case UVERBS_OBJECT_MW:
		return facts_of_pd(facts, ((const struct uvd_mw *)object)->pd);
	case UVERBS_OBJECT_AH:
		return facts_of_pd(facts, ((const struct uvd_ah *)object)->pd);
	case UVERBS_OBJECT_QP:
		return facts_of_qp(facts, uobj, object);
	case UVERBS_OBJECT_SRQ:
		return facts_of_pd(facts, ((const struct uvd_srq *)object)->pd);
	case UVERBS_OBJECT_WQ:
		return facts_of_pd(facts, ((const struct uvd_wq *)object)->pd);
	case UVERBS_OBJECT_CQ:
		return facts_of_cq(facts, uobj, object);
	case UVERBS_OBJECT_FLOW:
		return facts_of_flow(facts, object);
	}
}
