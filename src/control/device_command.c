/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control commands that remove and add devices. */
#include "control/control.h"
#include "core/core.h"
#include "options/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

/*
 * After a try to add the device: a new one begins without what filters have ordered. If there is none, the removed one of its
 * name still comes back, and is counted on.
 */
static json_t *control_device_tried(const struct uvd_control_devices *devices, void *arg, const char *ibdev,
				    uint64_t replugs, json_t *answer)
{
	if (json_object_get(answer, "error"))
		uvd_engine_restore_replugs(devices->engine(arg), ibdev, replugs);
	else
		devices->added(arg, ibdev);
	return answer;
}

/*
 * Makes a device with the texts of its options. A removed device may have the same name: if the new one
 * cannot be made, the name keeps what it had.
 */
static json_t *control_device_try(const struct uvd_options *o, const struct uvd_control_devices *devices, void *arg)
{
	struct uvd_engine *engine = devices->engine(arg);
	const struct uvd_device_config *config = &o->devices[0];
	struct uvd_device_text *texts = uvd_engine_texts_take(engine, config->ibdev);
	const uint64_t replugs = uvd_engine_forget_replugs(engine, config->ibdev);
	json_t *answer;

	/* With filters that no engine can have the device is refused there. */
	answer = uvd_options_give_texts(o, engine) ? uvd_control_refuse("no memory") : devices->make(arg, config);
	if (json_object_get(answer, "error"))
		uvd_engine_texts_restore(engine, config->ibdev, texts);
	else
		uvd_engine_texts_drop(texts);
	return control_device_tried(devices, arg, config->ibdev, replugs, answer);
}

/*
 * Adds a device. It gets the defaults of the lowest index whose name is free; a name among the options is the name for
 * every index.
 */
static json_t *control_device_make(char **words, int num, const struct uvd_control_devices *devices, void *arg)
{
	struct uvd_options o;
	json_t *answer;

	for (unsigned int index = 0; index < UVD_MAX_DEVICES; index++) {
		if (uvd_options_parse_device(&o, devices->maps_queues, devices->engine(arg)->plugins, index, num,
					     words))
			return uvd_control_refuse("these are not the options of a device");
		if (devices->taken(arg, o.devices[0].ibdev)) {
			uvd_options_free(&o);
			continue;
		}
		answer = control_device_try(&o, devices, arg);
		uvd_options_free(&o);
		return answer;
	}
	return uvd_control_refuse("such a device exists already");
}

/* Adds a device that was removed. */
static json_t *control_device_add(const char *name, const struct uvd_control_devices *devices, void *arg)
{
	const char *removed = devices->removed(arg, name);
	char ibdev[IBV_SYSFS_NAME_MAX];
	uint64_t replugs;

	if (!removed)
		return devices->add(arg, name); /* which says why not */
	snprintf(ibdev, sizeof(ibdev), "%s", removed);
	replugs = uvd_engine_forget_replugs(devices->engine(arg), ibdev);
	return control_device_tried(devices, arg, ibdev, replugs, devices->add(arg, name));
}

static json_t *control_device_run(char **words, int num, const struct uvd_control_devices *devices, void *arg)
{
	if (num == 3 && !strcmp(words[1], "remove"))
		return devices->remove(arg, words[2]);
	if (num == 3 && !strcmp(words[1], "add") && words[2][0] != '-')
		return control_device_add(words[2], devices, arg);
	if (num >= 2 && !strcmp(words[1], "add"))
		return control_device_make(words + 1, num - 1, devices, arg);
	return uvd_control_refuse("usage: device remove NAME, device add NAME, device add [OPTION...]");
}

json_t *uvd_control_device(const char *command, bool may_change, const struct uvd_control_devices *devices, void *arg)
{
	char *words[MAX_WORDS], *copy, *save, *word;
	json_t *answer;
	int num = 0;

	if (strncmp(command, "device", 6) || (command[6] && command[6] != ' '))
		return NULL;
	if (!may_change)
		return uvd_control_refuse("only root and the user that serves the device may do that");
	copy = strdup(command);
	if (!copy)
		return uvd_control_refuse("no memory");
	for (word = strtok_r(copy, " ", &save); word && num < MAX_WORDS - 1; word = strtok_r(NULL, " ", &save))
		words[num++] = word;
	words[num] = NULL;
	answer = word ? uvd_control_refuse("too many words") : control_device_run(words, num, devices, arg);
	free(copy);
	return answer;
}
