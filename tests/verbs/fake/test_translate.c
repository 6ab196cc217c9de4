/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What of the verbs backend needs no adapter: the translation of attributes and requests, the records and their tags, and
 * the buffers, whose registration with the adapter is counted here.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/backends.h"
#include "backends/verbs/verbs.h"
#include "tests/suite.h"

static struct uvd_ibdev ibdev = { .config.memory = UVD_MEMORY_BOUNCE };
static struct hca_device device = { .ibdev = &ibdev, .driver_id = -1 };
static struct hca_context context;
static struct hca_pd pd;
static unsigned int registrations;
static uint32_t next_lkey;
static bool adapter_refuses;

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *to, void *addr, size_t length, int access);
int __wrap_ibv_dereg_mr(struct ibv_mr *mr);

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *to, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = adapter_refuses ? NULL : calloc(1, sizeof(*mr));

	ck_assert_int_eq(access, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		return NULL;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = ++next_lkey;
	registrations++;
	return mr;
}

int __wrap_ibv_dereg_mr(struct ibv_mr *mr)
{
	registrations--;
	free(mr);
	return 0;
}

static void setup(void)
{
	memset(&context, 0, sizeof(context));
	ibdev.priv = &device;
	context.context.dev = &ibdev;
	INIT_LIST_HEAD(&context.free_records);
	pd = (struct hca_pd){ .pd.context = &context.context, .pool = hca_pool_new(NULL) };
	ck_assert_ptr_nonnull(pd.pool);
	registrations = next_lkey = 0;
	adapter_refuses = false;
}

static void teardown(void)
{
	hca_pool_deregister(pd.pool);
	hca_pool_put(pd.pool);
	hca_records_end(&context);
	ck_assert_uint_eq(registrations, 0);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

START_TEST(test_only_what_is_forwarded_is_announced)
{
	struct ibv_device_attr_ex attr;

	memset(&attr, 0xff, sizeof(attr));
	attr.orig_attr.max_qp = 17;
	attr.orig_attr.max_srq = 18;
	hca_mask_device(&attr, false, 0);
	ck_assert_int_eq(attr.orig_attr.max_qp, 17);
	ck_assert_int_eq(attr.orig_attr.max_srq, 18);
	ck_assert_int_eq(attr.orig_attr.max_mw, 0);
	ck_assert_int_eq(attr.orig_attr.atomic_cap, IBV_ATOMIC_NONE);
	ck_assert_uint_eq(attr.orig_attr.device_cap_flags &
				  (IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				   IBV_DEVICE_MANAGED_FLOW_STEERING),
			  0);
	ck_assert(attr.orig_attr.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN);
	ck_assert_uint_eq(attr.device_cap_flags_ex, attr.orig_attr.device_cap_flags | IBV_DEVICE_PCI_WRITE_END_PADDING);
	ck_assert_uint_eq(attr.odp_caps.general_caps, 0);
	ck_assert_uint_eq(attr.max_dm_size, 0);
	ck_assert_uint_eq(attr.tm_caps.max_num_tags, 0);
	ck_assert_uint_eq(attr.rss_caps.supported_qpts, 0);
	ck_assert_uint_eq(attr.max_wq_type_rq, 0);
	ck_assert_uint_eq(attr.raw_packet_caps, 0);
	ck_assert_uint_eq(attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM, 0);
	ck_assert(hca_has_qp(&attr.orig_attr) && hca_has_srq(&attr.orig_attr) && !hca_has_remote(&attr.orig_attr));
}
END_TEST

/* A device whose adapter has XRC says so, and one whose adapter has none does not. */
START_TEST(test_device_shows_a_feature_only_if_it_forwards_it)
{
	struct ibv_device_attr_ex attr = { .orig_attr.device_cap_flags = ~0U };

	attr.device_cap_flags_ex = ~UINT64_C(0);
	attr.max_dm_size = 4096;
	attr.orig_attr.max_raw_ethy_qp = 7;
	attr.raw_packet_caps = ~0U;
	attr.max_wq_type_rq = 8;
	attr.rss_caps = (struct ibv_rss_caps){ .supported_qpts = ~0U,
					       .max_rwq_indirection_tables = 9,
					       .max_rwq_indirection_table_size = 10,
					       .rx_hash_fields_mask = ~0U,
					       .rx_hash_function = 1 };
	hca_mask_device(&attr, false, HCA_XRC | HCA_DM | HCA_FLOW | HCA_RAW | HCA_RSS);
	ck_assert(attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC);
	ck_assert(attr.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
	ck_assert_int_eq(attr.orig_attr.max_raw_ethy_qp, 7);
	ck_assert_uint_eq(attr.max_dm_size, 4096);
	ck_assert(attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM);
	ck_assert_uint_eq(attr.raw_packet_caps, IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS |
							IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_DELAY_DROP);
	ck_assert_uint_eq(attr.max_wq_type_rq, 8);
	ck_assert_uint_eq(attr.rss_caps.max_rwq_indirection_tables, 9);
	ck_assert_uint_eq(attr.rss_caps.max_rwq_indirection_table_size, 10);
	ck_assert_uint_eq(attr.rss_caps.supported_qpts, 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
								1 << IBV_QPT_RAW_PACKET | 1 << IBV_QPT_XRC_SEND |
								1 << IBV_QPT_XRC_RECV);
	ck_assert_uint_eq(attr.device_cap_flags_ex, attr.orig_attr.device_cap_flags | IBV_DEVICE_PCI_WRITE_END_PADDING |
							    IBV_DEVICE_RAW_SCATTER_FCS);
}
END_TEST

static const struct {
	enum ibv_qp_type type;
	uint32_t flags;
	int err;
} qps[] = {
	{ IBV_QPT_RC, 0, 0 },
	{ IBV_QPT_UC, 0, 0 },
	{ IBV_QPT_UD, 0, 0 },
	{ IBV_QPT_RAW_PACKET, 0, -EOPNOTSUPP },
	{ IBV_QPT_XRC_SEND, 0, -EOPNOTSUPP },
	{ IBV_QPT_XRC_RECV, 0, -EOPNOTSUPP },
	{ IBV_QPT_DRIVER, 0, -EOPNOTSUPP },
	{ IBV_QPT_UD, 1 << 2 /* CROSS_CHANNEL */, -EOPNOTSUPP },
	{ IBV_QPT_UD, 1 << 12, -EOPNOTSUPP },
};

START_TEST(test_qp_request_has_the_adapters_objects)
{
	struct hca_cq send_cq = { .adapter = (void *)0x10 }, recv_cq = { .adapter = (void *)0x20 };
	struct hca_srq srq = { .adapter = (void *)0x30 };
	struct hca_pd of_qp = { .adapter = (void *)0x40 };
	struct hca_qp qp = { .qp.pd = &of_qp.pd };
	struct uvd_qp_init_attr init = {
		.send_cq = &send_cq.cq,
		.recv_cq = &recv_cq.cq,
		.srq = &srq.srq,
		.cap = { 1, 2, 3, 4, 5 },
		.qp_type = qps[_i].type,
		.sq_sig_all = true,
		.create_flags = qps[_i].flags,
	};
	struct ibv_qp_init_attr_ex request = {};

	ck_assert_int_eq(hca_qp_request(&qp, &init, 0, NULL, &request), qps[_i].err);
	if (qps[_i].err)
		return;
	ck_assert_ptr_eq(request.qp_context, &qp.qp);
	ck_assert_ptr_eq(request.send_cq, send_cq.adapter);
	ck_assert_ptr_eq(request.recv_cq, recv_cq.adapter);
	ck_assert_ptr_eq(request.srq, srq.adapter);
	ck_assert_int_eq(memcmp(&request.cap, &init.cap, sizeof(init.cap)), 0);
	ck_assert_int_eq(request.qp_type, qps[_i].type);
	ck_assert_int_eq(request.sq_sig_all, 1);
	ck_assert_uint_eq(request.comp_mask, IBV_QP_INIT_ATTR_PD);
	ck_assert_ptr_eq(request.pd, of_qp.adapter);
}
END_TEST

START_TEST(test_request_for_an_xrc_qp_has_only_what_the_qp_has)
{
	struct hca_cq send_cq = { .adapter = (void *)0x10 };
	struct hca_xrcd xrcd = { .adapter = (void *)0x50 };
	struct hca_qp qp = { .qp.pd = &pd.pd };
	struct uvd_qp_init_attr init = { .send_cq = &send_cq.cq,
					 .cap = { 1, 2, 3, 4, 5 },
					 .qp_type = IBV_QPT_XRC_SEND };
	struct ibv_qp_init_attr_ex request = {};

	ck_assert_int_eq(hca_qp_request(&qp, &init, HCA_XRC, NULL, &request), 0);
	ck_assert_ptr_eq(request.send_cq, send_cq.adapter);
	ck_assert_uint_eq(request.comp_mask, IBV_QP_INIT_ATTR_PD);
	ck_assert_int_eq(memcmp(&request.cap, &(struct ibv_qp_cap){ 1, 0, 3, 0, 5 }, sizeof(request.cap)), 0);

	qp = (struct hca_qp){ .qp.xrcd = &xrcd.xrcd };
	init = (struct uvd_qp_init_attr){ .cap = { 1, 2, 3, 4, 5 }, .qp_type = IBV_QPT_XRC_RECV };
	ck_assert_int_eq(hca_qp_request(&qp, &init, HCA_XRC, NULL, &request), 0);
	ck_assert_uint_eq(request.comp_mask, IBV_QP_INIT_ATTR_XRCD);
	ck_assert_ptr_eq(request.xrcd, xrcd.adapter);
	ck_assert_ptr_null(request.pd);
	ck_assert_int_eq(memcmp(&request.cap, &(struct ibv_qp_cap){}, sizeof(request.cap)), 0);
}
END_TEST

START_TEST(test_send_request_keeps_every_field_of_its_opcode)
{
	struct hca_ah ah = { .adapter = (void *)0x40 };
	struct uvd_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 7, .ah = &ah.ah, .remote_qpn = 8, .remote_qkey = 9
	};
	struct ibv_send_wr out;

	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE | IBV_SEND_INLINE | IBV_SEND_IP_CSUM;
	ck_assert_int_eq(hca_send_request(&wr, &out), 0);
	ck_assert_uint_eq(out.send_flags, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE | IBV_SEND_IP_CSUM);
	ck_assert_uint_eq(out.imm_data, 7);
	ck_assert_ptr_eq(out.wr.ud.ah, ah.adapter);
	ck_assert_uint_eq(out.wr.ud.remote_qpn, 8);
	ck_assert_uint_eq(out.wr.ud.remote_qkey, 9);

	wr = (struct uvd_send_wr){ .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = 1, .remote_addr = 2, .rkey = 3 };
	wr.remote_srqn = 4;
	ck_assert_int_eq(hca_send_request(&wr, &out), 0);
	ck_assert_uint_eq(out.qp_type.xrc.remote_srqn, 4);
	ck_assert_uint_eq(out.imm_data, 1);
	ck_assert_uint_eq(out.wr.rdma.remote_addr, 2);
	ck_assert_uint_eq(out.wr.rdma.rkey, 3);

	wr = (struct uvd_send_wr){
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .remote_addr = 2, .rkey = 3, .compare_add = 4, .swap = 5
	};
	ck_assert_int_eq(hca_send_request(&wr, &out), 0);
	ck_assert_uint_eq(out.wr.atomic.remote_addr, 2);
	ck_assert_uint_eq(out.wr.atomic.rkey, 3);
	ck_assert_uint_eq(out.wr.atomic.compare_add, 4);
	ck_assert_uint_eq(out.wr.atomic.swap, 5);

	wr = (struct uvd_send_wr){ .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 6 };
	ck_assert_int_eq(hca_send_request(&wr, &out), 0);
	ck_assert_uint_eq(out.invalidate_rkey, 6);

	wr = (struct uvd_send_wr){ .opcode = IBV_WR_BIND_MW };
	ck_assert_int_eq(hca_send_request(&wr, &out), -EINVAL);
}
END_TEST

/* ---- records ----------------------------------------------------------------------------------------------------- */

static struct hca_record *posted(struct hca_queue *queue, uint32_t length)
{
	struct ibv_sge sge = { .length = length };
	struct hca_record *r = hca_record_new(&context, &pd, &sge, 1, length);

	ck_assert_ptr_nonnull(r);
	hca_record_enqueue(queue, r);
	return r;
}

START_TEST(test_tags_of_live_records_differ_and_a_stale_tag_finds_nothing)
{
	enum { LIVE = 3 * HCA_CHUNK_RECORDS, ROUNDS = 5 };
	static uint64_t tags[LIVE], stale[LIVE];
	struct hca_queue queue;

	hca_queue_init(&queue, LIVE);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < LIVE; i++)
			tags[i] = hca_record_tag(posted(&queue, 0));
		for (int i = 0; i < LIVE; i++) {
			ck_assert_uint_eq(hca_record_tag(hca_record_find(&context, tags[i])), tags[i]);
			if (round)
				ck_assert_ptr_null(hca_record_find(&context, stale[i]));
			for (int j = 0; j < i; j++)
				ck_assert_uint_ne(tags[i], tags[j]);
		}
		memcpy(stale, tags, sizeof(stale));
		hca_queue_drop(&context, &queue);
		ck_assert_uint_eq(queue.num, 0);
		ck_assert_ptr_null(hca_record_find(&context, tags[0]));
	}
	ck_assert_ptr_null(hca_record_find(&context, UINT64_MAX));
}
END_TEST

START_TEST(test_tag_stays_unique_when_its_counter_wraps)
{
	struct hca_queue queue;
	struct hca_record *r;
	uint64_t tag;

	hca_queue_init(&queue, 1);
	r = posted(&queue, 0);
	r->uses = UINT32_MAX;
	tag = hca_record_tag(r);
	ck_assert_ptr_eq(hca_record_find(&context, tag), r);
	hca_queue_drop(&context, &queue);
	ck_assert_uint_eq(r->uses, 0);
	ck_assert_ptr_null(hca_record_find(&context, tag));
	posted(&queue, 0);
	hca_queue_drop(&context, &queue);
}
END_TEST

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

START_TEST(test_buffer_is_reused_with_the_key_of_its_registration)
{
	struct hca_buffer small, large, again;

	ck_assert_int_eq(hca_buffer_take(&pd, 1, &small), 0);
	ck_assert_int_eq(hca_buffer_take(&pd, (1 << HCA_CHUNK_ORDER) + 1, &large), 0);
	ck_assert_uint_ne(small.lkey, large.lkey);
	ck_assert_uint_eq(registrations, 2);
	memset(large.data, 0xaa, 1 << large.order);
	again = large;
	hca_buffer_give(pd.pool, &large);
	ck_assert_ptr_null(large.data);
	ck_assert_int_eq(hca_buffer_take(&pd, (1 << HCA_CHUNK_ORDER) + 1, &large), 0);
	ck_assert_ptr_eq(large.data, again.data);
	ck_assert_uint_eq(large.lkey, again.lkey);
	ck_assert_uint_eq(registrations, 2);
	hca_buffer_give(pd.pool, &large);
	hca_buffer_give(pd.pool, &small);
}
END_TEST

START_TEST(test_buffers_of_one_chunk_do_not_overlap)
{
	enum { NUM = 1 << (HCA_CHUNK_ORDER - HCA_MIN_ORDER) };
	static struct hca_buffer all[NUM];

	for (int i = 0; i < NUM; i++) {
		ck_assert_int_eq(hca_buffer_take(&pd, 1 << HCA_MIN_ORDER, &all[i]), 0);
		memset(all[i].data, i, 1 << HCA_MIN_ORDER);
	}
	ck_assert_uint_eq(registrations, 1);
	for (int i = 0; i < NUM; i++) {
		ck_assert_uint_eq(all[i].data[0], i & 0xff);
		ck_assert_uint_eq(all[i].data[(1 << HCA_MIN_ORDER) - 1], i & 0xff);
		hca_buffer_give(pd.pool, &all[i]);
	}
}
END_TEST

START_TEST(test_refusal_of_the_adapter_is_enomem_and_leaves_nothing)
{
	struct hca_buffer buffer;

	adapter_refuses = true;
	ck_assert_int_eq(hca_buffer_take(&pd, 100, &buffer), -ENOMEM);
	ck_assert_ptr_null(hca_record_new(&context, &pd, &(struct ibv_sge){ .length = 100 }, 1, 100));
	ck_assert_int_eq(hca_buffer_take(&pd, (UINT64_C(1) << HCA_MAX_ORDER) + 1, &buffer), -ENOMEM);
	adapter_refuses = false;
	ck_assert_int_eq(hca_buffer_take(&pd, 100, &buffer), 0);
	hca_buffer_give(pd.pool, &buffer);
}
END_TEST

START_TEST(test_buffer_of_a_copy_outlives_its_pd)
{
	struct ibv_sge sges[HCA_FEW_SGES + 1] = {};
	struct hca_record *r = hca_record_new(&context, &pd, sges, HCA_FEW_SGES + 1, 4096);
	struct hca_pool *pool = pd.pool;

	ck_assert_ptr_nonnull(r);
	hca_pool_deregister(pool);
	ck_assert_uint_eq(registrations, 0);
	hca_pool_put(pool); /* the PD is gone; the record is being copied */
	memset(r->buffer.data, 1, 4096);
	hca_record_free(&context, r);
	pd.pool = hca_pool_new(NULL);
}
END_TEST

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static struct hca_mr region(void *at, size_t length, unsigned int access)
{
	return (struct hca_mr){
		.mr = { .pd = &pd.pd,
			.umem = { .mm = (void *)&context, .addr = (uintptr_t)at, .length = length },
			.iova = 0x1000,
			.length = length,
			.access = access },
	};
}

static void end_keys(void)
{
	free(context.mrs);
}

START_TEST(test_keys_differ_and_a_stale_key_opens_nothing)
{
	enum { NUM = 300 };
	static struct hca_mr mrs[NUM];
	char from[16] = "data", to[16] = "";

	for (int i = 0; i < NUM; i++) {
		mrs[i] = region(from, sizeof(from), IBV_ACCESS_LOCAL_WRITE);
		ck_assert_int_eq(hca_reg_mr(&mrs[i].mr, NULL), 0);
		ck_assert_uint_ne(mrs[i].mr.lkey, 0); /* the key of requests whose memory is wrong */
		for (int j = 0; j < i; j++)
			ck_assert_uint_ne(mrs[i].mr.lkey, mrs[j].mr.lkey);
	}
	for (int i = 0; i < NUM; i++) {
		const struct ibv_sge sge = { .addr = 0x1000, .length = sizeof(from), .lkey = mrs[i].mr.lkey };

		ck_assert_int_eq(hca_gather(&context, &pd, to, &sge, 1), 0);
		ck_assert_str_eq(to, "data");
		ck_assert_int_eq(hca_dereg_mr(&mrs[i].mr), 0);
		ck_assert_int_eq(hca_reg_mr(&mrs[i].mr, NULL), 0);
		ck_assert_int_eq(hca_gather(&context, &pd, to, &sge, 1), -EFAULT);
	}
	end_keys();
}
END_TEST

START_TEST(test_reused_slot_has_another_key)
{
	enum { NUM = 300 };
	char memory[8];
	struct hca_mr mr = region(memory, sizeof(memory), 0);
	uint32_t keys[NUM];

	for (int i = 0; i < NUM; i++) {
		ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
		keys[i] = mr.mr.lkey;
		for (int j = 0; j < i; j++)
			ck_assert_uint_ne(keys[i], keys[j]);
		ck_assert_int_eq(hca_dereg_mr(&mr.mr), 0);
	}
	ck_assert_uint_lt(context.num_mrs, NUM);
	end_keys();
}
END_TEST

START_TEST(test_copies_stay_within_region_pd_and_access)
{
	char memory[64] = "", data[64];
	struct hca_mr mr = region(memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE),
		      ro = region(memory, sizeof(memory), 0);
	struct hca_pd other = pd;
	struct ibv_sge sges[2];

	memset(data, 'x', sizeof(data));
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), 0);
	ck_assert_int_eq(hca_reg_mr(&ro.mr, NULL), 0);
	sges[0] = (struct ibv_sge){ .addr = 0x1000 + 60, .length = 4, .lkey = mr.mr.lkey };
	sges[1] = (struct ibv_sge){ .addr = 0x1000, .length = 8, .lkey = mr.mr.lkey };
	/* Less arrives than there is room for. */
	ck_assert_int_eq(hca_scatter(&context, &pd, sges, 2, data, 6), 0);
	ck_assert_int_eq(memcmp(memory, "xx\0", 3), 0);
	ck_assert_int_eq(memcmp(memory + 59, "\0xxxx", 5), 0);
	ck_assert_int_eq(hca_scatter(&context, &other, sges, 2, data, 6), -EFAULT);
	sges[0].length = 5;
	ck_assert_int_eq(hca_scatter(&context, &pd, sges, 1, data, 5), -EFAULT);
	sges[0].addr = 0xfff;
	ck_assert_int_eq(hca_gather(&context, &pd, data, sges, 1), -EFAULT);
	sges[0] = (struct ibv_sge){ .addr = 0x1000, .length = 4, .lkey = ro.mr.lkey };
	ck_assert_int_eq(hca_gather(&context, &pd, data, sges, 1), 0);
	ck_assert_int_eq(hca_scatter(&context, &pd, sges, 1, data, 4), -EFAULT);
	end_keys();
}
END_TEST

static const unsigned int remote[] = { IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC,
				       IBV_ACCESS_MW_BIND, IBV_ACCESS_ON_DEMAND };

START_TEST(test_region_for_peers_is_refused)
{
	char memory[8];
	struct hca_mr mr = region(memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | remote[_i]);

	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), -EOPNOTSUPP);
	mr.mr.access = IBV_ACCESS_LOCAL_WRITE;
	ibdev.config.memory = UVD_MEMORY_REFUSE;
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), -EOPNOTSUPP);
	ibdev.config.memory = UVD_MEMORY_BOUNCE;
	atomic_store(&device.dead, true);
	ck_assert_int_eq(hca_reg_mr(&mr.mr, NULL), -EIO);
	atomic_store(&device.dead, false);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("verbs");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_only_what_is_forwarded_is_announced);
	tcase_add_test(t, test_device_shows_a_feature_only_if_it_forwards_it);
	tcase_add_loop_test(t, test_qp_request_has_the_adapters_objects, 0, sizeof(qps) / sizeof(qps[0]));
	tcase_add_test(t, test_request_for_an_xrc_qp_has_only_what_the_qp_has);
	tcase_add_test(t, test_send_request_keeps_every_field_of_its_opcode);
	tcase_add_test(t, test_tags_of_live_records_differ_and_a_stale_tag_finds_nothing);
	tcase_add_test(t, test_tag_stays_unique_when_its_counter_wraps);
	tcase_add_test(t, test_buffer_is_reused_with_the_key_of_its_registration);
	tcase_add_test(t, test_buffers_of_one_chunk_do_not_overlap);
	tcase_add_test(t, test_refusal_of_the_adapter_is_enomem_and_leaves_nothing);
	tcase_add_test(t, test_buffer_of_a_copy_outlives_its_pd);
	tcase_add_test(t, test_keys_differ_and_a_stale_key_opens_nothing);
	tcase_add_test(t, test_reused_slot_has_another_key);
	tcase_add_test(t, test_copies_stay_within_region_pd_and_access);
	tcase_add_loop_test(t, test_region_for_peers_is_refused, 0, sizeof(remote) / sizeof(remote[0]));
	return run_suite("backends: verbs, without an adapter", t);
}
