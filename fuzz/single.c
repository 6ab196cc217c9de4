/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One call on a file of the backend null that has objects. After a call that may have changed the file, the next one gets
 * a new file: opening and filling one costs as much as some thirty calls.
 */
#include <stdio.h>

#include "fuzz/single.h"
#include "util/util.h"

static struct {
	struct uvd_device *dev;
	struct uvd_file *file;
	unsigned int num_objects;
	long result; /* of the last call */
} single;

static void single_open(void)
{
	single.file = fuzz_file_open_filled(single.dev);
	single.num_objects = atomic_load(&single.file->num_objects);
}

static void single_init(void)
{
	fuzz_engine_init();
	single.dev = fuzz_device_new("null", "hfi1", 0);
	single_open();
	fuzz_schema_init(single.dev->trees->plain);
}

static void single_run(const uint8_t *data, size_t size)
{
	single.result = fuzz_front.call(single.file, data, size);
	fuzz_client_clear(false);
	if (single.result < 0 && atomic_load(&single.file->num_objects) == single.num_objects)
		return;
	uvd_file_close(single.file);
	fuzz_client_close_fds();
	fuzz_check_accounts();
	single_open();
}

/* Tells gen the handles of the file's objects. */
static void single_known(struct fuzz_gen *gen)
{
	for (uint32_t i = 0; i < FUZZ_FILLED; i++)
		fuzz_know(gen, fuzz_filled_object(i), i);
}

static size_t single_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	gen->num_known = 0;
	single_known(gen);
	return fuzz_front.mutate(gen, data, size, max);
}

/* One call of each method or command. */
static size_t single_seed(unsigned int n, uint8_t *data, size_t max, char name[64])
{
	struct fuzz_gen gen;

	if (n >= fuzz_front.num())
		return 0;
	fuzz_front.name(n, name);
	fuzz_gen_init(&gen, n);
	single_known(&gen);
	return fuzz_front.make(&gen, n, data);
}

static void single_dictionary(void)
{
	fuzz_front.dictionary();
}

static void single_tell(void)
{
	puts(single.result < 0 ? uvd_errno_name(single.result) : "succeeds");
}

const struct fuzz_target fuzz_target = {
	.name = "one call",
	.init = single_init,
	.run = single_run,
	.mutate = single_mutate,
	.seed = single_seed,
	.dictionary = single_dictionary,
	.tell = single_tell,
};
