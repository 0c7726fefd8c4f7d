/*
 * Templates: whole outputs. Where a row's functions are Go's own, oracle_test.c asks Go
 * the same.
 */
#include "promql/rules/template/template.h"
#include "tests/check.h"
#include "tests/promql/rules/template/rows.h"

static const struct label labels[] = { { STR_("host"), STR_("db-1.example.com:9090") },
	{ STR_("job"), STR_("api") }, { STR_("q"), STR_("<a&\"b'>") } };
static const struct label external[] = { { STR_("region"), STR_("eu") } };

static enum err_code answer(void *ctx, struct arena *a, struct str expr,
	struct template_sample **out, size_t *n, struct err *err)
{
	static const struct label x[] = { { STR_("__value__"), STR_("text") },
		{ STR_("f"), STR_("main") } };
	static const struct label y[] = { { STR_("f"), STR_("alpha") } };

	if (str_is(expr, "none")) {
		*n = 0;
		return ERR_OK;
	}
	if (!str_is(expr, "two"))
		return err_set(err, ERR_INVALID, "1:1: no such thing");
	if (!(*out = arena_array(a, struct template_sample, 2)))
		return arena_fail(a, "test", err);
	(*out)[0] = (struct template_sample){ { x, 2 }, 2.5 };
	(*out)[1] = (struct template_sample){ { y, 1 }, 7 };
	*n = 2;
	return ERR_OK;
}

/* The output of a template, or its error. */
static void render(const char *text, double value, struct buf *out)
{
	struct template_data d = { .labels = { labels, 3 },
		.external_labels = { external, 1 },
		.external_url = STR("http://epi:7272/pre/"), .value = value, .query = answer };
	const struct template *t;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	buf_clear(out);
	if (template_parse(&a, str_of(text), &t, &err)) {
		buf_printf(out, "parse: %s", err.msg);
	} else if (template_render(t, &d, out, &err)) {
		buf_printf(out, "!%s", err.msg);
	}
	arena_release(&a);
}

static void check_rows(const struct template_row *rows, size_t n)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < n; i++) {
		render(rows[i].text, rows[i].value, &out);
		if (!str_is(buf_str(&out), rows[i].want))
			CHECK_FAIL("%s\n    is   \"" STR_FMT "\"\n    want \"%s\"", rows[i].text,
				STR_ARG(buf_str(&out)), rows[i].want);
	}
	buf_release(&out);
}

TEST(what_go_has)
{
	check_rows(template_go_rows, sizeof(template_go_rows) / sizeof(template_go_rows[0]));
}

/* clang-format off */
static const struct template_row prometheus_rows[] = {
	{ "{{ humanize 0 }}", 0, "0" },
	{ "{{ humanize 1 }}", 0, "1" },
	{ "{{ humanize 1234567 }}", 0, "1.235M" },
	{ "{{ humanize 999.9 }}", 0, "999.9" },
	{ "{{ humanize 1000 }}", 0, "1k" },
	{ "{{ humanize -1e12 }}", 0, "-1T" },
	{ "{{ humanize 1e30 }}", 0, "1e+06Y" },
	{ "{{ humanize 0.02 }}", 0, "20m" },
	{ "{{ humanize 0.00000012 }}", 0, "120n" },
	{ "{{ humanize \"1234\" }}", 0, "1.234k" },
	{ "{{ humanize \"+Inf\" }}", 0, "+Inf" },
	{ "{{ humanize \"x\" }}", 0,
		"!1:4: error calling humanize: strconv.ParseFloat: parsing \"x\": invalid syntax" },
	{ "{{ humanize true }}", 0, "!1:4: error calling humanize: can't convert bool to float" },
	{ "{{ humanize1024 0 }}", 0, "0" },
	{ "{{ humanize1024 1 }}", 0, "1" },
	{ "{{ humanize1024 1023 }}", 0, "1023" },
	{ "{{ humanize1024 1048576 }}", 0, "1Mi" },
	{ "{{ humanize1024 0.5 }}", 0, "0.5" },
	{ "{{ humanize1024 -2048 }}", 0, "-2ki" },
	{ "{{ humanizeDuration 0 }}", 0, "0s" },
	{ "{{ humanizeDuration 1 }}", 0, "1s" },
	{ "{{ humanizeDuration 1.2345678 }}", 0, "1.235s" },
	{ "{{ humanizeDuration 60 }}", 0, "1m 0s" },
	{ "{{ humanizeDuration 3600 }}", 0, "1h 0m 0s" },
	{ "{{ humanizeDuration 86400 }}", 0, "1d 0h 0m 0s" },
	{ "{{ humanizeDuration 93784 }}", 0, "1d 2h 3m 4s" },
	{ "{{ humanizeDuration -93784 }}", 0, "-1d 2h 3m 4s" },
	{ "{{ humanizeDuration .1 }}", 0, "100ms" },
	{ "{{ humanizeDuration .0001 }}", 0, "100us" },
	{ "{{ humanizeDuration .12345 }}", 0, "123.5ms" },
	{ "{{ humanizePercentage 0.1234567 }}", 0, "12.35%" },
	{ "{{ humanizePercentage 1 }}", 0, "100%" },
	{ "{{ $value | humanizePercentage }}", 0.5, "50%" },
	{ "{{ humanizeTimestamp 1435065584.128 }}", 0, "2015-06-23 13:19:44.128 +0000 UTC" },
	{ "{{ humanizeTimestamp 0 }}", 0, "1970-01-01 00:00:00 +0000 UTC" },
	{ "{{ humanizeTimestamp \"NaN\" }}", 0, "NaN" },
	{ "{{ humanizeTimestamp 1e99 }}", 0,
		"!1:4: error calling humanizeTimestamp: 1e+99 cannot be represented as a "
		"nanoseconds timestamp since it overflows int64" },
	{ "{{ toTime 1435065584 }}", 0, "2015-06-23 13:19:44 +0000 UTC" },
	{ "{{ \"aa bb CC\" | title }}", 0, "Aa Bb CC" },
	{ "{{ title \"it's a_b x-y\" }}", 0, "It's A_b X-Y" },
	{ "{{ toUpper \"aB\xc3\xa4\" }}", 0, "AB\xc3\x84" },
	{ "{{ toLower \"aB\xc3\x84\" }}", 0, "ab\xc3\xa4" },
	{ "{{ toUpper 3 }}", 0, "!1:12: expected string; found 3" },
	{ "{{ toUpper .Value }}", 0, "!1:12: wrong type for value; expected string; got float64" },
	{ "{{ toUpper nil }}", 0, "!1:12: invalid value; expected string" },
	{ "{{ toUpper }}", 0, "!1:4: wrong number of args for toUpper: want 1 got 0" },
	{ "{{ reReplaceAll \"(a)b\" \"$1-\" \"abxab\" }}", 0, "a-xa-" },
	{ "{{ reReplaceAll \"x*\" \"-\" \"abc\" }}", 0, "-a-b-c-" },
	{ "{{ reReplaceAll \"b*\" \"-\" \"abbc\" }}", 0, "-a-c-" },
	{ "{{ reReplaceAll \"^a\" \"-\" \"aaa\" }}", 0, "-aa" },
	{ "{{ reReplaceAll \":.*\" \"\" $labels.host }}", 0, "db-1.example.com" },
	{ "{{ match \"a.c\" \"xabcx\" }}", 0, "true" },
	{ "{{ match \"^b\" \"ab\" }}", 0, "false" },
	{ "{{ stripPort $labels.host }}", 0, "db-1.example.com" },
	{ "{{ stripPort \"[::1]:90\" }}", 0, "::1" },
	{ "{{ stripPort \"host\" }}", 0, "host" },
	{ "{{ stripPort \"::1\" }}", 0, "::1" },
	{ "{{ stripDomain $labels.host }}", 0, "db-1:9090" },
	{ "{{ stripDomain \"a.b.c\" }}", 0, "a" },
	{ "{{ stripDomain \"10.1.2.3:80\" }}", 0, "10.1.2.3:80" },
	{ "{{ stripDomain \"[::1]:80\" }}", 0, "[::1]:80" },
	{ "{{ parseDuration \"1h30m\" }}", 0, "5400" },
	{ "{{ parseDuration \"x\" }}", 0,
		"!1:4: error calling parseDuration: not a valid duration string: \"x\"" },
	{ "{{ safeHtml \"<b>\" }}", 0, "<b>" },
	{ "{{ externalURL }} {{ $externalURL }} {{ pathPrefix }}", 0,
		"http://epi:7272/pre/ http://epi:7272/pre/ /pre/" },
	{ "{{ graphLink \"sum(up) > 1\" }}", 0, "/explore?query=sum%28up%29+%3E+1" },
	{ "{{ tableLink \"up\" }}", 0, "/explore?query=up&view=table" },
	{ "{{ query \"two\" | first | value }}", 0, "2.5" },
	{ "{{ query \"two\" | first | label \"f\" }}", 0, "main" },
	{ "{{ query \"two\" | first | strvalue }}", 0, "text" },
	{ "{{ range query \"two\" }}{{ .Labels.f }}={{ .Value }};{{ end }}", 0,
		"main=2.5;alpha=7;" },
	{ "{{ range $i, $s := query \"two\" | sortByLabel \"f\" }}{{ $i }}{{ $s.Labels.f }} {{ end }}",
		0, "0alpha 1main " },
	{ "{{ range query \"none\" }}x{{ else }}nothing{{ end }}", 0, "nothing" },
	{ "{{ with query \"none\" }}x{{ else }}nothing{{ end }}", 0, "nothing" },
	{ "{{ with query \"two\" }}{{ . | len }}{{ end }}", 0, "2" },
	{ "{{ query \"none\" | first }}", 0,
		"!1:19: error calling first: first() called on vector with no elements" },
	{ "{{ query \"bad\" }}", 0, "!1:4: error calling query: 1:1: no such thing" },
	{ "{{ (index (query \"two\") 1).Labels.f }}", 0, "alpha" },
	{ "{{ with args 1 \"b\" .Value }}{{ .arg0 }}{{ .arg1 }}{{ .arg2 }}{{ .arg3 }}{{ end }}",
		1.5, "1b1.5<no value>" },
	{ "{{ with args 1 2 }}{{ index . \"arg1\" }} {{ index . \"arg01\" }} {{ .arg01 }}{{ end }}", 0,
		"2 <no value> <no value>" },
	{ "{{ range $k, $v := args \"a\" \"b\" }}{{ $k }}={{ $v }} {{ end }}", 0,
		"arg0=a arg1=b " },
	{ "{{ value .Labels }}", 0,
		"!1:10: wrong type for value; expected *template.sample; got map[string]string" },
	{ "{{ first \"x\" }}", 0,
		"!1:10: wrong type for value; expected template.queryResult; got string" },
	{ "{{ .Nope }}", 0, "!1:4: can't evaluate field Nope in type template.data" },
	{ "{{ $externalLabels.region }}{{ .ExternalLabels.region }}", 0, "eueu" },
	{ "{{ if gt $value 5.0 }}{{ $value | printf \"%.1f\" }}{{ end }}", 7.25, "7.2" },
	/* refused at once */
	{ "{{ $x }}", 0, "parse: 1:4: undefined variable \"$x\"" },
	{ "a\n\xc3\xa4 {{ nope }}", 0, "parse: 2:6: function \"nope\" not defined" },
	{ "{{ if }}x{{ end }}", 0, "parse: 1:7: missing value for command" },
	{ "{{ if true }}x", 0, "parse: 1:15: unexpected EOF: missing {{end}}" },
	{ "{{ end }}", 0, "parse: 1:4: unexpected {{end}}" },
	{ "{{ else }}", 0, "parse: 1:4: unexpected {{else}}" },
	{ "{{", 0, "parse: 1:3: unclosed action" },
	{ "{{ \"x }}", 0, "parse: 1:4: unterminated quoted string" },
	{ "{{ `x }}", 0, "parse: 1:4: unterminated raw quoted string" },
	{ "{{ (1 }}", 0, "parse: 1:7: unclosed left paren" },
	{ "{{ 1) }}", 0, "parse: 1:5: unexpected \")\" in operand" },
	{ "{{ 1 | 2 }}", 0, "parse: 1:8: non executable command in pipeline" },
	{ "{{ 1a }}", 0, "parse: 1:4: bad number syntax: \"1a\"" },
	{ "{{ 99999999999999999999 }}", 0,
		"parse: 1:4: integer overflow: \"99999999999999999999\"" },
	{ "{{ /* x */ }}", 0, "parse: 1:4: unexpected \"/\" in an action" },
	{ "{{/* x }}", 0, "parse: 1:3: unclosed comment" },
	{ "{{/* x */ a}}", 0, "parse: 1:3: comment ends before closing delimiter" },
	{ "{{ break }}", 0, "parse: 1:4: {{break}} outside {{range}}" },
	{ "{{ define \"x\" }}{{ end }}", 0, "parse: 1:4: {{define}} is not supported" },
	{ "{{ template \"x\" }}", 0, "parse: 1:4: {{template}} is not supported" },
	{ "{{ $a, $b := 1 }}", 0, "parse: 1:6: too many declarations in command" },
};
/* clang-format on */

TEST(what_prometheus_adds)
{
	check_rows(prometheus_rows, sizeof(prometheus_rows) / sizeof(prometheus_rows[0]));
}

TEST(limits)
{
	struct buf out = { 0 }, text = { 0 };

	render("{{ range 2000000000 }}{{ end }}", 0, &out);
	CHECK_STR(buf_str(&out), "!1:10: more than 1000000 steps");
	render("{{ range 2000000000 }}0123456789{{ end }}", 0, &out);
	CHECK(out.len < TEMPLATE_BYTES_MAX + 100 || !out.len);
	render("{{ printf \"%99999999d\" 1 }}", 0, &out);
	CHECK_STR(buf_str(&out), "%!(BADWIDTH)1");
	for (int i = 0; i < 200; i++)
		buf_add_cstr(&text, "{{ if true }}");
	buf_add_char(&text, '\0');
	render(text.ptr, 0, &out);
	CHECK(str_has_suffix(buf_str(&out), STR("nested deeper than 64")));
	buf_release(&text);
	buf_release(&out);
}
