/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Views: which of a client's mappings the engine can map itself, and that it then maps the same bytes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
#include <uverbsd/backend.h>

#include "child.h"
#include "client/maps.h"
#include "util/util.h"

enum { PAGE = 4096, PAGES = 4, LEN = PAGES * PAGE, MOST = 256 /* views of one address space */ };

/* The memory that a client maps. PAGES pages; of a file, those behind the first. */
enum memory {
	MEMFD,
	SYSV,
	SYSV_FIRST, /* the first segment of an IPC namespace */
	MEMFD_READ_ONLY,
	SYSV_READ_ONLY,
	PATH_CLOSED, /* a file that can be opened by its path alone */
	/* There is no view of these: */
	MEMFD_WRITE_ONLY,
	MEMFD_PRIVATE,
	MEMFD_CLOSED, /* nobody can open the file */
	ANONYMOUS,
	ON_DISK,
	KINDS
};

enum order { READ = 1, WRITE, UNMAP, TRUNCATE };

static int file = -1;

static void *map_file_of_memory(int prot, int flags)
{
	file = memfd_create("view", MFD_CLOEXEC);
	if (ftruncate(file, LEN + PAGE))
		_exit(1);
	return mmap(NULL, LEN, prot, flags, file, PAGE);
}

/* The path of a file of the client, which is a child of the process `test`. */
static const char *path_of_client(pid_t test)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/shm/uverbsd-test-view-%d", (int)test);
	return path;
}

static void *map_path(void)
{
	void *at;

	file = open(path_of_client(getppid()), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (ftruncate(file, LEN))
		_exit(1);
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	return at;
}

static void *attach_segment(int flags)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	void *at = shmat(id, NULL, flags);

	shmctl(id, IPC_RMID, NULL);
	return at;
}

/* The inode of a segment is its id. The first one of a namespace has id 0. */
static void *attach_first_segment(void)
{
	struct shmid_ds any;

	if (shmctl(0, SHM_STAT, &any) != -1)
		_exit(1);
	return attach_segment(0);
}

static void *map_memory(enum memory memory)
{
	void *at;

	switch (memory) {
	case MEMFD:
		return map_file_of_memory(PROT_READ | PROT_WRITE, MAP_SHARED);
	case MEMFD_READ_ONLY:
		return map_file_of_memory(PROT_READ, MAP_SHARED);
	case MEMFD_WRITE_ONLY:
		return map_file_of_memory(PROT_WRITE, MAP_SHARED);
	case MEMFD_PRIVATE:
		return map_file_of_memory(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	case MEMFD_CLOSED:
		at = map_file_of_memory(PROT_READ | PROT_WRITE, MAP_SHARED);
		close(file);
		return at;
	case PATH_CLOSED:
		return map_path();
	case SYSV:
		return attach_segment(0);
	case SYSV_FIRST:
		return attach_first_segment();
	case SYSV_READ_ONLY:
		return attach_segment(SHM_RDONLY);
	case ANONYMOUS:
		return mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	default:
		file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		return mmap(NULL, LEN, PROT_READ, MAP_SHARED, file, 0);
	}
}

static void client(void *arg)
{
	volatile char *at = map_memory(*(enum memory *)arg);

	tell((uintptr_t)at);
	for (;;) {
		switch (listen_for_order()) {
		case READ:
			tell(at[LEN - 1]);
			break;
		case WRITE:
			at[LEN - 1] = 'w';
			tell(0);
			break;
		case UNMAP:
			tell(munmap((void *)at, LEN));
			break;
		case TRUNCATE:
			tell(ftruncate(file, 0));
			break;
		}
	}
}

/* Maps as many single pages as there can be views, and one more. No two are neighbours in the file. */
static void client_with_many(void *arg)
{
	enum { NUM = MOST + 1 };
	char *at;

	file = memfd_create("view", MFD_CLOEXEC);
	at = mmap(NULL, NUM * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ftruncate(file, NUM * PAGE))
		_exit(1);
	for (int i = 0; i < NUM; i++)
		if (mmap(at + i * 2 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, i * PAGE) == MAP_FAILED)
			_exit(1);
	tell((uintptr_t)at);
	listen_for_order();
}

static int open_locally(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return uvd_proc_local.open(&uvd_proc_local, tid, name, flags);
}

/* The engine has the client's own rights, as under uverbsctl run. */
static struct uvd_proc with_its_rights = { .open = open_locally, .bulk_by_number = true };

static bool waits(struct uvd_caller *c)
{
	return true;
}

static struct child child;
static struct uvd_mm_table *table;
static struct uvd_umem umem;

static void begin(void (*run)(void *), enum memory memory, struct uvd_proc *proc)
{
	struct uvd_caller c;

	if (memory == SYSV_FIRST)
		ck_assert_int_eq(unshare(CLONE_NEWIPC), 0);
	drop_rights();
	child = child_start(run, &memory);
	umem = (struct uvd_umem){ .addr = child_says(&child), .length = LEN, .writable = true, .shared = true };
	ck_assert_ptr_ne((void *)(uintptr_t)umem.addr, MAP_FAILED);
	c = caller_of(child.pid);
	c.proc = proc;
	c.waits = waits;
	table = uvd_mm_table_new();
	umem.mm = uvd_mm_get(table, &c);
	ck_assert_ptr_nonnull(umem.mm);
	ck_assert_int_eq(uvd_mm_watch(umem.mm, &c), 0);
}

static void end(void)
{
	uvd_mm_put(umem.mm);
	uvd_mm_table_free(table);
	child_end(&child);
}

static uint64_t ask(enum order order)
{
	child_order(&child, order);
	return child_says(&child);
}

START_TEST(test_view_has_the_clients_bytes)
{
	struct uvd_mm_view *view;
	char *last, got = 0;

	begin(client, _i, &with_its_rights);
	view = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(view);
	ck_assert(uvd_mm_view_writable(view));
	last = uvd_mm_view_at(view, umem.addr + LEN - 1);
	ck_assert_int_eq(uvd_mm_view_copy(last, "v", 1), 0);
	ck_assert_uint_eq(ask(READ), 'v');
	ask(WRITE);
	ck_assert_int_eq(uvd_mm_view_copy(&got, last, 1), 0);
	ck_assert_int_eq(got, 'w');
	uvd_mm_view_put(view);
	end();
}
END_TEST

/* Does the kernel tell the path of a mapping (PROCMAP_QUERY, Linux 6.11)? */
static bool kernel_tells_paths(void)
{
	char path[PATH_MAX];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool tells = !uvd_maps_path(fd, (uintptr_t)kernel_tells_paths, path);

	close(fd);
	return tells;
}

START_TEST(test_place_of_a_word_in_shared_memory_is_the_files)
{
	struct uvd_mm_place place;

	begin(client, _i, &with_its_rights);
	ck_assert_int_eq(uvd_mm_find(&umem, umem.addr, &place), 0);
	ck_assert_uint_ne(place.space[0], (uintptr_t)umem.mm);
	end();
}
END_TEST

START_TEST(test_file_that_the_client_has_closed_is_found_by_its_path)
{
	struct uvd_mm_view *view;
	char got = 0;

	begin(client, PATH_CLOSED, &with_its_rights);
	view = uvd_mm_view_get(&umem);
	ck_assert_int_eq(unlink(path_of_client(getpid())), 0);
	ck_assert_int_eq(view != NULL, kernel_tells_paths());
	if (view) {
		ask(WRITE);
		ck_assert_int_eq(uvd_mm_view_copy(&got, uvd_mm_view_at(view, umem.addr + LEN - 1), 1), 0);
		ck_assert_int_eq(got, 'w');
		uvd_mm_view_put(view);
	}
	end();
}
END_TEST

START_TEST(test_view_of_memory_that_the_client_cannot_write_is_not_writable)
{
	struct uvd_mm_view *view;

	begin(client, _i, &with_its_rights);
	view = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(view);
	ck_assert(!uvd_mm_view_writable(view));
	/* Our mapping is read-only, too: the kernel refuses to write there. */
	ck_assert_int_eq(read(open("/dev/zero", O_RDONLY | O_CLOEXEC), uvd_mm_view_at(view, umem.addr), 1), -1);
	ck_assert_int_eq(errno, EFAULT);
	uvd_mm_view_put(view);
	end();
}
END_TEST

START_TEST(test_other_memory_has_no_view)
{
	begin(client, _i, &with_its_rights);
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	end();
}
END_TEST

START_TEST(test_without_the_clients_rights_there_is_no_view)
{
	begin(client, MEMFD, &uvd_proc_local);
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	end();
}
END_TEST

START_TEST(test_region_must_lie_within_one_mapping)
{
	struct uvd_mm_view *view;

	begin(client, MEMFD, &with_its_rights);
	umem.length = LEN + 1;
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	umem.addr += LEN - 1;
	umem.length = 1;
	view = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(view);
	uvd_mm_view_put(view);
	umem.addr -= LEN;
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	umem.addr += LEN;
	umem.shared = false;
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	end();
}
END_TEST

START_TEST(test_regions_of_a_mapping_share_its_view)
{
	struct uvd_mm_view *view, *other;

	begin(client, MEMFD, &with_its_rights);
	view = uvd_mm_view_get(&umem);
	umem.addr += PAGE;
	umem.length = 8;
	other = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(view);
	ck_assert_ptr_eq(view, other);
	uvd_mm_view_put(view);
	ck_assert_int_eq(uvd_mm_view_copy(uvd_mm_view_at(other, umem.addr), "x", 1), 0);
	uvd_mm_view_put(other);
	end();
}
END_TEST

START_TEST(test_view_stays_when_the_client_unmaps_the_memory)
{
	struct uvd_mm_view *view;
	char got = 0;

	begin(client, _i, &with_its_rights);
	view = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(view);
	ask(WRITE);
	ck_assert_uint_eq(ask(UNMAP), 0);
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	ck_assert_int_eq(uvd_mm_view_copy(&got, uvd_mm_view_at(view, umem.addr + LEN - 1), 1), 0);
	ck_assert_int_eq(got, 'w');
	uvd_mm_view_put(view);
	end();
}
END_TEST

START_TEST(test_copy_in_a_file_that_was_truncated_is_efault)
{
	struct uvd_mm_view *view;
	char got;

	ck_assert_int_eq(uvd_guard_start(), 0);
	begin(client, MEMFD, &with_its_rights);
	view = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(view);
	ck_assert_uint_eq(ask(TRUNCATE), 0);
	ck_assert_int_eq(uvd_mm_view_copy(&got, uvd_mm_view_at(view, umem.addr), 1), -EFAULT);
	uvd_mm_view_put(view);
	end();
}
END_TEST

START_TEST(test_number_of_views_has_a_limit_and_one_that_is_put_makes_room)
{
	struct uvd_mm_view *views[MOST];

	begin(client_with_many, MEMFD, &with_its_rights);
	umem.length = PAGE;
	for (int i = 0; i < MOST; i++) {
		views[i] = uvd_mm_view_get(&umem);
		ck_assert_ptr_nonnull(views[i]);
		umem.addr += 2 * PAGE;
	}
	ck_assert_ptr_null(uvd_mm_view_get(&umem));
	uvd_mm_view_put(views[7]);
	views[7] = uvd_mm_view_get(&umem);
	ck_assert_ptr_nonnull(views[7]);
	for (int i = 0; i < MOST; i++)
		uvd_mm_view_put(views[i]);
	end();
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("view");
	TCase *t = tcase_create("view");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_view_has_the_clients_bytes, MEMFD, SYSV_FIRST + 1);
	tcase_add_loop_test(t, test_place_of_a_word_in_shared_memory_is_the_files, MEMFD, SYSV_FIRST + 1);
	tcase_add_test(t, test_file_that_the_client_has_closed_is_found_by_its_path);
	tcase_add_loop_test(t, test_view_of_memory_that_the_client_cannot_write_is_not_writable, MEMFD_READ_ONLY,
			    SYSV_READ_ONLY + 1);
	tcase_add_loop_test(t, test_other_memory_has_no_view, MEMFD_WRITE_ONLY, KINDS);
	tcase_add_test(t, test_without_the_clients_rights_there_is_no_view);
	tcase_add_test(t, test_region_must_lie_within_one_mapping);
	tcase_add_test(t, test_regions_of_a_mapping_share_its_view);
	tcase_add_test(t, test_view_stays_when_the_client_unmaps_the_memory);
	tcase_add_test(t, test_copy_in_a_file_that_was_truncated_is_efault);
	tcase_add_test(t, test_number_of_views_has_a_limit_and_one_that_is_put_makes_room);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
