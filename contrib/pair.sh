#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# [PORT=N] [LIMIT=SECONDS] pair.sh PROGRAM [ARG...]: runs PROGRAM, one of the examples of libibverbs or of perftest, as a server and as a client
# of it, on TCP port N (18515). When the client has ended, a server that still waits is killed. Prints `client STATUS`, and what
# each has written. Exits with the client's status. LIMIT: a client that takes longer is killed, and its status is 124.
port=${PORT:-18515} folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$1
shift
"$program" -p "$port" "$@" >"$folder/server" 2>&1 &
server=$!
listening=$(printf ':%04X [0-9A-F]*:0000 0A ' "$port")
until grep -q "$listening" /proc/net/tcp /proc/net/tcp6; do
	kill -0 $server 2>/dev/null || break	# it has failed already
	sleep 0.05
done
${LIMIT:+timeout "$LIMIT"} "$program" -p "$port" "$@" 127.0.0.1 >"$folder/client" 2>&1
status=$?
kill $server 2>/dev/null
wait $server 2>/dev/null
echo "client $status"
cat "$folder/client" "$folder/server"
exit $status
