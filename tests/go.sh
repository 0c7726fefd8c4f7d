#!/bin/bash
# usage: go.sh
# Prints the path of the `go` of all tests, `go tool pprof` above all: one version, whatever the machine has. It is a module,
# which any Go fetches, with its sum checked. Makes it first if need be.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.26.8
dir=$PWD/build/go$version
if [ "${1:-}" != --make ]; then
	tests/once.sh "$dir" -- tests/go.sh --make
	echo "$dir/bin/go"
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'module fetch\n\ngo 1.19\n' >"$work/go.mod"
module=golang.org/toolchain@v0.0.1-go$version.linux-$(dpkg --print-architecture)
from=$(cd "$work" && go mod download -json "$module" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')
[ -n "$from" ] || { echo "tests/go.sh: $module cannot be fetched" >&2; exit 1; }
cp -r "$from/." "$dir"
# Modules have no modes.
chmod -R u+w "$dir"
find "$dir/bin" "$dir/pkg/tool" -type f -exec chmod +x {} +
