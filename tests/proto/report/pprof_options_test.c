/*
 * Every option of the text report beside `go tool pprof`: all profiles of the tests' data, profiles
 * of a program at work and drawn ones, each option alone and some together, byte for byte. The tool
 * answers all cases of a file in one run.
 */
#include "proto/report/pprof_options.h"

#include <glob.h>

#include "base/gzip/gzip.h"
#include "proto/report/pprof_base.h"
#include "proto/report/pprof_top.h"
#include "tests/draw.h"
#include "tests/oracle.h"
#include "tests/proto/report/canonical.h"

#define CASES_MAX 160
#define SETTINGS_MAX 4

struct setting {
	const struct pprof_option *row;
	char value[256];
};

struct option_case {
	uint32_t type;
	size_t n;
	struct setting v[SETTINGS_MAX];
};

struct corpus {
	struct arena arena;
	struct buf body, base_body;
	const char *path, *base_path, *flags;
	struct pprof *p, *base; /* base may be NULL */
	struct pprof_base_options base_options;
	struct draw draw;
	struct option_case cases[CASES_MAX];
	size_t n;
};

static size_t compared, noinlines_changed, files;

/* ---- cases ---- */

static const struct pprof_option *row_of(const char *name)
{
	for (size_t i = 0; i < PPROF_OPTIONS; i++)
		if (!strcmp(pprof_option_rows[i].name, name))
			return &pprof_option_rows[i];
	CHECK_FAIL("no option %s", name);
	return &pprof_option_rows[0];
}

static void set(struct option_case *k, const char *name, const char *value)
{
	if (k->n == SETTINGS_MAX)
		return;
	k->v[k->n].row = row_of(name);
	snprintf(k->v[k->n++].value, sizeof(k->v[0].value), "%s", value);
}

static struct option_case *add_case(struct corpus *c)
{
	struct option_case *k = &c->cases[c->n];

	CHECK(c->n + 1 < CASES_MAX);
	*k = (struct option_case){ .type = draw(&c->draw, c->p->types_n) };
	c->n += c->n + 1 < CASES_MAX;
	return k;
}

/* Text that the tool's prompt takes as it is. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || strchr(",=", s.ptr[i]))
			return false;
	return s.len > 0 && s.len < 60 && str_find(s, STR("//:")) < 0;
}

static void draw_key(struct corpus *c, char *out, size_t size)
{
	struct str key = STR("nowhere");

	if (c->p->labels_n) {
		key = c->p->strings[c->p->labels[draw(&c->draw, c->p->labels_n)].key];
		if (!is_plain(key))
			key = STR("nowhere");
	}
	snprintf(out, size, STR_FMT, STR_ARG(key));
}

/* A folder of some function's file, in full or by its last element. */
static void draw_folder(struct corpus *c, bool whole, char *out, size_t size)
{
	struct str path = STR("/usr/lib/x.c");
	size_t end;

	if (c->p->functions_n)
		path = c->p->strings[c->p->functions[draw(&c->draw, c->p->functions_n)].filename];
	end = path.len ? draw(&c->draw, (uint32_t)path.len) : 0;
	while (end > 0 && path.ptr[end] != '/')
		end--;
	path.len = end;
	if (!whole)
		path = str_base_name(path);
	snprintf(out, size, STR_FMT, STR_ARG(is_plain(path) ? path : STR("/usr")));
}

static void draw_value(struct corpus *c, const struct pprof_option *row, char *out, size_t size)
{
	static const char *const units[] = { "ms", "s", "ns", "us", "hours", "kb", "MB", "bytes",
		"auto", "minimum", "count", "nonsense" };
	static const char *const shares[] = { "0.005", "0.05", "0.3", "0.0001", "1" };
	static const char *const divisors[] = { "2", "1000", "0.5", "3.5", "1e3" };
	const char *at = row->choices;
	char more[64];

	switch (row->kind) {
	case PPROF_OPTION_BOOL:
		snprintf(out, size, "%s", strcmp(row->name, "trim") ? "true" : "false");
		return;
	case PPROF_OPTION_COUNT:
		snprintf(out, size, "%u", draw(&c->draw, 12));
		return;
	case PPROF_OPTION_SHARE:
		snprintf(out, size, "%s", shares[draw(&c->draw, 5)]);
		return;
	case PPROF_OPTION_DIVISOR:
		snprintf(out, size, "%s", divisors[draw(&c->draw, 5)]);
		return;
	case PPROF_OPTION_CHOICE:
		for (uint32_t skip = draw(&c->draw, 5); skip > 0 && strchr(at, '|'); skip--)
			at = strchr(at, '|') + 1;
		snprintf(out, size, "%.*s", (int)strcspn(at, "|"), at);
		return;
	case PPROF_OPTION_TEXT:
		break;
	}
	if (!strcmp(row->name, "unit")) {
		snprintf(out, size, "%s", units[draw(&c->draw, sizeof(units) / sizeof(units[0]))]);
	} else if (!strncmp(row->name, "tag", 3)) {
		draw_key(c, out, size);
		draw_key(c, more, sizeof(more));
		if (draw(&c->draw, 3) == 0)
			snprintf(out + strlen(out), size - strlen(out), ",%s", more);
	} else {
		draw_folder(c, row->name[0] == 't', out, size);
		draw_folder(c, row->name[0] == 't', more, sizeof(more));
		if (draw(&c->draw, 2) == 0)
			snprintf(out + strlen(out), size - strlen(out), ":%s", more);
	}
}

static void draw_setting(struct corpus *c, struct option_case *k, const struct pprof_option *row)
{
	char value[256];

	/* Of rows that share cost and name it is chance which the tool shows; files have many. */
	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].row == row || (k->v[i].row == row_of("nodecount") && row->choices) ||
			(k->v[i].row->choices && row == row_of("nodecount")))
			return;
	draw_value(c, row, value, sizeof(value));
	set(k, row->name, value);
}

/* Paths show in rows of files only. */
static bool needs_files(const struct pprof_option *row)
{
	return strstr(row->name, "_path") || !strcmp(row->name, "showcolumns");
}

static void draw_cases(struct corpus *c, size_t chains)
{
	static const char *const granularities[] = { "filefunctions", "files", "lines", "addresses" };
	struct option_case *k;

	for (uint32_t t = 0; t < c->p->types_n && t < 4; t++) {
		add_case(c)->type = t;
		k = add_case(c);
		k->type = t;
		set(k, "noinlines", "true");
	}
	for (size_t i = 0; i < 8; i++) {
		k = add_case(c);
		set(k, "granularity", granularities[i % 4]);
		if (i >= 4)
			set(k, "noinlines", "true");
	}
	for (size_t i = 0; i < PPROF_OPTIONS; i++) {
		k = add_case(c);
		draw_setting(c, k, &pprof_option_rows[i]);
		if (needs_files(&pprof_option_rows[i]))
			set(k, "granularity", "lines");
	}
	for (size_t i = 0; i < chains; i++) {
		k = add_case(c);
		for (size_t n = 2 + draw(&c->draw, 3); n > 0; n--)
			draw_setting(c, k, &pprof_option_rows[draw(&c->draw, PPROF_OPTIONS)]);
	}
}

/* ---- the tool's answers ---- */

static void script_reset(struct buf *script)
{
	buf_add_cstr(script,
		"nodecount=0\nnodefraction=0\nedgefraction=0.001\ntrim=true\nsort=flat\n"
		"granularity=functions\nnoinlines=false\nunit=minimum\ndivide_by=1\n"
		"relative_percentages=false\ndrop_negative=false\ncompact_labels=false\n"
		"showcolumns=false\ntagroot=\ntagleaf=\ntrim_path=\nsource_path=\n");
}

static bool ask_tool(struct corpus *c)
{
	struct buf script = { 0 }, out = { 0 };
	bool ok;

	for (size_t i = 0; i < c->n; i++) {
		const struct option_case *k = &c->cases[i];

		script_reset(&script);
		buf_printf(&script, "sample_index=" STR_FMT "\n",
			STR_ARG(c->p->strings[c->p->types[k->type].type]));
		for (size_t s = 0; s < k->n; s++)
			buf_printf(&script, "%s=%s\n", k->v[s].row->name, k->v[s].value);
		buf_printf(&script, "top >%s/case%zu\n", oracle_dir(), i);
	}
	ok = oracle_write(buf_str(&script), oracle_dir(), "script") &&
		oracle_run(&out,
			"rm -f '%s'/case*; TZ=UTC PPROF_TMPDIR='%s' PPROF_BINARY_PATH=/nowhere %s "
			"-symbolize=none %s %s '%s' <'%s/script' 2>'%s/tool.err' || "
			"{ cat '%s/tool.err'; false; }",
			oracle_dir(), oracle_dir(), oracle_tool(), c->flags, c->base ? c->base_path : "",
			c->path, oracle_dir(), oracle_dir(), oracle_dir());
	buf_release(&script);
	buf_release(&out);
	return ok;
}

/* ---- ours ---- */

static enum err_code print_ours(
	struct corpus *c, const struct option_case *k, struct buf *out, struct err *err)
{
	struct pprof_options options = pprof_options_default;
	struct pprof_top_options o = { .type = k->type, .options = &options };
	const struct pprof *p = c->p;
	struct pprof *left;
	struct arena a;
	enum err_code rc = ERR_OK;

	arena_init(&a, 0);
	for (size_t i = 0; i < k->n && !rc; i++)
		rc = pprof_options_set(&options, k->v[i].row, str_of(k->v[i].value), err);
	if (!rc && c->base) {
		rc = pprof_without_base((struct pprof_side){ c->p, k->type },
			(struct pprof_side){ c->base, pprof_same_type(c->base, c->p, k->type) },
			&c->base_options, &a, &left, err);
		p = left;
		o.type = 0;
	}
	if (!rc)
		rc = pprof_top_print(p, &o, &a, out, err);
	arena_release(&a);
	return rc;
}

static void compare_case(struct corpus *c, size_t i)
{
	const struct option_case *k = &c->cases[i];
	struct buf want = { 0 }, got = { 0 }, want_rows = { 0 }, got_rows = { 0 };
	char name[32], what[1400];
	bool by_cum = false;
	struct err err;

	snprintf(name, sizeof(name), "case%zu", i);
	snprintf(what, sizeof(what), "%s %s " STR_FMT, c->flags, c->path,
		STR_ARG(c->p->strings[c->p->types[k->type].type]));
	for (size_t s = 0; s < k->n; s++) {
		snprintf(what + strlen(what), sizeof(what) - strlen(what), " -%s=%s", k->v[s].row->name,
			k->v[s].value);
		by_cum |= !strcmp(k->v[s].value, "cum");
	}
	if (!oracle_read(&want, oracle_dir(), name)) {
		CHECK_FAIL("%s: the tool says nothing", what);
	} else {
		CHECK_OK(print_ours(c, k, &got, &err), &err);
		canonical(&want_rows, buf_str(&want), by_cum);
		canonical(&got_rows, buf_str(&got), by_cum);
		oracle_check_text(what, buf_str(&got_rows), buf_str(&want_rows));
		compared++;
	}
	buf_release(&want);
	buf_release(&got);
	buf_release(&want_rows);
	buf_release(&got_rows);
}

/* Whether some table with noinlines is another than the one without, which is the case before. */
static bool noinlines_matters(struct corpus *c)
{
	struct buf with = { 0 }, without = { 0 };
	bool yes = false;

	for (uint32_t t = 0; t < c->p->types_n && t < 4; t++) {
		char name[32];

		snprintf(name, sizeof(name), "case%u", 2 * t);
		oracle_read(&without, oracle_dir(), name);
		snprintf(name, sizeof(name), "case%u", 2 * t + 1);
		oracle_read(&with, oracle_dir(), name);
		yes |= !str_eq(buf_str(&with), buf_str(&without));
	}
	buf_release(&with);
	buf_release(&without);
	return yes;
}

/* ---- corpora ---- */

static struct pprof *load(struct corpus *c, const char *path, struct buf *body)
{
	char dir[128];
	const char *name = strrchr(path, '/') + 1;
	struct pprof *p = NULL;
	struct err err;
	struct str raw;

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path);
	if (!oracle_read(body, dir, name) ||
		pprof_inflate(&c->arena, buf_str(body), &pprof_limits_default, &raw, &err) ||
		pprof_decode(&c->arena, raw, &pprof_limits_default, &p, &err))
		CHECK_FAIL("%s cannot be read", path);
	return p;
}

struct base_way {
	const char *flags;
	struct pprof_base_options options;
};

/* base NULL: the file alone. */
static void compare_pair(
	const char *path, const char *base, const struct base_way *way, uint64_t seed, size_t chains)
{
	struct corpus *c = calloc(1, sizeof(*c));

	REQUIRE(c);
	arena_init(&c->arena, 0);
	c->path = path;
	c->flags = way->flags;
	c->draw.state = seed;
	c->base_path = base;
	c->base_options = way->options;
	c->p = load(c, path, &c->body);
	if (base)
		c->base = load(c, base, &c->base_body);
	if (c->p && c->p->types_n > 0) {
		draw_cases(c, chains);
		CHECK(ask_tool(c));
		for (size_t i = 0; i < c->n; i++)
			compare_case(c, i);
		noinlines_changed += noinlines_matters(c);
		files++;
	}
	arena_release(&c->arena);
	buf_release(&c->body);
	buf_release(&c->base_body);
	free(c);
}

static void compare_file(const char *path, uint64_t seed, size_t chains)
{
	static const struct base_way alone = { .flags = "" };

	compare_pair(path, NULL, &alone, seed, chains);
}

static void compare_all(const char *pattern, size_t chains)
{
	glob_t found;

	REQUIRE(glob(pattern, 0, NULL, &found) == 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		compare_file(found.gl_pathv[i], 77 + i, chains);
	globfree(&found);
}

/* ---- profiles that have what the recorded ones lack ---- */

/* Paths to be cleaned, columns, labels of all kinds, both signs in equal stacks. */
static void enrich(struct pprof *p, struct arena *a, struct draw *d)
{
	static const char *const paths[] = { "/proc/self/cwd/src/./a.go", "src//a.go", "src/a.go",
		"/x/../x/b.go", "/x/b.go", "./c/", "c", "../d.go", "/proj/e/proj/e.c", "/../f.go", "." };
	static const char *const units[] = { "", "", "bytes", "kilobytes", "ms", "requests" };
	static const char *const keys[] = { "handler", "size", "span", "a/./b" };
	static const char *const values[] = { "/home", "/cart", "x", "" };
	uint32_t strings_n = p->strings_n, n = 0;
	struct str *strings = arena_array(a, struct str, strings_n + 32);
	struct pprof_label *labels = arena_array(a, struct pprof_label, p->samples_n * 4 + 1);

	REQUIRE(strings && labels);
	memcpy(strings, p->strings, strings_n * sizeof(*strings));
	for (uint32_t i = 0; i < 11; i++)
		strings[strings_n + i] = str_of(paths[i]);
	for (uint32_t i = 0; i < 6; i++)
		strings[strings_n + 11 + i] = str_of(units[i]);
	for (uint32_t i = 0; i < 4; i++) {
		strings[strings_n + 17 + i] = str_of(keys[i]);
		strings[strings_n + 21 + i] = str_of(values[i]);
	}
	p->strings = strings;
	p->strings_n += 25;
	for (uint32_t i = 0; i < p->functions_n; i++) {
		p->functions[i].filename = strings_n + draw(d, 11);
		p->functions[i].start_line = 0; /* rows that differ in this alone come in any order */
	}
	for (uint32_t i = 0; i < p->lines_n; i++) {
		p->lines[i].line = draw(d, 4);
		p->lines[i].column = draw(d, 3);
	}
	for (uint32_t i = 0; i < p->samples_n; i++) {
		struct pprof_sample *s = &p->samples[i];
		uint32_t labels_n = draw(d, 5);

		if (i > 0 && draw(d, 4) == 0) { /* as the one before, with the other sign */
			*s = p->samples[i - 1];
			p->values[i] = -p->values[i - 1] / (1 + draw(d, 2));
			continue;
		}
		s->label_first = n;
		s->label_n = labels_n;
		for (uint32_t k = 0; k < labels_n; k++) {
			struct pprof_label *l = &labels[n++];
			uint32_t unit = draw(d, 6);

			*l = (struct pprof_label){ .key = strings_n + 17 + draw(d, 4) };
			if (draw(d, 2)) {
				l->str = strings_n + 21 + draw(d, 3);
			} else {
				l->num = 1 + draw(d, 1u << draw(d, 24));
				l->num_unit = unit > 1 ? strings_n + 11 + unit : 0;
			}
		}
	}
	p->labels = labels;
	p->labels_n = n;
}

static void write_profile(const struct pprof *p, const char *name)
{
	struct buf wire = { 0 }, gz = { 0 };
	struct err err;

	CHECK_OK(pprof_encode(p, &wire, &err), &err);
	CHECK_OK(gzip_compress(buf_str(&wire), 1, &gz, &err), &err);
	CHECK(oracle_write(buf_str(&gz), oracle_dir(), name));
	buf_release(&wire);
	buf_release(&gz);
}

static void write_drawn(uint32_t seed, bool rich, const char *name)
{
	struct draw d = { 4242 + seed * UINT64_C(0x9e3779b97f4a7c15) };
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE((p = draw_profile(&a, &d, &err)));
	if (rich)
		enrich(p, &a, &d);
	write_profile(p, name);
	arena_release(&a);
}

TEST(recorded_files_print_as_the_tool_does)
{
	REQUIRE(oracle_dir());
	compare_all("tests/proto/testdata/*.pb.gz", 40);
	printf("  %zu tables of %zu files; noinlines changes %zu files\n", compared, files,
		noinlines_changed);
	CHECK(noinlines_changed >= 5);
}

TEST(a_program_at_work_prints_as_the_tool_does)
{
	char pattern[128];

	REQUIRE(oracle_profiles());
	snprintf(pattern, sizeof(pattern), "%s/*.pb.gz", oracle_dir());
	compare_all(pattern, 40);
	printf("  %zu tables of %zu files; noinlines changes %zu files\n", compared, files,
		noinlines_changed);
}

TEST(drawn_profiles_print_as_the_tool_does)
{
	char name[64], path[128];

	REQUIRE(oracle_dir());
	for (uint32_t i = 0; i < 40; i += CHECK_STEP) {
		snprintf(name, sizeof(name), "drawn%u.pb.gz", i);
		snprintf(path, sizeof(path), "%s/%s", oracle_dir(), name);
		write_drawn(i, i % 4, name);
		compare_file(path, i, 100);
	}
	printf("  %zu tables of %zu files; noinlines changes %zu files\n", compared, files,
		noinlines_changed);
}

/* Another time of the same program: other costs, some gone, and its binaries somewhere else. */
static void write_base(const char *path, const char *name)
{
	struct corpus c = { 0 };
	struct pprof *p;

	arena_init(&c.arena, 0);
	REQUIRE((p = load(&c, path, &c.body)));
	for (uint32_t i = 0; i < p->samples_n * p->types_n; i++)
		p->values[i] = i / p->types_n % 5 == 3 ? 0 : p->values[i] / (1 + i / p->types_n % 3);
	for (uint32_t i = 0; i < p->mappings_n; i++) {
		p->mappings[i].start += 0x7000;
		p->mappings[i].limit += 0x7010;
	}
	for (uint32_t i = 0; i < p->locations_n; i++)
		if (p->locations[i].mapping != PPROF_NONE)
			p->locations[i].address += 0x7000;
	write_profile(p, name);
	arena_release(&c.arena);
	buf_release(&c.body);
}

static const struct base_way ways[] = {
	{ "-base", { 0 } },
	{ "-diff_base", { .diff_base = true } },
	{ "-normalize -base", { .normalize = true } },
	{ "-normalize -diff_base", { .diff_base = true, .normalize = true } },
};

TEST(bases_are_subtracted_as_by_the_tool)
{
	char path[128], base[128];
	glob_t found;
	size_t n = 0;

	REQUIRE(oracle_dir());
	snprintf(base, sizeof(base), "%s/base.pb.gz", oracle_dir());
	REQUIRE(glob("tests/proto/testdata/*.pb.gz", 0, NULL, &found) == 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		write_base(found.gl_pathv[i], "base.pb.gz");
		for (size_t w = i % CHECK_STEP; w < 4; w += CHECK_STEP)
			compare_pair(found.gl_pathv[i], base, &ways[w], n++, 20);
	}
	globfree(&found);
	for (uint32_t i = 0; i < 40; i += CHECK_STEP) {
		snprintf(path, sizeof(path), "%s/new.pb.gz", oracle_dir());
		write_drawn(i / 2, i % 4, "new.pb.gz");
		if (i % 3)
			write_drawn(i / 2, i % 4, "base.pb.gz"); /* most cancels out */
		else
			write_base(path, "base.pb.gz");
		compare_pair(path, base, &ways[i / 2 % 4], n++, 40);
	}
	printf("  %zu tables of %zu pairs\n", compared, n);
}
