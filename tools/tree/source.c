/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The source of a parse tree for a command of uverbsctl: this build, or the node of a device, which it finds by name. */
#include "../daemon/ask.h"
#include "backends/backends.h"
#include "cm/cm.h"
#include "control/control.h"
#include "core/core.h"
#include "objects/objects.h"
#include "persona/persona.h"
#include "view.h"
#include "util/util.h"
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>

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
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, view->who, UVD_WARN);
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
		fprintf(stderr, "%s: no tree of backend '%s': %s\n", view->who, backend->name, uvd_errno_name(err));
	return err;
}

static bool supports(const struct uvd_backend *backend, const struct uvd_persona *persona)
{
	struct uvd_backend ops;

	return !uvd_persona_ops(persona, backend, &ops);
}

int uvd_view_build(struct uvd_tree_view *view, const char *only, const char *name)
{
	const struct uvd_persona *persona = uvd_persona_find(name);
	const struct uvd_backend *backend;
	int err = 0;

	if (!persona) {
		fprintf(stderr, "%s: there is no persona '%s'\n", view->who, name);
		return 2;
	}
	if (only && !uvd_backend_find(only)) {
		fprintf(stderr, "%s: there is no backend '%s'\n", view->who, only);
		return 2;
	}
	for (unsigned int i = 0; (backend = uvd_backend_at(i)) && !err; i++)
		if (only ? !strcmp(only, backend->name) : supports(backend, persona))
			err = add_backend(view, backend, persona);
	return err ? 1 : 0;
}

/* ---- rdma_cm ------------------------------------------------------------------------------------------------------- */

bool uvd_node_is_cm(const char *node)
{
	const char *slash = strrchr(node, '/');

	return !strcmp(slash ? slash + 1 : node, UVD_CM_NODE);
}

int uvd_view_cm(struct uvd_tree_view *view)
{
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, view->who, UVD_WARN);
	struct source source = { .view = view };
	struct uvd_cm_tree *t;
	int err;

	t = uvd_cm_tree_new(log, &err);
	if (t)
		err = uvd_tree_describe(uvd_cm_tree_of(t), source_add_row, &source);
	uvd_cm_tree_free(t);
	uvd_log_free(log);
	return err;
}

/* ---- the node of a device ---------------------------------------------------------------------------------------- */

/* Stores the name of the device of this entry of infiniband_verbs. Returns false for an entry that is no device's: it has no such file. */
static bool read_ibdev(const char *sysfs, const char *entry, char name[64])
{
	char path[PATH_MAX];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/%s/ibdev", sysfs, entry);
	file = fopen(path, "re");
	ok = file && fscanf(file, "%63s", name) == 1;
	if (file)
		fclose(file);
	return ok;
}

static bool node_is_called(const char *sysfs, const char *node, const char *device)
{
	char name[64];

	return read_ibdev(sysfs, node, name) && (!device || !strcmp(name, device) || !strcmp(node, device));
}

/* Returns the number of devices of this name below the sysfs directory. Sets node to the last one's. */
static unsigned int find_node(const char *sysfs, const char *device, char node[PATH_MAX])
{
	struct dirent *entry;
	unsigned int found = 0;
	char path[PATH_MAX];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs", sysfs);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (!node_is_called(sysfs, entry->d_name, device))
			continue;
		snprintf(node, PATH_MAX, "/dev/infiniband/%s", entry->d_name);
		found++;
	}
	closedir(dir);
	return found;
}

/* Stores the sysfs directory that a daemon publishes. Returns false if there is no such daemon. */
static bool sysfs_of_daemon(const char *control, char path[PATH_MAX])
{
	char *line = uvd_control_ask(control, "status");
	json_t *status = line ? json_loads(line, 0, NULL) : NULL;
	const char *sysfs = json_string_value(json_object_get(status, "sysfs"));

	if (sysfs)
		snprintf(path, PATH_MAX, "%s", sysfs);
	json_decref(status);
	free(line);
	return sysfs;
}

static unsigned int find_by_daemon(const char *control, const char *device, char node[PATH_MAX])
{
	char sysfs[PATH_MAX];

	return sysfs_of_daemon(control, sysfs) ? find_node(sysfs, device, node) : 0;
}

static const char *sysfs_path(void)
{
	const char *sysfs = getenv("SYSFS_PATH");

	return sysfs && *sysfs ? sysfs : "/sys";
}

bool uvd_view_guess(struct uvd_tree_view *view, const char *node)
{
	static const char folder[] = "/dev/infiniband/";
	const struct uvd_persona *persona;
	char sysfs[PATH_MAX], name[64];
	bool known;

	if (strncmp(node, folder, strlen(folder)))
		return false;
	node += strlen(folder);
	known = read_ibdev(sysfs_path(), node, name) ||
		(sysfs_of_daemon(uvd_ask_control(), sysfs) && read_ibdev(sysfs, node, name));
	for (unsigned int i = 0; known && (persona = uvd_persona_at(i)); i++)
		if (!strncmp(name, persona->name, strlen(persona->name)))
			view->driver_id = persona->driver_id;
	return known;
}

/* Calls each() with the names of the devices below the sysfs directory, in the order of their numbers. Returns how many there are. */
static unsigned int each_ibdev(const char *sysfs, void (*each)(void *arg, const char *name), void *arg)
{
	char path[PATH_MAX], name[64];
	unsigned int num = 0;
	struct dirent **list;
	int n;

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs", sysfs);
	n = scandir(path, &list, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		if (read_ibdev(sysfs, list[i]->d_name, name)) {
			each(arg, name);
			num++;
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return num;
}

void uvd_nodes_each(const char *control, void (*each)(void *arg, const char *name), void *arg)
{
	char sysfs[PATH_MAX];

	if (!each_ibdev(sysfs_path(), each, arg) && sysfs_of_daemon(control, sysfs))
		each_ibdev(sysfs, each, arg);
}

int uvd_node_find(const char *who, const char *control, const char *device, char node[PATH_MAX])
{
	const char *sysfs = sysfs_path();
	unsigned int found;

	if (device && uvd_node_is_cm(device)) {
		snprintf(node, PATH_MAX, "/dev/infiniband/" UVD_CM_NODE);
		return 0;
	}
	found = find_node(sysfs, device, node);
	if (!found)
		found = find_by_daemon(control, device, node);
	if (!found)
		fprintf(stderr, "%s: no device%s%s%s in %s/class/infiniband_verbs, and none of a uverbsd on %s\n", who,
			device ? " '" : "", device ? device : "", device ? "'" : "", sysfs, control);
	if (found > 1)
		fprintf(stderr, "%s: there are %u devices: name one of them\n", who, found);
	return found == 1 ? 0 : -1;
}
