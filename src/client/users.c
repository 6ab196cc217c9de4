/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The users who pay for a caller: those whom the kernel's ucounts charge (kernel/ucount.c, inc_ucount()). */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account/account.h"
#include "client/client.h"
#include "client/internal.h"

/* Is this our own user namespace? The walk ends there: owners above it are owners of ours, too. */
static bool users_ns_is_ours(const struct stat *ours, int ns)
{
	struct stat st;

	return !fstat(ns, &st) && st.st_dev == ours->st_dev && st.st_ino == ours->st_ino;
}

/* Adds the owners of ns and of the namespaces above it to uids, of which there are num. Closes ns. */
static int users_above(int ns, uid_t *uids, unsigned int num, unsigned int max)
{
	struct stat ours;
	int ret = stat("/proc/self/ns/user", &ours) ? -errno : 0, parent;

	while (!ret && !users_ns_is_ours(&ours, ns)) {
		if (num == max)
			ret = -ENOSPC;
		else if (ioctl(ns, NS_GET_OWNER_UID, &uids[num]))
			ret = -errno;
		if (ret)
			break;
		num++;
		parent = ioctl(ns, NS_GET_PARENT);
		/* EPERM: what is above is none of our own namespaces, as where we are in a container and the client is not. */
		if (parent < 0) {
			ret = errno == EPERM ? 0 : -errno;
			break;
		}
		close(ns);
		ns = parent;
	}
	close(ns);
	return ret ? ret : (int)num;
}

int uvd_caller_users(struct uvd_caller *c, uid_t *uids, unsigned int max)
{
	struct uvd_identity id;
	int ns, ret;

	if (!max)
		return -ENOSPC;
	/* Outside of our pid namespace: nothing can be known of it. */
	if (!uvd_proc_tid(c))
		return -EACCES;
	ret = uvd_caller_identity(c, &id);
	if (ret)
		return ret;
	uids[0] = id.uid;
	/* By the thread: each may have a namespace of its own. */
	ns = uvd_proc_open(c, uvd_proc_tid(c), "ns/user", O_RDONLY);
	return ns < 0 ? ns : users_above(ns, uids, 1, max);
}

struct uvd_account *uvd_caller_account(struct uvd_caller *c, struct uvd_accounts *accounts, int *err)
{
	struct uvd_account *account;
	uid_t uids[UVD_MAX_PAYERS];
	int num;

	*err = 0;
	if (!accounts)
		return NULL;
	num = uvd_caller_users(c, uids, UVD_MAX_PAYERS);
	if (num < 0) {
		*err = num;
		return NULL;
	}
	account = uvd_account_get(accounts, uids, num);
	if (!account)
		*err = -ENOMEM;
	return account;
}
