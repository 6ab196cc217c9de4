/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibverbs asks for devices by a netlink socket first, and reads sysfs only if there is none. Opening the socket loads ib_core,
 * which then answers that there are no devices. --netlink-alias has modprobe refuse that on machines without an adapter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "daemon/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

enum { CHECK_EACH = 10 };

bool uvd_netlink_has_adapter(char *what, size_t size)
{
	struct utsname kernel;
	char modules[sizeof(kernel.release) + 32];

	uname(&kernel);
	snprintf(modules, sizeof(modules), "/lib/modules/%s", kernel.release);
	return uvd_sysfs_has_adapter("/sys", modules, what, size);
}

/* The kernel answers on the socket if ib_core is loaded or built in. */
static bool netlink_is_answered(void)
{
	return !access("/sys/module/ib_core", F_OK);
}

static void netlink_remove_alias(const struct uvd_netlink *n)
{
	if (n->path && n->path[0])
		unlink(n->path);
}

static void netlink_say_answered(struct uvd_netlink *n, struct uvd_log *log)
{
	n->answered = true;
	uvd_logf(
		log, n->adapter ? UVD_INFO : UVD_WARN,
		"the kernel's ib_core is loaded: libibverbs takes its list of devices, which has none of uverbsd; start programs with "
		"`uverbsctl exec -- PROGRAM`%s",
		n->adapter ? "" : ", or unload it (modprobe -r ib_uverbs ib_core) and start uverbsd again");
}

int uvd_netlink_begin(struct uvd_netlink *n, const struct uvd_options *options, struct uvd_log *log)
{
	char what[128];
	int err = 0;

	*n = (struct uvd_netlink){ .path = options->netlink_alias };
	n->class = open("/sys/class", O_PATH | O_DIRECTORY | O_CLOEXEC);
	n->devices = uvd_sysfs_kernel_devices("/sys/class", what, sizeof(what));
	n->adapter = uvd_netlink_has_adapter(what, sizeof(what));
	if (netlink_is_answered())
		netlink_say_answered(n, log);
	if (!n->path[0])
		return 0;
	if (n->adapter) {
		netlink_remove_alias(n); /* a process that was killed may have left it */
		uvd_logf(log, UVD_INFO, "--netlink-alias %s: not written, because there is an adapter (%s)", n->path,
			 what);
		return 0;
	}
	err = uvd_dir_replace(AT_FDCWD, n->path, uvd_netlink_alias);
	if (err)
		uvd_logf(log, UVD_ERR, "--netlink-alias %s: %s", n->path, uvd_errno_name(err));
	return err;
}

bool uvd_netlink_check(struct uvd_netlink *n, struct uvd_log *log)
{
	char what[128] = "", class[32];
	unsigned long devices;

	if (n->checks++ % CHECK_EACH || !netlink_is_answered())
		return false;
	if (!n->answered)
		netlink_say_answered(n, log);
	snprintf(class, sizeof(class), "/proc/self/fd/%d", n->class);
	devices = uvd_sysfs_kernel_devices(class, what, sizeof(what));
	if (devices == n->devices)
		return false;
	n->devices = devices;
	if (devices && !n->adapter) {
		n->adapter = true;
		netlink_remove_alias(n);
		uvd_logf(log, UVD_INFO, "there is an adapter now (%s)%s%s", what, n->path[0] ? ": removed " : "",
			 n->path);
	}
	return true;
}

void uvd_netlink_end(struct uvd_netlink *n)
{
	netlink_remove_alias(n);
	if (n->path && n->class >= 0)
		close(n->class);
	n->path = NULL;
}
