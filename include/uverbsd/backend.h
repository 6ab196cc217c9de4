/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between the core and a backend. A backend carries out verbs on checked arguments; struct uvd_backend
 * follows struct ib_device_ops. A backend knows no files, handles or wire structs: the core (src/objects/) has looked
 * up every handle, made the checks of the kernel's core, and holds references to the objects of the call. The backend
 * does what the kernel leaves to drivers: the state machine of a QP, the upper limits of queues, the meaning of keys.
 *
 * This header has the operations. objects.h, work.h, mm.h and udata.h, which it includes, have the objects, the work
 * requests, the access to clients' memory, and the provider's part of a call.
 *
 * Attributes are the structs of libibverbs, so that a backend for a real adapter can pass them on.
 *
 * Memory: the core allocates each object, zeroed, with `size_*` bytes; the backend's struct begins with the core's. The
 * core frees the object after the matching destroy returned 0, and after a failed creation, which must leave nothing
 * behind.
 *
 * Mandatory operations are marked so, and a backend without one is refused. Each other operation may be NULL. Then the
 * rows that need it (schema.h) are absent from the tree of a device, or the call fails with EOPNOTSUPP: objects without
 * their destroy operation do not exist.
 *
 * udata: the provider's part of the call, for the operations that get it in the kernel (udata.h). NULL: the core itself
 * calls the operation.
 *
 * Return values: an operation returns 0 or a negative errno, unless its comment says otherwise.
 *
 * Locking: operations run on any thread and in parallel, also on the same object. The core only guarantees that a
 * destroy runs alone on its object, after all objects that refer to it were destroyed (usecnt).
 */
#ifndef UVERBSD_BACKEND_H
#define UVERBSD_BACKEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <uverbsd/api.h>
#include <uverbsd/config.h>
#include <uverbsd/counters.h>
#include <uverbsd/mm.h>
#include <uverbsd/objects.h>
#include <uverbsd/reason.h>
#include <uverbsd/udata.h>
#include <uverbsd/work.h>

/* The result of rereg_mr. */
enum uvd_rereg { UVD_REREG_CHANGED, UVD_REREG_NEW };

/* A filter chooses how the network treats a message. */
enum uvd_fate {
	UVD_FATE_DELIVER,
	UVD_FATE_LOSE, /* it does not arrive; a reliable QP sends it again after its time-out */
	UVD_FATE_HOLD, /* it arrives behind the QP's next message (or packet), or after hold_ns if there is none until then */
};

struct uvd_message {
	struct uvd_qp *qp; /* that sends it */
	enum ibv_wr_opcode opcode;
	uint32_t length; /* bytes */
	bool may_hold; /* else UVD_FATE_HOLD is no choice: the QP is reliable, or the network holds another one of it */
	enum uvd_fate fate; /* at first UVD_FATE_DELIVER */
	uint64_t hold_ns;
	bool is_packet; /* it is one packet on the wire, of any type of QP, answers and retries included */
	uint64_t delay_ns; /* a packet arrives so much later: at first 0, filters add to it. No matter for a message */
};

/* A completion that the backend is about to give to the client. */
struct uvd_completion {
	struct uvd_cq *cq;
	const struct ibv_wc *wc; /* wc->opcode is valid, whatever the status */
	uint64_t delay_ns; /* at first 0; filters add to it */
};

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

	/* Mandatory. With the plain command, and for checks of the core, udata is NULL. */
	int (*query_device)(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata);
	/*
	 * A port went down or came up. query_port() returns the new state already. The core calls this under the
	 * device's port_lock, and posts the event to the clients itself. May be NULL.
	 */
	void (*port_changed)(struct uvd_ibdev *dev, uint8_t port, bool up);
	/* Mandatory. The core has checked that port is from 1 to num_ports. */
	int (*query_port)(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr);
	/* Mandatory. Returns -EINVAL if index is beyond the table, -ENODATA if the slot is empty. */
	int (*query_gid)(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry);

	/* Both are mandatory. */
	int (*alloc_context)(struct uvd_context *context, struct uvd_udata *udata);
	void (*dealloc_context)(struct uvd_context *context);

	int (*alloc_pd)(struct uvd_pd *pd, struct uvd_udata *udata);
	int (*dealloc_pd)(struct uvd_pd *pd);

	/*
	 * The core has charged mr->umem before reg_mr, and uncharges it after dereg_mr. The backend sets the keys, or
	 * mr->registration: see <uverbsd/registration.h>.
	 */
	int (*reg_mr)(struct uvd_mr *mr, struct uvd_udata *udata);
	int (*dereg_mr)(struct uvd_mr *mr);
	/*
	 * Changes mr. `to` describes the complete new MR; `flags` (enum ibv_rereg_mr_flags) says which parts differ.
	 * With IBV_REREG_MR_CHANGE_TRANSLATION to->umem is charged beside the old one, unless mr->registration->executed:
	 * of memory that an adapter's kernel has pinned the backend refuses it. No other call uses mr meanwhile.
	 * Returns: UVD_REREG_CHANGED: the backend changed pd, access, iova, length and keys of mr, and exchanged its
	 * umem with to's, which the core uncharges. UVD_REREG_NEW (only with TRANSLATION): `to` is a registered region
	 * with keys of its own; the core puts it in the place of mr, and then calls dereg_mr(mr). A negative errno:
	 * nothing has changed.
	 */
	int (*rereg_mr)(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata);

	/*
	 * alloc_xrcd runs with a lock held that all clients of the device share. udata has the provider's request in the
	 * engine's memory, and no room for an answer of more than 4 KiB (-ENOSPC).
	 */
	int (*alloc_xrcd)(struct uvd_xrcd *xrcd, struct uvd_udata *udata);
	int (*dealloc_xrcd)(struct uvd_xrcd *xrcd);

	/* mw->type is set; the backend sets the first rkey. */
	int (*alloc_mw)(struct uvd_mw *mw, struct uvd_udata *udata);
	int (*dealloc_mw)(struct uvd_mw *mw);

	int (*create_ah)(struct uvd_ah *ah, struct uvd_udata *udata);
	int (*destroy_ah)(struct uvd_ah *ah);

	/* Returns -EINVAL if cq->cqe is 0 or beyond the limit, as the kernel's drivers do. */
	int (*create_cq)(struct uvd_cq *cq, struct uvd_udata *udata);
	int (*destroy_cq)(struct uvd_cq *cq);
	/* Moves at most n completions to wc. Returns their number, or a negative errno. Must not allocate memory. */
	int (*poll_cq)(struct uvd_cq *cq, int n, struct ibv_wc *wc);
	/* Arms the CQ for the next completion, or for the next solicited one. */
	int (*req_notify_cq)(struct uvd_cq *cq, bool solicited_only);
	/* Returns -EINVAL if cqe is 0, beyond the limit, or less than the number of completions in the CQ. */
	int (*resize_cq)(struct uvd_cq *cq, int cqe, struct uvd_udata *udata);

	int (*create_srq)(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata);
	int (*modify_srq)(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata);
	int (*query_srq)(struct uvd_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct uvd_srq *srq);
	/* As post_recv. */
	int (*post_srq_recv)(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);

	/*
	 * Only adapters with receive-side scaling have the operations on WQs and tables. wq's pd, cq and type are set;
	 * the type is the client's, unchecked. create_wq rounds max_wr and max_sge of init up. init's pd, cq and
	 * wq_context are NULL.
	 */
	int (*create_wq)(struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata);
	/*
	 * attr->attr_mask says which attributes the client set. curr_wq_state and wq_state are always filled in, with
	 * valid states. Returns -EINVAL if there is no such transition, or if curr_wq_state is not the WQ's state.
	 */
	int (*modify_wq)(struct uvd_wq *wq, const struct ibv_wq_attr *attr, struct uvd_udata *udata);
	int (*destroy_wq)(struct uvd_wq *wq);
	int (*create_rwq_ind_table)(struct uvd_rwq_ind_table *table, struct uvd_udata *udata);
	int (*destroy_rwq_ind_table)(struct uvd_rwq_ind_table *table);

	/* qp's pd, CQs, SRQ, mapped queues and type are set. The backend sets qp_num, and rounds init->cap up. */
	int (*create_qp)(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata);
	/* The backend checks the transition, as drivers do by ib_modify_qp_is_ok(): see uvd_modify_qp_is_ok(). */
	int (*modify_qp)(struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata);
	/* Fills attr, and the cap and sq_sig_all of init that the QP was created with. */
	int (*query_qp)(struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init);
	int (*destroy_qp)(struct uvd_qp *qp);
	/* Only adapters that steer packets have operations on flows. */
	int (*create_flow)(struct uvd_flow *flow, struct uvd_udata *udata);
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

	/* ---- operations of few adapters ---- */

	/*
	 * There may be new requests in the QP's mapped send queue: accepts them (queue.h), and sets *work, which is empty,
	 * to carry them out. Returns -EINVAL if the QP's state accepts no requests. A backend without this function and
	 * drop_posts does not support mapped queues.
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
	/* Stores the counters of the port. None of them ever falls. port is as for query_port. Returns 0. */
	int (*query_port_counters)(struct uvd_ibdev *dev, uint8_t port, uint64_t values[UVD_PORT_COUNTERS]);
	/* Moderation: a completion event waits for count completions, or for period microseconds. */
	int (*modify_cq)(struct uvd_cq *cq, uint16_t count, uint16_t period);
	/*
	 * As create_cq, with the queue in the client's memory cq->umem, which stays charged until after destroy_cq. For
	 * a dma-buf only the length of cq->umem is set.
	 */
	int (*create_cq_umem)(struct uvd_cq *cq, struct uvd_udata *udata);

	/* dm's length and alignment are set, unchecked. */
	int (*alloc_dm)(struct uvd_dm *dm);
	int (*dealloc_dm)(struct uvd_dm *dm);
	/*
	 * mr->dm, dm_offset and length are set, and lie within dm. All such regions are zero based. dereg_mr ends the
	 * region.
	 */
	int (*reg_dm_mr)(struct uvd_mr *mr, struct uvd_udata *udata);
	/* mr->dmabuf_offset and length are set, and lie within the dma-buf at this moment. dereg_mr ends the region. */
	int (*reg_dmabuf_mr)(struct uvd_mr *mr, struct uvd_udata *udata);
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
	/*
	 * Mandatory with create_counters. Fills values, num numbers which are zeroed. flags:
	 * IB_UVERBS_READ_COUNTERS_PREFER_CACHED or 0.
	 */
	int (*read_counters)(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);

	/* Returns 0 if the counters object can count what reaches the QP. Then the core sets qp->counters. */
	int (*bind_counters)(struct uvd_qp *qp, struct uvd_counters *counters);

	int (*create_comp_cntr)(struct uvd_comp_cntr *cntr);
	int (*destroy_comp_cntr)(struct uvd_comp_cntr *cntr);
	/*
	 * This and read_comp_cntr are mandatory with create_comp_cntr.
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

	/*
	 * Decides what the backend's own network does with a message, for filters: a backend that has one sets a function
	 * that does nothing, and calls the operation of dev->ops for each message, and again for each retry, if that is
	 * another function. It calls it on any thread, without a lock, before the message arrives.
	 */
	void (*carry_message)(struct uvd_message *message);
	/*
	 * Decides for how long a completion is kept back from its CQ, for filters: a backend that can do that sets a function
	 * that does nothing, and calls the operation of dev->ops for each completion, if that is another function. Completions
	 * of a CQ keep their order. Called under locks of the backend: it must not block.
	 */
	void (*carry_completion)(struct uvd_completion *completion);
	/*
	 * Removes from *ops, which are this device's alone, what the device does not have. Called once, after open() and
	 * before any client: clients find a device without those operations. May be NULL.
	 */
	void (*narrow)(struct uvd_ibdev *dev, struct uvd_backend *ops);
	/*
	 * For a backend with an adapter: says why clients' threads should not register memory with the device's adapter
	 * (UVD_MEMORY_BORROW); returns NULL: they can. Called once, after open() and before narrow(), if the configuration
	 * leaves the choice to the core (UVD_MEMORY_AUTO). May be NULL: there is no adapter.
	 */
	const char *(*borrow_obstacle)(struct uvd_ibdev *dev);
	/*
	 * For a backend with an adapter: stores what port `port` (from 1) and its tables are now; *now and gid_attrs are zero.
	 * When the backend has reported an event of a port by event_handler(), the core calls this on the same thread, without
	 * a lock, and publishes what has changed. Only then it posts the event. A backend reports events of its ports on one
	 * thread. May be NULL: then the configuration says what a port is.
	 */
	int (*take_port)(struct uvd_ibdev *dev, uint8_t port, struct uvd_port_config *now,
			 struct uvd_gid_attr gid_attrs[UVD_MAX_GIDS]);
	/*
	 * The device is being removed: when its calls have ended, the core destroys the objects of all its files. A backend
	 * whose destructions can take long limits what they take together. Called once; calls are in progress. May be NULL.
	 */
	void (*ending)(struct uvd_ibdev *dev);
	/*
	 * A doorbell was refused, by ring_doorbell() or by a filter above it: drops what the client has put into the QP's
	 * mapped send queue since the last accepted one. Else the next doorbell would carry that out.
	 */
	void (*drop_posts)(struct uvd_qp *qp);
	/* Stores what the QP has done and what waits in it, for a report; *work is zero. May be NULL. */
	void (*query_qp_work)(struct uvd_qp *qp, struct uvd_qp_work *work);
	/* Returns how many completions the CQ had no room for. May be NULL. */
	uint64_t (*query_cq_lost)(struct uvd_cq *cq);
	/* post_send() has refused wr with EINVAL: stores why in *why, which is zero, unless it would take wr now. May be NULL. */
	void (*send_why)(struct uvd_qp *qp, const struct uvd_send_wr *wr, struct uvd_why *why);
};

static inline bool uvd_backend_maps_queues(const struct uvd_backend *backend)
{
	return backend->ring_doorbell && backend->drop_posts;
}

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
UVD_API bool uvd_modify_qp_is_ok(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type, int mask);
/* The reason why it does not, for uvd_udata_refuse(). Its `reason` is NULL if the transition is allowed. */
UVD_API struct uvd_why uvd_modify_qp_why(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type,
					 int mask);

/*
 * Takes a port down or up, as `uverbsctl port` does: first in sysfs, then for queries and for the backend
 * (port_changed), last with an event to all open files. Any thread that holds no lock; not port_changed() itself. Returns
 * 0; 1: the port is in that state already, or the device is gone, and nothing changes; -EINVAL: no such port; or an errno
 * of the change of sysfs.
 */
UVD_API int uvd_ibdev_set_port(struct uvd_ibdev *dev, unsigned int port, bool up);

/* ---- charging memory to clients ---------------------------------------------------------------------------------- */

/*
 * A backend charges the memory that it allocates for an object beside the object's own struct (a ring at its full
 * size), and uncharges it when it frees that memory. Returns 0, or -ENOMEM if the user would exceed a limit. With an
 * account of NULL nothing is charged. May be called from any thread; takes no lock.
 */
UVD_API int uvd_charge_bytes(struct uvd_account *account, uint64_t bytes);
UVD_API void uvd_uncharge_bytes(struct uvd_account *account, uint64_t bytes);
/*
 * Returns the user whose rights the account has: its outermost user other than root, so that a user has no other rights
 * under the ids of its user namespaces. 0: all are root. UVD_LOG_NO_USER: account is NULL. Its lines of the log are
 * limited by it, see uvd_log_of_user().
 */
UVD_API uid_t uvd_account_person(const struct uvd_account *account);

/* ---- queries that backends without an adapter answer from the configuration (src/backends/config.c) -------------- */

/* -EINVAL: the client sends driver data, or has room for some, and the kernel's drivers refuse that. */
UVD_API int uvd_config_query_device(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata);
UVD_API int uvd_config_query_port(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr);
UVD_API int uvd_config_query_port_speed(struct uvd_ibdev *dev, uint8_t port, uint64_t *speed);
UVD_API int uvd_config_query_gid(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry);

#endif
