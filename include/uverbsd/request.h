/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request in progress, as the steps of a row (schema.h) see it: struct uverbs_attr_bundle and the helpers around it.
 *
 * Steps get checked attributes and set outputs. They access the client's memory only through these functions. A request
 * records the objects that it begins or looks up; after the last step, the dispatcher commits or aborts them. Inputs are
 * read into the engine's memory before the first step, each exactly once. Exceptions are attributes behind pointers
 * without UVD_ALLOC_AND_COPY: as in the kernel, these are read each time that a step asks for them, so ask once.
 *
 * Outputs are staged, and written to the client together after the last step. When the stage is full, it is written
 * earlier; an output that is larger is written through. Staged output is written even if a later step fails, as the
 * kernel would have written it by then; if that write faults, -EFAULT replaces the step's errno. A fault aborts the
 * objects that were begun; destroyed objects stay destroyed.
 *
 * Locking: a request belongs to the thread that runs its steps, so only steps call these functions, without any lock. A
 * step may hold locks of its own, except while it reads or writes the client's memory, which can block for as long as
 * the client likes. Ownership: what these functions return belongs to the request, and is valid until it ends.
 */
#ifndef UVERBSD_REQUEST_H
#define UVERBSD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/api.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include <uverbsd/udata.h>

struct uvd_log;
struct uvd_req;
struct uvd_why;
struct uvd_uobject; /* a handle, or an event file, of an open file: struct ib_uobject */

/* Returns the device. Never NULL. */
UVD_API struct uvd_ibdev *uvd_req_ibdev(const struct uvd_req *req);
/*
 * ib_uverbs_get_ucontext(): returns the context of the open file; in GET_CONTEXT after it was made, the new one. NULL:
 * the file has none yet. For a step that needs one see uvd_step_context().
 */
UVD_API struct uvd_context *uvd_req_ucontext(const struct uvd_req *req);
/*
 * Returns the engine's log; NULL: there is none. A message that a client can cause must use uvd_log_limited(), or
 * uvd_log_of_user().
 */
UVD_API struct uvd_log *uvd_req_log(const struct uvd_req *req);

enum { UVD_REQ_ARGS = 512 /* bytes for a verb's decoded arguments */ };

/* Returns the memory that uvd_args() hands out. type: the name of the type that the caller stores there. */
UVD_API void *uvd_req_args(struct uvd_req *req, const char *type);
/*
 * The verb's decoded arguments, of the type that all steps of its row share: memory of the request, zeroed at first. A
 * debug build stops if a step asks for another type than the steps before it.
 */
#define uvd_args(req, type) \
	({ \
		_Static_assert(sizeof(type) <= UVD_REQ_ARGS, "arguments too large"); \
		(type *)uvd_req_args(req, #type); \
	})

/* Records which field is wrong, for the log, and returns err: return uvd_bad(req, -EINVAL, "port_num", p); */
UVD_API int uvd_bad(struct uvd_req *req, int err, const char *field, uint64_t value);
/* Records the reason (reason.h) for which the request is refused, in place of a field, and returns err. */
UVD_API int uvd_refuse(struct uvd_req *req, int err, const struct uvd_why *why);
/*
 * Records that the backend refused the request, for the log, and returns err. A field or a reason that was named before
 * stays.
 */
UVD_API int uvd_refused(struct uvd_req *req, int err);

/*
 * uverbs_zalloc(): allocates zeroed memory that is valid until the request ends; or returns NULL. Not for data-path
 * commands.
 */
UVD_API void *uvd_req_alloc(struct uvd_req *req, size_t size);

/*
 * Step: checks that the file has a context. Returns 0; -EIO: the device was removed; -EINVAL: the file has no context
 * yet. For a method without objects, whose look-up would check that.
 */
UVD_API int uvd_step_context(struct uvd_req *req);

/*
 * copy_from_user() and copy_to_user(): access `size` bytes of the caller's memory now, with the rights of the caller.
 * For pointers within the input. Return 0; -EFAULT: some bytes may have been copied. What is read may have changed since
 * any earlier read: read once, then check the copy.
 */
UVD_API int uvd_req_copy_from_user(struct uvd_req *req, void *dst, uint64_t src, size_t size);
UVD_API int uvd_req_copy_to_user(struct uvd_req *req, uint64_t dst, const void *src, size_t size);

/* ---- write() and INVOKE_WRITE ------------------------------------------------------------------------------------ */

/*
 * uverbs_request(): copies the request struct. Shorter input is extended with zeros; the excess of longer input must be
 * zeros (-EOPNOTSUPP). -EFAULT: it could not be read.
 */
UVD_API int uvd_core_in_bytes(struct uvd_req *req, void *dst, size_t size);
#define uvd_core_in(req, dst) uvd_core_in_bytes(req, dst, uvd_object_size(dst))
/*
 * Read a request struct and the arrays behind it: uverbs_request_start(), _next() and _finish(). start: copies the
 * struct; -ENOSPC: it is not complete. next: sets *out to our copy of the next size bytes, which is valid until the
 * request ends and may be unaligned; -ENOSPC: the client sent fewer. finish: the rest must be zero, else -EOPNOTSUPP.
 * start and next: -EFAULT.
 */
struct uvd_core_iter {
	size_t at;
};
UVD_API int uvd_core_start_bytes(struct uvd_req *req, struct uvd_core_iter *iter, void *dst, size_t size);
#define uvd_core_start(req, iter, dst) uvd_core_start_bytes(req, iter, dst, uvd_object_size(dst))
UVD_API int uvd_core_next(struct uvd_req *req, struct uvd_core_iter *iter, const void **out, size_t size);
UVD_API int uvd_core_finish(struct uvd_req *req, const struct uvd_core_iter *iter);
/*
 * uverbs_response(): stages a copy of the response struct, cut to the client's room; room beyond it is zeroed.
 * Returns 0 or -EFAULT.
 */
UVD_API int uvd_core_out_bytes(struct uvd_req *req, const void *src, size_t size);
#define uvd_core_out(req, src) uvd_core_out_bytes(req, src, uvd_object_size(src))
/* Writes core output at offset `at`, and does not cut it to the client's room (POLL_CQ). Returns 0 or -EFAULT. */
UVD_API int uvd_core_out_at(struct uvd_req *req, size_t at, const void *src, size_t size);
/*
 * uverbs_response_length(): the response_length of an extended response, min(the client's room, size): how many bytes of
 * it the client gets.
 */
UVD_API uint32_t uvd_response_length(const struct uvd_req *req, size_t size);

/* ---- the provider's part, all fronts ----------------------------------------------------------------------------- */

/*
 * ib_copy_from_udata(): copies the provider's request, extended with zeros to size bytes; longer input is ignored.
 * Call it once a request. Returns 0 or -EFAULT.
 */
UVD_API int uvd_uhw_in(struct uvd_req *req, void *dst, size_t size);
/* ib_copy_to_udata(): stages the provider's response, cut to the client's room. Returns 0 or -EFAULT. */
UVD_API int uvd_uhw_out(struct uvd_req *req, const void *src, size_t size);
/* attrs->driver_udata: both as an operation of a backend gets them. Never NULL. */
UVD_API struct uvd_udata *uvd_req_udata(struct uvd_req *req);

/* ---- ioctl attributes -------------------------------------------------------------------------------------------- */

/* uverbs_attr_is_valid(): did the client send this attribute? */
UVD_API bool uvd_attr_is_present(struct uvd_req *req, uint16_t id);
/* uverbs_attr_get_len(): returns the bytes of an input, or the client's room for an output. 0: not sent. */
UVD_API size_t uvd_attr_len(struct uvd_req *req, uint16_t id);
/*
 * uverbs_copy_from(): copies at most size bytes of input; shorter input is extended with zeros. Returns 0; -ENOENT: not
 * sent; -EFAULT. Reads the client's memory at each call.
 */
UVD_API int uvd_attr_copy_from_bytes(struct uvd_req *req, uint16_t id, void *dst, size_t size);
#define uvd_attr_copy_from(req, id, dst) uvd_attr_copy_from_bytes(req, id, dst, uvd_object_size(dst))
/* uverbs_get_const(): gets a CONST. Returns 0; -EINVAL: above max; -ENOENT: not sent. *out is unchanged on error. */
UVD_API int uvd_attr_const(struct uvd_req *req, uint16_t id, uint64_t max, uint64_t *out);
/*
 * uverbs_get_flags64(): gets FLAGS, 0 if not sent. Returns 0; -EINVAL: its length is neither 4 nor 8, or a bit is outside
 * `allowed`.
 */
UVD_API int uvd_attr_flags(struct uvd_req *req, uint16_t id, uint64_t allowed, uint64_t *out);
/* uverbs_attr_get_enum_id(): returns which element of an ENUM_IN the client chose. -ENOENT: not sent. */
UVD_API int uvd_attr_enum_id(struct uvd_req *req, uint16_t id);
/* uverbs_output_written(): sets VALID_OUTPUT for an attribute whose memory was written in another way. */
UVD_API void uvd_attr_written(struct uvd_req *req, uint16_t id);
/*
 * uverbs_copy_to(): stages min(size, len) bytes, or writes them through if large, and sets VALID_OUTPUT. Returns 0;
 * -ENOENT: not sent; -EFAULT.
 */
UVD_API int uvd_attr_copy_to_bytes(struct uvd_req *req, uint16_t id, const void *src, size_t size);
#define uvd_attr_copy_to(req, id, src) uvd_attr_copy_to_bytes(req, id, src, uvd_object_size(src))
/* uverbs_copy_to_struct_or_zero(): the same, and zeroes the client's room beyond. */
UVD_API int uvd_attr_copy_to_or_zero_bytes(struct uvd_req *req, uint16_t id, const void *src, size_t size);
#define uvd_attr_copy_to_or_zero(req, id, src) uvd_attr_copy_to_or_zero_bytes(req, id, src, uvd_object_size(src))

/*
 * Objects of attributes. The request has looked them up, or begun them, with the access of the attribute's row, and
 * keeps them locked until it ends: shared for UVD_UOBJ_READ, else exclusively.
 */

/*
 * uverbs_attr_get_obj(): returns the object behind an IDR attribute: struct uvd_pd for UVERBS_OBJECT_PD, or a plug-in's
 * own struct. NULL: not sent; the attribute is UVD_UOBJ_NEW and has no object yet, or is UVD_UOBJ_DESTROY; or it is an
 * FD, whose event file has no object.
 */
UVD_API void *uvd_attr_object(struct uvd_req *req, uint16_t id);
/* uverbs_attr_get_uobject(): returns the handle of an IDR or FD attribute, or NULL: not sent. */
UVD_API struct uvd_uobject *uvd_attr_uobj(struct uvd_req *req, uint16_t id);
/* uverbs_attr_get_uobjs_arr(): returns the handles of an IDRS_ARRAY; *num is 0 if it was not sent. */
UVD_API struct uvd_uobject **uvd_attr_uobjs(struct uvd_req *req, uint16_t id, unsigned int *num);
/*
 * uobj->object = object, for the new handle of attribute `id` (UVD_UOBJ_NEW), which must have been sent. From now on the
 * handle owns the object, and the row's destroy() frees it: also if a later step fails. Call it last, when nothing else
 * can fail, or leave what failed to destroy().
 */
UVD_API void uvd_attr_set_object(struct uvd_req *req, uint16_t id, void *object);

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/*
 * uobj_alloc() and uobj_get_read(), _write(): begin an object, or look one up, for a write() command, and record it for
 * the end of the request. `object` is UVERBS_OBJECT_*, or a plug-in's own id. new: *out has a handle that nobody else
 * sees, until the request commits it; give it its object by uvd_uobject_set_object(). Return 0; -EINVAL: there is no such
 * object type, or the handle has another type, or (new) there is no context yet; -ENOENT: no such handle; -EBUSY: it
 * is in use by another call; -EIO: the device was removed; -EAGAIN, -EMFILE, -ENOMEM: the opener has too many
 * objects, event files, or bytes.
 */
UVD_API int uvd_req_new(struct uvd_req *req, uint16_t object, struct uvd_uobject **out);
UVD_API int uvd_req_get(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_uobj_access access,
			struct uvd_uobject **out);
/*
 * uobj_perform_destroy(): looks an object up and destroys it. *out (out may be NULL) stays valid until the request ends,
 * without its object. Returns 0, or an errno of uvd_req_get() or of the row's destroy().
 */
UVD_API int uvd_req_destroy(struct uvd_req *req, uint16_t object, int64_t id, struct uvd_uobject **out);

/*
 * The object of a handle; NULL: none yet, or destroyed. A row's destroy() frees it and returns 0; then the core forgets
 * it. For a destroy(), and for steps that have the handle from the functions above.
 */
UVD_API void *uvd_uobject_object(const struct uvd_uobject *uobj);
/* Gives a new handle its object: see uvd_attr_set_object(). */
UVD_API void uvd_uobject_set_object(struct uvd_uobject *uobj, void *object);
/* Returns the handle's number, for the response. */
UVD_API uint32_t uvd_uobject_id(const struct uvd_uobject *uobj);
/* Return the device, and the context of the open file, for a destroy(): both outlive all objects of the file. */
UVD_API struct uvd_ibdev *uvd_uobject_ibdev(const struct uvd_uobject *uobj);
UVD_API struct uvd_context *uvd_uobject_ucontext(const struct uvd_uobject *uobj);
/*
 * Charge memory to the opener's account, until it is uncharged or the handle is gone: what an object holds beside the
 * size that its row names. One thread at a time for an object; no lock needed. Returns 0, or -ENOMEM: the user would
 * exceed a limit.
 */
UVD_API int uvd_uobject_charge(struct uvd_uobject *uobj, uint64_t bytes);
UVD_API void uvd_uobject_uncharge(struct uvd_uobject *uobj, uint64_t bytes);

/* ---- events ------------------------------------------------------------------------------------------------------ */

/*
 * ib_uverbs_async_handler(): posts an asynchronous event to the context's asynchronous event file, the one that
 * GET_CONTEXT made, or the first that the client made later. type: a value of enum ibv_event_type, or the plug-in's own,
 * from 0x10000 on; element: what the event carries, such as a user handle. The event stays until the client reads it,
 * also when what it is about was destroyed. Any thread, from the context's begin until its end; takes locks of the
 * core, so the caller holds none that a step could wait for. Returns 0; -ENOENT: the context has no asynchronous event
 * file; or the event is lost: -EPIPE: the client has closed the file; -EAGAIN: the file is full.
 */
UVD_API int uvd_context_event(struct uvd_context *context, uint32_t type, uint64_t element);

#endif
