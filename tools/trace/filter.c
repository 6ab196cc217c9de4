/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* -e FILTER: terms joined by commas. A call passes if a term matches it, or there are only terms with '!', and none of those does. */
#include <fnmatch.h>
#include <string.h>

#include "reader.h"

static bool is_like(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, FNM_CASEFOLD);
}

static bool term_matches(const char *term, const struct uvd_trace_decoded *d)
{
	const int64_t result = d->call->result;
	char both[2 * UVD_SHORT_NAME];

	snprintf(both, sizeof(both), "%s.%s", d->object, d->verb);
	if (!strcmp(term, "failed"))
		return result < 0;
	return is_like(term, d->object) || is_like(term, d->verb) || is_like(term, both) ||
	       (d->row && is_like(term, d->row->name)) ||
	       (result < 0 && result > -4096 && is_like(term, uvd_errno_name(-result)));
}

bool uvd_trace_passes(const char *filter, const struct uvd_trace_decoded *d)
{
	bool any = false, wanted = false;
	char term[128];

	while (filter && *filter) {
		const size_t len = strcspn(filter, ",");
		const bool not = *filter == '!';

		snprintf(term, sizeof(term), "%.*s", (int)(len - not ), filter + not );
		filter += len + (filter[len] == ',');
		if (term_matches(term, d)) {
			if (not )
				return false;
			wanted = true;
		}
		any |= !not ;
	}
	return wanted || !any;
}
