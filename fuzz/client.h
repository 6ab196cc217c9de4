/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The client of a fuzz target: its memory, its descriptors and its /proc. The memory is a memfd that is mapped at
 * FUZZ_MEMORY in this process, so that an address is the same for the client, for the dispatcher, and as an offset of the
 * client's "mem". A hostile address outside of it fails with EFAULT, and can never reach the memory of the fuzzer.
 *
 * There is one client, and it has one thread.
 */
#ifndef UVD_FUZZ_CLIENT_H
#define UVD_FUZZ_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "host/host.h"

enum {
	FUZZ_MEMORY = 0x100000,
	FUZZ_MESSAGE = FUZZ_MEMORY, /* here a write() command or an ioctl tree is */
	FUZZ_DATA = FUZZ_MEMORY + 0x4000, /* what attributes of a tree point to */
	FUZZ_OUT = FUZZ_MEMORY + 0x8000, /* room for responses */
	FUZZ_BUFFER = FUZZ_MEMORY + 0x10000, /* room for memory regions */
	FUZZ_READ_ONLY = FUZZ_MEMORY + 0x20000, /* a page that cannot be written */
	FUZZ_HOLE = FUZZ_MEMORY + 0x21000, /* a page that is not mapped */
	FUZZ_SHARED = FUZZ_MEMORY + 0x22000, /* two pages that are mapped shared */
	FUZZ_MEMORY_END = FUZZ_MEMORY + 0x24000,
	FUZZ_FILE = 9, /* the client's descriptor of a regular file */
	FUZZ_FIRST_FD = 10, /* the next descriptor that it gets */
	FUZZ_FDS = 16,
};

void fuzz_client_init(void);
/* Sends what this process writes to stderr by stdio nowhere. Sanitizers and fuzzers have their own ways to the terminal. */
void fuzz_client_silence(void);
/* Returns a caller with the client's memory and /proc. account: who pays; may be NULL. */
struct uvd_caller fuzz_client_caller(struct uvd_account *account);
/* Copies bytes into the client's memory at addr; they must fit. */
void fuzz_client_put(uint64_t addr, const void *bytes, size_t len);
/* Zeroes the client's memory that was written during calls and by fuzz_client_put(); all: also by RDMA. */
void fuzz_client_clear(bool all);
/* While set, the client's memory is all of this process, for calls that a target makes itself. */
void fuzz_client_trust(struct uvd_caller *caller, bool trusted);

/* The client's descriptors: it has FUZZ_FDS of them, and a number more is -EMFILE. */
extern const struct uvd_host_fds fuzz_client_fds;
void fuzz_client_close_fds(void);
/*
 * The contents of a file of the client's /proc until the next call: "status", "maps", "stat", "auxv", "limits" or
 * "fdinfo/9". NULL: all files are honest again.
 */
void fuzz_client_lie(const char *name, const void *text, size_t len);

#endif
