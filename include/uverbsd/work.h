/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests, and the rest of a call that is done after its answer. */
#ifndef UVERBSD_WORK_H
#define UVERBSD_WORK_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct uvd_account;
struct uvd_ah;
struct uvd_mr;
struct uvd_mw;

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

#endif
