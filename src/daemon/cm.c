/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The connection manager's node, /dev/infiniband/rdma_cm: one for all devices of the daemon. */
#include <errno.h>
#include "cm/cm.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "util/util.h"

static void cm_node_lost(void *arg)
{
	struct uvd_daemon *d = arg;

	d->cm.lost = true;
}

static int cm_node_serve(struct uvd_daemon *d)
{
	struct uvd_cuse_config config = {
		.kind = &uvd_cuse_cm_nodes,
		.workers = d->options->workers,
		.privilege = d->privilege,
		.clients = d->machine->clients,
		.grants = d->grants,
		.log = d->log,
		.lost = cm_node_lost,
		.arg = d,
	};
	int err = 0;

	config.cm = d->cm.cm = uvd_cm_new(&d->engine, &err);
	if (!d->cm.cm)
		return err;
	d->cm.cuse = uvd_cuse_new(&config, &err);
	if (!d->cm.cuse)
		return err;
	err = uvd_cuse_start(d->cm.cuse, &d->engine, NULL);
	return err ? err : d->machine->add_cm(d, uvd_cuse_rdev(d->cm.cuse));
}

void uvd_daemon_cm_start(struct uvd_daemon *d)
{
	int err = cm_node_serve(d);

	if (!err)
		return;
	if (err != -EEXIST) /* else there is a line of it, with the remedy */
		uvd_logf(d->log, UVD_WARN,
			 "/dev/infiniband/rdma_cm is not served: %s; programs that use librdmacm find no device",
			 uvd_errno_name(err));
	uvd_daemon_cm_stop(d);
}

bool uvd_daemon_cm_stop(struct uvd_daemon *d)
{
	if (d->cm.cuse) {
		d->machine->remove_cm(d);
		if (!uvd_cuse_stop(d->cm.cuse))
			return false;
		uvd_cuse_free(d->cm.cuse);
	}
	d->cm.cuse = NULL;
	uvd_cm_free(d->cm.cm);
	d->cm.cm = NULL;
	return true;
}

void uvd_daemon_cm_tick(struct uvd_daemon *d)
{
	if (!d->cm.cuse)
		return;
	uvd_cuse_tick(d->cm.cuse);
	/* The kernel has ended its calls and its files. The identifiers go with the files: they have ports. */
	if (!d->cm.lost)
		return;
	uvd_log_limited(d->log, UVD_WARN, "%s was aborted from outside; it is gone until uverbsd is started again",
			uvd_cuse_path(d->cm.cuse));
	uvd_daemon_cm_stop(d);
}
