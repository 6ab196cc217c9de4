/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One ioctl: an attribute tree, and what its attributes point to (fuzz_ioctl() in device.h). */
#include "fuzz/single.h"

const struct fuzz_front fuzz_front = {
	.call = fuzz_ioctl,
	.num = fuzz_num_methods,
	.name = fuzz_method_name,
	.make = fuzz_make_ioctl,
	.mutate = fuzz_mutate_ioctl,
	.dictionary = fuzz_dictionary_ioctl,
};
