#!/bin/bash
# The rules of the house that a machine can check. Each finding is a line "FILE:LINE: what"; each rule without
# findings counts as passed. tests/lint/selftest.sh shows that each rule can fail.
set -u
cd "${1:-.}" || exit 2
here=$(dirname "$(realpath "$0")")
passed=0 failed=0

rule() { # name, command that prints findings
	local name=$1 found
	shift
	found=$("$@")
	if [ -n "$found" ]; then
		printf '%s\n' "$found" | sed "s/^/$name: /"
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
}

all=$("$here/../files.sh" | tr '\0' '\n')
[ -n "$all" ] || { echo "FAIL no file to look at"; exit 1; }

files() { # those that match one of these patterns
	local f pattern
	while read -r f; do
		for pattern in "$@"; do
			# shellcheck disable=SC2053
			if [[ $f == $pattern ]]; then
				echo "$f"
				break
			fi
		done
	done <<<"$all"
}

code=$(files '*.c' '*.h' '*.cc' '*.re' '*.y')
ours=$(files '*.c' '*.h' '*.cc' '*.re' '*.y' '*.ts' '*.tsx' '*.mjs' '*.sh' '*.go' '*.mk' 'Makefile')

room_of() {
	case $1 in
	promql/rules/*) echo promql/rules ;;
	*) echo "${1%%/*}" ;;
	esac
}

# Includes follow the table in the Makefile (uses_ROOM).
includes() {
	local f room allowed line inc to
	for f in $(files 'base/*' 'proto/*' 'discovery/*' 'scrape/*' 'tsdb/*' 'promql/*' 'web/*' 'cmd/*' |
		grep -E '\.(c|h|cc|re|y)$'); do
		room=$(room_of "$f")
		allowed=" $(sed -n "s,^uses_$room *:= *,,p" Makefile) "
		grep -nE '^#include "' "$f" | sed -E 's/^([0-9]+):#include "([^"]*)".*/\1 \2/' |
			while read -r line inc; do
				to=$(room_of "$inc")
				if [ "$to" = "$inc" ]; then
					echo "$f:$line: include names no room: $inc"
				elif [[ $allowed != *" $to "* ]] && [ "$room $to" != "cmd cmd" ]; then
					echo "$f:$line: $room may not include $inc"
				fi
			done
	done
}

# The top level holds the rooms and nothing else.
top_level() {
	cut -d/ -f1 <<<"$all" | sort -u |
		grep -vxE 'Makefile|README\.md|LICENSE|cmd|base|discovery|scrape|tsdb|promql|web|proto|examples|tests|\..*' |
		sed 's/$/: not a room of this house/'
}

# Every room says what it is.
readmes() {
	local room
	for room in base proto discovery scrape tsdb promql web cmd examples tests; do
		[ -f "$room/README.md" ] || echo "$room/README.md:1: missing"
	done
}

shape() { awk -f "$here/shape.awk" $code; }

width() {
	awk '{ t = $0; gsub(/\t/, "    ", t) } length(t) > 100 { print FILENAME ":" FNR ": " length(t) " columns" }' \
		$(files '*.c' '*.h' '*.cc')
}

blanks() { grep -nE '[[:blank:]]+$' $ours /dev/null | cut -d: -f1,2 | sed 's/$/: trailing blank/'; }

promises() { grep -nwE '(TODO|FIXME|XXX|HACK)' $ours /dev/null | grep -v '^tests/lint/'; }

banned() {
	grep -nE '\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|system|alloca|tmpnam|mktemp)\(' $code /dev/null
	grep -nE 'MHD_create_post_processor|\bregcomp\(' $code /dev/null
}

typedefs() { grep -nE '^typedef (struct|union)' $code /dev/null; }

# A public header begins with its contract, and guards itself.
headers() {
	local f guard
	for f in $(files 'base/*.h' 'proto/*.h' 'discovery/*.h' 'scrape/*.h' 'tsdb/*.h' 'promql/*.h' 'web/*.h'); do
		[ "$(head -c 2 "$f")" = '/*' ] || echo "$f:1: no contract block"
		guard=$(tr 'a-z/.-' 'A-Z___' <<<"$f")
		grep -q "^#ifndef $guard\$" "$f" || echo "$f:1: guard is not $guard"
	done
}

scripts() {
	local f
	for f in $(files '*.sh' .ci/run); do
		[ -x "$f" ] || echo "$f:1: not executable"
	done
}

# The project speaks of itself alone; no download by address.
itself() {
	grep -nE '/(work|farm)/|registry\.npmjs|deb\.debian|proxy\.golang' $(files '*' | grep -v '^tests/lint/') /dev/null
}

for name in includes top_level readmes shape width blanks promises banned typedefs headers scripts itself; do
	rule "$name" "$name"
done

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
