/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When a filter acts: on the n-th call, or on a part of the calls; and how often it did. What filters share. */
#ifndef UVD_FILTERS_RULE_H
#define UVD_FILTERS_RULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/filter.h>

/* A rule counts the calls that it has looked at, and those on which it acted. Calls count without a lock. */
struct uvd_rule_count {
	_Atomic uint64_t seen, done;
	char text[64]; /* the rule as the user gave it, KEY=VALUE; "": there is none. A longer one is cut */
};

/* Names the rule, for uvd_rule_count_tell(). */
void uvd_rule_count_name(struct uvd_rule_count *count, const char *key, const char *value);
/* Counts a call that the rule looks at. Returns its number, from 1. */
uint64_t uvd_rule_count_seen(struct uvd_rule_count *count);
/* Counts a call that was seen and on which the filter acts. */
void uvd_rule_count_done(struct uvd_rule_count *count);
/* Tells what the rule did. Does nothing without a rule. */
void uvd_rule_count_tell(const struct uvd_rule_count *count, uvd_filter_tell_fn tell, void *arg);

/* The calls that a rule applies to, as the user gives them behind a value: @N, @N+ or %PERCENT; all calls without. */
struct uvd_rule {
	bool set;
	uint64_t first, last; /* calls, from 1; 0, 0: those that percent chooses */
	unsigned int percent;
	uint64_t seed;
	struct uvd_rule_count count;
};

/*
 * Parses VALUE[@N|@N+|%PERCENT]: sets the rule, and stores VALUE in `value`. seed: which calls a percentage chooses.
 * Returns NULL, or a message that says what is wrong with the text.
 */
const char *uvd_rule_parse(struct uvd_rule *rule, const char *text, uint64_t seed, char *value, size_t size);
/*
 * Counts a call. Returns its number if the rule applies to it, else 0. The same seed and number always have the same
 * result, on whatever thread. Takes no lock. If the filter acts on the call, it calls uvd_rule_count_done().
 */
uint64_t uvd_rule_applies(struct uvd_rule *rule);
/* Sets the rule to all calls, as if the user had given it the option `name` as @1+. */
void uvd_rule_all(struct uvd_rule *rule, const char *name);
/*
 * Sets the rule from the option `name` of a filter: @N, @N+ or %PERCENT. Returns 0, also if the option was not given; or
 * -EINVAL, and the user is told.
 */
int uvd_rule_option(struct uvd_rule *rule, const struct uvd_plugin_values *values, const char *name, uint64_t seed);
/* Parses a time of 60 s at most (5us, 10ms, 2s) into nanoseconds. Returns false if it is none. */
bool uvd_rule_time(const char *text, uint64_t *ns);
/* Return the value of an errno by its name, or of a completion's status (with or without IBV_WC_); -1: no such name. */
int uvd_rule_errno(const char *name);
/* Says that this is none, and which ones are nearest. The text is of this thread, until the next call. */
const char *uvd_rule_no_errno(const char *name);
int uvd_rule_status(const char *name);
/* Returns the name of a status, without IBV_WC_. */
const char *uvd_rule_status_name(int status);

#endif
