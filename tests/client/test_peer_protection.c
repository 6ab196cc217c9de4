/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A response is written to a peer's memory exactly where copy_to_user() would succeed, also after the client has
 * changed its mappings. The peer is this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "client/peer.h"

enum { PAGE = 4096, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS, SHARED = MAP_SHARED | MAP_ANONYMOUS };

/* query: looks up single mappings, if the kernel has PROCMAP_QUERY. Otherwise the text of /proc/PID/maps is read. */
static struct uvd_peer *new_peer(bool query)
{
	struct uvd_peer_fds fds = {
		.mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC),
		.maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
		.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC),
	};
	struct uvd_peer *p = uvd_peer_new(getpid(), &fds, query);

	ck_assert(p);
	return p;
}

static int write_to(struct uvd_peer *p, void *addr, size_t len)
{
	static const char text[2 * PAGE] = "text";
	struct uvd_write_vec v = { .addr = (uintptr_t)addr, .src = text, .len = len };

	return uvd_peer_writev(p, &v, 1);
}

static char *map(void *addr, size_t size, int prot, int flags)
{
	char *at = mmap(addr, size, prot, flags | (addr ? MAP_FIXED : 0), -1, 0);

	ck_assert(at != MAP_FAILED);
	return at;
}

/* Writes twice, because the second write may use a mapping that the first has cached. */
static void expect_twice(struct uvd_peer *p, void *addr, size_t len, int err)
{
	ck_assert_int_eq(write_to(p, addr, len), err);
	ck_assert_int_eq(write_to(p, addr, len), err);
}

START_TEST(test_memory_made_read_only_is_efault_at_once)
{
	struct uvd_peer *p = new_peer(_i);

	for (int n = 0; n < 2; n++) {
		char *at = map(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, n ? SHARED : PRIVATE);

		expect_twice(p, at, PAGE, 0);
		mprotect(at, PAGE, PROT_READ);
		expect_twice(p, at, 8, -EFAULT);
		expect_twice(p, at + PAGE, 8, 0);
		mprotect(at, PAGE, PROT_READ | PROT_WRITE);
		expect_twice(p, at, 2 * PAGE, 0);
		munmap(at, 3 * PAGE);
	}
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_memory_that_is_unmapped_is_efault_at_once)
{
	struct uvd_peer *p = new_peer(_i);
	char *at = map(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, PRIVATE);

	expect_twice(p, at, 2 * PAGE, 0);
	munmap(at + PAGE, PAGE);
	expect_twice(p, at, 2 * PAGE, -EFAULT);
	expect_twice(p, at, PAGE, 0);
	munmap(at, PAGE);
	expect_twice(p, at, 1, -EFAULT);
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_memory_mapped_anew_has_its_new_protection)
{
	struct uvd_peer *p = new_peer(_i);
	char *at = map(NULL, PAGE, PROT_READ | PROT_WRITE, PRIVATE);

	expect_twice(p, at, 8, 0);
	map(at, PAGE, PROT_READ, PRIVATE);
	expect_twice(p, at, 8, -EFAULT);
	map(at, PAGE, PROT_READ, SHARED);
	expect_twice(p, at, 8, -EFAULT);
	map(at, PAGE, PROT_READ | PROT_WRITE, SHARED);
	expect_twice(p, at, 8, 0);
	map(at, PAGE, PROT_READ, PRIVATE);
	expect_twice(p, at, 8, -EFAULT);
	munmap(at, PAGE);
	uvd_peer_put(p);
}
END_TEST

/*
 * Every other page of this private memory is read-only. A write through /proc/PID/mem alone would succeed there. The
 * number of mappings is below or above the number that the peer caches.
 */
static void write_to_every_page(struct uvd_peer *p, int pages)
{
	char *at = map(NULL, pages * PAGE, PROT_READ | PROT_WRITE, PRIVATE);

	for (int n = 0; n < pages; n += 2)
		mprotect(at + n * PAGE, PAGE, PROT_READ);
	for (int round = 0; round < 3; round++)
		for (int n = 0; n < pages; n++) {
			ck_assert_int_eq(write_to(p, at + n * PAGE, 8), n % 2 ? 0 : -EFAULT);
			ck_assert_int_eq(at[n * PAGE], n % 2 ? 't' : 0);
		}
	ck_assert_int_eq(write_to(p, at + PAGE, 2 * PAGE), -EFAULT);
	ck_assert_int_eq(write_to(p, at + 2 * PAGE - 8, 16), -EFAULT);
	ck_assert_int_eq(write_to(p, (void *)-PAGE, 2 * PAGE), -EFAULT);
	munmap(at, pages * PAGE);
}

START_TEST(test_read_only_memory_is_never_written)
{
	struct uvd_peer *p = new_peer(_i);

	write_to_every_page(p, 6);
	write_to_every_page(p, 40);
	uvd_peer_put(p);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("peer");
	TCase *t = tcase_create("protection");

	tcase_add_loop_test(t, test_memory_made_read_only_is_efault_at_once, 0, 2);
	tcase_add_loop_test(t, test_memory_that_is_unmapped_is_efault_at_once, 0, 2);
	tcase_add_loop_test(t, test_memory_mapped_anew_has_its_new_protection, 0, 2);
	tcase_add_loop_test(t, test_read_only_memory_is_never_written, 0, 2);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
