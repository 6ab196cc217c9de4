/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Adds to a status how much memory each process may register: the daemon does not read clients' limits for a status. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

enum { CAP_IPC_LOCK_BIT = 14, NEAR_PERCENT = 80 /* of its limit: near it */ };

static FILE *status_open_proc(long long pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lld/%s", pid, name);
	return fopen(path, "re");
}

static bool status_may_lock(long long pid)
{
	unsigned long long caps = 0;
	FILE *file = status_open_proc(pid, "status");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (file)
		fclose(file);
	return caps >> CAP_IPC_LOCK_BIT & 1;
}

/* Returns the soft RLIMIT_MEMLOCK in bytes; -1: there is none, or it is not known. */
static long long status_memlock_limit(long long pid)
{
	FILE *file = status_open_proc(pid, "limits");
	long long bytes = -1;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Max locked memory %lld", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

/* The smallest limit of the devices. Returns bytes; -1: there is none. *clients: a device wants the client's. */
static long long smallest_of_devices(const json_t *status, bool *clients)
{
	const json_t *device, *limit;
	long long bytes = -1;
	size_t i;

	*clients = false;
	json_array_foreach(json_object_get(status, "devices"), i, device) {
		limit = json_object_get(device, "memlock");
		if (json_is_string(limit) && !strcmp(json_string_value(limit), "client"))
			*clients = true;
		if (json_is_integer(limit) && (bytes < 0 || json_integer_value(limit) < bytes))
			bytes = json_integer_value(limit);
	}
	return bytes;
}

void uvd_status_add_limits(json_t *status)
{
	const long page = sysconf(_SC_PAGESIZE);
	long long device, bytes, own;
	json_t *entry;
	bool clients;
	size_t i;

	device = smallest_of_devices(status, &clients);
	json_array_foreach(json_object_get(status, "memlock"), i, entry) {
		const long long pid = uvd_status_value(entry, "pid");

		bytes = device;
		own = clients && pid > 0 && !status_may_lock(pid) ? status_memlock_limit(pid) : -1;
		if (own >= 0 && (bytes < 0 || own < bytes))
			bytes = own;
		json_object_set_new(entry, "limit", bytes < 0 ? json_null() : json_integer(bytes / page));
		json_object_set_new(entry, "near",
				    json_boolean(bytes >= 0 && uvd_status_value(entry, "pages") * 100.0 >=
								       (double)(bytes / page) * NEAR_PERCENT));
	}
}
