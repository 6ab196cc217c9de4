/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "control/control.h"
#include <errno.h>
#include <ev.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "util/util.h"

enum {
	MAX_CLIENTS = UVD_WHOLE_CONNECTIONS, /* without root's connections. A user's share: UVD_RES_CONNECTIONS */
	MAX_OF_ROOT = 64,
	COMMAND_SECONDS = 5, /* for a whole command */
	IDLE_SECONDS = 1, /* until a connection without a command gives way to anybody's, if all are in use */
	NO_OWNER = UVD_LOG_NO_USER, /* no user has this id: it pays together for clients whose owners are not known */
};

struct client {
	struct uvd_control *control;
	struct client *next;
	struct ev_io io;
	struct ev_timer late; /* runs until the command is complete */
	struct uvd_account *account; /* pays for the connection; NULL: there are no accounts */
	uid_t uid;
	ev_tstamp since;
	bool may_change;
	bool taken; /* uvd_control_take() passed the descriptor on: do not close it */
	char command[1024];
	size_t len; /* of the command so far */
	unsigned long later; /* the number of an answer that comes later; 0: none */
	void (*gone)(void *arg); /* uvd_control_watch(); NULL: nobody waits for the client's end */
	void *gone_arg;
	char *out; /* the answer; NULL: the command is still being read, or its answer comes later */
	size_t out_len, sent;
};

struct uvd_control {
	struct ev_loop *loop;
	struct ev_io io;
	struct ev_timer pause; /* runs while no descriptor is left for another client */
	struct sockaddr_un sa;
	uvd_control_fn answer;
	void *arg;
	struct client *clients;
	struct uvd_accounts *accounts; /* NULL: nobody pays */
	uvd_control_owners_fn owners;
	void *owners_arg;
	struct client *asking; /* the client whose command the answering function runs */
	unsigned long numbers; /* the last number given to an answer that comes later */
	uid_t owner; /* may change things, as root may */
};

static void client_drop(struct client *c)
{
	struct client **p = &c->control->clients;

	if (c->gone)
		c->gone(c->gone_arg);
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	ev_io_stop(c->control->loop, &c->io);
	ev_timer_stop(c->control->loop, &c->late);
	if (!c->taken)
		close(c->io.fd);
	uvd_account_uncharge(c->account, UVD_RES_CONNECTIONS, 1);
	uvd_account_put(c->account);
	free(c->out);
	free(c);
}

static void send_some(struct client *c)
{
	ssize_t n = send(c->io.fd, c->out + c->sent, c->out_len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_drop(c);
		return;
	}
	c->sent += n > 0 ? n : 0;
	if (c->sent == c->out_len)
		client_drop(c); /* a connection carries one command */
}

/* Sends the text, which it takes over. NULL: closes the connection. */
static void answer_client_text(struct client *c, char *text)
{
	ev_io_stop(c->control->loop, &c->io);
	ev_timer_stop(c->control->loop, &c->late);
	c->gone = NULL;
	c->out = text;
	if (!c->out) {
		client_drop(c);
		return;
	}
	c->out_len = strlen(c->out);
	c->out[c->out_len++] = '\n'; /* replaces the terminator */
	ev_io_set(&c->io, c->io.fd, EV_WRITE);
	ev_io_start(c->control->loop, &c->io);
	send_some(c);
}

/* Sends the answer. Takes over its reference. */
static void answer_client(struct client *c, json_t *answer)
{
	answer_client_text(c, answer ? json_dumps(answer, JSON_COMPACT) : NULL);
	json_decref(answer);
}

static void client_run_command(struct client *c)
{
	json_t *answer;

	ev_io_stop(c->control->loop, &c->io);
	ev_timer_stop(c->control->loop, &c->late);
	c->control->asking = c;
	answer = c->control->answer(c->control->arg, c->command, c->may_change);
	c->control->asking = NULL;
	if (c->later)
		return;
	if (c->taken)
		client_drop(c);
	else
		answer_client(c, answer ? answer : uvd_control_refuse("unknown command"));
}

uid_t uvd_control_asker(const struct uvd_control *control)
{
	return control->asking->uid;
}

struct uvd_account *uvd_control_account(const struct uvd_control *control)
{
	return control->asking->account;
}

int uvd_control_fd(const struct uvd_control *control)
{
	return control->asking->io.fd;
}

void uvd_control_take(struct uvd_control *control)
{
	control->asking->taken = true;
}

unsigned long uvd_control_later(struct uvd_control *control)
{
	return control->asking->later = ++control->numbers;
}

void uvd_control_join(struct uvd_control *control, unsigned long number)
{
	control->asking->later = number;
}

static struct client *client_find(struct uvd_control *control, unsigned long number)
{
	struct client *c = control->clients;

	while (c && c->later != number)
		c = c->next;
	return c;
}

/* The client has sent its command: further bytes are ignored. */
void uvd_control_watch(struct uvd_control *control, unsigned long number, void (*gone)(void *arg), void *arg)
{
	struct client *c = client_find(control, number);

	c->gone = gone;
	c->gone_arg = arg;
	ev_io_start(control->loop, &c->io);
}

void uvd_control_finish(struct uvd_control *control, unsigned long number, json_t *answer)
{
	struct client *c = client_find(control, number);

	if (c)
		answer_client(c, answer);
	else
		json_decref(answer);
}

void uvd_control_finish_text(struct uvd_control *control, unsigned long number, const char *answer)
{
	struct client *c;

	while ((c = client_find(control, number))) {
		c->later = 0;
		answer_client_text(c, strdup(answer));
	}
}

static void receive_some(struct client *c)
{
	ssize_t n = recv(c->io.fd, c->command + c->len, sizeof(c->command) - 1 - c->len, MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_drop(c);
		return;
	}
	c->len += n;
	end = memchr(c->command, '\n', c->len);
	if (end) {
		*end = 0;
		client_run_command(c);
	} else if (c->len == sizeof(c->command) - 1) {
		client_drop(c);
	}
}

/* The client waits for an answer and is watched: has it gone away? */
static void client_look(struct client *c)
{
	char ignored[256];
	ssize_t n = recv(c->io.fd, ignored, sizeof(ignored), MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		client_drop(c);
}

static void on_client(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct client *c = io->data;

	if (c->out)
		send_some(c);
	else if (c->later)
		client_look(c);
	else
		receive_some(c);
}

static bool client_is_idle(const struct client *c)
{
	return !c->later && !c->out;
}

static void client_on_late(struct ev_loop *loop, struct ev_timer *late, int events)
{
	struct client *c = late->data;

	answer_client(c, uvd_control_refuse("the connection had no complete command after 5 s"));
}

/* ---- new connections --------------------------------------------------------------------------------------------- */

/* Tells the client why its connection is closed. Best effort: does not wait for room in the socket. */
static void client_tell(int fd, const char *why)
{
	json_t *answer = uvd_control_refuse(why);
	char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL, *line;

	if (text && asprintf(&line, "%s\n", text) > 0) {
		(void)!send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
		free(line);
	}
	free(text);
	json_decref(answer);
}

/*
 * Closes one of the connections that this user pays for: the oldest that has not sent its command, else, unless the
 * user may change things, the oldest that has not read its answer. Returns false if there is none.
 */
static bool client_replace(struct uvd_control *control, uid_t uid, bool may_change)
{
	struct client *c, *idle = NULL, *slow = NULL;

	for (c = control->clients; c; c = c->next) {
		if (c->account ? !uvd_account_names(c->account, uid) : c->uid != uid)
			continue;
		if (client_is_idle(c))
			idle = c;
		else if (!c->later && !may_change)
			slow = c;
	}
	if (!idle && !slow)
		return false;
	if (idle)
		client_tell(idle->io.fd, "a newer connection of your user has replaced this one (--limit-connections)");
	client_drop(idle ? idle : slow);
	return true;
}

/*
 * Makes room among all connections. Returns NULL, or why there is none. Many ids without a namespace pay for themselves
 * alone, so a connection without a command gives way to any client. uverbsctl sends the command at once.
 */
static const char *client_make_room(struct uvd_control *control, uid_t uid, bool may_change)
{
	unsigned int same_kind = 0; /* root's, or all others */
	struct client *idle = NULL;

	for (struct client *c = control->clients; c; c = c->next) {
		same_kind += !c->uid == !uid;
		if (c->uid && client_is_idle(c) && ev_now(control->loop) - c->since > IDLE_SECONDS)
			idle = c;
	}
	if (same_kind < (uid ? MAX_CLIENTS : MAX_OF_ROOT))
		return NULL;
	/* First what has waited for long: the user's own connections may be about to send their commands. */
	if (uid && idle) {
		client_tell(idle->io.fd, "all connections are in use, and this one had no complete command after 1 s");
		client_drop(idle);
		return NULL;
	}
	if (client_replace(control, uid, may_change))
		return NULL;
	return "all connections to the control socket are in use: try again later, or end some: `uverbsctl status --accounts` "
	       "of root shows whose they are";
}

/* Charges the connection. Returns NULL, or why that is impossible. */
static const char *client_charge(struct uvd_control *control, struct uvd_account *account, bool may_change)
{
	struct uvd_refusal why;

	if (uvd_account_try_why(account, UVD_RES_CONNECTIONS, 1, &why) ||
	    (client_replace(control, why.uid, may_change) && uvd_account_try(account, UVD_RES_CONNECTIONS, 1)))
		return NULL;
	return "your user has as many connections to the control socket as it may have (--limit-connections): end one "
	       "of them first";
}

/*
 * Returns the account of those who pay for the connection; NULL: no memory. The socket's user always pays. If nobody
 * knows who owns the user namespaces of the client, because it has exited or is in another PID namespace, all such clients
 * together have one user's share besides.
 */
static struct uvd_account *client_account(struct uvd_control *control, const struct ucred *peer)
{
	uid_t uids[UVD_MAX_PAYERS] = { peer->uid };
	int num = control->owners(control->owners_arg, peer->pid, peer->uid, uids + 1, UVD_MAX_PAYERS - 1);

	if (num < 0) {
		uids[1] = NO_OWNER;
		num = peer->uid ? 1 : 0;
	}
	return uvd_account_get(control->accounts, uids, num + 1);
}

/* Returns NULL, or why there is no client, for which *c is set. */
static const char *client_new(struct uvd_control *control, int fd, struct client **c)
{
	struct uvd_account *account = NULL;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	const char *why;
	bool may_change;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return "the socket does not tell who has connected";
	may_change = peer.uid == 0 || peer.uid == control->owner;
	if (control->accounts) {
		account = client_account(control, &peer);
		if (!account)
			return "no memory";
	}
	why = client_charge(control, account, may_change);
	if (why)
		goto put;
	why = client_make_room(control, peer.uid, may_change);
	*c = why ? NULL : calloc(1, sizeof(**c));
	if (!*c) {
		why = why ?: "no memory";
		goto uncharge;
	}
	(*c)->control = control;
	(*c)->account = account;
	(*c)->uid = peer.uid;
	(*c)->since = ev_now(control->loop);
	(*c)->may_change = may_change;
	(*c)->next = control->clients;
	control->clients = *c;
	return NULL;
uncharge:
	uvd_account_uncharge(account, UVD_RES_CONNECTIONS, 1);
put:
	uvd_account_put(account);
	return why;
}

static void on_pause_over(struct ev_loop *loop, struct ev_timer *pause, int events)
{
	ev_io_start(loop, &((struct uvd_control *)pause->data)->io);
}

/*
 * Stops accepting for a second. The client stays in the backlog, which keeps the socket readable: the event loop would
 * spin.
 */
static void pause_accepting(struct uvd_control *control)
{
	ev_io_stop(control->loop, &control->io);
	ev_timer_set(&control->pause, 1, 0);
	ev_timer_start(control->loop, &control->pause);
}

static void on_connect(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct uvd_control *control = io->data;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = NULL;
	const char *why;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(control);
		return;
	}
	ev_now_update(loop); /* a callback may have kept the loop for long */
	why = client_new(control, fd, &c);
	if (why) {
		client_tell(fd, why);
		close(fd);
		return;
	}
	ev_io_init(&c->io, on_client, fd, EV_READ);
	c->io.data = c;
	ev_io_start(loop, &c->io);
	/* A command that has arrived goes before the end of its time. */
	ev_timer_init(&c->late, client_on_late, COMMAND_SECONDS, 0);
	ev_set_priority(&c->late, EV_MINPRI);
	c->late.data = c;
	ev_timer_start(loop, &c->late);
}

/* Creates the missing parent directories of the path, with mode 0755. */
static void socket_make_parents(const char *path)
{
	char part[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *slash;

	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		memcpy(part, path, slash - path);
		part[slash - path] = 0;
		mkdir(part, 0755);
	}
}

/*
 * Is the listening process alive? Connecting also works while a killed process keeps its descriptors
 * (uvd_process_lives()).
 */
static bool peer_lives(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || uvd_process_lives(peer.pid, NULL);
}

/* Does another process listen on this path? Removes a stale socket. */
static bool in_use(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool there = !connect(fd, (const struct sockaddr *)sa, sizeof(*sa)),
	     left_over = !there && errno == ECONNREFUSED;

	if (there && !peer_lives(fd))
		left_over = true;
	if (left_over)
		unlink(sa->sun_path);
	close(fd);
	return there && !left_over;
}

static int listen_on(struct sockaddr_un *sa, const char *path)
{
	int fd, err;

	sa->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(sa->sun_path))
		return -ENAMETOOLONG;
	strcpy(sa->sun_path, path);
	socket_make_parents(path);
	if (in_use(sa))
		return -EBUSY;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/*
	 * Everybody may ask: the answers tell no more than /proc does. client_new() decides whether a client may change
	 * things.
	 */
	if (bind(fd, (struct sockaddr *)sa, sizeof(*sa)) || chmod(path, 0666) || listen(fd, MAX_CLIENTS)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static const char *control_listen_remedy(int err)
{
	if (err != -EACCES && err != -EPERM)
		return "";
	if (geteuid())
		return ": start uverbsd as root; `uverbsctl run` needs no rights";
	return ": choose another path with --control";
}

int uvd_control_listen(const char *path, struct uvd_log *log)
{
	struct sockaddr_un sa = { 0 };
	int fd = listen_on(&sa, path);

	if (fd == -EBUSY)
		uvd_logf(log, UVD_ERR, "another uverbsd answers on %s (--control and --sysfs give this one its own)",
			 path);
	else if (fd < 0)
		uvd_logf(log, UVD_ERR, "control socket %s: %s%s", path, uvd_errno_name(fd), control_listen_remedy(fd));
	return fd;
}

struct uvd_control *uvd_control_new(struct ev_loop *loop, const char *path, uvd_control_fn answer, void *arg,
				    struct uvd_log *log, int *err)
{
	struct uvd_control *control;
	int fd = uvd_control_listen(path, log);

	*err = fd < 0 ? fd : 0;
	control = fd < 0 ? NULL : uvd_control_adopt(loop, fd, geteuid(), answer, arg);
	if (control) {
		strcpy(control->sa.sun_path, path);
	} else if (fd >= 0) {
		*err = -ENOMEM;
		close(fd);
		unlink(path);
	}
	return control;
}

struct uvd_control *uvd_control_adopt(struct ev_loop *loop, int fd, uid_t owner, uvd_control_fn answer, void *arg)
{
	struct uvd_control *control = calloc(1, sizeof(*control));

	if (!control)
		return NULL;
	control->owner = owner;
	control->loop = loop;
	control->answer = answer;
	control->arg = arg;
	ev_io_init(&control->io, on_connect, fd, EV_READ);
	control->io.data = control;
	ev_init(&control->pause, on_pause_over);
	control->pause.data = control;
	ev_io_start(loop, &control->io);
	return control;
}

void uvd_control_charge(struct uvd_control *control, struct uvd_accounts *accounts, uvd_control_owners_fn owners,
			void *arg)
{
	control->accounts = accounts;
	control->owners = owners;
	control->owners_arg = arg;
}

void uvd_control_pass_on(struct uvd_control *control)
{
	ev_io_stop(control->loop, &control->io);
	ev_timer_stop(control->loop, &control->pause);
}

void uvd_control_free(struct uvd_control *control)
{
	if (!control)
		return;
	while (control->clients)
		client_drop(control->clients);
	ev_io_stop(control->loop, &control->io);
	ev_timer_stop(control->loop, &control->pause);
	close(control->io.fd);
	if (control->sa.sun_path[0])
		unlink(control->sa.sun_path);
	free(control);
}
