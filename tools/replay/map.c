/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Maps the recorded client's memory and peers to the replayer's. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay.h"

/* MOST_MEMORY: bytes that a trace can make the replayer reserve, together. */
enum { PAGE = 4096, LINK_ETHERNET = 2 };
static const size_t most_memory = (size_t)1 << 30;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct uvd_replay_region *uvd_replay_region_add(struct uvd_replay_call *c, uint64_t start, uint64_t len,
						uint64_t hca_va)
{
	struct uvd_replay *r = c->r;
	const size_t offset = start % PAGE;
	/* The client had no memory there that it could register. */
	const int prot = c->was->call->result == -EFAULT ? PROT_NONE : PROT_READ | PROT_WRITE;
	struct uvd_replay_region *region = NULL;
	void *mem = MAP_FAILED;
	size_t mapped = 0;

	/* One page more at each end, which nobody accesses, keeps the neighbours apart. */
	if (len < most_memory)
		mapped = (offset + len + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
	if (mapped && mapped <= most_memory && r->mapped <= most_memory - mapped)
		mem = mmap(NULL, mapped, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem != MAP_FAILED)
		region = calloc(1, sizeof(*region));
	if (!region) {
		if (mem != MAP_FAILED)
			munmap(mem, mapped);
		c->skip = "it registers more memory than a replay may have";
		return NULL;
	}
	mprotect(mem, PAGE, PROT_NONE);
	mprotect((uint8_t *)mem + mapped - PAGE, PAGE, PROT_NONE);
	*region = (struct uvd_replay_region){
		.file = c->f->file, .pid = c->f->pid, .start = start, .len = len, .mapped = mapped
	};
	region->mem = (uint8_t *)mem + PAGE + offset;
	region->hca_va = hca_va;
	region->new_hca_va = hca_va == start ? (uintptr_t)region->mem : hca_va;
	region->lkey = region->rkey = UINT64_MAX;
	region->next = r->regions;
	r->regions = region;
	r->mapped += mapped;
	return region;
}

void uvd_replay_region_drop(struct uvd_replay *r, struct uvd_replay_region *region)
{
	struct uvd_replay_region **p = &r->regions;

	while (*p != region)
		p = &(*p)->next;
	*p = region->next;
	munmap((uint8_t *)((uintptr_t)region->mem / PAGE * PAGE) - PAGE, region->mapped);
	r->mapped -= region->mapped;
	free(region);
}

void uvd_replay_regions_end(struct uvd_replay *r, uint64_t file, const uint32_t *handle)
{
	struct uvd_replay_region *region, *next;

	for (region = r->regions; region; region = next) {
		next = region->next;
		if (region->file == file && (!handle || (region->has_handle && region->handle == *handle)))
			uvd_replay_region_drop(r, region);
	}
}

uint64_t uvd_replay_address(const struct uvd_replay_call *c, uint64_t addr, uint64_t key)
{
	const struct uvd_replay_region *region;

	for (region = c->r->regions; region; region = region->next)
		if (region->lkey == key || region->rkey == key)
			return region->new_hca_va + (addr - region->hca_va);
	for (region = c->r->regions; region; region = region->next)
		if (region->pid == c->f->pid && addr >= region->start && addr - region->start < region->len)
			return (uintptr_t)region->mem + (addr - region->start);
	return addr;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

/* Makes a call of the replayer's own. */
static bool peer_ask(const struct uvd_replay_call *c, struct ib_uverbs_ioctl_hdr *m)
{
	bool ok;

	uvd_replay_asks(c->r, "a query of the port");
	ok = ioctl(c->f->fd, RDMA_VERBS_IOCTL, m) >= 0;
	uvd_replay_answered();
	return ok;
}

/* Asks the device for an entry of its table of GIDs. */
static bool port_gid(const struct uvd_replay_call *c, uint32_t port, uint64_t index, uint8_t gid[16])
{
	struct ib_uverbs_gid_entry entry = {};
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} m = { .hdr = { .length = sizeof(m),
			 .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_QUERY_GID_ENTRY,
			 .num_attrs = 4,
			 .driver_id = c->r->driver_id },
		.attrs = { { UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, UVERBS_ATTR_F_MANDATORY, {}, { port } },
			   { UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, UVERBS_ATTR_F_MANDATORY, {}, { index } },
			   { UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0, {}, { 0 } },
			   { UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY,
			     sizeof(entry),
			     UVERBS_ATTR_F_MANDATORY,
			     {},
			     { (uintptr_t)&entry } } } };

	if (!peer_ask(c, &m.hdr))
		return false;
	memcpy(gid, entry.gid, 16);
	return true;
}

static bool port_query(const struct uvd_replay_call *c, uint8_t port, struct ib_uverbs_query_port_resp_ex *resp)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[2];
	} m = { .hdr = { .length = sizeof(m),
			 .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_QUERY_PORT,
			 .num_attrs = 2,
			 .driver_id = c->r->driver_id },
		.attrs = { { UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, UVERBS_ATTR_F_MANDATORY, {}, { port } },
			   { UVERBS_ATTR_QUERY_PORT_RESP,
			     sizeof(*resp),
			     UVERBS_ATTR_F_MANDATORY,
			     {},
			     { (uintptr_t)resp } } } };

	memset(resp, 0, sizeof(*resp));
	return peer_ask(c, &m.hdr);
}

/* Returns how many bytes of the name are that of the struct in which the field is: "dest.". */
static int peer_prefix(const struct uvd_field *f)
{
	const char *dot = strrchr(f->name, '.');

	return dot ? dot + 1 - f->name : 0;
}

/* Finds the field with this role of the struct in which `beside` is. Returns NULL if the first len bytes have none. */
static const struct uvd_field *peer_field(const struct uvd_struct *of, const struct uvd_field *beside,
					  enum uvd_role role, size_t len)
{
	const int prefix = peer_prefix(beside);

	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->role == role && peer_prefix(f) == prefix && !strncmp(f->name, beside->name, prefix) &&
		    uvd_field_end(f) <= len)
			return f;
	return NULL;
}

void uvd_replay_peer(struct uvd_replay_call *c, const struct uvd_struct *of, const struct uvd_field *dgid,
		     uint8_t *bytes, size_t len)
{
	/* In an address handle the GRH's fields are in a struct of their own, and is_global and the LID are in the outer one. */
	const struct uvd_field *global = &of->fields[dgid->selector - 1],
			       *dlid = peer_field(of, global, UVD_ROLE_LID, len),
			       *index = peer_field(of, dgid, UVD_ROLE_GID_INDEX, len),
			       *port = peer_field(of, global, UVD_ROLE_PORT, len);
	struct ib_uverbs_query_port_resp_ex own;
	uint8_t number;

	if (!dlid || !index || !port || uvd_field_bytes(dgid) != 16 || uvd_field_end(dgid) > len ||
	    uvd_field_end(global) > len)
		return;
	number = uvd_field_get(port, bytes);
	/* Multicast groups stay. Without an address, the mask says that there is none. */
	if (!number || bytes[dgid->at] == 0xff || !port_query(c, number, &own))
		return;
	if (uvd_field_get(dlid, bytes) || c->f->other)
		uvd_field_put(dlid, own.legacy_resp.lid, bytes);
	/* Ethernet has no other addresses. A call that an Ethernet port refuses for that reason can succeed here. */
	if (c->f->other && own.legacy_resp.link_layer != LINK_ETHERNET && !uvd_field_get(global, bytes) &&
	    c->was->call->result < 0)
		c->skip = "an address without a GID is valid on this port";
	if (c->f->other && own.legacy_resp.link_layer == LINK_ETHERNET && !uvd_field_get(global, bytes)) {
		uvd_field_put(global, 1, bytes);
		uvd_field_put(index, 0, bytes);
	}
	if (uvd_field_get(global, bytes))
		port_gid(c, number, uvd_field_get(index, bytes), bytes + dgid->at);
}
