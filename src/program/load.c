/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files that hold programs as text. */
#include <errno.h>
#include <string.h>
#include "format.h"

bool uvd_prog_is_text(const void *start, size_t len)
{
	return !memchr(start, 0, len);
}

static bool file_is_text(FILE *in)
{
	char start[512];
	size_t len = fread(start, 1, sizeof(start), in);

	rewind(in);
	return uvd_prog_is_text(start, len);
}

bool uvd_prog_load(struct uvd_prog *p, const char *who, const char *path)
{
	const char *why, *base = strrchr(path, '/');
	FILE *in = fopen(path, "re");
	unsigned int line;
	bool text;

	if (!in) {
		fprintf(stderr, "%s: %s: %s\n", who, path, strerror(errno));
		return false;
	}
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", base ? base + 1 : path);
	text = file_is_text(in);
	line = text ? uvd_prog_parse(p, in, &why) : 0;
	fclose(in);
	if (!text)
		fprintf(stderr, "%s: %s: not a program: the file is not text\n", who, path);
	else if (line)
		fprintf(stderr, "%s: %s:%u: %s\n", who, path, line, why);
	return text && !line;
}
