/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs a program on one node in a child process: what it does to memory and fds, or a crash, stays in the child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emit.h"
#include "run.h"

enum {
	PATIENCE = 60, /* seconds */
	NODE_FD = 3, /* the same in every child, so that the numbers of new fds can be compared */
	LOW_FDS = 40, /* under `uverbsctl run` a node's fd has a greater number, and write() works only there */
};

static int node_fd; /* of the child */

struct uvd_prog_run *uvd_prog_run_new(const char *node, int cpu)
{
	struct uvd_prog_run *run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int driver;

	if (run == MAP_FAILED)
		return NULL;
	run->node = node;
	run->cpu = cpu;
	run->patience = PATIENCE;
	driver = uvd_prog_find_driver(node);
	if (driver < 0) {
		int err = errno;

		munmap(run, sizeof(*run));
		errno = err;
		return NULL;
	}
	run->driver_id = driver;
	return run;
}

void uvd_prog_run_free(struct uvd_prog_run *run)
{
	munmap(run, sizeof(*run));
}

/* Asks for an unknown object: EPROTONOSUPPORT with the device's own driver id, EINVAL with another. */
int uvd_prog_find_driver(const char *node)
{
	/* Our own personas first: a device logs a wrong id. */
	static const int first[] = { RDMA_DRIVER_RXE, RDMA_DRIVER_HFI1 };
	int fd = open(node, O_RDWR | O_CLOEXEC), found = -1;

	for (int n = 0; fd >= 0 && n < 64 + (int)UVD_COUNT(first) && found < 0; n++) {
		int id = n < (int)UVD_COUNT(first) ? first[n] : n - (int)UVD_COUNT(first);
		struct ib_uverbs_ioctl_hdr hdr = { .length = sizeof(hdr), .object_id = 0xfff, .driver_id = id };

		if (ioctl(fd, RDMA_VERBS_IOCTL, &hdr) < 0 && errno == EPROTONOSUPPORT)
			found = id;
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static void arena_map(uint64_t at, size_t size, int prot)
{
	if (mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    (void *)at)
		_exit(99);
	if (!(prot & PROT_WRITE))
		mprotect((void *)at, size, prot);
}

static void arena_make(struct uvd_prog_run *run)
{
	for (run->slot = 0; run->slot < UVD_PROG_SLOTS; run->slot++) {
		arena_map(UVD_PROG_MSG(run), UVD_PROG_MSG_SIZE, PROT_READ | PROT_WRITE);
		arena_map(UVD_PROG_IN(run), UVD_PROG_IN_SIZE, PROT_READ | PROT_WRITE);
		arena_map(UVD_PROG_OUT(run), UVD_PROG_OUT_SIZE, PROT_READ | PROT_WRITE);
	}
	run->slot = 0;
	arena_map(UVD_PROG_MEM, UVD_PROG_MEM_SIZE, PROT_READ | PROT_WRITE);
	arena_map(UVD_PROG_RO, UVD_PROG_RO_SIZE, PROT_READ);
	arena_map(UVD_PROG_SCRATCH, UVD_PROG_SCRATCH_SIZE, PROT_READ | PROT_WRITE);
}

static int run_trouble(struct uvd_prog_run *run, unsigned int i, const char *wrong)
{
	snprintf(run->trouble, sizeof(run->trouble), "call %u: %s", i + 1, wrong);
	return -1;
}

static void record_answer(struct uvd_prog_record *r, long ret)
{
	r->ret = ret;
	r->err = ret < 0 ? errno : 0;
}

/* Records the handle or fd in the attribute of a new object. */
static void record_note_new(struct uvd_prog_record *r, const struct uvd_prog_call *call, const uint8_t *msg)
{
	const struct ib_uverbs_ioctl_hdr *hdr = (const void *)msg;
	struct uvd_shape_method ref;

	if (call->front != UVD_PROG_METHOD || !uvd_shape_method(call->target, &ref) || !ref.row)
		return;
	for (unsigned int n = 0; sizeof(*hdr) + (n + 1) * sizeof(hdr->attrs[0]) <= r->msg_len; n++) {
		for (unsigned int a = 0; a < ref.row->num_attrs; a++) {
			const struct uvd_attr_row *row = &ref.row->attrs[a];

			if (row->id != hdr->attrs[n].attr_id || row->access != UVD_UOBJ_NEW ||
			    (row->type != UVD_ATTR_IDR && row->type != UVD_ATTR_FD) ||
			    r->num_values == UVD_PROG_MAX_VALUES)
				continue;
			strcpy(r->values[r->num_values].name, "handle");
			r->values[r->num_values++].value = (uint32_t)hdr->attrs[n].data;
			r->new_at = sizeof(*hdr) + n * sizeof(hdr->attrs[0]);
			return;
		}
	}
}

/* A call in progress. */
struct making {
	struct uvd_prog_run *run;
	const struct uvd_prog *p;
	unsigned int i, slot;
	struct uvd_prog_built b;
	uint8_t sent[UVD_PROG_MAX_MSG];
	pthread_t thread;
	pthread_barrier_t *start; /* where the calls of a group wait for each other; NULL: there is no group */
	int fd; /* of a close */
};

static int call_prepare(struct making *m)
{
	const struct uvd_prog_call *call = &m->p->calls[m->i];
	struct uvd_prog_record *r = &m->run->records[m->i];
	const char *wrong;

	m->run->slot = m->slot;
	memset((void *)UVD_PROG_OUT(m->run), UVD_PROG_UNTOUCHED, UVD_PROG_MAX_OUT);
	wrong = call->front == UVD_PROG_WRITE ? uvd_prog_build_write(m->run, m->p, m->i, &m->b)
					      : uvd_prog_build_ioctl(m->run, m->p, m->i, &m->b);
	if (wrong)
		return run_trouble(m->run, m->i, wrong);
	memcpy(m->sent, m->b.msg, r->msg_len);
	r->full = call->front == UVD_PROG_WRITE ? (long)m->b.len : 0;
	if (m->run->emit)
		uvd_prog_emit_call(m->run, m->p, m->i, &m->b);
	return 0;
}

static void call_make(struct making *m)
{
	struct uvd_prog_record *r = &m->run->records[m->i];

	if (m->p->calls[m->i].front == UVD_PROG_WRITE)
		record_answer(r, write(node_fd, m->b.msg, m->b.len));
	else
		record_answer(r, ioctl(node_fd, m->b.cmd, m->b.arg));
}

static void call_finish(struct making *m)
{
	const struct uvd_prog_call *call = &m->p->calls[m->i];
	struct uvd_prog_record *r = &m->run->records[m->i];

	m->run->slot = m->slot;
	memcpy(r->msg, m->b.msg, r->msg_len);
	/*
	 * The kernel must not write to a command. Record only the changes: the command may hold numbers that the driver
	 * chose.
	 */
	for (unsigned int n = 0; call->front == UVD_PROG_WRITE && n < r->msg_len; n++)
		r->msg[n] ^= m->sent[n];
	memcpy(r->out, (void *)UVD_PROG_OUT(m->run), r->out_len);
	if (r->is_ioctl && r->ret >= 0)
		record_note_new(r, call, m->b.msg);
	/* The only field that does not come from the program. */
	if (r->is_ioctl && r->msg_len >= sizeof(struct ib_uverbs_ioctl_hdr))
		((struct ib_uverbs_ioctl_hdr *)r->msg)->driver_id = 0;
	if (m->run->emit)
		uvd_prog_emit_outputs(m->run, m->p, m->i, m->b.msg);
	m->run->slot = 0;
}

static int prog_run_call(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	struct making m = { .run = run, .p = p, .i = i };

	if (call_prepare(&m))
		return -1;
	call_make(&m);
	call_finish(&m);
	return 0;
}

static int run_event(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	struct uvd_prog_record *r = &run->records[i];
	const char *wait = uvd_prog_item(&p->calls[i], "wait");
	struct pollfd pfd = { .fd = uvd_prog_value_of(run, p, i, p->calls[i].target), .events = POLLIN };
	static const struct uvd_shape_field fields[] = { { "element", 0, 8, NULL }, { "event_type", 8, 4, NULL } };
	int flags = fcntl(pfd.fd, F_GETFL);

	memset(r->out, UVD_PROG_UNTOUCHED, 64);
	r->out_len = 64;
	strcpy(r->regions[0].name, "event");
	r->regions[0].at = 0;
	r->regions[0].len = 16;
	r->regions[0].fields = (struct uvd_shape_fields){ fields, 2 };
	r->num_regions = 1;
	r->full = 16;
	/* Neither the device nor what the tool was started with: the terminal stays as it is. */
	if (flags < 0 || pfd.fd <= NODE_FD || pfd.fd == node_fd) {
		errno = EBADF;
		record_answer(r, -1);
		return 0;
	}
	fcntl(pfd.fd, F_SETFL, flags | O_NONBLOCK);
	poll(&pfd, 1, wait ? atoi(wait) : 0);
	record_answer(r, read(pfd.fd, r->out, 16));
	return 0;
}

/*
 * Posts one empty receive, for a driver that takes receives from memory shared with the client. CREATE_QP's response
 * says where that memory is. It can be mapped only once.
 */
static int recv_by_queue(const struct uvd_prog_record *made)
{
	static struct {
		const struct uvd_prog_record *made;
		struct rxe_queue_buf *queue;
	} mapped[UVD_PROG_MAX_CALLS];
	struct rxe_queue_buf *queue;
	struct mminfo mi = {};
	unsigned int n;

	for (n = 0; n < made->num_regions && strncmp(made->regions[n].name, "uhw", 3); n++)
		;
	if (n == made->num_regions || made->regions[n].len < sizeof(mi))
		return -EINVAL;
	memcpy(&mi, made->out + made->regions[n].at, sizeof(mi));
	for (n = 0; n < UVD_PROG_MAX_CALLS - 1 && mapped[n].made && mapped[n].made != made; n++)
		;
	if (!mapped[n].made) {
		mapped[n].queue = mmap(NULL, mi.size, PROT_READ | PROT_WRITE, MAP_SHARED, node_fd, mi.offset);
		if (mapped[n].queue == MAP_FAILED)
			return -EINVAL;
		mapped[n].made = made;
	}
	queue = mapped[n].queue;
	memset(queue->data + ((size_t)queue->producer_index << queue->log2_elem_size), 0, 1u << queue->log2_elem_size);
	__atomic_store_n(&queue->producer_index, (queue->producer_index + 1) & queue->index_mask, __ATOMIC_RELEASE);
	return 0;
}

static int recv_by_command(uint32_t qp)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr;
	} msg = { { IB_USER_VERBS_CMD_POST_RECV, sizeof(msg) / 4, 1 },
		  { UVD_PROG_SCRATCH, qp, 1, 0, sizeof(struct ib_uverbs_recv_wr) } };

	return write(node_fd, &msg, sizeof(msg)) < 0 ? -errno : 0;
}

static int run_recv(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	int err = -EINVAL;

	for (unsigned int j = 0; j < i; j++) {
		if (strcmp(p->calls[j].label, p->calls[i].target) || !run->records[j].done)
			continue;
		err = run->driver_id == RDMA_DRIVER_RXE
			      ? recv_by_queue(&run->records[j])
			      : recv_by_command(uvd_prog_value_of(run, p, i, p->calls[i].target));
		break;
	}
	errno = -err;
	record_answer(&run->records[i], err ? -1 : 0);
	return 0;
}

/* Under `uverbsctl run` the node's fd is not NODE_FD, which the first new fd then gets. */
static bool fd_can_be_closed(int fd)
{
	return fd >= NODE_FD && fd != node_fd;
}

static int run_close(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	int fd = uvd_prog_value_of(run, p, i, p->calls[i].target);

	if (!fd_can_be_closed(fd)) {
		errno = EBADF;
		record_answer(&run->records[i], -1);
		return 0;
	}
	record_answer(&run->records[i], close(fd));
	return 0;
}

/* Opens the node and closes all other files, except the standard ones. Returns 0, or -1 with errno. */
static int node_open(const char *node)
{
	node_fd = open(node, O_RDWR);
	if (node_fd > NODE_FD && node_fd < LOW_FDS) {
		if (dup2(node_fd, NODE_FD) < 0)
			return -1;
		node_fd = NODE_FD;
	}
	if (node_fd < 0)
		return -1;
	if (node_fd > NODE_FD)
		close_range(NODE_FD, node_fd - 1, 0);
	close_range(node_fd + 1, ~0u, 0);
	return 0;
}

static int (*const by_front[UVD_PROG_FRONTS])(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i) = {
	[UVD_PROG_WRITE] = prog_run_call, [UVD_PROG_INVOKE] = prog_run_call, [UVD_PROG_METHOD] = prog_run_call,
	[UVD_PROG_EVENT] = run_event,	  [UVD_PROG_RECV] = run_recv,	     [UVD_PROG_CLOSE] = run_close,
};

/* ---- calls beside each other ------------------------------------------------------------------------------------- */

static void *group_thread(void *arg)
{
	struct making *m = arg;

	pthread_barrier_wait(m->start);
	if (m->p->calls[m->i].front <= UVD_PROG_METHOD)
		call_make(m);
	else if (m->fd >= 0)
		record_answer(&m->run->records[m->i], close(m->fd));
	m->run->records[m->i].done = true;
	return NULL;
}

static int group_prepare(struct making *m)
{
	int fd;

	m->fd = -1;
	if (m->p->calls[m->i].front <= UVD_PROG_METHOD)
		return call_prepare(m);
	if (m->run->emit)
		uvd_prog_emit_other(m->run, m->p, m->i);
	fd = uvd_prog_value_of(m->run, m->p, m->i, m->p->calls[m->i].target);
	if (fd_can_be_closed(fd))
		m->fd = fd;
	else
		record_answer(&m->run->records[m->i], (errno = EBADF, -1));
	return 0;
}

/* Can the call be made by a thread of its own? The others use memory that all calls share. */
static bool call_can_be_beside(const struct uvd_prog_call *call)
{
	return call->front <= UVD_PROG_METHOD || call->front == UVD_PROG_CLOSE;
}

/* Returns the number of calls that are made at the same time, from call i. */
static unsigned int group_size(const struct uvd_prog *p, unsigned int i)
{
	unsigned int n = 1;

	while (n < UVD_PROG_SLOTS && i + n < p->num_calls && p->calls[i + n - 1].beside &&
	       call_can_be_beside(&p->calls[i + n - 1]) && call_can_be_beside(&p->calls[i + n]))
		n++;
	return n;
}

/* Makes n calls at the same time. Returns 0, or -1 if the program is wrong. */
static int run_group(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, unsigned int n)
{
	static struct making m[UVD_PROG_SLOTS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, n);
	if (run->emit)
		uvd_prog_emit_group(run, n);
	for (unsigned int k = 0; k < n; k++) {
		m[k] = (struct making){ .run = run, .p = p, .i = i + k, .slot = k, .start = &start };
		if (group_prepare(&m[k]))
			return -1;
	}
	for (unsigned int k = 0; k < n; k++)
		if (pthread_create(&m[k].thread, NULL, group_thread, &m[k]))
			return run_trouble(run, i + k, "no thread for it");
	for (unsigned int k = 0; k < n; k++) {
		pthread_join(m[k].thread, NULL);
		if (p->calls[i + k].front <= UVD_PROG_METHOD)
			call_finish(&m[k]);
	}
	pthread_barrier_destroy(&start);
	return 0;
}

static void run_child(struct uvd_prog_run *run, const struct uvd_prog *p)
{
	unsigned int n;

	signal(SIGPIPE, SIG_IGN);
	/* Run on the daemon's CPU, so that no call has to wake another one. */
	if (run->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(run->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	alarm(run->patience);
	arena_make(run);
	if (node_open(run->node)) {
		snprintf(run->trouble, sizeof(run->trouble), "%s: %s", run->node, strerror(errno));
		_exit(1);
	}
	for (unsigned int i = 0; i < p->num_calls; i += n) {
		n = group_size(p, i);
		if (run->emit && n == 1 && p->calls[i].front > UVD_PROG_METHOD)
			uvd_prog_emit_other(run, p, i);
		if (n > 1 ? run_group(run, p, i, n) : by_front[p->calls[i].front](run, p, i))
			_exit(1);
		run->records[i].done = true;
	}
	_exit(0);
}

void uvd_prog_run_start(struct uvd_prog_run *run, const struct uvd_prog *p)
{
	pid_t pid;

	for (unsigned int i = 0; i < p->num_calls; i++) {
		struct uvd_prog_record *r = &run->records[i];

		r->done = r->is_ioctl = false;
		r->msg_len = r->out_len = r->num_regions = r->num_values = r->new_at = 0;
		r->full = 0;
	}
	run->trouble[0] = 0;
	fflush(NULL);
	pid = fork();
	if (!pid)
		run_child(run, p);
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	run->pid = pid; /* the child shares *run */
}

void uvd_prog_run_wait(struct uvd_prog_run *run)
{
	while (waitpid(run->pid, &run->status, 0) < 0 && errno == EINTR)
		;
}
