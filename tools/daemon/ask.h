/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Helpers of the uverbsctl commands that ask a daemon or a run: its control socket, and a request there. */
#ifndef UVD_TOOLS_ASK_H
#define UVD_TOOLS_ASK_H

#include <jansson.h>

/* Returns the socket to ask by default: $UVERBSD_CONTROL, else the daemon's. */
const char *uvd_ask_control(void);

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
