/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A command of uverbsctl as data. Each command has one row, a struct uvd_command, beside its function; ../commands.h lists the
 * rows. Parser, help, completion, man pages and docs/ are made of them.
 *
 * A new command is its row with its function, and one line in ../commands.h.
 */
#ifndef UVD_TOOLS_COMMAND_H
#define UVD_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "options/options.h"
#include "util/util.h"

/* The kinds of things that a value or a word can name. Completion offers those of the kind. */
enum uvd_values {
	UVD_VALUES_ANY,
	UVD_VALUES_FILE,
	UVD_VALUES_FOLDER,
	UVD_VALUES_DEVICE, /* of the daemon or of the run */
	UVD_VALUES_RUN, /* what `run --join` was given */
	UVD_VALUES_BACKEND,
	UVD_VALUES_PERSONA,
	UVD_VALUES_FILTER,
	UVD_VALUES_PLUGIN,
	UVD_VALUES_PROGRAM,
	UVD_VALUES_COMMAND, /* of uverbsctl */
	UVD_NUM_VALUES,
};

/* How an option's value is stored: at its offset in the command's struct of options. */
enum uvd_store {
	UVD_STORE_FLAG, /* bool: true */
	UVD_STORE_CONSTANT, /* int: the row's `value` */
	UVD_STORE_TEXT, /* const char * */
	UVD_STORE_NUMBER, /* an unsigned number of `size` bytes */
	UVD_STORE_REAL, /* double */
	UVD_STORE_CHOICE, /* int: the index in `choices` */
};

struct uvd_command_option {
	const char *name; /* --name */
	char letter; /* -l, or 0 */
	const char *arg; /* the value's name in the help; NULL: a flag */
	const char *help; /* NULL: the option is internal */
	enum uvd_values values;
	const char *const *choices; /* the words that the value can be; ends with NULL; NULL: it is something else */
	enum uvd_store store;
	uint16_t offset, size;
	int value;
	double min, max; /* of a number; max 0: there is none */
};

/* In a row: where the value goes. type: the command's struct of options. */
#define UVD_STORE(type, m, how) .store = UVD_STORE_##how, .offset = offsetof(type, m), .size = sizeof(((type *)0)->m)

/* Options that commands share, as sets. */
enum {
	UVD_TAKES_CONTROL = 1, /* --control PATH */
	UVD_TAKES_RUN = 2, /* --run NAME */
	UVD_TAKES_DEVICE = 4, /* --device DEVICE, which also stands for a word DEVICE */
};

/* The parsed command line, for the function of the command. */
struct uvd_args {
	const struct uvd_command *command;
	const struct uvd_command_verb *verb; /* NULL: the command has none */
	const char *who; /* begins its messages: "uverbsctl port down" */
	void *options; /* the command's struct of options */
	int num_words;
	char **words; /* that are no options; ends with NULL */
	int num_rest;
	char **rest; /* behind `--`; ends with NULL */
	const char *control; /* the socket to ask: of --control, of --run, $UVERBSD_CONTROL, or the daemon's */
	const char *device; /* of --device; NULL: it was not given */
	bool names_control; /* --control or --run was given */
	const char *run; /* of --run */
};

/* A verb of a noun: `uverbsctl port down`. */
struct uvd_command_verb {
	const char *name;
	/*
	 * The words that follow, for the help and the parser: [WORD] can be left out, WORD... repeats, and those behind `--` are
	 * args->rest. Words called DEVICE, FILE and so on are completed (words.c).
	 */
	const char *words;
	const char *purpose;
	const struct uvd_command_option
		*options; /* beside those of the command; ends with a row without a name; or NULL */
	bool takes_device; /* --device DEVICE */
	bool passes; /* options that are not the command's own are words */
	int (*run)(const struct uvd_args *args); /* NULL: that of the command */
};

struct uvd_command_exit {
	const char *status, *when;
};

struct uvd_command {
	const char *name;
	const char *purpose; /* one line */
	const char *const *synopses; /* NULL: made of `words` or of the verbs */
	const struct uvd_help_example *examples; /* three or more */
	const char *const *text; /* paragraphs; ends with NULL; or NULL */
	const struct uvd_command_verb *verbs; /* ends with one without a name; NULL: the command is no noun */
	const char *words; /* as of a verb */
	bool stops; /* the first word ends the options, as a program and its arguments follow */
	unsigned int takes; /* UVD_TAKES_... */
	const struct uvd_command_option *options;
	size_t size; /* of its struct of options; 0: it has none */
	const void *defaults; /* NULL: zeros */
	const struct uvd_command_exit *exits; /* ends with one without a status; NULL: the usual ones */
	bool is_hidden;
	/* Prints what `uverbsctl NOUN --help WORD` says. Returns false after a message if there is no such word. NULL: the word is ignored. */
	bool (*help_word)(FILE *to, const char *word);
	/*
	 * Returns the exit status: 0, 1 if the request failed, 2 for a wrong command line or configuration, after a message. On a
	 * wrong use beyond what the parser checks it returns uvd_args_wrong().
	 */
	int (*run)(const struct uvd_args *args);
	/* Instead: parses its command line itself, by src/options, which has the options. argv[0] begins messages. */
	int (*run_raw)(int argc, char **argv);
	enum uvd_program program; /* with run_raw: whose options it has */
};

/* ---- table.c ------------------------------------------------------------------------------------------------------- */

/* One row of the list of commands: a group begins where `group` is not NULL. */
struct uvd_command_row {
	const char *group;
	const struct uvd_command *command;
};

/* Returns row number i of ../commands.h, or NULL after the last. */
const struct uvd_command_row *uvd_command_at(unsigned int i);
const struct uvd_command *uvd_command_find(const char *name);
const struct uvd_command_verb *uvd_command_verb_find(const struct uvd_command *c, const char *name);
/* Returns option number i of a command with this verb (NULL: with all of them), or NULL after the last: its own, the verb's, shared ones. */
const struct uvd_command_option *uvd_command_option_at(const struct uvd_command *c, const struct uvd_command_verb *v,
						       unsigned int i);
/* Writes how the command or its verb is used: synopsis number i, from 0. Returns false after the last. */
bool uvd_command_synopsis(const struct uvd_command *c, unsigned int i, char *text, size_t size);
extern const struct uvd_command_exit uvd_command_usual_exits[];

/* ---- parse.c ------------------------------------------------------------------------------------------------------- */

/* Is `option` one of those that all commands share? Its value then goes to struct uvd_args. */
bool uvd_command_is_shared(const struct uvd_command_option *option);
/* Runs the command with its words behind its name, and returns its exit status. */
int uvd_command_main(const struct uvd_command *c, int argc, char **argv);
/* Says on stderr what is wrong with the command line, and where the help is. Returns 2. */
int uvd_args_wrong(const struct uvd_args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- old.c --------------------------------------------------------------------------------------------------------- */

struct uvd_old_spelling {
	const char *old, *now; /* words, those in capitals stand for any word */
};

/* Returns number i, or NULL after the last. */
const struct uvd_old_spelling *uvd_old_spelling_at(unsigned int i);
/*
 * Returns the command line in its new spelling after a hint on stderr, or argv itself. The caller never frees it, as it is the
 * program's.
 */
char **uvd_old_spelling_rewrite(int *argc, char **argv);

/* ---- words.c: the texts with the words of a command ----------------------------------------------------------------- */

/* One word of such a text. */
struct uvd_command_word {
	char name[32]; /* "DEVICE" */
	bool is_optional, repeats, is_rest; /* is_rest: `--` stands before it */
};

/* Reads the next word from *text, and moves it on. Returns false after the last. */
bool uvd_command_word_next(const char **text, struct uvd_command_word *word, bool *is_rest, unsigned int *depth);
/* Returns the kind of things that a word of this name names. */
enum uvd_values uvd_command_word_values(const char *name);

/* ---- help.c -------------------------------------------------------------------------------------------------------- */

void uvd_command_help_all(FILE *to);
void uvd_command_help(FILE *to, const struct uvd_command *c);

#endif
