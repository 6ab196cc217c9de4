/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ioctl trees from the schema. */
#include <string.h>

#include "fuzz/client.h"
#include "fuzz/schema_internal.h"

enum { HDR = sizeof(struct ib_uverbs_ioctl_hdr), ATTR = sizeof(struct ib_uverbs_attr), INLINE = 8, MOST_ATTRS = 64 };

/* A tree that is being made or changed: its attributes, and what they point to. */
struct tree {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[MOST_ATTRS];
	unsigned int num;
	size_t data_len, out_len; /* bytes used at FUZZ_DATA and FUZZ_OUT */
	uint8_t data[FUZZ_MAX_INPUT];
};

enum { MOST_DATA = FUZZ_MAX_CALL - HDR - MOST_ATTRS * ATTR };

/* Reserves bytes at FUZZ_DATA. Returns them, zeroed, and their address in *addr; NULL: there is no room. */
static uint8_t *tree_data(struct tree *t, size_t len, __u64 *addr)
{
	uint8_t *at = t->data + t->data_len;

	if (t->data_len + len + 8 > MOST_DATA)
		return NULL;
	memset(at, 0, len + 8);
	*addr = FUZZ_DATA + t->data_len;
	t->data_len += (len + 7) & ~(size_t)7;
	return at;
}

/* A size that the row accepts. */
static uint16_t tree_length(struct fuzz_gen *gen, const struct uvd_attr_row *row)
{
	if (row->len == UVD_LEN_ANY)
		return row->min_len + fuzz_any(gen, 5) * 8;
	return fuzz_chance(gen, 80) ? row->len : row->min_len + fuzz_any(gen, row->len - row->min_len + 1);
}

static void fill_in(struct fuzz_gen *gen, struct tree *t, const struct uvd_attr_row *row, struct ib_uverbs_attr *attr)
{
	uint8_t *at;

	attr->len = tree_length(gen, row);
	if (attr->len <= INLINE) {
		attr->data = fuzz_number(gen);
		if (attr->len < INLINE)
			attr->data &= (1ull << attr->len * 8) - 1;
		return;
	}
	at = tree_data(t, attr->len, &attr->data);
	for (unsigned int n = at ? fuzz_any(gen, 2 + attr->len / 8) : 0; n; n--)
		fuzz_change_word(gen, at, attr->len);
}

static void fill_array(struct fuzz_gen *gen, struct tree *t, const struct uvd_attr_row *row,
		       struct ib_uverbs_attr *attr)
{
	unsigned int n = row->min_len + fuzz_any(gen, 4);
	uint8_t *at = (uint8_t *)&attr->data;

	if (n > row->len)
		n = row->len;
	attr->len = n * sizeof(uint32_t);
	if (attr->len > INLINE)
		at = tree_data(t, attr->len, &attr->data);
	for (unsigned int i = 0; at && i < n; i++)
		memcpy(at + i * 4, &(uint32_t){ fuzz_handle(gen, row->object) }, 4);
}

static void fill_attr(struct fuzz_gen *gen, struct tree *t, const struct uvd_attr_row *row, struct ib_uverbs_attr *attr)
{
	unsigned int elem;

	switch (row->type) {
	case UVD_ATTR_PTR_OUT:
		attr->len = tree_length(gen, row);
		attr->data = FUZZ_OUT + t->out_len;
		t->out_len += (attr->len + 7) & ~7;
		break;
	case UVD_ATTR_IDR:
	case UVD_ATTR_FD:
		attr->data = row->access == UVD_UOBJ_NEW ? 0 : fuzz_handle(gen, row->object);
		break;
	case UVD_ATTR_IDRS_ARRAY:
		fill_array(gen, t, row, attr);
		break;
	case UVD_ATTR_RAW_FD:
		attr->data = FUZZ_FILE + fuzz_any(gen, 3);
		break;
	case UVD_ATTR_ENUM_IN:
		elem = fuzz_any(gen, row->num_elems);
		fill_in(gen, t, &row->elems[elem], attr);
		attr->attr_data.enum_data.elem_id = elem;
		break;
	default:
		fill_in(gen, t, row, attr);
	}
}

static void add_attr(struct fuzz_gen *gen, struct tree *t, const struct uvd_attr_row *row)
{
	struct ib_uverbs_attr attr = { .attr_id = row->id, .flags = UVERBS_ATTR_F_MANDATORY };

	if (t->num == MOST_ATTRS)
		return;
	fill_attr(gen, t, row, &attr);
	t->attrs[t->num++] = attr;
}

/* An INVOKE_WRITE of a command, with its struct. */
static void add_command(struct fuzz_gen *gen, struct tree *t, const struct uvd_tree_write *w)
{
	const bool response = w->row->flags & UVD_WRITE_RESP;
	struct ib_uverbs_attr *a = t->attrs;
	uint8_t *at;

	a[0] = (struct ib_uverbs_attr){ UVERBS_ATTR_CORE_IN, w->row->req_size, UVERBS_ATTR_F_MANDATORY };
	a[1] = (struct ib_uverbs_attr){ UVERBS_ATTR_CORE_OUT, w->row->resp_size, UVERBS_ATTR_F_MANDATORY };
	a[2] = (struct ib_uverbs_attr){ UVERBS_ATTR_WRITE_CMD, 8, UVERBS_ATTR_F_MANDATORY };
	a[1].data = FUZZ_OUT;
	a[2].data = fuzz_command_number(w->row);
	t->num = 3;
	at = a[0].len > INLINE ? tree_data(t, a[0].len, &a[0].data) : (uint8_t *)&a[0].data;
	if (at)
		fuzz_fill_struct(gen, w, at, a[0].len);
	if (at && response && a[0].len >= 8)
		memcpy(at, &(uint64_t){ FUZZ_OUT }, 8);
}

static void make_method(struct fuzz_gen *gen, struct tree *t, const struct fuzz_method *m)
{
	memset(t, 0, offsetof(struct tree, data));
	t->hdr = (struct ib_uverbs_ioctl_hdr){ .object_id = m->object->id,
					       .method_id = m->tm->row->id,
					       .driver_id = fuzz_schema.driver_id };
	if (fuzz_is_invoke(m)) {
		add_command(gen, t, fuzz_schema.commands[fuzz_any(gen, fuzz_schema.num_commands)]);
		return;
	}
	for (unsigned int ns = 0; ns < 2; ns++)
		for (unsigned int i = 0; i < m->tm->num_attrs[ns]; i++) {
			const struct uvd_attr_row *row = m->tm->attrs[ns][i].row;

			if (row && (row->flags & UVD_MANDATORY || fuzz_chance(gen, 40)))
				add_attr(gen, t, row);
		}
}

static size_t tree_store(struct tree *t, uint8_t *buf)
{
	size_t len = HDR + t->num * ATTR;

	t->hdr.num_attrs = t->num;
	t->hdr.length = len;
	memcpy(buf, &t->hdr, HDR);
	memcpy(buf + HDR, t->attrs, t->num * ATTR);
	memcpy(buf + len, t->data, t->data_len);
	return len + t->data_len;
}

static bool tree_load(struct tree *t, const uint8_t *data, size_t size)
{
	memset(t, 0, offsetof(struct tree, data));
	if (size < HDR)
		return false;
	memcpy(&t->hdr, data, HDR);
	if (t->hdr.length > size || t->hdr.num_attrs > MOST_ATTRS || t->hdr.length != HDR + t->hdr.num_attrs * ATTR)
		return false;
	t->num = t->hdr.num_attrs;
	memcpy(t->attrs, data + HDR, t->num * ATTR);
	t->data_len = size - t->hdr.length;
	memcpy(t->data, data + t->hdr.length, t->data_len);
	return true;
}

size_t fuzz_make_ioctl(struct fuzz_gen *gen, unsigned int n, uint8_t *buf)
{
	static struct tree t;

	make_method(gen, &t, &fuzz_schema.methods[n]);
	return tree_store(&t, buf);
}

/* ---- single changes ---------------------------------------------------------------------------------------------- */

static void tree_change_attr(struct fuzz_gen *gen, struct ib_uverbs_attr *a)
{
	switch (fuzz_any(gen, 7)) {
	case 0:
		a->len = fuzz_chance(gen, 50) ? a->len + 8 - fuzz_any(gen, 17) : fuzz_number(gen);
		break;
	case 1:
		a->attr_id = fuzz_chance(gen, 70) ? fuzz_any(gen, 24) : UVD_ID_DRIVER_NS + fuzz_any(gen, 3);
		break;
	case 2:
		a->flags ^= 1 << fuzz_any(gen, fuzz_chance(gen, 90) ? 1 : 16);
		break;
	case 3:
		a->attr_data.reserved = fuzz_any(gen, 8);
		break;
	case 4:
		a->data = fuzz_address(gen);
		break;
	case 5:
		a->data = fuzz_handle(gen, 0xffff);
		break;
	default:
		a->data = fuzz_number(gen);
	}
}

/* Adds an attribute that the method knows, or a copy of one, or removes one, or changes their order. */
static void tree_change_list(struct fuzz_gen *gen, struct tree *t)
{
	const struct fuzz_method *m = fuzz_method_of(&t->hdr);
	unsigned int a = t->num ? fuzz_any(gen, t->num) : 0, b = t->num ? fuzz_any(gen, t->num) : 0;
	const struct uvd_tree_attr *ta = m ? uvd_tree_attr(m->tm, fuzz_any(gen, m->tm->num_attrs[0] + 1)) : NULL;
	struct ib_uverbs_attr swap = t->attrs[a];

	switch (fuzz_any(gen, 4)) {
	case 0:
		if (t->num && t->num < MOST_ATTRS)
			t->attrs[t->num++] = swap;
		break;
	case 1:
		if (t->num)
			t->attrs[a] = t->attrs[--t->num];
		break;
	case 2:
		t->attrs[a] = t->attrs[b];
		t->attrs[b] = swap;
		break;
	default:
		if (ta)
			add_attr(gen, t, ta->row);
	}
}

static void tree_change_header(struct fuzz_gen *gen, uint8_t *data)
{
	struct ib_uverbs_ioctl_hdr hdr;

	memcpy(&hdr, data, HDR);
	switch (fuzz_any(gen, 4)) {
	case 0:
		hdr.method_id = fuzz_any(gen, 12) | (fuzz_chance(gen, 10) ? UVD_ID_DRIVER_NS : 0);
		break;
	case 1:
		hdr.object_id = fuzz_any(gen, 24) | (fuzz_chance(gen, 10) ? UVD_ID_DRIVER_NS : 0);
		break;
	case 2:
		hdr.num_attrs = fuzz_number(gen);
		break;
	default:
		memcpy(data, &hdr, HDR);
		fuzz_change_word(gen, data, HDR);
		return;
	}
	memcpy(data, &hdr, HDR);
}

size_t fuzz_mutate_ioctl(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	const unsigned int what = fuzz_any(gen, 100);
	static struct tree t;

	if (what < 10)
		return fuzz_make_ioctl(gen, fuzz_any(gen, fuzz_schema.num_methods), data);
	if (what < 20 || !tree_load(&t, data, size))
		return fuzz_mutate_bytes(gen, data, size, max);
	if (what < 30) {
		tree_change_header(gen, data);
		return size;
	}
	if (what < 50)
		tree_change_list(gen, &t);
	else if (what < 80 && t.num)
		tree_change_attr(gen, &t.attrs[fuzz_any(gen, t.num)]);
	else
		fuzz_change_word(gen, t.data, t.data_len);
	return HDR + t.num * ATTR + t.data_len > max ? size : tree_store(&t, data);
}
