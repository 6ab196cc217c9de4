/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "backends/backends.h"
#include "broker/broker.h"
#include "cpu/cpu.h"
#include "options/internal.h"
#include "options/options.h"
#include "persona/persona.h"
#include "util/util.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NOBODY = 65534 };

void uvd_opt_fail(struct parser *p, int line, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	va_start(ap, fmt);
	if (p->again) {
		int len = line ? snprintf(p->error, UVD_RELOAD_ERROR, "%s:%d: ", p->o->config, line) : 0;

		vsnprintf(p->error + len, UVD_RELOAD_ERROR - len, fmt, ap);
	} else {
		if (line)
			fprintf(stderr, "%s:%d: ", p->o->config, line);
		else
			fprintf(stderr, "%s: ", p->name);
		vfprintf(stderr, fmt, ap);
		fputc('\n', stderr);
	}
	va_end(ap);
}

void uvd_setting_add(struct parser *p, const struct uvd_option_row *row, const char *text, int device, int port,
		     int line)
{
	struct setting *s = realloc(p->settings, (p->num_settings + 1) * sizeof(*s));

	if (!s) {
		uvd_opt_fail(p, line, "no memory");
		return;
	}
	p->settings = s;
	s += p->num_settings;
	*s = (struct setting){ row, strdup(text), device, port, line };
	if (s->text)
		p->num_settings++;
	else
		uvd_opt_fail(p, line, "no memory");
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

void uvd_setting_apply(struct parser *p, const struct setting *s, void *base, unsigned int nth)
{
	const struct uvd_option_row *row = s->row;
	const char *wrong = row->text ? row->text->wrong(s->text) : row->set(row, base, s->text, nth);

	if (!wrong && row->check && p->checks_names)
		wrong = row->check(p->plugins, s->text);
	if (!wrong && row->text)
		wrong = uvd_options_add_text(p->o, row->text, (struct uvd_device_config *)base - p->o->devices,
					     s->text);
	if (wrong)
		uvd_opt_fail(p, s->line, "%s%s: `%.*s` %s", s->line ? "" : "--", row->name, (int)strcspn(s->text, "\n"),
			     s->text, wrong);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* getopt_long() returns these. They lie beyond all characters, because '?' means an error. */
enum { HELP = 1000, VERSION, FIRST_ROW };

/* Adds --plugin FILE with the words KEY=VALUE that follow it: getopt goes on behind them. */
static void add_plugin(struct parser *p, const struct uvd_option_row *row, int argc, char **argv)
{
	char *text = strdup(optarg), *longer;

	while (text && optind < argc && argv[optind][0] != '-' && strchr(argv[optind], '=')) {
		if (asprintf(&longer, "%s\n%s", text, argv[optind++]) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	if (text)
		uvd_setting_add(p, row, text, -1, -1, 0);
	else
		uvd_opt_fail(p, 0, "no memory");
	free(text);
}

/* Returns -1 to go on, or the exit status. */
static int read_command_line(struct parser *p, const struct uvd_help_head *head, int argc, char **argv)
{
	struct option longs[128] = { 0 };
	const struct uvd_option_row *row;
	unsigned int n = 0;
	int c;

	if (!p->device_only) {
		longs[n++] = (struct option){ "help", optional_argument, NULL, HELP };
		longs[n++] = (struct option){ "version", no_argument, NULL, VERSION };
	}
	for (unsigned int i = 0; (row = uvd_option_at(i)); i++)
		if (row->programs & p->program && !(p->device_only && row->is_of_engine) &&
		    n < sizeof(longs) / sizeof(longs[0]) - 1)
			longs[n++] = (struct option){ row->name,
						      row->is_glued ? optional_argument
						      : row->arg    ? required_argument
								    : no_argument,
						      NULL, FIRST_ROW + i };
	opterr = 0;
	optind = 0; /* restart getopt, which may have been used before */
	while ((c = getopt_long(argc, argv, p->device_only ? "+:" : "+:h", longs, NULL)) >= 0) {
		switch (c) {
		case HELP:
		case 'h':
			/* A plug-in that follows has options, too. */
			p->help = true;
			p->help_section = optarg;
			continue;
		case VERSION:
			printf("uverbsd %s\n", UVD_VERSION);
			return 0;
		case '?':
		case ':':
			if (p->help)
				return uvd_options_give_help(p, head);
			uvd_help_wrong_option(p->name, c, argv, longs);
			return 2;
		}
		row = uvd_option_at(c - FIRST_ROW);
		if (row->is_glued && !optarg) {
			optarg = (char *)row->omitted;
		} else if (row->omitted && !row->is_glued && optarg == argv[optind - 1] && *optarg == '-') {
			/* The argument was left out: this is the next option, or `--`. */
			optarg = (char *)row->omitted;
			optind--;
		}
		if (row->is_plugin)
			add_plugin(p, row, argc, argv);
		else
			uvd_setting_add(p, row, row->arg ? optarg : "yes", -1, -1, 0);
	}
	p->o->first_arg = optind;
	return p->help ? uvd_options_give_help(p, head) : -1;
}

/* ---- putting it together ----------------------------------------------------------------------------------------- */

static void apply_program(struct parser *p)
{
	struct uvd_options *o = p->o;
	unsigned int i;

	for (i = 0; i < p->num_settings; i++)
		if (p->settings[i].row->scope == UVD_SCOPE_PROGRAM || p->settings[i].row->scope == UVD_SCOPE_LIMIT)
			uvd_setting_apply(p, &p->settings[i], o, 0);
	/* `devices` was not set. */
	if (!o->num_devices)
		o->num_devices = uvd_option_num_described(p);
	if (o->num_devices > UVD_MAX_DEVICES)
		uvd_opt_fail(p, 0, "--personas: it names %u devices, and there are %d at most", o->num_devices,
			     UVD_MAX_DEVICES);
	if (o->num_devices < uvd_option_num_listed(o))
		uvd_opt_fail(p, 0, "--personas: it names %u devices, and `devices` says %u", uvd_option_num_listed(o),
			     o->num_devices);
	for (i = 0; i < p->num_settings; i++)
		if (p->settings[i].device >= (int)o->num_devices)
			uvd_opt_fail(p, p->settings[i].line, "there is no device %d: `devices` says %u",
				     p->settings[i].device, o->num_devices);
}

/* Gives the ports of a device with IP GIDs the other address that each machine with IPv6 has. */
static void apply_ipv6_loopback(struct uvd_device_config *config)
{
	if (!IN6_IS_ADDR_V4MAPPED(config->ports[0].gids[0].raw))
		return;
	for (unsigned int port = 0; port < UVD_MAX_PORTS; port++) {
		config->ports[port].gids[1] = (union ibv_gid){ .raw = { [15] = 1 } };
		config->ports[port].num_gids = 2;
	}
}

static void apply_wire(struct parser *p, struct uvd_device_config *config)
{
	const char *wrong = uvd_option_wire_end(&p->o->wire, config);

	if (wrong)
		uvd_opt_fail(p, 0, "device %s: %s", config->ibdev, wrong);
}

static void apply_device(struct parser *p, int device)
{
	struct uvd_device_config *config = &p->o->devices[device];
	const struct setting *s, *end = p->settings + p->num_settings;
	const bool is_ethernet = uvd_option_list_has_ethernet(p);
	bool is_on_wire;
	const struct uvd_persona *persona = uvd_option_find_persona(p, device, &is_on_wire);
	unsigned int port, nth;

	is_on_wire = is_on_wire && p->o->wire.num;
	uvd_config_default(config, persona, p->first_index + device);
	uvd_option_name_device(p, device, persona);
	if (is_ethernet)
		uvd_option_device_is_ethernet(config);
	if (is_on_wire)
		uvd_option_wire_begin(&p->o->wire, config, p->first_index + device);
	if (p->o->machine.has_ipv6 && (p->o->machine.is_private || persona->queues || is_ethernet))
		apply_ipv6_loopback(config);
	config->number = p->o->first_number < 0 ? -1 : p->o->first_number + device;
	for (port = 0; port < UVD_MAX_PORTS; port++)
		if (config->ports[port].lid)
			config->ports[port].lid += p->own_lids;
	config->memlock = p->o->machine.is_private ? UVD_MEMLOCK_UNLIMITED : UVD_MEMLOCK_CLIENT;
	for (s = p->settings; s < end; s++)
		if (s->row->scope == UVD_SCOPE_DEVICE && (s->device < 0 || s->device == device))
			uvd_setting_apply(p, s, config, s->device < 0 ? device : 0);
	for (s = p->settings; s < end; s++) {
		if (s->row->scope != UVD_SCOPE_PORT || (s->device >= 0 && s->device != device))
			continue;
		if (s->port > (int)config->num_ports)
			uvd_opt_fail(p, s->line, "device %d has no port %d: `ports` says %u", device, s->port,
				     config->num_ports);
		for (port = 0; port < config->num_ports; port++) {
			nth = s->device < 0 ? device * config->num_ports + port : port;
			if (s->port < 0 || s->port == (int)port + 1)
				uvd_setting_apply(p, s, &config->ports[port], s->port < 0 ? nth : 0);
		}
	}
	if (is_on_wire && !p->failed)
		apply_wire(p, config);
}

static void check_wire(struct parser *p)
{
	bool has = !p->o->wire.num || p->device_only;

	for (unsigned int i = 0; i < p->o->num_devices; i++)
		has = has || p->o->devices[i].num_wires;
	if (!has)
		uvd_opt_fail(p, 0, "--wire: no device has --backend soft, which alone can use it: leave it out");
}

static void check_adapters(struct parser *p)
{
	for (unsigned int i = 0; i < p->o->num_devices; i++) {
		const struct uvd_device_config *config = &p->o->devices[i];
		const bool verbs = !strcmp(config->backend, "verbs");

		if (verbs && !config->hca[0])
			uvd_opt_fail(
				p, 0,
				"device %s: backend verbs needs --hca NAME: `uverbsctl hca list` lists the adapters",
				config->ibdev);
		if (!verbs && config->hca[0])
			uvd_opt_fail(p, 0, "device %s: --hca %s is for --backend verbs, and not for %s", config->ibdev,
				     config->hca, config->backend);
	}
}

/* An option that needs a part which this CPU lacks (docs/cpu.md) fails here, and not at a client's call. */
static void check_cpu(struct parser *p)
{
	const char *loans = uvd_cpu_lacks(uvd_cpu, UVD_CPU_LOANS), *senders = uvd_cpu_lacks(uvd_cpu, UVD_CPU_SENDERS);
	const bool grants = p->program == UVD_PROGRAM_DAEMON && p->o->grant_fds;

	if (grants && (loans || (senders && !p->o->separate)))
		uvd_opt_fail(p, 0, "--grant-fds ptrace: %s; start with --grant-fds off", loans ? loans : senders);
	for (unsigned int i = 0; loans && i < p->o->num_devices; i++)
		if (p->o->devices[i].memory == UVD_MEMORY_BORROW)
			uvd_opt_fail(p, 0, "device %s: --memory borrow: %s; use --memory bounce",
				     p->o->devices[i].ibdev, loans);
}

static void check_names(struct parser *p)
{
	struct uvd_device_config *a = p->o->devices, *b, *end = a + p->o->num_devices;

	for (; a < end; a++) {
		/* --first-number counts on from a number that is right itself. */
		if (a->number >= UVD_NODE_NUMBERS)
			uvd_opt_fail(p, 0, "device %s: the number %d is not from 0 to %d", a->ibdev, a->number,
				     UVD_NODE_NUMBERS - 1);
		for (b = a + 1; b < end; b++)
			if (!strcmp(a->ibdev, b->ibdev))
				uvd_opt_fail(p, 0,
					     "two devices have the name %s: `name` in [device N] gives each its own",
					     b->ibdev);
			else if (a->number >= 0 && a->number == b->number)
				uvd_opt_fail(p, 0, "two devices have the number %d (uverbs%d)", b->number, b->number);
	}
}

static void options_set_defaults(struct uvd_options *o, enum uvd_program program)
{
	*o = (struct uvd_options){
		.first_number = -1,
		/* Under `run` the log is the program's stderr. */
		.log_level = program == UVD_PROGRAM_RUN ? UVD_WARN : UVD_INFO,
		.grant_fds = true,
		.mode = 0666,
		.group = -1,
		.workers = 2,
		.separate = program == UVD_PROGRAM_DAEMON,
		.root_clients = UVD_ROOT_ALLOW,
		.sysfs = "/run/uverbsd/sysfs",
		.control = "/run/uverbsd/control",
		.plugin_dir = UVD_PLUGIN_DIR,
	};
	uvd_account_limits_init(&o->limits);
	o->limits.one_user = program == UVD_PROGRAM_RUN;
}

/*
 * Processes of the user nobody can send the engine process signals, so it has a user of its own by default. uverbsd also
 * starts where no administrator has created that user.
 */
static void default_engine_user(struct parser *p)
{
	struct uvd_options *o = p->o;
	const char *wrong;

	if (!o->separate || o->engine_uid)
		return;
	o->engine_is_nobody = !getpwnam(UVD_ENGINE_USER);
	if (o->engine_is_nobody) {
		o->engine_uid = o->engine_gid = NOBODY;
		return;
	}
	wrong = uvd_option_set_engine_user(NULL, o, UVD_ENGINE_USER, 0);
	if (wrong)
		uvd_opt_fail(p, 0, "--engine-user: `%s` %s", UVD_ENGINE_USER, wrong);
}

/* Puts the file's settings before those of the command line, which are in p->settings already. */
static void put_file_first(struct parser *p)
{
	struct setting *command_line = p->settings;
	unsigned int i, n = p->num_settings;

	for (i = 0; i < n; i++)
		if (command_line[i].row->is_file || !command_line[i].row->help)
			uvd_setting_apply(p, &command_line[i], p->o, 0);
	if (p->o->engine && p->o->config[0])
		snprintf(p->o->config, sizeof(p->o->config), "/proc/self/fd/%d", UVD_ENGINE_CONFIG);
	if (!p->o->config[0] || p->failed)
		return;
	p->settings = NULL;
	p->num_settings = 0;
	uvd_options_read_file(p);
	for (i = 0; i < n; i++) {
		uvd_setting_add(p, command_line[i].row, command_line[i].text, -1, -1, 0);
		free(command_line[i].text);
	}
	free(command_line);
}

static void open_plugins(struct parser *p)
{
	char error[UVD_PLUGIN_ERROR];

	/* The options of one more device may be a client's: open no file. */
	if (p->device_only && p->o->num_plugins)
		uvd_opt_fail(p, 0, "a plug-in is no option of a device: load it with `uverbsctl plugin load`");
	if (p->failed || p->plugins)
		return;
	if (!uvd_options_open_plugins(p->o, error))
		uvd_opt_fail(p, 0, "--plugin %s", error);
	p->plugins = p->o->names;
}

int uvd_options_run_parser(struct parser *p, const struct uvd_help_head *head, int argc, char **argv)
{
	struct uvd_options *o = p->o;
	unsigned int i;
	int status;

	options_set_defaults(o, p->program);
	if (p->wire)
		o->wire = *p->wire;
	o->wire_is_known = p->again;
	if (p->machine)
		o->machine = *p->machine;
	o->machine_is_known = p->machine;
	o->argc = argc;
	o->argv = argv;
	status = read_command_line(p, head, argc, argv);
	if (status < 0) {
		put_file_first(p);
		uvd_option_say(p);
		apply_program(p);
		uvd_option_machine_look(p);
		default_engine_user(p);
		open_plugins(p);
		o->devices = p->failed ? NULL : calloc(o->num_devices, sizeof(*o->devices));
		if (!o->devices)
			uvd_opt_fail(p, 0, "no memory");
		for (i = 0; i < o->num_devices && !p->failed; i++)
			apply_device(p, i);
		if (!p->failed)
			check_names(p);
		if (!p->failed)
			check_cpu(p);
		if (!p->failed)
			uvd_option_check_personas(p);
		if (!p->failed)
			check_adapters(p);
		if (!p->failed)
			uvd_option_check_ucap_grants(p);
		if (!p->failed)
			check_wire(p);
	}
	for (i = 0; i < p->num_settings; i++)
		free(p->settings[i].text);
	free(p->settings);
	if (p->failed)
		status = 2;
	if (status >= 0)
		uvd_options_free(o);
	return status;
}

/* A connection between two runs that are not joined fails, rather than to find a port of its own with the same LID. */
static unsigned int random_lid(void)
{
	return uvd_random(0xbe00); /* so that the LIDs of all devices stay below 0xc000 */
}

int uvd_options_parse(struct uvd_options *o, enum uvd_program program, int (*can_map)(void),
		      const struct uvd_help_head *head, int argc, char **argv)
{
	struct parser p = {
		.o = o,
		.program = program,
		.can_map = can_map,
		.name = argv[0],
		.last_device = -1,
		.own_lids = program == UVD_PROGRAM_RUN ? random_lid() : 0,
		.checks_names = true,
	};

	return uvd_options_run_parser(&p, head, argc, argv);
}

int uvd_options_parse_device(struct uvd_options *o, const struct uvd_option_place *place, int argc, char **argv)
{
	/* Parse as `run`: it has the fewest options beside a device's. */
	struct parser p = {
		.o = o,
		.program = UVD_PROGRAM_RUN,
		.machine = place->machine,
		.name = argv[0],
		.last_device = -1,
		.device_only = true,
		.plugins = place->plugins,
		.wire = place->wire,
		.checks_names = place->plugins,
		.first_index = place->index,
		.first_nth = place->nth,
	};

	if (uvd_options_run_parser(&p, NULL, argc, argv) >= 0)
		return -1;
	if (o->num_devices == 1 && o->first_arg == argc && !o->num_plugins)
		return 0;
	fprintf(stderr, "%s: only options of one device are allowed\n", argv[0]);
	uvd_options_free(o);
	return -1;
}

void uvd_options_free(struct uvd_options *o)
{
	free(o->devices);
	o->devices = NULL;
	uvd_options_free_said(o);
	uvd_options_free_texts(o);
	uvd_options_free_plugins(o);
}
