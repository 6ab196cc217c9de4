/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The buffer attributes of CQ_CREATE: the client's own memory, or a dma-buf. */
#include <uverbsd/uapi_later.h>
#include "objects/cq.h"
#include "objects/mr.h"

/* -ENOENT if the client did not send the attribute: the kernel returns it, too. */
static int cq_buffer_get(struct uvd_req *req, uint16_t id, uint64_t *value)
{
	return uvd_attr_copy_from(req, id, value);
}

static bool cq_buffer_has(struct uvd_req *req, uint16_t id)
{
	return uvd_attr_get(req, id);
}

static int of_memory(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_cq_buffer *buffer)
{
	uint64_t addr, length;
	int ret;

	ret = cq_buffer_get(req, UVERBS_ATTR_CREATE_CQ_BUFFER_VA, &addr);
	if (!ret)
		ret = cq_buffer_get(req, UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH, &length);
	if (ret)
		return ret;
	if (cq_buffer_has(req, UVERBS_ATTR_CREATE_CQ_BUFFER_FD) ||
	    cq_buffer_has(req, UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET) || !uvd_ops(req)->create_cq_umem)
		return uvd_bad(req, -EINVAL, "buffer_va", addr);
	ret = uvd_req_pin(req, uobj, addr, length, IBV_ACCESS_LOCAL_WRITE, &buffer->umem);
	buffer->given = !ret;
	return ret;
}

static int of_dmabuf(struct uvd_req *req, struct uvd_cq_buffer *buffer)
{
	const int fd = uvd_attr_get(req, UVERBS_ATTR_CREATE_CQ_BUFFER_FD)->data;
	uint64_t offset, length;
	int ret;

	ret = cq_buffer_get(req, UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET, &offset);
	if (!ret)
		ret = cq_buffer_get(req, UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH, &length);
	if (ret)
		return ret;
	if (!uvd_ops(req)->create_cq_umem)
		return uvd_bad(req, -EINVAL, "buffer_fd", fd);
	ret = uvd_check_dmabuf(req, fd, offset, length);
	if (ret)
		return ret;
	buffer->given = true;
	buffer->umem.length = length;
	return 0;
}

int uvd_cq_find_buffer(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_cq_buffer *buffer)
{
	if (cq_buffer_has(req, UVERBS_ATTR_CREATE_CQ_BUFFER_VA))
		return of_memory(req, uobj, buffer);
	if (cq_buffer_has(req, UVERBS_ATTR_CREATE_CQ_BUFFER_FD))
		return of_dmabuf(req, buffer);
	if (cq_buffer_has(req, UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET) ||
	    cq_buffer_has(req, UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH))
		return uvd_bad(req, -EINVAL, "buffer_length", 0);
	return 0;
}
