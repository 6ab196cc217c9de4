/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node's commands as rows: they agree with the tables of their fields, which come from the kernel's header. */
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include <uverbsd/abi.h>
#include <uverbsd/cm_command.h>

#include "call/call.h"
#include "cm/cm.h"
#include "core/core.h"
#include "../suite.h"

static void for_each_command(int (*check)(void *arg, const struct uverbsd_tree_row *row), void *arg)
{
	int err;
	struct uvd_cm_tree *t = uvd_cm_tree_new(NULL, &err);

	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(uvd_tree_describe(uvd_cm_tree_of(t), check, arg), 0);
	uvd_cm_tree_free(t);
}

static int agrees(void *arg, const struct uverbsd_tree_row *row)
{
	const struct uvd_command_fields *fields = uvd_command_fields(row->name);
	const size_t at = uvd_cm_response_at(row->name);
	unsigned int *num = arg;

	if (row->kind != UVERBSD_TREE_COMMAND)
		return 0;
	(*num)++;
	ck_assert_msg(row->flags & UVERBSD_TREE_COMMAND_CM, "%s", row->name);
	ck_assert_msg(row->min_len == fields->request->size, "%s: %u, %u", row->name, row->min_len,
		      fields->request->size);
	/* QUERY's has room for all paths. */
	if (fields->response->size && strcmp(row->name, "RDMA_USER_CM_CMD_QUERY"))
		ck_assert_msg(row->len == fields->response->size, "%s: %u, %u", row->name, row->len,
			      fields->response->size);
	ck_assert_msg((at != UVD_NO_RESPONSE) == !!(row->flags & UVERBSD_TREE_COMMAND_RESP), "%s", row->name);
	ck_assert_msg(at == UVD_NO_RESPONSE || at + 8 <= row->min_len, "%s", row->name);
	return 0;
}

START_TEST(test_commands_have_the_sizes_of_their_structs)
{
	unsigned int num = 0;

	for_each_command(agrees, &num);
	ck_assert_uint_eq(num, RDMA_USER_CM_CMD_JOIN_MCAST); /* no kernel has GET_OPTION */
}
END_TEST

static const struct {
	const char *command, *name;
} known[] = {
#define KNOWN(command, name, kind) { "RDMA_USER_CM_CMD_" #command, #name },
	UVD_CM_COMMANDS(KNOWN)
};

static int is_known(void *arg, const struct uverbsd_tree_row *row)
{
	unsigned int *num = arg;

	if (row->kind != UVERBSD_TREE_COMMAND)
		return 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].command, row->name))
			continue;
		(*num)++;
		ck_assert_msg(!strcasecmp(known[i].name, row->name + strlen("RDMA_USER_CM_CMD_")), "%s", row->name);
		return 0;
	}
	ck_abort_msg("filters do not know %s", row->name);
	return 0;
}

START_TEST(test_filters_know_the_same_commands)
{
	unsigned int num = 0;

	for_each_command(is_known, &num);
	ck_assert_uint_eq(num, sizeof(known) / sizeof(known[0]));
}
END_TEST

START_TEST(test_create_id_has_its_responses_address_behind_the_uid)
{
	ck_assert_uint_eq(uvd_cm_response_at("RDMA_USER_CM_CMD_CREATE_ID"), 8);
	ck_assert_uint_eq(uvd_cm_response_at("RDMA_USER_CM_CMD_DESTROY_ID"), 0);
	ck_assert_uint_eq(uvd_cm_response_at("RDMA_USER_CM_CMD_BIND_IP"), UVD_NO_RESPONSE);
	ck_assert_uint_eq(uvd_cm_response_at("IB_USER_VERBS_CMD_ALLOC_PD"), UVD_NO_RESPONSE);
}
END_TEST

START_TEST(test_querys_response_is_that_of_its_option)
{
	const struct uvd_command_fields *c = uvd_command_fields("RDMA_USER_CM_CMD_QUERY");
	struct rdma_ucm_query query = { .option = RDMA_USER_CM_QUERY_PATH };

	ck_assert_str_eq(uvd_command_response(c, (void *)&query, sizeof(query))->name, "rdma_ucm_query_path_resp");
	ck_assert_ptr_eq(uvd_command_response(c, (void *)&query, sizeof(query) - 1), c->response);
	query.option = RDMA_USER_CM_QUERY_GID;
	ck_assert_str_eq(uvd_command_response(c, (void *)&query, sizeof(query))->name, "rdma_ucm_query_addr_resp");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("tree");

	tcase_add_test(t, test_commands_have_the_sizes_of_their_structs);
	tcase_add_test(t, test_filters_know_the_same_commands);
	tcase_add_test(t, test_create_id_has_its_responses_address_behind_the_uid);
	tcase_add_test(t, test_querys_response_is_that_of_its_option);
	return run_suite("cm tree", t);
}
