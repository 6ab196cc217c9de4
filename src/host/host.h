/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An engine in a process that is its own client: tests, targets of fuzzing, benchmarks, `uverbsctl fuzz --in-process`. The
 * process makes devices (uvd_device_new()), opens files (uvd_file_open()) and passes calls to the dispatcher by itself.
 * This room does what a transport does besides: it makes the engine and the user who pays, and grants descriptors.
 */
#ifndef UVD_HOST_H
#define UVD_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include "account/account.h"
#include "client/client.h"
#include "core/core.h"
#include "dispatch/dispatch.h"

enum { UVD_HOST_UID = 1000 }; /* a user with limits, unless a host has another one */

/*
 * Makes an engine with the verbs of src/objects. limits: of each user; NULL: nobody is charged. log: the caller keeps it;
 * may be NULL. Returns 0 or a negative errno.
 */
int uvd_host_engine(struct uvd_engine *engine, const struct uvd_account_limits *limits, struct uvd_log *log);
/* Returns the account of a user of the engine, a reference; NULL: no memory. */
struct uvd_account *uvd_host_account(struct uvd_engine *engine, uid_t uid);
/*
 * With all files closed: is anybody charged still? text: says for what. seconds: waits so long for work that is about to
 * end.
 */
bool uvd_host_charged(struct uvd_engine *engine, char *text, size_t size, unsigned int seconds);

/* Makes a caller of the calling thread, whose memory and whose /proc the client has. account: see struct uvd_caller. */
struct uvd_caller uvd_host_caller(const struct uvd_mem_ops *mem, struct uvd_proc *proc, struct uvd_account *account);

/* The client's descriptors. */
struct uvd_host_fds {
	int (*add)(int fd); /* takes over a descriptor of the engine; returns the client's number or a negative errno */
	void (*take)(int number); /* takes a descriptor away again */
};
/* The client has the numbers of this process. */
extern const struct uvd_host_fds uvd_host_own_fds;

/*
 * Ends a call as a transport does: grants the descriptor that it asks for. ret: the dispatcher's result. refuse: the grant
 * fails with this errno; 0: it does not. *number: of the client, or -1. Returns the final result of the call.
 */
long uvd_host_finish(struct uvd_call *call, long ret, const struct uvd_host_fds *fds, int refuse, int *number);

#endif
