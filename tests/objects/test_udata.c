/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A backend reads and answers the provider's part of a call: the same bytes by every front. */
#include <fcntl.h>
#include <uverbsd/udata.h>
#include "tests.h"

/* ---- a backend with driver data ---------------------------------------------------------------------------------- */

struct driver_in {
	uint64_t numbers[3];
};

static struct {
	size_t inlen, outlen;
	struct driver_in in;
	int ret; /* of the read */
	unsigned int calls;
} seen;

/* The backend answers with these numbers: as many as the client wants, and more. */
static const uint64_t answer[3] = { 0xa1, 0xa2, 0xa3 };

static int driver_serve(struct uvd_udata *udata)
{
	int ret;

	seen.calls++;
	seen.inlen = uvd_udata_inlen(udata);
	seen.outlen = uvd_udata_outlen(udata);
	memset(&seen.in, 0xff, sizeof(seen.in));
	ret = seen.ret = uvd_udata_in(udata, &seen.in);
	return ret ? ret : uvd_udata_out(udata, &answer);
}

static int driver_create_cq(struct uvd_cq *cq, struct uvd_udata *udata)
{
	int ret = driver_serve(udata);

	return ret ? ret : uvd_backend_null.create_cq(cq, NULL);
}

static int driver_alloc_xrcd(struct uvd_xrcd *xrcd, struct uvd_udata *udata)
{
	/* Whoever reads a client's memory here would hold up all clients. */
	ck_assert_int_eq(pthread_mutex_trylock(&h.dev->xrcd_lock), EBUSY);
	return driver_serve(udata);
}

static int driver_answer_too_much(struct uvd_xrcd *xrcd, struct uvd_udata *udata)
{
	static const uint8_t much[UVD_REQ_STAGE + 8];

	return uvd_udata_out(udata, &much);
}

/* ---- the client -------------------------------------------------------------------------------------------------- */

static void begin(void)
{
	uint32_t pd, cq;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	h.ops.create_cq = driver_create_cq;
	h.ops.alloc_xrcd = driver_alloc_xrcd;
	memset(&seen, 0, sizeof(seen));
}

static int create_cq_by_method(const void *in, size_t in_len, void *out, size_t out_len)
{
	struct uv_tree tree;
	uint32_t cqe;

	uv_tree_init(&tree, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_CQE, &(uint32_t){ 1 }, sizeof(uint32_t));
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &(uint64_t){ 0 }, sizeof(uint64_t));
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &(uint32_t){ 0 }, sizeof(uint32_t));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
	if (in_len)
		uv_attr_in(&tree, UVERBS_ATTR_UHW_IN, in, in_len);
	if (out_len)
		uv_attr_out(&tree, UVERBS_ATTR_UHW_OUT, out, out_len);
	return uv_ioctl(h.fd, &tree);
}

static int create_cq(enum uv_front front, const void *in, size_t in_len, void *out, size_t out_len)
{
	struct ib_uverbs_create_cq plain = { .cqe = 1, .comp_channel = -1 };
	struct ib_uverbs_ex_create_cq ex = { .cqe = 1, .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp plain_resp;
	struct ib_uverbs_ex_create_cq_resp ex_resp;
	struct uv_cmd cmd = { .uhw_in = in, .uhw_in_len = in_len, .uhw_out = out, .uhw_out_len = out_len };

	if (front == UV_METHOD)
		return create_cq_by_method(in, in_len, out, out_len);
	if (uv_front_ex(front)) {
		cmd.command = UV_EX(CREATE_CQ);
		cmd.in = &ex;
		cmd.in_len = sizeof(ex);
		cmd.out = &ex_resp;
		cmd.out_len = sizeof(ex_resp);
	} else {
		cmd.command = IB_USER_VERBS_CMD_CREATE_CQ;
		cmd.in = &plain;
		cmd.in_len = sizeof(plain);
		cmd.out = &plain_resp;
		cmd.out_len = sizeof(plain_resp);
	}
	return uv_cmd(h.fd, front, &cmd);
}

/* Each front, with input in the attribute itself (8 bytes), shorter than the backend reads, and longer. */
START_TEST(test_every_front_passes_the_provider_s_request_and_answer)
{
	const size_t sizes[] = { 8, 16, 24, 40 };
	uint64_t in[5] = { 1, 2, 3, 4, 5 };

	begin();
	for (enum uv_front front = 0; front < UV_FRONTS; front++) {
		for (size_t i = 0; i < UV_ARRAY_SIZE(sizes); i++) {
			uint64_t out[5] = { 7, 7, 7, 7, 7 };

			ck_assert_int_eq(create_cq(front, in, sizes[i], out, sizes[i]), 0);
			ck_assert_uint_eq(seen.inlen, sizes[i]);
			ck_assert_uint_eq(seen.outlen, sizes[i]);
			for (size_t n = 0; n < 3; n++) {
				ck_assert_uint_eq(seen.in.numbers[n], n < sizes[i] / 8 ? in[n] : 0);
				if (n < sizes[i] / 8)
					ck_assert_uint_eq(out[n], answer[n]);
			}
		}
	}
	ck_assert_uint_eq(seen.calls, UV_FRONTS * UV_ARRAY_SIZE(sizes));
}
END_TEST

START_TEST(test_without_driver_data_the_backend_reads_zeros_and_answers_nothing)
{
	begin();
	for (enum uv_front front = 0; front < UV_FRONTS; front++) {
		ck_assert_int_eq(create_cq(front, NULL, 0, NULL, 0), 0);
		ck_assert_uint_eq(seen.inlen, 0);
		ck_assert_uint_eq(seen.outlen, 0);
		ck_assert_uint_eq(seen.in.numbers[0] | seen.in.numbers[2], 0);
	}
}
END_TEST

START_TEST(test_a_request_that_cannot_be_read_fails_the_operation)
{
	uint64_t out[3];

	begin();
	ck_assert_int_eq(create_cq(UV_METHOD, BAD, 24, out, sizeof(out)), -EFAULT);
	ck_assert_int_eq(seen.ret, -EFAULT);
	ck_assert_int_eq(create_cq(UV_METHOD, out, sizeof(out), BAD, 24), -EFAULT);
	ck_assert_int_eq(seen.ret, 0);
}
END_TEST

/* A NULL is what an operation gets when the core itself calls it. */
START_TEST(test_no_udata_is_no_data)
{
	memset(&seen, 0, sizeof(seen));
	ck_assert_int_eq(driver_serve(NULL), 0);
	ck_assert_uint_eq(seen.inlen | seen.outlen, 0);
	ck_assert_uint_eq(seen.in.numbers[0] | seen.in.numbers[2], 0);
}
END_TEST

static int open_xrcd(enum uv_front front, const void *in, void *out, size_t len)
{
	struct ib_uverbs_open_xrcd cmd = { .fd = -1, .oflags = O_CREAT };
	struct ib_uverbs_open_xrcd_resp resp;

	return uv_cmd(h.fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd), &resp, sizeof(resp), in, len,
					out, len });
}

static bool lock_was_free;
static uint64_t watched;

/* Reads the client's memory, and notes whether xrcd_lock is free when that happens at `watched`. */
static int watching_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	if (src == watched) {
		lock_was_free = !pthread_mutex_trylock(&h.dev->xrcd_lock);
		if (lock_was_free)
			pthread_mutex_unlock(&h.dev->xrcd_lock);
	}
	return uvd_mem_process.read(c, dst, src, len);
}

START_TEST(test_an_operation_under_a_shared_lock_does_not_read_the_client_s_memory)
{
	static uint8_t large[UVD_REQ_IN + 8];
	static struct uvd_mem_ops mem;
	uint64_t in[3] = { 1, 2, 3 }, out[3] = {};

	begin();
	mem = uvd_mem_process;
	mem.read = watching_read;
	h.call->caller.mem = &mem;
	watched = (uintptr_t)in;
	for (enum uv_front front = 0; front < UV_PLAIN_FRONTS; front++) {
		ck_assert_int_eq(open_xrcd(front, in, out, sizeof(in)), 0);
		ck_assert_uint_eq(seen.in.numbers[2], 3);
		ck_assert_uint_eq(out[2], answer[2]);
	}
	ck_assert(lock_was_free);
	watched = 0;
	/* The backend asks for what could not be read. */
	ck_assert_int_eq(open_xrcd(UV_INVOKE, BAD, out, sizeof(out)), -EFAULT);
	ck_assert_int_eq(seen.ret, -EFAULT);
	ck_assert_uint_eq(seen.calls, 3);
	/* Neither a request that would need memory, nor an answer that would be written at once. */
	ck_assert_int_eq(open_xrcd(UV_INVOKE, large, large, sizeof(large)), -ENOMEM);
	ck_assert_uint_eq(seen.calls, 3);
	h.ops.alloc_xrcd = driver_answer_too_much;
	ck_assert_int_eq(open_xrcd(UV_INVOKE, in, out, sizeof(in)), -ENOSPC);
}
END_TEST

TEST_LIST(test_every_front_passes_the_provider_s_request_and_answer,
	  test_without_driver_data_the_backend_reads_zeros_and_answers_nothing,
	  test_a_request_that_cannot_be_read_fails_the_operation, test_no_udata_is_no_data,
	  test_an_operation_under_a_shared_lock_does_not_read_the_client_s_memory)
