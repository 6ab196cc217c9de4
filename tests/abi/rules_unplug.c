/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Removal of a device while files are open. The kernel's rxe has no disassociate_ucontext, so its removal waits for its
 * users, and only hotplug-02 can be tested on it. For the other rules the source of the kernel's core is the standard.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uverbsd/abi.h>
#include "abi.h"

/* GET_CONTEXT has no extended command. */
static const struct {
	const char *name;
	enum uv_front front;
} fronts_of_context[] = { { "write", UV_WRITE }, { "invoke", UV_INVOKE }, { "method", UV_METHOD } };

START_TEST(test_context_04_device_gone_is_eio)
{
	const enum uv_front front = fronts_of_context[_i].front;
	struct plug plug;
	int fd, async_fd;

	plug_in(&plug);
	fd = uv_open();
	plug_out(&plug);
	ck_assert_msg(uv_get_context(fd, front, &async_fd, NULL) == -EIO, "by %s", fronts_of_context[_i].name);
}
END_TEST

static int alloc_until_refused(void *arg)
{
	volatile int *fd = arg;
	uint32_t pd;
	int ret;

	while (!(ret = uv_alloc_pd(*fd, UV_WRITE, &pd)))
		;
	for (int i = 0; i < 100 && ret == -EIO; i++)
		ret = uv_alloc_pd(*fd, UV_WRITE, &pd);
	return ret;
}

START_TEST(test_context_05_creating_while_it_is_torn_down_is_eio)
{
	struct plug plug;
	int fd;

	plug_in(&plug);
	fd = open_context(NULL);
	plug_out_begin(&plug);
	/* The thread allocates PDs until it gets EIO, which must then be the answer during and after the teardown. */
	expect(uv_in_thread(alloc_until_refused, &fd), EIO);
	ck_assert_int_eq(plug_out_end(&plug, 20000), 0);
}
END_TEST

START_TEST(test_context_07_the_node_is_gone_for_new_opens)
{
	struct plug plug;
	int fd;

	plug_in(&plug);
	fd = open_context(NULL);
	plug_out(&plug);
	ck_assert_int_eq(uv_open(), -ENOENT);
	uv_close(fd);
	ck_assert_int_eq(uv_open(), -ENOENT);
}
END_TEST

static int query_tree(int fd)
{
	uint32_t num, total;
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBSD_OBJECT_TREE, UVERBSD_METHOD_TREE_QUERY);
	uv_attr_in(&tree, UVERBSD_ATTR_TREE_QUERY_FIRST, &(uint32_t){ 0 }, 4);
	uv_attr_in(&tree, UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, &(uint32_t){ 8 }, 4);
	uv_attr_out(&tree, UVERBSD_ATTR_TREE_QUERY_ROWS, uv_pages(4096, PROT_READ | PROT_WRITE), 8);
	uv_attr_out(&tree, UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, &num, 4);
	uv_attr_out(&tree, UVERBSD_ATTR_TREE_QUERY_TOTAL, &total, 4);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_ioctl_07_driver_method_is_eio_before_its_attributes_are_read)
{
	struct plug plug;
	struct uv_tree tree;
	int fd;

	plug_in(&plug);
	fd = uv_open();
	expect_ok(query_tree(fd));
	plug_out(&plug);
	expect(query_tree(fd), EIO);
	uv_tree_init(&tree, UVERBSD_OBJECT_TREE, UVERBSD_METHOD_TREE_QUERY);
	uv_attr_const(&tree, 0x1fff, 0); /* an unknown attribute: EPROTONOSUPPORT if it were read */
	expect(uv_ioctl(fd, &tree), EIO);
	tree.hdr.method_id = 0x1fff;
	expect(uv_ioctl(fd, &tree), EPROTONOSUPPORT);
}
END_TEST

START_TEST(test_handle_07_every_look_up_but_destroy_is_eio)
{
	enum uv_front front = _i;
	struct uv_cq_attr cq_attr = uv_cq_default;
	struct ib_uverbs_query_qp_resp query;
	struct ib_uverbs_wc wc;
	struct uv_qp_attr qp_attr;
	struct plug plug;
	struct uv_mr mr;
	struct uv_qp qp;
	struct bed bed;
	uint32_t handle;

	plug_in(&plug);
	bed = make_event_bed(16);
	plug_out(&plug);
	expect(uv_query_qp(bed.fd, front, bed.qp.handle, &query), EIO);
	expect_choice("poll-cq", uv_poll_cq(bed.fd, front, bed.cq, 1, &wc), EIO);
	expect(uv_req_notify_cq(bed.fd, front, bed.cq, false), EIO);
	expect(uv_alloc_pd(bed.fd, front, &handle), EIO);
	expect(uv_reg_mr(bed.fd, front, bed.pd, uv_pages(4096, PROT_READ), 4096, 0, &mr), EIO);
	expect(uv_query_port(bed.fd, front, 1, &(struct ib_uverbs_query_port_resp){}), EIO);
	cq_attr.channel = bed.channel;
	expect(uv_create_cq(bed.fd, front, &cq_attr, &handle, NULL), EIO);
	qp_attr = uv_qp_attr(bed.pd, bed.cq);
	expect(uv_create_qp(bed.fd, front, &qp_attr, &qp), EIO);
	/* A handle that does not exist or is of another type is refused before EIO. */
	expect(uv_query_qp(bed.fd, front, 77, &query), ENOENT);
	expect(uv_query_qp(bed.fd, front, bed.pd, &query), EINVAL);
}
END_TEST

START_TEST(test_handle_08_destroy_succeeds_once_in_any_order)
{
	enum uv_front front = _i;
	struct ib_uverbs_destroy_cq_resp resp = { .comp_events_reported = 99 };
	uint32_t events = 99;
	struct plug plug;
	struct bed bed;
	struct uv_mr mr;

	plug_in(&plug);
	bed = make_event_bed(16);
	expect_ok(uv_reg_mr(bed.fd, UV_WRITE, bed.pd, uv_pages(4096, PROT_READ), 4096, 0, &mr));
	make_event(&bed);
	expect(uv_dealloc_pd(bed.fd, front, bed.pd), EBUSY);
	plug_out(&plug);
	expect_ok(uv_dealloc_pd(bed.fd, front, bed.pd));
	expect(uv_dealloc_pd(bed.fd, front, bed.pd), ENOENT);
	expect_ok(uv_destroy_cq(bed.fd, front, bed.cq, &resp));
	ck_assert_uint_eq(resp.comp_events_reported, 0); /* the event was not read, and was dropped with the CQ */
	expect(uv_destroy_cq(bed.fd, front, bed.cq, &resp), ENOENT);
	expect_ok(uv_destroy_qp(bed.fd, front, bed.qp.handle, &events));
	ck_assert_uint_eq(events, 0);
	expect_ok(uv_dereg_mr(bed.fd, front, mr.handle));
	expect(uv_dereg_mr(bed.fd, front, mr.handle), ENOENT);
}
END_TEST

START_TEST(test_event_10_async_files_tell_then_wait_and_channels_end)
{
	struct ib_uverbs_async_event_desc event = { .element = 7 };
	struct plug plug;
	struct bed bed;
	int second;
	char byte[8];

	plug_in(&plug);
	bed = make_event_bed(16);
	expect_ok(uv_alloc_async_fd(bed.fd, &second));
	make_event(&bed);
	plug_out(&plug);
	for (int i = 0; i < 2; i++) {
		int fd = i ? second : bed.async_fd;

		ck_assert_int_eq(read_event(fd, &event, sizeof(event)), sizeof(event));
		ck_assert_uint_eq(event.element, 0);
		ck_assert_uint_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
		set_nonblock(fd);
		expect(read_event(fd, &event, sizeof(event)), EAGAIN);
	}
	expect_choice("event-10", read_event(bed.channel, byte, sizeof(byte)), EIO);
}
END_TEST

/* The order as far as a client sees it: when a file gets its async event, the node and the file's context are gone. */
START_TEST(test_hotplug_01_the_node_goes_first_then_every_file)
{
	struct ib_uverbs_async_event_desc event;
	int fd[2], async_fd[2];
	struct plug plug;
	uint32_t pd;

	plug_in(&plug);
	for (int i = 0; i < 2; i++) {
		fd[i] = open_context(&async_fd[i]);
		expect_ok(uv_alloc_pd(fd[i], UV_WRITE, &pd));
	}
	plug_out_begin(&plug);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(read_event(async_fd[i], &event, sizeof(event)), sizeof(event));
		ck_assert_int_eq(uv_open(), -ENOENT);
		expect(uv_alloc_pd(fd[i], UV_WRITE, &pd), EIO);
		expect_ok(uv_dealloc_pd(fd[i], UV_WRITE, 0));
	}
	ck_assert_int_eq(plug_out_end(&plug, 20000), 0);
}
END_TEST

START_TEST(test_hotplug_02_a_driver_that_cannot_disassociate_waits_for_its_files)
{
	int fd, async_fd, other;
	struct plug plug;
	uint32_t pd;

	plug_in(&plug);
	fd = open_context(&async_fd);
	plug_out_begin(&plug);
	if (choice("hotplug-02")) {
		ck_assert_int_eq(plug_out_end(&plug, 20000), 0);
		expect(uv_alloc_pd(fd, UV_WRITE, &pd), EIO);
		return;
	}
	for (int i = 0; (other = uv_open()) >= 0 && i < 200; i++) {
		uv_close(other);
		usleep(100000);
	}
	ck_assert_int_eq(other, -ENOENT);
	ck_assert_int_eq(plug_out_end(&plug, 1500), -ETIMEDOUT);
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd)); /* until then the device works as before */
	uv_close(fd);
	ck_assert_int_eq(plug_out_end(&plug, 500), -ETIMEDOUT); /* the removal waits for the event file, too */
	close(async_fd);
	ck_assert_int_eq(plug_out_end(&plug, 20000), 0);
}
END_TEST

enum { MAPPED = 4 * 4096 };

START_TEST(test_hotplug_03_mapped_pages_are_replaced)
{
	struct plug plug;
	volatile char *rw, *ro;
	int fd;

	plug_in(&plug);
	fd = open_context(NULL);
	rw = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rw == MAP_FAILED && choice("context-08"))
		SKIP("CUSE has no mmap");
	ck_assert(rw != MAP_FAILED);
	ro = mmap(NULL, MAPPED, PROT_READ, MAP_SHARED, fd, 0);
	for (int i = 0; i < MAPPED; i += 512)
		rw[i] = 'x';
	ck_assert_int_eq(ro[512], 'x');
	plug_out(&plug);
	for (int i = 0; i < MAPPED; i += 512) {
		ck_assert_int_eq(ro[i], 0);
		ck_assert_int_eq(rw[i], 0);
		rw[i] = 'y'; /* no SIGBUS */
		ck_assert_int_eq(rw[i], 'y');
	}
	/* Closing and unmapping still work. */
	uv_close(fd);
	munmap((void *)rw, MAPPED);
}
END_TEST

START_TEST(test_regression_05_removal_beside_an_exiting_mapper)
{
	for (int round = 0; round < 5; round++) {
		struct plug plug;
		char *mem;
		pid_t mapper;
		int fd, status;

		plug_in(&plug);
		fd = open_context(NULL);
		mapper = fork();
		if (!mapper) {
			mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (mem == MAP_FAILED)
				_exit(0); /* a transport without mmap */
			for (;;)
				for (int i = 0; i < 1 << 20; i += 4096)
					mem[i]++;
		}
		uv_close(fd);
		usleep(20000);
		plug_out_begin(&plug);
		usleep(1000 * round);
		kill(mapper, SIGKILL);
		ck_assert_int_eq(waitpid(mapper, &status, 0), mapper);
		ck_assert_int_eq(plug_out_end(&plug, 20000), 0);
	}
}
END_TEST

TCase *case_unplug(void)
{
	TCase *tc = tcase_create("unplug");

	tcase_add_test(tc, test_hotplug_02_a_driver_that_cannot_disassociate_waits_for_its_files);
	if (target()->where & ON_KERNEL)
		return tc;
	tcase_add_loop_test(tc, test_context_04_device_gone_is_eio, 0,
			    sizeof(fronts_of_context) / sizeof(*fronts_of_context));
	tcase_add_test(tc, test_context_05_creating_while_it_is_torn_down_is_eio);
	tcase_add_test(tc, test_context_07_the_node_is_gone_for_new_opens);
	tcase_add_test(tc, test_ioctl_07_driver_method_is_eio_before_its_attributes_are_read);
	tcase_add_loop_test(tc, test_handle_07_every_look_up_but_destroy_is_eio, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_handle_08_destroy_succeeds_once_in_any_order, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_event_10_async_files_tell_then_wait_and_channels_end);
	tcase_add_test(tc, test_hotplug_01_the_node_goes_first_then_every_file);
	add_test_unless("transport", tc, test_hotplug_03_mapped_pages_are_replaced);
	add_test_unless("fork", tc, test_regression_05_removal_beside_an_exiting_mapper);
	return tc;
}
