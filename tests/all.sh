#!/bin/bash
# Runs the given stages (targets of the Makefile) one after the other, also after a failure, and adds up their closing
# lines "N passed, N failed, N skipped". A stage without this line counts as a failure. The names of failed tests are
# printed at the end. STAGE_TIMEOUT is against a stage that never ends; a slow machine is no reason to end one.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0 skipped=0 failures=()
unset MAKEFLAGS MFLAGS MAKELEVEL # each stage is a make of its own, with its own jobs
mkdir -p build/logs
ahead=
end_ahead() { # make removes what is half done; a stage goes on from there, at its own priority
	[ -z "$ahead" ] || kill -- "-$ahead" 2>/dev/null
	[ -z "$ahead" ] || wait "$ahead" 2>/dev/null
	ahead=
}
trap end_ahead EXIT
for stage in "$@"; do
	log=build/logs/${stage//\//-}.log
	begin=$SECONDS
	case $stage in
	test-e2e)
		# These tests and the browser's mostly wait. Meanwhile what is left of the processors builds for the sanitizers.
		# If that fails, the stage that builds it again says why.
		if [[ " $* " == *" test-asan "* ]]; then
			set -m # a process group of its own, to end it by
			nice -n 19 make --no-print-directory ahead >build/logs/ahead.log 2>&1 &
			ahead=$!
			set +m
		fi
		;;
	test-asan) end_ahead ;;
	esac
	timeout "${STAGE_TIMEOUT:-5400}" make --no-print-directory "$stage" >"$log" 2>&1
	rc=$?
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		skipped=$((skipped + BASH_REMATCH[3]))
		bad=${BASH_REMATCH[2]}
		[ "$rc" = 0 ] || [ "$bad" != 0 ] || bad=1
	else
		line="no closing line, exit code $rc"
		bad=1
	fi
	failed=$((failed + bad))
	printf '%-14s %4ds  %s\n' "$stage" $((SECONDS - begin)) "$line"
	grep -E '^SKIP' "$log" || true
	[ "$bad" != 0 ] || continue
	echo "---- the end of $log"
	tail -n 120 "$log"
	echo "----"
	named=0
	while IFS= read -r name; do
		failures+=("$stage: $name")
		named=1
	done < <(grep -E '^FAIL |^ *(✖|not ok) ' "$log" | grep -v '✖ failing tests:' | sed 's/^ *//' |
		awk '!seen[$0]++' | head -n 20)
	[ "$named" = 1 ] || failures+=("$stage: $line")
done
if [ ${#failures[@]} != 0 ]; then
	echo "What failed:"
	printf '  %s\n' "${failures[@]}"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
