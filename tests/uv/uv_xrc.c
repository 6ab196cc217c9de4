/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains and target QPs, as in uv_verbs.c. */
#include "uv.h"

int uv_open_xrcd(int fd, enum uv_front front, int file, uint32_t oflags, uint32_t *xrcd)
{
	struct ib_uverbs_open_xrcd cmd = { .fd = file, .oflags = oflags };
	struct ib_uverbs_open_xrcd_resp resp = {};
	int ret = uv_cmd(fd, front,
			 &(struct uv_cmd){ IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd), &resp, sizeof(resp) });

	*xrcd = resp.xrcd_handle;
	return ret;
}

int uv_close_xrcd(int fd, enum uv_front front, uint32_t xrcd)
{
	struct ib_uverbs_close_xrcd cmd = { .xrcd_handle = xrcd };
	struct uv_tree tree;

	if (front != UV_METHOD)
		return uv_cmd(fd, front, &(struct uv_cmd){ IB_USER_VERBS_CMD_CLOSE_XRCD, &cmd, sizeof(cmd), NULL, 0 });
	uv_tree_init(&tree, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_XRCD_HANDLE, xrcd);
	return uv_ioctl(fd, &tree);
}

int uv_open_qp(int fd, enum uv_front front, uint32_t xrcd, uint32_t qpn, uint8_t type, uint32_t *qp)
{
	struct ib_uverbs_open_qp cmd = { .user_handle = 0x0be0, .pd_handle = xrcd, .qpn = qpn, .qp_type = type };
	struct ib_uverbs_create_qp_resp resp = {};
	int ret = uv_cmd(fd, front,
			 &(struct uv_cmd){ IB_USER_VERBS_CMD_OPEN_QP, &cmd, sizeof(cmd), &resp, sizeof(resp) });

	*qp = resp.qp_handle;
	return ret;
}
