/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plug-in whose constructor does what LOOK says, before anybody has asked for it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/plugin.h>

/* Which names it has: bits for those of its personas (1), of its filter (2) and of the plug-in itself (4). Others begin with twin. */
#ifndef NAMES
#define NAMES 7
#endif

enum { TRIES, CRASHES, HANGS, HANGS_UP, EXITS, LIES /* and all after it */ };

static char tried[256];
__attribute__((unused)) static int *volatile nowhere = (int *)8;

__attribute__((unused)) static const char *name_of(bool done)
{
	return done ? "done" : strerrorname_np(errno);
}

__attribute__((unused)) static void look_try(void)
{
	size_t n = snprintf(tried, sizeof(tried), "uid %d", (int)geteuid());

	n += snprintf(tried + n, sizeof(tried) - n, ", kill %s", name_of(!kill(getppid(), 0)));
	n += snprintf(tried + n, sizeof(tried) - n, ", write %s", name_of(open("/dev/null", O_WRONLY) >= 0));
	n += snprintf(tried + n, sizeof(tried) - n, ", create %s",
		      name_of(open("/tmp/uverbsd-test-look", O_RDONLY | O_CREAT, 0600) >= 0));
	n += snprintf(tried + n, sizeof(tried) - n, ", socket %s", name_of(socket(AF_UNIX, SOCK_STREAM, 0) >= 0));
	n += snprintf(tried + n, sizeof(tried) - n, ", fork %s", name_of(fork() >= 0));
	n += snprintf(tried + n, sizeof(tried) - n, ", exec %s", name_of(execl("/bin/true", "true", NULL) >= 0));
	snprintf(tried + n, sizeof(tried) - n, ", fd 5 %s", name_of(read(5, tried, 0) >= 0));
	if (getenv("UVERBSD_TEST_LOOK"))
		setenv("UVERBSD_TEST_LOOK", "the constructor was here", 1);
}

/* Tells this in the place of the facts. */
__attribute__((unused)) static void look_lie(void)
{
	static const char *const lies[] = {
		"no JSON",
		"[]",
		"{\"errno\": 3, \"error\": \"x\"}",
		"{\"errno\": -1, \"error\": \"x\\u001b[2J\"}",
		"{\"name\": \"../x\", \"options\": [], \"backends\": [], \"personas\": [], \"filters\": []}",
		"{\"name\": \"x\", \"description\": \"a\\nb\", \"options\": [], \"backends\": [], \"personas\": [], \"filters\": []}",
		"{\"name\": \"x\", \"options\": 3, \"backends\": [], \"personas\": [], \"filters\": []}",
		"{\"name\": \"x\", \"options\": [], \"backends\": [{\"name\": \"x\"}], \"personas\": [], \"filters\": []}",
		"{\"name\": \"x\", \"options\": [], \"backends\": [], \"personas\": [{\"ibdev_prefix\": \"../x\", \"hw_counters\": []}], \"filters\": []}",
		"{\"name\": \"x\", \"options\": [], \"backends\": [], \"personas\": [], \"filters\": [{\"name\": \"f\", \"options\": [{\"name\": \"a b\"}]}]}",
		"{\"name\": \"x\", \"options\": [], \"backends\": [], \"personas\": [], \"filters\": [{\"name\": \"../f\", \"options\": []}]}",
		"{\"errno\": -1, \"error\": \"x\\u0080\"}",
		"{\"errno\": -1, \"error\": \"x\\u009f\"}",
		"{\"errno\": -1, \"error\": \"x\\u007f\"}",
		"{\"name\": \"x\", \"description\": \"a\\u009b2Jb\", \"options\": [], \"backends\": [], \"personas\": [], \"filters\": []}",
	};
	const char *lie = lies[LOOK < LIES ? 0 : LOOK - LIES];

	(void)!write(3, lie, strlen(lie));
	_exit(0);
}

__attribute__((constructor)) static void look_begin(void)
{
#if LOOK == 0
	look_try();
#elif LOOK == 1
	*nowhere = 1;
#elif LOOK == 2
	for (;;)
		pause();
#elif LOOK == 3
	close(3);
	for (;;)
		pause();
#elif LOOK == 4
	_exit(0);
#else
	look_lie();
#endif
}

static const struct uvd_counter_file counters[] = { { "RxPkts", 1 }, { "TxPkts", 6 }, {} };
static const struct uvd_persona persona = {
	.name = NAMES & 1 ? "lookface" : "twinface",
	.ibdev_prefix = "look_",
	.driver_id = 9,
	.abi_version = 3,
	.modalias = "",
	.board_id = "board",
	.fw_ver = "1.2",
	.node_desc = "näher\u00a0©",
	.vendor_id = 0xffffffff,
	.vendor_part_id = 7,
	.hw_ver = 8,
	.has_hw_rev = true,
	.hw_counters = counters,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.unusable_caps = 0x80000001,
	.has_ip_gid = true,
};
static const struct uvd_counter_file other_counters[] = { { "Drops", 5 }, {} };
static const struct uvd_persona other_persona = {
	.name = NAMES & 1 ? "otherface" : "twinotherface",
	.ibdev_prefix = "other_",
	.driver_id = 9,
	.modalias = "",
	.board_id = "board",
	.fw_ver = "1.2",
	.node_desc = "other",
	.hw_counters = other_counters,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};
static const struct uvd_persona *const personas[] = { &persona, &other_persona, NULL };
static const struct uvd_plugin_option filter_options[] = { { "at.most_now", "3", "NUMBER", "of calls" }, {} };
static const struct uvd_filter filter = { .name = NAMES & 2 ? "lookglass" : "twinglass",
					  .description = "dim",
					  .options = filter_options };
static const struct uvd_filter *const filters[] = { &filter, NULL };
static const struct uvd_plugin_option options[] = { { "colour", "red", "NAME", "of the thing" }, { "size" }, {} };

UVD_PLUGIN(.name = NAMES & 4 ? "look" : "twin", .version = "1.0", .description = tried, .personas = personas,
	   .options = options, .filters = filters);
