/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Plug-ins that can be loaded and those that cannot, and the effects of a loaded one. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "bed.h"
#include "plugin/internal.h"
#include "../suite.h"

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void is_refused(const char *toy, int err, const char *first, const char *second)
{
	struct uvd_trees *trees = h.dev->trees;

	ck_assert_msg(toy_load(toy, NULL) == err, "%s: %s", toy, error);
	ck_assert_msg(strstr(error, first) && strstr(error, second), "%s: %s", toy, error);
	ck_assert_ptr_eq(h.dev->trees, trees);
	ck_assert(!toy_is_mapped(toy));
}

START_TEST(test_wrong_plugin_is_refused_with_its_reason)
{
	is_refused("bad1", -ENOEXEC, "API version 4", "API version 3");
	is_refused("bad2", -EINVAL, "OBJ_BAD of 'bad feature'", "no destroy function");
	is_refused("bad3", -EINVAL, "M_BAD of 'bad feature'", "it does nothing");
	is_refused("bad4", -EINVAL, "A_BAD of 'bad feature'", "least size exceeds its size");
	is_refused("bad5", -EINVAL, "OBJ_BAD of 'bad feature'", "not UVD_SIZE()");
	is_refused("bad6", -EINVAL, "backend 'toy'", "no query_device");
	is_refused("bad8", -EINVAL, "M_BAD of", "does nothing");
	is_refused("bad9", -EINVAL, "M_BAD of", "wraps what no feature has");
	is_refused("bad10", -EXDEV, "bad10.so", "init() failed: EXDEV");
	is_refused("bad11", -EXDEV, "plug-in 'bad'", "device_init() of hfi1_0: EXDEV");
	is_refused("bad12", -EINVAL, "`a name`", "not a valid name");
	is_refused("none", -ELIBBAD, "none.so", "no symbol uverbsd_plugin");
	is_refused("lost", -ELIBBAD, "lost.so: ", "undefined symbol: uvd_lost");
	is_refused("bad13", -EINVAL, "OBJ_BAD of 'bad feature'", "class FD");
	is_refused("bad15", -EINVAL, "'bad feature' (method)", "no name");
	is_refused("bad16", -EINVAL, "'bad feature' (command)", "no name");
	is_refused("bad14", -ENOEXEC, "persona 'bad' has mapped queues of an earlier uverbsd", "rebuild it");
	is_refused("taken", -EEXIST, "backend 'soft' is both", "of 'soft' and of 'net'");
	is_refused("nowhere", -ENOENT, "nowhere.so", "ENOENT");
}
END_TEST

START_TEST(test_wrong_roles_are_refused_with_what_is_wrong)
{
	char no_role[64], first[64];
	const struct {
		const char *toy, *of, *why;
	} wrong[] = {
		{ "roles1", "IB_USER_VERBS_CMD_NOBODYS", "no command of this name" },
		{ "roles2", "IB_USER_VERBS_CMD_ROLES", "roles_request has 32 bytes, and its row 24" },
		{ "roles3", "IB_USER_VERBS_CMD_ROLES", "field handle: it ends at byte 26, and the struct has 24" },
		{ "roles4", "IB_USER_VERBS_CMD_ROLES", "field handle: it overlaps with mask" },
		{ "roles5", "IB_USER_VERBS_CMD_ROLES", no_role },
		{ "roles6", "IB_USER_VERBS_CMD_ROLES", "field handle: there is no object 0x1fff" },
		{ "roles7", "IB_USER_VERBS_CMD_ROLES", "field handle: `selector` is 9" },
		{ "roles8", "IB_USER_VERBS_CMD_ROLES", "field handle: `selector` is 3" },
		{ "roles9", "IB_USER_VERBS_CMD_ROLES", "field pd: what a command makes is a handle in its response" },
		{ "roles10", "IB_USER_VERBS_CMD_ROLES", "field other: an address has 8 bytes" },
		{ "roles11", "IB_USER_VERBS_CMD_ROLES", "field other: it counts `nothing`" },
		{ "roles12", "IB_USER_VERBS_CMD_ROLES", "no name of letters" },
		{ "roles13", "IB_USER_VERBS_CMD_ALLOC_PD", "no command of this name" },
		{ "roles14", "IB_USER_VERBS_CMD_ROLES", "stated twice" },
		{ "roles15", "A_NOBODYS", "no attribute of this name" },
		{ "roles16", "A_ROLES", "its row says what it is" },
		{ "roles17", "A_ROLES_VALUE", "roles_request has 24 bytes, and its row 4" },
		{ "roles18", "A_ROLES_VALUE", "no role of an attribute" },
		{ "roles19", "A_ROLES_VALUE", "an address, and nothing else, has an attribute with its length" },
		{ "roles20", "A_ROLES_VALUE", "an address, and nothing else, has an attribute with its length" },
		{ "roles21", "A_ROLES_VALUE", "no attribute of the name that is to have its length" },
	};

	snprintf(no_role, sizeof(no_role), "field mask: %d is no role of a field", UVD_ROLES);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(first, sizeof(first), "roles of %s: ", wrong[i].of);
		is_refused(wrong[i].toy, -EINVAL, first, wrong[i].why);
	}
}
END_TEST

struct told {
	unsigned int rows;
	bool pd;
};

static int told_row(void *arg, const struct uverbsd_tree_role *row)
{
	struct told *t = arg;

	t->rows++;
	t->pd |= row->kind == UVERBSD_TREE_ROLE_FIELD && !strcmp(row->name, "pd") && row->role == UVD_ROLE_HANDLE &&
		 row->target == UVERBS_OBJECT_PD && row->id == 210;
	return 0;
}

static struct told told(void)
{
	struct told t = {};

	ck_assert_int_eq(uvd_tree_describe_roles(h.dev->trees->plain, told_row, &t), 0);
	return t;
}

START_TEST(test_older_plugin_loads_and_states_no_roles)
{
	ck_assert_uint_eq(told().rows, 0);
	ck_assert_msg(!toy_load("oldroles", NULL), "%s", error); /* with its list it is refused: roles1 */
	ck_assert_uint_eq(told().rows, 0);
	ck_assert_int_eq(toy_unload("roles", false), 0);
	ck_assert_msg(!toy_load("roles0", NULL), "%s", error);
	/* A request and its four fields, and a value. */
	ck_assert_uint_eq(told().rows, 6);
	ck_assert(told().pd);
	ck_assert_int_eq(toy_unload("roles", false), 0);
	ck_assert_uint_eq(told().rows, 0);
}
END_TEST

/* No device has that persona, so the tree of none has the rows. */
START_TEST(test_roles_of_a_personas_rows_are_accepted)
{
	ck_assert_msg(!toy_load("faceroles", NULL), "%s", error);
	ck_assert_uint_eq(told().rows, 0);
	ck_assert_int_eq(toy_unload("roles", false), 0);
}
END_TEST

START_TEST(test_conflict_names_both_owners_and_changes_nothing)
{
	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	is_refused("bad7", -EEXIST, "'kv feature'", "'bad feature'");
	is_refused("kv2", -EEXIST, "plug-in 'kv' is loaded already", "kv1.so");
	ck_assert_int_eq(toy_load("instead", NULL), 0);
	is_refused("instead2", -EEXIST, "'instead feature'", "'instead2 feature'");
}
END_TEST

START_TEST(test_option_must_be_declared_and_valid)
{
	ck_assert_int_eq(toy_load("kv1", "colour=red"), -EINVAL);
	ck_assert_msg(strstr(error, "no option `colour`; its options: trace, other"), "%s", error);
	ck_assert_int_eq(toy_load("kv1", "other"), -EINVAL);
	ck_assert_msg(strstr(error, "`other` is not KEY=VALUE"), "%s", error);
	ck_assert_int_eq(toy_load("before", "fail=5000"), -EINVAL);
	ck_assert_int_eq(toy_load("before", "fail=1x"), -EINVAL);
	ck_assert_int_eq(toy_load("before", "fail=1k"), -EINVAL);
	ck_assert_int_eq(toy_load("before", "fail=0x1K"), 0);
}
END_TEST

/* With more than 16 options a message lists only the names that are most like the wrong one. */
START_TEST(test_messages_about_many_options_name_the_nearest)
{
	static const struct uvd_plugin_option bad[] = { { "red" }, { "a b" }, {} };
	char names[17][16], *const given[] = { "colour_9=1", NULL };
	struct uvd_plugin_option many[UVD_COUNT(names) + 1] = {};

	for (unsigned int i = 0; i < UVD_COUNT(names); i++) {
		snprintf(names[i], sizeof(names[i]), "colour_%c", 'a' + i);
		many[i].name = names[i];
	}
	ck_assert_int_eq(uvd_plugin_values_check("x", many, given, error), -EINVAL);
	ck_assert_msg(strstr(error, "x: no option `colour_9`; the nearest are colour_"), "%s", error);
	many[UVD_COUNT(names) - 1].name = NULL;
	ck_assert_int_eq(uvd_plugin_values_check("x", many, given, error), -EINVAL);
	ck_assert_msg(strstr(error, "x: no option `colour_9`; its options: colour_a, colour_b, "), "%s", error);
	ck_assert_int_eq(uvd_plugin_options_check("x", bad, "_", error), -EINVAL);
	ck_assert_msg(strstr(error, "x: `a b` is not a valid name of an option"), "%s", error);
}
END_TEST

START_TEST(test_older_plugin_lacks_what_its_struct_lacks)
{
	/* Its init() fails, but its struct ends before. */
	ck_assert_msg(toy_load("bad0", NULL) == 0, "%s", error);
	ck_assert_int_eq(toy_unload("old", false), 0);
}
END_TEST

static int load_file(const char *path, uid_t owner)
{
	return uvd_engine_plugin_load(&h.engine, &(struct uvd_plugin_request){ .path = path }, owner, error);
}

START_TEST(test_backend_of_an_older_or_newer_plugin_has_the_operations_that_both_know)
{
	const struct uvd_backend *backend;

	ck_assert_int_eq(toy_load("oldnet", NULL), 0);
	backend = uvd_plugins_backend(h.engine.plugins, "net");
	ck_assert_ptr_nonnull(backend->dealloc_context);
	ck_assert_ptr_null(backend->query_comp_cntr_caps);
	ck_assert_int_eq(toy_reload("net", "newnet"), 0);
	backend = uvd_plugins_backend(h.engine.plugins, "net");
	ck_assert_ptr_nonnull(backend->query_comp_cntr_caps);
	ck_assert_int_eq(toy_unload("net", true), 0);
	is_refused("newernet", -ENOEXEC, "newernet.so: it needs a newer uverbsd", "backend_size is ");
	is_refused("tinynet", -ELIBBAD, "tinynet.so: backend_size is wrong: 4", "");
}
END_TEST

START_TEST(test_file_that_others_may_change_is_refused)
{
	char folder[] = "/tmp/uverbsd-plugin-XXXXXX", path[PATH_MAX], command[2 * PATH_MAX];
	const uid_t me = getuid() ?: 1;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/kv1.so", folder);
	snprintf(command, sizeof(command), "cp " TOYS "/kv1.so %s", path);
	ck_assert_int_eq(system(command), 0);
	ck_assert(!chmod(path, 0775));
	ck_assert_int_eq(load_file(path, me), -EPERM);
	ck_assert_msg(strstr(error, "chmod go-w"), "%s", error);
	ck_assert(!chmod(path, 0644));
	ck_assert_int_eq(load_file(path, me), 0);
	ck_assert_int_eq(toy_unload("kv", false), 0);
	ck_assert_int_eq(load_file(folder, me), -EINVAL);
	ck_assert_msg(strstr(error, "not a regular file"), "%s", error);
	if (!getuid()) {
		ck_assert(!chown(path, 2, 2));
		ck_assert_int_eq(load_file(path, me), -EPERM);
		ck_assert_msg(strstr(error, "user 2 owns it"), "%s", error);
	}
	unlink(path);
	rmdir(folder);
}
END_TEST

/* Sets owner and mode of the file, loads it as root, and unloads it. */
static int sticky_load(const char *path, uid_t owner, mode_t mode)
{
	int err;

	ck_assert(!chown(path, owner, owner) && !chmod(path, mode));
	err = load_file(path, 0);
	if (!err)
		ck_assert_int_eq(toy_unload("kv", false), 0);
	return err;
}

/* A build below /tmp, and what another user could put there. */
START_TEST(test_root_loads_what_is_roots_from_a_sticky_folder)
{
	char top[] = "/tmp/uverbsd-plugin-XXXXXX", own[128], path[128], link[128], via[128];
	char command[2 * PATH_MAX];

	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(own, sizeof(own), "%.64s/own", top);
	snprintf(path, sizeof(path), "%.64s/own/kv1.so", top);
	snprintf(link, sizeof(link), "%.64s/link", top);
	snprintf(via, sizeof(via), "%.64s/link/kv1.so", top);
	snprintf(command, sizeof(command), "chmod 1777 %s && mkdir -m 755 %s && cp " TOYS "/kv1.so %s && ln -s own %s",
		 top, own, path, link);
	ck_assert_int_eq(system(command), 0);
	ck_assert_msg(!sticky_load(path, 0, 0644), "%s", error);
	ck_assert_msg(!sticky_load(via, 0, 0644), "%s", error);
	/* Another user could let its own link lead elsewhere. */
	ck_assert(!lchown(link, 2, 2));
	ck_assert_int_eq(load_file(via, 0), -EPERM);
	ck_assert_msg(strstr(error, link) && strstr(error, "not root's"), "%s", error);
	ck_assert(!chown(own, 2, 2));
	ck_assert_int_eq(load_file(path, 0), -EPERM);
	ck_assert_msg(strstr(error, own) && strstr(error, "not root's"), "%s", error);
	ck_assert(!chown(own, 0, 0) && !chmod(own, 0775));
	ck_assert_int_eq(load_file(path, 0), -EPERM);
	ck_assert_msg(strstr(error, "chmod go-w") && strstr(error, own), "%s", error);
	/* Without the sticky bit everybody may rename root's folder. */
	ck_assert(!chmod(own, 0755) && !chmod(top, 0777));
	ck_assert_int_eq(load_file(path, 0), -EPERM);
	ck_assert_msg(strstr(error, "chmod go-w") && strstr(error, top), "%s", error);
	snprintf(command, sizeof(command), "rm -r %s", top);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(test_builtin_plugin_cannot_be_changed)
{
	ck_assert_int_eq(toy_unload("soft", false), -EPERM);
	ck_assert_int_eq(toy_reload("soft", "kv1"), -EPERM);
	ck_assert_int_eq(toy_unload("kv", false), -ENOENT);
	ck_assert_int_eq(toy_reload("kv", NULL), -ENOENT);
	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	ck_assert_int_eq(toy_reload("kv", "net"), -EINVAL);
	ck_assert_msg(strstr(error, "it is plug-in 'net', and not 'kv'"), "%s", error);
}
END_TEST

/* ---- what a plug-in adds ----------------------------------------------------------------------------------------- */

START_TEST(test_plugin_brings_objects_and_data)
{
	struct kv_answer answer = {};
	uint32_t handle;
	int fd;

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	fd = uv_open();
	ck_assert_int_eq(kv_version(fd, &answer), 1);
	ck_assert(answer.engine && answer.device && !answer.context);
	uv_close(fd);
	fd = open_context();
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(kv_version(fd, &answer), 1);
	ck_assert(answer.engine && answer.device && answer.context);
	ck_assert_int_eq(kv_create(fd, &handle), 0);
	ck_assert_int_eq(kv_destroy(fd, handle), 0);
	ck_assert_int_eq(kv_destroy(fd, handle), -ENOENT);
	uv_close(fd);
}
END_TEST

static int query_port(int fd, uint64_t *version)
{
	struct ib_uverbs_query_port_resp_ex resp = {};
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	tree.hdr.driver_id = RDMA_DRIVER_HFI1;
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
	if (version)
		uv_attr_out(&tree, A_KV_PORT, version, sizeof(*version));
	return uv_ioctl(fd, &tree);
}

START_TEST(test_standard_method_gets_an_attribute)
{
	uint64_t version = 0;
	int fd = open_context();

	ck_assert_int_eq(toy_load("kv1", NULL), 0);
	/* Opened before: the parser does not know the attribute, which is mandatory. */
	ck_assert_int_eq(query_port(fd, &version), -EPROTONOSUPPORT);
	uv_close(fd);
	fd = open_context();
	ck_assert_int_eq(query_port(fd, NULL), 0);
	ck_assert_int_eq(query_port(fd, &version), 0);
	ck_assert_uint_eq(version, 1);
	uv_close(fd);
}
END_TEST

static int destroy_pd(int fd, uint32_t pd)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
	tree.hdr.driver_id = RDMA_DRIVER_HFI1;
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_PD_HANDLE, pd);
	return uv_ioctl(fd, &tree);
}

START_TEST(test_wrappers_run_in_order)
{
	uint32_t pd;
	int fd;

	ck_assert_int_eq(toy_load("after", NULL), 0);
	ck_assert_int_eq(toy_load("before", NULL), 0);
	fd = open_context();
	traced();
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &pd), 0);
	ck_assert_str_eq(traced(), "before.alloc after.alloc");
	ck_assert_int_eq(destroy_pd(fd, pd), 0);
	ck_assert_str_eq(traced(), "before.alive after.gone");
	ck_assert_int_eq(uv_alloc_pd(fd, UV_INVOKE, &pd), 0);
	ck_assert_str_eq(traced(), "before.alloc after.alloc");
	ck_assert_int_eq(query_port(fd, NULL), 0);
	ck_assert_str_eq(traced(), "before.port after.port");
	/* The method fails: AFTER does not run. */
	ck_assert_int_eq(destroy_pd(fd, pd + 100), -ENOENT);
	ck_assert_str_eq(traced(), "");
	uv_close(fd);
}
END_TEST

START_TEST(test_before_prevents_and_after_undoes)
{
	uint32_t pd, first;
	int fd;

	ck_assert_int_eq(toy_load("before", "fail=5"), 0);
	fd = open_context();
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &pd), -5);
	uv_close(fd);
	fd = h.fd;
	ck_assert_int_eq(uv_get_context(fd, UV_WRITE, &(int){ -1 }, NULL), 0);
	close(h.granted);
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(toy_unload("before", false), 0);
	ck_assert_int_eq(toy_load("after", "fail=7"), 0);
	fd = open_context();
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &first), -7);
	ck_assert_ptr_null(uvd_handles_get(&harness_file(fd)->handles, 0));
	ck_assert_uint_eq(atomic_load(&harness_file(fd)->num_objects), 1); /* the asynchronous event file */
	uv_close(fd);
}
END_TEST

START_TEST(test_failing_before_keeps_the_object_that_a_method_destroys)
{
	uint32_t pd;
	int fd;

	ck_assert_int_eq(toy_load("before", "fail-destroy=93"), 0); /* EPROTONOSUPPORT: only the parser may answer it */
	fd = open_context();
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(destroy_pd(fd, pd), -EINVAL);
	ck_assert_ptr_nonnull(uvd_handles_get(&harness_file(fd)->handles, pd));
	ck_assert_int_eq(uv_dealloc_pd(fd, UV_WRITE, pd), 0);
	uv_close(fd);
}
END_TEST

START_TEST(test_wrapper_runs_on_a_device_that_is_gone_without_data_of_contexts)
{
	int fd;

	ck_assert_int_eq(toy_load("before", NULL), 0);
	ck_assert_uint_eq(harness_add_device(&h), 1);
	fd = harness_node_ops.open("/dev/infiniband/uverbs1");
	ck_assert_int_eq(uv_get_context(fd, UV_WRITE, &(int){ -1 }, NULL), 0);
	close(h.granted);
	harness_remove_device(&h, 1);
	traced();
	ck_assert_int_eq(query_port(fd, NULL), -EIO);
	ck_assert_str_eq(traced(), "before.without_context");
	uv_close(fd);
}
END_TEST

START_TEST(test_instead_replaces)
{
	uint32_t pd = 77;
	int fd;

	ck_assert_int_eq(toy_load("instead", NULL), 0);
	ck_assert_int_eq(toy_load("before", NULL), 0);
	fd = open_context();
	traced();
	uv_alloc_pd(fd, UV_WRITE, &pd);
	ck_assert_str_eq(traced(), "before.alloc instead.alloc");
	ck_assert_ptr_null(uvd_handles_get(&harness_file(fd)->handles, 0));
	uv_close(fd);
}
END_TEST

/* ---- backends ---------------------------------------------------------------------------------------------------- */

START_TEST(test_backend_of_a_plugin_stays_while_a_device_uses_it)
{
	struct uvd_device_config config = h.config;
	struct uvd_device *dev;
	int err;

	strcpy(config.backend, "net");
	strcpy(config.ibdev, "second");
	ck_assert_ptr_null(uvd_device_new(&h.engine, &config, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_int_eq(toy_load("net", NULL), 0);
	dev = uvd_device_new(&h.engine, &config, &err);
	ck_assert_ptr_nonnull(dev);
	ck_assert_int_eq(toy_unload("net", true), -EBUSY);
	ck_assert_msg(strstr(error, "device second uses backend 'net'"), "%s", error);
	/* The device keeps the old code, and a new device gets the new one. */
	ck_assert_int_eq(toy_reload("net", NULL), 0);
	ck_assert_ptr_ne(dev->backend_module->plugin.backends[0], uvd_plugins_backend(h.engine.plugins, "net"));
	ck_assert_int_eq(toy_unload("net", true), -EBUSY);
	uvd_device_put(dev);
	ck_assert_int_eq(toy_unload("net", true), 0);
	ck_assert_ptr_null(uvd_plugins_backend(h.engine.plugins, "net"));
	ck_assert(!toy_is_mapped("net"));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("load");

	tcase_add_checked_fixture(t, bed_setup, bed_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_wrong_plugin_is_refused_with_its_reason);
	tcase_add_test(t, test_wrong_roles_are_refused_with_what_is_wrong);
	tcase_add_test(t, test_roles_of_a_personas_rows_are_accepted);
	tcase_add_test(t, test_older_plugin_loads_and_states_no_roles);
	tcase_add_test(t, test_conflict_names_both_owners_and_changes_nothing);
	tcase_add_test(t, test_option_must_be_declared_and_valid);
	tcase_add_test(t, test_messages_about_many_options_name_the_nearest);
	tcase_add_test(t, test_older_plugin_lacks_what_its_struct_lacks);
	tcase_add_test(t, test_backend_of_an_older_or_newer_plugin_has_the_operations_that_both_know);
	tcase_add_test(t, test_file_that_others_may_change_is_refused);
	if (getuid())
		puts("skipped: test_root_loads_what_is_roots_from_a_sticky_folder: needs root");
	else
		tcase_add_test(t, test_root_loads_what_is_roots_from_a_sticky_folder);
	tcase_add_test(t, test_builtin_plugin_cannot_be_changed);
	tcase_add_test(t, test_plugin_brings_objects_and_data);
	tcase_add_test(t, test_standard_method_gets_an_attribute);
	tcase_add_test(t, test_wrappers_run_in_order);
	tcase_add_test(t, test_before_prevents_and_after_undoes);
	tcase_add_test(t, test_failing_before_keeps_the_object_that_a_method_destroys);
	tcase_add_test(t, test_wrapper_runs_on_a_device_that_is_gone_without_data_of_contexts);
	tcase_add_test(t, test_instead_replaces);
	tcase_add_test(t, test_backend_of_a_plugin_stays_while_a_device_uses_it);
	return run_suite("plugin load", t);
}
