/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_RUN_CLIENT_H
#define TESTS_RUN_CLIENT_H

#include <stdbool.h>

/* Ends the program with status 1 and says what was expected. */
void client_fail(const char *file, int line, const char *what) __attribute__((noreturn));

#define IS(what) ((what) ? (void)0 : client_fail(__FILE__, __LINE__, #what))
#define FAILS(call, err) IS((long)(call) == -1 && errno == (err))

/* Starts or stops a SIGALRM every 150 us, with SA_RESTART. */
void client_storm(bool on);

/* Opens the device and gets a context. */
int client_open_context(void);
/* Returns the handle, or -1. */
int client_alloc_pd(int fd);

/* numbers.c */
void client_number_dup2(void);
void client_number_dup3(void);
void client_number_close(void);
void client_number_close_range(void);
void client_number_closed_by_a_relative(void);
void client_number_looked_at_during_dup2(void);
void client_number_closed_by_a_ring(void);
void client_ring_reaches_no_device(void);
void client_number_of_a_recycled_thread(void);

/* storm.c, by libibverbs. */
void client_storm_post_send(void);
void client_writev_post_send(void);
void client_registers_in_a_vfork(void);

#endif
