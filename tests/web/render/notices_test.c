/* Warnings and infos of an answer, in formats other than JSON. */
#include "web/render/notices.h"

#include "tests/oracle.h"
#include "tests/values.h"
#include "web/render/render.h"

static struct arena arena;

/* ---- the header ---- */

static struct str header_of(const struct notices *n, struct http_out *out)
{
	struct err err;

	*out = (struct http_out){ 0 };
	CHECK_OK(notices_add_header(n, &arena, out, &err), &err);
	if (!out->headers_n)
		return STR("");
	CHECK_INT(out->headers_n, 1);
	CHECK_STR(str_of(out->headers[0].name), "Warning");
	CHECK_INT(out->headers[0].value.ptr[out->headers[0].value.len], '\0');
	return out->headers[0].value;
}

/* "warning: text\n" for each notice that is read back. */
static void read_all(struct buf *out, struct str header)
{
	struct buf text = { 0 };
	bool is_info;

	buf_clear(out);
	while (notices_read(&header, &is_info, &text)) {
		buf_printf(out, "%s: " STR_FMT "\n", is_info ? "info" : "warning", STR_ARG(buf_str(&text)));
		buf_clear(&text);
	}
	buf_release(&text);
}

TEST(header_and_back)
{
	static const struct {
		const char *warning, *info;
		const char *header, *back;
	} rows[] = {
		{ NULL, NULL, "", "" },
		{ "rows may be missing", NULL, "299 - \"rows may be missing\"",
			"warning: rows may be missing\n" },
		{ NULL, "whole steps", "199 - \"whole steps\"", "info: whole steps\n" },
		{ "a, b", "c", "299 - \"a, b\", 199 - \"c\"", "warning: a, b\ninfo: c\n" },
		{ "file \"x\\y\"", NULL, "299 - \"file \\\"x\\\\y\\\"\"", "warning: file \"x\\y\"\n" },
		{ "a\r\nSet-Cookie: b\x1b", NULL, "299 - \"a\\\\r\\\\nSet-Cookie: b\\\\x1b\"",
			"warning: a\\r\\nSet-Cookie: b\\x1b\n" },
		{ "gr\xc3\xb6\xc3\x9f"
		  "er \xf0\x9f\x99\x82\xff",
			NULL, "299 - \"gr\\\\u00f6\\\\u00dfer \\\\U0001f642\\\\xff\"",
			"warning: gr\\u00f6\\u00dfer \\U0001f642\\xff\n" },
	};
	struct buf back = { 0 };

	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str w = str_of(rows[i].warning), f = str_of(rows[i].info), got;
		struct notices n = { &w, &f, w.ptr != NULL, f.ptr != NULL };
		struct http_out out;

		got = header_of(&n, &out);
		CHECK_STR(got, rows[i].header);
		read_all(&back, got);
		CHECK_STR(buf_str(&back), rows[i].back);
	}
	buf_release(&back);
	arena_release(&arena);
}

TEST(header_is_bounded)
{
	static char text[5000];
	struct str warnings[40], infos[40], value;
	struct notices n = { warnings, infos, 40, 40 };
	struct http_out out;
	struct buf back = { 0 };

	arena_init(&arena, 0);
	memset(text, '\n', sizeof(text));
	for (size_t i = 0; i < 40; i++)
		warnings[i] = infos[i] = (struct str){ text, sizeof(text) };
	value = header_of(&n, &out);
	CHECK(value.len > 8u * 250 && value.len < 2600);
	read_all(&back, value);
	CHECK(str_has_suffix(
		buf_str(&back), STR("\\n...\nwarning: and 32 more warnings\ninfo: and 40 more infos\n")));
	n.warnings_n = n.infos_n = 4;
	read_all(&back, header_of(&n, &out));
	CHECK(str_find(buf_str(&back), STR("more")) < 0);
	n.infos_n = 5;
	read_all(&back, header_of(&n, &out));
	CHECK(str_has_suffix(buf_str(&back), STR("\ninfo: and 1 more info\n")));
	buf_release(&back);
	arena_release(&arena);
}

/* Headers of other servers: read as far as they are well-formed. */
TEST(headers_of_others)
{
	static const struct {
		const char *header, *want;
	} rows[] = {
		{ "110 anderson/1.3.37 \"Response is stale\"", "warning: Response is stale\n" },
		{ "112 - \"a\" \"Sat, 25 Aug 2012 23:34:45 GMT\",199 host:80 \"b\"",
			"warning: a\ninfo: b\n" },
		{ " , 299 - \"\" ,, 299 - \"x\" ", "warning: \nwarning: x\n" },
		{ "299 - \"open", "" },
		{ "299 - \"open\\", "" },
		{ "299 - \"a\" b", "" },
		{ "299 - \"a\", 299", "warning: a\n" },
		{ "2999 - \"a\"", "" },
		{ "299  \"a\"", "" },
		{ "", "" },
		{ ",", "" },
	};
	struct buf got = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		read_all(&got, str_of(rows[i].header));
		CHECK_STR(buf_str(&got), rows[i].want);
	}
	buf_release(&got);
}

/* ---- formats ---- */

static const struct str warnings[] = { STR("rows of a block may be missing: line\nend") };
static const struct str infos[] = { STR("taken in whole steps") };

/* One sample of main.work, and a result with a warning. */
static struct profile_value *work(struct values *v, const char *comment)
{
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;
	uint32_t location;

	if (!values_init(v, "test") || pprof_builder_open(&v->arena, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	location = pprof_builder_location(b, (struct pprof_location){ .mapping = PPROF_NONE },
		&(struct pprof_line){
			.function = pprof_builder_function(b,
				&(struct pprof_function){
					.name = pprof_builder_string(b, STR("main.work")), .start_line = 3 }),
				.line = 5 },
			1);
	pprof_builder_sample(b, &location, 1, NULL, 0, (int64_t[]){ 20000000 });
	if (comment)
		pprof_builder_comment(b, str_of(comment));
	if (pprof_builder_finish(b, &p, &err))
		return NULL;
	return values_add(v, p, 0, true);
}

static struct result lacking(struct profile_value *v)
{
	return (struct result){ .type = RESULT_PROFILES,
		.profiles = v,
		.n = 1,
		.warnings = warnings,
		.warnings_n = 1,
		.infos = infos,
		.infos_n = 1 };
}

#define LINES "Warning: rows of a block may be missing: line\\nend\nInfo: taken in whole steps\n"

static void comments_of(const struct pprof *p, struct buf *out)
{
	buf_clear(out);
	for (uint32_t i = 0; i < p->comments_n; i++)
		buf_printf(out, STR_FMT "\n", STR_ARG(p->strings[p->comments[i]]));
}

TEST(pprof_and_pgo_carry_comments)
{
	struct values v;
	struct result r = lacking(work(&v, "as recorded"));
	struct render_options o = { .arena = &v.arena };
	struct buf text = { 0 };
	struct pprof *p;
	struct err err;

	REQUIRE(r.profiles != NULL);
	REQUIRE_OK(render_pprof(&r, &o, &p, &err), &err);
	comments_of(p, &text);
	CHECK_STR(buf_str(&text), "as recorded\n" LINES);
	REQUIRE_OK(render_pgo(&r, &o, &p, &err), &err);
	comments_of(p, &text);
	CHECK_STR(buf_str(&text), LINES);
	r.warnings_n = r.infos_n = 0;
	REQUIRE_OK(render_pprof(&r, &o, &p, &err), &err);
	comments_of(p, &text);
	CHECK_STR(buf_str(&text), "as recorded\n");
	buf_release(&text);
	values_release(&v);
}

/* The same lines that the tool prints for the comments. */
TEST(text_has_the_lines_that_the_tool_prints)
{
	struct values v;
	struct result r = lacking(work(&v, NULL));
	struct render_options o = { .arena = &v.arena };
	struct buf text = { 0 }, gz = { 0 }, tool = { 0 };
	struct err err;

	REQUIRE(r.profiles != NULL);
	CHECK_OK(render_text(&r, &o, &text, &err), &err);
	CHECK(str_has_prefix(buf_str(&text), STR(LINES "Type: cpu\n")));
	CHECK_OK(render_pprof_gz(&r, &o, &gz, &err), &err);
	REQUIRE(oracle_dir() && oracle_write(buf_str(&gz), oracle_dir(), "warned.pb.gz"));
	CHECK(oracle_pprof(&tool, "-top -nodefraction=0", oracle_dir(), "warned.pb.gz"));
	oracle_check_text("text", buf_str(&text), buf_str(&tool));
	buf_release(&text);
	buf_release(&gz);
	buf_release(&tool);
	values_release(&v);
}

TEST(numbers_as_text_have_lines_above)
{
	struct cost cost = { .metric = { 0 }, .value = 7 };
	struct result r = lacking(NULL);
	struct render_options o = { .arena = &arena };
	struct buf text = { 0 };
	struct err err;

	arena_init(&arena, 0);
	r.type = RESULT_VECTOR;
	r.vector = &cost;
	CHECK_OK(render_text(&r, &o, &text, &err), &err);
	CHECK_STR(buf_str(&text),
		"# Warning: rows of a block may be missing: line\\nend\n"
		"# Info: taken in whole steps\n"
		"{} 7\n");
	buf_release(&text);
	arena_release(&arena);
}

TEST(tables_have_them_once)
{
	struct values v;
	struct profile_value *p = work(&v, NULL);
	struct top_table tops[2];
	struct result r = lacking(NULL);
	struct render_options o = { .arena = &v.arena };
	struct buf text = { 0 };
	struct str rest;
	struct err err;

	REQUIRE(p != NULL);
	tops[0] = tops[1] = (struct top_table){ .source = p, .k = 1 };
	r.type = RESULT_TOP;
	r.tops = tops;
	r.n = 2;
	CHECK_OK(render_text(&r, &o, &text, &err), &err);
	rest = buf_str(&text);
	CHECK(str_has_prefix(rest, STR("{}\n" LINES "Type: cpu\n")));
	CHECK(str_find((struct str){ rest.ptr + 20, rest.len - 20 }, STR("Warning:")) < 0);
	buf_release(&text);
	values_release(&v);
}

/* Folded stacks have no comments: difffolded.pl counts every line as a stack. */
TEST(folded_has_none_and_speedscope_its_name)
{
	struct values v;
	struct result r = lacking(work(&v, NULL));
	struct render_options o = { .arena = &v.arena };
	struct buf text = { 0 };
	struct err err;

	REQUIRE(r.profiles != NULL);
	CHECK_OK(render_folded(&r, &o, &text, &err), &err);
	CHECK_STR(buf_str(&text), "main.work 20000000\n");
	buf_clear(&text);
	CHECK_OK(render_speedscope(&r, &o, &text, &err), &err);
	CHECK(str_find(
		buf_str(&text), STR(" - Warning: rows of a block may be missing: line\\nend\"")) > 0);
	buf_release(&text);
	values_release(&v);
}
