/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The types of options: reads a value, checks it and stores it. */
#include "options/internal.h"
#include "persona/persona.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *parse_number(const char *text, int base, long long min, long long max, long long *value)
{
	static __thread char message[96];
	char *end;

	errno = 0;
	*value = strtoll(text, &end, base);
	if (end == text || *end)
		return "is not a number";
	if (!errno && *value >= min && *value <= max)
		return NULL;
	snprintf(message, sizeof(message), base == 8 ? "is not from %llo to %llo" : "is not from %lld to %lld", min,
		 max);
	return message;
}

static void option_store(const struct uvd_option_row *row, void *base, long long value)
{
	void *at = (char *)base + row->offset;

	switch (row->size) {
	case 1:
		*(uint8_t *)at = value;
		break;
	case 2:
		*(uint16_t *)at = value;
		break;
	case 4:
		*(uint32_t *)at = value;
		break;
	default:
		*(uint64_t *)at = value;
	}
}

const char *uvd_option_set_number(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	long long value;
	const char *wrong = parse_number(text, 0, row->min, row->max, &value);

	if (!wrong)
		option_store(row, base, value);
	return wrong;
}

/* For addresses and node numbers, which must be unique: stores the number + nth. */
const char *uvd_option_set_nth_number(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	long long value;
	const char *wrong = parse_number(text, 0, row->min, row->max, &value);

	if (!wrong && value + nth > row->max)
		return "is too large: the numbers that follow it do not fit";
	if (!wrong)
		option_store(row, base, value + nth);
	return wrong;
}

const char *uvd_option_set_octal(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	long long value;
	const char *wrong = parse_number(text, 8, row->min, row->max, &value);

	if (!wrong)
		option_store(row, base, value);
	return wrong;
}

const char *uvd_option_set_choice(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	static __thread char message[160];
	const struct uvd_option_choice *c;
	int n = 0;

	for (c = row->choices; c->name; c++) {
		if (strcmp(c->name, text))
			continue;
		option_store(row, base, c->value);
		return NULL;
	}
	n += snprintf(message, sizeof(message), "is none of:");
	for (c = row->choices; c->name && n < (int)sizeof(message); c++)
		n += snprintf(message + n, sizeof(message) - n, " %s", c->name);
	return message;
}

/* By default, what the persona's provider cannot use is hidden. */
const char *uvd_option_set_announce(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	if (!strcmp(text, "all"))
		option_store(row, base, 0);
	return !strcmp(text, "all") || !strcmp(text, "usable") ? NULL : "is neither usable nor all";
}

const char *uvd_option_set_memlock(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	long long value;

	if (!strcmp(text, "client") || !strcmp(text, "unlimited")) {
		option_store(row, base, *text == 'c' ? UVD_MEMLOCK_CLIENT : UVD_MEMLOCK_UNLIMITED);
		return NULL;
	}
	if (parse_number(text, 0, row->min, INT64_MAX, &value))
		return "is neither client nor unlimited, nor a number of bytes from 4096";
	option_store(row, base, value);
	return NULL;
}

const char *uvd_option_set_string(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	if (!*text)
		return "is empty";
	if (strlen(text) >= (size_t)row->max)
		return "is too long";
	strcpy((char *)base + row->offset, text);
	return NULL;
}

/* Makes the path absolute: the process may change its working directory before it uses the path. */
const char *uvd_option_set_path(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	char path[PATH_MAX] = "", *end;
	size_t len;

	if (*text != '/' && !getcwd(path, sizeof(path)))
		return "is relative to a directory that no longer exists";
	len = strlen(path);
	end = path + len;
	if (snprintf(end, sizeof(path) - len, "%s%s", len ? "/" : "", text) >= (int)(sizeof(path) - len))
		return "is too long";
	return uvd_option_set_string(row, base, *text ? path : text, nth);
}

/* "-" is no path, but stderr. */
const char *uvd_option_set_path_or_dash(const struct uvd_option_row *row, void *base, const char *text,
					unsigned int nth)
{
	return strcmp(text, "-") ? uvd_option_set_path(row, base, text, nth)
				 : uvd_option_set_string(row, base, text, nth);
}

const char *uvd_option_set_text(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	const char *wrong = uvd_option_set_string(row, base, text, nth);

	if (!wrong && !uvd_option_text_ok(text, row->max))
		return "begins with a `.`, or has a `/` or a character that cannot be printed";
	return wrong;
}

const char *uvd_option_set_sysfs(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	((struct uvd_options *)base)->overlay = !strcmp(text, "overlay");
	return strcmp(text, "overlay") ? uvd_option_set_path(row, base, text, nth) : NULL;
}

const char *uvd_option_set_group(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct group *g = getgrnam(text);

	if (!g)
		return "is no group";
	option_store(row, base, g->gr_gid);
	return NULL;
}

const char *uvd_option_set_engine_user(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct passwd *p = getpwnam(text);
	struct uvd_options *o = base;

	if (!p)
		return "is no user";
	if (!p->pw_uid || !p->pw_gid)
		return "is root or in root's group";
	o->engine_uid = p->pw_uid;
	o->engine_gid = p->pw_gid;
	return NULL;
}

/* A GUID looks like 0002:c903:00ab:cdef, as sysfs shows it. */
const char *uvd_option_set_guid(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	unsigned int w[4];
	uint64_t guid;
	int end = 0;

	/* sscanf() would take signs and blanks, too. */
	if (text[strspn(text, "0123456789abcdefABCDEF:")] ||
	    sscanf(text, "%4x:%4x:%4x:%4x%n", &w[0], &w[1], &w[2], &w[3], &end) != 4 || text[end])
		return "is not a GUID such as 0002:c903:00ab:cdef";
	guid = (uint64_t)w[0] << 48 | (uint64_t)w[1] << 32 | w[2] << 16 | w[3];
	uvd_config_set_guid(base, guid + (uint64_t)nth * UVD_MAX_PORTS);
	return NULL;
}

const char *uvd_option_set_pkeys(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_port_config *port = base;
	const char *wrong;
	long long value;
	char item[64];

	for (port->num_pkeys = 0; uvd_option_next_item(&text, item, sizeof(item)); port->num_pkeys++) {
		if (port->num_pkeys == UVD_MAX_PKEYS)
			return "has too many keys";
		wrong = parse_number(item, 0, 0, 0xffff, &value);
		if (wrong)
			return wrong;
		port->pkeys[port->num_pkeys] = value;
	}
	return port->num_pkeys ? NULL : "is empty";
}

/* Adds the names that are not in the list yet. */
static const char *add_ucaps(struct uvd_ucap_names *names, const char *text)
{
	static __thread char message[96];
	char item[64];

	while (uvd_option_next_item(&text, item, sizeof(item))) {
		const char *name = item + strspn(item, " \t");

		if (!uvd_ucap_name_ok(name)) {
			snprintf(message, sizeof(message), "contains `%.40s`, which is not a valid device node name",
				 name);
			return message;
		}
		if (uvd_ucap_named(names, name))
			continue;
		if (names->num == UVD_MAX_DEVICE_UCAPS)
			return "has too many names";
		strcpy(names->names[names->num++], name);
	}
	return names->num ? NULL : "is empty";
}

const char *uvd_option_set_ucaps(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_ucap_names *names = (void *)((char *)base + row->offset);

	names->num = 0;
	return add_ucaps(names, text);
}

/* The option may be repeated: each adds to the names before. */
const char *uvd_option_set_granted(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	return add_ucaps((void *)((char *)base + row->offset), text);
}

void uvd_option_port_is_ethernet(struct uvd_port_config *port)
{
	port->link_layer = IBV_LINK_LAYER_ETHERNET;
	port->lid = 0;
	port->sm_lid = 0;
	port->num_pkeys = 1;
	port->pkeys[0] = 0xffff;
}

const char *uvd_option_set_link_layer(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	const char *wrong = uvd_option_set_choice(row, base, text, nth);
	struct uvd_port_config *port = base;

	if (!wrong && port->link_layer == IBV_LINK_LAYER_ETHERNET)
		uvd_option_port_is_ethernet(port);
	return wrong;
}
