/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The options of uverbsd and `uverbsctl run`, from the command line and an INI file. One table (rows.c) has every
 * option with its name, type, default and help text; getopt, the file's reader and --help all use it.
 *
 * The limits of users (--limit-NAME) are made from the table of accounts; in the file they are NAME in [limits].
 *
 * Later settings replace earlier ones: the defaults of the device come first, then the file, then the command line. In
 * the file [device N] wins over [uverbsd], and [port N.M] over both, wherever these sections are; otherwise the order of
 * the lines counts. Devices count from 0, ports from 1.
 */
#ifndef UVD_OPTIONS_H
#define UVD_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "core/core.h"
#include "plugin/plugin.h"
#include "util/util.h"
#include "wire/wire.h"

struct uvd_engine;

/* The program that parses. It refuses another program's options on its command line, and ignores them in its file. */
enum uvd_program { UVD_PROGRAM_DAEMON = 1, UVD_PROGRAM_RUN = 2 };

/* The numbers of the descriptors that the broker passes to the engine process. */
enum {
	UVD_ENGINE_SOCKET = 3,
	UVD_ENGINE_CONTROL,
	UVD_ENGINE_CONFIG, /* a copy of the configuration file, or empty */
	UVD_ENGINE_WIRE, /* the first of the sockets on the wire */
};

/* The default user of the engine process. contrib/sysusers.d/uverbsd.conf creates it. */
#define UVD_ENGINE_USER "_uverbsd"

/* A plug-in that is loaded at the start. */
struct uvd_option_plugin {
	char *path; /* absolute */
	char **values; /* "KEY=VALUE", ends with NULL; NULL: none. A later one of a key replaces an earlier one */
	unsigned int num_values;
};

/* A text for a device. */
struct uvd_option_text {
	unsigned int device;
	enum uvd_text_kind kind;
	char *text;
};

/* An option that was set. */
struct uvd_option_said {
	const char *name;
	char *text;
};

/* The wire that the devices of backend `soft` are on. All devices of an engine have the same addresses. */
struct uvd_wire_options {
	unsigned int num; /* 0: other hosts cannot be reached */
	struct uvd_socket_address list[UVD_MAX_WIRES];
	uint64_t guid; /* of device 0: random, as peers on other hosts tell engines apart by it; the others count up */
};

enum { UVD_WIRE_TEXT = UVD_MAX_WIRES * UVD_SOCKET_ADDRESS_TEXT, UVD_MACHINE_TEXT = 24 };

/*
 * What the defaults of devices depend on, beside their options. A broker finds it out and tells its engine process, which could not in its
 * sandbox.
 */
struct uvd_option_machine {
	bool is_private; /* the devices are those of a run, which has one user */
	bool maps_queues; /* clients can map the devices' queues */
	bool has_ipv6; /* the machine has the address ::1 */
	int unmapped; /* why clients of a daemon cannot map queues: a negative errno; 0: it was not asked for */
};

enum { UVD_MAX_UCAP_GRANTS = 64, UVD_UCAP_MODE_DEFAULT = 010000 };

/* The owner and the mode of User Capabilities' nodes. */
struct uvd_ucap_grant {
	char name[UVD_UCAP_NAME]; /* "": of all */
	uid_t uid; /* -1: not said */
	gid_t gid; /* -1: not said */
	unsigned int mode; /* UVD_UCAP_MODE_DEFAULT: not said */
};

struct uvd_ucap_grants {
	unsigned int num;
	struct uvd_ucap_grant list[UVD_MAX_UCAP_GRANTS];
};

struct uvd_options {
	/* Both programs. */
	struct uvd_option_machine machine;
	bool machine_is_known; /* a broker has told it to this engine process */
	unsigned int num_devices;
	char personas[256]; /* of the devices, in their order, with commas between them; "": each has its default */
	struct uvd_device_config *devices; /* num_devices of them; a number of -1 means the next free one */
	int first_number; /* -1: not given */
	struct uvd_account_limits limits; /* of each user */
	int log_level; /* enum uvd_log_level */
	int explain; /* enum uvd_explain_form */
	char config[PATH_MAX];
	struct uvd_option_plugin *plugins;
	unsigned int num_plugins;
	struct uvd_option_text *texts; /* in the order in which a device gets them: its first filter is the outermost */
	unsigned int num_texts;
	struct uvd_wire_options wire;
	bool wire_is_known; /* a broker has told it to this engine process */
	struct uvd_plugins *names; /* what they declare, and what is built in: never begun (uvd_plugins_look()) */
	/* uverbsd. */
	bool grant_fds; /* clients get event files, by ptrace */
	char sysfs[PATH_MAX]; /* the sysfs directory */
	bool overlay; /* mount it over /sys/class, too */
	char control[PATH_MAX];
	char pid_file[PATH_MAX]; /* empty: none */
	char netlink_alias[PATH_MAX]; /* empty: none */
	unsigned int mode; /* of the nodes */
	gid_t group; /* of the nodes; -1: leave it */
	struct uvd_ucap_grants ucap_grants;
	unsigned int workers; /* threads that read a node's channel */
	bool separate; /* uverbsd's default: a broker with the privileges and an engine process without any */
	uid_t engine_uid; /* of the engine process */
	gid_t engine_gid;
	bool engine_is_nobody; /* there is no user UVD_ENGINE_USER, and no other one was given */
	char plugin_dir[PATH_MAX]; /* with a broker: of the plug-ins that can be loaded later */
	bool engine; /* this is the engine process, which the broker started */
	struct uvd_option_said *
		said; /* the settings of the program, of plug-ins and of users' limits, in the order in which they are made */
	unsigned int num_said;
	int argc; /* main()'s, for the command line of the engine process */
	char **argv;
	unsigned int root_clients; /* with a broker: enum uvd_root_clients */
	/* uverbsctl run. */
	char join[64];
	char trace[PATH_MAX]; /* "": no trace */
	char pcap[PATH_MAX]; /* "": no capture */
	char report[PATH_MAX]; /* "": no report; "-": on stderr */
	int report_format; /* enum uvd_report_format */
	bool report_stacks; /* it names where objects were created */
	bool report_fails; /* exit with UVD_RUN_FINDINGS if there are findings */
	bool mount; /* mount the devices' folders for PROGRAM */
	int doorbells; /* enum uvd_doorbell_way */
	unsigned int busy_poll; /* microseconds */
	struct uvd_ucap_names granted; /* User Capabilities that PROGRAM may open */
	int first_arg; /* index in argv of the first argument that is not an option */
};

/*
 * Parses the command line and the configuration file into *o. --help begins with `head`, which may be NULL.
 * can_map: asked by a daemon whether its clients can map queues; returns 0 or a negative errno. NULL: they cannot.
 * Returns -1 to go on; the caller then frees *o with uvd_options_free() and keeps argv. Otherwise returns the exit
 * status: 0 after --help or --version, 2 after an error, which is reported on stderr.
 */
int uvd_options_parse(struct uvd_options *o, enum uvd_program program, int (*can_map)(void),
		      const struct uvd_help_head *head, int argc, char **argv);
enum { UVD_RELOAD_ERROR = 512, UVD_RELOAD_NAMES = 512 };

/*
 * Parses the command line of `was` again, with what its configuration file is now: config, a descriptor. Plug-ins are not looked at: if
 * other ones are named it fails. Returns 0: o->devices, o->texts and o->ucap_grants are new, and the caller frees *o, before `was`. Returns -1,
 * and error says what is wrong, with the line.
 */
int uvd_options_parse_again(const struct uvd_options *was, int config, struct uvd_options *o,
			    char error[UVD_RELOAD_ERROR]);
/* Writes the names of those options of the program that differ, with blanks between them. Those of User Capabilities are left out. */
void uvd_options_differ(const struct uvd_options *a, const struct uvd_options *b, char names[UVD_RELOAD_NAMES]);
/* Is device i of `a` the same as device j of b, but for its number if both have none? */
bool uvd_options_same_device(const struct uvd_options *a, unsigned int i, const struct uvd_options *b, unsigned int j);
/* The engine tells the parser this, on which the defaults of one more device depend. */
struct uvd_option_place {
	const struct uvd_option_machine *machine; /* of the engine's options */
	/* They have the backends and personas; NULL: their names are not checked, as only the daemon knows them. */
	struct uvd_plugins *plugins;
	const struct uvd_wire_options *wire; /* of the engine; NULL: none */
	unsigned int index; /* the device has the default GUID and LIDs of a device of this index */
	unsigned int nth; /* the number in its default name */
};
/*
 * Parses the options of one more device. argv[0] is the prefix of messages; the rest may only be options of a device.
 * Returns 0: o->devices[0] has the defaults of a device in this place, changed by the options, and its number is -1 if
 * none was given. The caller frees *o with uvd_options_free(). Returns -1 on error, which is reported on stderr. --help
 * and --version are errors: stdout may be a daemon's.
 */
int uvd_options_parse_device(struct uvd_options *o, const struct uvd_option_place *place, int argc, char **argv);
void uvd_options_free(struct uvd_options *o);

enum { UVD_OPTION_CHOICES = 8 };

/* An option, for help beyond --help. */
struct uvd_option_info {
	const char *name, *arg; /* arg: NULL: a flag */
	const char *scope; /* "program", "device", "port" or "limit" */
	const char *preset, *help; /* preset: NULL: there is none */
	const char *choices[UVD_OPTION_CHOICES + 1]; /* the words that its value can be; none: it is something else */
	unsigned int programs; /* set of enum uvd_program */
	bool is_of_file; /* the configuration file can have it */
	bool is_glued; /* its value stands behind a `=`, or is left out */
	bool may_be_omitted; /* the value may be left out before another option */
};

/* Describes option number i, from 0, of those that --help shows. Returns false after the last. */
bool uvd_options_describe(unsigned int i, struct uvd_option_info *info);
/* Writes what a broker tells its engine process. */
void uvd_options_machine_text(const struct uvd_option_machine *m, char text[UVD_MACHINE_TEXT]);
/* Writes the addresses with commas between them. */
void uvd_options_wire_text(const struct uvd_wire_options *w, char text[UVD_WIRE_TEXT]);
/* Do both have the same addresses in the same order? */
bool uvd_options_same_wire(const struct uvd_wire_options *a, const struct uvd_wire_options *b);
/*
 * Makes the absolute path of a plug-in: a name without '/' is looked for in the folder of plug-ins, any other relative
 * name in the working directory. Returns NULL, or a message that says what is wrong with the name.
 */
const char *uvd_options_plugin_path(const char *file, char path[PATH_MAX]);
/* Loads the plug-ins of --plugin. Returns false if one cannot be loaded, and the log says why. */
bool uvd_options_load_plugins(const struct uvd_options *o, struct uvd_plugins *plugins, struct uvd_log *log);
/*
 * Tells the engine the texts of the options' devices, which are not created yet. The engine forgets those that it had for
 * devices of these names. Returns 0 or -ENOMEM.
 */
int uvd_options_give_texts(const struct uvd_options *o, struct uvd_engine *engine);
/*
 * Is this a valid configuration? For one that another process sent: all texts are one line without '/', counts are
 * within their arrays, and the persona is known. *c must be a copy that the other process cannot change.
 */
bool uvd_options_device_ok(struct uvd_plugins *names, const struct uvd_device_config *c);
/* Are these valid names of User Capabilities? Likewise. */
bool uvd_options_ucaps_ok(const struct uvd_ucap_names *ucaps);
/* Returns the owner and the mode of the node of this User Capability: all is said. What is said of the name wins over what is said of all. */
struct uvd_ucap_grant uvd_options_ucap_grant(const struct uvd_ucap_grants *grants, const char *name);

#endif
