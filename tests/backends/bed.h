/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A test bed for backends: two devices on one fabric, each with a context and a PD, and two QPs, one on each device. It
 * calls the backend's functions directly, in the place of the core.
 */
#ifndef TESTS_BACKENDS_BED_H
#define TESTS_BACKENDS_BED_H

#include <check.h>
#include <unistd.h>
#include <uverbsd/backend.h>
#include "backends/backends.h"
#include "backends/soft/fabric.h"
#include "../suite.h"

enum { BUF_SIZE = 1024 * 1024 };

struct side {
	struct uvd_ibdev dev;
	struct uvd_context *context;
	struct uvd_pd *pd;
};

/* One end of a connection. buf is registered as mr with all access rights. */
struct end {
	struct side *side;
	struct uvd_cq *scq, *rcq;
	struct uvd_srq *srq; /* for the QPs that are made next */
	struct uvd_queue *sq, *rq; /* for the QPs that are made next: mapped queues, or NULL; owned by the test */
	struct uvd_xrcd *xrcd; /* for the XRC targets that are made next; owned by the test */
	struct uvd_qp *qp;
	struct uvd_mr *mr;
	char *buf;
	int timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic, max_dest_rd_atomic, access, path_mtu,
		pkey_index;
	int psn; /* the first PSN that this end sends and its peer expects */
	atomic_int qp_event[32], srq_event[32], cq_event, comp; /* numbers of events; qp_event and srq_event by type */
};

struct bed {
	const struct uvd_backend *ops;
	struct uvd_fabric *fabric;
	struct uvd_fabric *other; /* on the wire: that of side[1]; else NULL */
	struct side side[2];
	struct end end[2];
	/* For the QPs and CQs that are made next. cqe 0: 64 entries. */
	struct ibv_qp_cap cap;
	bool sq_sig_all, one_cq;
	int cqe;
};

/*
 * BED_QUEUES=mapped: the QPs, CQs and SRQs of the bed have the mapped queues of the persona rxe (bed_mapped.c), and all
 * functions below use them. A test that shows nothing of mapped queues is added by add_own_queue_test(), which says why:
 * docs/conformance.md shows that for each statement.
 */
bool bed_is_mapped(void);
/*
 * BED_WIRE=1: each side has an engine of its own, with a socket at an address of the loopback interface. Both are RoCE v2 devices, and
 * all that goes between them are packets. A test of what packets do otherwise, or cannot do, is added by add_local_test(), which says why.
 */
bool bed_is_on_wire(void);
#define add_local_loop_test(t, test, from, to, why) \
	do { \
		if (!bed_is_on_wire()) \
			tcase_add_loop_test(t, test, from, to); \
	} while (0)
#define add_local_test(t, test, why) add_local_loop_test(t, test, 0, 1, why)
#define add_own_queue_loop_test(t, test, from, to, why) \
	do { \
		if (!bed_is_mapped()) \
			tcase_add_loop_test(t, test, from, to); \
	} while (0)
#define add_own_queue_test(t, test, why) add_own_queue_loop_test(t, test, 0, 1, why)

void bed_open(struct bed *bed, const struct uvd_backend *ops, uint8_t link_layer);
void bed_make_qps(struct bed *bed, enum ibv_qp_type type);
/* Creates the QPs, unless there are some, and brings both to RTS. */
void bed_connect(struct bed *bed, enum ibv_qp_type type);
/* Destroys all that is left. */
void bed_close(struct bed *bed);

struct uvd_cq *make_cq(struct end *end, int cqe);
int make_srq(struct end *end, uint32_t max_wr, uint32_t max_sge, uint32_t limit);
struct uvd_mr *make_mr(struct end *end, void *addr, uint64_t length, unsigned int access);
void free_mr(struct uvd_mr *mr);
struct uvd_qp *make_qp(struct end *end, enum ibv_qp_type type, struct uvd_qp_init_attr *init, int *err);
void free_qp(struct end *end);

int to_init(struct end *end);
int to_rtr(struct end *end, struct end *peer);
int to_rts(struct end *end);
int to_state(struct end *end, enum ibv_qp_state state);
enum ibv_qp_state state_of(struct end *end);

/* The address of end's port, as an AH has it: by its LID, or by its GID on Ethernet. */
struct ibv_ah_attr bed_address_of(const struct end *end);

/* Returns an SGE in end's own buffer. */
struct ibv_sge sge_at(struct end *end, size_t offset, uint32_t length);
/* The backend's operations, or what the provider of mapped queues does instead. */
int bed_post_send(struct end *end, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad, struct uvd_work *work);
int bed_post_recv(struct end *end, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
int bed_post_srq_recv(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
int post_send_wr(struct end *end, const struct uvd_send_wr *wr);
int post_recv_list(struct end *end, uint64_t wr_id, const struct ibv_sge *sge, int num_sge);
int post_srq_at(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);
int post_recv_at(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);
#define send_wr(end, ...) post_send_wr(end, &(struct uvd_send_wr){ __VA_ARGS__ })

/* Polls for one completion, without waiting. Returns their number: 0 or 1. */
int poll_cq(struct uvd_cq *cq, struct ibv_wc *wc);
/* Waits for the next completion. The test fails if none comes within a minute. */
struct ibv_wc wait_wc(struct uvd_cq *cq);
uint64_t now_us(void);
/*
 * Waits until the condition holds: on the wire the sender's completion does not mean that the receiver has told its client, or, with UC and
 * UD, that the message has arrived. The test fails if the condition does not hold within a minute.
 */
#define wait_until(condition) \
	do { \
		const uint64_t wait_end = now_us() + 60000000; \
		while (!(condition) && now_us() < wait_end) \
			usleep(50); \
		ck_assert(condition); \
	} while (0)
/*
 * wr_to() returns a signalled request, wr_id 0xa, that accesses the start of the peer's buffer. send_small() posts such
 * a request of `length` bytes.
 */
struct uvd_send_wr wr_to(struct end *peer, enum ibv_wr_opcode opcode, const struct ibv_sge *sge, int num_sge);
void send_small(struct end *from, struct end *to, enum ibv_wr_opcode opcode, uint32_t length);
/*
 * No post takes wr, whose wr_id is 0xa and which is signalled: EINVAL. A mapped queue holds what its client wrote: there the
 * request completes with LOC_QP_OP_ERR.
 */
void expect_not_postable(struct end *end, const struct uvd_send_wr *wr);
/* Waits for the next completion, which must have this wr_id and status. */
struct ibv_wc expect(struct uvd_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void expect_nothing(struct uvd_cq *cq);
/* Waits for an explanation for the user of this end's QP, whose reason has the code, or on the wire the other one. */
void expect_why(const struct end *end, const char *code, const char *on_wire);
bool was_explained(const struct end *end, const char *code);
/* Has one of the latest explanations, with its remedy, this text? */
bool was_told(const struct end *end, const char *part);
/* How often, among the latest explanations? */
unsigned int times_explained(const struct end *end, const char *code);

/*
 * Memory of the stub client (bed_mm.c). An access to the mm_bad_len bytes at mm_bad fails with -EFAULT. So does
 * uvd_mm_check() for a write to the mm_ro_len bytes at mm_ro: the engine asks it for on-demand regions.
 */
extern _Atomic uint64_t mm_bad, mm_bad_len, mm_ro, mm_ro_len;
/* An access to the mm_slow_len bytes at mm_slow waits until that is 0. mm_slowed: number of waiting threads. */
extern _Atomic uint64_t mm_slow, mm_slow_len;
extern atomic_bool mm_spins; /* such a thread spins and stays runnable, like one that waits for a CPU */
extern atomic_int mm_slowed;
/*
 * A region within the len bytes at addr has a view, whose bytes are at `at`. The region's own bytes are elsewhere, so
 * that a test sees which of the two were used. mm_bad applies to views too. mm_viewed: number of calls of
 * uvd_mm_view_get(); mm_view_refs: number of views that exist.
 */
struct fake_view {
	uint64_t addr, len;
	char *at;
	bool read_only;
};
enum { MM_VIEWS = 2 };
extern struct fake_view mm_views[MM_VIEWS];
extern atomic_int mm_viewed, mm_view_refs;
extern atomic_int mm_bursts; /* number of uvd_mm_readv() and uvd_mm_writev() calls */
extern void (*_Atomic mm_failed)(void); /* called by each uvd_mm_write() to mm_bad, on the writing thread */
extern void (*_Atomic mm_written)(void); /* called after each uvd_mm_write(), on the writing thread */
extern _Atomic bool mm_gone; /* the client's processes have exited: uvd_mm_alive() returns false */

#endif
