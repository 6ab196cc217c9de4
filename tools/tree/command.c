/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree: shows the parse tree of a device, or of this build. */
#include "../call/script.h"
#include "../commands.h"
#include "../syzlang/syzlang.h"
#include "view.h"
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char tree_usage[] =
	"Usage: uverbsctl tree [--format FORMAT] [--backend NAME] [--persona NAME]\n"
	"       uverbsctl tree [--format FORMAT] --device IBDEV [--control PATH]\n"
	"       uverbsctl tree [--format FORMAT] --open NODE\n"
	"       uverbsctl tree --fields\n"
	"\n"
	"  uverbsctl tree                              what this build can accept\n"
	"  uverbsctl tree --device hfi1_0              what the daemon's device accepts\n"
	"  uverbsctl tree --open /dev/infiniband/uverbs0 --json\n"
	"\n"
	"Shows what a device accepts: its objects, methods, attributes and write() commands, by the kernel's names.\n"
	"Without a device: what devices of this build would accept, on every backend that supports the persona.\n"
	"\n"
	"  --format FORMAT   text; json, which docs/tree.md describes; or syzlang, a description for syzkaller\n"
	"                    (docs/syzkaller.md)\n"
	"  --json            as --format json\n"
	"  --fields          the kernel's structs and enumerations that `uverbsctl call` knows by name, as JSON\n"
	"  --backend NAME    on this backend only\n"
	"  --persona NAME    of a device that poses so (default: hfi1)\n"
	"  --device IBDEV    asks the device of that name (hfi1_0); rdma_cm: the commands of that node, which are the same\n"
	"                    everywhere, and which no node tells\n"
	"  --open NODE       asks this device (/dev/infiniband/uverbs0)\n"
	"  --control PATH    the daemon's socket, to find a device (default: /run/uverbsd/control)\n";

enum tree_format { TREE_TEXT, TREE_JSON, TREE_SYZLANG };

struct options {
	enum tree_format format;
	bool fields;
	const char *backend, *persona, *device, *node, *control;
};

static int of_this_build(struct uvd_tree_view *view, const struct options *o)
{
	view->title = "What devices of this build accept.";
	view->persona = o->persona;
	/* syzkaller's programs use devices and rdma_cm beside each other. */
	if (o->format == TREE_SYZLANG && uvd_view_cm(view))
		return 1;
	return uvd_view_build(view, o->backend, o->persona);
}

static int of_device(struct uvd_tree_view *view, const struct options *o)
{
	static char node[PATH_MAX], title[PATH_MAX + 64];

	if (o->node)
		snprintf(node, sizeof(node), "%s", o->node);
	else if (uvd_node_find(view->who, o->control, o->device, node))
		return 1;
	snprintf(title, sizeof(title), "What %s accepts.", node);
	view->title = title;
	if (uvd_node_is_cm(node))
		return uvd_view_cm(view) ? 1 : 0;
	view->device = node;
	return uvd_view_ask(view, node) ? 1 : 0;
}

static int print_fields(void)
{
	json_t *fields = uvd_fields_json();
	int ret = json_dumpf(fields, stdout, JSON_COMPACT);

	putchar('\n');
	json_decref(fields);
	return ret || fflush(stdout) ? 1 : 0;
}

static bool tree_format_parse(struct options *o, const char *name)
{
	static const char *const names[] = { "text", "json", "syzlang" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i])) {
			o->format = i;
			return true;
		}
	fprintf(stderr, "uverbsctl tree: there is no format '%s': it is text, json or syzlang\n", name);
	return false;
}

static bool tree_view_print(const struct uvd_tree_view *view, enum tree_format format)
{
	switch (format) {
	case TREE_JSON:
		return uvd_view_print_json(view);
	case TREE_SYZLANG:
		return uvd_syz_print(view);
	default:
		uvd_view_print(view);
		return true;
	}
}

/* Returns -1 to go on, or the exit status. */
static int tree_options_parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },	     { "format", required_argument, NULL, 'F' },
		{ "backend", required_argument, NULL, 'b' }, { "persona", required_argument, NULL, 'p' },
		{ "device", required_argument, NULL, 'd' },  { "fields", no_argument, NULL, 'f' },
		{ "open", required_argument, NULL, 'o' },    { "control", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },	     { NULL }
	};
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0) {
		switch (c) {
		case 'j':
			o->format = TREE_JSON;
			break;
		case 'F':
			if (!tree_format_parse(o, optarg))
				return 2;
			break;
		case 'f':
			o->fields = true;
			break;
		case 'b':
			o->backend = optarg;
			break;
		case 'p':
			o->persona = optarg;
			break;
		case 'd':
			o->device = optarg;
			break;
		case 'o':
			o->node = optarg;
			break;
		case 'c':
			o->control = optarg;
			break;
		case 'h':
			fputs(tree_usage, stdout);
			return 0;
		default:
			fputs(tree_usage, stderr);
			return 2;
		}
	}
	if (optind < argc || (o->device && o->node) || ((o->device || o->node) && (o->backend || o->persona))) {
		fputs(tree_usage, stderr);
		return 2;
	}
	return -1;
}

int uvd_cmd_tree(int argc, char **argv)
{
	struct options o = { .control = "/run/uverbsd/control" };
	struct uvd_tree_view view = { .who = "uverbsctl tree" };
	int status = tree_options_parse(&o, argc, argv);

	if (status >= 0)
		return status;
	if (o.fields)
		return print_fields();
	if (!o.persona)
		o.persona = "hfi1";
	status = o.device || o.node ? of_device(&view, &o) : of_this_build(&view, &o);
	if (!status) {
		uvd_view_finish(&view);
		if (!tree_view_print(&view, o.format))
			status = 1;
	}
	uvd_view_free(&view);
	return status;
}
