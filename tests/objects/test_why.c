/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the log says of refused calls: the verb, the object, the attribute and the rule, and the remedy. */
#include <linux/capability.h>
#include <sys/syscall.h>
#include "why_qps.h"

/* ---- the calls --------------------------------------------------------------------------------------------------- */

CALL(skip_rtr, MODIFY_IN(IBV_QPS_INIT, to_rts()))
CALL(skip_two, MODIFY_IN(IBV_QPS_RESET, to_rts()))
static int skip_three(void)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_SQD };

	return MODIFY_IN(IBV_QPS_RESET, cmd);
}

CALL(back_to_rtr, MODIFY_IN(IBV_QPS_RTS, to_rtr()))
static int to_sqe(void)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_SQE };

	return MODIFY_IN(IBV_QPS_RTS, cmd);
}

CALL(lack_one, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->attr_mask &= ~IBV_QP_MIN_RNR_TIMER))
CALL(lack_two, MODIFY_IN(IBV_QPS_RESET, to_init(), c->attr_mask &= ~(IBV_QP_PKEY_INDEX | IBV_QP_PORT)))
CALL(one_too_much, MODIFY_IN(IBV_QPS_RESET, to_init(), c->attr_mask |= IBV_QP_QKEY))
CALL(cur_state_too_early,
     MODIFY_IN(IBV_QPS_RESET, to_init(), c->attr_mask |= IBV_QP_CUR_STATE, c->cur_qp_state = IBV_QPS_RESET))
CALL(cur_state_is_another,
     MODIFY_IN(IBV_QPS_RTS, to_rts(), c->attr_mask |= IBV_QP_CUR_STATE, c->cur_qp_state = IBV_QPS_SQD))
CALL(large_pkey, MODIFY_IN(IBV_QPS_RESET, to_init(), c->pkey_index = 99))
CALL(large_port, MODIFY_IN(IBV_QPS_RESET, to_init(), c->port_num = 9))
CALL(large_state, MODIFY_IN(IBV_QPS_RESET, to_init(), c->qp_state = 7))
CALL(large_timer, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->min_rnr_timer = 32))
CALL(large_mtu, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->path_mtu = 6))
CALL(large_qpn, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->dest_qp_num = 1 << 24))
CALL(large_dlid, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->dest.dlid = 0xc001))
CALL(many_reads, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->max_dest_rd_atomic = 255))
CALL(large_retry, MODIFY_IN(IBV_QPS_RTR, to_rts(), c->retry_cnt = 8))
CALL(large_rnr_retry, MODIFY_IN(IBV_QPS_RTR, to_rts(), c->rnr_retry = 8))
CALL(migrate, MODIFY_IN(IBV_QPS_RTR, to_rts(), c->attr_mask |= IBV_QP_PATH_MIG_STATE, c->path_mig_state = 1))
#define ALT(...) \
	MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->attr_mask |= IBV_QP_ALT_PATH, c->alt_port_num = c->alt_dest.port_num = 1, \
		  __VA_ARGS__)
CALL(alt_of_no_port, ALT(c->alt_port_num = 9))
CALL(alt_av_of_no_port, ALT(c->alt_dest.port_num = 9))
CALL(alt_no_gid, ALT(c->alt_dest.is_global = 1, c->alt_dest.sgid_index = 200))
CALL(alt_large_dlid, ALT(c->alt_dest.dlid = 0xc001))
CALL(no_gid, MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->dest.is_global = 1, c->dest.sgid_index = 200))
static void without_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};

	ck_assert_int_eq(syscall(SYS_capset, &header, none), 0);
}

static int privileged_qkey(void)
{
	struct ib_uverbs_modify_qp cmd = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x80010000,
	};

	make_qp_of(IBV_QPT_UD);
	without_capabilities();
	return modify(cmd);
}

static int rate_limit(void)
{
	struct ib_uverbs_ex_modify_qp cmd = { .base = { .attr_mask = IBV_QP_STATE | IBV_QP_RATE_LIMIT,
							.qp_state = IBV_QPS_RTS } };
	struct ib_uverbs_ex_modify_qp_resp resp;

	make_qp_of(IBV_QPT_RC);
	cmd.base.qp_handle = qp.handle;
	return WRITE_EX(&h, MODIFY_QP, &cmd, &resp);
}

static int create_qp(struct uv_qp_attr attr)
{
	return uv_create_qp(h.fd, UV_WRITE, &attr, &qp);
}

#define CREATE_WITH(field, value) \
	({ \
		struct uv_qp_attr _attr = uv_qp_attr(pd, cq); \
		_attr.field = value; \
		create_qp(_attr); \
	})

CALL(many_sends, CREATE_WITH(cap.max_send_wr, 1 << 20))
CALL(many_recvs, CREATE_WITH(cap.max_recv_wr, 1 << 20))
CALL(many_send_sges, CREATE_WITH(cap.max_send_sge, 1000))
CALL(many_recv_sges, CREATE_WITH(cap.max_recv_sge, 1000))
CALL(large_inline, CREATE_WITH(cap.max_inline_data, 1 << 20))
static int raw_without_right(void)
{
	without_capabilities();
	return CREATE_WITH(type, IBV_QPT_RAW_PACKET);
}

static int create_with_flags(uint32_t flags)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	attr.create_flags = flags;
	return uv_create_qp(h.fd, UV_WRITE_EX, &attr, &qp);
}

CALL(loopback_flag, create_with_flags(IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK))
static int source_qpn_without_right(void)
{
	without_capabilities();
	return create_with_flags(1 << 10);
}

CALL(driver_qp, CREATE_WITH(type, IBV_QPT_DRIVER))
static int one_qp_too_many(void)
{
	h.dev->ib.config.limits.max_qp = 1;
	make_qp_of(IBV_QPT_RC);
	return CREATE_WITH(type, IBV_QPT_RC);
}

static int one_cq_too_many(void)
{
	h.dev->ib.config.limits.max_cq = 1;
	return uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL);
}

/* By ioctl, of this type, without this attribute. */
static int create_without(uint8_t type, uint16_t id)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);
	struct ib_uverbs_attr *gone, *last;
	struct uv_tree tree;

	attr.type = type;
	uv_tree_create_qp(&tree, &attr, &qp);
	gone = uv_attr_find(&tree, id);
	last = &tree.hdr.attrs[tree.hdr.num_attrs - 1];
	memmove(gone, gone + 1, (last - gone) * sizeof(*gone));
	tree.hdr.num_attrs--;
	return uv_ioctl(h.fd, &tree);
}

CALL(no_cap, create_without(IBV_QPT_RC, UVERBS_ATTR_CREATE_QP_CAP))
CALL(no_user_handle, create_without(IBV_QPT_RC, UVERBS_ATTR_CREATE_QP_USER_HANDLE))
CALL(no_send_cq, create_without(IBV_QPT_RC, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE))
CALL(no_recv_cq, create_without(IBV_QPT_RC, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE))
CALL(no_pd, create_without(IBV_QPT_RC, UVERBS_ATTR_CREATE_QP_PD_HANDLE))
CALL(target_with_recv_cq, create_without(IBV_QPT_XRC_RECV, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE))
CALL(target_with_send_cq, create_without(IBV_QPT_XRC_RECV, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE))
static int no_queues(void)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	attr.cap = (struct ib_uverbs_qp_cap){};
	return create_qp(attr);
}

static int many_cqes(void)
{
	struct uv_cq_attr attr = uv_cq_default;

	attr.cqe = 1 << 30;
	return uv_create_cq(h.fd, UV_WRITE, &attr, &cq, NULL);
}

static int no_vector(void)
{
	struct uv_cq_attr attr = uv_cq_default;

	attr.comp_vector = 1000;
	return uv_create_cq(h.fd, UV_WRITE, &attr, &cq, NULL);
}

static char memory[4096] __attribute__((aligned(4096)));

static int reg(void *addr, uint64_t length, uint32_t access)
{
	struct uv_mr mr;

	return uv_reg_mr(h.fd, UV_WRITE, pd, addr, length, access, &mr);
}

CALL(reg_without_local_write, reg(memory, sizeof(memory), IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ))
CALL(reg_unknown_flag, reg(memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | 1 << 19))
CALL(reg_nothing, reg((void *)0x10000, 4096, IBV_ACCESS_LOCAL_WRITE))
CALL(reg_too_long, reg((void *)-4096ul, 8192, 0))
static int query_nothing(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata)
{
	return 0;
}

static int reg_on_demand(void)
{
	h.ops.query_device = query_nothing;
	return reg(memory, sizeof(memory), IBV_ACCESS_ON_DEMAND);
}

static int ah_without_gid(void)
{
	struct ib_uverbs_ah_attr attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 200 };
	uint32_t ah;

	return uv_create_ah(h.fd, UV_WRITE, pd, &attr, &ah);
}

static int ah_of_no_port(void)
{
	struct ib_uverbs_ah_attr attr = { .port_num = 3 };
	uint32_t ah;

	return uv_create_ah(h.fd, UV_WRITE, pd, &attr, &ah);
}

static int busy_pd(void)
{
	make_qp_of(IBV_QPT_RC);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reg(memory, sizeof(memory), 0), 0);
	return uv_dealloc_pd(h.fd, UV_WRITE, pd);
}

static int busy_pd_by_ioctl(void)
{
	uint32_t other, first = pd;

	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &other), 0);
	pd = other;
	ck_assert_int_eq(reg(memory, sizeof(memory), 0), 0);
	pd = first;
	make_qp_of(IBV_QPT_RC);
	return uv_dealloc_pd(h.fd, UV_METHOD, pd);
}

CALL(no_handle, uv_dealloc_pd(h.fd, UV_WRITE, 4711))
/* ---- their lines ------------------------------------------------------------------------------------------------- */

static const struct why_case cases[] = {
	{ skip_rtr, EINVAL,
	  "MODIFY_QP: EINVAL: QP 0x%x: there is no transition from INIT to RTS; move the QP to RTR first" },
	{ skip_two, EINVAL,
	  "MODIFY_QP: EINVAL: QP 0x%x: there is no transition from RESET to RTS; move the QP to INIT and RTR first" },
	{ skip_three, EINVAL, "there is no transition from RESET to SQD; move the QP to INIT, RTR and RTS first" },
	{ back_to_rtr, EINVAL, "there is no transition from RTS to RTR; move the QP to RESET and INIT first" },
	{ to_sqe, EINVAL, "no call moves a QP to SQE; only a send that fails does, of UC and UD QPs" },
	{ lack_one, EINVAL,
	  "QP 0x%x: INIT to RTR lacks MIN_RNR_TIMER; set these attributes, and their bits in attr_mask" },
	{ lack_two, EINVAL, "RESET to INIT lacks PKEY_INDEX, PORT; " },
	{ one_too_much, EINVAL, "RESET to INIT does not allow QKEY; leave these bits out of attr_mask" },
	{ cur_state_too_early, EINVAL, "RESET to INIT does not allow CUR_STATE; " },
	{ cur_state_is_another, EINVAL,
	  "cur_qp_state says SQD, and the QP is in RTS; leave IBV_QP_CUR_STATE out of attr_mask, or set cur_qp_state to "
	  "the QP's state" },
	{ large_pkey, EINVAL, "QP 0x%x: pkey_index 99 is not within 0 to 1; use a value within that range" },
	{ large_port, EINVAL, "QP 0x%x: port_num 9 is not within 1 to 1; " },
	{ large_state, EINVAL, "QP 0x%x: qp_state 7 is not within 0 to 6; " },
	{ large_timer, EINVAL, "min_rnr_timer 32 is not within 0 to 31; " },
	{ large_mtu, EINVAL, "path_mtu (enum ibv_mtu) 6 is not within 1 to 5; " },
	{ large_qpn, EINVAL, "dest_qp_num 16777216 is not within 0 to 16777215; " },
	{ large_dlid, EINVAL, "ah_attr.dlid 49153 is not within 0 to 49151; " },
	{ many_reads, EINVAL, "max_dest_rd_atomic 255 is not within 0 to 16; " },
	{ large_retry, EINVAL, "retry_cnt 8 is not within 0 to 7; " },
	{ large_rnr_retry, EINVAL, "rnr_retry 8 is not within 0 to 7; " },
	{ migrate, EINVAL, "path_mig_state can only become MIGRATED, by a change to RTS or SQD; leave " },
	{ no_gid, EINVAL,
	  "QP 0x%x: ah_attr: port 1 has no GID with the index 200; set grh.sgid_index to one that ibv_query_gid_table() lists" },
	{ alt_of_no_port, EINVAL, "QP 0x%x: alt_port_num 9 is not within 1 to 1; " },
	{ alt_av_of_no_port, EINVAL, "QP 0x%x: alt_ah_attr.port_num 9 is not within 1 to 1; " },
	{ alt_no_gid, EINVAL, "QP 0x%x: alt_ah_attr: port 1 has no GID with the index 200; " },
	{ alt_large_dlid, EINVAL, "QP 0x%x: alt_ah_attr.dlid 49153 is not within 0 to 49151; " },
	{ rate_limit, EOPNOTSUPP, "MODIFY_QP: attr_mask 0x2000000: the device does not support this: EOPNOTSUPP" },
	{ raw_without_right, EPERM, "CREATE_QP: EPERM: qp_type 0x8 requires the capability CAP_NET_RAW; give the " },
	{ source_qpn_without_right, EPERM,
	  "CREATE_QP: EPERM: create_flags 0x400 requires the capability CAP_NET_RAW; " },
	{ loopback_flag, EOPNOTSUPP, "CREATE_QP: create_flags 0x2: the device does not support this: EOPNOTSUPP" },
	{ driver_qp, EOPNOTSUPP, "CREATE_QP: qp_type 0xff: the device does not support this: EOPNOTSUPP" },
	{ one_qp_too_many, ENOMEM,
	  "CREATE_QP: ENOMEM: the device has 1 QPs, and can have no more; destroy those that " },
	{ one_cq_too_many, ENOMEM, "CREATE_CQ: ENOMEM: the device has 1 CQs, and can have no more; " },
	{ no_cap, EINVAL, "QP_CREATE: EINVAL: UVERBS_ATTR_CREATE_QP_CAP is missing; pass this attribute: the call " },
	{ no_user_handle, EINVAL, "QP_CREATE: EINVAL: UVERBS_ATTR_CREATE_QP_USER_HANDLE is missing; " },
	{ no_send_cq, ENOENT, "QP_CREATE: ENOENT: UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE is missing; " },
	{ no_recv_cq, ENOENT, "QP_CREATE: ENOENT: UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE is missing; " },
	{ no_pd, ENOENT, "QP_CREATE: ENOENT: UVERBS_ATTR_CREATE_QP_PD_HANDLE is missing; " },
	{ target_with_recv_cq, EINVAL,
	  "a QP of type XRC_RECV has no UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE; leave this " },
	{ target_with_send_cq, EINVAL, "a QP of type XRC_RECV has no UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE; " },
	{ privileged_qkey, EPERM,
	  "QP 0x%x: the highest bit of Q_Key 0x80010000 is set; use another Q_Key, or give the process the capability "
	  "CAP_NET_RAW" },
	{ many_sends, EINVAL, "CREATE_QP: EINVAL: cap.max_send_wr 1048576 is not within 0 to 16384; " },
	{ many_recvs, EINVAL, "CREATE_QP: EINVAL: cap.max_recv_wr 1048576 is not within 0 to 16384; " },
	{ many_send_sges, EINVAL, "cap.max_send_sge 1000 is not within 0 to 32; " },
	{ many_recv_sges, EINVAL, "cap.max_recv_sge 1000 is not within 0 to 32; " },
	{ large_inline, EINVAL, "cap.max_inline_data 1048576 is not within 0 to 512; " },
	{ no_queues, EINVAL, "all numbers of cap are 0; ask for one send or receive at least" },
	{ many_cqes, EINVAL, "CREATE_CQ: EINVAL: cqe 1073741824 is not within 1 to 1048575; " },
	{ no_vector, EINVAL, "CREATE_CQ: EINVAL: comp_vector 1000 is not within 0 to 3; " },
	{ reg_without_local_write, EINVAL,
	  "REG_MR: EINVAL: REMOTE_WRITE without LOCAL_WRITE; add IBV_ACCESS_LOCAL_WRITE: what the peer may write must be "
	  "writable here" },
	{ reg_unknown_flag, EINVAL, "there are no such access flags: 0x80000; use flags of enum ibv_access_flags" },
	{ reg_on_demand, EINVAL, "the device has no on-demand paging; leave IBV_ACCESS_ON_DEMAND out, see " },
	{ reg_nothing, EFAULT,
	  "4096 bytes at 0x10000 are not all mapped, and writable; map the memory before it is registered" },
	{ reg_too_long, EINVAL, "a region of 8192 bytes at 0xfffffffffffff000 is empty, too long, or exceeds the " },
	{ ah_without_gid, EINVAL, "CREATE_AH: EINVAL: attr: port 1 has no GID with the index 200; " },
	{ ah_of_no_port, EINVAL, "CREATE_AH: EINVAL: port_num 3 is not within 1 to 1; " },
	{ busy_pd, EBUSY, "DEALLOC_PD: UVERBS_OBJECT_PD (0, 0x0) is still used by 1 QP and 2 MRs: EBUSY" },
	{ busy_pd_by_ioctl, EBUSY, "PD_DESTROY: UVERBS_ATTR_DESTROY_PD_HANDLE (0, 0x0) is still used by 1 QP: EBUSY" },
	{ no_handle, ENOENT, "DEALLOC_PD: ENOENT: UVERBS_OBJECT_PD is wrong (4711, 0x1267)" },
};

START_TEST(test_a_refused_call_names_the_attribute_the_rule_and_the_remedy)
{
	why_check(&cases[_i], &qp.qpn);
}
END_TEST

/* ---- the ends of a range -------------------------------------------------------------------------------------- */

START_TEST(test_the_last_values_of_a_range_are_taken)
{
	struct uv_cq_attr attr = uv_cq_default;

	attr.comp_vector = h.dev->config.num_comp_vectors - 1;
	attr.cqe = h.dev->config.limits.max_cqe;
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &attr, &cq, NULL), 0);
	attr.comp_vector++;
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &attr, &cq, NULL), -EINVAL);
	attr.comp_vector--;
	attr.cqe++;
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &attr, &cq, NULL), -EINVAL);
	attr.cqe = 0;
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &attr, &cq, NULL), -EINVAL);
}
END_TEST

/* They are those of the SRQ. */
START_TEST(test_numbers_of_receives_of_a_qp_with_an_srq_are_not_looked_at)
{
	const struct uv_srq_attr srq_attr = { .pd = pd, .max_wr = 4, .max_sge = 1 };
	struct ib_uverbs_create_qp cmd = { .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 1,
					   .max_recv_wr = 1 << 20,
					   .max_recv_sge = 1000,
					   .is_srq = 1,
					   .qp_type = IBV_QPT_RC };
	struct ib_uverbs_create_qp_resp resp;
	struct uv_srq srq;

	ck_assert_int_eq(uv_create_srq(h.fd, UV_WRITE, &srq_attr, &srq), 0);
	cmd.srq_handle = srq.handle;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), 0);
}
END_TEST

/* ---- what is not the device's own word -------------------------------------------------------------------------- */

static int create_cq_enomem(struct uvd_cq *made, struct uvd_udata *udata)
{
	return -ENOMEM;
}

/* The errno says that it is not the number, although that is too large. */
START_TEST(test_another_errno_has_another_reason)
{
	h.ops.create_cq = create_cq_enomem;
	ck_assert_int_eq(many_cqes(), -ENOMEM);
	ck_assert_msg(strstr(said(), "CREATE_CQ: the device refuses this: ENOMEM") && !strstr(said(), "warning"), "%s",
		      said());
}
END_TEST

/* A client that fails in a loop fills no log, and pays for the lines that are written. */
START_TEST(test_a_loop_of_refused_calls_is_told_ten_times_and_counted)
{
	unsigned int lines = 0;

	for (int i = 0; i < 25; i++)
		ck_assert_int_eq(many_cqes(), -EINVAL);
	uvd_log_free(h.engine.log);
	h.engine.log = NULL;
	for (const char *p = said(); (p = strstr(p, "CREATE_CQ: EINVAL: cqe ")); p++)
		lines++;
	ck_assert_uint_eq(lines, 10);
	ck_assert_msg(strstr(said(), "\ntest: warning: 15 similar messages left out: range\n"), "%s", said());
}
END_TEST

START_TEST(test_explanations_count_for_the_user_whom_they_are_for)
{
	static const struct uvd_reason made_up = { "made-up", "made up", NULL, "" };
	const struct uvd_explained e = { .kind = UVD_EXPLAINED_EVENT, .why = { &made_up } };
	const uid_t user = uvd_account_person(h.file->account);

	ck_assert_uint_ne(user, UVD_LOG_NO_USER);
	for (int i = 0; i < 10; i++)
		uvd_explain(&h.dev->ib, atomic_load(&h.file->context), &e);
	ck_assert(!uvd_log_passes(h.engine.log, user, UVD_WARN, "made-up"));
	ck_assert(uvd_log_passes(h.engine.log, UVD_LOG_NO_USER, UVD_WARN, "made-up"));
}
END_TEST

START_TEST(test_explanations_without_a_reason_are_limited_by_verb)
{
	struct uvd_explained e = { .kind = UVD_EXPLAINED_CALL, .verb = "ONE", .err = -EINVAL };

	for (int i = 0; i < 12; i++)
		uvd_explain(&h.dev->ib, NULL, &e);
	e.verb = "OTHER";
	uvd_explain(&h.dev->ib, NULL, &e);
	uvd_log_free(h.engine.log);
	h.engine.log = NULL;
	ck_assert_msg(strstr(said(), "OTHER: EINVAL, pid 0\n") && strstr(said(), "2 similar messages left out: ONE\n"),
		      "%s", said());
}
END_TEST

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static void two_ethernet_ports(void)
{
	harness_init(&h, "soft");
	h.config.num_ports = 2;
	h.config.ports[1] = h.config.ports[0];
	for (int i = 0; i < 2; i++)
		h.config.ports[i].link_layer = IBV_LINK_LAYER_ETHERNET;
	harness_start(&h, &uvd_mem_process);
	log_begin();
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

START_TEST(test_an_ethernet_port_requires_a_grh)
{
	ck_assert_int_eq(MODIFY_IN(IBV_QPS_INIT, to_rtr()), -EINVAL);
	ck_assert_msg(strstr(said(),
			     "ah_attr has no GRH (is_global is 0), and port 1 requires one; set is_global, grh.dgid "
			     "and grh.sgid_index, pid"),
		      "%s", said());
}
END_TEST

START_TEST(test_the_port_of_an_address_is_the_qps)
{
	ck_assert_int_eq(MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->dest.port_num = 2), -EINVAL);
	ck_assert_msg(strstr(said(),
			     "ah_attr.port_num 2 is not the QP's port, 1; use the port that the QP was given in INIT"),
		      "%s", said());
}
END_TEST

START_TEST(test_ethernet_ports_migrate_no_paths)
{
	ck_assert_int_eq(MODIFY_IN(IBV_QPS_INIT, to_rtr(), c->attr_mask |= IBV_QP_ALT_PATH, c->alt_port_num = 1,
				   c->alt_dest.port_num = 1, c->alt_dest.is_global = 1, c->dest.is_global = 1),
			 -EINVAL);
	ck_assert_msg(strstr(said(), "alt_port_num 1 is no InfiniBand port, and others migrate no paths; leave "), "%s",
		      said());
}
END_TEST

int main(void)
{
	Suite *s = suite_create("why");
	TCase *tc = tcase_create("calls"), *ports = tcase_create("ports");

	tcase_add_checked_fixture(tc, why_setup, why_teardown);
	tcase_add_loop_test(tc, test_a_refused_call_names_the_attribute_the_rule_and_the_remedy, 0, UVD_COUNT(cases));
	tcase_add_test(tc, test_the_last_values_of_a_range_are_taken);
	tcase_add_test(tc, test_numbers_of_receives_of_a_qp_with_an_srq_are_not_looked_at);
	tcase_add_test(tc, test_another_errno_has_another_reason);
	tcase_add_test(tc, test_a_loop_of_refused_calls_is_told_ten_times_and_counted);
	tcase_add_test(tc, test_explanations_count_for_the_user_whom_they_are_for);
	tcase_add_test(tc, test_explanations_without_a_reason_are_limited_by_verb);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(ports, two_ethernet_ports, why_teardown);
	tcase_add_test(ports, test_an_ethernet_port_requires_a_grh);
	tcase_add_test(ports, test_the_port_of_an_address_is_the_qps);
	tcase_add_test(ports, test_ethernet_ports_migrate_no_paths);
	suite_add_tcase(s, ports);
	return run_cases(s);
}
