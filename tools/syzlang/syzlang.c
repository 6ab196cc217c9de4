/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree --format syzlang: constants, resources, and the calls that are no verbs. */
#include <ctype.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "syzlang.h"

bool uvd_syz_first(struct uvd_syz *syz, const char *name)
{
	for (size_t i = 0; i < syz->num_done; i++)
		if (!strcmp(syz->done[i], name))
			return false;
	if (syz->num_done == UVD_SYZ_MOST || !(syz->done[syz->num_done] = strdup(name))) {
		syz->failed = true;
		return false;
	}
	syz->num_done++;
	return true;
}

void uvd_syz_ident(char to[UVD_SYZ_NAME], const char *name, bool lower)
{
	size_t i = 0;

	for (; name[i] && i + 1 < UVD_SYZ_NAME; i++) {
		const unsigned char c = name[i];

		to[i] = (c < 0x80 && isalnum(c)) ? (lower ? tolower(c) : c) : '_';
	}
	to[i] = '\0';
}

void uvd_syz_after(char to[UVD_SYZ_NAME], const char *name, const char *mark, bool lower)
{
	const char *found = strstr(name, mark);

	uvd_syz_ident(to, found ? found + strlen(mark) : name, lower);
}

/* Does the response of a command have a handle of the object that it created? */
static bool syz_command_makes(const struct uvd_syz *syz, const struct uverbsd_tree_row *row, const char *object)
{
	const struct uvd_struct *of = uvd_view_command(row)->response;
	const char *made;

	for (const struct uvd_field *f = of->fields; f->name; f++) {
		made = f->makes ? uvd_view_object(syz->view, f->object) : NULL;
		if (made && !strcmp(made, object))
			return true;
	}
	return false;
}

/* Does a method or a command of the tree create objects of this kind? Some are created by drivers' methods alone. */
static bool syz_object_is_made(const struct uvd_syz *syz, const char *object)
{
	for (size_t i = 0; i < syz->view->num; i++) {
		const struct uverbsd_tree_row *row = &syz->view->entries[i].row;
		const char *target = row->kind == UVERBSD_TREE_ATTR && row->access == UVERBSD_TREE_NEW
					     ? uvd_view_object(syz->view, row->target)
					     : NULL;

		if ((target && !strcmp(target, object)) ||
		    (row->kind == UVERBSD_TREE_COMMAND && syz_command_makes(syz, row, object)))
			return true;
	}
	return false;
}

void uvd_syz_resource(const struct uvd_syz *syz, const char *object, char to[UVD_SYZ_NAME])
{
	char name[UVD_SYZ_NAME];

	if (!object || !syz_object_is_made(syz, object)) {
		strcpy(to, "int32");
		return;
	}
	uvd_syz_after(name, object, "_OBJECT_", true);
	snprintf(to, UVD_SYZ_NAME, "uverbs_%.120s_handle", name);
}

void uvd_syz_print_zeros(const char *field, size_t bytes)
{
	if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
		printf("\t%s\tconst[0, int%zu]\n", field, bytes * 8);
	else
		printf("\t%s\tarray[const[0, int8], %zu]\n", field, bytes);
}

void uvd_syz_words(struct uvd_syz *syz, const struct uvd_words *words, char to[UVD_SYZ_NAME])
{
	snprintf(to, UVD_SYZ_NAME, "uverbs_%s", words->name);
	if (!uvd_syz_first(syz, to))
		return;
	for (const struct uvd_word *w = words->words; w->name; w++)
		printf("define %s%s\t0x%llx\n", words->prefix, w->name, (unsigned long long)w->value);
	printf("%s = ", to);
	for (const struct uvd_word *w = words->words; w->name; w++)
		printf("%s%s%s", w == words->words ? "" : ", ", words->prefix, w->name);
	printf("\n\n");
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static void syz_print_define(struct uvd_syz *syz, const char *name, unsigned int value)
{
	char ident[UVD_SYZ_NAME];

	uvd_syz_ident(ident, name, false);
	if (uvd_syz_first(syz, ident))
		printf("define %s\t0x%x\n", ident, value);
}

static void syz_print_defines(struct uvd_syz *syz)
{
	const struct uvd_tree_view *view = syz->view;

	printf("define RDMA_VERBS_IOCTL\t0x%x\n", (unsigned int)RDMA_VERBS_IOCTL);
	printf("define UVERBS_ATTR_F_MANDATORY\t0x%x\n", UVERBS_ATTR_F_MANDATORY);
	printf("# enum rdma_driver_id: the device's\n");
	printf("define UVERBS_DRIVER_ID\t0x%x\n", view->driver_id);
	for (size_t i = 0; i < view->num; i++) {
		const struct uverbsd_tree_row *row = &view->entries[i].row;

		if (row->kind == UVERBSD_TREE_COMMAND && row->flags & UVERBSD_TREE_COMMAND_EX)
			syz_print_define(syz, row->name, row->id | IB_USER_VERBS_CMD_FLAG_EXTENDED);
		else if (row->kind != UVERBSD_TREE_ELEM)
			syz_print_define(syz, row->name, row->id);
	}
	putchar('\n');
}

/* ---- resources, and calls that are no verbs ---------------------------------------------------------------------- */

/* No method has an attribute of this id, so a device ignores it: it takes the place of an optional one. */
static const char syz_none[] = "uverbs_attr_none {\n\tattr_id\tconst[0xfff, int16]\n\tlen\tconst[0, int16]\n"
			       "\tattr_flags\tconst[0, int16]\n\telem_id\tconst[0, int8]\n\treserved\tconst[0, int8]\n"
			       "\tdata\tconst[0, int64]\n} [packed]\n\n";

static const char syz_calls[] =
	"openat$uverbs(fd const[AT_FDCWD], file ptr[in, string[\"/dev/infiniband/uverbs0\"]], flags const[O_RDWR], "
	"mode const[0]) fd_uverbs\n"
	"close$uverbs(fd fd_uverbs)\n"
	"mmap$uverbs(addr vma, len len[addr], prot const[0x3], flags const[0x1], fd fd_uverbs, offset int64)\n\n";

static const char syz_cm_calls[] =
	"resource fd_uverbs_rdma_cm[fd]\n"
	"openat$uverbs_rdma_cm(fd const[AT_FDCWD], file ptr[in, string[\"/dev/infiniband/rdma_cm\"]], flags const[O_RDWR], "
	"mode const[0]) fd_uverbs_rdma_cm\n"
	"close$uverbs_rdma_cm(fd fd_uverbs_rdma_cm)\n\n";

static void syz_print_resources(const struct uvd_syz *syz)
{
	const struct uvd_tree_view *view = syz->view;
	char name[UVD_SYZ_NAME];

	printf("resource fd_uverbs[fd]\nresource uverbs_lkey[int32]\nresource uverbs_rkey[int32]\n");
	for (size_t i = 0; i < view->num; i++) {
		const struct uverbsd_tree_row *row = &view->entries[i].row;

		if (row->kind != UVERBSD_TREE_OBJECT || row->type == UVERBSD_TREE_CLASS_NONE ||
		    !syz_object_is_made(syz, row->name))
			continue;
		uvd_syz_resource(syz, row->name, name);
		printf("resource %s[%s\n", name, row->type == UVERBSD_TREE_CLASS_FD ? "fd]" : "int32]: 0xffffffff");
	}
	putchar('\n');
}

/* Events of a descriptor are read from it. */
static void syz_print_fd_calls(const struct uvd_syz *syz)
{
	const struct uvd_tree_view *view = syz->view;
	char name[UVD_SYZ_NAME], type[UVD_SYZ_NAME];

	for (size_t i = 0; i < view->num; i++) {
		const struct uverbsd_tree_row *row = &view->entries[i].row;

		if (row->kind != UVERBSD_TREE_OBJECT || row->type != UVERBSD_TREE_CLASS_FD ||
		    !syz_object_is_made(syz, row->name))
			continue;
		uvd_syz_resource(syz, row->name, type);
		uvd_syz_after(name, row->name, "_OBJECT_", false);
		printf("read$uverbs_%s(fd %s, buf buffer[out], len len[buf])\n", name, type);
		printf("close$uverbs_%s(fd %s)\n", name, type);
	}
	putchar('\n');
}

static void syz_print_calls(struct uvd_syz *syz)
{
	const struct uvd_tree_view *view = syz->view;

	for (size_t i = 0; i < view->num; i++)
		if (view->entries[i].row.kind == UVERBSD_TREE_METHOD)
			uvd_syz_method(syz, &view->entries[i], view->num - i);
		else if (view->entries[i].row.kind == UVERBSD_TREE_COMMAND)
			uvd_syz_command(syz, &view->entries[i].row);
}

bool uvd_syz_print(const struct uvd_tree_view *view)
{
	struct uvd_syz syz = { .view = view };
	bool ok;

	printf("# %s Written by `uverbsctl tree --format syzlang`.\n\ninclude <uapi/linux/fcntl.h>\n\n", view->title);
	syz_print_defines(&syz);
	syz_print_resources(&syz);
	fputs(syz_none, stdout);
	fputs(syz_calls, stdout);
	if (uvd_view_object(view, UVERBSD_OBJECT_CM_ID))
		fputs(syz_cm_calls, stdout);
	syz_print_fd_calls(&syz);
	syz_print_calls(&syz);
	ok = !syz.failed && !fflush(stdout);
	for (size_t i = 0; i < syz.num_done; i++)
		free(syz.done[i]);
	return ok;
}
