/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The counters of a port: ports/N/counters, with the names of the kernel's core (drivers/infiniband/core/sysfs.c), and
 * ports/N/hw_counters, with those of the persona's driver.
 *
 * A counter never falls, so its text never gets shorter, and one write() at the start of the file replaces it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "persona/persona.h"
#include "sysfs/internal.h"

/* The counters with extended width, and port_xmit_wait. Those of events that a soft port does not have show 0. */
static const struct uvd_counter_file core_counters[] = {
	{ "symbol_error" },
	{ "link_error_recovery" },
	{ "link_downed", 1u << UVD_PORT_LINK_DOWNED },
	{ "port_rcv_errors" },
	{ "port_rcv_remote_physical_errors" },
	{ "port_rcv_switch_relay_errors" },
	{ "port_xmit_discards", 1u << UVD_PORT_XMIT_DISCARDS },
	{ "port_xmit_constraint_errors" },
	{ "port_rcv_constraint_errors" },
	{ "local_link_integrity_errors" },
	{ "excessive_buffer_overrun_errors" },
	{ "VL15_dropped" },
	{ "port_xmit_data", 1u << UVD_PORT_XMIT_WORDS },
	{ "port_rcv_data", 1u << UVD_PORT_RCV_WORDS },
	{ "port_xmit_packets", 1u << UVD_PORT_UNICAST_XMIT | 1u << UVD_PORT_MULTICAST_XMIT },
	{ "port_rcv_packets", 1u << UVD_PORT_UNICAST_RCV | 1u << UVD_PORT_MULTICAST_RCV },
	{ "port_xmit_wait" },
	{ "unicast_rcv_packets", 1u << UVD_PORT_UNICAST_RCV },
	{ "unicast_xmit_packets", 1u << UVD_PORT_UNICAST_XMIT },
	{ "multicast_rcv_packets", 1u << UVD_PORT_MULTICAST_RCV },
	{ "multicast_xmit_packets", 1u << UVD_PORT_MULTICAST_XMIT },
	{ NULL },
};

/* The text of ports/N/hw_counters/lifespan: the age in ms that no value exceeds. It cannot be set. */
enum { LIFESPAN_MS = 1000 };

static uint64_t counter_sum(const struct uvd_counter_file *file, const uint64_t *values)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < UVD_PORT_COUNTERS; i++)
		if (file->counters & 1u << i)
			sum += values[i];
	return sum;
}

static void counter_path(char path[96], unsigned int port, const char *folder, const char *name)
{
	snprintf(path, 96, "ports/%u/%s/%s", port, folder, name);
}

static int fill_folder(int dir, unsigned int port, const char *folder, const struct uvd_counter_file *file)
{
	char path[96];
	int err = 0;

	for (; file->name && !err; file++) {
		counter_path(path, port, folder, file->name);
		err = uvd_dir_put(dir, path, "0\n");
		/* Without root's rights, only a mode with S_IWUSR lets us open the file again. (The kernel's are 0444.) */
		if (!err && fchmodat(dir, path, 0644, 0))
			err = -errno;
	}
	return err;
}

int uvd_sysfs_fill_counters(int dir, unsigned int port, const struct uvd_persona *persona)
{
	int err = fill_folder(dir, port, "counters", core_counters);
	char path[96];

	err = err ? err : fill_folder(dir, port, "hw_counters", persona->hw_counters);
	counter_path(path, port, "hw_counters", "lifespan");
	return err ? err : uvd_dir_put(dir, path, "%d\n", LIFESPAN_MS);
}

static int counter_write(int dir, const char *path, uint64_t value)
{
	/* Under `run` the client owns the folder too, and may have put a FIFO there: do not wait for its reader. */
	int fd = openat(dir, path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = 0;
	struct stat st;
	char text[24];
	int len;

	if (fd < 0)
		return -errno;
	len = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (pwrite(fd, text, len, 0) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Returns the first error, after it has tried all files. */
static int update_folder(int dir, unsigned int port, const char *folder, const struct uvd_counter_file *file,
			 const uint64_t *before, const uint64_t *values)
{
	char path[96];
	int err = 0;

	for (; file->name; file++) {
		const uint64_t value = counter_sum(file, values);
		int ret;

		if (value <= counter_sum(file, before))
			continue;
		counter_path(path, port, folder, file->name);
		ret = counter_write(dir, path, value);
		err = err ? err : ret;
	}
	return err;
}

int uvd_sysfs_update_counters(int dir, unsigned int port, const struct uvd_persona *persona,
			      struct uvd_sysfs_counters *shown, const uint64_t *values)
{
	uint64_t *before = shown->ports[port - 1], now[UVD_PORT_COUNTERS];
	int err, ret;

	for (unsigned int i = 0; i < UVD_PORT_COUNTERS; i++)
		now[i] = values[i] > before[i] ? values[i] : before[i];
	err = update_folder(dir, port, "counters", core_counters, before, now);
	ret = update_folder(dir, port, "hw_counters", persona->hw_counters, before, now);
	memcpy(before, now, sizeof(now)); /* a file that cannot be written is tried again when its value changes */
	return err ? err : ret;
}
