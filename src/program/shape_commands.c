/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The write() commands of the ABI. */
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <string.h>
#include "shape.h"

#define AT(s, m) offsetof(struct ib_uverbs_##s, m), sizeof(((struct ib_uverbs_##s *)0)->m)
#define I(s, m, words) \
	{ \
#m, AT(s, m), words \
	}
#define N(s, m, name, words) \
	{ \
		name, AT(s, m), words \
	}
#define O(s, m) \
	{ \
#m, AT(s, m), NULL \
	}
#define H(s, m) \
	{ \
		"handle", AT(s, m), NULL \
	}
#define FIELDS(a) \
	{ \
		a, sizeof(a) / sizeof((a)[0]) \
	}

/* The port's own GID, a multicast group, the zero GID */
#define GIDS "x00000000000000000000ffff0a630001 xff0e0000000000000000ffffe0000001 x00000000000000000000000000000000"

static const struct uvd_shape_field port_in[] = { I(query_port, port_num, "1 0 2 255") };
static const struct uvd_shape_field handle_pd[] = { I(dealloc_pd, pd_handle, "<pd>") };
static const struct uvd_shape_field handle_ah[] = { I(destroy_ah, ah_handle, "<ah>") };
static const struct uvd_shape_field handle_mr[] = { I(dereg_mr, mr_handle, "<mr>") };
static const struct uvd_shape_field handle_mw[] = { I(dealloc_mw, mw_handle, "<mw>") };
static const struct uvd_shape_field handle_xrcd[] = { I(close_xrcd, xrcd_handle, "<xrcd>") };

static const struct uvd_shape_field context_out[] = { N(get_context_resp, async_fd, "fd", NULL),
						      O(get_context_resp, num_comp_vectors) };
#define D(m) O(query_device_resp, m)
#define DEVICE \
	D(fw_ver), D(node_guid), D(sys_image_guid), D(max_mr_size), D(page_size_cap), D(vendor_id), D(vendor_part_id), \
		D(hw_ver), D(max_qp), D(max_qp_wr), D(device_cap_flags), D(max_sge), D(max_sge_rd), D(max_cq), \
		D(max_cqe), D(max_mr), D(max_pd), D(max_qp_rd_atom), D(max_ee_rd_atom), D(max_res_rd_atom), \
		D(max_qp_init_rd_atom), D(max_ee_init_rd_atom), D(atomic_cap), D(max_ee), D(max_rdd), D(max_mw), \
		D(max_raw_ipv6_qp), D(max_raw_ethy_qp), D(max_mcast_grp), D(max_mcast_qp_attach), \
		D(max_total_mcast_qp_attach), D(max_ah), D(max_fmr), D(max_map_per_fmr), D(max_srq), D(max_srq_wr), \
		D(max_srq_sge), D(max_pkeys), D(local_ca_ack_delay), D(phys_port_cnt)
#define X(m) O(ex_query_device_resp, m)
static const struct uvd_shape_field device_out[] = { DEVICE };
static const struct uvd_shape_field device_ex_in[] = { I(ex_query_device, comp_mask, "0 1"),
						       I(ex_query_device, reserved, "0 1") };
static const struct uvd_shape_field device_ex_out[] = { DEVICE,
							X(comp_mask),
							X(response_length),
							X(odp_caps),
							X(timestamp_mask),
							X(hca_core_clock),
							X(device_cap_flags_ex),
							X(rss_caps),
							X(max_wq_type_rq),
							X(raw_packet_caps),
							X(tm_caps),
							X(cq_moderation_caps),
							X(max_dm_size),
							X(xrc_odp_caps),
							X(reserved) };
#define P(m) O(query_port_resp, m)
static const struct uvd_shape_field port_out[] = {
	P(port_cap_flags),  P(max_msg_sz),   P(bad_pkey_cntr), P(qkey_viol_cntr), P(gid_tbl_len),
	P(pkey_tbl_len),    P(lid),	     P(sm_lid),	       P(state),	  P(max_mtu),
	P(active_mtu),	    P(lmc),	     P(max_vl_num),    P(sm_sl),	  P(subnet_timeout),
	P(init_type_reply), P(active_width), P(active_speed),  P(phys_state),	  P(link_layer),
	P(flags),	    P(reserved)
};
static const struct uvd_shape_field pd_out[] = { H(alloc_pd_resp, pd_handle) };

static const struct uvd_shape_field mr_in[] = { I(reg_mr, start, "mem mem+0x1000 mem+1 ro none 0 edge"),
						I(reg_mr, length, "4096 1 0 8192 0x40000 0xfffffffffffff000 -1"),
						I(reg_mr, hca_va, "mem mem+0x1000 mem+1 0 0x1000 -1"),
						I(reg_mr, pd_handle, "<pd>"),
						I(reg_mr, access_flags, "7 0 1 2 4 15 16 31 0x100000 0x2000000 0x80") };
static const struct uvd_shape_field mr_out[] = { H(reg_mr_resp, mr_handle), O(reg_mr_resp, lkey),
						 O(reg_mr_resp, rkey) };
static const struct uvd_shape_field rereg_in[] = {
	I(rereg_mr, mr_handle, "<mr>"),	      I(rereg_mr, flags, "2 1 4 7 0 8"), I(rereg_mr, start, "mem none"),
	I(rereg_mr, length, "4096 0 -1"),     I(rereg_mr, hca_va, "mem mem+1"),	 I(rereg_mr, pd_handle, "<pd>"),
	I(rereg_mr, access_flags, "7 0 2 16")
};
static const struct uvd_shape_field rereg_out[] = { O(rereg_mr_resp, lkey), O(rereg_mr_resp, rkey) };
static const struct uvd_shape_field mw_in[] = { I(alloc_mw, pd_handle, "<pd>"), I(alloc_mw, mw_type, "1 2 0 3 255"),
						I(alloc_mw, reserved, "x000000 x010000") };
static const struct uvd_shape_field mw_out[] = { H(alloc_mw_resp, mw_handle), O(alloc_mw_resp, rkey) };
static const struct uvd_shape_field channel_out[] = { N(create_comp_channel_resp, fd, "fd", NULL) };

#define CQ(s) \
	I(s, user_handle, "0x1111 0 -1"), I(s, cqe, "16 1 0 100 32767 32768 -1"), I(s, comp_vector, "0 1 2 -1"), \
		I(s, comp_channel, "-1 <channel> 0 1 -2 100")
static const struct uvd_shape_field cq_in[] = { CQ(create_cq), I(create_cq, reserved, "0 1") };
static const struct uvd_shape_field cq_ex_in[] = { CQ(ex_create_cq), I(ex_create_cq, comp_mask, "0 1"),
						   I(ex_create_cq, flags, "0 1 2 4"),
						   I(ex_create_cq, reserved, "0 1") };
static const struct uvd_shape_field cq_out[] = { H(create_cq_resp, cq_handle), O(create_cq_resp, cqe) };
static const struct uvd_shape_field cq_ex_out[] = { H(create_cq_resp, cq_handle), O(create_cq_resp, cqe),
						    O(ex_create_cq_resp, comp_mask),
						    O(ex_create_cq_resp, response_length) };
static const struct uvd_shape_field resize_in[] = { I(resize_cq, cq_handle, "<cq>"),
						    I(resize_cq, cqe, "32 1 0 100 32767 32768 -1") };
static const struct uvd_shape_field resize_out[] = { O(resize_cq_resp, cqe), O(resize_cq_resp, reserved) };
static const struct uvd_shape_field poll_in[] = { I(poll_cq, cq_handle, "<cq>"), I(poll_cq, ne, "1 0 2") };
static const struct uvd_shape_field poll_out[] = { O(poll_cq_resp, count), O(poll_cq_resp, reserved) };
static const struct uvd_shape_field notify_in[] = { I(req_notify_cq, cq_handle, "<cq>"),
						    I(req_notify_cq, solicited_only, "0 1 2 -1") };
static const struct uvd_shape_field destroy_cq_in[] = { I(destroy_cq, cq_handle, "<cq>"),
							I(destroy_cq, reserved, "0 1") };
static const struct uvd_shape_field destroy_cq_out[] = { O(destroy_cq_resp, comp_events_reported),
							 O(destroy_cq_resp, async_events_reported) };
static const struct uvd_shape_field modify_cq_in[] = { I(ex_modify_cq, cq_handle, "<cq>"),
						       I(ex_modify_cq, attr_mask, "1 0 2"),
						       I(ex_modify_cq, attr, "x01000100"),
						       I(ex_modify_cq, reserved, "0 1") };

#define QP(s) \
	I(s, user_handle, "0x2222 0 -1"), I(s, pd_handle, "<pd>"), I(s, send_cq_handle, "<cq>"), \
		I(s, recv_cq_handle, "<cq>"), I(s, srq_handle, "0 <srq>"), I(s, max_send_wr, "4 1 0 16 1048577 -1"), \
		I(s, max_recv_wr, "4 1 0 16 1048577 -1"), I(s, max_send_sge, "1 0 2 32 33 -1"), \
		I(s, max_recv_sge, "1 0 2 32 33 -1"), I(s, max_inline_data, "0 1 64 512 513 -1"), \
		I(s, sq_sig_all, "0 1 2"), I(s, qp_type, "2 4 3 8 9 10 0 1 5 6 255"), I(s, is_srq, "0 1"), \
		I(s, reserved, "0 1")
static const struct uvd_shape_field qp_in[] = { QP(create_qp) };
static const struct uvd_shape_field qp_ex_in[] = {
	QP(ex_create_qp), I(ex_create_qp, comp_mask, "0 1 2"),
	I(ex_create_qp, create_flags, "0 2 4 8 16 0x100 0x200 0x400 0x800 1 0x80000000"),
	I(ex_create_qp, rwq_ind_tbl_handle, "0 <rwq_ind_tbl>"), I(ex_create_qp, source_qpn, "0 1")
};
#define QPO \
	H(create_qp_resp, qp_handle), O(create_qp_resp, qpn), O(create_qp_resp, max_send_wr), \
		O(create_qp_resp, max_recv_wr), O(create_qp_resp, max_send_sge), O(create_qp_resp, max_recv_sge), \
		O(create_qp_resp, max_inline_data), O(create_qp_resp, reserved)
static const struct uvd_shape_field qp_out[] = { QPO };
static const struct uvd_shape_field qp_ex_out[] = { QPO, O(ex_create_qp_resp, comp_mask),
						    O(ex_create_qp_resp, response_length) };
static const struct uvd_shape_field open_qp_in[] = { I(open_qp, user_handle, "0"), I(open_qp, pd_handle, "<xrcd>"),
						     I(open_qp, qpn, "0 17"), I(open_qp, qp_type, "10 9") };
static const struct uvd_shape_field query_qp_in[] = { I(query_qp, qp_handle, "<qp>"),
						      I(query_qp, attr_mask, "-1 0 1") };
#define DEST(s, d, p) \
	N(s, d.dgid, p "dgid", GIDS), N(s, d.flow_label, p "flow_label", "0 1"), N(s, d.dlid, p "dlid", "0 1 0xc000"), \
		N(s, d.reserved, p "reserved", "0"), N(s, d.sgid_index, p "sgid_index", "1 0 2 15"), \
		N(s, d.hop_limit, p "hop_limit", "1 0 64"), N(s, d.traffic_class, p "traffic_class", "0 1"), \
		N(s, d.sl, p "sl", "0 1"), N(s, d.src_path_bits, p "src_path_bits", "0 1"), \
		N(s, d.static_rate, p "static_rate", "0 1 3"), N(s, d.is_global, p "is_global", "1 0 2"), \
		N(s, d.port_num, p "av_port", "1 0 2")
#define Q(m) O(query_qp_resp, m)
static const struct uvd_shape_field query_qp_out[] = { DEST(query_qp_resp, dest, ""),
						       DEST(query_qp_resp, alt_dest, "alt_"),
						       Q(max_send_wr),
						       Q(max_recv_wr),
						       Q(max_send_sge),
						       Q(max_recv_sge),
						       Q(max_inline_data),
						       Q(qkey),
						       Q(rq_psn),
						       Q(sq_psn),
						       Q(dest_qp_num),
						       Q(qp_access_flags),
						       Q(pkey_index),
						       Q(alt_pkey_index),
						       Q(qp_state),
						       Q(cur_qp_state),
						       Q(path_mtu),
						       Q(path_mig_state),
						       Q(sq_draining),
						       Q(max_rd_atomic),
						       Q(max_dest_rd_atomic),
						       Q(min_rnr_timer),
						       Q(port_num),
						       Q(timeout),
						       Q(retry_cnt),
						       Q(rnr_retry),
						       Q(alt_port_num),
						       Q(alt_timeout),
						       Q(sq_sig_all),
						       Q(reserved) };
#define M(m, words) I(modify_qp, m, words)
#define MODIFY \
	DEST(modify_qp, dest, ""), DEST(modify_qp, alt_dest, "alt_"), M(qp_handle, "<qp>"), M(attr_mask, "0 1 57 -1"), \
		M(qkey, "0 0x11111111 0x80000000"), M(rq_psn, "0 1 0xffffff -1"), M(sq_psn, "0 1 0xffffff -1"), \
		M(dest_qp_num, "0 1 17 -1"), M(qp_access_flags, "0 7 15 -1"), M(pkey_index, "0 1 -1"), \
		M(alt_pkey_index, "0 1 -1"), M(qp_state, "1 0 2 3 4 5 6 7 255"), M(cur_qp_state, "0 1 2 3 4 5 6 7"), \
		M(path_mtu, "3 1 2 4 5 0 6"), M(path_mig_state, "0 1 2 3"), M(en_sqd_async_notify, "0 1"), \
		M(max_rd_atomic, "1 0 16 128 129 255"), M(max_dest_rd_atomic, "1 0 16 128 129 255"), \
		M(min_rnr_timer, "12 0 31 32"), M(port_num, "1 0 2"), M(timeout, "14 0 31 32"), M(retry_cnt, "7 0 8"), \
		M(rnr_retry, "7 0 8"), M(alt_port_num, "1 0 2"), M(alt_timeout, "14 31 32"), \
		M(reserved, "x0000 x0100")
static const struct uvd_shape_field modify_qp_in[] = { MODIFY };
static const struct uvd_shape_field modify_qp_ex_in[] = { MODIFY, I(ex_modify_qp, rate_limit, "0 1"),
							  I(ex_modify_qp, reserved, "0 1") };
static const struct uvd_shape_field modify_qp_ex_out[] = { O(ex_modify_qp_resp, comp_mask),
							   O(ex_modify_qp_resp, response_length) };
static const struct uvd_shape_field destroy_qp_in[] = { I(destroy_qp, qp_handle, "<qp>"),
							I(destroy_qp, reserved, "0 1") };
static const struct uvd_shape_field events_out[] = { O(destroy_qp_resp, events_reported) };

/* Each command with one work request and one SGE. */
struct ib_uverbs_one_send {
	struct ib_uverbs_post_send c;
	struct ib_uverbs_send_wr wr;
	struct ib_uverbs_sge sge;
};
struct ib_uverbs_one_recv {
	struct ib_uverbs_post_recv c;
	struct ib_uverbs_recv_wr wr;
	struct ib_uverbs_sge sge;
};
#define SGE(s) \
	N(s, sge.addr, "addr", "mem none"), N(s, sge.length, "length", "16 0 4096 -1"), \
		N(s, sge.lkey, "lkey", "<lkey> 0")
static const struct uvd_shape_field post_send_in[] = { N(one_send, c.qp_handle, "qp_handle", "<qp>"),
						       N(one_send, c.wr_count, "wr_count", "1 0 2 -1"),
						       N(one_send, c.sge_count, "sge_count", "1 0 2 -1"),
						       N(one_send, c.wqe_size, "wqe_size", "56 55 64 -1"),
						       N(one_send, wr.wr_id, "wr_id", "0x77"),
						       N(one_send, wr.num_sge, "num_sge", "1 0 2 -1"),
						       N(one_send, wr.opcode, "opcode", "2 0 3 4 5 9 255"),
						       N(one_send, wr.send_flags, "send_flags", "2 0 4"),
						       N(one_send, wr.wr.ud.ah, "ah", "<ah> 0"),
						       N(one_send, wr.wr.ud.remote_qpn, "remote_qpn", "17"),
						       SGE(one_send) };
static const struct uvd_shape_field post_recv_in[] = { N(one_recv, c.qp_handle, "qp_handle", "<qp>"),
						       N(one_recv, c.wr_count, "wr_count", "1 0 2 -1"),
						       N(one_recv, c.sge_count, "sge_count", "1 0 2 -1"),
						       N(one_recv, c.wqe_size, "wqe_size", "16 15 32 -1"),
						       N(one_recv, wr.wr_id, "wr_id", "0x78"),
						       N(one_recv, wr.num_sge, "num_sge", "1 0 2 -1"),
						       SGE(one_recv) };
static const struct uvd_shape_field post_srq_in[] = { N(one_recv, c.qp_handle, "srq_handle", "<srq>"),
						      N(one_recv, c.wr_count, "wr_count", "1 0 2 -1"),
						      N(one_recv, c.sge_count, "sge_count", "1 0 2 -1"),
						      N(one_recv, c.wqe_size, "wqe_size", "16 15 32 -1"),
						      N(one_recv, wr.wr_id, "wr_id", "0x78"),
						      N(one_recv, wr.num_sge, "num_sge", "1 0 2 -1"),
						      SGE(one_recv) };
static const struct uvd_shape_field post_out[] = { O(post_send_resp, bad_wr) };

static const struct uvd_shape_field mcast_in[] = { I(attach_mcast, gid,
						     "xff0e0000000000000000ffffe0000001 "
						     "xff0e0000000000000000ffffe0000002 "
						     "x00000000000000000000ffff0a630001"),
						   I(attach_mcast, qp_handle, "<qp>"),
						   I(attach_mcast, mlid, "0 0xc000 1"),
						   I(attach_mcast, reserved, "0 1") };

static const struct uvd_shape_field srq_in[] = { I(create_srq, user_handle, "0x3333"), I(create_srq, pd_handle, "<pd>"),
						 I(create_srq, max_wr, "16 1 0 100 1048577 -1"),
						 I(create_srq, max_sge, "1 0 2 27 28 -1"),
						 I(create_srq, srq_limit, "0 1 100") };
static const struct uvd_shape_field srq_out[] = { H(create_srq_resp, srq_handle), O(create_srq_resp, max_wr),
						  O(create_srq_resp, max_sge), O(create_srq_resp, srqn) };
static const struct uvd_shape_field modify_srq_in[] = { I(modify_srq, srq_handle, "<srq>"),
							I(modify_srq, attr_mask, "2 1 3 0 4 -1"),
							I(modify_srq, max_wr, "16 0 1 100 -1"),
							I(modify_srq, srq_limit, "1 0 15 16 100 -1") };
static const struct uvd_shape_field query_srq_in[] = { I(query_srq, srq_handle, "<srq>"),
						       I(query_srq, reserved, "0 1") };
static const struct uvd_shape_field query_srq_out[] = { O(query_srq_resp, max_wr), O(query_srq_resp, max_sge),
							O(query_srq_resp, srq_limit), O(query_srq_resp, reserved) };
static const struct uvd_shape_field destroy_srq_in[] = { I(destroy_srq, srq_handle, "<srq>"),
							 I(destroy_srq, reserved, "0 1") };
static const struct uvd_shape_field xsrq_in[] = {
	I(create_xsrq, user_handle, "0x3333"), I(create_xsrq, srq_type, "0 1 2 3"),   I(create_xsrq, pd_handle, "<pd>"),
	I(create_xsrq, max_wr, "16 0 -1"),     I(create_xsrq, max_sge, "1 0"),	      I(create_xsrq, srq_limit, "0 1"),
	I(create_xsrq, max_num_tags, "0 1"),   I(create_xsrq, xrcd_handle, "<xrcd>"), I(create_xsrq, cq_handle, "<cq>")
};

#define A(m, words) N(create_ah, attr.m, #m, words)
#define G(m, words) N(create_ah, attr.grh.m, #m, words)
static const struct uvd_shape_field ah_in[] = { I(create_ah, user_handle, "0x4444"),
						I(create_ah, pd_handle, "<pd>"),
						I(create_ah, reserved, "0 1"),
						G(dgid, GIDS),
						G(flow_label, "0 1"),
						G(sgid_index, "1 0 2 15"),
						G(hop_limit, "1 0"),
						G(traffic_class, "0 1"),
						N(create_ah, attr.grh.reserved, "grh_reserved", "0 1"),
						A(dlid, "0 1"),
						A(sl, "0 1"),
						A(src_path_bits, "0 1"),
						A(static_rate, "0 1"),
						A(is_global, "1 0 2"),
						A(port_num, "1 0 2 255"),
						A(reserved, "0 1") };
static const struct uvd_shape_field ah_out[] = { H(create_ah_resp, ah_handle) };

static const struct uvd_shape_field xrcd_in[] = { I(open_xrcd, fd, "-1"), I(open_xrcd, oflags, "0x40 0 0x80") };
static const struct uvd_shape_field xrcd_out[] = { H(open_xrcd_resp, xrcd_handle) };
static const struct uvd_shape_field flow_in[] = { I(create_flow, comp_mask, "0 1"), I(create_flow, qp_handle, "<qp>"),
						  N(create_flow, flow_attr.size, "size", "16 0"),
						  N(create_flow, flow_attr.port, "port", "1 0") };
static const struct uvd_shape_field flow_out[] = { O(create_flow_resp, comp_mask), H(create_flow_resp, flow_handle) };
static const struct uvd_shape_field destroy_flow_in[] = { I(destroy_flow, comp_mask, "0 1"),
							  I(destroy_flow, flow_handle, "<flow>") };
static const struct uvd_shape_field wq_in[] = {
	I(ex_create_wq, comp_mask, "0 1"),	I(ex_create_wq, wq_type, "0 1"),
	I(ex_create_wq, user_handle, "0x5555"), I(ex_create_wq, pd_handle, "<pd>"),
	I(ex_create_wq, cq_handle, "<cq>"),	I(ex_create_wq, max_wr, "16 0"),
	I(ex_create_wq, max_sge, "1"),		I(ex_create_wq, create_flags, "0 1 -1")
};
static const struct uvd_shape_field wq_out[] = { O(ex_create_wq_resp, comp_mask), O(ex_create_wq_resp, response_length),
						 H(ex_create_wq_resp, wq_handle), O(ex_create_wq_resp, max_wr),
						 O(ex_create_wq_resp, max_sge),	  O(ex_create_wq_resp, wqn) };
static const struct uvd_shape_field modify_wq_in[] = { I(ex_modify_wq, attr_mask, "1 0 4 8"),
						       I(ex_modify_wq, wq_handle, "<wq>"),
						       I(ex_modify_wq, wq_state, "1 0 2 3"),
						       I(ex_modify_wq, curr_wq_state, "0 1 3") };
static const struct uvd_shape_field destroy_wq_in[] = { I(ex_destroy_wq, comp_mask, "0 1"),
							I(ex_destroy_wq, wq_handle, "<wq>") };
struct ib_uverbs_one_table {
	struct ib_uverbs_ex_create_rwq_ind_table c;
	uint32_t wq[2];
};
static const struct uvd_shape_field table_in[] = { N(one_table, c.comp_mask, "comp_mask", "0 1"),
						   N(one_table, c.log_ind_tbl_size, "log_ind_tbl_size", "0 1 13 14 -1"),
						   N(one_table, wq[0], "wq0", "<wq>"),
						   N(one_table, wq[1], "wq1", "<wq>") };
static const struct uvd_shape_field table_out[] = { O(ex_create_rwq_ind_table_resp, comp_mask),
						    O(ex_create_rwq_ind_table_resp, response_length),
						    H(ex_create_rwq_ind_table_resp, ind_tbl_handle),
						    O(ex_create_rwq_ind_table_resp, ind_tbl_num) };
static const struct uvd_shape_field destroy_table_in[] = {
	I(ex_destroy_rwq_ind_table, comp_mask, "0 1"), I(ex_destroy_rwq_ind_table, ind_tbl_handle, "<rwq_ind_tbl>")
};

#define NONE \
	{ \
		NULL, 0 \
	}
#define SIZE(s) sizeof(struct ib_uverbs_##s)
/* R: a command with a response. W: a command without. EX: an extended command. */
#define R(c, si, so, fi, fo, ...) \
	{ \
#c, IB_USER_VERBS_CMD_##c, false, true, SIZE(si), SIZE(so), fi, fo, __VA_ARGS__ \
	}
#define W(c, si, fi, ...) \
	{ \
#c, IB_USER_VERBS_CMD_##c, false, false, SIZE(si), 0, fi, NONE, __VA_ARGS__ \
	}
#define EX(c, si, osize, fi, fo, ...) \
	{ \
		"EX_" #c, IB_USER_VERBS_EX_CMD_##c, true, false, SIZE(si), osize, fi, fo, __VA_ARGS__ \
	}

static const struct uvd_shape_command commands[] = {
	R(GET_CONTEXT, get_context, get_context_resp, NONE, FIELDS(context_out), "context"),
	R(QUERY_DEVICE, query_device, query_device_resp, NONE, FIELDS(device_out)),
	R(QUERY_PORT, query_port, query_port_resp, FIELDS(port_in), FIELDS(port_out)),
	R(ALLOC_PD, alloc_pd, alloc_pd_resp, NONE, FIELDS(pd_out), "pd"),
	W(DEALLOC_PD, dealloc_pd, FIELDS(handle_pd), .ends = "pd"),
	R(CREATE_AH, create_ah, create_ah_resp, FIELDS(ah_in), FIELDS(ah_out), "ah", .uhw_out = 8),
	W(DESTROY_AH, destroy_ah, FIELDS(handle_ah), .ends = "ah"),
	R(REG_MR, reg_mr, reg_mr_resp, FIELDS(mr_in), FIELDS(mr_out), "mr"),
	R(REREG_MR, rereg_mr, rereg_mr_resp, FIELDS(rereg_in), FIELDS(rereg_out)),
	W(DEREG_MR, dereg_mr, FIELDS(handle_mr), .ends = "mr"),
	R(ALLOC_MW, alloc_mw, alloc_mw_resp, FIELDS(mw_in), FIELDS(mw_out), "mw"),
	W(DEALLOC_MW, dealloc_mw, FIELDS(handle_mw), .ends = "mw"),
	R(CREATE_COMP_CHANNEL, create_comp_channel, create_comp_channel_resp, NONE, FIELDS(channel_out), "channel"),
	R(CREATE_CQ, create_cq, create_cq_resp, FIELDS(cq_in), FIELDS(cq_out), "cq", .uhw_out = 16),
	R(RESIZE_CQ, resize_cq, resize_cq_resp, FIELDS(resize_in), FIELDS(resize_out), .uhw_out = 16),
	R(DESTROY_CQ, destroy_cq, destroy_cq_resp, FIELDS(destroy_cq_in), FIELDS(destroy_cq_out), .ends = "cq"),
	R(POLL_CQ, poll_cq, poll_cq_resp, FIELDS(poll_in), FIELDS(poll_out), .uhw_out = SIZE(wc)),
	W(REQ_NOTIFY_CQ, req_notify_cq, FIELDS(notify_in)),
	R(CREATE_QP, create_qp, create_qp_resp, FIELDS(qp_in), FIELDS(qp_out), "qp", .uhw_out = 32),
	R(QUERY_QP, query_qp, query_qp_resp, FIELDS(query_qp_in), FIELDS(query_qp_out)),
	W(MODIFY_QP, modify_qp, FIELDS(modify_qp_in)),
	R(DESTROY_QP, destroy_qp, destroy_qp_resp, FIELDS(destroy_qp_in), FIELDS(events_out), .ends = "qp"),
	R(POST_SEND, one_send, post_send_resp, FIELDS(post_send_in), FIELDS(post_out)),
	R(POST_RECV, one_recv, post_recv_resp, FIELDS(post_recv_in), FIELDS(post_out)),
	W(ATTACH_MCAST, attach_mcast, FIELDS(mcast_in)),
	W(DETACH_MCAST, detach_mcast, FIELDS(mcast_in)),
	R(CREATE_SRQ, create_srq, create_srq_resp, FIELDS(srq_in), FIELDS(srq_out), "srq", .uhw_out = 24),
	W(MODIFY_SRQ, modify_srq, FIELDS(modify_srq_in), .uhw_in = 8),
	R(QUERY_SRQ, query_srq, query_srq_resp, FIELDS(query_srq_in), FIELDS(query_srq_out)),
	R(DESTROY_SRQ, destroy_srq, destroy_srq_resp, FIELDS(destroy_srq_in), FIELDS(events_out), .ends = "srq"),
	R(POST_SRQ_RECV, one_recv, post_srq_recv_resp, FIELDS(post_srq_in), FIELDS(post_out)),
	R(OPEN_XRCD, open_xrcd, open_xrcd_resp, FIELDS(xrcd_in), FIELDS(xrcd_out), "xrcd"),
	W(CLOSE_XRCD, close_xrcd, FIELDS(handle_xrcd), .ends = "xrcd"),
	R(CREATE_XSRQ, create_xsrq, create_srq_resp, FIELDS(xsrq_in), FIELDS(srq_out), "srq", .uhw_out = 24),
	R(OPEN_QP, open_qp, create_qp_resp, FIELDS(open_qp_in), FIELDS(qp_out), "qp", .uhw_out = 32),
	EX(QUERY_DEVICE, ex_query_device, SIZE(ex_query_device_resp), FIELDS(device_ex_in), FIELDS(device_ex_out)),
	EX(CREATE_CQ, ex_create_cq, SIZE(ex_create_cq_resp), FIELDS(cq_ex_in), FIELDS(cq_ex_out), "cq", .uhw_out = 16),
	EX(CREATE_QP, ex_create_qp, SIZE(ex_create_qp_resp), FIELDS(qp_ex_in), FIELDS(qp_ex_out), "qp", .uhw_out = 32),
	EX(MODIFY_QP, ex_modify_qp, SIZE(ex_modify_qp_resp), FIELDS(modify_qp_ex_in), FIELDS(modify_qp_ex_out)),
	EX(CREATE_FLOW, create_flow, SIZE(create_flow_resp), FIELDS(flow_in), FIELDS(flow_out), "flow"),
	EX(DESTROY_FLOW, destroy_flow, 0, FIELDS(destroy_flow_in), NONE, .ends = "flow"),
	EX(CREATE_WQ, ex_create_wq, SIZE(ex_create_wq_resp), FIELDS(wq_in), FIELDS(wq_out), "wq"),
	EX(MODIFY_WQ, ex_modify_wq, 0, FIELDS(modify_wq_in), NONE),
	EX(DESTROY_WQ, ex_destroy_wq, SIZE(ex_destroy_wq_resp), FIELDS(destroy_wq_in), NONE, .ends = "wq"),
	EX(CREATE_RWQ_IND_TBL, one_table, SIZE(ex_create_rwq_ind_table_resp), FIELDS(table_in), FIELDS(table_out),
	   "rwq_ind_tbl"),
	EX(DESTROY_RWQ_IND_TBL, ex_destroy_rwq_ind_table, 0, FIELDS(destroy_table_in), NONE, .ends = "rwq_ind_tbl"),
	EX(MODIFY_CQ, ex_modify_cq, 0, FIELDS(modify_cq_in), NONE),
};

const struct uvd_shape_command *uvd_shape_command_at(unsigned int i)
{
	return i < UVD_COUNT(commands) ? &commands[i] : NULL;
}

const struct uvd_shape_command *uvd_shape_command(const char *name)
{
	for (unsigned int i = 0; i < UVD_COUNT(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}
