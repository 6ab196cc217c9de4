/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plug-in that makes DEALLOC_PD wrong, so that `uverbsctl fuzz` has something to find. FAULT: 1 a wrong errno, 2 a crash, 3 a
 * call that does not return, 4 a charge that stays, 5 two calls that do not return if they are made at the same time.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdatomic.h>
#include <uverbsd/backend.h>
#include <uverbsd/plugin.h>
#include <uverbsd/request.h>
#include <unistd.h>

static int dealloc_beside(void)
{
	enum { WAIT_MS = 500 };
	static atomic_int inside;

	atomic_fetch_add(&inside, 1);
	for (int ms = 0; ms < WAIT_MS && atomic_load(&inside) < 2; ms++)
		usleep(1000);
	while (atomic_load(&inside) >= 2)
		pause();
	atomic_fetch_sub(&inside, 1);
	return 0;
}

static int faulty_dealloc(struct uvd_req *req)
{
	struct uvd_context *context = uvd_req_ucontext(req);
	int *volatile nowhere = (int *)8;

	if (FAULT == 2)
		*nowhere = 1;
	while (FAULT == 3)
		pause();
	if (FAULT == 5)
		return dealloc_beside();
	if (FAULT == 4)
		return context ? uvd_charge_bytes(context->account, 1) : 0;
	return -EINVAL;
}

static const uvd_step faulty_steps[] = { faulty_dealloc, NULL };
static const struct uvd_write_row faulty_writes[] = {
	{ .name = "IB_USER_VERBS_CMD_DEALLOC_PD",
	  .number = IB_USER_VERBS_CMD_DEALLOC_PD,
	  .steps = faulty_steps,
	  .when = UVD_STEPS_BEFORE },
};
static const struct uvd_object_row faulty_object = { .name = "UVERBS_OBJECT_PD",
						     .id = UVERBS_OBJECT_PD,
						     UVD_ROWS(writes, faulty_writes) };
static const struct uvd_object_row *const objects[] = { &faulty_object, NULL };
static const struct uvd_feature feature = { .name = "faulty feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

UVD_PLUGIN(.name = "faulty", .version = "1.0", .description = "a wrong DEALLOC_PD", .features = features);
