/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket. A client connects, sends one command (one line) and receives one line of JSON. The event loop
 * serves the socket, and no client can block it. Connections are charged to accounts. Beyond a user's share one more
 * replaces the user's oldest connection that has not sent its command yet; without a whole command it is closed after
 * 5 s. A connection that is refused or closed is told why. Only one daemon can listen on a path: a second one fails with
 * EBUSY. Everybody may ask; only root and the owner (the user that the daemon runs as) may change anything.
 *
 * Locking: none. Functions with a struct uvd_control run on the event loop's thread.
 */
#ifndef UVD_CONTROL_H
#define UVD_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct ev_loop;
struct uvd_account;
struct uvd_accounts;
struct uvd_control;
struct uvd_control_meters;
struct uvd_control_plugins;
struct uvd_control_traces;
struct uvd_device;
struct uvd_device_config;
struct uvd_engine;
struct uvd_file;
struct uvd_log;
struct uvd_object_copy;
struct uvd_options;
struct uvd_plugins;

/*
 * Answers a command. may_change: the client is root or the owner. Returns the answer, which the control socket frees.
 * Returns NULL if the command is unknown, and after uvd_control_later() or uvd_control_join().
 */
typedef json_t *(*uvd_control_fn)(void *arg, const char *command, bool may_change);

/*
 * Creates the socket and serves it, by the two functions below. Returns NULL on error: *err is a negative errno
 * (-EBUSY: another daemon listens on the path). The log says why, except for -ENOMEM.
 */
struct uvd_control *uvd_control_new(struct ev_loop *loop, const char *path, uvd_control_fn answer, void *arg,
				    struct uvd_log *log, int *err);
/*
 * Creates the listening socket and missing parent directories. Replaces a stale socket. Returns a file descriptor that
 * the caller owns, or a negative errno, which it has logged.
 */
int uvd_control_listen(const char *path, struct uvd_log *log);
/*
 * Serves a listening socket. `owner` is the user who may change things, besides root. Takes over fd. Returns NULL if
 * there is no memory; then fd stays the caller's. uvd_control_free() does not remove the socket's name: that is left to
 * whoever created it.
 */
struct uvd_control *uvd_control_adopt(struct ev_loop *loop, int fd, uid_t owner, uvd_control_fn answer, void *arg);
/*
 * As uvd_peer_owners(): stores those who pay for a client besides its own user id, and returns their number, or a
 * negative errno. Must not wait for the client.
 */
typedef int (*uvd_control_owners_fn)(void *arg, pid_t pid, uid_t uid, uid_t *uids, unsigned int max);
/*
 * Charges connections to these accounts from now on: call it before the loop runs. They must live until
 * uvd_control_free().
 */
void uvd_control_charge(struct uvd_control *control, struct uvd_accounts *accounts, uvd_control_owners_fn owners,
			void *arg);
/*
 * The answering function calls this, and returns NULL, if the answer comes later. Returns the number to pass to
 * uvd_control_finish() or uvd_control_finish_text().
 */
unsigned long uvd_control_later(struct uvd_control *control);
/*
 * The same for an answer that is pending already: this client gets it, too. Only uvd_control_finish_text() answers
 * several clients.
 */
void uvd_control_join(struct uvd_control *control, unsigned long number);
/*
 * Calls gone(arg) once if the client that waits for this number goes away before it has the answer. Call it after
 * uvd_control_later(), within the answering function.
 */
void uvd_control_watch(struct uvd_control *control, unsigned long number, void (*gone)(void *arg), void *arg);
/*
 * Sends the answer to the client that waits for this number, if there still is one. Takes over the reference to the
 * answer.
 */
void uvd_control_finish(struct uvd_control *control, unsigned long number, json_t *answer);
/*
 * Sends JSON text, which is copied, to all clients that wait for this number. Must not be called by the answering
 * function.
 */
void uvd_control_finish_text(struct uvd_control *control, unsigned long number, const char *answer);
/* For the answering function: the user who asks. */
uid_t uvd_control_asker(const struct uvd_control *control);
/* For the answering function: who pays for the asker's connection. No reference. NULL: there are no accounts. */
struct uvd_account *uvd_control_account(const struct uvd_control *control);
/*
 * For the answering function: returns the descriptor of the asker's connection. uvd_control_take() takes it over: then
 * the answering function returns NULL, the server sends no answer, and the new owner closes the descriptor.
 */
int uvd_control_fd(const struct uvd_control *control);
void uvd_control_take(struct uvd_control *control);
/* Stops accepting. New connections wait in the backlog for the process that serves the same socket next. */
void uvd_control_pass_on(struct uvd_control *control);
/* Closes the socket and all connections. Removes the socket's name if uvd_control_new() created it. NULL is allowed. */
void uvd_control_free(struct uvd_control *control);

/*
 * Runs the command `port DEVICE PORT up|down`. DEVICE is the name of a device (hfi1_0) or its node (uverbs0). dev()
 * returns device number i, or NULL after the last one. Returns the answer, or NULL if it is another command.
 */
json_t *uvd_control_port(const char *command, bool may_change, struct uvd_device *(*dev)(void *arg, unsigned int i),
			 void *arg);

/*
 * The commands that load, reload, unload and list plug-ins: `plugin ["load", FILE, "KEY=VALUE", ...]`,
 * `plugin ["reload", NAME, FILE or "", "KEY=VALUE", ...]`, `plugin ["unload", NAME]`, `plugin ["unload", NAME, "wait"]`
 * and `plugin ["list"]`. FILE is absolute. Each change runs on a thread of its own, as it can wait for clients; `wait`
 * ends when its asker goes away. What the config points to
 * must outlive it. Returns NULL if there is no memory; then uvd_control_plugin() refuses all.
 */
struct uvd_control_plugin_config {
	struct ev_loop *loop;
	struct uvd_control *control;
	struct uvd_engine *engine;
	/* Stores the name of a process's program, or "" if it is not known. On any thread; may block. */
	void (*program)(void *arg, pid_t pid, char *name, size_t size);
	void *arg;
};
struct uvd_control_plugins *uvd_control_plugins_new(const struct uvd_control_plugin_config *config);
const struct uvd_control_plugin_config *uvd_control_plugins_config(const struct uvd_control_plugins *plugins);
/* Stops waiting changes, and waits for all. NULL is allowed. */
void uvd_control_plugins_free(struct uvd_control_plugins *plugins);
/* Is this such a command? */
bool uvd_control_is_plugin(const char *command);
/* Runs it. Returns the answer, or NULL if it comes later. */
json_t *uvd_control_plugin(struct uvd_control_plugins *plugins, const char *command, bool may_change);
/*
 * The commands that change the filters of devices, on threads as well: `filter ["list"]`, `filter ["add", DEVICE, TEXT]`,
 * `filter ["set", DEVICE, TEXT]` and `filter ["remove", DEVICE, NAME]`. DEVICE can be "" if there is only one. They
 * answer {"device", "filters"} for each device, with an object {"filter", "rules"} for each filter, outermost first, and
 * in that an object {"rule", "seen", "done"} for each rule (uvd_filter_tell_fn).
 */
bool uvd_control_is_filter(const char *command);
json_t *uvd_control_filter(struct uvd_control_plugins *plugins, const char *command, bool may_change);
/*
 * The command `trace [PID]`: answers {"trace":1}, and then the connection carries a trace (trace/format.h) until one side
 * closes it: of all clients for root and the owner, else of files that the asker opened. program: see struct uvd_recorder_config.
 * The command `explain [PID]` is the same for explanations alone. The arguments must outlive it. Returns NULL if there is no memory;
 * then uvd_control_trace() refuses.
 */
struct uvd_control_traces *uvd_control_traces_new(struct ev_loop *loop, struct uvd_control *control,
						  struct uvd_engine *engine,
						  void (*program)(void *arg, pid_t pid, char *name, size_t size),
						  void *arg);
/* Ends all traces. Call it before the engine goes. NULL is allowed. */
void uvd_control_traces_free(struct uvd_control_traces *traces);
bool uvd_control_is_trace(const char *command);
/* Runs it. Returns NULL if the trace has begun, else a refusal. */
json_t *uvd_control_trace(struct uvd_control_traces *traces, const char *command, bool may_change);
/*
 * The command `meter`: answers {"meter":1}, and then counts calls by verb, of all clients for root and the owner, else on
 * files that the asker opened, until one side closes the connection. Each line that the asker sends is answered by a line
 * with the counts (docs/status.md). Returns NULL if there is no memory; then uvd_control_meter() refuses.
 */
struct uvd_control_meters *uvd_control_meters_new(struct ev_loop *loop, struct uvd_control *control,
						  struct uvd_engine *engine);
/* Ends all meters. Call it before the engine goes. NULL is allowed. */
void uvd_control_meters_free(struct uvd_control_meters *meters);
bool uvd_control_is_meter(const char *command);
/* Runs it. Returns NULL if the meter has begun, else a refusal. */
json_t *uvd_control_meter(struct uvd_control_meters *meters, bool may_change);
/* Returns the answer to `accounts`: what each user holds, without the asker's connection, and the limits. */
json_t *uvd_control_accounts(struct uvd_control *control, struct uvd_accounts *accounts);
/*
 * Parts of the answer to `status`: {"UVERBS_OBJECT_CQ": 2}, and the limit of registered memory: "client", "unlimited",
 * or bytes.
 */
json_t *uvd_control_objects(const struct uvd_device *dev);
/*
 * The same for an open file: first its counts of UVD_OBJECT_COUNTS types are copied, on any thread while the file is open.
 * Later, on any thread while the device exists, they get their names.
 */
void uvd_control_count_types(const struct uvd_file *file, unsigned int *counts);
json_t *uvd_control_types(const struct uvd_device *dev, const unsigned int *counts);
/*
 * The objects of an open file as a tree, oldest first: a list of {"type", "handle", ..., "children": [...]}. The copies
 * are those of uvd_file_copy_objects(). An object whose parent is not among them stands beside the file's own. Any thread
 * while the device exists. Returns NULL if there is no memory.
 */
json_t *uvd_control_tree(const struct uvd_device *dev, const struct uvd_object_copy *copies, unsigned int num);
enum { UVD_CONTROL_OBJECTS = 8192 }; /* copies of a status */
/* Copies objects of a file to the end of UVD_CONTROL_OBJECTS copies: 256 at most. Returns how many. */
unsigned int uvd_control_copy(struct uvd_file *file, struct uvd_object_copy *copies, unsigned int *num);
json_t *uvd_control_memlock(const struct uvd_device_config *config);
/*
 * Makes a string of a client's text, such as the name of its program. If the text is not UTF-8, '?' stands for each
 * byte that is not ASCII.
 */
json_t *uvd_control_text(const char *text);
/* Build an answer: an error that says why, or the two names of a device. */
json_t *uvd_control_refuse(const char *why);
json_t *uvd_control_tell(const struct uvd_device_config *config);
/* Is this the device's name (hfi1_0), or its node's (uverbs0)? */
bool uvd_control_is_called(const struct uvd_device_config *config, const char *name);

/*
 * The client's side: connects, sends the command and waits. Returns the answer's line, which the caller frees, or NULL
 * and errno; ECONNRESET: the daemon has closed the connection. Raises no SIGPIPE.
 */
char *uvd_control_ask(const char *path, const char *command);
/* The same, and leaves the connection open: *rest reads what follows the line, and the caller closes it. */
char *uvd_control_ask_more(const char *path, const char *command, FILE **rest);
/* Reads another line from there: at most 64 MiB, as whoever listens may be anybody. Likewise. */
char *uvd_control_read_line(FILE *rest);
/*
 * Parses an answer for printing: control characters in its texts become "?", except in those called "program". Returns a
 * reference that the caller puts, or NULL. line: may be NULL.
 */
json_t *uvd_control_parse(const char *line);
/* Writes to stderr why that failed, by errno. who: the command of uverbsctl. */
void uvd_control_complain(const char *who, const char *path);
/* Returns a pidfd of the process that listens there, which the caller closes, or -1 and errno. It need not answer. */
int uvd_control_pidfd(const char *path);

#endif
