/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status: asks for a status, and shows it as text, as JSON, or as a screen. */
#ifndef UVD_TOOLS_STATUS_VIEW_H
#define UVD_TOOLS_STATUS_VIEW_H

#include <jansson.h>
#include <stdbool.h>

enum { UVD_STATUS_TEXT = 128 };

/* Return a field of an answer: "?" or 0 if it is not there. */
const char *uvd_status_text(const json_t *object, const char *key);
long long uvd_status_value(const json_t *object, const char *key);
/* Copies a client's text. Control characters become \xNN: they could change the terminal. Returns `to`. */
const char *uvd_status_escape(char to[UVD_STATUS_TEXT], const char *text);

/*
 * Sends the command. Returns the answer, which the caller frees, or NULL after a message. In a status each entry of
 * `memlock` gets a `limit`, in pages: null if there is none, or if it is not known.
 */
json_t *uvd_status_ask(const char *control, const char *command);
void uvd_status_print_json(const json_t *status);

/* status_limits.c: adds the limits. */
void uvd_status_add_limits(json_t *status);

/* status_screen.c: a screen of lines of text, each cut to its width. */
struct uvd_status_screen {
	unsigned int rows, columns;
	unsigned int num; /* lines so far, of which at most `rows` are shown */
	const char *start_of_line; /* on a terminal, a sequence that clears the line */
	char last[512]; /* line number `rows`, until it is known whether there are more */
};

/*
 * Prints at most screen->rows lines. before: the status of `seconds` ago, for rates; NULL: there is none.
 */
void uvd_status_screen_print(struct uvd_status_screen *screen, const json_t *status, const json_t *before,
			     double seconds);

/*
 * status_watch.c: shows the status each `seconds` until q, SIGINT or the end of the daemon. Returns the exit status: 1
 * if the daemon did not answer.
 */
int uvd_status_watch(const char *control, double seconds, bool once, bool json);

#endif
