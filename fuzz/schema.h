/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls made from the schema: the methods and commands of a device's parse tree, with valid sizes and known handles, and
 * single changes of such calls. A call is in the form that fuzz_write() or fuzz_ioctl() takes.
 */
#ifndef UVD_FUZZ_SCHEMA_H
#define UVD_FUZZ_SCHEMA_H

#include "core/tree.h"
#include "fuzz/gen.h"

enum { FUZZ_MAX_CALL = 4096 /* bytes of a call that these functions make */ };

/* Collects the methods and commands of the tree, which must stay valid. */
void fuzz_schema_init(const struct uvd_tree *tree);

unsigned int fuzz_num_methods(void);
unsigned int fuzz_num_commands(void);
/* Write the name of method or command n, for a file name. */
void fuzz_method_name(unsigned int n, char name[64]);
void fuzz_command_name(unsigned int n, char name[64]);

/* Make a call of the method or command n. Return its size, at most FUZZ_MAX_CALL; buf has room for so much. */
size_t fuzz_make_ioctl(struct fuzz_gen *gen, unsigned int n, uint8_t *buf);
size_t fuzz_make_write(struct fuzz_gen *gen, unsigned int n, uint8_t *buf);
/* Change a call once, or make another one. Return the new size, at most max, which is FUZZ_MAX_CALL at least. */
size_t fuzz_mutate_ioctl(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max);
size_t fuzz_mutate_write(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max);

/* Notes the objects that the call would make, as if it succeeded, with consecutive handles from *next. */
void fuzz_learn_ioctl(struct fuzz_gen *gen, const uint8_t *data, size_t size, uint32_t *next);
void fuzz_learn_write(struct fuzz_gen *gen, const uint8_t *data, size_t size, uint32_t *next);

/* Prints a dictionary: methods and commands with their numbers as headers have them. */
void fuzz_dictionary_ioctl(void);
void fuzz_dictionary_write(void);

#endif
