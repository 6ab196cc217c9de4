/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks a device configuration that the engine process sent. An attacker may control that process, and the broker
 * publishes the configuration.
 */
#include <ctype.h>
#include <string.h>
#include "internal.h"

bool uvd_option_text_ok(const char *text, size_t size)
{
	if (!memchr(text, 0, size) || !*text || *text == '.')
		return false;
	for (; *text; text++)
		if (!isprint(*text) || *text == '/')
			return false;
	return true;
}

/* A bool whose byte is neither 0 nor 1 has no defined value: a branch on it may go both ways. */
static bool check_bool(const bool *value)
{
	unsigned char byte;

	memcpy(&byte, value, 1);
	return byte <= 1;
}

static bool config_check_port(const struct uvd_port_config *port)
{
	return check_bool(&port->down) && port->gid_tbl_len <= UVD_MAX_GIDS && port->num_gids <= port->gid_tbl_len &&
	       port->num_pkeys <= UVD_MAX_PKEYS;
}

static bool check_gid_attr(const struct uvd_gid_attr *attr)
{
	return attr->type <= IBV_GID_TYPE_ROCE_V2 &&
	       (!attr->ndev[0] || uvd_option_text_ok(attr->ndev, sizeof(attr->ndev)));
}

/* Only a backend with an adapter sets these. */
static bool check_gid_attrs(const struct uvd_device_config *c)
{
	static const struct uvd_gid_attr none[UVD_MAX_PORTS][UVD_MAX_GIDS];
	bool ok = true;

	if (strcmp(c->backend, "verbs"))
		return !memcmp(c->gid_attrs, none, sizeof(none));
	for (unsigned int p = 0; p < UVD_MAX_PORTS; p++)
		for (unsigned int i = 0; i < UVD_MAX_GIDS; i++)
			ok = ok && check_gid_attr(&c->gid_attrs[p][i]);
	return ok;
}

bool uvd_options_ucaps_ok(const struct uvd_ucap_names *ucaps)
{
	if (ucaps->num > UVD_MAX_DEVICE_UCAPS)
		return false;
	for (unsigned int i = 0; i < ucaps->num; i++)
		if (!memchr(ucaps->names[i], 0, UVD_UCAP_NAME) || !uvd_ucap_name_ok(ucaps->names[i]))
			return false;
	return true;
}

/* The texts of a device are the options whose values are strings. */
static bool check_texts(const struct uvd_device_config *c)
{
	const struct uvd_option_row *row;

	for (unsigned int i = 0; (row = uvd_option_at(i)); i++) {
		const char *text = (const char *)c + row->offset;

		if (row->scope != UVD_SCOPE_DEVICE || row->size || !row->max || (row->may_be_empty && !*text))
			continue;
		if (!uvd_option_text_ok(text, row->max))
			return false;
	}
	return true;
}

bool uvd_options_device_ok(struct uvd_plugins *names, const struct uvd_device_config *c)
{
	if (!check_texts(c) || !uvd_plugins_persona(names, c->persona) || !c->num_ports ||
	    c->num_ports > UVD_MAX_PORTS || c->number < -1 || c->number >= UVD_NODE_NUMBERS ||
	    !check_bool(&c->write_abi) || c->memory > UVD_MEMORY_AUTO)
		return false;
	for (unsigned int i = 0; i < c->num_ports; i++)
		if (!config_check_port(&c->ports[i]))
			return false;
	return c->ips.num <= UVD_MAX_ADDRESSES && c->num_wires <= UVD_MAX_WIRES && c->num_wires <= c->ips.num &&
	       check_gid_attrs(c) && uvd_options_ucaps_ok(&c->ucaps);
}
