/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/util.h"

enum { HELP_DEFAULT = 80, HELP_LEAST = 40, HELP_MOST = 120, HELP_QUOTED = 48, HELP_EXAMPLE = 30 };

unsigned int uvd_help_width(FILE *to)
{
	const char *columns = getenv("COLUMNS");
	unsigned int width = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (!width && !ioctl(fileno(to), TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width)
		width = HELP_DEFAULT;
	return width < HELP_LEAST ? HELP_LEAST : width > HELP_MOST ? HELP_MOST : width;
}

/* Returns the length of the first word. A short `quoted text` is part of one. */
static size_t help_word(const char *text)
{
	size_t len = 0, quoted;

	while (text[len] && text[len] != ' ') {
		quoted = text[len] == '`' ? strcspn(text + len + 1, "`") : 0;
		if (quoted && quoted < HELP_QUOTED && text[len + 1 + quoted] == '`')
			len += quoted + 1;
		len++;
	}
	return len;
}

void uvd_help_wrap(FILE *to, const char *text, unsigned int at, unsigned int indent)
{
	const unsigned int width = uvd_help_width(to);
	bool is_first = true;
	size_t len;

	for (; *text; text += len + strspn(text + len, " ")) {
		len = help_word(text);
		if (!is_first && at + 1 + len > width) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
		} else if (!is_first) {
			fputc(' ', to);
			at++;
		}
		fwrite(text, 1, len, to);
		at += len;
		is_first = false;
	}
	fputc('\n', to);
}

void uvd_help_row(FILE *to, const char *left, const char *right, unsigned int column)
{
	const unsigned int end = 2 + strlen(left);

	if (!*right)
		fprintf(to, "  %s\n", left);
	else if (end + 2 > column)
		fprintf(to, "  %s\n%*s", left, column, "");
	else
		fprintf(to, "  %s%*s", left, column - end, "");
	if (*right)
		uvd_help_wrap(to, right, column, column);
}

void uvd_help_head_print(FILE *to, const struct uvd_help_head *head)
{
	const unsigned int most = uvd_help_width(to) / 2;
	const struct uvd_help_example *e;
	unsigned int column = 0, len;

	if (!head)
		return;
	for (unsigned int i = 0; head->synopses[i]; i++) {
		fprintf(to, "%s", i ? "       " : "Usage: ");
		uvd_help_wrap(to, head->synopses[i], 7, 11);
	}
	for (e = head->examples; e && e->command; e++) {
		len = strlen(e->command) + 5;
		if (len > column && len <= most)
			column = len;
	}
	if (!column)
		column = HELP_EXAMPLE;
	if (head->examples && head->examples->command)
		fputc('\n', to);
	for (e = head->examples; e && e->command; e++)
		uvd_help_row(to, e->command, e->what, column);
}

/* Does the name begin so, up to a `=`? */
static bool help_begins(const char *name, const char *word)
{
	return !strncmp(name, word, strcspn(word, "="));
}

static void help_unknown_option(const char *who, const char *word, const struct option *longs)
{
	char wrong[UVD_NEAREST_NAME], names[UVD_NEAREST_TEXT], name[UVD_NEAREST_NAME];
	struct uvd_nearest nearest = { .wrong = wrong };
	unsigned int begin = 0;

	snprintf(wrong, sizeof(wrong), "--%.*s", (int)strcspn(word, "="), word);
	for (const struct option *o = longs; o->name; o++)
		begin += help_begins(o->name, word);
	for (const struct option *o = longs; o->name; o++) {
		if (!strncmp(o->name, "internal-", strlen("internal-")) || (begin && !help_begins(o->name, word)))
			continue;
		snprintf(name, sizeof(name), "--%s", o->name);
		uvd_nearest_add(&nearest, name);
	}
	fprintf(stderr, "%s: %s option `%s`; the nearest are %s", who, begin ? "ambiguous" : "unknown", wrong,
		uvd_nearest_text(&nearest, names));
}

void uvd_help_wrong_option(const char *who, int c, char **argv, const struct option *longs)
{
	const char *word = argv[optind - 1];
	const bool is_long = !strncmp(word, "--", 2);
	bool is_known = false;

	for (const struct option *o = longs; is_long && o->name; o++)
		is_known |= strlen(o->name) == strcspn(word + 2, "=") && help_begins(o->name, word + 2);
	if (c == ':')
		fprintf(stderr, "%s: option `%s` needs a value", who, word);
	else if (is_long && is_known)
		fprintf(stderr, "%s: option `%.*s` takes no value", who, (int)strcspn(word, "="), word);
	else if (is_long)
		help_unknown_option(who, word + 2, longs);
	else
		fprintf(stderr, "%s: unknown option `-%c`", who, optopt);
	fprintf(stderr, "; see --help\n");
}
