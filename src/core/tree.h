/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The merged parse tree of a device: which objects, methods, attributes and write commands it accepts. Ids are split into
 * namespace and number and index direct tables, so a look-up is a few array accesses and no two rows can meet unnoticed.
 * Built once, then read-only.
 */
#ifndef UVD_TREE_H
#define UVD_TREE_H

#include <uverbsd/schema.h>

struct uvd_backend;
struct uvd_log;

struct uvd_tree_attr {
	const struct uvd_attr_row *row;
	const char *owner; /* the feature that brought it */
	const char *ucap; /* what that feature wants, or NULL; so everywhere below */
	uint16_t slot; /* in struct uvd_req's attrs */
};

struct uvd_tree_method {
	const struct uvd_method_row *row; /* the one that has the steps */
	const char *owner, *ucap;
	struct uvd_tree_attr *attrs[2]; /* by namespace, then number; row NULL: a hole */
	uint16_t num_attrs[2];
	uint16_t num_slots;
	uint16_t num_mandatory;
	int destroy_slot; /* of the attribute with UVD_ACCESS_DESTROY, -1: none */
	int uhw_in_slot, uhw_out_slot; /* -1: none */
	bool has_udata;
};

struct uvd_tree_object {
	const struct uvd_object_row *row; /* NULL: a hole */
	const char *owner, *ucap;
	bool missing; /* while the tree is built: the backend cannot do it */
	struct uvd_tree_method *methods[2]; /* by namespace, then number; row NULL: a hole */
	uint16_t num_methods[2];
};

struct uvd_tree_write {
	const struct uvd_write_row *row; /* NULL: a hole, EOPNOTSUPP after the plain header's checks (write-18) */
	const struct uvd_object_row *object;
	const char *owner, *ucap;
};

struct uvd_tree {
	uint16_t driver_id; /* enum rdma_driver_id */
	struct uvd_tree_object *objects[2];
	uint16_t num_objects[2];
	struct uvd_tree_write *writes[2]; /* plain, extended; by number */
	uint16_t num_writes[2]; /* highest number + 1 (write-05) */
};

/*
 * Merges features (a list that ends with NULL), without what `ops` lacks (NULL: it lacks nothing). Two rows for one id are refused: the log names both owners. NULL: *err is
 * -EEXIST, -EINVAL (a row that contradicts itself) or -ENOMEM.
 */
struct uvd_tree *uvd_tree_new(const struct uvd_feature *const *features, const struct uvd_backend *ops,
			      uint16_t driver_id, struct uvd_log *log, int *err);
void uvd_tree_free(struct uvd_tree *tree);

/* NULL: the device has no such thing. */
const struct uvd_tree_object *uvd_tree_object(const struct uvd_tree *tree, uint16_t id);
const struct uvd_tree_method *uvd_tree_method(const struct uvd_tree *tree, uint16_t object, uint16_t id);
const struct uvd_tree_attr *uvd_tree_attr(const struct uvd_tree_method *method, uint16_t id);

#endif
