/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdlib.h>
#include "shrink.h"

/* Delta debugging: a program with a smaller part left out takes the place of *p if the finding stays. */
struct shrink {
	struct uvd_prog *p, *try;
	uvd_prog_still still;
	void *arg;
};

static bool shrink_keeps(struct shrink *s)
{
	if (!s->still(s->arg, s->try))
		return false;
	*s->p = *s->try;
	return true;
}

/* Drops `n` calls at a time, from the end. Returns true if that worked anywhere. */
static bool shrink_calls(struct shrink *s, unsigned int n)
{
	bool went = false;

	for (int end = (int)s->p->num_calls; end > 0; end -= (int)n) {
		int from = end > (int)n ? end - (int)n : 0;

		if ((unsigned int)end > s->p->num_calls)
			continue;
		*s->try = *s->p;
		for (int i = end - 1; i >= from; i--)
			uvd_prog_drop_call(s->try, i);
		if (s->try->num_calls && shrink_keeps(s))
			went = true;
	}
	return went;
}

static bool shrink_items(struct shrink *s)
{
	bool went = false;

	for (unsigned int i = 0; i < s->p->num_calls; i++)
		for (int n = (int)s->p->calls[i].num_items - 1; n >= 0; n--) {
			*s->try = *s->p;
			uvd_prog_drop_item(&s->try->calls[i], n);
			if (shrink_keeps(s))
				went = true;
		}
	return went;
}

void uvd_prog_shrink(struct uvd_prog *p, uvd_prog_still still, void *arg)
{
	struct shrink s = { p, malloc(sizeof(*p)), still, arg };
	bool went = true;

	for (unsigned int n = p->num_calls / 2; s.try && n > 1; n /= 2)
		shrink_calls(&s, n);
	while (s.try && went) {
		went = shrink_calls(&s, 1);
		went |= shrink_items(&s);
	}
	free(s.try);
}
