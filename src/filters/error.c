/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `error`: operations and commands of rdma_cm fail with an errno, completions have a status of choice, and connections
 * end as the user likes.
 *
 * A QP that got such a completion behaves as one in the error state: its later completions are flushed, and QUERY_QP
 * says ERR, until it is reset. The backend does not know of that, so the peer sees no error.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>
#include <uverbsd/reason.h>

#include "filters/cm.h"
#include "filters/filters.h"
#include "filters/object.h"
#include "filters/rule.h"
#include "filters/wc.h"
#include "util/util.h"

enum { MAX_BROKEN = 256 /* QPs that it remembers to be in the error state */ };

enum error_op {
#define ERROR_ENUM(ret, op, ...) ERROR_##op,
	UVD_FILTER_OPS(ERROR_ENUM) ERROR_OPS
};

#define ERROR_NAME(ret, op, ...) #op,
static const char *const op_names[] = { UVD_FILTER_OPS(ERROR_NAME) };

/* Events of rdma_cm, in the place of those that a command has when it succeeds. */
static const struct error_event {
	const char *name;
	enum uvd_cm_outcome outcome;
	unsigned int command, older; /* of which it is the outcome */
} error_events[] = {
	{ "rejected", UVD_CM_REJECTED, RDMA_USER_CM_CMD_CONNECT, RDMA_USER_CM_CMD_CONNECT },
	{ "unreachable", UVD_CM_UNREACHABLE, RDMA_USER_CM_CMD_CONNECT, RDMA_USER_CM_CMD_CONNECT },
	{ "addr_error", UVD_CM_ADDR_ERROR, RDMA_USER_CM_CMD_RESOLVE_ADDR, RDMA_USER_CM_CMD_RESOLVE_IP },
	{ "route_error", UVD_CM_ROUTE_ERROR, RDMA_USER_CM_CMD_RESOLVE_ROUTE, RDMA_USER_CM_CMD_RESOLVE_ROUTE },
};
enum { ERROR_EVENTS = UVD_COUNT(error_events) };

struct error_rule {
	struct uvd_rule when;
	int value; /* an errno, a status, or a reason */
};

struct error_filter {
	struct uvd_ibdev *dev;
	struct error_rule ops[ERROR_OPS], wcs[UVD_WC_KINDS], cms[UVD_CM_NUMBERS], events[ERROR_EVENTS];
	struct uvd_object_rule objects[UVD_OF_KINDS];
	pthread_mutex_t lock; /* broken, num_broken; a leaf, also of the backends' locks */
	uint32_t broken[MAX_BROKEN]; /* numbers of QPs, the latest ones */
	unsigned int num_broken; /* ever */
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

#define ERROR_OPTION_int(op) \
	{ #op, NULL, "ERRNO[@N|@N+|%P]", "the operation fails: every call, the N-th, from the N-th, P percent" },
#define ERROR_OPTION_void(op)
#define ERROR_OPTION(ret, op, ...) ERROR_OPTION_##ret(op)
#define ERROR_CM_OPTION(command, name, kind) { #name, NULL, "ERRNO[@N|@N+|%P]", "the command of rdma_cm fails" },
#define ERROR_WC_OPTION(name, what) { name, NULL, "STATUS[@N|@N+|%P]", "status of completions of " what },
static const struct uvd_plugin_option error_options[] = {
	/* clang-format off */
	UVD_FILTER_OPS(ERROR_OPTION)
	UVD_CM_COMMANDS(ERROR_CM_OPTION)
	{ "rejected", NULL, "REASON[@N|@N+|%P]", "a connect of rdma_cm reaches no peer, and its event is REJECTED" },
	{ "unreachable", NULL, "ERRNO[@N|@N+|%P]", "a connect of rdma_cm reaches no peer, and its event is UNREACHABLE" },
	{ "addr_error", NULL, "ERRNO[@N|@N+|%P]", "the event of a resolve_addr of rdma_cm is ADDR_ERROR" },
	{ "route_error", NULL, "ERRNO[@N|@N+|%P]", "the event of a resolve_route of rdma_cm is ROUTE_ERROR" },
	UVD_WC_OPTIONS(ERROR_WC_OPTION)
	{ "qp", NULL, "@N|NUMBER|TYPE", "rules are for this QP: the N-th created, this number, this type (rc, ud, ...)" },
	{ "cq", NULL, "@N", "rules are for the N-th CQ that is created" },
	{ "srq", NULL, "@N", "rules are for the N-th SRQ that is created" },
	{ "mr", NULL, "@N|L_KEY", "rules are for this region" },
	{ "seed", "1", "N", "which calls a percentage chooses" },
	/* clang-format on */
	{},
};

static int error_rule_init(struct error_rule *rule, const struct uvd_plugin_values *values, const char *name,
			   uint64_t seed, int (*convert)(const char *name), const char *kind)
{
	const char *text = name ? uvd_plugin_value(values, name) : NULL, *wrong;
	char value[64];

	if (!text)
		return 0;
	wrong = uvd_rule_parse(&rule->when, text, seed, value, sizeof(value));
	if (wrong)
		return uvd_plugin_wrong(values, name, wrong);
	uvd_rule_count_name(&rule->when.count, name, text);
	rule->value = convert(value);
	if (rule->value >= 0)
		return 0;
	return uvd_plugin_wrong(values, name, convert == uvd_rule_errno ? uvd_rule_no_errno(value) : kind);
}

/* The reason of a REJ. Returns -1 if it is none. */
static int error_reason(const char *text)
{
	const size_t len = strspn(text, "0123456789");
	const long reason = len && len <= 3 && !text[len] ? strtol(text, NULL, 10) : -1;

	return reason <= UINT8_MAX ? (int)reason : -1;
}

static int error_event_init(struct error_filter *f, unsigned int i, const struct uvd_plugin_values *values,
			    uint64_t seed)
{
	const struct error_event *event = &error_events[i];

	if (event->outcome == UVD_CM_REJECTED)
		return error_rule_init(&f->events[i], values, event->name, seed, error_reason,
				       "is not a reason of a REJ, from 0 to 255");
	return error_rule_init(&f->events[i], values, event->name, seed, uvd_rule_errno, "is not an errno");
}

/* Does the operation, or the command, end an object? */
static bool error_ends_object(const char *op)
{
	return !strncmp(op, "destroy_", 8) || !strncmp(op, "dealloc_", 8) || !strcmp(op, "dereg_mr") ||
	       !strcmp(op, "leave_mcast");
}

/* An object that never ends would stay in the backend when the core has freed its context. */
static int error_check_ends(const struct error_rule *rule, const struct uvd_plugin_values *values, const char *name)
{
	if (!rule->when.set || !error_ends_object(name) || (rule->when.first && rule->when.first == rule->when.last))
		return 0;
	return uvd_plugin_wrong(values, name, "applies to more than one call: name one, ERRNO@N, or objects leak");
}

/* The kind of the object that an operation is called for. The parameter is declared for its type only. */
#define ERROR_FIRST(first, ...) first
#define ERROR_KIND(ret, op, dev, params, args) \
	case ERROR_##op: { \
		ERROR_FIRST params; \
		return UVD_OBJECT_KIND(ERROR_FIRST args); \
	}
static enum uvd_object_kind error_kind(enum error_op op)
{
	switch (op) {
		UVD_FILTER_OPS(ERROR_KIND)
	default:
		return UVD_OF_NONE;
	}
}

/* Is there a rule for objects of this kind? */
static bool error_uses_kind(const struct error_filter *f, enum uvd_object_kind kind, bool *of_wc)
{
	bool of_op = false;

	*of_wc = false;
	for (unsigned int i = 0; i < UVD_WC_KINDS; i++)
		*of_wc |= f->wcs[i].when.set && (kind == UVD_OF_QP || kind == UVD_OF_CQ);
	for (unsigned int i = 0; i < ERROR_OPS; i++)
		of_op |= f->ops[i].when.set && error_kind(i) == kind;
	return of_op || *of_wc;
}

static int error_object_init(struct error_filter *f, const struct uvd_plugin_values *values, enum uvd_object_kind kind)
{
	const char *text = uvd_plugin_value(values, uvd_object_kinds[kind]), *wrong;
	bool of_wc;

	if (!text)
		return 0;
	wrong = uvd_object_parse(&f->objects[kind], kind, text);
	if (!wrong && !error_uses_kind(f, kind, &of_wc))
		wrong = "is for no rule: none of them is about such an object";
	if (!wrong && of_wc && f->objects[kind].by == UVD_OBJECT_TYPE)
		wrong = "is a type, which completions do not tell: name a QP";
	return wrong ? uvd_plugin_wrong(values, uvd_object_kinds[kind], wrong) : 0;
}

static void error_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	const struct error_filter *f = data;

	for (unsigned int i = 0; i < ERROR_OPS; i++)
		uvd_rule_count_tell(&f->ops[i].when.count, tell, arg);
	for (unsigned int i = 0; i < UVD_CM_NUMBERS; i++)
		uvd_rule_count_tell(&f->cms[i].when.count, tell, arg);
	for (unsigned int i = 0; i < ERROR_EVENTS; i++)
		uvd_rule_count_tell(&f->events[i].when.count, tell, arg);
	for (unsigned int i = 0; i < UVD_WC_KINDS; i++)
		uvd_rule_count_tell(&f->wcs[i].when.count, tell, arg);
}

static int error_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct error_filter *f = uvd_zalloc(sizeof(*f));
	uint64_t seed = 1;
	int err = f ? uvd_plugin_number(values, "seed", 0, UINT64_MAX, &seed) : -ENOMEM;

	for (unsigned int i = 0; i < ERROR_OPS && !err; i++)
		err = error_rule_init(&f->ops[i], values, op_names[i], seed + i, uvd_rule_errno, "is not an errno")
			      ?: error_check_ends(&f->ops[i], values, op_names[i]);
	for (unsigned int i = 0; i < UVD_WC_KINDS && !err; i++)
		err = error_rule_init(&f->wcs[i], values, uvd_wc_names[i], seed + i, uvd_rule_status,
				      "is not a status of a completion");
	seed += ERROR_OPS;
	for (unsigned int i = 0; i < UVD_CM_NUMBERS && !err; i++)
		err = error_rule_init(&f->cms[i], values, uvd_cm_names[i], seed + i, uvd_rule_errno, "is not an errno")
			      ?: error_check_ends(&f->cms[i], values, uvd_cm_names[i]);
	for (unsigned int i = 0; i < ERROR_EVENTS && !err; i++)
		err = error_event_init(f, i, values, seed + UVD_CM_NUMBERS + i);
	for (unsigned int i = UVD_OF_NONE + 1; i < UVD_OF_KINDS && !err; i++)
		err = error_object_init(f, values, i);
	if (err) {
		free(f);
		return err;
	}
	f->dev = dev;
	pthread_mutex_init(&f->lock, NULL);
	uvd_filter_has_rules(values, error_tell_rules);
	*data = f;
	return 0;
}

static void error_exit(struct uvd_ibdev *dev, void *data)
{
	struct error_filter *f = data;

	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Counts the call. Returns 0, or the negative errno that it fails with. */
static int error_count(struct error_filter *f, struct error_rule *rule, const char *name)
{
	const uint64_t call = uvd_rule_applies(&rule->when);

	if (!call)
		return 0;
	uvd_rule_count_done(&rule->when.count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter error: %s, call %llu: %s", f->dev->config.ibdev, name,
			(unsigned long long)call, uvd_errno_name(rule->value));
	return -rule->value;
}

/* Counts the call, if it is for an object that the rules are for. Returns 0, or the negative errno that it fails with. */
static int error_here(struct error_filter *f, enum error_op op, enum uvd_object_kind kind, const void *object)
{
	if (!uvd_object_applies(&f->objects[kind], kind, uvd_object_step(op_names[op]), object))
		return 0;
	return error_count(f, &f->ops[op], op_names[op]);
}

#define ERROR_FUNCTION_int(op, params, args) \
	static int error_##op(void *data, const struct uvd_next *next, UVD_FILTER_LIST params) \
	{ \
		const enum uvd_object_kind kind = UVD_OBJECT_KIND(ERROR_FIRST args); \
		const void *object = ERROR_FIRST args; \
		struct error_filter *f = data; \
		int ret = error_here(f, ERROR_##op, kind, object); \
\
		if (!ret) \
			ret = uvd_next_##op(next, UVD_FILTER_LIST args); \
		uvd_object_done(&f->objects[kind], kind, uvd_object_step(#op), object, ret); \
		return ret; \
	}
#define ERROR_FUNCTION_void(op, params, args)
#define ERROR_FUNCTION(ret, op, dev, params, args) ERROR_FUNCTION_##ret(op, params, args)
UVD_FILTER_OPS(ERROR_FUNCTION)

static int error_bad_send(void *data, const struct uvd_next *next, struct uvd_qp *qp, const struct uvd_send_wr *wr,
			  const struct uvd_send_wr **bad, struct uvd_work *work)
{
	*bad = wr;
	return error_post_send(data, next, qp, wr, bad, work);
}

static int error_bad_recv(void *data, const struct uvd_next *next, struct uvd_qp *qp, const struct uvd_recv_wr *wr,
			  const struct uvd_recv_wr **bad)
{
	*bad = wr;
	return error_post_recv(data, next, qp, wr, bad);
}

static int error_bad_srq_recv(void *data, const struct uvd_next *next, struct uvd_srq *srq,
			      const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	*bad = wr;
	return error_post_srq_recv(data, next, srq, wr, bad);
}

/* The stock provider of a persona with mapped queues posts by a doorbell. */
static int error_doorbell(void *data, const struct uvd_next *next, struct uvd_qp *qp, struct uvd_work *work)
{
	return error_here(data, ERROR_post_send, UVD_OF_QP, qp) ?: error_ring_doorbell(data, next, qp, work);
}

/* A rule for the N-th region holds for the region that replaces it. */
static int error_rereg(void *data, const struct uvd_next *next, struct uvd_mr *mr, int flags, struct uvd_mr *to,
		       struct uvd_udata *udata)
{
	struct error_filter *f = data;
	int ret = error_rereg_mr(data, next, mr, flags, to, udata);

	if (ret == UVD_REREG_NEW)
		uvd_object_replaced(&f->objects[UVD_OF_MR], UVD_OF_MR, mr, to);
	return ret;
}

/* ---- commands of rdma_cm ------------------------------------------------------------------------------------------- */

/* The outcome of the command is this event. */
static void error_tell_event(struct error_filter *f, unsigned int i, uint64_t call, struct uvd_cm_call *command)
{
	const bool is_reason = error_events[i].outcome == UVD_CM_REJECTED;
	struct error_rule *rule = &f->events[i];

	command->outcome = error_events[i].outcome;
	command->status = is_reason ? rule->value : -rule->value;
	uvd_rule_count_done(&rule->when.count);
	if (is_reason)
		uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter error: %s, call %llu: reason %d",
				f->dev->config.ibdev, error_events[i].name, (unsigned long long)call, rule->value);
	else
		uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter error: %s, call %llu: %s", f->dev->config.ibdev,
				error_events[i].name, (unsigned long long)call, uvd_errno_name(rule->value));
}

/* A command that fails has no event, so the rules of events do not count it. Of two that choose it the first one acts. */
static int error_cm_command(void *data, struct uvd_cm_call *command)
{
	struct error_filter *f = data;
	const int ret = error_count(f, &f->cms[command->number], command->name);
	uint64_t call;

	for (unsigned int i = 0; i < ERROR_EVENTS && !ret; i++) {
		if (error_events[i].command != command->number && error_events[i].older != command->number)
			continue;
		call = uvd_rule_applies(&f->events[i].when);
		if (call && command->outcome == UVD_CM_USUAL)
			error_tell_event(f, i, call, command);
	}
	return ret;
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* Caller holds f->lock. Returns the QP's place in f->broken, or NULL. */
static uint32_t *error_broken(struct error_filter *f, uint32_t qp_num)
{
	for (unsigned int i = 0; i < MAX_BROKEN && i < f->num_broken; i++)
		if (f->broken[i] == qp_num)
			return &f->broken[i];
	return NULL;
}

static bool error_is_broken(struct error_filter *f, uint32_t qp_num)
{
	bool broken;

	pthread_mutex_lock(&f->lock);
	broken = error_broken(f, qp_num);
	pthread_mutex_unlock(&f->lock);
	return broken;
}

static void error_break(struct error_filter *f, uint32_t qp_num)
{
	pthread_mutex_lock(&f->lock);
	/* Another CQ of the QP may have got an error meanwhile. */
	if (!error_broken(f, qp_num))
		f->broken[f->num_broken++ % MAX_BROKEN] = qp_num;
	pthread_mutex_unlock(&f->lock);
}

static void error_mend(struct error_filter *f, uint32_t qp_num)
{
	uint32_t *place;

	pthread_mutex_lock(&f->lock);
	place = error_broken(f, qp_num);
	if (place)
		*place = UINT32_MAX; /* no QP has this number */
	pthread_mutex_unlock(&f->lock);
}

static void explain_injected(struct uvd_ibdev *dev, const struct uvd_cq *cq, const struct ibv_wc *wc, const char *rule,
			     uint64_t nr)
{
	static const struct uvd_reason injected = { "error:injected", "filter error: {rule:s}, completion {number}",
						    "the request was carried out: see `uverbsctl filter list`",
						    "docs/testing-your-program.md" };
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_COMPLETION,
		.why = { &injected, { { .word = rule }, { nr } } },
		.object = "QP",
		.number = wc->qp_num,
		.status = wc->status,
		.is_recv = wc->opcode & IBV_WC_RECV,
		.opcode = uvd_wr_opcode_of(wc->opcode),
		.wr_id = wc->wr_id,
		.length = wc->byte_len,
	};

	uvd_explain(dev, cq->context, &e);
}

static void error_completion(void *data, struct uvd_cq *cq, struct ibv_wc *wc)
{
	struct error_filter *f = data;
	struct error_rule *any = &f->wcs[UVD_WC_ANY], *one = &f->wcs[uvd_wc_kind(wc->opcode)];
	uint64_t of_any, of_one;
	int status;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	if (error_is_broken(f, wc->qp_num)) {
		wc->status = IBV_WC_WR_FLUSH_ERR;
		return;
	}
	if (!uvd_object_completes(f->objects, cq, wc->qp_num))
		return;
	of_any = uvd_rule_applies(&any->when);
	of_one = uvd_rule_applies(&one->when);
	if (!of_any && !of_one)
		return;
	status = of_one ? one->value : any->value;
	uvd_rule_count_done(of_one ? &one->when.count : &any->when.count);
	error_break(f, wc->qp_num);
	wc->status = status;
	explain_injected(f->dev, cq, wc, uvd_wc_names[of_one ? uvd_wc_kind(wc->opcode) : UVD_WC_ANY], of_one ?: of_any);
}

static int error_modify(void *data, const struct uvd_next *next, struct uvd_qp *qp, const struct ibv_qp_attr *attr,
			int mask, struct uvd_udata *udata)
{
	int ret = error_modify_qp(data, next, qp, attr, mask, udata);

	if (!ret && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		error_mend(data, qp->qp_num);
	return ret;
}

static int error_query(void *data, const struct uvd_next *next, struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask,
		       struct uvd_qp_init_attr *init)
{
	int ret = error_query_qp(data, next, qp, attr, mask, init);

	if (!ret && error_is_broken(data, qp->qp_num))
		attr->qp_state = attr->cur_qp_state = IBV_QPS_ERR;
	return ret;
}

static int error_destroy(void *data, const struct uvd_next *next, struct uvd_qp *qp)
{
	const uint32_t qp_num = qp->qp_num;
	int ret = error_destroy_qp(data, next, qp);

	if (!ret)
		error_mend(data, qp_num);
	return ret;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define ERROR_ENTRY_int(op) .op = error_##op,
#define ERROR_ENTRY_void(op)
#define ERROR_ENTRY(ret, op, ...) ERROR_ENTRY_##ret(op)
/* clang-format off */
const struct uvd_filter uvd_filter_error = {
	.name = "error",
	.description = "operations and commands of rdma_cm fail, completions and connections have errors",
	.options = error_options,
	.init = error_init,
	.exit = error_exit,
	.completion = error_completion,
	.cm_command = error_cm_command,
	UVD_FILTER_OPS(ERROR_ENTRY)
	.post_send = error_bad_send,
	.post_recv = error_bad_recv,
	.post_srq_recv = error_bad_srq_recv,
	.ring_doorbell = error_doorbell,
	.rereg_mr = error_rereg,
	.modify_qp = error_modify,
	.query_qp = error_query,
	.destroy_qp = error_destroy,
};
/* clang-format on */
#pragma GCC diagnostic pop
