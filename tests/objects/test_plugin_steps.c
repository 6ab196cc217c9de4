/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The steps of a plug-in's rows see a request through <uverbsd/request.h> alone. */
#include <check.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <uverbsd/plugin.h>
#include <uverbsd/request.h>
#include "../suite.h"
#include "encode.h"

#define BAD ((void *)0x10) /* not mapped */

static struct harness h;

/* ---- a plug-in's rows -------------------------------------------------------------------------------------------- */

enum { OBJ_NOTE = 0x1101, M_NEW = 0x1101, M_READ, M_EVENT, M_END, M_FORGET };
enum { A_NOTE = 0x1101, A_TEXT, A_PLACE, A_KIND, A_TYPE, A_PD, A_SEEN, A_BIG, A_MORE };
enum { W_NOTE = 0x70 };

struct note {
	uint64_t text;
	struct uvd_ibdev *dev;
	struct uvd_context *context;
};

struct seen {
	uint64_t pd, len;
	int32_t kind;
	uint32_t has_place;
};

static unsigned int num_notes;
static int fail; /* what the last step of M_NEW returns */
static enum { NOTHING, THE_OBJECT, THE_OUTPUT } forget; /* what M_FORGET forgets */

static struct note *note_make(struct uvd_req *req, uint64_t text)
{
	struct note *note = calloc(1, sizeof(*note));

	*note = (struct note){ .text = text, .dev = uvd_req_ibdev(req), .context = uvd_req_ucontext(req) };
	num_notes++;
	return note;
}

static int note_new(struct uvd_req *req)
{
	struct seen seen = {
		.pd = (uintptr_t)uvd_attr_object(req, A_PD),
		.len = uvd_attr_len(req, A_PD),
		.kind = uvd_attr_enum_id(req, A_KIND),
		.has_place = uvd_attr_is_present(req, A_PLACE),
	};
	uint64_t text;
	pid_t thread = 0;
	int ret = uvd_attr_copy_from(req, A_TEXT, &text);

	ck_assert_str_eq(uvd_dispatch_site(&thread), "M_NEW");
	ck_assert_int_eq(thread, h.call->caller.tid);
	ck_assert_ptr_null(uvd_attr_object(req, A_NOTE));
	ck_assert_ptr_null(uvd_attr_object(req, A_TEXT));
	if (ret)
		return ret;
	uvd_attr_set_object(req, A_NOTE, note_make(req, text));
	return uvd_attr_copy_to(req, A_SEEN, &seen);
}

static int note_fail(struct uvd_req *req)
{
	return fail;
}

/* Exchanges the note with the 8 bytes at a place in the client's memory. */
static int note_read(struct uvd_req *req)
{
	struct note *note = uvd_attr_object(req, A_NOTE);
	const uint64_t old = note->text;
	uint64_t place, text;
	int ret = uvd_attr_copy_from(req, A_PLACE, &place);

	ret = ret ?: uvd_req_copy_from_user(req, &text, place, sizeof(text));
	if (ret)
		return ret;
	note->text = text;
	return uvd_req_copy_to_user(req, place, &old, sizeof(old));
}

static int note_event(struct uvd_req *req)
{
	uint64_t type;
	int ret = uvd_attr_const(req, A_TYPE, UINT32_MAX, &type);

	return ret ? ret : uvd_context_event(uvd_req_ucontext(req), type, 0x77);
}

static int note_end(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct note *note = uvd_uobject_object(uobj);

	if (!note)
		return 0;
	ck_assert_ptr_eq(note->dev, uvd_uobject_ibdev(uobj));
	ck_assert_ptr_eq(note->context, uvd_uobject_ucontext(uobj));
	free(note);
	num_notes--;
	return 0;
}

/* Both outputs do not fit into the stage, so the first is written before the method ends. */
static int note_forget(struct uvd_req *req)
{
	static const uint8_t big[UVD_REQ_STAGE / 4 * 3];
	int ret;

	if (forget != THE_OBJECT)
		uvd_attr_set_object(req, A_NOTE, note_make(req, 0));
	ret = forget == THE_OUTPUT ? 0 : uvd_attr_copy_to(req, A_BIG, &big);
	return ret ? ret : uvd_attr_copy_to(req, A_MORE, &big);
}

/* Before M_END destroys the note. Nothing locks it then. */
static int note_before_end(struct uvd_req *req)
{
	ck_assert_ptr_null(uvd_attr_object(req, A_NOTE));
	ck_assert_ptr_nonnull(uvd_attr_uobj(req, A_NOTE));
	return 0;
}

/* After GET_CONTEXT, whose context the file does not have yet. */
static int note_after_context(struct uvd_req *req)
{
	ck_assert_ptr_nonnull(uvd_req_ucontext(req));
	return 0;
}

struct note_args {
	struct uvd_uobject *uobj;
};

static int note_write_begin(struct uvd_req *req)
{
	return uvd_req_new(req, OBJ_NOTE, &uvd_args(req, struct note_args)->uobj);
}

static int note_write(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct note_args)->uobj;
	struct {
		uint64_t response, text;
	} in;
	int ret = uvd_core_in(req, &in);
	uint32_t out[2] = { uvd_uobject_id(uobj), uvd_response_length(req, sizeof(out)) };

	if (ret)
		return ret;
	uvd_uobject_set_object(uobj, note_make(req, in.text));
	ret = uvd_uobject_charge(uobj, 100);
	return ret ? ret : uvd_core_out(req, &out);
}

static const uvd_step new_steps[] = { note_new, note_fail, NULL };
static const uvd_step read_steps[] = { note_read, NULL };
static const uvd_step event_steps[] = { uvd_step_context, note_event, NULL };
static const uvd_step forget_steps[] = { note_forget, NULL };
static const uvd_step before_end_steps[] = { note_before_end, NULL };
static const uvd_step after_context_steps[] = { note_after_context, NULL };
static const uvd_step write_steps[] = { note_write_begin, note_write, NULL };

static const struct uvd_attr_row kinds[] = { UVD_PTR_IN(A_KIND, 0, 0), UVD_PTR_IN(A_KIND, 0, 0) };
static const struct uvd_attr_row new_attrs[] = {
	UVD_IDR(A_NOTE, OBJ_NOTE, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(A_TEXT, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(A_PLACE, sizeof(uint64_t), 0),
	UVD_ENUM_IN(A_KIND, kinds, 0),
	UVD_IDR(A_PD, UVERBS_OBJECT_PD, UVD_UOBJ_READ, 0),
	UVD_PTR_OUT(A_SEEN, sizeof(struct seen), UVD_MANDATORY),
};
static const struct uvd_attr_row read_attrs[] = {
	UVD_IDR(A_NOTE, OBJ_NOTE, UVD_UOBJ_WRITE, UVD_MANDATORY),
	UVD_PTR_IN(A_PLACE, sizeof(uint64_t), UVD_MANDATORY),
};
static const struct uvd_attr_row event_attrs[] = { UVD_CONST_IN(A_TYPE, UVD_MANDATORY) };
static const struct uvd_attr_row forget_attrs[] = {
	UVD_IDR(A_NOTE, OBJ_NOTE, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(A_BIG, 1, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(A_MORE, 1, UVD_MANDATORY),
};
static const struct uvd_attr_row end_attrs[] = { UVD_IDR(A_NOTE, OBJ_NOTE, UVD_UOBJ_DESTROY, UVD_MANDATORY) };

static const struct uvd_method_row methods[] = {
	UVD_METHOD(M_NEW, new_attrs, new_steps),	  UVD_METHOD(M_READ, read_attrs, read_steps),
	UVD_METHOD(M_EVENT, event_attrs, event_steps),	  UVD_METHOD(M_END, end_attrs, NULL),
	UVD_METHOD(M_FORGET, forget_attrs, forget_steps),
};
static const struct uvd_write_row writes[] = {
	UVD_WRITE(W_NOTE, UVD_WRITE_RESP, 16, 8, write_steps, 0),
};
static const struct uvd_object_row note_object = {
	.name = "NOTE",
	.id = OBJ_NOTE,
	.cls = UVD_CLASS_IDR,
	.destroy = note_end,
	UVD_ROWS(methods, methods),
	UVD_ROWS(writes, writes),
};
static const struct uvd_object_row *const objects[] = { &note_object, NULL };
static const struct uvd_feature feature = { .name = "notes", .objects = objects };

static const struct uvd_method_row wrapped_methods[] = {
	{ .name = "M_END", .id = M_END, .steps = before_end_steps, .when = UVD_STEPS_BEFORE },
};
static const struct uvd_write_row wrapped_writes[] = { {
	.name = "IB_USER_VERBS_CMD_GET_CONTEXT",
	.number = IB_USER_VERBS_CMD_GET_CONTEXT,
	.steps = after_context_steps,
	.when = UVD_STEPS_AFTER,
} };
static const struct uvd_object_row wrapped_note = { .name = "NOTE",
						    .id = OBJ_NOTE,
						    UVD_ROWS(methods, wrapped_methods) };
static const struct uvd_object_row wrapped_device = {
	.name = "UVERBS_OBJECT_DEVICE",
	.id = UVERBS_OBJECT_DEVICE,
	UVD_ROWS(writes, wrapped_writes),
};
static const struct uvd_object_row *const wrapped[] = { &wrapped_note, &wrapped_device, NULL };
static const struct uvd_feature wrappers = { .name = "notes' wrappers", .objects = wrapped };
static const struct uvd_feature *const features[] = { &feature, &wrappers, NULL };
static const struct uvd_plugin plugin = {
	.api_version = UVD_API_VERSION,
	.struct_size = sizeof(plugin),
	.name = "notes",
	.features = features,
};

/* ---- the client -------------------------------------------------------------------------------------------------- */

static void setup_notes(void)
{
	harness_init(&h, "null");
	ck_assert_int_eq(uvd_plugins_add_builtin(h.engine.plugins, &plugin), 0);
	harness_start(&h, &uvd_mem_process);
	num_notes = fail = 0;
}

static void teardown_notes(void)
{
	harness_close(&h);
	ck_assert_uint_eq(num_notes, 0);
}

/* Makes a note by the method. pd 0xffffffff: without one. Returns 0 and sets *handle, or a negative errno. */
static int note_create(uint64_t text, uint32_t pd, struct seen *seen, uint32_t *handle)
{
	struct uv_tree tree = {};
	int ret;

	uv_attr_obj(&tree, A_NOTE, 0);
	uv_attr_in(&tree, A_TEXT, &text, sizeof(text));
	uv_attr_out(&tree, A_SEEN, seen, sizeof(*seen));
	if (pd != UINT32_MAX) {
		uv_attr_obj(&tree, A_PD, pd);
		uv_attr(&tree, A_KIND, 0, 0)->attr_data.enum_data.elem_id = 1;
	}
	ret = harness_ioctl(&h, OBJ_NOTE, M_NEW, &tree);
	*handle = uv_attr_find(&tree, A_NOTE)->data;
	return ret;
}

static int note_exchange(uint32_t handle, void *place)
{
	struct uv_tree tree = {};
	uint64_t addr = (uintptr_t)place;

	uv_attr_obj(&tree, A_NOTE, handle);
	uv_attr_in(&tree, A_PLACE, &addr, sizeof(addr));
	return harness_ioctl(&h, OBJ_NOTE, M_READ, &tree);
}

START_TEST(test_steps_see_their_attributes_and_own_the_object_that_they_set)
{
	struct seen seen;
	uint32_t pd, cq, note, other;
	uint64_t text = 9;

	ck_assert_int_eq(note_create(5, UINT32_MAX, &seen, &note), -EINVAL); /* there is no context yet */
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(note_create(5, pd, &seen, &note), 0);
	ck_assert_ptr_eq(((struct uvd_pd *)(uintptr_t)seen.pd)->context, atomic_load(&h.file->context));
	ck_assert_int_eq(seen.kind, 1);
	ck_assert_uint_eq(seen.has_place, 0);
	ck_assert_int_eq(note_create(6, UINT32_MAX, &seen, &other), 0);
	ck_assert_uint_eq(seen.pd, 0);
	ck_assert_int_eq(seen.kind, -ENOENT);
	ck_assert_int_eq(note_exchange(note, &text), 0);
	ck_assert_uint_eq(text, 5);
	ck_assert_int_eq(note_exchange(note, &text), 0);
	ck_assert_uint_eq(text, 9);
	ck_assert_int_eq(note_exchange(note, BAD), -EFAULT);
	ck_assert_uint_eq(num_notes, 2);
}
END_TEST

START_TEST(test_an_object_that_was_set_is_destroyed_if_a_later_step_fails)
{
	uint32_t pd, cq, note;
	struct seen seen;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	fail = -EXDEV;
	ck_assert_int_eq(note_create(5, pd, &seen, &note), -EXDEV);
	ck_assert_uint_eq(num_notes, 0);
	fail = 0;
	ck_assert_int_eq(note_create(5, pd, BAD, &note), -EFAULT);
	ck_assert_uint_eq(num_notes, 0);
}
END_TEST

START_TEST(test_a_write_command_makes_the_same_object_which_the_method_destroys)
{
	struct {
		uint64_t response, text;
	} in = { .text = 12 };
	uint64_t before, text = 0;
	struct uv_tree tree = {};
	uint32_t pd, cq, out[2];

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	before = uvd_account_used(h.account, UVD_RES_BYTES);
	ck_assert_int_eq(harness_write(&h, W_NOTE, &in, sizeof(in), out, sizeof(out)), 0);
	ck_assert_uint_eq(out[1], sizeof(out));
	ck_assert_uint_ge(uvd_account_used(h.account, UVD_RES_BYTES), before + 100);
	ck_assert_int_eq(note_exchange(out[0], &text), 0);
	ck_assert_uint_eq(text, 12);
	uv_attr_obj(&tree, A_NOTE, out[0]);
	ck_assert_int_eq(harness_ioctl(&h, OBJ_NOTE, M_END, &tree), 0);
	ck_assert_uint_eq(num_notes, 0);
	ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_BYTES), before);
}
END_TEST

static int note_call_forget(int what, void *big)
{
	struct uv_tree tree = {};

	forget = what;
	uv_attr_obj(&tree, A_NOTE, 0);
	uv_attr_out(&tree, A_BIG, big, UVD_REQ_STAGE);
	uv_attr_out(&tree, A_MORE, big, UVD_REQ_STAGE);
	return harness_ioctl(&h, OBJ_NOTE, M_FORGET, &tree);
}

START_TEST(test_what_a_handler_forgets_is_told_once)
{
	static uint8_t big[UVD_REQ_STAGE];
	struct uvd_log *const before = h.engine.log;
	int fd = memfd_create("log", MFD_CLOEXEC);
	char text[1024] = "", *told;
	uint32_t pd, cq;

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	h.engine.log = uvd_log_new(fd, "test", UVD_WARN);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(note_call_forget(NOTHING, big), 0);
		ck_assert_int_eq(note_call_forget(THE_OBJECT, big), 0);
		ck_assert_int_eq(note_call_forget(THE_OUTPUT, big), 0);
	}
	ck_assert_int_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
	told = strstr(text, "M_FORGET: the handler has not set the object of A_NOTE");
	ck_assert_msg(told && strstr(text, "M_FORGET: the handler has not written A_BIG"), "%s", text);
	ck_assert_ptr_null(strstr(told + sizeof("M_FORGET: the handler"), "M_FORGET: the handler has not set"));
	uvd_log_free(h.engine.log);
	h.engine.log = before;
	close(fd);
}
END_TEST

START_TEST(test_no_call_has_no_site)
{
	pid_t thread;

	ck_assert_ptr_null(uvd_dispatch_site(&thread));
}
END_TEST

static int event_post(uint32_t type)
{
	struct uv_tree tree = {};

	uv_attr_const(&tree, A_TYPE, type);
	return harness_ioctl(&h, OBJ_NOTE, M_EVENT, &tree);
}

START_TEST(test_an_event_reaches_the_context_s_asynchronous_event_file)
{
	struct ib_uverbs_get_context_resp resp;
	struct ib_uverbs_get_context cmd = {};
	struct ib_uverbs_async_event_desc event;
	int ret;

	ck_assert_int_eq(event_post(0x10000), -EINVAL); /* uvd_step_context() */
	ck_assert_int_eq(WRITE(&h, GET_CONTEXT, &cmd, &resp), 0);
	ck_assert_int_eq(event_post(0x10003), 0);
	ck_assert_int_eq(recv(resp.async_fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.element, 0x77);
	ck_assert_uint_eq(event.event_type, 0x10003);
	ck_assert_int_lt(recv(resp.async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	do
		ret = event_post(0x10000);
	while (!ret);
	ck_assert_int_eq(ret, -EAGAIN);
	close(resp.async_fd);
}
END_TEST

START_TEST(test_a_context_without_an_event_file_has_no_events)
{
	ck_assert_int_eq(uv_get_context(h.fd, UV_METHOD, &(int){ 0 }, &(uint32_t){ 0 }), 0);
	ck_assert_int_eq(event_post(0x10000), -ENOENT);
}
END_TEST

/* A QP's unread events go with the QP. An event of a plug-in is not the QP's, though it carries the same number. */
START_TEST(test_a_plug_in_s_event_stays_when_an_object_with_its_number_is_destroyed)
{
	struct ib_uverbs_get_context_resp resp;
	struct ib_uverbs_get_context cmd = {};
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_create_cq create = { .user_handle = 3, .cqe = 1, .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp cq;
	struct ib_uverbs_alloc_pd_resp pd;
	struct ib_uverbs_create_qp_resp made;
	struct ib_uverbs_create_qp qp = {
		.user_handle = 0x77, .qp_type = IBV_QPT_RC, .max_send_wr = 1, .max_recv_wr = 1
	};
	struct ib_uverbs_destroy_qp destroy = {};
	struct ib_uverbs_destroy_qp_resp gone;

	ck_assert_int_eq(WRITE(&h, GET_CONTEXT, &cmd, &resp), 0);
	ck_assert_int_eq(WRITE(&h, ALLOC_PD, &(struct ib_uverbs_alloc_pd){}, &pd), 0);
	ck_assert_int_eq(WRITE(&h, CREATE_CQ, &create, &cq), 0);
	qp.pd_handle = pd.pd_handle;
	qp.send_cq_handle = qp.recv_cq_handle = cq.cq_handle;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &qp, &made), 0);
	ck_assert_int_eq(event_post(0x10001), 0);
	destroy.qp_handle = made.qp_handle;
	ck_assert_int_eq(WRITE(&h, DESTROY_QP, &destroy, &gone), 0);
	ck_assert_uint_eq(gone.events_reported, 0);
	ck_assert_int_eq(recv(resp.async_fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.event_type, 0x10001);
	close(resp.async_fd);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_steps_see_their_attributes_and_own_the_object_that_they_set,
		test_an_object_that_was_set_is_destroyed_if_a_later_step_fails,
		test_a_write_command_makes_the_same_object_which_the_method_destroys,
		test_an_event_reaches_the_context_s_asynchronous_event_file,
		test_what_a_handler_forgets_is_told_once,
		test_no_call_has_no_site,
		test_a_context_without_an_event_file_has_no_events,
		test_a_plug_in_s_event_stays_when_an_object_with_its_number_is_destroyed,
	};
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup_notes, teardown_notes);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	return run_suite(__FILE__, tc);
}
