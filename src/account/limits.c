/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Both limits of each resource: how much of it a device or the daemon has, and how much of that one user may hold. By
 * default that is a quarter at most: tests/account/test_limits.c goes through the table.
 */
#include "account/account.h"
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uverbsd/backend.h>
#include <uverbsd/uapi_later.h>

/* The attribute of a device (QUERY_DEVICE), the field of its configuration, or a number that each device has. */
#define OF_DEVICE(m, name) \
	{ \
		UVD_WHOLE_DEVICE, offsetof(struct ibv_device_attr_ex, m), sizeof(((struct ibv_device_attr_ex *)0)->m), \
			name, 0 \
	}
#define OF_CONFIG(m, name) \
	{ \
		UVD_WHOLE_CONFIG, offsetof(struct uvd_limits, m), sizeof(((struct uvd_limits *)0)->m), name, 0 \
	}
#define OF_EACH_DEVICE(n) \
	{ \
		UVD_WHOLE_EACH_DEVICE, .number = n \
	}
/* A number of the daemon's; or what the system gives it. */
#define OF_DAEMON(n) \
	{ \
		UVD_WHOLE_DAEMON, .number = n \
	}
#define OF_SYSTEM(kind) \
	{ \
		UVD_WHOLE_##kind \
	}
/* Nothing but another resource, of which each costs one at least, limits this one. */
#define BY(res) \
	{ \
		UVD_WHOLE_OTHER, .number = UVD_RES_##res \
	}
#define LIMIT(type, name, value, err, ...) \
	[UVD_RES_OBJECT + UVERBS_OBJECT_##type] = { name, "objects of type " #type, value, err, __VA_ARGS__ }
#define OBJECT(type, name, value, ...) LIMIT(type, name, value, -EAGAIN, __VA_ARGS__)
#define SHARE UINT64_MAX /* the default is a quarter of each device, and none for all of them together */

/*
 * The default limits. They leave room for many MPI jobs of 64 ranks. An object beyond a limit fails with -EAGAIN, as with
 * the kernel's rdma cgroup, or with -EMFILE if it is a file; what the device itself counts, with the device's -ENOMEM.
 */
const struct uvd_limit_row uvd_limit_rows[UVD_NUM_RES] = {
	[UVD_RES_FILES] = { "files", "open files of devices", 4096, -EMFILE, BY(DESCRIPTORS) },
	[UVD_RES_EVENT_FILES] = { "event-files", "completion channels and asynchronous event files", 4096, -EMFILE,
				  BY(DESCRIPTORS) },
	[UVD_RES_DESCRIPTORS] = { "descriptors", "descriptors of the daemon's", 65536, -EMFILE,
				  OF_SYSTEM(DESCRIPTORS) },
	[UVD_RES_BYTES] = { "bytes", "bytes of the daemon's memory and of its socket buffers", 2ull << 30, -ENOMEM,
			    OF_SYSTEM(MEMORY) },
	[UVD_RES_CALLS] = { "calls", "calls carried out at one time; more wait", 8, 0, OF_DAEMON(UVD_WHOLE_CALLS) },
	[UVD_RES_PARKED] = { "parked", "calls that wait for an event", 1024, -ENOMEM, OF_DAEMON(UVD_WHOLE_PARKED) },
	[UVD_RES_LOANS] = { "loans", "threads borrowed at one time, to pass them a descriptor or to register memory",
			    64, 0, OF_DAEMON(UVD_WHOLE_LOANS) },
	[UVD_RES_RINGS] = { "rings", "rings of adapters' queues in the daemon's address space", 4095, -ENOMEM,
			    OF_DAEMON(UVD_WHOLE_RINGS) },
	[UVD_RES_CONNECTIONS] = { "connections", "connections to the control socket", 8, -EMFILE,
				  OF_DAEMON(UVD_WHOLE_CONNECTIONS) },
	[UVD_RES_TRACES] = { "traces", "traces and explanations that `uverbsctl trace` and `explain` read", 1, -EMFILE,
			     OF_DAEMON(UVD_WHOLE_TRACES) },
	[UVD_RES_METERS] = { "meters", "counts of calls that `uverbsctl status --watch` reads", 2, -EMFILE,
			     OF_DAEMON(UVD_WHOLE_METERS) },
	[UVD_RES_CM_IDS] = { "cm-ids", "identifiers of the connection manager", 16384, -ENOMEM,
			     OF_DAEMON(UVD_WHOLE_CM_IDS) },
	[UVD_RES_FLIGHT] = { "flight", "packets on the wire that wait for an answer; more of them wait", 4096, 0,
			     OF_DAEMON(UVD_WHOLE_FLIGHT) },
	[UVD_RES_INBOX] = { "inbox", "packets from the wire that wait for a thread", 16384, -ENOMEM,
			    OF_DAEMON(UVD_WHOLE_INBOX) },
	[UVD_RES_REGISTERED] = { "registered", "bytes of registered memory, in whole pages", UINT64_MAX, -ENOMEM,
				 OF_SYSTEM(CLIENTS) },
	[UVD_RES_DM_BYTES] = { "device-memory", "bytes of device memory", SHARE, -ENOMEM,
			       OF_DEVICE(max_dm_size, "max-dm-size") },
	[UVD_RES_NAMED_XRCDS] = { "named-xrcds", "XRC domains that are shared by a file", SHARE, -ENOMEM,
				  OF_EACH_DEVICE(UVD_WHOLE_NAMED_XRCDS) },
	[UVD_RES_ATTACHMENTS] = { "attachments", "attachments of queue pairs to multicast groups", SHARE, -ENOMEM,
				  OF_DEVICE(orig_attr.max_mcast_grp, "max-mcast-grp") },
	[UVD_RES_MEMBERS] = { "members", "attachments of queue pairs to one multicast group", SHARE, -ENOMEM,
			      OF_DEVICE(orig_attr.max_mcast_qp_attach, "max-mcast-qp-attach") },
	[UVD_RES_OBJECTS] = { "objects", "objects of all types", 262144, -EAGAIN, OF_DAEMON(UVD_WHOLE_NUMBERS) },
	OBJECT(PD, "pds", SHARE, OF_DEVICE(orig_attr.max_pd, "max-pd")),
	LIMIT(COMP_CHANNEL, "channels", 4096, -EMFILE, BY(EVENT_FILES)),
	OBJECT(CQ, "cqs", SHARE, OF_DEVICE(orig_attr.max_cq, "max-cq")),
	OBJECT(QP, "qps", SHARE, OF_DEVICE(orig_attr.max_qp, "max-qp")),
	OBJECT(SRQ, "srqs", SHARE, OF_DEVICE(orig_attr.max_srq, "max-srq")),
	OBJECT(AH, "ahs", SHARE, OF_DEVICE(orig_attr.max_ah, "max-ah")),
	OBJECT(MR, "mrs", SHARE, OF_DEVICE(orig_attr.max_mr, "max-mr")),
	OBJECT(MW, "mws", SHARE, OF_DEVICE(orig_attr.max_mw, "max-mw")),
	OBJECT(FLOW, "flows", 4096, BY(OBJECTS)),
	OBJECT(XRCD, "xrcds", SHARE, OF_CONFIG(max_xrcd, "max-xrcd")),
	/* Not every backend tells how many of these two it has. */
	OBJECT(RWQ_IND_TBL, "rwq-ind-tbls", 4096, OF_DEVICE(rss_caps.max_rwq_indirection_tables, NULL)),
	OBJECT(WQ, "wqs", 16384, OF_DEVICE(max_wq_type_rq, NULL)),
	OBJECT(FLOW_ACTION, "flow-actions", 4096, BY(OBJECTS)),
	OBJECT(DM, "dms", 4096, BY(OBJECTS)),
	OBJECT(COUNTERS, "counters", SHARE, OF_CONFIG(max_counters, "max-counters")),
	LIMIT(ASYNC_EVENT, "async-files", 4096, -EMFILE, BY(EVENT_FILES)),
	OBJECT(DMAH, "dmahs", 4096, BY(OBJECTS)),
	OBJECT(DMABUF, "dmabufs", 4096, BY(OBJECTS)),
	OBJECT(COMP_CNTR, "comp-cntrs", SHARE, OF_DEVICE(orig_attr.max_cq, "max-cq")),
};

/*
 * What accounts do not count, or count by another resource: the code that has the limit also sees to the share. Only
 * administrators change plug-ins.
 */
const struct uvd_fixed_share uvd_fixed_shares[] = {
	{ "threads of a node that carry out the last closes of files", UVD_WHOLE_WORKERS, UVD_SHARE_CLOSES },
	{ "children of the broker that answer questions, one for each call", 256, 8 },
	{ "children of the broker that borrow threads, one for each loan", 256, 64 },
	{ "event files on their way to clients", 128, 8 },
	{ "connections to the control socket", 64, 8 },
	{ "recorders of traces", 4, 1 },
	{ "meters of calls", 8, 2 },
	{ "changes of plug-ins in progress", 16, 0 },
	{ NULL, 0, 0 },
};

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

uint64_t uvd_limit_share(uint64_t whole)
{
	if (whole == UINT64_MAX)
		return whole;
	return whole / 4 ? whole / 4 : whole > 0;
}

/* The soft limit, which the daemon raises before it makes its accounts. */
static uint64_t limit_of_descriptors(void)
{
	struct rlimit nofile;

	if (getrlimit(RLIMIT_NOFILE, &nofile) || nofile.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return nofile.rlim_cur;
}

uint64_t uvd_limit_of_daemon(enum uvd_resource res)
{
	const struct uvd_whole *whole = &uvd_limit_rows[res].whole;

	switch (whole->kind) {
	case UVD_WHOLE_DAEMON:
		return whole->number;
	case UVD_WHOLE_DESCRIPTORS:
		return limit_of_descriptors();
	case UVD_WHOLE_MEMORY:
		return (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	default:
		return UINT64_MAX;
	}
}

static uint64_t limit_field(const void *base, const struct uvd_whole *whole)
{
	const void *at = (const char *)base + whole->offset;

	return whole->size == sizeof(uint64_t) ? *(const uint64_t *)at : *(const uint32_t *)at;
}

uint64_t uvd_limit_of_device(enum uvd_resource res, const struct ibv_device_attr_ex *attr,
			     const struct uvd_limits *limits)
{
	const struct uvd_whole *whole = &uvd_limit_rows[res].whole;

	switch (whole->kind) {
	case UVD_WHOLE_DEVICE:
		return limit_field(attr, whole);
	case UVD_WHOLE_CONFIG:
		return limit_field(limits, whole);
	case UVD_WHOLE_EACH_DEVICE:
		return whole->number;
	default:
		return UINT64_MAX;
	}
}

/* ---- the limits of each user ------------------------------------------------------------------------------------- */

void uvd_account_limits_init(struct uvd_account_limits *limits)
{
	*limits = (struct uvd_account_limits){ 0 };
	for (int i = 0; i < UVD_NUM_RES; i++)
		limits->max[i] = UVD_LIMIT_DEFAULT;
}

uint64_t uvd_account_limit(const struct uvd_account_limits *limits, enum uvd_resource res)
{
	const struct uvd_limit_row *row = &uvd_limit_rows[res];
	const uint64_t share = uvd_limit_share(uvd_limit_of_daemon(res));

	if (limits->max[res] != UVD_LIMIT_DEFAULT)
		return limits->max[res];
	if (!row->name)
		return UINT64_MAX;
	return limits->one_user || row->value < share ? row->value : share;
}

uint64_t uvd_account_device_share(const struct uvd_account_limits *limits, enum uvd_resource res,
				  const struct ibv_device_attr_ex *attr, const struct uvd_limits *device)
{
	const uint64_t whole = uvd_limit_of_device(res, attr, device);

	/* A backend that has something and does not tell how much of it says 0. */
	if (limits->one_user || limits->max[res] != UVD_LIMIT_DEFAULT || !whole || whole == UINT64_MAX)
		return UINT64_MAX;
	return uvd_limit_share(whole);
}
