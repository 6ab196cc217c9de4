/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/plugin.h>

#include "filters/rule.h"
#include "util/util.h"

enum { MAX_ERRNO = 4095 };
#define MAX_TIME UINT64_C(60000000000) /* ns */

int uvd_rule_errno(const char *name)
{
	for (int err = 1; err <= MAX_ERRNO; err++) {
		const char *known = strerrorname_np(err);

		if (known && !strcmp(known, name))
			return err;
	}
	return -1;
}

const char *uvd_rule_no_errno(const char *name)
{
	static __thread char text[UVD_NEAREST_TEXT + 40];
	struct uvd_nearest nearest = { .wrong = name };
	char names[UVD_NEAREST_TEXT];

	for (int err = 1; err <= MAX_ERRNO; err++)
		if (strerrorname_np(err))
			uvd_nearest_add(&nearest, strerrorname_np(err));
	snprintf(text, sizeof(text), "is not an errno; the nearest are %s", uvd_nearest_text(&nearest, names));
	return text;
}

int uvd_rule_status(const char *name)
{
	const struct uvd_named *found;

	if (!strncmp(name, "IBV_WC_", 7))
		name += 7;
	found = uvd_named_find(uvd_wc_status_names, name);
	return found && found->value != IBV_WC_SUCCESS ? (int)found->value : -1;
}

const char *uvd_rule_status_name(int status)
{
	return uvd_name_of(uvd_wc_status_names, status);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

void uvd_rule_count_name(struct uvd_rule_count *count, const char *key, const char *value)
{
	snprintf(count->text, sizeof(count->text), "%s=%s", key, value);
}

uint64_t uvd_rule_count_seen(struct uvd_rule_count *count)
{
	return atomic_fetch_add_explicit(&count->seen, 1, memory_order_relaxed) + 1;
}

void uvd_rule_count_done(struct uvd_rule_count *count)
{
	atomic_fetch_add_explicit(&count->done, 1, memory_order_release);
}

void uvd_rule_count_tell(const struct uvd_rule_count *count, uvd_filter_tell_fn tell, void *arg)
{
	/* In this order: a reader must not find more calls done than seen. */
	const uint64_t done = atomic_load_explicit(&count->done, memory_order_acquire);
	const uint64_t seen = atomic_load_explicit(&count->seen, memory_order_relaxed);

	if (*count->text)
		tell(arg, count->text, seen, done);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Parses digits from 1 to `most`. Returns what follows them, or NULL. */
static const char *rule_number(const char *text, uint64_t most, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno || !*out || *out > most ? NULL : end;
}

bool uvd_rule_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	uint64_t number;
	const char *unit = rule_number(text, MAX_TIME / 1000, &number);

	for (unsigned int i = 0; unit && i < UVD_COUNT(units); i++)
		if (!strcmp(unit, units[i].name) && number <= MAX_TIME / units[i].ns) {
			*ns = number * units[i].ns;
			return true;
		}
	return false;
}

/* Parses @N, @N+, %PERCENT or nothing. Returns NULL, or a message that says what is wrong with the text. */
static const char *rule_parse_calls(struct uvd_rule *rule, const char *end, uint64_t seed)
{
	uint64_t number;

	*rule = (struct uvd_rule){ .set = true, .first = 1, .last = UINT64_MAX, .seed = seed };
	if (*end == '@') {
		end = rule_number(end + 1, UINT64_MAX, &rule->first);
		if (!end)
			return "has no number from 1 behind the @";
		if (*end == '+')
			end++;
		else
			rule->last = rule->first;
	} else if (*end == '%') {
		end = rule_number(end + 1, 100, &number);
		if (!end)
			return "has no number from 1 to 100 behind the %";
		rule->first = rule->last = 0;
		rule->percent = number;
	}
	return *end ? "does not end with @N, @N+ or %PERCENT" : NULL;
}

const char *uvd_rule_parse(struct uvd_rule *rule, const char *text, uint64_t seed, char *value, size_t size)
{
	const size_t len = strcspn(text, "@%");

	if (!len || len >= size)
		return "does not begin with a value";
	memcpy(value, text, len);
	value[len] = 0;
	return rule_parse_calls(rule, text + len, seed);
}

void uvd_rule_all(struct uvd_rule *rule, const char *name)
{
	*rule = (struct uvd_rule){ .set = true, .first = 1, .last = UINT64_MAX };
	uvd_rule_count_name(&rule->count, name, "@1+");
}

int uvd_rule_option(struct uvd_rule *rule, const struct uvd_plugin_values *values, const char *name, uint64_t seed)
{
	const char *when = uvd_plugin_value(values, name), *wrong;

	if (!when)
		return 0;
	wrong = *when == '@' || *when == '%' ? rule_parse_calls(rule, when, seed) : "is not @N, @N+ or %PERCENT";
	if (wrong)
		return uvd_plugin_wrong(values, name, wrong);
	uvd_rule_count_name(&rule->count, name, when);
	return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* splitmix64: spreads neighbouring numbers evenly. */
static uint64_t rule_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

uint64_t uvd_rule_applies(struct uvd_rule *rule)
{
	uint64_t call;

	if (!rule->set)
		return 0;
	call = uvd_rule_count_seen(&rule->count);
	if (rule->first)
		return call >= rule->first && call <= rule->last ? call : 0;
	return rule_mix(rule_mix(rule->seed) ^ call) % 100 < rule->percent ? call : 0;
}
