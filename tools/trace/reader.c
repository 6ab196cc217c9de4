/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads the records of a trace. Each length and count in it is checked before it is used. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* MAX_RECORD: longer ones are a mistake. The others limit what a wrong trace makes us keep. */
enum { MAX_RECORD = 1 << 20, MAX_ROWS = 1 << 15, MAX_NAMES = 64, MAX_OPENS = 1 << 16 };

static bool reader_complain(const struct uvd_trace_reader *r, const char *why)
{
	fprintf(stderr, "uverbsctl trace: %s: %s\n", r->what, why);
	return false;
}

/* Reads exactly len bytes. Returns false at the end. */
static bool reader_take(struct uvd_trace_reader *r, void *to, size_t len)
{
	return fread(to, 1, len, r->from) == len;
}

static bool is_stopped(const struct uvd_trace_reader *r)
{
	return r->stop && *r->stop;
}

static void reader_copy(const struct uvd_trace_reader *r, const void *bytes, size_t len)
{
	if (r->copy)
		fwrite(bytes, 1, len, r->copy);
}

bool uvd_trace_open_reader(struct uvd_trace_reader *r)
{
	struct uvd_trace_header h;

	if (!reader_take(r, &h, sizeof(h)) || memcmp(h.magic, UVD_TRACE_MAGIC, sizeof(h.magic)))
		return reader_complain(r, "it is not a trace of uverbsd");
	if (h.order != UVD_TRACE_ORDER)
		return reader_complain(r, "it was written on a machine of another byte order");
	if (h.version > UVD_TRACE_VERSION || !h.version)
		return reader_complain(r, "it was written by a later version of uverbsd");
	if (h.row_size < offsetof(struct uverbsd_tree_row, owner) || h.row_size > 4096)
		return reader_complain(r, "the size of its rows is wrong");
	r->row_size = h.row_size;
	reader_copy(r, &h, sizeof(h));
	return true;
}

/* ---- trees and files --------------------------------------------------------------------------------------------- */

static struct uvd_trace_names *names_find(struct uvd_trace_reader *r, uint64_t tree)
{
	for (struct uvd_trace_names *n = r->names; n; n = n->next)
		if (n->tree == tree)
			return n;
	return NULL;
}

static struct uvd_trace_names *names_new(struct uvd_trace_reader *r, const struct uvd_trace_tree *t)
{
	struct uvd_trace_names *n = r->num_names < MAX_NAMES ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return NULL;
	n->tree = t->tree;
	n->total = t->total;
	n->script.said = &n->said;
	n->script.fd = -1;
	n->script.has_ioctl = true;
	n->script.view.who = "uverbsctl trace";
	n->script.view.driver_id = t->driver_id;
	n->next = r->names;
	r->names = n;
	r->num_names++;
	return n;
}

/* Names are printed: a control character in one, of a hostile file, must not reach the terminal. */
static void names_clean(char *name)
{
	for (; *name; name++)
		if (!isgraph((unsigned char)*name))
			*name = '?';
}

static void names_add_row(struct uvd_trace_reader *r, struct uvd_trace_names *n, const uint8_t *from)
{
	struct uverbsd_tree_row row = {};

	memcpy(&row, from, r->row_size < sizeof(row) ? r->row_size : sizeof(row));
	row.name[sizeof(row.name) - 1] = row.owner[sizeof(row.owner) - 1] = row.ucap[sizeof(row.ucap) - 1] = '\0';
	names_clean(row.name);
	names_clean(row.owner);
	names_clean(row.ucap);
	uvd_view_add(&n->script.view, &row, 0);
}

static bool reader_tree(struct uvd_trace_reader *r, const struct uvd_trace_tree *t)
{
	const uint8_t *rows = (const uint8_t *)(t + 1);
	struct uvd_trace_names *n;

	if (t->record.len < sizeof(*t) || t->num > MAX_ROWS || t->total > MAX_ROWS ||
	    (uint64_t)t->num * r->row_size > t->record.len - sizeof(*t))
		return false;
	n = names_find(r, t->tree);
	if (!n)
		n = names_new(r, t);
	if (!n)
		return false;
	if (n->got && n->got == n->total)
		return true;
	/* A tree of which a part was lost is told again. */
	if (!t->first) {
		uvd_view_free(&n->script.view);
		n->got = n->got_roles = 0;
	}
	if (t->first != n->got)
		return true;
	if (t->num > n->total - n->got)
		return false;
	for (uint32_t i = 0; i < t->num; i++)
		names_add_row(r, n, rows + (size_t)i * r->row_size);
	n->got += t->num;
	if (n->got == n->total)
		uvd_view_finish(&n->script.view);
	return true;
}

/* Roles of a tree that is complete. Parts that do not follow each other leave fields without roles. */
static bool reader_roles(struct uvd_trace_reader *r, const struct uvd_trace_tree *t)
{
	struct uvd_trace_names *n = names_find(r, t->tree);
	const uint8_t *rows = (const uint8_t *)(t + 1);

	if (t->num > MAX_ROWS || t->total > MAX_ROWS || t->row_size < offsetof(struct uverbsd_tree_role, name) ||
	    (uint64_t)t->num * t->row_size > t->record.len - sizeof(*t))
		return false;
	if (!n || n->got != n->total || t->first != n->got_roles || t->num > MAX_ROWS - t->first)
		return true;
	for (uint32_t i = 0; i < t->num; i++) {
		struct uverbsd_tree_role row = {};

		memcpy(&row, rows + (size_t)i * t->row_size, t->row_size < sizeof(row) ? t->row_size : sizeof(row));
		uvd_view_add_role(&n->script.view, &row);
	}
	n->got_roles += t->num;
	if (n->got_roles == t->total)
		uvd_view_finish(&n->script.view);
	return true;
}

struct uvd_trace_open *uvd_trace_find(struct uvd_trace_reader *r, uint64_t file)
{
	struct uvd_trace_open *o = r->opens;

	while (o && o->file.file != file)
		o = o->next;
	return o;
}

static bool reader_file(struct uvd_trace_reader *r, const struct uvd_trace_file *f)
{
	struct uvd_trace_open *o;
	const struct uvd_trace_names *n;

	if (f->record.len < sizeof(*f))
		return false;
	o = uvd_trace_find(r, f->file);
	if (!o) {
		o = r->num_opens < MAX_OPENS ? calloc(1, sizeof(*o)) : NULL;
		if (!o)
			return false;
		o->handles = json_object();
		o->next = r->opens;
		r->opens = o;
		r->num_opens++;
	}
	n = names_find(r, f->tree);
	o->file = *f;
	o->file.ibdev[sizeof(o->file.ibdev) - 1] = o->file.program[sizeof(o->file.program) - 1] = '\0';
	o->names = n && n->got == n->total ? n : NULL;
	return true;
}

static void open_free(struct uvd_trace_open *o)
{
	json_decref(o->handles);
	free(o);
}

/* Forgets the file whose close was read before this record. */
static void reader_forget(struct uvd_trace_reader *r, const struct uvd_trace_record *record)
{
	const struct uvd_trace_close *c = (const void *)record;
	struct uvd_trace_open **p = &r->opens, *o;

	if (record->kind != UVD_TRACE_CLOSE)
		return;
	while (*p && (*p)->file.file != c->file)
		p = &(*p)->next;
	o = *p;
	if (!o)
		return;
	*p = o->next;
	r->num_opens--;
	open_free(o);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static bool reader_room(struct uvd_trace_reader *r, size_t len)
{
	uint8_t *more;

	if (len <= r->room)
		return true;
	more = realloc(r->record, len);
	if (!more)
		return false;
	r->record = more;
	r->room = len;
	return true;
}

/* Reads a record into r->record. Returns 1, 0 at the end, or -1 after a message. */
static int reader_read(struct uvd_trace_reader *r)
{
	struct uvd_trace_record head;
	size_t n = fread(&head, 1, sizeof(head), r->from);

	if (!n)
		return 0;
	if (n != sizeof(head) && is_stopped(r))
		return 0;
	if (n != sizeof(head))
		return reader_complain(r, "it ends within a record") - 1;
	if (head.len < sizeof(head) || head.len % 8 || head.len > MAX_RECORD)
		return reader_complain(r, "a record has a wrong length") - 1;
	if (!reader_room(r, head.len))
		return reader_complain(r, "ENOMEM") - 1;
	memcpy(r->record, &head, sizeof(head));
	if (!reader_take(r, r->record + sizeof(head), head.len - sizeof(head)))
		return is_stopped(r) ? 0 : reader_complain(r, "it ends within a record") - 1;
	reader_copy(r, r->record, head.len);
	return 1;
}

static bool why_ok(const struct uvd_trace_why *w)
{
	return (uint64_t)w->text + w->json <= w->record.len - sizeof(*w);
}

static bool record_ok(struct uvd_trace_reader *r, const struct uvd_trace_record *record)
{
	switch (record->kind) {
	case UVD_TRACE_TREE:
		return record->len >= sizeof(struct uvd_trace_tree) && reader_tree(r, (const void *)record);
	case UVD_TRACE_ROLES:
		return record->len >= sizeof(struct uvd_trace_tree) && reader_roles(r, (const void *)record);
	case UVD_TRACE_FILE:
		return record->len >= sizeof(struct uvd_trace_file) && reader_file(r, (const void *)record);
	case UVD_TRACE_CALL:
		return record->len >= sizeof(struct uvd_trace_call) &&
		       ((const struct uvd_trace_call *)record)->pieces == record->len - sizeof(struct uvd_trace_call);
	case UVD_TRACE_CLOSE:
		return record->len >= sizeof(struct uvd_trace_close);
	case UVD_TRACE_LOST:
		return record->len >= sizeof(struct uvd_trace_lost);
	case UVD_TRACE_ENTRY:
		return record->len >= sizeof(struct uvd_trace_entry) &&
		       ((const struct uvd_trace_entry *)record)->bytes <= record->len - sizeof(struct uvd_trace_entry);
	case UVD_TRACE_WHY:
		return record->len >= sizeof(struct uvd_trace_why) && why_ok((const void *)record);
	default: /* of a later version */
		return true;
	}
}

static bool is_printed(const struct uvd_trace_reader *r, const struct uvd_trace_record *record)
{
	if (record->kind == UVD_TRACE_WHY)
		return r->explanations;
	return record->kind >= UVD_TRACE_FILE && record->kind <= UVD_TRACE_ENTRY;
}

const struct uvd_trace_record *uvd_trace_next(struct uvd_trace_reader *r, bool *bad)
{
	const struct uvd_trace_record *record;
	int got;

	*bad = false;
	do {
		if (r->record)
			reader_forget(r, (const void *)r->record);
		got = reader_read(r);
		if (got <= 0) {
			*bad = got < 0;
			if (r->record)
				((struct uvd_trace_record *)r->record)->kind = 0;
			return NULL;
		}
		record = (const void *)r->record;
		if (!record_ok(r, record)) {
			*bad = !reader_complain(r, "a record is malformed");
			return NULL;
		}
	} while (!is_printed(r, record));
	return record;
}

void uvd_trace_close_reader(struct uvd_trace_reader *r)
{
	struct uvd_trace_names *n;
	struct uvd_trace_open *o;

	while ((n = r->names)) {
		r->names = n->next;
		uvd_view_free(&n->script.view);
		free(n);
	}
	while ((o = r->opens)) {
		r->opens = o->next;
		open_free(o);
	}
	free(r->record);
}
