/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl metrics: the state of a daemon as text for Prometheus. */
#ifndef UVD_TOOLS_METRICS_H
#define UVD_TOOLS_METRICS_H

#include <jansson.h>
#include <stdio.h>

/* The answers of the daemon. NULL: this command did not ask, or the daemon did not answer. */
struct uvd_metrics_facts {
	const json_t *status, *accounts, *calls;
};

/* text.c: prints all metrics. Without a status only that the daemon is down. */
void uvd_metrics_print(FILE *to, const struct uvd_metrics_facts *facts);

#endif
