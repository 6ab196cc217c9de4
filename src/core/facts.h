/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A status tells these facts of an object. It must not read the backend's objects, which a client can destroy meanwhile,
 * and must not lock them, as the client's own destroy would be EBUSY. So the core copies a few facts of each object when
 * it becomes visible, and when a request has changed it.
 */
#ifndef UVD_CORE_FACTS_H
#define UVD_CORE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_file;
struct uvd_uobject;

/* The pointers are names of objects, to compare with others. Nobody follows them: the objects may be gone. */
struct uvd_object_facts {
	const void *self;
	const void *parent; /* the `self` of an object of type parent_type in the same file; NULL: the file itself */
	uint16_t parent_type; /* UVERBS_OBJECT_... */
	uint64_t values[2]; /* by type, see the function that takes them */
	uint32_t asked[3]; /* as struct uvd_uobject.asked */
	const void *cqs[2]; /* QP: the objects of its send and its receive CQ; not followed either. NULL: none */
};

/* One object of an open file, as it was when it was copied. */
struct uvd_object_copy {
	struct uvd_object_facts facts;
	uint16_t type; /* UVERBS_OBJECT_... */
	uint16_t count; /* its index in the device's object_counts, which have the name of its type */
	bool has_handle;
	uint32_t handle;
};

/*
 * Takes the facts of a visible object again, by engine->take_facts(), which only reads the object. Caller has locked the
 * object, shared or exclusively. Takes the file's lock.
 */
void uvd_uobject_update_facts(struct uvd_uobject *uobj);
/*
 * Copies the visible objects of a file, oldest first: at most `most`. Returns how many. The file stays open meanwhile.
 * Takes the file's lock. Any thread; allocates nothing, waits for nobody and calls no backend.
 */
unsigned int uvd_file_copy_objects(struct uvd_file *file, struct uvd_object_copy *copies, unsigned int most);

#endif
