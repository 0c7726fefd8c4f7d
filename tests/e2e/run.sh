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
# Takes some minutes of a processor where nothing is cached; the tests that need it wait for it, and say why it failed.
tests/e2e/senders/prepare.sh go node python java profilecli collector discoverers >build/senders.log 2>&1 &
longest=(changed pair cluster_example cluster campaign ceph senders grafana demo cluster_rules prometheus rules pgo test_rules)
others=()
last=(examples collector profilecli discoverers)
for file in tests/e2e/*.test.mjs; do
	name=$(basename "$file" .test.mjs)
	[[ " ${longest[*]} ${last[*]} " == *" $name "* ]] || others+=("$file")
done
exec tests/tap.sh 4 $(printf 'tests/e2e/%s.test.mjs ' "${longest[@]}") "${others[@]}" \
	$(printf 'tests/e2e/%s.test.mjs ' "${last[@]}")
