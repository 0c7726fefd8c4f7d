#!/bin/bash
# Makes a Consul agent, and prints the path of the program. It is built from its module, which takes some minutes of a processor,
# once.
set -eu
cd "$(dirname "$0")/../.."
version=1.14.11
if [ "${1:-}" != --make ]; then
	tests/once.sh "build/consul-$version" -- tests/consul/prepare.sh --make
	echo "$PWD/build/consul-$version/consul"
	exit
fi
. tests/env.sh
cd "$2"
export GOFLAGS=-mod=mod
printf 'module agent\n\ngo 1.24.0\n\nrequire github.com/hashicorp/consul v%s\n' "$version" >go.mod
{
	go get "github.com/hashicorp/consul@v$version"
	go build -o consul -gcflags=all='-N -l' -ldflags='-s -w' github.com/hashicorp/consul
} >build.log 2>&1 || { tail -5 build.log; exit 1; }
