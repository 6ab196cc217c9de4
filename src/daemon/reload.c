/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The configuration file is read again. With two processes the broker reads it, as the engine process has no files: a memfd has the
 * devices for it, with their texts, and the names of options that cannot change; or the error.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/internal.h"
#include "util/util.h"

int uvd_reload_read(const struct uvd_options *start, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
		    char error[UVD_RELOAD_ERROR])
{
	int fd = start->config[0] ? uvd_image_copy_config(start->config) : -1;

	if (fd < 0) {
		snprintf(error, UVD_RELOAD_ERROR,
			 start->config[0] ? "%.400s: cannot read it: it must be a regular file"
					  : "uverbsd was started without --config FILE",
			 start->config);
		return -1;
	}
	if (uvd_options_parse_again(start, fd, next, error)) {
		close(fd);
		return -1;
	}
	uvd_options_differ(start, next, ignored);
	return fd;
}

enum { RELOAD_NS = UVD_RELOAD_MS * 1000000 };

struct reload_head {
	bool ok;
	unsigned int num_devices, num_texts;
	char ignored[UVD_RELOAD_NAMES], error[UVD_RELOAD_ERROR];
};

struct reload_text {
	unsigned int device, kind;
	size_t len;
};

/* ---- the broker's side ---------------------------------------------------------------------------------------------- */

static bool reload_write(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n <= 0)
			return false;
		at += n;
		size -= n;
	}
	return true;
}

static bool reload_write_devices(int fd, const struct uvd_options *o)
{
	if (!reload_write(fd, o->devices, o->num_devices * sizeof(*o->devices)))
		return false;
	for (const struct uvd_option_text *t = o->texts; t < o->texts + o->num_texts; t++) {
		const struct reload_text head = { t->device, t->kind, strlen(t->text) };

		if (!reload_write(fd, &head, sizeof(head)) || !reload_write(fd, t->text, head.len))
			return false;
	}
	return true;
}

static int reload_pack(bool ok, const struct uvd_options *next, const char *ignored, const char *error)
{
	int fd = memfd_create("uverbsd-reload", MFD_CLOEXEC);
	struct reload_head head = { .ok = ok };

	if (fd < 0)
		return -errno;
	snprintf(head.ignored, sizeof(head.ignored), "%s", ignored);
	snprintf(head.error, sizeof(head.error), "%s", error);
	head.num_devices = ok ? next->num_devices : 0;
	head.num_texts = ok ? next->num_texts : 0;
	if (reload_write(fd, &head, sizeof(head)) && (!ok || reload_write_devices(fd, next)))
		return fd;
	close(fd);
	return -ENOMEM;
}

static void reload_free(struct uvd_options *o)
{
	if (o)
		uvd_options_free(o);
	free(o);
}

int uvd_reload_serve(struct uvd_reload_conf *c, int *config, int *fd)
{
	char ignored[UVD_RELOAD_NAMES] = "", error[UVD_RELOAD_ERROR] = "no memory";
	struct uvd_options *next;

	*config = -1;
	if (c->tried_ns && uvd_now_ns() - c->tried_ns < RELOAD_NS)
		return -EAGAIN;
	next = calloc(1, sizeof(*next));
	if (next)
		*config = uvd_reload_read(c->start, next, ignored, error);
	c->tried_ns = uvd_now_ns();
	*fd = reload_pack(*config >= 0, next, ignored, error);
	if (*config < 0) {
		free(next);
	} else {
		reload_free(c->owned);
		c->latest = c->owned = next;
	}
	return *fd < 0 ? *fd : 0;
}

void uvd_reload_fini(struct uvd_reload_conf *c)
{
	reload_free(c->owned);
}

/* ---- the engine process's side -------------------------------------------------------------------------------------- */

static bool reload_get(int fd, off_t *at, void *data, size_t size)
{
	ssize_t n = pread(fd, data, size, *at);

	*at += size;
	return n >= 0 && (size_t)n == size;
}

static bool reload_get_text(int fd, off_t *at, struct uvd_options *o)
{
	struct uvd_option_text *t = &o->texts[o->num_texts];
	struct reload_text head;

	if (!reload_get(fd, at, &head, sizeof(head)))
		return false;
	*t = (struct uvd_option_text){ .device = head.device, .kind = head.kind, .text = calloc(1, head.len + 1) };
	if (!t->text)
		return false;
	o->num_texts++;
	return reload_get(fd, at, t->text, head.len);
}

static bool reload_get_devices(int fd, off_t *at, const struct reload_head *head, struct uvd_options *o)
{
	o->devices = calloc(head->num_devices, sizeof(*o->devices));
	o->texts = calloc(head->num_texts + 1, sizeof(*o->texts));
	if (!o->devices || !o->texts || !reload_get(fd, at, o->devices, head->num_devices * sizeof(*o->devices)))
		return false;
	o->num_devices = head->num_devices;
	while (o->num_texts < head->num_texts)
		if (!reload_get_text(fd, at, o))
			return false;
	return true;
}

int uvd_reload_unpack(int fd, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES], char error[UVD_RELOAD_ERROR])
{
	struct reload_head head = {};
	off_t at = 0;
	bool ok;

	*next = (struct uvd_options){};
	ok = reload_get(fd, &at, &head, sizeof(head));
	strcpy(error, ok ? head.error : "no memory");
	strcpy(ignored, head.ignored);
	if (ok && head.ok) {
		ok = reload_get_devices(fd, &at, &head, next);
		if (!ok)
			uvd_options_free(next);
	}
	close(fd);
	return ok && head.ok ? 0 : -1;
}
