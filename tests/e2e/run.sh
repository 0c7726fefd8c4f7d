#!/bin/bash
# Runs the end-to-end tests, several files at a time, since they mostly wait: run.sh short|long
#   short   all files but those of `long`
#   long    files with an object store of several daemons, with programs of others that are built from modules, with many
#           builds of the compiler; and, alone, those that judge what a program costs
# The longest begin first.
set -u
cd "$(dirname "$0")/../.."
. tests/env.sh
long=(cluster_example discoverers collector examples pair pgo ceph profilecli campaign)
alone=(changed)
longest=(senders openapi fleet_languages cluster prometheus demo grafana profefe cluster_rules rules debuginfod test_rules)
mkdir -p build
# Several files use these, so they are made once.
(cd examples/demo && go build -o ../../build/demo .) || exit 1
for package in prometheus prometheus-alertmanager; do
	tests/debian.sh "$package" "build/$package" >/dev/null || exit 1
done
others=()
for file in tests/e2e/*.test.mjs; do
	name=$(basename "$file" .test.mjs)
	[[ " ${longest[*]} ${long[*]} ${alone[*]} " == *" $name "* ]] || others+=("$file")
done
case $1 in
short)
	parts=(go node python java openapi mcp)
	files=($(printf 'tests/e2e/%s.test.mjs ' "${longest[@]}") "${others[@]}")
	;;
long)
	parts=(go collector profilecli discoverers)
	files=($(printf 'tests/e2e/%s.test.mjs ' "${long[@]}") -- 1 $(printf 'tests/e2e/%s.test.mjs ' "${alone[@]}"))
	;;
*) exit 2 ;;
esac
# Tests that need a part wait for it, and say why it failed.
tests/e2e/senders/prepare.sh "${parts[@]}" >"build/senders-$1.log" 2>&1 &
exec tests/tap.sh "${E2E_JOBS:-5}" "${files[@]}"
