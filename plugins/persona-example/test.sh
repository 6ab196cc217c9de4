#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# test.sh UVERBSCTL PLUGIN CLIENT: programs on a device of the persona acme, by both ABIs of the provider.
set -eu

expect() {
	case $2 in
	*"$1"*) ;;
	*) echo "expected: $1"; echo "got: $2"; exit 1 ;;
	esac
}

uverbsctl=$1 plugin=$2 client=$3
run() { "$uverbsctl" run --plugin "$plugin" max-qps=3 --persona acme "$@"; }

for abi in ioctl write; do
	out=$(run --abi "$abi" -- "$client" 3)
	expect 'acme_0 uverbs0 max 3' "$out"
done
expect 'max_qps=3 qps=0' "$(run -- "$uverbsctl" call ACME_LIMITS QUERY)"
info=$(run -- ibv_devinfo)
expect 'vendor_id:			0xaced' "$info"
expect 'board_id:			ACME1' "$info"
# Devices of other personas know neither the object nor the limit.
other() { "$uverbsctl" run --plugin "$plugin" --persona hfi1 -- "$uverbsctl" call ACME_LIMITS QUERY 2>&1 || true; }
expect 'has no object' "$(other)"
