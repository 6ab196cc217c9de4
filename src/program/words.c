/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The values of words, which may name outputs of earlier calls. */
#include <stdlib.h>
#include <string.h>
#include "object.h"

static bool word_address(const struct uvd_prog_run *run, const char *word, uint64_t *value)
{
	const struct {
		const char *name;
		uint64_t at;
	} names[] = { { "mem", UVD_PROG_MEM },	 { "ro", UVD_PROG_RO },		  { "none", UVD_PROG_NONE },
		      { "edge", UVD_PROG_EDGE }, { "scratch", UVD_PROG_SCRATCH }, { "out", UVD_PROG_OUT(run) } };

	for (unsigned int i = 0; i < UVD_COUNT(names); i++) {
		size_t len = strlen(names[i].name);

		if (strncmp(word, names[i].name, len) || (word[len] && word[len] != '+'))
			continue;
		*value = names[i].at + (word[len] ? strtoull(word + len + 1, NULL, 0) : 0);
		return true;
	}
	return false;
}

uint64_t uvd_prog_value_of(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *word)
{
	char label[UVD_PROG_MAX_ITEM];
	const char *dot = strchr(word, '.');
	uint64_t value;
	size_t len = dot ? (size_t)(dot - word) : strlen(word);

	if (strchr("-0123456789", *word))
		return *word == '-' ? -strtoull(word + 1, NULL, 0) : strtoull(word, NULL, 0);
	if (word_address(run, word, &value))
		return value;
	snprintf(label, sizeof(label), "%.*s", (int)len, word);
	for (unsigned int j = 0; j < i; j++) {
		const struct uvd_prog_record *r = &run->records[j];

		if (strcmp(p->calls[j].label, label) || !r->done || r->ret < 0)
			continue;
		if (dot && uvd_prog_output(r, dot + 1, &value))
			return value;
		if (!dot && uvd_prog_made(r, &value))
			return value;
	}
	/* No such value: the shrinker removed the call, the call failed, or it has no such output. */
	return UINT32_MAX;
}
