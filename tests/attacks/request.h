/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A request whose attribute lies in another page than its header. */
#ifndef ATTACK_REQUEST_H
#define ATTACK_REQUEST_H

#include <string.h>
#include "uv.h"

enum { REQUEST_PAGE = 4096 };

/*
 * Puts a header at the end of the first of two pages. The daemon reads the attribute behind it from the second page, which may
 * not answer. The header must: the kernel copies it for CUSE in the client's thread, before the daemon gets the call.
 */
static inline const void *request_across(uint8_t *pages)
{
	uint8_t *at = pages + REQUEST_PAGE - sizeof(struct ib_uverbs_ioctl_hdr);
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	tree.hdr.num_attrs = 1;
	tree.hdr.length = sizeof(tree.hdr) + sizeof(struct ib_uverbs_attr);
	memcpy(at, &tree.hdr, sizeof(tree.hdr));
	return at;
}

#endif
