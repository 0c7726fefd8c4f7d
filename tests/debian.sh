#!/bin/bash
# usage: debian.sh PACKAGE DIR
# Fetches a Debian package whose programs some tests compare with or talk to, unpacks it into DIR and prints the folder of
# its programs. It is not installed, because that would start a service.
set -eu
package=$1
dir=$2
if [ -e "$dir/.unpacked" ]; then
	echo "$dir/usr/bin"
	exit 0
fi
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
fetch() {
	apt-get -q -o APT::Sandbox::User= download "$package" >fetch.log 2>&1
}
if ! fetch; then
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq >>fetch.log 2>&1
	fetch || { cat fetch.log >&2; exit 1; }
fi
dpkg -x "$package"_*.deb .
rm -f "$package"_*.deb
touch .unpacked
echo "$PWD/usr/bin"
