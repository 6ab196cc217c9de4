/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands of rdma_cm: their header, the ports that the device chose, and identifiers that go to another file. */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "replay.h"

/* CM_COMMAND: bytes of a command that are looked at. */
enum { CM_COMMAND = 65536, CM_HDR = sizeof(struct rdma_ucm_cmd_hdr) };

bool uvd_replay_is_cm(const struct uvd_replay_call *c, unsigned int number)
{
	return c->was->row && c->was->row->flags & UVERBSD_TREE_COMMAND_CM && c->was->row->id == number;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Returns where a socket address has its port, or NULL: one of InfiniBand has a service id. */
static uint8_t *port_of(uint8_t *addr, size_t len)
{
	sa_family_t family;

	if (len < sizeof(struct sockaddr_in))
		return NULL;
	memcpy(&family, addr, sizeof(family));
	return family == AF_INET || family == AF_INET6 ? addr + offsetof(struct sockaddr_in, sin_port) : NULL;
}

void uvd_replay_port(struct uvd_replay_call *c, uint8_t *addr, size_t len)
{
	uint8_t *at = port_of(addr, len);
	uint16_t port;
	uint64_t now;

	if (!at)
		return;
	memcpy(&port, at, sizeof(port));
	if (!port || !uvd_replay_number_known(c, UVD_ROLE_SOCKADDR, port, &now))
		return;
	port = now;
	memcpy(at, &port, sizeof(port));
}

/* A port that the client has chosen stands for itself from then on. */
static void port_learn(struct uvd_replay_call *c, uint8_t *was, uint8_t *now, size_t len)
{
	uint8_t *at = port_of(was, len), *now_at = port_of(now, len);
	uint16_t port, now_port;

	if (!at || !now_at)
		return;
	memcpy(&port, at, sizeof(port));
	memcpy(&now_port, now_at, sizeof(now_port));
	if (port && now_port)
		uvd_replay_learn(c, UVD_ROLE_SOCKADDR, port, now_port);
}

void uvd_replay_ports_learn(struct uvd_replay_call *c)
{
	const struct uvd_struct *of = uvd_command_response(uvd_view_command(c->row), c->request, c->request_len);
	uint8_t was[sizeof(struct __kernel_sockaddr_storage)];

	for (const struct uvd_field *f = of->fields; f->name; f++) {
		const size_t len = uvd_field_bytes(f);

		if (f->role != UVD_ROLE_SOCKADDR || len > sizeof(was) || uvd_field_end(f) > c->response_len)
			continue;
		memset(was, 0, sizeof(was));
		uvd_image_get(&c->was->image, UVD_PIECE_WRITTEN, c->response_was + f->at, was, len);
		port_learn(c, was, c->response + f->at, len);
	}
}

/* ---- MIGRATE_ID -------------------------------------------------------------------------------------------------- */

/* Finds the file that has an identifier, by its recorded number. */
static struct uvd_replay_file *owner_find(const struct uvd_replay_call *c, uint64_t id)
{
	const struct uvd_prog_number *pair =
		uvd_prog_numbers_find(&c->r->numbers, UVD_ROLE_HANDLE, uvd_replay_scope(c, UVD_ROLE_HANDLE, id), id);
	struct uvd_replay_file *f = c->r->files;

	while (f && (!pair || f->file != pair->of.file))
		f = f->next;
	return f;
}

static uint32_t migrated_id(const struct uvd_replay_call *c)
{
	return json_integer_value(json_object_get(c->was->in, "id"));
}

/* The trace has the client's descriptor, and not which file that is: the one that has the identifier. */
static void migrate_build(struct uvd_replay_call *c)
{
	const struct uvd_replay_file *from = owner_find(c, migrated_id(c));
	struct rdma_ucm_migrate_id cmd;

	if (c->was->call->result < 0 || !from) {
		c->skip = "it uses a file of the client";
		return;
	}
	memcpy(&cmd, c->request, sizeof(cmd));
	cmd.fd = from->fd;
	memcpy(c->request, &cmd, sizeof(cmd));
}

void uvd_replay_migrated(struct uvd_replay_call *c)
{
	struct uvd_replay_file *from = owner_find(c, migrated_id(c));
	uint64_t now;

	if (!from || !uvd_replay_number_known(c, UVD_ROLE_HANDLE, migrated_id(c), &now))
		return;
	uvd_replay_learn(c, UVD_ROLE_HANDLE, migrated_id(c), now);
	uvd_replay_events_move(from, c->f, now);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* Returns the length that the client passed to write(), as far as the trace tells it. known: bytes that were read. */
static size_t command_len(const struct uvd_replay_call *c, const struct uvd_piece *first, size_t known,
			  const struct rdma_ucm_cmd_hdr *hdr)
{
	if (first->kind == UVD_PIECE_COMMAND)
		return first->len;
	if (c->was->call->result > 0)
		return c->was->call->result;
	/* The header can have been wrong in its length. */
	if (known <= CM_HDR && c->was->call->result == -EINVAL)
		return known;
	return CM_HDR + hdr->in;
}

static size_t command_bytes(const struct uvd_replay_call *c, const struct uvd_piece *first, uint8_t *to, size_t len)
{
	if (first->kind != UVD_PIECE_COMMAND)
		return uvd_image_get(&c->was->image, UVD_PIECE_READ, first->addr, to, len);
	len = first->kept < len ? first->kept : len;
	memcpy(to, first + 1, len);
	return len;
}

static void response_build(struct uvd_replay_call *c, size_t out)
{
	const size_t at = uvd_cm_response_at(c->row->name);
	uint64_t response;

	if (at == UVD_NO_RESPONSE || at + sizeof(response) > c->request_len)
		return;
	memcpy(&c->response_was, c->request + at, sizeof(response));
	response = c->response_was ? uvd_replay_response_room(c, out, 0) : 0;
	if (c->response_was && uvd_replay_memory_failed(c, c->response_was, out))
		response = (uintptr_t)c->r->none;
	memcpy(c->request + at, &response, sizeof(response));
}

/* The device reads the whole struct of a command, whatever its header says. */
static size_t command_room(const struct uvd_replay_call *c)
{
	return CM_HDR + (c->row ? (size_t)c->row->min_len : 0);
}

/* Copies the command, and the rest of its struct. Returns how many bytes the trace has, or 0 with c->skip. */
static size_t message_build(struct uvd_replay_call *c, const struct uvd_piece *first,
			    const struct rdma_ucm_cmd_hdr *hdr)
{
	const size_t room = command_room(c);
	size_t known;

	c->msg = uvd_replay_allocate(c, CM_COMMAND + room);
	if (!c->msg)
		return 0;
	known = command_bytes(c, first, c->msg, CM_COMMAND);
	c->len = command_len(c, first, known, hdr);
	if (c->len > CM_COMMAND || (c->was->call->result >= 0 && known < room) ||
	    (first->kind != UVD_PIECE_COMMAND && uvd_replay_memory_failed(c, first->addr, room)))
		c->skip = "the trace does not have all of it";
	return c->skip ? 0 : known;
}

void uvd_replay_cm_build(struct uvd_replay_call *c, const struct uvd_piece *first)
{
	struct rdma_ucm_cmd_hdr hdr = {};

	if (command_bytes(c, first, (uint8_t *)&hdr, sizeof(hdr)) == CM_HDR && hdr.cmd <= UINT8_MAX)
		c->row = uvd_trace_command_row(&c->r->cm, hdr.cmd);
	/* Of a command that was refused for its header, the device has not read more. */
	if (message_build(c, first, &hdr) < command_room(c) || !c->row)
		return;
	c->request = c->msg + CM_HDR;
	c->request_len = c->row->min_len;
	response_build(c, hdr.out);
	uvd_replay_request(c);
	if (uvd_replay_is_cm(c, RDMA_USER_CM_CMD_MIGRATE_ID) && !c->skip)
		migrate_build(c);
}
