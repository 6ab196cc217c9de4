/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where a trace comes from: a file, or the control socket of a daemon or run. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../daemon/ask.h"
#include "control/control.h"
#include "reader.h"

static volatile sig_atomic_t interrupted;
static volatile int connection = -1;

/* Shuts the connection down: the reader still gets all that the daemon sent, then the trace ends. */
static void on_interrupt(int sig)
{
	interrupted = 1;
	shutdown(connection, SHUT_RDWR);
}

bool uvd_trace_from_daemon(struct uvd_trace_reader *r, const char *who, const char *control, uint32_t pid)
{
	const struct sigaction stop = { .sa_handler = on_interrupt };
	char command[32], *line;
	const char *error;
	json_t *answer;

	if (!control)
		control = uvd_ask_control();
	snprintf(command, sizeof(command), pid ? "%s %u" : "%s", who, pid);
	line = uvd_control_ask_more(control, command, &r->from);
	if (!line) {
		uvd_control_complain(who, control);
		return false;
	}
	answer = uvd_control_parse(line);
	error = json_string_value(json_object_get(answer, "error"));
	if (error || !answer)
		fprintf(stderr, "uverbsctl %s: %s\n", who, error ? error : "the daemon's answer makes no sense");
	json_decref(answer);
	free(line);
	if (error || !answer)
		return false;
	r->what = control;
	r->stop = &interrupted;
	connection = fileno(r->from);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	fprintf(stderr, "uverbsctl %s: it has begun\n", who);
	return true;
}

bool uvd_trace_from_file(struct uvd_trace_reader *r, const char *who, const char *path)
{
	if (!strcmp(path, "-")) {
		r->what = "standard input";
		r->from = stdin;
		return true;
	}
	r->what = path;
	r->from = fopen(path, "re");
	if (!r->from)
		fprintf(stderr, "uverbsctl %s: %s: %s\n", who, path, uvd_errno_name(errno));
	return r->from;
}
