/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands of rdma_cm pass the filters of a device. */
#include "filters/cm.h"
#include "filters/filters.h"

#define CM_NAME(command, name, kind) [RDMA_USER_CM_CMD_##command] = #name,
const char *const uvd_cm_names[UVD_CM_NUMBERS] = { UVD_CM_COMMANDS(CM_NAME) };

int uvd_filter_chain_command(const struct uvd_filter_chain *chain, struct uvd_cm_call *command)
{
	int ret = 0;

	command->name = uvd_cm_names[command->number];
	for (unsigned int i = 0; i < chain->num && !ret; i++) {
		const struct uvd_filter_instance *instance = chain->list[i];

		if (instance->filter->cm_command)
			ret = instance->filter->cm_command(instance->data, command);
	}
	return ret;
}

bool uvd_filters_want_commands(const struct uvd_filters *filters)
{
	const struct uvd_filter_chain *chain = filters->current;

	for (unsigned int i = 0; chain && i < chain->num; i++)
		if (chain->list[i]->filter->cm_command)
			return true;
	return false;
}
