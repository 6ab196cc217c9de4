/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Has this machine an RDMA adapter, with a device of the kernel's or with a driver that could be loaded? */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "sysfs/sysfs.h"
#include "util/util.h"

/* ---- devices of the kernel's RDMA stack ---------------------------------------------------------------------------- */

static unsigned long adapter_hash(const char *name)
{
	unsigned long hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/*
 * The kernel's devices are symbolic links into /sys/devices. Those of uverbsd, which an overlay shows beside them, are folders.
 */
unsigned long uvd_sysfs_kernel_devices(const char *class, char *what, size_t size)
{
	unsigned long sum = 0;
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/infiniband", class);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISLNK(st.st_mode))
			continue;
		sum += adapter_hash(e->d_name);
		snprintf(what, size, "%s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* ---- hardware that a driver of the RDMA stack claims --------------------------------------------------------------- */

struct adapter_names {
	char **list;
	unsigned int num;
};

static void adapter_names_add(struct adapter_names *names, const char *text)
{
	char **list = realloc(names->list, (names->num + 1) * sizeof(*list));
	char *copy = strdup(text);

	if (list)
		names->list = list;
	if (list && copy)
		list[names->num++] = copy;
	else
		free(copy);
}

static void adapter_names_free(struct adapter_names *names)
{
	for (unsigned int i = 0; i < names->num; i++)
		free(names->list[i]);
	free(names->list);
}

static bool adapter_names_have(const struct adapter_names *names, const char *name)
{
	for (unsigned int i = 0; i < names->num; i++)
		if (!strcmp(names->list[i], name))
			return true;
	return false;
}

/* Cuts the name of the module out of its file's, as modules.alias has it: kernel/a/b-c.ko.xz is b_c. */
static char *adapter_module_name(char *file)
{
	char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

	name[strcspn(name, ".")] = 0;
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	return name;
}

/* Calls fn for each line of a file of the kernel's modules. */
static void adapter_each_line(const char *modules, const char *file, void (*fn)(void *arg, char *line), void *arg)
{
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", modules, file);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		fn(arg, line);
	}
	free(line);
	if (f)
		fclose(f);
}

struct adapter_search {
	struct adapter_names drivers; /* modules that need ib_core */
	struct adapter_names hardware; /* modaliases of the machine's devices */
	bool found;
	char *what;
	size_t size;
};

/* A line of modules.dep: a module's file, a colon, and the files of all modules that it needs. */
static void adapter_take_dep(void *arg, char *line)
{
	struct adapter_search *s = arg;
	char *colon = strchr(line, ':');

	if (!colon || !strstr(colon, "/ib_core.ko"))
		return;
	*colon = 0;
	adapter_names_add(&s->drivers, adapter_module_name(line));
}

/* A line of modules.alias: alias PATTERN MODULE. */
static void adapter_take_alias(void *arg, char *line)
{
	struct adapter_search *s = arg;
	char *save, *word = strtok_r(line, " ", &save), *pattern = word ? strtok_r(NULL, " ", &save) : NULL;
	char *module = pattern ? strtok_r(NULL, " ", &save) : NULL;

	if (s->found || !module || strcmp(word, "alias") || !adapter_names_have(&s->drivers, module))
		return;
	for (unsigned int i = 0; i < s->hardware.num && !s->found; i++)
		s->found = !fnmatch(pattern, s->hardware.list[i], 0);
	if (s->found)
		snprintf(s->what, s->size, "hardware for the driver %s", module);
}

static void adapter_add_hardware(struct adapter_search *s, const char *device)
{
	char path[PATH_MAX], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/modalias", device);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		adapter_names_add(&s->hardware, line);
	}
	if (f)
		fclose(f);
}

static void adapter_each_entry(const char *folder, const char *below, void (*fn)(struct adapter_search *, const char *),
			       struct adapter_search *s)
{
	DIR *dir = opendir(folder);
	char path[PATH_MAX + 512];
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", folder, e->d_name, below);
		fn(s, path);
	}
	if (dir)
		closedir(dir);
}

static void adapter_add_bus(struct adapter_search *s, const char *bus)
{
	adapter_each_entry(bus, "", adapter_add_hardware, s);
}

static bool adapter_has_hardware(const char *sys, const char *modules, char *what, size_t size)
{
	struct adapter_search s = { .what = what, .size = size };
	char buses[PATH_MAX];

	snprintf(buses, sizeof(buses), "%s/bus", sys);
	adapter_each_entry(buses, "/devices", adapter_add_bus, &s);
	adapter_each_line(modules, "modules.dep", adapter_take_dep, &s);
	adapter_each_line(modules, "modules.alias", adapter_take_alias, &s);
	adapter_names_free(&s.drivers);
	adapter_names_free(&s.hardware);
	return s.found;
}

bool uvd_sysfs_has_adapter(const char *sys, const char *modules, char *what, size_t size)
{
	char class[PATH_MAX];

	snprintf(class, sizeof(class), "%s/class", sys);
	return uvd_sysfs_kernel_devices(class, what, size) || adapter_has_hardware(sys, modules, what, size);
}
