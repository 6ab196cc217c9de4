/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `error`. */
#include "bed.h"
#include "filters/object.h"
#include "filters/rule.h"

static uint32_t pd, cq;
static struct uv_qp qp;

static void setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_self);
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
}

static void teardown(void)
{
	harness_close(&h);
}

/* ---- which calls ------------------------------------------------------------------------------------------------- */

/* Writes the calls of 1 to 9 that fail, as digits. */
static void failing_calls(char text[10])
{
	for (int i = 1; i < 10; i++)
		if (bed_alloc_pd()) {
			*text++ = '0' + i;
			*text = 0;
		}
}

static const struct {
	const char *filter, *fails;
} calls[] = {
	{ "error:alloc_pd=EMFILE", "123456789" }, { "error:alloc_pd=EMFILE@3", "3" },
	{ "error:alloc_pd=EMFILE@7+", "789" },	  { "error:alloc_pd=EMFILE%100", "123456789" },
	{ "error:alloc_mw=EMFILE", "" },
};

START_TEST(test_the_calls_that_the_user_chose_fail)
{
	char fails[10] = "";

	bed_add(calls[_i].filter);
	failing_calls(fails);
	ck_assert_str_eq(fails, calls[_i].fails);
}
END_TEST

START_TEST(test_a_failing_call_returns_the_errno_and_leaves_nothing)
{
	uint32_t next, charged;

	bed_add("error:alloc_pd=EMFILE@1,create_cq=ETXTBSY");
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &next), -EMFILE);
	charged = h.file->handles.count;
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &next), 0);
	ck_assert_uint_eq(next, pd + 1);
	ck_assert_uint_eq(h.file->handles.count, charged + 1);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), -ETXTBSY);
}
END_TEST

START_TEST(test_a_seed_decides_which_calls_a_percentage_chooses)
{
	enum { CALLS = 10000 };
	static bool chosen[3][CALLS];
	unsigned int num = 0, differ = 0, shifted = 0;
	struct uvd_rule rule;
	char value[16];

	for (int run = 0; run < 3; run++) {
		ck_assert_ptr_null(uvd_rule_parse(&rule, "ENOMEM%10", run == 2 ? 8 : 7, value, sizeof(value)));
		for (int i = 0; i < CALLS; i++)
			chosen[run][i] = uvd_rule_applies(&rule);
	}
	ck_assert_mem_eq(chosen[0], chosen[1], CALLS);
	for (int i = 0; i < CALLS; i++) {
		num += chosen[0][i];
		differ += chosen[0][i] != chosen[2][i];
		shifted += i && chosen[0][i] != chosen[2][i - 1];
	}
	ck_assert_uint_gt(num, CALLS / 10 - 150);
	ck_assert_uint_lt(num, CALLS / 10 + 150);
	ck_assert_uint_gt(differ, CALLS / 10);
	ck_assert_uint_gt(shifted, CALLS / 10);
}
END_TEST

START_TEST(test_a_percentage_of_100_is_all_calls_and_99_is_not)
{
	enum { CALLS = 10000 };
	unsigned int num[2] = {};
	struct uvd_rule rules[2];
	char value[16];

	ck_assert_ptr_null(uvd_rule_parse(&rules[0], "ENOMEM%99", 1, value, sizeof(value)));
	ck_assert_ptr_null(uvd_rule_parse(&rules[1], "ENOMEM%100", 1, value, sizeof(value)));
	for (int i = 0; i < CALLS; i++)
		for (int k = 0; k < 2; k++)
			num[k] += uvd_rule_applies(&rules[k]) != 0;
	ck_assert_uint_lt(num[0], CALLS);
	ck_assert_uint_eq(num[1], CALLS);
	/* It returns the number of the call. */
	ck_assert_uint_eq(uvd_rule_applies(&rules[1]), CALLS + 1);
	uvd_rule_all(&rules[0], "when");
	ck_assert_uint_eq(uvd_rule_applies(&rules[0]), 1);
	ck_assert_uint_eq(uvd_rule_applies(&rules[0]), 2);
}
END_TEST

static int create_context(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };

	return h.dev->ib.ops->alloc_context(&context, NULL);
}

static uint32_t last_qp; /* of the completions; each is of another QP */

static int send_fails(void)
{
	return bed_complete(NULL, ++last_qp, IBV_WC_SEND);
}

static int recv_fails(void)
{
	return bed_complete(NULL, ++last_qp, IBV_WC_RECV);
}

START_TEST(test_the_seed_of_the_options_is_the_one_of_all_rules)
{
	bed_check_seed("error:alloc_pd=EMFILE%50,seed=", bed_alloc_pd);
	bed_check_seed("error:wc.send=FATAL_ERR%50,seed=", send_fails);
}
END_TEST

START_TEST(test_rules_of_one_filter_choose_independently_of_each_other)
{
	char chosen[4][41];

	bed_add("error:alloc_pd=EMFILE%50,alloc_context=EMFILE%50,wc.send=FATAL_ERR%50,wc.recv=FATAL_ERR%50");
	bed_pattern(bed_alloc_pd, chosen[0]);
	bed_pattern(create_context, chosen[1]);
	bed_pattern(send_fails, chosen[2]);
	bed_pattern(recv_fails, chosen[3]);
	ck_assert_str_ne(chosen[0], chosen[1]);
	ck_assert_str_ne(chosen[2], chosen[3]);
}
END_TEST

static const char *const wrong[] = {
	"alloc_pd=",
	"alloc_pd=ENOMEN",
	"alloc_pd=0",
	"alloc_pd=12",
	"alloc_pd=EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE",
	"alloc_pd=ENOMEM@",
	"alloc_pd=ENOMEM@0",
	"alloc_pd=ENOMEM@-1",
	"alloc_pd=ENOMEM@3x",
	"alloc_pd=ENOMEM%0",
	"alloc_pd=ENOMEM%101",
	"alloc_pd=ENOMEM%5+",
	"alloc_pd=ENOMEM@3%5",
	"alloc_pd=@3",
	"alloc_pds=ENOMEM",
	"port_changed=ENOMEM",
	"wc=SUCCESS",
	"wc=NO_ERR",
	"wc.sends=FATAL_ERR",
	"seed=x",
	"dealloc_pd=EIO",
	"destroy_qp=EIO@2+",
	"dereg_mr=EIO%50",
	"alloc_pd",
	"alloc_pd=ENOMEM@99999999999999999999",
	"modify_qp=EINVAL,qp=@",
	"modify_qp=EINVAL,qp=@0",
	"modify_qp=EINVAL,qp=0",
	"modify_qp=EINVAL,qp=0x1000000000",
	"modify_qp=EINVAL,qp=tcp",
	"modify_qp=EINVAL,qp=@99999999999999999999",
	"modify_qp=EINVAL,qp=@3x",
	"post_srq_recv=EINVAL,srq=3",
	"resize_cq=EINVAL,cq=3",
	"rereg_mr=EINVAL,mr=ud",
	"modify_qp=EINVAL,cq=@1", /* for no rule */
	"alloc_pd=EINVAL,qp=@1",
	"wc=FATAL_ERR,srq=@1",
	"wc=FATAL_ERR,qp=ud", /* completions do not tell the type */
};

START_TEST(test_a_wrong_rule_is_refused)
{
	char text[80];

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof(text), "error:%s", wrong[i]);
		ck_assert_msg(uvd_device_filter_add(h.dev, text, error) == -EINVAL, "%s", text);
		ck_assert_msg(strstr(error, "filter error: "), "%s: %s", text, error);
		ck_assert_int_eq(bed_alloc_pd(), 0);
	}
}
END_TEST

/* ---- which objects ----------------------------------------------------------------------------------------------- */

static int create_qp(enum ibv_qp_type type, struct uv_qp *out)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	attr.type = type;
	return uv_create_qp(h.fd, UV_WRITE, &attr, out);
}

/* Takes the QP to INIT. Returns 0 or the errno. */
static int init_qp(const struct uv_qp *which)
{
	struct ib_uverbs_modify_qp init = {
		.qp_handle = which->handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};

	return uv_modify_qp(h.fd, UV_WRITE, &init);
}

START_TEST(test_a_rule_is_for_the_nth_object_that_is_created)
{
	struct uv_qp qps[3];

	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	bed_add("error:modify_qp=ETXTBSY@2,qp=@2");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(create_qp(IBV_QPT_RC, &qps[i]), 0);
	/* Only calls on this QP count. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(init_qp(&qps[0]), 0);
		ck_assert_int_eq(init_qp(&qps[2]), 0);
		ck_assert_int_eq(init_qp(&qps[1]), i ? -ETXTBSY : 0);
	}
	/* A QP that is created later is another one, wherever its memory is. */
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qps[1].handle, NULL), 0);
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "error:modify_qp=ETXTBSY,qp=@1", error), 0);
	ck_assert_int_eq(create_qp(IBV_QPT_RC, &qps[1]), 0);
	ck_assert_int_eq(init_qp(&qps[1]), -ETXTBSY);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qps[1].handle, NULL), 0);
	ck_assert_int_eq(create_qp(IBV_QPT_RC, &qps[1]), 0);
	ck_assert_int_eq(init_qp(&qps[1]), 0);
}
END_TEST

START_TEST(test_a_rule_is_for_the_qp_of_a_number_or_a_type)
{
	struct uv_qp qps[2];
	char text[80];

	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(create_qp(IBV_QPT_RC, &qps[i]), 0);
	snprintf(text, sizeof(text), "error:modify_qp=ETXTBSY,qp=%#x", qps[1].qpn);
	bed_add(text);
	ck_assert_int_eq(init_qp(&qps[0]), 0);
	ck_assert_int_eq(init_qp(&qps[1]), -ETXTBSY);
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "error:create_qp=EMFILE,modify_qp=EPIPE,qp=ud", error), 0);
	ck_assert_int_eq(create_qp(IBV_QPT_UC, &qps[0]), 0);
	ck_assert_int_eq(init_qp(&qps[0]), 0);
	ck_assert_int_eq(create_qp(IBV_QPT_UD, &qps[0]), -EMFILE);
}
END_TEST

START_TEST(test_completions_have_errors_for_one_object_only)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq other = { .context = &context };
	struct ibv_wc wc = { .opcode = IBV_WC_SEND };
	struct uv_qp qps[2];

	bed_add("error:wc=FATAL_ERR@2,qp=@2");
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(create_qp(IBV_QPT_RC, &qps[i]), 0);
	for (int i = 0; i < 2; i++) {
		wc.qp_num = qps[0].qpn;
		uvd_filter_completion(&other, &wc);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		wc.qp_num = qps[1].qpn;
		uvd_filter_completion(&other, &wc);
		ck_assert_int_eq(wc.status, i ? IBV_WC_FATAL_ERR : IBV_WC_SUCCESS);
	}
	/* The CQ is not the first that is created. */
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "error:wc=FATAL_ERR,cq=@1", error), 0);
	wc.status = IBV_WC_SUCCESS;
	uvd_filter_completion(&other, &wc);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	qp = qps[0];
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qps[1].handle, NULL), 0);
}
END_TEST

START_TEST(test_a_failed_creation_is_not_the_object_of_a_rule)
{
	struct uv_qp first, second;

	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	bed_add("error:create_qp=EMFILE,modify_qp=EPIPE,qp=@1");
	ck_assert_int_eq(create_qp(IBV_QPT_RC, &first), -EMFILE);
	ck_assert_int_eq(create_qp(IBV_QPT_RC, &second), 0);
	ck_assert_int_eq(init_qp(&second), 0);
}
END_TEST

START_TEST(test_a_region_with_new_memory_stays_the_object_of_a_rule)
{
	static uint8_t mem[BED_PAGE] __attribute__((aligned(BED_PAGE)));
	struct uv_mr mrs[2];

	bed_add("error:rereg_mr=ETXTBSY@3+,mr=@2");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE, &mrs[i]), 0);
	/* The backend null makes a new region each time. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(bed_remake_mr(mrs[1].handle, 1), i < 2 ? 0 : -ETXTBSY);
		ck_assert_int_eq(bed_remake_mr(mrs[0].handle, 1), 0);
	}
	/* It is forgotten when it ends. */
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mrs[1].handle), 0);
	ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE, &mrs[1]), 0);
	ck_assert_int_eq(bed_remake_mr(mrs[1].handle, 1), 0);
}
END_TEST

START_TEST(test_a_rule_is_for_the_region_of_an_lkey)
{
	static uint8_t mem[BED_PAGE] __attribute__((aligned(BED_PAGE)));
	struct uv_mr mrs[2];
	char text[80];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE, &mrs[i]), 0);
	snprintf(text, sizeof(text), "error:dereg_mr=ETXTBSY@1,mr=%u", mrs[1].lkey);
	bed_add(text);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mrs[0].handle), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mrs[1].handle), -ETXTBSY);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mrs[1].handle), 0);
}
END_TEST

START_TEST(test_each_type_of_qp_has_its_name)
{
	static const struct {
		const char *name;
		enum ibv_qp_type type;
	} types[] = {
		{ "rc", IBV_QPT_RC },
		{ "uc", IBV_QPT_UC },
		{ "ud", IBV_QPT_UD },
		{ "raw_packet", IBV_QPT_RAW_PACKET },
		{ "xrc_send", IBV_QPT_XRC_SEND },
		{ "xrc_recv", IBV_QPT_XRC_RECV },
	};

	for (size_t i = 0; i < UV_ARRAY_SIZE(types); i++) {
		struct uvd_object_rule rule = {};

		ck_assert_ptr_null(uvd_object_parse(&rule, UVD_OF_QP, types[i].name));
		for (size_t k = 0; k < UV_ARRAY_SIZE(types); k++) {
			struct uvd_qp one = { .qp_type = types[k].type };

			ck_assert_int_eq(uvd_object_applies(&rule, UVD_OF_QP, UVD_OBJECT_USED, &one), k == i);
		}
	}
}
END_TEST

START_TEST(test_completions_of_a_qp_have_errors_while_it_exists)
{
	struct uv_qp qps[3];
	char text[80];

	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	bed_add("error:wc=FATAL_ERR,qp=@2");
	ck_assert_int_eq(bed_complete(NULL, 0, IBV_WC_SEND), IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(create_qp(IBV_QPT_RC, &qps[i]), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(bed_complete(NULL, qps[i].qpn, IBV_WC_SEND),
				 i == 1 ? IBV_WC_FATAL_ERR : IBV_WC_SUCCESS);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qps[1].handle, NULL), 0);
	ck_assert_int_eq(bed_complete(NULL, qps[1].qpn, IBV_WC_SEND), IBV_WC_SUCCESS);
	snprintf(text, sizeof(text), "error:wc=GENERAL_ERR,qp=%u", qps[0].qpn);
	ck_assert_int_eq(uvd_device_filter_set(h.dev, text, error), 0);
	ck_assert_int_eq(bed_complete(NULL, qps[2].qpn, IBV_WC_SEND), IBV_WC_SUCCESS);
	ck_assert_int_eq(bed_complete(NULL, qps[0].qpn, IBV_WC_SEND), IBV_WC_GENERAL_ERR);
}
END_TEST

START_TEST(test_completions_of_the_nth_cq_have_errors)
{
	struct uvd_context context = { .dev = &h.dev->ib, .account = h.account };
	struct uvd_cq *cqs[2];

	bed_add("error:wc=FATAL_ERR,cq=@2,destroy_cq=EIO@1");
	for (int i = 0; i < 2; i++) {
		cqs[i] = calloc(1, h.dev->ib.ops->size_cq);
		cqs[i]->context = &context;
		cqs[i]->cqe = 1;
		ck_assert_int_eq(h.dev->ib.ops->create_cq(cqs[i], NULL), 0);
	}
	ck_assert_int_eq(bed_complete(cqs[0], 1, IBV_WC_SEND), IBV_WC_SUCCESS);
	ck_assert_int_eq(bed_complete(cqs[1], 1, IBV_WC_SEND), IBV_WC_FATAL_ERR);
	/* The CQ stays the second one while it cannot be destroyed. */
	ck_assert_int_eq(h.dev->ib.ops->destroy_cq(cqs[0]), 0);
	ck_assert_int_eq(h.dev->ib.ops->destroy_cq(cqs[1]), -EIO);
	ck_assert_int_eq(bed_complete(cqs[1], 2, IBV_WC_SEND), IBV_WC_FATAL_ERR);
	ck_assert_int_eq(h.dev->ib.ops->destroy_cq(cqs[1]), 0);
	ck_assert_int_eq(bed_complete(cqs[1], 3, IBV_WC_SEND), IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		free(cqs[i]);
}
END_TEST

/* ---- posts and completions --------------------------------------------------------------------------------------- */

static void make_qp(void)
{
	struct uv_qp_attr attr;

	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	attr = uv_qp_attr(pd, cq);
	attr.sq_sig_all = 1;
	ck_assert_int_eq(uv_create_qp(h.fd, UV_WRITE, &attr, &qp), 0);
}

static int post(unsigned int num, uint32_t *bad)
{
	struct ib_uverbs_send_wr wr[8] = {};

	for (unsigned int i = 0; i < num; i++)
		wr[i] = (struct ib_uverbs_send_wr){ .wr_id = i, .opcode = IBV_WR_SEND };
	return uv_post_send(h.fd, UV_WRITE, qp.handle, wr, num, NULL, 0, bad);
}

static uint32_t poll_status(void)
{
	struct ib_uverbs_wc wc = {};

	ck_assert_int_eq(uv_poll_cq(h.fd, UV_WRITE, cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.qp_num, qp.qpn);
	return wc.status;
}

START_TEST(test_a_failing_post_names_the_first_request_as_bad)
{
	uint32_t bad = 0;

	make_qp();
	bed_add("error:post_send=ENOMEM@2,post_recv=ENOMEM");
	ck_assert_int_eq(post(3, &bad), 0);
	ck_assert_int_eq(post(3, &bad), -ENOMEM);
	ck_assert_uint_eq(bad, 1);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(poll_status(), IBV_WC_SUCCESS);
	ck_assert_int_eq(uv_post_recv(h.fd, UV_WRITE, qp.handle, &(struct ib_uverbs_recv_wr){}, 1, NULL, 0, &bad),
			 -ENOMEM);
	ck_assert_uint_eq(bad, 1);
}
END_TEST

START_TEST(test_a_failing_receive_is_named_as_bad)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd parent = { .context = &context };
	struct uvd_qp receiver = { .pd = &parent };
	struct uvd_srq srq = { .pd = &parent };
	const struct uvd_recv_wr wr = {}, *bad = NULL;

	bed_add("error:post_recv=ENOMEM,post_srq_recv=EIO");
	ck_assert_int_eq(h.dev->ib.ops->post_recv(&receiver, &wr, &bad), -ENOMEM);
	ck_assert_ptr_eq(bad, &wr);
	bad = NULL;
	ck_assert_int_eq(h.dev->ib.ops->post_srq_recv(&srq, &wr, &bad), -EIO);
	ck_assert_ptr_eq(bad, &wr);
}
END_TEST

static unsigned int rung;

static int ring(struct uvd_qp *of, struct uvd_work *work)
{
	rung++;
	return 0;
}

START_TEST(test_a_doorbell_fails_as_a_post)
{
	h.dev->ops.ring_doorbell = ring;
	bed_add("error:post_send=ENOMEM@2,ring_doorbell=EIO@2");
	ck_assert_int_eq(bed_ring_doorbell(), 0);
	ck_assert_int_eq(bed_ring_doorbell(), -ENOMEM);
	ck_assert_uint_eq(rung, 1);
	ck_assert_int_eq(bed_ring_doorbell(), -EIO);
	ck_assert_int_eq(bed_ring_doorbell(), 0);
	ck_assert_uint_eq(rung, 2);
}
END_TEST

START_TEST(test_a_completion_has_the_status_and_the_qp_is_in_error_from_then_on)
{
	struct ib_uverbs_modify_qp reset = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RESET };
	struct ib_uverbs_query_qp_resp resp;
	uint32_t bad;

	make_qp();
	bed_add("error:wc.send=RETRY_EXC_ERR@2,wc.recv=FATAL_ERR");
	ck_assert_int_eq(uv_query_qp(h.fd, UV_WRITE, qp.handle, &resp), 0);
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_RESET);
	ck_assert_int_eq(post(4, &bad), 0);
	ck_assert_uint_eq(poll_status(), IBV_WC_SUCCESS);
	ck_assert_uint_eq(poll_status(), IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(poll_status(), IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(poll_status(), IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(uv_query_qp(h.fd, UV_WRITE, qp.handle, &resp), 0);
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_ERR);
	ck_assert_uint_eq(resp.cur_qp_state, IBV_QPS_ERR);
	reset.qp_handle = qp.handle;
	ck_assert_int_eq(uv_modify_qp(h.fd, UV_WRITE, &reset), 0);
	ck_assert_int_eq(post(1, &bad), 0);
	ck_assert_uint_eq(poll_status(), IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_a_qp_whose_reset_or_end_fails_stays_in_error)
{
	struct ib_uverbs_modify_qp reset = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RESET };
	uint32_t bad;

	make_qp();
	reset.qp_handle = qp.handle;
	bed_add("error:wc=GENERAL_ERR@1,modify_qp=EINVAL@1,destroy_qp=EIO@1");
	ck_assert_int_eq(post(3, &bad), 0);
	ck_assert_uint_eq(poll_status(), IBV_WC_GENERAL_ERR);
	ck_assert_int_eq(uv_modify_qp(h.fd, UV_WRITE, &reset), -EINVAL);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp.handle, NULL), -EIO);
	ck_assert_int_eq(init_qp(&qp), 0);
	/* Nor does a call reset it that does not change its state. */
	reset.attr_mask = IBV_QP_ACCESS_FLAGS;
	ck_assert_int_eq(uv_modify_qp(h.fd, UV_WRITE, &reset), 0);
	ck_assert_int_eq(bed_complete(NULL, qp.qpn, IBV_WC_SEND), IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp.handle, NULL), 0);
	ck_assert_int_eq(bed_complete(NULL, qp.qpn, IBV_WC_SEND), IBV_WC_SUCCESS);
	ck_assert_int_eq(bed_complete(NULL, 0, IBV_WC_SEND), IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_the_filter_knows_the_latest_256_qps_in_error)
{
	bed_add("error:wc.send=FATAL_ERR");
	for (uint32_t i = 1000; i < 1256; i++)
		ck_assert_int_eq(bed_complete(NULL, i, IBV_WC_SEND), IBV_WC_FATAL_ERR);
	for (uint32_t i = 1000; i < 1256; i++)
		ck_assert_int_eq(bed_complete(NULL, i, IBV_WC_RECV), IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(bed_complete(NULL, 1256, IBV_WC_SEND), IBV_WC_FATAL_ERR);
	for (uint32_t i = 0; i < 1257; i++)
		ck_assert_int_eq(bed_complete(NULL, i, IBV_WC_RECV), i > 1000 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_the_rule_of_a_kind_of_completion_goes_before_the_rule_of_all)
{
	bed_add("error:wc=FATAL_ERR@1+,wc.send=GENERAL_ERR@2");
	/* Each rule counts all completions that it is about. */
	ck_assert_int_eq(bed_complete(NULL, 1, IBV_WC_SEND), IBV_WC_FATAL_ERR);
	ck_assert_int_eq(bed_complete(NULL, 2, IBV_WC_SEND), IBV_WC_GENERAL_ERR);
	ck_assert_int_eq(bed_complete(NULL, 3, IBV_WC_SEND), IBV_WC_FATAL_ERR);
}
END_TEST

START_TEST(test_flushed_completions_do_not_count)
{
	bed_add("error:wc.send=FATAL_ERR@1,wc.recv=GENERAL_ERR@2");
	ck_assert_int_eq(bed_complete(NULL, 1, IBV_WC_SEND), IBV_WC_FATAL_ERR);
	ck_assert_int_eq(bed_complete(NULL, 1, IBV_WC_RECV), IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(bed_complete(NULL, 2, IBV_WC_RECV), IBV_WC_SUCCESS);
	ck_assert_int_eq(bed_complete(NULL, 2, IBV_WC_RECV), IBV_WC_GENERAL_ERR);
}
END_TEST

START_TEST(test_a_new_qp_with_the_number_of_one_in_error_works)
{
	uint32_t bad;

	make_qp();
	bed_add("error:wc=GENERAL_ERR@1");
	ck_assert_int_eq(post(1, &bad), 0);
	ck_assert_uint_eq(poll_status(), IBV_WC_GENERAL_ERR);
	ck_assert_int_eq(uv_destroy_qp(h.fd, UV_WRITE, qp.handle, NULL), 0);
	make_qp();
	ck_assert_int_eq(post(1, &bad), 0);
	ck_assert_uint_eq(poll_status(), IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_each_kind_of_completion_has_its_rule)
{
	static const struct {
		enum ibv_wc_opcode opcode;
		enum ibv_wc_status status;
	} kinds[] = {
		{ IBV_WC_SEND, IBV_WC_LOC_LEN_ERR },
		{ IBV_WC_RDMA_WRITE, IBV_WC_LOC_QP_OP_ERR },
		{ IBV_WC_RDMA_READ, IBV_WC_LOC_PROT_ERR },
		{ IBV_WC_FETCH_ADD, IBV_WC_REM_OP_ERR },
		{ IBV_WC_COMP_SWAP, IBV_WC_REM_OP_ERR },
		{ IBV_WC_BIND_MW, IBV_WC_MW_BIND_ERR },
		{ IBV_WC_LOCAL_INV, IBV_WC_BAD_RESP_ERR },
		{ IBV_WC_RECV, IBV_WC_REM_ABORT_ERR },
		{ IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_REM_ABORT_ERR },
	};
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq one = { .context = &context };

	bed_add("error:wc.send=LOC_LEN_ERR,wc.write=IBV_WC_LOC_QP_OP_ERR,wc.read=LOC_PROT_ERR,wc.atomic=REM_OP_ERR,"
		"wc.bind_mw=MW_BIND_ERR,wc.local_inv=BAD_RESP_ERR,wc.recv=REM_ABORT_ERR");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct ibv_wc wc = { .opcode = kinds[i].opcode, .qp_num = i };

		uvd_filter_completion(&one, &wc);
		ck_assert_int_eq(wc.status, kinds[i].status);
	}
}
END_TEST

START_TEST(test_a_completion_that_failed_already_keeps_its_status)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq one = { .context = &context };
	struct ibv_wc wc = { .status = IBV_WC_RNR_RETRY_EXC_ERR };

	bed_add("error:wc=FATAL_ERR@1");
	uvd_filter_completion(&one, &wc);
	ck_assert_int_eq(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	wc.status = IBV_WC_SUCCESS;
	uvd_filter_completion(&one, &wc);
	ck_assert_int_eq(wc.status, IBV_WC_FATAL_ERR);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_the_calls_that_the_user_chose_fail, 0, UV_ARRAY_SIZE(calls));
	tcase_add_test(tc, test_a_failing_call_returns_the_errno_and_leaves_nothing);
	tcase_add_test(tc, test_a_seed_decides_which_calls_a_percentage_chooses);
	tcase_add_test(tc, test_a_percentage_of_100_is_all_calls_and_99_is_not);
	tcase_add_test(tc, test_the_seed_of_the_options_is_the_one_of_all_rules);
	tcase_add_test(tc, test_rules_of_one_filter_choose_independently_of_each_other);
	tcase_add_test(tc, test_a_wrong_rule_is_refused);
	tcase_add_test(tc, test_a_rule_is_for_the_nth_object_that_is_created);
	tcase_add_test(tc, test_a_rule_is_for_the_qp_of_a_number_or_a_type);
	tcase_add_test(tc, test_completions_have_errors_for_one_object_only);
	tcase_add_test(tc, test_a_failed_creation_is_not_the_object_of_a_rule);
	tcase_add_test(tc, test_a_region_with_new_memory_stays_the_object_of_a_rule);
	tcase_add_test(tc, test_a_rule_is_for_the_region_of_an_lkey);
	tcase_add_test(tc, test_each_type_of_qp_has_its_name);
	tcase_add_test(tc, test_completions_of_a_qp_have_errors_while_it_exists);
	tcase_add_test(tc, test_completions_of_the_nth_cq_have_errors);
	tcase_add_test(tc, test_a_failing_post_names_the_first_request_as_bad);
	tcase_add_test(tc, test_a_failing_receive_is_named_as_bad);
	tcase_add_test(tc, test_a_doorbell_fails_as_a_post);
	tcase_add_test(tc, test_a_completion_has_the_status_and_the_qp_is_in_error_from_then_on);
	tcase_add_test(tc, test_a_qp_whose_reset_or_end_fails_stays_in_error);
	tcase_add_test(tc, test_the_filter_knows_the_latest_256_qps_in_error);
	tcase_add_test(tc, test_the_rule_of_a_kind_of_completion_goes_before_the_rule_of_all);
	tcase_add_test(tc, test_flushed_completions_do_not_count);
	tcase_add_test(tc, test_a_new_qp_with_the_number_of_one_in_error_works);
	tcase_add_test(tc, test_each_kind_of_completion_has_its_rule);
	tcase_add_test(tc, test_a_completion_that_failed_already_keeps_its_status);
	return run_suite(__FILE__, tc);
}
