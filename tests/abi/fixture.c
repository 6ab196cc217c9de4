/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Set-up and helpers of most tests. */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "abi.h"

int open_context(int *async_fd)
{
	int fd = uv_open();

	target();
	ck_assert_msg(fd >= 0, "open %s: %s", uv_node(), answer(fd));
	expect_ok(uv_get_context(fd, UV_WRITE, async_fd, NULL));
	return fd;
}

struct bed make_bed(void)
{
	struct bed bed = { .channel = -1 };
	struct uv_qp_attr attr;

	bed.fd = open_context(&bed.async_fd);
	expect_ok(uv_alloc_pd(bed.fd, UV_WRITE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, UV_WRITE, &uv_cq_default, &bed.cq, NULL));
	attr = uv_qp_attr(bed.pd, bed.cq);
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &attr, &bed.qp));
	return bed;
}

struct bed make_event_bed(uint32_t cqe)
{
	struct uv_cq_attr cq = { .user_handle = 0x1111222233334444, .cqe = cqe, .event_fd = -1 };
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET };
	struct bed bed = { .edge = epoll_create1(0) };
	struct uv_qp_attr attr;

	bed.fd = open_context(&bed.async_fd);
	expect_ok(uv_create_channel(bed.fd, UV_WRITE, &bed.channel));
	ck_assert_int_eq(epoll_ctl(bed.edge, EPOLL_CTL_ADD, bed.channel, &edge), 0);
	cq.channel = bed.channel;
	expect_ok(uv_alloc_pd(bed.fd, UV_WRITE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, UV_WRITE, &cq, &bed.cq, NULL));
	attr = uv_qp_attr(bed.pd, bed.cq);
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &attr, &bed.qp));
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	return bed;
}

int qp_to_init(int fd, uint32_t qp)
{
	struct ib_uverbs_modify_qp attr = {
		.qp_handle = qp,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return uv_modify_qp(fd, UV_WRITE, &attr);
}

void loopback(int fd, struct ib_uverbs_qp_dest *dest)
{
	struct ib_uverbs_query_port_resp port = {};
	struct ib_uverbs_gid_entry gid = {};

	*dest = (struct ib_uverbs_qp_dest){ .port_num = 1 };
	expect_ok(uv_query_port(fd, UV_WRITE, 1, &port));
	dest->dlid = port.lid;
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return;
	expect_ok(uv_query_gid_entry(fd, 1, 0, &gid));
	dest->is_global = 1;
	dest->hop_limit = 1;
	memcpy(dest->dgid, &gid.gid, sizeof(dest->dgid));
}

void loopback_ah(int fd, struct ib_uverbs_ah_attr *attr)
{
	struct ib_uverbs_qp_dest dest;

	loopback(fd, &dest);
	*attr = (struct ib_uverbs_ah_attr){
		.port_num = 1, .dlid = dest.dlid, .is_global = dest.is_global, .grh.hop_limit = dest.hop_limit
	};
	memcpy(attr->grh.dgid, dest.dgid, sizeof(dest.dgid));
}

int qp_to_rtr(int fd, uint32_t qp, uint32_t dest_qpn)
{
	struct ib_uverbs_modify_qp attr = {
		.qp_handle = qp,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.rq_psn = 100,
	};

	loopback(fd, &attr.dest);
	return uv_modify_qp(fd, UV_WRITE, &attr);
}

int qp_to_rts(int fd, uint32_t qp)
{
	struct ib_uverbs_modify_qp attr = {
		.qp_handle = qp,
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.sq_psn = 100,
		.attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC,
	};

	return uv_modify_qp(fd, UV_WRITE, &attr);
}

int qp_to_state(int fd, uint32_t qp, unsigned int state)
{
	struct ib_uverbs_modify_qp attr = { .qp_handle = qp, .qp_state = state, .attr_mask = IBV_QP_STATE };

	return uv_modify_qp(fd, UV_WRITE, &attr);
}

void flush_to_error(const struct bed *bed, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		target()->post_recv(bed->fd, &bed->qp);
	expect_ok(qp_to_state(bed->fd, bed->qp.handle, IBV_QPS_ERR));
}

void make_event(const struct bed *bed)
{
	struct epoll_event event;

	expect_ok(uv_req_notify_cq(bed->fd, UV_WRITE, bed->cq, false));
	flush_to_error(bed, 1);
	ck_assert_msg(epoll_wait(bed->edge, &event, 1, 5000) == 1, "the event does not arrive");
	expect_ok(qp_to_state(bed->fd, bed->qp.handle, IBV_QPS_RESET));
	expect_ok(qp_to_init(bed->fd, bed->qp.handle));
}

int read_event(int fd, void *event, size_t len)
{
	ssize_t ret = read(fd, event, len);

	return ret < 0 ? -errno : ret;
}

void set_nonblock(int fd)
{
	ck_assert_int_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

int poll_events(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDNORM };

	ck_assert_int_ge(poll(&p, 1, ms), 0);
	return p.revents;
}

uint32_t next_handle(int fd)
{
	uint32_t handle;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &handle));
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, handle));
	return handle;
}

bool has_ex(int fd, uint32_t command)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
	} msg = { .hdr = { .command = command, .in_words = sizeof(msg) / 4 } };
	int ret = uv_write(fd, &msg, sizeof(msg));

	ck_assert_msg(ret == -EINVAL || ret == -EOPNOTSUPP, "command %x: %s", command, answer(ret));
	return ret == -EINVAL;
}

void expect_absent(int fd, uint32_t command, uint16_t object, uint16_t method)
{
	uint64_t zeros[8] = {};
	struct uv_tree tree;

	expect(uv_cmd(fd, UV_INVOKE, &(struct uv_cmd){ command, zeros, sizeof(zeros) }), EOPNOTSUPP);
	uv_tree_init(&tree, object, method);
	expect(uv_ioctl(fd, &tree), EPROTONOSUPPORT);
}
