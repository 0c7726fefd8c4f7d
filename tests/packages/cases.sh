#!/bin/bash
# Cases of the tests in this folder, to be sourced. `printed` is a file for what a case prints; who sources this prints the closing line.
passed=0 failed=0 skipped=0

ok() { # NAME COMMAND...: the command ends well
	local name=$1
	shift
	if "$@" >"$printed" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $name"
		tail -n 40 "$printed"
	fi
}
not() { ! "$@"; }
equal() { [ "$1" = "$2" ] || { printf 'got:\n%s\nwant:\n%s\n' "$1" "$2"; false; }; }
