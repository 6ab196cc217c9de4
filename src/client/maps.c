/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"
#include "client/maps.h"

/* struct procmap_query of <linux/fs.h> since Linux 6.11; older headers lack it. */
struct procmap_query_arg {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

#define PROCMAP_QUERY_NR _IOWR('f', 17, struct procmap_query_arg)
#define QUERY_READABLE 0x01
#define QUERY_WRITABLE 0x02
#define QUERY_SHARED 0x08
#define QUERY_COVERING_OR_NEXT 0x10

void uvd_maps_from_fd(struct uvd_maps *maps, int fd, bool query)
{
	maps->fd = fd;
	maps->query = query;
	maps->have_last = false;
	maps->pos = maps->len = 0;
}

int uvd_maps_open(struct uvd_maps *maps, struct uvd_caller *c, bool query)
{
	uvd_maps_from_fd(maps, uvd_proc_open(c, uvd_proc_tid(c), "maps", O_RDONLY), query);
	return maps->fd < 0 ? maps->fd : 0;
}

void uvd_maps_close(struct uvd_maps *maps)
{
	close(maps->fd);
}

/* GUP refuses [vvar], [vvar_vclock] and [vsyscall]; [vdso] is an ordinary mapping. */
static bool name_is_special(const char *name)
{
	return !strncmp(name, "[vvar", 5) || !strncmp(name, "[vsyscall", 9);
}

/* The inode does not tell: it is 0 for the first SysV segment of a namespace. */
static bool is_file(unsigned int dev_major, unsigned int dev_minor)
{
	return dev_major || dev_minor;
}

static int maps_find_by_query(struct uvd_maps *maps, uint64_t addr, struct uvd_mapping *m)
{
	/*
	 * A longer name fails with ENAMETOOLONG. Only paths of files are so long, and no such mapping is special: retry
	 * without it.
	 */
	char name[64] = "";
	struct procmap_query_arg arg = { .size = sizeof(arg),
					 .query_flags = QUERY_COVERING_OR_NEXT,
					 .query_addr = addr,
					 .vma_name_size = sizeof(name),
					 .vma_name_addr = (uintptr_t)name };

	if (ioctl(maps->fd, PROCMAP_QUERY_NR, &arg)) {
		if (errno != ENAMETOOLONG)
			return -errno;
		arg = (struct procmap_query_arg){ .size = sizeof(arg),
						  .query_flags = QUERY_COVERING_OR_NEXT,
						  .query_addr = addr };
		if (ioctl(maps->fd, PROCMAP_QUERY_NR, &arg))
			return -errno;
		name[0] = 0;
	}
	*m = (struct uvd_mapping){ .start = arg.vma_start,
				   .end = arg.vma_end,
				   .inode = arg.inode,
				   .offset = arg.vma_offset,
				   .dev_major = arg.dev_major,
				   .dev_minor = arg.dev_minor,
				   .read = arg.vma_flags & QUERY_READABLE,
				   .write = arg.vma_flags & QUERY_WRITABLE,
				   .shared = arg.vma_flags & QUERY_SHARED,
				   .file = is_file(arg.dev_major, arg.dev_minor),
				   .special = name_is_special(name) };
	return 0;
}

int uvd_maps_path(int fd, uint64_t addr, char path[PATH_MAX])
{
	struct procmap_query_arg arg = {
		.size = sizeof(arg), .query_addr = addr, .vma_name_size = PATH_MAX, .vma_name_addr = (uintptr_t)path
	};

	path[0] = 0;
	if (ioctl(fd, PROCMAP_QUERY_NR, &arg))
		return -errno;
	return path[0] == '/' ? 0 : -ENOENT;
}

/*
 * Returns the next line without its newline; NULL: end of file, or an error. Cuts a part out of a line that does not
 * fit.
 */
static char *next_line(struct uvd_maps *maps)
{
	char *line, *end;
	ssize_t n;

	for (;;) {
		line = maps->buf + maps->pos;
		end = memchr(line, '\n', maps->len);
		if (end) {
			*end++ = 0;
			maps->len -= end - line;
			maps->pos += end - line;
			return line;
		}
		memmove(maps->buf, line, maps->len);
		maps->pos = 0;
		/*
		 * All fields that we need come before the path: if the line does not fit, drop the end of what was
		 * read.
		 */
		if (maps->len > sizeof(maps->buf) / 2)
			maps->len = sizeof(maps->buf) / 2;
		n = read(maps->fd, maps->buf + maps->len, sizeof(maps->buf) - maps->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		maps->len += n;
	}
}

/* "559a1000-559a3000 r-xp 00002000 fd:01 1234      /usr/bin/x" */
static bool parse_line(const char *line, struct uvd_mapping *m)
{
	char perms[5];
	int name = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start, &m->end, perms,
		   &m->offset, &m->dev_major, &m->dev_minor, &m->inode, &name) != 7)
		return false;
	m->read = perms[0] == 'r';
	m->write = perms[1] == 'w';
	m->shared = perms[3] == 's';
	m->file = is_file(m->dev_major, m->dev_minor);
	m->special = name && name_is_special(line + name);
	return true;
}

static int maps_find_in_text(struct uvd_maps *maps, uint64_t addr, struct uvd_mapping *m)
{
	char *line;

	while (!maps->have_last || maps->last.end <= addr) {
		line = next_line(maps);
		if (!line)
			return -ENOENT;
		maps->have_last = parse_line(line, &maps->last);
	}
	*m = maps->last;
	return 0;
}

int uvd_maps_find(struct uvd_maps *maps, uint64_t addr, struct uvd_mapping *m)
{
	int err;

	if (maps->query) {
		err = maps_find_by_query(maps, addr, m);
		if (err != -ENOTTY && err != -EINVAL)
			return err;
		maps->query = false;
	}
	return maps_find_in_text(maps, addr, m);
}

int uvd_maps_all(struct uvd_maps *maps, uint64_t addr, uint64_t end,
		 bool (*ok)(const struct uvd_mapping *m, uint64_t end, void *arg), void *arg)
{
	struct uvd_mapping m;

	while (addr < end) {
		if (uvd_maps_find(maps, addr, &m) || m.start > addr || m.end <= addr)
			return -EFAULT;
		if (!ok(&m, m.end < end ? m.end : end, arg))
			return -EFAULT;
		addr = m.end;
	}
	return 0;
}
