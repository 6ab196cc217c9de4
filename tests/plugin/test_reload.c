/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reload and unload of plug-ins that are in use. */
#include <dlfcn.h>
#include <time.h>
#include <uverbsd/plugin.h>

#include "bed.h"
#include "../suite.h"

START_TEST(test_hooks_come_in_pairs_and_in_order)
{
	uint32_t handle;
	int fd;

	ck_assert_msg(toy_load("kv1", NULL) == 0, "%s", error);
	ck_assert_str_eq(traced(), "kv1.init kv1.device_init");
	fd = open_context();
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	ck_assert_str_eq(traced(), "kv1.context_init");
	uv_close(fd);
	ck_assert_str_eq(traced(), "kv1.destroy kv1.context_exit");
	ck_assert_int_eq(toy_unload("kv", false), 0);
	ck_assert_str_eq(traced(), "kv1.device_exit kv1.exit");
	ck_assert(!toy_is_mapped("kv1"));
}
END_TEST

START_TEST(test_context_whose_creation_fails_is_ended)
{
	int fd;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	fd = uv_open();
	traced();
	h.refuse_grant = EMFILE;
	ck_assert_int_eq(uv_get_context(fd, UV_WRITE, &(int){ 0 }, NULL), -EMFILE);
	ck_assert_str_eq(traced(), "kv1.context_init kv1.context_exit");
	h.refuse_grant = 0;
	uv_close(fd);
}
END_TEST

START_TEST(test_open_context_keeps_its_version)
{
	struct kv_answer answer;
	uint32_t handle;
	int old, new;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	old = open_context();
	ck_assert_int_eq(kv_create(old, &handle), 0);
	ck_assert_msg(toy_reload("kv", "kv2") == 0, "%s", error);
	new = open_context();
	ck_assert_int_eq(kv_version(old, &answer), 1);
	ck_assert_int_eq(kv_version(new, &answer), 2);
	ck_assert(answer.engine && answer.device && answer.context);
	ck_assert_int_eq(kv_create(old, &handle), 0);
	ck_assert(toy_is_mapped("kv1") && toy_is_mapped("kv2"));
	traced();
	uv_close(old);
	ck_assert_str_eq(traced(), "kv1.destroy kv1.destroy kv1.context_exit kv1.device_exit kv1.exit");
	ck_assert(!toy_is_mapped("kv1"));
	ck_assert_int_eq(kv_version(new, &answer), 2);
	uv_close(new);
}
END_TEST

START_TEST(test_same_file_can_be_reloaded_with_its_options)
{
	struct kv_answer answer;
	int old, new;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	old = open_context();
	traced();
	ck_assert_int_eq(toy_reload("kv", NULL), 0);
	ck_assert_str_eq(traced(), "kv1.init kv1.device_init");
	new = open_context();
	ck_assert_ptr_ne(harness_file(old)->trees, harness_file(new)->trees);
	ck_assert_int_eq(kv_version(old, &answer), 1);
	ck_assert_int_eq(kv_version(new, &answer), 1);
	uv_close(old);
	uv_close(new);
}
END_TEST

/* dlopen() knows what is mapped by its name, which has the descriptor's number: a number that was free would give the old code. */
START_TEST(test_plugin_that_stays_mapped_runs_its_new_code_when_it_is_loaded_again)
{
	static const char *const toys[] = { "kvstays1", "kvstays2", "kvstays1", "kv2" };
	struct kv_answer answer;
	char trace_of_init[64];
	int fd;

	for (unsigned int i = 0; i < UVD_COUNT(toys); i++) {
		const int version = toys[i][strlen(toys[i]) - 1] - '0';

		ck_assert_msg(toy_load(toys[i], NULL) == 0, "%s: %s", toys[i], error);
		snprintf(trace_of_init, sizeof(trace_of_init), "kv%d.init kv%d.device_init", version, version);
		ck_assert_str_eq(traced(), trace_of_init);
		fd = open_context();
		ck_assert_int_eq(kv_version(fd, &answer), version);
		uv_close(fd);
		ck_assert_int_eq(toy_unload("kv", false), 0);
		ck_assert(toy_is_mapped(toys[i]) == !strncmp(toys[i], "kvstays", 7));
		traced();
	}
}
END_TEST

START_TEST(test_plugin_ends_with_its_engine)
{
	ck_assert_msg(toy_load("kv1", NULL) == 0, "%s", error);
	traced();
	harness_close(&h);
	ck_assert_str_eq(traced(), "kv1.device_exit kv1.exit");
	ck_assert(!toy_is_mapped("kv1"));
	harness_open_with(&h, "null", &uvd_mem_process);
}
END_TEST

/* A daemon with two processes: the broker has the files, and the engine process maps slots (uvd_slots_source). */
struct source {
	unsigned int opened, mapped, closed;
	int fd; /* of the last copy */
};

static int source_open(void *arg, const char *path, char text[UVD_PLUGIN_ERROR])
{
	struct source *s = arg;

	s->opened++;
	s->fd = uvd_plugin_file_copy(path, getuid() ?: 1, text);
	return s->fd;
}

static void *source_map(void *arg, int fd, const char *name, char *text)
{
	struct source *s = arg;

	ck_assert_int_eq(fd, s->fd);
	s->mapped++;
	return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static void source_close(void *arg, int fd)
{
	struct source *s = arg;

	ck_assert_int_eq(fd, s->fd);
	s->closed++;
	close(fd);
}

START_TEST(test_code_comes_from_the_source_that_was_set)
{
	static const struct uvd_plugin_source ops = { source_open, source_map, source_close };
	struct source s = { .fd = -1 };
	struct kv_answer answer;
	int fd;

	uvd_plugins_set_source(h.engine.plugins, &ops, &s);
	ck_assert_msg(toy_load("kv1", NULL) == 0, "%s", error);
	ck_assert(s.opened == 1 && s.mapped == 1 && !s.closed);
	fd = open_context();
	ck_assert_int_eq(kv_version(fd, &answer), 1);
	uv_close(fd);
	ck_assert_int_eq(toy_unload("kv", false), 0);
	ck_assert(s.closed == 1 && !toy_is_mapped("kv1"));
}
END_TEST

static void count_users(void *arg, struct uvd_file *file, unsigned int objects)
{
	*(unsigned int *)arg += objects;
}

START_TEST(test_unload_is_refused_while_there_are_objects)
{
	unsigned int users = 0;
	uint32_t handle;
	int fd;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	fd = open_context();
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	ck_assert_int_eq(toy_reload("kv", "kv2"), 0);
	/* The objects of an older version count, too. */
	ck_assert_int_eq(uvd_engine_plugin_unload(&h.engine, "kv", false, NULL, count_users, &users, error), -EBUSY);
	ck_assert_msg(strstr(error, "plug-in 'kv' has 1 live objects"), "%s", error);
	ck_assert_uint_eq(users, 1);
	ck_assert_int_eq(kv_destroy(fd, handle), 0);
	ck_assert_int_eq(toy_unload("kv", false), 0);
	/* The context keeps what it has. */
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	ck_assert(toy_is_mapped("kv1") && !toy_is_mapped("kv2"));
	uv_close(fd);
	ck_assert(!toy_is_mapped("kv1"));
}
END_TEST

static void *unload_wait(void *arg)
{
	*(int *)arg = toy_unload("kv", true);
	return NULL;
}

START_TEST(test_unload_waits_for_the_last_object)
{
	struct kv_answer answer;
	pthread_t thread;
	uint32_t handle;
	int fd, new = -1, ret = 1;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	fd = open_context();
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	ck_assert(!pthread_create(&thread, NULL, unload_wait, &ret));
	/* New contexts soon do not have it. */
	for (int i = 0; i < 2000; i++) {
		new = open_context();
		if (kv_version(new, &answer) == -EPROTONOSUPPORT)
			break;
		uv_close(new);
		new = -1;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	ck_assert_int_ge(new, 0);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	ck_assert_int_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	ck_assert_int_eq(kv_destroy(fd, handle), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(ret, 0);
	uv_close(fd);
	uv_close(new);
	ck_assert(!toy_is_mapped("kv1"));
}
END_TEST

static bool stop_now(void *arg)
{
	return true;
}

START_TEST(test_wait_can_be_stopped)
{
	uint32_t handle;
	int fd;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	fd = open_context();
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	ck_assert_int_eq(uvd_engine_plugin_unload(&h.engine, "kv", true, stop_now, NULL, NULL, error), -EINTR);
	ck_assert_int_eq(toy_unload("kv", false), -ENOENT);
	ck_assert_int_eq(kv_destroy(fd, handle), 0);
	uv_close(fd);
	ck_assert(!toy_is_mapped("kv1"));
}
END_TEST

START_TEST(test_change_applies_to_all_devices)
{
	struct kv_answer answer;
	int first, second;

	ck_assert_uint_eq(harness_add_device(&h), 1);
	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	ck_assert_str_eq(traced(), "kv1.init kv1.device_init kv1.device_init");
	second = harness_node_ops.open("/dev/infiniband/uverbs1");
	ck_assert_int_eq(kv_version(second, &answer), 1);
	first = open_context();
	ck_assert_int_eq(kv_version(first, &answer), 1);
	/* A device that is removed under an open file keeps the code until the file is closed. */
	harness_remove_device(&h, 1);
	ck_assert_int_eq(toy_unload("kv", false), 0);
	uv_close(first);
	ck_assert(toy_is_mapped("kv1"));
	ck_assert_int_eq(kv_version(second, &answer), -EIO);
	uv_close(second);
	ck_assert(!toy_is_mapped("kv1"));
}
END_TEST

START_TEST(test_failure_on_one_device_changes_none)
{
	struct uvd_trees *first, *second;
	struct kv_answer answer;
	int fd;

	harness_add_device(&h);
	trace.fail_device = "hfi1_1";
	first = h.dev->trees;
	second = h.added[1]->trees;
	ck_assert_int_eq(toy_load("kv1", NULL), -EXDEV);
	ck_assert_str_eq(traced(), "kv1.init kv1.device_init kv1.device_init kv1.device_exit kv1.exit");
	ck_assert(h.dev->trees == first && h.added[1]->trees == second);
	trace.fail_device = NULL;
	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	trace.fail_device = "hfi1_1";
	ck_assert_int_eq(toy_reload("kv", "kv2"), -EXDEV);
	ck_assert_msg(strstr(error, "device_init() of hfi1_1: EXDEV"), "%s", error);
	fd = open_context();
	ck_assert_int_eq(kv_version(fd, &answer), 1);
	uv_close(fd);
	ck_assert(!toy_is_mapped("kv2"));
}
END_TEST

static void list_plugin(void *arg, const struct uvd_plugin_info *info)
{
	char *text = arg;

	snprintf(text + strlen(text), 512 - strlen(text), "%s%s:%u:%u:%u ", info->name, info->path ? "*" : "",
		 info->generation, info->contexts, info->objects);
}

START_TEST(test_list_tells_generation_and_users)
{
	char text[512] = "";
	uint32_t handle;
	int fd;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	ck_assert_int_eq(toy_reload("kv", "kv2"), 0);
	fd = open_context();
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	uvd_engine_plugin_list(&h.engine, list_plugin, text);
	ck_assert_ptr_nonnull(strstr(text, "soft:1:1:0 hfi1:1:0:0 rxe:1:0:0 verbs:1:1:0 port_state:1:1:0 kv*:2:1:1 "));
	uv_close(fd);
}
END_TEST

/* ---- under load -------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, RELOADS = 12 };

static atomic_bool load_ends;
static atomic_uint load_rounds;

static void *load_run(void *arg)
{
	struct kv_answer answer;
	uint32_t handle;

	while (!atomic_load(&load_ends)) {
		int fd = open_context(), version;

		ck_assert_int_ge(fd, 0);
		version = kv_version(fd, &answer);
		ck_assert(version == 1 || version == 2);
		for (int i = 0; i < 10; i++) {
			ck_assert_int_eq(kv_create(fd, &handle), 0);
			ck_assert_int_eq(kv_version(fd, &answer), version);
			ck_assert(answer.engine && answer.device && answer.context);
			if (i % 2)
				ck_assert_int_eq(kv_destroy(fd, handle), 0);
		}
		uv_close(fd);
		atomic_fetch_add(&load_rounds, 1);
	}
	return NULL;
}

START_TEST(test_reload_under_load)
{
	pthread_t threads[THREADS];

	uv_driver_id(); /* remembers it: not with threads */
	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&threads[i], NULL, load_run, NULL));
	for (int i = 0; i < RELOADS; i++) {
		const unsigned int rounds = atomic_load(&load_rounds);

		while (atomic_load(&load_rounds) < rounds + THREADS)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		ck_assert_msg(toy_reload("kv", i % 2 ? "kv1" : "kv2") == 0, "%s", error);
		traced();
	}
	atomic_store(&load_ends, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert(toy_is_mapped("kv1") && !toy_is_mapped("kv2"));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("reload");

	tcase_add_checked_fixture(t, bed_setup, bed_teardown);
	tcase_set_timeout(t, 100);
	tcase_add_test(t, test_hooks_come_in_pairs_and_in_order);
	tcase_add_test(t, test_context_whose_creation_fails_is_ended);
	tcase_add_test(t, test_open_context_keeps_its_version);
	tcase_add_test(t, test_same_file_can_be_reloaded_with_its_options);
	tcase_add_test(t, test_plugin_that_stays_mapped_runs_its_new_code_when_it_is_loaded_again);
	tcase_add_test(t, test_plugin_ends_with_its_engine);
	tcase_add_test(t, test_code_comes_from_the_source_that_was_set);
	tcase_add_test(t, test_unload_is_refused_while_there_are_objects);
	tcase_add_test(t, test_unload_waits_for_the_last_object);
	tcase_add_test(t, test_wait_can_be_stopped);
	tcase_add_test(t, test_change_applies_to_all_devices);
	tcase_add_test(t, test_failure_on_one_device_changes_none);
	tcase_add_test(t, test_list_tells_generation_and_users);
	tcase_add_test(t, test_reload_under_load);
	return run_suite("plugin reload", t);
}
