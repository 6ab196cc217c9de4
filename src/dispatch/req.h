/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request under execution, as the steps of a row see it.
 *
 * Steps get checked attributes and set outputs; they never touch client memory by another way. Objects that a request
 * begins or looks up are remembered here; when the last step has run, one place (finish() in dispatch.c) commits or aborts
 * them. Inputs have been read into our memory before the first step, all of them exactly once, but for attributes behind
 * pointers that are not UVD_ALLOC_AND_COPY: these are read when a step asks, as the kernel does, once.
 *
 * Outputs are staged and written to the client in one go after the last step (POLL_CQ and the like, whose outputs can be
 * larger than the stage, write through as they go). What was staged is written even if a later step fails, as the kernel
 * had written it by then (POST_SEND's bad_wr); -EFAULT goes before that step's errno. A fault aborts what was begun; what
 * was destroyed stays so.
 */
#ifndef UVD_REQ_H
#define UVD_REQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include "client/client.h"
#include "core/core.h"

enum uvd_front { UVD_FRONT_WRITE, UVD_FRONT_INVOKE_WRITE, UVD_FRONT_IOCTL };

enum {
	UVD_REQ_ARGS = 512, /* bytes for a verb's decoded arguments */
	UVD_REQ_STAGE = 4096, /* bytes of staged output */
	UVD_REQ_AHEAD = 512, /* bytes of an ioctl that are read at once */
	UVD_REQ_IN = 4096, /* bytes of input that need no allocation */
	UVD_REQ_MAX_OBJECTS = 16, /* objects of a request that need no allocation */
	UVD_REQ_MAX_ATTRS = 32, /* attributes of a method that need no allocation */
	UVD_REQ_MAX_OUT = 16, /* staged pieces */
};

/* One parsed ioctl attribute. */
struct uvd_attr {
	const struct uvd_attr_row *row;
	uint64_t data; /* pointer, inline bytes, or number */
	uint16_t len, index; /* index: in the client's array */
	uint8_t elem; /* ENUM_IN */
	bool present;
	const void *copy; /* ALLOC_AND_COPY: our copy */
	struct uvd_uobject *uobj; /* IDR, FD */
	struct uvd_uobject **uobjs; /* IDRS_ARRAY: num_uobjs of them */
	uint16_t num_uobjs;
};

/*
 * Input in our memory. core_in is read before the first step: buf is NULL while len is not 0 if the client's memory could
 * not be read, which is -EFAULT for the step that wants it. uhw_in of an ioctl is read by uvd_uhw_in() only.
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
	uint64_t addr; /* where the number goes */
	bool wide; /* s64 (an ioctl attribute), else s32 */
	bool may_fall_back; /* -2 is written where granting fails (async event files); else the call fails, EOPNOTSUPP */
};

struct uvd_call;

struct uvd_req {
	struct uvd_call *call;
	struct uvd_file *file;
	struct uvd_device *dev;
	const struct uvd_tree *tree; /* what the file accepts at this moment */
	struct uvd_caller *caller;
	enum uvd_front front;
	bool entered; /* what uvd_file_enter() said */
	const char *name; /* of the command or method, for messages */
	const struct uvd_write_row *write; /* fronts WRITE and INVOKE_WRITE */
	const struct uvd_method_row *method; /* front IOCTL */
	struct uvd_in core_in, uhw_in;
	struct uvd_out core_out, uhw_out;
	struct uvd_attr *attrs; /* front IOCTL; as many as the merged method has, see uvd_attr_get() */
	const struct uvd_tree_method *tree_method;
	struct uvd_req_object { struct uvd_uobject *uobj; uint8_t access; } objects[UVD_REQ_MAX_OBJECTS];
	unsigned int num_objects;
	struct uvd_req_objects *more_objects; /* where there were more */
	struct uvd_context *new_context; /* uvd_req_context() */
	struct uvd_tree *new_tree; /* what the file accepts from then on; NULL: no change */
	struct { uint64_t addr; uint16_t at, len; int16_t attr; } outs[UVD_REQ_MAX_OUT]; /* attr: whose output; -1: nobody's */
	unsigned int num_outs;
	size_t staged;
	size_t in_used; /* of in */
	uint64_t core_in_addr; /* INVOKE_WRITE: where core_in came from */
	uint64_t user_attrs; /* IOCTL: the client's attributes */
	struct ib_uverbs_attr *uattrs; /* our copy of them */
	unsigned int num_uattrs;
	int new_attr; /* that names the new object, and is written at the end; -1: none */
	uint64_t written[4]; /* bits: attributes that get VALID_OUTPUT */
	bool has_grant; /* uvd_req_grant() was called, with this: */
	struct uvd_grant grant;
	const char *bad_field; /* for the log: what was wrong */
	uint64_t bad_value;
	void *allocated; /* list of uvd_req_alloc() blocks */
	uint64_t args[UVD_REQ_ARGS / 8]; /* zeroed */
	uint8_t stage[UVD_REQ_STAGE];
	uint8_t in[UVD_REQ_IN] __attribute__((aligned(8)));
	/* IOCTL: the client's memory from ahead_addr on, read with the header: what it points to is often there. */
	uint64_t ahead_addr;
	size_t ahead_len;
	uint8_t ahead[UVD_REQ_AHEAD] __attribute__((aligned(8)));
	struct uvd_attr attr_store[UVD_REQ_MAX_ATTRS];
};

/* The verb's decoded arguments: zeroed memory of UVD_REQ_ARGS bytes that all steps of the request share. */
#define uvd_args(req, type) \
	({ _Static_assert(sizeof(type) <= UVD_REQ_ARGS, "arguments too large"); (type *)(req)->args; })

/* Says which field is wrong, for the one log line, and hands the errno on: return uvd_bad(req, -EINVAL, "port_num", p); */
int uvd_bad(struct uvd_req *req, int err, const char *field, uint64_t value);

/* Zeroed memory until the request ends, or NULL. Not for data-path commands. */
void *uvd_req_alloc(struct uvd_req *req, size_t size);

/* ---- write() and INVOKE_WRITE ------------------------------------------------------------------------------------ */

/* uverbs_request(): the request struct; shorter input is zero-extended, a longer one must end in zeros (-EOPNOTSUPP). */
int uvd_core_in(struct uvd_req *req, void *dst, size_t size);
/*
 * A request struct and the arrays behind it: uverbs_request_start(), _next() and _finish(). start: -ENOSPC if the struct
 * is not all there. next: the next size bytes, ours until the request ends and aligned as they come (-ENOSPC: the client
 * sent fewer). finish: what is left must be zero (-EOPNOTSUPP). All -EFAULT.
 */
struct uvd_core_iter { size_t at; };
int uvd_core_start(struct uvd_req *req, struct uvd_core_iter *iter, void *dst, size_t size);
int uvd_core_next(struct uvd_req *req, struct uvd_core_iter *iter, const void **out, size_t size);
int uvd_core_finish(struct uvd_req *req, const struct uvd_core_iter *iter);
/*
 * uverbs_response(): stages the response struct, cut to what the client has room for; what it has beyond is zeroed.
 * src is copied.
 */
int uvd_core_out(struct uvd_req *req, const void *src, size_t size);
/* Bytes of core output at offset `at`, however long (POLL_CQ). */
int uvd_core_out_at(struct uvd_req *req, size_t at, const void *src, size_t size);

/* ---- the provider's part, all fronts ----------------------------------------------------------------------------- */

/*
 * ib_copy_from_udata(): the provider's request, zero-extended to size bytes; what the client has beyond is not looked at.
 * -EFAULT. Once.
 */
int uvd_uhw_in(struct uvd_req *req, void *dst, size_t size);
/* Stages the provider's response, cut to what the client has room for. */
int uvd_uhw_out(struct uvd_req *req, const void *src, size_t size);

/* ---- ioctl attributes -------------------------------------------------------------------------------------------- */

/* NULL: the client did not send it. */
const struct uvd_attr *uvd_attr_get(struct uvd_req *req, uint16_t id);
/* Input of any length: up to size bytes; less is zero-extended. -ENOENT: not sent. -EFAULT. */
int uvd_attr_copy_from(struct uvd_req *req, uint16_t id, void *dst, size_t size);
/* CONST within [0, max] else -EINVAL. -ENOENT: not sent. */
int uvd_attr_const(struct uvd_req *req, uint16_t id, uint64_t max, uint64_t *out);
/* FLAGS: not sent is 0; -EINVAL: a length but 4 and 8, or a bit outside `allowed`. */
int uvd_attr_flags(struct uvd_req *req, uint16_t id, uint64_t allowed, uint64_t *out);
/* The object behind an IDR or FD attribute, or NULL. */
struct uvd_uobject *uvd_attr_uobj(struct uvd_req *req, uint16_t id);
/* Those behind an IDRS_ARRAY; *num is 0 if it was not sent. */
struct uvd_uobject **uvd_attr_uobjs(struct uvd_req *req, uint16_t id, unsigned int *num);
/* Where the attribute's data field is in the client: there the number of a new fd goes. */
uint64_t uvd_attr_addr(struct uvd_req *req, uint16_t id);
/* The attribute's memory was written by another way: VALID_OUTPUT (uverbs_output_written()). */
void uvd_attr_written(struct uvd_req *req, uint16_t id);
/* uverbs_copy_to(): min(size, len) bytes, and VALID_OUTPUT. -ENOENT: not sent. Stages, or writes through if large. */
int uvd_attr_copy_to(struct uvd_req *req, uint16_t id, const void *src, size_t size);
/* uverbs_copy_to_struct_or_zero(): as above, and zeros what the client has beyond. */
int uvd_attr_copy_to_or_zero(struct uvd_req *req, uint16_t id, const void *src, size_t size);

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/*
 * Begins an object / looks one up, and remembers it for the end of the request. `object` is UVERBS_OBJECT_*. Errors as
 * uvd_uobject_begin() and uvd_uobject_get().
 */
int uvd_req_new(struct uvd_req *req, uint16_t object, struct uvd_uobject **out);
int uvd_req_get(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_access access, struct uvd_uobject **out);
/* By the client's fd number. */
int uvd_req_get_fd(struct uvd_req *req, uint16_t object, int64_t fd, struct uvd_uobject **out);
/* The backend's object behind uobj exists now: an abort must destroy it. */
void uvd_req_made(struct uvd_req *req, struct uvd_uobject *uobj);
/*
 * GET_CONTEXT has made `context` (by malloc) with the backend: the file gets it when the outputs have been written, or,
 * if the call fails, the backend and then free(). Where another call was first, this one ends with -EINVAL, outputs
 * written (context-03). FD objects can be begun meanwhile by uvd_req_new(). tree: what the file accepts with that context;
 * NULL: what it accepted before.
 */
void uvd_req_context(struct uvd_req *req, struct uvd_context *context, struct uvd_tree *tree);
/* Looks up and destroys. *out (may be NULL) stays valid, without its object, until the request ends. */
int uvd_req_destroy(struct uvd_req *req, uint16_t object, int64_t id, struct uvd_uobject **out);
/*
 * The new FD object `uobj` needs an fd in the client; its number goes to the client's memory at `addr`. At most one a
 * request. For write() commands addr is core_out.addr + offset of the field.
 */
void uvd_req_grant(struct uvd_req *req, struct uvd_uobject *uobj, uint64_t addr, bool wide, bool may_fall_back);

/* ---- steps of the dispatcher's own, for the rows of UVERBS_OBJECT_DEVICE ------------------------------------------- */

/* UVERBS_METHOD_INVOKE_WRITE: runs the row of a write() command. */
int uvd_step_invoke_write(struct uvd_req *req);
/* UVERBS_METHOD_INFO_HANDLES. */
int uvd_step_info_handles(struct uvd_req *req);

#endif
