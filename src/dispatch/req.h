/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request in progress: what <uverbsd/request.h> hides from the steps of plug-ins, for the dispatcher and the objects of
 * the kernel's ABI.
 */
#ifndef UVD_REQ_H
#define UVD_REQ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/reason.h>
#include <uverbsd/request.h>
#include <uverbsd/schema.h>
#include "backends/backends.h"
#include "client/client.h"
#include "core/core.h"

enum uvd_front { UVD_FRONT_WRITE, UVD_FRONT_INVOKE_WRITE, UVD_FRONT_IOCTL };

enum {
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
 * functions that steps get it with return the errno. uvd_uhw_in() or uvd_req_fetch_udata() reads the uhw_in of an ioctl.
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
	/* Not NULL: no fd is wanted, and file is NULL: a thread of the client shall make this registration. */
	struct uvd_registration *registration;
	int (*end)(struct uvd_req *req, int64_t result); /* of the registration; returns 0 or a negative errno */
	/* A descriptor that can be mapped must take the place of the client's (struct uvd_file.unmapped). uobj may be NULL then. */
	bool replaces;
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
	/*
	 * The result of uvd_file_enter() is in `entered` or, while there is an observer, in `entered_watched`, and
	 * `entered` is false: so the end of a request tests one word.
	 */
	bool entered, entered_watched;
	const char *name; /* of the command or method, for messages */
	const struct uvd_method_row *method; /* front IOCTL */
	struct uvd_in core_in, uhw_in;
	struct uvd_out core_out, uhw_out;
	struct uvd_udata udata; /* uhw_in and uhw_out, for the backend */
	bool uhw_fetched; /* uvd_req_fetch_udata() was called: uhw_in and uhw_out do not access the client any more */
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
	struct uvd_observation *observation; /* NULL: nobody observes the call */
	bool has_grant; /* uvd_req_grant() was called, and has set grant */
	struct uvd_grant grant;
	const char *bad_field; /* for the log: the field that was wrong */
	uint64_t bad_value;
	bool refused; /* for the log: by the backend, which does not tell why */
	bool has_why; /* for the log: the buffers' `why` is the reason, and no field */
	uint16_t bad_type; /* for the log: the type of the object whose handle is bad_value; 0: it is no handle */
	const char *about; /* for the log: the object that the request is about, "QP", and its number; NULL: none */
	uint32_t about_number;
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
	struct uvd_why why; /* with has_why */
} __attribute__((aligned(16))); /* or POLL_CQ is slower by a third; malloc() aligns no better */

/* ---- ioctl attributes -------------------------------------------------------------------------------------------- */

/* Returns an attribute, or NULL: the client did not send it. */
const struct uvd_attr *uvd_attr_get(struct uvd_req *req, uint16_t id);
/* Returns the address of the attribute's data field in the client, for the number of a new fd. 0: not sent. */
uint64_t uvd_attr_addr(struct uvd_req *req, uint16_t id);

/* Debug builds: stops if the steps of a row pass different types to uvd_args(). */
static inline void uvd_req_args_check(struct uvd_req *req, const char *type)
{
#ifndef NDEBUG
	if (!req->args_type)
		req->args_type = type;
	assert(req->args_type == type || !strcmp(req->args_type, type));
#endif
}

/*
 * Returns uvd_req_udata() for an operation that the caller must call with a lock held that others need: it has read the
 * provider's request already (an operation that wants what could not be read gets -EFAULT), and the answer must fit into
 * what is left of the stage (-ENOSPC). NULL: the request does not fit into the buffer for input.
 */
struct uvd_udata *uvd_req_fetch_udata(struct uvd_req *req);

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Names the object that the request is about, for the line that explains a refusal. object: constant. */
static inline void uvd_req_about(struct uvd_req *req, const char *object, uint32_t number)
{
	req->about = object;
	req->about_number = number;
}
/* Looks an object up by the client's fd number. */
int uvd_req_get_fd(struct uvd_req *req, uint16_t object, int64_t fd, struct uvd_uobject **out);
/*
 * Takes over `context`, which GET_CONTEXT has allocated for free() and made with the backend. The file gets it when
 * the outputs are written; if the call fails, it goes back to the backend and is freed. If another call was first,
 * this one ends with -EINVAL, after its outputs are written (context-03). From now on uvd_req_new() can begin FD
 * objects. tree: the file's with that context; NULL: no change. plugin_data: of uvd_trees_context_init(), taken over too.
 */
void uvd_req_context(struct uvd_req *req, struct uvd_context *context, struct uvd_tree *tree, void **plugin_data);
/*
 * Asks for an fd in the client for the new FD object `uobj`; its number is written to the client's memory at `addr`. At
 * most one a request. For write() commands addr is core_out.addr + offset of the field.
 */
void uvd_req_grant(struct uvd_req *req, struct uvd_uobject *uobj, uint64_t addr, bool wide, bool may_fall_back);

/*
 * Asks for a registration by a thread of the client, for the new object `uobj`: before the client goes on, end() gets its
 * result, as <uverbsd/registration.h> says, and ends the request. If it returns an errno, uobj is destroyed. At most one
 * a request, and no uvd_req_grant() beside it.
 */
void uvd_req_register(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_registration *registration,
		      int (*end)(struct uvd_req *req, int64_t result));

/* ---- the dispatcher's own steps, for the rows of UVERBS_OBJECT_DEVICE -------------------------------------------- */

/* UVERBS_METHOD_INVOKE_WRITE: runs the row of a write() command. */
int uvd_step_invoke_write(struct uvd_req *req);
/* UVERBS_METHOD_INFO_HANDLES. */
int uvd_step_info_handles(struct uvd_req *req);

#endif
