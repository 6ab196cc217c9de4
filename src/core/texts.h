/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The texts of devices: options of a device that the engine keeps as the user wrote them, such as filters and allow-lists.
 * The engine has them by the device's name, as a device that is removed and added again begins with the same ones. Nobody
 * checks a text before a device with its name is created.
 */
#ifndef UVD_CORE_TEXTS_H
#define UVD_CORE_TEXTS_H

#include <infiniband/verbs.h>

struct uvd_device;
struct uvd_engine;

/* The option that a text belongs to. */
enum uvd_text_kind { UVD_TEXT_FILTER, UVD_TEXT_ALLOW, UVD_TEXT_QUOTA };

/* One text that devices of this name get when they are created. */
struct uvd_device_text {
	char ibdev[IBV_SYSFS_NAME_MAX];
	enum uvd_text_kind kind;
	char *text;
	struct uvd_device_text *next;
};

/*
 * From now on a device of this name that is created gets this text, after those that it would get already. Returns 0 or
 * -ENOMEM. uvd_engine_texts_forget() removes all that the name would get.
 */
int uvd_engine_text_add(struct uvd_engine *engine, const char *ibdev, enum uvd_text_kind kind, const char *text);
void uvd_engine_texts_forget(struct uvd_engine *engine, const char *ibdev);
/*
 * For a change that may fail. uvd_engine_texts_take() removes all that the name would get and returns it; NULL: nothing.
 * The caller gives that back in the place of what the name would get now (restore), or frees it (drop).
 */
struct uvd_device_text *uvd_engine_texts_take(struct uvd_engine *engine, const char *ibdev);
void uvd_engine_texts_restore(struct uvd_engine *engine, const char *ibdev, struct uvd_device_text *taken);
void uvd_engine_texts_drop(struct uvd_device_text *taken);
/* Frees the list. */
void uvd_engine_texts_fini(struct uvd_engine *engine);

/*
 * Returns the text of this kind that a device gets after `last` (NULL: the first one), or NULL. For functions that create
 * the device: caller holds the engine's plugins_lock.
 */
const struct uvd_device_text *uvd_device_text_after(const struct uvd_device *dev, enum uvd_text_kind kind,
						    const struct uvd_device_text *last);

#endif
