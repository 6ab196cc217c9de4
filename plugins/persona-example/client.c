/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client MAX_QPS: creates QPs with libibverbs on a device of the persona acme until it refuses. If the device has
 * ioctl, asks for the limits, and creates QPs with the attribute that the persona has added.
 */
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <uverbsd/client.h>

#include "acme.h"

enum { MOST = 64 };

static void acme_expect(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "not so: %s (errno %s)\n", what, strerrorname_np(errno));
	exit(1);
}

static void acme_limits(struct ibv_context *context, uint32_t *max, uint32_t *qps)
{
	struct uverbsd_call call = {};

	uverbsd_out(&call, UVERBS_ATTR_ACME_LIMITS_QUERY_MAX_QPS, max, sizeof(*max));
	uverbsd_out(&call, UVERBS_ATTR_ACME_LIMITS_QUERY_QPS, qps, sizeof(*qps));
	errno = uverbsd_call(context->cmd_fd, RDMA_DRIVER_HFI1, &call, UVERBS_OBJECT_ACME_LIMITS,
			     UVERBS_METHOD_ACME_LIMITS_QUERY);
	acme_expect(!errno, "QUERY answers");
}

/* UVERBS_METHOD_QP_CREATE with and without the persona's attribute. Returns 0 or an errno. */
static int acme_create_by_ioctl(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t *left)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 };
	struct uverbsd_call call = {};
	uint32_t qp_num;

	uverbsd_handle(&call, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uverbsd_handle(&call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd->handle);
	uverbsd_handle(&call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq->handle);
	uverbsd_handle(&call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq->handle);
	uverbsd_const(&call, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0);
	uverbsd_in(&call, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	uverbsd_const(&call, UVERBS_ATTR_CREATE_QP_TYPE, IB_UVERBS_QPT_RC);
	uverbsd_out(&call, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	uverbsd_out(&call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qp_num, sizeof(qp_num));
	if (left)
		uverbsd_out(&call, UVERBS_ATTR_CREATE_QP_RESP_ACME_LEFT, left, sizeof(*left));
	return uverbsd_call(pd->context->cmd_fd, RDMA_DRIVER_HFI1, &call, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
}

int main(int argc, char **argv)
{
	const uint32_t most = argc == 2 ? strtoul(argv[1], NULL, 0) : 3;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qps[MOST];
	uint32_t max, now, left = UINT32_MAX;
	struct ibv_pd *pd;

	acme_expect(!!context && most >= 2 && most <= MOST, "the device can be opened");
	pd = ibv_alloc_pd(context);
	init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	acme_expect(pd && init.send_cq, "there are a PD and a CQ");
	for (unsigned int i = 0; i < most; i++) {
		qps[i] = ibv_create_qp(pd, &init);
		acme_expect(!!qps[i], "a QP below the limit is created");
	}
	acme_expect(!ibv_create_qp(pd, &init) && errno == EAGAIN, "a QP above the limit is EAGAIN");
	acme_expect(!ibv_destroy_qp(qps[0]), "a QP can be destroyed");
	qps[0] = ibv_create_qp(pd, &init);
	acme_expect(!!qps[0], "then another one can be created");
	acme_expect(!ibv_create_qp(pd, &init) && errno == EAGAIN, "and no more");
	printf("%s %s max %u\n", ibv_get_device_name(list[0]), context->device->dev_name, most);
	if (uverbsd_driver_id(context->cmd_fd) < 0)
		return 0;

	acme_limits(context, &max, &now);
	acme_expect(max == most && now == most, "QUERY tells the limit and the number");
	acme_expect(!ibv_destroy_qp(qps[0]) && !ibv_destroy_qp(qps[1]), "QPs can be destroyed");
	acme_expect(!acme_create_by_ioctl(pd, init.send_cq, &left), "then another one can be created");
	acme_expect(left == 1, "its answer tells how many are left");
	acme_expect(!acme_create_by_ioctl(pd, init.send_cq, NULL), "the attribute is optional");
	acme_expect(acme_create_by_ioctl(pd, init.send_cq, &left) == EAGAIN, "by ioctl the limit is the same");
	return 0;
}
