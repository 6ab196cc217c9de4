/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The model of rdma_cm, beside that of the device's handle table:
 *
 *	- a call that names an identifier, or a group, which does not exist must not succeed; DESTROY_ID of such a one is ENOENT;
 *	- an identifier that exists can be destroyed;
 *	- a new one does not have the number of another one;
 *	- no byte behind a response is written.
 *
 * It ends with the first call that it does not follow: one that was corrupted and has succeeded, or that was made beside others.
 */
#include <errno.h>
#include <string.h>
#include <uverbsd/abi.h>

#include "cm.h"
#include "model.h"
#include "model_call.h"
#include "object.h"
#include "record.h"

enum { CM_MOST = UVD_PROG_MAX_CALLS, CM_CONNECT_REQUEST = 4 };

/* An identifier, or a group. */
struct cm_alive {
	uint16_t object;
	uint64_t number, of; /* of: the group's identifier */
};

struct cm_model {
	const struct uvd_prog *p;
	const struct uvd_prog_run *run;
	struct uvd_prog_difference *found;
	unsigned int call, num;
	struct cm_alive alive[CM_MOST];
};

static void cm_model_wrong(struct cm_model *m, const char *item, const char *expected)
{
	struct uvd_prog_difference *d = m->found;

	d->found = true;
	d->call = m->call;
	snprintf(d->target, sizeof(d->target), "%s", m->p->calls[m->call].target);
	snprintf(d->item, sizeof(d->item), "%s", item);
	snprintf(d->kernel, sizeof(d->kernel), "%s", expected);
	snprintf(d->ours, sizeof(d->ours), "%s", uvd_prog_result(&m->run->records[m->call]));
}

static struct cm_alive *cm_alive_find(struct cm_model *m, uint16_t object, uint64_t number)
{
	for (unsigned int i = 0; i < m->num; i++)
		if (m->alive[i].object == object && m->alive[i].number == number)
			return &m->alive[i];
	return NULL;
}

/* The groups of an identifier go with it. */
static void cm_alive_end(struct cm_model *m, uint16_t object, uint64_t number)
{
	for (unsigned int i = m->num; i-- > 0;) {
		const struct cm_alive *a = &m->alive[i];

		if ((a->object == object && a->number == number) ||
		    (object == UVERBSD_OBJECT_CM_ID && a->object == UVERBSD_OBJECT_CM_MCAST && a->of == number))
			m->alive[i] = m->alive[--m->num];
	}
}

/* Reads the identifier, or the group, that the call names. Returns false if it names none. */
static bool cm_names(const struct uvd_shape_command *shape, const struct uvd_prog_record *r, uint16_t *object,
		     uint64_t *number)
{
	for (unsigned int f = 0; f < shape->in.n; f++)
		if (uvd_shape_field_role(&shape->in.f[f]) == UVD_ROLE_HANDLE) {
			*object = shape->in.f[f].field->object;
			return uvd_prog_input(r, shape->in.f[f].name, number);
		}
	return false;
}

static void cm_check_beyond(struct cm_model *m, const struct uvd_prog_record *r)
{
	for (uint32_t at = r->num_regions ? r->regions[0].len : 0; at < r->out_len; at++)
		if (r->out[at] != UVD_PROG_UNTOUCHED) {
			cm_model_wrong(m, "a byte that is no output", "untouched");
			return;
		}
}

static void cm_made(struct cm_model *m, const struct uvd_shape_command *shape, const struct uvd_prog_record *r,
		    uint64_t of)
{
	const bool group = !strcmp(shape->makes, uvd_shape_object_name(UVERBSD_OBJECT_CM_MCAST));
	const uint16_t object = group ? UVERBSD_OBJECT_CM_MCAST : UVERBSD_OBJECT_CM_ID;
	uint64_t number, event = CM_CONNECT_REQUEST;

	if (!strcmp(shape->name, "GET_EVENT"))
		uvd_prog_output(r, "event", &event);
	if (event != CM_CONNECT_REQUEST || !uvd_prog_output(r, "handle", &number))
		return;
	if (cm_alive_find(m, object, number))
		cm_model_wrong(m, "handle", "a new number");
	else if (m->num < CM_MOST)
		m->alive[m->num++] = (struct cm_alive){ object, number, of };
}

static void cm_check(struct cm_model *m, const struct uvd_shape_command *shape, const struct uvd_prog_record *r)
{
	uint64_t number = 0;
	uint16_t object = 0;
	const bool names = cm_names(shape, r, &object, &number);
	const bool is_there = names && cm_alive_find(m, object, number);

	if (names && !is_there && r->ret >= 0)
		cm_model_wrong(m, "result for an identifier or a group that does not exist", "an error");
	else if (names && !is_there && !strcmp(shape->name, "DESTROY_ID") && r->err != ENOENT)
		cm_model_wrong(m, "result for an identifier that does not exist", "ENOENT");
	else if (is_there && !strcmp(shape->name, "DESTROY_ID") && r->ret < 0)
		cm_model_wrong(m, "result for an identifier that exists", "ok");
	if (m->found->found || r->ret < 0)
		return;
	cm_check_beyond(m, r);
	if (shape->ends && names)
		cm_alive_end(m, object, number);
	if (shape->makes && !m->found->found)
		cm_made(m, shape, r, number);
}

void uvd_prog_model_check_cm(const struct uvd_prog *p, const struct uvd_prog_run *run,
			     struct uvd_prog_difference *found)
{
	struct cm_model m = { .p = p, .run = run, .found = found };

	memset(found, 0, sizeof(*found));
	for (m.call = 0; m.call < p->num_calls && !found->found; m.call++) {
		const struct uvd_prog_call *call = &p->calls[m.call];
		const struct uvd_prog_record *r = &run->records[m.call];
		const struct uvd_shape_cm *cm = call->front == UVD_PROG_CM ? uvd_shape_cm(call->target) : NULL;

		if (call->front != UVD_PROG_CM)
			continue;
		if (!r->done || call->beside || (m.call && p->calls[m.call - 1].beside))
			return;
		/* EFAULT can mean that the command did its work. */
		if (cm && uvd_model_call_is_whole(call))
			cm_check(&m, &cm->command, r);
		else if (r->ret >= 0 || r->err == EFAULT)
			return;
	}
}
