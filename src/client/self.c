/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What this room needs to know of our own process and machine. A sandboxed engine process can look up neither: it uses
 * the cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"

static struct {
	bool kept, have_user_ns; /* kept: the cache is filled */
	struct stat user_ns;
	int fds; /* /proc/self/fd */
	unsigned int cpus;
	struct uvd_port_range ports;
} self = { .fds = -1 };

bool uvd_self_user_ns(struct stat *st)
{
	if (!self.kept)
		return !stat("/proc/self/ns/user", st);
	*st = self.user_ns;
	errno = self.have_user_ns ? 0 : ENOENT;
	return self.have_user_ns;
}

int uvd_self_fd_link(int fd, char *link, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), self.kept ? "%d" : "/proc/self/fd/%d", fd);
	return readlinkat(self.fds, path, link, size);
}

/* Returns the number of the highest possible CPU plus 1, from a list like "0-3,8". */
static unsigned int read_cpu_ids(void)
{
	char list[4096] = "", *last;
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, list, sizeof(list) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return sysconf(_SC_NPROCESSORS_CONF);
	for (last = list + n; last > list && !strchr(",-", last[-1]); last--)
		;
	return strtoul(last, NULL, 10) + 1;
}

unsigned int uvd_num_cpu_ids(void)
{
	return self.kept ? self.cpus : read_cpu_ids();
}

/* Without a network of its own a process has none of the kernel's either: these are the kernel's defaults. */
static struct uvd_port_range read_port_range(void)
{
	struct uvd_port_range range = {};
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

	if (!f || fscanf(f, "%u %u", &range.first, &range.last) != 2 || !range.first || range.first > range.last ||
	    range.last > UINT16_MAX)
		range = (struct uvd_port_range){ 32768, 60999 };
	if (f)
		fclose(f);
	return range;
}

struct uvd_port_range uvd_local_ports(void)
{
	return self.kept ? self.ports : read_port_range();
}

void uvd_client_prepare(void)
{
	self.have_user_ns = !stat("/proc/self/ns/user", &self.user_ns);
	self.fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	self.cpus = read_cpu_ids();
	self.ports = read_port_range();
	self.kept = true;
}
