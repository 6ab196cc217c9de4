/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How code comes into the engine process, whose sandbox opens no file and maps code from slots alone
 * (broker/wire.h). The broker makes the slots before each engine process, and copies plug-ins into them. The engine
 * process has descriptors for reading, and no way to get others: the mode of the memfds lets only root open them again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "daemon/internal.h"
#include "util/util.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* since 6.3 */
#endif

enum {
	LOOK_MS = 10000, /* that constructors may take: meanwhile the broker does nothing else */
	AFTER_SLOTS = UVD_WIRE_FIRST_SLOT + UVD_WIRE_SLOTS,
};

/* ---- the broker -------------------------------------------------------------------------------------------------- */

void uvd_slots_close(struct uvd_slots *slots)
{
	for (unsigned int i = 0; i < UVD_WIRE_SLOTS; i++) {
		if (slots->fd[i] > 0)
			close(slots->fd[i]);
		slots->fd[i] = 0;
	}
}

/* Others may open it again for reading only: a client that the engine process has sent it to, for example. */
static int slot_make(void)
{
	int fd = memfd_create("uverbsd-plugin", MFD_CLOEXEC | MFD_NOEXEC_SEAL), err;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("uverbsd-plugin", MFD_CLOEXEC);
	if (fd < 0 || !fchmod(fd, 0444))
		return fd < 0 ? -errno : fd;
	err = -errno;
	close(fd);
	return err;
}

int uvd_slots_renew(struct uvd_slots *slots, struct uvd_log *log)
{
	uvd_slots_close(slots);
	for (unsigned int i = 0; i < UVD_WIRE_SLOTS; i++) {
		int fd = slot_make();

		if (fd < 0) {
			uvd_logf(log, UVD_ERR, "cannot make the slots for plug-ins: memfd_create: %s",
				 uvd_errno_name(fd));
			uvd_slots_close(slots);
			return fd;
		}
		slots->fd[i] = fd;
	}
	return 0;
}

/* Returns a descriptor beyond the numbers of the slots. */
static int slot_reopen(int fd)
{
	char name[32];
	int again, high;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	again = open(name, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		return -1;
	high = fcntl(again, F_DUPFD_CLOEXEC, AFTER_SLOTS);
	close(again);
	return high;
}

bool uvd_slots_place(const struct uvd_slots *slots)
{
	int high[UVD_WIRE_SLOTS];

	/* All of them first: the broker's descriptors can have the numbers of slots. */
	for (unsigned int i = 0; i < UVD_WIRE_SLOTS; i++) {
		high[i] = slot_reopen(slots->fd[i]);
		if (high[i] < 0)
			return false;
	}
	for (unsigned int i = 0; i < UVD_WIRE_SLOTS; i++)
		if (dup2(high[i], UVD_WIRE_FIRST_SLOT + i) < 0)
			return false;
	return true;
}

/* Copies the whole file. The engine process has not mapped the slot, unless an attacker controls it. */
static int slot_write(int slot, int copy)
{
	off_t at = 0;
	struct stat st;
	ssize_t n;

	if (ftruncate(slot, 0) || lseek(slot, 0, SEEK_SET) || fstat(copy, &st))
		return -errno;
	while (at < st.st_size) {
		n = sendfile(slot, copy, &at, st.st_size - at);
		if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

int uvd_slots_fill(struct uvd_slots *slots, const struct uvd_options *options, unsigned int slot, int64_t nth,
		   const char *name, char error[UVD_PLUGIN_ERROR])
{
	char path[PATH_MAX];
	int copy, err;

	snprintf(error, UVD_PLUGIN_ERROR, "the daemon has no such slot or plug-in");
	if (slot >= UVD_WIRE_SLOTS || (!name && (nth < 0 || nth >= options->num_plugins)))
		return -EINVAL;
	if (name && snprintf(path, sizeof(path), "%s/%s", options->plugin_dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	copy = name ? uvd_plugin_file_copy_in(options->plugin_dir, name, error)
		    : uvd_plugin_file_copy(options->plugins[nth].path, 0, error);
	if (copy < 0)
		return copy;
	/* A plug-in whose constructors crash never gets into the engine process. */
	err = uvd_plugins_look_again(options->names, name ? path : options->plugins[nth].path, copy, LOOK_MS, error);
	if (!err) {
		err = slot_write(slots->fd[slot], copy);
		if (err)
			snprintf(error, UVD_PLUGIN_ERROR, "%.400s: cannot be copied: %s", name ? path : "--plugin",
				 uvd_errno_name(err));
	}
	close(copy);
	return err;
}

/* ---- the engine process ------------------------------------------------------------------------------------------ */

struct uvd_slots_used {
	struct uvd_link *link;
	const struct uvd_options *options;
	char real_dir[PATH_MAX]; /* --plugin-dir without links and dots; empty: it is no folder */
	pthread_mutex_t lock;
	bool used[UVD_WIRE_SLOTS];
};

struct uvd_slots_used *uvd_slots_used_new(struct uvd_link *link, const struct uvd_options *options)
{
	struct uvd_slots_used *used = calloc(1, sizeof(*used));

	if (!used)
		return NULL;
	used->link = link;
	used->options = options;
	if (!realpath(options->plugin_dir, used->real_dir))
		used->real_dir[0] = 0;
	pthread_mutex_init(&used->lock, NULL);
	return used;
}

void uvd_slots_used_free(struct uvd_slots_used *used)
{
	pthread_mutex_destroy(&used->lock);
	free(used);
}

/* Returns a slot, or UVD_WIRE_SLOTS if none is free. */
static unsigned int slot_take(struct uvd_slots_used *used)
{
	unsigned int i = 0;

	pthread_mutex_lock(&used->lock);
	while (i < UVD_WIRE_SLOTS && used->used[i])
		i++;
	if (i < UVD_WIRE_SLOTS)
		used->used[i] = true;
	pthread_mutex_unlock(&used->lock);
	return i;
}

static void slot_give_back(void *arg, int fd)
{
	struct uvd_slots_used *used = arg;

	pthread_mutex_lock(&used->lock);
	used->used[fd - UVD_WIRE_FIRST_SLOT] = false;
	pthread_mutex_unlock(&used->lock);
}

/* Returns the name of the file that path names in the folder, or NULL. `path` may have "." between the two. */
static const char *slot_name_in(const char *dir, const char *path)
{
	const size_t len = strlen(dir);

	if (!len || strncmp(path, dir, len) || path[len] != '/')
		return NULL;
	path += len + 1;
	while (!strncmp(path, "./", 2))
		path += 2;
	return *path && !strchr(path, '/') && strlen(path) < UVD_WIRE_NAME ? path : NULL;
}

/*
 * Finds the plug-in among those of --plugin (*nth), or in --plugin-dir (*name). Returns false if it is in neither. The folder
 * can have two paths. Only the name in it reaches the broker, which checks the folder and the file.
 */
static bool slot_find(const struct uvd_slots_used *used, const char *path, unsigned int *nth, const char **name)
{
	const struct uvd_options *o = used->options;

	*name = NULL;
	for (*nth = 0; *nth < o->num_plugins; ++*nth)
		if (!strcmp(o->plugins[*nth].path, path))
			return true;
	*name = slot_name_in(o->plugin_dir, path) ?: slot_name_in(used->real_dir, path);
	return *name;
}

/* Takes over the descriptor with the broker's reason. */
static int slot_refused(const char *path, int err, int why, char error[UVD_PLUGIN_ERROR])
{
	ssize_t n = why >= 0 ? pread(why, error, UVD_PLUGIN_ERROR - 1, 0) : 0;

	if (why >= 0)
		close(why);
	if (n > 0)
		error[n] = 0;
	else
		snprintf(error, UVD_PLUGIN_ERROR, "%.400s: %s", path, uvd_errno_name(err));
	return err;
}

static int slot_fill(struct uvd_slots_used *used, unsigned int slot, const char *path, char error[UVD_PLUGIN_ERROR])
{
	const char *name;
	unsigned int nth;
	int why = -1, err;

	if (!slot_find(used, path, &nth, &name)) {
		snprintf(
			error, UVD_PLUGIN_ERROR,
			"%.160s: with two processes a running daemon loads plug-ins from one folder, %.160s: copy the file into "
			"it, or start uverbsd with --plugin-dir and the folder of the file",
			path, used->options->plugin_dir);
		return -EPERM;
	}
	err = uvd_link_plugin(used->link, slot, nth, name, &why);
	return err ? slot_refused(path, err, why, error)
		   : uvd_plugin_elf_check(path, UVD_WIRE_FIRST_SLOT + slot, error);
}

static int slot_open(void *arg, const char *path, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_slots_used *used = arg;
	const unsigned int slot = slot_take(used);
	int err;

	if (slot == UVD_WIRE_SLOTS) {
		snprintf(
			error, UVD_PLUGIN_ERROR,
			"%.200s: %d versions of plug-ins are in use already: end the programs that have opened the device "
			"longest ago, or restart the daemon",
			path, UVD_WIRE_SLOTS);
		return -EMFILE;
	}
	err = slot_fill(used, slot, path, error);
	if (!err)
		return UVD_WIRE_FIRST_SLOT + slot;
	slot_give_back(used, UVD_WIRE_FIRST_SLOT + slot);
	return err;
}

static void *slot_map(void *arg, int fd, const char *name, char *text)
{
	void *handle = uvd_loader_map(fd, name, text, UVD_PLUGIN_ERROR);
	const size_t len = strlen(text);

	if (!handle && strstr(text, "cannot open shared object file"))
		snprintf(text + len, UVD_PLUGIN_ERROR - len,
			 ": with two processes a plug-in can only use libraries that uverbsd itself uses");
	return handle;
}

const struct uvd_plugin_source uvd_slots_source = { slot_open, slot_map, slot_give_back };
