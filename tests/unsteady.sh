#!/bin/bash
# Runs test programs under load and at awkward times, to find tests that depend on either.
#   tests/unsteady.sh CLOCK PROGRAM...   CLOCK is tests/clock.c, built
# The programs run LOAD_ROUNDS (3) times beside LOAD_LOOPS (20) busy loops. Then they run once right before each of the
# moments below: a full hour, a window's end, midnight, a year's end, a leap day, changes of daylight time, in several zones.
# All rounds together get LOAD_SECONDS (1800). The output of each round is in build/unsteady.
set -u
clock=$(realpath "$1") rounds=${LOAD_ROUNDS:-3} loops=${LOAD_LOOPS:-20} seconds=${LOAD_SECONDS:-1800}
moments=(
	"UTC 2026-12-31 23:59:59"
	"America/New_York 2026-11-01 01:59:59"
	"Europe/Berlin 2026-03-29 01:59:59"
	"Asia/Kolkata 2028-02-28 23:59:58"
	"UTC 2026-06-15 16:59:58"
)
[ "${LOAD_MOMENTS:-all}" = all ] || moments=()
shift
end=$((SECONDS + seconds))
passed=0 failed=0 skipped=0
stop_loops() {
	kill $(jobs -p) 2>/dev/null # those that still run
}
trap stop_loops EXIT
trap 'exit 1' INT TERM

round() { # name, command that runs the programs
	local name=$1 out=build/unsteady/$1.log line
	shift
	if [ "$SECONDS" -ge "$end" ]; then
		echo "FAIL $name: no time left"
		failed=$((failed + 1))
		return
	fi
	timeout $((end - SECONDS)) "$@" >"$out" 2>&1
	line=$(tail -n 1 "$out")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
	else
		failed=$((failed + 1))
	fi
	echo "$name: $line"
	grep '^FAIL ' "$out"
}

rm -rf build/unsteady
mkdir -p build/unsteady
for i in $(seq "$loops"); do
	[ "$rounds" != 0 ] || break
	timeout "$seconds" bash -c 'while :; do :; done' &
done
for i in $(seq "$rounds"); do
	TEST_JOBS=${TEST_JOBS:-8} round "load-$i" tests/run.sh "$@"
done
stop_loops
for moment in "${moments[@]}"; do
	zone=${moment%% *}
	at=$(TZ=$zone date -d "${moment#* }" +%s) || exit 1
	TEST_PRELOAD=$clock round "$(tr ' /:' '---' <<<"$moment")" env TZ="$zone" EPI_CLOCK="$at" tests/run.sh "$@"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
