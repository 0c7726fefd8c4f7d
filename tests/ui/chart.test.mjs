import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { costchart, query, series, timerange } = page;

const unit = { label: "cores", factor: 1, format: (v) => String(v) };

test("what functions leave of the total is a line of its own", () => {
	const got = series.withRest([
		{
			metric: {},
			values: [
				[10, "100"],
				[20, "50"],
			],
		},
		{ metric: { function: "a" }, values: [[10, "30"]] },
		{
			metric: { function: "b" },
			values: [
				[10, "50"],
				[20, "40"],
			],
		},
	]);
	assert.deepEqual(
		got.map((s) => [s.metric.function ?? "", s.rest ?? false, s.values.map(([, v]) => v)]),
		[
			["a", false, ["30", "0"]], // profiled, but it cost nothing
			["b", false, ["50", "40"]],
			["", true, ["20", "10"]],
		],
	);
	const alone = [{ metric: {}, values: [[10, "1"]] }];
	assert.equal(series.withRest(alone), alone, "a total alone stays one");
});

test("the rest comes last whatever it is, and the smaller lines add up to one", () => {
	const one = (metric, v, rest) => ({ metric, values: [[10, v]], rest });
	const window = { start: 10, end: 20 };
	const got = series.alignSeries(
		[one({ f: "a" }, "1"), one({}, "9", true), one({ f: "b" }, "2")],
		window,
		10,
		1,
		9,
	);
	assert.deepEqual(got.labels, ["b", "a", "other"]);
	assert.equal(got.rest, 2);
	const few = series.alignSeries(
		["1", "2", "3", "4"].map((v) => one({ f: v }, v)),
		window,
		10,
		1,
		2,
		true,
	);
	assert.deepEqual(few.labels, ["4", "3", "2 smaller"]);
	assert.deepEqual(
		few.columns.map((c) => c[0]),
		[4, 3, 3],
	);
	assert.equal(few.rest, 2);
});

test("stacks stand on each other, across holes but not across gaps", () => {
	assert.deepEqual(
		series.stackColumns([
			[1, undefined, 3, null],
			[10, 10, null, null],
		]),
		[
			[1, 2, 3, null],
			[11, 12, 3, null],
		],
	);
});

test("points without neighbours are found, at the edges too", () => {
	assert.deepEqual(series.isolatedPoints([1, null, 2, 3, null, 4, undefined, 5, null, 6]), [0, 9]);
	assert.deepEqual(series.isolatedPoints([7]), [0]);
	assert.deepEqual(series.isolatedPoints([null, 7, null]), [1]);
	assert.deepEqual(series.isolatedPoints([]), []);
});

test("a chart in words: range and last of each line", () => {
	const data = series.alignSeries(
		[
			{
				metric: { v: "1" },
				values: [
					[10, "2"],
					[20, "1"],
				],
			},
			{ metric: { v: "2" }, values: [[20, "0.5"]] },
		],
		{ start: 10, end: 30 },
		10,
		1,
		9,
	);
	const [head, ...lines] = series.describeChart(data, unit, 10);
	assert.match(head, /^2 lines, [-\d]+ [:\d]+ to [:\d]+ UTC\S*, in cores, step 10s\.$/);
	assert.deepEqual(lines, [
		"1: from 1 cores to 2 cores, last 1 cores.",
		"2: from 0.5 cores to 0.5 cores, last 0.5 cores.",
	]);
	// The unit of an alert says it already.
	const said = { ...unit, format: (v) => `${v} cores` };
	assert.deepEqual(series.describeChart(data, said, 10).slice(1), lines);
	assert.match(series.describeStep(data, unit, 1), /: 1 1 cores, 2 0\.5 cores$/);
	assert.match(series.describeStep(data, unit, 2), /: no profiles$/);
	assert.deepEqual(series.stepsWithValues(data), [0, 1]);
});

test("the functions of a chart are asked for by name, with the total beside them", () => {
	assert.equal(costchart.functionsQuery("cpu", []), "total(merge(cpu))");
	assert.equal(
		costchart.functionsQuery("merge(cpu)", ["main.(*T).f", 'a"b']),
		'flat by (function) (merge(cpu), {function=~"main\\\\.\\\\(\\\\*T\\\\)\\\\.f|a\\"b"})' +
			" or total(merge(cpu))",
	);
	assert.equal(query.profilesOf("top(5, merge(cpu))", "top"), "merge(cpu)");
	assert.equal(query.profilesOf(" cpu ", "selector"), "cpu");
});

test("ranges as people type them", () => {
	const now = 1767358800; // 2026-01-02T13:00:00Z
	const relative = (seconds) => ({ kind: "relative", seconds });
	for (const [text, seconds] of [
		["3h", 10800],
		["last 90d", 90 * 86400],
		["now-15m", 900],
		["-1h30m", 5400],
		["1h 30m", 5400],
	])
		assert.deepEqual(timerange.parseRangeText(text, now), relative(seconds), text);
	const range = (start, end) => ({ kind: "absolute", start, end });
	for (const [text, want] of [
		["2026-01-02T03:00:00Z to 2026-01-02T05:30:00+02:00", range(1767322800, 1767324600)],
		["2026-01-02T03:00Z/2026-01-02T04:00Z", range(1767322800, 1767326400)],
		["2026-01-02T03:00:00.5Z - now", range(1767322800.5, now)],
		["1767322800 .. 1767326400", range(1767322800, 1767326400)],
		["2026-01-02 03:00 to 04:00 UTC", range(1767322800, 1767326400)],
		["2026-01-02 05:00 – 06:00:00 UTC+2", range(1767322800, 1767326400)],
		["2026-01-02T03:00Z to 05:30", range(1767322800, 1767331800)],
		["2026-01-01 21:30 - 22:30 UTC-5:30", range(1767322800, 1767326400)],
		["2026-01-02 05:00 UTC+2 to 2026-01-02 13:00 UTC+9", range(1767322800, 1767326400)],
		// The day of a clock alone is that of its own zone: 02:00 of the third, in the east.
		["02:00 to 03:00 UTC+14", range(1767355200, 1767358800)],
		["2026-01-02 UTC to 2026-01-03 UTC", range(1767312000, 1767398400)],
	])
		assert.deepEqual(timerange.parseRangeText(text, now), want, text);
	const local = (h) => new Date(`2026-01-02T${h}`).getTime() / 1000;
	assert.deepEqual(
		timerange.parseRangeText("2026-01-02 03:00:00 – 05:10:00", now),
		range(local("03:00:00"), local("05:10:00")),
	);
	for (const text of ["", "soon", "3", "3h to 4h", "2026-01-02T04:00Z to 2026-01-02T03:00Z", "now", "03:00 to 04:00 UTC+15", "03:00 to 04:00 UTC+2:60"])
		assert.equal(timerange.parseRangeText(text, now), null, text);
	const said = range(local("03:00:00"), local("05:10:00"));
	assert.deepEqual(timerange.parseRangeText(timerange.describeRange(said), now), said);
});

test("what is open keeps the chart's own range in the address", () => {
	for (const back of [
		{ kind: "relative", seconds: 3600 },
		{ kind: "absolute", start: 100, end: 3700 },
	]) {
		const context = { window: { start: 100, end: 3700 }, back };
		const p = timerange.contextToParams(context);
		assert.deepEqual(
			timerange.contextFromParams((k) => p[k] ?? null),
			context,
		);
	}
	assert.equal(
		timerange.contextFromParams(() => null),
		null,
	);
	const chosen = timerange.rangeToParams({ kind: "relative", seconds: 60 });
	assert.deepEqual([chosen.cfrom, chosen.cto, chosen.crange], [null, null, null]);
});

test("steps of long ranges are few and whole", () => {
	for (const p of timerange.RANGE_PRESETS) {
		const seconds = timerange.parseDuration(p);
		for (const interval of [1, 10, 15, 60]) {
			const step = timerange.chooseStep({ start: 0, end: seconds }, interval);
			assert.equal(step % interval, 0);
			assert.ok(seconds / step <= 240, `${p} by ${step}`);
		}
	}
});

test("lines are named by the labels that tell them apart", () => {
	const names = (...metrics) =>
		series.alignSeries(
			metrics.map((metric) => ({ metric, values: [[10, "1"]] })),
			{ start: 10, end: 10 },
			10,
			1,
			20,
		).labels;
	const pod = (a, version) => ({ job: "demo", pod: a, version });
	assert.deepEqual(names(pod("a", "v1"), pod("b", "v1")), ["a", "b"]);
	assert.deepEqual(names(pod("a", "v1"), pod("b", "v2")), [
		'pod="a", version="v1"',
		'pod="b", version="v2"',
	]);
	assert.deepEqual(names({ job: "demo", pod: "a" }, { job: "demo" }), ["a", "no pod"]);
	assert.deepEqual(names({ job: "demo", pod: "a" }), ['job="demo", pod="a"'], "one alone has all");
	assert.deepEqual(names({ job: "demo" }), ["demo"]);
	assert.deepEqual(names({}), ["total"]);
});
