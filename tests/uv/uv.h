/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plain client of the uverbs ABI. It builds write() commands and ioctl attribute trees byte by byte and issues them
 * through struct uv_node_ops: by default with real system calls. It depends on no library and no daemon, so the same
 * program runs against the kernel's ib_uverbs and against ours. It does not check what it sends.
 *
 * Return values: 0 or a negative errno, unless a comment says otherwise.
 */
#ifndef UV_H
#define UV_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UV_EX(command) (IB_USER_VERBS_EX_CMD_##command | IB_USER_VERBS_CMD_FLAG_EXTENDED)
#define UV_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The encodings in which a client can request a verb. */
enum uv_front {
	UV_WRITE, /* write() */
	UV_INVOKE, /* the same command in an INVOKE_WRITE ioctl */
	UV_WRITE_EX, /* the extended command if there is one, else the plain command */
	UV_INVOKE_EX,
	UV_METHOD, /* the ioctl method, if there is one */
	UV_FRONTS,
	UV_PLAIN_FRONTS = 2, /* UV_WRITE and UV_INVOKE */
};

static inline bool uv_front_ex(enum uv_front front)
{
	return front == UV_WRITE_EX || front == UV_INVOKE_EX;
}

/* The plain front that corresponds to front: UV_WRITE or UV_INVOKE. */
static inline enum uv_front uv_front_plain(enum uv_front front)
{
	return front == UV_WRITE || front == UV_WRITE_EX ? UV_WRITE : UV_INVOKE;
}

/* ---- the node ---------------------------------------------------------------------------------------------------- */

/* The system calls on a node. Each returns what the system call does, or a negative errno. */
struct uv_node_ops {
	int (*open)(const char *path); /* returns an fd */
	int (*close)(int fd);
	ssize_t (*write)(int fd, const void *bytes, size_t len);
	int (*ioctl)(int fd, unsigned long cmd, const void *arg);
	bool in_process; /* there is no node: the device is in this process */
};

/* A program whose device is in its own process sets its own: harness.h. */
extern const struct uv_node_ops *uv_node_ops;

/* $UVERBS_NODE, else /dev/infiniband/uverbs0. */
const char *uv_node(void);
/* An fd, or a negative errno. */
int uv_open(void);
int uv_close(int fd);

/* ---- write() commands -------------------------------------------------------------------------------------------- */

enum { UV_MSG_MAX = 1 << 17 };

/* A command as bytes. A test may change the header's fields before it sends the command. */
struct uv_msg {
	size_t len;
	union {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t bytes[UV_MSG_MAX];
	};
};

struct ib_uverbs_ex_cmd_hdr *uv_msg_ex_hdr(struct uv_msg *msg);
/* in begins with the response pointer if the command has one. Returns the core struct within the message. */
void *uv_msg_plain(struct uv_msg *msg, uint32_t command, const void *in, size_t in_len, size_t out_len);
/* Rounds in_len and out_len up to whole words of 8 bytes. Returns the core struct within the message. */
void *uv_msg_ex(struct uv_msg *msg, uint32_t command, const void *in, size_t in_len, const void *out, size_t out_len);
/* Writes the bytes unchanged. -EMSGSIZE: write() took fewer than len. */
int uv_write(int fd, const void *bytes, size_t len);
int uv_msg_send(int fd, const struct uv_msg *msg);

/* A command that uv_cmd() encodes for a front. */
struct uv_cmd {
	uint32_t command;
	const void *in; /* the core struct; write() of a plain command fills in its `response` */
	size_t in_len;
	void *out;
	size_t out_len;
	const void *uhw_in; /* driver data */
	size_t uhw_in_len;
	void *uhw_out;
	size_t uhw_out_len;
};

int uv_cmd(int fd, enum uv_front front, const struct uv_cmd *cmd);

/* ---- ioctl trees ------------------------------------------------------------------------------------------------- */

enum { UV_MAX_ATTRS = 300 };

struct uv_tree {
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t bytes[sizeof(struct ib_uverbs_ioctl_hdr) + UV_MAX_ATTRS * sizeof(struct ib_uverbs_attr)];
	};
};

/* The driver id that the device accepts. The first call finds it by trial. */
uint16_t uv_driver_id(void);
void uv_tree_init(struct uv_tree *tree, uint16_t object, uint16_t method);
/* Each of these adds one mandatory attribute and returns it, so that a test can spoil it. */
struct ib_uverbs_attr *uv_attr(struct uv_tree *tree, uint16_t id, uint16_t len, uint64_t data);
/* Data of 8 bytes or less is stored in the attribute itself. */
struct ib_uverbs_attr *uv_attr_in(struct uv_tree *tree, uint16_t id, const void *data, uint16_t len);
struct ib_uverbs_attr *uv_attr_out(struct uv_tree *tree, uint16_t id, void *data, uint16_t len);
struct ib_uverbs_attr *uv_attr_const(struct uv_tree *tree, uint16_t id, uint64_t value);
/* A handle or an fd. */
struct ib_uverbs_attr *uv_attr_obj(struct uv_tree *tree, uint16_t id, int64_t value);
/* The attribute with this id, or NULL. */
struct ib_uverbs_attr *uv_attr_find(struct uv_tree *tree, uint16_t id);
/* Sets the header's length from the number of attributes, and issues the tree. */
int uv_ioctl(int fd, struct uv_tree *tree);
/* Issues the ioctl with arg unchanged. */
int uv_ioctl_raw(int fd, unsigned long cmd, const void *arg);

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

/* UV_METHOD makes no async fd: *async_fd is -1. */
int uv_get_context(int fd, enum uv_front front, int *async_fd, uint32_t *num_comp_vectors);
int uv_alloc_async_fd(int fd, int *async_fd);
int uv_query_device(int fd, enum uv_front front, struct ib_uverbs_query_device_resp *resp);
int uv_query_port(int fd, enum uv_front front, uint32_t port, struct ib_uverbs_query_port_resp *resp);
/* Returns the number of entries, or a negative errno. */
int uv_query_gid_table(int fd, struct ib_uverbs_gid_entry *entries, unsigned int max);
int uv_query_gid_entry(int fd, uint32_t port, uint32_t index, struct ib_uverbs_gid_entry *entry);

int uv_alloc_pd(int fd, enum uv_front front, uint32_t *handle);
int uv_dealloc_pd(int fd, enum uv_front front, uint32_t handle);

struct uv_mr {
	uint32_t handle, lkey, rkey;
};
int uv_reg_mr(int fd, enum uv_front front, uint32_t pd, const void *addr, uint64_t len, unsigned int access,
	      struct uv_mr *mr);
int uv_reg_mr_at(int fd, enum uv_front front, uint32_t pd, uint64_t start, uint64_t len, uint64_t hca_va,
		 unsigned int access, struct uv_mr *mr);
int uv_dereg_mr(int fd, enum uv_front front, uint32_t handle);

int uv_create_channel(int fd, enum uv_front front, int *channel);

struct uv_cq_attr {
	uint64_t user_handle;
	uint32_t cqe, comp_vector, flags; /* the plain command does not send flags */
	int channel; /* -1: none */
	int event_fd; /* by method only; -1: none */
};
/* 16 entries, no channel. */
extern const struct uv_cq_attr uv_cq_default;
int uv_create_cq(int fd, enum uv_front front, const struct uv_cq_attr *attr, uint32_t *handle, uint32_t *cqe);
int uv_destroy_cq(int fd, enum uv_front front, uint32_t handle, struct ib_uverbs_destroy_cq_resp *resp);
/* Returns the number of completions, or a negative errno. */
int uv_poll_cq(int fd, enum uv_front front, uint32_t cq, unsigned int n, struct ib_uverbs_wc *wc);
int uv_req_notify_cq(int fd, enum uv_front front, uint32_t cq, bool solicited_only);

struct uv_qp_attr {
	uint64_t user_handle;
	uint32_t pd, send_cq, recv_cq;
	struct ib_uverbs_qp_cap cap;
	uint32_t create_flags; /* the plain command does not send them */
	uint8_t type, sq_sig_all;
	int event_fd; /* by method only; -1: none */
};
struct uv_qp {
	uint32_t handle, qpn;
	struct ib_uverbs_qp_cap cap;
	uint64_t driver[8]; /* the driver's response: uv_room.create_qp bytes */
};
/* RC; both queues take 16 work requests of 4 SGEs. */
struct uv_qp_attr uv_qp_attr(uint32_t pd, uint32_t cq);
int uv_create_qp(int fd, enum uv_front front, const struct uv_qp_attr *attr, struct uv_qp *qp);
int uv_destroy_qp(int fd, enum uv_front front, uint32_t handle, uint32_t *events_reported);
int uv_modify_qp(int fd, enum uv_front front, const struct ib_uverbs_modify_qp *attr);
int uv_query_qp(int fd, enum uv_front front, uint32_t handle, struct ib_uverbs_query_qp_resp *resp);

int uv_create_ah(int fd, enum uv_front front, uint32_t pd, const struct ib_uverbs_ah_attr *attr, uint32_t *handle);
int uv_destroy_ah(int fd, enum uv_front front, uint32_t handle);

int uv_post_send(int fd, enum uv_front front, uint32_t qp, const struct ib_uverbs_send_wr *wr, unsigned int num_wr,
		 const struct ib_uverbs_sge *sge, unsigned int num_sge, uint32_t *bad_wr);
int uv_post_recv(int fd, enum uv_front front, uint32_t qp, const struct ib_uverbs_recv_wr *wr, unsigned int num_wr,
		 const struct ib_uverbs_sge *sge, unsigned int num_sge, uint32_t *bad_wr);

/* uv_srq.c; none of these has an extended command. */
struct uv_srq_attr {
	uint64_t user_handle;
	uint32_t pd, max_wr, max_sge, limit;
	uint32_t type, cq, xrcd, tags; /* for uv_create_xsrq() and UV_METHOD */
};
struct uv_srq {
	uint32_t handle, max_wr, max_sge, srqn; /* srqn: XRC, else 0 */
};
/* 16 work requests of 2 SGEs. */
struct uv_srq_attr uv_srq_attr(uint32_t pd);
int uv_create_srq(int fd, enum uv_front front, const struct uv_srq_attr *attr, struct uv_srq *srq);
int uv_create_xsrq(int fd, enum uv_front front, const struct uv_srq_attr *attr, struct uv_srq *srq);
int uv_modify_srq(int fd, enum uv_front front, uint32_t handle, uint32_t mask, uint32_t max_wr, uint32_t limit);
int uv_query_srq(int fd, enum uv_front front, uint32_t handle, struct ib_uverbs_query_srq_resp *resp);
int uv_destroy_srq(int fd, enum uv_front front, uint32_t handle, uint32_t *events_reported);
int uv_alloc_mw(int fd, enum uv_front front, uint32_t pd, uint8_t type, uint32_t *handle, uint32_t *rkey);
int uv_dealloc_mw(int fd, enum uv_front front, uint32_t handle);
int uv_resize_cq(int fd, enum uv_front front, uint32_t handle, uint32_t cqe, uint32_t *got);
int uv_mcast(int fd, enum uv_front front, bool attach, uint32_t qp, const uint8_t gid[16], uint16_t mlid);

/* uv_xrc.c. file -1: a private domain. */
int uv_open_xrcd(int fd, enum uv_front front, int file, uint32_t oflags, uint32_t *xrcd);
int uv_close_xrcd(int fd, enum uv_front front, uint32_t xrcd);
int uv_open_qp(int fd, enum uv_front front, uint32_t xrcd, uint32_t qpn, uint8_t type, uint32_t *qp);

/* Trees of CQ_CREATE and QP_CREATE with every mandatory attribute. Their outputs go to *cqe and *qp. */
void uv_tree_create_cq(struct uv_tree *tree, const struct uv_cq_attr *attr, uint32_t *cqe);
void uv_tree_create_qp(struct uv_tree *tree, const struct uv_qp_attr *attr, struct uv_qp *qp);

/* Bytes of driver data in the responses (rxe: the mmap offsets of its queues). target() sets it. */
struct uv_room {
	size_t create_cq, create_qp, create_ah, create_srq, resize_cq;
	size_t modify_srq; /* driver input: the address for the driver's response */
};
extern struct uv_room uv_room;

/* ---- processes and memory ---------------------------------------------------------------------------------------- */

/* len bytes that end where a page begins whose accesses fault, with a copy of data, or zeroed if data is NULL. */
void *uv_guard(const void *data, size_t len);
/* len bytes of fresh private memory, page aligned, with this protection. */
void *uv_pages(size_t len, int prot);
/* Memory shared with forked children, zeroed. */
void *uv_shared(size_t len);
/* Runs fn in a forked child, which skips exit handlers. Returns fn's result, or -ECHILD if the child died earlier. */
int uv_in_child(int (*fn)(void *arg), void *arg);
/* The same in a child without privileges and with this RLIMIT_MEMLOCK. -EDOM: the child could not drop them. */
int uv_as_nobody(size_t memlock, int (*fn)(void *arg), void *arg);
/* Runs fn in another thread of this process and returns its result. */
int uv_in_thread(int (*fn)(void *arg), void *arg);
/* Forks and executes `program --alloc-pd FD`. Returns the result of its ALLOC_PD by write() on the inherited fd. */
int uv_alloc_pd_after_exec(int fd);
/* main() calls this first. If the arguments are --alloc-pd FD, it does the exec'd program's part and exits. */
void uv_exec_main(int argc, char **argv);

#endif
