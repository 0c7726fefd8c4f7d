#!/bin/bash
# Building and reading a symbol index on one core: run.sh BUILD [MILLIONS_OF_SEGMENTS]. BUILD holds the libraries of
# tsdb/debuginfo/index and of what it uses.
set -eu -o pipefail
build=$(realpath "$1")
mkdir -p "$build/bench"
gcc -std=gnu11 -O2 -g -I. -I"$build/gen" -D_GNU_SOURCE -o "$build/bench/symindex_bench" \
	tests/tsdb/debuginfo/bench/symindex_bench.c \
	-Wl,--start-group "$build"/lib/{tsdb/debuginfo/index,base/demangle,base}.a -Wl,--end-group \
	-lre2 -lyaml -lxxhash -ljansson -lcrypt -lstdc++ -lm -pthread -Wl,--gc-sections
"$build/bench/symindex_bench" "${2:-10}"
