#!/bin/bash
# usage: go.sh
# Prints the path of a `go` that is new enough for the modules of today's senders: the machine's own, or else a newer one,
# which is itself a module: the machine's go fetches it and checks its sum.
set -eu
cd "$(dirname "$0")/.."
version=1.26.8
module=golang.org/toolchain@v0.0.1-go$version.linux-$(dpkg --print-architecture)
minor=$(go env GOVERSION | sed -nE 's/^go1\.([0-9]+).*/\1/p')
if [ "${minor:-0}" -ge 26 ]; then
	command -v go
	exit 0
fi
dir=$PWD/build/go$version
mkdir -p build
exec 9>"$dir.lock"
flock 9
if [ ! -e "$dir/.ready" ]; then
	rm -rf "$dir" "$dir.mod"
	mkdir -p "$dir.mod"
	printf 'module fetch\n\ngo 1.19\n' >"$dir.mod/go.mod"
	from=$(cd "$dir.mod" && go mod download -json "$module" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')
	cp -r "$from" "$dir"
	# Modules have no modes.
	chmod -R u+w "$dir"
	find "$dir/bin" "$dir/pkg/tool" -type f -exec chmod +x {} +
	touch "$dir/.ready"
fi
echo "$dir/bin/go"
