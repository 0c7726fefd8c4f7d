#!/bin/bash
# Runs the end-to-end tests, each file in a process of its own, two at a time: most of their time is waiting.
set -u
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What several files use is made once before them.
mkdir -p build
(cd examples/demo && go build -o ../../build/demo .) || exit 1
for package in prometheus prometheus-alertmanager; do
	tests/debian.sh "$package" "build/$package" >/dev/null || exit 1
done
rc=0
printf '%s\n' tests/e2e/*.test.mjs |
	xargs -P 2 -I{} bash -c 'node --test "$1" >"$2/$(basename "$1")" 2>&1' _ {} "$work" || rc=1
cat "$work"/*.test.mjs
exit "$rc"
