/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCE v2 on the wire: packets, their ICRC, and the UDP sockets that carry them. This room knows no QPs. packet.h and
 * icrc.h know no sockets, so that the same QPs can run on a simulated network.
 */
#ifndef UVD_WIRE_ROOM_H
#define UVD_WIRE_ROOM_H

#include "wire/icrc.h"
#include "wire/packet.h"
#include "wire/socket.h"

#endif
