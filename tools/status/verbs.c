/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status --watch: the calls of each verb, which the daemon counts while this program watches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../call/script.h"
#include "control/control.h"
#include "view.h"
#include "util/util.h"

/* ---- the daemon's counts ----------------------------------------------------------------------------------------- */

FILE *uvd_status_meter_open(const char *control, char why[UVD_STATUS_TEXT])
{
	FILE *meter = NULL;
	char *line = uvd_control_ask_more(control, "meter", &meter);
	json_t *answer = line ? json_loads(line, 0, NULL) : NULL;
	const bool begun = json_is_integer(json_object_get(answer, "meter"));

	if (!line)
		snprintf(why, UVD_STATUS_TEXT, "%s", uvd_errno_name(errno));
	else if (!begun)
		uvd_status_escape(why, uvd_status_text(answer, "error"));
	if (meter && !begun)
		fclose(meter);
	json_decref(answer);
	free(line);
	return begun ? meter : NULL;
}

json_t *uvd_status_meter_read(FILE *meter)
{
	json_t *answer = NULL;
	char *line = NULL;

	if (send(fileno(meter), "\n", 1, MSG_NOSIGNAL) == 1)
		line = uvd_control_read_line(meter);
	if (line)
		answer = json_loads(line, 0, NULL);
	free(line);
	return answer;
}

/* ---- rates and percentiles --------------------------------------------------------------------------------------- */

/* The entry of the same verb of the same device, or NULL. */
static const json_t *same_verb(const json_t *verbs, const json_t *verb)
{
	const json_t *other;
	size_t i;

	json_array_foreach(verbs, i, other) {
		if (!strcmp(uvd_status_text(other, "name"), uvd_status_text(verb, "name")) &&
		    !strcmp(uvd_status_text(other, "device"), uvd_status_text(verb, "device")))
			return other;
	}
	return NULL;
}

/* Returns how many calls this histogram has in the bucket. It is sorted; *at is where the last look-up ended. */
static long long histogram_count(const json_t *histogram, size_t *at, long long highest)
{
	const json_t *bucket;

	for (; (bucket = json_array_get(histogram, *at)); ++*at)
		if (json_integer_value(json_array_get(bucket, 0)) >= highest)
			break;
	if (json_integer_value(json_array_get(bucket, 0)) != highest)
		return 0;
	return json_integer_value(json_array_get(bucket, 1));
}

/*
 * Returns the duration, in ns, that `percent` of the calls since `before` have not exceeded, as exactly as the buckets
 * say; -1: there were none.
 */
static long long verb_percentile(const json_t *verb, const json_t *before, long long percent)
{
	const json_t *histogram = json_object_get(verb, "histogram"), *old = json_object_get(before, "histogram"),
		     *bucket;
	const long long calls = uvd_status_value(verb, "calls") - uvd_status_value(before, "calls");
	const long long longest = uvd_status_value(verb, "max_ns");
	long long sum = 0, highest;
	size_t i, at = 0;

	json_array_foreach(histogram, i, bucket) {
		highest = json_integer_value(json_array_get(bucket, 0));
		sum += json_integer_value(json_array_get(bucket, 1)) - histogram_count(old, &at, highest);
		if (calls > 0 && sum * 100 >= calls * percent)
			return highest < longest ? highest : longest;
	}
	return -1;
}

static void verb_set_percentile(json_t *verb, const json_t *before, const char *name, long long percent)
{
	const long long ns = verb_percentile(verb, before, percent);

	json_object_set_new(verb, name, ns < 0 ? json_null() : json_integer(ns));
}

void uvd_status_add_rates(const json_t *verbs, const json_t *before, double seconds)
{
	json_t *verb;
	size_t i;

	json_array_foreach(verbs, i, verb) {
		const json_t *old = same_verb(before, verb);
		const long long calls = uvd_status_value(verb, "calls") - uvd_status_value(old, "calls");

		json_object_set_new(verb, "calls_per_s", json_real(seconds > 0 ? calls / seconds : 0));
		verb_set_percentile(verb, old, "p50_ns", 50);
		verb_set_percentile(verb, old, "p99_ns", 99);
	}
}

/* ---- the screen -------------------------------------------------------------------------------------------------- */

enum { TIME_TEXT = 24 };

static const char *time_text(char to[TIME_TEXT], const json_t *ns)
{
	const double value = json_integer_value(ns);

	if (!json_is_integer(ns))
		strcpy(to, "-");
	else if (value < 1e3)
		snprintf(to, TIME_TEXT, "%.0f ns", value);
	else if (value < 1e6)
		snprintf(to, TIME_TEXT, "%.1f us", value / 1e3);
	else if (value < 1e9)
		snprintf(to, TIME_TEXT, "%.1f ms", value / 1e6);
	else
		snprintf(to, TIME_TEXT, "%.1f s", value / 1e9);
	return to;
}

static void screen_verb(struct uvd_status_screen *screen, const json_t *verb)
{
	char object[UVD_SHORT_NAME], name[UVD_SHORT_NAME], both[2 * UVD_SHORT_NAME + 1];
	char escaped[UVD_STATUS_TEXT], device[UVD_STATUS_TEXT];
	char p50[TIME_TEXT], p99[TIME_TEXT], max[TIME_TEXT];

	uvd_short_object(uvd_status_text(verb, "object"), object);
	uvd_short_verb(uvd_status_text(verb, "object"), uvd_status_text(verb, "name"), name);
	snprintf(both, sizeof(both), "%s.%s", object, name);
	uvd_status_line(screen, "%-9.9s %-22.22s %9.0f %9s %9s %9s %6lld",
			uvd_status_escape(device, uvd_status_text(verb, "device")), uvd_status_escape(escaped, both),
			json_real_value(json_object_get(verb, "calls_per_s")),
			time_text(p50, json_object_get(verb, "p50_ns")),
			time_text(p99, json_object_get(verb, "p99_ns")),
			time_text(max, json_object_get(verb, "max_ns")), uvd_status_value(verb, "errors"));
}

/* The busiest now come first, then those with most calls. */
static int by_rate(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	const double rx = json_real_value(json_object_get(x, "calls_per_s"));
	const double ry = json_real_value(json_object_get(y, "calls_per_s"));
	const long long nx = uvd_status_value(x, "calls"), ny = uvd_status_value(y, "calls");

	if (rx != ry)
		return rx < ry ? 1 : -1;
	return nx < ny ? 1 : nx > ny ? -1 : 0;
}

void uvd_status_screen_verbs(struct uvd_status_screen *screen, const json_t *status)
{
	const json_t *verbs = json_object_get(status, "verbs"), *why = json_object_get(status, "verbs_refused");
	const size_t num = json_array_size(verbs), most = screen->rows / 3;
	const json_t **sorted = calloc(num + 1, sizeof(*sorted));

	if (why)
		uvd_status_line(screen, "calls are not counted: %s", json_string_value(why));
	if (!sorted || !num) {
		free(sorted);
		return;
	}
	for (size_t i = 0; i < num; i++)
		sorted[i] = json_array_get(verbs, i);
	qsort(sorted, num, sizeof(*sorted), by_rate);
	uvd_status_line(screen, "%s", "");
	uvd_status_line(screen, "%-9s %-22s %9s %9s %9s %9s %6s", "device", "verb", "calls/s", "p50", "p99", "max",
			"errors");
	for (size_t i = 0; i < num && i < most; i++)
		screen_verb(screen, sorted[i]);
	if (num > most)
		uvd_status_line(screen, "and %zu more verbs", num - most);
	free(sorted);
}
