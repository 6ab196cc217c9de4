/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl replay of a trace: makes the calls of a trace again, one after the other, from the bytes that the trace
 * has, and compares what they return. Nothing in a trace is trusted: the device gets no address from it. One thread
 * uses a replay.
 */
#ifndef UVD_TOOLS_REPLAY_H
#define UVD_TOOLS_REPLAY_H

#include <limits.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "program/program.h"
#include "../trace/reader.h"

/* Memory of the replayer in the place of a client's that the device keeps: of a memory region or a buffer. */
struct uvd_replay_region {
	struct uvd_replay_region *next;
	uint64_t file; /* that registered it */
	uint32_t pid; /* of the recorded client */
	uint32_t handle; /* of the object, recorded */
	bool has_handle;
	uint64_t start, len; /* in the recorded client */
	uint8_t *mem;
	size_t mapped;
	uint64_t hca_va, new_hca_va; /* where work requests find it: recorded, and now */
	uint64_t lkey, rkey; /* recorded; UINT64_MAX: unknown yet */
};

/* An open file of the trace. */
struct uvd_replay_file {
	struct uvd_replay_file *next;
	uint64_t file;
	uint32_t pid, number;
	int fd;
	bool cm; /* of the node rdma_cm */
	struct uvd_replay_event *events; /* of an identifier that the device has told, and no call has taken */
	bool other; /* the recorded device has another driver */
	bool partial; /* work requests were not made: not all completions can come */
};

struct uvd_replay_cq;
struct uvd_replay_late;

struct uvd_replay {
	const char *who, *name; /* for messages; of the trace */
	char node[PATH_MAX], cm_node[PATH_MAX];
	bool kernel, show;
	bool given_up; /* nothing more is compared */
	unsigned int hang; /* seconds that a call may take */
	struct uvd_trace_reader reader;
	struct uvd_script device, cm; /* the tree of the device, and that of rdma_cm */
	uint16_t driver_id;
	struct uvd_replay_file *files;
	struct uvd_replay_region *regions;
	size_t mapped; /* bytes of all regions */
	uint8_t *scratch; /* a page where a driver may write */
	uint8_t *none; /* a page that cannot be accessed */
	struct uvd_prog_numbers numbers; /* theirs: recorded */
	json_t *qps; /* their states, and the calls that were made on them, by "FILE HANDLE" as recorded */
	struct uvd_replay_cq *cqs;
	struct uvd_replay_late *late; /* records that wait for an event */
	bool cm_differs; /* a command of rdma_cm had another result: events after it need not come */
	struct uvd_prog_list list;
	json_t *differences, *skipped;
	unsigned int calls, call; /* read, and the number of the one that is replayed */
	unsigned int num_differences, num_skipped, lost;
};

enum { UVD_REPLAY_RANGES = 260 };

/* One call, as it is made again. */
struct uvd_replay_call {
	struct uvd_replay *r;
	struct uvd_replay_file *f;
	const struct uvd_trace_decoded *was;
	bool ioctl;
	const struct uverbsd_tree_row *row; /* the method or command in the device's tree, or NULL */
	uint8_t *msg;
	size_t len;
	unsigned int num_attrs; /* that msg has */
	/* Where the replayer has what the client had at these addresses. */
	unsigned int num_ranges;
	struct uvd_replay_range {
		uint64_t addr;
		size_t len;
		uint8_t *mem;
	} ranges[UVD_REPLAY_RANGES];
	uint8_t *allocated[UVD_REPLAY_RANGES];
	unsigned int num_allocated;
	uint8_t *request; /* of a command, or NULL */
	size_t request_len;
	uint8_t *response; /* of a command, or NULL */
	size_t response_len;
	uint64_t response_was; /* the recorded address */
	struct uvd_replay_region *region; /* that the call is about to register */
	json_t *values; /* inputs by name, as numbers */
	json_t *attrs; /* names of the method's attributes, as the list of differences has them */
	const char *skip; /* why the call is not made, or NULL */
};

/* ---- map.c ------------------------------------------------------------------------------------------------------- */

/* Reserves memory for `len` bytes at `start` of the client. Returns NULL, with c->skip, if that is too much. */
struct uvd_replay_region *uvd_replay_region_add(struct uvd_replay_call *c, uint64_t start, uint64_t len,
						uint64_t hca_va);
void uvd_replay_region_drop(struct uvd_replay *r, struct uvd_replay_region *region);
/* Drops the memory of the object with this recorded handle, or (NULL) of all objects of the file. */
void uvd_replay_regions_end(struct uvd_replay *r, uint64_t file, const uint32_t *handle);
/* Returns the address of a scatter/gather element, or of a peer's memory, that the key belongs to. */
uint64_t uvd_replay_address(const struct uvd_replay_call *c, uint64_t addr, uint64_t key);
/*
 * Replaces a peer's address, the GID in the field dgid and what belongs to it, by the device's own. dgid has a selector, which
 * says if there is a GID.
 */
void uvd_replay_peer(struct uvd_replay_call *c, const struct uvd_struct *of, const struct uvd_field *dgid,
		     uint8_t *bytes, size_t len);

/* ---- numbers.c --------------------------------------------------------------------------------------------------- */

/* Groups of rdma_cm have numbers of their own; all other handles of a file, or of all files of rdma_cm, are in one space. */
#define UVD_REPLAY_GROUP ((enum uvd_role)(UVD_ROLE_RANDOM + 1))
/* The scope of both: no file of a device. */
#define UVD_REPLAY_CM_SCOPE UINT64_MAX
enum uvd_role uvd_replay_handle_kind(uint16_t object);
/* Returns where a number of this kind has one meaning. was: a command of rdma_cm can name a QP of any device, which it tells. */
uint64_t uvd_replay_scope(const struct uvd_replay_call *c, enum uvd_role kind, uint64_t was);
/*
 * A recorded number that the device chose, and its own. kind: uvd_replay_handle_kind(), UVD_ROLE_FD, _LKEY and so on; UVD_ROLE_SOCKADDR:
 * a port of rdma_cm.
 */
void uvd_replay_learn(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was, uint64_t now);
/* The object was not created again: calls that use it are not made. */
void uvd_replay_learn_lost(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was);
/* Returns the device's own number, or `was` if the trace does not tell where it is from. Sets c->skip if it is lost. */
uint64_t uvd_replay_number(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was);
/* Finds what stands for a recorded number. Returns false if the trace does not tell where it is from, or it is lost. */
bool uvd_replay_number_known(const struct uvd_replay_call *c, enum uvd_role kind, uint64_t was, uint64_t *now);

/*
 * Learns the number that the device chose for the object with this recorded handle. Returns false if another object that
 * exists has it.
 */
bool uvd_replay_number_bind(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was, uint64_t now, uint32_t handle);
/* The object with this recorded handle, or (NULL) all objects of the file, have their numbers no longer. */
void uvd_replay_numbers_end(struct uvd_replay *r, uint64_t file, const uint32_t *handle);
/* Forgets the numbers of a file that is closed, and closes its descriptors. */
void uvd_replay_forget(struct uvd_replay *r, uint64_t file);

/* ---- build.c, fields.c ------------------------------------------------------------------------------------------- */

/* Builds the call. c->skip is set if it cannot be made. Pair it with uvd_replay_call_free() in any case. */
void uvd_replay_build(struct uvd_replay_call *c);
void uvd_replay_call_free(struct uvd_replay_call *c);
/* Makes the call. Returns 0 or more, or a negative errno. Ends the process with a message if it hangs. */
long uvd_replay_make(const struct uvd_replay_call *c);
/* Gives the call memory of its own, with some bytes behind it. Returns NULL, with c->skip, if it has too many parts. */
uint8_t *uvd_replay_allocate(struct uvd_replay_call *c, size_t len);
/* Did the recorded call fail to access the memory at addr? */
bool uvd_replay_memory_failed(const struct uvd_replay_call *c, uint64_t addr, size_t len);
/* Gives the response memory of its own, and room for the driver's part. Returns the address to send. */
uint64_t uvd_replay_response_room(struct uvd_replay_call *c, size_t core, size_t driver);
/* Returns the replayer's memory for this address of the client, and how much there is; NULL: it has none. */
uint8_t *uvd_replay_find(const struct uvd_replay_call *c, uint64_t addr, size_t *len);
/* Gives the call memory of its own in the place of the client's, with what the call had read there. */
uint8_t *uvd_replay_memory(struct uvd_replay_call *c, uint64_t addr, size_t len);

/* Replaces what is another one now in the request of a command, and in the value of an attribute. */
void uvd_replay_request(struct uvd_replay_call *c);
void uvd_replay_value(struct uvd_replay_call *c, const char *name, const struct uvd_attr_fields *fields, uint8_t *data,
		      size_t len);
/* Finds a field by its whole name. Returns NULL if the first len bytes have none. */
const struct uvd_field *uvd_replay_field(const struct uvd_struct *of, const char *name, size_t len);
/* Returns the name after the last dot. */
const char *uvd_replay_last(const char *name);

/* ---- qp.c -------------------------------------------------------------------------------------------------------- */

/* Remembers a call that has succeeded, now or in the trace. target: its name in the list of differences. */
void uvd_replay_qp_note(struct uvd_replay_call *c, const char *target);
/* Returns the state of the call's QP, UINT64_MAX: it names none, or one that the trace did not create. */
uint64_t uvd_replay_qp_now(const struct uvd_replay_call *c);
/* Was this call made on the call's QP before? */
bool uvd_replay_qp_after(const struct uvd_replay_call *c, const char *target);

/* ---- listed.c ---------------------------------------------------------------------------------------------------- */

/* Returns the name of a call in the list: without what all names begin with. It stays valid until the next call. */
const char *uvd_replay_listed_name(const char *name);
/* Returns the name of an output as the list and programs have it: "cqe" of "resp_cqe". */
const char *uvd_replay_output_word(const char *name);
const char *uvd_replay_result_text(long result);
/* The recorded answer to the call and the device's: what the comparison asks about, but for gives and of.handle. */
struct uvd_prog_answers uvd_replay_answers(const struct uvd_replay_call *c);
/* Return true if the two agree, or may differ. now: NULL if it is not written. */
bool uvd_replay_result_agrees(const struct uvd_replay_call *c, long was, long now);
bool uvd_replay_output_agrees(const struct uvd_replay_call *c, const char *name, const json_t *was, const json_t *now,
			      bool equal);

/* ---- compare.c, cq.c --------------------------------------------------------------------------------------------- */

/* Is it this write() command, in whatever form? */
bool uvd_replay_is_command(const struct uvd_replay_call *c, unsigned int number);
/* Notes a difference of the current call. */
void uvd_replay_differs(struct uvd_replay *r, const struct uvd_trace_decoded *was, const char *item,
			const char *expected, const char *result);
/* Notes that the call is not made. What it would have created is lost. */
void uvd_replay_skip(struct uvd_replay_call *c);
/* Compares what the call returned, and learns the numbers of new objects. */
void uvd_replay_compare(struct uvd_replay_call *c, long result);

/* Is it POLL_CQ? It may come before the completions. */
bool uvd_replay_is_poll(const struct uvd_replay_call *c);
/* Makes a POLL_CQ until it has as many completions as the trace. Takes the call if it returns true. */
bool uvd_replay_poll(struct uvd_replay_call *c);
/* Waits for the rest of the completions of a CQ (by its recorded handle), or of all CQs of the file, and compares. */
void uvd_replay_cq_end(struct uvd_replay *r, const struct uvd_replay_file *f, const uint32_t *handle,
		       const struct uvd_trace_decoded *was);

/* ---- cm.c, event.c, late.c: the node rdma_cm ---------------------------------------------------------------------- */

/* Builds a command from its first piece. */
void uvd_replay_cm_build(struct uvd_replay_call *c, const struct uvd_piece *first);
/* Replaces the port in a socket address that the recorded device chose. */
void uvd_replay_port(struct uvd_replay_call *c, uint8_t *addr, size_t len);
/* Learns the ports in the answer to a query. */
void uvd_replay_ports_learn(struct uvd_replay_call *c);
/* MIGRATE_ID has succeeded: the identifier is the other file's. */
void uvd_replay_migrated(struct uvd_replay_call *c);
/* Is it a command of this number? */
bool uvd_replay_is_cm(const struct uvd_replay_call *c, unsigned int number);

/* Is it a GET_EVENT that got an event? *was is that. Checks the record. */
bool uvd_replay_gets_event(const struct uvd_trace_call *call, struct rdma_ucm_event_resp *was);
/* Has the device told what stands for this event? Waits at most `ms` for it. */
bool uvd_replay_event_comes(const struct uvd_replay *r, struct uvd_replay_file *f,
			    const struct rdma_ucm_event_resp *was, int ms);
/* Makes a GET_EVENT: takes the event that stands for the recorded one. Takes the call if it returns true. */
bool uvd_replay_event(struct uvd_replay_call *c);
/* The events of an identifier, by its number now, go with it to another file. */
void uvd_replay_events_move(struct uvd_replay_file *from, struct uvd_replay_file *to, uint32_t id);
void uvd_replay_events_free(struct uvd_replay_file *f);

/* trace.c: is the file one of rdma_cm? */
bool uvd_replay_opens_cm(const struct uvd_trace_open *open_was);
/* Replays a record. late.c does so with all of them, in an order in which each event can come. */
bool uvd_replay_record(struct uvd_replay *r, const struct uvd_trace_record *record);
/* Both return false after a message if nothing more can be replayed. */
bool uvd_replay_in_order(struct uvd_replay *r, const struct uvd_trace_record *record);
/* Replays the records that still wait: the trace ends, or one of its files. */
bool uvd_replay_late_end(struct uvd_replay *r);
void uvd_replay_late_free(struct uvd_replay *r);
/* Returns the open file of the device, which is opened now if it has not been; NULL after a message. */
struct uvd_replay_file *uvd_replay_file_of(struct uvd_replay *r, const struct uvd_trace_open *open_was);

/*
 * Begins the time that the device has for one call; uvd_replay_answered() ends it. Only what the device does counts:
 * between two calls the replayer may wait for whoever reads its output.
 */
void uvd_replay_asks(const struct uvd_replay *r, const char *what);
void uvd_replay_answered(void);

/* ---- trace.c ----------------------------------------------------------------------------------------------------- */

/* The options of the command line. */
struct uvd_replay_options {
	const char *device, *control, *file;
	bool json, show;
	unsigned int hang; /* seconds that a call may take */
};

/* Is a file that begins with these bytes a trace? */
bool uvd_replay_is_trace(const void *start, size_t len);
/* Replays it and prints the differences. Returns the exit status. */
int uvd_replay_trace(const char *who, const struct uvd_replay_options *o);

#endif
