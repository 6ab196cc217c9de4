/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A thread for each device relays the adapter's events to clients. It waits for nobody: the event files of clients take
 * an event or lose it at once.
 *
 * Trust: a client can have a copy of its context's device file (borrow.c), and make objects there by itself whose
 * asynchronous events have a number of its choice where libibverbs puts the address of its own object. So this thread
 * reads those events itself, and looks the number up among the objects that this backend has made in the context. No
 * client has a descriptor of a completion channel, so no CQ but those that libibverbs has made can report to it: their
 * events have true addresses. Nor has any client the device file of the device's own context.
 *
 * Lifetimes: the thread does not enter a context while an object of it is destroyed, and the destruction waits until the
 * thread has left the context (hca_events_pause()). So an object that was found stays until its handler has returned and
 * the event is acknowledged. All events that the thread has read are acknowledged when it leaves: libibverbs, which lets a
 * destruction wait for that, need not wait. A context that is being closed waits in the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <rdma/ib_user_verbs.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "backends/verbs/verbs.h"

/* The data that epoll reports: the number of a context, and which of its descriptors. The device's own context is 0. */
enum { EVENT_ASYNC, EVENT_COMPLETION, EVENT_STOP, EVENT_NODE, EVENT_KINDS };
enum { EVENTS_AT_ONCE = 64 };

static int events_watch(const struct hca_device *dev, int fd, uint64_t id, unsigned int kind)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = id * EVENT_KINDS + kind };
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || epoll_ctl(dev->epoll, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	return 0;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void adapter_is_gone(struct hca_device *dev)
{
	atomic_store(&dev->dead, true);
	if (dev->told)
		return;
	dev->told = true;
	uvd_logf(dev->ibdev->log, UVD_ERR, "%s: the adapter %s is gone; calls fail with EIO", dev->ibdev->config.ibdev,
		 dev->hca);
	dev->ibdev->event_handler(dev->ibdev, IBV_EVENT_DEVICE_FATAL, 0);
}

/*
 * An event of the device or of a port, which the kernel reports to each context: only the device's own relays it. The core
 * asks for the port by hca_take_port() and publishes it, before clients get the event.
 */
static void relay_device_event(struct hca_device *dev, const struct ibv_async_event *event)
{
	if (event->event_type == IBV_EVENT_DEVICE_FATAL)
		adapter_is_gone(dev);
	else
		dev->ibdev->event_handler(dev->ibdev, event->event_type, event->element.port_num);
}

/* Sets *kind to the objects that report events of this type. Returns false if the device or a port reports them. */
static bool event_kind(enum ibv_event_type type, enum hca_kind *kind)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		*kind = HCA_CQ;
		return true;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*kind = HCA_SRQ;
		return true;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*kind = HCA_QP;
		return true;
	case IBV_EVENT_WQ_FATAL:
		*kind = HCA_WQ;
		return true;
	default:
		return false;
	}
}

/* Passes the event on to the object's client, and acknowledges it. */
static void relay_object_event(struct hca_object *object, enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type };
	struct uvd_cq *cq;
	struct uvd_qp *qp;
	struct uvd_srq *srq;
	struct uvd_wq *wq;

	switch (object->kind) {
	case HCA_CQ:
		cq = &container_of(object, struct hca_cq, object)->cq;
		cq->event_handler(cq, type);
		event.element.cq = object->adapter;
		break;
	case HCA_SRQ:
		srq = &container_of(object, struct hca_srq, object)->srq;
		srq->event_handler(srq, type);
		event.element.srq = object->adapter;
		break;
	case HCA_QP:
		qp = &container_of(object, struct hca_qp, object)->qp;
		qp->event_handler(qp, type);
		event.element.qp = object->adapter;
		break;
	case HCA_WQ:
		wq = &container_of(object, struct hca_wq, object)->wq;
		wq->event_handler(wq, type);
		event.element.wq = object->adapter;
		break;
	}
	ibv_ack_async_event(&event);
}

/* Events of the device and of ports are reported to each context: only the device's own relays them. */
static void relay_client_event(const struct hca_device *dev, struct hca_context *c,
			       const struct ib_uverbs_async_event_desc *desc)
{
	struct hca_object *object;
	enum hca_kind kind;

	if (!event_kind(desc->event_type, &kind))
		return;
	object = hca_object_find(c, kind, desc->element);
	if (object)
		relay_object_event(object, desc->event_type);
	else
		uvd_log_of_user(
			dev->ibdev->log, uvd_account_person(c->context.account), UVD_WARN,
			"%s: %s reports event %u of an object that the daemon has not made: the event is dropped; "
			"a client of --memory=borrow has kept its context's device file and made the object itself",
			dev->ibdev->config.ibdev, dev->hca, desc->event_type);
}

/*
 * Relays the events of a client's context. Not by ibv_get_async_event(): see above. Providers that look at events
 * themselves do not see these. Returns false if the descriptor will never report anything again.
 */
static bool relay_client_events(const struct hca_device *dev, struct hca_context *c)
{
	struct ib_uverbs_async_event_desc desc;
	ssize_t len;

	for (int i = 0; i < EVENTS_AT_ONCE; i++) {
		if (atomic_load(&dev->dead))
			return false;
		len = read(c->adapter->async_fd, &desc, sizeof(desc));
		if (len < 0)
			return errno == EAGAIN || errno == EINTR;
		/* The kernel gives one whole event, or an error. */
		if (len != sizeof(desc))
			return false;
		relay_client_event(dev, c, &desc);
	}
	return true;
}

/* The same for the device's own context. */
static bool relay_device_events(struct hca_device *dev)
{
	struct ibv_async_event event;
	enum hca_kind kind;

	for (int i = 0; i < EVENTS_AT_ONCE; i++) {
		errno = 0;
		if (ibv_get_async_event(dev->adapter, &event))
			return errno == EAGAIN || errno == EINTR;
		if (!event_kind(event.event_type, &kind))
			relay_device_event(dev, &event);
		ibv_ack_async_event(&event);
	}
	return true;
}

static bool relay_completions(const struct hca_device *dev, struct ibv_comp_channel *channel)
{
	struct ibv_cq *adapter;
	struct uvd_cq *cq;
	void *arg;

	for (int i = 0; i < EVENTS_AT_ONCE; i++) {
		if (atomic_load(&dev->dead))
			return false;
		errno = 0;
		if (ibv_get_cq_event(channel, &adapter, &arg))
			return errno == EAGAIN || errno == EINTR;
		cq = arg;
		cq->comp_handler(cq);
		ibv_ack_cq_events(adapter, 1);
	}
	return true;
}

static struct list_head *contexts_of(struct hca_device *dev, uint64_t id)
{
	return &dev->contexts[id % HCA_CONTEXT_LISTS];
}

/* A descriptor that only reports errors would wake the thread for ever: stop watching it. */
static void events_forget(const struct hca_device *dev, int fd)
{
	epoll_ctl(dev->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static int context_fd(const struct hca_context *c, unsigned int kind)
{
	return kind == EVENT_ASYNC ? c->adapter->async_fd : c->channel->fd;
}

/* Caller holds dev->lock. */
static struct hca_context *context_find(struct hca_device *dev, uint64_t id)
{
	struct hca_context *c;

	list_for_each_entry(c, contexts_of(dev, id), of_device)
		if (c->id == id)
			return c;
	return NULL;
}

/*
 * Finds the context of this number and keeps it from being closed, until context_leave(). NULL: it was closed, or an object
 * of it is being destroyed: then its descriptor is not watched until hca_events_resume().
 */
static struct hca_context *context_enter(struct hca_device *dev, uint64_t id, unsigned int kind)
{
	struct hca_context *c;

	uvd_lock(&dev->lock);
	c = context_find(dev, id);
	if (c && c->leaving) {
		events_forget(dev, context_fd(c, kind));
		c->paused |= 1u << kind;
		c = NULL;
	}
	if (c)
		c->busy = true;
	uvd_unlock(&dev->lock);
	return c;
}

static void context_leave(struct hca_device *dev, struct hca_context *context)
{
	uvd_lock(&dev->lock);
	context->busy = false;
	pthread_cond_broadcast(&dev->idle);
	uvd_unlock(&dev->lock);
}

static void events_of_context(struct hca_device *dev, uint64_t id, unsigned int kind, bool hung_up)
{
	struct hca_context *c = context_enter(dev, id, kind);

	if (!c)
		return;
	if ((kind == EVENT_ASYNC ? !relay_client_events(dev, c) : !relay_completions(dev, c->channel)) || hung_up)
		events_forget(dev, context_fd(c, kind));
	context_leave(dev, c);
}

static void events_of_device(struct hca_device *dev, bool hung_up)
{
	if (relay_device_events(dev) && !hung_up)
		return;
	events_forget(dev, dev->adapter->async_fd);
	adapter_is_gone(dev);
}

/*
 * When an adapter is removed, some drivers, as that of Soft RoCE, report nothing and wait until no process has a context of
 * it. But the kernel removes the adapter's node before the driver waits.
 */
static void events_of_node(struct hca_device *dev)
{
	char buf[sizeof(struct inotify_event) + NAME_MAX + 1];
	struct stat st;

	while (read(dev->node, buf, sizeof(buf)) > 0)
		;
	/* Not by the path: the kernel reports the change of the links before the path leads nowhere. */
	if (!fstat(dev->adapter->cmd_fd, &st) && !st.st_nlink)
		adapter_is_gone(dev);
}

static void *events_thread(void *arg)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	struct hca_device *dev = arg;
	int n;

	while ((n = epoll_wait(dev->epoll, events, EVENTS_AT_ONCE, -1)) >= 0 || errno == EINTR) {
		for (int i = 0; i < n; i++) {
			const uint64_t id = events[i].data.u64 / EVENT_KINDS;
			const unsigned int kind = events[i].data.u64 % EVENT_KINDS;
			const bool hung_up = events[i].events & (EPOLLERR | EPOLLHUP);

			if (kind == EVENT_STOP)
				return NULL;
			if (kind == EVENT_NODE)
				events_of_node(dev);
			else if (id)
				events_of_context(dev, id, kind, hung_up);
			else
				events_of_device(dev, hung_up);
		}
	}
	uvd_logf(dev->ibdev->log, UVD_ERR, "%s: the thread that relays events ends: %s", dev->ibdev->config.ibdev,
		 uvd_errno_name(errno));
	return NULL;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

int hca_events_add(struct hca_device *dev, struct hca_context *context)
{
	int ret;

	uvd_lock(&dev->lock);
	context->id = ++dev->next_id;
	list_add_tail(&context->of_device, contexts_of(dev, context->id));
	uvd_unlock(&dev->lock);
	ret = events_watch(dev, context->adapter->async_fd, context->id, EVENT_ASYNC)
		      ?: events_watch(dev, context->channel->fd, context->id, EVENT_COMPLETION);
	if (ret)
		hca_events_remove(dev, context);
	return ret;
}

/* Waits until the thread is not in the context. Caller holds dev->lock. */
static void context_wait(struct hca_device *dev, const struct hca_context *context)
{
	while (context->busy)
		pthread_cond_wait(&dev->idle, &dev->lock);
}

void hca_events_pause(struct hca_device *dev, struct hca_context *context)
{
	uvd_lock(&dev->lock);
	context->leaving++;
	context_wait(dev, context);
	uvd_unlock(&dev->lock);
}

/* Caller holds dev->lock. */
static void context_watch_again(const struct hca_device *dev, struct hca_context *c)
{
	for (unsigned int kind = EVENT_ASYNC; kind <= EVENT_COMPLETION; kind++) {
		const int ret = c->paused >> kind & 1 ? events_watch(dev, context_fd(c, kind), c->id, kind) : 0;

		if (ret)
			uvd_logf(dev->ibdev->log, UVD_ERR, "%s: a client gets no more events: epoll_ctl: %s",
				 dev->ibdev->config.ibdev, uvd_errno_name(ret));
	}
	c->paused = 0;
}

void hca_events_resume(struct hca_device *dev, struct hca_context *context)
{
	uvd_lock(&dev->lock);
	if (!--context->leaving)
		context_watch_again(dev, context);
	uvd_unlock(&dev->lock);
}

void hca_events_remove(struct hca_device *dev, struct hca_context *context)
{
	uvd_lock(&dev->lock);
	list_del_init(&context->of_device);
	context_wait(dev, context);
	uvd_unlock(&dev->lock);
	events_forget(dev, context->adapter->async_fd);
	events_forget(dev, context->channel->fd);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void events_close(struct hca_device *dev)
{
	if (dev->epoll >= 0)
		close(dev->epoll);
	if (dev->stop >= 0)
		close(dev->stop);
	if (dev->node >= 0)
		close(dev->node);
	pthread_mutex_destroy(&dev->lock);
	pthread_cond_destroy(&dev->idle);
}

/* If the node cannot be watched, only an event of the driver reports that the adapter is gone. */
static void events_watch_node(struct hca_device *dev)
{
	char path[PATH_MAX];

	dev->node = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (dev->node < 0)
		return;
	hca_node_path(dev->adapter->device, path);
	/* The unlink of a node that a process has open changes the node's attributes: its number of links. */
	if (inotify_add_watch(dev->node, path, IN_ATTRIB) >= 0 && !events_watch(dev, dev->node, 0, EVENT_NODE))
		return;
	close(dev->node);
	dev->node = -1;
}

int hca_events_start(struct hca_device *dev)
{
	int ret;

	for (int i = 0; i < HCA_CONTEXT_LISTS; i++)
		INIT_LIST_HEAD(&dev->contexts[i]);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_cond_init(&dev->idle, NULL);
	dev->epoll = epoll_create1(EPOLL_CLOEXEC);
	dev->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dev->node = -1;
	ret = dev->epoll < 0 || dev->stop < 0 ? -errno
					      : events_watch(dev, dev->adapter->async_fd, 0, EVENT_ASYNC)
							?: events_watch(dev, dev->stop, 0, EVENT_STOP);
	if (!ret) {
		events_watch_node(dev);
		ret = uvd_thread_start(&dev->thread, 0, events_thread, dev);
	}
	if (ret)
		events_close(dev);
	return ret;
}

void hca_events_end(struct hca_device *dev)
{
	eventfd_write(dev->stop, 1);
	pthread_join(dev->thread, NULL);
	events_close(dev);
}
