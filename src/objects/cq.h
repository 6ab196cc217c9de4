/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of completion queues share. */
#ifndef UVD_OBJECTS_CQ_H
#define UVD_OBJECTS_CQ_H

#include "objects/internal.h"

/* The client's own buffer for the queue (Linux 6.17). */
struct uvd_cq_buffer {
	bool given;
	struct uvd_umem umem; /* pinned, or of a dma-buf empty but for its length */
};

/* CQ_CREATE's buffer attributes, checked. 0 or a negative errno: then nothing is pinned. */
int uvd_cq_find_buffer(struct uvd_req *req, struct uvd_cq_buffer *buffer);

#endif
