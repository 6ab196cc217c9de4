/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --ucap-owner, --ucap-group and --ucap-mode decide which users may open the nodes of User Capabilities. */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include "options/internal.h"

static const struct uvd_ucap_grant grant_of_nothing = { .uid = -1, .gid = -1, .mode = UVD_UCAP_MODE_DEFAULT };

/* Stores a number that is written with digits alone. Returns false if it is not. */
static bool grant_read_number(const char *text, int base, unsigned long max, unsigned int *number)
{
	char *end;
	unsigned long n;

	if (!*text || text[strspn(text, "0123456789")])
		return false;
	n = strtoul(text, &end, base);
	*number = n;
	return !*end && n <= max;
}

static const char *grant_set_owner(struct uvd_ucap_grant *g, const char *text)
{
	const struct passwd *p = getpwnam(text);

	if (p)
		g->uid = p->pw_uid;
	else if (!grant_read_number(text, 10, UINT32_MAX - 1, &g->uid))
		return "is no user";
	return NULL;
}

static const char *grant_set_group(struct uvd_ucap_grant *g, const char *text)
{
	const struct group *found = getgrnam(text);

	if (found)
		g->gid = found->gr_gid;
	else if (!grant_read_number(text, 10, UINT32_MAX - 1, &g->gid))
		return "is no group";
	return NULL;
}

static const char *grant_set_mode(struct uvd_ucap_grant *g, const char *text)
{
	return grant_read_number(text, 8, 0777, &g->mode) ? NULL : "is not an octal number up to 0777";
}

/* Returns the place of what is said about this User Capability; "": about all. NULL: there are too many. */
static struct uvd_ucap_grant *grant_place(struct uvd_ucap_grants *grants, const char *name)
{
	for (unsigned int i = 0; i < grants->num; i++)
		if (!strcmp(grants->list[i].name, name))
			return &grants->list[i];
	if (grants->num == UVD_MAX_UCAP_GRANTS)
		return NULL;
	grants->list[grants->num] = grant_of_nothing;
	strcpy(grants->list[grants->num].name, name);
	return &grants->list[grants->num++];
}

/* text: [NAME:]VALUE */
static const char *grant_set(void *base, const char *text, const char *(*set)(struct uvd_ucap_grant *, const char *))
{
	const char *colon = strchr(text, ':');
	char name[UVD_UCAP_NAME] = "";
	struct uvd_ucap_grant *g;

	if (colon) {
		if ((size_t)(colon - text) >= sizeof(name))
			return "begins with no name of a User Capability";
		memcpy(name, text, colon - text);
		if (!uvd_ucap_name_ok(name))
			return "begins with no name of a User Capability";
		text = colon + 1;
	}
	g = grant_place(&((struct uvd_options *)base)->ucap_grants, name);
	return g ? set(g, text) : "is one too many: there are 64 at most";
}

const char *uvd_option_set_ucap_owner(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	return grant_set(base, text, grant_set_owner);
}

const char *uvd_option_set_ucap_group(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	return grant_set(base, text, grant_set_group);
}

const char *uvd_option_set_ucap_mode(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	return grant_set(base, text, grant_set_mode);
}

static void grant_refine(struct uvd_ucap_grant *g, const struct uvd_ucap_grant *by)
{
	if (by->uid != (uid_t)-1)
		g->uid = by->uid;
	if (by->gid != (gid_t)-1)
		g->gid = by->gid;
	if (by->mode != UVD_UCAP_MODE_DEFAULT)
		g->mode = by->mode;
}

struct uvd_ucap_grant uvd_options_ucap_grant(const struct uvd_ucap_grants *grants, const char *name)
{
	struct uvd_ucap_grant g = grant_of_nothing;

	for (int named = 0; named < 2; named++)
		for (unsigned int i = 0; i < grants->num; i++)
			if (!strcmp(grants->list[i].name, named ? name : ""))
				grant_refine(&g, &grants->list[i]);
	if (g.mode == UVD_UCAP_MODE_DEFAULT)
		g.mode = g.gid == (gid_t)-1 ? 0600 : 0660;
	if (g.uid == (uid_t)-1)
		g.uid = 0;
	if (g.gid == (gid_t)-1)
		g.gid = 0;
	strcpy(g.name, name);
	return g;
}

void uvd_option_check_ucap_grants(struct parser *p)
{
	for (unsigned int i = 0; i < p->o->ucap_grants.num; i++) {
		const char *name = p->o->ucap_grants.list[i].name;
		bool found = !*name;

		for (unsigned int d = 0; d < p->o->num_devices && !found; d++)
			found = uvd_ucap_named(&p->o->devices[d].ucaps, name);
		/* In one process a backend of a plug-in may create it. */
		if (!found && p->o->separate)
			uvd_opt_fail(p, 0, "no device creates the User Capability %s: name it in --ucaps, too", name);
	}
}
