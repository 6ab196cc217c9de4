/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "in_process.h"
#include "more.h"
#include "cpu/cpu.h"
#include "host/host.h"
#include "persona/persona.h"
#include "util/util.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	FIRST_FD = 256, /* the client's descriptors begin here, above the engine's */
	LAST_FD = 1023,
};

/* 1 TiB, as a file of `uverbsctl run` */
static const off_t MAPPED_SIZE = (off_t)1 << 40;

static struct {
	const struct uvd_options *options;
	const char *who;
	struct uvd_log *log;
	struct uvd_engine engine;
	struct uvd_account *account;
	struct uvd_device *dev;
	struct uvd_file *file;
	atomic_bool file_open; /* the client has not closed it */
	atomic_uint file_users; /* calls on it, and 1 while it is open: the last one closes the file */
	int mapped; /* a memfd: the memory of mapped queues, and the fd of the open file */
	atomic_uint_fast64_t next_offset;
	struct uvd_prog_area areas[UVD_PROG_AREAS]; /* the client's memory */
	int maps; /* a memfd: what /proc/TID/maps says about the client */
	atomic_bool fds[LAST_FD + 1]; /* the client's */
} here;

/* ---- the client -------------------------------------------------------------------------------------------------- */

/* Has the client all of it, and may it write there? Its areas stay mapped as long as the process lives. */
static bool client_has(uint64_t addr, size_t len, bool write)
{
	for (unsigned int i = 0; i < UVD_PROG_AREAS; i++) {
		const struct uvd_prog_area *a = &here.areas[i];

		if (addr - a->at < a->size)
			return len <= a->size - (addr - a->at) && (!write || a->writable);
	}
	return false;
}

static int client_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	if (!client_has(src, len, false))
		return -EFAULT;
	memcpy(dst, (const void *)src, len);
	return 0;
}

static int client_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	if (!client_has(dst, len, true))
		return -EFAULT;
#ifdef __SANITIZE_THREAD__
	/* Calls at the same time may have one place for their responses, which is the client's own race. */
	return uvd_mem_process.write(c, dst, src, len);
#else
	memcpy((void *)dst, src, len);
	return 0;
#endif
}

static int client_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	int err = 0;

	for (unsigned int i = 0; i < n && !err; i++)
		err = v[i].len ? client_write(c, v[i].addr, v[i].src, v[i].len) : 0;
	return err;
}

static ssize_t client_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	if (!client_read(c, dst, src, most))
		return most;
	return client_read(c, dst, src, least) ? -EFAULT : (ssize_t)least;
}

static const struct uvd_mem_ops client_mem = {
	.read = client_read,
	.write = client_write,
	.writev = client_writev,
	.read_ahead = client_read_ahead,
};

static bool client_has_fd(int fd)
{
	return fd >= FIRST_FD && fd <= LAST_FD && atomic_load(&here.fds[fd]);
}

static int client_proc_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	char path[48];
	int fd;

	if ((sscanf(name, "fd/%d", &fd) == 1 || sscanf(name, "fdinfo/%d", &fd) == 1) && !client_has_fd(fd))
		return -ENOENT;
	if (strcmp(name, "maps"))
		return uvd_proc_local.open(proc, tid, name, flags);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", here.maps);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static struct uvd_proc client_proc = { .open = client_proc_open, .bulk_by_number = true };

/* Takes over fd, which is the engine's. Returns the client's number for it, or a negative errno. */
static int client_fd_add(int fd)
{
	int number = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD), err = -errno;

	close(fd);
	if (number > LAST_FD) {
		close(number);
		return -EMFILE;
	}
	if (number < 0)
		return err;
	atomic_store(&here.fds[number], true);
	return number;
}

/* As the kernel does it for a descriptor: a call keeps the file open. Returns false if it is closed. */
static bool client_file_get(void)
{
	unsigned int users = atomic_load(&here.file_open) ? atomic_load(&here.file_users) : 0;

	while (users && !atomic_compare_exchange_weak(&here.file_users, &users, users + 1))
		;
	return users;
}

static void client_file_put(void)
{
	if (atomic_fetch_sub(&here.file_users, 1) == 1)
		uvd_file_close(here.file);
}

/* Closes the device. Of threads that do so at the same time, one succeeds. */
static int client_file_close(void)
{
	if (!atomic_exchange(&here.file_open, false)) {
		errno = EBADF;
		return -1;
	}
	client_file_put();
	return 0;
}

/* Of threads that close the same number, one succeeds. */
static int client_fd_close(int fd)
{
	if (fd == here.mapped)
		return client_file_close();
	if (!client_has_fd(fd) || !atomic_exchange(&here.fds[fd], false)) {
		errno = EBADF;
		return -1;
	}
	return close(fd);
}

static void client_fd_take(int number)
{
	client_fd_close(number);
}

static const struct uvd_host_fds client_fds = { .add = client_fd_add, .take = client_fd_take };

static int maps_make(void)
{
	const struct uvd_prog_area *areas = here.areas;
	char text[UVD_PROG_AREAS * 64];
	int fd = memfd_create("maps", MFD_CLOEXEC);
	size_t len = 0;

	uvd_prog_areas(here.areas);
	for (unsigned int i = 0; i < UVD_PROG_AREAS; i++)
		len += snprintf(text + len, sizeof(text) - len, "%08" PRIx64 "-%08" PRIx64 " r%c-p 00000000 00:00 0\n",
				areas[i].at, areas[i].at + areas[i].size, areas[i].writable ? 'w' : '-');
	return fd < 0 || pwrite(fd, text, len, 0) != (ssize_t)len ? -1 : fd;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Begins a call of this thread, which in_process_finish() ends. Returns NULL, with errno, if the device is closed. */
static struct uvd_call *call_begin(void)
{
	static _Thread_local struct uvd_call call;

	if (!client_file_get()) {
		errno = EBADF;
		return NULL;
	}
	if (!call.caller.mem)
		call.caller = uvd_host_caller(&client_mem, &client_proc, here.account);
	call.file = here.file;
	call.grant.uobj = NULL;
	return &call;
}

/* Grants the descriptor that the call asks for, and returns as a system call does. */
static long in_process_finish(struct uvd_call *call, long ret)
{
	int number;

	ret = uvd_host_finish(call, ret, &client_fds, 0, &number);
	client_file_put();
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

static ssize_t in_process_write(int fd, const void *bytes, size_t len)
{
	struct uvd_call *call = call_begin();

	return call ? in_process_finish(call, uvd_dispatch_write_from(call, (uintptr_t)bytes, len)) : -1;
}

static int in_process_ioctl(int fd, unsigned long cmd, uint64_t arg)
{
	struct uvd_call *call = call_begin();

	return call ? in_process_finish(call, uvd_dispatch_ioctl(call, cmd, arg)) : -1;
}

static int in_process_node(struct uvd_prog_run *run)
{
	return uvd_in_process_start() ? -1 : uvd_in_process_open();
}

const struct uvd_prog_node_ops uvd_in_process_ops = {
	.open = in_process_node,
	.write = in_process_write,
	.ioctl = in_process_ioctl,
	.has_fd = client_has_fd,
	.close = client_fd_close,
};

/* ---- the device -------------------------------------------------------------------------------------------------- */

void uvd_in_process_options(const struct uvd_options *o, const char *who)
{
	here.options = o;
	here.who = who;
}

static int share_get(void *owner, size_t length, uint8_t **memory, uint64_t *offset)
{
	const uint64_t at = atomic_fetch_add(&here.next_offset, length);

	if (length > (uint64_t)MAPPED_SIZE || at > (uint64_t)MAPPED_SIZE - length)
		return -ENOMEM;
	*memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, here.mapped, (off_t)at);
	*offset = at;
	return *memory == MAP_FAILED ? -ENOMEM : 0;
}

static void share_put(void *owner, uint8_t *memory, size_t length, uint64_t offset)
{
	munmap(memory, length);
	fallocate(here.mapped, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length);
}

static const struct uvd_share_ops share_ops = { .get = share_get, .put = share_put };

/* Makes the files that stand for the client's. */
static int files_make(void)
{
	here.maps = maps_make();
	here.mapped = memfd_create("uverbs", MFD_CLOEXEC);
	return here.maps < 0 || here.mapped < 0 || ftruncate(here.mapped, MAPPED_SIZE) ? -errno : 0;
}

/* Returns 0 or a negative errno; a plug-in that does not load is -ENOENT, and the log says why. */
static int engine_make(void)
{
	const struct uvd_options *o = here.options;
	struct uvd_device_config config = o->devices[0];
	int err = uvd_host_engine(&here.engine, &o->limits, here.log);

	if (err)
		return err;
	if (!uvd_options_load_plugins(o, here.engine.plugins, here.log))
		return -ENOENT;
	here.account = uvd_host_account(&here.engine, geteuid());
	if (!here.account)
		return -ENOMEM;
	if (config.number < 0)
		config.number = 0;
	err = uvd_options_give_texts(o, &here.engine);
	if (!err)
		here.dev = uvd_device_new(&here.engine, &config, &err);
	return err;
}

int uvd_in_process_start(void)
{
	int err;

	here.log = uvd_log_new(STDERR_FILENO, here.who, here.options->log_level);
	uvd_crash_start(here.who, uvd_dispatch_site);
	err = here.log ? files_make() : -ENOMEM;
	err = err ? err : engine_make();
	if (!err)
		return 0;
	fprintf(stderr, "%s: cannot make a device in this process: %s\n", here.who, uvd_errno_name(err));
	return -1;
}

void uvd_in_process_stop(void)
{
	uvd_device_put(here.dev);
	uvd_account_put(here.account);
	uvd_engine_fini(&here.engine);
	uvd_log_free(here.log);
	close(here.maps);
	close(here.mapped);
	memset(&here, 0, sizeof(here));
}

int uvd_in_process_learn(void)
{
	const struct uvd_options *o = here.options;
	const char *who = here.who;
	int err;

	if (!o->num_plugins)
		return 0;
	if (uvd_in_process_start())
		return -1;
	err = uvd_program_more_of_tree(here.dev->trees->plain);
	uvd_in_process_stop();
	uvd_in_process_options(o, who);
	if (err)
		fprintf(stderr, "%s: the calls of plug-ins: %s\n", here.who, uvd_errno_name(err));
	return err ? -1 : 0;
}

int uvd_in_process_open(void)
{
	int err;

	here.file = uvd_file_open(here.dev, here.account, &err);
	if (!here.file) {
		fprintf(stderr, "%s: cannot open the device: %s\n", here.who, uvd_errno_name(err));
		errno = -err;
		return -1;
	}
	atomic_store(&here.next_offset, uvd_cpu_page_size());
	here.file->watched.opened_by = getpid();
	here.file->share = &share_ops;
	atomic_store(&here.file_users, 1);
	atomic_store(&here.file_open, true);
	return here.mapped;
}

void uvd_in_process_close(void)
{
	client_file_close();
	here.file = NULL;
	for (int fd = FIRST_FD; fd <= LAST_FD; fd++)
		if (atomic_exchange(&here.fds[fd], false))
			close(fd);
}

int uvd_in_process_driver(const struct uvd_options *o)
{
	const struct uvd_persona *persona = uvd_persona_find(o->devices[0].persona);

	return persona ? persona->driver_id : -1;
}

bool uvd_in_process_leaks(char *text, size_t size, unsigned int seconds)
{
	return uvd_host_charged(&here.engine, text, size, seconds);
}
