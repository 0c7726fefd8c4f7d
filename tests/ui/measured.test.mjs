// The profiles that an expression measures. trees.json has answers of api/v1/parse_query, with the
// fields that are read; server.test.mjs compares them with a server's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { page } from "./page.mjs";

const { measured: m, timerange, urlstate } = page;
const trees = JSON.parse(readFileSync(new URL("trees.json", import.meta.url), "utf8"));

const PROFILES = new Set(["cpu", "heap", "process_cpu"]);
const AT = 100000;
const look = (expr, labels = {}) => {
	assert.ok(trees[expr], `trees.json has no ${expr}`);
	return m.measured(expr, trees[expr], AT, labels, (name) => PROFILES.has(name));
};
/** A side as one line: its query, and its window before the evaluation. */
const line = (s) => `${s.query} ${AT - s.start}..${AT - s.end}`;
const LEAK =
	'cum(heap, {function=~"cache\\\\..*"}) - ' +
	'cum(heap offset 6h, {function=~"cache\\\\..*"}) > 1e6';
const NONE = { pick: "", search: "" };

test("profiles, windows and functions of expressions", () => {
	for (const [expr, labels, want] of [
		[
			'cum_share(merge by (job) (cpu[5m]), {function="encoding/json.Marshal"}) > 0.10',
			{ job: "api" },
			{
				exact: 'merge(merge by (job) (cpu{job="api"}[5m]))',
				next: 'merge by (job) (cpu{job="api"}) 300..0',
				base: 'merge by (job) (cpu{job="api"}) 600..300',
				pick: "encoding/json.Marshal",
				search: "",
			},
		],
		[
			// The element has a label `function`; the filter's text is longer in bytes.
			'topk(10, flat(merge by (job) (focus(cpu{job=~"a.*"}[1m] offset 1h, "é{x}"))))',
			{ job: "ab", function: "main.work" },
			{
				exact: 'merge(merge by (job) (focus(cpu{job="ab"}[1m] offset 1h, "é{x}")))',
				next: 'merge by (job) (focus(cpu{job="ab"}, "é{x}")) 3660..3600',
				base: 'merge by (job) (focus(cpu{job="ab"}, "é{x}")) 3720..3660',
				pick: "main.work",
				search: "",
			},
		],
		[
			// Each side keeps the matchers that it has itself.
			'changed(cpu{version="v2"}[10m], cpu{version="v1"}[10m]) > 0',
			{ version: "v2", job: "api", function: "f" },
			{
				exact: 'merge(cpu{version="v2",job="api"}[10m])',
				next: 'cpu{version="v2",job="api"} 600..0',
				base: 'cpu{version="v1",job="api"} 600..0',
				pick: "f",
				search: "",
			},
		],
		[
			"changed(cpu[10m], cpu[10m] offset 10m)",
			{},
			{ exact: "merge(cpu[10m])", next: "cpu 600..0", base: "cpu 1200..600", ...NONE },
		],
		[
			// One query at two times; without a window it is the latest of the lookback.
			LEAK,
			{ pod: "p" },
			{
				exact: 'merge(heap{pod="p"})',
				next: 'heap{pod="p"} 300..0',
				base: 'heap{pod="p"} 21900..21600',
				pick: "",
				search: "^(?:cache\\..*)$",
			},
		],
		[
			// Labels that the expression makes are on no profile.
			'label_replace(total(cpu{job="api"}), "svc", "$1", "job", "(.*)") * on (job) group_left (team) up',
			{ job: "api", svc: "api", team: "shop", alertname: "A" },
			{
				exact: 'merge(cpu{job="api"})',
				next: 'cpu{job="api"} 300..0',
				base: 'cpu{job="api"} 600..300',
				...NONE,
			},
		],
		[
			"total(diff(merge(cpu[1m]), (merge(cpu[2m] offset 1d))))",
			{},
			{
				exact: "merge(cpu[1m])",
				next: "merge(cpu) 60..0",
				base: "merge(cpu) 86520..86400",
				...NONE,
			},
		],
		[
			"total(merge(cpu[1m]) - merge(cpu[1m] offset 1h)) > 0",
			{},
			{
				exact: "merge(cpu[1m])",
				next: "merge(cpu) 60..0",
				base: "merge(cpu) 3660..3600",
				...NONE,
			},
		],
		[
			'total(cpu<job="x">[5m] @ 100 offset 1m) > 1',
			{},
			{
				exact: 'merge(cpu{job="x"}[5m] @ 100 offset 1m)',
				next: `cpu{job="x"} ${AT - 100 + 360}..${AT - 100 + 60}`,
				base: `cpu{job="x"} ${AT - 100 + 660}..${AT - 100 + 360}`,
				...NONE,
			},
		],
		[
			'total({__name__="process_cpu",job="x"}[1m]) > 1',
			{ pod: 'a"b' },
			{
				exact: 'merge({__name__="process_cpu",job="x",pod="a\\"b"}[1m])',
				next: '{__name__="process_cpu",job="x",pod="a\\"b"} 60..0',
				base: '{__name__="process_cpu",job="x",pod="a\\"b"} 120..60',
				...NONE,
			},
		],
		[
			"sum by (job) (count_over_time(cpu[5m])) < 1",
			{ job: "a" },
			{
				exact: 'merge(cpu{job="a"}[5m])',
				next: 'cpu{job="a"} 300..0',
				base: 'cpu{job="a"} 600..300',
				...NONE,
			},
		],
		[
			// A function over a window is measured as the profiles in it.
			"total(sum_over_time(cpu[5m])) > 1",
			{},
			{ exact: "merge(cpu[5m])", next: "cpu 300..0", base: "cpu 600..300", ...NONE },
		],
		["up == 0", { job: "a" }, null],
		["rate(requests[5m])", {}, null],
	]) {
		const got = look(expr, labels);
		assert.deepEqual(
			got && { ...got, next: line(got.next), base: line(got.base) },
			want,
			expr,
		);
	}
});

test("the Compare page's address for it", () => {
	const got = m.compareParams(
		look('cum_share(merge by (job) (cpu[5m]), {function="encoding/json.Marshal"}) > 0.10', {
			job: "api",
		}),
	);
	const params = urlstate.patchParams(
		new URLSearchParams({ expr: "x", at: "1", match: "{}", range: "1h", view: "flame" }),
		got,
	);
	assert.deepEqual(Object.fromEntries(params), {
		view: "flame",
		new: 'merge by (job) (cpu{job="api"})',
		base: 'merge by (job) (cpu{job="api"})',
		from: "99700",
		to: "100000",
		bfrom: "99400",
		bto: "99700",
		pick: "encoding/json.Marshal",
	});
});

test("an alert's link: expression, evaluation and element", () => {
	const labels = { job: "api", pod: 'a"\\b' };
	const params = m.expressionParams("query", 'total(cpu{job="api"}[5m]) > 2', 1700000000.25, labels);
	const text = urlstate.formatParams(params);
	assert.equal(
		text,
		"?query=total(cpu%7Bjob%3D%22api%22%7D%5B5m%5D)%20%3E%202&at=1700000000.25" +
			"&match=%7Bjob%3D%22api%22,pod%3D%22a%5C%22%5C%5Cb%22%7D",
	);
	// It reads the same as Go's url.QueryEscape and our server write it.
	for (const query of [text, "?" + params.toString()]) {
		const back = new URLSearchParams(query);
		const get = (k) => back.get(k);
		assert.equal(get("query"), 'total(cpu{job="api"}[5m]) > 2');
		assert.equal(timerange.instantFromParams(get), 1700000000.25);
		assert.deepEqual(m.parseMatch(get("match")), labels);
	}
	assert.equal(m.expressionParams("query", "up", null, {}).toString(), "query=up");
	for (const text of ["", "{}", "{a=", "nonsense(", '{a!="b"}'])
		assert.deepEqual(m.parseMatch(text), {}, text);
});

test("an instant has its range before it, unless it has one of its own", () => {
	const range = (args) => {
		const p = new URLSearchParams(args);
		return timerange.rangeFromParams((k) => p.get(k));
	};
	assert.deepEqual(range({ at: "7200" }), { kind: "absolute", start: 3600, end: 7200 });
	assert.deepEqual(range({ at: "7200", range: "5m" }), {
		kind: "absolute",
		start: 6900,
		end: 7200,
	});
	assert.deepEqual(range({ at: "7200", from: "1", to: "99" }), {
		kind: "absolute",
		start: 1,
		end: 99,
	});
	for (const at of ["", "x", "-1", "0"])
		assert.deepEqual(range({ at }), { kind: "relative", seconds: 3600 }, at);
});
