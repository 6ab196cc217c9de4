/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One open of a device: open and close, and operations on all of its objects. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <uverbsd/log.h>

#include "account/account.h"
#include "client/client.h"
#include "core/internal.h"
#include "explain/explain.h"
#include "util/util.h"

/* Adds the file to its device's list. -EIO: the device is gone, and its removal would miss the file. */
static int list_file(struct uvd_file *file)
{
	struct uvd_device *dev = file->dev;

	uvd_lock(&dev->lock);
	if (atomic_load(&dev->gone)) {
		uvd_unlock(&dev->lock);
		return -EIO;
	}
	list_add(&file->of_device, &dev->files);
	dev->num_files++;
	file->counter = dev->files_opened++ % UVD_CALL_COUNTERS;
	uvd_unlock(&dev->lock);
	return 0;
}

void uvd_file_unlist(struct uvd_file *file)
{
	struct uvd_device *dev = file->dev;

	if (list_empty(&file->of_device))
		return;
	list_del_init(&file->of_device);
	dev->num_files--;
}

/* The bytes charged for an open file: itself, its context, and 1024 for what the transport keeps of it. */
static uint64_t file_bytes(const struct uvd_device *dev)
{
	return sizeof(struct uvd_file) + dev->ib.ops->size_context + 1024;
}

/* Returns 0, and *payer is the account that is charged, a reference or NULL; or a negative errno. */
static int file_charge(const struct uvd_device *dev, struct uvd_account *account, struct uvd_account **payer)
{
	int ret = uvd_device_charge_file(dev, account, payer);

	if (ret || !account)
		return ret;
	ret = uvd_account_charge(*payer, UVD_RES_BYTES, file_bytes(dev));
	if (ret) {
		uvd_account_uncharge(*payer, UVD_RES_FILES, 1);
		uvd_account_put(*payer);
	}
	return ret;
}

/* Puts the reference, too. */
static void file_uncharge(const struct uvd_device *dev, struct uvd_account *account)
{
	if (!account)
		return;
	uvd_account_uncharge(account, UVD_RES_BYTES, file_bytes(dev));
	uvd_account_uncharge(account, UVD_RES_FILES, 1);
	uvd_account_put(account);
}

struct uvd_file *uvd_file_open(struct uvd_device *dev, struct uvd_account *account, int *err)
{
	struct uvd_account *payer;
	struct uvd_file *file;

	*err = file_charge(dev, account, &payer);
	if (*err)
		return NULL;
	file = uvd_zalloc(sizeof(*file));
	if (!file) {
		file_uncharge(dev, payer);
		*err = -ENOMEM;
		return NULL;
	}
	file->account = payer;
	file->handles.account = payer;
	file->dev = uvd_device_get(dev);
	uvd_watched_init(&file->watched, dev->engine, dev->config.ibdev, dev->config.number, payer);
	uvd_lock(&dev->lock);
	file->trees = uvd_trees_get(dev->trees);
	uvd_unlock(&dev->lock);
	atomic_init(&file->tree, file->trees->plain);
	atomic_init(&file->ref, 1);
	INIT_LIST_HEAD(&file->of_device);
	INIT_LIST_HEAD(&file->objects);
	INIT_LIST_HEAD(&file->disassociated);
	uvd_rwsem_init(&file->destroy_lock);
	pthread_mutex_init(&file->lock, NULL);
	pthread_mutex_init(&file->context_lock, NULL);
	pthread_mutex_init(&file->mcast_lock, NULL);
	pthread_mutex_init(&file->allow_lock, NULL);
	atomic_init(&file->context, NULL);
	uvd_file_allow_begin(file);

	*err = list_file(file);
	if (!*err)
		return file;
	uvd_file_put(file);
	return NULL;
}

/* Destroys all objects that it can, newest first. stays: the file and its handles stay. Was one destroyed? */
static bool cleanup_pass(struct uvd_file *file, enum uvd_remove_reason why, bool stays)
{
	struct uvd_uobject *uobj, *next;
	bool progress = false;

	list_for_each_entry_safe(uobj, next, &file->objects, of_file) {
		atomic_store(&uobj->usecnt, -1);
		if (uvd_uobject_end(uobj, why) && why != UVD_REMOVE_DRIVER_FAILURE) {
			atomic_store(&uobj->usecnt, 0);
			continue;
		}
		progress = true;
		uvd_lock(&file->lock);
		if (stays)
			uvd_uobject_disassociate(uobj);
		else
			uvd_uobject_unlink(uobj);
		uvd_unlock(&file->lock);
		if (!stays)
			uvd_uobject_unref(uobj);
	}
	return progress;
}

/*
 * An object that others refer to is EBUSY. The same pass destroys those others, so the next one succeeds. Returns the
 * type of an object that the backend refuses to destroy, which is leaked; NULL: there is none. The handle of a leaked
 * object stays until the file goes: the backend can report an event of the object until its context has ended.
 */
static const char *file_cleanup(struct uvd_file *file, enum uvd_remove_reason why)
{
	const bool stays = why == UVD_REMOVE_DRIVER_REMOVE;
	const char *leaked;

	while (!list_empty(&file->objects) && cleanup_pass(file, why, stays))
		;
	if (list_empty(&file->objects))
		return NULL;
	leaked = list_first_entry(&file->objects, struct uvd_uobject, of_file)->row->name;
	cleanup_pass(file, UVD_REMOVE_DRIVER_FAILURE, true);
	return leaked;
}

/* Caller holds destroy_lock: a file with a context has not been closed for the observers. */
static void file_explain_removal(struct uvd_file *file)
{
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_EVENT,
		.why = uvd_why(DEVICE_FATAL, { 0 }),
		.event = IBV_EVENT_DEVICE_FATAL,
	};

	uvd_file_explain(file->dev, file, uvd_account_person(file->account), &e);
}

void uvd_file_destroy_hw(struct uvd_file *file, enum uvd_remove_reason why)
{
	struct uvd_device *dev = file->dev;
	struct uvd_context *context;
	const char *leaked;

	uvd_rwsem_write(&file->destroy_lock);
	if (why == UVD_REMOVE_DRIVER_REMOVE && atomic_load(&file->context))
		file_explain_removal(file);
	leaked = file_cleanup(file, why);
	context = atomic_exchange(&file->context, NULL);
	if (context) {
		uvd_trees_context_exit(file->trees, context, file->plugin_data);
		dev->ib.ops->dealloc_context(context);
		free(context);
	}
	uvd_rwsem_write_done(&file->destroy_lock);
	if (leaked)
		uvd_logf(dev->engine->log, UVD_WARN, "%s: the backend refuses to destroy %s: it is leaked",
			 dev->ib.config.ibdev, leaked);
}

void uvd_file_put(struct uvd_file *file)
{
	struct uvd_uobject *uobj, *next;

	if (atomic_fetch_sub(&file->ref, 1) != 1)
		return;
	list_for_each_entry_safe(uobj, next, &file->disassociated, of_file) {
		uvd_uobject_unlink(uobj);
		uvd_uobject_unref(uobj);
	}
	if (file->default_async)
		uvd_event_file_put(file->default_async);
	uvd_handles_fini(&file->handles);
	uvd_rwsem_fini(&file->destroy_lock);
	pthread_mutex_destroy(&file->lock);
	pthread_mutex_destroy(&file->context_lock);
	pthread_mutex_destroy(&file->mcast_lock);
	pthread_mutex_destroy(&file->allow_lock);
	file_uncharge(file->dev, file->account);
	uvd_trees_put(file->trees);
	uvd_device_put(file->dev);
	free(file);
}

void uvd_file_close(struct uvd_file *file)
{
	struct uvd_device *dev = file->dev;

	uvd_file_destroy_hw(file, UVD_REMOVE_CLOSE);
	if (uvd_is_watched(&dev->engine->observers))
		uvd_observe_close(&file->watched);
	uvd_lock(&dev->lock);
	uvd_file_unlist(file);
	uvd_unlock(&dev->lock);
	uvd_file_put(file);
}

unsigned int uvd_file_list(struct uvd_file *file, const struct uvd_object_row *row, uint32_t *ids, unsigned int max)
{
	struct uvd_uobject *uobj;
	unsigned int n = 0;

	uvd_lock(&file->lock);
	list_for_each_entry(uobj, &file->objects, of_file) {
		if (n == max)
			break;
		if (uobj->row->id == row->id)
			ids[n++] = uobj->id;
	}
	uvd_unlock(&file->lock);
	return n;
}

struct uvd_event_file *uvd_file_default_async(struct uvd_file *file)
{
	struct uvd_event_file *f;

	uvd_lock(&file->lock);
	f = file->default_async ? uvd_event_file_ref(file->default_async) : NULL;
	uvd_unlock(&file->lock);
	return f;
}

/* ---- asynchronous events ----------------------------------------------------------------------------------------- */

/* Posts the event to the file's asynchronous event files. Returns how many of them have no room for it. */
static unsigned int file_post_event(struct uvd_file *file, const struct ib_uverbs_async_event_desc *desc)
{
	unsigned int missed = 0;
	struct uvd_uobject *uobj;

	uvd_lock(&file->lock);
	for (uobj = file->fd_objects; uobj; uobj = uobj->fd_next)
		if (uobj->row->id == UVERBS_OBJECT_ASYNC_EVENT && uvd_event_file_post(uobj->event_file, desc))
			missed++;
	uvd_unlock(&file->lock);
	return missed;
}

int uvd_context_event(struct uvd_context *context, uint32_t type, uint64_t element)
{
	struct ib_uverbs_async_event_desc desc = { .element = element, .event_type = type };
	struct uvd_event_file *events = uvd_file_default_async(context->owner);
	int ret;

	if (!events)
		return -ENOENT;
	ret = uvd_event_file_post(events, &desc);
	uvd_event_file_put(events);
	return ret;
}

/* To nobody in particular: the event is of all clients. */
static void device_explain_event(struct uvd_device *dev, enum ibv_event_type type, uint8_t port)
{
	const bool is_port = type == IBV_EVENT_PORT_ERR;
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_EVENT,
		.why = is_port ? uvd_why(PORT_DOWN, { 0 }) : uvd_why(DEVICE_FATAL, { 0 }),
		.object = is_port ? "port" : NULL,
		.number = port,
		.event = type,
	};

	uvd_file_explain(dev, NULL, UVD_LOG_NO_USER, &e);
}

void uvd_device_event(struct uvd_ibdev *ib, enum ibv_event_type type, uint8_t port)
{
	struct ib_uverbs_async_event_desc desc = { .element = port, .event_type = type };
	struct uvd_device *dev = ib->owner;
	unsigned int missed = 0;
	struct uvd_file *file;

	uvd_lock(&dev->lock);
	list_for_each_entry(file, &dev->files, of_device)
		missed += file_post_event(file, &desc);
	uvd_unlock(&dev->lock);
	if (missed)
		uvd_log_limited(dev->engine->log, UVD_INFO, "%s: %u event files missed event %d of port %u",
				dev->config.ibdev, missed, type, port);
	if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_DEVICE_FATAL)
		device_explain_event(dev, type, port);
}
