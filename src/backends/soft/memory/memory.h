/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What keys stand for: regions, windows, the device's own memory, and how bytes get from one to another. Nothing here knows of
 * QPs but by their number. The table's lock is taken under a QP's, and nothing under it.
 */
#ifndef UVD_SOFT_MEMORY_H
#define UVD_SOFT_MEMORY_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include "backends/soft/memory/mover.h"
#include "backends/soft/memory/ref.h"

enum {
	SOFT_TAG_BITS = 8, /* of a key; the other 24 are an index */
	SOFT_BURST = 32, /* requests that are carried out at once, at most */
};

struct soft_device;
struct soft_endpoints;
struct soft_mr_slot;

/* ---- mr.c -------------------------------------------------------------------------------------------------------- */

struct soft_mr_table {
	pthread_rwlock_t lock;
	struct soft_mr_slot *slots; /* [0] stays empty: key 0 is nobody's */
	uint32_t room, free_first, free_last;
	uint32_t num_mrs, num_mws;
	uint64_t next_serial;
};

struct soft_mr {
	struct uvd_mr mr;
	struct soft_device *dev;
	struct soft_ref ref;
	struct uvd_account *account; /* who pays for it */
	unsigned int num_mws; /* bound to it; the table's lock */
	bool on_demand;
	atomic_bool has_asked; /* for the view, once, by a mover in its memory */
	struct uvd_mm_view *_Atomic view; /* or NULL */
};

struct soft_mw {
	struct uvd_mw mw;
	struct soft_device *dev;
	struct soft_ref ref;
	uint32_t index;
	uint64_t serial; /* so that a queued bind does not meet a later window in the same slot */
	/* The table's lock: */
	struct soft_mr *mr; /* NULL: not bound */
	uint64_t start, length; /* what peers may name */
	uint64_t mr_addr; /* where that begins in the MR */
	unsigned int access;
	uint32_t qpn; /* type 2: whose peers may use it */
};

/* A piece of registered memory, with references to its MR and to the window that it was reached by. */
struct soft_seg {
	struct soft_mr *mr;
	struct soft_mw *mw; /* NULL: by the MR's own key */
	uint64_t addr; /* in the client's address space, or in the device memory */
	uint32_t length;
};

/* Bytes of a client's that are moved from where they are, without the mover's buffer. They can be gone at any time. */
struct soft_foreign {
	struct uvd_mm_view *view; /* a reference; NULL: there are none */
	const void *at;
};

/* What a device owns besides its configuration. */
struct soft_device {
	struct uvd_ibdev *ibdev;
	struct soft_mr_table mrs;
	struct soft_endpoints *endpoints; /* endpoint.h */
	atomic_int num_pds, num_ahs, num_cqs, num_srqs, num_qps, num_mcast_groups, num_comp_cntrs, num_counters, num_xrcds;
	_Atomic uint64_t dm_used; /* bytes */
};

static inline struct soft_device *soft_device(struct uvd_ibdev *ibdev)
{
	return ibdev->priv;
}

/* Counts one more object; -ENOMEM when there are max already. */
int soft_count(atomic_int *count, int max);

int soft_mr_table_init(struct soft_mr_table *table);
void soft_mr_table_destroy(struct soft_mr_table *table);
int soft_reg_mr(struct uvd_mr *mr);
int soft_dereg_mr(struct uvd_mr *mr);
int soft_rereg_mr(struct uvd_mr *mr, int flags, struct uvd_mr *to);
/* advise.c */
int soft_advise_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
		   unsigned int num_sge);
/*
 * The memory behind (key, addr, length), if the MR is of this PD, covers the range and allows all of access. length is not
 * 0. -EINVAL otherwise.
 */
int soft_seg_get(struct uvd_pd *pd, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		 struct soft_seg *seg);
/* The same for a key that the peer of a QP of that number and PD names, which may be a window's. */
int soft_remote_seg_get(struct uvd_pd *pd, uint32_t qpn, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
			struct soft_seg *seg);
void soft_seg_put(struct soft_seg *seg);

/* ---- dm.c: memory of the device, which is ours ------------------------------------------------------------------- */

struct soft_dm {
	struct uvd_dm dm;
	pthread_mutex_t lock; /* bytes: clients may let their accesses race */
	uint8_t *bytes;
};

int soft_alloc_dm(struct uvd_dm *dm);
int soft_dealloc_dm(struct uvd_dm *dm);
int soft_reg_dm_mr(struct uvd_mr *mr);
/* offset: in the DM. */
void soft_dm_read(struct uvd_dm *dm, void *dst, uint64_t offset, size_t len);
void soft_dm_write(struct uvd_dm *dm, uint64_t offset, const void *src, size_t len);

/* ---- mw.c -------------------------------------------------------------------------------------------------------- */

int soft_alloc_mw(struct uvd_mw *mw);
int soft_dealloc_mw(struct uvd_mw *mw);
/* What is looked up when the bind is carried out: objects may be gone by then. */
struct soft_bind {
	uint64_t mw_serial; /* 0: the window is the one with this key when the bind is carried out */
	uint32_t mw_key;
	uint64_t addr, length;
	uint32_t mw_index, mr_key;
	unsigned int access;
};

/* On a QP of that number and PD. -EINVAL: it may not be. */
int soft_bind_mw(struct uvd_pd *pd, uint32_t qpn, const struct soft_bind *bind, uint32_t new_key);
/* A window of type 2, bound on that QP, loses its meaning. -EINVAL: the key is none. */
int soft_invalidate_mw(struct uvd_pd *pd, uint32_t qpn, uint32_t key);
/* With the table's lock held: does this window give the peer of that QP these rights there? */
bool soft_window_allows(const struct soft_mw *mw, const struct uvd_pd *pd, uint32_t qpn, uint32_t key, uint64_t addr,
			uint32_t length, unsigned int access);

/* ---- copy.c: what movers do -------------------------------------------------------------------------------------- */

/* A work request's list, whose keys are of pd. Each access looks them up, so that no region waits for another's memory. */
struct soft_list {
	struct uvd_pd *pd;
	const struct ibv_sge *sge;
	int num_sge;
	unsigned int access; /* that the keys must give */
};

/* Are all keys good? Those of entries of length 0 mean nothing. */
bool soft_list_ok(const struct soft_list *list);
/* Moves len bytes from `offset` of the list on, which has them, to bytes; or, with write, from bytes. In ascending order. */
enum soft_copy_error soft_list_move(struct soft_mover *m, enum soft_place place, const struct soft_list *list, uint64_t offset,
				    void *bytes, size_t len, bool write);
/*
 * The same with a segment. Who writes from struct soft_foreign says so in the mover (is_foreign), and moves no more than its buffer
 * holds.
 */
enum soft_copy_error soft_seg_move(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg, uint64_t offset,
				   void *bytes, size_t len, bool write);
/*
 * len bytes from `offset` on, to be moved from where they are. SOFT_COPY_OK without a view: they have to be read. Whatever the result
 * is, the caller puts *foreign. The region may go before that: nobody waits for the reference.
 */
enum soft_copy_error soft_list_view(struct soft_mover *m, enum soft_place place, const struct soft_list *list, uint64_t offset,
				    size_t len, struct soft_foreign *foreign);
enum soft_copy_error soft_seg_view(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg, uint64_t offset,
				   size_t len, struct soft_foreign *foreign);
void soft_foreign_put(struct soft_foreign *foreign);
/* Are so many bytes of it better moved from where they are? True until a mover has asked for the view in vain. */
bool soft_mr_may_have_view(struct soft_mr *mr, size_t len);
/* Pieces of one address space that are moved at once. It starts zeroed, but for `apart`. */
struct soft_pieces {
	struct uvd_mm *mm;
	struct uvd_account *owner;
	struct soft_seg segs[SOFT_BURST];
	struct iovec runs[SOFT_BURST]; /* neighbours are one */
	unsigned int num, num_runs;
	uint32_t length; /* of all runs */
	bool apart; /* large pieces: each has bytes of its own, in their order, also where one lies in another */
};

/*
 * Adds the first len bytes of a segment, at most SOFT_BURST times, and takes its references over. len is not 0. *at: where its bytes are
 * among all that are moved; who writes puts them there in the order of the pieces, as one can lie in another. False: the memory is not
 * such that it can be moved with the others; the references are gone.
 */
bool soft_pieces_add(struct soft_pieces *pieces, struct soft_seg *seg, uint32_t len, uint32_t *at);
enum soft_copy_error soft_pieces_move(struct soft_mover *m, enum soft_place place, const struct soft_pieces *pieces, void *bytes,
				      bool write);
void soft_pieces_put(struct soft_pieces *pieces);
/* As uvd_mm_read() and uvd_mm_write(); memory that is registered on demand is asked what it allows now. */
int soft_mem_read(const struct soft_mr *mr, void *dst, uint64_t src, size_t len);
int soft_mem_write(const struct soft_mr *mr, uint64_t dst, const void *src, size_t len);

/* ---- atomic.c ---------------------------------------------------------------------------------------------------- */

struct soft_atomic;

/* Atomics are atomic among each other, wherever clients have mapped the memory. */
struct soft_atomics {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct soft_atomic *under_way; /* each at another place */
};

struct soft_atomic_op {
	enum ibv_wr_opcode opcode; /* IBV_WR_ATOMIC_* */
	uint64_t compare_add, swap; /* as the work request has them */
	uint64_t value; /* IBV_WR_ATOMIC_WRITE: what is written; of the others: what was there */
};

void soft_atomics_init(struct soft_atomics *atomics);
void soft_atomics_destroy(struct soft_atomics *atomics);
/* One 64-bit word, the segment, which is the responder's. */
enum soft_copy_error soft_atomic(struct soft_mover *m, struct soft_atomics *atomics, const struct soft_seg *seg,
				 struct soft_atomic_op *op);

#endif
