/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks a device configuration that the engine process sent. An attacker may control that process, and the broker
 * publishes the configuration.
 */
#include "options/options.h"
#include <ctype.h>
#include <string.h>

/* Is it one printable line without '/' that can be a directory's name or a file's text? */
static bool check_text(const char *text, size_t size)
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
	return attr->type <= IBV_GID_TYPE_ROCE_V2 && (!attr->ndev[0] || check_text(attr->ndev, sizeof(attr->ndev)));
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

bool uvd_options_device_ok(struct uvd_plugins *names, const struct uvd_device_config *c)
{
	if (!check_text(c->ibdev, sizeof(c->ibdev)) || !check_text(c->fw_ver, sizeof(c->fw_ver)) ||
	    !check_text(c->board_id, sizeof(c->board_id)) || !check_text(c->persona, sizeof(c->persona)) ||
	    !check_text(c->backend, sizeof(c->backend)))
		return false;
	if (!uvd_plugins_persona(names, c->persona) || !c->num_ports || c->num_ports > UVD_MAX_PORTS ||
	    c->number < -1 || c->number >= UVD_NODE_NUMBERS || !check_bool(&c->write_abi) ||
	    c->memory > UVD_MEMORY_AUTO || !memchr(c->hca, 0, sizeof(c->hca)))
		return false;
	for (unsigned int i = 0; i < c->num_ports; i++)
		if (!config_check_port(&c->ports[i]))
			return false;
	return check_gid_attrs(c) && uvd_options_ucaps_ok(&c->ucaps);
}
