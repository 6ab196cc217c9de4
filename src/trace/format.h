/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The format of a trace: in a file, and on the control socket. A header, then records. Numbers have the byte order of
 * the machine that wrote them. A reader treats all of it as hostile, and skips records of a kind that it does not know.
 *
 * A trace is complete in itself: before the first call on an open file it tells the file, and before that the parse tree
 * that names everything in the file's calls. A trace of explanations alone has no trees.
 */
#ifndef UVD_TRACE_FORMAT_H
#define UVD_TRACE_FORMAT_H

#include <stdint.h>
#include <uverbsd/abi.h>
#include "core/core.h"

#define UVD_TRACE_MAGIC "uvtrace\n"

enum { UVD_TRACE_VERSION = 1, UVD_TRACE_ORDER = 0x01020304 };

struct uvd_trace_header {
	char magic[8]; /* UVD_TRACE_MAGIC, without a 0 byte */
	uint32_t order; /* UVD_TRACE_ORDER; another number: another byte order */
	uint32_t version; /* a reader refuses a later one */
	uint32_t row_size; /* sizeof(struct uverbsd_tree_row) of the writer */
	uint32_t reserved;
};

enum uvd_trace_kind {
	UVD_TRACE_TREE = 1, /* struct uvd_trace_tree; rows of row_size bytes each follow */
	UVD_TRACE_FILE, /* struct uvd_trace_file */
	UVD_TRACE_CALL, /* struct uvd_trace_call; struct uvd_piece with their bytes follow */
	UVD_TRACE_CLOSE, /* struct uvd_trace_close */
	UVD_TRACE_LOST, /* struct uvd_trace_lost */
	UVD_TRACE_ENTRY, /* struct uvd_trace_entry, and its bytes; zeros up to a multiple of 8 */
	UVD_TRACE_ROLES, /* struct uvd_trace_tree; rows of its row_size bytes each follow, struct uverbsd_tree_role */
	UVD_TRACE_WHY, /* struct uvd_trace_why, and its texts; zeros up to a multiple of 8 */
};

/* Begins every record. */
struct uvd_trace_record {
	uint32_t len; /* of the record, with this struct: a multiple of 8 */
	uint32_t kind; /* enum uvd_trace_kind */
};

/*
 * A part of a tree: trees have more rows than fit into a record. The parts follow each other; then those of the roles that
 * plug-ins state of its rows, if there are any. Older versions have none.
 */
struct uvd_trace_tree {
	struct uvd_trace_record record;
	uint64_t tree; /* identifies it */
	uint32_t first, total; /* number of the first row in this record; rows of the tree */
	uint32_t num; /* rows in this record */
	union {
		uint32_t driver_id; /* of a tree */
		uint32_t row_size; /* of roles: sizeof(struct uverbsd_tree_role) of the writer */
	};
};

/* An open file. It comes again if the file gets another tree. */
struct uvd_trace_file {
	struct uvd_trace_record record;
	uint64_t file; /* identifies it */
	uint64_t tree;
	uint32_t pid; /* the process that opened it; 0: not known */
	uint32_t number; /* N of uverbsN; UINT32_MAX: another node, whose name is in ibdev */
	char ibdev[64];
	char program[16]; /* the name of the process; "": not known */
};

struct uvd_trace_call {
	struct uvd_trace_record record;
	uint64_t file;
	uint64_t begin; /* ns since 1970 */
	uint64_t duration; /* ns */
	int64_t result; /* bytes written, 0, or a negative errno */
	uint32_t pid, tid;
	uint32_t flags; /* UVD_TRACE_CALL_* */
	uint32_t pieces; /* bytes of all pieces */
};
enum { UVD_TRACE_CALL_IOCTL = 1, UVD_TRACE_CALL_CUT = 2 /* some accesses are missing */ };

struct uvd_trace_close {
	struct uvd_trace_record record;
	uint64_t file;
	uint64_t time; /* ns since 1970 */
};

/* The reader of the trace was too slow: so many records are missing here. */
struct uvd_trace_lost {
	struct uvd_trace_record record;
	uint64_t num;
};

/* An entry of a mapped queue: see struct uvd_observed_entry. */
struct uvd_trace_entry {
	struct uvd_trace_record record;
	uint64_t file;
	uint64_t time; /* ns since 1970 */
	uint32_t handle; /* of the object that the queue belongs to */
	uint16_t object; /* the id of its type */
	uint16_t kind; /* enum uvd_queue_kind */
	uint32_t bytes; /* without the zeros */
	uint32_t reserved;
};

/* An explanation: see <uverbsd/reason.h>. Its line of text follows, then its JSON, both without a final 0. */
struct uvd_trace_why {
	struct uvd_trace_record record;
	uint64_t file;
	uint64_t time; /* ns since 1970 */
	uint32_t pid; /* 0: not known */
	uint32_t text, json; /* bytes */
	uint32_t reserved;
};

/* No record is longer. */
enum { UVD_TRACE_MAX_RECORD = sizeof(struct uvd_trace_call) + UVD_PIECES_MAX };

#endif
