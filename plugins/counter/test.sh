#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# test.sh UVERBSCTL PLUGIN CLIENT: the plug-in on a device of `uverbsctl run`, from a C program and by name.
set -eu

run() { "$uverbsctl" run --plugin "$plugin" initial=100 "$@"; }
expect() {
	case $2 in
	*"$1"*) ;;
	*) echo "expected: $1"; echo "got: $2"; exit 1 ;;
	esac
}

uverbsctl=$1 plugin=$2 client=$3
export uverbsctl

out=$(run -- "$client" 100)
expect 'event 0x10000 of 77' "$out"

# RESET, on a context that was given the capability. The fields have names, because the plug-in states what they mean.
reset() {
	# shellcheck disable=SC2016 # the inner shell expands it
	run "$@" -- sh -c 'exec 3</dev/infiniband/counter_reset && "$uverbsctl" call -f -' <<'SCRIPT'
DEVICE GET_CONTEXT --fd_arr u32:3
c = COUNTER CREATE
COUNTER ADD --handle $c --in amount=5,times=2
COUNTER READ --handle $c --out 8
COUNTER RESET --handle $c
COUNTER READ --handle $c --out 8
SCRIPT
}
expect 'READ out.value=110' "$(reset --ucap counter_reset)"
expect 'READ out.value=100' "$(reset --ucap counter_reset)"
# The user of `run` has not allowed the capability: its node cannot be opened.
expect 'ermission denied' "$(reset 2>&1 || true)"
