/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of options, and how each type's text becomes a value. */
#ifndef UVD_OPTIONS_INTERNAL_H
#define UVD_OPTIONS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* What an option describes, and so what its setter gets: struct uvd_options, uvd_device_config or uvd_port_config. */
enum uvd_option_scope { UVD_SCOPE_PROGRAM, UVD_SCOPE_DEVICE, UVD_SCOPE_PORT, UVD_SCOPE_LIMIT /* of uvd_options, too */ };

struct uvd_option_choice {
	const char *name;
	int value;
};

struct uvd_option_row {
	const char *name; /* --name; in the file also with _ for - */
	const char *arg; /* NULL: a flag, "yes" or "no" in the file */
	uint8_t scope;
	uint8_t programs; /* set of enum uvd_program */
	uint16_t size; /* bytes of a number */
	uint16_t offset; /* of the value */
	long long min, max; /* numbers; strings: max is the array's size */
	const struct uvd_option_choice *choices; /* ends with a NULL name */
	/*
	 * NULL, or what is wrong with text. nth: text may cover several devices or ports; this is the nth of them, and
	 * addresses count up.
	 */
	const char *(*set)(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth);
	const char *preset; /* the default, in words */
	const char *help; /* NULL: an option between the daemon's own processes */
};

/* One after the other, from 0: those of the table in rows.c, then the limits of users. NULL: there are no more. */
const struct uvd_option_row *uvd_option_at(unsigned int i);
/* By name; - and _ are the same. NULL: the program has no such option. */
const struct uvd_option_row *uvd_option_find(const char *name, unsigned int program);

#endif
