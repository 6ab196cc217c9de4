/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The window of a requester: how many packets may be in flight. Slow start, then additive increase; loss halves it, once per round
 * trip. No state beside the struct, no locks, no clock.
 */
#ifndef UVD_SOFT_WIRE_WINDOW_H
#define UVD_SOFT_WIRE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WIRE_WINDOW_FIRST = 4, /* packets */
	WIRE_WINDOW_LEAST = 2,
	WIRE_SLOW_START_END = 16,
	WIRE_WINDOW_MOST = 64, /* unless wire_window.most is less: what the receiver's socket buffer holds */
};

struct wire_window {
	uint32_t size; /* packets that may be in flight */
	uint32_t threshold; /* slow start ends there */
	uint32_t most;
	uint32_t acked; /* since the window grew last, beyond slow start */
	bool recovers; /* since a loss, until `recovered` is acknowledged */
	uint32_t recovered; /* PSN behind the last packet that was in flight at the loss */
};

/* most: packets, at least WIRE_WINDOW_LEAST. */
void wire_window_init(struct wire_window *w, uint32_t most);
/* `packets` more have been acknowledged, up to the PSN before `una`. */
void wire_window_acked(struct wire_window *w, uint32_t packets, uint32_t una);
/* A packet was lost while those before the PSN `top` were in flight. is_timeout: nothing came back at all. */
void wire_window_lost(struct wire_window *w, uint32_t top, bool is_timeout);

#endif
