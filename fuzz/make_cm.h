/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Structs of the connection manager's commands, for its fuzz target and for the storm of tests/cm. */
#ifndef UVD_FUZZ_MAKE_CM_H
#define UVD_FUZZ_MAKE_CM_H

#include <stdint.h>
#include "fuzz/gen.h"

enum { FUZZ_CM_IDS = 6 /* identifiers that commands name: numbers below this */ };

/*
 * Puts values into the command's struct, which is zero, with which it is likely to succeed: an identifier, one of a few addresses and
 * ports. The response's address stays. in: aligned to 8 bytes.
 */
void fuzz_cm_fill(struct fuzz_gen *gen, uint32_t command, void *in);

#endif
