/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kinds of completions for which filters have rules. */
#ifndef UVD_FILTERS_WC_H
#define UVD_FILTERS_WC_H

#include <infiniband/verbs.h>

enum uvd_wc_kind {
	UVD_WC_ANY,
	UVD_WC_SEND,
	UVD_WC_WRITE,
	UVD_WC_READ,
	UVD_WC_ATOMIC,
	UVD_WC_BIND_MW,
	UVD_WC_LOCAL_INV,
	UVD_WC_RECV,
	UVD_WC_KINDS,
};
/* Names of options: wc, wc.send and so on. */
extern const char *const uvd_wc_names[UVD_WC_KINDS];

/* Options of a filter. X(name, what): an option of this name, for completions of that. */
#define UVD_WC_OPTIONS(X) \
	X("wc", "all work requests") \
	X("wc.send", "sends") \
	X("wc.write", "RDMA writes") \
	X("wc.read", "RDMA reads") \
	X("wc.atomic", "atomics") \
	X("wc.bind_mw", "binds of memory windows") \
	X("wc.local_inv", "local invalidates") \
	X("wc.recv", "receives")

enum uvd_wc_kind uvd_wc_kind(enum ibv_wc_opcode opcode);

#endif
