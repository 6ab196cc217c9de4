/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CREATE_ID, DESTROY_ID, MIGRATE_ID, GET_EVENT. */
#include <errno.h>
#include <string.h>
#include "account/account.h"
#include "cm/command.h"

int cm_create_id_check(struct cm_cmd *c)
{
	const struct rdma_ucm_create_id *in = (const void *)c->in;

	switch (in->ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
	case RDMA_PS_IB:
		return 0;
	default:
		return cm_wrong(c, "ps", in->ps, -EINVAL);
	}
}

/* ucma_get_qp_type() */
static uint8_t qp_type_of(const struct rdma_ucm_create_id *in)
{
	switch (in->ps) {
	case RDMA_PS_TCP:
		return IBV_QPT_RC;
	case RDMA_PS_IB:
		return in->qp_type;
	default:
		return IBV_QPT_UD;
	}
}

int cm_create_id(struct cm_cmd *c)
{
	const struct rdma_ucm_create_id *in = (const void *)c->in;
	struct rdma_ucm_create_id_resp resp = {};
	struct cm_id *id;
	int err;

	id = cm_id_new(c->file, in->ps, qp_type_of(in), &err);
	if (!id)
		return err;
	id->uid = in->uid;
	id->hidden = true;
	c->made = id;
	resp.id = id->number;
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

void cm_create_id_done(struct cm_cmd *c)
{
	((struct cm_id *)c->made)->hidden = false;
}

void cm_create_id_undo(struct cm_cmd *c)
{
	cm_id_destroy(c->made);
}

/* Works on an identifier whose device was removed, too: nothing else does. */
int cm_destroy_id(struct cm_cmd *c)
{
	const struct rdma_ucm_destroy_id *in = (const void *)c->in;
	struct rdma_ucm_destroy_id_resp resp;
	struct cm_id *id;
	int err = cm_cmd_id(c, in->id, &id);

	if (err && err != -ENXIO)
		return err;
	/* The destruction drops events that were not reported, so the number stays. */
	resp.events_reported = id->reported;
	cm_id_destroy(id);
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

/* ---- MIGRATE_ID ---------------------------------------------------------------------------------------------------- */

int cm_migrate_id_check(struct cm_cmd *c)
{
	const struct rdma_ucm_migrate_id *in = (const void *)c->in;
	const struct uvd_cm_file *file = c->file;
	int err;

	if (!file->ops || !file->ops->file_of)
		return -EINVAL;
	err = file->ops->file_of(file->owner, c->caller, (int)in->fd, &c->other);
	c->other_unknown = !err && !c->other;
	if (err)
		return cm_wrong(c, "fd", in->fd, err);
	return uvd_caller_tgid(c->caller) < 0 ? -EINTR : 0;
}

/*
 * Where the descriptor does not tell which open of the node it is, the identifier does: numbers are global, and it must be one of a
 * file that this process has opened.
 */
static int migrated_from(struct cm_cmd *c, struct uvd_cm_file **from)
{
	const struct rdma_ucm_migrate_id *in = (const void *)c->in;
	struct cm_id *id;

	*from = c->other;
	if (!c->other_unknown)
		return 0;
	id = cm_number_find(&c->file->cm->ids, in->id);
	if (!id)
		return -ENOENT;
	*from = id->file;
	return id->file->watched.opened_by == c->caller->tgid ? 0 : -EINVAL;
}

/* The identifier's new file pays for it from now on. */
static int id_charge_to(struct cm_id *id, struct uvd_cm_file *file)
{
	int err = uvd_account_charge(file->account, UVD_RES_CM_IDS, 1);

	if (err)
		return err;
	uvd_account_uncharge(id->account, UVD_RES_CM_IDS, 1);
	uvd_account_put(id->account);
	id->account = file->account ? uvd_account_ref(file->account) : NULL;
	return 0;
}

static void id_move_groups(struct cm_id *id, struct uvd_cm_file *to)
{
	struct cm_mcast *mcast, *next;

	list_for_each_entry_safe(mcast, next, &id->file->mcasts, of_file) {
		if (mcast->id != id)
			continue;
		list_del_init(&mcast->of_file);
		list_add_tail(&mcast->of_file, &to->mcasts);
	}
}

int cm_migrate_id_find(struct cm_cmd *c, struct cm_id **id)
{
	const struct rdma_ucm_migrate_id *in = (const void *)c->in;
	struct uvd_cm_file *from;

	return migrated_from(c, &from) ?: cm_id_get(from, in->id, id);
}

int cm_migrate_id(struct cm_cmd *c)
{
	const struct rdma_ucm_migrate_id *in = (const void *)c->in;
	struct rdma_ucm_migrate_resp resp;
	struct cm_id *id;
	int err = cm_migrate_id_find(c, &id);

	if (err)
		return cm_wrong(c, "id", in->id, err);
	if (id->file != c->file) {
		err = id_charge_to(id, c->file);
		if (err)
			return err;
		cm_events_move(id, c->file);
		id_move_groups(id, c->file);
		list_del_init(&id->of_file);
		list_add_tail(&id->of_file, &c->file->ids);
		id->file = c->file;
	}
	resp.events_reported = id->reported;
	c->out_size = sizeof(resp); /* the kernel does not ask how much room there is */
	cm_respond(c, &resp, sizeof(resp));
	return 0;
}

/* ---- GET_EVENT ----------------------------------------------------------------------------------------------------- */

/* A request is about the identifier that it has made: its listener may have no device. */
int cm_get_event_find(struct cm_cmd *c, struct cm_id **id)
{
	const struct cm_event *ev = c->made;

	*id = ev->made ?: ev->id;
	return *id ? 0 : -ENOENT;
}

int cm_get_event(struct cm_cmd *c)
{
	struct cm_event *ev = cm_event_take(c->file);

	if (!ev)
		return UVD_CM_WAITS;
	c->made = ev;
	cm_respond(c, &ev->resp, sizeof(ev->resp));
	return 0;
}

void cm_get_event_done(struct cm_cmd *c)
{
	cm_event_reported(c->made);
}

void cm_get_event_undo(struct cm_cmd *c)
{
	cm_event_give_back(c->made);
}
