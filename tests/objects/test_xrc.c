/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC: domains that open files share, target QPs with several handles, SRQs of the type. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
}

static int open_xrcd(int fd, uint32_t oflags, uint32_t *xrcd)
{
	struct ib_uverbs_open_xrcd cmd = { .fd = fd, .oflags = oflags };
	struct ib_uverbs_open_xrcd_resp resp = { .xrcd_handle = ~0u };
	int ret = WRITE(&h, OPEN_XRCD, &cmd, &resp);

	*xrcd = resp.xrcd_handle;
	return ret;
}

static int close_xrcd(uint32_t xrcd)
{
	struct ib_uverbs_close_xrcd cmd = { .xrcd_handle = xrcd };

	return WRITE_IN(&h, CLOSE_XRCD, &cmd);
}

static int create_target(uint32_t xrcd, struct ib_uverbs_create_qp_resp *resp)
{
	struct ib_uverbs_create_qp cmd = { .user_handle = 0x7777, .pd_handle = xrcd, .qp_type = IBV_QPT_XRC_RECV };

	return WRITE(&h, CREATE_QP, &cmd, resp);
}

static int open_target(uint32_t xrcd, uint32_t qpn, uint32_t *qp)
{
	struct ib_uverbs_open_qp cmd = {
		.user_handle = 0x8888, .pd_handle = xrcd, .qpn = qpn, .qp_type = IBV_QPT_XRC_RECV
	};
	struct ib_uverbs_create_qp_resp resp = { .max_send_wr = 9 };
	int ret = WRITE(&h, OPEN_QP, &cmd, &resp);

	*qp = resp.qp_handle;
	if (!ret) {
		ck_assert_uint_eq(resp.qpn, qpn);
		ck_assert_uint_eq(resp.max_send_wr, 0);
	}
	return ret;
}

static int destroy_qp(uint32_t qp, uint32_t *events)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = qp };
	struct ib_uverbs_destroy_qp_resp resp = { .events_reported = ~0u };
	int ret = WRITE(&h, DESTROY_QP, &cmd, &resp);

	if (events)
		*events = resp.events_reported;
	return ret;
}

/* A second client of the device; calls are its until use(h.file). */
static struct uvd_file *second_file(void)
{
	struct ib_uverbs_get_context_resp resp;
	struct uvd_file *file;
	int err;

	file = uvd_file_open(h.dev, &err);
	ck_assert_ptr_nonnull(file);
	h.call->file = file;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	return file;
}

static void use(struct uvd_file *file)
{
	h.call->file = file;
}

static unsigned int num_alloc, num_dealloc, num_destroyed;

static int count_alloc(struct uvd_xrcd *xrcd)
{
	ck_assert_ptr_eq(xrcd->dev, &h.dev->ib);
	num_alloc++;
	return 0;
}

static int count_dealloc(struct uvd_xrcd *xrcd)
{
	ck_assert_int_eq(atomic_load(&xrcd->usecnt), 0);
	num_dealloc++;
	return 0;
}

static int count_destroy(struct uvd_qp *qp)
{
	num_destroyed++;
	return uvd_backend_null.destroy_qp(qp);
}

static void count(void)
{
	num_alloc = num_dealloc = num_destroyed = 0;
	h.ops.alloc_xrcd = count_alloc;
	h.ops.dealloc_xrcd = count_dealloc;
	h.ops.destroy_qp = count_destroy;
}

/* ---- domains ----------------------------------------------------------------------------------------------------- */

START_TEST(test_xrcd_01_minus_one_is_always_a_new_private_domain)
{
	uint32_t a, b;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(-1, 0, &a), 0);
	ck_assert_int_eq(open_xrcd(-1, O_EXCL, &b), 0);
	ck_assert_uint_eq(a, 2);
	ck_assert_uint_eq(b, 3);
	ck_assert_uint_eq(num_alloc, 2);
	ck_assert_int_eq(close_xrcd(a), 0);
	ck_assert_int_eq(close_xrcd(a), -ENOENT);
	ck_assert_int_eq(close_xrcd(pd), -EINVAL);
	ck_assert_uint_eq(num_dealloc, 1);
	harness_close_file(&h);
	ck_assert_uint_eq(num_dealloc, 2);
}
END_TEST

START_TEST(test_xrcd_01_a_file_is_one_domain_of_all_open_files)
{
	int fd = memfd_create("domain", 0), same = dup(fd), other = memfd_create("other", 0);
	struct uvd_file *second;
	uint32_t a, b;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(fd, 0, &a), -EAGAIN);
	ck_assert_int_eq(open_xrcd(fd, O_EXCL, &a), -EAGAIN);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT | O_EXCL, &a), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT | O_EXCL, &b), -EINVAL);
	ck_assert_int_eq(open_xrcd(fd, O_EXCL, &b), -EINVAL);
	ck_assert_int_eq(open_xrcd(other, 0, &b), -EAGAIN);
	second = second_file();
	ck_assert_int_eq(open_xrcd(same, 0, &b), 0);
	ck_assert_uint_eq(num_alloc, 1);
	/* The name is the file's, not the descriptor's. */
	close(fd);
	close(same);
	use(h.file);
	ck_assert_int_eq(close_xrcd(a), 0);
	ck_assert_uint_eq(num_dealloc, 0);
	uvd_file_close(second);
	ck_assert_uint_eq(num_dealloc, 1);
	ck_assert_ptr_null(h.dev->xrcds);
	ck_assert_uint_eq(h.dev->num_xrcds, 0);
	ck_assert_int_eq(open_xrcd(other, O_CREAT, &a), 0);
	close(other);
}
END_TEST

START_TEST(test_xrcd_01_a_bad_descriptor_is_ebadf)
{
	int path = open("/", O_PATH | O_CLOEXEC);
	uint32_t a;

	/* Before the kernel looks for the context. */
	ck_assert_int_eq(open_xrcd(999, O_CREAT, &a), -EBADF);
	ck_assert_int_eq(open_xrcd(-1, O_CREAT, &a), -EINVAL);
	begin();
	ck_assert_int_eq(open_xrcd(999, O_CREAT, &a), -EBADF);
	ck_assert_int_eq(open_xrcd(-2, O_CREAT, &a), -EBADF);
	ck_assert_int_eq(open_xrcd(path, O_CREAT, &a), -EBADF);
	close(path);
	ck_assert_int_eq(open_xrcd(-1, 0, &a), 0);
	ck_assert_uint_eq(a, 2);
}
END_TEST

START_TEST(test_xrcd_files_of_any_kind_name_a_domain)
{
	uint32_t a[4];
	int pair[2];

	begin();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(open_xrcd(pair[0], O_CREAT, &a[0]), 0);
	ck_assert_int_eq(open_xrcd(pair[1], 0, &a[1]), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_int_eq(open_xrcd(pair[0], O_CREAT, &a[2]), 0);
	ck_assert_int_eq(open_xrcd(pair[1], 0, &a[3]), 0); /* both ends are one inode */
	close(pair[0]);
	close(pair[1]);
}
END_TEST

/* The number of an inode that is gone would be another file's soon. */
START_TEST(test_xrcd_keeps_the_inode_of_a_deleted_file)
{
	char path[] = "/tmp/uvd-xrcd-XXXXXX", again[] = "/tmp/uvd-xrcd-XXXXXX";
	int fd = mkstemp(path), fds[64];
	struct stat st, now;
	uint32_t a;

	begin();
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	unlink(path);
	close(fd);
	for (int i = 0; i < 64; i++) {
		memcpy(again, "/tmp/uvd-xrcd-XXXXXX", sizeof(again));
		fds[i] = mkstemp(again);
		unlink(again);
		ck_assert_int_eq(fstat(fds[i], &now), 0);
		ck_assert(now.st_ino != st.st_ino || now.st_dev != st.st_dev);
	}
	ck_assert_int_eq(open_xrcd(fds[63], 0, &a), -EAGAIN);
	for (int i = 0; i < 64; i++)
		close(fds[i]);
}
END_TEST

static int refuse_xrcd(struct uvd_xrcd *xrcd)
{
	return -EDOM;
}

START_TEST(test_xrcd_that_fails_leaves_nothing)
{
	struct ib_uverbs_open_xrcd cmd = { .oflags = O_CREAT };
	struct ib_uverbs_open_xrcd_resp resp;
	int fd = memfd_create("domain", 0);
	uint32_t a;

	begin();
	cmd.fd = fd;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd), BAD, sizeof(resp)),
			 -EFAULT);
	ck_assert_int_eq(open_xrcd(fd, 0, &a), -EAGAIN);
	h.ops.alloc_xrcd = refuse_xrcd;
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), -EDOM);
	ck_assert_int_eq(open_xrcd(-1, 0, &a), -EDOM);
	h.ops.alloc_xrcd = uvd_backend_null.alloc_xrcd;
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_uint_eq(a, 2);
	h.ops.dealloc_xrcd = refuse_xrcd;
	ck_assert_int_eq(close_xrcd(a), -EDOM);
	h.ops.dealloc_xrcd = uvd_backend_null.dealloc_xrcd;
	ck_assert_int_eq(open_xrcd(fd, O_EXCL, &a), -EINVAL);
	ck_assert_int_eq(open_xrcd(fd, 0, &a), 0);
	ck_assert_int_eq(close_xrcd(2), 0);
	ck_assert_int_eq(close_xrcd(3), 0);
	ck_assert_int_eq(open_xrcd(fd, 0, &a), -EAGAIN);
	close(fd);
}
END_TEST

START_TEST(test_xrcd_shared_domains_have_a_limit)
{
	uint32_t a;
	int fd;

	begin();
	for (int i = 0; i < 1024; i++) {
		fd = memfd_create("domain", 0);
		ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
		close(fd);
	}
	fd = memfd_create("domain", 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), -ENOMEM);
	ck_assert_int_eq(open_xrcd(-1, O_CREAT, &a), 0);
	ck_assert_int_eq(close_xrcd(2), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_uint_eq(a, 2);
	close(fd);
}
END_TEST

START_TEST(test_xrcd_without_the_backend_is_eopnotsupp)
{
	static const struct uvd_feature *const features[] = { &uvd_feature_common, NULL };
	struct harness_tree tree = {};
	uint32_t xrcd;
	int err;

	begin();
	h.ops.alloc_xrcd = NULL;
	h.ops.dealloc_xrcd = NULL;
	uvd_tree_free(h.dev->tree);
	h.dev->tree = uvd_tree_new(features, &h.ops, h.dev->persona->driver_id, NULL, &err);
	ck_assert_ptr_nonnull(h.dev->tree);
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), -EOPNOTSUPP);
	tree_object(&tree, UVERBS_ATTR_DESTROY_XRCD_HANDLE, 2);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, &tree), -EPROTONOSUPPORT);
}
END_TEST

/* ---- target QPs -------------------------------------------------------------------------------------------------- */

START_TEST(test_qp_04_target_has_a_domain_and_no_pd)
{
	struct ib_uverbs_create_qp_resp resp;
	struct harness_tree tree = {};
	uint32_t xrcd;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	ck_assert_int_eq(create_target(pd, &resp), -EINVAL);
	ck_assert_int_eq(create_target(99, &resp), -EINVAL);
	ck_assert_int_eq(create_target(xrcd, &resp), 0);
	ck_assert_uint_eq(resp.qp_handle, 3);
	ck_assert_int_eq(close_xrcd(xrcd), -EBUSY);
	tree_object(&tree, UVERBS_ATTR_DESTROY_XRCD_HANDLE, xrcd);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, &tree), -EBUSY);
	/* Neither the PD nor the CQ has anything to do with it. */
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	ck_assert_int_eq(destroy_qp(3, NULL), 0);
	ck_assert_uint_eq(num_destroyed, 1);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, &tree), 0);
	ck_assert_uint_eq(num_dealloc, 1);
}
END_TEST

static int see_target(struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	ck_assert_ptr_null(qp->pd);
	ck_assert_ptr_null(qp->send_cq);
	ck_assert_ptr_null(qp->recv_cq);
	ck_assert_ptr_null(qp->srq);
	ck_assert_ptr_nonnull(qp->xrcd);
	return init->srq ? -EXDEV : -EDOM;
}

START_TEST(test_target_by_method)
{
	struct ib_uverbs_create_xsrq srq = { .max_wr = 4, .max_sge = 1, .srq_type = IB_UVERBS_SRQT_XRC };
	struct ib_uverbs_create_srq_resp srq_resp;
	struct ib_uverbs_qp_cap cap = {}, resp_cap;
	uint64_t user_handle = 1;
	uint32_t xrcd, qpn;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	srq.pd_handle = pd;
	srq.cq_handle = cq;
	srq.xrcd_handle = xrcd;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &srq, &srq_resp), 0);
	srq.srq_type = IB_UVERBS_SRQT_BASIC;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &srq, &srq_resp), 0);
	h.ops.create_qp = see_target;
	for (int i = 0; i < 4; i++) {
		/* Without an SRQ, with one of the type (4), with another one (qp-05); without the domain. */
		static const int want[] = { -EDOM, -EXDEV, -EINVAL, -ENOENT };
		struct harness_tree tree = {};

		tree_object(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
		tree_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_XRC_RECV);
		tree_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
		tree_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
		tree_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &resp_cap, sizeof(resp_cap));
		tree_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
		if (i < 3)
			tree_object(&tree, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, xrcd);
		if (i == 1 || i == 2)
			tree_object(&tree, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 2 + i);
		ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, &tree), want[i]);
	}
}
END_TEST

START_TEST(test_qp_05_xrc_srq_is_for_no_other_qp)
{
	struct ib_uverbs_create_xsrq srq = { .max_wr = 4, .max_sge = 1, .srq_type = IB_UVERBS_SRQT_XRC };
	struct ib_uverbs_create_qp cmd = {
		.max_send_wr = 4, .max_send_sge = 1, .is_srq = 1, .qp_type = IBV_QPT_RC, .srq_handle = 3
	};
	struct ib_uverbs_create_srq_resp srq_resp = {};
	struct ib_uverbs_create_qp_resp resp;
	uint32_t xrcd;

	begin();
	cmd.pd_handle = srq.pd_handle = pd;
	cmd.send_cq_handle = cmd.recv_cq_handle = srq.cq_handle = cq;
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	srq.xrcd_handle = xrcd;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &srq, &srq_resp), 0);
	ck_assert_uint_ne(srq_resp.srqn, 0);
	cmd.recv_cq_handle = 77; /* is looked at later */
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	cmd.recv_cq_handle = cq;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
	/* The sending end does not look at it. */
	cmd.qp_type = IBV_QPT_XRC_SEND;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.max_recv_wr, 0);
	ck_assert_int_eq(close_xrcd(xrcd), -EBUSY);
}
END_TEST

START_TEST(test_qp_14_open_qp_refuses_what_is_no_target_of_the_domain)
{
	struct ib_uverbs_open_qp cmd = { .qp_type = IBV_QPT_XRC_RECV };
	struct ib_uverbs_create_qp_resp resp, ini;
	uint32_t a, b, qp;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &a), 0);
	ck_assert_int_eq(open_xrcd(-1, 0, &b), 0);
	ck_assert_int_eq(create_target(a, &resp), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_XRC_SEND, pd, cq, &ini), 0);
	ck_assert_int_eq(open_target(99, resp.qpn, &qp), -EINVAL);
	ck_assert_int_eq(open_target(pd, resp.qpn, &qp), -EINVAL);
	ck_assert_int_eq(open_target(b, resp.qpn, &qp), -EINVAL);
	ck_assert_int_eq(open_target(a, resp.qpn + 1000, &qp), -EINVAL);
	ck_assert_int_eq(open_target(a, ini.qpn, &qp), -EINVAL);
	cmd.pd_handle = a;
	cmd.qpn = resp.qpn;
	cmd.qp_type = IBV_QPT_RC;
	ck_assert_int_eq(WRITE(&h, OPEN_QP, &cmd, &ini), -EINVAL);
	cmd.qp_type = IBV_QPT_XRC_RECV;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_OPEN_QP, &cmd, sizeof(cmd), BAD, sizeof(ini)), -EFAULT);
	ck_assert_int_eq(open_target(a, resp.qpn, &qp), 0);
	ck_assert_uint_eq(qp, 6);
	ck_assert_int_eq(INVOKE(&h, OPEN_QP, &cmd, &ini), 0);
	ck_assert_uint_eq(ini.qp_handle, 7);
}
END_TEST

START_TEST(test_target_lives_until_its_last_handle_is_gone)
{
	struct ib_uverbs_query_qp query = {};
	struct ib_uverbs_query_qp_resp queried;
	struct ib_uverbs_create_qp_resp resp;
	int fd = memfd_create("domain", 0);
	struct uvd_file *second;
	uint32_t a, b, qp;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_int_eq(create_target(a, &resp), 0);
	second = second_file();
	ck_assert_int_eq(open_xrcd(fd, 0, &b), 0);
	ck_assert_int_eq(open_target(b, resp.qpn, &qp), 0);
	use(h.file);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), 0);
	ck_assert_uint_eq(num_destroyed, 0);
	ck_assert_int_eq(close_xrcd(a), 0); /* no user came by this handle any more */
	ck_assert_int_eq(open_xrcd(fd, 0, &a), 0);
	ck_assert_int_eq(open_target(a, resp.qpn, &resp.qp_handle), 0);
	harness_close_file(&h);
	use(second);
	query.qp_handle = qp;
	ck_assert_int_eq(WRITE(&h, QUERY_QP, &query, &queried), 0);
	ck_assert_uint_eq(queried.qp_state, IBV_QPS_RESET);
	ck_assert_int_eq(close_xrcd(b), -EBUSY);
	ck_assert_uint_eq(num_destroyed, 0);
	uvd_file_close(second);
	ck_assert_uint_eq(num_destroyed, 1);
	ck_assert_uint_eq(num_dealloc, 1);
	close(fd);
}
END_TEST

/* One QP: what one handle does, the other one sees. */
START_TEST(test_target_is_modified_by_any_handle)
{
	struct ib_uverbs_modify_qp modify = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		.port_num = 1,
		.qp_state = IBV_QPS_INIT,
	};
	struct ib_uverbs_query_qp query = {};
	struct ib_uverbs_query_qp_resp queried;
	struct ib_uverbs_create_qp_resp resp;
	uint32_t xrcd, qp;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	ck_assert_int_eq(create_target(xrcd, &resp), 0);
	ck_assert_int_eq(open_target(xrcd, resp.qpn, &qp), 0);
	modify.qp_handle = qp;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &modify), 0);
	query.qp_handle = resp.qp_handle;
	ck_assert_int_eq(WRITE(&h, QUERY_QP, &query, &queried), 0);
	ck_assert_uint_eq(queried.qp_state, IBV_QPS_INIT);
	ck_assert_uint_eq(queried.port_num, 1);
}
END_TEST

static struct uvd_qp *qp_of(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_qp *qp;

	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_qp, handle, UVD_ACCESS_READ, &uobj), 0);
	qp = uobj->object;
	uvd_uobject_put(uobj, UVD_ACCESS_READ);
	return qp;
}

START_TEST(test_event_11_only_handles_that_were_created_have_events)
{
	struct ib_uverbs_async_event_desc event = {};
	struct ib_uverbs_create_qp_resp resp;
	struct ib_uverbs_get_context_resp context;
	uint32_t xrcd, qp, events;
	struct uvd_qp *target;

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	ck_assert_int_eq(create_target(xrcd, &resp), 0);
	ck_assert_int_eq(open_target(xrcd, resp.qpn, &qp), 0);
	target = qp_of(qp);
	ck_assert_ptr_eq(target, qp_of(resp.qp_handle));
	target->event_handler(target, IBV_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_int_eq(read(h.granted >= 0 ? h.granted : (int)context.async_fd, &event, sizeof(event)),
			 sizeof(event));
	ck_assert_uint_eq(event.element, 0x7777);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, &events), 0);
	ck_assert_uint_eq(events, 1);
	/* Nobody is left to be told. */
	target->event_handler(target, IBV_EVENT_QP_FATAL);
	ck_assert_int_eq(fcntl(context.async_fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(read(context.async_fd, &event, sizeof(event)), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(destroy_qp(qp, &events), 0);
	ck_assert_uint_eq(events, 0);
	close(context.async_fd);
}
END_TEST

static int refuse_destroy(struct uvd_qp *qp)
{
	return -EDOM;
}

START_TEST(test_target_that_the_backend_keeps_stays_as_it_was)
{
	struct ib_uverbs_create_qp_resp resp;
	uint32_t xrcd, qp;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	ck_assert_int_eq(create_target(xrcd, &resp), 0);
	h.ops.destroy_qp = refuse_destroy;
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), -EDOM);
	ck_assert_int_eq(open_target(xrcd, resp.qpn, &qp), 0);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), 0);
	ck_assert_int_eq(destroy_qp(qp, NULL), -EDOM);
	ck_assert_int_eq(close_xrcd(xrcd), -EBUSY);
	h.ops.destroy_qp = uvd_backend_null.destroy_qp;
	ck_assert_int_eq(destroy_qp(qp, NULL), 0);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
}
END_TEST

static int refuse_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	return -EDOM;
}

START_TEST(test_target_that_fails_leaves_nothing)
{
	struct ib_uverbs_create_qp cmd = { .qp_type = IBV_QPT_XRC_RECV };
	struct ib_uverbs_create_qp_resp resp;
	uint32_t xrcd;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	cmd.pd_handle = xrcd;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), BAD, sizeof(resp)),
			 -EFAULT);
	ck_assert_uint_eq(num_destroyed, 1);
	h.ops.create_qp = refuse_qp;
	ck_assert_int_eq(create_target(xrcd, &resp), -EDOM);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
}
END_TEST

/* ---- SRQs of the type -------------------------------------------------------------------------------------------- */

START_TEST(test_srq_01_xrc_srq_has_a_number_and_holds_its_domain_and_cq)
{
	struct ib_uverbs_create_xsrq cmd = {
		.user_handle = 5, .max_wr = 4, .max_sge = 1, .srq_type = IB_UVERBS_SRQT_XRC
	};
	struct ib_uverbs_destroy_srq destroy = {};
	struct ib_uverbs_destroy_srq_resp destroyed;
	struct ib_uverbs_destroy_cq destroy_cq = {};
	struct ib_uverbs_destroy_cq_resp cq_destroyed;
	struct ib_uverbs_create_srq_resp resp = {};
	uint32_t xrcd;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	cmd.xrcd_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -EINVAL);
	cmd.xrcd_handle = xrcd;
	cmd.cq_handle = 99;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -ENOENT);
	cmd.cq_handle = cq;
	cmd.pd_handle = 99;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), -ENOENT);
	cmd.pd_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &cmd, &resp), 0);
	ck_assert_uint_ne(resp.srqn, 0);
	ck_assert_int_eq(close_xrcd(xrcd), -EBUSY);
	destroy_cq.cq_handle = cq;
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &destroy_cq, &cq_destroyed), -EBUSY);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
	destroy.srq_handle = resp.srq_handle;
	ck_assert_int_eq(WRITE(&h, DESTROY_SRQ, &destroy, &destroyed), 0);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &destroy_cq, &cq_destroyed), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}
END_TEST

START_TEST(test_srq_01_xrc_srq_by_method_answers_its_number)
{
	uint32_t max_wr = 10, max_sge = 2, limit = 0, out_wr, out_sge, srqn = 0, xrcd;
	uint64_t user_handle = 1;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	/* An XRC SRQ whose number goes nowhere is refused when it exists already. */
	for (int i = 0; i < 2; i++) {
		struct harness_tree tree = {};

		tree_object(&tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
		tree_object(&tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
		tree_object(&tree, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, xrcd);
		tree_object(&tree, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, cq);
		tree_const(&tree, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_XRC);
		tree_in(&tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &user_handle, sizeof(user_handle));
		tree_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &max_wr, sizeof(max_wr));
		tree_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &max_sge, sizeof(max_sge));
		tree_in(&tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, sizeof(limit));
		tree_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &out_wr, sizeof(out_wr));
		tree_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &out_sge, sizeof(out_sge));
		if (i)
			tree_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &srqn, sizeof(srqn));
		ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, &tree),
				 i ? 0 : -ENOENT);
		ck_assert_int_eq(close_xrcd(xrcd), i ? -EBUSY : 0);
		if (!i)
			ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	}
	ck_assert_uint_ne(srqn, 0);
}
END_TEST

TEST_LIST(test_xrcd_01_minus_one_is_always_a_new_private_domain, test_xrcd_01_a_file_is_one_domain_of_all_open_files,
	  test_xrcd_01_a_bad_descriptor_is_ebadf, test_xrcd_files_of_any_kind_name_a_domain,
	  test_xrcd_keeps_the_inode_of_a_deleted_file, test_xrcd_that_fails_leaves_nothing,
	  test_xrcd_shared_domains_have_a_limit, test_xrcd_without_the_backend_is_eopnotsupp,
	  test_qp_04_target_has_a_domain_and_no_pd, test_target_by_method, test_qp_05_xrc_srq_is_for_no_other_qp,
	  test_qp_14_open_qp_refuses_what_is_no_target_of_the_domain, test_target_lives_until_its_last_handle_is_gone,
	  test_target_is_modified_by_any_handle, test_event_11_only_handles_that_were_created_have_events,
	  test_target_that_the_backend_keeps_stays_as_it_was, test_target_that_fails_leaves_nothing,
	  test_srq_01_xrc_srq_has_a_number_and_holds_its_domain_and_cq,
	  test_srq_01_xrc_srq_by_method_answers_its_number)
