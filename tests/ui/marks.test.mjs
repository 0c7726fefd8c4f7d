// Marks on time lines: which are one flag, what they say, and where they lead.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { marks, timerange } = page;
const { describeMarks, FLAG_NEAR_PX, flagMarks, markLines, markComparison, markText, MARKS_SAID } = marks;

const WINDOW = { start: 1000, end: 2000 };
const WIDTH = 1000; // a pixel a second
const posted = (time, more = {}) => ({ time, kind: "posted", text: `at ${time}`, labels: {}, ...more });
const version = (time, from = "v1", to = "v2", labels = { job: "shop" }) => ({
	...{ time, kind: "version", label: "version", from, to, text: `${from} -> ${to}`, labels },
});

test("marks that are nearer than a flag is wide are one flag", () => {
	const times = [1100, 1100 + FLAG_NEAR_PX - 1, 1100 + FLAG_NEAR_PX, 1500];
	const flags = flagMarks(times.map((t) => posted(t)), WINDOW, WIDTH);
	assert.deepEqual(
		flags.map((f) => [f.x, f.marks.map((m) => m.time)]),
		[
			[100, [1100, 1123]],
			[124, [1124]],
			[500, [1500]],
		],
	);
	// A chain of near marks does not become one flag.
	const many = flagMarks(Array.from({ length: 100 }, (_, i) => posted(1000 + 10 * i)), WINDOW, WIDTH);
	assert.deepEqual([...new Set(many.map((f) => f.marks.length))], [3, 1]);
	for (const [i, f] of many.entries()) assert.ok(i === 0 || f.x - many[i - 1].x >= FLAG_NEAR_PX);
});

test("a window has its own marks, in the order of their times, and those that reach into it", () => {
	const all = [posted(1900), posted(900), posted(2100), posted(950, { end: 1010 }), posted(1000), posted(2000)];
	const flags = flagMarks(all, WINDOW, WIDTH);
	assert.deepEqual(
		flags.map((f) => [f.x, f.marks.map((m) => m.time)]),
		[
			[0, [950, 1000]],
			[900, [1900]],
			[1000, [2000]],
		],
	);
});

test("one line per pixel, however many marks", () => {
	const many = Array.from({ length: 5000 }, (_, i) => posted(1500 + i / 20000));
	assert.deepEqual(markLines([...many, posted(1500, { end: 1600 })], WINDOW, WIDTH), [{ x: 500, wide: 100 }]);
	assert.deepEqual(
		markLines([posted(900, { end: 1100 }), posted(1200), posted(1990, { end: 2500 })], WINDOW, WIDTH),
		[
			{ x: 0, wide: 100 },
			{ x: 200, wide: 0 },
			{ x: 990, wide: 10 },
		],
	);
});

test("a mark in words", () => {
	timerange.setUtc(true);
	const at = "1970-01-01 00:20:00 UTC";
	assert.equal(markText(version(1200)), `version v1 → v2, ${at}, job=shop`);
	assert.equal(markText(posted(1200, { text: "deploy v41" })), `deploy v41, ${at}`);
	assert.equal(
		markText(posted(1200, { text: "load test", end: 1260, labels: { job: "a", zone: "eu" } })),
		`load test, ${at} to 1970-01-01 00:21:00 UTC, job=a, zone=eu`,
	);
	const many = Array.from({ length: MARKS_SAID + 3 }, (_, i) => posted(1000 + i));
	const said = describeMarks(many, WINDOW);
	assert.equal(said.length, MARKS_SAID + 1);
	assert.equal(said[MARKS_SAID], "and 3 more");
	assert.deepEqual(describeMarks(many, { start: 5000, end: 6000 }), []);
	timerange.setUtc(false);
});

test("a changed version leads to that version against the one before, of that service", () => {
	assert.deepEqual(markComparison(version(1600), "cpu", WINDOW), {
		new: 'cpu{job="shop",version="v2"}',
		base: 'cpu{job="shop",version="v1"}',
		from: "1600",
		to: "2000",
		bfrom: "1200",
		bto: "1600",
	});
	// A group by version would make the sides' elements differ.
	const grouped = 'merge by (version) (cpu{job=~"s.*",version="v2"})';
	const { new: next, base } = markComparison(version(1600), grouped, WINDOW);
	assert.equal(next, 'cpu{job="shop",version="v2"}');
	assert.equal(base, 'cpu{job="shop",version="v1"}');
	const focused = markComparison(version(1600), 'focus(merge(cpu), "main")', WINDOW);
	assert.equal(focused.base, 'focus(merge(cpu{job="shop",version="v1"}), "main")');
});

test("a posted mark leads to the time after it against as long before it", () => {
	const q = 'cpu{job="shop"}';
	const times = (mark) => {
		const { new: next, base, ...rest } = markComparison(mark, q, WINDOW);
		assert.deepEqual([next, base], [q, q]);
		return Object.values(rest).map(Number);
	};
	assert.deepEqual(times(posted(1250.5)), [1250.5, 2000, 501, 1250.5]);
	// What took a while is over before the later window.
	assert.deepEqual(times(posted(1200, { end: 1300 })), [1300, 2000, 500, 1200]);
	assert.deepEqual(times(posted(1200, { end: 2500 })), [1200, 2000, 400, 1200]);
	assert.deepEqual(times(posted(1999)), [1999, 2059, 1939, 1999], "no less than a minute");
});

test("costs lead to their profiles; a query without profiles leads nowhere", () => {
	const alert = 'total(rate(cpu{job="shop"}[5m])) > 2';
	assert.equal(markComparison(posted(1500), alert, WINDOW).new, 'cpu{job="shop"}');
	assert.equal(markComparison(posted(1500), "1 + 1", WINDOW), null);
	assert.equal(markComparison(posted(1500), "", WINDOW), null);
});
