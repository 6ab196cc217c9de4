/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The text format of Prometheus: all samples of a metric follow its HELP and TYPE lines. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../call/script.h"
#include "../status/view.h"
#include "metrics.h"

enum { METRICS_USERS = 32 /* with labels of their own: the lowest numbers; all others are one */ };

struct metrics {
	FILE *to;
	const struct uvd_metrics_facts *facts;
	const char *name; /* of the metric that is being printed */
};

/* ---- the format -------------------------------------------------------------------------------------------------- */

static void metrics_begin(struct metrics *m, const char *name, const char *type, const char *help)
{
	m->name = name;
	fprintf(m->to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_put_label(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', to);
		if (*text == '\n')
			fputs("\\n", to);
		else
			putc(*text, to);
	}
}

/* The names and values of labels follow, and NULL. */
static void metrics_put(struct metrics *m, double value, ...)
{
	const char *label;
	bool any = false;
	va_list ap;

	fputs(m->name, m->to);
	va_start(ap, value);
	while ((label = va_arg(ap, const char *))) {
		fprintf(m->to, "%s%s=\"", any ? "," : "{", label);
		metrics_put_label(m->to, va_arg(ap, const char *));
		putc('"', m->to);
		any = true;
	}
	va_end(ap);
	fprintf(m->to, "%s %.17g\n", any ? "}" : "", value);
}

static void metrics_one(struct metrics *m, const char *name, const char *type, const char *help, double value)
{
	metrics_begin(m, name, type, help);
	metrics_put(m, value, NULL);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static const json_t *metrics_devices(const struct metrics *m)
{
	return json_object_get(m->facts->status, "devices");
}

/* A metric of each device that has this number. */
static void metrics_of_devices(struct metrics *m, const char *key, const char *name, const char *type, const char *help)
{
	const json_t *device;
	size_t i;

	metrics_begin(m, name, type, help);
	json_array_foreach(metrics_devices(m), i, device) {
		if (json_object_get(device, key))
			metrics_put(m, uvd_status_value(device, key), "device", uvd_status_text(device, "device"),
				    NULL);
	}
}

static void metrics_infos(struct metrics *m)
{
	const json_t *device;
	size_t i;

	metrics_begin(m, "uverbsd_device_info", "gauge", "A device, and what it is.");
	json_array_foreach(metrics_devices(m), i, device)
		metrics_put(m, 1, "device", uvd_status_text(device, "device"), "node", uvd_status_text(device, "node"),
			    "backend", uvd_status_text(device, "backend"), "persona",
			    uvd_status_text(device, "persona"), "abi", uvd_status_text(device, "abi"), NULL);
}

static void metrics_objects(struct metrics *m)
{
	const json_t *device, *count;
	const char *type;
	size_t i;

	metrics_begin(m, "uverbsd_objects", "gauge", "Objects of a type that clients hold.");
	json_array_foreach(metrics_devices(m), i, device) {
		json_object_foreach(json_object_get(device, "objects"), type, count) {
			char name[UVD_SHORT_NAME];

			uvd_short_object(type, name);
			metrics_put(m, json_integer_value(count), "device", uvd_status_text(device, "device"), "type",
				    name, NULL);
		}
	}
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static const struct metrics_counter {
	const char *file, *name, *help;
	double unit;
} metrics_counters[] = {
	{ "port_xmit_data", "uverbsd_port_transmit_bytes_total", "Payload that the port has sent.", 4 },
	{ "port_rcv_data", "uverbsd_port_receive_bytes_total", "Payload that the port has received.", 4 },
	{ "port_xmit_packets", "uverbsd_port_transmit_packets_total", "Packets that the port has sent.", 1 },
	{ "port_rcv_packets", "uverbsd_port_receive_packets_total", "Packets that the port has received.", 1 },
	{ "port_xmit_discards", "uverbsd_port_transmit_discards_total", "Packets that could not be sent.", 1 },
	{ "link_downed", "uverbsd_port_link_downed_total", "How often the port went down.", 1 },
	{},
};

static void metrics_put_counter(struct metrics *m, const struct metrics_counter *c, const char *device, long long port)
{
	char path[PATH_MAX], number[24];
	uint64_t value;
	FILE *f;

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/%lld/counters/%s",
		 uvd_status_text(m->facts->status, "sysfs"), device, port, c->file);
	f = fopen(path, "re");
	if (!f)
		return;
	snprintf(number, sizeof(number), "%lld", port);
	if (fscanf(f, "%" SCNu64, &value) == 1)
		metrics_put(m, value * c->unit, "device", device, "port", number, NULL);
	fclose(f);
}

static void metrics_ports(struct metrics *m)
{
	const json_t *device;
	size_t i;

	for (const struct metrics_counter *c = metrics_counters; c->file; c++) {
		metrics_begin(m, c->name, "counter", c->help);
		json_array_foreach(metrics_devices(m), i, device) {
			for (long long port = 1; port <= uvd_status_value(device, "ports"); port++)
				metrics_put_counter(m, c, uvd_status_text(device, "device"), port);
		}
	}
}

/* ---- memory, users ----------------------------------------------------------------------------------------------- */

static void metrics_memory(struct metrics *m)
{
	const json_t *list = json_object_get(m->facts->status, "memlock"), *entry;
	double pages = 0;
	size_t i;

	json_array_foreach(list, i, entry)
		pages += uvd_status_value(entry, "pages");
	metrics_one(m, "uverbsd_registered_bytes", "gauge", "Memory that clients have registered.",
		    pages * sysconf(_SC_PAGESIZE));
	metrics_one(m, "uverbsd_registered_processes", "gauge", "Processes that have registered memory.",
		    json_array_size(list));
}

/* Returns the highest number of a user with labels of its own. */
static long long metrics_last_user(const json_t *rows)
{
	long long lowest[METRICS_USERS + 1];
	unsigned int num = 0, at;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const long long uid = uvd_status_value(row, "uid");

		for (at = 0; at < num && lowest[at] < uid; at++)
			;
		if (at == METRICS_USERS || (at < num && lowest[at] == uid))
			continue;
		memmove(lowest + at + 1, lowest + at, (num - at) * sizeof(*lowest));
		lowest[at] = uid;
		num += num < METRICS_USERS;
	}
	return num ? lowest[num - 1] : -1;
}

/* What all users without labels hold of this resource. */
static double metrics_of_others(const json_t *rows, long long last, const char *resource)
{
	const json_t *row;
	double sum = 0;
	size_t i;

	json_array_foreach(rows, i, row) {
		if (uvd_status_value(row, "uid") > last && !strcmp(uvd_status_text(row, "resource"), resource))
			sum += uvd_status_value(row, "used");
	}
	return sum;
}

static void metrics_put_user(struct metrics *m, const json_t *row, const char *key)
{
	char uid[24];

	snprintf(uid, sizeof(uid), "%lld", uvd_status_value(row, "uid"));
	if (json_is_integer(json_object_get(row, key)))
		metrics_put(m, uvd_status_value(row, key), "user", uid, "resource", uvd_status_text(row, "resource"),
			    NULL);
}

static void metrics_users(struct metrics *m)
{
	const json_t *rows = json_object_get(m->facts->accounts, "accounts"), *row, *value;
	const long long last = metrics_last_user(rows);
	json_t *others = json_object();
	const char *resource;
	size_t i;

	metrics_begin(m, "uverbsd_user_held", "gauge",
		      "What a user holds of the daemon: bytes of resources that are memory, else a number.");
	json_array_foreach(rows, i, row) {
		resource = uvd_status_text(row, "resource");
		if (uvd_status_value(row, "uid") <= last)
			metrics_put_user(m, row, "used");
		else if (!json_object_get(others, resource))
			json_object_set_new(others, resource, json_real(metrics_of_others(rows, last, resource)));
	}
	json_object_foreach(others, resource, value)
		metrics_put(m, json_real_value(value), "user", "others", "resource", resource, NULL);
	json_decref(others);
	metrics_begin(m, "uverbsd_user_limit", "gauge", "What that user may hold.");
	json_array_foreach(rows, i, row) {
		if (uvd_status_value(row, "uid") <= last)
			metrics_put_user(m, row, "limit");
	}
}

static void metrics_loans(struct metrics *m)
{
	static const char *const results[][2] = {
		{ "granted", "granted" }, { "fell_back", "refused" }, { "gone", "client_gone" }, { "late", "late" }
	};
	const json_t *grants = json_object_get(m->facts->status, "grants");

	if (!grants) /* of a run, which needs none */
		return;
	metrics_begin(m, "uverbsd_loans_total", "counter",
		      "Loans of clients' threads, by result. Refused: the client got no event file.");
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		metrics_put(m, uvd_status_value(grants, results[i][0]), "result", results[i][1], NULL);
	metrics_one(m, "uverbsd_loans_in_progress", "gauge", "Loans in progress.",
		    uvd_status_value(grants, "under_way"));
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void metrics_verb(const json_t *verb, char object[UVD_SHORT_NAME], char name[UVD_SHORT_NAME])
{
	uvd_short_object(uvd_status_text(verb, "object"), object);
	uvd_short_verb(uvd_status_text(verb, "object"), uvd_status_text(verb, "name"), name);
}

static void metrics_of_verbs(struct metrics *m, const char *key, double unit)
{
	char object[UVD_SHORT_NAME], name[UVD_SHORT_NAME];
	const json_t *verb;
	size_t i;

	json_array_foreach(json_object_get(m->facts->calls, "verbs"), i, verb) {
		metrics_verb(verb, object, name);
		metrics_put(m, uvd_status_value(verb, key) * unit, "device", uvd_status_text(verb, "device"), "object",
			    object, "verb", name, NULL);
	}
}

static void metrics_errors(struct metrics *m)
{
	char object[UVD_SHORT_NAME], name[UVD_SHORT_NAME];
	const json_t *verb, *count;
	const char *error;
	size_t i;

	metrics_begin(m, "uverbsd_call_errors_total", "counter",
		      "Calls that have failed since counting began, by errno.");
	json_array_foreach(json_object_get(m->facts->calls, "verbs"), i, verb) {
		metrics_verb(verb, object, name);
		json_object_foreach(json_object_get(verb, "errnos"), error, count)
			metrics_put(m, json_integer_value(count), "device", uvd_status_text(verb, "device"), "object",
				    object, "verb", name, "errno", error, NULL);
	}
}

/* Calls of a command by write() and by its ioctl method have one name each, and so one sample. */
static void metrics_calls(struct metrics *m)
{
	if (!m->facts->calls)
		return;
	metrics_begin(m, "uverbsd_calls_total", "counter", "Calls since counting began.");
	metrics_of_verbs(m, "calls", 1);
	metrics_begin(m, "uverbsd_call_seconds_total", "counter", "Time that the engine has taken for these calls.");
	metrics_of_verbs(m, "total_ns", 1e-9);
	metrics_errors(m);
	metrics_one(m, "uverbsd_uncounted_calls_total", "counter", "Calls that named no verb of the device.",
		    uvd_status_value(m->facts->calls, "uncounted"));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void uvd_metrics_print(FILE *to, const struct uvd_metrics_facts *facts)
{
	struct metrics m = { .to = to, .facts = facts };

	metrics_one(&m, "uverbsd_up", "gauge", "Does the daemon answer?", !!facts->status);
	if (!facts->status)
		return;
	if (json_object_get(facts->status, "restarts"))
		metrics_one(&m, "uverbsd_engine_restarts_total", "counter",
			    "Engine processes that were started after the first one.",
			    uvd_status_value(facts->status, "restarts"));
	metrics_infos(&m);
	metrics_of_devices(&m, "open", "uverbsd_open_files", "gauge", "Files of the device that are open.");
	metrics_objects(&m);
	metrics_of_devices(&m, "requests", "uverbsd_requests_total", "counter",
			   "Requests that the device's node has had.");
	metrics_of_devices(&m, "workers", "uverbsd_worker_threads", "gauge", "Threads that serve the device's node.");
	metrics_of_devices(&m, "refused", "uverbsd_refused_calls_total", "counter",
			   "Calls that allow-lists and quotas have refused.");
	metrics_one(&m, "uverbsd_cm_ids", "gauge", "Identifiers of the connection manager.",
		    json_array_size(json_object_get(facts->status, "cm_ids")));
	metrics_memory(&m);
	metrics_users(&m);
	metrics_loans(&m);
	metrics_ports(&m);
	metrics_calls(&m);
}
