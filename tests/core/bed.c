/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "bed.h"

#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/client.h"

struct bed bed;

/* ---- toys -------------------------------------------------------------------------------------------------------- */

static int toy_ends(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct toy *toy = uobj->object;

	if (toy->refuse > 0 && why != UVD_REMOVE_DRIVER_FAILURE) {
		toy->refuse--;
		return -EBUSY;
	}
	bed.reasons[bed.num_destroyed % 64] = why;
	bed.destroyed[bed.num_destroyed++ % 64] = toy->tag;
	free(toy);
	return 0;
}

static int make_toy(struct uvd_req *req, struct uvd_uobject *uobj)
{
	struct toy *toy = calloc(1, sizeof(*toy));

	if (!toy)
		return -ENOMEM;
	toy->tag = bed.next_tag++;
	toy->refuse = bed.refuse;
	uvd_uobject_set_object(uobj, toy);
	bed.ran++;
	if (bed.fail_by)
		return bed.fail_by(req);
	return bed.fail ? uvd_refused(req, bed.fail) : 0;
}

static int step_new(struct uvd_req *req)
{
	return make_toy(req, uvd_attr_uobj(req, A_TOY));
}

static int step_answer(struct uvd_req *req)
{
	uint64_t answer[2] = { 0x1122334455667788, 0x99 };
	int ret = uvd_attr_copy_to_or_zero(req, A_OUT, &answer);

	bed.ran++;
	return ret == -ENOENT ? 0 : ret;
}

static int step_use(struct uvd_req *req)
{
	unsigned int n;
	int ret;

	bed.ran++;
	uvd_attr_uobjs(req, A_TOYS, &n);
	bed.seen[0] = n;
	ret = uvd_attr_copy_from_bytes(req, A_IN, &bed.seen[1], 16);
	if (ret && ret != -ENOENT)
		return ret;
	ret = uvd_attr_copy_from_bytes(req, A_COPY, &bed.seen[3], 16);
	if (ret && ret != -ENOENT)
		return ret;
	ret = uvd_attr_const(req, A_CONST, 100, &bed.seen[5]);
	if (ret && ret != -ENOENT)
		return ret;
	ret = uvd_attr_flags(req, A_FLAGS, 7, &bed.seen[6]);
	if (ret)
		return ret;
	bed.seen[7] = uvd_attr_get(req, A_ENUM) ? uvd_attr_get(req, A_ENUM)->elem : 0;
	return 0;
}

static int step_bad_proto(struct uvd_req *req)
{
	return -EPROTONOSUPPORT;
}

/* ---- write() commands -------------------------------------------------------------------------------------------- */

struct w_new {
	uint64_t response;
	uint64_t arg;
};

struct w_new_resp {
	uint32_t handle, arg;
};

static int step_w_new(struct uvd_req *req)
{
	struct w_new_resp resp = { 0 };
	struct uvd_uobject *uobj;
	struct w_new cmd;
	int ret = uvd_core_in(req, &cmd);

	if (!ret)
		ret = uvd_req_new(req, OBJ_TOY, &uobj);
	if (!ret)
		ret = make_toy(req, uobj);
	if (ret)
		return ret;
	resp.handle = uobj->id;
	resp.arg = cmd.arg;
	return uvd_core_out(req, &resp);
}

static int step_w_destroy(struct uvd_req *req)
{
	uint32_t handle[2];
	int ret = uvd_core_in(req, &handle);

	return ret ? ret : uvd_req_destroy(req, OBJ_TOY, handle[0], NULL);
}

static int step_w_use(struct uvd_req *req)
{
	struct uvd_uobject *uobj;
	uint32_t handle[2];
	int ret = uvd_core_in(req, &handle);

	for (unsigned int i = 0; i < handle[1] && !ret; i++)
		ret = uvd_req_get(req, OBJ_TOY, handle[0], UVD_UOBJ_READ, &uobj);
	bed.ran += !ret;
	return ret;
}

static void see_lengths(struct uvd_req *req)
{
	bed.seen[0] = req->core_in.len;
	bed.seen[1] = req->uhw_in.len;
	bed.seen[2] = req->core_out.len;
	bed.seen[3] = req->uhw_out.len;
}

static int step_w_udata(struct uvd_req *req)
{
	const uint32_t resp = 0xaabbccdd, hw[2] = { 1, 2 };
	int ret;

	see_lengths(req);
	ret = uvd_uhw_in(req, &bed.seen[4], 8);
	if (!ret)
		ret = uvd_core_out(req, &resp);
	return ret ? ret : uvd_uhw_out(req, hw, sizeof(hw));
}

static int step_w_context(struct uvd_req *req)
{
	struct uvd_context *context = calloc(1, sizeof(*context));
	uint32_t resp[2] = { 0x77, 0x78 };
	struct uvd_uobject *uobj;
	int ret;

	bed.contexts++;
	uvd_req_context(req, context, NULL, NULL);
	ret = uvd_req_new(req, UVERBS_OBJECT_ASYNC_EVENT, &uobj);
	if (ret)
		return ret;
	uobj->event_file = uvd_event_file_new(16, NULL, &(int){ 0 });
	uvd_req_grant(req, uobj, req->core_out.addr, false, true);
	return uvd_core_out(req, &resp);
}

static int step_w_channel(struct uvd_req *req)
{
	struct uvd_uobject *uobj;
	int ret = uvd_req_new(req, OBJ_CHANNEL, &uobj);

	if (ret)
		return ret;
	uobj->event_file = uvd_event_file_new(8, NULL, &(int){ 0 });
	uvd_req_grant(req, uobj, req->core_out.addr, false, false);
	return 0;
}

/* The first step of W_SECOND_FAILS responds, the second fails. POST_SEND returns bad_wr in this way. */
static int step_w_answer(struct uvd_req *req)
{
	uint32_t resp = 0x1234;

	return uvd_core_out(req, &resp);
}

static int step_w_fail(struct uvd_req *req)
{
	return -ENOMEM;
}

static int step_w_destroy_cq(struct uvd_req *req)
{
	struct ib_uverbs_destroy_cq cmd;
	int ret = uvd_core_in(req, &cmd);

	bed.seen[0] = cmd.cq_handle;
	bed.ran++;
	return ret;
}

/* Locks a toy for reading, then creates a channel, whose grant stays pending after the call. */
static int step_w_hold(struct uvd_req *req)
{
	struct uvd_uobject *toy;
	uint64_t cmd[2];
	int ret = uvd_core_in(req, &cmd);

	if (!ret)
		ret = uvd_req_get(req, OBJ_TOY, cmd[1], UVD_UOBJ_READ, &toy);
	return ret ? ret : step_w_channel(req);
}

/* Writes arg bytes of response at offset 0. seen: has the command an attribute, did a huge allocation succeed? */
static int step_w_at(struct uvd_req *req)
{
	static const uint8_t answer[UVD_REQ_STAGE + 8];
	struct w_new cmd;
	int ret = uvd_core_in(req, &cmd);

	bed.seen[0] = uvd_attr_get(req, A_IN) != NULL;
	bed.seen[1] = uvd_req_alloc(req, SIZE_MAX) != NULL;
	if (!ret && (cmd.arg == W_AT_APART || cmd.arg == W_AT_APART_LONG))
		ret = uvd_core_out_at(req, 16, answer, 4);
	return ret ? ret : uvd_core_out_at(req, 0, answer, cmd.arg);
}

/* Looks a toy up as often as the command says, then creates one. */
static int step_w_use_new(struct uvd_req *req)
{
	int ret = step_w_use(req);
	struct uvd_uobject *uobj;

	if (!ret)
		ret = uvd_req_new(req, OBJ_TOY, &uobj);
	return ret ? ret : make_toy(req, uobj);
}

static int step_x_iter(struct uvd_req *req)
{
	struct uvd_core_iter iter;
	const void *part;
	uint64_t first;
	int ret = uvd_core_start(req, &iter, &first);

	if (!ret)
		ret = uvd_core_next(req, &iter, &part, 8);
	return ret ? ret : uvd_core_finish(req, &iter);
}

static int step_x_echo(struct uvd_req *req)
{
	uint64_t in[2];
	int ret = uvd_core_in(req, &in);

	see_lengths(req);
	bed.ran++;
	return ret ? ret : uvd_core_out(req, &in);
}

static int step_channel_new(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, A_TOY);

	uobj->event_file = uvd_event_file_new(8, NULL, &(int){ 0 });
	uvd_req_grant(req, uobj, uvd_attr_addr(req, A_TOY), true, false);
	return 0;
}

static int step_udata(struct uvd_req *req)
{
	bed.seen[7] = uvd_attr_addr(req, A_OUT);
	uvd_attr_written(req, A_OUT);
	uvd_attr_written(req, A_IN);
	bed.seen[6] = uvd_attr_get(req, A_TOYS) != NULL;
	if (uvd_uhw_out(req, bed.seen, 8))
		return -EFAULT;
	return uvd_uhw_in(req, bed.seen, 16);
}

static int step_many(struct uvd_req *req)
{
	int ret = 0;

	for (uint64_t id = 0; id < MANY_OUTS && !ret; id++) {
		ret = uvd_attr_copy_to_bytes(req, id, &id, bed.empty_outs ? 0 : sizeof(id));
		if (ret == -ENOENT)
			ret = 0;
	}
	return ret;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define STEPS(...) ((const uvd_step[]){ __VA_ARGS__, NULL })
#define METHOD(i, a, s) \
	{ \
		.name = #i, .id = i, UVD_ROWS(attrs, a), .steps = s \
	}
#define WRITE(n, f, in, out, s) \
	{ \
		.name = #n, .number = n, .flags = f, .req_size = in, .resp_size = out, .steps = STEPS(s) \
	}

static const struct uvd_attr_row enum_elems[] = {
	{ .name = "elem 0", .type = UVD_ATTR_PTR_IN, .min_len = 4, .len = 4 },
	{ .name = "elem 1", .type = UVD_ATTR_PTR_IN, .min_len = 8, .len = 8 },
	{ .name = "elem 2", .type = UVD_ATTR_PTR_OUT, .min_len = 8, .len = 8 },
};

static const struct uvd_attr_row new_attrs[] = {
	UVD_IDR(A_TOY, OBJ_TOY, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(A_OUT, 4, 0),
	UVD_PTR_IN(A_CONST, 4, UVD_MANDATORY),
};
static const struct uvd_attr_row destroy_attrs[] = {
	UVD_IDR(A_TOY, OBJ_TOY, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};
static const struct uvd_attr_row destroy_answer_attrs[] = {
	UVD_IDR(A_TOY, OBJ_TOY, UVD_UOBJ_DESTROY, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(A_OUT, 4, UVD_MANDATORY),
};
static const struct uvd_attr_row use_attrs[] = {
	UVD_IDR(A_TOY, OBJ_TOY, UVD_UOBJ_READ, 0),
	UVD_IDR(A_WRITE_TOY, OBJ_TOY, UVD_UOBJ_WRITE, 0),
	UVD_PTR_IN(A_IN, 16, 0),
	UVD_PTR_IN_STRUCT(A_LONG, 8, 16, 0),
	UVD_PTR_IN_STRUCT(A_COPY, 8, 16, UVD_ALLOC_AND_COPY),
	{ .name = "A_ENUM", .id = A_ENUM, .type = UVD_ATTR_ENUM_IN, .elems = enum_elems, .num_elems = 3 },
	{ .name = "A_TOYS",
	  .id = A_TOYS,
	  .type = UVD_ATTR_IDRS_ARRAY,
	  .object = OBJ_TOY,
	  .access = UVD_UOBJ_READ,
	  .min_len = 1,
	  .len = 100 },
	{ .name = "A_RAW", .id = A_RAW, .type = UVD_ATTR_RAW_FD },
	UVD_FLAGS_IN(A_FLAGS, 0),
	UVD_CONST_IN(A_CONST, 0),
	UVD_PTR_IN_STRUCT(A_SHORT, 4, 4, 0),
	UVD_IDR(A_ANY, 0xffff, UVD_UOBJ_READ, 0),
	UVD_FD(A_FD, OBJ_CHANNEL, UVD_UOBJ_READ, 0),
	UVD_FD(A_WRITE_FD, OBJ_CHANNEL, UVD_UOBJ_WRITE, 0),
};
static const struct uvd_attr_row udata_attrs[] = { UVD_PTR_OUT(A_OUT, 8, 0), UVD_UHW() };
static const struct uvd_method_row toy_methods[] = {
	METHOD(M_DESTROY, destroy_attrs, NULL),
	METHOD(M_NEW, new_attrs, STEPS(step_new, step_answer)),
	METHOD(M_USE, use_attrs, STEPS(step_use)),
	METHOD(M_DESTROY_ANSWER, destroy_answer_attrs, STEPS(step_answer)),
	METHOD(M_UDATA, udata_attrs, STEPS(step_udata)),
	{ .name = "M_BAD_PROTO", .id = M_BAD_PROTO, .steps = STEPS(step_bad_proto) },
};
static const struct uvd_write_row toy_writes[] = {
	WRITE(W_NEW, UVD_WRITE_RESP, sizeof(struct w_new), sizeof(struct w_new_resp), step_w_new),
	WRITE(W_DESTROY, 0, 8, 0, step_w_destroy),
	WRITE(W_USE, 0, 8, 0, step_w_use),
	WRITE(W_UDATA, UVD_WRITE_RESP | UVD_WRITE_UDATA, 16, 4, step_w_udata),
	WRITE(X_ECHO, UVD_WRITE_EX, 16, 16, step_x_echo),
	{ .name = "W_SECOND_FAILS",
	  .number = W_SECOND_FAILS,
	  .flags = UVD_WRITE_RESP,
	  .req_size = 8,
	  .resp_size = 4,
	  .steps = STEPS(step_w_answer, step_w_fail) },
	WRITE(W_AT, UVD_WRITE_RESP, sizeof(struct w_new), 0, step_w_at),
	WRITE(W_USE_NEW, 0, 8, 0, step_w_use_new),
	WRITE(X_ITER, UVD_WRITE_EX, 8, 0, step_x_iter),
	WRITE(W_DESTROY_CQ, UVD_WRITE_RESP, 16, 8, step_w_destroy_cq),
};
static const struct uvd_object_row toy = {
	.name = "toy",
	.id = OBJ_TOY,
	.cls = UVD_CLASS_IDR,
	.destroy = toy_ends,
	UVD_ROWS(methods, toy_methods),
	UVD_ROWS(writes, toy_writes),
};

static const struct uvd_object_row other = { .name = "other", .id = OBJ_OTHER, .cls = UVD_CLASS_IDR };
static const struct uvd_object_row async_event = {
	.name = "UVERBS_OBJECT_ASYNC_EVENT",
	.id = UVERBS_OBJECT_ASYNC_EVENT,
	.cls = UVD_CLASS_FD,
};

static const struct uvd_attr_row channel_attrs[] = { UVD_FD(A_TOY, OBJ_CHANNEL, UVD_UOBJ_NEW, UVD_MANDATORY) };
static const struct uvd_method_row channel_methods[] = {
	METHOD(M_CHANNEL_NEW, channel_attrs, STEPS(step_channel_new)),
};
static const struct uvd_write_row channel_writes[] = {
	WRITE(W_CHANNEL, UVD_WRITE_RESP, 8, 4, step_w_channel),
	WRITE(W_HOLD, UVD_WRITE_RESP, 16, 4, step_w_hold),
};
static const struct uvd_object_row channel = {
	.name = "channel",
	.id = OBJ_CHANNEL,
	.cls = UVD_CLASS_FD,
	UVD_ROWS(methods, channel_methods),
	UVD_ROWS(writes, channel_writes),
};

static const struct uvd_attr_row invoke_attrs[] = {
	UVD_PTR_IN_MIN(UVERBS_ATTR_CORE_IN, 4, 0),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_CORE_OUT, 0, 0),
	UVD_CONST_IN(UVERBS_ATTR_WRITE_CMD, UVD_MANDATORY),
	UVD_UHW(),
};
static const struct uvd_attr_row info_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_INFO_OBJECT_ID, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, 0),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_INFO_HANDLES_LIST, 4, 0),
};
#define MANY(n) \
	{ \
		.name = "A_MANY", .id = n, .type = UVD_ATTR_PTR_OUT, .min_len = 8, .len = 8 \
	}
#define MANY10(n) \
	MANY(n), MANY(n + 1), MANY(n + 2), MANY(n + 3), MANY(n + 4), MANY(n + 5), MANY(n + 6), MANY(n + 7), \
		MANY(n + 8), MANY(n + 9)
static const struct uvd_attr_row many_attrs[MANY_OUTS] = { MANY10(0), MANY10(10), MANY10(20), MANY10(30) };
static const struct uvd_method_row device_methods[] = {
	METHOD(M_MANY, many_attrs, STEPS(step_many)),
	METHOD(M_INVOKE_WRITE, invoke_attrs, STEPS(uvd_step_invoke_write)),
	METHOD(M_INFO_HANDLES, info_attrs, STEPS(uvd_step_info_handles)),
};
static const struct uvd_write_row device_writes[] = {
	WRITE(W_CONTEXT, UVD_WRITE_RESP | UVD_WRITE_NO_CONTEXT, 8, 8, step_w_context),
};
static const struct uvd_object_row device = {
	.name = "device",
	.id = OBJ_DEVICE,
	UVD_ROWS(methods, device_methods),
	UVD_ROWS(writes, device_writes),
};

static const struct uvd_object_row *const objects[] = { &device, &toy, &other, &channel, &async_event, NULL };
const struct uvd_feature bed_feature = { .name = "toys", .objects = objects };

/* ---- the client's memory ----------------------------------------------------------------------------------------- */

static bool in_hole(uint64_t addr, size_t len)
{
	return addr < bed.hole + bed.hole_len && bed.hole < addr + len;
}

static int mem_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	bed.reads++;
	if (in_hole(src, len))
		return -EFAULT;
	memcpy(dst, (const void *)(uintptr_t)src, len);
	return 0;
}

/* Reads through the kernel, which stops at the first unmapped page. */
static ssize_t mem_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	bed.reads++;
	return uvd_mem_process.read_ahead(c, dst, src, least, most);
}

void bed_may_read_ahead(void)
{
	bed.mem.read_ahead = mem_read_ahead;
}

static int put(uint64_t dst, const void *src, size_t len)
{
	if (in_hole(dst, len))
		return -EFAULT;
	memcpy((void *)(uintptr_t)dst, src, len);
	return 0;
}

static int mem_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	bed.writes++;
	return put(dst, src, len);
}

static int mem_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	int err = 0;

	bed.writes++;
	for (unsigned int i = 0; i < n && !err; i++)
		err = put(v[i].addr, v[i].src, v[i].len);
	return err;
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static void dealloc_context(struct uvd_context *context)
{
	bed.contexts--;
}

static const struct uvd_backend backend = { .name = "toy", .dealloc_context = dealloc_context };

void bed_setup_without_context(void)
{
	const struct uvd_feature *features[] = { &bed_feature, NULL };
	int err;

	memset(&bed, 0, sizeof(bed));
	bed.mem = (struct uvd_mem_ops){ .read = mem_read, .write = mem_write, .writev = mem_writev };
	atomic_init(&bed.dev.ref, 1);
	bed.dev.engine = &bed.engine;
	bed.dev.ib.ops = &backend;
	bed.dev.ib.owner = &bed.dev;
	pthread_mutex_init(&bed.dev.lock, NULL);
	INIT_LIST_HEAD(&bed.dev.files);
	atomic_init(&bed.trees.ref, 1);
	bed.dev.trees = &bed.trees;
	bed.trees.plain = uvd_tree_new(features, NULL, DRIVER, NULL, &err);
	ck_assert_ptr_nonnull(bed.trees.plain);
	bed.call.file = uvd_file_open(&bed.dev, NULL, &err);
	ck_assert_ptr_nonnull(bed.call.file);
	bed.call.caller = (struct uvd_caller){
		.mem = &bed.mem,
		.proc = &uvd_proc_local,
		.tid = gettid(),
		.tgid = getpid(),
		.memfd = -1,
	};
}

void bed_setup(void)
{
	bed_setup_without_context();
	atomic_store(&bed.call.file->context, calloc(1, sizeof(struct uvd_context)));
	bed.contexts = 1;
}

void bed_teardown(void)
{
	if (bed.call.file)
		uvd_file_close(bed.call.file);
	ck_assert_int_eq(bed.contexts, 0);
	uvd_tree_free(bed.trees.plain);
	pthread_mutex_destroy(&bed.dev.lock);
	memset(&bed, 0, sizeof(bed)); /* LeakSanitizer reports no memory that a pointer still reaches */
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

void tree_begin(struct uv_tree *t, uint16_t object, uint16_t method)
{
	t->hdr = (struct ib_uverbs_ioctl_hdr){ .object_id = object, .method_id = method, .driver_id = DRIVER };
}

struct ib_uverbs_attr *tree_attr(struct uv_tree *t, uint16_t id, uint64_t data, uint16_t len)
{
	return uv_attr(t, id, len, data);
}

long tree_send(struct uv_tree *t)
{
	t->hdr.length = sizeof(t->hdr) + t->hdr.num_attrs * sizeof(t->hdr.attrs[0]);
	return uvd_dispatch_ioctl(&bed.call, RDMA_VERBS_IOCTL, (uintptr_t)t);
}

int64_t toy_new(void)
{
	struct uv_tree t;
	long ret;

	tree_begin(&t, OBJ_TOY, M_NEW);
	tree_attr(&t, A_TOY, 0, 0);
	tree_attr(&t, A_CONST, 0, 4);
	ret = tree_send(&t);
	return ret ? ret : t.hdr.attrs[0].data_s64;
}

long toy_destroy(uint32_t handle)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_TOY, M_DESTROY);
	tree_attr(&t, A_TOY, handle, 0);
	return tree_send(&t);
}

struct uvd_uobject *toy_get(uint32_t handle, enum uvd_uobj_access access, int *err)
{
	struct uvd_uobject *uobj = NULL;

	*err = uvd_uobject_get(bed.call.file, &toy, handle, access, &uobj);
	return uobj;
}

long write_plain(uint32_t command, const void *req, size_t len, size_t out_len)
{
	static struct uv_msg msg;

	uv_msg_plain(&msg, command, req, len, out_len);
	return uvd_dispatch_write(&bed.call, msg.bytes, msg.len);
}
