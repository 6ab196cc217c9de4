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
json_t *uvd_fleet_try(struct uvd_fleet *f, const struct uvd_options *o)
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

/* Has a device of another name this GUID? One that was removed can come back. */
static bool fleet_has_guid(const struct uvd_fleet *f, const struct uvd_device_config *config)
{
	const struct uvd_device_config *other;

	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		other = &f->ops->place(f->arg, i)->config;
		if (other->ibdev[0] && strcmp(other->ibdev, config->ibdev) && other->node_guid == config->node_guid)
			return true;
	}
	return false;
}

/* Parses the options so that name and GUID are free, if they do not name taken ones. Returns NULL, or the refusal. */
static json_t *device_parse(struct uvd_fleet *f, struct uvd_options *o, char **words, int num)
{
	struct uvd_option_place place = { .machine = &f->machine,
					  .plugins = f->engine->plugins,
					  .wire = &f->wire.options };

	while (!uvd_options_parse_device(o, &place, num, words)) {
		const struct uvd_device_config *config = &o->devices[0];
		const bool has_name = uvd_fleet_find(f, config->ibdev), has_guid = fleet_has_guid(f, config);

		/* A GUID that the options name is the same for each index. */
		if (!has_name && (!has_guid || place.index == UVD_MAX_DEVICES))
			return NULL;
		uvd_options_free(o);
		place.nth += has_name;
		place.index += !has_name;
		if (place.nth == UVD_MAX_DEVICES)
			return uvd_control_refuse("such a device exists already");
	}
	return uvd_control_refuse("these are not the options of a device");
}

/* Adds a device. Of names and GUIDs that the options leave open it gets the lowest that are free. */
static json_t *device_make(struct uvd_fleet *f, char **words, int num)
{
	struct uvd_options o;
	json_t *answer = device_parse(f, &o, words, num);

	if (answer)
		return answer;
	answer = uvd_fleet_try(f, &o);
	uvd_options_free(&o);
	return answer;
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
