#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# test.sh UVERBSCTL PLUGIN: calls the plug-in's methods on a device of `uverbsctl run`, as any client would.
set -eu

call() { "$uverbsctl" run --plugin "$plugin" -- "$uverbsctl" call "$@"; }
expect() {
	case $2 in
	*"$1"*) ;;
	*) echo "expected: $1"; echo "got: $2"; exit 1 ;;
	esac
}

uverbsctl=$1 plugin=$2

# Two calls on one open file: a context keeps its number.
expect 'GET value=7' "$(printf 'SKELETON SET --value 7\nSKELETON GET\n' | call -f -)"
expect 'GET value=0' "$(call SKELETON GET)"
expect 'EINVAL' "$(call SKELETON SET --value 1001 2>&1 || true)"
