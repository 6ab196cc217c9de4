/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The daemon in two processes (--separate yes). The broker does what needs privileges and has no client in it: the control
 * socket's path, nodes, the sysfs directory, the overlay. The engine process says when, and by a device's index; what is done
 * comes from the broker's own options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "broker/broker.h"
#include "client/client.h"
#include "control/control.h"
#include "daemon/internal.h"
#include "persona/persona.h"
#include "sysfs/sysfs.h"

enum { MAX_UCAPS = 64 };

struct own_node {
	struct uvd_node node;
	struct uvd_device_config config; /* with the number that the node has */
	bool made, published;
};

struct separate {
	const struct uvd_options *options;
	struct uvd_log *log;
	struct uvd_node_orphans orphans;
	int control;
	struct own_node *nodes; /* by the device's index */
	struct own_node ucaps[MAX_UCAPS];
};

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

static int make_channel(struct separate *s, struct uvd_node *node, unsigned int mode, gid_t group, const char **taken)
{
	int fd, err;

	*taken = uvd_node_taken(node, &s->orphans);
	fd = *taken ? -EEXIST : uvd_channel_make(node, s->log);
	err = fd < 0 ? fd : uvd_node_permit(node, mode, group, s->log);
	if (err && fd >= 0) {
		uvd_node_remove(node);
		close(fd);
	}
	return err ? err : fd;
}

/* A number that the device had before is tried first; one that was asked for is the only one. */
static int make_any(struct separate *s, struct uvd_node *node, int asked, int last)
{
	const char *taken;
	int fd;

	for (int n = last >= 0 ? last : asked < 0 ? 0 : asked; n < 1024; n = last >= 0 && asked < 0 ? 0 : n + 1, last = -1) {
		uvd_node_name(node, n);
		fd = make_channel(s, node, s->options->mode, s->options->group, &taken);
		if (fd != -EEXIST)
			return fd;
		if (!taken)
			taken = "something else has taken that name in this moment";
		if (asked >= 0) {
			uvd_logf(s->log, UVD_ERR, "%s: %s; choose another number, or none", node->path, taken);
			return fd;
		}
		uvd_logf(s->log, UVD_DEBUG, "%s: %s; trying the next number", node->path, taken);
	}
	uvd_logf(s->log, UVD_ERR, "no number below 1024 is free for a node");
	return -EEXIST;
}

static int op_node(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	struct separate *s = arg;
	struct own_node *n;
	int ret;

	if (index >= s->options->num_devices)
		return -EINVAL;
	n = &s->nodes[index];
	if (n->made)
		return -EEXIST;
	ret = make_any(s, &n->node, s->options->devices[index].number, n->config.number);
	if (ret < 0)
		return ret;
	*fd = ret;
	n->made = true;
	n->config = s->options->devices[index];
	n->config.number = *number = n->node.number;
	*rdev = n->node.rdev;
	return 0;
}

static int op_publish(void *arg, unsigned int index)
{
	struct separate *s = arg;
	struct own_node *n;
	int err;

	if (index >= s->options->num_devices || !s->nodes[index].made || s->nodes[index].published)
		return -EINVAL;
	n = &s->nodes[index];
	err = uvd_sysfs_add(s->options->sysfs, &n->config, uvd_persona_find(n->config.persona), n->node.rdev, s->log);
	n->published = !err;
	return err;
}

static void withdraw(struct separate *s, struct own_node *n)
{
	if (n->published)
		uvd_sysfs_remove(s->options->sysfs, &n->config);
	n->published = false;
}

static int op_withdraw(void *arg, unsigned int index)
{
	struct separate *s = arg;
	struct own_node *n;

	if (index >= s->options->num_devices || !s->nodes[index].made)
		return -EINVAL;
	n = &s->nodes[index];
	withdraw(s, n);
	uvd_node_hide(&n->node);
	n->made = false;
	if (s->options->overlay)
		uvd_sysfs_overlay(s->options->sysfs, s->log);
	return 0;
}

static int op_port(void *arg, unsigned int index, unsigned int port, bool up)
{
	struct separate *s = arg;

	if (index >= s->options->num_devices || !s->nodes[index].published || port > s->nodes[index].config.num_ports)
		return -EINVAL;
	return uvd_sysfs_set_port(s->options->sysfs, &s->nodes[index].config, port, up);
}

/* ---- User Capabilities ------------------------------------------------------------------------------------------------ */

static struct own_node *find_ucap(struct separate *s, const char *name)
{
	for (struct own_node *u = s->ucaps; u < s->ucaps + MAX_UCAPS; u++)
		if (u->made && !strcmp(u->config.ibdev, name))
			return u;
	return NULL;
}

static struct own_node *free_ucap(struct separate *s)
{
	for (struct own_node *u = s->ucaps; u < s->ucaps + MAX_UCAPS; u++)
		if (!u->made)
			return u;
	return NULL;
}

/* Only those that the options name. */
static bool is_configured(const struct uvd_options *o, const char *name)
{
	for (unsigned int i = 0; i < o->num_devices; i++)
		if (uvd_ucap_named(&o->devices[i].ucaps, name))
			return true;
	return false;
}

static int op_ucap(void *arg, const char *name, dev_t *rdev, int *fd)
{
	struct separate *s = arg;
	struct own_node *u = free_ucap(s);
	const char *taken;
	int ret;

	if (!uvd_ucap_name_ok(name) || !is_configured(s->options, name) || find_ucap(s, name) || !u)
		return -EINVAL;
	uvd_node_name_ucap(&u->node, name);
	ret = make_channel(s, &u->node, 0600, 0, &taken);
	if (ret == -EEXIST)
		uvd_logf(s->log, UVD_ERR, "%s: %s", u->node.path,
			 taken ? taken : "something else has taken that name in this moment");
	if (ret < 0)
		return ret;
	*fd = ret;
	ret = uvd_sysfs_add_ucap(s->options->sysfs, name, u->node.rdev, s->log);
	if (ret) {
		close(*fd);
		*fd = -1;
		return ret;
	}
	snprintf(u->config.ibdev, sizeof(u->config.ibdev), "%s", name);
	u->made = true;
	*rdev = u->node.rdev;
	return 0;
}

static int op_ucap_gone(void *arg, const char *name)
{
	struct separate *s = arg;
	struct own_node *u = find_ucap(s, name);

	if (!u)
		return -EINVAL;
	uvd_sysfs_remove_ucap(s->options->sysfs, name);
	uvd_node_remove(&u->node);
	u->made = false;
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

static int op_ready(void *arg)
{
	struct separate *s = arg;

	return s->options->overlay ? uvd_sysfs_overlay(s->options->sysfs, s->log) : 0;
}

static void op_leave(void *arg)
{
	struct separate *s = arg;

	if (s->options->overlay)
		uvd_sysfs_overlay_undo(s->options->sysfs);
	for (unsigned int i = 0; i < s->options->num_devices; i++)
		withdraw(s, &s->nodes[i]);
}

static const struct uvd_broker_ops broker_ops = {
	.node = op_node,
	.publish = op_publish,
	.withdraw = op_withdraw,
	.port = op_port,
	.ucap = op_ucap,
	.ucap_gone = op_ucap_gone,
	.ready = op_ready,
	.leave = op_leave,
};

static void abort_orphan(void *arg, const char *name, dev_t rdev)
{
	struct separate *s = arg;

	uvd_node_abort(&s->orphans, name, rdev, s->log);
}

static int engine_main(void *arg, int sock)
{
	struct separate *s = arg;
	struct uvd_link *link = uvd_link_new(sock);
	int status;

	uvd_client_prepare();
	if (!link || uvd_engine_sandbox(s->options->engine_uid, s->options->engine_gid, s->log))
		return 1;
	status = uvd_daemon_serve(s->options, link, s->control);
	uvd_link_free(link);
	return status;
}

/* The engine process has ended, or cannot. Its clients go on with an error, and nothing is left behind. */
static void clean_up(struct separate *s)
{
	op_leave(s);
	for (unsigned int i = 0; i < s->options->num_devices; i++) {
		struct own_node *n = &s->nodes[i];

		if (!n->made)
			continue;
		uvd_node_abort(&s->orphans, n->node.name + strlen("infiniband/"), n->node.rdev, s->log);
		uvd_node_remove(&n->node);
	}
	for (struct own_node *u = s->ucaps; u < s->ucaps + MAX_UCAPS; u++)
		if (u->made)
			op_ucap_gone(s, u->config.ibdev);
	uvd_sysfs_destroy(s->options->sysfs);
}

static int start_broker(struct separate *s, bool *is_engine)
{
	const struct uvd_broker_config config = { .ops = &broker_ops, .arg = s, .log = s->log,
						  .root_clients = s->options->root_clients };
	int status = 1;

	for (unsigned int i = 0; i < s->options->num_devices; i++)
		s->nodes[i].config.number = -1;
	uvd_sysfs_each_orphan(s->options->sysfs, abort_orphan, s);
	if (uvd_sysfs_create(s->options->sysfs, s->log))
		return 1;
	*is_engine = uvd_broker_run(&config, engine_main, &status) < 0;
	if (!*is_engine)
		clean_up(s);
	return status;
}

int uvd_daemon_separate(const struct uvd_options *options)
{
	struct separate s = { .options = options, .log = uvd_log_new(STDERR_FILENO, "uverbsd", options->log_level), .control = -1 };
	bool is_engine = false;
	int status = 1;

	s.nodes = calloc(options->num_devices, sizeof(*s.nodes));
	uvd_daemon_raise_nofile();
	if (s.nodes && uvd_daemon_paths_are_ours(options, s.log))
		s.control = uvd_control_listen(options->control, s.log);
	if (s.control >= 0) {
		status = start_broker(&s, &is_engine);
		if (!is_engine) {
			close(s.control);
			unlink(options->control);
		}
	}
	free(s.nodes);
	uvd_log_free(s.log);
	return status;
}
