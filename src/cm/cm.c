/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The connection manager of an engine: its lock, its files, its identifiers. */
#include <errno.h>
#include <stdlib.h>
#include "account/account.h"
#include "cm/internal.h"
#include "cm/message.h"

void cm_lock(struct uvd_cm *cm)
{
	uvd_lock(&cm->lock);
}

void cm_unlock(struct uvd_cm *cm)
{
	cm_local_deliver(cm);
	uvd_unlock(&cm->lock);
}

/* ---- the manager --------------------------------------------------------------------------------------------------- */

static struct list_head *buckets_new(void)
{
	struct list_head *buckets = calloc(CM_BUCKETS, sizeof(*buckets));

	for (unsigned int i = 0; buckets && i < CM_BUCKETS; i++)
		INIT_LIST_HEAD(&buckets[i]);
	return buckets;
}

static void cm_tables_free(struct uvd_cm *cm)
{
	free(cm->by_comm);
	free(cm->by_remote);
	free(cm->by_remote_qp);
	free(cm->by_port);
	free(cm->ids.entries);
	free(cm->mcasts.entries);
	uvd_cm_tree_free(cm->tree);
	free(cm);
}

struct uvd_cm *uvd_cm_new(struct uvd_engine *engine, int *err)
{
	struct uvd_cm *cm = calloc(1, sizeof(*cm));

	*err = -ENOMEM;
	if (!cm)
		return NULL;
	cm->by_comm = buckets_new();
	cm->by_remote = buckets_new();
	cm->by_remote_qp = buckets_new();
	cm->by_port = buckets_new();
	cm->tree = uvd_cm_tree_new(engine->log, err);
	if (!cm->by_comm || !cm->by_remote || !cm->by_remote_qp || !cm->by_port || !cm->tree) {
		cm_tables_free(cm);
		return NULL;
	}
	cm->engine = engine;
	cm->carrier = &cm_local_carrier;
	cm->comm_mask = uvd_random(UINT32_MAX);
	pthread_mutex_init(&cm->lock, NULL);
	INIT_LIST_HEAD(&cm->messages);
	cm->ephemeral = uvd_local_ports();
	cm_timers_init(cm);
	cm_devices_init(cm);
	*err = 0;
	return cm;
}

void uvd_cm_free(struct uvd_cm *cm)
{
	if (!cm)
		return;
	cm_timers_fini(cm);
	cm_devices_fini(cm);
	pthread_mutex_destroy(&cm->lock);
	cm_tables_free(cm);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

static int numbers_grow(struct cm_numbers *numbers)
{
	const size_t size = numbers->size ? 2 * numbers->size : 64;
	void **entries = realloc(numbers->entries, size * sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = numbers->size; i < size; i++)
		entries[i] = NULL;
	numbers->entries = entries;
	numbers->size = size;
	return 0;
}

int cm_number_new(struct cm_numbers *numbers, void *entry, uint32_t *number)
{
	size_t n = numbers->lowest;

	while (n < numbers->size && numbers->entries[n])
		n++;
	if (n == numbers->size && numbers_grow(numbers))
		return -ENOMEM;
	numbers->entries[n] = entry;
	numbers->lowest = n + 1;
	*number = n;
	return 0;
}

void *cm_number_find(const struct cm_numbers *numbers, uint32_t number)
{
	return number < numbers->size ? numbers->entries[number] : NULL;
}

void cm_number_free(struct cm_numbers *numbers, uint32_t number)
{
	numbers->entries[number] = NULL;
	if (number < numbers->lowest)
		numbers->lowest = number;
}

/* ---- identifiers --------------------------------------------------------------------------------------------------- */

struct cm_id *cm_id_new(struct uvd_cm_file *file, uint16_t ps, uint8_t qp_type, int *err)
{
	struct cm_id *id;

	*err = uvd_account_charge(file->account, UVD_RES_CM_IDS, 1);
	if (*err)
		return NULL;
	id = calloc(1, sizeof(*id));
	*err = id ? cm_number_new(&file->cm->ids, id, &id->number) : -ENOMEM;
	if (*err) {
		uvd_account_uncharge(file->account, UVD_RES_CM_IDS, 1);
		free(id);
		return NULL;
	}
	id->account = file->account ? uvd_account_ref(file->account) : NULL;
	id->cm = file->cm;
	id->file = file;
	id->ps = ps;
	id->qp_type = qp_type;
	id->psn = uvd_random(1 << 24);
	INIT_LIST_HEAD(&id->events);
	list_add_tail(&id->of_file, &file->ids);
	return id;
}

/* The groups of the identifier. A file has few of them beside its identifiers. */
static void id_leave_groups(struct cm_id *id)
{
	struct cm_mcast *mcast, *next;

	list_for_each_entry_safe(mcast, next, &id->file->mcasts, of_file)
		if (mcast->id == id)
			cm_mcast_leave(mcast);
}

void cm_id_destroy(struct cm_id *id)
{
	cm_events_drop_id(id);
	id_leave_groups(id);
	cm_conn_end(id, false);
	cm_port_put(id);
	cm_id_drop_device(id);
	list_del_init(&id->of_file);
	cm_number_free(&id->cm->ids, id->number);
	uvd_account_uncharge(id->account, UVD_RES_CM_IDS, 1);
	uvd_account_put(id->account);
	free(id);
}

int cm_id_get(struct uvd_cm_file *file, uint32_t number, struct cm_id **id)
{
	*id = cm_number_find(&file->cm->ids, number);
	if (!*id || (*id)->hidden)
		return -ENOENT;
	if ((*id)->file != file)
		return -EINVAL;
	return (*id)->state == CM_DEVICE_REMOVAL ? -ENXIO : 0;
}

int cm_id_get_bound(struct uvd_cm_file *file, uint32_t number, struct cm_id **id)
{
	int err = cm_id_get(file, number, id);

	return err ?: (*id)->device ? 0 : -EINVAL;
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

struct uvd_cm_file *uvd_cm_open(struct uvd_cm *cm, struct uvd_account *account, pid_t opener, bool privileged,
				const struct uvd_cm_file_ops *ops, void *owner, int *err)
{
	struct uvd_cm_file *file;

	*err = uvd_account_charge(account, UVD_RES_FILES, 1);
	if (*err)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file) {
		uvd_account_uncharge(account, UVD_RES_FILES, 1);
		*err = -ENOMEM;
		return NULL;
	}
	file->cm = cm;
	file->ref = 1;
	file->account = account ? uvd_account_ref(account) : NULL;
	uvd_watched_init(&file->watched, cm->engine, UVD_CM_NODE, UVD_NO_NUMBER, file->account);
	file->watched.privileged = privileged;
	file->watched.opened_by = opener;
	file->ops = ops;
	file->owner = owner;
	INIT_LIST_HEAD(&file->ids);
	INIT_LIST_HEAD(&file->mcasts);
	INIT_LIST_HEAD(&file->events);
	INIT_LIST_HEAD(&file->waiters);
	return file;
}

/* Lock held. */
static void file_put(struct uvd_cm_file *file)
{
	if (--file->ref)
		return;
	uvd_account_uncharge(file->account, UVD_RES_FILES, 1);
	uvd_account_put(file->account);
	free(file);
}

/* Destroys some identifiers. Others need the lock, and a file can have very many. Returns whether there are more. */
static bool file_destroy_some(struct uvd_cm_file *file)
{
	enum { AT_ONCE = 64 };
	bool more;

	cm_lock(file->cm);
	for (int i = 0; i < AT_ONCE && !list_empty(&file->ids); i++)
		cm_id_destroy(list_first_entry(&file->ids, struct cm_id, of_file));
	more = !list_empty(&file->ids);
	cm_unlock(file->cm);
	return more;
}

void uvd_cm_close(struct uvd_cm_file *file)
{
	struct uvd_cm *cm = file->cm;

	if (uvd_is_watched(&cm->engine->observers))
		uvd_observe_close(&file->watched);
	cm_lock(cm);
	file->closed = true;
	file->ops = NULL;
	cm_unlock(cm);
	while (file_destroy_some(file))
		;
	cm_lock(cm);
	file_put(file);
	cm_unlock(cm);
}

struct uvd_cm_file *uvd_cm_file_get(struct uvd_cm_file *file)
{
	cm_lock(file->cm);
	file->ref++;
	cm_unlock(file->cm);
	return file;
}

void uvd_cm_file_put(struct uvd_cm_file *file)
{
	struct uvd_cm *cm = file->cm;

	cm_lock(cm);
	file_put(file);
	cm_unlock(cm);
}

/* ---- who waits ----------------------------------------------------------------------------------------------------- */

bool uvd_cm_wait(struct uvd_cm_file *file, struct uvd_cm_waiter *waiter)
{
	bool waits;

	cm_lock(file->cm);
	waits = list_empty(&file->events);
	if (waits)
		list_add_tail(&waiter->of_file, &file->waiters);
	else
		INIT_LIST_HEAD(&waiter->of_file);
	cm_unlock(file->cm);
	return waits;
}

bool uvd_cm_wait_end(struct uvd_cm_file *file, struct uvd_cm_waiter *waiter)
{
	bool waited;

	cm_lock(file->cm);
	waited = !list_empty(&waiter->of_file);
	list_del_init(&waiter->of_file);
	cm_unlock(file->cm);
	return waited;
}

bool uvd_cm_has_events(struct uvd_cm_file *file)
{
	bool has;

	cm_lock(file->cm);
	has = !list_empty(&file->events);
	cm_unlock(file->cm);
	return has;
}
