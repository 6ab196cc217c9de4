/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs a program on one node in a child process: what it does to memory and fds, or a crash, stays in the child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "run.h"

enum {
	PATIENCE = 60, /* seconds; a program that takes longer counts as hanging */
	NODE_FD = 3, /* the same in every child, so that the numbers of new fds can be compared */
};

struct run *run_new(const char *node, int cpu)
{
	struct run *run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int driver;

	if (run == MAP_FAILED)
		return NULL;
	run->node = node;
	run->cpu = cpu;
	driver = run_find_driver(node);
	if (driver < 0)
		return NULL;
	run->driver_id = driver;
	return run;
}

/* Asks for an unknown object: EPROTONOSUPPORT with the device's own driver id, EINVAL with another. */
int run_find_driver(const char *node)
{
	int fd = open(node, O_RDWR | O_CLOEXEC), found = -1;

	for (int id = 0; fd >= 0 && id < 64 && found < 0; id++) {
		struct ib_uverbs_ioctl_hdr hdr = { .length = sizeof(hdr), .object_id = 0xfff, .driver_id = id };

		if (ioctl(fd, RDMA_VERBS_IOCTL, &hdr) < 0 && errno == EPROTONOSUPPORT)
			found = id;
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static void map(uint64_t at, size_t size, int prot)
{
	if (mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    (void *)at)
		_exit(99);
	if (!(prot & PROT_WRITE))
		mprotect((void *)at, size, prot);
}

static void make_arena(void)
{
	map(ARENA_MSG, ARENA_MSG_SIZE, PROT_READ | PROT_WRITE);
	map(ARENA_IN, ARENA_IN_SIZE, PROT_READ | PROT_WRITE);
	map(ARENA_OUT, ARENA_OUT_SIZE, PROT_READ | PROT_WRITE);
	map(ARENA_MEM, ARENA_MEM_SIZE, PROT_READ | PROT_WRITE);
	map(ARENA_RO, ARENA_RO_SIZE, PROT_READ);
	map(ARENA_SCRATCH, ARENA_SCRATCH_SIZE, PROT_READ | PROT_WRITE);
}

static int trouble(struct run *run, unsigned int i, const char *wrong)
{
	snprintf(run->trouble, sizeof(run->trouble), "call %u: %s", i + 1, wrong);
	return -1;
}

static void answer(struct record *r, long ret)
{
	r->ret = ret;
	r->err = ret < 0 ? errno : 0;
}

/* Records the handle or fd in the attribute of a new object. */
static void note_new(struct record *r, const struct call *call, const uint8_t *msg)
{
	const struct ib_uverbs_ioctl_hdr *hdr = (const void *)msg;
	struct method_ref ref;

	if (call->front != BY_METHOD || !schema_method(call->target, &ref) || !ref.row)
		return;
	for (unsigned int n = 0; sizeof(*hdr) + (n + 1) * sizeof(hdr->attrs[0]) <= r->msg_len; n++) {
		for (unsigned int a = 0; a < ref.row->num_attrs; a++) {
			const struct uvd_attr_row *row = &ref.row->attrs[a];

			if (row->id != hdr->attrs[n].attr_id || row->access != UVD_UOBJ_NEW ||
			    (row->type != UVD_ATTR_IDR && row->type != UVD_ATTR_FD) || r->num_values == MAX_VALUES)
				continue;
			strcpy(r->values[r->num_values].name, "handle");
			r->values[r->num_values++].value = (uint32_t)hdr->attrs[n].data;
			return;
		}
	}
}

static int do_call(struct run *run, const struct program *p, unsigned int i)
{
	const struct call *call = &p->calls[i];
	struct record *r = &run->records[i];
	struct built b = {};
	uint8_t sent[MAX_MSG];
	const char *wrong;

	memset((void *)ARENA_OUT, OUT_UNTOUCHED, MAX_OUT);
	wrong = call->front == BY_WRITE ? build_write(run, p, i, &b) : build_ioctl(run, p, i, &b);
	if (wrong)
		return trouble(run, i, wrong);
	memcpy(sent, b.msg, r->msg_len);
	if (call->front == BY_WRITE)
		answer(r, write(NODE_FD, b.msg, b.len));
	else
		answer(r, ioctl(NODE_FD, b.cmd, b.arg));
	memcpy(r->msg, b.msg, r->msg_len);
	/*
	 * The kernel must not write to a command. Record only the changes: the command may hold numbers that the driver
	 * chose.
	 */
	for (unsigned int n = 0; call->front == BY_WRITE && n < r->msg_len; n++)
		r->msg[n] ^= sent[n];
	memcpy(r->out, (void *)ARENA_OUT, r->out_len);
	if (r->is_ioctl && r->ret >= 0)
		note_new(r, call, b.msg);
	/* The only field that does not come from the program. */
	if (r->is_ioctl && r->msg_len >= sizeof(struct ib_uverbs_ioctl_hdr))
		((struct ib_uverbs_ioctl_hdr *)r->msg)->driver_id = 0;
	return 0;
}

static int do_event(struct run *run, const struct program *p, unsigned int i)
{
	struct record *r = &run->records[i];
	const char *wait = call_item(&p->calls[i], "wait");
	struct pollfd pfd = { .fd = value_of(run, p, i, p->calls[i].target), .events = POLLIN };
	static const struct field fields[] = { { "element", 0, 8, NULL }, { "event_type", 8, 4, NULL } };
	int flags = fcntl(pfd.fd, F_GETFL);

	memset(r->out, OUT_UNTOUCHED, 64);
	r->out_len = 64;
	strcpy(r->regions[0].name, "event");
	r->regions[0].at = 0;
	r->regions[0].len = 16;
	r->regions[0].fields = (struct fields){ fields, 2 };
	r->num_regions = 1;
	if (flags < 0 || pfd.fd == NODE_FD) {
		errno = EBADF;
		answer(r, -1);
		return 0;
	}
	fcntl(pfd.fd, F_SETFL, flags | O_NONBLOCK);
	poll(&pfd, 1, wait ? atoi(wait) : 0);
	answer(r, read(pfd.fd, r->out, 16));
	return 0;
}

/*
 * Posts one empty receive, for a driver that takes receives from memory shared with the client. CREATE_QP's response
 * says where that memory is. It can be mapped only once.
 */
static int post_mapped(const struct record *made)
{
	static struct {
		const struct record *made;
		struct rxe_queue_buf *queue;
	} mapped[MAX_CALLS];
	struct rxe_queue_buf *queue;
	struct mminfo mi = {};
	unsigned int n;

	for (n = 0; n < made->num_regions && strncmp(made->regions[n].name, "uhw", 3); n++)
		;
	if (n == made->num_regions || made->regions[n].len < sizeof(mi))
		return -EINVAL;
	memcpy(&mi, made->out + made->regions[n].at, sizeof(mi));
	for (n = 0; n < MAX_CALLS - 1 && mapped[n].made && mapped[n].made != made; n++)
		;
	if (!mapped[n].made) {
		mapped[n].queue = mmap(NULL, mi.size, PROT_READ | PROT_WRITE, MAP_SHARED, NODE_FD, mi.offset);
		if (mapped[n].queue == MAP_FAILED)
			return -EINVAL;
		mapped[n].made = made;
	}
	queue = mapped[n].queue;
	memset(queue->data + ((size_t)queue->producer_index << queue->log2_elem_size), 0, 1u << queue->log2_elem_size);
	__atomic_store_n(&queue->producer_index, (queue->producer_index + 1) & queue->index_mask, __ATOMIC_RELEASE);
	return 0;
}

static int post_command(uint32_t qp)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr;
	} msg = { { IB_USER_VERBS_CMD_POST_RECV, sizeof(msg) / 4, 1 },
		  { ARENA_SCRATCH, qp, 1, 0, sizeof(struct ib_uverbs_recv_wr) } };

	return write(NODE_FD, &msg, sizeof(msg)) < 0 ? -errno : 0;
}

static int do_recv(struct run *run, const struct program *p, unsigned int i)
{
	int err = -EINVAL;

	for (unsigned int j = 0; j < i; j++) {
		if (strcmp(p->calls[j].label, p->calls[i].target) || !run->records[j].done)
			continue;
		err = run->driver_id == RDMA_DRIVER_RXE ? post_mapped(&run->records[j])
							: post_command(value_of(run, p, i, p->calls[i].target));
		break;
	}
	errno = -err;
	answer(&run->records[i], err ? -1 : 0);
	return 0;
}

static int do_close(struct run *run, const struct program *p, unsigned int i)
{
	int fd = value_of(run, p, i, p->calls[i].target);

	if (fd <= NODE_FD) {
		errno = EBADF;
		answer(&run->records[i], -1);
		return 0;
	}
	answer(&run->records[i], close(fd));
	return 0;
}

static void child(struct run *run, const struct program *p)
{
	static int (*const done[FRONTS])(struct run * run, const struct program *p, unsigned int i) = {
		[BY_WRITE] = do_call,  [BY_INVOKE] = do_call, [BY_METHOD] = do_call,
		[DO_EVENT] = do_event, [DO_RECV] = do_recv,   [DO_CLOSE] = do_close,
	};
	int fd;

	signal(SIGPIPE, SIG_IGN);
	/* Run on the daemon's CPU, so that no call has to wake another one. */
	if (run->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(run->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	alarm(PATIENCE);
	make_arena();
	fd = open(run->node, O_RDWR);
	if (fd < 0 || (fd != NODE_FD && (dup2(fd, NODE_FD) < 0 || close(fd)))) {
		snprintf(run->trouble, sizeof(run->trouble), "%s: %s", run->node, strerror(errno));
		_exit(1);
	}
	close_range(NODE_FD + 1, ~0u, 0);
	for (unsigned int i = 0; i < p->num_calls; i++) {
		if (done[p->calls[i].front](run, p, i))
			_exit(1);
		run->records[i].done = true;
	}
	_exit(0);
}

void run_start(struct run *run, const struct program *p)
{
	pid_t pid;

	for (unsigned int i = 0; i < p->num_calls; i++) {
		struct record *r = &run->records[i];

		r->done = r->is_ioctl = false;
		r->msg_len = r->out_len = r->num_regions = r->num_values = 0;
	}
	run->trouble[0] = 0;
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(run, p);
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	run->pid = pid; /* the child shares *run */
}

void run_wait(struct run *run)
{
	while (waitpid(run->pid, &run->status, 0) < 0 && errno == EINTR)
		;
}
