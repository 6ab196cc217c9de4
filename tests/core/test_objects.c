/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lifetime of objects and open files: locking, cleanup, grants, event files, limits. */
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bed.h"
#include "../suite.h"
#include "client/client.h"

static void close_file(void)
{
	uvd_file_close(bed.call.file);
	bed.call.file = NULL;
}

/* ---- locking ----------------------------------------------------------------------------------------------------- */

START_TEST(test_handle_05_try_lock_conflicts_are_ebusy)
{
	struct uvd_uobject *a, *b, *d;
	int err;

	toy_new();
	a = toy_get(0, UVD_UOBJ_READ, &err);
	b = toy_get(0, UVD_UOBJ_READ, &err);
	ck_assert_int_eq(err, 0); /* readers share */
	toy_get(0, UVD_UOBJ_WRITE, &err);
	ck_assert_int_eq(err, -EBUSY);
	ck_assert_int_eq(toy_destroy(0), -EBUSY);
	uvd_uobject_put(a, UVD_UOBJ_READ);
	ck_assert_int_eq(toy_destroy(0), -EBUSY);
	uvd_uobject_put(b, UVD_UOBJ_READ);
	a = toy_get(0, UVD_UOBJ_WRITE, &err);
	ck_assert_int_eq(err, 0);
	toy_get(0, UVD_UOBJ_READ, &err);
	ck_assert_int_eq(err, -EBUSY);
	ck_assert_int_eq(toy_destroy(0), -EBUSY);
	/* A look-up for destruction does not lock. */
	d = toy_get(0, UVD_UOBJ_DESTROY, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(uvd_uobject_destroy(d), -EBUSY);
	uvd_uobject_put(a, UVD_UOBJ_WRITE);
	ck_assert_int_eq(uvd_uobject_destroy(d), 0);
	/* A second destruction by the same look-up fails with EBUSY. The reference keeps the memory valid. */
	ck_assert_int_eq(uvd_uobject_destroy(d), -EBUSY);
	uvd_uobject_put(d, UVD_UOBJ_DESTROY);
	toy_get(0, UVD_UOBJ_READ, &err);
	ck_assert_int_eq(err, -ENOENT);
}
END_TEST

START_TEST(test_handle_02_an_uncommitted_handle_is_enoent)
{
	struct uvd_uobject *uobj;
	int err;

	ck_assert_int_eq(uvd_uobject_begin(bed.call.file, uvd_tree_object(bed.trees.plain, OBJ_TOY)->row, &uobj), 0);
	ck_assert_uint_eq(uobj->id, 0);
	toy_get(0, UVD_UOBJ_DESTROY, &err);
	ck_assert_int_eq(err, -ENOENT);
	ck_assert_int_eq(toy_new(), 1);
	uvd_uobject_abort(uobj, false);
	ck_assert_int_eq(toy_new(), 0);
}
END_TEST

START_TEST(test_handle_04_another_type_is_einval)
{
	struct uvd_uobject *uobj;

	toy_new();
	ck_assert_int_eq(uvd_uobject_get(bed.call.file, uvd_tree_object(bed.trees.plain, OBJ_OTHER)->row, 0,
					 UVD_UOBJ_READ, &uobj),
			 -EINVAL);
	ck_assert_int_eq(uvd_uobject_get(bed.call.file, NULL, 0, UVD_UOBJ_READ, &uobj), 0);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
}
END_TEST

START_TEST(test_handle_07_after_removal_everything_but_destroy_is_eio)
{
	int err;

	toy_new();
	atomic_store(&bed.dev.gone, true);
	toy_get(0, UVD_UOBJ_READ, &err);
	ck_assert_int_eq(err, -EIO);
	ck_assert_int_eq(toy_new(), -EIO);
	ck_assert_int_eq(toy_destroy(0), 0);
}
END_TEST

/*
 * Several threads create, use and destroy the same few objects. A thread that loses a race gets EBUSY or ENOENT, never
 * a wrong object. At the end, as many objects were destroyed as were committed.
 */
enum { THREADS = 4, ROUNDS = 20000 };

static atomic_int made, ended, busy;

static int racing_end(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	ck_assert_int_eq(atomic_load(&uobj->usecnt), -1);
	ck_assert_ptr_nonnull(uobj->object);
	atomic_fetch_add(&ended, 1);
	return 0;
}

static const struct uvd_object_row racing = {
	.name = "racing",
	.id = 60,
	.cls = UVD_CLASS_IDR,
	.destroy = racing_end,
};

static void *race(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	struct uvd_uobject *uobj;

	for (int i = 0; i < ROUNDS; i++) {
		enum uvd_uobj_access access = rand_r(&seed) % 3;
		int err;

		if (rand_r(&seed) % 3 == 0 && !uvd_uobject_begin(bed.call.file, &racing, &uobj)) {
			uobj->object = &made;
			if (rand_r(&seed) % 4) {
				atomic_fetch_add(&made, 1);
				uvd_uobject_commit(uobj);
			} else {
				uvd_uobject_abort(uobj, false);
			}
			continue;
		}
		access = access == 2 ? UVD_UOBJ_DESTROY : access ? UVD_UOBJ_WRITE : UVD_UOBJ_READ;
		err = uvd_uobject_get(bed.call.file, &racing, rand_r(&seed) % 4, access, &uobj);
		if (err) {
			ck_assert_msg(err == -EBUSY || err == -ENOENT, "%d", err);
			continue;
		}
		if (access == UVD_UOBJ_DESTROY)
			atomic_fetch_add(&busy, uvd_uobject_destroy(uobj) == -EBUSY);
		else
			ck_assert_ptr_eq(uobj->object, &made);
		uvd_uobject_put(uobj, access);
	}
	return NULL;
}

START_TEST(test_threads_on_the_same_handles_agree)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, race, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close_file();
	ck_assert_int_gt(atomic_load(&made), 100);
	ck_assert_int_eq(atomic_load(&made), atomic_load(&ended));
}
END_TEST

static atomic_int readers;
static atomic_bool last_reader;

static void *readers_leave(void *uobj)
{
	for (;;) {
		bool last = atomic_load(&last_reader);

		while (atomic_load(&readers)) {
			uvd_uobject_put(uobj, UVD_UOBJ_READ);
			atomic_fetch_sub(&readers, 1);
		}
		if (last)
			return NULL;
	}
}

/* One thread locks while another unlocks, so that an update of the counter races with another. */
START_TEST(test_handle_05_readers_of_one_object_never_keep_each_other_out)
{
	struct uvd_uobject *uobj;
	int err, kept_out = 0;
	pthread_t thread;

	toy_new();
	uobj = toy_get(0, UVD_UOBJ_READ, &err);
	pthread_create(&thread, NULL, readers_leave, uobj);
	/* No assertions in this loop: under ThreadSanitizer a million of them can take over a minute. */
	for (int i = 0; i < 1000000; i++) {
		kept_out += toy_get(0, UVD_UOBJ_READ, &err) != uobj;
		atomic_fetch_add(&readers, 1);
	}
	ck_assert_int_eq(kept_out, 0);
	atomic_store(&last_reader, true);
	pthread_join(thread, NULL);
	toy_get(0, UVD_UOBJ_WRITE, &err);
	ck_assert_int_eq(err, -EBUSY);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	uobj = toy_get(0, UVD_UOBJ_WRITE, &err);
	ck_assert_int_eq(err, 0);
	uvd_uobject_put(uobj, UVD_UOBJ_WRITE);
	ck_assert_int_eq(toy_destroy(0), 0);
}
END_TEST

/* ---- the end of a file ------------------------------------------------------------------------------------------- */

START_TEST(test_cleanup_01_newest_first_and_those_that_refuse_in_further_passes)
{
	toy_new(); /* 0 */
	bed.refuse = 2;
	toy_new(); /* 1: destroyed in the third pass */
	bed.refuse = 0;
	toy_new(); /* 2 */
	bed.refuse = 1;
	toy_new(); /* 3: destroyed in the second pass */
	bed.refuse = 0;
	toy_destroy(2);
	ck_assert_int_eq(toy_new(), 2); /* tag 4 with handle 2: cleanup goes by age, not by handle */
	bed.num_destroyed = 0;
	close_file();
	ck_assert_int_eq(bed.num_destroyed, 4);
	ck_assert_int_eq(bed.destroyed[0], 4);
	ck_assert_int_eq(bed.destroyed[1], 0);
	ck_assert_int_eq(bed.destroyed[2], 3);
	ck_assert_int_eq(bed.destroyed[3], 1);
	ck_assert_int_eq(bed.reasons[3], UVD_REMOVE_CLOSE);
}
END_TEST

START_TEST(test_cleanup_02_without_progress_all_is_dropped)
{
	bed.refuse = 1000000;
	toy_new();
	toy_new();
	close_file();
	ck_assert_int_eq(bed.num_destroyed, 2);
	ck_assert_int_eq(bed.reasons[0], UVD_REMOVE_DRIVER_FAILURE);
	ck_assert_int_eq(bed.contexts, 0);
	ck_assert_uint_eq(bed.dev.num_files, 0);
}
END_TEST

START_TEST(test_files_have_handles_of_their_own)
{
	struct uvd_file *first = bed.call.file;
	int err;

	toy_new();
	bed.call.file = uvd_file_open(&bed.dev, NULL, &err);
	ck_assert_int_eq(toy_destroy(0), -ENOENT);
	uvd_file_close(bed.call.file);
	bed.call.file = first;
	ck_assert_int_eq(toy_destroy(0), 0);
	atomic_store(&bed.dev.gone, true);
	ck_assert_ptr_null(uvd_file_open(&bed.dev, NULL, &err));
	ck_assert_int_eq(err, -EIO);
}
END_TEST

/* ---- calls that the transport has interrupted -------------------------------------------------------------------- */

static bool claimed;

static bool claim(struct uvd_caller *c)
{
	return claimed;
}

static long use(uint32_t toy)
{
	uint32_t cmd[2] = { toy };

	return write_plain(W_USE, cmd, sizeof(cmd), 0);
}

START_TEST(test_call_that_was_let_go_is_eintr_and_commits_nothing)
{
	int err;

	bed.call.caller.claim = claim;
	ck_assert_int_eq(toy_new(), -EINTR);
	ck_assert_ptr_null(toy_get(0, UVD_UOBJ_READ, &err));
	ck_assert_int_eq(bed.num_destroyed, 1);
	claimed = true;
	ck_assert_int_eq(toy_new(), 0);
}
END_TEST

START_TEST(test_call_that_was_let_go_takes_no_further_step)
{
	int64_t toy = toy_new();
	int ran = bed.ran;

	atomic_store(&bed.call.caller.let_go, true);
	ck_assert_int_eq(use(toy), -EINTR);
	ck_assert_int_eq(toy_new(), -EINTR);
	ck_assert_int_eq(toy_destroy(toy), -EINTR);
	ck_assert_int_eq(bed.ran, ran);
	atomic_store(&bed.call.caller.let_go, false);
	ck_assert_int_ge(use(toy), 0);
}
END_TEST

/* ---- grants ------------------------------------------------------------------------------------------------------ */

static long channel_by_write(void *resp)
{
	uint64_t cmd = (uintptr_t)resp;

	return write_plain(W_CHANNEL, &cmd, 8, 4);
}

START_TEST(test_a_granted_fd_is_written_and_its_object_committed)
{
	struct {
		int32_t fd, guard;
	} resp = { 1, 2 };

	ck_assert_int_eq(channel_by_write(&resp), 16);
	ck_assert_ptr_nonnull(bed.call.grant.uobj);
	ck_assert_ptr_nonnull(bed.call.grant.file);
	ck_assert_ptr_null(bed.call.file->fd_objects);
	ck_assert_int_eq(uvd_call_granted(&bed.call, 33), 16);
	ck_assert_int_eq(resp.fd, 33);
	ck_assert_int_eq(resp.guard, 2);
	ck_assert_ptr_nonnull(bed.call.file->fd_objects);
	ck_assert_uint_eq(bed.call.file->num_event_files, 1);
}
END_TEST

START_TEST(test_a_grant_that_fails_leaves_nothing)
{
	int32_t fd = 1;

	ck_assert_int_eq(channel_by_write(&fd), 16);
	ck_assert_int_eq(uvd_call_granted(&bed.call, -EMFILE), -EMFILE);
	ck_assert_int_eq(channel_by_write(&fd), 16);
	ck_assert_int_eq(uvd_call_granted(&bed.call, -EPERM), -EOPNOTSUPP);
	ck_assert_int_eq(channel_by_write(&fd), 16);
	bed.hole = (uintptr_t)&fd;
	bed.hole_len = 4;
	ck_assert_int_eq(uvd_call_granted(&bed.call, 5), -EFAULT);
	ck_assert_int_eq(fd, 1);
	ck_assert_uint_eq(bed.call.file->num_event_files, 0);
	ck_assert(list_empty(&bed.call.file->objects));
}
END_TEST

START_TEST(test_an_fd_attribute_gets_its_number_after_the_grant)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_CHANNEL, M_CHANNEL_NEW);
	tree_attr(&t, A_TOY, 0x1234, 0);
	ck_assert_int_eq(tree_send(&t), 0);
	ck_assert_uint_eq(t.hdr.attrs[0].data, 0x1234);
	ck_assert_ptr_nonnull(bed.call.grant.uobj);
	ck_assert_int_eq(uvd_call_granted(&bed.call, 44), 0);
	ck_assert_uint_eq(t.hdr.attrs[0].data, 44);
}
END_TEST

/* A transport may be unable to close a granted fd in the client, so the core checks the attribute before the grant. */
START_TEST(test_an_fd_attribute_that_cannot_be_written_is_efault_before_the_grant)
{
	struct uv_tree t;

	tree_begin(&t, OBJ_CHANNEL, M_CHANNEL_NEW);
	tree_attr(&t, A_TOY, 0x1234, 0);
	bed.mem.read = uvd_mem_self.read; /* reads of the hole succeed, writes fail */
	bed.hole = (uintptr_t)&t.hdr.attrs[0].data;
	bed.hole_len = 8;
	ck_assert_int_eq(tree_send(&t), -EFAULT);
	ck_assert_ptr_null(bed.call.grant.uobj);
	ck_assert_uint_eq(bed.call.file->num_event_files, 0);
}
END_TEST

START_TEST(test_get_context_publishes_with_its_grant_and_falls_back)
{
	int32_t resp[2] = { 0 };
	uint64_t cmd = (uintptr_t)resp;

	ck_assert_int_eq(write_plain(W_CONTEXT, &cmd, 8, 8), 16);
	ck_assert_ptr_null(atomic_load(&bed.call.file->context));
	ck_assert_int_eq(uvd_call_granted(&bed.call, -EPERM), 16);
	ck_assert_int_eq(resp[0], -2);
	ck_assert_int_eq(resp[1], 0x78);
	ck_assert_ptr_nonnull(atomic_load(&bed.call.file->context));
	ck_assert_ptr_null(bed.call.file->default_async);
	ck_assert_uint_eq(bed.call.file->num_event_files, 0);
	ck_assert_int_eq(toy_new(), 0);
}
END_TEST

START_TEST(test_context_03_the_second_get_context_is_einval_and_has_answered)
{
	int32_t resp[2] = { 0 };
	uint64_t cmd = (uintptr_t)resp;
	struct uvd_context *context;

	write_plain(W_CONTEXT, &cmd, 8, 8);
	ck_assert_int_eq(uvd_call_granted(&bed.call, 9), 16);
	ck_assert_ptr_nonnull(bed.call.file->default_async);
	context = atomic_load(&bed.call.file->context);
	resp[1] = 0;
	ck_assert_int_eq(write_plain(W_CONTEXT, &cmd, 8, 8), -EINVAL);
	ck_assert_ptr_null(bed.call.grant.uobj);
	ck_assert_int_eq(resp[1], 0x78);
	ck_assert_int_eq(bed.contexts, 1);
	ck_assert_ptr_eq(atomic_load(&bed.call.file->context), context);
}
END_TEST

START_TEST(test_get_context_that_loses_the_race_during_its_grant_is_einval)
{
	static struct uvd_call second;
	int32_t resp[2] = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint64_t response;
	} cmd = { { W_CONTEXT, 4, 2 }, (uintptr_t)resp };

	second.file = bed.call.file;
	second.caller = bed.call.caller;
	ck_assert_int_eq(uvd_dispatch_write(&bed.call, &cmd, 16), 16);
	ck_assert_int_eq(uvd_dispatch_write(&second, &cmd, 16), 16);
	ck_assert_int_eq(uvd_call_granted(&second, 5), 16);
	ck_assert_int_eq(uvd_call_granted(&bed.call, 6), -EINVAL);
	ck_assert_int_eq(bed.contexts, 1);
	ck_assert_uint_eq(bed.call.file->num_event_files, 1);
}
END_TEST

START_TEST(test_get_context_whose_answer_faults_can_be_repeated)
{
	int32_t resp[2] = { 0 };
	uint64_t cmd = (uintptr_t)resp;

	bed.hole = (uintptr_t)resp;
	bed.hole_len = 8;
	ck_assert_int_eq(write_plain(W_CONTEXT, &cmd, 8, 8), -EFAULT);
	ck_assert_int_eq(bed.contexts, 0);
	bed.hole_len = 0;
	ck_assert_int_eq(write_plain(W_CONTEXT, &cmd, 8, 8), 16);
	ck_assert_int_eq(uvd_call_granted(&bed.call, 6), 16);
}
END_TEST

/* ---- event files ------------------------------------------------------------------------------------------------- */

/* Creates a channel. Returns the client's end, an fd of this process. */
static int channel_new(void)
{
	int32_t number;
	int fd;

	ck_assert_int_eq(channel_by_write(&number), 16);
	fd = uvd_event_file_open(bed.call.grant.file);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(uvd_call_granted(&bed.call, fd), 16);
	ck_assert_int_eq(number, fd);
	return fd;
}

static int get_fd(int fd, uint16_t object)
{
	struct uvd_uobject *uobj;
	int err = uvd_uobject_get_fd(bed.call.file, &bed.call.caller, uvd_tree_object(bed.trees.plain, object)->row, fd,
				     &uobj);

	if (!err)
		uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return err;
}

START_TEST(test_handle_06_only_an_event_file_of_this_file_and_type_is_found)
{
	struct uvd_file *file = bed.call.file, *other;
	int fd = channel_new(), plain = open("/dev/null", O_RDONLY), dup_fd = dup(fd), err;

	ck_assert_int_eq(get_fd(fd, OBJ_CHANNEL), 0);
	ck_assert_int_eq(get_fd(dup_fd, OBJ_CHANNEL), 0);
	ck_assert_int_eq(get_fd(fd, UVERBS_OBJECT_ASYNC_EVENT), -EBADF);
	ck_assert_int_eq(get_fd(plain, OBJ_CHANNEL), -EBADF);
	ck_assert_int_eq(get_fd(999, OBJ_CHANNEL), -EBADF);
	ck_assert_int_eq(get_fd(-1, OBJ_CHANNEL), -EBADF);
	other = uvd_file_open(&bed.dev, NULL, &err);
	bed.call.file = other;
	ck_assert_int_eq(get_fd(fd, OBJ_CHANNEL), -EBADF);
	uvd_file_close(other);
	bed.call.file = file;
	close(fd);
	close(plain);
	close(dup_fd);
}
END_TEST

START_TEST(test_event_files_that_no_one_holds_are_collected)
{
	int keep = channel_new();
	pid_t holder = fork();

	/* fds of this process do not count as use, because it is the engine. So a child keeps the end open. */
	if (!holder)
		for (;;)
			pause();
	for (int i = 0; i < 200; i++) {
		close(channel_new());
		ck_assert_uint_le(bed.call.file->num_event_files, 66);
	}
	ck_assert_int_eq(get_fd(keep, OBJ_CHANNEL), 0);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	close(keep);
}
END_TEST

static int answer_of_look; /* of the transport's look at all processes, which finds no use */

static int transport_looks(struct uvd_engine *engine, const uint64_t *inos, unsigned int num, bool *used,
			   uint64_t *cpu_ns)
{
	for (unsigned int i = 0; i < num; i++)
		used[i] = false;
	return answer_of_look;
}

/* Nobody knows then whether a client still uses its event file. */
START_TEST(test_event_files_stay_if_the_transport_cannot_look)
{
	bed.dev.engine->sockets_in_use = transport_looks;
	answer_of_look = -EAGAIN;
	for (int i = 0; i < 200; i++)
		close(channel_new());
	ck_assert_uint_eq(bed.call.file->num_event_files, 200);
	answer_of_look = 0;
	for (int i = 0; i < 64; i++)
		close(channel_new());
	ck_assert_uint_le(bed.call.file->num_event_files, 66);
	bed.dev.engine->sockets_in_use = NULL;
}
END_TEST

/*
 * The next test begins UVD_MAX_EVENT_FILES objects, each with a read lock, in one thread: more locks than
 * ThreadSanitizer's deadlock detector supports.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "detect_deadlocks=0";
}

START_TEST(test_event_files_have_a_limit)
{
	static struct uvd_uobject *uobj[UVD_MAX_EVENT_FILES], *one_more;
	const struct uvd_object_row *row = uvd_tree_object(bed.trees.plain, OBJ_CHANNEL)->row;

	for (unsigned int i = 0; i < UVD_MAX_EVENT_FILES; i++)
		ck_assert_int_eq(uvd_uobject_begin(bed.call.file, row, &uobj[i]), 0);
	ck_assert_int_eq(uvd_uobject_begin(bed.call.file, row, &one_more), -EMFILE);
	uvd_uobject_abort(uobj[0], false);
	ck_assert_int_eq(uvd_uobject_begin(bed.call.file, row, &uobj[0]), 0);
	for (unsigned int i = 0; i < UVD_MAX_EVENT_FILES; i++)
		uvd_uobject_abort(uobj[i], false);
}
END_TEST

START_TEST(test_port_events_reach_every_asynchronous_event_file)
{
	struct ib_uverbs_async_event_desc event;
	int32_t resp[2] = { 0 };
	uint64_t cmd = (uintptr_t)resp;
	int fd;

	write_plain(W_CONTEXT, &cmd, 8, 8);
	fd = uvd_event_file_open(bed.call.grant.file);
	ck_assert_int_eq(uvd_call_granted(&bed.call, fd), 16);
	uvd_device_event(&bed.dev.ib, IBV_EVENT_PORT_ERR, 1);
	ck_assert_int_eq(read(fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 1);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_PORT_ERR);
	/* An event file that was hung up does not stop the delivery of events. */
	uvd_event_file_hang_up(bed.call.file->default_async);
	uvd_device_event(&bed.dev.ib, IBV_EVENT_PORT_ACTIVE, 1);
	ck_assert_int_eq(read(fd, &event, sizeof(event)), 0);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("objects");
	TCase *tc = tcase_create("all"), *early = tcase_create("without context");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, bed_setup, bed_teardown);
	tcase_add_test(tc, test_handle_05_try_lock_conflicts_are_ebusy);
	tcase_add_test(tc, test_handle_02_an_uncommitted_handle_is_enoent);
	tcase_add_test(tc, test_handle_04_another_type_is_einval);
	tcase_add_test(tc, test_handle_07_after_removal_everything_but_destroy_is_eio);
	tcase_add_test(tc, test_threads_on_the_same_handles_agree);
	tcase_add_test(tc, test_handle_05_readers_of_one_object_never_keep_each_other_out);
	tcase_add_test(tc, test_cleanup_01_newest_first_and_those_that_refuse_in_further_passes);
	tcase_add_test(tc, test_cleanup_02_without_progress_all_is_dropped);
	tcase_add_test(tc, test_files_have_handles_of_their_own);
	tcase_add_test(tc, test_call_that_was_let_go_is_eintr_and_commits_nothing);
	tcase_add_test(tc, test_call_that_was_let_go_takes_no_further_step);
	tcase_add_test(tc, test_a_granted_fd_is_written_and_its_object_committed);
	tcase_add_test(tc, test_a_grant_that_fails_leaves_nothing);
	tcase_add_test(tc, test_an_fd_attribute_gets_its_number_after_the_grant);
	tcase_add_test(tc, test_an_fd_attribute_that_cannot_be_written_is_efault_before_the_grant);
	tcase_add_test(tc, test_handle_06_only_an_event_file_of_this_file_and_type_is_found);
	tcase_add_test(tc, test_event_files_that_no_one_holds_are_collected);
	tcase_add_test(tc, test_event_files_stay_if_the_transport_cannot_look);
	tcase_add_test(tc, test_event_files_have_a_limit);
	suite_add_tcase(s, tc);
	tcase_set_timeout(early, 60);
	tcase_add_checked_fixture(early, bed_setup_without_context, bed_teardown);
	tcase_add_test(early, test_get_context_publishes_with_its_grant_and_falls_back);
	tcase_add_test(early, test_context_03_the_second_get_context_is_einval_and_has_answered);
	tcase_add_test(early, test_get_context_that_loses_the_race_during_its_grant_is_einval);
	tcase_add_test(early, test_get_context_whose_answer_faults_can_be_repeated);
	tcase_add_test(early, test_port_events_reach_every_asynchronous_event_file);
	suite_add_tcase(s, early);
	return run_cases(s);
}
