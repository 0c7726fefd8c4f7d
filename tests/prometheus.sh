#!/bin/bash
# Fetches Debian's prometheus and promtool, which some tests compare with, into DIR, and prints where the programs
# stand. Installing the package would start a service, so it is only unpacked.
set -eu
dir=$1
if [ -x "$dir/usr/bin/prometheus" ] && [ -x "$dir/usr/bin/promtool" ]; then
	echo "$dir/usr/bin"
	exit 0
fi
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
fetch() {
	apt-get -q -o APT::Sandbox::User= download prometheus >fetch.log 2>&1
}
if ! fetch; then
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq >>fetch.log 2>&1
	fetch || { cat fetch.log >&2; exit 1; }
fi
dpkg -x prometheus_*.deb .
rm -f prometheus_*.deb
echo "$PWD/usr/bin"
