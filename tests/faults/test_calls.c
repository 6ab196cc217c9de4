/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For every row of the tree, by every front, on a backend that has it (UVERBSD_LONG: on every one): the n-th
 * allocation, client copy, backend call or look-up in /proc fails, for n = 1 and up, until the call has no n-th one.
 * The call must return the fault's errno, and change nothing: the same objects and handles exist, none is locked, no
 * page is charged. The same call must then succeed. After the file is closed, nothing of it may be left.
 */
#include <fcntl.h>
#include <inttypes.h>
#include "faults.h"
#include "../suite.h"

static const struct call_group *const groups[] = { &calls_device, &calls_memory, &calls_cq, &calls_qp,
						   &calls_srq,	  &calls_xrc,	 &calls_wq, &calls_rare };
static const char *const backends[] = { "null", "soft" };

/* The fronts: two variants of write(), INVOKE_WRITE for write commands, and ioctl methods. */
enum front { WRITE, WRITE_FROM, INVOKE, METHOD, NUM_FRONTS };
static const char *const front_names[] = { "write()", "write(), read by us", "INVOKE_WRITE", "ioctl" };
static const char *const fault_names[] = { "allocation", "client copy", "backend call", "look into /proc" };

/* ---- one device, and one call on it ------------------------------------------------------------------------------ */

static void call_open(struct call *c, const char *backend)
{
	const char *unknown;

	memset(c, 0, sizeof(*c));
	c->async_fd = c->channel_fd = -1;
	harness_open_with(&c->h, backend, &fault_mem);
	c->h.call->caller.proc = &fault_proc;
	fault_proc_behind = &harness_root;
	unknown = filter_install(&c->h.ops);
	MUST(!unknown, "%s", unknown);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static const struct uvd_write_row *find_write(const struct uvd_tree *tree, const char *name)
{
	for (int ex = 0; ex < 2; ex++)
		for (unsigned int i = 0; i < tree->num_writes[ex]; i++)
			if (tree->writes[ex][i].row && !strcmp(tree->writes[ex][i].row->name, name))
				return tree->writes[ex][i].row;
	return NULL;
}

/* Calls fn for each method until it returns true. */
static bool each_method(const struct uvd_tree *tree,
			bool (*fn)(void *arg, uint16_t object, const struct uvd_method_row *row), void *arg)
{
	for (int ns = 0; ns < 2; ns++)
		for (unsigned int o = 0; o < tree->num_objects[ns]; o++) {
			const struct uvd_tree_object *object = &tree->objects[ns][o];

			for (int mns = 0; object->row && mns < 2; mns++)
				for (unsigned int m = 0; m < object->num_methods[mns]; m++)
					if (object->methods[mns][m].row &&
					    fn(arg, object->row->id, object->methods[mns][m].row))
						return true;
		}
	return false;
}

struct wanted {
	const char *name;
	uint16_t *object, *method;
};

static bool is_wanted(void *arg, uint16_t object, const struct uvd_method_row *row)
{
	struct wanted *wanted = arg;

	*wanted->object = object;
	*wanted->method = row->id;
	return !strcmp(row->name, wanted->name);
}

static bool find_method(const struct uvd_tree *tree, const char *name, uint16_t *object, uint16_t *method)
{
	struct wanted wanted = { .name = name, .object = object, .method = method };

	return each_method(tree, is_wanted, &wanted);
}

static void message(struct call *c, const struct uvd_write_row *row, struct uv_msg *msg)
{
	if (row->flags & UVD_WRITE_EX) {
		uv_msg_ex(msg, row->number | IB_USER_VERBS_CMD_FLAG_EXTENDED, c->in, c->in_len,
			  c->out_len ? c->out : NULL, c->out_len);
		return;
	}
	if (row->flags & UVD_WRITE_RESP)
		c->in[0] = (uintptr_t)c->out;
	uv_msg_plain(msg, row->number, c->in, c->in_len, c->out_len);
}

static int issue_write(struct call *c, const struct uvd_write_row *row, enum front front)
{
	static struct uv_msg msg;
	long ret;

	message(c, row, &msg);
	if (front == INVOKE)
		return harness_invoke(&c->h, msg.hdr.command, c->in, c->in_len, c->out_len ? c->out : NULL, c->out_len);
	if (front == WRITE)
		return harness_bytes(&c->h, msg.bytes, msg.len);
	ret = harness_finish(&c->h, c->h.call, uvd_dispatch_write_from(c->h.call, (uintptr_t)msg.bytes, msg.len));
	return ret < 0 ? ret : 0;
}

/* Issues the call. Leaves it unchanged, so that it can be issued again. */
static int issue(struct call *c, const char *row, enum front front)
{
	struct uv_tree tree = c->tree;
	uint16_t object, method;
	int ret, fd;

	if (front != METHOD) {
		ret = issue_write(c, find_write(c->h.dev->trees->plain, row), front);
	} else {
		find_method(c->h.dev->trees->plain, row, &object, &method);
		ret = harness_ioctl(&c->h, object, method, &tree);
	}
	fd = c->h.granted;
	close_fd(&fd);
	return ret;
}

/* ---- the stock of objects ---------------------------------------------------------------------------------------- */

struct stock {
	int in_backend[NUM_THINGS];
	unsigned int objects, event_files;
	bool has_context;
	uint64_t pages;
};

static void add_pages(void *arg, pid_t tgid, uint64_t pages)
{
	*(uint64_t *)arg += pages;
}

/* Counts objects, event files and charged pages. Checks that no handle is lost, and no object locked or begun. */
static struct stock take_stock(struct call *c)
{
	struct stock s = { .has_context = atomic_load(&c->h.file->context) };
	unsigned int handles = 0;
	struct uvd_uobject *uobj;

	memcpy(s.in_backend, filter_live, sizeof(s.in_backend));
	uvd_mm_table_each(c->h.engine.mms, add_pages, &s.pages);
	list_for_each_entry(uobj, &c->h.file->objects, of_file) {
		MUST(uobj->usecnt == 0, "handle %u is locked: %d", uobj->id, uobj->usecnt);
		MUST(uobj->ref == 1, "handle %u has %d references", uobj->id, uobj->ref);
		s.objects++;
		if (uobj->row->cls == UVD_CLASS_FD)
			s.event_files++;
		else if (uvd_handles_get(&c->h.file->handles, uobj->id) == uobj)
			handles++;
	}
	MUST(handles == s.objects - s.event_files, "an object without a handle");
	MUST(c->h.file->handles.count == handles, "a handle without an object");
	MUST(c->h.file->num_event_files == s.event_files, "a place of an event file is lost");
	MUST(!atomic_load(&c->h.file->destroy_lock.count), "the destroy lock is held");
	return s;
}

static bool same(const struct stock *a, const struct stock *b)
{
	return !memcmp(a->in_backend, b->in_backend, sizeof(a->in_backend)) && a->objects == b->objects &&
	       a->event_files == b->event_files && a->has_context == b->has_context && a->pages == b->pages;
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void call_close(struct call *c)
{
	uint64_t pages = 0;

	close_fd(&c->async_fd);
	close_fd(&c->channel_fd);
	harness_close_file(&c->h);
	for (int thing = 0; thing < NUM_THINGS; thing++)
		MUST(!filter_live[thing], "%d things of kind %d are left", filter_live[thing], thing);
	uvd_mm_table_each(c->h.engine.mms, add_pages, &pages);
	MUST(!pages, "%" PRIu64 " pages are charged", pages);
	harness_close(&c->h);
}

/* ---- one fault --------------------------------------------------------------------------------------------------- */

static bool right_errno(const struct call_entry *entry, enum fault fault, int ret)
{
	switch (fault) {
	case FAULT_ALLOC:
		return ret == -ENOMEM;
	case FAULT_COPY:
		return ret == -EFAULT;
	case FAULT_BACKEND:
		return ret == -BACKEND_ERRNO || entry->tolerant;
	default:
		/* If /proc cannot be read, a range, fd or capability counts as bad, and a process as exited. */
		return ret == -PROC_ERRNO || ret == -EFAULT || ret == -EBADF || ret == -EPERM || ret == -ESRCH;
	}
}

/* Returns false if the call has no n-th operation of this kind. */
static bool with_fault(const struct call_entry *entry, const char *backend, enum front front, enum fault fault,
		       unsigned int n, bool onwards)
{
	const long blocks = fault_blocks();
	const int fds = open_fds();
	static struct call c;
	struct stock before, after;
	bool fired;
	int ret;

	call_open(&c, backend);
	entry->prepare(&c);
	before = take_stock(&c);
	fault_arm(fault, n, onwards);
	ret = issue(&c, entry->row, front);
	fired = fault_disarm();
	after = take_stock(&c);
	if (!fired) {
		MUST(ret == entry->result, "%s by %s on %s: %d", entry->row, front_names[front], backend, ret);
	} else if (ret && ret != entry->result) {
		const char *what = fault_names[fault];
		bool gone = (entry->destroys && fault == FAULT_COPY && !same(&before, &after)) ||
			    (entry->forgets && fault == FAULT_BACKEND);

		MUST(right_errno(entry, fault, ret), "%s by %s on %s, %s %u fails: %d", entry->row, front_names[front],
		     backend, what, n, ret);
		MUST(gone || same(&before, &after), "%s by %s on %s, %s %u fails: something is left or lost",
		     entry->row, front_names[front], backend, what, n);
		ret = issue(&c, entry->row, front);
		MUST(gone ? ret < 0 : ret == entry->result, "%s by %s on %s, after %s %u has failed: %d", entry->row,
		     front_names[front], backend, what, n, ret);
	} else {
		/* The call succeeded in spite of the fault. */
		MUST(fault != FAULT_BACKEND || entry->tolerant, "%s on %s takes no notice of backend call %u",
		     entry->row, backend, n);
	}
	call_close(&c);
	MUST(fault_blocks() == blocks, "%s by %s on %s: %ld blocks are left, %s %u", entry->row, front_names[front],
	     backend, fault_blocks() - blocks, fault_names[fault], n);
	MUST(open_fds() == fds, "%s: %d fds are left", entry->row, open_fds() - fds);
	return fired;
}

/* ---- all faults -------------------------------------------------------------------------------------------------- */

static const struct call_entry *entry_at(unsigned int i)
{
	for (unsigned int g = 0; g < UVD_COUNT(groups); g++) {
		if (i < groups[g]->num)
			return &groups[g]->entries[i];
		i -= groups[g]->num;
	}
	return NULL;
}

static unsigned int num_entries(void)
{
	unsigned int n = 0;

	while (entry_at(n))
		n++;
	return n;
}

static bool has_row(const char *backend, const char *name, bool *is_write)
{
	uint16_t object, method;
	static struct call c;
	bool has;

	call_open(&c, backend);
	*is_write = find_write(c.h.dev->trees->plain, name);
	has = *is_write || find_method(c.h.dev->trees->plain, name, &object, &method);
	call_close(&c);
	return has;
}

static void every_fault(const struct call_entry *entry, const char *backend, enum front front)
{
	for (enum fault fault = 0; fault < FAULT_KINDS; fault++) {
		/* Never all later backend calls: the backend would refuse the cleanup, too, which handle-10 tests. */
		for (int onwards = 0; onwards < (fault == FAULT_BACKEND ? 1 : 2); onwards++) {
			/* After the n-th come the few operations of a cleanup: without UVERBSD_LONG all fail, or one does. */
			const unsigned int most = onwards && !suite_is_long() ? 1 : 1000;
			unsigned int n = 1;

			while (n <= most && with_fault(entry, backend, front, fault, n, onwards))
				n++;
			MUST(n <= 1000, "no end");
		}
	}
}

START_TEST(test_call_that_meets_a_fault_leaves_nothing_and_loses_nothing)
{
	const struct call_entry *entry = entry_at(_i);
	bool is_write, known = false;

	/* One of the two is enough for most runs: above the backend all is the same. So is a write() that we read. */
	for (unsigned int b = UVD_COUNT(backends); b-- && (!known || suite_is_long());) {
		if ((entry->only && strcmp(entry->only, backends[b])) || !has_row(backends[b], entry->row, &is_write))
			continue;
		known = true;
		for (enum front f = 0; f < NUM_FRONTS; f++)
			if (is_write != (f == METHOD) && (f != WRITE_FROM || suite_is_long()))
				every_fault(entry, backends[b], f);
	}
	MUST(known, "no backend has %s", entry->row);
}
END_TEST

static void assert_entry(const char *row)
{
	for (unsigned int i = 0; entry_at(i); i++)
		if (!strcmp(entry_at(i)->row, row))
			return;
	ck_abort_msg("%s has no entry in tests/faults/calls_*.c: see faults.h", row);
}

static bool has_entry(void *arg, uint16_t object, const struct uvd_method_row *row)
{
	assert_entry(row->name);
	return false;
}

START_TEST(test_every_row_has_a_call)
{
	const struct uvd_tree *tree;
	static struct call c;

	call_open(&c, backends[_i]);
	tree = c.h.dev->trees->plain;
	for (int ex = 0; ex < 2; ex++)
		for (unsigned int i = 0; i < tree->num_writes[ex]; i++)
			if (tree->writes[ex][i].row)
				assert_entry(tree->writes[ex][i].row->name);
	each_method(tree, has_entry, NULL);
	call_close(&c);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("calls");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_every_row_has_a_call, 0, UVD_COUNT(backends));
	tcase_add_loop_test(t, test_call_that_meets_a_fault_leaves_nothing_and_loses_nothing, 0, num_entries());
	return run_suite("faults: calls", t);
}
