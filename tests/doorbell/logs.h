/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Logs of open files, whose doorbells this program writes as a provider does. The backend's ring_doorbell() is counted here, in order, and
 * then done.
 */
#ifndef TESTS_DOORBELL_LOGS_H
#define TESTS_DOORBELL_LOGS_H

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include "../objects/queues.h"
#include "doorbell/internal.h"

struct client {
	struct uvd_file *file;
	int fd; /* the client's. The kernel tells nothing of what is written by the descriptor that memfd_create() returned */
	struct uvd_doorbell_log *log;
};

static struct uvd_doorbells *reader;
static struct client me; /* its file is h.file */

/* ---- what was rung ----------------------------------------------------------------------------------------------- */

enum { MAX_QPS = 1100 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int num; /* QPs */
	struct uvd_qp *qps[MAX_QPS];
	unsigned long rings[MAX_QPS];
	unsigned long all; /* doorbells of all QPs */
	unsigned int order[64]; /* the last ones: indices of QPs, at `all` modulo the size */
	const struct uvd_qp *stuck_qp; /* its doorbells are carried out by work that waits */
	bool closed; /* ring_doorbell() waits until it is false */
	unsigned int waiting; /* threads that wait */
	bool released; /* that work goes on */
} rung = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Work that is held up in a client's memory. */
static void stuck_run(void *arg, struct uvd_worker *worker)
{
	if (worker && worker->held_up)
		worker->held_up(worker);
	pthread_mutex_lock(&rung.lock);
	rung.waiting++;
	pthread_cond_broadcast(&rung.changed);
	while (!rung.released)
		pthread_cond_wait(&rung.changed, &rung.lock);
	rung.waiting--;
	pthread_cond_broadcast(&rung.changed);
	pthread_mutex_unlock(&rung.lock);
}

static int counted_ring(struct uvd_qp *qp, struct uvd_work *work)
{
	bool is_stuck;

	pthread_mutex_lock(&rung.lock);
	rung.waiting++;
	pthread_cond_broadcast(&rung.changed);
	while (rung.closed)
		pthread_cond_wait(&rung.changed, &rung.lock);
	rung.waiting--;
	for (unsigned int i = 0; i < rung.num; i++) {
		if (rung.qps[i] != qp)
			continue;
		rung.rings[i]++;
		rung.order[rung.all++ % UVD_COUNT(rung.order)] = i;
	}
	is_stuck = qp == rung.stuck_qp;
	pthread_cond_broadcast(&rung.changed);
	pthread_mutex_unlock(&rung.lock);
	if (!is_stuck)
		return uvd_backend_soft.ring_doorbell(qp, work);
	*work = (struct uvd_work){ .run = stuck_run };
	return 0;
}

static unsigned long rings(unsigned int i)
{
	unsigned long n;

	pthread_mutex_lock(&rung.lock);
	n = rung.rings[i];
	pthread_mutex_unlock(&rung.lock);
	return n;
}

static unsigned long all_rings(void)
{
	unsigned long n;

	pthread_mutex_lock(&rung.lock);
	n = rung.all;
	pthread_mutex_unlock(&rung.lock);
	return n;
}

/* Waits until QP i was rung more than `was` times. A doorbell that is lost ends the test by its time limit. */
static void wait_rung(unsigned int i, unsigned long was)
{
	pthread_mutex_lock(&rung.lock);
	while (rung.rings[i] <= was)
		pthread_cond_wait(&rung.changed, &rung.lock);
	pthread_mutex_unlock(&rung.lock);
}

static inline void set_closed(bool closed)
{
	pthread_mutex_lock(&rung.lock);
	rung.closed = closed;
	pthread_cond_broadcast(&rung.changed);
	pthread_mutex_unlock(&rung.lock);
}

static inline void release_work(void)
{
	pthread_mutex_lock(&rung.lock);
	rung.released = true;
	pthread_cond_broadcast(&rung.changed);
	pthread_mutex_unlock(&rung.lock);
}

static inline void wait_waiting(unsigned int n)
{
	pthread_mutex_lock(&rung.lock);
	while (rung.waiting != n)
		pthread_cond_wait(&rung.changed, &rung.lock);
	pthread_mutex_unlock(&rung.lock);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

/* memfd: of the open file. */
static void client_begin(struct client *c, struct uvd_file *file, int memfd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	c->file = file;
	c->fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(c->fd, 0);
	ck_assert_int_eq(ftruncate(c->fd, UVD_DOORBELL_FILE), 0);
	ck_assert(lseek(c->fd, UVD_DOORBELL_LOG, SEEK_SET) == UVD_DOORBELL_LOG);
	ck_assert_int_eq(uvd_doorbell_log_new(reader, file, memfd, -1, &h.call->caller, &c->log), 0);
}

static void client_end(struct client *c)
{
	uvd_doorbell_log_end(c->log);
	c->log = NULL;
	close(c->fd);
}

/* An open file of the persona rxe with a log, and without QPs. */
static void begin_logs(void)
{
	begin(true);
	/* Filters are told by this function. */
	h.dev->ops.ring_doorbell = h.ops.ring_doorbell = counted_ring;
	cq = new_cq();
	reader = uvd_doorbells_new(h.engine.log, NULL);
	ck_assert_ptr_nonnull(reader);
	client_begin(&me, h.file, h.fd);
}

/* Counts the doorbells of this QP from now on. Returns its index. */
static unsigned int count_qp(struct uvd_file *file, uint32_t handle)
{
	struct uvd_uobject *uobj;
	unsigned int i;

	ck_assert_int_eq(uvd_uobject_get(file, &uvd_object_qp, handle, UVD_UOBJ_READ, &uobj), 0);
	pthread_mutex_lock(&rung.lock);
	i = rung.num++;
	ck_assert_uint_lt(i, MAX_QPS);
	rung.qps[i] = uobj->object;
	pthread_mutex_unlock(&rung.lock);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return i;
}

static inline uint32_t new_qp(void)
{
	struct qp_answer resp;

	ck_assert_int_eq(create_qp(cq, 4, &resp), 0);
	return resp.core.qp_handle;
}

/* Creates QPs in ERR, which take posts, and flush them. handles: where theirs are stored. Their indices are 0 to num - 1. */
static void begin_qps(uint32_t *handles, unsigned int num)
{
	begin_logs();
	for (unsigned int i = 0; i < num; i++) {
		ck_assert_int_eq(create_qp(cq, 4, &qps[0]), 0);
		to_init(0);
		ck_assert_int_eq(to_state(0, IBV_QPS_ERR), 0);
		handles[i] = qps[0].core.qp_handle;
		ck_assert_uint_eq(count_qp(h.file, handles[i]), i);
	}
}

/* harness_close() finds what is still charged, here and in the fixture. Work that goes on keeps the engine from being freed. */
static void end_logs(void)
{
	client_end(&me);
	for (int i = 0; i < 500; i++)
		uvd_doorbells_wait(reader);
	uvd_doorbells_stop(reader);
	rung.num = 0;
}

/* ---- doorbells --------------------------------------------------------------------------------------------------- */

struct doorbell {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send post;
};

static struct doorbell doorbell(uint32_t handle)
{
	return (struct doorbell){
		.hdr = { .command = IB_USER_VERBS_CMD_POST_SEND, .in_words = 8, .out_words = 1 },
		.post = { .response = (uintptr_t)&me,
			  .qp_handle = handle,
			  .wqe_size = sizeof(struct ib_uverbs_send_wr) },
	};
}

static void client_write(const struct client *c, const void *bytes, size_t len)
{
	ck_assert_int_eq(write(c->fd, bytes, len), len);
}

static void client_ring(const struct client *c, uint32_t handle)
{
	const struct doorbell d = doorbell(handle);

	client_write(c, &d, sizeof(d));
}

static void me_ring(uint32_t handle)
{
	client_ring(&me, handle);
}

static void drain(void)
{
	uvd_doorbell_log_drain(me.log);
}

/*
 * After a drain. The reader must not look meanwhile: it can find a doorbell that the kernel has copied in part, and would ring all QPs.
 */
static inline void expect_only_ring(uint32_t handle, unsigned int i)
{
	const unsigned long all = all_rings(), was = rings(i);

	pthread_mutex_lock(&me.log->lock);
	me_ring(handle);
	pthread_mutex_unlock(&me.log->lock);
	drain();
	ck_assert_uint_eq(rings(i), was + 1);
	ck_assert_uint_eq(all_rings(), all + 1);
}

/* Returns the memory of the open file in bytes. */
static inline unsigned long client_memory(const struct client *c)
{
	struct stat st;

	ck_assert_int_eq(fstat(c->fd, &st), 0);
	return st.st_blocks * 512ul;
}

#endif
