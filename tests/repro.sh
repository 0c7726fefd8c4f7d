#!/bin/bash
# The same sources in two directories give the same programs, byte for byte.
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for copy in one two/deeper; do
	mkdir -p "$work/$copy"
	tests/files.sh | tar -c --null -T - | tar -x -C "$work/$copy"
	# The page is built once, and its sources are the same: node_modules need not be fetched twice.
	mkdir -p "$work/$copy/build"
	cp -r build/ui-src "$work/$copy/build/"
	find "$work/$copy" -exec touch -d @1700000000 {} +
	touch "$work/$copy/build/ui-src/.installed"
	(cd "$work/$copy" && make --no-print-directory >"$work/log" 2>&1) || { tail -n 30 "$work/log"; break; }
done
passed=0 failed=0
for program in epimetheus epitool; do
	if cmp "$work/one/build/$program" "$work/two/deeper/build/$program"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $program differs between two directories"
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
