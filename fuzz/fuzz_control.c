/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the control socket, by its real server. The first byte says what the client may do, and how many bytes its
 * first packet has; the command follows. Each command that ends with a newline gets one line of JSON.
 *
 * `status` and `restart` are missing: the daemon itself answers them, and no part of them is the client's but the word.
 */
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control.h"
#include "fleet/internal.h"
#include "fuzz/device.h"
#include "fuzz/gen.h"

static struct {
	struct ev_loop *loop;
	struct uvd_control *control;
	struct uvd_control_plugins *plugins;
	struct uvd_control_plugin_config config;
	struct uvd_control_traces *traces;
	struct uvd_control_meters *meters;
	struct uvd_device *dev;
	struct uvd_fleet fleet;
	struct uvd_fleet_place places[UVD_MAX_DEVICES];
	struct sockaddr_un address;
	socklen_t address_len;
	bool may_change;
	bool filtered; /* the command is about filters: the device may have some now */
	bool streams; /* the connection is a trace or a meter now: the server would keep it open */
} served;

/* ---- the daemon's side ------------------------------------------------------------------------------------------- */

static struct uvd_fleet_place *served_place(void *arg, unsigned int i)
{
	return &served.places[i];
}

/* Devices would cost most of an execution's time. */
static const char *served_make(void *arg, struct uvd_fleet_place *place, const struct uvd_device_config *config)
{
	return "no device is made here";
}

static const char *served_remove(void *arg, struct uvd_fleet_place *place)
{
	return NULL;
}

static json_t *served_removed(void *arg, struct uvd_fleet_place *place)
{
	return uvd_control_tell(&place->config);
}

static bool served_number_taken(void *arg, int number)
{
	return !number;
}

static const struct uvd_fleet_ops served_ops = {
	.place = served_place,
	.make = served_make,
	.remove = served_remove,
	.removed = served_removed,
	.number_taken = served_number_taken,
};

/* The device serves, and another one was removed. */
static void served_begin_fleet(void)
{
	uvd_fleet_init(&served.fleet, served.dev->engine, NULL, &served_ops, NULL);
	uvd_fleet_enter(&served.fleet, &served.places[0], &served.dev->config, served.dev);
	served.places[0].state = UVD_PLACE_SERVES;
	served.places[1].config = served.dev->config;
	strcpy(served.places[1].config.ibdev, "hfi1_1");
	served.places[1].config.number = 1;
}

/* A trace or a meter that has begun has no answer. */
static json_t *served_stream(json_t *answer)
{
	served.streams = !answer;
	return answer;
}

static json_t *served_answer(void *arg, const char *command, bool may_change)
{
	json_t *answer;

	if (uvd_control_is_filter(command)) {
		served.filtered = true;
		return uvd_control_filter(served.plugins, command, served.may_change);
	}
	if (uvd_control_is_trace(command))
		return served_stream(uvd_control_trace(served.traces, command, served.may_change));
	if (uvd_control_is_meter(command))
		return served_stream(uvd_control_meter(served.meters, served.may_change));
	/* Loading and unloading would change the process: it may only be asked for. */
	if (uvd_control_is_plugin(command))
		return uvd_control_plugin(served.plugins, command, false);
	answer = uvd_fleet_device_command(&served.fleet, command, served.may_change);
	answer = answer ?: uvd_control_port(command, served.may_change, uvd_fleet_device, &served.fleet);
	if (!answer && !strcmp(command, "accounts"))
		answer = uvd_control_accounts(served.control, served.dev->engine->accounts);
	return answer;
}

static void served_stream_program(void *arg, pid_t pid, char *name, size_t size)
{
}

static void served_begin_plugins(void)
{
	served.plugins = uvd_control_plugins_new(&served.config);
	if (!served.plugins)
		abort();
}

static void served_begin_streams(void)
{
	struct uvd_engine *engine = served.dev->engine;

	served.traces = uvd_control_traces_new(served.loop, served.control, engine, served_stream_program, NULL);
	served.meters = uvd_control_meters_new(served.loop, served.control, engine);
	if (!served.traces || !served.meters)
		abort();
}

/* Ends the trace or the meter, which sends what it has and closes the connection. */
static void served_end_streams(void)
{
	if (!served.streams)
		return;
	served.streams = false;
	uvd_control_traces_free(served.traces);
	uvd_control_meters_free(served.meters);
	served_begin_streams();
}

/* Stores the name of the innermost filter: its text up to the colon. */
static void served_filter_name(void *arg, const char *text)
{
	snprintf(arg, UVD_PLUGIN_ERROR, "%.*s", (int)strcspn(text, ":"), text);
}

/* Each command finds a device with this filter alone. */
static void served_begin_filter(void)
{
	char error[UVD_PLUGIN_ERROR];

	if (uvd_device_filter_add(served.dev, "limit:qp=2", error))
		abort();
}

/* Waits for the thread of a command that nobody waits for any more, and undoes what it has done. */
static void served_end_filters(void)
{
	char name[UVD_PLUGIN_ERROR], error[UVD_PLUGIN_ERROR];

	if (!served.filtered)
		return;
	served.filtered = false;
	uvd_control_plugins_free(served.plugins);
	served_begin_plugins();
	for (;;) {
		*name = 0;
		uvd_device_filter_list(served.dev, served_filter_name, NULL, name);
		if (!*name)
			break;
		if (uvd_device_filter_remove(served.dev, name, error))
			abort();
	}
	served_begin_filter();
}

static void control_init(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	fuzz_engine_init();
	fuzz_client_silence();
	served.dev = fuzz_device_new("soft", "hfi1", 0); /* the filters loss and reorder need its messages */
	served.loop = ev_loop_new(EVBACKEND_POLL);
	served.address.sun_family = AF_UNIX; /* the kernel chooses an abstract name */
	served.address_len = sizeof(served.address);
	if (fd < 0 || !served.loop || bind(fd, (void *)&served.address, sizeof(sa_family_t)) || listen(fd, 8) ||
	    getsockname(fd, (void *)&served.address, &served.address_len))
		abort();
	served.control = uvd_control_adopt(served.loop, fd, geteuid(), served_answer, NULL);
	served.config = (struct uvd_control_plugin_config){ .loop = served.loop,
							    .control = served.control,
							    .engine = served.dev->engine };
	if (!served.control)
		abort();
	served_begin_fleet();
	served_begin_plugins();
	served_begin_streams();
	served_begin_filter();
}

/* ---- the client -------------------------------------------------------------------------------------------------- */

static void control_send(int fd, const uint8_t *bytes, size_t len)
{
	if (len && send(fd, bytes, len, MSG_NOSIGNAL) < 0)
		return; /* the server has closed the connection */
	ev_run(served.loop, EVRUN_NOWAIT);
	ev_run(served.loop, EVRUN_NOWAIT);
}

/* Receives the answer, which may come from a thread. Returns its length. */
static size_t control_receive(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	for (;;) {
		served_end_streams();
		n = recv(fd, text + len, size - len, MSG_DONTWAIT);
		if (n == 0)
			return len;
		if (n > 0)
			len += n;
		else if (errno == EAGAIN || errno == EINTR)
			ev_run(served.loop, EVRUN_ONCE);
		else
			return len; /* ECONNRESET: the server has closed the connection before it has read all */
	}
}

/* The answer is one line. A trace follows its own. */
static void control_check(const char *text, size_t len)
{
	const char *end = len ? memchr(text, '\n', len) : NULL;
	json_t *answer = end ? json_loadb(text, end - text, 0, NULL) : NULL;

	if (len && (!answer || (end + 1 != text + len && !json_object_get(answer, "trace"))))
		abort();
	json_decref(answer);
}

static char control_answer[65536];
static size_t control_answer_len; /* of the last input */

static void control_run(const uint8_t *data, size_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t first;

	if (fd < 0 || connect(fd, (void *)&served.address, served.address_len))
		abort();
	served.may_change = size && data[0] & 1;
	first = size ? data[0] >> 1 : 0;
	if (size && first > size - 1)
		first = size - 1;
	if (size) {
		control_send(fd, data + 1, first);
		control_send(fd, data + 1 + first, size - 1 - first);
	}
	shutdown(fd, SHUT_WR);
	control_answer_len = control_receive(fd, control_answer, sizeof(control_answer));
	control_check(control_answer, control_answer_len);
	close(fd);
	served_end_filters();
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

#define FILTER_WORD(name) #name ":",
/* clang-format off */
static const char *const control_words[] = {
	"device ", "add ", "remove ", "port ", "hfi1_0 ", "uverbs0 ", "up", "down", "plugin ", "[\"list\"]", "accounts",
	"--ports 2 ", "--lid ", "--backend ", "null ", "--number ", "--filter ", "1 ", "\n", "trace ", "meter\n",
	"filter [\"list\"]", "filter [\"add\", \"\", \"", "filter [\"set\", \"hfi1_0\", \"", "filter [\"remove\", \"\", \"",
	"\"]\n", UVD_FILTERS(FILTER_WORD)
	"create_qp", "post_send", "reg_mr", "alloc_pd", "wc.send", "wc.recv", "=", ",", "ENOMEM", "REM_ACCESS_ERR",
	"@3", "@2+", "%50", "5us", "10ms", "2s", "seed=", "when=", "hold=", "qp=", "rc", "ud", "device=yes", "port=",
	"posts=", "times=0", "bytes=", "errno=", "type=GID_CHANGE",
};
/* clang-format on */

static size_t control_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	const char *word = control_words[fuzz_any(gen, UVD_COUNT(control_words))];
	size_t at = size ? 1 + fuzz_any(gen, size) : 0, len = strlen(word);

	if (!size || fuzz_chance(gen, 50) || size + len > max)
		return fuzz_mutate_bytes(gen, data, size, max);
	memmove(data + at + len, data + at, size - at);
	memcpy(data + at, word, len);
	return size + len;
}

static void control_dictionary(void)
{
	for (unsigned int i = 0; i < UVD_COUNT(control_words); i++) {
		putchar('"');
		for (const char *c = control_words[i]; *c; c++)
			printf("\\x%02x", *c);
		puts("\"");
	}
}

static void control_tell(void)
{
	const char *end = memchr(control_answer, '\n', control_answer_len);

	printf("%.*s\n", (int)(end ? end - control_answer : 0), control_answer);
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_control",
	.init = control_init,
	.run = control_run,
	.mutate = control_mutate,
	.dictionary = control_dictionary,
	.tell = control_tell,
};
