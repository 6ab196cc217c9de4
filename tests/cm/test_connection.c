/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connections, from the request to the end of timewait: which events both sides get, and with what. */
#include <errno.h>
#include "conversation.h"

static struct conversation v;

START_TEST(test_both_sides_are_told_of_each_step)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = {};

	conversation_begin(&v);
	p.listener = conv_listener(&v, RDMA_PS_TCP, CONV_PORT, 5);
	p.active = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, p.active, "request"), 0);
	ev = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0);
	p.passive = ev.id;
	ck_assert_uint_eq(ev.uid, CONV_LISTENER_UID);
	/* All the room that there is, whatever was sent; and the peer's depths change their names. */
	ck_assert_uint_eq(ev.param.conn.private_data_len, 56);
	ck_assert_str_eq((char *)ev.param.conn.private_data, "request");
	ck_assert_uint_eq(ev.param.conn.responder_resources, 3);
	ck_assert_uint_eq(ev.param.conn.initiator_depth, 2);
	ck_assert_uint_eq(ev.param.conn.retry_count, 6);
	ck_assert_uint_eq(ev.param.conn.rnr_retry_count, 5);
	ck_assert_uint_eq(ev.param.conn.qp_num, 0x11);

	ck_assert_int_eq(conv_accept(&v, v.b, p.passive, CONV_CHILD_UID, true, "reply"), 0);
	ev = conv_expect(&v, v.a, CM_EVENT_CONNECT_RESPONSE, p.active);
	ck_assert_uint_eq(ev.param.conn.private_data_len, 196);
	ck_assert_str_eq((char *)ev.param.conn.private_data, "reply");
	ck_assert_uint_eq(ev.param.conn.qp_num, 0x12);
	ck_assert_uint_eq(ev.param.conn.retry_count, 0);

	ck_assert_int_eq(conv_accept(&v, v.a, p.active, 0, false, ""), 0);
	ck_assert_uint_eq(conv_expect(&v, v.b, CM_EVENT_ESTABLISHED, p.passive).uid, CONV_CHILD_UID);
	conv_expect_none(&v, v.a);

	ck_assert_int_eq(conv_disconnect(&v, v.a, p.active), 0);
	conv_expect(&v, v.b, CM_EVENT_DISCONNECTED, p.passive);
	conv_expect_none(&v, v.a);
	ck_assert_int_eq(conv_disconnect(&v, v.b, p.passive), 0);
	conv_expect(&v, v.a, CM_EVENT_DISCONNECTED, p.active);
	conv_time_out(&v, p.active);
	conv_expect(&v, v.a, CM_EVENT_TIMEWAIT_EXIT, p.active);
	conv_expect_none(&v, v.b);
	conversation_end(&v);
}
END_TEST

START_TEST(test_reject_tells_the_reason_and_the_data)
{
	struct rdma_ucm_event_resp ev;
	struct pair p;

	conversation_begin(&v);
	p = conv_requested(&v);
	ck_assert_int_eq(conv_reject(&v, v.b, p.passive, "no"), 0);
	ev = conv_expect(&v, v.a, CM_EVENT_REJECTED, p.active);
	ck_assert_int_eq((int)ev.status, CM_REJ_CONSUMER);
	ck_assert_uint_eq(ev.param.conn.private_data_len, 148);
	ck_assert_str_eq((char *)ev.param.conn.private_data, "no");
	ck_assert_int_eq(conv_reject(&v, v.b, p.passive, ""), -EINVAL);
	ck_assert_int_eq(conv_accept(&v, v.b, p.passive, 1, true, ""), -EINVAL);
	conversation_end(&v);
}
END_TEST

START_TEST(test_request_to_a_port_without_a_listener_is_rejected)
{
	uint32_t id;

	conversation_begin(&v);
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_REJECTED, id).status, CM_REJ_INVALID_SERVICE_ID);
	conversation_end(&v);
}
END_TEST

/* A request for which the listener has no place is not answered, so its sender tries again. */
START_TEST(test_request_beyond_the_backlog_is_taken_once_there_is_a_place)
{
	uint32_t first, second;

	conversation_begin(&v);
	conv_listener(&v, RDMA_PS_TCP, CONV_PORT, 1);
	first = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	second = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, first, "first"), 0);
	ck_assert_int_eq(conv_connect(&v, v.a, second, "second"), 0);
	conv_time_out(&v, second);
	ck_assert_str_eq((char *)conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).param.conn.private_data, "first");
	conv_expect_none(&v, v.b);
	conv_time_out(&v, second);
	ck_assert_str_eq((char *)conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).param.conn.private_data, "second");
	conversation_end(&v);
}
END_TEST

static struct cm_id *id_of(uint32_t number)
{
	return cm_number_find(&v.cm->ids, number);
}

START_TEST(test_request_that_nobody_answers_ends_unreachable)
{
	struct pair p;
	int tries;

	conversation_begin(&v);
	p = conv_requested(&v);
	for (tries = 0; !uvd_cm_has_events(v.a); tries++)
		conv_time_out(&v, p.active);
	ck_assert_int_eq(tries, 16);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_UNREACHABLE, p.active).status, -ETIMEDOUT);
	conversation_end(&v);
}
END_TEST

/* The second copy of a request is answered with an MRA: the sender waits longer, and there is no second connection. */
START_TEST(test_request_that_comes_twice_makes_one_connection)
{
	struct pair p;

	conversation_begin(&v);
	p = conv_requested(&v);
	conv_time_out(&v, p.active);
	ck_assert_int_eq(id_of(p.active)->conn, CONN_MRA_REQ_RCVD);
	ck_assert_int_eq(id_of(p.active)->timer, CM_TIMER_MRA);
	conv_expect_none(&v, v.b);
	ck_assert_int_eq(conv_accept(&v, v.b, p.passive, CONV_CHILD_UID, true, ""), 0);
	conv_expect(&v, v.a, CM_EVENT_CONNECT_RESPONSE, p.active);
	conversation_end(&v);
}
END_TEST

START_TEST(test_reply_that_comes_twice_is_told_once)
{
	struct pair p;

	conversation_begin(&v);
	p = conv_replied(&v);
	conv_time_out(&v, p.passive);
	ck_assert_int_eq(id_of(p.passive)->conn, CONN_MRA_REP_RCVD);
	conv_expect_none(&v, v.a);
	ck_assert_int_eq(conv_accept(&v, v.a, p.active, 0, false, ""), 0);
	conv_expect(&v, v.b, CM_EVENT_ESTABLISHED, p.passive);
	conversation_end(&v);
}
END_TEST

START_TEST(test_disconnect_that_nobody_answers_ends_in_timewait)
{
	struct rdma_ucm_event_resp ev;
	struct pair p;

	conversation_begin(&v);
	p = conv_established(&v);
	ck_assert_int_eq(conv_disconnect(&v, v.a, p.active), 0);
	while (!uvd_cm_has_events(v.a))
		conv_time_out(&v, p.active);
	ev = conv_expect(&v, v.a, CM_EVENT_DISCONNECTED, p.active);
	ck_assert_int_eq((int)ev.status, -ETIMEDOUT);
	conv_time_out(&v, p.active);
	conv_expect(&v, v.a, CM_EVENT_TIMEWAIT_EXIT, p.active);
	conversation_end(&v);
}
END_TEST

/* In the state that the function makes, one end is destroyed: its peer must get this event. */
static void expect_after_destroy(struct pair (*make)(struct conversation *v), bool active, enum cm_event_type type,
				 int status)
{
	struct uvd_cm_file *dies, *lives;
	struct rdma_ucm_event_resp ev;
	struct pair p;

	conversation_begin(&v);
	p = make(&v);
	dies = active ? v.a : v.b;
	lives = active ? v.b : v.a;
	ck_assert_int_ge(conv_destroy(&v, dies, active ? p.active : p.passive), 0);
	ev = conv_expect(&v, lives, type, active ? p.passive : p.active);
	ck_assert_int_eq((int)ev.status, status);
	conversation_end(&v);
}

START_TEST(test_peer_learns_that_an_identifier_was_destroyed)
{
	expect_after_destroy(conv_requested, false, CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	expect_after_destroy(conv_replied, false, CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	expect_after_destroy(conv_replied, true, CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	expect_after_destroy(conv_established, false, CM_EVENT_DISCONNECTED, 0);
	expect_after_destroy(conv_established, true, CM_EVENT_DISCONNECTED, 0);
}
END_TEST

/* Its owner has not told us its name for the connection yet, and would not know whom the event is about. */
START_TEST(test_request_that_its_sender_withdraws_is_not_told)
{
	struct pair p;

	conversation_begin(&v);
	p = conv_requested(&v);
	ck_assert_int_ge(conv_destroy(&v, v.a, p.active), 0);
	conv_expect_none(&v, v.b);
	ck_assert_int_eq(conv_accept(&v, v.b, p.passive, CONV_CHILD_UID, true, ""), -EINVAL);
	conversation_end(&v);
}
END_TEST

START_TEST(test_close_ends_connections_and_requests_that_were_not_reported)
{
	struct pair p;
	uint32_t late;

	conversation_begin(&v);
	p = conv_established(&v);
	late = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, late, ""), 0);
	uvd_cm_close(v.b);
	v.b = NULL;
	/* In the order in which their peers were made: the listener, with its request, is the oldest. */
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_REJECTED, late).status, CM_REJ_CONSUMER);
	conv_expect(&v, v.a, CM_EVENT_DISCONNECTED, p.active);
	conv_expect_none(&v, v.a);
	conversation_end(&v);
}
END_TEST

/* Its owner has forgotten the first connection, and uses the QP for another: both are told. */
START_TEST(test_second_connection_of_a_qp_is_stale_and_ends_the_first)
{
	struct rdma_ucm_connect in = { .conn_param = { .qp_num = 0x11, .valid = 1 } };
	struct pair p;

	conversation_begin(&v);
	p = conv_established(&v);
	in.id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_write(&v, v.a, RDMA_USER_CM_CMD_CONNECT, &in, sizeof(in), NULL, 0), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_REJECTED, in.id).status, CM_REJ_STALE);
	conv_expect_none(&v, v.b);
	conv_expect(&v, v.a, CM_EVENT_DISCONNECTED, p.active);
	/* Once the connection is over, its QP can have another one. */
	ck_assert_int_ge(conv_destroy(&v, v.b, p.passive), 0);
	ck_assert_int_eq(conv_destroy(&v, v.a, in.id), 3);
	in.id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_write(&v, v.a, RDMA_USER_CM_CMD_CONNECT, &in, sizeof(in), NULL, 0), 0);
	conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0);
	conversation_end(&v);
}
END_TEST

/* The same by the passive end: only that is told, as the active end sends its request again. */
START_TEST(test_accept_by_a_qp_that_has_a_connection_is_stale_and_ends_the_first)
{
	struct rdma_ucm_accept in = { .uid = CONV_CHILD_UID, .conn_param = { .qp_num = 0x12, .valid = 1 } };
	uint32_t again;
	struct pair p;

	conversation_begin(&v);
	p = conv_established(&v);
	again = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, again, ""), 0);
	in.id = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).id;
	ck_assert_int_eq(conv_write(&v, v.b, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), NULL, 0), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.b, CM_EVENT_REJECTED, in.id).status, CM_REJ_STALE);
	conv_expect_none(&v, v.a);
	conv_expect(&v, v.b, CM_EVENT_DISCONNECTED, p.passive);
	/* A connection that is over keeps the QP from no other, although its identifier is still there. */
	ck_assert_int_eq(conv_disconnect(&v, v.b, p.passive), 0);
	conv_expect(&v, v.a, CM_EVENT_DISCONNECTED, p.active);
	ck_assert_int_ge(conv_destroy(&v, v.b, in.id), 0);
	conv_time_out(&v, again);
	in.id = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).id;
	ck_assert_int_eq(conv_write(&v, v.b, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), NULL, 0), 0);
	conv_expect(&v, v.a, CM_EVENT_CONNECT_RESPONSE, again);
	conversation_end(&v);
}
END_TEST

START_TEST(test_service_id_request_is_answered_with_qp_and_key)
{
	struct rdma_ucm_event_resp ev;
	uint32_t id, child;

	conversation_begin(&v);
	conv_listener(&v, RDMA_PS_UDP, CONV_PORT, 5);
	id = conv_ready(&v, RDMA_PS_UDP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, "who"), 0);
	ev = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0);
	child = ev.id;
	ck_assert_uint_eq(ev.param.ud.private_data_len, 180);
	ck_assert_str_eq((char *)ev.param.ud.private_data, "who");
	ck_assert_int_eq(conv_accept(&v, v.b, child, CONV_CHILD_UID, true, "me"), 0);
	ev = conv_expect(&v, v.a, CM_EVENT_ESTABLISHED, id);
	ck_assert_uint_eq(ev.param.ud.private_data_len, 136);
	ck_assert_str_eq((char *)ev.param.ud.private_data, "me");
	ck_assert_uint_eq(ev.param.ud.qp_num, 0x12);
	ck_assert_uint_eq(ev.param.ud.qkey, CM_UDP_QKEY);
	ck_assert_uint_eq(ev.param.ud.ah_attr.is_global, 1);
	conversation_end(&v);
}
END_TEST

START_TEST(test_service_id_request_that_is_rejected_ends_unreachable)
{
	uint32_t id, child;

	conversation_begin(&v);
	conv_listener(&v, RDMA_PS_UDP, CONV_PORT, 5);
	id = conv_ready(&v, RDMA_PS_UDP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	child = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).id;
	ck_assert_int_eq(conv_reject(&v, v.b, child, ""), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_UNREACHABLE, id).status, CM_SIDR_REJECT);
	conversation_end(&v);
}
END_TEST

/* The packet sequence number and the QP of each side reach the other. */
START_TEST(test_qp_attributes_of_both_sides_fit_together)
{
	struct rdma_ucm_init_qp_attr in = { .qp_state = IBV_QPS_RTR };
	struct ib_uverbs_qp_attr a_rtr, a_rts, b_rtr, b_rts;
	struct pair p;

	conversation_begin(&v);
	p = conv_established(&v);
	in.id = p.active;
	ck_assert_int_eq(CONV(&v, v.a, INIT_QP_ATTR, &in, &a_rtr), 0);
	in.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(CONV(&v, v.a, INIT_QP_ATTR, &in, &a_rts), 0);
	in.id = p.passive;
	ck_assert_int_eq(CONV(&v, v.b, INIT_QP_ATTR, &in, &b_rts), 0);
	in.qp_state = IBV_QPS_RTR;
	ck_assert_int_eq(CONV(&v, v.b, INIT_QP_ATTR, &in, &b_rtr), 0);
	ck_assert_uint_eq(a_rtr.dest_qp_num, 0x12);
	ck_assert_uint_eq(b_rtr.dest_qp_num, 0x11);
	ck_assert_uint_eq(a_rtr.rq_psn, b_rts.sq_psn);
	ck_assert_uint_eq(b_rtr.rq_psn, a_rts.sq_psn);
	ck_assert_uint_eq(a_rtr.qp_attr_mask, 0x129181);
	ck_assert_uint_eq(a_rts.qp_attr_mask, 0x12e01);
	ck_assert_uint_eq(a_rts.retry_cnt, 6);
	ck_assert_uint_eq(b_rts.retry_cnt, 6);
	/* conv_accept() and conv_connect() both ask for 2 and 3. */
	ck_assert_uint_eq(a_rtr.max_dest_rd_atomic, 3);
	ck_assert_uint_eq(a_rts.max_rd_atomic, 2);
	ck_assert_uint_eq(b_rtr.max_dest_rd_atomic, 2);
	ck_assert_uint_eq(b_rts.max_rd_atomic, 3);
	conversation_end(&v);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("connection");

	tcase_add_test(tcase, test_both_sides_are_told_of_each_step);
	tcase_add_test(tcase, test_reject_tells_the_reason_and_the_data);
	tcase_add_test(tcase, test_request_to_a_port_without_a_listener_is_rejected);
	tcase_add_test(tcase, test_request_beyond_the_backlog_is_taken_once_there_is_a_place);
	tcase_add_test(tcase, test_request_that_nobody_answers_ends_unreachable);
	tcase_add_test(tcase, test_request_that_comes_twice_makes_one_connection);
	tcase_add_test(tcase, test_reply_that_comes_twice_is_told_once);
	tcase_add_test(tcase, test_disconnect_that_nobody_answers_ends_in_timewait);
	tcase_add_test(tcase, test_peer_learns_that_an_identifier_was_destroyed);
	tcase_add_test(tcase, test_request_that_its_sender_withdraws_is_not_told);
	tcase_add_test(tcase, test_close_ends_connections_and_requests_that_were_not_reported);
	tcase_add_test(tcase, test_second_connection_of_a_qp_is_stale_and_ends_the_first);
	tcase_add_test(tcase, test_accept_by_a_qp_that_has_a_connection_is_stale_and_ends_the_first);
	tcase_add_test(tcase, test_service_id_request_is_answered_with_qp_and_key);
	tcase_add_test(tcase, test_service_id_request_that_is_rejected_ends_unreachable);
	tcase_add_test(tcase, test_qp_attributes_of_both_sides_fit_together);
	return run_suite("cm connection", tcase);
}
