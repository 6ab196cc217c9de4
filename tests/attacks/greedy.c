/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * greedy: takes all address handles, multicast groups, named XRC domains and device memory that it can get. For each it
 * prints a line: the name, how many QUERY_DEVICE announces (0: it does not tell), how many it has got, and the errno of one
 * more. It keeps them until its stdin ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uv.h"

static int fd;
static uint32_t pd, cq, qp;

static int take_ah(unsigned int n)
{
	const struct ib_uverbs_ah_attr attr = { .dlid = 1, .port_num = 1 };
	uint32_t ah;

	return uv_create_ah(fd, UV_WRITE, pd, &attr, &ah);
}

static int take_group(unsigned int n)
{
	const uint8_t gid[16] = { 0xff, 0x12, [10] = getpid() >> 8, getpid(), n >> 24, n >> 16, n >> 8, n };

	return uv_mcast(fd, UV_WRITE, true, qp, gid, 0xc001);
}

static int take_domain(unsigned int n)
{
	char name[] = "/tmp/greedy-XXXXXX";
	int file = mkstemp(name), ret;
	uint32_t xrcd;

	if (file < 0)
		return -errno;
	unlink(name);
	ret = uv_open_xrcd(fd, UV_WRITE, file, O_CREAT, &xrcd);
	close(file);
	return ret;
}

static int take_kibibyte(unsigned int n)
{
	struct uv_tree tree;
	uint64_t length = 1024;
	uint32_t alignment = 0;

	uv_tree_init(&tree, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment));
	return uv_ioctl(fd, &tree);
}

static void take_all(const char *name, uint64_t announced, int (*take)(unsigned int n))
{
	unsigned int n = 0;
	int ret;

	while (!(ret = take(n)))
		n++;
	printf("%s %llu %u %s\n", name, (unsigned long long)announced, n, strerrorname_np(-ret));
}

static int begin(void)
{
	const struct uv_cq_attr cq_attr = { .cqe = 4, .channel = -1 };
	struct ib_uverbs_modify_qp init = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 1,
	};
	struct uv_qp_attr attr;
	struct uv_qp made;
	int ret, async;

	fd = uv_open();
	ret = fd < 0 ? fd : uv_get_context(fd, UV_INVOKE, &async, NULL);
	if (!ret)
		ret = uv_alloc_pd(fd, UV_INVOKE, &pd);
	if (!ret)
		ret = uv_create_cq(fd, UV_INVOKE, &cq_attr, &cq, NULL);
	if (ret)
		return ret;
	attr = uv_qp_attr(pd, cq);
	attr.type = IBV_QPT_UD;
	ret = uv_create_qp(fd, UV_INVOKE, &attr, &made);
	init.qp_handle = qp = made.handle;
	return ret ? ret : uv_modify_qp(fd, UV_WRITE, &init);
}

int main(void)
{
	const struct ib_uverbs_ex_query_device cmd = {};
	struct ib_uverbs_ex_query_device_resp resp = {};
	int ret = begin();
	char c;

	if (!ret)
		ret = uv_cmd(fd, UV_INVOKE_EX,
			     &(struct uv_cmd){ UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &resp, sizeof(resp) });
	if (ret) {
		printf("%s\n", strerror(-ret));
		return 1;
	}
	take_all("ah", resp.base.max_ah, take_ah);
	take_all("mcast", resp.base.max_mcast_grp, take_group);
	take_all("xrcd", 0, take_domain);
	take_all("dm", resp.max_dm_size / 1024, take_kibibyte);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
