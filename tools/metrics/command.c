/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl metrics: prints metrics once, or writes them to a file again and again. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../commands.h"
#include "../daemon/ask.h"
#include "../status/view.h"
#include "control/control.h"
#include "metrics.h"

struct metrics_options {
	const char *textfile;
	double interval;
};

/* Writes the text to the file, so that a reader sees all of it or the former one. Returns 0, or a negative errno. */
static int metrics_write(const char *path, const char *text, size_t size)
{
	char other[PATH_MAX];
	int fd, err = 0;

	if (snprintf(other, sizeof(other), "%s.XXXXXX", path) >= (int)sizeof(other))
		return -ENAMETOOLONG;
	fd = mkstemp(other);
	if (fd < 0)
		return -errno;
	for (ssize_t n; size && !err; text += n, size -= n) {
		n = write(fd, text, size);
		if (n < 0) {
			err = -errno;
			n = 0;
		}
	}
	if (!err && (fchmod(fd, 0644) || rename(other, path)))
		err = -errno;
	close(fd);
	if (err)
		unlink(other);
	return err;
}

/* Prints or writes what the daemon says now. Returns 0, or 1 after a message. */
static int metrics_tell(const struct metrics_options *o, const struct uvd_metrics_facts *facts)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int err;

	if (!f)
		return 1;
	uvd_metrics_print(f, facts);
	err = fclose(f) ? -ENOMEM : 0;
	if (!err && o->textfile)
		err = metrics_write(o->textfile, text, size);
	else if (!err)
		fwrite(text, 1, size, stdout);
	if (err)
		fprintf(stderr, "uverbsctl metrics: %s: %s\n", o->textfile ? o->textfile : "standard output",
			uvd_errno_name(err));
	free(text);
	return err ? 1 : 0;
}

/* Asks, and tells it. Returns the exit status. meter: the daemon's counts of calls, or NULL; it is closed if they have ended. */
static int metrics_round(const struct uvd_args *args, FILE **meter)
{
	const struct metrics_options *o = args->options;
	json_t *status = uvd_ask("metrics", args->control, "status");
	json_t *accounts = status ? uvd_ask("metrics", args->control, "accounts") : NULL;
	json_t *calls = status && *meter ? uvd_status_meter_read(*meter) : NULL;
	const struct uvd_metrics_facts facts = { .status = status, .accounts = accounts, .calls = calls };
	int ret = 1;

	if (*meter && !calls) {
		fclose(*meter);
		*meter = NULL;
	}
	if (status || o->textfile)
		ret = metrics_tell(o, &facts);
	if (!status && !o->interval)
		ret = 1;
	json_decref(status);
	json_decref(accounts);
	json_decref(calls);
	return ret;
}

static int metrics_command(const struct uvd_args *args)
{
	const struct metrics_options *o = args->options;
	char why[UVD_STATUS_TEXT];
	FILE *meter = NULL;
	int ret;

	if (o->interval && !o->textfile)
		return uvd_args_wrong(args, "--interval is for --textfile");
	do {
		if (o->interval && !meter)
			meter = uvd_status_meter_open(args->control, why);
		ret = metrics_round(args, &meter);
	} while (!ret && o->interval && poll(NULL, 0, (int)(o->interval * 1000)) >= 0);
	if (meter)
		fclose(meter);
	return ret;
}

const struct uvd_command uvd_command_metrics = {
	.name = "metrics",
	.purpose = "print the state of the daemon as text for Prometheus",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl metrics", "print them once" },
			{ "uverbsctl metrics --textfile /var/lib/prometheus/node-exporter/uverbsd.prom",
			  "for node_exporter" },
			{ "uverbsctl metrics --textfile FILE --interval 15",
			  "again and again, with the calls of each verb" },
			{},
		},
	.text =
		(const char *const[]){
			"Prints what devices, users and ports have as metrics in the text format of Prometheus. Calls of each verb, with errors "
			"by errno, are counted while this command runs: only with --interval.",
			NULL },
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN,
	.options =
		(const struct uvd_command_option[]){
			{ "textfile", .arg = "FILE",
			  .help = "write them to FILE, which is replaced as a whole, with mode 0644",
			  .values = UVD_VALUES_FILE, UVD_STORE(struct metrics_options, textfile, TEXT) },
			{ "interval", .arg = "SECONDS", .help = "write FILE each SECONDS, until this command is ended",
			  UVD_STORE(struct metrics_options, interval, REAL), .min = 1, .max = 86400 },
			{},
		},
	.size = sizeof(struct metrics_options),
	.run = metrics_command,
};
