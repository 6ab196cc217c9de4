/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of options, and the functions that convert an option's text to its value. */
#ifndef UVD_OPTIONS_INTERNAL_H
#define UVD_OPTIONS_INTERNAL_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "options/options.h"

/*
 * What an option describes. It decides the struct that set() fills: uvd_options, uvd_device_config or uvd_port_config.
 */
enum uvd_option_scope { UVD_SCOPE_PROGRAM, UVD_SCOPE_DEVICE, UVD_SCOPE_PORT, UVD_SCOPE_LIMIT /* uvd_options, too */ };

enum { HELP_COLUMN = 29 /* of the texts in the help of options */ };

struct uvd_option_choice {
	const char *name;
	int value;
};

/* Those options of a device that the engine keeps as text (core/texts.h). */
struct uvd_option_text_kind {
	enum uvd_text_kind kind;
	const char *(*wrong)(const char *text); /* returns a message that says what is wrong with the text, or NULL */
	char *(*copy)(const char *text); /* allocates what the engine gets; NULL: no memory */
	bool differs_by_user; /* may be in the section of a user or of a User Capability, whose prefix it then gets */
};

struct uvd_option_row {
	const char *name; /* --name; in the file also with _ for - */
	const char *arg; /* NULL: a flag, "yes" or "no" in the file */
	uint8_t scope;
	uint8_t programs; /* set of enum uvd_program */
	uint16_t size; /* bytes of the value, if it is a number */
	uint16_t offset; /* of the value in its struct */
	long long min, max; /* numbers; strings: max is the array's size */
	const struct uvd_option_choice *choices; /* ends with a NULL name */
	/*
	 * Stores the value of `text` in `base`. Returns NULL, or a message that says what is wrong with the text. One
	 * text can apply to several devices or ports: nth is the number of this one, and addresses are increased by it.
	 */
	const char *(*set)(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
	const struct uvd_option_text_kind *text; /* the engine keeps the text, and set is NULL; NULL: it does not */
	/* Names something that a plug-in can have: returns what is wrong with that, or NULL. NULL: it does not. */
	const char *(*check)(struct uvd_plugins *plugins, const char *text);
	bool may_be_empty; /* a string: "" stands for the preset */
	bool is_file; /* the configuration file: no option of a file, and set before all others */
	bool decides_persona; /* on which the defaults of the device's other options depend */
	bool is_plugin; /* loads a plug-in: words KEY=VALUE may follow */
	bool is_common; /* --help without a section has it */
	bool is_of_engine; /* is no option of one more device */
	bool is_reloaded; /* a running daemon takes over another value: it is of devices, or of User Capabilities */
	bool differs_by_ucap; /* may be in a section [ucap NAME]; then its text begins with NAME: */
	const char *preset; /* the default, in words */
	const char *omitted; /* stands for an argument that is left out before another option; NULL: it is required */
	bool is_glued; /* its argument stands behind a `=`, or is left out: --NAME=ARG */
	const char *help; /* NULL: the daemon's processes use the option among themselves */
};

/* Is it one printable line without '/', that can be a folder's name or a file's text in sysfs? It has `size` bytes at most. */
bool uvd_option_text_ok(const char *text, size_t size);

/*
 * Returns option number i, from 0: first the table in rows.c, then the limits of users. Returns NULL after the last
 * one.
 */
const struct uvd_option_row *uvd_option_at(unsigned int i);
/*
 * Finds an option by its name, where _ may stand for -. program: a set of enum uvd_program. Returns NULL if none of
 * these programs has it.
 */
const struct uvd_option_row *uvd_option_find(const char *name, unsigned int program);

/*
 * One option that was set. Settings are applied once the number of devices is known, in the order of this array: those
 * of all devices, of one device, of one port, and of the command line; within each of these, in the order of reading.
 */
struct setting {
	const struct uvd_option_row *row;
	char *text;
	int device, port; /* -1: all */
	int line; /* in the file; 0: from the command line */
};

struct parser {
	struct uvd_options *o;
	enum uvd_program program;
	int (*can_map)(void); /* NULL: queues cannot be mapped */
	const struct uvd_option_machine *machine; /* that is known already; NULL: it is looked at */
	const char *name; /* argv[0], for messages */
	struct setting *settings;
	unsigned int num_settings;
	int last_device; /* the highest device with a section of its own */
	bool device_only; /* --help and --version are no options */
	struct uvd_plugins *plugins; /* has the backends and personas */
	const struct uvd_wire_options
		*wire; /* of the engine that the device is added to; NULL: none, or that of --wire */
	bool checks_names; /* of backends and personas */
	bool help; /* --help was given */
	const char *help_section; /* of --help=SECTION; NULL: none */
	char *section; /* FILE of the file's current section [plugin FILE]; NULL: it is another section */
	unsigned int own_lids; /* added to the default LIDs */
	unsigned int first_index; /* device 0 gets the defaults of a device of this index */
	unsigned int first_nth; /* the number in its default name */
	int line;
	FILE *file;
	bool failed;
	/* The file is read again, from `fd`: errors go to `error`. NULL: it is the first time. */
	const struct uvd_options *again;
	int fd;
	char *error;
};

/* Reports an error and its place on stderr. Reports only the first error. */
void uvd_opt_fail(struct parser *p, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void uvd_setting_add(struct parser *p, const struct uvd_option_row *row, const char *text, int device, int port,
		     int line);

/* help.c: prints the help, and that of the plug-ins on the command line. Returns the exit status. */
int uvd_options_give_help(struct parser *p, const struct uvd_help_head *head);

/* file.c: adds the settings of the file p->o->config, those of one device or port last. */
void uvd_options_read_file(struct parser *p);

/* ---- values.c: for `set` of the rows ----------------------------------------------------------------------------- */

const char *uvd_option_set_number(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_nth_number(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_octal(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_choice(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_announce(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_memlock(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_string(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_path(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_path_or_dash(const struct uvd_option_row *row, void *base, const char *text,
					unsigned int nth);
const char *uvd_option_set_text(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_sysfs(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_group(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_guid(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_pkeys(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_ucaps(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_granted(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_link_layer(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
/* Sets the user of the engine process, and that user's group, unless there is no such user or it is root. */
const char *uvd_option_set_engine_user(const struct uvd_option_row *row, void *base, const char *text,
				       unsigned int nth);

/* ---- addresses.c ------------------------------------------------------------------------------------------------- */

/* Copies the next item of a list that is separated by commas. Returns false if there is none. */
bool uvd_option_next_item(const char **text, char *item, size_t size);
const char *uvd_option_set_gids(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
/* Reads an address as the GID that stands for it. Returns false if it is none. */
bool uvd_option_read_ip(const char *text, union ibv_gid *gid);
/* Of a struct uvd_device_config. */
const char *uvd_option_set_ips(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);

/* ---- wire.c ------------------------------------------------------------------------------------------------------ */

const char *uvd_option_set_wire(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
/* In an engine process: what its broker says of the sockets that it has opened: the GUID in hexadecimal, and the addresses. */
const char *uvd_option_set_known_wire(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
/* Sets the defaults of device `index` on the wire. Call it before the device's options are applied, and the other one afterwards. */
void uvd_option_wire_begin(const struct uvd_wire_options *w, struct uvd_device_config *config, unsigned int index);
/* Puts the wire's addresses first. Returns NULL, or a message that says what is wrong with the device's options. */
const char *uvd_option_wire_end(const struct uvd_wire_options *w, struct uvd_device_config *config);
/* Gives a device's ports what those of Ethernet have, and the address that each engine has for itself. */
void uvd_option_device_is_ethernet(struct uvd_device_config *config);
/* rows.c: gives the port what a port of Ethernet has: no LIDs, and only the default partition key. */
void uvd_option_port_is_ethernet(struct uvd_port_config *port);

/* Stores a setting in the struct of its row's scope. Reports what is wrong with it. */
void uvd_setting_apply(struct parser *p, const struct setting *s, void *base, unsigned int nth);

/* ---- personas.c -------------------------------------------------------------------------------------------------- */

/* Returns how many devices --personas names. */
unsigned int uvd_option_num_listed(const struct uvd_options *o);
/* Returns how many devices the options speak of; one without any. */
unsigned int uvd_option_num_described(const struct parser *p);
/*
 * Finds the device's persona, which decides the defaults of its other options; the default one if that which is named is none. is_soft: has
 * it the backend `soft`?
 */
const struct uvd_persona *uvd_option_find_persona(struct parser *p, int device, bool *is_soft);
/* Names the device. Names count for each persona: --personas rxe,hfi1 makes rxe0 and hfi1_0. Call it in the order of the devices. */
void uvd_option_name_device(const struct parser *p, int device, const struct uvd_persona *persona);
/* One of Ethernet in --personas makes all devices so, or they could not reach each other. */
bool uvd_option_list_has_ethernet(const struct parser *p);
void uvd_option_check_personas(struct parser *p);

/* ---- machine.c --------------------------------------------------------------------------------------------------- */

/* In an engine process: what its broker says of the machine, as uvd_options_machine_text() writes it. */
const char *uvd_option_set_known_machine(const struct uvd_option_row *row, void *base, const char *text,
					 unsigned int nth);
/* Finds out what the machine has, for the options of this program, unless a broker has told. */
void uvd_option_machine_look(struct parser *p);

/* ---- plugins.c --------------------------------------------------------------------------------------------------- */

/* Adds a plug-in to the struct uvd_options, or values to one that is there. text: the file, and lines KEY=VALUE. */
const char *uvd_option_set_plugin(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
/* Opens the plug-ins' files, after which their backends and personas are found. Returns false, and why. */
bool uvd_options_open_plugins(struct uvd_options *o, char error[UVD_PLUGIN_ERROR]);
void uvd_options_free_plugins(struct uvd_options *o);
/* Prints the options of the plug-ins, which must be open. */
void uvd_options_help_plugins(const struct uvd_options *o);

/* ---- texts.c ----------------------------------------------------------------------------------------------------- */

extern const struct uvd_option_text_kind uvd_option_filter, uvd_option_allow, uvd_option_quota;
/* Adds a text, which is right, of device number `device`. Returns NULL, or a message: there is no memory. */
const char *uvd_options_add_text(struct uvd_options *o, const struct uvd_option_text_kind *kind, unsigned int device,
				 const char *text);
void uvd_options_free_texts(struct uvd_options *o);

/* ---- again.c --------------------------------------------------------------------------------------------------------- */

/* Notes the settings of the program in p->o->said. */
void uvd_option_say(struct parser *p);
void uvd_options_free_said(struct uvd_options *o);
/* options.c: parses by *p, whose `o` it fills. Returns -1 or an exit status. */
int uvd_options_run_parser(struct parser *p, const struct uvd_help_head *head, int argc, char **argv);

/* ---- ucaps.c --------------------------------------------------------------------------------------------------------- */

const char *uvd_option_set_ucap_owner(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_ucap_group(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
const char *uvd_option_set_ucap_mode(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
/* Fails if an option names a User Capability that no device creates. */
void uvd_option_check_ucap_grants(struct parser *p);

#endif
