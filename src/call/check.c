/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks structs that are not this build's own: of a plug-in, of a device's answer, of a trace. */
#include "call/call.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 63, MAX_WORDS = 1024 };

static bool check_fail(char why[UVD_CALL_WHY], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool check_fail(char why[UVD_CALL_WHY], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, UVD_CALL_WHY, fmt, ap);
	va_end(ap);
	return false;
}

/* Names are words of command lines and of programs. */
static const struct uvd_field no_reserved[] = { {} };

static bool check_name(const char *name)
{
	size_t len = 0;

	if (!name || !*name)
		return false;
	while (len <= MAX_NAME && (isalnum((unsigned char)name[len]) || name[len] == '_' || name[len] == '.'))
		len++;
	return len <= MAX_NAME && !name[len];
}

static bool check_words(const struct uvd_words *words, const char *of, char why[UVD_CALL_WHY])
{
	unsigned int n = 0;

	if (!words)
		return true;
	if (!check_name(words->name) || !words->words ||
	    (words->prefix && *words->prefix && !check_name(words->prefix)))
		return check_fail(why, "field %s: its enumeration has no name, or no words", of);
	for (const struct uvd_word *w = words->words; w->name; w++)
		if (!check_name(w->name) || ++n > MAX_WORDS)
			return check_fail(why, "field %s: a word of %s has a wrong name", of, words->name);
	return true;
}

/* ---- one field --------------------------------------------------------------------------------------------------- */

static bool role_counts(enum uvd_role role)
{
	return role >= UVD_ROLE_COUNT && role <= UVD_ROLE_BYTES_OF;
}

/* The roles that a field can have: it has no role of its own that is a member which is a struct. */
static bool check_role(const struct uvd_field *f, bool reserved, char why[UVD_CALL_WHY])
{
	const bool number = !f->count && (f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8);

	if ((f->role == UVD_ROLE_RESERVED) != reserved)
		return check_fail(why, "field %s: reserved fields, and only these, have a list of their own", f->name);
	if (f->role >= UVD_ROLES || f->role == UVD_ROLE_STRUCT || f->role == UVD_ROLE_SPECS)
		return check_fail(why, "field %s: %d is no role of a field", f->name, f->role);
	if (!f->size || (!number && !f->count))
		return check_fail(why, "field %s: a number has 1, 2, 4 or 8 bytes, and it has %u", f->name, f->size);
	if ((f->role == UVD_ROLE_HANDLE || f->role == UVD_ROLE_FD || uvd_role_is_chosen(f->role)) &&
	    (!number || f->size != 4))
		return check_fail(why, "field %s: a %s has 4 bytes", f->name, uvd_role_name(f->role));
	if ((f->role == UVD_ROLE_ADDRESS || f->role == UVD_ROLE_IOVA || f->role == UVD_ROLE_AT) &&
	    (!number || f->size != 8))
		return check_fail(why, "field %s: an address has 8 bytes", f->name);
	if (role_counts(f->role) && !number)
		return check_fail(why, "field %s: a %s is a number", f->name, uvd_role_name(f->role));
	if ((f->role == UVD_ROLE_GID || f->role == UVD_ROLE_OWN_GID) && uvd_field_bytes(f) != 16)
		return check_fail(why, "field %s: a %s has 16 bytes", f->name, uvd_role_name(f->role));
	return true;
}

/* A field that another one names by its number, from 1, is a number of this struct. */
static bool check_number_of(const struct uvd_struct *of, unsigned int num, const struct uvd_field *f,
			    unsigned int number)
{
	return number <= num && &of->fields[number - 1] != f && !of->fields[number - 1].count;
}

static bool check_beside(const struct uvd_struct *of, unsigned int num, const struct uvd_field *f,
			 char why[UVD_CALL_WHY])
{
	const bool wants = f->role == UVD_ROLE_ADDRESS || f->role == UVD_ROLE_AT;
	enum uvd_role role;

	if (wants ? !f->beside || !check_number_of(of, num, f, f->beside) : f->beside)
		return check_fail(why, "field %s: `beside` is %u, and not the number of the field with its %s", f->name,
				  f->beside, f->role == UVD_ROLE_AT ? "key" : "length");
	role = wants ? of->fields[f->beside - 1].role : UVD_ROLE_NUMBER;
	if (f->role == UVD_ROLE_AT && role != UVD_ROLE_LKEY && role != UVD_ROLE_RKEY)
		return check_fail(why, "field %s: the field beside it is no key", f->name);
	return true;
}

/* A chain of selectors ends at a field that is always read. */
static bool check_selector(const struct uvd_struct *of, unsigned int num, const struct uvd_field *f,
			   char why[UVD_CALL_WHY])
{
	const struct uvd_field *by = f;
	unsigned int steps = 0;

	if (!f->selector && (f->select_flags || f->select_values))
		return check_fail(why, "field %s: it has no selector for its flags or values", f->name);
	if (f->selector && !f->select_flags && !f->select_values)
		return check_fail(why, "field %s: nothing selects it", f->name);
	for (; by->selector; by = &of->fields[by->selector - 1])
		if (!check_number_of(of, num, by, by->selector) || steps++ > num)
			return check_fail(
				why, "field %s: `selector` is %u, and not the number of another field that is a number",
				f->name, f->selector);
	return true;
}

static bool check_ends(const struct uvd_struct *of, const struct uvd_field *f, enum uvd_call_part part,
		       char why[UVD_CALL_WHY])
{
	if (f->makes && (part != UVD_CALL_RESPONSE || (f->role != UVD_ROLE_HANDLE && f->role != UVD_ROLE_FD)))
		return check_fail(why, "field %s: what a command makes is a handle in its response", f->name);
	if ((f->ends || f->renews) && (part != UVD_CALL_REQUEST || f->role != UVD_ROLE_HANDLE))
		return check_fail(why, "field %s: what a command %s is a handle in its request", f->name,
				  f->ends ? "ends" : "renews");
	if (role_counts(f->role) && (!f->array || !of->tail || strcmp(f->array, of->tail)))
		return check_fail(why, "field %s: it counts `%s`, which is not the array at the end", f->name,
				  f->array ? f->array : "");
	return true;
}

/* ---- a struct ---------------------------------------------------------------------------------------------------- */

/* Alternatives: one field selects both, never at once. */
static bool fields_alternate(const struct uvd_field *a, const struct uvd_field *b)
{
	return a->selector && a->selector == b->selector && !a->select_flags && !b->select_flags &&
	       !(a->select_values & b->select_values);
}

/* Compares with those of a list, up to f itself if it is there. */
static bool check_overlap(const struct uvd_field *list, const struct uvd_field *f, char why[UVD_CALL_WHY])
{
	for (const struct uvd_field *g = list; g->name && g != f; g++) {
		if (!strcmp(f->name, g->name))
			return check_fail(why, "two fields are named %s", f->name);
		if (f->at < uvd_field_end(g) && g->at < uvd_field_end(f) && !fields_alternate(f, g))
			return check_fail(why, "field %s: it overlaps with %s", f->name, g->name);
	}
	return true;
}

static bool check_field(const struct uvd_struct *of, unsigned int num, const struct uvd_field *f,
			enum uvd_call_part part, bool reserved, char why[UVD_CALL_WHY])
{
	if (!check_name(f->name))
		return check_fail(why, "a field has no name of letters, digits, '_' and '.'");
	if (!check_role(f, reserved, why))
		return false;
	if (uvd_field_end(f) > of->size)
		return check_fail(why, "field %s: it ends at byte %zu, and the struct has %u", f->name,
				  uvd_field_end(f), of->size);
	return check_beside(of, num, f, why) && check_selector(of, num, f, why) && check_ends(of, f, part, why) &&
	       check_words(f->words, f->name, why) && check_overlap(of->fields, f, why) &&
	       (!reserved || check_overlap(of->reserved, f, why));
}

/* Elements of 4 bytes, which the struct counts. */
static bool check_tail(const struct uvd_struct *of, enum uvd_call_part part, char why[UVD_CALL_WHY])
{
	if (!of->tail)
		return true;
	if (!check_name(of->tail) || part != UVD_CALL_REQUEST)
		return check_fail(why, "the array at its end: it has no name, or the struct is not that of a request");
	if (of->tail_of || of->tail_role >= UVD_ROLE_ADDRESS || of->tail_role == UVD_ROLE_FD)
		return check_fail(why, "array %s: its elements are numbers or handles of 4 bytes", of->tail);
	if (!uvd_struct_counter(of, of->tail, UVD_ROLE_COUNT) && !uvd_struct_counter(of, of->tail, UVD_ROLE_LOG))
		return check_fail(why, "array %s: no field counts its elements", of->tail);
	return true;
}

bool uvd_struct_check(const struct uvd_struct *of, enum uvd_call_part part, size_t most, char why[UVD_CALL_WHY])
{
	unsigned int num = 0, makes = 0;

	if (!check_name(of->name) || !of->fields)
		return check_fail(why, "a struct has no name of letters, digits and '_', or no fields");
	if (!of->size || of->size > most)
		return check_fail(why, "struct %s has %u bytes, and its row %zu", of->name, of->size, most);
	for (const struct uvd_field *f = of->fields; f->name && num <= UVD_CALL_FIELDS; f++)
		num++;
	if (num > UVD_CALL_FIELDS)
		return check_fail(why, "struct %s has more than %d fields", of->name, UVD_CALL_FIELDS);
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		if (!check_field(of, num, f, part, false, why))
			return false;
		makes += f->makes || f->ends || f->renews;
	}
	num = 0;
	for (const struct uvd_field *f = of->reserved ? of->reserved : no_reserved; f->name; f++)
		if (!check_field(of, 0, f, part, true, why) || ++num > UVD_CALL_FIELDS)
			return false;
	if (makes > 1)
		return check_fail(why, "struct %s makes, ends or renews more than one object", of->name);
	return check_tail(of, part, why);
}

bool uvd_value_check(const struct uvd_attr_fields *value, size_t most, char why[UVD_CALL_WHY])
{
	if (value->of && value->role != UVD_ROLE_STRUCT)
		return check_fail(why, "it has a struct, and its role is not that of one");
	if (value->role == UVD_ROLE_STRUCT)
		return value->of ? uvd_struct_check(value->of, UVD_CALL_VALUE, most, why)
				 : check_fail(why, "its role is that of a struct, and it has none");
	/* Beside an attribute there is no field with a key. Handles have types in the rows of the tree. */
	if (value->role >= UVD_ROLES || value->role == UVD_ROLE_SPECS || value->role == UVD_ROLE_HANDLE ||
	    value->role == UVD_ROLE_AT || role_counts(value->role))
		return check_fail(why, "%d is no role of an attribute", value->role);
	if ((value->role == UVD_ROLE_ADDRESS) != !!value->beside)
		return check_fail(why, "an address, and nothing else, has an attribute with its length");
	return check_words(value->words, "value", why);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

const char *uvd_struct_unknown_object(const struct uvd_struct *of, bool (*known)(void *arg, uint16_t object), void *arg,
				      uint16_t *object)
{
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		if (f->role != UVD_ROLE_HANDLE && (f->role != UVD_ROLE_FD || f->object == UVD_NO_OBJECT))
			continue;
		*object = f->object;
		if (!known(arg, f->object))
			return f->name;
		*object = f->or_object;
		if (f->or_object && f->or_object != UVD_NO_OBJECT && !known(arg, f->or_object))
			return f->name;
	}
	*object = of->tail_object;
	return of->tail && of->tail_role == UVD_ROLE_HANDLE && !known(arg, of->tail_object) ? of->tail : NULL;
}
