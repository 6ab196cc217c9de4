/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's XRC domains, as the kernel has them: a domain belongs to the inode of the file that it was opened with,
 * whatever context opens it. A handle of it is of one context, and what is made by the handle must be of that context.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "fake_internal.h"

struct fake_domain {
	struct list_head link;
	ino_t inode;
	unsigned int handles;
};

struct fake_xrcd {
	struct ibv_xrcd xrcd;
	struct fake_domain *domain;
	unsigned int users;
};

static struct list_head fake_domains, fake_srqs;

void fake_xrc_begin(void)
{
	INIT_LIST_HEAD(&fake_domains);
	INIT_LIST_HEAD(&fake_srqs);
}

/* ---- domains ----------------------------------------------------------------------------------------------------- */

/* Caller holds fake_lock. */
static struct fake_domain *domain_find(ino_t inode)
{
	struct fake_domain *d;

	list_for_each_entry(d, &fake_domains, link)
		if (d->inode == inode)
			return d;
	return NULL;
}

/* Returns 0, or the kernel's errno. Caller holds fake_lock. */
static int domain_get(ino_t inode, int oflags, struct fake_domain **out)
{
	struct fake_domain *d = domain_find(inode);

	if (d && oflags & O_EXCL)
		return EINVAL;
	if (!d && !(oflags & O_CREAT))
		return EAGAIN;
	if (!d) {
		d = calloc(1, sizeof(*d));
		d->inode = inode;
		list_add_tail(&d->link, &fake_domains);
		atomic_fetch_add(&fake.domains, 1);
	}
	d->handles++;
	*out = d;
	return 0;
}

static void domain_put(struct fake_domain *d)
{
	if (--d->handles)
		return;
	list_del_init(&d->link);
	atomic_fetch_sub(&fake.domains, 1);
	free(d);
}

static struct ibv_xrcd *fake_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct fake_xrcd *x = fake_new(FAKE_OPEN_XRCD, sizeof(*x));
	struct stat st;
	int ret;

	if (!x)
		return NULL;
	if (attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS) || fstat(attr->fd, &st))
		abort();
	x->xrcd.context = context;
	pthread_mutex_lock(&fake_lock);
	ret = domain_get(st.st_ino, attr->oflags, &x->domain);
	pthread_mutex_unlock(&fake_lock);
	if (!ret)
		return &x->xrcd;
	fake_free(x);
	errno = ret;
	return NULL;
}

static int fake_close_xrcd(struct ibv_xrcd *xrcd)
{
	struct fake_xrcd *x = (struct fake_xrcd *)xrcd;
	int ret = fake_result(FAKE_CLOSE_XRCD);

	pthread_mutex_lock(&fake_lock);
	if (!ret && x->users)
		ret = EBUSY;
	if (!ret)
		domain_put(x->domain);
	pthread_mutex_unlock(&fake_lock);
	if (!ret)
		fake_free(x);
	return ret;
}

/* ---- SRQs and QPs of domains ------------------------------------------------------------------------------------- */

struct fake_srq *fake_srq_find(uint32_t srq_num)
{
	struct fake_srq *srq;

	list_for_each_entry(srq, &fake_srqs, link)
		if (srq->num == srq_num)
			return srq;
	return NULL;
}

static struct ibv_srq *fake_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct fake_srq *srq;

	if (attr->comp_mask !=
		    (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ) ||
	    attr->srq_type != IBV_SRQT_XRC || attr->pd->context != context || attr->xrcd->context != context ||
	    attr->cq->context != context)
		abort();
	srq = fake_srq_new(attr->pd, attr->srq_context, &attr->attr);
	if (!srq)
		return NULL;
	pthread_mutex_lock(&fake_lock);
	srq->num = ++fake_numbers;
	srq->cq = attr->cq;
	srq->xrcd = (struct fake_xrcd *)attr->xrcd;
	srq->xrcd->users++;
	list_add_tail(&srq->link, &fake_srqs);
	pthread_mutex_unlock(&fake_lock);
	return &srq->srq;
}

static int fake_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	*num = ((struct fake_srq *)srq)->num;
	return fake_result(FAKE_GET_SRQ_NUM);
}

void fake_srq_leave_domain(struct fake_srq *srq)
{
	if (!srq->xrcd)
		return;
	srq->xrcd->users--;
	list_del_init(&srq->link);
}

void fake_qp_enter_domain(struct fake_qp *qp, struct ibv_xrcd *xrcd)
{
	if (qp->qp.qp_type != IBV_QPT_XRC_RECV || xrcd->context != qp->qp.context)
		abort();
	qp->xrcd = (struct fake_xrcd *)xrcd;
	qp->xrcd->users++;
}

void fake_qp_leave_domain(struct fake_qp *qp)
{
	if (qp->xrcd)
		qp->xrcd->users--;
}

void fake_xrc_ops(struct verbs_context *verbs)
{
	verbs->open_xrcd = fake_open_xrcd;
	verbs->close_xrcd = fake_close_xrcd;
	verbs->create_srq_ex = fake_create_srq_ex;
	verbs->get_srq_num = fake_get_srq_num;
	verbs->create_qp_ex = fake_create_qp_ex;
}

/* ---- what a peer sends ------------------------------------------------------------------------------------------- */

int fake_xrc_send(uint32_t qp_num, uint32_t srq_num, const void *data, uint32_t length)
{
	struct fake_qp *qp;
	struct fake_srq *srq;
	int ret = -1;

	pthread_mutex_lock(&fake_lock);
	qp = fake_qp_find(qp_num);
	srq = fake_srq_find(srq_num);
	if (qp && srq && qp->xrcd && qp->qp.state >= IBV_QPS_RTR && qp->xrcd->domain == srq->xrcd->domain)
		ret = fake_receive(&srq->rq, srq->cq, qp_num, data, length);
	pthread_mutex_unlock(&fake_lock);
	return ret;
}
