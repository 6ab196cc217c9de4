/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine's own backends, and what backends share. */
#ifndef UVD_BACKENDS_H
#define UVD_BACKENDS_H

#include <uverbsd/backend.h>
#include "backends/comp_cntr.h"
#include "backends/cq_ring.h"
#include "backends/udata.h"

extern const struct uvd_backend uvd_backend_null, uvd_backend_soft, uvd_backend_verbs;
/* Maps the code of libibverbs' providers, for a process that will not be able to open files: hca.c. */
void uvd_verbs_load_providers(void);
/*
 * What the device's adapter has, and the device has not, because this process lacks the capability. NULL: nothing. The device
 * is of the backend verbs, and open.
 */
const char *uvd_verbs_absent(const struct uvd_ibdev *ibdev);
/* Returns the backend of this name, or NULL. */
const struct uvd_backend *uvd_backend_find(const char *name);
/* Returns backend number i, from 0, or NULL after the last one. */
const struct uvd_backend *uvd_backend_at(unsigned int i);

#endif
