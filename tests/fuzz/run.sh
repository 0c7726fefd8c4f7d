#!/bin/bash
# Runs each fuzz driver for so many seconds on a copy of its seeds: run.sh BUILD SECONDS. What crashed one stays
# in BUILD/crashes, named after the driver.
set -u
build=$1 seconds=$2
passed=0 failed=0
mkdir -p "$build/crashes"
for driver in "$build"/tests/fuzz/*_fuzz; do
	[ -x "$driver" ] || continue
	name=$(basename "$driver" _fuzz)
	corpus=$build/corpus/$name
	mkdir -p "$corpus"
	[ ! -d "tests/fuzz/$name" ] || cp -n "tests/fuzz/$name"/* "$corpus"/
	dict=()
	[ ! -f "tests/fuzz/$name.dict" ] || dict=(-dict="tests/fuzz/$name.dict")
	if out=$("$driver" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
		"${dict[@]}" -artifact_prefix="$build/crashes/$name-" "$corpus" 2>&1); then
		passed=$((passed + 1))
		printf '%-16s %s runs\n' "$name" "$(grep -oE 'number_of_executed_units: *[0-9]+' <<<"$out" | grep -oE '[0-9]+')"
	else
		failed=$((failed + 1))
		printf '%s\nFAIL %s\n' "$(tail -n 60 <<<"$out")" "$name"
	fi
done
[ "$passed$failed" != 00 ] || { echo "FAIL no driver was built"; failed=1; }
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
