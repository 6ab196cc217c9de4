/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Logs requests that failed. */
#include <errno.h>
#include <stdio.h>
#include <uverbsd/log.h>

#include "dispatch/internal.h"

/*
 * Programs try what a device can do, and what is still in use. So these failures need not be anybody's mistake: each
 * kind is told once for a process, at a level that `run` does not show by default.
 */
static bool is_probe(const struct uvd_req *req, int err)
{
	return req->refused || err == -EBUSY || err == -EOPNOTSUPP;
}

static int process_of(struct uvd_req *req)
{
	const pid_t tgid = uvd_caller_tgid(req->caller);

	return tgid > 0 ? tgid : req->caller->tid;
}

static void log_probe(struct uvd_req *req, struct uvd_log *log, const char *what, int err)
{
	const char *dev = req->dev->config.ibdev, *name = uvd_errno_name(err);
	const int pid = process_of(req);
	char kind[192];

	snprintf(kind, sizeof(kind), "%s: %s: %s: %s", dev, what, req->bad_field ?: "", name);
	if (!uvd_log_first(log, pid, kind))
		return;
	if (req->refused)
		uvd_log_of_user(log, req->caller->log_user, UVD_INFO, "%s: %s: the device refuses this: %s, pid %d",
				dev, what, name, pid);
	else
		uvd_log_of_user(log, req->caller->log_user, UVD_INFO, "%s: %s: %s (%lld, 0x%llx) is %s: %s, pid %d",
				dev, what, req->bad_field, (long long)req->bad_value,
				(unsigned long long)req->bad_value, err == -EBUSY ? "still in use" : "not supported",
				name, pid);
}

void uvd_req_log_failure(struct uvd_req *req, int err)
{
	struct uvd_log *log = req->dev->engine->log;
	const char *name = req->name ? req->name : req->front == UVD_FRONT_WRITE ? "write" : "ioctl";
	const char *dev = req->dev->config.ibdev;
	char field[96];

	if (req->caller->refusal_logged)
		return;
	if ((!req->bad_field && !req->refused) || err == -EPROTONOSUPPORT || err == -EIO) {
		/* No field is wrong, the program asks whether a command exists, or its device is gone. */
		snprintf(field, sizeof(field), ", %s %lld", req->bad_field ?: "", (long long)req->bad_value);
		uvd_log_of_user(log, req->caller->log_user, UVD_DEBUG, "%s: %s: %s%s, thread %d", dev, name,
				uvd_errno_name(err), req->bad_field ? field : "", req->caller->tid);
	} else if (!is_probe(req, err)) {
		uvd_log_of_user(log, req->caller->log_user, UVD_WARN, "%s: %s: %s is wrong (%lld, 0x%llx): %s, pid %d",
				dev, name, req->bad_field, (long long)req->bad_value,
				(unsigned long long)req->bad_value, uvd_errno_name(err), process_of(req));
	} else if (uvd_log_shows(log, UVD_INFO)) {
		log_probe(req, log, name, err);
	}
}
