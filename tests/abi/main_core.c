/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks the ABI rules on a device in this process (harness.h): abi-core BACKEND. Each test has its own device. At its
 * end all that is open is closed, and nothing may be left. abi-core BACKEND FOLDER: each test also becomes an input of
 * fuzz/fuzz_calls.c in FOLDER.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "abi.h"
#include "fuzz/record.h"
#include "harness.h"

/*
 * At the end of each test AddressSanitizer's run-time library would look for leaks, which takes half of the time. ASAN_OPTIONS
 * overrides this, as scripts/test --long does. (gcc's library is a shared one, so the function must be visible.)
 */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct harness h;
static const char *backend = "soft", *record_to;

/* The device is made at the first open, in the test's process: threads do not survive fork(). */
static void make_device(void)
{
	if (h.dev)
		return;
	uvd_client_prepare(); /* a test may put its process into another user namespace, where the device does not go */
	harness_open_with(&h, backend, &uvd_mem_process);
	harness_close_file(&h); /* a test opens its own */
}

static int core_open(const char *path)
{
	make_device();
	if (record_to)
		uv_node_ops = fuzz_record(uv_node_ops, record_to);
	return uv_node_ops->open(path);
}

static const struct uv_node_ops not_started = { .open = core_open, .in_process = true };

static void teardown(void)
{
	if (h.dev)
		harness_close(&h);
	uv_node_ops = &not_started;
	unsetenv("UVERBS_NODE"); /* plug_in() sets it */
}

/* ---- a device that is removed ------------------------------------------------------------------------------------ */

static pthread_t removal;

static void core_in(struct plug *plug)
{
	unsigned int number;

	make_device();
	number = harness_add_device(&h);
	snprintf(plug->ibdev, sizeof(plug->ibdev), "hfi1_%u", number);
	snprintf(plug->number, sizeof(plug->number), "uverbs%u", number);
}

static void *core_remove(void *arg)
{
	const struct plug *plug = arg;

	harness_remove_device(&h, atoi(plug->number + strlen("uverbs")));
	return NULL;
}

static void core_out_begin(struct plug *plug)
{
	ck_assert_int_eq(pthread_create(&removal, NULL, core_remove, plug), 0);
}

static int core_out_end(struct plug *plug, int ms)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ms / 1000 + (end.tv_nsec / 1000000 + ms % 1000) / 1000;
	end.tv_nsec = (end.tv_nsec / 1000000 + ms % 1000) % 1000 * 1000000;
	return -pthread_timedjoin_np(removal, NULL, &end);
}

static const struct plug_ops core_plug = { .in = core_in, .out_begin = core_out_begin, .out_end = core_out_end };

int main(int argc, char **argv)
{
	if (argc > 1)
		backend = argv[1];
	if (argc > 2)
		record_to = argv[2];
	plug_ops = &core_plug;
	teardown();
	target();
	teardown(); /* target() made a device, to ask for its driver */
	return run_rules("the core in this process", teardown);
}
