/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The front of the commands: ucma_write(). The order of its checks decides which errno a command with two errors has. */
#include <errno.h>
#include <string.h>
#include "cm/command.h"

/* Where the bytes of the write() are. */
struct source {
	struct uvd_caller *caller;
	const uint8_t *data; /* here; NULL: in the caller's memory */
	uint64_t addr;
	size_t size;
};

static int source_read(const struct source *s, void *to, size_t at, size_t len)
{
	if (!s->data)
		return uvd_caller_read(s->caller, to, s->addr + at, len) ? -EFAULT : 0;
	if (at + len > s->size)
		return UVD_CM_IS_SHORT;
	memcpy(to, s->data + at, len);
	return 0;
}

/* Reads the command's struct. The kernel reads all of it, even what is behind the bytes that the header or the write() has. */
static int read_command(struct cm_cmd *c, const struct cm_row *row, const struct source *s)
{
	size_t len = row->in;

	if (row->least_in && c->in_size < row->least_in)
		return cm_wrong(c, "hdr.in", c->in_size, -EINVAL);
	if (row->least_in && c->in_size < len)
		len = c->in_size;
	return source_read(s, c->in, sizeof(struct rdma_ucm_cmd_hdr), len);
}

static uint64_t response_address(const struct cm_cmd *c, const struct cm_row *row)
{
	return c->in[row->response / sizeof(c->in[0])];
}

void cm_respond(struct cm_cmd *c, const void *response, size_t size)
{
	c->out_len = size < c->out_size ? size : c->out_size;
	memcpy(c->out, response, c->out_len);
}

static int act_once(struct cm_cmd *c, const struct cm_row *row)
{
	int err;

	cm_lock(c->file->cm);
	err = row->act(c);
	if (!err && !c->out_len && row->done)
		row->done(c);
	cm_unlock(c->file->cm);
	return err;
}

/* end: the row's done() or undo(). */
static void end_with(struct cm_cmd *c, void (*end)(struct cm_cmd *c))
{
	if (!end)
		return;
	cm_lock(c->file->cm);
	end(c);
	cm_unlock(c->file->cm);
}

/* Before a client is refused what another one has: it may have closed that, and the transport has not heard of it yet. */
static int act(struct cm_cmd *c, const struct cm_row *row)
{
	struct uvd_engine *engine = c->file->cm->engine;
	const int err = act_once(c, row);

	if (!engine->settle || (err != -EADDRINUSE && err != -EADDRNOTAVAIL && err != -ENOMEM))
		return err;
	engine->settle(engine);
	return act_once(c, row);
}

/* Filters are asked before the command; for a GET_EVENT once it has its event, as a call that waits is carried out anew. */
static int act_filtered(struct cm_cmd *c, const struct cm_row *row)
{
	int err;

	if (!row->filtered_last)
		return cm_filter(c, row) ?: act(c, row);
	err = act(c, row);
	if (err)
		return err;
	err = cm_filter(c, row);
	if (err)
		end_with(c, row->undo);
	return err;
}

/* Writes the response. If that fails, what the client does not learn of is undone. */
static int respond(struct cm_cmd *c, const struct cm_row *row)
{
	const uint64_t to = response_address(c, row);
	int err = uvd_caller_write(c->caller, to, c->out, c->out_len) ? cm_wrong(c, "response", to, -EFAULT) : 0;

	end_with(c, err ? row->undo : row->done);
	return err;
}

static int carry_out(struct cm_cmd *c, const struct cm_row *row, const struct source *s)
{
	int err;

	if (c->out_size < row->least_out)
		return cm_wrong(c, "hdr.out", c->out_size, -ENOSPC);
	err = read_command(c, row, s) ?: (row->check ? row->check(c) : 0) ?: act_filtered(c, row);
	if (!err && c->out_len)
		err = respond(c, row);
	if (c->other)
		uvd_cm_file_put(c->other);
	return err;
}

static int begin(struct cm_cmd *c, const struct source *s, struct rdma_ucm_cmd_hdr *hdr, const struct cm_row **row)
{
	bool known;
	int err;

	if (s->size < sizeof(*hdr))
		return cm_wrong(c, "the length of the write()", s->size, -EINVAL);
	err = source_read(s, hdr, 0, sizeof(*hdr));
	if (err)
		return cm_wrong(c, "the address of the write()", s->addr, err);
	*row = cm_row(hdr->cmd, &known);
	if (!known)
		return cm_wrong(c, "hdr.cmd", hdr->cmd, -EINVAL);
	if (hdr->in + sizeof(*hdr) > s->size)
		return cm_wrong(c, "hdr.in", hdr->in, -EINVAL);
	c->in_size = hdr->in;
	c->out_size = hdr->out;
	c->filtered.number = hdr->cmd;
	return *row ? 0 : cm_wrong(c, "hdr.cmd", hdr->cmd, -ENOSYS);
}

static struct uvd_observation *observe(struct uvd_cm_file *file, const struct source *s)
{
	const struct uvd_tree *tree = uvd_cm_tree_of(file->cm->tree);
	struct uvd_observation *ob = uvd_observe_begin(&file->watched, tree, s->caller, false);

	if (ob && s->data)
		uvd_observe_command(ob, s->data, s->size);
	return ob;
}

static long write_command(struct uvd_cm_file *file, const struct source *s)
{
	struct uvd_observation *ob = uvd_is_watched(&file->cm->engine->observers) ? observe(file, s) : NULL;
	struct cm_cmd c = { .file = file, .caller = s->caller };
	struct rdma_ucm_cmd_hdr hdr = {};
	const struct cm_row *row = NULL;
	const int err = begin(&c, s, &hdr, &row) ?: carry_out(&c, row, s);
	const long result = err ?: (long)s->size;

	/* The transport makes the call anew. */
	if (err == UVD_CM_WAITS || err == UVD_CM_IS_SHORT) {
		if (ob)
			uvd_observe_drop(ob);
		return err;
	}
	if (err)
		cm_log_failure(&c, hdr.cmd, row, err);
	if (ob)
		uvd_observe_end(ob, row ? row->name : NULL, result);
	return result;
}

long uvd_cm_write(struct uvd_cm_file *file, struct uvd_caller *caller, const void *data, size_t size)
{
	return write_command(file, &(struct source){ .caller = caller, .data = data, .size = size });
}

long uvd_cm_write_from(struct uvd_cm_file *file, struct uvd_caller *caller, uint64_t addr, size_t size)
{
	return write_command(file, &(struct source){ .caller = caller, .addr = addr, .size = size });
}
