/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device under test: its driver, what serves its node, and the answers in which it may differ. */
#include <rdma/rdma_user_rxe.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "abi.h"

static const struct choice choices[] = {
	{ "ucap", ON_KERNEL, EPROTONOSUPPORT, "User Capabilities came with 6.15" },
	{ "data", ON_RXE, 0, "rxe's queues are mapped memory: it posts and polls nothing by write()" },
	{ "no-rereg", ON_KERNEL, 0, "rxe of 6.1 has no REREG_MR" },
	{ "no-xrc", ON_KERNEL, 0, "rxe has no XRC" },
	{ "poll-cq", ON_RXE, EOPNOTSUPP, "rxe has no POLL_CQ: its CQs are mapped memory" },
	{ "post-recv", ON_RXE, EOPNOTSUPP, "rxe has no POST_RECV: its receive queues are mapped memory" },
	{ "mr-03-on-demand", ON_OURS, 0, "soft registers on demand; rxe of 6.1 does not" },
	{ "mr-08", ON_OURS, EINVAL, "soft takes advice; rxe of 6.1 has no function for it" },
	{ "ioctl-18-advise", ON_OURS, ENOENT, "soft takes advice, and has no such region" },
	{ "ah-01-no-grh", ON_HFI1, 0, "an InfiniBand port needs no GRH, a RoCE port does" },
	{ "qp-15-mlid", ON_RXE, 0, "a RoCE port has no multicast LIDs" },
	{ "qp-13-no-grh", ON_HFI1, 0, "an InfiniBand port needs no GRH, a RoCE port does" },
	{ "write-01-same-ids", ON_OURS, 0,
	  "a credential is known by its ids: set*id to the ids that it has is not seen" },
	{ "write-01-real-id", ON_OURS, 0,
	  "a credential is known by its fsuid and fsgid, which FUSE tells with each call" },
	{ "handle-05", ON_RUN, 0, "the calls of one tree are served one after another: this one waited" },
	{ "handle-05-others", ON_RUN, ECHILD, "so a program that lets its own memory wait holds up its own tree" },
	{ "event-01", ON_OURS, 0, "a socket whose other end is closed: end of file, and POLLHUP for POLLERR" },
	{ "event-03", ON_OURS, -4, "a socket cuts an event to the buffer, and it is gone" },
	{ "event-09", ON_OURS, 0, "a socket whose other end is closed: end of file" },
	{ "event-10", ON_OURS, 0, "a socket whose other end is closed: end of file" },
	{ "hotplug-02", ON_OURS, 0, "its driver can disassociate; rxe's cannot" },
	{ "context-08", ON_CUSE, ENODEV, "CUSE has no mmap" },
	{ "ioctl-01-copied", ON_CUSE, EFAULT, "FUSE copies what the command's number says before it asks us" },
	{ "ioctl-01-file", ON_RUN, 0, "the file handed out is a memfd, and only RDMA_VERBS_IOCTL is trapped" },
	{ "write-02-zero", ON_CUSE, 0, "FUSE does not ask us about a write of nothing" },
	{ "write-03-half", ON_CUSE, EINVAL, "FUSE sends what could be read: a shorter command" },
	{ "write-07", ON_CUSE, EINVAL, "FUSE sends what could be read: a shorter command" },
	{ "write-17", ON_CUSE, EINVAL, "FUSE sends what could be read: a shorter command" },
	{ "write-15-destroy-cq", ON_CUSE, ENOSPC, "FUSE tells neither what is behind the command nor where it was" },
	{ "context-08", ON_RUN, 0, "the file handed out is a memfd, which can be mapped at any time" },
	{ "regression-04", ON_RUN, 0, "a memfd takes splice() as any file does; nothing is executed" },
	{ "event-07", ON_SEPARATE, -500, "an unprivileged socket's buffer: net.core.wmem_max" },
	{ "fork", ON_CORE, 0, "a forked child has a copy of the device, and changes the copy alone" },
	{ "exec", ON_CORE, 0, "a program that is executed has no device" },
	{ "context-06", ON_CORE, -3, "the device keeps two descriptors of an event file, in this process" },
	{ "transport", ON_CORE, 0, "mmap(), splice() and the nodes of User Capabilities are the transports'" },
	{ "faults-wait", ON_SEPARATE, 0, "memory behind userfaultfd is EFAULT, and does not wait" },
};

/*
 * rxe takes receives from a queue in memory that it shares with its client. CREATE_QP returns the queue's mmap offset,
 * which can be mapped only once.
 */
static struct {
	int fd;
	uint64_t offset;
	size_t size;
	void *queue;
} mapped[8];

static struct rxe_queue_buf *rxe_recv_queue(int fd, const struct mminfo *mi)
{
	unsigned int i;

	for (i = 0; i < UV_ARRAY_SIZE(mapped) - 1 && mapped[i].queue; i++)
		if (mapped[i].fd == fd && mapped[i].offset == mi->offset)
			return mapped[i].queue;
	mapped[i].queue = mmap(NULL, mi->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, mi->offset);
	ck_assert_msg(mapped[i].queue != MAP_FAILED, "mmap of the receive queue: %s", answer(-errno));
	mapped[i].fd = fd;
	mapped[i].offset = mi->offset;
	mapped[i].size = mi->size;
	return mapped[i].queue;
}

static void rxe_post_recv(int fd, const struct uv_qp *qp)
{
	const struct rxe_create_qp_resp *resp = (const void *)qp->driver;
	struct rxe_queue_buf *queue = rxe_recv_queue(fd, &resp->rq_mi);
	uint32_t index = queue->producer_index;

	memset(queue->data + ((size_t)index << queue->log2_elem_size), 0, 1u << queue->log2_elem_size);
	__atomic_store_n(&queue->producer_index, (index + 1) & queue->index_mask, __ATOMIC_RELEASE);
}

void close_node(int fd)
{
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(mapped) && mapped[i].queue; i++)
		if (mapped[i].fd == fd)
			munmap(mapped[i].queue, mapped[i].size);
	uv_close(fd);
}

static void command_post_recv(int fd, const struct uv_qp *qp)
{
	struct ib_uverbs_recv_wr wr = {};

	expect_ok(uv_post_recv(fd, UV_WRITE, qp->handle, &wr, 1, NULL, 0, NULL));
}

static struct target targets[] = {
	/* rxe returns the mmap offsets of its queues, and the number of the AH. */
	{ "rxe", RDMA_DRIVER_RXE, ON_RXE, { 16, 32, 8, 24, 16, 8 }, rxe_post_recv },
	{ "hfi1", RDMA_DRIVER_HFI1, ON_HFI1, { 0 }, command_post_recv },
};

/* The sysfs subsystem of the node's device shows what serves it. A node under `uverbsctl run` has no entry there. */
static unsigned int served_by(void)
{
	char path[64], link[256];
	const char *subsystem;
	struct stat st;
	ssize_t len;

	if (uv_node_ops->in_process)
		return ON_CORE | ON_OURS;
	if (stat(uv_node(), &st))
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major(st.st_rdev), minor(st.st_rdev));
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		return ON_RUN | ON_OURS;
	link[len] = 0;
	subsystem = strrchr(link, '/');
	return subsystem && !strcmp(subsystem, "/cuse") ? ON_CUSE | ON_OURS : ON_KERNEL;
}

const struct target *target(void)
{
	static struct target *found;

	if (found)
		return found;
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(targets); i++)
		if (targets[i].driver_id == uv_driver_id())
			found = &targets[i];
	if (!found) {
		fprintf(stderr, "%s: no device of a driver known here (id %u)\n", uv_node(), uv_driver_id());
		exit(2);
	}
	found->where |= served_by();
	if (found->where & ON_CUSE && !getenv("UVERBS_ONE_PROCESS"))
		found->where |= ON_SEPARATE;
	uv_room = found->room;
	return found;
}

const struct choice *choice(const char *rule)
{
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(choices); i++)
		if (!strcmp(choices[i].rule, rule) && (choices[i].where & ~target()->where) == 0)
			return &choices[i];
	return NULL;
}

const char *answer(int ret)
{
	const char *name = ret < 0 ? strerrorname_np(-ret) : NULL;
	static char text[4][32];
	static unsigned int next;

	if (!ret)
		return "success";
	if (name)
		return name;
	next = (next + 1) % UV_ARRAY_SIZE(text);
	snprintf(text[next], sizeof(text[next]), "%d", ret);
	return text[next];
}
