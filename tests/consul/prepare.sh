#!/bin/bash
# Makes a Consul agent, and prints the path of the program. It is built from its module, which takes some minutes of a processor,
# once.
set -eu
cd "$(dirname "$0")/../.."
version=1.14.11
dir=$PWD/build/consul-$version
mkdir -p build
exec 9>"$dir.lock"
flock 9
if [ ! -e "$dir/.ready" ]; then
	go=$(tests/go.sh)
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	export GOFLAGS=-mod=mod GOTOOLCHAIN=local
	printf 'module agent\n\ngo 1.24.0\n\nrequire github.com/hashicorp/consul v%s\n' "$version" >go.mod
	"$go" get "github.com/hashicorp/consul@v$version" >build.log 2>&1 || { tail -5 build.log >&2; exit 1; }
	"$go" build -o consul -gcflags=all='-N -l' -ldflags='-s -w' github.com/hashicorp/consul >>build.log 2>&1 ||
		{ tail -5 build.log >&2; exit 1; }
	touch .ready
fi
echo "$dir/consul"
