/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "backends/soft/wire/window.h"
#include "wire/wire.h"

void wire_window_init(struct wire_window *w, uint32_t most)
{
	*w = (struct wire_window){
		.size = WIRE_WINDOW_FIRST < most ? WIRE_WINDOW_FIRST : most,
		.threshold = WIRE_SLOW_START_END,
		.most = most < WIRE_WINDOW_MOST ? most : WIRE_WINDOW_MOST,
	};
}

static void window_grow(struct wire_window *w, uint32_t packets)
{
	w->size = packets < w->most - w->size ? w->size + packets : w->most;
}

void wire_window_acked(struct wire_window *w, uint32_t packets, uint32_t una)
{
	if (w->recovers && uvd_psn_diff(una, w->recovered) >= 0)
		w->recovers = false;
	/* After a time-out all that was in flight is sent again, in slow start. */
	if (w->size < w->threshold) {
		window_grow(w, packets < w->threshold - w->size ? packets : w->threshold - w->size);
		return;
	}
	if (w->recovers || w->size >= w->most)
		return;
	w->acked += packets;
	if (w->acked >= w->size) {
		w->acked -= w->size;
		window_grow(w, 1);
	}
}

void wire_window_lost(struct wire_window *w, uint32_t top, bool is_timeout)
{
	/* A second loss before the first one is repaired tells nothing new. After a time-out nothing is in flight. */
	if (w->recovers && !is_timeout)
		return;
	if (!w->recovers)
		w->threshold = w->size / 2 > WIRE_WINDOW_LEAST ? w->size / 2 : WIRE_WINDOW_LEAST;
	w->size = is_timeout ? WIRE_WINDOW_LEAST : w->threshold;
	w->acked = 0;
	w->recovers = true;
	w->recovered = top;
}
