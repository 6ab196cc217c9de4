/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between the core and a backend. A backend carries out verbs on checked arguments; struct uvd_backend
 * follows struct ib_device_ops. A backend knows no files, handles or wire structs: the core (src/objects/) has looked
 * up every handle, made the checks of the kernel's core, and holds references to the objects of the call. The backend
 * does what the kernel leaves to drivers: the state machine of a QP, the upper limits of queues, the meaning of keys.
 *
 * Attributes are the structs of libibverbs, so that a backend for a real adapter can pass them on.
 *
 * Memory: the core allocates each object, zeroed, with `size_*` bytes; the backend's struct begins with the core's. The
 * core frees the object after the matching destroy returned 0, and after a failed creation, which must leave nothing
 * behind.
 *
 * Return values: an operation returns 0 or a negative errno, unless its comment says otherwise.
 *
 * Locking: operations run on any thread and in parallel, also on the same object. The core only guarantees that a
 * destroy runs alone on its object, after all objects that refer to it were destroyed (usecnt).
 */
#ifndef UVERBSD_BACKEND_H
#define UVERBSD_BACKEND_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <uverbsd/config.h>

struct uvd_account; /* the user whose limits memory is charged to, see below */
struct uvd_backend;
struct uvd_fabric; /* the network of the soft devices of one engine (src/backends/soft) */
struct uvd_log;
struct uvd_queue; /* a queue in memory that a client shares with the engine, <uverbsd/queue.h> */
struct uvd_mm; /* a client's address space, see below */

/*
 * What a backend provides behind a device: struct ib_device. The core owns it, and has set all but priv before open().
 */
struct uvd_ibdev {
	const struct uvd_backend *ops;
	struct uvd_device_config config;
	struct uvd_fabric *fabric;
	struct uvd_log *log;
	/*
	 * ib_dispatch_event(): posts an event of a port or of the device to all open files. Any thread may call it; it
	 * takes locks of the core, so the caller holds none of its own.
	 */
	void (*event_handler)(struct uvd_ibdev *dev, enum ibv_event_type type, uint8_t port);
	/*
	 * ib_create_ucap() and ib_remove_ucap(), for any thread, without a lock held. create_ucap() creates the User
	 * Capability of this name and its node, or takes one more reference to it. remove_ucap() puts a reference; the
	 * core puts those that are left when the device is removed. create_ucap() returns the capability's bit in
	 * struct uvd_context.ucaps, or -EINVAL (not a valid name), -ENOSPC (too many names), -EOVERFLOW (too many
	 * references), or the errno of creating the node.
	 */
	int (*create_ucap)(struct uvd_ibdev *dev, const char *name);
	void (*remove_ucap)(struct uvd_ibdev *dev, const char *name);
	void *owner; /* for the core */
	void *priv; /* for the backend, from open() to close() */
};

/* The context of one open file: struct ib_ucontext. */
struct uvd_context {
	struct uvd_ibdev *dev;
	struct uvd_account *account; /* the opener's: the objects of the context are charged to it; NULL: to nobody */
	uint64_t ucaps; /* the User Capabilities of the context, by bits that create_ucap() returned (enabled_caps) */
};

/*
 * A protection domain: struct ib_pd.
 *
 * Here and below, usecnt counts the objects that refer to this one. The core refuses to destroy an object whose usecnt
 * is not 0 (EBUSY). Only the core writes usecnt, and all other fields that no comment gives to the backend.
 */
struct uvd_pd {
	struct uvd_context *context;
	atomic_int usecnt;
};

/*
 * An XRC domain: struct ib_xrcd. A target QP reaches the SRQs of its domain, no matter which client owns them. Open
 * files share a domain, so it belongs to the device and not to a context.
 */
struct uvd_xrcd {
	struct uvd_ibdev *dev;
	atomic_int usecnt; /* counts target QPs, SRQs, and the handles of a shared domain */
	void *owner; /* for the core */
};

/* Memory that a client registered: struct ib_umem. */
struct uvd_umem {
	struct uvd_mm *mm; /* a reference; NULL: no memory is registered */
	uint64_t addr, length; /* bytes, in the client's address space */
	uint64_t pages; /* charged to the client's RLIMIT_MEMLOCK; 0: registered on demand */
	bool writable;
	bool shared; /* other address spaces may have mapped this memory; uvd_mm_find() says where it is */
};

/* The place of a byte of client memory, which is the same in every address space that has mapped it. */
struct uvd_mm_place {
	uint64_t space[2]; /* shared: device and inode of the file; else the address space, and 0 */
	uint64_t offset; /* bytes: in the file; else the address */
};

/* Device memory that a client allocated: struct ib_dm. Clients access it by regions of it (reg_dm_mr). */
struct uvd_dm {
	struct uvd_context *context;
	atomic_int usecnt;
	uint64_t length; /* bytes */
	uint32_t alignment; /* as the client gave it, unchecked; for libibverbs log2 of bytes */
};

/* How the device should access the memory of a region: struct ib_dmah. */
struct uvd_dmah {
	struct uvd_context *context;
	atomic_int usecnt;
	bool has_cpu_id, has_mem_type, has_ph;
	uint32_t cpu_id;
	uint8_t mem_type; /* for PCIe TLP processing hints: 0 volatile, 1 persistent */
	uint8_t ph; /* processing hint, 2 bits */
};

/*
 * A memory region: struct ib_mr. Its memory is in one of three places: in umem; in dm (then umem is empty, and iova is
 * 0); or in a client's dma-buf (then umem is empty).
 */
struct uvd_mr {
	struct uvd_pd *pd;
	struct uvd_umem umem;
	struct uvd_dm *dm; /* or NULL */
	uint64_t dm_offset; /* bytes, in dm */
	struct uvd_dmah *dmah; /* or NULL */
	bool is_dmabuf;
	uint64_t dmabuf_offset; /* bytes */
	uint64_t iova; /* the address of the first byte in work requests and for peers */
	uint64_t length; /* bytes */
	unsigned int access; /* enum ibv_access_flags */
	uint32_t lkey, rkey; /* set by the backend */
};

/*
 * A memory window: struct ib_mw. A bind (a work request; for type 1 windows a call) gives its rkey access to a part of
 * a region.
 */
struct uvd_mw {
	struct uvd_pd *pd;
	enum ibv_mw_type type;
	uint32_t rkey; /* set by the backend */
};

/* An address handle: struct ib_ah. */
struct uvd_ah {
	struct uvd_pd *pd;
	struct ibv_ah_attr attr;
};

/* A completion queue: struct ib_cq. */
struct uvd_cq {
	struct uvd_context *context;
	atomic_int usecnt;
	atomic_int cqe; /* entries: the client's wish, then set by the backend, also by concurrent resizes */
	unsigned int comp_vector;
	uint32_t flags; /* enum ibv_create_cq_attr_flags */
	/*
	 * The backend calls these without holding any of its locks; comp_handler once for each time the CQ was armed.
	 */
	void (*comp_handler)(struct uvd_cq *cq);
	void (*event_handler)(struct uvd_cq *cq, enum ibv_event_type type);
	void *owner; /* for the core */
	struct uvd_umem umem; /* the client's buffer, for create_cq_umem; else empty */
	struct uvd_queue *queue; /* the mapped queue; NULL: the client polls by calls */
};

/*
 * A counters object: struct ib_counters. usecnt counts the flows and QPs that are bound to it. The backend decides what
 * it counts.
 */
struct uvd_counters {
	struct uvd_context *context;
	atomic_int usecnt;
};

/* Counts the completions of QPs: struct ib_comp_cntr. usecnt counts its attachments to QPs, one for each operation. */
struct uvd_comp_cntr {
	struct uvd_context *context;
	atomic_int usecnt;
	_Atomic uint64_t values[2]; /* successes, errors; for the backend (src/backends/comp_cntr.h) */
};

/*
 * The operations that a completion counter can count: numbers of the bits IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_* of an
 * attach mask.
 */
enum uvd_comp_cntr_op {
	UVD_COMP_CNTR_SEND,
	UVD_COMP_CNTR_RECV,
	UVD_COMP_CNTR_RDMA_READ,
	UVD_COMP_CNTR_REMOTE_RDMA_READ,
	UVD_COMP_CNTR_RDMA_WRITE,
	UVD_COMP_CNTR_REMOTE_RDMA_WRITE,
	UVD_COMP_CNTR_OPS,
};

/* The completion counters of a device, as a query returns them. */
struct uvd_comp_cntr_caps {
	uint32_t max_counters;
	uint64_t max_value;
	uint32_t supported_qp_attach_ops; /* bits: 1 << enum uvd_comp_cntr_op */
};

/* A shared receive queue: struct ib_srq. */
struct uvd_srq {
	struct uvd_pd *pd;
	enum ibv_srq_type srq_type; /* -EOPNOTSUPP if the backend lacks it, as with the kernel's drivers */
	struct uvd_cq *cq; /* XRC and TM: the CQ of its receives; else NULL */
	struct uvd_xrcd *xrcd; /* XRC; else NULL */
	uint32_t max_num_tags; /* TM */
	uint32_t srq_num; /* XRC: set by the backend, 24 bits */
	atomic_int usecnt;
	struct ibv_srq_attr attr; /* the client's wish, then set by create_srq */
	struct uvd_queue *queue; /* the mapped queue; NULL: the client posts by calls */
	void (*event_handler)(struct uvd_srq *srq, enum ibv_event_type type);
	void *owner;
};

/* A work queue: struct ib_wq. QPs share such receive queues by an indirection table. */
struct uvd_wq {
	struct uvd_pd *pd;
	struct uvd_cq *cq;
	atomic_int usecnt;
	enum ibv_wq_type wq_type;
	_Atomic uint32_t state; /* enum ibv_wq_state; the backend writes it. RESET at first */
	uint32_t wq_num; /* set by the backend */
	void (*event_handler)(struct uvd_wq *wq, enum ibv_event_type type);
	void *owner;
};

/* An indirection table, which spreads packets over work queues: struct ib_rwq_ind_table. */
struct uvd_rwq_ind_table {
	struct uvd_context *context;
	atomic_int usecnt;
	struct uvd_wq **ind_tbl; /* 1 << log_ind_tbl_size entries; a work queue may occur more than once */
	uint32_t log_ind_tbl_size;
	uint32_t ind_tbl_num; /* set by the backend */
};

/* The core passes it to create_qp, and query_qp returns it: struct ib_qp_init_attr. */
struct uvd_qp_init_attr {
	struct uvd_cq *send_cq, *recv_cq;
	struct uvd_srq *srq;
	/* Or NULL. With a table there is no recv_cq and no srq, and send_cq only if the QP can send. */
	struct uvd_rwq_ind_table *rwq_ind_tbl;
	struct ibv_qp_cap cap; /* the client's wish, then set by create_qp */
	enum ibv_qp_type qp_type;
	bool sq_sig_all;
	uint32_t create_flags;
};

/*
 * A queue pair: struct ib_qp. An IBV_QPT_XRC_RECV has no PD and no CQs: it uses those of the SRQ that a request names.
 */
struct uvd_qp {
	struct uvd_pd *pd; /* IBV_QPT_XRC_RECV: NULL */
	struct uvd_xrcd *xrcd; /* IBV_QPT_XRC_RECV, else NULL */
	struct uvd_cq *send_cq, *recv_cq; /* IBV_QPT_XRC_SEND: no recv_cq */
	struct uvd_srq *srq;
	struct uvd_rwq_ind_table *rwq_ind_tbl;
	struct uvd_queue *sq, *rq; /* the mapped queues; NULL: the client posts by calls */
	struct uvd_account *account; /* pays for the QP's memory; valid as long as the QP, even after its context */
	enum ibv_qp_type qp_type;
	atomic_int usecnt;
	atomic_int flows; /* the part of usecnt that counts flows */
	uint32_t qp_num; /* set by the backend, 24 bits */
	uint8_t port; /* the port that modify_qp set; 0: none yet. Only the core uses it */
	/*
	 * The counter of each enum uvd_comp_cntr_op, or NULL. An attach sets it at most once; it stays until the QP is
	 * destroyed.
	 */
	struct uvd_comp_cntr *_Atomic comp_cntr[UVD_COMP_CNTR_OPS];
	struct uvd_counters *_Atomic counters; /* the counters object that the QP is bound to, or NULL; also set once */
	void (*event_handler)(struct uvd_qp *qp, enum ibv_event_type type);
	void *owner;
};

/*
 * What a flow does to packets (encryption, other headers): struct ib_flow_action. The common ABI can only destroy a
 * flow action. A driver method creates it, and allocates it as the core would.
 */
struct uvd_flow_action {
	struct uvd_context *context;
	atomic_int usecnt; /* counts the flows */
};

/*
 * The values of one layer's headers, or the mask of the bits to compare. If the client's filter was shorter, the rest
 * is zero.
 */
union uvd_flow_filter {
	struct ibv_flow_eth_filter eth;
	struct ibv_flow_ipv4_ext_filter ipv4;
	struct ibv_flow_ipv6_filter ipv6; /* flow_label within 20 bits */
	struct ibv_flow_tcp_udp_filter tcp_udp;
	struct ibv_flow_tunnel_filter tunnel; /* tunnel_id within 24 bits */
	struct ibv_flow_esp_filter esp;
	struct ibv_flow_gre_filter gre;
	struct ibv_flow_mpls_filter mpls;
};

/* One spec of a flow: a layer that packets must match, or an action for packets that match. */
struct uvd_flow_spec {
	uint32_t type; /* enum ibv_flow_spec_type; all layers but VXLAN may have IBV_FLOW_SPEC_INNER */
	union {
		struct {
			union uvd_flow_filter val, mask;
		};
		uint32_t tag_id; /* ACTION_TAG */
		struct uvd_flow_action *action; /* ACTION_HANDLE */
		struct uvd_counters *counters; /* ACTION_COUNT */
	};
};

/*
 * A rule that steers packets to a QP of type UD or RAW_PACKET: struct ib_flow. The core sets all fields, which are
 * constant.
 */
struct uvd_flow {
	struct uvd_qp *qp;
	uint32_t type; /* enum ibv_flow_attr_type; the client's value, unchecked */
	uint32_t flags; /* enum ibv_flow_flags: DONT_TRAP (not with ALL_DEFAULT and MC_DEFAULT), EGRESS */
	uint16_t priority;
	uint8_t port;
	unsigned int num_specs; /* at most 10; the backend checks whether they fit together */
	struct uvd_flow_spec *specs; /* valid until the flow is destroyed */
};

/* A send request. Lists are linked in the order of posting. Everything they point to is valid during the call only. */
struct uvd_send_wr {
	struct uvd_send_wr *next;
	uint64_t wr_id;
	const struct ibv_sge *sg_list;
	int num_sge;
	const void *inline_data; /* IBV_SEND_INLINE: the data, which the core has read from the client; else NULL */
	uint32_t inline_len; /* bytes */
	enum ibv_wr_opcode opcode;
	unsigned int send_flags; /* enum ibv_send_flags */
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
	};
	uint64_t remote_addr; /* RDMA and atomics */
	uint32_t rkey;
	uint64_t compare_add, swap;
	struct uvd_ah *ah; /* UD */
	uint32_t remote_qpn, remote_qkey;
	uint32_t remote_srqn; /* IBV_QPT_XRC_SEND. POST_SEND has no field for it: 0 there */
	/*
	 * IBV_WR_BIND_MW. POST_SEND has no fields for it; mapped queues name the window and the region by keys. rkey is
	 * the window's new key. A length of 0 unbinds a window of type 1.
	 */
	struct {
		struct uvd_mw *mw; /* NULL: keys name the window and the region, unchecked */
		struct uvd_mr *mr;
		uint64_t addr, length; /* bytes */
		unsigned int access; /* enum ibv_access_flags */
		uint32_t mw_rkey, mr_lkey; /* if mw is NULL */
	} bind;
};

/* A receive request. Lists as above. */
struct uvd_recv_wr {
	struct uvd_recv_wr *next;
	uint64_t wr_id;
	const struct ibv_sge *sg_list;
	int num_sge;
};

/*
 * The thread that carries out a struct uvd_work. A client can block it in the client's memory without limit. The
 * backend's watcher thread reports that by held_up() and given_up(), at most once each while one work runs. It calls
 * them under locks of the backend, so they must return at once. Any of the functions may be NULL.
 */
struct uvd_worker {
	/*
	 * Called by the worker itself before long work: answers the client's call, unless it has been answered. Caller
	 * holds no lock.
	 */
	void (*answer)(struct uvd_worker *worker);
	/* The worker has been waiting for a while: another thread may take over what it would do next. */
	void (*held_up)(struct uvd_worker *worker);
	/*
	 * The backend has given up the transfer. The thread stays lost until the memory that is charged to this account
	 * answers.
	 */
	void (*given_up)(struct uvd_worker *worker, struct uvd_account *account);
};

/*
 * The rest of a call, for shortly before or after its answer. The core calls run() once, on any thread, with none of
 * its locks held.
 */
struct uvd_work {
	void (*run)(void *arg, struct uvd_worker *worker); /* NULL: no work. worker: the calling thread, or NULL */
	void *arg;
};

/* The result of rereg_mr. */
enum uvd_rereg { UVD_REREG_CHANGED, UVD_REREG_NEW };

/* The operations of a backend. See the rules at the top of this file. */
struct uvd_backend {
	const char *name;
	/* Bytes of each object, beginning with the core's struct. 0: the backend has no such objects. */
	size_t size_context, size_pd, size_xrcd, size_mr, size_mw, size_ah, size_cq, size_srq, size_qp;
	size_t size_wq, size_rwq_ind_table, size_flow;
	size_t size_dm, size_dmah, size_counters, size_comp_cntr;

	/* Begin and end of the device. close() comes after the last object and the last call. Both may be NULL. */
	int (*open)(struct uvd_ibdev *dev);
	void (*close)(struct uvd_ibdev *dev);

	int (*query_device)(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr);
	/*
	 * A port went down or came up. query_port() returns the new state already. The core calls this under the
	 * device's port_lock, and posts the event to the clients itself. May be NULL.
	 */
	void (*port_changed)(struct uvd_ibdev *dev, uint8_t port, bool up);
	/* The core has checked that port is from 1 to num_ports. */
	int (*query_port)(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr);
	/* Returns -EINVAL if index is beyond the table, -ENODATA if the slot is empty. */
	int (*query_gid)(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry);

	int (*alloc_context)(struct uvd_context *context);
	void (*dealloc_context)(struct uvd_context *context);

	int (*alloc_pd)(struct uvd_pd *pd);
	int (*dealloc_pd)(struct uvd_pd *pd);

	/* The core has charged mr->umem before reg_mr, and uncharges it after dereg_mr. The backend sets the keys. */
	int (*reg_mr)(struct uvd_mr *mr);
	int (*dereg_mr)(struct uvd_mr *mr);
	/*
	 * Changes mr. `to` describes the complete new MR; `flags` (enum ibv_rereg_mr_flags) says which parts differ.
	 * With IBV_REREG_MR_CHANGE_TRANSLATION to->umem is charged beside the old one. No other call uses mr meanwhile.
	 * Returns: UVD_REREG_CHANGED: the backend changed pd, access, iova, length and keys of mr, and exchanged its
	 * umem with to's, which the core uncharges. UVD_REREG_NEW (only with TRANSLATION): `to` is a registered region
	 * with keys of its own; the core puts it in the place of mr, and then calls dereg_mr(mr). A negative errno:
	 * nothing has changed.
	 */
	int (*rereg_mr)(struct uvd_mr *mr, int flags, struct uvd_mr *to);

	int (*alloc_xrcd)(struct uvd_xrcd *xrcd);
	int (*dealloc_xrcd)(struct uvd_xrcd *xrcd);

	/* mw->type is set; the backend sets the first rkey. */
	int (*alloc_mw)(struct uvd_mw *mw);
	int (*dealloc_mw)(struct uvd_mw *mw);

	int (*create_ah)(struct uvd_ah *ah);
	int (*destroy_ah)(struct uvd_ah *ah);
	int (*query_ah)(struct uvd_ah *ah, struct ibv_ah_attr *attr);

	/* Returns -EINVAL if cq->cqe is 0 or beyond the limit, as the kernel's drivers do. */
	int (*create_cq)(struct uvd_cq *cq);
	int (*destroy_cq)(struct uvd_cq *cq);
	/* Moves at most n completions to wc. Returns their number, or a negative errno. Must not allocate memory. */
	int (*poll_cq)(struct uvd_cq *cq, int n, struct ibv_wc *wc);
	/* Arms the CQ for the next completion, or for the next solicited one. */
	int (*req_notify_cq)(struct uvd_cq *cq, bool solicited_only);
	/* Returns -EINVAL if cqe is 0, beyond the limit, or less than the number of completions in the CQ. */
	int (*resize_cq)(struct uvd_cq *cq, int cqe);

	int (*create_srq)(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct uvd_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct uvd_srq *srq);
	/* As post_recv. */
	int (*post_srq_recv)(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);

	/*
	 * Only adapters with receive-side scaling have the operations on WQs and tables. wq's pd, cq and type are set;
	 * the type is the client's, unchecked. create_wq rounds max_wr and max_sge of init up. init's pd, cq and
	 * wq_context are NULL.
	 */
	int (*create_wq)(struct uvd_wq *wq, struct ibv_wq_init_attr *init);
	/*
	 * attr->attr_mask says which attributes the client set. curr_wq_state and wq_state are always filled in, with
	 * valid states. Returns -EINVAL if there is no such transition, or if curr_wq_state is not the WQ's state.
	 */
	int (*modify_wq)(struct uvd_wq *wq, const struct ibv_wq_attr *attr);
	int (*destroy_wq)(struct uvd_wq *wq);
	int (*create_rwq_ind_table)(struct uvd_rwq_ind_table *table);
	int (*destroy_rwq_ind_table)(struct uvd_rwq_ind_table *table);

	/* qp's pd, CQs, SRQ, mapped queues and type are set. The backend sets qp_num, and rounds init->cap up. */
	int (*create_qp)(struct uvd_qp *qp, struct uvd_qp_init_attr *init);
	/* The backend checks the transition, as drivers do by ib_modify_qp_is_ok(): see uvd_modify_qp_is_ok(). */
	int (*modify_qp)(struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask);
	/* Fills attr, and the cap and sq_sig_all of init that the QP was created with. */
	int (*query_qp)(struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init);
	int (*destroy_qp)(struct uvd_qp *qp);
	/* Only adapters that steer packets have operations on flows. */
	int (*create_flow)(struct uvd_flow *flow);
	int (*destroy_flow)(struct uvd_flow *flow);
	int (*destroy_flow_action)(struct uvd_flow_action *action);
	/*
	 * Posts a list. On an error *bad is the first request that was not posted; those before it are. wr may be NULL:
	 * then the call only checks whether the QP's state accepts requests (-EINVAL if not). *work is empty; the
	 * backend may set it, to carry out later what was posted.
	 */
	int (*post_send)(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
			 struct uvd_work *work);
	/* Posts a list. On an error *bad is the first request that was not posted; those before it are. */
	int (*post_recv)(struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
	int (*attach_mcast)(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);

	/* ---- operations of few adapters: any of these may be NULL ---- */

	/*
	 * There may be new requests in the QP's mapped send queue: sets *work, which is empty, to carry them out.
	 * Returns -EINVAL if the QP's state accepts no requests. A backend without this function does not support
	 * mapped queues.
	 */
	int (*ring_doorbell)(struct uvd_qp *qp, struct uvd_work *work);
	/*
	 * Replace the mapped queue of a CQ or SRQ by *queue, which is empty. The backend moves the entries that wait in
	 * the old queue, sets cqe or attr.max_wr, and returns the old queue in *queue; the core frees it. Returns
	 * -EINVAL, with nothing changed, if the entries do not fit.
	 */
	int (*replace_cq_queue)(struct uvd_cq *cq, struct uvd_queue **queue);
	int (*replace_srq_queue)(struct uvd_srq *srq, struct uvd_queue **queue);

	/* The core has filled in the response already; the backend can only refuse. */
	int (*query_context)(struct uvd_context *context);
	/* Sets *speed to the speed of the port, in units of 100 Mb/s. port is as for query_port. */
	int (*query_port_speed)(struct uvd_ibdev *dev, uint8_t port, uint64_t *speed);
	/* Moderation: a completion event waits for count completions, or for period microseconds. */
	int (*modify_cq)(struct uvd_cq *cq, uint16_t count, uint16_t period);
	/*
	 * As create_cq, with the queue in the client's memory cq->umem, which stays charged until after destroy_cq. For
	 * a dma-buf only the length of cq->umem is set.
	 */
	int (*create_cq_umem)(struct uvd_cq *cq);

	/* dm's length and alignment are set, unchecked. */
	int (*alloc_dm)(struct uvd_dm *dm);
	int (*dealloc_dm)(struct uvd_dm *dm);
	/*
	 * mr->dm, dm_offset and length are set, and lie within dm. All such regions are zero based. dereg_mr ends the
	 * region.
	 */
	int (*reg_dm_mr)(struct uvd_mr *mr);
	/* mr->dmabuf_offset and length are set, and lie within the dma-buf at this moment. dereg_mr ends the region. */
	int (*reg_dmabuf_mr)(struct uvd_mr *mr);
	/*
	 * flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH or 0. The addresses and keys in sg_list are the client's, unchecked.
	 * Returns -EOPNOTSUPP for an advice that the backend does not know.
	 */
	int (*advise_mr)(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			 const struct ibv_sge *sg_list, unsigned int num_sge);
	int (*alloc_dmah)(struct uvd_dmah *dmah);
	int (*dealloc_dmah)(struct uvd_dmah *dmah);
	/*
	 * Sets *length to the bytes of device memory that the context may map at this page offset. Returns -EINVAL if
	 * there are none.
	 */
	int (*pgoff_to_mmap_entry)(struct uvd_context *context, uint64_t pgoff, uint64_t *length);

	int (*create_counters)(struct uvd_counters *counters);
	int (*destroy_counters)(struct uvd_counters *counters);
	/* Fills values, num numbers which are zeroed. flags: IB_UVERBS_READ_COUNTERS_PREFER_CACHED or 0. */
	int (*read_counters)(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);

	/* Returns 0 if the counters object can count what reaches the QP. Then the core sets qp->counters. */
	int (*bind_counters)(struct uvd_qp *qp, struct uvd_counters *counters);

	int (*create_comp_cntr)(struct uvd_comp_cntr *cntr);
	int (*destroy_comp_cntr)(struct uvd_comp_cntr *cntr);
	/*
	 * entry: 0 successes, 1 errors. op: 0 sets the value, 1 adds it. Both are the client's; the backend returns
	 * -EINVAL for others.
	 */
	int (*modify_comp_cntr)(struct uvd_comp_cntr *cntr, uint32_t entry, uint32_t op, uint64_t value);
	int (*read_comp_cntr)(struct uvd_comp_cntr *cntr, uint32_t entry, uint64_t *value);
	/*
	 * Returns 0 if the counter can count these operations (bits: 1 << enum uvd_comp_cntr_op). Then the core sets
	 * qp->comp_cntr.
	 */
	int (*qp_attach_comp_cntr)(struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask);
	int (*query_comp_cntr_caps)(struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps);
};

/* Is this the address of a multicast group, IPv6 or IPv4-mapped (rdma_is_multicast_addr())? */
static inline bool uvd_gid_is_multicast(const union ibv_gid *gid)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, 0xff };

	return gid->raw[0] == 0xff || (!memcmp(gid->raw, ipv4, sizeof(ipv4)) && gid->raw[12] >> 4 == 0xe);
}

/*
 * Does the InfiniBand state table allow this transition of this type of QP with this attribute mask (IBTA 10.3,
 * ib_modify_qp_is_ok())? For backends that run the state machine themselves.
 */
bool uvd_modify_qp_is_ok(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type, int mask);

/* ---- charging memory to clients ---------------------------------------------------------------------------------- */

/*
 * A backend charges the memory that it allocates for an object beside the object's own struct (a ring at its full
 * size), and uncharges it when it frees that memory. Returns 0, or -ENOMEM if the user would exceed a limit. With an
 * account of NULL nothing is charged. May be called from any thread; takes no lock.
 */
int uvd_charge_bytes(struct uvd_account *account, uint64_t bytes);
void uvd_uncharge_bytes(struct uvd_account *account, uint64_t bytes);

/* ---- a client's memory ------------------------------------------------------------------------------------------- */

/*
 * An address space of a client. It can be accessed between the client's calls, too, until the last process leaves it.
 * An access can block for as long as the client likes (userfaultfd, FUSE), so the caller holds no lock that another
 * client needs.
 */
struct uvd_mm *uvd_mm_ref(struct uvd_mm *mm);
void uvd_mm_put(struct uvd_mm *mm);
/* Returns false if all processes of the address space have exited, or left it by exec. */
bool uvd_mm_alive(struct uvd_mm *mm);
/*
 * Copy exactly len bytes. Return 0, or -EFAULT: then some may have been copied. They only access the address space that
 * registered the memory, never a process that reused its pid or the program after an exec. They ignore page protection,
 * as access to pinned pages does.
 */
int uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len);
int uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len);
/* The same for num pieces of the client's memory, which are contiguous in dst or src. */
int uvd_mm_readv(struct uvd_mm *mm, void *dst, const struct iovec *src, unsigned int num);
int uvd_mm_writev(struct uvd_mm *mm, const struct iovec *dst, unsigned int num, const void *src);
/*
 * A view: the engine's own mapping of a region's memory, so that a transfer takes one copy and not two. It exists only
 * for memory that the client has mapped shared from a file without a disk (memfd, SysV, tmpfs, hugetlbfs). It stays
 * valid as pinned pages would, even if the client maps something else there. But the file can be truncated, which
 * raises SIGBUS: so only system calls and uvd_mm_view_copy() may access it.
 */
struct uvd_mm_view;
/* Returns a reference to the view of a region, or NULL if there cannot be one. Can block as uvd_mm_read() can. */
struct uvd_mm_view *uvd_mm_view_get(const struct uvd_umem *umem);
struct uvd_mm_view *uvd_mm_view_ref(struct uvd_mm_view *view);
void uvd_mm_view_put(struct uvd_mm_view *view);
/* Returns where an address of the region lies in the view. */
void *uvd_mm_view_at(const struct uvd_mm_view *view, uint64_t addr);
/* Is the client's mapping writable? */
bool uvd_mm_view_writable(const struct uvd_mm_view *view);
/*
 * Copies len bytes; dst, src or both are in a view. Returns 0, or -EFAULT if the file has become shorter: then some may
 * have been copied.
 */
int uvd_mm_view_copy(void *dst, const void *src, size_t len);
/*
 * For memory that was registered on demand: returns 0 if the client itself may read (write) all of [addr, addr + len)
 * now, else -EFAULT. Can block as uvd_mm_read() can.
 */
int uvd_mm_check(struct uvd_mm *mm, uint64_t addr, size_t len, bool write);
/*
 * Sets *place to the place of a byte of a region's memory. Returns 0, or -EFAULT if nothing is mapped there. Can block
 * as uvd_mm_read() can.
 */
int uvd_mm_find(const struct uvd_umem *umem, uint64_t addr, struct uvd_mm_place *place);

/* ---- queries that backends without an adapter answer from the configuration (src/backends/config.c) -------------- */

int uvd_config_query_device(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr);
int uvd_config_query_port(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr);
int uvd_config_query_port_speed(struct uvd_ibdev *dev, uint8_t port, uint64_t *speed);
int uvd_config_query_gid(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry);

extern const struct uvd_backend uvd_backend_null, uvd_backend_soft;
/* Returns the backend of this name, or NULL. */
const struct uvd_backend *uvd_backend_find(const char *name);
/* Returns backend number i, from 0, or NULL after the last one. */
const struct uvd_backend *uvd_backend_at(unsigned int i);

/*
 * Creates the network of the soft devices of one engine, InfiniBand and Ethernet. The log must outlive it. Returns NULL
 * if there is no memory.
 */
struct uvd_fabric *uvd_fabric_new(struct uvd_log *log);
/*
 * Sets how many of a user's threads may work at the same time, each for another QP. Threads that are held up in a
 * client's memory do not count. The default is 1. Call it before the first device is opened.
 */
void uvd_fabric_set_threads(struct uvd_fabric *fabric, unsigned int most);
/*
 * Frees the network after its last device was closed. If a thread is still blocked in a client's memory, it is leaked.
 * NULL is allowed.
 */
void uvd_fabric_free(struct uvd_fabric *fabric);

#endif
