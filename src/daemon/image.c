/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * With two processes, the engine process executes this program anew: so its addresses differ from the broker's, and
 * after an upgrade it can be another version. It gets the broker's command line, and three descriptors and the sockets on
 * the wire at fixed numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/internal.h"
#include "util/util.h"

int uvd_image_copy_config(const char *path)
{
	int from = open(path[0] ? path : "/dev/null", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int to = memfd_create("uverbsd.conf", MFD_CLOEXEC);
	char buf[4096];
	struct stat st;
	ssize_t n = -1;

	if (from >= 0 && to >= 0 && !fstat(from, &st) && (S_ISREG(st.st_mode) || !path[0]))
		while ((n = read(from, buf, sizeof(buf))) > 0 && write(to, buf, n) == n)
			;
	if (from >= 0)
		close(from);
	if (n && to >= 0) {
		close(to);
		to = -1;
	}
	return to;
}

bool uvd_image_init(struct uvd_image *p, const struct uvd_options *options, struct uvd_log *log)
{
	ssize_t len = readlink("/proc/self/exe", p->path, sizeof(p->path) - 1);
	int err;

	p->path[len > 0 ? len : 0] = 0;
	p->options = options;
	p->exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	err = errno;
	p->config = uvd_image_copy_config(options->config);
	if (p->exe >= 0 && p->config >= 0)
		return true;
	if (p->exe < 0)
		uvd_logf(log, UVD_ERR, "cannot open /proc/self/exe: %s%s", uvd_errno_name(err),
			 err == ENOENT ? ": this process is not in /proc: mount proc on /proc" : "");
	else
		uvd_logf(
			log, UVD_ERR,
			"--config %s: it must be a regular file, because both processes read it; with --separate no one does",
			options->config);
	return false;
}

void uvd_image_fini(struct uvd_image *p)
{
	if (p->exe >= 0)
		close(p->exe);
	if (p->config >= 0)
		close(p->config);
}

void uvd_image_set_config(struct uvd_image *p, int config)
{
	close(p->config);
	p->config = config;
}

/* Opens the installed program. Refuses it if another user can replace it, as root executes it. */
static int image_open_installed(const char *path, char culprit[PATH_MAX])
{
	struct stat st;
	int fd;

	strcpy(culprit, path);
	if (!uvd_dir_is_ours(path, culprit))
		return -EPERM;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_mode & S_IXUSR)
		return fd;
	close(fd);
	return -EACCES;
}

void uvd_image_update(struct uvd_image *p, struct uvd_log *log)
{
	char culprit[PATH_MAX];
	int fd = image_open_installed(p->path, culprit);

	if (fd < 0) {
		uvd_logf(log, UVD_WARN, "%s: %s: the new engine process executes the old program, not an upgrade",
			 culprit, uvd_errno_name(fd));
		return;
	}
	close(p->exe);
	p->exe = fd;
}

enum { AFTER_SLOTS = UVD_WIRE_FIRST_SLOT + UVD_WIRE_SLOTS };

/* Moves the descriptors to their numbers, first to high ones so that none overwrites another. Closes all others. */
static bool image_place_fds(const struct uvd_image *p, int sock, int control, const struct uvd_slots *slots, int *exe)
{
	const unsigned int num_wires = p->options->wire.num, num = UVD_ENGINE_WIRE - UVD_ENGINE_SOCKET + num_wires + 1;
	int from[UVD_ENGINE_WIRE - UVD_ENGINE_SOCKET + UVD_MAX_WIRES + 1] = { sock, control, p->config };
	int high[UVD_COUNT(from)];

	memcpy(from + UVD_ENGINE_WIRE - UVD_ENGINE_SOCKET, p->wires, num_wires * sizeof(*from));
	from[num - 1] = *exe;
	for (unsigned int i = 0; i < num; i++) {
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, AFTER_SLOTS);
		if (high[i] < 0)
			return false;
	}
	if (!uvd_slots_place(slots))
		return false;
	*exe = UVD_ENGINE_WIRE + num_wires;
	for (unsigned int i = 0; i < num - 1; i++)
		if (dup2(high[i], UVD_ENGINE_SOCKET + i) < 0)
			return false;
	return dup3(high[num - 1], *exe, O_CLOEXEC) >= 0 && !close_range(*exe + 1, UVD_WIRE_FIRST_SLOT - 1, 0) &&
	       !close_range(AFTER_SLOTS, ~0u, 0);
}

/* Tells the engine process the wire: it must have the addresses of these sockets, and the GUIDs that are published. */
static void image_write_wire(const struct uvd_wire_options *wire, char *text, size_t size)
{
	char addresses[UVD_WIRE_TEXT];

	uvd_options_wire_text(wire, addresses);
	snprintf(text, size, "--internal-wire=%" PRIx64 ",%s", wire->guid, addresses);
}

int uvd_image_exec(const struct uvd_image *p, int sock, int control, const struct uvd_slots *slots, struct uvd_log *log)
{
	char **argv = calloc(p->options->argc + 4, sizeof(*argv));
	char wire[UVD_WIRE_TEXT + 64], machine[UVD_MACHINE_TEXT], told[UVD_MACHINE_TEXT + 32];
	int exe = p->exe, num = 0;

	if (argv && image_place_fds(p, sock, control, slots, &exe)) {
		argv[num++] = p->options->argv[0];
		argv[num++] = "--internal-engine";
		uvd_options_machine_text(&p->options->machine, machine);
		snprintf(told, sizeof(told), "--internal-machine=%s", machine);
		argv[num++] = told;
		if (p->options->wire.num) {
			image_write_wire(&p->options->wire, wire, sizeof(wire));
			argv[num++] = wire;
		}
		memcpy(argv + num, p->options->argv + 1, (p->options->argc - 1) * sizeof(*argv));
		syscall(SYS_execveat, exe, "", argv, environ, AT_EMPTY_PATH);
	}
	uvd_logf(log, UVD_ERR, "cannot execute the engine process: %s", uvd_errno_name(errno));
	free(argv);
	return 1;
}

static bool image_is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

bool uvd_image_is_engine(struct uvd_log *log)
{
	prctl(PR_SET_NAME, "uverbsd"); /* execveat() has set it to a descriptor's number */
	if (image_is_socket(UVD_ENGINE_SOCKET) && image_is_socket(UVD_ENGINE_CONTROL)) {
		fcntl(UVD_ENGINE_SOCKET, F_SETFD, FD_CLOEXEC);
		fcntl(UVD_ENGINE_CONTROL, F_SETFD, FD_CLOEXEC);
		close(UVD_ENGINE_CONFIG); /* it has been read */
		return true;
	}
	uvd_logf(log, UVD_ERR, "--internal-engine is for processes that uverbsd starts itself");
	return false;
}
