/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Looks into a plug-in's file without a registry: the names and options that it declares. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.h"
#include "util/util.h"

struct uvd_plugin_file {
	void *handle;
	const struct uvd_plugin *plugin;
};

/* Opens the file if `owner` and root are the only users that can change it. Returns a descriptor, or -1 after a message. */
static int peek_open(const char *path, uid_t owner, char error[UVD_PLUGIN_ERROR])
{
	char culprit[PATH_MAX];
	struct stat st;
	int fd;

	if (!owner && !uvd_dir_is_ours(path, culprit)) {
		snprintf(error, UVD_PLUGIN_ERROR, "%.200s: another user can change %.200s", path, culprit);
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		snprintf(error, UVD_PLUGIN_ERROR, "%.400s: %s", path, uvd_errno_name(errno));
		return -1;
	}
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !(st.st_mode & 022) && (st.st_uid == owner || !st.st_uid))
		return fd;
	snprintf(error, UVD_PLUGIN_ERROR,
		 "%.200s: must be a regular file of %s, that neither group nor others may write to", path,
		 owner ? "yours or root's" : "root's");
	close(fd);
	return -1;
}

static bool peek_check(const char *path, const struct uvd_plugin *plugin, char error[UVD_PLUGIN_ERROR])
{
	if (!plugin)
		snprintf(error, UVD_PLUGIN_ERROR, "%.400s: has no symbol uverbsd_plugin: it is no plug-in", path);
	else if (plugin->api_version != UVD_API_VERSION)
		snprintf(error, UVD_PLUGIN_ERROR, "%.400s: is for API version %u, and this uverbsd has %u", path,
			 plugin->api_version, UVD_API_VERSION);
	else if (!plugin->name || !*plugin->name)
		snprintf(error, UVD_PLUGIN_ERROR, "%.400s: has no name", path);
	else
		return true;
	return false;
}

struct uvd_plugin_file *uvd_plugin_file_open(const char *path, uid_t owner, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_plugin_file *file = uvd_zalloc(sizeof(*file));
	int fd = file ? peek_open(path, owner, error) : -1;
	char name[32];

	if (!file)
		snprintf(error, UVD_PLUGIN_ERROR, "%.400s: no memory", path);
	if (fd < 0)
		goto free_file;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	file->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	close(fd);
	if (!file->handle) {
		snprintf(error, UVD_PLUGIN_ERROR, "%.200s: %.250s", path, dlerror());
		goto free_file;
	}
	file->plugin = dlsym(file->handle, "uverbsd_plugin");
	if (peek_check(path, file->plugin, error))
		return file;
	dlclose(file->handle);
free_file:
	free(file);
	return NULL;
}

const struct uvd_plugin *uvd_plugin_file_plugin(const struct uvd_plugin_file *file)
{
	return file ? file->plugin : NULL;
}

void uvd_plugin_file_close(struct uvd_plugin_file *file)
{
	if (!file)
		return;
	dlclose(file->handle);
	free(file);
}
