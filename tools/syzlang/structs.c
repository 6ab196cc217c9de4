/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree --format syzlang: the kernel's structs by field, from the tables that `uverbsctl call` uses. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "syzlang.h"

/* A struct, or a struct or union in it: fields that follow each other and share the first `prefix` characters. */
struct syz_group {
	const struct uvd_struct *of;
	const struct uvd_field *first, *end;
	size_t prefix;
	size_t at, size; /* bytes from the beginning of the outermost struct */
	const struct uvd_syz_response *response; /* of a request; NULL: it has none, or this is a struct in it */
	const struct uvd_flow_kind *spec;
};

/* Sets `part` to the field, or to the group of fields, that begins with g->first[i]. Returns the fields it has. */
static size_t syz_group_part(const struct syz_group *g, const struct uvd_field *first, struct syz_group *part)
{
	const size_t len = strcspn(first->name + g->prefix, ".");

	*part = (struct syz_group){ .of = g->of, .first = first, .prefix = g->prefix + len + 1, .at = first->at };
	for (part->end = first; part->end < g->end; part->end++) {
		if (part->end > first &&
		    (first->name[g->prefix + len] != '.' || strncmp(part->end->name, first->name, g->prefix + len + 1)))
			break;
		if (uvd_field_end(part->end) > part->at + part->size)
			part->size = uvd_field_end(part->end) - part->at;
	}
	return part->end - first;
}

static bool syz_group_is_field(const struct syz_group *g)
{
	return g->end == g->first + 1 && !strchr(g->first->name + g->prefix - 1, '.');
}

/* A group is a union if its parts begin at one place. */
static bool syz_group_is_union(const struct syz_group *g)
{
	struct syz_group part;
	size_t num = 0;

	for (const struct uvd_field *f = g->first; f < g->end; f += syz_group_part(g, f, &part), num++)
		if (f->at != g->at)
			return false;
	return num > 1;
}

static void syz_group_name(const char *type, const struct syz_group *g, char to[UVD_SYZ_NAME])
{
	char path[UVD_SYZ_NAME];

	snprintf(path, sizeof(path), "%s_%.*s", type, (int)g->prefix - 1, g->first->name);
	uvd_syz_ident(to, path, true);
}

/* Fields that hold the number or the size of the elements of the flexible array. Returns false if this is none. */
static bool syz_print_count(const char *type, const struct syz_group *g, const struct uvd_field *f)
{
	const unsigned int bits = f->size * 8;
	/* A field of a struct in the request names the array from the request on. */
	const char *outer = strchr(f->name, '.') ? type : "", *colon = *outer ? ":" : "";

	if (g->spec && !strcmp(f->name, "type"))
		printf("const[%u, int%u]", g->spec->type, bits);
	else if (g->spec && !strcmp(f->name, "size"))
		printf("bytesize[parent, int%u]", bits);
	else if (!g->of->tail)
		return false;
	else if (f->role == UVD_ROLE_COUNT)
		printf("len[%s%s%s, int%u]", outer, colon, f->array, bits);
	else if (f->role == UVD_ROLE_BYTES_OF)
		printf("bytesize[%s%s%s, int%u]", outer, colon, f->array, bits);
	else if (f->role == UVD_ROLE_SIZE && g->of->tail_of)
		printf("const[%u, int%u]", g->of->tail_of->size, bits);
	else
		return false;
	return true;
}

/* Prints the resource of an object. */
static void syz_print_resource(struct uvd_syz *syz, uint16_t object)
{
	char name[UVD_SYZ_NAME];

	uvd_syz_resource(syz, uvd_view_object(syz->view, object), name);
	printf("%s", name);
}

static void syz_print_type(struct uvd_syz *syz, const char *type, const struct syz_group *g, const struct uvd_field *f)
{
	char name[UVD_SYZ_NAME];

	if (f->count) {
		printf("array[int%u, %u]", f->size * 8, f->count);
		return;
	}
	if (syz_print_count(type, g, f))
		return;
	switch (f->role) {
	case UVD_ROLE_HANDLE:
	case UVD_ROLE_FD:
		if (f->object == UVD_NO_OBJECT)
			printf("fd");
		else
			syz_print_resource(syz, f->object);
		return;
	case UVD_ROLE_LKEY:
		printf("uverbs_lkey");
		return;
	case UVD_ROLE_RKEY:
		printf("uverbs_rkey");
		return;
	case UVD_ROLE_ADDRESS:
	case UVD_ROLE_IOVA:
	case UVD_ROLE_AT:
		printf("vma64");
		return;
	default:
		break;
	}
	if (f->words) {
		uvd_syz_words(syz, f->words, name);
		printf("flags[%s, int%u%s]", name, f->size * 8, f->big ? "be" : "");
	} else {
		printf("int%u%s", f->size * 8, f->big ? "be" : "");
	}
}

/* Prints the bytes from `at` to `end`: the address of the response, or zeros. */
static void syz_print_gap(const struct syz_group *g, size_t at, size_t end)
{
	char label[32];

	snprintf(label, sizeof(label), "reserved%zu", at);
	if (g->response && at == g->response->at && end >= at + 8) {
		printf("\tresponse\tptr64[out, %s]\n", g->response->type);
		syz_print_gap(g, at + 8, end);
	} else if (end > at) {
		uvd_syz_print_zeros(label, end - at);
	}
}

/* Prints the lines of a group's parts, and zeros for the bytes between them, which the kernel calls reserved. */
static void syz_print_parts(struct uvd_syz *syz, const char *type, const char *outermost, const struct syz_group *g)
{
	const bool in_union = syz_group_is_union(g);
	char name[UVD_SYZ_NAME];
	struct syz_group part;
	size_t at = g->at;

	for (const struct uvd_field *f = g->first; f < g->end;) {
		const size_t num = syz_group_part(g, f, &part);

		if (!in_union)
			syz_print_gap(g, at, f->at);
		/* An element of an array of structs is called by its number. */
		printf("\t%s%.*s\t", isdigit((unsigned char)f->name[g->prefix]) ? "no" : "",
		       (int)(part.prefix - 1 - g->prefix), f->name + g->prefix);
		part.spec = g->spec;
		syz_group_name(outermost, &part, name);
		if (syz_group_is_field(&part))
			syz_print_type(syz, outermost, g, f);
		else
			printf("%s", name);
		putchar('\n');
		at = part.at + part.size;
		f += num;
	}
	if (!in_union)
		syz_print_gap(g, at, g->at + g->size);
}

/* Prints the sets that the fields need, because a type cannot be written within another. A flow's spec has one type. */
static void syz_print_words(struct uvd_syz *syz, const struct uvd_struct *of, const struct uvd_flow_kind *spec)
{
	char name[UVD_SYZ_NAME];

	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->words && (!spec || strcmp(f->name, "type")))
			uvd_syz_words(syz, f->words, name);
}

static void syz_print_group(struct uvd_syz *syz, const char *outermost, const struct syz_group *g)
{
	const bool is_union = syz_group_is_union(g);
	char name[UVD_SYZ_NAME];
	struct syz_group part;

	for (const struct uvd_field *f = g->first; f < g->end;) {
		f += syz_group_part(g, f, &part);
		if (!syz_group_is_field(&part))
			syz_print_group(syz, outermost, &part);
	}
	syz_group_name(outermost, g, name);
	printf("%s %c\n", name, is_union ? '[' : '{');
	syz_print_parts(syz, name, outermost, g);
	printf(is_union ? "]\n\n" : "} [packed]\n\n");
}

static void syz_print_specs(struct uvd_syz *syz)
{
	char name[UVD_SYZ_NAME], kind[UVD_SYZ_NAME];

	if (!uvd_syz_first(syz, "uverbs_flow_spec"))
		return;
	for (const struct uvd_flow_kind *k = uvd_flow_kinds; k->name; k++) {
		snprintf(name, sizeof(name), "uverbs_flow_spec_%s", k->name);
		uvd_syz_ident(kind, name, true);
		uvd_syz_struct(syz, kind, k->of, NULL, k);
	}
	printf("uverbs_flow_spec [\n");
	for (const struct uvd_flow_kind *k = uvd_flow_kinds; k->name; k++) {
		uvd_syz_ident(kind, k->name, true);
		printf("\t%s\tuverbs_flow_spec_%s\n", kind, kind);
	}
	printf("] [varlen]\n\n");
}

/* Prints the types of the elements of the flexible array. */
static void syz_tail_types(struct uvd_syz *syz, const struct uvd_struct *of, char element[UVD_SYZ_NAME])
{
	const struct uvd_struct *sge = uvd_attr_fields("UVERBS_ATTR_ADVISE_MR_SGE_LIST")->of;

	if (of->tail_of) {
		snprintf(element, UVD_SYZ_NAME, "uverbs_%s", of->tail_of->name);
		uvd_syz_struct(syz, element, of->tail_of, NULL, NULL);
		uvd_syz_struct(syz, "uverbs_sge", sge, NULL, NULL);
	} else if (of->tail_role == UVD_ROLE_SPECS) {
		syz_print_specs(syz);
		strcpy(element, "uverbs_flow_spec");
	} else {
		uvd_syz_resource(syz,
				 of->tail_role == UVD_ROLE_HANDLE ? uvd_view_object(syz->view, of->tail_object) : NULL,
				 element);
	}
}

static bool syz_has_sges(const struct uvd_struct *of)
{
	return of->tail_of && uvd_struct_counter(of->tail_of, "sge", UVD_ROLE_COUNT);
}

void uvd_syz_struct(struct uvd_syz *syz, const char *name, const struct uvd_struct *of,
		    const struct uvd_syz_response *response, const struct uvd_flow_kind *spec)
{
	struct syz_group all = {
		.of = of, .first = of->fields, .end = of->fields, .size = of->size, .spec = spec, .response = response
	};
	char element[UVD_SYZ_NAME];
	struct syz_group part;

	if (!uvd_syz_first(syz, name))
		return;
	while (all.end->name)
		all.end++;
	syz_print_words(syz, of, spec);
	if (of->tail)
		syz_tail_types(syz, of, element);
	for (const struct uvd_field *f = all.first; f < all.end;) {
		f += syz_group_part(&all, f, &part);
		if (!syz_group_is_field(&part))
			syz_print_group(syz, name, &part);
	}
	printf("%s {\n", name);
	syz_print_parts(syz, name, name, &all);
	if (of->tail)
		printf("\t%s\tarray[%s]\n", of->tail, element);
	if (syz_has_sges(of))
		printf("\tsge\tarray[uverbs_sge]\n");
	printf("} [packed%s]\n\n", of->tail && !response ? ", align[8]" : "");
}
