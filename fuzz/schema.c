/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The list of methods and commands, and what they make. */
#include <ctype.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>

#include "call/call.h"
#include "fuzz/schema_internal.h"

struct fuzz_schema fuzz_schema;

static void schema_add_object(const struct uvd_tree_object *to)
{
	struct fuzz_schema *s = &fuzz_schema;

	for (unsigned int ns = 0; ns < 2; ns++)
		for (unsigned int i = 0; i < to->num_methods[ns]; i++)
			if (to->methods[ns][i].row && s->num_methods < FUZZ_METHODS)
				s->methods[s->num_methods++] = (struct fuzz_method){ to->row, &to->methods[ns][i] };
}

void fuzz_schema_init(const struct uvd_tree *tree)
{
	struct fuzz_schema *s = &fuzz_schema;

	memset(s, 0, sizeof(*s));
	s->driver_id = tree->driver_id;
	for (unsigned int ns = 0; ns < 2; ns++)
		for (unsigned int i = 0; i < tree->num_objects[ns]; i++)
			if (tree->objects[ns][i].row)
				schema_add_object(&tree->objects[ns][i]);
	for (unsigned int ex = 0; ex < 2; ex++)
		for (unsigned int i = 0; i < tree->num_writes[ex]; i++)
			if (tree->writes[ex][i].row && s->num_commands < FUZZ_COMMANDS)
				s->commands[s->num_commands++] = &tree->writes[ex][i];
}

unsigned int fuzz_num_methods(void)
{
	return fuzz_schema.num_methods;
}

unsigned int fuzz_num_commands(void)
{
	return fuzz_schema.num_commands;
}

static void schema_name(char name[64], const char *text, const char *prefix)
{
	size_t len = strlen(prefix), i = 0;

	if (!strncmp(text, prefix, len))
		text += len;
	for (; text[i] && i < 63; i++)
		name[i] = isupper((unsigned char)text[i]) ? tolower(text[i]) : text[i] == '_' ? '-' : text[i];
	name[i] = 0;
}

void fuzz_method_name(unsigned int n, char name[64])
{
	const struct fuzz_method *m = &fuzz_schema.methods[n];
	char object[64], method[64];

	schema_name(object, m->object->name, "UVERBS_OBJECT_");
	schema_name(method, m->tm->row->name, "UVERBS_METHOD_");
	snprintf(name, 64, "%.31s.%.31s", object, method);
}

void fuzz_command_name(unsigned int n, char name[64])
{
	schema_name(name, fuzz_schema.commands[n]->row->name, "IB_USER_VERBS_");
}

/* ---- what calls make --------------------------------------------------------------------------------------------- */

const struct fuzz_method *fuzz_method_of(const struct ib_uverbs_ioctl_hdr *hdr)
{
	for (unsigned int i = 0; i < fuzz_schema.num_methods; i++)
		if (fuzz_schema.methods[i].object->id == hdr->object_id &&
		    fuzz_schema.methods[i].tm->row->id == hdr->method_id)
			return &fuzz_schema.methods[i];
	return NULL;
}

const struct uvd_tree_write *fuzz_command_of(uint32_t command)
{
	const bool ex = command & IB_USER_VERBS_CMD_FLAG_EXTENDED;

	for (unsigned int i = 0; i < fuzz_schema.num_commands; i++) {
		const struct uvd_write_row *row = fuzz_schema.commands[i]->row;

		if (row->number == (command & IB_USER_VERBS_CMD_COMMAND_MASK) && !!(row->flags & UVD_WRITE_EX) == ex)
			return fuzz_schema.commands[i];
	}
	return NULL;
}

/* Does the command's response have the handle of a new object? */
static bool command_makes(const struct uvd_tree_write *w)
{
	if (w->object->cls != UVD_CLASS_IDR)
		return false;
	for (const struct uvd_field *f = uvd_tree_command_fields(w)->response->fields; f->name; f++)
		if (f->makes)
			return true;
	return false;
}

static void learn_command(struct fuzz_gen *gen, uint32_t command, uint32_t *next)
{
	const struct uvd_tree_write *w = fuzz_command_of(command);

	if (w && command_makes(w))
		fuzz_know(gen, w->object->id, (*next)++);
}

void fuzz_learn_write(struct fuzz_gen *gen, const uint8_t *data, size_t size, uint32_t *next)
{
	struct ib_uverbs_cmd_hdr hdr;

	if (size < sizeof(hdr))
		return;
	memcpy(&hdr, data, sizeof(hdr));
	learn_command(gen, hdr.command, next);
}

void fuzz_learn_ioctl(struct fuzz_gen *gen, const uint8_t *data, size_t size, uint32_t *next)
{
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr;
	const struct fuzz_method *m;

	if (size < sizeof(hdr))
		return;
	memcpy(&hdr, data, sizeof(hdr));
	m = fuzz_method_of(&hdr);
	for (size_t at = sizeof(hdr); m && at + sizeof(attr) <= size && at < hdr.length; at += sizeof(attr)) {
		const struct uvd_tree_attr *ta;

		memcpy(&attr, data + at, sizeof(attr));
		ta = uvd_tree_attr(m->tm, attr.attr_id);
		if (ta && ta->row->type == UVD_ATTR_IDR && ta->row->access == UVD_UOBJ_NEW)
			fuzz_know(gen, ta->row->object, (*next)++);
		if (fuzz_is_invoke(m) && attr.attr_id == UVERBS_ATTR_WRITE_CMD)
			learn_command(gen, attr.data, next);
	}
}

/* ---- dictionaries ------------------------------------------------------------------------------------------------ */

/* NAME="BYTES": nothing may follow, and AFL++ knows no dots and dashes in names. */
static void dictionary_word(const char *name, const void *bytes, size_t len)
{
	for (; *name; name++)
		putchar(isalnum((unsigned char)*name) ? *name : '_');
	printf("=\"");
	for (size_t i = 0; i < len; i++)
		printf("\\x%02x", ((const uint8_t *)bytes)[i]);
	printf("\"\n");
}

void fuzz_dictionary_ioctl(void)
{
	char name[64];

	for (unsigned int i = 0; i < fuzz_schema.num_methods; i++) {
		const struct fuzz_method *m = &fuzz_schema.methods[i];
		uint16_t ids[] = { m->object->id, m->tm->row->id };

		fuzz_method_name(i, name);
		dictionary_word(name, ids, sizeof(ids));
	}
}

void fuzz_dictionary_write(void)
{
	char name[64];

	for (unsigned int i = 0; i < fuzz_schema.num_commands; i++) {
		uint32_t command = fuzz_command_number(fuzz_schema.commands[i]->row);

		fuzz_command_name(i, name);
		dictionary_word(name, &command, sizeof(command));
	}
}
