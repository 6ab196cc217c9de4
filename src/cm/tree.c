/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands as a parse tree: what observers, and the tools, read calls by. */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/abi.h>
#include "cm/command.h"

enum { OBJECTS = 2, MOST_COMMANDS = RDMA_USER_CM_CMD_JOIN_MCAST + 1 };

struct uvd_cm_tree {
	struct uvd_write_row writes[OBJECTS][MOST_COMMANDS];
	struct uvd_object_row objects[OBJECTS];
	const struct uvd_object_row *list[OBJECTS + 1];
	struct uvd_feature feature;
	struct uvd_tree *tree;
};

/* Its command is carried out by its row in rows.c. */
static int no_step(struct uvd_req *req)
{
	(void)req;
	return -ENOSYS;
}

static void take_commands(struct uvd_cm_tree *t, unsigned int object)
{
	static const uvd_step steps[] = { no_step, NULL };
	struct uvd_object_row *of = &t->objects[object];
	const struct cm_row *row;
	bool known;

	of->writes = t->writes[object];
	for (uint32_t number = 0; number < MOST_COMMANDS; number++) {
		row = cm_row(number, &known);
		if (!row || row->object != of->id)
			continue;
		t->writes[object][of->num_writes++] = (struct uvd_write_row){
			.name = row->name,
			.number = number,
			.flags = UVD_WRITE_CM | UVD_WRITE_NO_CONTEXT | (row->out ? UVD_WRITE_RESP : 0),
			.req_size = row->in,
			.resp_size = row->out,
			.steps = steps,
		};
	}
}

struct uvd_cm_tree *uvd_cm_tree_new(struct uvd_log *log, int *err)
{
	static const struct uvd_object_row objects[OBJECTS] = {
		{ .name = "UVERBSD_OBJECT_CM_ID", .id = UVERBSD_OBJECT_CM_ID, .cls = UVD_CLASS_IDR },
		{ .name = "UVERBSD_OBJECT_CM_MCAST", .id = UVERBSD_OBJECT_CM_MCAST, .cls = UVD_CLASS_IDR },
	};
	struct uvd_cm_tree *t = calloc(1, sizeof(*t));
	const struct uvd_feature *features[] = { &t->feature, NULL };

	*err = -ENOMEM;
	if (!t)
		return NULL;
	t->feature = (struct uvd_feature){ .name = UVD_CM_NODE, .objects = t->list };
	for (unsigned int i = 0; i < OBJECTS; i++) {
		t->objects[i] = objects[i];
		t->list[i] = &t->objects[i];
		take_commands(t, i);
	}
	t->tree = uvd_tree_new(features, NULL, 0, log, err);
	if (t->tree)
		return t;
	free(t);
	return NULL;
}

void uvd_cm_tree_free(struct uvd_cm_tree *t)
{
	if (t)
		uvd_tree_free(t->tree);
	free(t);
}

const struct uvd_tree *uvd_cm_tree_of(const struct uvd_cm_tree *t)
{
	return t->tree;
}
