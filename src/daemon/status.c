/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the control socket answers: `uverbsctl status`, `port` and `device`. */
#include "control/control.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "util/util.h"
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/schema.h>

static void count_one(json_t *counts, const char *name)
{
	json_t *n = json_object_get(counts, name);

	json_object_set_new(counts, name, json_integer(n ? json_integer_value(n) + 1 : 1));
}

/* An engine process sees no /proc. */
static FILE *open_comm(struct uvd_link *link, pid_t pid)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = pid, .index = UVD_WIRE_COMM };
	struct uvd_wire_fds out;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (!link)
		return fopen(path, "re");
	return pid > 0 && !uvd_link_ask(link, &r, NULL, &out, 0) ? fdopen(out.fd[0], "re") : NULL;
}

static void program_of(struct uvd_link *link, pid_t pid, char *comm, size_t size)
{
	FILE *f = open_comm(link, pid);

	if (!f || !fgets(comm, size, f))
		*comm = 0;
	comm[strcspn(comm, "\n")] = 0;
	if (f)
		fclose(f);
}

struct lists {
	struct uvd_link *link;
	json_t *files, *objects;
};

static void add_file(void *arg, const struct uvd_opener *opener, struct uvd_file *file)
{
	struct lists *lists = arg;
	struct uvd_uobject *uobj;
	unsigned int n = 0;
	char comm[32];

	uvd_lock(&file->lock);
	for (uobj = file->objects; uobj; uobj = uobj->next, n++)
		count_one(lists->objects, uobj->row->name);
	uvd_unlock(&file->lock);
	program_of(lists->link, opener->tgid, comm, sizeof(comm));
	json_array_append_new(lists->files, json_pack("{s:i, s:i, s:s%, s:i}", "pid", opener->tgid, "uid", opener->fsuid,
						      "program", comm, strlen(comm), "objects", n));
}

static json_t *node_status(const struct uvd_daemon_node *n)
{
	const struct uvd_device_config *config = &n->dev->config;
	struct lists lists = { n->daemon->link, json_array(), json_object() };
	struct uvd_cuse_counters counters;
	char rdev[32];

	uvd_cuse_count(n->cuse, &counters);
	uvd_cuse_each_file(n->cuse, add_file, &lists);
	snprintf(rdev, sizeof(rdev), "%u:%u", major(uvd_cuse_rdev(n->cuse)), minor(uvd_cuse_rdev(n->cuse)));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:i, s:o, s:o, s:b}", "node", uvd_cuse_path(n->cuse), "rdev", rdev,
			 "device", config->ibdev, "backend", config->backend, "persona", config->persona, "abi",
			 config->write_abi ? "write" : "ioctl", "ports", config->num_ports, "requests",
			 (json_int_t)counters.requests, "workers", counters.workers, "files", lists.files, "objects",
			 lists.objects, "removed", n->state != NODE_SERVES);
}

static void add_account(void *arg, pid_t pid, uint64_t pages)
{
	struct lists *lists = arg;
	char comm[32];

	program_of(lists->link, pid, comm, sizeof(comm));
	json_array_append_new(lists->objects, json_pack("{s:i, s:s%, s:I}", "pid", pid, "program", comm, strlen(comm), "pages",
					     (json_int_t)pages));
}

/* Those that there are now: the name, and how often devices have created it. */
static json_t *ucaps(struct uvd_ucaps *ucaps)
{
	json_t *list = json_array();

	uvd_lock(&ucaps->lock);
	for (unsigned int i = 0; i < ucaps->num; i++)
		if (ucaps->list[i].refs)
			json_array_append_new(list, json_pack("{s:s, s:i}", "name", ucaps->list[i].name, "users",
							      ucaps->list[i].refs));
	uvd_unlock(&ucaps->lock);
	return list;
}

static json_t *status(struct uvd_daemon *d)
{
	struct uvd_grant_counters g;
	json_t *nodes = json_array(), *accounts = json_array();
	struct lists lists = { d->link, NULL, accounts };

	for (unsigned int i = 0; i < d->num_nodes; i++)
		if (d->nodes[i].cuse)
			json_array_append_new(nodes, node_status(&d->nodes[i]));
	uvd_mm_table_each(d->engine.mms, add_account, &lists);
	uvd_grants_count(d->grants, &g);
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:{s:b, s:I, s:I, s:I, s:I, s:I, s:i}}", "pid", d->link ? getppid() : getpid(), "sysfs",
			 d->options->sysfs, "devices", nodes, "ucaps", ucaps(&d->engine.ucaps), "memlock", accounts,
			 "grants", "enabled", d->options->grant_fds, "granted", (json_int_t)g.granted, "fell_back",
			 (json_int_t)g.fell_back, "gone", (json_int_t)g.gone, "late", (json_int_t)g.late, "killed",
			 (json_int_t)g.killed, "under_way", g.under_way);
}

static struct uvd_device *device(void *daemon, unsigned int i)
{
	struct uvd_daemon *d = daemon;

	for (unsigned int at = 0; at < d->num_nodes; at++)
		if (d->nodes[at].state == NODE_SERVES && !i--)
			return d->nodes[at].dev;
	return NULL;
}

json_t *uvd_daemon_answer(void *daemon, const char *command, bool may_change)
{
	struct uvd_daemon *d = daemon;
	json_t *answer;

	if (!strcmp(command, "status"))
		return status(d);
	answer = uvd_control_port(command, may_change, device, d);
	return answer ? answer : uvd_daemon_answer_device(d, command, may_change);
}
