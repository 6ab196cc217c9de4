/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of objects that exist: keys of regions and windows, numbers of QPs and SRQs. What a creating call answers is the
 * object's number from then on: no other object may get it, and each later answer must be the number that stands for the
 * recorded one.
 */
#include <stdio.h>
#include <string.h>

#include "replay.h"

/* Key of a number of the replaying device. */
static void now_key(const struct uvd_replay_call *c, const char *kind, uint64_t now, char key[80])
{
	snprintf(key, 80, "%s %u %llu", kind, c->was->open ? c->was->open->file.number : 0, (unsigned long long)now);
}

/* Returns the recorded number of the object that has this one now, or false if none has. */
static bool number_was(const struct uvd_replay_call *c, const char *kind, uint64_t now, uint64_t *was)
{
	const json_t *object;
	char key[80];

	now_key(c, kind, now, key);
	object = json_object_get(c->r->objects, key);
	*was = json_integer_value(json_object_get(object, "was"));
	return object;
}

bool uvd_replay_number_bind(struct uvd_replay_call *c, const char *kind, uint64_t was, uint64_t now, uint32_t handle)
{
	uint64_t other;
	char key[80];
	const bool taken = now && number_was(c, kind, now, &other) && other != was;

	uvd_replay_learn(c, kind, was, now);
	now_key(c, kind, now, key);
	json_object_set_new(c->r->objects, key,
			    json_pack("{s:I,s:I,s:I}", "was", (json_int_t)was, "file", (json_int_t)c->f->file, "handle",
				      (json_int_t)handle));
	return !taken;
}

bool uvd_replay_number_is(const struct uvd_replay_call *c, const char *kind, uint64_t was, uint64_t now)
{
	uint64_t known;

	/* Several objects can have the recorded number 0, which is none: then the object tells. */
	if (number_was(c, kind, now, &known) && known == was)
		return true;
	return uvd_replay_number_known(c, kind, was, &known) ? known == now : was == now;
}

void uvd_replay_numbers_end(struct uvd_replay *r, uint64_t file, const uint32_t *handle)
{
	const char *key;
	json_t *object;
	void *next;

	json_object_foreach_safe(r->objects, next, key, object)
	{
		if ((uint64_t)json_integer_value(json_object_get(object, "file")) != file ||
		    (handle && json_integer_value(json_object_get(object, "handle")) != *handle))
			continue;
		json_object_del(r->objects, key);
	}
}
