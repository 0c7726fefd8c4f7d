#!/bin/bash
# Installs DuckDB and ClickHouse as libraries of Python, with checked sums, below build/columns. `--make DIR` fills DIR.
set -eu
cd "$(dirname "$0")/../../.."
here=tests/bench/columns

if [ "${1:-}" = --make ]; then
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --root-user-action=ignore \
		--target="$2" --requirement="$here/requirements.txt"
	exit
fi
tests/once.sh build/columns "$here/requirements.txt" "$here/prepare.sh" -- "$here/prepare.sh" --make
