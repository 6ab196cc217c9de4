/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client's memory during a call, from the accesses that the trace has. */
#include <stdlib.h>
#include <string.h>

#include "reader.h"

static size_t piece_size(const struct uvd_piece *p)
{
	return sizeof(*p) + ((p->kept + (size_t)7) & ~(size_t)7);
}

bool uvd_image_ok(const struct uvd_trace_image *image)
{
	size_t at = 0;

	while (at < image->len) {
		const struct uvd_piece *p = (const void *)(image->pieces + at);

		if (image->len - at < sizeof(*p) || p->kept > p->len || p->kept > image->len - at - sizeof(*p) ||
		    piece_size(p) > image->len - at)
			return false;
		at += piece_size(p);
	}
	return true;
}

const struct uvd_piece *uvd_image_first(const struct uvd_trace_image *image)
{
	return image->len ? (const void *)image->pieces : NULL;
}

const struct uvd_piece *uvd_image_next(const struct uvd_trace_image *image, const struct uvd_piece *p)
{
	const size_t at = (const uint8_t *)p - image->pieces + piece_size(p);

	return at < image->len ? (const void *)(image->pieces + at) : NULL;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Bytes of the client's memory. Parts do not overlap. */
struct image_part {
	uint64_t addr;
	size_t len;
	const uint8_t *bytes;
};

struct uvd_image_index {
	uint64_t steps;
	struct image_parts {
		size_t num;
		struct image_part *part; /* by address */
	} of[UVD_PIECE_WRITTEN + 1];
};

/* The state while the parts of one kind are built: the bounds of all pieces cut the memory into cells. */
struct image_cells {
	size_t num_pieces, num_bounds;
	const struct uvd_piece **piece; /* as they stand in the trace */
	uint64_t *bound; /* sorted; cell i is between bounds i and i + 1 */
	const struct uvd_piece **owner; /* of each cell: the last piece that has it, or NULL */
	size_t *next; /* of each cell: it or a later one that may have no owner yet */
};

static int image_bound_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* No piece reaches beyond the last address. */
static uint64_t image_piece_end(const struct uvd_piece *p)
{
	return p->kept < UINT64_MAX - p->addr ? p->addr + p->kept : UINT64_MAX;
}

/* Returns the last bound that is not greater than addr. The first one is not. */
static size_t image_bound_find(const struct image_cells *c, uint64_t addr)
{
	size_t low = 0, high = c->num_bounds;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (c->bound[middle] <= addr)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Returns the first cell from `cell` on that has no owner, or one behind the last cell. */
static size_t image_cell_free(struct uvd_image_index *index, struct image_cells *c, size_t cell)
{
	while (c->next[cell] != cell) {
		c->next[cell] = c->next[c->next[cell]]; /* halves the way for the next search */
		cell = c->next[cell];
		index->steps++;
	}
	return cell;
}

/* Gives each cell its owner. The last piece comes first, so no cell changes its owner. */
static void image_cells_own(struct uvd_image_index *index, struct image_cells *c)
{
	for (size_t i = 0; i < c->num_bounds; i++)
		c->next[i] = i;
	for (size_t i = c->num_pieces; i--;) {
		const uint64_t end = image_piece_end(c->piece[i]);
		size_t cell = image_cell_free(index, c, image_bound_find(c, c->piece[i]->addr));

		while (cell + 1 < c->num_bounds && c->bound[cell] < end) {
			c->owner[cell] = c->piece[i];
			c->next[cell] = cell + 1;
			cell = image_cell_free(index, c, cell + 1);
			index->steps++;
		}
		index->steps++;
	}
}

static void image_parts_make(struct uvd_image_index *index, const struct image_cells *c, struct image_parts *parts)
{
	for (size_t i = 0; i + 1 < c->num_bounds; i++) {
		const struct uvd_piece *p = c->owner[i];

		index->steps++;
		if (p && c->bound[i + 1] > c->bound[i])
			parts->part[parts->num++] =
				(struct image_part){ c->bound[i], c->bound[i + 1] - c->bound[i],
						     (const uint8_t *)(p + 1) + (c->bound[i] - p->addr) };
	}
}

/* Lists the pieces of a kind that have bytes, and their bounds. */
static void image_cells_fill(const struct uvd_trace_image *image, uint32_t kind, struct image_cells *c)
{
	for (const struct uvd_piece *p = uvd_image_first(image); p; p = uvd_image_next(image, p)) {
		if (p->kind != kind || !p->kept)
			continue;
		c->piece[c->num_pieces++] = p;
		c->bound[c->num_bounds++] = p->addr;
		c->bound[c->num_bounds++] = image_piece_end(p);
	}
	qsort(c->bound, c->num_bounds, sizeof(*c->bound), image_bound_compare);
}

static bool image_index_kind(struct uvd_trace_image *image, uint32_t kind)
{
	const size_t most = image->len / sizeof(struct uvd_piece) + 1;
	struct image_parts *parts = &image->index->of[kind];
	struct image_cells c = { .piece = calloc(most, sizeof(*c.piece)), .bound = calloc(2 * most, sizeof(*c.bound)) };
	bool ok = c.piece && c.bound;

	if (ok)
		image_cells_fill(image, kind, &c);
	c.owner = calloc(c.num_bounds + 1, sizeof(*c.owner));
	c.next = calloc(c.num_bounds + 1, sizeof(*c.next));
	parts->part = calloc(c.num_bounds + 1, sizeof(*parts->part));
	ok = ok && c.owner && c.next && parts->part;
	if (ok && c.num_bounds) {
		image_cells_own(image->index, &c);
		image_parts_make(image->index, &c, parts);
	}
	free(c.piece);
	free(c.bound);
	free(c.owner);
	free(c.next);
	return ok;
}

bool uvd_image_index(struct uvd_trace_image *image)
{
	image->index = calloc(1, sizeof(*image->index));
	if (image->index && image_index_kind(image, UVD_PIECE_READ) && image_index_kind(image, UVD_PIECE_WRITTEN))
		return true;
	uvd_image_index_free(image);
	return false;
}

void uvd_image_index_free(struct uvd_trace_image *image)
{
	for (unsigned int kind = 0; image->index && kind <= UVD_PIECE_WRITTEN; kind++)
		free(image->index->of[kind].part);
	free(image->index);
	image->index = NULL;
}

uint64_t uvd_image_steps(const struct uvd_trace_image *image)
{
	return image->index->steps;
}

/* Returns the number of the first part that ends behind addr. */
static size_t image_part_find(struct uvd_image_index *index, const struct image_parts *parts, uint64_t addr)
{
	size_t low = 0, high = parts->num;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct image_part *part = &parts->part[middle];

		index->steps++;
		if (addr >= part->addr && addr - part->addr >= part->len)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t uvd_image_get(const struct uvd_trace_image *image, enum uvd_piece_kind kind, uint64_t addr, void *to, size_t len)
{
	struct uvd_image_index *index = image->index;
	const struct image_parts *parts = &index->of[kind];
	size_t got = 0, n;

	for (size_t i = image_part_find(index, parts, addr); got < len && i < parts->num; i++) {
		const struct image_part *part = &parts->part[i];

		index->steps++;
		if (addr + got < part->addr)
			break;
		n = part->len - (addr + got - part->addr);
		if (n > len - got)
			n = len - got;
		memcpy((uint8_t *)to + got, part->bytes + (addr + got - part->addr), n);
		got += n;
	}
	return got;
}
