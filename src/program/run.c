/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs a program on one node in a child process: what it does to memory and fds, or a crash, stays in the child. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emit.h"
#include "run.h"

enum {
	PATIENCE = 60, /* seconds */
	AFTER_ALARM = 10, /* seconds, for the signal to be seen */
	NODE_FD = 3, /* the same in every child, so that the numbers of new fds can be compared */
	LOW_FDS = 40, /* under `uverbsctl run` a node's fd has a greater number, and write() works only there */
};

static int node_fd; /* of the child */
static int cm_fd = -1; /* of its open file of rdma_cm; -1: there is none yet */

/*
 * Under `uverbsctl run` the node's fd is not NODE_FD, which the first new fd then gets. Those below are the tool's: an event
 * read from there would change the user's terminal.
 */
static bool system_has_fd(int fd)
{
	return fd >= NODE_FD && fd != node_fd;
}

static int system_ioctl(int fd, unsigned long cmd, uint64_t arg)
{
	return ioctl(fd, cmd, arg);
}

const struct uvd_prog_node_ops uvd_prog_system_calls = {
	.write = write,
	.ioctl = system_ioctl,
	.has_fd = system_has_fd,
	.close = close,
};

struct uvd_prog_run *uvd_prog_run_new_with(const struct uvd_prog_node_ops *ops, const char *node, uint16_t driver_id)
{
	struct uvd_prog_run *run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (run == MAP_FAILED)
		return NULL;
	uvd_shape_need();
	run->ops = ops;
	run->node = node;
	run->cpu = -1;
	run->patience = PATIENCE;
	run->driver_id = driver_id;
	return run;
}

struct uvd_prog_run *uvd_prog_run_new(const char *node, int cpu)
{
	int driver = uvd_prog_find_driver(node);
	struct uvd_prog_run *run = driver < 0 ? NULL : uvd_prog_run_new_with(&uvd_prog_system_calls, node, driver);

	if (run)
		run->cpu = cpu;
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

void uvd_prog_areas(struct uvd_prog_area areas[UVD_PROG_AREAS])
{
	struct {
		unsigned int slot;
	} at, *run = &at;
	unsigned int n = 0;

	for (run->slot = 0; run->slot < UVD_PROG_SLOTS; run->slot++) {
		areas[n++] = (struct uvd_prog_area){ UVD_PROG_MSG(run), UVD_PROG_MSG_SIZE, true };
		areas[n++] = (struct uvd_prog_area){ UVD_PROG_IN(run), UVD_PROG_IN_SIZE, true };
		areas[n++] = (struct uvd_prog_area){ UVD_PROG_OUT(run), UVD_PROG_OUT_SIZE, true };
		if (run->slot)
			continue;
		areas[n++] = (struct uvd_prog_area){ UVD_PROG_MEM, UVD_PROG_MEM_SIZE, true };
		areas[n++] = (struct uvd_prog_area){ UVD_PROG_RO, UVD_PROG_RO_SIZE, false };
		areas[n++] = (struct uvd_prog_area){ UVD_PROG_SCRATCH, UVD_PROG_SCRATCH_SIZE, true };
	}
}

int uvd_prog_arena_make(void)
{
	struct uvd_prog_area areas[UVD_PROG_AREAS];

	uvd_prog_areas(areas);
	for (unsigned int n = 0; n < UVD_PROG_AREAS; n++) {
		const int prot = PROT_READ | (areas[n].writable ? PROT_WRITE : 0);
		void *at = (void *)areas[n].at;

		if (mmap(at, areas[n].size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
			return -1;
	}
	return 0;
}

void uvd_prog_arena_clear(void)
{
	/* All that is mapped in it. It is an error that something is not, which changes nothing for the rest. */
	madvise((void *)UVD_PROG_ARENA, UVD_PROG_SLOTS * UVD_PROG_SLOT_SIZE, MADV_DONTNEED);
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
struct call_made {
	struct uvd_prog_step step;
	struct uvd_prog_run *run;
	const struct uvd_prog *p;
	unsigned int i, slot;
	uint8_t sent[UVD_PROG_MAX_MSG];
};

static struct call_made *call_made_of(struct uvd_prog_step *step)
{
	return (struct call_made *)((char *)step - offsetof(struct call_made, step));
}

/* Is the call a write()? Its message is not changed, and its result is the length. */
static bool call_is_write(const struct uvd_prog_call *call)
{
	return call->front == UVD_PROG_WRITE || call->front == UVD_PROG_CM;
}

/* The node rdma_cm is beside that of the device. A device in the process has none: its calls are EBADF. */
static int cm_open(const struct uvd_prog_run *run)
{
	const char *slash = strrchr(run->node, '/');
	char path[PATH_MAX];

	if (cm_fd >= 0 || run->ops->open || !slash)
		return cm_fd;
	snprintf(path, sizeof(path), "%.*s/rdma_cm", (int)(slash - run->node), run->node);
	cm_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return cm_fd;
}

static void cm_close(void)
{
	if (cm_fd >= 0)
		close(cm_fd);
	cm_fd = -1;
}

static void cm_wait(const struct uvd_prog_call *call)
{
	const char *wait = uvd_prog_item(call, "wait");
	struct pollfd pfd = { .fd = cm_fd, .events = POLLIN };

	if (wait)
		poll(&pfd, 1, atoi(wait));
}

static const char *call_build(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
			      struct uvd_prog_built *b)
{
	switch (p->calls[i].front) {
	case UVD_PROG_WRITE:
		return uvd_prog_build_write(run, p, i, b);
	case UVD_PROG_CM:
		return uvd_prog_build_cm(run, p, i, b);
	default:
		return uvd_prog_build_ioctl(run, p, i, b);
	}
}

static int call_prepare(struct uvd_prog_step *step)
{
	struct call_made *m = call_made_of(step);
	const struct uvd_prog_call *call = &m->p->calls[m->i];
	struct uvd_prog_record *r = &m->run->records[m->i];
	const char *wrong;

	m->run->slot = m->slot;
	memset((void *)UVD_PROG_OUT(m->run), UVD_PROG_UNTOUCHED, UVD_PROG_MAX_OUT);
	wrong = call_build(m->run, m->p, m->i, &step->call);
	if (wrong)
		return run_trouble(m->run, m->i, wrong);
	memcpy(m->sent, step->call.msg, r->msg_len);
	r->full = call_is_write(call) ? (long)step->call.len : 0;
	if (call->front == UVD_PROG_CM) {
		step->fd = cm_open(m->run);
		cm_wait(call);
	}
	if (m->run->emit)
		uvd_prog_emit_call(m->run, m->p, m->i, &step->call);
	return 0;
}

static void call_answered(struct uvd_prog_step *step)
{
	const struct call_made *m = call_made_of(step);
	struct uvd_prog_record *r = &m->run->records[m->i];

	r->ret = step->result < 0 ? -1 : step->result;
	r->err = step->result < 0 ? -step->result : 0;
	r->done = true; /* whatever a call beside it does to the process */
}

static void call_finish(struct uvd_prog_step *step)
{
	struct call_made *m = call_made_of(step);
	const struct uvd_prog_call *call = &m->p->calls[m->i];
	struct uvd_prog_record *r = &m->run->records[m->i];

	m->run->slot = m->slot;
	memcpy(r->msg, step->call.msg, r->msg_len);
	/*
	 * The kernel must not write to a command. Record only the changes: the command may hold numbers that the driver
	 * chose.
	 */
	for (unsigned int n = 0; call_is_write(call) && n < r->msg_len; n++)
		r->msg[n] ^= m->sent[n];
	memcpy(r->out, (void *)UVD_PROG_OUT(m->run), r->out_len);
	if (r->is_ioctl && r->ret >= 0)
		record_note_new(r, call, step->call.msg);
	/* The only field that does not come from the program. */
	if (r->is_ioctl && r->msg_len >= sizeof(struct ib_uverbs_ioctl_hdr))
		((struct ib_uverbs_ioctl_hdr *)r->msg)->driver_id = 0;
	if (m->run->emit)
		uvd_prog_emit_outputs(m->run, m->p, m->i, step->call.msg);
	m->run->slot = 0;
}

/* Records the descriptor that an event or a close names. */
static void record_fd(struct uvd_prog_record *r, int fd)
{
	strcpy(r->values[0].name, "fd");
	r->values[0].value = (uint32_t)fd;
	r->num_values = 1;
}

static void run_event(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	struct uvd_prog_record *r = &run->records[i];
	const char *wait = uvd_prog_item(&p->calls[i], "wait");
	struct pollfd pfd = { .fd = uvd_prog_value_of(run, p, i, p->calls[i].target), .events = POLLIN };
	static const struct uvd_shape_field fields[] = { { "element", 0, 8, NULL }, { "event_type", 8, 4, NULL } };
	int flags = fcntl(pfd.fd, F_GETFL);

	record_fd(r, pfd.fd);
	memset(r->out, UVD_PROG_UNTOUCHED, 64);
	r->out_len = 64;
	strcpy(r->regions[0].name, "event");
	r->regions[0].at = 0;
	r->regions[0].len = 16;
	r->regions[0].fields = (struct uvd_shape_fields){ fields, 2 };
	r->num_regions = 1;
	r->full = 16;
	if (flags < 0 || !run->ops->has_fd(pfd.fd)) {
		errno = EBADF;
		record_answer(r, -1);
		return;
	}
	fcntl(pfd.fd, F_SETFL, flags | O_NONBLOCK);
	poll(&pfd, 1, wait ? atoi(wait) : 0);
	record_answer(r, read(pfd.fd, r->out, 16));
}

/* The queues of receives that the program has mapped: each can be mapped only once. */
static struct recv_queue {
	const struct uvd_prog_record *made; /* NULL: this entry and those behind it are free */
	struct rxe_queue_buf *queue;
	size_t size;
} recv_queues[UVD_PROG_MAX_CALLS];

static void recv_queues_unmap(void)
{
	for (struct recv_queue *q = recv_queues; q < recv_queues + UVD_PROG_MAX_CALLS && q->made; q++) {
		munmap(q->queue, q->size);
		q->made = NULL;
	}
}

/*
 * Posts one empty receive, for a driver that takes receives from memory shared with the client. CREATE_QP's response
 * says where that memory is.
 */
static int recv_by_queue(const struct uvd_prog_record *made)
{
	struct recv_queue *q = recv_queues;
	struct rxe_queue_buf *queue;
	struct mminfo mi = {};
	unsigned int n;

	for (n = 0; n < made->num_regions && strncmp(made->regions[n].name, "uhw", 3); n++)
		;
	if (n == made->num_regions || made->regions[n].len < sizeof(mi))
		return -EINVAL;
	memcpy(&mi, made->out + made->regions[n].at, sizeof(mi));
	while (q < recv_queues + UVD_PROG_MAX_CALLS - 1 && q->made && q->made != made)
		q++;
	if (!q->made) {
		q->queue = mmap(NULL, mi.size, PROT_READ | PROT_WRITE, MAP_SHARED, node_fd, mi.offset);
		if (q->queue == MAP_FAILED)
			return -EINVAL;
		q->size = mi.size;
		q->made = made;
	}
	queue = q->queue;
	memset(queue->data + ((size_t)queue->producer_index << queue->log2_elem_size), 0, 1u << queue->log2_elem_size);
	__atomic_store_n(&queue->producer_index, (queue->producer_index + 1) & queue->index_mask, __ATOMIC_RELEASE);
	return 0;
}

/* The message is in the arena: a device in this process finds no other memory of its client. */
static int recv_by_command(struct uvd_prog_run *run, uint32_t qp)
{
	struct message {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr;
	} *msg = (void *)UVD_PROG_MSG(run);

	*msg = (struct message){ { IB_USER_VERBS_CMD_POST_RECV, sizeof(*msg) / 4, 1 },
				 { UVD_PROG_SCRATCH, qp, 1, 0, sizeof(struct ib_uverbs_recv_wr) } };
	return run->ops->write(node_fd, msg, sizeof(*msg)) < 0 ? -errno : 0;
}

static void run_recv(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	int err = -EINVAL;

	for (unsigned int j = 0; j < i; j++) {
		if (strcmp(p->calls[j].label, p->calls[i].target) || !run->records[j].done)
			continue;
		err = run->driver_id == RDMA_DRIVER_RXE
			      ? recv_by_queue(&run->records[j])
			      : recv_by_command(run, uvd_prog_value_of(run, p, i, p->calls[i].target));
		break;
	}
	errno = -err;
	record_answer(&run->records[i], err ? -1 : 0);
}

/* Finds and records the descriptor of a close. The program may not close each. */
static int close_prepare(struct uvd_prog_step *step)
{
	const struct call_made *m = call_made_of(step);
	struct uvd_prog_run *run = m->run;
	const char *target = m->p->calls[m->i].target;
	const bool device = !strcmp(target, UVD_PROG_DEVICE);
	const int fd = device ? node_fd : (int)uvd_prog_value_of(run, m->p, m->i, target);

	if (run->emit)
		uvd_prog_emit_other(run, m->p, m->i);
	record_fd(&run->records[m->i], fd);
	step->fd = device || run->ops->has_fd(fd) ? fd : -1;
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

/* Can the call be made beside others? The rest use memory that all calls share. */
static bool call_can_be_beside(const struct uvd_prog_call *call)
{
	return call->front <= UVD_PROG_METHOD || call->front >= UVD_PROG_CLOSE;
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

/* Makes n calls, at the same time. Returns 0, or -1 if the program is wrong. */
static int calls_run(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, unsigned int n)
{
	static struct call_made m[UVD_PROG_SLOTS]; /* of the process: its threads may still read it when this returns */
	struct uvd_prog_step *steps[UVD_PROG_SLOTS];
	int err;

	if (run->emit && n > 1)
		uvd_prog_emit_group(run, n);
	for (unsigned int k = 0; k < n; k++) {
		const bool is_close = p->calls[i + k].front == UVD_PROG_CLOSE;

		m[k] = (struct call_made){ .run = run, .p = p, .i = i + k, .slot = k };
		m[k].step = (struct uvd_prog_step){ .prepare = is_close ? close_prepare : call_prepare,
						    .answered = call_answered,
						    .finish = is_close ? NULL : call_finish,
						    .fd = node_fd,
						    .is_close = is_close };
		steps[k] = &m[k].step;
	}
	err = uvd_prog_steps_run(run->ops, steps, n);
	return err == -EAGAIN ? run_trouble(run, i, "no thread for it or for a call beside it") : err;
}

/* Waits for an event, or posts a receive. */
static int other_run(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	if (run->emit)
		uvd_prog_emit_other(run, p, i);
	if (p->calls[i].front == UVD_PROG_EVENT)
		run_event(run, p, i);
	else
		run_recv(run, p, i);
	run->records[i].done = true;
	return 0;
}

void uvd_prog_run_reset(struct uvd_prog_run *run, const struct uvd_prog *p)
{
	for (unsigned int i = 0; i < p->num_calls; i++) {
		struct uvd_prog_record *r = &run->records[i];

		r->done = r->is_ioctl = false;
		r->msg_len = r->out_len = r->num_regions = r->num_values = r->new_at = 0;
		r->full = 0;
	}
	run->trouble[0] = 0;
	run->slot = 0;
}

int uvd_prog_run_calls(struct uvd_prog_run *run, const struct uvd_prog *p, int node)
{
	unsigned int n;
	int ret = 0;

	node_fd = node;
	for (unsigned int i = 0; i < p->num_calls && !ret; i += n) {
		n = group_size(p, i);
		ret = call_can_be_beside(&p->calls[i]) ? calls_run(run, p, i, n) : other_run(run, p, i);
	}
	recv_queues_unmap();
	cm_close();
	return ret;
}

static void run_child(struct uvd_prog_run *run, const struct uvd_prog *p)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	/* Run on the daemon's CPU, so that no call has to wake another one. */
	if (run->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(run->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	alarm(run->patience);
	if (uvd_prog_arena_make())
		_exit(99);
	if (run->ops->open ? (node_fd = run->ops->open(run)) < 0 : node_open(run->node)) {
		snprintf(run->trouble, sizeof(run->trouble), "%s: %s", run->node, strerror(errno));
		_exit(1);
	}
	_exit(uvd_prog_run_calls(run, p, node_fd) ? 1 : 0);
}

void uvd_prog_run_start(struct uvd_prog_run *run, const struct uvd_prog *p)
{
	pid_t pid;

	uvd_prog_run_reset(run, p);
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

/* Has the child ended within `ms`? */
static bool child_ends(struct uvd_prog_run *run, int pidfd, int ms)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0 && poll(&pfd, 1, ms) == 0)
		return false;
	while (waitpid(run->pid, &run->status, 0) < 0 && errno == EINTR)
		;
	return true;
}

/*
 * The child's alarm ends a call that hangs, unless the call waits within the kernel for what never comes. Then no signal
 * ends it: leave it behind.
 */
void uvd_prog_run_wait(struct uvd_prog_run *run)
{
	const int pidfd = syscall(SYS_pidfd_open, run->pid, 0);

	if (!child_ends(run, pidfd, (run->patience + AFTER_ALARM) * 1000)) {
		kill(run->pid, SIGKILL);
		if (!child_ends(run, pidfd, AFTER_ALARM * 1000))
			run->status = SIGALRM; /* as WTERMSIG() finds it */
	}
	if (pidfd >= 0)
		close(pidfd);
}
