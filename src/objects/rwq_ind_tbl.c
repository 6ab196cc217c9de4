/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Indirection tables: a QP that is created with one spreads received packets over the work queues of the table. */
#include "objects/internal.h"

struct table_args {
	struct uvd_uobject *uobj;
	const void *handles; /* 1 << log_ind_tbl_size handles, each a u32 */
	struct uvd_wq **wqs; /* the same number; the table gets a copy */
	uint32_t log_ind_tbl_size;
};

static size_t table_size(uint32_t log_ind_tbl_size)
{
	return (size_t)1 << log_ind_tbl_size;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static int rwq_ind_tbl_decode_create(struct uvd_req *req)
{
	struct table_args *args = uvd_args(req, struct table_args);
	struct ib_uverbs_ex_create_rwq_ind_table cmd;
	struct uvd_core_iter iter;
	int ret = uvd_core_start(req, &iter, &cmd);

	if (ret)
		return ret;
	if (cmd.comp_mask)
		return uvd_bad(req, -EOPNOTSUPP, "comp_mask", cmd.comp_mask);
	if (cmd.log_ind_tbl_size > IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE)
		return uvd_bad(req, -EINVAL, "log_ind_tbl_size", cmd.log_ind_tbl_size);
	args->log_ind_tbl_size = cmd.log_ind_tbl_size;
	ret = uvd_core_next(req, &iter, &args->handles, table_size(cmd.log_ind_tbl_size) * sizeof(uint32_t));
	return ret ? ret : uvd_core_finish(req, &iter);
}

/* This step comes before the table gets its handle, as in ib_uverbs_ex_create_rwq_ind_table(). */
static int find_wqs(struct uvd_req *req)
{
	struct table_args *args = uvd_args(req, struct table_args);
	size_t num = table_size(args->log_ind_tbl_size);
	const uint8_t *next = args->handles;
	uint32_t handle;
	int ret = 0;

	args->wqs = uvd_req_alloc(req, num * sizeof(args->wqs[0]));
	if (!args->wqs)
		return -ENOMEM;
	for (size_t i = 0; i < num && !ret; i++, next += sizeof(handle)) {
		memcpy(&handle, next, sizeof(handle));
		ret = uvd_req_object(req, UVERBS_OBJECT_WQ, handle, &args->wqs[i]);
	}
	return ret;
}

static int rwq_ind_tbl_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_RWQ_IND_TBL, &uvd_args(req, struct table_args)->uobj);
}

/* Adds n to the usecnt of a work queue for each of its entries in the table. */
static void rwq_ind_tbl_count_users(struct uvd_rwq_ind_table *table, int n)
{
	for (size_t i = 0; i < table_size(table->log_ind_tbl_size); i++)
		atomic_fetch_add(&table->ind_tbl[i]->usecnt, n);
}

static struct uvd_rwq_ind_table *new_table(struct uvd_req *req)
{
	struct table_args *args = uvd_args(req, struct table_args);
	size_t size = table_size(args->log_ind_tbl_size) * sizeof(args->wqs[0]);
	struct uvd_rwq_ind_table *table;

	if (uvd_uobject_charge(args->uobj, size))
		return NULL;
	table = uvd_zalloc(uvd_ops(req)->size_rwq_ind_table);
	if (!table)
		return NULL;
	table->ind_tbl = uvd_zalloc(size);
	if (!table->ind_tbl) {
		free(table);
		return NULL;
	}
	memcpy(table->ind_tbl, args->wqs, size);
	table->context = uvd_req_ucontext(req);
	table->log_ind_tbl_size = args->log_ind_tbl_size;
	return table;
}

static int create_table(struct uvd_req *req)
{
	struct table_args *args = uvd_args(req, struct table_args);
	struct uvd_rwq_ind_table *table = new_table(req);
	int ret;

	if (!table)
		return -ENOMEM;
	ret = uvd_ops(req)->create_rwq_ind_table(table, uvd_req_udata(req));
	if (ret) {
		free(table->ind_tbl);
		free(table);
		return uvd_refused(req, ret);
	}
	rwq_ind_tbl_count_users(table, 1);
	uvd_uobject_set_object(args->uobj, table);
	return 0;
}

static int rwq_ind_tbl_answer_create(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct table_args)->uobj;
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {
		.response_length = uvd_response_length(req, sizeof(resp)),
		.ind_tbl_handle = uobj->id,
		.ind_tbl_num = ((struct uvd_rwq_ind_table *)uobj->object)->ind_tbl_num,
	};

	return uvd_core_out(req, &resp);
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

static int rwq_ind_tbl_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_rwq_ind_table *table = uobj->object;
	int ret = uvd_destroy_unused(uobj, table, destroy_rwq_ind_table);

	if (ret)
		return ret;
	rwq_ind_tbl_count_users(table, -1);
	free(table->ind_tbl);
	return uvd_object_free(uobj);
}

static int rwq_ind_tbl_destroy_write(struct uvd_req *req)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd;
	int ret = uvd_core_in(req, &cmd);

	if (!ret && cmd.comp_mask)
		ret = uvd_bad(req, -EOPNOTSUPP, "comp_mask", cmd.comp_mask);
	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_RWQ_IND_TBL, cmd.ind_tbl_handle, NULL);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step rwq_ind_tbl_create_steps[] = {
	rwq_ind_tbl_decode_create, find_wqs, rwq_ind_tbl_new_handle, create_table, rwq_ind_tbl_answer_create, NULL,
};
static const uvd_step rwq_ind_tbl_destroy_steps[] = { rwq_ind_tbl_destroy_write, NULL };

static const struct uvd_write_row rwq_ind_tbl_writes[] = {
	UVD_WRITE(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, UVD_WRITE_EX | UVD_WRITE_UDATA,
		  sizeof(struct ib_uverbs_ex_create_rwq_ind_table),
		  sizeof(struct ib_uverbs_ex_create_rwq_ind_table_resp), rwq_ind_tbl_create_steps,
		  UVD_OP(create_rwq_ind_table)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, UVD_WRITE_EX | UVD_WRITE_UDATA,
		  sizeof(struct ib_uverbs_ex_destroy_rwq_ind_table), 0, rwq_ind_tbl_destroy_steps,
		  UVD_OP(destroy_rwq_ind_table)),
};

static const struct uvd_attr_row rwq_ind_tbl_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, UVERBS_OBJECT_RWQ_IND_TBL, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row rwq_ind_tbl_methods[] = {
	UVD_METHOD(UVERBS_METHOD_RWQ_IND_TBL_DESTROY, rwq_ind_tbl_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_rwq_ind_tbl = {
	.name = "UVERBS_OBJECT_RWQ_IND_TBL",
	.id = UVERBS_OBJECT_RWQ_IND_TBL,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(rwq_ind_table),
	.destroy = rwq_ind_tbl_destroy_uobj,
	UVD_ROWS(methods, rwq_ind_tbl_methods),
	UVD_ROWS(writes, rwq_ind_tbl_writes),
	.needs = { UVD_OP(destroy_rwq_ind_table) },
};
