/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>

#include "../suite.h"
#include "util/util.h"

static int ends[2];
static char text[65536];

static struct uvd_log *start(enum uvd_log_level most)
{
	ck_assert(!pipe2(ends, O_CLOEXEC | O_NONBLOCK));
	return uvd_log_new(ends[1], "uverbsd", most);
}

static unsigned int lines(void)
{
	unsigned int n = 0;
	ssize_t len = read(ends[0], text, sizeof(text) - 1);

	text[len < 0 ? 0 : len] = 0;
	for (char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

START_TEST(test_line_has_name_level_and_text)
{
	struct uvd_log *log = start(UVD_INFO);

	uvd_logf(log, UVD_WARN, "port %d", 7);
	uvd_logf(log, UVD_DEBUG, "not wanted");
	uvd_logf(NULL, UVD_ERR, "nowhere");
	ck_assert_uint_eq(lines(), 1);
	ck_assert_str_eq(text, "uverbsd: warning: port 7\n");
	uvd_log_free(log);
}
END_TEST

START_TEST(test_client_cannot_forge_a_line)
{
	struct uvd_log *log = start(UVD_INFO);

	uvd_logf(log, UVD_INFO, "%s", "a\nuverbsd: b\033[2J");
	ck_assert_uint_eq(lines(), 1);
	ck_assert_str_eq(text, "uverbsd: a?uverbsd: b?[2J\n");
	uvd_log_free(log);
}
END_TEST

/* U+009B begins a sequence, too: CSI. U+00A0 is a space, and © has the same first byte. */
START_TEST(test_client_sends_no_c1_control)
{
	static const struct {
		const char *told, *written;
	} names[] = {
		{ "a\302\2332Jb", "uverbsd: a??2Jb\n" },
		{ "\302\200", "uverbsd: ??\n" },
		{ "\302\237", "uverbsd: ??\n" },
		{ "\302\240\302\251", "uverbsd: \302\240\302\251\n" },
		{ "\177", "uverbsd: ?\n" },
		{ "x\302", "uverbsd: x\302\n" },
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct uvd_log *log = start(UVD_INFO);

		uvd_logf(log, UVD_INFO, "%s", names[i].told);
		ck_assert_uint_eq(lines(), 1);
		ck_assert_str_eq(text, names[i].written);
		uvd_log_free(log);
	}
}
END_TEST

START_TEST(test_long_line_is_cut_to_one_line)
{
	struct uvd_log *log = start(UVD_INFO);
	char word[3000];

	memset(word, 'x', sizeof(word));
	uvd_logf(log, UVD_INFO, "%.3000s", word);
	ck_assert_uint_eq(lines(), 1);
	ck_assert_uint_eq(strlen(text), 1024);
	uvd_log_free(log);
}
END_TEST

START_TEST(test_kind_of_message_is_the_first_once_for_each_process)
{
	struct uvd_log *log = start(UVD_INFO);
	char kind[32];

	ck_assert(uvd_log_first(log, 1, "a") && uvd_log_first(log, 2, "a") && uvd_log_first(log, 1, "b"));
	ck_assert(!uvd_log_first(log, 1, "a") && !uvd_log_first(log, 2, "a") && !uvd_log_first(log, 1, "b"));
	/* 64 others push the oldest out. */
	for (int i = 0; i < 64; i++) {
		snprintf(kind, sizeof(kind), "other %d", i);
		ck_assert(uvd_log_first(log, 1, kind));
	}
	ck_assert(!uvd_log_first(log, 1, "other 63") && uvd_log_first(log, 1, "a"));
	ck_assert(uvd_log_shows(log, UVD_INFO) && !uvd_log_shows(log, UVD_DEBUG) && !uvd_log_shows(NULL, UVD_ERR));
	uvd_log_free(log);
}
END_TEST

START_TEST(test_limited_messages_are_ten_and_then_counted)
{
	struct uvd_log *log = start(UVD_INFO);

	for (int i = 0; i < 25; i++)
		uvd_log_limited(log, UVD_INFO, "bad command %d", i);
	ck_assert_uint_eq(lines(), 10);
	uvd_log_free(log);
	ck_assert_uint_eq(lines(), 1);
	ck_assert_ptr_nonnull(strstr(text, "uverbsd: warning: 15 similar messages left out: bad command 0\n"));
}
END_TEST

START_TEST(test_limit_opens_again_after_five_seconds)
{
	struct uvd_log *log = start(UVD_INFO);

	for (int i = 0; i < 12; i++)
		uvd_log_limited(log, UVD_INFO, "bad command");
	ck_assert_uint_eq(lines(), 10);
	usleep(5100000);
	uvd_log_limited(log, UVD_INFO, "bad command");
	ck_assert_uint_eq(lines(), 2);
	ck_assert_str_eq(text, "uverbsd: warning: 2 similar messages left out: bad command\nuverbsd: bad command\n");
	uvd_log_free(log);
}
END_TEST

/* It counts with the messages of that user, and what is left out is told by its kind. */
START_TEST(test_lines_pass_as_limited_messages_do)
{
	struct uvd_log *log = start(UVD_WARN);

	ck_assert(!uvd_log_passes(NULL, 1000, UVD_ERR, "a") && !uvd_log_passes(log, 1000, UVD_INFO, "a"));
	for (int i = 0; i < 25; i++)
		ck_assert(uvd_log_passes(log, 1000, UVD_WARN, "a") == (i < 10));
	for (int i = 0; i < 20; i++)
		uvd_log_of_user(log, 1000, UVD_WARN, i % 2 ? "b" : "c");
	ck_assert(!uvd_log_passes(log, 1000, UVD_WARN, "d") && uvd_log_passes(log, 1001, UVD_WARN, "d"));
	lines();
	uvd_log_line(log, UVD_WARN, false, "%s");
	uvd_log_line(log, UVD_WARN, true, "{}");
	ck_assert_uint_eq(lines(), 2);
	ck_assert_str_eq(text, "uverbsd: warning: %s\n{}\n");
	uvd_log_free(log);
	ck_assert_uint_eq(lines(), 2);
	ck_assert_str_eq(text, "uverbsd: warning: 15 similar messages left out: a\n"
			       "uverbsd: warning: 1 similar message left out: d\n");
}
END_TEST

/* A client that fills the log with its mistakes must not hide what the log says of others. */
START_TEST(test_messages_of_one_user_hide_none_of_another)
{
	struct uvd_log *log = start(UVD_INFO);

	for (int i = 0; i < 100; i++) {
		uvd_log_of_user(log, 1000, UVD_INFO, "a %d", i);
		uvd_log_of_user(log, 1000, UVD_INFO, "b");
		uvd_log_of_user(log, 1000, UVD_INFO, "c");
		uvd_log_of_user(log, 1000, UVD_INFO, "d");
		uvd_log_limited(log, UVD_INFO, "a %d", i);
	}
	ck_assert_uint_eq(lines(), 30 + 10);
	uvd_log_of_user(log, 1001, UVD_INFO, "a %d", 5);
	ck_assert_uint_eq(lines(), 1);
	ck_assert_str_eq(text, "uverbsd: a 5\n");
	uvd_log_free(log);
	ck_assert_uint_eq(lines(), 5);
	ck_assert_ptr_nonnull(strstr(text, "93 similar messages left out: d\n"));
}
END_TEST

START_TEST(test_messages_of_one_kind_hide_none_of_another)
{
	struct uvd_log *log = start(UVD_INFO);

	for (int i = 0; i < 100; i++)
		uvd_log_of_user(log, 1000, UVD_INFO, "a %d", i);
	ck_assert_uint_eq(lines(), 10);
	uvd_log_of_user(log, 1000, UVD_INFO, "b");
	ck_assert_uint_eq(lines(), 1);
	ck_assert_str_eq(text, "uverbsd: b\n");
	uvd_log_free(log);
}
END_TEST

/* More users than the log counts, each with more than one may write: the file stays short, and all are counted. */
START_TEST(test_all_users_together_are_limited)
{
	struct uvd_log *log = start(UVD_INFO);
	unsigned int left_out = 0, n;

	for (int uid = 0; uid < 300; uid++)
		for (int i = 0; i < 20; i++)
			uvd_log_of_user(log, uid, UVD_INFO, "a");
	ck_assert_uint_eq(lines(), 150);
	uvd_log_free(log);
	ck_assert_uint_gt(lines(), 1);
	for (const char *p = text; (p = strstr(p, "warning: ")); p++) {
		ck_assert_int_eq(sscanf(p, "warning: %u", &n), 1);
		left_out += n;
	}
	ck_assert_uint_eq(150 + left_out, 300 * 20);
}
END_TEST

static void *shout(void *log)
{
	for (int i = 0; i < 100; i++) {
		uvd_logf(log, UVD_INFO, "same");
		uvd_log_limited(log, UVD_INFO, "same");
	}
	return NULL;
}

START_TEST(test_lines_of_threads_do_not_mix)
{
	struct uvd_log *log = start(UVD_INFO);
	pthread_t t[4];
	unsigned int n;

	for (int i = 0; i < 4; i++)
		ck_assert(!pthread_create(&t[i], NULL, shout, log));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	n = lines();
	ck_assert_uint_eq(n, 410);
	for (unsigned int i = 0; i < n; i++)
		ck_assert(!memcmp(text + i * strlen("uverbsd: same\n"), "uverbsd: same\n", strlen("uverbsd: same\n")));
	uvd_log_free(log);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("log");

	tcase_set_timeout(t, 30);
	tcase_add_test(t, test_line_has_name_level_and_text);
	tcase_add_test(t, test_client_cannot_forge_a_line);
	tcase_add_test(t, test_client_sends_no_c1_control);
	tcase_add_test(t, test_long_line_is_cut_to_one_line);
	tcase_add_test(t, test_kind_of_message_is_the_first_once_for_each_process);
	tcase_add_test(t, test_limited_messages_are_ten_and_then_counted);
	tcase_add_test(t, test_limit_opens_again_after_five_seconds);
	tcase_add_test(t, test_lines_pass_as_limited_messages_do);
	tcase_add_test(t, test_messages_of_one_user_hide_none_of_another);
	tcase_add_test(t, test_messages_of_one_kind_hide_none_of_another);
	tcase_add_test(t, test_all_users_together_are_limited);
	tcase_add_test(t, test_lines_of_threads_do_not_mix);
	return run_suite("log", t);
}
