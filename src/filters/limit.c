/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `limit`: each user, or one user, may have so many objects of a type, and register so many bytes. What
 * existed before the filter was added does not count. XRC domains do not count: users share them. In a user namespace the
 * user is the owner, or each of the ids that are mapped there would have the limit once more. A user is given by number:
 * the engine process of uverbsd may not open the files that have the names.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "account/account.h"
#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

enum limit_kind {
	LIMIT_PD,
	LIMIT_MR,
	LIMIT_MW,
	LIMIT_AH,
	LIMIT_CQ,
	LIMIT_SRQ,
	LIMIT_QP,
	LIMIT_WQ,
	LIMIT_RWQ_IND_TBL,
	LIMIT_FLOW,
	LIMIT_DM,
	LIMIT_COUNTERS,
	LIMIT_KINDS
};
enum { LIMIT_BUCKETS = 1024 };

static const char *const kind_names[LIMIT_KINDS] = { "pd", "mr", "mw",		"ah",	"cq", "srq",
						     "qp", "wq", "rwq_ind_tbl", "flow", "dm", "counters" };

/* An object that counts. */
struct limit_object {
	struct limit_object *next; /* of the bucket */
	const void *object;
	struct limit_user *user;
	enum limit_kind kind;
	uint64_t bytes;
};

/* A user who holds something that counts. */
struct limit_user {
	struct limit_user *next; /* of the bucket */
	uid_t uid;
	uint64_t num[LIMIT_KINDS], bytes;
};

struct limit_rule {
	uint64_t max; /* UINT64_MAX: no limit */
	struct uvd_rule_count count; /* creations and registrations that need it, and those that it has refused */
};

struct limit {
	struct uvd_ibdev *dev;
	struct limit_rule num[LIMIT_KINDS], bytes;
	uint64_t uid; /* UINT64_MAX: each user */
	int err;
	pthread_mutex_t lock; /* the rest; a leaf */
	struct limit_user *users[LIMIT_BUCKETS];
	struct limit_object *buckets[LIMIT_BUCKETS];
};

static const struct uvd_plugin_option limit_options[] = {
	{ "pd", NULL, "N", "protection domains of each user" },
	{ "mr", NULL, "N", "memory regions" },
	{ "mw", NULL, "N", "memory windows" },
	{ "ah", NULL, "N", "address handles" },
	{ "cq", NULL, "N", "completion queues" },
	{ "srq", NULL, "N", "shared receive queues" },
	{ "qp", NULL, "N", "queue pairs" },
	{ "wq", NULL, "N", "work queues" },
	{ "rwq_ind_tbl", NULL, "N", "indirection tables" },
	{ "flow", NULL, "N", "flows" },
	{ "dm", NULL, "N", "allocations of device memory" },
	{ "counters", NULL, "N", "counters objects" },
	{ "bytes", NULL, "BYTES", "bytes that a user may register" },
	{ "uid", NULL, "UID", "for this user only, by number (default: each user)" },
	{ "errno", "ENOMEM", "ERRNO", "what a call beyond a limit fails with" },
	{},
};

static int limit_rule_init(struct limit_rule *rule, const struct uvd_plugin_values *values, const char *name)
{
	const char *text = uvd_plugin_value(values, name);

	rule->max = UINT64_MAX;
	if (text)
		uvd_rule_count_name(&rule->count, name, text);
	return uvd_plugin_number(values, name, 0, UINT64_MAX, &rule->max);
}

static void limit_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	const struct limit *f = data;

	for (unsigned int i = 0; i < LIMIT_KINDS; i++)
		uvd_rule_count_tell(&f->num[i].count, tell, arg);
	uvd_rule_count_tell(&f->bytes.count, tell, arg);
}

static int limit_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct limit *f = uvd_zalloc(sizeof(*f));
	int err = 0;

	if (!f)
		return -ENOMEM;
	for (unsigned int i = 0; i < LIMIT_KINDS && !err; i++)
		err = limit_rule_init(&f->num[i], values, kind_names[i]);
	f->uid = UINT64_MAX;
	err = err ?: limit_rule_init(&f->bytes, values, "bytes")
		  ?: uvd_plugin_number(values, "uid", 0, (uid_t)-2, &f->uid);
	f->err = uvd_rule_errno(uvd_plugin_value(values, "errno"));
	if (!err && f->err < 0)
		err = uvd_plugin_wrong(values, "errno", uvd_rule_no_errno(uvd_plugin_value(values, "errno")));
	if (err) {
		free(f);
		return err;
	}
	f->dev = dev;
	pthread_mutex_init(&f->lock, NULL);
	uvd_filter_has_rules(values, limit_tell_rules);
	*data = f;
	return 0;
}

static void limit_exit(struct uvd_ibdev *dev, void *data)
{
	struct limit *f = data;
	struct limit_object *o;
	struct limit_user *u;

	for (unsigned int i = 0; i < LIMIT_BUCKETS; i++) {
		while ((o = f->buckets[i])) {
			f->buckets[i] = o->next;
			free(o);
		}
		while ((u = f->users[i])) {
			f->users[i] = u->next;
			free(u);
		}
	}
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Caller holds f->lock. Returns NULL if there is no memory. */
static struct limit_user *limit_user(struct limit *f, uid_t uid)
{
	struct limit_user **bucket = &f->users[uid % LIMIT_BUCKETS], *u;

	for (u = *bucket; u; u = u->next)
		if (u->uid == uid)
			return u;
	u = uvd_zalloc(sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->next = *bucket;
	*bucket = u;
	return u;
}

/* Caller holds f->lock. Frees the user if it holds nothing. */
static void limit_user_put(struct limit *f, struct limit_user *user)
{
	struct limit_user **p = &f->users[user->uid % LIMIT_BUCKETS];

	if (user->bytes)
		return;
	for (unsigned int i = 0; i < LIMIT_KINDS; i++)
		if (user->num[i])
			return;
	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	free(user);
}

static struct limit_object **limit_bucket(struct limit *f, const void *object)
{
	return &f->buckets[((uintptr_t)object >> 6) % LIMIT_BUCKETS];
}

static int limit_refuse(struct limit *f, struct limit_rule *rule, const char *what)
{
	uvd_rule_count_done(&rule->count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter limit: a user has all %llu %s: %s", f->dev->config.ibdev,
			(unsigned long long)rule->max, what, uvd_errno_name(f->err));
	return -f->err;
}

/* Counts the object. Returns 0, or the errno that its creation fails with. */
static int limit_take(struct limit *f, enum limit_kind kind, const void *object, const struct uvd_account *account,
		      uint64_t bytes)
{
	struct limit_object *o, **bucket = limit_bucket(f, object);
	const uid_t uid = uvd_account_person(account);
	struct limit_user *u;
	bool few, small;

	if (f->uid != UINT64_MAX && f->uid != uid)
		return 0;
	o = uvd_zalloc(sizeof(*o));
	if (!o)
		return -ENOMEM;
	uvd_rule_count_seen(&f->num[kind].count);
	if (bytes)
		uvd_rule_count_seen(&f->bytes.count);
	pthread_mutex_lock(&f->lock);
	u = limit_user(f, uid);
	few = u && u->num[kind] < f->num[kind].max;
	small = u && bytes <= f->bytes.max && u->bytes <= f->bytes.max - bytes;
	if (few && small) {
		*o = (struct limit_object){ *bucket, object, u, kind, bytes };
		*bucket = o;
		u->num[kind]++;
		u->bytes += bytes;
	} else if (u) {
		limit_user_put(f, u);
	}
	pthread_mutex_unlock(&f->lock);
	if (few && small)
		return 0;
	free(o);
	if (!u)
		return -ENOMEM;
	return few ? limit_refuse(f, &f->bytes, "bytes") : limit_refuse(f, &f->num[kind], kind_names[kind]);
}

/* Returns where the object is linked, which is a place that holds NULL if it does not count. Caller holds f->lock. */
static struct limit_object **limit_find(struct limit *f, const void *object)
{
	struct limit_object **p = limit_bucket(f, object);

	while (*p && (*p)->object != object)
		p = &(*p)->next;
	return p;
}

/* Does nothing for an object that does not count. */
static void limit_give_back(struct limit *f, const void *object)
{
	struct limit_object **p, *o;

	pthread_mutex_lock(&f->lock);
	p = limit_find(f, object);
	o = *p;
	if (o) {
		*p = o->next;
		o->user->num[o->kind]--;
		o->user->bytes -= o->bytes;
		limit_user_put(f, o->user);
	}
	pthread_mutex_unlock(&f->lock);
	free(o);
}

/* The object `to` counts in the place of `object`. */
static void limit_move(struct limit *f, const void *object, const void *to)
{
	struct limit_object **p, **bucket = limit_bucket(f, to), *o;

	pthread_mutex_lock(&f->lock);
	p = limit_find(f, object);
	o = *p;
	if (o) {
		*p = o->next;
		o->object = to;
		o->next = *bucket;
		*bucket = o;
	}
	pthread_mutex_unlock(&f->lock);
}

/* For the result of a creation. */
static int limit_keep(struct limit *f, const void *object, int ret)
{
	if (ret)
		limit_give_back(f, object);
	return ret;
}

#define LIMIT_CREATE(op, kind, object, account, bytes, params, args) \
	static int limit_##op(void *data, const struct uvd_next *next, UVD_FILTER_LIST params) \
	{ \
		int ret = limit_take(data, kind, object, account, bytes); \
\
		return ret ?: limit_keep(data, object, uvd_next_##op(next, UVD_FILTER_LIST args)); \
	}
/* The core frees the object after this function has returned 0, so no other one can have its address yet. */
#define LIMIT_DESTROY(op, type, object) \
	static int limit_##op(void *data, const struct uvd_next *next, type *object) \
	{ \
		int ret = uvd_next_##op(next, object); \
\
		if (!ret) \
			limit_give_back(data, object); \
		return ret; \
	}

/* clang-format off */
LIMIT_CREATE(alloc_pd, LIMIT_PD, pd, pd->context->account, 0, (struct uvd_pd *pd, struct uvd_udata *udata), (pd, udata))
LIMIT_DESTROY(dealloc_pd, struct uvd_pd, pd)
LIMIT_CREATE(reg_mr, LIMIT_MR, mr, mr->pd->context->account, mr->length, (struct uvd_mr *mr, struct uvd_udata *udata),
	     (mr, udata))
LIMIT_CREATE(reg_dm_mr, LIMIT_MR, mr, mr->pd->context->account, 0, (struct uvd_mr *mr, struct uvd_udata *udata),
	     (mr, udata))
LIMIT_CREATE(reg_dmabuf_mr, LIMIT_MR, mr, mr->pd->context->account, mr->length,
	     (struct uvd_mr *mr, struct uvd_udata *udata), (mr, udata))
LIMIT_DESTROY(dereg_mr, struct uvd_mr, mr)
LIMIT_CREATE(alloc_mw, LIMIT_MW, mw, mw->pd->context->account, 0, (struct uvd_mw *mw, struct uvd_udata *udata),
	     (mw, udata))
LIMIT_DESTROY(dealloc_mw, struct uvd_mw, mw)
LIMIT_CREATE(create_ah, LIMIT_AH, ah, ah->pd->context->account, 0, (struct uvd_ah *ah, struct uvd_udata *udata),
	     (ah, udata))
LIMIT_DESTROY(destroy_ah, struct uvd_ah, ah)
LIMIT_CREATE(create_cq, LIMIT_CQ, cq, cq->context->account, 0, (struct uvd_cq *cq, struct uvd_udata *udata), (cq, udata))
LIMIT_CREATE(create_cq_umem, LIMIT_CQ, cq, cq->context->account, 0, (struct uvd_cq *cq, struct uvd_udata *udata),
	     (cq, udata))
LIMIT_DESTROY(destroy_cq, struct uvd_cq, cq)
LIMIT_CREATE(create_srq, LIMIT_SRQ, srq, srq->pd->context->account, 0,
	     (struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata), (srq, attr, udata))
LIMIT_DESTROY(destroy_srq, struct uvd_srq, srq)
LIMIT_CREATE(create_qp, LIMIT_QP, qp, qp->account, 0,
	     (struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata), (qp, init, udata))
LIMIT_DESTROY(destroy_qp, struct uvd_qp, qp)
LIMIT_CREATE(create_wq, LIMIT_WQ, wq, wq->pd->context->account, 0,
	     (struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata), (wq, init, udata))
LIMIT_DESTROY(destroy_wq, struct uvd_wq, wq)
LIMIT_CREATE(create_rwq_ind_table, LIMIT_RWQ_IND_TBL, table, table->context->account, 0,
	     (struct uvd_rwq_ind_table *table, struct uvd_udata *udata), (table, udata))
LIMIT_DESTROY(destroy_rwq_ind_table, struct uvd_rwq_ind_table, table)
LIMIT_CREATE(create_flow, LIMIT_FLOW, flow, flow->qp->account, 0, (struct uvd_flow *flow, struct uvd_udata *udata),
	     (flow, udata))
LIMIT_DESTROY(destroy_flow, struct uvd_flow, flow)
LIMIT_CREATE(alloc_dm, LIMIT_DM, dm, dm->context->account, 0, (struct uvd_dm *dm), (dm))
LIMIT_DESTROY(dealloc_dm, struct uvd_dm, dm)
LIMIT_CREATE(create_counters, LIMIT_COUNTERS, counters, counters->context->account, 0, (struct uvd_counters *counters),
	     (counters))
LIMIT_DESTROY(destroy_counters, struct uvd_counters, counters)
/* clang-format on */

/* Caller holds f->lock. */
static void limit_set_bytes(struct limit_object *o, uint64_t bytes)
{
	o->user->bytes += bytes - o->bytes;
	o->bytes = bytes;
}

/*
 * Changes the bytes of an object that counts. Returns 0 or the errno of a refusal, with *before as they were. Does
 * nothing for an object that does not count.
 */
static int limit_change_bytes(struct limit *f, const void *object, uint64_t bytes, uint64_t *before)
{
	struct limit_object *o;
	bool small = true;

	*before = bytes;
	pthread_mutex_lock(&f->lock);
	o = *limit_find(f, object);
	if (o) {
		const uint64_t others = o->user->bytes - o->bytes;

		uvd_rule_count_seen(&f->bytes.count);
		*before = o->bytes;
		small = bytes <= o->bytes || (bytes <= f->bytes.max && others <= f->bytes.max - bytes);
		if (small)
			limit_set_bytes(o, bytes);
	}
	pthread_mutex_unlock(&f->lock);
	return small ? 0 : limit_refuse(f, &f->bytes, "bytes");
}

/*
 * Reverts limit_change_bytes(). The user can then exceed the limit: another thread may have registered the bytes that this
 * object released.
 */
static void limit_restore_bytes(struct limit *f, const void *object, uint64_t bytes)
{
	struct limit_object *o;

	pthread_mutex_lock(&f->lock);
	o = *limit_find(f, object);
	if (o)
		limit_set_bytes(o, bytes);
	pthread_mutex_unlock(&f->lock);
}

/* With UVD_REREG_NEW the core destroys mr afterwards, so the new region counts in its place. */
static int limit_rereg_mr(void *data, const struct uvd_next *next, struct uvd_mr *mr, int flags, struct uvd_mr *to,
			  struct uvd_udata *udata)
{
	uint64_t before;
	int ret;

	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		return uvd_next_rereg_mr(next, mr, flags, to, udata);
	ret = limit_change_bytes(data, mr, to->length, &before);
	if (ret)
		return ret;
	ret = uvd_next_rereg_mr(next, mr, flags, to, udata);
	if (ret < 0)
		limit_restore_bytes(data, mr, before);
	else if (ret == UVD_REREG_NEW)
		limit_move(data, mr, to);
	return ret;
}

const struct uvd_filter uvd_filter_limit = {
	.name = "limit",
	.description = "each user has so many objects and registered bytes at most",
	.options = limit_options,
	.init = limit_init,
	.exit = limit_exit,
	.alloc_pd = limit_alloc_pd,
	.dealloc_pd = limit_dealloc_pd,
	.reg_mr = limit_reg_mr,
	.reg_dm_mr = limit_reg_dm_mr,
	.reg_dmabuf_mr = limit_reg_dmabuf_mr,
	.rereg_mr = limit_rereg_mr,
	.dereg_mr = limit_dereg_mr,
	.alloc_mw = limit_alloc_mw,
	.dealloc_mw = limit_dealloc_mw,
	.create_ah = limit_create_ah,
	.destroy_ah = limit_destroy_ah,
	.create_cq = limit_create_cq,
	.create_cq_umem = limit_create_cq_umem,
	.destroy_cq = limit_destroy_cq,
	.create_srq = limit_create_srq,
	.destroy_srq = limit_destroy_srq,
	.create_qp = limit_create_qp,
	.destroy_qp = limit_destroy_qp,
	.create_wq = limit_create_wq,
	.destroy_wq = limit_destroy_wq,
	.create_rwq_ind_table = limit_create_rwq_ind_table,
	.destroy_rwq_ind_table = limit_destroy_rwq_ind_table,
	.create_flow = limit_create_flow,
	.destroy_flow = limit_destroy_flow,
	.alloc_dm = limit_alloc_dm,
	.dealloc_dm = limit_dealloc_dm,
	.create_counters = limit_create_counters,
	.destroy_counters = limit_destroy_counters,
};
