/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The types that the files of src/cm share. */
#ifndef UVD_CM_INTERNAL_H
#define UVD_CM_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <uverbsd/uapi_later.h>
#include "cm/cm.h"
#include "core/core.h"

/* ---- addresses (address.c) --------------------------------------------------------------------------------------- */

union cm_addr {
	uint16_t family;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct uvd_sockaddr_ib ib;
	uint8_t bytes[sizeof(struct __kernel_sockaddr_storage)];
};

/* Returns the size of an address of this family, 0: there is no such family (rdma_addr_size()). */
size_t cm_addr_size(uint16_t family);
bool cm_addr_is_any(const union cm_addr *addr);
bool cm_addr_is_loopback(const union cm_addr *addr);
bool cm_addr_is_multicast(const union cm_addr *addr);
/* Are these the same address, whatever the port? (cma_addr_cmp()) */
bool cm_addr_equal(const union cm_addr *a, const union cm_addr *b);
uint16_t cm_addr_port(const union cm_addr *addr);
void cm_addr_set_port(union cm_addr *addr, uint16_t port);
/* The GID that stands for the address: of an IPv4 address the mapped one. */
void cm_addr_gid(const union cm_addr *addr, uint8_t gid[16]);
/* Where does the address `dst` of an identifier with the address `src` lead to? "Any" is `src` itself, at the port of `dst`. */
void cm_addr_target(const union cm_addr *dst, const union cm_addr *src, union cm_addr *target);

/* ---- devices (device.c) ------------------------------------------------------------------------------------------- */

/*
 * A device as the connection manager sees it. It has no reference to the device, which exists as long as this is in the list of devices.
 * Under the lock.
 */
struct cm_device {
	struct list_head of_cm;
	struct uvd_device *dev; /* by which it is found again */
	unsigned int ref; /* the list's, and one of each identifier */
	char name[IBV_SYSFS_NAME_MAX];
	unsigned int index; /* as ibdev_index; from 0, in the order of creation */
	unsigned int num_ports;
	bool forwards; /* to an adapter, whose peers on other hosts cannot be reached by these messages */
	__be64 node_guid;
	struct uvd_ips ips;
	unsigned int num_wires; /* as in struct uvd_device_config */
	struct uvd_port_config ports[UVD_MAX_PORTS]; /* as they were when it was made, but for lost addresses */
};

/* ---- identifiers -------------------------------------------------------------------------------------------------- */

/* enum rdma_cm_state of cma_priv.h. */
enum cm_state {
	CM_IDLE,
	CM_ADDR_BOUND,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_CONNECT,
	CM_DISCONNECT,
	CM_LISTEN,
	CM_DEVICE_REMOVAL,
};

/* enum ib_cm_state of ib_cm.h, InfiniBand 12.9.5: the connection of an identifier. */
enum cm_conn {
	CONN_NONE, /* there is no ib_cm_id yet */
	CONN_IDLE,
	CONN_LISTEN,
	CONN_REQ_SENT,
	CONN_MRA_REQ_RCVD, /* the peer has said that its answer takes longer */
	CONN_REQ_RCVD, /* and, as our MRA is sent with the peer's next REQ, MRA_REQ_SENT */
	CONN_REP_SENT,
	CONN_MRA_REP_RCVD,
	CONN_REP_RCVD, /* and MRA_REP_SENT */
	CONN_ESTABLISHED,
	CONN_DREQ_SENT,
	CONN_DREQ_RCVD,
	CONN_TIMEWAIT,
	CONN_SIDR_REQ_SENT,
	CONN_SIDR_REQ_RCVD,
};

/* The lists of timers: all that are in one list run for the same time. */
enum cm_timer_kind {
	CM_TIMER_RESPONSE, /* until a message is sent again */
	CM_TIMER_MRA, /* the same after an MRA */
	CM_TIMER_TIMEWAIT,
	CM_NUM_TIMERS,
};

enum {
	CM_UDP_QKEY = 0x01234567, /* RDMA_UDP_QKEY: of the port spaces UDP and IB */
	CM_IPOIB_QKEY = 0xb1b, /* of IPoIB's broadcast group (RFC 4391, section 5) */
	CM_PKEY = 0xffff, /* of the default partition, and of IPoIB */
};

struct cm_bind; /* who has a port (ports.c) */

/* InfiniBand: the port at the other end of a path, as a subnet manager knows it. */
struct cm_peer {
	bool found; /* a port has this GID */
	bool same_port; /* it is the identifier's own */
	uint8_t gid[16];
	uint16_t lid;
	uint8_t mtu, rate; /* of the path: the lesser of both ports; enum ibv_mtu, enum ibv_rate */
};

struct cm_id {
	struct list_head of_file;
	struct uvd_cm *cm;
	struct uvd_cm_file *file;
	struct uvd_account *account; /* that pays; a reference, or NULL */
	uint32_t number; /* the client's */
	bool hidden; /* its CREATE_ID has not come to its end: no command finds it */
	uint64_t uid; /* the client's; 0: the client does not know the identifier yet, and gets no events of it */
	uint32_t reported; /* events of it that GET_EVENT has returned */
	struct list_head events; /* of it */
	struct cm_event *made_by; /* the CONNECT_REQUEST that made it, until that was reported */
	uint16_t ps; /* enum rdma_ucm_port_space */
	uint8_t qp_type;
	enum cm_state state;
	union cm_addr src, dst;
	struct cm_peer peer; /* InfiniBand, once the destination is resolved */
	struct cm_device *device; /* a reference; NULL: not bound to one */
	uint8_t port;
	/* It was bound to an address before, be it in vain. The kernel no longer looks for an interface then (dev_addr.bound_dev_if). */
	bool has_interface;
	struct cm_bind *bind; /* the port; NULL: none, or the listener's */
	struct list_head of_bind;
	/* Its address was lost: as with the kernel's GID entries it sends nothing any more, even when the address is back. */
	bool lost;
	bool reuseaddr, afonly, afonly_set, tos_set, timeout_set;
	uint8_t tos, timeout;
	uint8_t path_tos; /* as it was when the path was found */
	int backlog; /* of a listener: how many requests it still takes */
	/* the connection */
	enum cm_conn conn;
	uint32_t comm; /* the local communication id */
	uint32_t remote_comm; /* the peer's, once it is known */
	struct list_head of_comm, of_remote; /* in hashes by these */
	bool in_comm, in_remote;
	__be64 remote_guid; /* of the peer's device */
	struct list_head of_remote_qp; /* in a hash by remote_qpn */
	bool in_remote_qp;
	struct list_head of_timer;
	uint64_t due; /* ns; 0: no timer runs */
	enum cm_timer_kind timer;
	unsigned int retries;
	struct cm_msg *last; /* that the timer sends again, or NULL */
	bool unheard; /* a filter answers its CONNECT: its messages are lost */
	uint32_t psn, remote_psn, qpn, remote_qpn;
	uint32_t qkey; /* 0: none has been set */
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
	bool srq;
	bool passive; /* a request has made it */
	struct rdma_ucm_ece ece;
};

/* InfiniBand: a multicast group of the subnet, which is there as long as it has members. */
struct cm_group {
	struct list_head of_cm;
	unsigned int members;
	uint8_t gid[16];
	uint16_t lid;
};

/* A membership of a multicast group: struct ucma_multicast. */
struct cm_mcast {
	struct list_head of_file;
	struct cm_id *id;
	uint32_t number;
	uint64_t serial; /* unlike the number and the address, no later membership gets it */
	bool hidden; /* as of an identifier */
	uint64_t uid;
	uint32_t reported;
	union cm_addr addr;
	uint8_t join_flags;
	struct cm_group *group; /* NULL: RoCE, which needs none */
};

/* enum rdma_cm_event_type of rdma_cm.h, which no header of the kernel's ABI has. */
enum cm_event_type {
	CM_EVENT_ADDR_RESOLVED,
	CM_EVENT_ADDR_ERROR,
	CM_EVENT_ROUTE_RESOLVED,
	CM_EVENT_ROUTE_ERROR,
	CM_EVENT_CONNECT_REQUEST,
	CM_EVENT_CONNECT_RESPONSE,
	CM_EVENT_CONNECT_ERROR,
	CM_EVENT_UNREACHABLE,
	CM_EVENT_REJECTED,
	CM_EVENT_ESTABLISHED,
	CM_EVENT_DISCONNECTED,
	CM_EVENT_DEVICE_REMOVAL,
	CM_EVENT_MULTICAST_JOIN,
	CM_EVENT_MULTICAST_ERROR,
	CM_EVENT_ADDR_CHANGE,
	CM_EVENT_TIMEWAIT_EXIT,
};

struct cm_event {
	struct list_head of_file, of_id;
	bool reporting; /* GET_EVENT is writing it to the client: it is in the list of its identifier alone */
	struct cm_id *id; /* that counts it; NULL: was destroyed while the event was being written */
	struct cm_mcast *mcast; /* that counts it, too */
	struct cm_id *made; /* CONNECT_REQUEST: the new identifier */
	struct uvd_account *account; /* charged for its bytes; a reference */
	struct rdma_ucm_event_resp resp;
};

struct uvd_cm_file {
	struct uvd_cm *cm;
	struct uvd_watched watched;
	unsigned int ref; /* under the lock */
	bool closed;
	struct uvd_account *account; /* a reference, or NULL */
	const struct uvd_cm_file_ops *ops;
	void *owner;
	struct list_head ids, mcasts;
	struct list_head events;
	unsigned int num_events;
	struct list_head waiters;
};

/* Numbers that clients know, of all files: the lowest free one is the next (the kernel's xa_alloc()). */
struct cm_numbers {
	void **entries;
	size_t size, lowest; /* no number below `lowest` is free */
};

enum { CM_BUCKETS = 4096 };

struct uvd_cm {
	struct uvd_engine *engine;
	struct uvd_cm_tree *tree;
	struct uvd_device_watch watch;
	pthread_mutex_t lock; /* protects all that follows, and all that hangs on it */
	struct list_head devices;
	struct list_head groups;
	uint32_t groups_made; /* ever, without a GID of the client's */
	unsigned int next_index;
	struct cm_numbers ids, mcasts;
	uint64_t last_serial; /* of a membership */
	struct list_head *by_comm, *by_remote, *by_remote_qp, *by_port; /* CM_BUCKETS heads each */
	uint32_t next_comm, comm_mask; /* numbers go up; the peer sees them xor the mask */
	struct uvd_port_range ephemeral;
	struct list_head messages; /* that cm_unlock() delivers */
	const struct cm_carrier *carrier;
	struct list_head timers[CM_NUM_TIMERS];
	pthread_cond_t timers_changed;
	pthread_t timer_thread;
	bool has_timer_thread, ends;
};

/* Take and give up the lock. The latter first delivers the messages that were sent meanwhile. */
void cm_lock(struct uvd_cm *cm);
void cm_unlock(struct uvd_cm *cm);

/* ---- cm.c: all with the lock held ---------------------------------------------------------------------------------- */

int cm_number_new(struct cm_numbers *numbers, void *entry, uint32_t *number);
void *cm_number_find(const struct cm_numbers *numbers, uint32_t number);
void cm_number_free(struct cm_numbers *numbers, uint32_t number);

/* Returns NULL with *err: the account is at its limit, or there is no memory. */
struct cm_id *cm_id_new(struct uvd_cm_file *file, uint16_t ps, uint8_t qp_type, int *err);
/* Ends its connection, gives its port back, and drops its events. */
void cm_id_destroy(struct cm_id *id);
/* Finds an identifier of this file. Returns 0, -ENOENT, -EINVAL: it is another file's, or -ENXIO: its device was removed. */
int cm_id_get(struct uvd_cm_file *file, uint32_t number, struct cm_id **id);
/* The same for commands that need a device: -EINVAL if it has none. */
int cm_id_get_bound(struct uvd_cm_file *file, uint32_t number, struct cm_id **id);

/* status.c: the state's name, as rdma's tool has it; an address with its port, "" if it has no family. */
const char *cm_state_name(enum cm_state state);
void cm_addr_text(const union cm_addr *addr, char *text, size_t size);

/* device.c */
void cm_devices_init(struct uvd_cm *cm);
void cm_devices_fini(struct uvd_cm *cm);
/* Finds the device and port that have this address; returns false if none has. */
bool cm_device_find(struct uvd_cm *cm, const union cm_addr *addr, struct cm_device **device, uint8_t *port);
/* Is this a GID of an Ethernet port whose address the machine has lost? */
bool cm_addr_is_lost(struct uvd_cm *cm, const union cm_addr *addr);
void cm_id_set_device(struct cm_id *id, struct cm_device *device, uint8_t port);
void cm_id_drop_device(struct cm_id *id);
static inline const struct uvd_port_config *cm_id_port(const struct cm_id *id)
{
	return &id->device->ports[id->port - 1];
}
static inline bool cm_id_is_ib(const struct cm_id *id)
{
	return cm_id_port(id)->link_layer == IBV_LINK_LAYER_INFINIBAND;
}
/* AF_IB without a source: finds the port that reaches the destination (cma_resolve_ib_dev(), cma_bind_loopback()). */
int cm_id_choose_ib(struct cm_id *id);

/* path.c */

/* A path record, of either kind of port. */
struct cm_path {
	uint8_t sgid[16], dgid[16];
	uint16_t slid, dlid, pkey;
	uint32_t flow_label;
	uint8_t hops, traffic_class, mtu, rate, lifetime;
};
void cm_path_of(const struct cm_id *id, struct cm_path *path);
/* The rate of a port, as enum ibv_rate. */
uint8_t cm_port_rate(const struct uvd_port_config *port);
/* The time-out of the ACKs of its QP (cm_ack_timeout()). */
uint8_t cm_id_timeout(const struct cm_id *id);
/* InfiniBand: asks, in the place of the subnet manager, for the port of the destination. Sets id->peer. */
void cm_id_find_peer(struct cm_id *id);
/* The GIDs of both ends, as they are in its path record. */
void cm_id_gids(const struct cm_id *id, uint8_t sgid[16], uint8_t dgid[16]);
uint16_t cm_id_pkey(const struct cm_id *id);
/* Fills in the address handle to its peer. */
void cm_id_ah(const struct cm_id *id, struct ib_uverbs_ah_attr *ah);
uint32_t cm_id_flow_label(const struct cm_id *id);
/* cma_set_default_qkey(), cma_set_qkey(). The latter returns -EINVAL: it has another one. */
void cm_id_default_qkey(struct cm_id *id);
int cm_id_set_qkey(struct cm_id *id, uint32_t qkey);

/* ports.c */

/* Gives the identifier the port of its source address, or a free one (cma_get_port()). may: CAP_NET_BIND_SERVICE. */
int cm_port_get(struct cm_id *id, bool may);
void cm_port_put(struct cm_id *id);
/* A listener shares its port with nobody (cma_bind_listen()). */
int cm_port_listen(const struct cm_id *id);
/* Does the device have a listener at this port, for whatever address? Only then the port is a service of the device (cm_find_listen()). */
bool cm_port_is_service(struct uvd_cm *cm, uint16_t ps, const union cm_addr *dst, const struct cm_device *device);
/* Finds the listener for a request to this address. */
struct cm_id *cm_port_listener(struct uvd_cm *cm, uint16_t ps, const union cm_addr *dst, const struct cm_device *device,
			       uint8_t port);

/* event.c */

/* Returns NULL if there is no memory, or if the identifier's account is at its limit: the event is lost, as in the kernel. */
struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type event, int status);
void cm_event_post(struct cm_event *event);
/* For events without data, and none if the client does not know the identifier. */
void cm_event_tell(struct cm_id *id, enum cm_event_type event, int status);
/* Drops the unreported events of an identifier, or of a membership; destroys what was made with them. */
void cm_events_drop_id(struct cm_id *id);
void cm_events_drop_mcast(struct cm_mcast *mcast);
/* MIGRATE_ID: moves the identifier's events. */
void cm_events_move(struct cm_id *id, struct uvd_cm_file *to);
/* Takes the first event to report it. NULL: there is none. Then either of these, once it was written. */
struct cm_event *cm_event_take(struct uvd_cm_file *file);
void cm_event_reported(struct cm_event *event);
void cm_event_give_back(struct cm_event *event);

/* mcast.c */
void cm_mcast_leave(struct cm_mcast *mcast);

/* timer.c */
int cm_timers_init(struct uvd_cm *cm);
void cm_timers_fini(struct uvd_cm *cm);
void cm_timer_start(struct cm_id *id, enum cm_timer_kind kind);
void cm_timer_stop(struct cm_id *id);

#endif
