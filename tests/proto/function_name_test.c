/*
 * Names as `go tool pprof` shows them: it is given a profile with a function per symbol, and what
 * it makes of them is read from the profile that it writes.
 */
#include "proto/function_name.h"

#include "proto/pprof.h"
#include "tests/draw.h"
#include "tests/oracle.h"

struct symbols {
	struct arena arena;
	struct str *v;
	size_t n, cap;
};

static void add(struct symbols *s, struct str name)
{
	struct str *grown;

	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		grown = arena_array(&s->arena, struct str, s->cap);
		if (s->n)
			memcpy(grown, s->v, s->n * sizeof(*grown));
		s->v = grown;
	}
	s->v[s->n++] = str_dup(&s->arena, name);
}

static bool write_profile(const struct symbols *s, struct arena *a)
{
	struct buf wire = { 0 };
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;
	bool ok;

	if (pprof_builder_open(a, &b, &err))
		return false;
	pprof_builder_type(b, STR("cost"), STR("count"));
	for (size_t i = 0; i < s->n; i++) {
		uint32_t name = pprof_builder_string(b, s->v[i]), location;
		struct pprof_line line = { .function = pprof_builder_function(b,
						   &(struct pprof_function){ .name = name,
							   .system_name = name,
							   .start_line = (int64_t)i + 1 }) };

		location = pprof_builder_location(b,
			(struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line, 1);
		pprof_builder_sample(b, &location, 1, NULL, 0, (int64_t[]){ 1 });
	}
	ok = !pprof_builder_finish(b, &p, &err) && !pprof_encode(p, &wire, &err) &&
		oracle_write(buf_str(&wire), oracle_dir(), "symbols.pb");
	buf_release(&wire);
	return ok;
}

/* Differences are counted, the first of them shown. */
static void compare(const char *what, const struct symbols *s)
{
	struct buf out = { 0 }, body = { 0 }, got = { 0 };
	size_t wrong = 0, shown = 0;
	struct pprof *p;
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	REQUIRE(write_profile(s, &a));
	REQUIRE(oracle_run(&out,
		"cd '%s' && PPROF_TMPDIR='%s' go tool pprof -symbolize=remote -proto "
		"-output=shown.pb.gz symbols.pb 2>tool.err || { cat tool.err; false; }",
		oracle_dir(), oracle_dir()));
	REQUIRE(oracle_read(&body, oracle_dir(), "shown.pb.gz"));
	REQUIRE_OK(pprof_inflate(&a, buf_str(&body), &pprof_limits_default, &raw, &err), &err);
	REQUIRE_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->functions_n, s->n);
	for (uint32_t i = 0; i < p->functions_n; i++) {
		const struct pprof_function *f = &p->functions[i];
		struct str name = p->strings[f->system_name], want = p->strings[f->name], is;

		buf_clear(&got);
		is = function_name_shown(name, name, &got) ? buf_str(&got) : name;
		if (want.len == 0) /* all of it stood in brackets */
			want = name;
		shown += !str_eq(is, name);
		if (!str_eq(is, want) && wrong++ < 20)
			CHECK_FAIL("%s: " STR_FMT "\n    got  " STR_FMT "\n    want " STR_FMT, what,
				STR_ARG(name), STR_ARG(is), STR_ARG(want));
	}
	if (wrong)
		CHECK_FAIL("%s: %zu of %zu differ", what, wrong, s->n);
	printf("  %s: %zu names, %zu of them mangled\n", what, s->n, shown);
	arena_release(&a);
	buf_release(&out);
	buf_release(&body);
	buf_release(&got);
}

/* This program's own: LevelDB, RE2 and the C++ library are in it. */
TEST(symbols_of_a_program)
{
	struct symbols s = { .n = 0 };
	struct buf out = { 0 };
	struct str rest;

	REQUIRE(oracle_dir());
	arena_init(&s.arena, 0);
	REQUIRE(oracle_run(&out, "%s",
		getenv("EPI_SYMBOLS") ? getenv("EPI_SYMBOLS") :
					"nm /proc/$PPID/exe | cut -c20- | sort -u"));
	for (rest = buf_str(&out); rest.len > 0;) {
		ptrdiff_t end = str_find(rest, STR("\n"));
		struct str line = { rest.ptr, end < 0 ? rest.len : (size_t)end };

		if (line.len > 0 && line.len < 60000)
			add(&s, line);
		rest = (struct str){ rest.ptr + line.len + (end >= 0), rest.len - line.len - (end >= 0) };
	}
	compare("symbols", &s);
	arena_release(&s.arena);
	buf_release(&out);
}
