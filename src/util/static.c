/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A static uverbsctl works in images that have no library, or others than those that it was built with. So these functions of libc,
 * which would load some, are replaced: plug-ins are refused, and names of users come from the files alone.
 */
#include <dlfcn.h>
#include <grp.h>
#include <link.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

void *dlopen(const char *file, int mode)
{
	return NULL;
}

char *dlerror(void)
{
	return "this uverbsctl is static, and loads no plug-ins";
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	return NULL;
}

int dlclose(void *handle)
{
	return 0;
}

int dladdr(const void *address, Dl_info *info)
{
	return 0;
}

int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
	return 0;
}

struct passwd *getpwnam(const char *name)
{
	static __thread struct passwd found;
	static __thread char text[1024];
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *user = NULL;

	while (f && !fgetpwent_r(f, &found, text, sizeof(text), &user) && strcmp(user->pw_name, name))
		user = NULL;
	if (f)
		fclose(f);
	return user;
}

struct group *getgrnam(const char *name)
{
	static __thread struct group found;
	static __thread char text[16384];
	FILE *f = fopen("/etc/group", "re");
	struct group *group = NULL;

	while (f && !fgetgrent_r(f, &found, text, sizeof(text), &group) && strcmp(group->gr_name, name))
		group = NULL;
	if (f)
		fclose(f);
	return group;
}
