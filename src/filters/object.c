/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/schema.h>

#include "filters/object.h"
#include "util/util.h"

const char *const uvd_object_kinds[UVD_OF_KINDS] = {
	[UVD_OF_QP] = "qp",
	[UVD_OF_CQ] = "cq",
	[UVD_OF_SRQ] = "srq",
	[UVD_OF_MR] = "mr",
};

static const struct {
	const char *name;
	enum ibv_qp_type type;
} object_types[] = {
	{ "rc", IBV_QPT_RC },
	{ "uc", IBV_QPT_UC },
	{ "ud", IBV_QPT_UD },
	{ "raw_packet", IBV_QPT_RAW_PACKET },
	{ "xrc_send", IBV_QPT_XRC_SEND },
	{ "xrc_recv", IBV_QPT_XRC_RECV },
};

enum uvd_object_step uvd_object_step(const char *op)
{
	if (!strncmp(op, "create_", 7) || !strncmp(op, "reg_", 4))
		return UVD_OBJECT_CREATED;
	return !strncmp(op, "destroy_", 8) || !strcmp(op, "dereg_mr") ? UVD_OBJECT_ENDED : UVD_OBJECT_USED;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Parses digits, decimal or hexadecimal with 0x, up to `most`. Returns false if the text is none, or 0. */
static bool object_number(const char *text, uint64_t most, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
	return !errno && !*end && *out && *out <= most;
}

const char *uvd_object_parse(struct uvd_object_rule *rule, enum uvd_object_kind kind, const char *text)
{
	uint64_t number;

	if (*text == '@') {
		rule->by = UVD_OBJECT_NTH;
		return object_number(text + 1, UINT64_MAX, &rule->nth) ? NULL : "has no number from 1 behind the @";
	}
	if (kind == UVD_OF_CQ || kind == UVD_OF_SRQ)
		return "is not @N, the N-th that is created";
	if (object_number(text, UINT32_MAX, &number)) {
		rule->by = UVD_OBJECT_NUMBER;
		rule->number = number;
		return NULL;
	}
	for (unsigned int i = 0; kind == UVD_OF_QP && i < UVD_COUNT(object_types); i++)
		if (!strcmp(object_types[i].name, text)) {
			rule->by = UVD_OBJECT_TYPE;
			rule->type = object_types[i].type;
			return NULL;
		}
	return kind == UVD_OF_QP ? "is not @N, a QP number, rc, uc, ud, raw_packet, xrc_send or xrc_recv"
				 : "is not @N, nor an L_Key";
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Returns the number of a QP, or the L_Key of a region. A new object has none before the backend has made it. */
static uint32_t object_id(enum uvd_object_kind kind, enum uvd_object_step step, const void *object)
{
	if (step == UVD_OBJECT_CREATED)
		return 0;
	if (kind == UVD_OF_QP)
		return ((const struct uvd_qp *)object)->qp_num;
	return kind == UVD_OF_MR ? ((const struct uvd_mr *)object)->lkey : 0;
}

static bool object_is_nth(struct uvd_object_rule *rule, enum uvd_object_step step, const void *object)
{
	if (step != UVD_OBJECT_CREATED)
		return atomic_load(&rule->object) == object;
	if (atomic_fetch_add(&rule->created, 1) + 1 != rule->nth)
		return false;
	atomic_store(&rule->object, object);
	return true;
}

bool uvd_object_applies(struct uvd_object_rule *rule, enum uvd_object_kind kind, enum uvd_object_step step,
			const void *object)
{
	switch (rule->by) {
	case UVD_OBJECT_NTH:
		return object_is_nth(rule, step, object);
	case UVD_OBJECT_NUMBER:
		return object_id(kind, step, object) == rule->number;
	case UVD_OBJECT_TYPE:
		return ((const struct uvd_qp *)object)->qp_type == rule->type;
	default:
		return true;
	}
}

void uvd_object_done(struct uvd_object_rule *rule, enum uvd_object_kind kind, enum uvd_object_step step,
		     const void *object, int ret)
{
	if (rule->by != UVD_OBJECT_NTH || step == UVD_OBJECT_USED || atomic_load(&rule->object) != object)
		return;
	if (step == UVD_OBJECT_CREATED && !ret) {
		atomic_store(&rule->id, object_id(kind, UVD_OBJECT_USED, object));
	} else if (step == UVD_OBJECT_CREATED || !ret) {
		/* The core frees the object only after this, so no other one has its address yet. */
		atomic_store(&rule->id, 0);
		atomic_store(&rule->object, NULL);
	}
}

void uvd_object_replaced(struct uvd_object_rule *rule, enum uvd_object_kind kind, const void *from, const void *to)
{
	if (rule->by != UVD_OBJECT_NTH || atomic_load(&rule->object) != from)
		return;
	atomic_store(&rule->id, object_id(kind, UVD_OBJECT_USED, to));
	atomic_store(&rule->object, to);
}

bool uvd_object_completes(const struct uvd_object_rule rules[UVD_OF_KINDS], const struct uvd_cq *cq, uint32_t qp_num)
{
	const struct uvd_object_rule *of_cq = &rules[UVD_OF_CQ], *of_qp = &rules[UVD_OF_QP];

	if (of_cq->by == UVD_OBJECT_NTH && atomic_load(&of_cq->object) != cq)
		return false;
	if (of_qp->by == UVD_OBJECT_NTH)
		return atomic_load(&of_qp->id) && atomic_load(&of_qp->id) == qp_num;
	return of_qp->by != UVD_OBJECT_NUMBER || of_qp->number == qp_num;
}
