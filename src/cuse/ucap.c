/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The nodes of User Capabilities: as on the kernel's, only open() succeeds. */
#include "cuse/internal.h"

static int ucap_node_make(struct uvd_cuse *c, int *fd)
{
	struct uvd_privilege *p = c->config.privilege;

	return p->ops->make_ucap(p, c->config.ucap, &c->node, fd);
}

const struct uvd_cuse_kind uvd_cuse_ucap_nodes = { .make = ucap_node_make };
