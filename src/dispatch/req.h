/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request in progress, as the steps of a row see it.
 *
 * Steps get checked attributes and set outputs. They access the client's memory only through these functions, except
 * for POST_SEND, which reads inline data with uvd_caller_read(). A request records the objects that it begins or
 * looks up; after the last step, uvd_req_finish() commits or aborts them. Inputs are read into our memory before the
 * first step, each exactly once. Exceptions are attributes behind pointers without UVD_ALLOC_AND_COPY: as in the
 * kernel, these are read once, when a step asks for them.
 *
 * Outputs are staged, and written to the client together after the last step. When the stage is full (POLL_CQ), it is
 * written earlier; an output that is larger is written through. Staged output is written even if a later step fails, as
 * the kernel would have written it by then (POST_SEND's bad_wr); if that write faults, -EFAULT replaces the step's
 * errno. A fault aborts the objects that were begun; destroyed objects stay destroyed.
 */
#ifndef UVD_REQ_H
#define UVD_REQ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include "client/client.h"
#include "core/core.h"

enum uvd_front { UVD_FRONT_WRITE, UVD_FRONT_INVOKE_WRITE, UVD_FRONT_IOCTL };

enum {
	UVD_REQ_ARGS = 512, /* bytes for a verb's decoded arguments */
	UVD_REQ_STAGE = 4096, /* bytes of staged output */
	UVD_REQ_AHEAD = 512, /* bytes of an ioctl, read with its header */
	UVD_REQ_IN = 4096, /* bytes of input that need no allocation */
	UVD_REQ_MAX_OBJECTS = 16, /* objects of a request that need no allocation */
	UVD_REQ_MAX_ATTRS = 32, /* attributes of a method that need no allocation */
	UVD_REQ_MAX_OUT = 16, /* staged pieces */
};

/* One parsed ioctl attribute. */
struct uvd_attr {
	const struct uvd_attr_row *row;
	uint64_t data; /* pointer, inline bytes, or number */
	uint16_t len, index; /* len: bytes; index: in the client's array */
	uint8_t elem; /* ENUM_IN: the element's number */
	bool present;
	const void *copy; /* ALLOC_AND_COPY: our copy */
	struct uvd_uobject *uobj; /* IDR, FD */
	struct uvd_uobject **uobjs; /* IDRS_ARRAY: num_uobjs of them */
	uint16_t num_uobjs;
};

/*
 * Input in our memory. core_in is read before the first step. If that fails, buf is NULL although len is not 0, and the
 * functions that steps get it with return the errno. uvd_uhw_in() reads the uhw_in of an ioctl.
 */
struct uvd_in {
	const uint8_t *buf; /* ours; NULL: not read */
	size_t len;
};
struct uvd_out {
	uint64_t addr; /* the client's; 0: none */
	size_t len;
	int attr; /* index of the ioctl attribute that gets VALID_OUTPUT; -1: none */
};

/* An fd that the transport must put into the client before it goes on: see struct uvd_call. */
struct uvd_grant {
	struct uvd_uobject *uobj; /* NULL: nothing to grant */
	struct uvd_event_file *file;
	uint64_t addr; /* in the client's memory, for the number */
	bool wide; /* s64 (an ioctl attribute), else s32 */
	bool may_fall_back; /* if granting fails, write -2 (async event files); else fail with EOPNOTSUPP */
};

struct uvd_call;

/* uvd_req_init() clears all of it. */
struct uvd_req {
	struct uvd_call *call;
	struct uvd_file *file;
	struct uvd_device *dev;
	const struct uvd_tree *tree; /* the file's, at the beginning of the request */
	struct uvd_caller *caller;
	enum uvd_front front;
	bool entered; /* the result of uvd_file_enter() */
	const char *name; /* of the command or method, for messages */
	const struct uvd_method_row *method; /* front IOCTL */
	struct uvd_in core_in, uhw_in;
	struct uvd_out core_out, uhw_out;
	struct uvd_attr *attrs; /* front IOCTL; one for each attribute of the merged method, see uvd_attr_get() */
	const struct uvd_tree_method *tree_method;
	unsigned int num_objects, num_outs; /* used entries of the buffers' objects[] and outs[] */
	struct uvd_req_objects *more_objects; /* those beyond objects[] */
	struct uvd_context *new_context; /* uvd_req_context() */
	void **new_plugin_data; /* the file's plugin_data with new_context */
	struct uvd_tree *new_tree; /* the file's from then on; NULL: no change */
	size_t staged, in_used; /* used bytes of the buffers' stage and in */
	/* IOCTL: the buffers' `ahead` has ahead_len bytes of the client's memory, from ahead_addr on. */
	uint64_t ahead_addr;
	size_t ahead_len;
	uint64_t core_in_addr; /* INVOKE_WRITE: where core_in came from */
	uint64_t user_attrs; /* IOCTL: the client's attributes */
	struct ib_uverbs_attr *uattrs; /* our copy of them */
	unsigned int num_uattrs;
	int new_attr; /* index of the attribute that gets the new handle; -1: none */
	uint64_t written[4]; /* bits: attributes that get VALID_OUTPUT */
	bool has_grant; /* uvd_req_grant() was called, and has set grant */
	struct uvd_grant grant;
	const char *bad_field; /* for the log: the field that was wrong */
	uint64_t bad_value;
	bool refused; /* for the log: by the backend, which does not tell why */
	void *allocated; /* list of uvd_req_alloc() blocks */
	const char *args_type; /* debug builds: the type that steps have passed to uvd_args() so far, or NULL */
	uint64_t args[UVD_REQ_ARGS / 8];
};

/*
 * The buffers of a request, which only the dispatcher uses. They are large, and written before they are read:
 * uvd_req_init() clears all of struct uvd_req, and nothing here.
 */
struct uvd_req_buffers {
	struct uvd_req_object {
		struct uvd_uobject *uobj;
		uint8_t access;
	} objects[UVD_REQ_MAX_OBJECTS];
	struct uvd_req_out {
		uint64_t addr;
		uint16_t at, len; /* in stage */
		int16_t attr; /* its index; -1: none */
	} outs[UVD_REQ_MAX_OUT];
	uint8_t stage[UVD_REQ_STAGE];
	uint8_t in[UVD_REQ_IN] __attribute__((aligned(8)));
	/* IOCTL: read with the header, because the structs that it points to often follow it. */
	uint8_t ahead[UVD_REQ_AHEAD] __attribute__((aligned(8)));
	struct uvd_attr attr_store[UVD_REQ_MAX_ATTRS];
} __attribute__((aligned(16))); /* or POLL_CQ is slower by a third; malloc() aligns no better */

/*
 * The verb's decoded arguments, of the type that all steps of its row share: memory of the request, zeroed at first. A
 * debug build stops if a step asks for another type than the steps before it.
 */
#define uvd_args(req, type) \
	({ \
		_Static_assert(sizeof(type) <= UVD_REQ_ARGS, "arguments too large"); \
		uvd_args_check(req, #type); \
		(type *)(req)->args; \
	})
static inline void uvd_args_check(struct uvd_req *req, const char *type)
{
#ifndef NDEBUG
	if (!req->args_type)
		req->args_type = type;
	assert(req->args_type == type || !strcmp(req->args_type, type));
#endif
}

/* Records which field is wrong, for the log, and returns err: return uvd_bad(req, -EINVAL, "port_num", p); */
int uvd_bad(struct uvd_req *req, int err, const char *field, uint64_t value);
/*
 * Records that the backend refused the request, for the log, and returns err. A field that was named before stays: then
 * it is the reason.
 */
int uvd_refused(struct uvd_req *req, int err);

/* Allocates zeroed memory that is valid until the request ends; or returns NULL. Not for data-path commands. */
void *uvd_req_alloc(struct uvd_req *req, size_t size);

/*
 * The size of the object that p points to. The functions below that copy one object have the suffix _bytes, and a macro
 * without it that takes the size from its pointer. For an array pass the array's address.
 */
#define uvd_object_size(p) \
	({ \
		_Static_assert(__builtin_types_compatible_p(typeof(p), typeof(&*(p))), "pass the array's address"); \
		sizeof(*(p)); \
	})

/* ---- write() and INVOKE_WRITE ------------------------------------------------------------------------------------ */

/*
 * uverbs_request(): copies the request struct. Shorter input is extended with zeros; the excess of longer input must be
 * zeros (-EOPNOTSUPP). -EFAULT: it could not be read.
 */
int uvd_core_in_bytes(struct uvd_req *req, void *dst, size_t size);
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
int uvd_core_start_bytes(struct uvd_req *req, struct uvd_core_iter *iter, void *dst, size_t size);
#define uvd_core_start(req, iter, dst) uvd_core_start_bytes(req, iter, dst, uvd_object_size(dst))
int uvd_core_next(struct uvd_req *req, struct uvd_core_iter *iter, const void **out, size_t size);
int uvd_core_finish(struct uvd_req *req, const struct uvd_core_iter *iter);
/*
 * uverbs_response(): stages a copy of the response struct, cut to the client's room; room beyond it is zeroed.
 * Returns 0 or -EFAULT.
 */
int uvd_core_out_bytes(struct uvd_req *req, const void *src, size_t size);
#define uvd_core_out(req, src) uvd_core_out_bytes(req, src, uvd_object_size(src))
/* Writes core output at offset `at`, and does not cut it to the client's room (POLL_CQ). Returns 0 or -EFAULT. */
int uvd_core_out_at(struct uvd_req *req, size_t at, const void *src, size_t size);

/* ---- the provider's part, all fronts ----------------------------------------------------------------------------- */

/*
 * ib_copy_from_udata(): copies the provider's request, extended with zeros to size bytes; longer input is ignored.
 * Call it once a request. Returns 0 or -EFAULT.
 */
int uvd_uhw_in(struct uvd_req *req, void *dst, size_t size);
/* Stages the provider's response, cut to the client's room. Returns 0 or -EFAULT. */
int uvd_uhw_out(struct uvd_req *req, const void *src, size_t size);

/* ---- ioctl attributes -------------------------------------------------------------------------------------------- */

/* Returns an attribute, or NULL: the client did not send it. */
const struct uvd_attr *uvd_attr_get(struct uvd_req *req, uint16_t id);
/* Copies at most size bytes of input; shorter input is extended with zeros. Returns 0; -ENOENT: not sent; -EFAULT. */
int uvd_attr_copy_from_bytes(struct uvd_req *req, uint16_t id, void *dst, size_t size);
#define uvd_attr_copy_from(req, id, dst) uvd_attr_copy_from_bytes(req, id, dst, uvd_object_size(dst))
/* Gets a CONST. Returns 0; -EINVAL: above max; -ENOENT: not sent. */
int uvd_attr_const(struct uvd_req *req, uint16_t id, uint64_t max, uint64_t *out);
/* Gets FLAGS, 0 if not sent. Returns 0; -EINVAL: its length is neither 4 nor 8, or a bit is outside `allowed`. */
int uvd_attr_flags(struct uvd_req *req, uint16_t id, uint64_t allowed, uint64_t *out);
/* Returns the object of an IDR or FD attribute, or NULL. */
struct uvd_uobject *uvd_attr_uobj(struct uvd_req *req, uint16_t id);
/* Returns the objects of an IDRS_ARRAY; *num is 0 if it was not sent. */
struct uvd_uobject **uvd_attr_uobjs(struct uvd_req *req, uint16_t id, unsigned int *num);
/* Returns the address of the attribute's data field in the client, for the number of a new fd. 0: not sent. */
uint64_t uvd_attr_addr(struct uvd_req *req, uint16_t id);
/* uverbs_output_written(): sets VALID_OUTPUT for an attribute whose memory was written in another way. */
void uvd_attr_written(struct uvd_req *req, uint16_t id);
/*
 * uverbs_copy_to(): stages min(size, len) bytes, or writes them through if large, and sets VALID_OUTPUT. Returns 0;
 * -ENOENT: not sent; -EFAULT.
 */
int uvd_attr_copy_to_bytes(struct uvd_req *req, uint16_t id, const void *src, size_t size);
#define uvd_attr_copy_to(req, id, src) uvd_attr_copy_to_bytes(req, id, src, uvd_object_size(src))
/* uverbs_copy_to_struct_or_zero(): the same, and zeroes the client's room beyond. */
int uvd_attr_copy_to_or_zero_bytes(struct uvd_req *req, uint16_t id, const void *src, size_t size);
#define uvd_attr_copy_to_or_zero(req, id, src) uvd_attr_copy_to_or_zero_bytes(req, id, src, uvd_object_size(src))

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/*
 * Begins an object, or looks one up, and records it for the end of the request. `object` is UVERBS_OBJECT_*. Errors are
 * those of uvd_uobject_begin() and uvd_uobject_get().
 */
int uvd_req_new(struct uvd_req *req, uint16_t object, struct uvd_uobject **out);
int uvd_req_get(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_uobj_access access,
		struct uvd_uobject **out);
/* Looks an object up by the client's fd number. */
int uvd_req_get_fd(struct uvd_req *req, uint16_t object, int64_t fd, struct uvd_uobject **out);
/* Records that the backend's object of uobj exists: an abort must destroy it. */
void uvd_req_made(struct uvd_req *req, struct uvd_uobject *uobj);
/*
 * Takes over `context`, which GET_CONTEXT has allocated for free() and made with the backend. The file gets it when
 * the outputs are written; if the call fails, it goes back to the backend and is freed. If another call was first,
 * this one ends with -EINVAL, after its outputs are written (context-03). From now on uvd_req_new() can begin FD
 * objects. tree: the file's with that context; NULL: no change. plugin_data: of uvd_trees_context_init(), taken over too.
 */
void uvd_req_context(struct uvd_req *req, struct uvd_context *context, struct uvd_tree *tree, void **plugin_data);
/* Looks an object up and destroys it. *out (out may be NULL) stays valid until the request ends, without its object. */
int uvd_req_destroy(struct uvd_req *req, uint16_t object, int64_t id, struct uvd_uobject **out);
/*
 * Asks for an fd in the client for the new FD object `uobj`; its number is written to the client's memory at `addr`. At
 * most one a request. For write() commands addr is core_out.addr + offset of the field.
 */
void uvd_req_grant(struct uvd_req *req, struct uvd_uobject *uobj, uint64_t addr, bool wide, bool may_fall_back);

/* ---- the dispatcher's own steps, for the rows of UVERBS_OBJECT_DEVICE -------------------------------------------- */

/* UVERBS_METHOD_INVOKE_WRITE: runs the row of a write() command. */
int uvd_step_invoke_write(struct uvd_req *req);
/* UVERBS_METHOD_INFO_HANDLES. */
int uvd_step_info_handles(struct uvd_req *req);

#endif
