/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Is a difference in the list? The conditions of its rows ask about the call, of a program or of a trace. */
#ifndef UVD_PROG_LISTED_H
#define UVD_PROG_LISTED_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"

/* A call that two devices have answered. Its name is the one that the header asks for. */
struct uvd_prog_asked {
	const char *call, *front; /* "CREATE_QP", "write" */
	bool failed; /* with the kernel */
	const char *output; /* that differs, or NULL; its value with the kernel, if value() does not find that */
	uint64_t output_value;
	const void *of; /* for the functions */
	/* Finds an input as it was sent, else an output of the kernel's. Returns false if there is none. */
	bool (*value)(const void *of, const char *name, uint64_t *value);
	bool (*has_attr)(const void *of, const char *pattern);
	bool (*has_knob)(const void *of, const char *knob); /* "!len"; NULL: it has none */
	/* Returns the state that the call's QP was in, UINT64_MAX: no QP. Had this call been made on the QP? */
	uint64_t (*qp_now)(const void *of);
	bool (*qp_after)(const void *of, const char *call);
};

/* Finds the row of a difference and counts it, or returns NULL. */
struct uvd_prog_listed *uvd_prog_listed(struct uvd_prog_list *list, const struct uvd_prog_asked *asked,
					const char *item, const char *kernel, const char *ours);
/* Writes a number as rows and messages have it, and returns the text. */
const char *uvd_prog_number_text(uint64_t number, char text[24]);

#endif
