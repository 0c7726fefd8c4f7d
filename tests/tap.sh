#!/bin/bash
# Runs files of tests under node, each in its own process, and prints their reports one after the other:
#   tests/tap.sh N FILE... [-- N FILE...]
# N files run at a time, since they mostly wait. Files begin in the given order; those behind "--" begin when all files
# before it have ended. A file that hangs is ended after FILE_TIMEOUT seconds; a slow machine is no reason to end one. Reports of files that failed come last, and what failed in them after all else.
set -u
. "$(dirname "$0")/env.sh"
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
		xargs -P "$at_once" -I{} bash -c 'out=$2/$(basename "$1") TIMEFORMAT="%R s, %U s + %S s of a processor"
			{ time timeout -k 10 "${FILE_TIMEOUT:-7200}" node --test "$1" >"$out" 2>&1; } 2>"$out.time" || { mv "$out" "$out.failed"; exit 1; }' _ {} "$work" || rc=1
done
shopt -s nullglob
cat "$work"/*.mjs "$work"/*.failed
for out in "$work"/*.time; do
	echo "# $(basename "$out" .time): $(<"$out")"
done | sort -t: -k2 -rn
for out in "$work"/*.failed; do
	echo "FAIL $(basename "$out" .failed): $(grep -c '^ *not ok ' "$out") reports that are not ok"
	grep -h -A 24 '^ *not ok ' "$out" | head -n 80 | sed 's,^,  ,' # not counted twice
done
exit "$rc"
