#include "proto/report/prune_pprof.h"

#include "tests/check.h"

#define PARTS_MAX 8u

/* Splits at c; empty text has no parts. */
static uint32_t split(const char *text, char c, struct str *parts)
{
	struct str rest = str_of(text);
	uint32_t n = 0;

	while (rest.len) {
		const char *at = memchr(rest.ptr, c, rest.len);
		size_t len = at ? (size_t)(at - rest.ptr) : rest.len;

		parts[n++] = (struct str){ rest.ptr, len };
		rest = at ? (struct str){ at + 1, rest.len - len - 1 } : STR("");
	}
	return n;
}

/* "a,b;c": a is inlined into b, which c calls. "-" is a location without lines. */
static struct pprof *make(struct arena *a, const char *stack, const char *drop, const char *keep)
{
	struct str locations[PARTS_MAX], names[PARTS_MAX];
	uint32_t ids[PARTS_MAX], n = split(stack, ';', locations), lines_n;
	struct pprof_line lines[PARTS_MAX];
	struct pprof_builder *b;
	int64_t value = 1;
	struct pprof *p;
	struct err err;

	if (pprof_builder_open(a, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("samples"), STR("count"));
	p = pprof_builder_profile(b);
	p->drop_frames = pprof_builder_string(b, str_of(drop));
	p->keep_frames = pprof_builder_string(b, str_of(keep));
	for (uint32_t i = 0; i < n; i++) {
		char *one = arena_strndup(a, locations[i].ptr, locations[i].len);

		lines_n = strcmp(one, "-") ? split(one, ',', names) : 0;
		for (uint32_t k = 0; k < lines_n; k++)
			lines[k] = (struct pprof_line){
				.function = pprof_builder_function(
					b, &(struct pprof_function){ .name = pprof_builder_string(b, names[k]) })
			};
		ids[i] = pprof_builder_location(
			b, (struct pprof_location){ .mapping = PPROF_NONE }, lines, lines_n);
	}
	pprof_builder_sample(b, ids, n, NULL, 0, &value);
	return pprof_builder_finish(b, &p, &err) ? NULL : p;
}

static void print_left(struct prune *r, const struct pprof *p, struct buf *out)
{
	const struct pprof_sample *s = &p->samples[0];

	for (uint32_t i = prune_pprof_first(r, p, s); i < s->location_n; i++) {
		uint32_t id = p->location_ids[s->location_first + i];
		const struct pprof_location *l = &p->locations[id];
		uint32_t skip = prune_pprof_skip(r, id);

		buf_printf(out, "%s%s", out->len ? ";" : "", l->line_n ? "" : "-");
		for (uint32_t k = skip; k < l->line_n; k++)
			buf_printf(out, "%s" STR_FMT, k > skip ? "," : "",
				STR_ARG(p->strings[p->functions[p->lines[l->line_first + k].function].name]));
	}
}

TEST(frames_that_stay)
{
	static const struct {
		const char *drop, *keep, *stack, *want;
	} rows[] = {
		{ "", "", "drop;main", "drop;main" },
		{ "drop", "", "a;drop;b;main", "b;main" },
		{ "drop", "", "drop;a;drop;main", "main" }, /* the outermost one counts */
		{ "drop", "", "a;b;drop", "a;b;drop" }, /* nothing that stays is above */
		{ "drop", "", "a;drop;main;drop", "main;drop" },
		{ "drop", "", "drop;drop", "drop;drop" },
		{ "drop", "", "a;drop,b;main", "b;main" }, /* inlined: the caller's line stays */
		{ "drop", "", "a;b,drop,c;main", "c;main" },
		{ "drop", "", "a;b,drop;main", "main" },
		{ "drop", "", "a;drop,b", "a;b" }, /* at the root nothing is cut but the line */
		{ "drop", "", "dropped;main", "dropped;main" }, /* all of the name has to match */
		{ "drop", "", ".drop(int);main", "main" },
		{ "drop.*", "drop_this", "drop_this;drop_that;main", "main" },
		{ "drop.*", "drop_this", "a;drop_this;main", "a;drop_this;main" },
		{ "drop", "", "a;-;drop;-", "-" }, /* a location without lines stays */
		{ "(", "", "drop;main", "drop;main" }, /* does not compile */
		{ "drop", "(", "drop;main", "drop;main" },
	};
	struct buf left = { 0 };
	struct prune prune;
	struct pprof *p;
	struct arena a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&a, 0);
		REQUIRE(p = make(&a, rows[i].stack, rows[i].drop, rows[i].keep));
		REQUIRE_OK(prune_pprof_init(&prune, p, &a, &err), &err);
		buf_clear(&left);
		print_left(&prune, p, &left);
		CHECK_STR(buf_str(&left), rows[i].want);
		prune_release(&prune);
		arena_release(&a);
	}
	buf_release(&left);
}

TEST(a_budget_ends_it)
{
	struct prune prune;
	struct arena a, small;
	struct pprof *p;
	struct err err;

	arena_init(&a, 0);
	arena_init(&small, 8);
	REQUIRE(p = make(&a, "drop;main", "drop", "keep"));
	CHECK_INT(prune_pprof_init(&prune, p, &small, &err), ERR_LIMIT);
	CHECK(!prune.active);
	arena_release(&small);
	arena_release(&a);
}
