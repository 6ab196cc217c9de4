/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Quotas of devices (account/account.h): what each user may hold of a device. A file of a device with quotas has an
 * account of its own (uvd_account_on_device()), so every charge to it counts for the daemon and for the device, or for
 * neither. A refused call fails with the errno of the daemon's limit (uvd_limit_rows), and nothing has changed. The same
 * account has the users' shares of the device.
 */
#ifndef UVD_CORE_QUOTA_H
#define UVD_CORE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include "account/account.h"

struct uvd_caller;
struct uvd_device;
struct uvd_file;
struct uvd_uobject;

/* A call asks for an object or for its memory: the log line of a refusal names it. */
struct uvd_asker {
	struct uvd_caller *caller; /* of the call; NULL: not known, and then no line is logged */
	const char *verb; /* the name of its row */
	bool early; /* the file's context is still being made (GET_CONTEXT: see uvd_req_context()) */
};

/* Reads the quotas of a new device. Returns 0, or -EINVAL: a text is wrong, and the log says why. */
int uvd_device_quota_begin(struct uvd_device *dev);
/* Returns how many calls the quotas and the allow-lists of the device have refused. */
uint64_t uvd_device_refused(const struct uvd_device *dev);

/*
 * Finds out how much the device has of what it has a limited number of, and gives each user a share. Call it when the
 * backend is open and the quotas are known. Returns 0 or -ENOMEM.
 */
int uvd_device_shares_begin(struct uvd_device *dev);

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

/* For a charge to the file's account that was refused: explains the refusal, and counts it if a quota has refused. */
void uvd_file_over_quota(struct uvd_file *file, const struct uvd_asker *asker, const struct uvd_refusal *why)
	__attribute__((cold));
/*
 * Charges the file's account. If it refuses, waits once for files that their clients have closed already (settle() of the
 * engine), so the caller holds no lock that a close takes. Returns 0 or the errno of the limit.
 */
int uvd_file_charge(struct uvd_file *file, const struct uvd_asker *asker, enum uvd_resource res, uint64_t n);
/*
 * Charges bytes of pinned memory to the opener's account, until the uobject is freed. Caller has locked the object. If
 * the charge is refused it first waits for files that are closed but not yet torn down. Returns 0 or -ENOMEM.
 */
int uvd_uobject_charge_registered(struct uvd_uobject *uobj, const struct uvd_asker *asker, uint64_t bytes);
/*
 * Charges the opener's account n of a resource that objects of this type have, beside those above: until
 * uvd_uobject_release_held(), or until the uobject is freed. Caller has locked the object, or its file's mcast_lock. Returns
 * 0, or the errno of uvd_file_charge().
 */
int uvd_uobject_hold(struct uvd_uobject *uobj, const struct uvd_asker *asker, enum uvd_resource res, uint64_t n);
void uvd_uobject_release_held(struct uvd_uobject *uobj, uint64_t n);

#endif
