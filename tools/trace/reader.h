/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl trace: reads a trace (src/trace/format.h), and prints its calls by the names of the parse tree in it. Nothing
 * in a trace is trusted.
 */
#ifndef UVD_TOOLS_TRACE_READER_H
#define UVD_TOOLS_TRACE_READER_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../call/script.h"
#include "trace/trace.h"

/* ---- reader.c ---------------------------------------------------------------------------------------------------- */

/* A parse tree of the trace. The script makes the names of call/names.c work on it. */
struct uvd_trace_names {
	struct uvd_trace_names *next;
	uint64_t tree;
	uint32_t total, got; /* rows; complete if they are equal */
	uint32_t got_roles;
	struct uvd_script script;
	struct uvd_script_said said; /* by the script */
};

/* An open file of a client. */
struct uvd_trace_open {
	struct uvd_trace_open *next;
	struct uvd_trace_file file;
	const struct uvd_trace_names *names; /* NULL: the trace does not have its tree */
	/*
	 * Of handles, by number as text: {"object": id, "note": text, "gone": bool}. Of descriptors, by "fd NUMBER":
	 * {"object": id, "number": of its kind, from 0}. "made OBJECT": how many descriptors of this kind there were.
	 */
	json_t *handles;
};

struct uvd_trace_reader {
	FILE *from;
	FILE *copy; /* gets a copy of what was read, or NULL */
	const char *what; /* for messages: the file's name */
	const volatile sig_atomic_t *stop; /* not 0: the end of what can be read is the end, wherever it is; or NULL */
	bool explanations; /* uvd_trace_next() returns them, too */
	uint32_t row_size;
	struct uvd_trace_names *names;
	unsigned int num_names, num_opens;
	struct uvd_trace_open *opens;
	uint8_t *record; /* the current one */
	size_t room;
};

/*
 * source.c: set r->from and r->what. who: "trace" or "explain", the command that asks and that the daemon gets. control: NULL for the
 * default. pid: 0 for all. Return false after a message.
 */
bool uvd_trace_from_daemon(struct uvd_trace_reader *r, const char *who, const char *control, uint32_t pid);
bool uvd_trace_from_file(struct uvd_trace_reader *r, const char *who, const char *path);
/* Reads the header. Returns false after a message. Pair it with uvd_trace_close_reader() in any case. */
bool uvd_trace_open_reader(struct uvd_trace_reader *r);
/*
 * Reads the next record of a kind that the caller prints: a call, a file, a close, how much was lost, an entry,
 * or if r->explanations is set an explanation. Returns NULL at
 * the end; *bad is true after a message that the rest cannot be read.
 */
const struct uvd_trace_record *uvd_trace_next(struct uvd_trace_reader *r, bool *bad);
void uvd_trace_close_reader(struct uvd_trace_reader *r);
/* Finds an open file, or NULL. */
struct uvd_trace_open *uvd_trace_find(struct uvd_trace_reader *r, uint64_t file);

/* ---- image.c ----------------------------------------------------------------------------------------------------- */

struct uvd_image_index;

/* The client's memory, as far as a call has read or written it. */
struct uvd_trace_image {
	const uint8_t *pieces;
	size_t len;
	struct uvd_image_index *index;
};

/* Are the pieces of a call well-formed? */
bool uvd_image_ok(const struct uvd_trace_image *image);
/* Returns the first piece, or NULL. */
const struct uvd_piece *uvd_image_first(const struct uvd_trace_image *image);
/* Returns the piece after p, or NULL. */
const struct uvd_piece *uvd_image_next(const struct uvd_trace_image *image, const struct uvd_piece *p);
/*
 * Sorts what the pieces have, so that a hostile trace with many small pieces costs no more time than it has bytes. Call it
 * once, before uvd_image_get(). Returns false if memory is short. Free it with uvd_image_index_free().
 */
bool uvd_image_index(struct uvd_trace_image *image);
void uvd_image_index_free(struct uvd_trace_image *image);
/* Returns how many pieces, and parts of them, the index and all copies have looked at: for tests. */
uint64_t uvd_image_steps(const struct uvd_trace_image *image);
/*
 * Copies up to len bytes at addr that were read (or written); of bytes that several pieces have, those of the last one.
 * Returns how many, without a gap, are known.
 */
size_t uvd_image_get(const struct uvd_trace_image *image, enum uvd_piece_kind kind, uint64_t addr, void *to,
		     size_t len);

/* ---- decode.c, write.c, handles.c -------------------------------------------------------------------------------- */

/* A call, or an entry of a mapped queue, by name. */
struct uvd_trace_decoded {
	bool entry; /* then `call` is `stand_in`, which has its file, time and process */
	struct uvd_trace_call stand_in;
	const struct uvd_trace_call *call;
	struct uvd_trace_image image;
	struct uvd_trace_open *open; /* or NULL */
	const struct uvd_script *script; /* names; or NULL */
	const struct uverbsd_tree_row *row; /* of the method or command, or NULL */
	const char *front; /* "write", "invoke_write" or "ioctl" */
	char object[UVD_SHORT_NAME], verb[UVD_SHORT_NAME];
	json_t *in, *out; /* values by name */
	json_t *handles; /* of values that are handles: the name of the object, by the value's name */
	json_t *uses; /* the handles of objects that the call names: the first of each type, by the type's number */
	json_t *words; /* what the text shows for other values: GIDs, and numbers of QPs */
	json_t *roles; /* of outputs: enum uvd_role, by the output's name; one that is not there has no role */
	json_t *statuses; /* of the completions that the call tells, or the entry has: their values by name */
	json_t *qp_type; /* the value that is the type of the QP that the call creates, or NULL */
	uint32_t created; /* the handle of the object that the call created */
	uint16_t created_object; /* its type, UVERBS_OBJECT_... */
	char created_name[UVD_SHORT_NAME]; /* of the value that is that handle */
	bool creates, destroys, renews;
	bool bare; /* an INVOKE_WRITE without a request */
	uint32_t destroyed; /* the handle of the object that the call destroys */
	uint16_t destroyed_object;
	uint32_t renewed; /* the handle of the object to which the call gives other numbers */
};

/* Makes the objects that have its values. Decoding does that first. */
void uvd_trace_decoded_start(struct uvd_trace_decoded *d);
/* Decodes a call. Returns false if its record is malformed. Pair it with uvd_trace_decoded_free(). */
bool uvd_trace_decode(struct uvd_trace_reader *r, const struct uvd_trace_call *call, struct uvd_trace_decoded *d);
void uvd_trace_decoded_free(struct uvd_trace_decoded *d);
/* entry.c: decodes an entry. Pair it with uvd_trace_decoded_free(), too. */
void uvd_trace_decode_entry(struct uvd_trace_reader *r, const struct uvd_trace_entry *e, struct uvd_trace_decoded *d);

/* A write() command, by whatever front: its request, and where its response is. */
struct uvd_trace_command {
	const uint8_t *request;
	size_t request_len;
	uint64_t response;
	size_t response_len;
};
/* Finds the row of a command by its number in the header, with flags. */
const struct uverbsd_tree_row *uvd_trace_command_row(const struct uvd_script *s, uint32_t command);
/* Adds the fields of a command's request and response. */
void uvd_trace_command_fields(struct uvd_trace_decoded *d, const struct uvd_trace_command *c);
/*
 * Adds a work request of `size` bytes as `name`, with as many scatter/gather elements from `sges` as it says. Returns how many
 * bytes of them it has.
 */
size_t uvd_trace_work_request(struct uvd_trace_decoded *d, const char *name, const struct uvd_struct *of,
			      const uint8_t *wr, size_t size, const uint8_t *sges, size_t len);
/* Decodes a call by write(). */
void uvd_trace_write(struct uvd_trace_decoded *d);

/*
 * Adds the fields of a struct of which `data` has the first `len` bytes, but those that the kernel does not read; names the
 * objects in them, and notes which the call creates, destroys and renews. to: d->in or d->out.
 */
void uvd_trace_struct(struct uvd_trace_decoded *d, json_t *to, const char *prefix, const struct uvd_struct *of,
		      const uint8_t *data, size_t len);
/* Returns the role of an output. */
enum uvd_role uvd_trace_output_role(const struct uvd_trace_decoded *d, const char *name);
/* Adds `len` bytes as a value: a struct, a word, a number or hexadecimal. */
void uvd_trace_value(struct uvd_trace_decoded *d, json_t *to, const char *name, const struct uvd_attr_fields *fields,
		     const uint8_t *data, size_t len);
/* Says that the value `name` is a handle of this object. UVD_NO_OBJECT: of whichever it is. */
void uvd_trace_handle(struct uvd_trace_decoded *d, const char *name, uint16_t object, uint32_t handle);
/* Reads the handle of the first object of this type that the call names. Returns false if it names none. */
bool uvd_trace_uses(const struct uvd_trace_decoded *d, uint16_t object, uint32_t *handle);
/* As uvd_trace_handle(), of a descriptor. */
void uvd_trace_fd(struct uvd_trace_decoded *d, const char *name, uint16_t object, int32_t fd);
/* The call has created the object that this descriptor stands for: remembers it, and says so. */
void uvd_trace_fd_created(struct uvd_trace_decoded *d, const char *name, uint16_t object, int32_t fd);
/* Remembers what the call created or destroyed. */
void uvd_trace_remember(struct uvd_trace_decoded *d);
/* Returns what was noted of the handle's object at its creation ("RC"), or NULL. */
const char *uvd_trace_type_of(const struct uvd_trace_decoded *d, uint32_t handle);

/* ---- text.c, summary.c ------------------------------------------------------------------------------------------- */

void uvd_trace_print(FILE *to, const struct uvd_trace_decoded *d);
void uvd_trace_print_json(FILE *to, const struct uvd_trace_decoded *d);
/* Returns the JSON of a call or an entry, and of an explanation; the caller frees it. */
json_t *uvd_trace_json(const struct uvd_trace_decoded *d);
json_t *uvd_trace_why_json(struct uvd_trace_reader *r, const struct uvd_trace_why *why);
/* Prints an explanation. */
void uvd_trace_print_why(FILE *to, struct uvd_trace_reader *r, const struct uvd_trace_why *why, bool as_json);
/* Prints an object as a line, and frees it. */
void uvd_trace_print_line(FILE *to, json_t *o);
/* Prints a record that is not a call. */
void uvd_trace_print_other(FILE *to, struct uvd_trace_reader *r, const struct uvd_trace_record *record, bool as_json);

/* Counts and times by verb. */
void uvd_trace_summary_add(json_t *summary, const struct uvd_trace_decoded *d);
void uvd_trace_summary_print(FILE *to, json_t *summary, bool as_json);

/* ---- filter.c ---------------------------------------------------------------------------------------------------- */

/*
 * Is it a call that the stock library makes to learn what the device has, and was that refused? That is the probe for INVOKE_WRITE, a
 * method or command that the device lacks, or an empty slot of a GID table.
 */
bool uvd_trace_is_probe(const struct uvd_trace_decoded *d);
/* Is it an open file of the device with this name (rxe0, uverbs0, or the path of its node)? device: NULL: of any. open: may be NULL. */
bool uvd_trace_is_of(const struct uvd_trace_open *open, const char *device);
/* Does -e FILTER let the call pass? NULL: all pass. */
bool uvd_trace_passes(const char *filter, const struct uvd_trace_decoded *d);
/* The same for an explanation, which `failed` and `why` match. */
bool uvd_trace_passes_why(const char *filter);

/* ---- why.c ------------------------------------------------------------------------------------------------------- */

/* --why: the last calls of each QP, for the explanations that name one. */
struct uvd_trace_history;

struct uvd_trace_history *uvd_trace_history_new(bool as_json);
void uvd_trace_history_free(struct uvd_trace_history *h);
/* Takes a call or an entry. */
void uvd_trace_history_add(struct uvd_trace_history *h, const struct uvd_trace_decoded *d);
/* Prints an explanation, then the calls of its QP and those of the peer. */
void uvd_trace_history_print(struct uvd_trace_history *h, FILE *to, struct uvd_trace_reader *r,
			     const struct uvd_trace_why *why);

#endif
