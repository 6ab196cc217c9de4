/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * persona-example: the persona `acme`. Its devices pose for the stock provider of hfi1 under another name and with ids
 * of their own. Its feature has a driver object with one method (acme.h), and wraps standard verbs: a context may have
 * at most `max-qps` QPs, and creating one can tell how many are left.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uverbsd/plugin.h>

#include "acme.h"

struct acme_engine {
	uint64_t max_qps;
};

struct acme_context {
	const struct acme_engine *engine;
	atomic_uint qps;
};

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static int acme_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	struct acme_engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -ENOMEM;
	ret = uvd_plugin_number(values, "max-qps", 1, UINT32_MAX, &engine->max_qps);
	if (ret)
		free(engine);
	else
		*data = engine;
	return ret;
}

static int acme_device_init(struct uvd_ibdev *dev, void *engine, void **data)
{
	*data = engine;
	return 0;
}

static int acme_context_init(struct uvd_context *context, void *engine, void **data)
{
	struct acme_context *acme = calloc(1, sizeof(*acme));

	if (!acme)
		return -ENOMEM;
	acme->engine = engine;
	*data = acme;
	return 0;
}

static void acme_context_exit(struct uvd_context *context, void *acme)
{
	free(acme);
}

/* ---- the driver's own method ------------------------------------------------------------------------------------- */

static int acme_query_limits(struct uvd_req *req)
{
	const struct acme_context *acme = uvd_plugin_context_data(req, &uverbsd_plugin);
	uint32_t max, qps;
	int ret;

	if (!acme)
		return -EIO;
	max = acme->engine->max_qps;
	qps = atomic_load(&acme->qps);
	ret = uvd_attr_copy_to(req, UVERBS_ATTR_ACME_LIMITS_QUERY_MAX_QPS, &max);
	return ret ?: uvd_attr_copy_to(req, UVERBS_ATTR_ACME_LIMITS_QUERY_QPS, &qps);
}

/* ---- wrapped verbs ----------------------------------------------------------------------------------------------- */

/*
 * BEFORE: saves the work of creating a QP that acme_count_qp() would refuse. Without a context the verb itself fails.
 */
static int acme_refuse_qp(struct uvd_req *req)
{
	const struct acme_context *acme = uvd_plugin_context_data(req, &uverbsd_plugin);

	if (acme && atomic_load(&acme->qps) >= acme->engine->max_qps)
		return uvd_bad(req, -EAGAIN, "max-qps", acme->engine->max_qps);
	return 0;
}

/*
 * AFTER: this decides. Two calls can both pass the check before, and a QP that the verb refuses must not count. An
 * errno here destroys the new QP. The answer is written after this step: if that fails (EFAULT), the QP is destroyed
 * without another step, and stays counted until the context ends.
 */
static int acme_count_qp(struct uvd_req *req)
{
	struct acme_context *acme = uvd_plugin_context_data(req, &uverbsd_plugin);
	unsigned int qps;

	if (!acme)
		return -EIO;
	qps = atomic_load(&acme->qps);
	do {
		if (qps >= acme->engine->max_qps)
			return uvd_bad(req, -EAGAIN, "max-qps", acme->engine->max_qps);
	} while (!atomic_compare_exchange_weak(&acme->qps, &qps, qps + 1));
	return 0;
}

/* AFTER, by ioctl: fills in the attribute that the feature has added. A client that did not send it gets nothing. */
static int acme_answer_left(struct uvd_req *req)
{
	const struct acme_context *acme = uvd_plugin_context_data(req, &uverbsd_plugin);
	uint32_t left;
	int ret;

	if (!acme)
		return -EIO;
	left = acme->engine->max_qps - atomic_load(&acme->qps);
	ret = uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_QP_RESP_ACME_LEFT, &left);
	return ret == -ENOENT ? 0 : ret;
}

/* The QP was destroyed. If the device was removed there is no context data, and nothing is counted. */
static int acme_uncount_qp(struct uvd_req *req)
{
	struct acme_context *acme = uvd_plugin_context_data(req, &uverbsd_plugin);

	if (acme)
		atomic_fetch_sub(&acme->qps, 1);
	return 0;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step acme_query_steps[] = { uvd_step_context, acme_query_limits, NULL };
static const uvd_step acme_before_create_steps[] = { acme_refuse_qp, NULL };
static const uvd_step acme_after_write_steps[] = { acme_count_qp, NULL };
static const uvd_step acme_after_create_steps[] = { acme_count_qp, acme_answer_left, NULL };
static const uvd_step acme_destroy_steps[] = { acme_uncount_qp, NULL };

static const struct uvd_attr_row acme_query_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_ACME_LIMITS_QUERY_MAX_QPS, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_ACME_LIMITS_QUERY_QPS, sizeof(uint32_t), 0),
};

static const struct uvd_attr_row acme_create_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_QP_RESP_ACME_LEFT, sizeof(uint32_t), 0),
};

static const struct uvd_method_row acme_limits_methods[] = {
	UVD_METHOD(UVERBS_METHOD_ACME_LIMITS_QUERY, acme_query_attrs, acme_query_steps),
};

#define ACME_WRAP(n, w, s) \
	{ \
		.name = #n, .id = n, .steps = s, .when = w \
	}
#define ACME_WRAP_WRITE(n, f, w, s, ...) \
	{ \
		.name = #n, .number = n, .flags = f, .steps = s, .when = w, .needs = { __VA_ARGS__ } \
	}

static const struct uvd_method_row acme_qp_methods[] = {
	ACME_WRAP(UVERBS_METHOD_QP_CREATE, UVD_STEPS_BEFORE, acme_before_create_steps),
	{
		.name = "UVERBS_METHOD_QP_CREATE",
		.id = UVERBS_METHOD_QP_CREATE,
		UVD_ROWS(attrs, acme_create_attrs),
		.steps = acme_after_create_steps,
		.when = UVD_STEPS_AFTER,
	},
	ACME_WRAP(UVERBS_METHOD_QP_DESTROY, UVD_STEPS_AFTER, acme_destroy_steps),
};

static const struct uvd_write_row acme_qp_writes[] = {
	ACME_WRAP_WRITE(IB_USER_VERBS_CMD_CREATE_QP, 0, UVD_STEPS_BEFORE, acme_before_create_steps),
	ACME_WRAP_WRITE(IB_USER_VERBS_CMD_CREATE_QP, 0, UVD_STEPS_AFTER, acme_after_write_steps),
	ACME_WRAP_WRITE(IB_USER_VERBS_EX_CMD_CREATE_QP, UVD_WRITE_EX, UVD_STEPS_BEFORE, acme_before_create_steps),
	ACME_WRAP_WRITE(IB_USER_VERBS_EX_CMD_CREATE_QP, UVD_WRITE_EX, UVD_STEPS_AFTER, acme_after_write_steps),
	ACME_WRAP_WRITE(IB_USER_VERBS_CMD_DESTROY_QP, 0, UVD_STEPS_AFTER, acme_destroy_steps),
};

/* OPEN_QP makes another handle of an XRC QP, which DESTROY_QP destroys. It is a command of the XRC domain. */
static const struct uvd_write_row acme_xrcd_writes[] = {
	ACME_WRAP_WRITE(IB_USER_VERBS_CMD_OPEN_QP, 0, UVD_STEPS_BEFORE, acme_before_create_steps, UVD_OP(alloc_xrcd)),
	ACME_WRAP_WRITE(IB_USER_VERBS_CMD_OPEN_QP, 0, UVD_STEPS_AFTER, acme_after_write_steps, UVD_OP(alloc_xrcd)),
};

static const struct uvd_object_row acme_limits_object = {
	.name = "UVERBS_OBJECT_ACME_LIMITS",
	.id = UVERBS_OBJECT_ACME_LIMITS,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, acme_limits_methods),
};

static const struct uvd_object_row acme_qp_object = {
	.name = "UVERBS_OBJECT_QP",
	.id = UVERBS_OBJECT_QP,
	UVD_ROWS(methods, acme_qp_methods),
	UVD_ROWS(writes, acme_qp_writes),
};

static const struct uvd_object_row acme_xrcd_object = {
	.name = "UVERBS_OBJECT_XRCD",
	.id = UVERBS_OBJECT_XRCD,
	UVD_ROWS(writes, acme_xrcd_writes),
};

static const struct uvd_object_row *const acme_objects[] = { &acme_limits_object, &acme_qp_object, &acme_xrcd_object,
							     NULL };
static const struct uvd_feature acme_feature = { .name = "acme", .objects = acme_objects };

/* ---- the persona ------------------------------------------------------------------------------------------------- */

static const struct uvd_counter_file acme_hw_counters[] = {
	{ "AcmeRnrNak", 1u << UVD_PORT_RNR_RCVD },
	{ .name = NULL },
};

/*
 * What the provider of hfi1 looks at is as in src/persona/hfi1.c: driver_id, abi_version, and the vendor and device of
 * modalias. All else is our own.
 */
static const struct uvd_persona acme_persona = {
	.name = "acme",
	.ibdev_prefix = "acme_",
	.driver_id = RDMA_DRIVER_HFI1,
	.abi_version = 1,
	.modalias = "pci:v00008086d000024F1sv0000ACEDsd00000001bc02sc08i00",
	.board_id = "ACME1",
	.fw_ver = "1.0.0",
	.node_desc = "acme",
	.vendor_id = 0xaced,
	.vendor_part_id = 1,
	.hw_ver = 1,
	.has_hw_rev = true,
	.hw_counters = acme_hw_counters,
	.link_layer = IBV_LINK_LAYER_INFINIBAND,
	.unusable_caps = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC,
	.feature = &acme_feature,
};

static const struct uvd_persona *const acme_personas[] = { &acme_persona, NULL };

static const struct uvd_plugin_option acme_options[] = {
	{ "max-qps", "1000", "NUMBER", "the QPs that a context may have" },
	{ .name = NULL },
};

UVD_PLUGIN(.name = "persona-example", .version = "1", .description = "the persona acme", .personas = acme_personas,
	   .options = acme_options, .init = acme_init, .exit = free, .device_init = acme_device_init,
	   .context_init = acme_context_init, .context_exit = acme_context_exit);
