/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Handles: their numbers, look-up, locking and release, and the cleanup at close. */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "abi.h"

START_TEST(test_handle_01_lowest_free_number_of_one_table)
{
	int fd = open_context(NULL);
	uint32_t pd[3], cq, pd2;

	for (int i = 0; i < 3; i++) {
		expect_ok(uv_alloc_pd(fd, _i, &pd[i]));
		ck_assert_uint_eq(pd[i], i);
	}
	expect_ok(uv_create_cq(fd, _i, &uv_cq_default, &cq, NULL));
	ck_assert_uint_eq(cq, 3);
	expect_ok(uv_dealloc_pd(fd, _i, 1));
	expect_ok(uv_create_cq(fd, UV_METHOD, &uv_cq_default, &cq, NULL));
	ck_assert_uint_eq(cq, 1);
	expect_ok(uv_dealloc_pd(fd, _i, 2));
	expect_ok(uv_dealloc_pd(fd, _i, 0));
	expect_ok(uv_alloc_pd(fd, _i, &pd2));
	ck_assert_uint_eq(pd2, 0);
}
END_TEST

START_TEST(test_handle_01_another_open_file_has_a_table_of_its_own)
{
	int a = open_context(NULL), b = open_context(NULL);
	uint32_t pd;

	expect_ok(uv_alloc_pd(a, UV_WRITE, &pd));
	ck_assert_uint_eq(pd, 0);
	expect(uv_dealloc_pd(b, UV_WRITE, pd), ENOENT);
	expect_ok(uv_alloc_pd(b, UV_WRITE, &pd));
	ck_assert_uint_eq(pd, 0);
}
END_TEST

START_TEST(test_handle_02_absent_handle_is_enoent)
{
	static const uint32_t handles[] = { 0, 1, 77, 0x7fffffff, 0x80000000, 0xffffffff };
	struct ib_uverbs_modify_qp modify = { .attr_mask = IBV_QP_STATE };
	struct ib_uverbs_query_qp_resp query;
	int fd = open_context(NULL);
	struct ib_uverbs_wc wc;
	uint32_t pd;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	for (unsigned int i = 1; i < UV_ARRAY_SIZE(handles); i++) {
		uint32_t h = handles[i];

		modify.qp_handle = h;
		expect(uv_dealloc_pd(fd, _i, h), ENOENT);
		expect(uv_dereg_mr(fd, _i, h), ENOENT);
		expect(uv_destroy_cq(fd, _i, h, NULL), ENOENT);
		expect_choice("poll-cq", uv_poll_cq(fd, _i, h, 1, &wc), ENOENT);
		expect(uv_req_notify_cq(fd, _i, h, false), ENOENT);
		expect(uv_destroy_qp(fd, _i, h, NULL), ENOENT);
		expect(uv_modify_qp(fd, _i, &modify), ENOENT);
		expect(uv_query_qp(fd, _i, h, &query), ENOENT);
		expect(uv_destroy_ah(fd, _i, h), ENOENT);
		expect(uv_post_send(fd, _i, h, NULL, 0, NULL, 0, NULL), ENOENT);
		expect_choice("post-recv", uv_post_recv(fd, _i, h, NULL, 0, NULL, 0, NULL), ENOENT);
		expect(uv_dealloc_pd(fd, UV_METHOD, h), ENOENT);
	}
}
END_TEST

/* PD_DESTROY with a 64-bit handle. */
static int destroy_pd(int fd, int64_t id)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_PD_HANDLE, id);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_handle_03_negative_handle_is_einval)
{
	int fd = open_context(NULL);

	expect(destroy_pd(fd, -1), EINVAL);
	expect(destroy_pd(fd, INT64_MIN), EINVAL);
}
END_TEST

START_TEST(test_handle_04_handle_of_another_type_is_einval)
{
	struct bed bed = make_bed();
	struct uv_qp_attr attr = uv_qp_attr(bed.cq, bed.pd);
	struct ib_uverbs_wc wc;
	struct uv_qp qp;
	uint32_t ah;

	expect(uv_dealloc_pd(bed.fd, _i, bed.cq), EINVAL);
	expect(uv_dealloc_pd(bed.fd, UV_METHOD, bed.cq), EINVAL);
	expect(uv_destroy_cq(bed.fd, _i, bed.pd, NULL), EINVAL);
	expect(uv_destroy_qp(bed.fd, _i, bed.cq, NULL), EINVAL);
	expect(uv_query_qp(bed.fd, _i, bed.cq, &(struct ib_uverbs_query_qp_resp){}), EINVAL);
	expect(uv_dereg_mr(bed.fd, _i, bed.pd), EINVAL);
	expect_choice("poll-cq", uv_poll_cq(bed.fd, _i, bed.qp.handle, 1, &wc), EINVAL);
	expect(uv_post_send(bed.fd, _i, bed.cq, NULL, 0, NULL, 0, NULL), EINVAL);
	expect(uv_create_qp(bed.fd, _i, &attr, &qp), EINVAL);
	expect(uv_create_ah(bed.fd, _i, bed.cq, &(struct ib_uverbs_ah_attr){ .port_num = 1 }, &ah), EINVAL);
	expect(uv_reg_mr(bed.fd, _i, bed.cq, &bed, 8, 0, NULL), EINVAL);
}
END_TEST

/* ---- locks: a POST_SEND whose response causes a page fault keeps the QP locked ----------------------------------- */

struct faulting_post {
	struct bed bed;
	int ret;
	void *page;
};

static void *post_into_page(void *arg)
{
	struct ib_uverbs_post_send cmd = { .wqe_size = sizeof(struct ib_uverbs_send_wr) };
	struct faulting_post *p = arg;

	cmd.qp_handle = p->bed.qp.handle;
	p->ret = uv_cmd(p->bed.fd, UV_WRITE,
			&(struct uv_cmd){ IB_USER_VERBS_CMD_POST_SEND, &cmd, sizeof(cmd), p->page, 4 });
	return NULL;
}

static int fault_handler(void *page)
{
	struct uffdio_register range = { .range = { (uintptr_t)page, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		return -1;
	return fd;
}

/* Resolves the fault after the destroy, or after two seconds: a device may serve the destroy only after the post. */
struct faulting_page {
	int faults;
	void *page;
	atomic_bool destroyed;
};

static void *serve_fault(void *arg)
{
	struct faulting_page *f = arg;
	struct uffdio_zeropage zero = { .range = { (uintptr_t)f->page, 4096 } };

	for (int i = 0; i < 200 && !f->destroyed; i++)
		usleep(10000);
	ioctl(f->faults, UFFDIO_ZEROPAGE, &zero);
	return NULL;
}

START_TEST(test_handle_05_destroy_of_an_object_in_use_is_ebusy)
{
	struct faulting_post p = { .page = uv_pages(4096, PROT_READ | PROT_WRITE) };
	struct faulting_page f = { fault_handler(p.page), p.page, false };
	pthread_t thread, server;
	int ret;

	if (geteuid() || choice("faults-wait"))
		SKIP("only root may handle the kernel's faults by userfaultfd, and the device must wait for them");
	ck_assert_msg(f.faults >= 0, "userfaultfd: %s", answer(-errno));
	p.bed = make_bed();
	expect_ok(qp_to_init(p.bed.fd, p.bed.qp.handle));
	expect_ok(qp_to_rtr(p.bed.fd, p.bed.qp.handle, p.bed.qp.qpn));
	expect_ok(qp_to_rts(p.bed.fd, p.bed.qp.handle));
	ck_assert_int_eq(pthread_create(&thread, NULL, post_into_page, &p), 0);
	ck_assert_int_eq(poll_events(f.faults, 5000) & POLLIN, POLLIN);
	ck_assert_int_eq(pthread_create(&server, NULL, serve_fault, &f), 0);
	ret = uv_destroy_qp(p.bed.fd, UV_WRITE, p.bed.qp.handle, NULL);
	f.destroyed = true;
	pthread_join(server, NULL);
	pthread_join(thread, NULL);
	expect_ok(p.ret);
	expect_choice("handle-05", ret, EBUSY);
}
END_TEST

/* Runs in another process, with its own open file, while POST_SENDs of the test's process wait for their pages. */
static int work_elsewhere(void *unused)
{
	uint32_t pd;
	int fd;

	signal(SIGALRM, SIG_DFL); /* libcheck's handler would end the test */
	alarm(5);
	fd = uv_open();
	return uv_get_context(fd, UV_WRITE, NULL, NULL) ? -EIO : uv_alloc_pd(fd, UV_WRITE, &pd);
}

START_TEST(test_handle_05_calls_that_wait_for_memory_do_not_hold_up_other_processes)
{
	enum { WAITING = 6 };
	struct faulting_post p[WAITING] = {};
	pthread_t thread[WAITING];
	int faults[WAITING], waiting = 0, ret;

	if (geteuid() || choice("faults-wait"))
		SKIP("only root may handle the kernel's faults by userfaultfd, and the device must wait for them");
	for (int i = 0; i < WAITING; i++) {
		p[i].page = uv_pages(4096, PROT_READ | PROT_WRITE);
		faults[i] = fault_handler(p[i].page);
		ck_assert_int_ge(faults[i], 0);
		p[i].bed = make_bed();
	}
	for (int i = 0; i < WAITING; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, post_into_page, &p[i]), 0);
	for (int i = 0; i < WAITING; i++)
		waiting += !!(poll_events(faults[i], 500) & POLLIN);
	ck_assert_int_ge(waiting, 1); /* all of them, unless the device serves one call after another */
	ret = uv_in_child(work_elsewhere, NULL);
	for (int i = 0; i < WAITING; i++)
		close(faults[i]); /* resumes the faulting call */
	for (int i = 0; i < WAITING; i++)
		pthread_join(thread[i], NULL);
	expect_choice("handle-05-others", ret, 0);
}
END_TEST

/* ---- fds as handles ---------------------------------------------------------------------------------------------- */

/* CQ_CREATE with this value in the channel's attribute. */
static int create_cq_on(int fd, int64_t channel)
{
	struct uv_tree tree;
	uint32_t cqe;

	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, channel);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_handle_06_fd_that_is_no_channel)
{
	int async_fd, fd = open_context(&async_fd), null = open("/dev/null", O_RDONLY), channel;

	expect_ok(uv_create_channel(fd, UV_WRITE, &channel));
	expect_ok(create_cq_on(fd, channel));
	expect(create_cq_on(fd, -1), EBADF);
	expect(create_cq_on(fd, 1ll << 32 | channel), EINVAL);
	expect(create_cq_on(fd, INT64_MIN), EINVAL);
	expect(create_cq_on(fd, 900), EBADF);
	expect(create_cq_on(fd, null), EBADF);
	expect(create_cq_on(fd, fd), EBADF);
	expect(create_cq_on(fd, async_fd), EBADF);
	close(channel);
	expect(create_cq_on(fd, channel), EBADF);
}
END_TEST

START_TEST(test_handle_06_channel_of_a_command)
{
	int async_fd, fd = open_context(&async_fd), null = open("/dev/null", O_RDONLY);
	struct uv_cq_attr attr = uv_cq_default;
	uint32_t cq;

	expect_ok(uv_create_channel(fd, _i, &attr.channel));
	expect_ok(uv_create_cq(fd, _i, &attr, &cq, NULL));
	attr.channel = -100;
	expect_ok(uv_create_cq(fd, _i, &attr, &cq, NULL)); /* any negative number means no channel */
	attr.channel = 900;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EBADF);
	attr.channel = null;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EBADF);
	attr.channel = async_fd;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EBADF);
	ck_assert_uint_eq(next_handle(fd), 2);
}
END_TEST

START_TEST(test_handle_06_duplicate_of_a_channel_is_the_channel)
{
	int fd = open_context(NULL), channel, copy;

	expect_ok(uv_create_channel(fd, UV_WRITE, &channel));
	copy = dup(channel);
	close(channel);
	expect_ok(create_cq_on(fd, copy));
}
END_TEST

START_TEST(test_handle_09_refused_destroy_keeps_the_handle)
{
	struct bed bed = make_bed();

	expect(uv_dealloc_pd(bed.fd, _i, bed.pd), EBUSY);
	expect(uv_dealloc_pd(bed.fd, UV_METHOD, bed.pd), EBUSY);
	expect(uv_destroy_cq(bed.fd, _i, bed.cq, NULL), EBUSY);
	expect(uv_destroy_cq(bed.fd, UV_METHOD, bed.cq, NULL), EBUSY);
	expect_ok(uv_destroy_qp(bed.fd, _i, bed.qp.handle, NULL));
	expect_ok(uv_destroy_cq(bed.fd, _i, bed.cq, NULL));
	expect_ok(uv_dealloc_pd(bed.fd, _i, bed.pd));
}
END_TEST

START_TEST(test_handle_11_failed_create_gives_its_number_back)
{
	struct uv_cq_attr attr = uv_cq_default;
	int fd = open_context(NULL);
	uint32_t handle;

	attr.cqe = 1 << 30; /* the driver refuses */
	expect(uv_create_cq(fd, _i, &attr, &handle, NULL), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_cleanup_01_close_destroys_what_depends_first)
{
	void *page = uv_pages(4096, PROT_READ | PROT_WRITE);

	for (int i = 0; i < 3; i++) {
		struct bed bed = make_event_bed(16);
		struct ib_uverbs_ah_attr ah;
		struct uv_mr mr;
		uint32_t handle;

		loopback_ah(bed.fd, &ah);
		expect_ok(uv_create_ah(bed.fd, UV_WRITE, bed.pd, &ah, &handle));
		expect_ok(uv_reg_mr(bed.fd, UV_WRITE, bed.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE, &mr));
		close_node(bed.fd);
		ck_assert_int_ne(poll_events(bed.channel, 2000), 0);
	}
}
END_TEST

/* Runs as nobody with an RLIMIT_MEMLOCK of one page, so close() must credit the page that the file has pinned. */
static int register_close_register(void *page)
{
	for (int i = 0; i < 300; i++) {
		int fd = uv_open(), ret;
		uint32_t pd;

		ret = uv_get_context(fd, UV_WRITE, NULL, NULL);
		ret = ret ? ret : uv_alloc_pd(fd, UV_WRITE, &pd);
		ret = ret ? ret : uv_reg_mr(fd, UV_WRITE, pd, page, 4096, 0, NULL);
		if (ret)
			return ret;
		uv_close(fd);
	}
	return 0;
}

START_TEST(test_cleanup_01_close_returns_the_pinned_pages)
{
	target();
	expect_ok(uv_as_nobody(4096, register_close_register, uv_pages(4096, PROT_READ | PROT_WRITE)));
}
END_TEST

/* Three events arrive and the test reads two: DESTROY_CQ reports 2. */
START_TEST(test_cleanup_04_destroy_reports_events_that_were_read)
{
	struct ib_uverbs_destroy_cq_resp resp = { 99, 99 };
	struct bed bed = make_event_bed(64);
	struct ib_uverbs_comp_event_desc event;

	for (int i = 0; i < 3; i++) {
		make_event(&bed);
		if (i == 2)
			break;
		ck_assert_int_eq(read_event(bed.channel, &event, sizeof(event)), sizeof(event));
		ck_assert_uint_eq(event.cq_handle, 0x1111222233334444);
	}
	expect_ok(uv_destroy_qp(bed.fd, UV_WRITE, bed.qp.handle, NULL));
	expect_ok(uv_destroy_cq(bed.fd, _i, bed.cq, &resp));
	ck_assert_uint_eq(resp.comp_events_reported, 2);
	ck_assert_uint_eq(resp.async_events_reported, 0);
	set_nonblock(bed.channel);
	expect(read_event(bed.channel, &event, sizeof(event)), EAGAIN); /* the third was dropped */
}
END_TEST

START_TEST(test_cleanup_04_destroy_reports_async_events_that_were_read)
{
	struct uv_cq_attr attr = { .user_handle = 0xabc, .cqe = 1, .channel = -1, .event_fd = -1 };
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_destroy_cq_resp resp;
	struct bed bed = { 0 };
	struct uv_qp_attr qp_attr;
	uint32_t events = 99, cqe;

	bed.fd = open_context(&bed.async_fd);
	expect_ok(uv_alloc_pd(bed.fd, UV_WRITE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, UV_WRITE, &attr, &bed.cq, &cqe));
	qp_attr = uv_qp_attr(bed.pd, bed.cq);
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &qp_attr, &bed.qp));
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	flush_to_error(&bed, cqe + 1);
	ck_assert_int_ne(poll_events(bed.async_fd, 2000), 0);
	ck_assert_int_eq(read_event(bed.async_fd, &event, sizeof(event)), sizeof(event));
	expect_ok(uv_destroy_qp(bed.fd, _i, bed.qp.handle, &events));
	ck_assert_uint_eq(events, 0);
	expect_ok(uv_destroy_cq(bed.fd, _i, bed.cq, &resp));
	ck_assert_uint_eq(resp.async_events_reported, 1);
}
END_TEST

TCase *case_handle(void)
{
	TCase *tc = tcase_create("handle");

	tcase_add_loop_test(tc, test_handle_01_lowest_free_number_of_one_table, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_handle_01_another_open_file_has_a_table_of_its_own);
	tcase_add_loop_test(tc, test_handle_02_absent_handle_is_enoent, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_handle_03_negative_handle_is_einval);
	tcase_add_loop_test(tc, test_handle_04_handle_of_another_type_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_handle_05_destroy_of_an_object_in_use_is_ebusy);
	add_test_unless("fork", tc, test_handle_05_calls_that_wait_for_memory_do_not_hold_up_other_processes);
	tcase_add_test(tc, test_handle_06_fd_that_is_no_channel);
	tcase_add_loop_test(tc, test_handle_06_channel_of_a_command, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_handle_06_duplicate_of_a_channel_is_the_channel);
	tcase_add_loop_test(tc, test_handle_09_refused_destroy_keeps_the_handle, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_handle_11_failed_create_gives_its_number_back, 0, UV_FRONTS);
	tcase_add_test(tc, test_cleanup_01_close_destroys_what_depends_first);
	tcase_add_test(tc, test_cleanup_01_close_returns_the_pinned_pages);
	tcase_add_loop_test(tc, test_cleanup_04_destroy_reports_events_that_were_read, 0, UV_FRONTS);
	tcase_add_loop_test(tc, test_cleanup_04_destroy_reports_async_events_that_were_read, 0, UV_FRONTS);
	return tc;
}
