#!/bin/bash
# Checks the rules of the house that a machine can check: run.sh [TREE [RULES]]. Each finding is a line
# "FILE:LINE: message"; a rule without findings counts as passed. tests/lint/selftest.sh shows that each rule can fail.
set -u
here=$(dirname "$(realpath "$0")")
cd "${1:-.}" || exit 2
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
	local pattern
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

rooms=$(MAKEFLAGS= make --no-print-directory -s rooms) # "ROOM: rooms it may include", from the ground up
rooms_list=$(cut -d: -f1 <<<"$rooms")

# Includes follow the table in the Makefile (uses_ROOM). A file's room is its folder; cmd and what is below it are one.
includes() {
	awk -v table="$rooms" '
		function room_of(path) {
			if (path ~ /^cmd\//)
				return "cmd"
			return sub("/[^/]*$", "", path) ? path : ""
		}
		BEGIN {
			n = split(table, line, "\n")
			for (i = 1; i <= n; i++) {
				room = line[i]
				sub(":.*", "", room)
				allowed[room] = " " room " " substr(line[i], length(room) + 2) " "
			}
		}
		/^#include "/ {
			split($0, part, "\"")
			room = room_of(FILENAME)
			to = room_of(part[2])
			if (to == "")
				print FILENAME ":" FNR ": include names no room: " part[2]
			else if (!index(allowed[room], " " to " "))
				print FILENAME ":" FNR ": " room " may not include " part[2]
			else if (room != to && part[2] ~ /(_|\/)internal\.h$/)
				print FILENAME ":" FNR ": " room " may not include the inside of " to
		}' $(files 'base/*' 'proto/*' 'discovery/*' 'scrape/*' 'tsdb/*' 'promql/*' 'web/*' 'cmd/*' |
		grep -E '\.(c|h|cc|re|y)$')
}

# Every folder with code is a row of the table, every row a folder, and a row names only rows above it: no cycle.
floor_plan() {
	local room uses above=' ' use
	diff <(grep -v '^cmd$' <<<"$rooms_list" | sort) \
		<(files 'base/*' 'proto/*' 'discovery/*' 'scrape/*' 'tsdb/*' 'promql/*' 'web/*' |
			grep -E '\.(c|h|cc|re|y)$' | xargs -n1 dirname | sort -u) |
		sed -n 's/^< \(.*\)/\1: a room without code/p; s/^> \(.*\)/\1: not a row of the table of rooms (Makefile)/p'
	while IFS=: read -r room uses; do
		for use in $uses; do
			[[ $above == *" $use "* ]] || echo "$room: uses $use, which is not above it"
		done
		above+="$room "
	done <<<"$rooms"
}

# A folder holds at most 35 files of code.
folder_size() {
	files '*.c' '*.h' '*.cc' '*.re' '*.y' '*.ts' '*.tsx' | grep -v '^tests/' | xargs -n1 dirname | sort | uniq -c |
		while read -r n folder; do
			[ "$n" -le 35 ] || echo "$folder: $n files, limit 35"
		done
}

# The top level holds the rooms and nothing else.
top_level() {
	cut -d/ -f1 <<<"$all" | sort -u |
		grep -vxE 'Makefile|README\.md|LICENSE|cmd|base|discovery|scrape|tsdb|promql|web|proto|examples|tests|\..*' |
		sed 's/$/: not a room of this house/'
}

# Every room has a README.
readmes() {
	local room lines
	for room in $rooms_list examples tests; do
		if [ ! -f "$room/README.md" ]; then
			echo "$room/README.md:1: missing"
		elif ! head -n 1 "$room/README.md" | grep -q '^# '; then
			echo "$room/README.md:1: begins without a heading"
		fi
	done
}

names() {
	awk -f "$here/names.awk" $(files 'base/*' 'proto/*' 'discovery/*' 'scrape/*' 'tsdb/*' 'promql/*' 'web/*' 'cmd/*' |
		grep -E '\.(c|h|cc)$')
}

shape() { awk -f "$here/shape.awk" $code; }

width() {
	awk '{ t = $0; gsub(/\t/, "    ", t) } length(t) > 100 { print FILENAME ":" FNR ": " length(t) " columns" }' \
		$(files '*.c' '*.h' '*.cc')
}

# clang-format has the last word (.clang-format).
format() {
	files '*.c' '*.h' '*.cc' | xargs -n 40 -P "$(nproc)" clang-format --dry-run --ferror-limit=1 2>&1 |
		sed -nE 's/^([^:]+:[0-9]+):[0-9]+: warning: .*/\1: not as clang-format writes it/p'
}

blanks() { grep -nE '[[:blank:]]+$' $ours /dev/null | cut -d: -f1,2 | sed 's/$/: trailing blank/'; }

promises() { grep -nwE '(TODO|FIXME|XXX|HACK)' $ours /dev/null | grep -v '^tests/lint/'; }

banned() {
	grep -nE '\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|system|alloca|tmpnam|mktemp)\(' $code /dev/null
	grep -nE 'MHD_create_post_processor|\bregcomp\(' $code /dev/null
}

# What users see is limited by their matchers: their requests open queriers with limits, and queries have them.
limits() {
	local f
	grep -nE '\bdb_querier_open\(' $(files 'web/*.c') /dev/null |
		sed -E 's/^([^:]+:[0-9]+):.*/\1: db_querier_open_limited, with the limits of the request/'
	for f in $(grep -lE '\bquery_run(_cancelable)?\(' $(files 'web/*.c')); do
		grep -qE '\blimits = .*user\.limits;' "$f" || echo "$f:1: runs queries without the limits of the request"
	done
}

# Handlers read parameters by http_param and http_next_param, which know the operation's table. Some take all that comes: labels.
parameters() {
	grep -nE '\bin(->|\.)params\b' $(files 'web/*.c' | grep -vE '^web/(http/|router/audit|files/request|api/ingest)') /dev/null |
		grep -v 'in->params_n + 1' | sed -E 's/^([^:]+:[0-9]+):.*/\1: http_param or http_next_param/'
}

# An evaluation with its plan and caches is for the files that find, plan and evaluate. Who reads gets a work and a supply,
# operators get a work alone (promql/README.md).
evaluation() {
	grep -nE '\bstruct eval\b|"promql/eval\.h"' $(files '*.c' '*.h' |
		grep -vE '^promql/(eval|prepare|reader|plan|choose|choose_cost|numeric|numeric_over_time|over_time|subquery|changed|unit)\.[ch]$' |
		grep -vE '^promql/engine/(engine_internal\.h|(result|steps|scrape|hints)\.c)$') /dev/null |
		sed -E 's/^([^:]+:[0-9]+):.*/\1: a struct work, or a struct supply beside it/'
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

# The project names nothing outside of itself, and downloads nothing by address.
itself() {
	grep -nE '/(work|farm)/|registry\.npmjs|deb\.debian|proxy\.golang' $(files '*' | grep -v '^tests/lint/') /dev/null
}

# Scripts run under Debian 12's Node 18. What came later, or has other arguments there:
node_18() {
	local since='\.(toReversed|toSorted|toSpliced|isWellFormed|toWellFormed)\(|Array\.fromAsync|(Object|Map)\.groupBy'
	since+='|Promise\.(withResolvers|try)\b|import\.meta\.(dirname|filename)|mock\.(timers|module)|styleText|\bglobSync\b'
	since+='|process\.loadEnvFile|partialDeepStrictEqual|new WebSocket\(|\bawait using\b|Iterator\.from'
	since+='|\.(isSubsetOf|isSupersetOf|isDisjointFrom|symmetricDifference)\('
	grep -nE "$since" $(files '*.mjs') /dev/null | sed -E 's/^([^:]+:[0-9]+):.*/\1: Node 18 lacks this/'
}

# The book names each flag, key of the configuration, metric and route: in a chapter, or in a generated part that a chapter takes in
# (build/gen/book, of the tree that this script is in). `book_parts` itself refuses a key without help.
book() {
	local parts="$here/../../build/gen/book" text named name
	[ -f "$parts/.done" ] || { echo "build/gen/book:1: missing; make build/gen/book/.done"; return; }
	text=$(mktemp)
	cat $(files 'web/book/*.md') /dev/null >"$text"
	for name in $(sed -nE 's/^\{\{([a-z0-9-]+)\}\}$/\1/p' "$text" | sort -u); do
		[ ! -f "$parts/$name.md" ] || cat "$parts/$name.md" >>"$text"
	done
	named=$(grep -oE '`[A-Za-z0-9_:-]+`|--(\[no-\])?[a-z][a-z.-]+' "$text" | sed -E 's/[`]//g; s/^--(\[no-\])?/--/' | sort -u)
	{ # FILE:LINE:what the book must name
		grep -nE '^\s*\{ "[a-z.-]+", FLAG_' $(files 'cmd/epimetheus/*.c' 'cmd/epitool/*.c') /dev/null |
			sed -E 's/^([^:]+:[0-9]+):[^"]*"([^"]+)".*/\1:--\2/'
		grep -nE '\{ "[a-z_0-9]+", YAML_(STRING|SECRET|BOOL|U?INT|FLOAT|DURATION|BYTES|STRUCT|LIST|STRING_MAP|CUSTOM)\b|HTTP_CONFIG_CUSTOM\("|SD_SOURCE_FIELD\("' \
			$(files 'base/*.[ch]' 'discovery/*.[ch]' 'scrape/*.[ch]' 'promql/*.[ch]' 'web/*.[ch]') /dev/null |
			sed -E 's/^([^:]+:[0-9]+):[^"]*"([^"]+)".*/\1:\2/'
		awk '/METRIC_(COUNTER|GAUGE|HISTOGRAM|INFO)\(/ { row = $0; line = FNR; if (row !~ /"/) { getline; row = row $0 }
			if (match(row, /"[a-z_]+"/)) print FILENAME ":" line ":" substr(row, RSTART + 1, RLENGTH - 2) }' \
			$(files 'base/*.c' 'discovery/*.c' 'scrape/*.c' 'tsdb/*.c' 'promql/*.c' 'web/*.c' 'cmd/epimetheus/*.c')
	} | awk -F: -v named="$named" '
		BEGIN { n = split(named, word, "\n"); for (i = 1; i <= n; i++) known[word[i]] = 1 }
		!($3 in known) { print $1 ":" $2 ": the book does not name " $3 }'
	book_routes "$text"
	rm -f "$text"
}
# A part of a path that varies (*) may have any name there.
book_routes() {
	local where path
	sed -nE '/^\t\{ (ASK|DO|READ|HTTP_)/{s/^[^"]*"([^"]+)".*/\1/p}' web/routes.c | sort -u | while read -r path; do
		where=$(grep -nF "\"$path\"" web/routes.c | head -n 1 | cut -d: -f1)
		[[ $path =~ ^/?[*]?$ ]] && continue # the page
		[[ $path == /* ]] || path=${path%/[*]} # behind the name of a service
		grep -qE "$(sed 's/[.]/\\./g; s/[*]/[^\/ ]+/g' <<<"$path")([^A-Za-z0-9_/.-]|\$)" "$1" ||
			echo "web/routes.c:$where: the book does not name $path"
	done
}

# Texts that users read have the words of the house (words.mjs lists those that are not used).
words() {
	local out
	out=$(node "$here/words.mjs" . 2>&1) || out="tests/lint/words.mjs:1: failed: $out"
	[ -z "$out" ] || echo "$out"
}

for name in ${2:-includes floor_plan folder_size format top_level readmes names shape width blanks promises banned limits parameters evaluation typedefs headers scripts itself node_18 book words}; do
	rule "$name" "$name"
done

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
