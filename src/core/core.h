/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The core: engine, devices, open files, their objects, and the parse tree of what a device accepts. The kernel has this in
 * drivers/infiniband/core: rdma_core.c, uverbs_uapi.c and ucaps.c.
 *
 * Locking of an open file: destroy_lock, held for reading by every creation and destruction, for writing by the teardown;
 * `lock` protects the handle table and the object list, and is held briefly. Of an object: core/uobject.h.
 */
#ifndef UVD_CORE_H
#define UVD_CORE_H

#include "core/describe.h"
#include "core/device.h"
#include "core/engine.h"
#include "core/file.h"
#include "core/tree.h"
#include "core/ucap.h"
#include "core/uobject.h"

#endif
