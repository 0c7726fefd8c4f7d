/*
 * Go's text/template makes the same of the rows that have Go's own functions, and of formats for
 * printf with many values.
 */
#include <jansson.h>
#include <math.h>

#include "promql/rules/template/template.h"
#include "tests/oracle.h"
#include "tests/promql/rules/template/rows.h"

#define ROWS_MAX 4096

static struct template_row rows[ROWS_MAX];
static char *texts[ROWS_MAX];
static size_t rows_n;

static void add(const char *text, double value)
{
	if (rows_n < ROWS_MAX) {
		texts[rows_n] = strdup(text);
		rows[rows_n] = (struct template_row){ texts[rows_n], value, NULL };
		rows_n++;
	}
}

static void make_rows(void)
{
	static const char *const flags[] = { "", "-", "+", "0", " ", "-0", "+0" };
	static const char *const sizes[] = { "", "8", ".3", "10.2", "1" };
	static const char verbs[] = "vdsqfgetxT";
	static const double values[] = { 0, 1, -1, 0.1, 1e6, 999999, 1234567, 1e20, 1e21, 1e-4, 1e-5,
		123.456, 5e-324, 1.7976931348623157e308, INFINITY };
	char text[128];

	for (size_t i = 0; i < sizeof(template_go_rows) / sizeof(template_go_rows[0]); i++)
		add(template_go_rows[i].text, template_go_rows[i].value);
	for (size_t v = 0; verbs[v]; v++)
		for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]); f++)
			for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
				if (verbs[v] == 'q' && strchr(flags[f], '+'))
					continue; /* ASCII only: nobody writes it */
				/* what %x makes of floats, and zeros beside text, are left out */
				if (verbs[v] == 'x' || strchr(flags[f], '0'))
					snprintf(text, sizeof(text), "{{ printf \"[%%%s%s%c]\" 42 }}", flags[f],
						s == 2 || s == 3 ? "" : sizes[s], verbs[v]);
				else
					snprintf(text, sizeof(text), "{{ printf \"[%%%s%s%c]\" %s }}", flags[f],
						sizes[s], verbs[v],
						strchr("fge", verbs[v])      ? "$value" :
							strchr("sqvT", verbs[v]) ? "\"h\\u00e4 \\\"x\\\"\"" :
													   "7");
				add(text, 1.25);
			}
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		add("{{ $value }}", isinf(values[i]) ? 1e300 : values[i]);
		add("{{ printf \"%g %e %.3f %6.2g\" $value $value $value $value }}",
			isinf(values[i]) ? 1e300 : values[i]);
	}
}

static void render(const struct template_row *row, struct buf *out)
{
	static const struct label labels[] = { { STR_("host"), STR_("db-1.example.com:9090") },
		{ STR_("job"), STR_("api") }, { STR_("q"), STR_("<a&\"b'>") } };
	struct template_data d = { .labels = { labels, 3 }, .value = row->value };
	const struct template *t;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	buf_clear(out);
	if (template_parse(&a, str_of(row->text), &t, &err))
		buf_add_cstr(out, "parse");
	else if (template_render(t, &d, out, &err))
		buf_add_char(out, '!');
	arena_release(&a);
}

static bool ask(struct buf *answers)
{
	const char *dir = oracle_dir();
	struct buf in = { 0 };
	bool ok;

	for (size_t i = 0; i < rows_n; i++) {
		json_t *o = json_pack("{s:s, s:f}", "Text", rows[i].text, "Value", rows[i].value);
		char *line = json_dumps(o, 0);

		buf_printf(&in, "%s\n", line);
		free(line);
		json_decref(o);
	}
	ok = dir && oracle_write(buf_str(&in), dir, "rows.json") &&
		oracle_run(
			answers, "go run tests/promql/rules/template/oracle/main.go <'%s/rows.json'", dir);
	buf_release(&in);
	return ok;
}

TEST(go_makes_the_same)
{
	struct buf answers = { 0 }, out = { 0 };
	const char *at;
	size_t i = 0;

	make_rows();
	REQUIRE(ask(&answers));
	buf_add_char(&answers, '\0');
	for (at = answers.ptr; *at && i < rows_n; i++) {
		size_t n = strcspn(at, "\n");
		json_t *want = json_loadb(at, n, JSON_DECODE_ANY, NULL);

		render(&rows[i], &out);
		if (!json_is_string(want) || !str_is(buf_str(&out), json_string_value(want)))
			CHECK_FAIL("%s of %g\n    is   \"" STR_FMT "\"\n    Go's %.*s", rows[i].text,
				rows[i].value, STR_ARG(buf_str(&out)), (int)n, at);
		json_decref(want);
		at += n + (at[n] == '\n');
	}
	CHECK_INT(i, rows_n);
	for (i = 0; i < rows_n; i++)
		free(texts[i]);
	buf_release(&answers);
	buf_release(&out);
}
