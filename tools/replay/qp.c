/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the calls before have done to a QP: the conditions qp_now= and after= of the list of differences ask for it. A
 * call of a trace is compared alone, so the replay remembers it.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>

#include "replay.h"

/* Returns what is remembered of this call's QP, or NULL: the call names none, or one that the trace did not create. */
static json_t *qp_of(const struct uvd_replay_call *c)
{
	uint32_t handle;
	char key[48];

	if (!uvd_trace_uses(c->was, UVERBS_OBJECT_QP, &handle))
		return NULL;
	snprintf(key, sizeof(key), "%llu %u", (unsigned long long)c->f->file, handle);
	return json_object_get(c->r->qps, key);
}

static void qp_created(struct uvd_replay_call *c)
{
	char key[48];

	snprintf(key, sizeof(key), "%llu %u", (unsigned long long)c->f->file, c->was->created);
	json_object_set_new(c->r->qps, key, json_pack("{s:i,s:{}}", "state", 0, "after"));
}

void uvd_replay_qp_note(struct uvd_replay_call *c, const char *target)
{
	const json_t *mask = json_object_get(c->values, "attr_mask"), *state = json_object_get(c->values, "qp_state");
	json_t *qp = qp_of(c);

	if (c->was->creates && c->was->created_object == UVERBS_OBJECT_QP)
		qp_created(c);
	if (!qp)
		return;
	json_object_set_new(json_object_get(qp, "after"), target, json_true());
	if (strstr(target, "MODIFY_QP") && json_integer_value(mask) & 1 && state)
		json_object_set(qp, "state", (json_t *)state);
}

uint64_t uvd_replay_qp_now(const struct uvd_replay_call *c)
{
	const json_t *qp = qp_of(c);

	return qp ? (uint64_t)json_integer_value(json_object_get(qp, "state")) : UINT64_MAX;
}

bool uvd_replay_qp_after(const struct uvd_replay_call *c, const char *target)
{
	return json_object_get(json_object_get(qp_of(c), "after"), target);
}
