/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The write() ABI: a header, a command struct, and the address of the response inside it. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "dispatch/internal.h"

enum {
	HDR = sizeof(struct ib_uverbs_cmd_hdr),
	EX_HDR = HDR + sizeof(struct ib_uverbs_ex_cmd_hdr),
	SHORT_DESTROY_CQ = HDR + 8, /* what rdma-core 18 and 19 write; the rest of the struct follows in memory */
	TASK_SIZE_SHIFT = 47, /* user addresses end a page below 1 << 47: access_ok() */
};

/* The command that the client wrote, and our copy of its first `have` bytes. */
struct command {
	const uint8_t *buf;
	size_t have, len;
	uint64_t addr; /* in the client's memory; 0: not known */
	const struct uvd_write_row *row;
	const uvd_step *steps; /* of the tree: row's own, and what wraps them */
	uint64_t verb; /* of the tree */
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
};

int uvd_write_find(const struct uvd_tree *tree, uint32_t command, const struct uvd_tree_write **out)
{
	const bool ex = command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	const uint32_t number = command & IB_USER_VERBS_CMD_COMMAND_MASK;

	if (command & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	if (number >= tree->num_writes[ex])
		return -EOPNOTSUPP;
	*out = &tree->writes[ex][number];
	return 0;
}

/* len is 1 MiB at most, far below the limit. */
static bool access_ok(uint64_t addr, uint64_t len)
{
	const uint64_t limit = (1ULL << TASK_SIZE_SHIFT) - 4096;

	return addr <= limit - len;
}

static int verify_ex(struct uvd_req *req, const struct command *cmd)
{
	const struct ib_uverbs_ex_cmd_hdr *ex = &cmd->ex;
	const uint32_t out_words = (uint32_t)cmd->hdr.out_words + ex->provider_out_words;

	if (((size_t)cmd->hdr.in_words + ex->provider_in_words) * 8 != cmd->len - EX_HDR)
		return uvd_bad(req, -EINVAL, "in_words", cmd->hdr.in_words);
	if (ex->cmd_hdr_reserved)
		return uvd_bad(req, -EINVAL, "cmd_hdr_reserved", ex->cmd_hdr_reserved);
	if (!ex->response)
		return out_words ? uvd_bad(req, -EINVAL, "response", 0) : 0;
	if (!out_words)
		return uvd_bad(req, -EINVAL, "out_words", 0);
	if (!access_ok(ex->response, out_words * 8ULL))
		return uvd_bad(req, -EFAULT, "response", ex->response);
	return 0;
}

/* Call it for plain commands only. */
static bool is_short_destroy_cq(const struct command *cmd)
{
	return cmd->row->number == IB_USER_VERBS_CMD_DESTROY_CQ && cmd->len == SHORT_DESTROY_CQ;
}

/* The rule of the plain header holds for a number without a command too, whatever its flag says (write-18). */
static int verify_plain(struct uvd_req *req, const struct command *cmd)
{
	if (cmd->hdr.in_words * 4UL != cmd->len)
		return uvd_bad(req, -EINVAL, "in_words", cmd->hdr.in_words);
	if (!cmd->row || is_short_destroy_cq(cmd))
		return 0;
	if (cmd->len < (size_t)HDR + cmd->row->req_size)
		return uvd_bad(req, -ENOSPC, "in_words", cmd->hdr.in_words);
	if (cmd->hdr.out_words * 4UL < cmd->row->resp_size)
		return uvd_bad(req, -ENOSPC, "out_words", cmd->hdr.out_words);
	return 0;
}

/* Finds the command, and checks everything that the headers alone decide. -EOPNOTSUPP: there is no such command. */
static int write_command_verify(struct uvd_req *req, struct command *cmd)
{
	const struct uvd_tree_write *write;
	int err;

	if (cmd->len < HDR)
		return uvd_bad(req, -EINVAL, "length", cmd->len);
	if (cmd->have < HDR)
		return uvd_bad(req, -EFAULT, "header", cmd->addr);
	memcpy(&cmd->hdr, cmd->buf, HDR);
	err = uvd_write_find(req->tree, cmd->hdr.command, &write);
	if (err)
		return err == -EINVAL ? uvd_bad(req, err, "command", cmd->hdr.command) : err;
	cmd->row = write->row;
	cmd->steps = write->steps;
	cmd->verb = write->verb;
	if (!write->row) {
		err = verify_plain(req, cmd);
		return err ? err : -EOPNOTSUPP;
	}
	req->name = write->row->name;
	if (!(write->row->flags & UVD_WRITE_EX))
		return verify_plain(req, cmd);
	if (cmd->len < EX_HDR)
		return uvd_bad(req, -EINVAL, "length", cmd->len);
	if (cmd->have < EX_HDR)
		return uvd_bad(req, -EFAULT, "header", cmd->addr);
	memcpy(&cmd->ex, cmd->buf + HDR, sizeof(cmd->ex));
	return verify_ex(req, cmd);
}

static void fill_ex(struct uvd_req *req, const struct command *cmd)
{
	req->core_in = (struct uvd_in){ .buf = cmd->buf + EX_HDR, .len = cmd->hdr.in_words * 8UL };
	req->uhw_in =
		(struct uvd_in){ .buf = req->core_in.buf + req->core_in.len, .len = cmd->ex.provider_in_words * 8UL };
	req->core_out.addr = cmd->ex.response;
	req->core_out.len = cmd->hdr.out_words * 8UL;
	req->uhw_out.addr = cmd->ex.response + req->core_out.len;
	req->uhw_out.len = cmd->ex.provider_out_words * 8UL;
}

static void fill_plain(struct uvd_req *req, const struct command *cmd, size_t in_len)
{
	const struct uvd_write_row *row = cmd->row;
	size_t out_len = cmd->hdr.out_words * 4UL;

	req->core_in = (struct uvd_in){ .buf = cmd->buf + HDR, .len = in_len };
	if (row->flags & UVD_WRITE_UDATA) {
		req->core_in.len = row->req_size;
		req->uhw_in = (struct uvd_in){ .buf = cmd->buf + HDR + row->req_size, .len = in_len - row->req_size };
	}
	if (!(row->flags & UVD_WRITE_RESP)) {
		req->core_out.len = out_len;
		return;
	}
	memcpy(&req->core_out.addr, req->core_in.buf, sizeof(req->core_out.addr));
	req->core_out.len = out_len;
	if (row->flags & UVD_WRITE_UDATA) {
		req->core_out.len = row->resp_size;
		req->uhw_out.addr = req->core_out.addr + row->resp_size;
		req->uhw_out.len = out_len - row->resp_size;
	}
}

/*
 * Reads the last 8 of the 24 bytes, of which an old libibverbs writes only 16: they hold the handle. If they cannot
 * be read, the command fails; we must not guess which CQ to destroy.
 */
static int complete_destroy_cq(struct uvd_req *req, struct command *cmd)
{
	const size_t full = HDR + sizeof(struct ib_uverbs_destroy_cq);

	if (!cmd->addr)
		return uvd_bad(req, -ENOSPC, "in_words", cmd->hdr.in_words);
	/* The part that we have read is at the beginning of the buffer. */
	if (uvd_req_read(req, uvd_buffers(req)->in + cmd->len, cmd->addr + cmd->len, full - cmd->len))
		return uvd_bad(req, -EFAULT, "cq_handle", cmd->addr);
	req->in_used = full;
	return 0;
}

/* Runs a command that has been read whole, and whose header is verified. */
static int write_command_run(struct uvd_req *req, struct command *cmd)
{
	size_t in_len = cmd->len - HDR;
	int err = uvd_req_check_verb(req, cmd->verb);

	if (err)
		return err;
	if (cmd->row->flags & UVD_WRITE_EX) {
		fill_ex(req, cmd);
	} else {
		if (is_short_destroy_cq(cmd)) {
			err = complete_destroy_cq(req, cmd);
			if (err)
				return err;
			in_len = sizeof(struct ib_uverbs_destroy_cq);
		}
		fill_plain(req, cmd, in_len);
	}
	return uvd_run_steps(req, cmd->steps);
}

long uvd_dispatch_write(struct uvd_call *call, const void *buf, size_t len)
{
	struct uvd_req *req = uvd_req_init(call, UVD_FRONT_WRITE);
	struct command cmd = { .buf = buf, .have = len, .len = len };
	int err;

	if (req->observation)
		uvd_observe_command(req->observation, buf, len);
	err = write_command_verify(req, &cmd);
	if (!err)
		err = write_command_run(req, &cmd);
	return uvd_req_finish(req, err, len);
}

/* The command could not be read whole, and fails. How much of its header can be read decides the errno. */
static int verify_unreadable(struct uvd_req *req, struct command *cmd, uint8_t *buf)
{
	int err;

	cmd->have = 0;
	if (!uvd_req_read(req, buf, cmd->addr, HDR))
		cmd->have = HDR;
	if (cmd->have && cmd->len >= EX_HDR && !uvd_req_read(req, buf + HDR, cmd->addr + HDR, EX_HDR - HDR))
		cmd->have = EX_HDR;
	err = write_command_verify(req, cmd);
	return err ? err : uvd_bad(req, -EFAULT, "command", cmd->addr);
}

/* Reads a command larger than our buffer. Its header is checked first, which limits it to about 1 MiB. */
static int read_large(struct uvd_req *req, struct command *cmd)
{
	uint8_t *in = uvd_buffers(req)->in, *buf;
	int err;

	if (uvd_req_read(req, in, cmd->addr, EX_HDR))
		return verify_unreadable(req, cmd, in);
	cmd->have = EX_HDR;
	err = write_command_verify(req, cmd);
	if (err)
		return err;
	buf = uvd_req_alloc(req, cmd->len);
	if (!buf)
		return -ENOMEM;
	memcpy(buf, in, EX_HDR);
	cmd->buf = buf;
	if (uvd_req_read(req, buf + EX_HDR, cmd->addr + EX_HDR, cmd->len - EX_HDR))
		return uvd_bad(req, -EFAULT, "command", cmd->addr);
	return 0;
}

static int write_command_read(struct uvd_req *req, struct command *cmd)
{
	uint8_t *in = uvd_buffers(req)->in;

	if (cmd->len < HDR)
		return write_command_verify(req, cmd);
	if (cmd->len > UVD_REQ_IN)
		return read_large(req, cmd);
	if (uvd_req_read(req, in, cmd->addr, cmd->len))
		return verify_unreadable(req, cmd, in);
	req->in_used = (cmd->len + 7) & ~(size_t)7;
	cmd->have = cmd->len;
	return write_command_verify(req, cmd);
}

long uvd_dispatch_write_from(struct uvd_call *call, uint64_t addr, size_t len)
{
	struct uvd_req *req = uvd_req_init(call, UVD_FRONT_WRITE);
	struct command cmd = { .buf = uvd_buffers(req)->in, .len = len, .addr = addr };
	int err = write_command_read(req, &cmd);

	if (!err)
		err = write_command_run(req, &cmd);
	return uvd_req_finish(req, err, len);
}
