/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A compromised engine process asks the broker's children for more than it may have: see engine.h. */
#include "engine.h"

static void user_without_descriptors(void)
{
	user();
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }))
		_exit(1);
}

/* Has the ids of a setuid-root program that an ordinary user started. */
static void setuid_program(void)
{
	if (setresgid(GROUP, GROUP, GROUP) || setresuid(USER, 0, 0))
		_exit(1);
}

/* Has the ids of a setgid program, but is dumpable, so that /proc alone does not hide it. */
static void setgid_program(void)
{
	if (setgroups(0, NULL) || setresgid(GROUP, GROUP - 1, GROUP - 1) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
}

/* Has an ordinary user's ids, but keeps permitted capabilities, as a program with file capabilities does. */
static void capable_program(void)
{
	if (prctl(PR_SET_KEEPCAPS, 1))
		_exit(1);
	user();
}

static void hidden_program(void)
{
	user();
	prctl(PR_SET_DUMPABLE, 0);
}

START_TEST(test_client_that_waits_is_reached)
{
	pid_t pid = start(user, node);
	uint64_t word = 0;

	ck_assert_int_eq(ask_about(UVD_WIRE_PEER, pid, 0, 0), 0);
	ck_assert(pread(fds.fd[0], &word, sizeof(word), (off_t)(uintptr_t)&secret) == sizeof(word) && word == 1);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, pid, UVD_WIRE_FD, node), 0);
	uvd_wire_close(&fds);
	end(pid);
}
END_TEST

START_TEST(test_init_gives_nothing)
{
	check_gets_nothing(1, -ESRCH);
	check_loan_is_refused(1, -ESRCH);
}
END_TEST

START_TEST(test_bystanders_give_nothing)
{
	pid_t sleeps = start(user, -1), writes = start(user, other);

	check_gets_nothing(sleeps, -ESRCH);
	check_loan_is_refused(sleeps, -ESRCH);
	check_gets_nothing(writes, -ESRCH);
	check_loan_is_refused(writes, -ESRCH);
	check_gets_nothing(helper, -ESRCH);
	end(sleeps);
	end(writes);
}
END_TEST

START_TEST(test_programs_with_more_rights_than_their_user_give_nothing)
{
	void (*const as[])(void) = { setuid_program, setgid_program, capable_program, hidden_program };

	for (unsigned int i = 0; i < 4; i++) {
		pid_t pid = start(as[i], node);

		check_gets_nothing(pid, -EPERM);
		check_loan_is_refused(pid, -EPERM);
		end(pid);
	}
}
END_TEST

START_TEST(test_root_clients_can_be_refused)
{
	pid_t pid = start(root, node);

	ck_assert_int_eq(ask_about(UVD_WIRE_PEER, pid, 0, 0), 0);
	uvd_wire_close(&fds);
	nodes.root_clients = UVD_ROOT_REFUSE;
	check_loan_is_refused(pid, -EPERM);
	end(pid);
}
END_TEST

START_TEST(test_threads_that_are_not_there_give_nothing)
{
	pid_t pid = start(user, node);

	end(pid);
	check_gets_nothing(pid, -ESRCH);
	check_loan_is_refused(pid, -ESRCH);
	check_gets_nothing(INT32_MAX, -ESRCH);
}
END_TEST

/* Asks which sockets processes other than `except` have open. num: how many numbers are sent. */
static int ask_for_sockets(pid_t except, const uint64_t *inos, unsigned int num, bool *used)
{
	int pair[2], ret;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	ck_assert(send(pair[0], inos, num * sizeof(*inos), 0) == (ssize_t)(num * sizeof(*inos)));
	ret = ask(questions, (struct uvd_wire_request){ .op = UVD_WIRE_SOCKETS, .tid = except }, pair[1]);
	if (!ret)
		ck_assert(recv(pair[0], used, num, MSG_DONTWAIT) == (ssize_t)num);
	close(pair[0]);
	close(pair[1]);
	return ret;
}

START_TEST(test_sockets_of_other_processes_are_told)
{
	uint64_t inos[2] = { 0 };
	bool used[2] = { false, true };
	struct stat st;
	int pair[2];
	pid_t pid;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && !fstat(pair[1], &st));
	inos[0] = st.st_ino;
	inos[1] = UINT64_MAX;
	/* The client inherits the socket. The child for questions was started before, and has it not. */
	pid = start(user, -1);
	ck_assert_int_eq(ask_for_sockets(getpid(), inos, 2, used), 0);
	ck_assert(used[0] && !used[1]);
	ck_assert_int_gt(values[0], 0);
	end(pid);
	ck_assert_int_eq(ask_for_sockets(getpid(), inos, 2, used), 0);
	ck_assert(!used[0] && !used[1]);
	/* It is this process that has it open. */
	ck_assert_int_eq(ask_for_sockets(helper, inos, 2, used), 0);
	ck_assert(used[0]);
	/* Neither a socket without a message nor another file stops the child. */
	ck_assert_int_eq(ask(questions, (struct uvd_wire_request){ .op = UVD_WIRE_SOCKETS, .tid = 1 }, pair[0]),
			 -EINVAL);
	ck_assert_int_eq(ask(questions, (struct uvd_wire_request){ .op = UVD_WIRE_SOCKETS, .tid = 1 }, other), -EINVAL);
	ck_assert_int_eq(ask_for_sockets(getpid(), inos, 2, used), 0);
}
END_TEST

START_TEST(test_path_does_not_leave_the_thread)
{
	pid_t pid = start(user, node);

	ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, pid, UVD_WIRE_FD, -1), -EINVAL);
	ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, pid, UVD_WIRE_FD, 1ll << 32), -EINVAL);
	ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, pid, UVD_WIRE_MAPS, 1), -EINVAL);
	ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, pid, UVD_WIRE_MEM, 2), -EINVAL);
	end(pid);
}
END_TEST

/* ---- a tid that is reused ---------------------------------------------------------------------------------------- */

static atomic_bool stop_asking;
static atomic_int bystanders, clients;
static pid_t number;

static void *keep_asking(void *arg)
{
	while (!stop_asking) {
		uint64_t word = 0;

		if (ask_about(UVD_WIRE_PEER, number, 0, 0))
			continue;
		if (pread(fds.fd[0], &word, sizeof(word), (off_t)(uintptr_t)&secret) == sizeof(word))
			(*(word == 2 ? &bystanders : &clients))++;
		uvd_wire_close(&fds);
	}
	return NULL;
}

static pid_t start_with_number(pid_t tid)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&tid, .set_tid_size = 1 };

	return syscall(SYS_clone3, &args, sizeof(args));
}

START_TEST(test_number_that_becomes_a_bystanders)
{
	unsigned int started[2] = { 0 };
	pthread_t thread;
	pid_t pid;

	number = fork();
	if (!number)
		_exit(0);
	waitpid(number, NULL, 0);
	ck_assert(!pthread_create(&thread, NULL, keep_asking, NULL));
	for (int n = 0; n < 300; n++) {
		bool bystander = n & 1;

		pid = start_with_number(number);
		if (!pid) {
			user();
			secret = bystander ? 2 : 1;
			_exit(bystander ? pause() : (int)write(node, "x", 1));
		}
		if (pid < 0) /* the number is in use */
			continue;
		started[bystander]++;
		usleep(random() % 1500);
		end(pid);
	}
	stop_asking = true;
	pthread_join(thread, NULL);
	ck_assert_msg(started[0] && started[1], "no process can be given a number");
	ck_assert_int_eq(bystanders, 0);
}
END_TEST

/* ---- loans ---------------------------------------------------------------------------------------------------------- */

START_TEST(test_loan_passes_a_descriptor)
{
	int sock, pair[2], way;
	pid_t client = start(user, node), pid = serve_loan(client, &sock);
	char link[64], path[64];
	int status;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	tcflow(node, TCOON);
	way = ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_TAKE }, pair[0]);
	ck_assert_int_gt(way, 2);
	ck_assert(fds.fd[0] >= 0 && fds.fd[1] >= 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", client, way);
	ck_assert(readlink(path, link, sizeof(link)) > 7 && !memcmp(link, "socket:", 7));
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_RELEASE, .flag = 1, .value = -5 }, -1), 0);
	ck_assert(values[0] > 0 && values[0] < 10000000000); /* the loan's processor time, in ns */
	waitpid(client, &status, 0);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2); /* RELEASE replaced the result of write() */
	waitpid(pid, NULL, 0);
}
END_TEST

static unsigned int fds_of_client(pid_t client)
{
	char path[64];
	unsigned int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", client);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	ck_assert(d && !closedir(d));
	return n;
}

/* No adapter is needed to see that the thread makes the call: a file that is none does not know it. */
START_TEST(test_loan_registers_on_the_descriptor_and_leaves_none)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_REGISTER, .reg = { .start = 4096, .length = 4096 } };
	unsigned int before;
	int sock, status;
	pid_t client = start(user, node), pid = serve_loan(client, &sock);

	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	before = fds_of_client(client);
	tcflow(node, TCOON);
	ck_assert_int_eq(ask(sock, r, other), 0);
	ck_assert_int_eq(values[0], -ENOTTY);
	ck_assert_int_eq(values[1], UVD_WIRE_EXECUTED);
	ck_assert(fds.fd[0] >= 0 && fds.fd[1] >= 0);
	ck_assert_uint_eq(fds_of_client(client), before);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_RELEASE }, -1), 0);
	waitpid(client, &status, 0);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	waitpid(pid, NULL, 0);
}
END_TEST

/* The engine process has more devices open than the adapter: the channels of nodes are devices, too. */
START_TEST(test_client_gets_no_device_but_the_adapter)
{
	const int wrong[] = { open("/dev/null", O_RDWR), open("/etc/passwd", O_RDONLY), node };
	unsigned int before;
	int sock, status;
	pid_t client, pid;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		tcflow(node, TCOOFF);
		client = start(user, node);
		pid = serve_loan(client, &sock);
		ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
		before = fds_of_client(client);
		tcflow(node, TCOON);
		ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_REGISTER }, wrong[i]), 0);
		ck_assert_int_eq(values[0], -EPERM);
		ck_assert_int_eq(values[1], 0);
		ck_assert_uint_eq(fds_of_client(client), before);
		uvd_wire_close(&fds);
		ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_RELEASE }, -1), 0);
		waitpid(client, &status, 0);
		ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
		waitpid(pid, NULL, 0);
		close(sock);
	}
}
END_TEST

START_TEST(test_registration_of_a_client_without_descriptors_is_not_executed)
{
	int sock;
	pid_t client = start(user_without_descriptors, node), pid = serve_loan(client, &sock);

	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	tcflow(node, TCOON);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_REGISTER }, other), 0);
	ck_assert_int_eq(values[0], -EMFILE);
	ck_assert_int_eq(values[1], 0);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_RELEASE }, -1), 0);
	waitpid(client, NULL, 0);
	waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(test_loan_ends_with_the_engine)
{
	int sock, pair[2];
	pid_t client = start(user, node), pid = serve_loan(client, &sock);
	int status;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	tcflow(node, TCOON);
	ck_assert_int_gt(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_TAKE }, pair[0]), 2);
	close(sock);
	waitpid(client, &status, 0);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(test_loan_is_of_the_thread_whose_users_were_charged)
{
	pid_t client = start(user, node), second = start(user, node), pid;
	int sock;

	pid = serve_loan(client, &sock);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = second }, -1), -ESRCH);
	close(sock);
	waitpid(pid, NULL, 0);
	charged = USER + 1;
	pid = serve_loan(client, &sock);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), -ESRCH);
	close(sock);
	waitpid(pid, NULL, 0);
	end(client);
	end(second);
}
END_TEST

START_TEST(test_loan_has_an_order)
{
	pid_t client = start(user, node), pid;
	int sock;

	pid = serve_loan(client, &sock);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_TAKE }, other), -EPIPE);
	close(sock);
	waitpid(pid, NULL, 0);
	pid = serve_loan(client, &sock);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_RELEASE, .flag = 1 }, -1), -EPIPE);
	close(sock);
	waitpid(pid, NULL, 0);
	/* The client still waits in its call. */
	ck_assert_int_eq(ask_about(UVD_WIRE_PEER, client, 0, 0), 0);
	uvd_wire_close(&fds);
	end(client);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("engine");

	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_client_that_waits_is_reached);
	tcase_add_test(t, test_init_gives_nothing);
	tcase_add_test(t, test_bystanders_give_nothing);
	tcase_add_test(t, test_programs_with_more_rights_than_their_user_give_nothing);
	tcase_add_test(t, test_root_clients_can_be_refused);
	tcase_add_test(t, test_threads_that_are_not_there_give_nothing);
	tcase_add_test(t, test_sockets_of_other_processes_are_told);
	tcase_add_test(t, test_path_does_not_leave_the_thread);
	tcase_add_test(t, test_number_that_becomes_a_bystanders);
	tcase_add_test(t, test_loan_passes_a_descriptor);
	tcase_add_test(t, test_loan_registers_on_the_descriptor_and_leaves_none);
	tcase_add_test(t, test_client_gets_no_device_but_the_adapter);
	tcase_add_test(t, test_registration_of_a_client_without_descriptors_is_not_executed);
	tcase_add_test(t, test_loan_ends_with_the_engine);
	tcase_add_test(t, test_loan_is_of_the_thread_whose_users_were_charged);
	tcase_add_test(t, test_loan_has_an_order);
	return run_suite("engine", t);
}
