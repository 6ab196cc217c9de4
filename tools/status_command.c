/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status: shows what the daemon serves, and to whom. */
#include "commands.h"
#include "control/control.h"
#include "util/util.h"
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: uverbsctl status [--accounts] [--json] [--control PATH]\n"
	"\n"
	"  uverbsctl status                            devices, open files, objects, memory\n"
	"  uverbsctl status --accounts                 what each user holds, and may hold\n"
	"  uverbsctl status --json | jq .devices       for programs\n"
	"\n"
	"Shows the devices of uverbsd, their open files and objects, and the memory that clients registered.\n"
	"\n"
	"  --accounts        instead: what each user holds of the daemon, and may hold\n"
	"  --json            as the daemon tells it\n"
	"  --control PATH    the daemon's socket (default: $UVERBSD_CONTROL, as in a run, or\n"
	"                    /run/uverbsd/control)\n";

static const char *status_text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

static long long status_value(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void print_device(json_t *device)
{
	json_t *files = json_object_get(device, "files"), *file, *count;
	const char *name;
	size_t i;

	printf("%s (%s): %s%s, backend %s, persona %s, %s ABI; %lld requests, %lld threads, %lld open files\n",
	       status_text(device, "node"), status_text(device, "rdev"), status_text(device, "device"),
	       json_is_true(json_object_get(device, "removed")) ? ", removed" : "", status_text(device, "backend"),
	       status_text(device, "persona"), status_text(device, "abi"), status_value(device, "requests"),
	       status_value(device, "workers"), status_value(device, "open"));
	json_array_foreach(files, i, file)
		printf("  open by %s, pid %lld, uid %lld: %lld objects\n", status_text(file, "program"),
		       status_value(file, "pid"), status_value(file, "uid"), status_value(file, "objects"));
	if (status_value(device, "open") > (long long)json_array_size(files))
		printf("  and more\n");
	json_object_foreach(json_object_get(device, "objects"), name, count)
		printf("  %6lld %s\n", (long long)json_integer_value(count), name);
}

static void print_status(json_t *status)
{
	json_t *grants = json_object_get(status, "grants"), *entry;
	size_t i;

	printf("uverbsd, pid %lld, tree in %s\n", status_value(status, "pid"), status_text(status, "sysfs"));
	json_array_foreach(json_object_get(status, "devices"), i, entry) print_device(entry);
	json_array_foreach(json_object_get(status, "memlock"), i, entry)
		printf("registered memory of %s, pid %lld: %lld pages\n", status_text(entry, "program"),
		       status_value(entry, "pid"), status_value(entry, "pages"));
	if (!json_is_true(json_object_get(grants, "enabled")))
		printf("event files: off\n");
	else
		printf("event files: %lld granted, %lld impossible, %lld clients gone, %lld late, %lld in progress\n",
		       status_value(grants, "granted"), status_value(grants, "fell_back"), status_value(grants, "gone"),
		       status_value(grants, "late"), status_value(grants, "under_way"));
}

static void print_accounts(json_t *answer)
{
	json_t *row, *limit;
	size_t i;

	json_array_foreach(json_object_get(answer, "accounts"), i, row)
	{
		limit = json_object_get(row, "limit");
		printf("user %lld: %lld %s", status_value(row, "uid"), status_value(row, "used"),
		       status_text(row, "resource"));
		if (json_is_integer(limit))
			printf(" of %lld\n", (long long)json_integer_value(limit));
		else
			printf(", without a limit\n");
	}
}

int uvd_cmd_status(int argc, char **argv)
{
	static const struct option longs[] = { { "json", no_argument, NULL, 'j' },
					       { "accounts", no_argument, NULL, 'a' },
					       { "control", required_argument, NULL, 'c' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL } };
	const char *control = getenv("UVERBSD_CONTROL");
	bool raw = false, accounts = false;
	json_t *status;
	char *line;
	int c;

	if (!control || !*control)
		control = "/run/uverbsd/control";
	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0) {
		switch (c) {
		case 'j':
			raw = true;
			break;
		case 'a':
			accounts = true;
			break;
		case 'c':
			control = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	line = uvd_control_ask(control, accounts ? "accounts" : "status");
	status = line ? json_loads(line, 0, NULL) : NULL;
	if (!status)
		fprintf(stderr, "uverbsctl status: no uverbsd answers on %s: %s\n", control, uvd_errno_name(errno));
	else if (raw)
		fputs(line, stdout);
	else if (json_object_get(status, "error"))
		fprintf(stderr, "uverbsctl status: %s\n", status_text(status, "error"));
	else if (accounts)
		print_accounts(status);
	else
		print_status(status);
	c = status && !json_object_get(status, "error") ? 0 : 1;
	json_decref(status);
	free(line);
	return c;
}
