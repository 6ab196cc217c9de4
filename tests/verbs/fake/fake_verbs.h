/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A libibverbs with one adapter, "fake0", in this process: the test program defines the functions that the verbs backend
 * calls, so the shared library's are not used. Its QPs reach each other by number. RDMA reads and writes access the
 * memory of this process at the remote address and check no rkey. Completions of a QP that was reset or destroyed stay
 * in the CQ, as with some real providers.
 */
#ifndef UVD_TESTS_FAKE_VERBS_H
#define UVD_TESTS_FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

enum fake_call {
	/* These return NULL with errno set to the result. */
	FAKE_OPEN,
	FAKE_CREATE_CHANNEL,
	FAKE_ALLOC_PD,
	FAKE_REG_MR,
	FAKE_CREATE_CQ,
	FAKE_CREATE_SRQ,
	FAKE_CREATE_QP,
	FAKE_OPEN_XRCD,
	FAKE_ALLOC_DM,
	FAKE_CREATE_COUNTERS,
	FAKE_CREATE_FLOW,
	FAKE_CREATE_WQ,
	FAKE_CREATE_TABLE,
	FAKE_REG_DM_MR,
	FAKE_CREATE_AH,
	/* These return the result; if that is -1, with errno set to fake.err. */
	FAKE_DEALLOC_PD,
	FAKE_RESIZE_CQ,
	FAKE_POLL_CQ,
	FAKE_REQ_NOTIFY_CQ,
	FAKE_DESTROY_CQ,
	FAKE_MODIFY_SRQ,
	FAKE_QUERY_SRQ,
	FAKE_POST_SRQ_RECV,
	FAKE_DESTROY_SRQ,
	FAKE_MODIFY_QP,
	FAKE_QUERY_QP,
	FAKE_POST_SEND,
	FAKE_POST_RECV,
	FAKE_DESTROY_QP,
	FAKE_ATTACH_MCAST,
	FAKE_DETACH_MCAST,
	FAKE_GET_SRQ_NUM,
	FAKE_CLOSE_XRCD,
	FAKE_FREE_DM,
	FAKE_ATTACH_COUNTERS,
	FAKE_READ_COUNTERS,
	FAKE_DESTROY_COUNTERS,
	FAKE_DESTROY_FLOW,
	FAKE_MODIFY_WQ,
	FAKE_DESTROY_WQ,
	FAKE_DESTROY_TABLE,
	FAKE_DEREG_MR,
	FAKE_DESTROY_AH,
	FAKE_CALLS
};

/* The switches, all off at first, and what the adapter has seen. */
extern struct fake_adapter {
	atomic_int result[FAKE_CALLS]; /* what the call returns; 0: it succeeds */
	atomic_int err;
	atomic_int waits_in; /* the call of this number posts `blocked`, and waits for `unblock`; 0: none */
	atomic_bool queues_refused; /* a post_send that fails has queued its requests, but does not process them */
	atomic_bool holds; /* requests stay in the send queues until fake_run() */
	atomic_uint blocks; /* a post_send to the QP of this number posts `blocked` and waits for `unblock` */
	atomic_bool blocks_events; /* ibv_ack_async_event() of an object posts `blocked` and waits for `unblock` */
	atomic_bool floods; /* the CQs are never empty: they are full of completions of no request */
	atomic_bool hangs; /* the destruction of a QP posts `blocked`, and waits for `unblock` */
	atomic_bool cleans_cqs; /* completions of a destroyed QP leave its recv_cq, as with mlx4 and mlx5 */
	atomic_bool unprivileged; /* this process has no CAP_NET_RAW, whatever the test's user may do */
	atomic_bool gone; /* every call fails with EIO, destructions too, and the object stays */
	atomic_int opens; /* contexts that were opened */
	atomic_int posted; /* send requests that were queued */
	atomic_int objects; /* of libibverbs that exist: contexts, channels, PDs, MRs, CQs, SRQs, QPs, XRC domains */
	atomic_int domains; /* of XRC, in the kernel */
	struct ibv_device_attr_ex attr; /* its answer to a query: the flags of orig_attr, and all but orig_attr */
	struct ibv_qp_init_attr_ex qp_request; /* the last one */
	uint8_t rx_hash_key[128]; /* of that request; its pointer is valid during the call only */
	unsigned int send_flags; /* of the last send request */
	struct ibv_wq_init_attr wq_request;
	struct ibv_wq_attr wq_change;
	struct ibv_alloc_dm_attr dm_request;
	_Alignas(8) char flow_request[1024]; /* a struct ibv_flow_attr with its specs */
	uint32_t read_flags; /* of the last read of counters */
	struct {
		uint64_t offset, length;
		unsigned int access;
	} dm_region; /* the last one that was asked for */
	char dm[4096]; /* the adapter's memory; an allocation begins with its first byte */
	sem_t blocked, unblock;
	char node[32]; /* the file that plays the adapter's node, from fake_begin() to fake_end() */
} fake;

/* Turns all switches off, forgets all objects and makes the node. */
void fake_begin(void);
/* Removes the node and frees the objects that are left. Those of an adapter that is gone cannot be destroyed. */
void fake_end(void);
/* Processes what is in the send queues. */
void fake_run(void);
/* The address of the data of the request at this place in the send queue of a QP; NULL: there is none. */
void *fake_queued(uint32_t qp_num, unsigned int place);
/* From now on calls fail, and no event tells. */
void fake_device_lost(void);
/* Reports DEVICE_FATAL to all contexts; from now on calls fail. */
void fake_device_fatal(void);
/* Reports an event of a QP, or of an XRC SRQ, to its context. */
void fake_qp_event(uint32_t qp_num, enum ibv_event_type type);
/* Reports an event to the QP's context that a holder of its device file has made, of an object of its own. */
void fake_forged_event(uint32_t qp_num, uint64_t element, enum ibv_event_type type);
/* The QP's context reports what no kernel does. */
void fake_odd_event(uint32_t qp_num, const void *bytes, size_t len);
struct ibv_qp *fake_qp(uint32_t qp_num);
/* The wr_id of the first request of the QP's queue. */
uint64_t fake_tag(uint32_t qp_num, bool receives);
/* Adds a completion to the QP's CQ for receives, whatever it says. */
void fake_forged_completion(uint32_t qp_num, struct ibv_wc wc);
void fake_srq_event(uint32_t srq_num, enum ibv_event_type type);
void fake_wq_event(uint32_t wq_num);
struct ibv_wq *fake_wq(uint32_t wq_num);
/* The number of the work queue at this place; 0: there is none. */
uint32_t fake_table_entry(const struct ibv_rwq_ind_table *table, size_t i);
/*
 * A peer sends a message to an XRC target, which is to take a receive of the SRQ. Returns 0, or -1: the target accepts
 * nothing, the two are not of one domain, or there is no receive.
 */
int fake_xrc_send(uint32_t qp_num, uint32_t srq_num, const void *data, uint32_t length);

#endif
