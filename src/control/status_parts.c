/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of a status that both transports report. */
#include <stdatomic.h>

#include "control/control.h"
#include "core/core.h"

void uvd_control_count_types(const struct uvd_file *file, unsigned int *counts)
{
	for (int i = 0; i < UVD_OBJECT_COUNTS; i++)
		counts[i] = atomic_load_explicit(&file->object_counts[i], memory_order_relaxed);
}

json_t *uvd_control_types(const struct uvd_device *dev, const unsigned int *counts)
{
	json_t *types = json_object();

	for (int i = 0; i < UVD_OBJECT_COUNTS; i++) {
		const struct uvd_object_count *named = &dev->object_counts[i];

		if (counts[i] && atomic_load_explicit(&named->state, memory_order_acquire) == UVD_COUNT_NAMED)
			json_object_set_new(types, named->name, json_integer(counts[i]));
	}
	return types;
}

json_t *uvd_control_objects(const struct uvd_device *dev)
{
	unsigned int counts[UVD_OBJECT_COUNTS];

	for (int i = 0; i < UVD_OBJECT_COUNTS; i++)
		counts[i] = atomic_load_explicit(&dev->object_counts[i].num, memory_order_relaxed);
	return uvd_control_types(dev, counts);
}

json_t *uvd_control_memlock(const struct uvd_device_config *config)
{
	if (config->memlock == UVD_MEMLOCK_CLIENT)
		return json_string("client");
	return config->memlock > INT64_MAX ? json_string("unlimited") : json_integer(config->memlock);
}

json_t *uvd_control_text(const char *text)
{
	json_t *string = json_string(text);
	char ascii[256];
	size_t i = 0;

	if (string)
		return string;
	for (; text[i] && i + 1 < sizeof(ascii); i++)
		ascii[i] = text[i] & 0x80 ? '?' : text[i];
	ascii[i] = '\0';
	return json_string(ascii);
}
