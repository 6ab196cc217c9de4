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

static int new_plugin_command(const struct uvd_args *args)
{
	const char *name = args->words[0], *folder = args->num_words == 2 ? args->words[1] : name;

	if (!new_plugin_name_ok(name))
		return uvd_args_wrong(
			args,
			"`%s`: a name begins with a lower-case letter and has lower-case letters, digits and '_', at "
			"most %d characters",
			name, MAX_NAME);
	if (mkdir(folder, 0755) && errno != EEXIST) {
		fprintf(stderr, "uverbsctl new-plugin: %s: %s\n", folder, uvd_errno_name(errno));
		return 1;
	}
	for (const struct uvd_new_file *f = uvd_new_plugin_files; f->name; f++) {
		char path[PATH_MAX];
		int err = new_plugin_write(path, folder, f, name);

		if (err) {
			fprintf(stderr, "uverbsctl new-plugin: %s: %s\n", path, uvd_errno_name(err));
			return 1;
		}
		printf("%s\n", path);
	}
	return 0;
}

const struct uvd_command uvd_command_new_plugin = {
	.name = "new-plugin",
	.purpose = "write the files of a new plug-in",
	.words = "NAME [FOLDER]",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl new-plugin mine && cd mine", "its files, in a folder of this name" },
			{ "uverbsctl new-plugin mine /tmp/plugin", "in another folder" },
			{ "meson setup build && meson test -C build", "there: builds and tests it" },
			{},
		},
	.text =
		(const char *const[]){
			"Writes a plug-in that can be built and tested at once: an object with two methods, NAME.c, meson.build, test.sh and "
			"README.md. FOLDER (default: NAME) is created; files that exist are not changed. NAME begins with a lower-case letter "
			"and has lower-case letters, digits and '_', at most 24 characters. If pkg-config does not find uverbsd, set "
			"PKG_CONFIG_PATH.",
			NULL },
	.run = new_plugin_command,
};
