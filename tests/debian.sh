#!/bin/bash
# usage: debian.sh PACKAGE DIR [libraries]
# Fetches a Debian package whose programs some tests compare with or talk to, unpacks it into DIR and prints the folder of
# its programs. It is not installed, because that would start a service. `libraries`: those packages too that it needs and
# that are missing here.
set -eu
package=$1
dir=$2
libraries=${3:-}
if [ -e "$dir/.unpacked" ]; then
	echo "$dir/usr/bin"
	exit 0
fi
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
fetch() {
	apt-get -q -o APT::Sandbox::User= download "$package" >fetch.log 2>&1 || return
	[ -z "$libraries" ] && return
	mkdir -p archives/partial
	apt-get -q -y -d --no-install-recommends -o Debug::NoLocking=1 -o APT::Sandbox::User= \
		-o Dir::Cache::archives="$PWD/archives" install "$package" >>fetch.log 2>&1
}
if ! fetch; then
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq >>fetch.log 2>&1
	fetch || { cat fetch.log >&2; exit 1; }
fi
for file in "$package"_*.deb archives/*.deb; do
	[ ! -e "$file" ] || dpkg -x "$file" .
done
rm -rf "$package"_*.deb archives
touch .unpacked
echo "$PWD/usr/bin"
