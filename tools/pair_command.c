/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl pair: runs a program as a server, and as its client. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "util/util.h"

enum { PAIR_LATE = 124 /* as timeout(1) */, PAIR_STEP_MS = 20, PAIR_PATIENCE_MS = 2000 };

struct pair_options {
	unsigned int port; /* 0: a free one */
	double limit; /* seconds; 0: none */
};

struct pair_process {
	pid_t pid;
	int fd; /* a pidfd */
	int output; /* what it has written */
};

static double pair_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Returns a TCP port that nobody listens on, or 0. */
static unsigned int pair_free_port(void)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6 };
	struct sockaddr_in addr4 = { .sin_family = AF_INET };
	int sock = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr *at = (struct sockaddr *)&addr;
	socklen_t len = sizeof(addr);
	unsigned int port = 0;

	if (sock < 0) { /* without IPv6 */
		sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		at = (struct sockaddr *)&addr4;
		len = sizeof(addr4);
	}
	if (sock >= 0 && !bind(sock, at, len) && !getsockname(sock, at, &len))
		port = ntohs(at->sa_family == AF_INET ? addr4.sin_port : addr.sin6_port);
	if (sock >= 0)
		close(sock);
	return port;
}

/* Starts `PROGRAM -p PORT ARG... [LAST]`. Returns false after a message. */
static bool pair_start(const struct uvd_args *args, struct pair_process *process, char *last)
{
	char **argv = calloc(args->num_words + 4, sizeof(*argv)), port[16];
	const pid_t parent = getpid();
	int n = 0;

	if (!argv)
		return false;
	snprintf(port, sizeof(port), "%u", ((const struct pair_options *)args->options)->port);
	argv[n++] = args->words[0];
	argv[n++] = "-p";
	argv[n++] = port;
	for (int i = 1; i < args->num_words; i++)
		argv[n++] = args->words[i];
	argv[n] = last;
	process->output = memfd_create("uverbsctl pair", MFD_CLOEXEC);
	process->pid = process->output < 0 ? -1 : fork();
	if (!process->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(127);
		dup2(process->output, STDOUT_FILENO);
		dup2(process->output, STDERR_FILENO);
		execvp(argv[0], argv);
		dprintf(STDERR_FILENO, "%s: %s: %s\n", args->who, argv[0], uvd_errno_name(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	free(argv);
	process->fd = process->pid < 0 ? -1 : syscall(SYS_pidfd_open, process->pid, 0);
	if (process->fd < 0)
		fprintf(stderr, "%s: no process: %s\n", args->who, uvd_errno_name(errno));
	return process->fd >= 0;
}

/* Does the process end within this time? Negative: it is waited for without a limit. */
static bool pair_ends(const struct pair_process *process, int ms)
{
	struct pollfd poll_fd = { .fd = process->fd, .events = POLLIN };
	int ret;

	do {
		ret = poll(&poll_fd, 1, ms);
	} while (ret < 0 && errno == EINTR);
	return ret > 0;
}

/* Ends the process if it has not ended. Returns its exit status, 128 and its signal if one has ended it. */
static int pair_stop(const struct pair_process *process)
{
	int status = 0;

	if (!pair_ends(process, 0))
		kill(process->pid, SIGTERM);
	if (!pair_ends(process, PAIR_PATIENCE_MS))
		kill(process->pid, SIGKILL);
	while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Does a process of this network namespace listen on the TCP port? */
static bool pair_listens(const char *table, unsigned int port)
{
	FILE *in = fopen(table, "re");
	unsigned int found, state;
	bool listens = false;
	char line[512];

	while (in && !listens && fgets(line, sizeof(line), in))
		listens = sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &found, &state) == 2 && found == port &&
			  state == 0x0a;
	if (in)
		fclose(in);
	return listens;
}

/* Waits until the server listens, has failed, or is late. Returns false if it is late. */
static bool pair_wait_server(const struct pair_process *server, unsigned int port, double end)
{
	while (!pair_listens("/proc/net/tcp", port) && !pair_listens("/proc/net/tcp6", port)) {
		if (pair_ends(server, PAIR_STEP_MS))
			return true;
		if (end && pair_now() > end)
			return false;
	}
	return true;
}

static void pair_copy_output(const struct pair_process *process)
{
	char block[4096];
	ssize_t len;
	off_t at = 0;

	while ((len = pread(process->output, block, sizeof(block), at)) > 0) {
		fwrite(block, 1, len, stdout);
		at += len;
	}
}

/* Runs the client. Returns its exit status. */
static int pair_run_client(const struct uvd_args *args, struct pair_process *client, double end)
{
	const double left = end - pair_now();
	bool is_late;
	int status;

	if (!pair_start(args, client, "127.0.0.1"))
		return 1;
	is_late = end && !pair_ends(client, left > 0 ? left * 1000 : 0);
	if (!end)
		pair_ends(client, -1);
	status = pair_stop(client);
	return is_late ? PAIR_LATE : status;
}

static void pair_close(const struct pair_process *process)
{
	if (process->fd >= 0)
		close(process->fd);
	if (process->output >= 0)
		close(process->output);
}

static int pair_command(const struct uvd_args *args)
{
	struct pair_options *o = args->options;
	struct pair_process server, client = { .fd = -1, .output = -1 };
	const double end = o->limit ? pair_now() + o->limit : 0;
	int status = PAIR_LATE;

	if (!o->port)
		o->port = pair_free_port();
	if (!pair_start(args, &server, NULL))
		return 1;
	if (pair_wait_server(&server, o->port, end))
		status = pair_run_client(args, &client, end);
	/* The server of a client that has succeeded is about to print and to end. */
	if (!status)
		pair_ends(&server, PAIR_PATIENCE_MS);
	pair_stop(&server);
	printf("client %d\n", status);
	pair_copy_output(&client);
	pair_copy_output(&server);
	pair_close(&client);
	pair_close(&server);
	return status;
}

const struct uvd_command uvd_command_pair = {
	.name = "pair",
	.purpose = "run a program as a server and as its client",
	.words = "PROGRAM [ARG...]",
	.synopses = (const char *const[]){ "uverbsctl pair [OPTION...] [--] PROGRAM [ARG...]", NULL },
	.stops = true,
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl run -- uverbsctl pair ibv_rc_pingpong -g 0", "both on a run's device" },
			{ "uverbsctl pair --limit 10 -- ib_send_bw -x 0 -n 1000",
			  "on the daemon's; end a client that hangs" },
			{ "uverbsctl pair --port 18600 -- ibv_ud_pingpong -g 0", "on this TCP port" },
			{},
		},
	.text =
		(const char *const[]){
			"Starts PROGRAM, one of the examples of libibverbs or of perftest, with the option -p PORT, as a server. When it listens "
			"on that TCP port, starts it again, with the last argument `127.0.0.1`, as a client. When the client has ended, a server "
			"that still waits is ended, two seconds later if the client has succeeded. Prints `client STATUS`, then what the client and the server have written.",
			NULL },
	.options =
		(const struct uvd_command_option[]){
			{ "port", .arg = "N", .help = "take this TCP port (default: a free one)", .min = 1,
			  .max = 65535, UVD_STORE(struct pair_options, port, NUMBER) },
			{ "limit", .arg = "SECONDS",
			  .help = "end the pair if it takes longer; the exit status is then 124", .min = 0.1,
			  .max = 1000000, UVD_STORE(struct pair_options, limit, REAL) },
			{},
		},
	.size = sizeof(struct pair_options),
	.exits =
		(const struct uvd_command_exit[]){
			{ "that of the client", "it has ended; 128 and its number for a signal" },
			{ "2", "the command line is wrong" },
			{ "124", "the pair took longer than --limit" },
			{ "126, 127", "PROGRAM cannot be executed, or is not found" },
			{},
		},
	.run = pair_command,
};
