#!/bin/bash
# Builds the same sources in another directory: the programs must be equal, byte for byte, to those built here. Then nothing
# is left to do, also after files were made again that are as before.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy=$work/another/deeper
mkdir -p "$copy/build"
tests/files.sh | tar -c --null -T - | tar -x -C "$copy"
# The page is built again from the packages that are already here.
cp -r "$build/ui-src" "$copy/build/"
# The copy has no repository.
read -r REVISION REVISION_TIME < <(base/self/commit.sh)
export REVISION REVISION_TIME
find "$copy" -exec touch -d @1700000000 {} +
touch "$copy/build/ui-src/.installed"
(cd "$copy" && make --no-print-directory >"$work/log" 2>&1) || tail -n 30 "$work/log"
passed=0 failed=0
for program in epimetheus epitool; do
	if cmp "$build/$program" "$copy/build/$program"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $program differs between two directories"
	fi
done
touch "$copy/promql/syntax/grammar.y"
(cd "$copy" && make --no-print-directory >"$work/log" 2>&1) || tail -n 30 "$work/log"
if (cd "$copy" && make --no-print-directory -q); then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo "FAIL a second make has something to do"
	(cd "$copy" && make --no-print-directory -n) | head -n 20
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
