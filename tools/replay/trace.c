/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl replay of a trace: reads it, makes its calls again on a device, and prints the differences. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../program/node.h"
#include "cm/cm.h"
#include "replay.h"
#include "util/util.h"

enum { REPLAY_PAGE = 4096, ERROR = 2 };

bool uvd_replay_is_trace(const void *start, size_t len)
{
	const size_t size = sizeof(UVD_TRACE_MAGIC) - 1;

	return len >= size && !memcmp(start, UVD_TRACE_MAGIC, size);
}

static bool trace_complain(const struct uvd_replay *r, const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", r->who, what, why);
	return false;
}

/* ---- calls that hang --------------------------------------------------------------------------------------------- */

enum { HANG_LOOK_MS = 100 };

/*
 * A thread watches the time. A signal could not end every call: that of a program under `uverbsctl run` waits until it is
 * answered, unless the process is killed.
 */
static struct {
	pthread_mutex_t lock;
	uint64_t until; /* ns; 0: no call is made */
	char text[200];
} hang_watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

void uvd_replay_asks(const struct uvd_replay *r, const char *what)
{
	pthread_mutex_lock(&hang_watch.lock);
	snprintf(hang_watch.text, sizeof(hang_watch.text), "%s: hang: call %u, %.100s, did not return in %u seconds\n",
		 r->who, r->call, what, r->hang);
	hang_watch.until = uvd_now_ns() + r->hang * UINT64_C(1000000000);
	pthread_mutex_unlock(&hang_watch.lock);
}

void uvd_replay_answered(void)
{
	pthread_mutex_lock(&hang_watch.lock);
	hang_watch.until = 0;
	pthread_mutex_unlock(&hang_watch.lock);
}

static void *hang_thread(void *arg)
{
	const struct timespec pause = { .tv_nsec = HANG_LOOK_MS * 1000000 };

	for (;;) {
		pthread_mutex_lock(&hang_watch.lock);
		if (hang_watch.until && uvd_now_ns() >= hang_watch.until)
			_exit(write(STDERR_FILENO, hang_watch.text, strlen(hang_watch.text)) < 0 ? ERROR : 1);
		pthread_mutex_unlock(&hang_watch.lock);
		nanosleep(&pause, NULL);
	}
	return arg;
}

/* Returns false after a message. */
static bool hang_watch_start(const struct uvd_replay *r)
{
	pthread_t thread;
	const int err = pthread_create(&thread, NULL, hang_thread, NULL);

	if (!err)
		pthread_detach(thread);
	return !err || trace_complain(r, r->name, uvd_errno_name(err));
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* Learns the tree of the device: of ours from itself, of the kernel's from this build. */
static bool device_learn(struct uvd_replay *r)
{
	struct uvd_tree_view *view = &r->device.view;
	int fd, err;

	uvd_replay_asks(r, "asking the device for its tree");
	fd = open(r->node, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		uvd_replay_answered();
		return trace_complain(r, r->node, uvd_errno_name(errno));
	}
	r->device = (struct uvd_script){ .fd = -1, .has_ioctl = true };
	view->who = r->who;
	uvd_view_guess(view, r->node);
	err = uvd_view_ask_file(view, fd);
	close(fd);
	uvd_replay_answered();
	r->driver_id = view->driver_id;
	r->kernel = err == -EPROTONOSUPPORT;
	if (r->kernel)
		err = uvd_view_build(view, NULL, r->driver_id == RDMA_DRIVER_RXE ? "rxe" : "hfi1") ? -ENOMEM : 0;
	uvd_view_finish(view);
	return !err || trace_complain(r, r->node, err == -ENOTTY ? "it accepts no ioctl" : uvd_errno_name(-err));
}

/* The node is beside that of the device. */
static bool cm_learn_tree(struct uvd_replay *r)
{
	const int folder = strrchr(r->node, '/') - r->node;

	snprintf(r->cm_node, sizeof(r->cm_node), "%.*s/" UVD_CM_NODE, folder, r->node);
	r->cm = (struct uvd_script){ .fd = -1 };
	r->cm.view.who = r->who;
	if (uvd_view_cm(&r->cm.view))
		return trace_complain(r, r->cm_node, "ENOMEM");
	uvd_view_finish(&r->cm.view);
	return true;
}

static bool replay_start(struct uvd_replay *r, const struct uvd_replay_options *o)
{
	if (o->device && strchr(o->device, '/'))
		snprintf(r->node, sizeof(r->node), "%s", o->device);
	else if (uvd_node_find(r->who, o->control, o->device, r->node))
		return false;
	r->qps = json_object();
	r->differences = json_array();
	r->skipped = json_array();
	r->scratch = mmap(NULL, REPLAY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* No access passes it: neither an attribute's 64 KiB, nor the two parts of a response, 512 KiB each. */
	r->none = mmap(NULL, 512 * REPLAY_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->scratch == MAP_FAILED || r->none == MAP_FAILED)
		return trace_complain(r, r->name, "ENOMEM");
	return device_learn(r) && cm_learn_tree(r) && uvd_program_list_read(&r->list, r->kernel);
}

/* ---- open files -------------------------------------------------------------------------------------------------- */

bool uvd_replay_opens_cm(const struct uvd_trace_open *open_was)
{
	return open_was->file.number == UINT32_MAX && uvd_node_is_cm(open_was->file.ibdev);
}

/*
 * Has the first device of the trace another driver? An answer of rdma_cm does not tell which device it is about, and can come before
 * the client opens that.
 */
static bool trace_is_of_other(const struct uvd_replay *r)
{
	struct uvd_trace_reader reader = { .from = fopen(r->name, "re"), .what = r->name };
	const struct uvd_trace_record *record = NULL;
	const struct uvd_trace_open *o = NULL;
	bool bad = !reader.from || !uvd_trace_open_reader(&reader), other;

	while (!bad && (!o || !o->names || uvd_replay_opens_cm(o)) && (record = uvd_trace_next(&reader, &bad)))
		o = record->kind == UVD_TRACE_FILE
			    ? uvd_trace_find(&reader, ((const struct uvd_trace_file *)record)->file)
			    : NULL;
	other = record && o && o->names->script.view.driver_id != r->driver_id;
	uvd_trace_close_reader(&reader);
	if (reader.from)
		fclose(reader.from);
	return other;
}

/* GET_EVENT must not wait for ever. */
struct uvd_replay_file *uvd_replay_file_of(struct uvd_replay *r, const struct uvd_trace_open *open_was)
{
	const bool cm = uvd_replay_opens_cm(open_was);
	const char *node = cm ? r->cm_node : r->node;
	struct uvd_replay_file *f = r->files;

	while (f && f->file != open_was->file.file)
		f = f->next;
	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	uvd_replay_asks(r, "opening the device");
	if (f)
		f->fd = open(node, O_RDWR | O_CLOEXEC | (cm ? O_NONBLOCK : 0));
	uvd_replay_answered();
	if (!f || f->fd < 0) {
		trace_complain(r, node, f ? uvd_errno_name(errno) : "ENOMEM");
		free(f);
		return NULL;
	}
	f->file = open_was->file.file;
	f->pid = open_was->file.pid;
	f->number = open_was->file.number;
	f->cm = cm;
	f->other = cm && trace_is_of_other(r);
	f->next = r->files;
	r->files = f;
	return f;
}

/* The descriptors of the client's events and its memory go with the file. */
static void file_close(struct uvd_replay *r, uint64_t file)
{
	struct uvd_replay_file **p = &r->files, *f;

	while (*p && (*p)->file != file)
		p = &(*p)->next;
	f = *p;
	if (!f)
		return;
	*p = f->next;
	uvd_replay_cq_end(r, f, NULL, NULL);
	uvd_replay_forget(r, file);
	uvd_replay_asks(r, "closing the device");
	close(f->fd);
	uvd_replay_answered();
	uvd_replay_regions_end(r, file, NULL);
	uvd_replay_events_free(f);
	free(f);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void replay_call_run(struct uvd_replay_call *c)
{
	const struct uvd_trace_decoded *was = c->was;
	long result;

	if (was->destroys && was->destroyed_object == UVERBS_OBJECT_CQ)
		uvd_replay_cq_end(c->r, c->f, &was->destroyed, was);
	result = uvd_replay_make(c);
	if (c->r->show)
		printf("%s.%s = %s\n", was->object, was->verb, result < 0 ? uvd_errno_name(-result) : "ok");
	uvd_replay_compare(c, result);
}

/* Returns false after a message if nothing more can be replayed. */
static bool call_replay(struct uvd_replay *r, const struct uvd_trace_decoded *was)
{
	struct uvd_replay_call *c = calloc(1, sizeof(*c));
	bool poll;

	if (!c)
		return trace_complain(r, r->name, "ENOMEM");
	*c = (struct uvd_replay_call){ .r = r, .was = was };
	c->f = uvd_replay_file_of(r, was->open);
	if (!c->f) {
		free(c);
		return false;
	}
	if (!c->f->cm)
		c->f->other = !was->script || was->script->view.driver_id != r->driver_id;
	uvd_replay_build(c);
	poll = !c->skip && !c->f->other && uvd_replay_is_poll(c);
	if (c->skip)
		uvd_replay_skip(c);
	else if (!poll && !uvd_replay_event(c))
		replay_call_run(c);
	if (poll && uvd_replay_poll(c))
		return true;
	uvd_replay_call_free(c);
	free(c);
	return true;
}

bool uvd_replay_record(struct uvd_replay *r, const struct uvd_trace_record *record)
{
	struct uvd_trace_decoded was;
	bool ok = true;

	if (record->kind == UVD_TRACE_CLOSE)
		file_close(r, ((const struct uvd_trace_close *)record)->file);
	if (record->kind == UVD_TRACE_LOST)
		r->lost += ((const struct uvd_trace_lost *)record)->num;
	if (record->kind != UVD_TRACE_CALL)
		return true;
	if (!uvd_trace_decode(&r->reader, (const void *)record, &was))
		ok = trace_complain(r, r->name, "a call is malformed");
	else if (!was.open)
		ok = trace_complain(r, r->name, "a call is on no open file");
	else
		ok = call_replay(r, &was);
	uvd_trace_decoded_free(&was);
	return ok;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void trace_print_json(const struct uvd_replay *r)
{
	json_t *out =
		json_pack("{s:s,s:s,s:s,s:i,s:i,s:O,s:O,s:[],s:i}", "file", r->name, "node", r->node, "kind",
			  r->kernel ? "kernel" : "uverbsd", "calls", (int)r->calls, "lost", (int)r->lost, "differences",
			  r->differences, "not_made", r->skipped, "listed", "num_differences", (int)r->num_differences);
	char *text;

	for (unsigned int i = 0; i < r->list.num; i++)
		if (r->list.rows[i].hits)
			json_array_append_new(json_object_get(out, "listed"), json_string(r->list.rows[i].name));
	text = json_dumps(out, 0);
	puts(text ? text : "{}");
	free(text);
	json_decref(out);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "?";
}

static void trace_print(const struct uvd_replay *r)
{
	json_t *d;
	size_t i;

	json_array_foreach(r->skipped, i, d)
		printf("call %lld, %s: not made: %s\n", json_integer_value(json_object_get(d, "call")),
		       text_of(d, "target"), text_of(d, "why"));
	json_array_foreach(r->differences, i, d)
		printf("call %lld, %s: %s is %s, %s expected\n", json_integer_value(json_object_get(d, "call")),
		       text_of(d, "target"), text_of(d, "item"), text_of(d, "result"), text_of(d, "expected"));
	if (r->lost)
		printf("%u records of the trace are lost: calls that depend on them may differ\n", r->lost);
	if (r->num_differences)
		printf("%u calls, %u difference%s\n", r->calls, r->num_differences, r->num_differences == 1 ? "" : "s");
	else
		printf("%u calls, no difference\n", r->calls);
}

/* ---- the replay -------------------------------------------------------------------------------------------------- */

static void replay_free(struct uvd_replay *r)
{
	r->given_up = true;
	while (r->files)
		file_close(r, r->files->file);
	uvd_trace_close_reader(&r->reader);
	uvd_view_free(&r->device.view);
	uvd_view_free(&r->cm.view);
	uvd_replay_late_free(r);
	uvd_prog_list_free(&r->list);
	uvd_prog_numbers_clear(&r->numbers);
	json_decref(r->qps);
	json_decref(r->differences);
	json_decref(r->skipped);
}

/* Returns false after a message. */
static bool replay_records(struct uvd_replay *r)
{
	const struct uvd_trace_record *record;
	bool bad;

	if (!uvd_trace_open_reader(&r->reader))
		return false;
	while ((record = uvd_trace_next(&r->reader, &bad)))
		if (!uvd_replay_in_order(r, record))
			return false;
	if (!bad && !uvd_replay_late_end(r))
		return false;
	while (!bad && r->files) /* the trace ends before they were closed */
		file_close(r, r->files->file);
	return !bad;
}

int uvd_replay_trace(const char *who, const struct uvd_replay_options *o)
{
	struct uvd_replay *r = calloc(1, sizeof(*r));
	int status = ERROR;

	if (!r)
		return ERROR;
	r->who = who;
	r->name = o->file;
	r->show = o->show;
	r->hang = o->hang;
	r->reader = (struct uvd_trace_reader){ .from = fopen(o->file, "re"), .what = o->file };
	signal(SIGPIPE, SIG_IGN);
	/* A hang ends the process without a flush, and the calls before it matter. */
	if (r->show)
		setvbuf(stdout, NULL, _IOLBF, 0);
	if (r->reader.from && hang_watch_start(r) && replay_start(r, o) && replay_records(r)) {
		if (o->json)
			trace_print_json(r);
		else
			trace_print(r);
		status = r->num_differences ? 1 : 0;
	}
	if (r->reader.from)
		fclose(r->reader.from);
	replay_free(r);
	free(r);
	return status;
}
