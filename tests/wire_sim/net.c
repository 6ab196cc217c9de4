/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Time, chance, and the links and ports between engines. */
#include <stdlib.h>
#include <string.h>
#include "sim.h"

enum { ETHERNET = 8 + 14 + 4 + 12, IPV4 = 20, UDP = 8, MILLION = 1000000 };

/* splitmix64 */
uint64_t sim_random(struct sim *s)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static bool sim_chance(struct sim *s, uint32_t of_a_million)
{
	return of_a_million && sim_random(s) % MILLION < of_a_million;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static bool sim_is_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_schedule(struct sim *s, uint64_t at, enum sim_event_kind kind, unsigned int qp, struct sim_packet *packet)
{
	const struct sim_event event = { .at = at, .order = s->order++, .kind = kind, .qp = qp, .packet = packet };
	size_t n = s->num_events++;

	if (s->num_events > s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->heap = reallocarray(s->heap, s->room, sizeof(*s->heap));
		if (!s->heap)
			abort();
	}
	for (; n && sim_is_before(&event, &s->heap[(n - 1) / 2]); n = (n - 1) / 2)
		s->heap[n] = s->heap[(n - 1) / 2];
	s->heap[n] = event;
}

static struct sim_event sim_next_event(struct sim *s)
{
	const struct sim_event first = s->heap[0], last = s->heap[--s->num_events];
	size_t n = 0;

	for (size_t child; (child = 2 * n + 1) < s->num_events; n = child) {
		if (child + 1 < s->num_events && sim_is_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!sim_is_before(&s->heap[child], &last))
			break;
		s->heap[n] = s->heap[child];
	}
	s->heap[n] = last;
	return first;
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static struct sim_packet *sim_get_packet(struct sim *s)
{
	struct sim_packet *p = s->free;

	if (p) {
		s->free = p->next;
		return p;
	}
	p = malloc(sizeof(*p) + (s->c.checks ? UVD_IB_DATAGRAM_MAX : 0));
	if (!p)
		abort();
	return p;
}

void sim_put_packet(struct sim *s, struct sim_packet *p)
{
	p->next = s->free;
	s->free = p;
}

uint32_t sim_wire_bytes(const struct uvd_packet *packet)
{
	return ETHERNET + IPV4 + UDP +
	       uvd_packet_bytes(uvd_opcode_info(packet->opcode)->header_bytes, packet->payload_len);
}

/* The kernel counts this for a packet: uvd_wire_packets() tells how many of them fill a buffer. */
static uint32_t sim_memory(uint32_t payload_len)
{
	return UINT32_MAX / uvd_wire_packets(UINT32_MAX, payload_len);
}

static struct sim_packet *sim_copy_packet(struct sim *s, unsigned int to, const struct uvd_packet *packet)
{
	static const uint8_t zeros[UVD_IB_MTU_MAX];
	struct sim_packet *p = sim_get_packet(s);
	size_t head;

	p->to = to;
	p->wire_bytes = sim_wire_bytes(packet);
	p->memory = sim_memory(packet->payload_len);
	if (!s->c.checks) {
		p->packet = *packet;
		p->packet.payload = zeros;
		return p;
	}
	head = uvd_packet_put_headers(packet, p->bytes);
	p->len = uvd_packet_bytes(head, packet->payload_len);
	if (packet->payload_len)
		memcpy(p->bytes + head, packet->payload, packet->payload_len);
	memset(p->bytes + head + packet->payload_len, 0, p->len - head - packet->payload_len);
	if (uvd_packet_parse(&p->packet, p->bytes, p->len) != UVD_PACKET_OK)
		s->result.faults++;
	return p;
}

/* ---- links and ports --------------------------------------------------------------------------------------------- */

static uint64_t sim_link_ns(const struct sim_config *c, uint32_t wire_bytes)
{
	return wire_bytes * 8 * SIM_S / c->bits_per_s;
}

uint64_t sim_service_ns(const struct sim_config *c, uint32_t wire_bytes)
{
	const uint64_t link = sim_link_ns(c, wire_bytes);

	return link > c->packet_ns ? link : c->packet_ns;
}

void sim_send(struct sim *s, unsigned int engine, unsigned int to, const struct uvd_packet *packet)
{
	struct sim_engine *e = &s->engines[engine];
	unsigned int copies = 1;

	e->link_free = (e->link_free > s->now ? e->link_free : s->now) + sim_link_ns(&s->c, sim_wire_bytes(packet));
	s->result.packets++;
	if (sim_chance(s, s->c.loss)) {
		s->result.lost++;
		copies = 0;
	} else if (sim_chance(s, s->c.duplicates)) {
		copies = 2;
	}
	while (copies--) {
		uint64_t late = sim_chance(s, s->c.reorder) ? sim_random(s) % (s->c.reorder_ns + 1) : 0;

		sim_schedule(s, e->link_free + s->c.delay_ns + late, SIM_ARRIVES, to, sim_copy_packet(s, to, packet));
	}
}

static void sim_arrive(struct sim *s, struct sim_packet *p)
{
	struct sim_engine *e = &s->engines[s->qps[p->to].engine];

	if (e->buffered + p->memory > s->c.buffer) {
		s->result.dropped++;
		sim_put_packet(s, p);
		return;
	}
	e->buffered += p->memory;
	e->port_free = (e->port_free > s->now ? e->port_free : s->now) + sim_service_ns(&s->c, p->wire_bytes);
	sim_schedule(s, e->port_free, SIM_DELIVERED, p->to, p);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

struct sim *sim_new(const struct sim_config *c, const struct sim_flow *flows, unsigned int num_flows)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->c = *c;
	s->random = c->seed;
	s->num_flows = num_flows;
	s->engines = calloc(c->num_engines, sizeof(*s->engines));
	s->flows = calloc(num_flows, sizeof(*s->flows));
	s->qps = calloc(2 * num_flows, sizeof(*s->qps));
	if (!s->engines || !s->flows || !s->qps)
		abort();
	memcpy(s->flows, flows, num_flows * sizeof(*flows));
	for (unsigned int n = 0; n < 2 * num_flows; n++)
		sim_qp_init(s, n);
	return s;
}

void sim_free(struct sim *s)
{
	struct sim_packet *p;

	while ((p = s->free)) {
		s->free = p->next;
		free(p);
	}
	free(s->heap);
	free(s->engines);
	free(s->flows);
	free(s->qps);
	free(s);
}

static void sim_do(struct sim *s, const struct sim_event *event)
{
	struct sim_qp *qp = &s->qps[event->qp];

	switch (event->kind) {
	case SIM_ARRIVES:
		sim_arrive(s, event->packet);
		break;
	case SIM_DELIVERED:
		s->engines[qp->engine].buffered -= event->packet->memory;
		sim_qp_deliver(qp, event->packet);
		break;
	case SIM_RUNS:
		sim_qp_runs(qp);
		break;
	case SIM_TIMER:
		sim_qp_timer(qp, event->at);
		break;
	}
}

void sim_run(struct sim *s)
{
	for (unsigned int n = 0; n < s->num_flows; n++)
		sim_qp_wake(&s->qps[2 * n]);
	while (s->num_events) {
		const struct sim_event event = sim_next_event(s);

		s->now = event.at;
		sim_do(s, &event);
	}
	for (unsigned int n = 0; n < 2 * s->num_flows; n++)
		sim_qp_check(&s->qps[n]);
}
