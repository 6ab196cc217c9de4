/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Looks up a caller's mappings, in ascending order: one at a time by PROCMAP_QUERY (Linux 6.11), else by reading the
 * text of /proc/TID/maps from its beginning.
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
	uint64_t inode, offset; /* of the mapped file, and of `start` in it, in bytes */
	unsigned int dev_major, dev_minor;
	bool read, write, shared;
	bool file; /* a file is mapped: pages beyond the file's end do not exist */
	bool special; /* the kernel's own pages, which cannot be pinned */
};

struct uvd_maps {
	int fd;
	bool query; /* use PROCMAP_QUERY; cleared if the kernel lacks it */
	bool have_last; /* `last` is valid */
	struct uvd_mapping last; /* the mapping parsed last from the text */
	size_t pos, len; /* of the unparsed text in buf */
	char buf[8192];
};

/* Starts a search in a /proc/TID/maps fd, which the caller still owns. query: as for uvd_maps_open(). */
void uvd_maps_from_fd(struct uvd_maps *maps, int fd, bool query);
/* query: may PROCMAP_QUERY be used? False forces the text, for tests. Returns 0 or a negative errno. */
int uvd_maps_open(struct uvd_maps *maps, struct uvd_caller *c, bool query);
void uvd_maps_close(struct uvd_maps *maps);
/*
 * Reads the path of the file that is mapped at addr, by PROCMAP_QUERY only. The kernel may append " (deleted)". Another
 * file may be at that path by now. Returns 0 or a negative errno; -ENOENT: nothing with a path is mapped there.
 */
int uvd_maps_path(int fd, uint64_t addr, char path[PATH_MAX]);

/*
 * Finds the mapping that contains addr, or else the next one after it. Successive calls must not go back. Returns 0 or
 * a negative errno; -ENOENT: there is none.
 */
int uvd_maps_find(struct uvd_maps *maps, uint64_t addr, struct uvd_mapping *m);

/*
 * Calls ok() for every mapping in [addr, end), with the end of the part of the mapping that is in the range. Returns 0;
 * or -EFAULT if there is a hole, or ok() returns false.
 */
int uvd_maps_all(struct uvd_maps *maps, uint64_t addr, uint64_t end,
		 bool (*ok)(const struct uvd_mapping *m, uint64_t end, void *arg), void *arg);

#endif
