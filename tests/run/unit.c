/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parts of src/run that need no process to serve. */
#include <check.h>
#include <errno.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/filter.h"
#include "run/internal.h"
#include "run/link.h"
#include "run/notify.h"
#include "run/path.h"
#include "run/run.h"
#include "../suite.h"

static const char *yama(const char *scope, bool privileged)
{
	char path[] = "/tmp/uverbsd-yama-XXXXXX";
	int fd = mkstemp(path);
	const char *why;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, scope, strlen(scope)), (ssize_t)strlen(scope));
	close(fd);
	why = uvd_run_yama_refusal(path, privileged);
	unlink(path);
	return why;
}

START_TEST(yama_3_is_refused_with_the_reason)
{
	ck_assert_ptr_nonnull(strstr(yama("3\n", true), "ptrace_scope is 3"));
	ck_assert_ptr_nonnull(strstr(yama("3\n", false), "ptrace_scope is 3"));
}
END_TEST

START_TEST(yama_2_needs_a_capability)
{
	ck_assert_ptr_nonnull(strstr(yama("2\n", false), "CAP_SYS_PTRACE"));
	ck_assert_ptr_null(yama("2\n", true));
}
END_TEST

START_TEST(yama_1_and_less_are_well)
{
	ck_assert_ptr_null(yama("1\n", false));
	ck_assert_ptr_null(yama("0\n", false));
	ck_assert_ptr_null(uvd_run_yama_refusal("/does/not/exist", false));
}
END_TEST

START_TEST(windows_lie_below_the_limit)
{
	static const rlim_t limits[] = { 4, 16, 20, 100, 256, 1000, 1024, 4096, 1048576 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		struct rlimit r = { limits[i], limits[i] };
		struct uvd_run_window w[UVD_RUN_WINDOWS];

		uvd_run_windows(w, &r, true);
		ck_assert_uint_ge(w[0].size, 1);
		ck_assert_uint_eq(w[0].direct, w[0].size / 2);
		ck_assert_uint_eq(w[0].size & (w[0].size - 1), 0);
		ck_assert_uint_eq(w[0].base % w[0].size, 0);
		ck_assert_uint_ge(w[0].base, 3);
		ck_assert_uint_le(w[0].base + w[0].size, limits[i] < 1024 ? limits[i] : 1024);
		ck_assert(!w[1].size || w[1].base + w[1].size <= limits[i]);
	}
}
END_TEST

START_TEST(filter_is_made)
{
	struct rlimit r = { 1024, 1048576 };
	struct uvd_run_window w[UVD_RUN_WINDOWS];
	struct sock_fprog prog;

	uvd_run_windows(w, &r, true);
	ck_assert_int_eq(uvd_run_filter_make(w, false, &prog), 0);
	ck_assert_uint_gt(prog.len, 20);
	free(prog.filter);
}
END_TEST

static void resolve_in(const char *root, int fd, const char *path, uint64_t how, struct uvd_run_target *t)
{
	char *page = aligned_alloc(4096, 8192);
	struct uvd_caller c = { .mem = &uvd_mem_self, .tid = getpid() };
	struct uvd_run_args args = { .op = UVD_RUN_OPEN, .fd = fd, .resolve = how };

	memset(page, 0, 8192);
	strcpy(page, path);
	args.path = (uintptr_t)page;
	uvd_run_resolve(&c, root, &args, t);
	free(page);
}

static void resolve_at(int fd, const char *path, uint64_t how, struct uvd_run_target *t)
{
	resolve_in("", fd, path, how, t);
}

static void resolve_as(const char *path, uint64_t how, struct uvd_run_target *t)
{
	resolve_at(-100 /* AT_FDCWD */, path, how, t);
}

static void resolve(const char *path, struct uvd_run_target *t)
{
	resolve_as(path, 0, t);
}

START_TEST(paths_are_sorted)
{
	static const struct {
		const char *path;
		enum uvd_run_place place;
		const char *below;
	} cases[] = {
		{ "/dev/infiniband/uverbs0", UVD_RUN_NODE, "uverbs0" },
		{ "/dev//infiniband/./x/../uverbs17", UVD_RUN_NODE, "uverbs17" },
		{ "/dev/infiniband/uverbs", UVD_RUN_ELSEWHERE, NULL },
		{ "/dev/infiniband/uverbs-1", UVD_RUN_NODE, "uverbs-1" },
		{ "/dev/infiniband/uverbs01", UVD_RUN_ELSEWHERE, NULL },
		{ "/dev/infiniband/uverbs0/x", UVD_RUN_ELSEWHERE, NULL },
		{ "/dev/infiniband/rdma_cm", UVD_RUN_NODE, "rdma_cm" },
		{ "/dev/./infiniband//mlx5_perm_ctrl_local", UVD_RUN_NODE, "mlx5_perm_ctrl_local" },
		{ "/dev/infiniband/mlx5_perm_ctrl_local/x", UVD_RUN_ELSEWHERE, NULL },
		{ "/dev/infiniband/", UVD_RUN_TREE, "dev/infiniband" },
		{ "/../sys/class/infiniband", UVD_RUN_TREE, "sys/class/infiniband" },
		{ "/sys/class/infiniband_verbs/uverbs0/dev", UVD_RUN_TREE, "sys/class/infiniband_verbs/uverbs0/dev" },
		{ "/sys/class/infiniband/../net", UVD_RUN_ELSEWHERE, NULL },
		{ "/sys/class/misc/rdma_cm", UVD_RUN_TREE, "sys/class/misc/rdma_cm" },
		{ "/sys/class/./misc/rdma_cm//dev", UVD_RUN_TREE, "sys/class/misc/rdma_cm/dev" },
		{ "/sys/class/misc/rdma_cmx/dev", UVD_RUN_ELSEWHERE, NULL },
		{ "/sys/class/misc/rdma_cm/..", UVD_RUN_ELSEWHERE, NULL },
		{ "/sys/class/misc/rdma_cm/../fuse/dev", UVD_RUN_ELSEWHERE, NULL },
		{ "/tmp/sys/class/infiniband", UVD_RUN_ELSEWHERE, NULL },
		{ "/etc/passwd", UVD_RUN_ELSEWHERE, NULL },
		{ "", UVD_RUN_ELSEWHERE, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct uvd_run_target t;

		resolve(cases[i].path, &t);
		ck_assert_msg(t.place == cases[i].place, "%s: %d", cases[i].path, t.place);
		if (cases[i].below)
			ck_assert_str_eq(t.path, cases[i].below);
	}
}
END_TEST

/* A program may have another root, where this path means nothing. The control socket is not for it. */
START_TEST(path_that_names_the_runs_folder_is_known)
{
	static const char root[] = "/x/uverbsd-run-a";
	static const struct {
		const char *path, *below;
	} cases[] = {
		{ "/x/uverbsd-run-a/sys", "sys" },
		{ "/x/uverbsd-run-a/sys/", "sys" },
		{ "/x/../x//uverbsd-run-a/./sys/class", "sys/class" },
		{ "/x/uverbsd-run-a/sys/class/infiniband/rxe0", "sys/class/infiniband/rxe0" },
		{ "/x/uverbsd-run-a", NULL },
		{ "/x/uverbsd-run-a/system", NULL },
		{ "/x/uverbsd-run-a/control", NULL },
		{ "/x/uverbsd-run-a/sys/../control", NULL },
		{ "/x/uverbsd-run-a/dev/infiniband/uverbs0", NULL },
		{ "/x/uverbsd-run-a/dev/infiniband", NULL },
		{ "/x/uverbsd-run-ab/sys/class/infiniband", NULL },
		{ "/y/x/uverbsd-run-a/sys/class/infiniband", NULL },
	};
	struct uvd_run_target t;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		resolve_in(root, -100, cases[i].path, 0, &t);
		ck_assert_msg(t.in_run == !!cases[i].below, "%s: %d", cases[i].path, t.in_run);
		ck_assert_msg(t.place == (cases[i].below ? UVD_RUN_TREE : UVD_RUN_ELSEWHERE), "%s: %d", cases[i].path,
			      t.place);
		if (cases[i].below)
			ck_assert_str_eq(t.path, cases[i].below);
	}
	resolve_in(root, -100, "/sys/class/infiniband", 0, &t);
	ck_assert_int_eq(t.place, UVD_RUN_TREE);
	ck_assert(!t.in_run);
}
END_TEST

/* Files on different mounts can have the same inode number. */
START_TEST(path_that_leaves_its_folder_or_file_system_is_elsewhere)
{
	static const struct {
		const char *cwd, *path;
		uint64_t resolve;
		enum uvd_run_place place;
	} cases[] = {
		{ "/dev", "infiniband", RESOLVE_BENEATH, UVD_RUN_TREE },
		{ "/dev", "x/..//./infiniband", RESOLVE_BENEATH, UVD_RUN_TREE },
		{ "/dev", "x/../../dev/infiniband", RESOLVE_BENEATH, UVD_RUN_ELSEWHERE },
		{ "/dev", "/dev/infiniband", RESOLVE_BENEATH, UVD_RUN_ELSEWHERE },
		{ "/dev", "../../infiniband/uverbs3", RESOLVE_IN_ROOT, UVD_RUN_NODE },
		{ "/dev", "infiniband/uverbs3", RESOLVE_IN_ROOT, UVD_RUN_NODE },
		{ "/dev", "/infiniband/uverbs3", RESOLVE_IN_ROOT, UVD_RUN_NODE },
		{ "/", "/dev/infiniband/uverbs3", RESOLVE_IN_ROOT, UVD_RUN_NODE },
		{ "/dev", "/dev/infiniband/uverbs3", RESOLVE_IN_ROOT, UVD_RUN_ELSEWHERE },
		{ "/dev", "infiniband/uverbs3", RESOLVE_NO_XDEV, UVD_RUN_NODE },
		{ "/dev", "/dev/infiniband/uverbs3", RESOLVE_NO_XDEV, UVD_RUN_ELSEWHERE },
		{ "/", "dev/infiniband/uverbs3", RESOLVE_NO_XDEV, UVD_RUN_ELSEWHERE },
		{ "/dev", "../sys/class/infiniband", RESOLVE_NO_XDEV, UVD_RUN_ELSEWHERE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct uvd_run_target t;

		ck_assert(!chdir(cases[i].cwd));
		resolve_as(cases[i].path, cases[i].resolve, &t);
		ck_assert_msg(t.place == cases[i].place, "%zu: %s: %d", i, cases[i].path, t.place);
	}
}
END_TEST

/* Such a link is no path, and it was taken for one: the text then grew beyond its buffer. */
START_TEST(path_that_begins_at_a_pipe_or_socket_is_elsewhere)
{
	static const char *const paths[] = { "infiniband", "uverbs0", "x/uverbs0", "../dev/infiniband/uverbs0" };
	struct uvd_run_target t;
	int fds[3];

	ck_assert(!pipe(fds));
	fds[2] = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_ge(fds[2], 0);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		for (size_t j = 0; j < sizeof(paths) / sizeof(*paths); j++) {
			resolve_at(fds[i], paths[j], 0, &t);
			ck_assert_int_eq(t.place, UVD_RUN_ELSEWHERE);
			resolve_at(fds[i], paths[j], RESOLVE_IN_ROOT, &t);
			ck_assert_int_eq(t.place, UVD_RUN_ELSEWHERE);
		}
		close(fds[i]);
	}
}
END_TEST

START_TEST(files_are_known_by_inode_and_mount)
{
	struct uvd_run_file f = { .inode = { .ino = 7, .mnt_id = 1 }, .refs = 1 };
	struct uvd_run_files files;

	ck_assert_int_eq(uvd_run_files_init(&files), 0);
	files.hash[7] = &f;
	ck_assert_ptr_eq(uvd_run_file_get(&files, &(struct uvd_run_inode){ 7, 1 }), &f);
	ck_assert_ptr_null(uvd_run_file_get(&files, &(struct uvd_run_inode){ 7, 2 }));
	files.hash[7] = NULL;
	uvd_run_files_fini(&files);
}
END_TEST

START_TEST(nodes_of_capabilities_are_known_by_inode_and_mount)
{
	static struct uvd_run_engine e;
	static struct uvd_run_tree tree = { .engine = &e };
	struct uvd_run_ucap *u = &e.ucaps[3];
	struct uvd_run_node node;

	uvd_run_ucaps_init(&e);
	*u = (struct uvd_run_ucap){ "perm", 3, -1, { .ino = 7, .mnt_id = 1 } };
	ck_assert(uvd_run_ucap_nodes.opened(&tree, &(struct uvd_run_inode){ 7, 1 }, &node));
	ck_assert_uint_eq(node.mode, 0600);
	ck_assert(!uvd_run_ucap_nodes.opened(&tree, &(struct uvd_run_inode){ 7, 2 }, &node));
}
END_TEST

/* ---- the connection manager -------------------------------------------------------------------------------------- */

START_TEST(places_for_late_answers_are_used_again)
{
	static struct uvd_run_tree tree;
	_Atomic uint64_t *places[UVD_RUN_MAX_LENT];

	tree.notif = calloc(1, sizeof(*tree.notif));
	ck_assert_ptr_nonnull(tree.notif);
	uvd_run_lent_init(&tree.lent);
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < UVD_RUN_MAX_LENT; i++) {
			places[i] = uvd_run_lent_take(&tree, i + 1);
			ck_assert(places[i] && *places[i] == i + 1);
		}
		ck_assert_ptr_null(uvd_run_lent_take(&tree, 7));
		for (unsigned int i = 0; i < UVD_RUN_MAX_LENT; i++)
			uvd_run_lent_give(&tree, places[i]);
		for (unsigned int i = 0; i < UVD_RUN_MAX_LENT; i++)
			ck_assert_uint_eq(tree.notif->lent[i], 0);
	}
	uvd_run_lent_fini(&tree.lent);
	free(tree.notif);
}
END_TEST

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void plug(struct uvd_run_engine *e, unsigned int place, int number, struct uvd_device *dev)
{
	*dev = (struct uvd_device){ .ref = 1, .config.number = number };
	uvd_fleet_enter(&e->fleet, &e->devices[place], &dev->config, dev);
}

/* Else a client would get the machine's own node of that number. */
START_TEST(number_that_a_device_had_stays_the_runs)
{
	static struct uvd_run_engine e;
	struct uvd_device first, second;
	bool ours;

	uvd_run_devices_init(&e);
	plug(&e, 0, 3, &first);
	ck_assert_ptr_eq(uvd_run_device_find(&e, 3, &ours), &first);
	ck_assert(!uvd_run_device_find(&e, 4, &ours) && !ours);
	ck_assert_ptr_eq(uvd_fleet_leave(&e.devices[0]), &first);
	ck_assert(!uvd_run_device_find(&e, 3, &ours) && ours);
	/* The device comes back in its place, by another number. */
	plug(&e, 0, 1023, &second);
	ck_assert(!uvd_run_device_find(&e, 3, &ours) && ours);
	ck_assert_ptr_eq(uvd_run_device_find(&e, 1023, &ours), &second);
	ck_assert(!uvd_run_device_find(&e, 1024, &ours) && !ours);
	uvd_fleet_leave(&e.devices[0]);
	uvd_run_devices_fini(&e);
}
END_TEST

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static int pair[2];

/* Makes the socket pair and sends a message with num_fds copies of fd 0. */
static void send_message(const struct uvd_run_msg *msg, unsigned int num_fds)
{
	union {
		char room[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { (void *)msg, sizeof(*msg) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_SPACE(num_fds * sizeof(int)) };

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	control.align = (struct cmsghdr){ CMSG_LEN(num_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memset(CMSG_DATA(&control.align), 0, num_fds * sizeof(int));
	ck_assert_int_eq(sendmsg(pair[0], &m, 0), sizeof(*msg));
}

/* Returns the lowest unused fd. It is the same as before if every fd that was received has been closed. */
static int least_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Threads close what is refused. */
static int least_fd_at_last(int wanted)
{
	for (int i = 0; i < 30000 && least_fd() != wanted; i++)
		usleep(1000);
	return least_fd();
}

START_TEST(message_with_more_fds_than_any_has_is_refused)
{
	static const struct uvd_run_msg msg = { .kind = UVD_RUN_LISTENER };
	struct {
		int fds[UVD_RUN_LINK_FDS];
		int after;
	} got = { .after = 42 };
	static struct uvd_run_msg received;
	int least;

	send_message(&msg, UVD_RUN_LINK_FDS + _i);
	least = least_fd();
	ck_assert_int_eq(uvd_run_receive(pair[1], &received, got.fds), _i ? -EPROTO : 0);
	ck_assert_int_eq(got.after, 42);
	for (int i = 0; i < UVD_RUN_LINK_FDS; i++)
		ck_assert(_i ? got.fds[i] == -1 : got.fds[i] >= least && !close(got.fds[i]));
	ck_assert_int_eq(least_fd_at_last(least), least);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

START_TEST(message_whose_path_has_no_end_is_refused)
{
	static struct uvd_run_msg msg = { .kind = UVD_RUN_READY }, received;
	int fds[UVD_RUN_LINK_FDS];

	memset(msg.root, 'x', sizeof(msg.root));
	send_message(&msg, 1);
	ck_assert_int_eq(uvd_run_receive(pair[1], &received, fds), -EPROTO);
	ck_assert_int_eq(fds[0], -1);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

/* ---- calls that the kernel may still be carrying out -------------------------------------------------------------- */

static struct uvd_run_tree *new_tree(void)
{
	struct uvd_run_tree *tree = calloc(1, sizeof(*tree));

	ck_assert_ptr_nonnull(tree);
	tree->notif = calloc(1, sizeof(*tree->notif));
	ck_assert_ptr_nonnull(tree->notif);
	return tree;
}

static void free_tree(struct uvd_run_tree *tree)
{
	free(tree->notif);
	free(tree);
}

static void call_of(struct uvd_run_tree *tree, pid_t tid, bool exec)
{
	tree->tid = tid;
	uvd_run_caller_waits(tree);
	if (exec)
		uvd_run_caller_exec(tree);
	else
		uvd_run_caller_closes(tree, -1);
}

/* Returns a process whose id stays in use until it is reaped. */
static pid_t new_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* A process makes a call, and exits before the next one. */
static void call_and_exit(struct uvd_run_tree *tree, bool exec)
{
	pid_t pid = new_process();

	call_of(tree, pid, exec);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void *tell_tid(void *tid)
{
	*(pid_t *)tid = gettid();
	return NULL;
}

START_TEST(calls_of_processes_that_have_ended_are_over)
{
	struct uvd_run_tree *tree = new_tree();

	for (int i = 0; i < UVD_RUN_CHANGES + 2; i++)
		call_and_exit(tree, _i);
	ck_assert_int_le(tree->num_changes, UVD_RUN_CHANGES);
	call_of(tree, getpid(), true);
	ck_assert_int_le(tree->num_changes, UVD_RUN_CHANGES);
	free_tree(tree);
}
END_TEST

/* An exec takes the process's id for its thread: that the thread's own id is free does not mean that it is over. */
START_TEST(exec_of_a_second_thread_is_not_over_when_its_id_is_free)
{
	struct uvd_run_tree *tree = new_tree();
	pthread_t thread;
	pid_t tid;

	ck_assert(!pthread_create(&thread, NULL, tell_tid, &tid) && !pthread_join(thread, NULL));
	call_of(tree, tid, true);
	for (int i = 0; i < UVD_RUN_CHANGES + 2; i++)
		call_and_exit(tree, true);
	ck_assert_int_eq(tree->changes[0].tid, tid);
	free_tree(tree);
}
END_TEST

START_TEST(more_calls_than_the_list_holds_are_an_overflow)
{
	struct uvd_run_tree *tree = new_tree();

	for (int i = 0; i <= UVD_RUN_CHANGES; i++) {
		ck_assert_int_le(tree->num_changes, UVD_RUN_CHANGES);
		call_of(tree, new_process(), true);
	}
	ck_assert_int_gt(tree->num_changes, UVD_RUN_CHANGES);
	free_tree(tree);
}
END_TEST

/* A caller that was killed while its call waited: its root is no other one. */
START_TEST(no_mount_is_made_for_a_caller_that_has_ended)
{
	struct uvd_run_engine *engine = calloc(1, sizeof(*engine));
	struct uvd_run_tree *tree = calloc(1, sizeof(*tree));

	tree->engine = engine;
	tree->tid = new_process();
	ck_assert(!waitid(P_PID, tree->tid, &(siginfo_t){}, WEXITED | WNOWAIT)); /* a zombie has no root either */
	ck_assert_int_eq(uvd_run_folder(tree, false), -ENOENT);
	ck_assert_int_eq(waitpid(tree->tid, NULL, 0), tree->tid);
	ck_assert_int_eq(uvd_run_folder(tree, false), -ENOENT);
	ck_assert_int_eq(engine->detached, 0);
	free(tree);
	free(engine);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("run");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, yama_3_is_refused_with_the_reason);
	tcase_add_test(t, yama_2_needs_a_capability);
	tcase_add_test(t, yama_1_and_less_are_well);
	tcase_add_test(t, windows_lie_below_the_limit);
	tcase_add_test(t, filter_is_made);
	tcase_add_test(t, paths_are_sorted);
	tcase_add_test(t, path_that_names_the_runs_folder_is_known);
	tcase_add_test(t, path_that_leaves_its_folder_or_file_system_is_elsewhere);
	tcase_add_test(t, path_that_begins_at_a_pipe_or_socket_is_elsewhere);
	tcase_add_test(t, no_mount_is_made_for_a_caller_that_has_ended);
	tcase_add_test(t, files_are_known_by_inode_and_mount);
	tcase_add_test(t, nodes_of_capabilities_are_known_by_inode_and_mount);
	tcase_add_test(t, places_for_late_answers_are_used_again);
	tcase_add_test(t, number_that_a_device_had_stays_the_runs);
	tcase_add_loop_test(t, message_with_more_fds_than_any_has_is_refused, 0, 4);
	tcase_add_test(t, message_whose_path_has_no_end_is_refused);
	tcase_add_loop_test(t, calls_of_processes_that_have_ended_are_over, 0, 2);
	tcase_add_test(t, exec_of_a_second_thread_is_not_over_when_its_id_is_free);
	tcase_add_test(t, more_calls_than_the_list_holds_are_an_overflow);
	return run_suite("run", t);
}
