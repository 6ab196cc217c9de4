/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's device memory. */
#include <errno.h>
#include "fake_internal.h"

struct fake_dm {
	struct ibv_dm dm;
	unsigned int regions;
};

static struct ibv_dm *fake_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct fake_dm *dm = fake_new(FAKE_ALLOC_DM, sizeof(*dm));

	if (!dm)
		return NULL;
	fake.dm_request = *attr;
	dm->dm.context = context;
	return &dm->dm;
}

static int fake_free_dm(struct ibv_dm *dm)
{
	int ret = fake_result(FAKE_FREE_DM);

	if (!ret && ((struct fake_dm *)dm)->regions)
		ret = EBUSY;
	if (!ret)
		fake_free(dm);
	return ret;
}

static struct ibv_mr *fake_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
				     unsigned int access)
{
	struct fake_mr *mr = fake_new(FAKE_REG_DM_MR, sizeof(*mr));

	if (!mr)
		return NULL;
	fake.dm_region.offset = offset;
	fake.dm_region.length = length;
	fake.dm_region.access = access;
	mr->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .length = length };
	mr->dm = (struct fake_dm *)dm;
	mr->dm->regions++;
	mr->bytes = fake.dm + offset;
	fake_mr_add(mr);
	return &mr->mr;
}

void fake_dm_leave(struct fake_dm *dm)
{
	dm->regions--;
}

void fake_dm_ops(struct verbs_context *verbs)
{
	verbs->alloc_dm = fake_alloc_dm;
	verbs->free_dm = fake_free_dm;
	verbs->reg_dm_mr = fake_reg_dm_mr;
}
