/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decides what is a finding and what is a notice, and makes the document that all formats print. */
#include <inttypes.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "report/internal.h"

static json_t *judge_number(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

/* ---- findings and notices ---------------------------------------------------------------------------------------- */

struct judge {
	struct uvd_report *r;
	json_t *findings, *notices; /* of the process */
};

/* number: how often. text: printable; the judge frees it. */
static void judge_add(struct judge *j, bool is_finding, const char *code, uint64_t number, char *text)
{
	json_t *issue = json_object();

	json_object_set_new(issue, "code", json_string(code));
	json_object_set_new(issue, "count", judge_number(number));
	json_object_set_new(issue, "text", json_string(text ? text : ""));
	json_array_append_new(is_finding ? j->findings : j->notices, issue);
	j->r->findings += is_finding;
	free(text);
}

__attribute__((format(printf, 1, 2))) static char *judge_text(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	return text;
}

static const char *judge_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- what is left ------------------------------------------------------------------------------------------------ */

/* "UVERBS_OBJECT_MR" is "MR". */
static const char *judge_type(const char *type)
{
	static const char prefix[] = "UVERBS_OBJECT_";

	return strncmp(type, prefix, strlen(prefix)) ? type : type + strlen(prefix);
}

/* Writes "2 QP, 1 CQ". Of a process with too many objects only those that are listed. */
static void judge_count_types(const struct report_process *p, char *text, size_t size)
{
	size_t len = 0;

	*text = 0;
	for (unsigned int i = 0; i < p->num_listed; i++) {
		unsigned int num = 0, before = 0;

		for (unsigned int k = 0; k < p->num_listed; k++) {
			const bool same = !strcmp(p->left[k]->type, p->left[i]->type);

			num += same;
			before += same && k < i;
		}
		if (!before && len < size)
			len += snprintf(text + len, size - len, "%s%u %s", len ? ", " : "", num,
					judge_type(p->left[i]->type));
	}
}

static void judge_left(struct judge *j, const struct report_process *p)
{
	/* A process that was killed, or reports a failure, has reasons not to clean up. */
	const bool has_failed = !p->num_left_alive && (p->end != REPORT_EXITED || p->status),
		   has_served = p->num_qps && p->num_served == p->num_qps,
		   is_finding = !has_failed && p->num_left_used && !has_served;
	const char *code = is_finding	      ? "objects-left"
			   : has_failed	      ? "left-by-failure"
			   : p->num_left_used ? "left-by-responder"
					      : "left-idle";
	char types[512], bytes[64] = "", more[64] = "";
	const char *when = p->num_left_alive ? "when it closed the device" : "when it ended";

	if (!p->num_left)
		return;
	judge_count_types(p, types, sizeof(types));
	if (p->left_bytes)
		snprintf(bytes, sizeof(bytes), " (%" PRIu64 " bytes registered)", p->left_bytes);
	if (p->num_left > p->num_listed)
		snprintf(more, sizeof(more), " and %" PRIu64 " more", p->num_left - p->num_listed);
	judge_add(j, is_finding, code, p->num_left,
		  judge_text("%" PRIu64 " object%s left %s: %s%s%s", p->num_left, judge_s(p->num_left), when, types,
			     more, bytes));
}

static json_t *judge_stack(const struct report_left *left)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < left->num_frames; i++) {
		const struct report_frame *frame = &left->frames[i];

		json_array_append_new(list, json_pack("{s:s, s:o, s:s*, s:s*, s:o*}", "module", frame->module, "offset",
						      judge_number(frame->offset), "function",
						      *frame->function ? frame->function : NULL, "file",
						      *frame->file ? frame->file : NULL, "line",
						      *frame->file ? json_integer(frame->line) : NULL));
	}
	return list;
}

static json_t *judge_object(const struct report_left *left)
{
	json_t *json = json_object();
	char access[256];

	json_object_set_new(json, "type", json_string(judge_type(left->type)));
	json_object_set_new(json, "handle", json_integer(left->handle));
	if (left->id == UVERBS_OBJECT_MR) {
		json_object_set_new(json, "length", judge_number(left->values[0]));
		json_object_set_new(json, "access",
				    json_string(uvd_flag_names(uvd_access_flag_names, left->values[1], ", ", access,
							       sizeof(access))));
	} else if (left->id == UVERBS_OBJECT_QP) {
		json_object_set_new(json, "qp_type", json_string(uvd_name_of(uvd_qp_type_names, left->values[0])));
		json_object_set_new(json, "qp_num", judge_number(left->values[1]));
	} else if (left->id == UVERBS_OBJECT_CQ) {
		json_object_set_new(json, "cqe", judge_number(left->values[0]));
	}
	if (left->num_frames)
		json_object_set_new(json, "stack", judge_stack(left));
	return json;
}

static json_t *judge_objects(const struct report_process *p)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < p->num_listed; i++)
		json_array_append_new(list, judge_object(p->left[i]));
	return list;
}

/* ---- explanations ------------------------------------------------------------------------------------------------ */

static void judge_reason(struct judge *j, const struct report_process *p, const struct report_reason *reason)
{
	char lost[64] = "";
	const bool overrun = !strcmp(reason->code, "cq-overrun") ||
			     (reason->kind == UVD_EXPLAINED_EVENT && reason->status == IBV_EVENT_CQ_ERR);
	const char *code = *reason->code ? reason->code : "?";

	if (!strcmp(reason->code, "cq-overrun") && p->lost_completions)
		snprintf(lost, sizeof(lost), ", %" PRIu64 " completion%s lost", p->lost_completions,
			 judge_s(p->lost_completions));
	if (reason->kind == UVD_EXPLAINED_CALL)
		return; /* many programs try what a device can do: the table of calls has them */
	if (reason->kind == UVD_EXPLAINED_COMPLETION)
		judge_add(j, true, "completion-failed", reason->count,
			  judge_text("%" PRIu64 " completion%s with %s (%s), the first: %s", reason->count,
				     judge_s(reason->count), uvd_name_of(uvd_wc_status_names, reason->status), code,
				     reason->sample));
	else if (reason->kind == UVD_EXPLAINED_DROP)
		judge_add(j, false, "dropped", reason->count,
			  judge_text("messages were dropped (%s), the first: %s", code, reason->sample));
	else
		judge_add(j, overrun, overrun ? "cq-overrun" : "event", reason->count,
			  judge_text("%" PRIu64 " event%s %s (%s)%s, the first: %s", reason->count,
				     judge_s(reason->count), uvd_name_of(uvd_event_names, reason->status), code, lost,
				     reason->sample));
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static void judge_issues(struct judge *j, const struct report_process *p)
{
	const struct report_issue *is = p->issues, *i;

	i = &is[REPORT_SENDS_STUCK];
	if (i->objects)
		judge_add(j, true, "sends-in-flight", i->objects,
			  judge_text("%" PRIu64 " QP%s destroyed with %" PRIu64
				     " send%s in flight, and none had completed before, the first: QP 0x%x with %u",
				     i->objects, judge_s(i->objects), i->total, judge_s(i->total), i->first, i->value));
	i = &is[REPORT_SENDS_IN_FLIGHT];
	if (i->objects)
		judge_add(
			j, false, "last-sends-in-flight", i->objects,
			judge_text(
				"%" PRIu64 " QP%s destroyed with %" PRIu64
				" send%s in flight, of which it is not known if they arrived, the first: QP 0x%x with %u",
				i->objects, judge_s(i->objects), i->total, judge_s(i->total), i->first, i->value));
	i = &is[REPORT_RECEIVES_UNUSED];
	if (i->objects)
		judge_add(j, false, "receives-unused", i->objects,
			  judge_text("%" PRIu64 " receive%s of %" PRIu64 " QP%s never used, the first: QP 0x%x with %u",
				     i->total, judge_s(i->total), i->objects, judge_s(i->objects), i->first, i->value));
	i = &is[REPORT_EVENTS_UNREAD];
	if (i->objects)
		judge_add(j, false, "events-unread", i->objects,
			  judge_text("%" PRIu64 " event%s of %" PRIu64 " object%s never read, the first: %s %u with %u",
				     i->total, judge_s(i->total), i->objects, judge_s(i->objects),
				     judge_type(i->first_type), i->first, i->value));
	i = &is[REPORT_CQ_SMALL];
	if (i->objects)
		judge_add(j, false, "cq-small", i->objects,
			  judge_text("%" PRIu64
				     " CQ%s smaller than the queues that complete into it, the first: CQ %u has %u "
				     "entries, and its QPs can have %u requests at once",
				     i->objects, judge_s(i->objects), i->first, i->value, i->limit));
	i = &is[REPORT_INLINE_LARGE];
	if (i->objects)
		judge_add(j, false, "inline-large", i->objects,
			  judge_text("%" PRIu64
				     " QP%s with inline data of more than %u bytes, the first: QP 0x%x with %u: "
				     "each place in its send queue is as large, and few adapters have that much",
				     i->objects, judge_s(i->objects), i->limit, i->first, i->value));
}

/* ---- calls and data ---------------------------------------------------------------------------------------------- */

static json_t *judge_calls(const struct report_process *p)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < p->num_verbs; i++) {
		const struct report_verb *verb = p->verbs[i];

		json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o}", "verb", verb->name, "calls",
						      judge_number(verb->calls), "failed", judge_number(verb->errors),
						      "bytes", judge_number(verb->bytes)));
	}
	return list;
}

static json_t *judge_messages(const struct report_process *p)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < UVD_QP_WORK_OPCODES; i++)
		if (p->messages[i])
			json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "operation",
							      uvd_name_of(uvd_wr_opcode_names, i), "messages",
							      judge_number(p->messages[i]), "bytes",
							      judge_number(p->bytes[i])));
	return list;
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

static json_t *judge_process(struct uvd_report *r, const struct report_process *p)
{
	static const char *const ends[] = {
		[REPORT_LIVES] = "closed", [REPORT_EXITED] = "exited", [REPORT_GONE] = "killed"
	};
	struct judge j = { r, json_array(), json_array() };
	json_t *json = json_object();

	judge_left(&j, p);
	for (unsigned int i = 0; i < p->num_reasons; i++)
		judge_reason(&j, p, p->reasons[i]);
	judge_issues(&j, p);
	json_object_set_new(json, "program", json_string(p->program));
	/* Without the number of its pid namespace, if it has another one (struct uvd_proc.base). */
	json_object_set_new(json, "pid", json_integer((unsigned int)p->pid % UVD_PROC_NUMBERS));
	json_object_set_new(json, "end", json_string(ends[p->end]));
	if (p->end == REPORT_EXITED)
		json_object_set_new(json, "status", json_integer(p->status));
	json_object_set_new(json, "findings", j.findings);
	json_object_set_new(json, "notices", j.notices);
	json_object_set_new(json, "objects_left", judge_objects(p));
	json_object_set_new(json, "objects_left_cut", judge_number(p->num_left - p->num_listed));
	json_object_set_new(json, "reasons_cut", judge_number(p->other_reasons));
	json_object_set_new(json, "calls", judge_calls(p));
	json_object_set_new(json, "calls_cut", judge_number(p->other_calls));
	json_object_set_new(json, "messages", judge_messages(p));
	return json;
}

void uvd_report_judge(struct uvd_report *r)
{
	json_t *list = json_array();
	uint64_t notices = 0;

	r->document = json_object();
	for (unsigned int i = 0; i <= r->num_processes; i++) {
		const struct report_process *p = i < r->num_processes ? r->processes[i] : r->others;
		json_t *json = p ? judge_process(r, p) : NULL;

		if (!json)
			continue;
		notices += json_array_size(json_object_get(json, "notices"));
		if (p == r->others)
			json_object_set_new(json, "stands_for", judge_number(r->num_others));
		json_array_append_new(list, json);
	}
	json_object_set_new(r->document, "findings", judge_number(r->findings));
	json_object_set_new(r->document, "notices", judge_number(notices));
	json_object_set_new(r->document, "lost", judge_number(r->lost));
	json_object_set_new(r->document, "stacks_lost", judge_number(r->stacks_lost));
	json_object_set_new(r->document, "processes", list);
}
