/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For clients: the ids that a device of the persona acme has beside the common verbs. */
#ifndef ACME_H
#define ACME_H

/* The object has no handles. QUERY tells the limit of QPs of a context, and how many it has. */
#define UVERBS_OBJECT_ACME_LIMITS 0x10b0
#define UVERBS_METHOD_ACME_LIMITS_QUERY 0x10b0

enum {
	UVERBS_ATTR_ACME_LIMITS_QUERY_MAX_QPS = 0x10b0, /* PTR_OUT, u32 */
	UVERBS_ATTR_ACME_LIMITS_QUERY_QPS, /* PTR_OUT, u32 */
};

/* An attribute of UVERBS_METHOD_QP_CREATE. PTR_OUT, u32: the QPs that the context may still create after this one. */
#define UVERBS_ATTR_CREATE_QP_RESP_ACME_LEFT 0x10b0

#endif
