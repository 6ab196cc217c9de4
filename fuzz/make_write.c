/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* write() commands from the schema. The schema has no fields of their structs: a recorded corpus has sensible ones. */
#include <string.h>

#include "fuzz/client.h"
#include "fuzz/schema_internal.h"

enum {
	HDR = sizeof(struct ib_uverbs_cmd_hdr),
	EX_HDR = HDR + sizeof(struct ib_uverbs_ex_cmd_hdr),
	ANY_OBJECT = 0xffff,
};

uint64_t fuzz_address(struct fuzz_gen *gen)
{
	static const uint32_t places[] = { FUZZ_OUT,	      FUZZ_OUT,	      FUZZ_OUT,	   FUZZ_BUFFER,
					   FUZZ_BUFFER,	      FUZZ_MESSAGE,   FUZZ_DATA,   0,
					   FUZZ_HOLE,	      FUZZ_READ_ONLY, FUZZ_SHARED, FUZZ_HOLE - 4,
					   FUZZ_READ_ONLY - 4 };

	return places[fuzz_any(gen, UVD_COUNT(places))] + (fuzz_chance(gen, 20) ? fuzz_any(gen, 4096) : 0);
}

void fuzz_change_word(struct fuzz_gen *gen, uint8_t *bytes, size_t len)
{
	uint64_t value = fuzz_number(gen);
	size_t width = 1u << fuzz_any(gen, 3);

	switch (fuzz_any(gen, 4)) {
	case 0:
		width = 4;
		value = fuzz_handle(gen, ANY_OBJECT);
		break;
	case 1:
		width = 8;
		value = fuzz_address(gen);
		break;
	}
	if (len >= width)
		memcpy(bytes + fuzz_any(gen, len / width) * width, &value, width);
}

void fuzz_fill_struct(struct fuzz_gen *gen, const struct uvd_tree_write *w, uint8_t *at, size_t len)
{
	memset(at, 0, len);
	for (unsigned int n = fuzz_any(gen, 2 + len / 8); n; n--)
		fuzz_change_word(gen, at, len);
	/* Nearly every struct names an object of its type or of the type that it is made from, often in its first words. */
	if (len >= 12)
		memcpy(at + 8, &(uint32_t){ fuzz_handle(gen, w->object->id) }, 4);
}

static void write_set_hdr(uint8_t *buf, uint32_t command, uint16_t in_words, uint16_t out_words)
{
	memcpy(buf, &(struct ib_uverbs_cmd_hdr){ command, in_words, out_words }, HDR);
}

static size_t make_plain(struct fuzz_gen *gen, const struct uvd_tree_write *w, uint8_t *buf)
{
	size_t udata = w->row->flags & UVD_WRITE_UDATA ? fuzz_any(gen, 2) * 8 : 0, len = w->row->req_size + udata;

	len = (len + 3) & ~(size_t)3;
	fuzz_fill_struct(gen, w, buf + HDR, len);
	if (w->row->flags & UVD_WRITE_RESP)
		memcpy(buf + HDR, &(uint64_t){ FUZZ_OUT }, 8);
	write_set_hdr(buf, fuzz_command_number(w->row), (HDR + len) / 4, (w->row->resp_size + udata + 3) / 4);
	return HDR + len;
}

static size_t make_extended(struct fuzz_gen *gen, const struct uvd_tree_write *w, uint8_t *buf)
{
	size_t in_words = (w->row->req_size + 7) / 8, out_words = (w->row->resp_size + 7) / 8;
	struct ib_uverbs_ex_cmd_hdr ex = { .response = out_words ? FUZZ_OUT : 0 };

	fuzz_fill_struct(gen, w, buf + EX_HDR, in_words * 8);
	write_set_hdr(buf, fuzz_command_number(w->row), in_words, out_words);
	memcpy(buf + HDR, &ex, sizeof(ex));
	return EX_HDR + in_words * 8;
}

size_t fuzz_make_write(struct fuzz_gen *gen, unsigned int n, uint8_t *buf)
{
	const struct uvd_tree_write *w = fuzz_schema.commands[n];

	return w->row->flags & UVD_WRITE_EX ? make_extended(gen, w, buf) : make_plain(gen, w, buf);
}

/* Makes the size that the header tells the real one again. */
static void write_correct_size(uint8_t *data, size_t size)
{
	struct ib_uverbs_cmd_hdr hdr;

	memcpy(&hdr, data, HDR);
	if (!(hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED))
		hdr.in_words = size / 4;
	else if (size >= EX_HDR)
		hdr.in_words = (size - EX_HDR) / 8;
	memcpy(data, &hdr, HDR);
}

static size_t write_resize(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	size_t step = 4u << fuzz_any(gen, 3), to = fuzz_chance(gen, 60) ? size + step : size - step;

	if (to > max || to < HDR || to > FUZZ_MAX_INPUT / 2)
		return size;
	if (to > size)
		memset(data + size, 0, to - size);
	if (fuzz_chance(gen, 80))
		write_correct_size(data, to);
	return to;
}

size_t fuzz_mutate_write(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	if (size < HDR + 8 || fuzz_chance(gen, 10))
		return fuzz_make_write(gen, fuzz_any(gen, fuzz_schema.num_commands), data);
	switch (fuzz_any(gen, 8)) {
	case 0: /* the header */
		fuzz_change_word(gen, data, size < EX_HDR ? HDR : EX_HDR);
		return size;
	case 1: /* the room for the response */
		memcpy(data + 6, &(uint16_t){ fuzz_any(gen, 64) }, 2);
		return size;
	case 2: /* its address, in both kinds of commands */
		memcpy(data + HDR, &(uint64_t){ fuzz_address(gen) }, 8);
		return size;
	case 3:
		return write_resize(gen, data, size, max);
	case 4:
		size = fuzz_mutate_bytes(gen, data, size, max);
		if (size >= HDR && fuzz_chance(gen, 50))
			write_correct_size(data, size);
		return size;
	default:
		fuzz_change_word(gen, data + HDR, size - HDR);
		return size;
	}
}
