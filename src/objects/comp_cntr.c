/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion counters (Linux after 7.0): they count completed operations of QPs, so a client need not poll a CQ. */
#include <uverbsd/uapi_later.h>
#include "objects/internal.h"

enum { ALL_OPS = (1 << UVD_COMP_CNTR_OPS) - 1 };

static int create_comp_cntr(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_COMP_CNTR_HANDLE);
	struct uvd_comp_cntr *cntr;
	int ret;

	if (!uvd_ops(req)->create_comp_cntr || !uvd_ops(req)->qp_attach_comp_cntr)
		return -EOPNOTSUPP;
	cntr = uvd_zalloc(uvd_ops(req)->size_comp_cntr);
	if (!cntr)
		return -ENOMEM;
	cntr->context = uvd_req_ucontext(req);
	ret = uvd_ops(req)->create_comp_cntr(cntr);
	if (ret) {
		free(cntr);
		return ret;
	}
	uvd_uobject_set_object(uobj, cntr);
	return 0;
}

static int modify_comp_cntr(struct uvd_req *req)
{
	struct uvd_comp_cntr *cntr = uvd_attr_object(req, UVERBS_ATTR_MODIFY_COMP_CNTR_HANDLE);
	uint64_t entry, op, value;
	int ret;

	if (!uvd_ops(req)->modify_comp_cntr)
		return -EOPNOTSUPP;
	ret = uvd_attr_const(req, UVERBS_ATTR_MODIFY_COMP_CNTR_ENTRY, UINT32_MAX, &entry);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_MODIFY_COMP_CNTR_OP, UINT32_MAX, &op);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_MODIFY_COMP_CNTR_VALUE, &value);
	return ret ? ret : uvd_ops(req)->modify_comp_cntr(cntr, entry, op, value);
}

static int read_comp_cntr(struct uvd_req *req)
{
	struct uvd_comp_cntr *cntr = uvd_attr_object(req, UVERBS_ATTR_READ_COMP_CNTR_HANDLE);
	uint64_t entry, value = 0;
	int ret;

	if (!uvd_ops(req)->read_comp_cntr)
		return -EOPNOTSUPP;
	ret = uvd_attr_const(req, UVERBS_ATTR_READ_COMP_CNTR_ENTRY, UINT32_MAX, &entry);
	if (!ret)
		ret = uvd_ops(req)->read_comp_cntr(cntr, entry, &value);
	return ret ? ret : uvd_attr_copy_to(req, UVERBS_ATTR_READ_COMP_CNTR_RESP_VALUE, &value);
}

static int comp_cntr_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_comp_cntr *cntr = uobj->object;
	int ret = uvd_destroy_unused(uobj, cntr, destroy_comp_cntr);

	return ret ? ret : uvd_object_free(uobj);
}

/* ---- attaching to a QP ------------------------------------------------------------------------------------------- */

/*
 * The request has the QP locked exclusively, so no other request attaches to it at the same time. Each operation can
 * get one counter, which stays until the QP is destroyed. XRC targets are refused: the lock does not cover their
 * handles in other files.
 */
static int comp_cntr_attach(struct uvd_req *req)
{
	struct uvd_qp *qp = uvd_attr_object(req, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_HANDLE);
	struct uvd_comp_cntr *cntr = uvd_attr_object(req, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_CNTR_HANDLE);
	uint64_t mask;
	int ret;

	if (!uvd_ops(req)->qp_attach_comp_cntr)
		return -EOPNOTSUPP;
	if (qp->xrcd)
		return uvd_bad(req, -EINVAL, "qp_handle",
			       uvd_attr_uobj(req, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_HANDLE)->id);
	ret = uvd_attr_flags(req, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_OP_MASK, ALL_OPS, &mask);
	if (ret)
		return ret;
	if (!mask)
		return uvd_bad(req, -EINVAL, "op_mask", mask);
	for (unsigned int op = 0; op < UVD_COMP_CNTR_OPS; op++)
		if (mask & 1u << op && atomic_load(&qp->comp_cntr[op]))
			return uvd_bad(req, -EBUSY, "op_mask", mask);
	ret = uvd_ops(req)->qp_attach_comp_cntr(qp, cntr, mask);
	for (unsigned int op = 0; op < UVD_COMP_CNTR_OPS && !ret; op++) {
		if (!(mask & 1u << op))
			continue;
		atomic_fetch_add(&cntr->usecnt, 1);
		atomic_store(&qp->comp_cntr[op], cntr);
	}
	return ret;
}

void uvd_qp_put_counters(struct uvd_qp *qp)
{
	struct uvd_counters *counters = atomic_load(&qp->counters);

	if (counters)
		atomic_fetch_sub(&counters->usecnt, 1);
	for (unsigned int op = 0; op < UVD_COMP_CNTR_OPS; op++) {
		struct uvd_comp_cntr *cntr = atomic_load(&qp->comp_cntr[op]);

		if (cntr)
			atomic_fetch_sub(&cntr->usecnt, 1);
	}
}

/* ---- the device's capabilities ----------------------------------------------------------------------------------- */

static int put_cap(struct uvd_req *req, uint16_t id, const void *value, size_t size)
{
	int ret = uvd_attr_copy_to_bytes(req, id, value, size);

	return ret == -ENOENT ? 0 : ret;
}

static int query_caps(struct uvd_req *req)
{
	struct uvd_comp_cntr_caps caps = {};
	int ret;

	if (!uvd_ops(req)->query_comp_cntr_caps)
		return -EOPNOTSUPP;
	ret = uvd_ops(req)->query_comp_cntr_caps(&req->dev->ib, &caps);
	if (!ret)
		ret = put_cap(req, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS, &caps.max_counters,
			      sizeof(caps.max_counters));
	if (!ret)
		ret = put_cap(req, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE, &caps.max_value, sizeof(caps.max_value));
	if (!ret)
		ret = put_cap(req, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS,
			      &caps.supported_qp_attach_ops, sizeof(caps.supported_qp_attach_ops));
	return ret;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step comp_cntr_create_steps[] = { create_comp_cntr, NULL };
static const uvd_step comp_cntr_modify_steps[] = { modify_comp_cntr, NULL };
static const uvd_step comp_cntr_read_steps[] = { read_comp_cntr, NULL };
static const uvd_step attach_steps[] = { comp_cntr_attach, NULL };
static const uvd_step query_caps_steps[] = { uvd_step_context, query_caps, NULL };

static const struct uvd_attr_row comp_cntr_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_COMP_CNTR_HANDLE, UVERBS_OBJECT_COMP_CNTR, UVD_UOBJ_NEW, UVD_MANDATORY),
};

static const struct uvd_attr_row comp_cntr_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_COMP_CNTR_HANDLE, UVERBS_OBJECT_COMP_CNTR, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_attr_row modify_attrs[] = {
	UVD_IDR(UVERBS_ATTR_MODIFY_COMP_CNTR_HANDLE, UVERBS_OBJECT_COMP_CNTR, UVD_UOBJ_WRITE, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_MODIFY_COMP_CNTR_ENTRY, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_MODIFY_COMP_CNTR_OP, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_MODIFY_COMP_CNTR_VALUE, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row comp_cntr_read_attrs[] = {
	UVD_IDR(UVERBS_ATTR_READ_COMP_CNTR_HANDLE, UVERBS_OBJECT_COMP_CNTR, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_READ_COMP_CNTR_ENTRY, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_READ_COMP_CNTR_RESP_VALUE, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row attach_attrs[] = {
	UVD_IDR(UVERBS_ATTR_QP_ATTACH_COMP_CNTR_HANDLE, UVERBS_OBJECT_QP, UVD_UOBJ_WRITE, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_QP_ATTACH_COMP_CNTR_CNTR_HANDLE, UVERBS_OBJECT_COMP_CNTR, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_QP_ATTACH_COMP_CNTR_OP_MASK, UVD_MANDATORY),
};

static const struct uvd_attr_row query_caps_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS, sizeof(uint32_t), 0),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE, sizeof(uint64_t), 0),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS, sizeof(uint32_t), 0),
};

static const struct uvd_method_row comp_cntr_methods[] = {
	UVD_METHOD(UVERBS_METHOD_COMP_CNTR_CREATE, comp_cntr_create_attrs, comp_cntr_create_steps),
	UVD_METHOD(UVERBS_METHOD_COMP_CNTR_DESTROY, comp_cntr_destroy_attrs, NULL),
	UVD_METHOD(UVERBS_METHOD_COMP_CNTR_MODIFY, modify_attrs, comp_cntr_modify_steps),
	UVD_METHOD(UVERBS_METHOD_COMP_CNTR_READ, comp_cntr_read_attrs, comp_cntr_read_steps),
};

static const struct uvd_method_row qp_methods[] = {
	UVD_METHOD(UVERBS_METHOD_QP_ATTACH_COMP_CNTR, attach_attrs, attach_steps),
};

static const struct uvd_method_row device_methods[] = {
	UVD_METHOD(UVERBS_METHOD_QUERY_COMP_CNTR_CAPS, query_caps_attrs, query_caps_steps),
};

const struct uvd_object_row uvd_object_comp_cntr = {
	.name = "UVERBS_OBJECT_COMP_CNTR",
	.id = UVERBS_OBJECT_COMP_CNTR,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(comp_cntr),
	.destroy = comp_cntr_destroy_uobj,
	UVD_ROWS(methods, comp_cntr_methods),
	.needs = { UVD_OP(destroy_comp_cntr) },
};

/* These two add methods to the objects of qp.c and device.c. */
const struct uvd_object_row uvd_object_qp_comp_cntr = {
	.name = "UVERBS_OBJECT_QP",
	.id = UVERBS_OBJECT_QP,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, qp_methods),
};

const struct uvd_object_row uvd_object_device_comp_cntr = {
	.name = "UVERBS_OBJECT_DEVICE",
	.id = UVERBS_OBJECT_DEVICE,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, device_methods),
};
