/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsd with a compromised engine process: the broker and its nodes are real, but the process in the
 * sandbox makes requests that it has no right to. Exit status 0: the broker refused all of them. Arguments: those of
 * uverbsd, with `--devices 1 --ucaps good`. tests/cuse/test_separate.py starts it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/node.h"
#include "daemon/internal.h"

static int failures;

static void expect(int ret, int want, const char *what)
{
	if (ret == want)
		return;
	dprintf(2, "attacker: %s: %d and not %d\n", what, ret, want);
	failures++;
}

static int ask_about(struct uvd_link *link, enum uvd_wire_op op, pid_t tid, unsigned int index)
{
	struct uvd_wire_request r = { .op = op, .tid = tid, .index = index };
	struct uvd_wire_fds out;
	int ret = uvd_link_ask(link, &r, NULL, &out);

	uvd_wire_close(&out);
	return ret;
}

static void ask_for_nodes(struct uvd_link *link)
{
	static const char *const invented[] = { "uverbs7", "../mem", "evil", "good/../x", "bad name", "DEVNAME=x" };
	int number = -1, fd = -1;
	bool aside;
	dev_t rdev;

	expect(uvd_link_tell(link, UVD_WIRE_PUBLISH, 0), -EINVAL, "publishing what has no node");
	expect(uvd_link_tell(link, UVD_WIRE_WITHDRAW, 0), -EINVAL, "withdrawing what is not there");
	expect(uvd_link_node(link, 1, &number, &rdev, &fd), -EINVAL, "a device that nobody configured");
	expect(uvd_link_node(link, UINT32_MAX, &number, &rdev, &fd), -EINVAL, "a device of a mad number");
	number = -2;
	expect(uvd_link_node(link, 0, &number, &rdev, &fd), -EINVAL, "a node of a negative number");
	number = UVD_NODE_NUMBERS;
	expect(uvd_link_node(link, 0, &number, &rdev, &fd), -EINVAL, "a node of a number that no node has");
	number = -1;
	for (unsigned int i = 0; i < sizeof(invented) / sizeof(invented[0]); i++)
		expect(uvd_link_ucap(link, invented[i], &rdev, &fd), -EINVAL, invented[i]);
	expect(uvd_link_ucap_gone(link, "good"), -EINVAL, "removing what is not there");
	expect(uvd_link_ucap(link, "good", &rdev, &fd), 0, "what the options name");
	expect(uvd_link_ucap(link, "good", &rdev, &fd), -EINVAL, "the same twice");
	expect(uvd_link_tell(link, UVD_WIRE_CM_GONE, 0), -EINVAL,
	       "removing the connection manager's node, which is not there");
	expect(uvd_link_cm(link, &rdev, &aside, &fd), 0, "the connection manager's node");
	expect(uvd_link_cm(link, &rdev, &aside, &fd), -EINVAL, "the same twice");
	expect(uvd_link_node(link, 0, &number, &rdev, &fd), 0, "the device");
	expect(uvd_link_node(link, 0, &number, &rdev, &fd), -EEXIST, "the device twice");
	expect(uvd_link_tell(link, UVD_WIRE_PUBLISH, 0), 0, "publishing it");
	expect(uvd_link_tell(link, UVD_WIRE_PUBLISH, 0), -EINVAL, "publishing it twice");
	expect(uvd_link_port(link, 0, 2, true), -EINVAL, "a port that it has not");
	expect(uvd_link_port(link, 9, 1, true), -EINVAL, "a port of another device");
	expect(uvd_link_tell(link, UVD_WIRE_ADAPTER, 0), -EINVAL, "the adapter of a device that has none");
	expect(uvd_link_tell(link, UVD_WIRE_ADAPTER, UVD_MAX_DEVICES - 1), -EINVAL, "the adapter of no device");
}

static void ask_to_add(struct uvd_link *link, const struct uvd_options *o)
{
	struct uvd_device_config bad = o->devices[0];

	expect(uvd_link_add(link, &bad), -ENOSPC, "a device by the name of a configured one");
	strcpy(bad.ibdev, "../../../etc");
	expect(uvd_link_add(link, &bad), -EINVAL, "a device by the name of a folder");
	memset(&bad, 'x', sizeof(bad));
	expect(uvd_link_add(link, &bad), -EINVAL, "a device without sense");
	bad = o->devices[0];
	strcpy(bad.ibdev, "new");
	strcpy(bad.ucaps.names[0], "evil");
	expect(uvd_link_add(link, &bad), -EPERM, "a node of an invented name");
	bad.ucaps.num = 0;
	strcpy(bad.backend, "verbs");
	strcpy(bad.hca, "mlx5_0");
	expect(uvd_link_add(link, &bad), -EACCES, "an adapter that the options do not name");
	strcpy(bad.backend, o->devices[0].backend);
	bad.hca[0] = 0;
	expect(uvd_link_add(link, &bad), 1, "a device as an administrator adds it");
	expect(uvd_link_add(link, &bad), 1, "the same again, before it has a node");
	for (int i = 2; i < UVD_MAX_DEVICES; i++) {
		snprintf(bad.ibdev, sizeof(bad.ibdev), "new%d", i);
		if (uvd_link_add(link, &bad) < 1)
			expect(i, 0, "another device");
	}
}

static void ask_for_plugin(struct uvd_link *link, unsigned int nth, const char *name, int want, const char *what)
{
	int why = -1, ret = uvd_link_plugin(link, 63, nth, name, &why);
	char text[UVD_PLUGIN_ERROR] = "";

	expect(ret, want, what);
	if (want && (why < 0 || pread(why, text, sizeof(text) - 1, 0) <= 0))
		expect(-1, 0, "a reason");
	if (why >= 0)
		close(why);
}

/* Options: --plugin-dir with toy.so, link.so, open.so (others may write to it), theirs.so and a folder folder.so. */
static void ask_for_code(struct uvd_link *link)
{
	struct stat st;

	ask_for_plugin(link, 0, "../toy.so", -EINVAL, "a file above the folder");
	ask_for_plugin(link, 0, "/bin/true", -EINVAL, "a file elsewhere");
	ask_for_plugin(link, 0, "..", -EINVAL, "the folder above");
	ask_for_plugin(link, 0, "none.so", -ENOENT, "a file that is not there");
	ask_for_plugin(link, 0, "link.so", -ELOOP, "a link");
	ask_for_plugin(link, 0, "open.so", -EPERM, "a file that others may change");
	ask_for_plugin(link, 0, "theirs.so", -EPERM, "a file of another user");
	ask_for_plugin(link, 0, "folder.so", -EINVAL, "a folder");
	ask_for_plugin(link, 0, NULL, -EINVAL, "a --plugin that there is not");
	ask_for_plugin(link, UINT32_MAX, NULL, -EINVAL, "a --plugin of a mad number");
	expect(fstat(127, &st) || st.st_size, 0, "a slot that nothing was copied into");
	ask_for_plugin(link, 0, "toy.so", 0, "a plug-in of the folder");
	expect(fstat(127, &st) || !st.st_size, 0, "the slot with it");
	expect(st.st_mode & 07777, 0444, "the mode of a slot");
	expect(pwrite(127, "x", 1, 0) == -1 && errno == EBADF, 1, "a slot that cannot be written to");
	/* Again and again: the broker forgets the last one. */
	for (int i = 0; i < 20; i++)
		ask_for_plugin(link, 0, "toy.so", 0, "the same again");
}

static void ask_for_memory(struct uvd_link *link)
{
	const pid_t tids[] = { 1, getppid(), getpid(), 2 };

	for (unsigned int i = 0; i < sizeof(tids) / sizeof(tids[0]); i++) {
		int loan = uvd_link_loan(link, tids[i], NULL);
		struct uvd_wire_fds out;

		expect(ask_about(link, UVD_WIRE_PEER, tids[i], 0), -ESRCH, "memory");
		expect(ask_about(link, UVD_WIRE_OPENER, tids[i], 0), -ESRCH, "pagemap");
		for (unsigned int file = 0; file < UVD_WIRE_STATUS; file++)
			expect(ask_about(link, UVD_WIRE_OPEN, tids[i], file), -ESRCH, "a file");
		expect(uvd_link_loan_step(loan, &(struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = tids[i] }, -1,
					  NULL, &out),
		       -ESRCH, "a loan");
		close(loan);
	}
	/* The broker must limit the children that it starts for loans. */
	for (unsigned int i = 0; i < 300; i++)
		if (uvd_link_loan(link, getppid(), NULL) == -EAGAIN)
			return;
	expect(0, -EAGAIN, "more processes than the broker shall have");
}

/* engine.c calls this in place of uvd_daemon_serve(). */
int uvd_attacker_serve(const struct uvd_options *options, struct uvd_link *link, int control,
		       struct uvd_plugins *plugins, const struct uvd_fleet_addresses *addresses,
		       const struct uvd_fleet_wire *wire);
int uvd_attacker_serve(const struct uvd_options *options, struct uvd_link *link, int control,
		       struct uvd_plugins *plugins, const struct uvd_fleet_addresses *addresses,
		       const struct uvd_fleet_wire *wire)
{
	ask_for_nodes(link);
	ask_to_add(link, options);
	ask_for_code(link);
	ask_for_memory(link);
	dprintf(2, "attacker: %d failures\n", failures);
	return failures ? 3 : 0;
}

int main(int argc, char **argv)
{
	struct uvd_options options;
	int status = uvd_options_parse(&options, UVD_PROGRAM_DAEMON, NULL, NULL, argc, argv);

	if (status >= 0)
		return 2;
	return uvd_daemon_separate(&options);
}
