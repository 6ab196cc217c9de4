/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decides which persona a device has, and its name, which counts for each persona. */
#include <stdio.h>
#include <string.h>

#include "options/internal.h"
#include "persona/persona.h"

enum { PERSONA_NAME = sizeof(((struct uvd_device_config *)0)->persona) };

/* Stores the name of the persona that --personas has for a device; if it has none stores "", and returns false. */
static bool listed_persona(const struct uvd_options *o, unsigned int device, char name[PERSONA_NAME])
{
	const char *list = o->personas;

	for (unsigned int i = 0; i <= device; i++)
		if (!uvd_option_next_item(&list, name, PERSONA_NAME)) {
			*name = 0;
			return false;
		}
	return true;
}

unsigned int uvd_option_num_listed(const struct uvd_options *o)
{
	char name[PERSONA_NAME];
	unsigned int num = 0;

	while (listed_persona(o, num, name))
		num++;
	return num;
}

unsigned int uvd_option_num_described(const struct parser *p)
{
	const unsigned int sections = p->last_device + 1, listed = uvd_option_num_listed(p->o);
	const unsigned int most = sections > listed ? sections : listed;

	return most ?: 1;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/*
 * Mapped queues are much faster, so rxe is the default where they are possible. But libibverbs recognizes an rxe device
 * by its name: a device with another name is hfi1.
 */
static const struct uvd_persona *default_persona(const struct parser *p, const struct uvd_device_config *config)
{
	const struct uvd_persona *rxe = uvd_persona_find("rxe");
	const struct uvd_backend *backend = uvd_plugins_backend(p->plugins, config->backend);

	if (p->o->machine.maps_queues && backend && uvd_backend_maps_queues(backend) &&
	    (!config->ibdev[0] || has_prefix(config->ibdev, rxe->ibdev_prefix)))
		return rxe;
	return uvd_persona_find("hfi1");
}

const struct uvd_persona *uvd_option_find_persona(struct parser *p, int device, bool *is_soft)
{
	struct uvd_device_config config = { .backend = "soft" };
	const struct setting *s;

	for (s = p->settings; s < p->settings + p->num_settings; s++)
		if (s->row->decides_persona && (s->device < 0 || s->device == device))
			uvd_setting_apply(p, s, &config, 0);
	*is_soft = !strcmp(config.backend, "soft");
	if (!config.persona[0] && listed_persona(p->o, device, config.persona) &&
	    !uvd_plugins_persona(p->plugins, config.persona))
		uvd_opt_fail(p, 0, "--personas: `%s` is no persona", config.persona);
	return uvd_plugins_persona(p->plugins, config.persona) ?: default_persona(p, &config);
}

void uvd_option_name_device(const struct parser *p, int device, const struct uvd_persona *persona)
{
	struct uvd_device_config *config = &p->o->devices[device];
	unsigned int nth = p->first_nth;

	for (int i = 0; i < device; i++)
		nth += !strcmp(p->o->devices[i].persona, persona->name);
	snprintf(config->ibdev, sizeof(config->ibdev), "%s%u", persona->ibdev_prefix, nth);
}

bool uvd_option_list_has_ethernet(const struct parser *p)
{
	char name[PERSONA_NAME];
	const struct uvd_persona *persona;
	bool has = false;

	for (unsigned int i = 0; listed_persona(p->o, i, name); i++) {
		persona = uvd_plugins_persona(p->plugins, name);
		has = has || (persona && persona->link_layer == IBV_LINK_LAYER_ETHERNET);
	}
	return has;
}

void uvd_option_check_personas(struct parser *p)
{
	for (unsigned int i = 0; i < p->o->num_devices; i++) {
		const struct uvd_persona *persona = uvd_plugins_persona(p->plugins, p->o->devices[i].persona);
		const char *name = p->o->devices[i].ibdev;

		if (!persona)
			continue;
		if (p->program == UVD_PROGRAM_DAEMON && persona->queues && !p->o->separate)
			uvd_opt_fail(p, 0, "persona %s maps queues, which needs two processes: not with --separate no",
				     persona->name);
		/* Without a modalias libibverbs recognizes the device by its name. */
		if (!*persona->modalias && !has_prefix(name, persona->ibdev_prefix))
			uvd_opt_fail(p, 0,
				     "device %s: libibverbs knows persona %s by its name, which has to begin with %s",
				     name, persona->name, persona->ibdev_prefix);
	}
}
