#!/bin/bash
# Runs the end-to-end tests, four files at a time, since they mostly wait. The longest begin first.
set -u
cd "$(dirname "$0")/../.."
# Several files use these, so they are made once.
mkdir -p build
(cd examples/demo && go build -o ../../build/demo .) || exit 1
for package in prometheus prometheus-alertmanager; do
	tests/debian.sh "$package" "build/$package" >/dev/null || exit 1
done
longest=(changed grafana demo prometheus rules pgo test_rules)
others=()
for file in tests/e2e/*.test.mjs; do
	name=$(basename "$file" .test.mjs)
	[[ " ${longest[*]} " == *" $name "* ]] || others+=("$file")
done
exec tests/tap.sh 4 $(printf 'tests/e2e/%s.test.mjs ' "${longest[@]}") "${others[@]}"
