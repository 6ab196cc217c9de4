/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * User Capabilities came with Linux 6.15. The test machine has an older kernel, so docs/abi-rules.md and the kernel's
 * Documentation/infiniband/ucaps.rst are the standard.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <uverbsd/abi.h>
#include "core/internal.h"
#include "objects/internal.h"
#include "tests.h"

#define UVERBS_ATTR_GET_CONTEXT_FD_ARR 2

/* ---- a transport whose nodes are memfds -------------------------------------------------------------------------- */

static int nodes[UVD_MAX_UCAPS]; /* indexed by bit: fd + 1, or 0: no node */
static unsigned int num_nodes;
static int fail_node;

static int node_create(struct uvd_engine *engine, const char *name, unsigned int bit, struct uvd_ucap_node *node)
{
	struct stat st;

	if (fail_node)
		return -fail_node;
	ck_assert_int_eq(nodes[bit], 0);
	nodes[bit] = memfd_create(name, MFD_CLOEXEC) + 1;
	num_nodes++;
	ck_assert(!fstat(nodes[bit] - 1, &st));
	*node = (struct uvd_ucap_node){ .priv = &nodes[bit], .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

static void node_remove(struct uvd_engine *engine, const struct uvd_ucap_node *node)
{
	int *fd = node->priv;

	close(*fd - 1);
	*fd = 0;
	num_nodes--;
}

static const struct uvd_ucap_ops node_ops = { .create = node_create, .remove = node_remove };

/* Opens a node as a client does. flags: of open(). */
static int open_node(unsigned int bit, int flags)
{
	char path[32];

	ck_assert_int_ne(nodes[bit], 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", nodes[bit] - 1);
	return open(path, flags | O_CLOEXEC);
}

/* ---- features that need a ucap ----------------------------------------------------------------------------------- */

enum { OBJ_SAFE = 0x1011, M_OPEN = 0x1011, A_EXTRA = 0x1012, W_GUARDED = 0x70, X_GUARDED = 0x71 };

static int step_ok(struct uvd_req *req)
{
	return 0;
}

static int no_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	return 0;
}

static const uvd_step ok_steps[] = { step_ok, NULL };
static const struct uvd_attr_row extra_attrs[] = { UVD_PTR_IN(A_EXTRA, 4, 0) };
static const struct uvd_attr_row safe_attrs[] = { UVD_IDR(A_EXTRA, OBJ_SAFE, UVD_UOBJ_NEW, UVD_MANDATORY) };
static const struct uvd_method_row safe_methods[] = { UVD_METHOD(M_OPEN, safe_attrs, ok_steps) };
static const struct uvd_object_row safe = {
	.name = "SAFE",
	.id = OBJ_SAFE,
	.cls = UVD_CLASS_IDR,
	.destroy = no_destroy,
	UVD_ROWS(methods, safe_methods),
};
/* Guarded additions to an object that every client has: a method, an attribute of another method, and commands. */
static const struct uvd_method_row device_methods[] = {
	UVD_METHOD(M_OPEN, extra_attrs, ok_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_PORT, extra_attrs, NULL),
};
static const struct uvd_write_row device_writes[] = {
	UVD_WRITE(W_GUARDED, 0, 0, 0, ok_steps),
	UVD_WRITE(X_GUARDED, UVD_WRITE_EX, 0, 0, ok_steps),
};
static const struct uvd_object_row device = {
	.name = "UVERBS_OBJECT_DEVICE",
	.id = UVERBS_OBJECT_DEVICE,
	UVD_ROWS(methods, device_methods),
	UVD_ROWS(writes, device_writes),
};
static const struct uvd_object_row *const guarded_objects[] = { &safe, &device, NULL };
static const struct uvd_feature guarded = { .name = "guarded", .ucap = "perm_a", .objects = guarded_objects };

/* A second guarded feature, so that contexts can have different sets. */
static const struct uvd_method_row b_methods[] = { UVD_METHOD(M_OPEN + 1, extra_attrs, ok_steps) };
static const struct uvd_object_row b_device = { .name = "UVERBS_OBJECT_DEVICE",
						.id = UVERBS_OBJECT_DEVICE,
						UVD_ROWS(methods, b_methods) };
static const struct uvd_object_row *const b_objects[] = { &b_device, NULL };
static const struct uvd_feature guarded_b = { .name = "guarded b", .ucap = "perm_b", .objects = b_objects };

static const struct uvd_feature *const features[] = { &guarded, &guarded_b, NULL };

#define BUILTIN .api_version = UVD_API_VERSION, .struct_size = sizeof(struct uvd_plugin)
static const struct uvd_plugin guarded_plugin = { BUILTIN, .name = "guarded", .features = features };

static void want_ucaps(struct uvd_device_config *config, const char *first, const char *second)
{
	config->ucaps.num = 0;
	if (first)
		strcpy(config->ucaps.names[config->ucaps.num++], first);
	if (second)
		strcpy(config->ucaps.names[config->ucaps.num++], second);
}

/* Makes another device of the same engine. The harness's file stays one of the first device. */
static struct uvd_device *second_device(const char *ucap)
{
	struct uvd_device_config config = h.config;
	int err;

	want_ucaps(&config, ucap, NULL);
	strcpy(config.ibdev, "second");
	config.number = 1;
	return uvd_device_new(&h.engine, &config, &err);
}

/* perm_a is bit 0, perm_b bit 1. */
static void begin(void)
{
	harness_close(&h);
	harness_init(&h, "null");
	h.engine.ucaps.ops = &node_ops;
	ck_assert_int_eq(uvd_plugins_add_builtin(h.engine.plugins, &guarded_plugin), 0);
	want_ucaps(&h.config, "perm_a", "perm_b");
	harness_start(&h, &uvd_mem_process);
}

static int get_context(const int *fds, size_t len)
{
	struct uv_tree tree = {};

	if (len)
		uv_attr_in(&tree, UVERBS_ATTR_GET_CONTEXT_FD_ARR, fds, len);
	return harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, &tree);
}

static int call_method(uint16_t object, uint16_t method)
{
	struct uv_tree tree = {};

	if (object == OBJ_SAFE)
		uv_attr_obj(&tree, A_EXTRA, 0);
	return harness_ioctl(&h, object, method, &tree);
}

static int call_with_extra(void)
{
	struct ib_uverbs_query_port_resp_ex resp = {};
	struct uv_tree tree = {};

	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
	uv_attr(&tree, A_EXTRA, 4, 0);
	return harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, &tree);
}

static int count_handles(uint16_t object)
{
	uint32_t total = 0, list[4];
	struct uv_tree tree = {};
	int ret;

	uv_attr_const(&tree, UVERBS_ATTR_INFO_OBJECT_ID, object);
	uv_attr_out(&tree, UVERBS_ATTR_INFO_TOTAL_HANDLES, &total, sizeof(total));
	uv_attr_out(&tree, UVERBS_ATTR_INFO_HANDLES_LIST, list, sizeof(list));
	ret = harness_ioctl(&h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, &tree);
	return ret ? ret : (int)total;
}

static void is_visible(bool yes)
{
	char none;

	ck_assert_int_eq(call_method(OBJ_SAFE, M_OPEN), yes ? 0 : -EPROTONOSUPPORT);
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN), yes ? 0 : -EPROTONOSUPPORT);
	ck_assert_int_eq(call_with_extra(), yes ? 0 : -EPROTONOSUPPORT);
	ck_assert_int_eq(harness_write(&h, W_GUARDED, &none, 0, NULL, 0), yes ? 0 : -EOPNOTSUPP);
	ck_assert_int_eq(harness_write_ex(&h, X_GUARDED, "", 0, NULL, 0), yes ? 0 : -EOPNOTSUPP);
	ck_assert_int_eq(count_handles(OBJ_SAFE), yes ? 1 : -ENOENT);
}

/* Closes the file and opens the same device again. */
static void reopen(void)
{
	int err;

	harness_close_file(&h);
	h.file = h.call->file = uvd_file_open(h.dev, h.account, &err);
	ck_assert_ptr_nonnull(h.file);
}

/* ---- creation of the nodes --------------------------------------------------------------------------------------- */

START_TEST(test_node_comes_with_the_first_device_and_goes_with_the_last)
{
	struct uvd_device *second;

	begin();
	ck_assert_uint_eq(num_nodes, 2);
	second = second_device("perm_a");
	ck_assert_uint_eq(num_nodes, 2);
	ck_assert_uint_eq(h.engine.ucaps.list[0].refs, 2);
	uvd_device_remove_ucaps(h.dev);
	ck_assert_uint_eq(num_nodes, 1);
	ck_assert_int_ne(nodes[0], 0);
	uvd_device_put(second);
	ck_assert_uint_eq(num_nodes, 0);
}
END_TEST

START_TEST(test_unplugged_device_takes_its_nodes_with_it_though_files_are_open)
{
	struct uvd_device *second;
	int fd;

	begin();
	second = second_device("perm_b");
	fd = open_node(0, O_RDONLY);
	ck_assert_int_eq(get_context(&fd, sizeof(fd)), 0);
	uvd_device_remove(h.dev);
	ck_assert_uint_eq(num_nodes, 1);
	ck_assert_int_ne(nodes[1], 0);
	uvd_device_remove(second);
	ck_assert_uint_eq(num_nodes, 0);
	uvd_device_put(second);
	/* Guarded methods are then EIO if the context had them; the others are still absent. */
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN), -EIO);
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN + 1), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(test_backend_creates_and_removes_by_name_as_often_as_it_likes)
{
	struct uvd_ibdev *ib;
	int bit;

	begin();
	ib = &h.dev->ib;
	bit = ib->create_ucap(ib, "perm_c");
	ck_assert_int_eq(bit, 2);
	ck_assert_int_eq(ib->create_ucap(ib, "perm_c"), bit);
	ib->remove_ucap(ib, "perm_c");
	ck_assert_int_ne(nodes[bit], 0);
	ib->remove_ucap(ib, "perm_c");
	ck_assert_int_eq(nodes[bit], 0);
	ib->remove_ucap(ib, "perm_c");
	ib->remove_ucap(ib, "never");
	ck_assert_uint_eq(num_nodes, 2);
	/* The device cannot remove a ucap that it did not create. */
	bit = uvd_ucap_get(&h.engine, "perm_c");
	ib->remove_ucap(ib, "perm_c");
	ck_assert_int_ne(nodes[bit], 0);
	uvd_ucap_put(&h.engine, bit);
	ck_assert_int_eq(nodes[bit], 0);
}
END_TEST

START_TEST(test_name_keeps_its_bit_and_no_other_gets_it)
{
	int bit;

	begin();
	bit = uvd_ucap_get(&h.engine, "perm_c");
	uvd_ucap_put(&h.engine, bit);
	ck_assert_int_eq(uvd_ucap_get(&h.engine, "perm_d"), bit + 1);
	ck_assert_int_eq(uvd_ucap_get(&h.engine, "perm_c"), bit);
	uvd_ucap_put(&h.engine, bit);
	uvd_ucap_put(&h.engine, bit + 1);
}
END_TEST

START_TEST(test_there_is_an_end_of_names)
{
	char name[16];

	begin();
	for (unsigned int i = 2; i < UVD_MAX_UCAPS; i++) {
		snprintf(name, sizeof(name), "perm_%u", i);
		ck_assert_int_eq(uvd_ucap_get(&h.engine, name), i);
		uvd_ucap_put(&h.engine, i);
	}
	ck_assert_int_eq(uvd_ucap_get(&h.engine, "perm_one_more"), -ENOSPC);
	ck_assert_int_eq(uvd_ucap_get(&h.engine, "perm_5"), 5);
	uvd_ucap_put(&h.engine, 5);
}
END_TEST

START_TEST(test_name_that_cannot_be_a_nodes_is_einval)
{
	static const char *const bad[] = { "",		".",	   "..",       ".hidden",
					   "a/b",	"uverbs0", "uverbs",   "rdma_cm",
					   "two words", "comma,",  "\xc3\xa4", "a_name_of_just_one_letter_too_ma" };

	begin();
	for (size_t i = 0; i < UVD_COUNT(bad); i++)
		ck_assert_msg(uvd_ucap_get(&h.engine, bad[i]) == -EINVAL, "%s", bad[i]);
	ck_assert(uvd_ucap_name_ok("mlx5_perm_ctrl_other_vhca"));
	ck_assert(uvd_ucap_name_ok("a-name.of_31_letters_is_allowed"));
}
END_TEST

START_TEST(test_device_whose_node_cannot_be_made_is_refused)
{
	struct uvd_device_config config;
	int err = 0;

	begin();
	config = h.config;
	want_ucaps(&config, "perm_a", "perm_x");
	fail_node = EEXIST;
	ck_assert_ptr_null(uvd_device_new(&h.engine, &config, &err));
	ck_assert_int_eq(err, -EEXIST);
	ck_assert_uint_eq(h.engine.ucaps.list[0].refs, 1);
	ck_assert_uint_eq(num_nodes, 2);
	fail_node = 0;
}
END_TEST

static const struct uvd_method_row rival_methods[] = { UVD_METHOD(M_OPEN, extra_attrs, ok_steps) };
static const struct uvd_object_row rival_device = { .name = "UVERBS_OBJECT_DEVICE",
						    .id = UVERBS_OBJECT_DEVICE,
						    UVD_ROWS(methods, rival_methods) };
static const struct uvd_object_row *const rival_objects[] = { &rival_device, NULL };
static const struct uvd_feature rival = { .name = "rival", .ucap = "perm_rival", .objects = rival_objects };
static const struct uvd_feature *const rivals[] = { &rival, NULL };
static const struct uvd_plugin rival_plugin = { BUILTIN, .name = "rival", .features = rivals };

START_TEST(test_features_that_conflict_are_refused_even_if_nobody_can_turn_them_on)
{
	char text[512] = "";
	int err = 0, out[2];

	begin();
	ck_assert(!pipe2(out, O_CLOEXEC));
	h.engine.log = uvd_log_new(out[1], "test", UVD_INFO);
	ck_assert_int_eq(uvd_plugins_add_builtin(h.engine.plugins, &rival_plugin), 0);
	want_ucaps(&h.config, NULL, NULL);
	ck_assert_ptr_null(uvd_device_new(&h.engine, &h.config, &err));
	ck_assert_int_eq(err, -EEXIST);
	ck_assert_int_gt(read(out[0], text, sizeof(text) - 1), 0);
	ck_assert_msg(strstr(text, "'guarded'") && strstr(text, "'rival'"), "%s", text);
	uvd_log_free(h.engine.log);
	h.engine.log = NULL;
}
END_TEST

static const struct uvd_object_row *const no_objects[] = { NULL };
static const struct uvd_feature empty = { .name = "empty", .objects = no_objects };

START_TEST(test_device_has_as_many_features_as_there_is_room_for)
{
	const struct uvd_feature *many[UVD_MAX_FEATURES + 1] = {};
	const struct uvd_plugin plugin = { BUILTIN, .name = "many", .features = many };
	struct uvd_device *second;
	unsigned int own = 0;
	int err;

	harness_close(&h);
	harness_init(&h, "null");
	harness_start(&h, &uvd_mem_process);
	while (h.dev->trees->features[own])
		own++;
	for (unsigned int i = own; i < UVD_MAX_FEATURES; i++)
		many[i - own] = &empty;
	ck_assert_int_eq(uvd_plugins_add_builtin(h.engine.plugins, &plugin), 0);
	second = second_device(NULL);
	ck_assert_ptr_nonnull(second);
	uvd_device_put(second);
	many[UVD_MAX_FEATURES - own] = &empty;
	strcpy(h.config.ibdev, "second");
	ck_assert_ptr_null(uvd_device_new(&h.engine, &h.config, &err));
	ck_assert_int_eq(err, -ENOSPC);
	harness_close(&h); /* the plug-in is on our stack */
	harness_init(&h, "null");
	harness_start(&h, &uvd_mem_process);
}
END_TEST

/* ---- the features of a context ----------------------------------------------------------------------------------- */

START_TEST(test_feature_is_invisible_without_its_capability)
{
	struct ib_uverbs_get_context_resp resp;

	begin();
	is_visible(false);
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	is_visible(false);
	reopen();
	ck_assert_int_eq(get_context(NULL, 0), 0);
	is_visible(false);
}
END_TEST

START_TEST(test_feature_is_there_for_a_context_with_its_capability_and_only_it)
{
	uint32_t pd;
	int fd;

	begin();
	fd = open_node(0, O_RDONLY);
	ck_assert_int_eq(get_context(&fd, sizeof(fd)), 0);
	is_visible(true);
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN + 1), -EPROTONOSUPPORT);
	ck_assert_uint_eq(atomic_load(&h.file->context)->ucaps, 1);
	/* The rest of the device works as before. */
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	reopen();
	ck_assert_int_eq(get_context(NULL, 0), 0);
	is_visible(false);
}
END_TEST

START_TEST(test_several_capabilities_add_up_and_their_tree_is_made_once)
{
	struct uvd_tree *before;
	int fds[4];

	begin();
	fds[0] = fds[2] = open_node(0, O_RDONLY);
	fds[1] = open_node(1, O_RDWR);
	fds[3] = open_node(0, O_WRONLY);
	ck_assert_int_eq(get_context(fds, sizeof(fds)), 0);
	is_visible(true);
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN + 1), 0);
	before = atomic_load(&h.file->tree);
	reopen();
	ck_assert_int_eq(get_context(fds, 2 * sizeof(*fds)), 0);
	ck_assert_ptr_eq(atomic_load(&h.file->tree), before);
	reopen();
	ck_assert_int_eq(get_context(fds + 1, sizeof(*fds)), 0);
	is_visible(false);
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN + 1), 0);
}
END_TEST

START_TEST(test_capability_of_another_device_turns_nothing_on_here)
{
	struct uvd_device *own = NULL, *second;
	int fd, err;

	begin();
	second = second_device(NULL);
	fd = open_node(0, O_RDONLY);
	harness_close_file(&h);
	own = h.dev;
	h.dev = second;
	h.file = h.call->file = uvd_file_open(second, h.account, &err);
	ck_assert_int_eq(get_context(&fd, sizeof(fd)), 0);
	is_visible(false);
	harness_close_file(&h);
	uvd_device_put(second);
	h.dev = own;
}
END_TEST

START_TEST(test_context_keeps_what_it_has_when_the_capability_goes)
{
	int fd;

	begin();
	fd = open_node(0, O_RDONLY);
	ck_assert_int_eq(get_context(&fd, sizeof(fd)), 0);
	uvd_device_remove_ucaps(h.dev);
	ck_assert_int_eq(call_method(UVERBS_OBJECT_DEVICE, M_OPEN), 0);
	reopen();
	ck_assert_int_eq(get_context(&fd, sizeof(fd)), -EINVAL);
}
END_TEST

/* ---- port state, which uverbsd guards by a ucap ------------------------------------------------------------------ */

static int published, fail_publish;

static int publish_port(struct uvd_device *dev, unsigned int port, bool up)
{
	if (!fail_publish)
		published = port * 2 + up;
	return -fail_publish;
}

static void begin_port_state(void)
{
	int fd;

	harness_close(&h);
	harness_init(&h, "soft");
	h.engine.ucaps.ops = &node_ops;
	h.engine.publish_port = publish_port;
	want_ucaps(&h.config, UVERBSD_UCAP_PORT_STATE, NULL);
	harness_start(&h, &uvd_mem_process);
	fd = open_node(0, O_RDONLY);
	ck_assert_int_eq(get_context(&fd, sizeof(fd)), 0);
	published = fail_publish = 0;
}

static int set_port(uint64_t port, uint64_t up)
{
	struct uv_tree tree = {};

	uv_attr_const(&tree, UVERBSD_ATTR_PORT_SET_STATE_PORT, port);
	uv_attr_const(&tree, UVERBSD_ATTR_PORT_SET_STATE_UP, up);
	return harness_ioctl(&h, UVERBSD_OBJECT_PORT, UVERBSD_METHOD_PORT_SET_STATE, &tree);
}

static int port_state(void)
{
	struct ib_uverbs_query_port_resp resp = {};
	struct ib_uverbs_query_port cmd = { .port_num = 1 };

	ck_assert_int_eq(WRITE(&h, QUERY_PORT, &cmd, &resp), 0);
	return resp.state;
}

START_TEST(test_port_goes_down_and_up_for_whoever_may)
{
	begin_port_state();
	ck_assert_int_eq(set_port(1, 0), 0);
	ck_assert_int_eq(port_state(), IBV_PORT_DOWN);
	ck_assert_int_eq(published, 2);
	published = 0;
	ck_assert_int_eq(set_port(1, 0), 0);
	ck_assert_int_eq(published, 0);
	ck_assert_int_eq(set_port(1, 1), 0);
	ck_assert_int_eq(port_state(), IBV_PORT_ACTIVE);
	ck_assert_int_eq(published, 3);
	ck_assert_int_eq(set_port(0, 0), -EINVAL);
	ck_assert_int_eq(set_port(2, 0), -EINVAL);
	ck_assert_int_eq(set_port(1ull << 32 | 1, 0), -EINVAL);
	ck_assert_int_eq(set_port(1, 2), -EINVAL);
}
END_TEST

START_TEST(test_port_whose_state_cannot_be_published_keeps_it)
{
	begin_port_state();
	fail_publish = ENOSPC;
	ck_assert_int_eq(set_port(1, 0), -ENOSPC);
	ck_assert_int_eq(port_state(), IBV_PORT_ACTIVE);
}
END_TEST

START_TEST(test_port_state_is_not_there_for_others)
{
	begin_port_state();
	reopen();
	ck_assert_int_eq(get_context(NULL, 0), 0);
	ck_assert_int_eq(set_port(1, 0), -EPROTONOSUPPORT);
	ck_assert_int_eq(port_state(), IBV_PORT_ACTIVE);
}
END_TEST

/* ---- bad descriptors --------------------------------------------------------------------------------------------- */

START_TEST(test_ucap_01_longest_list_is_taken)
{
	static int fds[UINT16_MAX / 4];

	begin();
	fds[0] = open_node(0, O_RDONLY);
	for (size_t i = 1; i < UVD_COUNT(fds); i++)
		fds[i] = fds[0];
	ck_assert_int_eq(get_context(fds, sizeof(fds)), 0);
	is_visible(true);
}
END_TEST

START_TEST(test_removed_device_looks_at_no_descriptors)
{
	int closed = 987;

	begin();
	h.dev->gone = true;
	ck_assert_int_eq(get_context(&closed, 4), -EIO);
}
END_TEST

TEST_LIST(test_node_comes_with_the_first_device_and_goes_with_the_last,
	  test_unplugged_device_takes_its_nodes_with_it_though_files_are_open,
	  test_backend_creates_and_removes_by_name_as_often_as_it_likes, test_name_keeps_its_bit_and_no_other_gets_it,
	  test_there_is_an_end_of_names, test_name_that_cannot_be_a_nodes_is_einval,
	  test_device_whose_node_cannot_be_made_is_refused,
	  test_features_that_conflict_are_refused_even_if_nobody_can_turn_them_on,
	  test_device_has_as_many_features_as_there_is_room_for, test_feature_is_invisible_without_its_capability,
	  test_feature_is_there_for_a_context_with_its_capability_and_only_it,
	  test_several_capabilities_add_up_and_their_tree_is_made_once,
	  test_capability_of_another_device_turns_nothing_on_here,
	  test_context_keeps_what_it_has_when_the_capability_goes, test_port_goes_down_and_up_for_whoever_may,
	  test_port_whose_state_cannot_be_published_keeps_it, test_port_state_is_not_there_for_others,
	  test_ucap_01_longest_list_is_taken, test_removed_device_looks_at_no_descriptors)
