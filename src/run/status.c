/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Answers the control socket's command `status` in a run, in the format of the daemon's answer. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "account/account.h"
#include "client/client.h"
#include "control/control.h"
#include "run/internal.h"
#include "util/util.h"

enum { RUN_STATUS_MOST = 4096 /* open files of a device, and address spaces, that are listed */ };

/* Facts are copied while a lock is held. Names of programs are read when it is not. */
struct run_status_fact {
	pid_t pid;
	uid_t uid;
	uint64_t num; /* objects of a file, or pages of an address space */
	unsigned int types[UVD_OBJECT_COUNTS]; /* of a file */
	unsigned int first, copied; /* of a file: its objects among all copies */
};

struct run_status_facts {
	struct run_status_fact *list;
	unsigned int num;
	struct uvd_object_copy *copies; /* of the objects of all files */
	unsigned int num_copies;
};

static void run_status_add(void *arg, pid_t pid, uint64_t num)
{
	struct run_status_facts *facts = arg;

	if (facts->num < RUN_STATUS_MOST)
		facts->list[facts->num++] = (struct run_status_fact){ .pid = pid, .num = num };
}

static void run_status_add_file(struct run_status_facts *facts, struct uvd_file *file)
{
	struct run_status_fact *f = &facts->list[facts->num];

	run_status_add(facts, file->opened_by, atomic_load_explicit(&file->num_objects, memory_order_relaxed));
	uvd_control_count_types(file, f->types);
	f->first = facts->num_copies;
	f->copied = uvd_control_copy(file, facts->copies, &facts->num_copies);
	if (file->account)
		f->uid = uvd_account_uid(file->account);
}

static void run_status_collect_files(struct uvd_device *dev, struct run_status_facts *facts)
{
	struct uvd_file *file;

	facts->num = 0;
	uvd_lock(&dev->lock);
	list_for_each_entry(file, &dev->files, of_device) {
		if (facts->num == RUN_STATUS_MOST)
			break;
		run_status_add_file(facts, file);
	}
	uvd_unlock(&dev->lock);
}

static json_t *run_status_files(const struct uvd_device *dev, const struct run_status_facts *facts)
{
	json_t *files = json_array();
	char comm[32];

	for (const struct run_status_fact *f = facts->list; f < facts->list + facts->num; f++) {
		uvd_run_program(f->pid, comm, sizeof(comm));
		json_array_append_new(files,
				      json_pack("{s:i, s:I, s:o, s:I, s:o, s:o?}", "pid", f->pid, "uid",
						(json_int_t)f->uid, "program", uvd_control_text(comm), "objects",
						(json_int_t)f->num, "types", uvd_control_types(dev, f->types), "tree",
						uvd_control_tree(dev, facts->copies + f->first, f->copied)));
	}
	return files;
}

static json_t *run_status_device(const struct uvd_fleet_place *d, struct run_status_facts *facts)
{
	const struct uvd_device_config *config = &d->config;
	char node[64], rdev[32];

	snprintf(node, sizeof(node), "/dev/infiniband/uverbs%d", config->number);
	snprintf(rdev, sizeof(rdev), "%d:%d", UVD_RUN_MAJOR, UVD_RUN_MINOR + config->number);
	run_status_collect_files(d->dev, facts);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:I, s:b, s:o, s:o}", "node", node, "rdev",
			 rdev, "device", config->ibdev, "backend", config->backend, "persona", config->persona, "abi",
			 config->write_abi ? "write" : "ioctl", "ports", config->num_ports, "open", facts->num,
			 "objects", uvd_control_objects(d->dev), "refused", (json_int_t)uvd_device_refused(d->dev),
			 "removed", 0, "memlock", uvd_control_memlock(config), "files",
			 run_status_files(d->dev, facts));
}

static json_t *run_status_memlock(struct uvd_run_engine *e, struct run_status_facts *facts)
{
	json_t *list = json_array();
	char comm[32];

	facts->num = 0;
	uvd_mm_table_each(e->core.mms, run_status_add, facts);
	for (const struct run_status_fact *f = facts->list; f < facts->list + facts->num; f++) {
		uvd_run_program(f->pid, comm, sizeof(comm));
		json_array_append_new(list, json_pack("{s:i, s:o, s:I}", "pid", f->pid, "program",
						      uvd_control_text(comm), "pages", (json_int_t)f->num));
	}
	return list;
}

json_t *uvd_run_status(void *engine)
{
	struct uvd_run_engine *e = engine;
	struct run_status_facts facts = { .list = calloc(RUN_STATUS_MOST, sizeof(*facts.list)),
					  .copies = malloc(UVD_CONTROL_OBJECTS * sizeof(*facts.copies)) };
	json_t *devices = json_array(), *answer;
	char sysfs[PATH_MAX + 8];

	if (!facts.list || !facts.copies) {
		free(facts.list);
		free(facts.copies);
		json_decref(devices);
		return uvd_control_refuse("no memory for the answer");
	}
	for (struct uvd_fleet_place *d = e->devices; d < e->devices + UVD_MAX_DEVICES; d++)
		if (d->dev)
			json_array_append_new(devices, run_status_device(d, &facts));
	snprintf(sysfs, sizeof(sysfs), "%s/sys", e->root);
	answer = json_pack("{s:i, s:s, s:s, s:o, s:o}", "pid", getpid(), "transport", "run", "sysfs", sysfs, "devices",
			   devices, "memlock", run_status_memlock(e, &facts));
	free(facts.list);
	free(facts.copies);
	return answer;
}
