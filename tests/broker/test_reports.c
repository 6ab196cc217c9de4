/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a sanitizer finds in an engine process reaches its report, although the sandbox is closed. The engine processes here do
 * on purpose what each sanitizer reports.
 */
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "lives.h"

enum { USER = 65534, GROUP = 65533 };

static char reports[PATH_MAX]; /* the folder */
static void (*fault)(void);

/* ---- faults -------------------------------------------------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__
static volatile int at = 16, most = INT_MAX, sum;
static char *volatile block;

static void overflows(void)
{
	block = malloc(16);
	block[at] = 1;
}

static void leaks(void)
{
	block = malloc(123);
	block = NULL;
}

static void overflows_a_number(void)
{
	sum = most + 1;
}
#else
static int raced;

static void *race(void *arg)
{
	for (int i = 0; i < 1000; i++)
		raced++;
	return arg;
}

static void races(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, race, NULL);
	race(NULL);
	pthread_join(thread, NULL);
}
#endif

/* ---- engine processes ---------------------------------------------------------------------------------------------- */

static int engine_with_fault(void *arg, int sock)
{
	const char *rows[] = { "soft", uvd_sandbox_sanitizer, NULL };
	struct uvd_link *link = be_ready(sock);
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);

	if (uvd_engine_sandbox(USER, GROUP, rows, log))
		return 91;
	uvd_log_free(log);
	if (fault)
		fault();
	uvd_link_free(link);
	exit(0); /* as main() ends, with the look for leaks */
}

/* Returns the text of the only report, which it removes, and then that of stderr, where UBSan reports. */
static const char *report(int stderr_file)
{
	static char text[1 << 17], pattern[PATH_MAX + 8];
	size_t n = 0;
	glob_t found;
	ssize_t more;
	FILE *f;

	snprintf(pattern, sizeof(pattern), "%s/*", reports);
	if (!glob(pattern, 0, NULL, &found)) {
		ck_assert_uint_eq(found.gl_pathc, 1);
		f = fopen(found.gl_pathv[0], "r");
		ck_assert_ptr_nonnull(f);
		n = fread(text, 1, sizeof(text) / 2, f);
		fclose(f);
		unlink(found.gl_pathv[0]);
		globfree(&found);
	}
	more = pread(stderr_file, text + n, sizeof(text) - 1 - n, 0);
	text[n + (more > 0 ? more : 0)] = 0;
	return text;
}

/* Returns what an engine process with this fault has left. */
static const char *run_with(void (*what)(void), int *status)
{
	int kept = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	const char *text;

	ck_assert(kept >= 0 && dup2(file, STDERR_FILENO) >= 0);
	fault = what;
	*status = run_lives(engine_with_fault);
	dup2(kept, STDERR_FILENO);
	text = report(file);
	close(kept);
	close(file);
	return text;
}

static void check_is_reported(void (*what)(void), const char *kind, const char *function)
{
	int status;
	const char *text = run_with(what, &status);

	ck_assert_msg(strstr(text, kind) && strstr(text, function), "status %d: %s", status, text);
	ck_assert_int_eq(shared->starts, 1);
}

START_TEST(test_engine_without_faults_has_no_report)
{
	int status;

	ck_assert_str_eq(run_with(NULL, &status), "");
	ck_assert_int_eq(status, 0);
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
START_TEST(test_overflow_in_the_engine_process_is_reported)
{
	check_is_reported(overflows, "heap-buffer-overflow", "in overflows");
}
END_TEST

START_TEST(test_leak_of_the_engine_process_is_reported)
{
	check_is_reported(leaks, "LeakSanitizer: detected memory leaks", "in leaks");
}
END_TEST

START_TEST(test_undefined_behaviour_in_the_engine_process_is_reported)
{
	int status;
	const char *text = run_with(overflows_a_number, &status);

	/* -fsanitize-undefined-trap-on-error makes it an illegal instruction. */
	ck_assert_msg(strstr(text, "signed integer overflow") || strstr(text, "AddressSanitizer: ILL"), "status %d: %s",
		      status, text);
	ck_assert_ptr_nonnull(strstr(text, "test_reports.c"));
	ck_assert_int_eq(shared->starts, 1);
}
END_TEST
#endif

#ifdef __SANITIZE_THREAD__
START_TEST(test_race_in_the_engine_process_is_reported)
{
	check_is_reported(races, "data race", "race");
}
END_TEST
#endif

/* The run-time library reads its options before main(). */
static int execute_with_reports(char **argv)
{
	char folder[] = "/tmp/uverbsd-reports-XXXXXX", options[PATH_MAX];

	if (!mkdtemp(folder) || chmod(folder, 01777))
		return 1;
	snprintf(options, sizeof(options), "log_path=%s/report:print_stacktrace=1:handle_sigill=1", folder);
	setenv("ASAN_OPTIONS", options, 1);
	setenv("UBSAN_OPTIONS", options, 1);
	setenv("TSAN_OPTIONS", options, 1);
	setenv("UVERBSD_TEST_REPORTS", folder, 1);
	execv("/proc/self/exe", argv);
	return 1;
}

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		test_engine_without_faults_has_no_report,
#ifdef __SANITIZE_ADDRESS__
		test_overflow_in_the_engine_process_is_reported,
		test_leak_of_the_engine_process_is_reported,
		test_undefined_behaviour_in_the_engine_process_is_reported,
#endif
#ifdef __SANITIZE_THREAD__
		test_race_in_the_engine_process_is_reported,
#endif
	};
	const char *folder = getenv("UVERBSD_TEST_REPORTS");
	int status;

	if (!folder)
		return execute_with_reports(argv);
	snprintf(reports, sizeof(reports), "%s", folder);
	status = run_tests("reports", tests, sizeof(tests) / sizeof(tests[0]));
	if (!rmdir(folder))
		return status;
	fprintf(stderr, "%s has reports about this test itself\n", folder);
	return 1;
}
