/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>

#include "util/util.h"

const char *uvd_user_parse(const char *word, uid_t *uid)
{
	struct passwd *user;
	unsigned long id;
	char *end;

	errno = 0;
	id = strtoul(word, &end, 10);
	if (!*end && *word >= '0' && *word <= '9') {
		*uid = id;
		return errno || id >= (uid_t)-1 ? "is no user id" : NULL;
	}
	user = getpwnam(word);
	if (!user)
		return "is no user";
	*uid = user->pw_uid;
	return NULL;
}
