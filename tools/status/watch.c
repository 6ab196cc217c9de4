/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status --watch: asks again and again, and draws the screen with plain ANSI sequences. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "control/control.h"
#include "view.h"
#include "util/util.h"

enum { DEFAULT_SECONDS = 2 };

static volatile sig_atomic_t watch_ended;

json_t *uvd_status_ask(const char *control, const char *command)
{
	char *line = uvd_control_ask(control, command);
	json_t *status = uvd_control_parse(line);

	if (!line && !watch_ended)
		uvd_control_complain("status", control);
	else if (!status && !watch_ended)
		fprintf(stderr, "uverbsctl status: the answer of the uverbsd on %s is not JSON\n", control);
	free(line);
	if (json_object_get(status, "error")) {
		fprintf(stderr, "uverbsctl status: %s\n", uvd_status_text(status, "error"));
		json_decref(status);
		return NULL;
	}
	uvd_status_add_limits(status);
	return status;
}

void uvd_status_print_json(const json_t *status)
{
	json_dumpf(status, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	fflush(stdout);
}

/* ---- the terminal ------------------------------------------------------------------------------------------------ */

static void watch_on_signal(int sig)
{
	watch_ended = 1;
}

/* Keys are read without Enter and not shown. Returns false if stdin is no terminal; else *was is to be restored. */
static bool keys_begin(struct termios *was)
{
	struct termios keys;

	if (tcgetattr(STDIN_FILENO, was))
		return false;
	keys = *was;
	keys.c_lflag &= ~(ICANON | ECHO);
	return !tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

static void screen_size(struct uvd_status_screen *screen)
{
	struct winsize size;

	screen->rows = 24;
	screen->columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return;
	screen->rows = size.ws_row;
	screen->columns = size.ws_col;
}

/* Draws over the last screen and clears what remains of it, so nothing flickers. */
static void watch_draw(const json_t *status, const json_t *before, double seconds, bool once)
{
	struct uvd_status_screen screen = { .start_of_line = once ? "" : "\033[K" };

	screen_size(&screen);
	if (!once)
		printf("\033[H");
	uvd_status_screen_print(&screen, status, before, seconds);
	printf(once ? "\n" : "\033[J");
	fflush(stdout);
}

/* Waits, and reads keys. Returns false if the user wants the end. */
static bool watch_wait(double seconds, bool has_keys)
{
	struct pollfd fd = { .fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	char key;

	if (poll(&fd, 1, (int)(seconds * 1000)) > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
		return false;
	return !watch_ended && !ferror(stdout);
}

static double watch_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Adds the calls of each verb to the status, or why they are not there. *meter is closed if the daemon has ended it. */
static void watch_add_verbs(json_t *status, const json_t *before, FILE **meter, const char *why, double seconds)
{
	json_t *counts = *meter ? uvd_status_meter_read(*meter) : NULL;

	if (counts) {
		uvd_status_add_rates(json_object_get(counts, "verbs"), json_object_get(before, "verbs"), seconds);
		json_object_update(status, counts);
		json_decref(counts);
		return;
	}
	if (*meter)
		fclose(*meter);
	*meter = NULL;
	json_object_set_new(status, "verbs_refused", json_string(why));
}

/* Returns the exit status. */
static int watch_loop(const struct uvd_status_watch *watch, double seconds, bool has_keys)
{
	char why[UVD_STATUS_TEXT] = "the daemon has ended it";
	json_t *status = NULL, *before = NULL;
	double asked = watch_now(), last = 0;
	FILE *meter = NULL;

	if (!watch->once || watch->seconds)
		meter = uvd_status_meter_open(watch->control, why);
	if (meter && watch->once)
		watch_wait(seconds, has_keys);
	do {
		json_decref(before);
		before = status;
		last = asked;
		asked = watch_now();
		status = uvd_status_ask(watch->control, "status");
		if (status && (!watch->once || watch->seconds))
			watch_add_verbs(status, before, &meter, why, asked - last);
		if (status && watch->json)
			uvd_status_print_json(status);
		else if (status)
			watch_draw(status, before, asked - last, watch->once);
	} while (status && !watch->once && watch_wait(seconds, has_keys));
	if (meter)
		fclose(meter);
	json_decref(before);
	json_decref(status);
	/* The signal that ends the watch can also interrupt a question. */
	return status || (watch_ended && !watch->once) ? 0 : 1;
}

int uvd_status_watch(const struct uvd_status_watch *watch)
{
	const struct sigaction end = { .sa_handler = watch_on_signal };
	const bool draws = !watch->once && !watch->json;
	struct termios was;
	bool has_keys;
	int ret;

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	has_keys = draws && keys_begin(&was);
	if (draws)
		printf("\033[2J");
	ret = watch_loop(watch, watch->seconds ? watch->seconds : DEFAULT_SECONDS, has_keys);
	if (draws)
		putchar('\n');
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &was);
	return ret;
}
