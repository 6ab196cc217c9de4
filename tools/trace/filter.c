/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* -e FILTER: terms joined by commas. A call passes if a term matches it, or there are only terms with '!', and none of those does. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "reader.h"

static bool is_like(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, FNM_CASEFOLD);
}

bool uvd_trace_is_probe(const struct uvd_trace_decoded *d)
{
	switch (d->call->result) {
	case -EPROTONOSUPPORT:
		return true;
	case -EOPNOTSUPP: /* of a call that exists, something else is not supported */
		return !d->row;
	case -ENOSPC:
		return d->bare;
	case -ENODATA:
		return d->row && !strcmp(d->row->name, "UVERBS_METHOD_QUERY_GID_ENTRY");
	default:
		return false;
	}
}

/* Does the call tell, or the entry have, a completion of this status? NULL: of any but SUCCESS. */
static bool has_completion(const struct uvd_trace_decoded *d, const char *status)
{
	const char *name, *word;
	json_t *value;

	json_object_foreach(d->statuses, name, value) {
		word = json_string_value(value); /* a status without a name is a number */
		if (status ? word && is_like(status, word) : !word || strcmp(word, "SUCCESS"))
			return true;
	}
	return false;
}

static bool term_matches(const char *term, const struct uvd_trace_decoded *d)
{
	const int64_t result = d->call->result;
	char both[2 * UVD_SHORT_NAME];

	snprintf(both, sizeof(both), "%s.%s", d->object, d->verb);
	if (!strcmp(term, "failed"))
		return (result < 0 && !uvd_trace_is_probe(d)) || has_completion(d, NULL);
	if (!strcmp(term, "probe"))
		return uvd_trace_is_probe(d);
	return is_like(term, d->object) || is_like(term, d->verb) || is_like(term, both) ||
	       (d->row && is_like(term, d->row->name)) ||
	       (result < 0 && result > -4096 && is_like(term, uvd_errno_name(-result))) || has_completion(d, term);
}

/* Takes a term off the filter. Returns whether it excludes. */
static bool term_take(const char **filter, char *term, size_t size)
{
	const size_t len = strcspn(*filter, ",");
	const bool not = **filter == '!';

	snprintf(term, size, "%.*s", (int)(len - not ), *filter + not );
	*filter += len + ((*filter)[len] == ',');
	return not ;
}

bool uvd_trace_is_of(const struct uvd_trace_open *open, const char *device)
{
	const char *name = device ? strrchr(device, '/') : NULL;
	char node[24];

	if (!device)
		return true;
	if (!open)
		return false;
	snprintf(node, sizeof(node), "uverbs%u", open->file.number);
	return !strcmp(open->file.ibdev, name ? name + 1 : device) || !strcmp(node, name ? name + 1 : device);
}

bool uvd_trace_passes(const char *filter, const struct uvd_trace_decoded *d)
{
	bool any = false, wanted = false;
	char term[128];

	while (filter && *filter) {
		const bool not = term_take(&filter, term, sizeof(term));

		if (term_matches(term, d)) {
			if (not )
				return false;
			wanted = true;
		}
		any |= !not ;
	}
	return wanted || !any;
}

bool uvd_trace_passes_why(const char *filter)
{
	bool any = false, wanted = false;
	char term[128];

	while (filter && *filter) {
		const bool not = term_take(&filter, term, sizeof(term));

		if (!strcmp(term, "failed") || !strcmp(term, "why")) {
			if (not )
				return false;
			wanted = true;
		}
		any |= !not ;
	}
	return wanted || !any;
}
