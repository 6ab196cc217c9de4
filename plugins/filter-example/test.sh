#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# test.sh UVERBSCTL PLUGIN: creates PDs on a device of `uverbsctl run` that has the filter.
set -eu

uverbsctl=$1 plugin=$2

# with OPTIONS SCRIPT: what `uverbsctl call` prints for the script, with the filter and these options
with() { printf '%b' "$2" | "$uverbsctl" run --plugin "$plugin" --filter "quota$1" -- "$uverbsctl" call -f - 2>&1 || true; }
expect() {
	case $2 in
	*"$1"*) ;;
	*) echo "expected: $1"; echo "got: $2"; exit 1 ;;
	esac
}
refuse() {
	case $2 in
	*"$1"*) echo "unexpected: $1"; echo "got: $2"; exit 1 ;;
	esac
}

# shellcheck disable=SC2016 # $a is the script's, and `names` are those of messages
test_quota() {
	# The third of two is refused. One that was destroyed makes room.
	expect 'EDQUOT' "$(with :pds=2 'PD ALLOC\nPD ALLOC\nPD ALLOC\n')"
	refuse 'EDQUOT' "$(with :pds=2 'PD ALLOC\na = PD ALLOC\nPD DEALLOC --pd_handle $a\nPD ALLOC\n')"
	refuse 'EDQUOT' "$(with '' 'PD ALLOC\nPD ALLOC\nPD ALLOC\n')"
	expect 'there are 0 PDs already' "$(with :pds=0 'PD ALLOC\n')"
	refuse 'E' "$(with :pds=2,delay-us=1000 'PD ALLOC\n' | grep -v '^PD ALLOC' || true)"
	# A wrong option is told before the program starts.
	expect 'filter quota: pds: `many` is not a number' "$(with :pds=many 'PD ALLOC\n')"
	expect 'no option `pd`; its options: pds, delay-us' "$(with :pd=1 'PD ALLOC\n')"
}
test_quota
