/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Options of a device that the engine keeps as text (core/texts.h). */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "options/internal.h"

static const char *text_wrong_if_empty(const char *text)
{
	return *text ? NULL : "is empty";
}

/* An engine process cannot look up users later, so it gets their ids. */
const struct uvd_option_text_kind uvd_option_filter = { UVD_TEXT_FILTER, text_wrong_if_empty, strdup };
const struct uvd_option_text_kind uvd_option_allow = { UVD_TEXT_ALLOW, uvd_allow_check, uvd_allow_without_names, true };
const struct uvd_option_text_kind uvd_option_quota = { UVD_TEXT_QUOTA, uvd_quota_check, uvd_quota_without_names, true };

const char *uvd_options_add_text(struct uvd_options *o, const struct uvd_option_text_kind *kind, unsigned int device,
				 const char *text)
{
	char *copy = kind->copy(text);
	struct uvd_option_text *longer = copy ? realloc(o->texts, (o->num_texts + 1) * sizeof(*longer)) : NULL;

	if (!longer) {
		free(copy);
		return "does not fit into memory";
	}
	o->texts = longer;
	longer[o->num_texts++] = (struct uvd_option_text){ .device = device, .kind = kind->kind, .text = copy };
	return NULL;
}

void uvd_options_free_texts(struct uvd_options *o)
{
	while (o->num_texts)
		free(o->texts[--o->num_texts].text);
	free(o->texts);
	o->texts = NULL;
}

int uvd_options_give_texts(const struct uvd_options *o, struct uvd_engine *engine)
{
	int err = 0;

	for (unsigned int i = 0; i < o->num_devices; i++)
		uvd_engine_texts_forget(engine, o->devices[i].ibdev);
	for (const struct uvd_option_text *t = o->texts; t < o->texts + o->num_texts && !err; t++)
		err = uvd_engine_text_add(engine, o->devices[t->device].ibdev, t->kind, t->text);
	return err;
}
