#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# test.sh UVERBSCTL PLUGIN CLIENT: a process publishes a table, others read from it, on a device of `uverbsctl run`.
set -eu
exec "$1" run --plugin "$2" -- sh -eu -s "$3" <<'SCRIPT'
client=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkfifo "$folder/in" "$folder/out"
"$client" owner <"$folder/in" >"$folder/out" &
exec 3>"$folder/in" 4<"$folder/out"

answer() { read -r got <&4; [ "$got" = "$1" ] || { echo "owner: expected $1, got $got"; exit 1; }; }
get() {
	want=$1
	shift
	got=$("$client" get "$@" || true)
	[ "$got" = "$want" ] || { echo "get $*: expected $want, got $got"; exit 1; }
}

read -r number key <&4
get ENOENT "$number" "$key" colour
echo 'set colour green' >&3; answer 0
get green "$number" "$key" colour
echo 'set colour blue' >&3; answer 0
get blue "$number" "$key" colour
get ENOSPC "$number" "$key" colour 3

# The access right, and the use of the memory region.
get EACCES "$number" 1 colour
get EACCES 4711 "$key" colour
echo dereg >&3; answer EBUSY
echo destroy >&3; answer 0
get EACCES "$number" "$key" colour
echo dereg >&3; answer 0
exec 3>&-
wait
"$client" bench
SCRIPT
