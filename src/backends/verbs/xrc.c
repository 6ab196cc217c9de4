/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains. A domain belongs to the device, and clients that name the same file share it. A target QP outlives the
 * client that made it, as long as another has it open. So domains and target QPs are in a context of the engine. An SRQ
 * is in the context of its client, with the PD and the CQ. On the adapter both are of one domain, as the kernel finds
 * the domain by the inode of the file that a context opens it with: a memfd for each domain.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "account/account.h"
#include "backends/verbs/verbs.h"

int hca_xrc_begin(struct hca_device *dev)
{
	int ret;

	if (!(dev->features & HCA_XRC))
		return 0;
	dev->xrc = uvd_zalloc(sizeof(*dev->xrc));
	if (!dev->xrc)
		return -ENOMEM;
	dev->xrc->context.dev = dev->ibdev;
	ret = hca_context_begin(dev, dev->xrc);
	if (!ret)
		return 0;
	free(dev->xrc);
	dev->xrc = NULL;
	return ret;
}

void hca_xrc_end(struct hca_device *dev)
{
	if (!dev->xrc)
		return;
	hca_context_end(dev, dev->xrc);
	free(dev->xrc);
	dev->xrc = NULL;
}

/* The kernel creates a domain with O_CREAT only, and refuses one that exists with O_EXCL. */
static struct ibv_xrcd *xrcd_open_file(const struct hca_context *context, int file, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file,
		.oflags = oflags,
	};

	return ibv_open_xrcd(context->adapter, &attr);
}

int hca_alloc_xrcd(struct uvd_xrcd *base, struct uvd_udata *udata)
{
	struct hca_device *dev = hca_device(base->dev);
	struct hca_xrcd *xrcd = (struct hca_xrcd *)base;
	int ret;

	if (atomic_load(&dev->dead))
		return -EIO;
	ret = uvd_account_charge(base->account, UVD_RES_DESCRIPTORS, 1);
	if (ret)
		return ret;
	xrcd->file = uvd_fd_raise(memfd_create("uverbsd-xrcd", MFD_CLOEXEC));
	if (xrcd->file < 0) {
		ret = -errno;
		goto uncharge;
	}
	xrcd->adapter = xrcd_open_file(dev->xrc, xrcd->file, O_CREAT | O_EXCL);
	if (xrcd->adapter)
		return 0;
	ret = hca_errno();
	close(xrcd->file);
uncharge:
	uvd_account_uncharge(base->account, UVD_RES_DESCRIPTORS, 1);
	return ret;
}

int hca_dealloc_xrcd(struct uvd_xrcd *base)
{
	struct hca_xrcd *xrcd = (struct hca_xrcd *)base;
	const int ret = hca_destroyed(hca_device(base->dev), ibv_close_xrcd(xrcd->adapter));

	if (ret)
		return ret;
	close(xrcd->file);
	uvd_account_uncharge(base->account, UVD_RES_DESCRIPTORS, 1);
	return 0;
}

struct ibv_xrcd *hca_xrcd_open(struct hca_context *context, const struct uvd_xrcd *xrcd)
{
	return xrcd_open_file(context, ((const struct hca_xrcd *)xrcd)->file, 0);
}

void hca_xrcd_close(struct ibv_xrcd *xrcd)
{
	if (xrcd)
		ibv_close_xrcd(xrcd);
}
