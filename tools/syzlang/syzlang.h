/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree --format syzlang: writes a parse tree as a description for syzkaller (docs/syzkaller.md). */
#ifndef UVD_TOOLS_SYZLANG_H
#define UVD_TOOLS_SYZLANG_H

#include <stdbool.h>
#include <stddef.h>

#include "../call/script.h"
#include "../tree/view.h"

enum { UVD_SYZ_NAME = 160, UVD_SYZ_MOST = 1024 };

/* The tree to write, and the names of the types that are written already. */
struct uvd_syz {
	const struct uvd_tree_view *view;
	char *done[UVD_SYZ_MOST];
	size_t num_done;
	bool failed; /* no memory, or more types than UVD_SYZ_MOST */
};

/* Prints the tree on stdout. Returns false if that failed. */
bool uvd_syz_print(const struct uvd_tree_view *view);

/* ---- for the files of the writer: syzlang.c, methods.c, structs.c ------------------------------------------------ */

/* Returns true the first time that it is called with this name: then the caller writes the type. */
bool uvd_syz_first(struct uvd_syz *syz, const char *name);
/* Makes an identifier of a name that a device told: other characters become '_'. lower: in small letters. */
void uvd_syz_ident(char to[UVD_SYZ_NAME], const char *name, bool lower);
/* Makes the name without what comes before and with `mark`: "CQ_CREATE" of UVERBS_METHOD_CQ_CREATE and "_METHOD_". */
void uvd_syz_after(char to[UVD_SYZ_NAME], const char *name, const char *mark, bool lower);
/*
 * Makes the type of the resource that stands for a handle or descriptor of this object. It is a number if `object` is
 * NULL (any object), or if nothing in the tree creates such objects: syzkaller refuses a resource that no call makes.
 */
void uvd_syz_resource(const struct uvd_syz *syz, const char *object, char to[UVD_SYZ_NAME]);
/* Prints `bytes` bytes of zeros as a field that the description's programs do not change. */
void uvd_syz_print_zeros(const char *field, size_t bytes);
/* Prints the constants and the set of an enumeration, once, and makes the name of the set. */
void uvd_syz_words(struct uvd_syz *syz, const struct uvd_words *words, char to[UVD_SYZ_NAME]);

/* Of a request that has the response's address: the type of the response, and where the address is. */
struct uvd_syz_response {
	const char *type;
	size_t at;
};

/*
 * Prints the type `name` for a struct, and the types of the structs in it. response: or NULL. spec: the flow's spec that
 * the struct is, or NULL.
 */
void uvd_syz_struct(struct uvd_syz *syz, const char *name, const struct uvd_struct *of,
		    const struct uvd_syz_response *response, const struct uvd_flow_kind *spec);
/* Prints a write() command and the INVOKE_WRITE of the same command, with their types; or a command of rdma_cm. */
void uvd_syz_command(struct uvd_syz *syz, const struct uverbsd_tree_row *row);
/* Prints a method, its types, and the types of its attributes. entries: the method's row, and all that follow it. */
void uvd_syz_method(struct uvd_syz *syz, const struct uvd_tree_entry *entries, size_t num);

#endif
