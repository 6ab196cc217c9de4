/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filters of devices, and changes while a device runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uverbsd/log.h>

#include "core/internal.h"
#include "filters/filters.h"
#include "util/util.h"

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* The filters of a device as they are, and as they will be. */
struct filter_change {
	struct uvd_filter_instance *list[UVD_MAX_FILTERS];
	unsigned int num;
};

static int filter_error(char error[UVD_PLUGIN_ERROR], int err, const char *why, const char *what)
{
	snprintf(error, UVD_PLUGIN_ERROR, why, what);
	return err;
}

/* Begins a change: locks the filters, which filter_change_end() unlocks. */
static int filter_change_begin(struct filter_change *c, struct uvd_device *dev, char error[UVD_PLUGIN_ERROR])
{
	const struct uvd_filter_chain *chain;

	uvd_lock(&dev->filters_lock);
	if (dev->filters_closed)
		return filter_error(error, -ENODEV, "device %s was removed", dev->config.ibdev);
	chain = dev->filters.current;
	c->num = chain ? chain->num : 0;
	if (chain)
		memcpy(c->list, chain->list, sizeof(c->list));
	return 0;
}

static void filter_change_end(struct uvd_device *dev)
{
	uvd_unlock(&dev->filters_lock);
}

/* Returns the place of the outermost filter with the name that the text begins with; c->num: there is none. */
static unsigned int filter_change_find(const struct filter_change *c, const char *text)
{
	const size_t len = strcspn(text, ":");
	unsigned int i = 0;

	while (i < c->num &&
	       (strlen(c->list[i]->filter->name) != len || memcmp(c->list[i]->filter->name, text, len) != 0))
		i++;
	return i;
}

/* Tells the connection manager whether it has to ask. Caller holds filters_lock. */
static void filters_count_cm(struct uvd_device *dev)
{
	const bool filtered = uvd_filters_want_commands(&dev->filters);

	if (filtered != dev->cm_filtered)
		atomic_fetch_add(&dev->engine->cm_filtered, filtered ? 1 : -1);
	dev->cm_filtered = filtered;
}

/* Makes the change. fresh: the instance that is new, or NULL. */
static int filter_change_apply(struct filter_change *c, struct uvd_device *dev, struct uvd_filter_instance *fresh,
			       char error[UVD_PLUGIN_ERROR])
{
	int err = uvd_filters_change(&dev->filters, c->list, c->num);

	if (!err) {
		filters_count_cm(dev);
		return 0;
	}
	uvd_filter_instance_end(fresh);
	return filter_error(error, err, "%s", "no memory");
}

static void filter_say(struct uvd_device *dev, const char *what, const char *text)
{
	uvd_logf(dev->engine->log, UVD_INFO, "%s: filter %s: %s", dev->config.ibdev, what, text);
}

/* place: where the new filter goes. Caller has begun the change. */
static int filter_change_add(struct filter_change *c, struct uvd_device *dev, unsigned int place, const char *text,
			     char error[UVD_PLUGIN_ERROR])
{
	struct uvd_filter_instance *fresh;
	int err;

	if (c->num == UVD_MAX_FILTERS)
		return filter_error(error, -ENOSPC, "device %s has too many filters", dev->config.ibdev);
	fresh = uvd_plugins_filter_begin(dev->engine->plugins, text, &dev->ib, error, &err);
	if (!fresh)
		return err;
	memmove(c->list + place + 1, c->list + place, (c->num - place) * sizeof(c->list[0]));
	c->list[place] = fresh;
	c->num++;
	return filter_change_apply(c, dev, fresh, error);
}

int uvd_device_filter_add(struct uvd_device *dev, const char *text, char error[UVD_PLUGIN_ERROR])
{
	struct filter_change c;
	int err = filter_change_begin(&c, dev, error);

	if (!err) {
		dev->replugs = 0; /* a schedule of this filter begins now */
		err = filter_change_add(&c, dev, 0, text, error);
	}
	filter_change_end(dev);
	if (!err)
		filter_say(dev, "added", text);
	return err;
}

/* Caller has begun the change. */
static int filter_change_set(struct filter_change *c, struct uvd_device *dev, const char *text,
			     char error[UVD_PLUGIN_ERROR])
{
	const unsigned int place = filter_change_find(c, text);
	struct uvd_filter_instance *fresh;
	int err;

	if (place == c->num)
		return filter_error(error, -ENOENT, "the device has no filter '%s'", text);
	fresh = uvd_plugins_filter_begin(dev->engine->plugins, text, &dev->ib, error, &err);
	if (!fresh)
		return err;
	c->list[place] = fresh;
	return filter_change_apply(c, dev, fresh, error);
}

int uvd_device_filter_set(struct uvd_device *dev, const char *text, char error[UVD_PLUGIN_ERROR])
{
	struct filter_change c;
	int err = filter_change_begin(&c, dev, error);

	if (!err) {
		dev->replugs = 0;
		err = filter_change_set(&c, dev, text, error);
	}
	filter_change_end(dev);
	if (!err)
		filter_say(dev, "set", text);
	return err;
}

static int filter_change_remove(struct filter_change *c, struct uvd_device *dev, const char *name,
				char error[UVD_PLUGIN_ERROR])
{
	const unsigned int place = filter_change_find(c, name);

	if (place == c->num)
		return filter_error(error, -ENOENT, "the device has no filter '%s'", name);
	c->num--;
	memmove(c->list + place, c->list + place + 1, (c->num - place) * sizeof(c->list[0]));
	return filter_change_apply(c, dev, NULL, error);
}

int uvd_device_filter_remove(struct uvd_device *dev, const char *name, char error[UVD_PLUGIN_ERROR])
{
	struct filter_change c;
	int err = filter_change_begin(&c, dev, error) ?: filter_change_remove(&c, dev, name, error);

	filter_change_end(dev);
	if (!err)
		filter_say(dev, "removed", name);
	return err;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

void uvd_device_filter_list(struct uvd_device *dev, void (*fn)(void *arg, const char *text), uvd_filter_tell_fn rule,
			    void *arg)
{
	const struct uvd_filter_chain *chain;

	uvd_lock(&dev->filters_lock);
	chain = dev->filters.current;
	for (unsigned int i = 0; chain && i < chain->num; i++) {
		fn(arg, chain->list[i]->text);
		if (rule)
			uvd_filter_instance_tell(chain->list[i], rule, arg);
	}
	uvd_unlock(&dev->filters_lock);
}

unsigned int uvd_device_unfiltered_files(struct uvd_device *dev)
{
	const struct uvd_backend *ops = atomic_load_explicit(&dev->ib.ops, memory_order_acquire);
	struct uvd_file *file;
	unsigned int num = 0;

	if (ops->ring_doorbell == dev->ops.ring_doorbell)
		return 0;
	uvd_lock(&dev->lock);
	list_for_each_entry(file, &dev->files, of_device)
		num += file->logged != 0;
	uvd_unlock(&dev->lock);
	return num;
}

bool uvd_device_has_filter_of(struct uvd_device *dev, const char *plugin)
{
	const struct uvd_filter_chain *chain;
	bool has = false;

	uvd_lock(&dev->filters_lock);
	chain = dev->filters.current;
	for (unsigned int i = 0; chain && i < chain->num; i++)
		has |= uvd_filter_instance_is_of(chain->list[i], plugin);
	uvd_unlock(&dev->filters_lock);
	return has;
}

bool uvd_ibdev_sleep(struct uvd_ibdev *ib, uint64_t ns)
{
	enum { SLICE = 20000000 /* ns: how late the removal of the device is noticed */ };
	struct uvd_device *dev = ib->owner;
	const uint64_t end = uvd_now_ns() + ns;
	uint64_t now;

	while (!atomic_load(&dev->gone) && (now = uvd_now_ns()) < end) {
		const uint64_t left = end - now;

		nanosleep(&(struct timespec){ .tv_nsec = left < SLICE ? left : SLICE }, NULL);
	}
	return !atomic_load(&dev->gone);
}

/* ---- begin and end of a device ----------------------------------------------------------------------------------- */

int uvd_device_filters_begin(struct uvd_device *dev)
{
	const struct uvd_device_text *t = NULL;
	char error[UVD_PLUGIN_ERROR] = "";
	struct filter_change c;
	int err = 0;

	while (!err && (t = uvd_device_text_after(dev, UVD_TEXT_FILTER, t))) {
		err = filter_change_begin(&c, dev, error) ?: filter_change_add(&c, dev, c.num, t->text, error);
		filter_change_end(dev);
	}
	if (err)
		uvd_logf(dev->engine->log, UVD_ERR, "%s: %s", dev->config.ibdev, error);
	return err;
}

void uvd_device_filters_close(struct uvd_device *dev)
{
	uvd_lock(&dev->filters_lock);
	dev->filters_closed = true;
	uvd_filters_clear(&dev->filters);
	filters_count_cm(dev);
	uvd_unlock(&dev->filters_lock);
}
