/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "answers.h"

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static struct uvd_prog_listed *answers_listed(const struct uvd_prog_answers *a, const struct uvd_prog_asked *asked,
					      const char *item, const char *theirs, const char *ours)
{
	if (!a->list)
		return NULL;
	return uvd_prog_listed(a->list, asked, item, a->ours_is_kernel ? ours : theirs,
			       a->ours_is_kernel ? theirs : ours);
}

/* Finds the row of a difference under one of the output's names. Returns NULL if there is none. */
static struct uvd_prog_listed *output_listed(const struct uvd_prog_answers *a, const struct uvd_prog_output *o,
					     const char *name)
{
	struct uvd_prog_asked asked = a->asked;
	char theirs[24] = "bytes", ours[24] = "bytes";

	if (o->is_number) {
		asked.output = name;
		asked.output_value = a->ours_is_kernel ? o->ours : o->theirs;
		uvd_prog_number_text(o->theirs, theirs);
		uvd_prog_number_text(o->ours, ours);
	}
	return answers_listed(a, &asked, name, theirs, ours);
}

static struct uvd_prog_listed *output_row(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	struct uvd_prog_listed *row = output_listed(a, o, o->name);

	return row || !o->outer ? row : output_listed(a, o, o->outer);
}

/* ---- results and outputs ----------------------------------------------------------------------------------------- */

bool uvd_prog_results_agree(const struct uvd_prog_answers *a, bool equal, const char *theirs, const char *ours)
{
	return equal || answers_listed(a, &a->asked, "result", theirs, ours);
}

bool uvd_prog_output_is_free(const struct uvd_prog_answers *a, enum uvd_role role)
{
	return uvd_role_needs(role) & ~a->same;
}

static struct uvd_prog_number number_pair(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	return (struct uvd_prog_number){
		.kind = o->role, .scope = a->scope, .theirs = o->theirs, .ours = o->ours, .of = a->of
	};
}

/* Adds a number that the list says drivers choose, and that belongs to no object: nobody knows until when it is valid. */
static void output_note(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	struct uvd_prog_number pair = number_pair(a, o);

	pair.state = UVD_PROG_NUMBER_GONE;
	uvd_prog_numbers_note(a->numbers, &pair);
}

bool uvd_prog_outputs_agree(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	struct uvd_prog_listed *row;

	if (o->equal || uvd_prog_output_is_free(a, o->role))
		return true;
	if (!a->complete && o->is_number && uvd_prog_numbers_has(a->numbers, o->theirs, o->ours))
		return true;
	row = output_row(a, o);
	if (row && row->chosen && o->is_number && !uvd_role_is_chosen(o->role))
		output_note(a, o);
	return row;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

bool uvd_prog_output_is_own_number(const struct uvd_prog_answers *a, const char *name, enum uvd_role role)
{
	for (unsigned int i = 0; uvd_role_is_chosen(role) && a->list && i < a->list->num; i++)
		if (a->list->rows[i].chosen && uvd_prog_list_match(a->list->rows[i].item, name))
			return true;
	return false;
}

/* Does a number of the other device stand for ours, or for itself if no call has told whose it is? */
static bool number_stands_for(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	const struct uvd_prog_number *pair = uvd_prog_numbers_find(a->numbers, o->role, a->scope, o->theirs);

	return pair && pair->state != UVD_PROG_NUMBER_LOST ? pair->ours == o->ours : o->theirs == o->ours;
}

/* A number of the call's own object. The first answer is taken for it if the table need not have it. */
static bool own_number_agrees(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	if (!a->complete)
		return uvd_prog_numbers_check(a->numbers, o->role, a->scope, o->theirs, o->ours);
	return number_stands_for(a, o);
}

/* A number that the client gave, such as a peer's. */
static bool other_number_agrees(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	if (!a->complete)
		return o->theirs == o->ours || uvd_prog_numbers_has(a->numbers, o->theirs, o->ours);
	return number_stands_for(a, o);
}

bool uvd_prog_numbers_agree(const struct uvd_prog_answers *a, const struct uvd_prog_output *o)
{
	const struct uvd_prog_number pair = number_pair(a, o);

	if (a->gives)
		return uvd_prog_numbers_bind(a->numbers, &pair) || a->races;
	/* Several objects can have the number 0, which is none: then the object tells. */
	if (uvd_prog_numbers_are_bound(a->numbers, o->role, a->scope, o->theirs, o->ours))
		return true;
	/* The list accepts any number that a driver chooses; here the pairs are known. */
	if (uvd_prog_output_is_own_number(a, o->name, o->role))
		return own_number_agrees(a, o);
	return other_number_agrees(a, o) || output_row(a, o);
}
