/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ideal network, with which the figures are compared. */
#include <stdlib.h>
#include "sim.h"

static uint32_t sim_full_packet(const struct sim_config *c)
{
	return sim_wire_bytes(
		&(struct uvd_packet){ .opcode = UVD_RC_RDMA_WRITE_MIDDLE, .payload_len = 128u << c->mtu });
}

double sim_capacity(const struct sim_config *c)
{
	return (128u << c->mtu) * 1e9 / sim_service_ns(c, sim_full_packet(c));
}

double sim_round_trip_ns(const struct sim_config *c)
{
	const uint32_t ack = sim_wire_bytes(&(struct uvd_packet){ .opcode = UVD_RC_ACKNOWLEDGE });
	const double links = (sim_full_packet(c) + ack) * 8e9 / c->bits_per_s;

	return links + sim_service_ns(c, sim_full_packet(c)) + sim_service_ns(c, ack) +
	       2.0 * (c->delay_ns + c->wake_ns);
}

static double sim_loss(const struct sim_config *c)
{
	return c->loss / 1e6;
}

/* Payload per second without losses. */
static double sim_lossless(const struct sim_config *c)
{
	const double by_window = WIRE_WINDOW_MOST * (128u << c->mtu) * 1e9 / sim_round_trip_ns(c);

	return by_window < sim_capacity(c) ? by_window : sim_capacity(c);
}

double sim_ideal_of_one(const struct sim_config *c)
{
	return sim_lossless(c) * (1 - sim_loss(c));
}

double sim_go_back_n_of_one(const struct sim_config *c)
{
	/* Packets that go out until the sender learns of a loss. */
	const double n = sim_lossless(c) * sim_round_trip_ns(c) / 1e9 / (128u << c->mtu), p = sim_loss(c);

	return sim_lossless(c) * (1 - p) / (1 - p + p * n);
}

double sim_goodput(const struct sim *s, unsigned int flow)
{
	/* Those of a READ arrive at the requester. */
	return (s->qps[2 * flow].bytes + s->qps[2 * flow + 1].bytes) * 1e9 / s->c.duration_ns;
}

double sim_jain(const double *x, unsigned int num)
{
	double sum = 0, squares = 0;

	for (unsigned int n = 0; n < num; n++) {
		sum += x[n];
		squares += x[n] * x[n];
	}
	return squares ? sum * sum / (num * squares) : 0;
}

/* A link or a port. */
struct sim_place {
	double left;
	unsigned int flows; /* without a share */
};

/* The link that the payload leaves by, and the port that it arrives at. */
static unsigned int sim_from(const struct sim *s, unsigned int flow)
{
	return s->flows[flow].opcodes[0] == IBV_WR_RDMA_READ ? s->flows[flow].to : s->flows[flow].from;
}

static unsigned int sim_to(const struct sim *s, unsigned int flow)
{
	return s->c.num_engines +
	       (s->flows[flow].opcodes[0] == IBV_WR_RDMA_READ ? s->flows[flow].from : s->flows[flow].to);
}

/* Progressive filling: the fullest place gives each of its flows the same, again and again. */
double sim_fair_shares(const struct sim *s, double *share)
{
	const unsigned int num = 2 * s->c.num_engines;
	struct sim_place *places = calloc(num, sizeof(*places));
	double sum = 0;

	if (!places)
		abort();
	for (unsigned int n = 0; n < num; n++)
		places[n].left = sim_capacity(&s->c);
	for (unsigned int f = 0; f < s->num_flows; f++) {
		share[f] = -1;
		places[sim_from(s, f)].flows++;
		places[sim_to(s, f)].flows++;
	}
	for (;;) {
		struct sim_place *least = NULL;
		double rate;

		for (unsigned int n = 0; n < num; n++)
			if (places[n].flows &&
			    (!least || places[n].left / places[n].flows < least->left / least->flows))
				least = &places[n];
		if (!least)
			break;
		rate = least->left / least->flows;
		for (unsigned int f = 0; f < s->num_flows; f++) {
			struct sim_place *from = &places[sim_from(s, f)], *to = &places[sim_to(s, f)];

			if (share[f] >= 0 || (from != least && to != least))
				continue;
			share[f] = rate;
			sum += rate;
			from->flows--;
			from->left -= rate;
			to->flows--;
			to->left -= rate;
		}
	}
	free(places);
	return sum;
}
