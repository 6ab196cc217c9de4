/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The configuration is read again: devices that it has no more are removed, new ones added, those that differ replaced. All others go on.
 * A device that differs is removed first: its removal waits for calls, so the rest follows when it has ended, or after a while.
 */
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include "control/control.h"
#include "fleet/internal.h"
#include "util/util.h"

#define LOOK_SECONDS 0.02

enum { LOOKS = 100 };

/* Returns the index of the device of this name, or -1. */
static int reload_find(const struct uvd_options *o, const char *ibdev)
{
	for (unsigned int i = 0; i < o->num_devices; i++)
		if (!strcmp(o->devices[i].ibdev, ibdev))
			return (int)i;
	return -1;
}

static void reload_note(struct uvd_fleet *f, const char *list, const char *ibdev)
{
	json_array_append_new(json_object_get(f->reload.answer, list), json_string(ibdev));
}

static void reload_fail(struct uvd_fleet *f, const char *ibdev, const char *why)
{
	json_object_set_new(json_object_get(f->reload.answer, "failed"), ibdev, json_string(why));
	uvd_logf(f->log, UVD_ERR, "reload: %s: %s", ibdev, why);
}

/* Adds one device, with its texts. */
static void reload_add(struct uvd_fleet *f, const struct uvd_options *o, unsigned int i)
{
	struct uvd_device_config config = o->devices[i];
	struct uvd_options one = { .num_devices = 1, .devices = &config };
	json_t *answer;

	one.texts = calloc(o->num_texts + 1, sizeof(*one.texts));
	if (!one.texts) {
		reload_fail(f, config.ibdev, "no memory");
		return;
	}
	for (unsigned int t = 0; t < o->num_texts; t++)
		if (o->texts[t].device == i)
			one.texts[one.num_texts++] =
				(struct uvd_option_text){ .kind = o->texts[t].kind, .text = o->texts[t].text };
	/* Clients can have the former device open still. */
	if (config.number >= 0 && f->ops->number_taken(f->arg, config.number))
		config.number = -1;
	answer = uvd_fleet_try(f, &one);
	if (json_object_get(answer, "error"))
		reload_fail(f, config.ibdev, json_string_value(json_object_get(answer, "error")));
	json_decref(answer);
	free(one.texts);
}

static void reload_end(struct uvd_fleet *f)
{
	struct uvd_fleet_reload *r = &f->reload;
	char *text;

	for (unsigned int i = 0; i < r->next->num_devices; i++)
		if (r->adds[i])
			reload_add(f, r->next, i);
	if (r->owned)
		uvd_options_free(r->known);
	if (r->owned)
		free(r->known);
	r->known = r->next;
	r->owned = true;
	r->next = NULL;
	text = json_dumps(r->answer, JSON_COMPACT | JSON_SORT_KEYS);
	uvd_logf(f->log, UVD_INFO, "reload: %s", text ?: "done");
	free(text);
	if (r->asker)
		uvd_control_finish(f->control, r->asker, r->answer);
	else
		json_decref(r->answer);
	r->answer = NULL;
}

static bool reload_is_removing(struct uvd_fleet *f)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		if (f->ops->place(f->arg, i)->state == UVD_PLACE_GOING)
			return true;
	return false;
}

static void fleet_on_reload(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct uvd_fleet *f = w->data;

	if (reload_is_removing(f) && ++f->reload.looks < LOOKS)
		return;
	ev_timer_stop(loop, w);
	uvd_fleet_settle(f);
	reload_end(f);
}

/* Removes the device, if it is there: an administrator may have removed it. */
static void reload_remove(struct uvd_fleet *f, const char *ibdev)
{
	struct uvd_fleet_place *p = uvd_fleet_find(f, ibdev);
	const char *wrong = p ? f->ops->remove(f->arg, p) : NULL;

	if (wrong)
		reload_fail(f, ibdev, wrong);
}

static void reload_compare(struct uvd_fleet *f)
{
	struct uvd_fleet_reload *r = &f->reload;

	memset(r->adds, 0, sizeof(r->adds));
	for (unsigned int i = 0; i < r->known->num_devices; i++) {
		const char *ibdev = r->known->devices[i].ibdev;
		int to = reload_find(r->next, ibdev);

		if (to >= 0 && uvd_options_same_device(r->known, i, r->next, to))
			continue;
		reload_note(f, to < 0 ? "removed" : "changed", ibdev);
		if (f->ops->forget)
			f->ops->forget(f->arg, ibdev);
		reload_remove(f, ibdev);
		if (to >= 0)
			r->adds[to] = true;
	}
	for (unsigned int i = 0; i < r->next->num_devices; i++)
		if (reload_find(r->known, r->next->devices[i].ibdev) < 0) {
			reload_note(f, "added", r->next->devices[i].ibdev);
			r->adds[i] = true;
		}
}

/* Returns a JSON array of the words in the text. */
static json_t *reload_words(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t len = strcspn(text, " ");

		json_array_append_new(list, json_stringn(text, len));
		text += len + !!text[len];
	}
	return list;
}

static void reload_begin(struct uvd_fleet *f, struct uvd_options *next, const char *ignored)
{
	struct uvd_fleet_reload *r = &f->reload;

	r->next = next;
	r->looks = 0;
	r->answer = json_pack("{s:[], s:[], s:[], s:{}, s:o}", "added", "changed", "removed", "failed", "ignored",
			      reload_words(ignored));
	if (*ignored)
		uvd_logf(f->log, UVD_WARN, "reload: these options change with the next start of the service: %s",
			 ignored);
	reload_compare(f);
	ev_timer_init(&r->timer, fleet_on_reload, LOOK_SECONDS, LOOK_SECONDS);
	r->timer.data = f;
	ev_timer_start(f->loop, &r->timer);
}

json_t *uvd_fleet_reload(struct uvd_fleet *f, bool asked)
{
	char error[UVD_RELOAD_ERROR] = "no memory", ignored[UVD_RELOAD_NAMES] = "";
	struct uvd_options *next;

	if (!f->ops->read_again)
		return uvd_control_refuse("only uverbsd has a configuration that it can read again");
	if (f->reload.answer)
		return uvd_control_refuse("another reload is under way");
	next = calloc(1, sizeof(*next));
	if (!next || f->ops->read_again(f->arg, next, ignored, error)) {
		free(next);
		uvd_logf(f->log, UVD_ERR, "reload: nothing is changed: %s", error);
		return uvd_control_refuse(error);
	}
	f->reload.asker = asked ? uvd_control_later(f->control) : 0;
	reload_begin(f, next, ignored);
	return NULL;
}

void uvd_fleet_reload_end(struct uvd_fleet *f)
{
	struct uvd_fleet_reload *r = &f->reload;

	if (r->answer && f->loop)
		ev_timer_stop(f->loop, &r->timer);
	json_decref(r->answer);
	r->answer = NULL;
	if (r->next)
		uvd_options_free(r->next);
	free(r->next);
	r->next = NULL;
	if (r->owned) {
		uvd_options_free(r->known);
		free(r->known);
	}
	r->owned = false;
	r->known = NULL;
}
