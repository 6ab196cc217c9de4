/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "ask.h"
#include "control/control.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_COMMAND = 1022 /* bytes */ };

const char *uvd_ask_control(void)
{
	const char *control = getenv("UVERBSD_CONTROL");

	return control && *control ? control : "/run/uverbsd/control";
}

json_t *uvd_ask(const char *who, const char *control, const char *command)
{
	char *line = uvd_control_ask(control, command);
	json_t *answer = uvd_control_parse(line);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!line)
		uvd_control_complain(who, control);
	else if (!answer)
		fprintf(stderr, "uverbsctl %s: the answer of the uverbsd on %s is not JSON\n", who, control);
	else if (error)
		fprintf(stderr, "uverbsctl %s: %s\n", who, error);
	free(line);
	if (error) {
		json_decref(answer);
		return NULL;
	}
	return answer;
}

json_t *uvd_ask_words(const char *who, const char *control, json_t *words, const char *what)
{
	char *text = json_dumps(words, JSON_COMPACT), *command = NULL;
	json_t *answer = NULL;

	if (text && asprintf(&command, "%s %s", who, text) < 0)
		command = NULL;
	if (command && strlen(command) > LONGEST_COMMAND)
		fprintf(stderr, "uverbsctl %s: %s longer than %d bytes\n", who, what, LONGEST_COMMAND);
	else if (command)
		answer = uvd_ask(who, control, command);
	free(command);
	free(text);
	json_decref(words);
	return answer;
}
