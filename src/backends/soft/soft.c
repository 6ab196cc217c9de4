/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices, contexts, PDs and AHs, and the backend's table of operations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/backends.h"
#include "backends/soft/soft.h"

/* The counters' shards have cache lines of their own. */
static struct soft_endpoints *soft_endpoints_new(void)
{
	struct soft_endpoints *e = aligned_alloc(_Alignof(struct soft_endpoints), sizeof(*e));

	if (e)
		memset(e, 0, sizeof(*e));
	return e;
}

static int soft_open(struct uvd_ibdev *ibdev)
{
	struct soft_device *dev;
	int err;

	if (!ibdev->engine_data)
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->ibdev = ibdev;
	dev->fabric = ibdev->engine_data;
	dev->endpoints = soft_endpoints_new();
	err = dev->endpoints ? soft_mr_table_init(&dev->mrs) : -ENOMEM;
	if (err) {
		free(dev->endpoints);
		free(dev);
		return err;
	}
	soft_srqn_table_init(&dev->endpoints->srqns);
	soft_raw_init(&dev->endpoints->raw);
	uvd_cq_later_init(&dev->later);
	ibdev->priv = dev;
	return 0;
}

static void soft_close(struct uvd_ibdev *ibdev)
{
	struct soft_device *dev = soft_device(ibdev);

	uvd_cq_later_fini(&dev->later);
	soft_mr_table_destroy(&dev->mrs);
	soft_srqn_table_destroy(&dev->endpoints->srqns);
	soft_raw_destroy(&dev->endpoints->raw);
	free(dev->endpoints);
	free(dev);
	ibdev->priv = NULL;
}

static int soft_query_device(struct uvd_ibdev *ibdev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata)
{
	const uint32_t receives = IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t uc = receives | IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE;
	int err = uvd_config_query_device(ibdev, attr, udata);

	if (err)
		return err;
	if (ibdev->config.limits.max_mw) {
		attr->orig_attr.device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
		attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags;
	}
	if (ibdev->config.limits.max_srq) {
		attr->orig_attr.device_cap_flags |= IBV_DEVICE_SRQ_RESIZE;
		attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags;
	}
	attr->orig_attr.device_cap_flags |= IBV_DEVICE_XRC;
	attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = uc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	attr->odp_caps.per_transport_caps.uc_odp_caps = uc;
	attr->odp_caps.per_transport_caps.ud_odp_caps = receives | IBV_ODP_SUPPORT_SEND;
	return 0;
}

static void soft_port_changed(struct uvd_ibdev *ibdev, uint8_t port, bool up)
{
	if (up)
		soft_wake_all(soft_device(ibdev)->fabric);
	else
		soft_count_at_port(soft_device(ibdev), &ibdev->config.ports[port - 1], UVD_PORT_LINK_DOWNED, 1);
}

static int soft_alloc_context(struct uvd_context *context, struct uvd_udata *udata)
{
	return 0;
}

static void soft_dealloc_context(struct uvd_context *context)
{
}

static int soft_alloc_pd(struct uvd_pd *pd, struct uvd_udata *udata)
{
	struct soft_device *dev = soft_device(pd->context->dev);

	return soft_count(&dev->num_pds, dev->ibdev->config.limits.max_pd);
}

static int soft_dealloc_pd(struct uvd_pd *pd)
{
	soft_device(pd->context->dev)->num_pds--;
	return 0;
}

static int soft_create_ah(struct uvd_ah *ah, struct uvd_udata *udata)
{
	struct soft_device *dev = soft_device(ah->pd->context->dev);
	const struct uvd_device_config *config = &dev->ibdev->config;
	const struct ibv_ah_attr *attr = &ah->attr;

	if (attr->port_num < 1 || attr->port_num > config->num_ports)
		return -EINVAL;
	if (attr->is_global && attr->grh.sgid_index >= config->ports[attr->port_num - 1].gid_tbl_len)
		return -EINVAL;
	return soft_count(&dev->num_ahs, config->limits.max_ah);
}

static int soft_destroy_ah(struct uvd_ah *ah)
{
	soft_device(ah->pd->context->dev)->num_ahs--;
	return 0;
}

static int soft_arm_cq(struct uvd_cq *cq, bool solicited_only)
{
	int err = soft_req_notify_cq(cq, solicited_only);

	soft_error_hurry(&soft_device(cq->context->dev)->fabric->users, cq->context);
	return err;
}

const struct uvd_backend uvd_backend_soft = {
	.name = "soft",
	.size_context = sizeof(struct uvd_context),
	.size_pd = sizeof(struct uvd_pd),
	.size_xrcd = sizeof(struct uvd_xrcd),
	.size_mr = sizeof(struct soft_mr),
	.size_mw = sizeof(struct soft_mw),
	.size_ah = sizeof(struct uvd_ah),
	.size_cq = sizeof(struct soft_cq),
	.size_srq = sizeof(struct soft_srq),
	.size_qp = sizeof(struct soft_qp),
	.size_dm = sizeof(struct soft_dm),
	.size_counters = sizeof(struct soft_counters),
	.size_comp_cntr = sizeof(struct uvd_comp_cntr),
	.open = soft_open,
	.close = soft_close,
	.query_device = soft_query_device,
	.port_changed = soft_port_changed,
	.query_port = uvd_config_query_port,
	.query_gid = uvd_config_query_gid,
	.alloc_context = soft_alloc_context,
	.dealloc_context = soft_dealloc_context,
	.alloc_pd = soft_alloc_pd,
	.dealloc_pd = soft_dealloc_pd,
	.reg_mr = soft_reg_mr,
	.dereg_mr = soft_dereg_mr,
	.rereg_mr = soft_rereg_mr,
	.alloc_xrcd = soft_alloc_xrcd,
	.dealloc_xrcd = soft_dealloc_xrcd,
	.alloc_mw = soft_alloc_mw,
	.dealloc_mw = soft_dealloc_mw,
	.create_ah = soft_create_ah,
	.destroy_ah = soft_destroy_ah,
	.create_cq = soft_create_cq,
	.destroy_cq = soft_destroy_cq,
	.poll_cq = soft_poll_cq,
	.req_notify_cq = soft_arm_cq,
	.resize_cq = soft_resize_cq,
	.create_srq = soft_create_srq,
	.modify_srq = soft_modify_srq,
	.query_srq = soft_query_srq,
	.destroy_srq = soft_destroy_srq,
	.post_srq_recv = soft_post_srq_recv,
	.create_qp = soft_create_qp,
	.modify_qp = soft_modify_qp,
	.query_qp = soft_query_qp,
	.destroy_qp = soft_destroy_qp,
	.query_qp_work = soft_query_qp_work,
	.query_cq_lost = soft_query_cq_lost,
	.send_why = soft_send_why,
	.post_send = soft_post_send,
	.ring_doorbell = soft_ring_doorbell,
	.replace_cq_queue = soft_replace_cq_queue,
	.replace_srq_queue = soft_replace_srq_queue,
	.post_recv = soft_post_recv,
	.attach_mcast = soft_attach_mcast,
	.detach_mcast = soft_detach_mcast,
	.query_port_speed = uvd_config_query_port_speed,
	.query_port_counters = soft_query_port_counters,
	.alloc_dm = soft_alloc_dm,
	.dealloc_dm = soft_dealloc_dm,
	.reg_dm_mr = soft_reg_dm_mr,
	.advise_mr = soft_advise_mr,
	.create_counters = soft_create_counters,
	.destroy_counters = soft_destroy_counters,
	.read_counters = soft_read_counters,
	.bind_counters = soft_bind_counters,
	.create_comp_cntr = soft_create_comp_cntr,
	.destroy_comp_cntr = soft_destroy_comp_cntr,
	.modify_comp_cntr = uvd_comp_cntr_modify,
	.read_comp_cntr = uvd_comp_cntr_read,
	.qp_attach_comp_cntr = uvd_comp_cntr_attach,
	.query_comp_cntr_caps = uvd_comp_cntr_caps,
	.carry_message = soft_carry_message,
	.carry_completion = uvd_cq_carry_completion,
	.drop_posts = soft_drop_posts,
};
