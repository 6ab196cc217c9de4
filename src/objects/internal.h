/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the verbs share. */
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
#include "objects/objects.h"
#include "util/util.h"

/* ---- rows ------------------------------------------------------------------------------------------------------- */

extern const struct uvd_object_row uvd_object_device, uvd_object_pd, uvd_object_comp_channel, uvd_object_async_event,
	uvd_object_cq, uvd_object_qp, uvd_object_mr, uvd_object_mw, uvd_object_ah, uvd_object_srq,
	uvd_object_wq, uvd_object_rwq_ind_tbl, uvd_object_xrcd, uvd_object_flow, uvd_object_flow_action,
	uvd_object_mr_methods, uvd_object_dm, uvd_object_dmah, uvd_object_dmabuf, uvd_object_counters,
	uvd_object_comp_cntr, uvd_object_qp_comp_cntr, uvd_object_device_comp_cntr, uvd_object_tree, uvd_object_counters_bind;

/* Rows of write() commands: number and name, flags, the sizes of the command's structs, its steps, its UVD_OP()s. */
#define UVD_WRITE(n, f, in, out, s, ...)                                                                               \
	{                                                                                                              \
		.name = #n, .number = n, .flags = f, .req_size = in, .resp_size = out, .steps = s, .needs = {          \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}
#define UVD_METHOD(n, a, s)                                                                                            \
	{                                                                                                              \
		.name = #n, .id = n, UVD_ROWS(attrs, a), .steps = s                                                    \
	}

static inline const struct uvd_backend *uvd_ops(const struct uvd_req *req)
{
	return req->dev->ib.ops;
}

/* What `response_length` of an extended answer says: how much of it the client has room for. */
static inline uint32_t uvd_response_length(const struct uvd_req *req, size_t size)
{
	return req->core_out.len < size ? req->core_out.len : size;
}

/* ---- checks.c ---------------------------------------------------------------------------------------------------- */

/* Step: the file has a context. -EIO: the device was removed. -EINVAL: GET_CONTEXT has not been called. */
int uvd_step_context(struct uvd_req *req);

/*
 * Looks the object up for shared use, until the request ends. object: UVERBS_OBJECT_*; *out: the backend's object. The
 * handle is unsigned, as in the structs of write().
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
 * What the kernel's core checks of every address vector (rules qp-13, ah-01): the port; a GRH where the port demands one
 * (-EINVAL); the source GID's index (-EINVAL: beyond the table, -ENODATA: an empty slot).
 */
int uvd_check_av(struct uvd_req *req, const struct ibv_ah_attr *attr);

/* mr.c: what the kernel's core checks of an access mask, of every kind of region (rules mr-02, mr-03). */
int uvd_check_mr_access(struct uvd_req *req, uint32_t access);
/*
 * uvd_pin() for the caller. Where its limit stands in the way, files that it has closed already are waited for: they may
 * hold what is missing.
 */
int uvd_req_pin(struct uvd_req *req, uint64_t start, uint64_t length, unsigned int access, struct uvd_umem *umem);

/* ---- events.c ----------------------------------------------------------------------------------------- */

/*
 * The asynchronous event file of a new CQ, QP or SRQ: what the ioctl attribute `attr` names, else the file's default.
 * A reference, or NULL.
 */
struct uvd_event_file *uvd_req_async_file(struct uvd_req *req, uint16_t attr);
/*
 * The backend has an asynchronous event of this CQ, QP or SRQ. Needs no lock: the event file does not change while the
 * backend's object lives.
 */
void uvd_object_event(struct uvd_uobject *uobj, enum ibv_event_type type);
/* The CQ has a completion event, for its channel. As above. */
void uvd_object_completed(struct uvd_uobject *uobj);
/*
 * The object is gone from the backend: takes back the events of it that nobody has read, so that comp_events and
 * async_events are what was really read (cleanup-04), and puts the references to its event files.
 */
void uvd_uobject_release_events(struct uvd_uobject *uobj);

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
/* comp_cntr.c: the QP is gone. */
void uvd_qp_put_counters(struct uvd_qp *qp);
/* mcast.c: the QP goes without its client having detached its groups. It is locked exclusively. */
void uvd_qp_detach_all(struct uvd_uobject *qp);

#endif
