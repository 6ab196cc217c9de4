/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "fuzz/make_cm.h"
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include "cm/internal.h"

static void any_address(struct fuzz_gen *gen, void *to, size_t size)
{
	static const uint32_t hosts[] = { INADDR_LOOPBACK, INADDR_LOOPBACK, INADDR_ANY, 0xe0000009, 0xc0000201 };
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_port = htons(fuzz_chance(gen, 80) ? 7000 + fuzz_any(gen, 3) : 0),
					.sin_addr.s_addr = htonl(hosts[fuzz_any(gen, UVD_COUNT(hosts))]) };
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
					  .sin6_port = in.sin_port,
					  .sin6_addr = fuzz_chance(gen, 50) ? in6addr_any : in6addr_loopback };
	const bool is_6 = fuzz_chance(gen, 20);

	memcpy(to, is_6 ? (const void *)&in6 : &in, is_6 ? sizeof(in6) < size ? sizeof(in6) : size : sizeof(in));
}

/* The size of an address as a command gives it. */
static uint16_t address_size(const void *addr)
{
	uint16_t family;

	memcpy(&family, addr, sizeof(family));
	return cm_addr_size(family);
}

static void any_param(struct fuzz_gen *gen, struct rdma_ucm_conn_param *param)
{
	param->qp_num = fuzz_any(gen, 1 << 8);
	param->private_data_len = fuzz_chance(gen, 90) ? fuzz_any(gen, 57) : fuzz_any(gen, 256);
	param->responder_resources = param->initiator_depth = fuzz_any(gen, 8);
	param->valid = fuzz_chance(gen, 75);
}

void fuzz_cm_fill(struct fuzz_gen *gen, uint32_t command, void *in)
{
	const uint32_t id = fuzz_any(gen, FUZZ_CM_IDS);

	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID: {
		static const uint16_t spaces[] = { RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB };
		struct rdma_ucm_create_id *c = in;

		c->uid = fuzz_any(gen, 4);
		c->ps = spaces[fuzz_any(gen, UVD_COUNT(spaces))];
		c->qp_type = fuzz_any(gen, 11);
		break;
	}
	case RDMA_USER_CM_CMD_BIND: {
		struct rdma_ucm_bind *c = in;

		c->id = id;
		any_address(gen, &c->addr, sizeof(c->addr));
		c->addr_size = address_size(&c->addr);
		break;
	}
	case RDMA_USER_CM_CMD_RESOLVE_ADDR: {
		struct rdma_ucm_resolve_addr *c = in;

		c->id = id;
		any_address(gen, &c->dst_addr, sizeof(c->dst_addr));
		c->dst_size = address_size(&c->dst_addr);
		break;
	}
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
	case RDMA_USER_CM_CMD_LISTEN:
	case RDMA_USER_CM_CMD_NOTIFY: {
		struct rdma_ucm_listen *c = in;

		c->id = id;
		c->backlog = 1 + fuzz_any(gen, 4);
		break;
	}
	case RDMA_USER_CM_CMD_CONNECT: {
		struct rdma_ucm_connect *c = in;

		c->id = id;
		any_param(gen, &c->conn_param);
		c->conn_param.valid = 1;
		break;
	}
	case RDMA_USER_CM_CMD_ACCEPT: {
		struct rdma_ucm_accept *c = in;

		c->id = id;
		c->uid = fuzz_any(gen, 3);
		any_param(gen, &c->conn_param);
		break;
	}
	case RDMA_USER_CM_CMD_JOIN_MCAST: {
		struct rdma_ucm_join_mcast *c = in;

		c->id = id;
		c->uid = 1;
		any_address(gen, &c->addr, sizeof(c->addr));
		c->addr_size = address_size(&c->addr);
		break;
	}
	case RDMA_USER_CM_CMD_MIGRATE_ID: {
		struct rdma_ucm_migrate_id *c = in;

		c->id = id;
		c->fd = fuzz_any(gen, 4);
		break;
	}
	case RDMA_USER_CM_CMD_DISCONNECT:
	case RDMA_USER_CM_CMD_REJECT:
		*(uint32_t *)in = id;
		break;
	default:
		((uint32_t *)in)[2] = id; /* behind the response's address */
		((uint32_t *)in)[3] = fuzz_any(gen, 4);
	}
}
