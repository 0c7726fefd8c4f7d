#!/bin/bash
# Runs stages (targets of the Makefile) in lanes: all.sh STAGE... [-- STAGE...] [+ STAGE...]. The stages of a lane run one
# after the other, also after a failure; lanes run at the same time. Where there are two, the second has the processors first:
# its tests mostly wait, and the first computes in the meantime. What is behind a "+" begins when all before it has ended. Then the closing lines "N passed, N failed, N skipped" are added up; a stage without one
# has failed. What failed is shown at the end, with the first lines of why.
#   LOAD=N          beside N busy loops; all lanes are then equal, and what ends things that hang waits longer
#   STAGE_TIMEOUT   seconds, against a stage that never ends; a slow machine is no reason to end one
set -u
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL # each stage is a make of its own, with its own jobs
mkdir -p build/logs
begun=$(date +%s)
export STAGE_TIMEOUT=${STAGE_TIMEOUT:-21600}
if [ "${LOAD:-0}" != 0 ]; then
	export STAGE_TIMEOUT=$((3 * STAGE_TIMEOUT)) FILE_TIMEOUT=18000 TEST_TIMEOUT=9000
fi
end_children() { # those that run: the number of one that ended may be another program's by now
	local pid
	for pid in $(jobs -p); do
		kill -- "-$pid" 2>/dev/null # a process group each
	done
}
trap end_children EXIT
trap 'exit 1' INT TERM

run_stage() { # the result in a file, the log beside it
	local stage=$1 log=build/logs/${1//\//-}.log line begin=$SECONDS rc
	timeout "$STAGE_TIMEOUT" make --no-print-directory "$stage" >"$log" 2>&1
	rc=$?
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	[ -n "$line" ] || line="no closing line, exit code $rc"
	echo "$rc $line" >"${log%.log}.result"
	{ printf '%-14s %4ds  from %4ds  %s\n' "$stage" $((SECONDS - begin)) $(($(date +%s) - begun - SECONDS + begin)) "$line"
		grep -E '^SKIP' "$log"; } | cat
}

run_lane() { # its niceness, its stages
	local stage
	[ "$1" = 0 ] || [ "${LOAD:-0}" != 0 ] || renice -n "$1" $BASHPID >/dev/null
	shift
	for stage in "$@"; do
		run_stage "$stage"
	done
}

running=()
start_lane() {
	[ $# -gt 1 ] || return 0
	run_lane "$@" &
	running+=($!)
}

stages=() lane=()
set -m # jobs are process groups
for _ in $(seq "${LOAD:-0}"); do
	while :; do :; done &
done
for word in "$@" +; do
	case $word in
	--)
		start_lane 10 "${lane[@]}"
		lane=()
		;;
	+)
		start_lane 0 ${lane[@]+"${lane[@]}"}
		lane=()
		[ ${#running[@]} = 0 ] || wait "${running[@]}"
		running=()
		;;
	*)
		stages+=("$word")
		lane+=("$word")
		rm -f "build/logs/${word//\//-}".{log,result}
		;;
	esac
done
set +m

passed=0 failed=0 skipped=0 failures=()
for stage in "${stages[@]}"; do
	log=build/logs/${stage//\//-}.log
	read -r rc line 2>/dev/null <"${log%.log}.result" || rc=1 line="it did not end"
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		skipped=$((skipped + BASH_REMATCH[3]))
		bad=${BASH_REMATCH[2]}
		[ "$rc" = 0 ] || [ "$bad" != 0 ] || bad=1
	else
		bad=1
	fi
	failed=$((failed + bad))
	[ "$bad" != 0 ] || continue
	echo "---- the end of $log"
	tail -n 120 "$log"
	echo "----"
	named=0
	while IFS= read -r name; do
		[[ $name = ' '* ]] || name="$stage: $name"
		failures+=("$name")
		named=1
	done < <(awk -f tests/failures.awk "$log")
	[ "$named" = 1 ] || failures+=("$stage: $line")
done
if [ ${#failures[@]} != 0 ]; then
	echo "What failed:"
	printf '  %s\n' "${failures[@]}"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
