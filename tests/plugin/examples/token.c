/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plug-in with made-up calls, whose rows and roles are all that trace, call, replay, fuzz, syzlang and Python have of them.
 * A token is made of a PD, a memory region and a QP number. It has a key, which the plug-in chooses, and by which it can be
 * checked. Options: first: the first key; wrong=1 and wrong-qpn=1: a check answers another key, or another QP number;
 * bug=1: a check of a token that is made of a region, with the token's key, ends the process; moved=1: the device is in another
 * machine; rounded=1: it rounds a size up; wrong-plain=1: a query answers another number.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uverbsd/plugin.h>

#include "token.h"

struct token {
	uint32_t rkey;
	struct token_of of;
};

struct token_engine {
	atomic_uint next;
	uint64_t wrong, wrong_qpn, bug, moved, rounded, wrong_plain;
};

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static int token_check_of(struct uvd_req *req, const struct token_of *of)
{
	int ret = uvd_req_get(req, UVERBS_OBJECT_PD, of->pd_handle, UVD_UOBJ_READ, &(struct uvd_uobject *){ NULL });

	if (!ret && of->mask & TOKEN_HAS_MR)
		ret = uvd_req_get(req, UVERBS_OBJECT_MR, of->mr_handle, UVD_UOBJ_READ, &(struct uvd_uobject *){ NULL });
	if (!ret && of->mask & TOKEN_HAS_MEMORY)
		ret = uvd_req_copy_from_user(req, &(uint64_t){ 0 }, of->start, of->length < 8 ? of->length : 8);
	if (!ret && (of->colour < TOKEN_RED || of->colour > TOKEN_GREEN))
		ret = uvd_bad(req, -EINVAL, "colour", of->colour);
	return ret;
}

static struct token *token_new(struct uvd_req *req, const struct token_of *of)
{
	struct token_engine *engine = uvd_plugin_engine_data(req, &uverbsd_plugin);
	struct token *token = malloc(sizeof(*token));

	if (token)
		*token = (struct token){ atomic_fetch_add(&engine->next, 1), *of };
	return token;
}

static int token_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	free(uvd_uobject_object(uobj));
	return 0;
}

static int token_answer(struct uvd_req *req, const struct token *token, uint32_t rkey, struct check_token_resp *resp)
{
	const struct token_engine *engine = uvd_plugin_engine_data(req, &uverbsd_plugin);

	if (rkey != token->rkey)
		return uvd_bad(req, -EINVAL, "rkey", rkey);
	if (engine->bug && token->of.mask & TOKEN_HAS_MR)
		abort();
	*resp = (struct check_token_resp){ .rkey = rkey + engine->wrong, .qpn = token->of.qpn + engine->wrong_qpn };
	resp->plain = token->of.plain;
	resp->colour = token->of.colour;
	return 0;
}

/* ---- write() commands -------------------------------------------------------------------------------------------- */

static int token_make(struct uvd_req *req)
{
	struct make_token_resp resp = {};
	struct make_token in;
	struct uvd_uobject *uobj;
	struct token *token;
	int ret = uvd_core_in(req, &in);

	ret = ret ? ret : token_check_of(req, &in.of);
	ret = ret ? ret : uvd_req_new(req, UVERBS_OBJECT_TOKEN, &uobj);
	if (ret)
		return ret;
	token = token_new(req, &in.of);
	if (!token)
		return -ENOMEM;
	uvd_uobject_set_object(uobj, token);
	resp.token_handle = uvd_uobject_id(uobj);
	resp.rkey = token->rkey;
	resp.colour = token->of.colour;
	return uvd_core_out(req, &resp);
}

static int token_check(struct uvd_req *req)
{
	struct check_token_resp resp;
	struct uvd_uobject *uobj;
	struct check_token in;
	int ret = uvd_core_in(req, &in);

	ret = ret ? ret : uvd_req_get(req, UVERBS_OBJECT_TOKEN, in.token_handle, UVD_UOBJ_READ, &uobj);
	ret = ret ? ret : token_answer(req, uvd_uobject_object(uobj), in.rkey, &resp);
	return ret ? ret : uvd_core_out(req, &resp);
}

static int token_end(struct uvd_req *req)
{
	struct end_token in;
	int ret = uvd_core_in(req, &in);

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_TOKEN, in.token_handle, NULL);
}

static int token_count_one(struct uvd_req *req, struct uvd_core_iter *iter, struct count_tokens_resp *resp)
{
	struct uvd_uobject *uobj;
	const struct token *token;
	const void *handle;
	int ret = uvd_core_next(req, iter, &handle, sizeof(uint32_t));

	ret = ret ? ret : uvd_req_get(req, UVERBS_OBJECT_TOKEN, *(const uint32_t *)handle, UVD_UOBJ_READ, &uobj);
	if (ret)
		return ret;
	token = uvd_uobject_object(uobj);
	*(token->of.colour == TOKEN_RED ? &resp->red : &resp->green) += 1;
	return 0;
}

static int token_count(struct uvd_req *req)
{
	struct count_tokens_resp resp = {};
	struct uvd_core_iter iter;
	struct count_tokens in;
	int ret = uvd_core_start(req, &iter, &in);

	for (uint32_t i = 0; !ret && i < in.num_tokens; i++)
		ret = token_count_one(req, &iter, &resp);
	ret = ret ? ret : uvd_core_finish(req, &iter);
	return ret ? ret : uvd_core_out(req, &resp);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static int token_create(struct uvd_req *req)
{
	struct token *token;
	struct token_of of;
	int ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_TOKEN_MADE_OF, &of);

	ret = ret ? ret : token_check_of(req, &of);
	if (ret)
		return ret;
	token = token_new(req, &of);
	if (!token)
		return -ENOMEM;
	uvd_attr_set_object(req, UVERBS_ATTR_CREATE_TOKEN_HANDLE, token);
	return uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_TOKEN_RESP_RKEY, &token->rkey);
}

static int token_check_method(struct uvd_req *req)
{
	const struct token *token = uvd_attr_object(req, UVERBS_ATTR_CHECK_TOKEN_HANDLE);
	struct check_token_resp resp;
	uint32_t rkey = 0;
	int ret = uvd_attr_copy_from(req, UVERBS_ATTR_CHECK_TOKEN_RKEY, &rkey);

	ret = ret ? ret : token_answer(req, token, rkey, &resp);
	return ret ? ret : uvd_attr_copy_to(req, UVERBS_ATTR_CHECK_TOKEN_RESP, &resp);
}

static int token_query(struct uvd_req *req)
{
	const struct token_engine *engine = uvd_plugin_engine_data(req, &uverbsd_plugin);
	const uint32_t slot = 7 + engine->moved;
	struct query_token_resp resp = {
		.own_gid = { 0xfe, 0x80, engine->moved },
		.guid = 1 + engine->moved,
		.clock = 2 + engine->moved,
		.machine = 3 + engine->moved,
		.share = 4 + engine->moved,
		.capacity = 5 + engine->rounded,
		.plain = 6 + engine->wrong_plain,
		.own_lid = 8 + engine->moved,
		.part = { 9 + engine->moved },
	};
	int ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_TOKEN_RESP, &resp);

	return ret ? ret : uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_TOKEN_RESP_SLOT, &slot);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step make_steps[] = { token_make, NULL }, check_steps[] = { token_check, NULL },
		      end_steps[] = { token_end, NULL }, count_steps[] = { token_count, NULL },
		      create_steps[] = { token_create, NULL }, check_method_steps[] = { token_check_method, NULL },
		      query_steps[] = { token_query, NULL };

static const struct uvd_write_row token_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_MAKE_TOKEN, UVD_WRITE_RESP, sizeof(struct make_token),
		  sizeof(struct make_token_resp), make_steps, 0),
	UVD_WRITE(IB_USER_VERBS_CMD_CHECK_TOKEN, UVD_WRITE_RESP, sizeof(struct check_token),
		  sizeof(struct check_token_resp), check_steps, 0),
	UVD_WRITE(IB_USER_VERBS_CMD_END_TOKEN, 0, sizeof(struct end_token), 0, end_steps, 0),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_COUNT_TOKENS, UVD_WRITE_EX, sizeof(struct count_tokens),
		  sizeof(struct count_tokens_resp), count_steps, 0),
};
static const struct uvd_attr_row create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_TOKEN_HANDLE, UVERBS_OBJECT_TOKEN, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_TOKEN_MADE_OF, sizeof(struct token_of), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_TOKEN_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
};
static const struct uvd_attr_row check_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CHECK_TOKEN_HANDLE, UVERBS_OBJECT_TOKEN, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CHECK_TOKEN_RKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_CHECK_TOKEN_COLOUR, 0),
	UVD_PTR_OUT(UVERBS_ATTR_CHECK_TOKEN_RESP, sizeof(struct check_token_resp), UVD_MANDATORY),
};
static const struct uvd_attr_row destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_TOKEN_HANDLE, UVERBS_OBJECT_TOKEN, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};
static const struct uvd_attr_row query_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_TOKEN_RESP, sizeof(struct query_token_resp), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_TOKEN_RESP_SLOT, sizeof(uint32_t), UVD_MANDATORY),
};
static const struct uvd_method_row token_methods[] = {
	UVD_METHOD(UVERBS_METHOD_TOKEN_CREATE, create_attrs, create_steps),
	UVD_METHOD(UVERBS_METHOD_TOKEN_CHECK, check_attrs, check_method_steps),
	UVD_METHOD(UVERBS_METHOD_TOKEN_DESTROY, destroy_attrs, NULL),
	UVD_METHOD(UVERBS_METHOD_TOKEN_QUERY, query_attrs, query_steps),
};
static const struct uvd_object_row token_object = {
	.name = "UVERBS_OBJECT_TOKEN",
	.id = UVERBS_OBJECT_TOKEN,
	.cls = UVD_CLASS_IDR,
	.destroy = token_destroy,
	UVD_ROWS(methods, token_methods),
	UVD_ROWS(writes, token_writes),
};
static const struct uvd_object_row *const objects[] = { &token_object, NULL };
static const struct uvd_feature feature = { .name = "tokens", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

/* ---- roles ------------------------------------------------------------------------------------------------------- */

#ifndef TOKEN_WITHOUT_ROLES
static const struct uvd_word colour_words[] = { { "RED", TOKEN_RED }, { "GREEN", TOKEN_GREEN }, {} };
static const struct uvd_words colours = { "token_colour", "TOKEN_", false, colour_words };
static const struct uvd_word mask_words[] = {
	{ "MR", TOKEN_HAS_MR }, { "QP", TOKEN_HAS_QP }, { "MEMORY", TOKEN_HAS_MEMORY }, {}
};
static const struct uvd_words masks = { "token_mask", "TOKEN_HAS_", true, mask_words };

/* Fields of struct token_of, `base` bytes from the begin of the struct. The mask is the first one, and the length the ninth. */
#define TOKEN_FIELD(base, member, r, ...) \
	{ \
		.name = #member, .at = (base) + offsetof(struct token_of, member), \
		.size = sizeof(((struct token_of *)0)->member), .role = r, __VA_ARGS__ \
	}
#define TOKEN_IF(flag) .selector = 1, .select_flags = flag
#define TOKEN_FIELDS(base) \
	TOKEN_FIELD(base, mask, UVD_ROLE_FLAGS, .words = &masks), \
		TOKEN_FIELD(base, pd_handle, UVD_ROLE_HANDLE, .object = UVERBS_OBJECT_PD), \
		TOKEN_FIELD(base, mr_handle, UVD_ROLE_HANDLE, .object = UVERBS_OBJECT_MR, TOKEN_IF(TOKEN_HAS_MR)), \
		TOKEN_FIELD(base, mr_lkey, UVD_ROLE_LKEY, TOKEN_IF(TOKEN_HAS_MR)), \
		TOKEN_FIELD(base, qpn, UVD_ROLE_QPN, TOKEN_IF(TOKEN_HAS_QP)), \
		TOKEN_FIELD(base, colour, UVD_ROLE_WORDS, .words = &colours), \
		TOKEN_FIELD(base, plain, UVD_ROLE_UNKNOWN), \
		TOKEN_FIELD(base, start, UVD_ROLE_ADDRESS, .beside = 9, TOKEN_IF(TOKEN_HAS_MEMORY)), \
		TOKEN_FIELD(base, length, UVD_ROLE_NUMBER, TOKEN_IF(TOKEN_HAS_MEMORY)), \
	{ \
	}
static const struct uvd_field make_fields[] = { TOKEN_FIELDS(offsetof(struct make_token, of)) };
static const struct uvd_field of_fields[] = { TOKEN_FIELDS(0) };
static const struct uvd_field of_reserved[] = { UVD_FIELD(struct token_of, reserved, UVD_ROLE_RESERVED), {} };
static const struct uvd_field make_resp_fields[] = {
	UVD_FIELD(struct make_token_resp, token_handle, UVD_ROLE_HANDLE, .object = UVERBS_OBJECT_TOKEN, .makes = true),
	UVD_FIELD(struct make_token_resp, rkey, UVD_ROLE_RKEY),
	UVD_FIELD(struct make_token_resp, colour, UVD_ROLE_WORDS, .words = &colours),
	{}
};
static const struct uvd_field make_resp_reserved[] = { UVD_FIELD(struct make_token_resp, reserved, UVD_ROLE_RESERVED),
						       {} };
static const struct uvd_field check_fields[] = { UVD_FIELD(struct check_token, token_handle, UVD_ROLE_HANDLE,
							   .object = UVERBS_OBJECT_TOKEN),
						 UVD_FIELD(struct check_token, rkey, UVD_ROLE_RKEY),
						 {} };
static const struct uvd_field check_resp_fields[] = { UVD_FIELD(struct check_token_resp, rkey, UVD_ROLE_RKEY),
						      UVD_FIELD(struct check_token_resp, qpn, UVD_ROLE_QPN),
						      UVD_FIELD(struct check_token_resp, plain, UVD_ROLE_UNKNOWN),
						      UVD_FIELD(struct check_token_resp, colour, UVD_ROLE_WORDS,
								.words = &colours),
						      {} };
static const struct uvd_field end_fields[] = {
	UVD_FIELD(struct end_token, token_handle, UVD_ROLE_HANDLE, .object = UVERBS_OBJECT_TOKEN, .ends = true), {}
};
static const struct uvd_field count_fields[] = {
	UVD_FIELD(struct count_tokens, num_tokens, UVD_ROLE_COUNT, .array = "tokens"), {}
};
static const struct uvd_field count_resp_fields[] = { UVD_FIELD(struct count_tokens_resp, red, UVD_ROLE_NUMBER),
						      UVD_FIELD(struct count_tokens_resp, green, UVD_ROLE_NUMBER),
						      {} };
static const struct uvd_field query_resp_fields[] = { UVD_FIELD_ARRAY(struct query_token_resp, own_gid,
								      UVD_ROLE_OWN_GID),
						      UVD_FIELD(struct query_token_resp, guid, UVD_ROLE_GUID),
						      UVD_FIELD(struct query_token_resp, clock, UVD_ROLE_TIME),
						      UVD_FIELD(struct query_token_resp, machine, UVD_ROLE_MACHINE),
						      UVD_FIELD(struct query_token_resp, share, UVD_ROLE_SHARE),
						      UVD_FIELD(struct query_token_resp, capacity, UVD_ROLE_CAPACITY),
						      UVD_FIELD(struct query_token_resp, plain, UVD_ROLE_NUMBER),
						      UVD_FIELD(struct query_token_resp, own_lid, UVD_ROLE_OWN_LID),
						      UVD_FIELD_ARRAY(struct query_token_resp, part, UVD_ROLE_DRIVER),
						      {} };
#define TOKEN_STRUCT(s, list) .name = #s, .size = sizeof(struct s), .fields = list
static const struct uvd_struct make = { TOKEN_STRUCT(make_token, make_fields) };
static const struct uvd_struct make_resp = { TOKEN_STRUCT(make_token_resp, make_resp_fields),
					     .reserved = make_resp_reserved };
static const struct uvd_struct check = { TOKEN_STRUCT(check_token, check_fields) };
static const struct uvd_struct check_resp = { TOKEN_STRUCT(check_token_resp, check_resp_fields) };
static const struct uvd_struct end = { TOKEN_STRUCT(end_token, end_fields) };
static const struct uvd_struct count = { TOKEN_STRUCT(count_tokens, count_fields), .tail = "tokens",
					 .tail_role = UVD_ROLE_HANDLE, .tail_object = UVERBS_OBJECT_TOKEN };
static const struct uvd_struct count_resp = { TOKEN_STRUCT(count_tokens_resp, count_resp_fields) };
static const struct uvd_struct query_resp = { TOKEN_STRUCT(query_token_resp, query_resp_fields) };
static const struct uvd_struct made_of = { TOKEN_STRUCT(token_of, of_fields), .reserved = of_reserved };
static const struct uvd_command_fields commands[] = { { "IB_USER_VERBS_CMD_MAKE_TOKEN", &make, &make_resp },
						      { "IB_USER_VERBS_CMD_CHECK_TOKEN", &check, &check_resp },
						      { "IB_USER_VERBS_CMD_END_TOKEN", &end, NULL },
						      { "IB_USER_VERBS_EX_CMD_COUNT_TOKENS", &count, &count_resp },
						      {} };
static const struct uvd_attr_fields attrs[] = { { "UVERBS_ATTR_CREATE_TOKEN_MADE_OF", UVD_ROLE_STRUCT, .of = &made_of },
						{ "UVERBS_ATTR_CREATE_TOKEN_RESP_RKEY", UVD_ROLE_RKEY },
						{ "UVERBS_ATTR_CHECK_TOKEN_RKEY", UVD_ROLE_RKEY },
						{ "UVERBS_ATTR_CHECK_TOKEN_COLOUR", UVD_ROLE_WORDS, .words = &colours },
						{ "UVERBS_ATTR_CHECK_TOKEN_RESP", UVD_ROLE_STRUCT, .of = &check_resp },
						{ "UVERBS_ATTR_QUERY_TOKEN_RESP", UVD_ROLE_STRUCT, .of = &query_resp },
						{ "UVERBS_ATTR_QUERY_TOKEN_RESP_SLOT", UVD_ROLE_MACHINE },
						{} };
#define TOKEN_ROLES .commands = commands, .attrs = attrs,
#else
#define TOKEN_ROLES
#endif

/* ---- the plug-in ------------------------------------------------------------------------------------------------- */

static int token_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	struct token_engine *engine = calloc(1, sizeof(*engine));
	uint64_t first = 0;
	int ret = engine ? uvd_plugin_number(values, "first", 0, UINT32_MAX, &first) : -ENOMEM;

	if (!ret)
		ret = uvd_plugin_number(values, "wrong", 0, 1, &engine->wrong);
	if (!ret)
		ret = uvd_plugin_number(values, "wrong-qpn", 0, 1, &engine->wrong_qpn);
	if (!ret)
		ret = uvd_plugin_number(values, "bug", 0, 1, &engine->bug);
	if (!ret)
		ret = uvd_plugin_number(values, "moved", 0, 1, &engine->moved);
	if (!ret)
		ret = uvd_plugin_number(values, "rounded", 0, 1, &engine->rounded);
	if (!ret)
		ret = uvd_plugin_number(values, "wrong-plain", 0, 1, &engine->wrong_plain);
	if (ret) {
		free(engine);
		return ret;
	}
	atomic_init(&engine->next, first);
	*data = engine;
	return 0;
}

static const struct uvd_plugin_option options[] = {
	{ .name = "first", .value = "0x5000" },	 { .name = "wrong", .value = "0" },
	{ .name = "wrong-qpn", .value = "0" },	 { .name = "bug", .value = "0" },
	{ .name = "moved", .value = "0" },	 { .name = "rounded", .value = "0" },
	{ .name = "wrong-plain", .value = "0" }, {}
};

UVD_PLUGIN(.name = "token", .features = features, .options = options, .init = token_init, .exit = free, TOKEN_ROLES);
