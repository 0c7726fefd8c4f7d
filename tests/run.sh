#!/bin/bash
# Runs test programs one after the other and adds up their closing lines. A program that ends without one,
# by a signal or a sanitizer's report, counts as a failure of its own.
set -u
passed=0 failed=0 skipped=0
for program in "$@"; do
	out=$(timeout "${TEST_TIMEOUT:-300}" "$program" 2>&1)
	rc=$?
	line=$(tail -n 1 <<<"$out")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
		if [ "$rc" != 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then
			failed=$((failed + 1))
			printf '%s\nFAIL %s: exit code %d\n' "$out" "$program" "$rc"
		elif [ "$rc" != 0 ]; then
			printf 'FAIL %s\n%s\n' "$program" "$out"
		elif [ "${BASH_REMATCH[3]}" != 0 ]; then
			grep '^SKIP' <<<"$out"
		fi
	else
		failed=$((failed + 1))
		printf '%s\nFAIL %s: exit code %d, no closing line\n' "$(tail -n 60 <<<"$out")" "$program" "$rc"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
