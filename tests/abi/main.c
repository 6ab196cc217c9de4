/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks the ABI rules as a client sees them, on the node $UVERBS_NODE: the kernel's or ours. */
#include "abi.h"

int main(int argc, char **argv)
{
	unsigned int where;

	uv_exec_main(argc, argv);
	where = target()->where;
	return run_rules(where & ON_KERNEL ? "the kernel" : where & ON_CUSE ? "CUSE" : "uverbsctl run", NULL);
}
