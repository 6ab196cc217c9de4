/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider's part of a call: struct ib_udata. The provider of libibverbs appends driver data to its request, and
 * leaves room for the driver's answer. The core does not look at either; it passes them to the operation of the backend.
 *
 * The provider of a persona with mapped queues (persona.h) has a driver data ABI that the core serves itself: with such a
 * persona a backend leaves udata alone.
 *
 * Locking and ownership: udata belongs to the call, and is valid until the operation returns. Only the thread of the
 * operation uses it, and holds no lock meanwhile: reading can block for as long as the client likes. NULL is valid in
 * all functions, and means that there is no data and no room: the core itself calls the operation.
 */
#ifndef UVERBSD_UDATA_H
#define UVERBSD_UDATA_H

#include <stddef.h>
#include <uverbsd/api.h>

struct uvd_udata;
struct uvd_why;

/*
 * The size of the object that p points to. The functions below and in request.h that copy one object have the suffix
 * _bytes, and a macro without it that takes the size from its pointer. For an array pass the array's address.
 */
#define uvd_object_size(p) \
	({ \
		_Static_assert(__builtin_types_compatible_p(__typeof__(p), __typeof__(&*(p))), \
			       "pass the array's address"); \
		sizeof(*(p)); \
	})

/* udata->inlen and udata->outlen: the bytes that the client has sent, and the bytes that it has room for. */
UVD_API size_t uvd_udata_inlen(const struct uvd_udata *udata);
UVD_API size_t uvd_udata_outlen(const struct uvd_udata *udata);
/*
 * ib_copy_from_udata(): copies the provider's request, extended with zeros to size bytes; longer input is ignored. It may
 * read the client's memory, where the same bytes may be others the next time: call it once. Returns 0 or -EFAULT.
 */
UVD_API int uvd_udata_in_bytes(struct uvd_udata *udata, void *dst, size_t size);
#define uvd_udata_in(udata, dst) uvd_udata_in_bytes(udata, dst, uvd_object_size(dst))
/*
 * ib_copy_to_udata(): answers the provider, cut to the client's room. The answer reaches the client when the call
 * succeeds or fails later; a second answer of the same call replaces the first one. Returns 0, or -EFAULT.
 */
UVD_API int uvd_udata_out_bytes(struct uvd_udata *udata, const void *src, size_t size);
#define uvd_udata_out(udata, src) uvd_udata_out_bytes(udata, src, uvd_object_size(src))
/*
 * Names the reason (reason.h) for which the operation is going to fail with err, for the client's user, and returns err. It
 * copies the reason and touches no memory of the client: locks may be held.
 */
UVD_API int uvd_udata_refuse(struct uvd_udata *udata, int err, const struct uvd_why *why);

#endif
