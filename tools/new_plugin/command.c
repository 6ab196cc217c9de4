/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl new-plugin: writes the files of a new plug-in. They are those of plugins/skeleton, which is built and
 * tested in the tree, with another name in the place of `skeleton`.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../commands.h"
#include "files.h"

#define SKELETON "skeleton"

enum { MAX_NAME = 24 };

static const char new_plugin_usage[] =
	"Usage: uverbsctl new-plugin NAME [FOLDER]\n"
	"\n"
	"  uverbsctl new-plugin mine && cd mine\n"
	"  meson setup build && meson test -C build\n"
	"\n"
	"Writes a plug-in that can be built and tested at once: an object with two methods, NAME.c, meson.build, test.sh and\n"
	"README.md. FOLDER (default: NAME) is created; files that exist are not changed. NAME begins with a lower-case\n"
	"letter and has lower-case letters, digits and '_', at most 24 characters. If pkg-config does not find uverbsd, set\n"
	"PKG_CONFIG_PATH.\n";

static bool new_plugin_name_ok(const char *name)
{
	const size_t len = strlen(name);

	return len && len <= MAX_NAME && islower((unsigned char)*name) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

/* Writes the text with the name in the place of `skeleton`, and in capitals in the place of `SKELETON`. */
static void new_plugin_put(FILE *to, const char *text, const char *name)
{
	const size_t len = strlen(SKELETON);

	while (*text) {
		if (strncasecmp(text, SKELETON, len)) {
			fputc(*text++, to);
			continue;
		}
		for (const char *p = name; *p; p++)
			fputc(isupper((unsigned char)*text) ? toupper((unsigned char)*p) : *p, to);
		text += len;
	}
}

/* Writes a file, whose name becomes `path`. Returns 0 or an errno. */
static int new_plugin_write(char path[PATH_MAX], const char *folder, const struct uvd_new_file *file, const char *name)
{
	const char *base = strcmp(file->name, SKELETON ".c") ? file->name : name;
	FILE *f;
	int err;

	if (snprintf(path, PATH_MAX, "%s/%s%s", folder, base, base == name ? ".c" : "") >= PATH_MAX)
		return ENAMETOOLONG;
	f = fopen(path, "wxe");
	if (!f)
		return errno;
	new_plugin_put(f, file->text, name);
	err = ferror(f) ? EIO : 0;
	return fclose(f) && !err ? errno : err;
}

int uvd_cmd_new_plugin(int argc, char **argv)
{
	const char *name, *folder;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return fputs(new_plugin_usage, stdout) < 0;
	if (argc < 2 || argc > 3 || *argv[1] == '-') {
		fputs(new_plugin_usage, stderr);
		return 2;
	}
	name = argv[1];
	folder = argc == 3 ? argv[2] : name;
	if (!new_plugin_name_ok(name)) {
		fprintf(stderr,
			"uverbsctl new-plugin: `%s`: a name begins with a lower-case letter and has lower-case letters, "
			"digits and '_', at most %d characters\n",
			name, MAX_NAME);
		return 2;
	}
	if (mkdir(folder, 0755) && errno != EEXIST) {
		fprintf(stderr, "uverbsctl new-plugin: %s: %s\n", folder, strerrorname_np(errno));
		return 1;
	}
	for (const struct uvd_new_file *f = uvd_new_plugin_files; f->name; f++) {
		char path[PATH_MAX];
		int err = new_plugin_write(path, folder, f, name);

		if (err) {
			fprintf(stderr, "uverbsctl new-plugin: %s: %s\n", path, strerrorname_np(err));
			return 1;
		}
		printf("%s\n", path);
	}
	return 0;
}
