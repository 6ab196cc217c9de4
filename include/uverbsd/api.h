/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What plug-ins may use of uverbsd: the version of these headers, and the mark of the functions that they can call. */
#ifndef UVERBSD_API_H
#define UVERBSD_API_H

#define UVD_API_VERSION 1

/* A function or an object that plug-ins see. All others are hidden in an installed uverbsd. */
#define UVD_API __attribute__((visibility("default")))

#endif
