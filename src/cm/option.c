/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* SET_OPTION. */
#include <errno.h>
#include <string.h>
#include "cm/command.h"

enum {
	MOST_VALUE = 4 << 20, /* KMALLOC_MAX_SIZE: the kernel takes a copy */
	PATH_FLAGS = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL,
	RECORDS_AT_ONCE = 56,
};

/* Notes the first record of a path that can be used. */
static void look_for_path(struct cm_cmd *c, const struct ib_path_rec_data *records, size_t size)
{
	for (size_t i = 0; !c->has_path && i < size / sizeof(*records); i++)
		c->has_path = records[i].flags == PATH_FLAGS;
}

/* Reads all of the value, as the kernel does, and keeps its first bytes. */
static int read_value(struct cm_cmd *c, const struct rdma_ucm_set_option *in)
{
	struct ib_path_rec_data records[RECORDS_AT_ONCE];
	size_t len;

	for (size_t at = 0; at < in->optlen; at += len) {
		len = in->optlen - at < sizeof(records) ? in->optlen - at : sizeof(records);
		if (uvd_caller_read(c->caller, records, in->optval + at, len))
			return cm_wrong(c, "optval", in->optval, -EFAULT);
		if (!at)
			memcpy(c->value, records, len < sizeof(c->value) ? len : sizeof(c->value));
		look_for_path(c, records, len);
	}
	return 0;
}

int cm_set_option_check(struct cm_cmd *c)
{
	const struct rdma_ucm_set_option *in = (const void *)c->in;
	struct cm_id *id;
	int err;

	if (in->optlen > MOST_VALUE)
		return cm_wrong(c, "optlen", in->optlen, -EINVAL);
	cm_lock(c->file->cm);
	err = cm_cmd_id(c, in->id, &id);
	cm_unlock(c->file->cm);
	return err ?: read_value(c, in);
}

static int value_int(const struct cm_cmd *c)
{
	int value;

	memcpy(&value, c->value, sizeof(value));
	return value;
}

/* rdma_set_reuseaddr() */
static int set_reuseaddr(struct cm_id *id, bool reuse)
{
	if (id->state != CM_IDLE && (!reuse || id->state == CM_LISTEN))
		return -EINVAL;
	id->reuseaddr = reuse;
	return 0;
}

/* rdma_set_afonly() */
static int set_afonly(struct cm_id *id, bool afonly)
{
	if (id->state != CM_IDLE && id->state != CM_ADDR_BOUND)
		return -EINVAL;
	id->afonly = afonly;
	id->afonly_set = true;
	return 0;
}

/* rdma_set_ack_timeout() */
static int set_ack_timeout(struct cm_id *id, uint8_t timeout)
{
	if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
		return -EINVAL;
	id->timeout = timeout;
	id->timeout_set = true;
	return 0;
}

/* ucma_set_option_id() */
static int set_of_id(struct cm_cmd *c, struct cm_id *id)
{
	const struct rdma_ucm_set_option *in = (const void *)c->in;
	const uint32_t name = in->optname;
	const size_t size = name == RDMA_OPTION_ID_REUSEADDR || name == RDMA_OPTION_ID_AFONLY ? sizeof(int) : 1;
	int err = 0;

	if (name > RDMA_OPTION_ID_ACK_TIMEOUT)
		return cm_wrong(c, "optname", name, -ENOSYS);
	if (in->optlen != size)
		return cm_wrong(c, "optlen", in->optlen, -EINVAL);
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		id->tos = c->value[0];
		break;
	case RDMA_OPTION_ID_REUSEADDR:
		err = set_reuseaddr(id, value_int(c));
		break;
	case RDMA_OPTION_ID_AFONLY:
		err = set_afonly(id, value_int(c));
		break;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		err = set_ack_timeout(id, c->value[0]);
		break;
	}
	return err ? cm_wrong_state(c, id) : 0;
}

/* ucma_set_ib_path(): a route that the client has found itself. The local carrier has no use for what it says. */
static int set_path(struct cm_cmd *c, struct cm_id *id)
{
	const struct rdma_ucm_set_option *in = (const void *)c->in;

	if (in->optlen % sizeof(struct ib_path_rec_data) || !c->has_path)
		return cm_wrong(c, "optval", in->optlen, -EINVAL);
	if (!id->device || id->state != CM_ADDR_RESOLVED)
		return cm_wrong_state(c, id);
	id->path_tos = id->tos;
	id->state = CM_ROUTE_RESOLVED;
	cm_event_tell(id, CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

int cm_set_option(struct cm_cmd *c)
{
	const struct rdma_ucm_set_option *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id(c, in->id, &id);

	if (err)
		return err;
	switch (in->level) {
	case RDMA_OPTION_ID:
		return set_of_id(c, id);
	case RDMA_OPTION_IB:
		if (in->optname != RDMA_OPTION_IB_PATH)
			return cm_wrong(c, "optname", in->optname, -ENOSYS);
		return set_path(c, id);
	default:
		return cm_wrong(c, "level", in->level, -ENOSYS);
	}
}
