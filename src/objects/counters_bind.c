/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Beyond the kernel's ABI: a counters object that counts a QP's traffic (include/uverbsd/abi.h). */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <uverbsd/abi.h>
#include <uverbsd/backend.h>
#include <uverbsd/request.h>
#include <uverbsd/schema.h>

/* The request has the QP locked exclusively, so no other request binds it at the same time. */
static int bind_qp(struct uvd_req *req)
{
	struct uvd_counters *counters = uvd_attr_object(req, UVERBSD_ATTR_COUNTERS_BIND_QP_HANDLE);
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBSD_ATTR_COUNTERS_BIND_QP_QP_HANDLE);
	struct uvd_qp *qp = uvd_uobject_object(uobj);
	int ret;

	/* The lock does not cover an XRC target's handles in other files. */
	if (qp->xrcd)
		return uvd_bad(req, -EINVAL, "qp_handle", uvd_uobject_id(uobj));
	if (atomic_load(&qp->counters))
		return uvd_bad(req, -EBUSY, "qp_handle", uvd_uobject_id(uobj));
	ret = uvd_req_ibdev(req)->ops->bind_counters(qp, counters);
	if (ret)
		return ret;
	atomic_fetch_add(&counters->usecnt, 1);
	atomic_store(&qp->counters, counters);
	return 0;
}

static const uvd_step bind_qp_steps[] = { bind_qp, NULL };

static const struct uvd_attr_row bind_qp_attrs[] = {
	UVD_IDR(UVERBSD_ATTR_COUNTERS_BIND_QP_HANDLE, UVERBS_OBJECT_COUNTERS, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_IDR(UVERBSD_ATTR_COUNTERS_BIND_QP_QP_HANDLE, UVERBS_OBJECT_QP, UVD_UOBJ_WRITE, UVD_MANDATORY),
};

static const struct uvd_method_row counters_bind_methods[] = {
	{
		.name = "UVERBSD_METHOD_COUNTERS_BIND_QP",
		.id = UVERBSD_METHOD_COUNTERS_BIND_QP,
		UVD_ROWS(attrs, bind_qp_attrs),
		.steps = bind_qp_steps,
		.needs = { UVD_OP(bind_counters) },
	},
};

const struct uvd_object_row uvd_object_counters_bind = {
	.name = "UVERBS_OBJECT_COUNTERS",
	.id = UVERBS_OBJECT_COUNTERS,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, counters_bind_methods),
};
