/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records what a client of tests/uv does as inputs of fuzz_calls: seeds from the tests of the ABI's rules. fuzz/seeds.py makes
 * those of real programs.
 */
#ifndef UVD_FUZZ_RECORD_H
#define UVD_FUZZ_RECORD_H

#include "uv.h"

/*
 * Returns operations that call `below`, and append each call to the file FOLDER/PID of the calling process. Addresses of
 * this process become addresses of the fuzz targets' client. One thread at a time.
 */
const struct uv_node_ops *fuzz_record(const struct uv_node_ops *below, const char *folder);

#endif
