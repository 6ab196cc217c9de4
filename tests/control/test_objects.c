/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The objects of open files as a status tells them (core/facts.h, objects/facts.c, control/status_objects.c): the tree,
 * what is cut, a file whose lock is held, and clients that destroy and close meanwhile. The linker wraps calloc()
 * (meson.build).
 */
#include <limits.h>
#include <pthread.h>

#include "control/control.h"
#include "harness.h"
#include "util/util.h"
#include "../suite.h"

enum { OF_FILE = 256 /* copies of a file at most, as docs/status.md says */ };

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static struct harness h;
static struct uvd_object_copy copies[UVD_CONTROL_OBJECTS];
static char memory[8192] __attribute__((aligned(4096)));
static char text[1024];
static int fail_at; /* the n-th allocation from now on fails; 0: none */

static bool allocation_fails(void)
{
	return fail_at && !--fail_at;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(n, size);
}

static void *json_malloc(size_t size)
{
	return allocation_fails() ? NULL : malloc(size);
}

static void setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_self);
	h.engine.take_facts = uvd_object_take_facts;
	ck_assert_int_eq(uv_get_context(h.fd, UV_METHOD, NULL, NULL), 0);
	fail_at = 0;
}

static void teardown(void)
{
	harness_close(&h);
}

/* ---- the tree as text -------------------------------------------------------------------------------------------- */

/* Appends "PD 0(MR 1 MW 2) PD 3". */
static void text_append(const json_t *list)
{
	static const char prefix[] = "UVERBS_OBJECT_";
	const json_t *object, *handle;
	const char *type;
	size_t i;

	json_array_foreach(list, i, object) {
		type = json_string_value(json_object_get(object, "type"));
		handle = json_object_get(object, "handle");
		ck_assert_ptr_nonnull(type);
		sprintf(text + strlen(text), "%s%s", i ? " " : "",
			strncmp(type, prefix, strlen(prefix)) ? type : type + strlen(prefix));
		if (handle)
			sprintf(text + strlen(text), " %d", (int)json_integer_value(handle));
		if (!json_object_get(object, "children"))
			continue;
		strcat(text, "(");
		text_append(json_object_get(object, "children"));
		strcat(text, ")");
	}
}

/* Asserts what the tree of these copies is. */
static void assert_text(const struct uvd_object_copy *list, unsigned int num, const char *expected)
{
	json_t *tree = uvd_control_tree(h.dev, list, num);

	ck_assert_ptr_nonnull(tree);
	*text = 0;
	text_append(tree);
	json_decref(tree);
	ck_assert_str_eq(text, expected);
}

static unsigned int copy_file(void)
{
	unsigned int num = 0;

	ck_assert_uint_eq(uvd_control_copy(h.file, copies, &num), num);
	return num;
}

static void assert_tree(const char *expected)
{
	const unsigned int num = copy_file();

	assert_text(copies, num, expected);
}

/* Asserts that a value of the first object of these copies is this JSON text. */
static void assert_value(const struct uvd_object_copy *list, const char *key, const char *expected)
{
	json_t *tree = uvd_control_tree(h.dev, list, 1);
	char *value = json_dumps(json_object_get(json_array_get(tree, 0), key), JSON_ENCODE_ANY | JSON_COMPACT);

	ck_assert_ptr_nonnull(value);
	ck_assert_str_eq(value, expected);
	free(value);
	json_decref(tree);
}

/* ---- the client -------------------------------------------------------------------------------------------------- */

static uint32_t new_pd(int fd)
{
	uint32_t pd;

	ck_assert_int_eq(uv_alloc_pd(fd, UV_METHOD, &pd), 0);
	return pd;
}

static uint32_t new_mr(int fd, uint32_t pd)
{
	struct uv_mr mr;

	ck_assert_int_eq(uv_reg_mr(fd, UV_METHOD, pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	return mr.handle;
}

static uint32_t new_cq(int channel)
{
	struct uv_cq_attr attr = uv_cq_default;
	uint32_t cq;

	attr.channel = channel;
	ck_assert_int_eq(uv_create_cq(h.fd, UV_METHOD, &attr, &cq, NULL), 0);
	return cq;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

START_TEST(test_what_a_pd_has_is_below_it)
{
	const struct ib_uverbs_ah_attr ah_attr = { .port_num = 1, .dlid = 1 };
	const uint32_t pd = new_pd(h.fd), cq = new_cq(-1);
	const struct uv_qp_attr qp_attr = uv_qp_attr(pd, cq);
	const struct uv_srq_attr srq_attr = uv_srq_attr(pd);
	struct uv_srq srq;
	struct uv_qp qp;
	uint32_t mw, rkey, ah;

	new_mr(h.fd, pd);
	ck_assert_int_eq(uv_alloc_mw(h.fd, UV_WRITE, pd, IBV_MW_TYPE_1, &mw, &rkey), 0);
	ck_assert_int_eq(uv_create_ah(h.fd, UV_WRITE, pd, &ah_attr, &ah), 0);
	ck_assert_int_eq(uv_create_srq(h.fd, UV_METHOD, &srq_attr, &srq), 0);
	ck_assert_int_eq(uv_create_qp(h.fd, UV_METHOD, &qp_attr, &qp), 0);
	new_mr(h.fd, new_pd(h.fd));
	assert_tree("PD 0(MR 2 MW 3 AH 4 SRQ 5 QP 6) CQ 1 PD 7(MR 8)");
}
END_TEST

START_TEST(test_a_cq_is_below_its_channel)
{
	int channel;

	ck_assert_int_eq(uv_create_channel(h.fd, UV_METHOD, &channel), 0);
	new_cq(-1);
	new_cq(channel);
	assert_tree("COMP_CHANNEL(CQ 1) CQ 0");
	close(channel);
}
END_TEST

START_TEST(test_an_xrc_target_is_below_its_domain)
{
	struct uv_qp_attr attr = { .type = IBV_QPT_XRC_RECV, .event_fd = -1 };
	struct uv_qp qp;

	ck_assert_int_eq(uv_open_xrcd(h.fd, UV_WRITE, -1, 0, &attr.pd), 0);
	ck_assert_int_eq(uv_create_qp(h.fd, UV_WRITE, &attr, &qp), 0);
	assert_tree("XRCD 0(QP 1)");
}
END_TEST

START_TEST(test_an_object_is_shown_until_it_is_destroyed)
{
	const uint32_t pd = new_pd(h.fd), mr = new_mr(h.fd, pd);

	new_mr(h.fd, pd);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_METHOD, mr), 0);
	assert_tree("PD 0(MR 2)");
	uvd_device_remove(h.dev);
	assert_tree("");
}
END_TEST

START_TEST(test_values_are_those_of_the_object_and_follow_its_changes)
{
	const uint32_t cq = new_cq(-1);
	struct uv_qp_attr attr = uv_qp_attr(new_pd(h.fd), cq);
	char number[16];
	struct uv_qp qp;
	uint32_t cqe;

	new_mr(h.fd, attr.pd);
	attr.type = IBV_QPT_UC;
	ck_assert_int_eq(uv_create_qp(h.fd, UV_METHOD, &attr, &qp), 0);
	ck_assert_int_eq(uv_resize_cq(h.fd, UV_WRITE, cq, 100, &cqe), 0);
	ck_assert_uint_eq(copy_file(), 4);
	snprintf(number, sizeof(number), "%u", cqe);
	assert_value(&copies[0], "cqe", number);
	assert_value(&copies[2], "length", "8192");
	assert_value(&copies[2], "access", "\"LOCAL_WRITE\"");
	assert_value(&copies[3], "qp_type", "\"UC\"");
	snprintf(number, sizeof(number), "%u", qp.qpn);
	assert_value(&copies[3], "qp_num", number);
}
END_TEST

/* The backend changes the region in place, or creates another one, which is then the newest object. */
START_TEST(test_a_region_is_below_the_pd_that_it_was_moved_to)
{
	struct ib_uverbs_rereg_mr cmd = { .flags = IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS,
					  .access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ib_uverbs_rereg_mr_resp resp;
	const struct uv_cmd rereg = { IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp) };

	cmd.mr_handle = new_mr(h.fd, new_pd(h.fd));
	cmd.pd_handle = new_pd(h.fd);
	ck_assert_int_eq(uv_cmd(h.fd, UV_WRITE, &rereg), 0);
	assert_tree("PD 0 PD 2(MR 1)");
	for (unsigned int i = 0; i < copy_file(); i++)
		if (copies[i].type == UVERBS_OBJECT_MR)
			assert_value(&copies[i], "access", "\"LOCAL_WRITE,REMOTE_READ\"");
}
END_TEST

START_TEST(test_values_that_have_no_name_or_no_room_in_json_are_numbers)
{
	struct uvd_object_copy copy = { .type = UVERBS_OBJECT_QP, .facts.values = { 200 } };

	assert_value(&copy, "qp_type", "\"200\"");
	copy.type = UVERBS_OBJECT_MR;
	copy.facts.values[0] = UINT64_MAX;
	assert_value(&copy, "length", "9223372036854775807");
}
END_TEST

/* A type that is not the parent's must not adopt: a client's free and malloc can give the same pointer out again. */
START_TEST(test_a_pointer_names_a_parent_of_its_type_only)
{
	struct uvd_object_copy list[] = {
		{ .type = UVERBS_OBJECT_CQ, .has_handle = true, .facts.self = memory },
		{ .type = UVERBS_OBJECT_MR,
		  .has_handle = true,
		  .handle = 1,
		  .facts = { .self = &memory[1], .parent = memory, .parent_type = UVERBS_OBJECT_PD } },
	};
	const json_t *second;
	json_t *tree = uvd_control_tree(h.dev, list, 2);

	second = json_array_get(tree, 1);
	ck_assert_int_eq(json_integer_value(json_object_get(second, "handle")), 1);
	json_decref(tree);
}
END_TEST

/* ---- what is cut ------------------------------------------------------------------------------------------------- */

START_TEST(test_the_oldest_256_objects_of_a_file_are_copied)
{
	for (unsigned int i = 0; i < OF_FILE + 1; i++)
		new_pd(h.fd);
	ck_assert_uint_eq(copy_file(), OF_FILE);
	for (unsigned int i = 0; i < OF_FILE; i++)
		ck_assert_uint_eq(copies[i].handle, i);
	/* The status tells the others by the difference to this number. */
	ck_assert_uint_eq(atomic_load(&h.file->num_objects), OF_FILE + 1);
}
END_TEST

START_TEST(test_a_status_has_8192_objects_at_most)
{
	unsigned int num = UVD_CONTROL_OBJECTS - 3;

	ck_assert_int_eq(UVD_CONTROL_OBJECTS, 8192);
	for (unsigned int i = 0; i < 5; i++)
		new_pd(h.fd);
	ck_assert_uint_eq(uvd_control_copy(h.file, copies, &num), 3);
	ck_assert_uint_eq(num, UVD_CONTROL_OBJECTS);
	ck_assert_uint_eq(uvd_control_copy(h.file, copies, &num), 0);
	ck_assert_uint_eq(copies[UVD_CONTROL_OBJECTS - 1].handle, 2);
}
END_TEST

START_TEST(test_an_object_whose_parent_was_cut_stands_beside_the_others)
{
	const uint32_t pd = new_pd(h.fd);

	new_pd(h.fd);
	new_mr(h.fd, pd);
	ck_assert_uint_eq(copy_file(), 3);
	assert_text(copies + 1, 2, "PD 1 MR 2");
}
END_TEST

/* ---- locks and threads ------------------------------------------------------------------------------------------- */

/* A walk that waited would wait for this thread, which holds the lock. */
START_TEST(test_a_file_whose_lock_is_held_shows_no_objects_and_others_do)
{
	const int other = uv_open();
	unsigned int num = 0;

	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(uv_get_context(other, UV_METHOD, NULL, NULL), 0);
	new_pd(h.fd);
	new_pd(other);
	uvd_lock(&h.file->lock);
	ck_assert_uint_eq(uvd_control_copy(h.file, copies, &num), 0);
	ck_assert_uint_eq(num, 0);
	ck_assert_uint_eq(uvd_control_copy(harness_file(other), copies, &num), 1);
	uvd_unlock(&h.file->lock);
	/* All of its objects are "more objects". */
	ck_assert_uint_eq(atomic_load(&h.file->num_objects), 1);
	ck_assert_uint_eq(uvd_control_copy(h.file, copies, &num), 1);
	ck_assert_uint_eq(num, 2);
}
END_TEST

enum { CLIENTS = 3, ROUNDS = 40, OBJECTS = 4 };

/* Opens, creates, destroys some of it, and leaves the rest to the end of the file. */
static void *client(void *arg)
{
	atomic_uint *running = arg;
	uint32_t pd, mrs[OBJECTS];
	int fd;

	for (int round = 0; round < ROUNDS; round++) {
		fd = uv_open();
		if (fd < 0) /* the device has been removed */
			break;
		if (!uv_get_context(fd, UV_METHOD, NULL, NULL) && !uv_alloc_pd(fd, UV_METHOD, &pd)) {
			for (int i = 0; i < OBJECTS; i++) {
				struct uv_mr mr = {};

				uv_reg_mr(fd, UV_METHOD, pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE, &mr);
				mrs[i] = mr.handle;
			}
			for (int i = 0; i < OBJECTS; i += 2)
				uv_dereg_mr(fd, UV_METHOD, mrs[i]);
		}
		uv_close(fd);
	}
	atomic_fetch_sub(running, 1);
	return NULL;
}

/* Copies as a status does. Each copy is a moment of its file, and a region never outlives its PD: all have parents. */
static void walk(void)
{
	struct uvd_file *file;
	unsigned int num, copied;
	json_t *tree, *object;
	size_t i;

	uvd_lock(&h.dev->lock);
	list_for_each_entry(file, &h.dev->files, of_device) {
		num = 0;
		copied = uvd_control_copy(file, copies, &num);
		ck_assert_uint_le(copied, 1 + OBJECTS);
		tree = uvd_control_tree(h.dev, copies, copied);
		ck_assert_ptr_nonnull(tree);
		json_array_foreach(tree, i, object)
			ck_assert_str_eq(json_string_value(json_object_get(object, "type")), "UVERBS_OBJECT_PD");
		json_decref(tree);
	}
	uvd_unlock(&h.dev->lock);
}

START_TEST(test_clients_create_destroy_and_close_under_the_walk)
{
	const bool removal = _i;
	atomic_uint running = CLIENTS;
	pthread_t threads[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, client, &running), 0);
	if (removal)
		uvd_device_remove(h.dev);
	while (atomic_load(&running))
		walk();
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	walk();
}
END_TEST

/* ---- no memory --------------------------------------------------------------------------------------------------- */

/* Whatever is missing, what is there is a tree, and it can be freed. */
START_TEST(test_without_memory_a_tree_is_incomplete_or_absent)
{
	const uint32_t pd = new_pd(h.fd), num = 4;
	bool complete = false, absent = false;
	json_t *tree;

	new_mr(h.fd, pd);
	new_mr(h.fd, pd);
	new_cq(-1);
	ck_assert_uint_eq(copy_file(), num);
	for (int n = 1; !complete; n++) {
		fail_at = n;
		tree = uvd_control_tree(h.dev, copies, num);
		complete = fail_at; /* nothing has failed */
		fail_at = 0;
		absent |= !tree;
		ck_assert_uint_le(json_array_size(tree), 2 + 2);
		json_decref(tree);
	}
	ck_assert(absent);
	assert_tree("PD 0(MR 1 MR 2) CQ 3");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("objects");

	json_set_alloc_funcs(json_malloc, free);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_what_a_pd_has_is_below_it);
	tcase_add_test(t, test_a_cq_is_below_its_channel);
	tcase_add_test(t, test_an_xrc_target_is_below_its_domain);
	tcase_add_test(t, test_an_object_is_shown_until_it_is_destroyed);
	tcase_add_test(t, test_values_are_those_of_the_object_and_follow_its_changes);
	tcase_add_test(t, test_a_region_is_below_the_pd_that_it_was_moved_to);
	tcase_add_test(t, test_values_that_have_no_name_or_no_room_in_json_are_numbers);
	tcase_add_test(t, test_a_pointer_names_a_parent_of_its_type_only);
	tcase_add_test(t, test_the_oldest_256_objects_of_a_file_are_copied);
	tcase_add_test(t, test_a_status_has_8192_objects_at_most);
	tcase_add_test(t, test_an_object_whose_parent_was_cut_stands_beside_the_others);
	tcase_add_test(t, test_a_file_whose_lock_is_held_shows_no_objects_and_others_do);
	tcase_add_loop_test(t, test_clients_create_destroy_and_close_under_the_walk, 0, 2);
	tcase_add_test(t, test_without_memory_a_tree_is_incomplete_or_absent);
	return run_suite("control: objects", t);
}
