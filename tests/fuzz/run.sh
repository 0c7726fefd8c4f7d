#!/bin/bash
# Runs each fuzz driver on a copy of its seeds, as many at a time as there are processors:
#   run.sh BUILD SECONDS [SEED]   each driver runs for so many seconds; with a seed, two runs try the same inputs
# An input that crashes a driver is kept in BUILD/crashes, named after the driver.
set -u
build=$1 seconds=$2 seed=${3:-0}
passed=0 failed=0 names=()
mkdir -p "$build/crashes"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fuzz() { # driver, name
	local corpus=$build/corpus/$2 dict=()
	mkdir -p "$corpus"
	[ ! -d "tests/fuzz/$2" ] || cp -n "tests/fuzz/$2"/* "$corpus"/
	[ ! -f "tests/fuzz/$2.dict" ] || dict=(-dict="tests/fuzz/$2.dict")
	"$1" -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
		"${dict[@]}" -artifact_prefix="$build/crashes/$2-" "$corpus" >"$work/$2.out" 2>&1
	echo $? >"$work/$2.rc"
}

for driver in "$build"/tests/fuzz/*_fuzz; do
	[ -x "$driver" ] || continue
	while [ "$(jobs -pr | wc -l)" -ge "${TEST_JOBS:-$(nproc)}" ]; do
		wait -n
	done
	fuzz "$driver" "$(basename "$driver" _fuzz)" &
done
wait
for rc in "$work"/*.rc; do
	[ -f "$rc" ] || break
	name=$(basename "$rc" .rc) out=${rc%.rc}.out
	if [ "$(<"$rc")" = 0 ]; then
		passed=$((passed + 1))
		printf '%-16s %s runs\n' "$name" "$(sed -n 's/.*number_of_executed_units: *//p' "$out")"
	else
		failed=$((failed + 1))
		names+=("FAIL $name")
		tail -n 60 "$out"
	fi
done
[ "$passed$failed" != 00 ] || { names+=("FAIL no driver was built"); failed=1; }
[ ${#names[@]} = 0 ] || printf '%s\n' "${names[@]}"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
