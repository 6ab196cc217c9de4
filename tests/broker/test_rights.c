/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose rights count: programs that were executed as setuid programs, as which an attacker in the engine process must get nothing
 * of them; and the process of a loan, which has its client's user.
 */
#include "engine.h"

/* ---- programs that were executed as setuid programs -------------------------------------------------------------- */

/* The work of main() then: that of passwd, or of sudo, whose program is executed as root; or only a write. */
enum executed { ACTS_AS_ROOT, FORKS_AS_ROOT, EXECUTES_AS_ROOT, WRITES };

/* Executes `program` with the descriptors of the node and of `ready`. */
static void execute(const char *program, enum executed what, int fd, int ready)
{
	char text[3][16];

	snprintf(text[0], sizeof(text[0]), "%d", what);
	snprintf(text[1], sizeof(text[1]), "%d", fd);
	snprintf(text[2], sizeof(text[2]), "%d", ready);
	execl(program, program, text[0], text[1], text[2], NULL);
	_exit(1);
}

/* Says on `ready` which process writes to the node. */
static int executed_main(char **argv)
{
	const int what = atoi(argv[1]), fd = atoi(argv[2]), ready = atoi(argv[3]);
	pid_t pid;

	if (what != WRITES && (getuid() != USER || geteuid() || setresgid(0, 0, 0) || setresuid(0, 0, 0)))
		return 1;
	if (what == EXECUTES_AS_ROOT)
		execute("/proc/self/exe", WRITES, fd, ready);
	if (what == FORKS_AS_ROOT && fork())
		return pause();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid = getpid();
	if (write(ready, &pid, sizeof(pid)) != sizeof(pid))
		return 1;
	close(ready);
	return write(fd, "x", 1) == 1 ? 0 : 2;
}

/* A user executes a copy of this program that has the mode 04755. Sets *pid to the process that waits on the node. */
static pid_t start_executed(enum executed what, pid_t *waits)
{
	char folder[] = "/tmp/uverbsd-tests-XXXXXX", program[64], command[192];
	int ready[2];
	pid_t pid;

	ck_assert(mkdtemp(folder) && !chmod(folder, 0755));
	snprintf(program, sizeof(program), "%s/setuid", folder);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && chmod 04755 %s", (int)getpid(), program, program);
	ck_assert(!system(command) && !pipe(ready));
	pid = fork();
	if (!pid) {
		close(ready[0]);
		user();
		execute(program, what, node, ready[1]);
	}
	close(ready[1]);
	ck_assert_msg(read(ready[0], waits, sizeof(*waits)) == sizeof(*waits), "%s did not become root: nosuid?",
		      program);
	close(ready[0]);
	ck_assert(!unlink(program) && !rmdir(folder));
	return pid;
}

static void check_loan_is_made(pid_t tid)
{
	int sock;
	pid_t pid = serve_loan(tid, &sock);

	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = tid }, -1), 0);
	close(sock);
	waitpid(pid, NULL, 0);
}

START_TEST(test_setuid_program_that_acts_as_root_gives_nothing)
{
	pid_t waits, pid = start_executed(_i, &waits);

	check_gets_nothing(waits, -EPERM);
	check_loan_is_refused(waits, -EPERM);
	nodes.root_clients = UVD_ROOT_ALL;
	check_loan_is_made(waits);
	nodes.root_clients = UVD_ROOT_REFUSE;
	check_loan_is_refused(waits, -EPERM);
	end(waits);
	end(pid);
}
END_TEST

/* The vectors of programs of both word sizes. The last ones do not say whether the program is secure: it counts as that. */
static const struct vector {
	uint32_t words[12];
	int err;
} vectors[] = {
	{ { 33, 0, 0xf7fcf000, 0x7f, 23, 0, 0, 0, 0, 0 }, 0 },
	{ { 33, 0, 0xf7fcf000, 0x7f, 23, 0, 1, 0, 0, 0 }, -EPERM },
	{ { 33, 0, 0xf7fcf000, 0x7f, 23, 0, 0, 1, 0, 0 }, -EPERM },
	{ { 32, 0xf7fcf5e0, 33, 0xf7fcf000, 23, 0, 0, 0 }, 0 },
	{ { 32, 0xf7fcf5e0, 33, 0xf7fcf000, 23, 1, 0, 0 }, -EPERM },
	{ { 33, 0, 23, 0, 0, 0, 0, 0 }, -EPERM },
	{ { 32, 23, 33, 23, 0, 0, 0, 0 }, -EPERM },
	{ { 0, 0, 0, 0, 0, 0, 0, 0 }, -EPERM },
};
static const struct vector *vector;

/* Replaces its own vector, for which no capability is needed, and leaves the rest of the address space as it is. */
static void root_with_vector(void)
{
	unsigned long v[52] = {};
	char line[1024] = "", *p;
	int fd = open("/proc/self/stat", O_RDONLY), i = 2;
	struct prctl_mm_map map;

	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
		_exit(1);
	close(fd);
	for (p = strrchr(line, ')'); p && i < 52; p = strchr(p + 1, ' '))
		v[i++] = strtoul(p + 1, NULL, 10);
	/* The fields' numbers are those of proc_pid_stat(5). */
	map = (struct prctl_mm_map){ .start_code = v[26],
				     .end_code = v[27],
				     .start_stack = v[28],
				     .start_data = v[45],
				     .end_data = v[46],
				     .start_brk = v[47],
				     .arg_start = v[48],
				     .arg_end = v[49],
				     .env_start = v[50],
				     .env_end = v[51],
				     .exe_fd = UINT32_MAX };
	map.brk = (uintptr_t)sbrk(0);
	map.auxv = (void *)vector->words;
	map.auxv_size = sizeof(vector->words);
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0))
		_exit(1);
}

START_TEST(test_program_of_roots_whose_vector_does_not_say_that_it_is_plain_is_refused)
{
	pid_t pid;

	vector = &vectors[_i];
	pid = start(root_with_vector, node);
	ck_assert_int_eq(ask_about(UVD_WIRE_PEER, pid, 0, 0), vector->err);
	uvd_wire_close(&fds);
	end(pid);
}
END_TEST

START_TEST(test_program_that_a_setuid_program_executes_as_root_is_roots)
{
	pid_t waits, pid = start_executed(EXECUTES_AS_ROOT, &waits);

	ck_assert_int_eq(ask_about(UVD_WIRE_PEER, waits, 0, 0), 0);
	uvd_wire_close(&fds);
	check_loan_is_made(waits);
	end(pid);
}
END_TEST

/* ---- the user of a loan's process --------------------------------------------------------------------------------- */

/* Calls act(pid) as the user, in a process of its own. Returns what that returns, 0 to 255. */
static int as_user(int (*act)(pid_t pid), pid_t pid)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		user();
		_exit(act(pid));
	}
	ck_assert(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Returns the number of the attempts that have succeeded, or 255: the process is not this user's. */
static int user_looks_inside(pid_t pid)
{
	static const char *const files[] = { "mem", "maps", "fd/3", "auxv", "environ", "pagemap", "syscall" };
	char path[64], bytes[8];
	struct iovec local = { bytes, sizeof(bytes) }, remote = { (void *)&secret, sizeof(bytes) };
	int pidfd = syscall(SYS_pidfd_open, pid, 0), n = 0;

	if (kill(pid, 0))
		return 255;
	for (unsigned int i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		n += open(path, O_RDONLY) >= 0;
	}
	n += syscall(SYS_pidfd_getfd, pidfd, 3, 0) >= 0;
	n += process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0;
	n += ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	return n;
}

static int user_stops(pid_t pid)
{
	return kill(pid, SIGSTOP) ? 1 : 0;
}

static int user_kills(pid_t pid)
{
	return kill(pid, SIGKILL) ? 1 : 0;
}

static int user_takes_descriptors(pid_t pid)
{
	return prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }, NULL) ? 1 : 0;
}

static int user_takes_processes(pid_t pid)
{
	return prlimit(pid, RLIMIT_NPROC, &(struct rlimit){ 0, 0 }, NULL) ? 1 : 0;
}

static int user_takes_memory(pid_t pid)
{
	return prlimit(pid, RLIMIT_AS, &(struct rlimit){ 0, 0 }, NULL) ? 1 : 0;
}

START_TEST(test_user_of_a_loans_process_cannot_look_inside)
{
	pid_t client = start(user, node), pid;
	int sock;

	pid = serve_loan(client, &sock);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	ck_assert_int_eq(as_user(user_looks_inside, pid), 0);
	close(sock);
	waitpid(pid, NULL, 0);
	end(client);
}
END_TEST

/* The client loses its loan, and its life at most. The broker kills a loan's process that its user has stopped. */
START_TEST(test_user_who_limits_a_loans_process_harms_the_own_client_alone)
{
	static int (*const acts[])(pid_t pid) = { user_stops, user_kills, user_takes_descriptors, user_takes_processes,
						  user_takes_memory };
	int sock, pair[2], status = 0, ret;
	pid_t client = start(user, node), pid;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	pid = serve_loan(client, &sock);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = client }, -1), 0);
	ck_assert_int_eq(as_user(acts[_i], pid), 0);
	if (acts[_i] == user_stops)
		kill(pid, SIGKILL);
	tcflow(node, TCOON);
	ret = ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_TAKE }, pair[0]);
	ck_assert_msg(ret == -EPIPE || ret < 0 || ret > 2, "%d", ret);
	close(sock);
	ck_assert(waitpid(client, &status, 0) == client && waitpid(pid, NULL, 0) == pid);
	ck_assert(WIFEXITED(status) ? !WEXITSTATUS(status) : WTERMSIG(status) == SIGKILL);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *t;

	if (argc == 4)
		return executed_main(argv);
	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	t = tcase_create("rights");
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_setuid_program_that_acts_as_root_gives_nothing, ACTS_AS_ROOT, EXECUTES_AS_ROOT);
	tcase_add_loop_test(t, test_program_of_roots_whose_vector_does_not_say_that_it_is_plain_is_refused, 0,
			    sizeof(vectors) / sizeof(vectors[0]));
	tcase_add_test(t, test_program_that_a_setuid_program_executes_as_root_is_roots);
	tcase_add_test(t, test_user_of_a_loans_process_cannot_look_inside);
	tcase_add_loop_test(t, test_user_who_limits_a_loans_process_harms_the_own_client_alone, 0, 5);
	return run_suite("rights", t);
}
