/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* To which objects the rules of a filter apply: to all of a kind, to one object, or to the QPs of a type. */
#ifndef UVD_FILTERS_OBJECT_H
#define UVD_FILTERS_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/objects.h>

/* The kinds of objects that a rule can name. UVD_OF_NONE: an operation on anything else. */
enum uvd_object_kind { UVD_OF_NONE, UVD_OF_QP, UVD_OF_CQ, UVD_OF_SRQ, UVD_OF_MR, UVD_OF_KINDS };
extern const char *const uvd_object_kinds[UVD_OF_KINDS]; /* names; NULL for UVD_OF_NONE */

/* The kind of an object, by the type of the pointer to it. The expression is not evaluated. */
#define UVD_OBJECT_KIND(object) \
	_Generic((object), struct uvd_qp * \
		 : UVD_OF_QP, struct uvd_cq * \
		 : UVD_OF_CQ, struct uvd_srq * \
		 : UVD_OF_SRQ, struct uvd_mr * \
		 : UVD_OF_MR, default \
		 : UVD_OF_NONE)

struct uvd_object_rule {
	enum { UVD_OBJECT_ANY, UVD_OBJECT_NTH, UVD_OBJECT_NUMBER, UVD_OBJECT_TYPE } by;
	uint64_t nth; /* NTH: the object of the nth creation since the filter began */
	uint32_t number; /* NUMBER: of the QP, or the L_Key of the region */
	enum ibv_qp_type type; /* TYPE */
	_Atomic uint64_t created;
	_Atomic(const void *) object; /* NTH: the object, while it exists */
	_Atomic uint32_t id; /* NTH: its number; 0 until the backend has set it */
};

/* An operation does this to the object. */
enum uvd_object_step { UVD_OBJECT_USED, UVD_OBJECT_CREATED, UVD_OBJECT_ENDED };
/* By the name of an operation: create_qp, reg_mr, destroy_qp. */
enum uvd_object_step uvd_object_step(const char *op);

/*
 * Parses @N, a number (of a QP, the L_Key of a region), or a type of QPs (rc, uc, ud, raw_packet, xrc_send, xrc_recv).
 * Returns NULL, or a message that says what is wrong with the text.
 */
const char *uvd_object_parse(struct uvd_object_rule *rule, enum uvd_object_kind kind, const char *text);
/*
 * Call these around each operation on an object of the kind; uvd_object_done() with what it returned. Does the rule
 * apply to the object? Counts creations. Take no lock.
 */
bool uvd_object_applies(struct uvd_object_rule *rule, enum uvd_object_kind kind, enum uvd_object_step step,
			const void *object);
void uvd_object_done(struct uvd_object_rule *rule, enum uvd_object_kind kind, enum uvd_object_step step,
		     const void *object, int ret);
/*
 * `to` takes the place of `from`, which the core ends afterwards: a rule for the N-th object follows. Call it after the
 * backend has made `to`.
 */
void uvd_object_replaced(struct uvd_object_rule *rule, enum uvd_object_kind kind, const void *from, const void *to);
/* Do the rules, one for each kind, apply to a completion? Not for rules by type. */
bool uvd_object_completes(const struct uvd_object_rule rules[UVD_OF_KINDS], const struct uvd_cq *cq, uint32_t qp_num);

#endif
