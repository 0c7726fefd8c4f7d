#!/bin/bash
# Starts the demo fleet and the server that scrapes it; Ctrl-C ends all. Called by `make run`.
#   examples/run.sh BUILD    with BUILD/epimetheus there; EPI_LISTEN=host:port, EPI_DATA=dir,
#   EPI_REGRESSION=name (which function of v2 costs more; see `build/demo --list-regressions`)
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
listen=${EPI_LISTEN:-127.0.0.1:7272}
data=${EPI_DATA:-$build/data}
config=examples/epimetheus.yml
run=build # the addresses of the demo fleet; servers at other addresses have fleets of their own
[ "$listen" = 127.0.0.1:7272 ] || run=build/run-${listen//[^A-Za-z0-9.]/-}
targets=$run/demo-targets.json
if (exec 3<>"/dev/tcp/${listen%:*}/${listen##*:}") 2>/dev/null; then
	echo "$listen is in use already: EPI_LISTEN=host:port chooses another address." >&2
	exit 1
fi
mkdir -p "$run" "$data"

stop() { # those that run: the number of one that ended may be another program's by now
	trap - EXIT INT TERM
	kill $(jobs -p) 2>/dev/null || true
	wait
}
trap stop EXIT
trap 'exit 0' INT TERM

# A port that nobody has is chosen by the program itself and printed.
start_demo() { # version, arguments
	local version=$1 out=$run/demo-$1.port
	shift
	: >"$out"
	build/demo --listen=127.0.0.1:0 --print-port --version-label="$version" "$@" >"$out" 2>"$run/demo-$version.log" &
	while [ ! -s "$out" ] && kill -0 $! 2>/dev/null; do
		sleep 0.1
	done
	head -n 1 "$out" | grep -oE '[0-9]+$' && return
	echo "The demo program $version does not start:" >&2
	cat "$run/demo-$version.log" >&2
	return 1
}

write_targets() { # versions
	local version list=()
	for version; do
		list+=("{\"targets\": [\"127.0.0.1:$(cat "$run/demo-$version.addr")\"], \"labels\": {\"version\": \"$version\", \"service\": \"shop\"}}")
	done
	(IFS=,; echo "[${list[*]}]") >"$targets.tmp"
	mv "$targets.tmp" "$targets"
}

# Version v2 comes once v1 has a profile, so that the time line has a mark "v1 -> v2".
v1_is_stored() {
	exec 3<>"/dev/tcp/${listen%:*}/${listen##*:}" || return
	printf 'GET /api/v1/label/version/values HTTP/1.0\r\n\r\n' >&3
	grep -q '"v1"' <&3
} 2>/dev/null

deploy_v2() {
	local i
	trap - EXIT INT TERM
	for ((i = 0; i < 100; i++)); do
		! (v1_is_stored) || break
		sleep 0.2
	done
	write_targets v1 v2
}

echo '[]' >"$targets"
build_demo() {
	local said=$PWD/examples/progress.sh
	(cd examples/demo && "$said" "  GO    examples/demo" go build -o ../../build/demo .)
}
if command -v go >/dev/null && build_demo; then
	start_demo v1 --leak --regression=none >"$run/demo-v1.addr"
	start_demo v2 --leak ${EPI_REGRESSION:+--regression="$EPI_REGRESSION"} >"$run/demo-v2.addr"
	write_targets v1
	deploy_v2 &
else
	echo "No Go here: the demo fleet is left out, the server scrapes itself." >&2
fi

if [ "$listen" != 127.0.0.1:7272 ]; then
	config=$run/run.yml
	sed -e "s|localhost:7272|$listen|" -e "s|\.\./build/|$PWD/$run/|" -e "s|rules/demo|$PWD/examples/&|" examples/epimetheus.yml >"$config"
fi
echo
echo "  Epimetheus on http://$listen/   (first flame graph in about 10 seconds; Ctrl-C stops)"
echo
"$build/epimetheus" --config.file="$config" --storage.tsdb.path="$data" --web.listen-address="$listen" \
	--web.enable-lifecycle &
wait $!
