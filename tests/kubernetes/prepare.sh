#!/bin/bash
# Makes a real Kubernetes API server, kubectl, and Prometheus's discovery to compare with, and prints the folder of their programs.
# The first two are built from their module: all take half an hour of a processor, and 3 GB of memory, once. etcd is Debian's.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
version=1.34.2
if [ "${1:-}" != --make ]; then
	tests/once.sh "build/kubernetes-$version" tests/kubernetes/prepare.sh -- tests/kubernetes/prepare.sh --make
	echo "$PWD/build/kubernetes-$version"
	exit
fi
. tests/env.sh
dir=$2
etcd=$(tests/debian.sh etcd-server build/etcd-server)
ln -s "$etcd/etcd" "$dir/etcd"
cd "$dir"
export GOFLAGS=-mod=mod
# Its own go.mod takes the libraries from folders that a module does not contain; they are modules of their own.
printf 'module kubernetes\n\ngo 1.24.0\n' >go.mod
from=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')
{
	printf '\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$version"
	sed -nE "s|^\t(k8s.io/[a-z-]+) => \./staging/.*|\t\1 => \1 v0.${version#1.}|p" "$from/go.mod"
	printf ')\n'
} >>go.mod
printf '//go:build never\n\npackage main\n\nimport (\n\t_ "k8s.io/kubernetes/cmd/kube-apiserver/app"\n\t_ "k8s.io/kubectl/pkg/cmd"\n)\n' >main.go
at=k8s.io/component-base/version
{
	go get "k8s.io/kubernetes/cmd/kube-apiserver@v$version" "k8s.io/kubernetes/cmd/kubectl@v$version"
	for program in kube-apiserver kubectl; do
		go build -o $program -ldflags "-s -w -X $at.gitVersion=v$version -X $at.gitMajor=1 -X $at.gitMinor=${version:2:2}" \
			k8s.io/kubernetes/cmd/$program
	done
	cd "$root/tests/kubernetes/prometheus"
	GOFLAGS=-mod=readonly go build -o "$dir/prometheus" .
} >build.log 2>&1 || { tail -5 "$dir/build.log"; exit 1; }
