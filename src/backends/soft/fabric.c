/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The plug-in and its data: the network of all soft devices of one engine. */
#include <errno.h>
#include <stdlib.h>
#include "backends/backends.h"
#include "backends/soft/fabric.h"
#include "backends/soft/soft.h"
#include "util/util.h"

enum { STREAM_GAP_NS = 20 * 1000, CROWDED_RUN_NS = 5 * 1000 * 1000, LET_GO_NS = 10 * 1000 * 1000 };

static void fabric_timeout(struct soft_qp *qp, unsigned int wait_nr)
{
	soft_error_timeout(qp);
	if (!soft_wire_timeout(qp))
		soft_send_timeout(qp, wait_nr);
}

struct uvd_fabric *uvd_fabric_new(struct uvd_log *log)
{
	struct uvd_fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return NULL;
	fabric->log = log;
	fabric->next_qpn = SOFT_FIRST_QPN;
	fabric->seed = soft_hash_seed();
	soft_timers_init(&fabric->timers, fabric_timeout);
	soft_waker_init(&fabric->waker);
	soft_users_init(&fabric->users, soft_send_run_deferred);
	soft_mcast_init(fabric);
	pthread_mutex_init(&fabric->qpn_lock, NULL);
	for (int i = 0; i < SOFT_QPN_BUCKETS; i++)
		pthread_mutex_init(&fabric->buckets[i].lock, NULL);
	soft_atomics_init(&fabric->atomics);
	soft_movers_init(&fabric->movers, soft_send_give_up);
	fabric->stream_gap_ns = STREAM_GAP_NS;
	fabric->crowded_run_ns = CROWDED_RUN_NS;
	fabric->let_go_ns = LET_GO_NS;
	return fabric;
}

void uvd_fabric_set_threads(struct uvd_fabric *fabric, unsigned int most)
{
	fabric->users.most_active = most;
}

void uvd_fabric_set_first_qpn(struct uvd_fabric *fabric, uint32_t qpn)
{
	fabric->next_qpn = qpn;
}

void uvd_fabric_set_random_qpn(struct uvd_fabric *fabric)
{
	enum { LEAST = 0x100, NUMBERS = 0xfffe00 };

	uvd_fabric_set_first_qpn(fabric, LEAST + uvd_random(NUMBERS));
}

void uvd_fabric_set_capture(struct uvd_fabric *fabric, struct uvd_capture *capture)
{
	fabric->capture = capture;
}

int uvd_fabric_add_wire(struct uvd_fabric *fabric, int fd)
{
	return soft_wire_add(fabric, fd, soft_send_run_shortly);
}

const char *uvd_fabric_wire_drops(const struct uvd_fabric *fabric, unsigned int i, unsigned int reason,
				  uint64_t *packets)
{
	return soft_wire_drops(fabric->wire, i, reason + 1, packets);
}

void uvd_fabric_free(struct uvd_fabric *fabric)
{
	bool wire_ended;

	if (!fabric)
		return;
	wire_ended = soft_wire_destroy(fabric->wire);
	soft_waker_destroy(&fabric->waker);
	soft_timers_destroy(&fabric->timers);
	/* A thread that has not come back from a client's memory still uses the fabric: leak it. */
	if (!wire_ended || !soft_users_destroy(&fabric->users) || !soft_movers_destroy(&fabric->movers))
		return;
	soft_atomics_destroy(&fabric->atomics);
	soft_mcast_destroy(fabric);
	pthread_mutex_destroy(&fabric->qpn_lock);
	for (int i = 0; i < SOFT_QPN_BUCKETS; i++)
		pthread_mutex_destroy(&fabric->buckets[i].lock);
	free(fabric);
}

static int soft_begin(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	*data = uvd_fabric_new(log);
	return *data ? 0 : -ENOMEM;
}

static void soft_end(void *data)
{
	uvd_fabric_free(data);
}

static const struct uvd_backend *const soft_backends[] = { &uvd_backend_soft, NULL };

const struct uvd_plugin uvd_plugin_soft = {
	.api_version = UVD_API_VERSION,
	.struct_size = sizeof(uvd_plugin_soft),
	.name = "soft",
	.description = "backend that moves data in software",
	.backends = soft_backends,
	.init = soft_begin,
	.exit = soft_end,
};
