/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers of the uverbsctl commands that change something: the option --control, and a request on the control socket.
 */
#ifndef UVD_TOOLS_ASK_H
#define UVD_TOOLS_ASK_H

#include <jansson.h>

/* Returns the socket to ask by default: $UVERBSD_CONTROL, else the daemon's. */
const char *uvd_ask_control(void);
/*
 * Parses --control, --run and --help up to the first argument that is not an option. Sets *control to the path of the socket
 * to ask. Returns the index of that argument, or -1 to exit with *status: a message or `usage` has been printed.
 */
int uvd_ask_options(int argc, char **argv, const char *usage, const char **control, int *status);

/*
 * Sends the command and returns the answer, a reference that the caller puts. On failure prints "uverbsctl WHO: ..."
 * and returns NULL.
 */
json_t *uvd_ask(const char *who, const char *control, const char *command);
/*
 * As uvd_ask(), with the command WHO and its words in an array, whose reference it takes. `what` names the words in the
 * message that they are too long.
 */
json_t *uvd_ask_words(const char *who, const char *control, json_t *words, const char *what);

#endif
