/*
 * Templates and what Go's text/template makes of them: .Labels has host, job and q, .Value the
 * row's. An error is "!" behind what was made before it, and its text our own.
 */
#ifndef TESTS_PROMQL_RULES_TEMPLATE_ROWS_H
#define TESTS_PROMQL_RULES_TEMPLATE_ROWS_H

#define STR_(lit) \
	{ \
		"" lit, sizeof(lit) - 1 \
	}

struct template_row {
	const char *text;
	double value;
	const char *want;
};

/* clang-format off */
static const struct template_row template_go_rows[] = {
	{ "", 0, "" },
	{ "plain } text {", 0, "plain } text {" },
	{ "{{ .Labels.job }}", 0, "api" },
	{ "{{.Labels.job}}", 0, "api" },
	{ "{{ .Labels.nope }}", 0, "" },
	{ "{{ $.Labels.job }}", 0, "api" },
	{ "{{ $labels.job }} {{ $value }}", 1.5, "api 1.5" },
	{ "{{ .Value }}", 1, "1" },
	{ "{{ .Value }}", 0.1, "0.1" },
	{ "{{ .Value }}", 100000, "100000" },
	{ "{{ .Value }}", 1e6, "1e+06" },
	{ "{{ .Value }}", 123456789, "1.23456789e+08" },
	{ "{{ .Value }}", 1e21, "1e+21" },
	{ "{{ .Value }}", 0.0001, "0.0001" },
	{ "{{ .Value }}", 0.00001, "1e-05" },
	{ "{{ .Value }}", -2.5, "-2.5" },
	{ "{{ 1 }} {{ 1.0 }} {{ 1e3 }} {{ 0x10 }} {{ 010 }} {{ 0b11 }} {{ 1_000 }} {{ -3 }}", 0,
		"1 1 1000 16 8 3 1000 -3" },
	{ "{{ 'a' }} {{ '\\n' }} {{ '\xc3\xa4' }}", 0, "97 10 228" },
	{ "{{ true }} {{ false }}", 0, "true false" },
	{ "{{ \"a\\tb\\x41\\u00e4\\101\" }}", 0, "a\tbA\xc3\xa4" "A" },
	{ "{{ `raw \\n` }}", 0, "raw \\n" },
	{ "{{ nil }}", 0, "!1:4: nil is not a command" },
	{ "{{ .Labels }}", 0, "map[host:db-1.example.com:9090 job:api q:<a&\"b'>]" },
	/* white space and comments */
	{ "a {{- 1 -}} b", 0, "a1b" },
	{ "a {{ 1 -}}\n\n b", 0, "a 1b" },
	{ "a\n{{- 1 }} b", 0, "a1 b" },
	{ "{{-1}}", 0, "-1" },
	{ "a{{/* no */}}b", 0, "ab" },
	{ "a {{- /* no */ -}} b", 0, "ab" },
	{ "{{ 1\n}}", 0, "1" },
	{ "{{ printf\n\"%d\"\n3 }}", 0, "3" },
	/* conditions */
	{ "{{ if true }}y{{ end }}", 0, "y" },
	{ "{{ if false }}y{{ else }}n{{ end }}", 0, "n" },
	{ "{{ if 0 }}a{{ else if 1 }}b{{ else }}c{{ end }}", 0, "b" },
	{ "{{ if 0 }}a{{ else if \"\" }}b{{ else if nil | not }}c{{ end }}", 0,
		"!1:40: nil is not a command" },
	{ "{{ if .Labels.nope }}a{{ else }}b{{ end }}", 0, "b" },
	{ "{{ if .Value }}a{{ else }}b{{ end }}", 0, "b" },
	{ "{{ if .Labels }}a{{ end }}", 0, "a" },
	{ "{{ if and true .Labels.job }}a{{ end }}", 0, "a" },
	{ "{{ and 1 0 2 }} {{ or 0 \"\" 3 }} {{ and 1 2 }} {{ or 0 \"\" }}|", 0, "0 3 2 |" },
	{ "{{ or 1 .Nope }}", 0, "1" },
	{ "{{ not 1 }} {{ not \"\" }}", 0, "false true" },
	{ "{{ if eq .Labels.job \"api\" \"web\" }}y{{ end }}", 0, "y" },
	{ "{{ eq 1 2 1 }} {{ eq \"a\" \"b\" }} {{ ne 1 2 }}", 0, "true false true" },
	{ "{{ lt 1 2 }} {{ le 2 2 }} {{ gt 1 2 }} {{ ge 2 2 }} {{ lt \"a\" \"b\" }}", 0,
		"true true false true true" },
	{ "{{ gt .Value 1.0 }}", 2, "true" },
	{ "{{ gt .Value 1 }}", 2, "!1:4: error calling gt: incompatible types for comparison" },
	{ "{{ eq .Value 1 }}", 2, "!1:4: error calling eq: incompatible types for comparison" },
	{ "{{ eq .Labels .Labels }}", 2,
		"!1:4: error calling eq: non-comparable type map[string]string" },
	{ "{{ lt true false }}", 2, "!1:4: error calling lt: invalid type for comparison" },
	{ "{{ eq 1 }}", 2, "!1:4: error calling eq: missing argument for comparison" },
	{ "{{ eq true true }} {{ eq 1.5 1.5 }}", 2, "true true" },
	/* with, variables */
	{ "{{ with .Labels.job }}[{{ . }}]{{ end }}", 0, "[api]" },
	{ "{{ with .Labels.nope }}[{{ . }}]{{ else }}none{{ end }}", 0, "none" },
	{ "{{ with $x := 3 }}{{ $x }}{{ . }}{{ end }}", 0, "33" },
	{ "{{ with 0 }}a{{ else with 5 }}{{ . }}{{ end }}", 0, "5" },
	{ "{{ $x := 1 }}{{ $x }}{{ $x = 2 }}{{ $x }}", 0, "12" },
	{ "{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", 0, "21" },
	{ "{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", 0, "2" },
	{ "{{ if $y := .Labels.job }}{{ $y }}{{ end }}", 0, "api" },
	{ "{{ $x := .Labels }}{{ $x.job }}", 0, "api" },
	/* range */
	{ "{{ range $k, $v := .Labels }}{{ $k }}={{ $v }};{{ end }}", 0,
		"host=db-1.example.com:9090;job=api;q=<a&\"b'>;" },
	{ "{{ range .Labels }}{{ . }};{{ end }}", 0, "db-1.example.com:9090;api;<a&\"b'>;" },
	{ "{{ range $v := .Labels }}{{ $v }};{{ end }}", 0,
		"db-1.example.com:9090;api;<a&\"b'>;" },
	{ "{{ range 3 }}{{ . }}{{ end }}", 0, "012" },
	{ "{{ range $i := 3 }}{{ $i }}{{ end }}", 0, "012" },
	{ "{{ range 5 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ . }}{{ end }}!", 0, "012!" },
	{ "{{ range 4 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}", 0, "023" },
	{ "{{ range .Labels.nope }}a{{ end }}", 0, "!1:10: range can't iterate over " },
	{ "{{ range 1.5 }}a{{ end }}", 0, "!1:10: range can't iterate over 1.5" },
	{ "{{ $n := 0 }}{{ range 3 }}{{ $n = . }}{{ end }}{{ $n }}", 0, "2" },
	{ "{{ range $i := 2 }}{{ range $j := 2 }}{{ $i }}{{ $j }} {{ end }}{{ end }}", 0,
		"00 01 10 11 " },
	/* pipelines */
	{ "{{ .Labels.job | printf \"%s-%s\" \"x\" }}", 0, "x-api" },
	{ "{{ .Labels.job | printf \"%q\" | len }}", 0, "5" },
	{ "{{ (printf \"a\") | print \"b\" }}", 0, "ba" },
	{ "{{ len (print 1 2) }}", 0, "3" },
	{ "{{ .Labels.job .Value }}", 0, "!1:4: can't give argument to non-function" },
	/* index, len */
	{ "{{ index .Labels \"job\" }}", 0, "api" },
	{ "{{ index .Labels \"nope\" }}|", 0, "|" },
	{ "{{ index .Labels 1 }}", 0,
		"!1:4: error calling index: value has type int; should be string" },
	{ "{{ index \"abc\" 1 }}", 0, "98" },
	{ "{{ index \"abc\" 3 }}", 0, "!1:4: error calling index: index out of range: 3" },
	{ "{{ len .Labels }} {{ len \"\xc3\xa4x\" }}", 0, "3 3" },
	{ "{{ len .Value }}", 0, "!1:4: error calling len: len of type float64" },
	/* print */
	{ "{{ print 1 2 \"a\" \"b\" 3 4.5 }}", 0, "1 2ab3 4.5" },
	{ "{{ println 1 \"a\" }}", 0, "1 a\n" },
	{ "{{ print nil }}", 0, "<nil>" },
	{ "{{ printf \"%d %5d|%-5d|%05d %+d\" 1 2 3 4 5 }}", 0, "1     2|3    |00004 +5" },
	{ "{{ printf \"%x %X %o %b %c %U %q\" 255 255 8 5 65 65 65 }}", 0,
		"ff FF 10 101 A U+0041 'A'" },
	{ "{{ printf \"%x %o\" -255 -8 }}", 0, "-ff -10" },
	{ "{{ printf \"%f %.2f %8.3f|%-8.1f|%e %g\" 1.5 1.5 1.5 1.5 1500.0 1e7 }}", 0,
		"1.500000 1.50    1.500|1.5     |1.500000e+03 1e+07" },
	{ "{{ printf \"%.3g %.4g %6.2f%%\" 1234.5 0.00001234 12.345 }}", 0,
		"1.23e+03 1.234e-05  12.35%" },
	{ "{{ printf \"%v %v %v %v\" 1 \"a\" 1.5 true }}", 0, "1 a 1.5 true" },
	{ "{{ printf \"%s|%10s|%-10s|%.2s\" \"abc\" \"abc\" \"abc\" \"abc\" }}", 0,
		"abc|       abc|abc       |ab" },
	{ "{{ printf \"%q %x % x\" \"a\\\"b\" \"hi\" \"hi\" }}", 0, "\"a\\\"b\" 6869 68 69" },
	{ "{{ printf \"%t %v\" true false }}", 0, "true false" },
	{ "{{ printf \"%T %T %T %T\" 1 1.5 \"a\" true }}", 0, "int float64 string bool" },
	{ "{{ printf \"%d\" \"x\" }} {{ printf \"%s\" 3 }} {{ printf \"%d\" 1.5 }}", 0,
		"%!d(string=x) %!s(int=3) %!d(float64=1.5)" },
	{ "{{ printf \"%d\" }} {{ printf \"a\" 1 \"b\" }} {{ printf \"%\" }}", 0,
		"%!d(MISSING) a%!(EXTRA int=1, string=b) %!(NOVERB)" },
	{ "{{ printf \"%*d|%.*f\" 5 3 2 1.234 }}", 0, "    3|1.23" },
	{ "{{ printf \"%z\" 1 }}", 0, "%!z(int=1)" },
	{ "{{ printf \"%v\" nil }} {{ printf \"%d\" nil }}", 0, "<nil> %!d(<nil>)" },
	{ "{{ printf \"%v\" .Labels }}", 0, "map[host:db-1.example.com:9090 job:api q:<a&\"b'>]" },
	{ "{{ printf \"%+.1f % d\" 1.25 7 }}", 0, "+1.2  7" },
	{ "{{ printf 1 }}", 0, "!1:11: expected string; found 1" },
	{ "{{ html .Labels.q }}", 0, "&lt;a&amp;&#34;b&#39;&gt;" },
	{ "{{ .Labels.q | urlquery }}", 0, "%3Ca%26%22b%27%3E" },
	{ "{{ urlquery \"a b\" 1 }}", 0, "a+b1" },
	{ "{{ html 1 2 }}", 0, "1 2" },
	/* fields of what has none */
	{ "{{ .Value.x }}", 0, "!1:4: can't evaluate field x in type float64" },
	{ "{{ .Labels.job.x }}", 0, "!1:4: can't evaluate field x in type string" },
	{ "before {{ .Value.x }} after", 0, "before !1:11: can't evaluate field x in type float64" },
};
/* clang-format on */

#endif
