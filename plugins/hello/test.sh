#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# test.sh UVERBSCTL PLUGIN: calls the method on a device of `uverbsctl run`, as any client would.
set -eu

call() { "$uverbsctl" run --plugin "$plugin" -- "$uverbsctl" call "$@"; }
expect() {
	case $2 in
	*"$1"*) ;;
	*) echo "expected: $1"; echo "got: $2"; exit 1 ;;
	esac
}

uverbsctl=$1 plugin=$2

expect 'doubled=42' "$(call HELLO SAY --number 21)"
expect 'doubled=8589934590' "$(call HELLO SAY --number 4294967295)"
expect 'EINVAL' "$(call HELLO SAY --number 4294967296 2>&1 || true)"
expect 'EINVAL' "$(call HELLO SAY --number 0 2>&1 || true)"
