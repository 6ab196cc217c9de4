/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket: a client sends a command, one line, and gets one line of JSON. Served by the event loop; no client
 * can hold it up. The socket also says that a daemon is running: a second one on the same path is refused. Everybody may
 * ask; who may change something is root and the user that the daemon runs as.
 */
#ifndef UVD_CONTROL_H
#define UVD_CONTROL_H

#include <jansson.h>
#include <stdbool.h>

struct ev_loop;
struct uvd_control;
struct uvd_device;
struct uvd_log;

/* The answer to a command, for the control to free; NULL: unknown. */
typedef json_t *(*uvd_control_fn)(void *arg, const char *command, bool may_change);

/* NULL: *err is negative and the log says why. -EBUSY: another daemon listens there. */
struct uvd_control *uvd_control_new(struct ev_loop *loop, const char *path, uvd_control_fn answer, void *arg,
				    struct uvd_log *log, int *err);
/* Removes the socket. */
void uvd_control_free(struct uvd_control *control);

/*
 * The command `port DEVICE PORT up|down`; DEVICE is hfi1_0 or uverbs0, dev(arg, i) the devices that there are, and then
 * NULL. sysfs: where they are published. NULL: another command.
 */
json_t *uvd_control_port(const char *command, bool may_change, struct uvd_device *(*dev)(void *arg, unsigned int i),
			 void *arg, const char *sysfs);

/* A client's side: sends the command and returns the answer's line, to free; NULL: errno says why. */
char *uvd_control_ask(const char *path, const char *command);

#endif
