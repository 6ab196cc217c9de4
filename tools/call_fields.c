/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of the write() commands that scripts need most. All others take and return bytes. */
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "call.h"

#define F(s, field) \
	{ \
		.name = #field, .at = offsetof(struct ib_uverbs_##s, field), \
		.size = sizeof(((struct ib_uverbs_##s *)0)->field) \
	}
#define NONE(s, field) \
	{ \
		.name = #field, .at = offsetof(struct ib_uverbs_##s, field), .size = 4, .none = true \
	}
#define CREATED(s, field) \
	{ \
		.name = #field, .at = offsetof(struct ib_uverbs_##s, field), .size = 4, .created = true \
	}
#define FIELDS(...) \
	(const struct uvd_field[]) \
	{ \
		__VA_ARGS__, \
		{ \
			.name = NULL \
		} \
	}
#define NO_FIELDS \
	(const struct uvd_field[]) \
	{ \
		{ \
			.name = NULL \
		} \
	}

static const struct uvd_command_fields command_fields[] = {
	{ "IB_USER_VERBS_CMD_GET_CONTEXT", NO_FIELDS,
	  FIELDS(F(get_context_resp, async_fd), F(get_context_resp, num_comp_vectors)) },
	{ "IB_USER_VERBS_CMD_QUERY_PORT", FIELDS(F(query_port, port_num)),
	  FIELDS(F(query_port_resp, port_cap_flags), F(query_port_resp, max_msg_sz), F(query_port_resp, bad_pkey_cntr),
		 F(query_port_resp, qkey_viol_cntr), F(query_port_resp, gid_tbl_len), F(query_port_resp, pkey_tbl_len),
		 F(query_port_resp, lid), F(query_port_resp, sm_lid), F(query_port_resp, state),
		 F(query_port_resp, max_mtu), F(query_port_resp, active_mtu), F(query_port_resp, lmc),
		 F(query_port_resp, max_vl_num), F(query_port_resp, sm_sl), F(query_port_resp, subnet_timeout),
		 F(query_port_resp, init_type_reply), F(query_port_resp, active_width),
		 F(query_port_resp, active_speed), F(query_port_resp, phys_state), F(query_port_resp, link_layer)) },
	{ "IB_USER_VERBS_CMD_ALLOC_PD", NO_FIELDS, FIELDS(CREATED(alloc_pd_resp, pd_handle)) },
	{ "IB_USER_VERBS_CMD_DEALLOC_PD", FIELDS(F(dealloc_pd, pd_handle)), NO_FIELDS },
	{ "IB_USER_VERBS_CMD_REG_MR",
	  FIELDS(F(reg_mr, start), F(reg_mr, length), F(reg_mr, hca_va), F(reg_mr, pd_handle), F(reg_mr, access_flags)),
	  FIELDS(CREATED(reg_mr_resp, mr_handle), F(reg_mr_resp, lkey), F(reg_mr_resp, rkey)) },
	{ "IB_USER_VERBS_CMD_DEREG_MR", FIELDS(F(dereg_mr, mr_handle)), NO_FIELDS },
	{ "IB_USER_VERBS_CMD_ALLOC_MW", FIELDS(F(alloc_mw, pd_handle), F(alloc_mw, mw_type)),
	  FIELDS(CREATED(alloc_mw_resp, mw_handle), F(alloc_mw_resp, rkey)) },
	{ "IB_USER_VERBS_CMD_DEALLOC_MW", FIELDS(F(dealloc_mw, mw_handle)), NO_FIELDS },
	{ "IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL", NO_FIELDS, FIELDS(CREATED(create_comp_channel_resp, fd)) },
	{ "IB_USER_VERBS_CMD_CREATE_CQ",
	  FIELDS(F(create_cq, user_handle), F(create_cq, cqe), F(create_cq, comp_vector),
		 NONE(create_cq, comp_channel)),
	  FIELDS(CREATED(create_cq_resp, cq_handle), F(create_cq_resp, cqe)) },
	{ "IB_USER_VERBS_CMD_RESIZE_CQ", FIELDS(F(resize_cq, cq_handle), F(resize_cq, cqe)),
	  FIELDS(F(resize_cq_resp, cqe)) },
	{ "IB_USER_VERBS_CMD_REQ_NOTIFY_CQ", FIELDS(F(req_notify_cq, cq_handle), F(req_notify_cq, solicited_only)),
	  NO_FIELDS },
	{ "IB_USER_VERBS_CMD_DESTROY_CQ", FIELDS(F(destroy_cq, cq_handle)),
	  FIELDS(F(destroy_cq_resp, comp_events_reported), F(destroy_cq_resp, async_events_reported)) },
	{ "IB_USER_VERBS_EX_CMD_CREATE_CQ",
	  FIELDS(F(ex_create_cq, user_handle), F(ex_create_cq, cqe), F(ex_create_cq, comp_vector),
		 NONE(ex_create_cq, comp_channel), F(ex_create_cq, comp_mask), F(ex_create_cq, flags)),
	  FIELDS(CREATED(create_cq_resp, cq_handle), F(create_cq_resp, cqe)) },
	{ "IB_USER_VERBS_CMD_CREATE_QP",
	  FIELDS(F(create_qp, user_handle), F(create_qp, pd_handle), F(create_qp, send_cq_handle),
		 F(create_qp, recv_cq_handle), F(create_qp, srq_handle), F(create_qp, max_send_wr),
		 F(create_qp, max_recv_wr), F(create_qp, max_send_sge), F(create_qp, max_recv_sge),
		 F(create_qp, max_inline_data), F(create_qp, sq_sig_all), F(create_qp, qp_type), F(create_qp, is_srq)),
	  FIELDS(CREATED(create_qp_resp, qp_handle), F(create_qp_resp, qpn), F(create_qp_resp, max_send_wr),
		 F(create_qp_resp, max_recv_wr), F(create_qp_resp, max_send_sge), F(create_qp_resp, max_recv_sge),
		 F(create_qp_resp, max_inline_data)) },
	{ "IB_USER_VERBS_CMD_DESTROY_QP", FIELDS(F(destroy_qp, qp_handle)),
	  FIELDS(F(destroy_qp_resp, events_reported)) },
	{ "IB_USER_VERBS_CMD_CREATE_SRQ",
	  FIELDS(F(create_srq, user_handle), F(create_srq, pd_handle), F(create_srq, max_wr), F(create_srq, max_sge),
		 F(create_srq, srq_limit)),
	  FIELDS(CREATED(create_srq_resp, srq_handle), F(create_srq_resp, max_wr), F(create_srq_resp, max_sge),
		 F(create_srq_resp, srqn)) },
	{ "IB_USER_VERBS_CMD_QUERY_SRQ", FIELDS(F(query_srq, srq_handle)),
	  FIELDS(F(query_srq_resp, max_wr), F(query_srq_resp, max_sge), F(query_srq_resp, srq_limit)) },
	{ "IB_USER_VERBS_CMD_DESTROY_SRQ", FIELDS(F(destroy_srq, srq_handle)),
	  FIELDS(F(destroy_srq_resp, events_reported)) },
	{ "IB_USER_VERBS_CMD_DESTROY_AH", FIELDS(F(destroy_ah, ah_handle)), NO_FIELDS },
	{ "IB_USER_VERBS_CMD_OPEN_XRCD", FIELDS(NONE(open_xrcd, fd), F(open_xrcd, oflags)),
	  FIELDS(CREATED(open_xrcd_resp, xrcd_handle)) },
	{ "IB_USER_VERBS_CMD_CLOSE_XRCD", FIELDS(F(close_xrcd, xrcd_handle)), NO_FIELDS },
};

static const struct uvd_command_fields bytes_only = { "", NO_FIELDS, NO_FIELDS };

const struct uvd_command_fields *uvd_command_fields(const char *command)
{
	for (size_t i = 0; i < sizeof(command_fields) / sizeof(*command_fields); i++)
		if (!strcmp(command_fields[i].command, command))
			return &command_fields[i];
	return &bytes_only;
}
