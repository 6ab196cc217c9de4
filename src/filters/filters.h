/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The stack of filters of a device, and the filters that uverbsd has itself. include/uverbsd/filter.h is what a filter
 * sees; core/filters.h adds filters to devices and removes them.
 *
 * A stack has one *chain* at a time, which is constant: a call takes a reference to the chain that it begins with, so a
 * change waits for no call and no call for a change. A chain that was replaced ends when its last call has ended; the
 * next change, or the end of the device, frees it. The log then says what the rules of a filter did that no chain has any
 * more.
 *
 * Without filters the device uses the backend's own table of operations. With filters it uses a table that has a
 * function of ours for each operation that a filter wraps. Readers take no reference to a table, so tables are freed
 * only with the stack. Equal tables are reused.
 */
#ifndef UVD_FILTERS_H
#define UVD_FILTERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uverbsd/filter.h>

enum { UVD_MAX_FILTERS = 16 /* of a device */ };

/* A filter of one device, with its options. */
struct uvd_filter_instance {
	const struct uvd_filter *filter; /* complete: what an older plug-in does not have is zero */
	struct uvd_ibdev *dev;
	void *data; /* of init() */
	char *text; /* NAME or NAME:OPTIONS, as the user gave it */
	void (*rules)(void *data, uvd_filter_tell_fn tell, void *arg); /* of uvd_filter_has_rules(), or NULL */
	void (*put_owner)(void *owner); /* or NULL: puts the reference to the code, after exit() */
	void *owner;
	unsigned int chains; /* that it is in; only the one change at a time uses it */
};

struct uvd_filter_chain {
	atomic_uint ref; /* calls, and the stack while the chain is current */
	const struct uvd_backend *base;
	unsigned int num;
	struct uvd_filter_instance *list[UVD_MAX_FILTERS]; /* outermost first */
	struct uvd_filter_chain *older; /* the chains that were replaced */
};

struct uvd_filters {
	struct uvd_ibdev *dev;
	const struct uvd_backend *base; /* the backend's operations */
	pthread_mutex_t lock; /* current and its reference; a leaf, also of the backends' locks */
	struct uvd_filter_chain *current; /* NULL: no filters */
	struct uvd_filter_chain *old; /* only uvd_filters_change() and uvd_filters_clear() */
	struct uvd_filter_table *tables; /* only uvd_filters_change() */
	atomic_bool completions; /* a filter of the current chain wants completions */
};

/* Begins without filters: dev->ops is the backend's table, which stays valid until uvd_filters_end(). */
void uvd_filters_begin(struct uvd_filters *filters, struct uvd_ibdev *dev);
/*
 * Makes these the filters of the device, for calls that begin from now on. Waits for a short while for the calls of the
 * chain before. Filters that are in no chain any more end. One change at a time; the caller holds no lock. Returns 0,
 * or -ENOMEM with nothing changed: instances that are new are still the caller's.
 */
int uvd_filters_change(struct uvd_filters *filters, struct uvd_filter_instance *const *list, unsigned int num);
/* Removes all filters, and waits for their calls. Before the backend's close(), after the last call of a client. */
void uvd_filters_clear(struct uvd_filters *filters);
/* Frees the tables. After the last use of the device; uvd_filters_clear() comes before. */
void uvd_filters_end(struct uvd_filters *filters);
/* Tells the filter's rules. */
void uvd_filter_instance_tell(const struct uvd_filter_instance *instance, uvd_filter_tell_fn tell, void *arg);
/* Ends a filter that is in no chain: exit(), then the reference to its code. NULL is allowed. */
void uvd_filter_instance_end(struct uvd_filter_instance *instance);

/* The calls' side. Returns the current chain with a reference; NULL: no filters. */
struct uvd_filter_chain *uvd_filters_get(struct uvd_filters *filters);
void uvd_filter_chain_put(struct uvd_filter_chain *chain);
/*
 * Shows the filters of the chain a command of rdma_cm, whose `number` the caller has set. Returns 0, or the negative errno of
 * the filter that refuses it. Without locks.
 */
int uvd_filter_chain_command(const struct uvd_filter_chain *chain, struct uvd_cm_call *command);
/* Does a filter wrap cm_command? No change may be in progress. */
bool uvd_filters_want_commands(const struct uvd_filters *filters);
/* Puts our functions into the table, for what a filter of the list wraps. Returns false if there is nothing to put. */
bool uvd_filter_ops_put(struct uvd_backend *ops, struct uvd_filter_instance *const *list, unsigned int num);

/* For init() of a filter that wraps carry_message. Returns -EOPNOTSUPP if the backend lacks that, and the log says so. */
int uvd_filter_needs_network(struct uvd_ibdev *dev, const char *filter);

/* ---- what uverbsd has itself ------------------------------------------------------------------------------------- */

#define UVD_FILTERS(X) X(delay) X(error) X(event) X(flap) X(limit) X(loss) X(nomem) X(reorder)

#define UVD_FILTER_DECLARE(name) extern const struct uvd_filter uvd_filter_##name;
UVD_FILTERS(UVD_FILTER_DECLARE)
#undef UVD_FILTER_DECLARE

#endif
