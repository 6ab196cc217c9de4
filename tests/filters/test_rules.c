/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Filters tell of their rules how many calls they have looked at, and on how many they acted; and when they tell it. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bed.h"
#include "filters/rule.h"
#include "plugin/plugin.h"

/* ---- a filter whose calls wait ----------------------------------------------------------------------------------- */

static sem_t entered, leave;
static struct uvd_rule waits;

static void waiting_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	uvd_rule_count_tell(&waits.count, tell, arg);
}

static int waiting_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	uvd_rule_all(&waits, "when");
	uvd_filter_has_rules(values, waiting_tell_rules);
	return 0;
}

static int waiting_alloc_pd(void *data, const struct uvd_next *next, struct uvd_pd *pd, struct uvd_udata *udata)
{
	uvd_rule_applies(&waits);
	sem_post(&entered);
	sem_wait(&leave);
	uvd_rule_count_done(&waits.count);
	return uvd_next_alloc_pd(next, pd, udata);
}

static const struct uvd_filter waiting = { .name = "waiting", .init = waiting_init, .alloc_pd = waiting_alloc_pd };
static const struct uvd_filter *const toys[] = { &waiting, NULL };
static const struct uvd_plugin toy_plugin = {
	.api_version = UVD_API_VERSION,
	.struct_size = sizeof(struct uvd_plugin),
	.name = "toys",
	.filters = toys,
	.filter_size = sizeof(struct uvd_filter),
};

/* ---- the bed ----------------------------------------------------------------------------------------------------- */

static int log_fd;
static struct uvd_log *log_of_warnings;

/* The log is as `uverbsctl run` has it: warnings, and no information. */
static void setup(void)
{
	sem_init(&entered, 0, 0);
	sem_init(&leave, 0, 0);
	harness_init(&h, "soft");
	log_fd = memfd_create("log", 0);
	log_of_warnings = h.engine.log = uvd_log_new(log_fd, "test", UVD_WARN);
	ck_assert_int_eq(uvd_plugins_add_builtin(h.engine.plugins, &toy_plugin), 0);
	harness_start(&h, &uvd_mem_self);
}

static void teardown(void)
{
	harness_close(&h);
	uvd_log_free(log_of_warnings);
	close(log_fd);
}

/* Returns the lines of the log about filters since the last call, without what they all begin with. */
static const char *logged(void)
{
	static char all[65536], text[65536];
	static size_t read_before;
	char prefix[128], *line, *save;
	ssize_t n = pread(log_fd, all, sizeof(all) - 1, read_before);

	all[n > 0 ? n : 0] = 0;
	read_before += n > 0 ? n : 0;
	*text = 0;
	snprintf(prefix, sizeof(prefix), "test: warning: %s: filter ", h.config.ibdev);
	for (line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, prefix, strlen(prefix)))
			strcat(strcat(text, line + strlen(prefix)), "\n");
	return text;
}

static void ignore_text(void *arg, const char *text)
{
}

static void append_rule(void *arg, const char *rule, uint64_t seen, uint64_t done)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s: %llu of %llu\n", rule, (unsigned long long)done, (unsigned long long)seen);
}

/* Checks what the device's filters tell of their rules. */
static void assert_rules(const char *expected)
{
	char text[2048] = "";

	uvd_device_filter_list(h.dev, ignore_text, append_rule, text);
	ck_assert_str_eq(text, expected);
}

static void remove_filter(const char *name)
{
	ck_assert_msg(!uvd_device_filter_remove(h.dev, name, error), "%s", error);
}

/* Makes n calls of alloc_pd. Returns how many have failed. */
static int calls(int n)
{
	int failed = 0;

	while (n--)
		failed += bed_alloc_pd() != 0;
	return failed;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

START_TEST(test_a_rule_tells_how_many_calls_it_has_looked_at_and_on_how_many_it_acted)
{
	bed_add("error:alloc_pd=EMFILE@3,create_qp=ENOMEM%10");
	assert_rules("alloc_pd=EMFILE@3: 0 of 0\ncreate_qp=ENOMEM%10: 0 of 0\n");
	ck_assert_int_eq(calls(41), 1);
	assert_rules("alloc_pd=EMFILE@3: 1 of 41\ncreate_qp=ENOMEM%10: 0 of 0\n");
	bed_add("nomem:when=%50,seed=3");
	bed_add("nomem");
	ck_assert_int_eq(calls(5), 5);
	assert_rules("when=@1+: 5 of 5\nwhen=%50: 0 of 0\nalloc_pd=EMFILE@3: 1 of 41\ncreate_qp=ENOMEM%10: 0 of 0\n");
	bed_add("error:seed=4");
	logged();
	remove_filter("error");
	ck_assert_str_eq(logged(), "");
}
END_TEST

START_TEST(test_a_percentage_of_messages_tells_how_many_were_lost)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };
	struct uvd_qp rc = { .pd = &pd, .qp_type = IBV_QPT_RC }, ud = { .pd = &pd, .qp_type = IBV_QPT_UD };
	char expected[128];
	int lost = 0;

	bed_add("loss:when=@7,rc=%10,seed=3");
	for (int i = 0; i < 100; i++) {
		struct uvd_message message = { .qp = i % 2 ? &rc : &ud, .opcode = IBV_WR_SEND, .length = 100 };

		h.dev->ib.ops->carry_message(&message);
		lost += message.fate == UVD_FATE_LOSE;
	}
	ck_assert_int_gt(lost, 1);
	snprintf(expected, sizeof(expected), "when=@7: 1 of 100\nrc=%%10: %d of 50\n", lost - 1);
	assert_rules(expected);
}
END_TEST

/* A message that cannot be held counts, and the filter does not act on it. */
START_TEST(test_a_rule_that_could_not_act_says_so)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };
	struct uvd_qp qp = { .pd = &pd, .qp_type = IBV_QPT_UD };

	bed_add("reorder");
	for (int i = 0; i < 5; i++) {
		struct uvd_message message = { .qp = &qp, .opcode = IBV_WR_SEND, .may_hold = i > 2 };

		h.dev->ib.ops->carry_message(&message);
	}
	assert_rules("when=@1+: 2 of 5\n");
}
END_TEST

START_TEST(test_of_two_rules_for_a_completion_the_one_that_decides_has_acted)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq cq = { .context = &context };
	uint32_t qp_num = 100;

	bed_add("error:wc=RETRY_EXC_ERR@2+,wc.recv=REM_OP_ERR@1");
	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc = { .qp_num = qp_num++, .opcode = i == 1 ? IBV_WC_RECV : IBV_WC_SEND };

		uvd_filter_completion(&cq, &wc);
		ck_assert_int_eq(wc.status, ((const int[]){ IBV_WC_SUCCESS, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
							    IBV_WC_RETRY_EXC_ERR })[i]);
	}
	assert_rules("wc=RETRY_EXC_ERR@2+: 2 of 4\nwc.recv=REM_OP_ERR@1: 1 of 1\n");
}
END_TEST

START_TEST(test_a_delay_tells_what_it_delayed)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq cq = { .context = &context };

	bed_add("delay:alloc_pd=1us@2+,wc=1ms,wc.recv=2ms@2");
	calls(3);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = { .opcode = IBV_WC_RECV };
		struct uvd_completion completion = { .cq = &cq, .wc = &wc };

		h.dev->ib.ops->carry_completion(&completion);
	}
	assert_rules("alloc_pd=1us@2+: 2 of 3\nwc=1ms: 1 of 2\nwc.recv=2ms@2: 1 of 2\n");
	/* As visible as what other filters say. */
	ck_assert_ptr_nonnull(strstr(logged(), "delay: alloc_pd, call 2: 1 us\n"));
}
END_TEST

START_TEST(test_a_limit_tells_what_it_refused)
{
	struct uvd_context context = { .dev = &h.dev->ib, .account = h.account };
	struct uvd_pd pds[3] = { { .context = &context }, { .context = &context }, { .context = &context } };

	bed_add("limit:bytes=1M,pd=2,mr=5");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[i], NULL), i < 2 ? 0 : -ENOMEM);
	assert_rules("pd=2: 1 of 3\nmr=5: 0 of 0\nbytes=1M: 0 of 0\n");
}
END_TEST

START_TEST(test_a_limit_for_one_user_looks_at_what_this_user_creates_only)
{
	struct uvd_account *other = uvd_account_get(h.engine.accounts, &(uid_t){ 1001 }, 1);
	struct uvd_context mine = { .dev = &h.dev->ib, .account = h.account };
	struct uvd_context theirs = { .dev = &h.dev->ib, .account = other };
	struct uvd_pd pds[4] = {
		{ .context = &mine }, { .context = &theirs }, { .context = &mine }, { .context = &theirs }
	};

	bed_add("limit:pd=1,uid=1001,errno=EDQUOT");
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[i], NULL), i < 3 ? 0 : -EDQUOT);
	assert_rules("pd=1: 1 of 2\n");
	ck_assert_int_eq(h.dev->ib.ops->dealloc_pd(&pds[0]), 0);
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[3], NULL), -EDQUOT);
	ck_assert_int_eq(h.dev->ib.ops->dealloc_pd(&pds[1]), 0);
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[3], NULL), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(uvd_device_filter_set(h.dev, i ? "limit:uid=nobody" : "limit:uid=4294967295", error),
				 -EINVAL);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_a_port_that_flaps_tells_how_often_it_went_down)
{
	char text[256];

	bed_add("flap:after=1us,down=1us,up=1us,times=30");
	/* The limit of time of the test ends a wait that is stuck. */
	do {
		usleep(1000);
		*text = 0;
		uvd_device_filter_list(h.dev, ignore_text, append_rule, text);
	} while (strcmp(text, "port=1: 30 of 30\n") != 0);
	remove_filter("flap");
	ck_assert_ptr_nonnull(strstr(logged(), "flap: port=1: 30 of 30\n"));
}
END_TEST

/* ---- the log ----------------------------------------------------------------------------------------------------- */

START_TEST(test_the_log_says_what_a_filter_did_when_it_is_removed_replaced_or_its_device_ends)
{
	bed_add("error:alloc_pd=EMFILE@2");
	calls(3);
	logged();
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "error:alloc_pd=EMFILE%100", error), 0);
	ck_assert_str_eq(logged(), "error: alloc_pd=EMFILE@2: 1 of 3\n");
	/* However many lines the filter has written: they are limited, these are not. */
	calls(50);
	logged();
	bed_add("nomem:when=@1+");
	remove_filter("error");
	ck_assert_str_eq(logged(), "error: alloc_pd=EMFILE%100: 50 of 50\n");
	uvd_device_remove(h.dev);
	ck_assert_str_eq(logged(), "nomem: when=@1+: 0 of 0\n");
}
END_TEST

START_TEST(test_the_log_says_what_a_filter_did_when_its_last_call_has_ended)
{
	pthread_t thread;
	void *ret;

	bed_add("waiting");
	pthread_create(&thread, NULL, bed_call_once, NULL);
	sem_wait(&entered);
	assert_rules("when=@1+: 0 of 1\n");
	remove_filter("waiting");
	ck_assert_str_eq(logged(), "");
	sem_post(&leave);
	pthread_join(thread, &ret);
	ck_assert_int_eq((intptr_t)ret, 0);
	bed_add("error:seed=1");
	ck_assert_str_eq(logged(), "waiting: when=@1+: 1 of 1\n");
}
END_TEST

enum { CALLS = 10000 /* of each thread */ };

static void *call_often(void *arg)
{
	return (void *)(intptr_t)calls(CALLS);
}

START_TEST(test_no_call_of_any_thread_is_missing_in_the_counts)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	char expected[128];
	intptr_t failed = 0;
	void *of_thread;

	bed_add("error:alloc_pd=EMFILE@20000");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call_often, NULL);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &of_thread);
		failed += (intptr_t)of_thread;
	}
	ck_assert_int_eq(failed, 1);
	snprintf(expected, sizeof(expected), "alloc_pd=EMFILE@20000: 1 of %d\n", THREADS * CALLS);
	assert_rules(expected);
}
END_TEST

FILTERS_MAIN(setup, teardown, test_a_rule_tells_how_many_calls_it_has_looked_at_and_on_how_many_it_acted,
	     test_a_percentage_of_messages_tells_how_many_were_lost, test_a_rule_that_could_not_act_says_so,
	     test_of_two_rules_for_a_completion_the_one_that_decides_has_acted, test_a_delay_tells_what_it_delayed,
	     test_a_limit_tells_what_it_refused, test_a_limit_for_one_user_looks_at_what_this_user_creates_only,
	     test_a_port_that_flaps_tells_how_often_it_went_down,
	     test_the_log_says_what_a_filter_did_when_it_is_removed_replaced_or_its_device_ends,
	     test_the_log_says_what_a_filter_did_when_its_last_call_has_ended,
	     test_no_call_of_any_thread_is_missing_in_the_counts)
