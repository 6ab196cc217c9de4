/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Out of memory in cases that no command of the real tree reaches, on the toy objects of tests/core: large input, many
 * attributes, many objects; and while devices, trees, files and handle tables are made.
 */
#include "inject.h"
#include "account/account.h"
#include "core/handles.h"
#include "tests/core/bed.h"
#include "../suite.h"

static uint64_t big[2048];
static uint32_t toy;

static void setup(void)
{
	bed_setup();
	toy = toy_new();
}

/*
 * Makes the n-th allocation of the call fail, for n = 1 and up, until the call has no n-th one. Each failed call must
 * return -ENOMEM and leave nothing: no object, no block, no lock on the object that it looked up. The call must have at
 * least at_least allocations.
 */
static void run_out(long (*call)(void), long result, unsigned int at_least)
{
	struct uvd_file *file = bed.call.file;
	unsigned int n;
	long ret;
	int err;

	for (n = 1;; n++) {
		const unsigned int handles = file->handles.count;
		const long blocks = fault_blocks();
		bool fired;

		fault_arm(FAULT_ALLOC, n, false);
		ret = call();
		fired = fault_disarm();
		if (!fired)
			break;
		MUST(ret == -ENOMEM, "allocation %u fails: %ld", n, ret);
		MUST(fault_blocks() == blocks, "allocation %u fails: %ld blocks are left", n, fault_blocks() - blocks);
		MUST(file->handles.count == handles, "allocation %u fails: a handle is lost", n);
		uvd_uobject_put(toy_get(toy, UVD_UOBJ_WRITE, &err), UVD_UOBJ_WRITE);
		MUST(!err, "allocation %u fails: the toy is in use", n);
	}
	ck_assert_int_eq(ret, result);
	ck_assert_uint_gt(n, at_least); /* the call has n - 1 allocations */
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static long long_copy(void)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_TOY, M_USE);
	tree_attr(&t, A_COPY, (uintptr_t)big, 5000);
	return tree_send(&t);
}

START_TEST(test_input_beyond_the_requests_buffer)
{
	run_out(long_copy, 0, 1);
}
END_TEST

static long array_behind_a_copy(void)
{
	uint32_t toys[100];
	struct uv_tree t;

	for (int i = 0; i < 100; i++)
		toys[i] = toy;
	tree_begin(&t, OBJ_TOY, M_USE);
	tree_attr(&t, A_COPY, (uintptr_t)big, 3900);
	tree_attr(&t, A_TOYS, (uintptr_t)toys, sizeof(toys));
	return tree_send(&t);
}

START_TEST(test_array_of_handles)
{
	run_out(array_behind_a_copy, 0, 3);
}
END_TEST

static long many(void)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_DEVICE, M_MANY);
	return tree_send(&t);
}

START_TEST(test_many_attributes)
{
	run_out(many, 0, 1);
}
END_TEST

static long use_many(void)
{
	uint32_t cmd[2] = { toy, 200 };

	return write_plain(W_USE, cmd, sizeof(cmd), 0);
}

START_TEST(test_many_objects)
{
	run_out(use_many, 16, 3);
}
END_TEST

static long use_many_and_make_one(void)
{
	uint32_t cmd[2] = { toy, UVD_REQ_MAX_OBJECTS };

	return write_plain(W_USE_NEW, cmd, sizeof(cmd), 0);
}

START_TEST(test_one_more_object_than_there_is_room_for)
{
	run_out(use_many_and_make_one, 16, 2);
	ck_assert_uint_eq(bed.call.file->handles.count, 2);
}
END_TEST

static long make_unknown(void)
{
	return uvd_req_new(&bed.call.req, OBJ_ABSENT, &(struct uvd_uobject *){ NULL });
}

START_TEST(test_object_that_the_device_does_not_have)
{
	use_many();
	ck_assert_int_eq(make_unknown(), -EINVAL);
}
END_TEST

static long invoke_large(void)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_DEVICE, M_INVOKE_WRITE);
	tree_attr(&t, UVERBS_ATTR_WRITE_CMD, X_ECHO | IB_USER_VERBS_CMD_FLAG_EXTENDED, 8);
	tree_attr(&t, UVERBS_ATTR_CORE_IN, (uintptr_t)big, 5000);
	return tree_send(&t);
}

START_TEST(test_large_input_of_invoke_write)
{
	run_out(invoke_large, 0, 1);
}
END_TEST

static long pieces(void)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_DEVICE, M_INVOKE_WRITE);
	tree_attr(&t, UVERBS_ATTR_WRITE_CMD, X_ITER | IB_USER_VERBS_CMD_FLAG_EXTENDED, 8);
	tree_attr(&t, UVERBS_ATTR_CORE_IN, (uintptr_t)big, 24);
	return tree_send(&t);
}

/* The end of the input cannot be read, so the core reads it piece by piece. */
START_TEST(test_input_in_pieces)
{
	bed.hole = (uintptr_t)&big[2];
	bed.hole_len = 8;
	run_out(pieces, -EOPNOTSUPP, 1);
}
END_TEST

static long large_command(void)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)big;

	*hdr = (struct ib_uverbs_cmd_hdr){ .command = X_ECHO | IB_USER_VERBS_CMD_FLAG_EXTENDED, .in_words = 1000 };
	return uvd_dispatch_write_from(&bed.call, (uintptr_t)big, 24 + 1000 * 8);
}

START_TEST(test_command_larger_than_the_requests_buffer)
{
	run_out(large_command, 24 + 1000 * 8, 1);
	memset(big, 0, sizeof(big));
}
END_TEST

/* ---- objects made before any call -------------------------------------------------------------------------------- */

static struct uvd_account *account;

static long another_file(void)
{
	int err;
	struct uvd_file *file = uvd_file_open(&bed.dev, account, &err);

	if (file)
		uvd_file_close(file);
	return uvd_account_used(account, UVD_RES_FILES) || uvd_account_used(account, UVD_RES_BYTES) ? -EDOM : err;
}

START_TEST(test_open_file)
{
	struct uvd_account_limits limits;
	struct uvd_accounts *accounts;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	account = uvd_account_get(accounts, &(uid_t){ 1000 }, 1);
	run_out(another_file, 0, 1);
	uvd_account_put(account);
	uvd_accounts_free(accounts);
}
END_TEST

static long another_engine(void)
{
	struct uvd_account_limits limits;
	struct uvd_engine engine;
	int err;

	uvd_account_limits_init(&limits);
	err = uvd_engine_init(&engine, NULL, &limits, NULL);
	if (!err)
		uvd_engine_fini(&engine);
	return err;
}

START_TEST(test_engine)
{
	run_out(another_engine, 0, 3);
}
END_TEST

static int wrap_nothing(struct uvd_req *req)
{
	return 0;
}

static const uvd_step wrap_steps[] = { wrap_nothing, NULL };
static const struct uvd_method_row wrap_methods[] = {
	{ .name = "M_USE", .id = M_USE, .steps = wrap_steps, .when = UVD_STEPS_BEFORE },
	{ .name = "M_DESTROY", .id = M_DESTROY, .steps = wrap_steps, .when = UVD_STEPS_BEFORE },
};
static const struct uvd_write_row wrap_writes[] = {
	{ .name = "W_SECOND_FAILS", .number = W_SECOND_FAILS, .steps = wrap_steps, .when = UVD_STEPS_AFTER },
};
static const struct uvd_object_row wrap_object = {
	.name = "toy", .id = OBJ_TOY, UVD_ROWS(methods, wrap_methods), UVD_ROWS(writes, wrap_writes)
};
static const struct uvd_object_row *const wrap_objects[] = { &wrap_object, NULL };
static const struct uvd_feature wrap_feature = { .name = "wrap", .objects = wrap_objects };

static long another_tree(void)
{
	const struct uvd_feature *features[] = { &bed_feature, &wrap_feature, NULL };
	int err;

	uvd_tree_free(uvd_tree_new(features, NULL, DRIVER, NULL, &err));
	return err;
}

START_TEST(test_tree)
{
	run_out(another_tree, 0, 20);
}
END_TEST

/* Allocates the next handle, with the n-th allocation failing for n = 1 and up. */
static void run_out_of_handles(struct uvd_handles *table)
{
	const uint32_t expected = table->count;
	uint32_t id = UINT32_MAX;
	bool fired;
	int err;

	for (unsigned int n = 1;; n++) {
		fault_arm(FAULT_ALLOC, n, false);
		err = uvd_handles_alloc(table, &id);
		fired = fault_disarm();
		if (!fired)
			break;
		MUST(err == -ENOMEM && table->count == expected, "allocation %u fails: %d", n, err);
	}
	MUST(!err && id == expected, "handle %u instead of %u", id, expected);
}

/* Tests every depth of the table: 300 000 handles have four levels. */
START_TEST(test_handle_table)
{
	const long blocks = fault_blocks();
	struct uvd_handles table = { 0 };

	for (uint32_t i = 0; i < 300000; i++)
		run_out_of_handles(&table);
	for (uint32_t i = 0; i < 300000; i++)
		uvd_handles_free(&table, i);
	MUST(!table.count, "handles are left");
	uvd_handles_fini(&table);
	MUST(fault_blocks() == blocks, "%ld blocks are left", fault_blocks() - blocks);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, bed_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_input_beyond_the_requests_buffer);
	tcase_add_test(tc, test_array_of_handles);
	tcase_add_test(tc, test_many_attributes);
	tcase_add_test(tc, test_many_objects);
	tcase_add_test(tc, test_one_more_object_than_there_is_room_for);
	tcase_add_test(tc, test_object_that_the_device_does_not_have);
	tcase_add_test(tc, test_large_input_of_invoke_write);
	tcase_add_test(tc, test_input_in_pieces);
	tcase_add_test(tc, test_command_larger_than_the_requests_buffer);
	tcase_add_test(tc, test_open_file);
	tcase_add_test(tc, test_engine);
	tcase_add_test(tc, test_tree);
	tcase_add_test(tc, test_handle_table);
	return run_suite("faults: core", tc);
}
