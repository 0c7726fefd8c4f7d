#!/bin/bash
# Runs the end-to-end tests, two files at a time.
set -u
cd "$(dirname "$0")/../.."
# What several files use is made once before them.
mkdir -p build
(cd examples/demo && go build -o ../../build/demo .) || exit 1
for package in prometheus prometheus-alertmanager; do
	tests/debian.sh "$package" "build/$package" >/dev/null || exit 1
done
exec tests/tap.sh 2 tests/e2e/*.test.mjs
