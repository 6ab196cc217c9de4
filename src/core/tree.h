/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The merged parse tree of a device: the objects, methods, attributes and write commands that it accepts. The namespace
 * and the number of an id index tables, so a look-up is a few array accesses, and a second row for an id is noticed. A
 * tree is built once, then read-only.
 */
#ifndef UVD_TREE_H
#define UVD_TREE_H

#include <uverbsd/roles.h>
#include <uverbsd/schema.h>

struct uvd_backend;
struct uvd_plugin;
struct uvd_tree_wrap;
struct uvd_log;

enum { UVD_TREE_NAMESPACES = 2 }; /* of ids: the kernel's, and drivers' */

struct uvd_tree_attr {
	const struct uvd_attr_row *row;
	const char *owner; /* the feature that brought it */
	const char *ucap; /* the User Capability that the feature requires, or NULL; the same below */
	uint16_t slot; /* index in struct uvd_req's attrs */
	const struct uvd_attr_fields *roles; /* those that its plug-in states, by name; or NULL */
};

struct uvd_tree_method {
	const struct uvd_method_row *row; /* the row with its own steps; if none has any, the first */
	const char *owner, *ucap;
	/* Dispatch runs these: the row's own steps, or `merged`. NULL: none. */
	const uvd_step *steps;
	const uvd_step *before; /* runs before the object of destroy_slot is destroyed; NULL: none */
	struct uvd_tree_wrap *wraps; /* tree_wrap.c */
	uvd_step *merged, *merged_before; /* ours; NULL: no wrapper */
	struct uvd_tree_attr *attrs[UVD_TREE_NAMESPACES]; /* by namespace, then number; row NULL: a hole */
	uint16_t num_attrs[UVD_TREE_NAMESPACES];
	uint16_t num_slots;
	uint16_t num_mandatory;
	int destroy_slot; /* of the attribute with UVD_UOBJ_DESTROY, -1: none */
	int uhw_in_slot, uhw_out_slot; /* -1: none */
	bool has_udata;
	uint64_t verb; /* uvd_allow_verb() */
};

struct uvd_tree_object {
	const struct uvd_object_row *row; /* NULL: a hole */
	const char *owner, *ucap;
	bool missing; /* while the tree is built: the backend lacks what it needs */
	struct uvd_tree_method *methods[UVD_TREE_NAMESPACES]; /* by namespace, then number; row NULL: a hole */
	uint16_t num_methods[UVD_TREE_NAMESPACES];
};

struct uvd_tree_write {
	const struct uvd_write_row *row; /* NULL: a hole, EOPNOTSUPP after the plain header's checks (write-18) */
	const struct uvd_object_row *object;
	const char *owner, *ucap;
	const uvd_step *steps; /* what dispatch runs: the row's own, or `merged` */
	uint64_t verb; /* uvd_allow_verb() */
	struct uvd_tree_wrap *wraps;
	uvd_step *merged;
	struct uvd_command_fields roles; /* those that its plug-in states, or without a name; no struct is NULL */
};

struct uvd_tree {
	uint16_t driver_id; /* enum rdma_driver_id */
	struct uvd_tree_object *objects[UVD_TREE_NAMESPACES];
	uint16_t num_objects[UVD_TREE_NAMESPACES];
	struct uvd_tree_write *writes[2]; /* plain, extended; by number */
	uint16_t num_writes[2]; /* highest number + 1 (write-05) */
	_Atomic uint64_t digest; /* of its rows and roles, for traces, which compute it once; 0: not yet */
};

/*
 * Merges features (a list that ends with NULL), and leaves out rows that need functions which `ops` lacks (NULL: it
 * lacks none). The caller frees the tree. NULL: *err is -EEXIST (two rows conflict; the log names both owners), -EINVAL
 * (a row contradicts itself) or -ENOMEM.
 */
struct uvd_tree *uvd_tree_new(const struct uvd_feature *const *features, const struct uvd_backend *ops,
			      uint16_t driver_id, struct uvd_log *log, int *err);
void uvd_tree_free(struct uvd_tree *tree);
/*
 * tree_roles.c: takes over what the plug-in states of those of its rows that the tree has. Call it before the tree is
 * used. The tree points into the plug-in, which must outlive it.
 */
void uvd_tree_take_roles(struct uvd_tree *tree, const struct uvd_plugin *plugin);
/*
 * Return what is known of a command, or of the value of an attribute or of an element (elem: its row in ta->row->elems;
 * NULL: the attribute's own): as its plug-in states it, or as the kernel has it. Never NULL.
 */
const struct uvd_command_fields *uvd_tree_command_fields(const struct uvd_tree_write *tw);
const struct uvd_attr_fields *uvd_tree_attr_fields(const struct uvd_tree_attr *ta, const struct uvd_attr_row *elem);

/* Look-ups. NULL: the device has no such object, method or attribute. */
const struct uvd_tree_object *uvd_tree_object(const struct uvd_tree *tree, uint16_t id);
const struct uvd_tree_method *uvd_tree_method(const struct uvd_tree *tree, uint16_t object, uint16_t id);
const struct uvd_tree_attr *uvd_tree_attr(const struct uvd_tree_method *method, uint16_t id);

#endif
