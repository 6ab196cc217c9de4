/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Options: what uverbsd and `uverbsctl run` are told, from the command line and an INI file. One table (rows.c) has
 * every option with its name, type, default and help text; getopt, the file's reader and --help all use it.
 *
 * The limits of users (--limit-NAME) are not in it but made from the table of accounts; in the file they are NAME in [limits].
 *
 * Order: the device's defaults, then the file's [uverbsd] and [limits], then its [device N] and [port N.M] (devices from 0, ports from
 * 1), then the command line.
 */
#ifndef UVD_OPTIONS_H
#define UVD_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include <uverbsd/log.h>
#include "account/account.h"

/* Who asks: an option that the program does not have is refused as unknown, on its command line and in its file. */
enum uvd_program { UVD_PROGRAM_DAEMON = 1, UVD_PROGRAM_RUN = 2 };

/* The descriptors that the broker gives the engine process. */
enum { UVD_ENGINE_SOCKET = 3, UVD_ENGINE_CONTROL, UVD_ENGINE_CONFIG /* the configuration file; empty where there is none */ };

struct uvd_options {
	/* Both programs: the devices. */
	unsigned int num_devices;
	struct uvd_device_config *devices; /* num_devices; number is -1 where the next free one is to be taken */
	char backend[16], persona[16]; /* of device 0 */
	int first_number; /* -1: not given */
	struct uvd_account_limits limits; /* of each user */
	int log_level; /* enum uvd_log_level */
	char config[PATH_MAX];
	/* uverbsd. */
	bool grant_fds; /* by ptrace */
	char sysfs[PATH_MAX]; /* the tree's folder */
	bool overlay; /* and mounted over /sys/class */
	char control[PATH_MAX];
	char pid_file[PATH_MAX]; /* empty: none */
	unsigned int mode; /* of the nodes */
	gid_t group; /* of the nodes; -1: leave it */
	unsigned int workers; /* threads that read a node's channel */
	bool foreground; /* always so */
	bool separate; /* a broker keeps the privileges, and an engine process has none */
	uid_t engine_uid; /* of the engine process */
	gid_t engine_gid;
	bool engine; /* this is the engine process, which the broker has started */
	int argc; /* main()'s: the engine process gets them, too */
	char **argv;
	bool root_clients; /* with a broker: root's processes may be clients */
	/* uverbsctl run. */
	char join[64];
	unsigned int busy_poll; /* us */
	struct uvd_ucap_names granted; /* User Capabilities that PROGRAM may open */
	int first_arg; /* index in argv of the first argument that is no option */
};

/*
 * Fills *o. -1: go on. Otherwise the exit status: 0 after --help or --version, 2 after an error, which stderr has been told
 * about. `usage` is what --help puts behind "Usage: ".
 */
int uvd_options_parse(struct uvd_options *o, enum uvd_program program, const char *usage, int argc, char **argv);
/*
 * The same for one device more, from words without options of a program (argv[0] is no option either). o->devices[0] is what
 * was asked for, on top of the defaults of a device of this index; its number is -1 where none was given. maps_queues: clients can map
 * the device. 0; -1: they make no sense, which stderr has been told.
 */
int uvd_options_parse_device(struct uvd_options *o, bool maps_queues, unsigned int index, int argc, char **argv);
void uvd_options_free(struct uvd_options *o);
/*
 * Can this be a device's configuration? All text is one line, names have no '/', counts are in their arrays, the persona is known.
 * For one that another process has sent: *c must be a copy that nobody changes.
 */
bool uvd_options_device_ok(const struct uvd_device_config *c);

#endif
