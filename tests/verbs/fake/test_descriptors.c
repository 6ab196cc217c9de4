/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the daemon keeps open for its clients has high numbers. Providers look for a peer's address by select(), which takes no
 * descriptor of FD_SETSIZE or more: a user with many open files must leave the low ones to the others.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <unistd.h>
#include "client.h"
#include "tests/suite.h"

enum { MANY = 400, MOST = 8192 };

static struct client a;

static void setup(void)
{
	struct rlimit nofile;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &nofile), 0);
	ck_assert_uint_ge(nofile.rlim_max, MOST);
	nofile.rlim_cur = MOST;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &nofile), 0);
	client_init(NULL);
	h.config.hidden_caps = 0;
	fake.attr.orig_attr.device_cap_flags = IBV_DEVICE_XRC;
	client_start();
	client_open(&a, h.fd);
}

/* Returns the number of descriptors that this process has below `end`. */
static unsigned int descriptors_below(int end)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int num = 0;
	struct dirent *e;

	while ((e = readdir(dir)))
		num += e->d_name[0] != '.' && atoi(e->d_name) < end && atoi(e->d_name) != dirfd(dir);
	closedir(dir);
	return num;
}

static int make_ah(const struct client *c)
{
	const struct ib_uverbs_ah_attr attr = { .dlid = 7, .port_num = 1 };
	uint32_t ah;

	return uv_create_ah(c->fd, UV_WRITE, c->pd, &attr, &ah);
}

START_TEST(test_user_with_many_files_leaves_others_the_descriptors_that_address_handles_need)
{
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(uv_get_context(uv_open(), UV_METHOD, NULL, NULL), 0);
	ck_assert_int_eq(make_ah(&a), 0);
}
END_TEST

START_TEST(test_what_is_kept_for_a_client_has_no_low_descriptor_and_is_closed_with_its_file)
{
	const unsigned int all = descriptors_below(MOST);
	const int opened = uv_open(); /* the client's own descriptor */
	const unsigned int low = descriptors_below(FD_SETSIZE);
	struct client c = {};
	uint32_t xrcd;
	int file, fd;

	client_open(&c, opened);
	fd = client_async_fd(&c);
	file = memfd_create("domain", MFD_CLOEXEC);
	ck_assert_int_eq(uv_open_xrcd(c.fd, UV_WRITE, file, O_CREAT, &xrcd), 0);
	close(file);
	close(fd);
	ck_assert_uint_eq(descriptors_below(FD_SETSIZE), low);
	ck_assert_uint_gt(descriptors_below(MOST), all);
	uv_close(c.fd);
	ck_assert_uint_eq(descriptors_below(MOST), all);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("descriptors");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_user_with_many_files_leaves_others_the_descriptors_that_address_handles_need);
	tcase_add_test(t, test_what_is_kept_for_a_client_has_no_low_descriptor_and_is_closed_with_its_file);
	return run_suite("the verbs backend with a fake adapter: descriptors", t);
}
