/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* names.c: the names of libibverbs' values, without their prefix ("LOC_PROT_ERR" of IBV_WC_LOC_PROT_ERR). */
#ifndef UVD_UTIL_NAMES_H
#define UVD_UTIL_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct uvd_named {
	const char *name; /* NULL: the end of the table */
	uint64_t value; /* of a flag: one bit */
};

extern const struct uvd_named uvd_access_flag_names[]; /* enum ibv_access_flags */
extern const struct uvd_named uvd_qp_attr_names[]; /* enum ibv_qp_attr_mask */
extern const struct uvd_named uvd_qp_type_names[], uvd_qp_state_names[], uvd_wc_status_names[], uvd_event_names[];
extern const struct uvd_named uvd_wr_opcode_names[]; /* as the specification writes them */

/* Returns the operation (enum ibv_wr_opcode) that a send's completion (enum ibv_wc_opcode) reports, without immediate data. */
uint32_t uvd_wr_opcode_of(uint32_t wc_opcode);
/* Returns the value's name, or "?". */
const char *uvd_name_of(const struct uvd_named *names, uint64_t value);
/* Returns the row of this name, or NULL. */
const struct uvd_named *uvd_named_find(const struct uvd_named *names, const char *name);
/* Writes the names of the flags that are set, with `between` between them; unknown bits as one number. Returns the text. */
const char *uvd_flag_names(const struct uvd_named *names, uint64_t flags, const char *between, char *text, size_t size);

#endif
