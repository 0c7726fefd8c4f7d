#!/bin/bash
# Runs test programs and adds up their closing lines. Many of them wait, so two run at a time for each processor. A
# program that ends without this line, by a signal or a sanitizer's report, counts as one more failure. The output of
# failed programs is printed, then the slowest, and the names of the failed ones once more at the end.
set -u
. "$(dirname "$0")/env.sh"
work=$(mktemp -d)
TIMEFORMAT='%R %U %S'
trap 'rm -rf "$work"' EXIT
# When the stage's time is up this script is ended: it names the programs that have not passed by then.
stopped() {
	local n=0 program
	for program in "$@"; do
		[ -f "$work/$n.rc" ] && [ "$(<"$work/$n.rc")" = 0 ] || echo "FAIL $program: not passed when the time was up"
		n=$((n + 1))
	done
	kill $(jobs -p) 2>/dev/null
	exit 1
}
trap 'stopped "$@"' TERM
n=0
for program in "$@"; do
	while [ "$(jobs -pr | wc -l)" -ge "${TEST_JOBS:-$((2 * $(nproc)))}" ]; do
		wait -n
	done
	{ time timeout "${TEST_TIMEOUT:-3600}" env ${TEST_PRELOAD:+LD_PRELOAD="$TEST_PRELOAD"} "$program" >"$work/$n.out" 2>&1
		echo $? >"$work/$n.rc"; } 2>"$work/$n.time" &
	n=$((n + 1))
done
wait

tell() { # lines at the beginning and at the end; moved in, so that only the list below begins lines with FAIL
	printf '%s:\n' "$program"
	if [ "$(wc -l <"$out")" -gt $(($1 * 2)) ]; then
		{ head -n "$1" "$out"; echo "[...]"; tail -n "$1" "$out"; } | sed 's/^/  /'
	else
		sed 's/^/  /' "$out"
	fi
}

passed=0 failed=0 skipped=0 n=0 names=()
for program in "$@"; do
	out=$work/$n.out rc=$(<"$work/$n.rc")
	n=$((n + 1))
	line=$(tail -n 1 "$out")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		bad=${BASH_REMATCH[2]}
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + bad))
		skipped=$((skipped + BASH_REMATCH[3]))
		[ "${BASH_REMATCH[3]}" = 0 ] || grep '^SKIP' "$out"
		[ "$rc" != 0 ] || continue
		while read -r _ name; do
			names+=("FAIL $program: $name")
		done < <(grep '^FAIL ' "$out")
		[ "$bad" = 0 ] || { tell 200; continue; }
		names+=("FAIL $program: exit code $rc")
	else
		names+=("FAIL $program: exit code $rc, no closing line")
	fi
	failed=$((failed + 1))
	tell 60
done
# The slowest, with their processor time, which says whether they computed or waited.
n=0
for program in "$@"; do
	read -r real user sys <"$work/$n.time"
	n=$((n + 1))
	awk -v real="$real" -v user="$user" -v sys="$sys" -v program="$program" \
		'BEGIN { printf "%7.1f s %7.1f s of a processor  %s\n", real, user + sys, program }'
done | sort -rn | head -n "${TEST_SLOWEST:-12}"
[ ${#names[@]} = 0 ] || printf '%s\n' "${names[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
