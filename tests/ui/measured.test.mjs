// The profiles that an expression measures. trees.json has answers of api/v1/parse_query, with the
// fields that are read; server.test.mjs compares them with a server's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { page } from "./page.mjs";

const { measured: m, timerange, urlstate } = page;
const trees = JSON.parse(readFileSync(new URL("trees.json", import.meta.url), "utf8"));

const PROFILES = { cpu: "process_cpu:cpu", process_cpu: "process_cpu:cpu", heap: "memory:inuse_space" };
const AT = 100000;
const look = (expr, labels = {}, since = null) => {
	assert.ok(trees[expr], `trees.json has no ${expr}`);
	return m.measured(expr, trees[expr], { at: AT, labels, since }, (name) => PROFILES[name] ?? "");
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
				// The element's label leaves one group, so nothing is grouped.
				exact: 'merge(cpu{job="api"}[5m])',
				next: 'cpu{job="api"} 300..0',
				base: 'cpu{job="api"} 600..300',
				pick: "encoding/json.Marshal",
				search: "",
			},
		],
		[
			// The element has a label `function`; the filter's text is longer in bytes.
			'topk(10, flat(merge by (job) (focus(cpu{job=~"a.*"}[1m] offset 1h, "é{x}"))))',
			{ job: "ab", function: "main.work" },
			{
				exact: 'merge(focus(cpu{job="ab"}[1m] offset 1h, "é{x}"))',
				next: 'focus(cpu{job="ab"}, "é{x}") 3660..3600',
				base: 'focus(cpu{job="ab"}, "é{x}") 3720..3660',
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
		const { against, normalized, about, ...got } = look(expr, labels) ?? {};
		assert.deepEqual(
			got.next ? { ...got, next: line(got.next), base: line(got.base) } : null,
			want,
			expr,
		);
	}
});

const share = (side) => `flat_share(merge by (service) (cpu{job="demo", version="${side}"}[2m]), {function=~"main[.].*"})`;
const V2_V1 = ["cpu{version=\"v2\"} 300..0", "cpu{version=\"v1\"} 300..0"];

test("each form of a comparison opens its own two sides", () => {
	for (const [expr, labels, sides, normalized, about] of [
		[
			// The demo's alert.
			`${share("v2")} - ${share("v1")} > 0.1`,
			{ service: "shop", function: "main.scoreItems" },
			[
				'cpu{job="demo",version="v2",service="shop"} 120..0',
				'cpu{job="demo",version="v1",service="shop"} 120..0',
			],
			true,
			"main.scoreItems flat_share",
		],
		[
			// Without the element's labels the groups stay.
			`${share("v2")} - ${share("v1")} > 0.1`,
			{},
			[
				'merge by (service) (cpu{job="demo",version="v2"}) 120..0',
				'merge by (service) (cpu{job="demo",version="v1"}) 120..0',
			],
			true,
			"",
		],
		[
			'cum_share(cpu{version="v2"}[5m], {function="f"}) > 2 * cum_share(cpu{version="v1"}[5m], {function="f"})',
			{},
			V2_V1,
			true,
			"f cum_share",
		],
		['total(cpu{version="v2"}[5m]) - total(cpu{version="v1"}[5m]) > 1e9', {}, V2_V1, false, ""],
		['flat(cpu{version="v2"}[5m]) / flat(cpu{version="v1"}[5m]) > 2', { function: "f" }, V2_V1, false, "f flat"],
		['cum(cpu{version="v2"}[5m]) > 1.5 * cum(cpu{version="v1"}[5m])', { function: "f" }, V2_V1, false, "f cum"],
		// An increase relative to what was there.
		[
			'(total(cpu{version="v2"}[5m]) - total(cpu{version="v1"}[5m])) / total(cpu{version="v1"}[5m]) > 0.2',
			{},
			V2_V1,
			false,
			"",
		],
		// A canary as a part of both, which is compared with the other part.
		[
			'total(cpu{version="v2"}[5m]) / (total(cpu{version="v2"}[5m]) + total(cpu{version="v1"}[5m])) > 0.5',
			{},
			V2_V1,
			false,
			"",
		],
		['flat(diff(cpu{version="v2"}[5m], cpu{version="v1"}[5m]), {function="f"}) > 0', {}, V2_V1, false, "f flat"],
		[
			'total(diff(merge(rate(cpu{version="v2"}[5m])), merge(rate(cpu{version="v1"}[5m])))) > 0',
			{},
			V2_V1,
			false,
			"",
		],
		['total(diff_normalized(cpu{version="v2"}[5m], cpu{version="v1"}[5m])) > 0', {}, V2_V1, true, ""],
		['changed(cpu{version="v2"}[5m], cpu{version="v1"}[5m]) > 0.02', { function: "f" }, V2_V1, true, "f flat_share"],
		[
			'changed_interval(cpu{version="v2"}[5m], cpu{version="v1"}[5m]) > 0.02',
			{ function: "f", verdict: "changed", bound: "low" },
			V2_V1,
			true,
			"f flat_share",
		],
		// A function over a window is measured as the profiles in it.
		[
			"total(diff(max_over_time(heap[5m]), max_over_time(heap[5m] offset 1h))) > 0",
			{},
			["heap 300..0", "heap 3900..3600"],
			false,
			"",
		],
		// The later profiles are the new ones, on either side.
		[
			"total(heap[5m] offset 1h) < total(heap[5m]) / 2",
			{ pod: "p" },
			['heap{pod="p"} 300..0', 'heap{pod="p"} 3900..3600'],
			false,
			"",
		],
		[
			"flat by (job, function) (heap[30m]) > 1.1 * flat by (job, function) (heap[30m] offset 2h) " +
				"and flat by (job, function) (heap[30m]) > 6e7",
			{ job: "a", function: "f" },
			['heap{job="a"} 1800..0', 'heap{job="a"} 9000..7200'],
			false,
			"f flat",
		],
		[
			"total(cpu[5m]) > 2 * total(cpu[5m] @ 50000)",
			{},
			["cpu 300..0", "cpu 50300..50000"],
			false,
			"",
		],
		[
			"topk(9, flat(cpu[5m])) unless topk(9, flat(cpu[5m] offset 1d))",
			{ function: "f" },
			["cpu 300..0", "cpu 86700..86400"],
			false,
			"f flat",
		],
		// The mean of an hour, from subqueries.
		[
			"total(cpu[5m]) > 2 * avg_over_time(total(cpu[1m])[1h:5m] offset 5m)",
			{},
			["cpu 300..0", "cpu 3960..300"],
			false,
			"",
		],
		// Labels of the element belong to a side as the matching says.
		[
			'total(cpu{version=~"v2.*"}[5m]) > ignoring (version) 2 * total(cpu{version=~"v1.*"}[5m])',
			{ job: "a", version: "v2.3" },
			['cpu{job="a",version="v2.3"} 300..0', 'cpu{version=~"v1.*",job="a"} 300..0'],
			false,
			"",
		],
		[
			'total(cpu{job="a"}[5m]) > on (zone) group_left () total(cpu{job="b"}[5m])',
			{ job: "a", pod: "p", zone: "z" },
			['cpu{job="a",pod="p",zone="z"} 300..0', 'cpu{job="b",zone="z"} 300..0'],
			false,
			"",
		],
		[
			'total(cpu{pod=~"canary.*"}[5m]) > 2 * scalar(avg(total(cpu{pod!~"canary.*"}[5m])))',
			{ pod: "canary-1" },
			['cpu{pod="canary-1"} 300..0', 'cpu{pod!~"canary.*"} 300..0'],
			false,
			"",
		],
	]) {
		const got = look(expr, labels);
		assert.deepEqual([line(got.next), line(got.base)], sides, expr);
		assert.equal(got.against, "own", expr);
		assert.equal(got.normalized, normalized, expr);
		const { name, of, share } = got.about ?? {};
		assert.equal(got.about ? `${name} ${of}${share ? "_share" : ""}` : "", about, expr);
	}
});

test("a limit is compared with the window before the alert began", () => {
	for (const [expr, labels, since, base, against, about] of [
		["total(cpu[5m]) > 1", {}, null, "cpu 600..300", "window", null],
		// At its first evaluation that is the window before.
		["total(cpu[5m]) > 1", {}, AT, "cpu 600..300", "window", null],
		["total(cpu[5m]) > 1", {}, AT - 7200, "cpu 7800..7500", "alert", null],
		[
			'cum_share(merge by (job) (cpu[5m]), {function="encoding/json.Marshal"}) > 0.10',
			{ job: "api" },
			AT - 60,
			'cpu{job="api"} 660..360',
			"alert",
			{ name: "encoding/json.Marshal", of: "cum", share: true },
		],
		// Parts of the same profiles, or other types, are no comparison.
		['total(focus(cpu[5m], "f")) / total(cpu[5m]) > 0.5', {}, AT - 600, 'focus(cpu, "f") 1200..900', "alert", null],
		["total(cpu[5m]) / total(heap[5m]) > 1", {}, AT - 600, "cpu 1200..900", "alert", null],
		["total(cpu[5m]) + total(cpu[5m] @ 50000) > 1", {}, AT - 600, "cpu 50300..50000", "own", null],
		["total(cpu[5m] @ 50000) > 1", {}, AT - 600, "cpu 50600..50300", "window", null],
	]) {
		const got = look(expr, labels, since);
		assert.deepEqual([line(got.base), got.against], [base, against], `${expr} since ${since}`);
		assert.equal(got.normalized, false, expr);
		assert.deepEqual(got.about, about, expr);
	}
});

test("the function of the verdict in the address", () => {
	const get = (p) => (k) => new URLSearchParams(p).get(k);
	for (const about of [
		{ name: "main.(*load).get", of: "flat", share: true },
		{ name: "f&g", of: "cum", share: false },
	]) {
		const text = new URLSearchParams(m.aboutParams(about)).toString();
		assert.deepEqual(m.aboutFromParams(get(text)), about);
	}
	assert.deepEqual(m.aboutParams(null), { about: null, measure: null });
	assert.equal(m.aboutFromParams(get("measure=flat")), null);
	assert.equal(m.aboutFromParams(get("about=f&measure=most")), null);
	assert.deepEqual(m.aboutFromParams(get("about=f")), { name: "f", of: "cum", share: true });
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
		new: 'cpu{job="api"}',
		base: 'cpu{job="api"}',
		from: "99700",
		to: "100000",
		bfrom: "99400",
		bto: "99700",
		pick: "encoding/json.Marshal",
		about: "encoding/json.Marshal",
		measure: "cum_share",
	});
	const shares = look(`${share("v2")} - ${share("v1")} > 0.1`, { function: "main.f" });
	const { norm, about, measure, shift, since } = m.compareParams(shares);
	assert.deepEqual({ norm, about, measure, shift, since }, {
		norm: "1",
		about: "main.f",
		measure: "flat_share",
		shift: null,
		since: null,
	});
});

test("an alert's link: expression, evaluation and element", () => {
	const labels = { job: "api", pod: 'a"\\b' };
	const params = m.expressionParams("query", 'total(cpu{job="api"}[5m]) > 2', {
		at: 1700000000.25,
		labels,
		since: 1699999900,
	});
	const text = urlstate.formatParams(params);
	assert.equal(
		text,
		"?query=total(cpu%7Bjob%3D%22api%22%7D%5B5m%5D)%20%3E%202&at=1700000000.25&since=1699999900" +
			"&match=%7Bjob%3D%22api%22,pod%3D%22a%5C%22%5C%5Cb%22%7D",
	);
	// It reads the same as Go's url.QueryEscape and our server write it.
	for (const query of [text, "?" + params.toString()]) {
		const back = new URLSearchParams(query);
		const get = (k) => back.get(k);
		assert.equal(get("query"), 'total(cpu{job="api"}[5m]) > 2');
		assert.equal(timerange.instantFromParams(get), 1700000000.25);
		assert.deepEqual(m.parseMatch(get("match")), labels);
		assert.equal(m.sinceFromParams(get), 1699999900);
	}
	assert.equal(m.expressionParams("query", "up", { at: null }).toString(), "query=up");
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
