/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts what processes do with the devices, while they do it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <unistd.h>

#include "explain/explain.h"
#include "report/internal.h"

void uvd_report_copy_text(char *to, size_t size, const char *from)
{
	size_t i = 0;

	for (; from[i] && i + 1 < size; i++)
		to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
	to[i] = 0;
}

/* ---- processes and files ----------------------------------------------------------------------------------------- */

static struct report_process *report_process_new(struct uvd_report *r, pid_t pid, uint64_t started)
{
	struct report_process *p = uvd_zalloc(sizeof(*p));
	char program[REPORT_NAME] = "";

	if (!p)
		return NULL;
	p->pid = pid;
	p->started = started;
	if (pid)
		r->config.program(r->config.arg, pid, program, sizeof(program));
	uvd_report_copy_text(p->program, sizeof(p->program), program);
	return p;
}

/* A number of a process can come again. While files of the former one are open it is that, as they close just after its end. */
static bool report_process_is(const struct report_process *p, pid_t pid, uint64_t started)
{
	return p->pid == pid && (p->files || p->started == started);
}

/* Returns the process that has opened a file, or NULL: no memory. */
static struct report_process *report_process_find(struct uvd_report *r, pid_t pid)
{
	const uint64_t started = pid ? r->config.started(r->config.arg, pid) : 0;
	struct report_process **place = &r->others;

	for (unsigned int i = r->num_processes; i-- > 0;)
		if (report_process_is(r->processes[i], pid, started))
			return r->processes[i];
	if (r->num_processes < REPORT_PROCESSES)
		place = &r->processes[r->num_processes];
	else
		r->num_others++;
	if (!*place)
		*place = report_process_new(r, place == &r->others ? 0 : pid, started);
	if (*place && place != &r->others)
		r->num_processes++;
	return *place;
}

static unsigned int report_bucket(const void *pointer)
{
	return ((uintptr_t)pointer >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 52;
}

_Static_assert(REPORT_BUCKETS == 1 << (64 - 52), "report_bucket() gives the index of a bucket");

static struct report_file **report_file_at(struct uvd_report *r, const struct uvd_watched *watched)
{
	struct report_file **at = &r->files[report_bucket(watched)];

	while (*at && (*at)->watched != watched)
		at = &(*at)->next;
	return at;
}

/* Returns the record of an open file, or NULL: no memory. */
static struct report_file *report_file_get(struct uvd_report *r, const struct uvd_watched *watched)
{
	struct report_file **at = report_file_at(r, watched), *file = *at;

	if (file)
		return file;
	file = uvd_zalloc(sizeof(*file));
	if (file)
		file->process = report_process_find(r, atomic_load_explicit(&watched->opened_by, memory_order_relaxed));
	if (!file || !file->process) {
		free(file);
		r->lost++;
		return NULL;
	}
	file->watched = watched;
	file->process->files++;
	*at = file;
	return file;
}

static struct report_process *report_process_of(struct uvd_report *r, const struct uvd_watched *watched)
{
	struct report_file *file = report_file_get(r, watched);

	return file ? file->process : NULL;
}

/* The file is being closed. Has its process closed it, and goes on? */
static bool report_file_outlived(struct uvd_report *r, struct report_file *file)
{
	const struct report_process *p = file->process;

	if (p->end == REPORT_EXITED || !p->pid)
		return false;
	if (file->closing == REPORT_NOT_ASKED)
		file->closing = r->config.runs(r->config.arg, p->pid) ? REPORT_RUNS : REPORT_ENDS;
	return file->closing == REPORT_RUNS;
}

static void report_closed(struct uvd_observer *o, struct uvd_watched *watched)
{
	struct uvd_report *r = container_of(o, struct uvd_report, observer);
	struct report_file **at, *file;

	uvd_lock(&r->lock);
	at = report_file_at(r, watched);
	file = *at;
	if (file) {
		if (!report_file_outlived(r, file) && file->process->end == REPORT_LIVES && file->process->pid)
			file->process->end = REPORT_GONE;
		file->process->files--;
		*at = file->next;
		free(file);
	}
	uvd_unlock(&r->lock);
}

void uvd_report_exits(struct uvd_report *r, pid_t pid, int status)
{
	uvd_lock(&r->lock);
	for (unsigned int i = r->num_processes; i-- > 0;) {
		struct report_process *p = r->processes[i];

		if (p->pid != pid || p->end != REPORT_LIVES)
			continue;
		p->end = REPORT_EXITED;
		p->status = status;
		break;
	}
	uvd_unlock(&r->lock);
}

/* ---- calls and explanations -------------------------------------------------------------------------------------- */

static struct report_verb *report_verb_get(struct report_process *p, const char *name)
{
	struct report_verb *verb;

	for (unsigned int i = 0; i < p->num_verbs; i++)
		if (!strncmp(p->verbs[i]->name, name, sizeof(p->verbs[i]->name) - 1))
			return p->verbs[i];
	verb = p->num_verbs < REPORT_VERBS ? uvd_zalloc(sizeof(*verb)) : NULL;
	if (!verb)
		return NULL;
	uvd_report_copy_text(verb->name, sizeof(verb->name), name);
	p->verbs[p->num_verbs++] = verb;
	return verb;
}

static void report_call(struct uvd_observer *o, const struct uvd_observed *call)
{
	struct uvd_report *r = container_of(o, struct uvd_report, observer);
	struct report_process *p;
	struct report_verb *verb;

	uvd_lock(&r->lock);
	p = report_process_of(r, call->file);
	verb = p && call->verb ? report_verb_get(p, call->verb) : NULL;
	if (verb) {
		verb->calls++;
		verb->errors += call->result < 0;
		verb->bytes += call->size;
	} else if (p) {
		p->other_calls++;
	}
	uvd_unlock(&r->lock);
}

static int report_status_of(const struct uvd_explained *e)
{
	switch (e->kind) {
	case UVD_EXPLAINED_COMPLETION:
		return e->status;
	case UVD_EXPLAINED_EVENT:
		return e->event;
	default:
		return e->err < 0 ? -e->err : e->err;
	}
}

static struct report_reason *report_reason_get(struct report_process *p, const struct uvd_explained *e)
{
	const char *code = e->why.reason ? e->why.reason->code : "";
	const int status = report_status_of(e);
	char sample[UVD_EXPLAINED_TEXT];
	struct report_reason *reason;

	for (unsigned int i = 0; i < p->num_reasons; i++) {
		reason = p->reasons[i];
		if (reason->kind == e->kind && reason->status == status &&
		    !strncmp(reason->code, code, sizeof(reason->code) - 1))
			return reason;
	}
	reason = p->num_reasons < REPORT_REASONS ? uvd_zalloc(sizeof(*reason)) : NULL;
	if (!reason)
		return NULL;
	uvd_explained_text(sample, sizeof(sample), e);
	uvd_report_copy_text(reason->sample, sizeof(reason->sample), sample);
	uvd_report_copy_text(reason->code, sizeof(reason->code), code);
	reason->kind = e->kind;
	reason->status = status;
	p->reasons[p->num_reasons++] = reason;
	return reason;
}

static void report_explained(struct uvd_observer *o, const struct uvd_observed_reason *told)
{
	struct uvd_report *r = container_of(o, struct uvd_report, observer);
	struct report_reason *reason;
	struct report_process *p;

	uvd_lock(&r->lock);
	p = report_process_of(r, told->file);
	if (p && told->explained->why.reason == &uvd_reasons[UVD_WHY_CQ_LOST]) {
		/* The overrun has been told. */
		p->lost_completions += told->explained->why.values[1].number;
		uvd_unlock(&r->lock);
		return;
	}
	reason = p ? report_reason_get(p, told->explained) : NULL;
	if (reason)
		reason->count++;
	else if (p)
		p->other_reasons++;
	uvd_unlock(&r->lock);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

struct report_object **uvd_report_object_at(struct uvd_report *r, const struct uvd_uobject *self)
{
	struct report_object **at = &r->objects[report_bucket(self)];

	while (*at && (*at)->self != self)
		at = &(*at)->next;
	return at;
}

static void report_add_issue(struct report_process *p, enum report_issue_kind kind, uint64_t total,
			     const struct report_issue *first)
{
	struct report_issue *issue = &p->issues[kind];

	if (!issue->objects) {
		issue->first = first->first;
		issue->value = first->value;
		issue->limit = first->limit;
		memcpy(issue->first_type, first->first_type, sizeof(issue->first_type));
	}
	issue->objects++;
	issue->total += total;
}

/* The QP's CQs get, or lose, the completions that it can have at once. */
static void report_demand(struct uvd_report *r, const struct uvd_object_facts *qp, int sign)
{
	for (int i = 0; i < 2; i++) {
		struct report_object *cq = qp->cqs[i] ? *uvd_report_object_at(r, qp->cqs[i]) : NULL;

		if (!cq)
			continue;
		cq->demand += (int64_t)sign * qp->asked[i];
		if (cq->demand > cq->most)
			cq->most = cq->demand;
	}
}

enum { LARGE_INLINE = 1024 };

static void report_object_made(struct uvd_observer *o, const struct uvd_observed_object *object)
{
	struct uvd_report *r = container_of(o, struct uvd_report, observer);
	struct report_object *made = NULL;
	struct report_process *p;

	uvd_lock(&r->lock);
	p = report_process_of(r, object->file);
	if (p && r->num_objects < REPORT_OBJECTS)
		made = uvd_zalloc(sizeof(*made));
	if (made) {
		made->self = object->self;
		made->process = p;
		made->serial = ++r->serial;
		if (r->config.stacks && object->has_handle)
			uvd_report_stack_made(made);
		*uvd_report_object_at(r, object->self) = made;
		r->num_objects++;
	} else {
		r->lost++;
	}
	if (p && object->id == UVERBS_OBJECT_QP) {
		report_demand(r, object->facts, 1);
		if (object->facts->asked[2] > LARGE_INLINE)
			report_add_issue(p, REPORT_INLINE_LARGE, object->facts->asked[2],
					 &(struct report_issue){ .first = object->facts->values[1],
								 .value = object->facts->asked[2],
								 .limit = LARGE_INLINE });
	}
	uvd_unlock(&r->lock);
}

static void report_qp_ends(struct uvd_observer *o, const struct uvd_uobject *self, const struct uvd_qp_work *work)
{
	struct uvd_report *r = container_of(o, struct uvd_report, observer);
	struct report_object *qp;

	uvd_lock(&r->lock);
	qp = *uvd_report_object_at(r, self);
	if (qp) {
		qp->has_work = true;
		qp->work = *work;
	}
	uvd_unlock(&r->lock);
}

static void report_qp_ended(struct uvd_report *r, struct report_process *p, const struct uvd_observed_object *object,
			    const struct report_object *qp)
{
	const struct uvd_qp_work *work = &qp->work;
	struct report_issue first = { .first = object->facts->values[1] };
	uint64_t done = 0;

	report_demand(r, object->facts, -1);
	p->num_qps++;
	if (!qp->has_work)
		return;
	for (int i = 0; i < UVD_QP_WORK_OPCODES; i++) {
		p->messages[i] += work->done[i].messages;
		p->bytes[i] += work->done[i].bytes;
		done += work->done[i].messages;
	}
	p->num_served += !done && !work->sends && !work->receives && !work->received;
	first.value = work->sends;
	if (work->sends && object->why == UVD_REMOVE_DESTROY)
		report_add_issue(p, done ? REPORT_SENDS_IN_FLIGHT : REPORT_SENDS_STUCK, work->sends, &first);
	first.value = work->receives;
	if (work->receives)
		report_add_issue(p, REPORT_RECEIVES_UNUSED, work->receives, &first);
}

static void report_cq_ended(struct report_process *p, const struct uvd_observed_object *object,
			    const struct report_object *cq)
{
	if (cq->most > object->facts->values[0])
		report_add_issue(p, REPORT_CQ_SMALL, cq->most,
				 &(struct report_issue){ .first = object->handle,
							 .value = object->facts->values[0],
							 .limit = cq->most > UINT32_MAX ? UINT32_MAX : cq->most });
}

static void report_unread(struct report_process *p, const struct uvd_observed_object *object)
{
	struct report_issue first = { .first = object->handle, .value = object->unread };

	uvd_report_copy_text(first.first_type, sizeof(first.first_type), object->type);
	report_add_issue(p, REPORT_EVENTS_UNREAD, object->unread, &first);
}

/* An object without a handle is an event file, whose close by the client the engine does not see. */
static void report_object_left(struct uvd_report *r, struct report_file *file, const struct uvd_observed_object *object,
			       struct report_object *ended)
{
	const bool was_alive = report_file_outlived(r, file);
	struct report_process *p = file->process;
	struct report_left *left;

	p->num_left++;
	p->num_left_alive += was_alive;
	p->num_left_used += object->id != UVERBS_OBJECT_CQ && object->id != UVERBS_OBJECT_PD;
	if (object->id == UVERBS_OBJECT_MR)
		p->left_bytes += object->facts->values[0];
	left = p->num_listed < REPORT_LEFT ? uvd_zalloc(sizeof(*left)) : NULL;
	if (!left)
		return;
	*left = (struct report_left){ .id = object->id, .handle = object->handle, .was_alive = was_alive };
	left->stack = ended->stack;
	ended->stack = NULL;
	memcpy(left->values, object->facts->values, sizeof(left->values));
	uvd_report_copy_text(left->type, sizeof(left->type), object->type);
	p->left[p->num_listed++] = left;
}

static void report_object_ended(struct uvd_observer *o, const struct uvd_observed_object *object)
{
	struct uvd_report *r = container_of(o, struct uvd_report, observer);
	struct report_object **at, *ended;
	struct report_file *file;

	uvd_lock(&r->lock);
	at = uvd_report_object_at(r, object->self);
	ended = *at;
	file = ended ? report_file_get(r, object->file) : NULL;
	if (file) {
		if (object->id == UVERBS_OBJECT_QP)
			report_qp_ended(r, file->process, object, ended);
		else if (object->id == UVERBS_OBJECT_CQ)
			report_cq_ended(file->process, object, ended);
		if (object->unread)
			report_unread(file->process, object);
		if (object->has_handle && object->why == UVD_REMOVE_CLOSE)
			report_object_left(r, file, object, ended);
	}
	if (ended) {
		*at = ended->next;
		uvd_report_stack_free(r, ended->stack);
		free(ended);
		r->num_objects--;
	}
	uvd_unlock(&r->lock);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

struct uvd_report *uvd_report_new(struct uvd_engine *engine, const struct uvd_report_config *config, int *err)
{
	struct uvd_report *r = uvd_zalloc(sizeof(*r));

	*err = -ENOMEM;
	if (!r)
		return NULL;
	r->engine = engine;
	r->config = *config;
	r->observer = (struct uvd_observer){
		.call = report_call,
		.closed = report_closed,
		.explained = report_explained,
		.object_made = report_object_made,
		.object_ended = report_object_ended,
		.qp_ends = report_qp_ends,
		.counts_only = true,
	};
	pthread_mutex_init(&r->lock, NULL);
	*err = uvd_observer_add(engine, &r->observer);
	if (!*err)
		return r;
	pthread_mutex_destroy(&r->lock);
	free(r);
	return NULL;
}

void uvd_report_end(struct uvd_report *r)
{
	uvd_observer_remove(r->engine, &r->observer);
	if (r->config.stacks)
		uvd_report_unwind(r);
	uvd_report_judge(r);
}

uint64_t uvd_report_findings(const struct uvd_report *r)
{
	return r->findings;
}

int uvd_report_write(struct uvd_report *r, int fd, enum uvd_report_format format)
{
	size_t len = 0, done = 0;
	char *text = NULL;
	FILE *out = r->document ? open_memstream(&text, &len) : NULL;
	ssize_t n = 0;

	if (!out)
		return -ENOMEM;
	if (format == UVD_REPORT_JSON) {
		json_dumpf(r->document, out, JSON_INDENT(2));
		fputc('\n', out);
	} else if (format == UVD_REPORT_JUNIT) {
		uvd_report_print_junit(r->document, out);
	} else {
		uvd_report_print_text(r->document, out);
	}
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	while (done < len && (n = write(fd, text + done, len - done)) >= 0)
		done += n;
	free(text);
	return n < 0 ? -errno : 0;
}

static void report_process_free(struct uvd_report *r, struct report_process *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->num_listed; i++) {
		uvd_report_stack_free(r, p->left[i]->stack);
		free(p->left[i]->frames);
		free(p->left[i]);
	}
	uvd_report_maps_put(p->maps);
	for (unsigned int i = 0; i < p->num_reasons; i++)
		free(p->reasons[i]);
	for (unsigned int i = 0; i < p->num_verbs; i++)
		free(p->verbs[i]);
	free(p);
}

void uvd_report_free(struct uvd_report *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < r->num_processes; i++)
		report_process_free(r, r->processes[i]);
	report_process_free(r, r->others);
	for (unsigned int i = 0; i < REPORT_BUCKETS; i++) {
		for (struct report_file *f = r->files[i], *next; f; f = next) {
			next = f->next;
			free(f);
		}
		for (struct report_object *object = r->objects[i], *next; object; object = next) {
			next = object->next;
			uvd_report_stack_free(r, object->stack);
			free(object);
		}
	}
	json_decref(r->document);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
