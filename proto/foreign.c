/*
 * What people send that is no pprof, by its first bytes: one table for scrapes, pushes and files.
 *
 * Rows are asked in order. A row of binary data needs bytes that no text has, so that a folded
 * stack that begins with "MZ" is not taken for a program.
 */
#include "proto/pprof.h"

#define LOOKED_AT_BYTES 512u /* to tell text from binary data */
#define JSON_LOOKED_AT_BYTES 4096u /* names of members are looked for there */

enum foreign_place {
	FOREIGN_BINARY, /* the bytes are at the place `at` */
	FOREIGN_TEXT, /* a text begins so, in whatever case, behind spaces and a byte order mark */
	FOREIGN_JSON, /* an object or an array has it within JSON_LOOKED_AT_BYTES */
};

#define BYTES(text) \
	{ \
		text, sizeof(text) - 1 \
	}
#define BY_SPEEDSCOPE "speedscope.app opens it, and exports a file that is read"
#define UNPACK "unpack it first"
/* The first comes with perf, the second is a script of FlameGraph's. */
#define FOLD_PERF "perf script report stackcollapse, or perf script | stackcollapse-perf.pl,"

/* clang-format off */
static const struct foreign_row {
	enum foreign_place place;
	size_t at;
	struct str bytes;
	const char *also; /* is somewhere in the first JSON_LOOKED_AT_BYTES too; NULL: nothing is */
	struct foreign is;
} foreign_rows[] = {
	/* Formats of profilers. */
	{ FOREIGN_BINARY, 0, BYTES("go 1."), " trace", { "a Go execution trace",
		"use go tool trace; a CPU profile is at /debug/pprof/profile" } },
	{ FOREIGN_BINARY, 0, BYTES("FLR\0"), NULL, { "a recording of Java Flight Recorder (JFR)",
		"push with epitool push, or by /ingest", .is_read = true } },
	{ FOREIGN_BINARY, 0, BYTES("PERFILE2"), NULL, { "perf.data of Linux perf",
		FOLD_PERF " makes folded stacks of it, which are read" } },
	{ FOREIGN_BINARY, 0, BYTES("PERFFILE"), NULL, { "perf.data of an old Linux perf",
		FOLD_PERF " makes folded stacks of it, which are read" } },
	{ FOREIGN_TEXT, 0, BYTES("# ========"), "# captured on", { "the output of perf script",
		"perf script report stackcollapse makes folded stacks of perf.data, "
		"stackcollapse-perf.pl of this; they are read" } },
	{ FOREIGN_BINARY, 0, BYTES("memray\0"), NULL, { "a recording of memray",
		"use memray flamegraph" } },
	{ FOREIGN_BINARY, 0, BYTES("Nettrace"), NULL, { "a trace of .NET (nettrace)",
		"dotnet-trace convert --format Speedscope makes a file that is read" } },
	{ FOREIGN_BINARY, 0, BYTES("JAVA PROFILE 1."), NULL, { "a heap dump of Java (HPROF)",
		"allocations over time are in a recording (JFR)" } },
	{ FOREIGN_BINARY, 0, BYTES("gmon\1\0\0\0"), NULL, { "a profile of gprof (gmon.out)",
		"gprof reads it" } },
	{ FOREIGN_BINARY, 0, BYTES("{\xa9\x03"), NULL, { "statistics of Python's cProfile",
		"they have no stacks; py-spy record -f raw writes folded stacks, which are read" } },
	{ FOREIGN_BINARY, 0, BYTES("{)\x03"), NULL, { "statistics of Python's cProfile",
		"they have no stacks; py-spy record -f raw writes folded stacks, which are read" } },
	{ FOREIGN_TEXT, 0, BYTES("# callgrind format"), NULL, { "a profile of callgrind",
		"callgrind_annotate reads it" } },
	{ FOREIGN_TEXT, 0, BYTES("version: 1\ncreator: callgrind"), NULL, { "a profile of callgrind",
		"callgrind_annotate reads it" } },
	{ FOREIGN_TEXT, 0, BYTES("goroutine "), "]:\n", { "the text of goroutines (debug=2)",
		"ask without debug" } },
	{ FOREIGN_JSON, 0, BYTES("https://www.speedscope.app/file-format-schema.json"), NULL,
		{ "a file of speedscope", "push with epitool push", .is_read = true } },
	{ FOREIGN_JSON, 0, BYTES("\"resourceProfiles\""), NULL, { "a request of OTLP in JSON",
		"send to /v1development/profiles" } },
	{ FOREIGN_JSON, 0, BYTES("\"flamebearer\""), NULL, { "a flame graph in JSON (flamebearer)",
		"request format=pprof from the source" } },
	{ FOREIGN_JSON, 0, BYTES("\"traceEvents\""), NULL, { "a trace of Chrome's format",
		"ui.perfetto.dev opens it" } },
	{ FOREIGN_JSON, 0, BYTES("\"ph\""), "\"ts\"", { "a trace of Chrome's format",
		"ui.perfetto.dev opens it" } },
	{ FOREIGN_JSON, 0, BYTES("\"head\""), "\"callFrame\"", { "a heap profile of V8 (.heapprofile)",
		BY_SPEEDSCOPE } },
	{ FOREIGN_JSON, 0, BYTES("\"callFrame\""), NULL, { "a CPU profile of V8 (.cpuprofile)",
		BY_SPEEDSCOPE } },
	{ FOREIGN_JSON, 0, BYTES("\"snapshot\""), "\"node_fields\"",
		{ "a heap snapshot of V8 (.heapsnapshot)", "open with Chrome's developer tools" } },
	{ FOREIGN_JSON, 0, BYTES("\"preprocessedProfileVersion\""), NULL,
		{ "a profile of the Firefox Profiler", BY_SPEEDSCOPE } },
	/* What is answered or saved instead of a profile. */
	{ FOREIGN_TEXT, 0, BYTES("<!doctype html"), NULL, { "a web page",
		"a login or error page may have answered; check the address and the credentials" } },
	{ FOREIGN_TEXT, 0, BYTES("<html"), NULL, { "a web page",
		"a login or error page may have answered; check the address and the credentials" } },
	{ FOREIGN_TEXT, 0, BYTES("<svg"), NULL, { "an SVG image",
		"send the profile behind the flame graph" } },
	{ FOREIGN_TEXT, 0, BYTES("<?xml"), "<svg", { "an SVG image",
		"send the profile behind the flame graph" } },
	{ FOREIGN_TEXT, 0, BYTES("<?xml"), NULL, { "XML", NULL } },
	{ FOREIGN_TEXT, 0, BYTES("# HELP "), NULL, { "metrics of Prometheus",
		"a CPU profile is at /debug/pprof/profile" } },
	{ FOREIGN_TEXT, 0, BYTES("# TYPE "), NULL, { "metrics of Prometheus",
		"a CPU profile is at /debug/pprof/profile" } },
	{ FOREIGN_TEXT, 0, BYTES("version https://git-lfs"), NULL, { "a pointer of Git LFS",
		"git lfs pull fetches the file" } },
	{ FOREIGN_TEXT, 0, BYTES("H4sI"), NULL, { "gzip in base64", "decode it first" } },
	{ FOREIGN_BINARY, 0, BYTES("\x7f" "ELF"), NULL, { "a program or library (ELF)",
		"upload symbols with epitool debuginfo upload" } },
	{ FOREIGN_BINARY, 0, BYTES("\xcf\xfa\xed\xfe"), NULL, { "a program of macOS (Mach-O)", NULL } },
	{ FOREIGN_BINARY, 0, BYTES("MZ"), NULL, { "a program of Windows", NULL } },
	{ FOREIGN_BINARY, 0, BYTES("\x89PNG"), NULL, { "a PNG image", NULL } },
	{ FOREIGN_BINARY, 0, BYTES("%PDF-"), NULL, { "a PDF", NULL } },
	{ FOREIGN_BINARY, 0, BYTES("SQLite format 3"), NULL, { "a database of SQLite", NULL } },
	/* Archives and compression that is not undone. */
	{ FOREIGN_BINARY, 0, BYTES("PK\3\4"), NULL, { "a zip archive", UNPACK } },
	{ FOREIGN_BINARY, 257, BYTES("ustar"), NULL, { "a tar archive", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("7z\xbc\xaf\x27\x1c"), NULL, { "a 7z archive", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("\xfd" "7zXZ\0"), NULL, { "compressed by xz", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("BZh"), NULL, { "compressed by bzip2", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("\xff\x06\0\0sNaPpY"), NULL, { "compressed by Snappy", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("\x78\x01"), NULL, { "compressed by zlib", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("\x78\x9c"), NULL, { "compressed by zlib", UNPACK } },
	{ FOREIGN_BINARY, 0, BYTES("\x78\xda"), NULL, { "compressed by zlib", UNPACK } },
};
/* clang-format on */

bool foreign_is_text(struct str raw)
{
	size_t n = raw.len < LOOKED_AT_BYTES ? raw.len : LOOKED_AT_BYTES;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)raw.ptr[i];

		if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 127)
			return false;
	}
	return true;
}

static struct str foreign_head(struct str raw, size_t at, size_t n)
{
	if (at > raw.len)
		at = raw.len;
	return (struct str){ raw.ptr + at, raw.len - at < n ? raw.len - at : n };
}

static bool foreign_row_is(const struct foreign_row *row, struct str raw, struct str text)
{
	struct str head = foreign_head(raw, 0, JSON_LOOKED_AT_BYTES);

	if (row->also && str_find(head, str_of(row->also)) < 0)
		return false;
	switch (row->place) {
	case FOREIGN_BINARY:
		return !text.len && str_eq(foreign_head(raw, row->at, row->bytes.len), row->bytes);
	case FOREIGN_TEXT:
		return str_has_prefix_nocase(text, row->bytes);
	case FOREIGN_JSON:
		return text.len && (text.ptr[0] == '{' || text.ptr[0] == '[') &&
			str_find(head, row->bytes) >= 0;
	}
	return false;
}

const struct foreign *foreign_recognize(struct str raw)
{
	struct str text = STR("");

	if (!raw.len)
		return NULL;
	if (foreign_is_text(raw))
		text = str_trim(str_without_bom(raw));
	for (size_t i = 0; i < sizeof(foreign_rows) / sizeof(foreign_rows[0]); i++)
		if (foreign_row_is(&foreign_rows[i], raw, text))
			return &foreign_rows[i].is;
	return NULL;
}

enum err_code foreign_explain(struct str raw, struct err *err)
{
	const struct foreign *f = foreign_recognize(raw);

	if (!f)
		return ERR_OK;
	return err_set(err, ERR_INVALID, "this is %s%s%s", f->what, f->advice ? ": " : "",
		f->advice ? f->advice : "");
}
