/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program of calls on two open files, with closes and removals of devices between them. The first byte chooses the files'
 * devices. Records follow: a byte for the operation, a byte for the file, and two for the length of the bytes behind them.
 *
 * QP numbers and keys differ from execution to execution, as the engine lives on. So OP_COPY takes them from the response of
 * an earlier call, and the programs that fuzz/seeds.py makes of recorded ones reach their peers and their memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/device.h"
#include "fuzz/schema.h"

enum { NULL_DEVICE, SOFT_DEVICE, DEVICES, FILES = 2, MOST_CALLS = 128, MOST_COPIES = 8, RECORD = 4 };

enum operation {
	OP_WRITE,
	OP_IOCTL,
	OP_CLOSE, /* and open it again */
	OP_REMOVE, /* the device of the file; the next open gets a new one */
	OP_REFUSE, /* grants of descriptors fail from now on, with the errno `length` */
	OP_COPY, /* the bytes are a struct copy, for the next call */
	OPERATIONS
};

/* Four bytes at FUZZ_OUT + from replace those at `to` of the next call's bytes. */
struct copy {
	uint16_t from, to;
};

struct record {
	uint8_t op, file;
	uint16_t len;
};

static struct {
	struct uvd_device *devices[DEVICES];
	struct uvd_file *files[FILES]; /* NULL: closed */
	unsigned int device_of[FILES];
	struct copy copies[MOST_COPIES]; /* for the next call */
	unsigned int num_copies;
	unsigned int made, succeeded; /* calls of the program */
} calls;

static struct uvd_device *calls_device(unsigned int which)
{
	if (!calls.devices[which])
		calls.devices[which] =
			which == SOFT_DEVICE ? fuzz_device_new("soft", "hfi1", 0) : fuzz_device_new("null", "hfi1", 1);
	return calls.devices[which];
}

static void calls_init(void)
{
	struct uvd_device *kept; /* the schema outlives the other devices. null has nearly all that soft has */

	fuzz_engine_init();
	kept = fuzz_device_new("null", "hfi1", DEVICES);
	fuzz_schema_init(kept->trees->plain);
}

static void calls_close(unsigned int file)
{
	if (calls.files[file])
		uvd_file_close(calls.files[file]);
	calls.files[file] = NULL;
}

static void calls_remove(unsigned int which)
{
	struct uvd_device *dev = calls_device(which);

	calls.devices[which] = NULL;
	uvd_device_remove(dev);
	uvd_device_put(dev);
}

static void calls_add_copy(const uint8_t *bytes, size_t len)
{
	if (len >= sizeof(struct copy) && calls.num_copies < MOST_COPIES)
		memcpy(&calls.copies[calls.num_copies++], bytes, sizeof(struct copy));
}

/* Makes the call, with what the copies say. */
static void calls_call(const struct record *r, const uint8_t *bytes, struct uvd_file *file)
{
	static uint8_t call[UINT16_MAX];
	const size_t most = FUZZ_BUFFER - FUZZ_OUT - sizeof(uint32_t);
	long ret;

	memcpy(call, bytes, r->len);
	for (unsigned int i = 0; i < calls.num_copies; i++) {
		const struct copy *c = &calls.copies[i];

		if (c->from <= most && c->to + sizeof(uint32_t) <= r->len)
			memcpy(call + c->to, (const void *)(uintptr_t)(FUZZ_OUT + c->from), sizeof(uint32_t));
	}
	calls.num_copies = 0;
	ret = (r->op % OPERATIONS == OP_WRITE ? fuzz_write : fuzz_ioctl)(file, call, r->len);
	calls.made++;
	calls.succeeded += ret >= 0;
}

static void calls_execute(const struct record *r, const uint8_t *bytes)
{
	const unsigned int file = r->file % FILES;

	if (!calls.files[file])
		calls.files[file] = fuzz_file_open(calls_device(calls.device_of[file]));
	if (!calls.files[file])
		abort();
	switch (r->op % OPERATIONS) {
	case OP_WRITE:
	case OP_IOCTL:
		calls_call(r, bytes, calls.files[file]);
		break;
	case OP_COPY:
		calls_add_copy(bytes, r->len);
		break;
	case OP_CLOSE:
		calls_close(file);
		break;
	case OP_REMOVE:
		calls_remove(calls.device_of[file]);
		break;
	default:
		fuzz_refuse_grants(r->len % 64);
	}
}

/* Do bytes follow the record? */
static bool record_has_bytes(const struct record *r)
{
	const unsigned int op = r->op % OPERATIONS;

	return op <= OP_IOCTL || op == OP_COPY;
}

/* Reads the record at data. Its length is limited to the bytes that are there. Returns false at the end. */
static bool record_read(const uint8_t *data, size_t size, struct record *r)
{
	if (size < RECORD)
		return false;
	memcpy(r, data, RECORD);
	if (record_has_bytes(r) && r->len > size - RECORD)
		r->len = size - RECORD;
	return true;
}

static size_t record_size(const struct record *r)
{
	return RECORD + (record_has_bytes(r) ? r->len : 0);
}

static void calls_run(const uint8_t *data, size_t size)
{
	struct record r = {};
	size_t at = 1;

	calls.num_copies = calls.made = calls.succeeded = 0;
	calls.device_of[0] = size && data[0] & 1 ? SOFT_DEVICE : NULL_DEVICE;
	calls.device_of[1] = size && data[0] & 2 ? SOFT_DEVICE : NULL_DEVICE;
	for (unsigned int n = 0; n < MOST_CALLS && at < size && record_read(data + at, size - at, &r); n++) {
		calls_execute(&r, data + at + RECORD);
		at += record_size(&r);
	}
	for (unsigned int i = 0; i < FILES; i++)
		calls_close(i);
	fuzz_refuse_grants(0);
	fuzz_client_close_fds();
	fuzz_client_clear(true);
	fuzz_check_accounts();
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Offsets of the records, and then that of the end of the last one. */
struct program {
	unsigned int num;
	size_t at[MOST_CALLS + 1];
};

static void program_read(struct program *p, const uint8_t *data, size_t size)
{
	struct record r = {};

	p->at[0] = size ? 1 : 0;
	for (p->num = 0; p->num < MOST_CALLS; p->num++) {
		if (!size || !record_read(data + p->at[p->num], size - p->at[p->num], &r))
			break;
		p->at[p->num + 1] = p->at[p->num] + record_size(&r);
	}
}

/* Tells gen the objects that the file would have before record `until`, if all calls succeeded. */
static void program_learn(struct fuzz_gen *gen, const struct program *p, const uint8_t *data, unsigned int until,
			  unsigned int file)
{
	uint32_t next = 0;

	gen->num_known = 0;
	for (unsigned int i = 0; i < until; i++) {
		const uint8_t *bytes = data + p->at[i] + RECORD;
		struct record r;

		record_read(data + p->at[i], p->at[i + 1] - p->at[i], &r);
		if (r.file % FILES != file)
			continue;
		if (r.op % OPERATIONS == OP_WRITE)
			fuzz_learn_write(gen, bytes, r.len, &next);
		else if (r.op % OPERATIONS == OP_IOCTL)
			fuzz_learn_ioctl(gen, bytes, r.len, &next);
		else if (r.op % OPERATIONS == OP_CLOSE)
			gen->num_known = next = 0;
	}
}

/* Replaces the bytes [from, to) of the input by others. Returns the new size, or the old one: there is no room. */
static size_t splice(uint8_t *data, size_t size, size_t max, size_t from, size_t to, const void *bytes, size_t len)
{
	if (size - (to - from) + len > max)
		return size;
	memmove(data + from + len, data + to, size - to);
	if (len)
		memcpy(data + from, bytes, len);
	return size - (to - from) + len;
}

/* Copies a word of the last response that a made call has had, to any word of the next call. */
static size_t record_make_copy(struct fuzz_gen *gen, uint8_t *buf, unsigned int file)
{
	const struct record r = { .op = OP_COPY, .file = file, .len = sizeof(struct copy) };
	const struct copy c = { .from = 4 * fuzz_any(gen, 16), .to = 4 * fuzz_any(gen, 32) };

	memcpy(buf, &r, RECORD);
	memcpy(buf + RECORD, &c, sizeof(c));
	return RECORD + sizeof(c);
}

/* Makes a record of a new call, or of another operation. */
static size_t record_make(struct fuzz_gen *gen, uint8_t *buf, unsigned int file)
{
	struct record r = { .op = OP_WRITE, .file = file };

	if (fuzz_chance(gen, 4))
		return record_make_copy(gen, buf, file);
	if (fuzz_chance(gen, 6)) {
		r.op = OP_CLOSE + fuzz_any(gen, OP_COPY - OP_CLOSE);
		r.len = fuzz_chance(gen, 50) ? EMFILE : fuzz_any(gen, 64);
		memcpy(buf, &r, RECORD);
		return RECORD;
	}
	if (fuzz_chance(gen, 50)) {
		r.op = OP_IOCTL;
		r.len = fuzz_make_ioctl(gen, fuzz_any(gen, fuzz_num_methods()), buf + RECORD);
	} else {
		r.len = fuzz_make_write(gen, fuzz_any(gen, fuzz_num_commands()), buf + RECORD);
	}
	memcpy(buf, &r, RECORD);
	return RECORD + r.len;
}

static size_t calls_insert(struct fuzz_gen *gen, const struct program *p, uint8_t *data, size_t size, size_t max)
{
	static uint8_t made[RECORD + FUZZ_MAX_INPUT];
	const unsigned int where = fuzz_any(gen, p->num + 1), file = fuzz_chance(gen, 80) ? 0 : 1;

	program_learn(gen, p, data, where, file);
	return splice(data, size, max, p->at[where], p->at[where], made, record_make(gen, made, file));
}

static size_t calls_change(struct fuzz_gen *gen, const struct program *p, uint8_t *data, size_t size, size_t max)
{
	static uint8_t changed[RECORD + FUZZ_MAX_INPUT];
	const unsigned int i = fuzz_any(gen, p->num);
	struct record r = {};
	size_t len;

	record_read(data + p->at[i], p->at[i + 1] - p->at[i], &r);
	if (r.op % OPERATIONS > OP_IOCTL)
		return size;
	program_learn(gen, p, data, i, r.file % FILES);
	memcpy(changed + RECORD, data + p->at[i] + RECORD, r.len);
	len = (r.op % OPERATIONS == OP_WRITE ? fuzz_mutate_write : fuzz_mutate_ioctl)(gen, changed + RECORD, r.len,
										      FUZZ_MAX_CALL);
	r.len = len;
	memcpy(changed, &r, RECORD);
	return splice(data, size, max, p->at[i], p->at[i + 1], changed, RECORD + len);
}

/* Copies a record, or takes it out. */
static size_t calls_copy(struct fuzz_gen *gen, const struct program *p, uint8_t *data, size_t size, size_t max)
{
	static uint8_t copy[RECORD + FUZZ_MAX_INPUT];
	const unsigned int i = fuzz_any(gen, p->num), to = fuzz_any(gen, p->num + 1);
	const size_t len = p->at[i + 1] - p->at[i];

	if (fuzz_chance(gen, 50))
		return splice(data, size, max, p->at[i], p->at[i + 1], NULL, 0);
	memcpy(copy, data + p->at[i], len);
	return splice(data, size, max, p->at[to], p->at[to], copy, len);
}

static size_t calls_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	struct program p;

	if (!size)
		data[size++] = fuzz_any(gen, 4);
	program_read(&p, data, size);
	if (!p.num)
		return calls_insert(gen, &p, data, 1, max);
	switch (fuzz_any(gen, 16)) {
	case 0:
		return fuzz_mutate_bytes(gen, data, size, max);
	case 1:
		data[0] = fuzz_any(gen, 4);
		return size;
	case 2:
		data[p.at[fuzz_any(gen, p.num)] + 1] ^= 1;
		return size;
	case 3:
	case 4:
		return calls_copy(gen, &p, data, size, max);
	case 5:
	case 6:
	case 7:
	case 8:
		return calls_insert(gen, &p, data, size, max);
	default:
		return calls_change(gen, &p, data, size, max);
	}
}

static void calls_tell(void)
{
	printf("%u of %u calls succeed\n", calls.succeeded, calls.made);
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_calls",
	.init = calls_init,
	.run = calls_run,
	.mutate = calls_mutate,
	.dictionary = fuzz_dictionary_ioctl,
	.tell = calls_tell,
};
