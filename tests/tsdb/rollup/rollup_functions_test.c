#include "tests/tsdb/rollup/rollup_world.h"

/* Function totals against a walk over each stack that knows nothing of the tree's order. */

#define NAMES 64u

struct named {
	uint32_t name;
	bool unnamed;
	int128 flat, cum;
};

/* What all names that are shown as one cost. */
struct named_text {
	struct str text;
	int128 cum;
	uint32_t names, seen; /* names that cost something; the last stack it was in */
};

struct slow {
	struct named v[NAMES];
	uint32_t n;
	struct named_text texts[NAMES];
	uint32_t texts_n, stacks;
};

static struct named_text *slow_text(struct slow *s, struct str text)
{
	uint32_t i = 0;

	while (i < s->texts_n && !str_eq(s->texts[i].text, text))
		i++;
	s->texts_n += i == s->texts_n;
	s->texts[i].text = text;
	return &s->texts[i];
}

static void slow_add_text(
	struct slow *s, const struct partition *p, const struct sym_line *line, int128 value)
{
	const struct sym_function *f = sym_function(p, line->function);
	struct named_text *t;

	if (!f->name)
		return;
	t = slow_text(s, sym_function_name(p, f));
	t->cum += t->seen == s->stacks ? 0 : value;
	t->seen = s->stacks;
}

static struct named *slow_find(struct slow *s, uint32_t name, bool unnamed)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i].name == name && s->v[i].unnamed == unnamed)
			return &s->v[i];
	s->v[s->n] = (struct named){ name, unnamed, 0, 0 };
	return &s->v[s->n++];
}

static struct named *slow_frame(
	struct slow *s, const struct partition *p, const struct sym_location *l, uint32_t line)
{
	uint32_t name = l->lines_n ? sym_function(p, l->lines[line].function)->name : 0;

	if (name)
		return slow_find(s, name, false);
	return slow_find(s, l->mapping == SYM_NONE ? 0 : sym_mapping(p, l->mapping)->filename, true);
}

static void slow_add(struct slow *s, const struct partition *p, uint32_t stack, int128 value)
{
	struct named *seen[NODES * 3];
	uint32_t n = 0;

	s->stacks++;
	for (uint32_t node = stack; node; node = sym_node(p, node).parent) {
		const struct sym_location l = sym_location(p, sym_node(p, node).location);

		for (uint32_t k = 0; k == 0 || k < l.lines_n; k++) {
			struct named *f = slow_frame(s, p, &l, k);
			uint32_t i = 0;

			if (l.lines_n)
				slow_add_text(s, p, &l.lines[k], value);
			if (node == stack && k == 0)
				f->flat += value;
			while (i < n && seen[i] != f)
				i++;
			if (i == n) {
				seen[n++] = f;
				f->cum += value;
			}
		}
	}
}

static int named_cmp(const void *x, const void *y)
{
	const struct named *a = x, *b = y;

	if (a->unnamed != b->unnamed)
		return a->unnamed - b->unnamed;
	return (a->name > b->name) - (a->name < b->name);
}

static struct str text_of(const struct partition *p, uint32_t name)
{
	for (uint32_t i = 0; i < sym_functions_n(p); i++)
		if (sym_function(p, i)->name == name)
			return sym_function_name(p, sym_function(p, i));
	return STR("");
}

static uint32_t alike; /* so far */

/* Where two names of a text cost something there is what they cost together, and nowhere else. */
static void check_alike(
	const struct partition *p, const struct rollup_function *got, size_t n, struct slow *want)
{
	size_t several = 0;

	for (uint32_t i = 0; i < want->n; i++)
		if (!want->v[i].unnamed && (want->v[i].flat || want->v[i].cum))
			slow_text(want, text_of(p, want->v[i].name))->names++;
	for (uint32_t i = 0; i < want->texts_n; i++)
		several += want->texts[i].names > 1;
	for (size_t i = 0; i < n; i++) {
		const struct named_text *t;

		CHECK(got[i].alike);
		t = slow_text(want, text_of(p, got[i].name));
		if (t->names < 2 || t->cum != got[i].cum || got[i].flat)
			CHECK_FAIL("what is shown as " STR_FMT " differs", STR_ARG(t->text));
	}
	CHECK_INT(n, several);
	alike += (uint32_t)several;
}

static void check_functions(
	struct rollup_view *v, const struct partition *p, uint32_t column, struct slow *want)
{
	struct rollup_function *got = NULL;
	struct err err;
	uint32_t at = 0;
	size_t n = 0;

	CHECK_OK(rollup_functions(v, column, &got, &n, &err), &err);
	qsort(want->v, want->n, sizeof(*want->v), named_cmp);
	for (uint32_t i = 0; i < want->n; i++) {
		const struct named *f = &want->v[i];

		if (!f->flat && !f->cum)
			continue;
		if (at == n || got[at].name != f->name || got[at].unnamed != f->unnamed ||
			got[at].flat != f->flat || got[at].cum != f->cum)
			CHECK_FAIL("function %u of column %u differs", i, column);
		at += at < n;
	}
	check_alike(p, got + at, n - at, want);
}

static int64_t value(uint32_t type)
{
	return (int64_t)draw(1000) * (type == 1 ? 10000000 : 1);
}

static int64_t value_or_less(uint32_t type)
{
	return value(type) - (draw(200) ? 0 : 500);
}

/* Of the columns that are amounts: there is one, and no cell of theirs is negative. */
static bool has_amounts(struct rollup_view *v, struct partition *p)
{
	struct accum_cell cell;
	struct accum *acc;
	bool any = false, less = false;
	struct err err;
	size_t at;

	for (uint32_t c = 0; c < rollup_columns_n(v); c++) {
		if (rollup_column(v, c)->gauge)
			continue;
		any = true;
		CHECK_OK(accum_open(p, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &acc, &err), &err);
		CHECK_OK(rollup_add(v, c, acc, &err), &err);
		CHECK_OK(accum_seal(acc, &err), &err);
		for (at = 0; accum_next(acc, &at, &cell);)
			less |= cell.value < 0;
		accum_close(acc);
	}
	return any && !less;
}

static uint32_t with, without; /* rollups with totals so far */

static void check_round(
	struct world *w, struct rollup_builder *b, uint32_t kinds, int64_t (*draw_value)(uint32_t type))
{
	static struct one_row rows[ROWS];
	struct rollup_view *v = rollup_view_open(), *cells = rollup_view_open();
	uint32_t n = 1 + (uint32_t)draw(ROWS);
	struct buf bytes = { 0 }, rollup = { 0 };
	struct err err;
	bool any = false;

	rollup_builder_clear(b);
	for (uint32_t i = 0; i < n; i++) {
		draw_row(w, &rows[i], kinds, draw(2), draw_value);
		CHECK_OK(add_row(w, b, rows[i].ts_ns, &rows[i].row, &err), &err);
	}
	CHECK_OK(rollup_builder_encode(b, &rollup, &err), &err);
	CHECK_OK(rollup_parse(cells, buf_str(&rollup), &err), &err);
	CHECK_OK(rollup_builder_encode_functions(b, &bytes, &any, &err), &err);
	CHECK_INT(any, has_amounts(cells, w->p));
	with += any;
	without += !any;
	if (!any) {
		CHECK_INT(bytes.len, 0);
		goto out;
	}
	CHECK_OK(rollup_functions_parse(v, buf_str(&bytes), &err), &err);
	CHECK_INT(rollup_columns_n(v), rollup_columns_n(cells));
	for (uint32_t c = 0; c < rollup_columns_n(v); c++) {
		const struct rollup_column *column = rollup_column(v, c);
		struct slow want = { 0 };

		CHECK_INT(column->header, rollup_column(cells, c)->header);
		CHECK_INT(column->column, rollup_column(cells, c)->column);
		CHECK_INT(column->rows, rollup_column(cells, c)->rows);
		for (uint32_t i = 0; i < n && !column->gauge; i++)
			for (uint32_t k = 0; k < rows[i].row.columns_n; k++) {
				uint32_t kind = rows[i].kind, type = w->type[kind][k], first = 0;

				while (w->headers[first] != column->header)
					first++;
				if (type != w->type[first][column->column] || (kind == 3 && k == 2))
					continue;
				for (uint32_t e = 0; e < rows[i].row.n; e++)
					slow_add(&want, w->p, rows[i].stacks[e], rows[i].values[k * rows[i].row.n + e]);
			}
		check_functions(v, w->p, c, &want);
	}
out:
	buf_release(&bytes);
	buf_release(&rollup);
	rollup_view_close(v);
	rollup_view_close(cells);
}

TEST(functions_are_those_of_a_walk_over_each_stack)
{
	static const char *const shown[] = { "_ZN1a1bEi", "_ZN1a1bEj", "_ZN1a1bEv", "a::b", "_ZN1a1cEv",
		"f", "", "[g]" };
	struct rollup_builder *b;
	struct world w;
	struct err err;

	for (uint32_t seed = 0; seed < 12; seed++) {
		REQUIRE(seed % 2 ?
				world_plain(&w) :
				world_open(&w, shown, sizeof(shown) / sizeof(shown[0]), plain_files, 4, ""));
		REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
		for (uint32_t round = 0; round < 10; round++)
			check_round(&w, b, 1 + round % HEADERS, round % 3 ? value : value_or_less);
		rollup_builder_close(b);
		partition_close(w.p);
	}
	CHECK(with > 40);
	CHECK(alike > 20);
	CHECK(without > 10);
}

/* Where what is shown would not tell two things apart, or frames are dropped, there are none. */
TEST(functions_are_exact_or_not_there)
{
	static const struct {
		const char *name, *file_a, *file_b, *drop;
		bool any;
	} cases[] = {
		{ "f", "/bin/a", "/bin/b", "", true },
		{ "f", "/bin/a", "/sbin/a", "", false },
		{ "f", "/bin/a", "/bin/a/", "", false },
		{ "f", "/bin/a", "", "", true },
		{ "[a]", "/bin/a", "/bin/b", "", false },
		{ "[a", "/bin/a", "/bin/b", "", true },
		{ "[c]", "/bin/a", "/bin/b", "", true },
		{ "<unknown>", "/bin/a", "/bin/b", "", false },
		{ "[/]", "/", "/bin/b", "", false },
		{ "f", "/bin/a", "/bin/b", "runtime.*", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *names[] = { cases[i].name, "" },
				   *files[] = { cases[i].file_a, cases[i].file_b };
		static uint32_t stacks[NODES];
		static int64_t values[NODES * 2];
		struct rollup_builder *b;
		struct buf bytes = { 0 };
		struct world w;
		struct err err;
		bool any;

		REQUIRE(world_open(&w, names, 2, files, 2, cases[i].drop));
		REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
		for (uint32_t k = 0; k < NODES; k++) {
			stacks[k] = k;
			values[k] = values[NODES + k] = k + 1;
		}
		CHECK_OK(add_row(&w, b, 1,
					 &(struct row){ .header = w.headers[HEADERS - 1],
						 .interval_ns = 1,
						 .n = NODES,
						 .columns_n = 2,
						 .stacks = stacks,
						 .values = values },
					 &err),
			&err);
		CHECK_OK(rollup_builder_encode_functions(b, &bytes, &any, &err), &err);
		if (any != cases[i].any || (bytes.len != 0) != any)
			CHECK_FAIL("case %zu: %s", i, any ? "there are some" : "there are none");
		buf_release(&bytes);
		rollup_builder_close(b);
		partition_close(w.p);
	}
}
