/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/facts.h"

#include <string.h>

#include "core/internal.h"
#include "util/util.h"

void uvd_uobject_take_facts(struct uvd_uobject *uobj)
{
	struct uvd_object_facts facts = {};

	memcpy(facts.asked, uobj->asked, sizeof(facts.asked));
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

/*
 * Whoever copies may hold a lock that all clients need, and a thread of the client can hold its file's lock for long: nobody waits
 * for it. A holder that runs is done before the last try.
 */
static bool facts_trylock(struct uvd_file *file)
{
	enum { TRIES = 1000 };

	for (int i = 0; i < TRIES; i++)
		if (uvd_trylock(&file->lock))
			return true;
	return false;
}

unsigned int uvd_file_copy_objects(struct uvd_file *file, struct uvd_object_copy *copies, unsigned int most)
{
	unsigned int num = 0;

	if (!facts_trylock(file))
		return 0;
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
