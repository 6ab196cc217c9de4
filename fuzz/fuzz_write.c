/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One write() command. */
#include "fuzz/single.h"

const struct fuzz_front fuzz_front = {
	.call = fuzz_write,
	.num = fuzz_num_commands,
	.name = fuzz_command_name,
	.make = fuzz_make_write,
	.mutate = fuzz_mutate_write,
	.dictionary = fuzz_dictionary_write,
};
