/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Old spellings of commands, which go on for a release, with a hint. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* Words in capitals stand for any word. Options stay as they are. */
static const struct uvd_old_spelling old_spellings[] = {
	{ "check", "doctor" },
	{ "hca", "hca list" },
	{ "restart", "daemon restart" },
	{ "port DEVICE PORT down", "port down DEVICE PORT" },
	{ "port DEVICE PORT up", "port up DEVICE PORT" },
};

enum { OLD_WORDS = 8, OLD_NAME = 24 };

/* A command line: its words, and its options with their values. */
struct old_line {
	char *words[OLD_WORDS + 1];
	int num;
	char **others; /* argc of them at most */
	int num_others;
};

const struct uvd_old_spelling *uvd_old_spelling_at(unsigned int i)
{
	return i < UVD_COUNT(old_spellings) ? &old_spellings[i] : NULL;
}

/* Does the next word stand behind this option? Only options that commands share are looked at. */
static bool old_has_value(const char *option)
{
	static const char *const shared[] = { "--control", "--run", "--device" };

	for (size_t i = 0; i < UVD_COUNT(shared); i++)
		if (!strcmp(option, shared[i]))
			return true;
	return false;
}

static void old_line_read(struct old_line *line, int argc, char **argv)
{
	bool is_rest = false;

	for (int i = 1; i < argc; i++) {
		is_rest |= !strcmp(argv[i], "--");
		if (!is_rest && argv[i][0] != '-') {
			if (line->num <= OLD_WORDS)
				line->words[line->num++] = argv[i];
			continue;
		}
		line->others[line->num_others++] = argv[i];
		if (!is_rest && old_has_value(argv[i]) && i + 1 < argc)
			line->others[line->num_others++] = argv[++i];
	}
}

/* Takes the next word from *text. Returns false after the last. */
static bool old_word_next(const char **text, char word[OLD_NAME])
{
	int len = 0;

	if (sscanf(*text, "%23s%n", word, &len) != 1)
		return false;
	*text += len;
	return true;
}

/* Returns the index of the word called so in the old spelling, or -1. */
static int old_word_find(const char *old, const char *name)
{
	char word[OLD_NAME];

	for (int i = 0; old_word_next(&old, word); i++)
		if (!strcmp(word, name))
			return i;
	return -1;
}

static bool old_matches(const char *old, const struct old_line *line)
{
	char word[OLD_NAME];
	int i = 0;

	while (old_word_next(&old, word)) {
		if (i == line->num || (!isupper((unsigned char)*word) && strcmp(word, line->words[i])))
			return false;
		i++;
	}
	return i == line->num;
}

/* Makes the new command line, with argv[0] before it and NULL behind it. Returns NULL if there is no memory. */
static char **old_rewrite(const struct uvd_old_spelling *spelling, const struct old_line *line, char *name, int *argc)
{
	char **argv = calloc(OLD_WORDS + line->num_others + 2, sizeof(*argv)), word[OLD_NAME];
	const char *now = spelling->now;
	int n = 0;

	if (!argv)
		return NULL;
	argv[n++] = name;
	while (n < OLD_WORDS && old_word_next(&now, word))
		argv[n++] =
			isupper((unsigned char)*word) ? line->words[old_word_find(spelling->old, word)] : strdup(word);
	memcpy(argv + n, line->others, line->num_others * sizeof(*argv));
	*argc = n + line->num_others;
	return argv;
}

static bool old_wants_help(const struct old_line *line)
{
	for (int i = 0; i < line->num_others; i++)
		if (!strcmp(line->others[i], "--help") || !strcmp(line->others[i], "-h"))
			return true;
	return false;
}

char **uvd_old_spelling_rewrite(int *argc, char **argv)
{
	struct old_line line = { .others = calloc(*argc + 1, sizeof(char *)) };
	const struct uvd_old_spelling *s = old_spellings, *end = s + UVD_COUNT(old_spellings);
	char **rewritten = NULL;

	if (line.others)
		old_line_read(&line, *argc, argv);
	/* The name of a command may be an old spelling in itself: its help is that of the command. */
	if (old_wants_help(&line) && uvd_command_find(argv[1]))
		s = end;
	while (line.others && s < end && !old_matches(s->old, &line))
		s++;
	if (line.others && s < end)
		rewritten = old_rewrite(s, &line, argv[0], argc);
	if (rewritten)
		fprintf(stderr, "uverbsctl: `%s` is an old spelling of `%s`: it goes with the next release\n", s->old,
			s->now);
	free(line.others);
	return rewritten ? rewritten : argv;
}
