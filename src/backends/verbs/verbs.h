/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The verbs backend: forwards a device's resources to an adapter of this machine, through libibverbs. Each context of a
 * client is a context of its own on the adapter, so the kernel ends what a client or the daemon leaves behind.
 *
 * The adapter cannot reach a client's memory by itself. With --memory=borrow the client's own thread registers it with
 * the adapter (borrow.c). With --memory=bounce the adapter reaches buffers of the engine instead: a post copies the
 * client's data into one, and the poll of the completion copies what has arrived to the client. So no such region can be
 * accessed by peers.
 *
 * Locking: hca_context.lock protects what the bounce adds to the objects of one context: records, buffers, keys. It is
 * never held while a client's memory is accessed, and no other client needs it.
 */
#ifndef UVD_BACKENDS_VERBS_H
#define UVD_BACKENDS_VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/abi.h>
#include <uverbsd/backend.h>
#include <uverbsd/registration.h>
#include "util/util.h"

struct hca_record;

/* Objects that only some adapters have. A device without them has no such objects either. */
enum hca_feature {
	HCA_XRC = 1 << 0,
	HCA_DM = 1 << 1, /* device memory */
	HCA_COUNTERS = 1 << 2,
	HCA_FLOW = 1 << 3,
	HCA_RAW = 1 << 4, /* QPs of type RAW_PACKET */
	HCA_RSS = 1 << 5, /* work queues, indirection tables, and QPs with a table */
	HCA_REREG = 1 << 6, /* its driver has REREG_MR */
};

enum { HCA_CONTEXT_LISTS = 1024, HCA_OBJECT_LISTS = 256 };

struct hca_device {
	struct uvd_ibdev *ibdev;
	struct ibv_context *adapter; /* for queries, and for the events of device and ports */
	char hca[IBV_SYSFS_NAME_MAX];
	atomic_bool dead; /* the adapter is gone: calls fail with EIO */
	bool told; /* the clients were told; the thread's */
	pthread_t thread; /* relays events; see events.c */
	int epoll, stop; /* stop: an eventfd that ends the thread */
	int node; /* an inotify descriptor that reports changes of the adapter's node; -1: it cannot be watched */
	pthread_mutex_t lock; /* contexts, next_id, and of each context: busy, leaving, paused, objects */
	pthread_cond_t idle; /* some context is not busy any more */
	struct list_head contexts[HCA_CONTEXT_LISTS]; /* by the id's low bits */
	uint64_t next_id; /* of a context; never reused */
	int driver_id; /* of the adapter's driver; -1: its registration is not known, so clients' threads are not borrowed */
	uint64_t patience; /* ns that one destruction in a context that was lent may take */
	_Atomic uint64_t
		end; /* when the destructions of the device's removal should have ended: uvd_now_ns(); 0: none */
	unsigned int features; /* enum hca_feature: what the adapter has beyond the objects of every adapter */
	bool without_raw; /* the adapter has more of them, for which this process lacks CAP_NET_RAW */
	struct hca_context *xrc; /* of XRC domains and their target QPs; NULL: the adapter has none */
	atomic_uint rings; /* mappings of the provider, as far as we know them */
	unsigned int max_rings;
	struct list_head left; /* struct hca_left: how many contexts of each user are left; under the lock */
	unsigned int most_left; /* of one user: each has a thread */
};

/* The memory region of a client. Unless it is borrowed it exists on our side only: the adapter does not know it. */
struct hca_mr {
	struct uvd_mr mr;
	struct uvd_registration registration; /* by the client's thread */
	bool borrowed; /* the adapter has the region, as `handle` */
	uint32_t handle;
	struct ibv_mr *of_dm; /* a region of device memory: the adapter's; else NULL */
	struct list_head of_context; /* of device memory: in hca_context.dm_mrs */
	uint32_t index; /* in hca_context.mrs; 0: it is not there */
	unsigned int users; /* copies in progress; the deregistration waits for them */
};

struct hca_key {
	struct hca_mr *mr; /* NULL: free */
	uint8_t tag; /* the low byte of the next key */
};

enum { HCA_CHUNK_RECORDS = 64, HCA_MAX_CHUNKS = 1 << 14 };

enum hca_kind { HCA_CQ, HCA_SRQ, HCA_QP, HCA_WQ };

/* An object of the adapter that has events: see objects.c. */
struct hca_object {
	struct list_head of_context; /* in a list of hca_context.objects */
	enum hca_kind kind;
	void *adapter; /* the struct ibv_cq, ibv_srq, ibv_qp or ibv_wq */
};

struct hca_context {
	struct uvd_context context;
	struct ibv_context *adapter;
	struct ibv_comp_channel *channel; /* of all CQs of the context */
	uint64_t id;
	struct list_head of_device; /* in a list of hca_device.contexts */
	bool busy; /* the thread of events.c uses the context */
	unsigned int leaving; /* objects that are being destroyed: the thread does not enter the context */
	unsigned int paused; /* descriptors that are not watched meanwhile: bits of EVENT_ASYNC and EVENT_COMPLETION */
	struct list_head objects[HCA_OBJECT_LISTS]; /* by a hash of hca_object.adapter */
	atomic_bool lent; /* threads of the client have had the context's device file: see objects.c */
	atomic_bool stuck; /* a destruction did not end: nothing is destroyed any more, and the context stays open */
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t unused; /* some region has no users any more */
	struct hca_record **chunks; /* HCA_MAX_CHUNKS pointers to HCA_CHUNK_RECORDS records each */
	unsigned int num_chunks;
	struct list_head free_records;
	struct hca_key *mrs;
	uint32_t num_mrs, last_mr; /* slots; the one that was given last */
	atomic_uint bounced; /* regions in mrs */
	struct list_head dm_mrs; /* regions of device memory */
	atomic_uint num_dm_mrs;
};

enum { HCA_NO_LKEY = 0 /* the key of no region */ };

/* A power of two of bytes: the index of a list of free buffers. */
enum { HCA_MIN_ORDER = 8, HCA_MAX_ORDER = 31, HCA_CHUNK_ORDER = 18 };

/* One buffer. It lies beside the memory and not in it: the adapter may still write to a buffer that we think is free. */
struct hca_slot {
	struct hca_slot *next; /* of the list of free ones */
	uint8_t *data;
	uint32_t lkey; /* HCA_NO_LKEY: the adapter does not reach the buffer any more */
};

/* Memory that is registered with the adapter, for the buffers of one PD. */
struct hca_chunk {
	struct hca_chunk *next;
	void *memory;
	size_t size, charged; /* bytes */
	struct ibv_mr *mr; /* NULL: the adapter has it no more */
	size_t num_slots;
	struct hca_slot slots[];
};

/*
 * The buffers of a PD. A copy that is in progress has a reference, because another thread of the client may deallocate
 * the PD meanwhile. Under hca_context.lock.
 */
struct hca_pool {
	unsigned int refs;
	struct uvd_account *account;
	struct hca_chunk *chunks;
	struct hca_slot *free[HCA_MAX_ORDER + 1];
};

struct hca_pd {
	struct uvd_pd pd;
	struct ibv_pd *adapter;
	struct hca_pool *pool;
};

struct hca_buffer {
	uint8_t *data; /* NULL: none */
	uint32_t lkey;
	uint8_t order;
	struct hca_slot *slot;
};

enum { HCA_FEW_SGES = 4 };

/*
 * A work request that the adapter has, and the client's part of it. Its tag is the wr_id that the adapter gets: the
 * index of the record, and how often the record was used. So a live record's tag is unique, and a completion of a
 * request that is gone (its QP was reset or destroyed) finds no record.
 */
struct hca_record {
	uint32_t index, uses;
	struct hca_queue *queue; /* NULL: the record is free */
	struct list_head of_queue; /* of the queue, in the order of posting; or of free_records */
	uint64_t wr_id; /* the client's */
	bool arrives; /* the completion brings data for the client: a receive, a read or an atomic */
	bool receives; /* the completion says how many bytes */
	bool completes_with_next; /* in a backlog: the next record there has the completion */
	bool refused; /* the provider refused it, but may have queued it: nobody hears of its completion */
	uint32_t length; /* bytes of the client's buffers together */
	uint32_t num_sge;
	struct ibv_sge few[HCA_FEW_SGES], *sges; /* the client's; in `few` or in `more` */
	struct hca_pd *pd;
	struct hca_pool *pool;
	struct hca_buffer buffer, more;
	struct ibv_wc wc; /* in a backlog: the completion, as the client gets it */
};

/* The requests of one queue that the adapter has not completed. */
struct hca_queue {
	struct list_head records;
	unsigned int num, max;
	const struct hca_cq *cq; /* where they complete; NULL: an SRQ's, in whatever CQ */
};

struct hca_cq {
	struct uvd_cq cq;
	struct ibv_cq *adapter;
	struct hca_object object;
	struct list_head backlog; /* completed records that the adapter's CQ has no more; see hca_cq_drain() */
	uint64_t charged; /* as in hca_srq and hca_qp: bytes, see hca_charge_rings() */
};

/*
 * An XRC domain. Clients share it, and each has a context of its own on the adapter: there a domain belongs to a file,
 * whatever context opens it. So this one belongs to `file`, and the context of each SRQ opens it again.
 */
struct hca_xrcd {
	struct uvd_xrcd xrcd;
	struct ibv_xrcd *adapter; /* in hca_device.xrc, as the domain's target QPs */
	int file; /* a memfd of nobody else */
};

struct hca_srq {
	struct uvd_srq srq;
	struct ibv_srq *adapter;
	struct hca_object object;
	struct ibv_xrcd *xrcd; /* XRC: the domain, opened in the context of the SRQ; else NULL */
	struct hca_queue rq;
	uint32_t max_sge;
	uint64_t charged;
};

struct hca_qp {
	struct uvd_qp qp;
	struct ibv_qp *adapter;
	struct hca_object object;
	struct hca_queue sq, rq;
	struct ibv_qp_cap cap;
	enum ibv_qp_state state; /* that the client set last; under the context's lock */
	uint64_t charged;
};

/* The ABI has no call that posts to a work queue, so it has no records. */
struct hca_wq {
	struct uvd_wq wq;
	struct ibv_wq *adapter;
	struct hca_object object;
	uint64_t charged;
};

struct hca_rwq_ind_table {
	struct uvd_rwq_ind_table table;
	struct ibv_rwq_ind_table *adapter;
};

/* Only with --memory=borrow: windows are for peers. */
struct hca_mw {
	struct uvd_mw mw;
	struct ibv_mw *adapter;
};

struct hca_counters {
	struct uvd_counters counters;
	struct ibv_counters *adapter;
};

struct hca_flow {
	struct uvd_flow flow;
	struct ibv_flow *adapter;
};

struct hca_dm {
	struct uvd_dm dm;
	struct ibv_dm *adapter;
};

struct hca_ah {
	struct uvd_ah ah;
	struct ibv_ah *adapter;
};

static inline struct hca_device *hca_device(const struct uvd_ibdev *ibdev)
{
	return ibdev->priv;
}

static inline struct hca_context *hca_context(struct uvd_context *context)
{
	return (struct hca_context *)context;
}

/* The device of a QP. An XRC target has no PD. */
static inline struct hca_device *hca_qp_device(const struct uvd_qp *qp)
{
	return hca_device(qp->pd ? qp->pd->context->dev : qp->xrcd->dev);
}

/* The context that has the QP on the adapter. */
static inline struct hca_context *hca_qp_context(const struct uvd_qp *qp)
{
	return qp->pd ? hca_context(qp->pd->context) : hca_qp_device(qp)->xrc;
}

/*
 * The errno of a failed call for the client. Drivers let some errno of the kernel's own escape, from 512 on. FUSE refuses them
 * in a reply, and the client would wait for ever.
 */
enum { HCA_FIRST_INTERNAL = 512, HCA_ENOTSUPP = 524 };
static inline int hca_errno_of(int err)
{
	if (err <= 0)
		return -EIO;
	if (err < HCA_FIRST_INTERNAL)
		return -err;
	return err == HCA_ENOTSUPP ? -EOPNOTSUPP : -EIO;
}

/* The negative errno of a call of libibverbs that has failed and set errno. */
static inline int hca_errno(void)
{
	return hca_errno_of(errno);
}

/* The same of a call that returns an errno: most return it as it is, some negative, some -1 with errno set. */
static inline int hca_result(int ret)
{
	if (!ret)
		return 0;
	return ret == -1 ? hca_errno() : hca_errno_of(ret > 0 ? ret : -ret);
}

/* ---- hca.c: the adapter ------------------------------------------------------------------------------------------ */

/*
 * Opens the adapter of the configuration and takes names, ports and tables over. Returns 0, or an errno after a
 * message.
 */
int hca_adapter_open(struct hca_device *dev);
/* The backend's take_port(). Stores into *port and gid_attrs, which are zero. Returns 0 or a negative errno. */
int hca_take_port(struct uvd_ibdev *ibdev, uint8_t number, struct uvd_port_config *port,
		  struct uvd_gid_attr gid_attrs[UVD_MAX_GIDS]);
/* Stores the path of the adapter's node. */
void hca_node_path(const struct ibv_device *device, char path[PATH_MAX]);
/*
 * Is the node a CUSE device? libibverbs finds those of uverbsd only where it cannot ask the kernel. A daemon that
 * opened its own node would wait for itself.
 */
bool hca_is_cuse(const struct ibv_device *device);
/* Asks an adapter for its features. attr: its answer to a query. */
unsigned int hca_features(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr);

/* ---- verbs.c ----------------------------------------------------------------------------------------------------- */

/* Opens a context on the adapter, with the descriptors that events.c watches. *context is zeroed. */
int hca_context_begin(struct hca_device *dev, struct hca_context *context);
/* Closes it, after its last object. */
void hca_context_end(struct hca_device *dev, struct hca_context *context);
/*
 * Takes the result of a call of libibverbs that destroys. Returns 0 if the object has ended, with the adapter or without,
 * else a negative errno.
 */
int hca_destroyed(struct hca_device *dev, int ret);

/* ---- objects.c: objects that have events ------------------------------------------------------------------------- */

#define HCA_PATIENCE UINT64_C(10000000000) /* ns */
enum { HCA_MOST_LEFT = 64 };

void hca_objects_init(struct hca_context *context);
/* The adapter has just made the object. */
void hca_object_add(struct hca_context *context, struct hca_object *object, enum hca_kind kind, void *adapter);
/* Returns the object that has this address, or NULL. Only the thread of events.c calls it, in the context. */
struct hca_object *hca_object_find(struct hca_context *context, enum hca_kind kind, uint64_t address);
/*
 * Destroys the object by destroy(), which gets object->adapter and may run in another thread. Returns 0 if the object has
 * ended, with the adapter or without, or was left on the adapter for ever; else a negative errno. When it returns 0, no
 * event of the object is relayed any more.
 */
int hca_object_destroy(struct hca_context *context, struct hca_object *object, int (*destroy)(void *adapter));
/* The backend's ending(). */
void hca_objects_ending(struct uvd_ibdev *ibdev);
/* Frees what a device knows of the contexts that are left. They themselves stay. */
void hca_left_free(struct hca_device *dev);

/* ---- translate.c: attributes ------------------------------------------------------------------------------------- */

/* Leaves in attr what this backend forwards. remote: peers can access clients' memory. features: of the device. */
void hca_mask_device(struct ibv_device_attr_ex *attr, bool remote, unsigned int features);
/* Does a client have this through us? attr: after hca_mask_device(). For `uverbsctl hca list`. */
bool hca_has_qp(const struct ibv_device_attr *attr);
bool hca_has_srq(const struct ibv_device_attr *attr);
bool hca_has_mcast(const struct ibv_device_attr *attr);
bool hca_has_remote(const struct ibv_device_attr *attr);
/*
 * Returns the adapter's request for a QP, or an errno: this backend does not forward the QP's type or flags. hash: for a QP
 * with an indirection table; the request refers to its key.
 */
int hca_qp_request(struct hca_qp *qp, const struct uvd_qp_init_attr *init, unsigned int features,
		   struct uverbsd_rx_hash *hash, struct ibv_qp_init_attr_ex *out);
/* A client gets inline data up to this, if the adapter has more: the core reads it before it knows the QP. */
enum { HCA_MAX_INLINE = 4096 /* bytes */ };
void hca_qp_limit_inline(struct ibv_qp_cap *cap);
/*
 * Fills in all of the adapter's request but buffer and tag. Returns 0, or -EINVAL: this backend does not forward the
 * opcode.
 */
int hca_send_request(const struct uvd_send_wr *wr, struct ibv_send_wr *out);

/* ---- pool.c: buffers that the adapter reaches. Caller holds the context's lock. ---------------------------------- */

struct hca_pool *hca_pool_new(struct uvd_account *account);
/* Returns 0, or -ENOMEM: no memory, the user's limit, or the adapter cannot register more. */
int hca_buffer_take(struct hca_pd *pd, size_t size, struct hca_buffer *out);
void hca_buffer_give(struct hca_pool *pool, struct hca_buffer *buffer);
/* Takes all buffers away from the adapter, before the PD goes. Those that are in use are not reused. */
void hca_pool_deregister(struct hca_pool *pool);
void hca_pool_put(struct hca_pool *pool);

/* ---- record.c: records and tags. Caller holds the context's lock. ------------------------------------------------ */

void hca_queue_init(struct hca_queue *queue, unsigned int max);
/* Returns a record with buffers for these entries, which belongs to no queue; or NULL. */
struct hca_record *hca_record_new(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sges,
				  uint32_t num_sge, uint32_t length);
void hca_record_free(struct hca_context *context, struct hca_record *record);
uint64_t hca_record_tag(const struct hca_record *record);
void hca_record_enqueue(struct hca_queue *queue, struct hca_record *record);
void hca_record_dequeue(struct hca_record *record);
/* Returns the live record of this tag, or NULL. */
struct hca_record *hca_record_find(struct hca_context *context, uint64_t tag);
/* Frees the records of a queue whose requests the adapter has dropped. */
void hca_queue_drop(struct hca_context *context, struct hca_queue *queue);
/* Frees records that are in a list of one queue, or of none. */
void hca_records_free(struct hca_context *context, struct list_head *records);
void hca_records_end(struct hca_context *context);

/* ---- rings.c: what the provider allocates for queues -------------------------------------------------------------- */

enum {
	HCA_CQ_RINGS = 1,
	HCA_SRQ_RINGS = 1,
	HCA_QP_RINGS = 2,
	HCA_WQ_RINGS = 1,
	HCA_DM_RINGS = 1,
	HCA_RINGS_BESIDE = 2
};
/* Lowers the adapter's numbers of objects to those for whose rings there is room in the daemon. */
void hca_cap_by_rings(const struct hca_device *dev, struct ibv_device_attr_ex *attr);

uint64_t hca_cq_bytes(uint32_t cqe);
uint64_t hca_srq_bytes(uint32_t max_wr, uint32_t max_sge);
uint64_t hca_qp_bytes(const struct ibv_qp_cap *cap);
/*
 * Charges a queue's rings to the user, before the provider allocates them in the daemon, and counts them: the kernel
 * limits the mappings of a process, and a daemon that has none left fails for all users. Returns 0 or -ENOMEM.
 */
int hca_charge_rings(const struct uvd_context *context, unsigned int rings, uint64_t bytes);
void hca_uncharge_rings(const struct uvd_context *context, unsigned int rings, uint64_t bytes);
/* Returns the number of rings that a device may have: a part of the mappings of this process. */
unsigned int hca_max_rings(void);

/* ---- borrow.c: regions that the client's thread registers with the adapter --------------------------------------- */

/* Has this process one of these capabilities (bits: 1 << CAP_*, below 32)? True also if it cannot be read. */
bool hca_has_capability(uint32_t capabilities);
/* struct uvd_backend.borrow_obstacle. */
const char *hca_borrow_obstacle(struct uvd_ibdev *ibdev);
/* Is REG_MR of the adapter's driver known? */
bool hca_borrow_knows(const struct ibv_context *adapter);
/* Finds out whether that is possible, after the adapter is opened. Logs it if the configuration wants it and it is not. */
void hca_borrow_probe(struct hca_device *dev);
static inline bool hca_borrows(const struct hca_device *dev)
{
	return dev->ibdev->config.memory == UVD_MEMORY_BORROW && dev->driver_id >= 0;
}
/* Prepares mr->registration. */
void hca_borrow_mr(struct hca_mr *mr);
/* Ends a borrowed region. Returns 0 or a negative errno. */
int hca_borrow_dereg(struct hca_mr *mr);
/* Asks the adapter for keys, length and iova of a borrowed region. Returns 0 or a negative errno. */
int hca_borrow_query(const struct hca_mr *mr, uint32_t handle, struct uvd_mr *out);

/* ---- rereg.c ----------------------------------------------------------------------------------------------------- */

/* Has the adapter's driver REREG_MR? Nothing announces it: makes a call that changes nothing. */
bool hca_tries_rereg(const struct ibv_context *adapter);
int hca_rereg_mr(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata);

/* ---- mr.c: regions, and copies between buffers and clients. Caller does not hold the context's lock. ------------- */

int hca_reg_mr(struct uvd_mr *mr, struct uvd_udata *udata);
int hca_dereg_mr(struct uvd_mr *mr);
/* Can a region that is copied have these bytes and this access? Returns 0 or a negative errno. */
int hca_bounce_check(const struct uvd_mr *mr);
/* Makes a region that is copied. Returns 0 or a negative errno. */
int hca_bounce_mr(struct hca_mr *mr);
/*
 * Do the entries name regions that are copied? Where regions are borrowed, the adapter gets the other entries as they
 * are. A key of ours can equal one of the adapter's: the entry then means our region if our region contains its range.
 */
bool hca_bounces(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sges, uint32_t num_sge);
/*
 * Copy between a buffer and the client's entries, `length` bytes at most. Return 0, or -EFAULT: an entry is in no
 * region of the PD that allows it, or the client's memory cannot be accessed.
 */
int hca_gather(struct hca_context *context, struct hca_pd *pd, void *to, const struct ibv_sge *sges, uint32_t num_sge);
int hca_scatter(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sges, uint32_t num_sge,
		const void *from, uint32_t length);

/* ---- post.c, cq.c, qp.c, srq.c ----------------------------------------------------------------------------------- */

int hca_post_send(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
		  struct uvd_work *work);
int hca_post_recv(struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
int hca_post_srq_recv(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);

int hca_create_cq(struct uvd_cq *cq, struct uvd_udata *udata);
int hca_destroy_cq(struct uvd_cq *cq);
int hca_poll_cq(struct uvd_cq *cq, int n, struct ibv_wc *wc);
/*
 * Moves what the adapter's CQ has to the backlog, from which the next poll takes it. Some providers drop the completions
 * of a QP that leaves, and with them receives of an SRQ, which would stay charged. Caller holds the context's lock.
 */
void hca_cq_drain(struct hca_context *context, struct hca_cq *cq);
/* The QP has left: drops what the backlog has of its own queues. Caller holds the context's lock. */
void hca_cq_forget(struct hca_context *context, struct hca_cq *cq, const struct uvd_qp *qp);
int hca_req_notify_cq(struct uvd_cq *cq, bool solicited_only);
int hca_resize_cq(struct uvd_cq *cq, int cqe, struct uvd_udata *udata);

int hca_create_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata);
int hca_modify_qp(struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata);
int hca_query_qp(struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init);
int hca_destroy_qp(struct uvd_qp *qp);
int hca_attach_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
int hca_detach_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);

int hca_create_srq(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata);
int hca_modify_srq(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata);
int hca_query_srq(struct uvd_srq *srq, struct ibv_srq_attr *attr);
int hca_destroy_srq(struct uvd_srq *srq);

/* ---- dm.c: device memory ----------------------------------------------------------------------------------------- */

int hca_alloc_dm(struct uvd_dm *dm);
int hca_dealloc_dm(struct uvd_dm *dm);
int hca_reg_dm_mr(struct uvd_mr *mr, struct uvd_udata *udata);
/* Deregisters a region of either memory. */
int hca_dereg_any_mr(struct uvd_mr *mr);
/* Are there entries, and is each in a region of device memory of the PD? Then the adapter gets them as they are. */
bool hca_dm_has(struct hca_context *context, const struct hca_pd *pd, const struct ibv_sge *sges, uint32_t num_sge);

/* ---- flow.c: flows and counters ---------------------------------------------------------------------------------- */

/* Has the adapter counters objects? Nothing announces them: makes one and destroys it. */
bool hca_tries_counters(struct ibv_context *adapter);
int hca_create_counters(struct uvd_counters *counters);
int hca_destroy_counters(struct uvd_counters *counters);
int hca_read_counters(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);
int hca_create_flow(struct uvd_flow *flow, struct uvd_udata *udata);
int hca_destroy_flow(struct uvd_flow *flow);

/* ---- wq.c: work queues and indirection tables -------------------------------------------------------------------- */

int hca_create_wq(struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata);
int hca_modify_wq(struct uvd_wq *wq, const struct ibv_wq_attr *attr, struct uvd_udata *udata);
int hca_destroy_wq(struct uvd_wq *wq);
int hca_create_rwq_ind_table(struct uvd_rwq_ind_table *table, struct uvd_udata *udata);
int hca_destroy_rwq_ind_table(struct uvd_rwq_ind_table *table);
/* Reads the hash of a QP with a table, which is the provider's part of its creation. Returns 0 or a negative errno. */
int hca_rx_hash_read(struct uvd_udata *udata, struct uverbsd_rx_hash *hash);

/* ---- xrc.c: XRC domains ------------------------------------------------------------------------------------------ */

/* Open and close the context of the domains and their target QPs, if the adapter has XRC. Begin returns 0 or an errno. */
int hca_xrc_begin(struct hca_device *dev);
void hca_xrc_end(struct hca_device *dev);
int hca_alloc_xrcd(struct uvd_xrcd *xrcd, struct uvd_udata *udata);
int hca_dealloc_xrcd(struct uvd_xrcd *xrcd);
/* Opens the domain in the context of an SRQ. Returns NULL with errno set. */
struct ibv_xrcd *hca_xrcd_open(struct hca_context *context, const struct uvd_xrcd *xrcd);
/* The SRQ has ended. If the adapter refuses to close the domain, the context closes it in the end. */
void hca_xrcd_close(struct ibv_xrcd *xrcd);

/* ---- events.c: relays the adapter's events to clients ------------------------------------------------------------ */

/* Start and end the thread. Return 0 or a negative errno. */
int hca_events_start(struct hca_device *dev);
void hca_events_end(struct hca_device *dev);
/* Watches the context's descriptors. Returns 0 or a negative errno. */
int hca_events_add(struct hca_device *dev, struct hca_context *context);
/* Between these the thread relays no events of the context, and does not wait for it. */
void hca_events_pause(struct hca_device *dev, struct hca_context *context);
void hca_events_resume(struct hca_device *dev, struct hca_context *context);
/* When it returns, the thread does not use the context any more. */
void hca_events_remove(struct hca_device *dev, struct hca_context *context);

#endif
