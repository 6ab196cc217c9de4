/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "client/client.h"
#include "core/internal.h"
#include "explain/explain.h"

/*
 * Writes the line, which is formatted only if the limits of the log let it pass: a client can fail in a loop. Without a reason of its
 * own, an explanation is limited with those of the same verb.
 */
static void explain_log(struct uvd_device *dev, uid_t user, const struct uvd_explained *e)
{
	const char *kind = e->why.reason ? e->why.reason->code : e->verb ?: "explained";
	const bool is_json = dev->engine->explain == UVD_EXPLAIN_JSON;
	char line[UVD_EXPLAINED_TEXT + 128], text[UVD_EXPLAINED_TEXT];

	if (!uvd_log_passes(dev->engine->log, user, UVD_WARN, kind))
		return;
	if (is_json) {
		if (!uvd_explained_json(line, sizeof(line), e, dev->config.ibdev, e->pid))
			return;
	} else {
		uvd_explained_text(text, sizeof(text), e);
		snprintf(line, sizeof(line), "%s: %s, pid %d", dev->config.ibdev, text, e->pid);
	}
	uvd_log_line(dev->engine->log, UVD_WARN, is_json, line);
}

void uvd_file_explain(struct uvd_device *dev, struct uvd_file *file, uid_t user, const struct uvd_explained *explained)
{
	struct uvd_engine *engine = dev->engine;
	struct uvd_explained e = *explained;

	if (!e.pid && file)
		e.pid = atomic_load_explicit(&file->watched.opened_by, memory_order_relaxed);
	if (engine->explain != UVD_EXPLAIN_OFF)
		explain_log(dev, user, &e);
	if (file && uvd_is_watched(&engine->observers)) {
		struct uvd_observed_reason reason = {
			.file = &file->watched,
			.tree = atomic_load(&file->tree),
			.pid = e.pid,
			.explained = &e,
		};

		uvd_observe_reason(&reason);
	}
}

void uvd_file_explain_rule(struct uvd_file *file, struct uvd_caller *caller, const char *verb, int err,
			   const struct uvd_why *why)
{
	const pid_t tgid = uvd_caller_tgid(caller);
	char name[UVD_ALLOW_WORD];
	struct uvd_explained e = {
		.kind = UVD_EXPLAINED_CALL,
		.why = *why,
		.pid = tgid > 0 ? tgid : caller->tid,
		.verb = name,
		.err = err,
	};

	uvd_allow_verb_name(verb, name);
	caller->is_explained = true;
	uvd_file_explain(file->dev, file, caller->log_user, &e);
}

void uvd_device_explain(struct uvd_ibdev *ib, struct uvd_context *context, const struct uvd_explained *explained)
{
	struct uvd_file *file = context ? context->owner : NULL;

	uvd_file_explain(ib->owner, file, file ? uvd_account_person(file->account) : UVD_LOG_NO_USER, explained);
}
