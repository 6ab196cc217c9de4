/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions by ioctl: REG_MR, regions of dma-bufs and of device memory, advice and queries. The kernel has these
 * methods in the tree of every device: where the driver lacks the operation, they fail after all attributes have been
 * parsed.
 */
#include <uverbsd/registration.h>
#include <uverbsd/uapi_later.h>
#include "objects/mr.h"

/* The access flags that a region of a dma-buf may have. */
enum {
	DMABUF_ACCESS = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_WRITE |
			IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_RELAXED_ORDERING,
};

static int copy_u64(struct uvd_req *req, uint16_t id, uint64_t *to)
{
	return uvd_attr_copy_from(req, id, to);
}

static int get_access(struct uvd_req *req, uint16_t id, uint32_t allowed, uint32_t *access)
{
	uint64_t flags;
	int ret = uvd_attr_flags(req, id, allowed, &flags);

	if (!ret)
		*access = flags;
	return ret;
}

static int answer_keys(struct uvd_req *req, const struct uvd_mr *mr, uint16_t lkey_id, uint16_t rkey_id)
{
	int ret = uvd_attr_copy_to(req, lkey_id, &mr->lkey);

	return ret ? ret : uvd_attr_copy_to(req, rkey_id, &mr->rkey);
}

/* Registers mr, a region of a dma-buf or of device memory. Takes over mr: frees it if the backend refuses. */
static int make_mr(struct uvd_req *req, uint16_t handle_id, struct uvd_mr *mr,
		   int (*reg)(struct uvd_mr *mr, struct uvd_udata *udata))
{
	int ret = reg(mr, uvd_req_udata(req));

	if (ret) {
		free(mr);
		return ret;
	}
	uvd_mr_made(req, uvd_attr_uobj(req, handle_id), mr);
	return 0;
}

/* ---- dma-bufs ---------------------------------------------------------------------------------------------------- */

struct dmabuf_args {
	struct uvd_pd *pd;
	struct uvd_dmah *dmah;
	uint64_t offset, length, iova;
	uint32_t access;
	int fd;
};

int uvd_check_dmabuf(struct uvd_req *req, int fd, uint64_t offset, uint64_t length)
{
	uint64_t size, end;
	int ret;

	if (__builtin_add_overflow(offset, length, &end))
		return uvd_bad(req, -EINVAL, "length", length);
	ret = uvd_caller_dmabuf(req->caller, fd, &size);
	if (ret)
		return uvd_bad(req, ret, "fd", fd);
	return size < end || !length ? uvd_bad(req, -EINVAL, "length", length) : 0;
}

static int reg_dmabuf(struct uvd_req *req, uint16_t handle_id, const struct dmabuf_args *args)
{
	struct uvd_mr *mr;
	int ret = uvd_check_dmabuf(req, args->fd, args->offset, args->length);

	if (ret)
		return ret;
	mr = uvd_zalloc(uvd_ops(req)->size_mr);
	if (!mr)
		return -ENOMEM;
	mr->pd = args->pd;
	mr->dmah = args->dmah;
	mr->is_dmabuf = true;
	mr->dmabuf_offset = args->offset;
	mr->iova = args->iova;
	mr->length = args->length;
	mr->access = args->access;
	return make_mr(req, handle_id, mr, uvd_ops(req)->reg_dmabuf_mr);
}

static int reg_dmabuf_mr(struct uvd_req *req)
{
	struct dmabuf_args args = { .pd = uvd_attr_object(req, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE) };
	uint32_t fd;
	int ret;

	if (!uvd_ops(req)->reg_dmabuf_mr)
		return -EOPNOTSUPP;
	ret = copy_u64(req, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &args.offset);
	if (!ret)
		ret = copy_u64(req, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &args.length);
	if (!ret)
		ret = copy_u64(req, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &args.iova);
	if (ret)
		return ret;
	if (offset_in_page(args.offset) != offset_in_page(args.iova))
		return uvd_bad(req, -EINVAL, "iova", args.iova);
	ret = uvd_attr_copy_from(req, UVERBS_ATTR_REG_DMABUF_MR_FD, &fd);
	if (!ret)
		ret = get_access(req, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, DMABUF_ACCESS, &args.access);
	if (!ret)
		ret = uvd_check_mr_access(req, args.access);
	if (ret)
		return ret;
	args.fd = fd;
	return reg_dmabuf(req, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, &args);
}

static int answer_dmabuf_mr(struct uvd_req *req)
{
	return answer_keys(req, uvd_attr_object(req, UVERBS_ATTR_REG_DMABUF_MR_HANDLE),
			   UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY);
}

/* ---- REG_MR: the client's memory, or a dma-buf ------------------------------------------------------------------- */

/* Finds out which of the two it is, and refuses attributes of the other (mr-10). *start: the address or the offset. */
static int choose_source(struct uvd_req *req, bool *has_fd, uint64_t *start)
{
	const bool has_addr = uvd_attr_get(req, UVERBS_ATTR_REG_MR_ADDR);
	const bool has_offset = uvd_attr_get(req, UVERBS_ATTR_REG_MR_FD_OFFSET);

	*has_fd = uvd_attr_get(req, UVERBS_ATTR_REG_MR_FD);
	if (*has_fd && !uvd_ops(req)->reg_dmabuf_mr)
		return -EOPNOTSUPP;
	if (has_addr == *has_fd || has_offset != *has_fd)
		return uvd_bad(req, -EINVAL, "fd", *has_fd);
	return copy_u64(req, *has_fd ? UVERBS_ATTR_REG_MR_FD_OFFSET : UVERBS_ATTR_REG_MR_ADDR, start);
}

/* No thread of the client is borrowed for this method, which libibverbs uses for what needs a DMA handle. */
static int reg_memory(struct uvd_req *req, const struct uvd_mr_reg *reg)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_REG_MR_HANDLE);
	int ret = uvd_reg_user_mr(req, uobj, reg);
	struct uvd_mr *mr = uobj->object;

	return !ret && mr->registration ? mr->registration->end(mr, -EOPNOTSUPP) : ret;
}

static int mr_ioctl_reg_mr(struct uvd_req *req)
{
	struct uvd_uobject *dmah = uvd_attr_uobj(req, UVERBS_ATTR_REG_MR_DMA_HANDLE);
	struct uvd_mr_reg reg = {
		.pd = uvd_attr_object(req, UVERBS_ATTR_REG_MR_PD_HANDLE),
		.dmah = dmah ? dmah->object : NULL,
	};
	struct dmabuf_args args;
	bool has_fd;
	int ret;

	ret = copy_u64(req, UVERBS_ATTR_REG_MR_IOVA, &reg.iova);
	if (!ret)
		ret = copy_u64(req, UVERBS_ATTR_REG_MR_LENGTH, &reg.length);
	if (!ret)
		ret = choose_source(req, &has_fd, &reg.start);
	if (ret)
		return ret;
	if (offset_in_page(reg.start) != offset_in_page(reg.iova))
		return uvd_bad(req, -EINVAL, "iova", reg.iova);
	ret = get_access(req, UVERBS_ATTR_REG_MR_ACCESS_FLAGS, has_fd ? DMABUF_ACCESS : UVD_MR_ACCESS_SUPPORTED,
			 &reg.access);
	if (!ret)
		ret = uvd_check_mr_access(req, reg.access);
	if (ret)
		return ret;
	if (!has_fd)
		return reg_memory(req, &reg);
	/* As the method of dma-bufs, for an allow-list. */
	ret = uvd_file_check_verb(req->file, req->caller, "UVERBS_METHOD_REG_DMABUF_MR",
				  uvd_allow_verb("UVERBS_METHOD_REG_DMABUF_MR"));
	if (ret)
		return ret;
	args = (struct dmabuf_args){
		.pd = reg.pd,
		.dmah = reg.dmah,
		.offset = reg.start,
		.length = reg.length,
		.iova = reg.iova,
		.access = reg.access,
		.fd = uvd_attr_get(req, UVERBS_ATTR_REG_MR_FD)->data,
	};
	return reg_dmabuf(req, UVERBS_ATTR_REG_MR_HANDLE, &args);
}

static int answer_reg_mr(struct uvd_req *req)
{
	return answer_keys(req, uvd_attr_object(req, UVERBS_ATTR_REG_MR_HANDLE), UVERBS_ATTR_REG_MR_RESP_LKEY,
			   UVERBS_ATTR_REG_MR_RESP_RKEY);
}

/* ---- device memory ----------------------------------------------------------------------------------------------- */

static int reg_dm_mr(struct uvd_req *req)
{
	struct uvd_dm *dm = uvd_attr_object(req, UVERBS_ATTR_REG_DM_MR_DM_HANDLE);
	uint64_t offset, length;
	struct uvd_mr *mr;
	uint32_t access;
	int ret;

	if (!uvd_ops(req)->reg_dm_mr)
		return -EOPNOTSUPP;
	ret = copy_u64(req, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset);
	if (!ret)
		ret = copy_u64(req, UVERBS_ATTR_REG_DM_MR_LENGTH, &length);
	if (!ret)
		ret = get_access(req, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, UVD_MR_ACCESS_SUPPORTED, &access);
	if (ret)
		return ret;
	if (!(access & IB_UVERBS_ACCESS_ZERO_BASED))
		return uvd_bad(req, -EINVAL, "access_flags", access);
	ret = uvd_check_mr_access(req, access);
	if (ret)
		return ret;
	if (offset > dm->length || length > dm->length - offset)
		return uvd_bad(req, -EINVAL, "length", length);
	mr = uvd_zalloc(uvd_ops(req)->size_mr);
	if (!mr)
		return -ENOMEM;
	mr->pd = uvd_attr_object(req, UVERBS_ATTR_REG_DM_MR_PD_HANDLE);
	mr->dm = dm;
	mr->dm_offset = offset;
	mr->length = length;
	mr->access = access;
	return make_mr(req, UVERBS_ATTR_REG_DM_MR_HANDLE, mr, uvd_ops(req)->reg_dm_mr);
}

static int answer_dm_mr(struct uvd_req *req)
{
	return answer_keys(req, uvd_attr_object(req, UVERBS_ATTR_REG_DM_MR_HANDLE), UVERBS_ATTR_REG_DM_MR_RESP_LKEY,
			   UVERBS_ATTR_REG_DM_MR_RESP_RKEY);
}

/* ---- advice and queries ------------------------------------------------------------------------------------------ */

static int advise_mr(struct uvd_req *req)
{
	const struct uvd_attr *list = uvd_attr_get(req, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	uint64_t advice, flags;
	int ret;

	if (!uvd_ops(req)->advise_mr)
		return -EOPNOTSUPP;
	ret = uvd_attr_const(req, UVERBS_ATTR_ADVISE_MR_ADVICE, UINT32_MAX, &advice);
	if (!ret)
		ret = uvd_attr_flags(req, UVERBS_ATTR_ADVISE_MR_FLAGS, IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &flags);
	if (ret)
		return ret;
	/* struct ib_uverbs_sge has struct ibv_sge's layout. list->copy is set: even one entry does not fit inline. */
	if (list->len % sizeof(struct ibv_sge))
		return uvd_bad(req, -EINVAL, "sge_list", list->len);
	return uvd_ops(req)->advise_mr(uvd_attr_object(req, UVERBS_ATTR_ADVISE_MR_PD_HANDLE), advice, flags, list->copy,
				       list->len / sizeof(struct ibv_sge));
}

static int query_mr(struct uvd_req *req)
{
	struct uvd_mr *mr = uvd_attr_object(req, UVERBS_ATTR_QUERY_MR_HANDLE);
	int ret;

	ret = answer_keys(req, mr, UVERBS_ATTR_QUERY_MR_RESP_LKEY, UVERBS_ATTR_QUERY_MR_RESP_RKEY);
	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->length);
	if (ret)
		return ret;
	ret = uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->iova);
	return ret == -ENOENT ? 0 : ret;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step reg_dmabuf_steps[] = { reg_dmabuf_mr, answer_dmabuf_mr, NULL };
static const uvd_step mr_ioctl_reg_steps[] = { mr_ioctl_reg_mr, answer_reg_mr, NULL };
static const uvd_step reg_dm_steps[] = { reg_dm_mr, answer_dm_mr, NULL };
static const uvd_step advise_steps[] = { advise_mr, NULL };
static const uvd_step mr_ioctl_query_steps[] = { query_mr, NULL };

static const struct uvd_attr_row reg_dm_attrs[] = {
	UVD_IDR(UVERBS_ATTR_REG_DM_MR_HANDLE, UVERBS_OBJECT_MR, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DM_MR_OFFSET, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DM_MR_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 0),
	UVD_IDR(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, UVERBS_OBJECT_DM, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_attr_row advise_attrs[] = {
	UVD_IDR(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_ADVISE_MR_ADVICE, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_ADVISE_MR_FLAGS, UVD_MANDATORY),
	UVD_PTR_IN_MIN(UVERBS_ATTR_ADVISE_MR_SGE_LIST, sizeof(struct ib_uverbs_sge),
		       UVD_MANDATORY | UVD_ALLOC_AND_COPY),
};

static const struct uvd_attr_row query_attrs[] = {
	UVD_IDR(UVERBS_ATTR_QUERY_MR_HANDLE, UVERBS_OBJECT_MR, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, sizeof(uint64_t), 0),
};

static const struct uvd_attr_row reg_dmabuf_attrs[] = {
	UVD_IDR(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UVERBS_OBJECT_MR, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(uint32_t), UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 0),
	UVD_PTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_attr_row reg_attrs[] = {
	UVD_IDR(UVERBS_ATTR_REG_MR_HANDLE, UVERBS_OBJECT_MR, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_REG_MR_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_REG_MR_DMA_HANDLE, UVERBS_OBJECT_DMAH, UVD_UOBJ_READ, 0),
	UVD_PTR_IN(UVERBS_ATTR_REG_MR_IOVA, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_REG_MR_ADDR, sizeof(uint64_t), 0),
	UVD_PTR_IN(UVERBS_ATTR_REG_MR_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_REG_MR_ACCESS_FLAGS, UVD_MANDATORY),
	UVD_RAW_FD(UVERBS_ATTR_REG_MR_FD, 0),
	UVD_PTR_IN(UVERBS_ATTR_REG_MR_FD_OFFSET, sizeof(uint64_t), 0),
	UVD_PTR_OUT(UVERBS_ATTR_REG_MR_RESP_LKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_REG_MR_RESP_RKEY, sizeof(uint32_t), UVD_MANDATORY),
	UVD_UHW(),
};

static const struct uvd_method_row mr_ioctl_methods[] = {
	UVD_METHOD(UVERBS_METHOD_DM_MR_REG, reg_dm_attrs, reg_dm_steps),
	UVD_METHOD(UVERBS_METHOD_ADVISE_MR, advise_attrs, advise_steps),
	UVD_METHOD(UVERBS_METHOD_QUERY_MR, query_attrs, mr_ioctl_query_steps),
	UVD_METHOD(UVERBS_METHOD_REG_DMABUF_MR, reg_dmabuf_attrs, reg_dmabuf_steps),
	UVD_METHOD(UVERBS_METHOD_REG_MR, reg_attrs, mr_ioctl_reg_steps),
};

/* Adds methods to the object of mr.c. */
const struct uvd_object_row uvd_object_mr_methods = {
	.name = "UVERBS_OBJECT_MR",
	.id = UVERBS_OBJECT_MR,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, mr_ioctl_methods),
};
