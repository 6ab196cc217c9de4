/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "client/client.h"

static struct uvd_event_file *file;
static int client; /* the client's end */

static void open_file(void)
{
	file = uvd_event_file_new(8, NULL, &(int){ 0 });
	client = uvd_event_file_open(file);
	ck_assert_int_ge(client, 0);
}

static void close_file(void)
{
	close(client);
	uvd_event_file_put(file);
	file = NULL; /* LeakSanitizer reports no memory that a pointer still reaches */
}

static int post(uint64_t event)
{
	return uvd_event_file_post(file, &event);
}

/* Returns the next event, or 0 if there is none. */
static uint64_t next(void)
{
	uint64_t event[4];
	ssize_t n = recv(client, event, sizeof(event), MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	ck_assert_int_eq(n, 8);
	return event[0];
}

static short events(void)
{
	struct pollfd p = { .fd = client, .events = POLLIN };

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

START_TEST(test_one_read_takes_one_event)
{
	open_file();
	ck_assert_int_eq(events(), 0);
	ck_assert(!post(1) && !post(2));
	ck_assert_int_eq(events(), POLLIN);
	ck_assert_uint_eq(next(), 1);
	ck_assert_uint_eq(next(), 2);
	ck_assert_int_eq(events(), 0);
	close_file();
}
END_TEST

static bool is_odd(const void *event, void *arg)
{
	return *(const uint64_t *)event & 1;
}

static bool always(const void *event, void *arg)
{
	return true;
}

START_TEST(test_take_back_leaves_other_events_in_order)
{
	open_file();
	for (uint64_t i = 1; i <= 200; i++)
		ck_assert(!post(i));
	ck_assert_uint_eq(next(), 1);
	ck_assert_uint_eq(next(), 2);
	ck_assert_uint_eq(uvd_event_file_take_back(file, is_odd, NULL), 99);
	for (uint64_t i = 4; i <= 200; i += 2)
		ck_assert_uint_eq(next(), i);
	ck_assert_uint_eq(next(), 0);
	ck_assert_uint_eq(uvd_event_file_take_back(file, always, NULL), 0);
	close_file();
}
END_TEST

START_TEST(test_take_back_does_not_wait_for_a_client)
{
	open_file();
	/*
	 * The client shares the file description, and so its flags, with the engine: neither setting may make us wait.
	 */
	ck_assert(!fcntl(client, F_SETFL, _i ? O_NONBLOCK : 0));
	ck_assert_uint_eq(uvd_event_file_take_back(file, always, NULL), 0);
	ck_assert(!post(3));
	ck_assert_uint_eq(uvd_event_file_take_back(file, always, NULL), 1);
	close_file();
}
END_TEST

START_TEST(test_hang_up_is_end_of_file_after_the_last_event)
{
	char byte[8];

	open_file();
	ck_assert(!post(9));
	uvd_event_file_hang_up(file);
	ck_assert(events() & POLLHUP);
	ck_assert_uint_eq(next(), 9);
	ck_assert_int_eq(read(client, byte, 8), 0);
	ck_assert_int_eq(post(10), -EPIPE);
	close_file();
}
END_TEST

START_TEST(test_full_file_is_eagain_and_never_blocks)
{
	unsigned int n = 0;

	open_file();
	drop_rights();
	while (n < 100000 && !post(n + 1))
		n++;
	ck_assert_int_eq(post(1), -EAGAIN);
	ck_assert_uint_ge(n, 200);
	ck_assert_uint_eq(uvd_event_file_take_back(file, is_odd, NULL), (n + 1) / 2);
	ck_assert_uint_eq(next(), 2);
	ck_assert(!post(1));
	close_file();
}
END_TEST

START_TEST(test_client_cannot_write_to_us)
{
	signal(SIGPIPE, SIG_IGN);
	open_file();
	ck_assert_int_eq(write(client, "12345678", 8), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert(!post(5));
	ck_assert_uint_eq(next(), 5);
	close_file();
}
END_TEST

START_TEST(test_client_that_shuts_its_end_gets_nothing)
{
	open_file();
	ck_assert(!shutdown(client, SHUT_RDWR));
	ck_assert_int_eq(post(5), -EPIPE);
	ck_assert_uint_eq(uvd_event_file_take_back(file, always, NULL), 0);
	close_file();
}
END_TEST

START_TEST(test_only_the_clients_end_is_the_file)
{
	struct stat st;
	int pair[2];

	open_file();
	ck_assert(!fstat(client, &st));
	ck_assert(uvd_event_file_is(file, &st));
	st.st_dev++; /* a socket's name in a file system can have any inode number */
	ck_assert(!uvd_event_file_is(file, &st));
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	ck_assert(!fstat(pair[0], &st));
	ck_assert(!uvd_event_file_is(file, &st));
	close_file();
}
END_TEST

START_TEST(test_file_without_a_pair_drops_events)
{
	struct stat st;

	file = uvd_event_file_new(16, NULL, &(int){ 0 });
	ck_assert_int_eq(uvd_event_file_post(file, "0123456789abcdef"), -EPIPE);
	ck_assert_uint_eq(uvd_event_file_take_back(file, always, NULL), 0);
	ck_assert(!fstat(0, &st));
	ck_assert(!uvd_event_file_is(file, &st));
	uvd_event_file_hang_up(file);
	uvd_event_file_put(file);
}
END_TEST

START_TEST(test_adopted_pair_works_and_is_taken_once)
{
	int pair[2], more[2], file_pair[2];

	file = uvd_event_file_new(8, NULL, &(int){ 0 });
	ck_assert(!pipe(file_pair));
	ck_assert_int_eq(uvd_event_file_adopt(file, file_pair[0], file_pair[1]), -EINVAL);
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	client = dup(pair[1]);
	ck_assert(!uvd_event_file_adopt(file, pair[0], pair[1]));
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, more));
	ck_assert_int_eq(uvd_event_file_adopt(file, more[0], more[1]), -EBUSY);
	ck_assert(!post(6));
	ck_assert_uint_eq(next(), 6);
	close_file();
}
END_TEST

static void hold_and_drop(void *arg)
{
	tell(0);
	listen_for_order();
	close(client);
	close(*(int *)arg);
	tell(0);
	listen_for_order();
}

/* Is f in use? Asks about it together with an event file that no client has open, which must not be in use. */
static bool in_use(struct uvd_event_file *f)
{
	struct uvd_event_file *unheld = uvd_event_file_new(8, NULL, &(int){ 0 });
	bool used[3] = { true, true, true };
	uint64_t inos[3];

	close(uvd_event_file_open(unheld));
	inos[0] = inos[2] = uvd_event_file_ino(unheld);
	inos[1] = uvd_event_file_ino(f);
	ck_assert(!uvd_sockets_in_use(getpid(), inos, 3, used));
	uvd_event_file_put(unheld);
	ck_assert(!used[0] && !used[2]);
	return used[1];
}

START_TEST(test_in_use_while_a_process_holds_the_end)
{
	struct child child;
	int inherited;

	file = uvd_event_file_new(8, NULL, &(int){ 0 });
	client = uvd_event_file_open(file);
	/* The child inherits the engine's own descriptor of that end, too: the last of the high numbers that is in use. */
	inherited = fcntl(client, F_DUPFD_CLOEXEC, FD_SETSIZE);
	close(inherited--);
	child = child_start(hold_and_drop, &inherited);
	child_says(&child);
	close(client);
	ck_assert(in_use(file));
	child_order(&child, 0);
	child_says(&child);
	ck_assert(!in_use(file));
	child_end(&child);
	uvd_event_file_put(file);
}
END_TEST

static void *read_all(void *arg)
{
	uint64_t *sum = arg, event;

	while (read(client, &event, sizeof(event)) == sizeof(event))
		*sum += event;
	return NULL;
}

static bool multiple_of_three(const void *event, void *arg)
{
	return *(const uint64_t *)event % 3 == 0;
}

START_TEST(test_every_event_is_read_or_taken_back)
{
	uint64_t read_sum = 0, posted = 0;
	unsigned int taken = 0;
	pthread_t t;

	open_file();
	ck_assert(!pthread_create(&t, NULL, read_all, &read_sum));
	for (int i = 0; i < 2000; i++) {
		/* Each event that can be taken back has the value 3, so the sums can be compared. */
		uint64_t event = i % 2 ? 3 : 1;

		while (post(event) == -EAGAIN)
			sched_yield();
		posted += event;
		if (i % 50 == 0)
			taken += uvd_event_file_take_back(file, multiple_of_three, NULL);
	}
	uvd_event_file_hang_up(file);
	pthread_join(t, NULL);
	ck_assert_uint_eq(read_sum + 3 * taken, posted);
	close_file();
}
END_TEST

/* Memory that answers nobody, until wake(). */
static struct {
	int fd;
	char *page;
} stuck;

static void stuck_make(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	stuck.fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	ck_assert_int_ge(stuck.fd, 0);
	ck_assert_int_eq(ioctl(stuck.fd, UFFDIO_API, &api), 0);
	stuck.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(stuck.page, MAP_FAILED);
	reg.range.start = (uintptr_t)stuck.page;
	reg.range.len = 4096;
	ck_assert_int_eq(ioctl(stuck.fd, UFFDIO_REGISTER, &reg), 0);
}

/* Waits until a thread is stuck there. */
static void stuck_wait(void)
{
	struct pollfd p = { .fd = stuck.fd, .events = POLLIN };

	ck_assert_int_eq(poll(&p, 1, -1), 1);
}

static void wake(void)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)stuck.page, 4096 } };

	ck_assert_int_eq(ioctl(stuck.fd, UFFDIO_ZEROPAGE, &zero), 0);
}

static void *read_into_stuck(void *arg)
{
	ck_assert_int_eq(recv(client, stuck.page, 8, 0), 8);
	return NULL;
}

static atomic_int taker;

static void *take_all(void *arg)
{
	atomic_store(&taker, gettid());
	ck_assert_uint_eq(uvd_event_file_take_back(file, is_odd, NULL), 1);
	return NULL;
}

/* Waits until the thread waits where no signal ends it. */
static void wait_for_taker(void)
{
	char path[64], text[512] = "", *at;
	FILE *in;

	while (!atomic_load(&taker))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&taker));
	do {
		in = fopen(path, "re");
		ck_assert_ptr_nonnull(in);
		text[fread(text, 1, sizeof(text) - 1, in)] = 0;
		fclose(in);
		at = strrchr(text, ')');
	} while (!at || at[2] != 'D');
}

/* The kernel lets one thread of a socket receive at a time, and that of the client waits for its memory. */
START_TEST(test_client_that_holds_up_a_take_back_holds_up_nothing_else)
{
	struct stat st;
	pthread_t reader, other;

	if (geteuid())
		SKIP("only root may handle the kernel's faults by userfaultfd");
	open_file();
	stuck_make();
	ck_assert(!post(1) && !post(3) && !post(4));
	ck_assert(!pthread_create(&reader, NULL, read_into_stuck, NULL));
	stuck_wait();
	ck_assert(!pthread_create(&other, NULL, take_all, NULL));
	wait_for_taker();
	ck_assert(!post(5) && !post(6));
	ck_assert(!fstat(client, &st) && uvd_event_file_is(file, &st));
	wake();
	pthread_join(reader, NULL);
	pthread_join(other, NULL);
	ck_assert_uint_eq(*(uint64_t *)stuck.page, 1);
	ck_assert_uint_eq(next(), 4);
	ck_assert_uint_eq(next(), 5);
	ck_assert_uint_eq(next(), 6);
	ck_assert_uint_eq(next(), 0);
	munmap(stuck.page, 4096);
	close(stuck.fd);
	close_file();
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("event_file");
	TCase *t = tcase_create("event_file");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_one_read_takes_one_event);
	tcase_add_test(t, test_take_back_leaves_other_events_in_order);
	tcase_add_loop_test(t, test_take_back_does_not_wait_for_a_client, 0, 2);
	tcase_add_test(t, test_hang_up_is_end_of_file_after_the_last_event);
	tcase_add_test(t, test_full_file_is_eagain_and_never_blocks);
	tcase_add_test(t, test_client_cannot_write_to_us);
	tcase_add_test(t, test_client_that_shuts_its_end_gets_nothing);
	tcase_add_test(t, test_only_the_clients_end_is_the_file);
	tcase_add_test(t, test_file_without_a_pair_drops_events);
	tcase_add_test(t, test_adopted_pair_works_and_is_taken_once);
	tcase_add_test(t, test_in_use_while_a_process_holds_the_end);
	tcase_add_test(t, test_every_event_is_read_or_taken_back);
	tcase_add_test(t, test_client_that_holds_up_a_take_back_holds_up_nothing_else);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
