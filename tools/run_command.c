/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl run: runs a program with devices of its own. */
#include <stdio.h>

#include "commands.h"
#include "options/options.h"
#include "run/run.h"

static const char *const run_synopses[] = { "uverbsctl run [OPTION...] [--] PROGRAM [ARG...]", NULL };
static const struct uvd_help_example run_examples[] = {
	{ "uverbsctl run -- ibv_devinfo", "one program with a device of its own, rxe0" },
	{ "uverbsctl run -- bash", "a shell: all that it starts shares the device" },
	{ "uverbsctl run --join -- ib_send_bw -x 0", "in one terminal, and in another, on the same devices:" },
	{ "uverbsctl run --join -- ib_send_bw -x 0 localhost", "" },
	{},
};
static const struct uvd_help_head run_head = { run_synopses, run_examples };

static int run_command(int argc, char **argv)
{
	struct uvd_options o;
	struct uvd_run_options run;
	int status = uvd_options_parse(&o, UVD_PROGRAM_RUN, NULL, &run_head, argc, argv);

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

const struct uvd_command uvd_command_run = {
	.name = "run",
	.purpose = "run a program with a device of its own, without root",
	.synopses = run_synopses,
	.examples = run_examples,
	.words = "PROGRAM [ARG...]",
	.exits =
		(const struct uvd_command_exit[]){
			{ "that of PROGRAM", "PROGRAM has ended" },
			{ "2", "the command line is wrong" },
			{ "99", "PROGRAM succeeded, and the report has findings (--report-fails)" },
			{ "125", "PROGRAM could not get devices" },
			{ "126, 127", "PROGRAM cannot be executed, or is not found" },
			{},
		},
	.run_raw = run_command,
	.program = UVD_PROGRAM_RUN,
};
