/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a plug-in may call. The functions of these headers that are marked UVD_API are the interface; the programs export
 * them and nothing else. UVD_API_VERSION grows when a plug-in that was compiled for an older one could misbehave.
 */
#ifndef UVERBSD_API_H
#define UVERBSD_API_H

#define UVD_API __attribute__((visibility("default")))

enum { UVD_API_VERSION = 1 };

#endif
