/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A reader: one thread for many logs. It looks at the logs that were used lately, in turn; after the last doorbell it goes on
 * looking for a while, and then sleeps. inotify tells it which logs were written. No doorbell is lost: the client stores the
 * record, and then the kernel queues the event. The reader reads the events, looks at the logs, and then sleeps in read(), which
 * looks at the queue of events itself.
 *
 * The watches stay armed: an event that nobody has read yet costs the client little, and to arm a watch for each sleep would cost
 * the reader four system calls.
 *
 * If the work behind a doorbell is held up in a client's memory another thread replaces this one. It takes over all that is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "doorbell/internal.h"

enum {
	HASH = 64,
	SPIN_NS = 3000, /* after the last doorbell. More takes CPU time from clients that poll */
	PAYS = 8, /* so many vain looks in a row are enough */
	TRY_AGAIN = 32, /* rests */
	SPARE_SPIN_NS = 150000, /* the same if a CPU is to spare */
	SPARE_NS = 10000000, /* how long that is believed */
	YIELD_NS = 30000, /* while it spins on a CPU that seemed to spare, other threads get that CPU that often */
	USED_NS = 5000000, /* a log that was not used for so long is looked at after an event only */
	LISTEN_NS = 20000, /* while there is work the events of other logs are read that often */
	SLICE_NS = 100000, /* a short one lets the thread preempt programs that compute as soon as it wakes up */
	JUNK = 64, /* so much junk makes a log quiet */
	QUIET_NS = 1000000, /* for so long at first, and then for twice that, up to: */
	QUIET_DOUBLED = 4, /* times */
	WAIT_NS = 2000000, /* at most, that a call waits for the work of doorbells before it */
};

struct reader_thread {
	struct uvd_worker worker;
	struct uvd_doorbells *reader; /* a reference */
	bool is_replaced; /* under the reader's lock */
};

struct uvd_doorbells {
	atomic_uint refs; /* the owner's, one for each log, and one for each thread */
	struct uvd_log *log;
	int (*watch)(void *arg, int number); /* as in struct uvd_doorbell_ears; NULL: this process watches files */
	void *watch_arg;
	int inotify;
	int bell; /* a file that only we write: an event of it wakes the thread */
	pthread_mutex_t lock; /* all below */
	struct list_head hash[HASH]; /* all logs, by their watches */
	struct list_head active, quiet;
	unsigned int num_logs, num_active;
	struct uvd_doorbell_log *in_turn; /* the thread has its lock, and not ours */
	pthread_cond_t turn_over;
	bool has_thread, stop;
	struct uvd_doorbell_log *served; /* the last doorbell was in it; NULL: the thread has slept since */
	unsigned int num_rests;
	bool has_spun; /* since that doorbell */
	uint64_t yielded_at; /* CLOCK_MONOTONIC, ns; valid while has_spun */
	uint64_t worked_at, heard_at; /* CLOCK_MONOTONIC, ns */
	int loads; /* /proc/loadavg; -1: it cannot be read */
	unsigned int cpus;
	bool has_spare; /* when it was last looked: no more threads run than there are CPUs */
	uint64_t spare_at; /* when that was */
	struct uvd_doorbell_works works; /* that logs have left */
	atomic_bool sleeps;
};

static void reader_wake(struct uvd_doorbells *r)
{
	(void)!pwrite(r->bell, "", 1, 0);
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

void uvd_doorbells_add_work(struct uvd_doorbells *r, struct uvd_work work)
{
	if (!uvd_doorbell_works_add(&r->works, work))
		work.run(work.arg, NULL);
	else if (atomic_load(&r->sleeps))
		reader_wake(r);
}

void uvd_doorbells_wait(struct uvd_doorbells *r)
{
	uvd_doorbell_works_wait(&r->works, uvd_now_ns() + WAIT_NS);
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

/* Returns the watch descriptor, or -1. */
static int reader_watch(struct uvd_doorbells *r, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return inotify_add_watch(r->inotify, path, IN_MODIFY);
}

/* Returns a descriptor, or -1. The one that memfd_create() returns makes no events. */
static int bell_new(void)
{
	int memfd = memfd_create("uverbsd-bell", MFD_CLOEXEC), fd = -1;
	char path[64];

	if (memfd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	close(memfd);
	return fd;
}

/* Caller holds r->lock, here and below, unless it says otherwise. */
static bool log_watch(struct uvd_doorbells *r, struct uvd_doorbell_log *log)
{
	log->watch = r->watch ? r->watch(r->watch_arg, log->number) : reader_watch(r, log->memfd);
	if (log->watch < 0)
		return false;
	list_add(&log->same_hash, &r->hash[(unsigned int)log->watch % HASH]);
	return true;
}

static void log_unwatch(struct uvd_doorbells *r, struct uvd_doorbell_log *log)
{
	if (log->watch < 0)
		return;
	inotify_rm_watch(r->inotify, log->watch);
	log->watch = -1;
	list_del_init(&log->same_hash);
}

static void log_activate(struct uvd_doorbells *r, struct uvd_doorbell_log *log, uint64_t now)
{
	log->used_at = now;
	log->is_heard = true;
	if (!list_empty(&log->place))
		return;
	list_add(&log->place, &r->active);
	r->num_active++;
}

static void log_deactivate(struct uvd_doorbells *r, struct uvd_doorbell_log *log)
{
	list_del_init(&log->place);
	r->num_active--;
}

/*
 * Makes a log quiet whose client writes other things than doorbells: the reader does not look at it for a while, and hears nothing of it.
 * times: how often that was so already, in a row.
 */
static void log_put_off(struct uvd_doorbells *r, struct uvd_doorbell_log *log, uint64_t now, unsigned int times)
{
	log_deactivate(r, log);
	log_unwatch(r, log);
	log->quiet_end = now + ((uint64_t)QUIET_NS << times);
	list_add_tail(&log->place, &r->quiet);
}

/* Ends the quiet of logs. Returns whether there are any. *end: when the next one ends; 0: none is quiet. */
static bool logs_wake(struct uvd_doorbells *r, uint64_t now, uint64_t *end)
{
	struct uvd_doorbell_log *log, *next;
	uint64_t first = 0;
	bool any = false;

	list_for_each_entry_safe(log, next, &r->quiet, place) {
		if (log->quiet_end <= now && log_watch(r, log)) {
			log->quiet_end = 0;
			list_del_init(&log->place);
			log_activate(r, log, now);
			any = true;
		} else if (!first || log->quiet_end < first) {
			first = log->quiet_end > now ? log->quiet_end : now + QUIET_NS;
		}
	}
	*end = first;
	return any;
}

enum { EVENTS = 4096 };

/* n: bytes of events. */
static void reader_heed(struct uvd_doorbells *r, const char *events, ssize_t n, uint64_t now)
{
	struct uvd_doorbell_log *log;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(events + at);

		at += sizeof(*e) + e->len;
		/* If the kernel has dropped events any log may have been written. */
		for (unsigned int i = 0; i < HASH; i++) {
			if (!(e->mask & IN_Q_OVERFLOW) && i != (unsigned int)e->wd % HASH)
				continue;
			list_for_each_entry(log, &r->hash[i], same_hash)
				if (e->mask & IN_Q_OVERFLOW || log->watch == e->wd)
					log_activate(r, log, now);
		}
	}
}

/* Reads events, if there are some. */
static void reader_listen(struct uvd_doorbells *r, uint64_t now)
{
	char events[EVENTS] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd p = { .fd = r->inotify, .events = POLLIN };

	r->heard_at = now;
	if (poll(&p, 1, 0) > 0)
		reader_heed(r, events, read(r->inotify, events, sizeof(events)), now);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/*
 * Looks at the log that was looked at the longest time ago. Releases r->lock meanwhile. Returns false if there was nothing, and nothing
 * can have been missed.
 */
static bool reader_look(struct uvd_doorbells *r, uint64_t now)
{
	struct uvd_doorbell_log *log = list_first_entry(&r->active, struct uvd_doorbell_log, place);
	unsigned int times;
	bool found, is_junk;

	list_del_init(&log->place);
	list_add_tail(&log->place, &r->active);
	/*
	 * Else another thread hands its doorbells over before a call. That one may need r->lock, so this one does not wait. A doorbell
	 * may come after that thread's last look, and its event is read already: this thread must look again before it sleeps.
	 */
	if (pthread_mutex_trylock(&log->lock)) {
		pthread_mutex_unlock(&r->lock);
		uvd_cpu_relax();
		pthread_mutex_lock(&r->lock);
		return true;
	}
	r->in_turn = log;
	log->is_new |= log->is_heard;
	found = log->is_heard;
	log->is_heard = false;
	pthread_mutex_unlock(&r->lock);
	/* An event without a doorbell: the client writes something else. */
	log->junk += found;
	found = uvd_doorbell_log_turn(log);
	is_junk = log->junk > JUNK;
	if (!log->junk)
		log->times_quiet = 0;
	times = log->times_quiet;
	if (is_junk) {
		log->junk = 0;
		if (times < QUIET_DOUBLED)
			log->times_quiet++;
		uvd_doorbell_log_trim(log);
	}
	pthread_mutex_unlock(&log->lock);
	pthread_mutex_lock(&r->lock);
	r->in_turn = NULL;
	pthread_cond_broadcast(&r->turn_over);
	if (list_empty(&log->place))
		return found; /* it is being removed */
	if (found) {
		/* It did not sleep since the last doorbell. */
		if (r->served && r->has_spun)
			r->served->pays = PAYS;
		r->served = log;
		r->has_spun = false;
		log->used_at = now;
	}
	if (is_junk)
		log_put_off(r, log, now, times);
	return found;
}

/* Looks at all active logs once. Returns false if there was nothing in any. */
static bool reader_round(struct uvd_doorbells *r, uint64_t now)
{
	bool any = false;

	for (unsigned int n = r->num_active; n && r->num_active; n--)
		any |= reader_look(r, now);
	return any;
}

/* Before the reader sleeps: later it looks at these again after an event. */
static void reader_forget_unused(struct uvd_doorbells *r, uint64_t now)
{
	struct uvd_doorbell_log *log, *next;

	list_for_each_entry_safe(log, next, &r->active, place)
		if (now - log->used_at > USED_NS)
			log_deactivate(r, log);
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

/* Reads how many threads of the machine run or wait for a CPU, this one included. 0: that cannot be read. */
static unsigned int num_running(const struct uvd_doorbells *r)
{
	char text[128];
	const char *p = text;
	ssize_t n = r->loads < 0 ? -1 : pread(r->loads, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	for (int i = 0; i < 3 && p; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoul(p, NULL, 10) : 0;
}

/*
 * How long to look for the next doorbell after the last one. If no CPU is to spare this thread takes the time from a client that polls,
 * perhaps from the very one that the last message was for. So it looks only if that was worth while the last times, after a doorbell
 * of the same log: in a ping-pong the answer of the one side comes at once, as it runs meanwhile, and that of the other side comes
 * once this thread sleeps.
 */
static uint64_t reader_spin_ns(struct uvd_doorbells *r, uint64_t now)
{
	struct uvd_doorbell_log *log = r->served;
	unsigned int num;

	if (now - r->spare_at > SPARE_NS) {
		num = num_running(r);
		r->has_spare = num && num <= r->cpus;
		r->spare_at = now;
	}
	if (r->has_spare)
		return SPARE_SPIN_NS;
	return !log || log->pays || r->num_rests % TRY_AGAIN == 0 ? SPIN_NS : 0;
}

/* Sleeps until there are events, or for `ns`; 0: no limit. Reads them. Returns their size, or less than 1. Caller does not hold r->lock. */
static ssize_t reader_sleep(struct uvd_doorbells *r, char *events, uint64_t ns)
{
	struct pollfd p = { .fd = r->inotify, .events = POLLIN };
	const struct timespec limit = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	return !ns || ppoll(&p, 1, &limit, NULL) > 0 ? read(r->inotify, events, EVENTS) : 0;
}

/*
 * Waits for a moment, after which the logs are looked at again. The scheduler lets no thread preempt this one before its slice is over, and
 * does not always move a thread that waits for this CPU to an idle one: without the yield a client of a ping-pong that sleeps (-e) waited
 * for the whole spin in one of 20 messages. Without a spare CPU there is no yield: a client that polls would keep the CPU for
 * milliseconds. Caller holds r->lock, which is released meanwhile.
 */
static void reader_spin(struct uvd_doorbells *r, uint64_t now)
{
	const bool yields = r->has_spare && r->has_spun && now - r->yielded_at > YIELD_NS;

	if (!r->has_spun || yields)
		r->yielded_at = now;
	r->has_spun = true;
	pthread_mutex_unlock(&r->lock);
	if (yields)
		sched_yield();
	else
		uvd_cpu_relax();
	pthread_mutex_lock(&r->lock);
}

/* Nothing is left to do: spins or sleeps until there may be. Caller holds r->lock, which is released meanwhile. */
static void reader_rest(struct uvd_doorbells *r, uint64_t now)
{
	char events[EVENTS] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = 0;
	uint64_t end;

	if (now - r->worked_at < reader_spin_ns(r, now)) {
		reader_spin(r, now);
		return;
	}
	/* The log of a quiet client may have doorbells, of which no event tells. */
	if (logs_wake(r, now, &end))
		return;
	reader_forget_unused(r, now);
	r->num_rests++;
	if (r->served && r->served->pays && r->has_spun)
		r->served->pays--;
	r->served = NULL;
	r->has_spun = false;
	atomic_store(&r->sleeps, true);
	pthread_mutex_unlock(&r->lock);
	if (!uvd_doorbell_works_any(&r->works))
		n = reader_sleep(r, events, end ? end - now : 0);
	atomic_store(&r->sleeps, false);
	pthread_mutex_lock(&r->lock);
	reader_heed(r, events, n, end || n > 0 ? uvd_now_ns() : now);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void reader_free(struct uvd_doorbells *r)
{
	if (r->inotify >= 0)
		close(r->inotify);
	if (r->bell >= 0)
		close(r->bell);
	if (r->loads >= 0)
		close(r->loads);
	pthread_cond_destroy(&r->turn_over);
	pthread_mutex_destroy(&r->lock);
	uvd_doorbell_works_fini(&r->works);
	free(r);
}

static void reader_unref(struct uvd_doorbells *r)
{
	if (atomic_fetch_sub(&r->refs, 1) == 1)
		reader_free(r);
}

/* One step: work, or a look at the logs, or a rest. Caller holds r->lock, which is released meanwhile. */
static void reader_step(struct reader_thread *t)
{
	struct uvd_doorbells *r = t->reader;
	const struct uvd_work work = uvd_doorbell_works_take(&r->works);
	uint64_t now, quiet_end;

	if (work.run) {
		pthread_mutex_unlock(&r->lock);
		work.run(work.arg, &t->worker);
		pthread_mutex_lock(&r->lock);
		if (!t->is_replaced)
			uvd_doorbell_works_leave(&r->works);
		r->worked_at = uvd_now_ns();
		return;
	}
	now = uvd_now_ns();
	if (!reader_round(r, now)) {
		reader_rest(r, now);
	} else if (now - r->heard_at > LISTEN_NS && r->num_active < r->num_logs) {
		reader_listen(r, now);
		logs_wake(r, now, &quiet_end);
	}
}

static void *reader_run(void *arg)
{
	struct reader_thread *t = arg;
	struct uvd_doorbells *r = t->reader;

	(void)uvd_thread_set_slice(SLICE_NS);
	pthread_mutex_lock(&r->lock);
	while (!t->is_replaced && !(r->stop && !r->num_logs && !uvd_doorbell_works_any(&r->works)))
		reader_step(t);
	if (!t->is_replaced)
		r->has_thread = false;
	pthread_mutex_unlock(&r->lock);
	free(t);
	reader_unref(r);
	return NULL;
}

static void reader_replace(struct uvd_worker *worker);

/* Returns 0 or a negative errno. */
static int reader_start(struct uvd_doorbells *r)
{
	struct reader_thread *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->worker.held_up = reader_replace;
	t->reader = r;
	atomic_fetch_add(&r->refs, 1);
	err = uvd_thread_start(NULL, 0, reader_run, t);
	if (err) {
		atomic_fetch_sub(&r->refs, 1);
		free(t);
	}
	return err;
}

/* struct uvd_worker.held_up. If no thread can be started this one goes on, when it can. */
static void reader_replace(struct uvd_worker *worker)
{
	struct reader_thread *t = (struct reader_thread *)worker;

	pthread_mutex_lock(&t->reader->lock);
	t->is_replaced = !reader_start(t->reader);
	if (t->is_replaced)
		uvd_doorbell_works_leave(&t->reader->works);
	pthread_mutex_unlock(&t->reader->lock);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

int uvd_doorbells_add(struct uvd_doorbells *r, struct uvd_doorbell_log *log)
{
	int ret = 0;

	pthread_mutex_lock(&r->lock);
	if (!log_watch(r, log))
		ret = -errno;
	if (!ret && !r->has_thread)
		ret = reader_start(r);
	if (ret) {
		log_unwatch(r, log);
	} else {
		r->has_thread = true;
		r->num_logs++;
		atomic_fetch_add(&r->refs, 1);
	}
	pthread_mutex_unlock(&r->lock);
	return ret;
}

void uvd_doorbells_remove(struct uvd_doorbells *r, struct uvd_doorbell_log *log)
{
	pthread_mutex_lock(&r->lock);
	if (r->served == log)
		r->served = NULL;
	log_unwatch(r, log);
	if (!list_empty(&log->place) && !log->quiet_end)
		log_deactivate(r, log);
	list_del_init(&log->place);
	while (r->in_turn == log)
		pthread_cond_wait(&r->turn_over, &r->lock);
	r->num_logs--;
	if (r->stop)
		reader_wake(r);
	pthread_mutex_unlock(&r->lock);
}

/* Returns false if the reader would hear nothing. */
static bool reader_take_ears(struct uvd_doorbells *r, const struct uvd_doorbell_ears *ears)
{
	if (ears) {
		r->inotify = ears->inotify;
		r->bell = ears->bell;
		r->watch = ears->watch;
		r->watch_arg = ears->arg;
		return true;
	}
	r->bell = bell_new();
	r->inotify = inotify_init1(IN_CLOEXEC);
	return r->bell >= 0 && r->inotify >= 0 && reader_watch(r, r->bell) >= 0;
}

struct uvd_doorbells *uvd_doorbells_new(struct uvd_log *log, const struct uvd_doorbell_ears *ears)
{
	struct uvd_doorbells *r = calloc(1, sizeof(*r));
	cpu_set_t cpus;

	if (!r)
		return NULL;
	atomic_init(&r->refs, 1);
	r->log = log;
	pthread_mutex_init(&r->lock, NULL);
	uvd_doorbell_works_init(&r->works);
	pthread_cond_init(&r->turn_over, NULL);
	for (unsigned int i = 0; i < HASH; i++)
		INIT_LIST_HEAD(&r->hash[i]);
	INIT_LIST_HEAD(&r->active);
	INIT_LIST_HEAD(&r->quiet);
	r->cpus = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
	r->loads = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	if (reader_take_ears(r, ears))
		return r;
	reader_free(r);
	return NULL;
}

void uvd_doorbells_put(struct uvd_doorbells *r)
{
	if (r)
		reader_unref(r);
}

void uvd_doorbells_stop(struct uvd_doorbells *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	reader_wake(r);
	pthread_mutex_unlock(&r->lock);
	reader_unref(r);
}
