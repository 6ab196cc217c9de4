/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What needs privilege over CUSE: tracing a client's thread (borrow.h), passing it a descriptor (way.h), and device nodes
 * (node.h). With --separate yes this is a process of its own (serve.h), which the engine process asks (link.h). Nothing here
 * parses what a client has written.
 */
#ifndef UVD_BROKER_H
#define UVD_BROKER_H

#include "broker/borrow.h"
#include "broker/link.h"
#include "broker/node.h"
#include "broker/owners.h"
#include "broker/serve.h"
#include "broker/way.h"

#endif
