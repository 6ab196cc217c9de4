/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared declarations of the completion queue files. */
#ifndef UVD_OBJECTS_CQ_H
#define UVD_OBJECTS_CQ_H

#include "objects/internal.h"

/* The client's own buffer for the queue (Linux 6.17). */
struct uvd_cq_buffer {
	bool given;
	struct uvd_umem umem; /* pinned memory; for a dma-buf only the length is set */
};

/*
 * Checks the buffer attributes of CQ_CREATE, and pins the buffer if it is in the client's memory. Fills *buffer, which
 * the caller has zeroed. uobj is the CQ's. Returns 0, or a negative errno: then nothing is pinned.
 */
int uvd_cq_find_buffer(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_cq_buffer *buffer);

#endif
