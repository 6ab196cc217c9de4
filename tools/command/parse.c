/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads the command line of a command by its row. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../daemon/ask.h"
#include "command.h"
#include "run/run.h"

enum { HELP = 'h', FIRST_ROW = 1000, MAX_ROWS = 64 };

struct args_parser {
	struct uvd_args *args;
	const struct uvd_command_option *rows[MAX_ROWS];
	unsigned int num;
	struct option longs[MAX_ROWS + 2];
	char letters[2 * MAX_ROWS + 8];
	bool wants_help;
};

int uvd_args_wrong(const struct uvd_args *args, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", args->who);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "; see `uverbsctl %s --help`\n", args->command->name);
	return 2;
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static void args_parser_rows(struct args_parser *p, const struct uvd_args *args)
{
	char *letter = p->letters;

	if (args->command->stops)
		*letter++ = '+';
	*letter++ = ':';
	*letter++ = 'h';
	p->longs[0] = (struct option){ "help", no_argument, NULL, HELP };
	while (p->num < MAX_ROWS && (p->rows[p->num] = uvd_command_option_at(args->command, args->verb, p->num))) {
		const struct uvd_command_option *o = p->rows[p->num];

		p->longs[p->num + 1] = (struct option){ o->name, o->arg ? required_argument : no_argument, NULL,
							FIRST_ROW + (int)p->num };
		if (o->letter)
			*letter++ = o->letter;
		if (o->letter && o->arg)
			*letter++ = ':';
		p->num++;
	}
}

static const struct uvd_command_option *args_parser_row(const struct args_parser *p, int c)
{
	if (c >= FIRST_ROW)
		return p->rows[c - FIRST_ROW];
	for (unsigned int i = 0; i < p->num; i++)
		if (p->rows[i]->letter == c)
			return p->rows[i];
	return NULL;
}

/* Returns -1 to go on, or the exit status. */
static int args_store_number(const struct uvd_args *args, const struct uvd_command_option *o, void *at)
{
	char *end;
	unsigned long long number = 0;
	double real;

	errno = 0;
	if (o->store == UVD_STORE_REAL)
		real = strtod(optarg, &end);
	else
		real = number = strtoull(optarg, &end, 0);
	if (end == optarg || *end || errno || optarg[strspn(optarg, " ")] == '-')
		return uvd_args_wrong(args, "--%s: `%s` is not a number", o->name, optarg);
	if (real < o->min || (o->max && real > o->max))
		return uvd_args_wrong(args, "--%s: `%s` is not from %.15g to %.15g", o->name, optarg, o->min,
				      o->max ? o->max : (double)UINT64_MAX);
	if (o->store == UVD_STORE_REAL)
		memcpy(at, &real, sizeof(real));
	else /* little and big endian alike */
		memcpy(at, (char *)&number + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(number) - o->size : 0),
		       o->size);
	return -1;
}

static int args_store_choice(const struct uvd_args *args, const struct uvd_command_option *o, void *at)
{
	struct uvd_nearest nearest = { .wrong = optarg };
	char names[UVD_NEAREST_TEXT];

	for (int i = 0; o->choices[i]; i++) {
		if (!strcmp(o->choices[i], optarg)) {
			*(int *)at = i;
			return -1;
		}
		uvd_nearest_add(&nearest, o->choices[i]);
	}
	return uvd_args_wrong(args, "--%s: unknown value `%s`; the nearest are %s", o->name, optarg,
			      uvd_nearest_text(&nearest, names));
}

static int args_store(struct uvd_args *args, const struct uvd_command_option *o)
{
	void *at = (char *)(uvd_command_is_shared(o) ? (void *)args : args->options) + o->offset;

	switch (o->store) {
	case UVD_STORE_FLAG:
		*(bool *)at = true;
		return -1;
	case UVD_STORE_CONSTANT:
		*(int *)at = o->value;
		return -1;
	case UVD_STORE_TEXT:
		*(const char **)at = optarg;
		return -1;
	case UVD_STORE_CHOICE:
		return args_store_choice(args, o, at);
	default:
		return args_store_number(args, o, at);
	}
}

static int args_read_options(struct args_parser *p, int argc, char **argv)
{
	int c, status = -1;

	opterr = 0;
	optind = 0;
	while (status < 0 && (c = getopt_long(argc, argv, p->letters, p->longs, NULL)) >= 0) {
		if (c == HELP) {
			p->wants_help = true;
			return -1;
		}
		if (c == '?' || c == ':') {
			uvd_help_wrong_option(p->args->who, c, argv, p->longs);
			return 2;
		}
		status = args_store(p->args, args_parser_row(p, c));
	}
	p->args->words = argv + optind;
	p->args->num_words = argc - optind;
	return status;
}

/* Moves all but this command's options and their values to others[]. Returns how many words stay in argv[]. */
static int args_pass_others(const struct args_parser *p, int argc, char **argv, char **others)
{
	int own = 1, num = 0;

	for (int i = 1; i < argc; i++) {
		const struct option *o = p->longs;
		const size_t len = strncmp(argv[i], "--", 2) ? 0 : strcspn(argv[i] + 2, "=");

		while (o->name && !(len == strlen(o->name) && !strncmp(o->name, argv[i] + 2, len)))
			o++;
		if (!o->name && strcmp(argv[i], "-h")) {
			others[num++] = argv[i];
			continue;
		}
		argv[own++] = argv[i];
		if (o->name && o->has_arg && !argv[i][2 + len] && i + 1 < argc)
			argv[own++] = argv[++i];
	}
	others[num] = NULL;
	return own;
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

static const char *args_word_texts(const struct uvd_args *args)
{
	const char *text = args->verb ? args->verb->words : args->command->words;

	return text ? text : "";
}

/* Returns -1 to go on, or the exit status: are there as many words as the row says? */
static int args_check_words(const struct uvd_args *args)
{
	const char *text = args_word_texts(args);
	struct uvd_command_word word;
	unsigned int depth = 0;
	int least = 0, most = 0;
	bool is_rest = false, has_rest = false;

	while (uvd_command_word_next(&text, &word, &is_rest, &depth)) {
		has_rest |= word.is_rest;
		if (word.is_rest || (args->device && uvd_command_word_values(word.name) == UVD_VALUES_DEVICE))
			continue;
		least += !word.is_optional;
		if (!word.is_optional && args->num_words < least)
			return uvd_args_wrong(args, "%s is missing", word.name);
		most = word.repeats || most == INT_MAX ? INT_MAX : most + 1;
	}
	if (args->num_words > most)
		return uvd_args_wrong(args, "`%s` is too much", args->words[most]);
	if (args->num_rest && !has_rest)
		return uvd_args_wrong(args, "`%s` is too much", args->rest[0]);
	return -1;
}

/* ---- a command ------------------------------------------------------------------------------------------------------ */

/* Finds the socket to ask. Returns -1 to go on, or the exit status. */
static int args_find_control(struct uvd_args *args)
{
	static char path[PATH_MAX];

	args->names_control = args->control || args->run;
	if (args->control && args->run)
		return uvd_args_wrong(args, "--control and --run name two sockets");
	if (args->run) {
		if (!uvd_run_find(args->run, path))
			return 1;
		args->control = path;
	}
	if (!args->control)
		args->control = uvd_ask_control();
	return -1;
}

static int args_parse(struct uvd_args *args, int argc, char **argv, char **others)
{
	struct args_parser p = { .args = args };
	int end = args->command->stops ? argc : 1, status;

	args_parser_rows(&p, args);
	/* The words behind `--` are not looked at. */
	while (end < argc && strcmp(argv[end], "--"))
		end++;
	args->num_rest = end < argc ? argc - end - 1 : 0;
	args->rest = end < argc ? argv + end + 1 : argv + argc;
	if (args->verb && args->verb->passes)
		end = args_pass_others(&p, end, argv, others);
	status = args_read_options(&p, end, argv);
	if (p.wants_help) {
		uvd_command_help(stdout, args->command);
		return 0;
	}
	if (status < 0 && args->verb && args->verb->passes) {
		args->words = others;
		for (args->num_words = 0; others[args->num_words];)
			args->num_words++;
	}
	if (status < 0)
		status = args_check_words(args);
	return status < 0 ? args_find_control(args) : status;
}

/* Returns the index of the first word that is no option, or of its value, or argc. */
static int args_verb_at(const struct uvd_command *c, int argc, char **argv)
{
	const struct uvd_command_option *o;
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++)
		for (unsigned int n = 0; (o = uvd_command_option_at(c, NULL, n)); n++)
			if (o->arg && !strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, o->name)) {
				i++;
				break;
			}
	return i < argc ? i : argc;
}

static int args_no_verb(const struct uvd_args *args, const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };
	char names[UVD_NEAREST_TEXT];

	for (const struct uvd_command_verb *v = args->command->verbs; v->name; v++)
		uvd_nearest_add(&nearest, v->name);
	if (!*word)
		return uvd_args_wrong(args, "a verb is missing, as %s", uvd_nearest_text(&nearest, names));
	return uvd_args_wrong(args, "unknown verb `%s`; the nearest are %s", word, uvd_nearest_text(&nearest, names));
}

/* Returns the exit status. word: behind --help; NULL: there is none. */
static int args_help(const struct uvd_command *c, const char *word)
{
	if (word && *word != '-' && c->help_word)
		return c->help_word(stdout, word) ? 0 : 2;
	uvd_command_help(stdout, c);
	return 0;
}

/* Finds the verb, and takes it out. Returns -1 to go on, or the exit status. */
static int args_take_verb(struct uvd_args *args, int *argc, char **argv)
{
	const int at = args_verb_at(args->command, *argc, argv);

	for (int i = 1; i < *argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return args_help(args->command, i + 1 < *argc ? argv[i + 1] : NULL);
	args->verb = at < *argc ? uvd_command_verb_find(args->command, argv[at]) : NULL;
	if (!args->verb)
		return args_no_verb(args, at < *argc ? argv[at] : "");
	memmove(argv + at, argv + at + 1, (*argc - at) * sizeof(*argv));
	--*argc;
	return -1;
}

static int args_run(struct uvd_args *args, int argc, char **argv)
{
	char **others = calloc(argc + 1, sizeof(*others));
	int status;

	args->options = calloc(1, args->command->size + 1);
	if (!others || !args->options) {
		fprintf(stderr, "%s: %s\n", args->who, uvd_errno_name(ENOMEM));
		status = 1;
		goto out;
	}
	if (args->command->defaults)
		memcpy(args->options, args->command->defaults, args->command->size);
	status = args_parse(args, argc, argv, others);
	if (status < 0)
		status = (args->verb && args->verb->run ? args->verb->run : args->command->run)(args);
out:
	free(others);
	free(args->options);
	return status;
}

int uvd_command_main(const struct uvd_command *c, int argc, char **argv)
{
	char who[64];
	struct uvd_args args = { .command = c, .who = who };
	int status;

	snprintf(who, sizeof(who), "uverbsctl %s", c->name);
	argv[0] = who;
	if (c->run_raw)
		return c->run_raw(argc, argv);
	if (c->verbs) {
		status = args_take_verb(&args, &argc, argv);
		if (status >= 0)
			return status;
		snprintf(who, sizeof(who), "uverbsctl %s %s", c->name, args.verb->name);
	}
	return args_run(&args, argc, argv);
}
