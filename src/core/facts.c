/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/facts.h"

#include "core/internal.h"
#include "util/util.h"

void uvd_uobject_take_facts(struct uvd_uobject *uobj)
{
	struct uvd_object_facts facts = {};

	if (uobj->file->dev->engine->take_facts)
		uobj->file->dev->engine->take_facts(uobj, &facts);
	uobj->facts = facts;
}

void uvd_uobject_update_facts(struct uvd_uobject *uobj)
{
	struct uvd_file *file = uobj->file;

	uvd_lock(&file->lock);
	uvd_uobject_take_facts(uobj);
	uvd_unlock(&file->lock);
}

unsigned int uvd_file_copy_objects(struct uvd_file *file, struct uvd_object_copy *copies, unsigned int most)
{
	unsigned int num = 0;

	uvd_lock(&file->lock);
	for (struct list_head *at = file->objects.prev; at != &file->objects && num < most; at = at->prev) {
		const struct uvd_uobject *uobj = container_of(at, struct uvd_uobject, of_file);

		copies[num++] = (struct uvd_object_copy){
			.facts = uobj->facts,
			.type = uobj->row->id,
			.count = uvd_object_count_index(uobj->row->id),
			.has_handle = uobj->row->cls == UVD_CLASS_IDR,
			.handle = uobj->id,
		};
	}
	uvd_unlock(&file->lock);
	return num;
}
