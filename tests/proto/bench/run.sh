#!/bin/bash
# Ingest against google/pprof, file by file, on one core: run.sh BUILD FILE... BUILD holds the libraries of proto and of what it uses.
set -eu -o pipefail
build=$1
shift
mkdir -p "$build/bench"
env GO111MODULE=off GOFLAGS= GOPATH=/usr/share/gocode \
	go build -o "$build/bench/parse" tests/proto/bench/parse.go
gcc -std=gnu11 -O2 -g -I. -I"$build/gen" -D_GNU_SOURCE -o "$build/bench/ingest_bench" \
	tests/proto/bench/ingest_bench.c -Wl,--start-group "$build"/lib/{proto,base/gzip,base/demangle,base}.a -Wl,--end-group \
	-lprotobuf-c -ldeflate -lre2 -lyaml -lxxhash -ljansson -lcrypt -lstdc++ -lm -pthread -Wl,--gc-sections
printf '%-28s %9s %9s %9s %9s %9s %9s %7s\n' file bytes raw inflate/s decode/s both/s parse/s ratio
for file in "$@"; do
	read -r _ bytes raw inflate decode both < <("$build/bench/ingest_bench" "$file")
	read -r _ parse < <("$build/bench/parse" "$file")
	printf '%-28s %9d %9d %9d %9d %9d %9d %6.1fx\n' "$(basename "$file")" "$bytes" "$raw" "$inflate" \
		"$decode" "$both" "$parse" "$(awk "BEGIN { print $both / $parse }")"
done
