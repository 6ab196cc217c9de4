/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The objects of the core, as a backend sees them: the device, and all that clients create on it. The core allocates an
 * object with the backend's struct around it; backend.h has the rules.
 */
#ifndef UVERBSD_OBJECTS_H
#define UVERBSD_OBJECTS_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/config.h>
#include <uverbsd/mm.h>

struct uvd_account; /* the user whose limits memory is charged to, see uvd_charge_bytes() */
struct uvd_backend;
struct uvd_context;
struct uvd_explained;
struct uvd_filters;
struct uvd_log;
struct uvd_queue; /* a queue in memory that a client shares with the engine, <uverbsd/queue.h> */

/*
 * What a backend provides behind a device: struct ib_device. The core owns it, and has set all but priv before open().
 */
struct uvd_ibdev {
	/* Another table, with the same operations, if filters are added or removed. */
	const struct uvd_backend *_Atomic ops;
	void *engine_data; /* what init() of the backend's plug-in has set (plugin.h) */
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
	/* uvd_explain() of reason.h calls it. NULL, in programs without an engine: nobody reads explanations. */
	void (*explain)(struct uvd_ibdev *dev, struct uvd_context *context, const struct uvd_explained *explained);
	void *owner; /* for the core */
	void *priv; /* for the backend, from open() to close() */
	struct uvd_filters *filters; /* for the core */
	struct uvd_device_config config; /* last: it grows at its end */
};

struct uvd_registration;

/* The context of one open file: struct ib_ucontext. */
struct uvd_context {
	struct uvd_ibdev *dev;
	struct uvd_account *account; /* the opener's: the objects of the context are charged to it; NULL: to nobody */
	uint64_t ucaps; /* the User Capabilities of the context, by bits that create_ucap() returned (enabled_caps) */
	void *owner; /* for the core */
};

/*
 * A protection domain: struct ib_pd.
 *
 * Here and below, usecnt counts the objects that refer to this one. The core refuses to destroy an object whose usecnt
 * is not 0 (EBUSY). Only the core writes usecnt, and all other fields that no comment gives to the backend; a plug-in
 * raises and lowers it for objects of its own that refer to this one.
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
	struct uvd_account *account; /* its creator's; pays for what the backend holds; valid as long as the domain */
};

/* Device memory that a client allocated: struct ib_dm. Clients access it by regions of it (reg_dm_mr). */
struct uvd_dm {
	struct uvd_context *context;
	atomic_int usecnt;
	uint64_t length; /* bytes */
	uint32_t alignment; /* as the client gave it, unchecked; for libibverbs log2 of bytes */
};

/* Hints for the device's access to the memory of a region: struct ib_dmah. */
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
 *
 * usecnt counts objects of plug-ins: the common verbs have none that refer to a region. A region in use can be neither
 * deregistered nor changed by REREG_MR. (Drivers of the kernel count in their own struct, and their dereg_mr refuses.)
 */
struct uvd_mr {
	struct uvd_pd *pd;
	atomic_int usecnt;
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
	/*
	 * NULL; or set by reg_mr: the keys are not known yet, as a thread of the client has to make the registration. The
	 * backend's, as long as the region exists.
	 */
	struct uvd_registration *registration;
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
	uint32_t source_qpn; /* IBV_QP_CREATE_SOURCE_QPN */
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

enum { UVD_QP_WORK_OPCODES = 16 };

/* The work of a QP: done so far, and waiting in its queues. */
struct uvd_qp_work {
	uint32_t sends, receives; /* requests that have not completed */
	uint64_t received; /* receives that have completed, of an SRQ, too */
	struct {
		uint64_t messages, bytes;
	} done[UVD_QP_WORK_OPCODES]; /* requests of its send queue that have succeeded, by enum ibv_wr_opcode */
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

#endif
