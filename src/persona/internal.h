/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UVD_PERSONA_INTERNAL_H
#define UVD_PERSONA_INTERNAL_H

#include <rdma/rdma_user_rxe.h>
#include "persona/persona.h"

/* rxe_queue.c */
enum { UVD_RXE_CQE = 64 }; /* the union of struct ib_uverbs_wc (48 bytes) and the kernel's struct ib_wc */
extern const struct uvd_queue_ops uvd_rxe_queue_ops;

#endif
