/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The inside of <uverbsd/udata.h>: the caller of a backend provides the data. */
#ifndef UVD_BACKENDS_UDATA_H
#define UVD_BACKENDS_UDATA_H

#include <uverbsd/udata.h>

/* The functions of the same names in <uverbsd/udata.h>, for a udata that is not NULL. */
struct uvd_udata_ops {
	size_t (*inlen)(const struct uvd_udata *udata);
	size_t (*outlen)(const struct uvd_udata *udata);
	int (*in)(struct uvd_udata *udata, void *dst, size_t size);
	int (*out)(struct uvd_udata *udata, const void *src, size_t size);
	int (*refuse)(struct uvd_udata *udata, int err, const struct uvd_why *why);
};

struct uvd_udata {
	const struct uvd_udata_ops *ops;
};

#endif
