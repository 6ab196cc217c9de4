/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One process of gloo's ring allreduce, halving-doubling allreduce and broadcast over its ibverbs transport. It compares
 * every value.
 *
 *	gloo DEVICE RANK RANKS FOLDER	FOLDER: empty, where the processes find each other
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static unsigned long compared, wrong;

/* Whole numbers whose sums a float holds exactly, so every order of the additions gives the same result. */
static float value_of(int rank, size_t i)
{
	return (i * 2654435761u >> 7 ^ rank * 11) % 1024;
}

static void fill(std::vector<float> &values, int rank)
{
	for (size_t i = 0; i < values.size(); i++)
		values[i] = value_of(rank, i);
}

/* Each value is the sum of those of the first `ranks` ranks. */
static void compare(const std::vector<float> &values, int ranks)
{
	for (size_t i = 0; i < values.size(); i++) {
		float sum = 0;

		for (int r = 0; r < ranks; r++)
			sum += value_of(r, i);
		compared++;
		wrong += values[i] != sum;
	}
}

/*
 * An algorithm's memory is registered until it is destroyed. A peer that has not finished still writes to it, so main()
 * keeps all algorithms until a barrier.
 */
struct collective {
	std::vector<float> values;
	std::unique_ptr<gloo::Algorithm> algorithm;

	explicit collective(size_t count) : values(count, -1)
	{
	}
};
using collectives = std::vector<std::unique_ptr<collective>>;

template <class Algorithm>
static collective &add(collectives &all, const std::shared_ptr<gloo::Context> &context, size_t count)
{
	all.push_back(std::make_unique<collective>(count));
	collective &c = *all.back();

	c.algorithm = std::make_unique<Algorithm>(context, std::vector<float *>{ c.values.data() }, count);
	return c;
}

template <class Allreduce>
static void allreduce(collectives &all, const std::shared_ptr<gloo::Context> &context, size_t count)
{
	collective &c = add<Allreduce>(all, context, count);

	fill(c.values, context->rank);
	c.algorithm->run();
	compare(c.values, context->size);
}

static void broadcast(collectives &all, const std::shared_ptr<gloo::Context> &context, size_t count)
{
	collective &c = add<gloo::BroadcastOneToAll<float>>(all, context, count);

	if (!context->rank)
		fill(c.values, 0);
	c.algorithm->run();
	compare(c.values, 1);
}

/*
 * gloo's own barrier ends when the other ranks' messages are here. Its own sends, and those of the algorithms before it, may still
 * wait for gloo's thread to poll their completions; a buffer destroyed by then ends the program. Sends of a QP complete in order, so
 * those of the barrier are the last.
 */
struct last_barrier : gloo::BarrierAllToAll {
	using BarrierAllToAll::BarrierAllToAll;

	void run() override
	{
		BarrierAllToAll::run();
		for (auto &buffer : sendBuffers_)
			buffer->waitSend();
	}
};

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	gloo::transport::ibverbs::attr attr{ argv[1], 1, 0 }; /* port, GID index */
	auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[2]), atoi(argv[3]));
	gloo::rendezvous::FileStore store(argv[4]);
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	context->setTimeout(std::chrono::minutes(5)); /* the default, 30 s, is too short for an emulated machine */

	context->connectFullMesh(store, device);
	collectives all;
	last_barrier barrier(context);
	for (size_t count : { 1, 7, 1024, 1025, 1 << 18 }) {
		allreduce<gloo::AllreduceRing<float>>(all, context, count);
		allreduce<gloo::AllreduceHalvingDoubling<float>>(all, context, count);
		broadcast(all, context, count);
	}
	barrier.run();
	printf("%s: %lu values compared, %lu wrong\n", device->str().c_str(), compared, wrong);
	return wrong != 0;
}
