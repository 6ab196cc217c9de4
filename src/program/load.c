/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files that hold programs. */
#include <errno.h>
#include <string.h>
#include <uverbsd/schema.h>
#include "format.h"

/* Text is what no other reader knows. Binary files contain a NUL; text does not. */
static bool text_knows(const void *start, size_t len)
{
	return !memchr(start, 0, len);
}

static const struct uvd_prog_reader readers[] = {
	{ "program", text_knows, uvd_prog_parse },
};

static const struct uvd_prog_reader *reader_find(FILE *in)
{
	char start[512];
	size_t len = fread(start, 1, sizeof(start), in);

	rewind(in);
	for (unsigned int i = 0; i < UVD_COUNT(readers); i++)
		if (readers[i].knows(start, len))
			return &readers[i];
	return NULL;
}

bool uvd_prog_load(struct uvd_prog *p, const char *who, const char *path)
{
	const char *why, *base = strrchr(path, '/');
	const struct uvd_prog_reader *reader;
	FILE *in = fopen(path, "re");
	unsigned int line;

	if (!in) {
		fprintf(stderr, "%s: %s: %s\n", who, path, strerror(errno));
		return false;
	}
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", base ? base + 1 : path);
	reader = reader_find(in);
	line = reader ? reader->read(p, in, &why) : 0;
	fclose(in);
	if (!reader)
		fprintf(stderr, "%s: %s: not a program: the file is not text\n", who, path);
	else if (line)
		fprintf(stderr, "%s: %s:%u: %s\n", who, path, line, why);
	return reader && !line;
}
