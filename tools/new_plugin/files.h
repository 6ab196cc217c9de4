/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files of plugins/skeleton, which meson puts into the program (embed_files.py). */
#ifndef UVD_TOOLS_NEW_PLUGIN_FILES_H
#define UVD_TOOLS_NEW_PLUGIN_FILES_H

struct uvd_new_file {
	const char *name, *text;
};

/* Ends with a name of NULL. */
extern const struct uvd_new_file uvd_new_plugin_files[];

#endif
