/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client: a calling thread, its memory and mappings, its address space, and the event files that it is given. */
#ifndef UVD_CLIENT_H
#define UVD_CLIENT_H

#include "client/caller.h"
#include "client/event_file.h"
#include "client/maps.h"
#include "client/mm.h"
#include "client/peer.h"

#endif
