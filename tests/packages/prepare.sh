#!/bin/bash
# usage: prepare.sh site|root
# Fetches what tests of packages need, once: `site`, validators of bills of materials as Python's modules; `root`, an empty Debian 12
# with lintian and rpm, which each test copies. Prints the directory.
set -eu
cd "$(dirname "$0")/../.."
here=tests/packages
make_site() {
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --root-user-action=ignore \
		--target="$1" --requirement="$here/requirements.txt"
}
make_root() {
	mkdir -p build/packages/archives
	debootstrap --variant=minbase --cache-dir="$PWD/build/packages/archives" bookworm "$1"
	cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
	chroot "$1" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends lintian rpm
}
if [ "$1" = --make ]; then
	"make_$2" "$3"
	exit
fi
tests/once.sh "build/packages/$1" $here/requirements.txt $here/prepare.sh -- $here/prepare.sh --make "$1"
echo "$PWD/build/packages/$1"
