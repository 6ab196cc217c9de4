/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts what the ports of a device move. */
#include "backends/soft/endpoint/endpoint.h"

enum { LAST_SHARD = SOFT_COUNTER_SHARDS - 1 };

static struct soft_port_counters *port_counters(struct soft_device *dev, const struct uvd_port_config *port)
{
	return &dev->endpoints->ports[port - dev->ibdev->config.ports];
}

static void shard_add(struct soft_port_counters *counters, unsigned int index, enum uvd_port_counter which, uint64_t n)
{
	_Atomic uint64_t *value = &counters->shards[index < LAST_SHARD ? index : LAST_SHARD].values[which];

	if (index < LAST_SHARD)
		atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
				      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(value, n, memory_order_relaxed);
}

static void count_xmit(struct soft_port_counters *counters, unsigned int index, const struct soft_traffic *t)
{
	shard_add(counters, index, t->is_multicast ? UVD_PORT_MULTICAST_XMIT : UVD_PORT_UNICAST_XMIT, t->packets);
	shard_add(counters, index, UVD_PORT_XMIT_WORDS, t->words);
}

static void count_rcv(struct soft_port_counters *counters, unsigned int index, const struct soft_traffic *t)
{
	shard_add(counters, index, t->is_multicast ? UVD_PORT_MULTICAST_RCV : UVD_PORT_UNICAST_RCV, t->packets);
	shard_add(counters, index, UVD_PORT_RCV_WORDS, t->words);
}

void soft_count_out(const struct soft_mover *m, const struct soft_request *req, const struct soft_traffic *t)
{
	struct soft_port_counters *counters = port_counters(req->qp->dev, req->arrival.port);

	if (t->sends)
		shard_add(counters, m->index, UVD_PORT_SENDS, t->sends);
	if (!t->is_fetched) {
		count_xmit(counters, m->index, t);
	} else {
		shard_add(counters, m->index, UVD_PORT_UNICAST_XMIT, t->requests);
		count_rcv(counters, m->index, t);
	}
}

void soft_count_in(const struct soft_mover *m, struct soft_qp *qp, const struct soft_traffic *t)
{
	struct soft_port_counters *counters = port_counters(qp->dev, soft_qp_port(qp));

	if (t->receives)
		shard_add(counters, m->index, UVD_PORT_RECEIVES, t->receives);
	if (!t->is_fetched) {
		count_rcv(counters, m->index, t);
	} else {
		shard_add(counters, m->index, UVD_PORT_UNICAST_RCV, t->requests);
		count_xmit(counters, m->index, t);
	}
}

void soft_count_at_port(struct soft_device *dev, const struct uvd_port_config *port, enum uvd_port_counter which,
			uint64_t n)
{
	shard_add(port_counters(dev, port), LAST_SHARD, which, n);
}

int soft_query_port_counters(struct uvd_ibdev *ibdev, uint8_t port, uint64_t values[UVD_PORT_COUNTERS])
{
	struct soft_port_counters *counters = &soft_device(ibdev)->endpoints->ports[port - 1];

	for (unsigned int i = 0; i < UVD_PORT_COUNTERS; i++) {
		values[i] = 0;
		for (unsigned int s = 0; s < SOFT_COUNTER_SHARDS; s++)
			values[i] += atomic_load_explicit(&counters->shards[s].values[i], memory_order_relaxed);
	}
	return 0;
}
