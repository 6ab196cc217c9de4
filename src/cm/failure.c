/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The causes of failures of commands, and a line of the log about each. */
#include <errno.h>
#include <inttypes.h>
#include <uverbsd/log.h>
#include "cm/command.h"

int cm_wrong(struct cm_cmd *c, const char *field, int64_t value, int err)
{
	c->wrong_field = field;
	c->wrong_value = value;
	return err;
}

int cm_wrong_state(struct cm_cmd *c, const struct cm_id *id)
{
	c->wrong_state = cm_state_name(id->state);
	return cm_wrong(c, "id", id->number, -EINVAL);
}

int cm_cmd_id(struct cm_cmd *c, uint32_t number, struct cm_id **id)
{
	const int err = cm_id_get(c->file, number, id);

	return err ? cm_wrong(c, "id", number, err) : 0;
}

int cm_cmd_id_bound(struct cm_cmd *c, uint32_t number, struct cm_id **id)
{
	const int err = cm_cmd_id(c, number, id);

	return err ?: (*id)->device ? 0 : cm_wrong_state(c, *id);
}

void cm_log_failure(struct cm_cmd *c, uint32_t number, const struct cm_row *row, int err)
{
	struct uvd_log *log = c->file->cm->engine->log;
	const uid_t user = c->caller->log_user;
	const char *name = row ? row->name + sizeof(CM_PREFIX) - 1 : "command";
	const pid_t tgid = uvd_caller_tgid(c->caller);
	const int pid = tgid > 0 ? tgid : c->caller->tid;

	if (c->wrong_state)
		uvd_log_of_user(log, user, UVD_WARN,
				UVD_CM_NODE ": %s: identifier %" PRId64 " is in state %s: %s, pid %d", name,
				c->wrong_value, c->wrong_state, uvd_errno_name(err), pid);
	else if (c->wrong_field)
		uvd_log_of_user(log, user, UVD_WARN,
				UVD_CM_NODE ": %s: %s is wrong (%" PRId64 ", 0x%" PRIx64 "): %s, pid %d", name,
				c->wrong_field, c->wrong_value, c->wrong_value, uvd_errno_name(err), pid);
	else
		uvd_log_of_user(log, user, UVD_WARN, UVD_CM_NODE ": %s (%u) fails: %s, pid %d", name, number,
				uvd_errno_name(err), pid);
}

/* A user of an adapter, or of --wire, may expect that peers on other hosts are reached. */
static const char *why_unreachable(const struct uvd_cm *cm, int err)
{
	const struct cm_device *device;

	if (err != -ENETUNREACH)
		return "";
	list_for_each_entry(device, &cm->devices, of_cm)
		if (device->forwards)
			return ": no device of this process has the address, and " UVD_CM_NODE
			       " reaches no other hosts, even by an adapter of --backend verbs";
	list_for_each_entry(device, &cm->devices, of_cm)
		if (device->num_wires)
			return ": no device of this engine has the address, and connection management does not travel over the wire "
			       "yet: only QPs that programs connect by other means do";
	return ": no device of this process has the address";
}

void cm_log_addr_error(struct cm_cmd *c, const union cm_addr *dst, int err)
{
	struct uvd_cm *cm = c->file->cm;
	char text[64] = "";

	cm_addr_text(dst, text, sizeof(text));
	/* With the lock held nobody may be asked for the process. */
	uvd_log_of_user(cm->engine->log, c->caller->log_user, UVD_WARN,
			UVD_CM_NODE ": RESOLVE_ADDR: %s: event ADDR_ERROR with %s, pid %d%s", text, uvd_errno_name(err),
			c->caller->tgid > 0 ? c->caller->tgid : c->caller->tid, why_unreachable(cm, err));
}
