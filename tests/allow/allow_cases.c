/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allow-lists (docs/access-control.md), one case a row: the texts of the administrator, what a client does in each front
 * that a verb has, the errno, and the line in the log.
 */
#include <fcntl.h>
#include <uverbsd/uapi_later.h>
#include "refusals.h"

/* ---- what clients do; each returns 0 or a negative errno --------------------------------------------------------- */

static int alloc_pd(enum uv_front front)
{
	refusals_context(UV_METHOD);
	return uv_alloc_pd(h.fd, front, &pd);
}

static int query_device(enum uv_front front)
{
	struct ib_uverbs_query_device_resp resp;

	refusals_context(UV_METHOD);
	return uv_query_device(h.fd, front, &resp);
}

static int reg_mr(enum uv_front front, unsigned int access)
{
	struct uv_mr mr;

	return refusals_objects() ?: uv_reg_mr(h.fd, front, pd, mem, sizeof(mem), access, &mr);
}

int allow_reg_remote_write(enum uv_front front)
{
	return reg_mr(front, LW | RW);
}

static int reg_remote_read(enum uv_front front)
{
	return reg_mr(front, RR);
}

static int reg_local_write(enum uv_front front)
{
	return reg_mr(front, LW);
}

static int reg_relaxed(enum uv_front front)
{
	return reg_mr(front, LW | IBV_ACCESS_RELAXED_ORDERING);
}

static int reg_unnamed_flag(enum uv_front front)
{
	return reg_mr(front, LW | 1 << 29);
}

static int reg_huge(enum uv_front front)
{
	return reg_mr(front, LW | IBV_ACCESS_HUGETLB);
}

static int reg_dm_atomic(enum uv_front front)
{
	uint64_t offset = 0, length = 4096;
	struct uv_tree tree = {};
	uint32_t keys[2];

	refusals_objects();
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, 8);
	uv_attr_in(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &(uint32_t){ 0 }, 4);
	uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, &tree), 0);
	offset = uv_attr_find(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE)->data;
	tree = (struct uv_tree){};
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, offset);
	offset = 0;
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, 8);
	uv_attr_in(&tree, UVERBS_ATTR_REG_DM_MR_LENGTH, &length, 8);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd);
	uv_attr_const(&tree, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, IBV_ACCESS_ZERO_BASED | LW | IBV_ACCESS_REMOTE_ATOMIC);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &keys[0], 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &keys[1], 4);
	return harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, &tree);
}

/* A region that is allowed gets a flag that is not. */
static int rereg_adds_remote_write(enum uv_front front)
{
	struct ib_uverbs_rereg_mr cmd = { .flags = IBV_REREG_MR_CHANGE_ACCESS, .access_flags = LW | RW };
	struct ib_uverbs_rereg_mr_resp resp;
	struct uv_mr mr;

	refusals_objects();
	ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, sizeof(mem), LW, &mr), 0);
	cmd.mr_handle = mr.handle;
	return uv_cmd(h.fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp) });
}

static struct uv_qp qp;

static int create_qp(enum uv_front front, uint8_t type)
{
	struct uv_qp_attr attr;
	int ret = refusals_objects();

	attr = uv_qp_attr(pd, cq);
	attr.type = type;
	return ret ?: uv_create_qp(h.fd, front, &attr, &qp);
}

static int create_rc(enum uv_front front)
{
	return create_qp(front, IBV_QPT_RC);
}

static int create_ud(enum uv_front front)
{
	return create_qp(front, IBV_QPT_UD);
}

static int create_raw(enum uv_front front)
{
	h.call->caller.proc = &harness_root;
	return create_qp(front, IBV_QPT_RAW_PACKET);
}

static int open_xrc_target(enum uv_front front)
{
	uint32_t xrcd, handle;

	refusals_objects();
	ck_assert_int_eq(uv_open_xrcd(h.fd, UV_WRITE, -1, O_CREAT, &xrcd), 0);
	return uv_open_qp(h.fd, front, xrcd, 99, IBV_QPT_XRC_RECV, &handle);
}

static int modify(enum uv_front front, struct ib_uverbs_modify_qp attr)
{
	attr.qp_handle = qp.handle;
	return uv_modify_qp(h.fd, front, &attr);
}

static int to_init(enum uv_front front, uint16_t pkey_index, uint32_t access)
{
	return modify(front, (struct ib_uverbs_modify_qp){
				     .attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
				     .qp_state = IBV_QPS_INIT,
				     .port_num = 1,
				     .pkey_index = pkey_index,
				     .qp_access_flags = access,
			     });
}

static int qp_access(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: to_init(front, 0, LW | RR);
}

static int qp_access_local(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: to_init(front, 0, LW);
}

static int pkey_index_1(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: to_init(front, 1, 0);
}

static int pkey_index_0(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: to_init(front, 0, 0);
}

static int pkey_index_9(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: to_init(front, 9, 0);
}

/* The P_Key stays at index 0, and becomes another one with the port. */
static int pkey_by_a_new_port(enum uv_front front)
{
	int ret = create_rc(UV_WRITE) ?: to_init(UV_WRITE, 0, 0);

	ck_assert_int_eq(ret, 0);
	return modify(front, (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE | IBV_QP_PORT,
							   .qp_state = IBV_QPS_INIT,
							   .port_num = 2 });
}

static int to_rtr(enum uv_front front, uint8_t sgid_index)
{
	struct ib_uverbs_modify_qp attr = {
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 5,
		.dest = { .is_global = 1, .port_num = 1, .sgid_index = sgid_index, .dlid = 1 },
	};

	memcpy(attr.dest.dgid, &h.config.ports[0].gids[0], 16);
	return modify(front, attr);
}

static int path_gid_1(enum uv_front front)
{
	int ret = create_rc(UV_WRITE) ?: to_init(UV_WRITE, 0, 0);

	ck_assert_int_eq(ret, 0);
	return to_rtr(front, 1);
}

static int path_gid_0(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: to_init(UV_WRITE, 0, 0) ?: to_rtr(front, 0);
}

/* The source GID stays at index 0, and becomes another one with the port. */
static int gid_by_a_new_port(enum uv_front front)
{
	ck_assert_int_eq(path_gid_0(UV_WRITE), 0);
	ck_assert_int_eq(
		modify(UV_WRITE, (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN |
									    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
									    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
							       .qp_state = IBV_QPS_RTS }),
		0);
	ck_assert_int_eq(
		modify(UV_WRITE, (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_SQD }),
		0);
	return modify(front, (struct ib_uverbs_modify_qp){
				     .attr_mask = IBV_QP_STATE | IBV_QP_PORT, .qp_state = IBV_QPS_SQD, .port_num = 2 });
}

static int create_ah(enum uv_front front, uint8_t sgid_index)
{
	struct ib_uverbs_ah_attr attr = { .is_global = 1, .port_num = 1, .dlid = 1, .grh.sgid_index = sgid_index };
	uint32_t ah;

	return refusals_objects() ?: uv_create_ah(h.fd, front, pd, &attr, &ah);
}

static int ah_gid_1(enum uv_front front)
{
	return create_ah(front, 1);
}

static int ah_gid_0(enum uv_front front)
{
	return create_ah(front, 0);
}

/* With hfi1 the packet would have the GID of this index on the QP's port, which no list has seen. */
static int post_by_an_ah_of_another_port(enum uv_front front)
{
	struct ib_uverbs_ah_attr attr = { .is_global = 1, .port_num = 1, .dlid = 1 };
	struct ib_uverbs_send_wr wr = { .opcode = IBV_WR_SEND };
	uint32_t ah, bad;

	ck_assert_int_eq(create_ud(UV_WRITE), 0);
	ck_assert_int_eq(modify(UV_WRITE, (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX |
										     IBV_QP_PORT | IBV_QP_QKEY,
									.qp_state = IBV_QPS_INIT,
									.port_num = 2 }),
			 0);
	ck_assert_int_eq(uv_create_ah(h.fd, UV_WRITE, pd, &attr, &ah), 0);
	wr.wr.ud.ah = ah;
	return uv_post_send(h.fd, front, qp.handle, &wr, 1, NULL, 0, &bad);
}

static int create_channel(enum uv_front front)
{
	int channel, ret;

	refusals_objects();
	ret = uv_create_channel(h.fd, front, &channel);
	if (!ret)
		uv_close(channel);
	return ret;
}

static int create_srq(enum uv_front front)
{
	struct uv_srq_attr attr;
	struct uv_srq srq;

	refusals_objects();
	attr = uv_srq_attr(pd);
	return uv_create_srq(h.fd, front, &attr, &srq);
}

static int create_xsrq(enum uv_front front)
{
	struct uv_srq_attr attr;
	struct uv_srq srq;

	refusals_objects();
	attr = uv_srq_attr(pd);
	attr.type = IBV_SRQT_XRC;
	attr.cq = cq;
	return uv_open_xrcd(h.fd, UV_WRITE, -1, O_CREAT, &attr.xrcd) ?: uv_create_xsrq(h.fd, front, &attr, &srq);
}

/* Ending an object is never refused. */
static int destroy_qp(enum uv_front front)
{
	return create_rc(UV_WRITE) ?: uv_destroy_qp(h.fd, front, qp.handle, NULL);
}

static int post_send(enum uv_front front)
{
	struct ib_uverbs_send_wr wr = {};
	uint32_t bad;

	create_rc(UV_WRITE);
	return uv_post_send(h.fd, front, qp.handle, &wr, 1, NULL, 0, &bad);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

const struct refusal_case allow_cases[] = {
	{ "silent: everything", {}, allow_reg_remote_write, ALL, 0, NULL },
	{ "none: no context",
	  { "none" },
	  refusals_context,
	  ALL,
	  EPERM,
	  "GET_CONTEXT: EPERM: user 1000 is refused by the allow-list `verbs:`: verb GET_CONTEXT; to allow it, add"
	  " `allow = verbs:GET_CONTEXT`" },
	{ "a verb that is not listed", { "verbs:base" }, alloc_pd, ALL, EPERM, "`verbs:`: verb ALLOC_PD" },
	{ "a verb that is listed", { "verbs:base", "verbs:ALLOC_PD" }, alloc_pd, ALL, 0, NULL },
	{ "a query that is not listed", { "verbs:GET_CONTEXT" }, query_device, ALL, EPERM, "verb QUERY_DEVICE" },
	{ "the schema's name of a verb", { "verbs:base,IB_USER_VERBS_CMD_ALLOC_PD" }, alloc_pd, ALL, 0, NULL },
	{ "one name for command, extended command and method", { BASE ",CREATE_QP" }, create_rc, ALL, 0, NULL },
	{ "no front gets around a verb", { BASE }, create_rc, ALL, EPERM, "verb CREATE_QP" },
	{ "ends are allowed", { BASE ",CREATE_QP" }, destroy_qp, ALL, 0, NULL },
	{ "posting that is not listed", { BASE ",CREATE_QP" }, post_send, PLAIN, EPERM, "verb POST_SEND" },
	{ "XRC SRQs are SRQs", { BASE ",OPEN_XRCD,CREATE_SRQ" }, create_xsrq, ALL, 0, NULL },
	{ "XRC SRQs are refused with SRQs", { BASE ",OPEN_XRCD" }, create_xsrq, ALL, EPERM, "verb CREATE_SRQ" },
	{ "an object that is not listed",
	  { "objects:PD,CQ" },
	  create_srq,
	  ALL,
	  EPERM,
	  "CREATE_SRQ: EPERM: user 1000 is refused by the allow-list `objects:`: object SRQ" },
	{ "an event file of the client's own",
	  { "objects:PD,CQ" },
	  create_channel,
	  PLAIN,
	  EPERM,
	  "object COMP_CHANNEL" },
	{ "an object that is listed", { "objects:PD,CQ,SRQ" }, create_srq, ALL, 0, NULL },
	{ "a context needs no object", { "objects:none" }, refusals_context, ALL, 0, NULL },
	{ "remote write",
	  { "access:LOCAL_WRITE" },
	  allow_reg_remote_write,
	  ALL,
	  EPERM,
	  "`access:`: access_flags REMOTE_WRITE (of 0x3); to allow it, add `allow = access:REMOTE_WRITE`" },
	{ "remote read",
	  { "access:LOCAL_WRITE,REMOTE_WRITE" },
	  reg_remote_read,
	  ALL,
	  EPERM,
	  "access_flags REMOTE_READ" },
	{ "local write", { "access:none" }, reg_local_write, ALL, EPERM, "access_flags LOCAL_WRITE (of 0x1)" },
	{ "flags that are listed", { "access:LOCAL_WRITE,REMOTE_WRITE" }, allow_reg_remote_write, ALL, 0, NULL },
	{ "relaxed ordering", { "access:LOCAL_WRITE" }, reg_relaxed, ALL, EPERM, "access_flags RELAXED_ORDERING" },
	{ "a flag without a name", { "access:LOCAL_WRITE" }, reg_unnamed_flag, ALL, EPERM, "access_flags 0x20000000" },
	{ "huge pages", { "access:LOCAL_WRITE" }, reg_huge, ALL, EPERM, "access_flags HUGETLB" },
	{ "atomics on device memory",
	  { "access:LOCAL_WRITE,ZERO_BASED" },
	  reg_dm_atomic,
	  METHODS,
	  EPERM,
	  "REG_DM_MR: EPERM: user 1000 is refused by the allow-list `access:`: access_flags REMOTE_ATOMIC" },
	{ "REREG_MR adds a flag",
	  { "access:LOCAL_WRITE" },
	  rereg_adds_remote_write,
	  PLAIN,
	  EPERM,
	  "REREG_MR: EPERM: user 1000 is refused by the allow-list `access:`: access_flags REMOTE_WRITE" },
	{ "a QP's access",
	  { "access:LOCAL_WRITE" },
	  qp_access,
	  ALL,
	  EPERM,
	  "MODIFY_QP: EPERM: user 1000 is refused by the allow-list `access:`: qp_access_flags REMOTE_READ" },
	{ "a QP's access that is listed", { "access:LOCAL_WRITE" }, qp_access_local, ALL, 0, NULL },
	{ "a QP type", { "qp-types:RC,UC" }, create_ud, ALL, EPERM, "`qp-types:`: qp_type UD" },
	{ "a QP type that is listed", { "qp-types:RC,UD" }, create_ud, ALL, 0, NULL },
	{ "OPEN_QP",
	  { "qp-types:RC" },
	  open_xrc_target,
	  PLAIN,
	  EPERM,
	  "OPEN_QP: EPERM: user 1000 is refused by the allow-list `qp-types:`: qp_type XRC_RECV" },
	{ "a P_Key",
	  { "pkeys:0xffff" },
	  pkey_index_1,
	  ALL,
	  EPERM,
	  "`pkeys:`: pkey_index 1 of port 1, P_Key 0x7fff; to allow it, add `allow = pkeys:0x7fff`" },
	{ "a P_Key that is listed", { "pkeys:0xffff" }, pkey_index_0, ALL, 0, NULL },
	{ "a P_Key beyond the table", { "pkeys:0xffff" }, pkey_index_9, ALL, EPERM, "pkey_index 9 of port 1, beyond" },
	{ "a P_Key by another port",
	  { "pkeys:0xffff" },
	  pkey_by_a_new_port,
	  ALL,
	  EPERM,
	  "pkey_index 0 of port 2, P_Key 0x8001" },
	{ "raw packets have any P_Key",
	  { "pkeys:0xffff" },
	  create_raw,
	  ALL,
	  EPERM,
	  "qp_type RAW_PACKET, whose packets can have any P_Key; to allow it, add `allow = pkeys:all`" },
	{ "raw packets have any GID", { "gids:" GID1 }, create_raw, ALL, EPERM, "can have any GID" },
	{ "a path's GID",
	  { "gids:GID0" },
	  path_gid_1,
	  ALL,
	  EPERM,
	  "sgid_index 1 of port 1, GID " GID1 "; to allow it, add `allow = gids:" GID1 "`" },
	{ "a path's GID that is listed", { "gids:GID0" }, path_gid_0, ALL, 0, NULL },
	{ "a GID by another port",
	  { "gids:GID0" },
	  gid_by_a_new_port,
	  ALL,
	  EPERM,
	  "sgid_index 0 of port 2, GID fe80::88" },
	{ "an address handle's GID",
	  { "gids:GID0" },
	  ah_gid_1,
	  PLAIN,
	  EPERM,
	  "CREATE_AH: EPERM: user 1000 is refused by the allow-list `gids:`: sgid_index 1 of port 1, GID " GID1 },
	{ "an address handle's GID on another port",
	  { "gids:GID0" },
	  post_by_an_ah_of_another_port,
	  PLAIN,
	  EPERM,
	  "address handle of port 1 on a QP of port 2" },
	{ "an address handle's GID that is listed", { "gids:GID0" }, ah_gid_0, PLAIN, 0, NULL },
	{ "a user's list in the place of everybody's",
	  { "access:none", "user:1000:access:LOCAL_WRITE" },
	  reg_local_write,
	  ALL,
	  0,
	  NULL },
	{ "a user's list restricts only its kind",
	  { "qp-types:RC", "user:1000:access:none" },
	  create_ud,
	  ALL,
	  EPERM,
	  "`qp-types:`" },
	{ "a user's list that lacks something",
	  { "access:all", "user:1000:access:LOCAL_WRITE" },
	  allow_reg_remote_write,
	  ALL,
	  EPERM,
	  "`user:1000:access:`: access_flags REMOTE_WRITE (of 0x3); to allow it, add"
	  " `allow = user:1000:access:REMOTE_WRITE`" },
	{ "another user's list",
	  { "access:LOCAL_WRITE", "user:1001:access:all" },
	  allow_reg_remote_write,
	  ALL,
	  EPERM,
	  "`access:`" },
	{ "one user is shut out", { "user:1000:none" }, refusals_context, ALL, EPERM, "`user:1000:verbs:`" },
	{ "none, but for one user",
	  { "none", "user:1000:verbs:all", "user:1000:objects:all" },
	  alloc_pd,
	  ALL,
	  0,
	  NULL },
};

const unsigned int num_allow_cases = UVD_COUNT(allow_cases);
