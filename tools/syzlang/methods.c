/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree --format syzlang: methods, which RDMA_VERBS_IOCTL calls, and write() commands. */
#include <stdio.h>
#include <string.h>

#include "syzlang.h"

/* The smallest size of an attribute that lies behind its pointer: others are in the attribute itself. */
enum { SYZ_INLINE = 8 };

static void syz_row_type(char to[UVD_SYZ_NAME], const struct uverbsd_tree_row *row)
{
	char name[UVD_SYZ_NAME];

	snprintf(name, sizeof(name), "uverbs_%s", strncmp(row->name, "UVERBS_", 7) ? row->name : row->name + 7);
	uvd_syz_ident(to, name, true);
}

/* "CQ_CREATE" of UVERBS_METHOD_CQ_CREATE; "DEVICE_QUERY_PORT" of UVERBS_METHOD_QUERY_PORT. */
static void syz_call_name(const struct uvd_syz *syz, const struct uverbsd_tree_row *method, char to[UVD_SYZ_NAME])
{
	const char *object_row = uvd_view_object(syz->view, method->object);
	char object[UVD_SYZ_NAME], name[UVD_SYZ_NAME];

	uvd_syz_after(object, object_row ? object_row : "", "_OBJECT_", false);
	uvd_syz_after(name, method->name, "_METHOD_", false);
	if (!strncmp(name, object, strlen(object)) && name[strlen(object)] == '_')
		snprintf(to, UVD_SYZ_NAME, "%s", name);
	else
		snprintf(to, UVD_SYZ_NAME, "%.60s_%.60s", object, name);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static void syz_print_attr_head(const char *id, const char *len, bool mandatory)
{
	printf("\tattr_id\tconst[%s, int16]\n\tlen\t%s\n", id, len);
	printf("\tattr_flags\t%s\n", mandatory ? "const[UVERBS_ATTR_F_MANDATORY, int16]" : "int16[0:1]");
}

static void syz_print_attr_no_elem(void)
{
	printf("\telem_id\tconst[0, int8]\n\treserved\tconst[0, int8]\n");
}

static bool syz_is_sized_number(const struct uverbsd_tree_row *row)
{
	return row->len == row->min_len && (row->len == 1 || row->len == 2 || row->len == 4 || row->len == 8);
}

/* Makes the type of a number, or of the elements of an array. `bytes`: its size. */
static void syz_number_type(struct uvd_syz *syz, const struct uverbsd_tree_row *row, unsigned int bytes,
			    char to[UVD_SYZ_NAME])
{
	const struct uvd_words *words = uvd_view_value(row)->words;
	const size_t len = strlen(row->name);
	char set[UVD_SYZ_NAME];

	if (words) {
		uvd_syz_words(syz, words, set);
		snprintf(to, UVD_SYZ_NAME, "flags[%.100s, int%u]", set, bytes * 8);
	} else if (bytes == 4 && len > 5 &&
		   (!strcmp(row->name + len - 5, "_LKEY") || !strcmp(row->name + len - 5, "_RKEY"))) {
		snprintf(to, UVD_SYZ_NAME, "uverbs_%ckey", row->name[len - 4] == 'L' ? 'l' : 'r');
	} else if (bytes == 8 && len > 5 &&
		   (!strcmp(row->name + len - 5, "_ADDR") || !strcmp(row->name + len - 5, "_IOVA"))) {
		strcpy(to, "vma64");
	} else {
		snprintf(to, UVD_SYZ_NAME, "int%u", bytes * 8);
	}
}

/* Makes the type of what an attribute points at; writes the types that it needs. */
static void syz_pointee_type(struct uvd_syz *syz, const struct uverbsd_tree_row *row, char to[UVD_SYZ_NAME])
{
	const struct uvd_struct *of = uvd_view_value(row)->of;
	char name[UVD_SYZ_NAME];

	if (of) {
		snprintf(name, sizeof(name), "uverbs_%s", of->name);
		uvd_syz_struct(syz, name, of, NULL, NULL);
		snprintf(to, UVD_SYZ_NAME, row->len == UVERBSD_TREE_LEN_ANY ? "array[%.100s]" : "%.100s", name);
	} else if (syz_is_sized_number(row)) {
		syz_number_type(syz, row, row->len, to);
	} else if (row->len == row->min_len) {
		snprintf(to, UVD_SYZ_NAME, "array[int8, %u]", row->len);
	} else if (row->len != UVERBSD_TREE_LEN_ANY) {
		snprintf(to, UVD_SYZ_NAME, "array[int8, %u:%u]", row->min_len, row->len);
	} else {
		strcpy(to, "array[int8]");
	}
}

static void syz_object_type(const struct uvd_syz *syz, const struct uverbsd_tree_row *row, char to[UVD_SYZ_NAME])
{
	if (row->type == UVERBSD_TREE_RAW_FD)
		strcpy(to, "fd");
	else
		uvd_syz_resource(syz, uvd_view_object(syz->view, row->target), to);
}

static void syz_print_handle(const struct uvd_syz *syz, const struct uverbsd_tree_row *row)
{
	char type[UVD_SYZ_NAME];

	syz_object_type(syz, row, type);
	printf("\tdata\t%s\t(%s)\n", type,
	       row->access == UVERBSD_TREE_NEW && row->type != UVERBSD_TREE_RAW_FD ? "out" : "in");
	uvd_syz_print_zeros("pad", 4);
}

/* Prints an attribute whose value is data: in the attribute itself up to 8 bytes, else behind a pointer. */
static void syz_print_data_attr(struct uvd_syz *syz, const struct uverbsd_tree_row *row, const char *name,
				const char *id)
{
	const bool is_out = row->type == UVERBSD_TREE_PTR_OUT;
	const unsigned int bytes = row->type == UVERBSD_TREE_CONST || row->type == UVERBSD_TREE_FLAGS ? 8 : row->len;
	char type[UVD_SYZ_NAME], len[32];

	if (row->type == UVERBSD_TREE_CONST || row->type == UVERBSD_TREE_FLAGS)
		syz_number_type(syz, row, bytes, type);
	else
		syz_pointee_type(syz, row, type);
	printf("%s {\n", name);
	if (!is_out && bytes <= SYZ_INLINE && (syz_is_sized_number(row) || bytes == 8)) {
		snprintf(len, sizeof(len), "const[%u, int16]", bytes);
		syz_print_attr_head(id, len, row->flags & UVERBSD_TREE_MANDATORY);
		syz_print_attr_no_elem();
		printf("\tdata\t%s\t(in)\n", type);
		if (bytes < SYZ_INLINE)
			uvd_syz_print_zeros("pad", SYZ_INLINE - bytes);
	} else {
		syz_print_attr_head(id, "bytesize[data, int16]", row->flags & UVERBSD_TREE_MANDATORY);
		syz_print_attr_no_elem();
		printf("\tdata\tptr64[%s, %s]\n", is_out ? "out" : "in", type);
	}
	printf("} [packed]\n\n");
}

static void syz_print_handle_attr(const struct uvd_syz *syz, const struct uverbsd_tree_row *row, const char *name,
				  const char *id)
{
	char type[UVD_SYZ_NAME];

	printf("%s {\n", name);
	if (row->type == UVERBSD_TREE_IDRS_ARRAY) {
		syz_object_type(syz, row, type);
		syz_print_attr_head(id, "bytesize[data, int16]", row->flags & UVERBSD_TREE_MANDATORY);
		syz_print_attr_no_elem();
		printf("\tdata\tptr64[in, array[%s]]\n", type);
	} else {
		syz_print_attr_head(id, "const[0, int16]", row->flags & UVERBSD_TREE_MANDATORY);
		syz_print_attr_no_elem();
		syz_print_handle(syz, row);
	}
	printf("} [packed]\n\n");
}

/* Prints a union of one attribute for each element of an enumeration, all with the attribute's id. */
static void syz_print_enum_attr(struct uvd_syz *syz, const struct uvd_tree_entry *elems, size_t num, const char *name,
				const char *id, bool mandatory)
{
	char type[UVD_SYZ_NAME], elem[UVD_SYZ_NAME];

	for (size_t i = 0; i < num; i++) {
		const struct uverbsd_tree_row *row = &elems[i].row;
		const bool is_number = syz_is_sized_number(row);

		syz_pointee_type(syz, row, type);
		syz_row_type(elem, row);
		printf("%.80s_%.70s {\n", name, elem + strlen("uverbs_"));
		syz_print_attr_head(id, row->len == 0 ? "const[0, int16]" : "bytesize[data, int16]", mandatory);
		printf("\telem_id\tconst[%u, int8]\n\treserved\tconst[0, int8]\n", row->id);
		if (!row->len)
			printf("\tdata\tconst[0, int64]\n");
		else if (is_number)
			printf("\tdata\t%s\t(in)\n", type);
		else
			printf("\tdata\tptr64[in, %s]\n", type);
		if (is_number && row->len && row->len < SYZ_INLINE)
			uvd_syz_print_zeros("pad", SYZ_INLINE - row->len);
		printf("} [packed]\n\n");
	}
	printf("%s [\n", name);
	for (size_t i = 0; i < num; i++) {
		syz_row_type(elem, &elems[i].row);
		printf("\t%.70s\t%.80s_%.70s\n", elem + strlen("uverbs_"), name, elem + strlen("uverbs_"));
	}
	printf("]\n\n");
}

static size_t syz_num_elems(const struct uvd_tree_entry *attr, size_t num)
{
	size_t n = 0;

	while (n + 1 < num && attr[n + 1].row.kind == UVERBSD_TREE_ELEM)
		n++;
	return n;
}

static void syz_print_attr_type(struct uvd_syz *syz, const struct uvd_tree_entry *attr, size_t num)
{
	const struct uverbsd_tree_row *row = &attr->row;
	char name[UVD_SYZ_NAME], id[UVD_SYZ_NAME];

	syz_row_type(name, row);
	uvd_syz_ident(id, row->name, false);
	if (!uvd_syz_first(syz, name))
		return;
	switch (row->type) {
	case UVERBSD_TREE_ENUM_IN:
		syz_print_enum_attr(syz, attr + 1, syz_num_elems(attr, num), name, id,
				    row->flags & UVERBSD_TREE_MANDATORY);
		break;
	case UVERBSD_TREE_IDR:
	case UVERBSD_TREE_FD:
	case UVERBSD_TREE_IDRS_ARRAY:
	case UVERBSD_TREE_RAW_FD:
		syz_print_handle_attr(syz, row, name, id);
		break;
	default:
		syz_print_data_attr(syz, row, name, id);
	}
	if (!(row->flags & UVERBSD_TREE_MANDATORY))
		printf("%s_or_none [\n\tattr\t%s\n\tnone\tuverbs_attr_none\n]\n\n", name, name);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static void syz_print_method_head(const char *type, const char *object, const char *method, unsigned int num_attrs)
{
	printf("%s {\n\tlength\tbytesize[parent, int16]\n\tobject_id\tconst[%s, int16]\n\tmethod_id\tconst[%s, int16]\n",
	       type, object, method);
	printf("\tnum_attrs\tconst[%u, int16]\n\treserved1\tconst[0, int64]\n", num_attrs);
	printf("\tdriver_id\tconst[UVERBS_DRIVER_ID, int32]\n\treserved2\tconst[0, int32]\n");
}

void uvd_syz_method(struct uvd_syz *syz, const struct uvd_tree_entry *entries, size_t num)
{
	const char *object_row = uvd_view_object(syz->view, entries->row.object);
	char name[UVD_SYZ_NAME], type[UVD_SYZ_NAME], object[UVD_SYZ_NAME], method[UVD_SYZ_NAME], field[UVD_SYZ_NAME];
	unsigned int num_attrs = 0;
	size_t end = 1;

	for (; end < num && (entries[end].row.kind == UVERBSD_TREE_ATTR || entries[end].row.kind == UVERBSD_TREE_ELEM);
	     end++)
		if (entries[end].row.kind == UVERBSD_TREE_ATTR) {
			syz_print_attr_type(syz, &entries[end], num - end);
			num_attrs++;
		}
	syz_call_name(syz, &entries->row, name);
	snprintf(field, sizeof(field), "uverbs_ioctl_%.120s", name);
	uvd_syz_ident(type, field, true);
	uvd_syz_ident(object, object_row ? object_row : "", false);
	uvd_syz_ident(method, entries->row.name, false);
	syz_print_method_head(type, object, method, num_attrs);
	for (size_t i = 1; i < end; i++)
		if (entries[i].row.kind == UVERBSD_TREE_ATTR) {
			syz_row_type(field, &entries[i].row);
			printf("\t%s\t%s%s\n", field + strlen("uverbs_"), field,
			       entries[i].row.flags & UVERBSD_TREE_MANDATORY ? "" : "_or_none");
		}
	printf("} [packed]\n\nioctl$uverbs_%s(fd fd_uverbs, cmd const[RDMA_VERBS_IOCTL], arg ptr[inout, %s])\n\n", name,
	       type);
}

/* ---- write() commands -------------------------------------------------------------------------------------------- */

/* Makes the types of a command's request and response. */
struct syz_command {
	char name[UVD_SYZ_NAME], number[UVD_SYZ_NAME];
	char request[UVD_SYZ_NAME], response[UVD_SYZ_NAME]; /* "": it has none */
	bool is_ex, is_cm, has_driver, response_first;
};

static void syz_print_bytes_type(struct uvd_syz *syz, const char *type, unsigned int bytes, const char *response)
{
	if (!uvd_syz_first(syz, type))
		return;
	printf("%s {\n", type);
	if (response)
		printf("\tresponse\tptr64[out, %s]\n", response);
	if (!response || bytes > 8)
		printf("\tdata\tarray[int8, %u]\n", response ? bytes - 8 : bytes);
	printf("} [packed]\n\n");
}

/* Prints the responses of which a field of the request selects one, as a union of them. */
static void syz_other_response(struct uvd_syz *syz, char core[UVD_SYZ_NAME], const struct uverbsd_tree_row *row)
{
	char other[UVD_SYZ_NAME];

	for (const struct uvd_cm_command *c = uvd_cm_commands; c->command; c++) {
		if (!c->other || strcmp(c->command, row->name))
			continue;
		snprintf(other, sizeof(other), "uverbs_%s", c->other->name);
		uvd_syz_struct(syz, other, c->other, NULL, NULL);
		printf("%.120s_any [\n\tone\t%s\n\tother\t%s\n] [varlen]\n\n", core, core, other);
		snprintf(other, sizeof(other), "%.120s_any", core);
		strcpy(core, other);
	}
}

/* Prints the response with the driver's part behind it. */
static void syz_command_response(struct uvd_syz *syz, struct syz_command *c, const struct uverbsd_tree_row *row)
{
	const struct uvd_struct *of = uvd_view_command(row)->response;
	char core[UVD_SYZ_NAME];

	c->response[0] = '\0';
	if ((!row->len && !of->size) || (!c->is_ex && !c->response_first))
		return;
	core[0] = '\0';
	if (of->size) {
		snprintf(core, sizeof(core), "uverbs_%s", of->name);
		uvd_syz_struct(syz, core, of, NULL, NULL);
		syz_other_response(syz, core, row);
	} else if (row->len) {
		snprintf(core, sizeof(core), "uverbs_bytes_%.100s_resp", c->name);
		uvd_syz_ident(core, core, true);
		syz_print_bytes_type(syz, core, row->len, NULL);
	}
	snprintf(c->response, sizeof(c->response), "uverbs_out_%.120s", c->name);
	uvd_syz_ident(c->response, c->response, true);
	printf("%s {\n", c->response);
	if (core[0])
		printf("\tcore\t%s\n", core);
	if (c->has_driver)
		printf("\tdriver\tarray[int%u, 0:16]\n", c->is_ex ? 64 : 32);
	printf("} [packed]\n\n");
}

static void syz_command_request(struct uvd_syz *syz, struct syz_command *c, const struct uverbsd_tree_row *row)
{
	const struct uvd_struct *of = uvd_view_command(row)->request;
	const struct uvd_syz_response at = { c->response, c->is_cm ? uvd_cm_response_at(row->name) : 0 },
				      *response = c->response_first && c->response[0] ? &at : NULL;

	c->request[0] = '\0';
	if (of->size) {
		/* Commands of rdma_cm share structs, and have responses of their own. */
		snprintf(c->request, sizeof(c->request), "uverbs_%s%.120s", c->is_cm ? "in_" : "",
			 c->is_cm ? c->name : of->name);
		uvd_syz_ident(c->request, c->request, true);
		uvd_syz_struct(syz, c->request, of, response, NULL);
	} else if (row->min_len) {
		snprintf(c->request, sizeof(c->request), "uverbs_bytes_%.100s", c->name);
		uvd_syz_ident(c->request, c->request, true);
		syz_print_bytes_type(syz, c->request, row->min_len, response ? c->response : NULL);
	}
}

static void syz_print_write_command(const struct syz_command *c, const char *type)
{
	const unsigned int unit = c->is_ex ? 8 : 4;

	printf("%s {\n\tcommand\tconst[%s, int32]\n", type, c->number);
	printf("\tin_words\tbytesize%u[%s, int16]\n", unit, !c->is_ex ? "parent" : c->request[0] ? "core" : "driver");
	if (c->response[0] && (c->is_ex || (c->response_first && c->request[0])))
		printf("\tout_words\tbytesize%u[%s, int16]\n", unit, c->is_ex ? "response:core" : "core:response");
	else
		printf("\tout_words\tconst[0, int16]\n");
	if (c->is_ex) {
		if (c->response[0])
			printf("\tresponse\tptr64[out, %s]\n", c->response);
		else
			printf("\tresponse\tconst[0, int64]\n");
		printf("\tprovider_in_words\t%s\n", c->has_driver ? "bytesize8[driver, int16]" : "const[0, int16]");
		printf("\tprovider_out_words\t%s\n",
		       c->has_driver && c->response[0] ? "bytesize8[response:driver, int16]" : "const[0, int16]");
		printf("\tcmd_hdr_reserved\tconst[0, int32]\n");
	}
	if (c->request[0])
		printf("\tcore\t%s\n", c->request);
	if (c->has_driver)
		printf("\tdriver\tarray[int%u, 0:16]\n", unit * 8);
	printf("} [packed]\n\n");
}

static void syz_print_pointer(const char *field, const char *id, const char *dir, const char *type)
{
	printf("%s {\n", field);
	syz_print_attr_head(id, "bytesize[data, int16]", true);
	syz_print_attr_no_elem();
	printf("\tdata\tptr64[%s, %s]\n} [packed]\n\n", dir, type);
}

/* The same command by UVERBS_METHOD_INVOKE_WRITE. The driver's part of the response is in an attribute of its own. */
static void syz_print_invoke(struct uvd_syz *syz, const struct syz_command *c, const struct uverbsd_tree_row *row)
{
	char type[UVD_SYZ_NAME], in[UVD_SYZ_NAME], out[UVD_SYZ_NAME], cmd[UVD_SYZ_NAME];

	snprintf(type, sizeof(type), "uverbs_invoke_%.100s", c->name);
	uvd_syz_ident(type, type, true);
	snprintf(in, sizeof(in), "%.130s_in", type);
	snprintf(out, sizeof(out), "%.130s_out", type);
	snprintf(cmd, sizeof(cmd), "%.130s_cmd", type);
	printf("%s {\n", cmd);
	syz_print_attr_head("UVERBS_ATTR_WRITE_CMD", "const[8, int16]", true);
	syz_print_attr_no_elem();
	printf("\tdata\tconst[%s, int64]\n} [packed]\n\n", c->number);
	if (c->request[0])
		syz_print_pointer(in, "UVERBS_ATTR_CORE_IN", "in", c->request);
	if (c->response[0] && row->len)
		syz_print_pointer(out, "UVERBS_ATTR_CORE_OUT", "out", c->response);
	syz_print_method_head(type, "UVERBS_OBJECT_DEVICE", "UVERBS_METHOD_INVOKE_WRITE",
			      1 + !!c->request[0] + (c->response[0] && row->len) + 2 * c->has_driver);
	printf("\twrite_cmd\t%s\n", cmd);
	if (c->request[0])
		printf("\tcore_in\t%s\n", in);
	if (c->response[0] && row->len)
		printf("\tcore_out\t%s\n", out);
	if (c->has_driver)
		printf("\tuhw_in\tuverbs_attr_uhw_in_or_none\n\tuhw_out\tuverbs_attr_uhw_out_or_none\n");
	printf("} [packed]\n\nioctl$uverbs_INVOKE_%s(fd fd_uverbs, cmd const[RDMA_VERBS_IOCTL], arg ptr[inout, %s])\n\n",
	       c->name, type);
}

static bool syz_has_invoke_write(const struct uvd_tree_view *view)
{
	for (size_t i = 0; i < view->num; i++)
		if (view->entries[i].row.kind == UVERBSD_TREE_METHOD &&
		    !strcmp(view->entries[i].row.name, "UVERBS_METHOD_INVOKE_WRITE"))
			return true;
	return false;
}

/* A command of rdma_cm counts bytes, and its request has the response's address. */
static void syz_print_cm_command(const struct syz_command *c, const char *type)
{
	printf("%s {\n\tcmd\tconst[%s, int32]\n\tin\tbytesize[core, int16]\n", type, c->number);
	printf("\tout\t%s\n", c->response[0] ? "bytesize[core:response, int16]" : "const[0, int16]");
	printf("\tcore\t%s\n} [packed]\n\n", c->request);
	printf("write$uverbs_%s(fd fd_uverbs_rdma_cm, buf ptr[in, %s], len bytesize[buf])\n\n", c->name, type);
}

void uvd_syz_command(struct uvd_syz *syz, const struct uverbsd_tree_row *row)
{
	struct syz_command c = { .is_ex = row->flags & UVERBSD_TREE_COMMAND_EX,
				 .is_cm = row->flags & UVERBSD_TREE_COMMAND_CM,
				 .has_driver = row->flags & UVERBSD_TREE_COMMAND_UDATA,
				 .response_first = row->flags & UVERBSD_TREE_COMMAND_RESP };
	char name[UVD_SYZ_NAME], type[UVD_SYZ_NAME];

	uvd_syz_ident(c.number, row->name, false);
	uvd_syz_after(name, row->name, "_CMD_", false);
	snprintf(c.name, sizeof(c.name), "%s%.120s", c.is_cm ? "CM_" : c.is_ex ? "EX_" : "", name);
	syz_command_response(syz, &c, row);
	syz_command_request(syz, &c, row);
	snprintf(name, sizeof(name), "uverbs_cmd_%.120s", c.name);
	uvd_syz_ident(type, name, true);
	if (c.is_cm) {
		syz_print_cm_command(&c, type);
		return;
	}
	syz_print_write_command(&c, type);
	printf("write$uverbs_%s(fd fd_uverbs, buf ptr[in, %s], len bytesize[buf])\n\n", c.name, type);
	if (syz_has_invoke_write(syz->view))
		syz_print_invoke(syz, &c, row);
}
