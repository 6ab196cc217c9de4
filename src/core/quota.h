/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Quotas of devices (account/account.h): what each user may hold of a device. A file of a device with quotas has an
 * account of its own (uvd_account_on_device()), so every charge to it counts for the daemon and for the device, or for
 * neither. A refused call fails with the errno of the daemon's limit (uvd_limit_rows), and nothing has changed.
 */
#ifndef UVD_CORE_QUOTA_H
#define UVD_CORE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_account;
struct uvd_caller;
struct uvd_device;
struct uvd_engine;
struct uvd_file;
struct uvd_refusal;
struct uvd_uobject;

/* A call asks for an object or for its memory: the log line of a refusal names it. */
struct uvd_asker {
	struct uvd_caller *caller; /* of the call; NULL: not known, and then no line is logged */
	const char *verb; /* the name of its row */
	bool early; /* the file's context is still being made (GET_CONTEXT: see uvd_req_context()) */
};

/* uvd_engine_allow_add() for the text of a quota. The functions beside it take, give back and forget both kinds. */
int uvd_engine_quota_add(struct uvd_engine *engine, const char *ibdev, const char *text);

/*
 * Has an administrator given the device allow-lists or quotas? Then its clients must not get around the device. Call it
 * while the device is being made, under the engine's plugins_lock: it looks at what the device will begin with.
 */
bool uvd_device_has_rules(const struct uvd_device *dev);

/*
 * For file.c: charges one open file. Returns 0, and *payer is the account that pays for the file and its objects, a
 * reference (NULL: account is); or a negative errno, and *payer is NULL.
 */
int uvd_device_charge_file(const struct uvd_device *dev, struct uvd_account *account, struct uvd_account **payer);

/* For a charge to the file's account that was refused. If that was by a quota: counts and logs the refusal. */
void uvd_file_over_quota(struct uvd_file *file, const struct uvd_asker *asker, const struct uvd_refusal *why)
	__attribute__((cold));
/*
 * Charges bytes of pinned memory to the opener's account, until the uobject is freed. Caller has locked the object. If
 * the charge is refused it first waits for files that are closed but not yet torn down. Returns 0 or -ENOMEM.
 */
int uvd_uobject_charge_registered(struct uvd_uobject *uobj, const struct uvd_asker *asker, uint64_t bytes);

#endif
