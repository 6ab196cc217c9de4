/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains that clients share, their target QPs and SRQs, and an adapter that has none. */
#include <fcntl.h>
#include "client.h"
#include "tests/suite.h"

enum { MOST_DESCRIPTORS = 20 };

static struct client a, b; /* two clients, each with a context of its own */

static void setup_with(uint32_t caps, const struct uvd_account_limits *limits)
{
	client_init(limits);
	h.config.hidden_caps = 0; /* --announce all */
	fake.attr.orig_attr.device_cap_flags = caps;
	client_start();
	client_open(&a, h.fd);
}

static void setup(void)
{
	setup_with(IBV_DEVICE_XRC, NULL);
	client_open(&b, uv_open());
}

static uint64_t descriptors(void)
{
	return uvd_account_used(h.account, UVD_RES_DESCRIPTORS);
}

static int new_file(void)
{
	const int file = memfd_create("domain", MFD_CLOEXEC);

	ck_assert_int_ge(file, 0);
	return file;
}

static uint32_t open_domain(const struct client *c, int file)
{
	uint32_t xrcd;

	ck_assert_int_eq(uv_open_xrcd(c->fd, UV_WRITE, file, file < 0 ? 0 : O_CREAT, &xrcd), 0);
	return xrcd;
}

static int make_target(const struct client *c, uint32_t xrcd, struct uv_qp *qp)
{
	struct uv_qp_attr attr = uv_qp_attr(xrcd, 0);

	attr.type = IBV_QPT_XRC_RECV;
	return uv_create_qp(c->fd, UV_WRITE, &attr, qp);
}

static int make_srq(const struct client *c, uint32_t xrcd, struct uv_srq *srq)
{
	struct uv_srq_attr attr = uv_srq_attr(c->pd);

	attr.type = IB_UVERBS_SRQT_XRC;
	attr.xrcd = xrcd;
	attr.cq = c->cq;
	return uv_create_xsrq(c->fd, UV_WRITE, &attr, srq);
}

static int to_state(const struct client *c, uint32_t qp, enum ibv_qp_state state)
{
	const struct ib_uverbs_modify_qp cmd = {
		.qp_handle = qp, .attr_mask = IBV_QP_STATE, .qp_state = state, .dest = { .port_num = 1 }
	};

	return uv_modify_qp(c->fd, UV_WRITE, &cmd);
}

static int end_qp(const struct client *c, uint32_t qp)
{
	return uv_destroy_qp(c->fd, UV_WRITE, qp, NULL);
}

/* A target that accepts messages. */
static struct uv_qp ready_target(const struct client *c, uint32_t xrcd)
{
	struct uv_qp qp;

	ck_assert_int_eq(make_target(c, xrcd, &qp), 0);
	ck_assert_int_eq(to_state(c, qp.handle, IBV_QPS_INIT), 0);
	ck_assert_int_eq(to_state(c, qp.handle, IBV_QPS_RTR), 0);
	return qp;
}

/* ---- domains ----------------------------------------------------------------------------------------------------- */

START_TEST(test_adapter_without_xrc_is_a_device_without_it)
{
	struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);
	struct ib_uverbs_query_device_resp device;
	uint32_t xrcd, opened;
	struct uv_qp qp;

	client_teardown();
	setup_with(0, NULL);
	ck_assert_int_eq(uv_query_device(a.fd, UV_WRITE, &device), 0);
	ck_assert_uint_eq(device.device_cap_flags & IBV_DEVICE_XRC, 0);
	ck_assert_int_eq(uv_open_xrcd(a.fd, UV_WRITE, -1, 0, &xrcd), -EOPNOTSUPP);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_METHOD, 0), -EPROTONOSUPPORT);
	ck_assert_int_eq(uv_open_qp(a.fd, UV_WRITE, 0, 0, IBV_QPT_XRC_RECV, &opened), -EOPNOTSUPP);
	attr.type = IBV_QPT_XRC_SEND;
	ck_assert_int_eq(uv_create_qp(a.fd, UV_WRITE, &attr, &qp), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_adapter_with_xrc_is_a_device_with_it)
{
	struct ib_uverbs_query_device_resp device;

	ck_assert_int_eq(uv_query_device(a.fd, UV_WRITE, &device), 0);
	ck_assert(device.device_cap_flags & IBV_DEVICE_XRC);
	open_domain(&a, -1);
	ck_assert_int_eq(fake.domains, 1);
}
END_TEST

START_TEST(test_domain_is_one_of_the_adapter_for_all_its_clients)
{
	const int file = new_file(), objects = fake.objects;
	const uint32_t of_a = open_domain(&a, file), of_b = open_domain(&b, file), other = open_domain(&a, -1);

	ck_assert_int_eq(fake.domains, 2);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, of_a), 0);
	ck_assert_int_eq(fake.domains, 2);
	ck_assert_int_eq(uv_close_xrcd(b.fd, UV_WRITE, of_b), 0);
	ck_assert_int_eq(fake.domains, 1);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_METHOD, other), 0);
	ck_assert_int_eq(fake.domains, 0);
	ck_assert_int_eq(fake.objects, objects);
	close(file);
}
END_TEST

/* A private domain is one descriptor of the daemon, and one of a file is two: the core has one, too. */
START_TEST(test_descriptors_of_a_domain_are_charged_to_its_user)
{
	const uint64_t before = descriptors();
	const int file = new_file();
	const uint32_t private = open_domain(&a, -1), shared = open_domain(&a, file);

	ck_assert_uint_eq(descriptors(), before + 3);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, private), 0);
	ck_assert_uint_eq(descriptors(), before + 2);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, shared), 0);
	ck_assert_uint_eq(descriptors(), before);
	close(file);
}
END_TEST

START_TEST(test_domain_beyond_the_users_limit_of_descriptors_is_emfile)
{
	struct uvd_account_limits limits;
	int objects, ret;
	uint32_t xrcd;

	client_teardown();
	harness_no_limits(&limits);
	limits.max[UVD_RES_DESCRIPTORS] = MOST_DESCRIPTORS;
	setup_with(IBV_DEVICE_XRC, &limits);
	do {
		objects = fake.objects;
		ret = uv_open_xrcd(a.fd, UV_WRITE, -1, 0, &xrcd);
		ck_assert_int_lt(fake.domains, MOST_DESCRIPTORS);
	} while (!ret);
	ck_assert_int_eq(ret, -EMFILE);
	ck_assert_int_gt(fake.domains, 0);
	ck_assert_int_eq(fake.objects, objects);
}
END_TEST

START_TEST(test_domain_that_the_adapter_does_not_open_has_its_errno_and_costs_nothing)
{
	const uint64_t before = descriptors(), bytes = client_bytes();
	const int objects = fake.objects;
	uint32_t xrcd;

	fake.result[FAKE_OPEN_XRCD] = ENOSPC;
	ck_assert_int_eq(uv_open_xrcd(a.fd, UV_WRITE, -1, 0, &xrcd), -ENOSPC);
	ck_assert_uint_eq(descriptors(), before);
	ck_assert_uint_eq(client_bytes(), bytes);
	ck_assert_int_eq(fake.objects, objects);
}
END_TEST

START_TEST(test_domain_that_the_adapter_does_not_close_stays)
{
	const uint64_t before = descriptors();
	const uint32_t xrcd = open_domain(&a, -1);

	fake.result[FAKE_CLOSE_XRCD] = EBUSY;
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, xrcd), -EBUSY);
	ck_assert_uint_eq(descriptors(), before + 1);
	fake.result[FAKE_CLOSE_XRCD] = 0;
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, xrcd), 0);
	ck_assert_uint_eq(descriptors(), before);
}
END_TEST

/* ---- target QPs and SRQs ----------------------------------------------------------------------------------------- */

START_TEST(test_target_is_a_qp_of_the_adapter_without_queues)
{
	const uint64_t rings = client_device()->rings;
	const uint32_t xrcd = open_domain(&a, -1);
	struct ib_uverbs_query_qp_resp resp;
	struct uv_qp qp;

	ck_assert_int_eq(make_target(&a, xrcd, &qp), 0);
	ck_assert_uint_eq(fake.qp_request.comp_mask, IBV_QP_INIT_ATTR_XRCD);
	ck_assert_uint_eq(fake.qp_request.qp_type, IBV_QPT_XRC_RECV);
	ck_assert_ptr_null(fake.qp_request.pd);
	ck_assert_ptr_null(fake.qp_request.send_cq);
	ck_assert_ptr_null(fake.qp_request.recv_cq);
	ck_assert_uint_eq(fake.qp_request.cap.max_send_wr, 0);
	ck_assert_uint_eq(fake.qp_request.cap.max_recv_wr, 0);
	ck_assert_uint_eq(client_device()->rings, rings);
	ck_assert_int_eq(to_state(&a, qp.handle, IBV_QPS_INIT), 0);
	ck_assert_int_eq(uv_query_qp(a.fd, UV_WRITE, qp.handle, &resp), 0);
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_INIT);
	ck_assert_int_eq(to_state(&a, qp.handle, IBV_QPS_RESET), 0);
	ck_assert_int_eq(end_qp(&a, qp.handle), 0);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, xrcd), 0);
}
END_TEST

/* By ioctl a client can name an SRQ of its own. It is in another context of the adapter, where its handle means another object. */
/* No change may come between the check of another one and the change itself: the target is one for both clients. */
START_TEST(test_clients_with_an_allow_list_change_a_target_one_after_the_other)
{
	const int file = new_file();
	struct client first, second;
	struct uv_qp qp;

	client_teardown();
	client_init(NULL);
	h.config.hidden_caps = 0;
	fake.attr.orig_attr.device_cap_flags = IBV_DEVICE_XRC;
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "pkeys:0xffff"), 0);
	client_start();
	client_open(&a, h.fd);
	client_open(&b, uv_open());
	ck_assert_int_eq(make_target(&a, open_domain(&a, file), &qp), 0);
	first = (struct client){ .fd = a.fd, .qp = qp };
	second = (struct client){ .fd = b.fd };
	ck_assert_int_eq(uv_open_qp(b.fd, UV_WRITE, open_domain(&b, file), qp.qpn, IBV_QPT_XRC_RECV, &second.qp.handle),
			 0);
	ck_assert(client_changes_wait(&first, &second));
	ck_assert(!client_changes_wait(&a, &b));
	close(file);
}
END_TEST

START_TEST(test_target_takes_no_srq_into_the_context_of_the_targets)
{
	const uint32_t xrcd = open_domain(&a, -1);
	struct ib_uverbs_qp_cap cap = {};
	uint64_t user_handle = 1;
	struct uv_srq srq;
	struct uv_tree tree;
	uint32_t qpn;

	ck_assert_int_eq(make_srq(&a, xrcd, &srq), 0);
	uv_tree_init(&tree, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, xrcd);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, srq.handle);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_XRC_RECV);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
	ck_assert_int_eq(uv_ioctl(a.fd, &tree), 0);
	ck_assert_ptr_null(fake.qp_request.srq);
}
END_TEST

START_TEST(test_initiator_is_a_qp_of_the_adapter_with_a_send_queue_only)
{
	struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);
	struct client c = a;

	attr.type = IBV_QPT_XRC_SEND;
	ck_assert_int_eq(uv_create_qp(a.fd, UV_WRITE, &attr, &c.qp), 0);
	ck_assert_uint_eq(fake.qp_request.comp_mask, IBV_QP_INIT_ATTR_PD);
	ck_assert_uint_eq(fake.qp_request.qp_type, IBV_QPT_XRC_SEND);
	ck_assert_ptr_nonnull(fake.qp_request.send_cq);
	ck_assert_ptr_null(fake.qp_request.recv_cq);
	ck_assert_uint_eq(fake.qp_request.cap.max_send_wr, 16);
	ck_assert_uint_eq(fake.qp_request.cap.max_send_sge, 4);
	ck_assert_uint_eq(fake.qp_request.cap.max_recv_wr, 0);
	ck_assert_uint_eq(fake.qp_request.cap.max_recv_sge, 0);
	client_connect(&c, c.qp.qpn);
	ck_assert_int_eq(client_write(&c, 1, 0, 8, a.mem + 64), 0);
	client_expect(&c, 1);
	ck_assert_int_eq(client_recv(&c, 2, 0, 8), -EINVAL);
}
END_TEST

START_TEST(test_post_to_a_target_is_einval)
{
	struct client c = a;

	ck_assert_int_eq(make_target(&a, open_domain(&a, -1), &c.qp), 0);
	ck_assert_int_eq(client_send(&c, 1, 0, 8, 0), -EINVAL);
	ck_assert_int_eq(client_recv(&c, 2, 0, 8), -EINVAL);
}
END_TEST

/* The SRQ and the target are in two contexts of the adapter. */
START_TEST(test_message_to_a_target_reaches_the_srq_of_another_client_of_the_domain)
{
	const int file = new_file();
	const struct uv_qp qp = ready_target(&a, open_domain(&a, file));
	struct uv_srq srq, other;

	ck_assert_int_eq(make_srq(&b, open_domain(&b, file), &srq), 0);
	ck_assert_int_eq(make_srq(&b, open_domain(&b, -1), &other), 0);
	ck_assert_uint_ne(srq.srqn, other.srqn);
	ck_assert_int_eq(client_post_srq(&b, srq.handle, 5, 64), 0);
	ck_assert_int_eq(client_post_srq(&b, other.handle, 6, 64), 0);
	ck_assert_int_eq(fake_xrc_send(qp.qpn, other.srqn, "wrong domain", 13), -1);
	client_expect_none(&b);
	ck_assert_int_eq(fake_xrc_send(qp.qpn, srq.srqn, "to the SRQ", 11), 0);
	client_expect(&b, 5);
	ck_assert_str_eq(b.mem, "to the SRQ");
	client_expect_none(&b);
	close(file);
}
END_TEST

START_TEST(test_target_outlives_the_client_that_made_it)
{
	const int file = new_file();
	const struct uv_qp qp = ready_target(&b, open_domain(&b, file));
	const uint32_t xrcd = open_domain(&a, file);
	uint32_t opened;
	struct uv_srq srq;

	ck_assert_int_eq(uv_open_qp(a.fd, UV_WRITE, xrcd, qp.qpn, IBV_QPT_XRC_RECV, &opened), 0);
	uv_close(b.fd);
	ck_assert_int_eq(make_srq(&a, xrcd, &srq), 0);
	ck_assert_int_eq(client_post_srq(&a, srq.handle, 7, 64), 0);
	ck_assert_int_eq(fake_xrc_send(qp.qpn, srq.srqn, "still there", 12), 0);
	client_expect(&a, 7);
	ck_assert_str_eq(a.mem, "still there");
	ck_assert_int_eq(to_state(&a, opened, IBV_QPS_ERR), 0);
	ck_assert_int_eq(end_qp(&a, opened), 0);
	close(file);
}
END_TEST

START_TEST(test_xrc_srq_has_the_adapters_number_and_limits)
{
	const uint64_t before = client_bytes();
	const uint32_t xrcd = open_domain(&a, -1);
	const uint64_t with_domain = client_bytes();
	struct ib_uverbs_query_srq_resp resp;
	struct uv_srq srq;

	ck_assert_int_eq(make_srq(&a, xrcd, &srq), 0);
	ck_assert_uint_ne(srq.srqn, 0);
	ck_assert_uint_ge(client_bytes(), with_domain + hca_srq_bytes(16, 2));
	ck_assert_int_eq(uv_query_srq(a.fd, UV_WRITE, srq.handle, &resp), 0);
	ck_assert_uint_eq(resp.max_wr, 16);
	ck_assert_uint_eq(resp.max_sge, 2);
	ck_assert_int_eq(uv_destroy_srq(a.fd, UV_WRITE, srq.handle, NULL), 0);
	ck_assert_uint_eq(client_bytes(), with_domain);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, xrcd), 0);
	ck_assert_uint_eq(client_bytes(), before);
}
END_TEST

START_TEST(test_xrc_srq_that_the_adapter_does_not_make_has_its_errno_and_leaves_nothing)
{
	static const enum fake_call fails[] = { FAKE_OPEN_XRCD, FAKE_CREATE_SRQ, FAKE_GET_SRQ_NUM };
	const uint32_t xrcd = open_domain(&a, -1);
	const unsigned int rings = client_device()->rings;
	const uint64_t before = client_bytes();
	const int objects = fake.objects;
	struct uv_srq srq;

	fake.result[fails[_i]] = ENOSPC;
	ck_assert_int_eq(make_srq(&a, xrcd, &srq), -ENOSPC);
	ck_assert_int_eq(fake.objects, objects);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_uint_eq(client_device()->rings, rings);
	fake.result[fails[_i]] = 0;
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, xrcd), 0);
}
END_TEST

START_TEST(test_target_that_the_adapter_does_not_make_has_its_errno_and_leaves_nothing)
{
	const uint32_t xrcd = open_domain(&a, -1);
	const uint64_t before = client_bytes();
	struct uv_qp qp;

	fake.result[FAKE_CREATE_QP] = ENOSPC;
	ck_assert_int_eq(make_target(&a, xrcd, &qp), -ENOSPC);
	fake.result[FAKE_CREATE_QP] = 0;
	ck_assert_uint_eq(client_bytes(), before);
	qp = ready_target(&a, xrcd);
	fake.result[FAKE_MODIFY_QP] = EINVAL;
	ck_assert_int_eq(to_state(&a, qp.handle, IBV_QPS_ERR), -EINVAL);
	fake.result[FAKE_DESTROY_QP] = EBUSY;
	ck_assert_int_eq(end_qp(&a, qp.handle), -EBUSY);
	fake.result[FAKE_DESTROY_QP] = 0;
	ck_assert_int_eq(end_qp(&a, qp.handle), 0);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_int_eq(uv_close_xrcd(a.fd, UV_WRITE, xrcd), 0);
}
END_TEST

/* client_teardown() checks that nothing stays on the adapter: it refuses to close a domain that has users. */
START_TEST(test_objects_of_a_client_that_ends_leave_in_their_order)
{
	const int file = new_file(), objects = fake.objects;
	const uint32_t xrcd = open_domain(&b, file);
	struct uv_srq srq;

	ready_target(&b, xrcd);
	ck_assert_int_eq(make_srq(&b, xrcd, &srq), 0);
	ck_assert_int_eq(client_post_srq(&b, srq.handle, 1, 64), 0);
	uv_close(b.fd);
	ck_assert_int_eq(fake.domains, 0);
	ck_assert_int_lt(fake.objects, objects);
	close(file);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_event_of_a_target_reaches_the_client_that_made_it_and_that_of_an_srq_its_owner)
{
	const int of_a = client_async_fd(&a), of_b = client_async_fd(&b), file = new_file();
	const struct uv_qp qp = ready_target(&a, open_domain(&a, file));
	struct uv_srq srq;

	ck_assert_int_eq(make_srq(&b, open_domain(&b, file), &srq), 0);
	fake_srq_event(srq.srqn, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_uint_eq(client_async_event(of_b), IBV_EVENT_SRQ_LIMIT_REACHED);
	fake_qp_event(qp.qpn, IBV_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_uint_eq(client_async_event(of_a), IBV_EVENT_QP_LAST_WQE_REACHED);
	close(of_a);
	close(of_b);
	close(file);
}
END_TEST

static struct uv_qp target;

static int end_target(const struct client *c)
{
	return end_qp(c, target.handle);
}

/* The thread has taken the event and has not passed it on yet: the QP must not be freed. */
START_TEST(test_destruction_of_a_target_waits_for_the_event_that_is_relayed_when_the_adapter_is_gone)
{
	struct worker destroy;

	target = ready_target(&a, open_domain(&a, -1));
	fake.blocks_events = true;
	fake_qp_event(target.qpn, IBV_EVENT_COMM_EST);
	sem_wait(&fake.blocked);
	fake_device_lost();
	worker_start(&destroy, &a, end_target);
	ck_assert(worker_waits());
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&destroy), 0);
}
END_TEST

START_TEST(test_dead_adapter_is_eio_and_everything_can_be_destroyed)
{
	const int fd = client_async_fd(&a);
	const uint64_t before = descriptors();
	const uint32_t xrcd = open_domain(&a, -1);
	const struct uv_qp qp = ready_target(&a, xrcd);
	struct ib_uverbs_query_qp_resp resp;
	struct uv_srq srq;
	struct uv_qp none;
	uint32_t other;

	ck_assert_int_eq(make_srq(&a, xrcd, &srq), 0);
	fake_device_fatal();
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_DEVICE_FATAL);
	ck_assert_int_eq(uv_open_xrcd(a.fd, UV_WRITE, -1, 0, &other), -EIO);
	ck_assert_int_eq(make_target(&a, xrcd, &none), -EIO);
	ck_assert_int_eq(make_srq(&a, xrcd, &srq), -EIO);
	ck_assert_int_eq(to_state(&a, qp.handle, IBV_QPS_ERR), -EIO);
	ck_assert_int_eq(uv_query_qp(a.fd, UV_WRITE, qp.handle, &resp), -EIO);
	ck_assert_int_eq(end_qp(&a, qp.handle), 0);
	harness_close_file(&h);
	ck_assert_uint_le(descriptors(), before);
	close(fd);
}
END_TEST

static void add_tests(TCase *t)
{
	tcase_add_test(t, test_adapter_without_xrc_is_a_device_without_it);
	tcase_add_test(t, test_adapter_with_xrc_is_a_device_with_it);
	tcase_add_test(t, test_domain_is_one_of_the_adapter_for_all_its_clients);
	tcase_add_test(t, test_descriptors_of_a_domain_are_charged_to_its_user);
	tcase_add_test(t, test_domain_beyond_the_users_limit_of_descriptors_is_emfile);
	tcase_add_test(t, test_domain_that_the_adapter_does_not_open_has_its_errno_and_costs_nothing);
	tcase_add_test(t, test_domain_that_the_adapter_does_not_close_stays);
	tcase_add_test(t, test_target_is_a_qp_of_the_adapter_without_queues);
	tcase_add_test(t, test_clients_with_an_allow_list_change_a_target_one_after_the_other);
	tcase_add_test(t, test_target_takes_no_srq_into_the_context_of_the_targets);
	tcase_add_test(t, test_initiator_is_a_qp_of_the_adapter_with_a_send_queue_only);
	tcase_add_test(t, test_post_to_a_target_is_einval);
	tcase_add_test(t, test_message_to_a_target_reaches_the_srq_of_another_client_of_the_domain);
	tcase_add_test(t, test_target_outlives_the_client_that_made_it);
	tcase_add_test(t, test_xrc_srq_has_the_adapters_number_and_limits);
	tcase_add_loop_test(t, test_xrc_srq_that_the_adapter_does_not_make_has_its_errno_and_leaves_nothing, 0, 3);
	tcase_add_test(t, test_target_that_the_adapter_does_not_make_has_its_errno_and_leaves_nothing);
	tcase_add_test(t, test_objects_of_a_client_that_ends_leave_in_their_order);
	tcase_add_test(t, test_event_of_a_target_reaches_the_client_that_made_it_and_that_of_an_srq_its_owner);
	tcase_add_test(t, test_destruction_of_a_target_waits_for_the_event_that_is_relayed_when_the_adapter_is_gone);
	tcase_add_test(t, test_dead_adapter_is_eio_and_everything_can_be_destroyed);
}

int main(void)
{
	TCase *t = tcase_create("xrc");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	add_tests(t);
	return run_suite("the verbs backend with a fake adapter: XRC", t);
}
