/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Threads that give commands at random, to identifiers that may be anybody's and in any state: nothing is left of them. */
#include <pthread.h>
#include "cm/command.h"
#include "conversation.h"
#include "fuzz/make_cm.h"

enum { THREADS = 4, ROUNDS = 20000, LONG_ROUNDS = 400000 };

static struct conversation v;

struct stormer {
	pthread_t thread;
	struct fuzz_gen gen;
	struct uvd_caller caller;
	unsigned int done; /* commands that succeeded */
};

/* Makes the timer of some identifier run out. */
static void time_out_any(struct stormer *s)
{
	struct cm_id *id;

	cm_lock(v.cm);
	id = cm_number_find(&v.cm->ids, fuzz_any(&s->gen, FUZZ_CM_IDS));
	if (id && id->due) {
		cm_timer_stop(id);
		cm_timed_out(id);
	}
	cm_unlock(v.cm);
}

static void command_any(struct stormer *s)
{
	const uint32_t command = fuzz_any(&s->gen, RDMA_USER_CM_CMD_JOIN_MCAST + 1);
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint64_t in[64];
	} bytes = { .hdr = { .cmd = command, .out = CM_MOST_OUT } };
	uint64_t out[CM_MOST_OUT / 8];
	bool known;
	const struct cm_row *row = cm_row(command, &known);

	/* The value of an option would have to be in this process's memory. */
	if (!row || command == RDMA_USER_CM_CMD_SET_OPTION)
		return;
	bytes.hdr.in = row->in;
	fuzz_cm_fill(&s->gen, command, bytes.in);
	if (row->least_out || command == RDMA_USER_CM_CMD_QUERY || command == RDMA_USER_CM_CMD_MIGRATE_ID)
		bytes.in[row->response / 8] = (uintptr_t)out;
	s->done +=
		uvd_cm_write(fuzz_chance(&s->gen, 50) ? v.a : v.b, &s->caller, &bytes, sizeof(bytes.hdr) + row->in) > 0;
}

static void *storm(void *arg)
{
	const unsigned int rounds = suite_is_long() ? LONG_ROUNDS : ROUNDS;
	struct stormer *s = arg;

	s->caller = uvd_host_caller(&uvd_mem_self, &uvd_proc_local, v.account);
	for (unsigned int i = 0; i < rounds; i++)
		if (fuzz_chance(&s->gen, 2))
			time_out_any(s);
		else
			command_any(s);
	return NULL;
}

START_TEST(test_commands_of_many_threads_leave_nothing_behind)
{
	struct stormer stormers[THREADS] = {};

	conversation_begin(&v);
	for (unsigned int i = 0; i < THREADS; i++) {
		fuzz_gen_init(&stormers[i].gen, i + 1);
		ck_assert_int_eq(pthread_create(&stormers[i].thread, NULL, storm, &stormers[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(stormers[i].thread, NULL);
		/* Otherwise the storm would test nothing. */
		ck_assert_uint_gt(stormers[i].done, ROUNDS / 20);
	}
	conversation_end(&v);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("storm");

	tcase_add_test(t, test_commands_of_many_threads_leave_nothing_behind);
	tcase_set_timeout(t, 300);
	return run_suite("cm storm", t);
}
