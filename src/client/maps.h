/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A caller's mappings, in ascending order. One question at a time with PROCMAP_QUERY (Linux 6.11), else by reading
 * /proc/TID/maps from its beginning.
 */
#ifndef UVD_MAPS_H
#define UVD_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uvd_caller;

struct uvd_mapping {
	uint64_t start, end;
	uint64_t inode, offset; /* of a file, and of `start` in it, in bytes; inode 0: there is no file */
	unsigned int dev_major, dev_minor;
	bool read, write, shared;
	bool file; /* has a file behind it: pages beyond the file's end do not exist */
	bool special; /* the kernel's own pages, which cannot be pinned */
};

struct uvd_maps {
	int fd;
	bool query; /* PROCMAP_QUERY; cleared where the kernel lacks it */
	bool have_last; /* last: the mapping parsed last */
	struct uvd_mapping last;
	size_t pos, len; /* of what is unread in buf */
	char buf[8192];
};

/* Of an fd that was opened before, and stays the caller's. query as below. */
void uvd_maps_from_fd(struct uvd_maps *maps, int fd, bool query);
/* query: false forces the text file, for tests. 0 or a negative errno. */
int uvd_maps_open(struct uvd_maps *maps, struct uvd_caller *c, bool query);
void uvd_maps_close(struct uvd_maps *maps);
/*
 * The path of the file that is mapped at addr, as the kernel writes it (" (deleted)" and all); PROCMAP_QUERY only. A path says which
 * file to look for, not which it is. 0 or a negative errno.
 */
int uvd_maps_path(int fd, uint64_t addr, char path[PATH_MAX]);

/* The mapping that contains addr, or the next one after it. Successive calls must not go back. -ENOENT: none. */
int uvd_maps_find(struct uvd_maps *maps, uint64_t addr, struct uvd_mapping *m);

/*
 * Calls ok() for every mapping of [addr, end), with the end of the part of it that is in the range.
 * -EFAULT: there is a hole, or ok() said no.
 */
int uvd_maps_all(struct uvd_maps *maps, uint64_t addr, uint64_t end,
		 bool (*ok)(const struct uvd_mapping *m, uint64_t end, void *arg), void *arg);

#endif
