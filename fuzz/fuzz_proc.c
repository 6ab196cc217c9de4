/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parsers of a client's /proc. The first byte chooses a file, the rest is its text. A client controls some of it: its
 * name, its mappings and their paths.
 */
#include <limits.h>
#include <stdlib.h>
#include <uverbsd/mm.h>

#include "client/internal.h"
#include "client/maps.h"
#include "client/mm.h"
#include "fuzz/client.h"
#include "fuzz/target.h"

enum { USERS = 4 };

static struct uvd_mm_table *proc_mms;

static void proc_init(void)
{
	fuzz_client_init();
	proc_mms = uvd_mm_table_new();
	if (!proc_mms)
		abort();
}

static void proc_identity(struct uvd_caller *c)
{
	struct uvd_identity id;
	uid_t users[USERS];

	c->tgid = 0;
	if (!uvd_caller_identity(c, &id))
		uvd_caller_capable_as(c, &id, 14);
	uvd_caller_users(c, users, USERS);
}

static bool proc_mapping(const struct uvd_mapping *m, uint64_t end, void *arg)
{
	if (end > m->end || m->end <= m->start)
		abort();
	return m->read;
}

static void proc_maps(struct uvd_caller *c)
{
	struct uvd_maps maps;

	for (int query = 0; query < 2; query++) {
		if (uvd_maps_open(&maps, c, query))
			abort();
		uvd_maps_all(&maps, FUZZ_MEMORY, FUZZ_MEMORY_END, proc_mapping, NULL);
		uvd_maps_close(&maps);
	}
}

/* stat and auxv, by which an address space is found, and maps, which is looked into later. */
static void proc_space(struct uvd_caller *c)
{
	struct uvd_mm *mm = uvd_mm_get(proc_mms, c);

	if (!mm)
		return;
	if (!uvd_mm_watch(mm, c))
		uvd_mm_check(mm, FUZZ_MEMORY, 4096, true);
	uvd_mm_put(mm);
}

static void proc_limits(struct uvd_caller *c)
{
	uint64_t bytes;

	c->tid = INT_MAX; /* prlimit() fails, so the text counts */
	uvd_caller_memlock(c, &bytes);
}

static void proc_fdinfo(struct uvd_caller *c)
{
	struct stat st;

	uvd_caller_fget(c, FUZZ_FILE, &st);
}

static const struct {
	const char *name;
	void (*parse)(struct uvd_caller *c);
} proc_files[] = {
	{ "status", proc_identity }, { "maps", proc_maps },	{ "maps", proc_space },	     { "stat", proc_space },
	{ "auxv", proc_space },	     { "limits", proc_limits }, { "fdinfo/9", proc_fdinfo },
};

static void proc_run(const uint8_t *data, size_t size)
{
	unsigned int i = size ? data[0] % (sizeof(proc_files) / sizeof(proc_files[0])) : 0;
	struct uvd_caller c = fuzz_client_caller(NULL);

	fuzz_client_lie(proc_files[i].name, size ? data + 1 : data, size ? size - 1 : 0);
	proc_files[i].parse(&c);
	fuzz_client_lie(NULL, NULL, 0);
}

const struct fuzz_target fuzz_target = { .name = "fuzz_proc", .init = proc_init, .run = proc_run };
