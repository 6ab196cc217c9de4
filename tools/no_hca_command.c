/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl hca in a static uverbsctl. */
#include <stdio.h>
#include "commands.h"

static int no_hca_command(const struct uvd_args *args)
{
	(void)args;
	fputs("uverbsctl hca: this uverbsctl is static: it has no --backend verbs, and does not look for adapters\n",
	      stderr);
	return 1;
}

const struct uvd_command uvd_command_hca = {
	.name = "hca",
	.purpose = "not in a static uverbsctl: list the adapters that a device can forward to",
	.verbs =
		(const struct uvd_command_verb[]){
			{ "list", .purpose = "say that this uverbsctl is static", .run = no_hca_command },
			{},
		},
};
