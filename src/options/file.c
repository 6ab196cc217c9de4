/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The configuration file. */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/internal.h"
#include "options/options.h"
#include "util/util.h"

static int setting_rank(const struct setting *s)
{
	return s->port >= 0 ? 2 : s->device >= 0 ? 1 : 0;
}

/*
 * Sorts the file's settings: a section of one device or port wins over one of all devices, wherever it is in the file.
 * Insertion sort keeps the order of equal ones.
 */
static void settings_sort(struct setting *settings, unsigned int num)
{
	for (unsigned int i = 1; i < num; i++) {
		const struct setting s = settings[i];
		unsigned int at = i;

		for (; at && setting_rank(&settings[at - 1]) > setting_rank(&s); at--)
			settings[at] = settings[at - 1];
		settings[at] = s;
	}
}

/*
 * A section [device N user NAME] or [device N ucap NAME] puts this before the text of `allow` or `quota`, its keys. So does [ucap NAME]
 * before the text of `ucap-owner` and so on.
 */
struct section_subject {
	char prefix[64]; /* "": another section */
	bool is_ucap; /* [ucap NAME] */
};

/* Parses the rest of [device N user NAME], behind N. */
static bool parse_subject(const char *rest, struct section_subject *subject)
{
	char name[48];
	int end = 0;

	if (sscanf(rest, " user %47s%n", name, &end) == 1 && !rest[end])
		snprintf(subject->prefix, sizeof(subject->prefix), "user:%s:", name);
	else if (sscanf(rest, " ucap %47s%n", name, &end) == 1 && !rest[end])
		snprintf(subject->prefix, sizeof(subject->prefix), "ucap:%s:", name);
	return *subject->prefix;
}

/* Parses NAME of [ucap NAME]. */
static bool parse_ucap(const char *name, struct section_subject *subject)
{
	subject->is_ucap = uvd_ucap_name_ok(name);
	if (subject->is_ucap)
		snprintf(subject->prefix, sizeof(subject->prefix), "%s:", name);
	return subject->is_ucap;
}

/* Can the key be in this section of a user or of a User Capability? */
static bool subject_has(const struct section_subject *subject, const struct uvd_option_row *row)
{
	return subject->is_ucap ? row->differs_by_ucap : row->text && row->text->differs_by_user;
}

/*
 * Parses [uverbsd], [limits], [device N], [port N.M], or a section of a device's user or capability. Returns false for any
 * other section.
 */
static bool parse_section(const char *section, int *device, int *port, struct section_subject *subject)
{
	int end = 0;

	*device = *port = -1;
	*subject = (struct section_subject){};
	if (!strcmp(section, "uverbsd") || !strcmp(section, "limits"))
		return true;
	if (!strncmp(section, "ucap ", 5))
		return parse_ucap(section + 5, subject);
	if (sscanf(section, "device %2d%n", device, &end) == 1 &&
	    (!section[end] || parse_subject(section + end, subject)))
		return *device >= 0 && *device < UVD_MAX_DEVICES;
	end = 0;
	if (sscanf(section, "port %2d.%2d%n", device, port, &end) == 2 && end && !section[end])
		return *device >= 0 && *device < UVD_MAX_DEVICES && *port >= 1 && *port <= UVD_MAX_PORTS;
	return false;
}

/* Adds KEY = VALUE of a section [plugin FILE]; without a key, the section itself. */
static void add_plugin_line(struct parser *p, const char *key, const char *value)
{
	const struct uvd_option_row *row = uvd_option_find("plugin", p->program);
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", p->section, key ? "\n" : "", key ? key : "", key ? "=" : "",
		     key ? value : "") < 0) {
		uvd_opt_fail(p, p->line, "no memory");
		return;
	}
	uvd_setting_add(p, row, text, -1, -1, p->line);
	free(text);
}

/* Notes a section's begin: libinih cuts long names off, and leaves out a section without keys. */
static void begin_section(struct parser *p, const char *text)
{
	static const char prefix[] = "[plugin ";
	const char *end = strrchr(text, ']');

	free(p->section);
	p->section = NULL;
	if (strncmp(text, prefix, strlen(prefix)) != 0 || !end)
		return;
	for (text += strlen(prefix); *text == ' '; text++)
		;
	p->section = strndup(text, end > text ? end - text : 0);
	if (p->section)
		add_plugin_line(p, NULL, NULL);
	else
		uvd_opt_fail(p, p->line, "no memory");
}

static int on_line(void *arg, const char *section, const char *name, const char *value)
{
	struct parser *p = arg;
	char full[256];
	const struct uvd_option_row *row;
	struct section_subject subject;
	int device, port;

	if (p->section) {
		add_plugin_line(p, name, value);
		return !p->failed;
	}
	/* In [limits] the names lack their prefix "limit-", so only limits can stand there. */
	if (!strcmp(section, "limits")) {
		snprintf(full, sizeof(full), "limit-%.50s", name);
		name = full;
	}
	row = uvd_option_find(name, p->program);
	if (!parse_section(section, &device, &port, &subject)) {
		uvd_opt_fail(
			p, p->line,
			"[%s] is not a section: use [uverbsd], [limits], [plugin FILE], [device N], [device N user NAME], [ucap NAME] or [port N.M] (devices from 0, ports from 1)",
			section);
	} else if (!row || !row->help || row->is_file || row->is_plugin) {
		/* Ignore an option of the other program: the daemon and `uverbsctl run` can share a file. */
		if (!row && uvd_option_find(name, ~0u))
			return 1;
		uvd_opt_fail(p, p->line, "unknown key `%s`", name);
	} else if (device >= 0 && (row->scope == UVD_SCOPE_PROGRAM || row->scope == UVD_SCOPE_LIMIT)) {
		uvd_opt_fail(p, p->line, "`%s` belongs in [%s]", name,
			     row->scope == UVD_SCOPE_LIMIT ? "limits" : "uverbsd");
	} else if (subject.is_ucap && !subject_has(&subject, row)) {
		uvd_opt_fail(p, p->line,
			     "`%s` does not belong in [%s]: only `ucap-owner`, `ucap-group` and `ucap-mode` do", name,
			     section);
	} else if (*subject.prefix && !subject_has(&subject, row)) {
		uvd_opt_fail(p, p->line, "`%s` belongs in [device %d]: only `allow` and `quota` can differ by user",
			     name, device);
	} else if (port >= 0 && row->scope != UVD_SCOPE_PORT) {
		uvd_opt_fail(p, p->line, "`%s` belongs in [device %d]", name, device);
	} else {
		if (device > p->last_device)
			p->last_device = device;
		/* A line is shorter than that (libinih). */
		snprintf(full, sizeof(full), "%s%s", subject.prefix, value);
		uvd_setting_add(p, row, *subject.prefix ? full : value, device, port, p->line);
	}
	return !p->failed;
}

/*
 * Reads a line for libinih. Counts the lines, because libinih as distributions build it does not report their numbers.
 * Removes leading blanks, because libinih would take an indented line for a continuation of the value before it.
 */
static char *read_line(char *buf, int size, void *arg)
{
	struct parser *p = arg;
	char *text;

	if (p->failed || !fgets(buf, size, p->file))
		return NULL;
	p->line++;
	if (!strchr(buf, '\n') && !feof(p->file)) {
		uvd_opt_fail(p, p->line, "the line is too long");
		return NULL;
	}
	for (text = buf; *text == ' ' || *text == '\t'; text++)
		;
	if (*text == '[')
		begin_section(p, text);
	return memmove(buf, text, strlen(text) + 1);
}

void uvd_options_read_file(struct parser *p)
{
	int line;

	p->file = p->again ? fdopen(fcntl(p->fd, F_DUPFD_CLOEXEC, 0), "r") : fopen(p->o->config, "re");
	if (!p->file) {
		uvd_opt_fail(p, 0, "%s: %s", p->o->config, uvd_errno_name(errno));
		return;
	}
	line = ini_parse_stream(read_line, p, on_line, p);
	if (line)
		uvd_opt_fail(p, line > 0 ? line : p->line, "is neither [section] nor key = value");
	free(p->section);
	p->section = NULL;
	fclose(p->file);
	settings_sort(p->settings, p->num_settings);
}
