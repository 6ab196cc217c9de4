/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What keys stand for: regions, windows, the device's own memory, and how bytes get from one to another. Part of soft.h,
 * which says what is locked when.
 */
#ifndef UVD_SOFT_MEMORY_H
#define UVD_SOFT_MEMORY_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include "backends/soft/ref.h"

struct soft_device;
struct soft_mr_slot;
struct soft_qp;
struct soft_request;
struct soft_outcome;

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
	unsigned int num_mws; /* bound to it; the table's lock */
	bool on_demand;
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
/* The same for a key that qp's peer names, which may be a window's. */
int soft_target_get(struct soft_qp *qp, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		    struct soft_seg *seg);
/* All of a list; entries of length 0 are passed over. How many segments, or -EINVAL and none is held. */
int soft_segs_get(struct uvd_pd *pd, const struct ibv_sge *sge, int num_sge, unsigned int access,
		  struct soft_seg *segs);
void soft_segs_put(struct soft_seg *segs, int n);

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
/* Requests that stay at home: binds and local invalidations. */
struct soft_outcome soft_local_send(struct soft_request *req);
/* A window of type 2, bound on this QP, loses its meaning. -EINVAL: the key is none. */
int soft_invalidate(struct soft_qp *qp, uint32_t key);
/* With the table's lock held: does this window give the QP's peer these rights there? */
bool soft_window_allows(const struct soft_mw *mw, const struct soft_qp *qp, uint32_t key, uint64_t addr,
			uint32_t length, unsigned int access);

/* ---- copy.c ------------------------------------------------------------------------------------------------------ */

/* A list of bytes: segments of client memory, or bytes of our own. */
struct soft_span {
	const uint8_t *bytes; /* NULL: segs */
	const struct soft_seg *segs;
	int num_segs;
	uint64_t offset; /* in the bytes or in segs[0] */
};

enum soft_copy_error { SOFT_COPY_OK, SOFT_COPY_SRC, SOFT_COPY_DST, SOFT_COPY_CUT };

/* Copies length bytes, in ascending order. Stops (CUT) when one of the QPs is reset, destroyed or in error. */
enum soft_copy_error soft_copy(struct soft_span dst, struct soft_span src, uint64_t length, struct soft_qp *qp,
			       struct soft_qp *peer);
/* As uvd_mm_read() and uvd_mm_write(); memory that is registered on demand is asked what it allows now. */
int soft_mem_read(const struct soft_mr *mr, void *dst, uint64_t src, size_t len);
int soft_mem_write(const struct soft_mr *mr, uint64_t dst, const void *src, size_t len);
/* All bytes of the segments, which fit in dst. 0, or -1: the client has no such memory any more. */
int soft_gather(uint8_t *dst, const struct soft_seg *segs, int num_segs);

#endif
