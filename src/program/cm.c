/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cm.h"

#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <string.h>
#include <uverbsd/abi.h>

#define CM_PREFIX "RDMA_USER_CM_CMD_"
#define CM_ROW(name) \
	{ \
		RDMA_USER_CM_CMD_##name, CM_PREFIX #name \
	}

/* MOST_PATHS: that one answer has. */
enum { CM_COMMANDS = 22, MOST_PATHS = 6 };

static const struct {
	uint8_t number;
	const char *name;
} cm_rows[CM_COMMANDS] = {
	CM_ROW(CREATE_ID),     CM_ROW(DESTROY_ID),   CM_ROW(BIND_IP),	 CM_ROW(RESOLVE_IP), CM_ROW(RESOLVE_ROUTE),
	CM_ROW(QUERY_ROUTE),   CM_ROW(CONNECT),	     CM_ROW(LISTEN),	 CM_ROW(ACCEPT),     CM_ROW(REJECT),
	CM_ROW(DISCONNECT),    CM_ROW(INIT_QP_ATTR), CM_ROW(GET_EVENT),	 CM_ROW(SET_OPTION), CM_ROW(NOTIFY),
	CM_ROW(JOIN_IP_MCAST), CM_ROW(LEAVE_MCAST),  CM_ROW(MIGRATE_ID), CM_ROW(QUERY),	     CM_ROW(BIND),
	CM_ROW(RESOLVE_ADDR),  CM_ROW(JOIN_MCAST),
};
static struct uvd_shape_cm cm_shapes[CM_COMMANDS];

static const char *cm_object(const struct uvd_struct *of, bool makes)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (makes ? f->makes : f->ends)
			return uvd_shape_object_name(f->object);
	return NULL;
}

/* Is it a command of groups, and not of identifiers? */
static bool cm_is_of_group(const struct uvd_command_fields *known)
{
	const char *makes = cm_object(known->response, true), *ends = cm_object(known->request, false);
	const char *of = makes ? makes : ends;

	return of && !strcmp(of, uvd_shape_object_name(UVERBSD_OBJECT_CM_MCAST));
}

static const struct uvd_struct *cm_other(const char *name)
{
	const struct uvd_cm_command *c = uvd_cm_commands;

	while (c->command && strcmp(c->command, name))
		c++;
	return c->other;
}

static void cm_make(struct uvd_shape_cm *cm, uint8_t number, const char *name)
{
	const struct uvd_command_fields *known = uvd_command_fields(name);
	struct uvd_shape_command *c = &cm->command;

	c->name = name + strlen(CM_PREFIX);
	c->number = number;
	c->request = known->request;
	c->in = uvd_shape_fields_of(known->request, true);
	c->out = uvd_shape_fields_of(known->response, false);
	c->in_size = known->request->size;
	c->out_size = known->response->size;
	c->makes = cm_object(known->response, true);
	c->ends = cm_object(known->request, false);
	c->object = cm_is_of_group(known) ? UVERBSD_OBJECT_CM_MCAST : UVERBSD_OBJECT_CM_ID;
	cm->response_at = uvd_cm_response_at(name);
	c->response = cm->response_at != UVD_NO_RESPONSE;
	cm->other = cm_other(name);
	if (!cm->other)
		return;
	cm->other_out = uvd_shape_fields_of(cm->other, false);
	if (cm->other->tail_of && c->out_size < cm->other->size + MOST_PATHS * cm->other->tail_of->size)
		c->out_size = cm->other->size + MOST_PATHS * cm->other->tail_of->size;
}

static void cm_shapes_make(void)
{
	for (unsigned int i = 0; i < CM_COMMANDS; i++)
		cm_make(&cm_shapes[i], cm_rows[i].number, cm_rows[i].name);
}

const struct uvd_shape_cm *uvd_shape_cm_at(unsigned int i)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, cm_shapes_make);
	return i < CM_COMMANDS ? &cm_shapes[i] : NULL;
}

const struct uvd_shape_cm *uvd_shape_cm(const char *name)
{
	const struct uvd_shape_cm *cm;
	unsigned int i = 0;

	while ((cm = uvd_shape_cm_at(i++)) && strcmp(cm->command.name, name))
		;
	return cm;
}

struct uvd_shape_fields uvd_shape_cm_out(const struct uvd_shape_cm *cm, const uint8_t *request, size_t len)
{
	char name[64];

	snprintf(name, sizeof(name), CM_PREFIX "%s", cm->command.name);
	if (cm->other && uvd_command_response(uvd_command_fields(name), request, len) == cm->other)
		return cm->other_out;
	return cm->command.out;
}
