/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Limits the work of one run of a send queue. */
#include "backends/soft/schedule/schedule.h"
#include "util/util.h"

enum {
	/* A budget ends at either of these. */
	BUDGET_BYTES = 64 << 20,
	BUDGET_NS = 20 * 1000 * 1000,
	/* The clock is read after more than so many requests or bytes. */
	LOOK_REQUESTS = 64,
	LOOK_BYTES = 256 << 10,
};

/* Returns false if the time is over. The first call starts the clock. */
static bool budget_look(struct soft_budget *budget)
{
	uint64_t now = uvd_now_ns();

	budget->new_requests = 0;
	budget->new_bytes = 0;
	if (!budget->start)
		budget->start = now;
	return now - budget->start < BUDGET_NS;
}

bool soft_budget_take(struct soft_budget *budget, uint64_t bytes, bool to_many)
{
	bool first = !budget->begun;

	budget->begun = true;
	budget->bytes += bytes;
	budget->new_bytes += bytes;
	budget->requests++;
	budget->new_requests++;
	/* One request can be larger than a budget. A user's thread has to carry it out all the same. */
	if (budget->bytes > BUDGET_BYTES && !(first && budget->of_user_thread))
		budget->spent = true;
	else if (to_many || budget->new_requests > LOOK_REQUESTS || budget->new_bytes > LOOK_BYTES)
		budget->spent = !budget_look(budget);
	return !budget->spent;
}
