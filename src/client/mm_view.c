/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Our own mappings of memory that a client has mapped shared. A file is looked up by the path of the client's mapping,
 * or among the descriptors of the client's process. It is the right one if its inode and device are those of the
 * mapping. The inode of a SysV segment is its id.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <uverbsd/mm.h>

#include "client/client.h"
#include "client/internal.h"
#include "client/mm_internal.h"

enum {
	MOST_VIEWS = 256, /* for each client's address space: all views share ours */
	MOST_FILES = 1024, /* entries of /proc/PID/fd that are tried */
};

struct uvd_mm_view {
	struct list_head of_mm;
	struct uvd_mm *mm; /* a reference */
	atomic_int refs; /* reaches 0 only under views_lock */
	bool attached; /* by shmat() */
	struct uvd_mapping is; /* the client's mapping */
	uint8_t *at;
};

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool is_the_file(int path, const struct uvd_mapping *m)
{
	struct stat st;

	return !uvd_path_stat(path, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode &&
	       major(st.st_dev) == m->dev_major && minor(st.st_dev) == m->dev_minor;
}

/* Does the kernel alone provide the file's pages? Other file systems may wait for a disk, or for a client. */
static bool is_of_memory(int path)
{
	struct statfs fs;

	return !fstatfs(path, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/*
 * Opens `name` if it is the file of the mapping; -1: it is not. Checks an O_PATH fd first, because opening another file
 * can have side effects.
 */
static int open_if(int folder, const char *name, const struct uvd_mapping *m)
{
	int path = openat(folder, name, O_PATH | O_CLOEXEC), fd = -1;
	char self[32];

	if (path < 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path);
	if (is_the_file(path, m) && is_of_memory(path))
		fd = open(self, (m->write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	close(path);
	return fd;
}

static int open_descriptor(struct uvd_mm *mm, const struct uvd_mapping *m)
{
	char name[32];
	struct dirent *entry;
	DIR *dir;
	bool is_ours;
	int fd = -1;

	snprintf(name, sizeof(name), "/proc/%d/fd", mm->bulk_tgid);
	dir = opendir(name);
	if (!dir)
		return -1;
	/*
	 * The directory stays bound to one process: the client's, if the process id is still the client's after the
	 * open.
	 */
	is_ours = uvd_mm_number_is_ours(mm);
	for (int i = 0; is_ours && fd < 0 && i < MOST_FILES && (entry = readdir(dir)); i++)
		if (entry->d_name[0] != '.')
			fd = open_if(dirfd(dir), entry->d_name, m);
	closedir(dir);
	return fd;
}

static int view_open_file(struct uvd_mm *mm, const struct uvd_mapping *m)
{
	char path[PATH_MAX];
	int fd = -1;

	if (mm->maps_query && !uvd_maps_path(mm->mapsfd, m->start, path))
		fd = open_if(AT_FDCWD, path, m);
	return fd < 0 ? open_descriptor(mm, m) : fd;
}

/* ---- our mapping ------------------------------------------------------------------------------------------------- */

/* Is `at` a mapping of the same memory as m? The id of a SysV segment may be reused before shmat(). */
static bool is_mapped_at(const void *at, const struct uvd_mapping *m)
{
	struct uvd_mapping ours;
	struct uvd_maps maps;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool is_same;

	if (fd < 0)
		return false;
	uvd_maps_from_fd(&maps, fd, true);
	is_same = !uvd_maps_find(&maps, (uintptr_t)at, &ours) && ours.start == (uintptr_t)at &&
		  ours.inode == m->inode && ours.dev_major == m->dev_major && ours.dev_minor == m->dev_minor &&
		  ours.offset == m->offset && ours.end - ours.start == m->end - m->start;
	close(fd);
	return is_same;
}

static void *view_attach(const struct uvd_mapping *m)
{
	void *at;

	if (m->offset || m->inode > INT32_MAX)
		return NULL;
	at = shmat(m->inode, NULL, m->write ? 0 : SHM_RDONLY);
	if (at == (void *)-1)
		return NULL;
	if (is_mapped_at(at, m))
		return at;
	shmdt(at);
	return NULL;
}

static void *map_file(struct uvd_mm *mm, const struct uvd_mapping *m)
{
	int fd = view_open_file(mm, m);
	void *at;

	if (fd < 0)
		return NULL;
	at = mmap(NULL, m->end - m->start, PROT_READ | (m->write ? PROT_WRITE : 0), MAP_SHARED | MAP_NORESERVE, fd,
		  m->offset);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static struct uvd_mm_view *view_map(struct uvd_mm *mm, const struct uvd_mapping *m)
{
	struct uvd_mm_view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->is = *m;
	view->at = map_file(mm, m);
	if (!view->at) {
		view->at = view_attach(m);
		view->attached = true;
	}
	if (!view->at) {
		free(view);
		return NULL;
	}
	atomic_init(&view->refs, 1);
	view->mm = uvd_mm_ref(mm);
	return view;
}

/* Call it after the last put, or before the view is in a list. Frees the view, and puts its mm. */
static void view_unmap(struct uvd_mm_view *view)
{
	if (view->attached)
		shmdt(view->at);
	else
		munmap(view->at, view->is.end - view->is.start);
	uvd_mm_put(view->mm);
	free(view);
}

/* ---- the views of an address space ------------------------------------------------------------------------------- */

static bool is_same_mapping(const struct uvd_mapping *a, const struct uvd_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->write == b->write;
}

/* Caller holds mm->views_lock. Returns a reference, or NULL; then *num is the number of views. */
static struct uvd_mm_view *view_find(struct uvd_mm *mm, const struct uvd_mapping *m, unsigned int *num)
{
	struct uvd_mm_view *view;

	*num = 0;
	list_for_each_entry(view, &mm->views, of_mm) {
		if (is_same_mapping(&view->is, m))
			return uvd_mm_view_ref(view);
		++*num;
	}
	return NULL;
}

/*
 * Makes the mapping without views_lock, so that no other thread waits for it: a path can lead to a FUSE server of the
 * client's, which may never answer. So threads that add views at once can exceed MOST_VIEWS by their number. Returns a
 * reference, or NULL.
 */
static struct uvd_mm_view *find_or_map(struct uvd_mm *mm, const struct uvd_mapping *m)
{
	struct uvd_mm_view *view, *ours;
	unsigned int num;

	uvd_lock(&mm->views_lock);
	view = view_find(mm, m, &num);
	uvd_unlock(&mm->views_lock);
	if (view || num >= MOST_VIEWS)
		return view;
	ours = view_map(mm, m);
	if (!ours)
		return NULL;
	uvd_lock(&mm->views_lock);
	view = view_find(mm, m, &num);
	if (!view) {
		list_add(&ours->of_mm, &mm->views);
		view = ours;
	}
	uvd_unlock(&mm->views_lock);
	if (view != ours)
		view_unmap(ours);
	return view;
}

struct uvd_mm_view *uvd_mm_view_get(const struct uvd_umem *umem)
{
	struct uvd_mm *mm = umem->mm;
	struct uvd_mapping m;

	/* pidfd is set only where we have the client's own rights, so we open only what the client may open. */
	if (!umem->shared || mm->pidfd < 0 || mm->mapsfd < 0)
		return NULL;
	uvd_might_fault();
	if (uvd_mm_find_mapping(mm, umem->addr, &m) || m.start > umem->addr || m.end - umem->addr < umem->length)
		return NULL;
	return m.shared && m.file && m.read ? find_or_map(mm, &m) : NULL;
}

struct uvd_mm_view *uvd_mm_view_ref(struct uvd_mm_view *view)
{
	atomic_fetch_add(&view->refs, 1);
	return view;
}

void uvd_mm_view_put(struct uvd_mm_view *view)
{
	struct uvd_mm *mm = view->mm;
	bool is_last;

	uvd_lock(&mm->views_lock);
	is_last = atomic_fetch_sub(&view->refs, 1) == 1;
	if (is_last)
		list_del_init(&view->of_mm);
	uvd_unlock(&mm->views_lock);
	if (is_last)
		view_unmap(view);
}

void *uvd_mm_view_at(const struct uvd_mm_view *view, uint64_t addr)
{
	return view->at + (addr - view->is.start);
}

bool uvd_mm_view_writable(const struct uvd_mm_view *view)
{
	return view->is.write;
}

int uvd_mm_view_copy(void *dst, const void *src, size_t len)
{
	return uvd_guarded_copy(dst, src, len);
}
