/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A read-only overlay of our class folders on /sys/class. The kernel's other classes stay visible. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <uverbsd/log.h>
#include "sysfs/sysfs.h"
#include "util/util.h"

#define CLASS "/sys/class"

/* Is the uppermost mount on /sys/class an overlay of the sysfs directory `root`? */
static bool is_mounted(const char *root)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, want[4200], where[256];
	size_t size = 0;
	bool ours = false;

	if (!f)
		return false;
	snprintf(want, sizeof(want), "lowerdir=%s/class:" CLASS, root);
	while (getline(&line, &size, f) > 0)
		if (sscanf(line, "%*d %*d %*s %*s %255s", where) == 1 && !strcmp(where, CLASS))
			ours = strstr(line, " - overlay ") && strstr(line, want);
	free(line);
	fclose(f);
	return ours;
}

void uvd_sysfs_overlay_undo(const char *root)
{
	while (is_mounted(root) && !umount2(CLASS, MNT_DETACH))
		;
}

int uvd_sysfs_overlay(const char *root, struct uvd_log *log)
{
	char options[4200];
	int n;

	if (root[0] != '/' || strpbrk(root, ":,\\ ")) {
		uvd_logf(log, UVD_ERR,
			 "%s: an overlay needs an absolute path without colon, comma, backslash and blank", root);
		return -EINVAL;
	}
	uvd_sysfs_overlay_undo(root);
	n = snprintf(options, sizeof(options), "lowerdir=%s/class:" CLASS, root);
	if (n >= (int)sizeof(options))
		return -ENAMETOOLONG;
	if (mount("uverbsd", CLASS, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, options)) {
		int err = -errno;
		uvd_logf(log, UVD_ERR, "cannot mount an overlay on " CLASS ": %s%s", uvd_errno_name(err),
			 err == -ENODEV ? " (modprobe overlay)" : "");
		return err;
	}
	return 0;
}
