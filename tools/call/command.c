/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl call: calls a method or a write() command of a device by name, or the lines of a script. */
#include "script.h"
#include "../commands.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call_options {
	const char *file;
	bool keep_going, json, no_context, list;
};

/* The call, and the device that it is made on. */
struct call_words {
	const char *device; /* NULL: the only one */
	char **words; /* OBJECT METHOD and the attributes */
	int num_words;
};

/*
 * The words before the first --ATTRIBUTE are [DEVICE] OBJECT METHOD, or with a script [DEVICE]. Returns -1 to go on, or the exit
 * status.
 */
static int call_split_words(const struct uvd_args *args, struct call_words *call)
{
	const bool has_file = ((const struct call_options *)args->options)->file;
	const int wanted = has_file ? 0 : 2;
	int plain = 0;

	*call = (struct call_words){ args->device, args->words, args->num_words };
	while (plain < call->num_words && strncmp(call->words[plain], "--", 2))
		plain++;
	if (plain == wanted + 1 && !args->device) {
		call->device = *call->words++;
		call->num_words--;
		plain--;
	}
	if (plain < wanted)
		return uvd_args_wrong(args, "%s is missing", plain ? "METHOD" : "OBJECT");
	if (plain > wanted || (has_file && call->num_words))
		return uvd_args_wrong(args, "`%s` is too much", call->words[wanted]);
	return -1;
}

static bool run_script(struct uvd_script *s, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	bool ok;

	if (!file) {
		uvd_script_complain(s, "%s: %s", path, uvd_errno_name(errno));
		return false;
	}
	ok = uvd_script_run_file(s, file);
	if (file != stdin)
		fclose(file);
	return ok;
}

static bool call_run(struct uvd_script *s, const struct uvd_args *args, const struct call_words *call)
{
	const struct call_options *o = args->options;
	char node[PATH_MAX];

	if (call->device && strchr(call->device, '/'))
		snprintf(node, sizeof(node), "%s", call->device);
	else if (uvd_node_find(s->view.who, args->control, call->device, node))
		return false;
	if (!uvd_script_open(s, node))
		return false;
	return o->file ? run_script(s, o->file) : uvd_script_run(s, call->num_words, call->words);
}

static int call_command(const struct uvd_args *args)
{
	const struct call_options *o = args->options;
	struct uvd_script_said said = {};
	struct uvd_script s = { .view.who = args->who,
				.fd = -1,
				.said = &said,
				.keep_going = o->keep_going,
				.json = o->json,
				.no_context = o->no_context };
	struct call_words call;
	int status;

	if (o->list) {
		uvd_call_list(&s, args->control, args->num_words, args->words);
		uvd_script_close(&s);
		return 0;
	}
	status = call_split_words(args, &call);
	if (status >= 0)
		return status;
	status = call_run(&s, args, &call) ? 0 : 1;
	uvd_script_close(&s);
	return status;
}

const struct uvd_command uvd_command_call = {
	.name = "call",
	.purpose = "call a method or a write() command of a device by name",
	.synopses = (const char *const[]){ "uverbsctl call [OPTION...] [DEVICE] OBJECT METHOD [--ATTRIBUTE VALUE...]",
					   "uverbsctl call [OPTION...] -f FILE [DEVICE]", NULL },
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl call PD ALLOC", "a command" },
			{ "uverbsctl call rxe0 DEVICE QUERY_PORT --port_num 1", "a method of this device" },
			{ "uverbsctl run -- uverbsctl call -f script", "calls on one open file" },
			{},
		},
	.text =
		(const char *const[]){
			"Calls a method or a write() command of a device, and prints what it returns. The names are those of `uverbsctl "
			"tree`, or their ends, in any case: UVERBS_METHOD_CQ_CREATE of UVERBS_OBJECT_CQ is CQ CREATE, and "
			"UVERBS_ATTR_CREATE_CQ_CQE is --cqe. A command that has the short name of a method is CMD_QUERY_PORT. DEVICE is "
			"hfi1_0, uverbs0 or the path of a node; by default the only device. GET_CONTEXT is called first.",
			"VALUE is a number, a word (INIT, LOCAL_WRITE|REMOTE_READ), $NAME in a script, the fields of a struct "
			"(max_send_wr=16,max_recv_wr=16), or bytes: hexadecimal, or numbers (u32:16,16,1,1,0), joined by +. Of an output it "
			"is the size of its buffer. `none` leaves the attribute out. A line of a script is a call, or `NAME = CALL` to save "
			"the handle that it creates as $NAME, or `NAME = memory SIZE`; # begins a comment. docs/call.md has an example of "
			"each.",
			NULL },
	.words = "[DEVICE] [OBJECT METHOD [--ATTRIBUTE VALUE...]]",
	.stops = true,
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN | UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "file", 'f', "FILE",
			  "make the calls of this script, one a line; `-` reads them from the standard input",
			  UVD_VALUES_FILE, UVD_STORE(struct call_options, file, TEXT) },
			{ "keep-going", .help = "do not end a script at the first call that fails",
			  UVD_STORE(struct call_options, keep_going, FLAG) },
			{ "json", .help = "print JSON, one object for each line",
			  UVD_STORE(struct call_options, json, FLAG) },
			{ "list",
			  .help = "print what can follow [DEVICE] [OBJECT [METHOD [--ATTRIBUTE]]]: names, or words of a value",
			  UVD_STORE(struct call_options, list, FLAG) },
			{ "no-context", .help = "do not call GET_CONTEXT first",
			  UVD_STORE(struct call_options, no_context, FLAG) },
			{},
		},
	.size = sizeof(struct call_options),
	.run = call_command,
};
