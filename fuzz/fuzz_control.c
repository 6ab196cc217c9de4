/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the control socket, by its real server. The first byte says what the client may do, and how many bytes its
 * first packet has; the command follows. Each command that ends with a newline gets one line of JSON.
 */
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control.h"
#include "fuzz/device.h"
#include "fuzz/gen.h"

static struct {
	struct ev_loop *loop;
	struct uvd_control *control;
	struct uvd_control_plugins *plugins;
	struct uvd_control_plugin_config config;
	struct uvd_device *dev;
	struct sockaddr_un address;
	socklen_t address_len;
	bool may_change;
} served;

/* ---- the daemon's side ------------------------------------------------------------------------------------------- */

static json_t *served_named(void *arg, const char *name)
{
	return json_pack("{s:s%}", "name", name, strnlen(name, 8)) ?: uvd_control_refuse("not UTF-8");
}

static const char *served_removed(void *arg, const char *name)
{
	return strcmp(name, "hfi1_1") ? NULL : "hfi1_1";
}

static void served_added(void *arg, const char *ibdev)
{
}

static json_t *served_make(void *arg, const struct uvd_device_config *config)
{
	/* Else what the engine knows of names would grow with each command. */
	uvd_engine_filters_forget(served.dev->engine, config->ibdev);
	uvd_engine_allow_forget(served.dev->engine, config->ibdev);
	return uvd_control_tell(config);
}

static bool served_taken(void *arg, const char *ibdev)
{
	return !strcmp(ibdev, "hfi1_0");
}

static struct uvd_engine *served_engine(void *arg)
{
	return served.dev->engine;
}

static struct uvd_device *served_device(void *arg, unsigned int i)
{
	return i ? NULL : served.dev;
}

static const struct uvd_control_devices served_devices = {
	.remove = served_named,
	.add = served_named,
	.removed = served_removed,
	.make = served_make,
	.added = served_added,
	.taken = served_taken,
	.engine = served_engine,
};

static json_t *served_answer(void *arg, const char *command, bool may_change)
{
	json_t *answer;

	/* Loading and unloading would change the process: it may only be asked for. */
	if (uvd_control_is_plugin(command))
		return uvd_control_plugin(served.plugins, command, false);
	answer = uvd_control_device(command, served.may_change, &served_devices, NULL);
	answer = answer ?: uvd_control_port(command, served.may_change, served_device, NULL);
	if (!answer && !strcmp(command, "accounts"))
		answer = uvd_control_accounts(served.dev->engine->accounts);
	return answer;
}

static void control_init(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	fuzz_engine_init();
	fuzz_client_silence();
	served.dev = fuzz_device_new("null", "hfi1", 0);
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
	served.plugins = uvd_control_plugins_new(&served.config);
	if (!served.control || !served.plugins)
		abort();
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

static void control_check(const char *text, size_t len)
{
	json_t *answer = len ? json_loadb(text, len, 0, NULL) : NULL;

	if (len && (!answer || text[len - 1] != '\n'))
		abort();
	json_decref(answer);
}

static void control_run(const uint8_t *data, size_t size)
{
	static char answer[65536];
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
	control_check(answer, control_receive(fd, answer, sizeof(answer)));
	close(fd);
}

static size_t control_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	static const char *const words[] = { "device ", "add ",	      "remove ", "port ",      "hfi1_0 ",  "uverbs0 ",
					     "up",	"down",	      "plugin ", "[\"list\"]", "accounts", "--ports 2 ",
					     "--lid ",	"--backend ", "null ",	 "--number ",  "1 ",	   "\n" };
	const char *word = words[fuzz_any(gen, sizeof(words) / sizeof(words[0]))];
	size_t at = size ? 1 + fuzz_any(gen, size) : 0, len = strlen(word);

	if (!size || fuzz_chance(gen, 50) || size + len > max)
		return fuzz_mutate_bytes(gen, data, size, max);
	memmove(data + at + len, data + at, size - at);
	memcpy(data + at, word, len);
	return size + len;
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_control",
	.init = control_init,
	.run = control_run,
	.mutate = control_mutate,
};
