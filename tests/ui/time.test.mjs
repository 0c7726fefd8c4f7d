import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { timerange, urlstate, api, series } = page;

test("durations both ways", () => {
	for (const [text, seconds] of [
		["5m", 300],
		["1h30m", 5400],
		["1d", 86400],
		["250ms", 0.25],
		["1m0s", 60],
	])
		assert.equal(timerange.parseDuration(text), seconds, text);
	for (const text of ["", "5", "m", "5 m", "-5m", "5x"])
		assert.equal(timerange.parseDuration(text), null, text);
	for (const [seconds, text] of [
		[300, "5m"],
		[5400, "1h30m"],
		[90061.5, "1d1h1m1s500ms"],
		[0, "0s"],
	])
		assert.equal(timerange.formatDuration(seconds), text);
});

test("ranges survive the URL", () => {
	for (const range of [
		{ kind: "relative", seconds: 900 },
		{ kind: "absolute", start: 1795219120.5, end: 1795219180 },
	]) {
		const p = urlstate.patchParams(
			new URLSearchParams("from=1&to=2&range=9d&x=y"),
			timerange.rangeToParams(range),
		);
		assert.deepEqual(
			timerange.rangeFromParams((k) => p.get(k)),
			range,
		);
		assert.equal(p.get("x"), "y");
	}
	assert.deepEqual(
		timerange.rangeFromParams(() => null),
		timerange.DEFAULT_RANGE,
	);
	const wrong = { from: "9", to: "3" };
	assert.deepEqual(
		timerange.rangeFromParams((k) => wrong[k] ?? null),
		timerange.DEFAULT_RANGE,
	);
});

test("zooming out and shifting stop at now", () => {
	assert.deepEqual(timerange.zoomOut({ kind: "absolute", start: 100, end: 200 }, 1000), {
		kind: "absolute",
		start: 50,
		end: 250,
	});
	assert.deepEqual(timerange.zoomOut({ kind: "absolute", start: 900, end: 1000 }, 1000), {
		kind: "absolute",
		start: 800,
		end: 1000,
	});
	assert.deepEqual(timerange.zoomOut({ kind: "relative", seconds: 60 }, 1000), {
		kind: "relative",
		seconds: 120,
	});
	assert.deepEqual(timerange.shift({ kind: "relative", seconds: 100 }, -1, 1000), {
		kind: "absolute",
		start: 850,
		end: 950,
	});
	assert.deepEqual(timerange.shift({ kind: "absolute", start: 880, end: 980 }, 1, 1000), {
		kind: "absolute",
		start: 900,
		end: 1000,
	});
});

test("steps are multiples of the scrape interval", () => {
	const step = (width, interval) => timerange.chooseStep({ start: 0, end: width }, interval);
	assert.equal(step(300, 10), 10);
	assert.equal(step(3600, 10), 20);
	assert.equal(step(3600, 15), 15);
	assert.equal(step(86400, 10), 600);
	assert.equal(step(604800, 10), 3600);
	for (const width of [60, 1e3, 1e5, 1e7, 1e9]) {
		assert.equal(step(width, 15) % 15, 0);
		assert.ok(width / step(width, 15) <= 240, `${width}`);
	}
	assert.equal(timerange.commonInterval([10, 10, 15]), 30);
	assert.equal(timerange.commonInterval([10, 61]), 61);
	assert.equal(timerange.commonInterval([]), 15);
	assert.deepEqual(timerange.alignWindow({ start: 5, end: 99 }, 10), { start: 10, end: 90 });
});

test("series stand on one grid, the largest first, small holes bridged", () => {
	const got = series.alignSeries(
		[
			{
				metric: { version: "v1" },
				values: [
					[10, "1"],
					[30, "3"],
				],
			},
			{
				metric: { version: "v2" },
				values: [
					[10, "5"],
					[40, "5"],
				],
			},
			{
				metric: { version: "" },
				values: [
					[20, "0.5"],
					[25000, "9"],
				],
			},
		],
		{ start: 10, end: 40 },
		10,
		2,
		2,
	);
	assert.deepEqual(got, {
		times: [10, 20, 30, 40],
		labels: ["v2", "v1"],
		metrics: [{ version: "v2" }, { version: "v1" }],
		columns: [
			[10, null, null, 10],
			[2, undefined, 6, null],
		],
		rest: -1,
	});
});

test("the URL of the page", () => {
	assert.equal(urlstate.pathUnder("/epi/", "/epi/explore/"), "explore");
	assert.equal(urlstate.pathUnder("/", "/targets"), "targets");
	assert.equal(urlstate.pathUnder("/epi/", "/other"), "");
	const p = urlstate.patchParams(new URLSearchParams("a=1&b=2"), { a: null, c: "x" });
	assert.equal(p.toString(), "b=2&c=x");
	const q = new URLSearchParams({ query: 'cpu:samples{job="a b"}&x' });
	assert.equal(urlstate.formatParams(q), "?query=cpu:samples%7Bjob%3D%22a%20b%22%7D%26x");
	assert.equal(new URLSearchParams(urlstate.formatParams(q)).get("query"), q.get("query"));
	assert.equal(urlstate.formatParams(new URLSearchParams()), "");
});

test("API addresses are relative, arguments may repeat", () => {
	assert.equal(
		api.apiUrl("query", { query: "cpu{}", time: undefined, max_nodes: 5 }),
		"api/v1/query?query=cpu%7B%7D&max_nodes=5",
	);
	assert.equal(
		api.apiUrl("series", { "match[]": ["a", "b"] }),
		"api/v1/series?match%5B%5D=a&match%5B%5D=b",
	);
	assert.equal(api.apiUrl("labels"), "api/v1/labels");
});

test("an error knows its place", () => {
	const e = new api.ApiError(400, "bad_data", '2:5: unexpected ")"');
	assert.deepEqual([e.line, e.column, e.detail], [2, 5, 'unexpected ")"']);
	const plain = new api.ApiError(503, "unavailable", "storage is not ready: 1:5");
	assert.deepEqual([plain.line, plain.column, plain.detail], [0, 0, "storage is not ready: 1:5"]);
});

test("profile types are named as short as they stay clear", () => {
	const type = (name, sample, unit, delta) => ({
		name,
		sample_type: sample,
		sample_unit: unit,
		delta,
		period_type: "p",
		period_unit: "u",
		type: `${name}:${sample}:${unit}:p:u${delta ? ":delta" : ""}`,
	});
	const all = [
		type("process_cpu", "cpu", "nanoseconds", true),
		type("process_cpu", "samples", "count", true),
		type("memory", "inuse_space", "bytes", false),
		type("memory", "alloc_space", "bytes", true),
		type("goroutine", "goroutine", "count", false),
		type("x", "y", "a", false),
		type("x", "y", "b", false),
	];
	assert.deepEqual(
		all.map((t) => api.shortTypeName(t, all)),
		[
			"cpu",
			"cpu:samples",
			"memory",
			"memory:alloc_space",
			"goroutine",
			"x:y:a:p:u",
			"x:y:b:p:u",
		],
	);
	for (const t of all) assert.equal(api.resolveType(api.shortTypeName(t, all), all), t);
	assert.equal(api.resolveType("heap", all), all[2]);
	assert.equal(api.resolveType("process_cpu:cpu:nanoseconds:p:u", all), all[0]);
	assert.equal(api.resolveType("nothing", all), null);
	// What is sent in another unit does not take the short name, which has both.
	const both = [type("process_cpu", "cpu", "microseconds", true), ...all];
	assert.deepEqual(both.slice(0, 2).map((t) => api.shortTypeName(t, both)), [both[0].type, "cpu"]);
	for (const t of both) assert.equal(api.resolveType(api.shortTypeName(t, both), both), t);
	assert.equal(api.firstQuery(both), "cpu");
	assert.equal(api.firstQuery(both.slice(0, 1)), "cpu");
	assert.equal(api.firstQuery(all.slice(4)), "goroutine");
	const wall = [type("wall", "cpu", "nanoseconds", true), type("wall", "wall", "nanoseconds", true)];
	assert.equal(api.resolveType("cpu", wall), wall[0]);
	assert.equal(api.firstQuery(wall), "cpu");
	assert.equal(api.resolveType("cpu", [...wall, all[0]]), all[0]);
	assert.equal(api.resolveType("cpu", wall.slice(1)), null);
});

test("a series without the label that names the others says so", () => {
	const one = (metric) => ({ metric, values: [[10, "1"]] });
	const labels = (...metrics) =>
		series.alignSeries(metrics.map(one), { start: 10, end: 20 }, 10, 1, 9).labels;
	assert.deepEqual(labels({ handler: "/a" }, {}), ["/a", "no handler"]);
	assert.deepEqual(labels({ a: "1", b: "2" }, {}), ['a="1", b="2"', "no labels"]);
	assert.deepEqual(labels({}), ["total"]);
});

/** Runs `fn` in a zone of the browser, and with times in UTC if so chosen. */
function inZone(zone, utc, fn) {
	const before = process.env.TZ;
	process.env.TZ = zone;
	timerange.setUtc(utc);
	try {
		fn();
	} finally {
		timerange.setUtc(false);
		if (before === undefined) delete process.env.TZ;
		else process.env.TZ = before;
	}
}

const WINTER = Date.UTC(2026, 0, 2, 13, 5, 12) / 1000;
const SUMMER = Date.UTC(2026, 6, 2, 12, 5, 12) / 1000;

test("times say their zone, which the summer changes", () => {
	inZone("Europe/Berlin", false, () => {
		assert.equal(timerange.formatClock(WINTER), "2026-01-02 14:05:12 UTC+1");
		assert.equal(timerange.formatClock(SUMMER), "2026-07-02 14:05:12 UTC+2");
		assert.equal(timerange.formatTime(SUMMER), "14:05:12 UTC+2");
		assert.equal(timerange.formatMinute(SUMMER), "14:05 UTC+2");
		assert.equal(timerange.zoneAt(SUMMER, true), "UTC");
	});
	for (const [zone, want] of [
		["Asia/Kolkata", "UTC+5:30"],
		["America/St_Johns", "UTC-3:30"],
		["America/New_York", "UTC-5"],
		["UTC", "UTC"],
	])
		inZone(zone, false, () => assert.equal(timerange.zoneAt(WINTER), want, zone));
	inZone("America/New_York", true, () => {
		assert.equal(timerange.formatClock(WINTER), "2026-01-02 13:05:12 UTC");
		assert.equal(timerange.zoneAt(WINTER, false), "UTC-5", "the zone of the browser is known");
		assert.equal(timerange.dayOf(WINTER), "2026-01-02");
		assert.equal(timerange.midnight(WINTER), Date.UTC(2026, 0, 2) / 1000);
		assert.equal(timerange.formatTick(Date.UTC(2026, 0, 2) / 1000, 3600), "01-02");
		assert.equal(timerange.formatTick(WINTER, 60), "13:05");
	});
	inZone("America/New_York", false, () =>
		assert.equal(timerange.midnight(WINTER), Date.UTC(2026, 0, 2, 5) / 1000),
	);
});

test("a span says once what both times share", () => {
	const span = (start, end) => timerange.formatSpan({ start, end });
	inZone("Europe/Berlin", false, () => {
		assert.equal(span(SUMMER, SUMMER + 900), "2026-07-02 14:05:12 – 14:20:12 UTC+2");
		assert.equal(
			span(SUMMER, SUMMER + 86400),
			"2026-07-02 14:05:12 – 2026-07-03 14:05:12 UTC+2",
		);
		const change = Date.UTC(2026, 2, 29, 1) / 1000; // the clocks go from 2:00 to 3:00
		assert.equal(
			span(change - 600, change + 600),
			"2026-03-29 01:50:00 UTC+1 – 03:10:00 UTC+2",
		);
	});
});

test("typed times are of the zone that is shown, and what is shown can be typed", () => {
	const range = (start, end) => ({ kind: "absolute", start, end });
	const read = (text) => timerange.parseRangeText(text, SUMMER);
	const noon = Date.UTC(2026, 6, 2, 12) / 1000;
	const typed = "2026-07-02 12:00 to 13:00";
	inZone("Europe/Berlin", false, () => {
		assert.deepEqual(read(typed), range(noon - 7200, noon - 3600));
		assert.deepEqual(read(typed + " UTC"), range(noon, noon + 3600));
		assert.equal(timerange.toLocalInput(noon), "2026-07-02T14:00:00");
		assert.equal(timerange.fromLocalInput("2026-07-02T14:00:00"), noon);
	});
	inZone("Europe/Berlin", true, () => {
		assert.deepEqual(read(typed), range(noon, noon + 3600));
		assert.deepEqual(read(typed + " UTC+2"), range(noon - 7200, noon - 3600));
		assert.equal(timerange.toLocalInput(noon), "2026-07-02T12:00:00");
		assert.equal(timerange.fromLocalInput("2026-07-02T12:00:00"), noon);
		assert.equal(timerange.fromLocalInput(""), null);
	});
	const change = Date.UTC(2026, 9, 25, 1) / 1000; // 3:00 becomes 2:00
	for (const said of [range(noon, noon + 60), range(noon, noon + 90000), range(change - 1800, change + 1800)])
		for (const zone of ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "UTC"])
			for (const utc of [false, true])
				inZone(zone, utc, () =>
					assert.deepEqual(read(timerange.describeRange(said)), said, `${zone} ${utc}`),
				);
});
