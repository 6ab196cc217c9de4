/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A backend carries out verbs on checked arguments. It knows nothing of files, handles or wire structs: the core
 * (src/objects/) has looked every handle up, checked what the kernel's core checks, and holds the references that keep
 * the objects of a call alive. What the kernel leaves to the driver is left to the backend: the state machine of a QP,
 * the upper limits of queues, the meaning of keys. It follows struct ib_device_ops.
 *
 * Attributes are libibverbs' own structs, so that a backend on a real adapter can hand them on.
 *
 * Memory: the core allocates every object, `size_*` bytes, zeroed; the backend's struct begins with the core's. The core
 * frees it after the matching destroy returned 0 (or when creation failed: then the backend keeps nothing).
 * Return values: 0 or a negative errno.
 * Locking: calls on different objects run in parallel on any thread. The core makes sure that a destroy runs alone on
 * its object and after all objects that refer to it are gone (usecnt), and nothing else.
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

struct uvd_account; /* who pays for memory, see below */
struct uvd_backend;
struct uvd_fabric; /* what the devices of one engine share (src/backends/soft) */
struct uvd_log;
struct uvd_queue; /* memory that a client shares with us, <uverbsd/queue.h> */
struct uvd_mm; /* a client's memory, see below */

struct uvd_ibdev {
	const struct uvd_backend *ops;
	struct uvd_device_config config;
	struct uvd_fabric *fabric;
	struct uvd_log *log;
	/* Set by the core before ops->open(). May be called from any thread, with no lock of the core held or needed. */
	void (*event_handler)(struct uvd_ibdev *dev, enum ibv_event_type type, uint8_t port);
	/*
	 * The same of these: ib_create_ucap() and ib_remove_ucap(). create: the User Capability of that name exists, with its
	 * node, until it was removed as often as created; what is left goes with the device. Its bit in struct uvd_context's
	 * ucaps, or -EINVAL (no name of a node), -ENOSPC, or the errno of making the node.
	 */
	int (*create_ucap)(struct uvd_ibdev *dev, const char *name);
	void (*remove_ucap)(struct uvd_ibdev *dev, const char *name);
	void *owner; /* the core's */
	void *priv; /* the backend's, from open to close */
};

/* What one open file owns on the device: struct ib_ucontext. */
struct uvd_context {
	struct uvd_ibdev *dev;
	struct uvd_account *account; /* the opener's: pays for what the objects of the context need; NULL: nobody pays */
	uint64_t ucaps; /* bits that create_ucap() gave: what the client showed to be allowed (enabled_caps) */
};

/*
 * usecnt counts the objects that refer to this one; the core refuses to destroy an object whose usecnt is not 0 (EBUSY).
 * It is the core's, as are all fields of these structs that the comments do not give to the backend.
 */
struct uvd_pd {
	struct uvd_context *context;
	atomic_int usecnt;
};

/*
 * An XRC domain: target QPs and SRQs of one domain find each other, whoever owns them. It belongs to the device and to no
 * context, because open files share it.
 */
struct uvd_xrcd {
	struct uvd_ibdev *dev;
	atomic_int usecnt; /* handles of a shared one, target QPs, SRQs */
	void *owner; /* the core's */
};

/* Memory that a client registered: struct ib_umem. */
struct uvd_umem {
	struct uvd_mm *mm; /* a reference */
	uint64_t addr, length; /* bytes, in the client's address space */
	uint64_t pages; /* that are charged */
	bool writable;
	bool shared; /* other address spaces may have the same memory: uvd_mm_find() tells */
};

/* Where a byte of a client's is: the same for all who have mapped it. */
struct uvd_mm_place {
	uint64_t space[2]; /* a file's device and inode, or an address space and 0 */
	uint64_t offset; /* bytes, in that */
};

/* Memory of the device itself that a client has asked for: struct ib_dm. Reached by what reg_dm_mr registers of it. */
struct uvd_dm {
	struct uvd_context *context;
	atomic_int usecnt;
	uint64_t length; /* bytes */
	uint32_t alignment; /* as the client gave it: what it means is the backend's (libibverbs: log2 of bytes) */
};

/* How the device shall access a region's memory: struct ib_dmah. */
struct uvd_dmah {
	struct uvd_context *context;
	atomic_int usecnt;
	bool has_cpu_id, has_mem_type, has_ph;
	uint32_t cpu_id;
	uint8_t mem_type; /* of PCIe's TLP processing hints: 0 volatile, 1 persistent */
	uint8_t ph; /* processing hint, 2 bits */
};

/*
 * Where a region's memory is: in umem; or in dm, then umem is empty and iova is 0; or in a client's dma-buf, then umem is
 * empty too.
 */
struct uvd_mr {
	struct uvd_pd *pd;
	struct uvd_umem umem;
	struct uvd_dm *dm; /* or NULL */
	uint64_t dm_offset;
	struct uvd_dmah *dmah; /* or NULL */
	bool is_dmabuf;
	uint64_t dmabuf_offset;
	uint64_t iova; /* the address that work requests and peers use for the first byte */
	uint64_t length;
	unsigned int access; /* enum ibv_access_flags */
	uint32_t lkey, rkey; /* set by the backend */
};

/* A memory window: a key that a bind (a work request, or a call for type 1 windows) makes stand for part of a region. */
struct uvd_mw {
	struct uvd_pd *pd;
	enum ibv_mw_type type;
	uint32_t rkey; /* set by the backend */
};

struct uvd_ah {
	struct uvd_pd *pd;
	struct ibv_ah_attr attr;
};

struct uvd_cq {
	struct uvd_context *context;
	atomic_int usecnt;
	atomic_int cqe; /* entries: asked for, then set by the backend to what there are. Two calls may resize it at one time. */
	unsigned int comp_vector;
	uint32_t flags; /* enum ibv_create_cq_attr_flags */
	/* Called by the backend, once for each time the CQ was armed, with none of its locks held. */
	void (*comp_handler)(struct uvd_cq *cq);
	void (*event_handler)(struct uvd_cq *cq, enum ibv_event_type type);
	void *owner; /* the core's */
	struct uvd_umem umem; /* the client's buffer, for create_cq_umem; else empty */
	struct uvd_queue *queue; /* where the client reads the completions; NULL: it polls by calls */
};

/* Statistics: struct ib_counters. usecnt counts the flows and QPs that it counts; what it counts of them is the backend's. */
struct uvd_counters {
	struct uvd_context *context;
	atomic_int usecnt;
};

/* Counts the completions of the QPs that it is attached to: struct ib_comp_cntr. usecnt counts them. */
struct uvd_comp_cntr {
	struct uvd_context *context;
	atomic_int usecnt;
	_Atomic uint64_t values[2]; /* successful, in error; the backend's (src/backends/comp_cntr.h) */
};

/* Operations whose completions are counted: bits of an attach mask, IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_*. */
enum uvd_comp_cntr_op {
	UVD_COMP_CNTR_SEND,
	UVD_COMP_CNTR_RECV,
	UVD_COMP_CNTR_RDMA_READ,
	UVD_COMP_CNTR_REMOTE_RDMA_READ,
	UVD_COMP_CNTR_RDMA_WRITE,
	UVD_COMP_CNTR_REMOTE_RDMA_WRITE,
	UVD_COMP_CNTR_OPS,
};

struct uvd_comp_cntr_caps {
	uint32_t max_counters;
	uint64_t max_value;
	uint32_t supported_qp_attach_ops; /* bits 1 << enum uvd_comp_cntr_op */
};

struct uvd_srq {
	struct uvd_pd *pd;
	enum ibv_srq_type srq_type; /* one that the backend does not have is -EOPNOTSUPP, as by the kernel's drivers */
	struct uvd_cq *cq; /* XRC and TM: where its receives complete; else NULL */
	struct uvd_xrcd *xrcd; /* XRC */
	uint32_t max_num_tags; /* TM */
	uint32_t srq_num; /* XRC: set by the backend, 24 bits */
	atomic_int usecnt;
	struct ibv_srq_attr attr; /* asked for, then set by create_srq to what there is */
	struct uvd_queue *queue; /* where the client puts its receives; NULL: it posts by calls */
	void (*event_handler)(struct uvd_srq *srq, enum ibv_event_type type);
	void *owner;
};

/* A work queue: a receive queue that QPs share by way of a table, struct ib_wq. */
struct uvd_wq {
	struct uvd_pd *pd;
	struct uvd_cq *cq;
	atomic_int usecnt;
	enum ibv_wq_type wq_type;
	_Atomic uint32_t state; /* enum ibv_wq_state; the backend's, RESET at first */
	uint32_t wq_num; /* set by the backend */
	void (*event_handler)(struct uvd_wq *wq, enum ibv_event_type type);
	void *owner;
};

/* Which work queue a packet goes to: 1 << log_ind_tbl_size of them, struct ib_rwq_ind_table. */
struct uvd_rwq_ind_table {
	struct uvd_context *context;
	atomic_int usecnt;
	struct uvd_wq **ind_tbl; /* the same one more than once is allowed */
	uint32_t log_ind_tbl_size;
	uint32_t ind_tbl_num; /* set by the backend */
};

struct uvd_qp_init_attr {
	struct uvd_cq *send_cq, *recv_cq;
	struct uvd_srq *srq;
	struct uvd_rwq_ind_table *rwq_ind_tbl; /* then no recv_cq and no SRQ, and send_cq only if it can send */
	struct ibv_qp_cap cap; /* asked for, then set by the backend to what there is */
	enum ibv_qp_type qp_type;
	bool sq_sig_all;
	uint32_t create_flags;
};

struct uvd_qp {
	struct uvd_pd *pd; /* IBV_QPT_XRC_RECV: NULL, as the CQs: it has these of the SRQ that a request names */
	struct uvd_xrcd *xrcd; /* IBV_QPT_XRC_RECV, else NULL */
	struct uvd_cq *send_cq, *recv_cq; /* IBV_QPT_XRC_SEND has no recv_cq */
	struct uvd_srq *srq;
	struct uvd_rwq_ind_table *rwq_ind_tbl;
	struct uvd_queue *sq, *rq; /* where the client puts its work requests; NULL: it posts by calls */
	struct uvd_account *account; /* who pays for its memory; as long as the QP, which may outlive its opener's context */
	enum ibv_qp_type qp_type;
	atomic_int usecnt;
	atomic_int flows; /* those of usecnt that are flows */
	uint32_t qp_num; /* set by the backend, 24 bits */
	uint8_t port; /* that modify_qp bound it to; 0: none yet. The core's. */
	/* By enum uvd_comp_cntr_op, or NULL. Each is set once, by an attach, and stays until the QP is destroyed. */
	struct uvd_comp_cntr *_Atomic comp_cntr[UVD_COMP_CNTR_OPS];
	struct uvd_counters *_Atomic counters; /* that it is bound to, or NULL; as above */
	void (*event_handler)(struct uvd_qp *qp, enum ibv_event_type type);
	void *owner;
};

/*
 * What a flow does to packets (encryption, other headers): struct ib_flow_action. The common ABI can only destroy one; it
 * is made by a driver method, which allocates it as the core does.
 */
struct uvd_flow_action {
	struct uvd_context *context;
	atomic_int usecnt; /* counts the flows */
};

/* One layer's headers, or the bits of them that matter. What a client's shorter filter lacks is zero. */
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

/* A layer that packets must match, or something to do with those that do. */
struct uvd_flow_spec {
	uint32_t type; /* enum ibv_flow_spec_type; layers may have IBV_FLOW_SPEC_INNER, but VXLAN */
	union {
		struct {
			union uvd_flow_filter val, mask;
		};
		uint32_t tag_id; /* ACTION_TAG */
		struct uvd_flow_action *action; /* ACTION_HANDLE */
		struct uvd_counters *counters; /* ACTION_COUNT */
	};
};

/* A rule that steers packets to a QP (of type UD or RAW_PACKET): struct ib_flow. All of it is set and constant. */
struct uvd_flow {
	struct uvd_qp *qp;
	uint32_t type; /* enum ibv_flow_attr_type, the client's, not checked */
	uint32_t flags; /* enum ibv_flow_flags: DONT_TRAP (not with ALL_DEFAULT and MC_DEFAULT), EGRESS */
	uint16_t priority;
	uint8_t port;
	unsigned int num_specs; /* 10 at most; whether they make sense together is the backend's to say */
	struct uvd_flow_spec *specs; /* until the flow is destroyed */
};

/* A work request. Lists are linked in the order of posting; everything they point to is valid during the call only. */
struct uvd_send_wr {
	struct uvd_send_wr *next;
	uint64_t wr_id;
	const struct ibv_sge *sg_list;
	int num_sge;
	const void *inline_data; /* IBV_SEND_INLINE: the bytes, already read from the client; else NULL */
	uint32_t inline_len;
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
	uint32_t remote_srqn; /* IBV_QPT_XRC_SEND, of front ends that can express it (the POST_SEND command cannot) */
	/*
	 * IBV_WR_BIND_MW, of front ends that can express it (the POST_SEND command cannot). rkey is the
	 * window's new key. A length of 0 unbinds a window of type 1.
	 */
	struct {
		struct uvd_mw *mw; /* NULL: it and the region are named by keys, unchecked */
		struct uvd_mr *mr;
		uint64_t addr, length;
		unsigned int access; /* enum ibv_access_flags */
		uint32_t mw_rkey, mr_lkey; /* without mw */
	} bind;
};

struct uvd_recv_wr {
	struct uvd_recv_wr *next;
	uint64_t wr_id;
	const struct ibv_sge *sg_list;
	int num_sge;
};

/*
 * The thread that carries out work. Another thread calls held_up() and given_up(), at most once each, when it sees the worker wait in
 * a client's memory, which can be for ever; both return at once.
 */
struct uvd_worker {
	/* The backend calls it before long work: answers the client's call unless that is done. Caller holds no lock. May be NULL. */
	void (*answer)(struct uvd_worker *worker);
	/* It has waited for a while: others may do what it would do next. May be NULL. */
	void (*held_up)(struct uvd_worker *worker);
	/* The backend has given up what it waits for: the thread is lost until this account's memory answers. May be NULL. */
	void (*given_up)(struct uvd_worker *worker, struct uvd_account *account);
};

/* The rest of a call, which is done about when that is answered: once, on any thread, with no lock of the core's held. */
struct uvd_work {
	void (*run)(void *arg, struct uvd_worker *worker); /* NULL: nothing. worker: the thread that calls it, or NULL */
	void *arg;
};

enum uvd_rereg { UVD_REREG_CHANGED, UVD_REREG_NEW };

struct uvd_backend {
	const char *name;
	size_t size_context, size_pd, size_xrcd, size_mr, size_mw, size_ah, size_cq, size_srq, size_qp;
	size_t size_wq, size_rwq_ind_table, size_flow;
	size_t size_dm, size_dmah, size_counters, size_comp_cntr;

	/* The device comes and goes. dev->config is filled in. */
	int (*open)(struct uvd_ibdev *dev);
	void (*close)(struct uvd_ibdev *dev);

	int (*query_device)(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr);
	/*
	 * A port went down or came up again: query_port's answer has changed already. May be NULL. The core raises the
	 * event for the clients itself.
	 */
	void (*port_changed)(struct uvd_ibdev *dev, uint8_t port, bool up);
	/* port is from 1 to num_ports: the core has checked it. */
	int (*query_port)(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr);
	/* -EINVAL: index beyond the table. -ENODATA: that slot is empty. */
	int (*query_gid)(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry);

	int (*alloc_context)(struct uvd_context *context);
	void (*dealloc_context)(struct uvd_context *context);

	int (*alloc_pd)(struct uvd_pd *pd);
	int (*dealloc_pd)(struct uvd_pd *pd);

	/* The range is pinned and charged already; it is unpinned after dereg_mr. */
	int (*reg_mr)(struct uvd_mr *mr);
	int (*dereg_mr)(struct uvd_mr *mr);
	/*
	 * flags (enum ibv_rereg_mr_flags) of mr change to what `to` says, which is all of what mr is to be; with
	 * TRANSLATION to->umem is pinned and charged beside the old one. UVD_REREG_CHANGED: mr is changed, by the backend:
	 * pd, access, iova, length, keys, and its umem is exchanged with to's, which the core unpins. UVD_REREG_NEW
	 * (only with TRANSLATION): `to` is a region of its own, with keys of its own; the core puts it in the place of mr and then calls dereg_mr(mr).
	 * Negative errno: nothing has changed.
	 */
	int (*rereg_mr)(struct uvd_mr *mr, int flags, struct uvd_mr *to);

	int (*alloc_xrcd)(struct uvd_xrcd *xrcd);
	int (*dealloc_xrcd)(struct uvd_xrcd *xrcd);

	/* mw->type is set; the backend gives the first rkey. */
	int (*alloc_mw)(struct uvd_mw *mw);
	int (*dealloc_mw)(struct uvd_mw *mw);

	int (*create_ah)(struct uvd_ah *ah);
	int (*destroy_ah)(struct uvd_ah *ah);
	int (*query_ah)(struct uvd_ah *ah, struct ibv_ah_attr *attr);

	/* cqe over the limit or 0: -EINVAL, as the kernel's drivers. */
	int (*create_cq)(struct uvd_cq *cq);
	int (*destroy_cq)(struct uvd_cq *cq);
	/* At most n completions into wc; how many, or a negative errno. Never allocates. */
	int (*poll_cq)(struct uvd_cq *cq, int n, struct ibv_wc *wc);
	/* Arms the CQ for the next completion, or the next solicited one. */
	int (*req_notify_cq)(struct uvd_cq *cq, bool solicited_only);
	int (*resize_cq)(struct uvd_cq *cq, int cqe);

	int (*create_srq)(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct uvd_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct uvd_srq *srq);
	int (*post_srq_recv)(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);

	/*
	 * All that only adapters with receive-side scaling have. wq's pd, cq and type are set (the type is the client's, not
	 * checked); max_wr and max_sge of init come back rounded, its pd, cq and wq_context are NULL.
	 */
	int (*create_wq)(struct uvd_wq *wq, struct ibv_wq_init_attr *init);
	/*
	 * attr_mask tells what the client gave. curr_wq_state and wq_state are valid states, and also filled in where it gave
	 * none. -EINVAL: no such transition.
	 */
	int (*modify_wq)(struct uvd_wq *wq, const struct ibv_wq_attr *attr);
	int (*destroy_wq)(struct uvd_wq *wq);
	int (*create_rwq_ind_table)(struct uvd_rwq_ind_table *table);
	int (*destroy_rwq_ind_table)(struct uvd_rwq_ind_table *table);

	/* qp's pd, CQs, SRQ and type are set; init->cap comes back rounded. */
	int (*create_qp)(struct uvd_qp *qp, struct uvd_qp_init_attr *init);
	/* The state table (ib_modify_qp_is_ok) is the backend's to ask: uvd_modify_qp_is_ok(). */
	int (*modify_qp)(struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask);
	/* Fills attr and the parts of init that the QP was created with (cap, sq_sig_all). */
	int (*query_qp)(struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init);
	int (*destroy_qp)(struct uvd_qp *qp);
	/* Only adapters that steer packets have these. */
	int (*create_flow)(struct uvd_flow *flow);
	int (*destroy_flow)(struct uvd_flow *flow);
	int (*destroy_flow_action)(struct uvd_flow_action *action);
	/*
	 * *bad: the first work request that was not taken. Those before it are posted.
	 * wr may be NULL: nothing to post, only whether the QP takes any (-EINVAL where its state does not).
	 * *work, which is empty: carries out what was posted, where that can take long.
	 */
	int (*post_send)(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad, struct uvd_work *work);
	int (*post_recv)(struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
	int (*attach_mcast)(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);

	/* ---- what few adapters have: any of these may be NULL ---- */

	/*
	 * There may be work requests in the QP's mapped send queue; *work carries them out. -EINVAL: the QP's state takes none.
	 * A backend without this function has no mapped queues.
	 */
	int (*ring_doorbell)(struct uvd_qp *qp, struct uvd_work *work);
	/*
	 * *queue, which is empty, and the mapped queue change places: it takes over what waits there, and cqe or attr.max_wr follow.
	 * -EINVAL: it is too small, and nothing has changed.
	 */
	int (*replace_cq_queue)(struct uvd_cq *cq, struct uvd_queue **queue);
	int (*replace_srq_queue)(struct uvd_srq *srq, struct uvd_queue **queue);

	/* Nothing is left to answer: the core has answered what it knows. */
	int (*query_context)(struct uvd_context *context);
	/* *speed: what the port can carry, in units of 100 Mb/s. port as for query_port. */
	int (*query_port_speed)(struct uvd_ibdev *dev, uint8_t port, uint64_t *speed);
	/* Completion events wait for count completions, or period microseconds. */
	int (*modify_cq)(struct uvd_cq *cq, uint16_t count, uint16_t period);
	/* create_cq for a queue in the client's own memory: cq->umem, pinned and charged until after destroy_cq. */
	int (*create_cq_umem)(struct uvd_cq *cq);

	/* dm's length and alignment are set. */
	int (*alloc_dm)(struct uvd_dm *dm);
	int (*dealloc_dm)(struct uvd_dm *dm);
	/* mr->dm, dm_offset and length are set, and within it; all such regions are zero based. Ends with dereg_mr. */
	int (*reg_dm_mr)(struct uvd_mr *mr);
	/* mr->dmabuf_offset and length are set, and within the client's dma-buf as it is now. Ends with dereg_mr. */
	int (*reg_dmabuf_mr)(struct uvd_mr *mr);
	/*
	 * flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH or 0. An advice that the backend does not know is -EOPNOTSUPP. The keys of
	 * sg_list are the client's, unchecked.
	 */
	int (*advise_mr)(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
			 unsigned int num_sge);
	int (*alloc_dmah)(struct uvd_dmah *dmah);
	int (*dealloc_dmah)(struct uvd_dmah *dmah);
	/* *length: bytes of the device's memory that the context may map at this page offset. -EINVAL: none. */
	int (*pgoff_to_mmap_entry)(struct uvd_context *context, uint64_t pgoff, uint64_t *length);

	int (*create_counters)(struct uvd_counters *counters);
	int (*destroy_counters)(struct uvd_counters *counters);
	/* Fills values, which is zeroed; flags: IB_UVERBS_READ_COUNTERS_PREFER_CACHED or 0. */
	int (*read_counters)(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);

	/* May what reaches the QP be counted by these? The core notes it in qp->counters afterwards. */
	int (*bind_counters)(struct uvd_qp *qp, struct uvd_counters *counters);

	int (*create_comp_cntr)(struct uvd_comp_cntr *cntr);
	int (*destroy_comp_cntr)(struct uvd_comp_cntr *cntr);
	/* entry: 0 successes, 1 errors; op: 0 set, 1 increase by value. Both are the client's: -EINVAL for others. */
	int (*modify_comp_cntr)(struct uvd_comp_cntr *cntr, uint32_t entry, uint32_t op, uint64_t value);
	int (*read_comp_cntr)(struct uvd_comp_cntr *cntr, uint32_t entry, uint64_t *value);
	/* May the counter be attached for these operations? The core notes it in qp->comp_cntr afterwards. */
	int (*qp_attach_comp_cntr)(struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask);
	int (*query_comp_cntr_caps)(struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps);
};

/* Is it the address of a group: of IPv6, or of IPv4 in IPv6 (rdma_is_multicast_addr())? */
static inline bool uvd_gid_is_multicast(const union ibv_gid *gid)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, 0xff };

	return gid->raw[0] == 0xff || (!memcmp(gid->raw, ipv4, sizeof(ipv4)) && gid->raw[12] >> 4 == 0xe);
}

/*
 * Is this transition of this type of QP with this attribute mask in the InfiniBand state table (IBTA 10.3,
 * ib_modify_qp_is_ok)? For backends that run the state machine themselves.
 */
bool uvd_modify_qp_is_ok(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type, int mask);

/* ---- what clients make us allocate ------------------------------------------------------------------------------- */

/*
 * A backend charges what it allocates for an object beside the object's own struct (rings at their full size, when they are
 * made), and uncharges it when it frees that. 0 or -ENOMEM: the user would hold more than allowed. Nothing is charged to NULL.
 */
int uvd_charge_bytes(struct uvd_account *account, uint64_t bytes);
void uvd_uncharge_bytes(struct uvd_account *account, uint64_t bytes);

/* ---- a client's memory, for work requests: it outlives calls, and dies with the address space -------------------- */

struct uvd_mm *uvd_mm_ref(struct uvd_mm *mm);
void uvd_mm_put(struct uvd_mm *mm);
/* false: all its processes have exited, or left it by exec. */
bool uvd_mm_alive(struct uvd_mm *mm);
/*
 * Exactly len bytes, or -EFAULT: then some may have been copied. Bound to the address space that registered it, never to
 * a recycled pid or to the program after an exec. Page protection is not looked at (as for pinned pages).
 */
int uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len);
int uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len);
/* The same for num pieces, one after the other; they lie side by side in dst, or src. */
int uvd_mm_readv(struct uvd_mm *mm, void *dst, const struct iovec *src, unsigned int num);
int uvd_mm_writev(struct uvd_mm *mm, const struct iovec *dst, unsigned int num, const void *src);
/*
 * A region's memory as this process has it, too: memory of a file without a disk (memfd, SysV, tmpfs, huge pages) that the client
 * has mapped shared. One copy is enough then. It stays the memory of this moment, as pinned pages would, whatever the client maps
 * there later; but a file can be truncated. So nothing but system calls and uvd_mm_view_copy() may touch it.
 */
struct uvd_mm_view;
/* A reference, or NULL: it cannot be had. It waits as uvd_mm_read() can. */
struct uvd_mm_view *uvd_mm_view_get(const struct uvd_umem *umem);
struct uvd_mm_view *uvd_mm_view_ref(struct uvd_mm_view *view);
void uvd_mm_view_put(struct uvd_mm_view *view);
/* Where an address of the region is. */
void *uvd_mm_view_at(const struct uvd_mm_view *view, uint64_t addr);
/* May the client write there by the mapping that it registered? */
bool uvd_mm_view_writable(const struct uvd_mm_view *view);
/* dst, src or both are in a view. -EFAULT: the file is shorter now; some may have been copied. */
int uvd_mm_view_copy(void *dst, const void *src, size_t len);
/*
 * Memory that was registered on demand: may the client itself read (write) all of [addr, addr + len) now? 0 or -EFAULT.
 */
int uvd_mm_check(struct uvd_mm *mm, uint64_t addr, size_t len, bool write);
/* Tells the place of a byte of a region's memory. It can wait, as uvd_mm_read() can. 0, or -EFAULT: nothing is mapped there. */
int uvd_mm_find(const struct uvd_umem *umem, uint64_t addr, struct uvd_mm_place *place);

/* ---- answers that every backend without an adapter gives from its configuration (src/backends/config.c) ---------- */

int uvd_config_query_device(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr);
int uvd_config_query_port(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr);
int uvd_config_query_port_speed(struct uvd_ibdev *dev, uint8_t port, uint64_t *speed);
int uvd_config_query_gid(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry);

extern const struct uvd_backend uvd_backend_null, uvd_backend_soft;
/* By name, or NULL. */
const struct uvd_backend *uvd_backend_find(const char *name);
/* One after the other, from 0; NULL: there are no more. */
const struct uvd_backend *uvd_backend_at(unsigned int i);

/* The InfiniBand and Ethernet networks between the soft devices of one engine. */
struct uvd_fabric *uvd_fabric_new(struct uvd_log *log);
/*
 * How many threads may work for one user at a time, at most, if as many of the user's QPs have something to do: 1 without this call.
 * Before the first device is opened.
 */
void uvd_fabric_set_threads(struct uvd_fabric *fabric, unsigned int most);
/* All devices on it are closed. */
void uvd_fabric_free(struct uvd_fabric *fabric);

#endif
