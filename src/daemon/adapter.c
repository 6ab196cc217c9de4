/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Adapters with two processes: the broker finds the adapter that a device forwards to, and makes a node of it that only the
 * engine process has. So the node in the host's /dev can be root's alone.
 *
 * The engine process itself opens the node, for each client's context. A descriptor that the broker has opened would not do:
 * the kernel refuses a write() by a process with other credentials than those of the open, and providers ring the doorbell
 * by write(). And the client of --memory=borrow who keeps such a descriptor gets one that was opened without capabilities.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "daemon/internal.h"
#include "util/util.h"

#define ADAPTER_CLASS "/sys/class/infiniband_verbs"
#define ADAPTER_NODES "/dev/infiniband"

/* Reads a line of the file `name` of a node in sysfs. Returns false if it cannot. */
static bool adapter_read(const char *node, const char *name, char *text, int size)
{
	char path[512];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), ADAPTER_CLASS "/%s/%s", node, name);
	f = fopen(path, "re");
	ok = f && fgets(text, size, f);
	if (f)
		fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = 0;
	return ok;
}

/* Is it a device of ib_uverbs now? The overlay over /sys/class shows nodes of uverbsd, too. */
static bool adapter_exists(dev_t rdev)
{
	char link[64], target[512] = "", *class;

	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u/subsystem", major(rdev), minor(rdev));
	if (readlink(link, target, sizeof(target) - 1) <= 0)
		return false;
	class = strrchr(target, '/');
	return class && !strcmp(class, "/infiniband_verbs");
}

static bool adapter_is_node_of(const char *node, const char *hca, struct uvd_adapter *a)
{
	unsigned int major_, minor_;
	char text[64];

	if (strncmp(node, "uverbs", 6) || strlen(node) >= sizeof(a->node) ||
	    !adapter_read(node, "ibdev", text, sizeof(text)) || strcmp(text, hca) ||
	    !adapter_read(node, "dev", text, sizeof(text)) || sscanf(text, "%u:%u", &major_, &minor_) != 2)
		return false;
	a->rdev = makedev(major_, minor_);
	strcpy(a->node, node);
	return true;
}

static int adapter_find(const char *hca, struct uvd_adapter *a)
{
	DIR *dir = opendir(ADAPTER_CLASS);
	bool found = false;
	struct dirent *e;

	while (dir && !found && (e = readdir(dir)))
		found = adapter_is_node_of(e->d_name, hca, a);
	if (dir)
		closedir(dir);
	if (!found)
		return -ENODEV;
	return adapter_exists(a->rdev) ? 0 : -ELOOP;
}

/*
 * Opens the engine process's folder of nodes. The number is still its own: it is a child that the broker, which calls this,
 * has not reaped. A process that has not entered its sandbox has the folder of the host: -EPERM.
 */
static int adapter_folder(pid_t engine)
{
	struct stat host, st;
	char path[64];
	int dir;

	snprintf(path, sizeof(path), "/proc/%d/root" ADAPTER_NODES, (int)engine);
	dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!fstat(dir, &st) && (stat(ADAPTER_NODES, &host) || host.st_dev != st.st_dev))
		return dir;
	close(dir);
	return -EPERM;
}

/* Keeps a node that is right: the engine process takes the unlink of the node for the removal of the adapter. */
static int adapter_make_node(int dir, const struct uvd_adapter *a, uid_t uid, gid_t gid)
{
	struct stat st;

	if (!fstatat(dir, a->node, &st, AT_SYMLINK_NOFOLLOW)) {
		if (S_ISCHR(st.st_mode) && st.st_rdev == a->rdev)
			return 0;
		unlinkat(dir, a->node, 0);
	}
	return mknodat(dir, a->node, S_IFCHR | 0600, a->rdev) || fchownat(dir, a->node, uid, gid, AT_SYMLINK_NOFOLLOW)
		       ? -errno
		       : 0;
}

int uvd_adapters_add(struct uvd_adapters *adapters, pid_t engine, unsigned int index,
		     const struct uvd_device_config *device, const struct uvd_options *options, struct uvd_log *log)
{
	struct uvd_adapter a = {};
	int dir, err = adapter_find(device->hca, &a);

	if (err) {
		uvd_logf(log, UVD_ERR, "%s: --hca %s: %s", device->ibdev, device->hca,
			 err == -ELOOP ? "it is a device of uverbsd, and not an adapter"
				       : "there is no such adapter: `uverbsctl hca list` lists them");
		return err;
	}
	dir = adapter_folder(engine);
	err = dir < 0 ? dir : adapter_make_node(dir, &a, options->engine_uid, options->engine_gid);
	if (dir >= 0)
		close(dir);
	if (err) {
		uvd_logf(log, UVD_ERR,
			 "%s: --hca %s: cannot make the engine process's node of %s: %s; --separate no needs none",
			 device->ibdev, device->hca, a.node, uvd_errno_name(err));
		return err;
	}
	adapters->list[index] = a;
	return 0;
}

void uvd_adapters_check(struct uvd_adapters *adapters, pid_t engine)
{
	for (struct uvd_adapter *a = adapters->list; a < adapters->list + UVD_MAX_DEVICES; a++) {
		int dir;

		if (!a->node[0] || adapter_exists(a->rdev))
			continue;
		dir = adapter_folder(engine);
		if (dir >= 0) {
			unlinkat(dir, a->node, 0);
			close(dir);
		}
		a->node[0] = 0;
	}
}

int uvd_adapter_take_tables(struct uvd_device_config *config, unsigned int port, const struct uvd_device_config *now)
{
	const struct uvd_port_config *from;
	struct uvd_port_config *to;

	if (strcmp(config->backend, "verbs") || strcmp(now->backend, "verbs"))
		return -EINVAL;
	if (!port) {
		config->node_guid = now->node_guid;
		config->sys_image_guid = now->sys_image_guid;
		strcpy(config->fw_ver, now->fw_ver);
		config->num_ports = now->num_ports;
		config->num_comp_vectors = now->num_comp_vectors;
		memcpy(config->ports, now->ports, sizeof(config->ports));
		memcpy(config->gid_attrs, now->gid_attrs, sizeof(config->gid_attrs));
		return 0;
	}
	if (port > config->num_ports || port > now->num_ports)
		return -EINVAL;
	from = &now->ports[port - 1];
	to = &config->ports[port - 1];
	if (from->gid_tbl_len != to->gid_tbl_len || from->link_layer != to->link_layer)
		return -EINVAL;
	*to = *from;
	memcpy(config->gid_attrs[port - 1], now->gid_attrs[port - 1], sizeof(config->gid_attrs[0]));
	return 0;
}
