/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices that a filter removes and that come back: the transport does both, and the engine counts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/internal.h"
#include "util/util.h"

/* Returns the entry of this name, or an unused one, or NULL. Caller holds plugins_lock. */
static struct uvd_replugs *replugs_find(struct uvd_engine *engine, const char *ibdev)
{
	struct uvd_replugs *unused = NULL;

	for (unsigned int i = 0; i < UVD_COUNT(engine->replugs); i++) {
		if (!strcmp(engine->replugs[i].ibdev, ibdev))
			return &engine->replugs[i];
		if (!engine->replugs[i].ibdev[0])
			unused = &engine->replugs[i];
	}
	return unused;
}

void uvd_engine_count_replug(struct uvd_engine *engine, const char *ibdev)
{
	struct uvd_replugs *replugs;

	uvd_lock(&engine->plugins_lock);
	replugs = replugs_find(engine, ibdev);
	if (replugs) {
		snprintf(replugs->ibdev, sizeof(replugs->ibdev), "%s", ibdev);
		replugs->num++;
	}
	uvd_unlock(&engine->plugins_lock);
}

uint64_t uvd_engine_forget_replugs(struct uvd_engine *engine, const char *ibdev)
{
	struct uvd_replugs *replugs;
	uint64_t num;

	uvd_lock(&engine->plugins_lock);
	num = uvd_engine_replugs(engine, ibdev);
	replugs = replugs_find(engine, ibdev);
	if (num && replugs)
		*replugs = (struct uvd_replugs){};
	uvd_unlock(&engine->plugins_lock);
	return num;
}

void uvd_engine_restore_replugs(struct uvd_engine *engine, const char *ibdev, uint64_t num)
{
	struct uvd_replugs *replugs;

	uvd_lock(&engine->plugins_lock);
	replugs = replugs_find(engine, ibdev);
	if (num && replugs) {
		snprintf(replugs->ibdev, sizeof(replugs->ibdev), "%s", ibdev);
		replugs->num = num;
	}
	uvd_unlock(&engine->plugins_lock);
}

uint64_t uvd_engine_replugs(const struct uvd_engine *engine, const char *ibdev)
{
	for (unsigned int i = 0; i < UVD_COUNT(engine->replugs); i++)
		if (!strcmp(engine->replugs[i].ibdev, ibdev))
			return engine->replugs[i].num;
	return 0;
}

int uvd_ibdev_replug(struct uvd_ibdev *ib, uint64_t down_ns)
{
	struct uvd_device *dev = ib->owner;

	if (!dev->engine->replug)
		return -EOPNOTSUPP;
	return atomic_load(&dev->gone) ? -ENODEV : dev->engine->replug(dev, down_ns ? down_ns : 1);
}

uint64_t uvd_ibdev_replugs(const struct uvd_ibdev *ib)
{
	const struct uvd_device *dev = ib->owner;

	return dev->engine->replug ? dev->replugs : UINT64_MAX;
}
