/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Logs and explains requests that failed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- what keeps an object ---------------------------------------------------------------------------------------- */

/* USERS: objects of the file that are looked at. TYPES: of objects that a line tells. */
enum { USERS = 4096, TYPES = 8 };

struct busy_users {
	struct {
		const char *name; /* of the type, UVERBS_OBJECT_MR */
		uint16_t type;
		unsigned int num;
	} list[TYPES];
	unsigned int num;
};

static void busy_add(struct busy_users *users, const struct uvd_device *dev, const struct uvd_object_copy *copy)
{
	unsigned int i = 0;

	while (i < users->num && users->list[i].type != copy->type)
		i++;
	if (i == TYPES)
		return;
	if (i == users->num) {
		users->list[i].type = copy->type;
		users->list[i].name = dev->object_counts[copy->count].name;
		users->num++;
	}
	users->list[i].num++;
}

/* Counts the objects of the file that belong to the one whose handle is req->bad_value. */
static void busy_count(const struct uvd_req *req, struct busy_users *users)
{
	struct uvd_object_copy *copies = malloc(USERS * sizeof(*copies));
	const unsigned int num = copies ? uvd_file_copy_objects(req->file, copies, USERS) : 0;
	const void *self = NULL;

	for (unsigned int i = 0; i < num; i++)
		if (copies[i].type == req->bad_type && copies[i].has_handle && copies[i].handle == req->bad_value)
			self = copies[i].facts.self;
	for (unsigned int i = 0; i < num && self; i++)
		if (copies[i].facts.parent == self && copies[i].facts.parent_type == req->bad_type)
			busy_add(users, req->dev, &copies[i]);
	free(copies);
}

/* Writes "still used by 2 MRs and 1 QP", or "still in use" if the users are not known. */
static void busy_text(const struct uvd_req *req, char *text, size_t size)
{
	static const char prefix[] = "UVERBS_OBJECT_";
	struct busy_users users = { .num = 0 };
	size_t len;

	if (req->bad_type)
		busy_count(req, &users);
	len = snprintf(text, size, users.num ? "still used by" : "still in use");
	for (unsigned int i = 0; i < users.num && len < size; i++) {
		const char *name = users.list[i].name, *between = !i ? "" : i + 1 == users.num ? " and" : ",";

		if (!strncmp(name, prefix, strlen(prefix)))
			name += strlen(prefix);
		len += snprintf(text + len, size - len, "%s %u %s%s", between, users.list[i].num, name,
				users.list[i].num == 1 ? "" : "s");
	}
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Returns the reason: that of the request, or else that a field is wrong. */
static struct uvd_why failure_why(const struct uvd_req *req)
{
	if (req->has_why)
		return uvd_buffers((struct uvd_req *)req)->why;
	return uvd_why(FIELD, { .word = req->bad_field }, { req->bad_value });
}

static void log_probe(struct uvd_req *req, struct uvd_log *log, const char *what, int err)
{
	const char *dev = req->dev->config.ibdev, *name = uvd_errno_name(err);
	const struct uvd_why why = failure_why(req);
	const int pid = process_of(req);
	char kind[192], text[UVD_EXPLAINED_TEXT];

	snprintf(kind, sizeof(kind), "%s: %s: %s: %s", dev, what,
		 req->has_why ? why.reason->code : req->bad_field ?: "", name);
	if (!uvd_log_first(log, pid, kind))
		return;
	if (req->has_why)
		uvd_why_text(text, sizeof(text), &why);
	else if (req->refused)
		snprintf(text, sizeof(text), "the device refuses this");
	else {
		char state[160] = "not supported";

		if (err == -EBUSY)
			busy_text(req, state, sizeof(state));
		snprintf(text, sizeof(text), "%s (%lld, 0x%llx) is %s", req->bad_field, (long long)req->bad_value,
			 (unsigned long long)req->bad_value, state);
	}
	uvd_log_of_user(log, req->caller->log_user, UVD_INFO, "%s: %s: %s: %s, pid %d", dev, what, text, name, pid);
}

static void failure_explain(struct uvd_req *req, const char *what, int err)
{
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_CALL,
		.why = failure_why(req),
		.object = req->about,
		.number = req->about_number,
		.pid = process_of(req),
		.verb = what,
		.err = err,
	};

	uvd_file_explain(req->dev, req->file, req->caller->log_user, &e);
}

void uvd_req_log_failure(struct uvd_req *req, int err)
{
	struct uvd_log *log = req->dev->engine->log;
	const char *name = req->name ? req->name : req->front == UVD_FRONT_WRITE ? "write" : "ioctl";
	const char *dev = req->dev->config.ibdev;
	char field[96];

	if (req->caller->is_explained)
		return;
	if ((!req->bad_field && !req->refused && !req->has_why) || err == -EPROTONOSUPPORT || err == -EIO) {
		/* No field is wrong, the program asks whether a command exists, or its device is gone. */
		snprintf(field, sizeof(field), ", %s %lld", req->bad_field ?: "", (long long)req->bad_value);
		uvd_log_of_user(log, req->caller->log_user, UVD_DEBUG, "%s: %s: %s%s, thread %d", dev, name,
				uvd_errno_name(err), req->bad_field ? field : "", req->caller->tid);
	} else if (!is_probe(req, err)) {
		failure_explain(req, name, err);
	} else if (uvd_log_shows(log, UVD_INFO)) {
		log_probe(req, log, name, err);
	}
}
