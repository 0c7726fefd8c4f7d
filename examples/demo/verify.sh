#!/bin/sh
# Checks, with real 10 s CPU profiles, that each candidate is on top of the diff of v2 and v1 by
# flat cost while it is the one that regresses. Run it after touching work.go or the table in
# regress.go; takes about 13 s per candidate.  usage: verify.sh [GO [CANDIDATE...]]
set -eu
cd "$(dirname "$0")"
go=${1:-go}
[ $# -gt 0 ] && shift
dir=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

"$go" build -o "$dir/demo" .
[ $# -gt 0 ] || set -- $("$dir/demo" --list-regressions)

start() { # VERSION REGRESSION: runs the demo, waits until it serves, adds to $pids
	"$dir/demo" --listen=127.0.0.1:0 --print-port --version-label="$1" --regression="$2" \
		>"$dir/$1.addr" 2>"$dir/$1.log" &
	pids="$pids $!"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		[ -s "$dir/$1.addr" ] && return
		sleep 0.5
	done
	cat "$dir/$1.log" >&2
	exit 1
}
profile() {
	curl -sf --max-time 30 -o "$dir/$1.pb.gz" \
		"http://$(cat "$dir/$1.addr")/debug/pprof/profile?seconds=10"
}

bad=0
start v1 none
v1=$pids
for name in "$@"; do
	pids=$v1
	rm -f "$dir/v2.addr"
	start v2 "$name"
	sleep 1
	profile v1 & one=$!
	profile v2
	wait $one
	kill ${pids##* }
	"$go" tool pprof -top -nodecount=2 -diff_base "$dir/v1.pb.gz" "$dir/v2.pb.gz" \
		>"$dir/top" 2>/dev/null
	rows=$(sed '1,/flat%/d' "$dir/top" | awk '{ printf "  %s %s", $1, $6 }')
	verdict=ok
	[ "$(echo "$rows" | awk '{ print $2 }')" = "main.$name" ] || { verdict=WRONG; bad=1; }
	printf '%-16s %-6s%s\n' "$name" "$verdict" "$rows"
done
exit $bad
