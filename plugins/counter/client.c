/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Uses a counter from a program of libibverbs, and reads its event with ibv_get_async_event(). */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uverbsd/client.h>

#include "counter.h"

static int driver_id;

static void client_check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerrorname_np(err));
	exit(1);
}

static void client_expect(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "not so: %s\n", what);
	exit(1);
}

static uint32_t client_create(int fd, uint64_t threshold, uint64_t user_handle)
{
	struct counter_create in = { .threshold = threshold, .user_handle = user_handle };
	struct uverbsd_call call = {};

	uverbsd_handle(&call, UVERBS_ATTR_COUNTER_CREATE_HANDLE, 0);
	uverbsd_in(&call, UVERBS_ATTR_COUNTER_CREATE_IN, &in, sizeof(in));
	client_check(uverbsd_call(fd, driver_id, &call, UVERBS_OBJECT_COUNTER, UVERBS_METHOD_COUNTER_CREATE), "CREATE");
	return uverbsd_handle_of(&call, UVERBS_ATTR_COUNTER_CREATE_HANDLE);
}

static int client_add(int fd, uint32_t counter, uint64_t amount, uint32_t times)
{
	struct counter_add in = { .amount = amount, .times = times };
	struct uverbsd_call call = {};

	uverbsd_handle(&call, UVERBS_ATTR_COUNTER_ADD_HANDLE, counter);
	uverbsd_in(&call, UVERBS_ATTR_COUNTER_ADD_IN, &in, sizeof(in));
	return uverbsd_call(fd, driver_id, &call, UVERBS_OBJECT_COUNTER, UVERBS_METHOD_COUNTER_ADD);
}

static struct counter_state client_read(int fd, uint32_t counter)
{
	struct counter_state state;
	struct uverbsd_call call = {};

	uverbsd_handle(&call, UVERBS_ATTR_COUNTER_READ_HANDLE, counter);
	uverbsd_out(&call, UVERBS_ATTR_COUNTER_READ_OUT, &state, sizeof(state));
	client_check(uverbsd_call(fd, driver_id, &call, UVERBS_OBJECT_COUNTER, UVERBS_METHOD_COUNTER_READ), "READ");
	return state;
}

static int client_with_handle(int fd, uint16_t method, uint32_t counter)
{
	struct uverbsd_call call = {};

	uverbsd_handle(&call, 0x1090, counter);
	return uverbsd_call(fd, driver_id, &call, UVERBS_OBJECT_COUNTER, method);
}

static struct ibv_context *client_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	client_expect(!!context, "a device can be opened");
	ibv_free_device_list(list);
	return context;
}

/* The argument is the option `initial`. */
int main(int argc, char **argv)
{
	const uint64_t initial = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	struct ibv_context *context = client_open(), *second;
	const int fd = context->cmd_fd;
	struct ibv_async_event event;
	uint32_t counter, other;

	alarm(60); /* a lost event or close must fail, not hang */
	driver_id = uverbsd_driver_id(fd);
	counter = client_create(fd, initial + 10, 77);
	other = client_create(fd, 0, 0);
	client_check(client_add(fd, counter, 3, 3), "ADD");
	client_expect(client_read(fd, counter).value == initial + 9, "the value is initial + 9");
	client_expect(client_read(fd, other).value == initial, "the other counter has not changed");
	client_check(client_add(fd, counter, 1, 1), "ADD");
	client_check(ibv_get_async_event(context, &event) ? errno : 0, "ibv_get_async_event");
	client_expect(event.event_type == COUNTER_EVENT_THRESHOLD, "it is the plug-in's event");
	client_expect(event.element.port_num == 77, "the event carries the user handle");
	ibv_ack_async_event(&event);
	printf("event %#x of %d\n", event.event_type, event.element.port_num);

	client_expect(client_add(fd, counter, UINT64_MAX, 1) == EOVERFLOW, "a sum above 2^64 - 1 is EOVERFLOW");
	client_expect(client_read(fd, counter).value == initial + 10, "then the value is as before");

	client_expect(client_read(fd, counter).contexts == 1, "there is one context");
	second = client_open();
	client_expect(client_read(fd, counter).contexts == 2, "there are two contexts");
	client_expect(client_add(second->cmd_fd, counter, 1, 1) == ENOENT, "handles belong to their open file");
	ibv_close_device(second);
	/* The engine ends a context after close() has returned. */
	while (client_read(fd, counter).contexts != 1)
		usleep(1000);

	client_expect(client_with_handle(fd, UVERBS_METHOD_COUNTER_RESET, counter) == EPROTONOSUPPORT,
		      "without the capability there is no RESET");
	client_check(client_with_handle(fd, UVERBS_METHOD_COUNTER_DESTROY, counter), "DESTROY");
	client_expect(client_add(fd, counter, 1, 1) == ENOENT, "a destroyed counter is ENOENT");
	ibv_close_device(context); /* destroys the other one */
	return 0;
}
