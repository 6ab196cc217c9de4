/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "core/texts.h"
#include "util/util.h"

/* Appends a list. Caller holds plugins_lock. */
static void texts_append(struct uvd_engine *engine, struct uvd_device_text *list)
{
	struct uvd_device_text **p;

	for (p = &engine->texts; *p; p = &(*p)->next)
		;
	*p = list;
}

int uvd_engine_text_add(struct uvd_engine *engine, const char *ibdev, enum uvd_text_kind kind, const char *text)
{
	struct uvd_device_text *entry = uvd_zalloc(sizeof(*entry));

	if (entry)
		entry->text = strdup(text);
	if (!entry || !entry->text) {
		free(entry);
		return -ENOMEM;
	}
	snprintf(entry->ibdev, sizeof(entry->ibdev), "%s", ibdev);
	entry->kind = kind;
	uvd_lock(&engine->plugins_lock);
	texts_append(engine, entry);
	uvd_unlock(&engine->plugins_lock);
	return 0;
}

/* Removes the entries of this name (NULL: all) and returns them, in their order. Caller holds plugins_lock. */
static struct uvd_device_text *texts_cut(struct uvd_engine *engine, const char *ibdev)
{
	struct uvd_device_text **p = &engine->texts, *cut = NULL, **end = &cut, *entry;

	while ((entry = *p)) {
		if (ibdev && strcmp(entry->ibdev, ibdev)) {
			p = &entry->next;
			continue;
		}
		*p = entry->next;
		entry->next = NULL;
		*end = entry;
		end = &entry->next;
	}
	return cut;
}

struct uvd_device_text *uvd_engine_texts_take(struct uvd_engine *engine, const char *ibdev)
{
	struct uvd_device_text *taken;

	uvd_lock(&engine->plugins_lock);
	taken = texts_cut(engine, ibdev);
	uvd_unlock(&engine->plugins_lock);
	return taken;
}

void uvd_engine_texts_restore(struct uvd_engine *engine, const char *ibdev, struct uvd_device_text *taken)
{
	uvd_lock(&engine->plugins_lock);
	uvd_engine_texts_drop(texts_cut(engine, ibdev));
	texts_append(engine, taken);
	uvd_unlock(&engine->plugins_lock);
}

void uvd_engine_texts_forget(struct uvd_engine *engine, const char *ibdev)
{
	uvd_engine_texts_restore(engine, ibdev, NULL);
}

void uvd_engine_texts_drop(struct uvd_device_text *taken)
{
	struct uvd_device_text *next;

	for (; taken; taken = next) {
		next = taken->next;
		free(taken->text);
		free(taken);
	}
}

void uvd_engine_texts_fini(struct uvd_engine *engine)
{
	uvd_engine_texts_drop(texts_cut(engine, NULL));
}

const struct uvd_device_text *uvd_device_text_after(const struct uvd_device *dev, enum uvd_text_kind kind,
						    const struct uvd_device_text *last)
{
	const struct uvd_device_text *t = last ? last->next : dev->engine->texts;

	while (t && (t->kind != kind || strcmp(t->ibdev, dev->config.ibdev) != 0))
		t = t->next;
	return t;
}
