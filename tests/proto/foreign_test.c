#include "proto/pprof.h"
#include "tests/check.h"

#define LIT(s) ((struct str){ s, sizeof(s) - 1 })
#define ZEROS_64 \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* The decoder says what others' formats are. */
TEST(bytes_of_other_formats_are_named)
{
	/* clang-format off */
	static const struct {
		struct str body;
		const char *want;
	} rows[] = {
		{ LIT("go 1.22 trace\0\0\0\1\2\3"), "this is a Go execution trace: use go tool trace; a "
			"CPU profile is at /debug/pprof/profile" },
		{ LIT("go 1.9 trace\0\0\0\0\1\2\3"), "this is a Go execution trace: " },
		{ LIT("FLR\0\0\2\0\0"), "this is a recording of Java Flight Recorder (JFR): push with "
		  "epitool push, or by /ingest" },
		{ LIT("PERFILE2" ZEROS_64), "this is perf.data of Linux perf: perf script report "
		  "stackcollapse, or perf script | stackcollapse-perf.pl, makes folded stacks of it, which "
		  "are read" },
		{ LIT("PERFFILE" ZEROS_64), "this is perf.data of an old Linux perf: perf script report "
		  "stackcollapse, or perf script | stackcollapse-perf.pl, makes folded stacks of it, which "
		  "are read" },
		{ LIT("memray\0\x0b\0\0\0"), "this is a recording of memray: use memray flamegraph" },
		{ LIT("Nettrace\x14\0\0\0!FastSerialization.1"), "this is a trace of .NET (nettrace): "
		  "dotnet-trace convert --format Speedscope makes a file that is read" },
		{ LIT("JAVA PROFILE 1.0.2\0\0\0\0\4"), "this is a heap dump of Java (HPROF): " },
		{ LIT("gmon\1\0\0\0"), "this is a profile of gprof (gmon.out): gprof reads it" },
		{ LIT("{\xa9\x03\xfa\x01~"), "this is statistics of Python's cProfile: " },
		{ LIT("# ========\n# captured on    : Mon\n"), "this is the output of perf script: perf "
		  "script report stackcollapse makes folded stacks of perf.data, stackcollapse-perf.pl of "
		  "this; they are read" },
		{ LIT("# callgrind format\nversion: 1\n"), "this is a profile of callgrind: " },
		{ LIT("goroutine 1 [running]:\nmain.main()\n"),
		  "this is the text of goroutines (debug=2): ask without debug" },
		{ LIT("{\"version\":\"0.0.1\",\"$schema\":"
		  "\"https://www.speedscope.app/file-format-schema.json\"}"),
		  "this is a file of speedscope: push with epitool push" },
		{ LIT(" {\"resourceProfiles\":[]}"),
		  "this is a request of OTLP in JSON: send to /v1development/profiles" },
		{ LIT("{\"traceEvents\":[]}"),
		  "this is a trace of Chrome's format: ui.perfetto.dev opens it" },
		{ LIT("[{\"name\":\"a\",\"ph\":\"B\",\"ts\":1}]"), "this is a trace of Chrome's format: " },
		{ LIT("{\"nodes\":[{\"id\":1,\"callFrame\":{}}]}"), "this is a CPU profile of V8 "
		  "(.cpuprofile): speedscope.app opens it, and exports a file that is read" },
		{ LIT("{\"head\":{\"callFrame\":{}}}"), "this is a heap profile of V8 (.heapprofile): " },
		{ LIT("{\"snapshot\":{\"meta\":{\"node_fields\":[]}}}"), "this is a heap snapshot of V8 " },
		{ LIT("\xef\xbb\xbf\n<!DOCTYPE html>"),
			"this is a web page: a login or error page may have answered; check the "
			"address and the credentials" },
		{ LIT("<HTML><body>"),
			"this is a web page: a login or error page may have answered; check the "
			"address and the credentials" },
		{ LIT("<?xml version=\"1.0\"?>\n<svg>"), "this is an SVG image: " },
		{ LIT("<?xml version=\"1.0\"?>\n<a/>"), "this is XML" },
		{ LIT("# HELP up x\n"), "this is metrics of Prometheus: a CPU profile is at " },
		{ LIT("version https://git-lfs.github.com/spec/v1\n"), "this is a pointer of Git LFS: " },
		{ LIT("H4sIAAAAAAAA/"), "this is gzip in base64: decode it first" },
		{ LIT("\x7f" "ELF\2\1\1\0"),
		  "this is a program or library (ELF): upload symbols with epitool debuginfo upload" },
		{ LIT("MZ\x90\0\3\0"), "this is a program of Windows" },
		{ LIT("PK\3\4\0\0"), "this is a zip archive: unpack it first" },
		{ LIT("\xfd" "7zXZ\0\0\4"), "this is compressed by xz: unpack it first" },
		{ LIT("BZh91AY&SY\x01\2"), "this is compressed by bzip2: unpack it first" },
		{ LIT("\x78\x9c\xcb\xcc\1\0"), "this is compressed by zlib: unpack it first" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].want);
		struct pprof *p;
		struct err err;
		struct arena a;

		arena_init(&a, 1 << 20);
		CHECK_INT(pprof_decode(&a, rows[i].body, &pprof_limits_default, &p, &err), ERR_INVALID);
		if (strncmp(err.msg, rows[i].want, n) || (rows[i].want[n - 1] != ' ' && err.msg[n]))
			CHECK_FAIL("row %zu: got \"%s\", want \"%s\"", i, err.msg, rows[i].want);
		arena_release(&a);
	}
}

TEST(texts_that_only_begin_alike_are_not_named)
{
	static const char *const texts[] = { "MZ;run 1\n", "BZh;run 1\n", "PERFILE2;a 1\n",
		"goroutine 5;run 1\n", "{\"a\": 1}", "hello" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (foreign_recognize(str_of(texts[i])))
			CHECK_FAIL("%s: %s", texts[i], foreign_recognize(str_of(texts[i]))->what);
	CHECK(!foreign_recognize(STR("")));
	CHECK(!foreign_recognize(LIT("\x0a\x04\x08\x01\x10\x02")));
}

/* In memory of exactly its length, so that a read beyond the end is found. */
TEST(every_length_is_looked_at)
{
	char bytes[300] = { 0 };

	memcpy(bytes + 257, "ustar", 5);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		char *copy = malloc(n + 1);
		const struct foreign *f;

		memcpy(copy + 1, bytes, n);
		f = foreign_recognize((struct str){ copy + 1, n });
		CHECK(!f == (n < 262));
		free(copy);
	}
}
