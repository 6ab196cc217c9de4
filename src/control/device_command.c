/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control commands that remove and add devices. */
#include "control/control.h"
#include "options/options.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

/*
 * Adds a device. It gets the defaults of the lowest index whose name is free; a name among the options is the name for
 * every index.
 */
static json_t *control_device_make(char **words, int num, const struct uvd_control_devices *devices, void *arg)
{
	struct uvd_options o;
	json_t *answer;

	for (unsigned int index = 0; index < UVD_MAX_DEVICES; index++) {
		if (uvd_options_parse_device(&o, devices->maps_queues, devices->plugins(arg), index, num, words))
			return uvd_control_refuse("these are not the options of a device");
		if (devices->taken(arg, o.devices[0].ibdev)) {
			uvd_options_free(&o);
			continue;
		}
		/* With filters that no engine can have the device is refused there. */
		answer =
			devices->filters(arg, &o) ? uvd_control_refuse("no memory") : devices->make(arg, &o.devices[0]);
		uvd_options_free(&o);
		return answer;
	}
	return uvd_control_refuse("such a device exists already");
}

static json_t *control_device_run(char **words, int num, const struct uvd_control_devices *devices, void *arg)
{
	if (num == 3 && !strcmp(words[1], "remove"))
		return devices->remove(arg, words[2]);
	if (num == 3 && !strcmp(words[1], "add") && words[2][0] != '-')
		return devices->add(arg, words[2]);
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
