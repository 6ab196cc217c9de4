/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Identifiers as a status tells them, and as `rdma resource show cm_id` does (fill_res_cm_id_entry() of nldev.c). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "account/account.h"
#include "cm/internal.h"

/* The names of rdma's tool. */
const char *cm_state_name(enum cm_state state)
{
	static const char *const names[] = {
		[CM_IDLE] = "IDLE",
		[CM_ADDR_BOUND] = "ADDR_BOUND",
		[CM_ADDR_RESOLVED] = "ADDR_RESOLVED",
		[CM_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
		[CM_CONNECT] = "CONNECT",
		[CM_DISCONNECT] = "DISCONNECT",
		[CM_LISTEN] = "LISTEN",
		[CM_DEVICE_REMOVAL] = "DEVICE_REMOVAL",
	};

	return names[state];
}

static const char *space_name(uint16_t ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return "TCP";
	case RDMA_PS_UDP:
		return "UDP";
	case RDMA_PS_IPOIB:
		return "IPoIB";
	default:
		return "IB";
	}
}

void cm_addr_text(const union cm_addr *addr, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (addr->family == AF_INET)
		inet_ntop(AF_INET, &addr->in.sin_addr, host, sizeof(host));
	else if (addr->family)
		inet_ntop(AF_INET6, addr->family == AF_INET6 ? (const void *)&addr->in6.sin6_addr : addr->ib.gid, host,
			  sizeof(host));
	if (*host)
		snprintf(text, size, "%s:%u", host, cm_addr_port(addr));
}

static void facts_take(const struct cm_id *id, struct uvd_cm_facts *facts)
{
	*facts = (struct uvd_cm_facts){
		.number = id->number,
		.port = id->port,
		.qp_type = id->qp_type,
		.qp_num = id->qpn,
		.space = space_name(id->ps),
		.state = cm_state_name(id->state),
		.pid = id->file->watched.opened_by,
		.uid = id->account ? uvd_account_uid(id->account) : 0,
	};
	if (id->device)
		strcpy(facts->device, id->device->name);
	cm_addr_text(&id->src, facts->src, sizeof(facts->src));
	if (!cm_addr_is_any(&id->dst))
		cm_addr_text(&id->dst, facts->dst, sizeof(facts->dst));
}

/* Others need the lock, so it is given up after a few of them. */
unsigned int uvd_cm_copy_facts(struct uvd_cm *cm, struct uvd_cm_facts *facts, unsigned int max)
{
	enum { AT_ONCE = 256 };
	unsigned int num = 0;
	bool more = true;

	for (size_t from = 0; more; from += AT_ONCE) {
		cm_lock(cm);
		for (size_t i = from; i < from + AT_ONCE && i < cm->ids.size && num < max; i++)
			if (cm->ids.entries[i])
				facts_take(cm->ids.entries[i], &facts[num++]);
		more = from + AT_ONCE < cm->ids.size && num < max;
		cm_unlock(cm);
	}
	return num;
}
