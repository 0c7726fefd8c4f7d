#!/bin/bash
# Decoding of OTLP requests against the collector's own types, on one core: run.sh BUILD [FILE...]. BUILD holds the
# libraries of proto/otlp and of what it uses. Files are inflated requests; without any, the recorded ones.
set -eu -o pipefail
build=$(realpath "$1")
shift
mkdir -p "$build/bench/otlp"
(cd tests/proto/otlp/gen && go build -o "$build/bench/otlp_gen" .)
gcc -std=gnu11 -O2 -g -I. -I"$build/gen" -D_GNU_SOURCE -o "$build/bench/otlp_bench" tests/proto/otlp/bench/otlp_bench.c \
	-Wl,--start-group "$build"/lib/{proto/otlp,proto,base/gzip,base/demangle,base}.a -Wl,--end-group \
	-lprotobuf-c -ldeflate -lre2 -lyaml -lxxhash -ljansson -lcrypt -lstdc++ -lm -pthread -Wl,--gc-sections
if [ $# = 0 ]; then
	for file in tests/proto/otlp/testdata/*.pb.gz; do
		gunzip -c "$file" >"$build/bench/otlp/$(basename "$file" .gz)"
	done
	set -- "$build"/bench/otlp/*.pb
fi
printf '%-34s %9s %10s %10s %7s\n' file bytes ours/s go/s ratio
for file in "$@"; do
	ours=$("$build/bench/otlp_bench" "$file")
	theirs=$("$build/bench/otlp_gen" bench "$file")
	printf '%-34s %9d %10d %10d %6.1fx\n' "$(basename "$file")" "$(stat -c %s "$file")" "$ours" "$theirs" \
		"$(awk "BEGIN { print $ours / $theirs }")"
done
