/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* QUERY_ROUTE, QUERY and INIT_QP_ATTR. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "cm/command.h"

enum { PATH_EXACTLY = 2 /* selectors of a path record */ };

/* One that a datagram's request has made has no path of its own (cma_ib_new_udp_id()). */
static bool has_path(const struct cm_id *id)
{
	if (id->passive && id->qp_type == IBV_QPT_UD)
		return false;
	return id->device && (id->state == CM_ROUTE_RESOLVED || id->state == CM_CONNECT || id->state == CM_DISCONNECT);
}

/* ---- QUERY_ROUTE --------------------------------------------------------------------------------------------------- */

static void path_user(const struct cm_id *id, struct ib_user_path_rec *to)
{
	struct cm_path path;

	cm_path_of(id, &path);
	*to = (struct ib_user_path_rec){
		.dlid = htobe16(path.dlid),
		.slid = htobe16(path.slid),
		.flow_label = htobe32(path.flow_label),
		.mtu = path.mtu,
		.rate = path.rate,
		.pkey = htobe16(path.pkey),
		.hop_limit = path.hops,
		.traffic_class = path.traffic_class,
		.reversible = 1,
		.mtu_selector = PATH_EXACTLY,
		.rate_selector = PATH_EXACTLY,
		.packet_life_time_selector = PATH_EXACTLY,
		.packet_life_time = path.lifetime,
	};
	memcpy(to->sgid, path.sgid, sizeof(to->sgid));
	memcpy(to->dgid, path.dgid, sizeof(to->dgid));
}

int cm_query_route(struct cm_cmd *c)
{
	const struct rdma_ucm_query *in = (const void *)c->in;
	struct rdma_ucm_query_route_resp resp = {};
	struct cm_id *id;
	int err = cm_cmd_id(c, in->id, &id);

	if (err)
		return err;
	/* These have room for IPv6 at most. */
	memcpy(&resp.src_addr, &id->src, id->src.family == AF_INET ? sizeof(id->src.in) : sizeof(id->src.in6));
	memcpy(&resp.dst_addr, &id->dst, id->dst.family == AF_INET ? sizeof(id->dst.in) : sizeof(id->dst.in6));
	if (id->device) {
		resp.node_guid = id->device->node_guid;
		resp.ibdev_index = id->device->index;
		resp.port_num = id->port;
		resp.num_paths = has_path(id);
		/* Before there is a path the kernel fills in its ends. */
		if (has_path(id))
			path_user(id, &resp.ib_route[0]);
		else
			cm_id_gids(id, resp.ib_route[0].sgid, resp.ib_route[0].dgid);
		resp.ib_route[0].pkey = htobe16(cm_id_pkey(id));
	}
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

/* ---- QUERY --------------------------------------------------------------------------------------------------------- */

static void query_device(const struct cm_id *id, struct rdma_ucm_query_addr_resp *resp)
{
	if (!id->device)
		return;
	resp->node_guid = id->device->node_guid;
	resp->ibdev_index = id->device->index;
	resp->port_num = id->port;
	resp->pkey = cm_id_is_ib(id) ? htobe16(cm_id_pkey(id)) : 0;
}

static int query_addr(struct cm_cmd *c, const struct cm_id *id)
{
	struct rdma_ucm_query_addr_resp resp = {};

	if (c->out_size < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return cm_wrong(c, "out", c->out_size, -ENOSPC);
	resp.src_size = cm_addr_size(id->src.family);
	resp.dst_size = cm_addr_size(id->dst.family);
	memcpy(&resp.src_addr, &id->src, resp.src_size);
	memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	query_device(id, &resp);
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

/* rdma_get_service_id() */
static __be64 service_id(const struct cm_id *id, const union cm_addr *addr)
{
	return addr->family == UVD_AF_IB ? addr->ib.sid : htobe64((uint64_t)id->ps << 16 | cm_addr_port(addr));
}

static void gid_addr(const struct cm_id *id, const union cm_addr *addr, const uint8_t gid[16],
		     struct uvd_sockaddr_ib *ib)
{
	if (addr->family == UVD_AF_IB) {
		*ib = addr->ib;
		return;
	}
	*ib = (struct uvd_sockaddr_ib){ .family = UVD_AF_IB, .sid = service_id(id, addr) };
	if (id->device && cm_id_is_ib(id))
		ib->pkey = htobe16(cm_id_pkey(id));
	memcpy(ib->gid, gid, 16);
}

static int query_gid(struct cm_cmd *c, const struct cm_id *id)
{
	struct rdma_ucm_query_addr_resp resp = {};
	struct uvd_sockaddr_ib ib;
	uint8_t sgid[16] = {}, dgid[16] = {};

	if (c->out_size < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return cm_wrong(c, "out", c->out_size, -ENOSPC);
	query_device(id, &resp);
	if (id->device)
		cm_id_gids(id, sgid, dgid);
	gid_addr(id, &id->src, sgid, &ib);
	resp.src_size = sizeof(ib);
	memcpy(&resp.src_addr, &ib, sizeof(ib));
	gid_addr(id, &id->dst, dgid, &ib);
	resp.dst_size = sizeof(ib);
	memcpy(&resp.dst_addr, &ib, sizeof(ib));
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

/* A PathRecord as on the wire (InfiniBand 15.2.5.16): offsets in bytes. */
static void path_packed(const struct cm_id *id, uint8_t rec[64])
{
	/* On RoCE only a request says it: without a subnet manager nobody else has filled it in. */
	const __be64 service = id->passive ? service_id(id, &id->src) : cm_id_is_ib(id) ? service_id(id, &id->dst) : 0;
	__be32 flow_and_hops;
	struct cm_path path;
	__be16 word;

	cm_path_of(id, &path);
	memset(rec, 0, 64);
	memcpy(rec, &service, 8);
	memcpy(rec + 8, path.dgid, 16);
	memcpy(rec + 24, path.sgid, 16);
	word = htobe16(path.dlid);
	memcpy(rec + 40, &word, 2);
	word = htobe16(path.slid);
	memcpy(rec + 42, &word, 2);
	flow_and_hops = htobe32(path.flow_label << 8 | path.hops);
	memcpy(rec + 44, &flow_and_hops, 4);
	rec[48] = path.traffic_class;
	rec[49] = 0x80; /* reversible; the number of paths is 0 in an answer */
	word = htobe16(path.pkey);
	memcpy(rec + 50, &word, 2);
	rec[54] = PATH_EXACTLY << 6 | path.mtu;
	rec[55] = PATH_EXACTLY << 6 | path.rate;
	rec[56] = PATH_EXACTLY << 6 | path.lifetime;
}

static int query_path(struct cm_cmd *c, const struct cm_id *id)
{
	struct {
		struct rdma_ucm_query_path_resp head;
		struct ib_path_rec_data path;
	} resp = {};
	const size_t size = has_path(id) ? sizeof(resp) : sizeof(resp.head);

	if (c->out_size < sizeof(resp.head))
		return cm_wrong(c, "out", c->out_size, -ENOSPC);
	if (has_path(id)) {
		resp.head.num_paths = 1;
		resp.path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
		/* A path that the client has no room for is left out whole. */
		if (c->out_size < sizeof(resp))
			c->out_size = sizeof(resp.head);
		path_packed(id, (uint8_t *)resp.path.path_rec);
	}
	cm_respond(c, &resp, size);
	return 0;
}

int cm_query(struct cm_cmd *c)
{
	const struct rdma_ucm_query *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id(c, in->id, &id);

	if (err)
		return err;
	switch (in->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(c, id);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(c, id);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(c, id);
	default:
		return cm_wrong(c, "option", in->option, -ENOSYS);
	}
}

/* ---- INIT_QP_ATTR -------------------------------------------------------------------------------------------------- */

int cm_init_qp_attr_check(struct cm_cmd *c)
{
	const struct rdma_ucm_init_qp_attr *in = (const void *)c->in;

	return in->qp_state > IBV_QPS_ERR ? cm_wrong(c, "qp_state", in->qp_state, -EINVAL) : 0;
}

/* Before there is a connection, and for datagrams (cma_ib_init_qp_attr()). */
static int attr_without_conn(struct cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->port_num = id->port;
	if (id->qp_type == IBV_QPT_UD) {
		cm_id_default_qkey(id);
		attr->qkey = id->qkey;
		attr->qp_attr_mask |= IBV_QP_QKEY;
	} else {
		attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	}
	return 0;
}

static bool has_reply(const struct cm_id *id)
{
	switch (id->conn) {
	case CONN_REQ_RCVD:
	case CONN_REP_SENT:
	case CONN_MRA_REP_RCVD:
	case CONN_REP_RCVD:
	case CONN_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

/* cm_init_qp_init_attr() */
static int attr_init(const struct cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (!has_reply(id) && id->conn != CONN_REQ_SENT && id->conn != CONN_MRA_REQ_RCVD)
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	attr->port_num = id->port;
	return 0;
}

static bool qp_is(const struct cm_id *id, uint8_t a, uint8_t b)
{
	return id->qp_type == a || id->qp_type == b;
}

/* cm_init_qp_rtr_attr() */
static int attr_rtr(const struct cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (!has_reply(id))
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	cm_id_ah(id, &attr->ah_attr);
	attr->path_mtu = cm_id_is_ib(id) ? id->peer.mtu : cm_id_port(id)->active_mtu;
	attr->dest_qp_num = id->remote_qpn;
	if (qp_is(id, IBV_QPT_RC, IBV_QPT_XRC_RECV)) {
		attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = id->responder_resources;
	}
	return 0;
}

/* cm_init_qp_rts_attr() */
static int attr_rts(const struct cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (!has_reply(id))
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = id->remote_psn;
	if (qp_is(id, IBV_QPT_RC, IBV_QPT_XRC_SEND)) {
		attr->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
		attr->retry_cnt = id->retry_count;
		attr->rnr_retry = id->rnr_retry_count;
		attr->max_rd_atomic = id->initiator_depth;
	}
	if (qp_is(id, IBV_QPT_RC, IBV_QPT_XRC_SEND) || id->qp_type == IBV_QPT_XRC_RECV) {
		attr->qp_attr_mask |= IBV_QP_TIMEOUT;
		attr->timeout = cm_id_timeout(id);
	}
	return 0;
}

static int attr_for(struct cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (id->conn == CONN_NONE || id->qp_type == IBV_QPT_UD)
		return attr_without_conn(id, attr);
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return attr_init(id, attr);
	case IBV_QPS_RTR:
		return attr_rtr(id, attr);
	case IBV_QPS_RTS:
		return attr_rts(id, attr);
	default:
		return -EINVAL;
	}
}

int cm_init_qp_attr(struct cm_cmd *c)
{
	const struct rdma_ucm_init_qp_attr *in = (const void *)c->in;
	struct ib_uverbs_qp_attr attr = { .qp_state = in->qp_state };
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, in->id, &id);

	if (err)
		return err;
	if (attr_for(id, &attr))
		return cm_wrong_state(c, id);
	if (in->qp_state == IBV_QPS_RTR) /* with or without a connection (rdma_init_qp_attr()) */
		attr.rq_psn = id->psn;
	cm_respond(c, &attr, sizeof(attr));
	return 0;
}
