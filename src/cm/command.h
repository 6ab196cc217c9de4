/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands: rows (rows.c), and what a row's functions get. */
#ifndef UVD_CM_COMMAND_H
#define UVD_CM_COMMAND_H

#include "cm/internal.h"

/* The names of all commands begin so. */
#define CM_PREFIX "RDMA_USER_CM_CMD_"

enum { CM_MOST_IN = sizeof(struct rdma_ucm_accept), CM_MOST_OUT = 440 /* of QUERY: six paths */ };

/* A command that is being carried out. */
struct cm_cmd {
	struct uvd_cm_file *file;
	struct uvd_caller *caller;
	uint64_t in[CM_MOST_IN / 8]; /* the command's struct */
	size_t in_size; /* as the client says */
	size_t out_size; /* the room for the response */
	uint64_t out[CM_MOST_OUT / 8];
	size_t out_len; /* the bytes of it that are written to the client */
	/* For the log, the cause of a failure: a field and its value, or the state of an identifier. */
	const char *wrong_field;
	int64_t wrong_value;
	const char *wrong_state;
	void *made; /* by act(), for undo() and done() */
	uint64_t made_serial; /* JOIN_MCAST: likewise */
	/* Taken by check(): */
	bool may_bind; /* CAP_NET_BIND_SERVICE */
	struct uvd_cm_file *other; /* MIGRATE_ID: a reference */
	bool other_unknown;
	uint8_t value[sizeof(int)]; /* SET_OPTION: the first bytes */
	bool has_path; /* SET_OPTION: the value has a path that can be used */
	struct uvd_cm_call filtered; /* as filters see it, and leave it */
};

/* Their results: 0, a negative errno, UVD_CM_WAITS. */
struct cm_row {
	uint16_t object; /* UVERBSD_OBJECT_... */
	const char *name; /* the kernel's, RDMA_USER_CM_CMD_... */
	size_t in; /* bytes of the struct, which the kernel reads whatever the header says */
	size_t least_in; /* if not 0, the header must have so many, and the rest of the struct is 0 */
	size_t response; /* where the struct has the response's address */
	size_t out; /* the bytes of the longest response; 0: there is none */
	size_t least_out;
	/*
	 * The identifier that the command is about, whose device has the filters. `names_id`: its number is at `id` of the struct. `find`
	 * finds it otherwise, with the lock, and returns 0, with NULL if it has no device yet; or a negative errno: no filter is asked.
	 * Neither: there is none yet.
	 */
	bool names_id;
	size_t id;
	int (*find)(struct cm_cmd *c, struct cm_id **id);
	bool filtered_last; /* filters are asked after act(), and undo() follows if they refuse it */
	/* Checks of the struct, and questions about the client: without the lock. NULL: none */
	int (*check)(struct cm_cmd *c);
	/* Does it, with the lock. */
	int (*act)(struct cm_cmd *c);
	/* The response was written, or could not be: with the lock. NULL: nothing is to be done */
	void (*done)(struct cm_cmd *c);
	void (*undo)(struct cm_cmd *c);
};

/* Returns NULL for a number without a command; *known: there are such numbers. */
const struct cm_row *cm_row(uint32_t number, bool *known);

/* Note what is wrong. Return err, and -EINVAL. */
int cm_wrong(struct cm_cmd *c, const char *field, int64_t value, int err);
int cm_wrong_state(struct cm_cmd *c, const struct cm_id *id);
/* cm_id_get() and cm_id_get_bound() for the identifier that the command names. */
int cm_cmd_id(struct cm_cmd *c, uint32_t number, struct cm_id **id);
int cm_cmd_id_bound(struct cm_cmd *c, uint32_t number, struct cm_id **id);
/* filter.c: asks the filters, on the thread of the call and without the lock. Returns 0, or the errno of one that refuses it. */
int cm_filter(struct cm_cmd *c, const struct cm_row *row);
/* failure.c: one line for a command that has failed. number: the command's, row: NULL if there is none. */
void cm_log_failure(struct cm_cmd *c, uint32_t number, const struct cm_row *row, int err);

/* One line for a destination that ends in the event ADDR_ERROR. */
void cm_log_addr_error(struct cm_cmd *c, const union cm_addr *dst, int err);

/* Puts a response of this size in, or as much of it as the client has room for. */
void cm_respond(struct cm_cmd *c, const void *response, size_t size);

/* identify.c */
int cm_create_id_check(struct cm_cmd *c);
int cm_create_id(struct cm_cmd *c);
void cm_create_id_done(struct cm_cmd *c);
void cm_create_id_undo(struct cm_cmd *c);
int cm_destroy_id(struct cm_cmd *c);
int cm_migrate_id_check(struct cm_cmd *c);
int cm_migrate_id_find(struct cm_cmd *c, struct cm_id **id);
int cm_migrate_id(struct cm_cmd *c);
int cm_get_event_find(struct cm_cmd *c, struct cm_id **id);
int cm_get_event(struct cm_cmd *c);
void cm_get_event_done(struct cm_cmd *c);
void cm_get_event_undo(struct cm_cmd *c);
/* resolve.c */
int cm_bind_ip_check(struct cm_cmd *c);
int cm_bind_ip(struct cm_cmd *c);
int cm_bind_check(struct cm_cmd *c);
int cm_bind(struct cm_cmd *c);
int cm_resolve_ip_check(struct cm_cmd *c);
int cm_resolve_ip(struct cm_cmd *c);
int cm_resolve_addr_check(struct cm_cmd *c);
int cm_resolve_addr(struct cm_cmd *c);
int cm_resolve_route(struct cm_cmd *c);
/* Binds an identifier that has no address yet to this one. dst: its destination, or NULL */
int cm_id_bind(struct cm_id *id, const union cm_addr *addr, const union cm_addr *dst, bool may);
/* query.c */
int cm_query_route(struct cm_cmd *c);
int cm_query(struct cm_cmd *c);
int cm_init_qp_attr_check(struct cm_cmd *c);
int cm_init_qp_attr(struct cm_cmd *c);
/* connect.c */
int cm_listen(struct cm_cmd *c);
int cm_connect_check(struct cm_cmd *c);
int cm_connect(struct cm_cmd *c);
int cm_accept(struct cm_cmd *c);
int cm_reject_check(struct cm_cmd *c);
int cm_reject(struct cm_cmd *c);
int cm_disconnect(struct cm_cmd *c);
int cm_notify(struct cm_cmd *c);
/* option.c */
int cm_set_option_check(struct cm_cmd *c);
int cm_set_option(struct cm_cmd *c);
/* mcast.c */
int cm_join_ip_mcast_check(struct cm_cmd *c);
int cm_join_ip_mcast(struct cm_cmd *c);
int cm_join_mcast_check(struct cm_cmd *c);
int cm_join_mcast(struct cm_cmd *c);
void cm_join_done(struct cm_cmd *c);
void cm_join_undo(struct cm_cmd *c);
int cm_leave_mcast_find(struct cm_cmd *c, struct cm_id **id);
int cm_leave_mcast(struct cm_cmd *c);

#endif
