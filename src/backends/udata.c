/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The provider's part of a call, as a backend sees it. */
#include <string.h>
#include "backends/udata.h"

size_t uvd_udata_inlen(const struct uvd_udata *udata)
{
	return udata ? udata->ops->inlen(udata) : 0;
}

size_t uvd_udata_outlen(const struct uvd_udata *udata)
{
	return udata ? udata->ops->outlen(udata) : 0;
}

int uvd_udata_in_bytes(struct uvd_udata *udata, void *dst, size_t size)
{
	if (udata)
		return udata->ops->in(udata, dst, size);
	memset(dst, 0, size);
	return 0;
}

int uvd_udata_out_bytes(struct uvd_udata *udata, const void *src, size_t size)
{
	return udata ? udata->ops->out(udata, src, size) : 0;
}

int uvd_udata_refuse(struct uvd_udata *udata, int err, const struct uvd_why *why)
{
	return udata ? udata->ops->refuse(udata, err, why) : err;
}
