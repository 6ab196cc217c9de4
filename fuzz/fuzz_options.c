/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The configuration file and the command line. The first byte chooses whose they are: the daemon's, those of
 * `uverbsctl run`, or those of one more device. The file follows, and behind a zero byte the words of the command line,
 * each ended by a zero byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/client.h"
#include "fuzz/gen.h"
#include "options/internal.h"

enum { MOST_WORDS = 24 };

static int options_file;
static char options_path[32];

static void options_init(void)
{
	options_file = memfd_create("config", MFD_CLOEXEC);
	snprintf(options_path, sizeof(options_path), "/proc/self/fd/%d", options_file);
	fuzz_client_silence();
	if (options_file < 0)
		abort();
}

/* Splits the words at zero bytes. Returns how many there are. */
static int options_words(char *text, size_t size, char **words)
{
	int num = 0;

	for (size_t at = 0; at < size && num < MOST_WORDS; at += strlen(text + at) + 1)
		words[num++] = text + at;
	return num;
}

/* --help and --version print to stdout, and --plugin would load what is on this machine. */
static bool options_are_quiet(const char *text, size_t size)
{
	return !memmem(text, size, "--h", 3) && !memmem(text, size, "--v", 3) && !memmem(text, size, "-h", 2) &&
	       !memmem(text, size, "plugin", 6) && !memmem(text, size, "--p", 3) && !memmem(text, size, "--c", 3);
}

static void options_parse(unsigned int whose, int argc, char **argv)
{
	const struct uvd_option_machine unknown = {};
	const struct uvd_option_place place = { .machine = &unknown, .index = 3, .nth = 3 };
	struct uvd_options o;

	if (whose == 2) {
		if (!uvd_options_parse_device(&o, &place, argc, argv))
			uvd_options_free(&o);
	} else if (uvd_options_parse(&o, whose ? UVD_PROGRAM_RUN : UVD_PROGRAM_DAEMON, NULL, NULL, argc, argv) < 0) {
		if (!o.num_devices || o.num_devices > UVD_MAX_DEVICES)
			abort();
		uvd_options_free(&o);
	}
}

static void options_run(const uint8_t *data, size_t size)
{
	static char text[FUZZ_MAX_INPUT + 1];
	char *argv[MOST_WORDS + 4] = { "fuzz", "--config", options_path };
	size_t file;
	int argc = 3;

	if (!data || !size || !options_are_quiet((const char *)data, size))
		return;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	file = strlen(text);
	if (ftruncate(options_file, 0) || (file && pwrite(options_file, text, file, 0) < 0))
		abort();
	if (data[0] % 3 == 2)
		argc = 1;
	if (file + 1 < size)
		argc += options_words(text + file + 1, size - 2 - file, argv + argc);
	argv[argc] = NULL;
	options_parse(data[0] % 3, argc, argv);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static const struct uvd_option_row *options_any_row(struct fuzz_gen *gen)
{
	unsigned int num = 0;

	while (uvd_option_at(num))
		num++;
	return uvd_option_at(fuzz_any(gen, num));
}

/* A line of the file, or words of the command line: an option with a value that it may accept. */
static int options_setting(struct fuzz_gen *gen, char *buf, size_t max, bool line)
{
	static const char *const values[] = { "yes",  "no", "null", "soft",  "rxe",
					      "hfi1", "-1", "0x10", "1,2,3", "fe80::1" };
	const struct uvd_option_row *row = options_any_row(gen);
	char value[32];

	if (fuzz_chance(gen, 50))
		snprintf(value, sizeof(value), "%lld", (long long)fuzz_number(gen));
	else
		snprintf(value, sizeof(value), "%s", values[fuzz_any(gen, sizeof(values) / sizeof(values[0]))]);
	if (row->choices && fuzz_chance(gen, 70))
		snprintf(value, sizeof(value), "%s", row->choices[0].name);
	if (!line)
		return snprintf(buf, max, "--%s=%s%c", row->name, row->arg ? value : "", 0);
	if (fuzz_chance(gen, 25))
		return snprintf(buf, max, "[%s %u.%u]\n", fuzz_chance(gen, 50) ? "port" : "device", fuzz_any(gen, 3),
				fuzz_any(gen, 3));
	return snprintf(buf, max, "%s=%s\n", row->name, value);
}

static size_t options_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	char text[128];
	size_t end, len;
	bool line;

	if (!size || fuzz_chance(gen, 50))
		return fuzz_mutate_bytes(gen, data, size, max);
	end = 1 + strnlen((char *)data + 1, size - 1);
	line = fuzz_chance(gen, 60);
	len = options_setting(gen, text, sizeof(text), line);
	if (len > sizeof(text) || size + len + 1 > max)
		return size;
	if (line) { /* before the end of the file */
		memmove(data + end + len, data + end, size - end);
		memcpy(data + end, text, len);
		return size + len;
	}
	if (end == size)
		data[size++] = 0;
	memcpy(data + size, text, len);
	return size + len;
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_options",
	.init = options_init,
	.run = options_run,
	.mutate = options_mutate,
};
