/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files of the program doorbells: a side with two connected QPs, and posts. */
#ifndef TESTS_RUN_DOORBELLS_H
#define TESTS_RUN_DOORBELLS_H

#include "../distribution/side.h"

enum { ARENA = 8192, SECONDS = 20, DOORBELL = 32, MEGABYTE = 1 << 20, DEPTH = 16 };

extern struct side s;
extern struct ibv_qp *qp, *peer;

void begin_pair(void);
int post(uint64_t wr_id);
void expect(uint64_t wr_id, enum ibv_wc_status status);
void post_and_expect(uint64_t wr_id);
/* Posts. The position moves if the kernel has carried the doorbell out. A trapped write() does not move it. */
bool is_direct(void);

/* doorbells_traps.c: what a client can do to the descriptor, and to the memory behind it. A file that is direct is expected. */
void case_pointers(void);
void case_end_of_file(void);
void case_seals(void);
void case_append(void);
void case_passed(void);
void case_reopened(void);
void case_mapped(void);
void case_at_once(void);
void case_short_command(void);
void case_many(void);

#endif
