/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A child tells what a plug-in declares, without its code in this process, whatever its constructors do. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/internal.h"
#include "../suite.h"

enum { STUCK_MS = 60000, SOON_MS = 300, FIRST_LIE = 5, LAST_LIE = 19 };

static struct uvd_plugins *plugins;
static struct uvd_module *module;
static char error[UVD_PLUGIN_ERROR];

static void look_setup(void)
{
	plugins = uvd_plugins_new(NULL);
	ck_assert_ptr_nonnull(plugins);
}

static void look_teardown(void)
{
	uvd_module_put(module);
	uvd_plugins_free(plugins);
}

/* Allocation number `fails` fails (ld --wrap=uvd_zalloc); 0: none does. */
static unsigned int fails;
void *__real_uvd_zalloc(size_t size);
void *__wrap_uvd_zalloc(size_t size);

void *__wrap_uvd_zalloc(size_t size)
{
	return fails && !--fails ? NULL : __real_uvd_zalloc(size);
}

/* Root need not trust the folders of a build. */
static uid_t look_owner(void)
{
	return getuid() ?: 1;
}

static int look_at(const char *toy, const char *value, unsigned int limit_ms)
{
	const char *const values[] = { value, NULL };
	char path[4096];
	int err;

	snprintf(path, sizeof(path), TOYS "/%s.so", toy);
	uvd_module_put(module);
	module = uvd_module_new(plugins, &(struct uvd_plugin_request){ path, values }, NULL, error, &err);
	ck_assert_ptr_nonnull(module);
	module->fd = uvd_plugin_file_copy(path, look_owner(), error);
	ck_assert_msg(module->fd >= 0, "%s", error);
	return uvd_module_look(module, limit_ms, error);
}

static void look_no_child_is_left(void)
{
	ck_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

START_TEST(test_constructors_run_in_a_child_without_rights)
{
	char want[256];

	setenv("UVERBSD_TEST_LOOK", "untouched", 1);
	unlink("/tmp/uverbsd-test-look");
	ck_assert_msg(!look_at("look0", NULL, STUCK_MS), "%s", error);
	snprintf(want, sizeof(want),
		 "uid %d, kill EPERM, write EPERM, create EPERM, socket EPERM, fork EPERM, exec EPERM, fd 5 EBADF",
		 geteuid() ? (int)geteuid() : 65534);
	ck_assert_str_eq(module->plugin.description, want);
	ck_assert_str_eq(getenv("UVERBSD_TEST_LOOK"), "untouched");
	ck_assert(access("/tmp/uverbsd-test-look", F_OK));
	look_no_child_is_left();
}
END_TEST

START_TEST(test_facts_are_those_of_the_plugin)
{
	const struct uvd_persona *p;

	ck_assert_msg(!look_at("look0", "size=3", STUCK_MS), "%s", error);
	ck_assert_str_eq(module->plugin.name, "look");
	ck_assert_str_eq(module->plugin.version, "1.0");
	ck_assert_str_eq(module->plugin.options[0].help, "of the thing");
	ck_assert_str_eq(module->plugin.options[0].value, "red");
	ck_assert_str_eq(module->plugin.options[1].name, "size");
	ck_assert_ptr_null(module->plugin.options[1].value);
	ck_assert_ptr_null(module->plugin.options[2].name);
	p = module->plugin.personas[0];
	ck_assert_ptr_null(module->plugin.personas[2]);
	ck_assert_str_eq(p->name, "lookface");
	ck_assert_str_eq(p->ibdev_prefix, "look_");
	ck_assert_str_eq(p->modalias, "");
	ck_assert_str_eq(p->board_id, "board");
	ck_assert_str_eq(p->fw_ver, "1.2");
	ck_assert_str_eq(p->node_desc, "näher\u00a0©");
	ck_assert(p->driver_id == 9 && p->abi_version == 3 && p->vendor_id == 0xffffffff && p->vendor_part_id == 7);
	ck_assert(p->hw_ver == 8 && p->has_hw_rev && p->has_ip_gid && !p->queues);
	ck_assert(p->link_layer == IBV_LINK_LAYER_ETHERNET && p->unusable_caps == 0x80000001);
	ck_assert_str_eq(p->hw_counters[1].name, "TxPkts");
	ck_assert_uint_eq(p->hw_counters[1].counters, 6);
	ck_assert_ptr_null(p->hw_counters[2].name);
	/* The counters of all personas are in one piece of memory, which begins with the first one's. */
	ck_assert_uint_ge(malloc_usable_size((void *)p->hw_counters), 5 * sizeof(*p->hw_counters));
	p = module->plugin.personas[1];
	ck_assert_str_eq(p->name, "otherface");
	ck_assert_str_eq(p->hw_counters[0].name, "Drops");
	ck_assert_uint_eq(p->hw_counters[0].counters, 5);
	ck_assert_ptr_null(p->hw_counters[1].name);
}
END_TEST

START_TEST(test_facts_have_the_filters_with_their_options)
{
	const struct uvd_filter *f;

	ck_assert_msg(!look_at("look0", NULL, STUCK_MS), "%s", error);
	f = module->plugin.filters[0];
	ck_assert_ptr_null(module->plugin.filters[1]);
	ck_assert_str_eq(f->name, "lookglass");
	ck_assert_str_eq(f->description, "dim");
	ck_assert_str_eq(f->options[0].name, "at.most_now");
	ck_assert_str_eq(f->options[0].value, "3");
	ck_assert_ptr_null(f->options[1].name);
}
END_TEST

START_TEST(test_backend_without_code_can_map_queues_or_not)
{
	ck_assert_msg(!look_at("net", NULL, STUCK_MS), "%s", error);
	ck_assert_str_eq(module->plugin.backends[0]->name, "net");
	ck_assert_ptr_null(module->plugin.backends[0]->ring_doorbell);
	ck_assert_ptr_null(module->plugin.backends[0]->query_device);
}
END_TEST

START_TEST(test_what_the_child_refuses_is_refused_with_its_reason)
{
	ck_assert_int_eq(look_at("look0", "shape=round", STUCK_MS), -EINVAL);
	ck_assert_msg(strstr(error, "look0.so: no option `shape`; its options: colour, size"), "%s", error);
	ck_assert_int_eq(look_at("none", NULL, STUCK_MS), -ELIBBAD);
	ck_assert_msg(strstr(error, "none.so: "), "%s", error);
}
END_TEST

static const struct {
	const char *toy;
	unsigned int limit_ms;
	int err;
	const char *says;
} ends[] = {
	{ "look1", STUCK_MS, -ELIBBAD, "crashed with SIGSEGV" },
	{ "look2", SOON_MS, -ETIMEDOUT, "have not returned within 300 ms" },
	{ "look3", STUCK_MS, -ELIBBAD, "crashed with SIGKILL" },
	{ "look4", STUCK_MS, -ELIBBAD, "ended the process" },
};

START_TEST(test_constructors_that_do_not_return_are_told)
{
	ck_assert_int_eq(look_at(ends[_i].toy, NULL, ends[_i].limit_ms), ends[_i].err);
	ck_assert_msg(strstr(error, ends[_i].says) && strstr(error, ends[_i].toy), "%s", error);
	look_no_child_is_left();
}
END_TEST

START_TEST(test_constructors_that_tell_wrong_facts_are_refused)
{
	char toy[16];

	snprintf(toy, sizeof(toy), "look%d", _i);
	ck_assert_int_eq(look_at(toy, NULL, STUCK_MS), -EPROTO);
	ck_assert_msg(strstr(error, toy) && !strpbrk(error, "\n\033\177\302"), "%s", error);
	ck_assert_ptr_null(module->facts);
	look_no_child_is_left();
}
END_TEST

static void look_copy(const char *folder, const char *name, mode_t mode, uid_t owner)
{
	char command[2 * PATH_MAX], path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(command, sizeof(command), "cp " TOYS "/look0.so %s", path);
	ck_assert_int_eq(system(command), 0);
	ck_assert(!chown(path, owner, owner) && !chmod(path, mode));
}

/* The same by its path, for root. */
static void look_copy_fails(const char *folder, const char *name, const char *says)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ck_assert_int_eq(uvd_plugin_file_copy(path, 0, error), -EPERM);
	ck_assert_msg(strstr(error, says), "%s", error);
}

/* A debugger and /proc/PID/maps show this name. */
START_TEST(test_copy_has_the_name_of_the_file_without_its_folder)
{
	char path[64], name[64];
	int fd = uvd_plugin_file_copy(TOYS "/look0.so", look_owner(), error);
	ssize_t n;

	ck_assert_msg(fd >= 0, "%s", error);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	close(fd);
	ck_assert_int_gt(n, 0);
	name[n] = 0;
	ck_assert_str_eq(name, "/memfd:look0.so (deleted)");
}
END_TEST

START_TEST(test_file_of_a_folder_is_roots_alone_and_no_link)
{
	static const struct {
		const char *name;
		int err;
	} names[] = {
		{ "x/toy.so", -EINVAL }, { "../toy.so", -EINVAL }, { "..", -EINVAL },	     { "", -EINVAL },
		{ ".toy.so", -EINVAL },	 { "a b", -EINVAL },	   { "none.so", -ENOENT },   { "link.so", -ELOOP },
		{ "open.so", -EPERM },	 { "theirs.so", -EPERM },  { "folder.so", -EINVAL }, { "fifo.so", -EINVAL },
	};
	static const mode_t open_modes[] = { 0777, 0775, 0757 };
	char folder[] = "/run/uverbsd-test-XXXXXX", command[2 * PATH_MAX];
	int fd;

	if (getuid())
		SKIP("only root makes files of root");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	look_copy(folder, "toy.so", 0644, 0);
	look_copy(folder, "open.so", 0664, 0);
	look_copy(folder, "theirs.so", 0644, 65534);
	snprintf(command, sizeof(command), "cd %s && ln -s toy.so link.so && mkdir folder.so && mkfifo fifo.so",
		 folder);
	ck_assert_int_eq(system(command), 0);
	for (unsigned int i = 0; i < UVD_COUNT(names); i++)
		ck_assert_msg(uvd_plugin_file_copy_in(folder, names[i].name, error) == names[i].err, "%s: %s",
			      names[i].name, error);
	fd = uvd_plugin_file_copy_in(folder, "toy.so", error);
	ck_assert_msg(fd >= 0, "%s", error);
	ck_assert_msg(!uvd_plugin_elf_check("toy.so", fd, error), "%s", error);
	close(fd);
	for (unsigned int i = 0; i < UVD_COUNT(open_modes); i++) {
		ck_assert(!chmod(folder, open_modes[i]));
		ck_assert_msg(uvd_plugin_file_copy_in(folder, "toy.so", error) == -EPERM, "%04o", open_modes[i]);
		snprintf(command, sizeof(command), "may write to the folder %s (root's, mode %04o)", folder,
			 open_modes[i]);
		ck_assert_msg(strstr(error, command), "%s", error);
		look_copy_fails(folder, "toy.so", command);
	}
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* The broker looks for its engine process, and goes on after a file for which it had no memory. */
START_TEST(test_look_for_another_process_without_memory_is_enomem)
{
	const char *path = TOYS "/kv1.so";
	int copy = uvd_plugin_file_copy(path, look_owner(), error);

	ck_assert_msg(copy >= 0, "%s", error);
	fails = 1;
	ck_assert_int_eq(uvd_plugins_look_again(plugins, path, copy, STUCK_MS, error), -ENOMEM);
	ck_assert_msg(strstr(error, "kv1.so: ENOMEM"), "%s", error);
	ck_assert_msg(!uvd_plugins_look_again(plugins, path, copy, STUCK_MS, error), "%s", error);
	close(copy);
}
END_TEST

static void look_again_at(const char *toy)
{
	char path[PATH_MAX];
	int copy;

	snprintf(path, sizeof(path), TOYS "/%s.so", toy);
	copy = uvd_plugin_file_copy(path, look_owner(), error);
	ck_assert_msg(copy >= 0, "%s", error);
	ck_assert_msg(!uvd_plugins_look_again(plugins, path, copy, STUCK_MS, error), "%s", error);
	close(copy);
}

/* The broker learns that a plug-in was replaced from the names of the new one, which has those of personas, the filter or itself. */
START_TEST(test_plugin_with_a_name_of_another_one_replaces_it)
{
	static const char *const twins[] = { "twin0", "twin1", "twin2", "twin4" };
	const bool replaces = _i > 0;

	look_again_at("look0");
	look_again_at(twins[_i]);
	/* The other names of the first one are gone with it. */
	ck_assert_int_eq(uvd_plugins_filter_check(plugins, "lookglass", error), replaces && _i != 2 ? -EINVAL : 0);
	ck_assert_int_eq(!uvd_plugins_persona(plugins, "lookface"), replaces && _i != 1);
	look_again_at("look0");
	ck_assert_int_eq(!uvd_plugins_persona(plugins, "twinface"), replaces);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("look");

	tcase_set_timeout(t, 100);
	tcase_add_checked_fixture(t, look_setup, look_teardown);
	tcase_add_test(t, test_constructors_run_in_a_child_without_rights);
	tcase_add_test(t, test_facts_are_those_of_the_plugin);
	tcase_add_test(t, test_facts_have_the_filters_with_their_options);
	tcase_add_test(t, test_backend_without_code_can_map_queues_or_not);
	tcase_add_test(t, test_what_the_child_refuses_is_refused_with_its_reason);
	tcase_add_test(t, test_copy_has_the_name_of_the_file_without_its_folder);
	tcase_add_test(t, test_file_of_a_folder_is_roots_alone_and_no_link);
	tcase_add_test(t, test_look_for_another_process_without_memory_is_enomem);
	tcase_add_loop_test(t, test_plugin_with_a_name_of_another_one_replaces_it, 0, 4);
	tcase_add_loop_test(t, test_constructors_that_do_not_return_are_told, 0, UVD_COUNT(ends));
	tcase_add_loop_test(t, test_constructors_that_tell_wrong_facts_are_refused, FIRST_LIE, LAST_LIE + 1);
	return run_suite("look", t);
}
