#!/bin/bash
# usage: bolt.sh PROGRAM OUT [OPTION...]
# Lays out a program's functions anew by BOLT, after what an instrumented copy of it did in one run. PROGRAM is linked with -Wl,-q.
set -eu
program=$(realpath "$1")
out=$(realpath "$2")
shift 2
# By this name it finds its runtime library.
bolt=$(readlink -f "$(command -v llvm-bolt-16)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	"$bolt" -instrument --instrumentation-file="$work/run.fdata" -o "$work/program" "$program"
	"$work/program"
	"$bolt" "$program" -o "$out" -data="$work/run.fdata" -reorder-blocks=ext-tsp -reorder-functions=hfsort -split-functions \
		-split-all-cold "$@"
} >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
