/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client CASE: a program that uses its device under `uverbsctl run`, by raw system calls. Exit status 0, or 1 and a
 * line that says which expectation failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "client.h"

const char *client_self;

void client_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s (errno %d: %s)\n", file, line, what, errno, strerror(errno));
	_exit(1);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

#define COMMAND(n, type, resp_size) \
	{ \
		.command = IB_USER_VERBS_CMD_##n, .in_words = (8 + sizeof(type)) / 4, .out_words = (resp_size) / 4 \
	}

int client_get_context(int fd)
{
	struct ib_uverbs_get_context_resp resp = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} c = { .hdr = COMMAND(GET_CONTEXT, c.cmd, sizeof(resp)), .cmd.response = (uintptr_t)&resp };

	return write(fd, &c, sizeof(c)) == sizeof(c) ? (int)resp.async_fd : -1;
}

int client_open_context(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	IS(fd >= 0);
	IS(client_get_context(fd) >= 0);
	return fd;
}

void client_pd_command(struct client_pd_command *c)
{
	*c = (struct client_pd_command){ .hdr = COMMAND(ALLOC_PD, c->cmd, sizeof(c->resp)),
					 .cmd.response = (uintptr_t)&c->resp };
}

int client_alloc_pd(int fd)
{
	struct client_pd_command c;

	client_pd_command(&c);
	return write(fd, &c, 8 + sizeof(c.cmd)) == 8 + sizeof(c.cmd) ? (int)c.resp.pd_handle : -1;
}

int client_dealloc_pd(int fd, int handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dealloc_pd cmd;
	} c = { .hdr = COMMAND(DEALLOC_PD, c.cmd, 0), .cmd.pd_handle = handle };

	return write(fd, &c, 8 + sizeof(c.cmd)) < 0 ? -1 : 0;
}

int client_count_pds(int fd)
{
	static __u32 handles[4096];
	__u32 total = 0;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} c = {
		.hdr = { .length = sizeof(c), .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INFO_HANDLES,
			 .num_attrs = 3, .driver_id = RDMA_DRIVER_HFI1 },
		.attrs = {
			{ .attr_id = UVERBS_ATTR_INFO_OBJECT_ID, .len = 8, .flags = 1, .data = UVERBS_OBJECT_PD },
			{ .attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES, .len = 4, .flags = 1, .data = (uintptr_t)&total },
			{ .attr_id = UVERBS_ATTR_INFO_HANDLES_LIST, .len = sizeof(handles), .flags = 1,
			  .data = (uintptr_t)handles },
		},
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &c) ? -1 : (int)total;
}

void client_wait_for(pid_t pid)
{
	int status;

	IS(waitpid(pid, &status, 0) == pid);
	IS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- mapping and closing: the tests outside look whether the engine still has the file ----------------------------- */

static void say(const char *what)
{
	char line[8];

	printf("%s\n", what);
	fflush(stdout);
	IS(read(0, line, sizeof(line)) > 0);
}

static void client_last_close(void)
{
	int fd = client_open_context(), d = dup(fd), again, low = dup2(fd, 20);
	char path[32], *map;

	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	IS(map != MAP_FAILED);
	strcpy(map, "shared");
	IS(client_alloc_pd(fd) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY);
	IS(again >= 0 && !close(again));
	say("open");
	IS(client_alloc_pd(fd) == 1 && !close(fd) && !close(low));
	say("duplicate");
	IS(client_alloc_pd(d) == 2 && !syscall(SYS_close_range, d, d, 0));
	say("mapped");
	IS(!strcmp(map, "shared") && !munmap(map, 8192));
	say("closed");
}

static void client_hostile_file(void)
{
	int fd = client_open_context(), low = dup2(fd, 20);

	FAILS(ftruncate(fd, 0), EPERM);
	FAILS(ftruncate(fd, 1ll << 41), EPERM);
	FAILS(pwrite(low, "x", 1, 0), EPERM);
	IS(!fallocate(low, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
	IS(client_alloc_pd(fd) == 0);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms++;
}

void client_storm(bool on)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval t = { { 0, on ? 150 : 0 }, { 0, on ? 150 : 0 } };

	IS(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &t, NULL));
}

static void client_storm_alloc_pd(void)
{
	int fd = client_open_context();

	client_storm(true);
	for (int i = 0; i < 3000; i++)
		IS(client_alloc_pd(fd) == i); /* a command that was executed twice would leave a gap */
	client_storm(false);
	IS(client_count_pds(fd) == 3000);
	IS(alarms > 50);
}

/* ---- for the tests that kill ------------------------------------------------------------------------------------- */

/* Uses the device until a call fails. */
static void client_until_eio(void)
{
	int fd = client_open_context(), pd;
	struct stat st;

	say("ready");
	while ((pd = client_alloc_pd(fd)) >= 0)
		if (client_dealloc_pd(fd, pd))
			break;
	IS(errno == EIO);
	FAILS(client_count_pds(fd), EIO);
	FAILS(fstat(fd, &st), EIO);
	FAILS(open(NODE, O_RDWR), EIO);
	IS(!stat("/etc/passwd", &st));
	FAILS(open("/etc/uverbs", O_RDONLY), ENOENT);
}

static void client_churn_for_ever(void)
{
	int fd = client_open_context();

	printf("ready\n");
	fflush(stdout);
	for (;;)
		IS(!client_dealloc_pd(fd, client_alloc_pd(fd)));
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) \
	{ \
#name, client_##name \
	}
	CASE(node_is_a_character_device),
	CASE(node_by_other_paths),
	CASE(openat2_resolves_as_it_is_told),
	CASE(openat2_refuses_what_the_kernel_refuses),
	CASE(listing_shows_the_node),
	CASE(open_modes),
	CASE(built_in_sysfs_paths),
	CASE(other_files_are_the_kernels),
	CASE(netlink_rdma_is_refused),
	CASE(other_architectures_see_no_device),
	CASE(duplicates_are_the_same_file),
	CASE(low_duplicate_keeps_ioctl_only),
	CASE(number_that_means_another_file),
	CASE(closed_by_another_thread),
	CASE(writev_is_one_command_a_piece),
	CASE(many_opens),
	CASE(no_number_left_is_emfile),
	CASE(read_of_the_device_is_einval),
	CASE(read_of_another_file_with_such_a_number),
	CASE(event_files),
	CASE(event_file_without_a_place_for_its_number),
	CASE(hostile_file),
	CASE(fork),
	CASE(vfork),
	CASE(vfork_opens_before_its_exec),
	CASE(vfork_has_a_thread_that_execs),
	CASE(exec),
	CASE(exec_by_a_thread),
	CASE(failed_exec_changes_nothing),
	CASE(set_id),
	CASE(threads),
	CASE(scm_rights),
	CASE(storm_alloc_pd),
	CASE(storm_post_send),
	CASE(writev_post_send),
	CASE(number_dup2),
	CASE(number_dup3),
	CASE(number_close),
	CASE(number_close_range),
	CASE(number_closed_by_a_relative),
	CASE(number_looked_at_during_dup2),
	CASE(number_closed_by_a_ring),
	CASE(ring_reaches_no_device),
	CASE(number_of_a_recycled_thread),
	{ NULL, NULL }, /* --list prints the cases above: they need no interaction with a test */
	CASE(last_close),
	CASE(until_eio),
	CASE(churn_for_ever),
	CASE(registers_in_a_vfork),
	{ "nothing", nothing },
};

/* Has memory of its own by now: whoever looks in its parent's finds no path at these addresses. */
static int of_vfork(void)
{
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	return 0;
}

static int after_exec(int fd)
{
	IS(client_count_pds(fd) >= 1);
	FAILS(client_alloc_pd(fd), EACCES);
	fd = client_open_context();
	IS(client_alloc_pd(fd) == 0);
	return 0;
}

int main(int argc, char **argv)
{
	client_self = argv[0];
	if (argc == 3 && !strcmp(argv[1], "after_exec"))
		return after_exec(atoi(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "of_vfork"))
		return of_vfork();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc == 2 && !strcmp(argv[1], "--list")) {
			if (!cases[i].name)
				return 0;
			printf("%s\n", cases[i].name);
		} else if (cases[i].name && argc == 2 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: client CASE\n");
	return 2;
}
