#!/bin/bash
# usage: debian.sh "PACKAGE..." DIR [libraries]
# Unpacks Debian packages whose programs some tests compare with or talk to into DIR, and prints the folder of their programs.
# They are not installed, because that would start services. `libraries`: with those packages that they need and that are
# missing here.
set -eu
if [ "${1:-}" != --make ]; then
	"$(dirname "$0")/once.sh" "$2" -- "$(realpath "$0")" --make "$1" "${3:-}"
	echo "$(realpath "$2")/usr/bin"
	exit
fi
packages=$2
libraries=$3
cd "$4"
# shellcheck disable=SC2086
fetch() {
	apt-get -q -o APT::Sandbox::User= download $packages >fetch.log 2>&1 || return
	[ -z "$libraries" ] && return
	mkdir -p archives/partial
	apt-get -q -y -d --no-install-recommends -o Debug::NoLocking=1 -o APT::Sandbox::User= \
		-o Dir::Cache::archives="$PWD/archives" install $packages >>fetch.log 2>&1
}
if ! fetch; then
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq >>fetch.log 2>&1
	fetch || { cat fetch.log >&2; exit 1; }
fi
for file in *.deb archives/*.deb; do
	[ ! -e "$file" ] || dpkg -x "$file" .
done
rm -rf ./*.deb archives
