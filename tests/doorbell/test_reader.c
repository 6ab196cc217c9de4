/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The reader of many logs: it sleeps, it wakes up, and nobody's log or work keeps the others' waiting. */
#include <dirent.h>
#include <sys/resource.h>
#include "logs.h"

enum { QPS = 2, LOGS = 1000 };

static uint32_t handles[QPS];
static struct client clients[LOGS];

/* ---- more clients ------------------------------------------------------------------------------------------------ */

/* Opens the device once more, with a log and a QP in ERR. Returns the QP's index; *handle is its handle. */
static unsigned int begin_client(struct client *c, uint32_t *handle)
{
	const int number = harness_node_ops.open("/dev/infiniband/uverbs0");
	struct ib_uverbs_get_context_resp context;
	struct uvd_file *mine = h.file;
	const uint32_t my_pd = pd, my_cq = cq;
	unsigned int i;

	ck_assert_int_ge(number, 0);
	client_begin(c, harness_file(number), number);
	/* Calls of the harness are the file's now. */
	h.file = h.call->file = c->file;
	h.file->share = &share_ops;
	h.file->share_owner = &shared;
	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	cq = new_cq();
	ck_assert_int_eq(create_qp(cq, 4, &qps[0]), 0);
	to_init(0);
	ck_assert_int_eq(to_state(0, IBV_QPS_ERR), 0);
	*handle = qps[0].core.qp_handle;
	i = count_qp(h.file, *handle);
	h.file = h.call->file = mine;
	pd = my_pd;
	cq = my_cq;
	return i;
}

/* Has the log put off, and waits for that: then junk far beyond the log is given back. */
static void make_quiet(const struct client *c)
{
	static char much[1 << 20];

	memset(much, 1, sizeof(much));
	ck_assert_int_eq(pwrite(c->fd, much, sizeof(much), (off_t)3 << 60), sizeof(much));
	while (client_memory(c) >= sizeof(much))
		client_write(c, "junk", 4);
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

/* Stores the numbers of this process's threads. Returns how many there are. */
static unsigned int list_threads(int *tids, unsigned int max)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned int n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir)))
		if (*e->d_name != '.' && n < max)
			tids[n++] = atoi(e->d_name);
	closedir(dir);
	return n;
}

/* Returns how long the thread has run (ns), and how often (*times). */
static unsigned long long thread_time(int tid, unsigned long *times)
{
	unsigned long long run, waited;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%llu %llu %lu", &run, &waited, times), 3);
	fclose(f);
	return run;
}

static bool thread_sleeps(int tid)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert(fgets(text, sizeof(text), f));
	fclose(f);
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

static bool is_in(const int *tids, unsigned int num, int tid)
{
	while (num && tids[num - 1] != tid)
		num--;
	return num;
}

/* Has `me` read by a new reader. Returns its thread. */
static int begin_with_reader(void)
{
	int before[64], after[64], found = 0;
	unsigned int num, was;

	begin_qps(handles, QPS);
	client_end(&me);
	uvd_doorbells_stop(reader); /* its thread may not have ended yet */
	was = list_threads(before, 64);
	reader = uvd_doorbells_new(h.engine.log, NULL);
	ck_assert_int_eq(ftruncate(h.fd, 0), 0);
	client_begin(&me, h.file, h.fd);
	num = list_threads(after, 64);
	for (unsigned int i = 0; i < num; i++)
		if (!is_in(before, was, after[i]))
			found = after[i];
	return found;
}

START_TEST(test_reader_takes_no_time_while_nothing_is_rung)
{
	unsigned long long ran = 1;
	unsigned long times = 1, now_times = 0;
	unsigned long was;
	const int tid = begin_with_reader();

	ck_assert_int_gt(tid, 0);
	for (int n = 0; n < 10; n++) {
		was = rings(0);
		me_ring(handles[0]);
		wait_rung(0, was);
	}
	/* It may look for a while, and then sleeps for good. */
	for (unsigned int same = 0; same < 3;) {
		usleep(20000);
		ran = thread_time(tid, &now_times);
		same = now_times == times && thread_sleeps(tid) ? same + 1 : 0;
		times = now_times;
	}
	ck_assert_uint_eq(thread_time(tid, &now_times), ran);
	ck_assert_uint_lt(ran, 1000000000);
	/* And wakes up. */
	was = rings(1);
	me_ring(handles[1]);
	wait_rung(1, was);
	end_logs();
}
END_TEST

/* ---- quiet logs -------------------------------------------------------------------------------------------------- */

/* No event tells of it. */
START_TEST(test_doorbell_of_a_quiet_log_is_carried_out)
{
	unsigned long was;

	begin_qps(handles, QPS);
	for (int n = 0; n < 30; n++) {
		make_quiet(&me);
		was = rings(0);
		me_ring(handles[0]);
		wait_rung(0, was);
	}
	end_logs();
}
END_TEST

/* Does an inotify instance of this process watch the client's file? The text has the inode number in hexadecimal. */
static bool is_watched(const struct client *c)
{
	char path[300], line[256], ino[32];
	DIR *dir = opendir("/proc/self/fdinfo");
	const struct dirent *e;
	bool is = false;
	struct stat st;
	FILE *f;

	ck_assert(dir && !fstat(c->fd, &st));
	snprintf(ino, sizeof(ino), " ino:%lx ", (unsigned long)st.st_ino);
	while (!is && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", e->d_name);
		f = *e->d_name == '.' ? NULL : fopen(path, "r");
		while (f && !is && fgets(line, sizeof(line), f))
			is = !strncmp(line, "inotify wd:", 11) && strstr(line, ino);
		if (f)
			fclose(f);
	}
	closedir(dir);
	return is;
}

/* Each of these waits ends by the test's time limit if it is in vain. */
START_TEST(test_log_with_junk_is_not_watched_for_a_while)
{
	begin_qps(handles, QPS);
	for (int n = 0; n < 20; n++) {
		while (is_watched(&me))
			client_write(&me, "junk", 4);
		while (!is_watched(&me))
			;
	}
	end_logs();
}
END_TEST

static atomic_bool stop_ringing;
static uint32_t others_handle;

static void *ring_on(void *arg)
{
	const struct client *c = arg;

	while (!stop_ringing)
		client_ring(c, others_handle);
	return NULL;
}

START_TEST(test_quiet_log_wakes_up_while_others_keep_the_reader_busy)
{
	pthread_t ringers[2];
	unsigned long was;

	begin_qps(handles, QPS);
	begin_client(&clients[0], &others_handle);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&ringers[i], NULL, ring_on, &clients[0]), 0);
	for (int n = 0; n < 10; n++) {
		make_quiet(&me);
		was = rings(0);
		me_ring(handles[0]);
		wait_rung(0, was);
	}
	stop_ringing = true;
	for (int i = 0; i < 2; i++)
		pthread_join(ringers[i], NULL);
	client_end(&clients[0]);
	end_logs();
}
END_TEST

/* Two doorbells can be carried out as one, and have two events. */
START_TEST(test_doorbells_in_pairs_are_no_junk)
{
	unsigned long was;

	begin_qps(handles, QPS);
	for (int n = 0; n < 2000; n++) {
		was = rings(0);
		me_ring(handles[0]);
		me_ring(handles[0]);
		wait_rung(0, was);
	}
	pthread_mutex_lock(&me.log->lock);
	ck_assert_uint_eq(me.log->times_quiet, 0);
	pthread_mutex_unlock(&me.log->lock);
	end_logs();
}
END_TEST

/* ---- many logs --------------------------------------------------------------------------------------------------- */

START_TEST(test_a_thousand_logs_are_read)
{
	const unsigned int num = suite_is_long() ? LOGS : 200;
	static uint32_t theirs[LOGS];
	struct rlimit files;
	unsigned int index[LOGS];

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 3 * num + 100)
		SKIP("too few descriptors");
	begin_logs();
	for (unsigned int i = 0; i < num; i++)
		index[i] = begin_client(&clients[i], &theirs[i]);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < num; i++)
			client_ring(&clients[i * 7 % num], theirs[i * 7 % num]);
		for (unsigned int i = 0; i < num; i++)
			wait_rung(index[i], round);
	}
	for (unsigned int i = 0; i < num; i++)
		client_end(&clients[i]);
	end_logs();
}
END_TEST

/* The kernel drops events if a reader does not read them. It tells that it has. */
START_TEST(test_doorbell_whose_event_was_dropped_is_carried_out)
{
	unsigned int last;
	unsigned long was;
	int max = 0;
	uint32_t theirs[3];
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");

	ck_assert(f && fscanf(f, "%d", &max) == 1);
	fclose(f);
	if (max > 200000)
		SKIP("the queue of events is long");
	begin_qps(handles, QPS);
	for (int i = 0; i < 3; i++)
		last = begin_client(&clients[i], &theirs[i]);
	set_closed(true);
	me_ring(handles[0]);
	wait_waiting(1);
	for (int n = 0; n <= max; n++)
		client_ring(&clients[n % 2], theirs[n % 2]);
	was = rings(last);
	client_ring(&clients[2], theirs[2]);
	set_closed(false);
	wait_rung(last, was);
	for (int i = 0; i < 3; i++)
		client_end(&clients[i]);
	end_logs();
}
END_TEST

/* ---- work -------------------------------------------------------------------------------------------------------- */

static void set_stuck(unsigned int i)
{
	pthread_mutex_lock(&rung.lock);
	rung.stuck_qp = rung.qps[i];
	pthread_mutex_unlock(&rung.lock);
}

/* Posts to QP 1 whose completions come from work, which is run by the reader's thread. */
START_TEST(test_others_doorbells_go_on_while_work_is_held_up)
{
	struct ib_uverbs_wc wc;
	unsigned long was;

	begin_logs();
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(create_qp(cq, 4, &qps[i]), 0);
		count_qp(h.file, qps[i].core.qp_handle);
	}
	for (int i = 0; i < 2; i++)
		connect_qp(i, 1, 7);
	set_stuck(0);
	for (unsigned int stuck = 1; stuck <= 5; stuck++) {
		me_ring(qps[0].core.qp_handle);
		wait_waiting(stuck);
		post_recv(0, 100);
		add_nothing(1, stuck);
		was = rings(1);
		me_ring(qps[1].core.qp_handle);
		wait_rung(1, was);
		for (int n = 0; n < 2; n++)
			ck_assert(next_wc(&wc, 20) && !wc.status);
	}
	release_work();
	wait_waiting(0);
	me_ring(qps[0].core.qp_handle);
	was = rings(1);
	me_ring(qps[1].core.qp_handle);
	wait_rung(1, was);
	end_logs();
}
END_TEST

START_TEST(test_logs_and_reader_can_end_while_work_is_held_up)
{
	begin_qps(handles, QPS);
	set_stuck(0);
	for (unsigned int stuck = 1; stuck <= 3; stuck++) {
		me_ring(handles[0]);
		wait_waiting(stuck);
	}
	end_logs();
	harness_close(&h);
	setup();
	release_work();
	wait_waiting(0);
}
END_TEST

/* The last of them are still in the reader's queue when the file is closed. */
START_TEST(test_file_can_be_closed_with_doorbells_in_its_log)
{
	for (int n = 0; n < 20; n++) {
		begin_qps(handles, QPS);
		for (int i = 0; i < 200; i++)
			me_ring(handles[i % QPS]);
		end_logs();
	}
}
END_TEST

TEST_LIST(test_reader_takes_no_time_while_nothing_is_rung, test_doorbell_of_a_quiet_log_is_carried_out,
	  test_log_with_junk_is_not_watched_for_a_while, test_quiet_log_wakes_up_while_others_keep_the_reader_busy,
	  test_doorbells_in_pairs_are_no_junk, test_a_thousand_logs_are_read,
	  test_doorbell_whose_event_was_dropped_is_carried_out, test_others_doorbells_go_on_while_work_is_held_up,
	  test_logs_and_reader_can_end_while_work_is_held_up, test_file_can_be_closed_with_doorbells_in_its_log)
