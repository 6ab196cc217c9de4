/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains, their target QPs and SRQs. The kernel's rxe has none, so a run against the kernel only shows that the
 * commands are absent. The standard is docs/abi-rules.md, which was derived from the kernel's source.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "abi.h"

enum { XRC_TGT = IBV_QPT_XRC_RECV, XRC_INI = IBV_QPT_XRC_SEND };

static int new_file(void)
{
	int file = memfd_create("xrcd", 0);

	ck_assert_int_ge(file, 0);
	return file;
}

static uint32_t private_domain(int fd)
{
	uint32_t xrcd;

	expect_ok(uv_open_xrcd(fd, UV_WRITE, -1, 0, &xrcd));
	return xrcd;
}

static struct uv_qp create_target(int fd, enum uv_front front, uint32_t xrcd)
{
	struct uv_qp_attr attr = uv_qp_attr(xrcd, 0);
	struct uv_qp qp;

	attr.type = XRC_TGT;
	attr.user_handle = 0x7a26;
	expect_ok(uv_create_qp(fd, front, &attr, &qp));
	return qp;
}

START_TEST(test_xrc_without_the_driver_is_eopnotsupp)
{
	int fd = open_context(NULL);
	uint32_t handle;

	if (!choice("no-xrc"))
		SKIP("the device has XRC");
	expect(uv_open_xrcd(fd, _i, -1, 0, &handle), EOPNOTSUPP);
	expect(uv_close_xrcd(fd, _i, 0), EOPNOTSUPP);
	expect(uv_close_xrcd(fd, UV_METHOD, 0), EPROTONOSUPPORT);
	expect(uv_open_qp(fd, _i, 0, 0, XRC_TGT, &handle), EOPNOTSUPP);
}
END_TEST

/* ---- domains ----------------------------------------------------------------------------------------------------- */

START_TEST(test_xrcd_01_no_file_is_a_private_domain)
{
	int fd = open_context(NULL);
	uint32_t a, b;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_open_xrcd(fd, _i, -1, O_EXCL, &a));
	expect_ok(uv_open_xrcd(fd, _i, -1, O_EXCL, &b));
	ck_assert_uint_eq(a, 0);
	ck_assert_uint_eq(b, 1);
	expect_ok(uv_close_xrcd(fd, _i, a));
	expect(uv_close_xrcd(fd, _i, a), ENOENT);
	expect_ok(uv_close_xrcd(fd, UV_METHOD, b));
	expect(uv_close_xrcd(fd, UV_METHOD, b), ENOENT);
}
END_TEST

START_TEST(test_xrcd_01_bad_file_is_ebadf)
{
	int fd = uv_open(), path = open("/", O_PATH), none = 500;
	uint32_t xrcd;

	target();
	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	/* The file is looked up before the context. */
	expect(uv_open_xrcd(fd, _i, none, O_CREAT, &xrcd), EBADF);
	expect(uv_open_xrcd(fd, _i, -1, O_CREAT, &xrcd), EINVAL);
	expect_ok(uv_get_context(fd, UV_WRITE, NULL, NULL));
	expect(uv_open_xrcd(fd, _i, none, O_CREAT, &xrcd), EBADF);
	expect(uv_open_xrcd(fd, _i, -2, O_CREAT, &xrcd), EBADF);
	expect(uv_open_xrcd(fd, _i, path, O_CREAT, &xrcd), EBADF);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_xrcd_01_file_names_a_domain_of_the_device)
{
	int fd = open_context(NULL), other = open_context(NULL), file = new_file(), same = dup(file);
	uint32_t a, b;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect(uv_open_xrcd(fd, _i, file, 0, &a), EAGAIN);
	expect(uv_open_xrcd(fd, _i, file, O_EXCL, &a), EAGAIN);
	expect_ok(uv_open_xrcd(fd, _i, file, O_CREAT | O_EXCL, &a));
	expect(uv_open_xrcd(fd, _i, same, O_CREAT | O_EXCL, &b), EINVAL);
	expect(uv_open_xrcd(other, _i, same, O_EXCL, &b), EINVAL);
	expect_ok(uv_open_xrcd(other, _i, same, 0, &b));
	/* A domain ends with its last handle, whichever open file created it. */
	expect_ok(uv_close_xrcd(fd, _i, a));
	expect_ok(uv_open_xrcd(fd, _i, file, 0, &a));
	expect_ok(uv_close_xrcd(fd, _i, a));
	expect_ok(uv_close_xrcd(other, _i, b));
	expect(uv_open_xrcd(fd, _i, file, 0, &a), EAGAIN);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

static int open_inherited(void *arg)
{
	int file = *(int *)arg, fd = open_context(NULL);
	uint32_t xrcd;

	return uv_open_xrcd(fd, UV_INVOKE, file, 0, &xrcd);
}

/* Processes share a domain by the inode of its file. Closing the device file closes its handles of the domain. */
START_TEST(test_xrcd_01_processes_share_a_domain)
{
	int fd = open_context(NULL), file = new_file();
	uint32_t xrcd;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect(uv_in_child(open_inherited, &file), EAGAIN);
	expect_ok(uv_open_xrcd(fd, _i, file, O_CREAT, &xrcd));
	expect_ok(uv_in_child(open_inherited, &file));
	close_node(fd);
	/* Our devices learn of a last close a moment later. */
	for (int i = 0; i < 200 && uv_in_child(open_inherited, &file) != -EAGAIN; i++)
		usleep(10000);
	expect(uv_in_child(open_inherited, &file), EAGAIN);
}
END_TEST

START_TEST(test_xrcd_is_busy_while_its_handle_has_users)
{
	struct uv_srq_attr attr;
	int fd = open_context(NULL);
	uint32_t xrcd, pd, cq;
	struct uv_srq srq;
	struct uv_qp qp;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	xrcd = private_domain(fd);
	qp = create_target(fd, UV_WRITE, xrcd);
	expect(uv_close_xrcd(fd, _i, xrcd), EBUSY);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp.handle, NULL));
	attr = uv_srq_attr(pd);
	attr.type = IB_UVERBS_SRQT_XRC;
	attr.xrcd = xrcd;
	attr.cq = cq;
	expect_ok(uv_create_xsrq(fd, UV_WRITE, &attr, &srq));
	ck_assert_uint_ne(srq.srqn, 0);
	expect(uv_close_xrcd(fd, _i, xrcd), EBUSY);
	expect(uv_destroy_cq(fd, UV_WRITE, cq, NULL), EBUSY);
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect_ok(uv_destroy_srq(fd, UV_WRITE, srq.handle, NULL));
	expect_ok(uv_close_xrcd(fd, _i, xrcd));
	expect_ok(uv_destroy_cq(fd, UV_WRITE, cq, NULL));
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

/* ---- SRQs -------------------------------------------------------------------------------------------------------- */

START_TEST(test_srq_01_xrc)
{
	struct uv_srq_attr attr;
	int fd = open_context(NULL);
	uint32_t xrcd, pd, cq;
	struct uv_srq srq;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	xrcd = private_domain(fd);
	attr = uv_srq_attr(99);
	attr.type = IB_UVERBS_SRQT_XRC;
	attr.xrcd = attr.cq = pd;
	if (_i != UV_METHOD) {
		/* Order of look-ups: the domain, the CQ, the PD. */
		expect(uv_create_xsrq(fd, _i, &attr, &srq), EINVAL);
		attr.xrcd = xrcd;
		attr.cq = 98;
		expect(uv_create_xsrq(fd, _i, &attr, &srq), ENOENT);
		attr.cq = cq;
		expect(uv_create_xsrq(fd, _i, &attr, &srq), ENOENT);
	}
	attr.xrcd = xrcd;
	attr.cq = cq;
	attr.pd = pd;
	expect_ok(_i == UV_METHOD ? uv_create_srq(fd, _i, &attr, &srq) : uv_create_xsrq(fd, _i, &attr, &srq));
	ck_assert_uint_eq(srq.handle, 3);
	ck_assert_uint_ne(srq.srqn, 0);
	expect_ok(uv_destroy_srq(fd, UV_WRITE, srq.handle, NULL));
}
END_TEST

/* Creates a QP with an SRQ, by the plain command. */
static int create_qp_with(int fd, enum uv_front front, uint8_t type, uint32_t pd, uint32_t cq, uint32_t srq)
{
	struct ib_uverbs_create_qp cmd = { .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 4,
					   .max_send_sge = 1,
					   .qp_type = type,
					   .is_srq = 1,
					   .srq_handle = srq };
	struct ib_uverbs_create_qp_resp resp = {};

	return uv_cmd(fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp) });
}

START_TEST(test_qp_05_xrc_srq_of_a_plain_qp_is_einval)
{
	struct uv_srq_attr attr;
	int fd = open_context(NULL);
	uint32_t pd, cq;
	struct uv_srq srq;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	attr = uv_srq_attr(pd);
	attr.type = IB_UVERBS_SRQT_XRC;
	attr.xrcd = private_domain(fd);
	attr.cq = cq;
	expect_ok(uv_create_xsrq(fd, UV_WRITE, &attr, &srq));
	expect(create_qp_with(fd, _i, IBV_QPT_RC, pd, cq, srq.handle), EINVAL);
	/* The SRQ is checked before the PD is looked up. */
	expect(create_qp_with(fd, _i, IBV_QPT_RC, 99, cq, srq.handle), EINVAL);
	expect(create_qp_with(fd, _i, IBV_QPT_RC, 99, cq, 98), ENOENT);
	/* An XRC_SEND QP has no SRQ: the command's SRQ handle is ignored. */
	expect_ok(create_qp_with(fd, _i, XRC_INI, pd, cq, 98));
}
END_TEST

/* ---- target QPs -------------------------------------------------------------------------------------------------- */

START_TEST(test_qp_04_xrc_target_is_of_its_domain)
{
	int fd = open_context(NULL);
	uint32_t xrcd, pd;
	struct uv_qp_attr attr;
	struct uv_qp qp;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	xrcd = private_domain(fd);
	attr = uv_qp_attr(pd, 0);
	attr.type = XRC_TGT;
	expect(uv_create_qp(fd, _i, &attr, &qp), EINVAL);
	attr.pd = 99;
	expect(uv_create_qp(fd, _i, &attr, &qp), EINVAL);
	qp = create_target(fd, _i, xrcd);
	ck_assert_uint_eq(qp.handle, 2);
	ck_assert_uint_ne(qp.qpn, 0);
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
	expect_ok(qp_to_init(fd, qp.handle));
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp.handle, NULL));
}
END_TEST

/* By method: the commands have one field for a PD or a domain. */
START_TEST(test_qp_04_domain_of_another_qp_is_einval)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1 }, resp_cap;
	uint32_t pd, cq, xrcd, qpn;
	int fd = open_context(NULL);
	uint64_t user_handle = 1;
	struct uv_tree tree;
	struct uv_qp qp;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	xrcd = private_domain(fd);
	uv_tree_init(&tree, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_RC);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &resp_cap, sizeof(resp_cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
	if (uv_room.create_qp)
		uv_attr_out(&tree, UVERBS_ATTR_UHW_OUT, qp.driver, uv_room.create_qp);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, xrcd);
	expect(uv_ioctl(fd, &tree), EINVAL);
	tree.hdr.num_attrs--;
	tree.hdr.length -= sizeof(tree.hdr.attrs[0]);
	expect_ok(uv_ioctl(fd, &tree));
}
END_TEST

START_TEST(test_qp_14_open_qp)
{
	struct ib_uverbs_open_qp cmd = { .qp_type = XRC_TGT };
	struct ib_uverbs_query_qp_resp query = {};
	uint32_t xrcd, other, pd, cq, handle;
	int fd = open_context(NULL);
	struct uv_qp_attr attr;
	struct uv_qp qp, ini;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	xrcd = private_domain(fd);
	other = private_domain(fd);
	qp = create_target(fd, UV_WRITE, xrcd);
	attr = uv_qp_attr(pd, cq);
	attr.type = XRC_INI;
	expect_ok(uv_create_qp(fd, UV_WRITE, &attr, &ini));
	expect(uv_open_qp(fd, _i, 99, qp.qpn, XRC_TGT, &handle), EINVAL);
	expect(uv_open_qp(fd, _i, pd, qp.qpn, XRC_TGT, &handle), EINVAL);
	expect(uv_open_qp(fd, _i, other, qp.qpn, XRC_TGT, &handle), EINVAL);
	expect(uv_open_qp(fd, _i, xrcd, qp.qpn + 1, XRC_TGT, &handle), EINVAL);
	expect(uv_open_qp(fd, _i, xrcd, qp.qpn, IBV_QPT_RC, &handle), EINVAL);
	expect(uv_open_qp(fd, _i, xrcd, ini.qpn, XRC_TGT, &handle), EINVAL);
	cmd.pd_handle = xrcd;
	cmd.qpn = qp.qpn;
	/* If the answer cannot be written, no handle is left: else the domain could not be closed below. */
	expect(uv_cmd(fd, _i,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_OPEN_QP, &cmd, sizeof(cmd), uv_guard(NULL, 0),
					sizeof(struct ib_uverbs_create_qp_resp) }),
	       EFAULT);
	expect_ok(uv_open_qp(fd, _i, xrcd, qp.qpn, XRC_TGT, &handle));
	ck_assert_uint_eq(handle, 6);
	expect_ok(qp_to_init(fd, handle));
	expect_ok(uv_query_qp(fd, UV_WRITE, qp.handle, &query));
	ck_assert_uint_eq(query.qp_state, IBV_QPS_INIT);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp.handle, NULL));
	/* The QP lives until its last handle is destroyed. */
	expect_ok(uv_query_qp(fd, UV_WRITE, handle, &query));
	ck_assert_uint_eq(query.qp_state, IBV_QPS_INIT);
	expect(uv_close_xrcd(fd, UV_WRITE, xrcd), EBUSY);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, handle, NULL));
	expect(uv_open_qp(fd, _i, xrcd, qp.qpn, XRC_TGT, &handle), EINVAL);
	expect_ok(uv_close_xrcd(fd, UV_WRITE, xrcd));
}
END_TEST

struct opened {
	int file;
	uint32_t qpn;
};

/* Runs in another process: opens the QP, moves it to INIT, and exits. */
static int open_and_init(void *arg)
{
	struct opened *opened = arg;
	int fd = open_context(NULL), ret;
	uint32_t xrcd, qp;

	ret = uv_open_xrcd(fd, UV_WRITE, opened->file, 0, &xrcd);
	if (!ret)
		ret = uv_open_qp(fd, UV_WRITE, xrcd, opened->qpn, XRC_TGT, &qp);
	return ret ? ret : qp_to_init(fd, qp);
}

START_TEST(test_qp_14_processes_share_a_target)
{
	struct opened opened = { .file = new_file() };
	struct ib_uverbs_query_qp_resp query = {};
	int fd = open_context(NULL);
	struct uv_qp qp;
	uint32_t xrcd;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_open_xrcd(fd, UV_WRITE, opened.file, O_CREAT, &xrcd));
	qp = create_target(fd, UV_WRITE, xrcd);
	opened.qpn = qp.qpn;
	expect_ok(uv_in_child(open_and_init, &opened));
	expect_ok(uv_query_qp(fd, UV_WRITE, qp.handle, &query));
	ck_assert_uint_eq(query.qp_state, IBV_QPS_INIT);
}
END_TEST

/* A target QP that enters the error state raises QP_LAST_WQE_REACHED. Only its creator's handle gets the event. */
START_TEST(test_event_11_opened_qp_has_no_events)
{
	struct ib_uverbs_async_event_desc event = {};
	uint32_t xrcd, other_xrcd, handle, events;
	int async_fd, other_async, file = new_file();
	int fd = open_context(&async_fd), other = open_context(&other_async);
	struct uv_qp qp;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	expect_ok(uv_open_xrcd(fd, UV_WRITE, file, O_CREAT, &xrcd));
	expect_ok(uv_open_xrcd(other, UV_WRITE, file, 0, &other_xrcd));
	qp = create_target(fd, UV_WRITE, xrcd);
	expect_ok(uv_open_qp(other, UV_WRITE, other_xrcd, qp.qpn, XRC_TGT, &handle));
	expect_ok(qp_to_init(other, handle));
	expect_ok(qp_to_state(other, handle, IBV_QPS_ERR));
	ck_assert_int_ne(poll_events(async_fd, 2000), 0);
	ck_assert_int_eq(read_event(async_fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 0x7a26);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_int_eq(poll_events(other_async, 100), 0);
	expect_ok(uv_destroy_qp(other, UV_WRITE, handle, &events));
	ck_assert_uint_eq(events, 0);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp.handle, &events));
	ck_assert_uint_eq(events, 1);
}
END_TEST

START_TEST(test_event_11_without_its_creators_handle_a_qp_has_no_events)
{
	uint32_t xrcd, handle, events;
	int async_fd, fd = open_context(&async_fd);
	struct uv_qp qp;

	if (choice("no-xrc"))
		SKIP("the device has no XRC");
	xrcd = private_domain(fd);
	qp = create_target(fd, UV_WRITE, xrcd);
	expect_ok(uv_open_qp(fd, UV_WRITE, xrcd, qp.qpn, XRC_TGT, &handle));
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp.handle, NULL));
	expect_ok(qp_to_init(fd, handle));
	expect_ok(qp_to_state(fd, handle, IBV_QPS_ERR));
	ck_assert_int_eq(poll_events(async_fd, 100), 0);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, handle, &events));
	ck_assert_uint_eq(events, 0);
}
END_TEST

TCase *case_xrc(void)
{
	TCase *tc = tcase_create("xrc");

	tcase_add_loop_test(tc, test_xrc_without_the_driver_is_eopnotsupp, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_xrcd_01_no_file_is_a_private_domain, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_xrcd_01_bad_file_is_ebadf, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_xrcd_01_file_names_a_domain_of_the_device, 0, UV_PLAIN_FRONTS);
	add_loop_test_unless("fork", tc, test_xrcd_01_processes_share_a_domain, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_xrcd_is_busy_while_its_handle_has_users, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_srq_01_xrc, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_srq_01_xrc, UV_METHOD, UV_METHOD + 1);
	tcase_add_loop_test(tc, test_qp_05_xrc_srq_of_a_plain_qp_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_04_xrc_target_is_of_its_domain, 0, UV_METHOD);
	tcase_add_test(tc, test_qp_04_domain_of_another_qp_is_einval);
	tcase_add_loop_test(tc, test_qp_14_open_qp, 0, UV_PLAIN_FRONTS);
	add_test_unless("fork", tc, test_qp_14_processes_share_a_target);
	tcase_add_test(tc, test_event_11_opened_qp_has_no_events);
	tcase_add_test(tc, test_event_11_without_its_creators_handle_a_qp_has_no_events);
	return tc;
}
