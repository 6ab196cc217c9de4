/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices of one engine, and open files of them, as a transport has them. There is no log, and one user pays for
 * everything: fuzz_check_accounts() finds what was not given back.
 */
#ifndef UVD_FUZZ_DEVICE_H
#define UVD_FUZZ_DEVICE_H

#include "fuzz/client.h"

/* Makes the client and the engine. */
void fuzz_engine_init(void);
/* A device with this backend and persona. index: its name and its addresses depend on it. */
struct uvd_device *fuzz_device_new(const char *backend, const char *persona, unsigned int index);
/* Opens a file of the device. NULL: the device is gone. */
struct uvd_file *fuzz_file_open(struct uvd_device *dev);
/* Opens a file of the device with a context and one object of each common type, whose handles are these numbers. */
enum {
	FUZZ_PD,
	FUZZ_CQ,
	FUZZ_QP,
	FUZZ_DM,
	FUZZ_MR,
	FUZZ_SRQ,
	FUZZ_AH,
	FUZZ_MW,
	FUZZ_XRCD,
	FUZZ_COUNTERS,
	FUZZ_WQ,
	FUZZ_FILLED
};
struct uvd_file *fuzz_file_open_filled(struct uvd_device *dev);
/* The type of the object with this handle in such a file. */
uint16_t fuzz_filled_object(uint32_t handle);

/* One call of the client: its bytes are copied into the client's memory. They return what the system call does. */
long fuzz_write(struct uvd_file *file, const uint8_t *bytes, size_t len);
/*
 * The ioctl tree at the beginning of the bytes is as long as its header says; the rest is at FUZZ_DATA, where the tree's
 * attributes point.
 */
long fuzz_ioctl(struct uvd_file *file, const uint8_t *bytes, size_t len);
/* From now on every grant of a descriptor fails with this errno; 0: grants succeed. */
void fuzz_refuse_grants(int err);

/* Aborts if the user still holds more than before: call it when all files are closed. */
void fuzz_check_accounts(void);

#endif
