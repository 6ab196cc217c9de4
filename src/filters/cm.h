/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The names of the commands of rdma_cm. */
#ifndef UVD_FILTERS_CM_H
#define UVD_FILTERS_CM_H

#include <rdma/rdma_user_cm.h>

enum { UVD_CM_NUMBERS = RDMA_USER_CM_CMD_JOIN_MCAST + 1 };

/* By number. NULL: no such command. */
extern const char *const uvd_cm_names[UVD_CM_NUMBERS];

#endif
