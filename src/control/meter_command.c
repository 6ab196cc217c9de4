/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control command `meter`: counts calls while its connection is open, and answers each line with the counts. */
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "account/account.h"
#include "control/control.h"
#include "core/core.h"
#include "trace/trace.h"
#include "util/util.h"

/* MOST_OF_OTHERS: meters of users who may change nothing; that leaves room for root. A user's share: UVD_RES_METERS. */
_Static_assert((int)UVD_MAX_COUNTERS == (int)UVD_WHOLE_METERS, "the table of limits says how many there are");
enum { MOST = UVD_MAX_COUNTERS, MOST_OF_OTHERS = 5 };

static const double AT_LEAST = 0.05; /* seconds from one answer on a connection to the next */

struct control_meter {
	struct uvd_control_meters *all;
	struct uvd_meter *meter; /* NULL: unused */
	bool others;
	struct uvd_account *account; /* pays for it; a reference, or NULL */
	struct ev_io io;
	struct ev_timer pause;
	char *out; /* what is being sent; NULL: waits for a line */
	size_t len, sent;
};

struct uvd_control_meters {
	struct ev_loop *loop;
	struct uvd_control *control;
	struct uvd_engine *engine;
	struct control_meter list[MOST];
};

bool uvd_control_is_meter(const char *command)
{
	return !strcmp(command, "meter");
}

static void control_meter_end(struct control_meter *m)
{
	ev_io_stop(m->all->loop, &m->io);
	ev_timer_stop(m->all->loop, &m->pause);
	close(m->io.fd);
	uvd_meter_free(m->meter);
	uvd_account_uncharge(m->account, UVD_RES_METERS, 1);
	uvd_account_put(m->account);
	free(m->out);
	m->out = NULL;
	m->meter = NULL;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* [[HIGHEST, CALLS], ...] of the buckets that are not empty. The last one has no limit: the longest call stands for it. */
static json_t *meter_histogram(const struct uvd_meter_counts *counts)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < UVD_METER_BUCKETS; i++) {
		const uint64_t highest = i < UVD_METER_BUCKETS - 1 ? uvd_meter_highest(i) : counts->max;

		if (counts->buckets[i])
			json_array_append_new(list,
					      json_pack("[I, I]", (json_int_t)highest, (json_int_t)counts->buckets[i]));
	}
	return list;
}

/* {"EINVAL": 3, ...} */
static json_t *meter_errnos(const struct uvd_meter_counts *counts)
{
	json_t *errnos = json_object();

	for (unsigned int i = 0; i < UVD_METER_ERRNOS; i++)
		if (counts->errnos[i])
			json_object_set_new(errnos, i ? uvd_errno_name(i) : "unknown",
					    json_integer((json_int_t)counts->errnos[i]));
	return errnos;
}

static void meter_add_verb(void *arg, const struct uvd_meter_counts *counts)
{
	json_array_append_new(arg, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:I, s:I, s:o}", "device", counts->device,
					     "object", counts->object, "name", counts->name, "calls",
					     (json_int_t)counts->calls, "errors", (json_int_t)counts->errors, "errnos",
					     meter_errnos(counts), "total_ns", (json_int_t)counts->total, "max_ns",
					     (json_int_t)counts->max, "histogram", meter_histogram(counts)));
}

/* Returns a line, which the caller frees, or NULL. */
static char *meter_answer(struct uvd_meter *meter)
{
	json_t *verbs = json_array(), *answer;
	char *text;

	uvd_meter_each(meter, meter_add_verb, verbs);
	answer = json_pack("{s:o, s:I}", "verbs", verbs, "uncounted", (json_int_t)uvd_meter_uncounted(meter));
	text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	return text;
}

/* ---- a connection ------------------------------------------------------------------------------------------------ */

static void control_meter_wait(struct control_meter *m, int events)
{
	ev_io_stop(m->all->loop, &m->io);
	ev_io_set(&m->io, m->io.fd, events);
	ev_io_start(m->all->loop, &m->io);
}

/* Takes over the text. */
static void control_meter_say(struct control_meter *m, char *text)
{
	if (!text) {
		control_meter_end(m);
		return;
	}
	m->out = text;
	m->len = strlen(text);
	m->out[m->len++] = '\n'; /* replaces the terminator */
	m->sent = 0;
	control_meter_wait(m, EV_WRITE);
}

static void control_meter_send(struct control_meter *m)
{
	const ssize_t n = send(m->io.fd, m->out + m->sent, m->len - m->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		control_meter_end(m);
		return;
	}
	m->sent += n > 0 ? n : 0;
	if (m->sent < m->len)
		return;
	free(m->out);
	m->out = NULL;
	ev_io_stop(m->all->loop, &m->io);
	ev_timer_set(&m->pause, AT_LEAST, 0);
	ev_timer_start(m->all->loop, &m->pause);
}

static void control_meter_on_pause(struct ev_loop *loop, struct ev_timer *w, int events)
{
	control_meter_wait(w->data, EV_READ);
}

static void control_meter_on_io(struct ev_loop *loop, struct ev_io *w, int events)
{
	struct control_meter *m = w->data;
	char line[256];
	ssize_t n;

	if (m->out) {
		control_meter_send(m);
		return;
	}
	n = recv(w->fd, line, sizeof(line), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		control_meter_end(m);
	else if (line[n - 1] == '\n')
		control_meter_say(m, meter_answer(m->meter));
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Returns an unused entry, or NULL: all users together have as many as they may. */
static struct control_meter *meters_slot(struct uvd_control_meters *meters, bool may_change)
{
	unsigned int others = 0;
	struct control_meter *slot = NULL;

	for (struct control_meter *m = meters->list; m < meters->list + MOST; m++) {
		if (!m->meter) {
			slot = m;
			continue;
		}
		others += m->others;
	}
	return may_change || others < MOST_OF_OTHERS ? slot : NULL;
}

/* Charges a user who may change nothing within the share. */
static bool meters_charge(struct uvd_account *account, bool may_change)
{
	if (!may_change)
		return uvd_account_try(account, UVD_RES_METERS, 1);
	uvd_account_charge_anyway(account, UVD_RES_METERS, 1);
	return true;
}

json_t *uvd_control_meter(struct uvd_control_meters *meters, bool may_change)
{
	struct uvd_account *account;
	struct control_meter *m;
	uid_t uid;
	int err = -EBUSY;

	if (!meters)
		return uvd_control_refuse("no memory");
	uid = uvd_control_asker(meters->control);
	account = uvd_control_account(meters->control);
	m = meters_slot(meters, may_change);
	if (!m || !meters_charge(account, may_change))
		return uvd_control_refuse("too many watch already: end one of them first");
	m->meter = uvd_meter_new(meters->engine, !may_change, uid, &err);
	if (!m->meter) {
		uvd_account_uncharge(account, UVD_RES_METERS, 1);
		return uvd_control_refuse(err == -EBUSY ? "too many watch already: end one of them first"
							: uvd_errno_name(err));
	}
	m->others = !may_change;
	m->account = uvd_account_ref(account);
	ev_io_init(&m->io, control_meter_on_io, uvd_control_fd(meters->control), EV_WRITE);
	m->io.data = m;
	uvd_control_take(meters->control);
	control_meter_say(m, strdup("{\"meter\":1}"));
	return NULL;
}

struct uvd_control_meters *uvd_control_meters_new(struct ev_loop *loop, struct uvd_control *control,
						  struct uvd_engine *engine)
{
	struct uvd_control_meters *meters = calloc(1, sizeof(*meters));

	if (!meters)
		return NULL;
	meters->loop = loop;
	meters->control = control;
	meters->engine = engine;
	for (struct control_meter *m = meters->list; m < meters->list + MOST; m++) {
		m->all = meters;
		ev_init(&m->pause, control_meter_on_pause);
		m->pause.data = m;
	}
	return meters;
}

void uvd_control_meters_free(struct uvd_control_meters *meters)
{
	if (!meters)
		return;
	for (struct control_meter *m = meters->list; m < meters->list + MOST; m++)
		if (m->meter)
			control_meter_end(m);
	free(meters);
}
