/*
 * Names are chosen by the profiled program. In text for people, also on a terminal, no byte of a
 * name ends a line, moves the cursor or is not UTF-8. Formats for programs are well-formed.
 */
#include "base/quote.h"
#include "tests/values.h"
#include "web/render/render.h"

#define BYTES(lit) ((struct str){ lit, sizeof(lit) - 1 })
#define EVIL(name) BYTES(name "\n0 0\x1b[2J\r\0\xff\xe2\x80\xae")
#define SHOWN(name) name "\\n0 0\\x1b[2J\\r\\x00\\xff\\u202e"

#define SHOWN_BIN "bin\\n\\x1b[2J\\xff"

struct hostile {
	struct values values;
	struct profile_value *v;
	struct result r;
	struct render_options o;
	struct buf out;
};

/* Each string of a profile is hostile. There are two elements, so that their labels are shown. */
static bool hostile_open(struct hostile *h)
{
	static struct label labels[2][1] = {
		{ { STR("pod"), BYTES("a\n\x1b") } }, { { STR("pod"), STR("b") } } };
	static struct str warning = BYTES("rows\nmay be missing\x1b");
	struct pprof_function f = { .start_line = 1 };
	struct pprof_mapping m = { .start = 4096, .limit = 8192 };
	struct pprof_location l = { .address = 4100 };
	struct pprof_builder *b;
	struct pprof_line line;
	struct pprof *p;
	struct err err;
	uint32_t stack[2];

	*h = (struct hostile){ 0 };
	if (!values_init(&h->values, "test") || pprof_builder_open(&h->values.arena, &b, &err))
		return false;
	pprof_builder_type(b, EVIL("cpu"), EVIL("unit"));
	m.filename = pprof_builder_string(b, BYTES("bin\n\x1b[2J\xff"));
	m.build_id = pprof_builder_string(b, EVIL("id"));
	l.mapping = pprof_builder_mapping(b, &m);
	f.name = pprof_builder_string(b, EVIL("main.f"));
	line = (struct pprof_line){ .function = pprof_builder_function(b, &f), .line = 2 };
	stack[0] = pprof_builder_location(b, l, &line, 1);
	l.address++;
	stack[1] = pprof_builder_location(b, l, NULL, 0);
	pprof_builder_sample(b, stack, 2, NULL, 0, (int64_t[]){ 7 });
	pprof_builder_comment(b, EVIL("comment"));
	pprof_builder_profile(b)->doc_url = pprof_builder_string(b, EVIL("https://doc"));
	if (pprof_builder_finish(b, &p, &err) ||
		!(h->v = arena_array(&h->values.arena, struct profile_value, 2)))
		return false;
	for (size_t i = 0; i < 2; i++) {
		h->v[i] = *values_add(&h->values, p, 0, true);
		h->v[i].metric = (struct labels){ labels[i], 1 };
	}
	h->r = (struct result){
		.type = RESULT_PROFILES, .profiles = h->v, .n = 2, .warnings = &warning, .warnings_n = 1
	};
	h->o.arena = &h->values.arena;
	return true;
}

static void hostile_close(struct hostile *h)
{
	buf_release(&h->out);
	values_release(&h->values);
}

/* Checks that there are only printable bytes and line ends. */
static void check_prints(struct str s)
{
	struct buf again = { 0 };

	while (s.len) {
		ptrdiff_t end = str_find(s, STR("\n"));
		struct str l = { s.ptr, end < 0 ? s.len : (size_t)end };

		buf_clear(&again);
		buf_add_printable(&again, l);
		if (!str_eq(buf_str(&again), l))
			CHECK_FAIL("does not print: " STR_FMT, STR_ARG(buf_str(&again)));
		s = (struct str){ l.ptr + l.len + (end >= 0), s.len - l.len - (end >= 0) };
	}
	buf_release(&again);
}

TEST(text)
{
	struct hostile h;
	struct err err;

	REQUIRE(hostile_open(&h));
	CHECK_OK(render_text(&h.r, &h.o, &h.out, &err), &err);
	check_prints(buf_str(&h.out));
	/* clang-format off */
	CHECK_STR(buf_str(&h.out),
		"File: " SHOWN_BIN "\n"
		"Build ID: " SHOWN("id") "\n"
		SHOWN("comment") "\n"
		"Warning: rows\\nmay be missing\\x1b\n"
		"Type: " SHOWN("cpu") "\n"
		"Doc: " SHOWN("https://doc") "\n"
		"Showing nodes accounting for 14" SHOWN("unit") ", 100% of 14" SHOWN("unit")
		" total\n"
		"      flat  flat%   sum%        cum   cum%\n"
		"14" SHOWN("unit") "   100%   100% 14" SHOWN("unit") "   100%  " SHOWN("main.f")
		"\n"
		"         0     0%   100% 14" SHOWN("unit") "   100%  [" SHOWN_BIN "]\n");
	/* clang-format on */
	hostile_close(&h);
}

TEST(folded)
{
	struct hostile h;
	struct err err;

	REQUIRE(hostile_open(&h));
	CHECK_OK(render_folded(&h.r, &h.o, &h.out, &err), &err);
	check_prints(buf_str(&h.out));
	CHECK_STR(buf_str(&h.out),
		"pod=a\\n\\x1b;[" SHOWN_BIN "+0x5];" SHOWN("main.f") " 7\n"
															 "pod=b;[" SHOWN_BIN
															 "+0x5];" SHOWN("main.f") " 7\n");
	hostile_close(&h);
}

TEST(json_is_utf8_and_on_one_line)
{
	struct hostile h;
	struct json j;
	struct err err;

	REQUIRE(hostile_open(&h));
	json_init(&j, &h.out);
	CHECK_OK(render_json(&j, &h.r, &h.o, &err), &err);
	CHECK(str_is_utf8(buf_str(&h.out)));
	for (size_t i = 0; i < h.out.len; i++)
		CHECK((unsigned char)h.out.ptr[i] >= ' ');
	CHECK(str_find(
		buf_str(&h.out), STR("\"main.f\\n0 0\\u001b[2J\\r\\u0000\xef\xbf\xbd\xe2\x80\xae\"")) > 0);
	buf_clear(&h.out);
	CHECK_OK(render_speedscope(&h.r, &h.o, &h.out, &err), &err);
	CHECK(str_is_utf8(buf_str(&h.out)));
	for (size_t i = 0; i + 1 < h.out.len; i++)
		CHECK((unsigned char)h.out.ptr[i] >= ' ');
	hostile_close(&h);
}

/* pprof has the recorded bytes: its reader should see the name that the program has. */
TEST(pprof_keeps_them)
{
	struct hostile h;
	struct pprof *p;
	struct err err;

	REQUIRE(hostile_open(&h));
	REQUIRE_OK(render_pprof(&h.r, &h.o, &p, &err), &err);
	CHECK(str_eq(p->strings[p->functions[0].name], EVIL("main.f")));
	CHECK(str_eq(p->strings[p->types[0].unit], EVIL("unit")));
	hostile_close(&h);
}

TEST(numbers)
{
	struct label label = { STR("function"), EVIL("f") };
	struct cost cost = { .metric = { &label, 1 }, .value = 1 };
	struct result r = { .type = RESULT_VECTOR, .vector = &cost, .n = 1 };
	struct render_options o = { 0 };
	struct buf out = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	o.arena = &a;
	CHECK_OK(render_text(&r, &o, &out, &err), &err);
	CHECK_STR(buf_str(&out), "{function=\"" SHOWN("f") "\"} 1\n");
	buf_clear(&out);
	r = (struct result){ .type = RESULT_STRING, .string = EVIL("s") };
	CHECK_OK(render_text(&r, &o, &out, &err), &err);
	CHECK_STR(buf_str(&out), SHOWN("s") "\n");
	buf_release(&out);
	arena_release(&a);
}
