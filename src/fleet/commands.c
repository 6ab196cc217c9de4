/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control command `device`, which removes and adds devices. */
#include "control/control.h"
#include "fleet/internal.h"
#include "options/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

/*
 * After a try to add the device: a new one begins without what filters have ordered. If there is none, the removed one of its
 * name still comes back, and is counted on.
 */
static json_t *device_tried(struct uvd_fleet *f, const char *ibdev, uint64_t replugs, json_t *answer)
{
	if (json_object_get(answer, "error"))
		uvd_engine_restore_replugs(f->engine, ibdev, replugs);
	else
		uvd_fleet_replug_stop(f, ibdev);
	return answer;
}

/*
 * Makes a device with the texts of its options. A removed device may have the same name: if the new one
 * cannot be made, the name keeps what it had.
 */
static json_t *device_try(struct uvd_fleet *f, const struct uvd_options *o)
{
	const struct uvd_device_config *config = &o->devices[0];
	struct uvd_device_text *texts = uvd_engine_texts_take(f->engine, config->ibdev);
	const uint64_t replugs = uvd_engine_forget_replugs(f->engine, config->ibdev);
	json_t *answer;

	/* With filters that no engine can have the device is refused there. */
	answer = uvd_options_give_texts(o, f->engine) ? uvd_control_refuse("no memory") : uvd_fleet_make(f, config);
	if (json_object_get(answer, "error"))
		uvd_engine_texts_restore(f->engine, config->ibdev, texts);
	else
		uvd_engine_texts_drop(texts);
	return device_tried(f, config->ibdev, replugs, answer);
}

/*
 * Adds a device. It gets the defaults of the lowest index whose name is free; a name among the options is the name for
 * every index.
 */
static json_t *device_make(struct uvd_fleet *f, char **words, int num)
{
	struct uvd_options o;
	json_t *answer;

	for (unsigned int index = 0; index < UVD_MAX_DEVICES; index++) {
		if (uvd_options_parse_device(&o, f->ops->maps_queues, f->engine->plugins, &f->wire.options, index, num,
					     words))
			return uvd_control_refuse("these are not the options of a device");
		if (uvd_fleet_find(f, o.devices[0].ibdev)) {
			uvd_options_free(&o);
			continue;
		}
		answer = device_try(f, &o);
		uvd_options_free(&o);
		return answer;
	}
	return uvd_control_refuse("such a device exists already");
}

/* Adds a device that was removed. */
static json_t *device_add(struct uvd_fleet *f, const char *name)
{
	const struct uvd_fleet_place *removed = uvd_fleet_find_removed(f, name);
	char ibdev[IBV_SYSFS_NAME_MAX];
	uint64_t replugs;

	if (!removed)
		return uvd_fleet_plug_in(f, name); /* which says why not */
	snprintf(ibdev, sizeof(ibdev), "%s", removed->config.ibdev);
	replugs = uvd_engine_forget_replugs(f->engine, ibdev);
	return device_tried(f, ibdev, replugs, uvd_fleet_plug_in(f, name));
}

static json_t *device_run(struct uvd_fleet *f, char **words, int num)
{
	if (num == 3 && !strcmp(words[1], "remove"))
		return uvd_fleet_remove(f, words[2]);
	if (num == 3 && !strcmp(words[1], "add") && words[2][0] != '-')
		return device_add(f, words[2]);
	if (num >= 2 && !strcmp(words[1], "add"))
		return device_make(f, words + 1, num - 1);
	return uvd_control_refuse("usage: device remove NAME, device add NAME, device add [OPTION...]");
}

json_t *uvd_fleet_device_command(struct uvd_fleet *f, const char *command, bool may_change)
{
	char *words[MAX_WORDS], *copy, *save, *word;
	json_t *answer;
	int num = 0;

	if (strncmp(command, "device", 6) || (command[6] && command[6] != ' '))
		return NULL;
	if (!may_change)
		return uvd_control_refuse("only root and the user that serves the device may do that");
	/* A removed device whose last file was closed gives up its number now, not at the next tick. */
	uvd_fleet_settle(f);
	copy = strdup(command);
	if (!copy)
		return uvd_control_refuse("no memory");
	for (word = strtok_r(copy, " ", &save); word && num < MAX_WORDS - 1; word = strtok_r(NULL, " ", &save))
		words[num++] = word;
	words[num] = NULL;
	answer = word ? uvd_control_refuse("too many words") : device_run(f, words, num);
	free(copy);
	return answer;
}
