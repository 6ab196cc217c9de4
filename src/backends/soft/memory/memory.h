/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions, memory windows and device memory, their keys, and the copies between them. This room knows a QP by
 * its number, or as a mover's party (mover.h). The key table's lock may be taken under a QP's, and is
 * a leaf.
 */
#ifndef UVD_SOFT_MEMORY_H
#define UVD_SOFT_MEMORY_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include <uverbsd/reason.h>
#include "backends/backends.h"
#include "backends/soft/memory/mover.h"
#include "backends/soft/memory/ref.h"

enum {
	SOFT_TAG_BITS = 8, /* the low bits of a key; the other 24 are an index */
	SOFT_BURST = 32, /* maximum of requests in a burst */
};

struct soft_device;
struct soft_endpoints;
struct soft_mr_slot;

/* ---- mr.c -------------------------------------------------------------------------------------------------------- */

struct soft_mr_table {
	pthread_rwlock_t lock;
	struct soft_mr_slot *slots; /* [0] stays empty: 0 is no valid key */
	uint32_t room, free_first, free_last;
	uint32_t num_mrs, num_mws;
	uint64_t next_serial;
	struct soft_ended **ended; /* keys that have ended, by user; NULL: none yet. See why.c */
};

struct soft_mr {
	struct uvd_mr mr;
	struct soft_device *dev;
	struct soft_ref ref;
	struct uvd_account *account; /* charged for it */
	unsigned int num_mws; /* windows bound to it; under the table's lock */
	bool on_demand;
	atomic_bool has_asked; /* a mover has tried to get the view: it does so once */
	struct uvd_mm_view *_Atomic view; /* or NULL */
};

struct soft_mw {
	struct uvd_mw mw;
	struct soft_device *dev;
	struct soft_ref ref;
	uint32_t index;
	uint64_t serial; /* tells a queued bind its window from a later one in the same slot */
	/* Under the table's lock: */
	struct soft_mr *mr; /* NULL: not bound */
	uint64_t start, length; /* the range that peers may name */
	uint64_t mr_addr; /* where that range begins in the MR */
	unsigned int access;
	uint32_t qpn; /* type 2: the QP whose peer may use it */
};

/* A piece of registered memory, with references to its MR, and to the window whose key named it. */
struct soft_seg {
	struct soft_mr *mr;
	struct soft_mw *mw; /* NULL: the MR's own key named it */
	uint64_t addr; /* in the client's address space, or in the device memory */
	uint32_t length;
};

/* Bytes in a view, to be copied without the mover's buffer. The client can truncate their file at any time. */
struct soft_foreign {
	struct uvd_mm_view *view; /* a reference; NULL: there is no view */
	const void *at;
};

/* A device of the soft backend: it owns all of this, but not its configuration. */
struct soft_device {
	struct uvd_ibdev *ibdev;
	struct uvd_fabric *fabric; /* the network that it is in, endpoint/network.h */
	struct soft_mr_table mrs;
	struct soft_endpoints *endpoints; /* endpoint.h */
	struct uvd_cq_later later;
	atomic_int num_pds, num_ahs, num_cqs, num_srqs, num_qps, num_mcast_groups, num_comp_cntrs, num_counters,
		num_xrcds;
	_Atomic uint64_t dm_used; /* bytes */
};

static inline struct soft_device *soft_device(struct uvd_ibdev *ibdev)
{
	return ibdev->priv;
}

/* Counts one more object. Returns 0, or -ENOMEM if there are max already. */
int soft_count(atomic_int *count, int max);
/* The same, and explains a refusal. what: such objects. */
int soft_count_told(atomic_int *count, int max, const char *what, struct uvd_udata *udata);

int soft_mr_table_init(struct soft_mr_table *table);
void soft_mr_table_destroy(struct soft_mr_table *table);
int soft_reg_mr(struct uvd_mr *mr, struct uvd_udata *udata);
int soft_dereg_mr(struct uvd_mr *mr);
int soft_rereg_mr(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata);
/* advise.c */
int soft_advise_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
		   unsigned int num_sge);
/*
 * Looks up the memory behind (key, addr, length) and takes the references of *seg. length must not be 0. Returns 0, or
 * -EINVAL: the MR is not in this PD, does not cover the range or does not grant all of access.
 */
int soft_seg_get(struct uvd_pd *pd, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		 struct soft_seg *seg);
/* The same for a key that the peer of QP qpn of this PD names, and that may be a window's. */
int soft_remote_seg_get(struct uvd_pd *pd, uint32_t qpn, uint32_t key, uint64_t addr, uint32_t length,
			unsigned int access, struct soft_seg *seg);
void soft_seg_put(struct soft_seg *seg);

/* ---- dm.c: device memory ----------------------------------------------------------------------------------------- */

struct soft_dm {
	struct uvd_dm dm;
	pthread_mutex_t lock; /* of bytes: accesses of clients can race */
	uint8_t *bytes;
};

int soft_alloc_dm(struct uvd_dm *dm);
int soft_dealloc_dm(struct uvd_dm *dm);
int soft_reg_dm_mr(struct uvd_mr *mr, struct uvd_udata *udata);
/* offset: bytes, in the DM. */
void soft_dm_read(struct uvd_dm *dm, void *dst, uint64_t offset, size_t len);
void soft_dm_write(struct uvd_dm *dm, uint64_t offset, const void *src, size_t len);

/* ---- mw.c -------------------------------------------------------------------------------------------------------- */

int soft_alloc_mw(struct uvd_mw *mw, struct uvd_udata *udata);
int soft_dealloc_mw(struct uvd_mw *mw);
/* A queued bind. Its window and MR are looked up when it is carried out, as they may be gone by then. */
struct soft_bind {
	uint64_t mw_serial; /* 0: the window is the one that has mw_key when the bind is carried out */
	uint32_t mw_key;
	uint64_t addr, length;
	uint32_t mw_index, mr_key;
	unsigned int access;
};

/*
 * Binds a window on QP qpn of this PD. new_key: its low 8 bits become the tag of the window's key. Returns 0, or
 * -EINVAL if the bind is not allowed.
 */
int soft_bind_mw(struct uvd_pd *pd, uint32_t qpn, const struct soft_bind *bind, uint32_t new_key);
/* Invalidates a type 2 window that is bound on QP qpn. Returns 0, or -EINVAL if no such window has the key. */
int soft_invalidate_mw(struct uvd_pd *pd, uint32_t qpn, uint32_t key);
/* Does this window grant the peer of QP qpn these rights to this range? Caller holds the table's lock. */
bool soft_window_allows(const struct soft_mw *mw, const struct uvd_pd *pd, uint32_t qpn, uint32_t key, uint64_t addr,
			uint32_t length, unsigned int access);

/* ---- why.c ------------------------------------------------------------------------------------------------------- */

/* A key, and the use that a request made of it. */
struct soft_key_use {
	struct uvd_pd *pd; /* of the QP or SRQ */
	const char *which; /* "l_key" or "r_key" */
	bool is_remote; /* a window's key is good, too */
	uint32_t qpn; /* is_remote: of the QP whose peer has named it */
	uint32_t key;
	uint64_t addr;
	uint32_t length;
	unsigned int access;
};

/*
 * Returns what is wrong with the use; no reason: nothing is, at this moment. Tells nothing of other users' keys. Caller holds no lock
 * of a table.
 */
struct uvd_why soft_why_key(const struct soft_key_use *use);

/* ---- copy.c and pieces.c: the copies of movers ------------------------------------------------------------------- */

/*
 * The scatter/gather list of a work request, with keys of pd. Each access looks up the key of the one entry that it
 * moves, so that the deregistration of a region waits for no access to another region.
 */
struct soft_list {
	struct uvd_pd *pd;
	const struct ibv_sge *sge;
	int num_sge;
	unsigned int access; /* the rights that the keys must grant */
};

/* Are all keys valid? Entries of length 0 are ignored. */
bool soft_list_ok(const struct soft_list *list);
/* why.c: returns what is wrong with the first wrong key; if none is, the memory behind one could not be accessed. */
struct uvd_why soft_why_list(const struct soft_list *list);
/*
 * Copies len bytes from the list, at `offset`, to bytes; with write, from bytes to the list. Copies in ascending order.
 * The result is SOFT_COPY_BAD also for an invalid key or a list that is too short.
 */
enum soft_copy_error soft_list_move(struct soft_mover *m, enum soft_place place, const struct soft_list *list,
				    uint64_t offset, void *bytes, size_t len, bool write);
/*
 * The same for a segment. If the bytes to write are those of a struct soft_foreign, the caller sets m->is_foreign and
 * moves no more than SOFT_CHUNK bytes.
 */
enum soft_copy_error soft_seg_move(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg,
				   uint64_t offset, void *bytes, size_t len, bool write);
/*
 * Gets a view of len bytes from `offset` on, so that they can be copied without the mover's buffer. SOFT_COPY_OK and no
 * view in *foreign: the caller has to read the bytes. Whatever the result is, the caller puts *foreign. The region may
 * be deregistered before that.
 */
enum soft_copy_error soft_list_view(struct soft_mover *m, enum soft_place place, const struct soft_list *list,
				    uint64_t offset, size_t len, struct soft_foreign *foreign);
enum soft_copy_error soft_seg_view(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg,
				   uint64_t offset, size_t len, struct soft_foreign *foreign);
void soft_foreign_put(struct soft_foreign *foreign);
/* Should len bytes of the region be copied by its view? Returns true until a mover has failed to get the view. */
bool soft_mr_may_have_view(struct soft_mr *mr, size_t len);
/* Pieces of one address space that are moved by one access. It starts zeroed, but for `apart`. */
struct soft_pieces {
	struct uvd_mm *mm;
	struct uvd_account *owner;
	struct soft_seg segs[SOFT_BURST];
	struct iovec runs[SOFT_BURST]; /* neighbouring pieces share one */
	unsigned int num, num_runs;
	uint32_t length; /* of all runs */
	bool apart; /* large pieces: each has its own bytes, in their order, even if it lies in another */
};

/*
 * Adds the first len bytes of a segment, and takes over its references. len must not be 0. Call it SOFT_BURST times at
 * most. Sets *at to the offset of the piece's bytes among all that are moved. A writer stores them there in the order
 * of the pieces, as one can lie in another. Returns false if this memory cannot be moved together with the others: then
 * the references are put.
 */
bool soft_pieces_add(struct soft_pieces *pieces, struct soft_seg *seg, uint32_t len, uint32_t *at);
/* Copies all runs to bytes, one after the other; with write, from bytes. */
enum soft_copy_error soft_pieces_move(struct soft_mover *m, enum soft_place place, const struct soft_pieces *pieces,
				      void *bytes, bool write);
void soft_pieces_put(struct soft_pieces *pieces);
/*
 * As uvd_mm_read() and uvd_mm_write(), also for device memory. For on-demand regions, first checks what the client's
 * mappings allow.
 */
int soft_mem_read(const struct soft_mr *mr, void *dst, uint64_t src, size_t len);
int soft_mem_write(const struct soft_mr *mr, uint64_t dst, const void *src, size_t len);

/* ---- atomic.c ---------------------------------------------------------------------------------------------------- */

struct soft_atomic;

/* Makes atomic operations atomic to each other, wherever clients have mapped the memory. */
struct soft_atomics {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct soft_atomic *under_way; /* operations in progress, each at another place */
};

struct soft_atomic_op {
	enum ibv_wr_opcode opcode; /* IBV_WR_ATOMIC_* */
	uint64_t compare_add, swap; /* of the work request */
	uint64_t value; /* IBV_WR_ATOMIC_WRITE: what to write; others: set to the old value */
};

void soft_atomics_init(struct soft_atomics *atomics);
void soft_atomics_destroy(struct soft_atomics *atomics);
/* Carries out op on seg, which is one 64-bit word of the responder's memory. */
enum soft_copy_error soft_atomic(struct soft_mover *m, struct soft_atomics *atomics, const struct soft_seg *seg,
				 struct soft_atomic_op *op);

#endif
