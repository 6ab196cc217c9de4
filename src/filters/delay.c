/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `delay`: operations and commands of rdma_cm take longer, and completions come later. The thread of the call sleeps, before the
 * operation, and holds no lock that other calls need but those of its objects; the removal of the device ends the sleep.
 * So a call that is delayed costs one of the threads that serve the device, as a call does that waits for a slow
 * adapter. The backend keeps completions back, which costs no thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/cm.h"
#include "filters/filters.h"
#include "filters/rule.h"
#include "filters/wc.h"
#include "util/util.h"

/*
 * What can be delayed. Destructions cannot, because the end of a client destroys all its objects; nor can what the core
 * calls under a lock that clients share (XRC domains, counters of ports).
 */
#define DELAY_OPS(X) \
	X(query_device) \
	X(alloc_context) \
	X(alloc_pd) \
	X(reg_mr) \
	X(rereg_mr) \
	X(alloc_mw) \
	X(create_ah) \
	X(create_cq) \
	X(poll_cq) \
	X(req_notify_cq) \
	X(resize_cq) \
	X(create_srq) \
	X(modify_srq) \
	X(query_srq) \
	X(post_srq_recv) \
	X(create_qp) \
	X(modify_qp) \
	X(query_qp) \
	X(post_send) \
	X(post_recv)

enum delay_op {
#define DELAY_ENUM(ret, op, ...) DELAY_##op,
	UVD_FILTER_OPS(DELAY_ENUM) DELAY_OP_NUM
};

#define DELAY_NAME(ret, op, ...) #op,
static const char *const delay_names[] = { UVD_FILTER_OPS(DELAY_NAME) };

#define DELAY_OPTION(op) \
	{ #op, NULL, "TIME[@N|@N+|%P]", "the operation takes longer: 5us, 10ms or 2s; every call, the N-th, ..." },
/* Commands of rdma_cm can be delayed, but for those that end an object, and GET_EVENT, which waits anyhow. */
#define DELAY_CM_CALL(name) { #name, NULL, "TIME[@N|@N+|%P]", "the command of rdma_cm takes longer" },
#define DELAY_CM_END(name)
#define DELAY_CM_EVENT(name)
#define DELAY_CM_OPTION(command, name, kind) DELAY_CM_##kind(name)
#define DELAY_WC_OPTION(name, what) { name, NULL, "TIME[@N|@N+|%P]", "completions of " what " come later" },
static const struct uvd_plugin_option delay_options[] = {
	/* clang-format off */
	DELAY_OPS(DELAY_OPTION)
	UVD_CM_COMMANDS(DELAY_CM_OPTION)
	UVD_WC_OPTIONS(DELAY_WC_OPTION)
	{ "packet", NULL, "TIME[@N|@N+|%P]", "packets on the wire arrive later, of all QPs, answers included" },
	{ "seed", "1", "N", "which calls a percentage chooses" },
	/* clang-format on */
	{},
};

struct delay_rule {
	struct uvd_rule when;
	uint64_t ns;
};

struct delay {
	struct uvd_ibdev *dev;
	struct delay_rule ops[DELAY_OP_NUM], wcs[UVD_WC_KINDS], cms[UVD_CM_NUMBERS], packet;
};

static int delay_rule_init(struct delay_rule *rule, const struct uvd_plugin_values *values, const char *name,
			   uint64_t seed)
{
	/* NULL also for an operation that is no option. */
	const char *text = name ? uvd_plugin_value(values, name) : NULL, *wrong;
	char value[32];

	if (!text)
		return 0;
	wrong = uvd_rule_parse(&rule->when, text, seed, value, sizeof(value));
	if (!wrong && !uvd_rule_time(value, &rule->ns))
		wrong = "is not a time such as 5us, 10ms or 2s, of 60s at most";
	if (wrong)
		return uvd_plugin_wrong(values, name, wrong);
	uvd_rule_count_name(&rule->when.count, name, text);
	return 0;
}

static bool delay_has_wc(const struct delay *f)
{
	bool has = false;

	for (unsigned int i = 0; i < UVD_WC_KINDS; i++)
		has |= f->wcs[i].when.set;
	return has;
}

/* Can the backend keep completions back? */
static int delay_check_backend(const struct delay *f)
{
	const struct uvd_backend *ops = f->dev->ops;

	if (ops->carry_completion || !delay_has_wc(f))
		return 0;
	uvd_logf(f->dev->log, UVD_ERR, "%s: filter delay: the backend %s cannot delay completions, soft can",
		 f->dev->config.ibdev, ops->name);
	return -EOPNOTSUPP;
}

static void delay_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	const struct delay *f = data;

	for (unsigned int i = 0; i < DELAY_OP_NUM; i++)
		uvd_rule_count_tell(&f->ops[i].when.count, tell, arg);
	for (unsigned int i = 0; i < UVD_CM_NUMBERS; i++)
		uvd_rule_count_tell(&f->cms[i].when.count, tell, arg);
	for (unsigned int i = 0; i < UVD_WC_KINDS; i++)
		uvd_rule_count_tell(&f->wcs[i].when.count, tell, arg);
	uvd_rule_count_tell(&f->packet.when.count, tell, arg);
}

static int delay_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct delay *f = uvd_zalloc(sizeof(*f));
	uint64_t seed = 1;
	int err = f ? uvd_plugin_number(values, "seed", 0, UINT64_MAX, &seed) : -ENOMEM;

	if (!err)
		f->dev = dev;
	for (unsigned int i = 0; i < DELAY_OP_NUM && !err; i++)
		err = delay_rule_init(&f->ops[i], values, delay_names[i], seed + i);
	for (unsigned int i = 0; i < UVD_CM_NUMBERS && !err; i++)
		err = delay_rule_init(&f->cms[i], values, uvd_cm_names[i], seed + DELAY_OP_NUM + i);
	for (unsigned int i = 0; i < UVD_WC_KINDS && !err; i++)
		err = delay_rule_init(&f->wcs[i], values, uvd_wc_names[i], seed + i);
	if (!err)
		err = delay_rule_init(&f->packet, values, "packet", seed);
	if (!err)
		err = delay_check_backend(f);
	if (!err && f->packet.when.set)
		err = uvd_filter_needs_network(dev, "delay");
	if (err) {
		free(f);
		return err;
	}
	uvd_filter_has_rules(values, delay_tell_rules);
	*data = f;
	return 0;
}

static void delay_exit(struct uvd_ibdev *dev, void *data)
{
	free(data);
}

static void delay_by(struct delay *f, struct delay_rule *rule, const char *name)
{
	const uint64_t call = uvd_rule_applies(&rule->when);

	if (!call)
		return;
	uvd_rule_count_done(&rule->when.count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter delay: %s, call %llu: %llu us", f->dev->config.ibdev, name,
			(unsigned long long)call, (unsigned long long)(rule->ns / 1000));
	uvd_ibdev_sleep(f->dev, rule->ns);
}

static void delay_here(struct delay *f, enum delay_op op)
{
	delay_by(f, &f->ops[op], delay_names[op]);
}

static int delay_cm_command(void *data, struct uvd_cm_call *command)
{
	struct delay *f = data;

	delay_by(f, &f->cms[command->number], command->name);
	return 0;
}

#define DELAY_FUNCTION_int(op, params, args) \
	static __attribute__((unused)) int delay_##op(void *data, const struct uvd_next *next, UVD_FILTER_LIST params) \
	{ \
		delay_here(data, DELAY_##op); \
		return uvd_next_##op(next, UVD_FILTER_LIST args); \
	}
#define DELAY_FUNCTION_void(op, params, args)
#define DELAY_FUNCTION(ret, op, dev, params, args) DELAY_FUNCTION_##ret(op, params, args)
UVD_FILTER_OPS(DELAY_FUNCTION)

/* The stock provider of a persona with mapped queues posts by a doorbell. */
static int delay_doorbell(void *data, const struct uvd_next *next, struct uvd_qp *qp, struct uvd_work *work)
{
	delay_here(data, DELAY_post_send);
	return uvd_next_ring_doorbell(next, qp, work);
}

static void delay_completion(void *data, const struct uvd_next *next, struct uvd_completion *completion)
{
	const struct ibv_wc *wc = completion->wc;
	struct delay *f = data;
	const enum uvd_wc_kind kind = uvd_wc_kind(wc->opcode);
	const uint64_t of_any = uvd_rule_applies(&f->wcs[UVD_WC_ANY].when);
	const uint64_t of_kind = uvd_rule_applies(&f->wcs[kind].when);
	const uint64_t ns = of_kind ? f->wcs[kind].ns : f->wcs[UVD_WC_ANY].ns;

	uvd_next_carry_completion(next, completion);
	if (!of_any && !of_kind)
		return;
	uvd_rule_count_done(&f->wcs[of_kind ? kind : UVD_WC_ANY].when.count);
	completion->delay_ns += ns;
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter delay: QP 0x%x, %s, completion %llu: %llu us",
			f->dev->config.ibdev, wc->qp_num, uvd_wc_names[of_kind ? kind : UVD_WC_ANY],
			(unsigned long long)(of_kind ?: of_any), (unsigned long long)(ns / 1000));
}

static void delay_message(void *data, const struct uvd_next *next, struct uvd_message *message)
{
	struct delay *f = data;
	uint64_t number;

	uvd_next_carry_message(next, message);
	if (!message->is_packet)
		return;
	number = uvd_rule_applies(&f->packet.when);
	if (!number || message->fate == UVD_FATE_LOSE)
		return;
	uvd_rule_count_done(&f->packet.when.count);
	message->delay_ns += f->packet.ns;
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter delay: QP 0x%x, packet %llu: %llu us", f->dev->config.ibdev,
			message->qp->qp_num, (unsigned long long)number, (unsigned long long)(f->packet.ns / 1000));
}

#define DELAY_ENTRY(op) .op = delay_##op,
/* clang-format off */
const struct uvd_filter uvd_filter_delay = {
	.name = "delay",
	.description = "operations take longer, and completions come later",
	.options = delay_options,
	.init = delay_init,
	.exit = delay_exit,
	.cm_command = delay_cm_command,
	DELAY_OPS(DELAY_ENTRY)
	.ring_doorbell = delay_doorbell,
	.carry_completion = delay_completion,
	.carry_message = delay_message,
};
/* clang-format on */
