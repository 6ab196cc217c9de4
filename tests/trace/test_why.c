/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explanations in traces: which recorder gets which, and what `uverbsctl trace` and `explain` print of them. */
#include "backends/soft/fabric.h"
#include "backends/soft/memory/memory.h"
#include "bed.h"
#include "explain/explain.h"
#include "host/host.h"
#include "trace/reader.h"
#include "../suite.h"

static uint32_t pd, cq;
static struct uv_qp qps[2];
static int async_fd, memfd;

static void why_setup(void)
{
	uint32_t comp_vectors;

	bed_open("soft");
	memfd = memfd_create("why", MFD_CLOEXEC);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(bed.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

static void why_teardown(void)
{
	close(async_fd);
	close(memfd);
	if (bed.file)
		bed_close();
}

/* Another recorder than the bed's, into memfd. */
static struct uvd_recorder *record(struct uvd_recorder_config config)
{
	struct uvd_recorder *r;
	int err;

	r = uvd_recorder_new(&bed.engine, dup(memfd), &config, &err);
	ck_assert_msg(r, "%s", uvd_errno_name(err));
	return r;
}

/* What a QP of this number is told. */
static void explain_qp(uint32_t qpn)
{
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_COMPLETION,
		.why = uvd_why(KEY_OTHER_PD, { .word = "l_key" }, { 0x112 }),
		.object = "QP",
		.number = qpn,
		.pid = 4711,
		.status = IBV_WC_LOC_PROT_ERR,
		.opcode = IBV_WR_SEND,
		.wr_id = 1,
		.length = 64,
	};

	uvd_explain(&bed.dev->ib, atomic_load(&bed.file->context), &e);
}

/*
 * Reads a trace. Returns the explanations as JSON, in an array that the caller frees. kinds[KIND] is the number of records of each
 * kind; text: what `uverbsctl trace --why` prints, and what it prints with --json.
 */
static json_t *read_trace(int fd, unsigned int *kinds, char **text, char **json)
{
	struct uvd_trace_reader r = { .what = "test", .from = fdopen(dup(fd), "r"), .explanations = true };
	struct uvd_trace_history *history[] = { uvd_trace_history_new(false), uvd_trace_history_new(true) };
	size_t lens[2];
	FILE *to[] = { open_memstream(text, &lens[0]), open_memstream(json, &lens[1]) };
	const struct uvd_trace_record *record;
	json_t *whys = json_array();
	bool bad = false;

	rewind(r.from);
	ck_assert(uvd_trace_open_reader(&r));
	while ((record = uvd_trace_next(&r, &bad))) {
		kinds[record->kind]++;
		if (record->kind == UVD_TRACE_CALL) {
			struct uvd_trace_decoded d;

			ck_assert(uvd_trace_decode(&r, (const void *)record, &d));
			for (int i = 0; i < 2; i++)
				uvd_trace_history_add(history[i], &d);
			uvd_trace_decoded_free(&d);
		} else if (record->kind == UVD_TRACE_WHY) {
			json_array_append_new(whys, uvd_trace_why_json(&r, (const void *)record));
			for (int i = 0; i < 2; i++)
				uvd_trace_history_print(history[i], to[i], &r, (const void *)record);
		}
	}
	ck_assert(!bad);
	for (int i = 0; i < 2; i++) {
		uvd_trace_history_free(history[i]);
		fclose(to[i]);
	}
	uvd_trace_close_reader(&r);
	fclose(r.from);
	return whys;
}

/* The explanations of a trace, whose kinds of records are counted. */
static json_t *whys_of(int fd, unsigned int kinds[UVD_TRACE_WHY + 1])
{
	char *text, *json;
	json_t *whys;

	memset(kinds, 0, (UVD_TRACE_WHY + 1) * sizeof(*kinds));
	whys = read_trace(fd, kinds, &text, &json);
	free(text);
	free(json);
	return whys;
}

START_TEST(test_a_trace_has_the_explanation_with_its_values)
{
	unsigned int kinds[UVD_TRACE_WHY + 1];
	json_t *whys, *why;

	explain_qp(0x12);
	bed_end();
	whys = whys_of(bed_trace(), kinds);
	ck_assert_uint_eq(json_array_size(whys), 1);
	why = json_array_get(whys, 0);
	ck_assert_str_eq(json_string_value(json_object_get(why, "kind")), "why");
	ck_assert_str_eq(json_string_value(json_object_get(why, "reason")), "key-other-pd");
	ck_assert_str_eq(json_string_value(json_object_get(why, "device")), "hfi1_0");
	ck_assert_int_eq(bed_number(why, "values", "key"), -1); /* as the text has it */
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(why, "values"), "key")), "0x112");
	ck_assert_int_eq(json_integer_value(json_object_get(why, "pid")), 4711);
	ck_assert_int_eq(json_integer_value(json_object_get(why, "file")), bed.file->watched.number);
	json_decref(whys);
}
END_TEST

START_TEST(test_a_refused_call_is_explained_in_the_trace)
{
	unsigned int kinds[UVD_TRACE_WHY + 1];
	json_t *whys;

	ck_assert_int_eq(uv_dealloc_pd(bed.fd, UV_WRITE, 4711), -ENOENT);
	bed_end();
	whys = whys_of(bed_trace(), kinds);
	ck_assert_uint_eq(json_array_size(whys), 1);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(whys, 0), "verb")),
			 "IB_USER_VERBS_CMD_DEALLOC_PD");
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(whys, 0), "errno")), "ENOENT");
	json_decref(whys);
}
END_TEST

/* So it costs clients with mapped queues nothing, and its reader nothing that it does not print. */
START_TEST(test_a_recorder_of_explanations_gets_nothing_else)
{
	unsigned int kinds[UVD_TRACE_WHY + 1];
	struct uvd_recorder *r;
	json_t *whys;

	bed_end();
	ck_assert_uint_eq(__atomic_load_n(&bed.engine.observers.complete, __ATOMIC_RELAXED), 0);
	r = record((struct uvd_recorder_config){ .explanations = true });
	ck_assert_uint_eq(__atomic_load_n(&bed.engine.observers.complete, __ATOMIC_RELAXED), 0);
	ck_assert_int_eq(uv_dealloc_pd(bed.fd, UV_WRITE, 4711), -ENOENT);
	ck_assert_int_eq(uv_dealloc_pd(bed.fd, UV_WRITE, pd), 0);
	explain_qp(0x12);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	ck_assert_uint_eq(__atomic_load_n(&bed.engine.observers.complete, __ATOMIC_RELAXED), 0);
	whys = whys_of(memfd, kinds);
	ck_assert_uint_eq(json_array_size(whys), 2);
	ck_assert_uint_eq(kinds[UVD_TRACE_FILE], 1);
	ck_assert_uint_eq(kinds[UVD_TRACE_CALL] + kinds[UVD_TRACE_LOST], 0);
	ck_assert_int_lt(lseek(memfd, 0, SEEK_END), 4096); /* no tree */
	json_decref(whys);
}
END_TEST

/* mode: 0 the opener's user; 1 another user; 2 the opener may do more than the user; 3 another process */
START_TEST(test_a_user_gets_the_explanations_of_files_that_he_has_opened)
{
	struct uvd_recorder_config config = { .explanations = true, .one_user = true };
	unsigned int kinds[UVD_TRACE_WHY + 1];
	struct uvd_recorder *r;
	json_t *whys;

	config.uid = UVD_HOST_UID + (_i == 1);
	config.pid = _i == 3 ? 4712 : 0;
	bed.file->watched.privileged = _i == 2;
	bed_end();
	r = record(config);
	explain_qp(0x12);
	ck_assert_int_eq(uvd_recorder_free(r), 0);
	whys = whys_of(memfd, kinds);
	ck_assert_uint_eq(json_array_size(whys), _i == 0);
	ck_assert_uint_eq(kinds[UVD_TRACE_FILE], _i == 0);
	json_decref(whys);
}
END_TEST

/* ---- both ends --------------------------------------------------------------------------------------------------- */

static int to_init(const struct uv_qp *qp)
{
	struct ib_uverbs_modify_qp cmd = {
		.qp_handle = qp->handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};

	return uv_modify_qp(bed.fd, UV_WRITE, &cmd);
}

static int to_rtr(const struct uv_qp *qp, uint32_t peer)
{
	struct ib_uverbs_modify_qp cmd = {
		.qp_handle = qp->handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.dest = { .dlid = 1, .port_num = 1 },
	};

	return uv_modify_qp(bed.fd, UV_WRITE, &cmd);
}

static void make_qps(void)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &qps[i]), 0);
		ck_assert_int_eq(to_init(&qps[i]), 0);
	}
}

static unsigned int count(const char *text, const char *words)
{
	unsigned int n = 0;

	while ((text = strstr(text, words))) {
		n++;
		text++;
	}
	return n;
}

START_TEST(test_why_shows_the_calls_of_both_ends)
{
	struct ib_uverbs_recv_wr wr = {};
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	char *text, *json, *peer;
	json_t *o;

	make_qps();
	ck_assert_int_eq(to_rtr(&qps[0], qps[1].qpn), 0);
	ck_assert_int_eq(to_rtr(&qps[1], qps[0].qpn), 0);
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(uv_post_recv(bed.fd, UV_WRITE, qps[1].handle, &wr, 1, NULL, 0, NULL), 0);
	explain_qp(qps[0].qpn);
	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	peer = strstr(text, "\n  the peer:\n");
	ck_assert_msg(strstr(text, " why: QP 0x") && peer, "%s", text);

	ck_assert_uint_eq(count(text, "CREATE_QP("), 2);
	ck_assert_uint_eq(count(text, "qp_state=INIT"), 2);
	ck_assert_uint_eq(count(text, "qp_state=RTR"), 2);
	ck_assert_uint_eq(count(peer, "CREATE_QP("), 1);
	/* The last eight. */
	ck_assert_uint_eq(count(text, "POST_RECV"), 8);
	ck_assert_uint_eq(count(peer, "POST_RECV"), 8);
	o = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
	ck_assert_uint_eq(json_array_size(json_object_get(o, "calls")), 3);
	ck_assert_uint_eq(json_array_size(json_object_get(o, "peer_calls")), 11);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "peer")), qps[1].qpn);
	json_decref(o);
	free(text);
	free(json);
}
END_TEST

START_TEST(test_why_says_that_the_peer_is_not_in_the_trace)
{
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	char *text, *json;

	make_qps();
	ck_assert_int_eq(to_rtr(&qps[0], 0x777), 0);
	explain_qp(qps[0].qpn);
	explain_qp(0x555); /* no QP of the trace */
	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	ck_assert_msg(strstr(text, "  the peer, QP 0x777, is not in this trace\n"), "%s", text);
	ck_assert_uint_eq(count(text, " why: QP 0x"), 2);
	ck_assert_uint_eq(count(text, "CREATE_QP("), 1);
	free(text);
	free(json);
}
END_TEST

/* Another QP gets the handle of a destroyed one: its calls are not those of the first. */
START_TEST(test_why_does_not_mix_qps_of_one_handle)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	char *text, *json;
	uint32_t events;

	ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &qps[0]), 0);
	ck_assert_int_eq(to_init(&qps[0]), 0);
	ck_assert_int_eq(uv_destroy_qp(bed.fd, UV_WRITE, qps[0].handle, &events), 0);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &qps[1]), 0);
		if (qps[1].handle == qps[0].handle)
			break;
		ck_assert_int_eq(uv_destroy_qp(bed.fd, UV_WRITE, qps[1].handle, &events), 0);
	}
	ck_assert_uint_eq(qps[1].handle, qps[0].handle);
	explain_qp(qps[1].qpn);
	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	ck_assert_uint_eq(count(text, "CREATE_QP("), 1);
	ck_assert_uint_eq(count(text, "MODIFY("), 0);
	free(text);
	free(json);
}
END_TEST

static int to_reset(const struct uv_qp *qp)
{
	struct ib_uverbs_modify_qp cmd = { .qp_handle = qp->handle, .attr_mask = IBV_QP_STATE };

	return uv_modify_qp(bed.fd, UV_WRITE, &cmd);
}

/* The call that has created it, and the latest of the others: 16 changes and 8 posts. */
START_TEST(test_why_shows_the_latest_calls_of_a_qp)
{
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	struct ib_uverbs_recv_wr wr = {};
	char *text, *json;

	make_qps();
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(to_reset(&qps[0]), 0);
		ck_assert_int_eq(to_init(&qps[0]), 0);
	}
	for (wr.wr_id = 0x100; wr.wr_id < 0x10c; wr.wr_id++)
		ck_assert_int_eq(uv_post_recv(bed.fd, UV_WRITE, qps[0].handle, &wr, 1, NULL, 0, NULL), 0);
	explain_qp(qps[0].qpn);
	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	ck_assert_uint_eq(count(text, "CREATE_QP("), 1);
	ck_assert_uint_eq(count(text, "QP.MODIFY("), 16);
	ck_assert_uint_eq(count(text, "POST_RECV"), 8);
	for (int i = 0; i < 12; i++) {
		char id[32];

		snprintf(id, sizeof(id), "wr_id=%d", 0x100 + i);
		ck_assert_msg(!strstr(text, id) == (i < 4), "%s: %s", id, text);
	}
	free(text);
	free(json);
}
END_TEST

/* Neither a change that was refused, nor one to a QP itself, gives it another end. */
START_TEST(test_why_shows_no_peer_that_there_is_not)
{
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	char *text, *json;

	make_qps(); /* a call that is refused is explained, too */
	if (_i) {
		ck_assert_int_eq(to_rtr(&qps[0], qps[0].qpn), 0);
	} else {
		ck_assert_int_eq(to_reset(&qps[0]), 0);
		ck_assert_int_eq(to_rtr(&qps[0], qps[1].qpn), -EINVAL);
	}
	explain_qp(qps[0].qpn);
	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	ck_assert_msg(!strstr(text, "the peer") && count(text, "CREATE_QP(") == 2u - _i, "%s", text);
	ck_assert_msg(!strstr(json, "peer_calls") && !strstr(json, "\"peer\":") == !_i, "%s", json);
	free(text);
	free(json);
}
END_TEST

/* The oldest of more than 1024 QPs has no calls any more, and the next one has. */
START_TEST(test_why_remembers_1024_qps)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	char *text, *json;

	ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &qps[0]), 0);
	ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &qps[1]), 0);
	for (int i = 1; i < 1024; i++) {
		struct uv_qp more;

		ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &more), 0);
	}
	explain_qp(qps[_i].qpn);
	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	ck_assert_uint_eq(count(text, " why: QP 0x"), 1);
	ck_assert_uint_eq(count(text, "CREATE_QP("), _i);
	free(text);
	free(json);
}
END_TEST

/* ---- which QP ---------------------------------------------------------------------------------------------------- */

static char *text_of_trace(void)
{
	unsigned int kinds[UVD_TRACE_WHY + 1] = { 0 };
	char *text, *json;

	bed_end();
	json_decref(read_trace(bed_trace(), kinds, &text, &json));
	free(json);
	return text;
}

/* Two QPs send to this one; its peer is the one that it sends to. */
START_TEST(test_why_shows_the_peer_that_is_connected_to_it)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);
	struct ib_uverbs_recv_wr wr = { .wr_id = 0x111 };
	struct uv_qp third;
	char *text;

	make_qps();
	ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, &third), 0);
	ck_assert_int_eq(to_init(&third), 0);
	ck_assert_int_eq(to_rtr(&qps[0], qps[1].qpn), 0);
	ck_assert_int_eq(to_rtr(&qps[1], qps[0].qpn), 0);
	ck_assert_int_eq(to_rtr(&third, qps[0].qpn), 0);
	ck_assert_int_eq(uv_post_recv(bed.fd, UV_WRITE, third.handle, &wr, 1, NULL, 0, NULL), 0);
	explain_qp(qps[0].qpn);
	text = text_of_trace();
	ck_assert_msg(strstr(text, "  the peer:\n") && !strstr(text, "wr_id=273"), "%s", text);
	free(text);
}
END_TEST

/* Queries are not what led to it; the destruction is. */
START_TEST(test_why_shows_what_changes_a_qp_and_no_queries)
{
	struct ib_uverbs_query_qp_resp resp;
	uint32_t events, qpn;
	char *text;

	make_qps();
	ck_assert_int_eq(uv_query_qp(bed.fd, UV_WRITE, qps[0].handle, &resp), 0);
	qpn = qps[0].qpn;
	ck_assert_int_eq(uv_destroy_qp(bed.fd, UV_WRITE, qps[0].handle, &events), 0);
	explain_qp(qpn);
	text = text_of_trace();
	ck_assert_msg(!strstr(text, "QUERY(") && count(text, "DESTROY") == 1 && count(text, "CREATE_QP(") == 1, "%s",
		      text);
	free(text);
}
END_TEST

/* A CQ can have the number of a QP. */
START_TEST(test_why_of_a_cq_shows_no_qp)
{
	struct uvd_explained e = { .kind = UVD_EXPLAINED_EVENT,
				   .why = uvd_why(CQ_OVERRUN, { 1 }),
				   .object = "CQ",
				   .event = IBV_EVENT_CQ_ERR };
	char *text;

	make_qps();
	e.number = qps[0].qpn;
	uvd_explain(&bed.dev->ib, atomic_load(&bed.file->context), &e);
	text = text_of_trace();
	ck_assert_msg(strstr(text, " why: CQ 0x") && !strstr(text, "CREATE_QP("), "%s", text);
	free(text);
}
END_TEST

/* ---- QPs of one number ------------------------------------------------------------------------------------------- */

/* The next QP gets this number, which is free. */
static void next_has_number(uint32_t qpn)
{
	uvd_fabric_set_first_qpn(soft_device(&bed.dev->ib)->fabric, qpn);
}

/* Another open file of the device, with a PD and a CQ, in which the next calls are made. */
static void another_file(void)
{
	uint32_t comp_vectors;
	int other_async;

	bed.fd = uv_open();
	ck_assert_int_ge(bed.fd, 0);
	ck_assert_int_eq(uv_get_context(bed.fd, UV_WRITE, &other_async, &comp_vectors), 0);
	close(other_async);
	ck_assert_int_eq(uv_alloc_pd(bed.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(bed.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

static void destroy(const struct uv_qp *qp)
{
	uint32_t events;

	ck_assert_int_eq(uv_destroy_qp(bed.fd, UV_WRITE, qp->handle, &events), 0);
}

static void make_qp(struct uv_qp *qp, uint32_t qpn)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	next_has_number(qpn);
	ck_assert_int_eq(uv_create_qp(bed.fd, UV_WRITE, &attr, qp), 0);
	ck_assert_uint_eq(qp->qpn, qpn);
}

static void post(const struct uv_qp *qp, uint64_t id)
{
	struct ib_uverbs_recv_wr wr = { .wr_id = id };

	ck_assert_int_eq(uv_post_recv(bed.fd, UV_WRITE, qp->handle, &wr, 1, NULL, 0, NULL), 0);
}

/* The first was connected to it. Then another one got its number, and its handle in another file. */
START_TEST(test_why_shows_the_qp_of_its_own_file_and_the_peer_that_was_connected)
{
	const int first = bed.fd;
	struct uv_qp other;
	char *text;

	make_qps();
	ck_assert_int_eq(to_rtr(&qps[0], qps[1].qpn), 0);
	ck_assert_int_eq(to_rtr(&qps[1], qps[0].qpn), 0);
	post(&qps[0], 111);
	post(&qps[1], 222);
	destroy(&qps[0]);
	destroy(&qps[1]);
	another_file();
	make_qp(&other, qps[0].qpn);
	ck_assert_int_eq(to_init(&other), 0);
	post(&other, 333);
	make_qp(&other, qps[1].qpn);
	ck_assert_int_eq(to_init(&other), 0);
	post(&other, 444);
	explain_qp(qps[0].qpn);
	text = text_of_trace();
	ck_assert_msg(strstr(text, "wr_id=111") && strstr(text, "wr_id=222"), "%s", text);
	ck_assert_msg(!strstr(text, "wr_id=333") && !strstr(text, "wr_id=444"), "%s", text);
	free(text);
	uv_close(bed.fd);
	bed.fd = first;
}
END_TEST

/* Nothing was connected to it. */
START_TEST(test_why_takes_the_latest_qp_of_a_number_for_the_peer)
{
	struct uv_qp other;
	const int first = bed.fd;
	char *text;

	make_qps();
	ck_assert_int_eq(to_rtr(&qps[0], 77), 0);
	another_file();
	make_qp(&other, 77);
	ck_assert_int_eq(to_init(&other), 0);
	post(&other, 333);
	destroy(&other);
	uv_close(bed.fd);
	another_file();
	make_qp(&other, 77);
	ck_assert_int_eq(to_init(&other), 0);
	post(&other, 444);
	explain_qp(qps[0].qpn);
	text = text_of_trace();
	ck_assert_msg(strstr(text, "wr_id=444") && !strstr(text, "wr_id=333"), "%s", text);
	free(text);
	uv_close(bed.fd);
	bed.fd = first;
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("why");

	tcase_add_checked_fixture(tc, why_setup, why_teardown);
	tcase_add_test(tc, test_a_trace_has_the_explanation_with_its_values);
	tcase_add_test(tc, test_a_refused_call_is_explained_in_the_trace);
	tcase_add_test(tc, test_a_recorder_of_explanations_gets_nothing_else);
	tcase_add_loop_test(tc, test_a_user_gets_the_explanations_of_files_that_he_has_opened, 0, 4);
	tcase_add_test(tc, test_why_shows_the_calls_of_both_ends);
	tcase_add_test(tc, test_why_says_that_the_peer_is_not_in_the_trace);
	tcase_add_test(tc, test_why_does_not_mix_qps_of_one_handle);
	tcase_add_test(tc, test_why_shows_the_latest_calls_of_a_qp);
	tcase_add_loop_test(tc, test_why_shows_no_peer_that_there_is_not, 0, 2);
	tcase_add_loop_test(tc, test_why_remembers_1024_qps, 0, 2);
	tcase_add_test(tc, test_why_shows_the_peer_that_is_connected_to_it);
	tcase_add_test(tc, test_why_shows_what_changes_a_qp_and_no_queries);
	tcase_add_test(tc, test_why_of_a_cq_shows_no_qp);
	tcase_add_test(tc, test_why_shows_the_qp_of_its_own_file_and_the_peer_that_was_connected);
	tcase_add_test(tc, test_why_takes_the_latest_qp_of_a_number_for_the_peer);
	return run_suite("why", tc);
}
