# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Functions of scripts/demo and scripts/test: sourced from the top of the project.

say() { printf '\n== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$0" "$*" >&2; exit 1; }

as_root() {
	if ((EUID == 0)); then
		"$@"
	elif [[ -t 0 ]]; then
		sudo "$@"
	else
		sudo -n "$@"
	fi
}

# packages SECTION...: their names in scripts/packages
packages() {
	awk -v want=" $* " '/^\[/ { on = index(want, " " substr($1, 2, length($1) - 2) " ") } /^[a-z]/ && on' scripts/packages
}

# install SECTION...: what is missing, and only then with apt; rdma-core's tests are documents, which small images leave out
install_missing() {
	local missing=() options=() p arch
	# A library of another architecture does not count for this machine's.
	local -A installed=()
	arch=$(dpkg --print-architecture)
	while read -r p; do
		installed[$p]=1
	done < <(dpkg-query -W -f '${Package}:${Architecture} ${db:Status-Status}\n' | sed -n 's/ installed$//p')
	for p in $(packages "$@"); do
		[[ ${installed[$p]-}${installed[$p:$arch]-}${installed[$p:all]-} ]] || missing+=("$p")
	done
	((${#missing[@]})) || return 0
	say "installing ${missing[*]}"
	# The tests start the exporter themselves: its service must not listen on this machine.
	if [[ " ${missing[*]} " == *" prometheus-node-exporter "* ]]; then
		if ! as_root mkdir -p /etc/systemd/system ||
			! as_root ln -sfn /dev/null /etc/systemd/system/prometheus-node-exporter.service; then
			die "cannot mask prometheus-node-exporter.service"
		fi
	fi
	# Libraries of another architecture have the versions of this machine's, and must not replace them.
	if [[ ${missing[*]} == *:arm64* ]]; then
		options=(--no-remove)
		as_root dpkg --add-architecture arm64 || die "dpkg could not add the architecture arm64"
	fi
	if ! as_root apt-get -q update </dev/null ||
		! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "${options[@]}" \
			-o Dpkg::Options::='--path-include=/usr/share/doc/rdma-core/*' install "${missing[@]}" </dev/null; then
		die "apt-get could not install: ${missing[*]}"
	fi
}

# build DIR [-DNAME=VALUE...] [-- TARGET...]: a folder that was configured otherwise, or before an option existed, is configured anew.
build() {
	local dir=$1 options=() option
	shift
	while (($#)) && [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift $(($# > 0))
	if [[ ! -e $dir/build.ninja ]]; then
		rm -rf "$dir"	# a set-up that was cut short
		meson setup "$dir" "${options[@]}" || return
	else
		for option in "${options[@]#-D}"; do
			grep -qxF -- "${option%%=*} = ${option#*=}" "$dir/meson-private/cmd_line.txt" || {
				meson setup --reconfigure "$dir" "${options[@]}" || return
				break
			}
		done
	fi
	ninja -C "$dir" "$@"
}
