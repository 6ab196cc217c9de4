/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The file system of queues, whose server may be an attacker's: it runs in a child of the test. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uverbsd/log.h>
#include "broker/queues.h"
#include "broker/privilege.h"
#include "../suite.h"

static struct uvd_queue_files queues;
static struct uvd_log *log_to_null;

static void server_answer(const struct fuse_in_header *in, int err, const void *data, size_t size)
{
	const struct fuse_out_header out = { .len = sizeof(out) + size, .error = err, .unique = in->unique };
	const struct iovec v[] = { { (void *)&out, sizeof(out) }, { (void *)data, size } };

	(void)!writev(queues.channel, v, size ? 2 : 1);
}

/* Asks for memory of the caller's that the command's number does not name, as a server of unrestricted ioctl() may. */
static void server_answer_retry(const struct fuse_in_header *in)
{
	const struct fuse_ioctl_in *call = (const void *)(in + 1);
	const struct {
		struct fuse_ioctl_out out;
		struct fuse_ioctl_iovec all[2];
	} answer = { { .flags = FUSE_IOCTL_RETRY, .in_iovs = 1, .out_iovs = 1 },
		     { { call->arg, 64 }, { call->arg, 64 } } };

	server_answer(in, 0, &answer, sizeof(answer));
}

/* Answers with a file of this type, and with a link to `target`; stops at an OPEN if number is -1. number: of the memory behind it. */
static void server_main(mode_t type, const char *target, int number)
{
	const struct fuse_entry_out entry = { .nodeid = 7,
					      .generation = 1,
					      .attr = { .ino = 7, .mode = type | 0600, .nlink = 1, .size = 4096 } };
	const struct fuse_open_out open = { .fh = 1, .open_flags = 1 << 7 /* FOPEN_PASSTHROUGH */, .padding = number };
	static char buf[1 << 20] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (const void *)buf;

	while (read(queues.channel, buf, sizeof(buf)) > 0) {
		if (in->opcode == FUSE_LOOKUP && !strcmp((const char *)(in + 1), "5"))
			server_answer(in, 0, &entry, sizeof(entry));
		else if (in->opcode == FUSE_LOOKUP)
			server_answer(in, -ENOENT, NULL, 0);
		else if (in->opcode == FUSE_OPEN && number < 0)
			raise(SIGSTOP);
		else if (in->opcode == FUSE_OPEN)
			server_answer(in, 0, &open, sizeof(open));
		else if (in->opcode == FUSE_IOCTL)
			server_answer_retry(in);
		else if (in->opcode == FUSE_READLINK)
			server_answer(in, 0, target, strlen(target));
		else if (in->opcode == FUSE_RELEASE)
			server_answer(in, 0, NULL, 0);
		else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET)
			server_answer(in, -ENOSYS, NULL, 0);
	}
	_exit(0);
}

static pid_t server_start(mode_t type, const char *target, int number)
{
	pid_t pid = fork();

	if (!pid) {
		close(queues.mount);
		server_main(type, target, number);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void server_end(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void set_up(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_to_null = uvd_log_new(null, "test", UVD_ERR);
	uvd_queue_files_init(&queues);
	ck_assert_int_eq(uvd_queue_files_begin(&queues, log_to_null), 0);
	ck_assert_int_eq(uvd_queue_files_begin(&queues, log_to_null), 0);
}

static void tear_down(void)
{
	uvd_queue_files_end(&queues);
	ck_assert_int_eq(queues.channel, -1);
	uvd_log_free(log_to_null);
}

static int open_five(void)
{
	return uvd_queue_files_open(queues.mount, queues.st_dev, 5, O_RDWR);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

START_TEST(test_file_is_a_window_to_its_memory)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd), fd;
	uint32_t word = 0x1234, *memory;
	pid_t server;

	ck_assert_int_ge(number, 0);
	server = server_start(S_IFREG, "", number);
	fd = open_five();
	ck_assert_int_ge(fd, 0);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	ck_assert_int_eq(lseek(fd, 8192, SEEK_SET), 8192);
	ck_assert_int_eq(write(fd, &word, sizeof(word)), sizeof(word));
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 8192);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_uint_eq(*memory, word);
	munmap(memory, 4096);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_uint_eq(*memory, word);
	/* Its end: nobody hears of a write() any more. What is mapped stays. */
	ck_assert_int_eq(uvd_queue_files_drop(&queues, number), 0);
	ck_assert(write(fd, &word, sizeof(word)) < 0 && errno == EPERM);
	*memory = 7;
	ck_assert_uint_eq(*memory, 7);
	close(fd);
	server_end(server);
}
END_TEST

START_TEST(test_memory_cannot_be_made_shorter_or_longer)
{
	int memfd;

	ck_assert_int_ge(uvd_queue_files_back(&queues, &memfd), 0);
	ck_assert(ftruncate(memfd, 0) && errno == EPERM);
	ck_assert(ftruncate(memfd, UVD_BACKING_BYTES + 4096) && errno == EPERM);
}
END_TEST

START_TEST(test_end_of_all_is_the_end_of_each_write)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd), copy = dup(memfd);

	ck_assert_int_ge(number, 0);
	ck_assert_int_eq(write(copy, "x", 1), 1);
	uvd_queue_files_end(&queues);
	ck_assert(write(copy, "x", 1) < 0 && errno == EPERM);
	close(copy);
}
END_TEST

/* As an engine process that is dead and cannot exit: it has the channel open, and answers nothing. */
START_TEST(test_end_is_one_for_clients_although_a_server_has_the_channel)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd), fd, status;
	pid_t server = server_start(S_IFREG, "", number), client;

	fd = open_five();
	ck_assert_int_ge(fd, 0);
	ck_assert(!kill(server, SIGSTOP) && waitpid(server, &status, WUNTRACED) == server);
	client = fork();
	if (!client)
		_exit(ioctl(fd, 0x5401) < 0 && errno == ENOTCONN ? 0 : 1 + (errno & 127));
	/* It waits for the server by then, or comes later: both are the same to it. */
	usleep(50000);
	uvd_queue_files_end(&queues);
	ck_assert_int_eq(waitpid(client, &status, 0), client);
	ck_assert(WIFEXITED(status));
	ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 1 + ECONNABORTED);
	ck_assert(ioctl(fd, 0x5401) < 0 && errno == ENOTCONN);
	close(fd);
	server_end(server);
}
END_TEST

START_TEST(test_only_numbers_that_were_given_are_dropped_or_watched)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd);

	ck_assert_int_ge(number, 0);
	ck_assert_int_eq(uvd_queue_files_watch(&queues, number), -EINVAL);
	ck_assert_int_eq(uvd_queue_files_ears(&queues), 0);
	ck_assert_int_ge(uvd_queue_files_watch(&queues, number), 0);
	for (int64_t other = -2; other < 70000; other += other < 20 ? 1 : 9999) {
		if (other == number)
			continue;
		ck_assert_int_eq(uvd_queue_files_drop(&queues, other), -EINVAL);
		ck_assert_int_eq(uvd_queue_files_watch(&queues, other), -EINVAL);
	}
	ck_assert_int_eq(uvd_queue_files_drop(&queues, (int64_t)1 << 32 | number), -EINVAL);
	ck_assert_int_eq(uvd_queue_files_drop(&queues, number), 0);
	ck_assert_int_eq(uvd_queue_files_drop(&queues, number), -EINVAL);
	ck_assert_int_eq(uvd_queue_files_watch(&queues, number), -EINVAL);
}
END_TEST

START_TEST(test_write_is_an_event)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd), watch, fd;
	struct inotify_event e;
	pid_t server;

	ck_assert_int_ge(number, 0);
	ck_assert_int_eq(uvd_queue_files_ears(&queues), 0);
	watch = uvd_queue_files_watch(&queues, number);
	server = server_start(S_IFREG, "", number);
	fd = open_five();
	ck_assert_int_eq(write(fd, "x", 1), 1);
	ck_assert_int_eq(read(queues.inotify, &e, sizeof(e)), sizeof(e));
	ck_assert_int_eq(e.wd, watch);
	ck_assert_int_eq(pwrite(queues.bell, "x", 1, 0), 1);
	ck_assert_int_eq(read(queues.inotify, &e, sizeof(e)), sizeof(e));
	ck_assert_int_ne(e.wd, watch);
	close(fd);
	server_end(server);
}
END_TEST

/* ---- an attacker's answers --------------------------------------------------------------------------------------- */

/* The process of a loan may have more rights than the client, who gets what it opens. */
START_TEST(test_link_is_not_followed)
{
	static const char *const targets[] = { "/etc/shadow", "5", "../5", "/proc/self/fd/0", "/dev/null" };
	pid_t server = server_start(S_IFLNK, targets[_i], 0);

	ck_assert_int_eq(open_five(), -ELOOP);
	server_end(server);
}
END_TEST

START_TEST(test_what_is_no_regular_file_is_refused)
{
	static const mode_t types[] = { S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK, S_IFDIR };
	pid_t server = server_start(types[_i], "", 0);

	ck_assert_int_lt(open_five(), 0);
	server_end(server);
}
END_TEST

START_TEST(test_file_of_another_file_system_is_refused)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd);
	pid_t server = server_start(S_IFREG, "", number);

	ck_assert_int_eq(uvd_queue_files_open(queues.mount, queues.st_dev + 1, 5, O_RDWR), -EPERM);
	ck_assert_int_eq(uvd_queue_files_open(queues.mount, queues.st_dev, 6, O_RDWR), -ENOENT);
	server_end(server);
}
END_TEST

START_TEST(test_server_gets_no_memory_of_a_caller_s_by_ioctl)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd), fd;
	pid_t server = server_start(S_IFREG, "", number);
	char secret[64] = "secret", before[64];

	memcpy(before, secret, sizeof(before));
	fd = open_five();
	ck_assert_int_ge(fd, 0);
	ck_assert(ioctl(fd, 0x5401, secret) < 0 && errno == EIO);
	ck_assert_mem_eq(secret, before, sizeof(secret));
	close(fd);
	server_end(server);
}
END_TEST

START_TEST(test_notification_changes_no_memory_of_a_file)
{
	int memfd, number = uvd_queue_files_back(&queues, &memfd), fd;
	pid_t server = server_start(S_IFREG, "", number);
	const struct fuse_notify_store_out store = { .nodeid = 7, .offset = 8192, .size = 4 };
	const struct fuse_notify_inval_inode_out gone = { .ino = 7, .len = -1 };
	struct fuse_out_header out = { .error = FUSE_NOTIFY_STORE, .len = sizeof(out) + sizeof(store) + 4 };
	struct iovec v[] = { { &out, sizeof(out) }, { (void *)&store, sizeof(store) }, { "evil", 4 } };
	char *memory;

	fd = open_five();
	ck_assert_int_ge(fd, 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	memcpy(memory, "good", 4);
	(void)!writev(queues.channel, v, 3);
	ck_assert_mem_eq(memory, "good", 4);
	out = (struct fuse_out_header){ .error = FUSE_NOTIFY_INVAL_INODE, .len = sizeof(out) + sizeof(gone) };
	v[1] = (struct iovec){ (void *)&gone, sizeof(gone) };
	ck_assert_int_eq(writev(queues.channel, v, 2), out.len);
	ck_assert_mem_eq(memory, "good", 4);
	memcpy(memory, "more", 4);
	ck_assert_int_eq(pwrite(fd, "less", 4, 8196), 4);
	ck_assert_mem_eq(memory, "moreless", 8);
	munmap(memory, 4096);
	close(fd);
	server_end(server);
}
END_TEST

START_TEST(test_server_without_privileges_registers_no_memory)
{
	struct {
		int32_t fd;
		uint32_t flags;
		uint64_t padding;
	} backing = { .fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC) };
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(backing.fd, 0);
	if (!pid)
		_exit(!setresuid(65534, 65534, 65534) && ioctl(queues.channel, _IOW(229, 1, backing), &backing) < 0 &&
				      errno == EPERM
			      ? 0
			      : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	close(backing.fd);
}
END_TEST

/* Not even SIGKILL ends its wait, once the server has read the request. */
START_TEST(test_process_whose_open_is_never_answered_ends_with_the_channel)
{
	pid_t server = server_start(S_IFREG, "", -1), opener = fork();
	int status;

	if (!opener)
		_exit(open_five() < 0 ? 0 : 1);
	ck_assert(waitpid(server, &status, WUNTRACED) == server && WIFSTOPPED(status)); /* it has the request */
	ck_assert_int_eq(waitpid(opener, &status, WNOHANG), 0);
	ck_assert_int_eq(kill(opener, SIGKILL), 0);
	uvd_queue_files_end(&queues);
	ck_assert_int_eq(waitpid(opener, &status, 0), opener);
	server_end(server);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("queues");

	uvd_queue_files_init(&queues);
	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	if (uvd_queue_files_begin(&queues, NULL) == -EOPNOTSUPP) {
		puts("skipped: needs Linux 6.9");
		return 77;
	}
	uvd_queue_files_end(&queues);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_file_is_a_window_to_its_memory);
	tcase_add_test(t, test_memory_cannot_be_made_shorter_or_longer);
	tcase_add_test(t, test_end_of_all_is_the_end_of_each_write);
	tcase_add_test(t, test_end_is_one_for_clients_although_a_server_has_the_channel);
	tcase_add_test(t, test_only_numbers_that_were_given_are_dropped_or_watched);
	tcase_add_test(t, test_write_is_an_event);
	tcase_add_loop_test(t, test_link_is_not_followed, 0, 5);
	tcase_add_loop_test(t, test_what_is_no_regular_file_is_refused, 0, 5);
	tcase_add_test(t, test_file_of_another_file_system_is_refused);
	tcase_add_test(t, test_server_gets_no_memory_of_a_caller_s_by_ioctl);
	tcase_add_test(t, test_notification_changes_no_memory_of_a_file);
	tcase_add_test(t, test_server_without_privileges_registers_no_memory);
	tcase_add_test(t, test_process_whose_open_is_never_answered_ends_with_the_channel);
	return run_suite("queues", t);
}
