/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations that need privilege over CUSE (privilege.h): tracing a client's thread (borrow.h), passing it a descriptor
 * (way.h), and making device nodes (node.h). With two processes the broker carries them out (serve.h), on
 * requests of the engine process (link.h). Nothing here parses data that a client has written.
 */
#ifndef UVD_BROKER_H
#define UVD_BROKER_H

#include "broker/borrow.h"
#include "broker/link.h"
#include "broker/loader.h"
#include "broker/node.h"
#include "broker/owners.h"
#include "broker/privilege.h"
#include "broker/queues.h"
#include "broker/register.h"
#include "broker/serve.h"
#include "broker/way.h"

#endif
