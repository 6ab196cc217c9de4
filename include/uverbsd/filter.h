/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A filter stands between the core and the backend of a device, in the manner of nbdkit: it sees the calls, changes
 * them, or answers them itself. Filters are stacked: the first one of a device is the outermost. They can be added to
 * and removed from a device that is in use.
 *
 * A filter has a function for each operation of struct uvd_backend that it wraps (filter_ops.h lists them), with the
 * operation's parameters after two others: `data`, which init() has set for the device, and `next`, what lies below:
 *
 *	static int slow_create_qp(void *data, const struct uvd_next *next, struct uvd_qp *qp,
 *				  struct uvd_qp_init_attr *init, struct uvd_udata *udata)
 *	{
 *		usleep(1000);
 *		return uvd_next_create_qp(next, qp, init, udata);
 *	}
 *
 * If the filter lacks an operation, calls of it go straight to the next filter or the backend. An operation that the
 * backend does not have does not exist for filters either. The rules of backend.h hold: what an operation returns, and
 * which locks its caller holds. A filter must not refuse the end of an object forever: the core frees the object's
 * context then, which the backend still uses.
 *
 * A filter that is added later has not seen the objects that exist already, and their destruction reaches it all the
 * same. One that is removed does not see the end of objects whose creation it saw. So a filter keeps no count that
 * such an object would make wrong, and frees in exit() what it keeps by object.
 *
 * Locking: the functions run on any thread and in parallel, as those of a backend. `next` is valid during the call.
 */
#ifndef UVERBSD_FILTER_H
#define UVERBSD_FILTER_H

#include <errno.h>
#include <uverbsd/backend.h>
#include <uverbsd/cm_command.h>
#include <uverbsd/filter_ops.h>

struct uvd_filter_chain;
struct uvd_next;
struct uvd_plugin_option;
struct uvd_plugin_values;

/*
 * What a filter says of one of its rules: the rule as the user gave it, as "create_qp=ENOMEM@3"; how many calls,
 * messages or completions it has looked at; and on how many of them the filter acted.
 */
typedef void (*uvd_filter_tell_fn)(void *arg, const char *rule, uint64_t seen, uint64_t done);

struct uvd_filter {
	const char *name; /* unique in an engine: letters, digits, '-', '_'; at most 31 */
	const char *description; /* one line; may be NULL */
	/* As of a plug-in (plugin.h); their names may also have '_' and '.'. Ends with a name of NULL; may be NULL. */
	const struct uvd_plugin_option *options;
	/*
	 * Begin and end for a device. init() sets *data and returns 0, or a negative errno: then the filter is not
	 * added, or the device not created. uvd_plugin_wrong() tells the user what is wrong with an option. exit() comes
	 * after the filter's last call, and before the backend's close(). The functions of one device run one at a time,
	 * on a thread that may block. Both may be NULL.
	 */
	int (*init)(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data);
	void (*exit)(struct uvd_ibdev *dev, void *data);
	/*
	 * The backend is about to give this completion to the client: the filter may change it. Called for backends
	 * that call uvd_filter_completion(), as soft and null do, under a lock of the backend: it must not block, and
	 * must call neither the core nor uvd_next_*(). wc->opcode is valid, whatever the status. May be NULL.
	 */
	void (*completion)(void *data, struct uvd_cq *cq, struct ibv_wc *wc);
#define UVD_FILTER_OP(ret, op, dev, params, args) \
	ret (*op)(void *data, const struct uvd_next *next, UVD_FILTER_LIST params);
	UVD_FILTER_OPS_FIRST(UVD_FILTER_OP)
	/*
	 * A client's command of /dev/infiniband/rdma_cm is about to be carried out, on an identifier of this device. Called for
	 * each filter, the outermost first, until one returns a negative errno, with which the command fails; else returns 0.
	 * A command on an identifier without a device, such as CREATE_ID, BIND and often RESOLVE_ADDR, is for all devices of the
	 * engine, in their order. Not called for a command that fails because of its header, its struct's fields, or the number
	 * of its identifier; nor for a GET_EVENT that waits: the command has an event. May block (uvd_ibdev_sleep()): it runs
	 * on the thread of the call, without locks. Must return soon once the device is removed. May be NULL.
	 */
	int (*cm_command)(void *data, struct uvd_cm_call *call);
	UVD_FILTER_OPS_LATER(UVD_FILTER_OP)
#undef UVD_FILTER_OP
};

/* The filters and the backend below a filter. Only the core uses its fields. */
struct uvd_next {
	const struct uvd_filter_chain *chain;
	unsigned int index; /* of the first filter below */
};

/*
 * For the functions below. uvd_next_filter() returns the next filter that has the operation at this offset of struct
 * uvd_filter, its data, and what lies below it. NULL: it is the backend's turn.
 */
UVD_API const struct uvd_filter *uvd_next_filter(const struct uvd_next *next, size_t op, struct uvd_next *below,
						 void **data);
UVD_API const struct uvd_backend *uvd_next_backend(const struct uvd_next *next);

/*
 * For backends: shows the filters of the CQ's device a completion, which they may change, before the client can find
 * it. May be called under a lock of the backend. Without such filters it does nothing.
 */
UVD_API void uvd_filter_completion(struct uvd_cq *cq, struct ibv_wc *wc);

/*
 * Sleeps for ns nanoseconds, or until the device is removed. Returns false if it was removed. For an operation of a
 * filter, on the thread of the call, and for a filter's own thread; without locks.
 */
UVD_API bool uvd_ibdev_sleep(struct uvd_ibdev *dev, uint64_t ns);

/*
 * Removes the device under its users, as `uverbsctl device remove` does, and adds it again down_ns after that. Only orders
 * this, so that the filter's own thread may ask for the end of its filter: exit() follows. The device that comes back
 * begins with the filters that the device was configured with. Returns 0; -ENODEV: the device is being removed already;
 * -EOPNOTSUPP: the transport cannot do that; -ESHUTDOWN: the run has no control socket, so that nobody would do it.
 * Without locks.
 */
UVD_API int uvd_ibdev_replug(struct uvd_ibdev *dev, uint64_t down_ns);
/*
 * For init(): returns how often uvd_ibdev_replug() has removed this device since a user has added it. For a filter that a
 * user adds to a running device it is 0. UINT64_MAX: the transport cannot remove devices.
 */
UVD_API uint64_t uvd_ibdev_replugs(const struct uvd_ibdev *dev);

/*
 * For init(): tells the user what is wrong with the value of an option, as in "`ENOMEN` is not an errno", and returns
 * -EINVAL. why: "is not an errno".
 */
UVD_API int uvd_plugin_wrong(const struct uvd_plugin_values *values, const char *name, const char *why);

/*
 * For init(): this filter counts what its rules do. rules() calls tell() for each rule, in the order of the options.
 * `uverbsctl filter list --json` shows them, and one line of the log for each rule when the filter has ended: rules()
 * can run while calls are in progress, and comes for the last time between the last call and exit(). It must not block.
 */
UVD_API void uvd_filter_has_rules(const struct uvd_plugin_values *values,
				  void (*rules)(void *data, uvd_filter_tell_fn tell, void *arg));

/*
 * uvd_next_create_qp(next, qp, init, udata) and its siblings call the operation of the next filter that has it, else
 * the backend's. -EOPNOTSUPP: the backend has no such operation.
 */
#define UVD_NEXT_NONE_int -EOPNOTSUPP
#define UVD_NEXT_NONE_void (void)0
#define UVD_FILTER_NEXT(ret, op, dev, params, args) \
	static inline ret uvd_next_##op(const struct uvd_next *next, UVD_FILTER_LIST params) \
	{ \
		const struct uvd_backend *backend; \
		const struct uvd_filter *filter; \
		struct uvd_next below; \
		void *data; \
\
		filter = uvd_next_filter(next, offsetof(struct uvd_filter, op), &below, &data); \
		if (filter) \
			return filter->op(data, &below, UVD_FILTER_LIST args); \
		backend = uvd_next_backend(next); \
		return backend->op ? backend->op args : UVD_NEXT_NONE_##ret; \
	}
UVD_FILTER_OPS(UVD_FILTER_NEXT)
#undef UVD_FILTER_NEXT

/* The device of a QP, which has no PD if it is an XRC target. */
static inline struct uvd_ibdev *uvd_qp_device(const struct uvd_qp *qp)
{
	return qp->pd ? qp->pd->context->dev : qp->xrcd->dev;
}

#endif
