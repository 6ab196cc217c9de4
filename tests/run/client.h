/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_RUN_CLIENT_H
#define TESTS_RUN_CLIENT_H

#include <stdbool.h>

/* Ends the program with status 1 and says what was expected. */
void client_fail(const char *file, int line, const char *what) __attribute__((noreturn));

#define IS(what) ((what) ? (void)0 : client_fail(__FILE__, __LINE__, #what))
#define FAILS(call, err) IS((long)(call) == -1 && errno == (err))

/* SIGALRM several times a millisecond, with SA_RESTART. */
void client_storm(bool on);

/* storm.c, by libibverbs. */
void client_storm_post_send(void);

#endif
