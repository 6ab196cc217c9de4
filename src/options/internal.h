/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of options, and the functions that convert an option's text to its value. */
#ifndef UVD_OPTIONS_INTERNAL_H
#define UVD_OPTIONS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * What an option describes. It decides the struct that set() fills: uvd_options, uvd_device_config or uvd_port_config.
 */
enum uvd_option_scope { UVD_SCOPE_PROGRAM, UVD_SCOPE_DEVICE, UVD_SCOPE_PORT, UVD_SCOPE_LIMIT /* uvd_options, too */ };

struct uvd_option_choice {
	const char *name;
	int value;
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
	const char *preset; /* the default, in words */
	const char *omitted; /* stands for an argument that is left out before another option; NULL: it is required */
	const char *help; /* NULL: the daemon's processes use the option among themselves */
};

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

#endif
