/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared declarations of the object files. */
#ifndef UVD_OBJECTS_INTERNAL_H
#define UVD_OBJECTS_INTERNAL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include "account/account.h"
#include "client/client.h"
#include "dispatch/dispatch.h"
#include "explain/explain.h"
#include "objects/objects.h"
#include "util/util.h"

/* ---- rows ------------------------------------------------------------------------------------------------------- */

extern const struct uvd_object_row uvd_object_device, uvd_object_pd, uvd_object_comp_channel, uvd_object_async_event,
	uvd_object_cq, uvd_object_qp, uvd_object_mr, uvd_object_mw, uvd_object_ah, uvd_object_srq, uvd_object_wq,
	uvd_object_rwq_ind_tbl, uvd_object_xrcd, uvd_object_flow, uvd_object_flow_action, uvd_object_mr_methods,
	uvd_object_dm, uvd_object_dmah, uvd_object_dmabuf, uvd_object_counters, uvd_object_comp_cntr,
	uvd_object_qp_comp_cntr, uvd_object_device_comp_cntr, uvd_object_tree, uvd_object_counters_bind;

static inline const struct uvd_backend *uvd_ops(const struct uvd_req *req)
{
	return req->dev->ib.ops;
}

/* ---- checks.c ---------------------------------------------------------------------------------------------------- */

/*
 * Looks up an object by its handle. The request keeps it locked for shared use until it ends. object: UVERBS_OBJECT_*;
 * *out: the backend's object. The handle is unsigned, as in the structs of write(). Errors as uvd_uobject_get().
 */
int uvd_req_object(struct uvd_req *req, uint16_t object, uint32_t handle, void *out);

/* rdma_is_port_valid() */
static inline bool uvd_port_valid(const struct uvd_device *dev, uint32_t port)
{
	return port >= 1 && port <= dev->config.num_ports;
}

static inline bool uvd_port_is_ib(const struct uvd_device *dev, uint32_t port)
{
	return dev->config.ports[port - 1].link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/*
 * Checks an address vector as the kernel's core does (rules qp-13, ah-01). -EINVAL: there is no such port, the port
 * requires a GRH and there is none, or the source GID's index is beyond the table. -ENODATA: that GID's slot is empty.
 */
int uvd_check_av(struct uvd_req *req, const char *av, const struct ibv_ah_attr *attr);

/* mr.c: checks an access mask as ib_check_mr_access() does, for every kind of region (mr-02, mr-03). 0 or -EINVAL. */
int uvd_check_mr_access(struct uvd_req *req, uint32_t access);
/*
 * Pins the caller's memory with uvd_pin(), and returns its errors. On -ENOMEM it first waits for files that are closed
 * but not yet torn down (engine->settle), and tries once more: their regions may be what fills the limit. Charges the
 * pages to the opener's account, too, until uobj is freed.
 */
int uvd_req_pin(struct uvd_req *req, struct uvd_uobject *uobj, uint64_t start, uint64_t length, unsigned int access,
		struct uvd_umem *umem);

/* checks.c: refuses a value that is not within from to to. Returns 0 or -EINVAL. */
int uvd_check_range_of(struct uvd_req *req, const char *field, uint64_t value, uint64_t from, uint64_t to);
/* Has the device filters? Then nobody knows whether a refusal is the backend's. */
bool uvd_req_is_filtered(struct uvd_req *req);
/* Refuses a call that lacks an attribute. Returns err. */
int uvd_missing(struct uvd_req *req, int err, const char *attr);
/* uvd_check_range_of() for a value that the backend has refused with err, which is returned: as uvd_refused() if the value is not the reason. */
int uvd_refused_range(struct uvd_req *req, int err, const char *field, uint64_t value, uint64_t from, uint64_t to);

/* ---- allow.c ----------------------------------------------------------------------------------------------------- */

/*
 * Check values of a request against the client's allow-lists (core/allow.h), after the kernel's own checks. Return 0, or
 * -EPERM: then the log has a line. field: the request's, for that line.
 */
int uvd_req_allow_access(struct uvd_req *req, const char *field, uint32_t access);
int uvd_req_allow_qp_type(struct uvd_req *req, uint32_t type);
/* The source GID of an address vector that has passed uvd_check_av(). */
int uvd_req_allow_gid(struct uvd_req *req, const struct ibv_ah_attr *attr, const union ibv_gid *gid);
/* The source GID of a datagram on this QP. */
int uvd_req_allow_ah(struct uvd_req *req, const struct uvd_qp *qp, const struct uvd_ah *ah);
/*
 * The backend's modify_qp(), if the access flags, the P_Keys and the GID that the QP would have are allowed. An error of
 * the backend is recorded by uvd_refused().
 */
int uvd_req_modify_qp(struct uvd_req *req, struct uvd_qp *qp, struct ibv_qp_attr *attr, uint32_t mask);

/* ---- events.c ----------------------------------------------------------------------------------------- */

/*
 * Finds the asynchronous event file of a new CQ, QP, SRQ or WQ: the one that the ioctl attribute `attr` names, else the
 * file's default. Returns a reference, or NULL if there is none.
 */
struct uvd_event_file *uvd_req_async_file(struct uvd_req *req, uint16_t attr);
/*
 * Posts an asynchronous event of this CQ, QP, SRQ or WQ to its event file, if it has one. Needs no lock: the event file
 * does not change while the backend can raise events. Also posts DEVICE_FATAL to an asynchronous event file itself.
 */
void uvd_object_event(struct uvd_uobject *uobj, enum ibv_event_type type);
/* Posts a completion event of this CQ to its channel, if it has one. Needs no lock, for the same reason. */
void uvd_object_completed(struct uvd_uobject *uobj);
/*
 * Removes the object's unread events from its event files, so that comp_events and async_events are the numbers of
 * events that the client has read (cleanup-04). Puts the references to the event files. Call when the backend can no
 * longer raise events for the object.
 */
void uvd_uobject_release_events(struct uvd_uobject *uobj);

/* ---- the destroy functions of the rows --------------------------------------------------------------------------- */

static inline const struct uvd_backend *uvd_uobject_ops(const struct uvd_uobject *uobj)
{
	return uobj->file->dev->ib.ops;
}

/*
 * For objects that others can use: returns -EBUSY if one does, else what the backend's operation `op` returns. The
 * backend's object is gone if that is 0.
 */
#define uvd_destroy_unused(uobj, object, op) \
	(atomic_load(&(object)->usecnt) ? -EBUSY : uvd_uobject_ops(uobj)->op(object))

/*
 * The end of a destroy function, after the backend's object is gone and its users are uncounted: frees uobj->object, and
 * releases the uobject's events if it has any. Returns 0.
 */
int uvd_object_free(struct uvd_uobject *uobj);

/* ---- steps whose rows are in another file ------------------------------------------------------------------------ */

/* query.c, rows in device.c */
extern const uvd_step uvd_query_device_steps[], uvd_query_device_ex_steps[], uvd_query_port_write_steps[],
	uvd_query_port_ioctl_steps[], uvd_query_port_speed_steps[];
/* gid.c, rows in device.c */
extern const uvd_step uvd_query_gid_table_steps[], uvd_query_gid_entry_steps[];
/* mr_rereg.c, row in mr.c */
extern const uvd_step uvd_rereg_mr_steps[];
/* cq_poll.c, rows in cq.c */
extern const uvd_step uvd_poll_cq_steps[], uvd_req_notify_cq_steps[];
/* qp_modify.c and qp_query.c, rows in qp.c */
extern const uvd_step uvd_modify_qp_steps[], uvd_modify_qp_ex_steps[], uvd_query_qp_steps[];
/* post.c, rows in qp.c and srq.c */
extern const uvd_step uvd_post_send_steps[], uvd_post_recv_steps[], uvd_post_srq_recv_steps[];
/* mcast.c, rows in qp.c */
extern const uvd_step uvd_attach_mcast_steps[], uvd_detach_mcast_steps[];
/* comp_cntr.c: drops the QP's uses of counters and completion counters. Call when the backend's QP is destroyed. */
void uvd_qp_put_counters(struct uvd_qp *qp);
/* mcast.c: detaches the QP from all its groups. Caller has the QP locked exclusively. */
void uvd_qp_detach_all(struct uvd_uobject *qp);

#endif
