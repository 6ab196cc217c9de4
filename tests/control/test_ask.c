/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client's side of the control socket (src/control/ask.c), whose daemon closes the connection before it has the command. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control.h"
#include "../suite.h"

static char path[] = "/tmp/uverbsd-ask-XXXXXX";
static int listener;
static const char *reason; /* what the daemon says before it closes the connection; NULL: nothing */
static sem_t closed;

ssize_t __real_send(int fd, const void *data, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags);

/* Every message of the client's meets a closed connection: else it would be a matter of luck. */
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags)
{
	sem_wait(&closed);
	return __real_send(fd, data, size, flags);
}

static void *daemon_closes(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	if (reason && write(fd, reason, strlen(reason)) < 0)
		abort();
	close(fd);
	sem_post(&closed);
	return NULL;
}

/* Asks such a daemon. Returns its line. */
static char *ask(const char *says)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	pthread_t thread;
	char *line;
	int err;

	strcpy(path, "/tmp/uverbsd-ask-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/control", path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	reason = says;
	sem_init(&closed, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, daemon_closes, NULL), 0);
	line = uvd_control_ask(sa.sun_path, "status");
	err = errno;
	pthread_join(thread, NULL);
	close(listener);
	unlink(sa.sun_path);
	rmdir(path);
	errno = err;
	return line;
}

START_TEST(test_reason_of_a_refusal_is_read_though_the_command_cannot_be_sent)
{
	char *line = ask("{\"error\":\"too many\"}\n");

	ck_assert_ptr_nonnull(line);
	ck_assert_str_eq(line, "{\"error\":\"too many\"}");
	free(line);
}
END_TEST

START_TEST(test_connection_that_the_daemon_closes_is_econnreset_and_no_signal)
{
	ck_assert_ptr_null(ask(NULL));
	ck_assert_int_eq(errno, ECONNRESET);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("ask");

	tcase_add_test(t, test_reason_of_a_refusal_is_read_though_the_command_cannot_be_sent);
	tcase_add_test(t, test_connection_that_the_daemon_closes_is_econnreset_and_no_signal);
	return run_suite("control: ask", t);
}
