/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl replay: runs a program of calls on a device, and compares the results with those that its file holds. */
#include "../commands.h"
#include "../program/child.h"
#include "../program/node.h"
#include "replay.h"
#include "../tree/view.h"
#include "util/util.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char who[] = "uverbsctl replay";

struct replay_options {
	const char *emit;
	bool json, record, show, in_process;
	unsigned int hang;
};

struct replay {
	struct replay_options o;
	const char *device, *control, *file;
	char **run_options; /* with in_process */
	int num_run_options;
	struct uvd_child child; /* has `run`, with in_process */
	struct uvd_program_finding finding;
	struct uvd_kernel_log *log; /* for `check log` on a device of the kernel */
	char node[PATH_MAX];
	struct uvd_prog *p;
	struct uvd_prog_run *run, *expected;
	struct uvd_prog_list list;
	struct uvd_prog_difference d;
};

/* Finds the device, and makes the runs for it. */
static bool replay_open(struct replay *r)
{
	if (r->o.in_process) {
		r->run = r->child.run;
		snprintf(r->node, sizeof(r->node), "%s", r->run->node);
	} else {
		r->run = uvd_program_open(who, r->control, r->device, r->node);
	}
	r->expected = calloc(1, sizeof(*r->expected));
	return r->run && r->expected;
}

/* The file asks for a check of the log, so a replay that cannot make it fails. */
static bool replay_log_open(struct replay *r)
{
	int ret;

	r->log = malloc(sizeof(*r->log));
	ret = r->log ? uvd_kernel_log_open(r->log, UVD_KERNEL_LOG) : -ENOMEM;
	if (!ret)
		return true;
	fprintf(stderr, "%s: %s: cannot make the `check log` of %s: %s\n", who, UVD_KERNEL_LOG, r->file,
		uvd_errno_name(-ret));
	free(r->log);
	r->log = NULL;
	return false;
}

static bool replay_run_in_process(struct replay *r)
{
	struct uvd_child *c = &r->child;

	c->run->patience = r->o.hang;
	c->shared->p = *r->p;
	c->model = r->p->check_model;
	c->leak_seconds = r->p->check_leaks ? UVD_CHILD_LEAK_SECONDS : 0;
	if (uvd_child_run(c, uvd_child_trial, c))
		return false;
	r->finding = c->shared->found;
	return !c->run->trouble[0];
}

static bool replay_run(struct replay *r)
{
	if (r->o.in_process)
		return replay_run_in_process(r);
	r->run->patience = r->o.hang;
	for (unsigned int i = 0; i < (uvd_prog_races(r->p) ? UVD_PROGRAM_RACES : 1) && !r->finding.kind; i++)
		uvd_program_check(r->run, r->p, r->p->check_leaks ? r->control : NULL, r->p->check_model, r->log,
				  &r->finding);
	if (r->log && !r->finding.kind)
		uvd_program_check_log(r->log, UVD_PROGRAM_LATE_MS, &r->finding);
	if (r->run->trouble[0])
		fprintf(stderr, "%s: %s: %s\n", who, r->file, r->run->trouble);
	return !r->run->trouble[0];
}

/* Writes the program in C: the calls of one run. */
static bool replay_emit(struct replay *r)
{
	r->run->patience = r->o.hang;
	if (uvd_prog_emit(r->run, r->p, r->o.emit, "Written by uverbsctl replay."))
		fprintf(stderr, "%s: %s: %s\n", who, r->o.emit, uvd_errno_name(errno));
	else if (r->run->trouble[0])
		fprintf(stderr, "%s: %s: %s\n", who, r->file, r->run->trouble);
	else
		return true;
	return false;
}

static bool replay_compare(struct replay *r, bool kernel)
{
	unsigned int at;
	const char *wrong = uvd_prog_expect_run(r->p, r->run, r->expected, &at);

	if (wrong) {
		fprintf(stderr, "%s: %s: call %u: %s: %s\n", who, r->file, at + 1, wrong, r->p->calls[at].expect);
		return false;
	}
	/* The sides of the table are the kernel's and ours. */
	if (kernel)
		uvd_prog_compare(&r->list, r->p, r->run, r->expected, &r->d);
	else
		uvd_prog_compare(&r->list, r->p, r->expected, r->run, &r->d);
	return true;
}

/* Returns the text of the file with the results of the run, or NULL with errno. */
static char *replay_recorded(const struct replay *r)
{
	FILE *in = fopen(r->file, "re"), *out;
	size_t len;
	char *text = NULL;

	if (!in)
		return NULL;
	out = open_memstream(&text, &len);
	if (out)
		uvd_prog_print_like(r->p, in, out);
	fclose(in);
	if (out && fclose(out)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* Opens the file to be replaced by `size` bytes. Without the space for them it stays as it is. */
static FILE *file_reopen(const char *name, size_t size)
{
	FILE *out = fopen(name, "r+e");

	if (out && fallocate(fileno(out), FALLOC_FL_KEEP_SIZE, 0, size) && (errno == ENOSPC || errno == EDQUOT)) {
		fclose(out);
		errno = ENOSPC;
		return NULL;
	}
	return out;
}

static bool replay_record(struct replay *r, bool kernel)
{
	FILE *out = NULL;
	char *text;
	bool ok;

	uvd_prog_expect_record(r->p, r->run);
	snprintf(r->p->device, sizeof(r->p->device), "%s", kernel ? "kernel" : "uverbsd");
	text = replay_recorded(r);
	if (text)
		out = file_reopen(r->file, strlen(text));
	if (!out) {
		fprintf(stderr, "%s: %s: %s\n", who, r->file, uvd_errno_name(errno));
		free(text);
		return false;
	}
	ok = fputs(text, out) >= 0 && !fflush(out) && (!ftruncate(fileno(out), strlen(text)) || errno == EINVAL);
	free(text);
	if (fclose(out) || !ok) {
		fprintf(stderr, "%s: %s: cannot write the results: %s\n", who, r->file, uvd_errno_name(errno));
		return false;
	}
	return true;
}

static void replay_print_json(const struct replay *r, bool kernel)
{
	json_t *out = json_pack("{s:s,s:s,s:s,s:i,s:[],s:[]}", "file", r->file, "node", r->node, "kind",
				kernel ? "kernel" : "uverbsd", "calls", (int)r->p->num_calls, "differences", "listed");
	char *text;

	if (r->d.found)
		json_array_append_new(json_object_get(out, "differences"),
				      json_pack("{s:i,s:s,s:s,s:s,s:s}", "call", (int)r->d.call + 1, "target",
						r->d.target, "item", r->d.item, "expected",
						kernel ? r->d.ours : r->d.kernel, "result",
						kernel ? r->d.kernel : r->d.ours));
	if (r->finding.kind)
		json_object_set_new(out, "finding", json_string(r->finding.text));
	for (unsigned int i = 0; i < r->list.num; i++)
		if (r->list.rows[i].hits)
			json_array_append_new(json_object_get(out, "listed"), json_string(r->list.rows[i].name));
	text = json_dumps(out, 0);
	puts(text ? text : "{}");
	free(text);
	json_decref(out);
}

static void replay_print(const struct replay *r, bool kernel)
{
	for (unsigned int i = 0; r->o.show && i < r->p->num_calls; i++) {
		const struct uvd_prog_record *record = &r->run->records[i];
		struct uvd_prog_call call = r->p->calls[i];

		call.expect[0] = 0;
		uvd_prog_call_print(&call, stdout);
		printf("= %s\n", record->done ? uvd_prog_result(record) : "not done");
	}
	if (r->finding.kind)
		printf("%s\n", r->finding.text);
	else if (r->d.found)
		printf("call %u, %s: %s is %s, %s expected\n", r->d.call + 1, r->d.target, r->d.item,
		       kernel ? r->d.kernel : r->d.ours, kernel ? r->d.ours : r->d.kernel);
	else
		printf("%u calls, no difference\n", r->p->num_calls);
}

static bool replay_file(struct replay *r)
{
	bool kernel;

	if (!uvd_prog_load(r->p, who, r->file) || !replay_open(r))
		return false;
	kernel = !r->o.in_process && uvd_program_is_kernel(r->node, r->run->driver_id);
	if (!uvd_program_list_read(&r->list, r->p->device[0] && kernel != !strcmp(r->p->device, "kernel")))
		return false;
	if (r->o.emit)
		return replay_emit(r);
	if (kernel && r->p->check_log && !replay_log_open(r))
		return false;
	if (!replay_run(r))
		return false;
	if (r->o.record && r->finding.kind) {
		fprintf(stderr, "%s: %s: nothing is recorded: %s\n", who, r->file, r->finding.text);
		return false;
	}
	if (r->o.record)
		return replay_record(r, kernel);
	if (!r->finding.kind && !replay_compare(r, kernel))
		return false;
	if (r->o.json)
		replay_print_json(r, kernel);
	else
		replay_print(r, kernel);
	return !r->d.found && !r->finding.kind;
}

static int replay_trace_file(struct replay *r)
{
	const struct uvd_replay_options o = { .device = r->device,
					      .control = r->control,
					      .file = r->file,
					      .json = r->o.json,
					      .show = r->o.show,
					      .hang = r->o.hang };

	return uvd_replay_trace(who, &o);
}

static int replay_program_file(struct replay *r)
{
	if (r->o.in_process && uvd_child_init(&r->child, who, r->num_run_options, r->run_options))
		return 2;
	r->p = calloc(1, sizeof(*r->p));
	return r->p && replay_file(r) ? 0 : 1;
}

/* The spellings of calls in files. The first that knows how the file begins is taken. */
static const struct reader {
	const char *name;
	bool (*knows)(const void *start, size_t len);
	int (*replay)(struct replay *r); /* returns the exit status */
	bool is_program; /* its calls can be made in this process, written as C, and get results */
} readers[] = {
	{ "trace", uvd_replay_is_trace, replay_trace_file },
	{ "program", uvd_prog_is_text, replay_program_file, .is_program = true },
};

/* Finds the reader of the file. uvd_prog_load() has the messages for a file that cannot be read, or that is neither. */
static const struct reader *reader_find(const struct replay *r)
{
	const struct reader *reader = readers, *last = &readers[sizeof(readers) / sizeof(*readers) - 1];
	char start[512] = "";
	FILE *in = fopen(r->file, "re");
	size_t len = 0;

	if (in) {
		len = fread(start, 1, sizeof(start), in);
		fclose(in);
	}
	while (reader < last && !reader->knows(start, len))
		reader++;
	return reader;
}

static int replay_by_reader(struct replay *r)
{
	const struct reader *reader = reader_find(r);

	if (reader->is_program || (!r->o.record && !r->o.emit && !r->o.in_process))
		return reader->replay(r);
	fprintf(stderr, "%s: %s: it is a %s: --in-process, --record and --emit-c are for programs\n", who, r->file,
		reader->name);
	return 2;
}

static int replay_run_command(struct replay *r)
{
	const int status = replay_by_reader(r);

	if (r->run && !r->o.in_process)
		uvd_prog_run_free(r->run);
	uvd_child_free(&r->child);
	if (r->log)
		uvd_kernel_log_close(r->log);
	free(r->log);
	free(r->expected);
	free(r->p);
	uvd_prog_list_free(&r->list);
	return status;
}

static int replay_command(const struct uvd_args *args)
{
	const struct replay_options *o = args->options;
	struct replay *r;
	int status;

	if (args->num_rest && !o->in_process)
		return uvd_args_wrong(args, "RUN-OPTION `%s` is for --in-process", args->rest[0]);
	if (args->device && o->in_process)
		return uvd_args_wrong(args, "--device and --in-process exclude each other");
	r = calloc(1, sizeof(*r));
	if (!r)
		return 1;
	r->o = *o;
	r->device = args->device;
	r->control = args->control;
	r->file = args->words[0];
	r->run_options = args->rest;
	r->num_run_options = args->num_rest;
	status = replay_run_command(r);
	free(r);
	return status;
}

static const struct replay_options replay_defaults = { .hang = 60 };

const struct uvd_command uvd_command_replay = {
	.name = "replay",
	.purpose = "run a program of calls, and compare the results with those in its file",
	.words = "FILE [-- RUN-OPTION...]",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl replay --device /dev/infiniband/uverbs0 calls.prog",
			  "on this device, ours or the kernel's" },
			{ "uverbsctl run -- uverbsctl replay calls.prog", "on a device of its own" },
			{ "uverbsctl run -- uverbsctl replay --record calls.prog", "write the results into the file" },
			{ "uverbsctl replay --in-process calls.prog -- --backend null",
			  "the device is part of this process" },
			{},
		},
	.text =
		(const char *const[]){
			"Runs the calls of FILE on a device, and compares each result with the one that FILE holds. If the results are the "
			"kernel's and the device is uverbsd's, or the other way round, the differences that docs/abi-differences.md lists are "
			"none. docs/replay.md describes the format of FILE.",
			"FILE can also be a trace that `uverbsctl run --trace FILE` recorded: its calls are made again, each open file of it is "
			"one open file of the device, and the handles, keys and addresses are the new ones.",
			NULL },
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN | UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "in-process",
			  .help = "the device is in the process that makes the calls: calls beside each other are in its engine at the "
				  "same time. RUN-OPTIONs are options of `uverbsctl run`; not for traces",
			  UVD_STORE(struct replay_options, in_process, FLAG) },
			{ "json", .help = "print one JSON object", UVD_STORE(struct replay_options, json, FLAG) },
			{ "record", .help = "write the results of this device into FILE; nothing is compared",
			  UVD_STORE(struct replay_options, record, FLAG) },
			{ "emit-c", .arg = "NAME",
			  .help = "write the calls as a C program that needs no part of uverbsd; nothing is compared",
			  .values = UVD_VALUES_FILE, UVD_STORE(struct replay_options, emit, TEXT) },
			{ "show", .help = "print each call with its result",
			  UVD_STORE(struct replay_options, show, FLAG) },
			{ "hang", .arg = "SECONDS",
			  .help = "how long the program, or a call of a trace, may take; longer is a hang (default: 60)",
			  UVD_STORE(struct replay_options, hang, NUMBER), .min = 1, .max = 1000000 },
			{},
		},
	.size = sizeof(struct replay_options),
	.defaults = &replay_defaults,
	.exits =
		(const struct uvd_command_exit[]){
			{ "0", "all results are as FILE says" },
			{ "1", "one differs, or FILE cannot be run" },
			{ "2",
			  "the command line or the options of the device are wrong, or a trace cannot be replayed" },
			{},
		},
	.run = replay_command,
};
