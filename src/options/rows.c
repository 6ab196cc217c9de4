/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "backends/backends.h"
#include "broker/broker.h"
#include "doorbell/doorbell.h"
#include "explain/explain.h"
#include "options/internal.h"
#include "options/options.h"
#include "persona/persona.h"
#include "report/report.h"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>

/* ---- names of what plug-ins can have ---- */

static const char *nearest_names(const char *wrong, const struct uvd_nearest *nearest)
{
	static __thread char text[UVD_NEAREST_TEXT + 40];
	char names[UVD_NEAREST_TEXT];

	snprintf(text, sizeof(text), "%s; the nearest are %s", wrong, uvd_nearest_text(nearest, names));
	return text;
}

static const char *check_backend(struct uvd_plugins *plugins, const char *text)
{
	struct uvd_nearest nearest = { .wrong = text };
	const struct uvd_backend *backend;

	for (unsigned int i = 0; (backend = uvd_plugins_backend_at(plugins, i)); i++)
		uvd_nearest_add(&nearest, backend->name);
	return uvd_plugins_backend(plugins, text) ? NULL : nearest_names("is no backend", &nearest);
}

static const char *check_persona(struct uvd_plugins *plugins, const char *text)
{
	struct uvd_nearest nearest = { .wrong = text };
	const struct uvd_persona *persona;

	for (unsigned int i = 0; (persona = uvd_plugins_persona_at(plugins, i)); i++)
		uvd_nearest_add(&nearest, persona->name);
	return uvd_plugins_persona(plugins, text) ? NULL : nearest_names("is no persona", &nearest);
}

static const char *check_filter(struct uvd_plugins *plugins, const char *text)
{
	static __thread char error[UVD_PLUGIN_ERROR + 16] = "is wrong: ";
	const size_t prefix = strlen("is wrong: ");

	return uvd_plugins_filter_check(plugins, text, error + prefix) ? error : NULL;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const struct uvd_option_choice yes_no[] = { { "yes", 1 }, { "no", 0 }, { NULL } };
static const struct uvd_option_choice root_clients[] = {
	{ "allow", UVD_ROOT_ALLOW }, { "refuse", UVD_ROOT_REFUSE }, { "all", UVD_ROOT_ALL }, { NULL }
};
static const struct uvd_option_choice abis[] = { { "ioctl", 0 }, { "write", 1 }, { NULL } };
static const struct uvd_option_choice memories[] = { { "auto", UVD_MEMORY_AUTO },
						     { "borrow", UVD_MEMORY_BORROW },
						     { "bounce", UVD_MEMORY_BOUNCE },
						     { "refuse", UVD_MEMORY_REFUSE },
						     { NULL } };
static const struct uvd_option_choice states[] = { { "active", 0 }, { "down", 1 }, { NULL } };
static const struct uvd_option_choice grants[] = { { "ptrace", 1 }, { "off", 0 }, { NULL } };
#define LEVEL_CHOICE(level, name) { name, level },
static const struct uvd_option_choice levels[] = { UVD_LOG_LEVELS(LEVEL_CHOICE){ NULL } };
static const struct uvd_option_choice explain_forms[] = {
	{ "off", UVD_EXPLAIN_OFF }, { "text", UVD_EXPLAIN_TEXT }, { "json", UVD_EXPLAIN_JSON }, { NULL }
};
static const struct uvd_option_choice doorbell_ways[] = { { "auto", UVD_DOORBELLS_AUTO },
							  { "calls", UVD_DOORBELLS_CALLS },
							  { NULL } };
static const struct uvd_option_choice report_formats[] = {
	{ "text", UVD_REPORT_TEXT }, { "json", UVD_REPORT_JSON }, { "junit", UVD_REPORT_JUNIT }, { NULL }
};
static const struct uvd_option_choice mtus[] = { { "256", IBV_MTU_256 },   { "512", IBV_MTU_512 },
						 { "1024", IBV_MTU_1024 }, { "2048", IBV_MTU_2048 },
						 { "4096", IBV_MTU_4096 }, { NULL } };

static const struct uvd_option_choice link_layers[] = { { "infiniband", IBV_LINK_LAYER_INFINIBAND },
							{ "ethernet", IBV_LINK_LAYER_ETHERNET },
							{ NULL } };

#define BOTH (UVD_PROGRAM_DAEMON | UVD_PROGRAM_RUN)
#define MEMBER(s, m) .offset = offsetof(struct s, m), .size = sizeof(((struct s *)0)->m)
#define ARRAY(s, m) .offset = offsetof(struct s, m), .max = sizeof(((struct s *)0)->m)
#define PROGRAM(m, who) MEMBER(uvd_options, m), .scope = UVD_SCOPE_PROGRAM, .programs = who
#define PROGRAM_STR(m, who) ARRAY(uvd_options, m), .scope = UVD_SCOPE_PROGRAM, .programs = who
#define DEVICE(m) MEMBER(uvd_device_config, m), .scope = UVD_SCOPE_DEVICE, .programs = BOTH
#define DEVICE_STR(m) ARRAY(uvd_device_config, m), .scope = UVD_SCOPE_DEVICE, .programs = BOTH
#define PORT(m) MEMBER(uvd_port_config, m), .scope = UVD_SCOPE_PORT, .programs = BOTH
#define NUMBER(lo, hi) .arg = "N", .set = uvd_option_set_number, .min = lo, .max = hi
#define LIMIT(n, m, what) \
	{ \
		n, DEVICE(limits.m), NUMBER(1, INT32_MAX), .preset = "the persona's", .help = "most " what \
	}

static const struct uvd_option_row option_rows[] = {
	{ "config", .is_common = true, .arg = "FILE", PROGRAM_STR(config, BOTH), .set = uvd_option_set_path,
	  .is_file = true, .help = "read this file before the command line" },
	{ "internal-machine", .arg = "MACHINE", .scope = UVD_SCOPE_PROGRAM, .programs = UVD_PROGRAM_DAEMON,
	  .set = uvd_option_set_known_machine },
	{ "devices", .is_reloaded = true, .is_common = true, PROGRAM(num_devices, BOTH), NUMBER(1, UVD_MAX_DEVICES),
	  .preset = "1", .help = "how many devices there are" },
	{ "personas", .is_reloaded = true, .arg = "NAME[,NAME...]", PROGRAM_STR(personas, BOTH),
	  .set = uvd_option_set_string, .is_of_engine = true, .preset = "the default of each device",
	  .help = "a device of each of these personas, in this order: with rxe among them all are Ethernet, and reach each other" },
	{ "first-number", .is_reloaded = true, PROGRAM(first_number, BOTH), NUMBER(0, UVD_NODE_NUMBERS - 1),
	  .preset = "the next that is free", .help = "N of the first uverbsN; the others follow" },
	{ "log-level", .is_common = true, PROGRAM(log_level, BOTH), .arg = "LEVEL", .set = uvd_option_set_choice,
	  .choices = levels, .preset = "info; for run warning", .help = "error, warning, info or debug" },
	{ "explain", PROGRAM(explain, BOTH), .arg = "FORM", .set = uvd_option_set_choice, .choices = explain_forms,
	  .preset = "text",
	  .help = "how the log explains completions with errors, refused calls and error events: off, text or json" },
	{ "plugin", .is_common = true, .arg = "FILE [KEY=VALUE...]", .scope = UVD_SCOPE_PROGRAM, .programs = BOTH,
	  .set = uvd_option_set_plugin, .is_plugin = true, .is_of_engine = true,
	  .help = "load this plug-in, with these options, which `--plugin FILE --help` lists; may be repeated" },

	{ "wire", .is_common = true, .arg = "ADDR[,ADDR...]", .scope = UVD_SCOPE_PROGRAM, .programs = BOTH,
	  .set = uvd_option_set_wire, .is_of_engine = true, .preset = "none",
	  .help = "reach other hosts by RoCE v2 (UDP port 4791) with these addresses of this machine, or `auto`: those of the default route's "
		  "interface; the devices' first GIDs" },
	{ "internal-wire", .arg = "WIRE", .scope = UVD_SCOPE_PROGRAM, .programs = UVD_PROGRAM_DAEMON,
	  .set = uvd_option_set_known_wire },

	{ "sysfs", .is_common = true, .arg = "DIR", PROGRAM_STR(sysfs, UVD_PROGRAM_DAEMON), .set = uvd_option_set_sysfs,
	  .preset = "/run/uverbsd/sysfs",
	  .help = "folder of the published files that libibverbs reads; `overlay`: mount them over /sys/class, too" },
	{ "control", .is_common = true, .arg = "PATH", PROGRAM_STR(control, UVD_PROGRAM_DAEMON),
	  .set = uvd_option_set_path, .preset = "/run/uverbsd/control", .help = "the control socket, for uverbsctl" },
	{ "pid-file", .arg = "PATH", PROGRAM_STR(pid_file, UVD_PROGRAM_DAEMON), .set = uvd_option_set_path,
	  .preset = "none", .help = "file that holds the daemon's process id while it is ready" },
	{ "netlink-alias", .arg = "PATH", PROGRAM_STR(netlink_alias, UVD_PROGRAM_DAEMON), .set = uvd_option_set_path,
	  .preset = "none",
	  .help = "file in a folder of modprobe.d that keeps libibverbs from the kernel's RDMA stack, while there is no adapter" },
	{ "grant-fds", .arg = "HOW", PROGRAM(grant_fds, UVD_PROGRAM_DAEMON), .set = uvd_option_set_choice,
	  .choices = grants, .preset = "ptrace", .help = "how clients get event files: ptrace, or off" },
	{ "mode", .arg = "OCTAL", PROGRAM(mode, UVD_PROGRAM_DAEMON), .set = uvd_option_set_octal, .min = 0, .max = 0777,
	  .preset = "0666", .help = "permissions of the nodes" },
	{ "group", .is_common = true, .arg = "GROUP", PROGRAM(group, UVD_PROGRAM_DAEMON), .set = uvd_option_set_group,
	  .preset = "root", .help = "group of the nodes" },
	{ "ucap-owner", .arg = "[NAME:]USER", PROGRAM(ucap_grants, UVD_PROGRAM_DAEMON),
	  .set = uvd_option_set_ucap_owner, .is_reloaded = true, .differs_by_ucap = true, .preset = "root",
	  .help = "owner of the nodes of User Capabilities, or of NAME's; may be repeated" },
	{ "ucap-group", .arg = "[NAME:]GROUP", PROGRAM(ucap_grants, UVD_PROGRAM_DAEMON),
	  .set = uvd_option_set_ucap_group, .is_reloaded = true, .differs_by_ucap = true, .preset = "root",
	  .help = "their group; may be repeated" },
	{ "ucap-mode", .arg = "[NAME:]OCTAL", PROGRAM(ucap_grants, UVD_PROGRAM_DAEMON), .set = uvd_option_set_ucap_mode,
	  .is_reloaded = true, .differs_by_ucap = true, .preset = "0600, with ucap-group 0660",
	  .help = "their permissions; may be repeated" },
	{ "workers", PROGRAM(workers, UVD_PROGRAM_DAEMON), NUMBER(1, 16), .preset = "2",
	  .help = "threads that serve a node" },
	{ "separate", .arg = "yes|no", PROGRAM(separate, UVD_PROGRAM_DAEMON), .set = uvd_option_set_choice,
	  .choices = yes_no, .preset = "yes",
	  .help = "serve clients in a process without privileges; no: in one process with all of root's rights, as a debugger may need" },
	{ "engine-user", .arg = "USER", PROGRAM(engine_uid, UVD_PROGRAM_DAEMON), .set = uvd_option_set_engine_user,
	  .preset = UVD_ENGINE_USER ", else nobody",
	  .help = "user of the process without privileges: preferably one with no other processes" },
	{ "plugin-dir", .arg = "DIR", PROGRAM_STR(plugin_dir, UVD_PROGRAM_DAEMON), .set = uvd_option_set_path,
	  .preset = UVD_PLUGIN_DIR,
	  .help = "with two processes: the folder of the plug-ins that can be loaded while it runs" },
	{ "internal-engine", PROGRAM(engine, UVD_PROGRAM_DAEMON), .set = uvd_option_set_choice, .choices = yes_no },
	{ "root-clients", .arg = "HOW", PROGRAM(root_clients, UVD_PROGRAM_DAEMON), .set = uvd_option_set_choice,
	  .choices = root_clients, .preset = "allow",
	  .help = "with two processes: allow or refuse clients that run as root, or that only root may inspect; all: allow also programs of "
		  "root that were executed with a change of rights, as setuid programs and services that a security module confines" },
	{ "join", .is_common = true, .arg = "[NAME]", PROGRAM_STR(join, UVD_PROGRAM_RUN), .set = uvd_option_set_string,
	  .omitted = "default",
	  .help = "share the devices of all runs with this NAME; before an option or `--` it can be left out" },
	{ "trace", .is_common = true, .arg = "FILE", PROGRAM_STR(trace, UVD_PROGRAM_RUN), .set = uvd_option_set_path,
	  .preset = "none",
	  .help = "record all calls on the devices into FILE, which `uverbsctl trace -i FILE` prints" },
	{ "pcap", .arg = "FILE", PROGRAM_STR(pcap, UVD_PROGRAM_RUN), .set = uvd_option_set_path, .preset = "none",
	  .help = "write the traffic of backend soft into FILE, as RoCE v2 packets for Wireshark and tshark" },
	{ "report", .is_common = true, .arg = "FILE", PROGRAM_STR(report, UVD_PROGRAM_RUN),
	  .set = uvd_option_set_path_or_dash, .omitted = "-", .is_glued = true,
	  .preset = "no report; without FILE stderr",
	  .help = "report at the end what each process has left, what has failed and what it did, into FILE" },
	{ "report-format", .arg = "FORMAT", PROGRAM(report_format, UVD_PROGRAM_RUN), .set = uvd_option_set_choice,
	  .choices = report_formats, .preset = "text", .help = "format of the report: text, json or junit" },
	{ "report-fails", PROGRAM(report_fails, UVD_PROGRAM_RUN), .set = uvd_option_set_choice, .choices = yes_no,
	  .preset = "no", .help = "report, and exit with 99 instead of 0 if the report has findings" },
	{ "report-stacks", PROGRAM(report_stacks, UVD_PROGRAM_RUN), .set = uvd_option_set_choice, .choices = yes_no,
	  .preset = "no",
	  .help = "report, and name for each object that is left the functions and lines that created it" },
	{ "mount", PROGRAM(mount, UVD_PROGRAM_RUN), .set = uvd_option_set_choice, .choices = yes_no, .preset = "no",
	  .help = "mount the devices in /sys/class and /dev/infiniband for PROGRAM, so that it can chdir() there" },
	{ "doorbells", PROGRAM(doorbells, BOTH), .arg = "WAY", .set = uvd_option_set_choice, .choices = doorbell_ways,
	  .preset = "auto",
	  .help = "how programs ring the doorbells of mapped queues: calls, or auto (without waiting for an answer)" },
	{ "busy-poll", PROGRAM(busy_poll, UVD_PROGRAM_RUN), .arg = "US", .set = uvd_option_set_number, .max = 100000,
	  .preset = "0",
	  .help = "poll for the next call for US microseconds before sleeping: faster if a core is free" },
	{ "ucap", .arg = "NAME", PROGRAM(granted, UVD_PROGRAM_RUN), .set = uvd_option_set_granted, .preset = "none",
	  .help = "let PROGRAM open this User Capability; may be repeated" },

	{ "backend", .is_common = true, .arg = "NAME", DEVICE_STR(backend), .set = uvd_option_set_string,
	  .check = check_backend, .decides_persona = true, .preset = "soft",
	  .help = "the backend: soft, null or verbs (a real adapter)" },
	{ "hca", .arg = "NAME", DEVICE_STR(hca), .set = uvd_option_set_text, .may_be_empty = true, .preset = "none",
	  .help = "backend verbs: the adapter to forward to; `uverbsctl hca list` lists them" },
	{ "memory", .arg = "HOW", DEVICE(memory), .set = uvd_option_set_choice, .choices = memories, .preset = "auto",
	  .help = "backend verbs: how the adapter reaches clients' memory: borrow (the client's thread registers it), bounce (copies; "
		  "peers cannot), refuse, or auto (borrow if the device can do that safely, else bounce)" },
	{ "filter", .is_common = true, .arg = "NAME[:OPTIONS]", .scope = UVD_SCOPE_DEVICE, .programs = BOTH,
	  .text = &uvd_option_filter, .check = check_filter, .preset = "none",
	  .help = "put this filter before the backend, with options KEY=VALUE,...; may be repeated: the first is the outermost" },
	{ "allow", .is_common = true, .arg = "[user:NAME:|ucap:NAME:]KIND:WORD,...", .scope = UVD_SCOPE_DEVICE,
	  .programs = BOTH, .text = &uvd_option_allow, .preset = "everything",
	  .help = "refuse what is not in this list: KIND is verbs, objects, access, qp-types, pkeys or gids; or `none`; may be repeated" },
	{ "quota", .arg = "[user:NAME:]RESOURCE:N,...", .scope = UVD_SCOPE_DEVICE, .programs = BOTH,
	  .text = &uvd_option_quota, .preset = "no limit but those below",
	  .help = "how much of the device each user may hold: RESOURCE is objects, registered or a type of objects as in the limits below; N may be `unlimited`; may be repeated" },
	{ "persona", .is_common = true, .arg = "NAME", DEVICE_STR(persona), .set = uvd_option_set_string,
	  .check = check_persona, .decides_persona = true,
	  .preset = "rxe for soft where queues can be mapped: run, and uverbsd with Linux 6.9; else hfi1",
	  .help = "the adapter that the device emulates: rxe (mapped queues, fast) or hfi1 (a call for each post)" },
	{ "abi", .arg = "ABI", DEVICE(write_abi), .set = uvd_option_set_choice, .choices = abis, .preset = "ioctl",
	  .help = "what libibverbs is told to use: ioctl or write" },
	{ "name", .arg = "NAME", DEVICE_STR(ibdev), .set = uvd_option_set_text, .decides_persona = true,
	  .preset = "hfi1_N, or rxeN", .help = "name of the device ([device N] only)" },
	{ "number", DEVICE(number), .arg = "N", .set = uvd_option_set_nth_number, .min = 0, .max = UVD_NODE_NUMBERS - 1,
	  .preset = "the next that is free", .help = "N of uverbsN ([device N] only)" },
	{ "guid", .arg = "GUID", DEVICE(node_guid), .set = uvd_option_set_guid, .preset = "one for each device",
	  .help = "node GUID of the first device, like 0002:c903:00ab:cdef" },
	{ "fw-version", .arg = "TEXT", DEVICE_STR(fw_ver), .set = uvd_option_set_text, .may_be_empty = true,
	  .preset = "the persona's", .help = "firmware version" },
	{ "board-id", .arg = "TEXT", DEVICE_STR(board_id), .set = uvd_option_set_text, .may_be_empty = true,
	  .preset = "the persona's", .help = "board id" },
	{ "node-desc", .arg = "TEXT", DEVICE_STR(node_desc), .set = uvd_option_set_text, .may_be_empty = true,
	  .preset = "the persona's", .help = "node description, which subnet tools show" },
	{ "ucaps", .arg = "NAME[,NAME...]", DEVICE(ucaps), .set = uvd_option_set_ucaps, .preset = "none",
	  .help = "User Capabilities that the device creates, each with a node" },
	{ "ip", .arg = "ADDR[,ADDR...]", DEVICE(ips), .set = uvd_option_set_ips, .preset = "none",
	  .help = "IP addresses of this machine that the device has beside 127.0.0.1: GIDs on Ethernet; for connections by rdma_cm" },
	{ "announce", .arg = "WHAT", DEVICE(hidden_caps), .set = uvd_option_set_announce, .preset = "usable",
	  .help = "capabilities that the device announces: all, or usable (those that its stock provider has functions for)" },
	{ "ports", .is_common = true, DEVICE(num_ports), NUMBER(1, UVD_MAX_PORTS), .preset = "1",
	  .help = "ports of each device" },
	{ "comp-vectors", DEVICE(num_comp_vectors), NUMBER(1, 1024), .preset = "4", .help = "completion vectors" },

	{ "link-layer", .arg = "LAYER", PORT(link_layer), .set = uvd_option_set_link_layer, .choices = link_layers,
	  .preset = "the persona's",
	  .help = "link layer: infiniband or ethernet (RoCE: addressed by GID); give it before lid and pkey" },
	{ "lid", .arg = "LID", PORT(lid), .set = uvd_option_set_nth_number, .min = 1, .max = 0xbfff,
	  .preset = "1; for run one of its own", .help = "LID of the first port; the others follow" },
	{ "sm-lid", .arg = "LID", PORT(sm_lid), .set = uvd_option_set_number, .min = 0, .max = 0xbfff, .preset = "1",
	  .help = "LID of the subnet manager" },
	{ "lmc", PORT(lmc), NUMBER(0, 7), .preset = "0", .help = "LID mask control" },
	{ "gid", .arg = "GID[,GID...]", PORT(gids), .set = uvd_option_set_gids, .preset = "from the GUID",
	  .help = "GID table of the first port; in the others the GIDs count up" },
	{ "gid-table", PORT(gid_tbl_len), NUMBER(1, UVD_MAX_GIDS), .preset = "8", .help = "slots of the GID table" },
	{ "pkey", .arg = "KEY[,KEY...]", PORT(pkeys), .set = uvd_option_set_pkeys, .preset = "0xffff,0x7fff",
	  .help = "partition keys" },
	{ "mtu", .arg = "BYTES", PORT(active_mtu), .set = uvd_option_set_choice, .choices = mtus,
	  .preset = "4096; with --wire what that carries", .help = "active MTU" },
	{ "state", .arg = "STATE", PORT(down), .set = uvd_option_set_choice, .choices = states, .preset = "active",
	  .help = "state of the port: active or down" },

	{ "max-mr-size", .arg = "BYTES", DEVICE(limits.max_mr_size), .set = uvd_option_set_number, .min = 1,
	  .max = INT64_MAX, .preset = "the persona's", .help = "bytes of the largest memory region" },
	{ "max-dm-size", .arg = "BYTES", DEVICE(limits.max_dm_size), .set = uvd_option_set_number, .min = 0,
	  .max = 1 << 30, .preset = "0",
	  .help = "bytes of device memory, for all clients together; stock hfi1 has no verb for it" },
	{ "memlock", .arg = "LIMIT", DEVICE(memlock), .set = uvd_option_set_memlock, .min = 4096,
	  .preset = "unlimited for run, client for uverbsd",
	  .help = "memory that a client may register: client (its RLIMIT_MEMLOCK), unlimited, or bytes" },
	LIMIT("max-qp", max_qp, "queue pairs"),
	LIMIT("max-qp-wr", max_qp_wr, "work requests of a queue"),
	LIMIT("max-sge", max_sge, "scatter/gather entries of a work request"),
	LIMIT("max-cq", max_cq, "completion queues"),
	LIMIT("max-cqe", max_cqe, "entries of a completion queue"),
	LIMIT("max-mr", max_mr, "memory regions"),
	LIMIT("max-mw", max_mw, "memory windows"),
	LIMIT("max-pd", max_pd, "protection domains"),
	LIMIT("max-ah", max_ah, "address handles"),
	LIMIT("max-srq", max_srq, "shared receive queues"),
	LIMIT("max-srq-wr", max_srq_wr, "work requests of a shared receive queue"),
	LIMIT("max-srq-sge", max_srq_sge, "entries of a shared receive queue's work request"),
	LIMIT("max-qp-rd-atom", max_qp_rd_atom, "incoming reads and atomics of a queue pair"),
	LIMIT("max-qp-init-rd-atom", max_qp_init_rd_atom, "outgoing reads and atomics of a queue pair"),
	LIMIT("max-mcast-grp", max_mcast_grp, "multicast groups"),
	LIMIT("max-mcast-qp-attach", max_mcast_qp_attach, "queue pairs of a multicast group"),
	LIMIT("max-xrcd", max_xrcd, "XRC domains"),
	LIMIT("max-counters", max_counters, "counters objects"),
	LIMIT("max-inline-data", max_inline_data, "bytes of inline data"),
};

/* ---- limits of users: one option for each row of the table of accounts ------------------------------------------- */

static struct {
	struct uvd_option_row rows[UVD_NUM_RES + 1];
	unsigned int num;
	char names[UVD_NUM_RES][40], presets[UVD_NUM_RES][80];
} limit_options;

/* Says what holds if the administrator gives no number. */
static void limit_preset(const struct uvd_limit_row *limit, char *text, size_t size)
{
	if (limit->whole.kind == UVD_WHOLE_DESCRIPTORS)
		snprintf(text, size, "%" PRIu64 "; uverbsd: a quarter of its RLIMIT_NOFILE at most", limit->value);
	else if (limit->whole.kind == UVD_WHOLE_MEMORY)
		snprintf(text, size, "%" PRIu64 "; uverbsd: a quarter of the machine's memory at most", limit->value);
	else if (limit->value != UINT64_MAX)
		snprintf(text, size, "%" PRIu64, limit->value);
	else if (limit->whole.kind == UVD_WHOLE_CLIENTS)
		snprintf(text, size, "unlimited");
	else if (limit->whole.option)
		snprintf(text, size, "uverbsd: a quarter of --%s", limit->whole.option);
	else
		snprintf(text, size, "uverbsd: %" PRIu64 " of each device", uvd_limit_share(limit->whole.number));
}

static void make_limit_options(void)
{
	for (unsigned int i = 0; i < UVD_NUM_RES; i++) {
		const struct uvd_limit_row *limit = &uvd_limit_rows[i];

		if (!limit->name)
			continue;
		snprintf(limit_options.names[i], sizeof(limit_options.names[i]), "limit-%s", limit->name);
		limit_preset(limit, limit_options.presets[i], sizeof(limit_options.presets[i]));
		limit_options.rows[limit_options.num++] = (struct uvd_option_row){
			limit_options.names[i],
			.offset = offsetof(struct uvd_options, limits.max) + i * sizeof(uint64_t),
			.size = sizeof(uint64_t),
			.scope = UVD_SCOPE_LIMIT,
			.programs = BOTH,
			NUMBER(0, INT64_MAX),
			.preset = limit_options.presets[i],
			.help = limit->what,
		};
	}
	limit_options.rows[limit_options.num++] = (struct uvd_option_row){
		"limit-root",
		.arg = "yes|no",
		MEMBER(uvd_options, limits.limit_root),
		.scope = UVD_SCOPE_LIMIT,
		.programs = BOTH,
		.set = uvd_option_set_choice,
		.choices = yes_no,
		.preset = "no",
		.help = "whether the limits hold for root, too",
	};
}

const struct uvd_option_row *uvd_option_at(unsigned int i)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (i < UVD_COUNT(option_rows))
		return &option_rows[i];
	pthread_once(&once, make_limit_options);
	i -= UVD_COUNT(option_rows);
	return i < limit_options.num ? &limit_options.rows[i] : NULL;
}

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(*a == '-' && *b == '_'))
			return false;
	return *a == *b;
}

const struct uvd_option_row *uvd_option_find(const char *name, unsigned int program)
{
	const struct uvd_option_row *row;

	for (unsigned int i = 0; (row = uvd_option_at(i)); i++)
		if (row->programs & program && same_name(row->name, name))
			return row;
	return NULL;
}
