/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A bed for backend tests: two devices on one fabric, each with a context and a PD, and two QPs, one on each device. It
 * does what the core would do and no more: straight calls on the backend's functions.
 */
#ifndef TESTS_BACKENDS_BED_H
#define TESTS_BACKENDS_BED_H

#include <check.h>
#include <uverbsd/backend.h>

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
	struct uvd_srq *srq; /* of the QPs that are made next */
	struct uvd_queue *sq; /* the same: mapped; the test's */
	struct uvd_xrcd *xrcd; /* of XRC targets that are made next; the test's */
	struct uvd_qp *qp;
	struct uvd_mr *mr;
	char *buf;
	int timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic, max_dest_rd_atomic, access, path_mtu,
		pkey_index;
	int psn; /* of what it sends, and what its peer expects */
	atomic_int qp_event[32], srq_event[32], cq_event, comp; /* counted by type */
};

struct bed {
	const struct uvd_backend *ops;
	struct uvd_fabric *fabric;
	struct side side[2];
	struct end end[2];
	/* For the QPs that are made next; a CQ size of 0 is 64. */
	struct ibv_qp_cap cap;
	bool sq_sig_all, one_cq;
	int cqe;
};

void bed_open(struct bed *bed, const struct uvd_backend *ops, uint8_t link_layer);
void bed_make_qps(struct bed *bed, enum ibv_qp_type type);
/* Makes the QPs where there are none and brings both to RTS. */
void bed_connect(struct bed *bed, enum ibv_qp_type type);
/* Destroys what there still is. */
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

/* An SGE in end's own buffer. */
struct ibv_sge sge_at(struct end *end, size_t offset, uint32_t length);
int post_send_wr(struct end *end, const struct uvd_send_wr *wr);
int post_recv_list(struct end *end, uint64_t wr_id, const struct ibv_sge *sge, int num_sge);
int post_srq_at(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);
int post_recv_at(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);
#define send_wr(end, ...) post_send_wr(end, &(struct uvd_send_wr){ __VA_ARGS__ })

/* At most one completion, at once. */
int poll_cq(struct uvd_cq *cq, struct ibv_wc *wc);
/* The next completion; fails the test if none comes within a minute. */
struct ibv_wc wait_wc(struct uvd_cq *cq);
uint64_t now_us(void);
/* A signalled request 0xa, to the beginning of the peer's buffer; and one of length bytes that is posted. */
struct uvd_send_wr wr_to(struct end *peer, enum ibv_wr_opcode opcode, const struct ibv_sge *sge, int num_sge);
void send_small(struct end *from, struct end *to, enum ibv_wr_opcode opcode, uint32_t length);
/* The next completion is this one. */
struct ibv_wc expect(struct uvd_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void expect_nothing(struct uvd_cq *cq);
/* Runs one test case; the result of main(). */
int run_suite(const char *name, TCase *t);

/*
 * Memory of the stub client (bed_mm.c). Accesses to the mm_bad_len bytes at mm_bad are -EFAULT; so are writes to the
 * mm_ro_len bytes at mm_ro where the memory is registered on demand.
 */
extern _Atomic uint64_t mm_bad, mm_bad_len, mm_ro, mm_ro_len;
/* An access to the mm_slow_len bytes at mm_slow waits until that is 0. mm_slowed: threads that do so. */
extern _Atomic uint64_t mm_slow, mm_slow_len;
extern atomic_bool mm_spins; /* it waits without sleep, as a thread that gets no processor does not sleep either */
extern atomic_int mm_slowed;
/*
 * A region in the len bytes at addr has a view, whose bytes are those at `at`: not the same, so that a test sees which were used.
 * mm_bad means them, too. mm_viewed: how often somebody asked for one; mm_view_refs: views that there are.
 */
struct fake_view {
	uint64_t addr, len;
	char *at;
	bool read_only;
};
enum { MM_VIEWS = 2 };
extern struct fake_view mm_views[MM_VIEWS];
extern atomic_int mm_viewed, mm_view_refs;
extern atomic_int mm_bursts; /* accesses to several pieces at once */
extern void (*_Atomic mm_written)(void); /* called after each write, by the thread that made it */
extern _Atomic bool mm_gone; /* its processes have exited: uvd_mm_alive() */

#endif
