/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The stack of filters: its order, what passes by, and changes under calls. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "bed.h"
#include "plugin/plugin.h"

/* ---- toy filters ------------------------------------------------------------------------------------------------- */

static char trace[64]; /* the id of each filter that a call has passed */
static atomic_int begun, ended;
static sem_t entered, leave;

static int toy_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	const char *id = uvd_plugin_value(values, "id");

	if (!strcmp(id, "bad"))
		return uvd_plugin_wrong(values, "id", "is bad");
	*data = strdup(id);
	atomic_fetch_add(&begun, 1);
	return 0;
}

static void toy_exit(struct uvd_ibdev *dev, void *data)
{
	free(data);
	atomic_fetch_add(&ended, 1);
}

static int toy_alloc_pd(void *data, const struct uvd_next *next, struct uvd_pd *pd, struct uvd_udata *udata)
{
	strcat(trace, data);
	return uvd_next_alloc_pd(next, pd, udata);
}

static void toy_completion(void *data, struct uvd_cq *cq, struct ibv_wc *wc)
{
	strcat(trace, data);
}

static int slow_alloc_pd(void *data, const struct uvd_next *next, struct uvd_pd *pd, struct uvd_udata *udata)
{
	sem_post(&entered);
	sem_wait(&leave);
	return strlen(data) ? uvd_next_alloc_pd(next, pd, udata) : -EIO;
}

static int busy_alloc_pd(void *data, const struct uvd_next *next, struct uvd_pd *pd, struct uvd_udata *udata)
{
	return *(char *)data ? uvd_next_alloc_pd(next, pd, udata) : -EIO;
}

static const struct uvd_plugin_option toy_options[] = { { "id", "?", "TEXT", "what it leaves in the trace" }, {} };
#define TOY .options = toy_options, .init = toy_init, .exit = toy_exit
static const struct uvd_filter toy = { .name = "toy", TOY, .alloc_pd = toy_alloc_pd, .completion = toy_completion };
static const struct uvd_filter other = { .name = "other", TOY, .alloc_pd = toy_alloc_pd };
static const struct uvd_filter slow = { .name = "slow", TOY, .alloc_pd = slow_alloc_pd };
static const struct uvd_filter busy = { .name = "busy", TOY, .alloc_pd = busy_alloc_pd };
static const struct uvd_filter empty = { .name = "empty", TOY };
static const struct uvd_filter *const toys[] = { &toy, &other, &slow, &busy, &empty, NULL };
static const struct uvd_plugin toy_plugin = {
	.api_version = UVD_API_VERSION,
	.struct_size = sizeof(struct uvd_plugin),
	.name = "toys",
	.filters = toys,
	.filter_size = sizeof(struct uvd_filter),
};

static void setup(void)
{
	sem_init(&entered, 0, 0);
	sem_init(&leave, 0, 0);
	harness_init(&h, "null");
	ck_assert_int_eq(uvd_plugins_add_builtin(h.engine.plugins, &toy_plugin), 0);
}

static void start(void)
{
	harness_start(&h, &uvd_mem_self);
}

/* Each filter that began has ended. */
static void teardown(void)
{
	harness_close(&h);
	ck_assert_int_eq(atomic_load(&begun), atomic_load(&ended));
}

static void assert_trace(const char *expected)
{
	*trace = 0;
	ck_assert_int_eq(bed_alloc_pd(), 0);
	ck_assert_str_eq(trace, expected);
}

static void list_append(void *arg, const char *text)
{
	strcat(arg, text);
	strcat(arg, " ");
}

static void assert_list(const char *expected)
{
	char text[256] = "";

	uvd_device_filter_list(h.dev, list_append, NULL, text);
	ck_assert_str_eq(text, expected);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

START_TEST(test_the_first_filter_of_a_device_is_the_outermost)
{
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "toy:id=a"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, "another", UVD_TEXT_FILTER, "toy:id=x"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "other:id=b"), 0);
	start();
	assert_trace("ab");
	assert_list("toy:id=a other:id=b ");
}
END_TEST

START_TEST(test_what_a_name_would_get_can_be_taken_and_given_back)
{
	struct uvd_device_text *taken, *of_another;

	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "toy:id=a"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, "another", UVD_TEXT_FILTER, "toy:id=x"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "other:id=b"), 0);
	taken = uvd_engine_texts_take(&h.engine, h.config.ibdev);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "toy:id=c"), 0);
	uvd_engine_texts_restore(&h.engine, h.config.ibdev, taken);
	start();
	assert_trace("ab");
	of_another = uvd_engine_texts_take(&h.engine, "another");
	ck_assert_ptr_nonnull(of_another);
	ck_assert_str_eq(of_another->text, "toy:id=x");
	ck_assert_ptr_null(of_another->next);
	uvd_engine_texts_drop(of_another);
}
END_TEST

START_TEST(test_a_filter_that_is_added_is_the_outermost)
{
	start();
	bed_add("toy:id=a");
	bed_add("toy:id=b");
	assert_trace("ba");
	bed_add("empty");
	assert_trace("ba");
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "toy", error), 0);
	assert_trace("a");
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "toy", error), 0);
	assert_trace("");
}
END_TEST

START_TEST(test_a_filter_that_is_set_keeps_its_place_and_begins_anew)
{
	start();
	bed_add("toy:id=a");
	bed_add("other:id=b");
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "toy:id=c", error), 0);
	assert_trace("bc");
	assert_list("other:id=b toy:id=c ");
	ck_assert_int_eq(atomic_load(&ended), 1);
}
END_TEST

START_TEST(test_a_filter_is_found_by_its_whole_name)
{
	start();
	bed_add("other:id=a");
	bed_add("empty:id=b");
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "o", error), -ENOENT);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "others", error), -ENOENT);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "other", error), 0);
	assert_list("empty:id=b ");
}
END_TEST

START_TEST(test_completions_pass_the_innermost_filter_first)
{
	struct uvd_context context;
	struct uvd_cq cq = { .context = &context };
	struct ibv_wc wc = {};

	start();
	context.dev = &h.dev->ib;
	uvd_filter_completion(&cq, &wc);
	ck_assert_str_eq(trace, "");
	bed_add("toy:id=a");
	bed_add("other:id=b");
	bed_add("toy:id=c");
	uvd_filter_completion(&cq, &wc);
	ck_assert_str_eq(trace, "ac");
}
END_TEST

/* ---- what costs nothing ------------------------------------------------------------------------------------------ */

START_TEST(test_operations_that_no_filter_wraps_are_the_backends_own)
{
	const struct uvd_backend *own, *ops;

	start();
	own = &h.dev->ops;
	bed_add("empty");
	ck_assert_ptr_eq(h.dev->ib.ops, own);
	ck_assert(!atomic_load(&h.dev->filters.completions));
	bed_add("toy");
	ops = h.dev->ib.ops;
	ck_assert(ops->alloc_pd != own->alloc_pd);
	ck_assert(ops->dealloc_pd == own->dealloc_pd && ops->create_qp == own->create_qp);
	ck_assert_uint_eq(ops->size_qp, own->size_qp);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "toy", error), 0);
	ck_assert_ptr_eq(h.dev->ib.ops, own);
	/* A table that was used before is used again, so changes do not add up. */
	bed_add("other");
	ck_assert_ptr_eq(h.dev->ib.ops, ops);
}
END_TEST

START_TEST(test_an_operation_that_the_backend_lacks_stays_absent)
{
	struct uvd_filter_instance instance = { .filter = &toy }, *list[] = { &instance };
	struct uvd_backend none = {}, one = { .alloc_pd = uvd_backend_null.alloc_pd };

	ck_assert(!uvd_filter_ops_put(&none, list, 1));
	ck_assert_ptr_null(none.alloc_pd);
	ck_assert(uvd_filter_ops_put(&one, list, 1));
	ck_assert(one.alloc_pd != uvd_backend_null.alloc_pd);
	start();
}
END_TEST

/* ---- what is refused --------------------------------------------------------------------------------------------- */

START_TEST(test_a_wrong_filter_changes_nothing)
{
	static const char *const wrong[] = {
		"", "tox", "toy:x=1", "toy:id", "toy:id=bad", "toy:id=a,x=1", "../toy:id=a"
	};

	start();
	bed_add("toy:id=a");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		*error = 0;
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert(*error);
	}
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "toy:id=bad", error), -EINVAL);
	ck_assert_str_eq(error, "filter toy: id: `bad` is bad");
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "other:id=b", error), -ENOENT);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "other", error), -ENOENT);
	assert_trace("a");
}
END_TEST

START_TEST(test_a_device_has_16_filters_at_most)
{
	start();
	for (unsigned int i = 0; i < UVD_MAX_FILTERS; i++)
		bed_add("toy:id=a");
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "toy", error), -ENOSPC);
	assert_trace("aaaaaaaaaaaaaaaa");
}
END_TEST

START_TEST(test_a_device_with_a_wrong_filter_is_not_created)
{
	int err;

	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "toy:id=a"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, "toy:id=bad"), 0);
	ck_assert_ptr_null(uvd_device_new(&h.engine, &h.config, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_int_eq(atomic_load(&begun), atomic_load(&ended));
	uvd_engine_texts_forget(&h.engine, h.config.ibdev);
	start();
}
END_TEST

START_TEST(test_a_removed_device_has_no_filters)
{
	start();
	bed_add("toy:id=a");
	uvd_device_remove(h.dev);
	ck_assert_int_eq(atomic_load(&ended), 1);
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "toy:id=b", error), -ENODEV);
}
END_TEST

/* ---- calls in flight --------------------------------------------------------------------------------------------- */

START_TEST(test_a_call_in_progress_keeps_its_filter)
{
	pthread_t thread;
	void *ret;

	start();
	bed_add("slow:id=a");
	pthread_create(&thread, NULL, bed_call_once, NULL);
	sem_wait(&entered);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "slow", error), 0);
	ck_assert_int_eq(atomic_load(&ended), 0);
	assert_trace(""); /* calls that begin now do not wait for the filter */
	sem_post(&leave);
	pthread_join(thread, &ret);
	ck_assert_int_eq((intptr_t)ret, 0);
	bed_add("toy:id=b");
	ck_assert_int_eq(atomic_load(&ended), 1);
}
END_TEST

static struct uvd_ibdev other_dev;

static void *call_other_dev(void *arg)
{
	struct uvd_context context = { .dev = &other_dev };
	struct uvd_pd pd = { .context = &context };

	return (void *)(intptr_t)other_dev.ops->alloc_pd(&pd, NULL);
}

/* Later than a change of the filters waits for calls: only the end of a device waits without a limit. */
static void *let_leave(void *arg)
{
	usleep(2100000);
	sem_post(&leave);
	return NULL;
}

START_TEST(test_the_end_of_a_device_waits_for_calls_and_ends_their_filters)
{
	struct uvd_filter_instance *instance;
	struct uvd_filters filters;
	pthread_t caller, helper;
	void *ret;
	int err;

	start();
	other_dev.config = h.config;
	other_dev.ops = &uvd_backend_null;
	uvd_filters_begin(&filters, &other_dev);
	instance = uvd_plugins_filter_begin(h.engine.plugins, "slow:id=a", &other_dev, error, &err);
	ck_assert_int_eq(uvd_filters_change(&filters, &instance, 1), 0);
	pthread_create(&caller, NULL, call_other_dev, NULL);
	sem_wait(&entered);
	pthread_create(&helper, NULL, let_leave, NULL);
	uvd_filters_clear(&filters);
	ck_assert_int_eq(atomic_load(&ended), 1);
	ck_assert_ptr_eq(other_dev.ops, &uvd_backend_null);
	pthread_join(caller, &ret);
	ck_assert_int_eq((intptr_t)ret, 0);
	pthread_join(helper, NULL);
	uvd_filters_end(&filters);
}
END_TEST

static void put_owner(void *owner)
{
	/* The code must be there until exit() has returned. */
	ck_assert_int_eq(atomic_load(&ended), 1);
	*(bool *)owner = true;
}

START_TEST(test_a_filter_puts_its_code_after_its_end)
{
	struct uvd_filter_instance *instance = calloc(1, sizeof(*instance));
	bool put = false;

	start();
	instance->filter = &toy;
	instance->put_owner = put_owner;
	instance->owner = &put;
	atomic_fetch_add(&begun, 1);
	uvd_filter_instance_end(instance);
	ck_assert(put);
	uvd_filter_instance_end(NULL);
}
END_TEST

static atomic_bool stop;

static void *call_until_stop(void *arg)
{
	intptr_t failed = 0;

	while (!atomic_load(&stop))
		failed |= bed_alloc_pd() | bed_dealloc_pd();
	return (void *)failed;
}

START_TEST(test_changes_under_calls_lose_no_call_and_leak_nothing)
{
	enum { THREADS = 4, CHANGES = 200 };
	pthread_t threads[THREADS];
	void *failed;

	start();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call_until_stop, NULL);
	for (int i = 0; i < CHANGES; i++) {
		bed_add("busy:id=a");
		bed_add("empty");
		ck_assert_int_eq(uvd_device_filter_set(h.dev, "busy:id=b", error), 0);
		ck_assert_int_eq(uvd_device_filter_remove(h.dev, "busy", error), 0);
		ck_assert_int_eq(uvd_device_filter_remove(h.dev, "empty", error), 0);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		ck_assert_ptr_null(failed);
	}
	ck_assert_int_eq(atomic_load(&begun), 3 * CHANGES);
}
END_TEST

FILTERS_MAIN(setup, teardown, test_the_first_filter_of_a_device_is_the_outermost,
	     test_what_a_name_would_get_can_be_taken_and_given_back, test_a_filter_that_is_added_is_the_outermost,
	     test_a_filter_that_is_set_keeps_its_place_and_begins_anew, test_a_filter_is_found_by_its_whole_name,
	     test_completions_pass_the_innermost_filter_first,
	     test_operations_that_no_filter_wraps_are_the_backends_own,
	     test_an_operation_that_the_backend_lacks_stays_absent, test_a_wrong_filter_changes_nothing,
	     test_a_device_has_16_filters_at_most, test_a_device_with_a_wrong_filter_is_not_created,
	     test_a_removed_device_has_no_filters, test_a_call_in_progress_keeps_its_filter,
	     test_the_end_of_a_device_waits_for_calls_and_ends_their_filters, test_a_filter_puts_its_code_after_its_end,
	     test_changes_under_calls_lose_no_call_and_leak_nothing)
