/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl hca list: the adapters of this machine, and what each supports behind a device with --backend verbs. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/schema.h>
#include "backends/verbs/verbs.h"
#include "commands.h"
#include "util/util.h"

/* One capability: a column of the table, and a key in JSON. */
static const struct {
	const char *name;
	bool (*has)(const struct ibv_device_attr *attr); /* or: */
	unsigned int feature; /* what only some adapters have */
} capabilities[] = {
	{ "rc", hca_has_qp, 0 },    { "uc", hca_has_qp, 0 },	   { "ud", hca_has_qp, 0 },
	{ "srq", hca_has_srq, 0 },  { "mcast", hca_has_mcast, 0 }, { "remote-access", hca_has_remote, 0 },
	{ "xrc", NULL, HCA_XRC },   { "dm", NULL, HCA_DM },	   { "counters", NULL, HCA_COUNTERS },
	{ "flow", NULL, HCA_FLOW }, { "raw", NULL, HCA_RAW },	   { "rss", NULL, HCA_RSS },
};

/* Describes an adapter that is open: ports, limits, capabilities. */
static json_t *hca_tell_open(struct ibv_context *adapter)
{
	json_t *caps = json_object(), *ports = json_array();
	struct ibv_device_attr_ex attr = {};
	struct ibv_port_attr port;
	unsigned int features;

	if (ibv_query_device_ex(adapter, NULL, &attr))
		return json_pack("{s:s, s:o, s:o}", "problem", "it does not answer a query", "through_us", caps,
				 "ports", ports);
	features = hca_features(adapter, &attr);
	hca_mask_device(&attr, hca_borrow_knows(adapter), features);
	for (unsigned int i = 0; i < UVD_COUNT(capabilities); i++)
		json_object_set_new(caps, capabilities[i].name,
				    json_boolean(capabilities[i].has ? capabilities[i].has(&attr.orig_attr)
								     : features & capabilities[i].feature));
	for (unsigned int p = 1; p <= attr.orig_attr.phys_port_cnt && !ibv_query_port(adapter, p, &port); p++)
		json_array_append_new(
			ports,
			json_pack("{s:i, s:s, s:s}", "port", p, "state", ibv_port_state_str(port.state), "link_layer",
				  port.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : "infiniband"));
	return json_pack("{s:n, s:o, s:o, s:i, s:i, s:i}", "problem", "through_us", caps, "ports", ports, "max_qp",
			 attr.orig_attr.max_qp, "max_cq", attr.orig_attr.max_cq, "max_srq", attr.orig_attr.max_srq);
}

/* Returns NULL for a device of uverbsd. */
static json_t *hca_tell(struct ibv_device *device)
{
	struct ibv_context *adapter;
	json_t *hca;

	if (hca_is_cuse(device))
		return NULL;
	errno = 0;
	adapter = ibv_open_device(device);
	if (adapter) {
		hca = hca_tell_open(adapter);
		ibv_close_device(adapter);
	} else {
		hca = json_pack("{s:s, s:{}, s:[]}", "problem", uvd_errno_name(errno ?: EIO), "through_us", "ports");
	}
	json_object_set_new(hca, "hca", json_string(ibv_get_device_name(device)));
	json_object_set_new(hca, "node", json_string(device->dev_name));
	return hca;
}

static json_t *hca_list(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	json_t *all = json_array(), *hca;

	for (struct ibv_device **d = list; d && *d; d++) {
		hca = hca_tell(*d);
		if (hca)
			json_array_append_new(all, hca);
	}
	if (list)
		ibv_free_device_list(list);
	return all;
}

static void hca_print_row(const json_t *hca)
{
	const json_t *port = json_array_get(json_object_get(hca, "ports"), 0);
	const char *problem = json_string_value(json_object_get(hca, "problem"));
	const char *state = json_string_value(json_object_get(port, "state"));
	const char *layer = json_string_value(json_object_get(port, "link_layer"));

	printf("%-12s %-9s %-10s %-14s", json_string_value(json_object_get(hca, "hca")),
	       json_string_value(json_object_get(hca, "node")), layer ?: "-", state ?: "-");
	for (unsigned int i = 0; i < UVD_COUNT(capabilities) && !problem; i++)
		printf(" %-*s", (int)strlen(capabilities[i].name) > 3 ? (int)strlen(capabilities[i].name) : 3,
		       json_is_true(json_object_get(json_object_get(hca, "through_us"), capabilities[i].name)) ? "yes"
													       : "no");
	printf("%s%s\n", problem ? " cannot be used: " : "", problem ?: "");
}

static void hca_print_table(const json_t *all)
{
	const json_t *hca;
	size_t i;

	if (!json_array_size(all)) {
		printf("libibverbs finds no adapter\n");
		return;
	}
	printf("%-12s %-9s %-10s %-14s", "hca", "node", "link", "port 1");
	for (unsigned int c = 0; c < UVD_COUNT(capabilities); c++)
		printf(" %-3s", capabilities[c].name);
	printf("\n");
	json_array_foreach(all, i, hca)
		hca_print_row(hca);
}

struct hca_options {
	bool json;
};

static int hca_list_command(const struct uvd_args *args)
{
	const struct hca_options *o = args->options;
	json_t *all = hca_list();

	if (o->json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		printf("\n");
	} else {
		hca_print_table(all);
	}
	json_decref(all);
	return 0;
}

const struct uvd_command uvd_command_hca = {
	.name = "hca",
	.purpose = "list the adapters that a device can forward to",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl hca list", "the adapters, and what works through uverbsd" },
			{ "uverbsctl hca list --json", "the same for programs" },
			{ "uverbsd --backend verbs --hca rxe0", "a device that forwards to one of them" },
			{},
		},
	.text =
		(const char *const[]){
			"Lists the adapters of this machine that libibverbs finds, and what each supports behind a device that forwards to "
			"it. A device of uverbsd is no adapter, and not listed.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "list", .purpose = "print the adapters, and what works through uverbsd",
			  .run = hca_list_command },
			{},
		},
	.options =
		(const struct uvd_command_option[]){
			{ "json", .help = "print JSON", UVD_STORE(struct hca_options, json, FLAG) },
			{},
		},
	.size = sizeof(struct hca_options),
};
