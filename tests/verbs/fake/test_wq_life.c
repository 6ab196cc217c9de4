/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queues, indirection tables, and QPs that receive by a table: the order of destruction, errors, absence and removal,
 * events, and the rules of the administrator.
 */
#include <string.h>
#include "core/facts.h"
#include "fake_internal.h"
#include "filters/filters.h"
#include "tests/suite.h"
#include "wq_verbs.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

START_TEST(test_what_is_in_use_is_ebusy)
{
	uint32_t table, qp;
	struct wq wq;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	ck_assert_int_eq(uv_destroy_cq(wq_client.fd, UV_WRITE, wq_client.cq, NULL), -EBUSY);
	ck_assert_int_eq(destroy_wq(&wq, NULL), -EBUSY);
	ck_assert_int_eq(destroy_table(table), -EBUSY);
	ck_assert_int_eq(destroy_qp(qp), 0);
	ck_assert_int_eq(destroy_wq(&wq, NULL), -EBUSY);
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
}
END_TEST

START_TEST(test_work_queue_is_charged_until_it_ends)
{
	const uint64_t before = client_bytes();
	const unsigned int rings = client_device()->rings;
	struct wq wq, other;

	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_uint_ge(client_bytes(), before + hca_srq_bytes(WQ_MAX_WR, WQ_MAX_SGE));
	ck_assert_uint_eq(client_device()->rings, rings + 1);
	client_device()->max_rings = rings + 1;
	ck_assert_int_eq(create_wq(&other), -ENOMEM);
	fake.result[FAKE_DESTROY_WQ] = EAGAIN;
	ck_assert_int_eq(destroy_wq(&wq, NULL), -EAGAIN);
	ck_assert_uint_eq(client_device()->rings, rings + 1);
	fake.result[FAKE_DESTROY_WQ] = 0;
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
}
END_TEST

START_TEST(test_what_the_adapter_refuses_has_its_errno_and_costs_nothing)
{
	uint32_t table, qp, no_table;
	uint64_t bytes;
	int objects;
	struct wq wq, none;

	table = some_table(&wq);
	bytes = client_bytes();
	objects = fake.objects;
	fake.result[FAKE_CREATE_WQ] = ENOSPC;
	ck_assert_int_eq(create_wq(&none), -ENOSPC);
	fake.result[FAKE_CREATE_TABLE] = EDQUOT;
	ck_assert_int_eq(create_table(&wq, NULL, &no_table), -EDQUOT);
	fake.result[FAKE_CREATE_QP] = ENOTSUP;
	ck_assert_int_eq(create_qp(table, &qp), -ENOTSUP);
	fake.result[FAKE_MODIFY_WQ] = -1;
	fake.err = EPERM;
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_RDY), -EPERM);
	ck_assert_uint_eq(client_bytes(), bytes);
	ck_assert_int_eq(fake.objects, objects);
}
END_TEST

START_TEST(test_table_that_the_adapter_does_not_destroy_stays)
{
	struct wq wq;
	const uint32_t table = some_table(&wq);

	fake.result[FAKE_DESTROY_TABLE] = EAGAIN;
	ck_assert_int_eq(destroy_table(table), -EAGAIN);
	ck_assert_int_eq(destroy_wq(&wq, NULL), -EBUSY);
	fake.result[FAKE_DESTROY_TABLE] = 0;
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
}
END_TEST

/* client_teardown() checks that nothing stays on the adapter, which destroys no object that another one uses. */
START_TEST(test_objects_of_a_client_that_ends_leave_in_their_order)
{
	uint32_t table, qp;
	struct wq wq, later;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	ck_assert_int_eq(create_wq(&later), 0);
	ck_assert_int_eq(create_table(&later, &wq, &table), 0);
	harness_close_file(&h);
	ck_assert_uint_eq(client_bytes(), 0);
	ck_assert_uint_eq(client_device()->rings, 0);
}
END_TEST

START_TEST(test_adapter_without_work_queues_is_a_device_without_them)
{
	struct wq wq = {};
	uint32_t table;

	wq_teardown();
	wq_init(false);
	wq_start();
	ck_assert_int_eq(create_wq(&wq), -EOPNOTSUPP);
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_RDY), -EOPNOTSUPP);
	ck_assert_int_eq(destroy_wq(&wq, NULL), -EOPNOTSUPP);
	ck_assert_int_eq(create_table(&wq, NULL, &table), -EOPNOTSUPP);
	ck_assert_int_eq(destroy_table(0), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_dead_adapter_is_eio_and_everything_can_be_destroyed)
{
	uint32_t table, qp, none;
	struct wq wq, other;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	fake_device_fatal();
	ck_assert_uint_eq(client_async_event(wq_events), IBV_EVENT_DEVICE_FATAL);
	fake.gone = false; /* nobody asks it any more */
	ck_assert_int_eq(create_wq(&other), -EIO);
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_RDY), -EIO);
	ck_assert_int_eq(create_table(&wq, NULL, &none), -EIO);
	ck_assert_int_eq(create_qp(table, &none), -EIO);
	fake.gone = true;
	ck_assert_int_eq(destroy_qp(qp), 0);
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_failure_of_a_work_queue_is_an_event_of_its_own)
{
	struct ib_uverbs_async_event_desc event;
	uint32_t reported;
	struct wq wq;

	ck_assert_int_eq(create_wq(&wq), 0);
	fake_wq_event(wq.num);
	event = client_async_event_whole(wq_events);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_WQ_FATAL);
	ck_assert_uint_eq(event.element, WQ_USER_HANDLE);
	/* Returns only if the event was acknowledged to libibverbs. */
	ck_assert_int_eq(destroy_wq(&wq, &reported), 0);
	ck_assert_uint_eq(reported, 1);
}
END_TEST

/* The work queue's own event comes after them, and alone. */
static void expect_only_the_true_one(const struct wq *wq)
{
	uint32_t reported;

	fake_wq_event(wq->num);
	ck_assert_uint_eq(client_async_event(wq_events), IBV_EVENT_WQ_FATAL);
	ck_assert_int_eq(destroy_wq(wq, &reported), 0);
	ck_assert_uint_eq(reported, 1);
}

START_TEST(test_event_that_is_not_of_a_work_queue_is_dropped)
{
	struct wq wq, gone;
	uint64_t address;

	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_int_eq(create_wq(&gone), 0);
	address = (uintptr_t)fake_wq(gone.num);
	ck_assert_int_eq(destroy_wq(&gone, NULL), 0);
	fake_forged_event(wq_client.qp.qpn, address, IBV_EVENT_WQ_FATAL);
	fake_forged_event(wq_client.qp.qpn, UINT64_MAX, IBV_EVENT_WQ_FATAL);
	fake_forged_event(wq_client.qp.qpn, (uintptr_t)fake_qp(wq_client.qp.qpn), IBV_EVENT_WQ_FATAL);
	expect_only_the_true_one(&wq);
}
END_TEST

START_TEST(test_event_of_another_object_with_a_work_queues_address_is_dropped)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_SQ_DRAINED, IBV_EVENT_CQ_ERR,
						     IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED };
	struct wq wq;

	ck_assert_int_eq(create_wq(&wq), 0);
	for (size_t i = 0; i < UV_ARRAY_SIZE(types); i++)
		fake_forged_event(wq_client.qp.qpn, (uintptr_t)fake_wq(wq.num), types[i]);
	expect_only_the_true_one(&wq);
}
END_TEST

START_TEST(test_completion_of_a_work_queue_is_forged_and_dropped)
{
	struct wq wq;

	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_RDY), 0);
	fake_forged_completion(wq_client.qp.qpn,
			       (struct ibv_wc){ .wr_id = 1, .opcode = IBV_WC_RECV, .qp_num = wq.num });
	client_expect_none(&wq_client);
}
END_TEST

/* ---- a client that has kept its device file: see test_hostile.c --------------------------------------------------- */

/* The destruction of a work queue waits for the acknowledgement of its events: it must not hold up the client. */
START_TEST(test_destruction_of_a_work_queue_that_does_not_end_is_left)
{
	struct wq wq;

	ck_assert_int_eq(create_wq(&wq), 0);
	client_lend();
	client_device()->patience = 20000000;
	((struct fake_wq *)fake_wq(wq.num))->unacked = 1;
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
	harness_close_file(&h);
	client_uncharge_left(1);
}
END_TEST

/* The QP stays on the adapter with its table, which the adapter does not destroy: neither is the client's any more. */
START_TEST(test_table_of_a_qp_that_is_left_is_left_too)
{
	uint32_t table, qp;
	struct wq wq;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	client_lend();
	client_device()->patience = 20000000;
	fake.hangs = true;
	ck_assert_int_eq(destroy_qp(qp), 0);
	ck_assert_int_eq(destroy_table(table), 0);
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
	harness_close_file(&h);
	client_uncharge_left(1);
}
END_TEST

/* ---- the administrator's rules ----------------------------------------------------------------------------------- */

START_TEST(test_limits_of_a_filter_hold)
{
	static char error[UVD_PLUGIN_ERROR];
	uint32_t one, two;
	struct wq wq, other;

	ck_assert_msg(!uvd_device_filter_add(h.dev, "limit:wq=1,rwq_ind_tbl=1,errno=EDQUOT", error), "%s", error);
	one = some_table(&wq);
	ck_assert_int_eq(create_wq(&other), -EDQUOT);
	ck_assert_int_eq(create_table(&wq, NULL, &two), -EDQUOT);
	ck_assert_int_eq(destroy_table(one), 0);
	ck_assert_int_eq(create_table(&wq, NULL, &two), 0);
}
END_TEST

START_TEST(test_quota_holds)
{
	uint32_t one, two;
	struct wq wq, other;

	wq_teardown();
	wq_init(true);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_QUOTA, "wqs:1"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_QUOTA, "rwq-ind-tbls:1"), 0);
	wq_start();
	one = some_table(&wq);
	ck_assert_int_eq(create_wq(&other), -EAGAIN);
	ck_assert_int_eq(create_table(&wq, NULL, &two), -EAGAIN);
	ck_assert_int_eq(destroy_table(one), 0);
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
	ck_assert_int_eq(create_wq(&other), 0);
}
END_TEST

START_TEST(test_allow_lists_hold)
{
	const struct uverbsd_rx_hash hash = toeplitz();
	uint32_t table, qp;
	struct wq wq;

	wq_teardown();
	wq_init(true);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "qp-types:RC"), 0);
	wq_start();
	table = some_table(&wq);
	ck_assert_int_eq(create_qp_with(table, &hash, sizeof(hash), &qp), -EPERM);

	wq_teardown();
	wq_init(true);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW,
					     "objects:DEVICE,PD,CQ,QP,MR,ASYNC_EVENT,WQ"),
			 0);
	wq_start();
	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_int_eq(create_table(&wq, NULL, &table), -EPERM);
}
END_TEST

START_TEST(test_status_shows_them)
{
	struct uvd_object_copy copies[16];
	unsigned int num, wqs = 0, tables = 0;
	uint32_t table, qp;
	struct wq wq;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	num = uvd_file_copy_objects(h.file, copies, UV_ARRAY_SIZE(copies));
	for (unsigned int i = 0; i < num; i++) {
		wqs += copies[i].type == UVERBS_OBJECT_WQ && copies[i].handle == wq.handle;
		tables += copies[i].type == UVERBS_OBJECT_RWQ_IND_TBL && copies[i].handle == table;
	}
	ck_assert_uint_eq(wqs, 1);
	ck_assert_uint_eq(tables, 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("wq life");

	tcase_add_checked_fixture(t, wq_setup, wq_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_what_is_in_use_is_ebusy);
	tcase_add_test(t, test_work_queue_is_charged_until_it_ends);
	tcase_add_test(t, test_what_the_adapter_refuses_has_its_errno_and_costs_nothing);
	tcase_add_test(t, test_table_that_the_adapter_does_not_destroy_stays);
	tcase_add_test(t, test_objects_of_a_client_that_ends_leave_in_their_order);
	tcase_add_test(t, test_adapter_without_work_queues_is_a_device_without_them);
	tcase_add_test(t, test_dead_adapter_is_eio_and_everything_can_be_destroyed);
	tcase_add_test(t, test_failure_of_a_work_queue_is_an_event_of_its_own);
	tcase_add_test(t, test_event_that_is_not_of_a_work_queue_is_dropped);
	tcase_add_test(t, test_event_of_another_object_with_a_work_queues_address_is_dropped);
	tcase_add_test(t, test_completion_of_a_work_queue_is_forged_and_dropped);
	tcase_add_test(t, test_destruction_of_a_work_queue_that_does_not_end_is_left);
	tcase_add_test(t, test_table_of_a_qp_that_is_left_is_left_too);
	tcase_add_test(t, test_limits_of_a_filter_hold);
	tcase_add_test(t, test_quota_holds);
	tcase_add_test(t, test_allow_lists_hold);
	tcase_add_test(t, test_status_shows_them);
	return run_suite("the verbs backend with a fake adapter: the life of work queues", t);
}
