/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The life of one object: begin, commit or abort, look-up, destruction (the kernel's rdma_core.c). */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdlib.h>
#include <unistd.h>

#include "account/account.h"
#include "client/client.h"
#include "core/internal.h"
#include "util/util.h"

/* ---- what plug-ins see of it ------------------------------------------------------------------------------------- */

void *uvd_uobject_object(const struct uvd_uobject *uobj)
{
	return uobj->object;
}

void uvd_uobject_set_object(struct uvd_uobject *uobj, void *object)
{
	uobj->object = object;
	uobj->made = true;
}

uint32_t uvd_uobject_id(const struct uvd_uobject *uobj)
{
	return uobj->id;
}

struct uvd_ibdev *uvd_uobject_ibdev(const struct uvd_uobject *uobj)
{
	return &uobj->file->dev->ib;
}

struct uvd_context *uvd_uobject_ucontext(const struct uvd_uobject *uobj)
{
	return atomic_load(&uobj->file->context);
}

/* ---- charges to the opener's account ----------------------------------------------------------------------------- */

int uvd_uobject_charge(struct uvd_uobject *uobj, uint64_t bytes)
{
	int ret = uvd_account_charge(uobj->file->account, UVD_RES_BYTES, bytes);

	if (!ret)
		uobj->bytes += bytes;
	return ret;
}

void uvd_uobject_uncharge(struct uvd_uobject *uobj, uint64_t bytes)
{
	uobj->bytes -= bytes;
	uvd_account_uncharge(uobj->file->account, UVD_RES_BYTES, bytes);
}

/* Returns the limit of the object's type, or that of all objects if its type has none, as in a plug-in's namespace. */
static enum uvd_resource uobject_resource(const struct uvd_object_row *row)
{
	return row->id < UVD_MAX_COUNTED_TYPES ? UVD_RES_OBJECT + row->id : UVD_RES_OBJECTS;
}

static void uobject_uncharge_count(const struct uvd_object_row *row, struct uvd_account *account)
{
	if (uobject_resource(row) != UVD_RES_OBJECTS)
		uvd_account_uncharge(account, uobject_resource(row), 1);
	uvd_account_uncharge(account, UVD_RES_OBJECTS, 1);
}

/* ib_rdmacg_try_charge(): as in the kernel, after the handle is allocated. On error *why says what refused it. */
static int uobject_charge_all(struct uvd_uobject *uobj, struct uvd_refusal *why)
{
	const struct uvd_object_row *row = uobj->row;
	struct uvd_account *account = uobj->file->account;
	uint64_t bytes = sizeof(*uobj);
	int ret;

	*why = (struct uvd_refusal){};
	if (!account)
		return 0;
	if (row->size)
		bytes += *(const size_t *)((const char *)uobj->file->dev->ib.ops + row->size);
	ret = uvd_account_charge_why(account, UVD_RES_OBJECTS, 1, why);
	if (ret)
		return ret;
	if (uobject_resource(row) != UVD_RES_OBJECTS) {
		ret = uvd_account_charge_why(account, uobject_resource(row), 1, why);
		if (ret) {
			uvd_account_uncharge(account, UVD_RES_OBJECTS, 1);
			return ret;
		}
	}
	ret = uvd_uobject_charge(uobj, bytes);
	if (ret)
		uobject_uncharge_count(row, account);
	return ret;
}

static void uobject_uncharge_all(struct uvd_uobject *uobj)
{
	struct uvd_account *account = uobj->file->account;

	if (!account)
		return;
	if (uobj->registered)
		uvd_account_uncharge(account, UVD_RES_REGISTERED, uobj->registered);
	uvd_uobject_release_held(uobj, uobj->held);
	uvd_uobject_uncharge(uobj, uobj->bytes);
	uobject_uncharge_count(uobj->row, account);
}

/* ---- references and locks ---------------------------------------------------------------------------------------- */

void uvd_uobject_ref(struct uvd_uobject *uobj)
{
	atomic_fetch_add_explicit(&uobj->ref, 1, memory_order_relaxed);
}

void uvd_uobject_unref(struct uvd_uobject *uobj)
{
	if (atomic_fetch_sub_explicit(&uobj->ref, 1, memory_order_acq_rel) != 1)
		return;
	if (uobj->event_file)
		uvd_event_file_put(uobj->event_file);
	if (uobj->channel)
		uvd_event_file_put(uobj->channel);
	uobject_uncharge_all(uobj);
	free(uobj);
}

/* Never waits: a conflict is -EBUSY (handle-05). Only READ and WRITE lock. */
static int try_lock(struct uvd_uobject *uobj, enum uvd_uobj_access access)
{
	int users = 0;

	if (access == UVD_UOBJ_WRITE)
		return atomic_compare_exchange_strong_explicit(&uobj->usecnt, &users, -1, memory_order_acquire,
							       memory_order_relaxed)
			       ? 0
			       : -EBUSY;
	if (access != UVD_UOBJ_READ)
		return 0;
	return atomic_inc_unless_negative(&uobj->usecnt) ? 0 : -EBUSY;
}

static void unlock_exclusive(struct uvd_uobject *uobj)
{
	atomic_store_explicit(&uobj->usecnt, 0, memory_order_release);
}

static struct list_head *uobject_list(struct uvd_uobject *uobj)
{
	return uobj->disassociated ? &uobj->file->disassociated : &uobj->file->objects;
}

unsigned int uvd_object_count_index(unsigned int id)
{
	return (id >> UVERBS_ID_NS_SHIFT ? UVD_OBJECT_COUNTS / 2 : 0) + id % (UVD_OBJECT_COUNTS / 2);
}

/* Counts objects for the daemon's status, which would have to walk the lists. Remaining handles do not count. */
static void uobject_count(struct uvd_uobject *uobj, int by)
{
	const unsigned int index = uvd_object_count_index(uobj->row->id);
	struct uvd_object_count *count = &uobj->file->dev->object_counts[index];

	if (uobj->disassociated)
		return;
	if (atomic_load_explicit(&count->state, memory_order_relaxed) == UVD_COUNT_UNUSED)
		uvd_object_count_name(count, uobj->row->name);
	atomic_fetch_add_explicit(&count->num, by, memory_order_relaxed);
	atomic_fetch_add_explicit(&uobj->file->object_counts[index], by, memory_order_relaxed);
	atomic_fetch_add_explicit(&uobj->file->num_objects, by, memory_order_relaxed);
}

static void uobject_list_add(struct uvd_uobject *uobj)
{
	uobject_count(uobj, 1);
	list_add(&uobj->of_file, uobject_list(uobj));
}

static void uobject_list_del(struct uvd_uobject *uobj)
{
	uobject_count(uobj, -1);
	list_del_init(&uobj->of_file);
}

/* Adds the object to the file's lists. Caller holds file->lock. */
static void link_uobject(struct uvd_uobject *uobj)
{
	struct uvd_file *file = uobj->file;

	uobject_list_add(uobj);
	uvd_uobject_take_facts(uobj);
	if (uobj->row->cls == UVD_CLASS_FD) {
		uobj->fd_next = file->fd_objects;
		file->fd_objects = uobj;
	}
	uobj->committed = true;
}

/* Frees the handle, or the place of an event file, that begin reserved. Caller holds file->lock. */
static void release_id(struct uvd_uobject *uobj)
{
	if (uobj->row->cls == UVD_CLASS_FD)
		uobj->file->num_event_files--;
	else
		uvd_handles_free(&uobj->file->handles, uobj->id);
}

void uvd_uobject_unlink(struct uvd_uobject *uobj)
{
	struct uvd_file *file = uobj->file;
	struct uvd_uobject **p = &file->fd_objects;

	uobject_list_del(uobj);
	if (uobj->row->cls == UVD_CLASS_FD) {
		while (*p != uobj)
			p = &(*p)->fd_next;
		*p = uobj->fd_next;
	}
	uobj->committed = false;
	release_id(uobj);
}

void uvd_uobject_disassociate(struct uvd_uobject *uobj)
{
	uobject_list_del(uobj);
	uobj->disassociated = true;
	uobject_list_add(uobj);
	unlock_exclusive(uobj);
}

/* ---- begin, commit, abort ---------------------------------------------------------------------------------------- */

/* Stores all event files of the file, with a reference each. Returns how many: UVD_MAX_EVENT_FILES at most. */
static unsigned int event_files(struct uvd_file *file, struct uvd_uobject **found)
{
	unsigned int n = 0;

	uvd_lock(&file->lock);
	for (struct uvd_uobject *uobj = file->fd_objects; uobj; uobj = uobj->fd_next) {
		uvd_uobject_ref(uobj);
		found[n++] = uobj;
	}
	uvd_unlock(&file->lock);
	return n;
}

/*
 * Tells for each event file whether a client still has its end open; true if that cannot be found out. We have a duplicate
 * of that end, so only a look at all processes tells.
 */
static void event_files_look(struct uvd_file *file, struct uvd_uobject *const *found, unsigned int n, bool *used)
{
	struct uvd_engine *engine = file->dev->engine;
	uint64_t inos[UVD_MAX_EVENT_FILES], cpu_ns = 0;
	int err;

	for (unsigned int i = 0; i < n; i++)
		inos[i] = uvd_event_file_ino(found[i]->event_file);
	err = engine->sockets_in_use ? engine->sockets_in_use(engine, inos, n, used, &cpu_ns)
				     : uvd_sockets_in_use(getpid(), inos, n, used);
	for (unsigned int i = 0; err && i < n; i++)
		used[i] = true;
	uvd_account_spend(file->account, cpu_ns);
}

/*
 * Destroys the event files that the client has closed. The kernel does so at the last close, which we do not see.
 * Caller holds destroy_lock for reading.
 */
static void collect_event_files(struct uvd_file *file)
{
	struct uvd_uobject *found[UVD_MAX_EVENT_FILES];
	bool used[UVD_MAX_EVENT_FILES];
	unsigned int n;

	n = event_files(file, found);
	if (n)
		event_files_look(file, found, n, used);
	for (unsigned int i = 0; i < n; i++) {
		if (!used[i] && !try_lock(found[i], UVD_UOBJ_WRITE)) {
			uvd_uobject_end(found[i], UVD_REMOVE_CLOSE);
			uvd_lock(&file->lock);
			uvd_uobject_unlink(found[i]);
			uvd_unlock(&file->lock);
			uvd_uobject_unref(found[i]);
		}
		uvd_uobject_unref(found[i]);
	}
}

/* Looks for closed event files at every 64th attempt only, successful or not, because it is slow. */
static int reserve_event_file(struct uvd_file *file)
{
	bool collect, full;

	uvd_lock(&file->lock);
	collect = ++file->event_files_made % 64 == 0;
	uvd_unlock(&file->lock);
	if (collect)
		collect_event_files(file);
	uvd_lock(&file->lock);
	full = file->num_event_files >= UVD_MAX_EVENT_FILES;
	if (!full)
		file->num_event_files++;
	uvd_unlock(&file->lock);
	return full ? -EMFILE : 0;
}

/* A doorbell in a log is whole if no word of it is 0: so no object that it can name has handle 0. */
static int reserve_handle(struct uvd_uobject *uobj)
{
	struct uvd_file *file = uobj->file;
	int err;

	uvd_lock(&file->lock);
	err = uvd_handles_alloc(&file->handles, &uobj->id);
	if (!err && !uobj->id && file->logged && file->logged == uobj->row->id) {
		err = uvd_handles_alloc(&file->handles, &uobj->id);
		uvd_handles_free(&file->handles, 0); /* if there is no other handle, there is none */
	}
	uvd_unlock(&file->lock);
	return err;
}

static int uobject_begin(struct uvd_file *file, const struct uvd_object_row *row, const struct uvd_asker *asker,
			 struct uvd_uobject **out)
{
	struct uvd_refusal why;
	struct uvd_uobject *uobj;
	int err;

	if (row->cls == UVD_CLASS_NONE)
		return -EINVAL;
	if (!uvd_rwsem_try_read(&file->destroy_lock))
		return -EIO;
	uobj = uvd_zalloc(sizeof(*uobj));
	if (!uobj) {
		err = -ENOMEM;
		goto unlock;
	}
	uobj->file = file;
	uobj->row = row;
	atomic_init(&uobj->ref, 1);
	atomic_init(&uobj->usecnt, -1);
	err = row->cls == UVD_CLASS_FD ? reserve_event_file(file) : reserve_handle(uobj);
	if (err)
		goto free;
	err = uobject_charge_all(uobj, &why);
	if (err && file->dev->engine->settle) {
		/* Files that the user has closed already may still be charged for. */
		file->dev->engine->settle(file->dev->engine);
		err = uobject_charge_all(uobj, &why);
	}
	if (err)
		goto release;
	*out = uobj;
	return 0;
release:
	uvd_file_over_quota(file, asker, &why);
	uvd_lock(&file->lock);
	release_id(uobj);
	uvd_unlock(&file->lock);
free:
	free(uobj);
unlock:
	uvd_rwsem_read_done(&file->destroy_lock);
	return err;
}

int uvd_uobject_begin_by(struct uvd_file *file, const struct uvd_object_row *row, const struct uvd_asker *asker,
			 struct uvd_uobject **out)
{
	if (asker->early)
		return uobject_begin(file, row, asker, out);
	if (atomic_load(&file->dev->gone))
		return -EIO;
	if (!atomic_load_explicit(&file->context, memory_order_acquire))
		return -EINVAL;
	return uobject_begin(file, row, asker, out);
}

int uvd_uobject_begin(struct uvd_file *file, const struct uvd_object_row *row, struct uvd_uobject **out)
{
	return uvd_uobject_begin_by(file, row, &(struct uvd_asker){}, out);
}

void uvd_uobject_commit(struct uvd_uobject *uobj)
{
	struct uvd_file *file = uobj->file;

	/* Not later: another thread of the client may end the object as soon as it is linked. */
	if (uvd_is_watched(&file->dev->engine->observers)) {
		uvd_uobject_take_facts(uobj);
		uvd_observe_made(uobj);
	}
	uvd_lock(&file->lock);
	link_uobject(uobj);
	unlock_exclusive(uobj);
	if (uobj->row->cls == UVD_CLASS_IDR) {
		uvd_handles_set(&file->handles, uobj->id, uobj);
	} else if (uobj->row->id == UVERBS_OBJECT_ASYNC_EVENT && !file->default_async) {
		file->default_async = uvd_event_file_ref(uobj->event_file);
	}
	uvd_unlock(&file->lock);
	uvd_rwsem_read_done(&file->destroy_lock);
}

int uvd_uobject_end(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	const unsigned int events = uvd_uobject_events(uobj);
	int err;

	if (!uobj->object && uobj->row->cls != UVD_CLASS_FD)
		return 0;
	err = uobj->row->destroy ? uobj->row->destroy(uobj, why) : 0;
	if (err)
		return err;
	uobj->object = NULL;
	if (uvd_is_watched(&uobj->file->dev->engine->observers))
		uvd_observe_ended(uobj, why, events);
	return 0;
}

void uvd_uobject_abort(struct uvd_uobject *uobj, bool hw)
{
	struct uvd_file *file = uobj->file;

	/* If the backend refuses to destroy its object, the handle stays until the file is closed (handle-10). */
	if (hw && uvd_uobject_end(uobj, UVD_REMOVE_ABORT)) {
		uvd_uobject_commit(uobj);
		return;
	}
	uvd_lock(&file->lock);
	release_id(uobj);
	uvd_unlock(&file->lock);
	uvd_rwsem_read_done(&file->destroy_lock);
	uvd_uobject_unref(uobj);
}

void uvd_uobject_swap_registered(struct uvd_uobject *uobj, struct uvd_uobject *fresh)
{
	uint64_t registered = uobj->registered;

	uobj->registered = fresh->registered;
	fresh->registered = registered;
}

void uvd_uobject_swap(struct uvd_uobject *uobj, struct uvd_uobject *fresh)
{
	struct uvd_file *file = uobj->file;
	void *object = uobj->object;

	uvd_lock(&file->lock);
	uobj->object = fresh->object;
	fresh->object = object;
	uvd_uobject_swap_registered(uobj, fresh);
	uobject_list_del(uobj);
	uobject_list_add(uobj);
	uvd_uobject_take_facts(uobj);
	uvd_unlock(&file->lock);
}

/* ---- look-up ----------------------------------------------------------------------------------------------------- */

/* Takes over the caller's reference: returns it in *out, or puts it on error. */
static int lock_found(struct uvd_uobject *uobj, enum uvd_uobj_access access, struct uvd_uobject **out)
{
	int err;

	if (access != UVD_UOBJ_DESTROY && atomic_load(&uobj->file->dev->gone))
		err = -EIO;
	else
		err = try_lock(uobj, access);
	if (err)
		uvd_uobject_unref(uobj);
	else
		*out = uobj;
	return err;
}

int uvd_uobject_get(struct uvd_file *file, const struct uvd_object_row *row, int64_t id, enum uvd_uobj_access access,
		    struct uvd_uobject **out)
{
	struct uvd_uobject *uobj;

	if (id < 0 || (row && row->cls != UVD_CLASS_IDR))
		return -EINVAL;
	if (id > UINT32_MAX)
		return -ENOENT;
	uvd_lock(&file->lock);
	uobj = uvd_handles_get(&file->handles, id);
	if (uobj)
		uvd_uobject_ref(uobj);
	uvd_unlock(&file->lock);
	if (!uobj)
		return -ENOENT;
	if (row && uobj->row->id != row->id) {
		uvd_uobject_unref(uobj);
		return -EINVAL;
	}
	return lock_found(uobj, access, out);
}

int uvd_uobject_get_fd(struct uvd_file *file, struct uvd_caller *c, const struct uvd_object_row *row, int fd,
		       struct uvd_uobject **out)
{
	struct uvd_uobject *uobj;
	struct stat st;

	if (fd < 0 || uvd_caller_fstat(c, fd, &st))
		return -EBADF;
	uvd_lock(&file->lock);
	for (uobj = file->fd_objects; uobj; uobj = uobj->fd_next)
		if (uobj->row->id == row->id && uvd_event_file_is(uobj->event_file, &st))
			break;
	if (uobj)
		uvd_uobject_ref(uobj);
	uvd_unlock(&file->lock);
	return uobj ? lock_found(uobj, UVD_UOBJ_READ, out) : -EBADF;
}

void uvd_uobject_put(struct uvd_uobject *uobj, enum uvd_uobj_access access)
{
	if (access == UVD_UOBJ_READ)
		atomic_fetch_sub_explicit(&uobj->usecnt, 1, memory_order_release);
	else if (access == UVD_UOBJ_WRITE)
		unlock_exclusive(uobj);
	uvd_uobject_unref(uobj);
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

int uvd_uobject_destroy(struct uvd_uobject *uobj)
{
	struct uvd_file *file = uobj->file;
	int err;

	uvd_rwsem_read(&file->destroy_lock);
	err = try_lock(uobj, UVD_UOBJ_WRITE);
	if (err)
		goto unlock;
	err = uvd_uobject_end(uobj, UVD_REMOVE_DESTROY);
	if (err) {
		unlock_exclusive(uobj);
		goto unlock;
	}
	/* Leave it locked: another thread that has looked it up already must get EBUSY. */
	uvd_lock(&file->lock);
	uvd_uobject_unlink(uobj);
	uvd_unlock(&file->lock);
	uvd_uobject_unref(uobj);
unlock:
	uvd_rwsem_read_done(&file->destroy_lock);
	return err;
}
