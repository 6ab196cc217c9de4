/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* User Capabilities: names, references, and which of them a client's descriptors stand for. */
#include <errno.h>
#include <string.h>

#include "client/client.h"
#include "core/internal.h"
#include "util/util.h"

void uvd_ucaps_init(struct uvd_ucaps *ucaps)
{
	pthread_mutex_init(&ucaps->lock, NULL);
	pthread_cond_init(&ucaps->changed, NULL);
}

void uvd_ucaps_fini(struct uvd_ucaps *ucaps)
{
	pthread_cond_destroy(&ucaps->changed);
	pthread_mutex_destroy(&ucaps->lock);
}

/* ---- capabilities by name ---------------------------------------------------------------------------------------- */

/* Caller holds ucaps->lock. NULL: the name was never used. */
static struct uvd_ucap *ucap_find_by_name(struct uvd_ucaps *ucaps, const char *name)
{
	for (unsigned int i = 0; i < ucaps->num; i++)
		if (!strcmp(ucaps->list[i].name, name))
			return &ucaps->list[i];
	return NULL;
}

/* The transport makes or removes a node between these two. They release and take ucaps->lock, for its I/O and waits. */
static void node_work_begin(struct uvd_ucaps *ucaps, struct uvd_ucap *ucap)
{
	ucap->busy = true;
	uvd_unlock(&ucaps->lock);
}

static void node_work_end(struct uvd_ucaps *ucaps, struct uvd_ucap *ucap)
{
	uvd_lock(&ucaps->lock);
	ucap->busy = false;
	pthread_cond_broadcast(&ucaps->changed);
}

static int ucap_node_make(struct uvd_engine *engine, struct uvd_ucap *ucap)
{
	struct uvd_ucaps *ucaps = &engine->ucaps;
	struct uvd_ucap_node node = {};
	int err;

	node_work_begin(ucaps, ucap);
	err = ucaps->ops->create(engine, ucap->name, ucap - ucaps->list, &node);
	node_work_end(ucaps, ucap);
	if (!err)
		ucap->node = node;
	return err;
}

/* uvd_ucap_get(). Caller holds ucaps->lock, which is released meanwhile. */
static int ucap_get_locked(struct uvd_engine *engine, const char *name)
{
	struct uvd_ucaps *ucaps = &engine->ucaps;
	struct uvd_ucap *ucap;
	int err;

	if (!uvd_ucap_name_ok(name))
		return -EINVAL;
	ucap = ucap_find_by_name(ucaps, name);
	if (!ucap) {
		if (ucaps->num == UVD_MAX_UCAPS)
			return -ENOSPC;
		ucap = &ucaps->list[ucaps->num++];
		strcpy(ucap->name, name);
	}
	while (ucap->busy)
		pthread_cond_wait(&ucaps->changed, &ucaps->lock);
	if (!ucap->refs && ucaps->ops) {
		err = ucap_node_make(engine, ucap);
		if (err)
			return err;
	}
	ucap->refs++;
	return ucap - ucaps->list;
}

/* uvd_ucap_put(). Caller holds ucaps->lock, which is released meanwhile. */
static void ucap_put_locked(struct uvd_engine *engine, unsigned int bit)
{
	struct uvd_ucaps *ucaps = &engine->ucaps;
	struct uvd_ucap *ucap = &ucaps->list[bit];

	if (--ucap->refs || !ucaps->ops)
		return;
	node_work_begin(ucaps, ucap);
	ucaps->ops->remove(engine, &ucap->node);
	node_work_end(ucaps, ucap);
}

int uvd_ucap_get(struct uvd_engine *engine, const char *name)
{
	int bit;

	uvd_lock(&engine->ucaps.lock);
	bit = ucap_get_locked(engine, name);
	uvd_unlock(&engine->ucaps.lock);
	return bit;
}

void uvd_ucap_put(struct uvd_engine *engine, unsigned int bit)
{
	uvd_lock(&engine->ucaps.lock);
	ucap_put_locked(engine, bit);
	uvd_unlock(&engine->ucaps.lock);
}

/* ---- capabilities of a device ------------------------------------------------------------------------------------ */

int uvd_device_create_ucap(struct uvd_device *dev, const char *name)
{
	struct uvd_ucaps *ucaps = &dev->engine->ucaps;
	int bit = -EOVERFLOW;

	uvd_lock(&ucaps->lock);
	bit = ucap_get_locked(dev->engine, name);
	if (bit >= 0 && dev->ucap_refs[bit] == UINT8_MAX) {
		ucap_put_locked(dev->engine, bit);
		bit = -EOVERFLOW;
	}
	if (bit >= 0)
		dev->ucap_refs[bit]++;
	uvd_unlock(&ucaps->lock);
	return bit;
}

void uvd_device_remove_ucap(struct uvd_device *dev, const char *name)
{
	struct uvd_ucaps *ucaps = &dev->engine->ucaps;
	struct uvd_ucap *ucap;

	uvd_lock(&ucaps->lock);
	ucap = ucap_find_by_name(ucaps, name);
	if (ucap && dev->ucap_refs[ucap - ucaps->list]) {
		dev->ucap_refs[ucap - ucaps->list]--;
		ucap_put_locked(dev->engine, ucap - ucaps->list);
	}
	uvd_unlock(&ucaps->lock);
}

void uvd_device_remove_ucaps(struct uvd_device *dev)
{
	struct uvd_ucaps *ucaps = &dev->engine->ucaps;

	uvd_lock(&ucaps->lock);
	for (unsigned int bit = 0; bit < ucaps->num; bit++)
		while (dev->ucap_refs[bit]) {
			dev->ucap_refs[bit]--;
			ucap_put_locked(dev->engine, bit);
		}
	uvd_unlock(&ucaps->lock);
}

/* ---- capabilities of a client ------------------------------------------------------------------------------------ */

static bool is_open_of(const struct uvd_ucap_node *node, const struct stat *st)
{
	/* A block device may have the same number. */
	if (node->rdev)
		return S_ISCHR(st->st_mode) && st->st_rdev == node->rdev;
	return st->st_dev == node->dev && st->st_ino == node->ino;
}

/*
 * Caller holds ucaps->lock. Returns the bit of the capability whose node the client's file is; -EINVAL: of none;
 * -EAGAIN: of none so far, but a node is being made or removed.
 */
static int bit_of_file(struct uvd_ucaps *ucaps, const struct stat *st)
{
	bool busy = false;

	for (unsigned int i = 0; i < ucaps->num && ucaps->ops; i++) {
		if (ucaps->list[i].refs && is_open_of(&ucaps->list[i].node, st))
			return i;
		busy = busy || ucaps->list[i].busy;
	}
	return busy ? -EAGAIN : -EINVAL;
}

/* A client may have opened a node that create() has made but not returned yet, so this waits for create(). */
static int wait_for_bit_of_file(struct uvd_ucaps *ucaps, const struct stat *st)
{
	int bit;

	uvd_lock(&ucaps->lock);
	while ((bit = bit_of_file(ucaps, st)) == -EAGAIN)
		pthread_cond_wait(&ucaps->changed, &ucaps->lock);
	uvd_unlock(&ucaps->lock);
	return bit;
}

int uvd_ucaps_of_fds(struct uvd_engine *engine, struct uvd_caller *c, const int32_t *fds, unsigned int num,
		     uint64_t *mask)
{
	struct uvd_ucaps *ucaps = &engine->ucaps;
	int32_t last = -1;
	struct stat st;
	int ret;

	*mask = 0;
	for (unsigned int i = 0; i < num; i++) {
		/* A client sends a list that repeats one number at no cost: do not look up each. */
		if (i && fds[i] == last)
			continue;
		last = fds[i];
		ret = uvd_caller_fget(c, last, &st);
		if (ret)
			return ret;
		/* Lock only now: the look at the client's file can take as long as its file system likes. */
		ret = wait_for_bit_of_file(ucaps, &st);
		if (ret < 0)
			return ret;
		*mask |= 1ULL << ret;
	}
	return 0;
}
