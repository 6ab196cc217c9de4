/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl call: calls methods and write() commands of an open device by the names of its tree. A call is a line of
 * words: OBJECT METHOD [--ATTRIBUTE VALUE...].
 */
#ifndef UVD_TOOLS_CALL_SCRIPT_H
#define UVD_TOOLS_CALL_SCRIPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call/call.h"
#include "../tree/view.h"
#include "util/util.h"

/* A handle, or another number, that a line of the script saved: $name. */
struct uvd_variable {
	char name[32];
	int64_t value;
	void *memory; /* what `memory SIZE` allocated, or NULL */
};

/* The output of a line. */
struct uvd_script_said {
	char message[512]; /* the last message, without its line number */
	bool printed; /* the line's JSON object */
};

/* One open file of a device, and what the calls on it share. */
struct uvd_script {
	struct uvd_tree_view view;
	int fd;
	unsigned int line; /* the line of the script; 0: the call is on the command line */
	bool json;
	bool keep_going;
	bool no_context; /* the first call is not preceded by GET_CONTEXT */
	bool has_ioctl;
	bool tells_tree; /* the device answered the tree query */
	bool has_context; /* GET_CONTEXT was called */
	struct uvd_variable *variables;
	size_t num_variables;
	struct uvd_script_said *said;
};

struct uvd_bytes {
	uint8_t *data;
	size_t len;
};

/* ---- script.c ---------------------------------------------------------------------------------------------------- */

/* Opens the device and learns its tree. Returns false after a message. Pair it with uvd_script_close() in any case. */
bool uvd_script_open(struct uvd_script *s, const char *node);
void uvd_script_close(struct uvd_script *s);
/* Runs one line, split into words: a call, which `NAME =` may precede. Returns false if it failed, after a message. */
bool uvd_script_run(struct uvd_script *s, unsigned int num, char **words);
/* Runs the lines of a file, which the caller owns. Returns false if one failed. */
bool uvd_script_run_file(struct uvd_script *s, FILE *file);
/* Prints a message with the line's number on stderr. */
void uvd_script_complain(const struct uvd_script *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- names.c ----------------------------------------------------------------------------------------------------- */

enum { UVD_SHORT_NAME = 64 };

/*
 * Finds the rows of an object and of its method or command. `words` are OBJECT and METHOD. A method comes before a
 * command of the same short name, unless the device has no ioctl. Returns NULL after a message.
 */
const struct uvd_tree_entry *uvd_find_call(const struct uvd_script *s, char **words);
/* Finds the row of an object. Returns NULL after a message. */
const struct uverbsd_tree_row *uvd_find_object(const struct uvd_script *s, const char *word);
/* Is this a method or a command of the object, which the device can be asked for? */
bool uvd_is_callable(const struct uvd_script *s, const struct uverbsd_tree_row *row, uint16_t object);
/* Makes the shortest name that finds this method or command. */
void uvd_unique_method(const struct uvd_script *s, const struct uverbsd_tree_row *row, char name[UVD_SHORT_NAME]);
/* Is `word` the name of this attribute of the method, or a short form of it? */
bool uvd_attr_is_called(const struct uverbsd_tree_row *method, const struct uverbsd_tree_row *attr, const char *word);
/* Make the shortest form of a name: "CREATE" of UVERBS_METHOD_CQ_CREATE; "cqe" of UVERBS_ATTR_CREATE_CQ_CQE. */
void uvd_short_method(const struct uvd_script *s, const struct uverbsd_tree_row *row, char name[UVD_SHORT_NAME]);
void uvd_short_attr(const struct uverbsd_tree_row *method, const struct uverbsd_tree_row *attr,
		    char name[UVD_SHORT_NAME]);
void uvd_short_object(const char *object, char name[UVD_SHORT_NAME]);
/* The same as uvd_short_method(), of the full names of an object and of its method or command. */
void uvd_short_verb(const char *object, const char *verb, char name[UVD_SHORT_NAME]);

/* Complains: "OWNER has no WHAT `wrong`; the nearest names are a, b, c". */
void uvd_nearest_complain(const struct uvd_nearest *n, const struct uvd_script *s, const char *owner, const char *what);

/* ---- values.c ---------------------------------------------------------------------------------------------------- */

/* Parse a value. They return false after a message, which names the attribute by `what`. */
bool uvd_value_number(const struct uvd_script *s, const char *what, const char *text, uint64_t *value);
/* Parses a number of `size` bytes (1, 2, 4 or 8) and writes it to `to`. */
bool uvd_value_sized(const struct uvd_script *s, const char *what, const char *text, void *to, size_t size);
/* Parses a size of memory, up to 0xffff bytes. */
bool uvd_value_size(const struct uvd_script *s, const char *what, const char *text, size_t *size);
/* Parses bytes: parts joined by '+', each hexadecimal or numbers, "u32:16,$pd". The caller frees bytes->data. */
bool uvd_value_bytes(const struct uvd_script *s, const char *what, const char *text, struct uvd_bytes *bytes);
/* Is this a number of `size` bytes, and not a struct? */
bool uvd_is_number_size(size_t size);
/* Returns the length of an output without the zeros at its end: at least min_len, in words of 4 bytes. */
size_t uvd_used_len(const uint8_t *data, size_t len, size_t min_len);
/* Adds an output of `len` bytes to the results: a number if it has the size of one, else hexadecimal. */
void uvd_result_set(json_t *results, const char *name, const void *data, size_t len);
void uvd_result_set_hex(json_t *results, const char *name, const void *data, size_t len);

/* Find a variable (NULL: there is none), and set one. uvd_variable_set() returns false after a message. */
const struct uvd_variable *uvd_variable_find(const struct uvd_script *s, const char *name);
bool uvd_variable_set(struct uvd_script *s, const char *name, int64_t value, void *memory);

/* ---- method.c, write.c ------------------------------------------------------------------------------------------- */

/* The outcome of a call that was made. */
struct uvd_outcome {
	int err; /* a negative errno */
	json_t *results; /* by short names, in the order of the tree */
	bool creates; /* it creates an object: if it succeeded, `handle` is the handle or the descriptor */
	int64_t handle;
};

/*
 * Calls a method, or a write() command, with arguments: pairs of --ATTRIBUTE and VALUE. Returns false, after a message,
 * if there was no call because the arguments are wrong. must_create: it is wrong, too, if the call creates nothing.
 */
bool uvd_call_method(struct uvd_script *s, const struct uvd_tree_entry *method, unsigned int num, char **args,
		     bool must_create, struct uvd_outcome *out);
bool uvd_call_command(struct uvd_script *s, const struct uvd_tree_entry *command, unsigned int num, char **args,
		      bool must_create, struct uvd_outcome *out);

/* ---- fields.c ---------------------------------------------------------------------------------------------------- */

/* Adds an output of `len` bytes to the results: in words if it has some, else as uvd_result_set(). words: or NULL. */
void uvd_words_result(json_t *results, const char *name, const struct uvd_words *words, const void *data, size_t len);
/* Sets a field of the struct at `data` from text. Returns false after a message. */
bool uvd_field_set(const struct uvd_script *s, const struct uvd_field *f, const char *text, uint8_t *data);
/* Sets the fields that "FIELD=VALUE,FIELD=VALUE" names. Returns false after a message, which names the struct `what`. */
bool uvd_struct_parse(const struct uvd_script *s, const char *what, const struct uvd_struct *of, const char *text,
		      uint8_t *data);
/* Adds a field of the struct at `data` to the results: in words if it has some, a number, or hexadecimal. */
void uvd_field_result(json_t *results, const char *name, const struct uvd_field *f, const uint8_t *data);
/* Adds the fields in the first `len` bytes of the struct to the results, as "PREFIX.FIELD", or "FIELD" if it is "". */
void uvd_struct_results(json_t *results, const char *prefix, const struct uvd_struct *of, const uint8_t *data,
			size_t len);
/* Makes the tables as JSON, for `uverbsctl tree --fields`; and a struct and a value of them. */
json_t *uvd_fields_json(void);
json_t *uvd_struct_json(const struct uvd_struct *of);
json_t *uvd_value_json(const struct uvd_attr_fields *a);

/* ---- list.c ------------------------------------------------------------------------------------------------------ */

/*
 * Prints what can follow [DEVICE] [OBJECT [METHOD [--ATTRIBUTE]]], one name a line: devices and objects, methods,
 * attributes, or the words of a value. Without a message: stderr is closed.
 */
void uvd_call_list(struct uvd_script *s, const char *control, int num, char **words);

/* ---- tail.c ------------------------------------------------------------------------------------------------------ */

/*
 * The flexible array of a request, which repeated arguments fill: work requests and their scatter/gather elements,
 * handles of WQs, or specs of a flow. The caller sets `of`, and the rest to 0.
 */
struct uvd_tail {
	const struct uvd_struct *of; /* the request */
	struct uvd_bytes elements, sges;
	unsigned int num, num_sges;
	bool counts_sges; /* the last element's num_sge was not given */
};

/* Is `word` the name of the array, or "sge" of a request with work requests? */
bool uvd_tail_is_called(const struct uvd_tail *tail, const char *word);
/* Adds what one argument says. Returns false after a message. */
bool uvd_tail_add(struct uvd_tail *tail, const struct uvd_script *s, const char *word, const char *text);
/* Does the request's field count the elements of the array, or their bytes? Sets *value to that. */
bool uvd_tail_count(const struct uvd_tail *tail, const struct uvd_field *f, uint64_t *value);
/* Copies the elements, then the scatter/gather elements. */
void uvd_tail_copy(const struct uvd_tail *tail, uint8_t *to);
void uvd_tail_free(struct uvd_tail *tail);

#endif
