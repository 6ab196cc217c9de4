/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status: shows what the daemon serves, and to whom. */
#include "../commands.h"
#include "control/control.h"
#include "view.h"
#include "util/util.h"
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_object(void *arg, const char *text)
{
	printf("    %s\n", text);
}

static void print_device(json_t *device, bool objects)
{
	json_t *files = json_object_get(device, "files"), *file, *count;
	char escaped[UVD_STATUS_TEXT];
	const char *name;
	size_t i;

	printf("%s (%s): %s%s, backend %s, persona %s, %s ABI; ", uvd_status_text(device, "node"),
	       uvd_status_text(device, "rdev"), uvd_status_text(device, "device"),
	       json_is_true(json_object_get(device, "removed")) ? ", removed" : "", uvd_status_text(device, "backend"),
	       uvd_status_text(device, "persona"), uvd_status_text(device, "abi"));
	if (json_object_get(device, "requests")) /* over CUSE */
		printf("%lld requests, %lld threads, ", uvd_status_value(device, "requests"),
		       uvd_status_value(device, "workers"));
	printf("%lld open files\n", uvd_status_value(device, "open"));
	if (json_object_get(device, "absent"))
		printf("  no %s: uverbsd has no CAP_NET_RAW, unless it runs with `--separate no`\n",
		       uvd_status_text(device, "absent"));
	json_array_foreach(files, i, file) {
		printf("  open by %s, pid %lld, uid %lld: %lld objects\n",
		       uvd_status_escape(escaped, uvd_status_text(file, "program")), uvd_status_value(file, "pid"),
		       uvd_status_value(file, "uid"), uvd_status_value(file, "objects"));
		if (objects)
			uvd_status_objects(file, print_object, NULL);
	}
	if (uvd_status_value(device, "open") > (long long)json_array_size(files))
		printf("  and more\n");
	json_object_foreach(json_object_get(device, "objects"), name, count)
		printf("  %6lld %s\n", (long long)json_integer_value(count), name);
}

/* An identifier of the connection manager, as `rdma resource show cm_id` prints it. */
static void print_cm_id(const json_t *id)
{
	char escaped[UVD_STATUS_TEXT];

	printf("cm_id %lld", uvd_status_value(id, "id"));
	if (*uvd_status_text(id, "device"))
		printf(" link %s/%lld", uvd_status_text(id, "device"), uvd_status_value(id, "port"));
	if (uvd_status_value(id, "qp_num"))
		printf(" lqpn %lld", uvd_status_value(id, "qp_num"));
	printf(" type %s state %s ps %s pid %lld comm %s", uvd_status_text(id, "qp_type"), uvd_status_text(id, "state"),
	       uvd_status_text(id, "ps"), uvd_status_value(id, "pid"),
	       uvd_status_escape(escaped, uvd_status_text(id, "program")));
	if (*uvd_status_text(id, "src"))
		printf(" src-addr %s", uvd_status_text(id, "src"));
	if (*uvd_status_text(id, "dst"))
		printf(" dst-addr %s", uvd_status_text(id, "dst"));
	printf("\n");
}

static void print_wire(json_t *wire)
{
	const char *reason;
	json_t *number;

	printf("wire %s port %lld: interface's MTU %lld, active MTU %lld, receive buffer %lld bytes (%lld packets)\n",
	       uvd_status_text(wire, "address"), uvd_status_value(wire, "port"), uvd_status_value(wire, "link_mtu"),
	       uvd_status_value(wire, "mtu"), uvd_status_value(wire, "receive_buffer"),
	       uvd_status_value(wire, "packets"));
	json_object_foreach(json_object_get(wire, "dropped"), reason, number)
		printf("  dropped %lld packets: %s\n", (long long)json_integer_value(number), reason);
}

static void print_status(json_t *status, bool objects)
{
	json_t *grants = json_object_get(status, "grants"), *entry;
	char escaped[UVD_STATUS_TEXT];
	size_t i;

	printf("uverbsd, pid %lld, log level %s, tree in %s\n", uvd_status_value(status, "pid"),
	       uvd_status_text(status, "log_level"), uvd_status_text(status, "sysfs"));
	json_array_foreach(json_object_get(status, "wire"), i, entry)
		print_wire(entry);
	json_array_foreach(json_object_get(status, "devices"), i, entry)
		print_device(entry, objects);
	json_array_foreach(json_object_get(status, "memlock"), i, entry)
		printf("registered memory of %s, pid %lld: %lld pages%s\n",
		       uvd_status_escape(escaped, uvd_status_text(entry, "program")), uvd_status_value(entry, "pid"),
		       uvd_status_value(entry, "pages"),
		       json_is_true(json_object_get(entry, "near")) ? ", near its limit" : "");
	json_array_foreach(json_object_get(status, "cm_ids"), i, entry)
		print_cm_id(entry);
	if (!grants) /* of a run, which needs none */
		return;
	if (!json_is_true(json_object_get(grants, "enabled")))
		printf("event files: off\n");
	else
		printf("event files: %lld granted, %lld impossible, %lld clients gone, %lld late, %lld in progress\n",
		       uvd_status_value(grants, "granted"), uvd_status_value(grants, "fell_back"),
		       uvd_status_value(grants, "gone"), uvd_status_value(grants, "late"),
		       uvd_status_value(grants, "under_way"));
}

/* No user has the id (uid_t)-1: it stands for clients of the control socket whose users the daemon cannot find out. */
static void print_account_user(const json_t *row)
{
	const long long uid = uvd_status_value(row, "uid");

	if (uid == (uid_t)-1)
		printf("users unknown");
	else
		printf("user %lld", uid);
}

static void print_accounts(json_t *answer)
{
	json_t *row, *limit;
	size_t i;

	json_array_foreach(json_object_get(answer, "accounts"), i, row) {
		limit = json_object_get(row, "limit");
		print_account_user(row);
		printf(": %lld %s", uvd_status_value(row, "used"), uvd_status_text(row, "resource"));
		if (json_is_integer(limit))
			printf(" of %lld\n", (long long)json_integer_value(limit));
		else
			printf(", without a limit\n");
	}
	json_array_foreach(json_object_get(answer, "quotas"), i, row) {
		printf("user %lld: %lld %s of %lld on %s\n", uvd_status_value(row, "uid"),
		       uvd_status_value(row, "used"), uvd_status_text(row, "resource"), uvd_status_value(row, "limit"),
		       uvd_status_text(row, "device"));
	}
}

struct status_options {
	bool json, accounts, objects, watch, once;
	double seconds;
};

/* Removes all other devices from the status. Returns false after a message if this one is not there. */
static bool status_choose(json_t *status, const char *device)
{
	json_t *devices = json_object_get(status, "devices");
	struct uvd_nearest nearest = { .wrong = device };
	char names[UVD_NEAREST_TEXT];

	for (size_t i = json_array_size(devices); i--;) {
		const char *name = uvd_status_text(json_array_get(devices, i), "device");
		const char *node = uvd_status_text(json_array_get(devices, i), "node");
		const char *number = strrchr(node, '/');

		uvd_nearest_add(&nearest, name);
		if (strcmp(name, device) && strcmp(node, device) && (!number || strcmp(number + 1, device)))
			json_array_remove(devices, i);
	}
	if (!json_array_size(devices))
		fprintf(stderr, "uverbsctl status: no device `%s`; the nearest are %s\n", device,
			uvd_nearest_text(&nearest, names));
	return json_array_size(devices);
}

/* Returns 0, or 1 after a message. */
static int status_show(const struct status_options *o, const char *control, const char *device)
{
	json_t *status = uvd_status_ask(control, o->accounts ? "accounts" : "status");

	if (!status || (device && !status_choose(status, device))) {
		json_decref(status);
		return 1;
	}
	if (o->json)
		uvd_status_print_json(status);
	else if (o->accounts)
		print_accounts(status);
	else
		print_status(status, o->objects);
	json_decref(status);
	return 0;
}

static int status_command(const struct uvd_args *args)
{
	const struct status_options *o = args->options;

	if (o->accounts + o->watch + o->objects > 1)
		return uvd_args_wrong(args, "--accounts, --watch and --objects exclude each other");
	if (!o->watch && (o->once || o->seconds))
		return uvd_args_wrong(args, "--once and --interval are for --watch");
	if (args->device && (o->watch || o->accounts))
		return uvd_args_wrong(args, "--device and %s exclude each other", o->watch ? "--watch" : "--accounts");
	if (o->watch)
		return uvd_status_watch(&(struct uvd_status_watch){
			.control = args->control, .seconds = o->seconds, .once = o->once, .json = o->json });
	return status_show(o, args->control, args->device);
}

const struct uvd_command uvd_command_status = {
	.name = "status",
	.purpose = "show what the daemon or a run serves, and to whom",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl status", "devices, open files, objects, memory" },
			{ "uverbsctl status --watch",
			  "a screen that follows the changes, with the calls of each verb" },
			{ "uverbsctl status --objects", "with the objects of each open file as a tree" },
			{ "uverbsctl status --accounts", "what each user holds, and may hold" },
			{ "uverbsctl status --json | jq .devices", "for programs" },
			{},
		},
	.text =
		(const char *const[]){
			"Shows the devices of uverbsd, their open files and objects, and the memory that clients registered. docs/status.md "
			"describes the screen and the JSON.",
			NULL },
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN | UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "watch",
			  .help = "show a screen that follows the changes until q is pressed; with --json, one line each time",
			  UVD_STORE(struct status_options, watch, FLAG) },
			{ "interval", 'n', "SECONDS", "time from one screen to the next (default: 2)",
			  UVD_STORE(struct status_options, seconds, REAL), .min = 0.1, .max = 86400 },
			{ "once", .help = "show one screen, as text; with --interval, count calls for that time first",
			  UVD_STORE(struct status_options, once, FLAG) },
			{ "objects", .help = "show the objects of each open file as a tree; --json always has it",
			  UVD_STORE(struct status_options, objects, FLAG) },
			{ "accounts", .help = "show instead what each user holds of the daemon, and may hold",
			  UVD_STORE(struct status_options, accounts, FLAG) },
			{ "json", .help = "print JSON", UVD_STORE(struct status_options, json, FLAG) },
			{},
		},
	.size = sizeof(struct status_options),
	.run = status_command,
};
