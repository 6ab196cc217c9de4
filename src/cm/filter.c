/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands pass the filters of their identifier's device; without a device, those of all devices. */
#include <errno.h>
#include <string.h>
#include "cm/command.h"

/* The devices that are left to ask: those with an index from `first` to `last`. */
struct asked {
	unsigned int first, last;
};

/* Lock held. Returns false if no filter is to be asked: the command fails, or finds its device removed. */
static bool asked_begin(struct asked *a, struct cm_cmd *c, const struct cm_row *row)
{
	struct cm_id *id = NULL;
	uint32_t number;
	int err = 0;

	if (row->find)
		err = row->find(c, &id);
	else if (row->names_id) {
		memcpy(&number, (const uint8_t *)c->in + row->id, sizeof(number));
		err = cm_id_get(c->file, number, &id);
	}
	*a = (struct asked){ .last = UINT32_MAX };
	if (id && id->device)
		a->first = a->last = id->device->index;
	return !err && !(id && id->state == CM_DEVICE_REMOVAL);
}

/*
 * Returns the filters of the next device, with a reference; NULL: there is none left. Until the reference is put the device exists,
 * because the end of its filters waits for that. One device at a time: the command may sleep at each, and another one must be able to go.
 */
static struct uvd_filter_chain *asked_next(struct asked *a, struct uvd_cm *cm)
{
	struct uvd_filter_chain *chain = NULL;
	struct cm_device *device;

	list_for_each_entry(device, &cm->devices, of_cm) {
		if (device->index < a->first || device->index > a->last)
			continue;
		chain = uvd_filters_get(&device->dev->filters);
		if (!chain)
			continue;
		a->first = device->index + 1;
		break;
	}
	return chain;
}

static int ask(struct cm_cmd *c, const struct cm_row *row)
{
	struct uvd_cm *cm = c->file->cm;
	struct uvd_filter_chain *chain;
	struct asked a;
	int err = 0;

	cm_lock(cm);
	chain = asked_begin(&a, c, row) ? asked_next(&a, cm) : NULL;
	cm_unlock(cm);
	while (chain) {
		err = uvd_filter_chain_command(chain, &c->filtered);
		uvd_filter_chain_put(chain);
		if (err)
			break;
		cm_lock(cm);
		chain = asked_next(&a, cm);
		cm_unlock(cm);
	}
	return err;
}

int cm_filter(struct cm_cmd *c, const struct cm_row *row)
{
	return atomic_load_explicit(&c->file->cm->engine->cm_filtered, memory_order_relaxed) ? ask(c, row) : 0;
}
