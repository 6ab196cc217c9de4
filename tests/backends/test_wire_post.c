/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests that are posted at any moment of a run of their QP on the wire: the thread that has the QP carries them out. */
#include <pthread.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

enum { MOMENTS = 40, LEAST = 4 };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static atomic_int countdown; /* acquisitions of the lock of a's QP until a request is posted; negative: it is */
static struct ibv_sge sge;
static struct uvd_send_wr second;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

/* A thread that is about to take the lock holds none that a post needs: the post is another thread's, as it seems. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	if (a->qp && lock == &soft_qp(a->qp)->lock && soft_qp(a->qp)->s_busy && countdown >= 0 &&
	    atomic_fetch_sub(&countdown, 1) == 0)
		ck_assert_int_eq(post_send_wr(a, &second), 0);
	return __real_pthread_mutex_lock(lock);
}

/* Does no thread run the QP, nor will one? Then no request may be left that has not begun: only a timer would find it. */
static bool is_idle(void)
{
	struct soft_qp *qp = soft_qp(a->qp);
	bool idle, left;

	__real_pthread_mutex_lock(&qp->lock);
	idle = !qp->s_busy && !qp->s_deferred;
	left = soft_sq_count(qp) && !qp->s_started;
	pthread_mutex_unlock(&qp->lock);
	ck_assert(!idle || !left);
	return idle;
}

static void setup(void)
{
	countdown = -1;
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
}

static void teardown(void)
{
	bed_close(&bed);
}

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

START_TEST(test_request_posted_at_any_moment_of_a_run_is_carried_out)
{
	struct uvd_send_wr first;
	int posted = 0;

	bed_connect(&bed, types[_i]);
	sge = sge_at(a, 0, 8);
	first = second = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	second.wr_id = 0xb;
	for (int moment = 0; moment < MOMENTS; moment++) {
		countdown = moment;
		ck_assert_int_eq(post_send_wr(a, &first), 0);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
		wait_until(is_idle());
		if (atomic_exchange(&countdown, -1) >= 0)
			continue;
		posted++;
		expect(a->scq, 0xb, IBV_WC_SUCCESS);
		wait_until(is_idle());
	}
	ck_assert_int_ge(posted, LEAST);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("post");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 100);
	tcase_add_loop_test(t, test_request_posted_at_any_moment_of_a_run_is_carried_out, 0, 2);
	return run_suite("backends: soft, posts during runs on the wire", t);
}
