/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plug-in that wraps POST_SEND: it tells of each post in the log. */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>
#include <uverbsd/request.h>

static int posts_before(struct uvd_req *req)
{
	uvd_logf(uvd_req_log(req), UVD_WARN, "the plug-in sees a post");
	return 0;
}

static const uvd_step before_steps[] = { posts_before, NULL };
static const struct uvd_write_row writes[] = { { .name = "IB_USER_VERBS_CMD_POST_SEND",
						 .number = IB_USER_VERBS_CMD_POST_SEND,
						 .steps = before_steps,
						 .when = UVD_STEPS_BEFORE } };
static const struct uvd_object_row qp = { .name = "UVERBS_OBJECT_QP",
					  .id = UVERBS_OBJECT_QP,
					  UVD_ROWS(writes, writes) };
static const struct uvd_object_row *const objects[] = { &qp, NULL };
static const struct uvd_feature feature = { .name = "posts feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

UVD_PLUGIN(.name = "posts", .version = "1.0", .description = "sees posts", .features = features);
