/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The two tables of what the daemon changes of the machine. */
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/internal.h"
#include "../suite.h"

static void has_all(const struct uvd_machine_ops *ops)
{
	void *const *op = (void *const *)ops;

	for (size_t i = 0; i < sizeof(*ops) / sizeof(*op); i++)
		ck_assert_msg(op[i] != NULL, "member %zu is missing", i);
}

START_TEST(test_both_tables_have_every_operation)
{
	has_all(&uvd_machine_local);
	has_all(&uvd_machine_broker);
	ck_assert_ptr_ne(uvd_machine_local.clients, uvd_machine_broker.clients);
}
END_TEST

/* The broker has read the same options, and tells no index of a device in them. */
START_TEST(test_broker_is_asked_for_the_index_of_a_device_that_is_not_configured_alone)
{
	struct uvd_options *options = uvd_zalloc(sizeof(*options));
	struct uvd_daemon *d = uvd_zalloc(sizeof(*d));
	struct uvd_wire_answer a = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_ADD, .values = { 9 } };
	struct uvd_device_config *devices = uvd_zalloc(3 * sizeof(*devices));
	struct uvd_link *link;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	link = uvd_link_new(pair[0]);
	d->options = options;
	d->privilege = uvd_link_privilege(link);
	options->num_devices = 2;
	options->devices = devices;
	strcpy(devices[0].ibdev, "one");
	strcpy(devices[1].ibdev, "two");
	strcpy(devices[2].ibdev, "three");
	ck_assert_int_eq(uvd_machine_broker.add(d, &devices[1]), 1);
	ck_assert_int_eq(uvd_wire_answer(pair[1], &a, &uvd_wire_no_fds), 0);
	ck_assert_int_eq(uvd_machine_broker.add(d, &devices[2]), 9);
	uvd_link_free(link);
	close(pair[1]);
	free(devices);
	free(d);
	free(options);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("machine");

	tcase_add_test(t, test_both_tables_have_every_operation);
	tcase_add_test(t, test_broker_is_asked_for_the_index_of_a_device_that_is_not_configured_alone);
	return run_suite("machine", t);
}
