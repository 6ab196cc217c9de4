/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the commands that change something about a device have in common: --control, and a question with its answer. */
#ifndef UVD_TOOLS_ASK_H
#define UVD_TOOLS_ASK_H

#include <jansson.h>

/*
 * --control and --help, up to the first word that is no option. *control: the socket to ask. The index of that word; or -1:
 * *status is the exit status, and all has been said.
 */
int uvd_ask_options(int argc, char **argv, const char *usage, const char **control, int *status);

/* The answer, the caller's; NULL: it was no good, and "uverbsctl WHO: ..." says why. */
json_t *uvd_ask(const char *who, const char *control, const char *command);

#endif
