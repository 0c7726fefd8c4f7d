#!/bin/bash
# Runs the demo service's own tests, Go's vet and gofmt.
set -u
. "$(dirname "$0")/env.sh"
cd "$(dirname "$0")/../examples/demo" || exit 2
out=$(go vet ./... 2>&1 && go test -v ./... 2>&1)
rc=$?
passed=$(grep -cE '^--- PASS' <<<"$out")
failed=$(grep -cE '^--- FAIL' <<<"$out")
unformatted=$("$(go env GOROOT)/bin/gofmt" -l . 2>&1)
if [ -n "$unformatted" ]; then
	echo "FAIL gofmt: $unformatted"
	failed=$((failed + 1))
fi
[ "$rc" = 0 ] && [ "$failed" = 0 ] || printf '%s\n' "$out"
[ "$rc" = 0 ] || [ "$failed" != 0 ] || failed=1
[ "$passed" != 0 ] || failed=$((failed + 1))
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
