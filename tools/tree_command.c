/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree: shows the parse tree of a device, or of this build. */
#include "commands.h"
#include "control/control.h"
#include "core/core.h"
#include "objects/objects.h"
#include "persona/persona.h"
#include "tree_view.h"
#include "util/util.h"
#include <dirent.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>

static const char usage[] =
	"Usage: uverbsctl tree [--json] [--backend NAME] [--persona NAME]\n"
	"       uverbsctl tree [--json] --device IBDEV [--control PATH]\n"
	"       uverbsctl tree [--json] --open NODE\n"
	"\n"
	"  uverbsctl tree                              what this build can accept\n"
	"  uverbsctl tree --device hfi1_0              what the daemon's device accepts\n"
	"  uverbsctl tree --open /dev/infiniband/uverbs0 --json\n"
	"\n"
	"Shows what a device accepts: its objects, methods, attributes and write() commands, by the kernel's names.\n"
	"Without a device: what devices of this build would accept, on every backend that supports the persona.\n"
	"\n"
	"  --json            as JSON: docs/tree.md describes it\n"
	"  --backend NAME    on this backend only\n"
	"  --persona NAME    of a device that poses so (default: hfi1)\n"
	"  --device IBDEV    asks the device of that name (hfi1_0)\n"
	"  --open NODE       asks this device (/dev/infiniband/uverbs0)\n"
	"  --control PATH    the daemon's socket, to find a device (default: /run/uverbsd/control)\n";

struct options {
	bool json;
	const char *backend, *persona, *device, *node, *control;
};

/* ---- the tree of this build -------------------------------------------------------------------------------------- */

struct source {
	struct uvd_tree_view *view;
	unsigned int number;
};

static int source_add_row(void *arg, const struct uverbsd_tree_row *row)
{
	struct source *source = arg;

	return uvd_view_add(source->view, row, source->number);
}

static int add_backend(struct uvd_tree_view *view, const struct uvd_backend *backend, const struct uvd_persona *persona)
{
	struct source source = { .view = view, .number = view->num_sources };
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "uverbsctl tree", UVD_WARN);
	struct uvd_tree *tree;
	int err;

	tree = uvd_device_tree(uvd_features, backend, persona, log, &err);
	if (tree)
		err = uvd_tree_describe(tree, source_add_row, &source);
	view->sources[view->num_sources++] = backend->name;
	view->driver_id = persona->driver_id;
	uvd_tree_free(tree);
	uvd_log_free(log);
	if (err)
		fprintf(stderr, "uverbsctl tree: no tree of backend '%s': %s\n", backend->name, uvd_errno_name(err));
	return err;
}

static bool supports(const struct uvd_backend *backend, const struct uvd_persona *persona)
{
	struct uvd_backend ops;

	return !uvd_persona_ops(persona, backend, &ops);
}

static int of_this_build(struct uvd_tree_view *view, const struct options *o)
{
	const struct uvd_persona *persona = uvd_persona_find(o->persona);
	const struct uvd_backend *backend;
	int err = 0;

	if (!persona) {
		fprintf(stderr, "uverbsctl tree: there is no persona '%s'\n", o->persona);
		return 2;
	}
	if (o->backend && !uvd_backend_find(o->backend)) {
		fprintf(stderr, "uverbsctl tree: there is no backend '%s'\n", o->backend);
		return 2;
	}
	view->title = "What devices of this build accept.";
	view->persona = persona->name;
	for (unsigned int i = 0; (backend = uvd_backend_at(i)) && !err; i++)
		if (o->backend ? !strcmp(o->backend, backend->name) : supports(backend, persona))
			err = add_backend(view, backend, persona);
	return err ? 1 : 0;
}

/* ---- the tree of a device ---------------------------------------------------------------------------------------- */

/* Finds the node uverbsN of the device with this name, below the sysfs directory `sysfs`. */
static bool find_node(const char *sysfs, const char *device, char *node, size_t size)
{
	char path[PATH_MAX], name[64];
	struct dirent *entry;
	bool found = false;
	FILE *file;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs", sysfs);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "uverbs", 6))
			continue;
		snprintf(path, sizeof(path), "%s/class/infiniband_verbs/%s/ibdev", sysfs, entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		found = fscanf(file, "%63s", name) == 1 && !strcmp(name, device);
		fclose(file);
		if (found)
			snprintf(node, size, "/dev/infiniband/%s", entry->d_name);
	}
	closedir(dir);
	return found;
}

static bool find_by_daemon(const char *control, const char *device, char *node, size_t size)
{
	char *line = uvd_control_ask(control, "status");
	json_t *status = line ? json_loads(line, 0, NULL) : NULL;
	const char *sysfs = json_string_value(json_object_get(status, "sysfs"));
	bool found = sysfs && find_node(sysfs, device, node, size);

	json_decref(status);
	free(line);
	return found;
}

/* Looks for the device where libibverbs would, then in the sysfs directory that the daemon reports. */
static int of_device(struct uvd_tree_view *view, const struct options *o)
{
	const char *sysfs = getenv("SYSFS_PATH");
	static char node[PATH_MAX], title[PATH_MAX + 64];

	if (o->node)
		snprintf(node, sizeof(node), "%s", o->node);
	else if (!find_node(sysfs && *sysfs ? sysfs : "/sys", o->device, node, sizeof(node)) &&
		 !find_by_daemon(o->control, o->device, node, sizeof(node))) {
		fprintf(stderr,
			"uverbsctl tree: no device '%s' in %s/class/infiniband_verbs, and none of a uverbsd "
			"on %s\n",
			o->device, sysfs && *sysfs ? sysfs : "/sys", o->control);
		return 1;
	}
	snprintf(title, sizeof(title), "What %s accepts.", node);
	view->title = title;
	view->device = node;
	return uvd_view_ask(view, node) ? 1 : 0;
}

int uvd_cmd_tree(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },	     { "backend", required_argument, NULL, 'b' },
		{ "persona", required_argument, NULL, 'p' }, { "device", required_argument, NULL, 'd' },
		{ "open", required_argument, NULL, 'o' },    { "control", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },	     { NULL }
	};
	struct options o = { .control = "/run/uverbsd/control" };
	struct uvd_tree_view view = {};
	int c, status;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0) {
		switch (c) {
		case 'j':
			o.json = true;
			break;
		case 'b':
			o.backend = optarg;
			break;
		case 'p':
			o.persona = optarg;
			break;
		case 'd':
			o.device = optarg;
			break;
		case 'o':
			o.node = optarg;
			break;
		case 'c':
			o.control = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc || (o.device && o.node) || ((o.device || o.node) && (o.backend || o.persona))) {
		fputs(usage, stderr);
		return 2;
	}
	if (!o.persona)
		o.persona = "hfi1";
	status = o.device || o.node ? of_device(&view, &o) : of_this_build(&view, &o);
	if (!status) {
		uvd_view_finish(&view);
		if (o.json)
			status = uvd_view_print_json(&view) ? 0 : 1;
		else
			uvd_view_print(&view);
	}
	uvd_view_free(&view);
	return status;
}
