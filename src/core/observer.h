/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Observers: they are told of each call on the devices of an engine, with the client's memory as the engine has read and
 * written it. While there is no observer, a call costs one test of a word.
 *
 * A call under observation accesses its client through memory operations of the observation, which note each access.
 * So an observer sees exactly the bytes that the parser saw, and the client's memory is read no second time. If all
 * observers of the file only count, the call accesses its client as usual.
 */
#ifndef UVD_CORE_OBSERVER_H
#define UVD_CORE_OBSERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uverbsd/schema.h>

struct uvd_account;
struct uvd_caller;
struct uvd_engine;
struct uvd_explained;
struct uvd_object_facts;
struct uvd_observation;
struct uvd_qp_work;
struct uvd_tree;
struct uvd_uobject;

enum {
	UVD_MAX_OBSERVERS = 4, /* of an engine, that see the client's memory */
	UVD_MAX_COUNTERS = 8, /* of an engine, that only count (struct uvd_observer's counts_only) */
	UVD_ALL_OBSERVERS = UVD_MAX_OBSERVERS + UVD_MAX_COUNTERS,
	UVD_PIECE_MAX = 4096, /* bytes that are kept of one access */
	UVD_PIECES_MAX = 65536, /* bytes of all pieces of a call, with their headers; later accesses are not kept */
};

enum uvd_piece_kind {
	UVD_PIECE_READ = 1, /* the engine has read the client's memory */
	UVD_PIECE_WRITTEN, /* the engine has written it */
	UVD_PIECE_COMMAND, /* the command that the client passed to write(); its address is not known */
};

/* One access to the client's memory. `kept` bytes follow, and zeros up to a multiple of 8 bytes. */
struct uvd_piece {
	uint64_t addr;
	uint32_t len; /* bytes accessed */
	uint32_t kept; /* bytes that follow; 0 if the access failed */
	uint32_t kind; /* enum uvd_piece_kind */
	uint32_t failed; /* 1: -EFAULT */
};

/*
 * An observer's note of what it reported about an open file. Protected by the observers' lock. If `serial` is not the
 * observer's own, it has reported nothing.
 */
struct uvd_told {
	uint64_t serial;
	const struct uvd_tree *tree;
};

/* An open file, of a device or of another node, as observers know it. Set at the open, but for what says otherwise. */
struct uvd_watched {
	struct uvd_engine *engine;
	const char *name; /* the device's, or the node's; valid while the file is open */
	uint32_t node; /* N of uverbsN; UVD_NO_NUMBER: another node */
	uint64_t number; /* of all files of the engine that were ever opened; from 1 */
	const struct uvd_account *account; /* of the file, that pays for it; NULL: nobody does */
	bool privileged; /* the opener may do more than its user; the transport sets it before the first call */
	_Atomic pid_t opened_by; /* for messages; the transport sets it once the file is listed; 0: not known */
	struct uvd_told told[UVD_MAX_OBSERVERS]; /* by slot; under the lock of the observers */
};
#define UVD_NO_NUMBER UINT32_MAX

/* Gives the file its number. */
void uvd_watched_init(struct uvd_watched *file, struct uvd_engine *engine, const char *name, uint32_t node,
		      const struct uvd_account *account);

/* A finished call. */
struct uvd_observed {
	struct uvd_watched *file;
	const struct uvd_tree *tree; /* of the file, when the call began */
	uint64_t begin; /* CLOCK_REALTIME, ns */
	uint64_t duration; /* ns */
	int64_t result; /* bytes written, 0, or a negative errno */
	uint32_t size; /* bytes of the command, or of the ioctl's header and attributes; 0: not known */
	const char *
		verb; /* the name of the command's or method's row; NULL: the call named none. For the call's time only */
	/* An observer that only counts does not get the fields below. */
	pid_t pid, tid; /* of the caller; 0: not known */
	bool ioctl; /* else write() */
	bool cut; /* some accesses are not in `pieces`, or what was read is not whole */
	const uint8_t *pieces;
	size_t len; /* bytes of the pieces */
};

/*
 * An entry of a queue that a client has mapped: a work request that the engine has taken, or a completion that it writes.
 * `bytes` are a struct of the kernel's ABI: ib_uverbs_send_wr or ib_uverbs_recv_wr, with as many struct ibv_sge behind
 * it as fit into UVD_PIECE_MAX, and the inline data of a send; or ib_uverbs_wc.
 */
struct uvd_observed_entry {
	struct uvd_watched *file;
	const struct uvd_tree *tree;
	uint64_t time; /* CLOCK_REALTIME, ns */
	uint16_t object; /* the id of the type that the queue belongs to */
	uint32_t handle; /* the object's */
	uint16_t kind; /* enum uvd_queue_kind */
	const uint8_t *bytes;
	size_t len;
};

/* An explanation for the opener of a file: see <uverbsd/reason.h>. */
struct uvd_observed_reason {
	struct uvd_watched *file;
	const struct uvd_tree *tree;
	uint64_t time; /* CLOCK_REALTIME, ns */
	int pid; /* 0: not known */
	const struct uvd_explained *explained;
};

/* An object of a file that becomes visible, or has ended. */
struct uvd_observed_object {
	struct uvd_watched *file;
	const struct uvd_uobject *self; /* its name, from its begin to its end; nobody follows it */
	const char *type; /* the name of its type's row; for the call's time only */
	uint16_t id; /* of its type */
	bool has_handle;
	uint32_t handle;
	const struct uvd_object_facts *facts;
	/* Set when the object has ended: */
	enum uvd_remove_reason why;
	unsigned int unread; /* events of it that its client has not read */
};

struct uvd_observer {
	/*
	 * Called at the end of each call, and when a file is closed (NULL: not). Both run on the thread of a client's
	 * call, under the lock of the observers, so they must not wait for a client or a reader, nor call functions of
	 * this header. An observer without `call` gets explanations only: it delays no call, and needs none of the client's memory.
	 */
	void (*call)(struct uvd_observer *o, const struct uvd_observed *call);
	void (*closed)(struct uvd_observer *o, struct uvd_watched *file);
	/* Called for each such entry, on any thread; the backend's lock of the queue is held, too. NULL: not. */
	void (*entry)(struct uvd_observer *o, const struct uvd_observed_entry *entry);
	/* Called for each explanation, on any thread. NULL: not. */
	void (*explained)(struct uvd_observer *o, const struct uvd_observed_reason *reason);
	/*
	 * Called for each object, before a client can name it, and when it has ended. On any thread; the file's destroy_lock is
	 * held, too. NULL: not.
	 */
	void (*object_made)(struct uvd_observer *o, const struct uvd_observed_object *object);
	void (*object_ended)(struct uvd_observer *o, const struct uvd_observed_object *object);
	/* Called just before a QP is destroyed, which can still fail; likewise. NULL: not. */
	void (*qp_ends)(struct uvd_observer *o, const struct uvd_uobject *self, const struct uvd_qp_work *work);
	bool counts_only; /* needs no pieces and no pid: a call that only such observers want costs less */
	bool one_user; /* tell it only of files that this user has opened */
	uid_t uid;
	unsigned int slot; /* set by uvd_observer_add() */
	uint64_t serial; /* likewise; no two observers of an engine have the same one */
};

/* Does the observer want calls on this file? One of a single user gets none of a program with more rights than the user. */
bool uvd_observer_wants(const struct uvd_observer *o, const struct uvd_watched *file);

/* Of an engine. All 0: there are no observers. */
struct uvd_observers {
	atomic_uint watched; /* the number of observers */
	unsigned int complete; /* of those that do more than count; __atomic, as mapped queues point to it */
	pthread_mutex_t lock; /* what follows */
	struct uvd_observer *list[UVD_ALL_OBSERVERS]; /* those that only count come last */
	uint64_t serial; /* the last one given */
	atomic_uint_fast64_t lost; /* calls that could not be observed: no memory */
};

void uvd_observers_init(struct uvd_observers *all);
/* There must be no observer. */
void uvd_observers_fini(struct uvd_observers *all);
/* Adds an observer, which sees the calls that begin from now on. Returns 0, or -EBUSY: there are too many. */
int uvd_observer_add(struct uvd_engine *engine, struct uvd_observer *o);
/* Removes it, if it is there. On return its functions are not running, and never run again. */
void uvd_observer_remove(struct uvd_engine *engine, struct uvd_observer *o);

/* ---- for the dispatcher ------------------------------------------------------------------------------------------ */

static inline bool uvd_is_watched(const struct uvd_observers *all)
{
	return __builtin_expect(atomic_load_explicit(&all->watched, memory_order_relaxed), 0);
}

/*
 * Begins to observe a call, and replaces caller->mem. tree: the file's, which names the call. Returns NULL if no observer
 * wants the file's calls, or if there is no memory: the call is not observed.
 */
struct uvd_observation *uvd_observe_begin(struct uvd_watched *file, const struct uvd_tree *tree,
					  struct uvd_caller *caller, bool ioctl);
/* Notes the command, if the transport has read it. */
__attribute__((cold)) void uvd_observe_command(struct uvd_observation *ob, const void *buf, size_t len);
/* Notes the size of an ioctl's header and attributes. */
__attribute__((cold)) void uvd_observe_size(struct uvd_observation *ob, size_t size);
/* Notes a write by a grant, with its result, unless the observation's own operations have noted it. ob may be NULL. */
void uvd_observe_written(struct uvd_observation *ob, uint64_t addr, const void *src, size_t len, int err);
/* Tells the observers, restores caller->mem, and frees ob. Call it while the file is open. verb: as in uvd_observed. */
__attribute__((cold)) void uvd_observe_end(struct uvd_observation *ob, const char *verb, long result);
/* The call has changed nothing and will be made anew: restores caller->mem, and frees ob, and tells nobody. */
void uvd_observe_drop(struct uvd_observation *ob);
/* Tells the observers about an entry; sets the time. Call it while `complete` is not 0. */
__attribute__((cold)) void uvd_observe_entry(struct uvd_observed_entry *entry);
/* Tells the observers about an explanation; sets the time. Call it while there are observers. */
__attribute__((cold)) void uvd_observe_reason(struct uvd_observed_reason *reason);
/* ---- for the core and the objects: call these while there are observers ------------------------------------------ */

__attribute__((cold)) void uvd_observe_made(const struct uvd_uobject *uobj);
/* events: of the object, that its client had been sent when the destruction began. */
__attribute__((cold)) void uvd_observe_ended(const struct uvd_uobject *uobj, enum uvd_remove_reason why,
					     unsigned int events);
__attribute__((cold)) void uvd_observe_qp_ends(const struct uvd_uobject *uobj, const struct uvd_qp_work *work);
/* Tells the observers that the file is closed. */
void uvd_observe_close(struct uvd_watched *file);

#endif
