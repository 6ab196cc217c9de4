/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The dispatcher's own methods of UVERBS_OBJECT_DEVICE: write() commands in an ioctl, and the list of handles. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "dispatch/dispatch.h"
#include "dispatch/internal.h"

/*
 * Reads all of core_in at once; the command's first step would read it first anyway. On a fault buf stays NULL, and
 * uvd_core_in() decides the errno.
 */
static int read_core_in(struct uvd_req *req, const struct uvd_attr *attr)
{
	uint8_t *buf;

	req->core_in_addr = attr->data;
	if (attr->len <= sizeof(attr->data)) {
		req->core_in.buf = (const uint8_t *)&attr->data;
		return 0;
	}
	buf = uvd_req_in_buffer(req, attr->len);
	if (!buf)
		return -ENOMEM;
	if (!uvd_req_read(req, buf, attr->data, attr->len))
		req->core_in.buf = buf;
	return 0;
}

int uvd_step_invoke_write(struct uvd_req *req)
{
	const struct uvd_attr *in = uvd_attr_get(req, UVERBS_ATTR_CORE_IN),
			      *out = uvd_attr_get(req, UVERBS_ATTR_CORE_OUT);
	const struct uvd_tree_write *write;
	const struct uvd_write_row *row;
	uint64_t command;
	int err = uvd_attr_const(req, UVERBS_ATTR_WRITE_CMD, UINT32_MAX, &command);

	if (!err)
		err = uvd_write_find(req->tree, command, &write);
	if (err)
		return err;
	row = write->row;
	if (!row)
		return -EOPNOTSUPP;
	req->front = UVD_FRONT_INVOKE_WRITE;
	req->name = row->name;
	req->core_in.len = in ? in->len : 0;
	req->core_out.len = out ? out->len : 0;
	if (out) {
		req->core_out.addr = out->data;
		req->core_out.attr = out->index;
	}
	/*
	 * Extended commands have no least size (write-09). Without input libibverbs probes the ABI: not worth a
	 * warning.
	 */
	if (!(row->flags & UVD_WRITE_EX) && (req->core_in.len < row->req_size || req->core_out.len < row->resp_size))
		return in ? uvd_bad(req, -ENOSPC, "core_in or core_out", req->core_in.len) : -ENOSPC;
	err = uvd_req_check_verb(req, write->verb);
	if (!err && in)
		err = read_core_in(req, in);
	return err ? err : uvd_run_steps(req, write->steps);
}

int uvd_step_info_handles(struct uvd_req *req)
{
	const struct uvd_attr *list = uvd_attr_get(req, UVERBS_ATTR_INFO_HANDLES_LIST);
	const struct uvd_tree_object *object;
	uint64_t id, total;
	uint32_t *ids;
	int err;

	if (!list || list->len % sizeof(*ids))
		return uvd_bad(req, -EINVAL, "UVERBS_ATTR_INFO_HANDLES_LIST", list ? list->len : 0);
	err = uvd_attr_const(req, UVERBS_ATTR_INFO_OBJECT_ID, UINT16_MAX, &id);
	if (err)
		return err;
	if (id == UINT16_MAX)
		return uvd_bad(req, -ENOMSG, "UVERBS_ATTR_INFO_OBJECT_ID", id);
	object = uvd_tree_object(req->tree, id);
	if (!object)
		return uvd_bad(req, -ENOENT, "UVERBS_ATTR_INFO_OBJECT_ID", id);
	ids = uvd_req_alloc(req, list->len);
	if (!ids)
		return -ENOMEM;
	total = uvd_file_list(req->file, object->row, ids, list->len / sizeof(*ids));
	err = uvd_attr_copy_to_bytes(req, UVERBS_ATTR_INFO_HANDLES_LIST, ids, total * sizeof(*ids));
	return err ? err : uvd_attr_copy_to(req, UVERBS_ATTR_INFO_TOTAL_HANDLES, &total);
}
