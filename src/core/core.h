/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The core: engine, devices, open files, their objects, and the parse tree of what a device accepts. The kernel has
 * this in drivers/infiniband/core: rdma_core.c, uverbs_uapi.c and ucaps.c.
 *
 * Locking of an open file: a thread that creates or destroys an object holds destroy_lock for reading; the teardown
 * of the file holds it for writing. `lock` protects the handle table and the object lists, and is held briefly.
 * core/uobject.h describes the lock of an object.
 */
#ifndef UVD_CORE_H
#define UVD_CORE_H

#include "core/allow.h"
#include "core/describe.h"
#include "core/device.h"
#include "core/engine.h"
#include "core/engine_plugins.h"
#include "core/explain.h"
#include "core/facts.h"
#include "core/file.h"
#include "core/filters.h"
#include "core/observer.h"
#include "core/quota.h"
#include "core/texts.h"
#include "core/tree.h"
#include "core/trees.h"
#include "core/ucap.h"
#include "core/uobject.h"

#endif
