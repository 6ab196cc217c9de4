/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device is removed while files are open: what its clients see, the order of the teardown, and calls in flight. */
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include "tests.h"

static uint32_t pd, cq;
static char mem[8192] __attribute__((aligned(4096)));

static int async_fd(struct harness *hn)
{
	struct ib_uverbs_get_context_resp resp = {};

	ck_assert_int_eq(harness_get_context(hn, &resp), 0);
	return resp.async_fd;
}

static int channel(struct harness *hn)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct ib_uverbs_create_comp_channel cmd = {};

	ck_assert_int_eq(WRITE(hn, CREATE_COMP_CHANNEL, &cmd, &resp), 0);
	return resp.fd;
}

/* Opens the same device again, as the same client. */
static void another(struct harness *hn)
{
	int err;

	*hn = h;
	hn->call = calloc(1, sizeof(*hn->call));
	hn->call->caller = h.call->caller;
	hn->file = hn->call->file = uvd_file_open(h.dev, h.account, &err);
	ck_assert_ptr_nonnull(hn->file);
}

static void another_close(struct harness *hn)
{
	harness_close_file(hn);
	free(hn->call);
}

static void add_pages(void *arg, pid_t pid, uint64_t pages)
{
	*(uint64_t *)arg += pages;
}

static uint64_t charged(void)
{
	uint64_t pages = 0;

	uvd_mm_table_each(h.engine.mms, add_pages, &pages);
	return pages;
}

/* ---- the clients' view ------------------------------------------------------------------------------------------- */

START_TEST(test_no_open_after_removal)
{
	int err = 0;

	uvd_device_remove(h.dev);
	ck_assert_ptr_null(uvd_file_open(h.dev, h.account, &err));
	ck_assert_int_eq(err, -EIO);
}
END_TEST

START_TEST(test_channels_of_open_files_are_eio_and_unknown_fds_ebadf)
{
	struct ib_uverbs_create_cq_resp resp;
	struct ib_uverbs_create_cq cmd = { .cqe = 4 };
	struct uv_tree tree = {};
	uint32_t handle = 0, cqe;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	int chan = channel(&h);

	uvd_device_remove(h.dev);
	cmd.comp_channel = chan;
	ck_assert_int_eq(WRITE(&h, CREATE_CQ, &cmd, &resp), -EIO);
	for (int i = 0; i < 2; i++) {
		memset(&tree, 0, sizeof(tree));
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, i ? 0 : chan);
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_HANDLE, handle);
		uv_attr_const(&tree, UVERBS_ATTR_CREATE_CQ_CQE, 4);
		uv_attr_const(&tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 1);
		uv_attr_const(&tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0);
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
		ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, &tree),
				 i ? -EBADF : -EIO);
	}
}
END_TEST

/* A file without a context gets no event, so there is nothing to explain. */
START_TEST(test_each_client_of_the_device_is_told_why_it_gets_device_fatal)
{
	static const char line[] = "test: warning: hfi1_0: event DEVICE_FATAL: the device is gone, or its adapter is; "
				   "close it and look for another one, pid ";
	int log_fd = memfd_create("log", 0);
	struct harness with, without;
	char text[4096] = "";
	const char *second;

	h.engine.log = uvd_log_new(log_fd, "test", UVD_INFO);
	another(&with);
	another(&without);
	close(async_fd(&h));
	close(async_fd(&with));
	uvd_device_remove(h.dev);
	another_close(&with);
	another_close(&without);
	uvd_log_free(h.engine.log);
	h.engine.log = NULL;
	ck_assert_int_gt(pread(log_fd, text, sizeof(text) - 1, 0), 0);
	second = strchr(text, '\n') + 1;
	ck_assert_msg(!strncmp(text, line, strlen(line)) && !strncmp(second, line, strlen(line)), "%s", text);
	ck_assert_msg(!strchr(second, '\n')[1], "%s", text);
	close(log_fd);
}
END_TEST

START_TEST(test_memlock_is_given_back_while_the_file_is_open)
{
	struct ib_uverbs_reg_mr_resp mr;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	ck_assert_uint_eq(charged(), 2);
	uvd_device_remove(h.dev);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(test_user_capabilities_go_with_the_device)
{
	int bit = uvd_device_create_ucap(h.dev, "mine");

	ck_assert_int_ge(bit, 0);
	ck_assert_uint_eq(h.engine.ucaps.list[bit].refs, 1);
	uvd_device_remove(h.dev);
	ck_assert_uint_eq(h.engine.ucaps.list[bit].refs, 0);
}
END_TEST

START_TEST(test_the_device_lives_until_its_last_file_is_closed)
{
	struct harness other;

	another(&other);
	uvd_device_remove(h.dev);
	uvd_device_put(h.dev);
	harness_close_file(&h);
	ck_assert_int_eq(harness_alloc_pd(&other, &pd), -EIO);
	h.dev = uvd_device_get(other.file->dev); /* for the fixture */
	another_close(&other);
}
END_TEST

/* ---- order ------------------------------------------------------------------------------------------------------- */

static char order[64];

static void note(char c)
{
	order[strlen(order)] = c;
}

static int dealloc_pd(struct uvd_pd *p)
{
	note('p');
	return 0;
}

static int destroy_cq(struct uvd_cq *c)
{
	note('c');
	return uvd_backend_null.destroy_cq(c);
}

static int dereg_mr(struct uvd_mr *m)
{
	note('m');
	return 0;
}

static void dealloc_context(struct uvd_context *c)
{
	note('x');
}

static void close_backend(struct uvd_ibdev *dev)
{
	note('d');
}

START_TEST(test_files_oldest_first_objects_newest_first_the_backend_last)
{
	struct ib_uverbs_reg_mr_resp mr;
	struct harness other;

	h.ops.dealloc_pd = dealloc_pd;
	h.ops.destroy_cq = destroy_cq;
	h.ops.dereg_mr = dereg_mr;
	h.ops.dealloc_context = dealloc_context;
	h.ops.close = close_backend;
	another(&other);
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, 4096, 0, &mr), 0);
	async_fd(&other);
	ck_assert_int_eq(harness_alloc_pd(&other, &pd), 0);
	uvd_device_remove(h.dev);
	ck_assert_str_eq(order, "mcpxpxd");
	another_close(&other);
	harness_close_file(&h);
	ck_assert_str_eq(order, "mcpxpxd");
}
END_TEST

static struct uvd_cq *kept;

static int busy_cq(struct uvd_cq *c)
{
	kept = c;
	return -EBUSY;
}

/* If the backend refuses to destroy an object to the last, the removal drops it. The client's handles stay. */
START_TEST(test_an_object_that_the_backend_keeps_is_dropped)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	h.ops.destroy_cq = busy_cq;
	uvd_device_remove(h.dev);
	ck_assert(list_empty(&h.file->objects));
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	uvd_backend_null.destroy_cq(kept);
	free(kept);
}
END_TEST

/* ---- calls in flight --------------------------------------------------------------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool inside, removed;

static int slow_alloc_pd(struct uvd_pd *p, struct uvd_udata *udata)
{
	inside = true;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return 0;
}

static void *alloc_pd_thread(void *arg)
{
	h.call->caller.tid = gettid();
	return (void *)(intptr_t)harness_alloc_pd(&h, &pd);
}

static void *remove_thread(void *arg)
{
	uvd_device_remove(h.dev);
	removed = true;
	return NULL;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

START_TEST(test_removal_waits_for_a_call_and_ends_what_it_made)
{
	pthread_t call, removal;
	struct harness other;
	void *ret;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	another(&other);
	h.ops.alloc_pd = slow_alloc_pd;
	h.ops.dealloc_pd = dealloc_pd;
	pthread_mutex_lock(&gate);
	pthread_create(&call, NULL, alloc_pd_thread, NULL);
	while (!inside)
		nap();
	pthread_create(&removal, NULL, remove_thread, NULL);
	while (!h.dev->gone)
		nap();
	/* Calls on other files fail with EIO at once. */
	ck_assert_int_eq(harness_alloc_pd(&other, &cq), -EIO);
	for (int i = 0; i < 20; i++)
		nap();
	ck_assert(!removed);
	ck_assert_str_eq(order, "");
	pthread_mutex_unlock(&gate);
	pthread_join(call, &ret);
	pthread_join(removal, NULL);
	ck_assert_int_eq((intptr_t)ret, 0);
	ck_assert_str_eq(order, "pp");
	another_close(&other);
}
END_TEST

static int slow_query_device(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata)
{
	inside = true;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	note('q');
	return 0;
}

static void *query_device_thread(void *arg)
{
	struct ib_uverbs_query_device cmd = {};
	struct ib_uverbs_query_device_resp resp;

	h.call->caller.tid = gettid();
	return (void *)(intptr_t)WRITE(&h, QUERY_DEVICE, &cmd, &resp);
}

/* QUERY_DEVICE holds no lock of the file. Calls that start once the device is gone fail and delay nothing. */
START_TEST(test_removal_waits_for_a_query)
{
	pthread_t call, removal;
	struct harness other;
	void *ret;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	another(&other);
	h.ops.query_device = slow_query_device;
	h.ops.close = close_backend;
	pthread_mutex_lock(&gate);
	pthread_create(&call, NULL, query_device_thread, NULL);
	while (!inside)
		nap();
	pthread_create(&removal, NULL, remove_thread, NULL);
	while (!h.dev->gone)
		nap();
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(harness_alloc_pd(&other, &pd), -EIO);
		nap();
	}
	ck_assert_str_eq(order, "");
	pthread_mutex_unlock(&gate);
	pthread_join(call, &ret);
	pthread_join(removal, NULL);
	ck_assert_int_eq((intptr_t)ret, 0);
	ck_assert_str_eq(order, "qd");
	another_close(&other);
}
END_TEST

/* The transport has yet to grant the fd: until then the event file is in no list. */
START_TEST(test_removal_waits_for_a_grant)
{
	struct ib_uverbs_get_context_resp resp = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} msg = {
		.hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT,
			 .in_words = sizeof(msg) / 4,
			 .out_words = sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp },
	};
	struct ib_uverbs_async_event_desc event;
	pthread_t removal;
	int fd;

	ck_assert_int_eq(uvd_dispatch_write(h.call, &msg, sizeof(msg)), sizeof(msg));
	ck_assert_ptr_nonnull(h.call->grant.uobj);
	pthread_create(&removal, NULL, remove_thread, NULL);
	while (!h.dev->gone)
		nap();
	for (int i = 0; i < 20; i++)
		nap();
	ck_assert(!removed);
	fd = uvd_event_file_open(h.call->grant.file);
	ck_assert_int_eq(uvd_call_granted(h.call, fd), sizeof(msg));
	pthread_join(removal, NULL);
	ck_assert_int_eq(read(fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), -EIO);
	close(fd);
}
END_TEST

enum { THREADS = 4, FILES = 8 };

static atomic_uint rounds;

/* A client's thread: its calls succeed until the first EIO; after that none succeeds. */
static void *use(void *arg)
{
	struct harness *hn = arg;
	bool gone = false;

	hn->call->caller.tid = gettid();
	for (;;) {
		struct ib_uverbs_reg_mr_resp mr;
		uint32_t handles[2];
		int ret[2];

		ret[0] = harness_alloc_pd(hn, &handles[0]);
		ret[1] = harness_create_cq(hn, 1, 16, -1, &handles[1]);
		for (int i = 0; i < 2; i++) {
			ck_assert(ret[i] == -EIO || (!gone && !ret[i]));
			gone |= ret[i] == -EIO;
		}
		if (!ret[0]) {
			harness_reg_mr(hn, handles[0], mem, 4096, IBV_ACCESS_LOCAL_WRITE, &mr);
			ret[0] = harness_dealloc_pd(hn, handles[0]);
			ck_assert(ret[0] == 0 || ret[0] == -EBUSY);
		}
		atomic_fetch_add(&rounds, 1);
		if (gone)
			return NULL;
	}
}

START_TEST(test_removal_under_threads_in_calls)
{
	struct harness clients[THREADS];
	pthread_t threads[THREADS];
	struct harness second;
	uint32_t handle;

	another(&second);
	async_fd(&h);
	async_fd(&second);
	/* Two threads on each file. */
	for (int i = 0; i < THREADS; i++) {
		clients[i] = i % 2 ? second : h;
		clients[i].call = calloc(1, sizeof(*h.call));
		*clients[i].call = (struct uvd_call){ .file = clients[i].file, .caller = h.call->caller };
		pthread_create(&threads[i], NULL, use, &clients[i]);
	}
	while (rounds < 200)
		nap();
	uvd_device_remove(h.dev);
	ck_assert_uint_eq(charged(), 0);
	ck_assert(list_empty(&h.file->objects));
	ck_assert(list_empty(&second.file->objects));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		free(clients[i].call);
	}
	ck_assert_int_eq(harness_alloc_pd(&second, &handle), -EIO);
	another_close(&second);
}
END_TEST

static void *close_files(void *arg)
{
	struct harness *files = arg;

	for (int i = 0; i < FILES; i++)
		harness_close_file(&files[i]);
	return NULL;
}

START_TEST(test_removal_while_files_are_closed)
{
	struct harness files[FILES];
	struct ib_uverbs_reg_mr_resp mr;
	pthread_t closer;

	for (int i = 0; i < FILES; i++) {
		another(&files[i]);
		ck_assert_int_eq(harness_begin(&files[i], &pd, &cq), 0);
		ck_assert_int_eq(harness_reg_mr(&files[i], pd, mem, 4096, 0, &mr), 0);
	}
	/* The thread closes the oldest file first, as the removal does: both meet at the same files. */
	pthread_create(&closer, NULL, close_files, files);
	uvd_device_remove(h.dev);
	pthread_join(closer, NULL);
	ck_assert_uint_eq(charged(), 0);
	for (int i = 0; i < FILES; i++)
		free(files[i].call);
}
END_TEST

/* ---- no call reaches the backend --------------------------------------------------------------------------------- */

static void never(void)
{
	abort();
}

/* Replaces every function of the backend. They follow its name and sizes, from `open` on. */
static void poison(void)
{
	void (**fn)(void) = (void (**)(void))((char *)&h.ops + offsetof(struct uvd_backend, open));
	const size_t n = (sizeof(h.ops) - offsetof(struct uvd_backend, open)) / sizeof(*fn);

	for (size_t i = 0; i < n; i++)
		if (fn[i])
			fn[i] = never;
}

/* Fills buf with small numbers, which are likely to be valid handles, types and masks. */
static void fill(uint8_t *buf, size_t len, unsigned int *seed)
{
	memset(buf, 0, len);
	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t value = rand_r(seed) % 4 ? rand_r(seed) % 6 : 0;

		memcpy(buf + i, &value, 4);
	}
}

static void every_command(unsigned int *seed)
{
	const struct uvd_tree *tree = h.dev->trees->plain;
	uint8_t in[256], out[4096];

	for (int ex = 0; ex < 2; ex++)
		for (uint32_t n = 0; n < tree->num_writes[ex]; n++) {
			const struct uvd_write_row *row = tree->writes[ex][n].row;

			if (!row || row->req_size > sizeof(in))
				continue;
			fill(in, sizeof(in), seed);
			if (ex)
				harness_write_ex(&h, n, in, (row->req_size + 7) & ~7, out, sizeof(out));
			else
				harness_write(&h, n, in, row->req_size, row->flags & UVD_WRITE_RESP ? out : NULL,
					      row->resp_size);
			if (h.granted >= 0)
				close(h.granted);
		}
}

static void every_method(unsigned int *seed)
{
	uint8_t in[256], out[256];
	struct uv_tree tree;

	for (unsigned int o = 0; o < 32; o++)
		for (unsigned int m = 0; m < 32; m++) {
			const struct uvd_tree_method *tm = uvd_tree_method(h.dev->trees->plain, o, m);

			if (!tm || (o == UVERBS_OBJECT_DEVICE && m == UVERBS_METHOD_INVOKE_WRITE))
				continue;
			memset(&tree, 0, sizeof(tree));
			fill(in, sizeof(in), seed);
			for (unsigned int a = 0; a < tm->row->num_attrs && a < 32; a++) {
				const struct uvd_attr_row *row = &tm->row->attrs[a];
				unsigned int len = row->len == UVD_LEN_ANY ? 8 : row->len;

				if (row->type == UVD_ATTR_PTR_OUT)
					uv_attr_out(&tree, row->id, out, len);
				else if (row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD)
					uv_attr_obj(&tree, row->id, rand_r(seed) % 6);
				else
					uv_attr_in(&tree, row->id, in, len <= sizeof(in) ? len : 8);
			}
			harness_ioctl(&h, o, m, &tree);
			if (h.granted >= 0)
				close(h.granted);
		}
}

START_TEST(test_no_call_reaches_the_backend_after_removal)
{
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_reg_mr_resp mr;
	unsigned int seed = 1;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, 4096, 0, &mr), 0);
	uvd_device_remove(h.dev);
	poison();
	for (int i = 0; i < 200; i++) {
		every_command(&seed);
		every_method(&seed);
	}
}
END_TEST

TEST_LIST(test_no_open_after_removal, test_channels_of_open_files_are_eio_and_unknown_fds_ebadf,
	  test_each_client_of_the_device_is_told_why_it_gets_device_fatal,
	  test_memlock_is_given_back_while_the_file_is_open, test_user_capabilities_go_with_the_device,
	  test_the_device_lives_until_its_last_file_is_closed,
	  test_files_oldest_first_objects_newest_first_the_backend_last,
	  test_an_object_that_the_backend_keeps_is_dropped, test_removal_waits_for_a_call_and_ends_what_it_made,
	  test_removal_waits_for_a_query, test_removal_waits_for_a_grant, test_removal_under_threads_in_calls,
	  test_removal_while_files_are_closed, test_no_call_reaches_the_backend_after_removal)
