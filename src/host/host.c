/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "host/host.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "objects/objects.h"
#include "util/util.h"

enum { CHARGED_WAIT_US = 2000 };

/* ---- the engine -------------------------------------------------------------------------------------------------- */

int uvd_host_engine(struct uvd_engine *engine, const struct uvd_account_limits *limits, struct uvd_log *log)
{
	return uvd_engine_init(engine, uvd_object_plugins, limits, log);
}

struct uvd_account *uvd_host_account(struct uvd_engine *engine, uid_t uid)
{
	return uvd_account_get(engine->accounts, &uid, 1);
}

struct charged {
	char *text;
	size_t size;
};

/* uvd_accounts_each() calls this for each resource that somebody is charged for. */
static void charged_add(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	struct charged *c = arg;
	const size_t len = strlen(c->text);

	snprintf(c->text + len, c->size - len, "%s%" PRIu64 " %s charged", len ? ", " : "", used,
		 uvd_limit_rows[res].what ? uvd_limit_rows[res].what : "objects");
}

bool uvd_host_charged(struct uvd_engine *engine, char *text, size_t size, unsigned int seconds)
{
	const uint64_t end = uvd_now_ns() + seconds * UINT64_C(1000000000);
	struct charged c = { text, size };

	for (;;) {
		text[0] = 0;
		uvd_accounts_each(engine->accounts, charged_add, &c);
		if (!text[0])
			return false;
		if (uvd_now_ns() >= end)
			return true;
		usleep(CHARGED_WAIT_US);
	}
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct uvd_caller uvd_host_caller(const struct uvd_mem_ops *mem, struct uvd_proc *proc, struct uvd_account *account)
{
	return (struct uvd_caller){
		.mem = mem,
		.proc = proc,
		.tid = gettid(),
		.tgid = getpid(),
		.memfd = -1,
		.mapsfd = -1,
		.account = account,
	};
}

static int own_fd_add(int fd)
{
	return fd;
}

static void own_fd_take(int number)
{
	close(number);
}

const struct uvd_host_fds uvd_host_own_fds = { .add = own_fd_add, .take = own_fd_take };

long uvd_host_finish(struct uvd_call *call, long ret, const struct uvd_host_fds *fds, int refuse, int *number)
{
	int fd;

	*number = -1;
	if (ret < 0 || !call->grant.uobj)
		return ret;
	fd = refuse ? -refuse : uvd_event_file_open(call->grant.file);
	if (fd >= 0)
		fd = fds->add(fd);
	ret = uvd_call_granted(call, fd);
	if (ret < 0 && fd >= 0)
		fds->take(fd);
	else if (fd >= 0)
		*number = fd;
	return ret;
}
