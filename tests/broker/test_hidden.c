/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Processes that the kernel lets only root inspect: when they are clients of the broker's children (engine.h). */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#include "engine.h"

#define GIVE_UP "--give-up-rights"
static char setuid_copy[] = "/tmp/uverbsd-test-engine-XXXXXX"; /* of this program */
static int ready_fd; /* of a process that begins: where it says that it is ready */

/* Starts a process that calls as() and then blocks in call(fd). */
static pid_t start_in(void (*as)(void), int (*call)(int fd), int fd)
{
	int ready[2];
	char c;
	pid_t pid;

	ck_assert(!pipe(ready));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ready_fd = ready[1];
		as();
		(void)!write(ready[1], "x", 1);
		close(ready[1]);
		_exit(call(fd));
	}
	close(ready[1]);
	ck_assert(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	return pid;
}

static int writes_or_pauses(int fd)
{
	return fd < 0 ? pause() : write(fd, "x", 1) == 1 ? 0 : 2;
}

/* Has the ids of a setuid-root program that an ordinary user started. */
static void setuid_program(void)
{
	if (setresgid(GROUP, GROUP, GROUP) || setresuid(USER, 0, 0))
		_exit(1);
}

static void hidden_program(void)
{
	user();
	prctl(PR_SET_DUMPABLE, 0);
}

/* As a daemon that root has started: it has changed its user, and executed nothing since. */
static void dropped_program(void)
{
	if (setgroups(0, NULL) || setresgid(GROUP, GROUP, GROUP) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Executes a copy of this test as a setuid program, whose main() gives up its rights (gives_up_its_rights()). */
static void dropped_setuid_program(void)
{
	char arg[2][16];

	snprintf(arg[0], sizeof(arg[0]), "%d", node);
	snprintf(arg[1], sizeof(arg[1]), "%d", ready_fd);
	user();
	execl(setuid_copy, setuid_copy, GIVE_UP, arg[0], arg[1], NULL);
	_exit(1);
}

/*
 * No terminal makes an ioctl wait that it does not know. A filter does that nobody listens to: the process has the
 * descriptor itself. Ends with its parent, as all that start() starts.
 */
static int waits_in_ioctl(int fd, unsigned long command)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter) < 0)
		return 3;
	return ioctl(fd, command, &filter);
}

static int waits_as_verbs_client(int fd)
{
	return waits_in_ioctl(fd, RDMA_VERBS_IOCTL);
}

static int waits_in_another_ioctl(int fd)
{
	return waits_in_ioctl(fd, RDMA_VERBS_IOCTL + 1);
}

/* Neither what it writes nor another ioctl says that a hidden program means to be a client. Both can be ordered by others. */
START_TEST(test_hidden_program_gives_nothing_without_an_ioctl_of_verbs)
{
	void (*const as[])(void) = { hidden_program, dropped_program };

	for (unsigned int i = 0; i < 4; i++) {
		pid_t pid = start_in(as[i % 2], i < 2 ? writes_or_pauses : waits_in_another_ioctl, node);

		check_gets_nothing(pid, -EPERM);
		check_loan_is_refused(pid, -EPERM);
		end(pid);
	}
}
END_TEST

START_TEST(test_hidden_program_is_reached_in_an_ioctl_of_verbs)
{
	void (*const as[])(void) = { hidden_program, dropped_program };

	for (unsigned int i = 0; i < 2; i++) {
		pid_t pid = start_in(as[i], waits_as_verbs_client, node), loan;
		uint64_t word = 0;
		int sock;

		ck_assert_int_eq(ask_about(UVD_WIRE_PEER, pid, 0, 0), 0);
		ck_assert(pread(fds.fd[0], &word, sizeof(word), (off_t)(uintptr_t)&secret) == sizeof(word) &&
			  word == 1);
		uvd_wire_close(&fds);
		loan = serve_loan(pid, &sock);
		ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = pid }, -1), 0);
		close(sock);
		waitpid(loan, NULL, 0);
		end(pid);
	}
}
END_TEST

START_TEST(test_hidden_programs_are_refused_as_roots)
{
	pid_t pid = start_in(dropped_program, waits_as_verbs_client, node);

	nodes.root_clients = UVD_ROOT_REFUSE;
	check_loan_is_refused(pid, -EPERM);
	end(pid);
}
END_TEST

static void make_setuid_copy(void)
{
	int to = mkstemp(setuid_copy), from = open("/proc/self/exe", O_RDONLY);
	ssize_t n;

	ck_assert(to >= 0 && from >= 0);
	do
		n = sendfile(to, from, NULL, 1 << 30);
	while (n > 0);
	ck_assert(!n && !fchmod(to, 04755));
	close(to);
	close(from);
}

/* The work of main() in that copy: nobody else must find it. */
static int gives_up_its_rights(const char *program, int fd, int ready)
{
	unlink(program);
	dropped_program();
	(void)!write(ready, "x", 1);
	close(ready);
	return waits_as_verbs_client(fd);
}

/* Also where it is a client: a setuid program's memory can hold what its user must not know. */
START_TEST(test_programs_with_more_rights_give_nothing_in_an_ioctl_of_verbs)
{
	void (*const as[])(void) = { setuid_program, dropped_setuid_program };

	make_setuid_copy();
	for (unsigned int i = 0; i < 2; i++) {
		pid_t pid = start_in(as[i], waits_as_verbs_client, node);

		check_gets_nothing(pid, -EPERM);
		check_loan_is_refused(pid, -EPERM);
		end(pid);
	}
}
END_TEST

int main(int argc, char **argv)
{
	TCase *t = tcase_create("hidden");

	if (argc == 4 && !strcmp(argv[1], GIVE_UP))
		return gives_up_its_rights(argv[0], atoi(argv[2]), atoi(argv[3]));
	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_hidden_program_gives_nothing_without_an_ioctl_of_verbs);
	tcase_add_test(t, test_hidden_program_is_reached_in_an_ioctl_of_verbs);
	tcase_add_test(t, test_hidden_programs_are_refused_as_roots);
	tcase_add_test(t, test_programs_with_more_rights_give_nothing_in_an_ioctl_of_verbs);
	return run_suite("hidden", t);
}
