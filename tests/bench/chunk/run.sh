#!/bin/bash
# Chunks on the fleet's profiles: tests/bench/chunk/run.sh [SET [ROWS]]; what is built goes below $BUILD.
set -eu
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
libs=("$build"/lib/{tsdb/columns,tsdb/symbols,proto,base/gzip,base/demangle,base}.a)
make -s BUILD="$build" "${libs[@]}" "$build/tests/fleet/fleet.a" >/dev/null
gcc -I. -I"$build/gen" -D_GNU_SOURCE -std=gnu11 -O2 -pthread -o "$build/chunk_bench" tests/bench/chunk/chunk_bench.c \
	"$build/tests/fleet/fleet.a" -Wl,--start-group "${libs[@]}" -Wl,--end-group \
	-lxxhash -lzstd -lleveldb -lsnappy -lprotobuf-c -ldeflate -lz -lssl -lcrypto -lcares -levent -lre2 -lyaml \
	-ljansson -lstdc++ -lm
exec "$build/chunk_bench" "$@"
