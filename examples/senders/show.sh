#!/bin/bash
# Services in Go, Java, Node and Python send to a server by their SDKs, and one in C++ is scraped; Ctrl-C ends all. Called by
# `make demo-senders`.
#   show.sh BUILD    with BUILD/epimetheus there; EPI_LISTEN=host:port, EPI_DATA=dir
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
listen=${EPI_LISTEN:-127.0.0.1:7272}
work=$(mktemp -d)
data=${EPI_DATA:-$work/data}
children=()

# The services end when their standard input does, and send what they have.
stop() {
	trap - EXIT INT TERM
	exec 8>&- 9>&-
	[ ${#children[@]} = 0 ] || wait "${children[@]}" || true
	kill $(jobs -p) 2>/dev/null || true # those that still run
	wait
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 0' INT TERM

tests/e2e/senders/prepare.sh go node python java
made=$PWD/build/senders
mkfifo "$work/open"
exec 8<>"$work/open" 9>"$work/open"
service() { # name, command
	local name=$1
	shift
	"$@" <"$work/open" >"$work/$name.log" 2>&1 8>&- 9>&- &
	children+=($!)
}

jobs=
if [ -e tests/e2e/cpp/service.cc ] && g++ -O1 -g -rdynamic -o "$work/ledger" tests/e2e/cpp/service.cc \
	-ltcmalloc_and_profiler 2>"$work/cpp.log"; then
	TCMALLOC_SAMPLE_PARAMETER=524288 "$work/ledger" >"$work/ledger.port" 8>&- 9>&- &
	for _ in $(seq 100); do
		[ -s "$work/ledger.port" ] && break
		sleep 0.1
	done
	jobs="
  - job_name: ledger
    scrape_interval: 5s
    profiling_config:
      pprof_config:
        process_cpu: {path: /pprof/profile}
        memory: {path: /pprof/heap}
        block: {enabled: false}
        mutex: {enabled: false}
        goroutine: {enabled: false}
    static_configs: [{targets: ['127.0.0.1:$(grep -oE '[0-9]+$' "$work/ledger.port" | head -n 1)'], labels: {service_name: ledger, region: here}}]"
fi
cat >"$work/epimetheus.yml" <<END
scrape_configs:
  - job_name: epimetheus
    scrape_interval: 5s
    profiling_config:
      pprof_config: {memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}}
    static_configs: [{targets: ['$listen'], labels: {service_name: epimetheus, region: here}}]$jobs
END
"$build/epimetheus" --config.file="$work/epimetheus.yml" --storage.tsdb.path="$data" --web.listen-address="$listen" \
	--web.enable-ingest 8>&- 9>&- &
server=$!
url=http://$listen
service cart "$made/go/cart" "$url" cart
service web node "$made/node/web.mjs" "$url" web
PYTHONPATH=$made/python/site service recommend python3 tests/e2e/senders/python/recommend.py "$url" recommend
PYROSCOPE_SERVER_ADDRESS=$url PYROSCOPE_APPLICATION_NAME=search PYROSCOPE_FORMAT=jfr PYROSCOPE_PROFILER_EVENT=itimer \
	PYROSCOPE_PROFILER_ALLOC=512k PYROSCOPE_UPLOAD_INTERVAL=2s PYROSCOPE_LABELS=region=here \
	service search java -javaagent:"$made/java/agent.jar" -cp "$made/java" Search
echo
echo "  Epimetheus on $url/   (cart, web, recommend, search; Ctrl-C stops)"
echo
wait "$server"
