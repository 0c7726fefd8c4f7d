/*
 * The oracle of numbers: `go tool pprof`, and real profiles that both programs read. Without Go
 * the tests that ask it fail.
 */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include <stdarg.h>
#include <unistd.h>

#include "tests/check.h"

#define ORACLE_DIR_MAX 64

/* Output of a shell command, both streams where it asks for it; false where it fails. */
static inline bool oracle_run(struct buf *out, const char *fmt, ...)
{
	char command[2048], chunk[4096];
	va_list ap;
	size_t n;
	FILE *f;
	int rc;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	buf_clear(out);
	if (!(f = popen(command, "r")))
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(out, chunk, n);
	rc = pclose(f);
	if (rc != 0)
		printf("  %s: exit %d: " STR_FMT "\n", command, rc, STR_ARG(buf_str(out)));
	return rc == 0;
}

static inline bool oracle_read(struct buf *out, const char *dir, const char *name)
{
	char path[256], chunk[4096];
	size_t n;
	FILE *f;

	buf_clear(out);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!(f = fopen(path, "rb")))
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(out, chunk, n);
	fclose(f);
	return out->len > 0;
}

static inline bool oracle_write(struct str data, const char *dir, const char *name)
{
	char path[256];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!(f = fopen(path, "wb")))
		return false;
	ok = fwrite(data.ptr, 1, data.len, f) == data.len;
	return fclose(f) == 0 && ok;
}

static char oracle_dir_name[ORACLE_DIR_MAX];

static inline void oracle_cleanup(void)
{
	struct buf out = { 0 };

	if (oracle_dir_name[0])
		oracle_run(&out, "rm -rf '%s'", oracle_dir_name);
	buf_release(&out);
}

/* A directory of this test program, removed at its end. NULL where there can be none. */
static inline const char *oracle_dir(void)
{
	if (!oracle_dir_name[0]) {
		snprintf(oracle_dir_name, sizeof(oracle_dir_name), "/tmp/epi-oracle-XXXXXX");
		if (!mkdtemp(oracle_dir_name)) {
			oracle_dir_name[0] = '\0';
			return NULL;
		}
		atexit(oracle_cleanup);
	}
	return oracle_dir_name;
}

/*
 * Profiles of a Go program at work: cpu, heap, allocs, block, mutex, goroutine, threadcreate
 * (.pb.gz) in oracle_dir(), made once per program.
 */
static inline const char *oracle_profiles(void)
{
	static bool made;
	struct buf out = { 0 };
	const char *dir = oracle_dir();

	if (dir && !made)
		made = oracle_run(&out, "go run tests/proto/goprofiles/main.go -cpu %s '%s' 2>&1",
			check_is_short() ? "500ms" : "2s", dir);
	buf_release(&out);
	return made ? dir : NULL;
}

/*
 * The program that `go tool pprof` runs, found once: go itself takes far longer than pprof. That
 * command, where the program is not to be found.
 */
static inline const char *oracle_tool(void)
{
	static char path[512];
	struct buf out = { 0 };

	if (!path[0]) {
		oracle_run(&out,
			"go tool pprof -h >/dev/null 2>&1; p=$(go tool -n pprof) && "
			"test -x \"$p\" && printf %%s \"$p\" || echo go tool pprof");
		snprintf(path, sizeof(path), STR_FMT, STR_ARG(str_trim(buf_str(&out))));
		buf_release(&out);
	}
	return path;
}

/* The output of `go tool pprof FLAGS DIR/FILE`, in UTC, without this machine's binaries. */
static inline bool oracle_pprof(
	struct buf *out, const char *flags, const char *dir, const char *file)
{
	return oracle_run(out,
		"cd '%s' && TZ=UTC PPROF_TMPDIR='%s' %s -symbolize=remote %s %s 2>tool.err "
		"|| { cat tool.err; false; }",
		dir, dir, oracle_tool(), flags, file);
}

/* ---- rows of `-top`, values without unit ---- */

struct oracle_row {
	int64_t flat, cum;
	char percents[3][16]; /* flat, sum, cum */
	struct str name;
};

struct oracle_rows {
	struct oracle_row v[8192];
	size_t n;
	int64_t total; /* -1: not said */
};

/* Names point into the text. */
static inline bool oracle_read_top(struct str text, struct oracle_rows *out)
{
	bool in_rows = false;
	char line[8192], flat[64], cum[64];
	const char *of;
	int at;

	out->n = 0;
	out->total = -1;
	while (text.len > 0 && out->n < sizeof(out->v) / sizeof(out->v[0])) {
		ptrdiff_t end = str_find(text, STR("\n"));
		struct str l = { text.ptr, end < 0 ? text.len : (size_t)end };
		struct oracle_row *row = &out->v[out->n];

		text = (struct str){ l.ptr + l.len + (end >= 0), text.len - l.len - (end >= 0) };
		snprintf(line, sizeof(line), STR_FMT, STR_ARG(l));
		if (!in_rows) {
			if (!strncmp(line, "Showing nodes", 13) && (of = strstr(line, " of ")))
				out->total = strtoll(of + 4, NULL, 10);
			in_rows = strstr(line, "flat%") != NULL;
			continue;
		}
		if (sscanf(line, "%63s %15s %15s %63s %15s %n", flat, row->percents[0], row->percents[1],
				cum, row->percents[2], &at) != 5)
			return false;
		row->flat = strtoll(flat, NULL, 10);
		row->cum = strtoll(cum, NULL, 10);
		row->name = (struct str){ l.ptr + at, l.len - (size_t)at };
		if (str_has_suffix(row->name, STR(" (inline)")))
			row->name.len -= 9;
		if (str_has_suffix(row->name, STR(" (partial-inline)")))
			row->name.len -= 17;
		out->n++;
	}
	return in_rows;
}

/* A share as the tool rounds it. */
static inline void oracle_percent(char text[16], double v)
{
	if (v >= 99.95 && v <= 100.05)
		snprintf(text, 16, "100%%");
	else
		snprintf(text, 16, v >= 1 ? "%.2f%%" : "%.2g%%", v);
}

/* A report without its "Time:" line, which versions of the tool print differently. */
static inline void oracle_without_time(struct buf *out, struct str s)
{
	buf_clear(out);
	while (s.len > 0) {
		ptrdiff_t end = str_find(s, STR("\n"));
		struct str line = { s.ptr, end < 0 ? s.len : (size_t)end + 1 };

		if (!str_has_prefix(line, STR("Time: ")))
			buf_add_str(out, line);
		s = (struct str){ s.ptr + line.len, s.len - line.len };
	}
}

/* Fails with the first line that differs. */
static inline void oracle_check_text(const char *what, struct str got, struct str want)
{
	size_t i = 0, line = 0, n = got.len < want.len ? got.len : want.len;

	if (str_eq(got, want))
		return;
	for (; i < n && got.ptr[i] == want.ptr[i]; i++)
		if (got.ptr[i] == '\n')
			line = i + 1;
	struct str g = { got.ptr + line, got.len - line }, w = { want.ptr + line, want.len - line };

	g.len = str_find(g, STR("\n")) >= 0 ? (size_t)str_find(g, STR("\n")) : g.len;
	w.len = str_find(w, STR("\n")) >= 0 ? (size_t)str_find(w, STR("\n")) : w.len;
	CHECK_FAIL(
		"%s:\n    got  \"" STR_FMT "\"\n    want \"" STR_FMT "\"", what, STR_ARG(g), STR_ARG(w));
}

#endif
