/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sets an engine process up before its first process tree, and ends it after the last one: devices, the sysfs directory, outputs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/soft/fabric.h"
#include "capture/capture.h"
#include "cpu/cpu.h"
#include "objects/objects.h"
#include "options/options.h"
#include "run/host.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void host_settle(struct uvd_engine *core)
{
	uvd_run_settle(container_of(core, struct uvd_run_engine, core));
}

static int host_publish_port(struct uvd_device *dev, unsigned int port, bool up)
{
	struct uvd_run_engine *e = container_of(dev->engine, struct uvd_run_engine, core);
	char sys[PATH_MAX + 8];

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	return uvd_sysfs_set_port(sys, &dev->config, port, up);
}

static int host_publish_tables(struct uvd_device *dev, unsigned int port)
{
	struct uvd_run_engine *e = container_of(dev->engine, struct uvd_run_engine, core);
	char sys[PATH_MAX + 8];
	int err;

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	err = uvd_sysfs_set_tables(sys, &dev->config, port);
	/* The device is not published yet: then it will be as it is now; or no more. */
	return err == -ENOENT ? 0 : err;
}

/* Half the CPUs, as clients poll on the other half. With two threads on two CPUs, ib_write_bw -q 4 lost a tenth. */
static unsigned int num_threads(void)
{
	enum { MOST = 8 };
	long half = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	return half < 1 ? 1 : half > MOST ? MOST : half;
}

/* Devices of other backends send nothing that can be captured. A device of `soft` can still be added later. */
static void host_check_capture(const struct uvd_run_host *h)
{
	const struct uvd_run_options *o = h->l->options;

	for (unsigned int i = 0; i < o->num_devices; i++)
		if (!strcmp(o->devices[i].backend, uvd_plugin_soft.name))
			return;
	if (o->pcap)
		uvd_logf(h->e.log, UVD_WARN, "--pcap %s: it stays empty: no device has --backend soft", o->pcap);
}

/* Sets the plug-in `soft` up, before it has devices. Returns 0 or a negative errno, after a message. */
static int host_setup_soft(struct uvd_run_host *h)
{
	struct uvd_module *soft;
	int err = uvd_run_capture(&h->outputs, &h->e, h->l->options->pcap);

	if (err)
		return err;
	host_check_capture(h);
	soft = uvd_plugins_get(h->e.core.plugins, uvd_plugin_soft.name);
	uvd_fabric_set_threads(soft->data, num_threads());
	/* If two runs that are not joined try to connect, each finds no such QP, instead of one of its own. */
	uvd_fabric_set_random_qpn(soft->data);
	uvd_fabric_set_capture(soft->data, h->outputs.capture);
	uvd_module_put(soft);
	return 0;
}

int uvd_run_host_setup(struct uvd_run_host *h)
{
	const bool lends = !uvd_cpu_lacks(uvd_cpu, UVD_CPU_LOANS);
	struct uvd_run_engine *e = &h->e;
	char sys[PATH_MAX + 8];
	int err;

	e->log = uvd_log_new(STDERR_FILENO, "uverbsctl run", h->l->options->log_level);
	err = uvd_run_root_open(e, h->l->root);
	if (!e->log || err)
		return err ? err : -ENOMEM;
	uvd_crash_start("uverbsctl run", uvd_dispatch_site);
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_run_devices_init(e);
	e->privilege = uvd_local_new(NULL, e->log);
	e->grants = e->privilege ? uvd_grants_new(lends, e->privilege, e->log) : NULL;
	if (!e->grants)
		return -ENOMEM;
	err = uvd_run_files_init(&e->files) ?: uvd_engine_init(&e->core, uvd_object_plugins, &h->l->options->limits, e->log) ?:
	      uvd_sysfs_create(sys, e->log) ?: uvd_run_cm_init(e);
	e->core.lends = lends;
	e->core.explain = h->l->options->parsed->explain;
	if (!err && !uvd_options_load_plugins(h->l->options->parsed, e->core.plugins, e->log))
		return -ENOENT;
	err = err ?: host_setup_soft(h);
	if (!err && (uvd_fleet_wire_start(&e->fleet.wire, &h->l->options->parsed->wire, e->log) ||
		     uvd_fleet_wire_give(&e->fleet.wire, e->core.plugins, e->log)))
		return -EADDRNOTAVAIL;
	uvd_run_ucaps_init(e);
	e->core.replug = uvd_fleet_replug;
	e->core.publish_tables = host_publish_tables;
	e->core.take_facts = uvd_object_take_facts;
	err = err ?: uvd_options_give_texts(h->l->options->parsed, &e->core) ?: uvd_run_devices_add(e, h->l->options);
	err = err ?: uvd_run_record(&h->outputs, e, h->l->options->trace);
	err = err ?: uvd_run_report_begin(&h->outputs, e, h->l->options);
	e->core.settle = host_settle;
	e->core.publish_port = host_publish_port;
	if (err)
		uvd_logf(e->log, UVD_ERR, "cannot set the device up: %s", uvd_errno_name(err));
	else
		h->control = uvd_run_control_new(e);
	return err;
}

static void host_finish_report(struct uvd_run_host *h)
{
	const struct uvd_run_options *o = h->l->options;

	if (h->e.report && uvd_run_report_finish(&h->outputs, &h->e, o->report_format) && o->report_fails && !h->status)
		h->status = UVD_RUN_FINDINGS;
}

void uvd_run_host_teardown(struct uvd_run_host *h)
{
	struct uvd_run_engine *e = &h->e;
	char sys[PATH_MAX + 8];

	uvd_run_control_free(h->control);
	/* A thread that still waits in a client's memory may use all this later: leak it, as the process exits next. */
	if (!h->left && uvd_grants_drain(e->grants, 3000) && uvd_run_files_settle(&e->files, 3000)) {
		uvd_grants_free(e->grants);
		uvd_local_free(e->privilege);
		uvd_run_files_fini(&e->files);
		uvd_run_cm_fini(e);
		uvd_run_record_end(&h->outputs);
		host_finish_report(h);
		uvd_run_devices_fini(e);
		uvd_engine_fini(&e->core);
		uvd_run_capture_end(&h->outputs);
		uvd_capture_free(h->outputs.capture);
	} else {
		uvd_run_record_end(&h->outputs);
		host_finish_report(h);
		uvd_run_capture_end(&h->outputs);
	}
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_sysfs_destroy(sys);
	uvd_run_root_close(e);
	uvd_dir_remove(AT_FDCWD, e->root);
	uvd_log_free(e->log);
}
