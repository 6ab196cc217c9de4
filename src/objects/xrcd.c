/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains. All clients of a device that open a domain with a descriptor of the same file share that domain. The
 * kernel keeps a reference to the inode. The engine keeps an O_PATH fd of it, so that (st_dev, st_ino) cannot name
 * another file.
 */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>
#include "objects/xrc.h"
#include "util/util.h"

enum { PRIVATE = 0xffffffff /* as an fd: opens a new private domain */ };

struct xrcd_args {
	struct uvd_uobject *uobj;
	uint32_t fd, oflags;
	struct uvd_refusal why; /* if the user's share of the shared domains refused it */
};

static int xrcd_decode_open(struct uvd_req *req)
{
	struct xrcd_args *args = uvd_args(req, struct xrcd_args);
	struct ib_uverbs_open_xrcd cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->fd = cmd.fd;
	args->oflags = cmd.oflags;
	return 0;
}

/* ---- the device's list of domains: callers hold xrcd_lock -------------------------------------------------------- */

static struct uvd_xrcd_domain *xrcd_find_domain(struct uvd_device *dev, const struct stat *st)
{
	struct uvd_xrcd_domain *domain = dev->xrcds;

	while (domain && (domain->st_dev != st->st_dev || domain->st_ino != st->st_ino))
		domain = domain->next;
	return domain;
}

static int alloc_domain(struct uvd_device *dev, struct uvd_account *account, struct uvd_udata *udata,
			struct uvd_xrcd_domain **out)
{
	struct uvd_xrcd_domain *domain = uvd_zalloc(sizeof(*domain));
	struct uvd_xrcd *xrcd = uvd_zalloc(dev->ib.ops->size_xrcd);
	int ret = -ENOMEM;

	if (!domain || !xrcd)
		goto free;
	xrcd->dev = &dev->ib;
	xrcd->owner = domain;
	xrcd->account = account;
	domain->xrcd = xrcd;
	domain->path = -1;
	ret = dev->ib.ops->alloc_xrcd(xrcd, udata);
	if (ret)
		goto free;
	domain->account = uvd_account_ref(account);
	pthread_mutex_init(&domain->lock, NULL);
	pthread_mutex_init(&domain->allow_lock, NULL);
	*out = domain;
	return 0;
free:
	free(xrcd);
	free(domain);
	return ret;
}

/* payer: the account of the last handle, which then pays no more; NULL: there is none. */
static int dealloc_domain(struct uvd_device *dev, struct uvd_xrcd_domain *domain, const struct uvd_account *payer)
{
	int ret = dev->ib.ops->dealloc_xrcd(domain->xrcd);

	if (ret)
		return ret;
	if (domain->path >= 0) {
		uvd_payers_drop(&domain->payers, payer, UVD_RES_NAMED_XRCDS);
		close(domain->path);
		uvd_account_uncharge(domain->account, UVD_RES_DESCRIPTORS, 1);
	}
	uvd_account_put(domain->account);
	pthread_mutex_destroy(&domain->lock);
	pthread_mutex_destroy(&domain->allow_lock);
	free(domain->xrcd);
	free(domain);
	return 0;
}

/* Charges the domain's fd to the account that creates the domain; accounts that open it later pay nothing for it. */
static int charge_path(const struct uvd_xrcd_domain *domain)
{
	return uvd_account_charge(domain->account, UVD_RES_DESCRIPTORS, 1);
}

/* Adds a domain to the device's list. Takes ownership of the fd. */
static void share_domain(struct uvd_device *dev, struct uvd_xrcd_domain *domain, int path, const struct stat *st)
{
	domain->path = path;
	domain->st_dev = st->st_dev;
	domain->st_ino = st->st_ino;
	domain->next = dev->xrcds;
	dev->xrcds = domain;
	dev->num_xrcds++;
}

static void unshare_domain(struct uvd_device *dev, struct uvd_xrcd_domain *domain)
{
	struct uvd_xrcd_domain **p = &dev->xrcds;

	while (*p != domain)
		p = &(*p)->next;
	*p = domain->next;
	dev->num_xrcds--;
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

/*
 * Sets *domain to the domain of the client's file, or to NULL if there is none yet, or if path is -1 (no file). Checks
 * oflags (xrcd-01). Caller holds xrcd_lock.
 */
static int look_up_domain(struct uvd_req *req, int path, const struct stat *st, struct uvd_xrcd_domain **domain)
{
	const struct xrcd_args *args = uvd_args(req, struct xrcd_args);

	*domain = path >= 0 ? xrcd_find_domain(req->dev, st) : NULL;
	if (path >= 0 && !*domain && !(args->oflags & O_CREAT))
		return uvd_bad(req, -EAGAIN, "fd", args->fd);
	if (*domain && args->oflags & O_EXCL)
		return uvd_bad(req, -EINVAL, "oflags", args->oflags);
	return 0;
}

/* Allocates a domain that is not in the device's list yet. shared: the caller adds it, and the domain's fd is charged. */
static int make_domain(struct uvd_req *req, bool shared, struct uvd_xrcd_domain **domain)
{
	int ret;

	if (shared && req->dev->num_xrcds >= UVD_WHOLE_NAMED_XRCDS)
		return uvd_bad(req, -ENOMEM, "fd", uvd_args(req, struct xrcd_args)->fd);
	ret = alloc_domain(req->dev, req->file->account, uvd_req_udata(req), domain);
	if (ret || !shared)
		return ret;
	ret = charge_path(*domain);
	if (ret)
		dealloc_domain(req->dev, *domain, NULL);
	return ret;
}

/*
 * Opens the domain of the client's file, or a new private one if *path is -1. If a domain takes ownership of the fd,
 * sets *path to -1. Caller holds xrcd_lock.
 */
static int open_domain(struct uvd_req *req, int *path, const struct stat *st)
{
	struct xrcd_args *args = uvd_args(req, struct xrcd_args);
	const bool shared = *path >= 0;
	struct uvd_xrcd_domain *domain;
	struct uvd_xrcd_handle *handle;
	int ret = look_up_domain(req, *path, st, &domain);
	const bool is_new = !domain;

	if (ret)
		return ret;
	handle = uvd_zalloc(sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	ret = is_new ? make_domain(req, shared, &domain) : 0;
	if (ret)
		goto free_handle;
	ret = shared ? uvd_payers_add(&domain->payers, req->file->account, UVD_RES_NAMED_XRCDS, &args->why) : 0;
	if (ret)
		goto free_domain;
	if (is_new && shared) {
		share_domain(req->dev, domain, uvd_fd_raise(*path), st);
		*path = -1;
	}
	if (shared)
		atomic_fetch_add(&domain->xrcd->usecnt, 1);
	handle->xrcd = domain->xrcd;
	uvd_uobject_set_object(args->uobj, handle);
	return 0;
free_domain:
	if (is_new) {
		uvd_account_uncharge(domain->account, UVD_RES_DESCRIPTORS, 1);
		dealloc_domain(req->dev, domain, NULL);
	}
free_handle:
	free(handle);
	return ret;
}

/* Caller must not hold xrcd_lock: at a limit uvd_req_new() waits for files that are being closed, which take it. */
static int begin_xrcd(struct uvd_req *req)
{
	struct xrcd_args *args = uvd_args(req, struct xrcd_args);
	int ret = uvd_req_new(req, UVERBS_OBJECT_XRCD, &args->uobj);

	/* Charge each handle of a domain as if it were the only one, since any of them may be the last to close. */
	return ret ? ret
		   : uvd_uobject_charge(args->uobj, sizeof(struct uvd_xrcd_handle) + sizeof(struct uvd_xrcd_domain));
}

/* Takes xrcd_lock for open_domain(), and after a refusal by a share once more: files that are closed already may count. */
static int open_domain_in_turn(struct uvd_req *req, int *path, const struct stat *st)
{
	const struct uvd_asker asker = { req->caller, req->name, false };
	struct xrcd_args *args = uvd_args(req, struct xrcd_args);
	struct uvd_engine *engine = req->dev->engine;
	int ret;

	for (bool again = engine->settle;; again = false) {
		args->why.more = 0;
		uvd_lock(&req->dev->xrcd_lock);
		ret = open_domain(req, path, st); /* another thread may have changed the list meanwhile */
		uvd_unlock(&req->dev->xrcd_lock);
		if (!args->why.more)
			return ret;
		if (!again)
			break;
		engine->settle(engine);
	}
	uvd_file_over_quota(req->file, &asker, &args->why);
	return ret;
}

static int open_xrcd(struct uvd_req *req)
{
	struct xrcd_args *args = uvd_args(req, struct xrcd_args);
	struct uvd_xrcd_domain *domain;
	struct stat st;
	int path = -1, ret;

	if (args->fd != PRIVATE) {
		path = uvd_caller_hold(req->caller, args->fd > INT_MAX ? -1 : (int)args->fd, &st);
		if (path < 0)
			return uvd_bad(req, path, "fd", args->fd);
	}
	uvd_lock(&req->dev->xrcd_lock);
	ret = look_up_domain(req, path, &st, &domain);
	uvd_unlock(&req->dev->xrcd_lock);
	if (!ret)
		ret = begin_xrcd(req);
	/* A client that blocks a read must not hold up the others at xrcd_lock. */
	if (!ret && !uvd_req_fetch_udata(req))
		ret = -ENOMEM;
	if (!ret)
		ret = open_domain_in_turn(req, &path, &st);
	if (path >= 0)
		close(path);
	return ret;
}

static int xrcd_answer_open(struct uvd_req *req)
{
	struct ib_uverbs_open_xrcd_resp resp = { .xrcd_handle = uvd_args(req, struct xrcd_args)->uobj->id };

	return uvd_core_out(req, &resp);
}

static int close_xrcd(struct uvd_req *req)
{
	struct ib_uverbs_close_xrcd cmd;
	int ret = uvd_core_in(req, &cmd);

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_XRCD, cmd.xrcd_handle, NULL);
}

/*
 * Drops one handle of the domain, which this account opened; the last one deallocates it. On error nothing has changed.
 * Caller holds xrcd_lock.
 */
static int close_domain(struct uvd_device *dev, struct uvd_xrcd_domain *domain, const struct uvd_account *payer)
{
	struct uvd_xrcd *xrcd = domain->xrcd;
	int path = domain->path, ret;

	if (path >= 0 && atomic_fetch_sub(&xrcd->usecnt, 1) != 1) {
		uvd_payers_drop(&domain->payers, payer, UVD_RES_NAMED_XRCDS);
		return 0;
	}
	/* A private domain is busy while it has a target QP that the backend refused to destroy. */
	if (atomic_load(&xrcd->usecnt))
		return -EBUSY;
	if (path >= 0)
		unshare_domain(dev, domain);
	ret = dealloc_domain(dev, domain, payer);
	if (ret && path >= 0) {
		share_domain(dev, domain, path, &(struct stat){ .st_dev = domain->st_dev, .st_ino = domain->st_ino });
		atomic_fetch_add(&xrcd->usecnt, 1);
	}
	return ret;
}

static int xrcd_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_xrcd_handle *handle = uobj->object;
	struct uvd_device *dev = uobj->file->dev;
	int ret;

	if (atomic_load(&handle->users))
		return -EBUSY;
	uvd_lock(&dev->xrcd_lock);
	ret = close_domain(dev, handle->xrcd->owner, uobj->file->account);
	uvd_unlock(&dev->xrcd_lock);
	return ret ? ret : uvd_object_free(uobj);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step open_steps[] = { xrcd_decode_open, open_xrcd, xrcd_answer_open, NULL };
static const uvd_step close_steps[] = { close_xrcd, NULL };

static const struct uvd_write_row xrcd_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_OPEN_XRCD, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_open_xrcd),
		  sizeof(struct ib_uverbs_open_xrcd_resp), open_steps, UVD_OP(alloc_xrcd)),
	UVD_WRITE(IB_USER_VERBS_CMD_CLOSE_XRCD, 0, sizeof(struct ib_uverbs_close_xrcd), 0, close_steps,
		  UVD_OP(alloc_xrcd)),
	UVD_WRITE(IB_USER_VERBS_CMD_OPEN_QP, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_open_qp),
		  sizeof(struct ib_uverbs_create_qp_resp), uvd_open_qp_steps, UVD_OP(alloc_xrcd)),
};

static const struct uvd_attr_row xrcd_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_XRCD_HANDLE, UVERBS_OBJECT_XRCD, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row xrcd_methods[] = {
	UVD_METHOD(UVERBS_METHOD_XRCD_DESTROY, xrcd_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_xrcd = {
	.name = "UVERBS_OBJECT_XRCD",
	.id = UVERBS_OBJECT_XRCD,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(xrcd),
	.destroy = xrcd_destroy_uobj,
	UVD_ROWS(methods, xrcd_methods),
	UVD_ROWS(writes, xrcd_writes),
	.needs = { UVD_OP(dealloc_xrcd) },
};
