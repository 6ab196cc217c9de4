/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Exactly one of worker and tick answers a call (src/cuse/claim.h). The test explores every interleaving of their
 * steps. The worker carries out two calls: two writes to the client, then the answer. The tick looks at the call at
 * any moment, tries to let it go at any later moment, and answers if that succeeds.
 */
#include <check.h>
#include <string.h>

#include "cuse/claim.h"
#include "../suite.h"

enum { CALLS = 2 };
enum { BEGIN, WRITE_1, WRITTEN_1, WRITE_2, WRITTEN_2, TAKE, END, OVER };

struct world {
	struct uvd_claim claim;
	int worker; /* its next step */
	bool writing; /* the worker is in the system call that writes */
	bool past; /* the kernel has looked up the client's thread id, so the tick can see the worker blocked */
	bool let_go, answered_by_tick, answered_by_worker;
	unsigned int call, tries; /* the worker's call; how often the tick has looked */
	bool looked, inside; /* the tick has looked; it has seen the worker blocked in a write */
	uint64_t seen;
	unsigned int seen_call;
};

static unsigned long worlds;

static void explore(struct world w);

static void worker_step(struct world w)
{
	switch (w.worker) {
	case BEGIN:
		uvd_claim_begin(&w.claim);
		w.worker = WRITE_1;
		break;
	case WRITE_1:
	case WRITE_2:
		if (uvd_claim_write(&w.claim)) {
			ck_assert_msg(!w.let_go, "a write begins after the call was let go");
			w.writing = true;
			w.past = false;
			w.worker++;
		} else {
			ck_assert(w.let_go);
			w.worker = END;
		}
		break;
	case WRITTEN_1:
	case WRITTEN_2:
		w.writing = false;
		ck_assert_int_eq(uvd_claim_written(&w.claim), !w.let_go);
		w.worker = w.let_go ? END : w.worker + 1;
		break;
	case TAKE:
		ck_assert_int_eq(uvd_claim_take(&w.claim), !w.let_go);
		w.worker = END;
		break;
	case END:
		if (atomic_load(&w.claim.state) % UVD_CLAIM_STATES == UVD_CLAIM_LETTING_GO)
			return; /* uvd_claim_end() would wait for the tick */
		if (uvd_claim_end(&w.claim))
			w.answered_by_worker = true;
		ck_assert_int_eq(w.answered_by_worker + w.answered_by_tick, 1);
		w.worker = OVER;
		if (++w.call < CALLS) {
			w.worker = BEGIN;
			w.let_go = w.answered_by_tick = w.answered_by_worker = false;
		}
		break;
	default:
		return;
	}
	explore(w);
}

static void lookup_step(struct world w)
{
	if (!w.writing || w.past)
		return;
	ck_assert_msg(!w.let_go, "the client's number is looked up after the call was let go");
	w.past = true;
	explore(w);
}

static void tick_step(struct world w)
{
	if (w.let_go) {
		if (w.answered_by_tick)
			return;
		w.answered_by_tick = true;
		uvd_claim_gone(&w.claim);
		explore(w);
		return;
	}
	if (!w.looked) {
		if (w.tries == 2)
			return;
		w.tries++;
		w.looked = true;
		w.seen = atomic_load(&w.claim.state);
		w.seen_call = w.call;
		w.inside = w.writing && w.past;
		explore(w);
		return;
	}
	w.looked = false;
	if (uvd_claim_let_go(&w.claim, w.seen, w.inside)) {
		ck_assert_msg(w.worker != BEGIN && w.worker != OVER && !w.answered_by_worker,
			      "there is no call to let go");
		ck_assert_msg(w.seen_call == w.call, "another call is let go than the one that the tick has looked at");
		ck_assert_msg(!w.writing || w.past, "another write is let go than the one that the tick has looked at");
		w.let_go = true;
	}
	explore(w);
}

static void explore(struct world w)
{
	worlds++;
	if (w.worker == OVER && (!w.let_go || w.answered_by_tick)) {
		ck_assert_int_eq(w.answered_by_worker + w.answered_by_tick, 1);
		ck_assert_int_eq(uvd_claim_state(atomic_load(&w.claim.state)), UVD_CLAIM_NONE);
		return;
	}
	worker_step(w);
	lookup_step(w);
	tick_step(w);
}

START_TEST(test_one_answers_and_no_number_is_looked_up_after_a_call_was_let_go)
{
	worlds = 0;
	explore((struct world){ 0 });
	ck_assert_uint_gt(worlds, 1000);
}
END_TEST

START_TEST(test_a_claim_that_was_taken_cannot_be_let_go_until_it_is_given_back)
{
	struct uvd_claim c = {};

	uvd_claim_begin(&c);
	ck_assert(uvd_claim_take(&c) && uvd_claim_take(&c));
	ck_assert(!uvd_claim_let_go(&c, c.state, false) && !uvd_claim_let_go(&c, c.state, true));
	uvd_claim_give_back(&c);
	ck_assert(uvd_claim_let_go(&c, c.state, false));
	ck_assert(!uvd_claim_take(&c) && !uvd_claim_holds(&c));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("claim");

	tcase_add_test(t, test_one_answers_and_no_number_is_looked_up_after_a_call_was_let_go);
	tcase_add_test(t, test_a_claim_that_was_taken_cannot_be_let_go_until_it_is_given_back);
	return run_suite("cuse: claim", t);
}
