/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The version of the plug-ins' interface, and the mark of the functions that a plug-in may call. */
#ifndef UVERBSD_API_H
#define UVERBSD_API_H

#define UVD_API_VERSION 3

/* A function or an object that plug-ins see. All others are hidden in an installed uverbsd. */
#define UVD_API __attribute__((visibility("default")))

#endif
