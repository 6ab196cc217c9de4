/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The functions that libFuzzer calls, and AFL++ in its libFuzzer mode. If UVD_FUZZ_DICTIONARY is set in the environment, the
 * program prints the target's dictionary instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/gen.h"
#include "fuzz/schema.h"

const char *__asan_default_options(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

#ifdef UVD_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
#else
static size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	struct fuzz_gen gen;

	fuzz_gen_init(&gen, size);
	return fuzz_mutate_bytes(&gen, data, size, max);
}
#endif

/*
 * An execution uses little memory: keep it in the caches. Threads of ours have a signal stack of their own (util/crash.c).
 * ASAN_OPTIONS overrides this. gcc's runtime is a shared library, so the function must be visible.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "quarantine_size_mb=4:malloc_context_size=8:use_sigaltstack=0";
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (fuzz_target.init)
		fuzz_target.init();
	if (!getenv("UVD_FUZZ_DICTIONARY"))
		return 0;
	if (fuzz_target.dictionary)
		fuzz_target.dictionary();
	fflush(stdout);
	_exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= FUZZ_MAX_INPUT)
		fuzz_target.run(data, size);
	return 0;
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	struct fuzz_gen gen;
	size_t ret = size;

	fuzz_gen_init(&gen, seed);
	for (unsigned int n = 1 + fuzz_any(&gen, 3); n; n--)
		ret = fuzz_target.mutate ? fuzz_target.mutate(&gen, data, ret, max)
					 : fuzz_mutate_bytes(&gen, data, ret, max);
	return ret;
}

/* One change in ten is libFuzzer's own, which knows the words of the dictionary and the operands of comparisons. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	static uint8_t changed[FUZZ_MAX_INPUT];
	size_t ret;

	if (seed % 10 == 0 || size > sizeof(changed))
		return LLVMFuzzerMutate(data, size, max);
	memcpy(changed, data, size);
	ret = fuzz_mutate(changed, size, sizeof(changed), seed / 10);
	if (!ret || ret > max)
		return LLVMFuzzerMutate(data, size, max);
	memcpy(data, changed, ret);
	return ret;
}
