/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl device: unplugs a device, or plugs one in. */
#include "ask.h"
#include "../commands.h"
#include "options/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Joins the words into one command line. Returns NULL if there is no memory. */
static char *command_join(const char *verb, int argc, char **argv)
{
	char *line = NULL, *longer;

	if (asprintf(&line, "device %s", verb) < 0)
		return NULL;
	for (int i = 0; i < argc; i++) {
		if (asprintf(&longer, "%s %s", line, argv[i]) < 0)
			longer = NULL;
		free(line);
		line = longer;
		if (!line)
			return NULL;
	}
	return line;
}

static int device_ask(const struct uvd_args *args, int argc, char **argv)
{
	char *command = command_join(args->verb->name, argc, argv);
	json_t *answer = command ? uvd_ask("device", args->control, command) : NULL;
	const char *absent;
	int status = answer ? 0 : 1;

	if (answer)
		printf("%s %s\n", json_string_value(json_object_get(answer, "device")),
		       json_string_value(json_object_get(answer, "node")));
	absent = json_string_value(json_object_get(answer, "absent"));
	if (absent)
		fprintf(stderr,
			"uverbsctl device: no %s: uverbsd has no CAP_NET_RAW, unless it runs with `--separate no`\n",
			absent);
	json_decref(answer);
	free(command);
	return status;
}

/* Parses the options here, too: the daemon's answer does not say what is wrong with them. */
static bool device_options_ok(const struct uvd_args *args)
{
	const struct uvd_option_machine unknown = {};
	const struct uvd_option_place place = { .machine = &unknown };
	char **argv = calloc(args->num_words + 2, sizeof(*argv));
	struct uvd_options o;
	bool fits;

	if (!argv)
		return false;
	argv[0] = (char *)args->who;
	memcpy(argv + 1, args->words, args->num_words * sizeof(*argv));
	fits = !uvd_options_parse_device(&o, &place, args->num_words + 1, argv);
	if (fits)
		uvd_options_free(&o);
	free(argv);
	return fits;
}

struct device_options {
	bool json;
};

/* As the status has the devices. */
static int device_list(const struct uvd_args *args)
{
	const struct device_options *o = args->options;
	json_t *status = uvd_ask("status", args->control, "status"), *device;
	size_t i;

	if (!status)
		return 1;
	if (o->json) {
		json_dumpf(json_object_get(status, "devices"), stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		json_array_foreach(json_object_get(status, "devices"), i, device)
			printf("%-15s %-10s %s, backend %s%s\n", json_string_value(json_object_get(device, "device")),
			       json_string_value(json_object_get(device, "node")),
			       json_string_value(json_object_get(device, "persona")),
			       json_string_value(json_object_get(device, "backend")),
			       json_is_true(json_object_get(device, "removed")) ? ", removed" : "");
	}
	json_decref(status);
	return 0;
}

static int device_add(const struct uvd_args *args)
{
	char *device = (char *)args->device;
	const bool is_name = args->num_words == 1 && args->words[0][0] != '-';

	for (int i = 0; i < args->num_words; i++)
		if (!*args->words[i] || strpbrk(args->words[i], " \n"))
			return uvd_args_wrong(args, "`%s`: blanks are not allowed", args->words[i]);
	if (device && args->num_words)
		return uvd_args_wrong(args, "--device and `%s` name two devices", args->words[0]);
	if (!device && !is_name && !device_options_ok(args))
		return 2;
	return device ? device_ask(args, 1, &device) : device_ask(args, args->num_words, args->words);
}

static int device_remove(const struct uvd_args *args)
{
	char *device = (char *)(args->device ? args->device : args->words[0]);

	if (!*device || strpbrk(device, " \n"))
		return uvd_args_wrong(args, "`%s`: blanks are not allowed", device);
	return device_ask(args, 1, &device);
}

static const struct uvd_command_option device_list_options[] = {
	{ "json", .help = "list: print JSON", UVD_STORE(struct device_options, json, FLAG) },
	{},
};

const struct uvd_command uvd_command_device = {
	.name = "device",
	.purpose = "list devices, unplug one under its users, or plug one in",
	.synopses =
		(const char *const[]){ "uverbsctl device list [OPTION...]", "uverbsctl device remove DEVICE",
				       "uverbsctl device add DEVICE", "uverbsctl device add [DEVICE-OPTION...]", NULL },
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl device list", "what devices there are" },
			{ "uverbsctl device remove uverbs0", "unplug it under its users" },
			{ "uverbsctl device add uverbs0", "plug it in again" },
			{ "uverbsctl device add --ports 2 --state down", "one more, with these options" },
			{},
		},
	.text =
		(const char *const[]){
			"`remove` unplugs a device (hfi1_0, or uverbs0): its node and its sysfs entries go, programs that have it open get "
			"IBV_EVENT_DEVICE_FATAL, and every call of theirs fails with EIO. `add` plugs one in: a device that was removed, or a "
			"new one with the options that describe a device to uverbsd (`uverbsctl run --help=devices`, `--help=ports`). Both print its two names. Within "
			"`uverbsctl run` these are the run's own devices, else those of uverbsd.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "list", .purpose = "print the names of the devices", .options = device_list_options,
			  .run = device_list },
			{ "remove", "DEVICE", "unplug a device under its users", .takes_device = true,
			  .run = device_remove },
			{ "add", "[DEVICE-OPTION...]", "plug in a device that was removed, or one more",
			  .takes_device = true, .passes = true, .run = device_add },
			{},
		},
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN,
	.size = sizeof(struct device_options),
};
