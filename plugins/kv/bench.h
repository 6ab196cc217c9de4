/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef KV_BENCH_H
#define KV_BENCH_H

struct ibv_context;
struct ibv_mr;
struct kv_memory;

/* client.c: open the first device, and register an empty table. They exit on errors. */
struct ibv_context *kv_open(void);
struct ibv_mr *kv_register(struct ibv_context *context, struct kv_memory *memory);

/* bench.c: measures, prints the medians, and returns an exit status. */
int kv_bench(void);

#endif
