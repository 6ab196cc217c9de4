/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects that have events. Each context knows its own by their addresses: the kernel reports an object by the number that
 * its maker has chosen. libibverbs chooses the object's address, but a client that has the context's device file can make
 * objects, too, with any number. So nobody follows such an address before it was found here.
 *
 * Such a client can also destroy our objects, and put its own in the place of their handles. libibverbs then destroys those
 * instead, hears of events that we have not had, and waits for their acknowledgement for ever. So in a context that was lent
 * to a thread of a client, a thread of its own carries out each destruction. If that takes too long, the thread and the
 * context are left as they are, with what is charged for them, and no further object of the context is destroyed. A user of whom
 * many contexts are left gets no more such threads: the next context is left at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "backends/verbs/verbs.h"

/* When a device's removal has used up its time, a destruction still has this: one of an honest client takes far less. */
#define GRACE UINT64_C(100000000) /* ns */

static struct list_head *objects_of(struct hca_context *context, uint64_t address)
{
	/* Fibonacci hashing: the low bits of an address are all alike. */
	return &context->objects[address * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

_Static_assert(HCA_OBJECT_LISTS == 1 << 8, "the hash has 8 bits");

void hca_objects_init(struct hca_context *context)
{
	for (int i = 0; i < HCA_OBJECT_LISTS; i++)
		INIT_LIST_HEAD(&context->objects[i]);
}

void hca_object_add(struct hca_context *context, struct hca_object *object, enum hca_kind kind, void *adapter)
{
	struct hca_device *dev = hca_device(context->context.dev);

	object->kind = kind;
	object->adapter = adapter;
	uvd_lock(&dev->lock);
	list_add_tail(&object->of_context, objects_of(context, (uintptr_t)adapter));
	uvd_unlock(&dev->lock);
}

struct hca_object *hca_object_find(struct hca_context *context, enum hca_kind kind, uint64_t address)
{
	struct hca_device *dev = hca_device(context->context.dev);
	struct hca_object *o, *found = NULL;

	uvd_lock(&dev->lock);
	list_for_each_entry(o, objects_of(context, address), of_context)
		if (o->kind == kind && (uintptr_t)o->adapter == address)
			found = o;
	uvd_unlock(&dev->lock);
	return found;
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

/* One destruction, and the thread that carries it out. The last of the two that leaves it frees it. */
struct end_job {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int (*destroy)(void *adapter);
	void *adapter;
	bool done, is_left; /* is_left: nobody waits for it any more */
	int ret, err; /* of destroy(), and errno */
};

static void job_free(struct end_job *job)
{
	pthread_mutex_destroy(&job->lock);
	pthread_cond_destroy(&job->cond);
	free(job);
}

static void *job_thread(void *arg)
{
	struct end_job *job = arg;
	const int ret = job->destroy(job->adapter), err = errno;
	bool is_left;

	pthread_mutex_lock(&job->lock);
	job->ret = ret;
	job->err = err;
	job->done = true;
	is_left = job->is_left;
	pthread_cond_signal(&job->cond);
	pthread_mutex_unlock(&job->lock);
	if (is_left)
		job_free(job);
	return NULL;
}

/* Until when a destruction that begins now may take. */
static uint64_t job_end(const struct hca_device *dev)
{
	const uint64_t now = uvd_now_ns(), end = atomic_load(&dev->end);

	if (!end)
		return now + dev->patience;
	return end > now + GRACE ? end : now + GRACE;
}

/* Waits. Returns false if the job is left. */
static bool job_wait(const struct hca_device *dev, struct end_job *job)
{
	uint64_t end = job_end(dev);
	bool done;

	pthread_mutex_lock(&job->lock);
	while (!job->done && uvd_cond_wait_until(&job->cond, &job->lock, end))
		;
	done = job->done;
	job->is_left = !done;
	pthread_mutex_unlock(&job->lock);
	return done;
}

/* Sets *ret and errno to what destroy() has left. Returns false if it did not come back in time. */
static bool destroy_in_thread(const struct hca_device *dev, const struct hca_object *object,
			      int (*destroy)(void *adapter), int *ret)
{
	struct end_job *job = uvd_zalloc(sizeof(*job));

	*ret = ENOMEM;
	if (!job)
		return true;
	pthread_mutex_init(&job->lock, NULL);
	uvd_cond_init(&job->cond);
	job->destroy = destroy;
	job->adapter = object->adapter;
	*ret = -uvd_thread_start(NULL, 0, job_thread, job);
	if (!*ret) {
		if (!job_wait(dev, job))
			return false;
		*ret = job->ret;
		errno = job->err;
	}
	job_free(job);
	return true;
}

struct hca_left {
	struct list_head of_device;
	uid_t user;
	unsigned int num;
};

/* Caller holds dev->lock. Returns NULL if none of the user's contexts is left. */
static struct hca_left *left_find(struct hca_device *dev, uid_t user)
{
	struct hca_left *left;

	list_for_each_entry(left, &dev->left, of_device)
		if (left->user == user)
			return left;
	return NULL;
}

/* Is there room for one more thread that may not come back? */
static bool left_has_room(struct hca_device *dev, const struct hca_context *context)
{
	const struct hca_left *left;
	bool room;

	uvd_lock(&dev->lock);
	left = left_find(dev, uvd_account_person(context->context.account));
	room = !left || left->num < dev->most_left;
	uvd_unlock(&dev->lock);
	return room;
}

static void left_add(struct hca_device *dev, const struct hca_context *context)
{
	const uid_t user = uvd_account_person(context->context.account);
	struct hca_left *left;

	uvd_lock(&dev->lock);
	left = left_find(dev, user);
	if (!left) {
		left = uvd_zalloc(sizeof(*left));
		if (left) {
			left->user = user;
			list_add(&left->of_device, &dev->left);
		}
	}
	if (left)
		left->num++;
	uvd_unlock(&dev->lock);
}

void hca_left_free(struct hca_device *dev)
{
	struct hca_left *left;

	while (!list_empty(&dev->left)) {
		left = list_first_entry(&dev->left, struct hca_left, of_device);
		list_del_init(&left->of_device);
		free(left);
	}
}

static int leave_context(struct hca_device *dev, struct hca_context *context)
{
	if (atomic_exchange(&context->stuck, true))
		return 0;
	left_add(dev, context);
	uvd_logf(dev->ibdev->log, UVD_WARN,
		 "%s: %s does not destroy an object of a client that has had its context's device file: the context "
		 "stays on the adapter until this process ends, and charged to the client's user",
		 dev->ibdev->config.ibdev, dev->hca);
	return 0;
}

static int object_destroy(struct hca_device *dev, struct hca_context *context, const struct hca_object *object,
			  int (*destroy)(void *adapter))
{
	int ret;

	if (!atomic_load(&context->lent))
		return hca_destroyed(dev, destroy(object->adapter));
	if (atomic_load(&context->stuck) || !left_has_room(dev, context) ||
	    !destroy_in_thread(dev, object, destroy, &ret))
		return leave_context(dev, context);
	return hca_destroyed(dev, ret);
}

/* The thread of events.c enters no context that is left: libibverbs may free the object that is stuck at any time. */
int hca_object_destroy(struct hca_context *context, struct hca_object *object, int (*destroy)(void *adapter))
{
	struct hca_device *dev = hca_device(context->context.dev);
	int ret;

	hca_events_pause(dev, context);
	ret = object_destroy(dev, context, object, destroy);
	if (!ret) {
		uvd_lock(&dev->lock);
		list_del_init(&object->of_context);
		uvd_unlock(&dev->lock);
	}
	if (!atomic_load(&context->stuck))
		hca_events_resume(dev, context);
	return ret;
}

void hca_objects_ending(struct uvd_ibdev *ibdev)
{
	struct hca_device *dev = hca_device(ibdev);

	atomic_store(&dev->end, uvd_now_ns() + dev->patience);
}
