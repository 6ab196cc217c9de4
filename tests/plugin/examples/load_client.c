/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * load_client keep|reopen: calls the plug-in counter until its input ends. keep: on one context. reopen: on one
 * context and, every 50 calls, on a new one. Prints the number of calls; exits with 1 at the first call that fails.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/client.h>

#include "../../../plugins/counter/counter.h"

struct load {
	struct ibv_context *context;
	int driver_id;
	uint32_t counter;
	uint64_t value;
};

static unsigned long calls;

static void load_must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s after %lu calls\n", what, strerrorname_np(err), calls);
		exit(1);
	}
	calls++;
}

static void load_open(struct load *l)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct uverbsd_call call = {};

	l->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	load_must(l->context ? 0 : errno ?: EIO, "ibv_open_device");
	ibv_free_device_list(list);
	l->driver_id = uverbsd_driver_id(l->context->cmd_fd);
	uverbsd_handle(&call, UVERBS_ATTR_COUNTER_CREATE_HANDLE, 0);
	load_must(uverbsd_call(l->context->cmd_fd, l->driver_id, &call, UVERBS_OBJECT_COUNTER,
			       UVERBS_METHOD_COUNTER_CREATE),
		  "CREATE");
	l->counter = uverbsd_handle_of(&call, UVERBS_ATTR_COUNTER_CREATE_HANDLE);
	l->value = 0;
}

/* One ADD and one READ, which must return the sum. */
static void load_add(struct load *l)
{
	struct uverbsd_call add = {}, get = {};
	struct counter_add in = { .amount = 3, .times = 1 };
	struct counter_state state = {};

	uverbsd_handle(&add, UVERBS_ATTR_COUNTER_ADD_HANDLE, l->counter);
	uverbsd_in(&add, UVERBS_ATTR_COUNTER_ADD_IN, &in, sizeof(in));
	load_must(
		uverbsd_call(l->context->cmd_fd, l->driver_id, &add, UVERBS_OBJECT_COUNTER, UVERBS_METHOD_COUNTER_ADD),
		"ADD");
	uverbsd_handle(&get, UVERBS_ATTR_COUNTER_READ_HANDLE, l->counter);
	uverbsd_out(&get, UVERBS_ATTR_COUNTER_READ_OUT, &state, sizeof(state));
	load_must(
		uverbsd_call(l->context->cmd_fd, l->driver_id, &get, UVERBS_OBJECT_COUNTER, UVERBS_METHOD_COUNTER_READ),
		"READ");
	l->value += 3;
	if (state.value != l->value) {
		fprintf(stderr, "the value is %llu and not %llu\n", (unsigned long long)state.value,
			(unsigned long long)l->value);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const int reopen = argc == 2 && !strcmp(argv[1], "reopen");
	struct pollfd in = { .fd = 0, .events = POLLIN };
	struct load kept, fresh = {};

	load_open(&kept);
	printf("ready\n");
	fflush(stdout);
	for (unsigned int i = 0; !poll(&in, 1, 0); i++) {
		load_add(&kept);
		if (!reopen || i % 50)
			continue;
		if (fresh.context)
			ibv_close_device(fresh.context);
		load_open(&fresh);
		load_add(&fresh);
	}
	printf("%lu calls\n", calls);
	return 0;
}
