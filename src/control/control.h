/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket: a client sends a command, one line, and gets one line of JSON. Served by the event loop; no client
 * can hold it up. Each user has a few connections: a further one takes the place of the oldest that has not asked yet. The
 * socket also says that a daemon is running: a second one on the same path is refused. Everybody may
 * ask; who may change something is root and the user that the daemon runs as.
 */
#ifndef UVD_CONTROL_H
#define UVD_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct ev_loop;
struct uvd_accounts;
struct uvd_control;
struct uvd_device;
struct uvd_device_config;
struct uvd_log;

/* The answer to a command, for the control to free; NULL: unknown. */
typedef json_t *(*uvd_control_fn)(void *arg, const char *command, bool may_change);

/* NULL: *err is negative and the log says why. -EBUSY: another daemon listens there. */
struct uvd_control *uvd_control_new(struct ev_loop *loop, const char *path, uvd_control_fn answer, void *arg,
				    struct uvd_log *log, int *err);
/* The two halves of that: a socket, or a negative errno, logged; and serving it for that owner, who removes its name. */
int uvd_control_listen(const char *path, struct uvd_log *log);
struct uvd_control *uvd_control_adopt(struct ev_loop *loop, int fd, uid_t owner, uvd_control_fn answer, void *arg);
/*
 * For the answering function: the answer comes later, by uvd_control_finish() with the number that this returns. The function
 * returns NULL then.
 */
unsigned long uvd_control_later(struct uvd_control *control);
/* The same with the number of an answer that comes later already: several clients get it. */
void uvd_control_join(struct uvd_control *control, unsigned long number);
/* On the loop's thread; takes over the answer. The client may have gone meanwhile. */
void uvd_control_finish(struct uvd_control *control, unsigned long number, json_t *answer);
/* The same with JSON as text, which is copied, for all who have joined. Not within the answering function. */
void uvd_control_finish_text(struct uvd_control *control, unsigned long number, const char *answer);
/* Accepts nobody any more: whoever connects waits for the process that serves the same socket next. */
void uvd_control_pass_on(struct uvd_control *control);
/* Removes the socket. */
void uvd_control_free(struct uvd_control *control);

/*
 * The command `port DEVICE PORT up|down`; DEVICE is hfi1_0 or uverbs0, dev(arg, i) the devices that there are, and then
 * NULL. NULL: another command.
 */
json_t *uvd_control_port(const char *command, bool may_change, struct uvd_device *(*dev)(void *arg, unsigned int i),
			 void *arg);

/* What `device` does to the devices. Each returns the answer. */
struct uvd_control_devices {
	json_t *(*remove)(void *arg, const char *name); /* hfi1_0 or uverbs0 */
	json_t *(*add)(void *arg, const char *name); /* one that was removed */
	json_t *(*make)(void *arg, const struct uvd_device_config *config);
	bool (*taken)(void *arg, const char *ibdev); /* is there a device of this name? */
	bool maps_queues; /* clients can map its devices */
};

/*
 * The commands `device remove NAME`, `device add NAME` and `device add [OPTION...]` (those of a device, without blanks in
 * them: src/options/options.h). NULL: another command.
 */
json_t *uvd_control_device(const char *command, bool may_change, const struct uvd_control_devices *devices, void *arg);
/* The answer to `accounts`: what each user holds, and may hold. */
json_t *uvd_control_accounts(struct uvd_accounts *accounts);
/* What commands answer: why not; and a device's two names. */
json_t *uvd_control_refuse(const char *why);
json_t *uvd_control_tell(const struct uvd_device_config *config);
/* Does the name mean this device? */
bool uvd_control_is_called(const struct uvd_device_config *config, const char *name);

/* A client's side: sends the command and returns the answer's line, to free; NULL: errno says why. */
char *uvd_control_ask(const char *path, const char *command);

#endif
