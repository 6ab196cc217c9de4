/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Answers the control socket's command `status` in a run. */
#include <jansson.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "account/account.h"
#include "control/control.h"
#include "run/internal.h"
#include "util/util.h"

static bool run_status_collect(struct uvd_status *s, struct uvd_device *dev)
{
	const int number = dev->config.number;
	struct uvd_file *file;
	char node[64];

	snprintf(node, sizeof(node), "/dev/infiniband/uverbs%d", number);
	if (!uvd_status_add_device(s, dev, node, makedev(UVD_RUN_MAJOR, UVD_RUN_MINOR + number), false))
		return false;
	uvd_lock(&dev->lock);
	list_for_each_entry(file, &dev->files, of_device)
		uvd_status_add_file(s, file, file->watched.opened_by,
				    file->account ? uvd_account_uid(file->account) : 0);
	uvd_unlock(&dev->lock);
	return true;
}

json_t *uvd_run_status(void *engine)
{
	struct uvd_run_engine *e = engine;
	struct uvd_status *s = uvd_status_new();
	json_t *answer = NULL;
	char sysfs[PATH_MAX + 8];
	bool complete = s;

	for (struct uvd_fleet_place *p = e->devices; p < e->devices + UVD_MAX_DEVICES && complete; p++)
		complete = !p->dev || run_status_collect(s, p->dev);
	if (complete) {
		uvd_status_add_memory(s, e->core.mms);
		uvd_status_add_cm(s, e->cm);
		snprintf(sysfs, sizeof(sysfs), "%s/sys", e->root);
		answer = json_pack("{s:i, s:s, s:s, s:s}", "pid", getpid(), "log_level",
				   uvd_log_level_name(uvd_log_most(e->log)), "transport", "run", "sysfs", sysfs);
		json_object_set_new(answer, "wire", uvd_fleet_wire_status(&e->fleet.wire));
		answer = uvd_status_format(s, answer, uvd_run_program_name, NULL);
	}
	if (s)
		uvd_status_free(s);
	return answer ? answer : uvd_control_refuse("no memory for the answer");
}
