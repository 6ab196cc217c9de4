/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Finds the users that pay for a caller: those that the kernel's ucounts would charge (kernel/ucount.c, inc_ucount()).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "account/account.h"
#include "broker/broker.h"
#include "client/client.h"
#include "client/internal.h"

/* An engine process has no /proc, so the broker answers. */
static int users_from_broker(struct uvd_caller *c, uid_t *uids, unsigned int max)
{
	int fd = uvd_proc_open(c, uvd_proc_tid(c), "owners", O_RDONLY);

	return fd < 0 ? fd : uvd_owners_unpack(fd, uids, max);
}

static int users_above(struct uvd_caller *c, uid_t *uids, unsigned int max)
{
	int ns;

	if (c->proc && c->proc->tells_owners)
		return users_from_broker(c, uids, max);
	/* Use the thread's id: each thread may have its own user namespace. */
	ns = uvd_proc_open(c, uvd_proc_tid(c), "ns/user", O_RDONLY);
	return ns < 0 ? ns : uvd_ns_owners(ns, uids, max);
}

int uvd_caller_users(struct uvd_caller *c, uid_t *uids, unsigned int max)
{
	struct uvd_identity id;
	int ret;

	if (!max)
		return -ENOSPC;
	/* The caller is outside of our pid namespace, so nothing can be learned about it. */
	if (!uvd_proc_tid(c))
		return -EACCES;
	ret = uvd_caller_identity(c, &id);
	if (ret)
		return ret;
	uids[0] = id.uid;
	ret = users_above(c, uids + 1, max - 1);
	return ret < 0 ? ret : ret + 1;
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
