/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Encodes and issues write() commands and ioctl trees. The verbs are in uv_verbs.c. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "uv.h"

/* ---- the node ---------------------------------------------------------------------------------------------------- */

static int node_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int node_close(int fd)
{
	return close(fd) ? -errno : 0;
}

static ssize_t node_write(int fd, const void *bytes, size_t len)
{
	ssize_t ret = write(fd, bytes, len);

	return ret < 0 ? -errno : ret;
}

static int node_ioctl(int fd, unsigned long cmd, const void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

static const struct uv_node_ops system_calls = {
	.open = node_open, .close = node_close, .write = node_write, .ioctl = node_ioctl
};
const struct uv_node_ops *uv_node_ops = &system_calls;

const char *uv_node(void)
{
	const char *node = getenv("UVERBS_NODE");

	return node ? node : "/dev/infiniband/uverbs0";
}

int uv_open(void)
{
	return uv_node_ops->open(uv_node());
}

int uv_close(int fd)
{
	return uv_node_ops->close(fd);
}

/* ---- write() commands -------------------------------------------------------------------------------------------- */

struct ib_uverbs_ex_cmd_hdr *uv_msg_ex_hdr(struct uv_msg *msg)
{
	return (void *)(msg->bytes + sizeof(msg->hdr));
}

void *uv_msg_plain(struct uv_msg *msg, uint32_t command, const void *in, size_t in_len, size_t out_len)
{
	uint8_t *core = msg->bytes + sizeof(msg->hdr);

	if (in_len)
		memcpy(core, in, in_len);
	msg->len = sizeof(msg->hdr) + in_len;
	msg->hdr.command = command;
	msg->hdr.in_words = msg->len / 4;
	msg->hdr.out_words = out_len / 4;
	return core;
}

static size_t words8(size_t len)
{
	return (len + 7) / 8;
}

void *uv_msg_ex(struct uv_msg *msg, uint32_t command, const void *in, size_t in_len, const void *out, size_t out_len)
{
	struct ib_uverbs_ex_cmd_hdr *ex = uv_msg_ex_hdr(msg);
	uint8_t *core = (uint8_t *)(ex + 1);

	memset(core, 0, words8(in_len) * 8);
	if (in_len)
		memcpy(core, in, in_len);
	*ex = (struct ib_uverbs_ex_cmd_hdr){ .response = (uintptr_t)out };
	msg->len = core + words8(in_len) * 8 - msg->bytes;
	msg->hdr.command = command;
	msg->hdr.in_words = words8(in_len);
	msg->hdr.out_words = words8(out_len);
	return core;
}

int uv_write(int fd, const void *bytes, size_t len)
{
	ssize_t ret = uv_node_ops->write(fd, bytes, len);

	if (ret < 0)
		return ret;
	return (size_t)ret == len ? 0 : -EMSGSIZE;
}

int uv_msg_send(int fd, const struct uv_msg *msg)
{
	return uv_write(fd, msg->bytes, msg->len);
}

/*
 * The driver's response directly follows the core's. If the caller wants both, a temporary buffer receives them.
 * Otherwise the command carries the caller's pointer, which a test may have made invalid.
 */
static int cmd_by_write(int fd, const struct uv_cmd *cmd)
{
	bool ex = cmd->command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	size_t core_out = ex ? words8(cmd->out_len) * 8 : cmd->out_len;
	uint8_t *both = cmd->uhw_out_len ? calloc(1, core_out + cmd->uhw_out_len + 8) : NULL;
	void *out = both ? both : cmd->out;
	struct uv_msg *msg = malloc(sizeof(*msg));
	uint8_t *core;
	int ret;

	if (ex) {
		core = uv_msg_ex(msg, cmd->command, cmd->in, cmd->in_len, out, cmd->out_len);
		uv_msg_ex_hdr(msg)->provider_in_words = words8(cmd->uhw_in_len);
		uv_msg_ex_hdr(msg)->provider_out_words = words8(cmd->uhw_out_len);
	} else {
		core = uv_msg_plain(msg, cmd->command, cmd->in, cmd->in_len, cmd->out_len + cmd->uhw_out_len);
		if (out)
			memcpy(core, &(uint64_t){ (uintptr_t)out }, 8);
	}
	if (cmd->uhw_in_len) {
		memcpy(msg->bytes + msg->len, cmd->uhw_in, cmd->uhw_in_len);
		msg->len += ex ? words8(cmd->uhw_in_len) * 8 : cmd->uhw_in_len;
		if (!ex)
			msg->hdr.in_words = msg->len / 4;
	}
	ret = uv_msg_send(fd, msg);
	if (both) {
		memcpy(cmd->out, both, cmd->out_len);
		memcpy(cmd->uhw_out, both + core_out, cmd->uhw_out_len);
	}
	free(both);
	free(msg);
	return ret;
}

static int cmd_by_ioctl(int fd, const struct uv_cmd *cmd)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, cmd->command);
	if (cmd->in_len)
		uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, cmd->in, cmd->in_len);
	if (cmd->out_len)
		uv_attr_out(&tree, UVERBS_ATTR_CORE_OUT, cmd->out, cmd->out_len);
	if (cmd->uhw_in_len)
		uv_attr_in(&tree, UVERBS_ATTR_UHW_IN, cmd->uhw_in, cmd->uhw_in_len);
	if (cmd->uhw_out_len)
		uv_attr_out(&tree, UVERBS_ATTR_UHW_OUT, cmd->uhw_out, cmd->uhw_out_len);
	return uv_ioctl(fd, &tree);
}

int uv_cmd(int fd, enum uv_front front, const struct uv_cmd *cmd)
{
	return uv_front_plain(front) == UV_WRITE ? cmd_by_write(fd, cmd) : cmd_by_ioctl(fd, cmd);
}

/* ---- ioctl trees ------------------------------------------------------------------------------------------------- */

/* An unknown object is EPROTONOSUPPORT with the right driver id, and EINVAL with any other. */
uint16_t uv_driver_id(void)
{
	static int found = -1;
	int fd;

	if (found >= 0)
		return found;
	fd = uv_open();
	for (int id = 0; fd >= 0 && id < 64; id++) {
		struct ib_uverbs_ioctl_hdr hdr = { .length = sizeof(hdr), .object_id = 0xfff, .driver_id = id };

		if (uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, &hdr) == -EPROTONOSUPPORT) {
			found = id;
			break;
		}
	}
	if (fd >= 0)
		uv_close(fd);
	return found < 0 ? 0 : found;
}

void uv_tree_init(struct uv_tree *tree, uint16_t object, uint16_t method)
{
	uint16_t driver_id = uv_driver_id();

	tree->hdr = (struct ib_uverbs_ioctl_hdr){ .object_id = object, .method_id = method, .driver_id = driver_id };
}

struct ib_uverbs_attr *uv_attr(struct uv_tree *tree, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &tree->hdr.attrs[tree->hdr.num_attrs++];

	*attr = (struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
	return attr;
}

struct ib_uverbs_attr *uv_attr_in(struct uv_tree *tree, uint16_t id, const void *data, uint16_t len)
{
	uint64_t value = 0;

	if (len > sizeof(value))
		return uv_attr(tree, id, len, (uintptr_t)data);
	memcpy(&value, data, len);
	return uv_attr(tree, id, len, value);
}

struct ib_uverbs_attr *uv_attr_out(struct uv_tree *tree, uint16_t id, void *data, uint16_t len)
{
	return uv_attr(tree, id, len, (uintptr_t)data);
}

struct ib_uverbs_attr *uv_attr_const(struct uv_tree *tree, uint16_t id, uint64_t value)
{
	return uv_attr(tree, id, sizeof(value), value);
}

struct ib_uverbs_attr *uv_attr_obj(struct uv_tree *tree, uint16_t id, int64_t value)
{
	return uv_attr(tree, id, 0, value);
}

struct ib_uverbs_attr *uv_attr_find(struct uv_tree *tree, uint16_t id)
{
	for (unsigned int i = 0; i < tree->hdr.num_attrs; i++)
		if (tree->hdr.attrs[i].attr_id == id)
			return &tree->hdr.attrs[i];
	return NULL;
}

int uv_ioctl_raw(int fd, unsigned long cmd, const void *arg)
{
	int ret = uv_node_ops->ioctl(fd, cmd, arg);

	return ret < 0 ? ret : 0;
}

int uv_ioctl(int fd, struct uv_tree *tree)
{
	tree->hdr.length = sizeof(tree->hdr) + tree->hdr.num_attrs * sizeof(struct ib_uverbs_attr);
	return uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, tree);
}

/* ---- processes and memory ---------------------------------------------------------------------------------------- */

static void *map(size_t len, int prot, int flags)
{
	void *p = mmap(NULL, len, prot, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		abort();
	}
	return p;
}

void *uv_pages(size_t len, int prot)
{
	return map(len, prot, MAP_PRIVATE);
}

void *uv_shared(size_t len)
{
	return map(len, PROT_READ | PROT_WRITE, MAP_SHARED);
}

void *uv_guard(const void *data, size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE), room = (len + page - 1) / page * page;
	uint8_t *p = uv_pages(room + page, PROT_READ | PROT_WRITE);
	int empty = memfd_create("guard", MFD_CLOEXEC);

	/* A page behind a file's end: unlike a hole, no later mmap() of this process can fill it. */
	if (empty < 0 || mmap(p + room, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0) == MAP_FAILED) {
		perror("guard");
		abort();
	}
	close(empty);
	if (data)
		memcpy(p + room - len, data, len);
	return p + room - len;
}

int uv_in_child(int (*fn)(void *arg), void *arg)
{
	int *ret = uv_shared(sizeof(*ret)), status;
	pid_t pid;

	*ret = -ECHILD;
	pid = fork();
	if (!pid) {
		*ret = fn(arg);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return *ret;
}

struct nobody {
	size_t memlock;
	int (*fn)(void *arg);
	void *arg;
};

static int become_nobody(void *arg)
{
	struct nobody *n = arg;
	struct rlimit limit = { n->memlock, n->memlock };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return -EDOM; /* no device returns it, so the caller's check fails */
	if (!geteuid() && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return -EDOM;
	/*
	 * A process that drops root's ids without an exec is not dumpable, and uverbsd in two processes serves no such
	 * process (docs/security-processes.md). These tests check other rules, so make the process dumpable.
	 */
	if (prctl(PR_SET_DUMPABLE, 1))
		return -EDOM;
	return n->fn(n->arg);
}

int uv_as_nobody(size_t memlock, int (*fn)(void *arg), void *arg)
{
	return uv_in_child(become_nobody, &(struct nobody){ memlock, fn, arg });
}

struct thread_call {
	int (*fn)(void *arg);
	void *arg;
	int ret;
};

static void *thread_main(void *arg)
{
	struct thread_call *call = arg;

	call->ret = call->fn(call->arg);
	return NULL;
}

int uv_in_thread(int (*fn)(void *arg), void *arg)
{
	struct thread_call call = { fn, arg, -ECHILD };
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_main, &call))
		return -ECHILD;
	pthread_join(thread, NULL);
	return call.ret;
}

static int exec_alloc_pd(void *arg)
{
	int fd = *(int *)arg, out[2], ret = -ECHILD;
	char number[16];
	pid_t pid;

	if (pipe(out))
		return -errno;
	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (!pid) {
		fcntl(fd, F_SETFD, 0);
		dup2(out[1], STDERR_FILENO);
		execl("/proc/self/exe", "exec", "--alloc-pd", number, NULL);
		_exit(1);
	}
	close(out[1]);
	if (read(out[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -ECHILD;
	waitpid(pid, NULL, 0);
	return ret;
}

int uv_alloc_pd_after_exec(int fd)
{
	return uv_in_child(exec_alloc_pd, &fd);
}

void uv_exec_main(int argc, char **argv)
{
	uint32_t handle;
	int ret;

	if (argc < 3 || strcmp(argv[1], "--alloc-pd"))
		return;
	ret = uv_alloc_pd(atoi(argv[2]), UV_WRITE, &handle);
	_exit(write(STDERR_FILENO, &ret, sizeof(ret)) != sizeof(ret));
}
