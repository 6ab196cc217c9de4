/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The network between soft devices: it finds QPs and SRQs by address and number, and has the threads that all QPs
 * share. Part of endpoint.h.
 */
#ifndef UVD_SOFT_NETWORK_H
#define UVD_SOFT_NETWORK_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include "backends/soft/memory/memory.h"
#include "util/util.h"

enum {
	SOFT_QPN_BITS = 24,
	SOFT_FIRST_QPN = 2, /* QPs 0 and 1 are the management QPs */
	/* Numbers of buckets, and their logarithms. */
	SOFT_QPN_HASH = 10,
	SOFT_QPN_BUCKETS = 1 << SOFT_QPN_HASH,
	SOFT_MCAST_HASH = 6,
	SOFT_MCAST_BUCKETS = 1 << SOFT_MCAST_HASH,
	SOFT_SRQN_HASH = 6,
	SOFT_SRQN_BUCKETS = 1 << SOFT_SRQN_HASH,
};

struct soft_qp;
struct soft_request;
struct soft_srq;
struct soft_user;
struct uvd_capture;

/* ---- timer.c ----------------------------------------------------------------------------------------------------- */

struct soft_timer {
	uint64_t deadline; /* CLOCK_MONOTONIC, ns */
	unsigned int wait_nr; /* the wait (soft_qp.s_wait_nr) that it was armed for */
	unsigned int slot; /* in the heap, from 1; 0: not armed */
};

struct soft_timers {
	void (*expired)(struct soft_qp *qp, unsigned int wait_nr);
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct soft_qp **heap; /* [1] expires first; room for every QP, so that arming never allocates */
	unsigned int count, room, reserved;
	bool running, stop;
};

void soft_timers_init(struct soft_timers *timers, void (*expired)(struct soft_qp *qp, unsigned int wait_nr));
void soft_timers_destroy(struct soft_timers *timers);
/* Makes room for one more QP, and starts the thread for the first one. Returns 0 or a negative errno. */
int soft_timers_reserve(struct soft_timers *timers);
/* Disarms the QP's timer and gives its room back. */
void soft_timers_release(struct soft_timers *timers, struct soft_qp *qp);
/* Caller holds qp->lock. ns: from now. */
void soft_timer_arm(struct soft_timers *timers, struct soft_qp *qp, uint64_t ns);
void soft_timer_disarm(struct soft_timers *timers, struct soft_qp *qp);

/* ---- users.c ----------------------------------------------------------------------------------------------------- */

struct soft_users {
	void (*run)(struct soft_qp *qp, struct uvd_worker *worker); /* takes over the reference to qp */
	pthread_mutex_t lock; /* the list of users, and all of each user */
	pthread_cond_t ended; /* the last user is gone */
	struct soft_user *first;
	unsigned int most_active; /* limit of a user's threads that are not held up */
	unsigned int most_threads; /* limit of all of a user's threads */
	bool end;
	/* Between two looks at the QPs of a user that are in ERR: at first, and at most, as each look that finds nothing doubles it. */
	_Atomic uint64_t look_first_ns, look_most_ns;
	atomic_uint num_in_error; /* QPs that are looked at, of all users */
};

void soft_users_init(struct soft_users *users, void (*run)(struct soft_qp *qp, struct uvd_worker *worker));
/* Call after all QPs have been destroyed. Returns false if a thread does not come back from a client's memory. */
bool soft_users_destroy(struct soft_users *users);
/*
 * Queues qp for its user's thread, behind the user's other QPs. Takes a reference. Caller holds qp->lock, and s_busy is
 * false, or becomes false before the caller unlocks. Returns false if there is no thread and none can be started.
 * by_user_thread: the caller is such a thread, and runs this QP.
 */
bool soft_defer(struct soft_qp *qp, bool by_user_thread);
/*
 * Takes qp back from its user's thread. Caller holds qp->lock. The thread may be running qp at this moment: then s_busy is
 * set, and it stops after the request in hand.
 */
void soft_undefer(struct soft_qp *qp);
/* Do other QPs of the same user wait for a thread? Takes the users' lock. */
bool soft_user_has_more(struct soft_qp *qp);
/*
 * The QP has gone into ERR. If it has a mapped receive queue, to which its client can post without a call, a thread of the user looks there
 * from time to time, until soft_error_unwatch(). If no thread can be started, the timer tries again. Caller holds qp->lock, here and in
 * the next function.
 */
void soft_error_watch(struct soft_qp *qp);
/* The QP leaves ERR, or is destroyed. */
void soft_error_unwatch(struct soft_qp *qp);
/* The QP's timer has expired: calls soft_error_watch() again if the QP is still in ERR. Caller holds no lock. */
void soft_error_timeout(struct soft_qp *qp);
/* The client is about to wait for completions: looks at once at the QPs in ERR of the context's user. Caller holds no lock. */
void soft_error_hurry(struct soft_users *users, const struct uvd_context *context);

/* ---- the thread of schedule/wake.c ------------------------------------------------------------------------------- */

struct soft_waker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, asked, stop;
};

/* ---- network.c --------------------------------------------------------------------------------------------------- */

/*
 * The hash of all tables in which clients' numbers and addresses are looked up. A seed is random, and no client knows it: else
 * a client makes and destroys objects until those that it keeps are all in the list that it wants to be long. soft_hash()
 * returns a number of so many bits, from 1 to 32.
 */
uint64_t soft_hash_seed(void);
static inline uint32_t soft_hash(uint64_t seed, uint64_t key, unsigned int bits)
{
	/* The high bits of the product depend on all bits of the key. */
	return (seed ^ key) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

struct soft_bucket {
	pthread_mutex_t lock;
	struct soft_qp *first;
};

struct soft_group;
struct soft_wire;

struct soft_mcast_bucket {
	pthread_rwlock_t lock;
	struct soft_group *first;
	uint64_t next_nr;
};

struct uvd_fabric {
	struct uvd_log *log;
	struct soft_timers timers;
	struct soft_waker waker;
	struct soft_users users;
	pthread_mutex_t qpn_lock; /* protects next_qpn, first_user */
	uint32_t next_qpn;
	bool has_first_user;
	uid_t first_user; /* of the first QP */
	atomic_bool is_shared; /* another user has had a QP, too */
	uint64_t seed; /* for soft_hash(), of both tables of buckets */
	struct soft_bucket buckets[SOFT_QPN_BUCKETS];
	struct soft_mcast_bucket mcast[SOFT_MCAST_BUCKETS];
	struct soft_atomics atomics;
	struct soft_movers movers;
	struct soft_wire *wire; /* its sockets, wire/wire.h; NULL: none. It does not change while there are QPs */
	struct uvd_capture *capture; /* of all traffic; NULL: none. It does not change while there are QPs */
	/* Longest gap between two runs of a stream. The user's thread looks for the next one for twice this time. */
	_Atomic uint64_t stream_gap_ns;
	_Atomic uint64_t crowded_run_ns; /* shorter runs do not show whether CPUs are short */
	/* A doorbell waits this long for the queue at most: the user's thread may need a CPU first, to see s_wanted. */
	_Atomic uint64_t let_go_ns;
};

/* Gives qp a number, by which it can be found from then on. Returns 0, or -ENOMEM if all numbers are taken. */
int soft_fabric_add_qp(struct uvd_fabric *fabric, struct soft_qp *qp);
void soft_fabric_remove_qp(struct uvd_fabric *fabric, struct soft_qp *qp);
/* Returns the QP with this number, with a reference, or NULL. */
struct soft_qp *soft_fabric_get_qp(struct uvd_fabric *fabric, uint32_t qpn);
bool soft_fabric_has_qp(struct uvd_fabric *fabric, uint32_t qpn);
/* Are both ports up, and on the same network? */
bool soft_port_joined(const struct uvd_port_config *from, const struct uvd_port_config *to);
/* Is this one of the GIDs that the port has now? */
bool soft_port_has_gid(const struct uvd_port_config *port, const union ibv_gid *gid);
/* Does a packet with this address leave `from` and reach `to`? */
bool soft_port_reaches(const struct uvd_port_config *from, const struct ibv_ah_attr *ah,
		       const struct uvd_port_config *to);
uint16_t soft_port_pkey(const struct uvd_port_config *port, uint16_t index);

/* Calls fn for each QP, in no particular order, with a reference and without a lock. */
void soft_fabric_each_qp(struct uvd_fabric *fabric, void (*fn)(struct soft_qp *qp, void *user), void *user);

/* ---- mcast.c ----------------------------------------------------------------------------------------------------- */

enum { SOFT_MULTICAST_LID = 0xc000 }; /* the first one */

void soft_mcast_init(struct uvd_fabric *fabric);
void soft_mcast_destroy(struct uvd_fabric *fabric);
int soft_attach_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
int soft_detach_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* Detaches qp from all groups. */
void soft_mcast_forget(struct soft_qp *qp);
/* Is this the address of a group? */
bool soft_is_multicast(const struct uvd_port_config *port, const struct ibv_ah_attr *ah);
/*
 * Lists the numbers of QPs in the group that the address names, max at a time. *last: 0 for the first call, then the
 * value that the previous call has set. Returns how many numbers it wrote; fewer than max are the last.
 */
unsigned int soft_mcast_members(struct uvd_fabric *fabric, const struct ibv_ah_attr *ah, uint64_t *last, uint32_t *qpns,
				unsigned int max);

/* ---- srqn.c ------------------------------------------------------------------------------------------------------- */

/* XRC SRQs by number. */
struct soft_srqn_table {
	pthread_mutex_t lock; /* may be taken under a QP's */
	uint64_t seed; /* for soft_hash() */
	struct soft_srq *buckets[SOFT_SRQN_BUCKETS];
	uint32_t next;
};

void soft_srqn_table_init(struct soft_srqn_table *table);
void soft_srqn_table_destroy(struct soft_srqn_table *table);
/* Gives an XRC SRQ a number. Returns 0, or -ENOMEM if all numbers are taken. */
int soft_srqn_add(struct soft_srq *srq);
/* Removes the SRQ from the table, then waits until all references are put. */
void soft_srqn_remove(struct soft_srq *srq);
/* Returns the SRQ with this number, with a reference; NULL if the domain has none. */
struct soft_srq *soft_srqn_get(struct soft_device *dev, const struct uvd_xrcd *xrcd, uint32_t srqn);

/* ---- raw.c ------------------------------------------------------------------------------------------------------- */

enum { SOFT_RAW_LEAST = 14, SOFT_RAW_MORE = 22 }; /* bytes: Ethernet header; header, VLAN tag and FCS beyond the MTU */

/* A device's RAW_PACKET QPs, oldest first. */
struct soft_raw_list {
	pthread_mutex_t lock;
	struct list_head qps;
	uint64_t last_nr;
};

void soft_raw_init(struct soft_raw_list *list);
void soft_raw_destroy(struct soft_raw_list *list);
void soft_raw_join(struct soft_qp *qp);
void soft_raw_leave(struct soft_qp *qp);
/* Lists the numbers of QPs in the list, as soft_mcast_members() does. */
unsigned int soft_raw_members(struct soft_raw_list *list, uint64_t *last, uint32_t *qpns, unsigned int max);

/* ---- port_counters.c --------------------------------------------------------------------------------------------- */

enum { SOFT_COUNTER_SHARDS = 16 };

/*
 * The counters of a port are sums of shards. A mover adds to a shard that no other thread writes, so an addition costs
 * no atomic operation and no cache line moves between CPUs. Movers beyond that number, and threads without a mover,
 * share the last shard and add to it atomically.
 */
struct soft_port_counters {
	struct soft_counter_shard {
		_Alignas(64) _Atomic uint64_t values[UVD_PORT_COUNTERS];
	} shards[SOFT_COUNTER_SHARDS];
};

/* The traffic of a message, or of several, from one port to another. */
struct soft_traffic {
	uint64_t words, packets;
	unsigned int sends, receives; /* messages: see enum uvd_port_counter */
	bool is_multicast;
	/* The words and packets go from the responder to the requester, which has sent `requests` packets for them. */
	bool is_fetched;
	unsigned int requests;
};

/* Adds a message of `bytes` bytes, or a part of one. */
static inline void soft_traffic_add(struct soft_traffic *t, uint32_t bytes, uint32_t packets)
{
	t->words += (bytes + UINT64_C(3)) / 4;
	t->packets += packets;
}

/*
 * Count what a mover moved. soft_count_out() counts at the requester's port, soft_count_in() at the responder's. Call
 * them before the completions are added: a client that sees one may read the counters at once.
 */
void soft_count_out(const struct soft_mover *m, const struct soft_request *req, const struct soft_traffic *t);
void soft_count_in(const struct soft_mover *m, struct soft_qp *qp, const struct soft_traffic *t);
/* Counts n events at a port of the device. May be called on any thread, under any lock. */
void soft_count_at_port(struct soft_device *dev, const struct uvd_port_config *port, enum uvd_port_counter which,
			uint64_t n);
int soft_query_port_counters(struct uvd_ibdev *ibdev, uint8_t port, uint64_t values[UVD_PORT_COUNTERS]);

/* A device's tables of endpoints, and the counters of its ports. */
struct soft_endpoints {
	struct soft_srqn_table srqns;
	struct soft_raw_list raw;
	struct soft_port_counters ports[UVD_MAX_PORTS];
};

#endif
