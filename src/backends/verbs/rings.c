/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider's rings lie in the daemon, mapped from the kernel, so the user pays for them. The provider does not tell
 * their size: it is estimated from what the client asks for, as large as with common adapters.
 */
#include <errno.h>
#include <stdio.h>
#include "account/account.h"
#include "backends/verbs/verbs.h"

enum { RING_MIN = 4096, CQE_BYTES = 64, WQE_BYTES = 64, MAP_COUNT_DEFAULT = 65530 };

static uint64_t ring_bytes(uint64_t entries, uint64_t entry)
{
	return entries * entry + RING_MIN;
}

uint64_t hca_cq_bytes(uint32_t cqe)
{
	return ring_bytes(cqe, CQE_BYTES);
}

uint64_t hca_srq_bytes(uint32_t max_wr, uint32_t max_sge)
{
	return ring_bytes(max_wr, WQE_BYTES + UINT64_C(16) * max_sge);
}

uint64_t hca_qp_bytes(const struct ibv_qp_cap *cap)
{
	return ring_bytes(cap->max_send_wr, WQE_BYTES + UINT64_C(16) * cap->max_send_sge + cap->max_inline_data) +
	       ring_bytes(cap->max_recv_wr, WQE_BYTES + UINT64_C(16) * cap->max_recv_sge);
}

int hca_charge_rings(const struct uvd_context *context, unsigned int rings, uint64_t bytes)
{
	struct hca_device *dev = hca_device(context->dev);

	if (atomic_fetch_add(&dev->rings, rings) + rings > dev->max_rings)
		goto uncount;
	/* The device's cap is for all users together: no user alone may have it. */
	if (uvd_account_charge(context->account, UVD_RES_RINGS, rings))
		goto uncount;
	if (!uvd_charge_bytes(context->account, bytes))
		return 0;
	uvd_account_uncharge(context->account, UVD_RES_RINGS, rings);
uncount:
	atomic_fetch_sub(&dev->rings, rings);
	return -ENOMEM;
}

/* If a destruction is stuck, the provider's rings stay mapped until the process ends. */
void hca_uncharge_rings(const struct uvd_context *context, unsigned int rings, uint64_t bytes)
{
	if (atomic_load(&((const struct hca_context *)context)->stuck))
		return;
	uvd_uncharge_bytes(context->account, bytes);
	uvd_account_uncharge(context->account, UVD_RES_RINGS, rings);
	atomic_fetch_sub(&hca_device(context->dev)->rings, rings);
}

unsigned int hca_max_rings(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned int most = MAP_COUNT_DEFAULT;

	if (file) {
		if (fscanf(file, "%u", &most) != 1)
			most = MAP_COUNT_DEFAULT;
		fclose(file);
	}
	/* The rest is for buffers, stacks and other devices. */
	return most / 4;
}

static void ring_cap(int *num, unsigned int rings, unsigned int rings_of_one)
{
	/* The user's quarter also holds the rings that each user needs beside these, such as the CQ of its QPs. */
	const unsigned int left = rings > 4 * HCA_RINGS_BESIDE ? rings - 4 * HCA_RINGS_BESIDE : 0;

	if (*num > (int)(left / rings_of_one))
		*num = left / rings_of_one;
}

void hca_cap_by_rings(const struct hca_device *dev, struct ibv_device_attr_ex *attr)
{
	/* Users have a quarter of UVD_WHOLE_RINGS each, however many there are. */
	const unsigned int rings = dev->max_rings < UVD_WHOLE_RINGS ? dev->max_rings : UVD_WHOLE_RINGS;
	int wqs = attr->max_wq_type_rq > INT32_MAX ? INT32_MAX : (int)attr->max_wq_type_rq;

	ring_cap(&attr->orig_attr.max_qp, rings, HCA_QP_RINGS);
	ring_cap(&attr->orig_attr.max_cq, rings, HCA_CQ_RINGS);
	ring_cap(&attr->orig_attr.max_srq, rings, HCA_SRQ_RINGS);
	ring_cap(&wqs, rings, HCA_WQ_RINGS);
	attr->max_wq_type_rq = wqs;
}
