/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Several runs share the engine of the first one, which the others find by name. A lock file decides which run is
 * first: that run holds the lock until others can connect. The engine takes the lock before it exits, so no run
 * connects to an engine that is about to exit.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "options/options.h"
#include "run/launch.h"
#include "util/util.h"

enum { JOIN_SECONDS = 30 };

static int join_complain(const char *what, int err)
{
	fprintf(stderr, "uverbsctl run: --join: %s: %s\n", what, uvd_errno_name(err));
	return -1;
}

/* Makes the folder of the sockets, which no other user can write to. Returns 0, or -1 after a message. */
static int make_dir(char *dir, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (runtime && *runtime == '/' && !access(runtime, W_OK)) {
		/* Cut off, it would be another folder. */
		if ((size_t)snprintf(dir, size, "%s/uverbsd", runtime) >= size)
			return join_complain(runtime, ENAMETOOLONG);
	} else if (runtime && *runtime == '/' && errno == EROFS) {
		/* Another container may have it writable: in /tmp the runs would not meet. */
		fprintf(stderr,
			"uverbsctl run: --join: XDG_RUNTIME_DIR is %s: EROFS: mount it writable, or unset XDG_RUNTIME_DIR to use /tmp\n",
			runtime);
		return -1;
	} else {
		snprintf(dir, size, "/tmp/uverbsd-%u", geteuid());
	}
	if (mkdir(dir, 0700) && errno != EEXIST) {
		fprintf(stderr,
			"uverbsctl run: --join: cannot make %s: %s: set XDG_RUNTIME_DIR to a folder that can be written\n",
			dir, uvd_errno_name(errno));
		return -1;
	}
	if (lstat(dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return join_complain(dir, EPERM);
	return 0;
}

static int listen_at(const struct sockaddr_un *addr)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	unlink(addr->sun_path); /* left behind by an engine that died */
	if (sock >= 0 && !bind(sock, (const void *)addr, sizeof(*addr)) && !listen(sock, 64))
		return sock;
	return join_complain(addr->sun_path, errno);
}

/* Waits at most JOIN_SECONDS for an engine that does not accept, or that does not greet. */
static int join_connect(const struct sockaddr_un *addr)
{
	const struct timeval patience = { .tv_sec = JOIN_SECONDS };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock >= 0 && !setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) &&
	    !setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
	    !connect(sock, (const void *)addr, sizeof(*addr)))
		return sock;
	if (sock >= 0) {
		const int err = errno;

		close(sock);
		errno = err;
	}
	return -1;
}

static bool good_name(const char *name)
{
	return *name && strlen(name) < 40 && *name != '.' && !strchr(name, '/');
}

/* Makes the address of the runs of that name, in the folder dir. Returns 0, or -1 after a message. */
static int join_address(const char *name, struct sockaddr_un *addr, char dir[100])
{
	char path[160];

	addr->sun_family = AF_UNIX;
	if (!good_name(name))
		return join_complain(name, EINVAL);
	if (make_dir(dir, 100))
		return -1;
	snprintf(path, sizeof(path), "%s/%s.sock", dir, name);
	if (strlen(path) >= sizeof(addr->sun_path))
		return join_complain(path, ENAMETOOLONG);
	strcpy(addr->sun_path, path);
	return 0;
}

/* The engine greets each run that connects with the path of its folder. */
bool uvd_run_find(const char *name, char path[PATH_MAX])
{
	struct sockaddr_un addr = { 0 };
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS], sock;
	char dir[100];
	bool found;

	if (join_address(name, &addr, dir))
		return false;
	sock = join_connect(&addr);
	found = sock >= 0 && !uvd_run_receive(sock, &msg, fds) && msg.kind == UVD_RUN_READY;
	if (sock >= 0)
		close(sock);
	if (found)
		snprintf(path, PATH_MAX, "%.4000s/" UVD_RUN_CONTROL, msg.root);
	else
		fprintf(stderr, "uverbsctl: --run %s: no run of yours was started with `--join %s`\n", name, name);
	return found;
}

/* The engine has its plug-ins already. */
static int join_refuse_plugins(const struct uvd_run_options *options)
{
	if (!options->parsed->num_plugins)
		return 0;
	fprintf(stderr,
		"uverbsctl run: --plugin: the devices of --join %s exist already: load it by `uverbsctl plugin --run %s "
		"load FILE`\n",
		options->join, options->join);
	return -1;
}

/* The engine belongs to another run. */
static int join_refuse_trace(const struct uvd_run_options *options)
{
	if (!options->trace)
		return 0;
	fprintf(stderr,
		"uverbsctl run: --trace: the devices of --join %s exist already: use `uverbsctl trace --run %s`\n",
		options->join, options->join);
	return -1;
}

static int join_refuse_pcap(const struct uvd_run_options *options)
{
	if (!options->pcap)
		return 0;
	fprintf(stderr,
		"uverbsctl run: --pcap: the devices of --join %s exist already: give --pcap to the run that starts them\n",
		options->join);
	return -1;
}

static int join_refuse_report(const struct uvd_run_options *options)
{
	if (!options->report)
		return 0;
	fprintf(stderr,
		"uverbsctl run: --report: the devices of --join %s exist already: give --report to the run that starts them\n",
		options->join);
	return -1;
}

/* A run has the lock for a moment, unless it is stopped: does not wait for that for ever. Returns 0, or -1 and errno. */
static int join_take_lock(int fd)
{
	const uint64_t end = uvd_now_ns() + JOIN_SECONDS * UINT64_C(1000000000);

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || uvd_now_ns() > end)
			return -1;
		usleep(1000);
	}
	return 0;
}

int uvd_run_join(struct uvd_run_launch *l)
{
	struct sockaddr_un addr = { 0 };
	char dir[100], path[160];

	if (join_address(l->options->join, &addr, dir))
		return -1;
	strcpy(l->join_path, addr.sun_path);
	snprintf(path, sizeof(path), "%s/%s.lock", dir, l->options->join);
	l->join_lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (l->join_lock < 0 || join_take_lock(l->join_lock))
		return join_complain(path, errno);
	l->link = join_connect(&addr);
	l->joined = l->link >= 0;
	if (!l->joined && errno == EAGAIN)
		return join_complain(addr.sun_path, ETIMEDOUT);
	if (l->joined && (join_refuse_plugins(l->options) || join_refuse_trace(l->options) ||
			  join_refuse_pcap(l->options) || join_refuse_report(l->options)))
		return -1;
	if (!l->joined)
		l->join_sock = listen_at(&addr);
	/* The engine does not exit while a connection waits to be accepted, so the lock is not needed any longer. */
	flock(l->join_lock, LOCK_UN);
	return l->joined || l->join_sock >= 0 ? 0 : -1;
}

bool uvd_run_join_end(struct uvd_run_launch *l)
{
	struct pollfd p = { .fd = l->join_sock, .events = POLLIN };
	bool end;

	/* A run that has the lock may be about to connect: the engine stays, and looks again. */
	if (flock(l->join_lock, LOCK_EX | LOCK_NB))
		return false;
	end = poll(&p, 1, 0) == 0;
	if (end) {
		unlink(l->join_path);
		close(l->join_sock);
		l->join_sock = -1;
	}
	flock(l->join_lock, LOCK_UN);
	return end;
}

static uint64_t join_ns_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t uvd_run_pid_ns(void)
{
	return join_ns_inode("/proc/self/ns/pid");
}

uint64_t uvd_run_net_ns(void)
{
	return join_ns_inode("/proc/self/ns/net");
}

/* The devices' addresses are those of the first run's network namespace: in another one they are not this machine's. */
bool uvd_run_may_join(const struct uvd_run_options *options, const struct uvd_run_msg *ready)
{
	const struct uvd_wire_options *wanted = &options->parsed->wire;
	char mine[UVD_WIRE_TEXT], its[UVD_WIRE_TEXT];

	if (ready->wire.num > UVD_MAX_WIRES) {
		fprintf(stderr, "uverbsctl run: --join %s: EPROTO: the first run is of another version\n",
			options->join);
		return false;
	}
	uvd_options_wire_text(wanted, mine);
	uvd_options_wire_text(&ready->wire, its);
	if (wanted->num && !uvd_options_same_wire(wanted, &ready->wire)) {
		fprintf(stderr,
			"uverbsctl run: --wire %s: the devices of --join %s exist already, %s%s: leave --wire out, or use another "
			"name with --join\n",
			mine, options->join, *its ? "with --wire " : "without --wire", its);
		return false;
	}
	if (ready->wire.num && ready->net_ns != uvd_run_net_ns()) {
		fprintf(stderr,
			"uverbsctl run: --join %s: its devices are on the wire (%s) in another network namespace: start this run in "
			"that one, or use another name and --wire\n",
			options->join, its);
		return false;
	}
	return true;
}

bool uvd_run_is_outside(int link)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &len) && !peer.pid;
}
