/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plug-in that states roles. WRONG: what is wrong with them; 0: nothing. OLD: its struct ends before them. FACE: its feature is
 * that of its second persona.
 */
#include "toys.h"

enum { OBJ_ROLES = 0x1400, M_ROLES = 0x1400, A_ROLES = 0x1400, A_ROLES_VALUE };
enum { IB_USER_VERBS_CMD_ROLES = 210 };

struct roles_request {
	uint64_t response;
	uint32_t mask, handle, pd, other;
};

static int roles_step(struct uvd_req *req)
{
	return 0;
}

static int roles_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	return 0;
}

static const uvd_step steps[] = { roles_step, NULL };
static const struct uvd_attr_row attrs[] = { UVD_IDR(A_ROLES, OBJ_ROLES, UVD_UOBJ_READ, UVD_MANDATORY),
					     UVD_PTR_IN(A_ROLES_VALUE, 4, 0) };
static const struct uvd_method_row methods[] = { UVD_METHOD(M_ROLES, attrs, steps) };
static const struct uvd_write_row writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_ROLES, UVD_WRITE_RESP, sizeof(struct roles_request), 8, steps, 0),
};
static const struct uvd_object_row object = {
	.name = "OBJ_ROLES",
	.id = OBJ_ROLES,
	.cls = UVD_CLASS_IDR,
	.destroy = roles_destroy,
	UVD_ROWS(methods, methods),
	UVD_ROWS(writes, writes),
};
static const struct uvd_write_row wraps[] = {
	{ .name = "IB_USER_VERBS_CMD_ALLOC_PD",
	  .number = IB_USER_VERBS_CMD_ALLOC_PD,
	  .steps = steps,
	  .when = UVD_STEPS_AFTER },
};
static const struct uvd_object_row wrapped = { .name = "UVERBS_OBJECT_PD",
					       .id = UVERBS_OBJECT_PD,
					       UVD_ROWS(writes, wraps) };
static const struct uvd_object_row *const objects[] = { &object, &wrapped, NULL };
static const struct uvd_feature feature = { .name = "roles feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };
static const struct uvd_counter_file counters[] = { {} };
#define PERSONA(m_name, m_feature) \
	{ \
		.name = m_name, .ibdev_prefix = m_name "_", .modalias = "", .board_id = "board", .fw_ver = "1", \
		.node_desc = m_name, .hw_counters = counters, .link_layer = IBV_LINK_LAYER_ETHERNET, \
		.feature = m_feature \
	}
static const struct uvd_persona plain_face = PERSONA("plainface", NULL), roles_face = PERSONA("roleface", &feature);
static const struct uvd_persona *const personas[] = { &plain_face, &roles_face, NULL };

static const struct uvd_field fields[] = {
	UVD_FIELD(struct roles_request, mask, WRONG == 5 ? UVD_ROLES : UVD_ROLE_NUMBER),
	{ .name = "handle",
	  .at = WRONG == 3   ? sizeof(struct roles_request) - 2
		: WRONG == 4 ? offsetof(struct roles_request, mask) + 2
			     : offsetof(struct roles_request, handle),
	  .size = 4,
	  .role = UVD_ROLE_HANDLE,
	  .object = WRONG == 6 ? 0x1fff : OBJ_ROLES,
	  .selector = WRONG == 7   ? 9
		      : WRONG == 8 ? 3
				   : 1,
	  .select_flags = 1,
	  .ends = true },
	UVD_FIELD(struct roles_request, pd, UVD_ROLE_HANDLE, .object = UVERBS_OBJECT_PD, .makes = WRONG == 9,
		  .selector = WRONG == 8 ? 2 : 0, .select_flags = WRONG == 8),
	UVD_FIELD(struct roles_request, other,
		  WRONG == 10	? UVD_ROLE_ADDRESS
		  : WRONG == 11 ? UVD_ROLE_COUNT
				: UVD_ROLE_UNKNOWN,
		  .array = WRONG == 11 ? "nothing" : NULL),
	{ .name = WRONG == 12 ? "a name" : NULL, .size = 1, .at = 0, .role = UVD_ROLE_NUMBER },
	{}
};
static const struct uvd_struct request = { .name = "roles_request",
					   .size = sizeof(struct roles_request) + 8 * (WRONG == 2),
					   .fields = fields };
static const struct uvd_command_fields commands[] = { { WRONG == 1    ? "IB_USER_VERBS_CMD_NOBODYS"
							: WRONG == 13 ? "IB_USER_VERBS_CMD_ALLOC_PD"
								      : "IB_USER_VERBS_CMD_ROLES",
							&request, NULL },
						      { WRONG == 14 ? "IB_USER_VERBS_CMD_ROLES" : NULL, &request,
							NULL },
						      {} };
static const struct uvd_attr_fields values[] = { { WRONG == 15	 ? "A_NOBODYS"
						   : WRONG == 16 ? "A_ROLES"
								 : "A_ROLES_VALUE",
						   WRONG == 17			? UVD_ROLE_STRUCT
						   : WRONG == 18		? UVD_ROLE_SPECS
						   : WRONG == 19 || WRONG == 21 ? UVD_ROLE_ADDRESS
										: UVD_ROLE_RKEY,
						   .of = WRONG == 17 ? &request : NULL,
						   .beside = WRONG == 20   ? "A_ROLES_VALUE"
							     : WRONG == 21 ? "A_NOBODYS"
									   : NULL },
						 {} };

UVD_API const struct uvd_plugin uverbsd_plugin = {
	.api_version = UVD_API_VERSION,
	.struct_size = OLD ? offsetof(struct uvd_plugin, commands) : sizeof(struct uvd_plugin),
	.backend_size = sizeof(struct uvd_backend),
	.name = "roles",
	.features = FACE ? NULL : features,
	.persona_size = sizeof(struct uvd_persona),
	.personas = FACE ? personas : NULL,
	.commands = commands,
	.attrs = values,
};
