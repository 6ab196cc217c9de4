/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The targets of one call on a file that has objects: single.c with fuzz_ioctl.c or fuzz_write.c, which define fuzz_front.
 */
#ifndef UVD_FUZZ_SINGLE_H
#define UVD_FUZZ_SINGLE_H

#include "fuzz/device.h"
#include "fuzz/schema.h"

/* One of the two ABIs: functions of device.h and schema.h. */
struct fuzz_front {
	long (*call)(struct uvd_file *file, const uint8_t *bytes, size_t len);
	unsigned int (*num)(void); /* of methods or commands */
	void (*name)(unsigned int n, char name[64]);
	size_t (*make)(struct fuzz_gen *gen, unsigned int n, uint8_t *buf);
	size_t (*mutate)(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max);
	void (*dictionary)(void);
};

extern const struct fuzz_front fuzz_front;

#endif
