/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of the data path allocate nothing. The linker wraps the allocation functions (meson.build), so every
 * call from uverbsd's own code is counted.
 */
#include "tests.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static unsigned int allocations;

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

static uint32_t pd, cq;
static struct ib_uverbs_create_qp_resp qp;

struct sends {
	struct ib_uverbs_post_send cmd;
	struct ib_uverbs_send_wr wr[16];
	struct ib_uverbs_sge sge[16];
};

static void begin(void)
{
	struct ib_uverbs_modify_qp init = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	init.qp_handle = qp.qp_handle;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &init), 0);
}

static void fill_sends(struct sends *s)
{
	static char data[16][16];

	memset(s, 0, sizeof(*s));
	s->cmd = (struct ib_uverbs_post_send){
		.qp_handle = qp.qp_handle, .wr_count = 16, .sge_count = 16, .wqe_size = sizeof(s->wr[0])
	};
	for (int i = 0; i < 16; i++) {
		s->wr[i] = (struct ib_uverbs_send_wr){ .wr_id = i,
						       .num_sge = 1,
						       .opcode = IBV_WR_SEND,
						       .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };
		s->sge[i] = (struct ib_uverbs_sge){ .addr = (uintptr_t)data[i], .length = sizeof(data[i]) };
	}
}

/* Arms the CQ, posts 16 sends and polls their completions. issue: harness_write() or invoke(). */
static void round_trip(int (*issue)(struct harness *h, uint32_t command, void *in, size_t in_len, void *out,
				    size_t out_len))
{
	struct ib_uverbs_req_notify_cq notify = { .cq_handle = cq };
	struct ib_uverbs_poll_cq poll = { .cq_handle = cq, .ne = 100 };
	struct ib_uverbs_post_send_resp resp;
	struct {
		struct ib_uverbs_poll_cq_resp resp;
		struct ib_uverbs_wc wc[100];
	} polled;
	unsigned int counted;
	struct sends s;
	int ret;

	fill_sends(&s);
	/* libcheck's assertions allocate, so none may run before `counted` is set. */
	allocations = 0;
	ret = issue(&h, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &notify, sizeof(notify), NULL, 0);
	if (!ret)
		ret = issue(&h, IB_USER_VERBS_CMD_POST_SEND, &s, sizeof(s), &resp, sizeof(resp));
	if (!ret)
		ret = issue(&h, IB_USER_VERBS_CMD_POLL_CQ, &poll, sizeof(poll), &polled, sizeof(polled.resp));
	counted = allocations;
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(counted, 0);
	ck_assert_uint_eq(polled.resp.count, 16);
	ck_assert_uint_eq(polled.wc[15].wr_id, 15);
}

static int invoke(struct harness *harness, uint32_t command, void *in, size_t in_len, void *out, size_t out_len)
{
	return harness_invoke(harness, command, in, in_len, out, out_len);
}

START_TEST(test_counting_works)
{
	unsigned int counted;

	begin();
	allocations = 0;
	harness_alloc_pd(&h, &pd);
	counted = allocations;
	ck_assert_uint_gt(counted, 0);
}
END_TEST

START_TEST(test_data_path_by_write_allocates_nothing)
{
	begin();
	round_trip(harness_write);
}
END_TEST

START_TEST(test_data_path_by_invoke_write_allocates_nothing)
{
	begin();
	round_trip(invoke);
}
END_TEST

START_TEST(test_post_recv_allocates_nothing)
{
	struct {
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr[32];
	} list = { .cmd = { .wr_count = 32, .wqe_size = sizeof(list.wr[0]) } };
	struct ib_uverbs_post_recv_resp resp;
	unsigned int counted;
	int ret;

	begin();
	list.cmd.qp_handle = qp.qp_handle;
	allocations = 0;
	ret = WRITE(&h, POST_RECV, &list, &resp);
	counted = allocations;
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(counted, 0);
}
END_TEST

TEST_LIST(test_counting_works, test_data_path_by_write_allocates_nothing,
	  test_data_path_by_invoke_write_allocates_nothing, test_post_recv_allocates_nothing)
