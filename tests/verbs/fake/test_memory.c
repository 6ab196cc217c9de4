/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The choices of --memory=auto. The adapter here has a driver whose registration is not known; tests/verbs has rxe. */
#include <sys/mman.h>
#include <uverbsd/log.h>
#include "client.h"
#include "tests/suite.h"

static int log_fd;
static struct uvd_log *log_file;

static void setup(void)
{
	client_init(NULL);
	h.config.memory = UVD_MEMORY_AUTO;
	log_fd = memfd_create("log", MFD_CLOEXEC);
	h.engine.log = log_file = uvd_log_new(log_fd, "", UVD_INFO);
}

static void teardown(void)
{
	client_teardown();
	uvd_log_free(log_file);
	close(log_fd);
}

static bool log_has(const char *line)
{
	char text[1024];
	const ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(n, 0);
	text[n] = 0;
	return strstr(text, line);
}

static const struct {
	bool lends;
	const char *allow, *quota;
	const char *why;
} obstacles[] = {
	{ false, NULL, NULL, "no thread of a client can be borrowed here" },
	{ true, NULL, NULL, "the registration of the adapter's driver is not known" },
	{ true, "verbs:all", NULL, "it has an allow-list or a quota, which a client could get around" },
	{ true, NULL, "qps:1", "it has an allow-list or a quota, which a client could get around" },
};

START_TEST(test_default_copies_and_says_why_where_it_cannot_borrow)
{
	h.engine.lends = obstacles[_i].lends;
	if (obstacles[_i].allow)
		ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, obstacles[_i].allow),
				 0);
	if (obstacles[_i].quota)
		ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_QUOTA, obstacles[_i].quota),
				 0);
	client_start();
	ck_assert_int_eq(h.dev->config.memory, UVD_MEMORY_BOUNCE);
	ck_assert_int_eq(h.dev->ib.config.memory, UVD_MEMORY_BOUNCE);
	ck_assert(log_has("hfi1_0: --memory=bounce: data is copied, and peers cannot access clients' memory: "));
	ck_assert(log_has(obstacles[_i].why));
	/* The device has what the choice allows: the adapter has no REREG_MR, but a region whose data is copied can change. */
	ck_assert_ptr_nonnull(h.dev->ops.rereg_mr);
}
END_TEST

/* An adapter may take long to open, and answer otherwise the next time. */
START_TEST(test_device_opens_its_adapter_once)
{
	h.engine.lends = true;
	client_start();
	ck_assert_int_eq(fake.opens, 1);
}
END_TEST

START_TEST(test_choice_of_the_administrator_stays)
{
	h.config.memory = UVD_MEMORY_REFUSE;
	client_start();
	ck_assert_int_eq(h.dev->config.memory, UVD_MEMORY_REFUSE);
	ck_assert(!log_has("bounce"));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("memory");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_default_copies_and_says_why_where_it_cannot_borrow, 0, UV_ARRAY_SIZE(obstacles));
	tcase_add_test(t, test_device_opens_its_adapter_once);
	tcase_add_test(t, test_choice_of_the_administrator_stays);
	return run_suite("the verbs backend: how the adapter reaches memory by default", t);
}
