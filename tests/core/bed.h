/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A test device for the tests of the core: toy objects with toy commands on the real parser, handle table and event
 * files. The client is this process. Accesses to bed.hole in its memory fail with EFAULT.
 */
#ifndef TEST_CORE_BED_H
#define TEST_CORE_BED_H

#include <check.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "uv.h"

enum { DRIVER = 7 };
/* Objects. */
enum { OBJ_DEVICE, OBJ_TOY = 40, OBJ_OTHER, OBJ_CHANNEL, OBJ_ABSENT = 99 };
/* Methods of OBJ_DEVICE, then of OBJ_TOY. */
enum { M_INVOKE_WRITE, M_INFO_HANDLES, M_MANY };
enum { M_DESTROY, M_NEW, M_USE, M_DESTROY_ANSWER, M_BAD_PROTO, M_UDATA };
/* Methods of OBJ_CHANNEL. */
enum { M_CHANNEL_NEW };
/* Attributes. */
enum {
	A_TOY,
	A_IN,
	A_OUT,
	A_LONG,
	A_COPY,
	A_ENUM,
	A_TOYS,
	A_RAW,
	A_FLAGS,
	A_CONST,
	A_WRITE_TOY,
	A_SHORT,
	A_ANY,
	A_FD,
	A_WRITE_FD
};
enum { MANY_OUTS = 40 }; /* M_MANY has attributes 0 to 39, of 8 bytes */
/* Numbers of write() commands: plain (W_), then extended (X_). */
enum {
	W_NEW,
	W_DESTROY,
	W_UDATA,
	W_CONTEXT,
	W_CHANNEL,
	W_USE,
	W_SECOND_FAILS,
	W_HOLD = 11,
	W_AT,
	W_USE_NEW,
	W_DESTROY_CQ = 20
};
enum { X_ITER = 2, X_ECHO };
enum { W_AT_APART = 3, W_AT_APART_LONG = UVD_REQ_STAGE + 1 }; /* 4 bytes at offset 16, then this many at 0 */

/* The object behind a toy's handle. */
struct toy {
	int tag;
	int refuse; /* the next so many destructions fail with EBUSY */
};

struct bed {
	struct uvd_engine engine;
	struct uvd_device dev;
	struct uvd_trees trees; /* its only generation */
	struct uvd_call call;
	struct uvd_mem_ops mem;
	int reads, writes; /* accesses to client memory so far */
	uint64_t hole, hole_len; /* accesses to this memory fail with EFAULT */
	int ran; /* steps that were executed */
	int fail; /* errno that M_NEW's and W_NEW's last step returns */
	int (*fail_by)(struct uvd_req *req); /* or this function, in place of that step */
	int destroyed[64], num_destroyed; /* tags, in order */
	int reasons[64];
	int next_tag, refuse; /* for the next toy */
	uint64_t seen[8]; /* arguments that the last step received */
	int contexts; /* alive */
	bool empty_outs; /* M_MANY writes nothing to its attributes */
};

/* The steps need it, so there is one at a time. */
extern struct bed bed;

extern const struct uvd_feature bed_feature;

/* A device with bed_feature, an open file, and (unless without_context) a context. */
void bed_setup(void);
void bed_setup_without_context(void);
void bed_teardown(void);

/* From now on bed.mem has read_ahead(): a read may return more than the minimum. */
void bed_may_read_ahead(void);

void tree_begin(struct uv_tree *t, uint16_t object, uint16_t method);
/* Adds an attribute, as uv_attr(). */
struct ib_uverbs_attr *tree_attr(struct uv_tree *t, uint16_t id, uint64_t data, uint16_t len);
long tree_send(struct uv_tree *t);

/* Creates a toy by ioctl. Returns its handle, or a negative errno. */
int64_t toy_new(void);
long toy_destroy(uint32_t handle);
struct uvd_uobject *toy_get(uint32_t handle, enum uvd_uobj_access access, int *err);

/* Sends a plain command: a header and `len` bytes of request. */
long write_plain(uint32_t command, const void *req, size_t len, size_t out_len);

#endif
