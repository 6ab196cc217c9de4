/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine and its devices, and what a transport does: open files by their fds, calls, and grants. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/fsuid.h>
#include <uverbsd/registration.h>
#include "harness.h"

struct open_file {
	struct open_file *next;
	struct harness *h;
	struct uvd_file *file;
	struct uvd_opener opener;
	int fd;
};

static struct {
	pthread_mutex_t lock; /* all of this, and `added` of each harness */
	struct open_file *files;
	struct harness *harness; /* that uv_open() opens */
	const struct uv_node_ops *system_calls;
} open_files = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the client's /proc ------------------------------------------------------------------------------------------ */

/* Opens the client's file, where digit stands for each digit of its effective capabilities. */
static int capable_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags, char digit)
{
	int fd = uvd_proc_local.open(proc, tid, name, flags), changed;
	char text[8192] = {}, *caps;

	if (fd < 0 || strcmp(name, "status"))
		return fd;
	if (read(fd, text, sizeof(text) - 1) < 0 || !(caps = strstr(text, "CapEff:\t")))
		abort();
	close(fd);
	memset(caps + strlen("CapEff:\t"), digit, 16);
	changed = memfd_create("status", MFD_CLOEXEC);
	if (changed < 0 || pwrite(changed, text, strlen(text), 0) < 0)
		abort();
	return changed;
}

static int root_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return capable_open(proc, tid, name, flags, 'f');
}

static int nobody_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return capable_open(proc, tid, name, flags, '0');
}

struct uvd_proc harness_root = { .open = root_open }, harness_nobody = { .open = nobody_open };

/* ---- open files -------------------------------------------------------------------------------------------------- */

static struct open_file *open_file_find(int fd)
{
	struct open_file *f;

	pthread_mutex_lock(&open_files.lock);
	for (f = open_files.files; f && f->fd != fd; f = f->next)
		;
	pthread_mutex_unlock(&open_files.lock);
	return f;
}

struct uvd_file *harness_file(int fd)
{
	struct open_file *f = open_file_find(fd);

	return f ? f->file : NULL;
}

/* Opens the device, for the calling thread. Returns an fd, or a negative errno. */
static int open_file_new(struct harness *h, struct uvd_device *dev)
{
	struct open_file *f = calloc(1, sizeof(*f));
	struct uvd_caller caller = h->call->caller;
	int err = -ENOMEM;

	if (!f)
		return err;
	caller.tid = gettid();
	f->h = h;
	f->file = uvd_file_open(dev, h->account, &err);
	if (!f->file) {
		free(f);
		return err;
	}
	f->fd = memfd_create("uverbs", MFD_CLOEXEC);
	if (f->fd < 0 || uvd_opener_take(&f->opener, &caller))
		abort();
	pthread_mutex_lock(&open_files.lock);
	f->next = open_files.files;
	open_files.files = f;
	pthread_mutex_unlock(&open_files.lock);
	return f->fd;
}

static bool open_file_has_fd(const struct open_file *f, const void *fd)
{
	return f->fd == *(const int *)fd;
}

static bool open_file_is(const struct open_file *f, const void *file)
{
	return f->file == file;
}

static bool open_file_of(const struct open_file *f, const void *h)
{
	return f->h == h;
}

/* Takes a matching file off the list. NULL: there is none. */
static struct open_file *open_file_take(bool (*match)(const struct open_file *f, const void *arg), const void *arg)
{
	struct open_file **p, *f;

	pthread_mutex_lock(&open_files.lock);
	for (p = &open_files.files; *p && !match(*p, arg); p = &(*p)->next)
		;
	f = *p;
	if (f)
		*p = f->next;
	pthread_mutex_unlock(&open_files.lock);
	return f;
}

static void open_file_free(struct open_file *f)
{
	if (f->file == f->h->file)
		f->h->file = NULL;
	uvd_file_close(f->file);
	uvd_opener_drop(&f->opener);
	close(f->fd);
	free(f);
}

/* ---- the engine and its devices ---------------------------------------------------------------------------------- */

void harness_no_limits(struct uvd_account_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	memset(limits->max, 0xff, sizeof(limits->max));
}

void harness_init_limited(struct harness *h, const char *backend, const struct uvd_account_limits *limits)
{
	memset(h, 0, sizeof(*h));
	h->granted = h->fd = -1;
	uvd_config_default(&h->config, &uvd_persona_hfi1, 0);
	h->config.limits.max_dm_size = 256 << 10;
	snprintf(h->config.backend, sizeof(h->config.backend), "%s", backend);
	if (uvd_host_engine(&h->engine, limits, NULL))
		abort();
	h->account = uvd_host_account(&h->engine, UVD_HOST_UID);
	if (!h->account)
		abort();
}

void harness_init(struct harness *h, const char *backend)
{
	struct uvd_account_limits limits;

	harness_no_limits(&limits);
	harness_init_limited(h, backend, &limits);
}

void harness_start(struct harness *h, const struct uvd_mem_ops *mem)
{
	int err;

	h->dev = uvd_device_new(&h->engine, &h->config, &err);
	h->call = calloc(1, sizeof(*h->call));
	if (!h->dev || !h->call) {
		fprintf(stderr, "no device: %s\n", strerror(-err));
		abort();
	}
	h->ops = *h->dev->ib.ops;
	h->dev->ib.ops = &h->ops;
	h->call->caller = uvd_host_caller(mem, &uvd_proc_local, NULL);
	h->call->caller.tgid = 0; /* the engine has to look it up */
	h->added[0] = h->dev;
	h->fd = open_file_new(h, h->dev);
	h->file = h->call->file = harness_file(h->fd);
	if (!h->file)
		abort();
	open_files.harness = h;
	if (uv_node_ops != &harness_node_ops)
		open_files.system_calls = uv_node_ops;
	uv_node_ops = &harness_node_ops;
}

void harness_open_with(struct harness *h, const char *backend, const struct uvd_mem_ops *mem)
{
	harness_init(h, backend);
	harness_start(h, mem);
}

void harness_close_file(struct harness *h)
{
	struct open_file *f = open_file_take(open_file_is, h->file);

	if (f)
		open_file_free(f);
	else if (h->file)
		uvd_file_close(h->file);
	h->file = NULL;
}

void harness_close(struct harness *h)
{
	struct open_file *f;
	char left[1024];

	harness_close_file(h);
	while ((f = open_file_take(open_file_of, h)))
		open_file_free(f);
	for (unsigned int i = 1; i < HARNESS_DEVICES; i++)
		if (h->added[i])
			uvd_device_put(h->added[i]);
	uvd_device_put(h->dev);
	if (uvd_host_charged(&h->engine, left, sizeof(left), 0)) {
		fprintf(stderr, "still charged: %s\n", left);
		abort();
	}
	uvd_account_put(h->account);
	uvd_engine_fini(&h->engine);
	free(h->call);
	memset(h, 0, sizeof(*h));
	if (open_files.harness == h)
		open_files.harness = NULL;
}

unsigned int harness_add_device(struct harness *h)
{
	struct uvd_device_config config = h->config;
	struct uvd_device *dev;
	unsigned int number = 1;
	int err;

	pthread_mutex_lock(&open_files.lock);
	while (number < HARNESS_DEVICES && h->added[number])
		number++;
	pthread_mutex_unlock(&open_files.lock);
	uvd_config_default(&config, &uvd_persona_hfi1, number);
	snprintf(config.backend, sizeof(config.backend), "%s", h->config.backend);
	dev = number < HARNESS_DEVICES ? uvd_device_new(&h->engine, &config, &err) : NULL;
	if (!dev)
		abort();
	pthread_mutex_lock(&open_files.lock);
	h->added[number] = dev;
	pthread_mutex_unlock(&open_files.lock);
	return number;
}

/* The device of the node, with a reference; or NULL. take: the node goes. */
static struct uvd_device *device_of_node(struct harness *h, unsigned int number, bool take)
{
	struct uvd_device *dev = NULL;

	pthread_mutex_lock(&open_files.lock);
	if (number < HARNESS_DEVICES && h->added[number]) {
		dev = take ? h->added[number] : uvd_device_get(h->added[number]);
		if (take)
			h->added[number] = NULL;
	}
	pthread_mutex_unlock(&open_files.lock);
	return dev;
}

void harness_remove_device(struct harness *h, unsigned int number)
{
	struct uvd_device *dev = device_of_node(h, number, true);

	uvd_device_remove(dev);
	uvd_device_put(dev);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

long harness_finish(struct harness *h, struct uvd_call *call, long ret)
{
	int number;

	h->granted = -1;
	if (ret >= 0 && call->grant.uobj && call->grant.registration) {
		call->grant.registration->executed = h->executes;
		return uvd_call_granted(call, h->registered);
	}
	ret = uvd_host_finish(call, ret, &uvd_host_own_fds, h->refuse_grant, &number);
	h->granted = number;
	return ret;
}

/* The calling thread's call on f. */
static struct uvd_call *call_begin(struct open_file *f)
{
	static _Thread_local struct uvd_call of_thread;
	struct uvd_call *call = &of_thread;

	if (f->file == f->h->file && f->h->call->caller.tid == gettid())
		return f->h->call;
	memset(call, 0, sizeof(*call));
	call->file = f->file;
	call->caller = f->h->call->caller;
	call->caller.tid = gettid();
	call->caller.tgid = 0;
	return call;
}

static int harness_node_open(const char *path)
{
	struct uvd_device *dev;
	unsigned int number;
	int fd;

	if (sscanf(path, "/dev/infiniband/uverbs%u", &number) != 1)
		return -ENOENT;
	dev = device_of_node(open_files.harness, number, false);
	if (!dev)
		return -ENOENT;
	fd = open_file_new(open_files.harness, dev);
	uvd_device_put(dev);
	return fd;
}

static int harness_node_close(int fd)
{
	struct open_file *f = open_file_take(open_file_has_fd, &fd);

	if (!f)
		return open_files.system_calls->close(fd);
	open_file_free(f);
	return 0;
}

static ssize_t harness_node_write(int fd, const void *bytes, size_t len)
{
	struct open_file *f = open_file_find(fd);
	struct uvd_call *call;

	if (!f)
		return open_files.system_calls->write(fd, bytes, len);
	call = call_begin(f);
	if (!uvd_opener_is(&f->opener, &call->caller, setfsuid(-1), setfsgid(-1)))
		return -EACCES;
	return harness_finish(f->h, call, uvd_dispatch_write_from(call, (uintptr_t)bytes, len));
}

static int harness_node_ioctl(int fd, unsigned long cmd, const void *arg)
{
	struct open_file *f = open_file_find(fd);
	struct uvd_call *call;

	if (!f)
		return open_files.system_calls->ioctl(fd, cmd, arg);
	call = call_begin(f);
	return harness_finish(f->h, call, uvd_dispatch_ioctl(call, cmd, (uintptr_t)arg));
}

const struct uv_node_ops harness_node_ops = {
	.open = harness_node_open,
	.close = harness_node_close,
	.write = harness_node_write,
	.ioctl = harness_node_ioctl,
	.in_process = true,
};
