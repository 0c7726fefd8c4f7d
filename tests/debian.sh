#!/bin/bash
# usage: debian.sh "PACKAGE..." DIR [libraries]
# Fetches Debian packages whose programs some tests compare with or talk to, unpacks them into DIR and prints the folder of
# their programs. They are not installed, because that would start services. `libraries`: those packages too that they need
# and that are missing here. Several may ask for one DIR at once: the first fetches, the others wait.
set -eu
packages=$1
dir=$2
libraries=${3:-}
mkdir -p "$dir"
dir=$(realpath "$dir")
exec 9>"$dir.lock"
flock 9
if [ -e "$dir/.unpacked" ]; then
	echo "$dir/usr/bin"
	exit 0
fi
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
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
touch .unpacked
echo "$PWD/usr/bin"
