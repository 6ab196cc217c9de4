/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree: shows the parse tree of a device, or of this build. */
#include "../call/script.h"
#include "../commands.h"
#include "../syzlang/syzlang.h"
#include "view.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum tree_format { TREE_TEXT, TREE_JSON, TREE_SYZLANG };

struct tree_options {
	int format; /* enum tree_format */
	bool fields;
	const char *backend, *persona, *node;
};

static int of_this_build(struct uvd_tree_view *view, const struct tree_options *o)
{
	const char *persona = o->persona ? o->persona : "hfi1";

	view->title = "What devices of this build accept.";
	view->persona = persona;
	/* syzkaller's programs use devices and rdma_cm beside each other. */
	if (o->format == TREE_SYZLANG && uvd_view_cm(view))
		return 1;
	return uvd_view_build(view, o->backend, persona);
}

static int of_device(struct uvd_tree_view *view, const struct uvd_args *args)
{
	static char node[PATH_MAX], title[PATH_MAX + 64];
	const struct tree_options *o = args->options;

	if (o->node || strchr(args->device, '/'))
		snprintf(node, sizeof(node), "%s", o->node ? o->node : args->device);
	else if (uvd_node_find(view->who, args->control, args->device, node))
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

static int tree_command(const struct uvd_args *args)
{
	const struct tree_options *o = args->options;
	struct uvd_tree_view view = { .who = args->who };
	int status;

	if (o->fields)
		return print_fields();
	if (args->device && o->node)
		return uvd_args_wrong(args, "--device and --open name two devices");
	if ((args->device || o->node) && (o->backend || o->persona))
		return uvd_args_wrong(args, "--backend and --persona are not for a device, which has its own");
	status = args->device || o->node ? of_device(&view, args) : of_this_build(&view, o);
	if (!status) {
		uvd_view_finish(&view);
		if (!tree_view_print(&view, o->format))
			status = 1;
	}
	uvd_view_free(&view);
	return status;
}

const struct uvd_command uvd_command_tree = {
	.name = "tree",
	.purpose = "show which calls a device accepts",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl tree", "what this build can accept" },
			{ "uverbsctl tree --device hfi1_0", "what the daemon's device accepts" },
			{ "uverbsctl tree --open /dev/infiniband/uverbs0 --json",
			  "what this node accepts, for programs" },
			{},
		},
	.text =
		(const char *const[]){
			"Shows what a device accepts: its objects, methods, attributes and write() commands, by the kernel's names. Without "
			"a device: what devices of this build would accept, on every backend that supports the persona.",
			"The device rdma_cm has the commands of that node, which are the same everywhere, and which no node tells. "
			"docs/tree.md describes the JSON, docs/syzkaller.md the descriptions for syzkaller.",
			NULL },
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN | UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "format", .arg = "FORMAT",
			  .help = "print text, json, or syzlang (a description for syzkaller)",
			  .choices = (const char *const[]){ "text", "json", "syzlang", NULL },
			  UVD_STORE(struct tree_options, format, CHOICE) },
			{ "json", .help = "print JSON, as --format json does", .value = TREE_JSON,
			  UVD_STORE(struct tree_options, format, CONSTANT) },
			{ "fields",
			  .help = "print the kernel's structs and enumerations that `uverbsctl call` knows by name, as JSON",
			  UVD_STORE(struct tree_options, fields, FLAG) },
			{ "backend", .arg = "NAME", .help = "show what devices with this backend accept",
			  .values = UVD_VALUES_BACKEND, UVD_STORE(struct tree_options, backend, TEXT) },
			{ "persona", .arg = "NAME",
			  .help = "show what devices with this persona accept (default: hfi1)",
			  .values = UVD_VALUES_PERSONA, UVD_STORE(struct tree_options, persona, TEXT) },
			{ "open", .arg = "NODE", .help = "ask the device with this node, as /dev/infiniband/uverbs0",
			  .values = UVD_VALUES_FILE, UVD_STORE(struct tree_options, node, TEXT) },
			{},
		},
	.size = sizeof(struct tree_options),
	.run = tree_command,
};
