#!/bin/bash
# Runs the browser tests: tests/browser/run.sh NODE_DIR short|long
#   short      all of the page in Chromium
#   long       what measures time, each file alone, and the page in Firefox
#   NODE_DIR   has playwright-core and axe-core installed (tests/browser/package-lock.json)
#   EPI_BUILD  has the server; it is started with the demo fleet on a free port, unless
#   EPI_URL    names one that runs
#   EPI_TEST   runs one file, explore.test.mjs by "explore"; all unless given
# The last line is the count that tests/all.sh adds up.
set -u
cd "$(dirname "$0")/../.."
. tests/env.sh
node_dir=$1 which=$2
browser=${EPI_CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$browser" ]; then
	echo "FAIL no chromium"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
fi
export EPI_CHROMIUM=$browser
if [ "$which" = long ]; then
	EPI_FIREFOX=${EPI_FIREFOX:-$(command -v firefox-esr || command -v firefox || true)}
	if [ -z "$EPI_FIREFOX" ]; then
		echo "FAIL no firefox-esr"
		echo "0 passed, 1 failed, 0 skipped"
		exit 1
	fi
	export EPI_FIREFOX EPI_LONG=1
fi

fleet=
scratch=
stop() {
	trap - EXIT INT TERM
	kill $(jobs -p) 2>/dev/null # the fleet, if it still runs
	wait
	[ -z "$scratch" ] || rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 1' INT TERM

fail() {
	echo "FAIL $1"
	[ ! -f "${scratch:-/nonexistent}/log" ] || tail -n 20 "$scratch/log"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

# Both versions have stored some CPU profiles of their code.
has_data() {
	local version
	for version in v1 v2; do
		curl -fsS -m 5 -G --data-urlencode "query=count_over_time(cpu{job=\"demo\",version=\"$version\"}[2m]) >= 4" \
			"$EPI_URL/api/v1/query" 2>/dev/null | grep -q '"value"' || return 1
	done
}

start_fleet() { # at a port that nobody has
	local port
	port=$(node -e 'const s = require("net").createServer();
		s.listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); });')
	export EPI_URL=http://127.0.0.1:$port
	EPI_LISTEN=127.0.0.1:$port EPI_DATA=$scratch/data examples/run.sh "${EPI_BUILD:-build}" \
		>"$scratch/log" 2>&1 &
	fleet=$!
}

# The first start compiles the demo, and that may take minutes; another program may have the port by then.
if [ -z "${EPI_URL:-}" ]; then
	scratch=$(mktemp -d)
	starts=1
	start_fleet
	until grep -q msg=ready "$scratch/log" && has_data; do # its own log: the port may have been another server's
		if ! kill -0 "$fleet" 2>/dev/null; then
			[ "$starts" -lt 5 ] && grep -qi 'in use' "$scratch/log" || fail "the server ended"
			starts=$((starts + 1))
			start_fleet
		fi
		sleep 1
	done
	sleep 4 # the tests look at windows that ended some seconds ago
fi

# The copies find the packages above them, and what they share with others as in the tree.
rm -rf "$node_dir/browser"
mkdir -p "$node_dir/browser"
cp tests/browser/*.mjs "$node_dir/browser/"
cp tests/server.mjs tests/ports.mjs tests/s3_*.mjs "$node_dir/"
EPI_BUILD=$(realpath "${EPI_BUILD:-build}")
export EPI_BUILD
files=()
for file in "$node_dir/browser/"${EPI_TEST:-*}.test.mjs; do
	case $which/${file##*/} in
	short/firefox.test.mjs) ;;
	short/* | long/flame.test.mjs | long/heat.test.mjs | long/pages.test.mjs | long/firefox.test.mjs) files+=("$file") ;;
	esac
done
jobs=${BROWSER_JOBS:-3}
[ "$which" = short ] || jobs=1
tests/node.sh tests/tap.sh "$jobs" "${files[@]}"
