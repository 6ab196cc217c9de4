/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The log of one open file: records, whole, torn, at odd places, and whatever else a client writes. */
#include "logs.h"

enum { QPS = 40, KEPT = 160 << 10 };

static uint32_t handles[QPS];

/* ---- whole records ----------------------------------------------------------------------------------------------- */

START_TEST(test_doorbell_in_the_log_carries_out_the_post)
{
	struct ib_uverbs_wc wc;

	begin_logs();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(create_qp(cq, 4, &qps[i]), 0);
	for (int i = 0; i < 2; i++)
		connect_qp(i, 1, 7);
	for (int n = 0; n < 100; n++) {
		post_recv(1, 100);
		add_nothing(0, n);
		me_ring(qps[0].core.qp_handle);
		for (int i = 0; i < 2; i++) {
			ck_assert(next_wc(&wc, 20) && !wc.status);
			ck_assert_uint_eq(wc.wr_id, wc.opcode == IBV_WC_RECV ? 100 : n);
		}
	}
	end_logs();
}
END_TEST

START_TEST(test_doorbells_of_many_qps_ring_each)
{
	begin_qps(handles, QPS);
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = QPS; i--;)
			me_ring(handles[i]);
		for (unsigned int i = 0; i < QPS; i++)
			wait_rung(i, round);
	}
	end_logs();
}
END_TEST

/* Without the reader: its turns would end between the records. */
START_TEST(test_drain_hands_over_all_doorbells_in_their_order)
{
	begin_qps(handles, QPS);
	pthread_mutex_lock(&me.log->lock);
	for (unsigned int i = QPS; i--;)
		me_ring(handles[i]);
	me_ring(handles[QPS - 1]);
	pthread_mutex_unlock(&me.log->lock);
	drain();
	for (unsigned int n = 0; n < QPS; n++)
		ck_assert_uint_eq(rung.order[n], QPS - 1 - n);
	end_logs();
}
END_TEST

/* Three turns and more. */
START_TEST(test_drain_hands_over_what_the_reader_could_not)
{
	unsigned long was;

	begin_qps(handles, 2);
	set_closed(true);
	me_ring(handles[0]);
	wait_waiting(1);
	/* The reader has the log's lock, and does not go on. */
	for (int n = 0; n < 1000; n++)
		me_ring(handles[0]);
	me_ring(handles[1]);
	was = rings(1);
	set_closed(false);
	drain();
	ck_assert_uint_gt(rings(1), was);
	end_logs();
}
END_TEST

/* A torn doorbell would look like one of handle 0. */
START_TEST(test_no_qp_of_a_file_with_a_log_has_handle_0)
{
	struct ib_uverbs_alloc_pd_resp alloc;
	struct ib_uverbs_alloc_pd cmd = { .response = 0 };
	struct ib_uverbs_dealloc_pd dealloc = { .pd_handle = 0 };
	uint32_t first;

	begin_logs();
	ck_assert_uint_eq(pd, 0);
	ck_assert_int_eq(WRITE(&h, ALLOC_PD, &cmd, &alloc), 0);
	pd = alloc.pd_handle;
	ck_assert_int_eq(WRITE_IN(&h, DEALLOC_PD, &dealloc), 0);
	first = new_qp();
	ck_assert_uint_ne(first, 0);
	ck_assert_uint_ne(new_qp(), first);
	/* Other objects can have it. */
	ck_assert_int_eq(WRITE(&h, ALLOC_PD, &cmd, &alloc), 0);
	ck_assert_uint_eq(alloc.pd_handle, 0);
	end_logs();
}
END_TEST

/* ---- records that are no doorbells ------------------------------------------------------------------------------- */

START_TEST(test_torn_doorbell_is_carried_out_when_it_is_whole)
{
	struct doorbell d;
	off_t at = UVD_DOORBELL_LOG;
	unsigned long was;

	begin_qps(handles, 2);
	d = doorbell(handles[1]);
	for (size_t there = 8; there < sizeof(d); there += 8, at += sizeof(d)) {
		ck_assert_int_eq(pwrite(me.fd, &d, there, at), there);
		drain();
		was = rings(1);
		ck_assert_int_eq(pwrite(me.fd, (char *)&d + there, sizeof(d) - there, at + (off_t)there),
				 sizeof(d) - there);
		wait_rung(1, was);
		drain();
		ck_assert(lseek(me.fd, at + (off_t)sizeof(d), SEEK_SET) > 0);
		expect_only_ring(handles[0], 0);
		at += sizeof(d);
	}
	end_logs();
}
END_TEST

/* A write() from a pointer whose second page is not mapped. Its doorbell is lost, so all QPs are rung. */
START_TEST(test_doorbells_behind_a_short_one_are_found_and_all_qps_rung)
{
	struct doorbell d;
	unsigned long was[3];

	begin_qps(handles, 3);
	d = doorbell(handles[2]);
	for (size_t len = 1; len < sizeof(d); len++) {
		for (int i = 0; i < 3; i++)
			was[i] = rings(i);
		client_write(&me, &d, len);
		/* Only zeros are missing of the longest ones. */
		for (int i = len > 28 ? 2 : 0; i < 3; i++)
			wait_rung(i, was[i]);
		drain();
		/* The last bytes of a doorbell may be missing: then what follows looks like them, and the place is found one later. */
		for (int i = 1; i < 3; i++) {
			was[i] = rings(i);
			me_ring(handles[i]);
			wait_rung(i, was[i]);
			drain();
		}
		for (int n = 0; n < 3; n++)
			expect_only_ring(handles[n], n);
	}
	end_logs();
}
END_TEST

static uint64_t seed = 1;

static uint32_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

/*
 * Writes junk: random bytes, pieces of doorbells, or many zeros. It does not begin with zeros: where a doorbell is due they mean that there is
 * none yet, and a client that goes on behind them has lost its log.
 */
static void write_junk(size_t len)
{
	static uint8_t junk[300000];
	const struct doorbell d = doorbell(handles[0]);
	const bool sparse = next_random() % 4 == 0, pieces = next_random() % 4 == 0;

	for (size_t n = 0; n < len; n++)
		junk[n] = pieces			? ((const uint8_t *)&d)[n * 7 / 5 % sizeof(d)]
			  : sparse && next_random() % 8 ? 0
							: next_random();
	junk[0] |= 1;
	if (len)
		client_write(&me, junk, len);
}

static size_t junk_length(void)
{
	switch (next_random() % 64) {
	case 0:
		return next_random() % 300000;
	case 1 ... 4:
		return next_random() % 20000;
	default:
		return next_random() % 100;
	}
}

START_TEST(test_next_whole_doorbell_behind_junk_is_always_carried_out)
{
	const int rounds = suite_is_long() ? 50000 : 1500;
	unsigned long was;
	unsigned int i;

	begin_qps(handles, 5);
	for (int n = 0; n < rounds; n++) {
		write_junk(junk_length());
		i = next_random() % 5;
		drain();
		was = rings(i);
		me_ring(handles[i]);
		drain();
		ck_assert_uint_gt(rings(i), was);
		/* If the junk ended like a doorbell its place is found one later. */
		me_ring(handles[i]);
		drain();
		for (i = 0; i < 5; i++)
			expect_only_ring(handles[i], i);
	}
	end_logs();
}
END_TEST

START_TEST(test_doorbell_for_what_is_no_qp_of_the_file_does_nothing)
{
	uint32_t no_qps[4];
	unsigned long all;
	struct client other;
	int fd;

	begin_qps(handles, 8);
	fd = harness_node_ops.open("/dev/infiniband/uverbs0");
	ck_assert_int_ge(fd, 0);
	client_begin(&other, harness_file(fd), fd);
	no_qps[0] = pd ? pd : cq;
	no_qps[1] = cq;
	no_qps[2] = 1000000;
	no_qps[3] = UINT32_MAX;
	all = all_rings();
	for (int i = 0; i < 4; i++)
		me_ring(no_qps[i]);
	drain();
	/* QPs of the first file. */
	for (int i = 0; i < 8; i++)
		client_ring(&other, handles[i]);
	uvd_doorbell_log_drain(other.log);
	ck_assert_uint_eq(all_rings(), all);
	expect_only_ring(handles[0], 0);
	client_end(&other);
	harness_node_ops.close(fd);
	end_logs();
}
END_TEST

/* Their QP is no longer told from others that may have been lost: all of this file are rung, and nothing else happens. */
START_TEST(test_other_commands_in_the_log_are_not_carried_out)
{
	struct doorbell d[5];
	struct uvd_uobject *uobj;
	struct ib_uverbs_wc wc;
	unsigned long was;

	begin_qps(handles, 2);
	for (int i = 0; i < 5; i++)
		d[i] = doorbell(handles[0]);
	d[0].post.wr_count = 1;
	d[1].post.sge_count = 1;
	d[2].hdr.command = IB_USER_VERBS_CMD_DESTROY_QP;
	d[3].hdr.in_words = 9;
	d[4].hdr.out_words = 2;
	for (int i = 0; i < 5; i++) {
		was = rings(1);
		client_write(&me, &d[i], sizeof(d[i]));
		drain();
		ck_assert_uint_gt(rings(1), was);
		ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_qp, handles[0], UVD_UOBJ_READ, &uobj), 0);
		uvd_uobject_put(uobj, UVD_UOBJ_READ);
		ck_assert(!next_wc(&wc, 0));
		me_ring(handles[0]);
		drain();
		expect_only_ring(handles[0], 0);
	}
	end_logs();
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Over the end of some windows. */
START_TEST(test_log_gives_its_pages_back)
{
	const int many = suite_is_long() ? 1000000 : 200000;
	unsigned long was;

	begin_qps(handles, 1);
	for (int n = 0; n < many; n++) {
		me_ring(handles[0]);
		if (n % 1024)
			continue;
		drain();
		ck_assert_uint_le(client_memory(&me), KEPT);
	}
	drain();
	was = rings(0);
	me_ring(handles[0]);
	wait_rung(0, was);
	end_logs();
}
END_TEST

/* Records may lie across the window's last page. */
START_TEST(test_log_at_an_odd_place_goes_on_behind_its_window)
{
	begin_qps(handles, 1);
	client_write(&me, "odd", 3);
	for (int n = 0; n < 100000; n++) {
		me_ring(handles[0]);
		if (n % 1000 == 0)
			drain();
	}
	drain();
	expect_only_ring(handles[0], 0);
	ck_assert_uint_le(client_memory(&me), KEPT);
	end_logs();
}
END_TEST

/* num: QPs. Each junk rings all of them, which must not make up for it. */
static void flood(unsigned int num)
{
	static const off_t places[] = { UVD_DOORBELL_LOG + (1 << 24), (off_t)3 << 60, UVD_DOORBELL_FILE - (1 << 20) };
	static char megabyte[1 << 20];

	begin_qps(handles, num);
	memset(megabyte, 1, sizeof(megabyte));
	for (size_t i = 0; i < UVD_COUNT(places); i++)
		ck_assert_int_eq(pwrite(me.fd, megabyte, sizeof(megabyte), places[i]), sizeof(megabyte));
	while (client_memory(&me) > sizeof(megabyte) + KEPT)
		client_write(&me, "junk", 4);
	/* The log was quiet for that. It wakes up by itself. */
	if (num) {
		unsigned long was = rings(0);

		drain();
		me_ring(handles[0]);
		wait_rung(0, was);
		drain();
		expect_only_ring(handles[0], 0);
	}
	end_logs();
}

START_TEST(test_junk_far_beyond_the_log_is_given_back)
{
	flood(0);
	flood(1);
}
END_TEST

START_TEST(test_junk_of_a_client_with_many_qps_is_given_back)
{
	flood(QPS);
}
END_TEST

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

START_TEST(test_log_is_refused_where_posts_are_seen)
{
	char error[UVD_PLUGIN_ERROR];

	begin_logs();
	h.ops.ring_doorbell = h.dev->ops.ring_doorbell;
	ck_assert_ptr_null(uvd_doorbell_refusal(h.file));
	h.dev->config.write_abi = true;
	ck_assert_ptr_nonnull(uvd_doorbell_refusal(h.file));
	h.dev->config.write_abi = false;
	__atomic_store_n(&h.engine.observers.complete, 1, __ATOMIC_RELAXED);
	ck_assert_ptr_nonnull(uvd_doorbell_refusal(h.file));
	__atomic_store_n(&h.engine.observers.complete, 0, __ATOMIC_RELAXED);
	ck_assert_msg(!uvd_device_filter_add(h.dev, "error:post_send=ENOMEM@1", error), "%s", error);
	ck_assert_ptr_nonnull(uvd_doorbell_refusal(h.file));
	end_logs();
	teardown();
	setup();
	ck_assert_ptr_nonnull(uvd_doorbell_refusal(h.file)); /* the persona hfi1 */
}
END_TEST

/* A client whose doorbells nobody answers could not be told. */
START_TEST(test_filter_that_comes_later_sees_no_doorbells_of_a_log)
{
	char error[UVD_PLUGIN_ERROR];
	unsigned long was;

	begin_qps(handles, 1);
	ck_assert_msg(!uvd_device_filter_add(h.dev, "error:post_send=ENOMEM@1+", error), "%s", error);
	was = rings(0);
	me_ring(handles[0]);
	wait_rung(0, was);
	end_logs();
}
END_TEST

static atomic_bool stop_ringing;

static void *ring_on(void *arg)
{
	const struct client *c = arg;

	while (!stop_ringing)
		client_ring(c, handles[0]);
	return NULL;
}

START_TEST(test_log_can_end_while_doorbells_keep_coming)
{
	const int rounds = suite_is_long() ? 1000 : 50;
	unsigned long was;
	pthread_t ringer;

	begin_qps(handles, 1);
	for (int n = 0; n < rounds; n++) {
		stop_ringing = false;
		was = rings(0);
		ck_assert_int_eq(pthread_create(&ringer, NULL, ring_on, &me), 0);
		wait_rung(0, was);
		uvd_doorbell_log_end(me.log);
		was = rings(0);
		stop_ringing = true;
		pthread_join(ringer, NULL);
		ck_assert_uint_eq(rings(0), was);
		close(me.fd);
		ck_assert_int_eq(ftruncate(h.fd, 0), 0);
		client_begin(&me, h.file, h.fd);
	}
	end_logs();
}
END_TEST

START_TEST(test_log_that_cannot_begin_leaves_the_file_as_it_was)
{
	struct uvd_doorbell_log *log = NULL;
	int closed;

	begin_logs();
	client_end(&me);
	me.file->logged = 0;
	closed = open("/dev/null", O_RDWR | O_CLOEXEC);
	ck_assert_int_lt(uvd_doorbell_log_new(reader, me.file, closed, -1, &h.call->caller, &log), 0);
	ck_assert_ptr_null(log);
	ck_assert_uint_eq(me.file->logged, 0);
	close(closed);
	uvd_doorbells_stop(reader);
}
END_TEST

TEST_LIST(test_doorbell_in_the_log_carries_out_the_post, test_doorbells_of_many_qps_ring_each,
	  test_drain_hands_over_all_doorbells_in_their_order, test_drain_hands_over_what_the_reader_could_not,
	  test_no_qp_of_a_file_with_a_log_has_handle_0, test_torn_doorbell_is_carried_out_when_it_is_whole,
	  test_doorbells_behind_a_short_one_are_found_and_all_qps_rung,
	  test_next_whole_doorbell_behind_junk_is_always_carried_out,
	  test_doorbell_for_what_is_no_qp_of_the_file_does_nothing, test_other_commands_in_the_log_are_not_carried_out,
	  test_log_gives_its_pages_back, test_log_at_an_odd_place_goes_on_behind_its_window,
	  test_junk_far_beyond_the_log_is_given_back, test_junk_of_a_client_with_many_qps_is_given_back,
	  test_log_is_refused_where_posts_are_seen, test_filter_that_comes_later_sees_no_doorbells_of_a_log,
	  test_log_can_end_while_doorbells_keep_coming, test_log_that_cannot_begin_leaves_the_file_as_it_was)
