/*
 * The oracle of numbers: `go tool pprof`, and real profiles for it and us to read. Go must be
 * there: without it the tests that ask it fail.
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
		made = oracle_run(
			&out, "go run tests/proto/goprofiles/main.go -cpu 2s '%s' 2>&1", dir);
	buf_release(&out);
	return made ? dir : NULL;
}

/* What `go tool pprof FLAGS DIR/FILE` prints, in UTC, asking no binary of this machine. */
static inline bool oracle_pprof(
	struct buf *out, const char *flags, const char *dir, const char *file)
{
	return oracle_run(out,
		"cd '%s' && TZ=UTC PPROF_TMPDIR='%s' go tool pprof -symbolize=none %s %s "
		"2>tool.err "
		"|| { cat tool.err; false; }",
		dir, dir, flags, file);
}

/* Says the first line that differs. */
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
	CHECK_FAIL("%s:\n    got  \"" STR_FMT "\"\n    want \"" STR_FMT "\"", what, STR_ARG(g),
		STR_ARG(w));
}

#endif
