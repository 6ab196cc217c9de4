/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects, charges, errors and events of the verbs backend, with an adapter that fails on demand. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "client.h"
#include "tests/suite.h"

enum { EVENT_TIMEOUT_MS = 30000 };

static struct client a;
static struct uv_srq srq;
static char remote[CLIENT_BYTES];

static int log_file = -1;
static struct uvd_log *adapter_log;

/* The log is there before the device, whose threads use it. */
static void setup(void)
{
	client_init(NULL);
	log_file = memfd_create("log", MFD_CLOEXEC);
	h.engine.log = adapter_log = uvd_log_new(log_file, "", UVD_WARN);
	client_start();
	client_open(&a, h.fd);
}

static void teardown(void)
{
	client_teardown();
	uvd_log_free(adapter_log);
	close(log_file);
}

/* ---- charges ----------------------------------------------------------------------------------------------------- */

static int make_cq(uint32_t cqe, uint32_t *cq)
{
	const struct uv_cq_attr attr = { .cqe = cqe, .channel = -1, .event_fd = -1 };

	return uv_create_cq(a.fd, UV_WRITE, &attr, cq, NULL);
}

static int make_qp(struct uv_qp *qp)
{
	const struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);

	return uv_create_qp(a.fd, UV_WRITE, &attr, qp);
}

static int make_srq(struct uv_srq *srq)
{
	const struct uv_srq_attr attr = uv_srq_attr(a.pd);

	return uv_create_srq(a.fd, UV_WRITE, &attr, srq);
}

/* Each makes a queue, sets *bytes to what its rings cost, and *handle. */
static int make_costly_cq(uint64_t *bytes, uint32_t *handle)
{
	*bytes = hca_cq_bytes(1000);
	return make_cq(1000, handle);
}

static int make_costly_qp(uint64_t *bytes, uint32_t *handle)
{
	struct uv_qp qp;
	const int ret = make_qp(&qp);

	*handle = qp.handle;
	*bytes = hca_qp_bytes(&(struct ibv_qp_cap){ 16, 16, 4, 4, 0 });
	return ret;
}

static int make_costly_srq(uint64_t *bytes, uint32_t *handle)
{
	struct uv_srq srq;
	const int ret = make_srq(&srq);

	*handle = srq.handle;
	*bytes = hca_srq_bytes(16, 2);
	return ret;
}

static int end_cq(uint32_t handle)
{
	return uv_destroy_cq(a.fd, UV_WRITE, handle, NULL);
}

static int end_qp(uint32_t handle)
{
	return uv_destroy_qp(a.fd, UV_WRITE, handle, NULL);
}

static int end_srq(uint32_t handle)
{
	return uv_destroy_srq(a.fd, UV_WRITE, handle, NULL);
}

static const struct queue {
	int (*make)(uint64_t *bytes, uint32_t *handle);
	int (*end)(uint32_t handle);
	enum fake_call create, destroy;
	unsigned int rings;
} queues[] = {
	{ make_costly_cq, end_cq, FAKE_CREATE_CQ, FAKE_DESTROY_CQ, HCA_CQ_RINGS },
	{ make_costly_qp, end_qp, FAKE_CREATE_QP, FAKE_DESTROY_QP, HCA_QP_RINGS },
	{ make_costly_srq, end_srq, FAKE_CREATE_SRQ, FAKE_DESTROY_SRQ, HCA_SRQ_RINGS },
};

START_TEST(test_queue_is_charged_to_its_user_and_given_back_when_it_is_destroyed)
{
	const struct queue *q = &queues[_i];
	const unsigned int rings = client_device()->rings;
	const uint64_t before = client_bytes();
	uint64_t bytes;
	uint32_t handle;

	ck_assert_int_eq(q->make(&bytes, &handle), 0);
	ck_assert_uint_ge(client_bytes(), before + bytes);
	ck_assert_uint_eq(client_device()->rings, rings + q->rings);
	ck_assert_int_eq(q->end(handle), 0);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
}
END_TEST

START_TEST(test_queue_that_the_adapter_does_not_create_costs_nothing)
{
	const struct queue *q = &queues[_i];
	const unsigned int rings = client_device()->rings;
	const uint64_t before = client_bytes();
	uint64_t bytes;
	uint32_t handle;

	fake.result[q->create] = ENOSPC;
	ck_assert_int_eq(q->make(&bytes, &handle), -ENOSPC);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
}
END_TEST

START_TEST(test_queue_that_the_adapter_does_not_destroy_stays_charged_until_it_does)
{
	const struct queue *q = &queues[_i];
	const uint64_t before = client_bytes();
	uint64_t bytes;
	uint32_t handle;

	ck_assert_int_eq(q->make(&bytes, &handle), 0);
	fake.result[q->destroy] = -EBUSY;
	ck_assert_int_eq(q->end(handle), -EBUSY);
	ck_assert_uint_ge(client_bytes(), before + bytes);
	fake.result[q->destroy] = 0;
	ck_assert_int_eq(q->end(handle), 0);
	ck_assert_uint_eq(client_bytes(), before);
}
END_TEST

START_TEST(test_queue_beyond_the_cap_on_rings_is_enomem)
{
	const struct queue *q = &queues[_i];
	const int objects = fake.objects;
	const uint64_t before = client_bytes();
	uint64_t bytes;
	uint32_t handle;

	client_device()->max_rings = client_device()->rings + q->rings - 1;
	ck_assert_int_eq(q->make(&bytes, &handle), -ENOMEM);
	ck_assert_int_eq(fake.objects, objects);
	ck_assert_uint_eq(client_bytes(), before);
	client_device()->max_rings++;
	ck_assert_int_eq(q->make(&bytes, &handle), 0);
	ck_assert_int_eq(q->end(handle), 0);
	ck_assert_int_eq(q->make(&bytes, &handle), 0);
}
END_TEST

START_TEST(test_queue_beyond_the_users_share_of_rings_is_enomem)
{
	const struct queue *q = &queues[_i];
	struct uvd_account_limits limits;
	uint64_t before, bytes;
	uint32_t handle;

	client_teardown();
	harness_no_limits(&limits);
	limits.max[UVD_RES_RINGS] = HCA_CQ_RINGS + HCA_QP_RINGS + q->rings;
	client_init(&limits);
	client_start();
	client_open(&a, h.fd);
	for (int i = 0; i < 2; i++) {
		const unsigned int rings = client_device()->rings;
		uint32_t more;

		ck_assert_int_eq(q->make(&bytes, &handle), 0);
		before = client_bytes();
		ck_assert_int_eq(q->make(&bytes, &more), -ENOMEM);
		ck_assert_uint_eq(client_device()->rings, rings + q->rings);
		ck_assert_uint_eq(client_bytes(), before);
		ck_assert_int_eq(q->end(handle), 0);
	}
}
END_TEST

START_TEST(test_resized_cq_is_charged_for_its_new_size)
{
	const unsigned int rings = client_device()->rings;
	const uint64_t before = client_bytes();
	uint32_t cqe;

	ck_assert_int_eq(uv_resize_cq(a.fd, UV_WRITE, a.cq, 1000, &cqe), 0);
	ck_assert_uint_eq(cqe, 1000);
	ck_assert_uint_eq(client_bytes(), before + hca_cq_bytes(1000) - hca_cq_bytes(uv_cq_default.cqe));
	fake.result[FAKE_RESIZE_CQ] = EINVAL;
	ck_assert_int_eq(uv_resize_cq(a.fd, UV_WRITE, a.cq, 2000, &cqe), -EINVAL);
	fake.result[FAKE_RESIZE_CQ] = 0;
	ck_assert_uint_eq(client_bytes(), before + hca_cq_bytes(1000) - hca_cq_bytes(uv_cq_default.cqe));
	ck_assert_int_eq(uv_resize_cq(a.fd, UV_WRITE, a.cq, uv_cq_default.cqe, &cqe), 0);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
}
END_TEST

START_TEST(test_resized_srq_is_charged_for_its_new_size)
{
	uint64_t before;

	ck_assert_int_eq(make_srq(&srq), 0);
	before = client_bytes();
	ck_assert_int_eq(uv_modify_srq(a.fd, UV_WRITE, srq.handle, IBV_SRQ_MAX_WR, 1000, 0), 0);
	ck_assert_uint_eq(client_bytes(), before + hca_srq_bytes(1000, 2) - hca_srq_bytes(16, 2));
	fake.result[FAKE_MODIFY_SRQ] = EINVAL;
	ck_assert_int_eq(uv_modify_srq(a.fd, UV_WRITE, srq.handle, IBV_SRQ_MAX_WR, 2000, 0), -EINVAL);
	ck_assert_uint_eq(client_bytes(), before + hca_srq_bytes(1000, 2) - hca_srq_bytes(16, 2));
	fake.result[FAKE_MODIFY_SRQ] = 0;
	ck_assert_int_eq(uv_modify_srq(a.fd, UV_WRITE, srq.handle, IBV_SRQ_MAX_WR, 16, 0), 0);
	ck_assert_uint_eq(client_bytes(), before);
}
END_TEST

static int shrink_srq(const struct client *c)
{
	return uv_modify_srq(c->fd, UV_WRITE, srq.handle, IBV_SRQ_MAX_WR, 16, 0);
}

static int grow_srq(const struct client *c)
{
	return uv_modify_srq(c->fd, UV_WRITE, srq.handle, IBV_SRQ_MAX_WR, 1000, 0);
}

START_TEST(test_srq_that_two_threads_resize_is_charged_for_the_size_that_the_adapter_had_last)
{
	struct worker shrink, grow;
	struct ib_uverbs_query_srq_resp now;
	uint64_t before;

	ck_assert_int_eq(make_srq(&srq), 0);
	before = client_bytes() - hca_srq_bytes(16, 2);
	fake.waits_in = FAKE_MODIFY_SRQ;
	worker_start(&shrink, &a, shrink_srq);
	sem_wait(&fake.blocked);
	fake.waits_in = 0;
	worker_start(&grow, &a, grow_srq);
	usleep(50000);
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&shrink), 0);
	ck_assert_int_eq(worker_join(&grow), 0);
	ck_assert_int_eq(uv_query_srq(a.fd, UV_WRITE, srq.handle, &now), 0);
	ck_assert_uint_eq(client_bytes(), before + hca_srq_bytes(now.max_wr, 2));
}
END_TEST

START_TEST(test_queue_beyond_the_users_limit_is_enomem_and_the_adapter_is_not_asked)
{
	struct uvd_account_limits limits;
	uint32_t cq, cqe;
	uint64_t before;
	int objects;

	client_teardown();
	harness_no_limits(&limits);
	limits.max[UVD_RES_BYTES] = 4 << 20;
	client_init(&limits);
	client_start();
	client_open(&a, h.fd);
	before = client_bytes();
	objects = fake.objects;
	ck_assert_int_eq(make_cq(1 << 16, &cq), -ENOMEM);
	ck_assert_int_eq(uv_resize_cq(a.fd, UV_WRITE, a.cq, 1 << 16, &cqe), -ENOMEM);
	ck_assert_int_eq(fake.objects, objects);
	ck_assert_uint_eq(client_bytes(), before);
}
END_TEST

/* ---- errors of the provider -------------------------------------------------------------------------------------- */

static int do_resize_cq(void)
{
	uint32_t cqe;

	return uv_resize_cq(a.fd, UV_WRITE, a.cq, 100, &cqe);
}

static int do_limit(void)
{
	return uv_modify_srq(a.fd, UV_WRITE, srq.handle, IBV_SRQ_LIMIT, 0, 1);
}

static int do_query_srq(void)
{
	struct ib_uverbs_query_srq_resp resp;

	return uv_query_srq(a.fd, UV_WRITE, srq.handle, &resp);
}

static int do_reset(void)
{
	return client_reset(&a);
}

static int do_query_qp(void)
{
	struct ib_uverbs_query_qp_resp resp;

	return uv_query_qp(a.fd, UV_WRITE, a.qp.handle, &resp);
}

static int do_send(void)
{
	return client_write(&a, 1, 0, 8, remote);
}

static int do_recv(void)
{
	return client_recv(&a, 1, 0, 8);
}

static const struct {
	enum fake_call call;
	int (*fn)(void);
} calls[] = {
	{ FAKE_RESIZE_CQ, do_resize_cq }, { FAKE_MODIFY_SRQ, do_limit },  { FAKE_QUERY_SRQ, do_query_srq },
	{ FAKE_MODIFY_QP, do_reset },	  { FAKE_QUERY_QP, do_query_qp }, { FAKE_POST_SEND, do_send },
	{ FAKE_POST_RECV, do_recv },
};

START_TEST(test_error_of_the_provider_is_the_clients_whatever_its_form)
{
	ck_assert_int_eq(make_srq(&srq), 0);
	fake.err = EAGAIN;
	fake.result[calls[_i].call] = -ENOSPC;
	ck_assert_int_eq(calls[_i].fn(), -ENOSPC);
	fake.result[calls[_i].call] = ENOSPC;
	ck_assert_int_eq(calls[_i].fn(), -ENOSPC);
	fake.result[calls[_i].call] = -1;
	ck_assert_int_eq(calls[_i].fn(), -EAGAIN);
	fake.result[calls[_i].call] = 0;
	ck_assert_int_eq(calls[_i].fn(), 0);
}
END_TEST

/* FUSE takes no errno of 512 or more in a reply: the client would wait for ever. */
START_TEST(test_errno_that_drivers_let_escape_is_one_that_every_transport_can_carry)
{
	enum { ERESTARTSYS = 512, ENOTSUPP = 524 };

	ck_assert_int_eq(make_srq(&srq), 0);
	fake.result[calls[_i].call] = ENOTSUPP;
	ck_assert_int_eq(calls[_i].fn(), -EOPNOTSUPP);
	fake.result[calls[_i].call] = -ENOTSUPP;
	ck_assert_int_eq(calls[_i].fn(), -EOPNOTSUPP);
	fake.result[calls[_i].call] = -1;
	fake.err = ENOTSUPP;
	ck_assert_int_eq(calls[_i].fn(), -EOPNOTSUPP);
	fake.err = ERESTARTSYS;
	ck_assert_int_eq(calls[_i].fn(), -EIO);
	fake.result[calls[_i].call] = 0;
	fake.result[FAKE_CREATE_SRQ] = ENOTSUPP;
	ck_assert_int_eq(make_srq(&srq), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_poll_that_fails_is_an_error)
{
	struct ib_uverbs_wc wc;

	fake.result[FAKE_POLL_CQ] = -ENOSPC;
	ck_assert_int_eq(client_poll(&a, &wc), -EIO);
	fake.result[FAKE_POLL_CQ] = 0;
	client_expect_none(&a);
}
END_TEST

START_TEST(test_context_that_the_adapter_does_not_open_costs_nothing)
{
	static const enum fake_call first[] = { FAKE_OPEN, FAKE_CREATE_CHANNEL };
	const uint64_t descriptors = uvd_account_used(h.account, UVD_RES_DESCRIPTORS);
	const int fd = uv_open(), objects = fake.objects;
	uint32_t vectors;

	fake.result[first[_i]] = EMFILE;
	ck_assert_int_eq(uv_get_context(fd, UV_METHOD, NULL, &vectors), -EMFILE);
	ck_assert_int_eq(fake.objects, objects);
	uv_close(fd);
	ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_DESCRIPTORS), descriptors);
}
END_TEST

START_TEST(test_post_whose_buffer_the_adapter_does_not_register_is_enomem)
{
	const int log = memfd_create("log", MFD_CLOEXEC);
	const uint64_t before = client_bytes();
	char text[1000] = "";
	uint32_t pd;

	h.dev->ib.log = uvd_log_new(log, "test", UVD_WARN);
	fake.result[FAKE_REG_MR] = ENOSPC;
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), -ENOMEM);
	ck_assert_int_gt(pread(log, text, sizeof(text) - 1, 0), 0);
	ck_assert_ptr_nonnull(strstr(text, "the adapter fake0 does not register 262144 bytes for buffers: ENOSPC: "));
	uvd_log_free(h.dev->ib.log);
	h.dev->ib.log = NULL;
	close(log);
	fake.result[FAKE_REG_MR] = 0;
	ck_assert_int_eq(client_write(&a, 2, 0, 8, remote), 0);
	client_expect(&a, 2);
	ck_assert_uint_ge(client_bytes(), before);
	fake.result[FAKE_ALLOC_PD] = ENOSPC;
	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &pd), -ENOSPC);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_completion_event_of_the_adapter_reaches_the_clients_channel)
{
	struct uv_cq_attr attr = { .user_handle = 77, .cqe = 16, .event_fd = -1 };
	struct ib_uverbs_comp_event_desc event;
	struct client c;

	ck_assert_int_eq(uv_create_channel(a.fd, UV_WRITE, &attr.channel), 0);
	c = a;
	ck_assert_int_eq(uv_create_cq(a.fd, UV_WRITE, &attr, &c.cq, NULL), 0);
	client_open_beside(&c, &c);
	ck_assert_int_eq(uv_req_notify_cq(a.fd, UV_WRITE, c.cq, false), 0);
	ck_assert_int_eq(client_write(&c, 1, 0, 8, remote), 0);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = attr.channel, .events = POLLIN }, 1, EVENT_TIMEOUT_MS), 1);
	ck_assert_int_eq(recv(attr.channel, &event, sizeof(event), 0), sizeof(event));
	ck_assert_uint_eq(event.cq_handle, 77);
	client_expect(&c, 1);
	close(attr.channel);
}
END_TEST

START_TEST(test_event_of_a_qp_reaches_the_client)
{
	const int fd = client_async_fd(&a);
	struct uv_qp qp;

	ck_assert_int_eq(make_qp(&qp), 0);
	fake_qp_event(qp.qpn, IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_COMM_EST);
	for (int i = 0; i < 100; i++)
		fake_qp_event(qp.qpn, IBV_EVENT_COMM_EST);
	/* The thread may be relaying some of them. */
	ck_assert_int_eq(end_qp(qp.handle), 0);
	close(fd);
}
END_TEST

/* Waits until the file contains the text. */
static void wait_for_line(int file, const char *text)
{
	char line[1024] = "";

	while (!strstr(line, text))
		if (pread(file, line, sizeof(line) - 1, 0) < 0)
			ck_abort();
}

START_TEST(test_dead_adapter_is_an_event_and_eio_and_everything_can_be_destroyed)
{
	const int fd = client_async_fd(&a);
	struct ib_uverbs_wc wc;
	struct uv_qp qp;
	uint32_t cq, pd;

	ck_assert_int_eq(make_srq(&srq), 0);
	ck_assert_int_eq(do_recv(), 0);
	fake_device_fatal();
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_DEVICE_FATAL);
	wait_for_line(log_file, "event DEVICE_FATAL: the device is gone, or its adapter is");
	for (size_t i = 0; i < UV_ARRAY_SIZE(calls); i++)
		ck_assert_int_eq(calls[i].fn(), -EIO);
	ck_assert_int_eq(client_poll(&a, &wc), -EIO);
	ck_assert_int_eq(make_cq(16, &cq), -EIO);
	ck_assert_int_eq(make_qp(&qp), -EIO);
	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &pd), -EIO);
	ck_assert_int_eq(end_qp(a.qp.handle), 0);
	ck_assert_int_eq(end_srq(srq.handle), 0);
	ck_assert_int_eq(end_cq(a.cq), 0);
	ck_assert_int_eq(uv_dereg_mr(a.fd, UV_WRITE, a.mr.handle), 0);
	ck_assert_int_eq(uv_dealloc_pd(a.fd, UV_WRITE, a.pd), 0);
	ck_assert_uint_eq(client_device()->rings, 0);
	close(fd);
}
END_TEST

START_TEST(test_adapter_whose_node_goes_is_gone_and_its_device_is_to_be_removed)
{
	const int fd = client_async_fd(&a);

	ck_assert_int_eq(make_srq(&srq), 0);
	ck_assert_int_eq(do_recv(), 0);
	ck_assert(!h.dev->adapter_gone);
	ck_assert_int_eq(unlink(fake.node), 0);
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_DEVICE_FATAL);
	for (size_t i = 0; i < UV_ARRAY_SIZE(calls); i++)
		ck_assert_int_eq(calls[i].fn(), -EIO);
	/* The thread sets it after the event. */
	while (!atomic_load(&h.dev->adapter_gone))
		usleep(1000);
	close(fd);
}
END_TEST

START_TEST(test_adapter_whose_node_gets_another_mode_stays)
{
	const int fd = client_async_fd(&a);
	struct uv_qp qp;

	ck_assert_int_eq(make_qp(&qp), 0);
	ck_assert_int_eq(chmod(fake.node, 0444), 0);
	fake_qp_event(qp.qpn, IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_COMM_EST);
	ck_assert_int_eq(end_qp(qp.handle), 0);
	ck_assert(!h.dev->adapter_gone);
	close(fd);
}
END_TEST

/* ---- removal ----------------------------------------------------------------------------------------------------- */

static sem_t traffic_flows;

/* Writes and reads until a call fails. */
static int traffic(const struct client *c)
{
	struct ib_uverbs_wc wc;
	int ret = 0;

	for (uint64_t i = 1; ret >= 0; i++) {
		ret = client_read(c, i, 0, 8, remote);
		while (!ret)
			ret = client_poll(c, &wc);
		if (i == 100)
			sem_post(&traffic_flows);
	}
	return ret;
}

/* _i: the adapter dies first. */
START_TEST(test_removal_under_traffic_comes_to_its_end)
{
	const int fd = client_async_fd(&a);
	struct worker worker;

	sem_init(&traffic_flows, 0, 0);
	worker_start(&worker, &a, traffic);
	sem_wait(&traffic_flows);
	if (_i) {
		fake_device_fatal();
		ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_DEVICE_FATAL);
	}
	uvd_device_remove(h.dev);
	ck_assert_int_eq(worker_join(&worker), -EIO);
	close(fd);
}
END_TEST

static void add_tests(TCase *t)
{
	const int num_queues = UV_ARRAY_SIZE(queues);

	tcase_add_loop_test(t, test_queue_is_charged_to_its_user_and_given_back_when_it_is_destroyed, 0, num_queues);
	tcase_add_loop_test(t, test_queue_that_the_adapter_does_not_create_costs_nothing, 0, num_queues);
	tcase_add_loop_test(t, test_queue_that_the_adapter_does_not_destroy_stays_charged_until_it_does, 0, num_queues);
	tcase_add_loop_test(t, test_queue_beyond_the_cap_on_rings_is_enomem, 0, num_queues);
	tcase_add_loop_test(t, test_queue_beyond_the_users_share_of_rings_is_enomem, 0, num_queues);
	tcase_add_test(t, test_resized_cq_is_charged_for_its_new_size);
	tcase_add_test(t, test_resized_srq_is_charged_for_its_new_size);
	tcase_add_test(t, test_srq_that_two_threads_resize_is_charged_for_the_size_that_the_adapter_had_last);
	tcase_add_test(t, test_queue_beyond_the_users_limit_is_enomem_and_the_adapter_is_not_asked);
	tcase_add_loop_test(t, test_error_of_the_provider_is_the_clients_whatever_its_form, 0, UV_ARRAY_SIZE(calls));
	tcase_add_loop_test(t, test_errno_that_drivers_let_escape_is_one_that_every_transport_can_carry, 0,
			    UV_ARRAY_SIZE(calls));
	tcase_add_test(t, test_poll_that_fails_is_an_error);
	tcase_add_loop_test(t, test_context_that_the_adapter_does_not_open_costs_nothing, 0, 2);
	tcase_add_test(t, test_post_whose_buffer_the_adapter_does_not_register_is_enomem);
	tcase_add_test(t, test_completion_event_of_the_adapter_reaches_the_clients_channel);
	tcase_add_test(t, test_event_of_a_qp_reaches_the_client);
	tcase_add_test(t, test_dead_adapter_is_an_event_and_eio_and_everything_can_be_destroyed);
	tcase_add_test(t, test_adapter_whose_node_goes_is_gone_and_its_device_is_to_be_removed);
	tcase_add_test(t, test_adapter_whose_node_gets_another_mode_stays);
	tcase_add_loop_test(t, test_removal_under_traffic_comes_to_its_end, 0, 2);
}

int main(void)
{
	TCase *t = tcase_create("adapter");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	add_tests(t);
	return run_suite("the verbs backend with a fake adapter: objects, errors and events", t);
}
