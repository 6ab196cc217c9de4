/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by schema.c, make_ioctl.c and make_write.c. */
#ifndef UVD_FUZZ_SCHEMA_INTERNAL_H
#define UVD_FUZZ_SCHEMA_INTERNAL_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "fuzz/schema.h"

enum { FUZZ_METHODS = 192, FUZZ_COMMANDS = 96 };

struct fuzz_method {
	const struct uvd_object_row *object;
	const struct uvd_tree_method *tm;
};

struct fuzz_schema {
	uint16_t driver_id;
	unsigned int num_methods, num_commands;
	struct fuzz_method methods[FUZZ_METHODS];
	const struct uvd_tree_write *commands[FUZZ_COMMANDS];
};

extern struct fuzz_schema fuzz_schema;

/* NULL: the tree has no such method or command. */
const struct fuzz_method *fuzz_method_of(const struct ib_uverbs_ioctl_hdr *hdr);
const struct uvd_tree_write *fuzz_command_of(uint32_t command);

static inline bool fuzz_is_invoke(const struct fuzz_method *m)
{
	return m->object->id == UVERBS_OBJECT_DEVICE && m->tm->row->id == UVERBS_METHOD_INVOKE_WRITE;
}

/* The command as a header has it. */
static inline uint32_t fuzz_command_number(const struct uvd_write_row *row)
{
	return row->number | (row->flags & UVD_WRITE_EX ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
}

/* Fills a command's struct of `len` bytes: small numbers, handles that gen knows, addresses. */
void fuzz_fill_struct(struct fuzz_gen *gen, const struct uvd_tree_write *w, uint8_t *at, size_t len);
/* Replaces one aligned word of the bytes: a handle, an address or a number. */
void fuzz_change_word(struct fuzz_gen *gen, uint8_t *bytes, size_t len);
/* Returns an address of the client, rarely one that it does not have. */
uint64_t fuzz_address(struct fuzz_gen *gen);

#endif
