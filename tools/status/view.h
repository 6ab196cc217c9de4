/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status: asks for a status, and shows it as text, as JSON, or as a screen. */
#ifndef UVD_TOOLS_STATUS_VIEW_H
#define UVD_TOOLS_STATUS_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

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

/* limits.c: adds the limits, and `near` where 80 % of it or more are registered. */
void uvd_status_add_limits(json_t *status);

/* objects.c: the objects of an open file as lines of text, parents before their children. */
void uvd_status_objects(const json_t *file, void (*line)(void *arg, const char *text), void *arg);

/* screen.c: a screen of lines of text, each cut to its width. */
struct uvd_status_screen {
	unsigned int rows, columns;
	unsigned int num; /* lines so far, of which at most `rows` are shown */
	const char *start_of_line; /* on a terminal, a sequence that clears the line */
	char last[512]; /* line number `rows`, until it is known whether there are more */
};

/* Prints a line and cuts it, if there is room for it. */
void uvd_status_line(struct uvd_status_screen *screen, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Prints at most screen->rows lines. before: the status of `seconds` ago, for rates; NULL: there is none.
 */
void uvd_status_screen_print(struct uvd_status_screen *screen, const json_t *status, const json_t *before,
			     double seconds);

/*
 * verbs.c: the calls of each verb. Asks the daemon to count from now on, until the caller closes what is returned.
 * Returns NULL on failure; `why` says why, in printable text.
 */
FILE *uvd_status_meter_open(const char *control, char why[UVD_STATUS_TEXT]);
/* Returns the counts so far, {"verbs": [...], "uncounted": N}, which the caller frees; NULL: the daemon has ended them. */
json_t *uvd_status_meter_read(FILE *meter);
/* Adds rates and percentiles to `verbs`: over the `seconds` since `before` (NULL: since they began). */
void uvd_status_add_rates(const json_t *verbs, const json_t *before, double seconds);
/* Prints what the status has in `verbs`, the busiest ones first, or why they are missing (`verbs_refused`). */
void uvd_status_screen_verbs(struct uvd_status_screen *screen, const json_t *status);

/*
 * watch.c: shows the status each `seconds` until q, SIGINT or the end of the daemon. Returns the exit status: 1
 * if the daemon did not answer.
 */
struct uvd_status_watch {
	const char *control;
	double seconds; /* 0: not chosen */
	bool once; /* one screen, after `seconds` */
	bool json;
};
int uvd_status_watch(const struct uvd_status_watch *watch);

#endif
