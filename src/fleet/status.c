/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "fleet/status.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include "allow/allow.h"
#include "client/client.h"
#include "cm/cm.h"
#include "control/control.h"
#include "fleet/fleet.h"
#include "util/util.h"

enum { MOST_FILES = 4096, MOST_ACCOUNTS = 4096, MOST_CM_IDS = 4096 /* that are listed */ };

struct status_file {
	pid_t pid;
	uid_t uid;
	unsigned int objects;
	unsigned int types[UVD_OBJECT_COUNTS];
	unsigned int first, copied; /* its objects among all copies */
};

struct status_account {
	pid_t pid;
	uint64_t pages;
};

struct status_device {
	struct uvd_device *dev; /* a reference; has the names of the files' types */
	struct status_file *files;
	unsigned int num_files, num_open;
	json_t *text; /* all but the files */
};

struct uvd_status {
	struct status_device devices[UVD_MAX_DEVICES];
	unsigned int num_devices;
	struct uvd_object_copy *copies; /* of the objects of all files */
	unsigned int num_copies;
	struct status_account *accounts;
	unsigned int num_accounts;
	struct uvd_cm_facts *cm_ids;
	unsigned int num_cm_ids;
};

struct uvd_status *uvd_status_new(void)
{
	struct uvd_status *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->copies = malloc(UVD_CONTROL_OBJECTS * sizeof(*s->copies));
	s->accounts = malloc(MOST_ACCOUNTS * sizeof(*s->accounts));
	if (s->copies && s->accounts)
		return s;
	uvd_status_free(s);
	return NULL;
}

void uvd_status_free(struct uvd_status *s)
{
	for (struct status_device *d = s->devices; d < s->devices + s->num_devices; d++) {
		free(d->files);
		json_decref(d->text);
		uvd_device_put(d->dev);
	}
	free(s->copies);
	free(s->accounts);
	free(s->cm_ids);
	free(s);
}

/* ---- collecting -------------------------------------------------------------------------------------------------- */

json_t *uvd_status_add_device(struct uvd_status *s, struct uvd_device *dev, const char *node, dev_t rdev, bool removed)
{
	const struct uvd_device_config *config = &dev->config;
	struct status_device *d = &s->devices[s->num_devices++];
	char number[32], guid[UVD_GUID_TEXT];

	d->dev = uvd_device_get(dev);
	d->files = malloc(MOST_FILES * sizeof(*d->files));
	if (!d->files)
		return NULL;
	snprintf(number, sizeof(number), "%u:%u", major(rdev), minor(rdev));
	d->text = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:I, s:b, s:o}", "node", node, "rdev",
			    number, "device", config->ibdev, "node_guid",
			    uvd_guid_text(be64toh(config->node_guid), guid), "backend", config->backend, "persona",
			    config->persona, "abi", config->write_abi ? "write" : "ioctl", "ports", config->num_ports,
			    "objects", uvd_control_objects(dev), "refused", (json_int_t)uvd_device_refused(dev),
			    "removed", removed, "memlock", uvd_control_memlock(config));
	return d->text;
}

void uvd_status_add_file(struct uvd_status *s, struct uvd_file *file, pid_t pid, uid_t uid)
{
	struct status_device *d = &s->devices[s->num_devices - 1];
	struct status_file *f;

	d->num_open++;
	if (d->num_files == MOST_FILES)
		return;
	f = &d->files[d->num_files++];
	f->pid = pid;
	f->uid = uid;
	f->objects = atomic_load_explicit(&file->num_objects, memory_order_relaxed);
	uvd_control_count_types(file, f->types);
	f->first = s->num_copies;
	f->copied = uvd_control_copy(file, s->copies, &s->num_copies);
}

static void status_add_account(void *status, pid_t pid, uint64_t pages)
{
	struct uvd_status *s = status;

	if (s->num_accounts < MOST_ACCOUNTS)
		s->accounts[s->num_accounts++] = (struct status_account){ pid, pages };
}

void uvd_status_add_memory(struct uvd_status *s, struct uvd_mm_table *mms)
{
	uvd_mm_table_each(mms, status_add_account, s);
}

void uvd_status_add_cm(struct uvd_status *s, struct uvd_cm *cm)
{
	s->cm_ids = cm ? malloc(MOST_CM_IDS * sizeof(*s->cm_ids)) : NULL;
	if (s->cm_ids)
		s->num_cm_ids = uvd_cm_copy_facts(cm, s->cm_ids, MOST_CM_IDS);
}

/* ---- formatting -------------------------------------------------------------------------------------------------- */

struct status_namer {
	void (*program)(void *arg, pid_t pid, char *name, size_t size);
	void *arg;
};

static json_t *status_program(const struct status_namer *n, pid_t pid)
{
	char name[32];

	n->program(n->arg, pid, name, sizeof(name));
	return uvd_control_text(name);
}

static json_t *status_files(const struct uvd_status *s, const struct status_device *d, const struct status_namer *n)
{
	json_t *files = json_array();

	for (const struct status_file *f = d->files; f < d->files + d->num_files; f++)
		json_array_append_new(files,
				      json_pack("{s:i, s:I, s:o, s:i, s:o, s:o?}", "pid", f->pid, "uid",
						(json_int_t)f->uid, "program", status_program(n, f->pid), "objects",
						f->objects, "types", uvd_control_types(d->dev, f->types), "tree",
						uvd_control_tree(d->dev, s->copies + f->first, f->copied)));
	return files;
}

static json_t *status_accounts(const struct uvd_status *s, const struct status_namer *n)
{
	json_t *accounts = json_array();

	for (const struct status_account *a = s->accounts; a < s->accounts + s->num_accounts; a++)
		json_array_append_new(accounts, json_pack("{s:i, s:o, s:I}", "pid", a->pid, "program",
							  status_program(n, a->pid), "pages", (json_int_t)a->pages));
	return accounts;
}

static json_t *status_cm_id(const struct uvd_cm_facts *f, const struct status_namer *n)
{
	const char *type = uvd_allow_qp_type_name(f->qp_type);

	return json_pack("{s:I, s:s, s:i, s:s, s:I, s:s, s:s, s:i, s:I, s:o, s:s, s:s}", "id", (json_int_t)f->number,
			 "device", f->device, "port", f->port, "qp_type", type ? type : "?", "qp_num",
			 (json_int_t)f->qp_num, "state", f->state, "ps", f->space, "pid", f->pid, "uid",
			 (json_int_t)f->uid, "program", status_program(n, f->pid), "src", f->src, "dst", f->dst);
}

static json_t *status_cm_ids(const struct uvd_status *s, const struct status_namer *n)
{
	json_t *ids = json_array();

	for (const struct uvd_cm_facts *f = s->cm_ids; f < s->cm_ids + s->num_cm_ids; f++)
		json_array_append_new(ids, status_cm_id(f, n));
	return ids;
}

json_t *uvd_status_format(struct uvd_status *s, json_t *answer,
			  void (*program)(void *arg, pid_t pid, char *name, size_t size), void *arg)
{
	const struct status_namer namer = { program, arg };
	json_t *devices = json_array();

	for (const struct status_device *d = s->devices; d < s->devices + s->num_devices; d++) {
		json_object_set_new(d->text, "open", json_integer(d->num_open));
		json_object_set_new(d->text, "files", status_files(s, d, &namer));
		json_array_append(devices, d->text);
	}
	json_object_set_new(answer, "devices", devices);
	json_object_set_new(answer, "memlock", status_accounts(s, &namer));
	json_object_set_new(answer, "cm_ids", status_cm_ids(s, &namer));
	return answer;
}
