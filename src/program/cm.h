/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands of /dev/infiniband/rdma_cm as programs see them. */
#ifndef UVD_PROG_CM_H
#define UVD_PROG_CM_H

#include "shape.h"

struct uvd_shape_cm {
	struct uvd_shape_command command; /* without the common prefix of their names: CREATE_ID */
	size_t response_at; /* where the request has the response's address, or UVD_NO_RESPONSE */
	/* The response to a request that selects it, QUERY of paths, or without fields. */
	const struct uvd_struct *other;
	struct uvd_shape_fields other_out;
};

/* Return NULL: there is no such command. The table is made at the first call of either, and stays; one thread makes it. */
const struct uvd_shape_cm *uvd_shape_cm(const char *name);
const struct uvd_shape_cm *uvd_shape_cm_at(unsigned int i);
/* Returns the fields of the response to this request. */
struct uvd_shape_fields uvd_shape_cm_out(const struct uvd_shape_cm *cm, const uint8_t *request, size_t len);

#endif
