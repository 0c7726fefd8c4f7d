#!/bin/bash
# Runs a command that ends in a report of node's test runner and closes with the line that tests/all.sh adds up.
set -u
. "$(dirname "$0")/env.sh"
out=$("$@" 2>&1)
rc=$?
printf '%s\n' "$out" | grep -E '^ *not ok|✖' || true
printf '%s\n' "$out" | grep '^# .* of a processor$' || true
printf '%s\n' "$out" | sed -nE 's/^ *ok [0-9]+ - (.*) # SKIP/SKIP \1:/p' # and why
count() { printf '%s\n' "$out" | grep -oE "^(#|ℹ) $1 [0-9]+" | awk '{ n += $3 } END { print n + 0 }'; }
passed=$(count pass) failed=$(($(count fail) + $(count cancelled))) skipped=$(count skipped)
if [ "$rc" != 0 ] || [ "$failed" != 0 ]; then
	printf '%s\n' "$out"
	[ "$failed" != 0 ] || failed=1
elif [ "$passed" = 0 ]; then
	echo "FAIL no test ran"
	printf '%s\n' "$out"
	failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
