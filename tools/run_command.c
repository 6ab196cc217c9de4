/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl run: runs a program with devices of its own. */
#include <stdio.h>

#include "commands.h"
#include "options/options.h"
#include "run/run.h"

static const char run_usage[] =
	"uverbsctl run [OPTION...] [--] PROGRAM [ARG...]\n"
	"\n"
	"  uverbsctl run -- ibv_devinfo                one program with a device of its own, rxe0\n"
	"  uverbsctl run -- bash                       a shell: all that it starts shares the device\n"
	"  uverbsctl run --join -- ib_send_bw -x 0     in one terminal, and in another, on the same devices:\n"
	"  uverbsctl run --join -- ib_send_bw -x 0 localhost";

int uvd_cmd_run(int argc, char **argv)
{
	struct uvd_options o;
	struct uvd_run_options run;
	int status = uvd_options_parse(&o, UVD_PROGRAM_RUN, NULL, run_usage, argc, argv);

	if (status >= 0)
		return status;
	run = (struct uvd_run_options){ .devices = o.devices,
					.num_devices = o.num_devices,
					.parsed = &o,
					.join = o.join[0] ? o.join : NULL,
					.trace = o.trace[0] ? o.trace : NULL,
					.pcap = o.pcap[0] ? o.pcap : NULL,
					.report = o.report[0] ? o.report : NULL,
					.report_format = o.report_format,
					.report_fails = o.report_fails,
					.report_stacks = o.report_stacks,
					.mount = o.mount,
					.doorbells = o.doorbells,
					.busy_poll = o.busy_poll,
					.granted = o.granted,
					.limits = o.limits,
					.log_level = o.log_level };
	if ((o.report_fails || o.report_stacks) && !run.report)
		run.report = "-";
	if (o.first_arg < argc) {
		status = uvd_run(&run, argv + o.first_arg);
	} else {
		fprintf(stderr, "uverbsctl run: no program to run\n");
		status = 2;
	}
	uvd_options_free(&o);
	return status;
}
