/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl call: calls a method or a write() command of a device by name, or the lines of a script. */
#include "script.h"
#include "../commands.h"
#include "util/util.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char call_usage[] =
	"Usage: uverbsctl call [OPTION...] [DEVICE] OBJECT METHOD [--ATTRIBUTE VALUE...]\n"
	"       uverbsctl call [OPTION...] -f FILE [DEVICE]\n"
	"\n"
	"  uverbsctl call PD ALLOC                                   a command\n"
	"  uverbsctl call rxe0 DEVICE QUERY_PORT --port_num 1        a method of this device\n"
	"  uverbsctl run -- uverbsctl call -f script                 calls on one open file\n"
	"\n"
	"Calls a method or a write() command of a device, and prints what it returns. The names are those of\n"
	"`uverbsctl tree`, or their ends, in any case: UVERBS_METHOD_CQ_CREATE of UVERBS_OBJECT_CQ is CQ CREATE, and\n"
	"UVERBS_ATTR_CREATE_CQ_CQE is --cqe. A command that has the short name of a method is CMD_QUERY_PORT.\n"
	"DEVICE is hfi1_0, uverbs0 or the path of a node; by default the only device. GET_CONTEXT is called first.\n"
	"\n"
	"VALUE is a number, a word (INIT, LOCAL_WRITE|REMOTE_READ), $NAME in a script, the fields of a struct\n"
	"(max_send_wr=16,max_recv_wr=16), or bytes: hexadecimal, or numbers (u32:16,16,1,1,0), joined by +. Of an output it\n"
	"is the size of its buffer. `none` leaves the attribute out. A line of a script is a call, or `NAME = CALL` to save\n"
	"the handle that it creates as $NAME, or `NAME = memory SIZE`; # begins a comment.\n"
	"docs/call.md has an example of each.\n"
	"\n"
	"  -f, --file FILE   the calls of this script, one a line; `-` reads them from standard input\n"
	"  --keep-going      do not end a script at the first call that fails\n"
	"  --json            one JSON object for each line\n"
	"  --list            print what can follow [DEVICE] [OBJECT [METHOD [--ATTRIBUTE]]]: names, or words of a value\n"
	"  --no-context      do not call GET_CONTEXT first\n"
	"  --control PATH    the daemon's socket, to find a device (default: $UVERBSD_CONTROL, as in a run, or\n"
	"                    /run/uverbsd/control)\n";

struct call_options {
	const char *file, *control, *device;
	char **words; /* OBJECT METHOD and the attributes */
	int num_words;
	bool list;
};

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct uvd_script *s, struct call_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "file", required_argument, NULL, 'f' },    { "keep-going", no_argument, NULL, 'k' },
		{ "json", no_argument, NULL, 'j' },	     { "no-context", no_argument, NULL, 'n' },
		{ "control", required_argument, NULL, 'c' }, { "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },	     { NULL }
	};
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "+hf:", longs, NULL)) >= 0) {
		switch (c) {
		case 'f':
			o->file = optarg;
			break;
		case 'k':
			s->keep_going = true;
			break;
		case 'j':
			s->json = true;
			break;
		case 'n':
			s->no_context = true;
			break;
		case 'l':
			o->list = true;
			break;
		case 'c':
			o->control = optarg;
			break;
		case 'h':
			fputs(call_usage, stdout);
			return 0;
		default:
			fputs(call_usage, stderr);
			return 2;
		}
	}
	return -1;
}

/* The words before the first --ATTRIBUTE are [DEVICE] OBJECT METHOD, or with a script [DEVICE]. */
static bool split_words(struct call_options *o, int argc, char **argv)
{
	int plain = 0, wanted = o->file ? 0 : 2;

	while (plain < argc && strncmp(argv[plain], "--", 2))
		plain++;
	if (plain == wanted + 1) {
		o->device = *argv++;
		argc--;
	}
	o->words = argv;
	o->num_words = argc;
	return (plain == wanted || plain == wanted + 1) && (!o->file || !argc);
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

static bool call_run(struct uvd_script *s, const struct call_options *o)
{
	char node[PATH_MAX];

	if (o->device && strchr(o->device, '/'))
		snprintf(node, sizeof(node), "%s", o->device);
	else if (uvd_node_find(s->view.who, o->control, o->device, node))
		return false;
	if (!uvd_script_open(s, node))
		return false;
	return o->file ? run_script(s, o->file) : uvd_script_run(s, o->num_words, o->words);
}

int uvd_cmd_call(int argc, char **argv)
{
	struct uvd_script_said said = {};
	struct uvd_script s = { .view.who = "uverbsctl call", .fd = -1, .said = &said };
	struct call_options o = { .control = getenv("UVERBSD_CONTROL") };
	int status;

	if (!o.control || !*o.control)
		o.control = "/run/uverbsd/control";
	status = parse_options(&s, &o, argc, argv);
	if (status >= 0)
		return status;
	if (o.list) {
		uvd_call_list(&s, o.control, argc - optind, argv + optind);
		uvd_script_close(&s);
		return 0;
	}
	if (!split_words(&o, argc - optind, argv + optind)) {
		fputs(call_usage, stderr);
		return 2;
	}
	status = call_run(&s, &o) ? 0 : 1;
	uvd_script_close(&s);
	return status;
}
