#!/bin/bash
# Runs files of tests under node, each in its own process, and prints their reports one after the other:
#   tests/tap.sh N FILE... [-- N FILE...]
# N files run at a time, since they mostly wait. Files begin in the given order; those behind "--" begin when all files
# before it have ended.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rc=0
while [ $# != 0 ]; do
	at_once=$1
	shift
	files=()
	while [ $# != 0 ] && [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	[ $# = 0 ] || shift
	[ ${#files[@]} != 0 ] || continue
	printf '%s\n' "${files[@]}" |
		xargs -P "$at_once" -I{} bash -c 'node --test "$1" >"$2/$(basename "$1")" 2>&1' _ {} "$work" || rc=1
done
cat "$work"/*
exit "$rc"
